"""PTX functions to LLVM's text for this processor, with the checks of every access in line.

A kernel becomes ``@seg``, which runs one thread from where it stopped to the next barrier, shuffle or vote, or to its
end, and keeps the registers that are alive there in the thread's state. ``runtime`` has the loops around it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from . import ptx
from .ptx import SIZES, Address, Function, Instruction, Label, Module, Number, Refused, Variable
from .runtime import (
    ATOMIC,
    BARRIER,
    EXCHANGE,
    FIELDS,
    GENERIC,
    KINDS,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    PURE,
    SHARED_WINDOW,
    SPILLS,
    STRONG,
    WRITE,
    runtime,
)

_NO_RESULT = {
    "st", "red", "bar", "barrier", "bra", "brx", "ret", "exit", "trap", "membar", "fence", "prefetch", "prefetchu",
    "call", "nanosleep", "cp", "discard", "brkpt",
}  # fmt: skip
_CACHES = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::no_allocate", "L1::evict_last", "L1::evict_first",
           "L1::evict_normal", "L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B", "unified"}  # fmt: skip
_ORDERS = {"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "cta", "cluster", "gpu", "sys"}
_COMPARE_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_COMPARE_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge",
                     "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}  # fmt: skip
_COMPARE_FLOAT = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq",
                  "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno"}  # fmt: skip
#: What a warp does with matrices, by the name in ``runtime``.
_LDMATRIX = {
    f"ldmatrix.sync.aligned.m8n8.x4{way}.shared.b16": f"ldmatrix{way}" for way in ("", ".trans")
}  # fmt: skip
_MMA = {f"mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32": f"mma.{t}" for t in ("f16", "bf16")}
_SMALL = ("f16", "bf16", "f16x2", "bf16x2")
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}


def bits(t: str) -> int:
    return 1 if t == "pred" else 8 * SIZES[t]


def ll(t: str) -> str:
    """LLVM's type for a value of a PTX type. bfloat16 is its bits."""
    return {"f16": "half", "f32": "float", "f64": "double"}.get(t) or f"i{bits(t)}"


def llint(t: str) -> str:
    return f"i{bits(t)}"


def is_float(t: str) -> bool:
    return t[0] == "f" or t == "bf16"


