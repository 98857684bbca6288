# SPDX-License-Identifier: GPL-2.0-only
"""record: samples, events and what steers a recording; the oracles are nm, perf and the programs themselves."""
import collections
import contextlib
import functools
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import time
import unittest

import live

DUMP = live.BUILD / 'tests' / 'live' / 'spool-dump'
LOST, COMM, FORK, SAMPLE, MMAP2, KSYMBOL, BPF_EVENT, ROUND = 2, 3, 7, 9, 10, 17, 18, 68
HOST, TRACING_DATA = 5, 3
CALLCHAIN, RAW, ADDR = 1 << 5, 1 << 10, 1 << 3
FRAME_POINTERS = ('-g', '-O0', '-fno-omit-frame-pointer')

Attr = collections.namedtuple('Attr', 'id name type config sample_type flags period ids')
Perf = collections.namedtuple('Perf', 'attr time pid tid type misc body')
Sample = collections.namedtuple('Sample', 'attr pid tid time ip period chain raw')


class Spool:
    """What a recording holds, as the project's own reader gives it."""

    def __init__(self, path):
        done = subprocess.run([str(DUMP), str(path)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(done.stderr)
        self.attrs, self.perf, self.blobs, self.losses = {}, [], {}, []
        self.kinds, self.end = collections.Counter(), None
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(' ')
            getattr(self, '_' + word)(rest)

    def _attr(self, rest):
        f = rest.split(' ')
        self.attrs[int(f[0])] = Attr(int(f[0]), f[1], int(f[2]), int(f[3]), int(f[4]), int(f[5], 16), int(f[6]),
                                     [int(i) for i in f[7].split(',') if i])

    def _perf(self, rest):
        attr, when, pid, tid, data = rest.split(' ')
        data = bytes.fromhex(data)
        kind, misc, size = struct.unpack_from('=IHH', data)
        assert size == len(data)
        self.perf.append(Perf(int(attr), int(when), int(pid), int(tid), kind, misc, data[8:]))

    def _blob(self, rest):
        what, _, data = rest.split(' ')
        self.blobs[int(what)] = bytes.fromhex(data)

    def _loss(self, rest):
        self.losses.append(rest)

    def _record(self, rest):
        self.kinds[int(rest)] += 1

    def _end(self, rest):
        self.end = None if rest == '-' else int(rest)

    def of(self, kind):
        return [p for p in self.perf if p.type == kind]

    def samples(self, name=None):
        """The decoded samples, of the event of this name; what reftrace notes in samples of its own is left out."""
        for p in self.of(SAMPLE):
            attr = self.attrs[p.attr]
            if (name and attr.name != name) or attr.name.startswith('reftrace:'):
                continue
            _, ip, pid, tid, when = struct.unpack_from('=QQIIQ', p.body)
            at = 32 + (8 if attr.sample_type & ADDR else 0)
            _, _, period = struct.unpack_from('=IIQ', p.body, at)
            at += 16
            chain, raw = [], b''
            if attr.sample_type & CALLCHAIN:
                count, = struct.unpack_from('=Q', p.body, at)
                chain = list(struct.unpack_from(f'={count}Q', p.body, at + 8))
                at += 8 + 8 * count
            if attr.sample_type & RAW:
                size, = struct.unpack_from('=I', p.body, at)
                raw = p.body[at + 4:at + 4 + size]
            yield Sample(attr.name, pid, tid, when, ip, period, chain, raw)

    def maps(self):
        """pid -> [(start, end, offset, build-id, name)]"""
        maps = collections.defaultdict(list)
        for p in self.of(MMAP2):
            pid, _, start, size, offset = struct.unpack_from('=IIQQQ', p.body)
            build_id = p.body[36:36 + p.body[32]].hex() if p.misc & 0x4000 else None
            name = p.body[64:].split(b'\0')[0].decode()
            maps[pid].append((start, start + size, offset, build_id, name))
        return maps

    def host(self):
        return [line.split(' ', 1) for line in self.blobs[HOST].decode().splitlines()]


@functools.cache
def function(path, name):
    """(file offset, size) of a function, by nm and readelf."""
    out = subprocess.run(['nm', '-S', str(path)], capture_output=True, text=True, check=True).stdout
    addr, size = next((int(m[0], 16), int(m[1], 16)) for m in (l.split() for l in out.splitlines())
                      if len(m) == 4 and m[3] == name)
    out = subprocess.run(['readelf', '-lW', str(path)], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        f = line.split()
        if f and f[0] == 'LOAD':
            offset, start, length = int(f[1], 16), int(f[2], 16), int(f[4], 16)
            if start <= addr < start + length:
                return addr - start + offset, size
    raise AssertionError(f'no segment holds {name}')


def build_id(path):
    out = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=True).stdout
    return re.search(r'Build ID: ([0-9a-f]+)', out).group(1)


def bpf_symbols():
    """(address, name) of what the kernel says about BPF programs."""
    with open('/proc/kallsyms', encoding='utf-8') as f:
        return {(int(f[0], 16), f[2]) for f in map(str.split, f) if f[-1] == '[bpf]' and f[2].startswith('bpf_prog_')}


def in_function(spool, pid, ip, path, name):
    """Does ip lie in this function, by the recorded mappings of the process?"""
    offset, size = function(path, name)
    for start, end, at, _, file in spool.maps()[pid]:
        if start <= ip < end and file == os.path.realpath(path):
            return offset <= ip - start + at < offset + size
    return False


def has_samples(path):
    """Of a recording that is still being written; its header may not be there yet."""
    try:
        return any(True for _ in Spool(path).samples())
    except AssertionError:
        return False


def read_ack(ack):
    """The next answer of --control; the fifo was opened before the recording began."""
    if not select.select([ack], [], [], 20)[0]:
        raise AssertionError('no answer came')
    return os.read(ack, 4)


class Record(live.LiveTest):
    def setUp(self):
        live.need_binary()
        if os.geteuid():
            self.skipTest('needs root (perf_event_open)')

    def busy(self):
        return live.program('busy', flags=FRAME_POINTERS)

    def record(self, *args, status=0, **more):
        """-> (Run, Spool)"""
        path = live.temp_path('samples.rt')
        run = live.call('record', '-o', path, *args, **more)
        self.assertEqual(run.status, status, str(run))
        return run, Spool(path)


class Samples(Record):
    def test_in_the_function(self):
        busy = self.busy()
        run, spool = self.record('-F', '999', '-g', '-e', 'cpu-clock', '--', busy, '0.5', status=3)
        pid = int(re.search(r'pid (\d+)', run.stdout).group(1))
        samples = [s for s in spool.samples() if s.pid == pid]
        self.assertGreater(len(samples), 20, str(run))
        inside = [s for s in samples if in_function(spool, pid, s.ip, busy, 'busy_loop')]
        self.assertGreater(len(inside), 0.8 * len(samples))
        callers = [s for s in inside
                   if any(in_function(spool, pid, ip, busy, 'busy_caller') for ip in s.chain)]
        self.assertGreater(len(callers), 0.9 * len(inside))
        self.assertEqual(spool.end, 3 << 8)
        self.assertTrue(spool.of(ROUND))
        self.assertIn(f'{len(samples)} samples', run.stderr)

    def test_mappings_have_build_ids(self):
        busy = self.busy()
        run, spool = self.record('-F', '99', '--', busy, '0.01', status=3)
        pid = int(re.search(r'pid (\d+)', run.stdout).group(1))
        ids = {name: i for _, _, _, i, name in spool.maps()[pid] if i}
        self.assertEqual(ids[os.path.realpath(busy)], build_id(busy))
        self.assertTrue(any('/libc.so' in name for name in ids), ids)
        for name, i in ids.items():
            if name.startswith('/'):
                self.assertEqual(i, build_id(name))
        kernel = [m for m in spool.maps()[0xffffffff] if m[4] == '[kernel.kallsyms]_text']
        self.assertEqual(len(kernel), 1)
        comms = [p.body[8:24].split(b'\0')[0] for p in spool.of(COMM)]
        self.assertIn(b'busy', comms)

    def test_attributes(self):
        _, spool = self.record('-F', '99', '-e', 'cpu-clock,page-faults:u', '--', self.busy(), '0.01', status=3)
        names = [a.name for a in spool.attrs.values()]
        self.assertEqual(names[:2], ['cpu-clock', 'page-faults:u'])
        for attr in spool.attrs.values():
            if attr.name.startswith('reftrace:'):
                continue
            self.assertEqual(attr.sample_type & 0x10187, 0x10187, attr)  # IDENTIFIER IP TID TIME CPU PERIOD
            self.assertTrue(attr.ids)
        self.assertEqual(spool.attrs[1].period, 99)
        ids = [i for a in spool.attrs.values() for i in a.ids]
        self.assertEqual(len(ids), len(set(ids)))

    def test_host(self):
        _, spool = self.record('-F', '99', '--', 'true')
        host = spool.host()
        one = dict(host)
        uname = os.uname()
        self.assertEqual((one['hostname'], one['osrelease'], one['arch']),
                         (uname.nodename, uname.release, uname.machine))
        self.assertEqual(int(one['nrcpus_online']), os.cpu_count())
        self.assertEqual(one['clockid'], '1')
        skew = int(one['wall_ns']) - int(one['monotonic_ns']) - (time.time_ns() - time.monotonic_ns())
        self.assertLess(abs(skew), 5e9)
        words = [v for k, v in host if k == 'cmdline']
        self.assertEqual((words[0], words[1], words[-1]), (str(live.REFTRACE.resolve()), 'record', 'true'))

    def test_children(self):
        run, spool = self.record('-F', '499', '-e', 'cpu-clock', '--', self.busy(), '0.2', '0', '2', status=3)
        self.assertEqual(len({s.pid for s in spool.samples()}), 3, str(run))
        run, spool = self.record('-F', '499', '--no-follow', '-e', 'cpu-clock', '--', self.busy(), '0.2', '0', '2',
                                 status=3)
        self.assertEqual(len({s.pid for s in spool.samples()}), 1, str(run))

    def test_period(self):
        _, spool = self.record('-c', '5000000', '-e', 'cpu-clock', '--', self.busy(), '0.2', status=3)
        periods = {s.period for s in spool.samples()}
        self.assertEqual(periods, {5000000})

    def test_attach(self):
        busy = self.busy()
        program = live.Process([busy, '60'])
        try:
            pid = int(program.wait_line('pid').split()[1])
            run, spool = self.record('-F', '499', '-g', '-p', str(pid), '--duration', '400ms')
            samples = list(spool.samples())
            self.assertGreater(len(samples), 10, str(run))
            self.assertEqual({s.pid for s in samples}, {pid})
            inside = [s for s in samples if in_function(spool, pid, s.ip, busy, 'busy_loop')]
            self.assertGreater(len(inside), 0.8 * len(samples))
            self.assertEqual({m[4]: m[3] for m in spool.maps()[pid]}[os.path.realpath(busy)], build_id(busy))
            self.assertIsNone(program.popen.poll())
        finally:
            program.kill()

    def test_attached_process_ends(self):
        path = live.temp_path('ends.rt')
        program = live.Process([self.busy(), '60'])
        try:
            pid = program.wait_line('pid').split()[1]
            process = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '499', '-p', pid])
            self.assertTrue(live.wait_until(lambda: has_samples(path)))
        finally:
            program.kill()
        status, _, err = process.wait(20)
        self.assertEqual(status, 0, err)
        self.assertTrue(list(Spool(path).samples()), err)

    @live.alone('it records all processes')
    def test_system_wide(self):
        program = live.Process([self.busy(), '60'])
        try:
            pid = int(program.wait_line('pid').split()[1])
            run, spool = self.record('-a', '-F', '499', '--duration', '500ms')
            self.assertIn(pid, {s.pid for s in spool.samples()}, str(run))
            names = {p.body[8:24].split(b'\0')[0] for p in spool.of(COMM)}
            self.assertIn(b'busy', names)
            self.assertTrue({os.getpid(), 1} <= set(spool.maps()) | {1}, 'processes that ran before')
            run, spool = self.record('-a', '-F', '499', '--', 'sh', '-c', 'exit 5', status=5)
            self.assertEqual(spool.end, 5 << 8)
        finally:
            program.kill()

    @live.alone('it records all processes')
    def test_bpf_programs(self):
        """Programs that are loaded already are named as the kernel names them."""
        live.need_engine()
        path = live.program('busy', flags=FRAME_POINTERS)
        spec = 'type=x get=busy_loop:1 put=busy_caller:1'
        holder = live.Process([live.REFTRACE, 'run', '--engine', 'uprobe', '-P', spec, '--', path, '30'])
        try:
            holder.wait_line('pid')
            kernel = bpf_symbols()
            _, spool = self.record('-a', '-F', '99', '--duration', '100ms')
            kernel &= bpf_symbols()  # others may load and unload theirs meanwhile
            told = {(struct.unpack_from('=Q', p.body)[0], p.body[16:].split(b'\0')[0].decode())
                    for p in spool.of(KSYMBOL) if p.time == 0}
            self.assertTrue(told)
            self.assertTrue(kernel)
            self.assertEqual(kernel - told, set())
            self.assertTrue([p for p in spool.of(BPF_EVENT) if p.time == 0])
        finally:
            holder.popen.send_signal(signal.SIGINT)
            holder.popen.send_signal(signal.SIGINT)
            holder.wait(20)


