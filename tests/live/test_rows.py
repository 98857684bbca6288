# SPDX-License-Identifier: GPL-2.0-only
"""Stacks by unwind rows, of code without frame pointers: frame by frame what gdb sees at the same hit (unwound.py)."""
import glob
import shutil
import unittest

import live
import unwound

FLAGS = ('-O2', '-fomit-frame-pointer', '-mavx')
# program, function, module; what lies deeper than 16 frames is compared as far as that
REAL = {
    'python3': (['/usr/bin/python3.11', '-S', live.SOURCE / 'tests' / 'live' / 'walked.py'], 'malloc', 'libc.so.6'),
    'gdb': (['/usr/bin/gdb', '-nx', '-batch', '-ex', 'help'], 'malloc', 'libc.so.6'),
    'gio': (['/usr/bin/gio', 'info', '/usr'], 'malloc', 'libc.so.6'),
    'objects of gio': (['/usr/bin/gio', 'list', '/usr/share'], 'g_object_unref', 'libgobject-2.0.so.0'),
    'postgres': (glob.glob('/usr/lib/postgresql/*/bin/postgres')[:1] + ['--describe-config'], 'malloc', 'libc.so.6'),
    'perf': (['/usr/bin/perf', 'list', 'sw'], 'malloc', 'libc.so.6'),
}


class Rows(unittest.TestCase):
    def setUp(self):
        live.need_engine()
        if not shutil.which('gdb'):
            self.skipTest('gdb is not installed')

    def check(self, result, why=()):
        """Every stack is exact; all but those of the ends in why go down to the outermost frame, or are 16 frames long."""
        self.assertEqual(result.different, [])
        self.assertEqual(result.by_rows, sum(result.ends.values()))
        self.assertEqual(set(result.ends) - {unwound.ROOT, unwound.DEPTH}, set(why))

    def fixture(self, cc, flags):
        program = live.program('walked', cc, flags)
        late = program.parent / 'late.so'
        live._compile(live.PROGRAMS / 'walked-late.c', late, cc.replace('++', ''), flags)
        result = unwound.compare([program, late], 'obj_get', program)
        said = int(live.call(program, late).stdout.split()[0])
        self.assertEqual((result.events, result.gdb), (said, said))
        self.check(result, (unwound.NO_ROW, unwound.OTHER_STACK))
        # the generated code, and where a coroutine returns to, which nothing has called; the handler on its own stack
        self.assertEqual((result.ends[unwound.NO_ROW], result.ends[unwound.OTHER_STACK]), (2, 1))
        self.assertEqual(result.ends[unwound.DEPTH], 3)

    def test_gcc(self):
        self.fixture('gcc', FLAGS)

    def test_clang(self):
        self.fixture('clang', FLAGS)

    def test_with_frame_pointers(self):
        self.fixture('gcc', ('-O1', '-fno-omit-frame-pointer'))

    def test_real_programs(self):
        if not live.REAL:
            self.skipTest('heavy: run.py --real')
        for name, (command, function, module) in REAL.items():
            path = '/usr/lib/x86_64-linux-gnu/' + module
            if not shutil.which(command[0]):
                print(f'{name}: not installed')
                continue
            result = unwound.compare(command, function, path, hits=5000)
            print(f'{name}: {sum(result.ends.values())} stacks, {len(result.different)} differ; '
                  f'{result.ends[unwound.ROOT]} whole, {result.ends[unwound.DEPTH]} of 16 frames')
            with self.subTest(name):
                self.check(result)


if __name__ == '__main__':
    unittest.main()
