#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs every test of a build folder and ends with `N passed, N failed, N skipped`.

    run-tests.py BUILD [--unit] [real]

Unit tests are cmocka programs that meson knows; each of their cases counts.
Live tests (tests/live/run.py) trace real programs with BUILD/reftrace.
A skipped test says why.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASE = re.compile(r'^\[\s+(OK|FAILED|SKIPPED|ERROR)\s+\] ([A-Za-z_]\w*)')


def unit(build):
    """meson's unit tests -> [passed, failed, skipped]"""
    log = build / 'meson-logs' / 'testlog.json'
    log.unlink(missing_ok=True)
    subprocess.run(['meson', 'test', '-C', str(build), '--no-rebuild', '--num-processes', '2'],
                   stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    total = [0, 0, 0]
    if not log.exists():
        print('no unit tests were run')
        return [0, 1, 0]
    for line in log.read_text().splitlines():
        test = json.loads(line)
        out = (test.get('stdout') or '') + '\n' + (test.get('stderr') or '')
        seen = {}
        for text in out.splitlines():
            m = CASE.match(text)
            if m:
                seen[m.group(2)] = m.group(1)
        bad = [n for n, r in seen.items() if r in ('FAILED', 'ERROR')]
        skipped = [n for n, r in seen.items() if r == 'SKIPPED']
        if test['result'] == 'SKIP':
            reason = out.strip().splitlines()[-1] if out.strip() else 'no reason given'
            print(f'skip {test["name"]}: {reason}')
            total[2] += max(1, len(skipped))
            total[0] += sum(r == 'OK' for r in seen.values())
            continue
        if test['result'] != 'OK' and not bad:
            bad = [test['name'] + ' (' + test['result'] + ', status ' + str(test.get('returncode')) + ')']
        total[0] += sum(r == 'OK' for r in seen.values()) or (test['result'] == 'OK' and not seen)
        total[1] += len(bad)
        total[2] += len(skipped)
        for name in skipped:
            print(f'skip {test["name"]}: {name}')
        if bad:
            print(f'FAIL {test["name"]}: {", ".join(bad)}')
            print('\n'.join('    ' + text for text in out.splitlines()[-40:]))
    print(f'unit: {total[0]} passed, {total[1]} failed, {total[2]} skipped', flush=True)
    return total


def live(build, real):
    """tests/live/run.py -> [passed, failed, skipped]"""
    env = dict(os.environ, REFTRACE=str(build / 'reftrace'), RT_BUILD_ROOT=str(build), RT_SOURCE_ROOT=str(ROOT))
    cmd = [sys.executable, str(ROOT / 'tests/live/run.py')] + (['--real'] if real else [])
    with subprocess.Popen(cmd, env=env, stdout=subprocess.PIPE, text=True) as p:
        # an interrupt from the terminal is for run.py as well, which ends what it has started and says where it was
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        last = ''
        for line in p.stdout:
            print(line, end='', flush=True)
            last = line if line.strip() else last
        status = p.wait()
        signal.signal(signal.SIGINT, handler)
    m = re.match(r'(\d+) passed, (\d+) failed, (\d+) skipped', last)
    if not m:
        print('the live tests did not come to their end')
        return [0, 1, 0]
    counts = [int(g) for g in m.groups()]
    if status and not counts[1]:
        counts[1] = 1
    return counts


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    total = unit(build)
    if '--unit' not in sys.argv:
        total = [a + b for a, b in zip(total, live(build, 'real' in sys.argv))]
    print(f'{total[0]} passed, {total[1]} failed, {total[2]} skipped')
    return 1 if total[1] or not total[0] else 0


if __name__ == '__main__':
    sys.exit(main())
