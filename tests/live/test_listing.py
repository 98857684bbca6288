# SPDX-License-Identifier: GPL-2.0-only
"""probe funcs, lines and vars, against what readelf, llvm-dwarfdump, objdump and gdb say of the same files."""
import collections
import json
import os
import re
import shutil
import subprocess
import unittest

import live

FOLDER = live.SOURCE / 'tests' / 'live' / 'listing'
VARIANTS = [(cc, flags) for cc in ('gcc', 'clang') for flags in (('-O2',), ('-O2', '-gdwarf-4'), ('-O0',))]
LIBC = '/lib/x86_64-linux-gnu/libc.so.6'


def output(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout


def build(cc, flags=('-O2',), cxx=False, name='listing'):
    """One program of two C files, or of the C++ one."""
    tool = live.compiler(cc, cxx)
    if not tool:
        raise unittest.SkipTest(f'{cc} is not installed')
    folder = live.temp() / '-'.join(['listing', cc, 'cxx' if cxx else 'c', *flags]).replace('/', '_')
    target = folder / name
    if not target.exists():
        folder.mkdir(exist_ok=True)
        sources = ['shapes.cc'] if cxx else ['main.c', 'sum.c']
        subprocess.run([tool, '-g', '-w', *flags, *(FOLDER / s for s in sources), '-o', target], check=True, cwd=folder)
    return target


def need(tool):
    path = shutil.which(tool) or shutil.which(tool + '-14')
    if not path:
        raise unittest.SkipTest(f'{tool} is not installed')
    return path


def listed(*words):
    """-> what a listing prints as JSON"""
    run = live.call('probe', words[0], '--json', *words[1:])
    if run.status:
        raise AssertionError(str(run))
    return json.loads(run.stdout)


def symbols(path):
    """address -> names of functions, of both symbol tables as readelf reads them"""
    found = collections.defaultdict(set)
    for line in output('readelf', '-sW', path).splitlines():
        words = line.split()
        if len(words) >= 8 and words[3] in ('FUNC', 'IFUNC') and words[6] not in ('UND', 'ABS'):
            found[int(words[1], 16)].add(words[7].split('@')[0])
    return found


def inlined(path):
    """name -> number of inlined instances as llvm-dwarfdump counts them"""
    text = output(need('llvm-dwarfdump'), '--debug-info', path)
    found = collections.Counter()
    for body in re.findall(r'DW_TAG_inlined_subroutine\n((?:\s+DW_AT.*\n)*)', text):
        found[re.search(r'DW_AT_abstract_origin.*"(.*)"', body).group(1)] += 1
    return found


class Functions(live.LiveTest):
    def check(self, path):
        functions = listed('funcs', path)['functions']
        have = {int(f['address'], 16): {f['symbol'], *f['aliases']} for f in functions if not f['only_inlined']}
        want = symbols(path)
        self.assertEqual(set(want) - set(have), set())
        for address, names in want.items():
            self.assertEqual(have[address], names, hex(address))
        return functions

    def test_symbols(self):
        for cc, flags in VARIANTS:
            with self.subTest(cc=cc, flags=flags):
                self.check(build(cc, flags))
                self.check(build(cc, flags, cxx=True))

    def test_libc(self):
        functions = listed('funcs', LIBC, 'memcpy')['functions']
        self.assertTrue(any(f['ifunc'] for f in functions), functions)
        want = symbols(LIBC)
        have = {int(f['address'], 16): {f['symbol'], *f['aliases']} for f in listed('funcs', LIBC)['functions']
                if not f['only_inlined']}
        for address, names in want.items():
            self.assertLessEqual(names, have.get(address, set()), hex(address))

    def test_inlined(self):
        for cc, flags in VARIANTS:
            with self.subTest(cc=cc, flags=flags):
                path = build(cc, flags)
                functions = {f['name']: f for f in listed('funcs', path)['functions']}
                have, want = {n: f['inlined'] for n, f in functions.items() if f['inlined']}, dict(inlined(path))
                # gcc splits it: what is inlined into the function itself is no call
                self.assertLessEqual(have.pop('node_put', 0), want.pop('node_put', 0))
                self.assertEqual(have, want)
                self.assertTrue(functions['node_get']['only_inlined'])
                self.assertEqual(os.path.basename(functions['node_get']['source']), 'list.h')
                self.assertEqual(functions['node_get']['line'], 11)
                self.assertEqual(functions['node_sum']['aliases'], ['node_add'])
                self.assertEqual(functions['node_sum']['line'], 31)

    def test_names(self):
        path = build('gcc', cxx=True)
        for pattern in ('shape::Square::area', 'shape::Square::area(int) const', '_ZNK5shape6Square4areaEi',
                        'shape::*::area'):
            functions = listed('funcs', path, pattern)['functions']
            self.assertIn('shape::Square::area(int) const', [f['name'] for f in functions], pattern)
        names = [f['name'] for f in listed('funcs', '--no-demangle', '-x', path, '*Square4areaEi')['functions']]
        self.assertEqual(names, ['_ZNK5shape6Square4areaEi'])

    def test_stripped(self):
        path = live.temp_path('stripped')
        subprocess.run(['strip', '-o', path, build('gcc')], check=True)
        run = live.call('probe', 'funcs', path)
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stderr, r'has no function with a name\n +fix: .*/usr/lib/debug/\.build-id/')
        exported = live.temp_path('exported.so')
        subprocess.run([live.compiler('gcc'), '-O2', '-g', '-shared', '-fPIC', '-s', FOLDER / 'sum.c', '-o', exported],
                       check=True)
        run = live.call('probe', 'funcs', exported)
        self.assertEqual(run.status, 0, str(run))
        self.assertIn('no symbol table and no debug information: only its 2 exported functions are known', run.stderr)
        self.assertIn('node_sum', run.stdout)

    def test_debug_file(self):
        """Stripped, with its debug file beside it; and with .gnu_debugdata alone, as Fedora ships."""
        path, debug = live.temp_path('split'), live.temp_path('split.debug')
        subprocess.run(['objcopy', '--only-keep-debug', build('gcc'), debug], check=True)
        subprocess.run(['objcopy', '--strip-all', f'--add-gnu-debuglink={debug}', build('gcc'), path], check=True)
        names = {f['name'] for f in listed('funcs', path)['functions']}
        self.assertLessEqual({'node_get', 'node_put', 'node_sum', 'main'}, names)
        small, mini = live.temp_path('mini'), live.temp_path('minidebug')
        subprocess.run(['objcopy', '-S', '--remove-section', '.gnu_debuglink', '--keep-symbol=node_sum',
                        build('gcc'), mini], check=True)
        subprocess.run(['xz', '-k', mini], check=True)
        subprocess.run(['objcopy', '--strip-all', f'--add-section=.gnu_debugdata={mini}.xz', build('gcc'), small],
                       check=True)
        self.assertIn('node_sum', {f['name'] for f in listed('funcs', small)['functions']})

    def test_near(self):
        run = live.call('probe', 'funcs', build('gcc'), 'node_sun')
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stderr, r"no function of \S+ is called 'node_sun'\n +fix: did you mean node_sum\?")


