"""Ops that NVIDIA's libraries compute, by their stand-ins. Run by ``test_libraries.py``."""

import gc

import pytest

import taeda
from taeda import cuda
from taeda.cuda import _cufft
from tests.cuda.emulator import driver, faults, reset  # noqa: F401
from tests.cuda.emulator.cufft import cufft
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
