# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of other Debian releases, from apt trees of their own: what this machine has installed stays as it is."""
import lzma
import pathlib
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'lib'))
from debian import Missing, apt, prepare  # pylint: disable=wrong-import-position

# what is wanted -> suite, package; the newest that the suite has is taken
KERNELS = {
    '5.10': ('bullseye', r'linux-image-5\.10\.[-0-9]+-cloud-amd64-unsigned'),
    '6.1': ('bookworm', r'linux-image-6\.1\.[-0-9]+-cloud-amd64-unsigned'),
    '6.12': ('trixie', r'linux-image-6\.12\.[-+0-9a-z.]+-cloud-amd64-unsigned'),
    'sid': ('sid', r'linux-(?:image|binary)-[0-9][-+0-9a-z.]*-cloud-amd64(?:-unsigned)?'),
}
UNPACK = {b'\x02\x21\x4c\x18': ['lz4', '-dc'], b'\x28\xb5\x2f\xfd': ['zstd', '-dc'], b'\xfd7zX': ['xz', '-dc'],
          b'\x1f\x8b\x08\x00': ['gzip', '-dc']}


def newest(names):
    return max(names, key=lambda n: [int(x) for x in re.findall(r'\d+', n)])


def download(folder, suite, pattern):
    """-> the package's file"""
    prepare(folder, 'deb', suite)
    names = re.findall(rf'(?m)^({pattern}) - ', apt(folder, 'apt-cache', 'search', '--names-only', 'cloud-amd64'))
    # "image" of sid has no kernel inside: that is "binary"'s
    names = [n for n in names if n.startswith('linux-binary-')] or names
    if not names:
        raise Missing(f'{suite} has no package like {pattern}')
    name = newest(names)
    apt(folder, 'apt-get', 'download', name, cwd=folder)
    found = sorted(folder.glob(name + '_*.deb'), key=lambda p: p.stat().st_mtime)
    if not found:
        raise Missing(f'apt-get download {name} left no file')
    return found[-1]


def unpack(vmlinuz, vmlinux):
    """The ELF file inside of a bzImage (Documentation/arch/x86/boot.rst: payload_offset, payload_length)."""
    image = vmlinuz.read_bytes()
    start, size = struct.unpack_from('<II', image, 0x248)
    start += ((image[0x1f1] or 4) + 1) * 512
    # what is behind the packed data is its length
    payload = image[start:start + size - 4]
    tool = UNPACK.get(payload[:4])
    if image[0x202:0x206] != b'\x02\x02\x00\x00' and image[0x1fe:0x200] != b'\x55\xaa' or not tool:
        raise Missing(f'{vmlinuz} is packed in an unknown way ({payload[:4].hex()})')
    try:
        done = subprocess.run(tool, input=payload, capture_output=True, check=False)
    except OSError as e:
        raise Missing(f'{tool[0]} is not installed') from e
    if done.stdout[:4] != b'\x7fELF':
        raise Missing(f'{vmlinuz} holds no ELF file')
    vmlinux.write_bytes(done.stdout)


class Kernel:
    """vmlinuz, what is inside of it, its modules, and where its symbols will lie."""
    def module(self, name):
        """A module's file as insmod takes it; None: the package is without modules, as sid's."""
        found = sorted((self.folder / self.version).glob(f'**/{name}.ko*'))
        if not found:
            return None
        data = found[0].read_bytes()
        return lzma.decompress(data) if found[0].suffix == '.xz' else data

    def __init__(self, cache, name):
        suite, pattern = KERNELS[name]
        self.folder = pathlib.Path(cache, suite)
        have = sorted(self.folder.glob('*.deb'), key=lambda p: p.stat().st_mtime)
        package = have[-1] if have else download(self.folder, suite, pattern)
        self.version = package.name.rsplit('_', 1)[0]
        tree = self.folder / self.version
        if not tree.is_dir():
            subprocess.run(['dpkg-deb', '-x', str(package), str(tree)], check=True)
        self.vmlinuz, = [p for p in tree.glob('**/vmlinuz*') if p.is_file()]
        self.vmlinux, self.kallsyms = tree / 'vmlinux', tree / 'kallsyms'
        if not self.vmlinux.exists():
            unpack(self.vmlinuz, self.vmlinux)
