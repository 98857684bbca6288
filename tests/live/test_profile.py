# SPDX-License-Identifier: GPL-2.0-only
"""report on samples: the hot function and its callers, in text and in JSON that fits its schema."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import jsonschema

import live

HOT = r'''
volatile long x;
__attribute__((noinline)) void leaf(long n) { for (long i = 0; i < n; i++) x += i; x = x * 3; }
__attribute__((noinline)) void warm(long n) { leaf(n); x++; }
__attribute__((noinline)) void cold(long n) { for (long i = 0; i < n; i++) x ^= i; }
int main(void) { for (int k = 0; k < 60; k++) { warm(3000000); cold(300000); } return 0; }
'''


class Profile(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        live.need_engine()
        source = pathlib.Path(live.temp_path('hot.c'))
        source.write_text(HOT)
        cls.source = source
        cls.program = str(live.temp_path('hot'))
        cls.comm = pathlib.Path(cls.program).name
        subprocess.run(['gcc', '-g', '-O0', '-fno-omit-frame-pointer', '-o', cls.program, str(source)], check=True)
        cls.recording = live.temp_path('hot.data')
        done = live.call('record', '-e', 'cpu-clock', '-F', '2000', '-g', '-o', cls.recording, '--', cls.program)
        assert done.status == 0, str(done)

    def profile(self, *args):
        done = live.call('report', '--samples', '--json', '-i', self.recording, *args)
        self.assertEqual(done.status, 0, str(done))
        return json.loads(done.stdout)

    def test_json_fits_its_schema(self):
        schema = json.loads((live.SOURCE / 'docs' / 'profile.schema.json').read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(self.profile(), schema)

    def test_hot_function_and_callers(self):
        event, = self.profile()['events']
        self.assertEqual((event['name'], event['unit']), ('cpu-clock', 'ns'))
        hot = event['rows'][0]
        self.assertEqual((hot['comm'], hot['function'], hot['module']), (self.comm, 'leaf', self.program))
        self.assertGreater(hot['samples'], 0.5 * event['samples'])
        self.assertEqual(sum(row['samples'] for row in event['rows']), event['samples'])
        self.assertEqual(sum(row['period'] for row in event['rows']), event['period'])
        caller = hot['callers'][0]
        self.assertEqual(caller['function'], 'warm')
        self.assertEqual(caller['callers'][0]['function'], 'main')
        warm = next(row for row in event['rows'] if row['function'] == 'warm')
        self.assertGreaterEqual(warm['total_samples'], caller['samples'])

    def test_standard_input(self):
        """What perf sends through a pipe, without a file between: the report of the same bytes in a file."""
        if not shutil.which('perf'):
            self.skipTest('perf is not installed')
        stream = live.temp_path('stream.data')
        with open(stream, 'wb') as f:
            subprocess.run(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', '2000', '-g', '-o', '-', self.program],
                           stdout=f, stdin=subprocess.DEVNULL, check=True)
        for path in stream, self.recording:
            command = [live.REFTRACE, 'report', '--samples', '--json', '-i']
            of_file = subprocess.run([*command, path], capture_output=True, check=True).stdout
            with subprocess.Popen(['cat', path], stdout=subprocess.PIPE) as cat:
                piped = subprocess.run([*command, '-'], stdin=cat.stdout, capture_output=True, check=False)
            self.assertEqual((piped.returncode, piped.stderr), (0, b''))
            events = [json.loads(text)['events'] for text in (of_file, piped.stdout)]
            self.assertEqual(*events)
            self.assertEqual(events[0][0]['rows'][0]['function'], 'leaf')
        nowhere = subprocess.run([*command, '-'], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                 env={**os.environ, 'TMPDIR': '/nowhere'})
        self.assertEqual(nowhere.returncode, 125, nowhere.stderr)
        self.assertIn('set TMPDIR', nowhere.stderr)

    def test_text(self):
        done = live.call('report', '-i', self.recording)
        self.assertEqual(done.status, 0, str(done))
        rows = [line for line in done.stdout.splitlines() if '%' in line]
        self.assertRegex(rows[0], f'{self.comm} +{self.comm} +leaf$')
        self.assertRegex(rows[1], r'% warm$')
        self.assertNotIn('\033', done.stdout)

    def test_annotate(self):
        done = live.call('annotate', '-i', self.recording)
        self.assertEqual(done.status, 0, str(done))
        self.assertIn(f'leaf in {self.program}', done.stdout)
        self.assertIn('hot.c', done.stdout)
        missing = live.call('annotate', '-i', self.recording, 'nosuch')
        self.assertEqual(missing.status, 125, str(missing))
        self.assertIn('E02', missing.stderr)
        self.assertIn('fix:', missing.stderr)

    def test_annotate_where_the_kernel_is_hotter(self):
        """Its functions lie in no file: the hottest that can be shown is, and the other one named."""
        source, program, recording = (live.temp_path(n) for n in ('asks.c', 'asks', 'asks.data'))
        source.write_text('#include <sys/random.h>\nvolatile long x; static char b[1 << 16];\n'
                          '__attribute__((noinline)) void own(long n) { for (long i = 0; i < n; i++) x += i; }\n'
                          'int main(void) { for (int i = 0; i < 4000; i++) { getrandom(b, sizeof(b), 0); own(20000); } return 0; }\n')
        subprocess.run(['gcc', '-g', '-O1', '-o', program, source], check=True)
        done = live.call('record', '-q', '-e', 'cpu-clock', '-F', '2000', '-o', recording, '--', program)
        self.assertEqual(done.status, 0, str(done))
        done = live.call('annotate', '-i', recording)
        self.assertEqual(done.status, 0, str(done))
        self.assertIn('own', done.stdout.splitlines()[0])
        self.assertRegex(done.stderr, r"^reftrace: \d+ samples, more than in the function shown, are in the kernel's \w+\n$")

    def test_annotate_after_the_program_changed(self):
        """Another file is where the program was, and no cache has the old one: said, with the way out."""
        folder = live.temp_path('changed')
        folder.mkdir()
        program = folder / 'hot'
        subprocess.run(['gcc', '-g', '-O0', '-Wl,--build-id=0x' + os.urandom(20).hex(), '-o', program, self.source], check=True)
        recording = folder / 'x.data'
        done = live.call('record', '-N', '-F', '2000', '-e', 'cpu-clock', '-o', recording, '--', program)
        self.assertEqual(done.status, 0, str(done))
        shutil.copy(live.program('server'), program)
        for words in [], ['leaf']:
            done = live.call('annotate', '-i', recording, *words)
            self.assertIn('hot: build-id differs', done.stderr, str(done))
            self.assertIn('fix: look below another root: --symfs DIR', done.stderr)
        self.assertEqual(done.status, 125, str(done))
        self.assertNotIn('leaf in', done.stdout)
        os.replace(program, folder / 'other')
        self.assertIn('cannot read', live.call('annotate', '-i', recording, 'leaf').stderr)

    def test_stripped(self):
        """A file without symbols is named, with the way out; that of a file which could not be read is another one."""
        folder = live.temp_path('stripped')
        folder.mkdir()
        program = folder / 'bare'
        subprocess.run(['gcc', '-s', '-O0', '-o', program, self.source], check=True)
        recording = folder / 'x.data'
        done = live.call('record', '-N', '-F', '2000', '-e', 'cpu-clock:u', '-o', recording, '--', program)
        self.assertEqual(done.status, 0, str(done))
        said = 'samples? in bare: it has no symbols there\n  fix: install its debug symbols'
        done = live.call('report', '-i', recording)
        self.assertRegex(done.stdout, r'\nnames: \d+ ' + said)
        done = live.call('annotate', '-i', recording, 'leaf')
        self.assertEqual(done.status, 125, str(done))
        self.assertRegex(done.stderr, r'no function is known: \d+ in bare: it has no symbols there\n +fix: install its debug symbols')
        self.assertNotIn('no symbols there', live.call('report', '-i', self.recording).stdout)
        program.unlink()
        done = live.call('report', '-i', recording)
        self.assertIn('names: bare: cannot read', done.stdout)
        self.assertNotIn('bare: it has no symbols there', done.stdout)

    def test_folder(self):
        """perf record --threads makes one."""
        folder = live.temp_path('threads.data')
        done = subprocess.run(['perf', 'record', '-q', '--threads', '-a', '-F', '99', '-e', 'cpu-clock', '-o', folder, 'true'],
                              capture_output=True, text=True, check=False)
        if done.returncode or not folder.is_dir():
            self.skipTest(f'this perf makes no folder: {done.stderr}')
        for path in (folder, folder / 'data'):
            done = live.call('report', '-i', path)
            self.assertEqual(done.status, 125, str(done))
            self.assertIn('perf record --threads', done.stderr)

    def test_a_recording_without_samples(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        recording = live.temp_path('nothing.data')
        done = live.call('record', '-o', recording, *live.told(path, 'ok'), '--', path, 'ok')
        self.assertEqual(done.status, 0, str(done))
        done = live.call('report', '--samples', '-i', recording)
        self.assertEqual(done.status, 24, str(done))
        self.assertIn('holds no sample', done.stderr)


if __name__ == '__main__':
    unittest.main()
