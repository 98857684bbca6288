# SPDX-License-Identifier: GPL-2.0-only
"""What librefcnt is asked, how it is told, where its limits are; healthy programs that hear nothing of it."""
import os
import re
import signal
import subprocess
import unittest

import live
import refcnt_built

QUICK, MANY = 16000, 10_000_000
LEDGER = ('preloaded', 'tracking', 'tracker', 'alias')


class Features(live.LiveTest):
    def said(self, mode, name, out, **env):
        """Checks stdout and the status -> what the library said"""
        path = refcnt_built.program('features.c', mode)
        status, stdout, text = refcnt_built.run(path, name, mode=mode, **env)
        self.assertEqual((status, stdout), (0, out), f'{mode} {name}\n{text[:4000]}')
        return refcnt_built.plain(text)

    def test_teardown(self):
        """In every mode but plain; before the report, which then has nothing to say."""
        for mode in ('plain', 'shared', *LEDGER):
            with self.subTest(mode=mode):
                out = 'count 2, none (nil)\n' + ('' if mode == 'plain' else 'tidy\n')
                self.assertEqual(self.said(mode, 'teardown', out), '')

    def test_holders(self):
        for mode in LEDGER:
            with self.subTest(mode=mode):
                exact = f'exact {int(mode == "alias")}, handle {int(mode == "alias")}, dir -, frames some\n'
                out = f'holder: first 1, {exact}holder: first 0, {exact}holders 2\nunknown -1\ntidy\n'
                self.assertEqual(self.said(mode, 'holders', out),
                                 'refcnt: 2 references are held on the object at P\n  new by thread 1:\n    make\n    holders\n'
                                 '    main\n  get by thread 1:\n    take\n    holders\n    main')
        self.assertEqual(self.said('plain', 'holders', 'holders -1\nunknown -1\n'), '')

    def test_tracker(self):
        """A directory at any time; a second put by a cookie, and one of a cookie that has none, change nothing."""
        said = self.said('tracker', 'tracker', 'cache 1\nqueue 0\nreleased 1\ntidy\n')
        self.assertTrue(said.startswith('''refcnt: now, for the cache: 1 object, 1 reference
refcnt: HELD: conn, 1 reference taken by get for the cache, first on #1 (count 3 now) by thread 1
    tracker
    main
refcnt: now, for the queue: 0 objects, 0 references
refcnt: EXTRA PUT: conn #1 P, this reference was given back before
  now, by thread 1:
    tracker
    main
'''), said)
        self.assertIn('''  get, count 3 then, by thread 1, for the queue, this reference:
    tracker
    main
  put, count 2 then, by thread 1, this reference:
    tracker
    main
refcnt: EXTRA PUT: conn #1 P, its cookie is empty: nothing was taken with it
''', said)
        self.assertEqual(said.count('refcnt: EXTRA PUT'), 2)

    def test_class(self):
        """The others are counted in plain fashion."""
        said = self.said('tracking', 'classes', 'tidy\n', REFCNT_CLASS='pl*')
        self.assertIn('LEAK: plain, 1 reference taken by new', said)
        self.assertNotIn('conn', said)
        self.assertEqual(self.said('tracking', 'classes', 'tidy\n', REFCNT_CLASS='none'), '')

    def test_memory(self):
        """Where it is used up, objects are counted only, and that is said; nobody is accused."""
        said = self.said('tracking', 'many', 'released 80000\ntidy\n', REFCNT_MEMORY='2')
        self.assertRegex(said, r'^refcnt: not complete: \d+ objects were not kept \(REFCNT_MEMORY\)$')
        said = self.said('tracking', 'many', 'released 80000\ntidy\n')
        self.assertEqual(said.splitlines()[0], 'refcnt: left at exit: 1 object, 2 references')

    def test_log(self):
        """More operations and references than an object's log has room for: as many, in each mode, and no fault."""
        for mode in LEDGER:
            with self.subTest(mode=mode):
                self.assertEqual(self.said(mode, 'busy', 'count 10001\ncount 1\nreleased 1\ntidy\n'), '')

    def test_alias_mappings(self):
        """The kernel gives a process so many mappings: the rest of the references is without, which is said twice."""
        said = self.said('alias', 'aliases', 'number 40001, some without 1, count 40001\nreleased 1\ntidy\n')
        self.assertRegex(said, r'^refcnt: no more alias handles beside \d+ \(vm.max_map_count, REFCNT_ALIAS_PAGES\): references '
                               r'from here on are tracked only\nrefcnt: not complete: \d+ references had no alias handle$')

    def test_alias_addresses(self):
        """They come round; what lives keeps its own."""
        self.assertEqual(self.said('alias', 'around', 'number 5 5\ntidy\n', REFCNT_ALIAS_PAGES='64'), '')

    def test_alias_identity(self):
        self.assertEqual(self.said('alias', 'identity', 'equal 0, same 1, number 3, home 1\n' 'number 3\ntidy\n'), '')
        self.assertEqual(self.said('plain', 'identity', 'equal 1, same 1, number 3, home 1\n' 'number 3\n'), '')

    def test_alias_fault(self):
        """Reported, then the handler's that was there before; none of it where the kernel reads for a system call."""
        status, out, said = refcnt_built.run(refcnt_built.program('features.c', 'alias'), 'chained')
        self.assertEqual((status, out), (5, '-1 1\nmine\n'), said)
        self.assertTrue(refcnt_built.plain(said).startswith('refcnt: USE AFTER PUT: conn through handle P, which was given back\n'
                                                            '  now, by thread 1:\n    chained\n    main\n'), said)

    def test_other_thread(self):
        """A reference may be given back by a thread that did not take it."""
        for mode in LEDGER:
            self.assertEqual(self.said(mode, 'other-thread', 'tidy\n'), '')

    def test_signal(self):
        """A report when asked by a signal, and by none that was not named."""
        path = refcnt_built.program('features.c', 'tracking')
        process = live.Process([path, 'asked'], env=live.clean_env(REFCNT_SIGNAL=str(int(signal.SIGUSR2))), pipe=True)
        process.wait_line('asked')
        self.assertTrue(live.wait_until(lambda: 'main' in ''.join(process.errors), 20), ''.join(process.errors))
        process.popen.stdin.write('\n')
        process.popen.stdin.close()
        status, _, text = process.wait()
        self.assertEqual(status, 0, text)
        self.assertTrue(refcnt_built.plain(text).startswith('refcnt: now: 1 object, 2 references\nrefcnt: HELD: conn, 1 reference'),
                        text)
        status, _, text = refcnt_built.run(path, 'asked')
        self.assertEqual(status, 128 + signal.SIGUSR2, text)

    def test_told(self):
        """Exit status, file, the end at the first fault; what is not understood is said."""
        path = refcnt_built.program('misuse.c', 'tracking')
        self.assertEqual(refcnt_built.run(path, 'leak', REFCNT_EXIT_CODE='7')[0], 7)
        self.assertEqual(refcnt_built.run(path, 'not-zero', REFCNT_EXIT_CODE='0')[0], 0)
        self.assertEqual(refcnt_built.run(path, 'extra-put', REFCNT_ABORT='1')[0], 128 + signal.SIGABRT)
        report = live.temp_path('report')
        self.assertEqual(refcnt_built.run(path, 'leak', REFCNT_OUTPUT=str(report))[2], '')
        self.assertIn('refcnt: LEAK: conn', report.read_text())
        said = refcnt_built.run(path, 'extra-put', REFCNT_STACKS='nonsense', REFCNT_MEMORY='-1')[2]
        self.assertIn('refcnt: REFCNT_STACKS=nonsense is not understood and has no effect; it takes auto, fp, unwind or none\n', said)
        self.assertIn('refcnt: REFCNT_MEMORY=-1 is not understood and has no effect; it takes a number from 1 to 1048576\n', said)

    def test_stacks(self):
        """Without frame pointers the unwind tables are asked, and say the same."""
        want = None
        for options in (('-O1', '-g', *refcnt_built.FRAMES), ('-O1', '-g', '-fomit-frame-pointer', '-fno-optimize-sibling-calls')):
            for stacks in ('auto', 'unwind'):
                path = refcnt_built.program('misuse.c', 'tracking', options=options)
                said = refcnt_built.plain(refcnt_built.run(path, 'extra-put', REFCNT_STACKS=stacks)[2])
                want = want or said
                self.assertEqual(said, want, f'{options} {stacks}')
        self.assertEqual(want.count('    extra_put\n    main'), 5)
        # callers of one and the same place, which a walk without frame pointers cannot tell apart
        path = refcnt_built.program('stories.c', 'tracking', options=('-O1', '-g', '-fomit-frame-pointer', '-fno-optimize-sibling-calls'))
        said = refcnt_built.plain(refcnt_built.run(path, 'callee')[2])
        self.assertIn('taken by get, first on #1 (count 1 now) by thread 1\n    find\n    annotate\n    callee\n    main\n', said)

    def test_again(self):
        """An object that begins where one is held: that one was lost."""
        for mode in ('preloaded', 'tracking', 'tracker'):
            said = self.said(mode, 'again', 'tidy\n')
            self.assertTrue(said.startswith('''refcnt: MADE AGAIN: plain #1 P, held, and a new object begins there: freed, or begun twice
  now, by thread 1:
    again
    main
  new, count 1 then, by thread 1, held:
    again
    main
refcnt: left at exit: 1 object, 1 reference
'''), said)

    def test_plugin(self):
        """What a library left that is closed since: its class has a name still, its code has none."""
        plugin, host = live.temp_path('plugin.so'), live.temp_path('host')
        source = refcnt_built.SOURCES / 'plugin.c'
        for words in (['-shared', '-fPIC', *refcnt_built.FRAMES, *refcnt_built.flags('tracking'), source, '-o', plugin,
                       *refcnt_built.libraries('tracking')], ['-DHOST', source, '-o', host]):
            subprocess.run(['gcc', '-w', *map(str, words)], check=True)
        status, out, said = refcnt_built.run(host, plugin)
        self.assertEqual((status, out), (0, 'loaded still: 0\n'), said)
        said = refcnt_built.plain(said)
        self.assertTrue(said.startswith('refcnt: left at exit: 1 object, 1 reference\nrefcnt: LEAK: node, 1 reference taken by new, '
                                        'first on #1 (count 1 now) by thread 1\n    #0 P\n    main'), said)

    def test_preload(self):
        """Off and on, the same file; the one that is not told of stays plain."""
        path = refcnt_built.program('misuse.c', 'shared')
        self.assertEqual(refcnt_built.run(path, 'leak')[2], '')
        self.assertIn('LEAK: conn, 1 reference', refcnt_built.run(path, 'leak', mode='preloaded')[2])


