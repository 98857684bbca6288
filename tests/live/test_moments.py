# SPDX-License-Identifier: GPL-2.0-only
"""
What is alive at random moments, held against what the kernel says then: descriptors against /proc/PID/fd, mappings
against /proc/PID/maps. Blocks of the heap at the end, against valgrind.
"""
import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

import live

MOMENTS = 10
PAGE = 4096
EARLY = 32 * PAGE  # the dynamic linker's own memory, that it has mapped before anybody looks
BIAS = 1  # a descriptor is the object of its number plus this

PYTHON = '''
import json, mmap, os, socket, subprocess, sys, tempfile, threading
kept = []
def work(n):
    with open('/etc/passwd') as f, tempfile.TemporaryFile() as t:
        t.write(f.read().encode() * 50)
        t.flush()
        with mmap.mmap(t.fileno(), 0) as m:
            m.find(b'root')
    if n % 3 == 0:
        kept.append((socket.socketpair(), bytearray(300000), mmap.mmap(-1, 40000 + n), os.dup(0)))
    if n % 7 == 0:
        subprocess.run(['true'])
    if len(kept) > 12:
        (a, b), _, m, fd = kept.pop(n % 9)
        a.close(), b.close(), m.close(), os.close(fd)
for n, line in enumerate(sys.stdin):
    t = threading.Thread(target=work, args=(n,))
    t.start()
    work(n + 1)
    t.join()
'''
PERL = '''
my @kept;
while (<STDIN>) {
    open(my $f, '<', '/etc/group'); my @l = <$f>; close $f;
    open(my $k, '<', '/etc/hostname'); push @kept, $k; push @kept, 'x' x (150000 + $. * 10000);
    pipe(my $r, my $w); opendir(my $d, '/etc'); my @n = readdir $d; closedir $d;
    splice(@kept, $. % 5, 3) if @kept > 20;
    `true` if $. % 5 == 0;
}
'''
BASH = '''
while read -r n; do
    exec 7</etc/passwd 8>/dev/null; read -r x <&7; exec 9<&7 7<&-; cat /etc/hostname | tr a-z A-Z >&8
    if ((n % 2)); then exec 8>&-; fi; y=$(printf '%0200000d' 1)
done
'''


def sql(n):
    return (f'create table t{n}(a, b); insert into t{n} with recursive c(x) as (select 1 union all select x + 1 from c '
            f"where x < 3000) select x, hex(randomblob(100)) from c; attach '' as a{n}; create index i{n} on t{n}(b);"
            f'select count(*) from (select b from t{n} order by a desc); detach a{n};\n')


def gdb(n):
    return ('file /bin/ls\n', 'info functions ^main\n', 'file /usr/bin/git\n', 'info line main\n',
            'symbol-file /lib/x86_64-linux-gnu/libc.so.6\n', 'info symbol 0x1000\n', 'shell true\n')[n % 7]


# program -> (its command, what it is told the nth time)
PROGRAMS = {
    'python3': (['/usr/bin/python3', '-c', PYTHON], lambda n: f'{n}\n'),
    'perl': (['perl', '-e', PERL], lambda n: f'{n}\n'),
    'bash': (['bash', '-c', BASH], lambda n: f'{n}\n'),
    'sqlite3': (['sqlite3', '-cmd', 'pragma mmap_size=100000000', 'moments.db'], sql),
    'gdb': (['gdb', '-nx', '-q'], gdb),
    'git': (['git', 'cat-file', '--batch-check'], lambda n: f'HEAD~{n % 9}\nHEAD:README.md\n'),
}


class Line:
    """One event of a stream as text."""

    def __init__(self, words, keys, pid):
        self.op, self.type, self.object = words[0], words[1], int(words[2], 16)
        self.pid, self.time, self.bytes = pid, int(keys['t']), int(keys.get('aux', '0'), 0)


