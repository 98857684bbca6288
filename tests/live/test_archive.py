# SPDX-License-Identifier: GPL-2.0-only
"""An archive says elsewhere what was said here; hostile archives harm nobody."""
import hashlib
import io
import os
import re
import resource
import shutil
import subprocess
import tarfile
import unittest

import live

FLAGS = ('-g', '-O1', '-fno-omit-frame-pointer')
BURN = '150'
VERBS = (['report'], ['report', '--json'], ['report', '--samples', '--json'], ['script', '--show-mmap-events'],
         ['annotate'])
# In namespaces of its own: the program, its source and all of /usr are gone; HOME is another one.
ELSEWHERE = '''set -e
mount -t tmpfs none "$1"
cd "$2"
export HOME="$3"
mount -t tmpfs none /usr
shift 3
exec "$@"
'''


def compiled(folder, name):
    """A program whose source lies beside it, so that both can be hidden."""
    source = folder / (name + ('.cc' if (live.PROGRAMS / (name + '.cc')).exists() else '.c'))
    shutil.copy(live.PROGRAMS / source.name, source)
    for header in live.PROGRAMS.glob('*.h'):
        shutil.copy(header, folder)
    live._compile(source, folder / name, 'gcc', FLAGS)  # pylint: disable=protected-access
    return folder / name


def portable(folder):
    """reftrace with its libraries, startable without /usr: the words to call it."""
    folder.mkdir()
    known = subprocess.run(['ldconfig', '-p'], capture_output=True, text=True, check=True,
                           env={**os.environ, 'PATH': os.environ['PATH'] + ':/sbin'}).stdout
    # opened when an instruction or an archive is to be read
    later = [re.search(rf'{name} .*x86-64.* => (/\S+)', known)[1]
             for name in (r'libcapstone\.so\.4', r'libarchive\.so\.13')]
    out = subprocess.run(['ldd', str(live.REFTRACE), *later], capture_output=True, text=True, check=True).stdout
    loader = None
    for path in sorted({*re.findall(r'(/\S+) \(0x', out), *later}):
        shutil.copy(path, folder)
        if '/ld-linux' in path:
            loader = folder / os.path.basename(path)
    shutil.copy(live.REFTRACE, folder / 'reftrace')
    return [str(loader), '--library-path', str(folder), str(folder / 'reftrace')]


class Archive(live.LiveTest):
    def setUp(self):
        live.need_binary()
        if os.geteuid():
            self.skipTest('needs root (uprobes, perf_event_open)')
        self.folder = live.temp_path('archive')
        self.folder.mkdir()

    def create(self, recording, **more):
        archive = self.folder / 'x.tar.zst'
        run = live.call('archive', 'create', '-i', recording, '-o', archive, **more)
        self.assertEqual(run.status, 0, str(run))
        return archive

    def record(self, name, lifetimes, samples, *more):
        programs = self.folder / 'programs'
        programs.mkdir(exist_ok=True)
        program = compiled(programs, name)
        recording = self.folder / (name + '.data')
        words = [*live.told(program, 'ok')] if lifetimes else []
        words += ['-F', '999', '-e', 'cpu-clock', '-g'] if samples else []
        run = live.call('record', '-q', *more, '-o', recording, *words, '--', program, 'bug' if lifetimes else BURN)
        self.assertEqual(run.status, 0, str(run))
        return recording


class Elsewhere(Archive):
    def setUp(self):
        super().setUp()
        if subprocess.run(['unshare', '-m', '-U', '-r', 'mount', '-t', 'tmpfs', 'none', '/mnt'], capture_output=True,
                          check=False).returncode:
            self.skipTest('no mount and user namespaces here')

    def elsewhere(self, where, words, tool):
        home = self.folder / 'home'
        home.mkdir(exist_ok=True)
        return subprocess.run(['unshare', '-m', '-U', '-r', 'sh', '-c', ELSEWHERE, 'sh', str(self.folder / 'programs'),
                               str(where), str(home), *tool, *words], capture_output=True, text=True, check=False,
                              env=live.clean_env())

    def same(self, name, lifetimes, samples):
        recording = self.record(name, lifetimes, samples)
        archive = self.create(recording)
        tool = portable(self.folder / 'tool')
        unpacked, bare = self.folder / 'unpacked', self.folder / 'bare'
        self.assertEqual(live.call('archive', 'unpack', '-C', unpacked, archive).status, 0)
        bare.mkdir()
        shutil.copy(recording, bare)
        different = 0
        for verb in VERBS:
            if (not samples and verb[0] in ('report', 'annotate') and '--samples' in verb):
                continue
            words = [*verb, '-i', recording.name]
            with self.subTest(words=words):
                here = live.call(*words, cwd=recording.parent)
                there = self.elsewhere(unpacked, words, tool)
                self.assertIn(here.status, (0, 24), str(here))
                self.assertEqual(there.returncode, here.status, there.stderr)
                self.assertEqual(there.stdout, here.stdout)
                self.assertGreater(len(here.stdout), 100)
                different += self.elsewhere(bare, words, tool).stdout != here.stdout
        # else the place hides nothing, and the test shows nothing
        self.assertGreater(different, 1)

    def test_lifetimes(self):
        live.need_engine()
        self.same('missing-put', True, False)

    def test_samples(self):
        self.same('hot-cxx', False, True)

    def test_both(self):
        live.need_engine()
        self.same('extra-put', True, True)