class Events(Record):
    def test_tracepoint_count(self):
        if not pathlib.Path('/sys/kernel/tracing/events/syscalls/sys_enter_getppid').exists():
            self.skipTest('no syscall tracepoints here')
        event = 'syscalls:sys_enter_getppid'
        busy = self.busy()
        run, spool = self.record('-e', event, '--', busy, '0.01', '777', status=3)
        samples = list(spool.samples())
        self.assertEqual(len(samples), 777, str(run))
        number = int(pathlib.Path('/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id').read_text())
        self.assertTrue(all(struct.unpack_from('=H', s.raw)[0] == number for s in samples))
        form = pathlib.Path('/sys/kernel/tracing/events/syscalls/sys_enter_getppid/format').read_bytes()
        data = spool.blobs[TRACING_DATA]
        self.assertTrue(data.startswith(b'\x17\x08\x44tracing0.6\0'))
        self.assertIn(form, data)
        out = subprocess.run(['perf', 'stat', '-x,', '-e', event, str(busy), '0.01', '777'], capture_output=True,
                             text=True, check=False)
        if event in out.stderr:
            self.assertEqual(int(re.search(r'^(\d+),', out.stderr, re.M).group(1)), len(samples))

    @live.alone('it records all processes')
    def test_uprobe(self):
        busy = self.busy()
        events = f'u:{busy}:busy_loop,ur:{busy}:busy_loop'
        run, spool = self.record('-e', events, '--', busy, '0.01', '0', '2', status=3)
        counts = collections.Counter(s.attr.partition(':')[0] for s in spool.samples())
        # the kernel keeps a process's uprobes out of its children
        self.assertEqual(counts, {'u': 1, 'ur': 1})
        self.assertIn('uprobes do not follow', run.stderr)
        offset, _ = function(busy, 'busy_loop')
        for s in spool.samples(f'u:{busy}:busy_loop'):
            self.assertTrue(any(start <= s.ip < end and s.ip - start + at == offset
                                for start, end, at, _, _ in spool.maps()[s.pid]))
        _, spool = self.record('-a', '-e', events, '--', busy, '0.01', '0', '2', status=3)
        counts = collections.Counter(s.attr.partition(':')[0] for s in spool.samples())
        self.assertEqual(counts, {'u': 3, 'ur': 3})

    @unittest.skipUnless(shutil.which('perf'), 'perf is not installed')
    def test_events_are_perfs(self):
        """What the same -e makes of an event, as perf evlist reads it in our file and in perf's own."""
        names = ['cpu-clock:uH', 'page-faults:k', 'cs', 'task-clock:u', 'sched:sched_process_exit', 'minor-faults:uk']
        wanted = ('type', 'config', 'exclude_user', 'exclude_kernel', 'exclude_hv', 'exclude_host', 'exclude_guest',
                  '{ sample_period, sample_freq }', 'freq')

        def attrs(path):
            out = subprocess.run(['perf', 'evlist', '-v', '-i', str(path)], capture_output=True, text=True, check=True)
            found = {}
            for line in out.stdout.splitlines():
                name, _, rest = line.partition(': ')
                pairs = dict(f.rpartition(': ')[::2] for f in re.split(r', (?=[^}]*(?:{|$))', rest))
                found[name] = {k: pairs.get(k, '0') for k in wanted}
            return found

        ours, theirs = live.temp_path('ours'), live.temp_path('theirs')
        for tool, path in ((live.REFTRACE, ours), ('perf', theirs)):
            done = subprocess.run([str(tool), 'record', '-q', '-o', str(path), '-F', '99', '-e', ','.join(names), '--',
                                   'true'], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        mine, perfs = attrs(ours), attrs(theirs)
        for name in names:
            self.assertEqual(mine[name], perfs[name], name)

    def test_page_faults(self):
        _, spool = self.record('-c', '1', '-e', 'page-faults:u', '--', self.busy(), '0.01', status=3)
        self.assertGreater(len(list(spool.samples())), 10)

    def test_names(self):
        for words, code, text in ((['-e', 'cycels'], 'E17', 'did you mean cycles'),
                                  (['-e', 'sched:sched_swich'], 'E17', 'did you mean sched:sched_switch'),
                                  (['-e', 'cpu-clock:x'], 'E17', 'modifier'),
                                  (['-e', 'cpu/event=1'], 'E17', 'no second slash'),
                                  (['-e', 'nosuchpmu/event=1/'], 'E30', "no PMU 'nosuchpmu'"),
                                  (['-e', 'u:/bin/sh:no_such_function_here'], 'E25', 'no function'),
                                  (['-F', '99', '-c', '5'], 'E17', 'both -F and -c'),
                                  (['-F', '999999999'], 'E17', 'more than the kernel allows'),
                                  (['-F', 'often'], 'E17', "'often'"),
                                  (['-a', '-p', '1'], 'E17', 'both -a and -p'),
                                  (['-D', '-1'], 'E17', '--control'),
                                  (['--call-graph', 'lbr'], 'E17', 'fp'),
                                  (['--max-size', 'much', '-F', '9'], 'E17', "'much'"),
                                  (['--switch-output=soon', '-F', '9'], 'E17', "'soon'"),
                                  (['--control', 'fifo:/nowhere/x', '-F', '9'], 'E25', 'mkfifo'),
                                  (['--control', 'what', '-F', '9'], 'E17', 'fifo:CTL')):
            with self.subTest(words=words):
                command = [] if '-p' in words else ['--', 'true']
                run = live.call('record', '-o', live.temp_path('x.rt'), *words, *command)
                self.assertIn(run.status, (2, 125), str(run))
                self.assertIn(code, run.stderr)
                self.assertIn(text, run.stderr)

    def test_no_program(self):
        run = live.call('record', '-F', '99', '-o', live.temp_path('x.rt'), '--', '/no/such/program')
        self.assertEqual(run.status, 127, str(run))
        self.assertIn('E22', run.stderr)


class Steering(Record):
    @live.alone('what other tests load into the kernel meanwhile fills so small a file')
    def test_max_size(self):
        path = live.temp_path('max.rt')
        process = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '4000', '-g', '-e', 'cpu-clock',
                                '--max-size', '60K', '--', self.busy(), '60'])
        try:
            status, _, err = process.wait(60)
            self.assertEqual(status, 0, err)
            self.assertIn('--max-size', err)
            self.assertIn('goes on without being recorded', err)
            self.assertTrue(list(Spool(path).samples()))
        finally:
            process.kill()

    def switched(self, option, folder, signals=0):
        process = live.Process([live.REFTRACE, 'record', '-o', folder / 'x', '-F', '999', '-g', '-e', 'cpu-clock',
                                option, '--', self.busy(), '1.5'])
        process.wait_line('pid')
        for i in range(signals):
            process.popen.send_signal(signal.SIGUSR2)
            self.assertTrue(live.wait_until(lambda n=i: len(list(folder.iterdir())) > n + 1))
        status, out, err = process.wait(60)
        self.assertEqual(status, 3, err)
        pid = int(re.search(r'pid (\d+)', out).group(1))
        files = sorted(folder.iterdir())
        for file in files:
            self.assertRegex(file.name, r'^x\.\d{16}(-\d+)?$')
            spool = Spool(file)
            # each file says for itself who ran where
            self.assertEqual(spool.attrs[1].name, 'cpu-clock')
            self.assertIn(HOST, spool.blobs)
            for s in spool.samples():
                self.assertTrue(any(m[0] <= s.ip < m[1] for m in spool.maps()[pid] + spool.maps()[0xffffffff]),
                                f'{s.ip:x} in {file}')
        return files

    def test_switch_by_time(self):
        folder = live.temp_path('time')
        folder.mkdir()
        self.assertGreaterEqual(len(self.switched('--switch-output=400ms', folder)), 3)

    def test_switch_by_size(self):
        folder = live.temp_path('size')
        folder.mkdir()
        self.assertGreaterEqual(len(self.switched('--switch-output=6K', folder)), 3)

    def test_switch_by_signal(self):
        folder = live.temp_path('signal')
        folder.mkdir()
        self.assertEqual(len(self.switched('--switch-output', folder, signals=2)), 3)

    def test_switched_files_are_perf_data_at_once(self):
        """While the rest is still recorded; and who is killed leaves nothing behind but recordings."""
        folder = live.temp_path('killed')
        folder.mkdir()

        def finished():
            return sorted(f for f in folder.iterdir() if f.name.startswith('x.') and f.suffix != '.tmp')

        def made():
            return [f for f in finished() if f.read_bytes()[:8] == b'PERFILE2']

        process = live.Process([live.REFTRACE, 'record', '-o', folder / 'x', '-F', '999', '-g', '-e', 'cpu-clock',
                                '--switch-output=500ms', '--', self.busy(), '60'])
        pid = int(process.wait_line('pid').split()[1])
        try:
            self.assertTrue(live.wait_until(lambda: len(made()) >= 2, 60))
            self.assertIsNone(process.popen.poll())
            os.kill(process.popen.pid, signal.SIGKILL)
            process.popen.wait()
        finally:
            process.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for file in folder.iterdir():
            name, unnamed = re.fullmatch(r'(x(?:\.\d{16}(?:-\d+)?)?)(\.\d+-\d+\.tmp)?', file.name).groups()
            # killed between the two steps that put a made file where the raw one is
            self.assertTrue(not unnamed or (folder / name).exists(), file)
        for file in made():
            if shutil.which('perf'):
                done = subprocess.run(['perf', 'script', '-i', str(file)], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn('cpu-clock', done.stdout)
        for file in finished():
            self.assertEqual(live.call('report', '-i', file).status, 0, file)
        # what was being written says that it ends early
        if has_samples(folder / 'x'):
            self.assertEqual(live.call('report', '-i', folder / 'x').status, 24)

    def test_control(self):
        ctl, answers, path = (live.temp_path(n) for n in ('ctl', 'ack', 'control.rt'))
        os.mkfifo(ctl)
        os.mkfifo(answers)
        ack = os.open(answers, os.O_RDWR | os.O_NONBLOCK)
        process = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '999', '-e', 'cpu-clock', '-D', '-1',
                                f'--control=fifo:{ctl},{answers}', '--', self.busy(), '60'])
        try:
            process.wait_line('pid')

            def say(word):
                with open(ctl, 'w', encoding='ascii') as f:
                    f.write(word + '\n')
                self.assertEqual(read_ack(ack), b'ack\n')

            say('ping')
            say('snapshot')
            self.assertEqual(list(Spool(path).samples()), [])
            say('enable')
            time.sleep(0.3)
            say('disable')
            say('snapshot')
            count = len(list(Spool(path).samples()))
            self.assertGreater(count, 10)
            time.sleep(0.2)
            say('snapshot')
            self.assertEqual(len(list(Spool(path).samples())), count)
            say('stop')
            status, _, err = process.wait(20)
            self.assertEqual(status, 0, err)
            self.assertIn('--control said stop', err)
            self.assertEqual(len(list(Spool(path).samples())), count)
        finally:
            process.kill()
            os.close(ack)

    def test_delay(self):
        run, spool = self.record('-F', '999', '-e', 'cpu-clock', '-D', '300', '--', self.busy(), '0.8', status=3)
        when = [s.time for s in spool.samples()]
        start = min(p.time for p in spool.of(COMM) if p.time)
        self.assertTrue(when, str(run))
        self.assertGreater(min(when) - start, 250e6)

    @live.alone('it records all processes')
    def test_interrupt(self):
        path = live.temp_path('int.rt')
        process = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '499', '-a', '-e', 'cpu-clock'])
        self.assertTrue(live.wait_until(lambda: has_samples(path)))
        process.popen.send_signal(signal.SIGINT)
        status, _, err = process.wait(20)
        self.assertEqual(status, 0, err)
        self.assertTrue(list(Spool(path).samples()), err)

    def test_interrupt_reaches_the_program(self):
        path = live.temp_path('int.rt')
        process = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '499', '-e', 'cpu-clock', '--', self.busy(),
                                '60'])
        process.wait_line('pid')
        process.popen.send_signal(signal.SIGINT)
        status, _, err = process.wait(20)
        self.assertEqual(status, 128 + signal.SIGINT, err)
        self.assertEqual(Spool(path).end, signal.SIGINT)

    def test_killed_target(self):
        path = live.temp_path('kill.rt')
        process = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '499', '-e', 'cpu-clock', '--', self.busy(),
                                '60'])
        pid = int(process.wait_line('pid').split()[1])
        self.assertTrue(live.wait_until(lambda: has_samples(path)))
        os.kill(pid, signal.SIGKILL)
        status, _, err = process.wait(20)
        self.assertEqual(status, 128 + signal.SIGKILL, err)
        self.assertTrue(list(Spool(path).samples()), err)

    def test_full_disk(self):
        folder = live.temp_path('full')
        folder.mkdir()
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=200k', 'none', str(folder)], check=False).returncode:
            self.skipTest('tmpfs cannot be mounted here')
        try:
            run = live.call('record', '-o', folder / 'x.rt', '-F', '20000', '-g', '-e', 'cpu-clock',
                            '--', self.busy(), '20', timeout=60)
            self.assertEqual(run.status, 125, str(run))
            self.assertEqual(run.stderr.count('E15'), 1, str(run))
            self.assertRegex(run.stderr, 'holds what was recorded until then|the recording is there')
            self.assertTrue(list(Spool(folder / 'x.rt').samples()))
        finally:
            subprocess.run(['umount', '-l', str(folder)], check=False)

    def test_one_writer(self):
        """Who comes second to a file leaves it alone and starts nothing; who was killed leaves no lock."""
        path, ran = live.temp_path('one.rt'), live.temp_path('ran')
        first = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '499', '-e', 'cpu-clock', '--', self.busy(), '60'])
        pid = int(first.wait_line('pid').split()[1])
        self.assertTrue(live.wait_until(lambda: has_samples(path)))
        for option in (['record', '-o', path, '-F', '499'], ['run', '-w', path], ['run', '-o', path]):
            run = live.call(*option, '--', 'touch', ran)
            self.assertEqual(run.status, 125, str(run))
            self.assertRegex(run.stderr, 'E13 .*is writing it right now\n *fix: .*another file')
        self.assertFalse(ran.exists())
        os.kill(pid, signal.SIGTERM)
        status, _, err = first.wait(20)
        self.assertEqual(status, 128 + signal.SIGTERM, err)
        self.assertTrue(list(Spool(path).samples()), err)
        second = live.Process([live.REFTRACE, 'record', '-o', path, '-F', '499', '-e', 'cpu-clock', '--', self.busy(), '60'])
        pid = int(second.wait_line('pid').split()[1])
        os.kill(second.popen.pid, signal.SIGKILL)
        second.popen.wait()
        run = live.call('record', '-o', path, '-F', '499', '-e', 'cpu-clock', '--', 'touch', ran)
        self.assertEqual(run.status, 0, str(run))
        self.assertTrue(ran.exists())
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_running_count(self):
        leader, follower = pty.openpty()
        path = live.temp_path('tty.rt')
        env = live.clean_env()
        env['TERM'] = 'xterm'
        popen = subprocess.Popen([str(live.REFTRACE), 'record', '-o', str(path), '-F', '99', '-e', 'cpu-clock', '--',
                                  str(self.busy()), '1'], stdout=subprocess.DEVNULL, stderr=follower, env=env)
        os.close(follower)
        text = b''
        try:
            while chunk := os.read(leader, 4096):
                text += chunk
        except OSError:
            pass  # the terminal's end
        os.close(leader)
        self.assertEqual(popen.wait(), 3)
        lines = re.findall(rb'\rreftrace: [0-9.]+(?: [kM])? events, [0-9.]+ [kM]?B, 0 lost\x1b\[K', text)
        self.assertGreater(len(lines), 2, text)

    def test_duration_of_a_launched_program(self):
        """Lifetimes end after --duration as samples do; the program goes on, and its memory was looked through before."""
        path = live.temp_path('duration.rt')
        process = live.Process([live.REFTRACE, 'record', '-o', path, '--duration', '500ms', '-P',
                                'type=req new=req_new get=req_get put=req_put', '--', live.program('server'), 'bug', '60'])
        pid = int(process.wait_line('ready').split()[1])
        try:
            status, _, err = process.wait(40)
            self.assertEqual(status, 0, err)
            self.assertIn(f'process {pid} goes on without being recorded', err)
            os.kill(pid, 0)
            self.assertIn('server', pathlib.Path(f'/proc/{pid}/cmdline').read_text(encoding='utf-8'))
        finally:
            process.kill()
            os.kill(pid, signal.SIGKILL)
        run = live.call('report', '-i', path)
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stdout, r'missing put in answer\(\).* certain')

    def test_with_lifetimes(self):
        live.need_engine()
        path = live.program('missing-put', flags=('-g', '-O2'))
        run, spool = self.record('-F', '999', '-e', 'cpu-clock', *live.told(path, 'ok'), '--', path, 'bug')
        self.assertTrue(spool.kinds[1], 'events of objects')
        self.assertIn('cpu-clock', [a.name for a in spool.attrs.values()])
        self.assertIn(HOST, spool.blobs)


