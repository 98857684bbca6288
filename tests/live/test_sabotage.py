# SPDX-License-Identifier: GPL-2.0-only
"""True recordings of the demos, damaged in a thousand random ways: an event dropped, two swapped or told at each
other's time, the counter read from a wrong field or off by a constant, a point unarmed, the tail cut. The report is
still right or says that it is incomplete; it never accuses another function with confidence, and never calls the
program clean."""
import json
import os
import pathlib
import random
import struct
import subprocess
import time
import unittest
import zlib

import live

DEMOS = ('missing-put', 'error-path', 'extra-put', 'double-put', 'thread-leak', 'extra-get', 'inlined', 'use-after-put',
         'hand-over')
WAYS = ('drop', 'swap', 'trade', 'shift', 'offset', 'unarm', 'cut')
ROUNDS = int(os.environ.get('RT_SABOTAGE_ROUNDS', '4200' if live.REAL else '252'))
QUICK_SECONDS = 25  # a busy machine does fewer rounds, though each way with each demo once
SEED = int(os.environ.get('RT_SEED', '1'))
EVENT, POINT, LOSS, COUNT, HITS = 1, 4, 12, 15, 16
UNARMED = 5
STREAMS = os.environ.get('RT_SABOTAGE_STREAMS')  # a folder with recordings of other programs, as tools/score.py --keep leaves it
LIKELY = 0.75  # what the report calls so; below, it says "possible"
TOOL = live.BUILD / 'tests' / 'spool-records'


class Recording:
    """A recording as its records (wire/event.h)."""

    def __init__(self, path):
        plain = live.temp_path('records')
        self.status = subprocess.run([str(TOOL), 'read', str(path), str(plain)], capture_output=True, text=True,
                                     check=True).stdout.strip()
        data, self.records, at = plain.read_bytes(), [], 0
        while at < len(data):
            size, = struct.unpack_from('<H', data, at)
            self.records.append(data[at:at + size])
            at += size

    def write(self, path, records):
        plain = path.with_suffix('.records')
        plain.write_bytes(b''.join(records))
        subprocess.run([str(TOOL), 'write', str(plain), str(path), self.status], check=True)

    def kind(self, *kinds):
        return [i for i, r in enumerate(self.records) if r[2] in kinds]

    def drop(self, rng):
        gone = rng.choice(self.kind(EVENT))
        return [r for i, r in enumerate(self.records) if i != gone]

    def swap(self, rng):
        a, b = rng.sample(self.kind(EVENT), 2)
        out = list(self.records)
        out[a], out[b] = out[b], out[a]
        return out

    def trade(self, rng):
        """Two events of different addresses that are told at each other's time; of one address, nothing may be odd."""
        a = rng.choice(self.kind(EVENT))
        b = rng.choice([i for i in self.kind(EVENT) if self.records[i][24:32] != self.records[a][24:32]])
        out = list(self.records)
        for i, r in ((a, out[b]), (b, out[a])):
            out[i] = r[:4] + self.records[i][4:16] + r[16:]
        return out

    def counts(self, change):
        """change(record, count) instead of every count that was read."""
        out = []
        for r in self.records:
            at = {EVENT: 48, COUNT: 52}.get(r[2])
            if at:
                r = r[:at] + struct.pack('<i', change(r, struct.unpack_from('<i', r, at)[0])) + r[at + 4:]
            out.append(r)
        return out

    def offset(self, rng):
        """The counter and a constant."""
        by = rng.choice((-2, -1, 1, 2, 3, 16, 1000, 100000))
        return self.counts(lambda _, count: count + by)

    def shift(self, rng):
        """What lies beside the counter: the same for all objects, some number of each object's own, or anything."""
        salt, kind = rng.randrange(1 << 30), rng.choice(('zero', 'one', 'length', 'pointer', 'any'))

        def beside(record, _):
            number, = struct.unpack_from('<Q', record, 24)
            own = zlib.crc32(struct.pack('<QI', number, salt))
            return {'zero': 0, 'one': 1, 'length': own % 50, 'pointer': own - (1 << 31), 'any': rng.randrange(4)}[kind]
        return self.counts(beside)

    def unarm(self, rng):
        point = rng.choice(self.kind(POINT))
        number, = struct.unpack_from('<I', self.records[point], 24)
        name = self.records[point][64:].split(b'\0')[0]
        text = name + b': not armed\0'
        text += b'\0' * (-len(text) % 8)
        loss = struct.pack('<HBBIQIIIIQ', 40 + len(text), LOSS, 0, 0, 0, 0, 0, UNARMED, number, 0) + text
        out = []
        for i, r in enumerate(self.records):
            if r[2] == EVENT and struct.unpack_from('<I', r, 52)[0] == number:
                continue
            if r[2] == HITS and struct.unpack_from('<I', r, 28)[0] == number:
                continue
            out.append(r)
            if i == point:
                out.append(loss)
        return out


