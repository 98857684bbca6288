# SPDX-License-Identifier: GPL-2.0-only
"""What the live tests share: compile a program, trace it, compare with what the program itself printed.

Environment: REFTRACE is the binary under test (default: build/reftrace), RT_REAL=1 asks for the heavy variants,
RT_ENGINE=agent lets what is launched by trace() be seen by that engine.
"""
import codecs
import collections
import functools
import io
import json
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# a shell without job control starts what runs in its background with SIGINT ignored, and programs inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

SOURCE = pathlib.Path(os.environ.get('RT_SOURCE_ROOT', pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get('RT_BUILD_ROOT', SOURCE / 'build'))
REFTRACE = pathlib.Path(os.environ.get('REFTRACE', BUILD / 'reftrace'))
PROGRAMS = SOURCE / 'tests' / 'programs'
REAL = bool(os.environ.get('RT_REAL'))
ENGINE = os.environ.get('RT_ENGINE')
NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
CXX = {'gcc': 'g++', 'clang': 'clang++'}

_temp = None


def temp():
    """A folder for everything that the tests make, readable for others; removed at the end of the process."""
    global _temp
    if _temp is None:
        _temp = tempfile.TemporaryDirectory(prefix='rt-live-', ignore_cleanup_errors=True)
        os.chmod(_temp.name, 0o755)
    return pathlib.Path(_temp.name)


def temp_path(name):
    """A path below temp() that is not in use."""
    temp_path.count += 1
    return temp() / f'{temp_path.count}-{name}'


temp_path.count = 0


def compiler(cc, cxx=False):
    """Path of a compiler by family (gcc, clang), whatever its version; None when it is not installed."""
    name = CXX[cc] if cxx else cc
    return shutil.which(name) or shutil.which(name + '-14')


def _compile(source, target, cc, flags):
    tool = compiler(cc, source.suffix == '.cc')
    if not tool:
        raise unittest.SkipTest(f'{cc} for {source.name} is not installed')
    shared = ['-shared', '-fPIC'] if target.suffix == '.so' else []
    cmd = [tool, '-D_GNU_SOURCE', '-w', '-pthread', *flags, *shared, str(source), '-o', str(target), '-ldl']
    done = subprocess.run(cmd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f'{" ".join(cmd)}\n{done.stderr}')


def program(name, cc='gcc', flags=('-g', '-O0')):
    """Path of the compiled tests/programs/NAME.c or .cc, compiled once; plugin.so lies beside it."""
    folder = temp() / ('-'.join([cc, *flags]).replace('/', '_'))
    folder.mkdir(exist_ok=True)
    target = folder / name
    if not target.exists():
        source = PROGRAMS / (name + '.c')
        if not source.exists():
            source = PROGRAMS / (name + '.cc')
        if name in ('dlopen', 'counts'):
            _compile(PROGRAMS / 'plugin.c', folder / 'plugin.so', cc, flags)
        _compile(source, target, cc, flags)
    return target


Truth = collections.namedtuple('Truth', 'specs counts guilty')
Guilty = collections.namedtuple('Guilty', 'function kind objects')


def truth(text):
    """What a program of tests/programs printed about itself; None when it did not come to its end."""
    specs, counts, guilty, ended = [], collections.Counter(), None, False
    for line in text.splitlines():
        word, _, rest = line.partition(' ')
        if word == 'spec':
            specs.append(rest)
        elif word == 'count':
            function, op, number = rest.split()
            counts[function, op] += int(number)
        elif word == 'guilty':
            ended = True
            if rest != 'none':
                function, kind, objects = rest.split()
                guilty = Guilty(function, kind, int(objects))
    return Truth(specs, counts, guilty) if ended else None


def plain(function):
    """A function name without the parameters of C++ and the suffixes of cloned functions."""
    return re.sub(r'\.(isra|constprop|part|cold)\b.*', '', re.sub(r'\(.*', '', function or '?'))


def same_function(a, b):
    """Debug info gives `attach`, a symbol table `scene::Painter::attach(scene::Node*)`: the same function."""
    a, b = plain(a), plain(b)
    return a == b or a.endswith('::' + b) or b.endswith('::' + a)


class Run:
    """One run of reftrace that came to its end."""

    def __init__(self, status, stdout, stderr, findings, report, settle_seconds):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.findings = findings  # parsed JSON, None when none was written
        self.report = report      # text of -o, None when none was written
        self.settle_seconds = settle_seconds  # from the last line of the program to the end of reftrace
        self.truth = truth(stdout)

    def __str__(self):
        return (f'status {self.status}\n-- stdout\n{self.stdout[-1500:]}\n-- stderr\n{self.stderr[-3000:]}\n'
                f'-- report\n{(self.report or "none")[:4000]}')


def clean_env(**more):
    """The environment without what would change the outcome."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(('REFTRACE', 'SUDO_', 'TRUTH_', 'DEBUGINFOD')) and k not in ('NO_COLOR', 'LD_PRELOAD')}
    # record keeps the binaries that ran: not in the cache of whoever runs the tests
    env.update({'LC_ALL': 'C.UTF-8', 'TERM': 'dumb', 'PERF_BUILDID_DIR': str(temp() / 'debug')})
    env.update(more)
    return env


NO_AGENT = 'engine agent cannot be here: programs may not use rdfsbase'


def skip_without_agent(errors):
    """Where the processor or its hypervisor does not let programs read fs as the agent does, reftrace says so."""
    if 'E30 engine agent needs the instruction rdfsbase' in errors:
        raise unittest.SkipTest(NO_AGENT)


@functools.cache
def has_rdfsbase():
    """Asked of the processor, not of the kernel: a hypervisor may allow what its guest's kernel does not know."""
    if platform.machine() != 'x86_64':
        return True
    code = b'\xf3\x48\x0f\xae\xc0\xc3'  # rdfsbase %rax; ret
    run = ('import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7); m.write(%r); '
           'ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()' % code)
    return not subprocess.run([sys.executable, '-c', run], check=False, stderr=subprocess.DEVNULL).returncode


def need_agent():
    """For who may be told something else than that, without privileges."""
    if not has_rdfsbase():
        raise unittest.SkipTest(NO_AGENT)


class Process:
    """A started command. Its output is read all the time; lines of stdout carry the time at which they came."""

    def __init__(self, argv, env=None, cwd=None, pipe=False):
        self.popen = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE if pipe else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, errors='replace', env=env or clean_env(),
                                      cwd=cwd, start_new_session=True)
        self.lines, self.errors, self.last = [], [], time.monotonic()
        self.changed = threading.Condition()
        self.said_all = [self._reader(self.popen.stdout, self.lines), self._reader(self.popen.stderr, self.errors)]

    def _reader(self, stream, lines):
        """-> set when all that the command itself has written is in lines; what it started may have the pipe still"""
        said_all = threading.Event()
        args = stream.fileno(), os.pidfd_open(self.popen.pid), lines, said_all
        threading.Thread(target=self._read, args=args, daemon=True).start()
        return said_all

    def _read(self, pipe, command, lines, said_all):
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder('utf-8')('replace'), True)
        rest, data = '', True
        while data:
            ready = select.select([pipe] if said_all.is_set() else [pipe, command], [], [])[0]
            # it may have written and ended between the two looks
            if pipe not in ready and not select.select([pipe], [], [], 0)[0]:
                said_all.set()
                continue
            data = os.read(pipe, 1 << 16)
            *whole, rest = (rest + decoder.decode(data, not data)).split('\n')
            came = [line + '\n' for line in whole] + [rest] * (not data and bool(rest))
            with self.changed:
                lines += came
                if came and lines is self.lines:
                    self.last = time.monotonic()
                self.changed.notify_all()
        os.close(command)
        said_all.set()

    def wait_line(self, prefix, timeout=20):
        """The first line of stdout that starts with prefix; AssertionError when none comes."""
        def found():
            return next((line for line in self.lines if line.startswith(prefix)), None)
        with self.changed:
            self.changed.wait_for(lambda: found() or self.popen.poll() is not None, timeout)
            line = found()
        if line is None:
            skip_without_agent(''.join(self.errors))
            raise AssertionError(f'no line "{prefix}..." came\n{"".join(self.lines)}\n{"".join(self.errors)}')
        return line

    def wait(self, timeout=60):
        """-> (status as a shell would say it, stdout, stderr)"""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f'still running after {timeout} s: {self.popen.args}\n{"".join(self.errors)}') from None
        for said_all in self.said_all:
            said_all.wait()
        skip_without_agent(''.join(self.errors))
        return status if status >= 0 else 128 - status, ''.join(self.lines), ''.join(self.errors)

    def kill(self):
        """Ends the whole session of the command."""
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()


