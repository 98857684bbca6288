# SPDX-License-Identifier: GPL-2.0-only
"""Programs that have nothing to trace do not get the agent; those that load what has, however they come to it, are traced, or
the report says which was not."""
import subprocess
import unittest

import live

THING = r'''
#include <stdlib.h>
struct thing { int refs; };
struct thing *thing_new(void) { struct thing *t = calloc(1, sizeof(*t)); t->refs = 1; return t; }
struct thing *thing_ref(struct thing *t) { t->refs++; return t; }
void thing_unref(struct thing *t) { if (!--t->refs) free(t); }
__attribute__((noinline)) void forgetful(struct thing *t) { thing_ref(t); }
void use_thing(void)
{
    for (int i = 0; i < 8; i++) {
        struct thing *t = thing_new();
        if (i % 4 == 0)
            forgetful(t);
        thing_ref(t);
        thing_unref(t);
        thing_unref(t);
    }
}
'''
SPEC = 'type=thing new=thing_new:ret get=thing_ref:1 put=thing_unref:1'
OPEN = r'''
#include <dlfcn.h>
#include <stdio.h>
void use(void *library) { void (*f)(void); if (!library) { puts(dlerror()); return; } f = dlsym(library, "use_thing"); f(); }
'''
PROGRAMS = {
    'linked': (['-L.', '-lthing'], 'void use_thing(void); int main(void) { use_thing(); return 0; }'),
    # given its name; the name in its code; by another library; by the C library itself
    'told': ([], OPEN + 'int main(int c, char **v) { if (c > 1) use(dlopen(v[1], RTLD_NOW)); return 0; }'),
    'knows': ([], OPEN + 'int main(int c, char **v) { if (c > 1) use(dlopen("libthing.so", RTLD_NOW)); return 0; }'),
    'helped': (['-L.', '-lhelp'], 'void help(const char *n); int main(int c, char **v) { if (c > 1) help(v[1]); return 0; }'),
    'converts': ([], '#include <iconv.h>\nint main(int c, char **v) { if (c > 1) iconv_open("UTF-8", v[1]); return 0; }'),
}
# a module of iconv(3), which the C library loads where no program and no library asks for it
MODULE = r'''
void use_thing(void);
int gconv_init(void *step) { use_thing(); return 1; }
void gconv_end(void *step) { }
int gconv(void) { return 0; }
'''


@live.alone('a file that perf links into its cache looks like another one, and is traced: the C library, too')
class Bystander(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        live.need_engine()
        cls.folder = live.temp_path('bystander')
        cls.folder.mkdir()
        cls.build('libthing.so', THING, '-shared', '-fPIC')
        cls.build('libhelp.so', OPEN + 'void help(const char *n) { use(dlopen(n, RTLD_NOW)); }', '-shared', '-fPIC')
        cls.build('MYCS.so', MODULE, '-shared', '-fPIC', '-L.', '-lthing')
        for name, (libraries, code) in PROGRAMS.items():
            cls.build(name, code, *libraries)
        (cls.folder / 'gconv-modules').write_text('module MYCS// INTERNAL MYCS 1\nmodule INTERNAL MYCS// MYCS 1\n')
        cls.env = live.clean_env(LD_LIBRARY_PATH=str(cls.folder), GCONV_PATH=str(cls.folder))

    @classmethod
    def build(cls, name, code, *flags):
        (cls.folder / 'x.c').write_text(code)
        subprocess.run(['gcc', '-g', '-O1', '-w', 'x.c', '-o', name, *flags], cwd=cls.folder, check=True)

    def run_script(self, script, *args):
        return live.trace(*args, '--', 'sh', '-c', script, cwd=self.folder, env=self.env)

    def leaks(self, run):
        self.assertIsNotNone(run.findings, str(run))
        return [(f['guilty']['function'], f['objects']) for f in run.findings['findings']]

    def test_known_programs_do_not_get_the_agent(self):
        if live.ENGINE == 'uprobe':
            raise unittest.SkipTest('engine uprobe puts nothing into a process')
        # without folders of its own, and with them
        for env in (self.env, {name: value for name, value in self.env.items() if name != 'LD_LIBRARY_PATH'}):
            with self.subTest(env=env.get('LD_LIBRARY_PATH')):
                run = live.trace('-P', SPEC, '--', 'sh', '-c',
                                 f'cat /proc/self/maps; echo -; cat /proc/self/maps; LD_LIBRARY_PATH={self.folder} ./linked',
                                 cwd=self.folder, env=env)
                first, second = run.stdout.split('\n-\n')
                self.assertIn('reftrace-agent', first)
                self.assertNotIn('reftrace-agent', second)
                self.assertEqual(self.leaks(run), [('forgetful', 2)], str(run))
                self.assert_clean_trust(run)

    def test_what_a_program_opens_is_traced(self):
        for name in ('told', 'knows', 'helped'):
            for first in (f'./{name}', f'./{name}; ./{name}', './linked'):
                for scan in (False, True):
                    with self.subTest(name=name, first=first, scan=scan):
                        run = self.run_script(f'{first}; ./{name} libthing.so', *(() if scan else ('-P', SPEC)))
                        self.assertEqual(self.leaks(run), [('forgetful', 4 if 'linked' in first else 2)], str(run))
                        self.assertEqual(run.findings['trust']['lost'], 0, str(run))
                        self.assertTrue(run.findings['trust']['complete'], str(run))

    def test_what_the_c_library_opens_is_told(self):
        """Nothing tells of it before: the first one is missed, said so, and the next are traced."""
        run = self.run_script('./converts; ./converts; ./converts MYCS', '-P', SPEC)
        self.assertFalse(run.findings['trust']['complete'], str(run))
        self.assertIn('(converts): it has loaded libthing.so, which its files do not name', run.report)
        run = self.run_script('./converts; ./converts MYCS; ./converts MYCS', '-P', SPEC)
        # of one process only, and as not all was seen nobody is accused
        self.assertIn('8 objects (struct thing), 6 released, 2 alive at the end', run.report)
        self.assertEqual(self.leaks(run), [], str(run))
        self.assertFalse(run.findings['trust']['complete'], str(run))
        # the first one ever is traced in any case
        run = self.run_script('./converts MYCS; ./converts MYCS', '-P', SPEC)
        self.assertEqual(self.leaks(run), [('forgetful', 4)], str(run))
        self.assert_clean_trust(run)

    def test_children_of_bystanders(self):
        run = self.run_script('sh -c "(:); (./linked); :"; sh -c "(:); (./linked); exec ./linked"', '-P', SPEC)
        self.assertEqual(self.leaks(run), [('forgetful', 6)], str(run))
        self.assert_clean_trust(run)

    def test_another_file_in_its_place(self):
        """Libraries are built while the suite runs: what was harmless is replaced."""
        (self.folder / 'harmless').mkdir(exist_ok=True)
        self.build('harmless/libthing.so', 'void use_thing(void) { }', '-shared', '-fPIC')
        shadow = self.folder / 'now'
        shadow.mkdir(exist_ok=True)
        script = (f'export LD_LIBRARY_PATH={shadow}; cp harmless/libthing.so {shadow}; ./linked; ./linked; '
                  f'cp --remove-destination libthing.so {shadow}; ./linked')
        run = self.run_script(script, '-P', SPEC)
        self.assertEqual(self.leaks(run), [('forgetful', 2)], str(run))
        self.assert_clean_trust(run)


if __name__ == '__main__':
    unittest.main()