def statements(path):
    """{(file name, line, address)} where objdump says that a statement begins, of code"""
    found, name = set(), None
    for line in output('objdump', '--dwarf=decodedline', path).splitlines():
        words = line.split()
        if len(words) >= 3 and re.fullmatch(r'0x[0-9a-f]+', words[2]) and words[1].isdigit():
            name = os.path.basename(words[0])
            if 'x' in words[3:] and int(words[2], 16) >= 0x1000:
                found.add((name, int(words[1]), int(words[2], 16)))
    return found


def instructions(path):
    return {int(a, 16) for a in re.findall(r'(?m)^ +([0-9a-f]+):\t', output('objdump', '-d', path))}


def frames(path, addresses):
    """address -> names of the functions around it, innermost first, as llvm-symbolizer says"""
    text = output(need('llvm-symbolizer'), '--inlines', '--no-demangle', '--obj=' + str(path), *map(hex, addresses))
    return {address: block.splitlines()[::2] for address, block in zip(addresses, text.split('\n\n'))}


class Lines(live.LiveTest):
    def check(self, path, source, last):
        """Every line of a file: the places are those of objdump."""
        listing, = listed('lines', path, f'{source}:1-{last}')['listings']
        have = {(source, entry['line'], int(place['address'], 16)): place
                for entry in listing['lines'] for place in entry['places']}
        want = {s for s in statements(path) if s[0] == source}
        self.assertTrue(want)
        self.assertEqual(set(have), want)
        self.assertLessEqual({address for _, _, address in have}, instructions(path))
        around = frames(path, sorted({address for _, _, address in have}))
        for (_, _, address), place in have.items():
            name = re.sub('<.*|~', '', place['function'])
            self.assertTrue(any(name in f for f in around[address]), (hex(address), name, around[address]))
        return listing

    def test_places(self):
        for cc, flags in VARIANTS:
            for source, last in (('sum.c', 60), ('list.h', 40), ('main.c', 60)):
                with self.subTest(cc=cc, flags=flags, source=source):
                    self.check(build(cc, flags), source, last)

    def test_cxx(self):
        for cc in ('gcc', 'clang'):
            with self.subTest(cc=cc):
                path = build(cc, cxx=True)
                self.check(path, 'shapes.cc', 80)
                listing, = listed('lines', path, 'shape::Square::area(int) const')['listings']
                self.assertEqual(listing['lines'][0]['line'], 25)

    def test_header(self):
        """A function that is only inlined: each of its lines counts in every instance that has it."""
        for cc in ('gcc', 'clang'):
            with self.subTest(cc=cc):
                path = build(cc)
                listing, = listed('lines', path, 'node_get')['listings']
                self.assertEqual(os.path.basename(listing['source']), 'list.h')
                self.assertEqual(listing['inlined'], inlined(path)['node_get'])
                first, end = listing['lines'][0], listing['lines'][-1]
                self.assertEqual((first['line'], first['relative'], end['line'], end['text']), (11, 0, 20, '}'))
                add = next(entry for entry in listing['lines'] if 'fetch_add' in entry['text'])
                self.assertEqual(len({p['entry'] for p in add['places']}), 2)
                self.assertTrue(all(p['inlined'] for p in add['places']))
                # the counter is changed by an instruction with a lock prefix: the kernel takes no probe on it
                code = output('objdump', '-d', path)
                for place in add['places']:
                    insn = re.search(rf'(?m)^ +{int(place["address"], 16):x}:\t[^\t]*\t(.*)$', code).group(1)
                    self.assertEqual(place['refused'], insn.startswith('lock '), insn)

    def test_function(self):
        path = build('gcc')
        whole, = listed('lines', path, 'node_sum')['listings']
        self.assertEqual((whole['lines'][0]['line'], whole['lines'][-1]['line']), (31, 45))
        self.assertEqual([e['text'] for e in whole['lines']],
                         (FOLDER / 'sum.c').read_text().splitlines()[30:45])
        some, = listed('lines', path, 'node_sum@sum.c:2-4')['listings']
        self.assertEqual(some['lines'], whole['lines'][2:5])
        some, = listed('lines', path, 'listing/sum.c:33+2')['listings']
        self.assertEqual([e['line'] for e in some['lines']], [33, 34, 35])

    def test_text(self):
        run = live.call('probe', 'lines', build('gcc', ('-O0',)), 'node_sum')
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stdout, r'(?m)^ +41 +10 +1      +node_total \+= sum;$|^ +43 +12 +1 +node_total \+= sum;$')
        self.assertRegex(run.stdout, r'(?m)^ +31 +0 +__attribute__')

    def test_no_source(self):
        folder = live.temp_path('gone')
        folder.mkdir()
        shutil.copy(FOLDER / 'list.h', folder)
        shutil.copy(FOLDER / 'sum.c', folder)
        path = folder / 'sum.so'
        subprocess.run([live.compiler('gcc'), '-g', '-O2', '-shared', '-fPIC', folder / 'sum.c', '-o', path],
                       check=True)
        moved = live.temp_path('moved')
        (moved / 'deep').mkdir(parents=True)
        os.rename(folder / 'sum.c', moved / 'deep' / 'sum.c')
        run = live.call('probe', 'lines', path, 'node_put')
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stderr,
                         rf'no source text: cannot read {folder}/sum.c: No such file.*\n +fix: .*--source-dir')
        self.assertRegex(run.stdout, r'(?m)^ +25 +7 +1$')
        run = live.call('probe', 'lines', '--source-dir', moved / 'deep', path, 'node_put')
        self.assertRegex(run.stdout, r'(?m)^ +25 +7 +1 +if \(left == 0\)')
        self.assertNotIn('no source text', run.stderr)

    def test_newer(self):
        folder = live.temp_path('newer')
        folder.mkdir()
        for name in ('list.h', 'sum.c'):
            shutil.copy(FOLDER / name, folder)
        subprocess.run([live.compiler('gcc'), '-g', '-shared', '-fPIC', folder / 'sum.c', '-o', folder / 'x.so'],
                       check=True)
        later = os.stat(folder / 'x.so').st_mtime + 5
        os.utime(folder / 'sum.c', (later, later))
        self.assertIn('sum.c is newer than the program', live.call('probe', 'lines', folder / 'x.so', 'drop').stderr)

    def test_refused(self):
        path = build('gcc')
        stripped = live.temp_path('bare')
        subprocess.run(['strip', '-o', stripped, path], check=True)
        for words, status, text in (((path, 'node_sun'), 125, 'did you mean node_sum'),
                                    ((path, 'sum.c:9-3'), 2, 'its last line comes before the first'),
                                    ((path, 'sum.c:'), 2, 'no line behind the colon'),
                                    ((path, ':3'), 2, 'it names no function'),
                                    ((path, '0x1130'), 2, 'probe vars'),
                                    ((path,), 2, 'which FUNC'),
                                    ((path, 'a', 'b'), 2, 'one word too many'),
                                    ((stripped, 'node_sum'), 125, 'no debug information')):
            with self.subTest(words=words):
                run = live.call('probe', 'lines', *words)
                self.assertEqual(run.status, status, str(run))
                self.assertIn(text, run.stderr)


