# SPDX-License-Identifier: GPL-2.0-only
"""perf and reftrace on the same recordings, ours and perf's own: the same samples, tables, build-ids and headers.

Every recording is read by both programs, whoever made it, and what they say must be equal. RT_REAL=1 makes all of
them, otherwise a few; RT_PERF_TOO=PERF names a newer perf (tests/newer-perf) that is asked as well.

What is not compared letter by letter, and why:
- blanks: the versions of perf align their columns differently;
- after `(dso)` nothing, before a symbol no address for perf after 6.1: it prints run-time addresses there, 6.1 and
  reftrace those of the file (where lld or a fixed address put code elsewhere than its place in the file, 6.1 prints the place,
  and reftrace the address of the ELF file: not compared here). Symbol, offset and file stay, which say the same;
- names of C++: perf after 6.1 shows them with parameters, so it is asked for the mangled ones and c++filt -p, which is
  what 6.1 does, makes them readable;
- `0 [unknown]` behind reftrace:meta_* samples: these are notes, they have no place in the code, and reftrace prints none;
- callers in user space of a program that is just being replaced by exec: perf names them by the old image;
- threads that have ended: perf after 6.1 forgets their names (`:1234`);
- sched_switch: perf has code of its own for it (prev_state=R ==>), reftrace shows the fields by name and value;
- stubs of the PLT: the versions of perf call those of IFUNCs by different names (@plt, *ABS*+0x1234@plt), and perf 6.1
  counts the first ones to _init before them;
- code in no file (that of engine agent): perf calls it by a file that a JIT compiler would write (/tmp/perf-1234.map, [JIT] tid
  1234), and reftrace [anon];
- what has no name in a table is one line: perf lists run-time addresses, reftrace those of the file.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import live

FLAGS = ('-g', '-O1', '-fno-omit-frame-pointer')
CPU = ('-F', '999', '-e', 'cpu-clock', '-g')
FLAT = ('-F', '999', '-e', 'cpu-clock')
QUICK = {'cpu-ours', 'cpu-perf', 'cxx-ours', 'dwarf-perf', 'group-perf', 'lifetimes-ours', 'compressed-perf', 'pipe-ours'}
BURN = '150'  # ms of CPU time: what is sampled does not depend on what else the machine does

Recording = collections.namedtuple('Recording', 'name path comms')
Row = collections.namedtuple('Row', 'event comm dso symbol')


class Perf:
    """A perf, and how its output becomes comparable."""

    def __init__(self, path):
        self.path = path
        self.version = subprocess.run([path, '--version'], capture_output=True, text=True, check=True).stdout.split()[2]
        self.newer = not self.version.startswith('6.1.')

    def run(self, verb, rec, *args):
        """stdout; a perf that fails, or warns of a recording of ours, shows a fault of the recording."""
        args = [verb, '-i', rec.path, *args]
        done = subprocess.run([self.path, *map(str, args)], capture_output=True, text=True, errors='replace',
                              stdin=subprocess.DEVNULL, env=env(), check=False)
        errors = '\n'.join(line for line in done.stderr.splitlines() if line.strip())
        if done.returncode or (errors and rec.name.endswith('-ours')):
            raise AssertionError(f'perf {self.version} {" ".join(map(str, args))}: status {done.returncode}\n{errors}')
        return self._names(done.stdout)

    def _names(self, text):
        if not self.newer:
            return text
        return subprocess.run(['c++filt', '-p'], input=text, capture_output=True, text=True, check=True).stdout

    def demangle(self):
        return ['--no-demangle'] if self.newer else []


def env():
    home = live.temp() / 'home'
    home.mkdir(exist_ok=True)
    return live.clean_env(HOME=str(home), PERF_BUILDID_DIR=str(home / '.debug'))


def perfs():
    """The installed perf, and the newer one that RT_PERF_TOO names."""
    paths = [shutil.which('perf'), *os.environ.get('RT_PERF_TOO', '').split(':')]
    return [Perf(p) for p in paths if p]


def compiled(name, *flags, stripped=False):
    folder = live.temp() / ('oracle' + ''.join(flags) + '-stripped' * stripped)
    folder.mkdir(exist_ok=True)
    target = folder / name
    if not target.exists():
        source = live.PROGRAMS / (name.removesuffix('.so') + ('.cc' if 'cxx' in name else '.c'))
        live._compile(source, target, 'gcc', [*FLAGS, *flags])  # pylint: disable=protected-access
        if stripped:
            subprocess.run(['strip', str(target)], check=True)
    return target


def run(*argv, stdout=subprocess.PIPE):
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                          env=env(), check=False, timeout=120)
    if done.returncode:
        raise AssertionError(f'{" ".join(map(str, argv))}: status {done.returncode}\n{done.stderr.decode()}')
    return (done.stdout or b'').decode(errors='replace')


def reftrace(*args):
    return run(live.REFTRACE, *args)


# ---- what is recorded ----

def programs(case):
    """The words of the program of a case."""
    hot = compiled('hot')
    if case == 'bpf':
        program = live.program('missing-put', flags=FLAGS)
        return [live.REFTRACE, 'run', '-o', '/dev/null', *live.told(program, 'ok'), '--', program, 'ok']
    return {
        'cpu': [hot, BURN],
        'flat': [compiled('hot', '-no-pie', '-fno-pie'), BURN],
        'stripped': [compiled('hot', '-rdynamic', stripped=True), BURN],
        'cxx': [compiled('hot-cxx'), BURN],
        'threads': [hot, BURN, 'threads'],
        'exec': [hot, BURN, 'exec'],
        'dlopen': [hot, BURN, 'dlopen', compiled('hot-plugin.so')] if case == 'dlopen' else [],
    }.get(case, [hot, BURN])


OPTIONS = {
    'dwarf': ('-F', '999', '-e', 'cpu-clock', '--call-graph', 'dwarf'),
    'flat': FLAT,
    'group': ('-F', '999', '-e', '{cpu-clock,page-faults}:S'),
    'stripped': FLAT,
    'events': ('-c', '1', '-e', 'page-faults', '-e', 'context-switches', '-g'),
    'sched': ('-e', 'sched:sched_process_exec,sched:sched_waking,sched:sched_switch'),
    'syscalls': ('-e', 'syscalls:sys_enter_mmap,syscalls:sys_exit_mmap', '-g'),
    'bpf': ('-a', *CPU),
    'all': ('-a', *CPU),
}


def lifetimes(path, *more):
    program = live.program('missing-put', flags=FLAGS)
    reftrace('record', '-q', *more, '-o', path, *live.told(program, 'ok'), '--', program, 'bug')


def uprobe(path, tool):
    """perf needs the event to be defined; ours is defined by its name."""
    hot = compiled('hot')
    if tool == 'ours':
        reftrace('record', '-q', '-e', f'u:{hot}:hot_inner', '-g', '-o', path, '--', hot, BURN)
        return
    group = f'rtoracle_{os.getpid()}'
    run('perf', 'probe', '-q', '-x', hot, f'{group}:inner=hot_inner')
    try:
        run('perf', 'record', '-q', '-e', f'{group}:inner', '-g', '-o', path, '--', hot, BURN)
    finally:
        run('perf', 'probe', '-q', '-d', f'{group}:inner')


def pipe(path, tool):
    words = [compiled('hot'), BURN]
    with open(path, 'wb') as f:
        if tool == 'ours':
            run(live.REFTRACE, 'record', '-q', *CPU, '-o', '-', '--', *words, stdout=f)
        else:
            run('perf', 'record', '-q', *CPU, '-o', '-', '--', *words, stdout=f)


def make(name):
    """Makes the recording of this name ("CASE-ours", "CASE-perf")."""
    case, tool = name.rsplit('-', 1)
    path = live.temp() / (name + '.data')
    if case == 'lifetimes':
        lifetimes(path)
    elif case == 'both':
        lifetimes(path, *CPU)
    elif case == 'uprobe':
        uprobe(path, tool)
    elif case == 'pipe':
        pipe(path, tool)
    else:
        more = ('-z',) if case == 'compressed' else ()
        record = [live.REFTRACE, 'record', '-q'] if tool == 'ours' else ['perf', 'record', '-q', *more]
        run(*record, *OPTIONS.get(case, CPU), '-o', path, '--', *programs(case))
    # of the whole machine, what we started: others end and change their files while this test looks
    comms = {'hot', 'reftrace', 'missing-put'} if '-a' in OPTIONS.get(case, ()) else None
    return Recording(name, path, comms)


CASES = ('cpu', 'dwarf', 'flat', 'group', 'stripped', 'cxx', 'threads', 'exec', 'dlopen', 'events', 'sched', 'syscalls', 'uprobe', 'bpf',
         'all', 'compressed', 'pipe')
NAMES = [f'{case}-{tool}' for case in CASES for tool in ('ours', 'perf')
         if f'{case}-{tool}' not in ('compressed-ours', 'group-ours')] + \
        ['lifetimes-ours', 'both-ours']

_made = {}


def recording(name):
    if name not in _made:
        _made[name] = make(name)
    return _made[name]


# ---- what is said about it ----

def frame(text, addresses):
    text = re.sub(r'\(/tmp/perf-\d+\.map\)$', '([anon])', text)
    text = re.sub(r'(\S*@plt|(?<= )_init)\+0x[0-9a-f]+', '@plt', text)
    return text if addresses else re.sub(r'^[0-9a-f]+ (?=\S.*\(.*\)$)', '', text)


def samples(text, addresses, comms=None, names=None):
    """The samples of a script's output, each a tuple of lines. names: filled with the names of threads."""
    out, lines = [], []
    names = {} if names is None else names
    for line in [*text.splitlines(), '']:
        line = ' '.join(line.split())
        head = re.match(r'(.+?) +(\d+) (?:\[\d+\] )?\d+\.\d{6}: ', line)
        if head or not line:
            if lines:
                # the old image is gone then
                out.append(tuple(f for f in lines if '([kernel.' in f or f is lines[0])
                           if any(' load_elf_binary+' in f for f in lines) else tuple(lines))
            lines = []
        if head:
            comm, tid = head.groups()
            if comm == ':' + tid and tid in names:
                line = names[tid] + line[len(comm):]
            names.setdefault(tid, comm)
            if comm != ':' + tid:
                names[tid] = comm
            if comms and names[tid] not in comms:
                continue
            if ' sched:sched_switch: ' in line:
                line = re.sub(r' prev_state=\S+( ==>)?', '', line)
            if ' reftrace:meta_' in line:
                line = re.sub(r'(?<=\]) 0 \[unknown\]( \(\[unknown\]\))?$', '', line)
            place = re.match(r'(.*: )([0-9a-f]+ .*\))$', line) if not addresses else None
            lines.append(place.group(1) + frame(place.group(2), addresses) if place else frame(line, True))
        elif line and lines:
            lines.append(frame(line, addresses))
    return out


