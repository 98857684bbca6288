# SPDX-License-Identifier: GPL-2.0-only
"""A corpus of our own programs: the score says who was named first, and what was accused that is healthy."""
import json
import subprocess
import sys
import unittest

import live

RUN = '''#!/bin/sh
# corpus.sh NAME run VARIANT CASE
exec $PFX {} "$3"
'''


class Score(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.folder = live.temp_path('corpus')
        (self.folder / 'small').mkdir(parents=True)

    def corpus(self, guilty, **more):
        """One case: missing-put with bug and without; the truth says who is guilty."""
        program = live.program('missing-put', flags=('-g', '-O2'))
        run = self.folder / 'corpus.sh'
        run.write_text(RUN.format(program))
        run.chmod(0o755)
        (self.folder / 'small' / 'truth.json').write_text(json.dumps({
            'name': 'small',
            'types': {'struct session': {'new': ['session_new'], 'get': [{'function': 'session_ref', 'arg': 0}],
                                         'put': [{'function': 'session_unref', 'arg': 0}], 'count_start': 1}},
            'cases': [{'id': 'one', 'kind': 'missing_put', 'type': 'struct session', 'guilty': {'function': guilty},
                       'run': 'corpus.sh small run bug one', 'run_healthy': 'corpus.sh small run ok one', **more}]}))

    def score(self, *words, status=0):
        out = self.folder / 'score.json'
        done = subprocess.run([sys.executable, str(live.SOURCE / 'tools' / 'score.py'), str(live.REFTRACE.parent),
                               '--runs', '1', '--json', str(out), *map(str, words), str(self.folder / 'small')],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(out.read_text())[0], done.stdout

    def test_named_first_and_again_from_the_recording(self):
        self.corpus('authenticate', expected_leaked=25)
        row, text = self.score('--keep', self.folder / 'kept')
        self.assertEqual((row['rank'], row['first'], row['count'], row['healthy']), (1, 'authenticate', True, [[]]))
        self.assertIn('1 cases: top-1 1,', text)
        again, _ = self.score('--from', self.folder / 'kept')
        self.assertEqual((again['rank'], again['leaked']), (1, 25))

    def test_nothing_was_recorded(self):
        self.corpus('authenticate')
        row, text = self.score('--from', self.folder / 'nowhere', status=1)
        self.assertEqual(row['cause'], 'no answer')
        self.assertIn('no answer of small/one:', text)

    def test_told_the_same_by_each_way(self):
        self.corpus('authenticate')
        done = subprocess.run([sys.executable, str(live.SOURCE / 'tools' / 'score.py'), str(live.REFTRACE.parent), '--same',
                               str(self.folder / 'small')], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r'small/one +buggy +3 recordings, 1 findings: same\n')
        self.assertRegex(done.stdout, r'small/one +healthy +3 recordings, 0 findings: same\n')

    def test_somebody_else_is_guilty(self):
        self.corpus('nobody_here')
        row, text = self.score()
        self.assertGreater(row['rank'], 3)
        self.assertEqual(row['false'], 1)
        self.assertIn('top-1 0,', text)

    def test_what_is_healthy_is_accused(self):
        """The bug in the place of the healthy program: every finding there is false."""
        self.corpus('authenticate', run_healthy='corpus.sh small run bug one')
        row, text = self.score()
        self.assertEqual(row['healthy'], [['authenticate']])
        self.assertIn('HEALTHY: authenticate', text)


if __name__ == '__main__':
    unittest.main()
