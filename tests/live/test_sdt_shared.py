# SPDX-License-Identifier: GPL-2.0-only
"""Semaphores that others raise, too, and segments in pieces: each passing is seen, the counter ends where it began."""
import os
import pathlib
import re
import shutil
import signal
import unittest

import live
from test_marker import Defined, file_offset, semaphore
from test_sdt import Gdb, Sdt, build, end_bpftrace, events

EVENTS = '/sys/kernel/tracing/uprobe_events'


class Split(Sdt):
    """tests/programs/sdt-split.c, one of us, and what both say."""

    def setUp(self):
        super().setUp()
        self.path = build(self.folder / 'split', 'sdt-split')
        self.library = build(self.folder / 'split.so', 'sdt-split', '-DLIBRARY')
        self.target, self.said = live.Process([self.path], pipe=True), 0
        self.addCleanup(self.target.kill)
        self.address = int(self.target.wait_line('semaphore').split()[1], 16)

    def do(self, *commands):
        """What the target answers to the last one."""
        for command in commands:
            self.said += 1
            before = len(self.target.lines)
            self.target.popen.stdin.write(f'{command}\nsaid {self.said}\n')
            self.target.popen.stdin.flush()
            self.target.wait_line(f'said {self.said}\n')
            answer = self.target.lines[before]
            if answer.startswith('semaphore'):
                self.address = int(answer.split()[1], 16)
        return answer

    def all_pass(self, number):
        self.assertEqual(self.do(f'pass {number}'), f'pass {number}\n', 'the semaphore is not raised')

    def counter(self):
        return semaphore(self.target.popen.pid, self.address)

    def becomes(self, value):
        self.assertTrue(live.wait_until(lambda: self.counter() == value, 10), f'the counter is {self.counter()}, not {value}')

    def tool(self, verb, path=None):
        """One of ours, that records."""
        path, pid = path or self.path, self.target.popen.pid
        if verb == 'record':
            return self.attach(f'sdt_split:hit@{path}', pid)
        self.spool = self.folder / 'spool'
        tracer = live.Process([live.REFTRACE, 'run', '--attach=' + verb, '-w', self.spool, '-o', '/dev/null', '-P',
                               'type=x get=sdt:split:hit', '-p', pid])
        self.addCleanup(tracer.kill)
        return tracer

    def seen(self, verb):
        if verb == 'record':
            return [int(e.args['arg1']) for e in events(self.data)]
        run = live.call('script', '-i', self.spool)
        return [int(n, 16) for n in re.findall(r'reftrace:x_get: object=(0x[0-9a-f]+)', run.stdout)]

    @staticmethod
    def end(process, how=signal.SIGINT):
        os.kill(process.popen.pid, how)
        process.popen.wait(20)


class Pieces(live.Ends, Split):
    """The writable segment is several mappings, before we come and while we are there."""

    def check(self, verb, end):
        self.do('split')
        tracer = self.tool(verb)
        self.becomes(1)
        self.all_pass(100)
        self.do('join')
        self.all_pass(10)
        self.do('split')
        self.all_pass(1)
        self.end(tracer, end)
        self.becomes(0)
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        if end == signal.SIGINT:
            # an object 0 is none
            self.assertEqual([n for n in self.seen(verb) if n], [*range(1, 100), *range(1, 10)])
        self.assertIsNone(self.target.popen.poll())

    def test_record(self):
        self.check('record', signal.SIGINT)

    def test_record_killed(self):
        self.check('record', signal.SIGKILL)

    def library_comes_and_goes(self, end):
        """Loaded after the start, split, taken away, and loaded again: raised each time."""
        tracer = self.tool('record', self.library)
        for _ in range(2):
            self.do(f'load {self.library}')
            self.becomes(1)
            self.all_pass(7)
            self.do('split')
            self.all_pass(7)
            self.do('unload')
            self.becomes(0)  # the program's own
        self.do(f'load {self.library}', 'split')
        self.becomes(1)
        self.end(tracer, end)
        self.becomes(0)
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        if end == signal.SIGINT:
            self.assertEqual(self.seen('record'), [*range(7)] * 4)

    def test_library(self):
        self.library_comes_and_goes(signal.SIGINT)

    def test_library_killed(self):
        self.library_comes_and_goes(signal.SIGKILL)

    def twice(self, verb, end):
        """The semaphore's page of the file is mapped a second time, writable: the first mapping's is raised."""
        self.do('again')
        tracer = self.tool(verb)
        self.becomes(1)
        self.do('again')
        self.all_pass(3)
        self.end(tracer, end)
        self.becomes(0)

    def test_twice(self):
        self.twice('record', signal.SIGINT)

    def test_twice_killed(self):
        self.twice('multi', signal.SIGKILL)


