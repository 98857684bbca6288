# SPDX-License-Identifier: GPL-2.0-only
"""Debian's json-c with its own suite: 23 tests that ctest starts, each a shell script around some programs."""
import os
import pathlib
import shutil
import subprocess

TEST = 'tests/test_util_file.c'
LEAKER = 'test_read_valid_with_fd'  # of that file; the first put in it is that of the document it has read
PUT = 'json_object_put(jso);'
RUN = ('ctest',)
# else each program runs in valgrind, where there is one
ENVIRONMENT = {'USE_VALGRIND': '0'}


def build(pristine, folder, leak):
    """Builds a copy of the source in folder. leak: one test gives one object not back. -> where RUN is to be run"""
    shutil.copytree(pristine, folder, symlinks=True)
    if leak:
        path = pathlib.Path(folder, TEST)
        text = path.read_text(encoding='utf-8')
        at = text.index(PUT, text.index(f'static void {LEAKER}(const char *testdir)\n'))
        path.write_text(text[:at] + ';' + text[at + len(PUT):], encoding='utf-8')
    built = pathlib.Path(folder, 'b')
    for command in (['cmake', '-S', str(folder), '-B', str(built), '-DCMAKE_BUILD_TYPE=RelWithDebInfo', '-DBUILD_STATIC_LIBS=OFF'],
                    ['make', '-C', str(built), f'-j{os.cpu_count()}']):
        subprocess.run(command, check=True, capture_output=True)
    return built
