# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kmod with its hand-written counter of modules converted to librefcnt (refcnt/kmod.patch): it does in every
mode what it did, its own test suite passes, and a missing put is named by those that look and by reftrace.
`./dev test real` only."""
import collections
import os
import re
import subprocess
import unittest

import live
import refcnt_built
import sources
import test_marks_real
from test_marks_real import FILES, FLAGS, GUILTY, MARKS, modules

PATCH = live.SOURCE / 'tests' / 'live' / 'refcnt' / 'kmod.patch'


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
        own = [line for line in lines if line.startswith(('refcnt:', '    '))]
        return done.returncode, done.stdout, [line for line in lines if line not in own], '\n'.join(own)

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
            if mode in ('plain', 'shared'):
                continue
            with self.subTest(mode=mode):
                own = self.said(self.work(self.made(mode, MARKS / 'kmod-missing-put.patch'), root)[-1], mode)[3]
                said = refcnt_built.plain(own)
                self.assertEqual(said.count('refcnt: LEAK: kmod_module'), 1, own)
                taken = f'    kmod_module_ref\n    kmod_module_get_module\n    {GUILTY}\n    do_modinfo\n'
                self.assertIn(taken, said, own)
                if mode in ('checked', 'alias'):  # they know; the others say which it may be
                    self.assertTrue(said.startswith('refcnt: left at exit: 2 objects, 2 references\nrefcnt: LEAK: kmod_module, '
                                                    '2 references taken by get, first on #11 (count 1 now) by thread 1\n' + taken), own)

    def test_missing_put_sanitizer(self):
        """Its handles are LeakSanitizer's leaks, with the stack of the get."""
        kmod = self.made('checked', MARKS / 'kmod-missing-put.patch')
        argv = self.work(kmod, modules(kmod))[-1]
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, env=live.clean_env())
        self.assertIn('Direct leak\n    kmod_module_handle_\n    kmod_module_get\n    kmod_module_ref\n'
                      f'    kmod_module_get_module\n    {GUILTY}\n    do_modinfo\n',
                      refcnt_built.sanitizer(done.stderr), done.stderr)

    def test_traced(self):
        """Plain, with nothing told: kmod's own wrappers of the get and the put hide nobody, the one who forgets is named."""
        live.need_engine()
        kmod = self.made('plain', MARKS / 'kmod-missing-put.patch')
        run = live.trace('--', *self.work(kmod, modules(kmod))[-1])
        # and no other: the context that the two hold is left because they are
        self.assertEqual([(f['type'], f['kind'], f['objects'], f['guilty']['function']) for f in run.findings['findings']],
                         [('kmod_module', 'leak', 2, GUILTY)], str(run))
        self.assert_clean_trust(run)


class ConvertedClang(Converted):
    cc = 'clang'


class Suite(unittest.TestCase):
    """kmod's own test suite, which puts its own open(), stat() and syscall() before libc's and starts its tests with an
    LD_PRELOAD of its own."""
    cc = 'gcc'
    # what kmod's own tests leave behind: test_remove both of its modules, test_insert the one
    left = {('test_remove', 'kmod_module_new_from_name'): 2, ('test_insert', 'kmod_module_new_from_path'): 1}

    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        refcnt_built.need_library()
        for tool in ('autoreconf', 'make', 'zstd', 'xz'):
            if not live.compiler(tool):
                self.skipTest(f'{tool} is not installed')

    @staticmethod
    def configured(mode, *patches):
        """-> the source, ready for configure"""
        folder = sources.unpacked('kmod', *([PATCH] if mode else []), *patches)
        (folder / 'libkmod/docs/gtk-doc.make').touch()  # no documentation is built
        subprocess.run(['autoreconf', '-i'], cwd=folder, capture_output=True, check=True)
        return folder

    def suite(self, source, mode):
        """-> ({test: verdict}, what the library said, frames as functions)"""
        folder = live.temp_path(f'kmod-{mode}')
        folder.mkdir()
        flags = ['-O2', '-g', '-w', *refcnt_built.FRAMES, *(refcnt_built.flags(mode) if mode else [])]
        libraries = refcnt_built.libraries(mode) if mode else []
        if mode == 'preloaded':  # LD_PRELOAD is the suite's own
            libraries = ['-Wl,--no-as-needed', '-lrefcnt-track', *libraries]
        said = folder / 'said'
        env = live.clean_env(REFCNT_OUTPUT=str(said), ASAN_OPTIONS='detect_leaks=0:verify_asan_link_order=0')
        options = ['--sysconfdir=/etc', '--disable-manpages', '--disable-test-modules', '--with-openssl', '--with-xz',
                   '--with-zstd', '--enable-debug']
        for command in ([source / 'configure', *options, f'CC={live.compiler(self.cc)}', f'CFLAGS={" ".join(flags)}',
                         f'LIBS={" ".join(libraries)}'], ['make', f'-j{os.cpu_count()}', '-k', 'check']):
            done = subprocess.run([str(a) for a in command], cwd=folder, env=env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False)
        verdicts = {test: word for word, test in re.findall(r'^([A-Z]+): testsuite/(\S+)$', done.stdout, re.M)}
        self.assertTrue(verdicts, done.stdout[-2000:] + done.stderr[-4000:])
        return verdicts, said.read_text() if said.exists() else '', folder

    @staticmethod
    def taken(text, folder):
        """{(test, function that took it): references} of the leaks"""
        found = collections.Counter()
        for report in re.findall(r'^refcnt: LEAK: .*\n((?:    .*\n)+)', text, re.M):
            names = []
            for file, at in re.findall(r'\((test-\w+)\+(0x[0-9a-f]+)\)', report):
                done = subprocess.run(['addr2line', '-fsie', str(folder / 'testsuite' / file), hex(int(at, 16) - 1)],
                                      capture_output=True, text=True, check=True)
                names += done.stdout.split()[::2]
            test = next(i for i, name in enumerate(names) if name.startswith('test_'))
            found[names[test], names[test - 1]] += 1
        return dict(found)

    def test_suite(self):
        """As many tests pass as do in Debian's; all that is reported is what its tests truly leave."""
        want, _, _ = self.suite(self.configured(None), None)
        self.assertEqual(set(want.values()), {'PASS'})
        self.assertGreaterEqual(len(want), 16)
        source = self.configured('plain')
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                have, said, folder = self.suite(source, mode)
                self.assertEqual(have, want)
                kinds = set(re.findall(r'^refcnt: ([A-Z ]+):', said, re.M))
                self.assertEqual(kinds, set() if mode in ('plain', 'shared') else {'LEAK'}, said)
                self.assertEqual(self.taken(said, folder), {} if mode in ('plain', 'shared') else self.left, said)


class SuiteClang(Suite):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
