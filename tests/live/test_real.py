# SPDX-License-Identifier: GPL-2.0-only
"""Programs as Debian installs them, stripped: traced with the preset gobject they print and return what they do
untraced, the counts equal those of an independent tracer (bpftrace), and trust is complete. `./dev test real` only."""
import os
import re
import shutil
import struct
import subprocess
import unittest
import zlib

import live

LIBRARIES = ('/lib/x86_64-linux-gnu/libgobject-2.0.so.0', '/lib/x86_64-linux-gnu/libglib-2.0.so.0',
             '/lib/x86_64-linux-gnu/libgio-2.0.so.0')
RESOURCES = ('<?xml version="1.0" encoding="UTF-8"?>\n<gresources><gresource prefix="/a">'
             + ''.join(f'<file>f{i}.txt</file>' for i in range(40)) + '</gresource></gresources>\n')
# every function of the preset that starts with a lock prefix: a uprobe at its first instruction never fires
PREFIXES = (0xf0, 0x2e, 0x3e, 0x26, 0x36)


def png(width=16, height=16):
    rows = b''.join(b'\0' + b''.join(bytes((x * 16 % 256, y * 16 % 256, 128)) for x in range(width))
                    for y in range(height))

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    head = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')


def inputs():
    """A folder with real input for the programs."""
    folder = live.temp_path('input')
    folder.mkdir()
    (folder / 'r.xml').write_text(RESOURCES)
    for i in range(40):
        (folder / f'f{i}.txt').write_text(f'file {i}\n' * 20)
    (folder / 'p.png').write_bytes(png())
    return folder


PROGRAMS = {
    'gio-info': ['gio', 'info', '/etc/passwd'],
    'gio-list': ['gio', 'list', '/etc'],
    'glib-compile-resources': ['glib-compile-resources', '--sourcedir=.', '--generate-source', '--target=/dev/stdout',
                               'r.xml'],
    'gdk-pixbuf-csource': ['gdk-pixbuf-csource', '--raw', 'p.png'],
}


def counted_at_entry(library, functions):
    """Those of functions whose first instruction a plain uprobe can count."""
    listing = subprocess.run(['objdump', '-T', library], capture_output=True, text=True, check=True).stdout
    data = open(os.path.realpath(library), 'rb').read()
    able = {}
    for line in listing.splitlines():
        m = re.match(r'([0-9a-f]+) .* \.text\s+[0-9a-f]+\s+\S+\s+(\S+)$', line)
        if m and m.group(2) in functions:
            # Debian's libraries have their text at file offset == address
            at = int(m.group(1), 16)
            first = data[at:at + 5]
            if first[0] not in PREFIXES:
                able[m.group(2)] = at
    return able


class Installed(live.LiveTest):
    def setUp(self):
        if not live.REAL:
            self.skipTest('heavy: ./dev test real')
        live.need_engine()
        if not shutil.which('bpftrace'):
            self.skipTest('bpftrace, the independent counter, is not installed')
        self.folder = inputs()

    def independent(self, argv, functions):
        """function -> hits with a non-null first argument, by bpftrace"""
        program, wanted = [], set(functions)
        for library in LIBRARIES:
            for name in counted_at_entry(library, wanted):
                program.append(f'uprobe:{library}:{name} /arg0 != 0/ {{ @["{name}"] = count(); }}')
        done = subprocess.run(['bpftrace', '-e', ' '.join(program), '-c', ' '.join(argv)], capture_output=True, text=True,
                              cwd=self.folder, env=live.clean_env(), check=False, timeout=300)
        counts = {m.group(1): int(m.group(2)) for m in re.finditer(r'^@\[(\w+)\]: (\d+)$', done.stdout, re.M)}
        return counts, {re.search(r':(\w+) /', p).group(1) for p in program}

    def check(self, name):
        """With the preset gobject (objects, variants and boxed types) every operation is seen."""
        argv = PROGRAMS[name]
        path = shutil.which(argv[0])
        if not path:
            self.skipTest(f'{argv[0]} is not installed')
        argv = [path, *argv[1:]]
        plain = subprocess.run(argv, capture_output=True, text=True, errors='replace', cwd=self.folder,
                               env=live.clean_env(), check=False)
        run = live.trace('-P', 'gobject', '--', *argv, cwd=self.folder)
        trust = run.findings['trust']
        self.assertEqual(run.stdout, plain.stdout)
        self.assertEqual((trust['lost'], trust['unarmed']), (0, []), run.stderr)
        self.assert_clean_trust(run)
        self.assertEqual(run.findings['findings'], [], str(run))
        self.assertEqual(run.status, plain.returncode, run.stderr)
        ours = {}
        for point in run.findings['points']:
            # entry points with the object as first argument are what bpftrace counts; each function once;
            # how often another thread's main loop dispatches its sources differs from run to run
            if point['op'] in ('get', 'put') and point['events'] and not point['function'].startswith('g_source_'):
                ours[point['function']] = ours.get(point['function'], 0) + point['events']
        self.assertTrue(ours, 'no event at all')
        theirs, able = self.independent(argv, list(ours))
        both = sorted(set(ours) & able)
        self.assertTrue(both)
        self.assertEqual({f: ours[f] for f in both}, {f: theirs.get(f, 0) for f in both}, str(run))


def add(name):
    setattr(Installed, 'test_' + name.replace('-', '_'), lambda self: self.check(name))


for _name in PROGRAMS:
    add(_name)

if __name__ == '__main__':
    unittest.main()
