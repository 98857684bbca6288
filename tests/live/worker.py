#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs what run.py tells it to: each line of standard input is a JSON list of test names. Says what happens as JSON,
one object a line, on the standard output that it was given; all that tests and their children print goes to stderr.

    worker.py LIMIT     a test that takes longer than LIMIT seconds ends the worker, with the place where it hangs
"""
import faulthandler
import json
import os
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def discover():
    """All tests, in the order of their files."""
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    return list(flatten(unittest.defaultTestLoader.discover(str(HERE), 'test_*.py')))


class Says(unittest.TestResult):
    """Tells run.py what begins, what comes of it, and what ends."""

    def __init__(self, stream, limit):
        super().__init__()
        self.stream, self.limit = stream, limit
        self.began = time.monotonic()
        self.sub_failed = False

    def say(self, what, **more):
        sys.stdout.flush()
        printed = os.lseek(2, 0, os.SEEK_CUR)
        print(json.dumps({'what': what, 'printed': printed, **more}), file=self.stream, flush=True)

    def watch(self):
        """The time starts anew, for a test or for what sets its class up and takes it down."""
        faulthandler.dump_traceback_later(self.limit, exit=True)

    def result(self, word, test, text=''):
        self.say('result', word=word, test=test.id(), seconds=time.monotonic() - self.began, text=text)

    def startTest(self, test):
        super().startTest(test)
        self.watch()
        self.began = time.monotonic()
        self.sub_failed = False
        self.say('start', test=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.watch()
        self.say('stop')

    def addSuccess(self, test):
        if not self.sub_failed:
            self.result('ok', test)

    def addFailure(self, test, err):
        self.result('FAIL', test, self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.sub_failed = True
            if issubclass(err[0], unittest.SkipTest):
                self.addSkip(subtest, str(err[1]))
            else:
                self.addFailure(subtest, err)

    def addSkip(self, test, reason):
        self.result('skip', test, reason)


def main():
    # what tests start inherits neither the one nor the other
    orders, stream = os.fdopen(os.dup(0), encoding='utf-8'), os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    result = Says(stream, float(sys.argv[1]))
    tests = {test.id(): test for test in discover()}
    for line in orders:
        result.watch()
        unittest.TestSuite(tests[name] for name in json.loads(line)).run(result)
        faulthandler.cancel_dump_traceback_later()
        result.say('done')


if __name__ == '__main__':
    main()
