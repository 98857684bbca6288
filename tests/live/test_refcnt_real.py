# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kmod with its hand-written counter of modules converted to librefcnt (refcnt/kmod.patch): it does in every
mode what it did, and a missing put is named by those that look; reftrace says what leaks. `./dev test real` only."""
import subprocess
import unittest

import live
import refcnt_built
import sources
import test_marks_real
from test_marks_real import FILES, FLAGS, GUILTY, MARKS, modules

PATCH = live.SOURCE / 'tests' / 'live' / 'refcnt' / 'kmod.patch'
# in mode checked the type has no field list, and is tracked: that is said
UNLISTED = 'refcnt: kmod_module has no handles, it is tracked only: REFCNT_STRUCT tells no fields of it'


class Converted(live.LiveTest):
    cc = 'gcc'

    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        refcnt_built.need_library()

    def made(self, mode, *patches):
        """-> builds NAME: a kmod that is called so, and so does what NAME does. mode None: as Debian has it"""
        patches = [PATCH, *patches] if mode else patches
        folder = sources.unpacked('kmod', *patches)
        # calls as they are written, so that every function is in the stacks
        written = ['-fno-inline', *refcnt_built.FRAMES] if len(patches) > 1 and mode != 'plain' else []
        flags = [*FLAGS, *written, *(refcnt_built.flags(mode) if mode else [])]
        path = sources.build(folder, 'kmod', self.cc, FILES, flags, refcnt_built.libraries(mode) if mode else ())
        done = {}

        def kmod(name):
            if name not in done:
                done[name] = path.parent / name
                if name != 'kmod':
                    done[name].symlink_to(path)
            return done[name]
        return kmod

    def said(self, argv, mode):
        """-> (status, stdout, what else it said, what the library said)"""
        env = {'LD_PRELOAD': str(refcnt_built.LIBRARY / 'librefcnt-track.so')} if mode == 'preloaded' else {}
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                              env=live.clean_env(ASAN_OPTIONS='detect_leaks=0', **env))
        lines = done.stderr.splitlines()
        own = [line for line in lines if line.startswith(('refcnt:', '    ')) and line != UNLISTED]
        return done.returncode, done.stdout, [line for line in lines if line not in own and line != UNLISTED], '\n'.join(own)

    def work(self, kmod, root):
        return test_marks_real.Marks.work(kmod, root)

    def test_same(self):
        """Statuses, outputs and messages are those of the original, and nothing is reported."""
        original = self.made(None)
        root = modules(original)
        want = [self.said(argv, None)[:3] for argv in self.work(original, root)]
        self.assertTrue(any(out for _, out, _ in want))
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                kmod = self.made(mode)
                have = [self.said(argv, mode) for argv in self.work(kmod, root)]
                self.assertEqual([h[:3] for h in have], want)
                self.assertEqual([h[3] for h in have], [''] * len(have))

    def test_missing_put(self):
        """It forgets a module where its file is damaged: the get is named, and who called it."""
        root = modules(self.made(None))
        for mode in refcnt_built.MODES:
            if mode in ('plain', 'shared', 'tracker'):
                continue
            with self.subTest(mode=mode):
                own = self.said(self.work(self.made(mode, MARKS / 'kmod-missing-put.patch'), root)[-1], mode)[3]
                said = refcnt_built.plain(own)
                self.assertEqual(said.count('refcnt: LEAK: kmod_module'), 1, own)
                taken = f'    kmod_module_ref\n    kmod_module_get_module\n    {GUILTY}\n    do_modinfo\n'
                self.assertIn(taken, said, own)
                if mode == 'alias':  # it knows; the others say which it may be
                    self.assertTrue(said.startswith('refcnt: left at exit: 2 objects, 2 references\nrefcnt: LEAK: kmod_module, '
                                                    '2 references taken by get, first on #11 (count 1 now) by thread 1\n' + taken), own)

    def test_traced(self):
        """Plain, with nothing told: what leaks, while the function that is named is kmod's own wrapper of the put. Told of
        the wrappers, it names who forgets."""
        live.need_engine()
        kmod = self.made('plain', MARKS / 'kmod-missing-put.patch')
        argv = self.work(kmod, modules(kmod))[-1]
        run = live.trace('-P', 'type=kmod_module get=kmod_module_ref put=kmod_module_unref', '--', *argv)
        self.assertEqual(run.findings['findings'][0]['guilty']['function'], GUILTY, str(run))
        run = live.trace('--', *argv)
        first = run.findings['findings'][0]
        self.assertEqual((first['type'], first['kind'], first['objects']), ('kmod_module', 'leak', 2), str(run))
        self.assert_clean_trust(run)


class ConvertedClang(Converted):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
