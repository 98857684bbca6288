# SPDX-License-Identifier: GPL-2.0-only
"""Debian's jansson and jq, whose counts are inlined at -O2: every place where the disassembly changes a count has its
point, and every event has the object that the program says; what cannot be armed is said. `./dev test real` only."""
import re
import subprocess
import unittest

import live
import sources
from test_marker import objects

PATCHES = live.SOURCE / 'tests' / 'live' / 'inlined'
JANSSON = ['-O2', '-DVERSION="2.14"', '-DHAVE_UNISTD_H', '-DHAVE_FCNTL_H', '-DHAVE_STDINT_H', '-DHAVE_ATOMIC_BUILTINS',
           '-DHAVE_SYS_TIME_H', '-DHAVE_GETTIMEOFDAY', '-DHAVE_GETPID', '-DINITIAL_HASHTABLE_ORDER=3', '-Isrc']
JQ = ['-O2', '-std=gnu99', '-DIEEE_8087', '-DHAVE_PTHREAD_KEY_CREATE', '-DHAVE_PTHREAD_ONCE', '-DHAVE_ATEXIT',
      '-DHAVE_ISATTY', '-DHAVE_MEMMEM', '-DHAVE_GMTIME_R', '-DHAVE_GMTIME', '-DHAVE_TIMEGM', '-DHAVE_STRPTIME',
      '-DHAVE_STRFTIME', '-DHAVE_ALLOCA_H', '-DHAVE_ALLOCA', '-DHAVE_MKSTEMP', '-I.', '-pthread']

# places, in one program, where no debug information says where the object is, or no probe can stand: told by name
REFUSED = {('gcc', 'jansson.patch'): 0, ('clang', 'jansson.patch'): 2, ('gcc', 'jq.patch'): 0,
           ('clang', 'jq.patch'): 0}


class Inlined(live.LiveTest):
    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        live.need_engine()

    @staticmethod
    def jansson(cc, *patches):
        """The library with the tests of its own for objects and arrays -> [argv]"""
        folder = sources.unpacked('jansson', *patches)
        template = (folder / 'src/jansson_config.h.in').read_text()
        text = re.sub(r'@json_have_\w+@', '1', template.replace('@json_inline@', 'inline'))
        (folder / 'src/jansson_config.h').write_text(text)
        (folder / 'src/jansson_private_config.h').write_text('')
        more = [str(PATCHES / 'shown.c')] * bool(patches)
        return [[sources.build(folder, name, cc, ('src/*.c', f'test/suites/api/{name}.c'), JANSSON, more)]
                for name in ('test_object', 'test_array', 'test_pack')]

    @staticmethod
    def jq(cc, *patches):
        folder = sources.unpacked('jq', *patches)
        lines = (folder / 'src/builtin.jq').read_text().splitlines()
        quoted = (line.replace('\\', '\\\\').replace('"', '\\"') for line in lines)
        (folder / 'src/builtin.inc').write_text(''.join(f'"{line}\\n"\n' for line in quoted))
        (folder / 'src/version.h').write_text('#define JQ_VERSION "1.6"\n')
        (folder / 'src/inject_errors.c').unlink()
        more = [str(PATCHES / 'shown.c')] * bool(patches) + ['-lm']
        return [[sources.build(folder, 'jq', cc, ('src/*.c',), JQ, more), '-n',
                 '[range(9) | {a: ., b: "x\\(.)"}] | map(select(.a > 3)) | sort_by(.b), (.[0] | keys), min_by(.a)']]

    @staticmethod
    def chains(path, addresses):
        """address -> the functions that run there, innermost first, with the lines where all but the first stand"""
        said = subprocess.run(['addr2line', '-afie', str(path), *map(hex, addresses)], capture_output=True, text=True,
                              check=True).stdout
        found = {}
        for block in re.split(r'(?m)^(?=0x)', said)[1:]:
            address, *lines = re.sub(r' \(discriminator \d+\)', '', block).splitlines()
            # what compilers split off, and inline after all, stands in its own function
            while len(lines) > 2 and lines[2] == lines[0]:
                lines = lines[2:]
            found[int(address, 16)] = (lines[0], *lines[2:])
        return found

    def changes(self, path, place):
        """Where the disassembly adds to, or takes from, a counter at this place of what a register points to."""
        code = subprocess.run(['objdump', '-d', '--no-show-raw-insn', str(path)], capture_output=True, text=True,
                              check=True).stdout
        return [int(a, 16) for a in re.findall(
            rf'(?m)^ +([0-9a-f]+):\t(?:lock )?(?:add|sub|inc|dec|xadd)[lq] +(?:\$0x1,|\$0xf+,|%\w+,)?'
            rf'{place}\(%r\w+\)', code)]

    def check_sites(self, make, functions, place, cc):
        for path, *_ in make(cc):
            points = set()
            for function in functions:
                run = live.call('probe', 'show', '-x', path, function)
                self.assertEqual(run.status, 0, str(run))
                points |= {int(a, 16) for a in re.findall(r':0x([0-9a-f]+)\s*$', run.stdout, re.M)}
            want = {a: c for a, c in self.chains(path, self.changes(path, place)).items() if c[0] in functions}
            self.assertEqual({c[0] for c in want.values()}, set(functions))
            have = set(self.chains(path, points).values())
            self.assertEqual({hex(a): c for a, c in want.items() if c not in have}, {}, f'{path.name}: {have}')

    def check_objects(self, make, spec, cc, patch):
        for argv in make(cc, PATCHES / patch):
            spool = live.temp_path('inlined.rt')
            run = live.trace('-w', spool, '-P', spec, '--', *argv)
            said = re.findall(r'^shown (\w+) (0x[0-9a-f]+)$', run.stderr, re.M)
            self.assertGreater(len(said), 50, str(run))
            have = [(op, number) for _, op, number in objects(spool)]
            trust = run.findings['trust']
            rest = iter([(op, int(number, 16)) for op, number in said])
            # in order, and nothing else: what is missing is of places that are refused by name
            self.assertEqual([event for event in have if event not in rest], [], str(run))
            self.assertEqual((trust['lost'], trust['nothing_seen']), (0, False), str(run))
            self.assertTrue(len(have) == len(said) or not trust['complete'] and trust['unarmed'], str(run))
            for refused in trust['unarmed']:
                self.assertRegex(refused, r'^\w+: inlined into \w+ \(line \d+\): '
                                          r'(optimised away|.*(can|cannot) hold a probe)')
            self.assertLessEqual(len(trust['unarmed']), REFUSED[cc, patch], trust['unarmed'])


def add(package, place, functions, spec):
    for cc in ('gcc', 'clang'):
        setattr(Inlined, f'test_{package}_sites_{cc}', lambda self, cc=cc: self.check_sites(
            getattr(self, package), functions, place, cc))
        setattr(Inlined, f'test_{package}_objects_{cc}', lambda self, cc=cc: self.check_objects(
            getattr(self, package), spec, cc, f'{package}.patch'))


add('jansson', '0x8', ('json_incref', 'json_decref'), 'type=json_t get=json_incref put=json_decref')
add('jq', '', ('jvp_refcnt_inc', 'jvp_refcnt_dec'), 'type=jv_refcnt get=jvp_refcnt_inc put=jvp_refcnt_dec')

if __name__ == '__main__':
    unittest.main()
