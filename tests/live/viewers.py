# SPDX-License-Identifier: GPL-2.0-only
"""The viewers that exports are for, from the npm registry: speedscope and the Firefox profiler, each in one version whose
hash is known here. They come by npm into the build folder, once; where they cannot be had, tests are skipped with the
reason.

Perfetto's trace_processor and Mozilla's tools/rb are in no package: Debian's perfetto (sid) has the recording side only, Mozilla's
scripts are just in the source of Firefox (800 MB). So test_export.py reads Perfetto's format by protoc, and the refcount log by
the rules of find_leakers.py and make-tree.pl."""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest

import live

SPEEDSCOPE = ('speedscope', '1.25.0',
              'cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag==')
PROFILER = ('@firefox-devtools/profiler-cli', '0.10.0',
            'f9fqdHh7B6ddQIYrwrEs4FE5D8BMOsXSorYF4NRFfwPaGikVBlhorBxHT7zrb6WMgJgKQYHC9kazkRjbItLx8Q==')


def package(name, version, sha512):
    """-> where the package of the npm registry is unpacked"""
    folder = live.BUILD / 'viewers' / f'{name.replace("/", "-")}-{version}'
    if folder.is_dir():
        return folder / 'package'
    if not shutil.which('npm'):
        raise unittest.SkipTest('npm is not installed')
    folder.parent.mkdir(exist_ok=True)
    # another worker may do the same now
    with tempfile.TemporaryDirectory(dir=folder.parent) as new:
        try:
            done = subprocess.run(['npm', 'pack', '--silent', '--ignore-scripts', f'{name}@{version}'], cwd=new, text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
        except subprocess.TimeoutExpired as e:
            raise unittest.SkipTest(f'{name} {version} cannot be had: npm takes longer than {e.timeout} s') from e
        packed = list(pathlib.Path(new).glob('*.tgz'))
        if done.returncode or not packed:
            raise unittest.SkipTest(f'{name} {version} cannot be had: {done.stderr.strip()[-300:] or "npm gives no reason"}')
        have = base64.b64encode(hashlib.sha512(packed[0].read_bytes()).digest()).decode()
        assert have == sha512, f'{name} {version} of the npm registry is not what it was: {have}'
        with tarfile.open(packed[0]) as tar:
            tar.extractall(pathlib.Path(new, 'unpacked'))
        try:
            os.rename(pathlib.Path(new, 'unpacked'), folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder / 'package'


def node(*words, env=None, status=0):
    """What a program of Node.js prints."""
    if not shutil.which('node'):
        raise unittest.SkipTest('Node.js is not installed (nodejs)')
    done = subprocess.run(['node', *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                          timeout=120, env={**live.clean_env(), **(env or {})})
    if status is not None and done.returncode != status:
        raise AssertionError(f'{words}: {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout if status is not None else done.stdout + done.stderr


def speedscope_schema():
    """The JSON schema that speedscope publishes for its files."""
    return json.loads((package(*SPEEDSCOPE) / 'dist' / 'release' / 'file-format-schema.json').read_text())


def speedscope(path):
    """What speedscope reads there: profiles with their paths, weights and frames."""
    bundle, = (package(*SPEEDSCOPE) / 'dist' / 'release').glob('speedscope-*.js')
    return json.loads(node(live.SOURCE / 'tests' / 'live' / 'read_speedscope.js', bundle, path))


class Profiler:
    """A session of the Firefox profiler's own command line with a profile in it. A context."""

    def __init__(self, path):
        self.program = package(*PROFILER) / 'dist' / 'profiler-cli.js'
        self.path = path

    def __enter__(self):
        # it has a daemon, whose socket's path must be short
        self.folder = tempfile.TemporaryDirectory(prefix='rt-fx-', dir='/tmp')
        self.env = {'PROFILER_CLI_SESSION_DIR': self.folder.name, 'PROFILER_CLI_NO_SYMBOLICATE': '1'}
        said = node(self.program, 'load', self.path, '--session', 's', env=self.env, status=None)
        # on a busy machine it leaves before its daemon is ready
        until = time.monotonic() + 60
        while 'profile-info' not in node(self.program, 'profile', 'info', '--json', '--session', 's', env=self.env, status=None):
            if time.monotonic() > until:
                self.__exit__()
                raise AssertionError(said)
        return self

    def __exit__(self, *_):
        node(self.program, 'stop', 's', env=self.env, status=None)
        self.folder.cleanup()

    def ask(self, *words):
        return json.loads(node(self.program, *words, '--json', '--session', 's', env=self.env))

    def threads(self):
        """name -> handle"""
        listed = self.ask('thread', 'list')
        assert listed['totalThreadCount'] == len(listed['threads'])
        return {t['name']: t['threadHandle'] for t in listed['threads']}

    def paths(self, thread):
        """Call path -> samples, as the call tree has them."""
        paths, todo = {}, []
        tree = self.ask('thread', 'samples-top-down', '--thread', thread, '--max-lines', '100000')
        todo.append((tree['regularCallTree'], []))
        while todo:
            place, above = todo.pop()
            assert 'childrenTruncated' not in place
            if place['selfSamples']:
                paths[';'.join(above)] = place['selfSamples']
            todo += [(below, [*above, below['name']]) for below in place['children']]
        return paths

    def markers(self, thread):
        """(name, {field: value}) of each marker that the profiler shows"""
        shown = self.ask('thread', 'markers', '--thread', thread, '--list', '--limit', '0')
        return [(m['name'], m['data']) for m in shown['flatMarkers']]
