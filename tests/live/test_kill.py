# SPDX-License-Identifier: GPL-2.0-only
"""kill -9 at a random moment, of the target or of reftrace: nothing stays armed, defined or running, and the recording
so far is readable."""
import fcntl
import json
import mmap
import os
import random
import signal
import sys
import termios
import unittest

import live

ROUNDS = int(os.environ.get('RT_KILL_ROUNDS', '200' if live.REAL else '20'))


def descendants(session):
    """Processes of a session (Process starts each command in its own)."""
    found = []
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as f:
                    fields = f.read().rpartition(')')[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != 'Z':
                found.append(int(entry))
    return found


@live.alone('definitions that are left behind are taken away by the next reftrace, whoever starts it')
class Kill(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.path = live.program('server', flags=('-g', '-O2'))
        self.specs = live.told(self.path, 'ok', '0')
        self.defined = live.probe_events()

    def check_clean(self):
        self.assertTrue(live.wait_until(lambda: set(live.probe_events()) <= set(self.defined), 10),
                        f'left defined: {set(live.probe_events()) - set(self.defined)}')
        fresh = live.Process([self.path, 'ok', '20'])
        try:
            pid = int(fresh.wait_line('ready').split()[1])
            self.assertEqual(live.text_changes(pid, self.path), [], 'a fresh process is armed')
        finally:
            fresh.kill()

    def check_recording(self, spool, report_of_live):
        if not spool.exists() or not spool.stat().st_size:
            return
        run = live.call('report', '-i', spool)
        self.assertIn(run.status, (0, 24), str(run))
        if not report_of_live:
            # the recorder was killed: the recording is cut and must say so
            self.assertEqual(run.status, 24, str(run))
            self.assertNotRegex(run.stdout, r'(?i)\bno leaks\b')

    def one(self, rng, way, victim):
        spool = live.temp_path('kill.rt')
        process = live.Process([live.REFTRACE, 'run', *way, '-w', spool, '-o', '/dev/null', *self.specs,
                                '--', self.path, 'bug', '30'])
        target = None
        try:
            # one in four dies during the start, before the target runs
            if rng.random() < 0.75:
                target = int(process.wait_line('ready').split()[1])
                live.wait_until(lambda: False, rng.random() * 0.4)
            else:
                live.wait_until(lambda: False, rng.random() * 0.1)
            if victim == 'target' and target:
                os.kill(target, signal.SIGKILL)
                status, _, err = process.wait(20)
                self.assertEqual(status, 137, err)
                self.assertNotIn('INTERNAL', err)
            else:
                process.popen.send_signal(signal.SIGKILL)
                process.popen.wait(10)
                # the target may go on or end, but unarmed and not stopped; the rest of reftrace goes away
                if target and os.path.exists(f'/proc/{target}/stat'):
                    if way[0].startswith('--engine=agent'):
                        self.serves(process, target)
                    else:
                        self.assertTrue(live.wait_until(lambda: self.unarmed(target), 5), 'the target stays armed')
                self.assertTrue(live.wait_until(lambda: self.is_gone(process, target), 10),
                                f'left: {[(p, live.process_state(p)) for p in descendants(process.popen.pid)]}')
        finally:
            process.kill()
        self.check_recording(spool, victim == 'target' and target)
        spool.unlink(missing_ok=True)

    def is_gone(self, process, target):
        """All but the program: it goes on, or dies of what would end it anyway."""
        left = set(descendants(process.popen.pid)) - {target}
        for pid in left if not target else ():
            try:
                if os.readlink(f'/proc/{pid}/exe') == os.path.realpath(self.path):
                    os.kill(pid, signal.SIGTERM)
            except OSError:
                pass
        return not left

    def unarmed(self, pid):
        try:
            with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
                state = f.read().rpartition(')')[2].split()[0]
            return state in 'ZX' or (state not in 'tT' and not live.text_changes(pid, self.path))
        except (OSError, ValueError):
            return True

    def serves(self, process, target):
        """The agent's code stays in a process that lives on, and is as if it were not there."""
        self.assertTrue(live.wait_until(lambda: live.process_state(target) not in 'tT', 5), live.process_state(target))
        try:
            os.kill(target, signal.SIGTERM)
        except ProcessLookupError:
            pass
        self.assertTrue(live.wait_until(lambda: any(line.startswith('guilty ') for line in process.lines), 10), process.lines)

    def check(self, *way):
        seed = int(os.environ.get('RT_SEED', random.randrange(1 << 30)))
        rng = random.Random(seed)
        for number in range(ROUNDS // 2):
            victim = rng.choice(('target', 'reftrace'))
            with self.subTest(round=number, victim=victim, seed=seed):
                self.one(rng, way, victim)
        self.check_clean()

    def test_multi(self):
        self.check('--attach=multi')

    def test_tracefs(self):
        self.check('--attach=tracefs')

    def test_agent(self):
        self.check('--engine=agent')

    def test_both(self):
        self.check('--engine=agent+uprobe')


class Signals(live.LiveTest):
    """What the target does is its own: its signal and its status pass through."""

    def setUp(self):
        live.need_engine()
        self.path = live.program('server', flags=('-g', '-O2'))
        self.specs = live.told(self.path, 'ok', '0')

    def test_term_of_target_is_seen_by_it(self):
        process = live.Process([live.REFTRACE, 'run', '-o', '/dev/null', *self.specs, '--', self.path, 'ok', '30'])
        try:
            os.kill(int(process.wait_line('ready').split()[1]), signal.SIGTERM)
            status, out, err = process.wait(20)
            self.assertEqual(status, 0, err)
            self.assertIn('guilty none', out)
        finally:
            process.kill()

    def test_interrupt_gives_a_report(self):
        findings = live.temp_path('f.json')
        process = live.Process([live.REFTRACE, 'run', f'--json={findings}', *self.specs, '--', self.path, 'bug', '30'])
        try:
            process.wait_line('ready')
            live.wait_until(lambda: False, 0.5)
            os.killpg(process.popen.pid, signal.SIGINT)  # as from a terminal
            status, _, err = process.wait(20)
            self.assertEqual(status, 130, err)
            self.assertIn('answer', err)
        finally:
            process.kill()

    def test_term_while_the_report_is_written(self):
        """Who watches over a program that has just ended, and ends reftrace, gets the report; who insists does not."""
        for insists in (False, True):
            fifo = live.temp_path('report.json')
            os.mkfifo(fifo)
            with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), 'rb') as reader:
                fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
                process = live.Process([live.REFTRACE, 'run', '-q', '-o', '/dev/null', f'--json={fifo}', *self.specs, '--', self.path, 'bug', '1'])
                try:
                    # the report is longer than what nobody reads yet
                    self.assertTrue(live.wait_until(lambda: self.waiting(reader) == mmap.PAGESIZE, 30), process.errors)
                    process.popen.terminate()
                    self.assertTrue(live.wait_until(lambda: 'report is being written' in ''.join(process.errors), 10))
                    if insists:
                        process.popen.terminate()
                        self.assertEqual(process.wait(20)[0], 128 + signal.SIGTERM)
                        continue
                    os.set_blocking(reader.fileno(), True)
                    self.assertTrue(json.loads(reader.read())['findings'])
                    self.assertEqual(process.wait(20)[0], 0)
                finally:
                    process.kill()

    @staticmethod
    def waiting(reader):
        return int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder)


if __name__ == '__main__':
    unittest.main()
