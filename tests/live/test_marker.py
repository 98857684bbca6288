# SPDX-License-Identifier: GPL-2.0-only
"""SDT markers: each form of operand gives the value that the program prints; semaphores are raised while we are there
and are what they were when we are not, however we end."""
import collections
import json
import os
import re
import signal
import struct
import subprocess
import unittest

import live

PYTHON = '/usr/bin/python3.11'
SCRIPT = '''
import sys
def called(n):
    return n
print('ready', flush=True)
while True:
    number = int(input())
    list(map(called, range(number)))
    print('did', number, flush=True)
'''


def semaphore(pid, address):
    with open(f'/proc/{pid}/mem', 'rb') as memory:
        memory.seek(address)
        return struct.unpack('<H', memory.read(2))[0]


def file_offset(path, address):
    """Of an ELF address, by what readelf says."""
    text = subprocess.run(['readelf', '-lW', str(path)], capture_output=True, text=True, check=True).stdout
    for offset, start, size in re.findall(r'LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)', text):
        if int(start, 16) <= address < int(start, 16) + int(size, 16):
            return address - int(start, 16) + int(offset, 16)
    raise AssertionError(f'{address:#x} is nowhere in {path}')


def objects(path):
    """[(type, op, object)] of a recording."""
    run = live.call('script', '-i', path)
    return [(kind, op, int(number, 16)) for kind, op, number in
            re.findall(r'reftrace:(\w+)_(get|put|new|free): object=(0x[0-9a-f]+)', run.stdout)]


class Defined:
    """Markers of a file as events of tracefs, as perf's users write them."""
    EVENTS = '/sys/kernel/tracing/uprobe_events'

    def __init__(self, path):
        self.path = path
        self.markers = json.loads(live.call('probe', 'markers', '--json', path).stdout)['files'][0]['markers']

    def define(self, test, name):
        """-> what perf -e takes"""
        marker = next(m for m in self.markers if m['name'] == name)
        event = f'marker{os.getpid()}/{name}'
        with open(self.EVENTS, 'r+', encoding='utf-8') as f:
            f.write(f'p:{event} {self.path}:{file_offset(self.path, int(marker["address"], 16)):#x}'
                    f'({file_offset(self.path, int(marker["semaphore"], 16)):#x})\n')
        test.addCleanup(self.undefine, event)
        return event.replace('/', ':')

    def undefine(self, event):
        def gone():
            try:
                with open(self.EVENTS, 'r+', encoding='utf-8') as f:
                    f.write(f'-:{event}\n')
                return True
            except FileNotFoundError:
                return True
            except OSError:  # its last user is still being taken down
                return False
        live.wait_until(gone, 10)


class Operands(live.LiveTest):
    def check(self, cc, opt, attach):
        path = live.program('operands', cc, (opt,))
        names = [line.split()[1] for line in live.Process([path]).wait()[1].splitlines() if line.startswith('operand')]
        spool = live.temp_path('operands.rt')
        # each as a type of its own; `second` is the second argument
        specs = live.pairs(f'type={n} get=sdt:op:{n}:{2 if n == "second" else 1}' for n in names)
        run = live.trace('--attach=' + attach, '-w', spool, *specs, '--', path)
        said = dict(line.split()[1:] for line in run.stdout.splitlines() if line.startswith('operand'))
        self.assertEqual(len(said), 14, str(run))
        self.assertEqual({kind: f'{number:x}' for kind, _, number in objects(spool)}, said, str(run))

    def setUp(self):
        live.need_engine()

    def test_multi(self):
        self.check('gcc', '-O2', 'multi')

    def test_tracefs(self):
        self.check('gcc', '-O2', 'tracefs')

    def test_clang(self):
        self.check('clang', '-O0', 'multi')

    def test_refused(self):
        """An argument that the marker does not have is an error with the reason, not a silent nothing."""
        path = live.program('operands', 'gcc', ('-O2',))
        run = live.call('run', '-P', 'type=x get=sdt:op:reg:2', '--', path)
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('it has fewer arguments', run.stderr)

    def test_no_such_marker(self):
        path = live.program('operands', 'gcc', ('-O2',))
        run = live.call('run', '-P', 'type=x get=sdt:op:rag', '--', path)
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stderr, r"no marker 'sdt:op:rag'")
        self.assertRegex(run.stderr, r'did you mean: sdt:op:reg\b')


