# SPDX-License-Identifier: GPL-2.0-only
"""What test_presets.py traces: uses each library of a preset a little, by ctypes. `preset_uses.py PRESET`; 77: not here."""
import sys

from uses import crypto, data, drawing, glib_, system

USES = {f.__name__.replace('_', '-'): f for part in (crypto, data, drawing, glib_, system) for f in part.ALL}

if __name__ == '__main__':
    USES[sys.argv[1]]()
