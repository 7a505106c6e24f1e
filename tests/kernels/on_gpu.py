"""Run every pointwise kernel that the table of ops makes on an NVIDIA GPU, and compare it with the processor.

``python tests/kernels/on_gpu.py [NAME...]`` prints one line of JSON for each kernel, of these ops or of all. ``error`` is
the largest difference, relative to the value or to 1. ``test_gpu.py`` reads them. It runs in a
process of its own, as a kernel is made once in a process, and here its making must be seen. The driver is called by
ctypes; no package of CUDA is needed.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import derived

import taeda
from taeda._core.callbacks import callbacks
from taeda.kernels.build import compiler
from taeda.kernels.ir import Function
from taeda.kernels.pointwise import COMPLEX, is_complex, pointwise, stored
from taeda.kernels.target import PTX
from taeda.ops.table import _body

COUNT = 1024  #: elements that each kernel computes
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, -1e-40, 1e-8, 88.0, -90.0, 1e4, -1e30, 1e38, np.inf, -np.inf, np.nan]

#: The number of places may not be negative.
SHIFTS = "bitwise_left_shift bitwise_right_shift rlshift rrshift".split()

#: One thread of the GPU for each row, which is one element.
ENTRY = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
define ptx_kernel void @each(ptr %ptr, ptr %arg, i64 %n) {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = mul i32 %block, %width
  %place = add i32 %first, %thread
  %begin = zext i32 %place to i64
  %end = add i64 %begin, 1
  %inside = icmp slt i64 %begin, %n
  br i1 %inside, label %do, label %done
do:
  call void @kernel(ptr %ptr, ptr %arg, i64 %begin, i64 %end)
  br label %done
done:
  ret void
}
"""

Key = tuple[Any, tuple, tuple, tuple, str, str]  # op, statics, dtypes of outputs, of inputs, of the computing, classes


