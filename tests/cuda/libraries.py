"""Ops that NVIDIA's libraries compute, by their stand-ins. Run by ``test_libraries.py``."""

import copy
import gc
import re

import pytest

import taeda
from taeda import cuda, linalg
from taeda.cuda import _cublaslt, _cudnn, _cufft, _cusolver
from taeda.cuda._library import calling
from tests.cuda.emulator import driver, faults, reset  # noqa: F401
from tests.cuda.emulator.cublas import cublas
from tests.cuda.emulator.cublaslt import cublaslt
from tests.cuda.emulator.cudnn import ENGINES, Engine, cudnn
from tests.cuda.emulator.cufft import cufft
from tests.cuda.emulator.cusolver import cusolver
from tests.cuda.emulator.library import StandIn

PLANS = taeda.backends.cuda.cufft_plan_cache


@pytest.fixture(autouse=True)
def no_faults():
    yield
    cuda.synchronize()
    found = faults()
    driver().faults.clear()
    assert not found and not driver().notes, found


def made(*sizes, dtype=taeda.float32):
    return taeda.randn(sizes, generator=taeda.Generator().manual_seed(0), dtype=dtype)


def counted(function, stand_in: StandIn):
    """What ``function`` gives, and the names of the library's functions that it called for it."""
    stand_in.calls.clear()
    result = function()
    return result, list(stand_in.calls)


# ---- cuFFT -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", "fft ifft rfft irfft hfft ihfft".split())
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_transforms(name, dtype):
    """Values, dtypes and strides of the CPU: of several dimensions, orders of them, norms, sizes and layouts."""
    x, function = made(3, 4, 5, 2, dtype=dtype), getattr(taeda.fft, name)
    for given in (x, x.transpose(0, 2), x[:, ::2, 1:], x.to(dtype.to_complex())):
        if given.is_complex() and name in ("rfft", "ihfft"):
            continue
        for options in ({"dim": 0}, {"dim": 1, "norm": "ortho"}, {"dim": 2, "n": 7}, {"dim": -2, "norm": "forward"}):
            there, calls = counted(lambda given=given, o=options: function(given.cuda(), **o), cufft())
            here = function(given, **options)
            assert there.is_cuda and there.stride() == here.stride() and calls == ["cufftXtExec"], options
            taeda.testing.assert_close(there.cpu(), here)
        for dims in ((0, 1), (2, 0, 3), (0, 1, 2, 3), (3, 1, 2, 0)):
            there, calls = counted(
                lambda given=given, d=dims: getattr(taeda.fft, f"{name}n")(given.cuda(), dim=d), cufft()
            )
            here = getattr(taeda.fft, f"{name}n")(given, dim=dims)
            assert there.is_cuda and there.stride() == here.stride() and 1 <= len(calls) <= 3, dims
            taeda.testing.assert_close(there.cpu(), here)


def test_numbers_that_no_real_signal_has_are_left_out():
    x = taeda.complex(made(3, 4), made(3, 4).flip(0))
    taeda.testing.assert_close(taeda.fft.irfft(x.cuda()).cpu(), taeda.fft.irfft(x))
    kept = x.cuda()
    taeda.testing.assert_close(taeda.fft.irfft2(kept).cpu(), taeda.fft.irfft2(x))
    assert kept.cpu().equal(x)  # the library writes to what it reads


def test_gradients_and_maps():
    x = made(4, 6).double()
    for name in ("fft", "rfft", "fft2", "rfft2"):
        function = getattr(taeda.fft, name)
        here, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
        function(here).abs().sum().backward()
        function(there).abs().sum().backward()
        taeda.testing.assert_close(there.grad.cpu(), here.grad)
    mapped = taeda.vmap(taeda.fft.fft, in_dims=1)(x.cuda())
    taeda.testing.assert_close(mapped.cpu(), taeda.fft.fft(x.t()))


def test_what_the_library_does_not_take():
    with pytest.raises(RuntimeError, match="Unsupported dtype"):
        taeda.fft.fft(made(4).half().cuda())
    x = made(9).cuda()[1:]  # not aligned to a complex number
    taeda.testing.assert_close(taeda.fft.rfft(x).cpu(), taeda.fft.rfft(x.cpu()))
    assert taeda.fft.fft(made(0, 4).cuda()).shape == (0, 4)


