# SPDX-License-Identifier: GPL-2.0-only
"""Who puts the last reference, and uses the object behind that, in a program that does not crash."""
import unittest

import live

PAIRS = ('-P', 'type=item new=item_new:ret get=item_ref:1 put=item_unref:1 counter=item.refs',
         '-P', 'type=block new=block_new:ret put=block_drop:2 counter=block.refs')


class GoesOn(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def accused(self, mode, *options, flags=('-g', '-O2'), compiler='gcc'):
        run = live.trace(*options, '--', live.program('goes-on', compiler, flags), mode)
        found = [(f['kind'], f['type'], f['guilty']['function'], f['objects']) for f in run.findings['findings']]
        return found

    def test_told(self):
        for engine in ('agent', 'uprobe'):
            for flags in (('-g', '-O2'), ('-g', '-O0'), ('-O2', '-no-pie', '-fno-pie')):
                with self.subTest(engine=engine, flags=flags):
                    self.assertEqual(self.accused('bad', '--engine', engine, *PAIRS, flags=flags),
                                     [('use-after-put', 'item', 'handle', 1)])
                    self.assertEqual(self.accused('ok', '--engine', engine, *PAIRS, flags=flags), [])

    def test_untold(self):
        self.assertEqual(self.accused('bad', '--no-presets'), [('use-after-put', 'item', 'handle', 1)])
        self.assertEqual(self.accused('ok', '--no-presets'), [])


if __name__ == '__main__':
    unittest.main()
