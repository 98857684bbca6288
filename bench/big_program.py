#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A program with at least 300 MB of debug information, the same at each run: big_program.py FOLDER

Shaped like a kernel's: each unit has most of the types of shared headers, some of its own, and functions in which
others are inlined. FOLDER/big-* is the program, made once.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import random
import subprocess
import sys

UNITS, FUNCTIONS, HEADERS, TYPES = 240, 12, 24, 300
# object_get() is inlined in the units of these numbers alone: perf takes no more than 128 places
GETTERS = range(7, UNITS, 24)
SCALARS = ('int', 'unsigned long', 'char', 'short', 'unsigned char', 'long long', 'double', 'void *')


def member(rng, header, number, have):
    kind = rng.randrange(8)
    name = f'm{number}_{rng.randrange(1000):03}'
    other = f'struct h{rng.randrange(HEADERS)}_t{rng.randrange(TYPES)}'
    if kind == 0 and have:
        return f'struct h{header}_t{rng.randrange(max(0, have - 6), have)} {name};' if have > 6 else f'int {name};'
    if kind == 1:
        return f'{other} *{name};'
    if kind == 2:
        return f'{rng.choice(SCALARS)} {name}[{rng.randrange(1, 40)}];'
    if kind == 3:
        return f'int (*{name})({other} *, {rng.choice(SCALARS)}, const char *);'
    if kind == 4:
        return f'unsigned {name} : {rng.randrange(1, 30)};'
    if kind == 5:
        return f'union {{ {rng.choice(SCALARS)} first; {other} *second; }} {name};'
    return f'{rng.choice(SCALARS)} {name};'


def header(number):
    rng = random.Random(number)
    lines = ['#pragma once']
    for t in range(TYPES):
        name = f'h{number}_t{t}'
        if t % 9 == 8:
            lines.append(f'enum {name}_kind {{ ' + ', '.join(f'{name.upper()}_{i}' for i in range(12)) + ' };')
        lines.append(f'struct {name} {{')
        # small ones inside of others, so that no size explodes
        lines += ['\t' + member(rng, number, i, t if t % 5 == 0 else 0) for i in range(rng.randrange(4, 14))]
        lines += ['};', f'typedef struct {name} {name}_alias;']
    return '\n'.join(lines) + '\n'


OBJECT = '''#pragma once
struct object {
	unsigned long flags;
	int count;
	struct object *next;
	const char *name;
	void (*release)(struct object *);
};
extern volatile long sink;
static inline void note(long value) { sink += value; }
static inline int object_test(const struct object *o) { return o && o->count > 0 && !(o->flags & 1); }
static inline struct object *object_step(struct object *o, long by)
{
	if (object_test(o)) {
		o->flags ^= (unsigned long)by;
		note(o->count);
	}
	return o->next ? o->next : o;
}
'''
GETTER = '''static inline struct object *object_get(struct object *object)
{
	if (object)
		__atomic_add_fetch(&object->count, 1, __ATOMIC_SEQ_CST);
	return object;
}
'''


def unit(number):
    rng = random.Random(1000 + number)
    headers = [h for h in range(HEADERS) if rng.random() < 0.75]
    lines = ['#include "object.h"'] + [f'#include "h{h}.h"' for h in headers]
    if number in GETTERS:
        lines.append(GETTER)
    for t in range(20):
        other = f'h{headers[t % len(headers)]}_t{t}'
        lines.append(f'struct u{number}_own{t} {{ struct {other} *a; int b[{t + 1}]; long c; }};')
    for f in range(FUNCTIONS):
        h = rng.choice(headers)
        get = number in GETTERS and f % 4 == 0
        lines.append(f'''static __attribute__((noinline))
long u{number}_local{f}(struct object *o, struct u{number}_own{f % 20} *own, long n)
{{
	long total = n * {rng.randrange(2, 99)};
	for (long i = 0; i < n; i++) {{
		struct object *at = {'object_get(o)' if get else 'object_step(o, i)'};
		if (object_test(at) && own) {{
			long twice = own->c * 2 + i;
			total += twice + at->count;
			note(total);
		}}
	}}
	return total;
}}
long u{number}_f{f}(struct object *object, struct h{h}_t{rng.randrange(TYPES)} *data, int count)
{{
	struct u{number}_own{f % 20} own = {{ .c = count }};
	long sum = (long)data;
	for (struct object *o = object; object_test(o) && count-- > 0; o = object_step(o, count)) {{
		long part = u{number}_local{f}(o, &own, count);
		sum += part ^ own.c;
		own.c = sum;
	}}
	return sum;
}}''')
    lines.append(f'long u{number}_all(struct object *o)\n{{\n\treturn 0' +
                 ''.join(f' + u{number}_f{f}(o, 0, {f})' for f in range(FUNCTIONS)) + ';\n}')
    return '\n'.join(lines) + '\n'


def main_unit():
    return ('#include "object.h"\nvolatile long sink;\n' +
            ''.join(f'long u{n}_all(struct object *o);\n' for n in range(UNITS)) +
            'int main(void)\n{\n\tstruct object o = { .count = 1, .name = "one" };\n\tlong sum = 0;\n\n' +
            ''.join(f'\tsum += u{n}_all(&o);\n' for n in range(UNITS)) + '\treturn !sum;\n}\n')


def compile_unit(folder, name):
    # as much as a kernel's unit has: what is declared, not only what is used
    subprocess.run(['gcc', '-g', '-O2', '-w', '-fno-eliminate-unused-debug-types', '-c', name + '.c', '-o',
                    name + '.o'], cwd=folder, check=True)
    return name + '.o'


def make(folder):
    """-> the program"""
    folder = pathlib.Path(folder)
    # another generator makes another program
    target = folder / ('big-' + hashlib.sha1(pathlib.Path(__file__).read_bytes()).hexdigest()[:8])
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    names = ['main'] + [f'u{n}' for n in range(UNITS)]
    (folder / 'object.h').write_text(OBJECT)
    (folder / 'main.c').write_text(main_unit())
    for h in range(HEADERS):
        (folder / f'h{h}.h').write_text(header(h))
    for n in range(UNITS):
        (folder / f'u{n}.c').write_text(unit(n))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda name: compile_unit(folder, name), names))
    subprocess.run(['gcc', '-o', 'big.new', *objects], cwd=folder, check=True)
    for name in objects:
        (folder / name).unlink()
    (folder / 'big.new').rename(target)
    return target


if __name__ == '__main__':
    print(make(sys.argv[1]))
