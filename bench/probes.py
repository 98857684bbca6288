#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Markers and the build-id cache, reftrace beside perf on the same inputs: ./dev bench probes

Each line says how many of its cases came out right; what is right, the programs print themselves. Needs root, gcc and
ld.lld; the perf is $PERF, else the installed one. `probes.py BUILD [WORD...]`: only cases whose name holds a WORD; exit
status 1 when reftrace is not right in all.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = SOURCE / 'tests' / 'programs'
WRITERS, PADDINGS = 12, range(1, 8)
MASK = (1 << 64) - 1


def run(*words, env=None, check=False):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, errors='replace', check=check, env=env,
                          stdin=subprocess.DEVNULL)


def compile_program(target, name, *flags):
    run('gcc', '-O2', '-w', '-pthread', '-D_GNU_SOURCE', *flags, PROGRAMS / (name + '.c'), '-o', target, check=True)
    return target


def script(perf, data):
    """[(event, [argument values])] of a recording."""
    out = run(perf, 'script', '-i', data, '-F', 'event,trace').stdout
    found = []
    for line in out.splitlines():
        m = re.match(r'\s*(sdt_\w+:\w+):\s+\(\w+\)(.*)', line)
        if m:
            found.append((m[1].split(':')[1], dict(re.findall(r'(arg\d+)=(-?\w+)', m[2]))))
    return found


