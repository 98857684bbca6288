#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a whole suite of short processes takes when all of it is traced: ./dev bench suite

json-c's own (tests/lib/json_c.py): ctest, shell scripts, and hundreds of processes, most of which live for some
milliseconds. `suite.py BUILD [TURNS]`: bare and traced in turn, the quickest of each; the CPU time is that of all
processes. Exit status 1: the time is more than twice that of the bare suite.
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'lib'))
import debian  # pylint: disable=wrong-import-position
import json_c  # pylint: disable=wrong-import-position

LIMIT = 2.0


def seconds(command, folder):
    """-> elapsed, CPU"""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, **json_c.ENVIRONMENT})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    reftrace = (build / 'reftrace', 'run', '-q', '-o', os.devnull)
    with tempfile.TemporaryDirectory(prefix='rt-suite-') as folder:
        place = json_c.build(debian.source(build / 'sources' / 'json-c', 'json-c'), pathlib.Path(folder, 'json-c'), leak=False)
        ways = {'bare': json_c.RUN, 'reftrace': (*reftrace, '-P', 'json-c', '--', *json_c.RUN), 'untold': (*reftrace, '--', *json_c.RUN)}
        runs = {way: [] for way in ways}
        for _ in range(turns):
            for way, command in ways.items():
                runs[way].append(seconds(command, place))
    best = {way: [min(r[i] for r in runs[way]) for i in range(2)] for way in ways}
    for way, (elapsed, cpu) in best.items():
        print(f'{way:9} {elapsed:6.2f} s ({elapsed / best["bare"][0]:.2f} x), CPU {cpu:6.2f} s ({cpu / best["bare"][1]:.2f} x)')
    return 1 if best['reftrace'][0] > LIMIT * best['bare'][0] else 0


if __name__ == '__main__':
    sys.exit(main())
