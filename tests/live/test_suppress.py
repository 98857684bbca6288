# SPDX-License-Identifier: GPL-2.0-only
"""--suppressions: own rules, LeakSanitizer's and valgrind's; what they take is counted, what they do not fit stays."""
import json
import unittest

import jsonschema

import live

# two faults of one type: parse() keeps what it got on two call paths, log() keeps what main handed it
EVENTS = ['type obj bytes=4']


def _life(n, *ops):
    for op, stack in ops:
        EVENTS.append(f'{op} obj {0x1000 + 64 * n:#x} {stack}')


for _n in range(40):
    _caller = 'handle@s.c:20' if _n % 2 else 'retry@s.c:30'
    _end = [('get', f'main@s.c:2;{_caller};parse@s.c:{10 + _n % 2}')]
    _end += [] if _n < 8 else [('put', f'main@s.c:2;{_caller};parse@s.c:14')]
    _end += [('get', 'main@s.c:3;log@s.c:41')] + ([] if _n % 40 >= 37 else [('put', 'main@s.c:3;log@s.c:43')])
    _life(_n, ('new', 'main@s.c:1'), *_end, ('put', 'main@s.c:4'))
EVENTS.append('exit 0')


def rule(*lines, name='known', kind='RefTrace:Leak'):
    return '\n'.join(['{', name, kind, *lines, '}', ''])


