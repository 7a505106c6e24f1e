"""Kernels compile for every target: x86-64 with AVX2 and AVX-512, arm64, and PTX that ptxas accepts where it is."""

import re
import shutil
import subprocess

import pytest

from taeda.kernels import scalar as s
from taeda.kernels.build import compiler
from taeda.kernels.conv_windows import conv_windows, pair_rows, windows_gradient
from taeda.kernels.copy import transpose, transpose_large
from taeda.kernels.depthwise import depthwise, depthwise_weight
from taeda.kernels.depthwise_last import depthwise_last, depthwise_last_weight
from taeda.kernels.gemm import matmul, panel_product
from taeda.kernels.indexing import mask_positions, mask_select, rows, search_sorted
from taeda.kernels.ir import Function
from taeda.kernels.pointwise import pointwise
from taeda.kernels.pool_last import pool_back_last, pool_last
from taeda.kernels.random import dropout, jump, twist
from taeda.kernels.reduce import reduce
from taeda.kernels.scan import scan
from taeda.kernels.softmax import softmax
from taeda.kernels.sort import kth_rows, median_places, sort_rows, top_rows
from taeda.kernels.target import ARM64, PTX, X86_64_AVX2, X86_64_AVX512
from taeda.kernels.winograd import winograd, winograd_gradient

CPUS = {"avx2": X86_64_AVX2, "avx512": X86_64_AVX512, "arm64": ARM64}


def kernels(target):
    """One kernel of each schedule, as text for ``target``."""

    def pointwise_text(body, outs, ins, compute, classes):
        f = Function(vector_bytes=target.vector_bytes)
        pointwise(f, body, outs, ins, compute, classes)
        return f

    yield "add", pointwise_text(lambda a, b: a + b, ["float32"], ["float32", "float32"], "float32", "ccc")
    yield "strided", pointwise_text(lambda a, b: a * b, ["float64"], ["float64", "int32"], "float64", "cvs")
    yield "dropout", dropout.text("bfloat16", False, target=target)
    yield "dropout past the cache", dropout.text("float32", True, target=target)
    yield "twist", twist.text(target=target)
    yield "jump", jump.text(target=target)
    yield "sin", pointwise_text(s.sin, ["float32"], ["float32"], "float32", "cc")
    yield "atan2", pointwise_text(s.atan2, ["float64"], ["float64"] * 2, "float64", "ccc")
    yield "lgamma", pointwise_text(s.lgamma, ["float64"], ["float64"], "float64", "cc")
    yield "exp", pointwise_text(s.exp, ["float32"], ["float32"], "float32", "cc")
    yield "erf", pointwise_text(s.erf, ["float64"], ["float64"], "float64", "cc")
    yield "bfloat16", pointwise_text(s.tanh, ["bfloat16"], ["bfloat16"], "float32", "cc")
    branches = s.hermite_h
    yield "bfloat16, branching", pointwise_text(branches, ["bfloat16"], ["bfloat16"] * 2, "float32", "ccc")
    yield "complex", pointwise_text(lambda a, b: a * b, ["complex64"], ["complex64", "complex64"], "complex64", "ccc")
    if target is not PTX:
        yield "sum", reduce.text("sum", "float32", ("float32",), "rc", 1, True, target=target)
        yield "softmax", softmax.text(("float32", "float32"), False, target=target)
        yield "matmul", matmul.text("float32", target=target)
        yield "windows", conv_windows.text("float32", target=target)
        for dtype in ("float32", "bfloat16", "float16"):
            yield (
                f"depthwise, channels last, {dtype}",
                depthwise_last.text(dtype, 4 if dtype == "float16" else 1, target=target),
            )
        for dtype, lines, step, ways, flat in (
            ("float32", 3, 2, 1, False),
            ("bfloat16", 2, 1, 2, False),
            ("float64", 1, 0, 1, True),
        ):
            of = dtype, lines, step
            yield f"depthwise, {of}", depthwise.text(*of, ways, flat, not flat, not flat, False, target=target)
            yield f"depthwise gradient, {of}", depthwise_weight.text(*of, flat, not flat, not flat, target=target)
        yield "pooling, channels last", pool_last.text("bfloat16", "argmax", False, target=target)
        yield "pooling, channels last, gradient", pool_back_last.text("float32", "argmax", target=target)
        yield (
            "depthwise, channels last, gradient",
            depthwise_last_weight.text("float32", 8 if target.vector_bytes >= 32 else 4, target=target),
        )
        yield "windows gradient", windows_gradient.text("float32", target=target)
        yield "pairs of rows", pair_rows.text("bfloat16", target=target)
        yield "winograd", winograd.text("float32", target=target)
        yield "winograd gradient", winograd_gradient.text("float32", target=target)
        yield "transpose", transpose.text(4, target=target)
        for item in (1, 2, 4, 8, 16):
            yield f"streamed transpose {item}", transpose_large.text(item, target=target)
            yield f"rows {item}", rows.text(item, "get", "c", "wrap", target=target)
            yield f"items {item}", rows.text(item, "get", "1", "plain", target=target)
        yield "search", search_sorted.text("float32", False, "int64", True, target=target)
        yield "masks", mask_positions.text(3, target=target)
        yield "masked items", mask_select.text(4, target=target)
        yield "scan", scan.text("cumsum", True, ("float32", "float32"), False, target=target)
        for dtype in ("uint8", "float16", "float32", "float64"):
            yield f"sort {dtype}", sort_rows.text(dtype, True, False, target=target)
            yield f"sort few {dtype}", sort_rows.text(dtype, False, True, target=target)
            yield f"top {dtype}", top_rows.text(dtype, True, target=target)
            yield f"median {dtype}", median_places.text(dtype, True, target=target)
            yield f"kth {dtype}", kth_rows.text(dtype, False, target=target)


