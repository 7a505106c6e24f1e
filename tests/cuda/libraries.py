"""Ops that NVIDIA's libraries compute, by their stand-ins. Run by ``test_libraries.py``."""

import gc

import pytest

import taeda
from taeda import cuda, linalg
from taeda.cuda import _cublaslt, _cufft, _cusolver
from tests.cuda.emulator import driver, faults, reset  # noqa: F401
from tests.cuda.emulator.cublas import cublas
from tests.cuda.emulator.cublaslt import cublaslt
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
            assert sorted(calls + cublas().calls) == sorted(runs * (2 if batch else 1))
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
