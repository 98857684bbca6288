# SPDX-License-Identifier: GPL-2.0-only
"""Counts are exact: gets and puts per call site over threads, forks, exec and a plugin, run after run, on every way to
attach; and a process that only maps the same files carries no breakpoint."""
import os
import sys
import unittest

import live

RUNS = int(os.environ.get('RT_COUNT_RUNS', '20' if live.REAL else '5'))
ATTACH = ('multi', 'tracefs')


def need_attach(how):
    live.need_engine()
    path = live.program('missing-put')
    run = live.trace('--attach=' + how, *live.told(path, 'ok'), '--', path, 'ok')
    if run.status == 125:
        raise unittest.SkipTest(f'--attach={how} does not work here: {run.stderr.strip()[:200]}')


class Counts(live.LiveTest):
    def check(self, how):
        need_attach(how)
        path = live.program('counts', flags=('-g', '-O2'))
        plugin = path.parent / 'plugin.so'
        specs = live.told(path)
        bystander = live.Process([sys.executable, '-c', 'import ctypes, sys, time\n'
                                  f'ctypes.CDLL({str(plugin)!r})\nprint("ready", flush=True)\ntime.sleep(600)'])
        try:
            bystander.wait_line('ready')
            self.assertTrue(live.mapped(bystander.popen.pid, plugin))
            for number in range(RUNS):
                findings, report = live.temp_path('f.json'), live.temp_path('r.txt')
                tracer = live.Process([live.REFTRACE, 'run', f'--json={findings}', '-o', report, '--attach=' + how,
                                       *specs, '--', path])
                try:
                    while tracer.popen.poll() is None:
                        self.assertEqual(live.text_changes(bystander.popen.pid, plugin), [], 'bystander is armed')
                        live.wait_until(lambda t=tracer: t.popen.poll() is not None, 0.05)
                    status, out, err = tracer.wait()
                finally:
                    tracer.kill()
                run = live.Run(status, out, err, live.json.loads(findings.read_text()) if findings.exists() else None,
                               live._results(report), 0)
                with self.subTest(run=number):
                    self.assertEqual(run.status, 0, str(run))
                    self.assert_clean_trust(run)
                    self.assert_guilty(run, None)
                    self.assert_counts(run)
                    for point in run.findings['points']:
                        if point['hits'] is not None:
                            self.assertEqual(point['hits'], point['events'] + point['dropped'], str(point))
        finally:
            bystander.kill()

    def test_multi(self):
        self.check('multi')

    def test_tracefs(self):
        self.check('tracefs')


class Bystander(live.LiveTest):
    """Two processes of one program, one of them traced."""

    def check(self, how):
        need_attach(how)
        path = live.program('server', flags=('-g', '-O2'))
        specs = live.told(path, 'ok', '0')
        other = live.Process([path, 'ok', '60'])
        tracer = live.Process([live.REFTRACE, 'run', '--attach=' + how, '-o', '/dev/null', *specs, '--', path, 'ok', '2'])
        try:
            other_pid = int(other.wait_line('ready').split()[1])
            pid = int(tracer.wait_line('ready').split()[1])
            # the method of looking works: the traced one is armed
            self.assertTrue(live.wait_until(lambda: live.armed(pid, path) or tracer.popen.poll() is not None)
                            and tracer.popen.poll() is None, 'the target is not armed')
            self.assertEqual(live.text_changes(other_pid, path), [])
            status, _, err = tracer.wait()
            self.assertEqual(status, 0, err)
            self.assertEqual(live.text_changes(other_pid, path), [])
        finally:
            tracer.kill()
            other.kill()

    def test_multi(self):
        self.check('multi')

    def test_tracefs(self):
        self.check('tracefs')


if __name__ == '__main__':
    unittest.main()
