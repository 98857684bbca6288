# SPDX-License-Identifier: GPL-2.0-only
"""record keeps the binaries that ran: what is deleted, rebuilt or seen by the target alone has its names afterwards."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import live

PERF = shutil.which('perf')
SAMPLE = ('-F', '999', '-g', '-e', 'cpu-clock')
PAIRS = 'type=item new=item_new:ret get=item_ref:1 put=item_unref:1'
FLAGS = ['-g', '-O0', '-fno-omit-frame-pointer', '-w', '-D_GNU_SOURCE']


def compile_to(target, source, *flags):
    subprocess.run(['gcc', *FLAGS, *flags, str(live.PROGRAMS / source), '-o', str(target)], check=True)
    return target


def build_id(path):
    out = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=True).stdout
    return re.search(r'Build ID: ([0-9a-f]+)', out).group(1)


class Capture(live.LiveTest):
    def setUp(self):
        live.need_binary()
        if os.geteuid():
            self.skipTest('needs root (perf_event_open)')
        self.folder = live.temp_path('capture')
        self.folder.mkdir()
        self.cache = self.folder / 'debug'
        self.data = self.folder / 'data'
        self.env = live.clean_env(PERF_BUILDID_DIR=str(self.cache))

    def program(self, name='gone', *flags):
        return compile_to(self.folder / name, 'gone.c', *flags)

    def library(self, name='gone-lib.so', *flags):
        return compile_to(self.folder / name, 'gone-lib.c', '-shared', '-fPIC', *flags)

    def record(self, *args, prefix=(), env=None, status=0):
        run = live.call('record', '-o', self.data, *args, prefix=prefix, env=env or self.env)
        self.assertEqual(run.status, status, str(run))
        self.assertNotIn('W32', run.stderr)
        return run

    def report(self, *args, env=None):
        run = live.call('report', '-i', self.data, *args, env=env or self.env)
        self.assertEqual(run.status, 0, str(run))
        return run.stdout

    def kept(self):
        """build-id -> path of the kept file; each holds its id."""
        files = {p.parent.name: p for p in self.cache.rglob('elf')} if self.cache.exists() else {}
        for name, path in files.items():
            self.assertEqual(build_id(path), name, path)
        return files

    def hit(self, path):
        """Whether a sample of the recording lies in this file, as perf sees it."""
        if not PERF:
            self.skipTest('perf is not installed (linux-perf)')
        done = subprocess.run([PERF, 'script', '-f', '-i', str(self.data), '-F', 'ip,dso'], capture_output=True,
                              text=True, env=live.clean_env(), check=True)
        self.assertIn(' (', done.stdout)
        return f'({path})' in done.stdout

    def assert_hot(self, name, least=50, env=None):
        """Most samples are in this function, for us and for perf."""
        text = self.report(env=env)
        shares = [float(m.group(1)) for m in re.finditer(r'^ *([\d.]+)%.*\b' + name + r'$', text, re.M)]
        self.assertGreater(sum(shares), least, text)
        if not PERF:
            return
        done = subprocess.run([PERF, '--buildid-dir', str(self.cache), 'report', '-f', '-i', str(self.data), '--stdio',
                               '--no-children', '-g', 'none', '-s', 'sym'], capture_output=True, text=True,
                              env=live.clean_env(), check=False)
        shares = [float(m.group(1)) for m in re.finditer(r'^ *([\d.]+)%.*\b' + name + r'\s*$', done.stdout, re.M)]
        self.assertGreater(sum(shares), least, done.stdout + done.stderr)


class Samples(Capture):
    def test_deletes_itself(self):
        program = self.program()
        name = build_id(program)
        self.record(*SAMPLE, '--', program, 'unlink', program, 'hot', '0.3')
        self.assertFalse(program.exists())
        self.assertIn(name, self.kept())
        self.assert_hot('gone_hot')
        self.assertEqual(list(self.cache.rglob('.*.tmp')), [])

    def test_not_kept(self):
        program = self.program()
        for option in ('-N', '-B', '--no-buildid-cache', '--no-buildid'):
            copy = shutil.copy(program, self.folder / 'copy')
            self.record(*SAMPLE, option, '--', copy, 'unlink', copy, 'hot', '0.1')
            self.assertFalse(self.cache.exists())
        self.assertNotIn('gone_hot', self.report())

    def test_only_what_was_hit(self):
        program, library = self.program(), self.library()
        words = ('--', program, 'lib', library, 'hot', '0.2')
        self.record('-F', '199', '-e', 'cpu-clock:u', *words)
        self.assertIn(build_id(program), self.kept())
        # One sample may land in what the dynamic linker runs of a library: perf says whether one did.
        self.assertEqual(build_id(library) in self.kept(), self.hit(library))
        self.record('-F', '199', '-e', 'cpu-clock:u', '--buildid-all', *words)
        self.assertIn(build_id(library), self.kept())
        self.record('-F', '199', '-e', 'cpu-clock:u', '--', program, 'lib', library, 'libhot', '0.2')
        self.assertTrue(self.hit(library))
        run = live.call('record', '-N', '--buildid-all', '--', 'true')
        self.assertEqual(run.status, 2, str(run))

    def test_library_unlinked(self):
        program, library = self.program(), self.library()
        name = build_id(library)
        self.record(*SAMPLE, '--', program, 'lib', library, 'unlink', library, 'libhot', '0.3')
        self.assertIn(name, self.kept())
        self.assert_hot('lib_hot')

    def replaced(self, replace):
        """The library is hot, then another one takes its place while the program runs on."""
        program, library = self.program(), self.library()
        other = self.library('other.so', '-DOTHER', '-O1')
        name, new, go = build_id(library), build_id(other), self.folder / 'go'
        run = live.Process([live.REFTRACE, 'record', '-o', self.data, *SAMPLE, '--', program, 'lib', library, 'libhot',
                            '0.3', 'say', 'done', 'wait', go, 'hot', '0.1', 'quit', '0'], env=self.env)
        try:
            run.wait_line('done')
            fds = pathlib.Path(f'/proc/{run.popen.pid}/fd')
            self.assertTrue(live.wait_until(lambda: sum(str(self.cache) in os.readlink(f) for f in list(fds.iterdir())
                                                        if f.is_symlink()) >= 3), 'the library was not set aside')
            replace(other, library)
            go.touch()
            status, _, err = run.wait()
            self.assertEqual(status, 0, err)
        finally:
            run.kill()
        self.assertEqual(build_id(library), new)
        kept = self.kept()
        self.assertIn(name, kept)
        self.assertNotIn(new, kept)
        self.assert_hot('lib_hot')

    def test_rebuilt(self):
        self.replaced(os.replace)

    def test_overwritten(self):
        self.replaced(shutil.copyfile)

    def test_exec_chain(self):
        """One process is a script, then three programs, none of which is left."""
        copies = [self.program(f'gone{i}', f'-DCOPY={i}', f'-Wl,--build-id=0x{i}{"c0ffee" * 6}012') for i in range(3)]
        names = [build_id(c) for c in copies]
        words = [copies[0], 'unlink', copies[0], 'hot', '0.1', 'exec', copies[1], 'unlink', copies[1], 'hot', '0.1', 'exec',
                 copies[2], 'unlink', copies[2], 'hot', '0.1']
        script = self.folder / 'script'
        script.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))}\n')
        script.chmod(0o755)
        self.record(*SAMPLE, '--', script)
        self.assertFalse(any(c.exists() for c in copies))
        self.assertEqual(set(names) - set(self.kept()), set())
        text = self.report()
        for copy in copies:
            self.assertTrue(re.search(rf'\b{copy.name}\b.*\bgone_hot$', text, re.M), text)
        self.assert_hot('gone_hot')

    def test_mount_namespace(self):
        live.need_mount_namespace()
        program, inside = self.program(), self.folder / 'inside'
        inside.mkdir()
        script = f'mount -t tmpfs none {inside} && cp {program} {inside}/hidden && exec {inside}/hidden hot 0.3'
        self.record(*SAMPLE, '--', 'unshare', '-m', 'sh', '-c', script)
        self.assertEqual(list(inside.iterdir()), [])
        program.unlink()
        self.assertIn('hidden', ' '.join(str(p) for p in self.kept().values()))
        self.assert_hot('gone_hot')

    def test_attached_in_chroot(self):
        """A process that runs already, in a tree of its own; another file lies at its path here."""
        tree = self.folder / 'tree'
        (tree / 'opt').mkdir(parents=True)
        inside = self.program('tree/opt/rt-inside', '-static')
        name = build_id(inside)
        program = live.Process(['chroot', tree, '/opt/rt-inside', 'say', 'pid', 'hot', '20'])
        try:
            pid = program.wait_line('pid').split()[1]
            self.record(*SAMPLE, '-p', pid, '--duration', '300ms')
        finally:
            program.kill()
        shutil.rmtree(tree)
        self.assertIn(name, self.kept())
        self.assert_hot('gone_hot')

    def test_file_system_is_free(self):
        """What ran from a file system does not keep it busy while the recording goes on."""
        program, place, go = self.program(), self.folder / 'place', self.folder / 'go'
        place.mkdir()
        subprocess.run(['mount', '-t', 'tmpfs', 'none', place], check=True)
        try:
            shutil.copy(program, place / 'inside')
            script = f'{place}/inside hot 0.2; umount {place} || exit 9; echo free'
            run = self.record(*SAMPLE, '--', 'sh', '-c', script)
            self.assertIn('free', run.stdout)
        finally:
            subprocess.run(['umount', '-q', place], check=False)
        self.assert_hot('gone_hot')
        self.assertFalse(go.exists())

    def test_debug_file_beside(self):
        program = self.program()
        debug = self.folder / 'gone.dbg'
        for words in (['objcopy', '--only-keep-debug', program, debug], ['strip', program],
                      ['objcopy', f'--add-gnu-debuglink={debug}', program]):
            subprocess.run([str(w) for w in words], check=True, cwd=self.folder)
        self.record(*SAMPLE, '--', program, 'hot', '0.1', 'unlink', program, 'unlink', debug, 'hot', '0.2')
        self.assertTrue(list(self.cache.rglob('debug')))
        text = self.report()
        self.assertRegex(text, r'(?m)^ *[\d.]+%.*\bgone_hot$')

    def test_cannot_keep(self):
        """A cache that cannot be made: said once, and the recording is whole."""
        program = self.program()
        (self.folder / 'file').write_text('')
        run = live.call('record', '-o', self.data, *SAMPLE, '--', program, 'hot', '0.1',
                        env=live.clean_env(PERF_BUILDID_DIR=str(self.folder / 'file')))
        self.assertEqual((run.status, run.stderr.count('W32')), (0, 1), str(run))
        self.assertIn('gone_hot', self.report())

    def test_link_leads_nowhere(self):
        """Under sudo the cache is written with the user's rights: a link in it does not make root write elsewhere."""
        program = self.program()
        secret = self.folder / 'secret'
        secret.mkdir(mode=0o700)
        self.cache.symlink_to(secret)
        run = live.call('record', '-o', self.data, *SAMPLE, '--', program, 'hot', '0.1',
                        env=dict(self.env, SUDO_UID='65534', SUDO_GID='65534', SUDO_USER='nobody'))
        self.assertIn('W32', run.stderr)
        self.assertEqual(list(secret.iterdir()), [])


