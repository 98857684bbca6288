#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a traced call costs the target, reftrace beside its rivals: ./dev bench engine

Each number is CPU time of the target's own thread per call, from a stack of 16 frames with frame
pointers (bare: without; pointers: walked by them, as where no unwind tables are known): least of 100 short loops within a run, median over rounds, all ways by turns in each round.
Ratios are to an empty BPF program at the same emulated instruction. At the end: how long it takes to arm 10 000 functions of a
program, and until none is armed any more when who armed them is killed (least and median over rounds). Needs root.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

FUNCTIONS = {
    'cheap_get': 'first instruction is a push',
    'slow_get': 'endbr64 and mov first; reftrace takes the push behind',
    'lock_get': 'lock incl first; reftrace takes the push behind',
}
OURS = ('none', 'empty', 'reftrace', 'counter', 'bare', 'pointers')
LIMITS = {'reftrace': 1.6, 'counter': 1.8, 'bare': 1.5}  # times the empty probe
EVENTS = '/sys/kernel/tracing/uprobe_events'
SITES_MS = {'armed': 100, 'gone after SIGKILL': 200}  # of 10 000
RIVAL_LEAD = 7  # bpftrace with ustack(16) costs at least so many times reftrace where the entry is slow


def measure(bench, way, function, loops):
    out = subprocess.run([bench, 'measure', way, function, str(loops)], check=True, capture_output=True, text=True)
    return float(out.stdout)


class Rival:
    """A tracer that is started beside the stopped target and attaches to its pid."""

    def __init__(self, bench):
        self.bench = bench
        self.settle = 0  # seconds between its breakpoint and its first event
        self.share = []  # of the calls that it kept, where it can lose some

    def prepare(self, function):
        pass

    def command(self, function, pid):
        raise NotImplementedError

    def cleanup(self, function):
        pass

    def run(self, function, loops, timeout=60):
        """Nanoseconds per call, or None where the breakpoint never came."""
        self.calls = 100 * loops + 1
        target = subprocess.Popen([self.bench, 'target', function, str(loops)], stdout=subprocess.PIPE, text=True)
        tracer = None
        try:
            os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
            address, _ = self.where(function)
            address += self.bias(target.pid)
            tracer = subprocess.Popen(self.command(function, target.pid), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, start_new_session=True)
            armed = self.wait_armed(target.pid, address, tracer)
            time.sleep(self.settle)
            os.kill(target.pid, signal.SIGCONT)
            out, _ = target.communicate(timeout=timeout)
            return float(out) if armed else None
        finally:
            if target.poll() is None:
                target.kill()
                target.wait()
            if tracer:
                self.end(tracer)

    def end(self, tracer):
        if tracer.poll() is None:
            tracer.send_signal(signal.SIGINT)
            try:
                tracer.wait(20)
            except subprocess.TimeoutExpired:
                tracer.kill()
                tracer.wait()

    def where(self, function):
        out = subprocess.run([self.bench, 'where', function], check=True, capture_output=True, text=True).stdout
        return [int(word, 16) for word in out.split()]

    def bias(self, pid):
        path = os.path.realpath(self.bench)
        with open(f'/proc/{pid}/maps', encoding='ascii') as maps:
            return min(int(line.split('-')[0], 16) for line in maps if line.rstrip().endswith(path))

    def wait_armed(self, pid, address, tracer):
        end = time.monotonic() + 10
        with open(f'/proc/{pid}/mem', 'rb', buffering=0) as mem:
            while time.monotonic() < end and tracer.poll() is None:
                mem.seek(address)
                if mem.read(1) == b'\xcc':
                    return True
                time.sleep(0.01)
        return False


def define(line):
    fd = os.open(EVENTS, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, (line + '\n').encode())
    finally:
        os.close(fd)


class Bpftrace(Rival):
    name = 'bpftrace ustack(16)'

    def command(self, function, pid):
        program = f'uprobe:{os.path.realpath(self.bench)}:{function} {{ @[ustack(16)] = count(); }}'
        return ['bpftrace', '-p', str(pid), '-e', program]

    def cleanup(self, function):
        # what bpftrace forgets when an attach fails
        with open(EVENTS, encoding='ascii') as events:
            left = [line.split()[0][2:] for line in events if os.path.realpath(self.bench) in line and '_bcc_' in line]
        for name in left:
            define('-:' + name)


