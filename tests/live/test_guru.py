# SPDX-License-Identifier: GPL-2.0-only
"""Lifetimes by definitions that the build-id cache keeps: of the same build without a word, of another only when that is
allowed, and then every report says so. The program prints the truth."""
import json
import re
import shutil
import subprocess
import unittest

import live

DEFINITIONS = ('own:new=session_new%return $retval', 'own:ref=session_ref s', 'own:unref=session_unref s')
MARK = 'may hit wrong places: %own:{} by {}: it was made for {} with build-id '


def spec(file='', group='own'):
    return 'type=session ' + ' '.join(f'{op}=%{group}:{name}{file}' for op, name in (('new', 'new'), ('get', 'ref'), ('put', 'unref')))


class Guru(unittest.TestCase):
    def setUp(self):
        live.need_binary()
        live.need_engine()
        self.folder = live.temp_path('guru')
        self.folder.mkdir()
        self.env = dict(live.clean_env(), PERF_BUILDID_DIR=str(self.folder / 'cache'))
        self.full = self.copy('full', '-Wl,--build-id')
        run = live.call('probe', 'add', '--cache', '-D', '-x', self.full, *DEFINITIONS, env=self.env)
        self.assertEqual(run.status, 0, str(run))

    def copy(self, name, *flags, bare=False):
        """The program as another file; bare: without any name in it."""
        path = self.folder / name
        shutil.copy(live.program('missing-put', 'gcc', ('-g', '-O1', *flags)), path)
        if bare:
            subprocess.run(['strip', '-s', str(path)], check=True)
        return path

    def trace(self, path, *options, file='@bare'):
        return live.trace(*options, '-P', spec(file), '--', path, env=self.env)

    def check(self, run):
        """All that the program did, and no more."""
        truth = live.truth(run.stdout)
        self.assertIsNotNone(run.findings, str(run))
        counts = {op: sum(n for (_, what), n in live.site_counts(run.findings).items() if what == op) for op in ('new', 'get', 'put')}
        self.assertEqual(counts, {op: sum(n for (_, what), n in truth.counts.items() if what == op) for op in counts}, str(run))
        return truth

    def test_same_build(self):
        """Stripped, and anywhere: the build-id alone counts."""
        for file in ('', '@bare'):
            run = self.trace(self.copy('bare', '-Wl,--build-id', bare=True), file=file)
            truth = self.check(run)
            self.assertNotIn('warning', run.stderr)
            self.assertTrue(run.findings['trust']['complete'], str(run))
            self.assertEqual([f['objects'] for f in run.findings['findings']], [truth.guilty.objects], str(run))

    def refused(self, path, option, *given):
        """Neither by itself nor by the other option; and not where no file is named."""
        for options in ((), given):
            run = self.trace(path, *options)
            self.assertEqual(run.status, 125, str(run))
            self.assertIn('it was made for', run.stderr)
            self.assertIn(option, run.stderr)
            self.assertEqual(run.stdout, '', 'it was started')
        run = self.trace(path, option, file='')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('%own:ref@FILE', run.stderr)

    def allowed(self, path, option):
        run = self.trace(path, option)
        self.check(run)
        for name in ('new', 'ref', 'unref'):
            mark = MARK.format(name, option, self.full)
            self.assertIn('warning: ' + mark, run.stderr)
            self.assertTrue(any(note.startswith(mark) for note in run.findings['trust']['notes']), str(run))
        self.assertFalse(run.findings['trust']['complete'])
        self.assertIn('note: may hit wrong places: %own:new', run.report)

    def test_mismatch(self):
        path = self.copy('bare', '-Wl,--build-id', '-DOTHER', '-frecord-gcc-switches', bare=True)
        self.refused(path, '--allow-mismatch', '--allow-unverified')
        self.allowed(path, '--allow-mismatch')

    def test_unverified(self):
        path = self.copy('bare', '-Wl,--build-id=none', bare=True)
        self.refused(path, '--allow-unverified', '--allow-mismatch')
        self.allowed(path, '--allow-unverified')

    def test_recorded(self):
        """Who reads a recording reads the mark as well, also in a part of it."""
        path, data = self.copy('bare', '-Wl,--build-id=none', bare=True), live.temp_path('marked.data')
        run = live.call('record', '-o', data, '--allow-unverified', '-P', spec('@bare'), '--', path, env=self.env)
        self.assertEqual(run.status, 0, str(run))
        self.assertIn('warning: may hit wrong places', run.stderr)
        report = live.call('report', '-i', data, '--json=/dev/stdout', '-o', '/dev/null', env=self.env)
        notes = json.loads(report.stdout)['trust']['notes']
        self.assertEqual(len([n for n in notes if n.startswith('may hit wrong places: %own:')]), 3, str(report))
        self.assertNotIn('warning', report.stderr)

    def test_inside_of_an_instruction(self):
        """Of another build, a place that is none is refused in any case."""
        path = self.copy('bare', '-Wl,--build-id=none', bare=True)
        file = next((self.folder / 'cache').rglob('probes'))
        text = file.read_text()
        place = int(re.search(r'own/ref \S+:0x([0-9a-f]+)', text)[1], 16)
        file.write_text(text.replace(f':0x{place:x}', f':0x{place + 1:x}'))
        run = self.trace(path, '--allow-unverified')
        self.assertEqual(run.status, 24, str(run))
        self.assertTrue(any('inside of an instruction' in text for text in run.findings['trust']['unarmed']), str(run))
        self.assertNotIn('get', {op for (_, op), n in live.site_counts(run.findings).items() if n})
        self.assertIsNotNone(live.truth(run.stdout), 'the program was broken')

    def test_arguments(self):
        """What a definition does not say where, or not of an object, is refused with the reason."""
        path = self.copy('bare', '-Wl,--build-id', bare=True)
        for words, why in (('get=%own:ref:2 put=%own:unref', 'it has fewer arguments'),
                           ('get=%own:nothing put=%own:unref', "no definition '%own:nothing'"),
                           ('get=%own:ref?ret>0 put=%own:unref', 'has its own arguments only')):
            run = live.call('run', '-P', 'type=session ' + words, '--', path, env=self.env)
            self.assertEqual(run.status, 125 if 'only' not in why else run.status, str(run))
            self.assertIn(why, run.stderr)
