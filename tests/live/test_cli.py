# SPDX-License-Identifier: GPL-2.0-only
"""The command line without tracing anything: usage errors are two lines with a fix and exit 2, every command has help
and a man page that name the same options, and whatever a message of ours advises exists."""
import json
import os
import pathlib
import re
import stat
import subprocess
import unittest

import live

RESERVED = ('top check suppress html tui '
            'completion').split()


def commands():
    """verbs as `reftrace help` lists them"""
    return re.findall(r'(?m)^  ([a-z]+) +\S', live.call('help').stdout.partition('Commands:')[2])


def options_of(text):
    """long and short options that a text names"""
    return set(re.findall(r'(?<![\w-])(--[a-z][\w-]+|-[a-zA-Z])\b', text))


class Usage(live.LiveTest):
    def setUp(self):
        live.need_binary()

    def assert_usage(self, *args, words=(), status=2, code='E17'):
        run = live.call(*args)
        lines = run.stderr.splitlines()
        self.assertEqual(run.status, status, str(run))
        self.assertEqual(run.stdout, '')
        self.assertRegex(lines[0], rf'^reftrace: {code} ')
        self.assertLessEqual(len(lines), 4, run.stderr)
        if len(lines) > 1:
            self.assertRegex(lines[1], r'^      fix: ')
        for word in words:
            self.assertIn(word, run.stderr)

    def test_faults(self):
        """each fault with the words that its message has to hold"""
        faults = [
            ([], ['reftrace help']),
            (['recrod', 'true'], ["'recrod'", 'reftrace record']),
            (['rnu', 'true'], ['reftrace run']),
            (['xyzzyplugh'], ["'xyzzyplugh'", 'reftrace help']),
            (['--bogus'], ['--bogus']),
            (['run'], ['no program']),
            (['run', '--'], ['no program']),
            (['run', ''], ['empty']),
            (['run', '--attahc=multi', 'true'], ['--attahc', 'did you mean --attach']),
            (['run', '-Z', 'true'], ["'-Z'"]),
            (['run', '-qZ', 'true'], ["'-qZ'"]),
            (['run', '--quiet=1', 'true'], ['takes no argument']),
            (['run', '-P'], ['needs an argument']),
            (['run', '--pairs'], ['needs an argument']),
            (['run', '-p', 'abc'], ["'abc'"]),
            (['run', '-p', '0'], ["'0'"]),
            (['run', '-p', '1,,2'], ["'1,,2'"]),
            (['run', '-p', '99999999999'], ['process id']),
            (['run', '-p', '1', 'true'], ['both']),
            (['run', '-p', '1', '-u', 'nobody'], ['-u']),
            (['run', '-u', 'nobody', '--as-root', 'true'], ['both']),
            (['run', '--duration', '3q', 'true'], ["'3q'", '30s']),
            (['run', '--duration', '0', 'true'], ["'0'"]),
            (['run', '--duration', '99999999999h', 'true'], ['no time']),
            (['run', '-m', '3X', 'true'], ["'3X'", '64K']),
            (['run', '-m', '0', 'true'], ["'0'"]),
            (['run', '-m', '9999999999999G', 'true'], ['size']),
            (['run', '-E', 'X', 'true'], ["'X'", 'VAR=VAL']),
            (['run', '-E', '=X', 'true'], ["'=X'"]),
            (['run', '--engine=kprobe', 'true'], ['auto, uprobe, agent']),
            (['run', '--attach=perf', 'true'], ['auto, multi, tracefs']),
            (['run', '--format=xml', 'true'], ['text, json']),
            (['run', '--color=blue', 'true'], ['auto, always, never']),
            (['run', '--error-exitcode=0', 'true'], ['1 to 255']),
            (['run', '--error-exitcode=256', 'true'], ['1 to 255']),
            (['record'], ['no program']),
            (['record', '--json', 'true'], ['--json']),
            (['scan'], ['no file']),
            (['doctor', 'x'], ["'x'"]),
            (['help', 'rnu'], ['reftrace help run']),
        ]
        for args, words in faults:
            with self.subTest(args=args):
                self.assert_usage(*args, words=words)

    def test_reserved_words(self):
        for word in RESERVED:
            with self.subTest(word=word):
                self.assert_usage(word, words=['not in this build yet', f'reftrace run -- {word}'])

    def test_bad_spec(self):
        for spec in ('get=', 'gte=f', 'get=f:0', 'get=f:x', '=', 'type= get=f', 'start=x get=f'):
            with self.subTest(spec=spec):
                self.assert_usage('run', '-P', spec, 'true', words=['column'], code='E18')

    def test_terminal_codes_are_not_repeated(self):
        run = live.call('run', '--\x1b[2Jx', 'true')
        self.assertNotIn('\x1b', run.stderr)
        self.assertIn('\\x1b', run.stderr)

    def test_program_of_this_folder(self):
        folder = live.temp_path('here')
        folder.mkdir()
        tool = folder / 'mytool'
        tool.write_text('#!/bin/sh\n')
        tool.chmod(0o755)
        run = live.call('mytool', cwd=folder)
        self.assertEqual(run.status, 2, str(run))
        self.assertIn('reftrace ./mytool', run.stderr)

    def test_missing_program(self):
        for args in (['./no-such-program'], ['run', '--', './no-such-program']):
            run = live.call(*args)
            if 'E30' in run.stderr or 'E01' in run.stderr:
                self.skipTest('no engine here')
            self.assertEqual(run.status, 127, str(run))
            self.assertIn('E22', run.stderr)


