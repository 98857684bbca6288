# SPDX-License-Identifier: GPL-2.0-only
"""record -e sdt_PROVIDER:NAME: found without being told where, armed where the marker is, counters left as they were.
What programs print about themselves, perf script and readelf are the oracles."""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import live
from test_marker import Defined, semaphore
from test_record import read_ack

LINKERS = {'bfd': 'binutils', 'gold': 'binutils', 'lld': 'lld', 'mold': 'mold'}
Event = collections.namedtuple('Event', 'pid name args')


def build(target, name, *flags, libraries=()):
    """tests/programs/NAME.c compiled with flags to target."""
    shared = ['-shared', '-fPIC'] if str(target).endswith('.so') else []
    command = ['gcc', '-O2', '-w', *flags, *shared, str(live.PROGRAMS / (name + '.c')), '-o', str(target), '-ldl',
               *map(str, libraries)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f'{" ".join(command)}\n{done.stderr}')
    return target


def events(path):
    """What perf reads of a recording, without our own notes."""
    done = subprocess.run(['perf', 'script', '-i', str(path), '-F', 'pid,event,trace'], capture_output=True, text=True,
                          check=True)
    found = []
    for line in done.stdout.splitlines():
        m = re.match(r'\s*(\d+)\s+(\S+):\s+\(\w+\)(.*)', line)
        if m and not m[2].startswith('reftrace:'):
            found.append(Event(int(m[1]), m[2], dict(re.findall(r'(arg\d+)=("[^"]*"|\S+)', m[3]))))
    return found


def counts(path):
    return dict(collections.Counter(e.name for e in events(path)))


def left_behind():
    """Definitions of reftraces that are gone; others may run beside us."""
    pids = re.compile(r':reftrace_(\d+)_')
    return [line for line in live.probe_events()
            if pids.search(line) and not os.path.exists(f'/proc/{pids.search(line)[1]}')]


class Gdb:
    """gdb with a breakpoint at a marker, whose hits it counts; it writes the semaphore itself."""

    def __init__(self, test, pid, marker):
        if not shutil.which('gdb'):
            test.skipTest('no gdb')
        self.process = live.Process(['gdb', '-q', '-nx', '-p', pid], pipe=True)
        test.addCleanup(self.process.kill)
        self.tell('set pagination off', 'set confirm off', f'break -probe-stap {marker}', 'commands', 'silent',
                  'set $hits = $hits + 1', 'continue', 'end', 'set $hits = 0', 'continue')

    def tell(self, *commands):
        for command in commands:
            self.process.popen.stdin.write(command + '\n')
        self.process.popen.stdin.flush()

    def leave(self):
        """-> how many hits it says"""
        self.process.popen.send_signal(signal.SIGINT)
        self.tell('printf "hits %d\\n", $hits', 'delete', 'detach', 'quit')
        return int(re.search(r'hits (\d+)', self.process.wait(20)[1])[1])


def end_bpftrace(process):
    """bpftrace 0.17 looks at what it was told only where the signal interrupts its wait for events: told until it ends."""
    for _ in range(20):
        process.popen.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(1)
            return
    raise AssertionError('bpftrace does not end')


