# SPDX-License-Identifier: GPL-2.0-only
"""class=: objects that tell of what class they are are grouped, judged and asked for by it."""
import json
import shutil
import subprocess
import unittest

import live

SPEC = 'type=widget new=button_new,widget_new get=widget_ref put=widget_unref class='
GOBJECT = r'''
#include <gio/gio.h>
static __attribute__((noinline)) void forget(gpointer o) { g_object_ref(o); }
int main(void)
{
	for (int i = 0; i < 40; i++) {
		GSimpleAction *action = g_simple_action_new("x", NULL);
		GMenu *menu = g_menu_new();

		g_object_ref(menu);
		g_object_unref(menu);
		if (i % 4 == 1)
			forget(action);
		g_object_unref(action);
		g_object_unref(menu);
	}
	return 0;
}
'''


def found(run):
    return [(f['guilty']['function'], f['class'], f['objects'], f['of']) for f in run.findings['findings']]


def classes(run):
    return {c['class']: (c['objects'], c['live']) for c in run.findings['classes']}


class Classes(live.LiveTest):
    def setUp(self):
        live.need_engine()

    def test_both_engines_and_a_recording(self):
        path = live.program('classes')
        want = [('click', 'Button', 10, 50)], {'Button': (50, 10), 'Label': (50, 0), 'Widget': (0, 0)}
        for engine in ('uprobe', 'agent'):
            run = live.trace('--engine', engine, '-P', SPEC + '+8>+8', '--', path)
            self.assertEqual((found(run), classes(run)), want, run)
            self.assertTrue(run.findings['trust']['complete'], run)
        file = live.temp_path('classes.data')
        live.call('record', '-P', SPEC + '+8>+8', '-o', file, '--', path)
        run = live.trace('-i', file, verb=('report',))
        self.assertEqual((found(run), classes(run)), want, run)
        # as text, and back
        text = live.temp_path('classes.events')
        text.write_text(live.call('script', '--events', '-i', file).stdout)
        run = live.trace('-i', text, verb=('report',))
        self.assertEqual((found(run), classes(run)), want, run)

    def test_healthy(self):
        path = live.program('classes')
        run = live.trace('-P', SPEC + '+8>+8', '--', path, 'ok')
        self.assertEqual((found(run), classes(run)), ([], {'Button': (50, 0), 'Label': (50, 0), 'Widget': (0, 0)}), run)

    def test_asked_for(self):
        path = live.program('classes')
        for name, want in (('Button', 1), ('B*', 1), ('widget', 1), ('Lab?l', 0), ('None*', 0)):
            with self.subTest(name):
                run = live.trace('-P', SPEC + '+8>+8', '-t', name, '--', path)
                self.assertEqual(len(found(run)), want, run)

    def test_what_leads_nowhere_is_no_class(self):
        """Pointers to nothing, to what is no text, and offsets far away: the objects are judged all the same."""
        path = live.program('classes')
        for where in ('+0>+0', '+8>+0', '+8>+0>+8', '+1048576>+8', '+8>-1048576', '+0', '+8>+8:malloc', '+8>+0:printf@libc',
                      'vtable'):
            with self.subTest(where):
                run = live.trace('-P', SPEC + where, '--', path)
                self.assertEqual((found(run), classes(run)), ([('click', None, 10, 100)], {}), run)
                self.assertTrue(run.findings['trust']['complete'], run)

    def test_virtual_functions(self):
        path = live.program('vtables')
        for engine in ('uprobe', 'agent'):
            run = live.trace('--engine', engine, '-P',
                             'type=shape new=make get=shape::Shape::ref put=shape::Shape::unref class=vtable', '--', path)
            self.assertEqual([(c, n, of) for _, c, n, of in found(run)], [('shape::Circle', 10, 30)], run)
            self.assertEqual(classes(run), {'shape::Circle': (30, 10), 'shape::Square': (30, 0)}, run)

    def test_gobject(self):
        """By the quarks of GLib: the number of a name, which a function of the library looks up in a table."""
        flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'gio-2.0'], capture_output=True, text=True, check=False)
        if flags.returncode or not shutil.which('gcc'):
            self.skipTest('no headers of GLib')
        source, path = live.temp_path('g.c'), live.temp_path('g')
        source.write_text(GOBJECT)
        subprocess.run(['gcc', '-g', '-O0', str(source), '-o', str(path), *flags.stdout.split()], check=True)
        run = live.trace('-P', 'gobject', '-t', 'GSimple*', '--', path)
        # how many of them nobody points to any more is another matter
        self.assertEqual([(f, c, of) for f, c, _, of in found(run)], [('forget', 'GSimpleAction', 40)], run)
        self.assertEqual({c: n for c, n in classes(run).items() if c in ('GMenu', 'GSimpleAction')},
                         {'GMenu': (40, 0), 'GSimpleAction': (40, 10)}, run)

    def test_who_is_asked_for_is_said(self):
        path = live.program('classes')
        table = live.temp_path('out.json')
        run = live.call('report', '--format', 'json', '-i', self.recorded(path), '-t', 'Button')
        table.write_text(run.stdout)
        self.assertEqual([f['class'] for f in json.loads(table.read_text())['findings']], ['Button'])
        run = live.call('report', '-v', '-i', self.recorded(path))
        self.assertRegex(run.stdout, r'(?m)^LEAK .*  struct widget \[Button\]: 10 of 50 objects')
        self.assertRegex(run.stdout, r'(?m)^  struct widget \[Label\] +50 +0$')

    def recorded(self, path):
        file = live.temp_path('recorded.data')
        if not file.exists():
            live.call('record', '-P', SPEC + '+8>+8', '-o', file, '--', path)
        return file


if __name__ == '__main__':
    unittest.main()