def call(*args, prefix=(), timeout=60, env=None, cwd=None):
    """reftrace ARGS as it is -> Run without findings."""
    process = Process([*prefix, REFTRACE, *args], env=env, cwd=cwd)
    status, out, err = process.wait(timeout)
    return Run(status, out, err, None, None, time.monotonic() - process.last)


def _results(path):
    return path.read_text(errors='replace') if path.exists() else None


def trace(*args, verb=('run',), prefix=(), timeout=60, env=None, cwd=None):
    """reftrace VERB --json=... -o ... ARGS -> Run"""
    findings, report = temp_path('findings.json'), temp_path('report.txt')
    if ENGINE and '-p' not in args and verb == ('run',):
        args = ('--engine', ENGINE, *args)
    process = Process([*prefix, REFTRACE, *verb, f'--json={findings}', '-o', report, *args], env=env, cwd=cwd)
    status, out, err = process.wait(timeout)
    settle = time.monotonic() - process.last
    text = _results(findings)
    run = Run(status, out, err, json.loads(text) if text else None, _results(report), settle)
    for path in (findings, report):
        path.unlink(missing_ok=True)
    return run


def pairs(specs):
    """-P options for the specs that a program printed."""
    return [word for spec in specs for word in ('-P', spec)]


def told(path, *args):
    """The -P options with the truth: the program itself says them."""
    out = subprocess.run([str(path), *args], capture_output=True, text=True, env=clean_env(), check=False).stdout
    return pairs(truth(out).specs)


