# SPDX-License-Identifier: GPL-2.0-only
"""The same findings by each way: each program of tests/programs under each engine, its recording read again, and what that
exports as .events. All name what the program itself says was planted, with as many objects and references."""
import os
import re
import unittest

import live
from test_demos import DEMOS
from test_replay import essence

ENGINES = ('agent', 'agent+uprobe', 'uprobe') if os.geteuid() == 0 else ('agent',)


def accused(findings):
    """What is the same in each run: how often a thread gets something done is not."""
    return sorted((f['kind'], f['type'], f['objects'], f['references'], f['guilty']['role'], f['guilty']['function'], f['guilty']['line'])
                  for f in findings['findings'])


class Same(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def check(self, name, variant):
        path = live.program(name, flags=('-g', '-O2'))
        found = {}
        for engine in ENGINES:
            spool, text = live.temp_path(f'{name}.rt'), live.temp_path(f'{name}.events')
            run = live.trace('--engine', engine, '-w', spool, *live.told(path, 'ok'), '--', path, variant)
            self.assertEqual(run.status, 0, str(run))
            self.assert_guilty(run, run.truth.guilty)
            self.assert_counts(run)
            first = essence(run.findings)
            again = live.trace('-i', spool, verb=('report',))
            self.assertEqual(essence(again.findings), first, f'{engine}: replay says otherwise')
            exported = live.call('script', '--events', '-i', spool)
            self.assertEqual(exported.status, 0, exported.stderr)
            self.assertRegex(exported.stdout, r'\bmain@\S*?->:int\b', 'what main() returns is not told')
            text.write_text(exported.stdout, encoding='utf-8')
            again = live.trace('-i', text, verb=('report',))
            self.assertIsNotNone(again.findings, str(again))
            self.assertEqual(essence(again.findings), first, f'{engine}: text says otherwise')
            found[engine] = accused(run.findings)
        for engine, findings in found.items():
            self.assertEqual(findings, next(iter(found.values())), f'{engine} says otherwise than {next(iter(found))}')


class Order(live.LiveTest):
    """Points at one instruction are told in one order: a put and the get of an exchange, what a store writes over and what it
    stores."""

    def setUp(self):
        live.need_engine()

    def told(self, engine, path):
        """Which point each event is of, by the text."""
        spool = live.temp_path('order.rt')
        run = live.trace('--engine', engine, '-w', spool, *live.told(path, 'ok'), '--', path, 'bug')
        self.assertEqual(run.status, 0, str(run))
        text = live.call('script', '--events', '-i', spool).stdout
        return re.findall(r'^(?:new|get|put|move) .* via=\D*(\d+)', text, re.MULTILINE)

    def check(self, name):
        path = live.program(name, flags=('-g', '-O2'))
        first = self.told(ENGINES[0], path)
        self.assertGreater(len(first), 100)
        for engine in ENGINES[1:]:
            told = self.told(engine, path)
            other = [i for i, points in enumerate(zip(first, told)) if points[0] != points[1]]
            self.assertEqual((len(told), other[:1]), (len(first), []), f'{engine} has another order than {ENGINES[0]}')

    def test_exchange(self):
        self.check('swap')

    def test_store(self):
        self.check('replaced-member')


def add(name, variant):
    def test(self):
        self.check(name, variant)
    setattr(Same, f'test_{name.replace("-", "_")}_{variant}', test)


for _name in DEMOS:
    for _variant in ('bug', 'ok'):
        add(_name, _variant)


if __name__ == '__main__':
    unittest.main()
