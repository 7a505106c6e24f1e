"""cuDNN: large convolutions of floats on a GPU, and their gradients, by its graph API.

A graph of one operation describes a convolution. The library proposes engines for it, best first. The first is taken
that gives the same bits in each run, and has no other dtype for operands or sums than is asked for (TF32 is a switch).
There are no trials. What was found is kept by the form of the call.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from ..backends import cudnn as switches
from . import _driver, _native
from ._driver import INT, POINTER
from ._library import Library, calling, keep_for_graph

_I64 = ctypes.c_int64
#: The types of the parameters of each function (cuDNN 9); a result is an int, 0 for success.
SIGNATURES: dict[str, tuple] = {
    "cudnnCreate": (POINTER,),
    "cudnnSetStream": (POINTER, POINTER),
    "cudnnGetProperty": (INT, POINTER),
    "cudnnBackendCreateDescriptor": (INT, POINTER),
    "cudnnBackendDestroyDescriptor": (POINTER,),
    "cudnnBackendFinalize": (POINTER,),
    "cudnnBackendSetAttribute": (POINTER, INT, INT, _I64, POINTER),
    "cudnnBackendGetAttribute": (POINTER, INT, INT, _I64, POINTER, POINTER),
    "cudnnBackendExecute": (POINTER, POINTER, POINTER),
}
LIBRARY = Library("cuDNN", "libcudnn.so.9", "nvidia.cudnn", "nvidia-cudnn-cu13", SIGNATURES)

#: From so many multiplications on the library is asked. It is a guess: no GPU was there to measure it.
LEAST = 1 << 20
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}  # cudnnDataType_t

# Types of attributes, a cudnnBackendAttributeType_t and what its values are in C.
_HANDLE, _DTYPE, _INTEGER, _REAL, _POINTER = (0, POINTER), (1, INT), (3, _I64), (5, ctypes.c_double), (6, POINTER)
_MODE, _HEURISTIC, _NOTE, _DESCRIPTOR = (7, INT), (8, INT), (11, INT), (15, POINTER)


def _operation(first: int, *tensors: str) -> dict[str, tuple]:
    """The attributes of a convolution of a role, which are numbered from ``first`` on."""
    names = ("alpha", _REAL), ("beta", _REAL), ("convolution", _DESCRIPTOR), *((x, _DESCRIPTOR) for x in tensors)
    return {name: (first + i, kind) for i, (name, kind) in enumerate(names)}


#: Kinds of descriptors: the number of each (CUDNN_BACKEND_*_DESCRIPTOR), and its attributes (CUDNN_ATTR_*).
_KINDS: dict[str, tuple[int, dict[str, tuple]]] = {
    "tensor": (17, {"alignment": (900, _INTEGER), "dtype": (901, _DTYPE), "sizes": (902, _INTEGER),
                    "strides": (903, _INTEGER), "id": (906, _INTEGER)}),
    "convolution": (1, {"dtype": (100, _DTYPE), "mode": (101, _MODE), "dilation": (102, _INTEGER),
                        "stride": (103, _INTEGER), "after": (104, _INTEGER), "before": (105, _INTEGER),
                        "dims": (106, _INTEGER)}),
    "forward": (10, _operation(700, "w", "x", "y")),
    "input": (12, _operation(706, "w", "x", "y")),
    "weights": (11, _operation(712, "w", "x", "y")),
    "graph": (15, {"handle": (800, _HANDLE), "operations": (801, _DESCRIPTOR)}),
    "heuristic": (4, {"mode": (200, _HEURISTIC), "graph": (201, _DESCRIPTOR), "results": (202, _DESCRIPTOR)}),
    "configuration": (3, {"engine": (300, _DESCRIPTOR)}),
    "engine": (2, {"notes": (1303, _NOTE)}),
    "plan": (5, {"handle": (400, _HANDLE), "configuration": (401, _DESCRIPTOR), "workspace": (402, _INTEGER)}),
    "pack": (16, {"ids": (1000, _INTEGER), "addresses": (1001, _POINTER), "workspace": (1003, _POINTER)}),
}  # fmt: skip
_CORRELATION = 1  # CUDNN_CROSS_CORRELATION
_HEURISTICS = 3, 2  # CUDNN_HEUR_MODE_A, _FALLBACK
# CUDNN_NUMERICAL_NOTE_*
_TENSOR_CORE, _ROUNDS_OPERANDS, _ROUNDS_SUMS, _DIFFERS = 0, 1, 2, 4
_REFUSED = range(2000, 4000)  # CUDNN_STATUS_BAD_PARAM to _NOT_SUPPORTED, with what they are in detail
_IDS = {"x": 1, "w": 2, "y": 3}
_MOST_WORKSPACE = 256 << 20
_MOST_PLANS = 4096


class _Refused(Exception):
    """The library has nothing for a convolution."""


def _call(name: str, *args: Any) -> None:
    code = LIBRARY.functions[name](*args)
    if code in _REFUSED:
        raise _Refused(f"cuDNN error {code} ({name})")
    if code:
        raise RuntimeError(f"cuDNN error {code} ({name})")


def _destroy(handles: list, index: int) -> None:
    """Destroy what a plan consists of, when its work is done."""
    if not _native.is_forked():
        with calling(index):
            if not _native.captured_here():
                _driver.ask("cuCtxSynchronize")
            for handle in reversed(handles):
                LIBRARY.functions["cudnnBackendDestroyDescriptor"](handle)


def _created(kind: str, handles: list) -> Any:
    handle = POINTER()
    _call("cudnnBackendCreateDescriptor", _KINDS[kind][0], ctypes.byref(handle))
    handles.append(handle)
    return handle


def _made(kind: str, handles: list, **attributes: Any) -> Any:
    """A descriptor with these attributes, which is one of ``handles`` from now on."""
    handle = _created(kind, handles)
    for name, value in attributes.items():
        number, (code, c_type) = _KINDS[kind][1][name]
        values = value if isinstance(value, (tuple, list)) else (value,)
        _call("cudnnBackendSetAttribute", handle, number, code, len(values), (c_type * len(values))(*values))
    _call("cudnnBackendFinalize", handle)
    return handle


def _read(kind: str, handle: Any, name: str, given: Sequence[Any] = (0,) * 16) -> list:
    """The values of an attribute; descriptors are written to those that are ``given``."""
    number, (code, c_type) = _KINDS[kind][1][name]
    found, values = _I64(), (c_type * len(given))(*given)
    _call("cudnnBackendGetAttribute", handle, number, code, len(given), ctypes.byref(found), values)
    return values[: min(found.value, len(given))]


def _configurations(graph: Any, handles: list) -> Iterator[Any]:
    """What the library proposes for a graph, best first, then what works for most."""
    number, (code, _) = _KINDS["heuristic"][1]["results"]
    for mode in _HEURISTICS:
        count = _I64()
        try:
            heuristic = _made("heuristic", handles, mode=mode, graph=graph)
            _call("cudnnBackendGetAttribute", heuristic, number, code, 0, ctypes.byref(count), None)
        except _Refused:
            continue
        given = [_created("configuration", handles) for _ in range(count.value)]
        yield from given[: len(_read("heuristic", heuristic, "results", given))] if given else ()


class _Plan:
    """How convolutions of one form are computed: ``chosen``, an execution plan, and its workspace; None where the
    library has nothing. A graph that captured its work keeps it."""

    def __init__(self, index: int, handle: Any, form: tuple) -> None:
        self.index = index
        self.handles: list = []  # of descriptors
        weakref.finalize(self, _destroy, self.handles, index).atexit = False
        self.chosen, self.workspace = None, 0
        try:
            self._choose(handle, self._graph(handle, *form[:-1]), unwanted=form[-1])
        except _Refused:
            return

    def _graph(
        self, handle: Any, role: str, dtype: int, shapes: tuple, strides: tuple, alignments: tuple, steps: tuple
    ) -> Any:
        stride, before, after, dilation = steps
        tensors = {
            name: _made("tensor", self.handles, dtype=dtype, sizes=sizes, strides=step, id=_IDS[name], alignment=to)
            for name, sizes, step, to in zip(_IDS, shapes, strides, alignments, strict=True)
        }
        convolution = _made(
            "convolution", self.handles, dtype=1 if dtype == 1 else 0, mode=_CORRELATION, dims=len(stride),
            stride=stride, before=before, after=after, dilation=dilation,
        )  # fmt: skip
        operation = _made(role, self.handles, convolution=convolution, alpha=1, beta=0, **tensors)
        return _made("graph", self.handles, handle=handle, operations=operation)

    def _choose(self, handle: Any, graph: Any, unwanted: frozenset[int]) -> None:
        for configuration in _configurations(graph, self.handles):
            engine = _created("engine", self.handles)
            _read("configuration", configuration, "engine", (engine,))
            if unwanted.intersection(_read("engine", engine, "notes")):
                continue
            plan = self._planned(handle, configuration)
            if plan is None:
                continue
            (self.workspace,) = _read("plan", plan, "workspace", (0,))
            if self.workspace <= _MOST_WORKSPACE:
                self.chosen = plan
                return

    def _planned(self, handle: Any, configuration: Any) -> Any:
        """An execution plan; None where the engine cannot, which of some the library learns only here."""
        for again in (True, False):
            try:
                return _made("plan", self.handles, handle=handle, configuration=configuration)
            except _Refused:
                return None
            except RuntimeError:
                if again:
                    _native.MEMORIES[self.index].empty()  # the library allocates from the driver
        return None


class _Handle:
    """The library's handle for one GPU, made when it is first used. It lives as long as the process."""

    def __init__(self, index: int) -> None:
        made = POINTER()
        with calling(index):
            _call("cudnnCreate", ctypes.byref(made))
        self.value, self.lock = made, threading.Lock()  # it has one stream


