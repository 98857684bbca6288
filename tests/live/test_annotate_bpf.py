# SPDX-License-Identifier: GPL-2.0-only
"""annotate on BPF sub-programs that are gone: the hot line of each is the one that its source marks HOT."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import live

SUBS = ('shifting', 'dividing', 'multiplying')
SOURCE = live.PROGRAMS / 'bpf-hot.bpf.c'


def hot_lines(function):
    """Line numbers that the source marks, and that of the loop around them."""
    lines = SOURCE.read_text().splitlines()
    marked = {i for i, line in enumerate(lines, 1) if line.endswith(f'HOT {function} */')}
    return marked | {min(marked) - 1}


def build(target, *command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise unittest.SkipTest(f'{target} cannot be built: {done.stderr[-300:]}')


def record_program(cls, source):
    """Gives cls the object of a BPF program, a recording of it at work, and what record said of it."""
    live.need_engine()
    clang = live.compiler('clang')
    if not clang:
        raise unittest.SkipTest('clang is not installed')
    cls.object, loader = live.temp_path('bpf.o'), live.temp_path('bpf-hot')
    build('the BPF object', clang, '-target', 'bpf', '-mcpu=v3', '-g', '-O2', '-c', source, '-o', cls.object)
    build('the loader', 'gcc', '-O1', '-w', '-D_GNU_SOURCE', live.PROGRAMS / 'bpf-hot.c', '-o', loader, '-lbpf')
    cls.recording = live.temp_path('bpf.data')
    # one step: no manual load, start or stop; the program unloads before the recording ends
    cls.record = live.call('record', '-a', '-e', 'cpu-clock', '-F', '4000', '-o', cls.recording, '--', loader,
                           cls.object, '100000', timeout=120)
    if cls.record.status:
        raise AssertionError(str(cls.record))


@live.alone('it records all processes')
class AnnotateBpf(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        record_program(cls, SOURCE)

    def annotate(self, *args):
        done = live.call('annotate', '-i', self.recording, *args)
        self.assertEqual(done.status, 0, str(done))
        return done.stdout

    def test_every_program_was_kept(self):
        self.assertIn('unloaded', self.record.stdout)
        self.assertNotIn('may be missing', self.record.stderr)

    def test_hot_line_of_each_sub_program(self):
        for function in SUBS:
            with self.subTest(function=function):
                text = self.annotate('--all', function)
                self.assertTrue(text.startswith(f'{function} in bpf program'), text[:200])
                # source lines: "hits percent line text"
                hits = {}
                for count, line in re.findall(r'^ *(\d+) +[\d.]+ % {3,7}(\d+)  ', text, re.M):
                    hits[int(line)] = hits.get(int(line), 0) + int(count)
                total = int(re.search(r'cpu-clock: (\d+) hits', text).group(1))
                self.assertGreater(total, 20, text)
                inside = sum(n for line, n in hits.items() if line in hot_lines(function))
                self.assertGreater(inside, 0.9 * total, f'{hot_lines(function)} {hits}\n{text}')

    def test_hot_instruction_is_in_the_loop(self):
        """The instruction with the most hits lies between a loop's label and the jump back to it."""
        for function in SUBS:
            with self.subTest(function=function):
                text = self.annotate('--all', '--no-source', function)
                rows = re.findall(r'^ *(?:(\d+) +[\d.]+ %)? +(?:(L\d+):)? +([0-9a-f]+)  (.+)$', text, re.M)
                self.assertGreater(len(rows), 5, text)
                hottest = max(range(len(rows)), key=lambda i: int(rows[i][0] or 0))
                loops = [(top, i) for i, row in enumerate(rows) for top, label in
                         ((k, r[1]) for k, r in enumerate(rows[:i])) if label and re.search(rf'\b{label}$', row[3])]
                self.assertTrue(any(top <= hottest <= end for top, end in loops), f'{hottest} {loops}\n{text}')

    def test_xlated_view(self):
        for function in SUBS:
            text = self.annotate('--all', '--xlated', function)
            self.assertRegex(text, r'r\d')
            self.assertIn('bpf-hot.bpf.c', text)

    def test_report_names_them(self):
        report = live.call('report', '--samples', '--json', '-i', self.recording)
        self.assertEqual(report.status, 0, str(report))
        rows = json.loads(report.stdout)['events'][0]['rows']
        for function in SUBS:
            found = [r for r in rows if re.fullmatch(rf'bpf_prog_[0-9a-f]{{16}}_{function}', r['function'] or '')]
            self.assertEqual(len({r['function'] for r in found}), 1, function)
            # perf reads the same name and count out of the same file
            perf = subprocess.run(['perf', 'report', '-i', self.recording, '--stdio', '-s', 'sym', '-F', 'sample,sym'],
                                  capture_output=True, text=True, check=False).stdout
            count = sum(r['samples'] for r in found)
            self.assertRegex(perf, rf"\b{count} +\[k\] {found[0]['function']}\b")

    def test_elsewhere(self):
        """The code is in the file: an archive unpacked in another place says the same."""
        packed, folder = live.temp_path('hot.tar.zst'), live.temp_path('elsewhere')
        for command in (('create', '-i', self.recording, '-o', packed), ('unpack', '-C', folder, packed)):
            done = live.call('archive', *command, timeout=300)
            self.assertEqual(done.status, 0, str(done))
        moved = live.call('annotate', '-i', folder / pathlib.Path(self.recording).name, 'dividing')
        self.assertEqual(moved.stdout, self.annotate('dividing'))


