# SPDX-License-Identifier: GPL-2.0-only
"""Inlined gets whose object debug information tells in different ways: where there is a point each event has the object
that the program prints, and where there is none the place is named with the reason."""
import re
import subprocess

import live
from test_marker import objects

# what only the entry knew, or not even that: never a point
LOST = {'gcc': 'DW_OP_entry_value', 'clang': 'optimised away'}


class EntryValues(live.LiveTest):
    def check(self, cc, level):
        """-> the functions whose get was seen"""
        path, data = live.program('entry-value', cc, ('-g', level)), live.temp_path('data')
        run = live.call('record', '-q', '-o', data, '-P', 'type=obj get=obj_get put=obj_put', '--', path)
        if run.status == 125 and 'W24' in run.stderr:
            self.assertRegex(run.stderr, r"'obj_get' is there but cannot be probed: inlined into \w+ \(line \d+\): ")
            return set()
        self.assertTrue(data.exists(), str(run))
        truth = re.findall(r'get (\w+) (0x[0-9a-f]+)', run.stdout)
        self.assertEqual(len(truth), 12, str(run))
        seen = [number for _, op, number in objects(data) if op == 'get']
        report = live.call('report', '-i', data)
        named = set(re.findall(r'inlined into (\w+)', run.stderr + report.stdout + report.stderr))
        self.assertEqual(seen, [int(number, 16) for name, number in truth if name not in named], str(report))
        self.assertTrue(set(name for name, _ in truth) > named)
        if level != '-O0':
            self.assertIn('lost', named)
            self.assertIn(LOST[cc], run.stderr + report.stdout + report.stderr)
        return {name for name, _ in truth} - named

    def test_points(self):
        live.need_engine()
        seen = {}
        for cc in ('gcc', 'clang'):
            for level in ('-O1', '-O2', '-O3'):
                with self.subTest(cc=cc, level=level):
                    seen[cc, level] = self.check(cc, level)
        self.assertTrue(any({'direct', 'saved'} <= names for names in seen.values()), seen)

    def test_definitions(self):
        """As arguments of a probe: the same place is refused with the words that perf has no idea of."""
        for cc in ('gcc', 'clang'):
            path = live.program('entry-value', cc, ('-g', '-O2'))
            run = live.call('probe', 'add', '-D', '-x', path, 'obj_get o')
            self.assertEqual(run.status, 125, str(run))
            self.assertIn("argument 'o' of obj_get", run.stderr)
            listed = subprocess.run([live.REFTRACE, 'probe', 'vars', '-x', path, 'obj_get'], capture_output=True, text=True, check=True).stdout
            self.assertEqual(listed.count('inlined in '), 4, listed)
