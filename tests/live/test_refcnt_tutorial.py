# SPDX-License-Identifier: GPL-2.0-only
"""What the manual shows is in the examples, and these do what it says; what is installed serves by pkg-config."""
import os
import re
import subprocess
import unittest

import live
import refcnt_built

EXAMPLES = live.SOURCE / 'examples' / 'refcnt'
MAN = live.SOURCE / 'man'


def blocks(page):
    """C in a page, as it would be shown."""
    text = (MAN / page).read_text()
    return re.findall(r'^```\n(.*?)^```$', text, re.M | re.S)


def squeezed(text):
    return re.sub(r'\s+', ' ', text).strip()


OUT = '1\n-1\n4\n-1\n4\n'


class Tutorial(live.LiveTest):
    cc = 'gcc'

    def built(self, name, mode):
        path = live.temp_path(name)
        subprocess.run([live.compiler(self.cc), '-w', '-g', *refcnt_built.flags(mode), str(EXAMPLES / f'{name}.c'), '-o',
                        str(path), *refcnt_built.libraries(mode)], check=True)
        return path

    def setUp(self):
        refcnt_built.need_library()

    def test_shown(self):
        """Each piece of code of the tutorial is in one of the examples."""
        examples = [squeezed(path.read_text()) for path in sorted(EXAMPLES.glob('*.c'))]
        shown = [block for block in blocks('refcnt-tutorial.7.scd') if not block.startswith('refcnt:')]
        self.assertGreater(len(shown), 4)
        for block in shown:
            self.assertTrue(any(squeezed(block) in example for example in examples), block)

    def test_does(self):
        """before and after print the same; who is asked names measure() as it says there."""
        before = self.built('before', 'plain')
        self.assertEqual(refcnt_built.run(before), (0, OUT, ''))
        want = refcnt_built.plain([b for b in blocks('refcnt-tutorial.7.scd') if b.startswith('refcnt:')][0])
        for mode in ('tracking', 'preloaded', 'alias'):
            status, out, said = refcnt_built.run(self.built('after', mode), mode=mode)
            self.assertEqual((status, out), (0, OUT), said)
            self.assertEqual(refcnt_built.plain(said), want.replace('probably ', '') if mode == 'alias' else want)
        self.assertEqual(refcnt_built.run(self.built('after', 'plain')), (0, OUT, ''))
        for mode in refcnt_built.MODES:
            self.assertEqual(refcnt_built.run(self.built('fields', mode), mode=mode), (0, OUT, ''), mode)

    def test_traced(self):
        live.need_engine()
        for level in ('-O0', '-O2'):
            path = live.temp_path('after')
            subprocess.run([live.compiler(self.cc), '-w', level, '-g', *refcnt_built.flags('plain'), str(EXAMPLES / 'after.c'), '-o',
                            str(path)], check=True)
            run = live.trace('--', path)
            # the word that a plain build leaves to the kernel is no finding
            self.assertEqual([(f['type'], f['kind'], f['objects'], f['guilty']['function']) for f in run.findings['findings']],
                             [('word', 'leak', 2, 'measure')], str(run))

    def test_synopsis(self):
        path = live.temp_path('synopsis.c')
        path.write_text('#include <unistd.h>\n' + blocks('refcnt.3.scd')[0] +
                        'int main(void) { struct conn *c = conn_alloc(); return c && conn_put(c) ? 0 : 1; }\n')
        subprocess.run([live.compiler(self.cc), '-Wall', '-Werror', *refcnt_built.flags('plain'), str(path), '-o', str(path)[:-2]], check=True)

    def test_installed(self):
        """Headers, both libraries and pkg-config's file, from a tree of their own."""
        root = live.temp_path('root')
        done = subprocess.run(['meson', 'install', '-C', str(live.BUILD), '--no-rebuild', '--destdir', str(root), '--quiet'],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise unittest.SkipTest(f'not everything is built: {done.stderr.strip()[-200:]}')
        file = next(root.rglob('refcnt.pc'))
        env = {**os.environ, 'PKG_CONFIG_PATH': str(file.parent), 'PKG_CONFIG_SYSROOT_DIR': str(root)}

        def words(*options):
            return subprocess.run(['pkg-config', *options, 'refcnt'], env=env, capture_output=True, text=True, check=True).stdout.split()
        path = live.temp_path('installed')
        tracking = [live.compiler(self.cc), '-w', '-O1', '-g', *refcnt_built.FRAMES, '-DREFCNT_MODE=REFCNT_TRACKING', str(EXAMPLES / 'after.c'), '-o',
                    str(path), *words('--cflags', '--libs')]
        subprocess.run(tracking, check=True)
        said = refcnt_built.run(path, LD_LIBRARY_PATH=str(next(root.rglob('librefcnt.so.1')).parent))[2]
        self.assertIn('refcnt: LEAK: word', said)
        subprocess.run([*tracking, '-static', *words('--static', '--libs')], check=True)
        self.assertIn('refcnt: LEAK: word', refcnt_built.run(path)[2])
        self.assertTrue(list(root.rglob('librefcnt-track.so')) and list(root.rglob('refcnt/mark.h')))


class TutorialClang(Tutorial):
    cc = 'clang'


if __name__ == '__main__':
    unittest.main()
