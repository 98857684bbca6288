# SPDX-License-Identifier: GPL-2.0-only
"""librefcnt as what is compiled and linked: no warnings, no cost, no mixed modes, forgotten results and accesses."""
import collections
import itertools
import re
import subprocess
import unittest

import live
import refcnt_built
from refcnt_built import LIBRARY, SOURCES

STRICT = ['-Wall', '-Wextra', '-Wconversion', '-pedantic', '-Werror']
# preloaded is compiled as shared is
COMPILED = [mode for mode in refcnt_built.MODES if mode != 'preloaded']
UNLISTED = 'refcnt: node has no handles, it is tracked only: REFCNT_STRUCT tells no fields of it\n'
CHANGED = '''refcnt: COUNT CHANGED: node #1 P, count 2 where 1 was left: by code of another mode, or memory that was written over
  now, by thread 1:
    main
  new, count 1 then, by thread 1, held:
    main'''
# of zero.c
FUNCTIONS = ('only_get', 'only_put', 'only_get_not_zero', 'pair', 'walk', 'four')
LANGUAGES = (('c', 'c11'), ('c++', 'c++17'))


def compiled(cc, *arguments):
    """-> (status, what the compiler said)"""
    tool = live.compiler(cc)
    if not tool:
        raise unittest.SkipTest(f'{cc} is not installed')
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def instructions(path):
    """{function: [instruction]}, without nops; where a branch goes is the number of an instruction."""
    text = subprocess.run(['objdump', '-dr', '--no-show-raw-insn', str(path)], capture_output=True, text=True, check=True).stdout
    functions, number = {}, {}
    for line in text.splitlines():
        head = re.match(r'[0-9a-f]+ <(\w+)>:$', line)
        code = re.match(r' +([0-9a-f]+):\t(.*)$', line)
        relocation = re.match(r'\t+[0-9a-f]+: (R_\S+)\s+([\w.]+)', line)
        if head:
            name, number = head[1], {}
            functions[name] = []
        elif relocation:
            functions[name][-1][2] = relocation[2]
        elif code:
            number[int(code[1], 16)] = len(functions[name])
            words = re.sub(r'\s+', ' ', code[2]).strip()
            if not re.match(r'(data16 |cs )*nop|xchg %ax,%ax$', words):
                functions[name].append([words, number, None])
    done = {}
    for name, code in functions.items():
        done[name] = []
        for words, places, target in code:
            branch = re.match(r'(j\w+|call) ([0-9a-f]+) <', words)
            if branch:
                words = f'{branch[1]} {target or places.get(int(branch[2], 16), "?")}'
            done[name].append(words)
    return done