def events(text):
    """-> [(line that says its process itself, time, process, event or None)]; time 0: it holds for all"""
    pid, said, result = 0, '', []
    for line in text.splitlines():
        words = line.partition('#')[0].split()
        keys = dict(w.split('=', 1) for w in words if '=' in w)
        plain = [w for w in words if '=' not in w]
        said = keys.get('pid', said)
        pid = int(said.partition('/')[0] or 0)
        is_event = plain and plain[0] in ('new', 'free')
        if 't' in keys and 'pid' not in keys and said:
            line += f' pid={said}'
        result.append((line, int(keys.get('t', 0)), pid, Line(plain, keys, pid) if is_event else None))
    return result


def pages(size):
    return -(-size // PAGE) * PAGE


def model(stream, pid, until, before=()):
    """
    What is alive by the bare events: descriptors, and (start, end, number of the mapping). By time: calls are told as
    they return. What is mapped inside of a larger mapping fills it, and is none of its own.
    """
    descriptors, ranges, number = set(before), [], 0
    for e in sorted((e for _, _, p, e in stream if e and p == pid and e.time <= until), key=lambda e: e.time):
        if e.type == 'fd':
            span = range(e.object - BIAS, e.object - BIAS + (e.bytes or 1))
            descriptors = {fd for fd in descriptors if fd not in span} | (set(span) if e.op == 'new' else set())
        else:
            start, end = e.object, e.object + pages(e.bytes)
            if e.op == 'new' and any(a <= start and b >= end and b - a > end - start for a, b, _ in ranges):
                continue
            cut = [(a, min(b, start), n) for a, b, n in ranges] + [(max(a, end), b, n) for a, b, n in ranges]
            ranges = [r for r in cut if r[0] < r[1]]
            number += 1
            if e.op == 'new':
                ranges.append((start, end, number))
    return descriptors, ranges


def joined(ranges):
    result = []
    for start, end, *_ in sorted(ranges):
        if result and result[-1][1] >= start:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def minus(a, b):
    """Addresses of the ranges a that are not in b."""
    result = []
    for start, end in joined(a):
        for s, e in joined(b):
            if e <= start or s >= end:
                continue
            if s > start:
                result.append((start, s))
            start = max(start, e)
        if start < end:
            result.append((start, end))
    return result


Moment = collections.namedtuple('Moment', 'time descriptors mapped by_start by_kernel')


def look(pid):
    """What the kernel says while all threads of the process stand."""
    os.kill(pid, signal.SIGSTOP)
    try:
        def stands():
            states = [pathlib.Path(t, 'stat').read_text().rpartition(')')[2].split()[0]
                      for t in pathlib.Path(f'/proc/{pid}/task').iterdir()]
            return all(s in 'tTZX' for s in states)
        live.wait_until(stands)
        descriptors = {int(fd) for fd in os.listdir(f'/proc/{pid}/fd')}
        exe, mapped, by_start, by_kernel, last = os.readlink(f'/proc/{pid}/exe'), [], [], [], None
        for line in pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines():
            fields = line.split(maxsplit=5)
            start, end = (int(n, 16) for n in fields[0].split('-'))
            name = fields[5] if len(fields) > 5 else ''
            mapped.append((start, end))
            if name[:1] == '[':  # the heap of brk(), the first thread's stack, vdso
                by_kernel.append((start, end))
            # what was mapped before reftrace looks: by exec, and by the dynamic linker before it calls its hook
            ours = name == exe or '.so' in name or name[:1] == '['
            if ours or (not name and (last == start or end - start <= EARLY)):
                by_start.append((start, end))
                last = end if name[:1] != '[' else None
        return Moment(time.clock_gettime_ns(time.CLOCK_MONOTONIC), descriptors, mapped, by_start, by_kernel)
    finally:
        os.kill(pid, signal.SIGCONT)


def waits(pid):
    """For its input: read() or poll()."""
    return pathlib.Path(f'/proc/{pid}/syscall').read_text().split()[0] in ('0', '7', '23', '270', '271')


def traced_child(reftrace, name):
    """The process that runs the program: a child of ours that has become it."""
    for task in pathlib.Path(f'/proc/{reftrace}/task').iterdir():
        for pid in map(int, (task / 'children').read_text().split()):
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink(f'/proc/{pid}/exe')).startswith(name):
                    return pid
    return None


