#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How often the guilty function is named first: runs a corpus of programs with known bugs and prints the table.

    score.py BUILD [--blind] [--engine NAME] [--runs N] [--case ID]... [--keep FOLDER | --from FOLDER] [--json FILE] DIR...

DIR is one program of a corpus: DIR/truth.json says its types (their functions) and its cases (which function is
guilty, how to run the buggy and the healthy build). The run lines are started in the folder above DIR with ./ in front;
the words in the environment variable PFX come before the traced command. --blind tells reftrace nothing, otherwise it
is told the functions of truth.json and no more. --keep writes the recordings of the first run of each, --from reports
from them instead of running anything, which shows in seconds what a change of the analysis does.

--same scores nothing: each case is recorded under each engine, each recording is replayed, exported as .events and read
again; what one of these says otherwise is printed, and makes exit status 1. Programs do not do the same in each run, so
engines are compared by what is accused and of how many objects, and where these differ, with more runs of the first of
them, which may differ as well; recordings and texts are compared by the whole answer.

A suspect is a function that a finding names; the functions of the type itself do not count. A case is a hit when the
median of its runs names a guilty function first. On a healthy build every finding is a false accusation, on a buggy
one every finding whose first suspect is neither guilty nor a known other bug.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MISS = 99
NO_ANSWER = 'no answer'
TIMEOUT = 600
AGAIN = 4  # runs of one engine, where engines differ
ENGINES = ('agent', 'agent+uprobe', 'uprobe') if os.geteuid() == 0 else ('agent',)


def functions(entries):
    """The names in a list of functions, written as strings or as {'function': ...}."""
    return [e if isinstance(e, str) else e['function'] for e in entries]


def place(entry, op):
    """What a SPEC says behind a function: where the object is. Arguments count from 0 in truth.json."""
    if isinstance(entry, str):
        return entry
    if 'spec' in entry:
        return entry['spec']
    text = entry['function']
    if 'arg' in entry and op != 'new':
        text += ':{}{}'.format('*' if entry.get('pointer') else '', entry['arg'] + 1)
    return text


def spec(name, kind):
    """One type of truth.json as a SPEC."""
    words = ['type=' + re.sub(r'\W', '_', name)]
    for op in ('new', 'get', 'put', 'free', 'hidden'):
        words += [f'{op}={place(entry, op)}' for entry in kind.get(op, [])]
    if isinstance(kind.get('count_start'), int):
        words.append(f'start={kind["count_start"]}')
    if kind.get('counter'):
        words.append(f'counter={kind["counter"]}')
    return ' '.join(words)


def accused(answers):
    """What has to be the same under each engine."""
    return sorted((f['kind'], f['type'], (f['guilty'] or {}).get('function') or '', f['objects']) for a in answers for f in a['findings'])


def essence(answer):
    """What has to be the same however one recording is read."""
    def name(frame):
        return [(frame or {}).get(key) for key in ('function', 'file', 'line')]
    return {'findings': [(f['id'], f['kind'], f['type'], f['objects'], f['references'], f['confidence'], name(f['guilty']), name(f['taken_by']))
                         for f in answer['findings']],
            'suspects': [f['id'] for f in answer['suspects']],
            'types': [(t['name'], t['new'], t['get'], t['put'], t['free'], t['live']) for t in answer['types']],
            'alive': sorted((a['type'], a['objects'], a['reason']) for a in answer['alive']),
            'trust': [answer['trust'][key] for key in ('lost', 'complete', 'events')]}