class Perf(Rival):
    name = 'perf record -g'

    def __init__(self, bench):
        super().__init__(bench)
        self.settle = 0.5  # opens its events first, switches them on later

    def prepare(self, function):
        # by hand: perf probe looks only at functions that have debug info
        _, offset = self.where(function)
        define(f'p:rt_bench/{function} {os.path.realpath(self.bench)}:{offset:#x}')

    def command(self, function, pid):
        return ['perf', 'record', '-q', '-g', '-m', '16M', '-e', f'rt_bench:{function}', '-p', str(pid),
                '-o', os.path.join(self.directory, 'perf.data')]

    def end(self, tracer):
        super().end(tracer)
        out = subprocess.run(['perf', 'report', '--stats', '-i', os.path.join(self.directory, 'perf.data')],
                             capture_output=True, text=True, check=False).stdout
        samples = [int(line.split()[2]) for line in out.splitlines() if 'SAMPLE events:' in line]
        self.share.append(samples[0] / self.calls if samples else 0)

    def cleanup(self, function):
        define(f'-:rt_bench/{function}')
        self.share = []


def rounds_of(bench, function, rounds, loops, rivals):
    """{way: [ns, ...]}"""
    values = {}
    for _ in range(rounds):
        for way in OURS:
            values.setdefault(way, []).append(measure(bench, way, function, loops))
        for rival in rivals:
            ns = rival.run(function, max(loops // 10, 50))
            if ns is not None:
                values.setdefault(rival.name, []).append(ns)
    return values


def show(function, values, rivals):
    base = statistics.median(values['empty'])
    ours = statistics.median(values['reftrace'])
    print(f'{function}: {FUNCTIONS[function]}')
    for way in [*OURS, *(r.name for r in rivals)]:
        if way not in values:
            print(f'  {way:22}   never fires')
            continue
        ns = statistics.median(values[way])
        line = f'  {way:22} {ns:9.1f} ns  {ns / base:6.2f} x empty'
        if way in LIMITS:
            line += f'  (limit {LIMITS[way]})'
        elif way in [r.name for r in rivals]:
            line += f'  {ns / ours:6.1f} x reftrace'
            shares = [r.share for r in rivals if r.name == way][0]
            if shares and min(shares) < 0.999:
                line += f'; kept {100 * min(shares):.0f} % of the calls'
        print(line)
    print()


def many_sites(bench, rounds):
    """What took longer than it may."""
    times = [list(map(float, subprocess.run([bench, 'sites'], check=True, capture_output=True, text=True).stdout.split()))
             for _ in range(rounds)]
    bad = []
    for (what, limit), values in zip(SITES_MS.items(), zip(*times)):
        print(f'10 000 sites {what:18} {min(values):6.1f} ms, median {statistics.median(values):.1f} (limit {limit})')
        if min(values) > limit:
            bad.append(f'10 000 sites are {what} in {min(values):.0f} ms, more than {limit}')
    return bad


def judge(results):
    bad = []
    for function, values in results.items():
        base = statistics.median(values['empty'])
        for way, limit in LIMITS.items():
            ratio = statistics.median(values[way]) / base
            if ratio > limit:
                bad.append(f'{function}: {way} costs {ratio:.2f} times the empty probe, more than {limit}')
    slow = results.get('slow_get', {})
    if Bpftrace.name in slow:
        lead = statistics.median(slow[Bpftrace.name]) / statistics.median(slow['reftrace'])
        if lead < RIVAL_LEAD:
            bad.append(f'slow_get: bpftrace costs {lead:.1f} times reftrace, less than {RIVAL_LEAD}')
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--loops', type=int, default=1000)
    parser.add_argument('--no-rivals', action='store_true')
    args = parser.parse_args()
    bench = os.path.join(args.build, 'bench', 'engine')
    if os.geteuid() != 0:
        sys.exit('engine.py: needs root')
    if not args.no_rivals and not os.path.exists(EVENTS):
        sys.exit(f'engine.py: {EVENTS} is not there, which perf needs: mount -t tracefs tracefs /sys/kernel/tracing, or --no-rivals')
    rivals = [] if args.no_rivals else [Bpftrace(bench), Perf(bench)]
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        for function in FUNCTIONS:
            usable = []
            for rival in rivals:
                rival.directory = directory
                rival.prepare(function)
                usable.append(rival)
            try:
                results[function] = rounds_of(bench, function, args.rounds, args.loops, usable)
                show(function, results[function], usable)
            finally:
                for rival in usable:
                    rival.cleanup(function)
    bad = judge(results) + many_sites(bench, args.rounds)
    for line in bad:
        print('engine.py: ' + line)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
