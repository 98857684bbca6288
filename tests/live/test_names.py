# SPDX-License-Identifier: GPL-2.0-only
"""Functions as C++ and Rust call them, in a SPEC and in probe definitions, with debug information and stripped of it."""
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import unittest

import live

RUST = """
pub mod shapes {
    pub struct Node { pub pad: u64, pub refs: i32 }
    impl Node {
        #[inline(never)] pub fn retain(&mut self) { self.refs += 1; std::hint::black_box(self); }
        #[inline(never)] pub fn release(&mut self) { self.refs -= 1; std::hint::black_box(self); }
    }
    pub struct Other { pub refs: i32 }
    impl Other { #[inline(never)] pub fn retain(&mut self) { self.refs += 2; std::hint::black_box(self); } }
    pub trait Held { fn hold(&mut self); }
    impl Held for Node { #[inline(never)] fn hold(&mut self) { self.refs += 1; self.pad += 7; std::hint::black_box(self); } }
}
#[inline(never)] pub fn make<T>(value: T) -> *mut T { Box::into_raw(Box::new(value)) }
fn main() {
    use shapes::Held;
    for i in 0..4 {
        let node = unsafe { &mut *make(shapes::Node { pad: i, refs: 1 }) };
        let mut other = shapes::Other { refs: 1 };
        node.retain(); node.hold(); other.retain(); node.release(); node.release();
        if i != 2 { node.release(); }
    }
}
"""
# rustc's schemes of names, and what chooses them
SCHEMES = {'v0': ['-C', 'symbol-mangling-version=v0'], 'legacy': ['-Z', 'unstable-options', '-C', 'symbol-mangling-version=legacy']}


def rust(scheme, debug):
    """One program of each; skipped where there is no rustc."""
    rustc = shutil.which('rustc')
    if not rustc:
        raise unittest.SkipTest('rustc is not installed')
    target = live.temp() / f'names-{scheme}-{debug}'
    if not target.exists():
        source = live.temp() / f'{target.name}.rs'
        source.write_text(RUST)
        subprocess.run([rustc, '-O', '-C', f'debuginfo={2 if debug else 0}', *SCHEMES[scheme], '--crate-name', 't', source, '-o', target],
                       check=True, cwd=live.temp(), env=live.clean_env(RUSTC_BOOTSTRAP='1', HOME=pwd.getpwuid(os.getuid()).pw_dir), capture_output=True)
        if not debug:
            subprocess.run(['strip', '--strip-debug', target], check=True)
    return target

LIBRARY = """
#include <stdlib.h>
struct obj { int refs, pad[7]; };
struct obj *obj_new(void) { struct obj *o = calloc(1, sizeof(*o)); o->refs = 1; return o; }
struct obj *obj_get(struct obj *o) { o->refs++; return o; }
void obj_put(struct obj *o) { if (!--o->refs) free(o); }
"""
# two functions that do the same, until one of them says no
USER = """
struct obj;
struct obj *obj_new(void), *obj_get(struct obj *);
void obj_put(struct obj *);
static __attribute__((noipa)) int odd(int i) { return i % 5 == 4; }
static __attribute__((noipa)) int forgets(struct obj *o, int i) { obj_get(o); if (odd(i)) return 1; obj_put(o); return 0; }
static __attribute__((noipa)) int keeps_order(struct obj *o, int i) { obj_get(o); int r = odd(i); obj_put(o); return r; }
int main(void)
{
    for (int i = 0; i < 100; i++) { struct obj *o = obj_new(); forgets(o, i); keeps_order(o, i); obj_put(o); }
    return 0;
}
"""


def offsets(path, pattern):
    """In the file, of the functions whose demangled name fits, as nm, c++filt and the program headers say."""
    loads = [[int(word, 16) for word in line.split()[1:5]]
             for line in subprocess.run(['readelf', '-lW', path], check=True, capture_output=True, text=True).stdout.splitlines() if line.split()[:1] == ['LOAD']]
    out = subprocess.run(['nm', '-C', path], check=True, capture_output=True, text=True).stdout
    found = [int(line.split()[0], 16) for line in out.splitlines() if re.search(f' [tTwW] {pattern}', line)]
    return sorted(a - start + offset for a in found for offset, start, _, size in loads if start <= a < start + size)


def minimal(path):
    """As Fedora ships: no .symtab and no debug information, its functions' names packed into .gnu_debugdata."""
    target, mini = pathlib.Path(f'{path}-minimal'), pathlib.Path(f'{path}-mini')
    if not target.exists():
        subprocess.run(['objcopy', '--strip-debug', path, mini], check=True)
        subprocess.run(['xz', '--keep', '--force', mini], check=True)
        subprocess.run(['objcopy', '--strip-all', f'--add-section=.gnu_debugdata={mini}.xz', path, target], check=True)
    return target


def exported(path):
    """No .symtab, no debug information: what .dynsym has."""
    target = pathlib.Path(f'{path}-exported')
    subprocess.run(['strip', '-o', target, path], check=True)
    return target


