"""A model, for the machine that this process plans kernels for, to a shared library and its header."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taeda._core import Tensor, contiguous_format
from taeda._core.replay import bytes_at
from taeda.fx.experimental.symbolic_shapes import Expr
from taeda.kernels.target import Target
from taeda.nn import Module
from taeda.ops.creation import arange

from ..exported_program import ExportedProgram
from .assemble import assemble
from .driver import HEAD
from .elf import link
from .header import DTYPES, Interface
from .header import Tensor as TensorInfo
from .record import Call, Recording, record
from .tables import Tables

#: How a file of weights begins; the SHA-256 of the rest follows.
MAGIC = b"taeda weights 1\n"
#: Sizes of the batch that a library may have: the launches of each are recorded.
MOST_SIZES = 4096


def write_library(
    program: ExportedProgram | Module,
    path: Path,
    args: tuple | None,
    kwargs: dict | None,
    name: str,
    machine: Target,
    beside: bool = False,
) -> Path:
    """What ``build`` does, for a machine whose kernels this process plans; the path of the header."""
    if "linux" not in machine.triple:
        raise NotImplementedError(f"build: libraries are for Linux, this is {machine.triple}; pass target='arm64'")
    call = Call(*_model(program, args, kwargs))
    names, shapes, batches = _inputs(program, call.tensors)
    tables, outputs = _record_all(call, names, shapes, batches)
    inputs = [_info(n, t.dtype, shape) for n, t, shape in zip(names, call.tensors, shapes, strict=True)]
    content, head, file = weights(tables), None, path.with_suffix(".weights")
    if beside:
        digest = hashlib.sha256()
        for part in content:
            digest.update(part)
        head = (MAGIC + digest.digest()).ljust(HEAD, b"\0")
        _write(file, [head, *content])
    interface = Interface(name, inputs, outputs, batches, file.name if beside else None)
    code = assemble(interface, tables, machine, head)
    _write(path, link(code, path.name, [] if beside else content))
    header = path.with_suffix(".h")
    _write(header, [interface.header().encode()])
    return header


def _model(program: Any, args: tuple | None, kwargs: dict | None) -> tuple[Any, tuple, dict]:
    """What to call, and with what."""
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


Shape = tuple[int | None, ...]


def _inputs(program: Any, tensors: Sequence[Tensor]) -> tuple[list[str], list[Shape], tuple[int, int] | None]:
    """The names of the inputs, their sizes with None for the batch, and the first and the last size of this."""
    for i, t in enumerate(tensors):
        if not t.is_contiguous():
            raise ValueError(f"build: expected contiguous arguments, got tensor {i} with strides {t.stride()}")
    if not isinstance(program, ExportedProgram):
        return [f"input{i}" for i in range(len(tensors))], [tuple(t.shape) for t in tensors], None
    checks = [check for check in program._checks.inputs if check.sizes is not None]
    symbols = {size for check in checks for size in check.sizes or () if isinstance(size, Expr)}
    if len(symbols) > 1 or any(size.args for size in symbols):
        raise NotImplementedError(
            f"build: expected one size that changes, the batch, got {', '.join(sorted(map(str, symbols)))}; give the others "
            "their sizes when the program is exported"
        )
    shapes = [tuple(None if isinstance(n, Expr) else n for n in check.sizes or ()) for check in checks]
    names = [check.name for check in checks]
    if not symbols:
        return names, shapes, None
    (symbol,) = symbols
    low, high = program.range_constraints[str(symbol)].lower, program.range_constraints[str(symbol)].upper
    if high - low >= MOST_SIZES:
        raise ValueError(
            f"build: expected a batch of at most {MOST_SIZES} sizes, got {symbol} from {low} to {high}; export with "
            f"Dim({str(symbol)!r}, min=1, max=64)"
        )
    return names, shapes, (int(low), int(high))


def _record_all(
    call: Call, names: list[str], shapes: list[Shape], batches: tuple[int, int] | None
) -> tuple[Tables, list[TensorInfo]]:
    """The launches for all sizes of the batch, and what the outputs are."""
    if batches is None:
        recording = record(call, [_resized(t, s, 0) for t, s in zip(call.tensors, shapes, strict=True)], names)
        tables = Tables(len(names), len(recording.outputs))
        tables.add(0, recording)
        return tables, _outputs(recording, recording)
    found: Tables | None = None
    first = record(call, [_resized(t, s, batches[0]) for t, s in zip(call.tensors, shapes, strict=True)], names)
    last = first
    for batch in range(batches[0], batches[1] + 1):
        tensors = [_resized(t, s, batch) for t, s in zip(call.tensors, shapes, strict=True)]
        last = record(call, tensors, names, dry=True)
        found = found or Tables(len(names), len(last.outputs))
        found.add(batch, last)
    assert found is not None
    return found, _outputs(first, last, batches)


def _resized(t: Tensor, shape: Shape, batch: int) -> Tensor:
    """An example for another batch, in memory of its own: rows of ``t``, some of them again."""
    t = t.detach()
    for d, n in enumerate(shape):
        if n is None:
            t = t.index_select(d, arange(batch) % t.shape[d])
    return t.clone(memory_format=contiguous_format)


def _info(name: str, dtype: Any, sizes: Sequence[int | str | None]) -> TensorInfo:
    if dtype.name not in DTYPES:
        raise NotImplementedError(f"build: {name} is of dtype {dtype.name}; expected one of {', '.join(DTYPES)}")
    return TensorInfo(name, dtype.name, dtype.itemsize, tuple(sizes))


def _outputs(first: Recording, last: Recording, batches: tuple[int, int] | None = None) -> list[TensorInfo]:
    """What is known of the outputs, from the recordings for the smallest and the largest batch."""
    sizes = [
        [n if n == m else None if (n, m) == batches else f"{n} to {m}" for n, m in zip(*pair, strict=True)]
        for pair in zip(first.outputs, last.outputs, strict=True)
    ]
    return [_info(f"output{i}", dtype, shape) for i, (dtype, shape) in enumerate(zip(first.dtypes, sizes, strict=True))]


def weights(tables: Tables) -> list[bytes]:
    """What the launches read, each from a multiple of 64 bytes on."""
    found = []
    for _, address, nbytes in tables.held.values():
        found += [bytes_at(address, nbytes), bytes(-nbytes % 64)]
    return found


def _write(path: Path, parts: Sequence[bytes | bytearray]) -> None:
    """Write a file at once: a program that has the old one loaded keeps it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