def table(rows):
    out = collections.defaultdict(lambda: [0, 0])
    for row, count, period in rows:
        symbol = re.sub(r'.*@plt$|_init$', '@plt', row.symbol)
        if re.fullmatch(r'(0x)?[0-9a-f]{16}', symbol):
            symbol = '[unknown]'
        out[row._replace(symbol=symbol)][0] += count
        out[row._replace(symbol=symbol)][1] += period
    return {row: tuple(n) for row, n in out.items()}


def perf_table(perf, rec, names):
    # What came through a pipe has no groups. With --no-group perf 6.1 makes the first event a leader before it has read
    # one, and by that writes into its table of sample ids: it crashes where an id falls there (setup_forced_leader()).
    apart = () if rec.name.startswith('pipe') else ('--no-group',)
    text = perf.run('report', rec, '--stdio', '--no-children', '--no-inline', *apart, '-g', 'none', '--percent-limit',
                    '0', '-F', 'sample,period,comm,dso,sym', '-t', '\t', *perf.demangle())
    rows, event = [], None
    for line in text.splitlines():
        about = re.match(r"# Samples: .* of events? '(.*)'", line)
        if about:
            event = about.group(1)
        fields = [f.strip() for f in line.split('\t')]
        if line.startswith('#') or len(fields) != 5:
            continue
        count, period, comm, dso, symbol = fields
        dso = re.sub(r'^(\[JIT\] tid \d+|perf-\d+\.map)$', '[anon]', dso)
        rows.append((Row(event, names.get(comm[1:], comm) if comm[0] == ':' else comm, dso, symbol[4:]), int(count), int(period)))
    return table(r for r in rows if not r[0].event.startswith('reftrace:'))


