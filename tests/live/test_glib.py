# SPDX-License-Identifier: GPL-2.0-only
"""The preset gobject against the installed GLib, which is stripped: a program that makes GLib itself take and give back
references of each type. The healthy run is complete and silent; the other names what forget() keeps, and nothing else."""
import subprocess
import unittest

import live

# what forget() does not give back
FORGOTTEN = {'GVariant', 'GBytes', 'GMainLoop', 'GSource', 'GDateTime', 'GObject'}


class Types(live.LiveTest):
    def setUp(self):
        live.need_engine()
        flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'gobject-2.0'], capture_output=True, text=True,
                               check=False)
        if flags.returncode:
            self.skipTest('the headers of GObject are not installed')
        self.path = live.temp_path('glib-types')
        source = live.SOURCE / 'tests' / 'programs' / 'glib-types.c'
        subprocess.run([live.compiler('gcc'), '-g', '-O1', str(source), '-o', str(self.path), *flags.stdout.split()],
                       check=True)

    def test_healthy(self):
        run = live.trace('-P', 'gobject', '--', self.path, 'ok')
        self.assert_clean_trust(run)
        self.assertEqual((run.status, run.findings['findings'], run.findings['suspects']), (0, [], []), str(run))
        counted = {t['name'] for t in run.findings['types'] if t['objects']}
        self.assertGreaterEqual(len(counted), 25, counted)

    def test_untold(self):
        """Nothing is told: GLib is known by its functions. --no-presets leaves what the code and its names say."""
        run = live.trace('--', self.path, 'ok')
        self.assertEqual(run.findings['findings'], [], str(run))
        self.assertTrue({'GObject', 'GBytes', 'GMainLoop'} <= {t['name'] for t in run.findings['types']}, str(run))
        run = live.trace('--', self.path, 'bug')
        self.assertTrue({'GMainLoop', 'GObject'} <= {f['type'] for f in run.findings['findings']} <= FORGOTTEN, str(run))
        run = live.trace('--no-presets', '--', self.path, 'ok')
        self.assertNotIn('GObject', {t['name'] for t in run.findings['types']}, str(run))

    def test_forgotten(self):
        run = live.trace('-P', 'gobject', '--', self.path, 'bug')
        self.assertEqual(run.status, 0, str(run))
        self.assert_clean_trust(run)
        found = {f['type'] for f in run.findings['findings']}
        self.assertLessEqual(found, FORGOTTEN, str(run))
        self.assertIn('GMainLoop', found, str(run))
        self.assertIn('GObject', found, str(run))


if __name__ == '__main__':
    unittest.main()