@pytest.mark.parametrize("name", CPUS)
def test_machine_code(name):
    """Every schedule gives an object file for the target, which names no symbol outside itself."""
    target = CPUS[name]
    for kernel, f in kernels(target):
        code = compiler(target).object(f.text())
        assert code[:4] == b"\x7fELF", kernel
        machine = int.from_bytes(code[18:20], "little")
        assert machine == (183 if name == "arm64" else 62), kernel
        assert not re.search(rb"\0__\w+", code), kernel  # conversions that LLVM leaves to a library


def test_vector_registers():
    """The registers are as wide as the target's."""
    widths = {"avx2": r"%ymm\d", "avx512": r"%zmm\d", "arm64": r"v\d+\.4s"}
    for name, pattern in widths.items():
        f = next(iter(kernels(CPUS[name])))[1]
        assert re.search(pattern, compiler(CPUS[name]).assembly(f.text())), name


def test_ptx():
    """Pointwise kernels become PTX; ptxas, where there is one, turns it into machine code."""
    ptxas = shutil.which("ptxas")
    for kernel, f in kernels(PTX):
        text = compiler(PTX).assembly(f.text())
        assert ".visible .entry kernel(" in text, kernel
        if ptxas:
            done = subprocess.run(
                [ptxas, "-arch=sm_90", "-o", "/dev/null", "-"], input=text, text=True, capture_output=True
            )
            assert done.returncode == 0, f"{kernel}: {done.stderr}"


@pytest.mark.parametrize("name, steps, adds", [("full", 1, 3), ("full_no_prefetch", 4, 6)])
def test_tile_of_avx2_stays_in_registers(name, steps, adds):
    """The tiles of whole panels: two registers by six rows, no masks, no sums of addresses between rows, no spills."""
    text = compiler(X86_64_AVX2).assembly(panel_product.text("float32", target=X86_64_AVX2).text())
    tile = text.split(f"\ntile_6x2_{name}:")[1].split("retq")[0]
    loop = next(part for part in re.split(r"\n\.LBB\w+:", tile) if "vfmadd" in part)
    assert loop.count("vfmadd231ps") == 12 * steps and loop.count("vbroadcastss") == 6 * steps
    assert "vmaskmov" not in tile and "(%rsp)" not in loop
    assert len(re.findall(r"\taddq", loop)) == adds
    assert loop.count("prefetch") == (1 if steps == 1 else 0)