def zstd(*parts):
    """A zstd frame of blocks as they are (bytes) and of repeated ones ((byte, count))."""
    block, out, bits = 128 << 10, b'\x28\xb5\x2f\xfd\x00\x58', []
    for part in parts:
        if isinstance(part, bytes):
            bits += [(0, len(part[i:i + block]), part[i:i + block]) for i in range(0, len(part), block)]
        else:
            bits += [(1, block, part[0])] * (part[1] // block)
    for i, (kind, size, data) in enumerate(bits):
        out += (size << 3 | kind << 1 | (i + 1 == len(bits))).to_bytes(3, 'little') + data
    return out


def entry(path, data=b'', kind=tarfile.REGTYPE, link='', size=None):
    """One entry of a tar, header and content."""
    info = tarfile.TarInfo(path)
    info.type, info.linkname = kind, link
    info.size = len(data) if size is None else size
    return info.tobuf(tarfile.GNU_FORMAT) + data + b'\0' * (-len(data) % 512)


def item(path, data, origin=None, digest=None, build_id='-'):
    return (f'item {digest or hashlib.sha256(data).hexdigest()} {len(data)} {build_id} {origin or path}\n'
            f'path {path}\n').encode()


def manifest(*items):
    return entry('MANIFEST', b'reftrace-archive 1\n' + b''.join(items))


END = b'\0' * 1024
DATA = b'some bytes'


class Hostile(Archive):
    """What must be refused, with nothing written anywhere."""

    def refuse(self, data, *words, text=None, verbs=('list', 'unpack')):
        path, target = self.folder / 'evil.tar.zst', self.folder / 'out'
        path.write_bytes(data)
        before = sorted(self.folder.rglob('*'))
        for verb in verbs:
            args = ['-C', target] if verb == 'unpack' else []
            done = subprocess.run([str(live.REFTRACE), 'archive', verb, *map(str, args), *words, str(path)],
                                  capture_output=True, text=True, errors='replace', check=False, env=live.clean_env(),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
            self.assertNotIn(done.returncode, (0,), f'{verb}\n{done.stdout}{done.stderr}')
            self.assertGreater(done.returncode, 0, f'{verb}: a signal\n{done.stderr}')
            self.assertRegex(done.stderr, r'reftrace: E\d\d ')
            if text:
                self.assertRegex(done.stderr, text)
        self.assertEqual(sorted(self.folder.rglob('*')), before)

    def test_paths(self):
        for path in ('../evil', '/tmp/rt-evil', 'sources/../../evil', 'objects/../evil', './x', 'a//b', '..', '.',
                     'sources/', 'x\ny', 'x' * 5000):
            with self.subTest(path=path[:40]):
                info = tarfile.TarInfo(path)
                info.size = len(DATA)
                stream = io.BytesIO()
                with tarfile.open(fileobj=stream, mode='w') as tar:
                    tar.addfile(info, io.BytesIO(DATA))
                self.refuse(stream.getvalue()[:-1024].rstrip(b'\0') + b'\0' * 1024 + END)
                self.refuse(entry(path[:90], DATA) + manifest(item(path, DATA)) + END)
        self.assertFalse(os.path.exists('/tmp/rt-evil'))

    def test_links_and_devices(self):
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
                     tarfile.DIRTYPE):
            with self.subTest(kind=kind):
                self.refuse(entry('x.data', kind=kind, link='/etc/passwd') + entry('x.data/y', DATA) +
                            manifest(item('x.data/y', DATA)) + END)

    def test_wrong_hash(self):
        self.refuse(entry('x.data', DATA) + manifest(item('x.data', DATA, digest='0' * 64)) + END, text='hash')

    def test_wrong_size(self):
        self.refuse(entry('x.data', DATA) + manifest(item('x.data', DATA + b'!', digest=hashlib.sha256(DATA).hexdigest()))
                    + END)

    def test_two_manifests(self):
        one = manifest(item('x.data', DATA))
        self.refuse(entry('x.data', DATA) + one + one + END, text='two manifests')

    def test_no_manifest(self):
        self.refuse(entry('x.data', DATA) + END, text='no manifest')
        self.refuse(b'')
        self.refuse(b'\0' * 4096)
        self.refuse(os.urandom(4096))

    def test_manifest_and_content_differ(self):
        self.refuse(entry('x.data', DATA) + entry('y', DATA) + manifest(item('x.data', DATA)) + END)
        self.refuse(entry('x.data', DATA) + manifest(item('x.data', DATA), item('y', DATA)) + END)
        self.refuse(entry('x.data', DATA) * 2 + manifest(item('x.data', DATA)) + END)

    def test_bad_manifests(self):
        for line in (b'item', b'item x 1 - y', b'path x', b'why x', b'item ' + b'0' * 64 + b' -1 - y', b'\xff\xfe',
                     b'item ' + b'0' * 64 + b' 99999999999999999999 - y', b'missing', b'item ' + b'0' * 64 + b' 1 ../x y'):
            with self.subTest(line=line):
                self.refuse(entry('x.data', DATA) + manifest(item('x.data', DATA), line + b'\n') + END)

    def test_bombs(self):
        """Zeros that unpack to very much: refused by the header, or while they come."""
        huge = 200 << 20
        honest = zstd(entry('x.data', size=huge), (b'\0', huge), END)
        self.assertLess(len(honest), 20000)
        self.refuse(honest, '--max-size', '16M', text='--max-size')
        # the header lies, in both directions
        self.refuse(zstd(entry('x.data', size=1 << 20), (b'\0', huge), END), '--max-size', '16M')
        self.refuse(zstd(entry('x.data', size=12 << 20), (b'\0', 1 << 20)), '--max-size', '16M')
        self.refuse(zstd(entry('x.data', size=1 << 62), END), text='more than')
        if not live.REAL:
            return
        many = b''.join(entry(f'f{i}') for i in range(2000))
        self.refuse(zstd(*[many] * 60, END), text='more than')

    def test_nothing_that_belongs(self):
        for path in ('.bashrc', '.debug/x', 'lib/x.so', 'objects/x', 'objects/00/elf/x', 'objects/0011/what'):
            with self.subTest(path=path):
                self.refuse(entry('x.data', DATA) + entry(path, DATA) +
                            manifest(item('x.data', DATA), item(path, DATA, build_id='0011')) + END, verbs=['unpack'])

    def test_other_folder(self):
        """What lies in the way is not written over, nor followed."""
        data = entry('x.data', DATA) + entry('sources/a/b.c', DATA) + \
            manifest(item('x.data', DATA), item('sources/a/b.c', DATA)) + END
        (self.folder / 'good.tar').write_bytes(data)
        outside, target = self.folder / 'outside', self.folder / 'target'
        outside.mkdir()
        target.mkdir()
        (target / 'sources').symlink_to(outside)
        run = live.call('archive', 'unpack', '-C', target, self.folder / 'good.tar')
        self.assertNotEqual(run.status, 0, str(run))
        self.assertEqual(list(outside.iterdir()), [])
        run = live.call('archive', 'unpack', '-C', self.folder / 'new', self.folder / 'good.tar')
        self.assertEqual(run.status, 0, str(run))
        self.assertEqual((self.folder / 'new' / 'sources' / 'a' / 'b.c').read_bytes(), DATA)


class Damaged(Archive):
    def test_cut_and_flipped(self):
        """Every cut is noticed. A flipped byte is noticed, or nothing that was recorded is another."""
        recording = self.record('hot', False, True)
        archive = self.create(recording)
        data, want = archive.read_bytes(), recording.read_bytes()
        step = max(1, len(data) // (400 if live.REAL else 40))
        path, target = self.folder / 'cut.tar.zst', self.folder / 'out'
        for size in [*range(0, len(data), step), len(data) - 1]:
            path.write_bytes(data[:size])
            run = live.call('archive', 'list', path)
            self.assertTrue(0 < run.status < 128, f'cut at {size}: {run}')
            self.assertRegex(run.stderr, r'reftrace: E\d\d ', f'cut at {size}')
        for at in range(0, len(data), step):
            changed = bytearray(data)
            changed[at] ^= 1 << at % 8
            path.write_bytes(changed)
            run = live.call('archive', 'unpack', '-C', target, path)
            self.assertTrue(0 <= run.status < 128, f'flipped at {at}: {run}')
            if run.status == 0:
                self.assertEqual((target / recording.name).read_bytes(), want, f'flipped at {at}')
            shutil.rmtree(target, ignore_errors=True)

    def test_list_tells_what_is_missing(self):
        # no cache: what is gone is gone
        recording = self.record('hot', False, True, '-N')
        run = live.call('archive', 'list', self.create(recording))
        self.assertEqual(run.status, 0, str(run))
        self.assertNotIn('missing', run.stdout)
        (self.folder / 'programs' / 'hot.c').unlink()
        (self.folder / 'programs' / 'hot').unlink()
        archive = self.create(recording, env=live.clean_env(HOME=str(self.folder)))
        run = live.call('archive', 'list', archive)
        self.assertEqual(run.status, 24, str(run))
        self.assertRegex(run.stdout, r'(?m)^ *missing .*/programs/hot: ')


if __name__ == '__main__':
    unittest.main()
