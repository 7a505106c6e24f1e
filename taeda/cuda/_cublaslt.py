"""cuBLASLt: large products of floats on a GPU.

What is computed is what the core launches by tiles (``launch_product`` in ``_native.pyx``): ``c = a @ b + d`` with
strides, for a batch. The library's matrices lie by columns, so it is asked for the transposed product. What it computes
with is chosen once for each form of a call, without running anything, so each run has the same.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, NamedTuple

from ..backends.cuda import matmul
from ..kernels.gemm import ELEMENT_ARGS
from . import _native
from ._driver import INT, POINTER, SIZE
from ._library import Library, calling

_I64, _U64 = ctypes.c_int64, ctypes.c_uint64
#: The types of the parameters of each function (cuBLASLt 13); a result is an int, 0 for success.
SIGNATURES: dict[str, tuple] = {
    "cublasLtCreate": (POINTER,),
    "cublasLtMatmulDescCreate": (POINTER, INT, INT),
    "cublasLtMatmulDescDestroy": (POINTER,),
    "cublasLtMatmulDescSetAttribute": (POINTER, INT, POINTER, SIZE),
    "cublasLtMatrixLayoutCreate": (POINTER, INT, _U64, _U64, _I64),
    "cublasLtMatrixLayoutDestroy": (POINTER,),
    "cublasLtMatrixLayoutSetAttribute": (POINTER, INT, POINTER, SIZE),
    "cublasLtMatmulPreferenceCreate": (POINTER,),
    "cublasLtMatmulPreferenceDestroy": (POINTER,),
    "cublasLtMatmulPreferenceSetAttribute": (POINTER, INT, POINTER, SIZE),
    "cublasLtMatmulAlgoGetHeuristic": (*(POINTER,) * 7, INT, POINTER, POINTER),
    "cublasLtMatmul": (*(POINTER,) * 14, SIZE, POINTER),
}
LIBRARY = Library("cuBLASLt", "libcublasLt.so.13", "nvidia.cu13", "nvidia-cublas", SIGNATURES)

#: From so many multiplications on: below, the launch of a kernel of one's own costs less than these calls.
LEAST = 1 << 20
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}  # cudaDataType
_BYTES = {0: 4, 1: 8, 2: 2, 14: 2}
_SINGLE, _DOUBLE, _TF32 = 68, 70, 77  # CUBLAS_COMPUTE_32F, _64F, _32F_FAST_TF32
_TRANSPOSED_A, _TRANSPOSED_B, _EPILOGUE, _BIAS_POINTER = 3, 4, 7, 8  # CUBLASLT_MATMUL_DESC_*
_BIAS = 4  # CUBLASLT_EPILOGUE_BIAS
_BATCH, _BATCH_STRIDE = 5, 6  # CUBLASLT_MATRIX_LAYOUT_*
_WORKSPACE, _REDUCTIONS, _ALIGNMENT = 1, 3, 5  # CUBLASLT_MATMUL_PREF_*, of the latter those of A, B, C and D
_IN_COMPUTE_TYPE = 2  # CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: parts of a long sum are added in float32, in order
_MOST_WORKSPACE = 32 << 20
_MOST_PLANS = 4096


class _Choice(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algo", _U64 * 8), ("workspace", SIZE), ("state", INT), ("waves", ctypes.c_float), ("reserved", INT * 4)
    )  # fmt: skip


class _Operand(NamedTuple):
    """A matrix by columns in memory: its rows and columns, where the next column and the next matrix begin, and whether
    it is the transpose of what is multiplied."""

    rows: int
    columns: int
    lead: int
    step: int
    transposed: bool


def _operand(rows: int, columns: int, down: int, across: int, step: int, item: int) -> _Operand | None:
    """A matrix whose neighbours in a column are ``down`` bytes apart, and in a row ``across``; None: not by columns."""
    if step % item:
        return None
    if down == item and across % item == 0 and across >= rows * item:
        return _Operand(rows, columns, across // item, step // item, False)
    if across == item and down % item == 0 and down >= columns * item:
        return _Operand(columns, rows, down // item, step // item, True)
    return None


def _call(name: str, *args: Any) -> None:
    code = LIBRARY.functions[name](*args)
    if code:
        raise RuntimeError(f"cuBLASLt error {code} ({name})")


def _set(kind: str, handle: Any, attribute: int, value: Any) -> None:
    _call(f"cublasLt{kind}SetAttribute", handle, attribute, ctypes.byref(value), ctypes.sizeof(value))


def _made(kind: str, *args: Any) -> Any:
    handle = POINTER()
    _call(f"cublasLt{kind}Create", ctypes.byref(handle), *args)
    return handle


def _destroy(handles: list) -> None:
    for kind, handle in handles:
        LIBRARY.functions[f"cublasLt{kind}Destroy"](handle)


class _Plan:
    """How products of one form are computed: the library's descriptions, and what it has chosen. ``choice`` is None
    where it cannot."""

    def __init__(self, library: Any, form: tuple) -> None:
        dtype, compute, batch, left, right, result, added, bias, alignments = form
        self.lock = threading.Lock()  # the address of the bias is a part of the description
        handles: list = []
        weakref.finalize(self, _destroy, handles).atexit = False

        def new(kind: str, *args: Any) -> Any:
            handles.append((kind, _made(kind, *args)))
            return handles[-1][1]

        def layout(x: _Operand) -> Any:
            made = new("MatrixLayout", dtype, x.rows, x.columns, x.lead)
            if batch > 1:
                _set("MatrixLayout", made, _BATCH, INT(batch))
                _set("MatrixLayout", made, _BATCH_STRIDE, _I64(x.step))
            return made

        self.scale = ctypes.c_double if compute == _DOUBLE else ctypes.c_float
        self.descriptor = new("MatmulDesc", compute, 1 if compute == _DOUBLE else 0)
        for attribute, x in (_TRANSPOSED_A, left), (_TRANSPOSED_B, right):
            _set("MatmulDesc", self.descriptor, attribute, INT(x.transposed))
        if bias:
            _set("MatmulDesc", self.descriptor, _EPILOGUE, INT(_BIAS))
        self.layouts = [layout(x) for x in (left, right, added or result, result)]
        preference = new("MatmulPreference")
        _set("MatmulPreference", preference, _WORKSPACE, SIZE(_MOST_WORKSPACE))
        _set("MatmulPreference", preference, _REDUCTIONS, ctypes.c_uint32(_IN_COMPUTE_TYPE))
        for i, bytes_ in enumerate(alignments):
            _set("MatmulPreference", preference, _ALIGNMENT + i, ctypes.c_uint32(bytes_))
        choice, found = _Choice(), INT()
        code = LIBRARY.functions["cublasLtMatmulAlgoGetHeuristic"](
            library, self.descriptor, *self.layouts, preference, 1, ctypes.byref(choice), ctypes.byref(found)
        )
        self.choice = choice if not code and found.value and not choice.state else None
        self.factors = self.scale(1), self.scale(bool(added))


_libraries: dict[int, Any] = {}  # the library's handles, by GPU
_plans: dict[tuple, _Plan] = {}


def _plan_of(index: int, form: tuple) -> _Plan:
    plan = _plans.get((index, form))
    if plan is None:
        with calling(index):
            if index not in _libraries:
                _libraries[index] = _made("")
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            plan = _plans[index, form] = _Plan(_libraries[index], form)
    return plan


def _aligned(address: int) -> int:
    return min(address & -address, 256) if address else 256


def multiply(index: int, dtype: str, count: int, at: tuple[int, ...], numbers: tuple[int, ...]) -> bool:
    """Compute products as ``product_elements`` of ``kernels/gemm.py`` would, by the library; whether it could.

    Args:
        index: of the GPU.
        dtype: of all operands.
        count: of the batch.
        at: addresses of the result, both operands and what is added.
        numbers: :data:`ELEMENT_ARGS`.
    """
    if dtype not in _TYPES:
        return False
    kind = _TYPES[dtype]
    item, g = _BYTES[kind], dict(zip(ELEMENT_ARGS, numbers, strict=True))
    inner, outer = g["n1"], count // g["n1"]
    steps = {s: (g[f"{s}_b0"], g[f"{s}_b1"]) for s in "abcd"}
    if inner == 1:
        inner, outer, steps = outer, 1, {s: (0, b0) for s, (b0, _) in steps.items()}
    elif all(b0 == inner * b1 for b0, b1 in steps.values()):
        inner, outer = count, 1
    step = {s: b1 if inner > 1 else 0 for s, (_, b1) in steps.items()}
    m, n, k = g["m"], g["n"], g["k"]
    left, right = (n, k, g["b_n"], g["b_k"], step["b"]), (k, m, g["a_k"], g["a_m"], step["a"])
    result, added = (n, m, g["c_n"], g["c_m"], step["c"]), (n, m, g["d_n"], g["d_m"], step["d"])
    c, a, b, d = at
    order = [("b", b), ("a", a)]
    if g["c_n"] != item:  # the result lies by columns: then it is the product itself
        left, right = ((y, x, across, down, s) for x, y, down, across, s in (right, left))
        result, added = ((y, x, across, down, s) for x, y, down, across, s in (result, added))
        order.reverse()
    found = [_operand(*x, item) for x in (left, right, result)]
    if None in found or found[2].transposed:  # type: ignore[union-attr]
        return False
    bias, plus = False, None
    if g["init"] == 1:
        bias = added[2] == item and added[3] == 0 and (inner == 1 or step["d"] == 0)
        plus = None if bias else _operand(*added, item)
        if not bias and (plus is None or plus.transposed):
            return False
    compute = _DOUBLE if dtype == "float64" else _TF32 if dtype == "float32" and matmul.allow_tf32 else _SINGLE
    for o in range(outer):
        first, second, to = (address + o * steps[s][0] for s, address in (*order, ("c", c)))
        other = d + o * steps["d"][0] if g["init"] == 1 else 0
        aligned = tuple(_aligned(x) for x in (first, second, to if plus is None else other, to))
        plan = _plan_of(index, (kind, compute, inner, *found, plus, bias, aligned))
        if plan.choice is None:
            return False
        _run(index, plan, first, second, to, other, bias)
    return True


def _run(index: int, plan: _Plan, first: int, second: int, to: int, other: int, bias: bool) -> None:
    assert plan.choice is not None
    with calling(index, first, second, to, other) as (stream, *_), plan.lock:
        if bias:
            _set("MatmulDesc", plan.descriptor, _BIAS_POINTER, POINTER(other))
        area = _native.take_memory(index, plan.choice.workspace, stream) if plan.choice.workspace else 0
        try:
            one, beta = (ctypes.byref(x) for x in plan.factors)
            added = to if bias or not other else other
            _call(
                "cublasLtMatmul", _libraries[index], plan.descriptor, one, first, plan.layouts[0], second,
                plan.layouts[1], beta, added, plan.layouts[2], to, plan.layouts[3], ctypes.byref(plan.choice), area,
                plan.choice.workspace, stream,
            )  # fmt: skip
        finally:
            if area:
                _native.release_memory(index, area)
