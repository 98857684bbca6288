# SPDX-License-Identifier: GPL-2.0-only
"""Stacks of a traced function as reftrace and as gdb see them, hit by hit: two unwinders that share no code.

Both run the same command without address randomisation, gdb with a breakpoint at the very instruction that reftrace
arms. Counted are hits of the first thread.
"""
import json
import os
import struct
import subprocess

import live
import spool

ROOT, DEPTH, ROWS = 0, 1, 4
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
out = {'stacks': {}, 'hits': 0}

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
gdb.execute(f'hbreak *{at:#x}' if want.get('hardware') else f'break *{at:#x}', to_string=True)
wanted, step, n = set(), want['every'], 0
while gdb.selected_inferior().pid and out['hits'] < want['hits']:
    gdb.execute('continue', to_string=True)
    if not gdb.selected_inferior().pid:
        break
    if int(gdb.parse_and_eval('$pc')) != at or gdb.selected_thread().num != 1 or not int(gdb.parse_and_eval('$rdi')):
        continue
    if out['hits'] % step in (0, 1):
        out['stacks'][out['hits']] = [place(pc, pid) for pc in walk()]
    out['hits'] += 1
json.dump(out, open(want['out'], 'w'))
gdb.execute('kill', to_string=True) if gdb.selected_inferior().pid else None
'''


def ours(command, function, env=None):
    """-> point's (module, ELF address), [(frames, end, by rows)] of the first thread's events"""
    path = live.temp_path('rows')
    done = subprocess.run(['setarch', '-R', live.REFTRACE, 'run', '--no-follow', '-w', path,
                           '-o', os.devnull, '-P', f'type=thing use={function}:1', '--', *command], capture_output=True,
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
        elif kind == 1 and tid == pid & (1 << 22) - 1:
            stack, = struct.unpack_from('<I', r, 56)
            events.append(stacks[pid, stack])
    assert len(points) == 1, (points, done.stderr)
    return modules[points[0][2]], points[0][4], events


def gdbs(command, module, address, moves, hits, every, env=None):
    script, out = str(live.temp_path('walk.py')), str(live.temp_path('walk.json'))
    with open(script, 'w', encoding='ascii') as f:
        f.write(GDB)
    want = {'module': os.path.realpath(module), 'address': address, 'moves': moves, 'hits': hits, 'every': every, 'out': out}
    done = subprocess.run(['gdb', '-nx', '-batch', '-ex', f'source {script}', '--args', *command], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL, timeout=900,
                          env={**(env or os.environ), 'RT_WANT': json.dumps(want)})
    assert os.path.exists(out), done.stdout[-2000:] + done.stderr[-2000:]
    with open(out, encoding='ascii') as f:
        return json.load(f)


def compare(command, function, module, hits=2000, every=7, env=None):
    """-> dict of counts: compared, equal, rooted, shorter (marked), wrong; and the first differences"""
    env = dict(env or os.environ)
    for name in ('LINES', 'COLUMNS'):
        env.pop(name, None)
    with open(module, 'rb') as f:
        moves = struct.unpack_from('<H', f.read(18), 16)[0] == 3
    _, address, events = ours(command, function, env)
    theirs = gdbs(command, module, address, moves, hits, every, env)
    result = {'events': len(events), 'compared': 0, 'equal': 0, 'rooted': 0, 'marked': 0, 'wrong': 0, 'by_rows': 0, 'ends': {},
              'different': []}
    for at, walked in theirs['stacks'].items():
        # behind code without unwind information gdb guesses, and comes to what is no code
        walked = walked[:next((i for i, f in enumerate(walked) if '+' not in f), len(walked))]
        if int(at) >= len(events):
            break
        frames, end, rows = events[int(at)]
        result['compared'] += 1
        result['by_rows'] += rows
        result['ends'][end] = result['ends'].get(end, 0) + 1
        whole = len(frames) == len(walked) if end == ROOT else len(frames) <= len(walked)
        if frames != walked[:len(frames)] or not whole:
            result['wrong'] += 1
            result['different'].append((int(at), end, frames, walked))
        elif end in (ROOT, DEPTH):
            result['equal'] += 1
            result['rooted'] += end == ROOT
        else:
            result['marked'] += 1
            result['different'].append((int(at), end, frames, walked))
    return result