class Ordinary(live.LiveTest):
    """Without root: what is not allowed is said, with the way out; what is allowed is done."""

    def setUp(self):
        live.need_binary()
        if os.geteuid():
            self.skipTest('needs root, to become nobody')
        self.paranoid = int(pathlib.Path('/proc/sys/kernel/perf_event_paranoid').read_text())
        if self.paranoid < 2:
            self.skipTest(f'kernel.perf_event_paranoid is {self.paranoid}: all is allowed')
        self.folder = live.temp_path('nobody')
        self.folder.mkdir()
        os.chmod(self.folder, 0o777)

    def record(self, *args):
        return live.call('record', '-o', self.folder / 'x.rt', *args, prefix=live.NOBODY)

    def test_refusals(self):
        for words in (['-a', '-F', '99', '--', 'true'], ['-e', 'sched:sched_switch', '--', 'true'],
                      ['-e', 'cpu-clock:k', '--', 'true'], ['-p', '1', '-F', '99']):
            with self.subTest(words=words):
                run = self.record(*words)
                self.assertEqual(run.status, 125, str(run))
                self.assertRegex(run.stderr, r'E0[15] ')
                self.assertIn('sudo', run.stderr)

    @live.alone('what a user may lock in memory is counted over all of its recordings')
    def test_own_program(self):
        if self.paranoid > 2:
            self.skipTest('kernel.perf_event_paranoid forbids everything')
        busy = live.program('busy', flags=FRAME_POINTERS)
        run = self.record('-F', '499', '--', busy, '0.3')
        self.assertEqual(run.status, 3, str(run))
        self.assertIn('only user code', run.stderr)
        spool = Spool(self.folder / 'x.rt')
        pid = int(re.search(r'pid (\d+)', run.stdout).group(1))
        inside = [s for s in spool.samples() if in_function(spool, pid, s.ip, busy, 'busy_loop')]
        self.assertGreater(len(inside), 10, str(run))


if __name__ == '__main__':
    unittest.main()
