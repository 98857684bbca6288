# SPDX-License-Identifier: GPL-2.0-only
"""Bytes that know which numbers they were packed from, and what each of these is changed to.

pack() and join() stand in for struct.pack() and b''.join(); adding, cutting and padding keep the fields. mutants() then
yields for each field the values at which parsers go wrong, whatever the field means: nothing, one, the largest, one
beside the right one, what ends exactly at the end of the input and one beyond, and what overflows when it is multiplied
by the size of an element. Where no field is, text is: it loses its NULs, and its digits change.
"""
import re
import struct

WIDTHS = {'b': 1, 'B': 1, 'h': 2, 'H': 2, 'i': 4, 'I': 4, 'q': 8, 'Q': 8}


class Fields(bytes):
    """fields: (offset, width, order) of each number"""

    fields: tuple = ()

    @classmethod
    def make(cls, data, fields):
        made = cls(data)
        made.fields = tuple(fields)
        return made

    def __add__(self, other):
        return join((self, other))

    def __radd__(self, other):
        return join((other, self))

    def __mul__(self, times):
        return join([self] * times)

    def __getitem__(self, key):
        if not isinstance(key, slice):
            return bytes.__getitem__(self, key)
        start, stop, _ = key.indices(len(self))
        kept = ((at - start, width, order) for at, width, order in self.fields if start <= at and at + width <= stop)
        return Fields.make(bytes.__getitem__(self, key), kept)

    def ljust(self, width, fill=b' '):
        return self + fill * (width - len(self))


def join(parts):
    data, fields, at = [], [], 0
    for part in parts:
        fields += [(at + offset, width, order) for offset, width, order in getattr(part, 'fields', ())]
        data.append(bytes(part))
        at += len(part)
    return Fields.make(b''.join(data), fields)


def pack(form, *values):
    """As struct.pack(), with an order of bytes in front; what stands for s may have fields itself."""
    order, at, fields, left = form[0], 0, [], list(values)
    assert order in '<>', form
    for count, code in re.findall(r'(\d*)([a-zA-Z])', form[1:]):
        if code == 'x':
            at += int(count or 1)
        elif code == 's':
            fields += [(at + offset, width, o) for offset, width, o in getattr(left.pop(0), 'fields', ())]
            at += int(count or 1)
        else:
            for _ in range(int(count or 1)):
                fields.append((at, WIDTHS[code], order))
                at += WIDTHS[code]
                left.pop(0)
    return Fields.make(struct.pack(form, *values), fields)


def values_for(value, width, offset, size):
    """What a number is changed to; size: of the whole input."""
    top = 1 << 8 * width
    rest = size - offset - width  # bytes behind the field
    odd = {0, 1, 2, top - 1, top - 2, top - 8, top // 2, top // 2 - 1, value - 1, value + 1, value + 2, value + 8, 2 * value,
           top // 8, top // 8 + 1, top // 4, top // 4 + 1, top // 16 + 1, top - offset, top - value, size, size + 1, size - 1, rest, rest + 1,
           rest - 1, rest // 4 + 1, rest // 8 + 1, offset, 1 << 16, 1 << 24}
    if width < 4:
        odd |= {1 << bit for bit in range(8 * width)} | {value ^ 1 << bit for bit in range(8 * width)}
    return sorted({v for v in odd if 0 <= v < top} - {value})


class End(bytes):
    """The input ends behind these."""


def text_edits(data, start, end):
    """-> (offset, [bytes]) for what stands between two fields"""
    part = bytes(data[start:end])
    if not part.strip(b'\0'):
        return
    full = part.replace(b'\0', b'x')
    yield start, [b'\0', End(full)] + ([full] if b'\0' in part else [])
    yield start + len(part.rstrip(b'\0')) - 1, [bytes((c,)) for c in b'\\%" =:;,([']
    for found in re.finditer(rb'(?<=[^\0])\0', part):
        yield start + found.start(), [b'x']
    for found in re.finditer(rb'[0-9]+', part):
        digits = found.group()
        yield start + found.start(), [b'9' * len(digits), b'0' * len(digits), b'-' + digits[1:],
                                      b'%0*d' % (len(digits), (int(digits) + 1) % 10 ** len(digits))]
    for found in re.finditer(rb'[0-9A-Za-z_]{4,}', part):
        yield start + (found.start() + found.end()) // 2, [b' ', b'\n', b'\0']
    for found in re.finditer(rb'[ \t\n:;=,/\[\]()]', part):
        yield start + found.start(), [b'x', b'\0']


def moved(data, one, other):
    """Two neighbours whose sum stays: what one has more, the other has less."""
    for (at, width, order), step in ((one, 8), (one, -8), (one, 1), (one, -1)):
        word = 'little' if order == '<' else 'big'
        a, b = (int.from_bytes(data[f[0]:f[0] + width], word) for f in (one, other))
        if min(a + step, b - step) >= 0 and max(a + step, b - step) < 1 << 8 * width:
            yield (a + step).to_bytes(width, word) + (b - step).to_bytes(width, word)


def mutants(data):
    """-> (offset, [bytes]): each of these stands there instead"""
    size, last, fields = len(data), 0, sorted(getattr(data, 'fields', ()))
    for i, (at, width, order) in enumerate(fields):
        yield from text_edits(data, last, at)
        last = at + width
        word = 'little' if order == '<' else 'big'
        value = int.from_bytes(data[at:last], word)
        yield at, [End()] + [v.to_bytes(width, word) for v in values_for(value, width, at, size)]
        yield at + width - 1, [End()]
        if width >= 4 and fields[i + 1:i + 2] == [(last, width, order)]:
            yield at, list(moved(data, fields[i], fields[i + 1]))
    yield from text_edits(data, last, size)
