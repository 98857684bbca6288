# SPDX-License-Identifier: GPL-2.0-only
"""A library that only uses the objects of another one: what it stores, hands out and frees is seen, too."""
import subprocess

import live


def built(name, *options):
    path = live.temp_path(name)
    subprocess.run([live.compiler('gcc'), '-O2', '-g', live.PROGRAMS / 'between.c', *options, '-o', path], check=True)
    return path


class Between(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        live.need_binary()
        shared = ('-shared', '-fPIC')
        pictures = built('libpictures.so', '-DPICTURES', *shared)
        path = f'-Wl,-rpath,{pictures.parent}'
        albums = built('libalbums.so', '-DALBUMS', *shared, pictures, path)
        cls.program = built('albums', albums, pictures, path)

    def run_it(self, engine, *args):
        if engine == 'uprobe':
            live.need_engine()
        return live.trace('--engine', engine, '-P', 'type=picture new=picture_new get=picture_ref put=picture_unref', '--',
                          self.program, *args)

    def test_who_freed_what_held_it(self):
        for engine in ('agent', 'uprobe'):
            with self.subTest(engine=engine):
                run = self.run_it(engine)
                self.assertEqual(run.stdout, '30 shown\n')
                self.assertEqual(len(run.findings['findings']), 1, str(run))
                finding = run.findings['findings'][0]
                self.assertEqual((finding['guilty']['function'], finding['objects']), ('album_close', 30), str(run))
                self.assert_clean_trust(run)

    def test_healthy(self):
        for engine in ('agent', 'uprobe'):
            with self.subTest(engine=engine):
                run = self.run_it(engine, 'healthy')
                self.assertEqual(run.findings['findings'], [], str(run))
                self.assert_clean_trust(run)

