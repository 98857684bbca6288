# SPDX-License-Identifier: GPL-2.0-only
"""What test_rows.py lets python3 do: deep calls through its interpreter and modules in C."""
import json
import re

d = {str(i): [i, {'a': i}] for i in range(50)}
assert json.loads(json.dumps(d)) == d
x = sorted((re.sub('a', 'b', str(k)) for k in range(100)), key=lambda v: v[::-1])