class Perf:
    """perf, with a cache of its own; it wants a marker to be put into the cache, then made an event, then recorded."""

    def __init__(self, perf, folder):
        self.perf, self.cache = perf, folder / 'perf-cache'
        self.data = folder / 'perf.data'
        self.words = [perf, '--buildid-dir', self.cache]

    def add(self, path):
        return run(*self.words, 'buildid-cache', '-a', path)

    def record(self, path, provider, names, *arguments):
        """-> (status, what the program printed, events); the events are gone afterwards"""
        self.add(path)
        events = []
        for name in names:
            if run(*self.words, 'probe', f'sdt_{provider}:{name}').returncode == 0:
                events += ['-e', f'sdt_{provider}:{name}']
        if not events:
            return None, '', []
        try:
            done = run(self.perf, 'record', '-q', '-N', '-o', self.data, *events, '--', path, *arguments)
        finally:
            run(self.perf, 'probe', '-q', '-d', f'sdt_{provider}:*')
            run(*self.words, 'buildid-cache', '-p', path)
        return done.returncode, done.stdout, script(self.perf, self.data)

    def write(self, path, number):
        return subprocess.Popen([*map(str, self.words), 'probe', '-q', '--cache', '-x', str(path),
                                 f'rt_bench{os.getpid()}:writer{number}=main'], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def clear(self):
        run(self.perf, 'probe', '-q', '-d', f'rt_bench{os.getpid()}:*')

    def written(self):
        self.clear()

    def listed(self):
        return run(*self.words, 'buildid-cache', '-l').stdout

    def use(self, path):
        """An event of a cached marker, its file not told; taken away again."""
        done = run(*self.words, 'probe', 'sdt_pad:plain').returncode == 0
        run(self.perf, 'probe', '-q', '-d', 'sdt_pad:*')
        return done

    def remove(self, path):
        run(*self.words, 'buildid-cache', '-r', path)

    def still_reads(self):
        done = run(*self.words, 'probe', '--cache', '-l')
        return done.returncode == 0 and 'sdt_op:reg' in done.stdout.replace('%', '')

    def objects(self, path, function, argument):
        """-> what the program printed, what the argument was at each hit of the function, inlined or not"""
        event = f'rt_bench{os.getpid()}:object'
        run(*self.words, 'probe', '-q', '-x', path, f'{event}={function} {argument}')
        done = run(self.perf, 'record', '-q', '-N', '-o', self.data, '-e', event, '--', path)
        self.written()
        text = run(self.perf, 'script', '-i', self.data, '-F', 'trace').stdout
        return done.stdout, [int(n, 0) & MASK for n in re.findall(rf'{argument}=(-?\w+)', text)]

    def add_probe(self, path, function):
        return run(self.perf, 'probe', '-q', '-x', path, function).returncode == 0

    def del_probes(self, path):
        run(self.perf, 'probe', '-q', '-d', f'probe_{path.name}:*')

    def keep(self, path, definition):
        """Into the cache alone: perf makes an event of it as well."""
        run(*self.words, 'probe', '-q', '--cache', '-x', path, f'rt_bench{os.getpid()}:{definition}')
        self.written()

    def use_kept(self, path, name):
        """-> words of a command that makes an event of a definition in the cache"""
        return [*map(str, self.words), 'probe', '-x', str(path), f'%rt_bench{os.getpid()}:{name}']


class Reftrace:
    def __init__(self, build, perf, folder):
        self.reftrace, self.writer, self.perf = build / 'reftrace', build / 'bench' / 'cache-writer', perf
        self.cache, self.data = folder / 'reftrace-cache', folder / 'reftrace.data'
        self.env = dict(os.environ, PERF_BUILDID_DIR=str(self.cache))

    def call(self, *words):
        return run(self.reftrace, *words, env=self.env)

    def add(self, path):
        return self.call('cache', 'add', path)

    def record(self, path, provider, _, *arguments):
        done = self.call('record', '-q', '-N', '-o', self.data, '-e', f'sdt_{provider}:*', '--', path, *arguments)
        return done.returncode, done.stdout, script(self.perf, self.data)

    def write(self, path, number):
        return subprocess.Popen([str(self.writer), str(self.cache), str(path), f'rt_bench:writer{number}=main',
                                 f'p:rt_bench/writer{number} {path}:0x1080'])

    def written(self):
        pass

    def listed(self):
        return self.call('cache', 'list').stdout

    def use(self, path):
        return self.call('probe', 'export', build_id(path), 'sdt_pad:plain').returncode == 0

    def remove(self, path):
        self.call('cache', 'rm', path)

    def still_reads(self):
        done = self.call('cache', 'list')
        shown = self.call('cache', 'show', done.stdout.split()[0]) if done.stdout else done
        return shown.returncode == 0 and '%sdt_op:reg=' in shown.stdout

    def objects(self, path, function, _):
        spool = self.data.with_suffix('.rt')
        done = self.call('run', '-w', spool, '-o', '/dev/null', '-P', f'type=ref get={function}:1', '--', path)
        text = self.call('script', '-i', spool).stdout
        return done.stdout, [int(n, 16) for n in re.findall(r'reftrace:ref_get: object=(0x\w+)', text)]

    def add_probe(self, path, function):
        return self.call('probe', 'add', '-q', '-x', path, function).returncode == 0

    def del_probes(self, path):
        self.call('probe', 'del', f'probe_{path.name}:*')

    def keep(self, path, definition):
        self.call('probe', 'add', '-q', '--cache', '-x', path, f'rt_bench{os.getpid()}:{definition}')
        self.clear()

    def clear(self):
        self.call('probe', 'del', f'rt_bench{os.getpid()}:*')

    def use_kept(self, path, name):
        return [str(self.reftrace), 'probe', 'add', '-q', '-x', str(path), f'%rt_bench{os.getpid()}:{name}']


def build_id(path):
    return re.search(r'Build ID: (\w+)', run('readelf', '-n', path).stdout)[1]


def writers(tool, folder):
    """12 at once: entries of them, and of the file's 15 markers, that are in the cache afterwards."""
    path = compile_program(folder / 'written', 'operands')
    tool.add(path)
    for process in [tool.write(path, n) for n in range(WRITERS)]:
        process.wait()
    tool.written()
    text = ''.join(p.read_text(errors='replace') for p in tool.cache.glob('**/probes'))
    kept = len(set(re.findall(r'^#\S*(writer\d+)=', text, re.M)))
    markers = len(set(re.findall(r'^%sdt_op:(\w+)=', text, re.M)))
    shutil.rmtree(tool.cache, ignore_errors=True)
    return kept, WRITERS, f'{markers} of 15 markers kept'


def operands(tool, folder):
    """Arguments of each form of operand, as the program prints them; two have an index, which tracefs cannot add."""
    path = compile_program(folder / 'operands', 'operands')
    names = [line.split()[1] for line in run(path).stdout.splitlines() if line.startswith('operand')]
    _, out, events = tool.record(path, 'op', names)
    said = dict(line.split()[1:] for line in out.splitlines() if line.startswith('operand'))
    wanted = [name for name in names if name not in ('index', 'whole')]
    seen = {name: args.get('arg2' if name == 'second' else 'arg1') for name, args in events}
    right = [n for n in wanted if seen.get(n) is not None and int(seen[n], 0) & MASK == int(said.get(n, '-1'), 16) & MASK]
    return len(right), len(wanted), 'wrong or none: ' + (' '.join(n for n in wanted if n not in right) or '-')


def linked(linker):
    def case(tool, folder):
        """7 builds that differ by padding: right are those whose markers and results are what they are alone."""
        right, faults = 0, []
        for pad in PADDINGS:
            path = compile_program(folder / f'{linker}{pad}', 'sdt-pad', f'-fuse-ld={linker}', '-Wl,--build-id=sha1',
                                   f'-DPAD={pad}', f'-DPAD_TEXT="{pad}"')
            alone = run(path).stdout.splitlines()[-1]
            status, out, events = tool.record(path, 'pad', ('plain', 'guarded'), 'wait')
            lines = out.splitlines()
            plain = [line.split()[1] for line in lines if line.startswith('plain')]
            guarded = [line.split()[1:] for line in lines if line.startswith('guarded')]
            good = (status == 0 and lines and lines[-1] == alone and len(guarded) == 7 and
                    [a.get('arg1') for n, a in events if n == 'plain'] == plain and
                    [[a.get('arg1'), a.get('arg2')] for n, a in events if n == 'guarded'] == guarded)
            right += good
            if not good:
                faults.append('crash' if status and status < 0 or status and status > 128 else
                              'wrong result' if lines and lines[-1] != alone else f'{len(events)} of 14 events')
        return right, len(PADDINGS), ', '.join(faults) or '-'
    return case


def short_id(tool, folder):
    """A build-id of 8 bytes, as lld makes it: listed, used and removed."""
    path = compile_program(folder / 'short', 'sdt-pad', '-fuse-ld=lld', '-Wl,--build-id=fast', '-DPAD=1', '-DPAD_TEXT="1"')
    tool.add(path)
    did = {'listed': build_id(path) in tool.listed(), 'used': tool.use(path)}
    there = any(tool.cache.glob(f'**/{build_id(path)}/elf'))
    tool.remove(path)
    did['removed'] = there and not any(tool.cache.glob(f'**/{build_id(path)}/elf'))
    shutil.rmtree(tool.cache, ignore_errors=True)
    return sum(did.values()), len(did), 'not: ' + (' '.join(k for k, v in did.items() if not v) or '-')


def damaged(tool, folder):
    """A probes file with a blank line in it, with a half line, with a first line that is none: still read."""
    path = compile_program(folder / 'damaged', 'operands')
    faults = []
    for what, change in (('blank line', lambda t: t.replace('\n%', '\n\n%', 1)), ('half line', lambda t: t + '#x=y\np:g/'),
                         ('first line', lambda t: 'nonsense\n' + t)):
        tool.add(path)
        for probes in tool.cache.glob('**/probes'):
            probes.write_text(change(probes.read_text()))
        if not tool.still_reads():
            faults.append(what)
        shutil.rmtree(tool.cache, ignore_errors=True)
    return 3 - len(faults), 3, 'not: ' + (', '.join(faults) or '-')


def inlined_objects(tool, folder):
    """A get inlined where its object is in a register, a member of what is there, loaded: the pointers that it prints."""
    path = compile_program(folder / 'inlined-member', 'inlined-member', '-g')
    printed, seen = tool.objects(path, 'ref_get', 'r')
    said = [int(n, 16) for n in re.findall(r'^get (\w+)$', printed, re.M)]
    right = sum(a == b for a, b in zip(said, seen)) if len(said) == len(seen) else 0
    wrong = ' '.join(f'{b:#x}' for a, b in zip(said, seen) if a != b)
    return right, len(said), f'{len(seen)} seen' + (f', not an object: {wrong}' if wrong else '')


def same_name(tool, folder):
    """A function of the same name in two programs: both get their event."""
    paths = [compile_program(folder / name, 'inlined-member', '-g') for name in ('one', 'other')]
    try:
        did = [tool.add_probe(path, 'loaded') for path in paths]
    finally:
        for path in paths:
            tool.del_probes(path)
    return sum(did), 2, '-' if all(did) else 'the second is refused'


def other_host(tool, folder):
    """Definitions of the cache where the file lies elsewhere and is stripped, and its old place is not there."""
    home = folder / 'home'
    home.mkdir(exist_ok=True)
    path = compile_program(home / 'moved', 'inlined-member', '-g', '-Wl,--build-id=sha1')
    names, events, right = ('direct', 'loaded', 'main'), pathlib.Path('/sys/kernel/tracing/uprobe_events'), 0
    for name in names:
        tool.keep(path, f'{name}={name}')
    there = folder / 'there'
    run('strip', '-o', there, path, check=True)
    hide = f'mount -t tmpfs none {home} && test ! -e {path} && exec "$@"'
    for name in names:
        run('unshare', '-m', 'sh', '-c', hide, 'sh', *tool.use_kept(there, name), env=getattr(tool, 'env', None))
        right += any(f'/{name} {there}:0x' in line for line in events.read_text().splitlines())
        tool.clear()
    shutil.rmtree(tool.cache, ignore_errors=True)
    return right, len(names), '-' if right else 'not found'


CASES = (('12 writers of one cache entry at once', writers), ('operands of markers', operands),
         ('markers, GNU ld, 7 paddings', linked('bfd')), ('markers, gold, 7 paddings', linked('gold')),
         ('markers, lld, 7 paddings', linked('lld')), ('markers, mold, 7 paddings', linked('mold')),
         ('8-byte build-id', short_id), ('damaged probes file', damaged),
         ('object of an inlined get', inlined_objects), ('one function name in two files', same_name),
         ('cached probes on another host', other_host))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    perf = os.environ.get('PERF') or shutil.which('perf')
    failed = False
    with tempfile.TemporaryDirectory(prefix='rt-probes-') as name:
        folder = pathlib.Path(name)
        ours = Reftrace(build, perf, folder)
        theirs = Perf(perf, folder)
        print(f'{"":38} {run(perf, "--version").stdout.strip():>18}    reftrace')
        for what, case in CASES:
            if sys.argv[2:] and not any(word in what for word in sys.argv[2:]):
                continue
            linker = what.split()[1].rstrip(',')
            if linker in ('gold', 'lld', 'mold') and not shutil.which('ld.' + linker) and not shutil.which(linker):
                print(f'{what:38} no linker {linker} (./dev test installs it)')
                continue
            right, count, note = case(theirs, folder)
            own, _, own_note = case(ours, folder)
            failed |= own != count
            print(f'{what:38} {right:>10} of {count:<2}    {own:>6} of {count:<2}   perf: {note}; reftrace: {own_note}',
                  flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