class Case:
    """One bug, its truth and what was found."""

    def __init__(self, folder, truth, case):
        self.folder, self.id, self.kind = folder, case['id'], case['kind']
        self.name = f'{truth["name"]}/{self.id}'
        guilty = case['guilty']
        self.guilty = {guilty['function'], *guilty.get('also_accepted', [])}
        self.symbol = set(guilty.get('inlined_into', []))
        self.taker = set(guilty.get('reference_taken_by', []))
        self.expected = case.get('expected_leaked')
        self.traits = truth.get('traits', []) + case.get('traits', [])
        self.commands = {'buggy': case['run'], 'healthy': case.get('run_healthy')}
        own = truth['types'].get(case['type'], {})
        self.skip = {name for key in ('new', 'get', 'put', 'free', 'hidden', 'wrappers')
                     for name in functions(own.get(key, []))}
        self.specs = [spec(name, kind) for name, kind in truth['types'].items()]
        # functions that do wrong on purpose: neither counted nor held against anyone
        self.other = truth.get('skip', [])
        self.skip |= set(self.other)
        # other bugs that the program is known to have: named in words, or by the id of their own case
        told = ' '.join(truth.get('known_other_bugs', []))
        self.known = set(re.findall(r'\w+', told))
        for other in truth['cases']:
            if other['id'] in told:
                self.known |= {other['guilty']['function'], *other['guilty'].get('also_accepted', [])}

    def is_other(self, finding):
        """It speaks of one that does wrong on purpose, and of no case."""
        return (finding.get('guilty') or {}).get('function') in self.other

    def suspects(self, found):
        """All suspects, best first, each function once."""
        names = []
        for finding in found:
            for guilty in [finding.get('guilty'), *finding.get('alternatives', [])]:
                name = guilty and guilty.get('function')
                if name and name not in self.skip and name not in names:
                    names.append(name)
        return names

    def cause(self, found, suspected):
        """Why nobody guilty is named first, as far as the answer tells."""
        names = self.suspects(found)
        frames = {f.get('function') for one in found for s in one.get('stacks', []) for f in s['frames']}
        if not found:
            known = self.guilty & set(self.suspects(suspected))
            return 'only suspected' if known else 'somebody else suspected' if suspected else 'nothing found'
        if self.guilty & set(names):
            return 'named, but not first'
        return 'another frame of the same stack' if self.guilty & frames else 'another stack'

    def rank(self, names, wanted):
        return next((i + 1 for i, name in enumerate(names) if name in wanted), MISS)

    def false(self, found, buggy):
        """Accusations that are not true."""
        fine = self.known | (self.guilty | self.symbol | self.taker if buggy else set())
        return [f for f in found if f.get('guilty') and f['guilty'].get('function') not in fine]


class Runner:
    """Runs cases, or reports from what runs have left."""

    def __init__(self, options):
        self.options = options
        self.tool = options.build.resolve() / 'reftrace'
        self.temp = pathlib.Path(tempfile.mkdtemp(prefix='rt-score-'))
        self.seen = {}

    def trace(self, case, which, number):
        """-> (findings best first, what is only suspected, all complete?, seconds, any answer?)"""
        if self.options.source:
            answers, seconds = self.replay(self.options.source / case.name / which), 0
        else:
            answers, seconds = self.run(case, which, number)
        found, suspected = ([f for a in answers for f in a.get(kind, []) if not case.is_other(f)] for kind in ('findings', 'suspects'))
        found.sort(key=lambda f: -f['confidence'])
        whole = bool(answers) and all(a['trust']['complete'] for a in answers)
        return found, suspected, whole, seconds, bool(answers)

    def run(self, case, which, number):
        folder = self.temp / f'{case.name}-{which}-{number}'
        folder.mkdir(parents=True)
        words = shlex.split(case.commands[which])
        told = ['--no-presets', '--no-models'] if self.options.blind else [w for s in case.specs for w in ('-P', s)]
        out = ['-q', '-o', '/dev/null', '--engine', self.options.engine, *told]
        # a run line may start the traced command more than once: a file for each
        files = f'--json={shlex.quote(str(folder))}/$$.json'
        if self.options.keep and not number:
            kept = self.options.keep.resolve() / case.name / which
            kept.mkdir(parents=True, exist_ok=True)
            for old in kept.glob('*.data'):
                old.unlink()
            files += f' -w {shlex.quote(str(kept))}/$$.data'
        script = folder / 'trace'
        script.write_text(f'#!/bin/sh\nexec {self.tool} run {shlex.join(out)} {files} -- "$@"\n')
        script.chmod(0o755)
        begin = time.monotonic()
        with open(folder / 'log', 'w', encoding='utf-8') as log, \
                subprocess.Popen(['./' + words[0], *words[1:]], cwd=case.folder.parent, stdout=log, stderr=log,
                                 stdin=subprocess.DEVNULL, start_new_session=True,
                                 env={**os.environ, 'PFX': str(script)}) as process:
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        seconds = time.monotonic() - begin
        return self.read(sorted(folder.glob('*.json'))), seconds

    def healthy(self, case, runs):
        """What is found in each run of the healthy build: cases that share its run line share these runs."""
        command = case.commands['healthy']
        if command and (command, case.folder) not in self.seen:
            self.seen[command, case.folder] = [self.trace(case, 'healthy', i)[0] for i in range(runs)]
        return self.seen.get((command, case.folder), [])

    def replay(self, folder):
        answers = []
        for i, recording in enumerate(sorted(folder.glob('*.data'))):
            path = self.temp / f'replay-{i}.json'
            subprocess.run([self.tool, 'report', '-q', '-o', '/dev/null', f'--json={path}', '-i', recording],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=TIMEOUT)
            answers += self.read([path])
            path.unlink(missing_ok=True)
        return answers

    @staticmethod
    def read(paths):
        """The answers in these files; one that was not written whole is none."""
        answers = []
        for path in paths:
            try:
                answers.append(json.loads(path.read_text()))
            except (OSError, ValueError):
                continue
        return answers


