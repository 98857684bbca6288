# SPDX-License-Identifier: GPL-2.0-only
"""A recording gives the findings of the live run; a cut or damaged one never gives a clean result."""
import os
import random
import unittest

import live

DEMOS = ('missing-put', 'extra-put', 'dlopen', 'fork-exec', 'thread-leak', 'freed-by-force', 'find-hidden')


def essence(findings):
    """What must be equal however the findings were made."""
    def names(frame):
        return (frame or {}).get('function'), (frame or {}).get('file'), (frame or {}).get('line')
    return {
        'findings': [(f['id'], f['kind'], f['type'], f['objects'], f['of'], f['references'], names(f['guilty']),
                      names(f['taken_by'])) for f in findings['findings']],
        'suspects': [f['id'] for f in findings['suspects']],
        'types': [(t['name'], t['new'], t['get'], t['put'], t['free'], t['live']) for t in findings['types']],
        'alive': sorted((a['type'], a['objects'], a['reason']) for a in findings['alive']),
        'lost': findings['trust']['lost'],
        'complete': findings['trust']['complete'],
        'events': findings['trust']['events'],
    }


class Replay(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def test_run_and_keep(self):
        for name in DEMOS:
            with self.subTest(program=name):
                path = live.program(name, flags=('-g', '-O2'))
                spool = live.temp_path(name + '.rt')
                first = live.trace('-w', spool, *live.told(path, 'ok'), '--', path, 'bug')
                again = live.trace('-i', spool, verb=('report',))
                self.assertEqual((first.status, again.status), (0, 0), f'{first}\n{again}')
                self.assertEqual(essence(again.findings), essence(first.findings))
                self.assert_guilty(again, first.truth.guilty)
                self.assertEqual(live.site_counts(again.findings), live.site_counts(first.findings))

    def test_record_then_report(self):
        for name in DEMOS[:3]:
            with self.subTest(program=name):
                path = live.program(name, flags=('-g', '-O2'))
                spool = live.temp_path(name + '.rt')
                record = live.call('record', '-o', spool, *live.told(path, 'ok'), '--', path, 'bug')
                self.assertEqual(record.status, 0, str(record))
                run = live.trace('-i', spool, verb=('report',))
                self.assertEqual(run.status, 0, str(run))
                self.assert_guilty(run, record.truth.guilty)
                self.assert_clean_trust(run)

    def test_status_of_the_program(self):
        spool = live.temp_path('status.rt')
        path = live.program('missing-put')
        shell = f'{path} ok; exit 7'
        run = live.call('run', '-w', spool, *live.told(path, 'ok'), '--', 'sh', '-c', shell)
        self.assertEqual(run.status, 7, str(run))
        again = live.trace('-i', spool, verb=('report',))
        self.assertEqual(again.findings['exit']['program'], 7, str(again))

    def test_cut_anywhere(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        spool, cut = live.temp_path('whole.rt'), live.temp_path('cut.rt')
        live.call('run', '-w', spool, *live.told(path, 'ok'), '--', path, 'ok')
        data = spool.read_bytes()
        seed = int(os.environ.get('RT_SEED', random.randrange(1 << 30)))
        rng = random.Random(seed)
        for size in [0, 4, 8, 60, len(data) - 48, len(data) - 1] + [rng.randrange(len(data)) for _ in range(20)]:
            with self.subTest(size=size, seed=seed):
                cut.write_bytes(data[:size])
                run = live.call('report', '-i', cut)
                # below the length of a header it is no recording at all
                self.assertIn(run.status, (24, 125) if size < 200 else (24,), str(run))
                self.assertRegex(run.stdout + run.stderr, r'\b(E09|E19)\b|ends (inside|without)')
                self.assertNotRegex(run.stdout + run.stderr, r'(?i)\bno leaks\b')

    def test_damaged_anywhere(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        spool, bad = live.temp_path('whole.rt'), live.temp_path('bad.rt')
        live.call('run', '-w', spool, *live.told(path, 'ok'), '--', path, 'ok')
        data = spool.read_bytes()
        seed = int(os.environ.get('RT_SEED', random.randrange(1 << 30)))
        rng = random.Random(seed)
        for _ in range(20):
            at = rng.randrange(200, len(data))
            with self.subTest(at=at, seed=seed):
                bad.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
                run = live.call('report', '-i', bad)
                self.assertEqual(run.status, 24, str(run))
                self.assertNotRegex(run.stdout + run.stderr, r'(?i)\bno leaks\b')


if __name__ == '__main__':
    unittest.main()
