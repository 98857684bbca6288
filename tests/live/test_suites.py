# SPDX-License-Identifier: GPL-2.0-only
"""Programs do not notice: the suites that Debian ships of glib2.0, dbus and python3.11, bare, under both engines, with every
get and put, malloc and free traced. Each test's outputs and status are the same; what differs between two bare runs
(times, numbers of processes, random seeds) is not compared. Where a traced run says otherwise, more bare runs are made, some
with hardly any time on the CPUs: a test that then says otherwise, too, waits for a time to pass, and proves nothing."""
import concurrent.futures
import contextlib
import difflib
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
SLOW = 400 # and how many times that a traced one may: one that is nothing but gets and puts is 230 times as slow under uprobes
MORE = 8   # bare runs where a traced one differs, half of them slowed down
OURS = re.compile(r'^reftrace: .*\n(?: +fix: .*\n)?', re.MULTILINE)  # events that were lost, where a test is all gets and puts
TIMES = re.compile(r'\d+ seconds|\bin \d+\.\d+s\b|\s*\S+ MB/s')
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
    said = [TIMES.sub('TIME', text) for text in said]
    return Done(status, *said)


@contextlib.contextmanager
def busy():
    """All CPUs have better things to do than what is nice."""
    loops = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(4 * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def steady(folder, words, bare, ignored):
    """More bare runs -> the places where lines differ in one of them; None: one ended otherwise, or said more or less"""
    places = set()
    for i in range(MORE):
        slow = i >= MORE // 2
        with busy() if slow else contextlib.nullcontext():
            again = run([*(['nice', '-n', '19'] if slow else []), *words], folder / f'bare-again-{i}', 60)
        if again.status != bare.status:
            return None
        if ignored is None:
            continue # just the status is compared
        found = bare.differs(again, ignored)
        if found is None:
            return None
        places |= found
    return places


def compare(name, engine, bare, traced, ignored):
    """What is wrong with a traced run, '' nothing"""
    if traced.status != bare.status:
        return f'{name}: {engine}: status {traced.status}, bare {bare.status}\n' + '\n'.join(map(str, traced.lines[-12:]))
    if ignored is None:
        return ''
    places = bare.differs(traced, ignored)
    if places is None:
        return f'{name}: {engine}: said otherwise:\n' + '\n'.join(
            [*difflib.unified_diff(list(map(str, bare.lines)), list(map(str, traced.lines)), lineterm='', n=0)][:12])
    return ''.join(f'{name}: {engine}: said {traced.lines[i]!r}, bare {bare.lines[i]!r}\n' for i in sorted(places)[:5])


def look(folder, name, words, specs):
    """-> what is wrong, what was compared: 'all', 'status' (two bare runs differ in length), 'none' (it fails bare), 'time'
    (it differs bare as well, when it is slowed down)"""
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
        if told.exists() and told.stat().st_size:
            traced.status = json.loads(told.read_text(encoding='utf-8'))['exit']['program']
        found = compare(name, engine, bare[0], traced, ignored)
        if found:
            places = steady(folder / name / f'after-{engine}', words, bare[0], ignored)
            if places is None:
                return wrong, 'time'
            ignored = None if ignored is None else ignored | places
            found = compare(name, engine, bare[0], traced, ignored)
        wrong += [found] if found else []
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
              f'status, {kinds.count("none")} fail bare, {kinds.count("time")} differ bare when slowed down; {len(wrong)} differ', flush=True)
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
