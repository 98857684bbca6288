# SPDX-License-Identifier: GPL-2.0-only
"""scan --verify: true specs are verified by the counters, false ones contradicted; scan --write makes what -P takes."""
import json
import re
import unittest

import live

TRUE = ('missing-put', 'slot-put', 'start-zero', 'out-argument', 'cxx', 'tail-call', 'thread-leak', 'find-hidden', 'swap')
WRONG = 'type=session new=session_new get=session_unref put=session_ref start=2'


class Verify(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def verify(self, *args, status=0):
        """-> {(op, function): row}"""
        out = live.temp_path('table.json')
        run = live.call('scan', '--verify', '--json', '-o', out, *args)
        self.assertEqual(run.status, status, f'{run}\n{out.read_text() if out.exists() else ""}')
        return {(row['op'], live.plain(row['function'])): row for row in json.loads(out.read_text())['functions']}

    def test_true_specs(self):
        for name in TRUE:
            with self.subTest(name):
                path = live.program(name)
                rows = self.verify(*live.told(path, 'ok'), '--', path, 'ok')
                words = {row['verdict'] for row in rows.values()}
                self.assertLessEqual(words, {'verified', 'not checked', 'never ran'}, rows)
                # a get and a put are what it is about
                for op in ('get', 'put'):
                    self.assertIn('verified', {r['verdict'] for (o, _), r in rows.items() if o in (op, 'hidden')}, rows)

    def test_a_leak_is_no_false_spec(self):
        path = live.program('missing-put')
        rows = self.verify(*live.told(path), '--', path)
        # of 275 puts 75 are last ones, behind which nothing reads
        self.assertEqual({(op, f, r['verdict'], r['agreed'], r['checked']) for (op, f), r in rows.items()},
                         {('new', 'session_new', 'verified', 100, 100), ('get', 'session_ref', 'verified', 200, 200),
                          ('put', 'session_unref', 'verified', 200, 200)})

    def test_false_specs(self):
        path = live.program('missing-put')
        rows = self.verify('-P', WRONG, '--', path, 'ok', status=23)
        self.assertEqual({r['verdict'] for r in rows.values()}, {'contradicted'}, rows)
        self.assertEqual((rows['new', 'session_new']['declared'], rows['new', 'session_new']['usual']), (2, 1))
        self.assertEqual((rows['get', 'session_unref']['declared'], rows['get', 'session_unref']['usual']), (1, -1))
        # one function too many that does not count
        rows = self.verify('-P', 'type=session new=session_new get=session_ref put=session_unref,serve', '--', path, 'ok',
                           status=23)
        self.assertEqual({f: r['verdict'] for (_, f), r in rows.items()},
                         {'session_new': 'verified', 'session_ref': 'verified', 'session_unref': 'verified',
                          'serve': 'contradicted'})

    def test_wrappers(self):
        """What jumps to a put has put; what was only done before one has not."""
        path = live.program('wrapped', flags=('-g', '-O2'))
        spec = 'type=value new=value_new get=value_get,box_get:*1+8 put=value_put,value_release,value_drop,value_idle'
        rows = self.verify('-P', spec, '--', path, status=23)
        self.assertEqual({f: r['verdict'] for (_, f), r in rows.items()},
                         {'value_new': 'verified', 'value_get': 'verified', 'value_put': 'verified', 'value_release': 'verified',
                          'box_get': 'not checked', 'value_drop': 'not checked', 'value_idle': 'contradicted'})
        for engine in ('uprobe', 'agent'):
            # what lies behind a pointer of something else: each life is told whole
            run = live.trace('--engine', engine, '-P', 'type=value new=value_new get=box_get:*1+8,value_get put=value_put',
                             '--', path)
            self.assertEqual((run.findings['findings'], {(s['api'], s['events']) for s in run.findings['sites']}),
                             ([], {(f, 20) for f in ('value_new', 'box_get', 'value_get', 'value_put')}), run)

    def test_empty_handles(self):
        """A put of a slot that holds no handle puts nothing; that is nothing that could not be read."""
        path = live.program('handles')
        for engine in ('uprobe', 'agent'):
            run = live.trace('--engine', engine, '-P',
                             'type=buffer new=buffer_new:*ret get=buffer_ref:*ret put=buffer_unref:**1', '--', path)
            trust = run.findings['trust']
            self.assertEqual((run.findings['findings'], trust['lost'], trust['complete']), ([], 0, True), run)

    def test_text_and_never_ran(self):
        path = live.program('missing-put')
        run = live.call('scan', '--verify', '-P', 'type=session new=session_new get=session_ref put=session_unref', '--',
                        path, 'ok')
        self.assertRegex(run.stderr, r'(?m)^  put    session_unref +-1 +verified +.* last ones, 0 objects counted on')
        self.assertEqual(run.status, 0)
        self.assertIn('guilty none', run.stdout)
        other = live.program('cache')
        rows = self.verify('-P', 'type=x new=malloc:ret put=abort', '--', other, 'ok')
        self.assertEqual(rows['put', 'abort']['verdict'], 'never ran')

    def test_what_scan_writes_is_taken_back(self):
        path, spec = live.program('missing-put'), live.temp_path('found.spec')
        run = live.call('scan', '--write', spec, path)
        self.assertEqual(run.status, 0, str(run))
        text = spec.read_text()
        self.assertRegex(text, r'(?m)^\[session\]\n(.*\n)*get=session_ref:1\n')
        rows = self.verify('-P', spec, '--', path, 'ok')
        self.assertEqual({f for _, f in rows}, {'session_new', 'session_ref', 'session_unref'})
        # edited: what is changed there is what is checked
        swap = {'session_ref': 'session_unref', 'session_unref': 'session_ref'}
        spec.write_text(re.sub(r'session_(un)?ref', lambda m: swap[m.group()], text))
        self.verify('-P', spec, '--', path, 'ok', status=23)

    def test_faults(self):
        for args in (('scan', '--verify'), ('scan', '--verify', '-p', '1')):
            run = live.call(*args)
            self.assertEqual(run.status, 2, str(run))
            self.assertRegex(run.stderr, r'E17 scan --verify .*\n +fix: reftrace scan --verify')


if __name__ == '__main__':
    unittest.main()