def test_plans_are_kept_and_end():
    PLANS.clear()
    before = set(cufft().handles)
    for n in (4, 8, 4, 16):
        taeda.fft.fft(made(n).cuda())
    assert PLANS.size == PLANS[0].size == 3 and len(set(cufft().handles) - before) == 3
    PLANS.max_size = 1
    assert PLANS.size == 1 and len(set(cufft().handles) - before) == 1
    PLANS.max_size = 0  # nothing is kept
    taeda.testing.assert_close(taeda.fft.fft(made(4).cuda()).cpu(), taeda.fft.fft(made(4)))
    assert PLANS.size == 0 and set(cufft().handles) == before
    PLANS.max_size = 4096
    with pytest.raises(RuntimeError, match="cannot be set"):
        PLANS.size = 3
    with pytest.raises(RuntimeError, match="non-negative"):
        PLANS.max_size = -1


def test_transforms_go_on_the_current_stream():
    """In an order that few programs expect, with races looked for."""
    x = made(64)
    driver().check("full", 3)
    try:
        streams = [cuda.Stream() for _ in range(3)]
        given = x.cuda()
        results = []
        for k, stream in enumerate(streams):
            stream.wait_stream(cuda.default_stream())
            with cuda.stream(stream):
                results.append(taeda.fft.fft(given * k))
        cuda.synchronize()
        for k, found in enumerate(results):
            taeda.testing.assert_close(found.cpu(), taeda.fft.fft(x * k))
    finally:
        driver().check("fast")


def test_a_graph_keeps_its_plans():
    PLANS.clear()
    x = made(3, 8).cuda()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = taeda.fft.irfft2(taeda.fft.rfft2(x) * 2)
    PLANS.clear()
    gc.collect()
    x.copy_(made(3, 8) + 1)
    graph.replay()
    taeda.testing.assert_close(y.cpu(), 2 * (made(3, 8) + 1))
    plans = len(cufft().handles)
    del graph
    gc.collect()
    assert len(cufft().handles) < plans


def test_a_compiled_program_computes_what_a_transform_reads():
    x = made(8)
    function = taeda.compile(lambda x: taeda.fft.rfft(x * 2 + 1).abs() + 1)
    for _ in range(3):
        taeda.testing.assert_close(function(x.cuda()).cpu(), taeda.fft.rfft(x * 2 + 1).abs() + 1)


@pytest.mark.parametrize("wrong", ["stream", "destroyed", "area", "alignment"])
def test_the_stand_in_finds_mistakes(wrong):
    x = made(16).to(taeda.complex64).cuda()
    plan = _cufft._Plan(0, (8,), 1, 4, 4)
    call = _cufft.LIBRARY.functions
    area = taeda.empty(plan.work, dtype=taeda.uint8, device="cuda")
    call["cufftSetWorkArea"](plan.handle, 0 if wrong == "area" else area.data_ptr())
    if wrong == "stream":
        with cuda.device(1):
            code = call["cufftSetStream"](plan.handle, cuda.Stream().cuda_stream)
    else:
        if wrong == "destroyed":
            call["cufftDestroy"](plan.handle)
        code = call["cufftXtExec"](plan.handle, x.data_ptr() + 4 * (wrong == "alignment"), x.data_ptr(), -1)
    said = {"stream": "another device", "destroyed": "was destroyed", "area": "no work area", "alignment": "aligned"}
    assert code and said[wrong] in driver().faults.pop().message
    if wrong == "destroyed":
        plan.__dict__.pop("handle")
        del plan
        gc.collect()
        driver().faults.clear()


# ---- cuSOLVER and cuBLAS ---------------------------------------------------------------------------------------------


def eigen(A):
    """Values, and the matrix again: vectors are unique up to their phase."""
    w, V = linalg.eigh(A, "U")
    return w, (V * w.to(V.dtype)[..., None, :]) @ V.mH


def singular(A, full):
    U, S, Vh = linalg.svd(A, full_matrices=full)
    k = S.shape[-1]
    return S, (U[..., :k] * S.to(U.dtype)[..., None, :]) @ Vh[..., :k, :], U.mH @ U, Vh @ Vh.mH


