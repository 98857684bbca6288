#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs tests/live/test_*.py: a line for each test that ended, at the end `N passed, N failed, N skipped`.

    run.py [-j N] [--limit SECONDS] [--real] [NAME...]

    -j N      worker processes (default: one for each CPU)
    --limit   of one test (default 300): one that takes longer has failed, and is named
    --real    the heavy variants, too, one after the other: they record all processes, count beside other tracers and
              take what machine there is, so that most of them had to be alone anyway
    NAME      only tests whose name contains it

A class of tests stays together, in one worker; each worker has a TMPDIR and a HOME of its own. What looks at the whole
machine, or would disturb others, says so with live.alone and runs when nothing else does.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import worker

REAL_LIMIT = 3600


def units(names):
    """-> (lists of names of tests that stay together, those that run alone)"""
    beside, alone = {}, {}
    for test in worker.discover():
        name = test.id()
        if not names or any(n in name for n in names):
            cls = type(test)
            is_alone = hasattr(cls, 'alone') or hasattr(getattr(test, name.rpartition('.')[2], None), 'alone')
            (alone if is_alone else beside).setdefault((cls.__module__, cls.__qualname__), []).append(name)
    return beside.values(), alone.values()


def processes():
    """(pid, its parent, is it alive, its environment)"""
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            fields = pathlib.Path('/proc', entry, 'stat').read_text(errors='replace').rpartition(')')[2].split()
            environ = pathlib.Path('/proc', entry, 'environ').read_bytes().split(b'\0')
            yield int(entry), int(fields[1]), fields[0] not in 'ZX', environ


class Worker:
    """A process that runs tests, and what it says."""

    def __init__(self, folder, limit):
        self.folder, self.output = folder, folder / 'output'
        (folder / 'home').mkdir(parents=True)
        os.chmod(folder, 0o755)
        env = {k: v for k, v in os.environ.items() if not k.startswith('XDG_')}
        env |= {'TMPDIR': str(folder), 'HOME': str(folder / 'home')}
        with open(self.output, 'wb') as output:
            # in a session of its own: an interrupt from the terminal is for run.py, which ends the workers
            self.popen = subprocess.Popen([sys.executable, worker.__file__, str(limit)], env=env, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=output, start_new_session=True)
        os.set_blocking(self.popen.stdout.fileno(), False)
        self.text, self.shown = b'', 0  # the beginning of a message; bytes of its output that are known
        self.unit, self.name, self.test = [], '', None  # tests that it has not begun; their class; the one it is in
        self.block = []  # lines to be printed

    def give(self, unit):
        self.unit, self.name = list(unit), unit[0].rpartition('.')[0]
        with contextlib.suppress(BrokenPipeError):  # that it is gone is noticed where its messages end
            self.popen.stdin.write((json.dumps(self.unit) + '\n').encode())
            self.popen.stdin.flush()

    def messages(self):
        """What it has said since, at last None when it is gone."""
        while data := self.popen.stdout.read():
            *lines, self.text = (self.text + data).split(b'\n')
            yield from map(json.loads, lines)
        if data == b'':
            yield None

    def printed(self, until=None):
        """What its tests and their children have printed since, indented. until: bytes of all of it"""
        with open(self.output, 'rb') as f:
            f.seek(self.shown)
            data = f.read(-1 if until is None else until - self.shown)
        self.shown += len(data)
        return indented(data.decode(errors='replace'))

    def end(self):
        """Ends it and all that it has started, in whatever session; those whose parents are gone have its TMPDIR."""
        mark = f'TMPDIR={self.folder}'.encode()
        for _ in range(200):  # until none is left, but for those that the kernel does not let go
            every, left = list(processes()), {self.popen.pid} if self.popen.poll() is None else set()
            left |= {pid for pid, _, alive, environ in every if alive and mark in environ}
            while more := {pid for pid, parent, alive, _ in every if alive and parent in left} - left:
                left |= more
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        self.popen.stdin.close()
        self.popen.stdout.close()


