# SPDX-License-Identifier: GPL-2.0-only
"""The target stays what it is: its status, its user, its output; attaching to a running process and letting it go."""
import os
import pathlib
import unittest

import live


class Status(live.LiveTest):
    """Exit status: the program's own, unless findings were asked for or nothing can be said."""

    def setUp(self):
        live.need_engine()
        self.path = live.program('missing-put')
        self.specs = live.told(self.path, 'ok')

    def status(self, shell, *options):
        run = live.trace(*options, *self.specs, '--', 'sh', '-c', shell)
        self.assertIsNotNone(run.findings, str(run))
        self.assertEqual(run.findings['exit']['reftrace'], run.status, str(run))
        return run

    def test_own_status(self):
        run = self.status(f'{self.path} bug; exit 7')
        self.assertEqual(run.status, 7, str(run))
        self.assertEqual(run.findings['exit']['program'], 7)
        self.assert_guilty(run, run.truth.guilty)

    def test_signal(self):
        self.assertEqual(self.status(f'{self.path} ok; kill -SEGV $$').status, 139)

    def test_findings_on_request(self):
        self.assertEqual(self.status(f'{self.path} bug', '--error-exitcode').status, 23)
        self.assertEqual(self.status(f'{self.path} bug; exit 7', '--error-exitcode').status, 23)
        self.assertEqual(self.status(f'{self.path} bug', '--error-exitcode=42').status, 42)
        self.assertEqual(self.status(f'{self.path} ok', '--error-exitcode').status, 0)
        self.assertEqual(self.status(f'{self.path} ok; exit 7', '--error-exitcode').status, 7)

    def test_nothing_seen(self):
        server = live.program('server')
        run = live.trace(*live.told(server, 'ok', '0'), '--', server, 'ok', '0')
        self.assertEqual((run.status, run.findings['exit']['reftrace'], run.findings['exit']['program']), (24, 24, 0))
        self.assertTrue(run.findings['trust']['nothing_seen'])

    def test_output_is_the_programs_own(self):
        bare = live.Process([self.path, 'bug']).wait()[1]
        run = live.call('run', *self.specs, '--', self.path, 'bug')
        self.assertEqual(run.stdout, bare)
        self.assertIn('authenticate', run.stderr)


class User(live.LiveTest):
    """Under sudo the program runs as the user who called it, and what is written belongs to that user."""
    SUDO = {'SUDO_UID': '65534', 'SUDO_GID': '65534', 'SUDO_USER': 'nobody'}

    def setUp(self):
        live.need_engine()
        self.path = live.program('missing-put')
        self.specs = live.told(self.path, 'ok')

    def run_id(self, *options, env=None):
        shell = f'echo id $(id -u) $(id -g) $VALUE; exec {self.path} bug'
        run = live.trace(*options, *self.specs, '--', 'sh', '-c', shell, env=live.clean_env(**(env or {})), cwd='/')
        self.assertEqual(run.status, 0, str(run))
        self.assert_guilty(run, run.truth.guilty)
        return next(line for line in run.stdout.splitlines() if line.startswith('id')).split()[1:]

    def test_root_stays_root(self):
        self.assertEqual(self.run_id(), ['0', '0'])

    def test_sudo_gives_the_caller(self):
        self.assertEqual(self.run_id(env=self.SUDO), ['65534', '65534'])

    def test_as_root(self):
        self.assertEqual(self.run_id('--as-root', env=self.SUDO), ['0', '0'])

    def test_named_user(self):
        self.assertEqual(self.run_id('-u', 'nobody')[0], '65534')

    def test_variable(self):
        self.assertEqual(self.run_id('-E', 'VALUE=set'), ['0', '0', 'set'])

    def test_outputs_belong_to_the_caller(self):
        folder = live.temp_path('mine')
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        run = live.call('run', '-o', folder / 'r.txt', f'--json={folder}/f.json', '-w', folder / 'r.rt', *self.specs,
                        '--', self.path, 'bug', env=live.clean_env(**self.SUDO), cwd='/')
        self.assertEqual(run.status, 0, str(run))
        self.assertEqual({p.name: p.stat().st_uid for p in folder.iterdir()},
                         {'r.txt': 65534, 'f.json': 65534, 'r.rt': 65534})


class Children(live.LiveTest):
    def test_end_of_a_child_is_one_moment(self):
        """Who waits for a child sees its end as without us: not that it has ended, and cannot be waited for yet."""
        live.need_engine()
        run = live.trace('-P', 'malloc', '--', live.program('waits'))
        self.assertEqual((run.status, run.stdout), (0, 'missed 0\n'), str(run))
        self.assertEqual(len(run.findings['processes']), 101, str(run))
        self.assertEqual(sorted(p['status'] for p in run.findings['processes']), [0, *range(100)])


class Attach(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('server', flags=('-g', '-O2'))
        self.specs = live.told(self.path, 'ok', '0')

    def attach(self, variant, attach='auto'):
        target = live.Process([self.path, variant, '30'])
        try:
            pid = int(target.wait_line('ready').split()[1])
            run = live.trace('--attach=' + attach, *self.specs, '-p', str(pid), '--duration', '1s')
            self.assertEqual(live.text_changes(pid, self.path), [], 'left armed')
            state = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
            self.assertRegex(state, r'TracerPid:\s+0\n')
            self.assertNotRegex(state, r'State:\s+[tT]')
            target.popen.terminate()
            status, out, _ = target.wait(20)
            self.assertEqual(status, 0)
            return run, live.truth(out)
        finally:
            target.kill()

    def test_leak_is_found(self):
        for how in ('multi', 'tracefs'):
            with self.subTest(attach=how):
                run, truth = self.attach('bug', how)
                self.assertEqual(run.status, 0, str(run))
                self.assert_guilty(run, truth.guilty, exact=False)
                finding = run.findings['findings'][0]
                self.assertEqual(finding['kind'], 'leak')
                self.assertLessEqual(finding['objects'], truth.guilty.objects)
                self.assertEqual(run.findings['trust']['lost'], 0)

    def test_healthy_is_silent(self):
        run, _ = self.attach('ok')
        self.assertEqual(run.status, 0, str(run))
        self.assert_guilty(run, None)

    def test_ends_with_its_target(self):
        target = live.Process([self.path, 'bug', '2'])
        try:
            pid = int(target.wait_line('ready').split()[1])
            run = live.trace(*self.specs, '-p', str(pid), timeout=20)
            self.assert_guilty(run, live.truth(target.wait()[1]).guilty, exact=False)
        finally:
            target.kill()

    def test_main_thread_that_has_ended(self):
        target = live.Process([live.program('headless')])
        try:
            pid = target.wait_line('ready').split()[1]
            live.wait_until(lambda: ' Z ' in pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='utf-8'))
            run = live.trace('-P', 'malloc', '-p', pid)
            self.assertEqual(run.status, 125, str(run))
            self.assertIn(f'the main thread of process {pid} (headless) has ended', run.stderr)
        finally:
            target.kill()


if __name__ == '__main__':
    unittest.main()
