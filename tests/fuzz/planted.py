#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Does the replay stop at a bug? Each tests/fuzz/planted/NAME.patch plants one into the parser of fuzz-NAME.c.

    planted.py [NAME...]

In a copy of src, wire and tests, the target is built with ASan and UBSan and gets what the replay gives it (replay.py): it
passes; with the patch a sanitizer stops it. A patch that no longer applies is an error that says so.

These five are also found by seeds that were written with them; how the replay does with bugs that nobody had in mind is in
tests/fuzz/corpus/README.md.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import replay

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLAGS = ['-std=gnu11', '-O1', '-g', '-D_GNU_SOURCE', '-D_FILE_OFFSET_BITS=64', '-I.', '-Isrc', '-w',
         '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer']
# what a target is made of (as in src/*/meson.build), and the libraries
MADE_OF = {
    'perfdata': (('base', 'event', 'perfdata'), '-lzstd -lz'),
    'spool': (('base', 'event', 'capture'), '-lzstd -lz'),
    'bpfimage': (('base', 'bpfimage'), '-lz'),
    'bpfinsn': (('base', 'insn/bpf'), ''),
    'archive': (('base', 'archive'), '-larchive -lnettle'),
}
ENV = dict(os.environ, ASAN_OPTIONS='allocator_may_return_null=1:abort_on_error=0',
           UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1')


class Failed(Exception):
    """The text says what is wrong."""


def names():
    return sorted(p.stem for p in (HERE / 'planted').glob('*.patch'))


class Tree:
    """A copy of what a target needs, and its object files."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name
        for part in ('src', 'wire', 'tests/fuzz'):
            shutil.copytree(ROOT / part, self.folder / part, ignore=shutil.ignore_patterns('corpus', '__pycache__'))
        modules, self.libraries = MADE_OF[name]
        self.sources = [f'tests/fuzz/fuzz-{name}.c', 'tests/fuzz/replay.c']
        for module in modules:
            module = module if '/' in module else module + '/'
            self.sources += sorted(str(p.relative_to(self.folder)) for p in self.folder.glob(f'src/{module}*.c'))

    def compile(self, sources):
        jobs = []
        for source in sources:
            flags = ['-include', 'linux/bpf.h', '-include', 'src/base/banned.h'] if source.startswith('src/') else []
            jobs.append((source, subprocess.Popen(['cc', *FLAGS, *flags, '-c', source, '-o', self.object(source)],
                                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                  text=True)))
            if len(jobs) == 2:
                self.finish(*jobs.pop(0))
        for job in jobs:
            self.finish(*job)

    def finish(self, source, process):
        out = process.communicate()[0]
        if process.returncode:
            raise Failed(f'{self.name}: {source} does not compile:\n{out}')

    @staticmethod
    def object(source):
        return source.replace('/', '-') + '.o'

    def link(self):
        done = subprocess.run(['cc', *FLAGS, *map(self.object, self.sources), '-o', 'replay', *self.libraries.split()],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f'{self.name}: cannot be linked:\n{done.stderr}')

    def replay(self):
        """-> what a sanitizer said; None: nothing is wrong"""
        done = replay.run(self.folder / 'replay', self.name, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENV, timeout=300)
        return None if not done.returncode else done.stderr.decode(errors='replace') or f'status {done.returncode}'

    def plant(self):
        """-> the files that the patch changes"""
        patch = HERE / 'planted' / (self.name + '.patch')
        done = subprocess.run(['patch', '-p1', '--no-backup-if-mismatch', '-i', str(patch)], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f'tests/fuzz/planted/{patch.name} no longer applies: plant the same bug again, where the code '
                         f'now is, and write the patch anew\n{done.stdout}{done.stderr}')
        return [line.split('/', 1)[1].split()[0] for line in patch.read_text().splitlines() if line.startswith('+++ ')]


def check(name):
    """Fails with a text; else the sanitizer's line about the planted bug."""
    with tempfile.TemporaryDirectory(prefix='reftrace-planted-') as folder:
        tree = Tree(folder, name)
        tree.compile(tree.sources)
        tree.link()
        said = tree.replay()
        if said:
            raise Failed(f'{name}: fails without a planted bug:\n{said[:3000]}')
        changed = tree.plant()
        tree.compile(changed)
        tree.link()
        said = tree.replay()
        if not said:
            raise Failed(f'{name}: no file of tests/fuzz/corpus/{name} finds the bug of tests/fuzz/planted/{name}.patch')
        for line in said.splitlines():
            if 'ERROR: AddressSanitizer' in line or 'runtime error:' in line:
                return line
        raise Failed(f'{name}: it fails, but no sanitizer says so:\n{said[:3000]}')


def main():
    bad = 0
    for name in sys.argv[1:] or names():
        try:
            print(f'found {name}: {check(name)}', flush=True)
        except Failed as e:
            print(f'FAIL {e}', flush=True)
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
