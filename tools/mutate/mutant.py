# SPDX-License-Identifier: GPL-2.0-only
"""Mutants: one seeded fault each, with its truth. The lines keep their numbers."""
import collections
import random
import re

KINDS = ('missing_put', 'missing_put_error_path', 'extra_get', 'extra_put', 'put_too_early')
LEAVES = re.compile(r'\s*;(?:[^;{}]*;)?\s*(?:return|goto|break|continue)\b')


class Mutant:
    """An edit of one file: what stands from begin to end becomes text."""

    def __init__(self, kind, way, call, type_name, begin, end, text):
        self.kind, self.way, self.call, self.type = kind, way, call, type_name
        self.begin, self.end = begin, end
        lost = call.source.text.count('\n', begin, end) - text.count('\n')
        self.text = text + '\n' * lost
        self.site = (call.source.path, call.begin)
        self.counted, self.object = '1', '0'  # in C; 0: it cannot be told without computing it twice
        self.early = None  # the object that is put before its use
        self.needs_end = False  # a fault only where the object ends in a run that is well

    def apply(self, put=None):
        """-> the file with the fault; put: what its call becomes then"""
        source = self.call.source
        text = self.text.replace(self.call.text(), put, 1) if put else self.text
        return source.text[:self.begin] + text + source.text[self.end:]

    def key(self):
        return f'{self.call.source.path}:{self.begin}:{self.way}'


def error_path(call):
    """The put stands in an inner block that leaves right after it."""
    clean, function = call.source.clean, call.function
    inner = clean.count('{', function.begin, call.begin) - clean.count('}', function.begin, call.begin) > 1
    return inner and bool(LEAVES.match(clean, call.end))


def replaced(call, argument):
    """A member that is put and then assigned."""
    if not re.search(r'->|\.|\[', argument):
        return False
    name = re.escape(argument.lstrip('&'))
    return bool(re.match(r'[^{}]{0,200}?' + name + r'\s*=[^=]', call.source.clean[call.end:call.function.end]))


class Maker:
    """All mutants of a source file for one type."""

    def __init__(self, kind, source):
        self.kind, self.source = kind, source
        self.own = {f.name for op in ('new', 'get', 'put', 'free', 'hidden', 'wrappers') for f in getattr(kind, op)}
        self.gets = {f.name: f for f in kind.get + kind.get_macros}
        self.puts = {f.name: f for f in kind.put + kind.put_macros}
        self.macros = {f.name for f in kind.get_macros + kind.put_macros}

    def mutant(self, kind, way, call, begin, end, text):
        made = Mutant(kind, way, call, self.kind.name, begin, end, text)
        place = self.puts.get(call.name) or self.gets[call.name]
        text, plain = self.object_of(call)
        if plain and not place.out:
            made.object = f'({"*" if place.pointer else ""}({text}))'
            made.counted = self.kind.counted.format(made.object)
            made.needs_end = kind not in ('extra_put', 'put_too_early') and not self.kind.pooled
        return made

    def all(self):
        for call in self.source.calls(set(self.gets) | set(self.puts)):
            if call.function.name in self.own or not self.is_ours(call):
                continue
            if call.name in self.puts:
                yield from self.of_put(call)
            if call.name in self.gets:
                yield from self.of_get(call)

    def is_ours(self, call):
        """Types may share a macro: where it stands and what the object is called tells them apart."""
        text = f'{self.source.path.name}:{self.object_of(call)[0]}'
        return call.name not in self.macros or bool(self.kind.objects.fullmatch(text))

    def object_of(self, call):
        """(the object as an expression, may it be computed twice?)"""
        place = (self.puts.get(call.name) or self.gets[call.name])
        if place.argument > len(call.arguments):
            return None, False
        text = call.arguments[place.argument - 1]
        return text, call.plain(text)

    def of_put(self, call):
        argument, plain = self.object_of(call)
        if argument is None:
            return
        text = call.text()
        if not call.is_statement or call.given:
            # what it says is said for it: all is well
            yield self.mutant('missing_put', 'deleted put', call, call.begin, call.end, '(0)')
            return
        kind = 'missing_put_error_path' if error_path(call) else 'missing_put'
        way = 'replaced member' if replaced(call, argument) else 'deleted put'
        yield self.mutant(kind, way, call, call.begin, call.end, '((void)0)')
        if not plain:
            return
        if not self.puts[call.name].pointer:
            yield self.mutant('extra_put', 'doubled put', call, call.begin, call.end,
                              f'do {{ {text}; {text}; }} while (0)')
        yield from self.earlier(call, argument)

    def earlier(self, call, argument):
        """The statement before it is a call that is given the object: the put goes before that. Who only reads a member is
        nothing that can be traced."""
        clean, begin = self.source.clean, call.function.begin
        before = re.search(r'[;{}]\s*(\w+\s*\([^;{}]*\)\s*;)\s*$', clean[begin:call.begin])
        word = argument.lstrip('&')
        if not before or self.puts[call.name].pointer or \
                not re.search(r'(?<![\w.>])' + re.escape(word) + r'(?!\w|\s*(?:->|\.|\[))', before.group(1)):
            return
        name = before.group(1).split('(')[0].strip()
        # what is called like a macro may do nothing, as one for debugging does
        if name in self.own | {'if', 'while', 'for', 'switch', 'return'} or name.isupper():
            return
        start = begin + before.start(1)
        used = self.source.text[start:begin + before.end(1)]
        blanks = self.source.text[begin + before.end(1):call.begin]
        early = self.mutant('put_too_early', 'put before use', call, start, call.end,
                            f'{call.text()}; {used}{blanks}((void)0)')
        early.early = argument
        yield early

    def of_get(self, call):
        argument, plain = self.object_of(call)
        if argument is None or not plain:
            return
        text = call.text()
        if call.is_statement and not call.given:
            yield self.mutant('extra_get', 'doubled get', call, call.begin, call.end,
                              f'do {{ {text}; {text}; }} while (0)')
        else:
            yield self.mutant('extra_get', 'doubled get', call, call.begin, call.end, f'({text}, {text})')
        put = next((p for p in self.puts.values() if not p.pointer and p.argument == 1), None)
        if put and call.is_statement:
            whole = self.source.text[call.statement_begin:call.end]
            argument = f'*({argument})' if self.gets[call.name].out else argument
            yield self.mutant('extra_put', 'put what was just taken', call, call.statement_begin, call.end,
                              f'do {{ {whole}; {put.name}({call.given or argument}); }} while (0)')


def choose(mutants, count, seed):
    """At most count of them, the kinds in turn, of each as many functions as there are, by a seed."""
    order = random.Random(seed)
    piles = {kind: sorted((m for m in mutants if m.kind == kind), key=Mutant.key) for kind in KINDS}
    for pile in piles.values():
        order.shuffle(pile)
        turn, many = {}, collections.Counter()
        for m in pile:
            many[m.call.function.name] += 1
            turn[m.key()] = many[m.call.function.name]
        pile.sort(key=lambda m: -turn[m.key()])
    chosen = []
    while len(chosen) < count and any(piles.values()):
        for pile in piles.values():
            if pile and len(chosen) < count:
                chosen.append(pile.pop())
    return chosen
