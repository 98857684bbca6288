# SPDX-License-Identifier: GPL-2.0-only
"""Libraries whose counting is inlined into programs, or that call back: a C program of this folder uses each."""
import os
import pathlib
import shutil
import subprocess

from uses.calls import folder, skip

HERE = pathlib.Path(__file__).resolve().parent


def program(name, *packages, flags=()):
    """-> what compiles NAME.c, for these packages of pkg-config, and becomes it; $USES_BUILD: a folder that keeps it"""
    def run():
        target = os.path.join(os.environ.get('USES_BUILD') or folder(), name)
        if not os.path.exists(target):
            cc = shutil.which('gcc') or shutil.which('clang-14')
            found = subprocess.run(['pkg-config', '--cflags', '--libs', *packages], capture_output=True, text=True,
                                   check=False)
            if not cc or found.returncode:
                skip(f'no compiler, or no headers of {" ".join(packages)}: {found.stderr.strip()}')
            cmd = [cc, '-g', '-O2', '-D_GNU_SOURCE', '-Wall', '-Wno-deprecated-declarations', str(HERE / f'{name}.c'),
                   *found.stdout.split(), *flags, '-o', target]
            done = subprocess.run(cmd, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f'{" ".join(cmd)}\n{done.stderr}')
        os.execv(target, [target])
    run.__name__ = name
    return run


ALL = (program('jansson', 'jansson'), program('tcl', 'tcl8.6'), program('sdl2', 'sdl2'),
       program('wayland', 'wayland-server', 'wayland-client'),
       program('wlroots', 'wlroots', flags=['-DWLR_USE_UNSTABLE']), program('apr_util', 'apr-util-1', 'apr-1'),
       program('cpython', 'python3-embed'), program('glusterfs', 'glusterfs-api', flags=['-lglusterfs']),
       program('nghttp2', 'libnghttp2'))
