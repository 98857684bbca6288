# SPDX-License-Identifier: GPL-2.0-only
"""Inputs for the replay that are no files of the corpus: more of each part than the first room of a table holds, and
names of each length around the sizes that buffers have. As seeds.py, with fields."""
import struct

import seeds
from fields import join, pack
from seeds import EXEC, FORK, GET, HITS, LOSS, MAP, MODULE, NEW, POINT, PUT, STACK, TYPE, Perf, event, pad, perf, record

MANY = 70
LENGTHS = [n + d for n in (8, 16, 32, 64, 100, 128, 256, 512, 1024, 4096) for d in (-2, -1, 0, 1)]

# formats of which no seed is a file: these are changed field by field, too
CHANGED = {'tracing': 'some', 'lifetime': 'many-1'}

made = {}  # (target, name) -> bytes


def put(target, name, data):
    made[target, name] = data


def wire(name=b'x', count=1):
    """Our own records, with as many of each."""
    text, out = name + b'\0', []
    for i in range(1, count + 1):
        out.append(record(TYPE, pack('<IiiIII', i, 1, 16, 4, 64, len(text)) + text))
        out.append(record(MODULE, pack('<IBBH20sI', i, 20, 0, 1, bytes([i]) * 20, 0) + text))
        out.append(record(POINT, pack('<IIIiQQII', i, i, 1, 1, 0x1000, 0x1000, 0, 0) + text, i % 4 + 1))
        out.append(record(MAP, pack('<QQQII', i << 12, i + 1 << 12, 0, i, 0), time=i))
        out.append(record(STACK, pack('<IHH', i, min(i, 40), 0) + pack('<QII', 0x1100, 16, 0) * min(i, 40)))
        out.append(record(FORK, pack('<Ii', 1 << 22 | 200 + i, 0), time=i))
        out.append(record(EXEC, pack('<Ii', 0, 0), time=i, pid=2 << 22 | 200 + i))
        out.append(record(LOSS, pack('<IIQ', 1, 0, 7) + text))
        out.append(record(HITS, pack('<IIQ', 0, i, 3) + text))
    for i in range(1, 4 * count + 1):
        out.append(event((NEW, GET, PUT)[i % 3], 0x10000 + 64 * (i % 90), 1000 + 10 * i, point=i % count + 1, stack=i % (count + 1),
                         seq=i % 30 << 20 | i, tid=100 + i % 50, aux=i, sp=0x7fff0000 - 16 * (i % 9), flags=i % 16))
    return join(out)


def side(name=b'x', count=1):
    """perf's records and blobs, with as many of each."""
    p, text, out = Perf(), name + b'\0', []
    attr = p.attr(seeds.IP | seeds.TID | seeds.TIME | seeds.CHAIN | seeds.ID)
    for i in range(1, count + 1):
        ids = join(pack('<Q', i << 8 | k) for k in range(i))
        out.append(record(seeds.ATTR, pack('<IIII', i, 128, i, len(text)) + attr + ids + text))
    tail = p.pack('IIQQ', 100, 100, 20, 1 << 8)
    for i in range(1, count + 1):
        for body in (p.record(3, pad(p.pack('II', 100, i) + text) + tail), p.record(17, pad(p.pack('QIHH', (1 << 64) - (i << 20), 16, 1, 0) + text) + tail, 1),
                     p.record(10, pad(p.pack('IIQQQB3x20sII', 100, 100, i << 20, 4096, 0, 20, bytes([i]) * 20, 5, 2) + text) + tail, 2 | 1 << 14),
                     p.record(9, p.pack('QIIQQQ', 0x1100, 100, 100, i, i << 8, i) + join(p.pack('Q', (1 << 64) - k - 4096) for k in range(i)))):
            if len(body) < 4000:
                out.append(perf(body, i, i))
    entry, btf, extra = seeds.entry_of(p), seeds.btf_of(p), seeds.extra_of()
    for i in range(1, count + 1):
        out += [seeds.blob(1, i, entry), seeds.blob(2, 9, btf), seeds.blob(7, i, extra), seeds.blob(6, 100 + i, text), seeds.blob(4, i, text)]
    out.append(seeds.blob(5, 0, b'hostname ' + name + b'\n' + b'cmdline ' + name + b'\n' + b'cmdline a\\n\n' * count))
    return join(out)


def recordings():
    for count in (1, MANY):
        for flags in (0, 1, 3, 5):
            put('recording', f'many-{count}-{flags}', bytes([flags]) + wire(count=count) + (side(count=count) if flags else b''))
        put('spool', f'many-{count}', b'\3' + wire(count=count) + b'\0')
        put('spool', f'many-{count}-chunks', b'\3' + wire(count=min(count, 9)) + b'\1')
        put('lifetime', f'many-{count}', wire(count=count))
    for n in LENGTHS:
        name = b'n' * n
        for flags in (0, 1):
            put('recording', f'name-{n}-{flags}', bytes([flags]) + wire(name) + side(name))
        put('lifetime', f'name-{n}', wire(name))
    # of fuzz-spool.c's script: lanes, threads, sites and objects beyond what one byte counts
    steps = [(12, 1, 0), (11, 1, 0)]
    for i in range(300):
        steps += [(1, i, 20), (4, i, 0), (5, i + 1, 12), (9, i, 0), (2, i * 1000 & 0xffff, i % 30), (0, 1 + i % 9, 0)]
    put('spool', 'many-script', b'\2' + join(pack('<BHB', *s) for s in steps))


