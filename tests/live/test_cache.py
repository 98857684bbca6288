# SPDX-License-Identifier: GPL-2.0-only
"""The build-id cache beside perf's own commands on the same folder."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import unittest

import live

PYTHON = '/usr/bin/python3.11'


def entries(path):
    """{header: [line]} of a probes file"""
    found, last = {}, None
    for line in pathlib.Path(path).read_text(encoding='utf-8').splitlines():
        if line[:1] in '%#':
            last = line
            found[last] = []
        else:
            found[last].append(line)
    return found


def mapped_vdso():
    """The vdso of this very process."""
    line = next(line for line in pathlib.Path('/proc/self/maps').read_text().splitlines() if line.endswith('[vdso]'))
    start, end = (int(text, 16) for text in line.split()[0].split('-'))
    with open('/proc/self/mem', 'rb') as memory:
        memory.seek(start)
        return memory.read(end - start)


class Cache(live.LiveTest):
    def setUp(self):
        live.need_binary()
        self.root = live.temp_path('cache')
        self.program = live.program('missing-put', 'gcc', ('-g', '-O1'))

    def call(self, *words, status=0):
        run = live.call('cache', '--buildid-dir', self.root, *words)
        self.assertEqual(run.status, status, str(run))
        return run.stdout

    def perf(self, *words):
        return subprocess.run(['perf', '--buildid-dir', str(self.root), *map(str, words)], capture_output=True, text=True,
                              check=True).stdout

    def build_id(self, path):
        text = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=True).stdout
        return text.split('Build ID: ')[1].split()[0]

    def address(self, path, name):
        text = subprocess.run(['nm', str(path)], capture_output=True, text=True, check=True).stdout
        return next(int(line.split()[0], 16) for line in text.splitlines() if line.endswith(f' T {name}'))

    def test_perf_finds_what_we_add(self):
        self.call('add', self.program)
        ident = self.build_id(self.program)
        self.assertIn(ident, self.perf('buildid-cache', '-l'))
        self.assertIn(ident, self.call('list'))
        self.perf('buildid-cache', '-r', self.program)
        self.assertNotIn(ident, self.call('list'))

    def test_we_find_what_perf_adds(self):
        self.perf('buildid-cache', '-a', self.program)
        ident = self.build_id(self.program)
        self.assertIn('1 of 1', self.call('verify'))
        self.assertIn(str(self.program), self.call('show', ident[:6]))
        self.call('rm', self.program)
        self.assertEqual(self.perf('buildid-cache', '-l'), '')
        self.assertEqual([p for p in self.root.rglob('*') if not p.is_dir()], [])

    def test_several_paths(self):
        """One build-id at several paths: all are known, each can be taken away, and perf sees one sound entry throughout."""
        ident = self.build_id(self.program)
        paths = [live.temp_path('one'), live.temp_path('two'), live.temp_path('three')]
        paths = [folder / 'program' for folder in paths if folder.mkdir() is None]
        for path in paths:
            shutil.copy(self.program, path)
        self.perf('buildid-cache', '-a', paths[0])
        for path in (*paths[1:], paths[1], paths[0]):
            self.call('add', path)

        def seen():
            text = self.call('list')
            self.assertEqual(text.count(ident), 1, text)
            self.assertIn(ident, self.perf('buildid-cache', '-l'))
            self.assertIn('1 of 1', self.call('verify'))
            return [line.split()[-3 if '(the same)' in line else -2] for line in text.splitlines()]
        self.assertEqual(seen(), list(map(str, paths)))
        # by a path where nothing lies any more
        paths[2].unlink()
        self.assertIn(ident, self.call('show', paths[2]))
        self.call('rm', paths[2])
        self.assertEqual(seen(), list(map(str, paths[:2])))
        # the first one's place goes to the next, and nothing of it stays
        self.call('rm', paths[0])
        self.assertEqual(seen(), [str(paths[1])])
        self.assertEqual([p for p in self.root.rglob('*') if str(paths[0].parent) in str(p)], [])
        self.assertEqual((self.root / str(paths[1]).lstrip('/') / ident / 'elf').read_bytes(), paths[1].read_bytes())
        # perf takes all of it
        self.call('add', paths[0])
        self.perf('buildid-cache', '-r', paths[1])
        self.assertEqual(self.call('list'), '')
        self.assertEqual([p for p in self.root.rglob('*') if p.is_file() or p.is_symlink()], [])
        # and so do we
        for path in paths[:2]:
            self.call('add', path)
        self.call('rm', ident[:8])
        self.assertEqual([p for p in self.root.rglob('*') if p.is_file() or p.is_symlink()], [])

    def test_definitions_at_another_path(self):
        """A definition that was kept for one path is used at the other, named or not."""
        live.need_engine()
        paths = [live.temp_path('here'), live.temp_path('there')]
        paths = [folder / 'program' for folder in paths if folder.mkdir() is None]
        for path in paths:
            shutil.copy(self.program, path)
            self.call('add', path)
        env = live.clean_env(PERF_BUILDID_DIR=str(self.root))
        run = live.call('probe', 'add', '--cache', '-x', paths[0], 'kept:get=session_ref', env=env)
        self.assertEqual(run.status, 0, str(run))
        live.call('probe', 'del', 'kept:get', env=env)
        paths[0].unlink()
        shown = live.call('probe', 'show', '%kept:get', env=env)
        self.assertIn(f'p:kept/get {paths[1]}:0x', shown.stdout, str(shown))

    @unittest.skipUnless(os.access(PYTHON, os.X_OK), f'{PYTHON} is not installed')
    def test_markers_as_perf_writes_them(self):
        ident = self.build_id(PYTHON)
        self.perf('buildid-cache', '-a', PYTHON)
        place = next(self.root.rglob(ident)) / 'probes'
        want = entries(place)
        self.assertEqual(len(want), 8)
        shutil.rmtree(self.root)
        self.call('add', PYTHON)
        self.assertEqual(entries(next(self.root.rglob(ident)) / 'probes'), want)
        self.assertIn('sdt_python:gc__start', self.perf('list', 'sdt'))

    def test_operands(self):
        """Each marker's line is one that the kernel takes; what has no words there is said."""
        program = live.program('operands', 'gcc', ('-O2',))
        self.assertIn('2 arguments of its markers left out', self.call('add', program))
        lines = sum(entries(next(self.root.rglob(self.build_id(program))) / 'probes').values(), [])
        self.assertEqual(len(lines), 15)
        live.need_engine()
        for line in lines:
            with open('/sys/kernel/tracing/uprobe_events', 'r+', encoding='utf-8') as f:
                f.write(line.replace('p:sdt_op/', f'p:operands{os.getpid()}/') + '\n')
            with open('/sys/kernel/tracing/uprobe_events', 'r+', encoding='utf-8') as f:
                f.write(f'-:operands{os.getpid()}/{line.split()[0].split("/")[1]}\n')

    def test_richer_file(self):
        """Of one build-id, the file that tells more is kept, whichever came first, with what it says of its markers."""
        full, bare = live.temp_path('full'), live.temp_path('bare')
        shutil.copy(live.program('operands', 'gcc', ('-O2',)), full)
        subprocess.run(['strip', '-o', str(bare), str(full)], check=True)
        told = []
        for order in ((bare, full), (full, bare)):
            for path in order:
                self.call('add', path)
            place = next(self.root.rglob(self.build_id(full)))
            self.assertEqual((place / 'elf').read_bytes(), full.read_bytes())
            told.append([line.partition(' ')[2] for line in sum(entries(place / 'probes').values(), [])])
            told[-1] = [line.partition(':0x')[2] for line in told[-1]]
            # first seen where nothing is any more
            first = order[0].rename(live.temp_path('moved'))
            for path in order:
                self.assertIn('removed', self.call('rm', path))
            first.rename(order[0])
            self.assertEqual(self.call('list'), '')
        self.assertEqual(*told)

    def test_kernel(self):
        """kallsyms and vdso, as perf keeps them."""
        if os.geteuid():
            self.skipTest('needs root: the kernel shows its names to nobody else')
        live.need_mount_namespace()
        spin = live.temp_path('spin')
        subprocess.run(['gcc', '-O1', '-x', 'c', '-', '-o', str(spin)], check=True, text=True, input=(
            '#include <time.h>\nint main(void) { struct timespec t; for (long i = 0; i < 30000000; i++)'
            ' clock_gettime(CLOCK_MONOTONIC, &t); return 0; }'))
        self.perf('record', '-q', '-F', '999', '-e', 'cpu-clock', '-o', live.temp_path('data'), spin)
        parts = [next(self.root.glob(f'{folder}/*/{name}'), None) for folder, name in
                 (('[[]vdso]', 'vdso'), ('[[]kernel.kallsyms]', 'kallsyms'))]
        want = [part and part.read_bytes() for part in parts]
        # perf 7.2 keeps none
        if parts[0]:
            self.assertRegex(self.call('list'), r'\[vdso\]  \((probes,)?vdso\)')
            self.assertIn('removed', self.call('rm', '[vdso]'))
        shutil.rmtree(self.root)
        self.call('add', '[vdso]', '[kernel.kallsyms]')
        self.assertEqual(self.kernels()['vdso'].read_bytes(), mapped_vdso())
        if parts[0]:
            self.assertEqual(parts[0].read_bytes(), want[0])
        if parts[1]:
            # other tests load and unload BPF programs
            self.assertEqual(*([line for line in text.splitlines() if not line.endswith(b'[bpf]')]
                               for text in (parts[1].read_bytes(), want[1])))
        self.assertIn('2 of 2', self.call('verify'))
        # it lists no vdso, not even its own: there is no such path
        self.assertIn('[kernel.kallsyms]', self.perf('buildid-cache', '-l'))

    def proc(self):
        """A /proc with a kernel's memory and names, and a /sys beside it, as perf looks for them. -> its kcore"""
        page, text, modules = 4096, 0xffffffff81000000, 0xffffffffc0000000
        loads = [(0xffff888000000000, 3), (modules, 8), (text, 16)]
        folder = live.temp_path('machine')
        (folder / 'proc').mkdir(parents=True)
        (folder / 'sys/kernel').mkdir(parents=True)
        head = struct.pack('<4s12xHHIQQQIHHHHHH', b'\x7fELF', 4, 62, 1, 0, 64, 0, 0, 64, 56, len(loads), 0, 0, 0)
        head, at, memory = bytearray(head), 2 * page, b''
        head[4:7] = bytes((2, 1, 1))
        for start, pages in loads:
            head += struct.pack('<IIQQQQQQ', 1, 7, at, start, 0, pages * page, pages * page, page)
            memory += b''.join(start.to_bytes(8, 'little') + n.to_bytes(2, 'little') * 2044 for n in range(pages))
            at += pages * page
        (folder / 'proc/kcore').write_bytes(bytes(head).ljust(2 * page, b'\0') + memory)
        names = [(0, 'A', 'percpu', ''), (text, 'T', '_text', ''), (text + 0x1000, 'T', '_stext', ''), (text + 0x9abc, 't', 'f', ''),
                 (text + 0xa123, 'T', '_etext', ''), (text + 0xf000, 'D', 'data', ''), (modules + 0x2010, 't', 'one', '\t[mod]'),
                 (modules + 0x2400, 't', 'last', '\t[mod]')]
        (folder / 'proc/kallsyms').write_text(''.join(f'{n[0]:016x} {n[1]} {n[2]}{n[3]}\n' for n in names))
        (folder / 'proc/modules').write_text(f'mod 16384 0 - Live {modules + 0x2000:#018x}\n')
        (folder / 'sys/kernel/notes').write_bytes(struct.pack('<III', 4, 20, 3) + b'GNU\0' + bytes(range(20)))
        return folder / 'proc/kcore'

    def test_kcore(self):
        """The code of a kernel: perf's copy and ours are the same bytes, and neither makes a second one beside the other's."""
        kcore, ident = self.proc(), bytes(range(20)).hex()
        self.perf('buildid-cache', '-k', kcore)
        copies = self.root / '[kernel.kcore]' / ident

        def files():
            folders = list(copies.iterdir())
            self.assertEqual(len(folders), 1)
            self.assertRegex(folders[0].name, r'^20\d{14}$')
            return {p.name: (p.read_bytes(), oct(p.stat().st_mode)) for p in folders[0].iterdir()}
        want = files()
        self.assertEqual(set(want), {'kcore', 'kallsyms', 'modules'})
        self.assertRegex(self.call('list'), rf'{ident} +\d+\.\d KiB  \[kernel.kcore\]  \(kcore\)')
        self.assertIn('was there', self.call('add', kcore))
        self.assertIn('removed', self.call('rm', '[kernel.kcore]'))
        self.assertEqual(self.call('list'), '')
        self.assertIn('added', self.call('-k', kcore))
        self.assertEqual(files(), want)
        self.perf('buildid-cache', '-k', kcore)
        self.assertEqual(files(), want)
        self.assertIn('1 of 1', self.call('verify'))
        # modules came and went: another copy; the kernel's names beside it are of the same id
        kcore.with_name('modules').write_text(kcore.with_name('modules').read_text().replace('mod', 'other'))
        self.assertIn('added', self.call('add', kcore))
        self.assertEqual(len(list(copies.iterdir())), 2)
        names = self.root / '[kernel.kallsyms]' / ident
        names.mkdir(parents=True)
        (names / 'kallsyms').write_text('ffffffff81000000 T _text\n')
        link = self.root / '.build-id' / ident[:2] / ident[2:]
        link.parent.mkdir(parents=True)
        link.symlink_to(f'../../[kernel.kallsyms]/{ident}')
        self.assertRegex(self.call('list'), r'\[kernel.kallsyms\]  \(kallsyms,kcore\)\n.*\[kernel.kcore\]  \(the same\)\n$')
        self.call('rm', '[kernel.kcore]')
        self.assertRegex(self.call('list'), r'\[kernel.kallsyms\]  \(kallsyms\)\n$')
        self.call('add', kcore)
        self.call('rm', ident)
        self.assertEqual([p for p in self.root.rglob('*') if not p.is_dir()], [])

    def test_name_without_slash(self):
        """A file of this folder by its mere name, as it was added; digits alone are an id."""
        folder = self.program.parent
        for verb, want in (('add', 'added'), ('show', self.build_id(self.program)), ('rm', 'removed')):
            run = live.call('cache', '--buildid-dir', self.root, verb, self.program.name, cwd=folder)
            self.assertEqual(run.status, 0, str(run))
            self.assertIn(want, run.stdout)
        run = live.call('cache', '--buildid-dir', self.root, 'show', 'nothere', cwd=folder)
        self.assertEqual((run.status, 'cannot read nothere' in run.stderr), (125, True), str(run))
        run = live.call('cache', '--buildid-dir', self.root, 'show', 'cafe', cwd=folder)
        self.assertEqual((run.status, 'has no build-id cafe' in run.stderr), (125, True), str(run))

    def test_kcore_refused(self):
        """No copy of what cannot be read, or says nothing: the reason is named and nothing is left."""
        for name, change, why in (
                ('kallsyms', lambda text: re.sub(rb'(?m)^[0-9a-f]{16}', b'0' * 16, text), 'does not show its addresses'),
                ('kallsyms', lambda text: text.replace(b'ffffffff81', b'ffffffff91'), "does not hold the kernel's text"),
                ('kcore', lambda core: core[:2 * 4096 + 100], 'cannot read'), ('kcore', lambda core: core[:70], 'is no kcore'),
                ('kcore', lambda core: b'', 'is no kcore')):
            kcore = self.proc()
            path = kcore.with_name(name)
            path.write_bytes(change(path.read_bytes()))
            run = live.call('cache', '--buildid-dir', self.root, 'add', kcore)
            self.assertEqual(run.status, 125, str(run))
            self.assertIn(why, run.stderr)
            self.assertEqual(list(self.root.rglob('*')), [])
            shutil.rmtree(kcore.parent.parent)
        kcore = self.proc()
        (kcore.parent.parent / 'sys/kernel/notes').unlink()
        run = live.call('cache', '--buildid-dir', self.root, 'add', kcore)
        self.assertIn("kernel's build-id is not in", run.stderr, str(run))
        run = live.call('cache', '--buildid-dir', self.root, '-k', self.program)
        self.assertEqual(run.status, 2, str(run))
        self.assertIn('not called kcore', run.stderr)

    def record(self, event, program, *words, prefix=()):
        data = live.temp_path('recorded')
        run = live.call('record', '-q', '-F', '999', '-e', event, *words, '-o', data, '--', program, prefix=prefix,
                        env=live.clean_env(PERF_BUILDID_DIR=str(self.root)))
        self.assertEqual(run.status, 0, str(run))
        return data

    def kernels(self):
        """what a cache has of the kernel: {name: file}"""
        found = {name: next(self.root.glob(f'[[]{folder}]/*/{name}'), None) for folder, name in (('vdso', 'vdso'), ('kernel.kallsyms', 'kallsyms'))}
        return {name: path for name, path in found.items() if path}

    def test_kernel_recorded(self):
        """record keeps what samples hit of the kernel and its vdso; perf reads it where another kernel runs."""
        if os.geteuid():
            self.skipTest('needs root: the kernel shows its names to nobody else')
        spin = live.temp_path('spin')
        subprocess.run(['gcc', '-O1', '-x', 'c', '-', '-o', str(spin)], check=True, text=True, input=(
            '#include <time.h>\n#include <unistd.h>\nint main(void) { struct timespec t; for (long i = 0; i < 10000000; i++) {'
            ' clock_gettime(CLOCK_MONOTONIC, &t); if (!(i % 20)) getppid(); } return 0; }'))
        data = self.record('cpu-clock', spin)
        ours = self.kernels()
        self.assertEqual(set(ours), {'vdso', 'kallsyms'})
        # the program, the kernel, the vdso and whichever of its two libraries a sample hit
        self.assertRegex(self.call('verify'), r'^([45]) of \1 build-ids')
        # other tests load and unload BPF programs
        self.assertEqual(*([line for line in path.read_bytes().splitlines() if not line.endswith(b'[bpf]')]
                           for path in (ours['kallsyms'], pathlib.Path('/proc/kallsyms'))))
        # what perf itself would have kept lies under the same names with the same content
        root, self.root = self.root, live.temp_path('perfs')
        perfs = live.temp_path('data')
        self.perf('record', '-q', '-F', '999', '-e', 'cpu-clock', '-o', perfs, spin)
        for name, path in self.kernels().items():
            self.assertEqual(path.relative_to(self.root), ours[name].relative_to(root))
            if name == 'vdso':
                self.assertEqual(path.read_bytes(), ours['vdso'].read_bytes())
        self.assertEqual(ours['vdso'].read_bytes(), mapped_vdso())
        # another kernel, which shows no names: they come from the cache or from nowhere
        notes = live.temp_path('notes')
        notes.write_bytes(b'')
        seen = []
        for folder, recorded in ((root, data), (live.temp_path('empty'), data), (self.root, perfs)):
            out = subprocess.run(['unshare', '-m', 'sh', '-c', 'mount --bind "$1" /sys/kernel/notes && mount --bind /dev/null /proc/kallsyms && '
                                  'exec perf --buildid-dir "$2" report -i "$3" --stdio --sort sym', 'sh', notes, folder, recorded],
                                 capture_output=True, text=True, check=True).stdout
            seen.append({line.split(None, 2)[2].strip() for line in out.splitlines() if ' [k] ' in line})
        # perf 7.2 does not find them in its own cache for its own recording either
        ours, _, theirs = (any(not name.startswith(('0x', 'bpf_prog')) for name in names) for names in seen)
        self.assertEqual(ours, theirs, seen)
        if ' 6.' in self.perf('--version'):
            self.assertTrue(ours, seen)
        self.assertTrue(all(name.startswith('0x') or name.startswith('bpf_prog') for name in seen[1]), seen)

    def test_kernel_not_recorded(self):
        """Not with -N, not what no sample hit, and not without the privilege to see it."""
        spin = live.temp_path('spin')
        subprocess.run(['gcc', '-O1', '-x', 'c', '-', '-o', str(spin)], check=True, text=True,
                       input='int main(void) { for (volatile long i = 0; i < 50000000; i++); return 0; }')
        self.record('cpu-clock:u', spin)
        self.assertEqual(self.kernels(), {})
        self.assertIn(str(spin), self.call('list'))
        self.record('cpu-clock:u', spin, '--buildid-all')
        self.assertIn('vdso', self.kernels())
        if os.geteuid():
            return
        shutil.rmtree(self.root)
        self.record('cpu-clock', spin, '-N')
        self.assertFalse(self.root.exists())
        live.temp().chmod(0o777)
        self.record('cpu-clock:u', spin, '--buildid-all', prefix=live.NOBODY)
        shown = subprocess.run([*live.NOBODY, 'grep', '-q', '^0*[1-9a-f]', '/proc/kallsyms'], check=False).returncode == 0
        self.assertEqual(set(self.kernels()), {'vdso', 'kallsyms'} if shown else {'vdso'})
        if not shown:  # zeros in their place are worth nothing
            self.root.chmod(0o777)
            run = live.call('cache', '--buildid-dir', self.root, 'add', '[kernel.kallsyms]', prefix=live.NOBODY)
            self.assertIn('the kernel does not show its names', run.stderr, str(run))
        if not os.path.exists('/proc/kcore'):
            run = live.call('cache', '--buildid-dir', self.root, 'add', '/proc/kcore')
            self.assertEqual(run.status, 125)
            self.assertIn('no memory of its own', run.stderr)

    def test_of_others(self):
        """What root has made, and nobody else may write, is read by anybody; what may not be written is said."""
        if os.geteuid():
            self.skipTest('needs root to give it up')
        program = live.program('operands', 'gcc', ('-O2',))
        self.call('add', program)
        ident, want = self.build_id(program), self.call('list')
        self.root.chmod(0o755)
        self.root.parent.chmod(0o755)
        env = live.clean_env(PERF_BUILDID_DIR=str(self.root))

        def nobody(*words):
            return live.call(*words, prefix=live.NOBODY, env=env, cwd='/')
        self.assertEqual(nobody('cache', 'list').stdout, want)
        self.assertIn('%sdt_op:reg=reg', nobody('cache', 'show', ident).stdout)
        self.assertIn('1 of 1', nobody('cache', 'verify').stdout)
        self.assertIn('sdt_op/reg', nobody('probe', 'export', '--lines', ident, 'sdt_op:reg').stdout)
        for words in (('add', self.program), ('rm', ident), ('gc', '--max-size', '1')):
            run = nobody('cache', *words)
            self.assertEqual(run.status, 125, str(run))
            self.assertRegex(run.stderr, 'E13 cannot write')
        self.assertEqual(self.call('list'), want)

    def test_user_probes_stay(self):
        self.call('add', PYTHON if os.access(PYTHON, os.X_OK) else self.program)
        self.perf('probe', '-q', '--cache', '-x', self.program, f'kept{os.getpid()}:here=main')
        subprocess.run(['perf', 'probe', '-q', '-d', f'kept{os.getpid()}:here'], check=True)
        self.call('add', self.program)
        self.assertIn(f'#kept{os.getpid()}:here=main', self.call('show', self.program))

    def test_short_and_no_build_id(self):
        """8 bytes, as lld makes them by default, and none at all: listed, used, removed."""
        short, none = live.temp_path('short'), live.temp_path('none')
        for path, option in ((short, '-Wl,--build-id=0x0102030405060708'), (none, '-Wl,--build-id=none')):
            subprocess.run(['gcc', '-x', 'c', '-', '-o', str(path), option], input='int main(void) { return 0; }', text=True,
                           check=True)
        self.call('add', short)
        self.assertIn('by the hash of its content', self.call('add', none))
        self.assertIn('0102030405060708 ', self.call('list'))
        self.assertIn('2 of 2', self.call('verify'))
        self.call('rm', '01020304')
        self.call('rm', none)
        self.assertEqual(self.call('list'), '')

    def test_letters(self):
        """perf's, beside the words: -u replaces also what tells more, and a user's probes stay; -P takes all away."""
        poor, ident = live.temp_path('poor'), self.build_id(self.program)
        subprocess.run(['strip', '-o', str(poor), str(self.program)], check=True)
        self.assertIn('added', self.call('-a', self.program))
        environment = {'PERF_BUILDID_DIR': str(self.root)}
        self.assertEqual(live.call('probe', '-q', '-D', '--cache', '-x', self.program, '-a', 'kept:here=main', env=environment).status, 0)
        elf, = self.root.glob(f'**/{ident}/elf')
        self.call('-a', poor)
        self.assertEqual(elf.read_bytes(), self.program.read_bytes())
        self.call('-u', poor)
        self.assertEqual(elf.read_bytes(), poor.read_bytes())
        self.assertIn('#kept:here=main', self.call('show', ident))
        self.assertIn(ident, self.call('-l'))
        self.call('-l', '-P', status=2)
        self.call('rm', '--all', ident, status=2)
        self.call('-a', '/bin/true')
        self.assertIn(ident, self.call('-P'))
        self.assertEqual(self.call('-l') + self.perf('buildid-cache', '-l'), '')

    def test_long_build_id(self):
        """32 bytes, of which perf and recordings have 20: one entry with the whole id, which is found by either, also
        when perf has made it, and gone when it is removed."""
        source = ('#include <time.h>\nint main(void) { struct timespec t; for (int i = 0; i < 300; i++) clock_gettime(1, &t); '
                  'return 0; }\n')
        ident, folder = bytes(range(1, 33)).hex(), live.temp_path('long')
        folder.mkdir()
        path, other = folder / 'prog', folder / 'other'
        for target, hexes in ((path, ident), (other, ident[:40] + 'ff' * 12)):
            subprocess.run(['gcc', '-g', '-x', 'c', '-', '-o', str(target), f'-Wl,--build-id=0x{hexes}'], input=source, text=True, check=True)
        self.assertNotIn('hash', self.call('add', path))
        self.assertEqual(self.call('list').split()[0], ident)
        self.assertEqual(len(self.call('list').splitlines()), 1)
        self.assertIn('1 of 1', self.call('verify'))
        self.assertIn(ident[:40], self.perf('buildid-cache', '-l'))
        # a definition of it is used wherever it lies, and on no file whose id only begins like that
        environment = {'PERF_BUILDID_DIR': str(self.root)}
        moved = folder / 'moved'
        subprocess.run(['strip', '-o', str(moved), str(path)], check=True)
        run = live.call('probe', 'add', '-q', '-D', '--cache', '-x', path, 'long:here=main', env=environment)
        self.assertEqual(run.status, 0, str(run))
        run = live.call('probe', 'show', '-x', moved, '%long:here', env=environment)
        self.assertIn(f'p:long/here {moved}:0x', run.stdout, str(run))
        run = live.call('probe', 'show', '-x', other, '%long:here', env=environment)
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('has ' + ident[:40] + 'ff' * 12, run.stderr)
        # two names of it; the first one's place goes to the next
        path.rename(folder / 'later')
        self.call('add', folder / 'later')
        self.call('rm', path)
        self.assertIn('1 of 1', self.call('verify'))
        self.assertIn(f'{ident[:40]} {folder / "later"}', self.perf('buildid-cache', '-l'))
        self.call('rm', ident[:40])
        self.assertEqual(self.call('list') + self.perf('buildid-cache', '-l'), '')
        self.assertEqual([p for p in self.root.rglob('*') if not p.is_dir()], [])
        # perf's own: a definition of it is used on this file alone
        self.perf('buildid-cache', '-a', folder / 'later')
        self.assertIn('1 of 1', self.call('verify'))
        probes, = self.root.glob(f'**/{ident[:40]}/probes')
        probes.write_text(f'#perfs:here=main\np:perfs/here {folder / "later"}:0x{self.address(path=folder / "later", name="main"):x}\n')
        run = live.call('probe', 'show', '-x', moved, '%perfs:here', env=environment)
        self.assertIn(f'p:perfs/here {moved}:0x', run.stdout, str(run))
        run = live.call('probe', 'show', '-x', other, '%perfs:here', env=environment)
        self.assertEqual(run.status, 125, str(run))
        self.call('rm', ident[:40])

    def test_long_build_id_recorded(self):
        """What a recording says of such a file is read with the cache's copy, when the file is gone."""
        live.need_engine()
        path, data = live.temp_path('long-demo'), live.temp_path('data')
        subprocess.run(['gcc', '-g', '-O1', '-w', str(live.SOURCE / 'tests/programs/missing-put.c'), '-o', str(path),
                        f'-Wl,--build-id=0x{bytes(range(1, 33)).hex()}'], check=True)
        environment = {'PERF_BUILDID_DIR': str(self.root)}
        run = live.call('record', '-q', '-o', data, '--', path, env=environment)
        self.assertEqual(run.status, 0, str(run))
        whole = live.call('report', '-i', data, env=environment)
        path.unlink()
        again = live.call('report', '-i', data, env=environment)
        self.assertIn('missing-put.c:', whole.stdout)
        self.assertEqual(again.stdout, whole.stdout)

    def test_long_build_id_sampled(self):
        """The kernel's records tell no such id: samples are read with the cache's copy all the same, by perf as well."""
        path, data = live.temp_path('long-spin'), live.temp_path('data')
        ident = bytes(range(1, 33)).hex()
        subprocess.run(['gcc', '-x', 'c', '-', '-g', '-O1', '-o', str(path), f'-Wl,--build-id=0x{ident}'], text=True, check=True,
                       input='__attribute__((noinline)) void spinning(void) { for (volatile long i = 0; i < 300000000; i++); }\n'
                             'int main(void) { spinning(); return 0; }\n')
        environment = {'PERF_BUILDID_DIR': str(self.root)}
        run = live.call('record', '-q', '-e', 'cpu-clock', '-o', data, '--', path, env=environment)
        if run.status and 'perf_event' in run.stderr:
            self.skipTest(run.stderr)
        self.assertEqual(run.status, 0, str(run))
        self.assertIn(ident, self.call('list'))
        path.unlink()
        self.assertIn('spinning', live.call('report', '-i', data, env=environment).stdout)
        self.assertIn('spinning', self.perf('report', '--stdio', '-i', data))

    def test_a_file_that_was_changed(self):
        """perf links files: what is written over later is not taken for what ran."""
        copy = live.temp_path('changing')
        shutil.copy(self.program, copy)
        self.perf('buildid-cache', '-a', copy)
        other = live.program('error-path', 'gcc', ('-g', '-O1'))
        with open(copy, 'r+b') as f:
            f.write(pathlib.Path(other).read_bytes())
        elf = next(self.root.rglob('elf'))
        if not os.path.samefile(elf, copy):  # this perf copies
            shutil.copy(other, elf)
        self.assertIn('another build-id', self.call('verify', status=24))

    def test_gc_takes_the_oldest(self):
        others = [live.program(name, 'gcc', ('-g', '-O1')) for name in ('error-path', 'extra-put')]
        for age, path in ((300, self.program), (200, others[0]), (100, others[1])):
            self.call('add', path)
            elf = next(self.root.rglob(self.build_id(path))) / 'elf'
            then = elf.stat().st_mtime - age * 86400
            os.utime(elf, (then, then))
        size = (next(self.root.rglob(self.build_id(others[1]))) / 'elf').stat().st_size
        self.call('rm', '--older', f'{250 * 24}h')
        self.assertNotIn(self.build_id(self.program), self.call('list'))
        self.call('gc', '--max-size', str(size))
        left = self.call('list').splitlines()
        self.assertEqual(len(left), 1)
        self.assertIn(self.build_id(others[1]), left[0])

    def test_limit(self):
        """A limit that was set holds for what is put in later, by add and by record; what is used last stays."""
        def sizes():
            return sum(p.stat().st_size for p in self.root.rglob('*') if p.is_file() and p.name != 'limit')
        old, new = live.program('sdt-split', 'gcc'), live.program('missing-put', 'gcc', ('-g', '-O2'))
        self.call('gc', status=2)
        self.call('add', old)
        os.utime(next(self.root.glob(f'**/{self.build_id(old)}/elf')), (10, 10))
        for path in self.root.glob(f'**/{self.build_id(old)}/*'):
            os.utime(path, (10, 10))
        limit = max(old.stat().st_size, self.program.stat().st_size, new.stat().st_size) + 4096
        self.call('gc', '--max-size', limit, '--always')
        self.assertIn(f'removed {self.build_id(old)}', self.call('add', self.program))
        self.assertLessEqual(sizes(), limit)
        self.assertEqual(self.call('list').split()[0], self.build_id(self.program))
        for path in self.root.glob(f'**/{self.build_id(self.program)}/*'):
            os.utime(path, (10, 10))
        live.need_engine()
        run = live.call('record', '-o', live.temp_path('data'), '-P', 'type=session get=session_ref put=session_unref', '--', new, 'ok',
                        env={'PERF_BUILDID_DIR': str(self.root)})
        self.assertEqual(run.status, 0, str(run))
        self.assertIn('left the cache, by its limit', run.stderr)
        self.assertLessEqual(sizes(), limit)
        self.assertNotIn(self.build_id(self.program), self.call('list'))
        self.assertIn('left', self.call('gc'))
        self.assertIn('no limit', self.call('gc', '--always'))
        self.assertNotIn('removed', self.call('add', old) + self.call('add', self.program))
        self.assertGreater(sizes(), limit)
        (self.root / 'limit').write_text('5 apples')
        self.call('add', new)
        self.assertIn(self.build_id(old), self.call('list'))

    def test_faults(self):
        self.assertIn('no build-id', live.call('cache', '--buildid-dir', self.root, 'show', 'abcd').stderr)
        for words in (['gc'], ['rm'], ['add'], ['rm', '--older', '1h', 'abcd'], ['nothing']):
            self.assertEqual(live.call('cache', '--buildid-dir', self.root, *words).status, 2, words)


if __name__ == '__main__':
    unittest.main()