class Semaphores(live.Ends, live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('operands', 'gcc', ('-O2',))

    def start(self):
        target = live.Process([self.path, '60'])
        self.addCleanup(target.kill)
        return target, int(target.wait_line('semaphore').split()[1], 16)

    def attach(self, target, attach):
        tracer = live.Process([live.REFTRACE, 'run', '--attach=' + attach, '-o', '/dev/null', '-P',
                               'type=x get=sdt:op:guarded', '-p', target.popen.pid])
        self.addCleanup(tracer.kill)
        return tracer

    def assert_becomes(self, target, address, value):
        self.assertTrue(live.wait_until(lambda: semaphore(target.popen.pid, address) == value, 10),
                        f'the semaphore is {semaphore(target.popen.pid, address)}, not {value}')

    def check(self, attach, end):
        target, address = self.start()
        self.assertEqual(semaphore(target.popen.pid, address), 0)
        tracer = self.attach(target, attach)
        self.assert_becomes(target, address, 1)
        # perf beside us: the kernel counts breakpoints, not who wants them
        perf = live.Process(['perf', 'record', '-q', '-o', '/dev/null', '-e',
                             Defined(self.path).define(self, 'guarded'), '-p', target.popen.pid])
        self.addCleanup(perf.kill)
        self.assertTrue(live.wait_until(lambda: self.perf_events(perf.popen.pid), 10), 'perf did not open its event')
        os.kill(tracer.popen.pid, end)
        tracer.popen.wait(20)
        self.assertTrue(live.wait_until(lambda: not self.perf_events(tracer.popen.pid), 10))
        self.assertEqual(semaphore(target.popen.pid, address), 1, 'perf is still there')
        os.kill(perf.popen.pid, signal.SIGKILL)
        perf.popen.wait(20)
        self.assert_becomes(target, address, 0)
        self.assertIsNone(target.popen.poll(), 'the target is gone')

    @staticmethod
    def perf_events(pid):
        """How many perf events a process has open."""
        try:
            fds = os.listdir(f'/proc/{pid}/fd')
            return sum('[perf_event]' in os.readlink(f'/proc/{pid}/fd/{fd}') for fd in fds)
        except OSError:
            return 0

    def test_from_the_start(self):
        """Launched by us: the guarded marker is passed, and each passing is seen."""
        spool = live.temp_path('guarded.rt')
        run = live.trace('-w', spool, '-P', 'type=x get=sdt:op:guarded', '--', self.path, '1')
        passed = int(re.search(r'^passed (\d+)$', run.stdout, re.M)[1])
        self.assertGreater(passed, 0, str(run))
        self.assertEqual(run.findings['trust']['events'], passed, str(run))


class Python(live.LiveTest):
    """The interpreter's own markers, in a running process."""

    def setUp(self):
        live.need_engine()
        if not os.access(PYTHON, os.X_OK):
            self.skipTest(f'{PYTHON} is not installed (python3.11-minimal)')

    def test_as_the_kernel_counts(self):
        """Both markers, from the start: as many as a plain uprobe at their places sees."""
        markers = Defined(PYTHON)
        names = [markers.define(self, name) for name in ('function__entry', 'function__return')]
        words = [PYTHON, '-I', '-S', '-c', 'list(map(lambda n: n, range(99)))']
        run = subprocess.run(['perf', 'stat', '-x,', '-e', ','.join(names), *words], capture_output=True, text=True,
                             env=live.clean_env(PYTHONHASHSEED='0'), check=True)
        want = [int(line.split(',')[0]) for line in run.stderr.splitlines() if 'marker' in line]
        spool = live.temp_path('python.rt')
        run = live.trace('-w', spool, '-P', 'type=call get=sdt:python:function__entry:2 put=sdt:python:function__return:2',
                         '--', *words, env=live.clean_env(PYTHONHASHSEED='0'))
        seen = collections.Counter(op for _, op, _ in objects(spool))
        self.assertEqual([seen['get'], seen['put']], want, str(run))
        self.assertTrue(all(want), want)

    def test_running(self):
        target = live.Process([PYTHON, '-c', SCRIPT], pipe=True)
        self.addCleanup(target.kill)
        target.wait_line('ready')
        spool = live.temp_path('python.rt')
        # the object is the function's name
        tracer = live.Process([live.REFTRACE, 'run', '-w', spool, '-o', '/dev/null', '-P',
                               'type=call get=sdt:python:function__entry:2 put=sdt:python:function__return:2',
                               '-p', target.popen.pid])
        self.addCleanup(tracer.kill)
        self.assertTrue(live.wait_until(lambda: live.armed(target.popen.pid, PYTHON), 20), 'never armed')
        target.popen.stdin.write('1234\n')
        target.popen.stdin.flush()
        target.wait_line('did 1234')
        tracer.popen.send_signal(signal.SIGINT)
        tracer.wait(20)
        # 3.11 passes function__entry only where no Python function called: the returns are those of all calls
        numbers = collections.Counter(number for _, op, number in objects(spool) if op == 'put')
        self.assertEqual(max(numbers.values(), default=0), 1234)
        # no longer asked for: not passed, not seen, and the script goes on
        self.assertTrue(live.wait_until(lambda: not live.armed(target.popen.pid, PYTHON), 10), 'stays armed')
        target.popen.stdin.write('5\n')
        target.popen.stdin.flush()
        target.wait_line('did 5')


if __name__ == '__main__':
    unittest.main()
