# SPDX-License-Identifier: GPL-2.0-only
"""The demos without debug information and without names but those of the functions that are told: the guilty function is
known by where it begins, and nobody else is named before it."""
import os
import shutil
import subprocess

import live

# What has to be looked up in code alone: slots, outputs, results, who is given an object; and operations in their place.
DEMOS = ('out-argument', 'kept-on-error', 'replaced-member', 'freed-holder', 'cleared-member', 'cleared-pair', 'freed-list',
         'taken-over', 'error-path', 'extra-put', 'double-put', 'use-after-put', 'thread-leak', 'hand-over', 'extra-get',
         'start-zero', 'find-hidden')
BUILDS = (('gcc', '-O2'), ('clang', '-O0'))


def words(specs):
    return {word for spec in specs for word in spec.replace('=', ' ').replace(',', ' ').replace(':', ' ').split()}


class Stripped(live.LiveTest):
    def setUp(self):
        live.need_engine()
        if not shutil.which('strip') or not shutil.which('nm'):
            self.skipTest('strip or nm is not installed (binutils)')

    def functions(self, path):
        """Name -> where it begins."""
        out = subprocess.run(['nm', path], capture_output=True, text=True, check=True).stdout
        return {row.split()[2]: int(row.split()[0], 16) for row in out.splitlines() if row.split()[-2] in ('t', 'T')}

    def strip(self, name, cc, opt):
        """-> the stripped program, its functions as they were called before, what it says of itself"""
        said = live.truth(subprocess.run([live.program(name, cc, ('-g', opt)), 'bug'], capture_output=True, text=True,
                                         env=live.clean_env(), check=False).stdout)
        known = words(said.specs) & set(self.functions(live.program(name, cc, ('-g', opt))))
        named = live.program(name, cc, (opt, *(f'-Wl,--export-dynamic-symbol={word}' for word in sorted(known))))
        bare = named.with_name(name + '-stripped')
        subprocess.run(['strip', '-o', bare, named], check=True)
        return bare, self.functions(named), said

    def check(self, name, cc, opt):
        path, functions, said = self.strip(name, cc, opt)
        run = live.trace(*live.pairs(said.specs), '--', path, 'bug')
        self.assertEqual(run.status, 0, str(run))
        found = sorted(run.findings['findings'], key=lambda f: -f['confidence'])
        self.assertTrue(found, str(run))
        self.assertEqual(found[0]['guilty']['start'], hex(functions[said.guilty.function]), str(run))
        self.assertIsNone(found[0]['guilty']['function'], str(run))
        self.assertEqual(found[0]['kind'], said.guilty.kind, str(run))
        quiet = live.trace(*live.pairs(said.specs), '--', path, 'ok')
        self.assertEqual(quiet.status, 0, str(quiet))
        self.assertEqual(quiet.findings['findings'], [], str(quiet))


def add(name, cc, opt):
    setattr(Stripped, f'test_{name.replace("-", "_")}_{cc}{opt.replace("-", "_")}', lambda self: self.check(name, cc, opt))


for _name in DEMOS:
    for _cc, _opt in BUILDS:
        if _opt == '-O2' or os.environ.get('RT_REAL'):
            add(_name, _cc, _opt)
