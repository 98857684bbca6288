#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a reference that lives costs the tool: ./dev bench live

Many objects that live at the same time (bench/many.c), with one, two and eight references each: memory of the tool at most, less
that of a run with hardly any, for each object and for each reference. `live.py BUILD [OBJECTS]`. Exit status 1: a reference
takes more than LIMIT bytes.
"""
import os
import pathlib
import subprocess
import sys

PAIRS = 'type=obj new=obj_new get=obj_get:1 put=obj_put:1'
LIMIT = 100  # bytes of a live reference
FEW = 1000


def peak(build, objects, references):
    """Bytes that the tool had at most."""
    command = [build / 'reftrace', 'run', '--engine', 'agent', '-q', '-o', os.devnull, '-P', PAIRS, '--', build / 'bench' / 'many',
               str(objects), str(references)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f'live.py: {" ".join(map(str, command))}: status {status}')
    return usage.ru_maxrss * 1024


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    objects = int(sys.argv[2]) if len(sys.argv) > 2 else 1000000
    worst = 0
    for references in (1, 2, 8):
        own = peak(build, objects, references) - peak(build, FEW, references)
        each = own / (objects - FEW)
        worst = max(worst, each / references)
        print(f'{references} references each: {each:6.0f} bytes an object, {each / references:6.1f} a live reference')
    return 1 if worst > LIMIT else 0


if __name__ == '__main__':
    sys.exit(main())
