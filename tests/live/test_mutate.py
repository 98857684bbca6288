# SPDX-License-Identifier: GPL-2.0-only
"""The mutator on a program of our own: what it seeds, where it says it did, and what becomes of sites never run."""
import json
import os
import subprocess
import sys
import textwrap
import unittest

import live

PROGRAM = '''\
#include <stdio.h>
#include <stdlib.h>

struct item {
	int refs, value;
};

__attribute__((noinline)) struct item *item_new(int value)
{
	struct item *it = calloc(1, sizeof(*it));

	it->refs = 1;
	it->value = value;
	return it;
}

__attribute__((noinline)) struct item *item_ref(struct item *it)
{
	it->refs++;
	return it;
}

__attribute__((noinline)) void item_unref(struct item *it)
{
	if (--it->refs == 0)
		free(it);
}

/* item_unref(in a comment); */
__attribute__((noinline)) static int check(struct item *it)
{
	struct item *mine = item_ref(it);

	if (mine->value % 5 == 0) {
		item_unref(mine);
		return -1;
	}
	printf("%d item_unref(it);\\n", mine->value);
	item_unref(mine);
	return 0;
}

__attribute__((noinline)) static void never(struct item *it)
{
	item_unref(it);
}

__attribute__((noinline)) static void show(struct item *it)
{
	printf("last %d\\n", it->value);
}

__attribute__((noinline)) static void finish(struct item *it)
{
	show(it);
	item_unref(it);
}

static struct item *kept;

__attribute__((noinline)) static void touch(void)
{
	item_ref(kept);
	item_unref(kept);
}

int main(int argc, char **argv)
{
	kept = item_new(-1);
	for (int i = 0; i < 40; i++) {
		touch();
		finish(item_new(i));
		struct item *it = item_new(i);

		check(it);
		if (argc > 5)
			never(it);
		item_unref(it);
	}
	return 0;
}
'''

RECIPE = '''\
files = ["own.c"]
build = "cc -g -O1 -o own own.c"
artifacts = ["own"]
run = '$PFX "$D/own"'
sources = ["*.c"]
traits = ["own"]

[[type]]
name = "item"
new = ["item_new"]
get = ["item_ref:1"]
put = ["item_unref:1"]
start = 1
'''


