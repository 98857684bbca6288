# SPDX-License-Identifier: GPL-2.0-only
"""Healthy programs that do what is rare, in each mode: librefcnt counts right, says what it cannot do, and nothing else."""
import subprocess
import unittest

import live
import refcnt_built

MODES = ('plain', 'shared', 'preloaded', 'tracking', 'tracker', 'alias')
# rbp is what the program likes, and the stacks are asked of the unwind tables
OPTIONS = ('-O1', '-g', '-fomit-frame-pointer', '-fno-optimize-sibling-calls')
INNER = 'refcnt: part has no handles, it is tracked only: its objects are in memory of the program\'s (init); alloc makes them'
NO_ROOM = 'refcnt: no room for an object of 2097172 bytes with alias handles (REFCNT_ALIAS_PAGES, ulimit -f): such ones are ' \
          'tracked only\nrefcnt: not complete: 1 reference had no alias handle'


class Odd(live.LiveTest):
    def check(self, name, out, alias='', alias_out=None, **env):
        """out, alias_out: stdout; alias: what is said in mode alias, all others have nothing to say"""
        for mode in MODES:
            with self.subTest(mode=mode):
                path = refcnt_built.program('odd.c', mode, options=OPTIONS)
                status, have, text = refcnt_built.run(path, name, mode=mode, **env)
                want = alias_out if mode == 'alias' and alias_out is not None else out
                self.assertEqual((status, have), (0, want), text[:4000])
                self.assertEqual(refcnt_built.plain(text), alias if mode == 'alias' else '')

    def test_inner(self):
        """Objects in an object that has handles, at its begin and behind: each has its own count, at the one address of all."""
        self.check('inner', 'numbers 1 2, counts 2 3 1\nparts 2, wholes 0\nparts 2, wholes 1\n', INNER)

    def test_closed(self):
        """A daemon closes all descriptors, and its next file has the number of one of them."""
        out = 'numbers 5 6, other address {}\nthe program\'s own file\n'
        self.check('closed', out.format(0), '', out.format(1))

    def test_large(self):
        """Of hundreds of pages, of two sizes in turn, in few addresses: memory is given back, and found as zeroes."""
        self.check('large', 'wholes 40, not zero 0\n', REFCNT_ALIAS_PAGES=str(4 * 1100))

    def test_too_large(self):
        self.check('too-large', 'none 1 1 1\n')

    def test_errno(self):
        """Of an operation that succeeds it stays."""
        self.check('errno', 'errno 77\n')

    def test_coroutine(self):
        """A stack of the program's own, and no frame pointer in it."""
        self.check('coroutine', 'wholes 1\n')

    def test_limited(self):
        """ulimit -f kills who makes a larger file; what has no room is without handles, which is said."""
        out = 'number 3, other address {}\nwholes 2\n'
        self.check('limited', out.format(0), NO_ROOM, out.format(1))

    def test_around(self):
        """Addresses come round while threads give them back."""
        self.check('around', 'count 1\n', REFCNT_ALIAS_PAGES='32')

    def test_steal(self):
        self.check('steal', 'none 1, count 1\nwholes 1\n')

    def test_asked(self):
        """Questions, reports of faults and work in four threads: all are answered."""
        for mode in MODES:
            with self.subTest(mode=mode):
                path = refcnt_built.program('odd.c', mode, options=OPTIONS)
                status, out, _ = refcnt_built.run(path, 'asked', mode=mode)
                self.assertEqual((status, out), (0, 'answered\n'))

    def test_moved(self):
        """The report's file is where it was when the program began."""
        folder = live.temp_path('folder')
        folder.mkdir()
        subprocess.run([str(refcnt_built.program('odd.c', 'tracking', options=OPTIONS)), 'moved'], cwd=folder, check=True,
                       env=live.clean_env(REFCNT_OUTPUT='report'))
        self.assertIn('refcnt: LEAK: whole, 1 reference', (folder / 'report').read_text())

    def test_no_memory(self):
        """Addresses are limited: what cannot be kept is said, and the program does what it does."""
        for mode in ('tracking', 'alias'):
            with self.subTest(mode=mode):
                path = refcnt_built.program('odd.c', mode, options=OPTIONS)
                done = subprocess.run(['sh', '-c', f'ulimit -v 30000; exec {path} inner'], capture_output=True, text=True,
                                      env=live.clean_env(), check=False)
                self.assertEqual((done.returncode, done.stdout), (0, 'numbers 1 2, counts 2 3 1\nparts 2, wholes 0\nparts 2, wholes 1\n'),
                                 done.stderr)
                said = refcnt_built.plain(done.stderr)
                self.assertIn('refcnt: no memory for stacks: none is kept', said)
                if mode == 'alias':
                    self.assertIn('refcnt: no alias handles: ', said)


if __name__ == '__main__':
    unittest.main()