def site_counts(findings):
    """(function, op) -> events, over all call sites of the findings JSON."""
    counts = collections.Counter()
    for site in findings['sites']:
        if site['events']:
            counts[plain(site['function']), site['op']] += site['events']
    return counts


def probe_events():
    """What is defined in tracefs now, one line each."""
    lines = []
    for name in ('uprobe_events', 'dynamic_events'):
        for root in ('/sys/kernel/tracing', '/sys/kernel/debug/tracing'):
            path = pathlib.Path(root, name)
            try:
                lines += path.read_text().splitlines()
                break
            except OSError:
                continue
    return sorted(set(lines))


def text_changes(pid, path):
    """Addresses in process pid at which executable bytes of file `path` differ from the file: armed breakpoints."""
    data = pathlib.Path(path).read_bytes()
    real = os.path.realpath(path)
    changed = []
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps, open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        for line in maps:
            fields = line.split(maxsplit=5)
            if len(fields) < 6 or fields[5].strip() != real or 'x' not in fields[1]:
                continue
            start, end = (int(n, 16) for n in fields[0].split('-'))
            offset = int(fields[2], 16)
            want = data[offset:offset + end - start]
            memory.seek(start)
            have = memory.read(len(want))
            changed += [start + i for i in range(len(have)) if have[i] != want[i]]
    return changed


def process_state(pid):
    """The letter of /proc/PID/stat; '' when it is gone."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            return f.read().rpartition(')')[2].split()[0]
    except OSError:
        return ''


def armed(pid, path):
    """Does process pid carry a breakpoint in this file now? False when it is gone."""
    try:
        return bool(text_changes(pid, path))
    except OSError:
        return False


def mapped(pid, path):
    """Does process pid map the file executable?"""
    real = os.path.realpath(path)
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
        return any(line.rstrip().endswith(real) and 'x' in line.split()[1] for line in maps)


def wait_until(condition, timeout=10):
    """Waits until condition() holds; says whether it did."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


