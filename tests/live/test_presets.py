# SPDX-License-Identifier: GPL-2.0-only
"""Each preset against the library that is installed here: what it declares is what the counters do (scan --verify)."""
import fnmatch
import json
import os
import re
import subprocess
import sys
import unittest

import live
import preset_uses

PRESETS = live.SOURCE / 'presets'
# they have tests of their own: kernel objects, the heap (test_heap.py), programs (test_real.py)
OTHERS = {'fd', 'mapping', 'malloc', 'perf', 'meson.build'}


def unverified(name):
    """{(type, function)} that the preset marks; a function * is all of them"""
    marked, kind = set(), None
    for line in (PRESETS / name).read_text().splitlines():
        if line.startswith('['):
            kind = line.strip('[]')
        for names in re.findall(r'\bunverified=(\S+)', line.partition('#')[0]):
            marked |= {(kind, function) for function in names.split(',')}
    return marked


def declared(name):
    """the functions that the preset names, and those that it takes in: patterns"""
    found = set()
    for line in (PRESETS / name).read_text().splitlines():
        for key, names in re.findall(r'\b(\w+)=(\S+)', line.partition('#')[0]):
            found |= declared(names) if key == 'preset' else {re.split('[:?@]', function)[0] for function in names.split(',')}
    return found


class Presets(live.LiveTest):
    def test_every_preset_is_verified_by_something(self):
        self.assertEqual({p.name for p in PRESETS.iterdir()}, set(preset_uses.USES) | OTHERS)

    def test_what_is_not_verified_is_not_chosen(self):
        """-t takes types out of presets, without the functions that nobody has seen do what is said."""
        live.need_engine()
        home = live.temp_path('config')
        folder = home / 'reftrace' / 'presets'
        folder.mkdir(parents=True)
        (folder / 'mine').write_text('[session]\nnew=session_new get=session_ref,serve put=session_unref unverified=serve\n'
                                     '[other]\nget=session_ref put=session_unref unverified=*\n')
        path, env = live.program('missing-put'), live.clean_env(XDG_CONFIG_HOME=str(home))
        run = live.trace('-t', 'session', '--', path, 'ok', env=env)
        self.assertEqual({(s['op'], s['api']) for s in run.findings['sites'] if s['events']},
                         {('new', 'session_new'), ('get', 'session_ref'), ('put', 'session_unref')}, str(run))
        run = live.trace('-t', 'other', '--no-follow', '--', path, 'ok', env=env)
        self.assertEqual(run.findings['sites'] if run.findings else [], [], str(run))
        run = live.trace('-P', 'mine', '--', path, 'ok', env=env)
        self.assertIn('serve', {s['api'] for s in run.findings['sites'] if s['events']}, str(run))

    def check(self, name):
        live.need_engine()
        uses = live.SOURCE / 'tests' / 'live' / 'preset_uses.py'
        built = live.temp_path('built')
        built.mkdir()
        alone = subprocess.run([sys.executable, str(uses), name], capture_output=True, text=True, check=False,
                               env={**os.environ, 'USES_BUILD': str(built)})
        if alone.returncode == 77:
            self.skipTest(alone.stderr.strip())
        self.assertEqual(alone.returncode, 0, alone.stderr)
        table = live.temp_path('table.json')
        # a program of its own runs alone: an interpreter before it would have objects, too
        command = list(built.iterdir()) or [sys.executable, uses, name]
        # python itself leads to no library by its imports: a shell could lead anywhere
        run = live.call('scan', '--verify', '--json', '-o', table, '-P', PRESETS / name, '--', '/bin/sh', '-c',
                        '"$0" "$@"; true', *command, timeout=200)
        rows = json.loads(table.read_text())['functions'] if table.exists() else []
        self.assertEqual(run.status, 0, f'{run}\n{rows}')
        marked, patterns = unverified(name), declared(name)
        # what is found beside them by debug information, functions that count inside, is not the preset's
        rows = [row for row in rows if any(fnmatch.fnmatchcase(row['function'], pattern) for pattern in patterns)]
        for row in rows:
            mark = (row['type'], row['function']) in marked or (row['type'], '*') in marked
            self.assertEqual(row['verdict'] == 'verified', not mark, row)
        self.assertTrue(rows)


def add(name):
    def test(self):
        self.check(name)
    setattr(Presets, f'test_{name.replace("-", "_")}', test)


for _name in preset_uses.USES:
    if os.environ.get('RT_REAL') or _name in ('libxml2', 'json-c', 'udev'):
        add(_name)

if __name__ == '__main__':
    unittest.main()
