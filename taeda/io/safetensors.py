"""safetensors files: a header in JSON and the bytes of the tensors, so that reading runs no code.

The format is small enough to be read and written here: eight bytes that give the length of the header, the header, the
data. Names and arguments are those of the ``safetensors.torch`` module.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any

from .. import _core
from .._core import Tensor
from .._core.exchange import copy_to_storage, share_storage
from ..kernels.files import atomic_write
from ..ops.conjugation import resolve_all
from .archive import pieces

#: The format's dtypes, the least aligned first.
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3",
    "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "int16": "I16",
    "uint16": "U16", "float16": "F16", "bfloat16": "BF16", "int32": "I32", "uint32": "U32", "float32": "F32",
    "complex64": "C64", "float64": "F64", "int64": "I64", "uint64": "U64",
}  # fmt: skip
_RANK = {name: i for i, name in enumerate(_NAMES)}
_DTYPES = {theirs: _core.dtype_by_name(ours) for ours, theirs in _NAMES.items()}
_MAX_HEADER = 100_000_000  # as the format's own library


def _header(tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> tuple[bytes, list[Tensor]]:
    """The header and the tensors in the order of their bytes: the most aligned dtypes first, as the library has it."""
    if not isinstance(tensors, dict):
        raise TypeError(f"safetensors: expected a dict of tensors, got {type(tensors).__name__}")
    for name, t in tensors.items():
        if not isinstance(name, str) or not isinstance(t, Tensor):
            raise ValueError(f"safetensors: expected tensors by name, got {type(t).__name__} for {name!r}")
        if name == "__metadata__":
            raise ValueError("safetensors: the name '__metadata__' is the format's own; rename the tensor")
        if t.dtype.name not in _NAMES:
            raise ValueError(f"safetensors: the format has no {t.dtype} (tensor {name!r})")
    import json  # here and below: most programs that import taeda do without

    _check_shared(tensors)
    order = sorted(tensors, key=lambda name: (-_RANK[tensors[name].dtype.name], name))
    fields: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    at = 0
    for name in order:
        t = tensors[name]
        end = at + t.nbytes
        fields[name] = {"dtype": _NAMES[t.dtype.name], "shape": list(t.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, [resolve_all(tensors[name].detach()).contiguous() for name in order]


def _check_shared(tensors: dict[str, Tensor]) -> None:
    """Refuse tensors that share memory: the format would write it several times and forget that it was one."""
    seen: dict[int, str] = {}
    for name, t in tensors.items():
        if not t.numel():
            continue
        other = seen.setdefault(t.untyped_storage()._address(), name)
        if other != name and _overlap(t, tensors[other]):
            raise RuntimeError(
                f"safetensors: tensors {other!r} and {name!r} share memory; save only one of them, or clone() one"
            )


def _overlap(a: Tensor, b: Tensor) -> bool:
    def span(t: Tensor) -> tuple[int, int]:
        start = t.data_ptr()
        return start, start + (sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1) * t.itemsize

    (a0, a1), (b0, b1) = span(a), span(b)
    return a0 < b1 and b0 < a1


def _bytes(t: Tensor) -> memoryview:
    start = t.storage_offset() * t.itemsize
    return t.untyped_storage().cpu()._readable()[start : start + t.nbytes]


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file.

    Args:
        tensors: by name; they may not share memory.
        metadata: strings by name, kept in the header.

    Returns:
        Bytes.
    """
    header, data = _header(tensors, metadata)
    return b"".join([header, *map(_bytes, data)])


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file; it is replaced all at once. Arguments as of :func:`save`."""
    header, data = _header(tensors, metadata)
    with atomic_write(filename) as file:
        file.write(header)
        for t in data:
            for piece in pieces(_bytes(t)):
                file.write(piece)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file given as bytes, by name."""
    return parse(data, False)


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name.

    The file is mapped into memory: a tensor's bytes are read when they are first needed, and writing to a tensor does
    not change the file.
    """
    _core.require_device(device)
    with open(filename, "rb") as file:
        if os.fstat(file.fileno()).st_size < 8:
            raise _broken("it is too short for a header")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return parse(mapped, True)


def _broken(what: str) -> RuntimeError:
    return RuntimeError(f"safetensors: the file is damaged: {what}")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _broken("its header has a name twice")
    return fields


def _read_header(data: Any) -> tuple[dict[str, Any], int]:
    size = len(data)
    if size < 8:
        raise _broken("it is too short for a header")
    import json

    (length,) = struct.unpack("<Q", bytes(data[:8]))
    if length > min(size - 8, _MAX_HEADER):
        raise _broken(f"its header announces {length} bytes, the file has {size}")
    try:
        fields = json.loads(bytes(data[8 : 8 + length]), object_pairs_hook=_refuse_twice)
    except (ValueError, RecursionError) as error:
        raise _broken(f"its header is not JSON ({error})") from None
    if not isinstance(fields, dict):
        raise _broken("its header is no JSON object")
    fields.pop("__metadata__", None)
    return fields, 8 + length


def parse(data: Any, share: bool) -> dict[str, Tensor]:
    """The tensors in ``data``; over its memory, if ``share``.

    Args:
        data: bytes, or what has their memory.
        share: make no copies.

    Returns:
        Tensors by name.

    Raises:
        RuntimeError: the header or an offset does not follow the format.
    """
    fields, start = _read_header(data)
    room = len(data) - start
    result: dict[str, Tensor] = {}
    spans = []
    for name, field in fields.items():
        dtype, shape, begin, end = _check_field(name, field)
        if end > room:
            raise _broken(f"tensor {name!r} ends at byte {end}, the file has {room}")
        spans.append((begin, end))
        # a record may start at any byte of the file; only aligned ones can be shared
        if share and (start + begin) % dtype.itemsize == 0:
            storage = share_storage(data, start + begin, end - begin)
        else:
            storage = copy_to_storage(data, start + begin, end - begin)
        strides, step = [], 1
        for size in reversed(shape):
            strides.append(step)
            step *= max(size, 1)
        result[name] = _core.from_storage(storage, dtype, tuple(shape), tuple(reversed(strides)))
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            raise _broken("its tensors overlap or leave gaps")
        at = end
    if at != room:
        raise _broken(f"its tensors end at byte {at}, the file has {room}")
    return result


def _check_field(name: str, field: Any) -> tuple[Any, list[int], int, int]:
    try:
        kind, shape, (begin, end) = field["dtype"], field["shape"], field["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise _broken(f"tensor {name!r} has no dtype, shape or data_offsets") from None
    dtype = _DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        raise _broken(f"tensor {name!r} is of type {kind!r}, which taeda does not have")
    whole = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**62 for n in [*shape, begin, end])
    if not whole or len(shape) > 64:
        raise _broken(f"tensor {name!r} has shape {shape!r} and offsets {begin!r} to {end!r}")
    numel = 1
    for n in shape:
        numel *= n
    if begin > end or end - begin != numel * dtype.itemsize:
        raise _broken(f"tensor {name!r} of shape {shape} and {dtype} has {end - begin} bytes")
    return dtype, shape, begin, end
