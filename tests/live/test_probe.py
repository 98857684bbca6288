# SPDX-License-Identifier: GPL-2.0-only
"""Probe definitions: what the kernel reads at the points that reftrace tells is what the program prints that it has."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import live

BUILDS = [(cc, flags) for cc in ('gcc', 'clang') for flags in (('-g', '-O2', '-fcf-protection=none'), ('-g', '-O0'))]
# where addresses are no file offsets
BUILDS.append(('gcc', ('-g', '-O2', '-fcf-protection=none', '-fno-pie', '-no-pie')))
WORK = ('work n s:string small big sh seven eight o->refs o->name:string o->in.a o->in.b[2] o->in.f2 o->pin->f1 o->in.f3 o->in.f4 o->arr[3] '
        'o->text:string far=o->next->arr[1] o->kind cell=o->grid[1][2] global=global.a counter')
EVENTS = '/sys/kernel/tracing/uprobe_events'


def call(*args, code=0):
    run = live.call(*args)
    if code is not None and run.status != code:
        raise AssertionError(f'{args}: {run.status}, {run.stderr}')
    return run


def number(text):
    return int(text, 0) if re.fullmatch(r'-?(0x[0-9a-f]+|\d+)', text) else text.strip('"')


def words(text):
    return {name: number(value) for name, value in re.findall(r'(\w+)=("[^"]*"|\S+)', text)}


class Probed(unittest.TestCase):
    def setUp(self):
        self.group = f'live{os.getpid()}'
        self.addCleanup(call, 'probe', 'del', f'{self.group}:*', code=None)

    def add(self, program, *definitions, more=()):
        return call('probe', 'add', *more, '-x', program, *definitions)

    def run_recorded(self, program):
        """-> (what it printed, what its events read): {word or event: [{name: value}]}. As the kernel prints them: perf
        script 6.1 shows s16 without its sign."""
        instance = pathlib.Path('/sys/kernel/tracing/instances') / self.group
        instance.mkdir()
        try:
            (instance / f'events/{self.group}/enable').write_text('1', encoding='utf-8')
            done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
            (instance / f'events/{self.group}/enable').write_text('0', encoding='utf-8')
            lines = [line for line in (instance / 'trace').read_text(encoding='utf-8').splitlines() if not line.startswith('#')]
        finally:
            instance.rmdir()
        truth, read = {}, {}
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(' ')
            truth.setdefault(word, []).append(words(rest))
        for line in lines:
            event, rest = re.search(r': (\w+): \([^)]*\)(.*)', line).groups()
            read.setdefault(event, []).append(words(rest))
        return truth, read

    def for_each_build(self, check):
        for cc, flags in BUILDS:
            with self.subTest(cc=cc, flags=flags):
                check(live.program('probed', cc, flags), '-O2' in flags)
            call('probe', 'del', f'{self.group}:*', code=None)

    def test_arguments(self):
        def check(program, optimised):
            self.add(program, f'{self.group}:{WORK.replace("work", "work=work", 1)}', f'{self.group}:back=work%return retval=$retval',
                     f'{self.group}:negative=negative%return retval=$retval')
            more = call('probe', 'add', '-x', program, f'{self.group}:sum=work;*sink(sum);* sum', code=None)
            truth, read = self.run_recorded(program)
            if more.status:
                # clang 14 forgets where it is when it moves it to the register of the call
                self.assertIn("argument 'sum' of work", more.stderr)
                self.assertTrue(optimised)
                truth['sum'] = None
            for event in ('work', 'back', 'negative', 'sum'):
                self.assertEqual(read.get(event), truth[event], event)
        self.for_each_build(check)

    def test_inlined(self):
        """Each place where a get was inlined is a point of one event, and the object is right at each: also where it is a
        sum that no register holds."""
        def check(program, optimised):
            self.add(program, f'{self.group}:get=obj_get o->refs o->name:string')
            if optimised:
                lines = [line for line in open(EVENTS, encoding='utf-8') if f':{self.group}/get ' in line]
                self.assertEqual(len(lines), 3)
            truth, read = self.run_recorded(program)
            self.assertEqual(read.get('get'), truth['get'])
        self.for_each_build(check)

    def test_sum_is_refused(self):
        """perf reads what lies at the object instead: the count."""
        program = live.program('probed', 'gcc', BUILDS[0][1])
        run = call('probe', 'show', '-x', program, 'obj_get o', code=125)
        self.assertRegex(run.stderr, r"argument 'o' of obj_get at 0x[0-9a-f]+ \(probed.c:\d+\): it is %di\+24, a sum")
        run = call('probe', 'show', '--partial', '-x', program, 'obj_get o')
        self.assertIn('left out:', run.stderr)
        self.assertEqual(run.stdout.count('\n'), 2)

    def test_lock_prefix(self):
        """The kernel arms no instruction with a lock prefix: the next one stands for it, and says so."""
        def check(program, optimised):
            run = self.add(program, f'{self.group}:hold=hold o')
            truth, read = self.run_recorded(program)
            self.assertEqual(read.get('hold'), truth['hold'])
            if optimised:
                self.assertIn('it would never fire', run.stderr)
                run = call('probe', 'show', '-x', program, 'hold o->refs', code=125)
                self.assertIn('may read what it has changed', run.stderr)
        self.for_each_build(check)

    def test_against_perf(self):
        """Where perf is right, the lines are perf's, letter by letter."""
        program = live.program('probed', 'gcc', BUILDS[0][1])
        code = subprocess.run(['objdump', '-d', '--disassemble=work', str(program)], capture_output=True, text=True, check=True).stdout
        first, second = (int(a, 16) for a in re.findall(r'^ +([0-9a-f]+):', code, re.M)[:2])
        line = 1 + (live.PROGRAMS / 'probed.c').read_text(encoding='utf-8').splitlines().index('\treturn -n;')
        # perf calls an argument s_string that is told as s:string
        for definition in ('work', 'work n s=s:string small big sh seven eight', 'work o->refs o->name:string o->in.a o->in.b[2] o->arr[3]',
                           f'work+{second - first}', 'work%return', 'work:9', 'work $params', f'probed.c:{line}', 'work;*sink(sum)*', 'g:e=negative n', 'neg*',
                           'direct', 'chased o->next', 'work o->text:string@user', 'work x=o->next->next->arr[1]:x64',
                           'neg[a-h]*', 'n[!a-df]ga[st]ive', r'work;*o->arr\[i&3\]*', r'wor[k]+0'):
            with self.subTest(definition):
                ours = call('probe', 'show', '-x', program, definition).stdout
                perf = subprocess.run(['perf', 'probe', '-q', '-x', str(program), '-D', definition], capture_output=True, text=True, check=True)
                self.assertEqual(sorted(ours.splitlines()), sorted(perf.stdout.splitlines()))

    def test_places_of_a_line(self):
        """The head of a loop begins before it and at its end: perf probes both, we the first, and say so."""
        program = live.program('probed', 'gcc', BUILDS[0][1])
        perf = subprocess.run(['perf', 'probe', '-q', '-x', str(program), '-D', 'work:5'], capture_output=True, text=True, check=True)
        each = call('probe', 'show', '--all-places', '-x', program, 'work:5')
        self.assertEqual(sorted(each.stdout.splitlines()), sorted(perf.stdout.splitlines()))
        self.assertEqual(each.stdout.count('\n'), 2)
        first = call('probe', 'show', '-x', program, 'work:5')
        self.assertEqual(first.stdout, each.stdout.splitlines(keepends=True)[0])
        self.assertIn('begins at 1 more place of it', first.stderr)

    def test_lines_that_have_code(self):
        """What is advised for a line without code is taken: a line of the same function, never the next one's."""
        source, program = live.temp_path('near.c'), live.temp_path('near')
        source.write_text('volatile int v;\n'
                          '__attribute__((noinline)) int first(int n)\n'
                          '{\n'
                          '\t/* nothing */\n'
                          '\treturn v += n;\n'
                          '}\n'
                          '__attribute__((noinline)) int second(int n) { return v * n; }\n'
                          'int main(void) { return first(2) + second(3); }\n')
        subprocess.run(['gcc', '-g', '-O1', '-o', str(program), str(source)], check=True)
        for asked in ('first:2', 'first:50', 'second:1'):
            with self.subTest(asked):
                said = call('probe', 'show', '-x', program, asked, code=125).stderr
                lines = re.findall(r'\d+', said.split('fix: ')[1])
                self.assertTrue(lines, said)
                for line in lines:
                    call('probe', 'show', '-x', program, f'{asked.split(":")[0]}:{line}')

    def test_names(self):
        """Names clash within a group only; a taken one gets a number, or is refused when it was told."""
        one, two = live.program('probed', 'gcc', ('-g', '-O2')), live.program('probed', 'gcc', ('-g', '-O0'))
        first, other = f'{self.group}:e=negative', f'{self.group}x:e=negative'
        self.addCleanup(call, 'probe', 'del', f'{self.group}x:*', code=None)
        self.add(one, first)
        self.add(two, other)
        run = call('probe', 'add', '-x', one, first, code=2)
        self.assertIn('there is an event', run.stderr)
        self.assertIn(f'added {self.group}:e_1 ', self.add(one, first, more=['--force']).stdout)
        events = json.loads(call('probe', 'list', '--json', f'{self.group}*:*').stdout)['events']
        self.assertEqual([(e['group'], e['event'], e['function'], e['file'].endswith('probed.c')) for e in events],
                         [(self.group, 'e', 'negative', True), (self.group + 'x', 'e', 'negative', True), (self.group, 'e_1', 'negative', True)])
        self.assertIn('would remove', call('probe', 'del', '-n', f'{self.group}:e').stdout)
        call('probe', 'del', f'{self.group}:e')
        self.assertEqual(len(json.loads(call('probe', 'list', '--json', f'{self.group}*:*').stdout)['events']), 2)
        call('probe', 'del', f'{self.group}:nothing', code=125)

    def test_all_or_nothing(self):
        """What the kernel refuses takes the rest with it."""
        program = live.program('probed', 'gcc', ('-g', '-O2'))
        run = call('probe', 'add', '-x', program, f'{self.group}:a=work', f'{self.group}:b=work x=$stack:string', code=125)
        self.assertIn('the kernel refuses', run.stderr)
        self.assertNotIn(self.group, open(EVENTS, encoding='utf-8').read())

    def test_other_root(self):
        """Lines for a file that lies below another root name it as it is called there; this kernel cannot take them."""
        program, root = live.program('probed', 'gcc', ('-g', '-O2')), live.temp_path('root')
        (root / 'opt').mkdir(parents=True)
        shutil.copy(program, root / 'opt/there')
        here = call('probe', 'show', '-x', program, 'g:e=work n').stdout
        there = call('probe', 'show', '--symfs', root, '-x', '/opt/there', 'g:e=work n').stdout
        self.assertEqual(there, here.replace(str(program), '/opt/there'))
        run = call('probe', 'add', '--symfs', root, '-x', '/opt/there', 'work n', code=2)
        self.assertIn('its own root', run.stderr)

    def test_letters(self):
        """perf's letters in the place of our words, before or behind the other options."""
        program = live.program('probed', 'gcc', ('-g', '-O2'))

        def both(words, letters):
            said = call('probe', *words).stdout
            self.assertTrue(said)
            self.assertEqual(call('probe', *letters).stdout, said)
        both(('funcs', program, 'w*'), ('-x', program, '-F', 'w*'))
        both(('lines', program, 'work'), ('-L', 'work', '-x', program))
        both(('vars', program, 'work'), ('-x', program, '-V', 'work'))
        both(('add', '-D', '-x', program, 'work n', 'main'), ('-D', '-x', program, '-a', 'work n', '-a', 'main'))
        call('probe', '-q', '-x', program, '-a', f'{self.group}:one=work')
        self.assertIn(f'{self.group}:one', call('probe', '-l', f'{self.group}:*').stdout)
        self.assertIn('one at a time', call('probe', '-l', '-d', f'{self.group}:*', code=2).stderr)
        call('probe', '-d', f'{self.group}:*')
        self.assertEqual(call('probe', '-l', f'{self.group}:*').stdout, '')

    def test_unprivileged(self):
        program = live.program('probed', 'gcc', ('-g', '-O2'))
        env = live.NOBODY
        for command in (['add', '-x', str(program), 'work'], ['del', 'x:*'], ['list']):
            done = subprocess.run([*env, str(live.REFTRACE), 'probe', *command], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 125)
            self.assertIn('CAP_SYS_ADMIN is missing', done.stderr)
        done = subprocess.run([*env, str(live.REFTRACE), 'probe', 'show', '-x', str(program), 'work n'], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r'^p:probe_probed/work \S+:0x[0-9a-f]+ n=%si:s32\n$')


if __name__ == '__main__':
    unittest.main()
