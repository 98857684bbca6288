# SPDX-License-Identifier: GPL-2.0-only
"""Markers of real programs: listed as readelf reads them, recorded as the programs say, counters back at zero."""
import collections
import glob
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import unittest

import live
from test_marker import PYTHON, Defined, semaphore
from test_sdt import Gdb, Sdt, end_bpftrace, events

PG = pathlib.Path('/usr/lib/postgresql/15/bin')
LIBSTDCXX = '/usr/lib/x86_64-linux-gnu/libstdc++.so.6'

# 3.11 passes function__entry only where something is thrown into a generator (ceval.c: the one DTRACE_FUNCTION_ENTRY
# stands behind `if (throwflag)`), and function__return at each return
SCRIPT = '''
def called(n):
    return n
def thrown():
    while True:
        try:
            yield
        except KeyError:
            pass
generator = thrown()
next(generator)
print('ready', flush=True)
while True:
    number, *pages = input().split()
    # flags of their own make them mappings of their own
    for page in pages:
        import ctypes
        if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(int(page)), 4096, 7):
            raise OSError(ctypes.get_errno(), page)
    number = int(number)
    list(map(called, range(2 * number)))
    for _ in range(number):
        generator.throw(KeyError)
    print('did', number, flush=True)
'''


def by_readelf(path):
    """[(provider, name, address, semaphore, arguments)], moved as prelink's base says."""
    sections = subprocess.run(['readelf', '-SW', path], capture_output=True, text=True, check=True).stdout
    base = re.search(r'\.stapsdt\.base\s+PROGBITS\s+(\w+)', sections)
    text = subprocess.run(['readelf', '-nW', path], capture_output=True, text=True, check=True).stdout
    found = []
    for m in re.finditer(r'Provider: (.*)\n +Name: (.*)\n +Location: (\w+), Base: (\w+), Semaphore: (\w+)\n'
                         r' +Arguments: ?(.*)', text):
        location, origin, counter = (int(m[i], 16) for i in (3, 4, 5))
        moved = int(base[1], 16) - origin if base and origin else 0
        found.append((m[1], m[2], location + moved, counter + moved if counter else 0, m[6].split()))
    return found


def by_us(path):
    markers = json.loads(live.call('probe', 'markers', '--json', path).stdout)['files'][0]['markers']
    return [(m['provider'], m['name'], int(m['address'], 16), int(m['semaphore'], 16),
             [a['operand'] for a in m['arguments']]) for m in markers], markers


class Lists(live.LiveTest):
    def check(self, path, least):
        if not os.path.exists(path):
            self.skipTest(f'{path} is not installed')
        want = by_readelf(path)
        have, markers = by_us(path)
        self.assertGreaterEqual(len(want), least)
        self.assertEqual(have, want)
        unread = [(m['name'], a) for m in markers for a in m['arguments'] if 'unread' in a]
        self.assertEqual(unread, [])
        self.assertEqual([m['name'] for m in markers if 'unusable' in m], [])

    def test_python(self):
        self.check(PYTHON, 8)

    def test_libstdcxx(self):
        self.check(LIBSTDCXX, 3)

    def test_postgresql(self):
        self.check(str(PG / 'postgres'), 70)

    def test_openjdk(self):
        found = sorted(glob.glob('/usr/lib/jvm/java-*-openjdk-*/lib/server/libjvm.so'))
        self.check(found[0] if found else '/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so', 100)


def address_of(pid, path, elf_address):
    """Where an ELF address of a file lies in a process, by readelf and /proc."""
    text = subprocess.run(['readelf', '-lW', path], capture_output=True, text=True, check=True).stdout
    loads = [(int(o, 16), int(v, 16)) for o, v in re.findall(r'LOAD +(0x\w+) (0x\w+)', text)]
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
        for line in maps:
            f = line.split(maxsplit=5)
            if len(f) == 6 and f[5].strip() == os.path.realpath(path):
                offset, start = next((o, v) for o, v in loads if o & ~4095 == int(f[2], 16))
                return int(f[0].split('-')[0], 16) - (start & ~4095) + elf_address
    raise AssertionError(f'{pid} does not map {path}')


