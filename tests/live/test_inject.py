# SPDX-License-Identifier: GPL-2.0-only
"""Engine agent in programs that are running: --inject."""
import os
import pathlib
import random
import re
import signal
import unittest

import live

INJECT = ('--inject',)
PAIRS = 'type=obj get=obj_get:1 put=obj_put:1'


class Inject(live.LiveTest):
    def let_go(self, pid, path):
        """Nobody traces it, it runs, and its code is its own."""
        self.assertEqual(live.text_changes(pid, path), [], 'left armed')
        state = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
        self.assertRegex(state, r'TracerPid:\s+0\n')
        self.assertNotRegex(state, r'State:\s+[tT]')

    def end(self, target):
        target.popen.terminate()
        status, out, err = target.wait(30)
        self.assertEqual(status, 0, out + err)
        return out

    def test_leak_is_found(self):
        path = live.program('server', flags=('-g', '-O2'))
        for variant in ('bug', 'ok'):
            with self.subTest(variant=variant):
                target = live.Process([path, variant, '30'])
                try:
                    pid = int(target.wait_line('ready').split()[1])
                    run = live.trace(*INJECT, *live.told(path, 'ok', '0'), '-p', pid, '--duration', '1s')
                    self.let_go(pid, path)
                    truth = live.truth(self.end(target))
                finally:
                    target.kill()
                self.assertEqual(run.status, 0, str(run))
                self.assert_guilty(run, truth.guilty, exact=False)
                self.assertEqual(run.findings['trust']['lost'], 0, str(run))

    def crowd(self, *seconds):
        path = live.program('crowd', flags=('-g', '-O2'))
        target = live.Process([path, *seconds])
        return path, target, int(target.wait_line('ready').split()[1])

    @live.alone('a thread that is kept from running in the middle of a hook until the end is an event lost, and said to be')
    def test_threads_that_run_on(self):
        """Eight are caught anywhere, again and again: each sees all of its operations, and none notices."""
        path, target, pid = self.crowd('8')
        try:
            for _ in range(5):
                run = live.trace(*INJECT, '-P', PAIRS, '-p', pid, '--duration', '300ms')
                self.let_go(pid, path)
                trust = run.findings['trust']
                self.assertEqual(trust['lost'], 0, str(run))
                self.assertGreater(trust['events'], 1000, str(run))
                self.assertEqual(run.findings['findings'], [], str(run))
            out = self.end(target)
        finally:
            target.kill()
        self.assertRegex(out, r'(?m)^balance 0$')

    def test_waits_go_on(self):
        """Who sleeps, or waits with a time limit, while the agent comes and goes: the call ends when it would have."""
        _, target, pid = self.crowd('2')
        try:
            run = live.trace(*INJECT, '-P', PAIRS, '-p', pid, '--duration', '300ms')
            self.assertEqual(run.findings['trust']['unarmed'], [], str(run))
            self.assertGreater(run.findings['trust']['events'], 0, str(run))
            out = self.end(target)
        finally:
            target.kill()
        self.assertEqual(re.findall(r'(?m)^(?:slept|polled) (.*)$', out), ['0', '0'])

    def test_killed_tool(self):
        """At any moment: the program goes on, with or without jumps to an agent that is silent."""
        for _ in range(60 if live.REAL else 6):
            _, target, pid = self.crowd('2')
            tool = live.Process([live.REFTRACE, 'run', *INJECT, '-o', '/dev/null', '-P', PAIRS, '-p', pid])
            try:
                live.wait_until(lambda: False, random.random() * 0.3)
                tool.popen.send_signal(signal.SIGKILL)
                tool.popen.wait(10)
                out = self.end(target)
            finally:
                tool.kill()
                target.kill()
            self.assertRegex(out, r'(?m)^balance 0$')

    @unittest.skipIf(os.geteuid(), 'another user is taken for it: needs root')
    def test_without_any_privilege(self):
        path = live.program('server', flags=('-g', '-O2'))
        target = live.Process([*live.NOBODY, path, 'bug', '30'])
        try:
            pid = int(target.wait_line('ready').split()[1])
            run = live.Process([*live.NOBODY, live.REFTRACE, 'run', *INJECT, *live.told(path, 'ok', '0'), '-p', pid,
                                '--duration', '1s'])
            status, out, err = run.wait(30)
            self.assertEqual(status, 0, out + err)
            self.assertIn('missing put in answer()', out + err)
            self.let_go(pid, path)
            self.end(target)
        finally:
            target.kill()

    def test_usage(self):
        for words, fault in ((('--', 'true'), r'--inject is for running programs(?s:.*)fix:.*-p PID'),
                             (('--engine', 'uprobe', '-p', str(os.getpid())), r'--inject is engine agent(?s:.*)fix:')):
            with self.subTest(words=words):
                run = live.call('run', *INJECT, *words)
                self.assertEqual(run.status, 2, str(run))
                self.assertRegex(run.stderr, fault)


if __name__ == '__main__':
    unittest.main()
