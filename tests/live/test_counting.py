# SPDX-License-Identifier: GPL-2.0-only
"""--counts: no events, but every object that is not balanced, with all its places; the same under either engine."""
import collections
import json
import os
import unittest

import live

LIVES, THREADS, CHECKS, EVERY = 2000, 3, 4, 8
ALL = THREADS * LIVES + 1  # and one that lives all the time
LOST = THREADS * LIVES // EVERY
ENGINES = ('agent', 'uprobe') if os.geteuid() == 0 else ('agent',)


def places(kind):
    return {(p['op'], p['function']): (p['events'], p['in_all']) for p in kind['places']}


class Story:
    """What both engines tell of one program."""
    ENGINE = ''

    def setUp(self):
        live.need_binary()
        if self.ENGINE == 'uprobe':
            live.need_engine()
        self.program = live.program('sampled', flags=('-g', '-O1'))

    def count(self, *args, **options):
        return live.trace('--counts', '--engine', self.ENGINE, *args, **options)

    def run_mode(self, mode, *args, lives=LIVES):
        return self.count(*live.told(self.program, 'ok', '1'), *args, '--', self.program, mode, str(lives))

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
            n, found = kind['objects'], places(kind)
            self.assertEqual((kind['balance'], kind['made'], kind['several'], kind['others']), (1, True, False, 0), str(run))
            self.assertEqual(found['get', 'leak'], (n, LOST), str(run))
            self.assertEqual(found['new', 'serve'], (n, ALL - 1), str(run))
            self.assertEqual(found['put', 'drop'], (n, ALL - 1), str(run))
        self.assertIn(f'{LOST} objects with 1 reference open', run.report)

    def test_after_death(self):
        """A put too many is told of, whatever lives at the address by then, and disturbs none of it."""
        run = self.run_mode('late')
        self.assertEqual(run.status, 24, str(run))
        self.assertEqual([(t['objects'], t['balance'], t['made'], places(t)) for t in run.findings['tallies']],
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

    def run_server(self, *how):
        """The balance of a program that goes on: what it has at that time."""
        path = live.program('server', flags=('-g', '-O2'))
        process = live.Process([path, 'bug', '60'])
        try:
            pid = process.wait_line('ready').split()[1]
            run = self.count(*how, '-P', 'type=req new=req_new:ret get=req_get:1 put=req_put:1', '--duration', '0.5', '-p', pid)
            self.assertEqual(run.status, 24, str(run))
            # the one that was in work when we came, or went, may be among them
            found = [t for t in run.findings['tallies'] if t['objects'] > 1]
            self.assertEqual([(t['balance'], t['made']) for t in found], [(1, True)], str(run))
            self.assertIn(('get', 'answer'), places(found[0]))
        finally:
            process.kill()

    def test_recording(self):
        path = live.temp_path('counted.data')
        done = live.call('record', '--counts', '--engine', self.ENGINE, *live.told(self.program, 'ok', '1'), '-o', path, '--',
                         self.program, 'leak', str(LIVES))
        self.assertEqual(done.status, 0, done.stderr)
        run = live.trace('-i', path, verb=('report',))
        self.assertEqual(sum(t['objects'] for t in run.findings['tallies']), LOST, str(run))
        self.assertEqual(places(run.findings['tallies'][0])['get', 'leak'][1], LOST)


class Agent(Story, live.LiveTest):
    ENGINE = 'agent'

    def test_running(self):
        self.run_server('--inject')


class Uprobe(Story, live.LiveTest):
    ENGINE = 'uprobe'

    def test_running(self):
        self.run_server()


class Counting(live.LiveTest):
    """What the program says itself, and both engines."""

    def setUp(self):
        live.need_binary()
        if 'uprobe' in ENGINES:
            live.need_engine()
        self.program = live.program('counted', flags=('-g', '-O1'))

    def check(self, mode, status=24):
        """Each operation is counted; -> what is told of the objects, the same by each engine."""
        told = []
        for engine in ENGINES:
            run = live.trace('--counts', '--engine', engine, *live.told(self.program), '--', self.program, mode)
            with self.subTest(mode=mode, engine=engine):
                self.assertEqual(run.status, status, str(run))
                self.assertEqual(run.findings['trust']['lost'], 0, str(run))
                want, kind = collections.Counter(), run.findings['types'][0]
                for (_, op), n in run.truth.counts.items():
                    want[op] += n
                # of the function that loses a put, the truth counts what it takes
                self.assertEqual({op: kind[op] for op in ('new', 'get', 'put')}, {op: want[op] for op in ('new', 'get', 'put')}, str(run))
                self.assertEqual(sum(p['hits'] for p in run.findings['points']), sum(want.values()), str(run))
                for t in run.findings['tallies']:
                    for (op, function), (_, in_all) in places(t).items():
                        self.assertEqual(in_all, run.truth.counts[function, op], f'{op} {function}: {run}')
                told.append(sorted((t['objects'], t['balance'], t['made'], t['several'], t['others'], sorted(places(t).items()))
                                   for t in run.findings['tallies']))
        self.assertEqual(told, [told[0]] * len(ENGINES))
        return told[0]

    def check_leak(self, kinds, processes):
        n = processes * 30
        self.assertEqual([(k[:5], {p: events for p, (events, _) in k[5]}) for k in kinds],
                         [((processes, 1, True, False, 0),
                           {('new', 'work'): processes, ('get', 'share'): processes * 18000, ('put', 'share'): processes * 18000,
                            ('get', 'forget'): processes, ('put', 'finish'): processes}),
                          ((n, 1, True, False, 0), {('new', 'serve'): n, ('get', 'forget'): n, ('put', 'finish'): n})])

    def test_threads(self):
        self.check_leak(self.check('threads'), 1)

    def test_family(self):
        """Forked children, and what one becomes by exec, have counts of their own."""
        self.check_leak(self.check('family'), 4)

    def test_killed(self):
        self.check_leak(self.check('killed', 137), 1)

    def test_results(self):
        """What failed is not counted; a put too many is told of, and is no part of the next life at the address."""
        kinds = self.check('results')
        self.assertEqual([(k[:5], k[5]) for k in kinds], [((75, -1, False, False, 0), [(('put', 'twice'), (75, 75))])])

    def test_places(self):
        """What there are no more places for is counted together."""
        kind, = self.check('places')
        self.assertEqual(kind[:5], (1, 61, True, False, 61 - 24))
        self.assertEqual(len(kind[5]), 24)

    def test_no_room(self):
        """What there is no room for is lost, and said to be, under each engine: each hit is told of or lost."""
        program = live.program('sampled', flags=('-g', '-O1'))
        for engine in ENGINES:
            run = live.trace('--counts', '--engine', engine, '-m', '64K', *live.told(program, 'ok', '1'), '--', program, 'leak', '4000')
            with self.subTest(engine=engine):
                self.assertEqual(run.status, 24, str(run))
                self.assertGreater(run.findings['trust']['lost'], 0)
                self.assertFalse(run.findings['trust']['complete'], str(run))

    def test_auto(self):
        """Who may have no uprobes counts by the agent."""
        live.need_agent()
        user = [*live.NOBODY, '--no-new-privs'] if not os.geteuid() else ['setpriv', '--no-new-privs']
        folder = live.temp_path('auto')
        folder.mkdir()
        folder.chmod(0o777)
        done = live.call('run', '--counts', f'--json={folder / "f.json"}', '-o', '/dev/null', *live.told(self.program), '--', self.program,
                         'threads', prefix=user, cwd='/', env=live.clean_env(HOME=str(folder), TMPDIR=str(folder)))
        self.assertEqual(done.status, 24, str(done))
        findings = json.loads((folder / 'f.json').read_text())
        self.assertEqual((findings['engine'], sum(t['objects'] for t in findings['tallies'])), ('agent', 31), str(done))

    def test_says_no(self):
        for args, why in ((['--engine', 'agent+uprobe'], '--engine agent'), (['-P', 'fd'], 'without --counts')):
            done = live.call('run', '--counts', *args, '--', 'true')
            self.assertEqual(done.status, 125, done.stderr)
            self.assertIn(why, done.stderr)
        done = live.call('run', '--counts', '--sample=1/2', '--', 'true')
        self.assertEqual(done.status, 2, done.stderr)


if __name__ == '__main__':
    unittest.main()
