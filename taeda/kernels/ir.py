"""The loop-nest IR: typed SSA scalars and vectors, written as LLVM text by running Python.

A kernel is a Python function that calls a :class:`Function` builder; arithmetic on :class:`Value` objects appends
instructions, ``with f.loop(...)`` opens a loop in SSA form. The builder makes text and nothing else: it imports no
compiler, so the text can be hashed and looked up before LLVM is needed at all.

Every kernel has the same C signature, the *kernel ABI*::

    void kernel(char **ptr, const int64_t *arg, int64_t begin, int64_t end)

``ptr`` are the data pointers (outputs first), ``arg`` are sizes, byte strides and scalar parameters (a float is passed
as the bits of a double), and ``[begin, end)`` is the part of the kernel's parallel dimension that this call does.
"""

# ruff: noqa: I001 - lists of names are paragraphs

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .values import (
    BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, PTR, TYPES, U8, U16, U32, U64, Number, Type, Value, constant_text,
    llvm_type,
)  # fmt: skip

__all__ = [
    "BF16", "BOOL", "F16", "F32", "F64", "I8", "I16", "I32", "I64", "PTR", "TYPES", "U8", "U16", "U32", "U64",
    "Function", "Helper", "Type", "Value", "llvm_type",
]  # fmt: skip

#: Instructions of a body that :meth:`Function.called` does not call: a call saves all registers.
SHORT = 16


class _Loop:
    """The result of ``with f.loop(...)``: ``index`` and the loop-carried values ``carry``."""

    def __init__(self, index: Value | None, carry: tuple[Value, ...]):
        self.index = index  # type: ignore[assignment]
        self.carry: tuple[Value, ...] = carry
        self._test = None

    index: Value

    def test(self, condition: Value) -> None:
        """In ``while_``: leave the loop unless ``condition``; what follows is the body."""
        assert self._test is not None
        self._test(condition)


