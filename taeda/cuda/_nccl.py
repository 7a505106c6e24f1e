"""NCCL, NVIDIA's library of collectives: where its functions come from, and calls of them.

They come from libnccl.so.2, which the package ``nvidia-nccl-cu13`` brings, or, where ``TAEDA_CUDA`` names a package
that stands in for the driver, from its module ``nccl``: ``table()`` gives ``{"ncclAllReduce": address, ...}``.
"""

from __future__ import annotations

import ctypes
import functools
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ._driver import INT, POINTER, SIZE, MissingError, provided

_NAME = "libnccl.so.2"


class UniqueId(ctypes.Structure):
    """The identifier that the processes of a communicator share: ``ncclUniqueId``."""

    _fields_ = (("internal", ctypes.c_char * 128),)


#: The types of the parameters of each function (NCCL 2); a result is an int, 0 for success.
SIGNATURES: dict[str, tuple] = {
    "ncclGetVersion": (POINTER,),
    "ncclGetUniqueId": (POINTER,),
    "ncclCommInitRank": (POINTER, INT, UniqueId, INT),
    "ncclCommDestroy": (POINTER,),
    "ncclCommGetAsyncError": (POINTER, POINTER),
    "ncclAllReduce": (POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER),
    "ncclBroadcast": (POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER),
    "ncclReduce": (POINTER, POINTER, SIZE, INT, INT, INT, POINTER, POINTER),
    "ncclAllGather": (POINTER, POINTER, SIZE, INT, POINTER, POINTER),
    "ncclReduceScatter": (POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER),
    "ncclSend": (POINTER, SIZE, INT, INT, POINTER, POINTER),
    "ncclRecv": (POINTER, SIZE, INT, INT, POINTER, POINTER),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclGetErrorString": (INT,),
    "ncclGetLastError": (POINTER,),
}
_TEXTS = ("ncclGetErrorString", "ncclGetLastError")  # these give a text

#: NCCL's numbers of dtypes, by taeda's names of them. Complex numbers go as two floats.
DTYPES = {
    "int8": 0, "uint8": 1, "bool": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9, "float8_e4m3fn": 10, "float8_e5m2": 11,
}  # fmt: skip
#: NCCL's numbers of reductions.
OPS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4}


def _from_library() -> dict[str, int]:
    """The addresses of libnccl's functions: of the package's library, or of one that the system finds."""
    places = [Path(p) / "lib" / _NAME for p in _package()]
    failed = ""
    for place in [*(str(p) for p in places if p.exists()), _NAME]:
        try:
            library = ctypes.CDLL(place)
            return {name: ctypes.cast(getattr(library, name), POINTER).value or 0 for name in SIGNATURES}
        except (OSError, AttributeError) as error:
            failed = failed or str(error)
    raise MissingError(f"NCCL was not found ({failed}); install it with: pip install nvidia-nccl-cu13")


def _package() -> list[str]:
    """The folders of the package ``nvidia-nccl-cu13``."""
    try:
        found = find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return []
    return list(found.submodule_search_locations or ()) if found else []


@functools.cache
def functions() -> dict[str, Any]:
    """The functions, by name.

    Raises:
        MissingError: there is no NCCL.
    """
    chosen = os.environ.get("TAEDA_CUDA", "")
    table = provided(f"{chosen}.nccl", "NCCL", SIGNATURES) if chosen else _from_library()
    return {
        name: ctypes.CFUNCTYPE(ctypes.c_char_p if name in _TEXTS else INT, *types)(table[name])
        for name, types in SIGNATURES.items()
    }


def why_none() -> str:
    """Why there is no NCCL; empty where there is one."""
    try:
        functions()
    except MissingError as error:
        return str(error)
    return ""


def version() -> int:
    """NCCL's number of its version, as 22803 for 2.28.3."""
    made = ctypes.c_int()
    functions()["ncclGetVersion"](ctypes.byref(made))
    return made.value


def explain(code: int, what: str) -> str:
    """A message for an error of the function ``what``."""
    number = version()
    known = functions()
    text = (known["ncclGetErrorString"](code) or b"").decode(errors="replace")
    last = (known["ncclGetLastError"](None) or b"").decode(errors="replace").strip()
    where = f"NCCL version {number // 10000}.{number // 100 % 100}.{number % 100}"
    return f"NCCL error in {what}: {text}, {where}" + (f"\nLast error:\n{last}" if last else "")