def our_table(rec):
    done = live.call('report', '--samples', '--json', '-i', rec.path, env=env())
    if done.status == 24 and 'holds no sample' in done.stderr:
        return {}
    if done.status:
        raise AssertionError(str(done))
    return table((Row(event['name'], row['comm'], os.path.basename(row['module']), row['function'] or '0' * 16),
                  row['samples'], row['period'])
                 for event in json.loads(done.stdout)['events'] for row in event['rows'] if row['samples'])


def build_id(path):
    out = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=False).stdout
    found = re.search(r'Build ID: ([0-9a-f]+)', out)
    return found and found.group(1)


def perf_build_ids(perf, rec):
    """path -> build-id, of files."""
    return dict(reversed(line.split(None, 1)) for line in perf.run('buildid-list', rec).splitlines()
                if re.match('[0-9a-f]{40} /', line))


def our_build_ids(rec):
    """path -> build-id of the files that samples or stacks name, from the archive that would be made of them."""
    archive = live.temp_path('oracle.tar.zst')
    reftrace('archive', 'create', '-i', rec.path, '-o', archive)
    done = live.call('archive', 'list', archive, env=env())
    archive.unlink()
    lines = [re.split(r'  +', line.strip(), maxsplit=2) for line in done.stdout.splitlines()]
    return {f[2]: f[1] for f in lines if len(f) == 3 and re.fullmatch('[0-9a-f]{40} /', f'{f[1]} {f[2][:1]}')}


