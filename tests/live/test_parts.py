# SPDX-License-Identifier: GPL-2.0-only
"""Lifetimes in several files (record --switch-output): each reads alone and says so, all together lose nothing.

The oracles are what the program prints about itself, and perf on each file.
"""
import json
import re
import shutil
import signal
import subprocess
import unittest

import live


def reftrace(*args):
    return subprocess.run([str(live.REFTRACE), *map(str, args)], capture_output=True, text=True, check=False)


class Parts(unittest.TestCase):
    def record(self, name, *args, option, flags=('-g', '-O0'), extra=()):
        """Files in their order, and what the program said."""
        folder = live.temp_path(name)
        folder.mkdir()
        program = live.program(name, flags=flags)
        said = subprocess.run([str(program), args[0], *('0' for _ in args[1:])], capture_output=True, text=True,
                              check=True).stdout
        spec = live.truth(said).specs[0]
        done = reftrace('record', '-o', folder / 'x', option, *extra, '-P', spec, '--', program, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'reftrace report {folder}/x.*', done.stderr)
        return sorted(folder.iterdir()), live.truth(done.stdout)

    def check_together(self, files, truth):
        answer = live.temp_path('together.json')
        done = reftrace('report', f'--json={answer}', *files)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('trust: complete', done.stdout)
        self.assertRegex(done.stdout, r'\d+ events, 0 lost')
        # what is only looked at (a block that is freed) is an event as well
        self.assertEqual(live.site_counts(json.loads(answer.read_text(encoding='utf-8'))), truth.counts)
        if truth.guilty:
            self.assertRegex(done.stdout, rf'missing put in {truth.guilty.function}\(\)')
            self.assertRegex(done.stdout, rf': {truth.guilty.objects} of \d+ objects never released')
        return done.stdout

    def check_alone(self, files):
        """Number of events in all of them."""
        events = 0
        for i, file in enumerate(files):
            done = reftrace('report', file)
            self.assertEqual(done.returncode, 24, done.stdout + done.stderr)
            self.assertIn(f'part {i + 1} of a recording in several files', done.stdout)
            self.assertEqual('what came before is in' in done.stdout, i > 0, done.stdout)
            self.assertEqual('it goes on in a later file' in done.stdout, i + 1 < len(files), done.stdout)
            # what began or ends in another file accuses nobody, and nothing looks lost
            self.assertNotIn('finding:', done.stdout.replace('no finding:', ''))
            self.assertNotIn('missing between', done.stdout)
            self.assertNotIn('make sense', done.stdout)
            if i:
                self.assertIn(files[i - 1].name, done.stdout)
            count = re.search(r'(\d+) events?, 0 lost', done.stdout)
            self.assertTrue(count, done.stdout + done.stderr)
            events += int(count.group(1))
        return events

    def test_by_time(self):
        files, truth = self.record('server', 'bug', '3', option='--switch-output=700ms')
        self.assertGreaterEqual(len(files), 3)
        self.check_together(files, truth)
        self.assertEqual(self.check_alone(files), sum(truth.counts.values()))
        # the finding's object lives in the first file and is read in the views as well
        ours = [w for f in files for w in ('-i', f)]
        done = reftrace('tree', *ours)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'{truth.guilty.objects} of', done.stdout)
        self.assertEqual(reftrace('object', *ours, '7').returncode, 0)

    @unittest.skipUnless(shutil.which('perf'), 'perf is not installed')
    def test_perf_reads_each_alone(self):
        files, truth = self.record('server', 'bug', '2', option='--switch-output=500ms')
        samples = 0
        for file in files:
            done = subprocess.run(['perf', 'script', '-i', str(file), '-F', 'comm,event,ip,sym'], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            heads = re.findall(r'^(\S+)\s+reftrace:req_(?:new|get|put|free):', done.stdout, re.M)
            samples += len(heads)
            # stacks and mappings of the first file are said again
            self.assertLessEqual(set(heads), {'server'}, file)  # the last one may have come to nothing
            self.assertEqual(len(re.findall(r'\b(?:serve|answer)\b', done.stdout)) >= len(heads), True, file)
        self.assertEqual(samples, sum(truth.counts.values()))

    def test_processes_and_threads(self):
        for name in 'fork-exec', 'many-threads', 'thread-leak':
            with self.subTest(name):
                files, truth = self.record(name, 'bug', option='--switch-output=1ms')
                self.assertGreater(len(files), 1)
                self.check_together(files, truth)
                self.check_alone(files)

    def test_with_samples(self):
        files, truth = self.record('server', 'bug', '2', option='--switch-output=600ms',
                                   extra=('-F', '499', '-e', 'cpu-clock'))
        self.assertGreater(len(files), 1)
        done = reftrace('report', *files)
        self.assertIn('one by one', done.stderr)
        self.assertIn(f'{sum(truth.counts.values())} events, 0 lost', done.stdout)
        done = reftrace('report', '--samples', *files)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(reftrace('report', '--samples', files[1]).returncode, 0)

    def test_by_signal_while_attached(self):
        folder = live.temp_path('attached')
        folder.mkdir()
        target = live.Process([live.program('server'), 'bug', '30'])
        try:
            pid = target.wait_line('ready').split()[1]
            process = live.Process([live.REFTRACE, 'record', '-o', folder / 'x', '--switch-output', '-P',
                                    'type=req new=req_new get=req_get put=req_put', '-p', pid])
            self.assertTrue(live.wait_until(lambda: (folder / 'x').exists() and (folder / 'x').stat().st_size > 9000))
            process.popen.send_signal(signal.SIGUSR2)
            self.assertTrue(live.wait_until(lambda: len(list(folder.iterdir())) == 2))
            self.assertTrue(live.wait_until(lambda: (folder / 'x').stat().st_size > 9000))
            process.popen.send_signal(signal.SIGINT)
            status, _, err = process.wait(30)
            self.assertEqual(status, 0, err)
        finally:
            target.kill()
        files = sorted(folder.iterdir())
        done = reftrace('report', *files)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('missing put in answer()', done.stdout)
        self.check_alone(files)

    def test_killed_in_a_later_file(self):
        """Finished files are perf.data, what was being written is a spool: they read together all the same."""
        folder = live.temp_path('killed')
        folder.mkdir()
        target = live.Process([live.program('server'), 'bug', '30'])
        try:
            pid = target.wait_line('ready').split()[1]
            process = live.Process([live.REFTRACE, 'record', '-o', folder / 'x', '--switch-output', '-P',
                                    'type=req new=req_new get=req_get put=req_put', '-p', pid])
            self.assertTrue(live.wait_until(lambda: (folder / 'x').exists() and (folder / 'x').stat().st_size > 9000))
            process.popen.send_signal(signal.SIGUSR2)
            self.assertTrue(live.wait_until(lambda: any(f.read_bytes()[:8] == b'PERFILE2'
                                                        for f in folder.glob('x.*')), 60))
            self.assertTrue(live.wait_until(lambda: (folder / 'x').stat().st_size > 20000))
            process.popen.send_signal(signal.SIGKILL)
            process.popen.wait()
        finally:
            target.kill()
        files = [*sorted(folder.glob('x.*')), folder / 'x']
        self.assertEqual(len(files), 2)
        done = reftrace('report', '-v', *files)
        self.assertEqual(done.returncode, 24, done.stdout + done.stderr)
        # nobody looked through the memory of the program: nothing is certain
        self.assertIn('missing put in answer()', done.stdout)
        self.assertIn('ends early', done.stdout)
        self.assertNotIn('part 2', done.stdout)

    def test_wrong_files(self):
        files, _ = self.record('server', 'bug', '3', option='--switch-output=500ms')
        others, _ = self.record('server', 'bug', '2', option='--switch-output=400ms')
        self.assertGreaterEqual(len(files), 3)
        whole = live.temp_path('whole')
        reftrace('record', '-o', whole, '-P', 'type=req new=req_new get=req_get put=req_put', '--',
                 live.program('server'), 'bug', '1')
        for wrong, why in (([files[0], files[2]], 'it is part 3, and the file before it part 1'),
                           ([files[1], files[0]], 'does not go on'),
                           ([files[0], others[1]], 'of another recording'),
                           ([whole, files[1]], 'does not say that another one follows'),
                           ([files[0], whole], 'does not go on'),
                           ([files[0], files[0]], 'does not go on')):
            done = reftrace('report', *wrong)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)
            self.assertIn('in their order', done.stderr)
            self.assertNotIn('trust: complete', done.stdout)
        # the later files alone, without the first: incomplete, but one
        done = reftrace('report', *files[1:])
        self.assertEqual(done.returncode, 24, done.stderr)
        self.assertIn('part 2 of a recording', done.stdout)
        self.assertNotIn('goes on in a later', done.stdout)


if __name__ == '__main__':
    unittest.main()
