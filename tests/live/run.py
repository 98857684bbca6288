#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs tests/live/test_*.py: one line per test, at the end `N passed, N failed, N skipped`.

    run.py [--real] [NAME...]       --real: the heavy variants, too; NAME: only tests whose name contains it
"""
import os
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Lines(unittest.TestResult):
    """Prints each result as it comes."""

    def __init__(self):
        super().__init__()
        self.counts = {'passed': 0, 'failed': 0, 'skipped': 0}
        self.began = 0.0
        self.sub_failed = False

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.sub_failed = False

    def _line(self, word, test, text=''):
        name = test.id()
        print(f'{word:4} {name} ({time.monotonic() - self.began:.1f} s)' + (f': {text}' if text else ''), flush=True)

    def _failure(self, test, err):
        self.counts['failed'] += 1
        self._line('FAIL', test)
        print('    ' + self._exc_info_to_string(err, test).rstrip().replace('\n', '\n    '), flush=True)

    def addSuccess(self, test):
        if not self.sub_failed:
            self.counts['passed'] += 1
            self._line('ok', test)

    def addFailure(self, test, err):
        self._failure(test, err)

    def addError(self, test, err):
        self._failure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.sub_failed = True
            if issubclass(err[0], unittest.SkipTest):
                self.addSkip(subtest, str(err[1]))
            else:
                self._failure(subtest, err)

    def addSkip(self, test, reason):
        self.counts['skipped'] += 1
        self._line('skip', test, reason)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def main():
    words = [a for a in sys.argv[1:] if not a.startswith('-')]
    if '--real' in sys.argv:
        os.environ['RT_REAL'] = '1'
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    result = Lines()
    tests = flatten(unittest.defaultTestLoader.discover(str(HERE), 'test_*.py'))
    unittest.TestSuite(t for t in tests if not words or any(w in t.id() for w in words)).run(result)
    counts = result.counts
    print(f'{counts["passed"]} passed, {counts["failed"]} failed, {counts["skipped"]} skipped')
    return 1 if counts['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