def sections(path):
    out = subprocess.run(['readelf', '-SW', path], check=True, capture_output=True, text=True).stdout
    return {name for name in ('.symtab', '.debug_info', '.gnu_debugdata', '.dynsym') if f' {name} ' in out}


class Names(live.LiveTest):
    def shown(self, path, name):
        run = live.call('probe', 'show', '-x', str(path), name)
        self.assertEqual(run.status, 0, str(run))
        return sorted(int(line.rsplit(':', 1)[1].split()[0], 16) for line in run.stdout.splitlines())

    def test_cxx_in_a_spec(self):
        live.need_engine()
        for debug in (True, False):
            path = live.program('cxx', 'gcc', ('-g', '-O0') if debug else ('-O0',))
            run = live.trace('-P', 'type=node new=scene::Node::create get=Node::ref put=scene::Node::unref()', '--', path)
            truth = live.truth(run.stdout)
            types = {t['name']: t for t in run.findings['types']}
            self.assert_clean_trust(run)
            self.assertEqual(types['node']['get'], sum(n for (_, op), n in truth.counts.items() if op == 'get'), str(run))
            self.assert_guilty(run, truth.guilty)

    def test_rust_in_a_spec(self):
        live.need_engine()
        for scheme in SCHEMES:
            for debug in (True, False):
                path = rust(scheme, debug)
                run = live.trace('-P', 'type=node new=t::make get=shapes::Node::retain,Node::hold put=t::shapes::Node::release', '--', path)
                self.assert_clean_trust(run)
                node = run.findings['types'][0]
                self.assertEqual((node['new'], node['get'], node['put'], node['live']), (4, 8, 11, 1), f'{scheme} {debug} {run}')
                self.assertEqual([f['kind'] for f in run.findings['findings']], ['leak'], str(run))

    def test_rust_in_definitions(self):
        for scheme in SCHEMES:
            for debug in (True, False):
                path = rust(scheme, debug)
                for name in ('t::shapes::Node::retain', 'Node::retain', 'shapes::N*::retain'):
                    self.assertEqual(self.shown(path, name), offsets(path, r'<?t(\[[0-9a-f]+\])?::shapes::Node>?::retain'), f'{scheme} {debug} {name}')
                listed = live.call('probe', 'funcs', str(path), '*hold')
                self.assertIn('Node as t::shapes::Held>::hold', listed.stdout, f'{scheme} {debug} {listed}')

    def test_stripped_cxx_in_a_spec(self):
        """Without .symtab: by .gnu_debugdata, and by .dynsym of a program that exports its functions."""
        live.need_engine()
        whole = live.program('cxx', 'gcc', ('-O0', '-rdynamic'))
        for path, want in ((minimal(whole), {'.gnu_debugdata', '.dynsym'}), (exported(whole), {'.dynsym'}),
                           (minimal(live.program('cxx', 'gcc', ('-O0',))), {'.gnu_debugdata', '.dynsym'})):
            self.assertEqual(sections(path), want)
            run = live.trace('-P', 'type=node new=scene::Node::create get=Node::ref put=scene::Node::unref()', '--', path)
            truth = live.truth(run.stdout)
            node = {t['name']: t for t in run.findings['types']}['node']
            ops = ['get', 'put']
            if '.gnu_debugdata' in want:
                self.assert_clean_trust(run)
                ops.append('new')
            else:
                # callers without a name may exist: an exception through a hooked return would break them, and that is said
                self.assertRegex(' '.join(run.findings['trust']['unarmed']), '^_ZN5scene4Node6createEi: its result is needed[^_]*not known$')
                self.assertFalse(run.findings['trust']['complete'])
            for op in ops:
                self.assertEqual(node[op], sum(n for (_, o), n in truth.counts.items() if o == op), f'{path} {op} {run}')
                self.assertTrue(node[op])
            self.assert_guilty(run, truth.guilty)

    def test_stripped_rust_in_a_spec(self):
        live.need_engine()
        for scheme in SCHEMES:
            path = minimal(rust(scheme, False))
            self.assertEqual(sections(path), {'.gnu_debugdata', '.dynsym'})
            run = live.trace('-P', 'type=node new=t::make get=shapes::Node::retain,Node::hold put=t::shapes::Node::release', '--', path)
            self.assert_clean_trust(run)
            node = run.findings['types'][0]
            self.assertEqual((node['new'], node['get'], node['put'], node['live']), (4, 8, 11, 1), f'{scheme} {run}')

    def test_stripped_definitions(self):
        """Offsets are those that the whole file's symbols have; what is not there is refused by name."""
        whole = live.program('cxx', 'gcc', ('-O0', '-rdynamic'))
        for path in (minimal(whole), exported(whole)):
            for name, pattern in (('scene::Node::ref', r'scene::Node::ref\('), ('Node::unref()', r'scene::Node::unref\('),
                                  ('scene::Node::*ref', r'scene::Node::(un)?ref\(')):
                self.assertEqual(self.shown(path, name), offsets(whole, pattern), f'{path} {name}')
                self.assertTrue(offsets(whole, pattern), pattern)
        for scheme in SCHEMES:
            whole = rust(scheme, False)
            self.assertEqual(self.shown(minimal(whole), 'shapes::Node::retain'), offsets(whole, r'<?t(\[[0-9a-f]+\])?::shapes::Node>?::retain'))
            run = live.call('probe', 'show', '-x', str(exported(whole)), 'shapes::Node::retain')
            self.assertEqual((run.status, run.stdout), (125, ''), str(run))
            self.assertIn('shapes::Node::retain', run.stderr)

    def test_overloads_and_operators(self):
        source = live.temp() / 'overloads.cc'
        source.write_text('namespace ns { struct N { int n; }; void f(N *) { asm(""); } void f(const N *) { asm(""); } void f(int, char *) { asm(""); }\n'
                          'struct S { S &operator<<(int); void operator()(int, char *); }; S &S::operator<<(int) { return *this; }\n'
                          'void S::operator()(int, char *) { } }\nint main() { return 0; }\n')
        for flags in (['-g'], []):
            path = live.temp() / f'overloads{len(flags)}'
            subprocess.run(['g++', *flags, source, '-o', path], check=True)
            for name, pattern in (('ns::f(ns::N*)', r'ns::f\(ns::N\*\)'), ('f(ns::N const*)', r'ns::f\(ns::N const\*\)'), ('ns::f', r'ns::f\('),
                                  ('ns::f(int, *)', r'ns::f\(int'), ('ns::S::operator<<', r'ns::S::operator<<'),
                                  ('S::operator()(int, char*)', r'ns::S::operator\(\)')):
                self.assertEqual(self.shown(path, name), offsets(path, pattern), f'{flags} {name}')
                self.assertTrue(offsets(path, pattern), pattern)

    def test_lambdas_conversions_and_slips(self):
        """What funcs lists can be told as it stands there; a slip in a name with its classes is answered with the nearest."""
        source = live.temp() / 'lambda.cc'
        source.write_text('namespace ns { struct Obj { int n; __attribute__((noinline)) operator int() const { return n; }\n'
                          '__attribute__((noinline)) static int make(int k) { asm(""); return k; } }; }\n'
                          'int main(int c, char **) { ns::Obj o{c}; auto f = [&](int z) __attribute__((noinline)) { asm(""); return z + o.n; };\n'
                          'return f(c) + o + ns::Obj::make(c); }\n')
        for flags in (['-g'], []):
            path = live.temp() / f'lambda{len(flags)}'
            subprocess.run(['g++', '-O1', *flags, source, '-o', path], check=True)
            listed = live.call('probe', 'funcs', str(path), '*').stdout
            for name in ('main::{lambda(int)#1}::operator()', 'ns::Obj::operator int'):
                self.assertIn(f'  {name}(', listed)
                self.assertEqual(self.shown(path, name.replace(' ', '\\ ')), offsets(path, re.escape(name) + r'\('), f'{flags} {name}')
            for slip, name in (('ns::Obj::mkae', 'ns::Obj::make'), ('Obj::mak', 'Obj::make'), ('nss::Obj::make', 'ns::Obj::make')):
                run = live.call('probe', 'show', '-x', str(path), slip)
                self.assertEqual(run.status, 125, str(run))
                self.assertIn(f'did you mean {name}?', run.stderr)
            self.assertIn("'ns::Obj::operator\\ int'", live.call('probe', 'show', '-x', str(path), 'ns::Obj::operator int').stderr)


