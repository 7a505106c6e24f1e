"""The launches of a model's call as data: the kernels, and the target of each pointer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from taeda._core import Tensor, block_copy, contiguous_format, replay, tensor
from taeda._core.fusion import call
from taeda._core.trace_record import record_trace
from taeda.autograd.modes import no_grad
from taeda.kernels.build import is_kernel
from taeda.kernels.host_functions import HOST_FUNCTIONS, KERNEL_AT, NAMES
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .refusals import op_of_launch, op_of_refusal

#: By address: functions of the core that launches run, by name.
_NAMES = {address: name for module in (tensor, block_copy) for name, address in module.HOST_FUNCTIONS.items()}

Kernel = str | int  # the name of a function of the core, or the address of a kernel


@dataclass(frozen=True)
class Launch:
    """One launch.

    Attributes:
        kernel: what is run.
        first, slots: its first slot, and how many it has: pointers lie in slots one after the other.
        numbers: its numbers; a kernel among them is a ``Kernel`` in ``inside`` by its place, and 0 here.
        total, grain, small: the range, how it is cut, whether it is for one thread.
        flags: bytes of flags up to its own.
    """

    kernel: Kernel
    first: int
    slots: int
    numbers: tuple[int, ...]
    inside: tuple[tuple[int, Kernel], ...]
    total: int
    grain: int
    small: bool
    flags: int


@dataclass
class Recording:
    """A call, for one combination of sizes.

    Attributes:
        launches: in order.
        slots: for each word of pointers and tables: ``("kernel", Kernel)``, ``("number", int)`` or
            ``(base, number, offset)`` with the base "input", "output", "held", "scratch", "slots" or "flags".
        fills: ``(base, number, offset, content)``: bytes that are written before the first launch.
        scratch: bytes of memory for the time of a call.
        held: ``(key, address, bytes)`` of what is read of before.
        inputs, outputs: sizes.
        dtypes: of the outputs.
        constants: raw bytes that slots lead to, as base "constant".
    """

    launches: list[Launch]
    slots: list[tuple]
    fills: list[tuple[str, int, int, bytes]]
    scratch: int
    held: list[tuple[int, int, int]]
    inputs: list[tuple[int, ...]]
    outputs: list[tuple[int, ...]]
    dtypes: list[Any]
    constants: list[bytes] = field(default_factory=list)
    alive: Any = None  # the trace: it holds the storages


class Call:
    """A model as a function of the tensors among its arguments, that gives a tuple of tensors.

    Args:
        function: the model.
        args: its arguments by position.
        kwargs: its arguments by name.

    Attributes:
        tensors: those among the arguments, however these nest.
        copied: numbers of results that are parts of memory, or of memory that something else has.
        prepared: what its launches need compute only once, such as packed weights: for all recordings.
    """

    def __init__(self, function: Callable, args: tuple, kwargs: dict):
        self.function = function
        self.leaves, self.spec = tree_flatten((args, kwargs))
        self.tensors: list[Tensor] = [x for x in self.leaves if isinstance(x, Tensor)]
        self.copied: set[int] = set()
        self.prepared: dict[tuple, Any] = {}

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        rest = iter(tensors)
        args, kwargs = tree_unflatten([next(rest) if isinstance(x, Tensor) else x for x in self.leaves], self.spec)
        results = [x for x in tree_leaves(call(self.function, *args, **kwargs)) if x is not None]
        for x in results:
            if not isinstance(x, Tensor):
                raise NotImplementedError(f"build: expected a model that gives tensors, got {type(x).__name__}")
        return tuple(x.clone(memory_format=contiguous_format) if i in self.copied else x for i, x in enumerate(results))


def record(call: Call, tensors: Sequence[Tensor], names: Sequence[str], dry: bool = False) -> Recording:
    """The launches of ``call(*tensors)``.

    Args:
        call: the model.
        tensors: its inputs.
        names: their names.
        dry: run no kernel: for a model that keeps nothing of what it computes.
    Returns:
        The recording.
    Raises:
        NotImplementedError: the call does something that a library cannot do; the message says what, and where.
    """
    tensors = list(tensors)
    with no_grad():
        if not dry:
            call(*tensors)  # makes kernels and tables that are kept, as at the first call of a model
        for _ in range(2):
            results, trace = record_trace(call, tuple(tensors), {}, tensors, dry, call.prepared)
            if not isinstance(trace, replay.Trace):
                if dry:  # the first call may keep a table
                    return record(call, tensors, names)
                why, place = trace
                at = f", at {place}" if place else ""
                op = op_of_refusal(call, tensors)
                raise NotImplementedError(f"build: the model cannot be written as launches: {why}{op}{at}")
            trace.prepare()
            parts = replay.parts_of(trace)
            shared = _shared(parts, results)
            if not shared:
                reader = _Reader(parts, tensors, results, names, trace)
                reader.name_op = lambda launch: op_of_launch(call, tensors, launch)
                return reader.read()
            call.copied |= shared
    raise NotImplementedError(f"build: results {sorted(shared)} of the model are no tensors in memory of their own")


def _shared(parts: dict, results: tuple) -> set[int]:
    """Results that are not all of a storage that the call makes."""
    found, seen = set(), set()
    for n, (form, x) in enumerate(zip(parts["results"], results, strict=True)):
        whole = form is not None and form[0] == "made" and form[2] == 0 and x.is_contiguous()
        if not whole or form[1] in seen or parts["made"][form[1]] != x.numel() * x.itemsize:
            found.add(n)
        else:
            seen.add(form[1])
    return found


class _Reader:
    """Turns the parts of a trace into a :class:`Recording`."""

    def __init__(self, parts: dict, tensors: list, results: tuple, names: Sequence[str], trace: Any):
        self.parts, self.tensors, self.results, self.names, self.trace = parts, tensors, results, names, trace
        self.name_op: Callable[[int], str] = lambda launch: ""

    def read(self) -> Recording:
        parts = self.parts
        if parts["writes"]:
            where = parts["writes"][0]
            what = f"input {self.names[where]}" if where < len(self.names) else "a parameter or buffer"
            raise NotImplementedError(
                f"build: the model writes to {what}; expected one that only computes (call eval(), or return the value)"
            )
        self.output_of = {form[1]: n for n, form in enumerate(parts["results"])}
        found = Recording(
            [], [], [], parts["scratch"], parts["held"], [tuple(t.shape) for t in self.tensors],
            [tuple(t.shape) for t in self.results], [t.dtype for t in self.results], alive=self.trace,
        )  # fmt: skip
        self._slots(found)
        found.fills = [(*self._base(b), offset, content) for b, offset, content in parts["filled"]]
        steps = enumerate(parts["steps"])
        found.launches = [self._launch(i, *step) for i, step in steps if i not in parts["prepared"]]
        return found

    def _base(self, b: int) -> tuple[str, int]:
        parts = self.parts
        if b < len(parts["given"]):
            return "input", parts["given"][b]
        b -= len(parts["given"])
        if b < len(parts["held"]):
            return "held", b
        b -= len(parts["held"])
        return ("output", self.output_of[b]) if b < len(parts["made"]) else ("scratch", 0)

    def _slots(self, found: Recording) -> None:
        """Each word that holds a pointer: first the launches' words, then those of tables of addresses."""
        start, values = self.parts["slots"]
        patched = {slot: (*self._base(b), offset) for b, offset, slot in self.parts["patches"]}
        tables = {address: content for address, content in self.parts["tables"]}
        inside = {  # tables of addresses; the others are bytes
            address
            for address, content in tables.items()
            if any(address <= s < address + len(content) for s in patched)
        }
        at, words = {}, list(values)
        addresses = [start + 8 * k for k in range(len(values))]
        for address in sorted(inside):
            at[address] = len(words)
            words += struct.unpack(f"<{len(tables[address]) // 8}Q", tables[address])
            addresses += [address + 8 * k for k in range(len(tables[address]) // 8)]
        flags, nflags = self.parts["flags"], max((s[7] for s in self.parts["steps"]), default=0)
        constants = {address: n for n, address in enumerate(a for a in tables if a not in inside)}
        found.constants = [tables[a] for a in constants]

        spans = (self.parts["steps"][i][1:3] for i in self.parts["prepared"])
        unused = {k for first, count in spans for k in range(first, first + count)}

        def classify(k: int, value: int) -> tuple:
            if k in unused:  # the launch is left out
                return ("number", 0)
            if addresses[k] in patched:
                return patched[addresses[k]]
            if value == 0:
                return ("number", 0)
            if flags <= value < flags + nflags:
                return ("flags", 0, value - flags)
            if is_kernel(value) or value in _NAMES:
                return ("kernel", self._kernel(value))
            if k >= len(values):
                return ("number", value)
            for address, content in tables.items():
                if address <= value < address + max(len(content), 1):
                    if address in inside:
                        return ("slots", 0, 8 * at[address] + value - address)
                    return ("constant", constants[address], value - address)
            raise NotImplementedError("build: a launch is given an address that is not known")

        found.slots = [classify(k, value) for k, value in enumerate(words)]

    def _kernel(self, address: int, launch: int = -1) -> Kernel:
        name = _NAMES.get(address) or NAMES.get(address)
        if name is None and is_kernel(address):
            return address
        if name not in HOST_FUNCTIONS:
            op = self.name_op(launch) if launch >= 0 else ""
            raise NotImplementedError(
                f"build: {op}the model draws random numbers, or does something else that is no kernel; expected one "
                "for inference: call eval() first"
            )
        return name

    def _launch(
        self, i: int, kernel: int, first: int, count: int, numbers: tuple, total: int, grain: int, small: bool,
        flags: int,
    ) -> Launch:  # fmt: skip
        if kernel == 0:
            raise NotImplementedError("build: the model runs an optimiser; expected one for inference")
        what, inside = self._kernel(kernel, i), []
        place = KERNEL_AT.get(what) if isinstance(what, str) else None
        if place is not None:
            inside.append((place, self._kernel(numbers[place])))
            numbers = (*numbers[:place], 0, *numbers[place + 1 :])
        if any(n > 1 << 32 and (is_kernel(n) or n in _NAMES) for n in numbers):
            raise NotImplementedError("build: a launch has the address of a kernel among its numbers")
        return Launch(what, first, count, tuple(numbers), tuple(inside), total, max(grain, 1), small, flags)
