# SPDX-License-Identifier: GPL-2.0-only
"""Code that is hard to probe: done right by the engine, given to the other one, or named; and it does what it would do."""
import shutil
import struct
import unittest

import live

SPEC = 'type=obj new=obj_new:ret get=obj_get,obj_hold put=obj_put,{drop}'
ENGINES = ('agent', 'uprobe', 'agent+uprobe')
PF_X, PT_LOAD = 1, 1


class Places(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('places', flags=('-g', '-O1'))

    def trace(self, engine, path, drop='drop_plain'):
        run = live.trace('--engine', engine, '-P', SPEC.format(drop=drop), '--', path, 'ok')
        self.assertIn('left 0, wrong 0\n', run.stdout, str(run))
        self.assertEqual(run.findings['findings'], [], str(run))
        return run, ' '.join(run.findings['trust']['unarmed'])

    def test_short_functions(self):
        """Three bytes with room behind them are any engine's; where the next function begins at once, no jump has room."""
        for engine in ENGINES:
            with self.subTest(engine):
                run, unarmed = self.trace(engine, self.path)
                if engine == 'agent':
                    self.assertIn('obj_get: no place at its start has room for a jump', unarmed)
                    self.assertNotIn('obj_hold', unarmed)
                    self.assertFalse(run.findings['trust']['complete'])
                    continue
                self.assert_clean_trust(run)
                self.assert_counts(run)

    def test_chosen_at_start(self):
        """An IFUNC's name is that of who chooses: it runs once, and is not taken for the function."""
        for engine in ENGINES:
            with self.subTest(engine):
                _, unarmed = self.trace(engine, self.path, drop='obj_drop')
                self.assertEqual(unarmed.count('obj_drop: its code is chosen at run time (IFUNC)'), 1, unarmed)

    def test_text_that_is_only_executed(self):
        path = live.temp_path('executed')
        shutil.copy(self.path, path)
        with open(path, 'r+b') as f:
            data = f.read()
            at, = struct.unpack_from('<Q', data, 32)
            number, = struct.unpack_from('<H', data, 56)
            for i in range(number):
                kind, flags = struct.unpack_from('<II', data, at + 56 * i)
                if kind == PT_LOAD and flags & PF_X:
                    f.seek(at + 56 * i + 4)
                    f.write(struct.pack('<I', PF_X))
        for engine in ENGINES:
            with self.subTest(engine):
                run, unarmed = self.trace(engine, path)
                if engine == 'agent':
                    self.assertEqual(unarmed.count(':'), 1, unarmed)
                else:
                    self.assert_clean_trust(run)
                    self.assert_counts(run)

    def test_memory_that_differs_from_the_file(self):
        """Neither engine may run the file's instruction where the program has another one."""
        for words in (('--inject',), (), ('--attach=tracefs',)):
            with self.subTest(words):
                if words == ('--inject',):
                    live.need_agent()
                target = live.Process([self.path, 'changed'], pipe=True)
                tool = None
                try:
                    pid = target.wait_line('ready').split()[1]
                    report = live.temp_path('report')
                    tool = live.Process([live.REFTRACE, 'run', *words, '-v', '-o', report, '-P', SPEC.format(drop='drop_plain'), '-p', pid])
                    # more than its own change
                    self.assertTrue(live.wait_until(lambda p=pid: len(live.text_changes(p, self.path)) > 1), tool.errors)
                    target.popen.stdin.close()
                    self.assertIn('left 0, wrong 0\n', target.wait()[1])
                    tool.wait()
                    text = report.read_text()
                    self.assertRegex(text, r'not armed: obj_hold: its code was changed in memory')
                    self.assertNotRegex(text, r'not armed: obj_put')
                    self.assertNotIn('LEAK', text)
                    self.assertNotIn('EXTRA', text)
                finally:
                    target.kill()
                    if tool:
                        tool.kill()


if __name__ == '__main__':
    unittest.main()
