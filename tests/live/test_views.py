# SPDX-License-Identifier: GPL-2.0-only
"""Views of lifetimes: one object, the balance tree, the recording as text; against what the program and the report say."""
import json
import re
import unittest

import live
from test_replay import essence

# every bundled program that has a fault of its own
DEMOS = ('missing-put', 'extra-put', 'dlopen', 'fork-exec', 'thread-leak', 'freed-by-force', 'find-hidden', 'tail-call',
         'inlined', 'inner-new', 'recursion', 'use-after-put', 'swap', 'start-zero', 'hand-over', 'error-path', 'slot-put',
         'cache', 'extra-get', 'many-threads', 'cxx')
GOLDEN = live.SOURCE / 'tests' / 'golden'


def recording(name, flags=('-g', '-O0'), verb='record'):
    """-> (path, Run) of a recording of the faulty variant, made once"""
    key = name, flags
    if key not in recording.made:
        path, out = live.program(name, flags=flags), live.temp_path(name + '.rt')
        run = live.call(verb, '-o', out, *live.told(path, 'ok'), '--', path, 'bug')
        recording.made[key] = out, run
    return recording.made[key]


recording.made = {}


def printed(*args):
    """the JSON of a view, valid by its schema"""
    run = live.call(*args, '--json')
    found = json.loads(run.stdout) if run.stdout else None
    try:
        import jsonschema
    except ImportError:
        return run, found
    if found:
        schema = json.loads((live.SOURCE / 'docs' / f'{args[0]}.schema.json').read_text())
        jsonschema.validate(found, schema)
    return run, found


def report(path):
    run = live.call('report', '--json', '-i', path)
    return json.loads(run.stdout)