@unittest.skipIf(live.ENGINE == 'agent', 'the agent does not look into the kernel')
class Moments(live.LiveTest):
    def setUp(self):
        live.need_binary()
        live.need_engine()
        self.seed = int.from_bytes(os.urandom(4), 'big')
        self.random = random.Random(self.seed)

    def record(self, command, tell):
        """-> (the recording as text, pid, the moment before it was told anything, moments)"""
        path, moments, pid = live.temp_path('moments.data'), [], None
        cwd = live.SOURCE if command[0] == 'git' else live.temp()
        process = subprocess.Popen([live.REFTRACE, 'record', '-P', 'fd', '-P', 'mapping', '-o', path, '--', *command],
                                   cwd=cwd, env=live.clean_env(), text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = []
        reader = threading.Thread(target=lambda: said.append(process.stderr.read()))
        reader.start()
        try:
            live.wait_until(lambda: traced_child(process.pid, command[0].rpartition('/')[2]), 30)
            pid = traced_child(process.pid, command[0].rpartition('/')[2])
            live.wait_until(lambda: waits(pid), 30)
            first = look(pid)
            for n in range(MOMENTS):
                for k in range(5):
                    process.stdin.write(tell(n * 5 + k))
                process.stdin.flush()
                time.sleep(self.random.random() * 0.15)  # any moment will do
                moments.append(look(pid))
            process.stdin.close()
            self.assertEqual(process.wait(120), 0, said)
        finally:
            process.kill()
            process.wait()
            reader.join()
            process.stderr.close()
        done = live.call('script', '--events', '-i', path, timeout=120)
        self.assertEqual(done.status, 0, done.stderr)
        return done.stdout, pid, first, moments

    def reported(self, stream, pid, until):
        """How many objects of each type reftrace says are alive, from the part of the stream up to then."""
        path, kept = live.temp_path('until.events'), []
        for line, at, process, _ in stream:
            if at <= until and (not at or process == pid):
                kept.append(line)
        path.write_text('\n'.join(kept) + '\n')
        run = live.trace('-i', path, verb=('report',))
        return {t['name']: t['live'] for t in run.findings['types']}

    def check(self, name):
        command, tell = PROGRAMS[name]
        if not shutil.which(command[0]):
            self.skipTest(f'{command[0]} is not installed')
        text, pid, first, moments = self.record(command, tell)
        stream = events(text)
        # 0, 1 and 2 nobody has opened
        before = first.descriptors - model(stream, pid, first.time)[0]
        self.assertLessEqual(before, {0, 1, 2})
        for i, moment in enumerate(moments):
            what = f'{name}, moment {i}, seed {self.seed}'
            descriptors, ranges = model(stream, pid, moment.time, before)
            self.assertEqual(descriptors, moment.descriptors, what)
            self.assertEqual(minus(ranges, moment.mapped), [], f'{what}: not mapped any more')
            self.assertEqual(minus(moment.mapped, ranges + first.by_start + moment.by_kernel), [], f'{what}: mapped, and nobody was seen to')
            counted = self.reported(stream, pid, moment.time)
            self.assertEqual(counted['fd'], len(model(stream, pid, moment.time)[0]), what)
            self.assertEqual(counted['mapping'], len({n for _, _, n in ranges}), what)
        return len(moments)

    def test_python(self):
        self.assertEqual(self.check('python3'), MOMENTS)

    def test_perl(self):
        self.assertEqual(self.check('perl'), MOMENTS)

    def test_bash(self):
        self.assertEqual(self.check('bash'), MOMENTS)

    def test_sqlite(self):
        self.assertEqual(self.check('sqlite3'), MOMENTS)

    def test_gdb(self):
        self.assertEqual(self.check('gdb'), MOMENTS)

    def test_git(self):
        self.assertEqual(self.check('git'), MOMENTS)


class AtExit(live.LiveTest):
    """Programs that do the same each time, whatever their addresses and variables are."""
    PROGRAMS = (['ls', '/etc'], ['git', '--version'], ['sqlite3', ':memory:', 'select 1'], ['xz', '--version'],
                ['sort', '/etc/passwd'], ['file', '/bin/ls'], ['find', '/etc/apt'])

    def test_blocks(self):
        live.need_engine()
        if not shutil.which('valgrind'):
            self.skipTest('valgrind is not installed')
        seen, most = 0, len(self.PROGRAMS) if live.REAL else 3
        for command in self.PROGRAMS[:most]:
            if not shutil.which(command[0]):
                continue
            with self.subTest(command=command):
                out = subprocess.run(['valgrind', '--run-libc-freeres=no', '--run-cxx-freeres=no', '--leak-check=no', *command],
                                     env=live.clean_env(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     check=True).stderr
                blocks = int(re.search(r'in use at exit: [\d,]+ bytes in ([\d,]+) blocks', out)[1].replace(',', ''))
                made = int(re.search(r'total heap usage: ([\d,]+) allocs', out)[1].replace(',', ''))
                run = live.trace('-P', 'malloc', '--', *command)
                heap = run.findings['types'][0]
                self.assertEqual((heap['live'], heap['objects']), (blocks, made), str(run))
                seen += 1
        self.assertGreaterEqual(seen, 5 if live.REAL else 3)


class Seeded(live.LiveTest):
    """Real programs with a library that forgets a block, a mapping and a descriptor one time in five."""
    PROGRAMS = (['ls', '/etc'], ['git', '--version'], ['sqlite3', ':memory:', 'select 1'], ['xz', '--version'], ['file', '/bin/ls'],
                ['find', '/etc/apt'], ['bash', '-c', 'true'], ['gio', 'info', '/usr'])
    GUILTY = {'heap': 'use_block', 'mapping': 'use_mapping', 'fd': 'use_fd'}

    def setUp(self):
        live.need_engine()
        self.library = live.temp_path('seeded.so')
        live._compile(live.PROGRAMS / 'seeded.c', self.library, 'gcc', ('-g', '-O2'))

    def found(self, command, seeded):
        presets = ('malloc', 'mapping', 'fd') if live.ENGINE != 'agent' else ('malloc',)
        run = live.trace(*[w for p in presets for w in ('-P', p)], '-E', f'LD_PRELOAD={self.library}', '-E', f'SEEDED={seeded}',
                         '--', *command, timeout=120)
        self.assertTrue(run.findings['trust']['complete'], str(run))
        return [(f['type'], f['guilty']['function'], f['objects']) for f in run.findings['findings']], run

    def test_named(self):
        want = {(kind, function, 20) for kind, function in self.GUILTY.items() if live.ENGINE != 'agent' or kind == 'heap'}
        seen = 0
        for command in self.PROGRAMS[:len(self.PROGRAMS) if live.REAL else 3]:
            if not shutil.which(command[0]):
                continue
            with self.subTest(command=command):
                found, run = self.found(command, 1)
                self.assertEqual(set(found), want, str(run))
                found, run = self.found(command, 0)
                self.assertEqual(found, [], str(run))
                seen += 1
        self.assertGreaterEqual(seen, 5 if live.REAL else 3)

    def test_named_inside(self):
        """In the middle of what a large program does by itself."""
        script = live.temp_path('seeded.py')
        script.write_text(f'''
import ctypes, json, re
lib = ctypes.CDLL({str(self.library)!r})
for n in range(100):
    json.loads(json.dumps({{str(k): [k] * 5 for k in range(50)}})); re.sub('a', 'b', 'banana' * n)
    with open('/etc/passwd') as f: f.read()
    for fn in (lib.use_block, lib.use_mapping, lib.use_fd): fn(n, 1)
''')
        found, run = self.found(['/usr/bin/python3', script], '')
        self.assertEqual({f[1] for f in found}, set(self.GUILTY.values()), str(run))


if __name__ == '__main__':
    unittest.main()