class Same:
    """Whether a case is told the same by each way there is."""

    def __init__(self, options):
        self.tool = options.build.resolve() / 'reftrace'
        self.temp = pathlib.Path(tempfile.mkdtemp(prefix='rt-same-'))
        self.runners = {engine: Runner(argparse.Namespace(**{**vars(options), 'engine': engine, 'source': None, 'keep': self.temp / engine}))
                        for engine in ENGINES}

    def reread(self, recording, first):
        """How the recording and the text made of it differ from what the run itself said."""
        text, again = self.temp / 'text.events', self.temp / 'again.json'
        with open(text, 'wb') as out:
            subprocess.run([self.tool, 'script', '--events', '-i', recording], stdout=out, stderr=subprocess.DEVNULL, check=False)
        for way, source in (('replay', recording), ('text', text)):
            again.unlink(missing_ok=True)
            subprocess.run([self.tool, 'report', '-q', '-o', '/dev/null', f'--json={again}', '-i', source], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=TIMEOUT)
            for answer in Runner.read([again]) or [None]:
                said = essence(answer) if answer else {}
                yield from (f'{way}: {key}: {said.get(key)}, not {value}' for key, value in essence(first).items() if said.get(key) != value)

    def compare(self, case, which):
        """-> (what differs, a line each; what each engine accuses; number of recordings)"""
        different, said, recordings = [], {}, 0
        for engine, runner in self.runners.items():
            answers, _ = runner.run(case, which, 0)
            said[engine] = accused(answers)
            kept = self.temp / engine / case.name / which
            for recording in sorted(kept.glob('*.data')):
                told = Runner.read([runner.temp / f'{case.name}-{which}-0' / f'{recording.stem}.json'])
                different += [f'{engine}: {recording.stem}: {what}' for what in (self.reread(recording, told[0]) if told else ['no answer'])]
                recordings += 1
                recording.unlink()
        first = next(iter(said))
        others = [engine for engine in said if said[engine] != said[first]]
        # a program that does not do the same twice is told by runs under one engine
        more = [accused(self.runners[first].run(case, which, n)[0]) for n in range(1, AGAIN)] if others else []
        for engine in others:
            what = f'{engine} accuses {said[engine]}, {first} {said[first]}'
            if any(again != said[first] for again in more):
                print(f'  {what}; by itself, too, the program does not do the same: {first} {more}')
            else:
                different.append(what)
        return different, said, recordings

    def check(self, case):
        """Are all of its runs told the same?"""
        good = True
        for which, command in case.commands.items():
            different, said, recordings = self.compare(case, which) if command else ([], {}, 1)
            different += [] if recordings else ['nothing was recorded']
            good &= not different
            if command:
                print(f'{case.name:<22} {which:<8} {recordings:>3} recordings, {len(next(iter(said.values())))} findings: '
                      f'{"differs" if different else "same"}', flush=True)
            for what in different:
                print(f'  {what}', flush=True)
        return good