class Healthy(live.LiveTest):
    """8 threads that do nothing wrong are not reported, by anybody."""

    def test_stress(self):
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                path = refcnt_built.program('stress.c', mode, options=('-O2', '-g', *refcnt_built.FRAMES))
                number = MANY if live.REAL else QUICK
                process = live.Process([path, str(number)], env=live.clean_env(
                    **({'LD_PRELOAD': str(refcnt_built.LIBRARY / 'librefcnt-track.so')} if mode == 'preloaded' else {})))
                self.assertEqual(process.wait(1200), (0, 'healthy\n', ''))

    def clean(self, path, number, **env):
        # its shadow memory wants addresses as they are without randomisation, and is not given back: those of aliases come round
        process = live.Process(['setarch', '-R', path, str(number)], env=live.clean_env(REFCNT_ALIAS_PAGES='4096', **env))
        self.assertEqual(process.wait(3000), (0, 'healthy\n', ''))

    def sanitized(self, cc):
        """The library as it is shipped: what it does to the program's objects is seen by its locks."""
        for mode in ('plain', 'shared', 'preloaded', 'tracking', 'tracker', 'alias'):
            with self.subTest(mode=mode):
                path = refcnt_built.program('stress.c', mode, cc, more=['-fsanitize=thread'])
                preload = {}
                if mode == 'preloaded':
                    runtime = subprocess.run(['gcc', '-print-file-name=libtsan.so'], capture_output=True, text=True, check=True).stdout
                    first = [os.path.realpath(runtime.strip())] if cc == 'gcc' else []
                    preload = {'LD_PRELOAD': ':'.join([*first, str(refcnt_built.LIBRARY / 'librefcnt-track.so')])}
                self.clean(path, 100 * QUICK if live.REAL and mode != 'alias' else QUICK // 4, **preload)

    def sanitized_within(self, cc, many, *modes):
        """The library's own code is watched as well, in every mode: it is built into the program."""
        sources = [str(s) for s in sorted((live.SOURCE / 'librefcnt').glob('*.c')) if s.name != 'track.c']
        for mode in modes:
            with self.subTest(mode=mode):
                path = live.temp_path(f'stress-{mode}')
                word = mode.upper()
                subprocess.run([live.compiler(cc), '-w', '-O1', '-g', *refcnt_built.FRAMES, '-fsanitize=thread', '-pthread',
                                '-D_GNU_SOURCE', f'-I{live.SOURCE / "include"}', '-DREFCNT_SANITIZER', f'-DREFCNT_MODE=REFCNT_{word}',
                                str(refcnt_built.SOURCES / 'stress.c'), '-o', str(path),
                                *(['-x', 'none', *self.objects(cc, sources)] if mode != 'plain' else [])], check=True)
                self.clean(path, MANY if live.REAL and many else QUICK // 4)

    def objects(self, cc, sources):
        """The library, watched; built once"""
        if cc not in self.watched:
            folder = live.temp_path(f'librefcnt-{cc}')
            folder.mkdir()
            subprocess.run([live.compiler(cc), '-std=gnu11', '-D_GNU_SOURCE', '-DREFCNT_LIBRARY', '-O2', '-g', *refcnt_built.FRAMES,
                            '-fsanitize=thread', f'-I{live.SOURCE / "include"}', '-c', *sources], cwd=folder, check=True)
            self.watched[cc] = [str(path) for path in sorted(folder.glob('*.o'))]
        return self.watched[cc]

    watched = {}

    def test_thread_sanitizer_within(self):
        self.sanitized_within('gcc', True, 'plain', 'shared', 'tracking', 'tracker', 'checked')

    def test_thread_sanitizer_within_alias(self):
        self.sanitized_within('gcc', True, 'alias')

    def test_thread_sanitizer_within_clang(self):
        self.sanitized_within('clang', False, 'plain', 'shared', 'tracking', 'tracker', 'checked', 'alias')

    def test_thread_sanitizer(self):
        self.sanitized('gcc')

    def test_thread_sanitizer_clang(self):
        self.sanitized('clang')

    def test_stress_fork(self):
        """Forks in the middle of other threads' operations: no lock is left locked in the child."""
        path = refcnt_built.program('forks.c', 'tracking')
        for mode in ('tracking', 'alias'):
            path = refcnt_built.program('forks.c', mode)
            self.assertEqual(refcnt_built.run(path), (0, 'all children ended\n', ''))


if __name__ == '__main__':
    unittest.main()