class Texts(live.LiveTest):
    """Without a recording: hand-made events."""

    def setUp(self):
        live.need_binary()

    def write(self, text):
        path = live.temp_path('case.events')
        path.write_text(text)
        return path

    TWO = ('type obj start=1\ntype buf start=1\n'
           'new obj 0x10 main@a.c:1\nnew buf 0x20 main@a.c:2\nget obj 0x10 main@a.c:9;hold@a.c:3\n'
           'put obj 0x10 main@a.c:4\nput buf 0x20 main@a.c:5\nnew buf 0x20 main@a.c:6\nput buf 0x20 main@a.c:7\n'
           'held 0x10 none\nmark census\nexit 0\n')

    def test_object_by_number_and_address(self):
        path = self.write(self.TWO)
        run = live.call('object', '-i', path, '1')
        self.assertEqual(run.status, 2, str(run))
        self.assertRegex(run.stderr, r'(?m)^reftrace: E17 .*\bbuf, obj\n +fix: .*reftrace object buf:1')
        run, found = printed('object', '-i', path, 'obj:1')
        self.assertEqual(run.status, 0, str(run))
        life, = found['objects']
        self.assertEqual([(e['op'], e['function'], e['line']) for e in life['events']],
                         [('new', 'main', 1), ('get', 'hold', 3), ('put', 'main', 4)])
        self.assertEqual([f['function'] for f in life['events'][1]['stack']], ['hold', 'main'])
        self.assertEqual((life['end'], life['references'], life['birth']), ('live', 1, 'seen'))
        # serial 2 exists in one type only
        run, found = printed('object', '-i', path, '2')
        self.assertEqual([(o['type'], o['serial']) for o in found['objects']], [('buf', 2)])
        run, found = printed('object', '-i', path, '0x20')
        self.assertEqual([(o['serial'], o['end'], len(o['events'])) for o in found['objects']],
                         [(1, 'dead', 2), (2, 'dead', 2)])

    def test_object_that_is_not_there(self):
        path = self.write(self.TWO)
        for name, words in (('obj:7', ['E25', 'obj:1 to obj:1']), ('0x99', ['E25', '0x99']), ('nope:1', ['E25']),
                            ('first:01234567', ['E25', 'report -v'])):
            with self.subTest(object=name):
                run = live.call('object', '-i', path, name)
                self.assertEqual((run.status, run.stdout), (125, ''), str(run))
                for word in words + ['fix: ']:
                    self.assertIn(word, run.stderr)
        for name in ('x', '0', '0x0', '-1', ':3', 'obj:', '99999999999999999999'):
            with self.subTest(object=name):
                run = live.call('object', '-i', path, '--', name)
                self.assertEqual(run.status, 2, str(run))
                self.assertIn('E17', run.stderr)
        self.assertEqual(live.call('object', '-i', path).status, 2)
        self.assertEqual(live.call('object', '-i', path, '1', '2').status, 2)

    def test_births_that_were_not_seen(self):
        path = self.write('type obj start=1 counter=0\nmark attach\nget obj 0x10 main@a.c:1 count=3\n'
                          'put obj 0x10 main@a.c:2 count=4\n')
        run, found = printed('object', '-i', path, '1')
        self.assertEqual(found['objects'][0]['birth'], 'before-attach')
        self.assertEqual(found['objects'][0]['at_first_sight'], 3)
        self.assertIn('before the attach', live.call('object', '-i', path, '1').stdout)
        run, found = printed('tree', '--all', '-i', path)
        self.assertEqual(found['types'][0]['at_first_sight'], 3)
        self.assertEqual(found['types'][0]['balance'], 3)

    def test_long_life(self):
        """far more than the ledger of the analysis keeps, with nothing left out"""
        turns = 5000
        path = self.write('type obj start=1\nnew obj 0x10 main@a.c:1\nget obj 0x10 main;keep@a.c:2\n' +
                          'get obj 0x10 main;turn@a.c:3\nput obj 0x10 main;turn@a.c:4\n' * turns +
                          'put obj 0x10 main@a.c:5\nheld 0x10 none\nmark census\nexit 0\n')
        _, found = printed('object', '-i', path, '1')
        life, = found['objects']
        self.assertEqual(len(life['events']), 3 + 2 * turns)
        self.assertEqual(life['left_out'], 0)
        counts = [e['count'] for e in life['events']]
        self.assertEqual(counts, [1, 2] + [3, 2] * turns + [1])
        self.assertEqual([e['mark'] for e in life['events']].count('open'), 1)
        _, found = printed('tree', '-i', path)
        kinds = {(n['function'], n['api']): n['balance'] for n in found['types'][0]['nodes']}
        self.assertEqual(kinds['keep', None], 1)
        self.assertNotIn(('turn', None), kinds)

    def test_tree_with_nothing_left(self):
        path = self.write('type obj start=1\nnew obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:5\nexit 0\n')
        run = live.call('tree', '-i', path)
        self.assertEqual(run.status, 0, str(run))
        self.assertIn('every object was released', run.stdout)
        _, found = printed('tree', '-i', path)
        self.assertEqual(found['types'], [])
        _, found = printed('tree', '--all', '-i', path)
        self.assertEqual((found['types'][0]['gets'], found['types'][0]['puts']), (1, 1))
        run = live.call('tree', '-i', path, '-t', 'nope')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('E25', run.stderr)

    def test_tree_by_type_and_object(self):
        path = self.write(self.TWO)
        for args, types in ((['--all'], {'obj': 1, 'buf': 2}), (['--all', '-t', 'buf'], {'buf': 2}), ([], {'obj': 1}),
                            (['--object', 'buf:2', '--all'], {'buf': 1}), (['--object', '0x20', '--all'], {'buf': 2})):
            with self.subTest(args=args):
                _, found = printed('tree', '-i', path, *args)
                self.assertEqual({t['type']: t['objects'] for t in found['types']}, types)
        run = live.call('tree', '-i', path, '--object', '1', '--all')
        self.assertEqual(run.status, 2, str(run))

    def test_cut_input(self):
        path = self.write(self.TWO.replace('exit 0', 'cut the cable'))
        for args in (['object', 'obj:1'], ['tree']):
            run = live.call(args[0], '-i', path, *args[1:])
            self.assertEqual(run.status, 24, str(run))
            self.assertIn('E09', run.stderr)
            self.assertIn('trust: incomplete', run.stdout)

    def test_extended_events(self):
        """what only a recording tells: points by number, CFAs, facts of frames, generations"""
        path = self.write('program /bin/demo pid=7/2\ntype obj start=1\npoint 1 obj new obj_new flags=return\n'
                          'point 2 obj get obj_get\npoint 9 obj put obj_put entry=0x99\n'
                          'frame f@a.c:3+0x10 module=/lib/libx.so entry=0x8 linkage=_Z1f\n'
                          'new obj 0x10 main@a.c:1 via=:1 sp=0x100 cfa=32 flags=return\n'
                          'get obj 0x10 main@a.c:2;f@a.c:3+0x10 via=:2 sp=0x80 cfa=160,16\n'
                          'hits :1 1\nhits :2 1\nhits :9 0\nexit 0 pid=7\n')
        found = report(path)
        self.assertEqual(found['processes'][0]['exe'], '/bin/demo')
        self.assertEqual({(p['function'], p['events'], p['hits']) for p in found['points']},
                         {('obj_new', 1, 1), ('obj_get', 1, 1), ('obj_put', 0, 0)})
        frame = next(s for s in found['sites'] if s['function'] == 'f')
        self.assertEqual((frame['module'], frame['offset']), ('/lib/libx.so', '0x10'))
        for line in ('get obj 0x10 main via=:3', 'point x obj get f', 'point 1 obj nop f', 'point 1 obj get f what',
                     'get obj 0x10 main cfa=1,x', 'get obj 0x10 main cfa=1,2', 'frame', 'program', 'other x',
                     'fork 1/99999', 'type obj bytes=9'):
            with self.subTest(line=line):
                run = live.call('report', '-i', self.write(line + '\n'))
                self.assertEqual(run.status, 125, str(run))
                self.assertIn('E19', run.stderr)

    def test_script_of_a_text(self):
        run = live.call('script', '--events', '-i', GOLDEN / 'missing-put.events')
        self.assertEqual(run.status, 125, str(run))