def gdb_scope(path, addresses):
    """address -> {name: [(range or None, text)]}, as gdb tells the variables in scope there"""
    commands = [word for a in addresses for word in ('-ex', f'echo at {a:#x}\\n', '-ex', f'info scope *{a:#x}')]
    text = output(need('gdb'), '-batch', '-nx', *commands, path)
    found = {}
    for block in re.split(r'(?m)^at ', text)[1:]:
        names = found[int(block.split()[0], 16)] = {}
        for name, about in re.findall(r'(?ms)^Symbol (\S+) is (.*?)(?=^Symbol |\Z)', block):
            if about.startswith('a function at'):
                continue
            parts = re.split(r'Range (0x[0-9a-f]+)-(0x[0-9a-f]+): ', about)
            # the innermost comes first
            names.setdefault(name, [((int(parts[i], 16), int(parts[i + 1], 16)), parts[i + 2])
                                    for i in range(1, len(parts), 3)] or [(None, about)])
    return found


class Variables(live.LiveTest):
    def agree(self, variable, told, address):
        where, location = variable['where'], variable.get('location', '')
        if told[0][0]:
            here = [text for (start, end), text in told if start <= address < end]
            # no range, or an empty expression
            if not here or here[0].startswith('<optimized out>'):
                self.assertIn(where, ('elsewhere', 'optimized-out'))
                for known in variable['ranges']:
                    self.assertFalse(int(known['start'], 16) <= address < int(known['end'], 16))
                return
            text = here[0]
        else:
            text = told[0][1]
        if text.startswith('optimized out'):
            self.assertEqual(where, 'optimized-out')
        elif 'piece' in text:
            self.assertEqual(where, 'pieces')
        elif 'entry_value' in text:
            self.assertEqual(where, 'entry-value')
        elif (register := re.match(r'a variable in \$(\w+)', text)):
            self.assertEqual((where, location), ('readable', 'in ' + register.group(1)))
        elif (constant := re.match(r'(?:the )?constant (-?\d+)', text)):
            self.assertEqual((where, location), ('constant', 'constant ' + constant.group(1)))
        elif (number := re.search(r'DW_OP_consts (-?\d+)\n.*DW_OP_stack_value\n\s*$', text)) and '1:' not in text:
            self.assertEqual((where, location), ('constant', 'constant ' + number.group(1)))
        elif 'DW_OP_fbreg' in text or 'at frame base' in text:
            self.assertIn(where, ('readable', 'behind-prologue'))
            # before rbp is the frame's
            early = '|in its frame' if where == 'behind-prologue' else ''
            self.assertRegex(location, r'^value r[bs]p' if 'stack_value' in text else r'^at \[r[bs]p' + early)
        elif 'DW_OP_implicit_pointer' in text:
            self.assertEqual(where, 'implicit-pointer')
        else:
            self.assertIn(where, ('readable', 'constant'))

    def check(self, path, source):
        listing, = listed('lines', path, source + ':1-80')['listings']
        addresses = sorted({int(p['address'], 16) for entry in listing['lines'] for p in entry['places']})
        kinds = collections.Counter()
        for address, names in gdb_scope(path, addresses).items():
            site, = listed('vars', path, hex(address))['sites']
            variables = {v['name']: v for v in site['variables']}
            self.assertEqual({n for n in names if n not in variables}, set(), hex(address))
            for name, variable in variables.items():
                kinds[variable['where']] += 1
                with self.subTest(address=hex(address), name=name, gdb=names.get(name)):
                    if name in names:
                        self.agree(variable, names[name], address)
                    else:
                        # no trace is left of it in the code
                        self.assertEqual(variable['where'], 'optimized-out')
        return kinds

    def test_scope(self):
        kinds = collections.Counter()
        for cc, flags in VARIANTS:
            for source in ('sum.c', 'list.h', 'main.c'):
                with self.subTest(cc=cc, flags=flags, source=source):
                    kinds += self.check(build(cc, flags), source)
        # the fixtures have all that the comparison is about
        for kind in ('readable', 'constant', 'entry-value', 'pieces', 'elsewhere', 'behind-prologue', 'optimized-out'):
            self.assertGreater(kinds[kind], 0, kind)

    def test_cxx(self):
        for cc in ('gcc', 'clang'):
            with self.subTest(cc=cc):
                self.check(build(cc, cxx=True), 'shapes.cc')

    def test_instances(self):
        """A function that is inlined twice: each instance has its own object."""
        sites = listed('vars', build('gcc'), 'node_get')['sites']
        self.assertEqual(sorted((s['caller'], s['call_line']) for s in sites), [('main', 23), ('node_sum', 38)])
        for site in sites:
            self.assertTrue(site['inlined'])
            parameter = next(v for v in site['variables'] if v['kind'] == 'parameter')
            self.assertEqual((parameter['name'], parameter['type']), ('n', 'struct node *'))

    def test_line(self):
        path = build('gcc', ('-O0',))
        by_line, by_function = (listed('vars', path, place)['sites'] for place in ('sum.c:40', 'node_sum:9'))
        self.assertEqual(by_line, by_function)
        self.assertEqual({v['name']: v['depth'] for v in by_line[0]['variables']},
                         {'n': 0, 'times': 0, 'p': 0, 'unused': 0, 'sum': 0, 'i': 1, 'held': 2})

    def test_prologue(self):
        """At -O0 arguments are on the stack only behind the prologue: where that ends is said, and true."""
        path = build('gcc', ('-O0',))
        run = live.call('probe', 'vars', path, 'node_sum')
        self.assertIn('not yet: the prologue puts it at', run.stdout)
        address = re.search(r'fix: ask behind it: reftrace probe vars \S+ (0x[0-9a-f]+)', run.stderr).group(1)
        gdb = output(need('gdb'), '-batch', '-nx', '-ex', 'break node_sum', path)
        self.assertEqual(int(re.search(r'at (0x[0-9a-f]+)', gdb).group(1), 16), int(address, 16))
        site, = listed('vars', path, address)['sites']
        self.assertEqual({v['where'] for v in site['variables']}, {'readable'})

    def test_externs(self):
        site, = listed('vars', '--externs', build('clang'), 'node_sum')['sites']
        outer = {v['name']: v for v in site['variables'] if v['kind'] == 'extern'}
        address, = (line.split()[1] for line in output('readelf', '-sW', build('clang')).splitlines()
                    if line.endswith(' node_total'))
        self.assertEqual(outer['node_total']['location'], f'at [{int(address, 16):#x}]')
        site, = listed('vars', build('clang'), 'node_sum')['sites']
        self.assertFalse([v for v in site['variables'] if v['kind'] == 'extern'])

    def test_refused(self):
        path = build('gcc')
        for words, status, text in (((path, '0x10'), 125, 'no function of debug information is at 0x10'),
                                    ((path, 'sum.c'), 2, 'is a whole file'),
                                    ((path, 'sum.c:10-20'), 2, 'more than one line'),
                                    ((path, 'sum.c:1'), 125, 'no code begins at line 1 of'),
                                    ((path, '0xyz'), 2, 'its address is no number'),
                                    ((path,), 2, 'at which FUNC')):
            with self.subTest(words=words):
                run = live.call('probe', 'vars', *words)
                self.assertEqual(run.status, status, str(run))
                self.assertIn(text, run.stderr)


