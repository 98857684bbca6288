# SPDX-License-Identifier: GPL-2.0-only
"""Each preset against the library that is installed here: what it declares is what the counters do (scan --verify)."""
import json
import os
import subprocess
import sys
import unittest

import live
import preset_uses

PRESETS = live.SOURCE / 'presets'
# of these not every type is used here
PARTS = {'dbus', 'gobject', 'openssl'}
# they have tests of their own: kernel objects, the heap (test_heap.py), programs (test_real.py), what others include
OTHERS = {'fd', 'mapping', 'malloc', 'perf', 'glib', 'glib-rc', 'meson.build'}


class Presets(live.LiveTest):
    def test_every_preset_is_verified_by_something(self):
        self.assertEqual({p.name for p in PRESETS.iterdir()}, set(preset_uses.USES) | OTHERS)

    def check(self, name):
        live.need_engine()
        uses = live.SOURCE / 'tests' / 'live' / 'preset_uses.py'
        alone = subprocess.run([sys.executable, str(uses), name], capture_output=True, text=True, check=False)
        if alone.returncode == 77:
            self.skipTest(alone.stderr.strip())
        self.assertEqual(alone.returncode, 0, alone.stderr)
        table = live.temp_path('table.json')
        # python itself leads to no library by its imports: a shell could lead anywhere
        run = live.call('scan', '--verify', '--json', '-o', table, '-P', PRESETS / name, '--', '/bin/sh', '-c',
                        '"$0" "$@"; true', sys.executable, uses, name, timeout=200)
        rows = json.loads(table.read_text())['functions'] if table.exists() else []
        self.assertEqual(run.status, 0, f'{run}\n{rows}')
        self.assertEqual([r for r in rows if r['verdict'] in ('contradicted', 'unclear')], [])
        ran = {r['type'] for r in rows if r['op'] == 'get' and r['events']}
        for kind in ran if name in PARTS else {r['type'] for r in rows}:
            verified = {r['op'] for r in rows if r['type'] == kind and r['verdict'] == 'verified'}
            made = {r['op'] for r in rows if r['type'] == kind and r['op'] == 'new'}
            self.assertLessEqual({'get', 'put'} | made, verified, f'{kind}: {[r for r in rows if r["type"] == kind]}')
        self.assertTrue(ran)


def add(name):
    def test(self):
        self.check(name)
    setattr(Presets, f'test_{name.replace("-", "_")}', test)


for _name in preset_uses.USES:
    if os.environ.get('RT_REAL') or _name in ('libxml2', 'json-c', 'udev'):
        add(_name)

if __name__ == '__main__':
    unittest.main()
