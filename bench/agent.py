#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What engine agent costs a program: ./dev bench agent

1. CPU time that a get or put takes more, at the end of a stack of 16 frames without frame pointers, with 1 and 8 threads:
   short loops with pauses, so that no ring is full; least and median of all loops. Then with counts only (--counts): no record,
   but the sums of the object and the place; for comparison with stacks as long as the others', and events with the caller
   alone, without limits. A limit is the time of the steps that no way around exists for: the jump, saving registers, one look
   at the clock, a record of 64 bytes, 16 loads of the stack (about 20 ns where it was taken apart).
2. The reference workload (bench/reference.c), throttled by the analysis beside it: elapsed time and CPU time of the
   program, each as a ratio to the bare run; events lost; memory of the tool at its end. Once at 8 million operations a
   second (how much other work that takes is found out first), with all rivals that are installed in the same run, and once
   with no other work at all.
3. The same workload for long: no event is lost, and the memory of program and tool together does not depend on how many
   there are.

`agent.py BUILD [OPERATIONS]`. Exit status 1 when an event was lost or a limit of parts 1 and 3 is passed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import rivals

PAIRS = 'type=obj new=obj_new get=obj_get:1 put=obj_put:1'
EVENTS, CALLER, COUNTS, LONG_COUNTS = (), ('--frames=1',), ('--counts',), ('--counts', '--frames=16')
# threads, what is done, nanoseconds an event at most
COSTS = ((1, EVENTS, 40), (8, EVENTS, 60), (1, COUNTS, 25), (8, COUNTS, 25), (1, LONG_COUNTS, None), (1, CALLER, None))
ROUNDS = 5
LONG = (10**7, 10**8)  # operations
LONG_MIB = 64


def run(*argv):
    """-> (stdout, stderr, elapsed and CPU seconds of the program itself)"""
    words = [str(a) for a in argv]
    done = subprocess.run(words, capture_output=True, text=True, errors='replace', stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 24):
        sys.exit(f'agent.py: {" ".join(words)}: status {done.returncode}\n{done.stderr}')
    return done


def cost(reftrace, program, threads, options):
    """Least and median nanoseconds of an operation, bare and traced, by turns."""
    best = {}
    for _ in range(ROUNDS):
        for way, prefix in (('bare', ()), ('agent', (reftrace, 'run', '--engine', 'agent', *options, '-o', '/dev/null', '-P', PAIRS, '--'))):
            least, median = map(float, run(*prefix, program, threads).stdout.split())
            old = best.get(way, (least, median))
            best[way] = (min(old[0], least), min(old[1], median))
    return best


def timed(*argv):
    """What the program says of itself -> (operations, elapsed, CPU), and the largest memory of what was started, in MiB"""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with open(os.devnull, 'rb') as nothing:
            child = subprocess.Popen([str(a) for a in argv], stdin=nothing, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode not in (0, 24):
            sys.exit(f'agent.py: {argv}: status {child.returncode}\n{err.read().decode(errors="replace")}')
        told = re.search(rb'^(\d+) ([\d.]+) ([\d.]+)$', out.read(), re.MULTILINE)
    return int(told[1]), float(told[2]), float(told[3]), usage.ru_maxrss / 1024


def bare(program, steps):
    """Seconds of CPU time of an operation with that many steps of other work."""
    return min(cpu / done for done, _, cpu, _ in (timed(program, 1, 2000000, steps) for _ in range(ROUNDS)))


def compare(folder, program, ways, operations, work):
    """Prints a line for each way of running the program; how many events were lost."""
    lost = 0
    base = None
    for name, prefix in ways.items():
        slow = name not in ('bare', 'reftrace, agent')
        done, elapsed, cpu, mib = timed(*prefix, program, 1, operations // 20 if slow else operations, work)
        ns = (elapsed / done * 1e9, cpu / done * 1e9)
        base = base or ns
        print(f'{name:18} {ns[0]:9.1f} ns elapsed {ns[0] / base[0]:8.2f} x   {ns[1]:9.1f} ns CPU {ns[1] / base[1]:8.2f} x   '
              f'{mib:6.0f} MiB', flush=True)
        if name.startswith('reftrace'):
            trust = json.loads((folder / (name.split()[-1] + '.json')).read_text())['trust']
            print(f'{"":18} {trust["events"]} events, {trust["lost"]} lost')
            lost += trust['lost']
    return lost


def part_two(reftrace, folder, build, operations):
    program = folder / 'reference'
    shutil.copy(build / 'bench' / 'reference', program)
    ways = {'bare': ()}
    for engine in ('agent', 'uprobe') if os.geteuid() == 0 else ('agent',):
        ways[f'reftrace, {engine}'] = (reftrace, 'run', '--engine', engine, f'--json={folder / engine}.json', '-o', '/dev/null', '-P',
                                       PAIRS, '--')
    full = {name: ways[name] for name in ('bare', 'reftrace, agent')}
    for rival, words in (('valgrind', ('--leak-check=full',)), ('heaptrack', ('-o', folder / 'heaptrack')),
                         ('uftrace', ('record', '--force', '-P', 'obj_*', '-d', folder / 'uftrace')), ('ltrace', ('-x', 'obj_*', '-o', '/dev/null'))):
        tool = shutil.which(rival)
        if tool:
            ways[rival] = (tool, *words)
        else:
            print(f'{rival}: not installed')
    work = rivals.work_for(rivals.RATE, lambda steps: bare(program, steps))
    print(f'reference workload, {operations} operations with {work} steps of other work each:')
    lost = compare(folder, program, ways, operations, work)
    print('without other work:')
    return lost + compare(folder, program, full, operations, 0)


def part_three(folder, build):
    """Was an event lost, or the memory too much?"""
    bad = False
    bench = rivals.Bench(build, folder)
    for operations in LONG:
        told = rivals.Agent(bench).run(operations)
        print(f'{told["events"]} events: {told["lost"]} lost, program and tool together {told["mib"]:.1f} MiB (limit {LONG_MIB})',
              flush=True)
        bad |= told['lost'] > 0 or told['events'] < told['done'] or told['mib'] > LONG_MIB
    return bad


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    operations = int(sys.argv[2]) if len(sys.argv) > 2 else 40000000
    reftrace = build / 'reftrace'
    late = False
    with tempfile.TemporaryDirectory(prefix='rt-agent-') as name:
        folder = pathlib.Path(name)
        program = folder / 'agent-cost'
        shutil.copy(build / 'bench' / 'agent-cost', program)
        for threads, options, limit in COSTS:
            best = cost(reftrace, program, threads, options)
            added = [best['agent'][i] - best['bare'][i] for i in (0, 1)]
            late |= limit is not None and added[0] > limit
            print(f'{threads} threads, {" ".join(options) or "events"}: bare {best["bare"][0]:.1f} ns, agent {best["agent"][0]:.1f} ns: '
                  f'{added[0]:.1f} ns more ({f"limit {limit}" if limit else "no limit"}); median of all loops {added[1]:.1f} ns', flush=True)
        print()
        lost = part_two(reftrace, folder, build, operations)
        print()
        late |= part_three(folder, build)
    return 1 if lost or late else 0


if __name__ == '__main__':
    sys.exit(main())
