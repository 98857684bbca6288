# SPDX-License-Identifier: GPL-2.0-only
"""A guest: an initramfs of busybox, programs and their libraries, booted by qemu without KVM."""
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
# Linux 6.12 fell over right behind a cmpxchg16b of SLUB in two of two runs under TCG of qemu 7.2, without it in none
CPU = 'max,-cx16'
APPEND = 'console=ttyS0 quiet panic=-1 mitigations=off'


# what reftrace opens itself, when an instruction is to be read
OPENED = {'reftrace': r'libcapstone\.so\.4 .*x86-64.* => (/\S+)'}


def libraries(program):
    """What the dynamic linker loads for it, itself included, and what it opens later."""
    known = subprocess.run(['/sbin/ldconfig', '-p'], capture_output=True, text=True, check=True).stdout
    opened = re.findall(OPENED.get(pathlib.Path(program).name, '(?!)'), known)[:1]
    done = subprocess.run(['ldd', str(program), *opened], capture_output=True, text=True, check=False)
    return sorted({*re.findall(r'(/\S+) \(0x', done.stdout), *opened})


class Initrd:
    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ('bin', 'dev', 'proc', 'sys', 'tmp', 'root', 't'):
            (self.root / name).mkdir(parents=True)
        shutil.copy('/bin/busybox', self.root / 'bin/busybox')
        for name in subprocess.run(['/bin/busybox', '--list'], capture_output=True, text=True, check=True).stdout.split():
            if name != 'busybox':
                (self.root / 'bin' / name).symlink_to('busybox')
        self.add(HERE / 'init', 'init')
        self.add(HERE / 'checks.sh', 't/checks.sh')

    def add(self, source, place):
        """A program with its libraries, or any file."""
        target = self.root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        with open(source, 'rb') as f:
            is_elf = f.read(4) == b'\x7fELF'
        for library in libraries(source) if is_elf else ():
            inside = self.root / library.lstrip('/')
            if not inside.exists():
                inside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, inside)

    def text(self, place, text):
        (self.root / place).write_text(text, encoding='utf-8')

    def pack(self, target):
        names = sorted(str(p.relative_to(self.root)) for p in self.root.rglob('*'))
        packed = subprocess.run(['cpio', '--quiet', '-o', '-H', 'newc', '-R', '0:0'], input='\n'.join(names).encode(),
                                capture_output=True, check=True, cwd=self.root).stdout
        with open(target, 'wb') as f:
            subprocess.run(['gzip', '-1'], input=packed, stdout=f, check=True)


class Boot:
    """One run of a guest. console: what the kernel and programs said; answers: what /init wrote on the second line."""
    def __init__(self, vmlinuz, initrd, folder, words, limit):
        console, answers = folder / 'console', folder / 'answers'
        for path in (console, answers):
            path.unlink(missing_ok=True)
        command = ['qemu-system-x86_64', '-accel', 'tcg,thread=multi', '-cpu', CPU, '-m', '1024', '-smp', '2',
                   '-display', 'none', '-monitor', 'none', '-nodefaults', '-no-reboot', '-serial', f'file:{console}',
                   '-serial', f'file:{answers}', '-kernel', str(vmlinuz), '-initrd', str(initrd),
                   '-append', f'{APPEND} {words}']
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, 'LC_ALL': 'C'}) as qemu:
            try:
                said = qemu.communicate(timeout=limit)[0]
                self.fault = f'qemu ended with {qemu.returncode}: {said.decode()}' if qemu.returncode else None
            except subprocess.TimeoutExpired:
                qemu.kill()
                self.fault = f'the guest did not end within {limit} s'
        self.console = console.read_text(errors='replace') if console.exists() else ''
        self.answers = answers.read_bytes() if answers.exists() else b''
