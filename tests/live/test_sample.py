# SPDX-License-Identifier: GPL-2.0-only
"""--sample and --max-overhead: lives are traced as a whole or not at all, and nothing is said of those that are not."""
import math

import live

ENGINES = ('uprobe', 'agent')
LIVES, THREADS, CHECKS, EVERY = 2000, 3, 4, 8
ALL = THREADS * LIVES + 1  # and one that lives all the time
LEAKS = THREADS * LIVES // EVERY


class Base(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.program = live.program('sampled', flags=('-g', '-O1'))

    def spec(self, *leave):
        words = live.told(self.program, 'ok', '1')[1].split()
        return ['-P', ' '.join(w for w in words if w.partition('=')[0] not in leave)]

    def run_mode(self, mode, *args, spec=None, lives=LIVES, rounds=0):
        return live.trace(*(spec or self.spec()), *args, '--', self.program, mode, str(lives), str(rounds),
                          timeout=250)

    def assert_whole(self, run, frees=True, late=0):
        """Every traced object has all its operations; the one that lives all the time has those of its constructor."""
        kind = run.findings['types'][0]
        n = kind['objects']
        first = (CHECKS + 1) * n - kind['get']
        self.assertIn(first, (0, CHECKS), str(run))
        self.assertEqual((kind['new'], kind['put']), (n, (CHECKS + 2) * n - first + late), str(run))
        if frees:
            self.assertEqual(kind['free'], n, str(run))
        return n

    def assert_honest(self, run, rate):
        sample, trust = run.findings['trust']['sample'], run.findings['trust']
        self.assertTrue(sample['partial'], str(run))
        self.assertAlmostEqual(sample['rate'], rate, delta=rate * 1e-6)
        self.assertFalse(trust['complete'], str(run))
        self.assertFalse(trust['nothing_seen'])
        self.assertEqual(trust['lost'], 0, str(run))
        self.assertNotIn('no leaks', run.report)
        self.assertIn('a sample', run.report)
        self.assertIn('a leak of 10 is seen with a probability of', run.report)
        self.assertEqual(run.status, 24, str(run))  # a leak that was not seen is none that is not there
        # hits are counted whether or not something is told
        hits = sum(p['hits'] for p in run.findings['points'])
        self.assertEqual(hits, sum(p['events'] for p in run.findings['points']) + sample['passed'], str(run))

    def assert_share(self, n, rate):
        """Six sigma of a binomial distribution: one run of a billion is outside."""
        sigma = math.sqrt(ALL * rate * (1 - rate))
        self.assertLess(abs(n - ALL * rate), 6 * sigma + 1)


class Sample(Base):
    def test_whole_lives(self):
        for engine in ENGINES:
            for text, rate in (('1/2', 1 / 2), ('10%', 1 / 10), ('0.02', 1 / 50)):
                with self.subTest(engine=engine, rate=text):
                    run = self.run_mode('ok', '--engine', engine, f'--sample={text}')
                    self.assertEqual(run.findings['findings'] + run.findings['suspects'], [], str(run))
                    self.assert_honest(run, rate)
                    n = self.assert_whole(run)
                    self.assert_share(n, rate)

    def test_all(self):
        """A rate of 1 leaves nothing out, and the answer is a whole one."""
        for engine in ENGINES:
            run = self.run_mode('ok', '--engine', engine, '--sample=1')
            self.assertEqual(run.status, 0, str(run))
            self.assert_clean_trust(run)
            self.assertIn('no leaks', run.report)
            self.assertIsNone(run.findings['trust']['sample'])

    def test_ends_unseen(self):
        """Without a function that frees, an address is traced or not, whatever lives there."""
        for engine in ENGINES:
            for leave in (('free',), ('free', 'counter')):
                with self.subTest(engine=engine, leave=leave):
                    run = self.run_mode('ok', '--engine', engine, '--sample=1/3', spec=self.spec(*leave))
                    self.assertEqual(run.findings['findings'] + run.findings['suspects'], [], str(run))
                    self.assert_honest(run, 1 / 3)
                    self.assert_whole(run, frees=False)

    def test_leak(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                run = self.run_mode('leak', '--engine', engine, '--sample=1/8')
                found = [(f['kind'], f['guilty']['function']) for f in run.findings['findings']]
                self.assertEqual(found, [('leak', 'leak')], str(run))
                self.assert_honest(run, 1 / 8)
                objects = run.findings['findings'][0]['objects']
                self.assertLess(abs(objects - LEAKS / 8), 6 * math.sqrt(LEAKS / 8) + 1, str(run))
                self.assertIn('of a sample: there may be more', run.report)

    def test_after_death(self):
        """What is done to a dead object belongs to its life, not to the next one at its address: late() never had a
        reference that it could put."""
        for engine in ENGINES:
            with self.subTest(engine=engine):
                run = self.run_mode('late', '--engine', engine, '--sample=1/8')
                found = [(f['kind'], f['guilty']['function']) for f in run.findings['findings']]
                self.assertEqual(found, [('extra-put', 'late')], str(run))
                objects = run.findings['findings'][0]['objects']
                self.assertLess(abs(objects - LEAKS / 8), 6 * math.sqrt(LEAKS / 8) + 1, str(run))
                self.assert_whole(run, late=objects)

    def test_children(self):
        """What a child has inherited is known by halves: nobody is accused."""
        for engine in ENGINES:
            run = self.run_mode('fork', '--engine', engine, '--sample=1/4')
            self.assertEqual(run.findings['findings'] + run.findings['suspects'], [], str(run))
            self.assertEqual(run.status, 24, str(run))

    def test_rare(self):
        """One leaked object and a rate of one of a million: nothing is said to be free of leaks."""
        for engine in ENGINES:
            run = self.run_mode('leak', '--engine', engine, '--sample=1/1000000', lives=EVERY)
            self.assertEqual(run.status, 24, str(run))
            self.assertNotIn('no leaks', run.stderr + run.report)

    def test_not_sampled(self):
        """Descriptors are no addresses: all of them are traced, and the answer is as good as without."""
        run = live.trace('-P', 'fd', '--engine', 'uprobe', '--sample=1/100', '--', 'cat', '/etc/passwd')
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        self.assertFalse(run.findings['trust']['sample']['partial'])

    def test_recording(self):
        """A recording says what a run says."""
        for engine in ENGINES:
            path = live.temp_path('sampled.data')
            done = live.call('record', *self.spec(), '--engine', engine, '--sample=1/8', '-o', str(path),
                                 '--', str(self.program), 'leak', str(LIVES))
            self.assertEqual(done.status, 0, done.stderr)
            replay = live.trace('-i', str(path), verb=('report',))
            self.assert_honest(replay, 1 / 8)
            self.assertEqual([(f['kind'], f['guilty']['function']) for f in replay.findings['findings']],
                             [('leak', 'leak')], str(replay))
            events = live.call('script', '--events', '-i', str(path)).stdout
            self.assertIn('\nsample 536870912', events)
            text = live.temp_path('sampled.events')
            text.write_text(events)
            again = live.trace('-i', str(text), verb=('report',))
            self.assertEqual(again.findings['types'], replay.findings['types'])
            self.assertEqual(again.findings['trust']['sample'], replay.findings['trust']['sample'])

    def test_usage(self):
        for args, why in ((['--sample=2'], 'at most 1'), (['--sample=0'], 'no part'), (['--sample=1/0'], 'no part'),
                          (['--sample=x'], 'no part'), (['--max-overhead=-1'], 'no part'), (['--sample=1.'], 'no part'),
                          (['--sample=1/2', '--max-overhead=5%'], 'leave --sample out')):
            done = live.call('run', *args, '--', 'true')
            self.assertEqual(done.status, 2, done.stderr)
            self.assertIn(why, done.stderr)


class Governor(Base):
    @live.alone('on a busy machine hooks may cost more than the thousandfold')
    def test_never_needed(self):
        """Where hooks may cost a thousand times what the program does, everything is traced, and the answer is whole."""
        for engine in ENGINES:
            run = self.run_mode('ok', '--engine', engine, '--max-overhead=100000%', rounds=2000)
            self.assertEqual(run.status, 0, str(run))
            self.assert_clean_trust(run)
            self.assertEqual(run.findings['types'][0]['objects'], ALL)
            self.assertIn('every object was traced at the end', run.report)

    def test_too_expensive(self):
        """
        Hooks cost more than a millionth of anything: the rate falls while objects live, and those that are told of to the
        end are told of as a whole.
        """
        for engine, lives in (('uprobe', 20000), ('agent', 1000000)):
            with self.subTest(engine=engine):
                # each probed instruction is emulated there: a single step costs 14 us on some machines, whoever is traced,
                # so that fewer objects would hardly be cheaper
                self.program = live.program('sampled', flags=('-g', '-O0' if engine == 'uprobe' else '-O1'))
                # where the calibration was disturbed, an event may seem to cost no more than a hit: nothing is to be had then
                for _ in range(3):
                    run = self.run_mode('ok', '--engine', engine, '--max-overhead=0.0001%', lives=lives)
                    sample = run.findings['trust']['sample']
                    if sample['rate'] < 1:
                        break
                self.assertEqual(run.findings['findings'] + run.findings['suspects'], [], str(run))
                self.assertEqual(run.status, 24, str(run))
                self.assertLess(sample['rate'], 1, str(run))
                self.assertEqual(math.log2(sample['rate']) % 1, 0)
                self.assertGreater(sample['overhead'], sample['limit'])
                self.assertIn('was traced at the end', run.report)
                self.assertIn('more than that', run.report)

    def test_leak_across(self):
        """A leak is found though the rate changes while its objects live."""
        for engine, lives in (('uprobe', 20000), ('agent', 1000000)):
            with self.subTest(engine=engine):
                run = self.run_mode('leak', '--engine', engine, '--max-overhead=0.0001%', lives=lives)
                found = [(f['kind'], f['guilty']['function']) for f in run.findings['findings']]
                self.assertEqual(found, [('leak', 'leak')], str(run))

