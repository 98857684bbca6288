# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kmod, which counts the references of its modules and contexts by hand, with refcnt/mark.h alone (marks/):
every operation is seen, with nothing told, and a missing put is named. `./dev test real` only."""
import collections
import re
import shutil
import subprocess
import unittest

import live
import sources
from test_marker import objects

MARKS = live.SOURCE / 'tests' / 'live' / 'marks'
GUILTY = 'modinfo_alias_do'
# what configure would find out, and no compression
FLAGS = ['-O2', '-DKMOD_EXPORT=', '-DENABLE_LOGGING=1', '-DHAVE_DECL_BE32TOH=1', '-DHAVE_DECL_STRNDUPA=1',
         '-DHAVE_NORETURN=1', '-DHAVE_SECURE_GETENV=1', '-DHAVE_STATIC_ASSERT=1', '-DHAVE_STRUCT_STAT_ST_MTIM=1',
         '-DHAVE_LINUX_MODULE_H=1', '-DPACKAGE="kmod"', '-DVERSION="30"', '-DSYSCONFDIR="/etc"',
         '-DDISTCONFDIR="/usr/lib"', '-DMODULE_DIRECTORY="/lib/modules"', '-DKMOD_FEATURES="-"', '-I.']
FILES = ('libkmod/*.c', 'shared/*.c', 'tools/*.c')
MODULE = '''
static const char info[] __attribute__((section(".modinfo"), used)) =
        "name={name}\\0depends={depends}\\0alias=al:{name}\\0license=GPL\\0vermagic=1.0";
int from_{name};
{use}
'''


def modules(kmod):
    """A tree of modules: a chain in which each needs the one before, and some alone, of which two are damaged."""
    root = live.temp_path('modules')
    folder = root / 'lib/modules/1.0/k'
    folder.mkdir(parents=True)
    needs = {f'chain{i}': f'chain{i - 1}' if i else '' for i in range(6)} | {f'alone{i}': '' for i in range(6)}
    for name, depends in needs.items():
        use = f'extern int from_{depends}; void *use_{name}(void) {{ return &from_{depends}; }}' if depends else ''
        subprocess.run([live.compiler('gcc'), '-x', 'c', '-c', '-', '-o', str(folder / f'{name}.ko')], check=True,
                       text=True, input=MODULE.format(name=name, depends=depends, use=use))
    subprocess.run([kmod('depmod'), '-b', str(root), '1.0'], check=True, stderr=subprocess.DEVNULL)
    for name in ('alone3', 'alone4'):
        (folder / f'{name}.ko').write_text('no ELF file\n')
    return root


class Marks(live.LiveTest):
    cc = 'gcc'
    # the mark is inlined into it, of which nothing is left that tells: its own call is the last that is seen
    without_names = 'kmod_module_get_module'

    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        live.need_engine()

    def made(self, *patches, shown=False, link=True):
        """-> builds NAME: a stripped kmod that is called so, and so does what NAME does"""
        folder = sources.unpacked('kmod', MARKS / 'kmod.patch', *(MARKS / p for p in patches))
        include = [f'-I{MARKS / "shown"}'] * shown + [f'-I{live.SOURCE / "include"}']
        self.unstripped = unstripped = sources.build(folder, 'kmod', self.cc, FILES, FLAGS + include)
        done = {}

        def kmod(name):
            if name not in done:
                done[name] = sources.stripped(unstripped, name, link)
            return done[name]
        return kmod

    @staticmethod
    def work(kmod, root):
        """Real work: [argv]"""
        chain = [f'al:chain{i}' for i in range(6)]
        alone = [f'al:alone{i}' for i in range(6)]
        modprobe = [kmod('modprobe'), '-C', '/dev/null', '-d', root, '-S', '1.0']
        return [[kmod('depmod'), '-n', '-b', root, '1.0'],
                [*modprobe, '-D', '-a', 'chain5', 'alone1', 'chain2'],
                [*modprobe, '-R', '-a', *chain],
                [kmod('modinfo'), '-b', root, '-k', '1.0', 'chain3', 'none', *chain, *alone]]

    def test_each_operation(self):
        """Type, operation and object of each, in order, are what the program says of itself."""
        kmod = self.made(shown=True)
        root = modules(kmod)
        for argv in self.work(kmod, root):
            with self.subTest(argv=argv[0].name):
                spool = live.temp_path('kmod.rt')
                run = live.trace('-w', spool, '--', *argv)
                said = re.findall(r'^mark (\w+) (\w+) (0x[0-9a-f]+)$', run.stderr, re.M)
                self.assertEqual(objects(spool), [(kind, op, int(number, 16)) for kind, op, number in said], str(run))
                self.assertGreater(len(said), 20)
                self.assert_clean_trust(run)
                self.assert_guilty(run, None)

    def test_counts(self):
        """As it would be shipped: as many as the build that says so, and as bpftrace counts in the very same file."""
        shown, kmod = self.made(shown=True), self.made()
        root = modules(kmod)
        for truth, argv in zip(self.work(shown, root), self.work(kmod, root)):
            with self.subTest(argv=argv[0].name):
                said = subprocess.run(truth, capture_output=True, text=True, env=live.clean_env(), check=False).stderr
                want = collections.Counter(re.findall(r'^mark \w+ (\w+) 0x', said, re.M))
                self.assertTrue(want['get'] and want['put'], said)
                run = live.trace('--', *argv)
                have = collections.Counter()
                for point in run.findings['points']:
                    # returns that only tell who hands an object on count nothing
                    if point['op'] != 'move':
                        have[point['op']] += point['events']
                self.assertEqual(have, want, str(run))
                self.assert_clean_trust(run)
                self.assert_guilty(run, None)
                if shutil.which('bpftrace'):
                    self.assertEqual(self.by_bpftrace(argv), want)

    @staticmethod
    def by_bpftrace(argv):
        program = ' '.join(f'usdt:{argv[0]}:refcnt:{op} {{ @["{op}"] = count(); }}' for op in ('new', 'get', 'put'))
        done = subprocess.run(['bpftrace', '-e', program, '-c', ' '.join(map(str, argv))], text=True,
                              capture_output=True, env=live.clean_env(), check=False, timeout=120)
        return collections.Counter({op: int(n) for op, n in re.findall(r'^@\[(\w+)\]: (\d+)$', done.stdout, re.M)})

    def test_missing_put(self):
        """It forgets a module where its file is damaged: that function is named, first."""
        kmod = self.made('kmod-missing-put.patch')
        argv = self.work(kmod, modules(kmod))[-1]
        run = live.trace('--', *argv)
        first = run.findings['findings'][0]
        self.assertEqual((first['type'], first['kind'], first['objects'], first['guilty']['function']),
                         ('kmod_module', 'leak', 2, GUILTY), str(run))
        self.assertTrue(first['guilty']['file'].endswith('tools/modinfo.c'), first['guilty'])
        self.assertIn(GUILTY, '\n'.join(run.report.splitlines()[:5]), run.report)
        self.assert_clean_trust(run)

    def test_missing_put_without_names(self):
        """Stripped of everything: the address that is named is in that function, or in what took the reference."""
        kmod = self.made('kmod-missing-put.patch', link=False)
        run = live.trace('--', *self.work(kmod, modules(kmod))[-1])
        found = [f for f in run.findings['findings'] if f['type'] == 'kmod_module']
        self.assertEqual([(f['kind'], f['objects']) for f in found], [('leak', 2)], str(run))
        of_modules = run.report[run.report.index('struct kmod_module:'):]
        address = re.search(r'missing put in \S*modinfo\+(0x[0-9a-f]+)', of_modules)
        # the call before the address
        names = subprocess.run(['addr2line', '-fsie', str(self.unstripped), hex(int(address[1], 16) - 1)],
                               capture_output=True, text=True, check=True).stdout.split()
        self.assertIn(self.without_names, names, str(run))


class MarksClang(Marks):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
