# SPDX-License-Identifier: GPL-2.0-only
"""Five bugs are planted into a copy of the parsers; the corpus of the fuzz targets finds each of them."""
import shutil
import sys
import unittest

import live

sys.path.insert(0, str(live.SOURCE / 'tests/fuzz'))
import planted  # pylint: disable=wrong-import-position

# one of them is enough to see that the way of testing works; the others take minutes together
QUICK = ('bpfinsn',)


class Planted(unittest.TestCase):
    def test_corpus_finds_planted_bugs(self):
        names = planted.names()
        self.assertEqual(len(names), 5, names)
        if not shutil.which('patch') or not live.compiler('gcc'):
            self.skipTest('patch or gcc is not installed')
        for name in names:
            if not live.REAL and name not in QUICK:
                continue
            with self.subTest(name):
                try:
                    planted.check(name)
                except planted.Failed as e:
                    self.fail(str(e))