def tracing(name=b'x', count=1, form=b'%s %d'):
    """TRACING_DATA with as many systems, events and fields; form: what each prints."""
    fields = b''.join(b'\tfield:unsigned char %s%d[%d];\toffset:%d;\tsize:%d;\tsigned:0;\n' % (name, i, i, 8 + i, i) for i in range(1, count + 1))
    fields += b'\tfield:__data_loc char[] %s;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:int n;\toffset:12;\tsize:4;\tsigned:1;\n' % name
    out = b'\x17\x08\x44tracing0.6\0' + pack('<BB', 0, 8) + pack('<I', 4096)
    for part in (b'header_page', b'header_event'):
        out += part + b'\0' + pack('<Q', len(name)) + name
    out += pack('<I', count)
    for i in range(count):
        text = b'name: %s\nID: %d\nformat:\n%s\nprint fmt: "%s", __get_str(%s), REC->n\n' % (name, i, fields, form, name)
        out += pack('<Q', len(text)) + text
    out += pack('<I', count)
    for s in range(count):
        out += b'%s%d\0' % (name, s) + pack('<I', 2)
        for i in range(2):
            text = (b'name: %s%d\nID: %d\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n%s\nprint fmt: "%s", '
                    b'__get_str(%s), REC->n\n' % (name, i, 2 * s + i, fields, form, name))
            out += pack('<Q', len(text)) + text
    return out + pack('<IIQ', len(name), 1, len(name)) + name + name


def perfdata():
    for big in (False, True):
        p = Perf(big)
        for count, lengths in ((1, LENGTHS), (20, (8,)), (MANY, (1,))):
            for n in lengths:
                name = b'n' * n
                attr = p.attr(seeds.TIME | seeds.IDENT | seeds.CHAIN | seeds.RAW)
                attrs = [(attr, [i << 8 | k for k in range(i % 30 + 1)]) for i in range(1, count + 1)]
                desc = p.pack('II', count, 128) + join(attr + p.pack('I', len(ids)) + p.string(name) + join(p.pack('Q', i) for i in ids)
                                                       for _, ids in attrs)
                ids = join(p.record(0, p.pack('I20sB3x', i, b'\xab' * 20, 20) + name + b'\0', 2 | 1 << 15) for i in range(count))
                blobs = join(p.pack('II', i, len(name)) + name for i in range(count))
                entry = seeds.entry_of(p)
                features = [(1, tracing(name, min(count, 6))), (2, ids)] + [(k, p.string(name)) for k in (3, 4, 5, 6, 8, 9)]
                features += [(11, p.pack('I', count) + join(p.string(name) for _ in range(count))), (12, desc),
                             (25, p.pack('I', count) + entry * count), (26, p.pack('I', count) + blobs)]
                samples = [p.record(9, p.pack('QQQ', i << 8, 1000 + i * 37 % 91, i) + join(p.pack('Q', k) for k in range(i)) +
                                    p.pack('I12s', 12, b'raw bytes..')) for i in range(1, count + 1)]
                comms = [p.record(3, pad(p.pack('II', 1, 1) + name + b'\0') + p.pack('QQ', 5, 1 << 8)) for _ in range(count)]
                put('perfdata', f'many-{big}-{count}-{n}', p.file(attrs, join(samples + comms), features))
    for n in LENGTHS:
        put('tracing', f'name-{n}', tracing(b'n' * n))
    put('tracing', 'many', tracing(count=24))
    put('tracing', 'some', tracing(count=3))
    # each token of a conversion, often
    for part in (b'%', b'-', b'+', b' ', b'#', b'0', b'9', b'.', b'*', b'h', b'l', b'z', b'd', b's', b'(', b')', b'\\', b'"', b'{', b','):
        for n in (2, 3, 4, 7, 8, 9, 24, 40, 300):
            for form in (b'%%%ss %%%sd', b'%%s%s %%d%s', b'%%.%ss %%.%sd', b'%%9%ss %%-9%sd'):
                put('tracing', f'form-{part!r}-{n}-{form!r}', tracing(count=1, form=form % (part * n, part * n)))