class Python(Sdt):
    """function__entry of a running interpreter."""

    def setUp(self):
        super().setUp()
        if not os.access(PYTHON, os.X_OK):
            self.skipTest(f'{PYTHON} is not installed (python3.11-minimal)')
        self.target = live.Process([PYTHON, '-I', '-S', '-c', SCRIPT], pipe=True)
        self.addCleanup(self.target.kill)
        self.target.wait_line('ready')
        self.marker = next(m for m in by_readelf(PYTHON) if m[1] == 'function__entry')
        self.address = address_of(self.target.popen.pid, PYTHON, self.marker[3])

    def becomes(self, value):
        self.assertTrue(live.wait_until(lambda: semaphore(self.target.popen.pid, self.address) == value, 10),
                        f'the counter is {semaphore(self.target.popen.pid, self.address)}, not {value}')

    def do(self, number, *pages):
        self.target.popen.stdin.write(' '.join(map(str, [number, *pages])) + '\n')
        self.target.popen.stdin.flush()
        self.target.wait_line(f'did {number}')

    def pages(self):
        """-> those of the semaphore and of the marker"""
        return self.address & ~4095, address_of(self.target.popen.pid, PYTHON, self.marker[2]) & ~4095

    def mapped_alone(self, page):
        with open(f'/proc/{self.target.popen.pid}/maps', encoding='ascii') as maps:
            return any([int(n, 16) for n in line.split()[0].split('-')] == [page, page + 4096] for line in maps)

    def begin(self):
        self.becomes(0)
        tracer = self.attach('sdt_python:function__*:string=1+2', self.target.popen.pid)
        self.becomes(1)
        return tracer

    def check(self, end):
        tracer = self.begin()
        self.do(1234)
        perf = live.Process(['perf', 'record', '-q', '-o', '/dev/null', '-e',
                             Defined(PYTHON).define(self, 'function__entry'), '-p', self.target.popen.pid])
        self.addCleanup(perf.kill)
        self.assertTrue(live.wait_until(lambda: self.opened(perf.popen.pid), 10), 'perf did not open its event')
        os.kill(tracer.popen.pid, end)
        tracer.popen.wait(20)
        self.assertTrue(live.wait_until(lambda: not self.opened(tracer.popen.pid), 10))
        self.becomes(1)
        os.kill(perf.popen.pid, signal.SIGKILL)
        perf.popen.wait(20)
        self.becomes(0)
        self.do(5)

    @staticmethod
    def opened(pid):
        try:
            return any('[perf_event]' in os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd'))
        except OSError:
            return False

    def test_events(self):
        """What the script did is there, with names; nothing of the time after."""
        self.check(signal.SIGINT)
        self.saw(1234)

    def saw(self, number):
        seen = collections.Counter((e.name.split('__')[1], e.args['arg2']) for e in events(self.data))
        self.assertEqual(seen['entry', '"thrown"'], number, seen)
        self.assertEqual(seen['return', '"called"'], 2 * number, seen)
        self.assertEqual({e.args['arg1'] for e in events(self.data) if e.args['arg2'] == '"thrown"'}, {'"<string>"'})

    def test_killed(self):
        self.check(signal.SIGKILL)

    def in_pieces(self, end):
        """Its pages are mappings of their own, before we come or while we are there."""
        semaphore_page, code_page = self.pages()
        # code that may be written holds no probe: its neighbours become so
        self.do(3, code_page - 4096, code_page + 4096)
        tracer = self.begin()
        self.do(20, semaphore_page)
        self.assertTrue(self.mapped_alone(semaphore_page) and self.mapped_alone(code_page))
        self.do(300)
        self.becomes(1)
        os.kill(tracer.popen.pid, end)
        tracer.popen.wait(20)
        self.becomes(0)
        # the semaphore's page looks like code now
        self.assertTrue(live.wait_until(lambda: not any(code_page <= place < code_page + 4096 for place in
                                                        live.text_changes(self.target.popen.pid, PYTHON))))

    def test_in_pieces(self):
        self.in_pieces(signal.SIGINT)
        self.saw(320)

    def test_in_pieces_killed(self):
        self.in_pieces(signal.SIGKILL)
        self.do(4)

    def test_gdb(self):
        """It comes and goes while we are there: we see all, and the counter is what is left."""
        tracer = self.begin()
        self.do(50)
        gdb = Gdb(self, self.target.popen.pid, 'python:function__entry')
        self.becomes(2)
        self.do(60)
        self.assertEqual(gdb.leave(), 0, 'the kernel has them first')
        self.becomes(1)
        self.do(70)
        tracer.popen.send_signal(signal.SIGINT)
        tracer.popen.wait(20)
        self.becomes(0)
        self.saw(180)

    def test_bpftrace(self):
        """It comes first and stays longer. One place has one semaphore, which the kernel raises once for both."""
        if not shutil.which('bpftrace'):
            self.skipTest('no bpftrace')
        program = f'usdt:{PYTHON}:python:function__entry {{ printf("hit\\n"); }}'
        other = live.Process(['bpftrace', '-B', 'line', '-p', self.target.popen.pid, '-e', program])
        self.addCleanup(other.kill)

        def hits():
            return other.lines.count('hit\n')

        # it raises the counter before it has its probe
        self.assertTrue(live.wait_until(lambda: self.do(1) or live.wait_until(hits, 1), 20), 'bpftrace sees nothing')
        alone, before = semaphore(self.target.popen.pid, self.address), hits()
        tracer = self.attach('sdt_python:function__*:string=1+2', self.target.popen.pid)
        self.do(40)
        os.kill(tracer.popen.pid, signal.SIGKILL)
        tracer.popen.wait(20)
        self.becomes(alone)
        self.do(5)
        self.assertTrue(live.wait_until(lambda: hits() >= before + 45, 10))
        end_bpftrace(other)
        self.assertEqual(other.wait(20)[1].count('hit\n'), before + 45)
        self.becomes(0)


@live.alone('it records all processes')
class PostgreSQL(Sdt):
    """A live server: what ten of its markers say is what was asked of it."""
    TEN = ('query__start', 'query__done', 'query__parse__start', 'query__parse__done', 'query__plan__start',
           'query__execute__start', 'transaction__start', 'transaction__commit', 'sort__start', 'sort__done')
    QUERIES = ['select 1', 'select count(*) from generate_series(1, 1000)',
               'select n from generate_series(1, 50) n order by n desc', 'select 2', "select 'done'"]

    def setUp(self):
        super().setUp()
        if not (PG / 'postgres').exists():
            self.skipTest('postgresql-15 is not installed')
        self.user = pwd.getpwnam('postgres')
        self.home = live.temp_path('pg')
        self.home.mkdir()
        os.chown(self.home, self.user.pw_uid, self.user.pw_gid)
        self.as_postgres(PG / 'initdb', '-D', self.home / 'db', '-A', 'trust', '--no-sync')
        self.server = live.Process([*self.become(), PG / 'postgres', '-D', self.home / 'db', '-k', self.home, '-c',
                                    'listen_addresses=', '-c', 'autovacuum=off', '-F'])
        self.addCleanup(self.end)
        self.assertTrue(live.wait_until(lambda: not self.psql('select 0').returncode, 30), 'the server does not answer')

    def become(self):
        return ['setpriv', f'--reuid={self.user.pw_uid}', f'--regid={self.user.pw_gid}', '--clear-groups']

    def as_postgres(self, *words):
        subprocess.run([*self.become(), *map(str, words)], cwd='/', env=live.clean_env(), check=True,
                       stdout=subprocess.DEVNULL)

    def psql_words(self, *queries):
        words = ['psql', '-X', '-q', '-At', '-h', str(self.home), '-U', 'postgres', '-d', 'postgres']
        return words + [w for q in queries for w in ('-c', q)]

    def psql(self, *queries):
        return subprocess.run(self.psql_words(*queries), capture_output=True, text=True, env=live.clean_env(),
                              check=False)

    def end(self):
        self.server.popen.send_signal(signal.SIGINT)
        try:
            self.server.popen.wait(20)
        except subprocess.TimeoutExpired:
            self.server.kill()

    def test_ten_under_queries(self):
        names = [w for n in self.TEN for w in ('-e', f'sdt_postgresql:{n}' + (':string=1' if n == 'query__start' else ''))]
        run = live.call('record', '-a', '-o', self.data, *names, '--',
                        *self.psql_words('select pg_backend_pid()', *self.QUERIES), env=self.env, timeout=120)
        self.assertEqual(run.status, 0, str(run))
        backend = int(run.stdout.split()[0])
        mine = [e for e in events(self.data) if e.pid == backend]
        asked = ['select pg_backend_pid()', *self.QUERIES]
        self.assertEqual([e.args['arg1'].strip('"') for e in mine if e.name.endswith(':query__start')], asked)
        seen = collections.Counter(e.name.split(':')[1] for e in mine)
        for name in ('query__done', 'query__parse__start', 'query__parse__done', 'query__plan__start',
                     'query__execute__start'):
            self.assertEqual(seen[name], len(asked), (name, seen))
        # one more of each when the session begins
        self.assertEqual(seen['transaction__start'], seen['transaction__commit'], seen)
        self.assertGreaterEqual(seen['transaction__start'], len(asked), seen)
        self.assertEqual((seen['sort__start'], seen['sort__done']), (1, 1), seen)
        for marker in by_readelf(str(PG / 'postgres')):
            if marker[1] in self.TEN:
                at = address_of(self.server.popen.pid, str(PG / 'postgres'), marker[3])
                self.assertEqual(semaphore(self.server.popen.pid, at), 0, marker)
        self.assertEqual(self.psql('select 7').stdout, '7\n')


if __name__ == '__main__':
    unittest.main()
