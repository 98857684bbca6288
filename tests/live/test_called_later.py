# SPDX-License-Identifier: GPL-2.0-only
"""A reference that was taken for a function which is called later, with the object: that one has to put it."""
import unittest

import live

PAIRS = ('-P', 'type=conn new=conn_new:ret get=conn_ref:1 put=conn_unref:1 counter=conn.refs')


class CalledLater(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def accused(self, mode, *options, flags=('-g', '-O2'), compiler='gcc'):
        run = live.trace(*options, '--', live.program('called-later', compiler, flags), mode)
        return [(f['kind'], f['type'], f['guilty']['role'], f['guilty']['function'], f['objects']) for f in run.findings['findings']]

    def test_told(self):
        for engine in ('agent', 'uprobe'):
            for flags in (('-g', '-O2'), ('-g', '-O0'), ('-O2', '-no-pie', '-fno-pie')):
                with self.subTest(engine=engine, flags=flags):
                    self.assertEqual(self.accused('bad', '--engine', engine, *PAIRS, flags=flags),
                                     [('leak', 'conn', 'missing-put', 'resolved', 20)])
                    self.assertEqual(self.accused('own', '--engine', engine, *PAIRS, flags=flags),
                                     [('leak', 'conn', 'missing-put', 'ask', 20)])
                    self.assertEqual(self.accused('ok', '--engine', engine, *PAIRS, flags=flags), [])

    def test_untold(self):
        self.assertEqual(self.accused('bad', '--no-presets'), [('leak', 'conn', 'missing-put', 'resolved', 20)])
        self.assertEqual(self.accused('ok', '--no-presets'), [])


if __name__ == '__main__':
    unittest.main()
