# SPDX-License-Identifier: GPL-2.0-only
"""diff: findings of two recordings matched across builds; what is new, grown, gone; the statuses of git bisect run."""
import json
import os
import subprocess
import unittest

import jsonschema

import live


def stream(faults, objects=100, shift=0, types=('obj',), end='exit 0'):
    """An .events text. faults: {(function, line): how many references it keeps}; each function closes the others in
    line+4. shift: by how many lines all lines of the file have moved."""
    out, address = [f'type {t} bytes=4' for t in types], 0x1000
    for t in types:
        for n in range(objects):
            out.append(f'new {t} {address:#x} main@s.c:{5 + shift}')
            for (function, line), kept in faults.items():
                where = f'main@s.c:{6 + shift};{function}@s.c'
                out.append(f'get {t} {address:#x} {where}:{line + shift}')
                if n >= kept:
                    out.append(f'put {t} {address:#x} {where}:{line + shift + 4}')
            out.append(f'put {t} {address:#x} main@s.c:{9 + shift}')
            address += 64
    return '\n'.join([*out, end, ''])


class Diff(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        live.need_binary()
        cls.schema = json.loads((live.SOURCE / 'docs' / 'diff.schema.json').read_text())

    def diff(self, old, new, *args, status=0):
        files = []
        for text in (old, new):
            files.append(live.temp_path('side.events'))
            files[-1].write_text(text)
        run = live.trace(*files, *args, verb=('diff',))
        self.assertEqual(run.status, status, str(run))
        if run.findings:
            jsonschema.Draft7Validator(self.schema).validate(run.findings)
        return run

    def changes(self, run):
        return sorted((f['change'], (f['new'] or f['old'])['guilty']['function'], f['old'] and f['old']['objects'],
                       f['new'] and f['new']['objects']) for f in run.findings['findings'] if not f['suspect'])

    def test_new_gone_grown_same(self):
        old = stream({('parse', 20): 8, ('log', 30): 5, ('send', 40): 0, ('read', 50): 6})
        new = stream({('parse', 20): 8, ('log', 30): 9, ('send', 40): 4, ('read', 50): 0}, shift=7)
        run = self.diff(old, new)
        self.assertEqual(self.changes(run), [('gone', 'read', 6, None), ('grown', 'log', 5, 9), ('new', 'send', None, 4),
                                             ('same', 'parse', 8, 8)], str(run))
        self.assertEqual(run.findings['counts'], {'new': 1, 'grown': 1, 'gone': 1, 'shrunk': 0, 'same': 1})
        self.assertRegex(run.report, r'NEW \w{8}  leak of struct obj: 4 of 100 objects\n  in send  s.c:47\n')
        self.assertRegex(run.report, r'GROWN \w{8} .*5 of 100 -> 9 of 100 objects\n  in log  s.c:37 \(was line 30\)')
        self.assertNotIn('in parse', run.report)
        self.assertIn('in parse', self.diff(old, new, '-v').report)
        back = self.diff(new, old)
        self.assertEqual([c for c, *_ in self.changes(back)], ['gone', 'new', 'same', 'shrunk'])
        self.diff(old, new, '--error-exitcode', status=23)
        self.diff(old, new, '--error-exitcode=7', status=7)
        self.diff(old, old, '--error-exitcode')

    def test_more_work_is_no_growth(self):
        run = self.diff(stream({('parse', 20): 8}), stream({('parse', 20): 16}, objects=200), '--error-exitcode')
        self.assertEqual(self.changes(run), [('same', 'parse', 8, 16)])
        run = self.diff(stream({('parse', 20): 8}), stream({('parse', 20): 18}, objects=200), '--error-exitcode', status=23)
        self.assertEqual(self.changes(run), [('grown', 'parse', 8, 18)])

    def test_sites_of_one_function_are_matched_with_their_shift(self):
        old = stream({('parse', 20): 4, ('parse', 40): 4})
        new = stream({('parse', 10): 4, ('parse', 20): 4, ('parse', 40): 4}, shift=100)
        sites = self.diff(old, new).findings['findings'][0]['sites']
        lines = sorted((s['change'], s['old'] and s['old']['line'], s['new'] and s['new']['line']) for s in sites)
        self.assertEqual(lines, [('new', None, 110), ('same', 20, 120), ('same', 40, 140)])

    def test_filters(self):
        old = stream({('parse', 20): 0}, types=('obj', 'node'))
        new = stream({('parse', 20): 9, ('log', 30): 7}, types=('obj', 'node'))
        run = self.diff(old, new, '-t', 'node')
        self.assertEqual({f['type'] for f in run.findings['findings']}, {'node'})
        self.assertEqual(run.findings['counts']['new'], 2)
        one = run.findings['findings'][0]['new']
        run = self.diff(old, new, '--finding', one['id'])
        self.assertEqual([f['new'] for f in run.findings['findings']], [one])
        rules = live.temp_path('rules')
        rules.write_text('leak:parse\n')
        run = self.diff(old, new, f'--suppressions={rules}')
        self.assertEqual({f for _, f, *_ in self.changes(run)}, {'log'})

    def test_alive_objects_are_told(self):
        alive = ''.join(f'new obj {0x900000 + 64 * n:#x} main@s.c:70\nheld {0x900000 + 64 * n:#x} global 1\n' for n in range(12))
        run = self.diff(stream({}), stream({}, end=alive + 'exit 0'))
        self.assertEqual(run.findings['alive'], [{'type': 'obj', 'class': None, 'old': 0, 'new': 12}], str(run))
        self.assertIn('alive, not accused: struct obj 0 -> 12', run.report)

    def test_an_incomplete_side_is_no_verdict(self):
        good, bad = stream({('parse', 20): 0}), stream({('parse', 20): 8})
        lost = good.replace('exit 0', 'loss ring 5\nexit 0')
        for old, new in ((good, lost), (lost, good)):
            run = self.diff(old, new, status=24)
            self.assertIn('is incomplete', run.report)
            self.diff(old, new, '--bisect', status=125)
        self.diff(good, 'type obj\n', status=24)
        self.diff(good, bad, '--bisect', status=1)
        self.diff(bad, good, '--bisect')
        self.diff(bad, bad, '--bisect')

    def test_faults_never_look_like_a_bad_commit(self):
        good = live.temp_path('good.events')
        good.write_text(stream({}))
        for args, status in (((good, '/nonexistent'), 125), (('/nonexistent', good), 255), ((good,), 255),
                             ((good, good, '--what'), 255), ((good, good, '--suppressions=/nonexistent'), 255)):
            with self.subTest(args):
                run = live.call('diff', '--bisect', *args)
                self.assertEqual(run.status, status, str(run))
                self.assertRegex(run.stderr, r'reftrace: E\d\d .*\n +fix: |reftrace: E25 ')
        self.assertEqual(live.call('diff', good).status, 2)
        self.assertEqual(live.call('diff', good, '/nonexistent').status, 125)


def git(*args, cwd):
    done = subprocess.run(['git', '-c', 'user.name=t', '-c', 'user.email=t@t', *args], cwd=cwd, capture_output=True, text=True,
                          check=False, env=live.clean_env(GIT_CONFIG_GLOBAL='/dev/null'))
    if done.returncode:
        raise AssertionError(f'git {args}\n{done.stdout}{done.stderr}')
    return done.stdout


class Bisect(live.LiveTest):
    COMMITS = 8
    GUILTY = 6

    def commit(self, repo, n):
        """Each moves lines; the guilty one removes the put of the error path; number 4 does not compile."""
        text = (live.PROGRAMS / 'missing-put.c').read_text().replace('#include "truth.h"',
                                                                      f'#include "{live.PROGRAMS}/truth.h"\n' + '\n' * n)
        if n < self.GUILTY:
            text = text.replace('LOST();', 'session_unref(s);')
        (repo / 'p.c').write_text(text if n != 4 else text + 'broken\n')
        git('add', 'p.c', cwd=repo)
        git('commit', '-qm', f'commit {n}', cwd=repo)

    def test_git_bisect_run_finds_the_commit(self):
        live.need_engine()
        repo = live.temp_path('repo')
        repo.mkdir()
        git('init', '-q', cwd=repo)
        for n in range(self.COMMITS):
            self.commit(repo, n)
        spec = 'type=session new=session_new get=session_ref put=session_unref'
        judge, good = live.temp_path('judge'), live.temp_path('good.data')
        record = f"'{live.REFTRACE}' record -P '{spec}'"
        build = 'gcc -g -O0 -w -D_GNU_SOURCE p.c -o p'
        judge.write_text(f'#!/bin/sh\n{build} || exit 125\nrm -f now.data\n{record} -o now.data -- ./p\n'
                         f"exec '{live.REFTRACE}' diff --bisect '{good}' now.data\n")
        os.chmod(judge, 0o755)
        git('checkout', '-q', f'HEAD~{self.COMMITS - 1}', cwd=repo)
        subprocess.run(f"{build} && {record} -o '{good}' -- ./p", shell=True, cwd=repo, check=True, capture_output=True,
                       env=live.clean_env())
        git('bisect', 'start', 'master' if 'master' in git('branch', '-a', cwd=repo) else 'main', 'HEAD', cwd=repo)
        out = git('bisect', 'run', str(judge), cwd=repo)
        self.assertRegex(out, rf'(?s)is the first bad commit.*commit {self.GUILTY}\n', out)


if __name__ == '__main__':
    unittest.main()