@live.alone('it records all processes')
class Calls(live.LiveTest):
    """What a program calls in the kernel has its name in both views, also where the kernel is another one."""

    @classmethod
    def setUpClass(cls):
        record_program(cls, live.PROGRAMS / 'bpf-calls.bpf.c')

    def calls(self, *args, recording=None):
        done = live.call('annotate', '-i', recording or self.recording, '--all', '--no-source', *args, 'helping')
        self.assertEqual(done.status, 0, str(done))
        return re.findall(r'^ .*  callq? +(\S+)$', done.stdout, re.M)

    def test_named_in_both_views(self):
        machine, xlated = self.calls(), self.calls('--xlated')
        self.assertEqual(machine, xlated)
        self.assertIn('bpf_ktime_get_ns', machine)
        self.assertIn('bpf_get_current_comm', machine)
        names = {line.split()[2] for line in pathlib.Path('/proc/kallsyms').read_text().splitlines()}
        self.assertGreaterEqual(len(machine), 4)
        self.assertLessEqual(set(machine), names)

    @unittest.skipUnless(shutil.which('bpftool'), 'bpftool is not installed')
    def test_as_bpftool_names_them(self):
        pin = pathlib.Path('/sys/fs/bpf') / f'rt-calls-{os.getpid()}'
        subprocess.run(['bpftool', 'prog', 'load', self.object, pin], check=True, capture_output=True)
        try:
            dump = subprocess.run(['bpftool', 'prog', 'dump', 'xlated', 'pinned', pin], check=True, capture_output=True,
                                  text=True).stdout
        finally:
            pin.unlink()
        self.assertEqual(self.calls('--xlated'), re.findall(r'call (?!pc)(\w+)#', dump))

    def test_elsewhere(self):
        """The names are in the recording: without this kernel's /proc/kallsyms they are the same."""
        live.need_mount_namespace()
        with_names = self.calls()
        hidden = live.temp_path('hidden.py')
        hidden.write_text('')
        command = ['unshare', '-m', 'sh', '-c', f'mount --bind {hidden} /proc/kallsyms && exec "$@"', 'sh',
                   live.REFTRACE, 'annotate', '-i', self.recording, '--all', '--no-source', 'helping']
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r'^ .*  callq? +(\S+)$', done.stdout, re.M), with_names)


if __name__ == '__main__':
    unittest.main()
