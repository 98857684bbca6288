# SPDX-License-Identifier: GPL-2.0-only
"""--at: a program that frees everything at its end is judged at main's return, at a signal, or now and then."""
import json
import os
import re
import signal
import unittest

import live


def killed_usr1(process):
    os.kill(process.popen.pid, signal.SIGUSR1)


class Moment(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('tidy')
        self.told = live.told(self.path, 'ok')

    def test_at_its_end_nothing_is_left(self):
        run = live.trace(*self.told, '--error-exitcode', '--', self.path)
        self.assert_guilty(run, None)
        self.assertEqual((run.status, run.findings['types'][0]['live'], run.findings['look']), (0, 0, None), str(run))

    def test_main_return(self):
        for engine in ([], ['--engine', 'uprobe', '--attach', 'tracefs']):
            with self.subTest(engine):
                run = live.trace(*engine, *self.told, '--at=main-return', '--error-exitcode', '--', self.path)
                self.assert_guilty(run, run.truth.guilty)
                self.assert_clean_trust(run)
                self.assertEqual(run.status, 23, str(run))
        run = live.trace(*self.told, '--at=main-return', '--error-exitcode', '--', self.path, 'ok')
        self.assert_guilty(run, None)
        self.assert_clean_trust(run)
        self.assertEqual(run.status, 0, str(run))

    def test_main_return_of_each_process(self):
        script = f'for i in 1 2 3; do {self.path} ok > /dev/null; done; {self.path}; exit 3'
        run = live.trace(*self.told, '--at=main-return', '--', '/bin/sh', '-c', script)
        self.assert_guilty(run, run.truth.guilty)
        self.assertEqual((run.status, len(run.findings['processes'])), (3, 5), str(run))
        self.assertEqual(sorted(p['status'] for p in run.findings['processes']), [0, 0, 0, 0, 3])
        self.assertEqual(run.findings['findings'][0]['of'], 400)

    def test_programs_without_moments_of_their_own(self):
        """the demos are judged as without it: forks, threads, dlopen, and what ends by a signal"""
        for name in ('missing-put', 'fork-exec', 'thread-leak', 'dlopen', 'cxx'):
            with self.subTest(name):
                path = live.program(name)
                run = live.trace(*live.told(path), '--at=main-return', '--', path)
                self.assert_guilty(run, run.truth.guilty)

    def waiting(self, *args):
        """reftrace around a program that has done its work and waits before main returns"""
        findings, report = live.temp_path('findings.json'), live.temp_path('report.txt')
        process = live.Process([live.REFTRACE, 'run', *self.told, f'--json={findings}', '-o', report, *args, '--', self.path, 'bug',
                                'wait'], pipe=True)
        self.addCleanup(process.kill)
        process.wait_line('ready')
        return process, findings, report

    def end(self, process):
        process.popen.stdin.close()
        return process.wait()

    def has_look(self, findings, number):
        try:
            found = json.loads(findings.read_text())
        except (OSError, ValueError):
            return None
        return found if (found['look'] or 0) >= number else None

    def check_look(self, found):
        self.assertEqual([(f['guilty']['function'], f['objects']) for f in found['findings']], [('work', 25)], found)
        self.assertEqual((found['trust']['complete'], found['exit']['program']), (True, None), found['trust'])

    def test_signal(self):
        process, findings, report = self.waiting('--at=USR1', '--error-exitcode=9')
        for number in (1, 2):
            killed_usr1(process)
            self.assertTrue(live.wait_until(lambda n=number: self.has_look(findings, n)), process.errors)
            self.check_look(self.has_look(findings, number))
        status, _, errors = self.end(process)
        self.assertEqual(status, 9, errors)
        text = report.read_text()
        self.assertEqual(re.findall(r'(?m)^look (\d) at what lives:$', text), ['1', '2'])
        # the tidy end has no say
        self.assertEqual((text.count('LEAK'), text.count('still running'), text.count('no leaks')), (2, 2, 0), text)

    def test_interval_and_exit(self):
        process, findings, report = self.waiting('--at=150ms', '--at=exit')
        self.assertTrue(live.wait_until(lambda: self.has_look(findings, 3)), process.errors)
        self.check_look(self.has_look(findings, 3))
        status, _, errors = self.end(process)
        self.assertEqual(status, 0, errors)
        self.assertIsNone(json.loads(findings.read_text())['look'])
        self.assertRegex(report.read_text(), r'(?s)look 1 .*look 2 .*look 3 .*no leaks')

    def test_a_moment_that_never_comes(self):
        run = live.trace(*self.told, '--at=1h', '--', self.path)
        self.assert_guilty(run, None)
        self.assertIn('ended before it was looked at', run.stderr)

    def test_attached(self):
        process = live.Process([self.path, 'bug', 'wait'], pipe=True)
        self.addCleanup(process.kill)
        process.wait_line('ready')
        pid = process.popen.pid
        findings = live.temp_path('findings.json')
        tracer = live.Process([live.REFTRACE, 'run', *self.told, f'--json={findings}', '--at=100ms', '-p', pid])
        self.addCleanup(tracer.kill)
        self.assertTrue(live.wait_until(lambda: self.has_look(findings, 2)), tracer.errors)
        self.assertFalse(live.process_state(pid) in ('T', 't', ''))
        process.popen.stdin.close()
        self.assertEqual(process.wait()[0], 0)
        tracer.wait()

    def test_faults(self):
        for args, words in ((['--at=noon'], ['--at=noon', 'main-return']), (['--at=0'], ['--at=0']),
                            (['--at=main-return', '--engine', 'agent'], ['agent', '--at=USR1'])):
            run = live.call('run', *args, '--', self.path)
            self.assertIn(run.status, (2, 125), str(run))
            for word in words:
                self.assertIn(word, run.stderr)


if __name__ == '__main__':
    unittest.main()