class Function:
    """Builder of one kernel. ``vector_bytes`` is the target's register width; ``f.lanes(t)`` is how many ``t`` fit."""

    def __init__(self, name: str = "kernel", vector_bytes: int = 32):
        self.name = name
        self.vector_bytes = vector_bytes
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self._count = 0
        self._block = "entry"
        self.ptr = Value(self, PTR, 1, "%ptr")
        self.arg = Value(self, PTR, 1, "%arg")
        self.begin = Value(self, I64, 1, "%begin")
        self.end = Value(self, I64, 1, "%end")
        self._allocas: list[str] = []
        self._helpers: list[Helper] = []
        self._called: dict[str, Helper] = {}  # helpers of `called`, by name and types
        #: The kernel's name in a profile.
        self.label = name
        #: Whether only other kernels call this one: a profile counts it as part of them.
        self.inner = False
        #: Instruction sets that this kernel needs beyond the target's (LLVM's names). The code that sets them checks
        #: for them.
        self.features: tuple[str, ...] = ()
        #: Computes the elements that a row-wise kernel would load (:class:`~taeda.kernels.rows.Prologue`), if set.
        self.prologue: object = None
        self.epilogue: object = None
        #: For each operand of a pointwise kernel: bytes of an element, bytes of each number of it, layout. The first
        #: ``outs`` operands are written.
        self.elements: tuple[tuple[int, int, str], ...] = ()
        self.outs = 0
        #: For a transposed copy: bytes of an item, rows and columns of the result in one unit, 0 for all columns.
        self.transposes: tuple[int, ...] = ()
        #: For a kernel of products: the dtype of its numbers.
        self.products = ""
        #: For a kernel whose text is made by the device alone: the device's schedule and its numbers.
        self.schedule: tuple = ()
        #: Threads that do one unit together on a device without vectors: each has a lane of every vector, and all have
        #: the same scalars.
        self.threads = 1
        #: For a kernel that is written for one of several threads: who has a unit (``cuda/_blocks.py``).
        self.shared = ""
        #: Where the schedule offers it, a body with a fast path puts here which lanes it is wrong for. The vectors with
        #: such lanes are computed ``again``, with this None.
        self.rare: list[Value] | None = None
        self.again = False

    # ---- emitting ---------------------------------------------------------------------------------------------------
    def emit(self, instruction: str, t: Type, lanes: int = 1) -> Value:
        """Append ``instruction`` and name its result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(self, t, lanes, name)

    def _label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def _open(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._block = label

    def lanes(self, t: Type) -> int:
        return self.threads if self.threads > 1 else max(self.vector_bytes // t.bytes, 1)

    def const(self, t: Type, x: Number, lanes: int = 1) -> Value:
        return Value(self, t, lanes, constant_text(t, lanes, x))

    def i64(self, x: int) -> Value:
        return self.const(I64, x)

    def vector(self, t: Type, items: Sequence[Number]) -> Value:
        """A constant vector of different lanes."""
        inside = ", ".join(f"{t.llvm} {constant_text(t, 1, x)}" for x in items)
        return Value(self, t, len(items), f"<{inside}>")

    def iota(self, t: Type, lanes: int) -> Value:
        """``[0, 1, ..., lanes - 1]``."""
        return self.const(t, 0) if lanes == 1 else self.vector(t, range(lanes))

    def splat(self, x: Value, lanes: int) -> Value:
        """A scalar in every lane."""
        if lanes == x.lanes:
            return x
        if x.lanes != 1:
            raise TypeError(f"cannot splat {x.lanes} lanes to {lanes}")
        if not x.text.startswith("%"):
            return Value(self, x.type, lanes, f"splat ({x.type.llvm} {x.text})")
        one = self.emit(f"insertelement {llvm_type(x.type, lanes)} poison, {x.typed}, i64 0", x.type, lanes)
        return one.shuffle([0] * lanes)

    def select(self, condition: Value, a: Value | Number, b: Value | Number) -> Value:
        """``a`` where ``condition`` else ``b``, lane by lane."""
        if isinstance(a, Value):
            a, b = a._pair(b)
        elif isinstance(b, Value):
            b, a = b._pair(a)
        else:
            raise TypeError("select needs at least one Value")
        if (condition.lanes == 1 and a.lanes > 1) or condition.lanes == a.lanes:
            pass
        elif a.lanes == 1:
            a, b = self.splat(a, condition.lanes), self.splat(b, condition.lanes)
        text = f"select {condition.typed}, {a.typed}, {b.typed}"
        return self.emit(text, a.type, a.lanes)

    def intrinsic(self, name: str, t: Type, lanes: int, *args: Value) -> Value:
        """Call the intrinsic ``name`` (the full LLVM name); it returns ``lanes`` of ``t``."""
        types = ", ".join(a.llvm for a in args)
        self.declarations[name] = f"declare {llvm_type(t, lanes)} @{name}({types})"
        inside = ", ".join(a.typed for a in args)
        return self.emit(f"call {llvm_type(t, lanes)} @{name}({inside})", t, lanes)

    def unary(self, name: str, x: Value, *more: Value) -> Value:
        """An overloaded LLVM intrinsic on equal types, such as ``sqrt``, ``floor``, ``fma``, ``minnum``, ``ctpop``."""
        letter = {"bfloat": "bf", "half": "f"}.get(x.type.llvm, x.type.llvm[0])
        kind = f"{'f' if x.type.kind == 'f' and letter != 'bf' else letter}{x.type.bits}"
        suffix = kind if x.lanes == 1 else f"v{x.lanes}{kind}"
        return self.intrinsic(f"llvm.{name}.{suffix}", x.type, x.lanes, x, *more)

    def fma(self, a: Value, b: Value | Number, c: Value | Number) -> Value:
        """``a * b + c`` rounded once."""
        lanes = max([v.lanes for v in (a, b, c) if isinstance(v, Value)])
        a, b, c = (self.splat(v, lanes) if isinstance(v, Value) else self.const(a.type, v, lanes) for v in (a, b, c))
        return self.unary("fma", a, b, c)

    # ---- memory -----------------------------------------------------------------------------------------------------
    def offset(self, pointer: Value, nbytes: Value | int) -> Value:
        """``pointer`` moved by ``nbytes``."""
        if isinstance(nbytes, int):
            if nbytes == 0:
                return pointer
            nbytes = self.i64(nbytes)
        return self.emit(f"getelementptr i8, ptr {pointer.text}, {nbytes.typed}", PTR)

    def load(
        self, pointer: Value, t: Type, lanes: int = 1, mask: Value | None = None, other: Value | Number = 0
    ) -> Value:
        """Load ``lanes`` consecutive ``t``; lanes whose ``mask`` is false are not touched and read as ``other``."""
        if t is BOOL:
            return self.load(pointer, U8, lanes, mask, other) != 0
        if t is BF16 and not isinstance(other, Value):  # LLVM 22 aborts on sign tests of a loaded bfloat
            fill = int(constant_text(BF16, 1, other)[3:], 16)
            return self.load(pointer, U16, lanes, mask, fill).bits(BF16)
        spelled = llvm_type(t, lanes)
        if mask is None:
            return self.emit(f"load {spelled}, ptr {pointer.text}, align {t.bytes}", t, lanes)
        fill = self.splat(other, lanes) if isinstance(other, Value) else self.const(t, other, lanes)
        if lanes == 1:
            spare = self.scratch(t.bytes)
            self.store(spare, fill)
            return self.load(self.select(mask, pointer, spare), t)
        suffix = f"v{lanes}{self._suffix(t)}"
        name = f"llvm.masked.load.{suffix}.p0"
        self.declarations[name] = f"declare {spelled} @{name}(ptr, i32 immarg, <{lanes} x i1>, {spelled})"
        text = f"call {spelled} @{name}(ptr {pointer.text}, i32 {t.bytes}, {mask.typed}, {fill.typed})"
        return self.emit(text, t, lanes)

    def store(self, pointer: Value, x: Value, mask: Value | None = None, nontemporal: bool = False) -> None:
        """Store the lanes of ``x``; lanes whose ``mask`` is false are left alone.

        A masked store of AVX2 takes 20 cycles and more (Zen 3 and 4); for widths that AVX2 does not mask it is a branch
        for each lane. So a full mask takes a plain store.
        """
        if x.type is BOOL:
            x = x.to(U8)
        if x.type is BF16:  # as bits: without AVX512-BF16, LLVM would convert a bfloat through float by a library call
            x = x.bits(U16)
        if mask is None:
            hint = ", !nontemporal !0" if nontemporal else ""
            align = min(x.type.bytes * x.lanes, self.vector_bytes) if nontemporal else x.type.bytes
            self.lines.append(f"  store {x.typed}, ptr {pointer.text}, align {align}{hint}")
            return
        if x.lanes == 1:
            with self.branch(mask):
                self.store(pointer, x)
            return
        if self.vector_bytes == 32 and mask.text.startswith("%"):
            with self.branch(self._mask_bits(mask) == (1 << x.lanes) - 1) as B:
                self.store(pointer, x)
                B.otherwise()
                self._masked_store(pointer, x, mask)
            return
        self._masked_store(pointer, x, mask)

    def _masked_store(self, pointer: Value, x: Value, mask: Value) -> None:
        suffix = f"v{x.lanes}{self._suffix(x.type)}"
        name = f"llvm.masked.store.{suffix}.p0"
        self.declarations[name] = f"declare void @{name}({x.llvm}, ptr, i32 immarg, <{x.lanes} x i1>)"
        self.lines.append(f"  call void @{name}({x.typed}, ptr {pointer.text}, i32 {x.type.bytes}, {mask.typed})")

    @staticmethod
    def _suffix(t: Type) -> str:
        return {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(t.llvm, t.llvm)

    def gather(self, pointer: Value, stride: Value, t: Type, lanes: int, count: Value | None = None) -> Value:
        """Load lane ``i`` from ``pointer + i * stride``; with ``count``, only the first ``count`` lanes (others are 0).

        Full vectors are loaded lane by lane: the hardware prefetcher does not see what a gather instruction reads
        (every second one of 1M float32: 2,400 us by gathers, 180 this way, Zen 5), and in the cache a gather is no
        faster. The same holds for stores.
        """
        if t is BOOL:
            return self.gather(pointer, stride, U8, lanes, count) != 0
        if t is BF16:
            return self.gather(pointer, stride, U16, lanes, count).bits(BF16)
        if lanes == 1:
            return self.load(pointer, t)
        if self._gathers(t) and (count is not None or self.threads > 1):
            mask = self.const(BOOL, True, lanes) if count is None else self.first(count, lanes)
            return self._gathered(self._pointers(pointer, stride, lanes), t, lanes, mask)
        if count is not None:  # a lane past the end reads the last valid element again
            last = count - 1
        result = self.const(t, 0, lanes)
        for i in range(lanes):
            step = self.i64(i) if count is None else self.select(last < i, last, self.i64(i))
            result = result.with_lane(i, self.load(self.offset(pointer, step * stride), t))
        return result

    def scatter(self, pointer: Value, stride: Value, x: Value, count: Value | None = None) -> None:
        """Store lane ``i`` to ``pointer + i * stride``; with ``count``, only the first ``count`` lanes."""
        if x.type is BF16:
            x = x.bits(U16)
        if x.lanes > 1 and self._gathers(x.type) and (count is not None or self.threads > 1):
            mask = self.const(BOOL, True, x.lanes) if count is None else self.first(count, x.lanes)
            name = f"llvm.masked.scatter.v{x.lanes}{self._suffix(x.type)}.v{x.lanes}p0"
            self.declarations[name] = f"declare void @{name}({x.llvm}, <{x.lanes} x ptr>, i32 immarg, <{x.lanes} x i1>)"
            at = self._pointers(pointer, stride, x.lanes)
            self.lines.append(f"  call void @{name}({x.typed}, {at}, i32 {x.type.bytes}, {mask.typed})")
            return
        if count is None:
            for i in range(x.lanes):
                self.store(self.offset(pointer, stride * i), x.lane(i) if x.lanes > 1 else x)
            return
        with self.loop(self.i64(0), count) as L:
            self.store(self.offset(pointer, stride * L.index), x.lane(L.index) if x.lanes > 1 else x)

    def gather_at(self, pointer: Value, offsets: Value, t: Type, mask: Value | None = None) -> Value:
        """Load lane ``i`` from ``pointer + offsets[i]`` (int64 bytes); lanes whose ``mask`` is false read as 0.

        Where the target has no gather instruction a masked lane does read, at ``pointer`` itself.
        """
        lanes = offsets.lanes
        if lanes > 1 and self._gathers(t):
            mask = self.const(BOOL, True, lanes) if mask is None else mask
            return self._gathered(self._addresses(pointer, offsets), t, lanes, mask)
        if mask is not None:
            offsets = self.select(mask, offsets, 0)
        result = self.const(t, 0, lanes)
        for i in range(lanes):
            result = result.with_lane(i, self.load(self.offset(pointer, offsets.lane(i)), t))
        return result if mask is None else self.select(mask, result, 0)

    def compress(self, x: Value, keep: Value) -> Value:
        """The lanes of ``x`` where ``keep`` (bools) is true, moved to the front; the other lanes are unspecified."""
        if self.vector_bytes == 32:
            return self._permuted(x, "pext", keep)
        suffix = f"v{x.lanes}{self._suffix(x.type)}"
        name = f"llvm.experimental.vector.compress.{suffix}"
        self.declarations[name] = f"declare {x.llvm} @{name}({x.llvm}, {keep.llvm}, {x.llvm})"
        return self.emit(f"call {x.llvm} @{name}({x.typed}, {keep.typed}, {x.llvm} poison)", x.type, x.lanes)

    def expand(self, pointer: Value, keep: Value, other: Value) -> Value:
        """``other``; where ``keep`` (bools) is true, the next item from ``pointer`` on. No more are read."""
        t, lanes = other.type, other.lanes
        if self.vector_bytes == 32:
            x = self.load(pointer, t, lanes, self.first(self.count_true(keep), lanes))
            return self.select(keep, self._permuted(x, "pdep", keep), other)
        name = f"llvm.masked.expandload.v{lanes}{self._suffix(t)}"
        self.declarations[name] = f"declare {other.llvm} @{name}(ptr, {keep.llvm}, {other.llvm})"
        return self.emit(f"call {other.llvm} @{name}({pointer.typed}, {keep.typed}, {other.typed})", t, lanes)

    def _permuted(self, x: Value, how: str, keep: Value) -> Value:
        """``x`` by AVX2's permutation of words, whose bytes of index BMI2's ``pext`` or ``pdep`` moves."""
        bits = 64 // x.lanes

        def moved(how: str, source: Value | int, mask: Value | int) -> Value:
            name = f"llvm.x86.bmi.{how}.64"
            return self.intrinsic(name, I64, 1, *(self.i64(v) if isinstance(v, int) else v for v in (source, mask)))

        lowest = moved("pdep", self._mask_bits(keep).to(I64), sum(1 << (bits * i) for i in range(x.lanes)))
        order = moved(how, 0x0706050403020100, lowest * ((1 << bits) - 1))
        index = self.emit(f"bitcast {order.typed} to <8 x i8>", U8, 8).to(I32)
        words = self.emit(f"bitcast {x.typed} to <8 x i32>", I32, 8)
        words = self.intrinsic("llvm.x86.avx2.permd", I32, 8, words, index)
        return self.emit(f"bitcast {words.typed} to {x.llvm}", x.type, x.lanes)

    def compresses(self, t: Type) -> bool:
        """Whether the target has instructions for :meth:`compress` and :meth:`expand`: AVX-512 and AVX2, 4 and 8
        bytes."""
        return self.vector_bytes >= 32 and t.bytes >= 4

    def count_true(self, mask: Value) -> Value:
        """The number of lanes of a vector of bools that are true, as int64."""
        return self.unary("ctpop", self._mask_bits(mask)).to(I64)

    def mask_bits(self, mask: Value) -> Value:
        """A vector of bools as an int64, a bit for each lane."""
        return self._mask_bits(mask).to(I64)

    def _mask_bits(self, mask: Value) -> Value:
        """A vector of bools as an integer."""
        bits = Type("mask", f"i{mask.lanes}", mask.lanes, "u")
        return self.emit(f"bitcast {mask.typed} to {bits.llvm}", bits)

    def _gathers(self, t: Type) -> bool:
        """Whether the target has gather and scatter instructions for ``t``: AVX-512, 4 and 8 bytes; threads always."""
        return self.threads > 1 or (self.vector_bytes >= 64 and t.bytes >= 4)

    def _pointers(self, pointer: Value, stride: Value, lanes: int) -> str:
        """The vector ``pointer + [0, stride, 2 * stride, ...]``, with its type."""
        return self._addresses(pointer, self.iota(I64, lanes) * stride)

    def _addresses(self, pointer: Value, offsets: Value) -> str:
        text = f"getelementptr i8, ptr {pointer.text}, {offsets.typed}"
        return f"<{offsets.lanes} x ptr> {self.emit(text, PTR, offsets.lanes).text}"

    def _gathered(self, at: str, t: Type, lanes: int, mask: Value) -> Value:
        spelled, name = llvm_type(t, lanes), f"llvm.masked.gather.v{lanes}{self._suffix(t)}.v{lanes}p0"
        self.declarations[name] = f"declare {spelled} @{name}(<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {spelled})"
        zero = self.const(t, 0, lanes)
        return self.emit(f"call {spelled} @{name}({at}, i32 {t.bytes}, {mask.typed}, {zero.typed})", t, lanes)

    def scratch(self, nbytes: int, align: int = 64) -> Value:
        """``nbytes`` of the stack, for as long as the function runs. Keep it well below the smallest thread stack."""
        name = f"%s{len(self._allocas)}"
        self._allocas.append(f"  {name} = alloca [{nbytes} x i8], align {align}")
        return Value(self, PTR, 1, name)

    def helper(self, name: str, *params: Type) -> Helper:
        """A new internal function of this module (see :class:`Helper`); write its body, then :meth:`call` it."""
        made = Helper(name, params, self.vector_bytes)
        self._helpers.append(made)
        return made

    def call(self, helper: Helper, *args: Value) -> None:
        """Call ``helper``, which has no result."""
        got = [a.type for a in args]
        if got != [p.type for p in helper.params] or any(a.lanes > 1 for a in args):
            raise TypeError(f"{helper.name} takes {[p.type for p in helper.params]}, got {got}")
        self.lines.append(f"  call void @{helper.name}({', '.join(a.typed for a in args)})")

    def called(self, name: str, body: Callable[..., Value], *args: Value) -> Value:
        """``body(*args)`` by a call of an internal function, which is written once for ``name`` and the arguments'
        types: a long expression is then compiled in a time that grows with its length. A short body stays in place."""
        key = "_".join([name, *(f"{a.type.name}x{a.lanes}" for a in args)])
        made = self._called.get(key)
        if made is None:
            made = self._called[key] = Helper(key, [a.type for a in args], self.vector_bytes, [a.lanes for a in args])
            made.result = body(*made.params)
            if len(made.lines) > SHORT:
                self._helpers.append(made)
        if len(made.lines) <= SHORT:
            return body(*args)
        assert made.result is not None
        inside = ", ".join(a.typed for a in args)
        return self.emit(f"call {made.result.llvm} @{key}({inside})", made.result.type, made.result.lanes)

    def call_kernel(self, address: Value, pointers: Value, args: Value, begin: Value, end: Value) -> None:
        """Call a separately compiled kernel by its address: code that several kernels need is then compiled once."""
        inside = ", ".join(v.typed for v in (pointers, args, begin, end))
        self.lines.append(f"  call void {address.text}({inside})")

    def prefetch(self, pointer: Value, locality: int = 3, write: bool = False) -> None:
        """Prefetch the cache line at ``pointer`` (any address is allowed); ``locality`` 3 is the nearest cache."""
        self.declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        self.lines.append(f"  call void @llvm.prefetch.p0({pointer.typed}, i32 {int(write)}, i32 {locality}, i32 1)")

    def opaque(self, pointer: Value) -> Value:
        """``pointer`` with its origin hidden, so that LLVM keeps the addresses of a loop as they are written.

        Otherwise it turns ``p, p + s, p + 2 * s`` into a chain of sums, each waiting for the one before.
        """
        return self.emit(f'call ptr asm "", "=r,0"({pointer.typed})', PTR)

    def address(self, pointer: Value) -> Value:
        return self.emit(f"ptrtoint {pointer.typed} to i64", I64)

    def fence(self) -> None:
        """Order stores past the cache before everything that is stored later; nothing else orders them."""
        self.lines.append("  fence seq_cst")

    def data(self, i: int) -> Value:
        """The ``i``-th data pointer."""
        return self.load(self.offset(self.ptr, 8 * i), PTR)

    def size(self, i: int) -> Value:
        """The ``i``-th argument, as an int64."""
        return self.load(self.offset(self.arg, 8 * i), I64)

    def scalar(self, i: int, t: Type) -> Value:
        """The ``i``-th argument as a scalar parameter of type ``t``: floats travel as doubles, the rest as int64."""
        return self.load(self.offset(self.arg, 8 * i), F64 if t.kind == "f" else I64).to(t)

    def first(self, count: Value, lanes: int) -> Value:
        """The mask of the first ``count`` lanes (``count`` is an int64)."""
        small = self.select(count < lanes, count, self.i64(lanes)).to(I32)
        return self.iota(I32, lanes) < small

    # ---- control ----------------------------------------------------------------------------------------------------
    @contextmanager
    def loop(
        self, lo: Value | int, hi: Value | int, step: Value | int = 1, carry: Sequence[Value] = ()
    ) -> Iterator[_Loop]:
        """``for index in range(lo, hi, step)`` (step > 0), carrying values.

        Inside, assign the next values to ``L.carry``; after the block ``L.carry`` holds the final ones.
        """
        lo, hi, step = (self.i64(v) if isinstance(v, int) else v for v in (lo, hi, step))
        before, head, body, done = self._block, self._label("head"), self._label("body"), self._label("done")
        self.lines.append(f"  br label %{head}")
        self._open(head)
        index, phis, at = self._phis([lo, *carry])
        condition = index < hi
        self.lines.append(f"  br i1 {condition.text}, label %{body}, label %{done}")
        self._open(body)
        L = _Loop(index, tuple(phis))
        yield L
        following = index + step
        self._close(at, before, [lo, *carry], [index, *phis], [following, *L.carry])
        self.lines.append(f"  br label %{head}")
        self._open(done)
        L.carry = tuple(phis)

    def groups(self, lo: Value | int, hi: Value | int, size: int) -> Iterator[tuple[Value, int]]:
        """``for first, count in f.groups(lo, hi, size)``: ``size`` (a power of 2) indices at a time, then the rest one
        by one.

        The body of the ``for`` is built twice: with a ``count`` of ``size``, and of 1.
        """
        lo, hi = (self.i64(v) if isinstance(v, int) else v for v in (lo, hi))
        whole = lo + ((hi - lo) & self.i64(-size))
        for start, stop, count in ((lo, whole, size), (whole, hi, 1)) if size > 1 else ((lo, hi, 1),):
            with self.loop(start, stop, count) as L:
                yield L.index, count

    def strips(
        self, lo: Value | int, hi: Value | int, lanes: int, registers: int = 1
    ) -> Iterator[tuple[Value, int, Value | None]]:
        """``for first, count, mask in f.strips(lo, hi, lanes)``: ``registers`` (a power of 2) vectors of ``lanes`` at a
        time, then the rest one by one under a mask. ``mask`` is None for whole ones.

        The body of the ``for`` is built twice.
        """
        lo, hi = (self.i64(v) if isinstance(v, int) else v for v in (lo, hi))
        whole = lo + ((hi - lo) & self.i64(-lanes * registers))
        with self.loop(lo, whole, lanes * registers) as L:
            yield L.index, registers, None
        if registers > 1:
            with self.loop(whole, hi, lanes) as L:
                yield L.index, 1, self.first(hi - L.index, lanes)
        else:
            with self.when(whole < hi):
                yield whole, 1, self.first(hi - whole, lanes)

    @contextmanager
    def while_(self, carry: Sequence[Value]) -> Iterator[_Loop]:
        """A loop with its own condition: compute it, call ``L.test(condition)`` once, then write the body."""
        before, head, body, done = self._block, self._label("head"), self._label("body"), self._label("done")
        self.lines.append(f"  br label %{head}")
        self._open(head)
        first, rest, at = self._phis(list(carry))
        phis = [first, *rest]
        L = _Loop(None, tuple(phis))

        def test(condition: Value) -> None:
            self.lines.append(f"  br i1 {condition.text}, label %{body}, label %{done}")
            self._open(body)

        L._test = test
        yield L
        self._close(at, before, list(carry), phis, list(L.carry))
        self.lines.append(f"  br label %{head}")
        self._open(done)
        L.carry = tuple(phis)

    def _phis(self, starts: list[Value]) -> tuple[Value, list[Value], int]:
        at = len(self.lines)
        phis = [self.emit("phi", v.type, v.lanes) for v in starts]
        return phis[0], phis[1:], at

    def _close(self, at: int, before: str, starts: list[Value], phis: list[Value], nexts: list[Value]) -> None:
        if len(nexts) != len(phis):
            raise ValueError(f"loop carries {len(phis) - 1} values, got {len(nexts) - 1}")
        for i, (start, phi, after) in enumerate(zip(starts, phis, nexts, strict=True)):
            if after.type is not phi.type or after.lanes != phi.lanes:
                raise TypeError(f"loop-carried value starts as {phi.llvm} and continues as {after.llvm}")
            self.lines[at + i] = (
                f"  {phi.text} = phi {phi.llvm} [ {start.text}, %{before} ], [ {after.text}, %{self._block} ]"
            )

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Run the block only if the scalar ``condition`` holds. Values made inside are not visible after it."""
        yes, done = self._label("then"), self._label("done")
        self.lines.append(f"  br i1 {condition.text}, label %{yes}, label %{done}")
        self._open(yes)
        yield
        self.lines.append(f"  br label %{done}")
        self._open(done)

    @contextmanager
    def branch(self, condition: Value) -> Iterator[_Branch]:
        """Run the block if the scalar ``condition`` holds. Call ``B.otherwise()`` in it to start the block that runs if
        not.

        Values made inside are not visible after it.
        """
        yes, no, done = self._label("then"), self._label("else"), self._label("done")
        self.lines.append(f"  br i1 {condition.text}, label %{yes}, label %{no}")
        self._open(yes)
        branch = _Branch(self, no, done)
        yield branch
        if not branch.has_else:
            branch.otherwise()
        self.lines.append(f"  br label %{done}")
        self._open(done)

    # ---- text -------------------------------------------------------------------------------------------------------
    def _body(self, end: str = "void") -> str:
        return "\n".join(["entry:", *self._allocas, *self.lines, f"  ret {end}"])

    def text(self) -> str:
        """The whole module: this function, its helpers, their declarations and metadata."""
        declared = dict(self.declarations)
        for helper in self._helpers:
            declared.update(helper.declarations)
        declarations = "\n".join(declared[k] for k in sorted(declared))
        helpers = "".join(helper.definition(self._attributes()) for helper in self._helpers)
        return (
            f"define void @{self.name}(ptr nocapture readonly %ptr, ptr nocapture readonly %arg, i64 %begin, i64 %end) "
            f"nounwind{self._attributes()} {{\n{self._body()}\n}}\n{helpers}{declarations}\n!0 = !{{i32 1}}\n"
        )

    def _attributes(self) -> str:
        """The attributes of the functions of a kernel with ``features``; they replace the target's features."""
        if not self.features:
            return ""
        from .target import here

        named = ",".join([here().features, *(f"+{x}" for x in self.features)])
        return f' "target-cpu"="{here().cpu}" "target-features"="{named}"'


