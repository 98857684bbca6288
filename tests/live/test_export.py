# SPDX-License-Identifier: GPL-2.0-only
"""export: every format is read by something that is not ours (protoc, go tool pprof, perf, json) or by a few lines here
that follow the format's own description; what it says is compared with the .events text, or with perf's own reading.
test_viewers.py asks speedscope and the Firefox profiler themselves."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import unittest

import live

GOLDEN = live.SOURCE / 'tests' / 'golden'
PROTO = live.SOURCE / 'tests' / 'live' / 'export.proto'
MISSING_PUT = GOLDEN / 'missing-put.events'
GUILTY = 'main;handle_request;parse_header'
HOT = r'''
#include <stdlib.h>
struct node { int refcount; };
__attribute__((noinline)) struct node *node_new(void) { struct node *n = calloc(1, sizeof *n); n->refcount = 1; return n; }
__attribute__((noinline)) void node_get(struct node *n) { n->refcount++; }
__attribute__((noinline)) void node_put(struct node *n) { if (!--n->refcount) free(n); }
volatile unsigned long sink;
__attribute__((noinline)) void burn_inner(void) { for (int i = 0; i < 3000000; i++) sink += i; }
__attribute__((noinline)) void burn_outer(void) { burn_inner(); sink++; }
__attribute__((noinline)) void keep(struct node *n) { node_get(n); sink++; }
int main(void)
{
	for (int i = 0; i < 50; i++) {
		struct node *n = node_new();
		burn_outer();
		if (i % 5 == 0)
			keep(n);
		node_put(n);
	}
	return 0;
}
'''


def need(tool, package):
    path = shutil.which(tool)
    if not path:
        raise unittest.SkipTest(f'{tool} is not installed ({package})')
    return path


def truth(path):
    """(gets, puts) by call path, from the text itself; new counts as a get."""
    gets, puts = collections.Counter(), collections.Counter()
    for line in path.read_text().splitlines():
        word = line.split()
        if line.startswith('#') or not word or word[0] not in ('new', 'get', 'put'):
            continue
        frames = ';'.join(frame.split('@')[0] for frame in word[3].split(';'))
        (puts if word[0] == 'put' else gets)[frames] += 1
    return gets, puts


def folded(text):
    """path -> numbers; a line that is none is an error"""
    out = {}
    for line in text.splitlines():
        match = re.fullmatch(r'(\S.*?) (\d+(?: \d+)?)', line)
        assert match and match[1] not in out, line
        out[match[1]] = int(match[2]) if match[2].isdigit() else tuple(int(n) for n in match[2].split())
    return out


class Message(dict):
    """A decoded message: name -> list of values."""

    def one(self, name, default=None):
        values = self.get(name, [default])
        assert len(values) == 1, (name, values)
        return values[0]


def decode(kind, data):
    """The message as protoc reads it; a field that is not in export.proto is an error."""
    done = subprocess.run([need('protoc', 'protobuf-compiler'), f'--decode=viewer.{kind}', f'-I{PROTO.parent}', str(PROTO)],
                          input=data, capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    stack = [Message()]
    for line in done.stdout.decode('utf-8', 'backslashreplace').splitlines():
        line = line.strip()
        if line == '}':
            stack.pop()
        elif line.endswith(' {'):
            inner = Message()
            stack[-1].setdefault(line[:-2], []).append(inner)
            stack.append(inner)
        else:
            name, _, value = line.partition(': ')
            assert not name.isdigit(), f'unknown field: {line}'
            if value.startswith('"'):
                value = value[1:-1]
            elif value.lstrip('-').isdigit():
                value = int(value)
            stack[-1].setdefault(name, []).append(value)
    return stack[0]


class Readers(live.LiveTest):
    """What reads the formats."""

    def setUp(self):
        live.need_binary()

    def export(self, kind, source, *args, status=0):
        path = live.temp_path('out.' + kind)
        run = live.call('export', kind, '-i', source, '-o', path, *args)
        self.assertEqual(run.status, status, str(run))
        self.said = run.stderr
        return path.read_bytes() if path.exists() else b''

    def profile(self, data):
        """pprof's values: type -> {path: value}"""
        profile = decode('Profile', gzip.decompress(data))
        strings = profile['string_table']
        self.assertEqual(strings[0], '')
        function = {f.one('id'): strings[f.one('name')] for f in profile['function']}
        mapping = {m.one('id') for m in profile['mapping']}
        location = {}
        for place in profile['location']:
            self.assertIn(place.one('mapping_id'), mapping)
            location[place.one('id')] = [function[line.one('function_id')] for line in place['line']]
        types = [strings[t.one('type')] for t in profile['sample_type']]
        have = {name: collections.Counter() for name in types}
        for sample in profile['sample']:
            self.assertEqual(len(sample['value']), len(types))
            path = ';'.join(reversed([name for place in sample.get('location_id', []) for name in location[place]]))
            for name, value in zip(types, sample['value']):
                have[name][path] += value
        self.assertIn(strings[profile.one('default_sample_type')], types)
        return {name: {path: n for path, n in counts.items() if n} for name, counts in have.items()}

    def interned(self, packets):
        """sequence -> callstack -> path"""
        stacks = {}
        for packet in packets:
            for data in packet.get('interned_data', []):
                sequence = packet.one('trusted_packet_sequence_id')
                self.assertNotIn(sequence, stacks)
                self.assertEqual(packet.one('sequence_flags') & 1, 1)
                names = {n.one('iid'): n.one('str') for n in data.get('function_names', [])}
                maps = {m.one('iid') for m in data.get('mappings', [])}
                frames = {}
                for frame in data.get('frames', []):
                    self.assertIn(frame.one('mapping_id'), maps)
                    frames[frame.one('iid')] = names[frame.one('function_name_id')]
                stacks[sequence] = {c.one('iid'): ';'.join(frames[f] for f in c['frame_ids'])
                                    for c in data.get('callstacks', [])}
        return stacks

    def firefox(self, data):
        """thread name -> (path -> weight, markers), after what the profiler relies on"""
        profile = json.loads(data)
        self.assertEqual(profile['meta']['preprocessedProfileVersion'], 49)
        categories = len(profile['meta']['categories'])
        threads = {}
        for thread in profile['threads']:
            strings = thread['stringArray']
            for name in ('frameTable', 'funcTable', 'stackTable', 'samples', 'markers', 'nativeSymbols', 'resourceTable'):
                for key, column in thread[name].items():
                    if isinstance(column, list):
                        self.assertEqual(len(column), thread[name]['length'], (name, key))
            stack, frame, func = thread['stackTable'], thread['frameTable'], thread['funcTable']
            for i, prefix in enumerate(stack['prefix']):
                self.assertTrue(prefix is None or 0 <= prefix < i)
                self.assertLess(stack['category'][i], categories)
            counts, last = collections.Counter(), 0
            samples = thread['samples']
            for at, time, weight in zip(samples['stack'], samples['time'], samples['weight']):
                path = []
                while at is not None:
                    path.append(strings[func['name'][frame['func'][stack['frame'][at]]]])
                    at = stack['prefix'][at]
                counts[';'.join(reversed(path))] += weight
                self.assertGreaterEqual(time, last)
                last = time
            markers = thread['markers']
            self.assertTrue(all(a <= b for a, b in zip(markers['startTime'], markers['endTime'])))
            threads[thread['name']] = counts, [(strings[n], d['open']) for n, d in zip(markers['name'], markers['data'])]
        return threads


