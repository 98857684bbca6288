# SPDX-License-Identifier: GPL-2.0-only
"""--semaphore=write: reftrace itself raises the counters, in each process, and lowers them however it ends. Engine agent
raises them from inside. The program says how often it came past its marker; its memory says what the counter is."""
import os
import re
import signal
import unittest

import live
from test_marker import semaphore
from test_sdt import counts, events
from test_sdt_shared import Conflicts, Split

WRITE = '--semaphore=write'


def keeper(tool):
    """The child that has the books."""
    with open(f'/proc/{tool}/task/{tool}/children', encoding='ascii') as f:
        for pid in f.read().split():
            with open(f'/proc/{pid}/comm', encoding='ascii') as name:
                if name.read() == 'reftrace-keeper\n':
                    return int(pid)
    return 0


def writes(pid):
    """System calls of a process that write: into memory of others, here."""
    with open(f'/proc/{pid}/io', encoding='ascii') as f:
        return int(re.search(r'^syscw: (\d+)', f.read(), re.M)[1])


class Written(Split):
    way = WRITE

    def tool(self, verb, path=None, name='hit', more=()):
        path, pid = path or self.path, self.target.popen.pid
        if verb == 'record':
            return self.attach(f'sdt_split:{name}@{path}', pid, self.way, *more)
        self.spool = self.folder / 'spool'
        tracer = live.Process([live.REFTRACE, 'run', '--attach=' + verb, self.way, *more, '-w', self.spool, '-o', '/dev/null', '-P',
                               'type=x get=sdt:split:hit', '-p', pid])
        self.addCleanup(tracer.kill)
        return tracer

    def second(self, name='hit'):
        """One more reftrace that records with files of its own."""
        data, folder = self.data, self.folder
        self.folder = folder / 'second'
        self.folder.mkdir()
        self.data = self.folder / 'perf.data'
        tracer = self.attach(f'sdt_split:{name}@{self.path}', self.target.popen.pid, WRITE)
        self.data, self.folder = data, folder
        return tracer

    def assert_numbers(self, verb, parts):
        # an object 0 is none
        self.assertEqual([n for n in self.seen(verb) if n], [n for part in parts for n in range(1, part)])


class Pieces(live.Ends, Written):
    """The counter's pages lose and get their write access, before we come and while we are there."""

    def check(self, verb, end):
        self.do('split')
        tracer = self.tool(verb)
        self.becomes(1)
        self.all_pass(100)
        self.do('join')
        self.all_pass(10)
        self.do('split', 'again')
        self.all_pass(2)
        self.assertEqual(self.counter(), 1)
        self.assertEqual(writes(keeper(tracer.popen.pid)), 1)
        self.end(tracer, end)
        self.becomes(0)
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        if end == signal.SIGINT:
            self.assert_numbers(verb, [100, 10, 2])
        self.assertIsNone(self.target.popen.poll())

    def test_record(self):
        self.check('record', signal.SIGINT)

    def test_record_killed(self):
        self.check('record', signal.SIGKILL)

    def comes_and_goes(self, verb, end):
        """Loaded after the start, split, taken away and loaded again: raised each time, and no other counter is."""
        own = self.address
        tracer = self.tool(verb, self.library)
        if verb != 'record':
            self.becomes(1)
        for _ in range(2):
            self.do(f'load {self.library}')
            self.becomes(1)
            self.all_pass(7)
            self.do('split')
            self.all_pass(7)
            self.do('unload')
            self.assertEqual(self.address, own)
            self.becomes(0 if verb == 'record' else 1)
        self.do(f'load {self.library}', 'split')
        self.becomes(1)
        self.end(tracer, end)
        self.becomes(0)
        self.assertEqual(semaphore(self.target.popen.pid, own), 0)
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        if end == signal.SIGINT:
            self.assert_numbers(verb, [7] * 4)

    def test_library(self):
        self.comes_and_goes('record', signal.SIGINT)

    def test_library_killed(self):
        self.comes_and_goes('record', signal.SIGKILL)

    def test_library_multi(self):
        self.comes_and_goes('multi', signal.SIGINT)


class Processes(live.Ends, Written):
    """A forked child has a raised counter by copy, an exec a fresh one, and a vfork none of its own."""

    def check(self, verb, end):
        tracer = self.tool(verb)
        self.becomes(1)
        self.all_pass(10)
        self.do('vfork')
        self.assertEqual(self.counter(), 1)
        parent = self.target.popen.pid
        child = int(self.do('fork', 'pid').split()[1])
        self.assertNotEqual(child, parent)
        self.assertTrue(live.wait_until(lambda: semaphore(child, self.address) == 1, 10))
        self.all_pass(20)
        self.assertEqual([semaphore(child, self.address), semaphore(parent, self.address)], [1, 1])
        self.end(tracer, end)
        self.becomes(0)
        self.assertTrue(live.wait_until(lambda: semaphore(child, self.address) == 0, 10), 'the child keeps it')
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        self.do('exit')
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        if end == signal.SIGINT:
            self.assert_numbers(verb, [10, 20])

    def test_exec(self):
        tracer = self.tool('multi')
        self.becomes(1)
        self.all_pass(10)
        before = len(self.target.lines)
        self.target.popen.stdin.write('exec\n')
        self.target.popen.stdin.flush()
        self.assertTrue(live.wait_until(lambda: len(self.target.lines) > before))
        self.address = int(self.target.lines[before].split()[1], 16)
        self.becomes(1)
        self.all_pass(30)
        self.end(tracer)
        self.becomes(0)
        self.assert_numbers('multi', [10, 30])


