"""cuFFT: discrete Fourier transforms on a GPU.

A plan is for rows of transforms that lie one after the other in memory, of up to three dimensions; what lies otherwise
is copied. Plans are kept by their form (``backends.cuda.cufft_plan_cache``). Their work areas are the allocator's.
"""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import tensor as core
from ..backends.cuda import cufft_plan_cache
from ..ops.fft import _form, _result
from . import _native
from ._driver import INT, POINTER, SIZE
from ._library import Library, address, calling, keep_for_graph

_I64 = ctypes.c_longlong
#: The types of the parameters of each function (cuFFT 12); a result is an int, 0 for success.
SIGNATURES: dict[str, tuple] = {
    "cufftGetVersion": (POINTER,),
    "cufftCreate": (POINTER,),
    "cufftDestroy": (INT,),
    "cufftSetAutoAllocation": (INT, INT),
    "cufftXtMakePlanMany": (
        INT, INT, POINTER, POINTER, _I64, _I64, INT, POINTER, _I64, _I64, INT, _I64, POINTER, INT
    ),
    "cufftSetStream": (INT, POINTER),
    "cufftSetWorkArea": (INT, POINTER),
    "cufftXtExec": (INT, POINTER, POINTER, INT),
}  # fmt: skip
LIBRARY = Library("cuFFT", "libcufft.so.12", "nvidia.cu13", "nvidia-cufft", SIGNATURES)

#: The names of its errors.
ERRORS = {
    1: "CUFFT_INVALID_PLAN", 2: "CUFFT_ALLOC_FAILED", 3: "CUFFT_INVALID_TYPE", 4: "CUFFT_INVALID_VALUE",
    5: "CUFFT_INTERNAL_ERROR", 6: "CUFFT_EXEC_FAILED", 7: "CUFFT_SETUP_FAILED", 8: "CUFFT_INVALID_SIZE",
    9: "CUFFT_UNALIGNED_DATA", 11: "CUFFT_INVALID_DEVICE", 13: "CUFFT_NO_WORKSPACE", 14: "CUFFT_NOT_IMPLEMENTED",
    16: "CUFFT_NOT_SUPPORTED", 17: "CUFFT_MISSING_DEPENDENCY", 18: "CUFFT_NVRTC_FAILURE",
}  # fmt: skip
_ALLOC_FAILED = 2
_TYPES = {_core.float32: 0, _core.float64: 1, _core.complex64: 4, _core.complex128: 5}  # cudaDataType
_FORWARD, _INVERSE = -1, 1
_MOST = 3  # dimensions of a transform


def _call(name: str, *args: Any) -> None:
    code = LIBRARY.functions[name](*args)
    if code:
        raise RuntimeError(f"cuFFT error: {ERRORS.get(code, code)} ({name})")


def _destroy(handle: int, index: int) -> None:
    """Destroy a plan. The library frees its tables, for which it waits until no kernel reads them."""
    if not _native.is_forked():
        with calling(index):
            LIBRARY.functions["cufftDestroy"](handle)


class _Plan:
    """A plan for ``batch`` rows of ``sizes`` on a GPU. It ends with the last that refers to it: the cache, or a graph
    that captured its work."""

    def __init__(self, index: int, sizes: tuple[int, ...], batch: int, source: int, result: int) -> None:
        self.lock = threading.Lock()
        self.handle = self._made(index, sizes, batch, source, result)
        weakref.finalize(self, _destroy, self.handle, index).atexit = False

    def _made(self, index: int, sizes: tuple[int, ...], batch: int, source: int, result: int) -> int:
        handle, work, n = INT(), SIZE(), (_I64 * len(sizes))(*sizes)
        given = len(sizes), n, None, 1, 0, source, None, 1, 0, result, batch, ctypes.byref(work), max(source, result)
        for again in (True, False):
            _call("cufftCreate", ctypes.byref(handle))
            LIBRARY.functions["cufftSetAutoAllocation"](handle, 0)
            code = LIBRARY.functions["cufftXtMakePlanMany"](handle, *given)
            if not code:
                break
            LIBRARY.functions["cufftDestroy"](handle)
            if not (again and code == _ALLOC_FAILED):
                raise RuntimeError(f"cuFFT error: {ERRORS.get(code, code)} (a plan of {batch} rows of {list(sizes)})")
            _native.MEMORIES[index].empty()  # it allocates from the driver
        self.work = work.value
        return handle.value


def _run(x: Any, sizes: tuple[int, ...], result: Any, forward: bool) -> None:
    """Transform rows of ``sizes`` of ``x``, which is contiguous, to those of ``result``, which is too."""
    index = x.device.index
    batch = result.numel() // math.prod((*result.shape[result.dim() - len(sizes) :],))
    types = _TYPES[x.dtype], _TYPES[result.dtype]
    with calling(index):
        key = (sizes, batch, *types)
        plan = cufft_plan_cache[index].find(key, lambda: _Plan(index, sizes, batch, *types))
        keep_for_graph(plan)
    work = _core.empty((plan.work,), _core.uint8)
    with calling(index, x, result, work) as (stream, source, to, area), plan.lock:
        _call("cufftSetStream", plan.handle, stream)
        _call("cufftSetWorkArea", plan.handle, area)
        _call("cufftXtExec", plan.handle, source, to, _FORWARD if forward else _INVERSE)


