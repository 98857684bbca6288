# SPDX-License-Identifier: GPL-2.0-only
"""docs/spool.md is the layout: a reader and a writer made from it alone agree with src/capture."""
import os
import random
import shutil
import struct
import subprocess
import unittest

import live
import spool

TOOL = live.BUILD / 'tests' / 'spool-records'
BENCH = live.BUILD / 'bench' / 'spool'


def any_number(rng, bits):
    return rng.getrandbits(bits) >> rng.randrange(bits)


def any_records(rng, count, change):
    """Events that differ from the one before in some fields, and now and then a record of another kind."""
    bits = (8, 32, 64, 32, 32, 64, 64, 64, 32, 32, 32, 16, 16)
    fields, out = [0] * len(bits), []
    for _ in range(count):
        fields[1] = fields[1] + 1 & spool.U32
        fields[2] = fields[2] + rng.randrange(1000) & spool.U64
        for i, width in enumerate(bits):
            if rng.random() < change:
                fields[i] = any_number(rng, width) % rng.choice((4, 1 << width))
        values = list(fields)
        values[11] -= values[11] >> 15 << 16
        out.append(struct.pack('<HBBIQIIQQQIIIhH', 64, 1, *values))
        if rng.random() < 0.05:
            out.append(struct.pack('<HBBIQII', 40, rng.randrange(40, 256), 0, 0, rng.getrandbits(40), 1, 2) + rng.randbytes(16))
    return out


class Spool(unittest.TestCase):
    def setUp(self):
        if not os.access(TOOL, os.X_OK):
            self.skipTest(f'{TOOL} is not built')
        if not shutil.which('zstd'):
            self.skipTest('zstd is not installed')

    def tool(self, *args):
        done = subprocess.run([str(TOOL), *map(str, args)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_read_by_the_text(self):
        seed = int(os.environ.get('RT_SEED', random.randrange(1 << 30)))
        rng = random.Random(seed)
        plain, path = live.temp_path('records'), live.temp_path('text.rt')
        for change in (0.003, 0.05, 0.9):
            with self.subTest(change=change, seed=seed):
                records = any_records(rng, 3000, change)
                plain.write_bytes(b''.join(records))
                self.tool('write', plain, path, 7)
                command, machine, back, status = spool.read(path.read_bytes())
                self.assertEqual((command, machine.split()[0], status), ([], b'Linux', 7))
                self.assertTrue(back == records)

    def test_reference_stream(self):
        path, plain = live.temp_path('reference.rt'), live.temp_path('records')
        subprocess.run([str(BENCH), 'write', '20000', str(path)], check=True)
        self.tool('read', path, plain)
        self.assertTrue(b''.join(spool.read(path.read_bytes())[2]) == plain.read_bytes())

    def test_written_by_the_text(self):
        rng = random.Random(1)
        path, plain = live.temp_path('plain.rt'), live.temp_path('records')
        records = any_records(rng, 3000, 0.3)
        # a lane of its own for each event: no more than there are producers
        path.write_bytes(spool.write([b'./leak', b'100'], b'Linux 6.1 x86_64', records, 256))
        self.assertEqual(self.tool('read', path, plain), '256\n')
        self.assertTrue(plain.read_bytes() == b''.join(records))


if __name__ == '__main__':
    unittest.main()
