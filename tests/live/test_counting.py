# SPDX-License-Identifier: GPL-2.0-only
"""--counts: no events, but every object that is not balanced, with all its places."""
import unittest

import live

LIVES, THREADS, CHECKS, EVERY = 2000, 3, 4, 8
ALL = THREADS * LIVES + 1  # and one that lives all the time
LOST = THREADS * LIVES // EVERY


@unittest.skipIf(live.ENGINE == 'agent', 'the kernel counts')
class Counting(live.LiveTest):
    def setUp(self):
        live.need_binary()
        live.need_engine()
        self.program = live.program('sampled', flags=('-g', '-O1'))

    def run_mode(self, mode, *args, lives=LIVES):
        return live.trace('--counts', *live.told(self.program, 'ok', '1'), *args, '--', self.program, mode, str(lives))

    @staticmethod
    def places(kind):
        return {(p['op'], p['function']): (p['events'], p['in_all']) for p in kind['places']}

    def assert_all_counted(self, run, extra=0):
        """Each operation of the program, by type and by point."""
        kind = run.findings['types'][0]
        gets = THREADS * LIVES * (CHECKS + 1) + 1
        self.assertEqual((kind['new'], kind['get'] - (LOST if extra > 0 else 0)), (ALL, gets), str(run))
        self.assertEqual(sum(p['hits'] for p in run.findings['points']), run.findings['trust']['events'], str(run))
        self.assertEqual(run.findings['trust']['lost'], 0, str(run))

    def test_balanced(self):
        run = self.run_mode('ok')
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        self.assert_all_counted(run)
        self.assertEqual(run.findings['tallies'], [])
        self.assertIn(f'no leaks: {ALL} objects (struct obj), all balanced', run.report)

    def test_leak(self):
        run = self.run_mode('leak')
        self.assertEqual(run.status, 24, str(run))
        self.assert_all_counted(run, 1)
        self.assertEqual(run.findings['findings'], [])
        self.assertNotIn('no leaks', run.report)
        self.assertEqual(sum(t['objects'] for t in run.findings['tallies']), LOST, str(run))
        for kind in run.findings['tallies']:
            n, places = kind['objects'], self.places(kind)
            self.assertEqual((kind['balance'], kind['made'], kind['several'], kind['others']), (1, True, False, 0), str(run))
            self.assertEqual(places['get', 'leak'], (n, LOST), str(run))
            self.assertEqual(places['new', 'serve'], (n, ALL - 1), str(run))
            self.assertEqual(places['put', 'drop'], (n, ALL - 1), str(run))
        self.assertIn(f'{LOST} objects with 1 reference open', run.report)

    def test_after_death(self):
        """A put too many is told of, whatever lives at the address by then, and disturbs none of it."""
        run = self.run_mode('late')
        self.assertEqual(run.status, 24, str(run))
        self.assertEqual([(t['objects'], t['balance'], t['made'], self.places(t)) for t in run.findings['tallies']],
                         [(LOST, -1, False, {('put', 'late'): (LOST, LOST)})], str(run))

    def test_children(self):
        """Each process has counts of its own, and they are told when it ends."""
        run = self.run_mode('fork')
        self.assertEqual(run.findings['tallies'], [], str(run))
        self.assertGreater(run.findings['types'][0]['new'], 2 * ALL - THREADS * LIVES)

    def test_no_room(self):
        """What there is no room for is lost, and said to be."""
        run = self.run_mode('leak', '-m', '64K')
        self.assertEqual(run.status, 24, str(run))
        self.assertGreater(run.findings['trust']['lost'], 0, str(run))
        self.assertIn('the table of objects was full', ' '.join(run.findings['trust']['notes']))
        self.assertLess(sum(t['objects'] for t in run.findings['tallies']), LOST)

    def test_running(self):
        """The balance of a program that goes on: what it has at that time."""
        path = live.program('server', flags=('-g', '-O2'))
        process = live.Process([path, 'bug', '60'])
        try:
            pid = process.wait_line('ready').split()[1]
            run = live.trace('--counts', '-P', 'type=req new=req_new:ret get=req_get:1 put=req_put:1', '--duration', '0.5',
                             '-p', pid)
            self.assertEqual(run.status, 24, str(run))
            # the one that was in work when we came, or went, may be among them
            found = [t for t in run.findings['tallies'] if t['objects'] > 1]
            self.assertEqual([(t['balance'], t['made']) for t in found], [(1, True)], str(run))
            self.assertIn(('get', 'answer'), self.places(found[0]))
        finally:
            process.kill()

    def test_recording(self):
        path = live.temp_path('counted.data')
        done = live.call('record', '--counts', *live.told(self.program, 'ok', '1'), '-o', path, '--', self.program, 'leak',
                         str(LIVES))
        self.assertEqual(done.status, 0, done.stderr)
        run = live.trace('-i', path, verb=('report',))
        self.assertEqual(sum(t['objects'] for t in run.findings['tallies']), LOST, str(run))
        self.assertEqual(self.places(run.findings['tallies'][0])['get', 'leak'][1], LOST)

    def test_says_no(self):
        for args, why in ((['--engine', 'agent'], '--engine uprobe'), (['-P', 'fd'], 'without --counts')):
            done = live.call('run', '--counts', *args, '--', 'true')
            self.assertEqual(done.status, 125, done.stderr)
            self.assertIn(why, done.stderr)
        done = live.call('run', '--counts', '--sample=1/2', '--', 'true')
        self.assertEqual(done.status, 2, done.stderr)


if __name__ == '__main__':
    unittest.main()