class Sabotage(live.LiveTest):
    def record(self, name):
        path = live.program(name, 'gcc', ('-g', '-O2'))
        spool = live.temp_path(name + '.spool')
        run = live.call('run', '-w', spool, '-o', '/dev/null', *live.told(path, 'ok'), '--', path, 'bug')
        self.assertIn(run.status, (0, 134, 139), str(run))
        return Recording(spool), spool, [live.truth(run.stdout).guilty.function]

    def answer(self, what, path):
        done = subprocess.run([str(live.REFTRACE), 'report', '--json', '-i', str(path)], capture_output=True, text=True,
                              env=live.clean_env(), check=False, timeout=60)
        self.assertTrue(done.stdout, f'{what}: {done.returncode} {done.stderr}')
        return json.loads(done.stdout)

    def judge(self, what, guilty, path, least=0):
        """guilty: the functions that may be named; least: the confidence from which on others may not -> whether one is"""
        answer = self.answer(what, path)
        if 'findings' not in answer:
            # cut before the first event: not even known to be about references
            self.assertTrue(answer['damage'], f'{what}: called clean, guilty is {guilty}')
            return False
        wrong = [f['guilty']['function'] for f in answer['findings']
                 if f['confidence'] >= least and not any(live.same_function(f['guilty']['function'], g) for g in guilty)]
        self.assertEqual(wrong, [], f'{what}: accused with confidence, guilty is {guilty}\n{json.dumps(answer)[:3000]}')
        if not answer['findings']:
            self.assertFalse(answer['trust']['complete'], f'{what}: called clean, guilty is {guilty}')
        return bool(answer['findings'])

    def damage(self, streams, rounds, least=0):
        """streams: [(name, Recording, its file, guilty)]; least: as of judge()"""
        rng = random.Random(SEED)
        damaged = live.temp_path('damaged.spool')
        named, done, end = 0, 0, time.monotonic() + QUICK_SECONDS
        for number in range(rounds):
            if not live.REAL and number >= len(streams) * len(WAYS) and time.monotonic() > end:
                break
            name, recording, spool, guilty = streams[number % len(streams)]
            way = WAYS[number // len(streams) % len(WAYS)]
            done += 1
            what = f'{name}: {way}, round {number}, RT_SEED={SEED}'
            with self.subTest(what):
                if way == 'cut':
                    data = spool.read_bytes()
                    damaged.write_bytes(data[:rng.randrange(200, len(data))])
                else:
                    recording.write(damaged, getattr(recording, way)(rng))
                named += self.judge(what, guilty, damaged, least)
        print(f'     {done} damaged recordings: {named} still name the guilty function, the others say incomplete')

    def test_a_thousand_ways(self):
        live.need_engine()
        self.damage([(name, *self.record(name)) for name in DEMOS], ROUNDS)

    def test_other_streams(self):
        """
        What a recording accuses, undamaged, is what it may accuse. Others may be possible: two events at each other's time
        are what a program with another bug does.
        """
        if not STREAMS:
            self.skipTest('RT_SABOTAGE_STREAMS names no folder with recordings')
        streams = []
        for path in sorted(pathlib.Path(STREAMS).glob('**/buggy/*.data')):
            guilty = [f['guilty']['function'] for f in self.answer(str(path), path)['findings']]
            if guilty:
                streams.append((str(path.relative_to(STREAMS)), Recording(path), path, guilty))
        self.assertTrue(streams, f'no recording in {STREAMS} accuses a function')
        print(f'     {len(streams)} recordings')
        self.damage(streams, max(ROUNDS, len(streams) * len(WAYS)), LIKELY)


if __name__ == '__main__':
    unittest.main()
