"""The CUDA driver: where its functions come from, and calls of those that are rare.

The functions come from libcuda, which NVIDIA's driver brings, or from the module that ``TAEDA_CUDA`` names: its
``table()`` gives ``{"cuMemAlloc_v2": address, ...}``, C functions of the signatures of CUDA's driver API.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

from . import _native

POINTER, INT, UINT, SIZE, U64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64

#: The types of the parameters of each function (CUDA driver API); a result is an int, 0 for success.
SIGNATURES: dict[str, tuple] = {
    "cuInit": (UINT,),
    "cuDriverGetVersion": (POINTER,),
    "cuGetErrorName": (INT, POINTER),
    "cuGetErrorString": (INT, POINTER),
    "cuDeviceGetCount": (POINTER,),
    "cuDeviceGet": (POINTER, INT),
    "cuDeviceGetName": (POINTER, INT, INT),
    "cuDeviceGetUuid_v2": (POINTER, INT),
    "cuDeviceGetAttribute": (POINTER, INT, INT),
    "cuDeviceTotalMem_v2": (POINTER, INT),
    "cuDevicePrimaryCtxRetain": (POINTER, INT),
    "cuCtxSetCurrent": (POINTER,),
    "cuCtxSynchronize": (),
    "cuCtxGetStreamPriorityRange": (POINTER, POINTER),
    "cuModuleLoadDataEx": (POINTER, POINTER, UINT, POINTER, POINTER),
    "cuModuleGetFunction": (POINTER, POINTER, ctypes.c_char_p),
    "cuLaunchKernel": (POINTER, UINT, UINT, UINT, UINT, UINT, UINT, UINT, POINTER, POINTER, POINTER),
    "cuMemAlloc_v2": (POINTER, SIZE),
    "cuMemFree_v2": (U64,),
    "cuMemGetInfo_v2": (POINTER, POINTER),
    "cuMemHostAlloc": (POINTER, SIZE, UINT),
    "cuMemFreeHost": (POINTER,),
    "cuMemcpyHtoDAsync_v2": (U64, POINTER, SIZE, POINTER),
    "cuMemcpyDtoHAsync_v2": (POINTER, U64, SIZE, POINTER),
    "cuMemcpyDtoDAsync_v2": (U64, U64, SIZE, POINTER),
    "cuMemsetD8Async": (U64, ctypes.c_ubyte, SIZE, POINTER),
    "cuStreamCreateWithPriority": (POINTER, UINT, INT),
    "cuStreamDestroy_v2": (POINTER,),
    "cuStreamSynchronize": (POINTER,),
    "cuStreamQuery": (POINTER,),
    "cuStreamWaitEvent": (POINTER, POINTER, UINT),
    "cuEventCreate": (POINTER, UINT),
    "cuEventDestroy_v2": (POINTER,),
    "cuEventRecord": (POINTER, POINTER),
    "cuEventQuery": (POINTER,),
    "cuEventSynchronize": (POINTER,),
    "cuEventElapsedTime": (POINTER, POINTER, POINTER),
    "cuThreadExchangeStreamCaptureMode": (POINTER,),
    "cuStreamBeginCapture_v2": (POINTER, INT),
    "cuStreamEndCapture": (POINTER, POINTER),
    "cuStreamIsCapturing": (POINTER, POINTER),
    "cuGraphInstantiateWithFlags": (POINTER, POINTER, U64),
    "cuGraphLaunch": (POINTER, POINTER),
    "cuGraphExecDestroy": (POINTER,),
    "cuGraphDestroy": (POINTER,),
    "cuGraphDebugDotPrint": (POINTER, ctypes.c_char_p, UINT),
}

NOT_READY = 600
_NAMES = {"win32": ("nvcuda.dll",)}.get(sys.platform, ("libcuda.so.1", "libcuda.so"))


class CudaError(RuntimeError):
    """An error of the CUDA driver; ``code`` is its number."""

    code = 0


class MissingError(Exception):
    """Why there is no CUDA device; the message is a part of a sentence."""


_functions: dict[str, Any] = {}


def _library() -> dict[str, int]:
    """The addresses of libcuda's functions."""
    failed = ""
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            failed = failed or str(error)
            continue
        found = {}
        for function in SIGNATURES:
            try:
                found[function] = ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0
            except AttributeError:
                raise MissingError(f"the driver's {name} has no function {function}: install a newer driver") from None
        return found
    raise MissingError(f"no NVIDIA driver was found ({failed})")