class Split(live.LiveTest):
    """Debug info in .dwo files and .dwp packages says what the same program says with all in one."""
    COMPILERS = [(cc, version) for cc in ('gcc', 'clang') for version in (4, 5)]

    def build(self, cc, version, *flags):
        """-> folder with prog, main.dwo and sum.dwo; and the path of the same program in one piece"""
        tool = live.compiler(cc)
        if not tool:
            raise unittest.SkipTest(f'{cc} is not installed')
        folder = live.temp_path(f'split-{cc}-{version}')
        folder.mkdir()
        common = [tool, '-g', f'-gdwarf-{version}', '-O2']
        for name in ('main', 'sum'):
            subprocess.run([*common, '-gsplit-dwarf', *flags, '-c', FOLDER / (name + '.c'), '-o', name + '.o'],
                           check=True, cwd=folder)
        subprocess.run([tool, *flags, 'main.o', 'sum.o', '-o', 'prog'], check=True, cwd=folder)
        return folder, build(cc, ('-O2', f'-gdwarf-{version}'))

    def assert_same(self, path, plain):
        def said(path, *words):
            answer = listed(words[0], path, *words[1:])
            self.assertEqual(answer['notes'], [], path)
            for site in answer.get('sites', []):
                for variable in site['variables']:
                    # clang writes conversions by hand where the name of a type would be in another file
                    if variable['where'] == 'pieces':
                        del variable['location']
            return {key: value for key, value in answer.items() if key not in ('file', 'build_id')}

        for words in (('funcs',), ('lines', 'node_sum'), ('lines', 'node_get'), ('lines', 'list.h'),
                      ('vars', 'node_get'),
                      ('vars', 'node_sum'), ('vars', '--externs', 'node_sum:9'), ('vars', 'sum.c:43'),
                      ('vars', 'node_put')):
            self.assertEqual(said(path, *words), said(plain, *words), words)

    def test_dwo(self):
        for cc, version in self.COMPILERS:
            with self.subTest(cc=cc, version=version):
                folder, plain = self.build(cc, version)
                self.assert_same(folder / 'prog', plain)

    def test_beside(self):
        """Moved away together: the files are found beside the program."""
        folder, plain = self.build('gcc', 5)
        away = live.temp_path('away')
        os.rename(folder, away)
        self.assert_same(away / 'prog', plain)

    def test_compressed(self):
        for cc in ('gcc', 'clang'):
            with self.subTest(cc=cc):
                folder, plain = self.build(cc, 5, '-gz')
                sections = output('readelf', '-SW', folder / 'sum.dwo')
                self.assertIn('C', re.search(r'\.debug_info\.dwo.*', sections).group(0))
                self.assert_same(folder / 'prog', plain)

    def test_package(self):
        for tool in ('llvm-dwp', 'dwp'):
            for cc, version in self.COMPILERS:
                if not shutil.which(tool):
                    continue
                with self.subTest(tool=tool, cc=cc, version=version):
                    folder, plain = self.build(cc, version)
                    made = subprocess.run([tool, '-e', 'prog', '-o', 'prog.dwp'], cwd=folder, check=False,
                                          capture_output=True, text=True)
                    if made.returncode:
                        raise unittest.SkipTest(f'{tool} cannot: {made.stderr}')
                    (folder / 'main.dwo').unlink()
                    (folder / 'sum.dwo').unlink()
                    self.assert_same(folder / 'prog', plain)

    def test_missing(self):
        folder, _ = self.build('gcc', 5)
        (folder / 'sum.dwo').unlink()
        run = live.call('probe', 'funcs', folder / 'prog')
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stderr, rf'debug information of 1 of 2 units is in split files that cannot be used: '
                                     rf'{folder}/sum\.dwo: it is not there\n +fix: .*llvm-dwp -e')
        self.assertIn('node_new', run.stdout)

    def test_missing_for_probes(self):
        """Where definitions are resolved, too: whether something was found or not."""
        folder, _ = self.build('gcc', 5)
        self.assertNotIn('places may lack', live.call('probe', 'show', '-x', folder / 'prog', 'node_new').stderr)
        (folder / 'sum.dwo').unlink()
        lost = rf'debug information of 1 of 2 units is in split files that cannot be used: {folder}/sum\.dwo: it is not there'
        for verb in (('show',), ('add', '-D')):
            run = live.call('probe', *verb, '-q', '-x', folder / 'prog', 'node_new')
            self.assertEqual(run.status, 0, str(run))
            self.assertRegex(run.stderr, f'warning: places may lack: {lost}')
            run = live.call('probe', *verb, '-x', folder / 'prog', 'node_sum:1')
            self.assertEqual(run.status, 125, str(run))
            self.assertRegex(run.stderr, f'fix: bring it back, or build again: {lost}')

    def test_stale(self):
        """Another compilation's file under the name is not taken for this one's."""
        folder, _ = self.build('clang', 5)
        shutil.copy(folder / 'main.dwo', folder / 'sum.dwo')
        run = live.call('probe', 'funcs', folder / 'prog')
        self.assertRegex(run.stderr, r'sum\.dwo: it is of another compilation')
        (folder / 'sum.dwo').write_text('no ELF file')
        self.assertRegex(live.call('probe', 'funcs', folder / 'prog').stderr, r'sum\.dwo: .*not an ELF file')
        (folder / 'sum.dwo').unlink()
        os.mkfifo(folder / 'sum.dwo')
        self.assertRegex(live.call('probe', 'funcs', folder / 'prog', timeout=10).stderr, r'sum\.dwo: .*regular file')


