# SPDX-License-Identifier: GPL-2.0-only
"""A program under a recipe: its source, its builds, which of its sites its run reaches."""
import array
import glob
import os
import pathlib
import shutil
import subprocess
import sys

import csource
import mutant

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / 'tests' / 'lib'))
import debian  # pylint: disable=wrong-import-position

HITS = 0x200000000000
HITS_BYTES = 1 << 20
PASS = f'((void (*)(const void *, unsigned))*(void **){HITS + HITS_BYTES:#x})'  # as in hit.c
RUN_SECONDS = 45
BUILD_SECONDS = 1800
ENDLESS = (124, 137)  # how timeout(1) ends for what had to be stopped


class Broken(Exception):
    """A program cannot be had, built or run; the text says why."""


def shell(command, folder, log, env, limit):
    """-> the exit status; what it said goes behind log"""
    with open(log, 'ab') as out:
        try:
            return subprocess.run(['timeout', '-k', '5', str(limit), 'sh', '-ec', command], cwd=folder, stdout=out,
                                  stderr=out, stdin=subprocess.DEVNULL, env=env, check=False).returncode
        except OSError as e:
            raise Broken(str(e)) from e


def debian_flags(name):
    return subprocess.run(['dpkg-buildflags', '--get', name], capture_output=True, text=True, check=True).stdout.strip()


