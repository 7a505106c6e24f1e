"""Device meta: tensors and modules without values."""

import copy
import io
import pickle
import subprocess
import sys

import pytest

import taeda
from taeda import nn

_F = nn.functional


def _empty(*sizes, **kwargs):
    return taeda.empty(*sizes, device="meta", **kwargs)


MAKING = {
    "empty": lambda: _empty(2, 3),
    "size": lambda: taeda.zeros(size=(2, 3), device="meta"),
    "tuple": lambda: taeda.ones((2, 3), device=taeda.device("meta")),
    "full": lambda: taeda.full((2, 3), 1.5, device="meta"),
    "randn": lambda: taeda.randn(2, 3, device="meta"),
    "like": lambda: taeda.zeros_like(taeda.ones(2, 3), device="meta"),
    "like meta": lambda: taeda.empty_like(_empty(2, 3)),
    "new": lambda: _empty(1).new_zeros(2, 3),
    "to": lambda: taeda.ones(2, 3).to("meta"),
    "keyword": lambda: taeda.ones(2, 3).to(device="meta"),
    "tensor": lambda: taeda.tensor([[1.0, 2, 3], [4, 5, 6]], device="meta"),
    "arange": lambda: taeda.arange(6.0, device="meta").view(2, 3),
    "pointwise": lambda: _empty(2, 1) + _empty(3),
    "number": lambda: _empty(2, 3) * taeda.tensor(2.0),
    "product": lambda: _empty(2, 4) @ _empty(4, 3),
    "slice": lambda: _empty(4, 3)[1:3],
    "T": lambda: _empty(3, 2).T,
    "written": lambda: _empty(2, 3).normal_().mul_(2).copy_(taeda.ones(3)),
    "recurrent": lambda: nn.LSTM(5, 3, device="meta")(_empty(2, 1, 5))[0].squeeze(1),
    "attention": lambda: _F.scaled_dot_product_attention(_empty(2, 3), _empty(4, 3), _empty(4, 3)),
}


@pytest.mark.parametrize("name", MAKING)
def test_form(name):
    t = MAKING[name]()
    assert t.device == taeda.device("meta") and t.is_meta and not t.is_cpu
    assert t.shape == (2, 3) and t.dtype is taeda.float32
    assert repr(t.detach()) == "tensor(..., device='meta', size=(2, 3))"


