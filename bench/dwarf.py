#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Definitions resolved in a large file's debug information, reftrace beside perf probe: ./dev bench dwarf

./dev bench dwarf [FILE FUNCTION INLINED]: without a file, a program with at least 300 MB of debug information is made
once, in build/big (about 3 minutes with 2 CPUs). Each case is resolved by both in turns, ROUNDS times, and the fastest
counts: the machine has other things to do. Cold: neither has anything in its cache of definitions (an empty folder for
each run), and the file is in memory for both, as it was read once before. From disk: the file's pages are given up
before each run (posix_fadvise), for both alike; it is not judged, as it shows the disk. From the cache: the definition
was put into the build-id cache once and is taken from there by its name. Memory is the peak; no less than this script's
own can be seen (20 MB).

Exit status 1 when reftrace is not 5 times faster cold, or not 100 times from the cache. The perf is $PERF, else the
installed one.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import big_program

ROUNDS, COLD, CACHED = 10, 5, 100


class Run:
    def __init__(self, words, cache, drop=None):
        env = dict(os.environ, PERF_BUILDID_DIR=str(cache), LC_ALL='C')
        if drop:
            with open(drop, 'rb') as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with tempfile.TemporaryFile() as out:
            began = time.monotonic()
            process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
            _, status, usage = os.wait4(process.pid, 0)
            self.seconds = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            self.text = out.read().decode(errors='replace')
        self.cpu, self.mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        self.places = sum(line.startswith('p:') for line in self.text.splitlines())
        self.right = process.returncode == 0 and self.places > 0


def best(runs):
    """-> (seconds, CPU seconds, MB) of the fastest, or None where one failed"""
    if not all(r.right for r in runs):
        return None
    return min(r.seconds for r in runs), min(r.cpu for r in runs), max(r.mb for r in runs)


def show(what, runs):
    found = best(runs)
    if not found:
        lines = next(r.text for r in runs if not r.right).strip().splitlines()
        print(f'    {what:28} failed: {lines[-1] if lines else "it says nothing"}')
        return None
    print(f'    {what:28} {found[0]:8.4f} s  {found[1]:8.4f} s CPU  {found[2]:6.0f} MB  {runs[0].places} places',
          flush=True)
    return found


def judge(what, slow, fast, least):
    """-> False when that is too little; what perf cannot do is not judged"""
    if not fast:
        return False
    if not slow:
        print(f'    {what}: perf cannot do it')
        return True
    wall, cpu = slow[0] / fast[0], slow[1] / fast[1]
    good = wall >= least
    print(f'    {what}: {wall:.1f} x faster ({cpu:.1f} x less CPU), at least {least} x: {"yes" if good else "NO"}',
          flush=True)
    return good


def case(folder, perf, reftrace, path, what, definition):
    print(f'{what}: {definition}')
    kept, empty = folder / 'kept', folder / 'empty'
    name = 'rt_big:kept'
    put = Run([reftrace, 'probe', 'add', '-q', '-x', path, '-D', '--cache', f'{name}={definition}'], kept)
    if not put.right:
        print(f'    could not be put into the cache: {put.text.strip()}')
    theirs, ours, cached, their_disk, our_disk = [], [], [], [], []
    for _ in range(ROUNDS):
        for runs, words, cache in ((theirs, [perf, 'probe', '-q', '-x', path, '-D', definition], empty),
                                   (ours, [reftrace, 'probe', 'add', '-q', '-x', path, '-D', definition], empty),
                                   (cached, [reftrace, 'probe', 'add', '-q', '-x', path, '-D', '%' + name], kept)):
            runs.append(Run(words, cache))
            shutil.rmtree(empty, ignore_errors=True)
    for runs, words in ((their_disk, [perf, 'probe', '-q', '-x', path, '-D', definition]),
                        (our_disk, [reftrace, 'probe', 'add', '-q', '-x', path, '-D', definition])):
        for _ in range(2):
            runs.append(Run(words, empty, path))
            shutil.rmtree(empty, ignore_errors=True)
    slow, fast = show('perf probe', theirs), show('reftrace, cold', ours)
    quick = show('reftrace, from the cache', cached)
    show('perf probe, from disk', their_disk)
    show('reftrace, from disk', our_disk)
    return [judge('cold', slow, fast, COLD), judge('from the cache', slow, quick, CACHED)]


def debug_bytes(path):
    out = subprocess.run(['readelf', '-SW', path], capture_output=True, text=True, check=True).stdout
    # name, type, address, offset, size
    rows = [line.split(']', 1)[1].split() for line in out.splitlines() if '] .debug_' in line]
    return sum(int(row[4], 16) for row in rows)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    perf = os.environ.get('PERF') or shutil.which('perf')
    if len(sys.argv) not in (2, 5):
        sys.exit('dev: bench dwarf [FILE FUNCTION INLINED]')
    if not perf:
        sys.exit('dev: no perf: apt-get install linux-perf; or $PERF')
    path, function, inlined = sys.argv[2:] or (None, 'u137_f7', 'object_get')
    path = pathlib.Path(path) if path else big_program.make(build / 'big')
    version = subprocess.run([perf, '--version'], capture_output=True, text=True, check=True).stdout.strip()
    print(f'{path}: {path.stat().st_size / 1e6:.0f} MB, {debug_bytes(path) / 1e6:.0f} MB of them debug information; '
          f'{version}; {len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f}')
    # not as one piece: children are told to have as much memory as we have
    with open(path, 'rb') as f:
        while f.read(1 << 20):
            pass
    good = []
    with tempfile.TemporaryDirectory(prefix='rt-dwarf-') as folder:
        for what, definition in (('a function', function), ('an inlined function', inlined)):
            good += case(pathlib.Path(folder), perf, build / 'reftrace', path, what, definition)
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
