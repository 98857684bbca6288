#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""One program under reftrace and under every rival that is installed, in one run: ./dev bench rivals

The program is the reference workload (bench/reference.c): gets and puts at the end of stacks of 16 frames, with so much
other work that it does 8 million operations a second by itself. Each tool is given as many operations as it does in some
seconds; what counts is the time of one. Two turns; the quicker one is told.

`rivals.py BUILD [--write FILE] [--seconds S]`: the table goes to standard output, and as a page to FILE. Exit status 1
when reftrace lost an event. As root: uprobes need it.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

RATE = 8e6  # operations a second of the bare program
TRIES = 2  # to find out how much other work that takes
TURNS = 3
PAIRS = 'type=obj new=obj_new get=obj_get:1 put=obj_put:1'
FUNCTIONS = ('obj_get', 'obj_put')
GROUP = 'probe_reference'
GDB = 'set pagination off\nset confirm off\n' + ''.join(
    f'break {f}\ncommands\nsilent\nbt 16\ncontinue\nend\n' for f in FUNCTIONS) + 'run\n'


def processes_below(pid):
    """pid and all that it has started"""
    found = [pid]
    for p in found:
        try:
            for task in os.listdir(f'/proc/{p}/task'):
                found += map(int, pathlib.Path(f'/proc/{p}/task/{task}/children').read_text().split())
        except OSError:
            pass
    return found


