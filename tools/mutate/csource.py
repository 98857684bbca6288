# SPDX-License-Identifier: GPL-2.0-only
"""C source as far as a mutation needs it: functions, calls, the statements they stand in. No compiler: what is taken
for something else does not build or never runs, and is dropped for that."""
import bisect
import re

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
                   re.DOTALL | re.MULTILINE)
NOT_A_FUNCTION = {'if', 'for', 'while', 'switch', 'return', 'sizeof', 'do', 'else'}
PLAIN = re.compile(r'[\w\s.>*&()\[\]-]*$')
CALLED = re.compile(r'\w\s*\(')
# what a function's head begins with, up to its name
HEAD = re.compile(r'\s*(?:(?:static|extern|inline|const|unsigned|signed|void|int|char|short|long|bool|struct\s+\w+)[\s*]+)+'
                  r'(?:\w+[\s*]+)*\w+\s*\(')


def masked(text):
    """The same text with comments, strings and preprocessor lines as blanks: every place keeps its offset."""
    return NOISE.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def closing(text, at):
    """Where the bracket at text[at] is closed, or None."""
    pairs = {'(': ')', '{': '}', '[': ']'}
    opened, end, depth = text[at], pairs[text[at]], 0
    for match in re.compile(re.escape(opened) + '|' + re.escape(end)).finditer(text, at):
        depth += 1 if match.group() == opened else -1
        if not depth:
            return match.start()
    return None


class Function:
    """A function's body, from its { to its }."""

    def __init__(self, name, head, begin, end):
        self.name, self.head, self.begin, self.end = name, head, begin, end


class Call:
    """A call: its text from begin to end, the arguments, whether it is a whole statement."""

    def __init__(self, source, function, name, begin, paren, end):
        self.source, self.function, self.name = source, function, name
        self.begin, self.end = begin, end
        self.arguments = split(source.clean, paren + 1, end - 1)
        before = source.clean[function.begin:begin].rstrip()
        # "x = " before it: what it is given to, where nothing else stands in that statement
        given = re.search(r'[;{})]\s*(\w[\w.>\[\]-]*)\s*=$', before)
        self.given = given and given.group(1)
        self.statement_begin = function.begin + given.start(1) if given else begin
        if given:
            before = source.clean[function.begin:self.statement_begin].rstrip()
        after = source.clean[end:function.end]
        self.is_statement = (after.lstrip()[:1] == ';' and
                             bool(re.search(r'(?:[;{}:)]|\belse|\bdo)$', before)) and
                             not re.search(r'\((?:void|[\w ]+\*)\)$', before))
        self.line = source.line(begin)

    def text(self):
        return self.source.text[self.begin:self.end]

    def plain(self, argument):
        """Whether an argument may be computed twice."""
        return bool(PLAIN.match(argument)) and not CALLED.search(argument) and '--' not in argument


def split(clean, begin, end):
    """The arguments between two brackets."""
    parts, depth, start = [], 0, begin
    for at in range(begin, end):
        c = clean[at]
        depth += (c in '([{') - (c in ')]}')
        if c == ',' and not depth:
            parts.append(clean[start:at].strip())
            start = at + 1
    last = clean[start:end].strip()
    return parts + [last] if parts or last else []


class Source:
    """One file."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_bytes().decode('utf-8', 'surrogateescape')
        self.clean = masked(self.text)
        self.lines = [m.start() for m in re.finditer('\n', self.text)]
        self.functions = list(self.find_functions())

    def line(self, offset):
        return bisect.bisect_left(self.lines, offset) + 1

    def find_functions(self):
        at = 0
        while True:
            begin = self.clean.find('{', at)
            if begin < 0:
                return
            end = closing(self.clean, begin)
            head = re.split(r'[;}]', self.clean[at:begin])[-1]
            name = self.head_name(head)
            if not name:
                # a struct, an initializer; extern "C" { holds functions
                at = begin + 1 if end is None or re.search(r'\bextern\s*$', head) else end + 1
                continue
            # an #if with two openings of one body: the end is the next brace in the first column
            first = re.compile(r'^}', re.MULTILINE).search(self.clean, begin)
            if first and (end is None or first.start() < end):
                end = first.start()
            if end is None:
                return
            yield Function(name, head, begin, end)
            at = end + 1

    @staticmethod
    def head_name(head):
        """The function's name in what stands before its body; None where that is no function."""
        if '=' in re.sub(r'\([^()]*\)', '', head) or re.search(r'\b(?:struct|union|enum)\s+\w*\s*$', head):
            return None
        for match in re.finditer(r'\b(\w+)\s*\(', head):
            if match.group(1) not in NOT_A_FUNCTION and not match.group(1).startswith('__attribute'):
                end = closing(head, match.end() - 1)
                rest = head[end + 1:] if end is not None else '?'
                # a macro before it: DEFINE_STACK_OF(X) static void collect(...), local_CHOICE_END(X) static int cb(...)
                if HEAD.match(rest) or (match.group(1).isupper() and re.search(r'\w\s*\(', rest)):
                    continue
                if re.fullmatch(r'[\w\s(),*]*', rest) and not re.match(r'\s*\w*[a-z]\w*\s*\(', rest):
                    return match.group(1)
                if end is not None and not re.search(r'\w\s*\(', rest):
                    return match.group(1)
        return None

    def calls(self, names):
        """All calls of these functions, in the order of the text."""
        if not names:
            return
        wanted = re.compile(r'\b(' + '|'.join(map(re.escape, sorted(names))) + r')\s*\(')
        for function in self.functions:
            for match in wanted.finditer(self.clean, function.begin, function.end):
                end = closing(self.clean, match.end() - 1)
                if end is not None and end < function.end:
                    yield Call(self, function, match.group(1), match.start(), match.end() - 1, end + 1)
