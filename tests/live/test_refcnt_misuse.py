# SPDX-License-Identifier: GPL-2.0-only
"""Every misuse of a reference count in each mode of librefcnt, with the exact report."""
import unittest

import live
import refcnt_built

EXTRA_PUT = '''refcnt: EXTRA PUT: conn #1 P, put after the last reference was given back
  now, by thread 1:
    give
    extra_put
    main
  new, count 1 then, by thread 1:
    make
    extra_put
    main
  get, count 2 then, by thread 1:
    take
    extra_put
    main
  put, count 1 then, by thread 1:
    give
    extra_put
    main
  put, count 0 then, by thread 1:
    give
    extra_put
    main'''
GET_ON_ZERO = '''refcnt: GET ON ZERO: conn #1 P, get after the last reference was given back
  now, by thread 1:
    take
    get_on_zero
    main
  new, count 1 then, by thread 1:
    make
    get_on_zero
    main
  put, count 0 then, by thread 1:
    give
    get_on_zero
    main'''
COUNT_CHANGED = '''refcnt: COUNT CHANGED: conn #1 P, count 2147483647 where 1 was left: by code of another mode, or memory that was written over
  now, by thread 1:
    take
    overflow
    main
  new, count 1 then, by thread 1, held:
    make
    overflow
    main
refcnt: OVERFLOW: conn #1 P, the count saturates; this object is never released
  now, by thread 1:
    take
    overflow
    main
  new, count 1 then, by thread 1, held:
    make
    overflow
    main
refcnt: left at exit: 1 object, 1 reference
refcnt: LEAK: conn, 1 reference {probably}taken by new, first on #1 (count 3221225472 now) by thread 1
    make
    overflow
    main{rival}'''
FOREIGN = '''refcnt: FOREIGN OBJECT: put of P, where no conn was made
  now, by thread 1:
    give
    foreign
    main'''
PUT_AGAIN = '''refcnt: EXTRA PUT: conn #1 P, put after the last reference was given back
  now, by thread 1:
    give
    put_at_home
    main
  new, count 1 then, by thread 1:
    make
    put_at_home
    main
  put, count 0 then, by thread 1:
    give
    put_at_home
    main'''
PUT_AT_HOME = '''refcnt: EXTRA PUT: conn #1 P, {why}
  now, by thread 1:
    give
    put_at_home
    main
  new, count 1 then, by thread 1, held:
    make
    put_at_home
    main'''
FREED = '''refcnt: FREED WHILE HELD: conn #1 P, its memory is given back before its last reference
  now, by thread 1:
    put_after_free
    main
  new, count 1 then, by thread 1, held:
    make
    put_after_free
    main
refcnt: EXTRA PUT: conn #1 P, put after the last reference was given back
  now, by thread 1:
    give
    put_after_free
    main
  new, count 1 then, by thread 1, held{key}:
    make
    put_after_free
    main'''
LEAK = '''refcnt: left at exit: 1 object, 1 reference
refcnt: LEAK: conn, 1 reference {probably}taken by get, first on #1 (count 1 now) by thread 1
    take
    forget
    leak
    main{rival}'''
RIVAL = '\n  if not that, the one taken at\n    make\n    leak\n    main'
FORK = '''refcnt: left at exit: 1 object, 1 reference
refcnt: LEAK: conn, 1 reference taken by get, first on #1 (count 3 now) by thread 1
    take
    forget
    in_fork
    main
refcnt: 2 references that the parent process took before the fork are its own matter'''
THREAD = '''refcnt: left at exit: 1 object, 1 reference
refcnt: LEAK: conn, 1 reference {probably}taken by get, first on #1 (count 1 now) by thread 1 (has ended)
    take
    hold'''
ALIAS = '''refcnt: {what}: conn through handle P, {how}
  now, by thread 1:
    {last}
    {fn}
    main
  the handle was taken by thread 1:
    {first}
    {fn}
    main
  the handle was given back by thread 1:
    give
    {fn}
    main'''
ASAN = '''AddressSanitizer: heap-use-after-free
    conn_{op}
    {last}
    {fn}
    main
freed
    conn_put
    give
    {fn}
    main
previously allocated
    conn_handle_
    conn_{made}
    {first}
    {fn}
    main'''
