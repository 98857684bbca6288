#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Other kernels: exported probes of programs and of kernel functions, SDT semaphores, and reftrace itself on each.

    run.py BUILD [KERNEL...]     KERNEL: 5.10, 6.1, 6.12, sid; none: all

Kernels are downloaded into BUILD/guests and kept there. One that cannot be had is skipped, with the reason.
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import guest
import kernels

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# on two cores without KVM a guest takes a minute; a busy machine more
LIMIT = 400
CHECKS = ['user_script', 'kernel_script', 'kernel_notrace', 'kernel_here', 'record_marker', 'record_modules', 'counter_returns', 'counter_written',
          'kernel_code', 'run_auto', 'run_tracefs', 'run_multi']
MULTI_SINCE = (6, 6)
ATOMICS_SINCE = (5, 12)


class Fault(Exception):
    """What this machine lacks, or what went wrong before a guest could be asked."""


def call(*words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Fault(f'{" ".join(map(str, words))}: {done.stderr.strip()}')
    return done.stdout


def export(build, *words):
    """The script that would be piped to the guest."""
    environment = {**os.environ, 'PERF_BUILDID_DIR': str(build / 'guests/no-cache')}
    return call(build / 'reftrace', 'probe', 'export', *words, env=environment)


def programs(build):
    """-> {name in /t: file}"""
    folder = build / 'guests/programs'
    folder.mkdir(parents=True, exist_ok=True)
    source = ROOT / 'tests'
    pad = source / 'programs/sdt-pad.c'
    # calls opens nothing of its own: the dynamic linker would
    for target, path, flags in (('sdt-pad', pad, ('-DPAD=3', '-DPAD_TEXT="3"')),
                                ('other/sdt-pad', pad, ('-DPAD=4', '-DPAD_TEXT="4"')),
                                ('counted', source / 'guests/counted.c', ()), ('calls', source / 'guests/calls.c', ('-static',)),
                                ('leak', ROOT / 'examples/leak.c', ('-fno-omit-frame-pointer',))):
        (folder / target).parent.mkdir(exist_ok=True)
        call('gcc', '-O2', '-g', '-w', *flags, path, '-o', folder / target)
    return {name: folder / name for name in ('sdt-pad', 'counted', 'calls', 'leak')}


def symbols(kernel, folder):
    """kallsyms of the guest, by a boot of its own: offsets from _text are those of each later boot."""
    if kernel.kallsyms.exists():
        return
    initrd = guest.Initrd(folder / 'root')
    initrd.pack(folder / 'initrd.gz')
    boot = guest.Boot(kernel.vmlinuz, folder / 'initrd.gz', folder, 'guest=symbols', LIMIT)
    try:
        text = gzip.decompress(boot.answers)
    except (EOFError, OSError) as e:
        raise Fault(f'its kallsyms could not be read ({boot.fault or e})\n{boot.console}') from e
    kernel.kallsyms.write_bytes(text)


def exports(build, kernel, initrd, made):
    """The scripts of user programs and of the kernel, in /t. -> facts for checks.sh"""
    initrd.text('t/user.sh', export(build, '--at', '/t/sdt-pad', made['sdt-pad']))
    initrd.text('t/other.sh', export(build, '--at', '/t/sdt-pad', build / 'guests/programs/other/sdt-pad'))
    kallsyms = kernel.kallsyms.read_text(encoding='ascii')
    # do_filp_open is called do_file_open in Linux 7
    function = 'do_filp_open' if ' do_filp_open\n' in kallsyms else 'do_file_open'
    definitions = ['opens=do_sys_openat2 dfd flags=how->flags name=filename:ustring',
                   'opened=do_sys_openat2%return ret=$retval', f'path={function} name=pathname->name:string']
    words = ['-q', '-k', kernel.vmlinux, '--kallsyms', kernel.kallsyms]
    script = export(build, *words, *definitions)
    initrd.text('t/kernel.sh', script)
    initrd.text('t/notrace.sh', export(build, *words, 'do_sys_openat2', 'kobject_get'))
    # the same probes, made for a kernel of another build-id
    wrong = re.sub(r"(?m)^want='(.)(.*)'$", lambda m: f"want='{int(m[1], 16) ^ 1:x}{m[2]}'", script)
    initrd.text('t/other-kernel.sh', wrong)
    version = tuple(map(int, re.search(r'(\d+)\.(\d+)', kernel.version).groups()))
    quoted = ' '.join("'" + d.replace("'", "'\\''") + "'" for d in definitions)
    return (f'checks="{" ".join(CHECKS)}"\npath_function={function}\nmulti={"yes" if version >= MULTI_SINCE else "no"}\n'
            f'atomics={"yes" if version >= ATOMICS_SINCE else "no"}\n'
            f'with_definitions() {{\n\t"$1" {quoted}\n}}\n')


def show_fault(boot):
    print('\n'.join('    ' + line for line in boot.console.splitlines()[-150:]))
    if boot.fault:
        print(f'    {boot.fault}')


def prove(build, name, made):
    """-> [passed, failed]"""
    began = time.monotonic()
    kernel = kernels.Kernel(build / 'guests', name)
    folder = build / f'guests/run-{name}'
    folder.mkdir(exist_ok=True)
    symbols(kernel, folder)
    initrd = guest.Initrd(folder / 'root')
    for place, path in {**made, 'reftrace': build / 'reftrace'}.items():
        initrd.add(path, f't/{place}')
    initrd.text('t/facts', exports(build, kernel, initrd, made))
    if module := kernel.module('loop'):
        (initrd.root / 't/loop.ko').write_bytes(module)
    initrd.pack(folder / 'initrd.gz')
    boot = guest.Boot(kernel.vmlinuz, folder / 'initrd.gz', folder, 'guest=check', LIMIT)
    answers = boot.answers.decode(errors='replace').splitlines()
    passed = [a.split()[1] for a in answers if a.startswith('ok ')]
    faults = [a for a in answers if not a.startswith('ok ') and a != 'end']
    missing = [c for c in CHECKS if c not in passed and not any(f.split()[1:2] == [c] for f in faults)]
    for check in passed:
        print(f'ok   {name} {check}')
    for fault in faults:
        print(f'FAIL {name} {fault.removeprefix("fail ")}')
    for check in missing:
        print(f'FAIL {name} {check}: the guest has not answered')
    if faults or missing:
        show_fault(boot)
    print(f'     {kernel.version}: {time.monotonic() - began:.0f} s', flush=True)
    return [len(passed), len(CHECKS) - len(passed)]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:] or list(kernels.KERNELS)
    total = [0, 0, 0]
    unknown = [n for n in wanted if n not in kernels.KERNELS]
    if unknown:
        print(f'guests: no kernel {unknown[0]}; there are: {" ".join(kernels.KERNELS)}', file=sys.stderr)
        return 2
    lack = [p for p in ('qemu-system-x86_64', '/bin/busybox', 'cpio') if not shutil.which(p)]
    made = programs(build) if not lack else None
    for name in wanted:
        try:
            if lack:
                raise kernels.Missing(f'{lack[0]} is not installed')
            done = prove(build, name, made)
            total = [total[0] + done[0], total[1] + done[1], total[2]]
        except kernels.Missing as e:
            print(f'skip {name}: {e}')
            total[2] += len(CHECKS)
        except Fault as e:
            print(f'FAIL {name}: {e}')
            total[1] += len(CHECKS)
    print(f'guests: {total[0]} passed, {total[1]} failed, {total[2]} skipped')
    return 1 if total[1] else 0


if __name__ == '__main__':
    sys.exit(main())
