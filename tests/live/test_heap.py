# SPDX-License-Identifier: GPL-2.0-only
"""The heap as a family (-P malloc): who lost a block is named, the C library's own and what is kept are not."""
import live

LOST = 10


class Heap(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def check(self, flags, mode, *more):
        run = live.trace('-P', 'malloc', *more, '--', live.program('heap', flags=flags), mode)
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        found = [(f['guilty']['function'], f['kind'], f['objects']) for f in run.findings['findings']]
        self.assertEqual(found, [('use', 'leak', LOST)] if mode == 'bug' else [], str(run))

    def test_cplusplus(self):
        self.check(('-g', '-O1', '-std=c++17'), 'bug')
        self.check(('-g', '-O1', '-std=c++17'), 'ok')

    def test_static(self):
        self.check(('-g', '-O1', '-std=c++17', '-static'), 'bug')

    def test_agent(self):
        self.check(('-g', '-O2', '-std=c++17'), 'bug', '--engine', 'agent')

    def test_threads_end(self):
        """What the allocator keeps of freed blocks for a thread, and frees again when it ends, is no extra put."""
        run = live.trace('-P', 'malloc', '--', live.program('kernel', flags=('-g', '-O2', '-pthread')), 'bug')
        self.assertEqual(run.findings['findings'], [], str(run))

    def test_real_programs(self):
        for command in (['ls', '-R', '/etc'], ['git', '--version'], ['gio', 'info', '/etc/passwd']):
            with self.subTest(command=command):
                run = live.trace('-P', 'malloc', '--', *command)
                self.assertEqual(run.findings['findings'], [], str(run))
                self.assert_clean_trust(run)
