# SPDX-License-Identifier: GPL-2.0-only
"""--call-graph dwarf: copied stacks, ours and perf's, unwound by us and by perf: frame by frame the same functions."""
import json
import os
import re
import shutil
import subprocess
import unittest

import live

FLAGS = ('-g', '-O2', '-fomit-frame-pointer')
WAYS = {
    'by_library': ['compare', 'by_library', 'main'],
    'by_variable_frame': ['by_variable_frame', 'main'],
    'by_signal': ['handler', 'by_signal', 'main'],
    'by_recursion': ['by_recursion'] * 21 + ['main'],
    'by_thread': ['by_thread'],
}


def run(*args, **env):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, check=False, env={**os.environ, **env})


def ours(path):
    """Per sample, the functions innermost first."""
    done = run(live.REFTRACE, 'script', '-i', path)
    assert done.returncode == 0, done.stderr
    return stacks(done.stdout)


def perfs(path):
    done = run('perf', 'script', '--no-inline', '-i', path, '-F', 'comm,tid,time,event,ip,sym,symoff,dso')
    assert done.returncode == 0, done.stderr
    return stacks(done.stdout)


def stacks(text):
    result = []
    for block in text.split('\n\n'):
        lines = [line.split() for line in block.splitlines() if line.startswith('\t')]
        if lines and 'cpu-clock' in block:
            # versions of symbols are written differently
            result.append([re.sub(r'\+0x[0-9a-f]+$|@.*', '', f[1]).split('@')[0] for f in lines])
    return result


def user_part(stack):
    own = [f for f in stack if f in WAYS['by_recursion'] or f in ('burn', 'compare', 'handler', *WAYS)]
    return own[own.index('burn') + 1:] if 'burn' in own else None


class Unwind(unittest.TestCase):
    def check_truth(self, all_stacks):
        """Each way of the program was seen, with the callers that its source says."""
        seen = set()
        for stack in all_stacks:
            own = user_part(stack)
            if own is None:
                continue
            for way, frames in WAYS.items():
                if way in own:
                    self.assertEqual(own, frames, stack)
                    seen.add(way)
        self.assertEqual(seen, set(WAYS))

    def record(self, *options, ms='150'):
        path = live.temp_path('copied')
        done = run(live.REFTRACE, 'record', '-o', path, '-F', '400', '-e', 'cpu-clock', *options, '--',
                   live.program('unwind', flags=FLAGS), ms)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_own_recording(self):
        path = self.record('--call-graph', 'dwarf,16384')
        self.check_truth(ours(path))
        report = json.loads(run(live.REFTRACE, 'report', '--samples', '--json', '-i', path).stdout)['stacks']
        self.assertGreater(report['copied'], 40)
        # a sample may lie in hand-written code at a place that no table tells
        self.assertGreaterEqual(report['whole'], report['copied'] * 0.97)

    @unittest.skipUnless(shutil.which('perf'), 'perf is not installed')
    def test_perf_reads_ours(self):
        path = self.record('--call-graph', 'dwarf')
        self.compare(ours(path), perfs(path))

    @unittest.skipUnless(shutil.which('perf'), 'perf is not installed')
    def test_we_read_perfs(self):
        path = live.temp_path('perf.data')
        done = run('perf', 'record', '-q', '-o', path, '-F', '400', '-e', 'cpu-clock', '--call-graph', 'dwarf', '--',
                   live.program('unwind', flags=FLAGS), '150')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_truth(ours(path))
        self.compare(ours(path), perfs(path))

    def compare(self, mine, theirs):
        # perf looks before the trampoline of a signal, as if it had been called; and its name is in libc6-dbg alone
        def plain(stacks):
            return [['[unknown]' if f == '__restore_rt' else f for f in s] for s in stacks]
        mine, theirs = plain(mine), plain(theirs)
        self.assertEqual(len(mine), len(theirs))
        self.assertGreater(len(mine), 40)
        same = sum(a == b for a, b in zip(mine, theirs))
        different = [(a, b) for a, b in zip(mine, theirs) if a != b]
        # where perf gives up and we do not, its stack is the beginning of ours
        for a, b in different:
            self.assertEqual(a[:len(b)], b)
        self.assertGreaterEqual(same, len(mine) * 0.95, different[:3])

    def test_attached(self):
        path = live.temp_path('attached')
        target = live.Process([live.program('unwind', flags=FLAGS), '1500'])
        try:
            pid = target.wait_line('pid').split()[1]
            done = run(live.REFTRACE, 'record', '-o', path, '-F', '200', '-e', 'cpu-clock', '--call-graph', 'dwarf',
                       '--duration', '1s', '-p', pid)
            self.assertEqual(done.returncode, 0, done.stderr)
        finally:
            target.kill()
        found = [user_part(s) for s in ours(path)]
        self.assertIn(WAYS['by_library'], found)
        if shutil.which('perf'):
            self.assertIn(WAYS['by_library'], [user_part(s) for s in perfs(path)])

    def test_what_is_missing_is_said(self):
        path = self.record('--call-graph', 'dwarf,128', ms='60')
        done = run(live.REFTRACE, 'report', '-i', path)
        match = re.search(r'stacks: (\d+) of (\d+) copied stacks end with what was copied', done.stdout)
        self.assertTrue(match, done.stdout)
        stacks_json = json.loads(run(live.REFTRACE, 'report', '--samples', '--json', '-i', path).stdout)['stacks']
        self.assertEqual(stacks_json['copy_too_short'], int(match.group(1)))
        self.assertEqual(sum(v for k, v in stacks_json.items() if k != 'copied'), stacks_json['copied'])
        self.assertIn('end with what was copied', run(live.REFTRACE, 'script', '-i', path).stderr)
        # a file that is gone takes its tables along
        gone = live.temp_path('gone')
        shutil.copy(live.program('unwind', flags=FLAGS), gone)
        path = live.temp_path('of-gone')
        done = run(live.REFTRACE, 'record', '-N', '-o', path, '-F', '400', '-e', 'cpu-clock', '--call-graph', 'dwarf', '--',
                   gone, '60')
        gone.unlink()
        # the cache has it from other tests
        done = run(live.REFTRACE, 'report', '-i', path, PERF_BUILDID_DIR=str(live.temp_path('empty')))
        self.assertIn('without unwind information', done.stdout)

    def test_refused(self):
        for how, why in (('lbr', 'dwarf'), ('dwarf,0', 'bytes to copy'), ('dwarf,61441', '8 to 61440'),
                         ('dwarf,x', 'bytes to copy'), ('dwarfs', 'choose: fp'), ('', 'choose: fp')):
            done = run(live.REFTRACE, 'record', f'--call-graph={how}', '--', 'true')
            self.assertEqual(done.returncode, 2, how)
            self.assertIn(why, done.stderr)


if __name__ == '__main__':
    unittest.main()
