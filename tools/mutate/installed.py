#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Drops one call of a put from an installed program, as it was shipped, and asks reftrace who is guilty.

    installed.py BUILD [--seed N] [--count N] [--least N] [-P SPEC]... [-n] FILE PUT[,PUT...] COMMAND

FILE is a program or a library that COMMAND, a line for the shell, runs in an empty folder. Of its calls of the functions
PUT, and jumps to them from the end of others, those that are done at least LEAST times (8) are candidates; COUNT of them
(1) are chosen by the seed. Each is done without in a copy of FILE, which lies over the real one while COMMAND is traced,
in a mount namespace of its own (-n: no more than the candidates are printed). It is named where the first suspect is
the function that had the call; functions are told apart by the unwind table, as stripped files have no names.

The calls are objdump's, the table is readelf's, how often a call is done tells a uprobe of the kernel's own.
"""
import argparse
import bisect
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

GROUP = 'rt_installed'
TIMEOUT = 120
CALL = re.compile(r'^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:bnd |notrack )*(call|jmp)\s+[^#]*(?:#\s*\S+ )?<(\w+)(?:@plt|@@?[\w.]+)?>$')
NOP, RET = b'\x90', b'\xc3'


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, errors='replace', check=True).stdout


@contextlib.contextmanager
def tracefs():
    """A mount of tracefs for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix='rt-tracefs-') as folder:
        subprocess.run(['mount', '-t', 'tracefs', 'tracefs', folder], check=True)
        try:
            yield pathlib.Path(folder)
        finally:
            subprocess.run(['umount', folder], check=True)


def define(events, text):
    file = os.open(events, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode() + b'\n')
    finally:
        os.close(file)


class Call:
    def __init__(self, address, size, kind):
        self.address, self.size, self.kind, self.hits = address, size, kind, 0


class Binary:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.name = self.path.name
        self.image = self.path.read_bytes()
        self.loads = [tuple(int(n, 16) for n in m) for m in
                      re.findall(r'^\s*LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)', tool('readelf', '-lW', str(self.path)), re.M)]
        frames = tool('readelf', '--debug-dump=frames', str(self.path))
        self.functions = sorted((int(a, 16), int(b, 16)) for a, b in re.findall(r'FDE cie=\w+ pc=(\w+)\.\.(\w+)', frames))
        build_id = re.search(r'Build ID: (\w+)', tool('readelf', '-n', str(self.path)))
        self.build_id = bytes.fromhex(build_id.group(1)) if build_id else None

    def offset(self, address):
        """Of an address of the image, in the file."""
        for offset, start, size in self.loads:
            if start <= address < start + size:
                return address - start + offset
        raise ValueError(f'{address:#x} is not in {self.path}')

    def function(self, address):
        """Where the function begins and ends that has the address; None: no unwind table says so."""
        i = bisect.bisect_right(self.functions, (address, 1 << 64)) - 1
        return self.functions[i] if i >= 0 and address < self.functions[i][1] else None

    def calls(self, names):
        found = []
        for line in tool('objdump', '-d', '--wide', '-j', '.text', str(self.path)).splitlines():
            m = CALL.match(line)
            if m and m.group(4) in names and self.function(int(m.group(1), 16)):
                found.append(Call(int(m.group(1), 16), len(m.group(2).split()), m.group(3)))
        return found

    def count(self, calls, run):
        """Sets how often each of the calls is done while run() runs, in all processes."""
        with tracefs() as folder:
            events = {f'c{i}': call for i, call in enumerate(calls)}
            try:
                for name, call in events.items():
                    define(folder / 'uprobe_events', f'p:{GROUP}/{name} {self.path}:{self.offset(call.address):#x}')
                enable = folder / 'events' / GROUP / 'enable'
                enable.write_text('1')
                run()
                enable.write_text('0')
                for name, hits in re.findall(r' (c\d+)\s+(\d+)', (folder / 'uprobe_profile').read_text()):
                    if name in events:
                        events[name].hits = int(hits)
            finally:
                for name in events:
                    with contextlib.suppress(OSError):
                        define(folder / 'uprobe_events', f'-:{GROUP}/{name}')

    def without(self, call, folder):
        """Writes the file without the call into a folder, by a build-id of its own: it is another file."""
        at, image = self.offset(call.address), bytearray(self.image)
        image[at:at + call.size] = (RET if call.kind == 'jmp' else NOP) + NOP * (call.size - 1)
        if self.build_id:
            image[image.index(self.build_id)] ^= 0xff
        target = folder / self.name
        target.write_bytes(image)
        target.chmod(0o755)


