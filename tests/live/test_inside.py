# SPDX-License-Identifier: GPL-2.0-only
"""Let go in the middle: a thread stands in a get or put that was told of, and has not counted yet. Nothing is missing
then; and a reference that nobody told of is still noticed beside it."""
import signal
import unittest

import live

SPEC = 'type=job new=job_new get=job_get put=job_put'


class Inside(unittest.TestCase):
    def report(self, *args):
        """What report says of `inside ARGS`, let go when it stands in the operation."""
        file = live.temp_path('inside')
        target = live.Process([live.program('inside'), *args], pipe=True)
        try:
            pid = target.wait_line('ready').split()[1]
            record = live.Process([live.REFTRACE, 'record', '-o', file, '-P', SPEC, '-p', pid])
            self.assertTrue(live.wait_until(lambda: file.exists() and file.stat().st_size > 9000))
            target.popen.stdin.write('\n')
            target.popen.stdin.flush()
            target.wait_line('inside')
            record.popen.send_signal(signal.SIGINT)
            status, _, err = record.wait(30)
            self.assertEqual(status, 0, err)
            target.popen.stdin.close()
            self.assertEqual(target.wait()[0], 0)
        finally:
            target.kill()
        status, out, err = live.Process([live.REFTRACE, 'report', '-i', file]).wait()
        return status, out + err

    def test_nothing_is_missing(self):
        for operation in 'get', 'put':
            with self.subTest(operation):
                status, out = self.report(operation)
                self.assertIn('trust: complete', out)
                self.assertIn('no leaks', out)
                self.assertEqual(status, 0, out)

    def test_what_is_missing_is_noticed(self):
        for operation in 'get', 'put':
            with self.subTest(operation):
                status, out = self.report(operation, 'unseen')
                self.assertIn('1 object of type job has operations that were not seen', out)
                self.assertEqual(status, 24, out)


if __name__ == '__main__':
    unittest.main()
