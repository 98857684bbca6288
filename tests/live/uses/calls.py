# SPDX-License-Identifier: GPL-2.0-only
"""What the uses of libraries share: functions of shared libraries by ctypes, and what is done to each kind of object."""
import atexit
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

TIMES = 4


def skip(why):
    print(why, file=sys.stderr)
    sys.exit(77)


class Lib:
    """f = Lib('libx.so.1'); f.name(arguments): pointers and numbers in, a pointer out. Not here: the test is skipped."""

    def __init__(self, name):
        try:
            self._lib = ctypes.CDLL(name)
        except OSError as e:
            skip(e)

    def __getattr__(self, name):
        function = getattr(self._lib, name)
        function.restype = ctypes.c_void_p

        def call(*args):
            return function(*[ctypes.c_void_p(a) if isinstance(a, int) and a > 1 << 31 else a for a in args])
        call.__name__ = name
        return call

    def address(self, name):
        """of a function or variable"""
        return ctypes.cast(getattr(self._lib, name), ctypes.c_void_p).value


def out(call, *args):
    """the pointer that a function hands out; its place among the arguments is None"""
    place = ctypes.c_void_p()
    result = call(*[ctypes.byref(place) if a is None else a for a in args])
    if ctypes.c_int(result or 0).value < 0 or not place.value:
        raise RuntimeError(f'{call.__name__}: {result}')
    return place.value


def need(pointer):
    if not pointer:
        raise RuntimeError('a constructor failed')
    return pointer


def doubles(*numbers):
    return [ctypes.c_double(n) for n in numbers]


def life(make, get, put):
    """made, taken, given back twice; and held by two others meanwhile"""
    for _ in range(TIMES):
        o = need(make())
        get(o)
        get(o)
        put(o)
        put(o)
        put(o)


def made(put, *makers):
    """made and given back: the put shows what the count starts with"""
    for make in makers:
        for _ in range(TIMES):
            put(need(make()))


def handed(put, *finds):
    """handed out again while it is held: what a find adds shows beside what was there"""
    for find in finds:
        held = [need(find()) for _ in range(TIMES)]
        for o in held:
            put(o)


def folder():
    """a path that is gone at the end"""
    path = tempfile.mkdtemp(prefix='uses-')
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def file(text, name='file'):
    path = os.path.join(folder(), name)
    with open(path, 'wb') as f:
        f.write(text)
    return path


def stream(path, mode='rb'):
    """FILE *, which is never closed"""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    return need(libc.fopen(path.encode(), mode.encode()))


def setenv(name, value):
    """for the C library, which has an environment of its own"""
    ctypes.CDLL(None).setenv(name.encode(), value.encode(), 1)


def bus():
    """address of a message bus of our own"""
    daemon = shutil.which('dbus-daemon')
    if not daemon:
        skip('dbus-daemon is not installed')
    process = subprocess.Popen([daemon, '--session', '--print-address', '--nofork'], stdout=subprocess.PIPE, text=True)
    atexit.register(process.wait)
    atexit.register(process.kill)
    return process.stdout.readline().strip()
