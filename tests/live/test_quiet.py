# SPDX-License-Identifier: GPL-2.0-only
"""Quiet on healthy programs: installed ones, as Debian ships them, at real work. Nothing is told but what kind of object, and
nobody is accused by more than a guess. `./dev test real` only."""
import os
import shutil
import subprocess

import live

GUESS = 0.5
SVG = ('<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><circle cx="40" cy="40" r="30"/>'
       '<text x="3" y="20">abc</text></svg>')
PYTHON = ('import json, sqlite3; c = sqlite3.connect(":memory:"); c.execute("create table t(a)"); '
          'c.executemany("insert into t values(?)", [(i,) for i in range(2000)]); '
          'print(len(json.dumps(c.execute("select a from t").fetchall())))')
SQL = ('create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000) '
       'insert into t select x, x * x from c; create index i on t(b); select count(*), sum(b) from t where b > 100;')
SEND = 'dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames'

# name -> programs that it needs, what the shell runs in a folder of its own
WORK = {
    'python3': (['/usr/bin/python3'], f"/usr/bin/python3 -c '{PYTHON}'"),
    'git': (['git'], 'git init -q r; cd r; for i in 1 2 3 4 5 6 7 8 9; do date > f$i; git add .; '
                     'git -c user.name=a -c user.email=b commit -qm $i; git repack -q; done; git log -p --stat; git fsck'),
    'gdb': (['gdb'], "gdb -batch -ex 'break main' -ex run -ex bt -ex 'info sharedlibrary' /bin/true"),
    'gio': (['gio'], 'gio list -l /usr/share; gio info /etc/passwd; gio mime text/plain'),
    'dbus': (['dbus-run-session', 'dbus-send'], f"dbus-run-session -- sh -c 'for i in 1 2 3 4 5; do {SEND}; done'"),
    'gdbus': (['dbus-run-session', 'gdbus'], 'dbus-run-session -- gdbus introspect --session --dest '
                                             'org.freedesktop.DBus --object-path /'),
    'perf': (['perf'], "perf record -o p.data -e cpu-clock -g -- sh -c 'for i in 1 2 3 4 5; do sort /etc/services; done'; "
                       'perf report -i p.data --stdio'),
    'gst-launch': (['gst-launch-1.0'], 'gst-launch-1.0 videotestsrc num-buffers=60 ! videoconvert ! fakesink'),
    'ffmpeg': (['ffmpeg'], 'ffmpeg -y -loglevel error -f lavfi -i testsrc=duration=1:size=160x120:rate=25 -c:v mpeg4 o.mp4; '
                           'ffmpeg -loglevel error -i o.mp4 -vf scale=80:60,hflip -f null -'),
    'nginx': (['nginx', 'curl'], "printf 'daemon off; master_process off; pid n.pid; error_log e.log; events {} http { "
                                 'access_log off; server { listen unix:%s/n.sock; root /usr/share; } }\' "$PWD" > n.conf; '
                                 'nginx -p "$PWD" -c n.conf -e e.log & until curl -s --unix-socket n.sock '
                                 'http://a/common-licenses/GPL-2; do kill -0 $! || exit 1; done; kill -QUIT $!; wait'),
    'sqlite3': (['sqlite3'], f"sqlite3 :memory: '{SQL}'"),
    'xmllint': (['xmllint'], 'xmllint --noout --xpath "count(//*)" /usr/share/mime/packages/freedesktop.org.xml'),
    'openssl': (['openssl'], 'openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=a; '
                             'openssl x509 -in c.pem -text -noout; openssl verify -CAfile c.pem c.pem'),
    'rsvg-convert': (['rsvg-convert'], f"printf '%s' '{SVG}' > a.svg; rsvg-convert a.svg -o a.png; "
                                       'rsvg-convert -f pdf a.svg -o a.pdf'),
    'perl': (['perl'], "perl -MEncode -MPOSIX -MData::Dumper -e 'my @a = map { { a => $_ } } 1 .. 2000; print scalar(@a)'"),
}
# What is accused with right, as strace shows: git's start_command() opens /dev/null for its child and never closes it in the
# parent (git repack, 2.39.5); perf maps a small perf.data whole, and forgets the mapping with its session (6.1).
PROVEN = {('git', 'descriptors'): {('leak', 'fd')}, ('perf', 'mappings'): {('leak', 'mapping')}}
WAYS = {'untold': (), 'descriptors': ('-P', 'fd'), 'mappings': ('-P', 'mapping')}


class Quiet(live.LiveTest):
    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        live.need_engine()

    def check(self, name):
        needs, work = WORK[name]
        for program in needs:
            if not shutil.which(program):
                self.skipTest(f'{program} is not installed')
        for way, told in WAYS.items():
            with self.subTest(way=way):
                folder = live.temp_path(f'{name}-{way}')
                folder.mkdir()
                env = {**os.environ, 'HOME': str(folder)}
                bare = subprocess.run(['bash', '-c', work], cwd=folder, env=env, capture_output=True, check=False)
                shutil.rmtree(folder)
                folder.mkdir()
                run = live.trace(*told, '--', 'bash', '-c', work, cwd=folder, env=env, timeout=300)
                if not told and run.findings is None:
                    self.assertIn('E03', run.stderr, str(run))  # it has none, and says so
                    continue
                self.assertEqual(run.status if run.status != 24 else bare.returncode, bare.returncode, str(run))
                sure = {(f['kind'], f['type']) for f in run.findings['findings'] if f['confidence'] > GUESS}
                self.assertLessEqual(sure, PROVEN.get((name, way), set()), str(run))


def add(name):
    setattr(Quiet, 'test_' + name.replace('-', '_'), lambda self: self.check(name))


for _name in WORK:
    add(_name)