class Peak(threading.Thread):
    """The most memory that a process and all below it had at a time, in MiB; what they share is counted once."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.mib = 0
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.1):
            kib = 0
            for pid in processes_below(self.pid):
                try:
                    kib += int(re.search(r'^Pss:\s+(\d+)', pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text(), re.MULTILINE)[1])
                except (OSError, TypeError):
                    pass
            self.mib = max(self.mib, kib / 1024)

    def end(self):
        self.over.set()
        self.join()
        return self.mib


class Way:
    """One way of running the program. sees: what it tells of a get or put."""

    name = 'bare'
    needs = ()
    sees = ''
    cost = 0.125  # microseconds an operation, roughly: how many are asked for

    def __init__(self, bench):
        self.bench = bench

    def prepare(self):
        """What has to be there before the run."""

    def command(self, program):
        return program

    def events(self, _out):
        """(events told, events lost); None: it does not count any, or does not say it"""
        return None, None

    def cleanup(self):
        """What the run left behind."""

    def run(self, operations):
        self.prepare()
        words = [str(w) for w in self.command([self.bench.program, '1', str(operations), str(self.bench.work)])]
        with open(self.bench.folder / 'out', 'w+b') as out, open(self.bench.folder / 'err', 'w+b') as err:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            peak = Peak(child.pid)
            status = child.wait()
            mib = peak.end()
            out.seek(0)
            text = out.read().decode(errors='replace')
            err.seek(0)
            told = re.search(r'^(\d+) ([\d.]+) ([\d.]+)$', text, re.MULTILINE)
            if not told:
                sys.exit(f'rivals.py: {" ".join(words)}: status {status}\n{text[-500:]}{err.read().decode(errors="replace")[-500:]}')
        events, lost = self.events(text)
        self.cleanup()
        done, elapsed, cpu = int(told[1]), float(told[2]), float(told[3])
        return {'elapsed': elapsed / done * 1e9, 'cpu': cpu / done * 1e9, 'mib': mib, 'done': done, 'events': events, 'lost': lost}


class Reftrace(Way):
    sees = 'every get and put, 16 exact frames, the counter; the verdict'
    options = ()

    def command(self, program):
        return [self.bench.build / 'reftrace', 'run', f'--json={self.bench.folder / "findings"}', '-o', '/dev/null', *self.options,
                '-P', PAIRS, '--', *program]

    def events(self, _out):
        trust = json.loads((self.bench.folder / 'findings').read_text())['trust']
        return trust['events'], trust['lost']


class Agent(Reftrace):
    name, options = 'reftrace, engine agent', ('--engine', 'agent')


class Uprobe(Reftrace):
    name, options, cost = 'reftrace, engine uprobe', ('--engine', 'uprobe'), 6


class AgentCounts(Reftrace):
    name, options = 'reftrace --counts, engine agent', ('--engine', 'agent', '--counts')
    sees = 'sums by object, place and operation'


class Counts(AgentCounts):
    name, options, cost = 'reftrace --counts', ('--engine', 'uprobe', '--counts'), 4


class Bpftrace(Way):
    name, needs, cost = 'bpftrace', ('bpftrace',), 6
    sees = 'sums by stack of 16 frames'

    def command(self, program):
        script = ' '.join(f'uprobe:{self.bench.program}:{f} {{ @[ustack(16)] = count(); }}' for f in FUNCTIONS)
        return ['bpftrace', '-q', '-e', script, '-c', ' '.join(map(str, program))]

    def events(self, out):
        return sum(map(int, re.findall(r'^\]: (\d+)$', out, re.MULTILINE))), None


class Perf(Way):
    name, needs, cost = 'perf record -g', ('perf',), 8
    sees = 'every get and put, frame-pointer chain'

    def prepare(self):
        for f in FUNCTIONS:
            subprocess.run(['perf', 'probe', '-q', '-x', self.bench.program, f], check=True)

    def command(self, program):
        return ['perf', 'record', '-q', '-e', f'{GROUP}:*', '-g', '-o', self.bench.folder / 'perf.data', *program]

    def events(self, _out):
        shown = subprocess.run(['perf', 'report', '-i', self.bench.folder / 'perf.data', '--stats'], capture_output=True, text=True,
                               check=False).stdout
        total = shown.split('SAMPLE events:', 1)[1].split()[0] if 'SAMPLE events:' in shown else 0
        lost = re.search(r'LOST_SAMPLES events:\s+(\d+)', shown) or re.search(r'LOST events:\s+(\d+)', shown)
        return int(total), int(lost[1]) if lost else 0

    def cleanup(self):
        subprocess.run(['perf', 'probe', '-q', '-d', f'{GROUP}:*'], check=False, capture_output=True)
        (self.bench.folder / 'perf.data').unlink(missing_ok=True)


class Uftrace(Way):
    name, needs = 'uftrace -P', ('uftrace',)
    sees = 'calls of the functions that it can patch, no callers'

    def command(self, program):
        data = self.bench.folder / 'uftrace'
        shutil.rmtree(data, ignore_errors=True)
        return ['uftrace', 'record', '--force', '--no-event', '-P', 'obj_*', '-d', data, *program]

    def events(self, _out):
        shown = subprocess.run(['uftrace', 'report', '-d', self.bench.folder / 'uftrace', '-f', 'call'], capture_output=True, text=True,
                               check=False)
        return sum(int(n) for n, f in re.findall(r'(\d+)\s+(obj_\w+)', shown.stdout) if f in FUNCTIONS), None

    def cleanup(self):
        shutil.rmtree(self.bench.folder / 'uftrace', ignore_errors=True)


class Ltrace(Way):
    name, needs, cost = 'ltrace -x', ('ltrace',), 250
    sees = 'every call, no stacks'

    def command(self, program):
        return ['ltrace', '-x', '+'.join(FUNCTIONS), '-e', '-*', '-o', self.bench.folder / 'ltrace', *program]

    def events(self, _out):
        text = (self.bench.folder / 'ltrace').read_text(errors='replace')
        return len(re.findall(rf'^(?:{"|".join(FUNCTIONS)})@', text, re.MULTILINE)), None


class Gdb(Way):
    name, needs, cost = 'gdb, bt 16 at breakpoints', ('gdb',), 12000
    sees = 'every get and put, 16 exact frames, as text'

    def command(self, program):
        (self.bench.folder / 'script').write_text(GDB)
        return ['gdb', '-q', '-nx', '-batch', '-x', self.bench.folder / 'script', '--args', *program]

    def events(self, out):
        return len(re.findall(r'^#0 ', out, re.MULTILINE)), None


class Valgrind(Way):
    name, needs, cost = 'valgrind --leak-check=full', ('valgrind',), 1.5
    sees = 'blocks only, where they were allocated'

    def command(self, program):
        return ['valgrind', '-q', '--leak-check=full', *program]


class Heaptrack(Way):
    name, needs = 'heaptrack', ('heaptrack',)
    sees = Valgrind.sees

    def command(self, program):
        return ['heaptrack', '-o', self.bench.folder / 'heaptrack', *program]


class Sanitizer(Way):
    name, needs = 'ASan + LSan, rebuilt', ('gcc',)
    sees = Valgrind.sees

    def prepare(self):
        flags = ('-O2', '-g', '-fno-omit-frame-pointer', '-mno-omit-leaf-frame-pointer', '-fno-shrink-wrap', '-fno-optimize-sibling-calls')
        subprocess.run(['gcc', *flags, '-fsanitize=address', self.bench.source, '-o', self.bench.folder / 'asan', '-pthread'], check=True)

    def command(self, program):
        return [self.bench.folder / 'asan', *program[1:]]


WAYS = (Way, Agent, AgentCounts, Uprobe, Counts, Bpftrace, Perf, Uftrace, Ltrace, Gdb, Valgrind, Heaptrack, Sanitizer)


class Bench:
    def __init__(self, build, folder):
        self.build = build
        self.folder = folder
        self.program = folder / 'reference'
        self.source = pathlib.Path(__file__).parent / 'reference.c'
        shutil.copy(build / 'bench' / 'reference', self.program)
        self.work = 0
        self.work = work_for(RATE, self.bare)

    def bare(self, steps):
        """Seconds of CPU time of an operation with that many steps."""
        self.work = steps
        return min(Way(self).run(2000000)['cpu'] for _ in range(5)) / 1e9


def work_for(rate, cost):
    """Steps of other work with which an operation takes 1 / rate seconds by cost(steps).

    What an operation and its steps take is less than both by themselves, since the processor does some of it at once: a
    line leads only near to it, and is moved to what was found there."""
    none, steps = cost(0), 100
    took = cost(steps)
    slope = (took - none) / steps
    for _ in range(TRIES):
        steps = max(0, round(steps + (1 / rate - took) / slope))
        took = cost(steps)
    return steps


def machine():
    model = re.search(r'^model name\s*: (.*)$', pathlib.Path('/proc/cpuinfo').read_text(), re.MULTILINE)
    system = re.search(r'^PRETTY_NAME="?(.*?)"?$', pathlib.Path('/etc/os-release').read_text(), re.MULTILINE)
    return f'{model[1] if model else os.uname().machine}, {os.cpu_count()} CPUs, Linux {os.uname().release}, {system[1] if system else ""}'


def number(value):
    return '' if value is None else f'{value:,}'.replace(',', ' ')


def line(way, result, base):
    return [way.name, f'{result["elapsed"]:.0f}', f'{result["elapsed"] / base["elapsed"]:.2f}', f'{result["cpu"]:.0f}',
            f'{result["cpu"] / base["cpu"]:.2f}', f'{result["mib"]:.0f}', number(result['done']), number(result['events']),
            number(result['lost']), way.sees]


HEAD = ['', 'elapsed, ns', 'x bare', 'CPU, ns', 'x bare', 'memory, MiB', 'operations', 'events told', 'lost', 'what it sees']


def page(rows, missing, work, base):
    date = datetime.date.today().isoformat()
    text = ['# What tracing costs', '',
            f'Rendered by `./dev bench rivals --write docs/performance.md` on {date}: {machine()}.', '',
            'The program is `bench/reference.c`: gets and puts of 10 000 objects by one thread, each at the end of a stack of 16',
            f'frames that is one of 64, with {work} steps of other work per operation, which makes {1e3 / base["cpu"]:.1f} million',
            'operations a second bare.',
            'Times are of one operation; CPU is the program\'s own, with the kernel\'s share. Memory is the most that tool and program',
            f'had together. The quicker of {TURNS} turns is shown.', '',
            '| ' + ' | '.join(HEAD) + ' |', '|' + ' --- |' * len(HEAD)]
    text += ['| ' + ' | '.join(row) + ' |' for row in rows]
    if missing:
        text += ['', 'Not installed: ' + ', '.join(missing) + '.']
    return '\n'.join(text) + '\n'


def main():
    arguments = argparse.ArgumentParser(prog='rivals.py')
    arguments.add_argument('build', type=pathlib.Path)
    arguments.add_argument('--write', type=pathlib.Path, metavar='FILE')
    arguments.add_argument('--seconds', type=float, default=5, metavar='S')
    options = arguments.parse_args()
    if os.geteuid():
        sys.exit('rivals.py: uprobes need root; fix: sudo ./dev bench rivals')
    rows, missing, lost, base = [], [], 0, None
    with tempfile.TemporaryDirectory(prefix='rt-rivals-') as name:
        bench = Bench(options.build.resolve(), pathlib.Path(name))
        ways = []
        for kind in WAYS:
            absent = [tool for tool in kind.needs if not shutil.which(tool)]
            missing += absent
            if not absent:
                ways.append(kind(bench))
        # by turns: what else the machine does for a while hits all ways alike
        results = [[] for _ in ways]
        for turn in range(TURNS):
            for way, done in zip(ways, results):
                print(f'turn {turn + 1} of {TURNS}: {way.name}', file=sys.stderr, flush=True)
                done.append(way.run(round(options.seconds * 1e6 / way.cost)))
        for way, done in zip(ways, results):
            result = min(done, key=lambda r: r['elapsed'])
            base = base or result
            rows.append(line(way, result, base))
            print('  '.join(rows[-1]))
            if isinstance(way, Reftrace):
                lost += sum(r['lost'] for r in done)
    if options.write:
        options.write.write_text(page(rows, missing, bench.work, base))
    return 1 if lost else 0


if __name__ == '__main__':
    sys.exit(main())
