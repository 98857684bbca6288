#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the seeds made-* of tests/fuzz/corpus: each format once with everything that it can hold, and its faults.

    seeds.py [FOLDER]      default: tests/fuzz/corpus beside this script; the same bytes at every run

The layouts are those of wire/event.h, docs/spool.md, linux/perf_event.h, linux/btf.h and src/archive/archive.h. Every
number goes through fields.pack(), so that replay.py can change each.
"""
import hashlib
import io
import pathlib
import struct
import subprocess
import sys
import tarfile

from fields import join, pack

made = {}  # (target, name) -> bytes


def seed(target, name, data):
    made[target, 'made-' + name] = data


def pad(data, to=8):
    return data + b'\0' * (-len(data) % to)


# ---- archive

def script(*files):
    """files: (type, path, contents); type 0 is a plain file, see types[] of fuzz-archive.c"""
    out = b'\1'
    for kind, path, content in files:
        out += pack('<BB', kind, len(path)) + path.encode() + pack('<H', len(content)) + content
    return out


def archive():
    ident = 'ab' * 20
    lines = [b'reftrace-archive 1', b'item \x020 4 - /tmp/rec', b'path rec', b'item \x021 3 ' + ident.encode() +
             b' /usr/lib/a b.so', b'path objects/' + ident.encode() + b'/elf', b'missing - /x.c', b'why it is gone',
             b'missing ' + ident.encode() + b' [vdso]', b'why no file', b'']
    rec, elf = (0, 'rec', b'data'), (0, f'objects/{ident}/elf', b'ELF')

    def manifest(text=b'\n'.join(lines)):
        return (0, 'MANIFEST', text)

    def changed(old, new):
        return script(rec, elf, manifest(b'\n'.join(lines).replace(old, new)))
    seed('archive', 'whole', script(rec, elf, manifest()))
    seed('archive', 'first', script(manifest(), rec, elf))
    for name, old, new in (('version', b'archive 1', b'archive 2'), ('size', b' 4 ', b' 5 '), ('hash', b'\x020', b'00'),
                           ('id', b' ab', b' xy'), ('twice', b'path rec\n', b'path rec\npath rec\n'),
                           ('unknown', b'missing - ', b'lost - '), ('why', b'why no file', b'why'),
                           ('no-path', b'path rec\n', b''), ('where', b'path rec', b'path ../rec'),
                           ('fewer', b'item \x020 4 - /tmp/rec', b'item \x020 4'), ('extra', b'why no file', b'why a\nwhy b'),
                           ('digits', b'\x020', b'g' * 64), ('number', b' 4 ', b' four '), ('odd', b'missing -', b'missing a')):
        seed('archive', name, changed(old, new))
    seed('archive', 'absent', script(rec, manifest()))
    seed('archive', 'foreign', script(rec, elf, (0, 'other', b''), manifest()))
    seed('archive', 'again', script(rec, rec, elf, manifest()))
    seed('archive', 'no-manifest', script(rec, elf))
    seed('archive', 'two-manifests', script(rec, elf, manifest(), manifest()))
    seed('archive', 'many', script(*[(0, f'f{i}', b'') for i in range(40)]))
    for name, path in (('up', '../x'), ('root', '/x'), ('dot', './x'), ('double', 'a//b'), ('control', 'a\nb')):
        seed('archive', 'path-' + name, script((0, path, b''), manifest()))
    for kind in range(4, 12):
        seed('archive', f'type-{kind}', script((kind, 'x', b'16 path=longer\n'), rec, elf, manifest()))

    def tar_of(data):
        text = b'\n'.join(lines).replace(b' 4 ', b' %d ' % len(data))
        for i, content in enumerate((data, b'ELF')):
            text = text.replace(b'\x02%d' % i, hashlib.sha256(content).hexdigest().encode())
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode='w', format=tarfile.PAX_FORMAT) as t:
            for path, content in (('rec', data), (f'objects/{ident}/elf', b'ELF'), ('MANIFEST', text)):
                info = tarfile.TarInfo(path)
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
        return tar.getvalue()

    def zstd(data):
        return subprocess.run(['zstd', '-q', '-c'], input=data, capture_output=True, check=True).stdout
    plain = tar_of(b'data')[:512 * 8]
    packed = zstd(plain)
    seed('archive', 'large', zstd(tar_of(b'\0' * 100000)))
    seed('archive', 'tar', plain)
    seed('archive', 'zstd', packed)
    seed('archive', 'tar-cut', plain[:1600])
    seed('archive', 'zstd-cut', packed[:-30])
    seed('archive', 'foreign-tar', plain[:512 * 2] + b'x' * 512)


# ---- the wire

EVENT, STACK, TYPE, POINT, MODULE, MAP, UNMAP, FORK, EXEC, EXIT, THREAD, LOSS, MARK, HELD, COUNT, HITS, ATTR, PERF, \
    BLOB = range(1, 20)
NEW, GET, PUT, FREE = range(1, 5)
PID = 1 << 22 | 100


def record(kind, body, op=0, time=0, seq=0, tid=100, pid=PID):
    body = pad(body)
    return pack('<HBBIQII', 24 + len(body), kind, op, seq, time, pid, tid) + body


def event(op, obj, time, count=1, point=1, stack=1, delta=1, flags=1, seq=0, aux=0, sp=0x7fff0000, tid=100):
    return record(EVENT, pack('<QQQIIIhH', obj, aux, sp, count, point, stack, delta, flags), op, time, seq, tid)


def blob(what, ident, data, parts=1):
    out, step = b'', -(-len(data) // parts) or 1
    for at in range(0, len(data) or 1, step):
        part = data[at:at + step]
        out += record(BLOB, pack('<IIIIII', what, ident, len(data), at, len(part), 0) + part)
    return out


def perf(body, attr=1, time=0):
    return record(PERF, pack('<II', attr, 0) + body, time=time)


def stream():
    """One of each kind of our own."""
    name = b'obj\0'
    out = record(TYPE, pack('<IiiIII', 1, 1, 16, 4, 64, 4) + name)
    out += record(MODULE, pack('<IBBH20sI', 1, 20, 0, 1, b'\xab' * 20, 0) + b'/usr/bin/prog\0')
    out += record(MODULE, pack('<IBBH20sI', 2, 20, 1, 0, b'\xcd' * 20, 0) + b'libx.so\0')
    for i, (op, text) in enumerate(((GET, b'obj_get\0'), (PUT, b'obj_put\0'), (NEW, b'obj_new\0'))):
        out += record(POINT, pack('<IIIiQQII', i + 1, 1, 1, 1, 0x1000, 0x1000, 0, 0) + text, op)
    out += record(MAP, pack('<QQQII', 0x400000, 0x401000, 0, 1, 0), time=1)
    out += record(MAP, pack('<QQQII', 0x500000, 0x501000, 0, 2, 0), time=1)
    out += record(STACK, pack('<IHH', 1, 2, 0) + pack('<QII', 0x400100, 16, 0) * 2)
    for i, (op, point) in enumerate(((NEW, 3), (GET, 1), (PUT, 2), (PUT, 2), (FREE, 2))):
        out += event(op, 0x10000, 1000 + 50 * i, point=point, count=i, delta=(0, 1, 1, -1, -1, 0)[op], seq=i + 1)
    out += event(GET, 0x20000, 2000, stack=0, seq=1 << 20 | 1, tid=101, flags=9, aux=8)
    out += record(FORK, pack('<Ii', 1 << 22 | 200, 0), time=3000)
    out += record(EXEC, pack('<Ii', 0, 0), time=3001, pid=2 << 22 | 200)
    out += record(THREAD, pack('<Ii', 101, 0), time=3002) + record(THREAD, pack('<Ii', 101, 1), time=3003)
    out += record(LOSS, pack('<IIQ', 1, 0, 7) + b'\0') + record(HITS, pack('<IIQ', 0, 1, 3) + b'\0')
    out += record(MARK, pack('<Ii', 0, 2)) + record(HELD, pack('<QQQII', 0x20000, 0x30000, 0, 3, 1))
    out += record(COUNT, pack('<QQQII', 0x20000, 0, 0, 4, 1)) + record(77, b'unknown')
    out += record(UNMAP, pack('<QQQII', 0x500000, 0x501000, 0, 0, 0), time=4000)
    return out + record(EXIT, pack('<Ii', 0, 256), time=5000)


# ---- perf.data

# sample_type bits
IP, TID, TIME, ADDR, READ, CHAIN, ID, CPU, PERIOD, STREAM, RAW, BRANCH, REGS, USTACK, WEIGHT, SRC, IDENT, TRANS, \
    REGS_INTR, PHYS, AUXD, CGROUP, DPAGE, CPAGE, WSTRUCT = (1 << i for i in range(25))


class Perf:
    """A file in one byte order; what cannot be told by struct's formats is added as bytes."""

    def __init__(self, big=False):
        self.order = '>' if big else '<'
        self.out = b''

    def pack(self, fmt, *values):
        return pack(self.order + fmt, *values)

    def attr(self, sample_type, ids=True, read_format=0, branch=0, regs=0, size=128, config=0):
        bits = 1 << 18 if ids else 0  # sample_id_all
        flags = pack('<Q', bits)
        if self.order == '>':
            flags = bytes(int(f'{b:08b}'[::-1], 2) for b in flags)
        return pad(self.pack('IIQQQQ', 2, size, config, 1, sample_type, read_format) + flags +
                   self.pack('IIQQQQIiQIHHIIQ', 0, 0, 0, 0, branch, regs, 512, -1, regs, 0, 0, 0, 0, 0, 0), 128)[:size]

    def record(self, kind, body, misc=2):
        body = pad(body)
        return self.pack('IHH', kind, misc, 8 + len(body)) + body

    def string(self, text):
        text = pad(text + b'\0', 64)
        return self.pack('I', len(text)) + text

    def file(self, attrs, data, features=(), data_size=None):
        """attrs: (attr, ids); features: (number, bytes)"""
        size = len(attrs[0][0]) if attrs else 128
        at = 104 + len(attrs) * (size + 16)
        table = ids = b''
        for a, numbers in attrs:
            table += a + self.pack('QQ', at + len(ids), 8 * len(numbers))
            ids += join(self.pack('Q', n) for n in numbers)
        start = at + len(ids)
        bits = [0] * 4
        for number, _ in features:
            bits[number // 64] |= 1 << number % 64
        head = self.pack('Q', 0x32454c4946524550) + self.pack('QQQQQQQQ', 104, size + 16, 104, len(table), start,
                                                              len(data) if data_size is None else data_size, 0, 0)
        out = head + self.pack('QQQQ', *bits) + table + ids + data
        where = len(out) + 16 * len(features)
        for _, content in features:
            out += self.pack('QQ', where, len(content))
            where += len(content)
        return out + join(content for _, content in features)


def kernel_records(p, tail):
    """One of each kind of the kernel's; tail: what sample_id_all puts behind it."""
    out = b''
    for kind, body, misc in (
            (1, p.pack('IIQQQ', 100, 100, 0x400000, 4096, 0) + b'/bin/a\0\0', 2),
            (10, p.pack('IIQQQIIQQII', 100, 100, 0x400000, 4096, 0, 1, 2, 3, 4, 5, 2) + b'/bin/b\0\0', 2),
            (10, p.pack('IIQQQB3x20sII', 100, 100, 0x500000, 4096, 0, 20, b'\xab' * 20, 5, 2) + b'/bin/c\0\0', 2 | 1 << 14),
            (10, p.pack('IIQQQIIQQII', 0xffffffff, 0, 0xffffffff81000000, 4096, 0, 0, 0, 0, 0, 0, 0) + b'[k]\0', 1),
            (1, p.pack('IIQQQ', 100, 100, 0x600000, 4096, 0) + b'//anon\0\0', 2),
            (3, p.pack('II', 100, 100) + b'prog\0\0\0\0', 2 | 1 << 13), (3, p.pack('II', 100, 101) + b'thr\0', 2),
            (7, p.pack('IIIIQ', 200, 100, 200, 100, 7), 2), (7, p.pack('IIIIQ', 100, 100, 101, 100, 7), 2),
            (4, p.pack('IIIIQ', 100, 100, 100, 100, 9), 2), (2, p.pack('QQ', 7, 3), 2), (13, p.pack('Q', 2), 2),
            (17, p.pack('QIHH', 0xffffffffc0001000, 16, 1, 0) + b'bpf_prog_0102030405060708_main_prog\0', 1),
            (17, p.pack('QIHH', 0xffffffff81000100, 64, 2, 0) + b'near\0', 1),
            (17, p.pack('QIHH', 0xffffffffc0001000, 16, 1, 1) + b'bpf_prog_0102030405060708_main_prog\0', 1),
            (18, p.pack('HHI8s', 1, 0, 42, b'\1\2\3\4\5\6\7\x08'), 1),
            (20, p.pack('QHH', 0xffffffff81000100, 2, 2) + b'\x90\x90\xcc\xcc', 1),
            (5, p.pack('QQQ', 1, 2, 3), 1), (14, b'', 1), (16, p.pack('II', 100, 100), 1), (19, p.pack('Q', 1) + b'/\0', 1)):
        out += p.record(kind, pad(body) + tail, misc)
    return out


def full_sample(p, ident):
    """All fields; the raw part has 4 bytes of size and 12 of data."""
    body = p.pack('QQIIQQQQII', ident, 0xffffffff81000110, 100, 100, 50, 0x1234, ident, 1, 0, 0)
    body += p.pack('Q', 10) + p.pack('QQQQQ', 1, 9, 9, 5, 6) + p.pack('Q', 0)
    body += p.pack('QQQQ', 3, 0xfffffffffffffe00, 0x400100, 0xffffffff81000104) + p.pack('I12s', 12, b'raw bytes..')
    body += p.pack('QQ', 1, 0) + p.pack('QQQ', 1, 2, 0) + p.pack('Q', 0) + p.pack('QQQ', 2, 7, 8)
    body += p.pack('Q8sQ', 8, b'stack...', 8) + p.pack('QQQ', 1 << 32 | 9, 2, 3) + p.pack('QQQ', 2, 7, 8)
    return body + p.pack('QQQQ', 0x1000, 1, 4096, 4096) + p.pack('Q8s', 8, b'aux.....')


ALL = (1 << 25) - 1 & ~WEIGHT


def features(p, entry=b'', btf=b'', tracing=b'tracing'):
    build_ids = p.record(0, p.pack('I20sB3x', 100, b'\xab' * 20, 20) + b'/bin/a\0\0', 2 | 1 << 15)
    build_ids += p.record(0, p.pack('I20sB3x', 0xffffffff, b'\xcd' * 20, 0) + b'[kernel.kallsyms]\0', 1)
    desc = p.pack('II', 1, 128) + p.attr(ALL) + p.pack('I', 1) + p.string(b'probe:x') + p.pack('Q', 7)
    yield 1, tracing
    yield 2, build_ids
    for n, text in ((3, b'host'), (4, b'6.1'), (5, b'6.1'), (6, b'x86_64')):
        yield n, p.string(text)
    yield 7, p.pack('II', 4, 2)
    yield 8, p.string(b'cpu')
    yield 9, p.string(b'id')
    yield 10, p.pack('Q', 1 << 20)
    yield 11, p.pack('I', 2) + p.string(b'/usr/bin/perf') + p.string(b'record')
    yield 12, desc
    yield 21, p.pack('QQ', 1, 99)
    yield 23, p.pack('Q', 1)
    yield 25, p.pack('I', 1 if entry else 0) + entry
    yield 26, p.pack('I', 1 if btf else 0) + (p.pack('II', 9, len(btf)) + btf if btf else b'')
    yield 27, p.pack('IIIII', 1, 1, 1, 1, 4096)
    yield 29, p.pack('IIQQ', 1, 1, 1000, 10)


def perfdata():
    for big in (False, True):
        p, word = Perf(big), 'big' if big else 'little'
        tail = p.pack('IIQQQIIQ', 100, 100, 20, 7, 1, 0, 0, 7)
        # read format: times, id, group, lost; branches with index and counters
        full = p.attr(ALL, read_format=0x1f & ~8, branch=1 << 17 | 1 << 19, regs=3)
        read = full_sample(p, 7)
        data = p.record(9, read) + kernel_records(p, tail)
        seed('perfdata', 'features-' + word, p.file([(full, [7])], data, list(features(p))))
        for bits, fmt, counters in ((0x1f, 'QQQQQQQQQ', (2, 5, 6, 1, 7, 0, 2, 8, 0)), (0, 'Q', (1,)), (7, 'QQQQ', (1, 2, 3, 7))):
            some = p.attr(READ | TID, read_format=bits)
            sample = p.record(9, p.pack('II', 100, 100) + p.pack(fmt, *counters))
            seed('perfdata', f'read-{bits}-{word}', p.file([(some, [7])], sample))
        two = [(p.attr(TIME | IDENT), [7]), (p.attr(TIME | ID | IP), [8, 9])]
        data = p.record(9, p.pack('QQ', 7, 40)) + p.record(68, b'') + p.record(9, p.pack('QQQ', 1, 30, 9)) + p.record(68, b'')
        seed('perfdata', 'two-' + word, p.file(two, data + p.record(9, p.pack('QQ', 77, 40))))
        simple = p.attr(TIME | TID)
        seed('perfdata', 'unfinished-' + word, p.file([(simple, [])], kernel_records(p, p.pack('IIQ', 1, 1, 5)), data_size=0))
        table = p.file([(simple, [])], b'', list(features(p)))
        seed('perfdata', 'table-cut-' + word, table[:300])
        seed('perfdata', 'old-attr-' + word, p.file([(p.attr(IP, size=64), [])], p.record(9, p.pack('Q', 5))))
        pipe = p.pack('QQ', 0x32454c4946524550, 16) + p.record(64, p.attr(TIME | TID | IDENT) + p.pack('Q', 7))
        pipe += p.record(78, p.pack('QQ', 2, 7) + b'named\0') + p.record(78, p.pack('QQ', 0, 7))
        for number, content in features(p):
            pipe += p.record(80, p.pack('Q', number) + content)
        pipe += p.record(66, p.pack('I', 8)) + b'tracing ' + p.record(67, p.pack('I20sI', 1, b'i' * 20, 0) + b'/b\0')
        pipe += p.record(71, p.pack('QQQIIII', 8, 0, 0, 0, 0, 0, 0)) + b'auxtrace' + p.record(68, b'')
        seed('perfdata', 'pipe-' + word, pipe + p.record(9, p.pack('QIIQ', 7, 1, 1, 9)) + p.record(90, b''))
    p = Perf()
    # 2^61 words are no bytes when the multiplication overflows
    for count in (2 ** 61, 2 ** 61 + 1, 2 ** 32, 4):
        sample = p.record(9, p.pack('QQQQ', count, 1, 2, 3))
        seed('perfdata', f'chain-{count}', p.file([(p.attr(CHAIN), [7])], sample))
    for name, text in (('empty', b''), ('old', b'PERFFILE'), ('short', b'PERF'), ('spool', b'RTSPOOL2'), ('elf', b'\x7fELF'),
                       ('gzip', b'\x1f\x8b'), ('zstd', b'\x28\xb5\x2f\xfd'), ('text', b'# x'), ('other', b'other'),
                       ('head', b'PERFILE2' + p.pack('Q', 20)), ('head-cut', b'PERFILE2' + p.pack('Q', 104))):
        seed('perfdata', 'not-' + name, text)
    good = p.file([(p.attr(TIME), [7])], b'')
    for name, at, value in (('attr-size', 16, 8), ('data-size', 48, 2 ** 64 - 1), ('data-far', 40, 2 ** 40), ('attrs-far', 24, 2 ** 20),
                            ('folder', 72, 1 << 24), ('ids-far', 104 + 128, 2 ** 30), ('attr-claims', 104, 2 ** 40 + 2)):
        seed('perfdata', 'bad-' + name, good[:at] + p.pack('Q', value) + good[at + 8:])
    # zstd in both forms, over two pieces
    records = kernel_records(p, p.pack('Q', 5))
    packed = subprocess.run(['zstd', '-q', '-c', '--no-check'], input=records, capture_output=True, check=True).stdout
    half = len(packed) // 2
    data = p.record(83, p.pack('Q', half) + packed[:half]) + p.record(83, p.pack('Q', len(packed) - half) + packed[half:])
    seed('perfdata', 'zstd', p.file([(p.attr(TIME), [7])], data + p.record(68, b'')))
    seed('perfdata', 'zstd-cut', p.file([(p.attr(TIME), [7])], data[:-40]))
    seed('perfdata', 'zstd-bad', p.file([(p.attr(TIME), [7])], p.record(83, p.pack('Q', 14) + b'no zstd at all')))


# ---- BPF

def bpfinsn():
    """Every code once, with small and odd operands; calls, constants and atomics in all their forms."""
    def insn(code, dst=1, src=2, off=3, imm=4):
        return pack('<BBhi', code, src << 4 | dst, off, imm)
    seed('bpfinsn', 'all', join(insn(code) for code in range(256)))
    seed('bpfinsn', 'negative', join(insn(code, 10, 0, -1, -5) for code in range(256)))
    seed('bpfinsn', 'special', join(
        [insn(0x18, src=s) + insn(0, imm=-3) for s in range(8)] +
        [insn(0x85, src=s, off=o, imm=i) for s in range(3) for o in (0, 5) for i in (-1, 0, 1, 12, 5000)] +
        [insn(c, imm=i) for c in (0xc3, 0xdb) for i in (0, 1, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1, 0x100, 0x110, 0x77)] +
        [insn(c, off=o) for c in (0xbf, 0xbc, 0x3f, 0x9f, 0x37, 0x97) for o in (0, 1, 8, 16, 32, -1)] +
        [insn(0xe5, src=s) for s in range(2)] + [insn(0x18)]))
    seed('bpfinsn', 'helpers', join(insn(0x85, 0, 0, 0, i) for i in range(190, 260)))
    seed('bpfinsn', 'big', join(pack('>BBhi', c, 0x12, 3, 4) for c in range(256)))


def btf_of(p):
    """A type of each kind; strings: 1 main_prog, 11 helper, 18 a.c, 22 text, 27 f"""
    strings = b'\0main_prog\0helper\0a.c\0x=1\0x\0'
    types = b''

    def put(kind, name=0, vlen=0, size=0, flag=0, tail=()):
        nonlocal types
        types += p.pack('III', name, flag << 31 | kind << 24 | vlen, size) + p.pack(f'{len(tail)}I', *tail)
    put(13, size=4, vlen=1, tail=(26, 4))
    put(12, 1, 1, 1)
    put(12, 11, 0, 1)
    put(1, 26, 0, 4, tail=(32,))
    put(2, size=4)
    put(3, tail=(4, 4, 10))
    put(4, 26, 2, 8, tail=(1, 4, 0, 11, 4, 32))
    put(5, 26, 1, 8, 1, tail=(1, 4, 3 << 24 | 5))
    put(6, 26, 2, 4, 1, tail=(1, 5, 11, 0xffffffff))
    put(6, 26, 1, 4, 0, tail=(1, 0xffffffff))
    for kind in (7, 8, 9, 10, 11, 16, 18):
        put(kind, 26, 0, 4)
    put(14, 26, 0, 4, tail=(1,))
    put(15, 26, 1, 4, tail=(18, 0, 4))
    put(17, 26, 0, 4, tail=(0xffffffff,))
    put(19, 26, 1, 8, tail=(1, 5, 6))
    return p.pack('HBBIIIII', 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings


def entry_of(p):
    """Two functions with a line each, four instructions, two maps; see struct bpf_prog_info for the order."""
    parts = {}
    data = b''
    insns = [(0x85, 0x10, 1, 1), (0x85, 0, 0, 0x40), (0x95, 0, 0, 0), (0x85, 0, 0, 0x40)]
    xlated = join(p.pack('BBhi', c, (r >> 4 | r << 4 & 255) if p.order == '>' else r, o, i) for c, r, o, i in insns)
    for name, content in (('jit', bytes(range(16))), ('xlated', xlated), ('maps', p.pack('II', 5, 6)),
                          ('ksyms', p.pack('QQ', 0xffffffffc0001000, 0xffffffffc0002000)), ('lens', p.pack('II', 10, 6)),
                          ('funcs', p.pack('IIII', 0, 2, 2, 3)),
                          ('lines', p.pack('8I', 2, 18, 22, 9 << 10 | 1, 0, 18, 22, 3 << 10 | 7)),
                          ('jlines', p.pack('QQ', 0xffffffffc0002000, 0xffffffffc0001000)), ('tags', b'\1' * 8 + b'\2' * 8)):
        parts[name] = len(data)
        data += pad(content)
    info = p.pack('II8sIIQQQIIQ16sIIQQIIQQIIQIIQQIIIIQQQQIIIx', 1, 42, b'\1\2\3\4\5\6\7\x08', 16, 32, parts['jit'], parts['xlated'],
                  9, 0, 2, parts['maps'], b'main_prog', 0, 1, 0, 0, 2, 2, parts['ksyms'], parts['lens'], 9, 8, parts['funcs'], 2, 2,
                  parts['lines'], parts['jlines'], 2, 16, 8, 2, parts['tags'], 0, 0, 0, 4, 0, 0)
    info = pad(info)[:232].ljust(232, b'\0')
    return p.pack('IIQ', len(info), len(data), 0x1ff) + info + data


def extra_of(ident=42, tag=b'\1\2\3\4\5\6\7\x08'):
    out = pack('<III8s', 0x58425452, 1, ident, tag)
    for item, payload in ((1, pack('<I', 7) + b'prog'), (2, pack('<QQ', 1, 2)), (3, pack('<I', 5) + b'counts'),
                          (4, b'link 12'), (5, b'lost'), (6, pack('<Q', 0x1000)), (7, pack('<Q', 0x1040) + b'bpf_x'),
                          (7, pack('<Q', 0x1000) + b'bpf_y'), (8, b'later'), (3, b'')):
        out += pack('<II', item, len(payload)) + payload
    return out


def bpfimage():
    for big in (False, True):
        p, word = Perf(big), 'big' if big else 'little'
        entry, btf = entry_of(p), btf_of(p)

        def put(name, this, other):
            seed('bpfimage', f'{name}-{word}', pack('<BH', big, len(this)) + this + other)
        put('whole', entry, btf)
        put('extra', entry, extra_of())
        put('bare', p.pack('IIQ', 16, 0, 0) + b'\0' * 16, b'')
        put('no-funcs', p.pack('IIQ', 232, len(entry) - 248, 0x1ff & ~(1 << 5)) + entry[16:], b'')
    entry, btf = entry_of(Perf()), btf_of(Perf())
    for name, other in (('other-program', extra_of(43)), ('cut', extra_of()[:-3]), ('version', b'RTBX\2\0\0\0'), ('head', extra_of()[:10]),
                        ('btf-magic', b'\xeb\x9e' + btf[2:]), ('btf-version', btf[:2] + b'\2' + btf[3:]), ('btf-short', btf[:20]),
                        ('btf-head', btf[:4] + b'\xff' * 4 + btf[8:]), ('btf-far', btf[:8] + b'\xff' * 4 + btf[12:]),
                        ('btf-no-nul', btf[:-1] + b'x'), ('btf-kind', btf[:24 + 7] + b'\x1f' + btf[32:])):
        seed('bpfimage', name, pack('<BH', 0, len(entry)) + entry + other)
    for name, at, value in (('data-limit', 4, 1 << 30), ('info-len', 0, 1 << 20), ('jit-far', 16 + 24, 1 << 20),
                            ('elements', 16 + 140, 4), ('functions', 16 + 104, 1 << 24), ('code', 16 + 16, 8)):
        seed('bpfimage', name, pack('<BH', 0, len(entry)) + entry[:at] + pack('<I', value) + entry[at + 4:] + btf)


# ---- spool and recording

def spool():
    seed('spool', 'records', b'\3' + stream() + b'\0')
    seed('spool', 'records-chunks', b'\3' + stream() + b'\1')
    seed('spool', 'foreign-header', b'RTSPOOL2' + pack('>IHBBIIQQII', 0x01020304, 2, 8, 0, 48, 0, 0, 0, 0, 0))
    for name, values in (('pointer', (0x01020304, 2, 4, 0, 48, 0, 0, 0, 0, 0)), ('version', (0x01020304, 9, 8, 0, 48, 0, 0, 0, 0, 0)),
                         ('size', (0x01020304, 2, 8, 0, 47, 0, 0, 0, 0, 0)), ('beyond', (0x01020304, 2, 8, 0, 96, 0, 0, 0, 0, 0)),
                         ('words', (0x01020304, 2, 8, 0, 56, 0, 0, 0, 9, 8)), ('words-cut', (0x01020304, 2, 8, 0, 56, 0, 0, 0, 2, 8)),
                         ('words-good', (0x01020304, 2, 8, 0, 56, 0, 0, 0, 2, 8))):
        text = b'a\0b\0' if name == 'words-good' else b'aaaaaaaa'
        seed('spool', 'header-' + name, b'RTSPOOL2' + pack('<IHBBIIQQII', *values) + text.ljust(8, b'\0'))
    for i, text in enumerate((b'', b'PERFILE2', b'\x7fELF', b'\x1f\x8b', b'\x28\xb5\x2f\xfd', b'\xfd7zXZ', b'heaptrack', b'RTSP',
                              b'RTSPOOL1', b'{"a":1}', b'other\1')):
        seed('spool', f'not-{i}', text)
    # checksums of 0: fuzz-spool.c puts them right
    head = b'RTSPOOL2' + pack('<IHBBIIQQII', 0x01020304, 2, 8, 0, 48, 0, 0, 0, 0, 0)

    def chunk(number, payload=b'', flags=0, records=0, status=0, size=None):
        return b'RTCK' + pack('<IIIIIQQiI', flags, number, len(payload) if size is None else size, records, 0, 0, 0, status,
                                     0) + payload
    verbatim = record(TYPE, pack('<IiiIII', 1, 1, 16, 4, 64, 4) + b'obj\0')

    def payload(**columns):
        """columns: number -> (bytes, stored)"""
        extents, body = b'', b''
        for i in range(16):
            size, stored = columns.get(f'c{i}', (0, b''))
            extents += pack('<II', size, len(stored))
            body += stored
        return extents + body
    # lane 0, producer 0, thread 0, pid, tid; point, stack, delta, flags, op
    rare = bytes((0, 0, 0, 100, 100, 1, 0, 1, 0, 2))
    dense = {'c0': (4, b'\xfe\1\1\1'), 'c1': (4, b'\xff\1\1\1'), 'c2': (4, b'\xff\0\0\0'), 'c3': (4, b'\x0f\0\0\0'),
             'c4': (4, b'\0'), 'c9': (1, b'\x20'), 'c14': (len(rare), rare)}
    packed = subprocess.run(['zstd', '-q', '-c', '--no-check'], input=verbatim * 4, capture_output=True, check=True).stdout
    good = payload(c0=(1, b'\0'), c15=(len(verbatim), verbatim))
    end = chunk(2, flags=1, status=256)
    several = payload(c0=(4, b'\0'), c15=(4 * len(verbatim), verbatim * 4))
    for name, text in (('good', chunk(1, good, records=1) + end), ('several', chunk(1, several, records=4) + end), ('foreign-end', chunk(1, good, records=1) + end + b'x'),
                       ('zstd', chunk(1, payload(c0=(4, b'\0'), c15=(4 * len(verbatim), packed)), records=4) + end),
                       ('zstd-bad', chunk(1, payload(c0=(4, b'\0'), c15=(400, packed[:-4])), records=4)),
                       ('number', chunk(3, good, records=1)), ('length', chunk(1, b'', size=1 << 30)), ('magic', b'RTCX' + end[4:]),
                       ('end-payload', chunk(1, b'x', flags=1)), ('cut', chunk(1, good, records=1)[:-5]), ('short', end[:20]),
                       ('directory', chunk(1, b'x' * 20, records=1)), ('column', chunk(1, payload(c0=(1 << 20, b'')), records=1)),
                       ('left', chunk(1, good + b'x', records=1)), ('missing', chunk(1, good, records=2)),
                       ('stored', chunk(1, payload(c0=(1, b'\0\0')), records=1)), ('bad-record', chunk(1, payload(c0=(1, b'\0'), c15=(8, b'x' * 8)),
                                                                                                   records=1)),
                       ('behind', chunk(1, payload(c15=(8, b'x' * 8)))), ('events', chunk(1, payload(c0=(1, b'\1')), records=1)),
                       ('time-short', chunk(1, payload(**dense, c5=(0, b'')), records=4)),
                       ('time-whole', chunk(1, payload(**dense, c5=(4, b'\0')), records=4)),
                       ('object-far', chunk(1, payload(**dense | {'c3': (4, b'\x0e\0\0\0')}, c5=(4, b'\0'), c7=(1, b'\xff'),
                                                       c8=(1, b'\xff')), records=4)),
                       ('objects', chunk(1, payload(c0=(1, b'\0'), c7=(1, b'\0')), records=1))):
        seed('spool', 'file-' + name, head + text)
    # fields of fuzz-spool.c's next_event(): 0 op, 2 time, 4 tid, 5 object, 6 aux, 7 sp, 8 count, 9 point, 10 stack, 11 delta, 12 flags
    steps = [(0, 2, 0), (2, 1000, 8), (5, 0x1000, 4), (7, 0x7fff, 16), (12, 2, 0), (11, 1, 0), (8, 1, 0)]
    for i in range(40):
        steps += [(5, 0x1000 + i % 13, 4), (2, 1000 + 2 * i, 8), (9, i % 5, 0), (4, i % 3, 0), (8, i, 0), (7, 0x7fff - i % 7, 16), (10, i % 4, 0)]
        steps += [(1, 0x1000 * (i % 2), 20), (6, i % 2, 33), (2, 0xffff, 30)] if i % 6 == 5 else []
        steps += [(12, 8 + i % 2, 0), (0, 1 + i % 9, 0), (11, 0xffff, 0)] if i % 8 == 7 else []
    seed('spool', 'script', b'\2' + join(pack('<BHB', *s) for s in steps))


def our_tracing():
    """TRACING_DATA with one event of a system."""
    text = b'name: x\nID: 77\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\nprint fmt: ""\n'
    out = b'\x17\x08\x44tracing0.6\0\0\x08' + pack('<I', 4096)
    for name in (b'header_page', b'header_event'):
        out += name + b'\0' + pack('<Q', 0)
    out += pack('<II', 0, 1) + b'probe\0' + pack('<IQ', 1, len(text)) + text
    return out + pack('<IIQ', 0, 0, 0)


def recording():
    p = Perf()
    entry, btf = entry_of(p), btf_of(p)
    # the entry names BTF 9
    tail = p.pack('IIQQ', 100, 100, 20, 7)
    attr = p.attr(IP | TID | TIME | CHAIN | ID)
    side = record(ATTR, pack('<IIII', 1, 128, 2, 8) + attr + pack('<QQ', 7, 8) + b'cycles\0\0')
    side += record(ATTR, pack('<IIII', 1, 128, 1, 8) + attr + pack('<Q', 9) + b'cycles\0\0')
    for line in kernel_records(p, tail), :
        at = 0
        while at < len(line):
            size = struct.unpack_from('<H', line, at + 6)[0]
            side += perf(line[at:at + size])
            at += size
    side += perf(p.record(9, p.pack('QIIQQQQQQ', 0xffffffff81000110, 100, 100, 30, 7, 3, 0xffffffffffffff80, 0xffffffffc0001004, 0x400100)), 1, 30)
    side += perf(p.record(68, b''))
    blobs = blob(1, 42, entry, 2) + blob(2, 9, btf) + blob(7, 42, extra_of()) + blob(6, 43, b'why') + blob(4, 0, b'x')
    blobs += blob(5, 0, b'hostname h\nosrelease 6.1\nversion 6\narch x86_64\ncpudesc c\ncpuid i\ncmdline a\\nb\\\\\ncmdline c\nnrcpus_online 2\n'
                     b'nrcpus_available 4\ntotal_mem_kib 5\nclockid 1\nwall_ns 6\nmonotonic_ns 7\nother 8\nbad x\nnone\n')
    blobs += blob(1, 44, b'damaged') + blob(1, 42, entry) + blob(5, 0, b'hostname h2\n')
    ours = stream()
    # 1: converted by itself, 2: compressed, 4: as a pipe
    for flags in (0, 1, 3, 5):
        tracing = blob(3, 0, our_tracing()) if flags & 1 else b''
        seed('recording', f'all-{flags}', bytes([flags]) + ours + side + blobs + tracing)
    for flags in (0, 1, 5):
        seed('recording', f'ours-{flags}', bytes([flags]) + ours)
        seed('recording', f'perf-{flags}', bytes([flags]) + side + blobs)
    # whole programs only: of one that is cut no perf.data is made, and what their code calls is not looked for
    whole = blob(1, 42, entry, 2) + blob(2, 9, btf) + blob(7, 42, extra_of()) + blob(6, 43, b'why')
    for flags in (1, 3, 5):
        seed('recording', f'programs-{flags}', bytes([flags]) + ours + side + whole)
    torn = blob(2, 9, btf, 3)
    seed('recording', 'torn', b'\1' + ours + torn[:len(torn) // 2] + blobs)
    for name, text in (('no-point', event(GET, 1, 1, point=99)), ('type', record(TYPE, pack('<IiiIII', 1 << 20, 1, 1, 4, 8, 0) + b'x\0')),
                       ('point', record(POINT, pack('<IIIiQQII', 1 << 24, 1, 1, 1, 0, 0, 0, 0) + b'x\0')), ('early', perf(p.record(68, b''))),
                       ('attr', record(ATTR, pack('<IIII', 0, 0, 0, 8) + b'x\0')), ('tracing', blob(3, 0, b'no tracing data'))):
        for flags in (0, 1):
            seed('recording', f'bad-{name}-{flags}', bytes([flags]) + ours + text)
    # perf.data as perf writes it, with a program
    full = p.attr(IP | TID | TIME | CHAIN | ID)
    data = kernel_records(p, tail) + p.record(9, p.pack('QIIQQQQQ', 0x400100, 100, 100, 30, 7, 2, 0xfffffffffffffe00, 0x400100))
    seed('recording', 'perf.data', p.file([(full, [7])], data, list(features(p, entry, btf))))
    # copied stacks: ax, sp and ip; no registers; of 32 bits; no copy; no sp; without ip
    for mask, abi in ((0x181, 2), (0x181, 0), (0x181, 1), (0x1ff, 2), (0x101, 2), (0x81, 2)):
        attr = p.attr(IP | TID | TIME | CHAIN | REGS | USTACK, regs=mask)
        regs = join(p.pack('Q', n) for n in (1, 0x7fff0000, 0x400100, 4, 5, 6, 7, 8, 9)[:mask.bit_count()]) if abi else b''
        frames = p.pack('QQQQ', 3, 0xffffffffffffff80, 0xffffffff81000110, 0xfffffffffffffe00)
        head, stack = p.pack('QIIQ', 0x400100, 100, 100, 30) + frames + p.pack('Q', abi) + regs, b'\x10\0\x40\0\0\0\0\0' * 2
        copies = p.record(9, head + p.pack('Q16sQ', 16, stack, 16)) + p.record(9, head + p.pack('Q16sQ', 16, stack, 8))
        copies += p.record(9, head + p.pack('Q', 0))
        seed('recording', f'stacks-{mask:x}-{abi}.data', p.file([(attr, [])], kernel_records(p, p.pack('IIQ', 100, 100, 20)) + copies))
        if abi == 2:
            one = copies[:struct.unpack_from('<H', copies, 6)[0]]
            stacks = record(ATTR, pack('<IIII', 1, 128, 1, 8) + attr + pack('<Q', 7) + b'cycles\0\0') + perf(one, 1, 30)
            for flags in (0, 1):
                seed('recording', f'stacks-{mask:x}-{flags}', bytes([flags]) + stacks)
    # counters of a group: one that moved, one that did not, one that nobody has; alone with times; without an id
    for bits, words in ((0xc, (3, 10, 7, 0, 8, 99, 9)), (0x1c, (1, 10, 7, 5)), (7, (10, 1, 1, 8)), (4, (10, 7)), (0, (10,))):
        attr = p.attr(IP | TID | TIME | READ | CHAIN | IDENT, read_format=bits)
        data = join(p.record(9, p.pack('QQIIQ', 7, 0x400100, 100, 100, when) + p.pack('Q' * len(words), *words) +
                             p.pack('QQ', 1, 0x400100)) for when in (30, 40))
        seed('recording', f'moved-{bits:x}.data', p.file([(attr, [7]), (attr, [8])], data))
    # and with events of ours, whose raw parts are right or not
    raw = p.attr(TIME | RAW | IDENT)
    names = [b'reftrace:obj_get', b'reftrace:meta_type', b'reftrace:meta_command', b'reftrace:meta_status', b'reftrace:obj_none']
    desc = p.pack('II', len(names), 128) + join(raw + p.pack('I', 1) + p.string(n) + p.pack('Q', 7 + i) for i, n in enumerate(names))

    def meta(content, text=b'x\0'):
        return b'\0' * 8 + pack('<II', len(text) << 16 | 16 + len(content), len(content) << 16 | 16) + content + text

    def sample(ident, content, time=5):
        return p.record(9, p.pack('QQI', ident, time, len(content)) + content)

    def op(batch, turn, seq):
        return pack('<IIIIIhhHHB3xQQQII', 0, 100, 1, 0, batch, turn, 1, 1, 0, GET, 0, 0, 0x1000, 1, seq)
    data = sample(8, meta(record(TYPE, pack('<IiiIII', 1, 1, 16, 4, 64, 4) + b'obj\0'))) + sample(7, op(0, 0, 1))
    # the next batch stands as it was, and one does not fit together
    data += sample(7, op(1, 1, 3), 7) + sample(7, op(1, -1, 2), 8) + sample(7, op(2, 5, 4), 9) + sample(7, op(2, 0, 5), 9)
    data += sample(7, bytes(op(3, 0, 6))[:-1]) + sample(7, bytes(op(3, 0, 6)).replace(bytes([GET]) + b'\0\0\0', b'\377\0\0\0'))
    data += sample(9, meta(b'prog\0-x\0')) + sample(10, meta(pack('<i', 256))) + sample(7, b'short') + sample(8, meta(b'bad'))
    data += sample(8, b'none') + sample(10, meta(b'x')) + sample(11, b'')
    seed('recording', 'own.data', p.file([(raw, [7 + i]) for i in range(len(names))], data, [(12, desc)]))


# ---- SDT markers

def operand():
    x86 = ('8@%rdi -4@%eax 1@%sil 2@%r10w', '-4@$5 8@$0xffffffffffffffff 8@$table+16', '8@-16(%rbp) 8@(%r12) 8@8(%rdx,%rcx,8)',
           '8@(%rdx,%rcx) 8@64(,%rax,4)', '4@counter(%rip) 8@8+table-4(%rip) 8@counter 8@0x601040', '8f@%xmm0 8f@8(%rsp)', '%rax $5',
           '8@%ah', '8@%fs:0x28', '3@%rax 16@%rax', '8@(%rdx,%rcx,3)', '8@(%rdx', '8@', '8@table(%rax)', '8@()', '8@%r7 8@%r16d 8@%r8x',
           '8@(,,)', '8@%', '8@$', '8@(%rax)x', '8@(%rip)', '8@a+b', '8@(%zax)', '8@(%rax,%zax)')
    a64 = ('8@x0 -4@w19 8@sp 8@x30 8@x31', '-4@5 8@#-5', '8@[sp, 16] 8@[x19] 8@[x29, #-8]', '8@[x1, x2]', '8@[x1', '8@[y]', '8@[x1, y]', '8@y')
    for i, text in enumerate(x86 + a64):
        seed('operand', str(i), text.encode())
    for name, text in (('smallest', '-9223372036854775808@%rax'), ('largest', '8@$9223372036854775807+9223372036854775807'),
                       ('beyond', '99999999999999999999@%rax'), ('hex', '-0x8000000000000000@%rax 8@$-0x8000000000000000')):
        seed('operand', name, text.encode())


def request():
    """Definitions of perf probe; numbers in them are text, and are changed as text."""
    points = ('f', 'g:e=f+0x10', 'f%return', 'f@a/b.c:3', 'f;*refs++*', 'f;"a = b"', 'a.c:12', 'a.c;ret*', '0x4010a9', 'e=%python:gc__done',
              'sdt_a:b', 'ns::T<int, 3>::get(void *)', 'operator\\=', '{{closure}}:3', 'obj_*')
    arguments = ('n', 'x=o->in.name[3]:string@user', 'a[-1]:x8[4]', '$params', '$vars', '$retval:s32', 'f2:b3@2/8', 's@user', '%di', '%rdi:u8',
                 '$stack', '$stack7', '$comm', '$arg2', '\\-5', '\\0xff:u8', '\\"text"', '@0x10', '@+0x10', '@sym+8', '@sym-8', '+8(%di)',
                 '-8(+u0x10($stack1)):ustring', 'c:char', 's:symbol')
    faults = ('', ' ', 'f+', 'f+99999999999999999999', 'f%ret', 'f:3;x', 'f@a@b', 'f;', 'f;"x', 'a.c:0', '1a=f', 'g-h:e=f', 'g:=f', '=f', 'm<int', 'm)',
              '%py', '%:', '%a:', '0xz', '0x10+4', 'f\x01', 'f o->', 'f o[n]', 'f o[1', 'f o[99999999999]', 'f n:u33', 'f n:b9@0/8', 'f n:b3@6/9',
              'f n:u8[65]', 'f n:u8[', 'f &n', 'f %zz', 'f %', 'f $', 'f $foo', 'f $arg0', 'f $stack99999', 'f +8', 'f +8(', 'f +8(%di', 'f +8(x)',
              'f +8($comm)', 'f x=$vars', 'f \\', 'f \\"x', 'f n,m', 'f ' + 'a' * 32 + '=n', 'f 1=n', 'e' * 64 + '=f', 'f ' + '+0(' * 17 + '%di' + ')' * 17,
              'f o' + '->a' * 33, 'f' + ' n' * 129, 'x' * 4097, 'f:3 n', 'f@', 'f+4=3')
    for i, text in enumerate(points + faults):
        seed('request', str(i), text.encode())
    for i, text in enumerate(arguments):
        seed('request', f'argument-{i}', b'f ' + text.encode())
    for name, text in (('class', 'obj_[gp][!a-d]t'), ('class-open', 'f[a'), ('class-bracket', 'f[]a-]*'), ('escaped', 'operator\\*'),
                       ('slice', '<[T] as S>::*'), ('line', 'f;*a\\[i\\]++*')):
        seed('request', name, text.encode())
    seed('request', 'all', b'f ' + ' '.join(arguments).encode())


def probes():
    """A spec, its lines and the file, see fuzz-probes.c"""
    file = (b'%sdt_semp:hit=hit\np:sdt_semp/hit /tmp/a:0x10a9(0x3020) arg1=%bx:s32\n#g:e=f arg\np:g/e /tmp/a:0x1210 arg=%di:u64\n'
            b'p:g/e /tmp/a:0x1110\np:g/e /tmp/a:0x1110\n')
    for name, spec, lines, text in (
            ('new', b'g:n=n', b'p:g/n /a:0x1', file), ('place', b'g:e=f arg', b'p:b\1p:a\1p:b\1p:c', file), ('no-spec', b'', b'p:x', file),
            ('newline', b'g:n\n', b'', file), ('header-line', b'g:n', b'p:x\1%y', file), ('newline-line', b'g:n', b'p:\nx', file),
            ('empty-line', b'g:n', b'p:x\1', file), ('early', b'g:n', b'', b'p:x\n\n' + file), ('blank', b'g:n', b'', file + b'\n\n%\n#\n'),
            ('zero', b'g:n', b'', b'#a\0b\n' + file), ('no-end', b'g:n', b'', file[:-1]), ('twice', b'g:e=f arg', b'', file + file),
            ('long', b'g' * 4092, b'p:x', b'%' + b'x' * 4092 + b'\n' + file), ('just', b'g' * 4091, b'p' * 4092, b'%' + b'x' * 4091 + b'\n' + file)):
        for sdt in (0, 1):
            data = spec + b'\0' + lines + b'\0' + text
            seed('probes', f'{name}-{sdt}', data + b'\n' * ((len(data) ^ sdt) & 1))


# ---- what others are told: the cache's definitions, another host's lines

def cached():
    """How it is asked, a definition, a group, an event and two files, see fuzz-cached.c"""
    file = (b'%sdt_semp:hit=hit\np:sdt_semp/hit /opt/a:0x10a9(0x3020) arg1=%bx:s32\n#g:e=f arg\np:g/e /opt/a:0x1210 arg=%di:u64\n'
            b'#g:e2=old\nr:g/e2 /opt/a:0x30\n')
    lines = (b'#a:b=c\np:1/e /a:0x1\np:g/e /a\np:g/e /a:1\np:g/e :0x1\np:g/e /a:0x1(0x2\np:g/e /a:0x1(2)\np:g/e /a:0x1x\n'
             b'p:g/' + b'e' * 65 + b' /a:0x1\nq:g/e /a:0x1\np;g/e /a:0x1\np:g/e /a:0x1 a=%di\r\np:g/e /a:0x10000000000000000\n')
    words = ('g:e=new arg', 'f', 'f n', 'wc1:f=work@/usr/src/a/long/way/down/to/some/file.c:5 n', 'work+16', 'work+0x10 $params', 'f%return $retval',
             'probed.c:60', 'a.c;ret*', 'f;*refs ++*', 'f;"a = b"', '0x1440 +8(%di):u32', 'work o->refs o->in.b[2] x=o->n', 'f a[1]',
             'work s->text:string@user t@user', 'ns::T::get', 'operator\\=%return', 'get<int, 2>(void *)', 'sdt_p:n', '%python:gc', 'f \\"a b\\"',
             'e=f@a/b.c', 'f@a\\;b.c', 'f' * 4090)
    for i, word in enumerate(words):
        seed('cached', f'words-{i}', b'\1' + word.encode() + b'\0g\0e*\0' + file)
    for mode in range(64):
        for name, text in (('a', file), ('b', b'\1' + file), ('both', file + b'\1' + file)):
            if mode in (1, 3, 33) or mode % 8 in (0, 2, 4, 6):
                seed('cached', f'mode-{mode}-{name}', bytes([mode]) + b'g:e=f arg\0semp\0hi[st]\0' + text)
    for name, group, event in (('marker', b'sdt_semp', b'hit'), ('none', b'g', b'x'), ('unverified', b'g_unverified:e', b'e'),
                               ('mismatch', b'g_mismatch:e', b'e'), ('any', b'*', b'*')):
        seed('cached', 'name-' + name, b'\1f\0' + group + b'\0' + event + b'\0' + file)
    seed('cached', 'lines', b'\1f\0g\0e\0' + lines)
    seed('cached', 'nothing', b'\1')


def remote():
    """Of a file (0) or a kernel (1), its path, the build-id and the lines, see fuzz-remote.c"""
    places = {0: (b'/opt/a:0x10a9', b'/opt/a:b:0x10a9(0x3020)', b'/a:0x', b'/a:10a9', b'/a:0x1(', b'/a:0x1(0x2', b'/a:0x1(2)', b'/a:0x1 ', b'a:0x1',
                  b'/a', b'/a:0x1x'),
              1: (b'_text+4711', b'_text+', b'_text', b'_text+0x10', b'f+8', b'_text+12x')}
    for kernel, some in places.items():
        def put(name, lines, path=b'/opt/a', build_id=b'abcdef'):
            seed('remote', f'{name}-{kernel}', bytes([kernel]) + path + b'\0' + build_id + b'\0' + b'\n'.join(lines))
        place = some[0]
        for i, other in enumerate(some):
            put(f'place-{i}', [b'p:g/e ' + other + b' n=%di:u64'])
        put('apart', [b'p:g/e ' + place + b' n=%di:u64', b'p:g/e ' + place.replace(b'1', b'2') + b' n=%di:s64', b'p:g/e ' + place + b' n=%si:u64',
                      b'r:g/e ' + place, b'p:g/e ' + place.replace(b'1', b'2') + b' m=%di:u64 n=$comm', b'p:g/e_1 ' + place + b' n=+8(%di):s64'])
        put('quotes', [b"p:g/e " + place + b" a=\\\"it's\"\ta `f`' $x"], b"/opt/it's $(a) `b` \\", b"ab' cd")
        put('function', [b'p:g/e ' + place + b'\tdo_sys_open', b'p:g/f ' + place + b"\t'", b'p:g/h ' + place + b'\t'])
        for i, line in enumerate((b'', b'p', b'p:', b'p:g', b'p:g/', b'p:g/e', b'p:g/e ', b'p:1/e ' + place, b'p:g/2 ' + place, b'q:g/e ' + place,
                                  b'p:g/e ' + place + b' #', b'p:g/e ' + place + b'\r', b'pg/e ' + place, b'r:g.h/e ' + place)):
            put(f'fault-{i}', [line])
        put('path', [b'p:g/e ' + place], b'a b')
        put('tab', [b'p:g/e ' + place], b'/a\tb')


# ---- a kernel's own word

KALLSYMS = (b'0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\nffffffff81000100 T do_open\nffffffff81000200 t twice\n'
            b'ffffffff81000300 t twice\nffffffff81000400 T part.constprop.0\nffffffff81000500 t gone.cold\nffffffff81000600 W gone\n'
            b'ffffffff81001000 T _sinittext\nffffffff81001010 t start\nffffffff81001100 T _einittext\nffffffff81002000 T __entry_text_start\n'
            b'ffffffff81002100 T __entry_text_end\nffffffff81003000 T _etext\nffffffff81004000 d data\nffffffff81005000 B _end\n'
            b'ffffffff81006000 A __per_cpu_start\nffffffff81007000 A __per_cpu_end\nffffffffc0000000 t in_module\t[mod]\n')


def kernel_btf():
    """Functions with parameters of each kind; the first is also deep, the last ones cost much when nobody counts."""
    names, texts, types, count = {}, b'\0', b'', 0

    def text(name):
        nonlocal texts
        if name and name not in names:
            names[name] = len(texts)
            texts += name.encode() + b'\0'
        return names.get(name, 0)

    def put(kind, name='', vlen=0, size=0, flag=0, tail=()):
        nonlocal types, count
        types += pack('<III', text(name), flag << 31 | kind << 24 | vlen, size) + pack(f'<{len(tail)}I', *tail)
        count += 1
        return count

    def struct_of(name, size, *members, kind=4, flag=0):
        return put(kind, name, len(members), size, flag, [v for n, t, at in members for v in (text(n), t, at)])

    def function(name, returns, *parameters):
        proto = put(13, size=returns, vlen=len(parameters), tail=[v for n, t in parameters for v in (text(n), t)])
        return put(12, name, 1, proto)
    number, byte = put(1, 'int', 0, 4, tail=(1 << 24 | 32,)), put(1, 'char', 0, 1, tail=(8,))
    long = put(1, 'long unsigned int', 0, 8, tail=(64,))
    name, node = put(2, size=byte), count + 2
    assert put(2, size=node) == node - 1
    inner = count + 2
    struct_of('node', 64, ('next', node - 1, 0), ('', inner, 64), ('flags', number, 3 << 24 | 256), ('name', name, 320), ('list', inner + 1, 384), flag=1)
    assert struct_of('', 16, ('refs', number, 0), ('many', number, 32), kind=5) == inner
    array = put(3, tail=(number, number, 4))
    typedef = put(8, 'node_t', 0, put(10, size=put(9, size=node - 1)))
    small, wide = struct_of('small', 8, ('x', number, 0), ('y', number, 32)), struct_of('wide', 24, ('a', long, 0))
    odd = struct_of('odd', 8, ('x', byte, 0), ('y', number, 8))
    enum, enum64, single = put(6, 'kind', 1, 4, 1, (text('A'), 1)), put(19, 'large', 1, 8, tail=(text('B'), 1, 2)), put(16, 'double', 0, 8)
    table = put(3, tail=(put(3, tail=(byte, number, 0xffffffff)), number, 0xffffffff))
    many, holder = put(2, size=table), struct_of('holder', 8, ('refs', byte, 0), ('next', array, 0))
    function('do_open', number, ('o', typedef), ('n', number), ('s', small), ('e', enum), ('l', enum64), ('text', name), ('h', put(2, size=holder)),
             ('stack', long))
    function('gone', 0, ('w', wide), ('after', number))
    function('data', single, ('o', odd), ('f', single), ('many', many))
    function('twice', typedef, ('o', typedef))
    function('part', long, ('bad', 9999))
    function('gone', long, ('n', number))
    return put, struct_of, function, number, lambda: (types, texts)


def btf_bytes(types, texts):
    return pack('<HBBIIIII', 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(texts)) + types + texts


def kernel():
    """kallsyms, the size of the BTF, the BTF and an image, see fuzz-kernel.c"""
    put, struct_of, function, number, now = kernel_btf()
    plain = btf_bytes(*now())
    # each holds the next twice: 2^31 ways to the innermost
    last = struct_of('leaf', 4, ('refs', number, 0))
    for _ in range(31):
        last = struct_of('', 4, ('', last, 0), ('', last, 0), kind=5)
    function('_text', 0, ('deep', last))
    function('data', 0, ('behind', put(2, size=last)))
    deep = btf_bytes(*now())
    image = symbols_elf()

    def all_of(text, btf, rest=b''):
        return text + b'\0' + pack('<H', len(btf)) + btf + rest
    seed('kernel', 'whole', all_of(KALLSYMS, plain, image))
    seed('kernel', 'deep', bytes(all_of(KALLSYMS, deep)))  # without its fields: each change of them costs milliseconds
    seed('kernel', 'no-btf', all_of(KALLSYMS, b'', image))
    seed('kernel', 'text-alone', KALLSYMS)
    seed('kernel', 'no-text', KALLSYMS.replace(b'_text', b'_test'))
    seed('kernel', 'lines', b'ffffffff81000000 T _text\n\nx\n81 T\n81 T \nffffffff81000000  x\nffffffff81000000 T x\t\nffffffff81000010 T ' +
         b'n' * 511 + b'\nffffffff81000010 T ' + b'n' * 512 + b'\n1ffffffff81000010 T far\nffffffff81000010 T end')


def symbols_elf():
    """An image with __ksymtab and its names; every distance as struct kernel_symbol has it"""
    strings = b'do_open\0gone\0data\0none\0'
    begin, table = 0xffffffff81000000, 0x120
    rows = b''
    for i, (name, value) in enumerate(((0, 0x100), (8, 0x600), (13, 0x4000), (18, 1))):
        at = begin + table + 12 * i
        rows += pack('<III', begin + value - at & 0xffffffff, begin + 0x180 + name - at - 4 & 0xffffffff, 0)
    sections, shstr = b'\0' * 64, b'\0__ksymtab\0.shstrtab\0'

    def section(name, kind, at, size, addr):
        return pack('<IIQQQQIIQQ', name, kind, 2, addr, at, size, 0, 0, 1, 0)
    body = rows.ljust(0x60, b'\0') + strings.ljust(0x40, b'\0') + pad(shstr)
    sections += section(1, 1, table, len(rows), begin + table) + section(11, 3, 0x1c0, len(shstr), 0)
    head = b'\x7fELF\2\1\1'.ljust(16, b'\0') + pack('<HHIQQQIHHHHHH', 2, 62, 1, begin, 64, table + len(body), 0, 64, 56, 1, 64, 3, 2)
    head += pack('<IIQQQQQQ', 1, 5, 0, begin, begin, table + len(body), table + len(body), 4096)
    return head.ljust(table, b'\0') + body + sections


def sdt_elf(big, wide, note, base=True, refcnt=b''):
    """An ELF file of sections only: .note.stapsdt, .stapsdt.base, .note.refcnt"""
    order, word = '>' if big else '<', 'Q' if wide else 'I'
    names = b'\0.shstrtab\0.note.stapsdt\0.stapsdt.base\0.note.refcnt\0'
    parts = [(b'.shstrtab', 3, 0, names), (b'.note.stapsdt', 7, 0, note)]
    parts += [(b'.stapsdt.base', 1, 0x3000, b'\0')] if base else []
    parts += [(b'.note.refcnt', 7, 0, refcnt)] if refcnt else []
    head, section = (64, 64) if wide else (52, 40)
    table, body = b'\0' * section, b''
    for name, kind, addr, data in parts:
        at = head + len(body)
        table += pack(order + 'II' + word * 4 + 'II' + word * 2, names.index(name), kind, 0, addr, at, len(data), 0, 0, 4, 0)
        body += pad(data)
    ident = b'\x7fELF' + bytes((2 if wide else 1, 2 if big else 1, 1)) + b'\0' * 9
    return ident + pack(order + 'HHI' + word * 3 + 'IHHHHHH', 3, 62 if wide else 3, 1, 0, 0, head + len(body), 0, head, 0, 0, section,
                        len(parts) + 1, 1) + body + table


def elf():
    for big, wide in ((False, True), (True, True), (False, False)):
        order, word = '>' if big else '<', 'Q' if wide else 'I'

        def note(owner, kind, desc):
            return pad(pack(order + 'III', len(owner), len(desc), kind) + pad(owner, 4) + pad(desc, 4), 4)

        def marker(location, text, base=0x2000, semaphore=0x4000, owner=b'stapsdt\0', kind=3):
            return note(owner, kind, pack(order + word * 3, location, base, semaphore) + text)
        first, second = marker(0x1000, b'app\0get\x008@%rdi\0'), marker(0x1010, b'app\0put\0\0', semaphore=0)
        of = note(b'refcnt\0', 1, pack(order + word * 2, 0x1000, 0x2000) + b'struct obj\0')
        of += note(b'refcnt\0', 1, pack(order + word * 2, 0x9999, 0x2000) + b'none\0')
        what = f'sdt-{"big" if big else "little"}-{64 if wide else 32}'
        seed('elf', what, sdt_elf(big, wide, first + second, True, of))
        seed('elf', what + '-no-base', sdt_elf(big, wide, first + marker(0x1010, b'a\0b\0c\0', owner=b'other\0\0\0') + second, False, of))
        seed('elf', what + '-cut', sdt_elf(big, wide, first + second[:-6], True, of))
        seed('elf', what + '-no-end', sdt_elf(big, wide, first + marker(0x1010, b'app\0put'), True, of))
        seed('elf', what + '-type', sdt_elf(big, wide, first, True, note(b'refcnt\0', 1, pack(order + word * 2, 0x1000, 0x2000) + b'obj')))


# ---- split

def split():
    """The first byte is the part, see fuzz-split.c: 0 an index, 1 lists of ranges, 2 of locations, 3 ranges of DWARF 4."""
    address, code = pack('<Q', 0x401000), pack('<B', 1) + b'\x50'

    def lists(*entries):
        body = pack('<HBBI', 5, 8, 0, 2) + pack('<II', 8, 8) + join(entries) + b'\0'
        return pack('<I', len(body)) + body

    seed('split', 'ranges', b'\1' + lists(b'\1\1', b'\2\1\2', b'\3\1\x10', b'\4\2\x08', b'\5' + address,
                                        b'\6' + address * 2, b'\7' + address + b'\x10'))
    seed('split', 'ranges-unknown', b'\1' + lists(b'\x08'))
    for name, entry in (('all', b''), ('unknown', b'\x0a'), ('no-end', b'\4\2')):
        seed('split', 'locations-' + name, b'\2' + lists(b'\1\1', b'\2\1\2' + code, b'\3\1\x10' + code, b'\4\2\x08' + code,
                                                       b'\5' + code, b'\6' + address, b'\7' + address * 2 + code,
                                                       b'\x08' + address + b'\x10' + code, b'\x09\1\2', entry))
    seed('split', 'ranges-4', b'\3' + pack('<QQQQQQQQQQ', 1, 2, 2 ** 64 - 1, 0x1000, 3, 4, 0, 0, 5, 6))
    ident = 0x1234567800000003
    for version, head in ((2, pack('<I', 2)), (5, pack('<HH', 5, 0))):
        table = pack('<8I', 1, 3, 4, 5, 6, 7, 8, 99) + pack('<8I', *range(0, 80, 10)) + pack('<8I', *[10] * 8)
        index = head + pack('<III', 8, 1, 4) + pack('<QQQQ', 0, 0, 0x77, ident) + pack('<IIII', 0, 0, 1, 1) + table
        seed('split', f'index-{version}', b'\0' + index)
        seed('split', f'index-{version}-cut', b'\0' + index[:-4])


# ---- rows

def rows():
    """Layout: fuzz-rows.c. Each form of a CIE, each operation of a call frame program."""
    def entry(body, wide=False):
        return (pack('<IQ', 0xffffffff, len(body)) if wide else pack('<I', len(body))) + body

    def cie(letters=b'zR', augmentation=b'\x1b', version=1, ident=0, program=b'\x0c\x07\x08\x90\x01'):
        body = pack('<IB', ident, version) + letters + b'\0' + (pack('<BB', 8, 0) if version == 4 else b'')
        body += b'\1\x78\x10' + (pack('<B', len(augmentation)) + augmentation if letters[:1] == b'z' else b'')
        return entry(pad(body + program, 4))

    def input_of(eh, debug=b''):
        return pack('<I', len(eh)) + eh + debug

    def fde(at, start, size, program):  # at: offset in .eh_frame; the CIE is at 0
        return entry(pack('<Iii', at + 4, start - (0x200000 + at + 8), size) + b'\0' + program)

    def block(op, expression):
        return op + pack('<B', len(expression)) + expression

    first = cie()
    saved = b'\x41\x0e\x10\x86\x02'  # push rbp
    operations = {
        'frame': saved + b'\x43\x0d\x06\x0a\x41\x0c\x07\x08\xc6\x0b', 'advance': b'\2\x08\x0e\x10\3' + pack('<H', 300) + b'\x0e\x18\4' +
        pack('<I', 700) + b'\x0e\x20', 'set-loc': b'\1' + pack('<i', 0x1200 - 0x200000 - 40) + b'\x0e\x10',
        'extended': b'\5\x06\x02\x41\x06\x06\x41\x07\x06\x41\x08\x06\x41\x09\x06\x03\x41\x11\x06\x02\x41\x14\x07\x00\x41\x15\x06\x02',
        'cfa': b'\x12\x06\x7e\x41\x13\x7d\x41\x0d\x07\x41\x0c\x0a\x00\x41\x0c\x07\x0c', 'args-size': b'\x2e\x10\x41\x0e\x18',
        'plt': block(b'\x0f', b'\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22'),
        'load': block(b'\x0f', b'\x76\x78\x06') + block(b'\x10\x06', b'\x76\0') + b'\x41' + block(b'\x16\x06', b'\x76\0'),
        'expression': block(b'\x0f', b'\x77\x08\x06\x23\x08') + block(b'\x10\x06', b'\x77\x08\x06') + b'\x41\x0e\x10',
        'root': b'\x07\x10', 'unknown': saved + b'\x3f', 'no-state': saved + b'\x0b', 'cut': b'\x0c\x07', 'large': b'\x0e\x80\x80\x40',
        'remember': b'\x0a' * 65 + b'\x41'}
    for name, program in operations.items():
        seed('rows', name, input_of(first + fde(len(first), 0x1000, 0x800, program)))
    two = first + fde(len(first), 0x1000, 0x100, saved)
    two += fde(len(two), 0x1080, 0x100, b'\x41\x0e\x20')  # overlaps
    two += pack('<I', 0)
    seed('rows', 'two', input_of(two + fde(len(two), 0x2000, 0x100, saved)))
    trampoline = block(b'\x0f', b'\x77\xa0\1\x06') + b''.join(block(b'\x10' + reg, b'\x77' + at) for reg, at in (
        (b'\x07', b'\xa0\1'), (b'\x06', b'\xf8\0'), (b'\x10', b'\xa8\1')))
    signal = cie(b'zRS')
    seed('rows', 'signal', input_of(signal + fde(len(signal), 0x1000, 16, trampoline)))
    full = cie(b'zPLR', b'\x9b' + pack('<I', 5) + b'\x1b\x1b', 3)
    seed('rows', 'letters', input_of(full + entry(pack('<Iii', len(full) + 4, 0x1000 - (0x200000 + len(full) + 8), 64) + b'\4' + pack('<I', 9) + saved)))
    for name, odd in (('letter', cie(b'zX')), ('old', cie(b'eh')), ('version', cie(version=9)), ('program', cie(program=b'\x0c'))):
        seed('rows', 'bad-' + name, input_of(odd + fde(len(odd), 0x1000, 64, saved)))
    pointers = {0: pack('<QQ', 0x1000, 64), 1: b'\x80\x20\x40', 2: pack('<HH', 0x1000, 64), 3: pack('<II', 0x1000, 64),
                4: pack('<QQ', 0x1000, 64), 9: b'\x80\x20\xc0\0', 10: pack('<hh', 0x1000, 64), 12: pack('<qq', 0x1000, 64), 5: b'',
                0x83: pack('<II', 0x1000, 64), 0x33: pack('<II', 0x1000, 64)}
    for encoding, both in pointers.items():
        of = cie(b'zPR', pack('<B', encoding) + both[:len(both) // 2 + (encoding == 1)] + pack('<B', encoding))
        seed('rows', f'pointer-{encoding:x}', input_of(of + entry(pack('<I', len(of) + 4) + both + b'\0' + saved)))
    for version in (1, 3, 4):
        debug = cie(b'', b'', version, 0xffffffff)
        seed('rows', f'debug-{version}', input_of(b'', debug + entry(pack('<IQQ', 0, 0x1000, 64) + saved)))
    wide = entry(pack('<QB', 2 ** 64 - 1, 1) + b'\0\1\x78\x10\x0c\x07\x08\x90\x01', True)
    seed('rows', 'debug-wide', input_of(b'', wide + entry(pack('<QQQ', 0, 0x1000, 64) + saved, True)))


MAKERS = {'archive': archive, 'perfdata': perfdata, 'bpfinsn': bpfinsn, 'bpfimage': bpfimage, 'spool': spool, 'recording': recording,
          'operand': operand, 'probes': probes, 'request': request, 'cached': cached, 'remote': remote, 'kernel': kernel, 'elf': elf,
          'split': split, 'rows': rows}


def make(target):
    """-> {name: bytes with their fields}"""
    if target in MAKERS and not any(of == target for of, _ in made):
        MAKERS[target]()
    return {name: data for (of, name), data in made.items() if of == target}


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / 'corpus'
    for target in MAKERS:
        (out / target).mkdir(parents=True, exist_ok=True)
        for name, data in make(target).items():
            (out / target / name).write_bytes(data)


if __name__ == '__main__':
    main()