class Gpu:
    """The first GPU, through the driver's C interface. Raises OSError where there is none."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, self.context = c_int(), c_void_p()
        self("cuDeviceGet", byref(device), 0)
        self("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self.enter()
        name = ctypes.create_string_buffer(100)
        self("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def __call__(self, function: str, *args: Any) -> None:
        code = getattr(self.lib, function)(*args)
        if code:
            text = c_char_p()
            self.lib.cuGetErrorString(code, byref(text))
            raise OSError(f"{function}: {(text.value or b'').decode()} ({code})")

    def enter(self) -> None:
        """Make the context this thread's."""
        self("cuCtxSetCurrent", self.context)

    def load(self, ptx: str) -> tuple[c_void_p, c_void_p]:
        """The module, and its function ``each``."""
        self.enter()
        module, function = c_void_p(), c_void_p()
        self("cuModuleLoadData", byref(module), c_char_p(ptx.encode()))
        self("cuModuleGetFunction", byref(function), module, b"each")
        return module, function

    def send(self, array: np.ndarray) -> c_uint64:
        """A copy of ``array`` in the GPU's memory."""
        place = c_uint64()
        self("cuMemAlloc_v2", byref(place), c_size_t(max(array.nbytes, 1)))
        self("cuMemcpyHtoD_v2", place, array.ctypes.data_as(c_void_p), c_size_t(array.nbytes))
        return place

    def run(self, function: c_void_p, arrays: list[np.ndarray], arg: np.ndarray) -> None:
        """Compute all rows; the kernel's results are copied back into ``arrays``."""
        places = [self.send(a) for a in arrays]
        pointers, numbers = self.send(np.array([p.value for p in places], np.uint64)), self.send(arg)
        n = c_uint64(COUNT)
        args = (c_void_p * 3)(*(ctypes.cast(byref(x), c_void_p) for x in (pointers, numbers, n)))
        self("cuLaunchKernel", function, -(-COUNT // 256), 1, 1, 256, 1, 1, 0, None, args, None)
        self("cuCtxSynchronize")
        for array, place in zip(arrays, places, strict=True):
            self("cuMemcpyDtoH_v2", array.ctypes.data_as(c_void_p), place, c_size_t(array.nbytes))
        for place in (*places, pointers, numbers):
            self("cuMemFree_v2", place)


def made_kernels(names: list[str]) -> dict[Key, int]:
    """The kernels that are made, and their addresses, when every pointwise op is called on its samples in every dtype."""
    made, build = {}, callbacks.build_pointwise

    def watch(*key: Any) -> int:
        made[key] = build(*key)
        return made[key]

    callbacks.build_pointwise = watch
    try:
        for op in derived.pointwise_ops().values():
            if names and op.name not in names:
                continue
            for dtype in derived.DTYPES:
                if derived.accepts(op, dtype):
                    for args, kwargs in derived.samples(op, dtype):
                        op(*args, **kwargs)
    finally:
        callbacks.build_pointwise = build
    return made


def to_ptx(key: Key) -> str:
    """The kernel for one element, and what calls it for each."""
    op, statics, outs, ins, compute, classes = key
    f = Function(vector_bytes=PTX.vector_bytes)
    pointwise(f, _body(op, statics), outs, ins, compute, classes.replace("n", "c"))
    made = compiler(PTX)
    return made.machine.emit_assembly(made.llvm.parse_assembly(f'target triple = "{PTX.triple}"\n{f.text()}\n{ENTRY}'))


def nth_to_ptx(keys: list[Key], i: int) -> str:
    return to_ptx(keys[i])


def numbers(op: Any, i: int, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """``COUNT`` elements for operand ``i`` as bytes: of its domain, and every 16th a special one."""
    low, high = derived._domain(op, i)
    values = rng.uniform(low, high, COUNT)
    if dtype == "bool" or "int" in dtype:
        values = rng.integers(1, 20, COUNT)  # not 0: division by 0 is refused before it reaches a kernel
        if dtype == "bool":
            values %= 2
        elif not dtype.startswith("u") and low < 0 and op.name not in SHIFTS:
            values *= rng.choice([-1, 1], COUNT)
        tensor = taeda.from_numpy(values).to(getattr(taeda, dtype))
    else:
        if i == 0 or "polynomial" not in op.name:  # a polynomial's degree is how often its kernel loops
            values[i::16] = rng.choice(SPECIAL, COUNT // 16)
        if is_complex(dtype):
            values = values + 1j * rng.uniform(low, high, COUNT)
        tensor = taeda.from_numpy(values).to(getattr(taeda, dtype))
    return np.frombuffer(bytearray(tensor.view(taeda.uint8).numpy().tobytes()), np.uint8)


def operands(key: Key) -> tuple[list[np.ndarray], list[int], list[int]]:
    """Memory of each operand, outputs first, its bytes an element, and the parameters as the kernel takes them."""
    op, _, outs, ins, compute, _ = key
    rng = np.random.default_rng(0)
    sizes = [stored(d).bytes * (2 if is_complex(d) else 1) for d in (*outs, *(d for d in ins if d != "param"))]
    arrays = [np.zeros(COUNT * size, np.uint8) for size in sizes[: len(outs)]]
    arrays += [numbers(op, i, d, rng) for i, d in enumerate(ins) if d != "param"]
    floating = compute in COMPLEX or "float" in compute
    one = int(np.float64(1.5).view(np.int64)) if floating else 2
    return arrays, sizes, [one, 0] * ins.count("param")


def arguments(sizes: list[int], classes: str, parameters: list[int], rows: int) -> np.ndarray:
    """The kernel's numbers, for ``rows`` rows that are all the elements together."""
    found = [COUNT // rows, rows]
    for size, kind in zip(sizes, classes, strict=True):
        inner = 0 if kind == "s" else size
        found += [inner, inner * (COUNT // rows)]
    return np.array(found + parameters, np.int64)


def on_processor(address: int, arrays: list[np.ndarray], arg: np.ndarray) -> None:
    """All elements as one row."""
    kernel = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    pointers = (c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    kernel(ctypes.cast(pointers, c_void_p), arg.ctypes.data, 0, 1)


def values(a: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers in these bytes, as float64 (the parts of a complex dtype one after the other)."""
    part = COMPLEX[dtype].name if dtype in COMPLEX else dtype
    return taeda.from_numpy(a.copy()).view(getattr(taeda, part)).to(taeda.float64).numpy()


def main() -> None:
    made = made_kernels(sys.argv[1:])
    with multiprocessing.get_context("fork").Pool() as processes:  # LLVM has a lock; each process one of its own
        texts = dict(zip(made, processes.map(partial(nth_to_ptx, list(made)), range(len(made)), 16), strict=True))
    gpu = Gpu()
    print(json.dumps({"gpu": gpu.name, "kernels": len(made)}), flush=True)
    with ThreadPoolExecutor() as pool:
        loaded = dict(zip(texts, pool.map(gpu.load, texts.values()), strict=True))
    for key, (module, function) in loaded.items():
        op, _, outs, ins, _, classes = key
        here, sizes, parameters = operands(key)
        there = [a.copy() for a in here]
        on_processor(made[key], here, arguments(sizes, classes, parameters, 1))
        gpu.run(function, there, arguments(sizes, classes, parameters, COUNT))
        line: dict[str, Any] = {"op": op.name, "outs": outs, "ins": ins, "error": 0.0}
        for a, b, dtype in zip(here, there, outs, strict=False):
            x, y = values(a, dtype), values(b, dtype)
            with np.errstate(invalid="ignore"):
                error = abs(x - y) / np.fmax(abs(x), 1.0)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
            if error.max() > line["error"]:
                at = int(error.argmax()) // (2 if is_complex(dtype) else 1)
                line["error"] = float(error.max())
                for place, arrays in (("processor", here), ("gpu", there)):
                    line[place] = [t.reshape(COUNT, -1)[at].tobytes().hex() for t in arrays]
        print(json.dumps(line), flush=True)
        gpu("cuModuleUnload", module)


if __name__ == "__main__":
    main()
