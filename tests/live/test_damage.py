# SPDX-License-Identifier: GPL-2.0-only
"""Recordings that are cut or changed: never a clean report, never a crash. RT_REAL=1: at every byte."""
import concurrent.futures
import os
import re
import subprocess
import threading

import live

TRIES = 60  # places in each file; RT_REAL: all of them
SAID = r'reftrace: [EW]\d\d '
FLIPPED = SAID + '|trust: incomplete'  # a changed record may still be one: then the report's trust tells


class Damage(live.LiveTest):
    def setUp(self):
        live.need_engine()
        # At every byte it is the static one: reading it takes 3 ms, reading the C library's debug information 60.
        self.program = live.program('damaged', flags=('-g', '-O1', '-static') if live.REAL else ('-g', '-O1'))
        self.files = threading.local()

    def spool(self):
        path = live.temp_path('small.spool')
        run = live.call('run', '-w', path, '--no-census', *live.told(self.program), '--', self.program)
        self.assertIn(run.status, (0, 24), str(run))
        return path.read_bytes()

    def perf_data(self, *words):
        path = live.temp_path('small.data')
        run = live.call('record', '-q', '-o', path, *words, '--', self.program)
        self.assertEqual(run.status, 0, str(run))
        return path.read_bytes()

    def report(self, data, what, verb='report', said=SAID):
        """What the verb says of a file with this data; any thread may ask."""
        if not hasattr(self.files, 'path'):
            self.files.path = live.temp_path('damaged')
        self.files.path.write_bytes(data)
        done = subprocess.run([live.REFTRACE, verb, '-i', self.files.path], capture_output=True, text=True,
                              errors='replace', timeout=60, check=False)
        run = live.Run(done.returncode, done.stdout, done.stderr, None, None, 0)
        self.assertTrue(0 <= run.status < 128, f'{what}: {run}')
        if run.status:
            self.assertRegex(run.stderr + run.stdout if said == FLIPPED else run.stderr, said, f'{what}: {run}')
        return run

    def everywhere(self, data, damage, more=()):
        """damage(at) at each place of the data, and at those told, by a thread for each CPU -> what it returned"""
        places = {*range(0, len(data), 1 if live.REAL else max(1, len(data) // TRIES)), *more}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(damage, sorted(places)))

    def cut(self, data):
        """Whatever is missing at the end, the report does not pass for a whole one, and says where the file ends."""
        def at(size):
            run = self.report(data[:size], f'cut at {size}')
            # a file that does not even begin as a recording is none
            self.assertIn(run.status, (24,) if size >= 8 else (24, 125), f'cut at {size}: {run}')
            if size >= 8:
                self.assertRegex(run.stderr, r'byte \d+|0x[0-9a-f]+', f'cut at {size}: {run}')

        self.assertEqual(self.report(data, 'whole').status, 0)
        self.everywhere(data, at, (*range(1, 9), len(data) - 1))

    def test_spool_cut(self):
        self.cut(self.spool())

    def test_perf_data_cut(self):
        self.cut(self.perf_data(*live.told(self.program)))

    def test_spool_flipped(self):
        """Every chunk has a checksum: each flipped bit is noticed."""
        data = self.spool()

        def flip(at):
            changed = bytearray(data)
            changed[at] ^= 1 << at % 8
            run = self.report(changed, f'flipped at {at}')
            self.assertIn(run.status, (24, 125), f'flipped at {at}: {run}')

        self.everywhere(data, flip)

    def test_perf_data_flipped(self):
        """perf.data has no checksums: not every change can be noticed, but none leads astray."""
        data = self.perf_data(*live.told(self.program))

        def flip(at):
            changed = bytearray(data)
            changed[at] ^= 1 << at % 8
            for verb in ('report', 'script', 'annotate'):
                run = self.report(changed, f'{verb}, flipped at {at}', verb, FLIPPED)
                self.assertIn(run.status, (0, 24, 125), f'{verb}, flipped at {at}: {run}')

        self.everywhere(data, flip)

    def test_random(self):
        for head in (b'PERFILE2', b'2ELIFREP', b'RTSPOOL', b'\x28\xb5\x2f\xfd', b'', self.perf_data('-F', '99')[:200]):
            for size in (1, 100, 5000):
                run = self.report(head + os.urandom(size), f'{head[:8]} and {size} bytes')
                self.assertNotEqual(run.status, 0, str(run))

    def test_stream_cut(self):
        """A stream has no size in its header: what it ends with, a status, is missed."""
        path = live.temp_path('small.pipe')
        with open(path, 'wb') as f:
            process = subprocess.run([str(live.REFTRACE), 'record', '-q', '-o', '-',
                                           *live.told(self.program), '--', str(self.program)], stdout=f,
                                          stderr=subprocess.PIPE, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        data = path.read_bytes()
        whole = self.report(data, 'whole stream')
        self.assertEqual(whole.status, 0, str(whole))

        def clean(size):
            run = self.report(data[:size], f'stream cut at {size}')
            return run.status == 0 and re.sub(r'\S*damaged\S*', '', run.stdout) == re.sub(r'\S*damaged\S*', '', whole.stdout)

        self.assertEqual(sum(self.everywhere(data, clean)), 0)


if __name__ == '__main__':
    live.unittest.main()