def up(n: int, align: int) -> int:
    return -(-n // align) * align


# ---- calls: the body of a function in the place of each call of it ---------------------------------------------------


def inlined(module: Module, f: Function) -> Function:
    """``f`` with no calls of functions whose bodies the module has."""
    out = Function(f.name, f.line, f.entry, f.params, f.results, dict(f.registers), dict(f.variables), [],
                   dict(f.tables), f.max_threads, f.exact_threads)  # fmt: skip
    _inline(module, f, out, {}, None, (f.name,), itertools.count(1))
    return out


def _inline(
    module: Module, f: Function, out: Function, names: dict, end: str | None, stack: tuple, marks: Iterator[int]
) -> None:
    def renamed(x):
        if isinstance(x, tuple):
            return tuple(renamed(y) for y in x)
        if isinstance(x, Address):
            return Address(names.get(x.base, x.base), x.offset)
        if isinstance(x, str):
            return "!" + names.get(x[1:], x[1:]) if x[0] == "!" else names.get(x, x)
        return x

    for item in f.body:
        if isinstance(item, Label):
            out.body.append(Label(names.get(item.name, item.name)))
            continue
        name = item.op.split(".")[0]
        if name == "call":
            if item.guard:
                raise Refused(item.line, "a call with a guard")
            args = list(item.args)
            results = args.pop(0) if isinstance(args[0], tuple) else ()
            called = args.pop(0)
            given = args.pop(0) if args else ()
            g = module.functions.get(called)
            if g is None or not g.body:
                raise Refused(item.line, f"a call of {called}, which has no body here")
            if called in stack:
                raise Refused(item.line, f"{called} calls itself")
            if len(results) != len(g.results) or len(given) != len(g.params):
                raise Refused(item.line, f"a call of {called} with other parameters than it has")
            mark = f"@{next(marks)}"
            inner = {r: r + mark for r in g.registers} | {v: v + mark for v in g.variables}
            inner |= {t: t + mark for t in g.tables} | {x.name: x.name + mark for x in g.body if isinstance(x, Label)}
            for own, theirs in zip([*g.results, *g.params], [*renamed(results), *renamed(given)], strict=True):
                if theirs not in out.variables:
                    raise Refused(item.line, f"parameter {theirs}, which is no variable")
                inner[own.name] = theirs
            out.registers |= {inner[r]: t for r, t in g.registers.items()}
            for v in g.variables.values():
                out.variables[inner[v.name]] = Variable(inner[v.name], v.space, v.size, v.align, v.line, v.initial)
            out.tables |= {inner[t]: [inner[x] for x in labels] for t, labels in g.tables.items()}
            _inline(module, g, out, inner, f"$end{mark}", (*stack, called), marks)
            out.body.append(Label(f"$end{mark}"))
            continue
        copy = Instruction(item.line, item.op, [renamed(a) for a in item.args],
                           names.get(item.guard, item.guard), item.unless)  # fmt: skip
        if name == "ret" and end is not None:
            copy.op, copy.args = "bra", [end]
        out.body.append(copy)


# ---- which registers are alive where ---------------------------------------------------------------------------------


def _names(x, registers) -> set:
    if isinstance(x, tuple):
        return set().union(*(_names(y, registers) for y in x)) if x else set()
    if isinstance(x, Address):
        x = x.base
    if isinstance(x, str):
        x = x.removeprefix("!")
        return {x} if x in registers else set()
    return set()


def _flow(item, registers) -> tuple[set, set]:
    """The registers that an instruction sets and those that it reads."""
    if isinstance(item, Label):
        return set(), set()
    parts = item.parts
    args = item.args
    if parts[0] in _NO_RESULT:
        sets, reads = set(), set().union(*(_names(a, registers) for a in args)) if args else set()
    else:
        sets = _names(args[0], registers) if args else set()
        reads = set().union(*(_names(a, registers) for a in args[1:])) if args[1:] else set()
    if item.guard:
        reads = reads | sets | {item.guard}
        sets = set()
    return sets, reads


def alive_after(f: Function, points: list[int]) -> dict[int, set]:
    """For each index into the body: the registers whose values are needed behind it."""
    n = len(f.body)
    labels = {x.name: i for i, x in enumerate(f.body) if isinstance(x, Label)}
    heads = {0, n, *labels.values()}
    follow: dict[int, list[int]] = {}
    for i, item in enumerate(f.body):
        if isinstance(item, Instruction):
            name = item.parts[0]
            if name in ("bra", "brx", "ret", "exit", "trap"):
                heads.add(i + 1)
                goals = [labels[item.args[0]]] if name == "bra" else []
                if name == "brx":
                    goals = [labels[x] for x in f.tables[item.args[1]]]
                follow[i] = goals + ([i + 1] if item.guard else [])
    starts = sorted(heads)
    block_of = {s: k for k, s in enumerate(starts)}
    flows = [_flow(x, f.registers) for x in f.body]
    gen, kill, after = [], [], []
    for s, e in zip(starts, [*starts[1:], n], strict=True):
        g: set = set()
        k: set = set()
        for i in range(e - 1, s - 1, -1):
            sets, reads = flows[i]
            g = (g - sets) | reads
            k |= sets
        gen.append(g)
        kill.append(k)
        after.append([block_of[x] for x in follow.get(e - 1, [e] if e < n else [])] if e > s else [])
    entry = [set(g) for g in gen]
    changed = True
    while changed:
        changed = False
        for k in range(len(starts) - 1, -1, -1):
            leaving = set().union(*(entry[x] for x in after[k])) if after[k] else set()
            new = gen[k] | (leaving - kill[k])
            if new != entry[k]:
                entry[k], changed = new, True
    found = {}
    for p in points:
        k = max(b for b, s in enumerate(starts) if s <= p)
        e = starts[k + 1] if k + 1 < len(starts) else n
        live = set().union(*(entry[x] for x in after[k])) if after[k] else set()
        for i in range(e - 1, p, -1):
            sets, reads = flows[i]
            live = (live - sets) | reads
        found[p] = live
    return found


def _waits(item) -> bool:
    if isinstance(item, Label):
        return False
    name = item.parts[0]
    return name in ("bar", "barrier", "shfl", "vote", "redux", "match", "ldmatrix", "mma")


# ---- the translation -------------------------------------------------------------------------------------------------


class Translated:
    """A kernel as LLVM's text, with the sizes that a launch needs."""

    def __init__(self, module: Module, name: str, level: str = "fast"):
        self.module, self.level = module, level
        self.f = f = inlined(module, module.functions[name])
        self.name = name
        self.out: list[str] = []
        self.head: list[str] = []
        self.n = 0
        self.cached: dict[str, str] = {}
        self.globals = [v.name for v in module.variables.values() if v.space in ("global", "const")]
        self._place_variables()
        self.points = [i for i, x in enumerate(f.body) if _waits(x)]
        live = alive_after(f, self.points) if self.points else {}
        self.spill: dict[str, int] = {}
        for p in self.points:
            sets, _ = _flow(f.body[p], f.registers)
            live[p] -= sets
            for r in sorted(live[p]):
                self.spill.setdefault(r, SPILLS + 8 * len(self.spill))
        self.live = live
        at = up(SPILLS + 8 * len(self.spill), 64)
        self.frame_at, self.local_at = at, up(at + self.frame_size, 64)
        self.state_size = up(self.local_at + self.local_size + 16, 64)
        self._function()

    def _place_variables(self) -> None:
        f = self.f

        def place(variables) -> tuple[dict[str, int], int]:
            at, where = 0, {}
            for v in variables:
                at = up(at, v.align)
                where[v.name] = at
                at += v.size
            return where, at

        everything = [*self.module.variables.values(), *f.variables.values()]
        self.params, self.param_size = place(f.params)
        self.shared, self.shared_size = place([v for v in everything if v.space == "shared" and not v.dynamic])
        self.dynamic = [v for v in everything if v.space == "shared" and v.dynamic]
        at = up(self.shared_size, max([v.align for v in self.dynamic], default=1))
        self.dynamic_at = at
        self.shared |= {v.name: at for v in self.dynamic}
        self.local, self.local_size = place([v for v in everything if v.space == "local"])
        self.frame, self.frame_size = place([v for v in f.variables.values() if v.space == "param"])

    # ---- text --------------------------------------------------------------------------------------------------------

    def tmp(self) -> str:
        self.n += 1
        return f"%t{self.n}"

    def op(self, text: str) -> str:
        t = self.tmp()
        self.out.append(f"  {t} = {text}")
        return t

    def do(self, text: str) -> None:
        self.out.append(f"  {text}")

    def label(self, name: str) -> None:
        self.out.append(f"{name}:")

    def new(self, name: str) -> str:
        self.n += 1
        return f"{name}{self.n}"

    def call(self, name: str, t: str, *args: str) -> str:
        return self.op(f"call {t} @llvm.{name}({', '.join(args)})")

    def once(self, key: str, text: str) -> str:
        """A value that is the same throughout, worked out at the entry."""
        if key not in self.cached:
            self.cached[key] = name = f"%h{len(self.cached)}"
            self.head.append(f"  {name} = {text}")
        return self.cached[key]

    def context(self, name: str) -> str:
        if "c." + name not in self.cached:
            p = self.once("p." + name, f"getelementptr i64, ptr %ctx, i64 {FIELDS[name]}")
            return self.once("c." + name, f"load i64, ptr {p}")
        return self.cached["c." + name]

    # ---- registers and operands --------------------------------------------------------------------------------------

    def special(self, name: str) -> tuple[str, int]:
        base, _, axis = name[1:].partition(".")
        if base == "tid" and axis in ("x", "y", "z"):
            return f"%t{axis}", 32
        field = {"ntid": "BLOCK", "nctaid": "GRID", "ctaid": "CTA"}.get(base)
        if field and axis in ("x", "y", "z"):
            return self.once(name, f"trunc i64 {self.context(f'{field}_{axis.upper()}')} to i32"), 32
        lane = self.once("tid32", "trunc i64 %tid to i32")
        if name == "%laneid":
            return self.once(name, f"and i32 {lane}, 31"), 32
        if name == "%warpid":
            return self.once(name, f"lshr i32 {lane}, 5"), 32
        if base.startswith("lanemask_"):
            lane = self.once("%laneid", f"and i32 {lane}, 31")
            eq = self.once("%lanemask_eq", f"shl i32 1, {lane}")
            lt = self.once("%lanemask_lt", f"sub i32 {eq}, 1")
            le = self.once("%lanemask_le", f"or i32 {eq}, {lt}")
            if base == "lanemask_ge":
                return self.once(name, f"xor i32 {lt}, -1"), 32
            if base == "lanemask_gt":
                return self.once(name, f"xor i32 {le}, -1"), 32
            found = {"lanemask_eq": eq, "lanemask_lt": lt, "lanemask_le": le}.get(base)
            if found:
                return found, 32
        if name == "%dynamic_smem_size":
            return self.once(name, f"trunc i64 {self.context('DYNAMIC')} to i32"), 32
        raise Refused(self.i.line, f"the special register {name}")

    def raw(self, name: str) -> tuple[str, int]:
        """What a register or symbol holds, as an integer, and its width in bits."""
        t = self.f.registers.get(name)
        if t is not None:
            return self.op(f"load {llint(t)}, ptr {self.slot(name)}"), bits(t)
        if name[0] == "%":
            return self.special(name)
        for where in (self.shared, self.local, self.params, self.frame):
            if name in where:
                if where is self.frame:
                    raise Refused(self.i.line, f"the address of the parameter {name} of a call")
                return str(where[name]), 64
        if name in self.globals:
            table = self.context("GLOBALS")
            p = self.once("globals", f"inttoptr i64 {table} to ptr")
            p = self.once(f"gp.{name}", f"getelementptr i64, ptr {p}, i64 {self.globals.index(name)}")
            return self.once(f"g.{name}", f"load i64, ptr {p}"), 64
        raise Refused(self.i.line, f"the name {name!r}")

    def slot(self, name: str) -> str:
        if name not in self.slots:
            self.slots[name] = f"%r{len(self.slots)}"
        return self.slots[name]

    def integer(self, x, t: str) -> str:
        """An operand as an integer as wide as ``t``."""
        n = bits(t)
        if isinstance(x, Number):
            if x.size and 8 * x.size != n:
                raise Refused(self.i.line, f"a number of {x.size} bytes for .{t}")
            v = x.value & ((1 << n) - 1)
            return ("true" if v else "false") if n == 1 else str(v)
        if isinstance(x, Address):
            v, width = self.raw(x.base)
            v = self.op(f"add i{width} {v}, {x.offset}")
        elif not isinstance(x, str):
            raise Refused(self.i.line, f"an operand of {self.i.op}")
        elif x[0] == "!":
            v, width = self.raw(x[1:])
            v = self.op(f"xor i{width} {v}, -1")
        elif x in ("WARP_SZ",):
            v, width = "32", n
        else:
            v, width = self.raw(x)
        if width < n:
            if x in self.f.registers:
                raise Refused(self.i.line, f"{self.i.op}: the register {x} has {width} bits")
            return self.op(f"zext i{width} {v} to i{n}") if not v.isdigit() else v
        return v if width == n else self.op(f"trunc i{width} {v} to i{n}") if not v.isdigit() else v

    def value(self, x, t: str) -> str:
        """An operand as a value of ``t``."""
        if isinstance(x, Number) and is_float(t) and not x.size and x.value:
            if t in ("f32", "f64"):
                raise Refused(self.i.line, f"the integer {x.value} for .{t}")
        v = self.integer(x, t)
        return v if ll(t) == llint(t) else self.op(f"bitcast {llint(t)} {v} to {ll(t)}")

    def set(self, name: str, t: str, v: str) -> None:
        """A register gets a value of ``t``; a wider one is filled up as ``t`` says."""
        if name == "_":
            return
        own = self.f.registers.get(name)
        if own is None:
            raise Refused(self.i.line, f"{name}, which is no register")
        if ll(t) != llint(t):
            v = self.op(f"bitcast {ll(t)} {v} to {llint(t)}")
        if bits(own) < bits(t):
            raise Refused(self.i.line, f"{self.i.op}: the register {name} has {bits(own)} bits")
        if bits(own) > bits(t):
            v = self.op(f"{'sext' if t[0] == 's' else 'zext'} {llint(t)} {v} to {llint(own)}")
        self.do(f"store {llint(own)} {v}, ptr {self.slot(name)}")

    def canonical(self, t: str, v: str) -> str:
        """A NaN of single and half precision always has the same bits on the hardware."""
        if t not in ("f32", "f16"):
            return v
        nan = self.op(f"fcmp uno {ll(t)} {v}, {v}")
        const = f"bitcast ({llint(t)} {NAN[t]} to {ll(t)})"
        return self.op(f"select i1 {nan}, {ll(t)} {const}, {ll(t)} {v}")

    def only(self, *allowed: str) -> None:
        """Refuses an instruction with a modifier that is not among ``allowed``, by its name."""
        for part in self.i.parts[1:]:
            if part not in allowed and part not in SIZES:
                raise Refused(self.i.line, self.i.op)

    # ---- the function ------------------------------------------------------------------------------------------------

    def _function(self) -> None:
        f = self.f
        self.slots: dict[str, str] = {}
        numbers = {p: k for k, p in enumerate(self.points)}
        self.labels = {x.name: f"L{k}" for k, x in enumerate(f.body) if isinstance(x, Label)}
        self.label("begin")
        open_block, pending, count_at = True, 0, len(self.out)
        self.out.append("")

        def settle() -> None:
            self.out[count_at] = (
                f"  %n{count_at} = load i64, ptr %count\n  %m{count_at} = add i64 %n{count_at}, {pending}\n"
                f"  store i64 %m{count_at}, ptr %count"
            )

        for at, item in enumerate(f.body):
            if isinstance(item, Label):
                if open_block:
                    self.do(f"br label %{self.labels[item.name]}")
                settle()
                self.label(self.labels[item.name])
                open_block, pending, count_at = True, 0, len(self.out)
                self.out.append("")
                continue
            self.i = item
            if not open_block:
                settle()
                self.label(self.new("N"))
                open_block, pending, count_at = True, 0, len(self.out)
                self.out.append("")
            pending += 1
            name = item.parts[0]
            if name in ("bra", "brx", "ret", "exit", "trap"):
                self._leave(name, item)
                settle()
                if item.guard:
                    open_block, pending, count_at = True, 0, len(self.out)
                    self.out.append("")
                else:
                    open_block = False
                continue
            if at in numbers:
                if item.guard:
                    raise Refused(item.line, f"{item.op} with a guard")
                self._wait(numbers[at], at, item)
                settle()
                pending, count_at = 0, len(self.out)
                self.out.append("")
                continue
            handler = getattr(self, "_" + name, None)
            if handler is None or name in ("wait", "leave", "function", "store", "load"):
                raise Refused(item.line, item.op)
            skip = ""
            if item.guard:
                p, _ = self.raw(item.guard)
                do, skip = self.new("G"), self.new("H")
                goals = (skip, do) if item.unless else (do, skip)
                self.do(f"br i1 {p}, label %{goals[0]}, label %{goals[1]}")
                self.label(do)
            handler(*item.args)
            if skip:
                self.do(f"br label %{skip}")
                self.label(skip)
        if open_block:
            self._end()
        settle()

    def _end(self) -> None:
        self.flush()
        self.do(f"ret i32 {KINDS['done']}")

    def flush(self) -> None:
        p = self.once("p.COUNT", f"getelementptr i64, ptr %ctx, i64 {FIELDS['COUNT']}")
        own, all_ = self.op("load i64, ptr %count"), self.op(f"load i64, ptr {p}")
        self.do(f"store i64 {self.op(f'add i64 {own}, {all_}')}, ptr {p}")

    def _leave(self, name: str, i: Instruction) -> None:
        go, on = "", ""
        if name == "bra":
            self.only("uni")
            goal = self.labels.get(i.args[0])
            if goal is None:
                raise Refused(i.line, f"the label {i.args[0]}")
            if not i.guard:
                self.do(f"br label %{goal}")
                return
            go = goal
        if i.guard:
            p, _ = self.raw(i.guard)
            go, on = go or self.new("G"), self.new("H")
            first, second = (on, go) if i.unless else (go, on)
            self.do(f"br i1 {p}, label %{first}, label %{second}")
            if name != "bra":
                self.label(go)
        if name == "brx":
            self.only("idx", "uni")
            labels = self.f.tables.get(i.args[1])
            if labels is None:
                raise Refused(i.line, f"the table {i.args[1]}")
            index = self.integer(i.args[0], "b32")
            bad = self.new("B")
            cases = " ".join(f"i32 {k}, label %{self.labels[x]}" for k, x in enumerate(labels))
            self.do(f"switch i32 {index}, label %{bad} [{cases}]")
            self.label(bad)
            self.fault("branch", self.op(f"zext i32 {index} to i64"), 0)
        elif name in ("ret", "exit"):
            self.only("uni")
            self._end()
        elif name == "trap":
            self.fault("trap", "0", 0)
        if on:
            self.label(on)

    def fault(self, kind: str, address: str, n: int) -> None:
        """The thread ends here, and the launch with it."""
        from .runtime import FAULTS

        self.do(
            f"call void @fault(ptr %ctx, i64 {FAULTS.index(kind)}, i64 {self.i.line}, i64 {address}, i64 {n}, i64 %tid)"
        )
        self.do("br label %dead")

    # ---- what waits for other threads --------------------------------------------------------------------------------

    def exchange(self, k: int) -> str:
        return self.once(f"x{k}", f"getelementptr i8, ptr %state, i64 {EXCHANGE + 8 * k}")

    def give(self, k: int, v: str, t: str = "i32") -> None:
        wide = v if t == "i64" else self.op(f"zext {t} {v} to i64")
        self.do(f"store i64 {wide}, ptr {self.exchange(k)}")

    def got(self, k: int, t: str = "i32") -> str:
        v = self.op(f"load i64, ptr {self.exchange(k)}")
        return v if t == "i64" else self.op(f"trunc i64 {v} to {t}")

    def _wait(self, k: int, at: int, i: Instruction) -> None:
        parts, args = i.parts, list(i.args)
        name, results, first = parts[0], (), 0
        if name in ("bar", "barrier"):
            rest = [p for p in parts[1:] if p not in ("cta", "aligned")]
            if rest == ["warp", "sync"]:
                self.give(3, self.integer(args[0], "b32"))
                kind = KINDS["warp"]
            elif rest == ["sync"]:
                if len(args) > 1:
                    raise Refused(i.line, f"{i.op} of a part of the block")
                if not isinstance(args[0], Number):
                    raise Refused(i.line, f"{i.op} with its number in a register")
                self.give(0, str(args[0].value), "i64")
                kind = BARRIER
            else:
                raise Refused(i.line, i.op)
        elif name == "shfl":
            if len(parts) != 4 or parts[1] != "sync" or parts[3] != "b32" or "shfl." + parts[2] not in KINDS:
                raise Refused(i.line, i.op)
            kind = KINDS["shfl." + parts[2]]
            to = args[0][1:] if isinstance(args[0], tuple) else (args[0],)
            results = tuple(zip(to, ("b32", "pred"), strict=False))
            for slot, a in enumerate(args[1:]):
                self.give(slot, self.integer(a, "b32"))
        elif name == "vote":
            kind = KINDS.get(".".join(["vote", *parts[2:]]))
            if parts[1] != "sync" or kind is None:
                raise Refused(i.line, i.op)
            self.give(0, self.integer(args[1], "pred"), "i1")
            self.give(3, self.integer(args[2], "b32"))
            results = ((args[0], "b32" if parts[2] == "ballot" else "pred"),)
        elif name == "redux":
            kind = KINDS.get(".".join(["redux", *parts[2:]]))
            if parts[1] != "sync" or kind is None:
                raise Refused(i.line, i.op)
            self.give(0, self.integer(args[1], "b32"))
            self.give(3, self.integer(args[2], "b32"))
            results = ((args[0], "b32"),)
        elif i.op in _LDMATRIX:
            kind, first = KINDS[_LDMATRIX[i.op]], 8
            p = self.access(args[1], "shared", 16, 0)  # a row for another eight lanes
            for slot in range(2):
                q = self.op(f"getelementptr i8, ptr {p}, i64 {8 * slot}")
                self.give(slot, self.op(f"load i64, ptr {q}, align 8"), "i64")
            self.give(3, str(0xFFFFFFFF), "i64")
            results = tuple((r, "b32") for r in args[0])
        elif i.op in _MMA:
            kind, first = KINDS[_MMA[i.op]], 8
            words = [x for a in args[1:] for x in a]
            if [len(a) for a in args] != [4, 4, 2, 4]:
                raise Refused(i.line, f"the operands of {i.op}")
            for slot, pair in zip((0, 1, 2, 4, 5), range(0, 10, 2), strict=True):
                low, high = (self.op(f"zext i32 {self.integer(x, 'b32')} to i64") for x in words[pair : pair + 2])
                self.give(slot, self.op(f"or i64 {low}, {self.op(f'shl i64 {high}, 32')}"), "i64")
            self.give(3, str(0xFFFFFFFF), "i64")
            results = tuple((r, "b32") for r in args[0])
        else:
            raise Refused(i.line, i.op)
        self.flush()
        for r in sorted(self.live[at]):
            v, n = self.raw(r)
            v = self.op(f"zext i1 {v} to i8") if n == 1 else v
            self.do(
                f"store i{max(n, 8)} {v}, ptr {self.once('s' + r, f'getelementptr i8, ptr %state, i64 {self.spill[r]}')}"
            )
        self.do(f"store i32 {k + 1}, ptr %state")
        self.do(f"ret i32 {(k + 1) << 8 | kind}")
        self.label(f"R{k + 1}")
        for r in sorted(self.live[at]):
            n = bits(self.f.registers[r])
            v = self.op(
                f"load i{max(n, 8)}, ptr {self.once('s' + r, f'getelementptr i8, ptr %state, i64 {self.spill[r]}')}"
            )
            v = self.op(f"trunc i8 {v} to i1") if n == 1 else v
            self.do(f"store i{n} {v}, ptr {self.slot(r)}")
        for slot, (r, t) in enumerate(results):
            if r != "_":
                self.set(r, t, self.got(first + slot, llint(t)))

    # ---- memory ------------------------------------------------------------------------------------------------------

    def pointer(self, address: str, offset_of: str) -> str:
        return self.op(f"inttoptr i64 {self.op(f'add i64 {address}, {offset_of}')} to ptr")

    def address(self, a: Address, space: str) -> str:
        if a.base == "":
            return str(a.offset)
        v, width = self.raw(a.base)
        if a.base not in self.f.registers:
            in_space = {"shared": self.shared, "local": self.local, "param": self.params}.get(space)
            if (in_space is None or a.base not in in_space) and a.base not in self.globals:
                raise Refused(self.i.line, f"{a.base} is not in the space of {self.i.op}")
        if width == 32:
            v = self.op(f"zext i32 {v} to i64")
        elif width != 64:
            raise Refused(self.i.line, f"an address of {width} bits")
        if not a.offset:
            return v
        return self.op(f"add i64 {v}, {a.offset}")

    def access(self, a, space: str, n: int, flags: int) -> str:
        """Checks an access of ``n`` bytes and gives the place in the memory of this process."""
        if not isinstance(a, Address):
            raise Refused(self.i.line, f"{self.i.op} without an address")
        address = self.address(a, space)
        aligned = self.op(f"and i64 {address}, {n - 1}") if n > 1 else "0"
        wrong = self.op(f"icmp ne i64 {aligned}, 0")
        join, cold, bad = self.new("J"), self.new("C"), self.new("B")
        if space in ("shared", "local", "param"):
            if space == "shared":
                base, size = self.context("SHARED"), self.context("SHARED_SIZE")
            elif space == "local":
                base = self.once(
                    "local",
                    f"ptrtoint ptr {self.once('localp', f'getelementptr i8, ptr %state, i64 {self.local_at}')} to i64",
                )
                size = str(self.local_size)
            else:
                base, size = self.context("PARAMS"), str(self.param_size - n + 1)
            beyond = self.op(f"icmp uge i64 {address}, {size}")
            self.do(f"br i1 {self.op(f'or i1 {wrong}, {beyond}')}, label %{cold}, label %{join}")
            self.label(cold)
            kind = self.op(f"select i1 {wrong}, i64 3, i64 {2 if flags & WRITE else 1}")
            window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}[space]
            whole = self.op(f"add i64 {address}, {window}")
            self.do(f"call void @fault(ptr %ctx, i64 {kind}, i64 {self.i.line}, i64 {whole}, i64 {n}, i64 %tid)")
            self.do("br label %dead")
            self.label(join)
            at = self.op(f"add i64 {base}, {address}")
            hp = self.op(f"inttoptr i64 {at} to ptr")
            if space == "param":
                return hp
            sp = self.op(f"inttoptr i64 {self.op(f'add i64 {at}, ' + self.context('DELTA'))} to ptr")
            if space == "local" and flags & WRITE and not self.points:
                self.do(f"call void @touched(ptr %ctx, i64 {at}, i64 {n})")
            address = self.op(f"add i64 {address}, {window}")
        else:
            off = self.op(f"sub i64 {address}, {self.context('LOW')}")
            beyond = self.op(f"icmp uge i64 {off}, {self.context('SIZE')}")
            here = self.new("A")
            self.do(f"br i1 {self.op(f'or i1 {wrong}, {beyond}')}, label %{cold}, label %{here}")
            self.label(here)
            at = self.op(f"add i64 {address}, {self.context('UNSHIFT')}")
            h1 = self.op(f"inttoptr i64 {at} to ptr")
            s1 = self.op(f"inttoptr i64 {self.op(f'add i64 {at}, ' + self.context('DELTA'))} to ptr")
            self.do(f"br label %{join}")
            self.label(cold)
            h2 = self.op(
                f"call ptr @elsewhere(ptr %ctx, ptr {self.once('localp', f'getelementptr i8, ptr %state, i64 {self.local_at}')}, "
                f"i64 {address}, i64 {n}, i64 {flags}, i64 {self.i.line}, i64 %tid)"
            )
            found = self.new("E")
            self.do(f"br i1 {self.op(f'icmp eq ptr {h2}, null')}, label %dead, label %{found}")
            self.label(found)
            s2 = self.op(
                f"load ptr, ptr {self.once('p.STATE', 'getelementptr i64, ptr %ctx, i64 ' + str(FIELDS['STATE']))}"
            )
            self.do(f"br label %{join}")
            self.label(join)
            hp = self.op(f"phi ptr [ {h1}, %{here} ], [ {h2}, %{found} ]")
            sp = self.op(f"phi ptr [ {s1}, %{here} ], [ {s2}, %{found} ]")
        t, ones = f"i{8 * n}", int("01" * n, 16)
        state = self.op(f"load {t}, ptr {sp}")
        good = self.new("K")
        if flags & WRITE and not flags & ATOMIC:
            fine = self.op(f"icmp eq {t} {self.op(f'and {t} {state}, {5 * ones}')}, {ones}")
        else:
            want = self.op(f"and {t} {state}, {3 * ones}") if not flags & WRITE else state
            fine = self.op(f"icmp eq {t} {want}, {3 * ones}")
        self.do(f"br i1 {fine}, label %{good}, label %{bad}")
        self.label(bad)
        self.do(
            f"call void @fault(ptr %ctx, i64 {2 if flags & WRITE else 1}, i64 {self.i.line}, i64 {address}, i64 {n}, i64 %tid)"
        )
        self.do("br label %dead")
        self.label(good)
        if self.level == "full" and space != "local":
            fine, race = self.new("Q"), self.new("X")
            found = self.op(
                f"call i1 @race(ptr %ctx, ptr {hp}, i64 {n}, i64 {flags | (ATOMIC if flags & STRONG else 0)}, i64 %tid)"
            )
            self.do(f"br i1 {found}, label %{race}, label %{fine}")
            self.label(race)
            self.fault("race", address, n)
            self.label(fine)
        if self.level == "count":
            # the line, the size, whether it writes, the space; as `counters` reads them
            kind = {"shared": 1, "local": 2}.get(space, 0)
            what = self.i.line | n << 20 | bool(flags & WRITE) << 26 | kind << 27
            self.do(f"call void @trace(ptr %ctx, i64 {address}, i64 {what}, i64 %tid)")
        if flags & WRITE and not flags & ATOMIC:
            self.do(f"store {t} {3 * ones}, ptr {sp}")
        return hp

    def _split(self, extra: set = frozenset()) -> tuple[str, int, str, set]:
        """The space, the count of elements, the type and the other words of an ``ld`` or ``st``."""
        space, count, t, rest = "", 1, "", set()
        for p in self.i.parts[1:]:
            if p in SIZES:
                t = p
            elif p in ("v2", "v4", "v8"):
                count = int(p[1])
            elif p.split("::")[0] in ("global", "shared", "local", "param", "const") and p not in ("shared::cluster",):
                space = p.split("::")[0]
            elif p in _CACHES or p in _ORDERS or p in extra:
                rest.add(p)
            else:
                raise Refused(self.i.line, self.i.op)
        if not t:
            raise Refused(self.i.line, self.i.op)
        return space, count, t, rest

    def frame_place(self, a, n: int) -> str | None:
        """The place of a parameter of a call or of the kernel, where the address is known now."""
        if isinstance(a, Address) and a.base in self.frame:
            size = self.f.variables[a.base].size
            where = f"getelementptr i8, ptr %state, i64 {self.frame_at + self.frame[a.base] + a.offset}"
        elif isinstance(a, Address) and a.base in self.params:
            size = next(v.size for v in self.f.params if v.name == a.base)
            p = self.once("paramp", f"inttoptr i64 {self.context('PARAMS')} to ptr")
            where = f"getelementptr i8, ptr {p}, i64 {self.params[a.base] + a.offset}"
        else:
            return None
        if not 0 <= a.offset <= size - n or a.offset % n:
            raise Refused(self.i.line, f"{n} bytes at {a.offset} of the parameter {a.base} of {size} bytes")
        return self.op(where)

    def _ld(self, to, a) -> None:
        space, count, t, rest = self._split({"nc"})
        size = SIZES[t]
        if size > 8 or t == "pred":
            raise Refused(self.i.line, self.i.op)
        names = to if count > 1 else (to,)
        p = self.frame_place(a, size * count) if space == "param" else None
        if p is None:
            flags = (GENERIC if space in ("", "const") else 0) | (PURE if "nc" in rest else 0)
            if rest & {"volatile", "relaxed", "acquire"}:
                flags |= ATOMIC
            p = self.access(a, "global" if space == "const" else space or "generic", size * count, flags)
        for k, name in enumerate(names):
            q = self.op(f"getelementptr i8, ptr {p}, i64 {k * size}") if k else p
            self.set(name, t, self.op(f"load {ll(t)}, ptr {q}, align {size}"))

    _ldu = _ld

    def _st(self, a, what) -> None:
        space, count, t, rest = self._split()
        size = SIZES[t]
        if size > 8 or t == "pred" or space == "const":
            raise Refused(self.i.line, self.i.op)
        values = what if count > 1 else (what,)
        p = None
        if space == "param":
            if not (isinstance(a, Address) and a.base in self.frame):
                raise Refused(self.i.line, "a store to a parameter of the kernel")
            p = self.frame_place(a, size * count)
        if p is None:
            flags = WRITE | (0 if space else GENERIC) | (STRONG if rest & {"volatile", "relaxed", "release"} else 0)
            p = self.access(a, space or "generic", size * count, flags)
        for k, x in enumerate(values):
            q = self.op(f"getelementptr i8, ptr {p}, i64 {k * size}") if k else p
            self.do(f"store {llint(t)} {self.integer(x, t)}, ptr {q}, align {size}")

    def _atom(self, to, a, *operands) -> None:
        parts = self.i.parts
        space, what, t = "", "", ""
        for p in parts[1:]:
            if p in SIZES:
                t = p
            elif p.split("::")[0] in ("global", "shared") and p != "shared::cluster":
                space = p.split("::")[0]
            elif p in ("add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec"):
                what = p
            elif p not in _ORDERS:
                raise Refused(self.i.line, self.i.op)
        if not what or not t or SIZES[t] > 8 or t in ("f16", "bf16", "f16x2", "bf16x2"):
            raise Refused(self.i.line, self.i.op)
        n = SIZES[t]
        p = self.access(a, space or "generic", n, WRITE | ATOMIC | (0 if space else GENERIC))
        T = ll(t)
        old = self.op(f"load {T}, ptr {p}, align {n}")
        x = self.value(operands[0], t)
        if what == "exch":
            new = x
        elif what == "cas":
            same = self.op(f"icmp eq {T} {old}, {x}")
            new = self.op(f"select i1 {same}, {T} {self.value(operands[1], t)}, {T} {old}")
        elif what == "add":
            new = self.canonical(t, self.op(f"fadd {T} {old}, {x}")) if is_float(t) else self.op(f"add {T} {old}, {x}")
        elif what in ("and", "or", "xor"):
            new = self.op(f"{what} {T} {old}, {x}")
        elif what in ("min", "max") and not is_float(t):
            new = self.call(f"{t[0] if t[0] == 's' else 'u'}{what}.{T}", T, f"{T} {old}", f"{T} {x}")
        elif what == "inc":
            over = self.op(f"icmp uge {T} {old}, {x}")
            new = self.op(f"select i1 {over}, {T} 0, {T} {self.op(f'add {T} {old}, 1')}")
        elif what == "dec":
            under = self.op(f"icmp eq {T} {old}, 0")
            over = self.op(f"icmp ugt {T} {old}, {x}")
            over = self.op(f"or i1 {under}, {over}")
            new = self.op(f"select i1 {over}, {T} {x}, {T} {self.op(f'sub {T} {old}, 1')}")
        else:
            raise Refused(self.i.line, self.i.op)
        self.do(f"store {T} {new}, ptr {p}, align {n}")
        if to is not None:
            self.set(to, t, old)

    def _red(self, a, x) -> None:
        self._atom(None, a, x)

    def _membar(self) -> None:
        self.only("cta", "gl", "sys", "gpu")

    def _fence(self) -> None:
        self.only("sc", "acq_rel", "acquire", "release", "cta", "gpu", "sys", "cluster")

    def _prefetch(self, *_) -> None:
        pass

    def _nanosleep(self, *_) -> None:
        pass

    # ---- moves -------------------------------------------------------------------------------------------------------

    def _mov(self, to, x) -> None:
        t = self.i.parts[-1]
        self.only()
        if isinstance(x, tuple):  # parts become one
            n = bits(t) // len(x)
            whole = ""
            for k, y in enumerate(x):
                v = self.op(f"zext i{n} {self.integer(y, f'b{n}')} to {llint(t)}")
                v = self.op(f"shl {llint(t)} {v}, {k * n}") if k else v
                whole = self.op(f"or {llint(t)} {whole}, {v}") if k else v
            self.do_set(to, t, whole)
        elif isinstance(to, tuple):
            n = bits(t) // len(to)
            v = self.integer(x, t)
            for k, r in enumerate(to):
                if r != "_":
                    w = self.op(f"lshr {llint(t)} {v}, {k * n}") if k else v
                    self.set(r, f"b{n}", self.op(f"trunc {llint(t)} {w} to i{n}"))
        else:
            self.do_set(to, t, self.integer(x, t))

    def do_set(self, to, t: str, v: str) -> None:
        """A register gets bits."""
        self.set(to, t if ll(t) == llint(t) else f"b{bits(t)}", v)

    def _cvta(self, to, x) -> None:
        parts = self.i.parts
        space = parts[-2].split("::")[0]
        window = {"global": 0, "const": 0, "local": LOCAL_WINDOW, "shared": SHARED_WINDOW, "param": PARAM_WINDOW}.get(
            space
        )
        if window is None or parts[-1] != "u64":
            raise Refused(self.i.line, self.i.op)
        v = self.integer(x, "b64")
        if window:
            v = self.op(f"{'sub' if parts[1] == 'to' else 'add'} i64 {v}, {window}")
        self.set(to, "b64", v)

    def _isspacep(self, to, x) -> None:
        space = self.i.parts[-1].split("::")[0]
        window = {"local": LOCAL_WINDOW, "shared": SHARED_WINDOW, "param": PARAM_WINDOW}.get(space)
        v = self.integer(x, "b64")
        if window is None:
            if space != "global":
                raise Refused(self.i.line, self.i.op)
            self.set(to, "pred", self.op(f"icmp uge i64 {v}, {PARAM_WINDOW + (1 << 32)}"))
            return
        off = self.op(f"sub i64 {v}, {window}")
        self.set(to, "pred", self.op(f"icmp ult i64 {off}, {1 << 32}"))

    # ---- integers ----------------------------------------------------------------------------------------------------

    def _two(self, to, x, y, name: str, *floats: str) -> None:
        t = self.i.parts[-1]
        if is_float(t) or t in _SMALL:
            return self._float(to, (x, y), {"add": "fadd", "sub": "fsub", "mul": "fmul"}[name])
        self.only()
        if t in ("u16x2", "s16x2"):
            raise Refused(self.i.line, self.i.op)
        self.set(to, t, self.op(f"{name} {ll(t)} {self.value(x, t)}, {self.value(y, t)}"))

    def _carry(self, to, x, y, subtract: bool, given: bool) -> None:
        """add.cc, addc and the like: an addition with the carry of the one before."""
        t = self.i.parts[-1]
        self.only("cc")
        n = bits(t)
        wide = f"i{n + 2}"
        a, b = (self.op(f"zext i{n} {self.integer(v, t)} to {wide}") for v in (x, y))
        s = self.op(f"{'sub' if subtract else 'add'} {wide} {a}, {b}")
        if given:
            c = self.op("load i1, ptr %carry")
            s = self.op(f"{'sub' if subtract else 'add'} {wide} {s}, {self.op(f'zext i1 {c} to {wide}')}")
        if "cc" in self.i.parts:
            out = self.op(f"trunc {wide} {self.op(f'lshr {wide} {s}, {n}')} to i1")
            self.do(f"store i1 {out}, ptr %carry")
        self.set(to, t, self.op(f"trunc {wide} {s} to i{n}"))

    def _add(self, to, x, y) -> None:
        if "cc" in self.i.parts:
            return self._carry(to, x, y, False, False)
        self._two(to, x, y, "add")

    def _sub(self, to, x, y) -> None:
        if "cc" in self.i.parts:
            return self._carry(to, x, y, True, False)
        self._two(to, x, y, "sub")

    def _addc(self, to, x, y) -> None:
        self._carry(to, x, y, False, True)

    def _subc(self, to, x, y) -> None:
        self._carry(to, x, y, True, True)

    def wide(self, x, y, t: str, width: int) -> str:
        ext = "sext" if t[0] == "s" else "zext"
        a, b = (self.op(f"{ext} {ll(t)} {self.value(v, t)} to i{width}") for v in (x, y))
        return self.op(f"mul i{width} {a}, {b}")

    def product(self, x, y) -> tuple[str, str]:
        """The value and the type of ``mul`` and of the product in ``mad``."""
        parts = self.i.parts
        t, n = parts[-1], bits(parts[-1])
        if len(parts) != 3 or parts[1] not in ("lo", "hi", "wide"):
            raise Refused(self.i.line, self.i.op)
        if parts[1] == "lo":
            return self.op(f"mul {ll(t)} {self.value(x, t)}, {self.value(y, t)}"), t
        whole = self.wide(x, y, t, 2 * n)
        if parts[1] == "wide":
            return whole, f"{t[0]}{2 * n}"
        return self.op(f"trunc i{2 * n} {self.op(f'lshr i{2 * n} {whole}, {n}')} to i{n}"), t

    def _mul(self, to, x, y) -> None:
        if is_float(self.i.parts[-1]) or self.i.parts[-1] in _SMALL:
            return self._float(to, (x, y), "fmul")
        v, t = self.product(x, y)
        self.set(to, t, v)

    def _mad(self, to, x, y, z) -> None:
        if is_float(self.i.parts[-1]):
            return self._fma(to, x, y, z)
        v, t = self.product(x, y)
        self.set(to, t, self.op(f"add {ll(t)} {v}, {self.value(z, t)}"))

    def _quotient(self, to, x, y, name: str) -> None:
        t = self.i.parts[-1]
        self.only()
        T, signed = ll(t), t[0] == "s"
        a, b = self.value(x, t), self.value(y, t)
        none = self.op(f"icmp eq {T} {b}, 0")
        unsafe = none
        if signed:
            low = self.op(f"icmp eq {T} {a}, {-(1 << (bits(t) - 1))}")
            minus = self.op(f"icmp eq {T} {b}, -1")
            unsafe = self.op(f"or i1 {none}, {self.op(f'and i1 {low}, {minus}')}")
        safe = self.op(f"select i1 {unsafe}, {T} 1, {T} {b}")
        v = self.op(f"{'s' if signed else 'u'}{name} {T} {a}, {safe}")
        # by zero: the ISA leaves the value open, here all ones and the dividend
        other = f"{T} -1" if name == "div" else f"{T} {a}"
        self.set(to, t, self.op(f"select i1 {none}, {other}, {T} {v}"))

    def _div(self, to, x, y) -> None:
        if is_float(self.i.parts[-1]):
            return self._float(to, (x, y), "fdiv")
        self._quotient(to, x, y, "div")

    def _rem(self, to, x, y) -> None:
        self._quotient(to, x, y, "rem")

    def _min(self, to, x, y) -> None:
        self._extreme(to, x, y, "min")

    def _max(self, to, x, y) -> None:
        self._extreme(to, x, y, "max")

    def _extreme(self, to, x, y, name: str) -> None:
        t = self.i.parts[-1]
        if t in ("f32", "f64"):
            self.only("NaN")
            T, I = ll(t), llint(t)
            a, b = self.value(x, t), self.value(y, t)
            first = self.op(f"fcmp {'olt' if name == 'min' else 'ogt'} {T} {a}, {b}")
            v = self.op(f"select i1 {first}, {T} {a}, {T} {b}")
            equal = self.op(f"fcmp oeq {T} {a}, {b}")  # -0 is less than +0
            ai, bi = (self.op(f"bitcast {T} {w} to {I}") for w in (a, b))
            both = self.op(f"{'or' if name == 'min' else 'and'} {I} {ai}, {bi}")
            zero = self.op(f"bitcast {I} {both} to {T}")
            v = self.op(f"select i1 {equal}, {T} {zero}, {T} {v}")
            an, bn = (self.op(f"fcmp uno {T} {w}, {w}") for w in (a, b))
            nan = f"bitcast ({I} {0x7FFFFFFF if t == 'f32' else 0x7FF8000000000000} to {T})"
            if "NaN" in self.i.parts:
                v = self.op(f"select i1 {self.op(f'or i1 {an}, {bn}')}, {T} {nan}, {T} {v}")
            else:
                v = self.op(f"select i1 {bn}, {T} {a}, {T} {v}")
                v = self.op(f"select i1 {an}, {T} {b}, {T} {v}")
                v = self.op(f"select i1 {self.op(f'and i1 {an}, {bn}')}, {T} {nan}, {T} {v}")
            return self.set(to, t, v)
        if t in ("u16x2", "s16x2"):
            kind = "<2 x i16>"
            a, b = (self.op(f"bitcast i32 {self.integer(v, 'b32')} to {kind}") for v in (x, y))
            v = self.call(f"{t[0]}{name}.v2i16", kind, f"{kind} {a}", f"{kind} {b}")
            return self.set(to, "b32", self.op(f"bitcast {kind} {v} to i32"))
        self.only()
        if is_float(t) or t[0] == "b":
            raise Refused(self.i.line, self.i.op)
        T = ll(t)
        self.set(to, t, self.call(f"{t[0]}{name}.{T}", T, f"{T} {self.value(x, t)}", f"{T} {self.value(y, t)}"))

    def _logic(self, to, x, y, name: str) -> None:
        t = self.i.parts[-1]
        self.only()
        self.set(to, t, self.op(f"{name} {ll(t)} {self.integer(x, t)}, {self.integer(y, t)}"))

    def _and(self, to, x, y) -> None:
        self._logic(to, x, y, "and")

    def _or(self, to, x, y) -> None:
        self._logic(to, x, y, "or")

    def _xor(self, to, x, y) -> None:
        self._logic(to, x, y, "xor")

    def _not(self, to, x) -> None:
        t = self.i.parts[-1]
        self.only()
        self.set(to, t, self.op(f"xor {ll(t)} {self.integer(x, t)}, -1"))

    def _cnot(self, to, x) -> None:
        t = self.i.parts[-1]
        zero = self.op(f"icmp eq {ll(t)} {self.integer(x, t)}, 0")
        self.set(to, t, self.op(f"zext i1 {zero} to {ll(t)}"))

    def signs(self, to, x, t: str, name: str, mask: int) -> None:
        """Change the signs of one number of 16 bits, or of two."""
        kind, mask = ("b32", mask << 16 | mask) if t.endswith("x2") else ("b16", mask)
        self.set(to, kind, self.op(f"{name} {ll(kind)} {self.integer(x, kind)}, {mask}"))

    def _neg(self, to, x) -> None:
        t = self.i.parts[-1]
        self.only()
        if t in ("f32", "f64", "f16"):
            return self.set(to, t, self.op(f"fneg {ll(t)} {self.value(x, t)}"))
        if t in _SMALL:
            return self.signs(to, x, t, "xor", 0x8000)
        if t[0] != "s":
            raise Refused(self.i.line, self.i.op)
        self.set(to, t, self.op(f"sub {ll(t)} 0, {self.value(x, t)}"))

    def _abs(self, to, x) -> None:
        t = self.i.parts[-1]
        self.only()
        if t in ("f32", "f64", "f16"):
            return self.set(to, t, self.call(f"fabs.f{bits(t)}", ll(t), f"{ll(t)} {self.value(x, t)}"))
        if t in _SMALL:
            return self.signs(to, x, t, "and", 0x7FFF)
        if t[0] != "s":
            raise Refused(self.i.line, self.i.op)
        self.set(to, t, self.call(f"abs.{ll(t)}", ll(t), f"{ll(t)} {self.value(x, t)}", "i1 false"))

    def shift(self, name: str, T: str, v: str, by: str, by_type: str = "i32") -> str:
        """A shift by any amount: all bits are gone from the width on, or are the sign."""
        n = int(T[1:])
        out = self.op(f"icmp uge {by_type} {by}, {n}")
        safe = self.op(f"select i1 {out}, {by_type} {n - 1}, {by_type} {by}")
        if n > int(by_type[1:]):
            safe = self.op(f"zext {by_type} {safe} to {T}")
        elif n < int(by_type[1:]):
            safe = self.op(f"trunc {by_type} {safe} to {T}")
        w = self.op(f"{name} {T} {v}, {safe}")
        return w if name == "ashr" else self.op(f"select i1 {out}, {T} 0, {T} {w}")

    def _shl(self, to, x, y) -> None:
        t = self.i.parts[-1]
        self.only()
        self.set(to, t, self.shift("shl", ll(t), self.integer(x, t), self.integer(y, "b32")))

    def _shr(self, to, x, y) -> None:
        t = self.i.parts[-1]
        self.only()
        name = "ashr" if t[0] == "s" else "lshr"
        self.set(to, t, self.shift(name, ll(t), self.integer(x, t), self.integer(y, "b32")))

    def _shf(self, to, x, y, by) -> None:
        parts = self.i.parts
        self.only("l", "r", "clamp", "wrap")
        if parts[-1] != "b32":
            raise Refused(self.i.line, self.i.op)
        low, high = (self.op(f"zext i32 {self.integer(v, 'b32')} to i64") for v in (x, y))
        both = self.op(f"or i64 {low}, {self.op(f'shl i64 {high}, 32')}")
        n = self.integer(by, "b32")
        if "wrap" in parts:
            n = self.op(f"and i32 {n}, 31")
        else:
            n = self.call("umin.i32", "i32", f"i32 {n}", "i32 32")
        n = self.op(f"zext i32 {n} to i64")
        if "l" in parts:
            both = self.op(f"lshr i64 {self.op(f'shl i64 {both}, {n}')}, 32")
        else:
            both = self.op(f"lshr i64 {both}, {n}")
        self.set(to, "b32", self.op(f"trunc i64 {both} to i32"))

    def _mask(self, T: str, length: str) -> str:
        """``length`` ones."""
        one = self.shift("shl", T, "-1", length)
        return self.op(f"xor {T} {one}, -1")

    def _bfe(self, to, x, position, length) -> None:
        t = self.i.parts[-1]
        T, n, signed = ll(t), bits(t), t[0] == "s"
        v = self.value(x, t)
        p = self.op(f"and i32 {self.integer(position, 'b32')}, 255")
        k = self.op(f"and i32 {self.integer(length, 'b32')}, 255")
        mask = self._mask(T, k)
        part = self.op(f"and {T} {self.shift('ashr' if signed else 'lshr', T, v, p)}, {mask}")
        if signed:
            last = self.op(f"sub i32 {self.op(f'add i32 {p}, {k}')}, 1")
            last = self.call("umin.i32", "i32", f"i32 {last}", f"i32 {n - 1}")
            sign = self.op(f"trunc {T} {self.shift('lshr', T, v, last)} to i1")
            rest = self.op(f"xor {T} {mask}, -1")
            part = self.op(f"or {T} {part}, {self.op(f'select i1 {sign}, {T} {rest}, {T} 0')}")
            part = self.op(f"select i1 {self.op(f'icmp eq i32 {k}, 0')}, {T} 0, {T} {part}")
        self.set(to, t, part)

    def _bfi(self, to, x, y, position, length) -> None:
        t = self.i.parts[-1]
        T = ll(t)
        p = self.op(f"and i32 {self.integer(position, 'b32')}, 255")
        k = self.op(f"and i32 {self.integer(length, 'b32')}, 255")
        mask = self.shift("shl", T, self._mask(T, k), p)
        put = self.op(f"and {T} {self.shift('shl', T, self.integer(x, t), p)}, {mask}")
        kept = self.op(f"and {T} {self.integer(y, t)}, {self.op(f'xor {T} {mask}, -1')}")
        self.set(to, t, self.op(f"or {T} {put}, {kept}"))

    def _popc(self, to, x) -> None:
        t = self.i.parts[-1]
        v = self.call(f"ctpop.{ll(t)}", ll(t), f"{ll(t)} {self.integer(x, t)}")
        self.set(to, "b32", v if bits(t) == 32 else self.op(f"trunc {ll(t)} {v} to i32"))

    def _clz(self, to, x) -> None:
        t = self.i.parts[-1]
        v = self.call(f"ctlz.{ll(t)}", ll(t), f"{ll(t)} {self.integer(x, t)}", "i1 false")
        self.set(to, "b32", v if bits(t) == 32 else self.op(f"trunc {ll(t)} {v} to i32"))

    def _bfind(self, to, x) -> None:
        parts, t = self.i.parts, self.i.parts[-1]
        self.only("shiftamt")
        T = ll(t)
        v = self.value(x, t)
        if t[0] == "s":
            v = self.op(f"xor {T} {v}, {self.op(f'ashr {T} {v}, {bits(t) - 1}')}")
        zeros = self.call(f"ctlz.{T}", T, f"{T} {v}", "i1 false")
        w = zeros if "shiftamt" in parts else self.op(f"sub {T} {bits(t) - 1}, {zeros}")
        w = w if bits(t) == 32 else self.op(f"trunc {T} {w} to i32")
        self.set(to, "b32", self.op(f"select i1 {self.op(f'icmp eq {T} {v}, 0')}, i32 -1, i32 {w}"))

    def _brev(self, to, x) -> None:
        t = self.i.parts[-1]
        self.set(to, t, self.call(f"bitreverse.{ll(t)}", ll(t), f"{ll(t)} {self.integer(x, t)}"))

    def _prmt(self, to, x, y, selector) -> None:
        if self.i.op != "prmt.b32":
            raise Refused(self.i.line, self.i.op)
        low, high = (self.op(f"zext i32 {self.integer(v, 'b32')} to i64") for v in (x, y))
        both = self.op(f"or i64 {low}, {self.op(f'shl i64 {high}, 32')}")
        s = self.integer(selector, "b32")
        whole = "0"
        for k in range(4):
            nibble = self.op(f"lshr i32 {s}, {4 * k}")
            place = self.op(f"shl i32 {self.op(f'and i32 {nibble}, 7')}, 3")
            place = self.op(f"zext i32 {place} to i64")
            byte = self.op(f"trunc i64 {self.op(f'lshr i64 {both}, {place}')} to i8")
            sign = self.op(f"icmp ne i32 {self.op(f'and i32 {nibble}, 8')}, 0")
            byte = self.op(f"select i1 {sign}, i8 {self.op(f'ashr i8 {byte}, 7')}, i8 {byte}")
            byte = self.op(f"shl i32 {self.op(f'zext i8 {byte} to i32')}, {8 * k}")
            whole = self.op(f"or i32 {whole}, {byte}")
        self.set(to, "b32", whole)

    def _lop3(self, to, x, y, z, table) -> None:
        if self.i.op != "lop3.b32" or not isinstance(table, Number):
            raise Refused(self.i.line, self.i.op)
        values = [self.integer(v, "b32") for v in (x, y, z)]
        inverse = [self.op(f"xor i32 {v}, -1") for v in values]
        whole = "0"
        for k in range(8):
            if table.value >> k & 1:
                a, b, c = (values[j] if k >> (2 - j) & 1 else inverse[j] for j in range(3))
                ab = self.op(f"and i32 {a}, {b}")
                whole = self.op(f"or i32 {whole}, {self.op(f'and i32 {ab}, {c}')}")
        self.set(to, "b32", whole)

    def _sad(self, to, x, y, z) -> None:
        t = self.i.parts[-1]
        T = ll(t)
        a, b = self.value(x, t), self.value(y, t)
        more = self.op(f"icmp {'sgt' if t[0] == 's' else 'ugt'} {T} {a}, {b}")
        d = self.op(f"select i1 {more}, {T} {self.op(f'sub {T} {a}, {b}')}, {T} {self.op(f'sub {T} {b}, {a}')}")
        self.set(to, t, self.op(f"add {T} {d}, {self.value(z, t)}"))

    # ---- comparisons -------------------------------------------------------------------------------------------------

    def compare(self, name: str, t: str, x, y) -> str:
        table = _COMPARE_FLOAT if is_float(t) else _COMPARE_SIGNED if t[0] == "s" else _COMPARE_UNSIGNED
        if name not in table or t in ("bf16", "pred") or (t[0] == "b" and name not in ("eq", "ne")):
            raise Refused(self.i.line, self.i.op)
        return self.op(
            f"{'fcmp' if is_float(t) else 'icmp'} {table[name]} {ll(t)} {self.value(x, t)}, {self.value(y, t)}"
        )

    def _setp(self, to, x, y, *more) -> None:
        parts = self.i.parts
        t = parts[-1]
        v = self.compare(parts[1], t, x, y)
        joined = parts[2:-1]
        results = to[1:] if isinstance(to, tuple) else (to,)
        if joined and (joined[0] not in ("and", "or", "xor") or len(joined) > 1 or len(more) != 1):
            raise Refused(self.i.line, self.i.op)
        values = [v, self.op(f"xor i1 {v}, true")][: len(results)]
        for r, w in zip(results, values, strict=True):
            if joined:
                w = self.op(f"{joined[0]} i1 {w}, {self.integer(more[0], 'pred')}")
            if r != "_":
                self.set(r, "pred", w)

    def _set(self, to, x, y) -> None:
        parts = self.i.parts
        if len(parts) != 4:
            raise Refused(self.i.line, self.i.op)
        v = self.compare(parts[1], parts[3], x, y)
        if parts[2] == "f32":
            self.set(to, "b32", self.op(f"select i1 {v}, i32 {0x3F800000}, i32 0"))
        elif parts[2] in ("u32", "s32"):
            self.set(to, "b32", self.op(f"sext i1 {v} to i32"))
        else:
            raise Refused(self.i.line, self.i.op)

    def _selp(self, to, x, y, p) -> None:
        t = self.i.parts[-1]
        self.only()
        a, b = self.integer(x, t), self.integer(y, t)
        self.do_set(to, t, self.op(f"select i1 {self.integer(p, 'pred')}, {llint(t)} {a}, {llint(t)} {b}"))

    def _slct(self, to, x, y, z) -> None:
        t, by = self.i.parts[-2:]
        self.only()
        if by == "s32":
            p = self.op(f"icmp sge i32 {self.value(z, by)}, 0")
        elif by == "f32":
            p = self.op(f"fcmp oge float {self.value(z, by)}, 0.0")
        else:
            raise Refused(self.i.line, self.i.op)
        self.do_set(to, t, self.op(f"select i1 {p}, {llint(t)} {self.integer(x, t)}, {llint(t)} {self.integer(y, t)}"))

    # ---- floating point ----------------------------------------------------------------------------------------------

    def _float(self, to, args, name: str) -> None:
        """One rounding to nearest. Without ``.rn`` the driver may join a product and a sum: refused, the bits are open."""
        t = self.i.parts[-1]
        self.only("rn")
        if "rn" not in self.i.parts:
            raise Refused(self.i.line, f"{self.i.op}, which leaves the rounding to the driver (write .rn)")
        if t in _SMALL and name != "fdiv":
            return self.small(to, t, args, name)
        if t not in ("f32", "f64"):
            raise Refused(self.i.line, self.i.op)
        v = self.op(f"{name} {ll(t)} {', '.join(self.value(x, t) for x in args)}")
        self.set(to, t, self.canonical(t, v))

    def _fma(self, to, x, y, z) -> None:
        t = self.i.parts[-1]
        self.only("rn")
        if t in _SMALL and "rn" in self.i.parts:
            return self.small(to, t, (x, y, z), "fma")
        if t not in ("f32", "f64") or "rn" not in self.i.parts:
            raise Refused(self.i.line, self.i.op)
        T = ll(t)
        v = self.call(f"fma.{t}", T, *(f"{T} {self.value(v, t)}" for v in (x, y, z)))
        self.set(to, t, self.canonical(t, v))

    def small(self, to, t: str, args, name: str) -> None:
        """Arithmetic of half precision or bfloat16, or of pairs of them: exact in double precision but for one rounding."""
        one = t.removesuffix("x2")
        words = [self.integer(x, t if one == t else "b32") for x in args]
        if one == t:
            return self.set(to, f"b{bits(t)}", self.one_small(one, words, name))
        halves = []
        for k in range(2):
            parts = [self.op(f"trunc i32 {self.op(f'lshr i32 {x}, {16 * k}')} to i16") for x in words]
            halves.append(self.op(f"zext i16 {self.one_small(one, parts, name)} to i32"))
        self.set(to, "b32", self.op(f"or i32 {halves[0]}, {self.op(f'shl i32 {halves[1]}, 16')}"))

    def one_small(self, t: str, words: list[str], name: str) -> str:
        wide = []
        for x in words:
            if t == "f16":
                x = self.op(f"bitcast i16 {x} to half")
                wide.append(self.op(f"fpext half {x} to double"))
            else:
                x = self.op(f"shl i32 {self.op(f'zext i16 {x} to i32')}, 16")
                x = self.op(f"bitcast i32 {x} to float")
                wide.append(self.op(f"fpext float {x} to double"))
        if name == "fmul":
            v = self.op(f"fmul double {wide[0]}, {wide[1]}")  # exact
        else:
            a, b = wide[0], wide[-1]
            if name == "fma":
                a = self.op(f"fmul double {wide[0]}, {wide[1]}")
            elif name == "fsub":
                b = self.op(f"fneg double {b}")
            s = self.op(f"fadd double {a}, {b}")
            c = self.op(f"fsub double {s}, {a}")  # what the rounding left out (Knuth's two-sum)
            d = self.op(f"fsub double {a}, {self.op(f'fsub double {s}, {c}')}")
            e = self.op(f"fadd double {d}, {self.op(f'fsub double {b}, {c}')}")
            i = self.op(f"bitcast double {s} to i64")
            inexact = self.op(f"fcmp one double {e}, 0.0")
            even = self.op(f"icmp eq i64 {self.op(f'and i64 {i}, 1')}, 0")
            away = self.op(f"icmp eq i1 {self.op(f'fcmp ogt double {e}, 0.0')}, {self.op(f'fcmp ogt double {s}, 0.0')}")
            step = self.op(f"select i1 {away}, i64 1, i64 -1")
            step = self.op(f"select i1 {self.op(f'and i1 {inexact}, {even}')}, i64 {step}, i64 0")
            v = self.op(f"bitcast i64 {self.op(f'add i64 {i}, {step}')} to double")
        if t == "bf16":
            return self.to_bfloat(self.odd(v))
        return self.op(f"bitcast half {self.canonical('f16', self.to_half(v, 'f64', 'rn'))} to i16")

    def _rcp(self, to, x) -> None:
        t = self.i.parts[-1]
        if self.i.op not in ("rcp.rn.f32", "rcp.rn.f64"):
            raise Refused(self.i.line, self.i.op)
        self.set(to, t, self.canonical(t, self.op(f"fdiv {ll(t)} 1.0, {self.value(x, t)}")))

    def _sqrt(self, to, x) -> None:
        t = self.i.parts[-1]
        if self.i.op not in ("sqrt.rn.f32", "sqrt.rn.f64"):
            raise Refused(self.i.line, self.i.op)
        self.set(to, t, self.canonical(t, self.call(f"sqrt.{t}", ll(t), f"{ll(t)} {self.value(x, t)}")))

    def _copysign(self, to, sign, x) -> None:
        t = self.i.parts[-1]
        T = ll(t)
        self.set(to, t, self.call(f"copysign.{t}", T, f"{T} {self.value(x, t)}", f"{T} {self.value(sign, t)}"))

    def _testp(self, to, x) -> None:
        what, t = self.i.parts[1:]
        T = ll(t)
        v = self.value(x, t)
        size = self.call(f"fabs.{t}", T, f"{T} {v}")
        inf = f"bitcast ({llint(t)} {0x7F800000 if t == 'f32' else 0x7FF0000000000000} to {T})"
        tiny = f"bitcast ({llint(t)} {0x00800000 if t == 'f32' else 0x0010000000000000} to {T})"
        tests = {
            "finite": ("olt", size, inf), "infinite": ("oeq", size, inf), "number": ("ord", v, v),
            "notanumber": ("uno", v, v), "normal": ("oge", size, tiny), "subnormal": ("olt", size, tiny),
        }  # fmt: skip
        if what not in tests:
            raise Refused(self.i.line, self.i.op)
        name, a, b = tests[what]
        r = self.op(f"fcmp {name} {T} {a}, {b}")
        if what == "normal":
            r = self.op(f"and i1 {r}, {self.op(f'fcmp olt {T} {size}, {inf}')}")
        if what == "subnormal":
            r = self.op(f"and i1 {r}, {self.op(f'fcmp one {T} {size}, 0.0')}")
        self.set(to, "pred", r)

    # ---- conversions -------------------------------------------------------------------------------------------------

    def to_half(self, v: str, t: str, mode: str) -> str:
        """A float or double to a half, with one rounding."""
        if t == "f64":
            v = self.odd(v)
        r = self.op(f"fptrunc float {v} to half")
        return self.directed(r, "f16", v, "f32", mode)

    def odd(self, v: str) -> str:
        """A double to a float that a further rounding cannot tell from the double (rounding to odd)."""
        f = self.op(f"fptrunc double {v} to float")
        back = self.op(f"fpext float {f} to double")
        i = self.op(f"bitcast float {f} to i32")
        a, b = (self.call("fabs.f64", "double", f"double {w}") for w in (back, v))
        over = self.op(f"fcmp ogt double {a}, {b}")
        less = self.op(f"sub i32 {i}, {self.op(f'zext i1 {over} to i32')}")
        inexact = self.op(f"fcmp one double {back}, {v}")
        less = self.op(f"or i32 {less}, {self.op(f'zext i1 {inexact} to i32')}")
        return self.op(f"bitcast i32 {less} to float")

    def directed(self, r: str, t: str, v: str, of: str, mode: str) -> str:
        """``r``, which is ``v`` rounded to nearest, rounded in the direction ``mode`` instead."""
        if mode == "rn":
            return r
        back = self.op(f"fpext {ll(t)} {r} to {ll(of)}")
        i = self.op(f"bitcast {ll(t)} {r} to {llint(t)}")
        over = self.op(f"fcmp ogt {ll(of)} {back}, {v}")
        under = self.op(f"fcmp olt {ll(of)} {back}, {v}")
        negative = self.op(f"fcmp olt {ll(of)} {v}, 0.0")
        if mode == "rz":
            wrong = self.op(f"select i1 {negative}, i1 {under}, i1 {over}")
            step = self.op(f"select i1 {wrong}, {llint(t)} -1, {llint(t)} 0")
        else:
            wrong = over if mode == "rm" else under
            away = self.op(
                f"select i1 {negative}, {llint(t)} {1 if mode == 'rm' else -1}, {llint(t)} {-1 if mode == 'rm' else 1}"
            )
            step = self.op(f"select i1 {wrong}, {llint(t)} {away}, {llint(t)} 0")
        return self.op(f"bitcast {llint(t)} {self.op(f'add {llint(t)} {i}, {step}')} to {ll(t)}")

    def to_bfloat(self, v: str) -> str:
        """The bits of a float, rounded to bfloat16."""
        i = self.op(f"bitcast float {v} to i32")
        bit = self.op(f"and i32 {self.op(f'lshr i32 {i}, 16')}, 1")
        up_ = self.op(f"add i32 {self.op(f'add i32 {i}, 32767')}, {bit}")
        r = self.op(f"trunc i32 {self.op(f'lshr i32 {up_}, 16')} to i16")
        nan = self.op(f"fcmp uno float {v}, {v}")
        return self.op(f"select i1 {nan}, i16 {NAN['bf16']}, i16 {r}")

    def _cvt(self, to, x, *more) -> None:
        parts = self.i.parts
        d, s = parts[-2], parts[-1]
        modes = [p for p in parts[1:-2]]
        if d in ("f16x2", "bf16x2") and s == "f32" and modes == ["rn"] and len(more) == 1:
            high, low = (self._narrow(self.value(v, "f32"), d[:-2]) for v in (x, more[0]))
            h, low = (self.op(f"zext i16 {v} to i32") for v in (high, low))
            return self.set(to, "b32", self.op(f"or i32 {self.op(f'shl i32 {h}, 16')}, {low}"))
        if more:
            raise Refused(self.i.line, self.i.op)
        if d == "tf32" and s == "f32" and modes == ["rna"]:
            i = self.op(f"and i32 {self.op(f'add i32 {self.integer(x, s)}, 4096')}, -8192")
            v = self.value(x, "f32")
            nan = self.op(f"fcmp uno float {v}, {v}")
            return self.set(to, "b32", self.op(f"select i1 {nan}, i32 {NAN['f32']}, i32 {i}"))
        if d not in SIZES or s not in SIZES or len(modes) > 1 or "x2" in d + s or "pred" in (d, s) or "tf32" in (d, s):
            raise Refused(self.i.line, self.i.op)
        mode = modes[0] if modes else ""
        if not is_float(d) and not is_float(s):
            if mode:
                raise Refused(self.i.line, self.i.op)
            v = self.integer(x, s)
            if bits(d) > bits(s):
                v = self.op(f"{'sext' if s[0] == 's' else 'zext'} {llint(s)} {v} to {llint(d)}")
            elif bits(d) < bits(s):
                v = self.op(f"trunc {llint(s)} {v} to {llint(d)}")
            return self.set(to, d, v)
        if not is_float(s):
            if mode not in ("rn",) or d == "bf16":
                raise Refused(self.i.line, self.i.op)
            name = "sitofp" if s[0] == "s" else "uitofp"
            v = self.value(x, s)
            if d == "f16":
                if bits(s) > 32:
                    raise Refused(self.i.line, self.i.op)
                return self.set(to, d, self.to_half(self.op(f"{name} {ll(s)} {v} to double"), "f64", mode))
            return self.set(to, d, self.op(f"{name} {ll(s)} {v} to {ll(d)}"))
        v = self.value(x, s)
        source = s
        if s == "bf16":
            v = self.op(f"zext i16 {v} to i32")
            v = self.op(f"bitcast i32 {self.op(f'shl i32 {v}, 16')} to float")
            s = "f32"
        elif s == "f16":
            v = self.op(f"fpext half {v} to float")
            s = "f32"
        whole = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}.get(mode)
        if whole:
            v = self.call(f"{whole}.{s}", ll(s), f"{ll(s)} {v}")
        if not is_float(d):
            if not whole:
                raise Refused(self.i.line, self.i.op)
            T, signed = ll(d), d[0] == "s"
            r = self.call(f"fpto{'s' if signed else 'u'}i.sat.{T}.{s}", T, f"{ll(s)} {v}")
            if source == "f64" or bits(d) == 64:
                nan = self.op(f"fcmp uno {ll(s)} {v}, {v}")
                r = self.op(f"select i1 {nan}, {T} {-(1 << (bits(d) - 1))}, {T} {r}")
            return self.set(to, d, r)
        if whole:
            if d != source:
                raise Refused(self.i.line, self.i.op)
            if d == "f16":
                v = self.op(f"fptrunc float {v} to half")
            elif d == "bf16":
                raise Refused(self.i.line, self.i.op)
            return self.set(to, d, self.canonical(d, v))
        if bits(d) > bits(source) or d == source:
            if mode:
                raise Refused(self.i.line, self.i.op)
            if d == source and d in ("f16", "bf16"):
                raise Refused(self.i.line, self.i.op)
            v = self.canonical(d, v)
            return self.set(to, d, v if d == s else self.op(f"fpext {ll(s)} {v} to {ll(d)}"))
        if mode not in ("rn", "rz", "rm", "rp") or source in ("f16", "bf16"):
            raise Refused(self.i.line, self.i.op)
        if d == "f16":
            return self.set(to, d, self.canonical(d, self.to_half(v, s, mode)))
        if d == "bf16":
            if mode != "rn":
                raise Refused(self.i.line, self.i.op)
            return self.set(to, d, self.to_bfloat(self.odd(v) if s == "f64" else v))
        r = self.op(f"fptrunc double {v} to float")
        self.set(to, d, self.canonical(d, self.directed(r, "f32", v, "f64", mode)))

    def _narrow(self, v: str, t: str) -> str:
        if t == "bf16":
            return self.to_bfloat(v)
        return self.op(f"bitcast half {self.canonical('f16', self.to_half(v, 'f32', 'rn'))} to i16")

    # ---- all of it ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        slots = [f"  {slot} = alloca {llint(self.f.registers[r])}" for r, slot in self.slots.items()]
        # PTX leaves a register open that was not set; here it holds a number that looks like a mistake
        slots += [f"  store {llint(self.f.registers[r])} {'true' if bits(self.f.registers[r]) == 1 else 0x7FB5}, ptr {slot}"
                  for r, slot in self.slots.items()]  # fmt: skip
        head = ["entry:", "  %count = alloca i64", "  store i64 0, ptr %count", "  %carry = alloca i1", "  store i1 0, ptr %carry",
                *slots, *self.head]  # fmt: skip
        if self.points:
            cases = " ".join(f"i32 {k + 1}, label %R{k + 1}" for k in range(len(self.points)))
            head.append(f"  switch i32 %resume, label %begin [{cases}]")
        else:
            head.append("  br label %begin")
        body = "\n".join([*head, *(x for x in self.out if x), "dead:", "  ret i32 -2"])
        seg = (
            "define internal i32 @seg(ptr noalias %ctx, ptr %state, i32 %tx, i32 %ty, i32 %tz, i64 %tid, i32 %resume) {\n"
            f"{body}\n}}\n"
        )
        return runtime(self) + seg


def translate(module: ptx.Module, name: str, level: str = "fast") -> Translated:
    return Translated(module, name, level)
