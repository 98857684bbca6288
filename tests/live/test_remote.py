# SPDX-License-Identifier: GPL-2.0-only
"""probe export: its script on a host where the file lies elsewhere, run by dash with od and tracefs alone; it touches
nothing when the file is another one, and takes no foreign text for its own."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import live
from test_sdt import Sdt, build, counts

EVENTS = pathlib.Path('/sys/kernel/tracing/uprobe_events')


def build_id(path):
    text = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=True).stdout
    return re.search(r'Build ID: (\w+)', text)[1]


def installed():
    return [line for line in EVENTS.read_text(encoding='utf-8').splitlines() if 'sdt_pad/' in line or 'sdt_host/' in line]


@live.alone('what it defines in tracefs has the names of markers that other tests record')
class Remote(Sdt):
    def setUp(self):
        super().setUp()
        self.pad = build(self.folder / 'pad', 'sdt-pad', '-DPAD=3', '-DPAD_TEXT="3"')
        self.script = self.export(self.pad)
        self.addCleanup(self.sh, 'remove')

    def export(self, *words, status=0):
        run = live.call('probe', 'export', *words, env=self.env)
        self.assertEqual(run.status, status, str(run))
        return run.stdout if not status else run.stderr

    def sh(self, *words, script=None, shell=('dash',), prefix=()):
        """The script as `| ssh host sh -s words` has it."""
        return subprocess.run([*prefix, *shell, '-s', *map(str, words)], input=script or self.script, text=True,
                              capture_output=True, env=live.clean_env(), cwd='/', check=False)

    def elsewhere(self, path):
        """A root of its own, with the programs of this one, and the file at path in it. -> (root, words to enter it)"""
        live.need_mount_namespace()
        root = live.temp_path('root')
        place = root / path.lstrip('/')
        place.parent.mkdir(parents=True)
        shutil.copy(self.pad, place)
        mounts = ''
        for name in ('usr', 'bin', 'lib', 'lib64', 'proc', 'sys', 'dev'):
            source = pathlib.Path('/', name)
            if source.is_symlink():
                (root / name).symlink_to(os.readlink(source))
            elif source.is_dir():
                (root / name).mkdir()
                mounts += f'mount --rbind /{name} "$0/{name}" && '
        return place, ['unshare', '-m', 'sh', '-c', mounts + 'exec chroot "$0" "$@"', str(root)]

    def passes(self, program):
        """Events that perf records of the program."""
        subprocess.run(['perf', 'record', '-q', '-o', str(self.data), '-e', 'sdt_pad:plain', str(program)], check=True,
                       capture_output=True)
        return counts(self.data)

    def test_other_place(self):
        place, enter = self.elsewhere('/srv/moved/prog')
        # the file's own place is not there
        run = self.sh(prefix=enter)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(installed(), [])
        run = self.sh('install', '/srv/moved/prog', prefix=enter)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertEqual(sorted(run.stdout.splitlines()), sorted(installed()))
        self.assertEqual(len(installed()), 2)
        self.assertTrue(all(' /srv/moved/prog:0x' in line for line in installed()))
        self.assertEqual(self.passes(place), {'sdt_pad:plain': 7})
        self.assertEqual(self.sh('list').stdout.splitlines(), run.stdout.splitlines())
        again = self.sh('install', '/srv/moved/prog', prefix=enter)
        self.assertIn('is there already', again.stderr)
        self.assertEqual(len(installed()), 2)
        self.assertEqual(self.sh('remove').returncode, 0)
        self.assertEqual(installed(), [])

    def test_hostile_path(self):
        """Blanks, quotes, $( ), #, a newline: one word, and the file that was read is the one that is probed."""
        mark = live.temp_path('touched')
        path = f"/srv/it's $(touch {mark}) `touch {mark}`; touch {mark} #1\n\"x\"/prog"
        place, enter = self.elsewhere(path)
        script = self.export('--at', path, self.pad)
        run = self.sh(script=script, prefix=enter)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertEqual(len(installed()), 2)
        self.assertEqual(self.passes(place), {'sdt_pad:plain': 7})
        self.assertFalse(mark.exists())
        self.assertIn('cannot hold the path', self.export('--lines', '--at', path, self.pad, status=125))

    def test_hostile_definitions(self):
        """What stands in a cache is only what it says."""
        mark = live.temp_path('touched')
        self.assertEqual(live.call('cache', 'add', self.pad, env=self.env).status, 0)
        probes, = pathlib.Path(self.env['PERF_BUILDID_DIR']).glob('**/probes')
        with open(probes, 'a', encoding='utf-8') as f:
            f.write(f"#sdt_pad:one=x\np:sdt_pad/one {self.pad}:0x1234 a='$(touch${{IFS}}{mark})';touch${{IFS}}{mark};':u64\n"
                    f'#sdt_pad:two=x\np:sdt_pad/two;touch {self.pad}:0x1234\n'
                    f'#sdt_pad:three=x\np:sdt_pad/three {self.pad}:0x12$(touch)\n')
        run = live.call('probe', 'export', self.pad, env=self.env)
        self.assertEqual(run.status, 0, str(run))
        self.assertEqual(len(re.findall('left out', run.stderr)), 2, run.stderr)
        # the kernel refuses the first: then none of the others stays
        done = self.sh(script=run.stdout)
        self.assertIn('the kernel does not take p:sdt_pad/one', done.stderr)
        self.assertEqual(installed(), [])
        self.assertFalse(mark.exists())

    def test_other_file(self):
        """Of another build-id, of none, cut, no ELF file: said, and nothing is written."""
        other = build(self.folder / 'other', 'sdt-pad', '-DPAD=4', '-DPAD_TEXT="4"')
        none = build(self.folder / 'none', 'sdt-pad', '-DPAD=3', '-DPAD_TEXT="3"', '-Wl,--build-id=none')
        cut = self.folder / 'cut'
        cut.write_bytes(self.pad.read_bytes()[:100])
        text = self.folder / 'text'
        text.write_text('#!/bin/sh\n')
        before = EVENTS.read_text(encoding='utf-8')
        for path, says in ((other, f'has the build-id {build_id(other)}, the probes are for {build_id(self.pad)}'),
                           (none, r'has the build-id \(none\)'), (cut, 'is cut'), (text, 'is no ELF file'),
                           (self.folder / 'nothing', 'cannot read|nothing')):
            with self.subTest(path.name):
                run = self.sh('install', path)
                self.assertNotEqual(run.returncode, 0)
                self.assertRegex(run.stderr, says)
                self.assertEqual(EVENTS.read_text(encoding='utf-8'), before)
        self.assertIn('has no build-id', self.export(none, status=125))
        self.assertEqual(len(self.export('--lines', none).splitlines()), 2)

    def test_build_ids(self):
        """As readelf reads them: 8 and 16 bytes, 32-bit files, the other byte order."""
        made = [build(self.folder / 'fast', 'sdt-pad', '-DPAD=1', '-DPAD_TEXT="1"', '-fuse-ld=lld',
                      '-Wl,--build-id=fast'),
                build(self.folder / 'md5', 'sdt-pad', '-DPAD=1', '-DPAD_TEXT="1"', '-Wl,--build-id=md5')]
        source = self.folder / 'empty.c'
        source.write_text('void _start(void) { for (;;) ; }\n')
        clang = live.compiler('clang')
        for target in ('i386', 'powerpc64', 'mips') if clang and shutil.which('ld.lld') else ():
            made.append(self.folder / target)
            subprocess.run([clang, f'--target={target}-linux-gnu', '-nostdlib', '-static', '-fuse-ld=lld',
                            '-Wl,--build-id=sha1,-e,_start', str(source), '-o', str(made[-1])], check=True)
        for path in made:
            with self.subTest(path.name):
                script = re.sub(r"(?m)^want='.*'$", f"want='{build_id(path)}'", self.script)
                run = self.sh('check', path, script=script)
                self.assertEqual(run.stdout, f'{path} has the build-id {build_id(path)}\n', run.stderr)

    def test_from_the_cache(self):
        """A file that is not on this host: its build-id is enough."""
        self.assertEqual(live.call('cache', 'add', self.pad, env=self.env).status, 0)
        kept = self.folder / 'kept'
        self.pad.rename(kept)
        script = self.export(build_id(kept))
        self.assertEqual(script, self.script)
        kept.rename(self.pad)

    def test_definitions(self):
        """-x: definitions of functions, resolved here and installed where the file lies elsewhere, as show prints them."""
        path = live.program('inlined-member', 'gcc', ('-g', '-O2', '-Wl,--build-id=sha1'))
        shown = live.call('probe', 'show', '-x', path, 'host:got=direct r').stdout.splitlines()
        self.assertTrue(shown)
        self.assertEqual(self.export('--lines', '-x', path, 'host:got=direct r').splitlines(), shown)
        script = self.export('-x', path, '--at', '/srv/got', 'host:got=direct r')
        moved = self.folder / 'got'
        shutil.copy(path, moved)
        self.addCleanup(self.sh, 'remove', moved, script=script)
        run = self.sh('install', moved, script=script)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        data = self.folder / 'got.data'
        said = subprocess.run(['perf', 'record', '-q', '-o', str(data), '-e', 'host:got', str(moved)], check=True, capture_output=True, text=True).stdout
        seen = re.findall(r'host:got:.* r=(0x[0-9a-f]+)', subprocess.run(['perf', 'script', '-i', str(data)], check=True, capture_output=True, text=True).stdout)
        self.assertEqual([int(n, 16) for n in seen], [int(n, 16) for n in re.findall(r'(?m)^get ([0-9a-f]+)', said)[::3]])
        self.assertTrue(seen)
        self.assertEqual(self.sh('remove', moved, script=script).returncode, 0)
        # another build is refused before anything is touched; what is not there is refused here
        run = self.sh('install', self.pad, script=script)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn('has the build-id', run.stderr)
        for words, why in ((('-x', path, 'nosuch'), "no function 'nosuch'"), (('-x', path), 'a definition is needed'),
                           ((path,), 'export -x')):
            status = 2 if len(words) == 2 else 125
            self.assertIn(why, self.export(*words, status=status))

    def test_two_formats(self):
        """Places of one name with other arguments are an event of another name, as the kernel wants it."""
        host, _ = self.host()
        script = self.export(host, 'sdt_host:*')
        self.addCleanup(self.sh, 'remove', script=script)
        run = self.sh(script=script)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertEqual({line.split()[0] for line in installed()}, {'p:sdt_host/both', 'p:sdt_host/both_1'})
        self.assertEqual(self.sh('remove', script=script).returncode, 0)

    def test_other_shells(self):
        for shell in (('bash', '--posix'), ('busybox', 'sh'), ('ksh',)):
            with self.subTest(shell[0]):
                if not shutil.which(shell[0]):
                    self.skipTest(f'{shell[0]} is not installed')
                run = self.sh(shell=shell)
                self.assertEqual((run.returncode, run.stderr), (0, ''))
                self.assertEqual(len(run.stdout.splitlines()), 2)
                self.assertEqual(self.sh('remove', shell=shell).returncode, 0)

    def test_shellcheck(self):
        if not shutil.which('shellcheck'):
            self.skipTest('shellcheck is not installed')
        # words of od's output are to be split; tests that give no number
        run = subprocess.run(['shellcheck', '-s', 'sh', '-e', 'SC2005,SC2046,SC2116,SC3013', '-'], input=self.script, text=True,
                             capture_output=True, check=False)
        self.assertEqual(run.stdout, '')

    def test_wrong_counter(self):
        """Of a file whose counters the kernel raises elsewhere, it is said."""
        if not shutil.which('ld.lld'):
            self.skipTest('no linker lld (package lld)')
        path = build(self.folder / 'lld', 'sdt-pad', '-DPAD=3', '-DPAD_TEXT="3"', '-fuse-ld=lld')
        self.assertIn('record what runs already', live.call('probe', 'export', path, env=self.env).stderr)
        self.assertEqual(live.call('probe', 'export', self.pad, env=self.env).stderr, '')

    def test_faults(self):
        self.assertIn('did you mean sdt_pad:plain', self.export(self.pad, 'sdt_pad:plane', status=125))
        self.assertIn('export FILE is needed', self.export(status=2))


if __name__ == '__main__':
    unittest.main()
