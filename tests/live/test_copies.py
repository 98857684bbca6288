# SPDX-License-Identifier: GPL-2.0-only
"""Inlined gets and puts in loops that compilers write several times: each copy counts, for the object that it is."""
import live


class Copies(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def check(self, cc, level):
        path = live.program('copies', cc, ('-g', level))
        run = live.trace(*live.told(path), '--', path)
        # where the objects of all places are computed (gcc -O2: the table's end less what is left) nothing is armed
        if run.status == 125 and 'W24' in run.stderr:
            self.assertRegex(run.stderr, r"'obj_get' is there but cannot be probed: inlined into keep \(line \d+\): ")
            return False
        self.assertEqual(live.site_counts(run.findings), live.truth(run.stdout).counts, str(run))
        kind = run.findings['types'][0]
        self.assertEqual((kind['objects'], kind['live']), (8, 8), str(run))
        self.assertEqual(run.findings['trust']['unarmed'], [])
        return True

    def test_each_copy(self):
        seen = 0
        for cc in ('gcc', 'clang'):
            for level in ('-O1', '-O2', '-O3'):
                with self.subTest(cc=cc, level=level):
                    seen += self.check(cc, level)
        self.assertGreaterEqual(seen, 4)
