# SPDX-License-Identifier: GPL-2.0-only
"""Exceptions through calls whose return is waited for, when whoever waited is gone. While it is there: test_demos,
program thrown."""
import signal

import live


class Thrown(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('thrown', flags=('-g', '-O2'))
        self.specs = live.told(self.path, 'ok')
        self.want = self.end(live.Process([self.path, 'ok', 'wait'], pipe=True))

    def end(self, process):
        """Gives it the word. -> what it says of itself"""
        process.wait_line('ready')
        process.popen.stdin.close()
        self.assertTrue(live.wait_until(lambda: 'guilty none\n' in process.lines, 20), ''.join(process.lines + process.errors))
        return [line for line in process.lines if line.startswith('saw')]

    def check(self, *args, kill=False):
        process = live.Process([live.REFTRACE, 'run', *args, '-o', '/dev/null', *self.specs, '--', self.path, 'ok', 'wait'], pipe=True)
        try:
            process.wait_line('ready')
            if kill:
                process.popen.send_signal(signal.SIGKILL)
            process.popen.wait(20)
            self.assertEqual(self.end(process), self.want)
        finally:
            process.kill()

    def test_let_go(self):
        for engine in ('agent', 'uprobe', 'agent+uprobe'):
            with self.subTest(engine):
                self.check('--engine', engine, '--duration', '2s')

    def test_killed(self):
        self.check('--engine', 'agent', kill=True)


if __name__ == '__main__':
    import unittest
    unittest.main()
