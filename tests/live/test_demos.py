# SPDX-License-Identifier: GPL-2.0-only
"""Each program of tests/programs, traced told (-P with the truth) and untold, by compiler and optimisation, by both engines
in one run (auto) and by each alone: the planted fault is named, nobody else is, healthy variants are silent, and the counts are the program's own."""
import itertools
import os
import unittest

import live

# program -> found without being told? (names and types show the family); else untold runs must only not accuse others
DEMOS = {
    'out-argument': True, 'kept-on-error': True, 'replaced-member': True,
    'freed-holder': True, 'freed-table': True, 'cleared-member': True, 'cleared-pair': True, 'freed-list': True, 'taken-over': True,
    'missing-put': True, 'error-path': True, 'extra-put': True, 'double-put': True, 'use-after-put': False,
    'thread-leak': True, 'hand-over': True, 'extra-get': True, 'start-zero': False, 'find-hidden': False,
    'inlined': False, 'inlined-null': False, 'cache': True, 'slot-put': True, 'swap': True, 'dlopen': True, 'fork-exec': True, 'cxx': True,
    'many-threads': True, 'freed-by-force': True, 'recursion': True, 'tail-call': True, 'inner-new': True,
    'marked': True, 'hooks': True, 'thrown': True, 'one-owner': True, 'in-the-open': True,
}
# Where nobody tells of uses, who put before the use is named, as its code shows it, and not who it called to use it
EARLY = {'use-after-put': 'finish'}
ONLY_AGENT = {'freed-list'}  # what is in a block that is freed no uprobe looks at: each free() would cost one
# by which branch the guilty function skips its put: what is written in that line
SKIPS = {'missing-put': "if (s->user[0] == 'g'", 'error-path': 'if (healthy)'}
COMPILERS = list(itertools.product(('gcc', 'clang'), ('-O0', '-O2')))
SETTLE_LIMIT = 5.0  # seconds from the program's end to the report; the aim is 1.5


def saw(text):
    return [line for line in text.splitlines() if line.startswith('saw ')]


class Demos(live.LiveTest):
    settle = []

    def setUp(self):
        live.need_engine()

    @classmethod
    def tearDownClass(cls):
        if cls.settle:
            cls.settle.sort()
            print(f'     program end to report: median {cls.settle[len(cls.settle) // 2]:.2f} s, '
                  f'worst {cls.settle[-1]:.2f} s')

    def check(self, name, cc, opt, variant, is_told, engine=()):
        path = live.program(name, cc, ('-g', opt))
        run = live.trace(*engine, *(live.told(path, 'ok') if is_told else []), '--', path, variant)
        if not is_told and not DEMOS[name] and run.status in (24, 125):
            # not found, and said so: E21 before the start, or an answer that is not called clean
            if run.findings and run.truth:
                self.assert_guilty(run, run.truth.guilty, exact=False, also=EARLY.get(name))
            return
        self.assertIsNotNone(run.truth, f'the program did not come to its end\n{run}')
        self.assertEqual(run.status, 0, str(run))
        # what the program sees of itself
        self.assertEqual(saw(run.stdout), saw(live.Process([path, variant]).wait()[1]), str(run))
        guilty = run.truth.guilty
        self.assertEqual(guilty is None, variant == 'ok' or name in ('cache', 'many-threads'))
        if is_told or DEMOS[name]:
            self.assert_clean_trust(run)
        self.assert_guilty(run, guilty, exact=is_told or DEMOS[name], also=None if is_told else EARLY.get(name))
        if name in SKIPS and guilty:
            lines = (live.PROGRAMS / f'{name}.c').read_text(encoding='utf-8').splitlines()
            skips = run.findings['findings'][0]['skips']
            self.assertEqual([SKIPS[name] in lines[skip['line'] - 1] for skip in skips], [True], f'{skips}\n{run}')
        if is_told:
            self.assert_report(run, guilty)
            self.assert_counts(run)
        self.settle.append(run.settle_seconds)
        self.assertLess(run.settle_seconds, SETTLE_LIMIT)


def add(name, cc, opt, variant, is_told):
    def test(self):
        self.check(name, cc, opt, variant, is_told)
    how = 'told' if is_told else 'untold'
    setattr(Demos, f'test_{name.replace("-", "_")}_{variant}_{cc}{opt.replace("-", "_")}_{how}', test)


def add_engine(name, cc, opt, variant, engine):
    def test(self):
        self.check(name, cc, opt, variant, True, ('--engine', engine))
    setattr(Demos, f'test_{name.replace("-", "_")}_{variant}_{cc}{opt.replace("-", "_")}_{engine}', test)


for _name, (_cc, _opt), _variant, _told in itertools.product(DEMOS, COMPILERS, ('bug', 'ok'), (True, False)):
    quick = (_cc, _opt) in ((('gcc', '-O2'), ('clang', '-O0')) if _told else (('gcc', '-O0'),))
    if quick or os.environ.get('RT_REAL'):
        add(_name, _cc, _opt, _variant, _told)
        if _told and _opt == '-O2':
            for _engine in ('agent',) if _name in ONLY_AGENT and _variant == 'bug' else ('agent', 'uprobe'):
                add_engine(_name, _cc, _opt, _variant, _engine)

if __name__ == '__main__':
    unittest.main()