S, A, T, B = "SATB"  # positive definite, square, of seven rows and four columns, of five rows and three columns
#: An op, its operands, and what the libraries run for each matrix.
LINEAR = {
    "cholesky": (linalg.cholesky, S, ["potrf"]),
    "cholesky, upper": (lambda s: linalg.cholesky(s, upper=True), S, ["potrf"]),
    "cholesky_solve": (lambda b, s: taeda.cholesky_solve(b, s.tril()), B + S, ["trsm"] * 2),
    "lu_factor_ex": (linalg.lu_factor_ex, T, ["getrf"]),
    "lu": (linalg.lu, A, ["getrf"]),
    "inv_ex": (linalg.inv_ex, A, ["getrf", "getrs"]),
    "solve": (linalg.solve, A + B, ["getrf", "getrs"]),
    "solve, right": (lambda a, b: linalg.solve(a, b.mT, left=False), A + B, ["getrf", "getrs"]),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True), A + B, ["getrf", "getrs"]),
    "one matrix": (lambda a, b: linalg.solve(a.reshape(-1, 5, 5)[0], b), A + B, None),
    "det": (linalg.det, A, ["getrf"]),
    "slogdet": (linalg.slogdet, A, ["getrf"]),
    "qr": (linalg.qr, T, ["geqrf", "orgqr"]),
    "qr, complete": (lambda t: linalg.qr(t, "complete"), T, ["geqrf", "orgqr"]),
    "qr, wide": (lambda t: linalg.qr(t.mT), T, ["geqrf", "orgqr"]),
    "geqrf": (taeda.geqrf, T, ["geqrf"]),
    "ormqr": (lambda t: taeda.ormqr(*taeda.geqrf(t), t, transpose=True), T, ["geqrf", "ormqr"]),
    "ormqr, right": (lambda t: taeda.ormqr(*taeda.geqrf(t), t.mH, left=False), T, ["geqrf", "ormqr"]),
    "eigvalsh": (linalg.eigvalsh, S, ["syevd"]),
    "eigh": (eigen, S, ["syevd"]),
    "svdvals": (linalg.svdvals, T, ["gesvd"]),
    "svd": (lambda t: singular(t, False), T, ["gesvd"]),
    "svd, wide": (lambda t: singular(t.mT, True), T, ["gesvd"]),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), A + B, ["trsm"]),
    "solve_triangular, right": (
        lambda a, b: linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True), A + B, ["trsm"]
    ),
}  # fmt: skip


def called_for(runs, batch, name):
    """What runs for one matrix or for two, which are one call where there is a function for it."""
    if not batch:
        return runs
    one = {"potrf", "getrs", "geqrf", "trsm", *(() if name == "lu_factor_ex" else ("getrf",))}
    return [call for run in runs for call in ([f"{run}Batched"] if run in one else [run] * 2)]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.complex128])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_algebra(name, dtype):
    """Values, dtypes and strides of the CPU, of one matrix and of a batch; and the gradients."""
    function, operands, runs = LINEAR[name]
    for batch in ((), (2,)):
        a, t, b = (made(*batch, *sizes, dtype=dtype) for sizes in ((5, 5), (7, 4), (5, 3)))
        known = {"S": a @ a.mH + 3 * taeda.eye(5, dtype=dtype), "A": a, "T": t, "B": b}
        given = [known[k] for k in operands]
        cublas().calls.clear()
        there, calls = counted(lambda g=given: function(*(x.cuda() for x in g)), cusolver())
        here = function(*given)
        if runs is not None:
            assert sorted(calls + cublas().calls) == sorted(called_for(runs, batch, name))
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (there, here)), strict=True):
            assert x.is_cuda and x.dtype is y.dtype and x.stride() == y.stride()
            taeda.testing.assert_close(x.cpu(), y, rtol=1e-4, atol=1e-5)
    if (
        not taeda.is_complex(a)
        and name not in ("lu_factor_ex", "lu", "qr, complete")
        and name[:5] not in ("geqrf", "ormqr")
    ):
        grads = []
        for device in ("cpu", "cuda"):
            leaves = [x.to(device).detach().requires_grad_() for x in given]
            result = function(*leaves)
            (result if isinstance(result, taeda.Tensor) else result[0]).square().sum().backward()
            grads.append([x.grad.cpu() for x in leaves])
        taeda.testing.assert_close(grads[1], grads[0], rtol=1e-3, atol=1e-4)


def test_matrices_without_elements():
    for function in (linalg.cholesky, linalg.inv, linalg.det, linalg.svd, linalg.qr, linalg.eigh):
        for sizes in ((0, 0), (0, 3, 3)):
            there, here = function(taeda.zeros(sizes).cuda()), function(taeda.zeros(sizes))
            for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (there, here)), strict=True):
                assert x.is_cuda and x.cpu().equal(y)


