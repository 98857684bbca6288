# SPDX-License-Identifier: GPL-2.0-only
"""export: what speedscope and the Firefox profiler themselves read in the files, held against the .events text and perf's
reading of the same recording."""
import collections
import json
import unittest

import live
import viewers
from test_export import GUILTY, MISSING_PUT, HotRecording, Readers, truth


class Viewers(Readers):
    def test_speedscope(self):
        path = live.temp_path('viewed.speedscope')
        path.write_bytes(self.export('speedscope', MISSING_PUT))
        read = viewers.speedscope(path)
        gets, puts = truth(MISSING_PUT)
        want = {'obj: open references': {GUILTY: 4}, 'obj: gets': dict(gets), 'obj: puts': dict(puts)}
        self.assertEqual({p['name']: p['paths'] for p in read['profiles']}, want)
        self.assertEqual({p['name']: p['total'] for p in read['profiles']}, {n: sum(p.values()) for n, p in want.items()})
        self.assertEqual(read['profiles'][read['shown']]['name'], 'obj: open references')
        leaf, = (f for f in read['profiles'][read['shown']]['frames'] if f['self'])
        self.assertEqual((leaf['name'], leaf['file'], leaf['line'], leaf['self']), ('parse_header', 'leak.c', 29, 4))

    def test_folded(self):
        """speedscope reads what flamegraph.pl does, and pprof's files."""
        for kind, what in (('folded', 'gets'), ('folded', 'puts'), ('pprof', None)):
            path = live.temp_path('viewed.' + kind)
            path.write_bytes(self.export(kind, MISSING_PUT, *(('--of', what) if what else ())))
            read, = viewers.speedscope(path)['profiles']
            self.assertEqual(read['paths'], dict(truth(MISSING_PUT)[what == 'puts']) if what else {GUILTY: 4})

    def test_speedscope_schema(self):
        try:
            import jsonschema  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest('jsonschema is not installed (python3-jsonschema)')
        data = json.loads(self.export('speedscope', MISSING_PUT))
        schema = viewers.speedscope_schema()
        jsonschema.validate(data, schema)
        data['profiles'][0]['unit'] = 'references'
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(data, schema)

    def test_firefox(self):
        path = live.temp_path('viewed.json')
        path.write_bytes(self.export('firefox', MISSING_PUT))
        with viewers.Profiler(path) as profiler:
            threads = profiler.threads()
            self.assertEqual(list(threads), ['open references: obj'])
            self.assertEqual(profiler.paths(threads['open references: obj']), {GUILTY: 4})
            lives = sum(1 for line in MISSING_PUT.read_text().splitlines() if line.startswith('new'))
            shown = profiler.markers(threads['open references: obj'])
            # those that ended before the first sample, too
            self.assertEqual(collections.Counter((name, life['open']) for name, life in shown),
                             {('obj', 1): 4, ('obj', 0): lives - 4})
            self.assertEqual(sorted(life['serial'] for _, life in shown), list(range(1, lives + 1)))


class ViewedRecording(HotRecording):
    def of_perf(self):
        """user part of the path -> samples, of those that have one"""
        counts = collections.Counter()
        for (_, path), n in self.by_perf().items():
            counts[path] += n
        return counts

    def by_user_part(self, paths):
        counts = collections.Counter()
        for path, n in paths.items():
            counts[self.user_part(path)] += n
        return counts

    def test_firefox(self):
        path = live.temp_path('viewed.json')
        path.write_bytes(self.export('firefox', self.recording))
        with viewers.Profiler(path) as profiler:
            threads = profiler.threads()
            of_samples, = (handle for name, handle in threads.items() if name.endswith('hot'))
            self.assertEqual(self.by_user_part(profiler.paths(of_samples)), self.of_perf())
            of_lives = threads['open references: node']
            self.assertEqual(sum(profiler.paths(of_lives).values()), 10)
            self.assertEqual(collections.Counter(life['open'] for _, life in profiler.markers(of_lives)), {1: 10, 0: 40})

    def test_speedscope(self):
        path = live.temp_path('viewed.speedscope')
        path.write_bytes(self.export('speedscope', self.recording))
        profiles = {p['name']: p for p in viewers.speedscope(path)['profiles']}
        self.assertEqual(self.by_user_part(profiles.pop('node: open references')['paths']), {'main;keep': 10})
        self.assertEqual(sum(profiles.pop('node: gets')['paths'].values()), 60)
        self.assertEqual(sum(profiles.pop('node: puts')['paths'].values()), 50)
        have = collections.Counter()
        for profile in profiles.values():
            # a sample weighs what the clock was set to
            self.assertEqual(profile['unit'], 'nanoseconds')
            have.update({path: round(ns * 999 / 1e9) for path, ns in self.by_user_part(profile['paths']).items()})
        self.assertEqual(have, self.of_perf())


if __name__ == '__main__':
    unittest.main()
