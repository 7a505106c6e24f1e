"""CUDA as devices of the contract: found when somebody first asks for one, and registered."""

from __future__ import annotations

import atexit
import importlib
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .._core.devices import Contract, device_count, register_device, set_accelerator
from .._core.fusion import compute_on
from .._core.gemm import take_halves
from .._core.random import draw_there
from .._core.unfolded import take_tiles
from ..kernels.copy import copy_item
from ..kernels.gemm import add_parts
from ..kernels.host_functions import NAMES, host_function
from ..kernels.ir import TYPES, Function
from ..kernels.target import Target
from . import (
    _attention,
    _compile,
    _convolution,
    _cublaslt,
    _cudnn,
    _cufft,
    _cusolver,
    _driver,
    _native,
    _products,
    _reduce,
    _scatter,
    _select,
    _sort,
)
from ._driver import INT, POINTER, call, get

OLDEST = (8, 0)
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR

#: The names of the functions of the core that launches run, by address.
_HOSTED = {
    address: name
    for module in ("tensor", "block_copy")
    for name, address in importlib.import_module(f"taeda._core.{module}").HOST_FUNCTIONS.items()
}


class _Text:
    """A kernel: its module as text, and what it is called."""

    def __init__(self, f: Function) -> None:
        self.label, self.text = f.label, f.text()
        self.elements, self.outs, self.lines = f.elements, f.outs, len(f.lines)
        self.transposes, self.threads, self.products = f.transposes, f.threads, f.products
        self.shared, self.schedule = f.shared, f.schedule


_rows: list[_Text] = []  # by the row of the kernel
_lock = threading.RLock()


def add_kernel(f: Function, again: Any = None) -> int:
    """The address of a new kernel; its PTX is made at its first launch."""
    if f.features:
        raise _compile.NoKernelError(f"{f.label}: it needs {', '.join(f.features)}, instructions of a processor")
    kernel = _Text(f)
    with _lock:
        address, row = _native.add_kernel(
            _compile.calls_another(kernel.text), kernel.threads, kernel.elements, kernel.transposes, kernel.lines,
            _products.item_of(kernel.products)
        )  # fmt: skip
        assert row == len(_rows)
        _rows.append(kernel)
    return address


_modules: dict[tuple, int] = {}  # functions of the driver, by the context and the name


def entry(row: int, pointers: int, words: int, inner: int, schedule: str, form: tuple) -> int:
    """The driver's function for launches of the kernel of that row, in this thread's context.

    ``form`` is that of a launch over elements: dimensions, numbers of the kernel, elements of a thread, whether offsets
    have 32 bits. Of a transposed copy the first counts, the dimensions outside of the matrix; of a product too, which
    has in it what ``_products.form_of`` reads.
    """
    kernel, other = _rows[row], _rows[inner] if inner >= 0 else None
    if schedule == "transpose":
        return _loaded("transpose", "", "", pointers, words, (schedule, kernel.transposes[0], form[0]))
    if schedule == "product":
        return _loaded("product", "", "", pointers, words, (schedule, *_products.form_of(kernel.products, form[0])))
    if kernel.schedule:
        return _loaded(kernel.label, "", "", pointers, words, kernel.schedule)
    shared = [one.label for one in (kernel, other) if one is not None and one.threads > 1]
    if shared and (other is not None or schedule != "units"):
        raise _compile.NoKernelError(f"{shared[0]}: several threads run it, and it is a part of another kernel")
    full: tuple | None = None
    if schedule == "elements":
        full = (schedule, *form, *((kernel.elements, kernel.outs) if form[2] > 1 else ((), 0)))
    elif kernel.shared:
        full = (kernel.shared,)
    elif shared or schedule != "units":
        full = ("rows",) if shared else (schedule,)
    return _loaded(kernel.label, kernel.text, other.text if other else "", pointers, words, full)


def _loaded(label: str, text: str, inner: str, pointers: int, words: int, schedule: Any) -> int:
    name, ptx = _compile.ptx(label, text, inner, pointers, words, schedule)
    context = _native.get_context()
    with _lock:
        if (context, name) not in _modules:
            _modules[context, name] = _driver.function_of(_driver.load_module(ptx, label), name)
        return _modules[context, name]


# ---- launches of functions of the core -------------------------------------------------------------------------------


def item_kernel(item: int) -> int:
    """A kernel that copies one item of so many bytes."""
    f = Function("copy_item", vector_bytes=_compile.BASE.vector_bytes)
    copy_item(f, f.data(0), f.data(1), item)
    return add_kernel(f)


def parts_kernel(row: int) -> int:
    """The address of the kernel that adds the parts of the sums of that row's products."""
    return add_parts(_rows[row].products)


