# SPDX-License-Identifier: GPL-2.0-only
"""A second reader of recordings, made from docs/spool.md alone; and a writer of the plainest columns. Slow: for tests."""
import struct
import subprocess
import zlib

COLUMNS = 16
LANE, SITE_LO, SITE_HI, CONTROL, TIME_LO, TIME_HI, TIME_FAR, OBJECT_LO, OBJECT_HI, ADDRESS, SEQ, SP, COUNT, AUX, RARE, \
    VERBATIM = range(COLUMNS)
U64 = (1 << 64) - 1
U32 = (1 << 32) - 1


def unpack(stored, size):
    if len(stored) == size:
        return stored
    if len(stored) == 1:
        return stored * size
    return subprocess.run(['zstd', '-dc'], input=stored, capture_output=True, check=True).stdout


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u8(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def difference(self):
        return unfold(self.number())

    def record(self):
        size, = struct.unpack_from('<H', self.data, self.at)
        self.at += size
        return self.data[self.at - size:self.at]


def unfold(value):
    return -(value >> 1) - 1 if value & 1 else value >> 1


class Lane:
    def __init__(self, time=0, producer=0):
        self.time, self.seq, self.thread = time, producer << 20, 0


class Thread:
    def __init__(self, pid=0, tid=0):
        self.pid, self.tid, self.base, self.strayed, self.site, self.recent = pid, tid, 0, False, 0, [0] * 8


class Site:
    def __init__(self, point=0, stack=0, delta=0, flags=0, op=0):
        self.point, self.stack, self.flags, self.op = point, stack, flags, op
        self.delta = delta - 65536 if delta >= 32768 else delta
        self.code = self.next = self.interval = self.count = self.depth = self.aux = 0


class Object:
    def __init__(self, address=0):
        self.address, self.count = address, 0


class Chunk:
    def __init__(self, payload):
        directory = struct.unpack_from(f'<{2 * COLUMNS}I', payload)
        at = 8 * COLUMNS
        self.columns = []
        for i in range(COLUMNS):
            size, stored = directory[2 * i:2 * i + 2]
            self.columns.append(Bytes(unpack(payload[at:at + stored], size)))
            assert len(self.columns[-1].data) == size
            at += stored
        assert at == len(payload)
        self.time = self.address = 0
        self.lanes, self.threads, self.sites, self.objects = [Lane()], [Thread()], [Site()], [Object()]

    def lane(self, code):
        if code <= 253:
            return self.lanes[code]
        assert code == 254
        rare = self.columns[RARE]
        number = rare.number()
        if not number:
            self.lanes.append(Lane(self.time, rare.number()))
        lane = self.lanes[number or -1]
        lane.thread = rare.number()
        if not lane.thread:
            self.threads.append(Thread(rare.number(), rare.number()))
            lane.thread = len(self.threads) - 1
        return lane

    def site(self, thread):
        code = self.columns[SITE_LO].u8() + 256 * self.columns[SITE_HI].u8()
        before = self.sites[thread.site]
        if code == 65535:
            rare = self.columns[RARE]
            self.sites.append(Site(*(rare.number() for _ in range(5))))
            code = len(self.sites) - 1
        before.next = thread.site = code or before.next
        return self.sites[thread.site]

    def next_time(self, lane, site):
        guess = lane.time + (site.interval >> 3)
        near = self.columns[TIME_LO].u8() + 256 * self.columns[TIME_HI].u8()
        if near >> 8 == 255:
            wrong = self.columns[TIME_FAR].difference()
        else:
            wrong = unfold(near)
            site.interval += wrong if site.interval else 8 * wrong
        lane.time = self.time = (guess + wrong) & U64

    def object(self, thread, code):
        if code < 8:
            return thread.recent[code]
        if code == 14:
            return self.columns[OBJECT_LO].u8() + 256 * self.columns[OBJECT_HI].u8()
        assert code == 15
        self.address = (self.address + self.columns[ADDRESS].difference()) & U64
        self.objects.append(Object(self.address))
        return len(self.objects) - 1

    def difference(self, control, bit, column):
        return self.columns[column].difference() if control & bit else 0

    def event(self, lane_code):
        lane = self.lane(lane_code)
        thread = self.threads[lane.thread]
        site = self.site(thread)
        self.next_time(lane, site)
        control = self.columns[CONTROL].u8()
        site.code ^= control & 15
        number = self.object(thread, site.code)
        target = self.objects[number]
        guess = lane.seq & ~0xfffff | lane.seq + 1 & 0xfffff
        lane.seq = guess + self.difference(control, 0x10, SEQ) & U32
        sp = thread.base + site.depth + self.difference(control, 0x20, SP) & U64
        if control & 0x20:
            if thread.strayed or not thread.base:
                thread.base = sp - site.depth & U64
            else:
                site.depth = sp - thread.base & U64
        thread.strayed = bool(control & 0x20)
        fresh = site.code == 15 or site.op == 1
        at_return = bool(site.flags & 8)
        guess = site.count if fresh else target.count + site.delta * at_return
        count = guess * bool(site.flags & 3) + self.difference(control, 0x40, COUNT) & U32
        if fresh:
            site.count = count
        target.count = count + site.delta * (not at_return)
        site.aux = site.aux + self.difference(control, 0x80, AUX) & U64
        thread.recent = [number] + thread.recent[:7]
        return struct.pack('<HBBIQIIQQQIIIhH', 64, 1, site.op, lane.seq, lane.time, thread.pid, thread.tid,
                           target.address, site.aux, sp, count, site.point, site.stack, site.delta, site.flags)

    def records(self):
        return [self.event(code) if code else self.columns[VERBATIM].record() for code in self.columns[LANE].data]


def read(data):
    """-> (words of the command, machine, records, wait status); AssertionError where the text does not hold"""
    magic, order, version, pointer, zero, size, crc, _, _, words, string_bytes = struct.unpack_from('<8sIHBBIIQQII', data)
    assert (magic, order, version, pointer, zero) == (b'RTSPOOL2', 0x01020304, 2, 8, 0)
    assert crc == zlib.crc32(data[:20] + bytes(4) + data[24:size])
    strings = data[48:48 + string_bytes].split(b'\0')
    at, number, records = size, 0, []
    while True:
        magic, flags, n, length, count, crc, first, last, status, head_crc = struct.unpack_from('<4sIIIIIQQiI', data, at)
        number += 1
        assert (magic, n, head_crc) == (b'RTCK', number, zlib.crc32(data[at:at + 44]))
        payload = data[at + 48:at + 48 + length]
        assert len(payload) == length and crc == zlib.crc32(payload)
        at += 48 + length
        if flags & 1:
            assert at == len(data) and not length
            return strings[:words], strings[words], records, status
        records += Chunk(payload).records()
        assert len(records[-count:]) == count
        times = [t for t in (struct.unpack_from('<Q', r, 8)[0] for r in records[-count:]) if t] or [0]
        assert (first, last) == (min(times), max(times))


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def difference(value):
    value = (value + (1 << 63) & U64) - (1 << 63)
    return number(value << 1 if value >= 0 else (-value << 1) - 1)


def payload(records):
    """Plain columns: each event has a lane, a thread, a site and an object of its own."""
    columns = [bytearray() for _ in range(COLUMNS)]
    address = time = 0
    for record in records:
        if record[2] != 1 or len(record) != 64:
            columns[LANE].append(0)
            columns[VERBATIM] += record
            continue
        _, _, op, seq, when, pid, tid, target, aux, sp, count, point, stack, delta, flags = \
            struct.unpack('<HBBIQIIQQQIIIhH', record)
        columns[LANE].append(254)
        columns[RARE] += number(0) + number(seq >> 20) + number(0) + number(pid) + number(tid)
        columns[SITE_LO].append(255)
        columns[SITE_HI].append(255)
        for value in (point, stack, delta & 0xffff, flags, op):
            columns[RARE] += number(value)
        columns[TIME_LO].append(0)
        columns[TIME_HI].append(255)
        columns[TIME_FAR] += difference(when - time)
        columns[CONTROL].append(15 | 0xf0)
        columns[ADDRESS] += difference(target - address)
        columns[SEQ] += difference((seq & 0xfffff) - 1)
        columns[SP] += difference(sp)
        columns[COUNT] += difference(count)
        columns[AUX] += difference(aux)
        address, time = target, when
    directory = b''.join(struct.pack('<II', len(c), len(c)) for c in columns)
    return directory + b''.join(bytes(c) for c in columns)


def chunk(n, records, flags=0, status=0):
    body = b'' if flags else payload(records)
    times = [t for t in (struct.unpack_from('<Q', r, 8)[0] for r in records) if t] or [0]
    head = struct.pack('<4sIIIIIQQi', b'RTCK', flags, n, len(body), len(records), zlib.crc32(body), min(times),
                       max(times), status)
    return head + struct.pack('<I', zlib.crc32(head)) + body


def write(command, machine, records, status):
    """-> the bytes of a recording in one chunk"""
    strings = b''.join(word + b'\0' for word in [*command, machine])
    padded = strings + bytes(-len(strings) % 8)
    head = struct.pack('<8sIHBBIIQQII', b'RTSPOOL2', 0x01020304, 2, 8, 0, 48 + len(padded), 0, 10, 1700000000000000000,
                       len(command), len(strings))
    crc = zlib.crc32(head + padded)
    return head[:20] + struct.pack('<I', crc) + head[24:] + padded + chunk(1, records) + chunk(2, [], 1, status)