@pytest.mark.parametrize("function, says", [
    (linalg.cholesky, r"Batch element 1\): .*leading minor of order 2"),
    (linalg.inv, r"Batch element 1\): The diagonal element 2 is zero"),
    (lambda x: linalg.solve(x, x), "the input matrix is singular"),
    (lambda x: linalg.eigh(x / 0), "non-finite"),
    (lambda x: linalg.svd(x / 0), "non-finite"),
])  # fmt: skip
def test_codes_of_the_library_are_errors(function, says):
    x = taeda.stack([taeda.eye(2), taeda.ones(2, 2)]).cuda()
    with pytest.raises(linalg.LinAlgError, match=says):
        function(x)


def test_pivots_are_looked_at_before_the_library_reads_by_them():
    LU, pivots = linalg.lu_factor(made(3, 3).cuda())
    with pytest.raises(RuntimeError, match="expected pivots between 1 and 3"):
        linalg.lu_solve(LU, pivots + 3, made(3, 1).cuda())


def test_factors_on_two_streams_and_devices():
    x = made(6, 6) + 6 * taeda.eye(6)
    driver().check("full", 5)
    try:
        stream, given = cuda.Stream(), x.cuda()
        stream.wait_stream(cuda.default_stream())
        with cuda.stream(stream):
            one = linalg.inv_ex(given)[0]
        other, far = linalg.inv_ex(given * 2)[0], linalg.inv_ex(x.cuda(1))[0]
        cuda.synchronize()
        for found, factor in ((one, 1), (other, 2), (far, 1)):
            taeda.testing.assert_close(found.cpu(), linalg.inv(x * factor))
    finally:
        driver().check("fast")


