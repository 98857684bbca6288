# SPDX-License-Identifier: GPL-2.0-only
"""A recipe: how a program is fetched, built and run, and what its types are. recipes/README.md tells the format."""
import re
import tomllib

PLACE = re.compile(r'(?P<name>[\w@]+)(?::(?P<place>(?P<pointer>\*?)(?P<argument>\d+)|ret|out\*\d+))?(?P<rest>\?.*)?$')
KEYS = {'package', 'configure', 'build', 'artifacts', 'run', 'sources', 'traits', 'type', 'flags', 'files', 'known', 'alias'}
OPS = ('new', 'get', 'put', 'free', 'hidden', 'wrappers')
MACROS = ('get_macros', 'put_macros')


class BadRecipe(Exception):
    """The text says what is wrong."""


class Operation:
    """A function as a SPEC names it."""

    def __init__(self, text):
        match = PLACE.match(text)
        if not match:
            raise BadRecipe(f'"{text}" is no FUNCTION[:PLACE]')
        self.text, self.name = text, match['name']
        self.pointer = bool(match['pointer'])
        self.out = (match['place'] or '').startswith('out')
        self.argument = int(match['argument'] or re.sub(r'\D', '', match['place'] or '') or 1)

    def entry(self):
        return {'function': self.name, 'spec': self.text}


class Type:
    """A counted type. counted: when it is, as an expression in C, {} being the object."""

    def __init__(self, table):
        unknown = set(table) - {'name', 'start', 'counter', 'counted', 'objects', 'pooled', *OPS, *MACROS}
        if unknown:
            raise BadRecipe(f'type: unknown key {sorted(unknown)[0]}')
        self.name, self.start, self.counter = table['name'], table.get('start'), table.get('counter')
        self.new, self.get, self.put, self.free, self.hidden, self.wrappers = (
            [Operation(text) for text in table.get(op, [])] for op in OPS)
        # what is a macro is a site, but no function to be told of; in lists of suspects it is none
        self.get_macros, self.put_macros = ([Operation(text) for text in table.get(op, [])] for op in MACROS)
        self.counted = table.get('counted', '{0} != 0')
        self.pooled = table.get('pooled', False)
        self.objects = re.compile(table.get('objects', '.*'), re.DOTALL)

    def truth(self):
        told = {op: [f.entry() for f in getattr(self, op)] for op in OPS}
        told['wrappers'] += [f.entry() for f in self.get_macros + self.put_macros]
        return {**told, 'count_start': self.start, 'counter': self.counter}


class Recipe:
    """One program."""

    def __init__(self, path):
        self.path, self.name = path, path.stem
        table = tomllib.loads(path.read_text())
        unknown = set(table) - KEYS
        if unknown:
            raise BadRecipe(f'{path.name}: unknown key {sorted(unknown)[0]}')
        self.package = table.get('package')
        self.configure, self.build, self.run = table.get('configure', ':'), table['build'], table['run']
        self.artifacts, self.sources = table['artifacts'], table['sources']
        self.traits, self.flags, self.files = table.get('traits', []), table.get('flags', ''), table.get('files', [])
        self.known, self.alias = table.get('known', []), table.get('alias')
        self.types = [Type(t) for t in table['type']]