class Export(Readers):
    def test_folded_of_lives(self):
        gets, puts = truth(MISSING_PUT)
        read = lambda *args: folded(self.export('folded', MISSING_PUT, *args).decode())
        self.assertEqual(read(), {GUILTY: 4})
        self.assertEqual(read('--of', 'open'), {GUILTY: 4})
        self.assertEqual(read('--of', 'gets'), dict(gets))
        self.assertEqual(read('--of', 'puts'), dict(puts))
        want = {path: (puts[path], gets[path]) for path in gets | puts if gets[path] != puts[path]}
        self.assertEqual(read('--of', 'balance'), want)
        self.assertEqual(read('-t', 'struct obj'), {GUILTY: 4})
        # nothing left is an answer
        self.assertEqual(self.export('folded', GOLDEN / 'healthy.events'), b'')
        # standard output says the same
        self.assertEqual(folded(live.call('export', 'folded', '-i', MISSING_PUT).stdout), {GUILTY: 4})

    def test_speedscope(self):
        gets, puts = truth(MISSING_PUT)
        file = json.loads(self.export('speedscope', MISSING_PUT))
        self.assertEqual(file['$schema'], 'https://www.speedscope.app/file-format-schema.json')
        frames = [frame['name'] for frame in file['shared']['frames']]
        have = {}
        for profile in file['profiles']:
            self.assertEqual((profile['type'], profile['unit'], profile['startValue']), ('sampled', 'none', 0))
            self.assertEqual(len(profile['samples']), len(profile['weights']))
            self.assertEqual(profile['endValue'], sum(profile['weights']))
            counts = have.setdefault(profile['name'], collections.Counter())
            for path, weight in zip(profile['samples'], profile['weights']):
                counts[';'.join(frames[i] for i in path)] += weight
        self.assertEqual(have, {'obj: open references': {GUILTY: 4}, 'obj: gets': gets, 'obj: puts': puts})

    def test_pprof(self):
        gets, puts = truth(MISSING_PUT)
        have = self.profile(self.export('pprof', MISSING_PUT))
        self.assertEqual(have, {'open': {GUILTY: 4}, 'gets': dict(gets), 'puts': dict(puts)})

    def test_pprof_by_go(self):
        tool = need('go', 'golang-go')
        gets, _ = truth(MISSING_PUT)
        path = live.temp_path('profile.pb.gz')
        path.write_bytes(self.export('pprof', MISSING_PUT))
        for what, want in (('open', {'parse_header': 4}),
                           ('gets', {p.split(';')[-1]: n for p, n in gets.items()})):
            done = subprocess.run([tool, 'tool', 'pprof', '-top', '-nodecount=100', f'-sample_index={what}', str(path)],
                                  capture_output=True, text=True, check=False, env={**os.environ, 'HOME': str(live.temp())})
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = re.findall(r'^\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+\d+\s+[\d.]+%\s+(.+)$', done.stdout, re.M)
            self.assertEqual({name: int(flat) for flat, name in rows if int(flat)}, want, done.stdout)

    def test_perfetto(self):
        gets, puts = truth(MISSING_PUT)
        packets = decode('Trace', self.export('perfetto', MISSING_PUT))['packet']
        stacks = self.interned(packets)
        tracks = {t.one('uuid'): t for p in packets for t in p.get('track_descriptor', [])}
        begun, ended, opened, closed, by = collections.Counter(), collections.Counter(), {}, {}, collections.Counter()
        for packet in packets:
            for event in packet.get('track_event', []):
                track = event.one('track_uuid')
                begun[track] += event.one('type') == 'TYPE_SLICE_BEGIN'
                ended[track] += event.one('type') == 'TYPE_SLICE_END'
                if event.one('type') != 'TYPE_INSTANT':
                    continue
                path = stacks[packet.one('trusted_packet_sequence_id')][event.one('callstack_iid')]
                by['put' if event.one('categories') == 'put' else 'get', path] += 1
                opened |= {flow: (track, path) for flow in event.get('flow_ids', [])}
                closed |= {flow: (track, path) for flow in event.get('terminating_flow_ids', [])}
        lives = sum(1 for line in MISSING_PUT.read_text().splitlines() if line.startswith('new'))
        self.assertEqual((len(begun), set(begun.values()), set(ended.values())), (lives, {1}, {1}))
        for track in begun:
            # life -> type -> process
            process = tracks[tracks[tracks[track].one('parent_uuid')].one('parent_uuid')]
            self.assertIn('process', process)
        self.assertEqual({p: n for (op, p), n in by.items() if op == 'get'}, dict(gets))
        self.assertEqual({p: n for (op, p), n in by.items() if op == 'put'}, dict(puts))
        # a flow stays within its object; what no put closes is what leaked; each function closes its own
        self.assertEqual(collections.Counter(path for flow, (_, path) in opened.items() if flow not in closed),
                         {GUILTY: 4})
        for flow, (track, path) in closed.items():
            self.assertEqual(opened[flow], (track, path))

    def test_limit(self):
        packets = decode('Trace', self.export('perfetto', MISSING_PUT, '--limit', '5'))['packet']
        shown = [e for p in packets for e in p.get('track_event', []) if e.one('type') == 'TYPE_SLICE_BEGIN']
        self.assertEqual(len(shown), 5)
        self.assertRegex(self.said, r'5 lives are shown, \d+ more were left out')
        # those with open references come first
        left = [a.one('uint_value') for e in shown for a in e['debug_annotations'] if a.one('name') == 'open references']
        self.assertEqual(sorted(left), [0, 1, 1, 1, 1])

    def test_firefox(self):
        threads = self.firefox(self.export('firefox', MISSING_PUT))
        self.assertEqual(list(threads), ['open references: obj'])
        counts, markers = threads['open references: obj']
        self.assertEqual(counts, {GUILTY: 4})
        lives = sum(1 for line in MISSING_PUT.read_text().splitlines() if line.startswith('new'))
        self.assertEqual(collections.Counter(markers), {('obj', 1): 4, ('obj', 0): lives - 4})

    def test_refcount_log(self):
        """Read as tools/rb/find_leakers.py and make-tree.pl of Mozilla do."""
        lines = self.export('refcount', MISSING_PUT).decode().splitlines()
        alive, tree, at = {}, collections.Counter(), 0
        while at < len(lines):
            match = re.fullmatch(r'<(\S+)> (0x\S+) (\d+) (AddRef|Release) (-?\d+)', lines[at])
            self.assertTrue(match, lines[at])
            end = lines.index('', at)
            # a frame is no operation, whatever its name begins with
            self.assertTrue(all(frame.startswith('    ') for frame in lines[at + 1:end]))
            path = ';'.join(re.sub(r' \(.*', '', frame.strip()) for frame in reversed(lines[at + 1:end]))
            tree[path] += 1 if match[4] == 'AddRef' else -1
            if (match[4], match[5]) == ('AddRef', '1'):
                self.assertNotIn(match[2], alive)
                alive[match[2]] = match[1]
            elif (match[4], match[5]) == ('Release', '0'):
                del alive[match[2]]
            at = end + 1
        self.assertEqual(list(alive.values()), ['obj'] * 4)
        gets, puts = truth(MISSING_PUT)
        self.assertEqual({p: n for p, n in tree.items() if n}, {p: n for p in gets | puts if (n := gets[p] - puts[p])})
        # a put that nobody owed is not the death of anybody
        log = self.export('refcount', GOLDEN / 'double-put.events').decode()
        self.assertIn(' Release -1', log)
        self.assertEqual(len(re.findall(r'Release 0$', log, re.M)), len(re.findall(r'AddRef 1$', log, re.M)))

    def test_faults(self):
        for args, code, text in ((('export',), 2, 'which format'),
                                 (('export', 'perfeto', '-i', MISSING_PUT), 2, 'did you mean perfetto'),
                                 (('export', 'folded', '-i', MISSING_PUT, '--of', 'nonsense'), 2, '--of open'),
                                 (('export', 'folded', '-i', MISSING_PUT, '--limit', '0'), 2, '--limit 5000'),
                                 (('export', 'folded', '-i', MISSING_PUT, '--of', 'samples'), 125, 'E16'),
                                 (('export', 'pprof', '-i', MISSING_PUT, '-t', 'nobody', '-o', '/dev/null'), 125, 'E16'),
                                 (('export', 'perfdata', '-i', MISSING_PUT, '-o', '/dev/null'), 125, 'E19'),
                                 (('export', 'folded', '-i', MISSING_PUT, '-o', '/dev/full'), 125, 'E15')):
            with self.subTest(args=args):
                run = live.call(*args)
                self.assertEqual(run.status, code, str(run))
                self.assertIn(text, run.stderr)


