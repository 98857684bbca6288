# SPDX-License-Identifier: GPL-2.0-only
"""reftrace -- make check: all processes of a suite are followed, one test's seeded leak is named, nothing else is."""
import os
import shutil
import subprocess
import sys
import unittest

import live
import sources

sys.path.insert(0, str(live.SOURCE / 'tests' / 'lib'))
import json_c  # pylint: disable=wrong-import-position

TESTS, COUNT, LEAKY = 12, 10, 7
SPEC = 'type=buf new=buf_new get=buf_ref put=buf_unref'


class Suite(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        live.need_engine()
        cls.folder = live.temp_path('suite')
        cls.folder.mkdir()
        source = live.PROGRAMS / 'suite-test.c'
        for n in range(1, TESTS + 1):
            # each is a binary of its own, as in a real suite
            subprocess.run(['gcc', '-g', f'-O{n % 3}', '-w', '-D_GNU_SOURCE', str(source), '-o', str(cls.folder / f'test-{n}')],
                           check=True)

    def check(self, command, *args, leaky=(LEAKY,), cwd=None):
        run = live.trace(*args, '--', *command, cwd=cwd or self.folder, timeout=120)
        self.assertEqual(run.status, 0, str(run))
        self.assertIsNotNone(run.findings, str(run))
        found = [(f['guilty']['function'], f['kind'], f['objects'], len(f['pids'])) for f in run.findings['findings']]
        self.assertEqual(found, [('store', 'leak', COUNT * len(leaky), len(leaky))] if leaky else [], str(run))
        self.assertEqual(run.findings['trust']['lost'], 0)
        processes = run.findings['processes']
        ran = {p['pid']: os.path.basename(p['exe']) for p in processes}
        self.assertGreaterEqual(len([p for p in processes if os.path.basename(p['exe']).startswith('test-')]), TESTS)
        for finding in run.findings['findings']:
            self.assertEqual(sorted(ran[pid] for pid in finding['pids']), sorted(f'test-{n}' for n in leaky))
            # judged by what all of them did
            self.assertEqual(finding['of'], TESTS * COUNT)
            self.assertIn(f'in {len(leaky)} of {len(processes)} processes: test-', run.report)
        return run

    def script(self, leaky):
        which = ' '.join(f'{n}:{n if n in leaky else 0}' for n in range(1, TESTS + 1))
        path = live.temp_path('runtests')
        path.write_text(f'#!/bin/sh\ncd {self.folder} || exit 9\nfor t in {which}; do ./test-${{t%:*}} ${{t%:*}} {COUNT} ${{t#*:}} '
                        '>>log-$$ || exit 1; done\n')
        os.chmod(path, 0o755)
        return path

    def test_shell_script_told(self):
        self.check([self.script([LEAKY])], '-P', SPEC)

    def test_shell_script_untold(self):
        self.check([self.script([LEAKY])])

    def test_three_of_them(self):
        run = self.check([self.script([2, 7, 9])], leaky=[2, 7, 9])
        self.assertRegex(run.report, r'in 3 of \d+ processes: test-2 \(pid \d+\), test-7 \(pid \d+\), test-9 \(pid \d+\)')

    def test_healthy(self):
        run = self.check([self.script([])], leaky=[])
        self.assertIn('no leaks', run.report)

    def test_make_in_parallel(self):
        if not shutil.which('make'):
            self.skipTest('make is not installed')
        rules = ''.join(f'check-{n}:\n\t@./test-{n} {n} {COUNT} {LEAKY} > out-{n}\n' for n in range(1, TESTS + 1))
        (self.folder / 'Makefile').write_text('check: ' + ' '.join(f'check-{n}' for n in range(1, TESTS + 1)) + '\n' + rules)
        self.check(['make', '-j4', 'check'])
        # each test is judged where its main returns
        self.check(['make', '-j4', 'check'], '--at=main-return')

    def test_meson(self):
        if not shutil.which('meson') or not shutil.which('ninja'):
            self.skipTest('meson is not installed')
        source = live.temp_path('meson-suite')
        shutil.copytree(self.folder, source)
        (source / 'meson.build').write_text("project('suite')\n" + ''.join(
            f"test('t{n}', find_program('./test-{n}'), args: ['{n}', '{COUNT}', '{LEAKY}'])\n" for n in range(1, TESTS + 1)))
        subprocess.run(['meson', 'setup', 'build'], cwd=source, check=True, capture_output=True, env=live.clean_env())
        # meson and perl are followed, too, and have types of their own
        self.check(['meson', 'test', '-C', 'build'], '-t', 'buf', cwd=source)


class JsonC(live.LiveTest):
    """A real suite: one of its tests does not give one object back."""

    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        if not shutil.which('cmake'):
            self.skipTest('cmake is not installed')
        live.need_engine()

    def check(self, folder, leak, *args):
        run = live.trace('--no-models', *args, '--', *json_c.RUN, cwd=folder, timeout=300, env=live.clean_env(**json_c.ENVIRONMENT))
        self.assertEqual(run.status, 0, str(run))
        said = run.findings
        self.assertTrue(said['trust']['complete'], str(run))
        self.assertGreater(len(said['processes']), 100)
        found = [(f['guilty']['function'], f['kind'], f['objects'], len(f['pids'])) for f in said['findings'] + said['suspects']]
        self.assertEqual(found, [(json_c.LEAKER, 'leak', 1, 1)] if leak else [], str(run))

    def test_one_leak(self):
        pristine = sources.unpacked('json-c')
        for leak in (True, False):
            folder = json_c.build(pristine, live.temp_path('json-c-suite'), leak)
            for args in (('-P', 'json-c'), (), ('-P', 'json-c', '--engine', 'uprobe')):
                with self.subTest(leak=leak, args=args):
                    self.check(folder, leak, *args)


if __name__ == '__main__':
    unittest.main()
