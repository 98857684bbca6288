#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Builds the seeds built-* of tests/fuzz/corpus/scan: the programs of the unit tests of src/probe, and C++ classes.

    scan_seeds.py FOLDER       gcc and clang-14; other compilers, other bytes
"""
import ast
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent / 'unit'
SMALL = ('-shared -nostdlib -fPIC -w -Wl,-z,noseparate-code -Wl,--build-id=none -Wl,--hash-style=gnu -fcf-protection=none '
         '-fno-asynchronous-unwind-tables').split()
CXX = r'''
struct Base { int refs; virtual ~Base(); };
struct Obj : Base { long n; void ref(); void unref(); static Obj *create(); void AddRef(); int Release(); };
Obj::Obj *make();
void Obj::ref() { ++refs; }
void Obj::unref() { if (!--refs) delete this; }
void Obj::AddRef() { __atomic_add_fetch(&refs, 1, 5); }
int Obj::Release() { int left = __atomic_sub_fetch(&refs, 1, 5); if (!left) delete this; return left; }
Base::~Base() {}
Obj *Obj::create() { Obj *o = new Obj; o->refs = 1; return o; }
void *operator new(unsigned long n) { static char pool[256]; return pool + n; }
void operator delete(void *, unsigned long) noexcept {}
'''.replace('Obj::Obj *make();\n', '')
CAMEL = r'''
struct Thing { long n; int useCount; };
extern void *malloc(unsigned long); extern void free(void *);
struct Thing *thingNew(void) { struct Thing *t = malloc(16); if (!t) return 0; t->useCount = 1; return t; }
struct Thing *thingRef(struct Thing *t) { t->useCount++; return t; }
void thingUnref(struct Thing *t) { if (!--t->useCount) free(t); }
void thingSet(struct Thing **slot, struct Thing *t) { if (t) t->useCount++; if (*slot) thingUnref(*slot); *slot = t; }
extern void thing_dispose(struct Thing *t);
__attribute__((noinline)) static void thing_free(struct Thing *t) { thing_dispose(t); free(t); }
void thing_put(struct Thing *t) { if (__atomic_sub_fetch(&t->useCount, 1, 5) == 0) thing_free(t); }
void thing_get(struct Thing *t) { __atomic_add_fetch(&t->useCount, 1, 5); }
int thing_put_and_test(struct Thing *t) { if (--t->useCount) return 0; thing_free(t); return 1; }
'''
# name -> (compiler and flags, the unit test whose program it is, or a source)
BUILT = {
    'overwrite-gcc': ('gcc -O2 -g', 'overwrite'), 'overwrite-clang': ('clang-14 -O1 -g -Dnoipa=', 'overwrite'), 'handing': ('gcc -O2 -g', 'handing'),
    'inner': ('gcc -O2 -g', 'inner'), 'inner-O0': ('gcc -O0 -g', 'inner'), 'inner-clang': ('clang-14 -O2 -g', 'inner'), 'opencoded': ('gcc -O2 -g', 'opencoded'),
    'opencoded-clang': ('clang-14 -O1 -g', 'opencoded'), 'scan': ('gcc -O2', 'scan'), 'scan-debug': ('gcc -O1 -g', 'scan'), 'scan-clang': ('clang-14 -O0 -g', 'scan'),
    'plan': ('gcc -O2 -g', 'plan'), 'cxx': ('g++ -O1 -fno-exceptions', CXX), 'cxx-debug': ('clang++-14 -O1 -g -fno-exceptions', CXX), 'camel': ('gcc -O2 -g', CAMEL),
    'camel-bare': ('gcc -Os', CAMEL),
    'inferred': ('gcc -O2 -Dstatic=', 'inferred'), 'inferred-O0': ('gcc -O0 -Dstatic=', 'inferred')}


def program(test):
    """The first C program of tests/unit/test-probe-TEST.c."""
    text = (TESTS / f'test-probe-{test}.c').read_text()
    literals = re.search(r'static const char \w+\[\] =\n((?:.*\n)*?.*";\n)', text)[1]
    literals = re.sub(r'/\*.*?\*/', '', literals, flags=re.S)
    return ''.join(ast.literal_eval(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', literals))


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, (how, source) in BUILT.items():
        cxx = '++' in how
        text = source if '\n' in source else program(source)
        out = folder / f'built-{name}'
        subprocess.run([*how.split(), *SMALL, '-x', 'c++' if cxx else 'c', '-', '-o', out], input=text, text=True, check=True)
        subprocess.run(['objcopy', '-R', '.comment', '-R', '.note*', '--strip-unneeded' if '-g' not in how else '--wildcard', out], check=True)
        print(f'{out.name}: {out.stat().st_size}')


if __name__ == '__main__':
    main()
