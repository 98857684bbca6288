#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the tree to its own rules. `lint.py BUILD`; prints each fault as file:line: text.

formatting (clang-format-14), layers, function and file length, SPDX lines,
man pages, spelling, shell scripts, static analysis (clang-tidy-14).
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTION_LINES = 80
FILE_LINES = 800


def tracked(*patterns):
    out = subprocess.run(['git', 'ls-files', '-z', '--', *patterns], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return [ROOT / name for name in out.stdout.decode().split('\0') if name and (ROOT / name).exists()]


def fault(path, line, text):
    print(f'{path.relative_to(ROOT)}:{line}: {text}')
    return 1


def run(*cmd):
    p = subprocess.run(cmd, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode:
        print(p.stdout.rstrip())
    return 1 if p.returncode else 0


def lengths(files):
    """functions by column-0 braces, files by lines"""
    bad = 0
    for path in files:
        lines = path.read_text().splitlines()
        start = None
        for number, line in enumerate(lines, 1):
            if line == '{':
                start = number
            elif line == '}' and start:
                if number - start - 1 > FUNCTION_LINES:
                    bad += fault(path, start, f'function of {number - start - 1} lines (at most {FUNCTION_LINES})')
                start = None
        if len(lines) > FILE_LINES:
            bad += fault(path, len(lines), f'file of {len(lines)} lines (at most {FILE_LINES}): split it by noun')
    return bad


def spdx(files):
    bad = 0
    for path in files:
        if 'SPDX-License-Identifier:' not in '\n'.join(path.read_text().splitlines()[:3]):
            bad += fault(path, 1, 'no SPDX line')
    return bad


def man_pages():
    """every command of the command table has a page"""
    bad = 0
    table = (ROOT / 'src/cli/commands.c') if (ROOT / 'src/cli/commands.c').exists() else (ROOT / 'src/cli/main.c')
    for verb in re.findall(r'\{\s*"(\w+)",\s*cmd_', table.read_text()):
        if verb not in ('help', 'version') and not (ROOT / f'man/reftrace-{verb}.1.scd').exists():
            bad += fault(table, 1, f'command {verb} has no man/reftrace-{verb}.1.scd')
    return bad


def main():
    build = sys.argv[1]
    c_files = tracked('*.c', '*.h')
    own = [p for p in c_files if p.parts[len(ROOT.parts)] in ('src', 'bpf', 'agent', 'wire', 'include', 'librefcnt')]
    bad = lengths(own) + spdx(c_files + tracked('*.py', '*meson.build', 'dev', '.ci/run'))
    bad += man_pages()
    bad += run('clang-format-14', '--dry-run', '--Werror', *map(str, c_files))
    bad += run(sys.executable, 'tools/check-layers.py')
    bad += run('codespell', '-q', '3', '-L', 'fo,ot,te,hist,sie,nd,ba,inout,ro,ans,uncrypt,uptodate,crate',
               *map(str, tracked('*.md', '*.c', '*.h', '*.scd', '*.py', 'dev')))
    bad += run('shellcheck', 'dev', '.ci/run')
    # the others are compiled by commands that no database knows
    tidy = [str(p) for p in own if p.suffix == '.c' and p.parts[len(ROOT.parts)] == 'src']
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad += sum(pool.map(lambda p: run('clang-tidy-14', '--quiet', '-p', build, '--warnings-as-errors=*', p), tidy))
    print('lint: clean' if not bad else f'lint: {bad} kinds or places of fault')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