class Others(Split):
    """perf and bpftrace are there, before us or after us: both see what they should, and nobody lowers another's."""

    def perf(self):
        order, answer = live.temp_path('order'), live.temp_path('answer')
        os.mkfifo(order)
        os.mkfifo(answer)
        other = live.Process(['perf', 'stat', '-x,', '-D', '-1', f'--control=fifo:{order},{answer}', '-e',
                              Defined(self.path).define(self, 'hit'), '-p', self.target.popen.pid])
        self.addCleanup(other.kill)
        # that it has opened its event does not say that it counts
        with open(order, 'w', encoding='ascii') as f:
            f.write('enable\n')
        with open(answer, encoding='ascii') as f:
            self.assertEqual(f.readline().strip('\n\0'), 'ack')
        self.becomes(1)

        def told(parts):
            self.end(other)
            self.assertEqual(re.findall(r'^(\d+),', other.wait()[2], re.M), [str(sum(parts))])
        return told

    def bpftrace(self):
        """It raises the counter before it has its probe: that one is there when it has said a first hit."""
        if not shutil.which('bpftrace'):
            self.skipTest('no bpftrace')
        program = f'usdt:{self.path}:split:hit {{ printf("hit %d\\n", arg0); }}'
        other = live.Process(['bpftrace', '-B', 'line', '-p', self.target.popen.pid, '-e', program])
        self.addCleanup(other.kill)
        self.assertTrue(live.wait_until(lambda: self.do('pass 1') and 'hit 0\n' in other.lines, 20), 'bpftrace sees nothing')

        def told(parts):
            want = [n for part in parts for n in range(1, part)]
            # what it has not said when it is interrupted, it does not say
            live.wait_until(lambda: len(hits()) >= len(want), 10)
            end_bpftrace(other)
            self.assertEqual(hits(), want)

        def hits():
            return [int(line.split()[1]) for line in list(other.lines) if re.match(r'hit [1-9]', line)]
        return told

    def ours(self, verb):
        tracer = self.tool(verb)
        self.assertTrue(live.wait_until(lambda: self.armed_by(tracer), 20), 'it is never armed')
        self.assertTrue(live.wait_until(self.counter, 10), 'the semaphore is not raised')
        return tracer

    def check(self, verb, make, first, end=signal.SIGINT):
        before = self.counter()
        if first:
            told = make()
            self.all_pass(20)
        alone = self.counter()
        tracer = self.ours(verb)
        if not first:
            self.all_pass(30)
            told = make()
        self.all_pass(200)
        if first:
            self.end(tracer, end)
            self.becomes(alone)
            self.all_pass(40)
        told([20, 200, 40] if first else [200])
        if not first:
            self.becomes(1)
            self.all_pass(50)
            self.end(tracer, end)
        self.becomes(before)
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        if end == signal.SIGINT:
            self.assertEqual([n for n in self.seen(verb) if n],
                             [n for part in ([200] if first else [30, 200, 50]) for n in range(1, part)])

    def armed_by(self, process):
        """perf events, or links, of a process, that are open; gone: none."""
        try:
            fds = os.listdir(f'/proc/{process.popen.pid}/fd')
            names = [os.readlink(f'/proc/{process.popen.pid}/fd/{fd}') for fd in fds]
        except OSError:
            return False
        if process.popen.args[:2] == [str(live.REFTRACE), 'run']:
            # a link of the self-test is not yet one of the target: newer kernels tell the path
            infos = [pathlib.Path(f'/proc/{process.popen.pid}/fdinfo/{fd}') for fd in fds]
            try:
                return any(re.search(rf'^path:\s+{re.escape(str(self.path))}$', f.read_text(), re.M) for f in infos)
            except FileNotFoundError:  # those of the self-test go while we look
                return False
        return any('[perf_event]' in n or 'bpf_link' in n for n in names)

    def test_perf_first_record(self):
        self.check('record', self.perf, True)

    def test_perf_first_record_killed(self):
        self.check('record', self.perf, True, signal.SIGKILL)

    def test_perf_first_multi(self):
        self.check('multi', self.perf, True)

    def test_perf_later_record(self):
        self.check('record', self.perf, False)

    def test_perf_later_multi_killed(self):
        self.check('multi', self.perf, False, signal.SIGKILL)

    def test_bpftrace_first_record(self):
        self.check('record', self.bpftrace, True)

    def test_bpftrace_first_multi(self):
        self.check('multi', self.bpftrace, True)

    def test_bpftrace_later_record(self):
        self.check('record', self.bpftrace, False)