# Over the file itself, for this command only: where a library lies it is looked for by some, and by its name by others.
INSTEAD = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def run(command, folder, instead=(), prefix=()):
    """In a new folder. instead: (copy, file that it is there for). -> status; None: it does not end"""
    folder.mkdir()
    words = ['unshare', '-m', 'sh', '-c', INSTEAD, 'sh', *instead] if instead else []
    try:
        return subprocess.run([*prefix, *words, 'sh', '-c', command], cwd=folder, env={**os.environ, 'HOME': str(folder)},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False).returncode
    except subprocess.TimeoutExpired:
        return None


def judge(binary, call, options, folder):
    """-> what is said of a copy without the call"""
    place, answer = folder / 'copy', folder / 'answer.json'
    start, end = binary.function(call.address)
    place.mkdir()
    binary.without(call, place)
    instead = (place / binary.name, binary.path)
    if run(options.command, folder / 'bare', instead) is None:
        return 'its run does not end'
    told = [word for spec in options.pairs for word in ('-P', spec)]
    run(options.command, folder / 'traced', instead,
        (options.build.resolve() / 'reftrace', 'run', '-q', '-o', os.devnull, f'--json={answer}', *told, '--'))
    if not answer.exists():
        return 'no answer'
    found = sorted(json.loads(answer.read_text())['findings'], key=lambda f: -f['confidence'])
    for i, finding in enumerate(found):
        guilty = finding['guilty'] or {}
        if pathlib.Path(guilty.get('module') or '').name == binary.name and guilty.get('start') and \
                start <= int(guilty['start'], 16) < end:
            return f'named, number {i + 1}, {finding["confidence"]:.2f}'
    return 'not named' + (f'; first {found[0]["type"]}, {found[0]["confidence"]:.2f}' if found else '; nothing found')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--seed', default='1')
    parser.add_argument('--count', type=int, default=1)
    parser.add_argument('--least', type=int, default=8)
    parser.add_argument('-P', dest='pairs', action='append', default=[])
    parser.add_argument('-n', dest='dry', action='store_true')
    parser.add_argument('file')
    parser.add_argument('puts')
    parser.add_argument('command')
    options = parser.parse_args()
    for needed in ('objdump', 'readelf', 'mount', 'unshare'):
        if not shutil.which(needed):
            sys.exit(f'installed.py: {needed} is not installed')
    binary = Binary(options.file)
    calls = binary.calls(options.puts.split(','))
    if not calls:
        sys.exit(f'installed.py: {options.file} calls none of {options.puts}')
    with tempfile.TemporaryDirectory(prefix='rt-installed-') as temp:
        binary.count(calls, lambda: run(options.command, pathlib.Path(temp, 'bare')))
        chosen = [call for call in calls if call.hits >= options.least]
        print(f'{binary.name}: {len(calls)} calls, {len(chosen)} done {options.least} times or more', flush=True)
        random.Random(f'{binary.name} {options.seed}').shuffle(chosen)
        for call in chosen[:options.count]:
            folder = pathlib.Path(temp, f'{call.address:x}')
            folder.mkdir()
            said = 'a candidate' if options.dry else judge(binary, call, options, folder)
            print(f'  {call.address:#x} in the function at {binary.function(call.address)[0]:#x}, done {call.hits} times: {said}', flush=True)
    return 0 if chosen else 1


if __name__ == '__main__':
    sys.exit(main())
