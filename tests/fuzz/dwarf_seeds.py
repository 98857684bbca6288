#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Builds the seeds built-* of tests/fuzz/corpus/dwarf and named: what compilers write, and what they seldom do.

    dwarf_seeds.py FOLDER       gcc and clang-14; other compilers, other bytes

asm-*: a unit by the assembler, with each operation of an expression, each kind of constant and pointers of exception frames of
each width.
"""
import pathlib
import subprocess
import sys

C = r'''
struct ref { int counter; };
struct obj { struct obj *next; struct ref refs; unsigned flag:3; char name[8]; double d; };
enum kind { A = -1, B };
typedef struct obj obj_t;
extern void work(void *);
obj_t *global;
static inline __attribute__((always_inline)) void get(struct obj *o) { o->refs.counter++; }
static inline __attribute__((always_inline)) int put(obj_t *o, enum kind k)
{
	int left = --o->refs.counter;
	if (!left) work(o + k);
	return left;
}
__attribute__((noinline)) struct obj *take(struct obj *o, int n, unsigned char c, double d)
{
	struct obj *list[3] = { o, o->next, 0 };
	{
		int deep = n * 2;
		if (n > c) { get(o->next); work(list); n = deep; }
	}
	get(o);
	return put(o, A) + n > d ? o->next : list[n & 1];
}
int both(void *v)
{
	struct obj *o = v;
	get(o);
	global = take(o, 3, 1, 2.0);
	return put(global, B);
}
'''
CXX = r'''
namespace ns {
template <class T> struct P { T *p; int use; P(T *x) : p(x), use(1) {} void get() { ++use; } ~P(); };
struct O { int n; virtual int f(int); };
template <class T> P<T>::~P() { if (!--use) delete p; }
int O::f(int a) { P<O> x(this); x.get(); return a + n; }
}
void free_(ns::O &o) { ns::P<ns::O> p(&o); p.get(); }
void operator delete(void *, unsigned long) noexcept {}
'''
BUILT = {'gcc5': 'gcc -O2 -g', 'gcc3': 'gcc -O2 -gdwarf-3', 'gcc4': 'gcc -O2 -gdwarf-4', 'clang5': 'clang-14 -O2 -g',
         'clang4': 'clang-14 -O2 -gdwarf-4 -fdebug-types-section', 'gccxx': 'g++ -O2 -g -fdebug-types-section -fno-exceptions',
         'gccxx4': 'g++ -O2 -gdwarf-4 -fdebug-types-section', 'gcc-64': 'gcc -O2 -gdwarf64', 'gcc-32': 'gcc -m32 -O2 -g',
         'gcc-split': 'gcc -O2 -g -gsplit-dwarf', 'gcc-z': 'gcc -O2 -g -gz', 'gcc5-O0': 'gcc -O0 -g', 'gcc-rel': 'gcc -O2 -g -c',
         'gcc-debugframe': 'gcc -O2 -g -fno-asynchronous-unwind-tables'}
SHARED = ['-shared', '-nostdlib', '-fPIC', '-Wl,--build-id', '-Wl,-z,noseparate-code', '-Wl,--hash-style=gnu', '-fcf-protection=none']

# DW_OP_*: each of the location of a variable of its own
DEREF, CONST1, CONST1S, CONST2, CONST2S, CONST4, CONST8, CONSTU, CONSTS, DUP, DROP, OVER, SWAP = 6, 8, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 22
AND, MINUS, MUL, NEG, NOT, PLUS, PLUS_U, NOP, STACK = 26, 28, 30, 31, 32, 34, 35, 0x96, 0x9f
EXPRESSIONS = (
    [], [0x55], [0x90, 5], [0x90, 40], [0x75, 8], [0x75, 0x78], [0x92, 5, 16], [0x91, 0x70], [0x9c], [0x9c, PLUS_U, 8], [0x75, 0, STACK],
    [CONST1, 5, STACK], [CONST1S, 0xff, STACK], [CONST2, 1, 2, STACK], [CONST2S, 1, 0xff, STACK], [CONST4, 1, 2, 3, 4, STACK], [CONST8] + [1] * 8 + [STACK],
    [CONSTU, 0x81, 1, STACK], [CONSTS, 0x7f, STACK], [0x35, STACK], [0x75, 8, DEREF], [0x75, 8, DEREF, PLUS_U, 8, DEREF, STACK], [0x35, DEREF],
    [0x75, 0] + [DEREF] * 20, [0x75, 0, 0x35, PLUS, STACK], [0x35, 0x75, 0, PLUS, STACK], [0x75, 0, 0x35, MINUS, STACK], [0x35, 0x75, 0, MINUS, STACK],
    [0x75, 0, 0x74, 0, PLUS, STACK], [PLUS], [0x75, 0, PLUS, STACK], [0x75, 0, DUP, DROP, STACK], [0x75, 0, DROP], [0x75, 0, SWAP], [0x75, 0, 0x35, SWAP, DROP, STACK],
    [0x75, 0] + [DUP] * 40, [0x75, 0, 0x35, OVER, STACK], [0x75, 0, NEG, STACK], [0x75, 0, NOT, STACK], [0x75, 0, 0x31, AND, STACK], [0x75, 0, 0x32, MUL, STACK], [NOP],
    [0x75, 0, NOP, STACK], [0xa3, 1, 0x55, STACK], [0xf3, 1, 0x55, STACK], [0xa3, 2, 0x90, 5, STACK], [0xa3, 2, 0x90, 60, STACK], [0xa3, 2, 0x75, 0, STACK], [0xa3, 1, 0x55, PLUS_U, 4, STACK],
    [0x9e, 4, 1, 2, 3, 4], [0x9e, 16] + [1] * 16, [0x9e, 2, 1, 2, 0x93, 2], [0x55, 0x93, 4, 0x51, 0x93, 4], [0x93, 4, 0x51, 0x93, 4], [0x55, 0x9d, 4, 0], [0x75, 0, 0x93, 2, 0x93, 6],
    [0xa0] + [0x0b, 0, 0, 0] + [0], [0xf2] + [0x0b, 0, 0, 0] + [0], [0xfa] + [0x0b, 0, 0, 0], [CONST8] + [8] + [0] * 7 + [0x9b], [CONST8] + [8] + [0] * 7 + [0xe0], [0xa5, 5, 0x0b, STACK],
    [0xf5, 5, 0x0b, STACK], [0x75, 0, 0xa8, 0, STACK], [0x75, 0, 0xf7, 0, STACK], [0x75, 0, 0xa9, 0, STACK], [0x03, 0, 0x10] + [0] * 6, [0x03] + [0xff] * 8, [0xa1, 0], [0x75, 0, 0x94, 4],
    [0x75, 0, 0x28, 0, 0], [0x75, 0, 0x2f, 0xfd, 0xff], [0x97], [0x98, 1, 0], [0xe0], [0x99], [0x54, 0x9f], [0x75, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1])


def assembly(base, frame):
    """base: the function's DW_AT_frame_base; frame: lines of its frame"""
    abbrev = ('1, 0x11, 1, 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0x13, 0xb, 0x10, 0x17, 0, 0\n 2, 0x2e, 1, 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0x40, 0x18, 0x27, 0x19, 0x49, 0x13, 0, 0\n'
              ' 3, 0x34, 0, 0x3, 0x8, 0x49, 0x13, 0x2, 0x18, 0, 0\n 4, 0x24, 0, 0x3, 0x8, 0xb, 0xb, 0x3e, 0xb, 0, 0\n 5, 0x34, 0, 0x3, 0x8, 0x49, 0x13, 0x1c, 0xb, 0, 0\n'
              ' 6, 0x34, 0, 0x3, 0x8, 0x49, 0x13, 0x1c, 0xa, 0, 0\n 7, 0x13, 1, 0x3, 0x8, 0xb, 0xb, 0, 0\n 8, 0xd, 0, 0x3, 0x8, 0x49, 0x13, 0xd, 0xb, 0x6b, 0xb, 0, 0\n'
              ' 9, 0xd, 0, 0x3, 0x8, 0x49, 0x13, 0xb, 0xb, 0xd, 0xb, 0xc, 0xb, 0x38, 0xb, 0, 0\n 10, 0xd, 0, 0x3, 0x8, 0x49, 0x13, 0x38, 0xb, 0, 0\n 11, 0xf, 0, 0x49, 0x13, 0, 0\n'
              ' 12, 1, 1, 0x49, 0x13, 0, 0\n 13, 0x21, 0, 0x2f, 0xb, 0, 0\n 14, 0x21, 0, 0x37, 0xb, 0, 0\n 15, 5, 0, 0x3, 0x8, 0x49, 0x13, 0x2, 0x18, 0, 0\n'
              ' 16, 0x34, 0, 0x3, 0x8, 0x49, 0x13, 0x1c, 0xd, 0, 0\n 17, 0x34, 0, 0x3, 0x8, 0x49, 0x13, 0, 0\n 18, 0x34, 0, 0x3, 0x8, 0x49, 0x13, 0x1c, 0x8, 0, 0\n 0')
    out = [' .section .debug_abbrev,"",@progbits', 'abbrev: .uleb128 ' + abbrev.replace('\n', '\n .uleb128'), ' .section .debug_info,"",@progbits', 'info: .long end - version',
           'version: .value 5', ' .byte 1, 8', ' .long abbrev', ' .uleb128 1', ' .string "seed.s"', ' .quad begin', ' .quad stop - begin', ' .byte 2', ' .long lines']

    def die(number, *parts):
        out.append(f' .uleb128 {number}')
        out.extend(' ' + p for p in parts)

    def name(text):
        return f'.string "{text}"'

    def ref(label):
        return f'.long {label} - info'

    def block(data):
        return f'.uleb128 {len(data)}' + (''.join(f'\n .byte {b}' for b in data))
    for label, text, size, encoding in (('int', 'int', 4, 5), ('bool', 'bool', 1, 2), ('word', 'unsigned long', 8, 7), ('char', 'char', 1, 6), ('float', 'double', 8, 4),
                                        ('complex', 'complex', 16, 3), ('utf', 'char16_t', 2, 16)):
        out.append(f't_{label}:')
        die(4, name(text), f'.byte {size}, {encoding}')
    out.append('t_struct:')
    die(7, name('obj'), '.byte 32')
    die(10, name('next'), ref('t_pointer'), '.byte 0')
    die(10, name('refs'), ref('t_array'), '.byte 8')
    die(8, name('bits'), ref('t_int'), '.byte 3, 131')
    die(8, name('far'), ref('t_complex'), '.byte 3, 131')
    die(8, name('none'), ref('t_int'), '.byte 0, 131')
    die(8, name('across'), ref('t_int'), '.byte 7, 28')
    die(9, name('old'), ref('t_int'), '.byte 4, 3, 5, 16')
    die(9, name('large'), ref('t_int'), '.byte 9, 3, 5, 16')
    out.append(' .byte 0')
    out.append('t_pointer:')
    die(11, ref('t_struct'))
    out.append('t_text:')
    die(11, ref('t_char'))
    out.append('t_array:')
    die(12, ref('t_int'))
    die(13, '.byte 3')
    die(14, '.byte 2')
    out.append(' .byte 0')
    die(2, name('work'), '.quad begin', '.quad stop - begin', block(base), ref('t_int'))
    types = ['t_pointer', 't_struct', 't_int', 't_array', 't_text', 't_float', 't_bool', 't_word', 't_complex', 't_utf']
    for i, data in enumerate(EXPRESSIONS):
        die(15 if i % 5 == 0 else 3, name(f'v{i}'), ref(types[i % len(types)]), block(data))
        if i % 3 == 0:
            die(3, name(f'w{i}'), ref('t_struct' if i % 2 else 't_pointer'), block(data))
    for i, kind in enumerate(types):
        die(5, name(f'c{i}'), ref(kind), '.byte 200')
    die(6, name('b1'), ref('t_struct'), '.byte 8, 1, 2, 3, 4, 5, 6, 7, 8')
    die(6, name('b2'), ref('t_struct'), '.byte 9, 1, 2, 3, 4, 5, 6, 7, 8, 9')
    die(16, name('s'), ref('t_int'), '.byte 0x7f')
    die(17, name('gone'), ref('t_int'))
    die(18, name('text'), ref('t_text'), '.string "abc"')
    out.append(' .byte 0')
    out.append(' .byte 0')
    out += ['end:', ' .section .debug_line,"",@progbits', 'lines:', ' .text', ' .file 1 "seed.s"', 'begin:', ' .globl work', ' .type work, @function', 'work:', ' .cfi_startproc'] + frame
    out += [' .loc 1 3', ' nop', ' .loc 1 4', ' push %rbp', ' .loc 1 5', ' pop %rbp', ' ret', ' .cfi_endproc', ' .size work, .-work', 'stop:', ' .data', 'table: .quad 0', '']
    return '\n'.join(out)