def _order(input: Any, dims: tuple[int, ...], fixed: int = 0) -> tuple[list[int], list[int]]:
    """The dimensions that are not transformed and those that are, each as they lie in memory; ``fixed`` of the latter
    stay the last."""
    strides, nd = input.stride(), input.dim()
    dims = tuple(d % nd for d in dims)
    head, tail = dims[: len(dims) - fixed], dims[len(dims) - fixed :]
    others = sorted((d for d in range(nd) if d not in dims), key=lambda d: -strides[d])
    return others, [*sorted(head, key=lambda d: -strides[d]), *tail]


def _copied(to: Any, source: Any) -> Any:
    _core.copy_tensor(to, source.detach())
    return to


def _turned(x: Any, order: list[int], fresh: bool = False) -> Any:
    """``x`` with its dimensions in that order, contiguous and aligned to a complex number; ``fresh``: in memory of its
    own."""
    x = core.view_permute(x.detach(), order)
    if fresh or not x.is_contiguous() or address(x) % (2 * x.dtype.to_real().itemsize):
        return _copied(_core.empty(x.shape, x.dtype), x)
    return x


def _given(name: str, input: Any, dims: tuple[int, ...], made: Any, order: list[int], scale: float) -> Any:
    """``made``, whose dimensions have that order, times ``scale``, laid out as the CPU's result."""
    if scale != 1:
        made.mul_(scale)
    back = core.view_permute(made, [order.index(d) for d in range(len(order))])
    result = _result(name, input, dims, back.shape, made.dtype)
    return back if result.stride() == back.stride() else _copied(result, back)


def _complex(x: Any, others: int, forward: bool) -> Any:
    """The transform of all dimensions of ``x`` but the first ``others``, up to three at a time."""
    while others < x.dim():
        here = min(x.dim() - others, _MOST)
        made = _core.empty(x.shape, x.dtype)
        _run(x, tuple(x.shape[x.dim() - here :]), made, forward)
        if here == x.dim() - others:
            return made
        # those that are left come last
        order = [*range(others), *range(x.dim() - here, x.dim()), *range(others, x.dim() - here)]
        inner = _turned(made, order)
        made = _complex(inner, others + here, forward)
        return _turned(made, [order.index(d) for d in range(x.dim())])
    return x


def c2c(input: Any, dims: tuple[int, ...], forward: bool, scale: float) -> Any:
    """``fft_c2c``."""
    if not input.numel() or not dims:
        return NotImplemented
    others, inner = _order(input, dims)
    order = [*others, *inner]
    return _given("fft", input, dims, _complex(_turned(input, order), len(others), forward), order, scale)


def r2c(input: Any, dims: tuple[int, ...], scale: float, onesided: bool = True) -> Any:
    """``fft_r2c``: the last of ``dims`` alone, then the others. Where all is kept, the complex transform."""
    if not input.numel() or not dims:
        return NotImplemented
    if not onesided:
        return c2c(_copied(_core.empty_like(input, dtype=input.dtype.to_complex()), input), dims, True, scale)
    others, inner = _order(input, dims, 1)
    order = [*others, *inner]
    x = _turned(input, order)
    n = x.shape[-1]
    rank = min(len(dims), _MOST)
    made = _core.empty((*x.shape[:-1], n // 2 + 1), input.dtype.to_complex())
    _run(x, tuple(x.shape[x.dim() - rank :]), made, True)
    if rank < len(dims):
        rest = [*range(len(others)), *range(x.dim() - rank, x.dim()), *range(len(others), x.dim() - rank)]
        made = _complex(_turned(made, rest), len(others) + rank, True)
        made = _turned(made, [rest.index(d) for d in range(x.dim())])
    return _given("rfft", input, dims, made, order, scale)


def c2r(input: Any, dims: tuple[int, ...], n: int, scale: float) -> Any:
    """``fft_c2r``: the complex transform of all but the last of ``dims``, then that of the last.

    So numbers that cannot be in the transform of real ones (imaginary parts of the first and the middle one) are left
    out, as on the CPU; the library asks that there be none.
    """
    if not input.numel() or not dims or _form("irfft", input.shape, dims, n, scale) is None:
        return NotImplemented
    others, inner = _order(input, dims, 1)
    order = [*others, *inner]
    x = _turned(input, order, fresh=True)  # a transform may write to what it reads
    if len(dims) > 1:
        last = x.dim() - 1
        turn = [*range(len(others)), last, *range(len(others), last)]
        back = [turn.index(d) for d in range(x.dim())]
        x = _turned(_complex(_turned(x, turn), len(others) + 1, False), back, fresh=True)
    imaginary = core.view_imag(x)
    for at in (0, *((n // 2,) if n % 2 == 0 else ())):
        core.view_select(imaginary, x.dim() - 1, at).zero_()
    made = _core.empty((*x.shape[:-1], n), input.dtype.to_real())
    _run(x, (n,), made, False)
    return _given("irfft", input, dims, made, order, scale)


#: By the name of the op.
OPS: dict[str, Callable] = {"fft_c2c": c2c, "fft_r2c": r2c, "fft_c2r": c2r}
