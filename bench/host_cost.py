"""What a call costs before the GPU has anything to do: Python to the launch, with a driver that does nothing.

    python -m bench.host_cost

The driver is a table of C functions that return at once. ``a + b`` is timed, and a training step of an MLP 4-64-64-2
(batch 32, Adam, cross entropy). Beside it stands what PyTorch needs on the CPU for the same step. Times are those of
the thread, without what other processes take of the processor.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

_held: list[Any] = []  # functions that the driver points to
_next = [1 << 40]  # the address of the next memory


def _nothing() -> int:
    """The address of a C function that returns 0."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly("define i32 @nothing() { ret i32 0 }")
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    _held.append(engine)
    return engine.get_function_address("nothing")


def _memory(out: int, nbytes: int) -> int:
    ctypes.c_uint64.from_address(out).value = _next[0]
    _next[0] += (nbytes + 511) // 512 * 512
    return 0


def _number(value: int) -> Callable:
    def give(out: int, *args: Any) -> int:
        ctypes.c_int.from_address(out).value = value
        return 0

    return give


def _attribute(out: int, which: int, device: int) -> int:
    return _number(9 if which == 75 else 0)(out)  # the compute capability is 9.0


def _handle(out: int, *args: Any) -> int:
    ctypes.c_uint64.from_address(out).value = 64
    return 0


def table() -> dict[str, int]:
    """The driver's functions."""
    from taeda.cuda._driver import INT, SIGNATURES

    made = dict.fromkeys(SIGNATURES, _nothing())
    given = {
        "cuDeviceGetCount": _number(1), "cuDeviceGetAttribute": _attribute, "cuMemAlloc_v2": _memory,
        "cuDevicePrimaryCtxRetain": _handle, "cuModuleLoadDataEx": _handle, "cuModuleGetFunction": _handle,
    }  # fmt: skip
    for name, function in given.items():
        pointer = ctypes.CFUNCTYPE(INT, *SIGNATURES[name])(function)
        _held.append(pointer)
        made[name] = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    return made


def cost(function: Callable, times: int) -> float:
    """Median microseconds of a call."""
    for _ in range(times):
        function()
    found = []
    for _ in range(15):
        start = time.thread_time()
        for _ in range(times):
            function()
        found.append((time.thread_time() - start) / times * 1e6)
    return statistics.median(found)


def step_of(library: Any, device: str) -> Callable:
    """A training step of the MLP."""
    nn, F = library.nn, library.nn.functional
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    x, y = library.ones(32, 4, device=device), library.zeros(32, dtype=library.int64, device=device)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def main() -> None:
    os.environ["TAEDA_CUDA"] = "bench.host_cost"
    import taeda

    a = taeda.ones(8, 8, device="cuda")
    b = taeda.ones(8, 8, device="cuda")
    w = taeda.ones(8, 8, device="cuda", requires_grad=True)
    print(f"a + b to the launch: {cost(lambda: a + b, 5000):.2f} us; recorded: {cost(lambda: w + b, 5000):.2f} us")
    x, y = taeda.ones(8, 8), taeda.ones(8, 8)
    print(f"x + y on the CPU, computed: {cost(lambda: x + y, 5000):.2f} us")
    ours = cost(step_of(taeda, "cuda"), 50)
    print(f"a step of the MLP 4-64-64-2: {ours:.0f} us")
    try:
        import torch
    except ImportError:
        print("torch is not installed: nothing to compare with")
        return
    torch.set_num_threads(1)
    there = cost(step_of(torch, "cpu"), 50)
    print(f"PyTorch {torch.__version__} on the CPU, one thread: {there:.0f} us, {ours / there:.2f} of it")


if __name__ == "__main__":
    main()
