# SPDX-License-Identifier: GPL-2.0-only
"""Programs that would not be under us what they are by themselves: with a sanitizer's runtime, or with rights by their
file. They are refused with the reason; as children of what is traced, they run as they would without us."""
import os
import shutil
import subprocess
import unittest

import live

ENGINES = ('auto', 'agent', 'uprobe')
FLAGS = ('-g', '-O1')


def built(sanitizer):
    return live.program('missing-put', flags=(*FLAGS, f'-fsanitize={sanitizer}'))


class Sanitizers(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.specs = live.told(live.program('missing-put', flags=FLAGS), 'ok')

    def refused(self, words, *command, engine='auto', **env):
        run = live.call('run', '--engine', engine, *self.specs, *command, env=live.clean_env(**env))
        self.assertEqual((run.status, run.stdout), (125, ''), str(run))
        self.assertRegex(run.stderr, words + '(?s:.*)fix:')

    def traced(self, path, engine, **env):
        run = live.trace('--engine', engine, *self.specs, '--', path, 'bug', env=live.clean_env(**env))
        self.assert_guilty(run, run.truth.guilty)
        self.assert_clean_trust(run)

    def test_search_for_leaks(self):
        """It stops all threads by ptrace, at the end; under a tracer it fails, and with it the program."""
        for sanitizer, name in (('address', 'AddressSanitizer'), ('leak', 'LeakSanitizer')):
            for engine in ENGINES:
                with self.subTest(sanitizer=sanitizer, engine=engine):
                    self.refused(name, '--', built(sanitizer), 'bug', engine=engine)

    def test_without_search_for_leaks(self):
        """Its memory is no place for the agent; the other engine sees it."""
        path, env = built('address'), {'ASAN_OPTIONS': 'verbosity=0:detect_leaks=0'}
        self.refused('AddressSanitizer', '--', path, 'bug', engine='agent', **env)
        self.traced(path, 'uprobe', **env)
        self.traced(path, 'auto', **env)

    def test_threads(self):
        path = built('thread')
        self.refused('ThreadSanitizer', '--', path, 'bug', engine='agent')
        self.traced(path, 'auto')

    def test_preloaded(self):
        library = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True, text=True, check=True).stdout.strip()
        self.refused('AddressSanitizer', '-E', f'LD_PRELOAD={library}', '--', live.program('missing-put', flags=FLAGS), 'bug')

    def test_undefined_behaviour(self):
        """Its runtime has no memory of its own."""
        for engine in ENGINES:
            self.traced(built('undefined'), engine)

    def test_child(self):
        """It is let go: what it prints and how it ends is as without us. Others are traced, and the answer says what is missing."""
        bad, good = built('address'), live.program('missing-put', flags=FLAGS)
        for engine in ENGINES:
            for script in (f'{good} bug; {bad} bug >&2; echo status $?', f'{good} bug; exec {bad} bug >&2'):
                with self.subTest(engine=engine, script=script):
                    bare = live.Process(['sh', '-c', script]).wait()
                    run = live.trace('--engine', engine, *self.specs, '--', 'sh', '-c', script)
                    self.assertEqual((run.stdout, run.status), (bare[1], bare[0] or 24), str(run))
                    self.assertIn('detected memory leaks', run.stderr)
                    self.assert_guilty(run, run.truth.guilty, exact=False)
                    self.assertFalse(run.findings['trust']['complete'])
                    self.assertRegex(' '.join(run.findings['trust']['notes']), r'could not be followed.*AddressSanitizer')

    def test_running(self):
        path = live.program('server', flags=(*FLAGS, '-fsanitize=address'))
        process = live.Process([path, 'ok', '60'])
        try:
            pid = process.wait_line('ready').split()[1]
            for inject in ((), ('--inject',)):
                run = live.call('run', *inject, *live.told(live.program('server', flags=FLAGS), 'ok', '0'), '-p', pid)
                self.assertEqual(run.status, 125, str(run))
                self.assertIn('AddressSanitizer', run.stderr)
            self.assertIn(live.process_state(pid), 'RS')
        finally:
            process.kill()


@unittest.skipIf(os.geteuid(), 'files of other users are made: needs root')
class Rights(live.LiveTest):
    def setUp(self):
        live.need_engine()
        live.need_agent()
        self.path = live.temp_path('rights')
        shutil.copy(live.program('missing-put', flags=FLAGS), self.path)
        self.specs = live.told(self.path, 'ok')

    def check(self):
        run = live.call('run', *self.specs, '--', self.path, 'bug', prefix=live.NOBODY, cwd='/')
        self.assertEqual((run.status, run.stdout), (125, ''), str(run))
        self.assertRegex(run.stderr, r'rights by its file(?s:.*)fix: sudo')
        # nobody can have the kernel act otherwise for what a traced program starts: it is said
        run = live.call('run', *self.specs, '--', 'sh', '-c', f'{self.path} bug; true', prefix=live.NOBODY, cwd='/')
        self.assertEqual(run.status, 24, str(run))
        self.assertRegex(run.stderr, r'without the rights that its file has: process \d+')
        # who may give them, does: the kernel asks for CAP_SYS_PTRACE
        run = live.trace('-u', 'nobody', *self.specs, '--', self.path, 'bug', cwd='/')
        self.assertEqual(run.status, 0, str(run))
        self.assert_guilty(run, run.truth.guilty)
        self.assert_clean_trust(run)

    def test_user(self):
        self.path.chmod(0o4755)
        self.check()

    def test_group(self):
        os.chown(self.path, 0, 5)
        self.path.chmod(0o2755)
        self.check()

    def test_capabilities(self):
        # version 2: net_raw, permitted and effective
        os.setxattr(self.path, 'security.capability', bytes.fromhex('01000002' '00200000' '00000000' '00000000' '00000000'))
        self.check()

    def test_none_are_to_be_had(self):
        """Where the kernel would not give them without us either, nothing is refused."""
        self.path.chmod(0o4755)
        run = live.call('run', *self.specs, '--', self.path, 'bug', prefix=[*live.NOBODY, '--no-new-privs'], cwd='/')
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stderr, r'LEAK')
        self.assertNotIn('without the rights', run.stderr)


if __name__ == '__main__':
    unittest.main()