class Mutate(live.LiveTest):
    def setUp(self):
        live.need_engine()
        self.folder = live.temp_path('mutate')
        self.folder.mkdir()
        (self.folder / 'own.c').write_text(PROGRAM)

    def mutate(self, *words, recipe=RECIPE, status=0):
        (self.folder / 'own.toml').write_text(recipe)
        done = subprocess.run([sys.executable, str(live.SOURCE / 'tools' / 'mutate'), str(live.REFTRACE.parent),
                               '--work', str(self.folder / 'work'), *words, str(self.folder / 'own.toml')],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def truth(self):
        return json.loads((self.folder / 'work' / 'own' / 'truth.json').read_text())

    def line(self, text, after=1):
        """The first line from AFTER on that has TEXT."""
        lines = PROGRAM.splitlines()
        return next(i for i, line in enumerate(lines, 1) if i >= after and text in line)

    def test_kinds_and_places(self):
        """Each fault of what ran, with kind and line; none where nobody came by, in comments, texts or the API. A put
        is too early where it was the last, and a reference is lost where the object would have ended."""
        self.mutate('--make', '--count', '99')
        begin = self.line('static int check')
        error, usual = self.line('item_unref(mine)', begin), self.line('item_unref(mine)', begin + 8)
        finish = self.line('item_unref(it)', self.line('static void finish'))
        touch = self.line('item_ref(kept)')
        last = self.line('item_unref(it)', self.line('never(it)', self.line('int main')))
        found = {(c['kind'], c['guilty']['function'], c['guilty']['line']) for c in self.truth()['cases']}
        self.assertEqual(found, {('missing_put_error_path', 'check', error), ('extra_put', 'check', error),
                                 ('missing_put', 'check', usual), ('extra_put', 'check', usual),
                                 ('missing_put', 'finish', finish), ('extra_put', 'finish', finish),
                                 ('put_too_early', 'finish', finish),
                                 ('extra_put', 'touch', touch), ('extra_put', 'touch', touch + 1),
                                 ('extra_get', 'check', self.line('item_ref(it)', begin)),
                                 ('missing_put', 'main', last), ('extra_put', 'main', last)})

    def test_each_is_a_program_of_its_own(self):
        """The mutant counts otherwise, the source is as it was, and the seed says which are made."""
        self.mutate('--make', '--count', '1', '--only', 'missing_put_error_path')
        case, = self.truth()['cases']
        out = self.folder / 'work' / 'own' / 'out'
        self.assertNotEqual((out / 'healthy' / 'own').read_bytes(), (out / case['id'] / 'own').read_bytes())
        self.assertEqual((self.folder / 'work' / 'own' / 'src' / 'own.c').read_text(), PROGRAM)
        self.assertEqual(case['reached'], 8)
        one = self.truth()['cases']
        self.mutate('--make', '--count', '1', '--only', 'missing_put_error_path', '--seed', '1')
        self.assertEqual(self.truth()['cases'], one)

    def test_scored(self):
        """The functions told: all of these are named first, and the tables say so."""
        text = self.mutate('--assisted', '--count', '3', '--only', 'missing_put_error_path', '--only', 'extra_get')
        rows = json.loads((self.folder / 'work' / 'score.json').read_text())
        self.assertEqual([r['rank'] for r in rows], [1, 1])
        self.assertEqual([r['first'] for r in rows], ['check', 'check'])
        self.assertIn('told the functions', text)
        self.assertIn('healthy programs accused: 0 of 2', text)

    def test_unknown_key(self):
        text = self.mutate(recipe=textwrap.dedent(RECIPE).replace('artifacts', 'artefacts'), status=1)
        self.assertIn('unknown key artefacts', text)


INSTALLED = '''
#include <stdlib.h>
struct item { int refs, value; };
__attribute__((noinline)) struct item *item_new(int value)
{ struct item *it = calloc(1, sizeof(*it)); it->refs = 1; it->value = value; return it; }
__attribute__((noinline)) struct item *item_ref(struct item *it) { it->refs++; return it; }
__attribute__((noinline)) void item_unref(struct item *it) { if (--it->refs == 0) free(it); }
__attribute__((noinline)) int often(struct item *it) { struct item *mine = item_ref(it); int v = mine->value;
	item_unref(mine); return v; }
__attribute__((noinline)) void seldom(struct item *it) { item_unref(item_ref(it)); }
__attribute__((noinline)) void never(struct item *it) { item_unref(it); __asm__ volatile(""); }
int main(void) { volatile int few = 3; int sum = 0; for (int i = 0; i < 30; i++) { struct item *it = item_new(i);
	sum += often(it); if (i < few) seldom(it); if (few > 9) never(it); item_unref(it); } return sum == 7; }
'''


class Installed(live.LiveTest):
    """A call dropped from a program as it is, without its source."""

    def setUp(self):
        live.need_engine()
        self.folder = live.temp_path('installed')
        self.folder.mkdir()
        (self.folder / 'shipped.c').write_text(INSTALLED)
        self.program = self.folder / 'shipped'
        subprocess.run(['gcc', '-O1', '-g', '-o', str(self.program), str(self.folder / 'shipped.c')], check=True)

    def drop(self, *words):
        done = subprocess.run([sys.executable, str(live.SOURCE / 'tools' / 'mutate' / 'installed.py'), str(live.REFTRACE.parent),
                               *words, str(self.program), 'item_unref', 'shipped'], capture_output=True, text=True, check=False,
                              env={**os.environ, 'PATH': f'{self.folder}:{os.environ["PATH"]}'})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_candidates(self):
        """What is done often enough, by the kernel's own count; not what is seldom or never done."""
        head, *rows = self.drop('-n', '--count', '9')
        self.assertEqual(head, 'shipped: 4 calls, 2 done 8 times or more')
        self.assertEqual(sorted(row.split(': ')[-2].split('done ')[-1] for row in rows), ['30 times', '30 times'], rows)
        self.assertEqual(len(self.drop('-n', '--count', '9', '--least', '1')), 4)

    def test_named(self):
        """Both that can be dropped are named, each in a copy of its own."""
        head, *rows = self.drop('--count', '9')
        self.assertEqual(len(rows), 2, head)
        for row in rows:
            self.assertIn('named, number 1, ', row)
            self.assertNotIn('not named', row)


if __name__ == '__main__':
    unittest.main()
