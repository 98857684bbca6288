# SPDX-License-Identifier: GPL-2.0-only
"""Both engines in one run: what has no room for a jump, system calls, and programs that cannot have the agent are left
to engine uprobe, and the stream is one. That the findings are the same is shown by the other suites, where no engine is
named: this is what auto is for who may."""
import re
import unittest

import live

MIXED = ('--engine', 'agent+uprobe')
OBJ = 'type=obj new=obj_new:ret get=obj_get:1,obj_take:1 put=obj_drop:1 free=obj_free:1 counter=+0:4'


class Mixed(live.LiveTest):
    def setUp(self):
        live.need_binary()
        live.need_engine()

    def test_no_room(self):
        """Every operation of every process is there, each object's in their order."""
        path = live.program('cramped', flags=('-g', '-O2', '-pthread'))
        run = live.trace(*MIXED, '-P', OBJ, '--', path)
        done = sum(int(n) for n in re.findall(r'operations (\d+)', run.stdout))
        trust = run.findings['trust']
        self.assertEqual((trust['events'], trust['lost'], trust['complete']), (done, 0, True), str(run))
        self.assertEqual(run.findings['engine'], 'agent+uprobe')
        self.assertEqual(run.findings['findings'], [], str(run))
        self.assertIn(f'{done // 7} objects (struct obj), all released', run.report)
        alone = live.trace('--engine', 'agent', '-P', OBJ, '--', path)
        self.assertIn('not armed: obj_take', alone.report)

    def test_process_without_the_agent(self):
        """A process under seccomp is engine uprobe's, from the first operation on."""
        path = live.program('missing-put', flags=('-g', '-O2'))
        run = live.trace(*MIXED, *live.told(path, 'ok'), '--', 'sh', '-c', f'{live.program("confined")} {path} bug; true')
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        self.assert_guilty(run, run.truth.guilty)
        self.assert_counts(run)

    def test_calls(self):
        """Descriptors are seen in the kernel, and blocks by the agent, in one run."""
        path = live.program('kernel', flags=('-g', '-O2', '-pthread'))
        run = live.trace(*MIXED, '-P', 'fd', '-P', 'malloc', '--', path, 'bug')
        self.assert_clean_trust(run)
        told = int(re.search(r'^fd (\d+)$', run.stdout, re.M).group(1))
        self.assertEqual({t['name']: t['live'] for t in run.findings['types']}['fd'], told, str(run))
        self.assertIn('read_config', {f['guilty']['function'] for f in run.findings['findings']}, str(run))

    def test_what_it_cannot(self):
        for args, why in ((['--counts'], 'each count a part'), (['--max-overhead', '5%'], '--sample'),
                          (['--at=main-return'], '--at=USR1'), (['-p', '1'], '--inject')):
            with self.subTest(args=args):
                command = [] if '-p' in args else ['--', 'true']
                run = live.call('run', *MIXED, '-P', 'malloc', *args, *command)
                self.assertEqual(run.status, 125, str(run))
                self.assertIn(why, run.stderr)


if __name__ == '__main__':
    unittest.main()