#: What the core launches and no kernel of its own runs.
_WAYS = {
    "run_piece": _native.PIECES,
    "transpose_piece": _native.TRANSPOSES,
    "in_slot": _native.SLOTS,
    "copy_piece": _native.COPIES,
    "zero_piece": _native.CLEARS,
}


def host_launch(number: int, address: int) -> int:
    """The number of the kernel, or of one of :data:`_WAYS`, that runs a function of the core on a device."""
    name = _HOSTED.get(address) or NAMES.get(address)
    if name is None:
        raise NotImplementedError(
            f"device cuda:{number - _native.first_number()} was given a function of the processor at {address:#x}, for "
            "which there is no kernel"
        )
    return _WAYS.get(name) or add_kernel(host_function(name))


# ---- the devices -----------------------------------------------------------------------------------------------------


class Events:
    """Events by which the allocator asks about other streams."""

    def record(self, index: int, stream: int) -> int:
        event = get(POINTER, "cuEventCreate", 2)  # CU_EVENT_DISABLE_TIMING
        call("cuEventRecord", event, stream)
        return event

    def is_done(self, event: int) -> bool:
        if _driver.ask("cuEventQuery", event):
            return False
        call("cuEventDestroy_v2", event)
        return True

    def wait(self, event: int) -> None:
        call("cuEventSynchronize", event)
        call("cuEventDestroy_v2", event)


def launch_deferred(index: int) -> None:
    """Launch what a compiled program has deferred on a device: before somebody asks what its streams have."""
    compute_on(_native.first_number() + index)


def _join(index: int, stream: int, other: int) -> None:
    """Let a stream wait for what another one has now."""
    launch_deferred(index)
    event = get(POINTER, "cuEventCreate", 2)  # CU_EVENT_DISABLE_TIMING
    call("cuEventRecord", event, other)
    call("cuStreamWaitEvent", stream, event, 0)
    call("cuEventDestroy_v2", event)


#: Kernels in place of those that take a row by one thread. The median of integers needs no look at a row.
_SELECT = {f"sort.{name}": getattr(_select, name) for name in ("kth_rows", "median_places", "mode_rows")}


def multiply(index: int, row: int, count: int, at: tuple, numbers: tuple) -> bool:
    """Compute what the kernel of that row would, a product, by a library; whether it could."""
    if _cublaslt.LIBRARY.why_none:
        _native.set_product(None, 0)
        return False
    return _cublaslt.multiply(index, _rows[row].products, count, at, numbers)


def libraries() -> list[str]:
    """The libraries that compute ops, and why others do not."""
    found = _cufft.LIBRARY, _cusolver.LIBRARY, _cusolver.BLAS, _cublaslt.LIBRARY, _cudnn.LIBRARY
    return [f"no {x.what}: {x.why_none}" if x.why_none else x.what for x in found]


class Cuda(Contract):
    """One device; memory, launches and copies are in ``_native.pyx``."""

    dlpack_type = 2  # kDLCUDA
    fuses = True
    attention = _attention

    def __init__(self, handle: int) -> None:
        self.handle = handle

    @property
    def current(self) -> int:
        return _native.get_index()

    def target(self) -> Target:
        return replace(_compile.BASE, loads=add_kernel)

    def build(self, name: str, args: tuple, compile: Callable[[], int]) -> int:
        if name == "indexing.along" and _scatter.covers(*args[:3]):
            return _scatter.along(*args)
        if name == "sort.sort_rows" and not args[2]:
            return _sort.sort_rows(*args[:2])
        if name in _SELECT and (name != "sort.median_places" or TYPES[args[0]].kind == "f"):
            return _SELECT[name](*args)
        if name == "reduce.merge" and args[3:]:
            return _reduce.merge(*args)
        if name == "conv.convolve_tiles":
            return _convolution.convolve_tiles(*args)
        return compile()

    def library(self, name: str) -> Callable | None:
        return None if _cufft.LIBRARY.why_none else _cufft.OPS.get(name)

    @property
    def lapack_routines(self) -> frozenset[str]:
        return _cusolver.routines()

    def lapack(self, name: str, dtype: Any, count: int, *arguments: Any) -> None:
        _cusolver.run(self.index, name, dtype, count, *arguments)

    def convolve(self, *arguments: Any) -> bool:
        if _cudnn.LIBRARY.why_none:
            self.convolves_from = math.inf
            return False
        return _cudnn.convolve(self.index, *arguments)

    def convolution_library(self) -> int | None:
        return _cudnn.version()

    def synchronize(self) -> None:
        launch_deferred(self.index)
        _native.wait_for_device(self.index)

    def attribute(self, number: int) -> int:
        return get(INT, "cuDeviceGetAttribute", number, self.handle)

    def properties(self) -> dict[str, Any]:
        return HOOKS["describe"](self)

    def record_stream(self, tensor: Any, stream: Any) -> None:
        _native.MEMORIES[self.index].record_stream(tensor.untyped_storage().data_ptr(), stream.cuda_stream)

    def show_to(self, stream: int | None) -> None:
        HOOKS["show_to"](self.index, stream)

    def stream_number(self) -> int:
        return _native.get_stream(self.index) or 1  # the default stream, as DLPack numbers it

    def adopted(self, data: Any) -> Any:
        return HOOKS["adopt"](self, data) if hasattr(data, "__cuda_array_interface__") else None

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        before = _native.set_waiting(False)
        try:
            yield
        finally:
            _native.set_waiting(before)

    def pinned(self, nbytes: int) -> tuple[int, Any]:
        _native.enter_context(self.index)
        address = get(POINTER, "cuMemHostAlloc", max(nbytes, 1), 1)  # CU_MEMHOSTALLOC_PORTABLE
        _native.add_pinned(address, nbytes)
        _count_pinned(1, nbytes)
        return address, Pinned(self.index, address, nbytes)

    def is_pinned(self, tensor: Any) -> bool:
        return _native.is_pinned_at(tensor.data_ptr())


