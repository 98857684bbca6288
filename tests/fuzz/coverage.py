#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How much of each parser the committed corpus reaches: the files of tests/fuzz/corpus exactly as they are, no changes.

    coverage.py BUILD [TARGET...]       BUILD: made with -fprofile-instr-generate -fcoverage-mapping

One line per target: sources, lines, lines that were run, per cent. Fails below 85 %. `./dev fuzz coverage` builds and
calls it. --missing prints the lines that nothing runs.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WANTED = 85
# Reading only: what writes, is measured where a target makes a round trip.
# name -> (folder, sources); of another target's corpus: a third part
TARGETS = {
    'perfdata': ('perfdata', 'attr decode features head inflate order reader sample type'),
    'tracing': ('perfdata', 'tracing tracefmt'),
    'spool': ('capture', 'reader decode column encode writer'),
    'bpfimage': ('bpfimage', 'btf decode encode extra find function image info'),
    'bpfinsn': ('insn', 'bpf bpf_helper_names'),
    'archive': ('archive', 'reader path'),
    'elf': ('elf', 'build_id image note sdt section symtab'),
    'operand': ('probe', 'operand'),
    'probes': ('cache', 'probes'),
    'request': ('probe', 'request request_argument'),
    'rows': ('dwarf', 'entry frame rows pointer'),
    'cached': ('probe', 'cached cached_match request_text'),
    'remote': ('probe', 'remote remote_script'),
    'kernel': ('probe', 'kernel kernel_type'),
    'kallsyms': ('elf', 'kallsyms', 'kernel'),
    'spec': ('probe', 'spec parse'),
    'demangle': ('elf', 'demangle demangle_rust'),
    'dwarf': ('dwarf', 'cfi datum die dwarf extent function inlined instance line location member part scope signature source step types where'),
    'named': ('dwarf', 'named'),
    'scan': ('probe', 'callers counted counter effect family flow handing inline inner making mangled opencoded overwrite point resolve scan scan_cxx '
             'scan_make scan_put scan_variant site survey tail track'),
    'split': ('dwarf', 'split_base'),
    'recording': ('recording', 'batch bpf_calls code host inventory kernel_names moved perf_view recording to_perf translate user_stack'),
}


def measure(build, target):
    """-> {(source, line): times it was run}"""
    folder, names, *of = TARGETS[target]
    target = of[0] if of else target
    wanted = {ROOT / 'src' / folder / (n + '.c') for n in names.split()}
    program = build / 'tests' / 'fuzz' / ('replay-' + target)
    raw, data = build / (target + '.profraw'), build / (target + '.profdata')
    subprocess.run([str(program), '-e', str(ROOT / 'tests/fuzz/corpus' / target)], check=True, stdout=subprocess.DEVNULL,
                   env={'LLVM_PROFILE_FILE': str(raw)})
    subprocess.run(['llvm-profdata-14', 'merge', '-sparse', str(raw), '-o', str(data)], check=True)
    # lcov's form has each line once; the summary counts those of a macro at each use
    out = subprocess.run(['llvm-cov-14', 'export', '-format=lcov', str(program), '-instr-profile', str(data)], check=True,
                         capture_output=True, text=True).stdout
    lines, source = {}, None
    for line in out.splitlines():
        if line.startswith('SF:'):
            source = pathlib.Path(line[3:]).resolve()
        elif line.startswith('DA:') and source in wanted:
            number, runs = line[3:].split(',')[:2]
            lines[source, int(number)] = int(runs)
    return lines


def main():
    words = [w for w in sys.argv[2:] if not w.startswith('-')]
    build, low = pathlib.Path(sys.argv[1]).resolve(), []
    for target in words or TARGETS:
        lines = measure(build, target)
        run = sum(n > 0 for n in lines.values())
        share = 100 * run / len(lines)
        if '--missing' in sys.argv:
            for (source, number), runs in sorted(lines.items()):
                if not runs:
                    print(f'{source.relative_to(ROOT)}:{number}: {source.read_text().splitlines()[number - 1].strip()}')
        print(f'{target:10} src/{TARGETS[target][0]}: {TARGETS[target][1].replace(" ", ", ")}: {len(lines)} lines, '
              f'{run} run, {share:.1f} %', flush=True)
        if share < WANTED:
            low.append(target)
    if low:
        print(f'below {WANTED} %: {", ".join(low)}')
    return 1 if low else 0


if __name__ == '__main__':
    sys.exit(main())