def in_exec(sample):
    """Between the COMM record of an exec and the new program's start the caller is the old program's code, whose
    mappings are gone: perf 6.1 says so, newer ones still name it."""
    if not any(' bprm_execve+' in f' {frame}' for frame in sample):
        return sample
    return (sample[0], *(frame for frame in sample[1:] if '[kernel.kallsyms]' in frame))


class Oracle(live.LiveTest):
    """One test for each recording; made by add_tests()."""

    @classmethod
    def setUpClass(cls):
        live.need_binary()
        if os.geteuid():
            raise unittest.SkipTest('needs root (perf_event_open)')
        if not shutil.which('perf'):
            raise unittest.SkipTest('perf is not installed')
        cls.perfs = perfs()

    def same_script(self, perf, rec):
        addresses = not perf.newer
        names = {}
        ours = samples(reftrace('script', '-i', rec.path), addresses, rec.comms, names)
        theirs = samples(perf.run('script', rec, '--no-inline', *perf.demangle()), addresses, rec.comms, dict(names))
        self.assertGreater(len(theirs), 5)
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if perf.newer and a != b:
                a, b = in_exec(a), in_exec(b)
            self.assertEqual(a, b, f'sample {i} of {rec.name}: reftrace, perf {perf.version}')
        self.assertEqual(len(ours), len(theirs))
        return names

    def same_table(self, perf, rec, names):
        theirs, ours = perf_table(perf, rec, names), our_table(rec)
        if rec.comms:
            theirs, ours = ({row: n for row, n in t.items() if row.comm in rec.comms} for t in (theirs, ours))
        self.assertEqual(ours, theirs, f'{rec.name}: reftrace, perf {perf.version}')
        return theirs

    def same_build_ids(self, perf, rec):
        theirs, ours = perf_build_ids(perf, rec), our_build_ids(rec)
        # perf's own table is of what samples hit, without callers; ours is of all that was mapped
        if rec.name.endswith('-ours'):
            self.assertEqual({p for p in ours if p not in theirs}, set(), f'{rec.name}, perf {perf.version}')
        for path, number in ours.items():
            if rec.comms is None:
                self.assertIn(build_id(path), (number, None), f'{path} in {rec.name}')
        for path, number in theirs.items():
            if rec.comms is None:
                self.assertEqual(number, build_id(path), f'{path} in {rec.name}, perf {perf.version}')
            if path in ours:
                self.assertEqual(ours[path], number, f'{path} in {rec.name}, perf {perf.version}')

    def same_events(self, perf, rec, rows):
        # evlist does not read streams, and perf's own header is perf's business
        if rec.name.startswith('pipe') or rec.name.endswith('-perf'):
            return
        names = perf.run('evlist', rec).splitlines()
        self.assertEqual({row.event for row in rows} - set(names), set())
        header = perf.run('report', rec, '--header-only')
        uname = os.uname()
        for key, value in (('hostname', uname.nodename), ('os release', uname.release), ('arch', uname.machine),
                           ('nrcpus online', os.cpu_count())):
            self.assertRegex(header, rf'(?m)^# {key} : {re.escape(str(value))}$')
        self.assertRegex(header, r'(?m)^# cmdline : .*reftrace record ')

    def same_programs(self, perf, rec):
        """The programs that came and went: KSYMBOL and BPF_EVENT records, by time."""
        def records(text):
            found = re.findall(r'(\d+\.\d{6}): (PERF_RECORD_(?:KSYMBOL|BPF_EVENT) .*)', text)
            return sorted((when, ' '.join(what.split())) for when, what in found if float(when))
        theirs = records(perf.run('script', rec, '--no-inline', '--show-bpf-events'))
        self.assertTrue([what for _, what in theirs if 'bpf_prog_' in what])
        self.assertEqual(records(reftrace('script', '--show-bpf-events', '-i', rec.path)), theirs)

    def same(self, name):
        if name.startswith(('lifetimes', 'both', 'bpf')):
            live.need_engine()
        rec = recording(name)
        for perf in self.perfs:
            with self.subTest(perf=perf.version):
                names = self.same_script(perf, rec)
                if name.startswith('bpf'):
                    self.same_programs(perf, rec)
                rows = self.same_table(perf, rec, names)
                self.same_events(perf, rec, rows)
                # buildid-list loses its way in streams with tracepoints, perf's own as well
                if not name.startswith(('sched', 'syscalls', 'pipe')):
                    self.same_build_ids(perf, rec)


def add_tests():
    def test(name):
        return lambda self: self.same(name)
    for name in NAMES:
        method = test(name)
        if name not in QUICK and not live.REAL:
            method = unittest.skip('RT_REAL=1 makes this recording')(method)
        setattr(Oracle, 'test_' + name.replace('-', '_'), method)


add_tests()

if __name__ == '__main__':
    unittest.main()