REFUSED = {
    "item": (RuntimeError, lambda t: t[0, 0].item()),
    "bool": (RuntimeError, lambda t: bool(t.sum() > 0)),
    "list": (NotImplementedError, lambda t: t.tolist()),
    "numpy": (TypeError, lambda t: t.numpy()),
    "cpu": (NotImplementedError, lambda t: t.cpu()),
    "to": (NotImplementedError, lambda t: t.to("cpu")),
    "copy": (NotImplementedError, lambda t: taeda.ones(2, 3).copy_(t)),
    "mask": (NotImplementedError, lambda t: t[t > 0]),
    "nonzero": (NotImplementedError, lambda t: t.nonzero()),
    "view": (RuntimeError, lambda t: t.view(7)),
    "product": (RuntimeError, lambda t: t @ t),
    "sizes in place": (RuntimeError, lambda t: t.add_(_empty(5))),
    "sizes of a copy": (RuntimeError, lambda t: t.copy_(taeda.ones(4))),
    "two devices": (RuntimeError, lambda t: t + taeda.ones(2, 3)),
    "negative": (RuntimeError, lambda t: _empty(-1)),
    "address space": (RuntimeError, lambda t: _empty(1 << 62)),
    "data": (RuntimeError, lambda t: setattr(t, "data", taeda.ones(2, 3))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    error, call = REFUSED[name]
    with pytest.raises(error):
        call(_empty(2, 3))


def test_large_tensors_cost_no_memory():
    with taeda.device("meta"):
        m = nn.Sequential(*(nn.Linear(1 << 20, 1 << 18) for _ in range(4)))
    assert sum(p.numel() for p in m.parameters()) == 4 * ((1 << 38) + (1 << 18))
    assert m.half()[3].weight.dtype is taeda.float16 and m[3].weight.device.type == "meta"
    assert copy.deepcopy(m)[0].weight.shape == (1 << 18, 1 << 20)


_N = 1 << 17

#: Ops on tensors of tens of gigabytes: what they would take, and write, no machine of today has within a test's time.
LARGE = {
    "product": lambda e: e(_N, _N) @ e(_N, _N),
    "product, bfloat16": lambda e: e(_N, _N, dtype=taeda.bfloat16) @ e(_N, _N, dtype=taeda.bfloat16),
    "product, complex": lambda e: e(_N, _N, dtype=taeda.complex64) @ e(_N, _N, dtype=taeda.complex64),
    "linear": lambda e: _F.linear(e(_N, _N), e(_N, _N), e(_N)),
    "pointwise": lambda e: _F.gelu(e(_N, _N) + e(_N)),
    "copy": lambda e: e(_N, _N).T.contiguous(),
    "sum": lambda e: e(_N, _N).sum(0).expand(_N, _N),
    "softmax": lambda e: e(_N, _N).softmax(-1),
    "layer norm": lambda e: _F.layer_norm(e(_N, _N), (_N,), e(_N), e(_N)),
    "cat": lambda e: taeda.cat([e(_N, _N // 2), e(_N, _N // 2)], 1),
    "sort": lambda e: e(_N, _N).sort()[0],
    "running sum": lambda e: e(_N, _N).cumsum(1),
    "embedding": lambda e: _F.embedding(e(_N, dtype=taeda.int64), e(_N, _N)),
    "convolution": lambda e: _F.conv2d(e(64, 256, 1024, 1024), e(256, 256, 3, 3), padding=1).view(_N, _N),
    "convolution of each channel": lambda e: _F.conv2d(
        e(64, 256, 1024, 1024), e(256, 1, 3, 3), padding=1, groups=256
    ).view(_N, _N),
    "batch norm": lambda e: nn.BatchNorm2d(256, device="meta")(e(64, 256, 1024, 1024)).view(_N, _N),
    "attention": lambda e: _F.scaled_dot_product_attention(
        *(e(_N // 1024, 64, _N // 8, 128) for _ in range(3))
    ).reshape(_N, _N),
    "interpolation": lambda e: _F.interpolate(e(1, 1, _N * _N // 2), scale_factor=2).view(_N, _N),
    "interpolation of a plane": lambda e: _F.interpolate(
        e(1, 1, 1, _N * _N // 4), scale_factor=2, mode="bilinear"
    ).view(_N, _N),
    "interpolation, uint8": lambda e: _F.interpolate(e(1, 1, _N * _N // 2, dtype=taeda.uint8), scale_factor=2).view(
        _N, _N
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_results_cost_nothing(name):
    before = taeda._core.memory.memory_stats()["reserved"]
    result = LARGE[name](_empty)
    assert result.is_meta and result.shape == (_N, _N)
    assert taeda._core.memory.memory_stats()["reserved"] - before < 64 << 20


def test_kernels_are_loaded_beside_large_tensors():
    """Parts of one kernel may be no further from each other than their code can say."""
    program = """
import taeda
large = []
for name in ("exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "sqrt"):
    large += [taeda.empty(1 << 28, device="meta") for _ in range(4)]
    getattr(taeda, name)(taeda.ones(3))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_else_is_done_meanwhile_is_computed():
    """Only the call itself is left undone: not what comes after one that failed, nor what other threads do."""
    with pytest.raises(RuntimeError):
        _empty(_N, _N) @ _empty(3, _N)
    ones = taeda.ones(1 << 20)
    assert (ones + ones).sum() == 1 << 21


def test_random_numbers_are_not_drawn():
    taeda.manual_seed(0)
    state = taeda.get_rng_state()
    taeda.randn(8, device="meta").uniform_()
    nn.init.trunc_normal_(_empty(3, 3))
    nn.init.orthogonal_(_empty(3, 3))
    assert taeda.equal(state, taeda.get_rng_state())


def test_default_device():
    with taeda.device("meta"):
        made = [taeda.zeros(2), taeda.tensor([1.0]), taeda.as_tensor([1.0]), taeda.arange(3), nn.Linear(2, 2).weight]
        assert taeda.ones(2, device="cpu").device.type == "cpu"
    assert all(t.is_meta for t in made)
    assert not taeda.tensor([1.0]).is_meta and not taeda.zeros(2).is_meta
    taeda.set_default_device("meta")
    try:
        assert taeda.get_default_device() == taeda.device("meta") and taeda.rand(2).is_meta
    finally:
        taeda.set_default_device("cpu")
    assert not taeda.rand(2).is_meta


def test_to_meta_from_there():
    x = taeda.ones(2, device="meta")
    assert x.to("meta") is x and x.to(device="meta") is x and x.to("meta", copy=True) is not x
    y = x.to("meta", taeda.float64)
    assert y.is_meta and y.dtype == taeda.float64


def test_module_gets_memory():
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to("meta")
    assert all(isinstance(p, nn.Parameter) and p.is_meta and p.requires_grad for p in m.parameters())
    assert m(_empty(2, 3)).shape == (2, 4)
    with pytest.raises(NotImplementedError, match="to_empty"):
        m.to("cpu")
    m.to_empty(device="cpu")
    assert not any(t.is_meta for t in m.state_dict().values())
    m[0].reset_parameters()
    m[1].reset_parameters()
    m(taeda.ones(2, 3)).sum().backward()
    assert m[0].weight.grad.shape == (4, 3)


def test_the_class_of_a_parameter_makes_parameters():
    meta = nn.Linear(3, 4).to("meta").weight
    kind = type(meta)
    assert kind.__name__ == "Parameter" and issubclass(kind, nn.Parameter) and vars(meta) == {}
    for given in (taeda.ones(4, 3), taeda.empty(4, 3, device="meta")):
        made = kind(given, requires_grad=False)
        assert isinstance(made, nn.Parameter) and made.device == given.device and not made.requires_grad
    assert type(kind(taeda.ones(2))) is nn.Parameter
    for other in (copy.deepcopy(meta), pickle.loads(pickle.dumps(meta)), kind(meta)):
        assert type(other) is kind and other.is_meta and other.requires_grad and other.shape == (4, 3)
    assert repr(meta).startswith("Parameter containing:\ntensor(...")
    assert type(meta.data) is type(meta + 1) is type(meta.detach()) is not kind


def test_module_is_given_a_state():
    full = nn.Linear(3, 4)
    m = nn.Linear(3, 4, device="meta")
    with pytest.warns(UserWarning, match="assign=True"):
        m.load_state_dict(full.state_dict())
    assert m.weight.is_meta
    m.load_state_dict(full.state_dict(), assign=True)
    x = taeda.ones(2, 3)
    assert isinstance(m.weight, nn.Parameter) and taeda.equal(m(x), full(x))


def test_functional_call_of_a_skeleton():
    full = nn.Linear(3, 4)
    skeleton = copy.deepcopy(full).to("meta")
    x = taeda.ones(2, 3)
    assert taeda.equal(taeda.func.functional_call(skeleton, dict(full.named_parameters()), (x,)), full(x))
    assert skeleton.weight.is_meta


@pytest.mark.parametrize("zip_format", [True, False])
def test_files(zip_format):
    m = nn.Linear(3, 4, device="meta")
    f = io.BytesIO()
    taeda.save({"m": m.state_dict(), "p": m.weight, "t": taeda.ones(2)}, f, _use_new_zipfile_serialization=zip_format)
    f.seek(0)
    read = taeda.load(f)
    assert read["m"]["weight"].is_meta and read["m"]["weight"].shape == (4, 3) and not read["t"].is_meta
    assert isinstance(read["p"], nn.Parameter) and read["p"].is_meta
    f.seek(0)
    assert taeda.load(f, map_location="meta")["t"].is_meta
    assert pickle.loads(pickle.dumps(m.weight)).shape == (4, 3)


def test_storages_are_on_meta():
    """They have a size, an address of 0, and no bytes that could be read or written."""
    storage = _empty(2, 3).untyped_storage()
    assert str(storage.device) == "meta" and storage.data_ptr() == 0 and storage.nbytes() == 24
    assert str(storage.clone().device) == str(_empty(2, 3).storage().device) == "meta"
    for use in (lambda: storage[0], storage.tolist, lambda: storage.fill_(1), storage.cpu, lambda: memoryview(storage)):
        with pytest.raises((NotImplementedError, BufferError)):
            use()


def test_transformations_plan_too():
    x = _empty(3, 4)
    made = [
        taeda.vmap(lambda a: a * 2)(x),
        taeda.func.grad(lambda a: (a * a).sum())(x),
        taeda.func.jacrev(lambda a: a.sin().sum(0))(x),
        taeda.func.jacfwd(lambda a: a.sin().sum(0))(x),
        taeda.vmap(taeda.func.grad(lambda a: (a * a).sum()))(x),
        taeda.func.hessian(lambda a: (a**3).sum())(x),
    ]
    assert [tuple(t.shape) for t in made] == [(3, 4), (3, 4), (4, 3, 4), (4, 3, 4), (3, 4), (3, 4, 3, 4)]
    assert all(t.is_meta for t in made)


def test_tensors_with_values_are_not_written_from_meta():
    number, row, place = taeda.tensor(1.0), taeda.ones(3), taeda.zeros(1, dtype=taeda.int64, device="meta")
    calls = {
        "copy_": lambda: number.copy_(_empty(())),
        "add_": lambda: number.add_(_empty(())),
        "index_put_": lambda: row.index_put_((place,), taeda.zeros(1)),
        "setitem": lambda: row.__setitem__(place, 5.0),
        "fill_": lambda: row.fill_(_empty(())),
    }
    for name, call in calls.items():
        with pytest.raises((RuntimeError, NotImplementedError)):
            pytest.fail(f"{name} gave {call()}")
    assert number.item() == 1 and row.tolist() == [1, 1, 1]


def test_sizes_and_devices_are_taken_from_meta():
    like = _empty(2, 3, dtype=taeda.float64)
    assert not taeda.ones(3).expand_as(like).is_meta and not taeda.ones(6).view_as(like).is_meta
    assert taeda.ones(6).reshape_as(like).sum().item() == 6
    for made in (taeda.ones(3).to(like), taeda.ones(3).type_as(like)):
        assert made.is_meta and made.dtype is taeda.float64 and made.shape == (3,)


@pytest.mark.parametrize("watch", ["flops", "profile"])
def test_what_only_watches_lets_nothing_through(watch):
    from taeda.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) if watch == "flops" else taeda.profiler.profile():
        with pytest.raises(NotImplementedError):
            taeda.nonzero(_empty(2, 3))
        with pytest.raises(RuntimeError):
            _empty(2, 3) + taeda.ones(2, 3)
        assert _F.pdist(_empty(4, 2)).shape == (6,) and (_empty(2, 3) @ _empty(3, 2)).is_meta
    assert taeda.ones(3).sum().item() == 3


@pytest.mark.skipif(sys.platform == "win32", reason="addresses are the system's there")
def test_tensors_may_be_larger_than_a_process_can_address():
    x = taeda.rand(2**10, 3, 2**16, 2**16, device="meta", requires_grad=True)  # 48 TiB
    y = nn.Conv2d(3, 5, 2, device="meta")(x).relu()
    assert y.shape == (2**10, 5, 2**16 - 1, 2**16 - 1) and y.is_meta
    y.sum().backward()
    assert x.grad.shape == x.shape and x.grad.is_meta
    assert nn.functional.softmax(x.detach(), -1).cumsum(0).shape == x.shape


class Parts(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.own = nn.Parameter(taeda.empty(n, n, device=device))
        nn.init.uniform_(self.own)
        self.layer = nn.Linear(n, n, device=device)


def test_skip_init_draws_nothing_for_any_module():
    taeda.manual_seed(0)
    before = taeda.get_rng_state()
    module = nn.utils.skip_init(Parts, 3)
    assert type(module) is Parts and not module.own.is_meta and not module.layer.weight.is_meta
    assert taeda.equal(taeda.get_rng_state(), before)


def test_functions_of_sizes_and_numbers_are_made_where_out_is():
    for make in (taeda.zeros, taeda.randn, taeda.arange, taeda.eye):
        out = _empty(0)
        assert make(3, out=out) is out and out.is_meta and out.shape[0] == 3
    assert taeda.full((2,), 3.0, out=_empty(0)).is_meta
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cpu, but got meta"):
        taeda.zeros(2, device="cpu", out=_empty(0))


def test_dtypes_that_only_kernels_refuse():
    x = _empty(4, 8, dtype=taeda.float16)
    assert taeda.fft.fft(x).dtype is taeda.complex32 and taeda.fft.rfft(x).shape == (4, 5)
    assert [m.shape for m in taeda.linalg.qr(x)] == [(4, 4), (4, 8)]
    assert taeda.linalg.svdvals(x).dtype is taeda.float16
    with pytest.raises(RuntimeError, match="Low precision"):
        taeda.linalg.inv(x[:, :4])


def test_numbers_beyond_the_range_of_a_dtype():
    x = _empty(2, dtype=taeda.float16)
    assert taeda.full((2,), -1e9, dtype=taeda.float16, device="meta").shape == (2,)
    assert x.masked_fill(x > 0, -1e9).dtype is taeda.float16