_handles: dict[int, _Handle] = {}
_plans: dict[tuple, _Plan] = {}
_lock = threading.Lock()


def _plan_of(index: int, form: tuple) -> _Plan:
    with _lock:
        plan = _plans.get((index, form))
        if plan is None:
            if index not in _handles:
                _handles[index] = _Handle(index)
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            with calling(index):
                plan = _plans[index, form] = _Plan(index, _handles[index].value, form)
    return plan


def _strides(sizes: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """Of a contiguous tensor with channels second or ``last``."""
    order = (0, *range(2, len(sizes)), 1) if last else range(len(sizes))
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d], step = step, step * sizes[d]
    return tuple(strides)


def _after(size: int, kernel: int, result: int, stride: int, before: int, dilation: int) -> int | None:
    """The zeros behind a dimension, as many as before it where that gives the size of the result; None: no number of
    zeros does."""
    least = (result - 1) * stride + (kernel - 1) * dilation + 1 - size - before
    zeros = before if least <= before < least + stride else max(least, 0)
    return zeros if zeros < least + stride else None


def _aligned(address: int) -> int:
    return min(address & -address, 16)


def convolve(
    index: int, role: str, dtype: str, shapes: Sequence, at: Sequence[int], last: bool, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int],
) -> bool:  # fmt: skip
    """Compute a convolution or a gradient, by the library; whether it could.

    Args:
        index: of the GPU.
        role: what is computed: ``"forward"`` the outputs, ``"input"`` the images, ``"weights"``.
        shapes: of the images, the weights and the outputs, which are contiguous, with three spatial dimensions.
        at: their addresses.
        last: whether channels are last in memory.
    """
    if dtype not in _TYPES or not switches.enabled:
        return False
    kind, (x, w, y) = _TYPES[dtype], shapes
    after = [_after(x[2 + d], w[2 + d], y[2 + d], stride[d], padding[d], dilation[d]) for d in range(3)]
    if None in after:
        return False
    flat = 1 if x[2] == w[2] == y[2] == 1 and padding[0] == after[0] == 0 else 0  # two dimensions
    shapes = tuple((*size[:2], *size[2 + flat :]) for size in (x, w, y))
    unwanted = {_DIFFERS, _ROUNDS_OPERANDS, _ROUNDS_SUMS}
    if dtype == "float32" and not (switches.allow_tf32 and switches.conv.fp32_precision == "tf32"):
        unwanted.add(_TENSOR_CORE)
    form = (
        role, kind, shapes, tuple(_strides(size, last) for size in shapes), tuple(_aligned(p) for p in at),
        tuple(tuple(steps[flat:]) for steps in (stride, padding, after, dilation)), frozenset(unwanted),
    )  # fmt: skip
    plan = _plan_of(index, form)
    if plan.chosen is None:
        return False
    keep_for_graph(plan)
    _run(index, plan, at)
    return True


def _run(index: int, plan: _Plan, at: Sequence[int]) -> None:
    handle = _handles[index]
    handles: list = []
    with calling(index, *at) as (stream, *_), handle.lock:
        area = _native.take_memory(index, plan.workspace, stream) if plan.workspace else 0
        try:
            pack = _made("pack", handles, ids=tuple(_IDS.values()), addresses=at, workspace=area)
            _call("cudnnSetStream", handle.value, stream)
            _call("cudnnBackendExecute", handle.value, plan.chosen, pack)
        finally:
            if area:
                _native.release_memory(index, area)
            for one in handles:
                LIBRARY.functions["cudnnBackendDestroyDescriptor"](one)


def version() -> int | None:
    """The version of the library, as 92801 for 9.28.1; None where there is none."""
    if LIBRARY.why_none:
        return None
    major, minor, patch = (LIBRARY.get(INT, "cudnnGetProperty", i) for i in range(3))
    return 10000 * major + 100 * minor + patch