@pytest.mark.parametrize("order", [None, 3, 8])
def test_many_small_matrices_are_one_call(order, monkeypatch):
    """In orders of streams that few programs expect, with races looked for; and one after the other where they are
    large."""
    x = made(7, 6, 6) + 6 * taeda.eye(6)
    driver().check("full", order)
    try:
        stream, given = cuda.Stream(), x.cuda()
        stream.wait_stream(cuda.default_stream())
        with cuda.stream(stream):
            one = linalg.solve(given, given[..., :2] * 2)
        other = linalg.cholesky(given @ given.mT), linalg.qr(given).R.abs(), linalg.inv(given[::2])
        cuda.synchronize()
    finally:
        driver().check("fast")
    taeda.testing.assert_close(one.cpu(), 2 * taeda.eye(6)[:, :2].expand(7, 6, 2), rtol=1e-4, atol=1e-5)
    want = linalg.cholesky(x @ x.mT), linalg.qr(x).R.abs(), linalg.inv(x[::2])
    taeda.testing.assert_close([y.cpu() for y in other], list(want), rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(_cusolver, "SMALL", 5)
    large, calls = counted(lambda: linalg.cholesky(given @ given.mT), cusolver())
    assert calls == ["potrf"] * 7
    taeda.testing.assert_close(large, other[0], rtol=1e-5, atol=1e-5)


def test_tables_of_addresses_are_looked_at():
    """When the work is done, as they may be written before that on the device."""
    x = made(2, 4, 4).cuda()
    pivots, codes = (taeda.zeros(n, dtype=taeda.int32, device="cuda") for n in (8, 2))
    with cuda.device(0), calling(0) as (stream,):
        context = driver().context()
        matrices = _cusolver._Matrices(_cusolver._handles[0], x.dtype, 2, stream)
        with pytest.raises(RuntimeError, match="INVALID_VALUE"):
            matrices.batch("getrf", 4, matrices.table(x), 2, pivots.data_ptr(), codes.data_ptr())
        assert "a leading dimension of 2" in driver().faults.pop().message
        wrong = taeda.tensor([x.data_ptr(), 8]).cuda()
        matrices.batch("getrf", 4, wrong.data_ptr(), 4, pivots.data_ptr(), codes.data_ptr())
        with pytest.raises(cuda.CudaError, match="LAUNCH_FAILED"):
            cuda.synchronize()
    assert "matrix 1: 0x8 is no memory of the device" in driver().faults[0].message
    driver().faults.clear()
    context.error = 0  # on a GPU the context would be lost


def test_work_areas_are_asked_for():
    handles = _cusolver._handles[0]
    with cuda.device(0):
        handle = handles.handle(_cusolver.BLAS, "cublasCreate_v2")
        call = _cusolver.BLAS.functions
        call["cublasSetStream_v2"](handle, 0)
        x = made(2, 2).cuda()
        one = _cusolver.ctypes.c_float(1)
        at = x.data_ptr()
        assert call["cublasStrsm_v2_64"](handle, 0, 0, 0, 0, 2, 2, _cusolver.ctypes.byref(one), at, 2, at, 2)
    assert "no work area" in driver().faults.pop().message


# ---- cuBLASLt --------------------------------------------------------------------------------------------------------

#: Products of ``a`` (128 x 96), ``b`` (96 x 112), a row and a matrix; of how many calls of the library.
PRODUCTS = {
    "mm": (lambda a, b, r, c: a @ b, 1),
    "columns": (lambda a, b, r, c: a.t().contiguous().t() @ b.t().contiguous().t(), 1),
    "linear": (lambda a, b, r, c: taeda.nn.functional.linear(a, b.t(), r), 1),
    "addmm": (lambda a, b, r, c: taeda.addmm(c, a, b), 1),
    "addmm, row": (lambda a, b, r, c: taeda.addmm(r, a, b), 1),
    "addmm, column": (lambda a, b, r, c: taeda.addmm(c[:, :1], a, b), 0),  # not by columns: own kernels
    "bmm": (lambda a, b, r, c: taeda.stack([a, a + 1, a - 1]) @ taeda.stack([b, b - 1, b]), 1),
    "baddbmm": (lambda a, b, r, c: taeda.baddbmm(c.expand(2, -1, -1), taeda.stack([a, a]), taeda.stack([b, b])), 1),
    "broadcast": (lambda a, b, r, c: taeda.stack([a, a + 1]) @ b, 1),
    "heads": (lambda a, b, r, c: a.reshape(2, 96, 1, 64).expand(2, 96, 3, 64).contiguous().transpose(1, 2)
              @ a.reshape(2, 96, 1, 64).transpose(1, 2).mT, 2),
    "not aligned": (lambda a, b, r, c: a[:, 1:] @ b[1:], 1),
    "expanded": (lambda a, b, r, c: a[:1].expand(128, 96) @ b, 0),
    "small": (lambda a, b, r, c: a[:8] @ b, 0),
}  # fmt: skip


def factors(dtype):
    return [made(*sizes).to(dtype) for sizes in ((128, 96), (96, 112), (112,), (128, 112))]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    function, count = PRODUCTS[name]
    given = factors(dtype)
    there = [x.cuda() for x in given]
    found, calls = counted(lambda: function(*there), cublaslt())
    here = function(*given)
    assert len(calls) == count and found.stride() == here.stride() and found.dtype is dtype
    tolerance = {taeda.float32: 1e-4, taeda.float64: 1e-11}.get(dtype, 2e-2)
    taeda.testing.assert_close(found.cpu(), here, rtol=tolerance, atol=4 * tolerance)
    assert function(*there).equal(found)


def test_a_layer_is_a_call_and_its_gradients_two():
    layer, x = taeda.nn.Linear(112, 96), made(128, 112)
    there, given = taeda.nn.Linear(112, 96).cuda(), x.cuda().requires_grad_()
    there.load_state_dict(layer.state_dict())
    y, calls = counted(lambda: there(given), cublaslt())
    assert calls == ["matmul"]
    _, calls = counted(lambda: y.square().sum().backward(), cublaslt())
    x.requires_grad_()
    layer(x).square().sum().backward()
    assert calls == ["matmul"] * 2
    for a, b in ((given, x), (there.weight, layer.weight), (there.bias, layer.bias)):
        taeda.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-3)


def test_tf32_is_a_choice():
    a, b, *_ = (x.cuda() for x in factors(taeda.float32))
    exact, matmul = a @ b, taeda.backends.cuda.matmul
    assert not matmul.allow_tf32
    try:
        taeda.set_float32_matmul_precision("high")
        assert matmul.allow_tf32 and not (a @ b).equal(exact)
        taeda.testing.assert_close(a @ b, exact, rtol=1e-2, atol=1e-1)
        matmul.allow_tf32 = False
        assert taeda.get_float32_matmul_precision() == "highest" and (a @ b).equal(exact)
        matmul.fp32_precision = "tf32"
        assert matmul.allow_tf32 and not (a @ b).equal(exact)
    finally:
        taeda.set_float32_matmul_precision("highest")
    assert not matmul.allow_tf32 and (a @ b).equal(exact)


