"""PTX text to functions, variables and instructions, each with its line. What a statement means stands in `translate`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SIZES = {f"{kind}{bits}": bits // 8 for kind in "busf" for bits in (8, 16, 32, 64, 128)}
SIZES |= {"pred": 1, "f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4}
_SPACES = (".global", ".const", ".shared", ".local", ".param")
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|//[^\n]*|/\*.*?\*/)|(?P<newline>\n)|(?P<string>"[^"]*")
    |(?P<float>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b)
    |(?P<number>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+(?:\.\d+)?)U?)
    |(?P<name>[.%$_A-Za-z][\w$]*(?:(?:::|\.)[\w$]+)*)|(?P<mark>.)""",
    re.X | re.S,
)


class Refused(Exception):
    """PTX that the emulator does not know, or that is wrong; with the line."""

    def __init__(self, line: int, what: str):
        super().__init__(f"line {line}: {what}")
        self.line, self.what = line, what


@dataclass(frozen=True)
class Address:
    """``[base+offset]``; ``base`` is a register, a variable, or empty."""

    base: str
    offset: int


@dataclass(frozen=True)
class Number:
    """A number in the text: an integer, or the bits of a float of ``size`` bytes."""

    value: int
    size: int = 0


@dataclass
class Instruction:
    line: int
    op: str
    args: list
    guard: str = ""  # the predicate's register
    unless: bool = False  # the guard is negated

    @property
    def parts(self) -> list[str]:
        return self.op.split(".")


@dataclass
class Label:
    name: str


@dataclass
class Variable:
    name: str
    space: str
    size: int
    align: int
    line: int
    initial: bytes | None = None
    dynamic: bool = False


@dataclass
class Function:
    name: str
    line: int
    entry: bool
    params: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)  # name: type
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list = field(default_factory=list)
    tables: dict[str, list[str]] = field(default_factory=dict)  # of branch targets
    max_threads: tuple[int, ...] = ()
    exact_threads: tuple[int, ...] = ()


@dataclass
class Module:
    version: str = ""
    target: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


class _Reader:
    def __init__(self, text: str):
        self.tokens: list[tuple[str, str, int]] = []
        line = 1
        for m in _TOKEN.finditer(text):
            kind, word = m.lastgroup, m[0]
            if kind == "newline":
                line += 1
            elif kind == "skip":
                line += word.count("\n")
            else:
                self.tokens.append((kind, word, line))
        self.tokens.append(("end", "", line))
        self.at = 0

    @property
    def word(self) -> str:
        return self.tokens[self.at][1]

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def line(self) -> int:
        return self.tokens[self.at][2]

    def take(self, expected: str = "") -> str:
        word = self.word
        if self.kind == "end" or (expected and word != expected):
            raise Refused(self.line, f"expected {expected or 'more'!r}, got {word or 'the end'!r}")
        self.at += 1
        return word

    def found(self, word: str) -> bool:
        if self.word == word and self.kind != "string":
            self.at += 1
            return True
        return False

    def rest_of_line(self) -> None:
        line = self.line
        while self.kind != "end" and self.line == line:
            self.at += 1

    def number(self) -> Number:
        negative = self.found("-")
        kind, word = self.kind, self.take()
        if kind == "float":
            size = 4 if word[1] in "fF" else 8
            bits = int(word[2:], 16)
            return Number(bits ^ (1 << (8 * size - 1)) if negative else bits, size)
        if kind != "number" or "." in word:
            raise Refused(self.line, f"expected a number, got {word!r}")
        value = int(word.rstrip("U"), 0) if not re.fullmatch(r"0[0-7]+", word) else int(word, 8)
        return Number(-value if negative else value)

    def integer(self) -> int:
        return self.number().value


