# SPDX-License-Identifier: GPL-2.0-only
"""Who clears a variable of the program that an object was kept in, and does not put the object."""
import unittest

import live

PAIRS = ('-P', 'type=file new=file_new:ret new=archive_new:ret put=file_unref:1 counter=file.refs')


class Variable(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def accused(self, mode, *options, flags=('-g', '-O2'), compiler='gcc'):
        run = live.trace(*options, '--', live.program('in-a-variable', compiler, flags), mode)
        return [(f['kind'], f['type'], f['guilty']['role'], f['guilty']['function'], f['objects']) for f in run.findings['findings']]

    def test_told(self):
        for engine in ('agent', 'uprobe'):
            for flags in (('-g', '-O2'), ('-g', '-O0'), ('-g', '-O2', '-no-pie', '-fno-pie')):
                with self.subTest(engine=engine, flags=flags):
                    self.assertEqual(self.accused('bad', '--engine', engine, *PAIRS, flags=flags),
                                     [('leak', 'file', 'missing-put', 'close_file', 12)])
                    self.assertEqual(self.accused('ok', '--engine', engine, *PAIRS, flags=flags), [])

    def test_untold(self):
        self.assertEqual(self.accused('bad', '--no-presets'), [('leak', 'file', 'missing-put', 'close_file', 12)])
        self.assertEqual(self.accused('ok', '--no-presets'), [])


if __name__ == '__main__':
    unittest.main()
