# SPDX-License-Identifier: GPL-2.0-only
"""Programs do not notice: the suites that Debian ships of glib2.0, dbus and python3.11, bare, under both engines, with every
get and put, malloc and free traced. Each test's outputs and status are the same; what differs between two bare runs
(times, numbers of processes, random seeds) is not compared."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import live

INSTALLED = pathlib.Path('/usr/share/installed-tests')
PYTHON = ('json', 'struct', 'list', 'dict', 'set', 'weakref', 'gc', 'itertools', 'threading_local', 'memoryview', 'generators', 'heapq')
LONG = 2   # seconds that a bare test may take to be among these
SLOW = 100 # and how many times that a traced one may
OURS = re.compile(r'^reftrace: .*\n(?: +fix: .*\n)?', re.MULTILINE)  # events that were lost, where a test is all gets and puts
SECONDS = re.compile(r'\d+ seconds')
ENGINES = ('agent+uprobe', 'uprobe') if os.geteuid() == 0 else ('agent',)


def installed(suite):
    """[(name, words)] of the tests that a Debian package has installed"""
    tests = []
    for path in sorted((INSTALLED / suite).glob('*.test')):
        run = re.search(r'^Exec=(.*)$', path.read_text(encoding='utf-8'), re.MULTILINE)
        if run:
            tests.append((path.stem, shlex.split(run[1])))
    return tests


class Done:
    """How a run ended, and what it said."""

    def __init__(self, status, out, err):
        self.status, self.lines = status, [*out.splitlines(), None, *err.splitlines()]

    def differs(self, other, ignored):
        """The lines that other has otherwise, but for those at the places ignored; all, where it has another number of them"""
        if len(self.lines) != len(other.lines):
            return None
        return {i for i, (a, b) in enumerate(zip(self.lines, other.lines)) if a != b and i not in ignored}


def run(words, folder, seconds):
    folder.mkdir(parents=True)
    env = live.clean_env(HOME=str(folder), TMPDIR=str(folder), XDG_RUNTIME_DIR=str(folder), G_TEST_BUILDDIR='', LC_ALL='C.UTF-8',
                         PYTHONHASHSEED='0')
    with open(folder / 'stdout', 'w+b') as out, open(folder / 'stderr', 'w+b') as err:
        child = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=env,
                                 start_new_session=True)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            status = 'no end'
    said = [(folder / name).read_text(encoding='utf-8', errors='replace').replace(str(folder), 'FOLDER') for name in ('stdout', 'stderr')]
    said[1] = OURS.sub('', said[1])
    said = [SECONDS.sub('N seconds', text) for text in said]
    return Done(status, *said)


def look(folder, name, words, specs):
    """-> what is wrong, what was compared: 'all', 'status' (two bare runs differ in length), 'none' (it fails bare)"""
    bare = [run(words, folder / name / f'bare-{i}', LONG) for i in range(2)]
    if bare[0].status != bare[1].status or bare[0].status not in (0, 77):
        return [], 'none'
    ignored = bare[0].differs(bare[1], set())
    wrong = []
    for engine in ENGINES:
        to = folder / name / engine
        tool = [live.REFTRACE, 'run', '--engine', engine, '--no-census', f'--json={to}.json', '-o', f'{to}.report', *specs, '--']
        traced = run([*tool, *words], to, LONG * SLOW)
        # reftrace's own status is about what was seen, too
        told = pathlib.Path(f'{to}.json')
        status = json.loads(told.read_text(encoding='utf-8'))['exit']['program'] if told.exists() and told.stat().st_size else traced.status
        if status != bare[0].status:
            wrong.append(f'{name}: {engine}: status {status}, bare {bare[0].status}\n' + '\n'.join(map(str, traced.lines[-12:])))
        elif ignored is not None:
            other = [i for i in bare[0].differs(traced, ignored) or ()]
            if bare[0].differs(traced, ignored) is None or other:
                wrong.append(f'{name}: {engine}: said otherwise: ' + '\n'.join(f'{bare[0].lines[i]!r} now {traced.lines[i]!r}' for i in other[:5]))
    return wrong, 'status' if ignored is None else 'all'


class Suites(live.LiveTest):
    """The bare run comes first: a test that fails by itself here says nothing."""

    @classmethod
    def setUpClass(cls):
        if not os.environ.get('RT_REAL'):
            raise unittest.SkipTest('heavy: run.py --real')
        live.need_engine()

    def check(self, suite, tests, specs, least):
        if not tests:
            self.skipTest(f'the tests of {suite} are not installed')
        part = int(os.environ.get('RT_PART', '1'))  # each so manieth, where time is short
        folder = live.temp_path(f'suite-{suite}')
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda t: look(folder, *t, specs), tests[::part]))
        wrong = [w for found, _ in results for w in found]
        kinds = [kind for _, kind in results]
        print(f'{suite}: {len(results)} tests under {" and ".join(ENGINES)}: {kinds.count("all")} compared in all, {kinds.count("status")} by '
              f'status, {kinds.count("none")} fail bare; {len(wrong)} differ', flush=True)
        self.assertEqual(wrong, [], '\n\n'.join(wrong))
        self.assertGreaterEqual(kinds.count('all') * part, least)

    def test_glib(self):
        self.check('glib', installed('glib'), ('-P', 'gobject', '-P', 'glib', '-P', 'malloc'), 150)

    def test_dbus(self):
        self.check('dbus', installed('dbus'), ('-P', 'dbus', '-P', 'malloc'), 20)

    def test_python(self):
        if not pathlib.Path('/usr/lib/python3.11/test').is_dir():
            self.skipTest('the tests of python3.11 are not installed')
        self.check('python', [(n, ['/usr/bin/python3.11', '-m', 'unittest', f'test.test_{n}']) for n in PYTHON], ('-P', 'malloc'), 6)


if __name__ == '__main__':
    unittest.main()