def score(runner, case, runs):
    """One row of the table."""
    row = {'case': case.name, 'kind': case.kind}
    ranks, symbols, takers, complete, seconds, false, first, leaked = ([] for _ in range(8))
    silent = False
    for i in range(runs):
        found, suspected, whole, took, answered = runner.trace(case, 'buggy', i)
        silent |= not answered
        names = case.suspects(found)
        ranks.append(case.rank(names, case.guilty))
        symbols.append(case.rank(names, case.guilty | case.symbol))
        takers.append(case.rank(names, case.taker))
        complete.append(whole)
        seconds.append(took)
        false.append(len(case.false(found, True)))
        first.append((names or ['-'])[0])
        leaked.append(next((f['objects'] for f in found if f.get('guilty') and
                            f['guilty'].get('function') in case.guilty | case.symbol | case.taker), 0))
    row.update(rank=statistics.median_low(ranks), symbol=statistics.median_low(symbols),
               taker=statistics.median_low(takers), complete=sum(complete), false=statistics.median_low(false),
               first=first[len(first) // 2], seconds=statistics.median(seconds), runs=runs,
               count=None if case.expected is None else abs(statistics.median_low(leaked) - case.expected) <= 1,
               leaked=statistics.median_low(leaked), expected=case.expected)
    # the last run speaks for what is not a number
    row.update(cause=NO_ANSWER if silent else case.cause(found, suspected),
               confidence=found[0]['confidence'] if found else None, traits=case.traits)
    row['healthy'] = [[f['guilty']['function'] for f in case.false(found, False)]
                      for found in runner.healthy(case, runs)]
    return row


def line(row):
    rank = {MISS: '-'}
    accused = [name for names in row['healthy'] for name in names]
    print('{:<22} {:<23} {:>4} {:>4} {:>4} {:>6} {:>5} {:>6.1f}  {}{}'.format(
        row['case'], row['kind'], rank.get(row['rank'], row['rank']), rank.get(row['symbol'], row['symbol']),
        rank.get(row['taker'], row['taker']), '' if row['count'] is None else f'{row["leaked"]}/{row["expected"]}',
        f'{row["complete"]}/{row["runs"]}', row['seconds'], row['first'],
        f'  HEALTHY: {", ".join(sorted(set(accused)))}' if accused else ''), flush=True)


def cases(options):
    """Those that were asked for."""
    for folder in options.folders:
        truth = json.loads((folder / 'truth.json').read_text())
        for entry in truth['cases']:
            if not options.case or entry['id'] in options.case:
                yield Case(folder.resolve(), truth, entry)


def compare(options):
    """--same. Exit status."""
    same = Same(options)
    told = [same.check(case) for case in cases(options)]
    print(f'{len(told)} cases: {sum(told)} the same under {", ".join(ENGINES)}, replayed and as text')
    return 0 if all(told) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--blind', action='store_true')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--case', action='append', default=[])
    parser.add_argument('--engine', default='auto')
    parser.add_argument('--keep', type=pathlib.Path)
    parser.add_argument('--from', dest='source', type=pathlib.Path)
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--same', action='store_true')
    parser.add_argument('folders', nargs='+', type=pathlib.Path)
    options = parser.parse_args()
    if options.same:
        return compare(options)
    runner, rows = Runner(options), []
    print(f'{"case":<22} {"kind":<23} {"rank":>4} {"symb":>4} {"took":>4} {"count":>6} {"whole":>5} {"s":>6}  first')
    for case in cases(options):
        rows.append(score(runner, case, 1 if options.source else options.runs))
        line(rows[-1])
    if not rows:
        sys.exit('score: no such case')
    healthy = [names for row in rows for names in row['healthy']]
    print(f'{len(rows)} cases: top-1 {sum(r["rank"] == 1 for r in rows)}, top-3 {sum(r["rank"] <= 3 for r in rows)}, '
          f'top-1 by symbol {sum(r["symbol"] == 1 for r in rows)}, '
          f'healthy runs with accusations {sum(bool(n) for n in healthy)} of {len(healthy)}, '
          f'other accusations in buggy runs {sum(r["false"] for r in rows)}')
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    silent = [row['case'] for row in rows if row['cause'] == NO_ANSWER]
    if silent:
        print(f'no answer of {", ".join(silent)}: nothing was run or recorded there, and a rank says nothing')
    return 1 if silent else 0


if __name__ == '__main__':
    sys.exit(main())
