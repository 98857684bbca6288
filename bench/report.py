#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The report of a recording of 10^7 events (bench/analysis.c makes it), by the program itself: ./dev bench analysis

CPU seconds and most memory of one `reftrace report -i FILE`, the least of three. `report.py BUILD [EVENTS]`. perf beside
it, on operations of a real program: ./dev bench spool.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT_SECONDS, LIMIT_MB = 3, 256  # of 10^7 events


def report(reftrace, path):
    """-> (seconds of CPU, MB at most)"""
    child = subprocess.Popen([reftrace, 'report', '-i', path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 24):  # 24: there is no such program, so that its functions have no names
        sys.exit(f'report.py: {reftrace} report: status {child.returncode}')
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    events = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10 ** 7
    with tempfile.TemporaryDirectory(prefix='rt-report-') as folder:
        path = pathlib.Path(folder) / 'reference.data'
        subprocess.run([build / 'bench' / 'analysis', 'write', str(events), path], check=True)
        size = path.stat().st_size
        runs = [report(build / 'reftrace', path) for _ in range(3)]
    seconds, most = min(r[0] for r in runs), max(r[1] for r in runs)
    print(f'reftrace report of {events:.3g} events ({size / events:.2f} bytes each): {seconds:.2f} s CPU '
          f'({seconds / events * 1e9:.0f} ns an event), {most:.0f} MB at most')
    return 1 if events == 10 ** 7 and (seconds > LIMIT_SECONDS or most > LIMIT_MB) else 0


if __name__ == '__main__':
    sys.exit(main())