class Sdt(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.folder = live.temp_path('sdt')
        self.folder.mkdir()
        # a cache of its own: what others have put into theirs is nobody's business here
        self.env = live.clean_env(PERF_BUILDID_DIR=str(self.folder / 'cache'))
        self.data = self.folder / 'perf.data'

    def record(self, names, *words, status=0):
        run = live.call('record', '-o', self.data, *[w for name in names for w in ('-e', name)], *words, env=self.env)
        self.assertEqual(run.status, status, str(run))
        return run

    def attach(self, name, pid, *words):
        """reftrace record -p, when it records."""
        ctl, answers = self.folder / 'ctl', self.folder / 'ack'
        os.mkfifo(ctl)
        os.mkfifo(answers)
        ack = os.open(answers, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, ack)
        tracer = live.Process([live.REFTRACE, 'record', '-o', self.data, '-e', name, '-p', pid,
                               f'--control=fifo:{ctl},{answers}', *words], env=self.env)
        self.addCleanup(tracer.kill)
        with open(ctl, 'w', encoding='ascii') as f:
            f.write('ping\n')
        self.assertEqual(read_ack(ack), b'ack\n')
        return tracer

    def host(self):
        build(self.folder / 'plug.so', 'sdt-plug')
        return build(self.folder / 'host', 'sdt-host'), self.folder / 'plug.so'


class Names(Sdt):
    @live.alone('definitions that are left behind are taken away by the next reftrace, whoever starts it')
    def test_operands(self):
        """Each argument that tracefs can say is what the program prints; the others are named."""
        path = live.program('operands', 'gcc', ('-O2',))
        run = self.record(['sdt_op:*'], '--', path)
        said = dict(line.split()[1:] for line in run.stdout.splitlines() if line.startswith('operand'))
        seen = {e.name.split(':')[1]: e.args.get('arg2' if e.name.endswith(':second') else 'arg1')
                for e in events(self.data)}
        self.assertEqual(set(seen), set(said), str(run))
        for name in ('index', 'whole'):
            self.assertIsNone(seen.pop(name))
            said.pop(name)
            self.assertRegex(run.stderr, rf'argument 1 \([^)]*\([^)]*\)\) of sdt_op:{name} is left out: .*index')
        self.assertEqual({name: int(text) & (1 << 64) - 1 for name, text in seen.items()},
                         {name: int(text, 16) for name, text in said.items()}, str(run))
        self.assertEqual(left_behind(), [], 'definitions stay')

    def test_strings_and_formats(self):
        """One name with arguments of two types is two formats, each read as it is."""
        host, _ = self.host()
        self.record(['sdt_host:both:string=2'], '--', host)
        seen = [(e.name, int(e.args['arg1']), e.args['arg2']) for e in events(self.data)]
        want = [(n, f'"{("even", "odd")[i % 2]}"') for i in range(5) for n in (i, i << 40)]
        self.assertEqual(sorted(seen), sorted(('sdt_host:both', *w) for w in want))

    def test_texts_by_type(self):
        """A char * is read as text where debug information says that it is one: bytes, objects and lengths are none."""
        for flags in (('-g', '-O2'), ('-g', '-O0'), ('-O2',)):
            path = live.program('sdt-text', 'gcc', flags)
            run = self.record(['sdt_text:*'], '--', path)
            said = [re.findall(r'"[^"]*"|\S+', line) for line in run.stdout.splitlines()]
            seen = [(e.name.split(':')[1], *e.args.values()) for e in events(self.data)]
            self.assertEqual(len(seen), 8, str(run))
            for (name, *want), (event, *values) in zip(said, seen):
                self.assertEqual(name, event)
                for wanted, value in zip(want, values):
                    if wanted[0] == '"':
                        self.assertEqual(value if '-g' in flags else value.isdigit(), wanted if '-g' in flags else True, f'{flags} {event}')
                    else:
                        self.assertEqual(int(value), int(wanted, 0), f'{flags} {event}')
            shown = live.call('probe', 'show', '-x', str(path), 'sdt_text:inner').stdout
            self.assertEqual(shown.count(':string'), '-g' in flags, shown)
        # what is told counts
        self.record(['sdt_text:outer:string=none'], '--', live.program('sdt-text', 'gcc', ('-g', '-O2')))
        self.assertTrue(all(value.isdigit() for e in events(self.data) for value in e.args.values()))

    def test_all_files(self):
        """A marker that program and library have is the event of both, under each way to say its name."""
        host, plug = self.host()
        linked = build(self.folder / 'linked', 'sdt-host', '-Wl,--no-as-needed', libraries=[plug])
        for name in ('sdt_shared:pass', '%sdt_shared:pass', 'sdt:shared:pass', 'sdt_sh*:p?ss', 'sdt_shared:pass:u'):
            with self.subTest(name):
                self.record([name], '--', linked, plug)
                self.assertEqual(sorted(int(e.args['arg1']) for e in events(self.data)), [*range(5), *range(100, 105)])

    def test_loaded_later(self):
        """A library that nobody knew: said with what helps, and that helps. A file of another build-id is not used."""
        host, plug = self.host()
        run = self.record(['sdt_shared:pass'], '--', host, plug, status=24)
        self.assertIn(f'loaded later: sdt_shared:pass in {plug}', run.stderr)
        self.assertIn(f'reftrace cache add {plug}', run.stderr)
        self.assertEqual(counts(self.data), {'sdt_shared:pass': 5})
        run = self.record(['sdt_plug:hit'], '--', host, plug, status=125)
        self.assertIn(f"-e 'sdt_plug:hit@/path/to/library'", run.stderr)
        self.record([f'sdt_plug:hit@{plug}'], '--', host, plug)
        self.assertEqual([int(e.args['arg1']) for e in events(self.data)], [*range(5)])
        self.assertEqual(live.call('cache', 'add', plug, env=self.env).status, 0)
        self.record(['sdt_shared:pass', 'sdt_plug:hit'], '--', host, plug)
        self.assertEqual(counts(self.data), {'sdt_shared:pass': 10, 'sdt_plug:hit': 5})
        # the cache's lines are of another file now
        plug.unlink()
        build(plug, 'sdt-plug', '-g', '-O0')
        run = self.record(['sdt_plug:hit'], '--', host, plug, status=125)
        self.assertIn(f'{plug}, which has another build-id now', run.stderr)
        self.assertIn(f'fix: reftrace cache add {plug}', run.stderr)

    def test_notes_in_the_cache(self):
        """A file that has lost its notes is found by those of the cache's copy, at its own offsets."""
        host, _ = self.host()
        self.assertEqual(live.call('cache', 'add', host, env=self.env).status, 0)
        subprocess.run(['objcopy', '-R', '.note.stapsdt', str(host)], check=True)
        self.assertIn('(0 markers)', live.call('probe', 'markers', host).stdout)
        self.record(['sdt_shared:pass'], '--', host)
        self.assertEqual([int(e.args['arg1']) for e in events(self.data)], [*range(5)])

    def test_scripts(self):
        host, _ = self.host()
        script = self.folder / 'script'
        script.write_text(f'#!{host}\n')
        script.chmod(0o755)
        # the interpreter gets the script's name as its library, which it cannot load
        self.record(['sdt_shared:pass'], '--', script)
        self.assertEqual(counts(self.data), {'sdt_shared:pass': 5})

    @live.alone('definitions that are left behind are taken away by the next reftrace, whoever starts it')
    def test_faults(self):
        host, _ = self.host()
        for name, says in (('sdt_host:bth', r'did you mean sdt_host:both'),
                           ('sdt_hots:both', r'did you mean sdt_host:both'),
                           ('sdt_host:', r'names no marker'), ('%sdt_host:nothing', r'no such marker in \d+ files'),
                           ('sdt_host:both:string=0', r"'0' is no number of an argument"),
                           ('sdt_host:both@/no/such', r'/no/such'), ('sdt_host:both:x', r"'x'")):
            with self.subTest(name):
                run = live.call('record', '-o', self.data, '-e', name, '--', host, env=self.env)
                self.assertIn(run.status, (2, 125), str(run))
                self.assertRegex(run.stderr, says)
        self.assertEqual(left_behind(), [], 'definitions stay')

    def test_other_name_of_tracefs(self):
        """An event that somebody has defined there is still one."""
        host, _ = self.host()
        with open(Defined.EVENTS, 'r+', encoding='utf-8') as f:
            f.write(f'p:sdt_mine/own {host}:{self.offset(host):#x}\n')
        self.addCleanup(self.undefine, 'sdt_mine/own')
        self.record(['sdt_mine:own'], '--', host)
        self.assertEqual(counts(self.data), {'sdt_mine:own': 5})

    @staticmethod
    def offset(host):
        markers = json.loads(live.call('probe', 'markers', '--json', host).stdout)['files'][0]['markers']
        return int(next(m['address'] for m in markers if m['name'] == 'pass'), 16)

    @staticmethod
    def undefine(event):
        def gone():
            try:
                with open(Defined.EVENTS, 'r+', encoding='utf-8') as f:
                    f.write(f'-:{event}\n')
            except OSError as err:
                return isinstance(err, FileNotFoundError)
            return True
        live.wait_until(gone, 10)


@live.alone('definitions that are left behind are taken away by the next reftrace, whoever starts it')
class Semaphores(Sdt):
    """The counter is raised by us alone while nobody else is there, and is what it was, however we end."""

    def check(self, end, other):
        path = live.program('operands', 'gcc', ('-O2',))
        target = live.Process([path, '60'])
        self.addCleanup(target.kill)
        address = int(target.wait_line('semaphore').split()[1], 16)

        def becomes(value):
            self.assertTrue(live.wait_until(lambda: semaphore(target.popen.pid, address) == value, 10),
                            f'the semaphore is {semaphore(target.popen.pid, address)}, not {value}')

        self.assertEqual(semaphore(target.popen.pid, address), 0)
        tracer = self.attach('sdt_op:guarded', target.popen.pid)
        becomes(1)
        if other:
            perf = live.Process(['perf', 'record', '-q', '-o', '/dev/null', '-e', Defined(path).define(self, 'guarded'),
                                 '-p', target.popen.pid])
            self.addCleanup(perf.kill)
            self.assertTrue(live.wait_until(lambda: self.perf_events(perf.popen.pid), 10), 'perf did not open its event')
        os.kill(tracer.popen.pid, end)
        tracer.popen.wait(20)
        if other:
            self.assertTrue(live.wait_until(lambda: not self.perf_events(tracer.popen.pid), 10))
            self.assertEqual(semaphore(target.popen.pid, address), 1, 'perf is still there')
            os.kill(perf.popen.pid, signal.SIGKILL)
            perf.popen.wait(20)
        becomes(0)
        self.assertIsNone(target.popen.poll(), 'the target is gone')
        if end == signal.SIGINT:
            self.assertGreater(counts(self.data)['sdt_op:guarded'], 0)
        else:
            # what a killed one leaves in tracefs, the next one takes away
            self.record(['sdt_op:guarded'], '--', path)
        self.assertEqual(left_behind(), [])

    @staticmethod
    def perf_events(pid):
        try:
            return sum('[perf_event]' in os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd'))
        except OSError:
            return 0

    def test_detach(self):
        self.check(signal.SIGINT, False)

    def test_killed(self):
        self.check(signal.SIGKILL, False)

    def test_detach_beside_perf(self):
        self.check(signal.SIGINT, True)

    def test_killed_beside_perf(self):
        self.check(signal.SIGKILL, True)


class Linkers(Sdt):
    """Wherever a linker puts the parts of a file: the breakpoint lies at the marker, and the program does what it does."""

    def check(self, linker):
        if not live.shutil.which('ld.' + linker) and not live.shutil.which(linker):
            self.skipTest(f'no linker {linker} (package {LINKERS[linker]})')
        for pad in range(1, 8):
            with self.subTest(pad=pad):
                path = build(self.folder / f'pad{pad}', 'sdt-pad', f'-fuse-ld={linker}', f'-DPAD={pad}',
                             f'-DPAD_TEXT="{pad}"')
                alone = subprocess.run([str(path)], capture_output=True, text=True, check=True).stdout
                run = self.record(['sdt_pad:*'], '--', path, 'wait')
                said = [tuple(map(int, line.split()[1:])) for line in run.stdout.splitlines() if line.startswith('guarded')]
                plain = [int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith('plain')]
                seen = events(self.data)
                self.assertEqual(run.stdout.splitlines()[-1], alone.splitlines()[-1], 'it computes something else')
                self.assertEqual(len(said), 7, str(run))
                self.assertEqual([(int(e.args['arg1']), int(e.args['arg2'])) for e in seen if e.name == 'sdt_pad:guarded'],
                                 said)
                self.assertEqual([int(e.args['arg1']) for e in seen if e.name == 'sdt_pad:plain'], plain)

    def test_counter_after_kill(self):
        """Of a launched program whose file has a page mapped twice: raised, and 0 again when the tool is killed."""
        for linker in ('lld', 'mold'):
            with self.subTest(linker):
                if not live.shutil.which('ld.' + linker) and not live.shutil.which(linker):
                    self.skipTest(f'no linker {linker} (package {LINKERS[linker]})')
                path = build(self.folder / ('op-' + linker), 'operands', f'-fuse-ld={linker}', '-D_GNU_SOURCE')
                tracer = live.Process([live.REFTRACE, 'record', '-o', self.folder / linker, '-e', 'sdt_op:guarded', '--',
                                       path, '60'], env=self.env)
                self.addCleanup(tracer.kill)
                address = int(tracer.wait_line('semaphore').split()[1], 16)
                with open(f'/proc/{tracer.popen.pid}/task/{tracer.popen.pid}/children', encoding='ascii') as f:
                    pid = next(int(n) for n in f.read().split() if os.readlink(f'/proc/{n}/exe') == str(path))
                self.addCleanup(self.end, pid)
                self.assertTrue(live.wait_until(lambda: semaphore(pid, address) > 0, 10), 'it is never raised')
                os.kill(tracer.popen.pid, signal.SIGKILL)
                tracer.popen.wait(20)
                self.assertTrue(live.wait_until(lambda: semaphore(pid, address) == 0, 10),
                                f'it stays {semaphore(pid, address)}')

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_bfd(self):
        self.check('bfd')

    def test_gold(self):
        self.check('gold')

    def test_lld(self):
        self.check('lld')

    def test_mold(self):
        self.check('mold')


if __name__ == '__main__':
    unittest.main()