class Users(Capture):
    def mine(self, name):
        """A folder of user nobody."""
        folder = self.folder / name
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        return folder

    def owners(self):
        return {(p.lstat().st_uid, p.lstat().st_gid) for p in self.cache.rglob('*')}

    def test_sudo(self):
        """Under sudo the cache belongs to the user."""
        home = self.mine('home')
        self.cache = home / 'cache'
        program = pathlib.Path(shutil.copy(self.program(), home / 'gone'))
        name = build_id(program)
        self.env = live.clean_env(PERF_BUILDID_DIR=str(self.cache))
        env = dict(self.env, SUDO_UID='65534', SUDO_GID='65534', SUDO_USER='nobody')
        self.record(*SAMPLE, '--', program, 'unlink', program, 'hot', '0.3', env=env)
        self.assertIn(name, self.kept())
        self.assertEqual(self.owners(), {(65534, 65534)})
        self.assert_hot('gone_hot')

    @live.alone('what a user may lock in memory is counted over all of its recordings')
    def test_ordinary_user(self):
        """Without map_files: by /proc/PID/exe, and by path for what lies there still."""
        paranoid = int(pathlib.Path('/proc/sys/kernel/perf_event_paranoid').read_text())
        if paranoid > 2:
            self.skipTest(f'kernel.perf_event_paranoid is {paranoid}: users may not sample')
        home = self.mine('home')
        self.cache, self.data = home / '.debug', home / 'data'
        self.env = live.clean_env(HOME=str(home))
        self.env.pop('PERF_BUILDID_DIR', None)
        program = pathlib.Path(shutil.copy(self.program(), home / 'gone'))
        library = self.library()
        names = {build_id(program), build_id(library)}
        self.record('-F', '999', '-g', '-e', 'cpu-clock:u', '--', program, 'unlink', program, 'lib', library, 'libhot',
                    '0.1', 'hot', '0.3', prefix=live.NOBODY)
        self.assertEqual(names - set(self.kept()), set())
        self.assertEqual(self.owners(), {(65534, 65534)})
        library.unlink()
        self.assert_hot('gone_hot')
        self.assert_hot('lib_hot', 15)


class Lifetimes(Capture):
    def test_deletes_itself(self):
        live.need_engine()
        program = self.program()
        name = build_id(program)
        self.record('-P', PAIRS, '--', program, 'unlink', program, 'leak', '20')
        self.assertFalse(program.exists())
        self.assertIn(name, self.kept())
        text = self.report()
        self.assertIn('lose_item', text)
        self.assertIn('gone.c:', text)

    def test_no_build_id(self):
        """Found again by its contents."""
        live.need_engine()
        program = self.program('gone', '-Wl,--build-id=none')
        self.record('-P', PAIRS, '--', program, 'unlink', program, 'leak', '20')
        self.assertIn('lose_item', self.report())

    def test_with_samples(self):
        live.need_engine()
        program = self.program()
        self.record(*SAMPLE, '-P', PAIRS, '--', program, 'unlink', program, 'leak', '20', 'hot', '0.2')
        text = self.report()
        self.assertIn('lose_item', text)
        self.assertRegex(text, r'(?m)^ *[\d.]+%.*\bgone_hot$')


if __name__ == '__main__':
    unittest.main()