LSAN = '''LeakSanitizer: detected memory leaks
Direct leak
    conn_handle_
    conn_get
    take
    {of}
Indirect leak
    conn_alloc
    make
    {fn}
    main'''

HOLDERS = '''refcnt: 2 references are held on the object at P
  new by thread 1:
    make
    holders
    main
  get by thread 1:
    take
    holders
    main'''


class Misuse(live.LiveTest):
    """In each mode what is claimed, and where nothing is claimed nothing is said."""
    cc = 'gcc'
    own = ('preloaded', 'tracking', 'tracker')  # one ledger, nothing that tells which reference a put gives back

    def said(self, mode, name, status=0, out=None):
        """-> (what the library said, what the sanitizer said)"""
        path = refcnt_built.program('misuse.c', mode, self.cc)
        have, stdout, text = refcnt_built.run(path, name, mode=mode)
        if status is not None:
            self.assertEqual(have, status, f'{mode} {name}\n{text}')
        if out is not None:
            self.assertEqual(stdout, out, f'{mode} {name}\n{text}')
        if mode != 'checked':
            return refcnt_built.plain(text), ''
        own = '\n'.join(line for line in text.partition('=====')[0].splitlines())
        return refcnt_built.plain(own), refcnt_built.sanitizer(text)

    def check(self, name, ledger, alias, checked, out='', untold=0, alias_out=None, alias_status=0):
        """ledger, alias: the text; checked: the library's and the sanitizer's. untold: operations without a cookie"""
        for mode in ('plain', 'shared'):
            with self.subTest(mode=mode):
                # what plain code does afterwards is its own matter, where memory was freed
                self.assertEqual(self.said(mode, name, None)[0].replace('free(): double free detected in tcache 2', ''), '')
        for mode in self.own:
            with self.subTest(mode=mode):
                more = f'\nrefcnt: {untold} operations without a cookie on these objects' if untold and mode == 'tracker' else ''
                self.assertEqual(self.said(mode, name, out=out)[0], ledger + more)
        with self.subTest(mode='alias'):
            self.assertEqual(self.said('alias', name, alias_status, out if alias_out is None else alias_out)[0], alias)
        with self.subTest(mode='checked'):
            self.assertEqual(self.said('checked', name, None), checked)

    def test_leak(self):
        self.check('leak', LEAK.format(probably='probably ', rival=RIVAL), LEAK.format(probably='', rival=''),
                   (LEAK.format(probably='', rival=''), LSAN.format(of='forget\n    leak\n    main', fn='leak')), untold=2)

    def test_extra_put(self):
        alias = ALIAS.format(what='EXTRA PUT', how='a put of what was given back', last='give', first='make', fn='extra_put')
        self.check('extra-put', EXTRA_PUT, alias,
                   ('', ASAN.format(op='put', made='alloc', last='give', first='make', fn='extra_put')))

    def test_use_after_put(self):
        alias = ALIAS.format(what='USE AFTER PUT', how='which was given back', last='look', first='take', fn='use_after_put')
        self.check('use-after-put', '', alias,
                   ('', ASAN.format(op='number', made='get', last='look', first='take', fn='use_after_put')),
                   out='number 7\n', alias_out='', alias_status=139)

    def test_get_on_zero(self):
        alias = ALIAS.format(what='USE AFTER PUT', how='a get through what was given back', last='take', first='make',
                             fn='get_on_zero')
        self.check('get-on-zero', GET_ON_ZERO, alias,
                   ('', ASAN.format(op='get', made='alloc', last='take', first='make', fn='get_on_zero')))

    def test_overflow(self):
        """Saturated in every mode, and never released. The program sets the count itself, 2^31 gets take their time: that is
        reported as well. What is left at exit is the object and the reference that nobody gave back."""
        ledger = COUNT_CHANGED.format(probably='probably ',
                                      rival='\n  if not that, the one taken at\n    take\n    overflow\n    main')
        exact = COUNT_CHANGED.format(probably='', rival='')
        stack = '    make\n    overflow\n    main'
        leaks = f'LeakSanitizer: detected memory leaks\nDirect leak\n    conn_handle_\n    conn_alloc\n{stack}\n' \
                f'Indirect leak\n    conn_alloc\n{stack}'
        saturated = 'count 0xc0000000\ncount 0xc0000000, released 0\n'
        self.check('overflow', ledger, exact, (exact, leaks), out=saturated, untold=4)
        for mode in ('plain', 'shared', 'checked'):
            with self.subTest(mode=mode):
                self.said(mode, 'overflow', None, saturated)

    def test_foreign(self):
        self.check('foreign', FOREIGN, FOREIGN,
                   (FOREIGN, 'AddressSanitizer: attempting free\n    conn_put\n    give\n    foreign\n    main'))

    def test_put_after_free(self):
        self.check('put-after-free', FREED.format(key=''), FREED.format(key=', this reference'),
                   (FREED.format(key=', this reference'), ''))

    def test_put_at_home(self):
        """It is nobody's reference: refused where references have handles; elsewhere it is the same address, and the put of the
        reference is one too many."""
        home = PUT_AT_HOME.format(why='by the address that all holders have in common (home), which is no reference')
        handle = PUT_AT_HOME.format(why='nothing was taken by this handle or cookie')
        self.check('put-at-home', PUT_AGAIN, home,
                   (handle, 'AddressSanitizer: attempting free\n    conn_put\n    give\n    put_at_home\n    main'),
                   out='released 1\n')

    def test_fork(self):
        """The child's own reference is its leak; what it writes is not its parent's, in shared memory either."""
        out = 'child 0, number 7, count 2\n'
        for mode in ('plain', 'shared', *self.own, 'alias'):
            with self.subTest(mode=mode):
                said = self.said(mode, 'fork', 0, out)[0]
                want = '' if mode in ('plain', 'shared') else FORK
                if mode == 'tracker':
                    want += '\nrefcnt: 2 operations without a cookie on these objects'
                self.assertEqual(said, want)
        with self.subTest(mode='checked'):
            said, leaks = self.said('checked', 'fork', 0)
            self.assertEqual(said, FORK)
            self.assertEqual(leaks, 'LeakSanitizer: detected memory leaks\nDirect leak\n    conn_handle_\n    conn_get\n'
                                    '    take\n    forget\n    in_fork\n    main')

    def test_exit_in_handler(self):
        """It always ends; an operation that was cut is said to be, and whatever is reported is true."""
        for mode in refcnt_built.MODES:
            path = refcnt_built.program('misuse.c', mode, self.cc)
            # LeakSanitizer waits for the heap's lock, which the interrupted thread may have
            without = {'ASAN_OPTIONS': 'detect_leaks=0'} if mode == 'checked' else {}
            for _ in range(live.REAL and 200 or 12):
                with self.subTest(mode=mode):
                    status, _, text = refcnt_built.run(path, 'exit-in-handler', mode=mode, **without)
                    self.assertEqual(status, 0, text)
                    for line in text.splitlines():
                        if line.startswith('refcnt:'):
                            self.assertRegex(line, r'left at exit|not complete|LEAK: conn, 1 reference|without a cookie')

    def test_thread_dies(self):
        """It left its reference in a global: LeakSanitizer takes that for no leak, the library does."""
        self.check('thread-dies', THREAD.format(probably='probably '), THREAD.format(probably=''),
                   (THREAD.format(probably=''), ''), untold=2)


    def test_teardown(self):
        """What is kept to the end is given back by the program's own function, in every mode but plain, before any report."""
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                self.assertEqual(self.said(mode, 'teardown', 0, '' if mode == 'plain' else 'tidy, released 1\n'), ('', ''))

    def test_holders(self):
        """Who holds it, asked by either reference; where the mode has handles, which is whose."""
        for mode in refcnt_built.MODES:
            exact = int(mode in ('checked', 'alias'))
            known = f'holder: first 1, exact {exact}, handle {exact}, frames 1\n' \
                    f'holder: first 0, exact {exact}, handle {exact}, frames 1\nholders 2\n'
            want = {'plain': ('holders -1\n', ''),
                    'shared': ('holders -1\n', 'refcnt: nothing is known of the object at P')}.get(mode, (known, HOLDERS))
            with self.subTest(mode=mode):
                self.assertEqual(self.said(mode, 'holders', 0, want[0]), (want[1], ''))


class MisuseClang(Misuse):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