@live.alone('it enables a probe in all processes')
class Conflicts(Split):
    """The kernel takes one semaphore for a place: who has another one, or none, is named as the reason."""

    def check(self, counter):
        marker = Defined(self.path).markers[0]
        event = f'other{os.getpid()}/hit'
        with open(EVENTS, 'r+', encoding='utf-8') as f:
            f.write(f'p:{event} {self.path}:{file_offset(self.path, int(marker["address"], 16)):#x}{counter}\n')
        self.addCleanup(Defined(self.path).undefine, event)
        enable = f'/sys/kernel/tracing/events/{event}/enable'
        self.switch(enable, '1')
        self.addCleanup(self.switch, enable, '0')
        self.assertTrue(live.wait_until(lambda: live.armed(self.target.popen.pid, self.path)))
        run = live.call('record', '-o', self.data, '-e', 'sdt_split:hit', '-p', self.target.popen.pid, env=self.env)
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('another tracer may have a probe there with another semaphore, or with none', run.stderr)
        run = live.trace('-P', 'type=x get=sdt:split:hit', '--', '/bin/sh', '-c', f'echo pass 9 | {self.path}')
        self.assertRegex(' '.join(run.report.split()),
                         'not armed: .* end the other tracer or debugger: its breakpoint does not raise the semaphore')
        self.assertEqual(run.status, 24, str(run))

    @staticmethod
    def switch(path, value):
        with open(path, 'w', encoding='ascii') as f:
            f.write(value)

    def test_without(self):
        self.check('')

    def test_other(self):
        marker = Defined(self.path).markers[0]
        self.check(f'({file_offset(self.path, int(marker["semaphore"], 16)) + 2:#x})')


class Debugger(Split):
    """gdb's -probe-stap writes the counter itself, and its breakpoint is one that the kernel takes for its own."""

    def gdb(self, ready):
        gdb = Gdb(self, self.target.popen.pid, 'split:hit')
        self.becomes(ready)
        return gdb

    def test_before(self):
        """It is refused, and gdb's hits and counter stay right."""
        gdb = self.gdb(1)
        for words in (('record', '-o', self.data, '-e', 'sdt_split:hit'), ('run', '-P', 'type=x get=sdt:split:hit')):
            run = live.call(*words, '-p', self.target.popen.pid, env=self.env)
            self.assertEqual(run.status, 125, str(run))
            self.assertRegex(run.stderr, r'E23 process \d+ \(split\) is traced by process \d+ \(gdb\)\n +fix: detach gdb first')
        self.all_pass(4)
        self.becomes(1)
        self.assertEqual(gdb.leave(), 4)
        self.becomes(0)
        tracer = self.tool('record')
        self.becomes(1)
        self.all_pass(6)
        self.end(tracer)
        self.assertEqual(self.seen('record'), [*range(6)])
        self.becomes(0)

    def test_comes_and_goes(self):
        """While we are there: ours see all, also while gdb is there."""
        tracer = self.tool('record')
        self.becomes(1)
        self.all_pass(5)
        gdb = self.gdb(2)
        self.all_pass(6)
        self.assertEqual(gdb.leave(), 0, 'the kernel has them first')
        self.becomes(1)
        self.all_pass(7)
        self.end(tracer)
        self.becomes(0)
        self.assertNotIn('gdb', tracer.wait()[2])
        self.assertEqual(self.seen('record'), [*range(5), *range(6), *range(7)])
        self.assertEqual(self.do('pass 5'), 'pass 0\n')

    def test_stays(self):
        """Longer than we: the counter is right, and that gdb puts our breakpoint back is said."""
        tracer = self.tool('record')
        self.becomes(1)
        gdb = self.gdb(2)
        self.all_pass(6)
        self.end(tracer)
        self.becomes(1)
        said = tracer.wait()[2]
        self.assertRegex(said, r'warning: process \d+ \(split\) is traced by process \d+ \(gdb\): a breakpoint that it has set')
        gdb.leave()
        self.becomes(0)


if __name__ == '__main__':
    unittest.main()
