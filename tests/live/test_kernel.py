# SPDX-License-Identifier: GPL-2.0-only
"""Descriptors and mappings, seen where the kernel hands them out: what is left is what /proc says, and who forgot it is
named."""
import re
import subprocess
import unittest

import live

FILES = r'''
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct index { char pad[40]; const char *map; struct index *next; };
static struct index *all;
static int lose;

static __attribute__((noinline)) int open_file(int keep)
{
	int fd = open("/etc/passwd", O_RDONLY), c;
	char *map = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	c = map[0];
	if (!keep) {
		munmap(map, 100);
	} else if (!lose) {
		struct index *index = calloc(1, sizeof(*index));

		index->map = map;
		index->next = all;
		all = index;
	}
	return c;
}

static void *work(void *arg)
{
	long sum = 0;

	for (int i = 0; i < 65; i++)
		sum += open_file(i % 13 == 6);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	lose = !strcmp(argv[1], "lost");
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
'''
LOST = 10  # of kernel.c's 70 rounds


@unittest.skipIf(live.ENGINE == 'agent', 'the agent does not look into the kernel')
class Kernel(live.LiveTest):
    def setUp(self):
        live.need_binary()
        live.need_engine()

    def trace(self, preset, mode, flags=('-g', '-O2', '-pthread')):
        run = live.trace('-P', preset, '--', live.program('kernel', flags=flags), mode)
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        return run

    def live_objects(self, run):
        return {t['name']: t['live'] for t in run.findings['types']}

    def check(self, preset, mode, guilty, flags=('-g', '-O2', '-pthread')):
        run = self.trace(preset, mode, flags)
        found = [(f['guilty']['function'], f['kind'], f['objects']) for f in run.findings['findings']]
        self.assertEqual(found, [(guilty, 'leak', LOST)] if guilty else [], str(run))
        return run

    def descriptors(self, run):
        """What the kernel said at the end is what was counted."""
        told = int(re.search(r'^fd (\d+)$', run.stdout, re.M).group(1))
        self.assertEqual(self.live_objects(run)['fd'], told, str(run))

    def test_descriptors(self):
        self.descriptors(self.check('fd', 'bug', 'read_config'))
        self.descriptors(self.check('fd', 'ok', None))

    def passed_on(self, mode, known=0):
        run = live.trace('-P', 'fd', '--', live.program('passed-on', flags=('-g', '-O2')), mode)
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        told = int(re.search(r'^fd (\d+)$', run.stdout, re.M).group(1))
        self.assertEqual(self.live_objects(run)['fd'], told - known, str(run))
        return [(f['guilty']['function'], f['kind'], f['objects']) for f in run.findings['findings']]

    def test_messages(self):
        """Descriptors that were sent: one, several, more than there is room for, by recvmmsg()."""
        self.assertEqual(self.passed_on('ok'), [])
        self.assertEqual(self.passed_on('many'), [])
        self.assertEqual(self.passed_on('bug'), [('take_over', 'leak', LOST)])

    def test_exec(self):
        """What has O_CLOEXEC ends with the exec, everything else lives on; 0, 1 and 2 were there before."""
        self.assertEqual(self.passed_on('exec', known=3), [])

    def test_exec_recorded(self):
        path, text = live.temp_path('exec.data'), live.temp_path('exec.events')
        done = live.call('record', '-P', 'fd', '-o', path, '--', live.program('passed-on', flags=('-g', '-O2')), 'exec')
        told = int(re.search(r'^fd (\d+)$', done.stdout, re.M).group(1))
        text.write_text(live.call('script', '--events', '-i', path).stdout)
        for source in (path, text):
            run = live.trace('-i', source, verb=('report',))
            self.assertEqual(self.live_objects(run)['fd'], told - 3, str(run))

    def test_static_program(self):
        self.descriptors(self.check('fd', 'bug', 'read_config', ('-g', '-O2', '-pthread', '-static')))

    def test_mappings(self):
        self.check('mapping', 'bug', 'read_buffer')
        self.check('mapping', 'ok', None)

    def test_mapped_files(self):
        """Files that are mapped for reading, and known to blocks of a thread's arena alone, are in use, though the function
        that maps them unmaps most; where nothing knows them, they are lost."""
        source = live.temp_path('files.c')
        source.write_text(FILES)
        path = source.with_suffix('')
        subprocess.run([live.compiler('gcc'), '-O1', '-g', '-pthread', str(source), '-o', str(path)], check=True)
        for mode, found in (('kept', []), ('lost', [('open_file', 'leak', 5)])):
            with self.subTest(mode=mode):
                run = live.trace('-P', 'mapping', '--', path, mode)
                self.assert_clean_trust(run)
                self.assertEqual([(f['guilty']['function'], f['kind'], f['objects'])
                                  for f in run.findings['findings']], found, str(run))

    def test_both_with_functions(self):
        """Objects of the kernel and of a library in one run."""
        run = live.trace('-P', 'fd', '-P', 'mapping', '-P', 'malloc', '--', live.program('kernel', flags=('-g', '-O2', '-pthread')),
                         'bug')
        found = {(f['type'], f['guilty']['function']) for f in run.findings['findings']}
        self.assertEqual(found, {('fd', 'read_config'), ('mapping', 'read_buffer')}, str(run))

    def test_real_programs(self):
        """What they keep to their end on purpose is no leak."""
        for command in (['ls', '-R', '/etc'], ['/usr/bin/python3', '-c', 'import json, subprocess; subprocess.run(["true"])'],
                        ['bash', '-c', 'for i in 1 2 3; do cat /etc/hostname | wc -l; done'], ['perf', 'stat', '-e', 'cpu-clock', 'ls']):
            for preset in ('fd', 'mapping'):
                with self.subTest(command=command, preset=preset):
                    run = live.trace('-P', preset, '--', *command)
                    self.assertEqual(run.findings['findings'], [], str(run))
                    self.assert_clean_trust(run)

    def test_attach(self):
        """Those that were there before are nobody's; what comes and goes is counted."""
        path = live.program('server', flags=('-g', '-O2'))
        process = live.Process([path, 'ok', '60'])
        try:
            pid = process.wait_line('ready').split()[1]
            run = live.trace('-P', 'fd', '--duration', '0.3', '-p', pid)
            self.assertEqual(run.findings['findings'], [], str(run))
        finally:
            process.kill()

    def test_agent_says_no(self):
        run = live.call('run', '--engine', 'agent', '-P', 'fd', '--', '/bin/true')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('descriptors and mappings are seen in the kernel', run.stderr)
        self.assertIn('--engine uprobe', run.stderr)

    def test_no_privilege(self):
        if subprocess.run([*live.NOBODY, 'test', '-r', str(live.REFTRACE)], check=False).returncode:
            self.skipTest(f'only root can read {live.REFTRACE}')
        run = live.call('run', '-P', 'fd', '--', '/bin/true', prefix=live.NOBODY, cwd='/')
        self.assertNotEqual(run.status, 0, str(run))
        self.assertIn('--engine uprobe' if 'agent' in run.stderr else 'sudo', run.stderr)

    @live.alone('it counts the programs of the whole machine')
    def test_nothing_stays_behind(self):
        """Each system call of the machine passes us only while we look."""
        def programs():
            out = subprocess.run(['bpftool', 'prog', 'list'], stdout=subprocess.PIPE, text=True, check=True).stdout
            return out.count('call_enter') + out.count('call_leave')
        before = programs()
        self.trace('fd', 'ok')
        # the kernel takes them down a moment after their last user is gone
        self.assertTrue(live.wait_until(lambda: programs() <= before, 10), programs())


if __name__ == '__main__':
    unittest.main()
