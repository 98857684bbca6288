# SPDX-License-Identifier: GPL-2.0-only
"""The three stories of librefcnt(7) as they happen, in the modes that claim to see them; and reftrace, told nothing."""
import json
import re
import subprocess
import unittest

import live
import refcnt_built
from test_refcnt_misuse import ALIAS

CALLEE = '''refcnt: left at exit: 1 object, 1 reference
refcnt: LEAK: map, 1 reference {probably}taken by get, first on #1 (count 1 now) by thread 1
    find
    annotate
    callee
    main{rival}'''
NAIVE = '''refcnt: left at exit: 1 object, 1 reference
refcnt: LEAK: map, 1 reference {probably}taken by get, first on #1 (count 1 now) by thread 1
    lend
    sum
    naive
    main{rival}'''
USE = '''refcnt: USE AFTER PUT: map through handle P, which was given back
  now, by thread 1:
    sum
    naive
    main
  the handle was taken by thread 1:
    lend
    sum
    naive
    main
  the handle was given back by thread 1:
    lend
    sum
    naive
    main'''
RACE = '''refcnt: EXTRA PUT: map #1 P, put after the last reference was given back
  now, by thread 1:
    sweeper
  new, count 1 then, by thread 2:
    new_map
    race
    main
  get, count 2 then, by thread 3:
    reader
  put, count 1 then, by thread 4:
    closer
    closer_then_wait
  put, count 0 then, by thread 3:
    reader'''
RACE_ALIAS = '''refcnt: EXTRA PUT: map through handle P, a put of what was given back
  now, by thread 1:
    sweeper
  the handle was taken by thread 2:
    new_map
    race
    main
  the handle was given back by thread 3:
    closer
    closer_then_wait'''
# where puts do not say which reference they give back, there is another that the last put may have been for
UNSURE = {'probably': 'probably ', 'rival': '\n  if not that, the one taken at\n    new_map\n    {}\n    main'}
SURE = {'probably': '', 'rival': ''}
# who claims to see what; the man page has the same table (test_table)
CLAIMS = {
    'callee': ('preloaded', 'tracking', 'tracker', 'checked', 'alias', 'reftrace'),
    'naive': ('preloaded', 'tracking', 'tracker', 'checked', 'alias', 'reftrace'),
    'naive-fixed': ('checked', 'alias'),
    'race': ('preloaded', 'tracking', 'tracker', 'checked', 'alias', 'reftrace'),
}


class Stories(live.LiveTest):
    cc = 'gcc'

    def said(self, mode, story, status=0):
        path = refcnt_built.program('stories.c', mode, self.cc)
        have, _, text = refcnt_built.run(path, story, mode=mode)
        if mode == 'checked':
            own, leaks = refcnt_built.plain(text.partition('=====')[0]), refcnt_built.sanitizer(text)
            return own, leaks
        self.assertEqual(have, status, text)
        # whether a thread has ended by then is not part of the story
        return refcnt_built.plain(text).replace(' (has ended)', '')

    def test_callee(self):
        """The function that gives back is not named, the other is."""
        for mode in ('preloaded', 'tracking', 'tracker', 'alias'):
            with self.subTest(mode=mode):
                want = (CALLEE.format(**SURE) if mode == 'alias' else CALLEE.format(**UNSURE).format('callee'))
                if mode == 'tracker':
                    want += '\nrefcnt: 8 operations without a cookie on these objects'
                self.assertEqual(self.said(mode, 'callee'), want)
        own, leaks = self.said('checked', 'callee')
        self.assertEqual(own, CALLEE.format(**SURE))
        self.assertTrue(leaks.startswith('LeakSanitizer: detected memory leaks\nDirect leak\n    map_handle_\n    map_get\n'
                                         '    find\n    annotate\n    callee\n    main\n'), leaks)

    def test_naive(self):
        """The leak by all; the fix that makes a use after put by those modes whose references have handles."""
        for mode in ('preloaded', 'tracking', 'alias'):
            with self.subTest(mode=mode):
                self.assertEqual(self.said(mode, 'naive'), NAIVE.format(**SURE) if mode == 'alias' else NAIVE.format(**UNSURE).format('naive'))
        for mode in ('preloaded', 'tracking', 'tracker'):
            self.assertEqual(self.said(mode, 'naive-fixed'), '')
        self.assertEqual(self.said('alias', 'naive-fixed', 139), USE)
        own, uses = self.said('checked', 'naive-fixed')
        self.assertEqual((own, uses), ('', 'AddressSanitizer: heap-use-after-free\n    map_start\n    sum\n    naive\n    main\n'
                                           'freed\n    map_put\n    lend\n    sum\n    naive\n    main\n'
                                           'previously allocated\n    map_handle_\n    map_get\n    lend\n    sum\n    naive\n    main'))

    def test_race(self):
        for mode in ('preloaded', 'tracking', 'tracker'):
            with self.subTest(mode=mode):
                self.assertEqual(self.said(mode, 'race'), RACE)
        self.assertEqual(self.said('alias', 'race'), RACE_ALIAS)
        own, uses = self.said('checked', 'race')
        self.assertEqual(own, '')
        self.assertTrue(uses.startswith('AddressSanitizer: heap-use-after-free\n    map_put\n    sweeper\n'), uses)
        self.assertIn('freed\n    map_put\n    closer\n', uses)

    def test_table(self):
        """The man page's table is this one."""
        text = (live.SOURCE / 'man' / 'refcnt.3.scd').read_text()
        for story, modes in CLAIMS.items():
            row = re.search(rf'^[|\[] *{story}\n((?::[^\n]*\n)+)', text, re.M)
            self.assertTrue(row, story)
            cells = [cell[1:].strip() for cell in row[1].splitlines()]
            have = {mode for mode, cell in zip(('plain', 'tracking', 'tracker', 'checked', 'alias', 'reftrace'), cells) if cell == 'yes'}
            self.assertEqual(have, set(modes) - {'preloaded'}, story)