def test_choices_are_kept_by_form():
    _cublaslt._plans.clear()
    a, b, *_ = (x.cuda() for x in factors(taeda.float32))
    for _ in range(3):
        a @ b
    assert len(_cublaslt._plans) == 1
    (a * 2) @ b, a.double() @ b.double()
    assert len(_cublaslt._plans) == 2
    before = len(cublaslt().handles)
    _cublaslt._plans.clear()
    gc.collect()
    assert len(cublaslt().handles) < before


def test_what_the_library_has_nothing_for_has_own_kernels():
    _cublaslt._plans.clear()
    a, b, *_ = factors(taeda.float32)
    cublaslt().refuses = True
    try:
        found, calls = counted(lambda: a.cuda() @ b.cuda(), cublaslt())
    finally:
        cublaslt().refuses = False
        _cublaslt._plans.clear()
    taeda.testing.assert_close(found.cpu(), a @ b, rtol=1e-4, atol=1e-4)
    assert not calls


def test_products_of_graphs_and_streams():
    a, b, *_ = (x.cuda() for x in factors(taeda.float32))
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = (a @ b) @ b.t()
    a.add_(1)
    graph.replay()
    taeda.testing.assert_close(y, (a @ b) @ b.t())
    driver().check("full", 7)
    try:
        stream = cuda.Stream()
        stream.wait_stream(cuda.default_stream())
        with cuda.stream(stream):
            one = (a * 2) @ b
        other = (a * 3) @ b
        cuda.synchronize()
        taeda.testing.assert_close(one / 2, other / 3)
    finally:
        driver().check("fast")


# ---- cuDNN -----------------------------------------------------------------------------------------------------------

F, SWITCHES = taeda.nn.functional, taeda.backends.cudnn
CONVOLUTIONS = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d), 3: (F.conv3d, F.conv_transpose3d)}


@pytest.fixture
def exact():
    """No TF32 within the test."""
    with SWITCHES.flags(enabled=True, allow_tf32=False):
        yield


def results(function, *given):
    """The result and all gradients, on the CPU."""
    leaves = [x.detach().requires_grad_() for x in given]
    y = function(*leaves)
    y.backward(made(*y.shape).to(y.dtype).to(y.device))
    assert all(x.device == given[0].device for x in (y, *(x.grad for x in leaves)))
    return [y.detach(), *(x.grad for x in leaves)]


def agree(function, *given, calls):
    """Both devices give numbers that are close, laid out in the same way; the library computes ``calls``."""
    there, called = counted(lambda: results(function, *(x.cuda() for x in given)), cudnn())
    assert called == calls
    for x, y in zip(there, results(function, *given), strict=True):
        assert (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())
        near = {taeda.float32: 1e-5, taeda.float64: 1e-14}.get(x.dtype, 1e-2)
        assert (x.cpu().double() - y.double()).abs().max() <= near * y.double().abs().max()


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("dims, x, w, options", [
    (1, (8, 32, 65), (48, 32, 5), {"padding": 2, "stride": 2}),
    (2, (3, 16, 15, 14), (32, 16, 3, 3), {"padding": "same"}),
    (2, (3, 16, 15, 14), (32, 16, 2, 4), {"padding": "same"}),  # more zeros behind than before
    (2, (8, 16, 15, 14), (64, 16, 3, 3), {"stride": (2, 3), "dilation": (2, 1)}),  # pixels that no window meets
    (2, (4, 16, 16, 16), (64, 8, 3, 3), {"groups": 2, "padding": 1}),
    (2, (8, 64, 20, 20), (64, 1, 3, 3), {"groups": 64}),
    (2, (4, 64, 9, 9), (64, 64, 1, 1), {}),
    (3, (2, 8, 6, 8, 8), (32, 8, 3, 3, 3), {"padding": (1, 0, 1)}),
])  # fmt: skip
def test_convolutions(dims, x, w, options):
    """Values, strides and gradients of the CPU, with channels second and last."""
    function = CONVOLUTIONS[dims][0]
    x, w, b = made(*x), made(*w), made(w[0])
    agree(lambda *given: function(*given, **options), x, w, b, calls=["y", "x", "w"])
    if dims > 1:
        x = x.to(memory_format=taeda.channels_last if dims == 2 else taeda.channels_last_3d)
        agree(lambda *given: function(*given, **options), x, w, calls=["y", "x", "w"])


