# SPDX-License-Identifier: GPL-2.0-only
"""A file that somebody cuts while it is read: a clear error, never a crash, and what was recorded stays."""
import os
import re
import shutil
import subprocess

import live

KEPT = 4096  # bytes: the ELF header, and no debug information


class Cut(live.LiveTest):
    def setUp(self):
        live.need_binary()
        self.folder = live.temp_path('cut')
        self.folder.mkdir()
        self.program = self.folder / 'prog'
        shutil.copy(live.program('cuts-file', flags=('-g', '-O1')), self.program)

    def part(self):
        """-> the program's debug information, in a file of its own now"""
        debug = self.folder / 'prog.debug'
        for words in (['--only-keep-debug', self.program, debug], ['--strip-debug', self.program],
                      [f'--add-gnu-debuglink={debug}', self.program]):
            subprocess.run(['objcopy', *words], check=True)
        return debug

    def check_said(self, run, path):
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stderr, rf'E09.*{re.escape(str(path))} became shorter while it was read')
        self.assertIn('fix: do it again', run.stderr)

    def test_while_tracing(self):
        """The traced program itself cuts what the report needs at its end. It runs on, and its events are there."""
        live.need_engine()
        debug = self.part()
        spool = self.folder / 'x.spool'
        specs = live.told(self.program)
        run = live.call('run', '-w', spool, *specs, '--', self.program, debug, KEPT)
        self.check_said(run, debug)
        truth = live.truth(run.stdout)
        self.assertEqual(truth.guilty[0], 'use')
        again = live.trace('-i', spool, verb=('report',))
        self.assertEqual(again.status, 0, str(again))
        self.assertEqual(live.site_counts(again.findings), truth.counts)

    def resolve(self, *words, verb='add', cut=None, act=None):
        """reftrace probe VERB under gdb, where the file is cut when its debug information is about to be read."""
        act = act or f'truncate -s {KEPT} {cut or self.program}'
        if not shutil.which('gdb'):
            self.skipTest('gdb is not installed')
        commands = ['set breakpoint pending on', 'set print thread-events off', 'handle SIGBUS nostop noprint pass',
                    'break dwarf_begin_elf', 'run', f'shell {act}',
                    'delete breakpoints', 'continue', 'print $_exitcode']
        options = [word for c in commands for word in ('-ex', c)]
        done = subprocess.run(['gdb', '-batch', '-nx', *options, '--args', str(live.REFTRACE), 'probe', verb, '-x',
                               str(self.program), *words], capture_output=True, text=True, check=False,
                              env=dict(live.clean_env(), PERF_BUILDID_DIR=str(self.folder / 'cache')))
        code = re.search(r'\$1 = (\d+)', done.stdout)
        self.assertTrue(code, done.stdout + done.stderr)
        return live.Run(int(code[1]), done.stdout, done.stderr, None, None, 0)

    def test_while_resolving(self):
        """No line of uprobe_events is printed, and nothing is put into the cache."""
        run = self.resolve('-D', '--cache', 'obj_get o->refs')
        self.check_said(run, self.program)
        self.assertNotIn('p:probe', run.stdout)
        self.assertEqual([name for _, _, files in os.walk(self.folder / 'cache') for name in files], [])

    def test_debug_file_while_resolving(self):
        debug = self.part()
        run = self.resolve('-D', 'obj_get o->refs', cut=debug)
        self.check_said(run, debug)
        self.assertNotIn('p:probe', run.stdout)

    def test_while_listing(self):
        run = self.resolve(verb='funcs')
        self.check_said(run, self.program)

    def test_written_while_resolving(self):
        """Its size stays, and nobody can say which of its bytes are of before."""
        live.need_engine()
        run = self.resolve('rt_cut:written=obj_get', act=f'touch -d @1 {self.program}')
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stderr, r'E10.*was replaced or written meanwhile: its probes are removed again')
        self.assertFalse([line for line in live.probe_events() if 'rt_cut' in line])