class Recordings(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def test_events_text_gives_the_same_findings(self):
        for name in DEMOS:
            # frames that are inlined or gone are where most can be lost on the way
            for flags in (('-g', '-O2'), ('-g', '-O0'))[:2 if name in DEMOS[:3] else 1]:
                with self.subTest(program=name, flags=flags):
                    path, _ = recording(name, flags)
                    text = live.call('script', '--events', '-i', path)
                    self.assertEqual((text.status, text.stderr), (0, ''), str(text))
                    case = live.temp_path('case.events')
                    case.write_text(text.stdout)
                    first, again = report(path), report(case)
                    self.assertTrue(first['types'])
                    self.assertEqual(essence(again), essence(first))
                    self.assertEqual(live.site_counts(again), live.site_counts(first))
                    self.assertEqual([p['exe'] for p in again['processes']], [p['exe'] for p in first['processes']])

    def test_object_of_a_finding(self):
        for name in ('missing-put', 'thread-leak', 'find-hidden', 'extra-put'):
            with self.subTest(program=name):
                path, run = recording(name)
                finding, = report(path)['findings']
                run, found = printed('object', '-i', path, f'first:{finding["id"]}')
                self.assertEqual(run.status, 0, str(run))
                life, = found['objects']
                self.assertEqual((life['type'], life['serial']), (finding['type'], finding['first_object']))
                self.assertEqual(life['finding']['id'], finding['id'])
                # the short history of the report is the whole one here
                want = [(h['op'], h['tid'], h['function'], h['line'], h['api'], h['count']) for h in finding['history']]
                self.assertEqual([(e['op'], e['tid'], e['function'], e['line'], e['api'], e['count'])
                                  for e in life['events']], want)
                marks = [(e['mark'], e['function']) for e in life['events'] if e['mark']]
                mark = 'open' if finding['kind'] == 'leak' else 'fault'
                self.assertIn((mark, finding['guilty']['function']), marks)
                text = live.call('object', '-i', path, f'first:{finding["id"]}', '--stacks').stdout
                self.assertIn('<== ', text)
                self.assertRegex(text, r'(?m)^ +< \w+ ')

    def test_mates(self):
        path, _ = recording('missing-put')
        _, found = printed('object', '-i', path, '1')
        events = found['objects'][0]['events']
        for i, e in enumerate(events):
            if e['mate'] is not None:
                self.assertEqual(events[e['mate']]['mate'], i)
                self.assertEqual(events[e['mate']]['function'], e['function'])
        self.assertGreater(sum(e['mate'] is not None for e in events), 3)

    def test_tree_leads_to_the_culprit(self):
        for name in ('missing-put', 'dlopen', 'thread-leak', 'find-hidden', 'freed-by-force', 'fork-exec'):
            with self.subTest(program=name):
                path, record = recording(name)
                guilty = record.truth.guilty
                run, found = printed('tree', '-i', path)
                self.assertEqual(run.status, 0, str(run))
                tree, = found['types']
                self.assertEqual((tree['objects'], tree['balance']), (guilty.objects, guilty.objects))
                # what stays: each function on the way, and the guilty one with a leaf below it
                own = sum(n['balance'] for n in tree['nodes'] if n['api'] and n['function'] == guilty.function)
                self.assertEqual(own, guilty.objects)
                for n in tree['nodes']:
                    if not n['api']:
                        self.assertNotEqual(n['balance'], 0, n)
                text = live.call('tree', '-i', path).stdout
                self.assertRegex(text, rf'(?m)^ +\d+ +\d+ +\+{guilty.objects}  .*\b{guilty.function}\b')
                _, inverted = printed('tree', '--invert', '-i', path)
                self.assertIn(guilty.function, [n['function'] for n in inverted['types'][0]['nodes'] if not n['depth']])

    def test_tree_of_all_counts_what_the_program_did(self):
        path, record = recording('missing-put')
        _, found = printed('tree', '--all', '-i', path)
        tree, = found['types']
        told = record.truth.counts
        self.assertEqual(tree['gets'], sum(n for (_, op), n in told.items() if op in ('new', 'get')))
        self.assertEqual(tree['puts'], sum(n for (_, op), n in told.items() if op == 'put'))
        for (function, op), n in told.items():
            leaf = [x for x in tree['nodes'] if x['api'] and x['function'] == function]
            self.assertEqual(sum(x['puts' if op == 'put' else 'gets'] for x in leaf), n if op == 'put' else
                             sum(m for (f, o), m in told.items() if f == function and o != 'put'), (function, op))

    def test_what_is_read(self):
        """spools and perf.data alike; perf's own recordings have no lifetimes"""
        path = live.program('missing-put')
        spool = live.temp_path('spool.rt')
        live.call('run', '-w', spool, *live.told(path, 'ok'), '--', path, 'bug')
        _, found = printed('tree', '-i', spool)
        self.assertEqual(found['types'][0]['balance'], 25)
        other = live.temp_path('samples.data')
        run = live.call('record', '--no-lifetimes', '-e', 'cpu-clock', '-o', other, '--', path, 'ok')
        if run.status == 0:
            for args in (['tree'], ['object', '1'], ['script', '--events']):
                run = live.call(args[0], '-i', other, *args[1:])
                self.assertEqual(run.status, 125, str(run))
                self.assertRegex(run.stderr, r'E16 .*\n +fix: record them: reftrace record')

    def test_next_of_the_report(self):
        path, _ = recording('missing-put')
        text = live.call('report', '-i', path).stdout
        commands = re.findall(r'reftrace ((?:object|tree)[^|\n]*)', text)
        self.assertEqual(len(commands), 2, text)
        for command in commands:
            run = live.call(*command.split())
            self.assertEqual(run.status, 0, str(run))


if __name__ == '__main__':
    unittest.main()
