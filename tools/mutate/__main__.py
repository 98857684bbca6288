#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The mass test: seeds one refcount fault after the other in real programs and asks reftrace for each who is guilty.

    mutate BUILD [--work DIR] [--seed N] [--count N] [--jobs N] [--only KIND]... [--make] [--blind | --assisted]
           RECIPE...

For each recipe (a file, or the name of one in tools/mutate/recipes): fetches and builds the program, marks all calls of
its types' gets and puts and runs it, makes at most COUNT mutants by the seed among the sites that ran, builds each, and
writes the whole as a corpus that tools/score.py reads: DIR/PROGRAM/truth.json. Then scores it, told the functions and
told nothing, and prints the tables. --make only makes the corpus, so that score.py --keep and --from can be used.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import mutant
import program
import recipe
import table

HERE = pathlib.Path(__file__).resolve().parent


def case(made, name, m, status):
    """A mutant as an entry of truth.json."""
    traits = [m.way] + (['dies'] if status > 128 or status < 0 else [])
    path = m.call.source.path.relative_to(made.source)
    also = ([made.recipe.alias.format(m.call.function.name, file=path.stem.replace('-', '_'))] if made.recipe.alias else [])
    return {'id': name, 'kind': m.kind, 'type': m.type, 'traits': traits,
            'guilty': {'function': m.call.function.name, 'also_accepted': also, 'file': str(path),
                       'line': m.call.line},
            'edit': [m.call.source.text[m.begin:m.end], m.text.rstrip('\n')],
            'run': f'{made.recipe.name}/run {name}', 'run_healthy': f'{made.recipe.name}/run healthy'}


def truth_of(made, cases):
    return {'name': made.recipe.name, 'traits': made.recipe.traits, 'skip': made.recipe.known,
            'types': {t.name: t.truth() for t in made.recipe.types}, 'cases': cases}


def make(made, options):
    """Fetches, builds and mutates one program. -> how many mutants there are"""
    made.fetch()
    made.write_run()
    made.read()
    all_of_them = [m for m in made.mutants() if not options.only or m.kind in options.only]
    reached = made.reached(all_of_them)
    if not made.build('healthy'):
        raise program.Broken(f'does not build: {made.log}')
    if made.run('healthy') > 128:
        raise program.Broken(f'its run dies: {made.log}')
    running = [m for m in all_of_them if m.site in reached and (reached[m.site][1] or not m.needs_end)]
    print(f'{made.recipe.name}: {len(all_of_them)} mutants at {len({m.site for m in all_of_them})} sites, '
          f'{len(reached)} of these run, {len(running)} mutants would be faults there', flush=True)
    cases, left, endless = [], mutant.choose(running, len(running), options.seed), 0
    for old in made.out.glob('m*'):
        shutil.rmtree(old)
    while left and len(cases) < options.count:
        m = left.pop(0)
        name = f'm{len(cases) + 1}'
        if not made.matters(m) or not made.build_mutant(name, m):
            continue
        status = made.run(name)
        if status in program.ENDLESS:
            endless += 1
            continue
        cases.append(case(made, name, m, status))
        cases[-1]['reached'] = reached[m.site][0]
    if endless:
        print(f'{made.recipe.name}: {endless} mutants left out, whose runs do not end', flush=True)
    (made.folder / 'truth.json').write_text(json.dumps(truth_of(made, cases), indent=1))
    return len(cases)


def score(options, folders, words):
    """-> the rows of tools/score.py"""
    out = options.work / f'score{"".join(words)}.json'
    out.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, str(HERE.parent / 'score.py'), str(options.build), '--runs', '1',
                           '--json', str(out), *words, *map(str, folders)], check=False)
    # 1: some gave no answer, which is a failure by that cause
    if done.returncode > 1 or not out.exists():
        sys.exit(f'mutate: score.py ended with status {done.returncode}')
    return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(prog='mutate', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--work', type=pathlib.Path)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=40)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--only', action='append', choices=mutant.KINDS)
    parser.add_argument('--make', action='store_true')
    parser.add_argument('--blind', action='store_true')
    parser.add_argument('--assisted', action='store_true')
    parser.add_argument('recipes', nargs='+')
    options = parser.parse_args()
    options.work = (options.work or options.build / 'mass').resolve()
    folders = []
    for name in options.recipes:
        path = pathlib.Path(name) if name.endswith('.toml') else HERE / 'recipes' / f'{name}.toml'
        try:
            made = program.Program(recipe.Recipe(path.resolve()), options.work, options.jobs)
            if make(made, options):
                folders.append(made.folder)
        except (program.Broken, recipe.BadRecipe) as e:
            print(f'mutate: {name}: {e}', file=sys.stderr)
    if not folders:
        sys.exit('mutate: there is no mutant')
    if options.make:
        return
    for words in ([] if options.blind else [[]]) + ([] if options.assisted else [['--blind']]):
        table.show(score(options, folders, words), 'told nothing' if words else 'told the functions')


if __name__ == '__main__':
    main()