class HotRecording(Readers):
    """A recording of a real program, with perf's samples beside the lives."""
    _recording = None

    def setUp(self):
        live.need_engine()
        if HotRecording._recording is None:
            source, program = live.temp_path('hot.c'), live.temp_path('hot')
            source.write_text(HOT)
            flags = ['-g', '-O0', '-fno-omit-frame-pointer']
            subprocess.run([live.compiler('gcc'), *flags, str(source), '-o', str(program)], check=True)
            HotRecording._recording = live.temp_path('hot.data')
            run = live.call('record', '-P', 'type=node new=node_new get=node_get:1 put=node_put:1', '-F', '999', '-g',
                            '-o', HotRecording._recording, '--', program)
            self.assertEqual(run.status, 0, str(run))
            HotRecording._program = program
        self.recording = HotRecording._recording

    def by_perf(self):
        """Samples as perf reads them: (comm, user frames from the outermost) -> how many"""
        done = subprocess.run([need('perf', 'linux-perf'), 'script', '--no-inline', '-F', 'comm,event,ip,sym,dso', '-i',
                               str(self.recording)], capture_output=True, text=True, check=False)
        counts, frames, comm = collections.Counter(), [], None
        for line in [*done.stdout.splitlines(), '']:
            if not line.strip():
                if comm:
                    counts[comm, self.user_part(';'.join(reversed(frames)))] += 1
                comm, frames = None, []
            elif not line[0].isspace():
                comm = line.split()[0] if 'reftrace:' not in line else None
            else:
                match = re.match(r'\s+([0-9a-f]+) (.*) \((.*)\)$', line)
                if match and int(match[1], 16) >> 63 == 0:
                    frames.append(match[2])
        self.assertTrue(counts, done.stderr)
        return counts

    def user_part(self, path):
        names = path.split(';')
        # without debug symbols the C library's own frames have no names
        user = {'main', 'burn_outer', 'burn_inner', 'keep', 'node_new', 'node_get', 'node_put'}
        return ';'.join(name for name in names if name in user)


