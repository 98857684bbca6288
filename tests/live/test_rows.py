# SPDX-License-Identifier: GPL-2.0-only
"""Stacks by unwind rows, of code without frame pointers, by both engines: frame by frame what gdb sees at the same hit
(unwound.py)."""
import glob
import shutil
import unittest

import live
import unwound

FLAGS = ('-O2', '-fomit-frame-pointer', '-mavx')
ENGINES = (['--engine', 'uprobe'], ['--engine', 'agent'])
WHOLE = ['--frames', '256']  # more than any of these has
# program, function, module
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
        said = int(live.call(program, late).stdout.split()[0])
        ways = [[*engine, *more] for engine in ENGINES for more in ([], WHOLE)]
        for options, result in unwound.compare([program, late], 'obj_get', program, ways):
            with self.subTest(options):
                self.assertEqual((result.events, result.gdb), (said, said))
                self.check(result, (unwound.NO_ROW, unwound.OTHER_STACK))
                # the generated code, and where a coroutine returns to, which nothing has called; the handler on its own stack
                self.assertEqual((result.ends[unwound.NO_ROW], result.ends[unwound.OTHER_STACK]), (2, 1))
                self.assertEqual(result.ends[unwound.DEPTH], 0 if options[-1] == '256' else 3)

    def test_gcc(self):
        self.fixture('gcc', FLAGS)

    def test_clang(self):
        self.fixture('clang', FLAGS)

    def test_with_frame_pointers(self):
        self.fixture('gcc', ('-O1', '-fno-omit-frame-pointer'))

    def test_many_ways(self):
        """What earlier walks have read is taken for this one's only where all of it is the same."""
        for flags in (('-O2',), ('-O1', '-fno-omit-frame-pointer')):
            program = live.program('ways', flags=flags)
            for options, result in unwound.compare([program], 'obj_get', program, ENGINES):
                with self.subTest(flags=flags, options=options):
                    self.assertEqual(result.events, 20000)
                    self.check(result)

    def test_usage(self):
        for frames in ('0', '257', 'all'):
            run = live.call('run', '--frames', frames, '--', 'true')
            self.assertEqual(run.status, 2, str(run))
            self.assertRegex(run.stderr, r'--frames=\w+ is no number of frames(?s:.*)fix: 1 to 256')

    def test_real_programs(self):
        if not live.REAL:
            self.skipTest('heavy: run.py --real')
        for name, (command, function, module) in REAL.items():
            path = '/usr/lib/x86_64-linux-gnu/' + module
            if not shutil.which(command[0]):
                print(f'{name}: not installed')
                continue
            ways = [[*engine, *WHOLE] for engine in ENGINES]
            for options, result in unwound.compare(command, function, path, ways, hits=5000):
                print(f'{name} {" ".join(options)}: {sum(result.ends.values())} stacks, {len(result.different)} differ; '
                      f'{result.ends[unwound.ROOT]} down to the start, {result.ends[unwound.DEPTH]} cut', flush=True)
                with self.subTest(name, options=options):
                    self.check(result)
                    self.assertEqual(result.ends[unwound.DEPTH], 0)
                    self.assertGreater(result.ends[unwound.ROOT], 100)


if __name__ == '__main__':
    unittest.main()