class Compile(unittest.TestCase):
    maxDiff = 4000
    cc = 'gcc'

    def setUp(self):
        refcnt_built.need_library()

    def test_clean(self):
        """As strict as it gets, in each mode and language; what was built works."""
        more = {'plain': [[], ['-DREFCNT_SHOW_COUNTS'], ['-DREFCNT_SHOW_COUNTS', '-DREFCNT_NO_MARKS']], 'shared': [['-flto']]}
        for mode in refcnt_built.MODES:
            for language, std in LANGUAGES:
                for extra in more.get(mode, [[]]):
                    for level in ('-O0', '-O2'):
                        with self.subTest(mode=mode, std=std, level=level, extra=extra):
                            if self.cc == 'clang' and '-flto' in extra:
                                continue
                            path = live.temp_path('clean')
                            status, said = compiled(self.cc, '-x', language, f'-std={std}', level, *extra, *STRICT,
                                                    *refcnt_built.flags(mode), SOURCES / 'clean.c', '-x', 'none', '-o', path,
                                                    *refcnt_built.libraries(mode), *(['-lstdc++'] if language == 'c++' else []))
                            self.assertEqual((status, said), (0, ''))
                            status, _, said = refcnt_built.run(path, mode=mode, ASAN_OPTIONS='detect_leaks=0')
                            self.assertEqual(status, 0, said)

    def test_classes(self):
        """What is C++ alone: made by new, counted by init, deleted by the release function."""
        note = "refcnt: conn has no handles, it is tracked only: its objects are in memory of the program's (init); alloc makes " \
               'them\n'
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                path = live.temp_path('classes')
                status, said = compiled(self.cc, '-x', 'c++', '-std=c++17', '-O1', *STRICT, '-Wold-style-cast', *refcnt_built.flags(mode),
                                        SOURCES / 'classes.cc', '-x', 'none', '-o', path, *refcnt_built.libraries(mode), '-lstdc++')
                self.assertEqual((status, said), (0, ''))
                self.assertEqual(refcnt_built.run(path, mode=mode), (0, 'one 5\n', note if mode in ('checked', 'alias') else ''))

    def zero(self, level, *words):
        path = live.temp_path('zero.o')
        status, said = compiled(self.cc, level, *words, '-c', SOURCES / 'zero.c', '-o', path)
        self.assertEqual(status, 0, said)
        return instructions(path)

    def same(self, level, ours, theirs):
        have, want = self.zero(level, '-DOURS', f'-I{live.SOURCE / "include"}', *ours), self.zero(level, *theirs)
        for name in FUNCTIONS:
            self.assertGreater(len(want[name]), 3)
            self.assertEqual(have[name], want[name], f'{name} {level}')
            self.assertTrue(any('lock' in code or 'call' in code for code in want[name]), want[name])

    def test_zero_cost(self):
        """Instruction by instruction what a counter written by hand compiles to: without marks, and with them, nops apart,
        as clang has it. gcc's scheduler moves nothing over any asm, were it empty: the same with a bare nop by hand."""
        for level in ('-O2', '-O3'):
            with self.subTest(level=level):
                self.same(level, ['-DREFCNT_NO_MARKS'], [])
                self.same(level, [], ['-DNOPS'])
                if self.cc == 'clang':
                    self.same(level, [], [])

    def test_zero_cost_marked(self):
        """With marks, whatever their place: not one access, branch, locked instruction or call more."""
        def work(code):
            kinds = collections.Counter()
            for words in code:
                name = words.split()[0]
                kinds['locked'] += name == 'lock'
                kinds['branch'] += name.startswith('j') and name != 'jmp'
                kinds['call'] += name == 'call' or 'node_destroy' in words
                kinds['access'] += bool(re.search(r'[(].*[)]', words)) and name not in ('lea', 'lock')
            return kinds
        have, want = self.zero('-O2', '-DOURS', f'-I{live.SOURCE / "include"}'), self.zero('-O2')
        for name in FUNCTIONS:
            self.assertEqual(work(have[name]), work(want[name]), name)
            self.assertLessEqual(abs(len(have[name]) - len(want[name])), 1, name)

    def part(self, mode, main, *flags):
        """An object file of this mode"""
        path = live.temp_path('mixed.o')
        status, said = compiled(self.cc, *refcnt_built.flags(mode), *(['-DMAIN'] if main else []), *flags, '-c',
                                SOURCES / 'mixed.c', '-o', path)
        self.assertEqual(status, 0, said)
        return path

    def test_mixed(self):
        """No two modes link, and the linker says what is wrong; one does."""
        linkers = [[], ['-fuse-ld=lld']] + ([['-flto']] if self.cc == 'gcc' else [])
        for flags in linkers:
            mains = {mode: self.part(mode, True, *flags) for mode in COMPILED}
            others = {mode: self.part(mode, False, *flags) for mode in COMPILED}
            for one, other in itertools.product(COMPILED, COMPILED):
                if flags and COMPILED[0] not in (one, other):
                    continue
                with self.subTest(one=one, other=other, flags=flags):
                    address = ['-fsanitize=address'] if 'checked' in (one, other) else []
                    status, said = compiled(self.cc, *flags, *address, mains[one], others[other], '-o',
                                            live.temp_path('mixed'), *refcnt_built.libraries('shared'))
                    if one == other:
                        self.assertEqual(status, 0, said)
                    else:
                        self.assertNotEqual(status, 0)
                        self.assertIn('refcnt_modes_are_mixed__build_every_file_with_one_REFCNT_MODE', said)

    def test_mixed_library(self):
        """A shared library of another mode links; what it does to a count behind our back is said."""
        library = live.temp_path('libother.so')
        status, said = compiled(self.cc, *refcnt_built.flags('plain'), '-shared', '-fPIC', SOURCES / 'mixed.c', '-o', library)
        self.assertEqual(status, 0, said)
        for mode in refcnt_built.MODES:
            with self.subTest(mode=mode):
                path = live.temp_path('mixed')
                status, said = compiled(self.cc, '-g', *refcnt_built.FRAMES, *refcnt_built.flags(mode), '-DMAIN',
                                        SOURCES / 'mixed.c', library, '-o', path, *refcnt_built.libraries(mode))
                self.assertEqual(status, 0, said)
                status, _, said = refcnt_built.run(path, mode=mode, ASAN_OPTIONS='detect_leaks=0')
                more = UNLISTED if mode == 'checked' else ''
                if mode in ('plain', 'shared'):  # they do the same to it
                    self.assertEqual((status, said), (0, ''))
                    continue
                self.assertEqual(refcnt_built.plain(said), more + CHANGED)

    def test_forgotten(self):
        """What must not be forgotten does not compile: the reference, the mode, the way to a field, a sanitizer."""
        def refused(text, words, *flags):
            path = live.temp_path('forgotten.c')
            path.write_text('#include <refcnt/refcnt.h>\n'
                            '#define CONN_FIELDS(field, array) field(conn, int, fd)\n'
                            'REFCNT_STRUCT(conn, CONN_FIELDS);\n'
                            'static void conn_release(struct conn *c) { conn_dealloc(c); }\n'
                            'REFCNT_STRUCT_DEFINE(conn, conn_release);\n' + text)
            status, said = compiled(self.cc, '-Wall', '-Werror', f'-I{live.SOURCE / "include"}', *flags, '-c', path, '-o', '/dev/null')
            if words:
                self.assertNotEqual(status, 0, text)
                self.assertRegex(said, words)
            else:
                self.assertEqual(status, 0, said)
        checked = '-DREFCNT_MODE=REFCNT_CHECKED'
        refused('void f(struct conn *c) { conn_get(c); }', 'unused-result')
        refused('int f(struct conn *c) { return c->fd; }', '')
        refused('int f(struct conn *c) { return c->fd; }', "no member named .fd.", checked, '-fsanitize=address')
        refused('int f(struct conn *c) { return conn_fd(c); }', '', checked, '-fsanitize=address')
        refused('', 'REFCNT_CHECKED is for -fsanitize=address', checked)
        refused('', 'REFCNT_MODE is one of', '-DREFCNT_MODE=TRACKING')

    def test_exports(self):
        """Nothing of the library's own is seen, and all of it has a version."""
        text = subprocess.run(['nm', '-D', '--defined-only', str(LIBRARY / 'librefcnt.so')], capture_output=True, text=True,
                              check=True).stdout
        names = [line.split()[-1] for line in text.splitlines() if ' A ' not in line]
        self.assertTrue(names)
        for name in names:
            self.assertRegex(name, r'^refcnt_\w+@@REFCNT_1\.0$')
        needed = re.findall(r'NEEDED.*\[(.*)\]', subprocess.run(['readelf', '-dW', str(LIBRARY / 'librefcnt.so')], text=True,
                                                                capture_output=True, check=True).stdout)
        self.assertEqual([name for name in needed if not name.startswith(('libc.', 'ld-linux'))], [])

    def test_static(self):
        """The archive serves as well."""
        path = live.temp_path('static')
        status, said = compiled(self.cc, '-O1', '-g', *refcnt_built.FRAMES, *refcnt_built.flags('tracking'), '-w', SOURCES / 'misuse.c',
                                LIBRARY / 'librefcnt.a', '-o', path)
        self.assertEqual(status, 0, said)
        _, _, said = refcnt_built.run(path, 'extra-put')
        self.assertIn('refcnt: EXTRA PUT: conn #1', said)


class CompileClang(Compile):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