def indented(text):
    return [f'    {line}' for line in text.rstrip().splitlines()]


class Runner:
    """Gives units to workers and prints what comes of them, block by block."""

    def __init__(self, folder, limit):
        self.folder, self.limit = folder, limit
        self.counts = collections.Counter()
        self.workers, self.started = set(), 0

    def start(self):
        self.started += 1
        w = Worker(self.folder / f'worker{self.started}', self.limit)
        self.workers.add(w)
        return w

    @staticmethod
    def show(w):
        if w.block:
            print('\n'.join(w.block), flush=True)
        w.block = []

    def take(self, w, message):
        """-> has it done its unit?"""
        what = message['what']
        if what == 'start':
            w.test = message['test']
            w.unit.remove(w.test)
        elif what == 'result':
            word, text = message['word'], message['text']
            self.counts[word] += 1
            w.block.append(f'{word:4} {message["test"]} ({message["seconds"]:.1f} s)' + f': {text}' * (word == 'skip'))
            w.block += indented(text) if word == 'FAIL' else []
        else:
            w.test = None
            w.block += w.printed(message['printed'])
            self.show(w)
        return what == 'done'

    def bury(self, w):
        """The worker is gone: the test that it was in has failed. -> those that it has not begun"""
        self.counts['FAIL'] += 1
        output = w.printed()
        is_late = any(line.lstrip().startswith('Timeout (') for line in output)
        why = f'it took more than {self.limit:g} s; it was at' if is_late else f'its worker ended, {w.popen.wait()}'
        if w.test:
            w.block.append(f'FAIL {w.test}: {why}')
        else:
            # where a class is set up or taken down: so it would be the next time
            w.block.append(f'FAIL around {w.name}: {why}; {len(w.unit)} tests were not run')
            w.unit = []
        w.block += output
        self.show(w)
        w.end()
        self.workers.remove(w)
        return w.unit

    def run(self, queue, jobs):
        queue, busy, idle = collections.deque(queue), set(), list(self.workers)
        with selectors.DefaultSelector() as selector:
            while queue or busy:
                while queue and len(busy) < jobs:
                    w = idle.pop() if idle else self.start()
                    w.give(queue.popleft())
                    busy.add(w)
                    selector.register(w.popen.stdout, selectors.EVENT_READ, w)
                for w in [key.data for key, _ in selector.select()]:
                    for message in w.messages():
                        if message is not None and not self.take(w, message):
                            continue
                        selector.unregister(w.popen.stdout)
                        busy.remove(w)
                        if message is not None:
                            idle.append(w)
                        elif left := self.bury(w):
                            queue.appendleft(left)
                        break

    def end(self):
        for w in self.workers:
            w.end()
        # of tests that could not take their mounts down
        for line in reversed(pathlib.Path('/proc/self/mounts').read_text(encoding='utf-8').splitlines()):
            if line.split()[1].startswith(f'{self.folder}/'):
                subprocess.run(['umount', '-l', line.split()[1]], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-j', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--limit', type=float)
    parser.add_argument('--real', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_intermixed_args()
    if args.real:
        os.environ['RT_REAL'] = '1'
    beside, alone = units(args.names)
    folder = pathlib.Path(tempfile.mkdtemp(prefix='rt-live-'))
    folder.chmod(0o755)
    runner = Runner(folder, args.limit or (REAL_LIMIT if args.real else 300))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    status = 0
    try:
        runner.run(beside, 1 if args.real else max(1, args.j))
        runner.run(alone, 1)
    except KeyboardInterrupt:
        status = 130
        print('interrupted in ' + (', '.join(w.test for w in runner.workers if w.test) or 'no test'), flush=True)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        runner.end()
    print(f'{runner.counts["ok"]} passed, {runner.counts["FAIL"]} failed, {runner.counts["skip"]} skipped')
    return status or (1 if runner.counts['FAIL'] else 0)


if __name__ == '__main__':
    sys.exit(main())
