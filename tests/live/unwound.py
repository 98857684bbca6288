# SPDX-License-Identifier: GPL-2.0-only
"""Stacks of a traced function as reftrace and as gdb see them, hit by hit: two unwinders that share no code.

Both run the same command without address randomisation, gdb with a breakpoint at the very instruction that reftrace
arms.
"""
import collections
import itertools
import json
import os
import struct
import subprocess

import live
import spool

ROOT, DEPTH, NO_ROW, OTHER_STACK = 0, 1, 7, 9  # enum rt_stack_end
ROWS = 4  # RT_FRAME_ROWS
MODULE_PATH = 56  # in struct rt_wire_module
GDB = r'''
import gdb, json, os
want = json.loads(os.environ['RT_WANT'])
for line in ('set pagination off', 'set confirm off', 'set backtrace past-main on', 'set backtrace past-entry on',
             'set debuginfod enabled off', 'set startup-with-shell off', 'set breakpoint pending on',
             'set disable-randomization on', 'unset environment LINES', 'unset environment COLUMNS',
             'unset environment RT_WANT', 'handle all nostop noprint pass', 'handle SIGTRAP stop noprint nopass',
             'set detach-on-fork on', 'set follow-fork-mode parent', 'set print thread-events off'):
    gdb.execute(line)
out = {'stacks': []}

def base(pid):
    for line in open(f'/proc/{pid}/maps'):
        words = line.split()
        if len(words) > 5 and words[5] == want['module']:
            return int(words[0].split('-')[0], 16)
    return None

def code(pid):
    maps = []
    for line in open(f'/proc/{pid}/maps'):
        words = line.split()
        if len(words) > 5 and 'x' in words[1]:
            start, end = (int(w, 16) for w in words[0].split('-'))
            maps.append((start, end, int(words[2], 16), words[5]))
    return maps

maps = []
def place(pc, pid):
    global maps
    for again in (False, True):
        for start, end, offset, path in maps:
            if start <= pc < end:
                return f'{path}+{pc - start + offset:#x}'
        maps = maps if again else code(pid)
    return hex(pc)

def walk():
    frames, after_signal = [], False
    f = gdb.newest_frame().older()
    while f is not None and f.is_valid():
        if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):  # neither is on the stack
            signal = f.type() == gdb.SIGTRAMP_FRAME
            # readers look before an address for the call: what was interrupted is told one byte further on
            frames.append(f.pc() + (signal or after_signal))
            after_signal = signal
        f = f.older()
    return frames

gdb.execute('set stop-on-solib-events 1')
gdb.execute('starti', to_string=True)
pid = gdb.selected_inferior().pid
while base(pid) is None:
    gdb.execute('continue', to_string=True)
gdb.execute('set stop-on-solib-events 0')
at = want['address'] + (base(pid) if want['moves'] else 0)
gdb.execute(f'break *{at:#x}', to_string=True)
while gdb.selected_inferior().pid and len(out['stacks']) < want['hits']:
    gdb.execute('continue', to_string=True)
    if not gdb.selected_inferior().pid:
        break
    if int(gdb.parse_and_eval('$pc')) == at and int(gdb.parse_and_eval('$rdi')):
        out['stacks'].append((gdb.selected_thread().num, [place(pc, pid) for pc in walk()]))
json.dump(out, open(want['out'], 'w'))
gdb.execute('kill', to_string=True) if gdb.selected_inferior().pid else None
'''


