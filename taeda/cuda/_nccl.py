"""NCCL, NVIDIA's library of collectives: its functions, numbers and errors."""

from __future__ import annotations

import ctypes

from ._driver import INT, POINTER, SIZE
from ._library import Library


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


LIBRARY = Library(
    "NCCL", "libnccl.so.2", "nvidia.nccl", "nvidia-nccl-cu13", SIGNATURES, dict.fromkeys(_TEXTS, ctypes.c_char_p)
)


def version() -> int:
    """NCCL's number of its version, as 22803 for 2.28.3."""
    return LIBRARY.get(INT, "ncclGetVersion")


def explain(code: int, what: str) -> str:
    """A message for an error of the function ``what``."""
    number = version()
    known = LIBRARY.functions
    text = (known["ncclGetErrorString"](code) or b"").decode(errors="replace")
    last = (known["ncclGetLastError"](None) or b"").decode(errors="replace").strip()
    where = f"NCCL version {number // 10000}.{number // 100 % 100}.{number % 100}"
    return f"NCCL error in {what}: {text}, {where}" + (f"\nLast error:\n{last}" if last else "")