class Recorded(HotRecording):
    def test_folded_of_samples(self):
        want = self.by_perf()
        have = collections.Counter()
        for line, n in folded(self.export('folded', self.recording, '--of', 'samples').decode()).items():
            comm, _, path = line.partition(';')
            have[comm, self.user_part(path)] += n
        deep = {key: n for key, n in want.items() if key[1].endswith('burn_outer;burn_inner')}
        self.assertTrue(deep)
        self.assertEqual({key: have[key] for key in deep}, deep)
        self.assertEqual(sum(have.values()), sum(want.values()))
        lives = folded(self.export('folded', self.recording).decode())
        self.assertEqual([(path.split(';')[-2:], n) for path, n in lives.items()], [(['main', 'keep'], 10)])

    def test_samples_everywhere(self):
        want = sum(self.by_perf().values())
        packets = decode('Trace', self.export('perfetto', self.recording))['packet']
        stacks = self.interned(packets)
        samples = [(p, s) for p in packets for s in p.get('perf_sample', [])]
        self.assertEqual(len(samples), want)
        inner = collections.Counter(stacks[p.one('trusted_packet_sequence_id')][s.one('callstack_iid')].split(';')[-1]
                                    for p, s in samples)
        self.assertEqual(inner.most_common(1)[0][0], 'burn_inner')
        threads = self.firefox(self.export('firefox', self.recording))
        self.assertEqual(sum(next(t for name, t in threads.items() if name.endswith('hot'))[0].values()), want)
        profile = self.profile(self.export('pprof', self.recording))
        self.assertEqual(sum(profile['samples'].values()), want)
        self.assertEqual(sum(profile['open'].values()), 10)
        self.assertEqual(sum(profile['gets'].values()) - sum(profile['puts'].values()), 10)
        scope = json.loads(self.export('speedscope', self.recording))
        self.assertIn('node: open references', [p['name'] for p in scope['profiles']])
        self.assertEqual(sum(p['endValue'] for p in scope['profiles'] if p['name'] == 'node: open references'), 10)
        run = live.call('export', 'folded', '-i', self.recording, '-e', 'nonsense', '--of', 'samples')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('it has some of', run.stderr)

    def test_perf_data(self):
        spool, path = live.temp_path('hot.rt'), live.temp_path('hot-spool.data')
        run = live.call('run', '-w', spool, '-P', 'type=node new=node_new get=node_get:1 put=node_put:1', '--',
                        self._program)
        self.assertEqual(run.status, 0, str(run))
        path.write_bytes(self.export('perfdata', spool))
        done = subprocess.run([need('perf', 'linux-perf'), 'script', '-i', str(path)], capture_output=True, text=True,
                              check=False)
        events = collections.Counter(re.findall(r'\breftrace:node_(new|get|put):', done.stdout))
        self.assertEqual(events, {'new': 50, 'get': 10, 'put': 50}, done.stderr)
        # into a pipe
        done = subprocess.run(f'{live.REFTRACE} export perfdata -i {spool} | perf script -i -', shell=True,
                              capture_output=True, text=True, check=False)
        self.assertEqual(collections.Counter(re.findall(r'\breftrace:node_(new|get|put):', done.stdout)), events, done.stderr)
        run = live.call('export', 'perfdata', '-i', path, '-o', '/dev/null')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('perf.data already', run.stderr)


if __name__ == '__main__':
    unittest.main()
