#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Replays the corpus of a fuzz target: every file, variants of each, and each field of the seeds at its limits.

    replay.py PROGRAM TARGET        PROGRAM: replay-TARGET, of tests/fuzz/replay.c

What many.py makes is given as it is. What seeds.py makes, it knows the fields of: fields.py says what each is changed to. A field with the same bytes around
it is changed in the first two places only, whichever seeds have them.
"""
import collections
import pathlib
import struct
import subprocess
import sys

import fields
import many
import seeds

CORPUS = pathlib.Path(__file__).resolve().parent / 'corpus'
# a seed that is a list of equal parts is changed part by part: bytes
PIECE = {'bpfinsn': 16}
# where an input takes up to a millisecond: so many edits, evenly from all
LIMIT = {'recording': 15000, 'kernel': 8000, 'cached': 8000}
AROUND, PLACES = 12, 2


def pieces(target, data):
    step = PIECE.get(target, len(data) or 1)
    for at in range(0, len(data), step):
        yield data[at:at + step]


def edits(target):
    """-> [(piece of a seed, [(offset, bytes)])]"""
    seen, out = collections.Counter(), []
    changed = seeds.make(target)
    if target in many.CHANGED:
        changed[many.CHANGED[target]] = many.make(target)[many.CHANGED[target]]
    for _, data in sorted(changed.items()):
        for piece in pieces(target, data):
            out.append((piece, []))
            for at, texts in fields.mutants(piece):
                key = bytes(piece[max(at - AROUND, 0):at + AROUND]), len(texts), len(texts[-1]) if texts else 0
                seen[key] += 1
                if seen[key] <= PLACES:
                    out[-1][1].extend((at, text) for text in texts)
    return out


def pack(at, text):
    return struct.pack('=II', at, len(text) | isinstance(text, fields.End) << 31) + text


def mutants(target):
    """-> the bytes that replay.c reads"""
    all_edits = edits(target)
    every, number, out = -(-sum(len(e) for _, e in all_edits) // LIMIT.get(target, sys.maxsize)), 0, []
    for piece, some in all_edits:
        first = -number % (every or 1)
        number += len(some)
        some = some[first::every or 1]
        out.append(struct.pack('=II', len(piece), len(some)) + bytes(piece))
        out += [pack(at, text) for at, text in some]
    for _, data in sorted(many.make(target).items()):
        out.append(struct.pack('=II', len(data), 1) + bytes(data) + pack(len(data), b''))
    return b''.join(out)


def run(program, target, **how):
    """-> subprocess.CompletedProcess"""
    folder = CORPUS / target
    return subprocess.run([str(program)] + ([str(folder)] if folder.is_dir() else []) + ['-m'], input=mutants(target), check=False, **how)


if __name__ == '__main__':
    sys.exit(1 if run(sys.argv[1], sys.argv[2]).returncode else 0)
