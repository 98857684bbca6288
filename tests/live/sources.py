# SPDX-License-Identifier: GPL-2.0-only
"""Debian's sources for tests that build a real program: fetched once into the build folder, each test gets a copy."""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import unittest

import live

sys.path.insert(0, str(live.SOURCE / 'tests' / 'lib'))
import debian  # pylint: disable=wrong-import-position


def unpacked(package, *patches):
    """-> a folder of our own with the package's source and these patches; skips the test where it cannot be had"""
    try:
        pristine = debian.source(live.BUILD / 'sources' / package, package)
    except debian.Missing as e:
        raise unittest.SkipTest(f'the source of {package} cannot be had: {e}') from e
    folder = live.temp_path(package)
    shutil.copytree(pristine, folder, symlinks=True)
    for patch in patches:
        subprocess.run(['patch', '-p1', '-s', '-i', str(patch)], cwd=folder, check=True)
    return folder


def build(folder, target, cc, files, flags, libraries=()):
    """Compiles files of folder (globs) with -g and links target in it. -> its path"""
    tool = live.compiler(cc)
    if not tool:
        raise unittest.SkipTest(f'{cc} is not installed')

    def compile_one(path):
        done = subprocess.run([tool, '-w', '-g', '-D_GNU_SOURCE', *flags, '-c', str(path), '-o', f'{path}.{target}.o'],
                              capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            raise AssertionError(done.stderr)
        return f'{path}.{target}.o'
    paths = [p for glob in files for p in sorted(folder.glob(glob))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, paths))
    subprocess.run([tool, *flags, *objects, '-o', target, *libraries], cwd=folder, check=True)
    return folder / target


def stripped(path, name, link=True):
    """A stripped copy beside it; link: with its debug information in a file of its own, as Debian's -dbgsym has it"""
    copy = path.parent / name
    subprocess.run(['strip', '-o', str(copy), str(path)], check=True)
    if link:
        subprocess.run(['objcopy', '--only-keep-debug', str(path), f'{copy}.debug'], check=True)
        subprocess.run(['objcopy', f'--add-gnu-debuglink={copy}.debug', str(copy)], check=True)
    return copy