#: The counts of pinned memory, and PyTorch's names for them.
PINNED = {
    "allocations": ("allocation", "segment", "active_requests"),
    "bytes": ("allocated_bytes", "reserved_bytes", "active_bytes"),
}
pinned_counts = {name: [0, 0, 0, 0] for name in PINNED}  # current, peak, allocated, freed


def _count_pinned(*changes: int) -> None:
    with _lock:
        for counts, by in zip(pinned_counts.values(), changes, strict=True):
            counts[0] += by
            counts[1] = max(counts[:2])
            counts[2 if by > 0 else 3] += abs(by)


class Pinned:
    """Memory of the host that the driver copies from directly; freed with this."""

    def __init__(self, index: int, address: int, nbytes: int) -> None:
        self._finalizer = weakref.finalize(self, _free_pinned, index, address, nbytes)


def _free_pinned(index: int, address: int, nbytes: int) -> None:
    if _native.is_forked():
        return
    _native.enter_context(index)
    call("cuCtxSynchronize")  # a copy may still read it
    _native.remove_pinned(address, nbytes)
    _count_pinned(-1, -nbytes)
    call("cuMemFreeHost", address)


#: Functions of modules above this one: ``describe(device)`` gives its properties as a dict, ``explain(memory,
#: nbytes)`` the message where there is no more memory.
HOOKS: dict[str, Callable] = {}

_why: str | None = "nobody asked yet"
devices: list[Cuda] = []


def find() -> str | None:
    """Register the devices that there are; gives why there is none."""
    global _why
    try:
        _driver.load()
        count = get(INT, "cuDeviceGetCount")
        if not count:
            raise _driver.MissingError("the NVIDIA driver finds no GPU")
        made = [Cuda(get(INT, "cuDeviceGet", i)) for i in range(count)]
        for device in made:
            capability = device.attribute(_MAJOR), device.attribute(_MINOR)
            if capability < OLDEST:
                raise _driver.MissingError(
                    f"the GPU has compute capability {capability[0]}.{capability[1]}, and kernels need "
                    f"{OLDEST[0]}.{OLDEST[1]} or newer"
                )
    except (_driver.MissingError, _driver.CudaError) as error:
        _why = str(error)
        return _why
    _native.set_hooks(_driver.error_of, entry, host_launch, item_kernel, parts_kernel, HOOKS["explain"], _join)
    contexts = [get(POINTER, "cuDevicePrimaryCtxRetain", device.handle) for device in made]
    number = register_device("cuda", made.__getitem__, len(made))
    _native.take_devices(number, contexts, os.environ.get("TAEDA_CUDA_BLOCKING") == "1")
    for memory in _native.MEMORIES:
        memory.events = Events()
        memory.plain = os.environ.get("TAEDA_CUDA_NO_CACHE") == "1"
    set_accelerator("cuda")
    draw_there(range(number, number + len(made)))
    if os.environ.get("TAEDA_CUDA_EXACT") != "1":
        for k in range(len(made)):
            take_halves(number + k)
            made[k].convolves_from = _cudnn.LEAST
        _native.set_product(multiply, _cublaslt.LEAST)
    for k in range(len(made)):
        take_tiles(number + k)
    devices.extend(made)
    os.register_at_fork(after_in_child=_native.after_fork)
    atexit.register(_native.close)
    _why = None
    return None


def count() -> int:
    """The number of devices."""
    return device_count("cuda")


def why_none() -> str:
    """Why there is no device."""
    count()
    return _why or ""