def provided(name: str, what: str, functions: Iterable[str]) -> dict[str, int]:
    """The addresses of ``functions`` that the module ``name`` gives for ``what``, the driver or a library."""
    try:
        table = importlib.import_module(name).table()
    except Exception as error:
        raise MissingError(f"TAEDA_CUDA={name} names no module that gives {what} ({error})") from error
    lacking = sorted(set(functions) - set(table))
    if lacking:
        raise MissingError(f"{what} of TAEDA_CUDA={name} has no function {', '.join(lacking)}")
    return table


def load() -> None:
    """Find the driver and fill the tables."""
    chosen = os.environ.get("TAEDA_CUDA", "")
    table = provided(chosen, "the driver", SIGNATURES) if chosen else _library()
    for name, types in SIGNATURES.items():
        _functions[name] = ctypes.CFUNCTYPE(INT, *types)(table[name])
    _native.fill_table(*(table[name] for name in _native.FUNCTIONS))
    code = _functions["cuInit"](0)
    if code:
        raise MissingError(f"the NVIDIA driver cannot be used ({explain(code)})")


def explain(code: int) -> str:
    """The driver's name and text for an error."""
    texts = []
    for function in ("cuGetErrorName", "cuGetErrorString"):
        text = ctypes.c_char_p()
        if _functions[function](code, ctypes.byref(text)) == 0 and text.value:
            texts.append(text.value.decode(errors="replace"))
    return ": ".join(texts) or f"error {code}"


def error_of(code: int, what: str) -> CudaError:
    """The exception for an error of the driver."""
    error = CudaError(f"CUDA error: {explain(code)} ({what}). Errors of kernels are seen later, at another call; with "
                      "TAEDA_CUDA_BLOCKING=1 each is seen at its launch.")  # fmt: skip
    error.code = code
    return error


def call(name: str, *args: Any) -> None:
    """Call a function of the driver.

    Raises:
        CudaError: it failed.
    """
    code = _functions[name](*args)
    if code:
        raise error_of(code, name)


def code_of(name: str, *args: Any) -> int:
    """The code that a function of the driver gives, 0 for success."""
    return _functions[name](*args)


def ask(name: str, *args: Any) -> int:
    """The result of a function of the driver that may say "not ready"."""
    code = _functions[name](*args)
    if code not in (0, NOT_READY):
        raise error_of(code, name)
    return code


def get(kind: Any, name: str, *args: Any) -> Any:
    """The result of a function that writes it to its first parameter, a pointer to a ``kind``."""
    made = kind()
    call(name, ctypes.byref(made), *args)
    return made.value


def load_module(ptx: bytes, label: str) -> int:
    """A module of the current context from PTX; ``label`` names it in errors."""
    log = ctypes.create_string_buffer(8192)
    options = (INT * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
    values = (POINTER * 2)(ctypes.addressof(log), len(log))
    made = POINTER()
    mode = _native.exchange_mode(_native.RELAXED)
    code = _functions["cuModuleLoadDataEx"](ctypes.byref(made), ptx + b"\0", 2, options, values)
    _native.exchange_mode(mode)
    if code:
        said = log.value.decode(errors="replace").strip()
        raise RuntimeError(f"{label}: the driver does not take its PTX: {explain(code)}{f' {said}' if said else ''}")
    return made.value or 0


def function_of(module: int, name: str) -> int:
    return get(POINTER, "cuModuleGetFunction", module, name.encode())
