#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which part of short-lived BPF programs is kept, reftrace beside perf record in the same run: ./dev bench bpf

Programs with BTF, line infos and three sub-programs are loaded and closed at once: in a tight loop, by
eight threads, and by bpftool. Needs root. `bpf-loss.py BUILD [LOADS]`; exit status 1 when reftrace lost one.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
NAME = 'a_program_with_a_long_name'


def build(folder):
    programs = SOURCE / 'tests' / 'programs'
    clang = shutil.which('clang-14') or 'clang'
    subprocess.run([clang, '-target', 'bpf', '-g', '-O2', '-c', programs / 'bpf-loop.bpf.c', '-o', folder / 'loop.o'],
                   check=True)
    subprocess.run(['gcc', '-O1', '-w', '-pthread', '-D_GNU_SOURCE', programs / 'bpf-loop.c', '-o', folder / 'loop',
                    '-lbpf'], check=True)


def perf_ids(perf, data):
    """Programs of which perf kept bpf_prog_info."""
    out = subprocess.run([perf, 'report', '--header-only', '-I', '-i', data], capture_output=True, text=True,
                         check=False).stdout
    return {int(n) for n in re.findall(r'^# bpf_prog_info (\d+):', out, re.MULTILINE)}


def measure(reftrace, perf, folder, command):
    """-> (programs of the loader, kept by reftrace, kept by perf or None)"""
    listing, data = folder / 'list.json', folder / 'perf.data'
    cmd = [reftrace, 'bpf', f'--json={listing}', '-o', '/dev/null', '--', *command]
    if perf:
        cmd = [perf, 'record', '-q', '-a', '-e', 'cpu-clock', '-F', '99', '-o', data, '--', *cmd]
    subprocess.run(list(map(str, cmd)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    programs = [p for p in json.loads(listing.read_text())['programs'] if p['name'] == NAME]
    kept = [p for p in programs if not p['lost'] and p['lines'] and p['btf_id'] and p['functions'] == 4]
    by_perf = len(perf_ids(perf, data) & {p['id'] for p in programs}) if perf else None
    return len(programs), len(kept), by_perf


def main():
    reftrace = pathlib.Path(sys.argv[1]).resolve() / 'reftrace'
    loads = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    perf = shutil.which('perf')
    bpftool = shutil.which('bpftool') or '/usr/sbin/bpftool'
    failed = False
    with tempfile.TemporaryDirectory(prefix='rt-bpf-loss-') as name:
        folder = pathlib.Path(name)
        fs = folder / 'bpffs'
        fs.mkdir()
        build(folder)
        subprocess.run(['mount', '-t', 'bpf', 'bpf', fs], check=True)
        try:
            script = (f'for i in $(seq {loads * 2 // 5}); do {bpftool} prog load {folder}/loop.o {fs}/p && '
                      f'rm {fs}/p || exit 1; done')
            for what, count, command in (
                    ('tight loop', loads, [folder / 'loop', folder / 'loop.o', loads]),
                    ('8 threads', loads // 8 * 8, [folder / 'loop', folder / 'loop.o', loads // 8, 8]),
                    ('bpftool load, rm', loads * 2 // 5, ['sh', '-c', script])):
                seen, kept, by_perf = measure(reftrace, perf, folder, command)
                line = f'{what:18} {count} loaded; reftrace kept {kept} ({100 * kept / count:.1f} %)'
                if by_perf is not None:
                    line += f', perf {by_perf} ({100 * by_perf / count:.1f} %)'
                print(line, flush=True)
                failed |= kept != count or seen != count
        finally:
            subprocess.run(['umount', fs], check=False)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