class NotFollowed(Written):
    """A forked child that is left alone has no raised counter, and neither have its children; its parent keeps its own."""

    def check(self, verb):
        tracer = self.tool(verb, more=['--no-follow'])
        self.becomes(1)
        self.all_pass(10)
        self.do('vfork')
        self.assertEqual(self.counter(), 1)
        parent = self.target.popen.pid
        child = int(self.do('fork', 'pid').split()[1])
        self.assertTrue(live.wait_until(lambda: semaphore(child, self.address) == 0, 10), 'the child has it raised')
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        grandchild = int(self.do('fork', 'pid').split()[1])
        self.assertEqual([semaphore(pid, self.address) for pid in (grandchild, child, parent)], [0, 0, 1])
        self.do('exit', 'exit')
        self.all_pass(20)
        self.end(tracer)
        self.becomes(0)
        self.assert_numbers(verb, [10, 20])

    def test_multi(self):
        self.check('multi')

    def test_record(self):
        self.check('record')


class ProcessesOfKernel(Processes):
    """The same where the kernel raises it."""
    way = '--semaphore=kernel'


class Shared(Written):
    """Others raise the same counter: nobody's share is taken away."""

    def test_one_counter(self):
        """Two markers with one semaphore: it is raised, both are seen, and it is what it was."""
        tracer = self.tool('record', name='*')
        self.becomes(1)
        self.all_pass(6)
        self.end(tracer)
        self.becomes(0)
        self.assertEqual(counts(self.data), {'sdt_split:hit': 6, 'sdt_split:other': 6})

    def two(self, end):
        first = self.tool('record')
        self.becomes(1)
        second = self.second()
        self.becomes(2)
        self.all_pass(5)
        self.end(first, end)
        self.becomes(1)
        self.all_pass(6)
        self.end(second, end)
        self.becomes(0)
        if end == signal.SIGINT:
            self.assertEqual([int(e.args['arg1']) for e in events(self.folder / 'second' / 'perf.data')], [*range(5), *range(6)])

    def test_two(self):
        self.two(signal.SIGINT)

    def test_two_killed(self):
        self.two(signal.SIGKILL)

    def test_raised_before(self):
        """By somebody who writes it, as bpftrace and gdb do: it is his again afterwards, whoever was first."""
        with open(f'/proc/{self.target.popen.pid}/mem', 'r+b', buffering=0) as memory:
            def write(value):
                memory.seek(self.address)
                memory.write(value.to_bytes(2, 'little'))
            write(3)
            tracer = self.tool('record')
            self.becomes(4)
            write(3)  # he lowers his own
            self.end(tracer)
            self.becomes(2)

    def test_nobody(self):
        """none: not raised; what passes while somebody else asks for it is seen."""
        tracer = self.attach(f'sdt_split:hit@{self.path}', self.target.popen.pid, '--semaphore=none')
        self.assertEqual(self.do('pass 4'), 'pass 0\n')
        second = self.second('other')
        self.becomes(1)
        self.all_pass(8)
        self.end(second)
        self.end(tracer)
        self.becomes(0)
        self.assertEqual([int(e.args['arg1']) for e in events(self.data)], [*range(8)])


class Told(Written):
    def test_note(self):
        """What is not atomic, and what a kill leaves, is said before."""
        run = live.call('record', '-o', self.data, WRITE, '-e', f'sdt_split:hit@{self.path}', '--', '/bin/sh', '-c',
                        f'echo pass 9 | {self.path}', env=self.env, timeout=30)
        self.assertIn('once it has mapped the file; not atomically', run.stderr)
        run = live.trace(WRITE, '-P', 'type=x get=sdt:split:hit', '--', '/bin/sh', '-c', f'echo pass 9 | {self.path}')
        self.assertIn('reftrace-keeper lowers them, and if that is killed as well, they stay raised', run.stderr)
        trust = run.findings['trust']
        self.assertEqual((trust['events'], trust['lost'], trust['unarmed']), (8, 0, []), str(run))

    def test_both_killed(self):
        """As said: it stays raised, and the program goes on."""
        tracer = self.tool('record')
        self.becomes(1)
        books = keeper(tracer.popen.pid)
        os.kill(books, signal.SIGKILL)
        self.assertTrue(live.wait_until(lambda: live.process_state(books) in ('Z', ''), 10))
        self.end(tracer, signal.SIGKILL)
        self.all_pass(5)
        self.becomes(1)

    def test_keeper_killed(self):
        """A counter that nobody has the books of any more is an error, not a silence."""
        tracer = self.tool('multi')
        self.becomes(1)
        os.kill(keeper(tracer.popen.pid), signal.SIGKILL)
        self.all_pass(2)
        self.do(f'load {self.library}')
        self.end(tracer)
        self.assertEqual(tracer.wait()[0], 24)
        report = live.call('report', '-i', self.spool).stdout
        self.assertIn('the keeper of semaphores has ended: what it had raised may stay raised', ' '.join(report.split()))
        self.assertIsNone(self.target.popen.poll())

    def test_words(self):
        for words, says in ((('--semaphore=some',), 'auto, kernel, write, none'),
                            (('--engine', 'agent', '--semaphore=kernel'), 'engine agent raises semaphores by itself')):
            run = live.call('run', *words, '--', '/bin/true')
            self.assertIn(run.status, (2, 125), str(run))
            self.assertIn(says, run.stderr)


