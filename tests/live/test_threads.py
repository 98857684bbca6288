# SPDX-License-Identifier: GPL-2.0-only
"""What the stream says of the beginnings and ends of threads: in a true stream no thread does anything outside its
life, however it ends; and each end is told before anything that follows from it."""
import os
import struct
import unittest

import live
from test_sabotage import EVENT, Recording

THREAD = 11
RUNS = int(os.environ.get('RT_THREAD_RUNS', '20' if live.REAL else '2'))


class Threads(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('thread-ends', flags=('-g', '-O2'))
        self.specs = live.told(self.path, 'again', '1')

    def check(self, *args, counts=True):
        for number in range(RUNS):
            with self.subTest(run=number):
                run = live.trace(*self.specs, '--', self.path, *args)
                notes = run.findings['trust']['notes']
                self.assertEqual([n for n in notes if 'did not live' in n], [], str(run))
                if counts:
                    self.assertEqual(run.status, 0, str(run))
                    self.assert_clean_trust(run)
                    self.assert_guilty(run, None)
                    self.assert_counts(run)
        return run

    @live.alone('it has the system give numbers away again, those of other tests, too')
    def test_number_used_again(self):
        run = self.check('again', '60')
        same = int(next(line for line in run.stdout.splitlines() if line.startswith('same')).split()[1])
        if os.access('/proc/sys/kernel/ns_last_pid', os.W_OK):
            self.assertGreater(same, 5, 'no number was used again: nothing was tested')

    def test_thread_that_calls_exec(self):
        self.check('exec', '3')

    def test_first_thread_leaves(self):
        self.check('first', '4')

    def test_process_ends_under_way(self):
        # a thread that is killed between get and put leaves both as they are
        self.check('group', '3', counts=False)

    def test_process_dies_under_way(self):
        # threads that were struck where they tell of an event have not done what they were about to do: none is lost
        for number in range(RUNS):
            with self.subTest(run=number):
                run = live.trace(*self.specs, '--', self.path, 'abort', '4')
                self.assertEqual(run.findings['trust']['lost'], 0, str(run))
                self.assertEqual([n for n in run.findings['trust']['notes'] if 'agree' in n], [], str(run))

    def test_process_ends_while_threads_are_born(self):
        # one that has just been made is told of after the process has ended, or never
        self.check('born', '100', counts=False)

    def test_attached_under_way(self):
        for number in range(RUNS):
            target = live.Process([self.path, 'serve', '600'])
            try:
                pid = target.wait_line('ready').split()[1]
                run = live.trace(*self.specs, '-p', pid, '--duration', '2s')
                self.assertIsNone(target.popen.poll())
            finally:
                target.kill()
            with self.subTest(run=number):
                self.assertEqual([n for n in run.findings['trust']['notes'] if 'did not live' in n], [], str(run))
                self.assert_guilty(run, None)

    def test_end_is_told_before_what_follows(self):
        path = live.program('thread-leak', flags=('-g', '-O2'))
        spool = live.temp_path('ends.spool')
        run = live.call('run', '-w', spool, '-o', '/dev/null', *live.told(path, 'ok'), '--', path, 'bug')
        self.assertEqual(run.status, 0, str(run))
        events, begins, ends = [], {}, {}
        for r in Recording(spool).records:
            time, _, tid = struct.unpack_from('<QII', r, 8)
            if r[2] == EVENT:
                events.append((time, tid))
            elif r[2] == THREAD:
                other, ended = struct.unpack_from('<Ii', r, 24)
                (ends if ended else begins)[other] = time
        self.assertEqual((len(begins), begins.keys()), (4, ends.keys()))
        first = events[0][1]
        for tid in ends:
            own = [t for t, by in events if by == tid]
            self.assertGreater(len(own), 90)
            self.assertLess(begins[tid], min(own))
            self.assertGreater(ends[tid], max(own))
        # main() joins all four, then gives its 50 jobs back
        after = sorted(t for t, by in events if by == first)[-50:]
        self.assertLess(max(ends.values()), after[0])


if __name__ == '__main__':
    unittest.main()