class Parser:
    def __init__(self, text: str):
        self.r = _Reader(text)
        self.module = Module()

    def parse(self) -> Module:
        r = self.r
        while r.kind != "end":
            word = r.word
            if word == ".version":
                r.take()
                self.module.version = r.take()
            elif word == ".target":
                r.take()
                self.module.target = r.take()
                while r.found(","):
                    r.take()
            elif word == ".address_size":
                r.take()
                if r.integer() != 64:
                    raise Refused(r.line, "addresses of 32 bits")
            elif word in (".file", ".loc"):
                r.rest_of_line()
            elif word == ".section":
                while r.take() != "}":
                    pass
            elif word in (".visible", ".extern", ".weak", ".common"):
                r.take()
            elif word in (".entry", ".func"):
                self.function()
            elif word in _SPACES:
                variable = self.variable()
                self.module.variables[variable.name] = variable
            elif not r.found(";"):
                raise Refused(r.line, f"directive {word!r}")
        return self.module

    # ---- declarations ------------------------------------------------------------------------------------------------

    def variable(self, parameter: bool = False) -> Variable:
        """One of a space, up to its ``;``, or up to the comma behind a parameter."""
        r, line = self.r, self.r.line
        space, align, size = r.take()[1:], 0, 0
        while r.kind == "name" and r.word[0] == ".":
            word = r.take()
            if word == ".align":
                align = r.integer()
            elif word[1:] in SIZES:
                size = SIZES[word[1:]]
            elif word in (".v2", ".v4"):
                align, size = align or size * int(word[2]), size * int(word[2])
            elif word not in (".ptr", ".global", ".shared", ".const", ".local", ".relocatable", ".managed"):
                raise Refused(line, f"{word} in a declaration")
            elif word == ".managed":
                raise Refused(line, "managed memory")
            if word == ".ptr":  # its space and alignment are of what it points to
                while r.word in (*_SPACES, ".align"):
                    if r.take() == ".align":
                        r.take()
        if not size:
            raise Refused(line, f"a variable of no known type in .{space}")
        name, item, dynamic, initial = r.take(), size, False, None
        while r.found("["):
            if r.found("]"):
                dynamic, size = True, 0
            else:
                size *= r.integer()
                r.take("]")
        if r.found("="):
            values = self.initial()
            initial = b"".join((v.value & ((1 << 8 * item) - 1)).to_bytes(item, "little") for v in values)
            if len(initial) > size:
                raise Refused(line, f"{name} has {size} bytes and {len(initial)} to begin with")
        if not parameter:
            r.take(";")
        return Variable(name, space, size, align or item, line, initial, dynamic)

    def initial(self) -> list[Number]:
        r = self.r
        if not r.found("{"):
            if r.kind == "name":
                raise Refused(r.line, f"the address of {r.word} as a value to begin with")
            return [r.number()]
        values = []
        while not r.found("}"):
            values += self.initial()
            r.found(",")
        return values

    def parameters(self) -> list[Variable]:
        r, found = self.r, []
        while not r.found(")"):
            if r.word == ".reg":
                raise Refused(r.line, "a parameter in a register")
            found.append(self.variable(parameter=True))
            r.found(",")
        return found

    def function(self) -> None:
        r = self.r
        entry, line = r.take() == ".entry", r.line
        results = self.parameters() if r.found("(") else []
        f = Function(r.take(), line, entry, results=results)
        if r.found("("):
            f.params = self.parameters()
        while r.word not in ("{", ";"):
            word = r.take()
            if word in (".maxntid", ".reqntid"):
                sizes = [r.integer()]
                while r.found(","):
                    sizes.append(r.integer())
                if word == ".maxntid":
                    f.max_threads = tuple(sizes)
                else:
                    f.exact_threads = tuple(sizes)
            elif word in (".minnctapersm", ".maxnreg", ".noreturn"):
                if word != ".noreturn":
                    r.integer()
            elif word == ".pragma":
                r.take()
                r.found(";")
            else:
                raise Refused(r.line, f"{word} at a function")
        if r.found(";"):
            self.module.functions.setdefault(f.name, f)
            return
        r.take("{")
        self.scope(f, {})
        self.module.functions[f.name] = f

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def scope(self, f: Function, names: dict[str, str]) -> None:
        """Statements up to the ``}`` that ends the scope. ``names`` renames what a scope within the function declares."""
        r, names = self.r, dict(names)

        def declare(name: str, known: dict) -> str:
            own = name
            while own in known:
                own += "'"
            if own != name:
                names[name] = own
            return own

        while not r.found("}"):
            word, line = r.word, r.line
            if word == "{":
                r.take()
                self.scope(f, names)
            elif word == ".reg":
                r.take()
                kind = r.take()[1:]
                if kind not in SIZES:
                    raise Refused(line, f"a register of type .{kind}")
                while True:
                    name = r.take()
                    if r.found("<"):
                        for i in range(r.integer()):
                            f.registers[declare(f"{name}{i}", f.registers)] = kind
                        r.take(">")
                    else:
                        f.registers[declare(name, f.registers)] = kind
                    if not r.found(","):
                        break
                r.take(";")
            elif word in _SPACES:
                variable = self.variable()
                variable.name = declare(variable.name, f.variables)
                f.variables[variable.name] = variable
            elif word in (".loc", ".file"):
                r.rest_of_line()
            elif word == ".pragma":
                while r.take() != ";":
                    pass
            elif word[:1] == ".":
                raise Refused(line, f"directive {word!r}")
            elif r.tokens[r.at + 1][1] == ":" and r.kind == "name":
                name = r.take()
                r.take(":")
                if r.word == ".branchtargets":
                    r.take()
                    f.tables[name] = [r.take()]
                    while r.found(","):
                        f.tables[name].append(r.take())
                    r.take(";")
                elif r.word == ".callprototype":
                    raise Refused(line, "a call by a pointer")
                else:
                    f.body.append(Label(name))
            elif not r.found(";"):
                f.body.append(self.instruction(names))

    def instruction(self, names: dict[str, str]) -> Instruction:
        r, line = self.r, self.r.line
        guard, unless = "", False
        if r.found("@"):
            unless = r.found("!")
            guard = r.take()
            guard = names.get(guard, guard)
        op, args = r.take(), []
        while not r.found(";"):
            args.append(self.operand(names))
            r.found(",")
        return Instruction(line, op, args, guard, unless)

    def operand(self, names: dict[str, str]):
        """A register, symbol or label (its name; ``!`` before it is kept), a number, an address, a tuple, a pair."""
        r = self.r
        if r.found("["):
            base, offset = "", 0
            if r.kind == "name":
                base = r.take()
                base = names.get(base, base)
            elif r.kind in ("number", "mark"):
                offset = r.integer()
            while r.word in ("+", "-"):
                sign = -1 if r.take() == "-" else 1
                offset += sign * r.integer()
            if r.found(","):
                raise Refused(r.line, "an address of several coordinates")
            r.take("]")
            return Address(base, offset)
        for opening, closing in ("{}", "()"):
            if r.found(opening):
                items = []
                while not r.found(closing):
                    items.append(self.operand(names))
                    r.found(",")
                return tuple(items)
        if r.found("!"):
            name = r.take()
            return "!" + names.get(name, name)
        if r.kind == "name":
            name = r.take()
            name = names.get(name, name)
            if r.found("|"):
                other = r.take()
                return ("|", name, names.get(other, other))
            if r.found("+"):
                return Address(name, r.integer())  # in a mov: the address of a variable and a number
            return name
        return r.number()


def parse(text: str) -> Module:
    return Parser(text).parse()