@pytest.mark.usefixtures("exact")
def test_transposed_convolutions_views_and_dtypes():
    x, w = made(4, 24, 12, 11), made(24, 16, 3, 3)
    agree(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1), x, w, made(16),
          calls=["x", "y", "w"])  # fmt: skip
    w = made(24, 24, 3, 3)
    for dtype in (taeda.float16, taeda.bfloat16, taeda.float64):
        agree(lambda x, w, b: F.conv2d(x, w, b, padding=1), x.to(dtype), w.to(dtype), made(24).to(dtype),
              calls=["y", "x", "w"])  # fmt: skip
    big = made(5, 30, 12, 24)
    for view in (
        lambda t: t[1:, 3:27, :, 3:20], lambda t: t[:, :24].transpose(2, 3), lambda t: t[:1, :24].expand(3, 24, 12, 24)
    ):  # fmt: skip
        agree(lambda x, w, view=view: F.conv2d(view(x), w), big, w, calls=["y", "x", "w"])
    agree(lambda x, w: F.conv2d(x, w), big[0, :24], w, calls=["y", "x", "w"])  # without a batch
    first = taeda.autograd.grad(F.conv2d(g := x.cuda().requires_grad_(), v := w.cuda().requires_grad_()).square().sum(),
                                (g, v), create_graph=True)  # fmt: skip
    second, calls = counted(lambda: taeda.autograd.grad(first[0].sum() + first[1].sum(), (g, v)), cudnn())
    assert set(calls) == {"x", "y", "w"} and all(x.isfinite().all() for x in second)


def test_small_convolutions_and_those_that_it_has_nothing_for_have_own_kernels():
    x, w = made(4, 16, 16, 16), made(32, 16, 3, 3)
    want = results(F.conv2d, x, w)
    _cudnn._plans.clear()
    cudnn().refuses = True
    try:
        found, calls = counted(lambda: results(F.conv2d, x.cuda(), w.cuda()), cudnn())
    finally:
        cudnn().refuses = False
        _cudnn._plans.clear()
    with SWITCHES.flags(enabled=False):
        again, more = counted(lambda: results(F.conv2d, x.cuda(), w.cuda()), cudnn())
    _, small = counted(lambda: results(F.conv2d, x[:1, :, :4, :4].cuda(), w.cuda()), cudnn())
    assert calls == more == small == []
    for a, b, c in zip(found, again, want, strict=True):
        assert a.equal(b)
        taeda.testing.assert_close(a.cpu(), c, rtol=1e-4, atol=1e-3)


def test_tf32_of_convolutions_is_a_choice_of_its_own():
    x, w = made(4, 16, 16, 16), made(32, 16, 3, 3)
    assert SWITCHES.allow_tf32  # as in PyTorch
    rounded, want = F.conv2d(x.cuda(), w.cuda()).cpu(), F.conv2d(x, w)
    with SWITCHES.flags(enabled=True, allow_tf32=False):
        found = F.conv2d(x.cuda(), w.cuda()).cpu()
    SWITCHES.conv.fp32_precision = "ieee"
    try:
        assert F.conv2d(x.cuda(), w.cuda()).cpu().equal(found) and not found.equal(rounded)
    finally:
        SWITCHES.conv.fp32_precision = "tf32"
    taeda.testing.assert_close(found, want, rtol=1e-5, atol=1e-4)
    taeda.testing.assert_close(rounded, want, rtol=1e-2, atol=1e-1)
    assert SWITCHES.is_available() and SWITCHES.version() == 92801


def test_engines_give_the_same_bits_in_each_run(monkeypatch):
    """What differs from run to run, rounds operands, or needs more memory than others is not taken."""
    x, w = made(4, 16, 16, 16).half().cuda(), made(32, 16, 3, 3).half().cuda()
    assert F.conv2d(x, w).equal(F.conv2d(x, w))
    _cudnn._plans.clear()
    monkeypatch.setitem(ENGINES, 3, ENGINES[3][:-1])
    F.conv2d(x, w)
    assert [plan.workspace for plan in _cudnn._plans.values()] == [1000]  # of the mode that finds something for most
    _cudnn._plans.clear()
    monkeypatch.setitem(ENGINES, 2, [Engine((4,))])
    assert counted(lambda: F.conv2d(x, w), cudnn())[1] == []
    _cudnn._plans.clear()


