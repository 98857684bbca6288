# SPDX-License-Identifier: GPL-2.0-only
"""What a mass test comes to: hits by program, kind and trait, the reliability of confidences, failures by cause."""
import collections
import json
import sys

BINS = (0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01)


def line(name, rows):
    count = len(rows)
    first, third = sum(r['rank'] == 1 for r in rows), sum(r['rank'] <= 3 for r in rows)
    print(f'  {name:<34} {count:>5} {first:>5} {third:>5} {100 * first / count:>5.0f} % {100 * third / count:>4.0f} %')


def grouped(rows, keys):
    """rows by each of the keys that a row has"""
    groups = collections.defaultdict(list)
    for row in rows:
        for key in keys(row):
            groups[key].append(row)
    return sorted(groups.items())


def reliability(rows):
    """What was claimed beside what came true."""
    print('  confidence     cases  claimed  true')
    for low, high in zip(BINS, BINS[1:]):
        inside = [r for r in rows if r.get('confidence') is not None and low <= r['confidence'] < high]
        if inside:
            claimed = sum(r['confidence'] for r in inside) / len(inside)
            came = sum(r['rank'] == 1 for r in inside) / len(inside)
            print(f'  {low:.2f} to {min(high, 1):.2f} {len(inside):>6} {claimed:>8.2f} {came:>5.2f}')


def show(rows, title):
    print(f'\n{title}: cases, top-1, top-3')
    line('all', rows)
    for keys in (lambda r: [r['case'].split('/')[0]], lambda r: [r['kind']], lambda r: r.get('traits', [])):
        print()
        for name, inside in grouped(rows, keys):
            line(name, inside)
    print()
    reliability(rows)
    print('\n  failures by cause')
    causes = collections.Counter(r['cause'] for r in rows if r['rank'] != 1)
    for cause, count in causes.most_common():
        print(f'  {count:>5}  {cause}')
    healthy = [names for r in rows for names in r['healthy']]
    print(f'  healthy programs accused: {sum(bool(n) for n in healthy)} of {len(healthy)}\n', flush=True)


def main():
    """table.py FILE...: a table for each file of tools/score.py --json; table.py --all TITLE FILE...: one for all."""
    merged = sys.argv[1:2] == ['--all']
    rows = []
    for path in sys.argv[3 if merged else 1:]:
        with open(path, encoding='utf-8') as file:
            rows.append((path, json.load(file)))
    if merged:
        rows = [(sys.argv[2], [row for _, some in rows for row in some])]
    for title, some in rows:
        show(some, title)


if __name__ == '__main__':
    main()