_engine = None


def need_engine():
    """Skips the test where programs cannot be traced here, with the reason."""
    global _engine
    need_binary()
    if os.geteuid():
        raise unittest.SkipTest('needs root (uprobes)')
    if _engine is None:
        run = call('run', '-P', 'type=session get=session_ref put=session_unref', '--', program('missing-put'), 'ok')
        _engine = 'engine uprobe does not work here: ' + run.stderr.strip()[:200] \
            if re.search(r'\b(E06|E07|E30|E01)\b', run.stderr) else ''
    if _engine:
        raise unittest.SkipTest(_engine)


def need_mount_namespace():
    """Not in a chroot whose root is no mount."""
    done = subprocess.run(['unshare', '-m', 'true'], capture_output=True, text=True, check=False)
    if done.returncode:
        raise unittest.SkipTest(f'no mount namespace of our own here: {done.stderr.strip()}')


def alone(why):
    """Marks a test, or a class of them, that runs when no other does (run.py); why: what it and others would share."""
    def mark(test):
        test.alone = why
        return test
    return mark


def need_binary():
    if not os.access(REFTRACE, os.X_OK):
        raise unittest.SkipTest(f'{REFTRACE} is not built')


class Ends:
    """check(how, signal) of a test: each way to attach, ended and killed."""

    def test_multi(self):
        self.check('multi', signal.SIGINT)

    def test_multi_killed(self):
        self.check('multi', signal.SIGKILL)

    def test_tracefs(self):
        self.check('tracefs', signal.SIGINT)

    def test_tracefs_killed(self):
        self.check('tracefs', signal.SIGKILL)


class LiveTest(unittest.TestCase):
    """Base of the tests that trace something."""
    maxDiff = 4000

    def assert_clean_trust(self, run):
        self.assertIsNotNone(run.findings, f'no findings were written\n{run}')
        trust = run.findings['trust']
        self.assertEqual((trust['lost'], trust['nothing_seen'], trust['unarmed'], trust['complete']),
                         (0, False, [], True), f'{trust}\n{run}')

    def assert_guilty(self, run, guilty, exact=True, also=None):
        """The first finding is the planted fault, and nobody else is accused, but `also`; guilty None: no finding at all."""
        self.assertIsNotNone(run.findings, f'no findings were written\n{run}')
        found = [(f['guilty']['function'], f['kind'], f['objects']) for f in run.findings['findings']]
        if guilty is None:
            self.assertEqual(found, [], str(run))
            return
        if exact:
            self.assertTrue(found, f'nothing was found, guilty is {guilty}\n{run}')
        for function, _, _ in found:
            self.assertTrue(same_function(function, guilty.function) or function == also, f'{found}, guilty is {guilty}\n{run}')
        if found and exact:
            self.assertEqual(found[0][1:], (guilty.kind, guilty.objects), f'{found}, guilty is {guilty}\n{run}')

    def assert_report(self, run, guilty):
        """The text report is short and names the function at once."""
        self.assertIsNotNone(run.report, f'no report was written\n{run}')
        lines = run.report.splitlines()
        if len(run.findings['findings']) == 1:
            self.assertLessEqual(len(lines), 24, run.report)
        if guilty:
            name = guilty.function.split('::')[-1]
            self.assertIn(name, '\n'.join(lines[:5]), run.report)
        for line in lines:
            self.assertLessEqual(len(line), 130, line)

    def assert_counts(self, run):
        want = collections.Counter()
        for (function, op), n in run.truth.counts.items():
            want[function.split('::')[-1], op] += n
        have = collections.Counter()
        for (function, op), n in site_counts(run.findings).items():
            have[function.split('::')[-1], op] += n
        self.assertEqual(dict(have), dict(want), str(run))
