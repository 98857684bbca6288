#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""One program with reference operations 16 frames deep, recorded by reftrace and by perf: ./dev bench spool

For each: operations per second of the program while it is recorded, what of them was lost, bytes an operation in the
file, CPU time to read them. perf records uprobes on the same functions with the object as an argument, -g, with and
without -z. `recording.py BUILD [OPERATIONS [THREADS]]`; needs root. Exit status 1 when reftrace lost one, or takes
more than 16 bytes.
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

PAIRS = 'type=obj new=obj_new get=obj_get:1 put=obj_put:1'
GROUP = f'rt_bench_{os.getpid()}'
LIMIT = 16  # bytes an operation


def run(*argv):
    """-> (stdout, stderr, seconds of CPU, seconds)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors='replace',
                          stdin=subprocess.DEVNULL, check=False)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 24):  # 24: reftrace trusts its answer less than fully
        sys.exit(f'recording.py: {" ".join(map(str, argv))}: status {done.returncode}\n{done.stderr}')
    return (done.stdout, done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def program_of(out):
    """(operations, seconds) as the program says them."""
    match = re.search(r'^(\d+) ([\d.]+) [\d.]+$', out, re.MULTILINE)
    return int(match[1]), float(match[2])


def by_reftrace(reftrace, folder, program):
    path = folder / 'reftrace.data'
    out, err, cpu, wall = run(reftrace, 'record', '-N', '-o', path, '-P', PAIRS, '--', *program)
    events, lost = map(int, re.search(r'(\d+) events, (\d+) lost', err).groups())
    return {'name': 'reftrace record', 'path': path, 'events': events, 'lost': lost, 'program': program_of(out),
            'record': (cpu, wall)}


def by_perf(folder, program, *options):
    path = folder / f'perf{"".join(options)}.data'
    out, _, cpu, wall = run('perf', 'record', '-q', '-N', '-g', '-m', '16M', *options, '-e', f'{GROUP}:*', '-o', path,
                            '--', *program)
    stats = run('perf', 'report', '--stats', '-i', path)[0]
    events = int(re.search(r'SAMPLE events: +(\d+)', stats)[1])
    return {'name': ' '.join(['perf record -g', *options]), 'path': path, 'events': events, 'program': program_of(out),
            'record': (cpu, wall)}


def read(tool, *args):
    """Least CPU seconds of three."""
    return min(run(tool, *args)[2] for _ in range(3))


def show(rows, base):
    for row in rows:
        operations, seconds = row['program']
        size = row['path'].stat().st_size
        row['bytes'] = size / row['events']
        # what the program does before and after its operations is recorded, too
        row['kept'] = min(row['events'] / row['expected'], 1)
        print(f'{row["name"]:20} {operations / seconds / 1e3:8.0f} k/s  kept {100 * row["kept"]:6.2f} %  '
              f'{row["bytes"]:7.2f} B  {row["bytes"] / base:6.2f} x  '
              f'record {row["record"][0] / row["events"] * 1e6:5.2f} us CPU', flush=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    operations = sys.argv[2] if len(sys.argv) > 2 else '200000'
    threads = sys.argv[3] if len(sys.argv) > 3 else '4'
    if os.geteuid() != 0:
        sys.exit('recording.py: needs root')
    reftrace = build / 'reftrace'
    with tempfile.TemporaryDirectory(prefix='rt-recording-') as name:
        folder = pathlib.Path(name)
        reference = folder / 'reference'
        shutil.copy(build / 'bench' / 'reference', reference)
        program = [reference, threads, operations]
        for function in ('obj_new', 'obj_get', 'obj_put'):
            argument = '' if function == 'obj_new' else ' object=%di'
            run('perf', 'probe', '-q', '-x', reference, f'{GROUP}:{function}={function}{argument}')
        try:
            rows = [by_reftrace(reftrace, folder, program), by_perf(folder, program), by_perf(folder, program, '-z')]
        finally:
            run('perf', 'probe', '-q', '-d', f'{GROUP}:*')
        pool = 2 * 10000  # each object is made, and given back in the end
        for row in rows:
            row['expected'] = row['program'][0] + pool
        show(rows, rows[0]['path'].stat().st_size / rows[0]['events'])
        print()
        print('CPU time an event of reading, and how many times ours perf takes')
        for row in rows:
            for verb, ours, perf in (('script', ['script'], ['script']),
                                     ('report', ['report'], ['report', '--stdio', '-g', 'none', '-s', 'sym'])):
                us = read(reftrace, *ours, '-i', row['path']) / row['events'] * 1e6
                rival = read('perf', *perf, '-i', row['path']) / row['events'] * 1e6
                print(f'{verb} of {row["name"]:20}  reftrace {us:6.2f} us, perf {rival:6.2f} us  {rival / us:5.2f} x',
                      flush=True)
        ours = rows[0]
        print(f'\nreftrace record: {ours["events"]} events, {ours["lost"]} lost')
        return 1 if ours['lost'] or ours['kept'] < 1 or ours['bytes'] > LIMIT else 0


if __name__ == '__main__':
    sys.exit(main())