class StoriesClang(Stories):
    cc = 'clang'


class Traced(live.LiveTest):
    """Plain mode, optimised, stripped, nothing told: reftrace sees each operation."""
    cc = 'gcc'

    def setUp(self):
        live.need_engine()

    def plain(self, source, link):
        path = refcnt_built.program(source, 'plain', self.cc, options=('-O2', '-g', '-fno-optimize-sibling-calls'))
        copy = live.temp_path('stripped')
        subprocess.run(['strip', '-o', str(copy), str(path)], check=True)
        if link:
            subprocess.run(['objcopy', '--only-keep-debug', str(path), f'{copy}.debug'], check=True)
            subprocess.run(['objcopy', f'--add-gnu-debuglink={copy}.debug', str(copy)], check=True)
        return copy

    def test_callee(self):
        """By name where debug information is installed beside, else by its address."""
        for link in (True, False):
            with self.subTest(link=link):
                run = live.trace('--', self.plain('stories.c', link), 'callee')
                found = run.findings['findings']
                self.assertEqual([(f['type'], f['kind'], f['objects']) for f in found], [('map', 'leak', 1)], str(run))
                counts = {op: sum(p['events'] for p in run.findings['points'] if p['op'] == op) for op in ('new', 'get', 'put')}
                self.assertEqual(counts, {'new': 1, 'get': 4, 'put': 4}, str(run))
                if link:
                    self.assertEqual(found[0]['guilty']['function'], 'annotate', str(run))
                self.assert_clean_trust(run)

    def test_naive(self):
        run = live.trace('--', self.plain('stories.c', True), 'naive')
        self.assertEqual([(f['type'], f['kind'], f['objects']) for f in run.findings['findings']], [('map', 'leak', 1)], str(run))
        self.assert_clean_trust(run)

    def test_race(self):
        run = live.trace('--', self.plain('stories.c', True), 'race')
        kinds = [(f['type'], f['kind']) for f in run.findings['findings']]
        self.assertEqual(kinds, [('map', 'extra-put')], str(run))

    def test_wrapped(self):
        """A library's own ref and unref around ours are the operations: who calls them is the holder."""
        run = live.trace('--', self.plain('wrapped.c', True))
        found = run.findings['findings']
        self.assertEqual([(f['type'], f['kind'], f['objects'], f['guilty']['function']) for f in found],
                         [('widget', 'leak', 2, 'careless')], str(run))
        self.assertRegex(run.report, r'\n +main +wrapped.c:\d+\S* +4 +0 +\d', run.report)
        self.assert_clean_trust(run)

    def test_marks(self):
        """What other tools see: bare marks, without semaphore; those with the count apart, guarded, and only if built so."""
        def markers(*more):
            path = refcnt_built.program('stories.c', 'plain', self.cc, more, ('-O2',))
            listed = json.loads(live.call('probe', 'markers', '--json', path).stdout)['files'][0]['markers']
            return {(m['provider'], m['name'], bool(int(m.get('semaphore') or '0', 16))) for m in listed}
        bare = {('refcnt', name, False) for name in ('new', 'get', 'put', 'last')}
        self.assertEqual(markers(), bare)
        self.assertEqual(markers('-DREFCNT_NO_MARKS'), set())
        shown = str(live.SOURCE / 'bench' / 'librefcnt-shown.h')
        counted = {('refcnt_count', 'get', True), ('refcnt_count', 'put', True)}
        self.assertEqual(markers('-DREFCNT_SHOW_COUNTS', '-include', shown), bare | counted)

    def test_counts(self):
        """The count before each operation, while somebody looks."""
        shown = str(live.SOURCE / 'bench' / 'librefcnt-shown.h')
        path = refcnt_built.program('stories.c', 'plain', self.cc, ('-DREFCNT_SHOW_COUNTS', '-include', shown), ('-O2',))
        data = live.temp_path('perf.data')
        done = live.call('record', '-e', 'sdt_refcnt_count:*', '-o', data, '--', path, 'callee')
        self.assertEqual(done.status, 0, str(done))
        text = live.call('script', '-i', data).stdout
        seen = re.findall(r'sdt_refcnt_count:(get|put).*? arg2=(\w+)', text)
        want = [('get', 1), ('put', 2)] * 2 + [('get', 1)] + [('get', 2), ('put', 3)] + [('put', 2)]
        self.assertEqual([(op, int(count, 0)) for op, count in seen], want, text)

    def test_healthy(self):
        run = live.trace('--', self.plain('stress.c', True), '4000')
        self.assert_guilty(run, None)
        self.assert_clean_trust(run)


class TracedClang(Traced):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