class Stripped(live.LiveTest):
    """A program without any names: its functions are told apart by its unwind information."""

    def test_guilty_function(self):
        live.need_engine()
        folder = live.temp_path('stripped')
        folder.mkdir()
        for name, text in (('lib.c', LIBRARY), ('user.c', USER)):
            (folder / name).write_text(text)
        for words in (['-shared', '-fPIC', 'lib.c', '-o', 'libobj.so'], ['user.c', '-o', 'user', '-L.', '-lobj', '-Wl,-rpath,$ORIGIN']):
            subprocess.run(['gcc', '-O2', *words], check=True, cwd=folder)
        symbols = {line.split()[2]: int(line.split()[0], 16) for line in
                   subprocess.run(['nm', folder / 'user'], check=True, capture_output=True, text=True).stdout.splitlines() if len(line.split()) == 3}
        subprocess.run(['strip', '-s', folder / 'user'], check=True)
        spec = ['-P', 'type=obj new=obj_new get=obj_get put=obj_put counter=+0:4']
        run = live.trace(*spec, '--', str(folder / 'user'))
        self.assert_clean_trust(run)
        self.assertEqual([(f['kind'], f['objects'], f['guilty']['function'], int(f['guilty']['start'], 16)) for f in run.findings['findings']],
                         [('leak', 20, None, symbols['forgets'])], str(run))
        self.assertGreater(run.findings['findings'][0]['confidence'], 0.9)
        self.assertIn(f'function at {symbols["forgets"]:#x}', run.report)
        # what main() did at three places is one row
        self.assertEqual(run.report.count(f'function at {symbols["main"]:#x}'), 1, run.report)
