"""A model, for the machine that this process plans kernels for, to a shared library and its header."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taeda._core import Tensor, contiguous_format
from taeda._core.replay import bytes_at
from taeda.fx.experimental.symbolic_shapes import Expr
from taeda.kernels.files import atomic_write
from taeda.kernels.target import Target
from taeda.nn import Module
from taeda.ops.creation import arange

from ..exported_program import ExportedProgram
from .assemble import assemble
from .driver import HEAD
from .elf import link
from .header import DTYPES, Interface, Symbol
from .header import Tensor as TensorInfo
from .record import Call, Recording, record
from .tables import Tables

#: How a file of weights begins; the SHA-256 of the rest follows.
MAGIC = b"taeda weights 1\n"
#: Combinations of sizes that a library may have: the launches of each are recorded.
MOST_SIZES = 4096


def write_library(
    program: ExportedProgram | Module, path: Path, args: tuple | None, kwargs: dict | None, name: str, machine: Target,
    beside: bool = False,
) -> Path:  # fmt: skip
    """Do the work of ``build`` for a machine whose kernels this process plans; returns the path of the header."""
    if "linux" not in machine.triple:
        raise NotImplementedError(f"build: libraries are for Linux, this is {machine.triple}; pass target='arm64'")
    call = Call(*_model(program, args, kwargs))
    names, shapes, symbols = _inputs(program, call.tensors)
    tables, outputs = _record_all(call, names, shapes, symbols)
    inputs = [_info(n, t.dtype, shape) for n, t, shape in zip(names, call.tensors, shapes, strict=True)]
    content, head, file = weights(tables), None, path.with_suffix(".weights")
    if beside:
        digest = hashlib.sha256()
        for part in content:
            digest.update(part)
        head = (MAGIC + digest.digest()).ljust(HEAD, b"\0")
    interface = Interface(name, inputs, outputs, symbols, file.name if beside else None)
    code = assemble(interface, tables, machine, head)
    if head is not None:  # the library refuses other weights than its own
        _write(file, [head, *content])
    _write(path, link(code, path.name, [] if beside else content))
    header = path.with_suffix(".h")
    _write(header, [interface.header().encode()])
    return header


def _model(program: Any, args: tuple | None, kwargs: dict | None) -> tuple[Any, tuple, dict]:
    """The callable and its arguments."""
    function = program
    if isinstance(program, ExportedProgram):
        function = program.module()
        if args is None and program.example_inputs is not None:
            args, kwargs = program.example_inputs
    elif not callable(program):
        raise TypeError(f"build: expected an ExportedProgram or a module, got {type(program).__name__}")
    if args is None:
        raise ValueError("build: expected args, a tuple of arguments of the model: there is no example")
    return function, tuple(args), dict(kwargs or {})


Shape = tuple[int | Symbol, ...]


def _inputs(program: Any, tensors: Sequence[Tensor]) -> tuple[list[str], list[Shape], list[Symbol]]:
    """The names of the inputs, their sizes, and the sizes among them that may change."""
    for i, t in enumerate(tensors):
        if not t.is_contiguous():
            raise ValueError(f"build: expected contiguous arguments, got tensor {i} with strides {t.stride()}")
    if not isinstance(program, ExportedProgram):
        return [f"input{i}" for i in range(len(tensors))], [tuple(t.shape) for t in tensors], []
    checks = [check for check in program._checks.inputs if check.sizes is not None]
    sizes = [size for check in checks for size in check.sizes or () if isinstance(size, Expr)]
    derived = sorted({str(size) for size in sizes if size.args})
    if derived:
        raise NotImplementedError(
            f"build: expected sizes that change each for itself, got {', '.join(derived)}; give each a Dim of its own"
        )
    symbols = _symbols(program, list(dict.fromkeys(map(str, sizes))))
    shapes = [tuple(symbols[str(n)] if isinstance(n, Expr) else n for n in check.sizes or ()) for check in checks]
    return [check.name for check in checks], shapes, list(symbols.values())


def _symbols(program: ExportedProgram, names: Sequence[str]) -> dict[str, Symbol]:
    """The sizes that may change, by name. A single one is called the batch."""
    ranges = [program.range_constraints[name] for name in names]
    if math.prod(r.upper - r.lower + 1 for r in ranges) > MOST_SIZES:
        given = " and ".join(f"{name} from {r.lower} to {r.upper}" for name, r in zip(names, ranges, strict=True))
        what = "a batch of at most" if len(names) == 1 else f"{len(names)} sizes that change with at most"
        what += f" {MOST_SIZES} {'sizes' if len(names) == 1 else 'combinations'}"
        raise ValueError(f"build: expected {what}, got {given}; export with Dim({names[0]!r}, min=1, max=64)")
    labels = ["batch"] if len(names) == 1 else [re.sub(r"\W", "_", name, flags=re.ASCII) for name in names]
    if len({label.upper() for label in labels}) < len(labels):  # the header has them in capital letters
        labels = [f"{label}_{k}" for k, label in enumerate(labels)]
    made = [Symbol(labels[k], k, int(r.lower), int(r.upper)) for k, r in enumerate(ranges)]
    return dict(zip(names, made, strict=True))


def _record_all(
    call: Call, names: list[str], shapes: list[Shape], symbols: Sequence[Symbol]
) -> tuple[Tables, list[TensorInfo]]:
    """The launches for all combinations of sizes, and the descriptions of the outputs. The first symbol changes
    fastest.
    """
    found: Tables | None = None
    made: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = []
    ranges = [range(x.low, x.high + 1) for x in reversed(symbols)]
    for which, values in enumerate(v[::-1] for v in itertools.product(*ranges)):
        tensors = [_resized(t, s, values) for t, s in zip(call.tensors, shapes, strict=True)]
        if found is None:
            first = record(call, tensors, names)  # its kernels run: the model may keep results
            found = Tables(len(names), len(first.outputs))
        recording = record(call, tensors, names, dry=True) if symbols else first
        found.add(which, recording)
        made.append((values, recording.outputs))
    assert found is not None
    return found, _outputs(first, made, symbols)


def _resized(t: Tensor, shape: Shape, values: Sequence[int]) -> Tensor:
    """An example for other sizes, in memory of its own: rows of ``t``, some of them again."""
    t = t.detach()
    for d, n in enumerate(shape):
        if isinstance(n, Symbol):
            t = t.index_select(d, arange(values[n.number]) % t.shape[d])
    return t.clone(memory_format=contiguous_format)


def _info(name: str, dtype: Any, sizes: Sequence[int | str | Symbol]) -> TensorInfo:
    if dtype.name not in DTYPES:
        raise NotImplementedError(f"build: {name} is of dtype {dtype.name}; expected one of {', '.join(DTYPES)}")
    return TensorInfo(name, dtype.name, dtype.itemsize, tuple(sizes))


def _outputs(first: Recording, made: Sequence[tuple], symbols: Sequence[Symbol]) -> list[TensorInfo]:
    """Descriptions of the outputs. ``made`` has values of the symbols, and the sizes of the outputs for these."""

    def size(i: int, d: int) -> int | str | Symbol:
        seen = [(values, outputs[i][d]) for values, outputs in made]
        low, high = min(n for _, n in seen), max(n for _, n in seen)
        if low == high:
            return low
        same = (x for x in symbols if all(values[x.number] == n for values, n in seen))
        return next(same, f"{low} to {high}")

    return [
        _info(f"output{i}", dtype, [size(i, d) for d in range(len(first.outputs[i]))])
        for i, dtype in enumerate(first.dtypes)
    ]


def weights(tables: Tables) -> list[bytes]:
    """The weights that launches read, each from a multiple of 64 bytes on."""
    found = []
    for _, address, nbytes in tables.held.values():
        found += [bytes_at(address, nbytes), bytes(-nbytes % 64)]
    return found


def _write(path: Path, parts: Sequence[bytes | bytearray]) -> None:
    """Write a file at once: a program that has the old one loaded keeps it."""
    with atomic_write(path) as file:
        for part in parts:
            file.write(part)
