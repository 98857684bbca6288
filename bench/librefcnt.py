#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Nanoseconds for a get and its put, librefcnt by mode beside its rivals: ./dev bench librefcnt

`librefcnt.py BUILD [ROUNDS]`. All are run in turn, ROUNDS times (5); the line shows the least, of the quickest of 200
parts of each run. Under 16 frames where the mode takes stacks: with frame pointers and, `no fp`, without, where the
unwind tables are asked each time. What is measured is the shared library of BUILD, and never another one.
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent
FAST, SLOW, SYSCALLS = 20_000_000, 1_000_000, 50_000
FP, NO_FP = ['-fno-omit-frame-pointer', '-fno-optimize-sibling-calls'], ['-fomit-frame-pointer']


def pkg_config(*words):
    return shlex.split(subprocess.run(['pkg-config', *words], capture_output=True, text=True, check=True).stdout)


def programs(build, folder):
    """{name: (argv, what LD_PRELOAD is)}"""
    library = build / 'librefcnt'
    shared, track = library / 'librefcnt.so', library / 'librefcnt-track.so'
    for path in (shared, shared.with_suffix('.so.1'), track):
        if not path.exists():
            sys.exit(f'{path} is not built: ninja -C {build}')
    ours = ['-DCOUNTER=1', f'-I{SOURCE.parent / "include"}']
    link = [str(shared), f'-Wl,-rpath,{library}']
    glib = ['-DCOUNTER=3', *pkg_config('--cflags', 'glib-2.0')]
    made = {}

    def add(name, pairs, depth, flags, libraries=(), tool='gcc', source='librefcnt.c', preload=None):
        path = folder / name.replace(' ', '-').replace(',', '')
        subprocess.run([tool, '-O2', '-pthread', *flags, str(SOURCE / source), '-o', str(path), *libraries], check=True)
        made[name] = [str(path), str(pairs), str(depth)], preload

    def mode(word, *more):
        return [*ours, f'-DREFCNT_MODE=REFCNT_{word}', *more]
    add('bare atomic', FAST, 0, ['-DCOUNTER=2'])
    add('plain', FAST, 0, mode('PLAIN'))
    add('plain, counts shown', FAST, 0, mode('PLAIN', '-DREFCNT_SHOW_COUNTS', '-include', str(SOURCE / 'librefcnt-shown.h')))
    add('g_atomic_rc_box', FAST, 0, glib, pkg_config('--libs', 'glib-2.0'))
    add('std::shared_ptr', FAST, 0, [], tool='g++', source='librefcnt-shared-ptr.cc')
    add('shared', FAST, 0, mode('SHARED'), link)
    add('shared, preloaded', SLOW, 14, mode('SHARED', *FP), link, preload=str(track))
    add('tracking', SLOW, 14, mode('TRACKING', *FP), link)
    add('tracking, no fp', SYSCALLS, 14, mode('TRACKING', *NO_FP), link)
    add('tracker', SLOW, 14, mode('TRACKER', *FP), link)
    add('checked', SLOW // 4, 14, mode('CHECKED', '-fsanitize=address', *FP), link)
    add('alias', SYSCALLS, 14, mode('ALIAS', *FP), link)
    return made


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        made = programs(build, pathlib.Path(folder))
        least = {}
        for _ in range(rounds):
            for name, (argv, preload) in made.items():
                env = {'PATH': '/usr/bin:/bin', **({'LD_PRELOAD': preload} if preload else {})}
                done = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
                least[name] = min(least.get(name, float('inf')), float(done.stdout))
                if done.stderr:
                    sys.exit(f'{name} reported something:\n{done.stderr}')
    print(f'ns for a get and its put, least of {rounds} runs in turn')
    for name, ns in least.items():
        print(f'  {name:22} {ns:9.1f}   x {ns / least["bare atomic"]:8.2f} of a bare atomic')
    print(f'an operation of tracking with a stack of 16 frames: {least["tracking"] / 2:.1f} ns by frame pointers, '
          f'{least["tracking, no fp"] / 2:.1f} ns without any')


if __name__ == '__main__':
    main()
