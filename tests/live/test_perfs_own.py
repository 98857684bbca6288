# SPDX-License-Identifier: GPL-2.0-only
"""What perf's own tests of the build-id cache say (tests/shell/buildid.sh, tests/sdt.c), with each of the two as the one that writes and as the one that
reads; and the script itself, with us in perf's place."""
import os
import pathlib
import subprocess
import unittest

import live

SCRIPT = pathlib.Path('/usr/lib/perf-core/tests/shell/buildid.sh')
STYLES = ('sha1', 'md5')

# perf, whose writing we do
SHIM = """#!/bin/sh
root=
case $1 in
--buildid-dir) root=$2; shift 2 ;;
esac
case $1 in
record) shift; echo record >>"$SHIM_LOG"; PERF_BUILDID_DIR=$root exec "$SHIM_OURS" record -e cpu-clock "$@" ;;
buildid-cache)
	case $*  in
	*" -a "*) while [ "$1" != -a ]; do shift; done; echo add >>"$SHIM_LOG"; exec "$SHIM_OURS" cache --buildid-dir "$root" add "$2" ;;
	esac ;;
esac
exec "$SHIM_PERF" ${root:+--buildid-dir "$root"} "$@"
"""

# passes its marker only while its counter is raised, and says with what
MARKED = """#include <stdio.h>
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
__extension__ unsigned short own_target_semaphore __attribute__((unused, section(".probes")));
int main(void)
{
	for (volatile int i = 0; i < 5; i++)
		if (own_target_semaphore) {
			printf("passed %d\\n", i * 7 + 1);
			STAP_PROBE1(own, target, i * 7 + 1);
		}
	printf("raised %d\\n", own_target_semaphore);
	return 0;
}
"""


