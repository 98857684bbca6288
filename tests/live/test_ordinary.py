# SPDX-License-Identifier: GPL-2.0-only
"""All that engine agent does, done by an ordinary user: no capability, no group, and none to be had (no_new_privs). What needs the
kernel's help says so."""
import json
import os
import signal
import unittest

import live

USER = [*live.NOBODY, '--no-new-privs'] if not os.geteuid() else ['setpriv', '--no-new-privs']
# forks and execs, libraries that come later, threads, exceptions, tail calls, marks
STORIES = ('missing-put', 'fork-exec', 'dlopen', 'many-threads', 'thread-leak', 'thrown', 'cxx', 'tail-call', 'marked', 'double-put')


class Ordinary(live.LiveTest):
    def setUp(self):
        live.need_binary()
        live.need_agent()
        self.folder = live.temp_path('ordinary')
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.env = live.clean_env(HOME=str(self.folder), TMPDIR=str(self.folder), PERF_BUILDID_DIR=str(self.folder / 'debug'))

    def trace(self, *args, verb='run'):
        findings, report = self.folder / 'f.json', self.folder / 'r.txt'
        run = live.call(verb, f'--json={findings}', '-o', report, *args, prefix=USER, cwd='/', env=self.env)
        self.assertTrue(findings.exists(), str(run))
        run.findings, run.report = json.loads(findings.read_text()), report.read_text()
        findings.unlink()
        return run

    def check(self, run):
        self.assertEqual(run.status, 0, str(run))
        self.assertEqual(run.findings['engine'], 'agent')
        self.assert_clean_trust(run)
        self.assert_guilty(run, run.truth.guilty)
        self.assert_counts(run)

    def test_launched(self):
        for name in STORIES:
            path = live.program(name, flags=('-g', '-O2'))
            for variant in ('bug', 'ok'):
                with self.subTest(name=name, variant=variant):
                    self.check(self.trace(*live.told(path, 'ok'), '--', path, variant))

    def test_not_told(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        run = self.trace('--', path, 'bug')
        self.assertEqual(run.status, 0, str(run))
        self.assert_guilty(run, run.truth.guilty)

    def test_recorded(self):
        path, data = live.program('fork-exec', flags=('-g', '-O2')), self.folder / 'x.data'
        done = live.call('record', '-o', data, *live.told(path, 'ok'), '--', path, 'bug', prefix=USER, cwd='/', env=self.env)
        self.assertEqual(done.status, 0, str(done))
        run = self.trace('-i', data, verb='report')
        self.assertEqual(run.status, 0, str(run))
        self.assert_guilty(run, done.truth.guilty)
        self.assert_clean_trust(run)

    def test_heap(self):
        for mode, guilty in (('bug', [('use', 10)]), ('ok', [])):
            run = self.trace('-P', 'malloc', '--', live.program('heap', flags=('-g', '-O2', '-std=c++17')), mode)
            self.assertEqual(run.status, 0, str(run))
            self.assert_clean_trust(run)
            self.assertEqual([(f['guilty']['function'], f['objects']) for f in run.findings['findings']], guilty, str(run))

    def test_sampled(self):
        path = live.program('sampled', flags=('-g', '-O1'))
        run = self.trace('--sample=1/4', *live.told(path, 'ok', '1'), '--', path, 'leak', '2000')
        self.assertEqual(run.findings['engine'], 'agent')
        self.assertEqual([f['guilty']['function'] for f in run.findings['findings']], ['leak'], str(run))

    def running(self, *words):
        target = live.Process([*USER, live.program('server', flags=('-g', '-O2')), *words], env=self.env, cwd='/')
        return target, int(target.wait_line('ready').split()[1])

    def test_injected(self):
        path = live.program('server', flags=('-g', '-O2'))
        for variant in ('bug', 'ok'):
            target, pid = self.running(variant, '30')
            try:
                run = self.trace('--inject', *live.told(path, 'ok', '0'), '--duration', '0.5', '-p', pid)
                self.assertEqual(live.text_changes(pid, path), [], 'left armed')
                target.popen.terminate()
                status, out, err = target.wait(30)
            finally:
                target.kill()
            self.assertEqual((run.status, status), (0, 0), f'{run}\n{err}')
            self.assert_guilty(run, live.truth(out).guilty, exact=False)

    def test_looked_at(self):
        """What lives at a signal."""
        path, findings = live.program('server', flags=('-g', '-O2')), self.folder / 'f.json'
        tool = live.Process([*USER, live.REFTRACE, 'run', f'--json={findings}', '-o', '/dev/null', '--at=USR1', *live.told(path, 'ok', '0'),
                             '--', path, 'bug', '30'], env=self.env, cwd='/')

        found = []

        def looked():
            """Asks, until something was left by then."""
            os.kill(tool.popen.pid, signal.SIGUSR1)
            try:
                found[:] = json.loads(findings.read_text())['findings']
            except (OSError, ValueError):
                pass
            return found
        try:
            pid = int(tool.wait_line('ready').split()[1])
            self.assertTrue(live.wait_until(looked), tool.errors)
            self.assertEqual(found[0]['guilty']['function'], 'answer')
            os.kill(pid, signal.SIGTERM)
            status, _, err = tool.wait(20)
        finally:
            tool.kill()
        self.assertEqual(status, 0, err)

    def test_killed(self):
        """The tool: the program goes on, unarmed or silent."""
        path = live.program('server', flags=('-g', '-O2'))
        tool = live.Process([*USER, live.REFTRACE, 'run', '-o', '/dev/null', *live.told(path, 'ok', '0'), '--', path, 'ok', '30'],
                            env=self.env, cwd='/')
        try:
            pid = int(tool.wait_line('ready').split()[1])
            tool.popen.kill()
            tool.popen.wait(10)
            self.assertTrue(live.wait_until(lambda: live.process_state(pid) not in 'tT', 5), live.process_state(pid))
            os.kill(pid, signal.SIGTERM)
            self.assertTrue(live.wait_until(lambda: any(line.startswith('guilty ') for line in tool.lines), 10), tool.lines)
        finally:
            tool.kill()

    def test_needs_the_kernel(self):
        """Engine uprobe, and what comes by system calls: refused, with the reason and a way."""
        for words in (('--engine', 'uprobe', '-P', 'type=o get=f:1 put=g:1'), ('-P', 'fd'), ('-P', 'mapping')):
            with self.subTest(words=words):
                run = live.call('run', *words, '--', '/bin/true', prefix=USER, cwd='/', env=self.env)
                self.assertEqual(run.status, 125, str(run))
                self.assertIn('fix:', run.stderr)


if __name__ == '__main__':
    unittest.main()
