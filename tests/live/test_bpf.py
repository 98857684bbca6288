# SPDX-License-Identifier: GPL-2.0-only
"""reftrace bpf: programs that are closed at once are kept whole, and what stays loaded names its holder.

The loader (tests/programs/bpf-loop.c) says itself how many programs it loaded; bpftool says what is loaded.
That copies are what the kernel tells, byte for byte, is held by tests/unit/test-bpfprog-watch.c.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import live

NAME = 'a_program_with_a_long_name'
BPFTOOL = shutil.which('bpftool', path='/usr/sbin:/sbin:' + os.environ.get('PATH', ''))

LIGHT = """
#include <errno.h>
#include <stdlib.h>
typedef unsigned long long u64;
#include "loop.h"
int main(void)
{
	for (int i = 0; i < 20; i++) {
		struct loop *s = loop__open_and_load();

		if (!s)
			return 1;
		loop__destroy(s);
	}
	return 0;
}
"""

_built = None


def built():
    """(loader, object), compiled once."""
    global _built
    if _built is None:
        clang = live.compiler('clang')
        if not clang:
            raise unittest.SkipTest('clang is not installed')
        loader, program = live.temp() / 'bpf-loop', live.temp() / 'loop.o'
        for cmd in ([clang, '-target', 'bpf', '-g', '-O2', '-c', live.PROGRAMS / 'bpf-loop.bpf.c', '-o', program],
                    ['gcc', '-O1', '-w', '-pthread', '-D_GNU_SOURCE', live.PROGRAMS / 'bpf-loop.c', '-o', loader,
                     '-lbpf']):
            done = subprocess.run(list(map(str, cmd)), capture_output=True, text=True, check=False)
            if done.returncode:
                raise unittest.SkipTest(done.stderr[-300:])
        _built = loader, program
    return _built


class BpfFs:
    """A BPF file system of our own."""

    def __enter__(self):
        self.path = live.temp_path('bpffs')
        self.path.mkdir()
        if subprocess.run(['mount', '-t', 'bpf', 'bpf', self.path], capture_output=True, check=False).returncode:
            raise unittest.SkipTest('no BPF file system can be mounted')
        return self.path

    def __exit__(self, *_):
        subprocess.run(['umount', self.path], check=False)


def loaded_ids():
    """Ids that the kernel has now, as bpftool says."""
    out = subprocess.run([BPFTOOL, '-j', 'prog', 'list'], capture_output=True, text=True, check=False).stdout
    return {p['id'] for p in json.loads(out or '[]')}


class Bpf(unittest.TestCase):
    def setUp(self):
        live.need_binary()
        if os.geteuid():
            self.skipTest('needs root (BPF)')

    def bpf(self, *args, **kwargs):
        """reftrace bpf -> (Run, parsed JSON, the loader's own programs)"""
        path = live.temp_path('bpf.json')
        run = live.call('bpf', f'--json={path}', *args, **kwargs)
        if 'E30' in run.stderr or 'E06' in run.stderr:
            self.skipTest(run.stderr)
        listing = json.loads(path.read_text())
        return run, listing, [p for p in listing['programs'] if p['name'] == NAME]

    def check_whole(self, listing, programs, count):
        self.assertEqual(len(programs), count)
        self.assertEqual(listing['trust']['lost'], 0)
        self.assertIsNone(listing['trust']['limit'])
        for p in programs:
            self.assertIsNone(p['lost'])
            self.assertEqual(p['functions'], 4, p)
            self.assertGreater(p['lines'], 10, p)
            self.assertGreater(p['jited_bytes'], 0, p)
            self.assertGreater(p['xlated_bytes'], 0, p)
            self.assertGreater(p['btf_id'], 0, p)
            self.assertIn('loop_counts', [m['name'] for m in p['maps']])

    def test_500_loads_in_a_tight_loop(self):
        loader, program = built()
        run, listing, programs = self.bpf('--', loader, program, '500')
        self.assertEqual(run.status, 0, run)
        self.assertIn('loaded 500', run.stdout)
        self.check_whole(listing, programs, 500)
        for p in programs:
            self.assertEqual((p['state'], p['loader']['comm']), ('unloaded', 'bpf-loop'))
            self.assertLess(p['load_ns'], p['unload_ns'])
        self.assertEqual(len({p['id'] for p in programs}), 500)
        self.assertIn('500 x', run.stderr)
        self.assertIn('0 leaked', run.stderr)

    def test_eight_threads(self):
        loader, program = built()
        _, listing, programs = self.bpf('--', loader, program, '40', '8')
        self.check_whole(listing, programs, 320)

    def test_bpftool_load_and_remove(self):
        _, program = built()
        with BpfFs() as fs:
            script = f'for i in $(seq 200); do {BPFTOOL} prog load {program} {fs}/p && rm {fs}/p || exit 1; done'
            run, listing, programs = self.bpf('--', 'sh', '-c', script)
        self.assertEqual(run.status, 0, run)
        self.check_whole(listing, programs, 200)
        self.assertEqual({p['state'] for p in programs}, {'unloaded'})
        self.assertEqual(len({p['loader']['pid'] for p in programs}), 200)

    def leaked(self, programs):
        left = [p for p in programs if p['state'] == 'leaked']
        self.assertEqual(len(left), 1, programs)
        self.assertIn(left[0]['id'], loaded_ids())
        return left[0]

    def test_leaked_by_a_pin(self):
        loader, program = built()
        with BpfFs() as fs:
            run, _, programs = self.bpf('--', loader, program, '3', '1', 'pin', fs / 'kept')
            left = self.leaked(programs)
            self.assertEqual(left['holders'], [{'kind': 'pin', 'path': str(fs / 'kept')}])
            self.assertIn(f'held by pin {fs}/kept', run.stderr)
            self.assertEqual(run.status, 0)
            again = self.bpf('--error-exitcode', '--', loader, program, '1', '1', 'pin', fs / 'too')[0]
            self.assertEqual(again.status, 23)
            listing = self.bpf()[1]
            entry = next(p for p in listing['programs'] if p['id'] == left['id'])
            self.assertEqual((entry['state'], entry['name']), ('loaded', NAME))

    def test_leaked_by_a_link(self):
        loader, program = built()
        with BpfFs() as fs:
            _, _, programs = self.bpf('--', loader, program, '3', '1', 'link', fs / 'kept')
            left = self.leaked(programs)
            self.assertEqual(left['attached'], ['raw_tracepoint task_newtask'])
            kinds = {h['kind']: h for h in left['holders']}
            self.assertEqual(sorted(kinds), ['link', 'pin'])
            self.assertEqual(kinds['pin']['link'], kinds['link']['link'])

    def test_leaked_by_a_descriptor(self):
        loader, program = built()
        run, _, programs = self.bpf('--', loader, program, '3', '1', 'fd')
        pid = int(next(line for line in run.stdout.splitlines() if line.startswith('child ')).split()[1])
        try:
            left = self.leaked(programs)
            self.assertEqual([(h['kind'], h['pid']) for h in left['holders']], [('fd', pid)])
            listing = self.bpf('-p', str(pid))[1]
            self.assertEqual([p['id'] for p in listing['programs']], [left['id']])
        finally:
            os.kill(pid, signal.SIGKILL)

    def test_run_counts_of_a_program_that_is_gone(self):
        loader, program = built()
        run, listing, programs = self.bpf('--stats', '--', loader, program, '3', '1', 'run', '40')
        self.check_whole(listing, programs, 3)
        ran = [p for p in programs if p.get('run_count')]
        self.assertEqual(len(ran), 1, programs)
        self.assertGreaterEqual(ran[0]['run_count'], 40)
        self.assertGreater(ran[0]['run_time_ns'], 40)
        self.assertEqual(ran[0]['state'], 'unloaded')
        self.assertEqual(ran[0]['attached'], ['raw_tracepoint task_newtask'])
        self.assertIn('; ran ', run.stderr)

    @live.alone('what loads and unloads between the two lists is in neither')
    def test_list_is_what_bpftool_lists(self):
        if not BPFTOOL:
            self.skipTest('bpftool is not installed')
        loader, program = built()
        with BpfFs() as fs:
            subprocess.run([loader, program, '1', '1', 'pin', fs / 'kept'], capture_output=True, check=True)
            before = loaded_ids()
            listing = self.bpf('list')[1]
            after = loaded_ids()
        ids = {p['id'] for p in listing['programs']}
        self.assertGreaterEqual(ids, before & after)
        self.assertLessEqual(ids - before - after, set())
        self.assertTrue(all(p['holders'] or p['held_unseen'] for p in listing['programs']))

    def test_small_ring_tells_what_it_lost(self):
        """Whatever the ring could not take is named: nothing is missing from the list."""
        loader, program = built()
        run, listing, programs = self.bpf('-m', '4K', '--', loader, program, '50', '8')
        lost = [p for p in listing['programs'] if p['lost']]
        names = sum(p['name'] == NAME for p in listing['programs'])
        self.assertEqual(listing['trust']['lost'], len(lost))
        self.assertGreater(len(lost), 0)
        self.assertLessEqual(400 - names, len(lost))
        self.assertEqual(run.status, 24, run)
        self.assertIn('lost: ', run.stderr)

    def test_loads_inside_the_kernel(self):
        """A light skeleton loads by a program of its own, which makes the system calls in the kernel."""
        _, program = built()
        skeleton = subprocess.run([BPFTOOL, 'gen', 'skeleton', '-L', program, 'name', 'loop'], capture_output=True,
                                  text=True, check=False)
        if skeleton.returncode:
            self.skipTest('no light skeletons: ' + skeleton.stderr)
        folder = live.temp_path('light')
        folder.mkdir()
        (folder / 'loop.h').write_text(skeleton.stdout)
        (folder / 'light.c').write_text(LIGHT)
        done = subprocess.run(['gcc', '-w', '-D_GNU_SOURCE', folder / 'light.c', '-o', folder / 'light', '-lbpf'],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            self.skipTest(done.stderr[-500:])
        run, listing, programs = self.bpf('--', folder / 'light')
        self.assertEqual(run.status, 0, run)
        self.check_whole(listing, programs, 20)
        self.assertEqual({p['loader']['comm'] for p in programs}, {'light'})

    @live.alone('it watches the BPF programs of all processes')
    def test_watch_of_all_processes(self):
        loader, program = built()
        path = live.temp_path('bpf.json')
        process = live.Process([live.REFTRACE, 'bpf', '-a', f'--json={path}'])

        def links():
            for info in pathlib.Path('/proc', str(process.popen.pid), 'fdinfo').iterdir():
                try:
                    yield 'link_id' in info.read_text()
                except OSError:
                    continue

        def watching():
            return sum(links()) >= 3
        self.assertTrue(live.wait_until(watching))
        subprocess.run([loader, program, '25'], capture_output=True, check=True)
        process.popen.send_signal(signal.SIGINT)
        status, _, err = process.wait()
        self.assertEqual(status, 0, err)
        listing = json.loads(path.read_text())
        programs = [p for p in listing['programs'] if p['name'] == NAME]
        self.assertGreaterEqual(len(programs), 25)
        self.assertEqual(listing['trust']['lost'], 0)

    @live.alone('its rings hold what one reader is late for, not what all tests load meanwhile')
    def test_what_others_load_costs_a_recording_nothing(self):
        loader, program = built()
        recording = live.temp_path('bpf.data')
        process = live.Process([live.REFTRACE, 'record', '-N', '-F', '99', '-e', 'cpu-clock', '-o', recording, '--', 'sh',
                                '-c', 'echo up; read line'], pipe=True)
        try:
            process.wait_line('up')
            os.kill(process.popen.pid, signal.SIGSTOP)
            subprocess.run([loader, program, '500'], capture_output=True, check=True)
            os.kill(process.popen.pid, signal.SIGCONT)
            process.popen.stdin.write('go\n')
            process.popen.stdin.close()
            _, _, err = process.wait()
        finally:
            process.kill()
        self.assertIn(' 0 lost', err)

    def test_exit_status_and_stdout_are_the_programs(self):
        run = self.bpf('--', 'sh', '-c', 'echo hello; exit 7')[0]
        self.assertEqual((run.status, run.stdout), (7, 'hello\n'))
        self.assertEqual(live.call('bpf', '--', '/nonexistent/program').status, 127)
        self.assertEqual(live.call('bpf', '-a', '--', 'true').status, 2)

    def test_without_privilege(self):
        copy = live.temp_path('reftrace')
        shutil.copy(live.REFTRACE, copy)
        copy.chmod(0o755)
        for args in ((), ('--', 'true'), ('-a', '--duration', '10ms')):
            done = subprocess.run([*live.NOBODY, copy, 'bpf', *args], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn('CAP_SYS_ADMIN is missing', done.stderr)
            self.assertIn('fix: sudo reftrace bpf', done.stderr)


def cgroup2():
    """Where control groups of version 2 are mounted; None."""
    for line in pathlib.Path('/proc/self/mounts').read_text(encoding='utf-8').splitlines():
        if line.split()[2] == 'cgroup2':
            return pathlib.Path(line.split()[1])
    return None


class Attached(unittest.TestCase):
    """Programs that only an attachment without a link holds: who that is, in whichever network namespace."""

    PLACES = {
        'xdp': 'interface lo, xdp (generic)',
        'tc-ingress': 'interface lo, tc ingress, priority 3, handle 0x7',
        'tc-egress': 'interface lo, tc egress, priority 3, handle 0x7',
        'flow': 'flow_dissector',
    }

    def setUp(self):
        live.need_binary()
        if os.geteuid():
            self.skipTest('needs root (BPF)')
        loader = live.temp() / 'bpf-attach'
        done = subprocess.run(['gcc', '-O1', '-w', '-D_GNU_SOURCE', live.PROGRAMS / 'bpf-attach.c', '-o', loader, '-lbpf'],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            self.skipTest(done.stderr[-300:])
        mount = cgroup2()
        self.group = mount / f'rt-bpf-{os.getpid()}' if mount else live.temp_path('no-cgroup')
        self.group.mkdir()
        # BPF programs of a control group go with it
        self.addCleanup(self.group.rmdir)
        self.loader = subprocess.Popen([loader, self.group], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.ids = {}
        for line in iter(self.loader.stdout.readline, 'ready\n'):
            self.assertTrue(line, 'the loader ended')
            where, number = line.split()[:2]
            if number != 'failed':
                self.ids[where] = int(number)
        if not self.ids:
            self.skipTest('this kernel attaches nothing without links')

    def end(self):
        self.loader.stdin.close()
        self.loader.stdout.close()
        self.loader.wait()

    def held(self):
        """id -> (holders' targets, held_unseen, attached)"""
        run = live.call('bpf', '--json')
        self.assertEqual(run.status, 0, str(run))
        return {p['id']: ([h.get('target') for h in p['holders']], p['held_unseen'], p['attached'])
                for p in json.loads(run.stdout)['programs']}

    def check(self, label):
        held = self.held()
        for where, text in self.PLACES.items():
            if where not in self.ids:
                continue
            with self.subTest(where):
                target = f'{text} in network namespace {label}'
                self.assertEqual(held[self.ids[where]], ([target], False, [target]))

    def test_in_a_namespace_of_a_process(self):
        self.assertIn('xdp', self.ids)
        self.assertIn('tc-ingress', self.ids)
        self.check(f'of bpf-attach[{self.loader.pid}]')
        self.assertIn('held by interface lo, xdp (generic)', live.call('bpf').stdout)

    @unittest.skipUnless(shutil.which('ip'), 'iproute2 is not installed')
    def test_in_a_namespace_without_a_process(self):
        name = f'rt-bpf-{os.getpid()}'
        subprocess.run(['ip', 'netns', 'attach', name, str(self.loader.pid)], check=True)
        try:
            self.end()
            self.check(name)
        finally:
            subprocess.run(['ip', 'netns', 'delete', name], check=True)

    def test_in_our_own_namespace(self):
        done = subprocess.run(['nsenter', '-t', str(self.loader.pid), '-n', live.REFTRACE, 'bpf', '--json'],
                              capture_output=True, text=True, check=False)
        programs = {p['id']: p for p in json.loads(done.stdout)['programs']}
        self.assertEqual(programs[self.ids['xdp']]['holders'],
                         [{'kind': 'attached', 'target': 'interface lo, xdp (generic)'}])

    def test_to_a_control_group(self):
        if 'cgroup' not in self.ids:
            self.skipTest('no control groups of version 2')
        targets, unseen, _ = self.held()[self.ids['cgroup']]
        self.assertEqual((targets, unseen), ([f'cgroup {self.group}, cgroup_inet_egress'], False))

    def test_to_a_control_group_that_is_mounted_twice(self):
        if 'cgroup' not in self.ids:
            self.skipTest('no control groups of version 2')
        live.need_mount_namespace()
        second = live.temp_path('cgroup2')
        second.mkdir()
        command = ['unshare', '-m', 'sh', '-c', 'mount -t cgroup2 none "$1" && test -d "$1/$2" && shift 2 && exec "$@"',
                   'sh', second, self.group.name, live.REFTRACE, 'bpf', '--json']
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        program, = (p for p in json.loads(done.stdout)['programs'] if p['id'] == self.ids['cgroup'])
        self.assertEqual([h['target'] for h in program['holders']], [f'cgroup {self.group}, cgroup_inet_egress'])


if __name__ == '__main__':
    unittest.main()