class Help(live.LiveTest):
    def setUp(self):
        live.need_binary()

    def test_overview(self):
        for args in (['help'], ['--help'], ['-h']):
            run = live.call(*args)
            self.assertEqual((run.status, run.stderr), (0, ''), str(run))
            self.assertLessEqual(len(run.stdout.splitlines()), 24)
        self.assertEqual(set(commands()), set('run record report object tree diff script annotate export archive scan probe cache bpf doctor help version'.split()))

    def test_each_command(self):
        for verb in commands():
            with self.subTest(verb=verb):
                run = live.call('help', verb)
                self.assertEqual((run.status, run.stderr), (0, ''), str(run))
                self.assertIn(f'reftrace {verb}', run.stdout)
                self.assertLessEqual(len(run.stdout.splitlines()), 80)
                self.assertLessEqual(max(map(len, run.stdout.splitlines())), 80)
                if verb != 'help':
                    self.assertEqual(live.call(verb, '--help').stdout, run.stdout)
                    self.assertEqual(live.call(verb, '-h').stdout, run.stdout)

    def test_man_pages_name_the_options(self):
        everywhere = {'--help', '-h', '--debug'}
        run_page = options_of((live.SOURCE / 'man/reftrace-run.1.scd').read_text())
        for verb in commands():
            if verb in ('help', 'version'):
                continue
            with self.subTest(verb=verb):
                page = options_of((live.SOURCE / f'man/reftrace-{verb}.1.scd').read_text())
                have = options_of(live.call('help', verb).stdout)
                # shared groups are described once, in the page of run
                self.assertEqual(have - page - everywhere - (run_page if verb in ('record', 'report') else set()), set())
                self.assertEqual(page - have - everywhere, set(), 'the man page names options that do not exist')

    def test_version(self):
        for args in (['version'], ['--version'], ['-V']):
            self.assertRegex(live.call(*args).stdout, r'^reftrace \d+\.\d+\.\d+\n$')
        self.assertIn('engine uprobe:', live.call('version', '--build-options').stdout)


class Advice(live.LiveTest):
    """Our own source strings: every command and option that a message advises is in the tables."""

    def setUp(self):
        live.need_binary()

    def strings(self):
        """(file, line, text) of each run of adjacent string literals in src/"""
        literal = r'"(?:[^"\\\n]|\\.)*"'
        for path in sorted((live.SOURCE / 'src').glob('*/*.c')):
            source = re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group()), path.read_text(), flags=re.S)
            for m in re.finditer(rf'{literal}(?:\s*{literal})*', source):
                text = ''.join(part[1:-1] for part in re.findall(literal, m.group()))
                yield path.relative_to(live.SOURCE), source.count('\n', 0, m.start()) + 1, text

    def test_commands_and_options_exist(self):
        verbs = commands()
        options = {verb: options_of(live.call('help', verb).stdout) for verb in verbs}
        every = set().union(*options.values()) | {'--version', '-V'}
        seen = 0
        for path, line, text in self.strings():
            for verb, rest in re.findall(r'\breftrace ([a-z]+)\b([^;|),\n]*)', text):
                # "reftrace itself", "reftrace scan FILE": only words in the place of a command count
                if verb not in verbs:
                    self.assertNotIn(verb, RESERVED, f'{path}:{line}: {text}')
                    continue
                seen += 1
                ours = re.split(r' -- | PROG\b', rest)[0]
                for option in options_of(ours):
                    self.assertIn(option, options[verb], f'{path}:{line}: {text}')
            if re.search(r'\b(fix|next)\b|did you mean|%s', text) or 'fix(' in text:
                others = r'\b(apt|apt-get|sysctl|setcap|mount|meson|mount|docker|cap-add|kernel)\b'
                if not re.search(others, text):
                    for option in re.findall(r'(?<![\w-])--[a-z][\w-]+', text):
                        self.assertIn(option, every, f'{path}:{line}: {text}')
        self.assertGreater(seen, 10, 'the messages were not found: has their form changed?')


