# SPDX-License-Identifier: GPL-2.0-only
"""Programs that are built with librefcnt, by mode, and what it says of them without what differs from run to run."""
import re
import subprocess
import unittest

import live

LIBRARY = live.BUILD / 'librefcnt'
SOURCES = live.SOURCE / 'tests' / 'live' / 'refcnt'
MODES = ('plain', 'shared', 'preloaded', 'tracking', 'tracker', 'checked', 'alias')
FRAMES = ['-fno-omit-frame-pointer', '-fno-optimize-sibling-calls']
_built = {}


def need_library():
    if not (LIBRARY / 'librefcnt.so').exists():
        raise unittest.SkipTest(f'{LIBRARY} is not built')


def flags(mode, cc='gcc'):
    """of the compiler; preloaded is a program of mode shared"""
    word = 'SHARED' if mode == 'preloaded' else mode.upper()
    return [f'-I{live.SOURCE / "include"}', f'-DREFCNT_MODE=REFCNT_{word}', '-pthread',
            *(['-fsanitize=address'] if mode == 'checked' else [])]


def libraries(mode):
    return [] if mode == 'plain' else [f'-L{LIBRARY}', '-lrefcnt', f'-Wl,-rpath,{LIBRARY}']


def program(source, mode, cc='gcc', more=(), options=('-O1', '-g', *FRAMES)):
    """Path of tests/live/refcnt/SOURCE in this mode, built once."""
    need_library()
    key = source, mode, cc, tuple(more), tuple(options)
    if key not in _built:
        tool = live.compiler(cc, source.endswith('.cc'))
        if not tool:
            raise unittest.SkipTest(f'{cc} is not installed')
        path = live.temp_path(f'{source.partition(".")[0]}-{mode}')
        command = [tool, '-w', *options, *flags(mode, cc), *more, str(SOURCES / source), '-o', str(path), *libraries(mode)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f'{" ".join(map(str, command))}\n{done.stderr}')
        _built[key] = path
    return _built[key]


def run(path, *arguments, mode='', **env):
    """-> (status as a shell says it, stdout, stderr)"""
    if mode == 'preloaded':
        env['LD_PRELOAD'] = str(LIBRARY / 'librefcnt-track.so')
    env.setdefault('ASAN_OPTIONS', 'detect_leaks=1:symbolize=1')
    return live.Process([path, *arguments], env=live.clean_env(**env)).wait(120)


def _threads(text):
    """Thread numbers in the order in which they come."""
    known = {}
    return re.sub(r'\bthread (\d+)', lambda m: f'thread {known.setdefault(m[1], len(known) + 1)}', text)


def plain(text):
    """What the library said: functions without their places, objects and handles as P."""
    lines = []
    for line in text.splitlines():
        frame = re.match(r'    #(\d+) (?:(\w[\w.:]*)\+(?:0x)?[0-9a-f]+ )?\(', line)
        if frame and frame[2]:
            lines.append(f'    {frame[2].partition(".")[0]}')
        elif not frame:
            lines.append(re.sub(r'0x[0-9a-f]+', 'P', line))
    return _threads('\n'.join(lines)).strip()


def sanitizer(text):
    """What AddressSanitizer and LeakSanitizer said: the kind, and of each stack the functions down to main."""
    lines, inside = [], False
    for line in text.splitlines():
        frame = re.match(r'    #\d+ 0x\w+ in (\w+)', line)
        if frame:
            if inside and not re.match(r'__|(free|malloc|calloc|\w+_alloc_more)$', frame[1]):
                lines.append(f'    {frame[1]}')
            inside = inside and frame[1] not in ('main', 'start_thread')
            continue
        kind = re.match(r'==\d+==ERROR: (\w+: [\w -]*?)( on address.*|: 0x.*)?$', line)
        leak = re.match(r'((?:Direct|Indirect) leak) of \d+ byte', line)
        by = re.match(r'(freed|previously allocated) by thread', line)
        inside = inside or bool(kind or leak or by or re.match('(READ|WRITE) of', line))
        if kind or leak or by:
            lines.append((kind or leak or by)[1].strip())
    return '\n'.join(lines)
