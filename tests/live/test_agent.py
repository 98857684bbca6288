# SPDX-License-Identifier: GPL-2.0-only
"""Engine agent: what it needs no privilege for, and what it must not do to the program that it is in. That it sees what
engine uprobe sees is shown by the other suites: test_demos, or RT_ENGINE=agent run.py."""
import collections
import os
import re
import signal
import struct
import unittest

import live

AGENT = ('--engine', 'agent')
PT_LOAD, PF_X, PF_R = 1, 1, 4


class Agent(live.LiveTest):
    def setUp(self):
        live.need_binary()

    def check(self, run, guilty=True):
        self.assertIsNotNone(run.truth, f'the program did not come to its end\n{run}')
        self.assertEqual(run.status, 0, str(run))
        self.assertEqual(run.findings['engine'], 'agent')
        self.assert_clean_trust(run)
        self.assert_guilty(run, run.truth.guilty)
        self.assert_counts(run)
        self.assertEqual(run.truth.guilty is not None, guilty)

    def test_without_any_privilege(self):
        live.need_agent()
        path = live.program('missing-put', flags=('-g', '-O2'))
        temp = live.temp_path('nobody')
        temp.mkdir(mode=0o777)
        temp.chmod(0o777)
        findings, report = temp / 'f.json', temp / 'r.txt'
        run = live.call('run', f'--json={findings}', '-o', report, *live.told(path, 'ok'), '--', path, 'bug', prefix=live.NOBODY,
                        cwd='/')
        run.findings, run.report = live.json.loads(findings.read_text()), report.read_text()
        self.check(run)

    def test_static(self):
        path = live.program('missing-put', flags=('-g', '-O2', '-static'))
        self.check(live.trace(*AGENT, *live.told(path, 'ok'), '--', path, 'bug'))

    def test_fixed_address(self):
        path = live.program('missing-put', flags=('-g', '-O2', '-no-pie', '-fno-pie'))
        self.check(live.trace(*AGENT, *live.told(path, 'ok'), '--', path, 'bug'))

    def execute_only(self, path):
        """A copy in which the code's segment lacks PF_R, and so its mapping VM_READ."""
        image, changed = bytearray(path.read_bytes()), False
        table, = struct.unpack_from('<Q', image, 32)
        number, = struct.unpack_from('<H', image, 56)
        for at in range(table, table + 56 * number, 56):
            if struct.unpack_from('<II', image, at) == (PT_LOAD, PF_R | PF_X):
                struct.pack_into('<I', image, at + 4, PF_X)
                changed = True
        self.assertTrue(changed)
        hidden = live.temp_path('execute-only-text')
        hidden.write_bytes(image)
        hidden.chmod(0o755)
        return hidden

    def test_text_that_cannot_be_read(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        self.check(live.trace(*AGENT, *live.told(path, 'ok'), '--', self.execute_only(path), 'bug'))

    def test_text_that_cannot_be_read_by_uprobe(self):
        live.need_engine()
        path = live.program('missing-put', flags=('-g', '-O2'))
        run = live.trace('--engine', 'uprobe', *live.told(path, 'ok'), '--', self.execute_only(path), 'bug')
        self.assert_guilty(run, run.truth.guilty)
        self.assert_counts(run)

    def test_keeps_what_it_finds(self):
        """Registers, flags and the red zone are what they were, in each way through a stub."""
        path = live.program('kept', flags=('-g', '-O2'))
        for options in ((), ('--counts',), ('--sample=1/2',)):
            with self.subTest(options=options):
                run = live.trace(*AGENT, *options, *live.told(path), '--', path)
                self.assertIn('damaged 0\n', run.stdout, str(run))
                self.assertGreater(sum(p['hits'] for p in run.findings['points']), 2000, str(run))

    def test_frame_pointers_are_not_needed(self):
        path = live.program('recursion', flags=('-g', '-O2', '-fomit-frame-pointer'))
        self.check(live.trace(*AGENT, *live.told(path, 'ok'), '--', path, 'bug'))

    def test_end_while_another_is_in_a_hook(self):
        """Who is in a hook holds back what is later; not what a process did that has ended meanwhile."""
        path = live.program('held', flags=('-g', '-O2'))
        run = live.trace(*AGENT, '-P', 'type=obj get=obj_get:1 put=obj_put:1 counter=+0:4', '--', path)
        done = int(run.stdout.split()[1])
        self.assertEqual(run.findings['trust']['lost'], 0, str(run))
        self.assertEqual(run.findings['trust']['events'], done, str(run))

    def test_threads_that_nobody_told_of(self):
        """The first thread of a static program makes itself known, in more steps than one, while it is looked for: of each, all
        is told."""
        live.need_agent()
        path = live.program('missing-put', flags=('-g', '-O2', '-static'))
        run = live.trace(*AGENT, *live.told(path, 'ok'), '--', '/bin/sh', '-c', 'for i in $(seq 40); do "$0" ok; done', path)
        done = sum(int(n) for n in re.findall(r'^count \w+ \w+ (\d+)$', run.stdout, re.MULTILINE))
        self.assertGreater(done, 40, str(run))
        told = sum(p['hits'] for p in run.findings['points'] if p['op'] in ('new', 'get', 'put'))
        self.assertEqual((told, run.findings['trust']['lost']), (done, 0), str(run))

    def test_many_ways_to_one_place(self):
        """Stacks that are remembered are told only where all of them is the same: each way as often as it was gone."""
        for optimize in ('-O2', '-O0'):
            with self.subTest(optimize=optimize):
                path = live.program('ways', flags=('-g', optimize))
                data = live.temp_path('ways.data')
                run = live.trace(*AGENT, '-w', data, '-P', 'type=obj get=obj_get:1 put=obj_put:1', '--', path)
                self.assertEqual(run.findings['trust']['lost'], 0, str(run))
                for of in ('gets', 'puts'):
                    seen = collections.Counter()
                    for line in live.call('export', 'folded', '--of', of, '-i', data).stdout.splitlines():
                        stack, n = line.rsplit(' ', 1)
                        seen[''.join(f[0] for f in stack.split(';') if f in ('left', 'right'))] += int(n)
                    truth = {way: int(n) for way, n in re.findall(r'^way ([lr]+) (\d+)$', run.stdout, re.MULTILINE) if int(n)}
                    self.assertEqual(sum(truth.values()), 20000)
                    self.assertEqual(seen, truth, of)

    def test_a_frame_that_leads_astray(self):
        """What a walk has read and could not follow is a reason to look again the next time."""
        path = live.program('astray', flags=('-g', '-O2'))
        data = live.temp_path('astray.data')
        run = live.trace(*AGENT, '-w', data, '-P', 'type=obj get=obj_get:1 put=obj_put:1', '--', path)
        self.assertEqual(run.stdout, '0\n', str(run))
        whole = cut = 0
        for line in live.call('export', 'folded', '--of', 'gets', '-i', data).stdout.splitlines():
            stack, n = line.rsplit(' ', 1)
            self.assertIn('hang', stack)
            whole += int(n) if 'main' in stack.split(';') else 0
            cut += int(n) if 'main' not in stack.split(';') else 0
        self.assertEqual((cut, whole), (3, 3))

    def test_pointers_to_nothing(self):
        """The agent's loads fault, and nobody notices but the counts."""
        run = live.trace(*AGENT, '--', live.program('wild', flags=('-g', '-O2')))
        self.assertEqual((run.status, run.stdout), (3, 'survived\n'), str(run))
        self.assertFalse(run.findings['trust']['complete'], str(run))
        self.assertEqual(run.findings['findings'], [], str(run))

    def test_slots_that_are_freed(self):
        """What is stored in a block that is freed is told, once, in the child as well; and nothing but that."""
        path, data = live.program('freed-slots', flags=('-g', '-O1')), live.temp_path('slots.data')
        ran = live.call('record', *AGENT, '-P', 'type=item new=item_new:ret get=item_get:1 put=item_put:1', '-o', data, '--',
                        path)
        self.assertEqual(ran.status, 0, str(ran))
        told = int(re.search(r'^told (\d+)$', ran.stdout, re.M).group(1))
        script = live.call('script', '-i', data).stdout
        self.assertEqual(len(re.findall(r'item_move: .* flags=hidden aux=0x[1-9a-f]', script)), told, script)

    def test_children_that_are_not_followed(self):
        """The agent that a child inherits is silent: what the child does is not taken for its parent's."""
        path = live.program('forks', flags=('-g', '-O2'))
        for follow, objects, left in (('--no-follow', 101, 0), ('--follow', 151, 50)):
            run = live.trace(*AGENT, follow, '-P', 'type=obj new=obj_new put=obj_put', '--', path)
            self.assertEqual(run.status, 0, str(run))
            self.assert_clean_trust(run)
            obj = run.findings['types'][0]
            self.assertEqual((obj['new'], obj['put'], obj['live']), (objects, 101, left), str(run))

    def test_killed_tool(self):
        """The program goes on as if nothing had been there, also where it waits for a reader that is gone."""
        path = live.program('server', flags=('-g', '-O2'))
        process = live.Process([live.REFTRACE, 'run', *AGENT, '-o', '/dev/null', *live.told(path, 'ok', '0'), '--', path, 'ok',
                                '60'])
        try:
            target = int(process.wait_line('ready').split()[1])
            process.popen.send_signal(signal.SIGKILL)
            process.popen.wait(10)
            self.assertTrue(live.wait_until(lambda: live.process_state(target) in 'RS', 5), live.process_state(target))
            os.kill(target, signal.SIGTERM)
            self.assertTrue(live.wait_until(lambda: 'guilty none\n' in process.lines, 10), process.lines)
        finally:
            process.kill()

    def test_killed_target(self):
        path = live.program('server', flags=('-g', '-O2'))
        process = live.Process([live.REFTRACE, 'run', *AGENT, '-o', '/dev/null', *live.told(path, 'ok', '0'), '--', path, 'ok',
                                '60'])
        try:
            os.kill(int(process.wait_line('ready').split()[1]), signal.SIGKILL)
            status, _, err = process.wait(20)
            self.assertEqual(status, 137, err)
            self.assertNotIn('INTERNAL', err)
        finally:
            process.kill()

    def test_let_go(self):
        """The second interrupt ends the trace: the code is what it was before, and the program serves on."""
        path = live.program('server', flags=('-g', '-O2'))
        process = live.Process([live.REFTRACE, 'run', *AGENT, '-o', '/dev/null', *live.told(path, 'ok', '0'), '--', 'sh', '-c',
                                f'trap "" INT; exec {path} ok 60'])
        try:
            target = int(process.wait_line('ready').split()[1])
            self.assertNotEqual(live.text_changes(target, path), [], 'nothing was armed')
            process.popen.send_signal(signal.SIGINT)
            self.assertFalse(live.wait_until(lambda: process.popen.poll() is not None, 0.5), 'ended at the first interrupt')
            process.popen.send_signal(signal.SIGINT)
            process.popen.wait(20)
            self.assertEqual(live.text_changes(target, path), [])
            os.kill(target, signal.SIGTERM)
            self.assertTrue(live.wait_until(lambda: 'guilty none\n' in process.lines, 10), process.lines)
        finally:
            process.kill()

    def test_confined(self):
        """What may kill the program is not done: it runs untraced, and that is said."""
        path = live.program('missing-put', flags=('-g', '-O2'))
        run = live.trace(*AGENT, *live.told(path, 'ok'), '--', 'sh', '-c',
                         f'{live.program("confined")} {path} bug; true')
        self.assertIsNotNone(run.truth, f'the program did not come to its end\n{run}')
        self.assertEqual(run.status, 24, str(run))
        self.assertRegex(run.report + run.stderr, 'seccomp')

    def test_limited_memory(self):
        path = live.program('missing-put', flags=('-g', '-O2'))
        run = live.trace(*AGENT, *live.told(path, 'ok'), '--', 'sh', '-c', f'ulimit -v 500000; exec {path} bug')
        self.assertIsNotNone(run.truth, f'the program did not come to its end\n{run}')
        self.assertEqual(run.status, 24, str(run))
        self.assertRegex(run.report + run.stderr, 'ulimit -v')

    def test_not_for_running_programs(self):
        run = live.call('run', *AGENT, '-p', str(os.getpid()))
        self.assertEqual(run.status, 125, str(run))
        self.assertRegex(run.stderr, 'agent.*running(?s:.*)fix:.*--inject(?s:.*)uprobe')

    def test_descriptors_and_environment(self):
        """The program sees no file, variable or signal that it would not see without us."""
        # SigQ counts what all processes of the user have pending
        script = 'ls /proc/self/fd | wc -l; env | sort | grep -v ^_; grep -E "^(Sig[^Q]|Shd|Seccomp)" /proc/self/status'
        bare = live.Process(['sh', '-c', script])
        want = bare.wait(10)[1]
        path = live.program('missing-put')
        run = live.call('run', *AGENT, '-o', '/dev/null', *live.told(path, 'ok'), '--', 'sh', '-c', script)
        self.assertEqual(re.sub(r'(?m)^(SUDO|USER|HOME|LOGNAME|SHELL|MAIL).*\n', '', run.stdout),
                         re.sub(r'(?m)^(SUDO|USER|HOME|LOGNAME|SHELL|MAIL).*\n', '', want), str(run))


if __name__ == '__main__':
    unittest.main()