class Program:
    """One program in a folder of the work folder."""

    def __init__(self, recipe, work, jobs):
        self.recipe, self.jobs = recipe, jobs
        self.folder = work / recipe.name
        self.source = self.folder / 'src'
        self.out = self.folder / 'out'
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / 'log'
        self.files = {}

    def environment(self, **more):
        flags = ' '.join(f for f in debian_flags('CFLAGS').split() if not f.startswith('-ffile-prefix-map'))
        env = {k: v for k, v in os.environ.items() if k not in ('PFX', 'LD_PRELOAD', 'MAKEFLAGS')}
        return {**env, 'CFLAGS': f'{flags} {self.recipe.flags}'.strip(), 'LDFLAGS': debian_flags('LDFLAGS'),
                'LC_ALL': 'C.UTF-8', 'J': str(self.jobs), 'S': str(self.source), 'R': str(self.recipe.path.parent),
                'LD_PRELOAD': str(self.hit_library()), **more}

    def hit_library(self):
        path = self.folder.parent / 'hit.so'
        if not path.exists():
            subprocess.run(['cc', '-O2', '-shared', '-fPIC', '-o', str(path), str(HERE / 'hit.c')], check=True)
        return path

    def fetch(self):
        """The source lies in src, configured."""
        done = self.folder / 'configured'
        if done.exists():
            self.copy_files()
            return
        shutil.rmtree(self.source, ignore_errors=True)
        if self.recipe.package:
            try:
                pristine = debian.source(self.folder.parent / 'sources' / self.recipe.package, self.recipe.package)
            except debian.Missing as e:
                raise Broken(f'the source of {self.recipe.package} cannot be had: {e}') from e
            shutil.copytree(pristine, self.source, symlinks=True)
        else:
            self.source.mkdir()
        self.copy_files()
        if shell(self.recipe.configure, self.source, self.log, self.environment(), BUILD_SECONDS):
            raise Broken(f'cannot be configured: {self.log}')
        done.touch()

    def copy_files(self):
        """What lies beside the recipe, where it is another than before."""
        for name in self.recipe.files:
            ours, there = self.recipe.path.parent / name, self.source / name
            if not there.exists() or there.read_bytes() != ours.read_bytes():
                shutil.copy(ours, there)

    def build(self, variant):
        """Builds what src is now and keeps the artifacts as this variant. -> whether it built"""
        if shell(self.recipe.build, self.source, self.log, self.environment(), BUILD_SECONDS):
            return False
        target = self.out / variant
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for pattern in self.recipe.artifacts:
            paths = glob.glob(str(self.source / pattern))
            if not paths:
                raise Broken(f'the build left no {pattern}')
            for path in paths:
                shutil.copy(path, target)
        return True

    def write_run(self):
        """The run of a variant as a script; PFX stands before the command in it."""
        path = self.folder / 'run'
        path.write_text(f'''#!/bin/sh
# run VARIANT
export D={self.out}/$1 S={self.source} R={self.recipe.path.parent} LC_ALL=C.UTF-8
export LD_LIBRARY_PATH=$D
T=$(mktemp -d) && cd "$T" || exit 1
{self.recipe.run}
status=$?
cd / && rm -rf "$T"
exit $status
''')
        path.chmod(0o755)

    def run(self, variant, **more):
        """Runs a variant untraced. -> its exit status"""
        env = {k: v for k, v in self.environment(**more).items() if k != 'LD_PRELOAD' or more}
        return shell(f'{self.folder}/run {variant}', self.folder, self.log, {**env, 'PFX': more.get('PFX', '')},
                     RUN_SECONDS)

    def read(self):
        """The sources that are mutated, as they are now."""
        for pattern in self.recipe.sources:
            for path in sorted(glob.glob(str(self.source / pattern), recursive=True)):
                self.files[path] = csource.Source(pathlib.Path(path))
        if not self.files:
            raise Broken(f'no source in {self.recipe.sources}')

    def mutants(self):
        """All mutants of all types; a site that two types share belongs to the first."""
        found, seen = [], set()
        for kind in self.recipe.types:
            for source in self.files.values():
                for m in mutant.Maker(kind, source).all():
                    if m.key() not in seen and m.call.function.name not in self.recipe.known:
                        seen.add(m.key())
                        found.append(m)
        return found

    def reached(self, mutants):
        """-> site -> (how often the program's run comes by, how many of the objects end behind it), of those where it
        does come by. A build of its own has marks."""
        sites = {}
        for m in mutants:
            sites.setdefault(m.site, m)
        number = {site: i for i, site in enumerate(sites)}
        if len(number) * 8 > HITS_BYTES:
            raise Broken(f'{len(number)} sites are more than can be counted')
        for path, source in self.files.items():
            edits = [e for site, m in sites.items() if str(site[0]) == path for e in self.marks(m, number[site])]
            text = source.text
            for at, mark in sorted(edits, key=lambda e: -e[0]):
                text = text[:at] + mark + text[at:]
            source.path.write_bytes(text.encode('utf-8', 'surrogateescape'))
        try:
            if not self.build('marked'):
                raise Broken(f'does not build with its sites marked: {self.log}')
            counts = self.counted('marked')
        finally:
            self.restore()
        return {site: counts[i] for site, i in number.items() if counts[i][0]}

    def counted(self, variant):
        """Runs a variant that has marks. -> for each (how often it was passed, how many of the objects ended)"""
        hits = self.folder / 'hits'
        hits.write_bytes(bytes(HITS_BYTES))
        self.run(variant, RT_MUTATE_HITS=str(hits), PFX=f'env LD_PRELOAD={self.hit_library()}')
        numbers = array.array('I', hits.read_bytes())
        return list(zip(numbers[::2], numbers[1::2]))

    @staticmethod
    def marks(m, number):
        """What is put in where so that a call is counted; where the object is none, it does not count."""
        call = m.call
        mark = f'__extension__({{ if ({m.counted}) {PASS}((const void *)({m.object}), {number}); }})'
        if call.is_statement:
            return [(call.statement_begin, f'do {{ {mark}; '), (call.end, '; } while (0)')]
        return [(call.begin, f'({mark}, '), (call.end, ')')]

    def matters(self, m):
        """A put that comes too early is a fault only where it is the last one: a build of its own, with marks, tells."""
        if not m.early:
            return True
        ended = f'*(volatile unsigned *){HITS + 4:#x}'
        text = (f'do {{ const void *rt_object = (const void *)({m.early}); unsigned rt_ended = {ended}; '
                f'{PASS}(rt_object, 0); {m.call.text()}; if ({ended} != rt_ended) {PASS}(0, 1); }} while (0)')
        return self.build_mutant('marked', m, text) and self.counted('marked')[1][0] > 0

    def restore(self):
        for source in self.files.values():
            now = source.path.read_bytes()
            was = source.text.encode('utf-8', 'surrogateescape')
            if now != was:
                source.path.write_bytes(was)

    def build_mutant(self, variant, m, put=None):
        """put: what stands for the put that is too early"""
        try:
            m.call.source.path.write_bytes(m.apply(put).encode('utf-8', 'surrogateescape'))
            return self.build(variant)
        finally:
            self.restore()