@pytest.mark.usefixtures("exact")
def test_convolutions_of_graphs_streams_and_devices():
    x, w, b = made(4, 16, 16, 16), made(32, 16, 3, 3), made(32)
    there = [t.cuda() for t in (x, w, b)]
    _cudnn._plans.clear()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = F.conv2d(*there)
    _cudnn._plans.clear()
    gc.collect()
    there[0].add_(1)
    graph.replay()
    taeda.testing.assert_close(y.cpu(), F.conv2d(x + 1, w, b), rtol=1e-5, atol=1e-4)
    before = len(cudnn().handles)
    del graph, y
    gc.collect()
    assert len(cudnn().handles) < before  # its plan has ended
    driver().check("full", 11)
    try:
        stream, given = cuda.Stream(), x.cuda()
        stream.wait_stream(cuda.default_stream())
        with cuda.stream(stream):
            one = F.conv2d(given, w.cuda())
        other = F.conv2d(given * 2, w.cuda())
        _cudnn._plans.clear()  # each ends when its work is done
        far = F.conv2d(x.cuda(1), w.cuda(1))
        cuda.synchronize()
        taeda.testing.assert_close(one, other / 2)
        assert far.cpu().equal(one.cpu())
    finally:
        driver().check("fast")


@pytest.mark.usefixtures("exact")
def test_compiled_layers_and_training():
    layers = taeda.nn.Sequential(taeda.nn.Conv2d(16, 32, 3, padding=1), taeda.nn.ReLU(), taeda.nn.Conv2d(32, 16, 3))
    x, there = made(4, 16, 12, 12), copy.deepcopy(layers).cuda()
    compiled = taeda.compile(there)
    for _ in range(3):
        taeda.testing.assert_close(compiled(x.cuda()).cpu(), layers(x), rtol=1e-5, atol=1e-5)
    for model, given in ((layers, x), (there, x.cuda())):
        optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(given).square().mean().backward()
            optimizer.step()
    for a, b in zip(there.parameters(), layers.parameters(), strict=True):
        taeda.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrong, says", [
    ("sizes", "must be positive"), ("alignment", "not a multiple of 16"), ("type", "with type 3"),
    ("missing", r"\[906\] are not set"), ("not final", "is not finalised"), ("outputs", "are no convolution"),
    ("address", "addresses of tensors"), ("area", "a work area at"), ("changed", "finalised descriptor is changed"),
    ("device", "another device"), ("destroyed", "no handle"),
])  # fmt: skip
def test_the_stand_in_of_cudnn_finds_mistakes(wrong, says):
    x, w = made(4, 16, 16, 16).cuda(), made(32, 16, 3, 3).cuda()
    y = F.conv2d(x, w)
    handles, given = [], {"dtype": 0, "sizes": (4, 16, 8, 8), "strides": (1024, 64, 8, 1), "id": 1, "alignment": 16}
    handle = _cudnn._handles[0].value
    plan = list(_cudnn._plans.values())[-1]
    at = [t.data_ptr() for t in (x, w, y)]
    if wrong in ("sizes", "missing"):
        given |= {"sizes": (0, 16, 8, 8)} if wrong == "sizes" else {}
        given.pop("id" if wrong == "missing" else "none", None)
        call = lambda: _cudnn._made("tensor", handles, **given)  # noqa: E731
    elif wrong == "type":
        call = lambda: _cudnn._call("cudnnBackendSetAttribute", plan.handles[0], 901, 3, 1, at[0])  # noqa: E731
        plan.handles[0] = _cudnn._created("tensor", handles)
    elif wrong == "changed":
        call = lambda: _cudnn._call("cudnnBackendSetAttribute", plan.chosen, 400, 0, 1, at[0])  # noqa: E731
    elif wrong == "not final":
        graph = _cudnn._created("graph", handles)
        call = lambda: _cudnn._made("heuristic", handles, mode=3, graph=graph)  # noqa: E731
    elif wrong == "outputs":
        form = next(form for (_, form), one in _cudnn._plans.items() if one is plan)
        role, kind, (a, b, c), *rest = form[:-1]
        call = lambda: plan._graph(handle, role, kind, (a, b, (*c[:3], c[3] + 1)), *rest)  # noqa: E731
    else:
        at = [p + 4 for p in at] if wrong == "alignment" else at
        ids = (1, 2, 4) if wrong == "address" else (1, 2, 3)
        pack = _cudnn._made("pack", handles, ids=ids, addresses=at, workspace=0 if wrong == "area" else at[0])
        if wrong == "destroyed":
            _cudnn._call("cudnnBackendDestroyDescriptor", handles.pop())

        def call():
            with calling(int(wrong == "device")):
                _cudnn._call("cudnnBackendExecute", handle, plan.chosen, pack)

    with pytest.raises(_cudnn._Refused):
        call()
    assert re.search(says, driver().faults.pop().message)
