# SPDX-License-Identifier: GPL-2.0-only
"""What test_presets.py traces: uses each library of a preset a little, by ctypes. `preset_uses.py PRESET`; 77: not here."""
import sys

from uses import compiled, crypto, data, drawing, glib_, more, system

PARTS = (compiled, crypto, data, drawing, glib_, more, system)
USES = {f.__name__.replace('_', '-'): f for part in PARTS for f in part.ALL}

if __name__ == '__main__':
    USES[sys.argv[1]]()
