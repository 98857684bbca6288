# SPDX-License-Identifier: GPL-2.0-only
"""What goes wrong is said in the form

    reftrace: E12 cannot read /opt/app: Permission denied
          fix: ...

with a code, a fix that exists in this build and the right exit status; never a usage dump, a crash or a clean result."""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

import live

SPEC = ['-P', 'type=session new=session_new get=session_ref put=session_unref']


class Errors(live.LiveTest):
    options = None

    def setUp(self):
        live.need_binary()

    @classmethod
    def known_words(cls):
        """Options and verbs that the program's own help names."""
        if cls.options is None:
            text = live.call('help').stdout + live.call('--help').stdout
            verbs = set(re.findall(r'^\s{1,4}(?:reftrace )?([a-z]+)\b', text, re.M))
            for verb in sorted(verbs):
                text += live.call('help', verb).stdout
            cls.options = set(re.findall(r'(?<![\w-])--?[a-zA-Z][\w-]*', text)), verbs
        return cls.options

    def assert_error(self, run, code, statuses, *words):
        """code: of the registry; words: regular expressions that the message has to match."""
        text = run.stderr + run.stdout
        self.assertIn(run.status, statuses, str(run))
        self.assertRegex(text, rf'(?m)^(reftrace: )?{code} ', str(run))
        for word in words:
            self.assertRegex(text, word, str(run))
        self.assertNotRegex(text, r'(?i)\bno leaks\b|AddressSanitizer|runtime error')
        self.assertLess(len(run.stderr.splitlines()), 40, run.stderr)
        options, verbs = self.known_words()
        for fix in re.findall(r'(?m)^\s+fix: (.*(?:\n\s{8,}.*)*)', text):
            # options of other programs (install, sudo, setcap) come in lines of their own: only ours are checked
            for command in re.findall(r'\breftrace\s+([a-z]+)', fix):
                self.assertIn(command, verbs, f'the fix names a command that does not exist: {fix}')
            if not re.search(r'\b(apt|apt-get|sysctl|chown|mount)\b', fix):
                for option in re.findall(r'(?<![\w-])--[a-z][\w-]*', fix):
                    self.assertIn(option, options, f'the fix names an option that does not exist: {fix}')

    # --- the command line

    def test_unknown_option(self):
        run = live.call('run', '--attahc=multi', '--', 'true')
        self.assert_error(run, 'E17', (2,), '--attahc')
        self.assertLessEqual(len(run.stderr.splitlines()), 4, run.stderr)

    def test_unknown_command(self):
        self.assert_error(live.call('recrod', 'true'), 'E17', (2,), 'reftrace record')

    def test_no_program(self):
        self.assert_error(live.call('run'), 'E17', (2,))

    def test_bad_spec(self):
        for spec, where in (('get=', 'column'), ('gte=obj_get', r"(?i)'?gte'?"), ('get=obj_get:0', 'column'),
                            ('type=obj get=obj_get:x put=obj_put', 'column')):
            with self.subTest(spec=spec):
                self.assert_error(live.call('run', '-P', spec, '--', 'true'), 'E18', (2,), where)

    def test_unknown_preset(self):
        self.assert_error(live.call('run', '-P', 'nosuchpreset', '--', 'true'), 'E25', (2, 125), 'nosuchpreset',
                          'presets: .*glib, .*gobject')
        for slip, preset in (('gobjekt', 'gobject'), ('json_c', 'json-c'), ('gilb', 'glib')):
            with self.subTest(slip=slip):
                self.assert_error(live.call('run', '-P', slip, '--', 'true'), 'E25', (2, 125),
                                  f'did you mean: .*{preset}')
        self.assert_error(live.call('run', '-P', 'preset=gobjekt', '--', 'true'), 'E25', (2, 125),
                          'did you mean: gobject')

    def test_broken_preset(self):
        """One that nobody asked for does not matter, also where -t looks through all of them."""
        folder = live.temp_path('config') / 'reftrace' / 'presets'
        folder.mkdir(parents=True)
        (folder / 'broken').write_text('[x]\npreset=none\nget=a put=b\n')
        env = {**os.environ, 'XDG_CONFIG_HOME': str(folder.parents[1])}
        self.assert_error(live.call('run', '-t', 'nothing_like_it', '--', self.library_program(), env=env), 'E21', (125,),
                          'nothing_like_it')

    # --- the program

    def test_missing_program(self):
        self.assert_error(live.call('run', *SPEC, '--', './no-such-program'), 'E22', (127,), 'no-such-program')

    def test_not_executable(self):
        path = live.temp_path('plain.txt')
        path.write_text('just text\n')
        self.assert_error(live.call('run', *SPEC, '--', path), 'E22', (126,), 'plain.txt')

    def test_no_such_function(self):
        live.need_engine()
        path = live.program('missing-put')
        run = live.call('run', '-P', 'type=session get=session_reff put=session_unref', '--', path, 'ok')
        self.assert_error(run, 'E02', (125,), 'session_reff', r'session_ref\b')

    SESS = """#include <stdlib.h>
struct sess { int refs; };
struct sess *sess_new(void) { struct sess *s = calloc(1, sizeof(*s)); s->refs = 1; return s; }
struct sess *sess_ref(struct sess *s) { s->refs++; return s; }
void sess_unref(struct sess *s) { if (!--s->refs) free(s); }
"""

    def library_program(self, strip=False):
        """A program whose functions are all in a library of its own."""
        folder = live.temp_path('library')
        folder.mkdir()
        (folder / 'sess.c').write_text(self.SESS)
        (folder / 'main.c').write_text(
            'struct sess *sess_new(void), *sess_ref(struct sess *); void sess_unref(struct sess *);\n'
            'int main(void) { struct sess *s = sess_new(); sess_unref(sess_ref(s)); sess_unref(s); return 0; }\n')
        for command in ([live.compiler('gcc'), '-g', '-shared', '-fPIC', 'sess.c', '-o', 'libsess.so'],
                        ['strip', 'libsess.so'] if strip else ['true'],
                        [live.compiler('gcc'), '-g', 'main.c', '-L.', '-lsess', f'-Wl,-rpath,{folder}', '-o', 'main']):
            subprocess.run(command, cwd=folder, check=True)
        return folder / 'main'

    def test_near_names_in_libraries(self):
        live.need_engine()
        for strip, where in ((False, r'sess_ref \(sess\.c:4\)'), (True, r'sess_ref\?')):
            path = self.library_program(strip)
            with self.subTest(strip=strip):
                run = live.call('run', '-P', 'type=sess get=sess_reff put=sess_unref', '--', path)
                self.assert_error(run, 'E02', (125,), "no function 'sess_reff'", 'other files', f'did you mean: {where}')
                run = live.call('run', '-P', 'type=sess get=sess_ref put=sess_urnef', '--', path)
                self.assert_error(run, 'E02', (125,), 'sess_urnef', 'did you mean: sess_unref')
                run = live.call('run', '-P', 'get=sess_ref@libses.so put=sess_unref', '--', path)
                self.assert_error(run, 'E02', (125,), 'a file called libses.so', 'sess_ref@libsess.so')
                # the rest of the pair is there: it runs, is called incomplete, and says which word it was
                run = live.trace('-P', 'type=sess new=sess_nwe get=sess_ref put=sess_unref', '--', path)
                self.assertEqual(run.status, 24, str(run))
                self.assertIn('sess_nwe: no function of this name in any module; did you mean: sess_new', run.report)

    def test_absent_type(self):
        """Of two types one is not in the program, whichever is told first: it says which pair it has."""
        live.need_engine()
        path = live.temp_path('one-of-two')
        (path.with_suffix('.c')).write_text(self.SESS + """
struct node { void *value; struct node *next; };
static struct node *list;
static __attribute__((noinline)) void node_set(struct node *n, void *value) { n->value = value; }
static __attribute__((noinline)) void node_free(struct node *n) { free(n); }
int main(void)
{
	struct sess *s = sess_new();

	list = calloc(1, sizeof(*list));
	node_set(list, sess_ref(s));
	sess_unref(list->value);
	node_free(list);
	sess_unref(s);
	return 0;
}
""")
        subprocess.run([live.compiler('gcc'), '-g', '-O1', path.with_suffix('.c'), '-o', path], check=True)
        here, absent = 'type=sess new=sess_new get=sess_ref put=sess_unref', 'type=other new=other_new get=other_ref put=other_unref'
        for specs in ((here, absent), (absent, here)):
            run = live.trace(*(word for spec in specs for word in ('-P', spec)), '--', path)
            self.assertEqual(run.status, 0, str(run))
            self.assertIn('pairs: new sess_new, get sess_ref, put sess_unref -> struct sess', run.report)
            self.assertIn('no leaks: 1 object (struct sess), all released', run.report)
        self.assert_error(live.call('run', '-P', absent, '--', path), 'E02', (125,), "no function 'other_ref'")

    def test_unknown_type(self):
        live.need_engine()
        path = self.library_program()
        self.assert_error(live.call('run', '-t', 'sesss', '--', path), 'E21', (125,), "no type 'sesss'",
                          'did you mean: sess\\?')
        self.assert_error(live.call('run', '-t', 'nothing_like_it', '--', path), 'E21', (125,), 'name the functions')

    def test_stripped(self):
        live.need_engine()
        path = live.temp_path('stripped')
        shutil.copy(live.program('missing-put'), path)
        subprocess.run(['strip', str(path)], check=True)
        notes = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r'Build ID: ([0-9a-f]+)', notes).group(1)
        run = live.call('run', *SPEC, '--', path, 'ok')
        self.assert_error(run, 'E03', (125,), 'stripped', build_id[:4])

    def test_no_family(self):
        live.need_engine()
        source = live.temp_path('plain.c')
        source.write_text('int main(void) { return 0; }\n')
        path = source.with_suffix('')
        subprocess.run([live.compiler('gcc'), '-g', str(source), '-o', str(path)], check=True)
        run = live.call('run', '--', path)
        self.assertRegex(run.stderr, r'\bE(21|16)\b', str(run))
        self.assertIn(run.status, (24, 125), str(run))

    def test_names_alone(self):
        """A family that nothing but names speaks for is not traced, and said so; -t asks for it."""
        live.need_engine()
        source = live.temp_path('packet.c')
        source.write_text('#define API __attribute__((noinline))\nstruct packet { char *data; long size; };\n'
                          'API void packet_ref(struct packet *to, struct packet *from) { *to = *from; }\n'
                          'API void packet_unref(struct packet *p) { p->data = 0; p->size = 0; }\n'
                          'int main(void) { struct packet a, b = { 0 };\n'
                          'packet_ref(&a, &b); packet_unref(&a); packet_unref(&a); return a.size; }\n')
        path = source.with_suffix('')
        subprocess.run([live.compiler('gcc'), '-O2', str(source), '-o', str(path)], check=True)
        self.assert_error(live.call('run', '--', path), 'E21', (125,), 'only names speak for \\(packet\\)',
                          'fix:.*-t packet')
        self.assertIn('packet_unref', live.trace('-t', 'packet', '--', path).report)

    def test_no_event(self):
        live.need_engine()
        path = live.program('server')
        run = live.call('run', *live.told(path, 'ok', '0'), '--', path, 'ok', '0')
        self.assert_error(run, 'E16', (24,), '(?i)not a clean result|no get')

    def test_foreign_machine(self):
        live.need_engine()
        path = live.temp_path('aarch64')
        data = bytearray(pathlib.Path(live.program('missing-put')).read_bytes())
        data[18:20] = (183).to_bytes(2, 'little')
        path.write_bytes(data)
        path.chmod(0o755)
        self.assert_error(live.call('run', *SPEC, '--', path), 'E14', (125, 126), 'aarch64')

    # --- privilege

    def test_not_root(self):
        live.need_engine()
        path = live.program('missing-put')
        run = live.call('run', '--engine', 'uprobe', *SPEC, '--', path, 'ok', prefix=live.NOBODY, cwd='/')
        self.assert_error(run, 'E01', (125,), 'CAP_BPF|CAP_SYS_ADMIN|CAP_PERFMON', 'fix:.*sudo')

    def test_unreadable_program(self):
        if os.geteuid():
            self.skipTest('needs root to make a file that another user cannot read')
        path = live.temp_path('execute-only')
        shutil.copy(live.program('missing-put'), path)
        path.chmod(0o711)
        run = live.call('scan', path, prefix=live.NOBODY, cwd='/')
        self.assert_error(run, 'E12', (125,), 'execute-only', 'Permission denied')

    # --- a running process

    def test_no_such_process(self):
        live.need_engine()
        run = live.call('run', *SPEC, '-p', '4194303')
        self.assert_error(run, 'E11', (125,), '4194303')

    def test_process_under_a_debugger(self):
        live.need_engine()
        path = live.program('server')
        target = live.Process([path, 'ok', '30'])
        try:
            pid = int(target.wait_line('ready').split()[1])
            libc = ctypes.CDLL(None, use_errno=True)
            # in a child: the trace ends with it
            holder = live.Process([sys.executable, '-c', 'import ctypes, sys, time\n'
                                   f'r = ctypes.CDLL(None).ptrace(0x4206, {pid}, 0, 0)\n'
                                   'print("held" if r == 0 else "refused", flush=True)\ntime.sleep(60)'])
            self.assertIsNotNone(libc)
            try:
                holder.wait_line('held')
                run = live.call('run', *live.told(path, 'ok', '0'), '-p', str(pid), timeout=20)
                self.assert_error(run, 'E23', (125,), str(pid))
            finally:
                holder.kill()
        finally:
            target.kill()

    # --- files

    def test_input_of_another_format(self):
        for data, word in ((b'', 'empty'), (b'hello\nworld\n' * 9, 'text'), (b'\x7fELF' + bytes(60), 'ELF'),
                           (bytes(range(1, 250)), 'unknown format')):
            with self.subTest(word=word):
                path = live.temp_path('input')
                path.write_bytes(data)
                self.assert_error(live.call('report', '-i', path), 'E19', (125, 24), word)

    def test_input_is_missing(self):
        self.assert_error(live.call('report', '-i', live.temp() / 'nothing-there'), 'E(25|12)', (125,), 'nothing-there')

    def test_truncated_input(self):
        live.need_engine()
        path, spool = live.program('missing-put'), live.temp_path('t.rt')
        live.call('run', '-w', spool, *SPEC, '--', path, 'ok')
        data = spool.read_bytes()
        spool.write_bytes(data[:len(data) * 3 // 4])
        self.assert_error(live.call('report', '-i', spool), 'E09', (24,), r'chunk|byte')

    def test_disk_full_at_once(self):
        live.need_engine()
        path = live.program('missing-put')
        run = live.call('run', '-w', '/dev/full', *SPEC, '--', path, 'ok')
        self.assert_error(run, 'E15', (24, 125), '/dev/full')

    def test_disk_full_later(self):
        live.need_engine()
        path = live.program('server', flags=('-g', '-O2'))
        folder = live.temp_path('disk')
        folder.mkdir()
        script = (f'mount -t tmpfs -o size=48k none {folder} && exec "$@"')
        run = live.call('run', '-w', folder / 'f.rt', *live.told(path, 'ok', '0'), '--', path, 'bug', '4',
                        prefix=['unshare', '-m', 'sh', '-c', script, 'sh'])
        if 'unshare:' in run.stderr:
            self.skipTest('no mount namespace here: ' + run.stderr.strip())
        self.assert_error(run, 'E15', (24, 125), 'f.rt')
        self.assertIsNotNone(run.truth, 'the program did not come to its end')

    def test_output_cannot_be_written(self):
        live.need_engine()
        path = live.program('missing-put')
        for option in ('-o', '-w', '--json='):
            with self.subTest(option=option):
                target = '/nonexistent/folder/file'
                args = [option + target] if option.endswith('=') else [option, target]
                self.assert_error(live.call('run', *args, *SPEC, '--', path, 'ok'), 'E13', (125,), 'nonexistent')

    # --- loss

    def test_lost_events(self):
        """A tiny ring, and a reftrace that cannot read it for a while."""
        live.need_engine()
        path = live.program('server', flags=('-g', '-O2'))
        findings = live.temp_path('lost.json')
        process = live.Process([live.REFTRACE, 'run', '--engine', 'uprobe', '-m', '4K', f'--json={findings}', *live.told(path, 'ok', '0'), '--',
                                path, 'ok', '3'])
        try:
            process.wait_line('ready')
            os.kill(process.popen.pid, signal.SIGSTOP)
            live.wait_until(lambda: False, 1)
            os.kill(process.popen.pid, signal.SIGCONT)
            status, out, err = process.wait()
        finally:
            process.kill()
        run = live.Run(status, out, err, live.json.loads(findings.read_text()), None, 0)
        self.assertGreater(run.findings['trust']['lost'], 0, str(run))
        self.assertFalse(run.findings['trust']['complete'])
        self.assert_error(run, 'W08', (24,), 'lost')
        for point in run.findings['points']:
            if point['hits'] is not None:
                self.assertEqual(point['hits'], point['events'] + point['dropped'], str(point))


if __name__ == '__main__':
    unittest.main()
