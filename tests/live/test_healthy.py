# SPDX-License-Identifier: GPL-2.0-only
"""Eight threads, shared objects, a get that may fail, all right: nothing is found, and every operation is there. Ten
million of them in `./dev test real`.

A try that is told behind the put that it was quicker than looks like an operation that nobody saw: of a few objects the answer may
say so, and calls itself incomplete."""
import re
import unittest

import live

SPEC = 'type=obj new=obj_new get=obj_get get=obj_try_get:1?ret!=0 put=obj_put counter=+0:4'
PER_ROUND, THREADS = 4, 8  # gets and puts
OPERATIONS = 10_000_000 if live.REAL else 200_000


class Healthy(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def check(self, engine, optimize='-O2'):
        path = live.program('healthy', flags=('-g', optimize))
        rounds = OPERATIONS // THREADS // PER_ROUND * 3 // 2  # not every try is one
        run = live.trace('--engine', engine, '-P', SPEC, '--', path, rounds, timeout=1500 if live.REAL else 280)
        trust = run.findings['trust']
        self.assertEqual(run.findings['findings'] + run.findings['suspects'], [], str(run))
        self.assertEqual((trust['lost'], trust['unarmed']), (0, []), str(run))
        self.assertEqual(run.status, 24 if trust['incomplete_objects'] else 0, str(run))
        told = {word: int(n) for word, n in re.findall(r'(\w+) (\d+)', run.stdout)}
        seen = run.findings['types'][0]
        self.assertEqual({op: seen[op] for op in ('new', 'get', 'put')}, {op: told[op] for op in ('new', 'get', 'put')}, str(run))
        self.assertLessEqual(trust['incomplete_objects'], 1 + told['new'] // 100, str(run))
        self.assertGreaterEqual(told['get'] + told['put'], OPERATIONS)
        if live.REAL:
            print(f'{engine}: {told["get"] + told["put"]} gets and puts, {told["failed"]} tries that failed, 0 findings, '
                  f'{trust["lost"]} events lost, {trust["incomplete_objects"]} of {told["new"]} objects not followed', flush=True)

    def test_agent(self):
        # where the loop of the try is the function's first instructions, there is no room for a jump
        self.check('agent', '-O0')

    def test_uprobe(self):
        self.check('uprobe')

    def test_both(self):
        self.check('agent+uprobe')


if __name__ == '__main__':
    unittest.main()