class _Branch:
    """The result of ``with f.branch(...)``."""

    def __init__(self, fn: Function, no: str, done: str):
        self._fn, self._no, self._done = fn, no, done
        self.has_else = False

    def otherwise(self) -> None:
        """End the first block and start the second."""
        self.has_else = True
        self._fn.lines.append(f"  br label %{self._done}")
        self._fn._open(self._no)


class Helper(Function):
    """An internal function of a kernel's module, with its own parameters (``params``) and at most one result.

    This keeps the register allocator's problem small. The code is emitted once, however often it is called.
    """

    def __init__(self, name: str, params: Sequence[Type], vector_bytes: int, lanes: Sequence[int] = ()):
        super().__init__(name, vector_bytes)
        del self.ptr, self.arg, self.begin, self.end
        lanes = lanes or (1,) * len(params)
        self.params = [Value(self, t, n, f"%p{i}") for i, (t, n) in enumerate(zip(params, lanes, strict=True))]
        self.result: Value | None = None

    def definition(self, attributes: str = "") -> str:
        """The function as LLVM text."""
        params = ", ".join(p.typed for p in self.params)
        kind, end = ("void", "void") if self.result is None else (self.result.llvm, self.result.typed)
        return (
            f"define internal {kind} @{self.name}({params}) nounwind noinline{attributes} {{\n{self._body(end)}\n}}\n"
        )