def ours(command, function, env=None, options=()):
    """-> ELF address of the armed instruction, [(thread, (frames, end, by rows))] of the events"""
    path = live.temp_path('rows')
    done = subprocess.run(['setarch', '-R', live.REFTRACE, 'run', '--no-follow', '-w', path,
                           '-o', os.devnull, *options, '-P', f'type=thing use={function}:1', '--', *map(str, command)], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL, env=env, timeout=300)
    with open(path, 'rb') as f:
        records = spool.read(f.read())[2]
    modules, points, stacks, events, maps = {}, [], {}, [], []

    def place(pc):
        for start, end, offset, module in reversed(maps):
            if start <= pc < end:
                return f'{modules[module]}+{pc - start + offset:#x}'
        return hex(pc)
    for r in records:
        kind, = struct.unpack_from('<B', r, 2)
        pid, tid = struct.unpack_from('<II', r, 16)
        if kind == 5:
            modules[struct.unpack_from('<I', r, 24)[0]] = r[MODULE_PATH:].split(b'\0')[0].decode()
        elif kind == 6:
            maps.append(struct.unpack_from('<QQQI', r, 24))
        elif kind == 4:
            points.append(struct.unpack_from('<IIIiQ', r, 24))
        elif kind == 2:
            number, nr, end = struct.unpack_from('<IHH', r, 24)
            frames = [struct.unpack_from('<QII', r, 32 + 16 * i) for i in range(nr)]
            stacks[pid, number] = [place(f[0]) for f in frames], end, bool(nr and frames[0][2] & ROWS)
        elif kind == 1:
            stack, = struct.unpack_from('<I', r, 56)
            events.append((tid, stacks[pid, stack]))
    assert len(points) == 1, (points, done.stderr)
    return points[0][4], events


def gdbs(command, module, address, hits, env):
    """-> (thread, frames) at each hit, up to the first that lies in no file: behind code that nothing tells of gdb guesses"""
    script, out = str(live.temp_path('walk.py')), str(live.temp_path('walk.json'))
    with open(script, 'w', encoding='ascii') as f:
        f.write(GDB)
    with open(module, 'rb') as f:
        moves = struct.unpack_from('<H', f.read(18), 16)[0] == 3
    want = {'module': os.path.realpath(module), 'address': address, 'moves': moves, 'hits': hits, 'out': out}
    done = subprocess.run(['gdb', '-nx', '-batch', '-ex', f'source {script}', '--args', *map(str, command)], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL, timeout=900,
                          env={**env, 'RT_WANT': json.dumps(want)})
    assert os.path.exists(out), done.stdout[-2000:] + done.stderr[-2000:]
    with open(out, encoding='ascii') as f:
        stacks = json.load(f)['stacks']
    return [(thread, tuple(itertools.takewhile(lambda frame: '+' in frame, s))) for thread, s in stacks]


def by_thread(hits):
    """Hits of threads come in any order; threads are numbered as they were made."""
    threads = {}
    for thread, what in hits:
        threads.setdefault(thread, []).append(what)
    return [threads[t] for t in sorted(threads)]


Result = collections.namedtuple('Result', 'events gdb ends by_rows different')


def held_against(events, theirs):
    different, seen = [], []
    for our, their in zip(by_thread(events), by_thread(theirs)):
        for at, ((frames, end, rows), walked) in enumerate(zip(our, their)):
            frames = tuple(frames)
            told = frames[:-1] if '+' not in frames[-1] and end == NO_ROW else frames  # code in no file
            if told != (walked if end == ROOT else walked[:len(told)]):
                different.append((at, end, frames, walked))
            seen.append((end, rows))
    return Result(len(events), len(theirs), collections.Counter(e[0] for e in seen), sum(e[1] for e in seen), different)


def compare(command, function, module, ways, hits=2000):
    """
    The first hits of a function in a module, as reftrace with each of these lists of options and as gdb see them. Ends:
    how many of our stacks end why; different: those of our stacks that are not what gdb saw at that hit, down to the
    outermost frame or to where ours say that they end.
    """
    env, known = {**os.environ, '_': 'x'}, {}
    for name in ('LINES', 'COLUMNS'):
        env.pop(name, None)
    for options in ways:
        address, events = ours(command, function, env, options)
        # engines choose the instruction that each of them arms best
        if address not in known:
            known[address] = gdbs(command, module, address, hits, env)
        yield options, held_against(events, known[address])
