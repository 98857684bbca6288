# SPDX-License-Identifier: GPL-2.0-only
"""Packages of any Debian release, from apt trees of their own: what this machine has installed stays as it is."""
import pathlib
import shutil
import subprocess

MIRROR = 'http://deb.debian.org/debian'
KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'


class Missing(Exception):
    """What cannot be had; the text says why."""


def apt(folder, *words, cwd=None, limit=300):
    """An apt command in a tree of its own. -> its output"""
    options = {'Dir::Etc::sourcelist': folder / 'sources.list', 'Dir::Etc::sourceparts': '/dev/null',
               'Dir::State::lists': folder / 'lists', 'Dir::Cache': folder / 'cache', 'Dir::State::status': '/dev/null',
               'Acquire::Languages': 'none', 'Acquire::http::Timeout': '30', 'Acquire::Retries': '2',
               'APT::Sandbox::User': 'root'}
    command = [words[0], *[w for k, v in options.items() for w in ('-o', f'{k}={v}')], *map(str, words[1:])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=limit,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Missing(f'{" ".join(words[:2])}: {e}') from e
    # apt-get update ends with 0 when nothing could be reached
    if done.returncode or 'Failed to fetch' in done.stderr:
        raise Missing(f'{words[0]} {words[1]}: {(done.stderr.strip().splitlines() or ["no reason given"])[-1]}')
    return done.stdout


def prepare(folder, kind, suite):
    """The tree in folder knows the packages of a suite. kind: deb, or deb-src for sources"""
    for part in ('lists/partial', 'cache/archives/partial'):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / 'sources.list').write_text(f'{kind} [signed-by={KEYRING}] {MIRROR} {suite} main\n')
    apt(folder, 'apt-get', 'update')


def source(folder, name, suite='bookworm'):
    """The source package as Debian builds it (its patches applied), checked by apt. -> where it is unpacked"""
    tree = pathlib.Path(folder, name)
    if not tree.is_dir():
        prepare(folder, 'deb-src', suite)
        apt(folder, 'apt-get', '--download-only', '--only-source', 'source', name, cwd=folder)
        packages = sorted(folder.glob(name + '_*.dsc'), key=lambda p: p.stat().st_mtime)
        if not packages:
            raise Missing(f'apt-get source {name} left no file')
        # apt has checked the signature of the list that has the sum of the .dsc, and the sums that are in that
        shutil.rmtree(str(tree) + '.new', ignore_errors=True)
        command = ['dpkg-source', '--no-check', '-x', str(packages[-1]), str(tree) + '.new']
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as e:
            raise Missing('dpkg-source is not installed (package dpkg-dev)') from e
        if done.returncode:
            raise Missing(f'dpkg-source -x {packages[-1].name}: {done.stderr.strip()}')
        pathlib.Path(str(tree) + '.new').rename(tree)
    return tree