class Files(live.LiveTest):
    """What needs files but no tracing."""

    def setUp(self):
        live.need_binary()

    def test_report_refuses_what_is_no_recording(self):
        for name, data in (('elf', pathlib.Path('/bin/true').read_bytes()[:4096]), ('random', bytes(range(256)) * 8),
                           ('empty', b''), ('text', b'what is this\n')):
            with self.subTest(input=name):
                path = live.temp_path(name)
                path.write_bytes(data)
                run = live.call('report', '-i', path)
                self.assertIn(run.status, (24, 125), str(run))
                self.assertRegex(run.stderr, r'^reftrace: E\d\d ')
                self.assertNotIn('no leaks', run.stdout)

    def test_report_of_hand_made_events(self):
        path = live.SOURCE / 'tests/fuzz/corpus/events/double-put.events'
        findings = live.temp_path('f.json')
        run = live.call('report', '-i', path, f'--json={findings}')
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stdout, r'(?m)^EXTRA PUT [0-9a-f]{8}  struct obj #\d+: put without a reference\n'
                                     r'  extra put in on_error\(\)')
        self.assertLessEqual(len(run.stdout.splitlines()), 24)
        found = json.loads(findings.read_text())
        self.assertEqual([(f['kind'], f['guilty']['function']) for f in found['findings']], [('extra-put', 'on_error')])
        self.assertEqual((found['engine'], found['exit']), ('text', {'program': None, 'reftrace': 0}))
        for option, status in (('--error-exitcode', 23), ('--error-exitcode=7', 7)):
            self.assertEqual(live.call('report', option, '-i', path).status, status)
        self.assertEqual(live.call('report', path).stdout, live.call('report', '-i', path).stdout)

    def test_limits_take_nothing_from_the_answer(self):
        path = live.SOURCE / 'tests/fuzz/corpus/events/double-put.events'
        limited, findings = live.temp_path('limited.events'), live.temp_path('l.json')
        limited.write_text(path.read_text().replace('hits\n', 'hits\nloss limit lib.so: obj: stores: 9 places, more than 8\n'))
        self.assertNotIn('not looked at', live.call('report', '-i', limited).stdout)
        run = live.call('report', '-v', '-i', limited, f'--json={findings}')
        self.assertRegex(run.stdout, r'(?m)^trust: complete')
        self.assertRegex(run.stdout, r'(?m)^  not looked at: lib\.so: obj: stores: 9 places, more than 8$')
        trust = json.loads(findings.read_text())['trust']
        self.assertEqual((trust['complete'], trust['limits']), (True, ['lib.so: obj: stores: 9 places, more than 8']))

    def test_color(self):
        path = live.SOURCE / 'tests/fuzz/corpus/events/double-put.events'
        for args, env, colored in (([], {}, False), (['--color=always'], {}, True), ([], {'CLICOLOR_FORCE': '1'}, True),
                                   ([], {'CLICOLOR_FORCE': '1', 'NO_COLOR': '1'}, False),
                                   (['--color=never'], {'CLICOLOR_FORCE': '1'}, False)):
            with self.subTest(args=args, env=env):
                run = live.call('report', *args, '-i', path, env=live.clean_env(**env))
                self.assertEqual('\x1b[' in run.stdout, colored, run.stdout)

    def test_output_of_report(self):
        path = live.SOURCE / 'tests/fuzz/corpus/events/double-put.events'
        out = live.temp_path('r.txt')
        run = live.call('report', '-i', path, '-o', out)
        self.assertEqual((run.status, run.stdout, run.stderr), (0, '', ''), str(run))
        self.assertEqual(out.read_text(), live.call('report', '-i', path).stdout)
        run = live.call('report', '-i', path, '-o', '/dev/full')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('E15', run.stderr)

    def test_missing_input(self):
        run = live.call('report', cwd=live.temp())
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('reftrace.data', run.stderr)
        self.assertIn('fix: record first', run.stderr)
        run = live.call('report', '-i', '/nonexistent/file')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('/nonexistent/file', run.stderr)

    def test_doctor(self):
        run = live.call('doctor')
        self.assertIn(run.status, (0, 125), str(run))
        self.assertRegex(run.stdout, r'(?m)^(ok|no)  +engine uprobe')
        self.assertRegex(run.stdout, r'(?m)^(ok|no)  +engine agent')
        found = json.loads(live.call('doctor', '--json').stdout)
        self.assertEqual(found['works'], run.status == 0)
        for check in found['checks']:
            self.assertTrue(check['why'], str(check))

    def test_doctor_without_privilege(self):
        if os.geteuid():
            self.skipTest('needs root to give it up')
        run = live.call('doctor', prefix=live.NOBODY, cwd='/')
        agent = re.search(r'(?m)^(ok|no)  +engine agent', run.stdout)[1]
        self.assertEqual(run.status, {'ok': 0, 'no': 125}[agent], str(run))
        self.assertRegex(run.stdout, r'(?m)^no .*\n +fix: sudo')
        self.assertNotIn('\x1b', run.stdout)

    def test_no_decoder(self):
        """Without capstone no place can be found: that is said, before the program runs, and not that it has no functions."""
        live.need_mount_namespace()
        hide = ('lib=$(ldconfig -p | sed -n "s/.*libcapstone.so.[0-9]* .* => //p" | head -1)\n'
                'mount --bind /dev/null "$(readlink -f "$lib")" && exec "$@"')
        for words in (('run', '--', '/bin/echo', 'ran'), ('run', '-t', 'obj', '--', '/bin/echo', 'ran'), ('scan', '/bin/true')):
            run = live.call(*words, prefix=('unshare', '-m', 'sh', '-c', hide, 'sh'))
            self.assertEqual((run.status, run.stdout), (125, ''), str(run))
            self.assertRegex(run.stderr, r'E30 .*no instruction can be decoded: .*\n +fix: apt-get install libcapstone')
        run = live.call('doctor', prefix=('unshare', '-m', 'sh', '-c', hide, 'sh'))
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stdout, r'(?m)^no +decode instructions .*no instruction can be decoded')

    @live.alone('definitions that are left behind are taken away by the next reftrace, whoever starts it')
    def test_doctor_leaves_nothing(self):
        before = live.probe_events()
        live.call('doctor')
        # other runs on this machine may have definitions of their own; what is new and has no owner would be ours
        left = [line for line in set(live.probe_events()) - set(before)
                if not os.path.exists('/proc/' + line.split('_')[1])]
        self.assertEqual(left, [])

    def test_scan(self):
        path = live.program('missing-put')
        run = live.call('scan', path)
        if 'E30' in run.stderr:
            self.skipTest(run.stderr)
        self.assertEqual(run.status, 0, str(run))
        self.assertIn('session_ref', run.stdout)
        found = json.loads(live.call('scan', '--json', path).stdout)
        names = [f['function'] for m in found['modules'] for family in m['families'] for f in family['functions']]
        self.assertIn('session_ref', names)
        preset = live.temp_path('preset')
        self.assertEqual(live.call('scan', '--write', preset, path).status, 0)
        self.assertIn('session_ref', preset.read_text())
        self.assertTrue(stat.S_ISREG(preset.stat().st_mode))

    def test_scan_finds_nothing(self):
        source = live.temp_path('plain.c')
        source.write_text('int main(void) { return 0; }\n')
        path = source.with_suffix('')
        subprocess.run([live.compiler('gcc') or 'cc', str(source), '-o', str(path)], check=True)
        run = live.call('scan', path)
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('E21', run.stderr)

    def test_scan_of_no_process(self):
        run = live.call('scan', '-p', '4194303')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('E11', run.stderr)

    def test_scan_of_no_elf(self):
        run = live.call('scan', live.SOURCE / 'meson.build')
        self.assertEqual(run.status, 125, str(run))
        self.assertIn('E20', run.stderr)


if __name__ == '__main__':
    unittest.main()
