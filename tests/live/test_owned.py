# SPDX-License-Identifier: GPL-2.0-only
"""Objects that nothing counts: they are found where nobody told of them, and what free() ends of them is no leak."""
import unittest

import live


class Owned(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('one-owner', 'gcc', ('-g', '-O2'))

    def test_freed_by_its_owner(self):
        """Half of the readers are given to free() where reader_close() would be called otherwise."""
        run = live.trace('--engine', 'agent', '--', self.path, 'ok')
        self.assert_clean_trust(run)
        self.assertEqual(run.findings['findings'], [], str(run))
        types = {t['name']: t for t in run.findings['types']}
        self.assertEqual((types['reader']['objects'], types['reader']['live']), (160, 0), str(types))
        self.assertEqual((types['parser']['objects'], types['parser']['live']), (40, 0), str(types))

    def test_told_and_freed_by_its_owner(self):
        """Who tells of a constructor and an end has not told that free() is one, too."""
        run = live.trace('--engine', 'agent', '--no-presets', '-P', 'type=reader new=reader_new put=reader_close', '--', self.path, 'ok')
        self.assert_clean_trust(run)
        self.assertEqual(run.findings['findings'], [], str(run))
        self.assertEqual([(t['name'], t['objects'], t['live']) for t in run.findings['types']], [('reader', 160, 0)], str(run))

    def test_breakpoints_do_not_see_free(self):
        """A breakpoint on free() costs too much: that the ends are not all seen accuses nobody."""
        run = live.trace('--engine', 'uprobe', '--', self.path, 'ok')
        self.assertEqual(run.findings['findings'], [], str(run))
        self.assertEqual(run.status, 0, str(run))

    def test_what_scan_says(self):
        _, out, _ = live.Process([live.REFTRACE, 'scan', '--no-presets', self.path]).wait()
        self.assertEqual(sorted(line.strip() for line in out.splitlines() if 'new=' in line),
                         ['parser           new=parser_open:ret put=parser_close:1',
                          'reader           new=reader_new:ret put=reader_close:1'], out)
        self.assertEqual(out.count('by code: one owner, what is made is ended'), 2, out)


if __name__ == '__main__':
    unittest.main()
