# SPDX-License-Identifier: GPL-2.0-only
"""--save-models, --models, --no-models: what healthy objects did in one run says who is guilty in another."""
import os
import shutil
import subprocess
import unittest

import live

SPEC = 'type=item new=item_new get=item_get put=item_put'


class Models(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def learn(self, path, file, *args, **kwargs):
        return live.trace('-P', SPEC, '--save-models', file, *args, '--', path, 'ok', **kwargs)

    def taken(self, path, *args, **kwargs):
        """-> (functions that took what was left, what the tool says of models)"""
        run = live.trace('-P', SPEC, *args, '--', path, **kwargs)
        known = run.findings['findings'] + run.findings['suspects']
        return [f['guilty']['function'] for f in known], [line for line in run.stderr.splitlines() if 'models' in line]

    def build(self, *flags):
        path = live.temp_path('crossed')
        subprocess.run(['gcc', '-D_GNU_SOURCE', '-w', *flags, str(live.PROGRAMS / 'crossed.c'), '-o', str(path)], check=True)
        return path

    def test_another_run_of_the_same_build(self):
        for flags in (('-g', '-O0'), ('-O1', '-fno-inline')):
            with self.subTest(flags):
                path, file = self.build(*flags), live.temp_path('models')
                run = self.learn(path, file)
                self.assertEqual(run.findings['findings'], [], run)
                functions, said = self.taken(path, '--models', file)
                self.assertEqual(said, ['reftrace: models of 40 healthy objects from 1 file'])
                # first() gives to fourth(): what is left is of second()
                self.assertEqual(functions[:1], ['second'])
                alone, said = self.taken(path)
                self.assertEqual(said, [])
                self.assertNotEqual(alone[:1], ['second'], 'the program is no test any more')

    def test_another_build_does_not_count(self):
        """Without lines a place in a file means something in that very file only."""
        path, other, file = self.build('-O1', '-fno-inline'), self.build('-O1', '-fno-inline', '-DOTHER', '-Wl,--build-id=0x1234'), \
            live.temp_path('models')
        self.learn(path, file)
        self.assertEqual(self.taken(other, '--models', file)[1], [])

    def test_found_by_build_id(self):
        path, home = self.build('-g', '-O0'), live.temp_path('config')
        folder = home / 'reftrace' / 'models'
        folder.mkdir(parents=True)
        env = live.clean_env(XDG_CONFIG_HOME=str(home))
        self.learn(path, f'{folder}/')
        self.assertEqual(len(list(folder.iterdir())), 1)
        self.assertEqual(self.taken(path, env=env), (['second'], ['reftrace: models of 40 healthy objects from 1 file']))
        self.assertEqual(self.taken(path, '--no-models', env=env)[1], [])
        # one that nobody named and that is damaged is said, and left out
        next(folder.iterdir()).write_text('reftrace-models 1\nsite 1\n')
        said = self.taken(path, env=env)[1]
        self.assertEqual(len(said), 1)
        self.assertIn('line 2 is not understood', said[0])

    def test_runs_add_up_and_recordings_have_them(self):
        path, first, second, file = self.build('-g', '-O0'), live.temp_path('one'), live.temp_path('two'), live.temp_path('r.data')
        self.learn(path, first)
        self.learn(path, second, '--models', first)
        self.assertIn('healthy 80', second.read_text())
        live.call('record', '-P', SPEC, '-o', file, '--', path)
        run = live.trace('-i', file, '--models', second, verb=('report',))
        self.assertEqual(run.findings['findings'][0]['guilty']['function'], 'second', run)

    def test_faults(self):
        path, file = self.build('-g', '-O0'), live.temp_path('models')
        for text, code in (('', 'E19'), ('nonsense', 'E19'), (None, 'E25')):
            if text is not None:
                file.write_text(text)
            elif file.exists():
                os.unlink(file)
            run = live.call('run', '-P', SPEC, '--models', file, '--', path, 'ok')
            self.assertRegex(run.stderr, rf'{code} .*\n +fix: ')
            self.assertNotEqual(run.status, 0)
        shutil.rmtree(live.temp_path('none'), ignore_errors=True)
        run = live.call('run', '-P', SPEC, '--save-models', live.temp_path('none') / 'x' / 'y', '--', path, 'ok')
        self.assertRegex(run.stderr, r'E13 .*')


if __name__ == '__main__':
    unittest.main()
