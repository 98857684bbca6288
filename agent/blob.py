#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints a file's bytes as the initialiser of a C array."""
import pathlib
import sys

data = pathlib.Path(sys.argv[1]).read_bytes()
for i in range(0, len(data), 16):
    print(''.join(f'{byte},' for byte in data[i:i + 16]))
