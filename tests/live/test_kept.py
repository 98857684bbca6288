# SPDX-License-Identifier: GPL-2.0-only
"""Probe definitions in the build-id cache, beside perf on the same folder: either reads, uses and keeps what the other wrote;
and nothing is used on a file that it was not made for, unless that was asked for."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import live
from test_cache import PYTHON, entries
from test_probe import BUILDS, EVENTS

# where perf is right and takes what we take (test_probe.py has the others)
SAME = ('{g}:{a}=work n s=s:string', 'work o->refs o->in.b[2]', 'negative%return', '{g}:{f}=chased o->next->refs', 'work $params',
        'work x=o->next->next->arr[1]:x64', '{g}:{v}=negative n', 'work@probed.c n')


class Kept(unittest.TestCase):
    def setUp(self):
        live.need_binary()
        live.need_engine()
        self.root = live.temp_path('cache')
        self.group = f'kept{os.getpid()}'
        self.env = dict(live.clean_env(), PERF_BUILDID_DIR=str(self.root))
        # a name of its own: groups of unnamed events are made of it
        folder = live.temp_path('folder')
        folder.mkdir()
        self.program = folder / f'own{os.getpid()}'
        shutil.copy(live.program('probed', 'gcc', BUILDS[0][1]), self.program)
        self.own = f'probe_{self.program.name}/'
        # perf finds a name taken when another group has it
        self.a, self.b, self.c, self.f, self.v = (f'{letter}{os.getpid()}' for letter in 'abcfv')
        self.addCleanup(self.clear)

    def named(self, definition):
        return definition.format(g=self.group, **{letter: getattr(self, letter) for letter in 'abcfv'})

    def clear(self):
        for event in self.installed():
            with open(EVENTS, 'r+', encoding='utf-8') as f:
                f.write(f'-:{event}\n')

    def installed(self):
        """-> {GROUP/EVENT: [place and arguments]} of this test"""
        found = {}
        for line in open(EVENTS, encoding='utf-8'):
            event, rest = line.rstrip('\n')[2:].split(' ', 1)
            if self.group in event or event.startswith(self.own):
                found.setdefault(event, []).append(rest)
        return found

    def ours(self, *words, status=0):
        run = live.call('probe', *words, env=self.env)
        self.assertEqual(run.status, status, str(run))
        return run

    def perf(self, *words, root=None, check=True):
        return subprocess.run(['perf', '--buildid-dir', str(root or self.root), *map(str, words)], capture_output=True, text=True,
                              check=check, env=live.clean_env())

    def file(self, root=None):
        return next((root or self.root).rglob('probes'))

    def add(self, *definitions, more=('-D',), program=None):
        return self.ours('add', '--cache', *more, '-x', program or self.program, *(self.named(d) for d in definitions))

    def test_bytes_are_perfs(self):
        """Letter by letter, after the same definitions, one after the other."""
        other = live.temp_path('perfs')
        for definition in SAME:
            self.perf('probe', '-q', '--cache', '-x', self.program, self.named(definition), root=other)
            self.clear()
            self.add(definition, more=())
            self.clear()
        self.assertEqual(len(entries(self.file())), len(SAME))
        self.assertEqual(self.file().read_bytes(), self.file(other).read_bytes())
        self.assertEqual(self.file().stat().st_mode & 0o777, 0o644)

    def test_perf_uses_ours(self):
        self.add('{g}:{a}=work n s=s:string', '{g}:{b}=negative')
        listed = self.perf('probe', '--cache', '-l').stdout
        self.assertIn(f'{self.group}:{self.a}=work n s=s:string\n', listed)
        want = self.ours('show', f'%{self.group}:{self.a}').stdout.split()
        self.perf('probe', '-q', '--add', f'%{self.group}:{self.a}')
        there = self.installed()
        self.assertEqual([line.split()[1:] for line in there[f'{self.group}/{self.a}']], [want[2:]])
        # it keeps ours when it adds its own
        self.perf('probe', '-q', '--cache', '-x', self.program, f'{self.group}:{self.c}=direct')
        self.assertEqual(len(entries(self.file())), 3)

    def test_we_use_perfs(self):
        self.perf('probe', '-q', '--cache', '-x', self.program, f'{self.group}:{self.a}=work n s=s:string')
        want = self.installed()
        self.clear()
        self.ours('add', f'%{self.group}:{self.a}')
        self.assertEqual(self.installed(), want)
        self.assertIn('there is an event', self.ours('add', f'%{self.group}:{self.a}', status=2).stderr)
        self.clear()
        # and from a place that perf has never seen
        moved = live.temp_path('moved')
        shutil.copy(self.program, moved)
        self.assertIn(f' {moved}:0x', self.ours('show', '-x', moved, f'%{self.a}').stdout)
        self.assertIn('no definition', self.ours('show', '%nothing', status=125).stderr)

    def test_list_and_del(self):
        self.add('{g}:{a}=work n', '{g}:{b}=negative', 'direct')
        self.assertEqual(len(self.ours('list', '--cache').stdout.splitlines()), 3)
        found = json.loads(self.ours('list', '--cache', '--json', f'{self.group}:*').stdout)['definitions']
        self.assertEqual([(d['name'], d['definition'], d['path'], 'fault' in d) for d in found],
                         [(f'{self.group}:{self.a}', f'{self.group}:{self.a}=work n', str(self.program), False),
                          (f'{self.group}:{self.b}', f'{self.group}:{self.b}=negative', str(self.program), False)])
        before = self.file().read_bytes()
        self.assertIn('would remove', self.ours('del', '--cache', '-n', f'{self.group}:*').stdout)
        self.assertEqual(self.file().read_bytes(), before)
        self.ours('del', '--cache', f'{self.group}:{self.a}')
        self.assertEqual(list(entries(self.file())), [f'#{self.group}:{self.b}=negative', '#direct'])
        self.ours('del', '--cache', f'{self.group}:{self.a}', status=125)
        os.unlink(self.program)
        self.assertIn('the file is not there', self.ours('list', '--cache').stdout)

    def test_dry_run_writes_nothing(self):
        self.add('{g}:{a}=work n', more=('-n',))
        self.assertFalse(self.root.exists() and any(self.root.rglob('*')))
        self.assertEqual(self.installed(), {})
        self.add('{g}:{a}=work n', more=('-D',))
        self.assertEqual(self.installed(), {})
        self.assertIn('keeps nothing', self.ours('show', '--cache', '-x', self.program, 'work', status=2).stderr)

    def test_a_name_is_one_definition(self):
        self.add('{g}:{a}=work n', '{g}:{b}=direct')
        self.add('{g}:{a}=negative n')
        self.assertEqual(list(entries(self.file())), [f'#{self.group}:{self.b}=direct', f'#{self.group}:{self.a}=negative n'])

    @unittest.skipUnless(os.access(PYTHON, os.X_OK), f'{PYTHON} is not installed')
    def test_twelve_writers(self):
        """Of 12 at once perf 6.1 keeps one, and loses the markers."""
        live.call('cache', 'add', PYTHON, env=self.env)
        before = entries(self.file())
        writers = [subprocess.Popen([str(live.REFTRACE), 'probe', 'add', '-q', '--cache', '-D', '-x', PYTHON, f'{self.group}:e{i}=Py_BytesMain'],
                                    stdout=subprocess.DEVNULL, env=self.env) for i in range(12)]
        self.assertEqual([w.wait() for w in writers], [0] * 12)
        after = entries(self.file())
        self.assertEqual({k: v for k, v in after.items() if k[0] == '%'}, before)
        self.assertEqual(sum(k.startswith(f'#{self.group}:') for k in after), 12)
        self.assertEqual(len([p for p in self.root.rglob('*') if '.tmp' in p.name]), 0)
        # a marker brings its kind into a cache that has none
        self.file().unlink()
        self.add('sdt_python:gc__start', program=PYTHON)
        self.assertEqual(entries(self.file()), before)

    def test_damaged_file(self):
        """What perf stumbles over is left out, the rest stays."""
        self.add('{g}:{a}=work n', '{g}:{b}=direct')
        good = self.file().read_text(encoding='utf-8')
        self.file().write_text('stray\n\n' + good + '\n\n', encoding='utf-8')
        self.assertIn(f'{self.group}/{self.a}', self.ours('show', f'%{self.group}:{self.a}').stdout)
        self.add('{g}:{c}=negative')
        self.assertTrue(self.file().read_text(encoding='utf-8').startswith(good))
        self.perf('probe', '--cache', '-l')
        # what somebody wrote below an entry is no point of it
        listed = self.ours('list', '--cache', f'{self.group}:{self.c}').stdout
        self.assertIn('(1 point in ', listed)
        self.file().write_text(self.file().read_text(encoding='utf-8') + 'a remark\np:\n', encoding='utf-8')
        self.assertEqual(self.ours('list', '--cache', f'{self.group}:{self.c}').stdout, listed)

    def test_stripped_of_debug_information(self):
        """What was resolved where there was debug information is used where there is none, on the same build-id only."""
        self.add('obj_get o->refs')
        want = self.ours('show', '-x', self.program, 'obj_get o->refs').stdout
        bare = live.temp_path('bare')
        subprocess.run(['strip', '-o', str(bare), str(self.program)], check=True)
        run = self.ours('show', '-x', bare, 'obj_get o->refs')
        self.assertEqual(sorted(run.stdout.splitlines()), sorted(want.replace(f'{self.program}:', f'{bare}:').splitlines()))
        self.assertIn('taken from the build-id cache', run.stderr)
        self.ours('show', '-x', bare, 'obj_get o->name:string', status=125)

    def test_on_another_host(self):
        """Another place, and nothing but code in the file: no symbols, no debug information, no unwind tables. The file that
        it was resolved in is not there: its folder is hidden by a mount."""
        live.need_mount_namespace()
        self.add('{g}:{a}=work n s=s:string')
        name, want = f'{self.group}:{self.a}', self.ours('show', '-x', self.program, f'%{self.group}:{self.a}').stdout
        done = subprocess.run([str(self.program)], capture_output=True, text=True, check=True).stdout.splitlines()
        times = sum(line.split()[0] == 'work' for line in done)
        for sections in ((), ('.eh_frame', '.eh_frame_hdr')):
            with self.subTest(sections):
                bare, data = live.temp_path('bare'), live.temp_path('data')
                subprocess.run(['objcopy', '--strip-all', *(f'-R{s}' for s in sections), str(self.program), str(bare)], check=True,
                               stderr=subprocess.DEVNULL)
                self.assertNotIn('.symtab', subprocess.run(['readelf', '-SW', bare], capture_output=True, text=True).stdout)
                here = want.replace(f'{self.program}:', f'{bare}:')
                script = f"""set -e
                    mount -t tmpfs none {self.program.parent}
                    test ! -e {self.program}
                    {live.REFTRACE} probe show -x {bare} %{name}
                    {live.REFTRACE} probe export --lines {bare} %{name}
                    {live.REFTRACE} record -q -N -e %{name}@{bare} -o {data} -- {bare} >/dev/null"""
                run = subprocess.run(['unshare', '-m', 'sh', '-c', script], capture_output=True, text=True, env=self.env, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(run.stdout, 2 * here)
                report = json.loads(live.call('report', '-i', data, '--json').stdout)
                self.assertEqual({e['name']: e['samples'] for e in report['events']}, {name: times})
                # and with nobody's word for it, each place is looked at
                self.ours('add', '-x', bare, f'%{name}')
                self.assertEqual(list(self.installed()), [name.replace(':', '/')])
                self.clear()
                text = self.file().read_text(encoding='utf-8')
                offset = int(text.split(':0x')[1].split()[0], 16)
                self.file().write_text(text.replace(f':0x{offset:x}', f':0x{offset + 1:x}'), encoding='utf-8')
                self.ours('add', '-x', bare, f'%{name}', status=125)
                self.file().write_text(text, encoding='utf-8')

    def test_other_file(self):
        """Two steps: no build-id, another build-id. Each says so, and each event is marked."""
        self.add('{g}:{a}=work n')
        for link, option, mark, word in (('-Wl,--build-id=none', '--allow-unverified', 'unverified', 'has none'),
                                         ('-Wl,--build-id=0x0102030405060708', '--allow-mismatch', 'mismatch', 'has 0102030405060708')):
            with self.subTest(mark):
                other = live.program('probed', 'gcc', (*BUILDS[0][1], link))
                wrong = '--allow-mismatch' if mark == 'unverified' else '--allow-unverified'
                for more in ((), (wrong,)):
                    run = self.ours('show', *more, '-x', other, f'%{self.group}:{self.a}', status=125)
                    self.assertIn(word, run.stderr)
                    self.assertIn(option, run.stderr)
                run = self.ours('add', '-q', option, '-x', other, f'%{self.group}:{self.a}')
                self.assertIn('warning:', run.stderr)
                self.assertEqual(list(self.installed()), [f'{self.group}_{mark}/{self.a}'])
                self.clear()
        # replaced in its place
        shutil.copy(live.program('probed', 'gcc', BUILDS[1][1]), self.program)
        self.assertIn('it was made for', self.ours('add', f'%{self.group}:{self.a}', status=125).stderr)

    def test_exported(self):
        """By name alone, from the cache's file; the host's path is told. Another file's are marked there, too."""
        self.add('{g}:{a}=work n', '{g}:{b}=direct')
        name = f'{self.group}:{self.a}'
        want = self.ours('export', '--lines', self.program, name).stdout
        self.assertIn(f'p:{self.group}/{self.a} {self.program}:0x', want)
        other = live.program('probed', 'gcc', (*BUILDS[0][1], '-Wl,--build-id=0x0102030405060708'))
        self.assertIn('--allow-mismatch', self.ours('export', '--lines', other, f'%{name}', status=125).stderr)
        run = self.ours('export', '--lines', '--allow-mismatch', other, f'%{name}')
        self.assertEqual(run.stdout, want.replace(self.group, f'{self.group}_mismatch').replace(str(self.program), str(other)))
        self.assertIn('warning:', run.stderr)
        os.unlink(self.program)
        for word in (f'%{name}', f'%{self.a}'):
            self.assertEqual(self.ours('export', '--lines', word).stdout, want)
        self.assertIn('no definition', self.ours('export', '%nothing', status=125).stderr)

    def record(self, event, program, *more, status=0):
        """-> (stderr, {event: samples}, text of the report)"""
        data = live.temp_path('data')
        run = live.call('record', '-q', '-N', *more, '-e', event, '-o', data, '--', program, env=self.env)
        self.assertEqual(run.status, status, str(run))
        if status:
            return run.stderr, {}, ''
        report = json.loads(live.call('report', '-i', data, '--json').stdout)
        return run.stderr, {e['name']: e['samples'] for e in report['events']}, live.call('report', '-i', data).stdout

    def test_recorded(self):
        """By name, and as often as the program says that it was there; wherever the file lies, without its being named."""
        self.add('{g}:{a}=work n', '{g}:{b}=obj_get o->refs')
        name = f'{self.group}:{self.a}'
        done = subprocess.run([str(self.program)], capture_output=True, text=True, check=True).stdout.splitlines()
        times = {word: sum(line.split()[0] == word for line in done) for word in ('work', 'get')}
        bare = live.temp_path('bare')
        subprocess.run(['strip', '-o', str(bare), str(self.program)], check=True)
        for event in (f'%{name}', name, f'%{self.a}', f'%*:{self.a}:u', f'%{name}@{bare}'):
            self.assertEqual(self.record(event, bare)[1], {name: times['work']}, event)
        self.assertEqual(self.record(f'%{self.group}:*', self.program)[1],
                         {name: times['work'], f'{self.group}:{self.b}': times['get']})
        self.assertIn('no such definition', self.record('%nothing', bare, status=125)[0])
        self.assertEqual(self.installed(), {})

    def test_recorded_with_a_mark(self):
        """What was made for another file is used when that was allowed, says so then, and in each report."""
        self.add('{g}:{a}=work n')
        # commas end an event's name
        name, other = f'{self.group}:{self.a}', live.temp_path('other')
        shutil.copy(live.program('probed', 'gcc', (*BUILDS[0][1], '-Wl,--build-id=0x0102030405060708')), other)
        for more in ((), ('--allow-unverified',)):
            self.assertIn('--allow-mismatch', self.record(f'%{name}@{other}', other, *more, status=125)[0])
        said, counts, text = self.record(f'%{name}@{other}', other, '--allow-mismatch')
        self.assertIn('warning:', said)
        self.assertEqual(list(counts), [f'{self.group}_mismatch:{self.a}'])
        self.assertIn('trust: its definition was made for a file with another build-id', text)
        self.assertNotIn('trust:', self.record(f'%{name}', self.program)[2])

    def test_no_word_for_word_trust(self):
        """A line that somebody wrote there is looked at like any other."""
        self.add('{g}:{a}=work n')
        text = self.file().read_text(encoding='utf-8')
        offset = int(text.split(':0x')[1].split()[0], 16)
        for place, word in ((offset + 1, 'inside of an instruction'), (0, 'not in the code')):
            self.file().write_text(text.replace(f':0x{offset:x}', f':0x{place:x}'), encoding='utf-8')
            self.assertIn(word, self.ours('add', f'%{self.group}:{self.a}', status=125).stderr)
        self.assertEqual(self.installed(), {})


if __name__ == '__main__':
    unittest.main()