class Suppress(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        live.need_binary()
        cls.events = live.temp_path('two.events')
        cls.events.write_text('\n'.join(EVENTS) + '\n')
        cls.schema = json.loads((live.SOURCE / 'docs' / 'findings.schema.json').read_text())

    def report(self, *texts, args=()):
        files = []
        for text in texts:
            files.append(live.temp_path('rules'))
            files[-1].write_text(text)
        run = live.trace('-i', self.events, *[f'--suppressions={f}' for f in files], '--error-exitcode', *args,
                         verb=('report',))
        if run.findings is not None:
            jsonschema.validate(run.findings, self.schema)
        return run

    def check(self, text, taken, *, unused=0, partly=0):
        """The rules take just the findings of these functions, and nothing gets lost."""
        run = self.report(text)
        self.assertIsNotNone(run.findings, str(run))
        names = {key: sorted(f['guilty']['function'] for f in run.findings[key]) for key in ('findings', 'suppressed')}
        self.assertEqual(names['suppressed'], sorted(taken), str(run))
        self.assertEqual(sorted(names['findings'] + names['suppressed']), ['log', 'parse'], str(run))
        self.assertEqual(run.status, 23 if names['findings'] else 0, str(run))
        rules = run.findings['suppressions']
        self.assertEqual(sum(r['objects'] for r in rules), sum({'parse': 8, 'log': 3}[n] for n in taken))
        self.assertEqual(sum(r['findings'] for r in rules), len(taken))
        self.assertEqual(sum(r['partly'] for r in rules), partly, str(run))
        self.assertEqual(run.report.count('unused:'), unused, str(run))
        leaks = sum(t['in_findings'] for t in run.findings['types'])
        self.assertEqual(leaks, 11 - sum(r['objects'] for r in rules))
        return run

    def test_without_rules_both_are_found(self):
        run = self.report()
        self.assertEqual(sorted((f['guilty']['function'], f['objects']) for f in run.findings['findings']),
                         [('log', 3), ('parse', 8)], str(run))
        self.assertEqual(run.status, 23)

    def test_own_rules(self):
        for lines, taken in ((('guilty:parse',), ['parse']), (('type:obj', 'guilty:l?g'), ['log']),
                             (('guilty:[lp]*',), ['log', 'parse']), (('type:other', 'guilty:parse'), []),
                             (('guilty:pars',), []), (('site:log',), ['log']), (('site:s.c',), ['log', 'parse']),
                             (('site:s.c:41',), ['log']), (('guilty:parse', 'max:8'), ['parse']),
                             (('fun:log', 'fun:main'), ['log']), (('...', 'fun:main'), ['log', 'parse']),
                             (('fun:parse', 'fun:main'), []), (('src:s.c', 'fun:*', 'fun:main'), ['parse']),
                             (('fun:log', '...', 'src:s.c:3'), ['log']), (('class:x', 'guilty:parse'), [])):
            with self.subTest(lines):
                self.check(rule(*lines), taken, unused=not taken)

    def test_a_rule_of_another_kind(self):
        self.check(rule('guilty:*e*', kind='RefTrace:ExtraPut,UseAfterPut,RacyUpdate'), [], unused=1)
        self.check(rule('guilty:parse', kind='RefTrace:ExtraPut, Leak'), ['parse'])

    def test_more_objects_than_max(self):
        run = self.check(rule('guilty:parse', 'max:7'), [], unused=1, partly=1)
        self.assertIn('more objects', run.report)

    def test_one_of_two_call_paths_is_not_the_finding(self):
        run = self.check(rule('fun:parse', 'fun:handle'), [], unused=1, partly=1)
        self.assertIn('not all of their stacks', run.report)
        self.check('leak:retry\n', [], unused=1, partly=1)

    def test_leak_sanitizer(self):
        for text, taken in (('leak:pars\n', ['parse']), ('leak:^pars$\n', []), ('leak:^parse$', ['parse']),
                            ('leak:p*se\n', ['parse']), ('leak:s.c\n', ['log', 'parse']),
                            ('leak:log\nleak:parse\n', ['log', 'parse']), ('leak:main\n', ['log', 'parse'])):
            with self.subTest(text):
                self.check('# comment\n\n' + text, taken, unused=0 if taken else 1)

    def test_valgrind(self):
        kind = 'Memcheck:Leak'
        for lines, taken in ((('match-leak-kinds: definite', 'fun:malloc', 'fun:obj_get', 'fun:parse'), ['parse']),
                             (('fun:calloc', 'fun:log'), ['log']), (('fun:malloc', '...', 'fun:main'), ['log', 'parse']),
                             (('fun:obj_get', '...', 'fun:ret?y'), []), (('fun:malloc', 'fun:main'), [])):
            with self.subTest(lines):
                partly = 'fun:ret?y' in lines
                self.check(rule(*lines, kind=kind), taken, unused=not taken, partly=int(partly))
        # other tools' rules are legal, whatever lines they have
        self.check(rule('socketcall.sendto(msg)', 'fun:log', kind='Memcheck:Param') + rule('fun:log', kind=kind), ['log'],
                   unused=1)

    def test_several_files(self):
        run = self.report('leak:parse\n', rule('guilty:log'), '')
        self.assertEqual((run.status, run.findings['findings']), (0, []), str(run))
        self.assertIn('no finding but what is suppressed', run.report)
        self.assertNotIn('no leaks', run.report)

    def test_quiet_still_counts(self):
        run = self.report('leak:parse\nleak:log\n', args=('-q',))
        self.assertRegex(run.report, r'^suppressed: 2 findings \(11 objects\) by 2 of 2 rules')

    def test_generated_rules_take_what_they_were_made_for(self):
        made = self.report(args=('--gen-suppressions',))
        text = made.report[made.report.index('# for --suppressions'):]
        self.check(text, ['log', 'parse'])
        for finding in made.findings['findings']:
            self.check(finding['suppression'], [finding['guilty']['function']])

    def test_what_is_not_understood_is_an_error(self):
        for text, line, why in (('race:foo\n', 1, 'not understood'), ('# c\nleak:*\n', 2, 'every leak'),
                                (rule('from:x'), 4, 'no line of a rule'), (rule('fun:a', kind='RefTrace:Leek'), 3, 'no such kind'),
                                (rule('fun:a', kind='Leak'), 3, 'no kind'), ('\n' + rule('type:*', '...'), 2, 'hide everything'),
                                ('{\nname\nRefTrace:Leak\nfun:a\n', 1, 'no end'), ('{\n}\n', 2, 'without a name'),
                                (rule('type:a', 'type:b'), 5, 'twice'), (rule('max:many'), 4, 'no number'),
                                (rule('frame', kind='Memcheck:Leak'), 4, 'no frame')):
            with self.subTest(text):
                run = self.report(text)
                self.assertEqual(run.status, 2, str(run))
                self.assertRegex(run.stderr, rf'E33 .*: line {line}: .*{why}')
                self.assertIn('fix: ', run.stderr)
                self.assertIsNone(run.findings)

    def test_a_file_that_is_not_there(self):
        run = live.call('report', '-i', self.events, '--suppressions', live.temp() / 'none')
        self.assertEqual(run.status, 125)
        self.assertRegex(run.stderr, r'E25 cannot read .*none.*\n +fix: ')


class Live(live.LiveTest):
    def test_run(self):
        live.need_engine()
        path, rules = live.program('missing-put'), live.temp_path('rules')
        rules.write_text(rule('type:session', 'guilty:authenticate'))
        found = live.trace(*live.told(path), '--error-exitcode=9', '--', path)
        self.assert_guilty(found, found.truth.guilty)
        self.assertEqual(found.status, 9)
        run = live.trace(*live.told(path), '--error-exitcode=9', f'--suppressions={rules}', '--', path)
        self.assertEqual((run.status, run.findings['findings']), (0, []), str(run))
        self.assertEqual([f['objects'] for f in run.findings['suppressed']], [found.truth.guilty.objects])
        # a broken file is told before anything is run
        rules.write_text('what\n')
        run = live.trace(f'--suppressions={rules}', '--', path)
        self.assertEqual((run.status, run.stdout), (2, ''), str(run))


if __name__ == '__main__':
    unittest.main()