class PerfsOwn(live.LiveTest):
    def setUp(self):
        live.need_binary()
        self.root = live.temp_path('debug')
        self.env = live.clean_env(PERF_BUILDID_DIR=str(self.root))

    def ours(self, *words):
        run = live.call(*words, env=self.env)
        self.assertEqual(run.status, 0, str(run))
        return run.stdout

    def perf(self, *words):
        return subprocess.run(['perf', '--buildid-dir', str(self.root), *map(str, words)], capture_output=True, text=True, check=True,
                              env=live.clean_env()).stdout

    def program(self, style):
        path = live.temp_path(style)
        # perf 7's buildid-list names of its own recordings what samples hit
        subprocess.run(['gcc', f'-Wl,--build-id={style}', '-o', path, '-x', 'c', '-'], text=True, check=True,
                       input=f'const char own[] = "{path}"; int main(void) {{ for (volatile long i = 0; i < 60000000; i++); return 0; }}')
        out = subprocess.run(['readelf', '-n', path], capture_output=True, text=True, check=True).stdout
        return path, out.split('Build ID: ')[1].split()[0]

    def check(self, path, ident):
        """As check() of the script, and that both list it and find it sound."""
        link = self.root / '.build-id' / ident[:2] / ident[2:]
        self.assertTrue(link.is_symlink())
        elf = link.parent / os.readlink(link) / 'elf'
        self.assertTrue(os.access(elf, os.X_OK))
        self.assertEqual(elf.read_bytes(), path.read_bytes())
        self.assertIn(f'{ident} {path}', self.perf('buildid-cache', '-l'))
        self.assertRegex(self.ours('cache', 'list'), f'{ident} .* {path} ')
        count = len(self.ours('cache', 'list').splitlines())
        self.assertIn(f'{count} of {count} ', self.ours('cache', 'verify'))

    def add(self, writer, path):
        if writer == 'perf':
            self.perf('buildid-cache', '-a', path)
        else:
            self.ours('cache', 'add', path)

    def test_add(self):
        for writer in ('perf', 'ours'):
            for style in STYLES:
                path, ident = self.program(style)
                self.add(writer, path)
                self.check(path, ident)

    def test_remove_and_purge(self):
        """What either adds the other takes away, with nothing left."""
        for writer in ('perf', 'ours'):
            for style in STYLES:
                for remove in (lambda path, ident: self.perf('buildid-cache', '-r', path), lambda path, ident: self.ours('cache', 'rm', ident),
                               lambda path, ident: self.perf('buildid-cache', '-p', path), lambda path, ident: self.ours('cache', 'rm', path)):
                    path, ident = self.program(style)
                    self.add(writer, path)
                    self.check(path, ident)
                    remove(path, ident)
                    self.assertNotIn(ident, self.perf('buildid-cache', '-l'))
                    self.assertNotIn(ident, self.ours('cache', 'list'))
                    self.assertEqual([p for p in self.root.rglob('*') if not p.is_dir()], [], f'{writer} {style}')

    def test_letters(self):
        """The same letters do the same."""
        def call(tool, *words):
            return self.perf('buildid-cache', *words) if tool == 'perf' else self.ours('cache', *words)
        for tool in ('perf', 'ours'):
            for other in ('perf', 'ours'):
                for letter in ('-r', '-p'):
                    found = dict(self.program('sha1') for _ in range(2))
                    call(tool, '-a', ','.join(map(str, found)))
                    for path, ident in found.items():
                        self.assertRegex(call(tool, '-l'), f'{ident} .*{path}')
                    call(other, letter, ','.join(map(str, found)))
                    self.assertEqual(call(tool, '-l'), '')
        run = live.call('cache', '-l', '-a', 'x', env=self.env)
        self.assertEqual((run.status, 'one at a time' in run.stderr), (2, True), str(run))

    def test_record(self):
        """record --buildid-all keeps what ran, and its recording names the id, to both."""
        for style in STYLES:
            for writer in ('perf', 'ours'):
                path, ident = self.program(style)
                data = live.temp_path('data')
                if writer == 'perf':
                    self.perf('record', '-q', '--buildid-all', '-e', 'cpu-clock', '-o', data, path)
                else:
                    self.ours('record', '-q', '--buildid-all', '-e', 'cpu-clock', '-o', data, '--', path)
                self.check(path, ident)
                self.assertIn(f'{ident} {path}', [' '.join(line.split()) for line in self.perf('buildid-list', '-i', data).splitlines()], writer)

    @unittest.skipUnless(SCRIPT.exists(), f'there is no {SCRIPT} (linux-perf)')
    def test_script(self):
        """The script itself, where each add and each record is ours."""
        folder = live.temp_path('bin')
        folder.mkdir()
        shim = folder / 'perf'
        shim.write_text(SHIM)
        shim.chmod(0o755)
        real = subprocess.run(['sh', '-c', 'command -v perf'], capture_output=True, text=True, check=True).stdout.strip()
        log = live.temp_path('log')
        run = subprocess.run(['bash', SCRIPT], capture_output=True, text=True, check=False,
                             env=live.clean_env(PATH=f'{folder}:{os.environ["PATH"]}', SHIM_OURS=str(live.REFTRACE), SHIM_PERF=real, SHIM_LOG=str(log)))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(run.stdout.count('OK for'), 4, run.stdout)
        self.assertEqual(log.read_text().split(), ['add', 'add', 'record', 'record'])

    @live.alone('perf gives its event a name that the whole machine shares')
    def test_sdt(self):
        """tests/sdt.c: a marker of a scanned file is in the cache. And what that leaves "TBD": it is probed, with its counter, and its argument is
        what the program says. Each with what the other has written."""
        live.need_engine()
        path = live.temp_path('marked')
        subprocess.run(['gcc', '-O1', '-o', path, '-x', 'c', '-'], input=MARKED, text=True, check=True)
        self.assertEqual(subprocess.run([path], capture_output=True, text=True, check=True).stdout, 'raised 0\n')
        for writer in ('perf', 'ours'):
            self.root = live.temp_path('debug')
            self.env = live.clean_env(PERF_BUILDID_DIR=str(self.root))
            self.add(writer, path)
            self.assertIn('sdt_own:target', self.perf('list', 'sdt'))
            self.assertIn('\nsdt_own:target=target\n', self.perf('probe', '--cache', '-l'))
            self.assertIn('sdt_own:target', self.ours('probe', 'list', '--cache'))
            kept = next(self.root.rglob('probes')).read_text().splitlines()
            self.assertEqual(self.ours('probe', 'show', '%sdt_own:target').splitlines(), kept[1:], kept)
            data = live.temp_path('data')
            if writer == 'ours':
                remove = ['perf', 'probe', '-q', '-d', 'sdt_own:target']
                self.addCleanup(subprocess.run, remove, check=False, capture_output=True)
                self.perf('probe', '-q', 'sdt_own:target')
                out = self.perf('record', '-q', '-e', 'sdt_own:target', '-o', data, path)
                subprocess.run(remove, check=True, capture_output=True)
            else:
                out = self.ours('record', '-q', '-e', 'sdt_own:target', '-o', data, '--', path)
            self.assertEqual(out.split(), [word for i in range(5) for word in ('passed', str(7 * i + 1))] + ['raised', '1'])
            lines = self.perf('script', '-i', data).splitlines()
            self.assertEqual([int(word.split('=')[1], 0) for line in lines for word in line.split() if word.startswith('arg1=')],
                             [7 * i + 1 for i in range(5)], f'{writer} {lines}')


if __name__ == '__main__':
    unittest.main()
