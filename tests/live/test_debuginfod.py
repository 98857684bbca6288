# SPDX-License-Identifier: GPL-2.0-only
"""Debug information from a debuginfod server: only when it is asked for, of the very build-id, in bounded time. The server is
elfutils' own, on the loopback; the bad ones are sockets that send what a server must not."""
import http.server
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import threading
import unittest
import urllib.request

import live

FLAGS = ('-g', '-O2', '-fcf-protection=none')


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Wrong(http.server.BaseHTTPRequestHandler):
    """Sends a debug file of another build-id, whatever is asked."""
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.body
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@unittest.skipUnless(shutil.which('debuginfod'), 'debuginfod is not installed')
class Debuginfod(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        live.need_binary()
        folder = live.temp_path('served')
        folder.mkdir()
        whole = live.program('probed', 'gcc', FLAGS)
        cls.whole = whole
        subprocess.run(['objcopy', '--only-keep-debug', str(whole), str(folder / 'probed.debug')], check=True)
        notes = subprocess.run(['readelf', '-n', str(whole)], capture_output=True, text=True, check=True).stdout
        cls.ident = notes.split('Build ID: ')[1].split()[0]
        port = free_port()
        cls.url = f'http://127.0.0.1:{port}'
        cls.server = subprocess.Popen(['debuginfod', '-d', str(live.temp_path('index.sqlite')), '-F', '-p', str(port), str(folder)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                      env=dict(live.clean_env(), HOME=str(folder)))
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.terminate)
        assert live.wait_until(lambda: cls.served(), 30), 'debuginfod serves nothing'

    @classmethod
    def served(cls):
        try:
            with urllib.request.urlopen(f'{cls.url}/buildid/{cls.ident}/debuginfo', timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def setUp(self):
        self.home = live.temp_path('home')
        self.home.mkdir()
        self.cache = live.temp_path('cache')
        self.bare = live.temp_path('bare')
        subprocess.run(['strip', '-o', str(self.bare), str(self.whole)], check=True)

    def env(self, **more):
        return dict(live.clean_env(), HOME=str(self.home), PERF_BUILDID_DIR=str(self.cache), **more)

    def show(self, *words, status=0, **env):
        run = live.call('probe', 'show', *words, '-x', self.bare, 'work n s:string', env=self.env(**env))
        self.assertEqual(run.status, status, str(run))
        return run

    def kept(self):
        return [p for p in self.home.rglob('*') if p.is_file() and p.name.startswith('debuginfo')]

    def test_only_when_asked(self):
        self.show(status=125, DEBUGINFOD_URLS=self.url)
        self.assertEqual(self.kept(), [])
        self.assertFalse(self.cache.exists())
        want = live.call('probe', 'show', '-x', self.whole, 'work n s:string', env=self.env()).stdout
        plain = want.replace(f'{self.whole}:', f'{self.bare}:').split(' ', 1)[1]
        for words, env in ((['--debuginfod'], {'DEBUGINFOD_URLS': self.url}), ([f'--debuginfod={self.url}'], {})):
            shutil.rmtree(self.cache, ignore_errors=True)
            run = self.show(*words, **env)
            self.assertEqual(run.stdout.split(' ', 1)[1], plain)
            self.assertEqual(run.stderr, '')
        # kept as perf keeps it, and used without the server
        debug = next(self.cache.rglob('debug'))
        self.assertEqual(debug.parent.name, self.ident)
        shutil.rmtree(self.home / '.cache', ignore_errors=True)
        self.assertEqual(self.show('--debuginfod=http://127.0.0.1:1').stdout.split(' ', 1)[1], plain)

    def test_listings_and_scan(self):
        for words in (['funcs', f'--debuginfod={self.url}', self.bare, 'work'], ['vars', f'--debuginfod={self.url}', self.bare, 'work']):
            run = live.call('probe', *words, env=self.env())
            self.assertEqual(run.status, 0, str(run))
            self.assertIn('work' if words[0] == 'funcs' else 'struct obj', run.stdout)

    def test_reports(self):
        """Names and lines of a recorded file that has none: only when told to ask, and kept then."""
        data, asked = live.temp_path('data'), f'--debuginfod={self.url}'
        live.call('probe', 'add', '-q', '-x', self.whole, '-D', '--cache', 'fetched:hit=work n', env=self.env())
        run = live.call('record', '-q', '-N', '-e', f'%fetched:hit@{self.bare}', '-o', data, '--', self.bare, env=self.env())
        self.assertEqual(run.status, 0, str(run))
        # it holds the file as it was resolved, with its debug information
        shutil.rmtree(self.cache)

        def said(*words, status=0):
            run = live.call(*words, '-i', data, env=self.env(DEBUGINFOD_URLS=self.url))
            self.assertEqual(run.status, status, str(run))
            return run.stdout
        row = r'100\.00%% .* %s\n'
        self.assertRegex(said('report'), row % '0x[0-9a-f]+')
        said('annotate', 'work', status=125)
        self.assertEqual(self.kept(), [])
        self.assertRegex(said('report', asked), row % 'work')
        self.assertTrue(self.kept())
        self.assertIn('probed.c', said('annotate', asked, 'work'))
        # from the build-id cache now, without a server
        shutil.rmtree(self.home / '.cache', ignore_errors=True)
        self.assertRegex(said('report', '--debuginfod=http://127.0.0.1:1'), row % 'work')

    def test_server_is_gone(self):
        """Asked once, not for each file; what is known is shown."""
        data = live.temp_path('data')
        live.call('probe', 'add', '-q', '-x', self.whole, '-D', '--cache', 'fetched:hit=work n', env=self.env())
        live.call('record', '-q', '-N', '-e', f'%fetched:hit@{self.bare}', '-o', data, '--', self.bare, env=self.env())
        shutil.rmtree(self.cache)
        run = live.call('report', '--debuginfod=http://127.0.0.1:1', '-i', data, env=self.env())
        self.assertEqual(run.status, 0, str(run))
        self.assertRegex(run.stdout, r'100\.00% .* 0x[0-9a-f]+\n')
        self.assertIn('cannot fetch', run.stdout + run.stderr)

    def test_nothing_there(self):
        self.assertIn('which server?', self.show('--debuginfod', status=2).stderr)
        other = live.temp_path('other')
        subprocess.run(['strip', '-o', str(other), str(live.program('missing-put', 'gcc', FLAGS))], check=True)
        run = live.call('probe', 'show', f'--debuginfod={self.url}', '-x', other, '0x0', env=self.env())
        self.assertIn('no debug information for build-id', run.stderr)
        run = self.show('--debuginfod=http://127.0.0.1:1', status=125)
        self.assertIn('cannot fetch', run.stderr)

    def test_wrong_file(self):
        """What has another build-id is not used, and not kept for the next time."""
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Wrong)
        server.asked, server.body = [], pathlib.Path(live.program('missing-put', 'gcc', FLAGS)).read_bytes()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        run = self.show(f'--debuginfod=http://127.0.0.1:{server.server_port}', status=125)
        self.assertIn('is not the debug file of', run.stderr)
        self.assertIn(f'/buildid/{self.ident}/debuginfo', server.asked)
        self.assertEqual(self.kept(), [])
        self.assertFalse(any(self.cache.rglob('debug')) if self.cache.exists() else False)

    def silent(self):
        """A server that takes what is asked and never answers."""
        s = socket.socket()
        s.bind(('127.0.0.1', 0))
        s.listen()
        self.addCleanup(s.close)
        return s, f'http://127.0.0.1:{s.getsockname()[1]}'

    def test_time_out(self):
        _, url = self.silent()
        run = self.show(f'--debuginfod={url}', '--debuginfod-timeout=1s', status=125)
        self.assertIn('no byte of', run.stderr)
        self.assertEqual(self.kept(), [])

    def test_interrupt(self):
        server, url = self.silent()
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([str(live.REFTRACE), 'probe', 'show', f'--debuginfod={url}', '-x', str(self.bare), 'work n'],
                                   env=dict(self.env(), TERM='xterm'), stdout=subprocess.DEVNULL, stderr=slave, stdin=subprocess.DEVNULL)
        os.close(slave)
        self.addCleanup(server.accept()[0].close)
        # on a terminal it says what it does
        text = b''
        while b'debuginfod:' not in text:
            text += os.read(master, 1000)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), -signal.SIGINT)
        self.assertEqual(self.kept(), [])


if __name__ == '__main__':
    unittest.main()
