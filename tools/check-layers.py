#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds every #include of src/, bpf/, agent/, wire/ and librefcnt/ to the table of layers (ARCHITECTURE.md).

A module includes its own headers, wire/ and modules of strictly lower layers.
Prints each violation as file:line: text; exit status 1 if there is one.
"""
import pathlib
import re
import sys

LAYER = {
    'base': 0,
    'elf': 1, 'event': 1,
    'insn': 2, 'dwarf': 2, 'maps': 2, 'capture': 2, 'archive': 2, 'perfdata': 2, 'bpfimage': 2, 'cache': 2,
    'probe': 3, 'symbol': 3, 'lifetime': 3, 'profile': 3,
    'report': 4, 'engine': 4, 'bpfprog': 4, 'recording': 4,
    'session': 5,
    'cli': 6,
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def allowed(module, target):
    if module == 'librefcnt':  # lives in other people's programs
        return target in ('librefcnt', 'refcnt')
    if target == 'wire' or target == module:
        return True
    return module in LAYER and target in LAYER and LAYER[target] < LAYER[module]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    bad = 0
    files = sorted(root.glob('src/*/*.[ch]')) + sorted(root.glob('wire/*.h'))
    files += sorted(root.glob('bpf/*.[ch]')) + sorted(root.glob('agent/*.[ch]'))
    files += sorted(root.glob('librefcnt/*.[ch]'))
    for path in files:
        parts = path.relative_to(root).parts
        module = parts[1] if parts[0] == 'src' else parts[0]
        if parts[0] == 'src' and module not in LAYER:
            print(f'{path.relative_to(root)}:1: folder src/{module} is not in the table of layers')
            bad += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = INCLUDE.match(line)
            if not m:
                continue
            target = m.group(1).split('/')[0] if '/' in m.group(1) else module
            if target.endswith('.skel.h'):
                continue
            if not allowed(module, target):
                print(f'{path.relative_to(root)}:{number}: {module} may not include {m.group(1)}')
                bad += 1
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
