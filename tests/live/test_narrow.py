# SPDX-License-Identifier: GPL-2.0-only
"""--narrow: a second run where the evidence of the first one is thin. The programs have no debug information and no symbols
but those that the dynamic linker needs: what functions return nobody says."""
import subprocess

import live

CERTAIN = 0.9


def built(name, *options):
    path = live.temp_path(name)
    subprocess.run([live.compiler('gcc'), '-O2', live.PROGRAMS / 'items.c', *options, '-o', path], check=True)
    return path


def addresses(path, *options):
    """-> {name: address} of the functions, before strip takes them"""
    lines = subprocess.run(['nm', *options, path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {words[2]: int(words[0], 16) for words in map(str.split, lines) if len(words) == 3 and words[1] in 'Tt'}


class Narrow(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        live.need_binary()
        cls.library = built('libitems.so', '-DLIBRARY', '-shared', '-fPIC')
        cls.program = built('list', cls.library, f'-Wl,-rpath,{cls.library.parent}')
        cls.names = {**addresses(cls.program), **addresses(cls.library)}
        for path in (cls.program, cls.library):
            subprocess.run(['strip', path], check=True)

    def guilty(self, run):
        self.assertEqual(len(run.findings['findings']), 1, str(run))
        finding = run.findings['findings'][0]
        return finding['guilty'], finding['confidence']

    def check(self, run, name, path):
        guilty, confidence = self.guilty(run)
        self.assertEqual((int(guilty['start'], 16), guilty['module']), (self.names[name], str(path)), str(run))
        return confidence

    def test_who_was_handed_it(self):
        for engine in ('agent', 'uprobe'):
            if engine == 'uprobe':
                live.need_engine()
            with self.subTest(engine=engine):
                once = live.trace('--engine', engine, '--', self.program, 'list')
                self.assertLess(self.guilty(once)[1], CERTAIN, 'one run is enough: nothing is tested')
                self.assertIn('--narrow for a closer look', once.report)
                run = live.trace('--narrow', '--engine', engine, '--', self.program, 'list')
                self.assertIn('the program runs once more', run.stderr)
                self.assertGreaterEqual(self.check(run, 'list', self.program), CERTAIN)
                self.assert_clean_trust(run)

    def test_told(self):
        run = live.trace('--narrow', '-P', 'type=item new=item_new get=item_ref put=item_unref', '--', self.program, 'list')
        self.assertGreaterEqual(self.check(run, 'list', self.program), CERTAIN)

    def test_what_is_left_in_the_register(self):
        """A function that returns nothing, and whose caller looks at nothing, hands nothing up."""
        self.check(live.trace('--narrow', '--', self.program, 'keep'), 'items_keep', self.library)

    def test_both_are_reported(self):
        run = live.trace('--narrow', '--', self.program, 'list')
        self.assertEqual(run.report.count('struct item: 72 of 80 objects never released'), 2, str(run))

    def test_program_is_the_same(self):
        """What the tool does to itself while it traces, the program of the second run does not inherit."""
        script = f'nice; cat /proc/$$/timerslack_ns; exec {self.program} list'
        alone = subprocess.run(['sh', '-c', script], check=True, capture_output=True, text=True).stdout
        run = live.trace('--narrow', '--', 'sh', '-c', script)
        self.assertIn('the program runs once more', run.stderr)
        self.assertEqual(run.stdout, 2 * alone)

    def test_that_does_not_happen_again(self):
        flag = live.temp_path('flag')
        flag.touch()
        run = live.trace('--narrow', '--', self.program, 'once', flag)
        self.assertIn('it did not happen again: the report above stands', run.stderr)
        self.assertLess(self.guilty(run)[1], CERTAIN)
        self.assertFalse(flag.exists())

    def test_not_needed(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        run = live.trace('--narrow', *live.told(path, 'ok'), '--', path, 'bug')
        self.assertEqual(run.stdout.count('\nguilty '), 1, str(run))
        self.assert_guilty(run, run.truth.guilty)

    def test_usage(self):
        for args in (('-p', '1'), ('-w', live.temp_path('x.spool'), '--', 'true'), ('--at=USR1', '--', 'true')):
            run = live.call('run', '--narrow', *args)
            self.assertEqual(run.status, 2, str(run))
            self.assertIn('--narrow', run.stderr)
            self.assertIn('fix: ', run.stderr)
