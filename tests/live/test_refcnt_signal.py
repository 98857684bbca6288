# SPDX-License-Identifier: GPL-2.0-only
"""Signals that come into librefcnt's operations: their handlers exit, get and put, or fork, at every instruction."""
import platform
import unittest

import live
import refcnt_built

HELD = '''refcnt: LEAK: conn, 1 reference {probably}taken by new, first on #1 (count {count} now) by thread 1
    make
    main'''
BEFORE = 'refcnt: left at exit: 1 object, 1 reference\n' + HELD
INSIDE = '''refcnt: left at exit: 0 objects, 0 references
refcnt: not complete: the program ended inside of an operation, its objects are left out'''
BETWEEN = 'refcnt: left at exit: 1 object, 2 references\n' + HELD + '''
refcnt: LEAK: conn, 1 reference {probably}taken by get, first on #1 (count {count} now) by thread 1
    take
    stepped
    main'''
COOKIES = '\nrefcnt: {} operations without a cookie on these objects'


class Signals(live.LiveTest):
    maxDiff = 4000
    cc = 'gcc'

    def setUp(self):
        if platform.machine() != 'x86_64':
            self.skipTest('the single step is set as x86-64 has it')

    def run_one(self, mode, *words):
        """-> (status, stdout, what the library said)"""
        path = refcnt_built.program('stepped.c', mode, self.cc)
        # LeakSanitizer waits for the heap's lock, which the interrupted thread may have
        status, out, text = refcnt_built.run(path, *map(str, words), mode=mode, ASAN_OPTIONS='detect_leaks=0')
        return status, out, refcnt_built.plain(text)

    def steps(self, mode, how='exit'):
        """Instructions that there are when nothing is done in the handler."""
        status, out, _ = self.run_one(mode, how, 10**9, 0)
        self.assertEqual(status, 0, out)
        return int(out.split()[1].rstrip(','))

    def test_exit(self):
        """exit(3) in a handler always ends the program, with the report of that moment: before the get or after the put, while
        the object is held by two, or that it was inside of an operation and leaves the object out. In this order."""
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                steps = self.steps(mode)
                seen = []
                for n in range(1, steps, 7 if live.REAL else steps // 30 + 1):
                    status, out, said = self.run_one(mode, 'exit', n, 0)
                    self.assertEqual((status, out), (0, ''), f'{n}\n{said}')
                    if not seen or seen[-1] != said:
                        seen.append(said)
                if mode in ('plain', 'shared'):
                    self.assertEqual(seen, [''])
                    continue
                exact = mode in ('checked', 'alias')

                def told(text, count, probably, cookies):
                    more = COOKIES.format(cookies) if mode == 'tracker' else ''
                    return text.format(count=count, probably='' if exact else probably) + more
                # after a put which get it gave back is not certain; the first pair of the two has been
                before, between, after = told(BEFORE, 1, 'probably ', 2), told(BETWEEN, 2, 'probably ', 3), \
                    told(BEFORE, 1, 'probably ', 4)
                self.assertEqual(seen, [before, INSIDE, between, INSIDE, after])

    def test_work(self):
        """Gets and puts of a handler count, wherever it came, wait for nobody, and those that could not be noted are told."""
        for mode in refcnt_built.MODES:
            if mode == 'checked':  # a handle is memory of malloc(3), which handlers must not call
                continue
            for how in ('work', 'work-cold'):
                with self.subTest(mode=mode, how=how):
                    status, out, said = self.run_one(mode, how, 1, 1)
                    self.assertEqual(status, 0, said)
                    self.assertRegex(out, r'^steps \d+, count 1\n$')
                    if mode in ('plain', 'shared'):
                        self.assertEqual(said, '')
                        continue
                    begin = BEFORE.format(count=1, probably='' if mode == 'alias' else 'probably ')
                    self.assertEqual(said[:len(begin)], begin)
                    self.assertRegex(said[len(begin):], r'^(\nrefcnt: \d+ operations without a cookie on these objects)?'
                                                        r'\nrefcnt: not complete: \d{4,} operations of signal handlers inside of '
                                                        r'operations$')

    def test_fork(self):
        """A child that is made in the middle of an operation does not wait for locks that nobody gives back."""
        for mode in refcnt_built.MODES:
            if mode == 'checked':
                continue
            for how in ('fork', 'fork-cold'):
                with self.subTest(mode=mode, how=how):
                    every = 1 + self.steps(mode, how.replace('fork', 'exit')) // (400 if live.REAL else 20)
                    status, out, said = self.run_one(mode, how, 1, every)
                    self.assertEqual(status, 0, out + said)
                    self.assertRegex(out, r'^steps \d+, count 1\n$')
                    self.assertNotRegex(said, 'not complete|EXTRA|CHANGED')


class SignalsClang(Signals):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