@live.alone('it enables a probe in all processes')
class BesideNone(Conflicts):
    """Another tracer has the place without a semaphore: the kernel takes ours without one as well."""

    test_other = None  # the kernel refuses two semaphores for one place, and one beside none

    def check(self, counter):
        super().check(counter)
        tracer = self.attach(f'sdt_split:hit@{self.path}', self.target.popen.pid, WRITE)
        self.becomes(1)
        self.all_pass(7)
        self.end(tracer)
        self.becomes(0)
        self.assertEqual([int(e.args['arg1']) for e in events(self.data)], [*range(7)])


class Agent(Written):
    """Engine agent: by an atomic addition inside; the program is launched, and ignores SIGINT."""

    def setUp(self):
        super().setUp()
        self.target.kill()
        self.spool = self.folder / 'spool'
        self.tracer = live.Process([live.REFTRACE, 'run', '--engine=agent', '--debug=engine', '-w', self.spool, '-o', '/dev/null', '-P',
                                    'type=x get=sdt:split:hit', '--', '/bin/sh', '-c', f'trap "" INT; exec {self.path}'],
                                   pipe=True)
        self.addCleanup(self.tracer.kill)
        self.target, self.said = self.tracer, 0
        self.address = int(self.tracer.wait_line('semaphore').split()[1], 16)
        self.pid = int(self.do('pid').split()[1])
        self.addCleanup(self.kill_target)

    def do(self, *commands):
        """As ever, but the program outlives the tool that has launched it."""
        for command in commands:
            self.said += 1
            before, end = len(self.target.lines), f'said {self.said}\n'
            self.target.popen.stdin.write(f'{command}\n{end}')
            self.target.popen.stdin.flush()
            self.assertTrue(live.wait_until(lambda e=end: e in self.target.lines, 20), f'no answer to {command}')
            answer = self.target.lines[before]
            if answer.startswith('semaphore'):
                self.address = int(answer.split()[1], 16)
        return answer

    def kill_target(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def counter(self):
        return semaphore(self.pid, self.address)

    def leave(self, end):
        os.kill(self.tracer.popen.pid, end)
        if end == signal.SIGINT:
            # the first was the program's, which does not care
            self.assertTrue(live.wait_until(lambda: self.tracer.popen.poll() is not None or
                                            os.kill(self.tracer.popen.pid, end), 20))
        self.tracer.popen.wait(20)

    def check(self, end):
        self.assertEqual(self.counter(), 1)
        self.all_pass(50)
        own = self.address
        self.do(f'load {self.library}')
        self.assertEqual(self.counter(), 1)
        self.all_pass(7)
        self.do('unload', f'load {self.library}')
        self.assertEqual(self.counter(), 1)
        self.all_pass(8)
        self.do('vfork')
        child = int(self.do('fork', 'pid').split()[1])
        self.all_pass(9)
        self.assertEqual([semaphore(child, self.address), self.counter()], [1, 1])
        self.assertEqual(writes(keeper(self.tracer.popen.pid)), 0, 'it was not raised from inside')
        self.leave(end)
        for pid in (child, self.pid):
            for at in (own, self.address):
                self.assertTrue(live.wait_until(lambda p=pid, a=at: semaphore(p, a) == 0, 10), f'{pid} {at:x} stays raised')
        self.assertEqual(self.do('pass 5'), 'pass 0\n')
        self.assertNotEqual(live.process_state(self.pid), '')
        if end == signal.SIGINT:
            self.assert_numbers('agent', [50, 7, 8, 9])
            self.assertNotIn('the keeper lowers', ''.join(self.tracer.errors))

    def test_let_go(self):
        self.check(signal.SIGINT)

    def test_killed(self):
        self.check(signal.SIGKILL)

    def test_exec(self):
        self.all_pass(4)
        before = len(self.target.lines)
        self.target.popen.stdin.write('exec\n')
        self.target.popen.stdin.flush()
        self.assertTrue(live.wait_until(lambda: len(self.target.lines) > before))
        self.address = int(self.target.lines[before].split()[1], 16)
        self.assertEqual(self.counter(), 1)
        self.all_pass(6)
        self.do('split')
        self.all_pass(3)
        self.target.popen.stdin.close()
        self.tracer.wait()
        self.assert_numbers('agent', [4, 6, 3])


if __name__ == '__main__':
    unittest.main()