FRAMES = {
    'cfa': ([0x9c], [' .cfi_personality 0x1b, begin', ' .cfi_lsda 0x1b, table', ' .cfi_signal_frame']),
    'register': ([0x56], [' .cfi_personality 0x03, 0', ' .cfi_lsda 0x03, 16']),
    'offset': ([0x77, 8], [' .cfi_personality 0x0c, 0', ' .cfi_lsda 0x0c, 16', ' .cfi_escape 0x0f, 2, 0x77, 8']),
    'computed': ([0x77, 8, 0x34, 0x22], [' .cfi_personality 0x02, 0', ' .cfi_lsda 0x02, 16', ' .cfi_escape 0x0f, 5, 0x77, 8, 0x80, 0, 0x22']),
    'deep': ([0x91, 8], [' .cfi_lsda 0x0b, 16', ' .cfi_escape 0x0f, 3, 0x92, 7, 8', ' .cfi_escape 0x10, 16, 2, 0x77, 0x78']),
    'other': ([], [' .cfi_lsda 0x0a, 16', ' .cfi_def_cfa 40, 8', ' .cfi_escape 0x16, 16, 2, 0x77, 0x78']),
    'undefined': ([0x75, 8], [' .cfi_undefined 16', ' .cfi_def_cfa 5, -8']),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)

    def build(command, source, suffix, name):
        path = folder / ('seed' + suffix)
        path.write_text(source)
        out = folder / ('built-' + name)
        how = ['-fPIC'] if '-c' in command.split() else SHARED
        subprocess.run(command.split() + how + [path.name, '-o', out.name], cwd=folder, check=True)
        if '-c' not in command.split():
            subprocess.run(['objcopy', '-R', '.comment', str(out)], check=True)
        path.unlink()
    for name, command in BUILT.items():
        build(command, CXX if 'xx' in name else C, '.cc' if 'xx' in name else '.c', name)
    for name, (base, frame) in FRAMES.items():
        build('gcc', assembly(base, frame), '.s', 'asm-' + name)


if __name__ == '__main__':
    main()