def btf(p, name, count):
    strings, types = b'\0' + name + b'\0', b''
    for i in range(count):
        members = join(p.pack('III', 1, i, 32 * k) for k in range(i + 1))
        types += p.pack('III', 1, 1 << 24, 4) + p.pack('I', 32)
        types += p.pack('III', 1, 4 << 24 | i + 1, 4 * i) + members
        types += p.pack('III', 1, 13 << 24 | i + 1, i) + join(p.pack('II', 1, i) for _ in range(i + 1))
        types += p.pack('III', 1, 12 << 24 | 1, 3 * i + 3)
        types += p.pack('III', 1, 6 << 24 | i + 1, 4) + join(p.pack('II', 1, k) for k in range(i + 1))
    return p.pack('HBBIIIII', 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings


def program(p, count):
    """An entry of as many functions, instructions, lines and maps."""
    parts, data = {}, b''
    insns = join(p.pack('BBhi', 0x85, 0x10 if p.order == '<' else 0x01, 1, 1) for _ in range(4 * count))
    content = {'jit': bytes(16 * count), 'xlated': insns, 'maps': join(p.pack('I', i) for i in range(count)),
               'ksyms': join(p.pack('Q', 0xffffffffc0000000 + 16 * i) for i in range(count)), 'lens': p.pack('I', 16) * count,
               'funcs': join(p.pack('II', 4 * i, 4) for i in range(count)),
               'lines': join(p.pack('4I', 2 * i, 1, 1, i << 10 | 1) for i in range(2 * count)),
               'jlines': join(p.pack('Q', 0xffffffffc0000000 + 8 * i) for i in range(2 * count)), 'tags': bytes(8 * count)}
    for name, bytes_ in content.items():
        parts[name] = len(data)
        data += pad(bytes_)
    info = p.pack('II8sIIQQQIIQ16sIIQQIIQQIIQIIQQIIIIQQQQIIIx', 1, 42, b'\1\2\3\4\5\6\7\x08', 16 * count, 32 * count, parts['jit'], parts['xlated'],
                  9, 0, count, parts['maps'], b'main_prog_123456', 0, 1, 0, 0, count, count, parts['ksyms'], parts['lens'], 9, 8, parts['funcs'],
                  count, 2 * count, parts['lines'], parts['jlines'], 2 * count, 16, 8, count, parts['tags'], 0, 0, 0, 4, 0, 0)
    info = pad(info)[:232].ljust(232, b'\0')
    return p.pack('IIQ', len(info), len(data), 0x1ff) + info + data


def bpfimage():
    for big in (False, True):
        p = Perf(big)
        for count in (1, 3, 12, MANY):
            entry = program(p, count)
            extra = pack('<III8s', 0x58425452, 1, 42, b'\1\2\3\4\5\6\7\x08')
            for i in range(count):
                for item, payload in ((1, pack('<I', i) + b'prog'), (2, pack('<Q', i) * (i + 1)), (3, pack('<I', i) + b'counts'),
                                      (4, b'link 12'), (5, b'lost'), (7, pack('<Q', 0x1000 + i) + b'bpf_x'), (8, b'later')):
                    extra += pack('<II', item, len(payload)) + payload
            for name, other in (('btf', btf(p, b'n', min(count, 24))), ('extra', extra)):
                put('bpfimage', f'many-{big}-{count}-{name}', pack('<BH', big, len(entry)) + entry + other)
        for n in LENGTHS:
            entry = program(p, 1)
            put('bpfimage', f'name-{big}-{n}', pack('<BH', big, len(entry)) + entry + btf(p, b'n' * n, 1))


def archive():
    ident = 'ab' * 20
    for count in (1, 9, 17, 30):
        lines = [b'reftrace-archive 1']
        for i in range(count):
            lines += [b'item \x02' + bytes([48 + i]) + b' 4 - /tmp/f%d' % i, b'path f%d' % i, b'missing ' + ident.encode() + b' [%d]' % i, b'why no file']
        put('archive', f'many-{count}', seeds.script(*[(0, f'f{i}', b'data') for i in range(count)], (0, 'MANIFEST', b'\n'.join(lines) + b'\n')))
    for n in LENGTHS:
        name = 'n' * min(n, 100)
        lines = [b'reftrace-archive 1', b'item \x020 4 - /' + b'o' * n, b'path ' + name.encode(), b'missing - /' + b'm' * n, b'why ' + b'w' * n, b'']
        put('archive', f'name-{n}', seeds.script((0, name, b'data'), (0, 'MANIFEST', b'\n'.join(lines))))
        put('archive', f'size-{n}', seeds.script((0, name, b'd' * n), (0, 'MANIFEST', b'\n'.join(lines).replace(b' 4 ', b' %d ' % n))))


def bpfinsn():
    """Every code with every number of a register, and what calls and atomics number."""
    for code in range(256):
        put('bpfinsn', f'registers-{code}', join(pack('<BBhi', code, regs, 0, 1) for regs in range(0, 256, 5)))
    for code in (0x85, 0x8d, 0xc3, 0xdb, 0xe5, 0x18, 0x05, 0x06):
        put('bpfinsn', f'numbers-{code}', join(pack('<BBhi', code, src << 4, off, imm) for src in range(3) for off in (0, 1) for imm in range(300)))


MAKERS = {'recording': recordings, 'spool': recordings, 'lifetime': recordings, 'perfdata': perfdata, 'tracing': perfdata,
          'bpfimage': bpfimage, 'archive': archive, 'bpfinsn': bpfinsn}


def make(target):
    """-> {name: bytes with their fields}"""
    if target in MAKERS and not any(of == target for of, _ in made):
        MAKERS[target]()
    return {name: data for (of, name), data in made.items() if of == target}