class Roots(live.LiveTest):
    def image(self):
        """A folder as an image unpacks into: a program that was built for /app there, and a link that leads out."""
        root = live.temp_path('image')
        (root / 'app').mkdir(parents=True)
        shutil.copy(build('gcc'), root / 'app' / 'prog')
        debug = root / 'usr' / 'lib' / 'debug' / 'app'
        debug.mkdir(parents=True)
        subprocess.run(['objcopy', '--only-keep-debug', root / 'app' / 'prog', debug / 'prog.debug'], check=True)
        subprocess.run(['objcopy', '--strip-all', f'--add-gnu-debuglink={debug / "prog.debug"}', root / 'app' / 'prog'],
                       check=True)
        sources = root / FOLDER.relative_to('/')
        shutil.copytree(FOLDER, sources)
        text = (FOLDER / 'sum.c').read_text()
        (sources / 'sum.c').write_text(text.replace('long sum = 0;', 'long sum = 0; /* inside */'))
        old = os.stat(FOLDER / 'sum.c').st_mtime - 10
        os.utime(sources / 'sum.c', (old, old))
        (root / 'out').symlink_to('/app/prog')
        (root / 'away').symlink_to('../../../../../../../../etc/hostname')
        return root

    def test_symfs(self):
        root = self.image()
        for path in ('/app/prog', 'app/prog'):
            run = live.call('probe', 'lines', '--symfs', root, path, 'node_sum')
            self.assertEqual(run.status, 0, str(run))
            self.assertIn('/* inside */', run.stdout, path)
        names = {f['name'] for f in listed('funcs', '--symfs', str(root), '/app/prog')['functions']}
        self.assertIn('node_get', names)

    def test_no_way_out(self):
        """A link of the image that leads to a file of the host is a link inside of the image."""
        root = self.image()
        for path in ('/away', '../../../../../../../../etc/hostname', str(build('gcc'))):
            run = live.call('probe', 'funcs', '--symfs', root, path)
            self.assertEqual(run.status, 125, str(run))
            self.assertRegex(run.stderr, rf'below {root}: cannot read .*: No such file')

    def test_scan(self):
        root = self.image()
        run = live.call('scan', '--symfs', root, '/app/prog')
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stdout, r'get=node_get')
        self.assertEqual(live.call('scan', '--symfs', root, '/away').status, 125)

    def test_target_ns(self):
        """What a process in a mount namespace of its own sees, under the names that it knows."""
        live.need_mount_namespace()
        root = self.image()
        target = live.Process(['unshare', '-m', 'sh', '-c',
                               f'mount --bind {root}/app /mnt && echo ready && exec sleep 60'])
        self.addCleanup(target.kill)
        target.wait_line('ready')
        self.assertFalse(os.path.exists('/mnt/prog'))
        shutil.copy(build('gcc'), root / 'app' / 'prog')
        answer = listed('funcs', '--target-ns', str(target.popen.pid), '-x', '/mnt/prog')
        self.assertIn('node_sum', {f['symbol'] for f in answer['functions']})
        run = live.call('scan', '--target-ns', target.popen.pid, '/mnt/prog')
        self.assertRegex(run.stdout, r'get=node_get')

    def test_refused(self):
        for words, status, text in ((('--symfs', '/nowhere', 'x'), 125, 'cannot enter /nowhere'),
                                    (('--target-ns', '999999999', 'x'), 125, 'no process'),
                                    (('--target-ns', 'x', 'x'), 2, 'no process id'),
                                    (('--symfs', '/', '--target-ns', '1', 'x'), 2, 'name two roots')):
            with self.subTest(words=words):
                run = live.call('probe', 'funcs', *words)
                self.assertEqual(run.status, status, str(run))
                self.assertIn(text, run.stderr)
