"""Devices: `desk`, which stands on the contract alone, and `far`, whose memory the host cannot read."""

import copy
import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda._core import memory
from taeda._core.devices import DEVICES, REGISTERED, register_device
from taeda.ops.table import OPS

far = pytest.importorskip("taeda.testing.far", reason="the system has no mprotect", exc_type=OSError)

from .desk import DESKS  # noqa: E402


def here(seed=0, *sizes):
    return taeda.randn(*(sizes or (3, 4)), generator=taeda.Generator().manual_seed(seed))


# ---- the contract ----------------------------------------------------------------------------------------------------


def test_a_device_from_outside_computes_sums_products_and_their_gradients():
    def run(device):
        a, b, c = (here(k, *s).to(device).requires_grad_() for k, s in enumerate(((3, 4), (3, 4), (4, 2))))
        (a + b).mm(c).sum().backward()
        return [t.cpu() for t in ((a + b).detach(), (a + b).mm(c).sum().detach(), a.grad, b.grad, c.grad)]

    DESKS[0].launched.clear()
    for ours, theirs in zip(run("desk"), run("cpu"), strict=True):
        taeda.testing.assert_close(ours, theirs)
    assert {"pointwise", "gemm.matmul", "reduce.reduce"} <= set(DESKS[0].launched)


def test_a_kernel_that_a_device_lacks_is_named():
    x = taeda.ones(3, device="desk")
    with pytest.raises(NotImplementedError, match=r"pointwise: device 'desk:0' has no kernel of .*sin"):
        x.sin()
    assert x.cpu().equal(taeda.ones(3))


def test_memory_is_given_back_with_the_last_tensor():
    desk = DESKS[1]
    x = taeda.ones(500, device="desk:1")
    place, top = x.data_ptr(), desk.top
    del x
    assert taeda.zeros(500, device="desk:1").data_ptr() == place and desk.top == top


def test_out_of_memory_is_an_error_and_leaves_the_device_usable():
    with pytest.raises(taeda.OutOfMemoryError, match=r"out of memory on desk:1: tried to allocate 4\.00 MiB"):
        taeda.empty(1 << 20, device="desk:1")
    assert taeda.ones(2, device="desk:1").tolist() == [1, 1]


def test_an_error_in_a_launch_is_raised_by_the_call_that_launched(monkeypatch):
    x = taeda.ones(2, device="desk")

    def fails(*args):
        raise ArithmeticError("the desk is on fire")

    monkeypatch.setattr(DESKS[0], "launch", fails)
    with pytest.raises(ArithmeticError, match="on fire"):
        x + x
    monkeypatch.undo()
    assert (x + x).tolist() == [2, 2]


def test_types_are_registered_once_and_indices_must_exist():
    with pytest.raises(ValueError, match="there is a device 'desk'"):
        register_device("desk", None)
    with pytest.raises(RuntimeError, match=r"there is no device 'desk:7'"):
        taeda.ones(1).to("desk:7")
    with pytest.raises(RuntimeError, match="Expected one of"):
        taeda.device("chair")


def test_devices_of_one_type_are_told_apart():
    a, b = taeda.ones(2, device="desk:0"), taeda.ones(2, device=taeda.device("desk", 1))
    assert (a.device, b.device, a.get_device(), b.get_device()) == (
        taeda.device("desk:0"), taeda.device("desk:1"), 0, 1,
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="at least two devices"):
        a + b
    assert a.to("desk:1").add(b).tolist() == [2, 2]


# ---- what a user does ------------------------------------------------------------------------------------------------


def test_tensors_move_with_their_strides_and_dtypes():
    a = here().t()
    x = a.to("far")
    assert (x.device, x.stride(), x.is_cpu, x.is_meta, x.get_device()) == (
        taeda.device("far:0"),
        (1, 4),
        False,
        False,
        0,
    )
    assert x.cpu().equal(a) and x.cpu().stride() == a.stride()
    assert a.to(device="far", dtype=taeda.float64).to("cpu", taeda.float16).equal(a.half())
    assert a.to(x).device == x.device and x.to("far") is x and x.type_as(a).is_cpu
    assert x.to("meta").is_meta


@pytest.mark.parametrize("target", [lambda s: taeda.empty(s), lambda s: taeda.empty(s[::-1]).t(),
                                    lambda s: taeda.empty(s, dtype=taeda.float64)])  # fmt: skip
def test_copies_between_devices(target):
    a = here()
    assert target((3, 4)).copy_(a.to("far")).float().equal(a)
    assert target((3, 4)).to("far").copy_(a).cpu().float().equal(a)


@pytest.mark.parametrize("make", [
    lambda **k: taeda.zeros(2, **k), lambda **k: taeda.full((2,), 3.0, **k), lambda **k: taeda.arange(3, **k),
    lambda **k: taeda.eye(2, **k), lambda **k: taeda.linspace(0, 1, 3, **k), lambda **k: taeda.tensor([1, 2], **k),
    lambda **k: taeda.as_tensor([1.0], **k), lambda **k: taeda.randperm(5, **k), lambda **k: taeda.randn(9, **k),
    lambda **k: taeda.rand(2, 2, **k), lambda **k: taeda.randint(9, (3,), **k),
])  # fmt: skip
def test_factories_make_tensors_where_they_are_asked_to(make):
    def seeded(**kwargs):
        taeda.manual_seed(1)
        return make(**kwargs)

    plain = seeded()
    with taeda.device("far"):
        within = seeded()
    taeda.set_default_device("far")
    try:
        by_default = seeded()
    finally:
        taeda.set_default_device(None)
    for t in (seeded(device="far"), seeded(device=taeda.device("far", 0)), within, by_default):
        assert t.device == taeda.device("far:0") and t.cpu().equal(plain)
    assert make().is_cpu


def test_what_is_like_a_tensor_is_on_its_device_unless_another_is_named():
    x = here().to("far")
    assert taeda.zeros_like(x).device == x.new_ones(2).device == x.new_tensor([1.0]).device == x.device
    assert taeda.ones_like(x, device="cpu").is_cpu and taeda.ones_like(here(), device="far").device == x.device
    assert nn.Linear(2, 2, device="far").weight.device == x.device


def test_the_host_reads_elements_by_copies():
    a = here()
    x = a.to("far")
    assert x.tolist() == a.tolist() and x[0, 0].item() == a[0, 0].item() and bool((x == x).all())
    assert (
        int(taeda.tensor(3, device="far")) == 3 and "device='far:0'" in repr(x) and f"{x.sum():.3f}" == f"{a.sum():.3f}"
    )
    assert np.array_equal(x.numpy(force=True), a.numpy())
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=r"can't convert far:0 device type tensor to numpy\. Use Tensor\.cpu\(\)"):
            read()
    for export in (lambda: memoryview(x), lambda: np.from_dlpack(x), lambda: x.__dlpack__()):
        with pytest.raises(BufferError, match="far"):
            export()
    assert x.__dlpack_device__() == (12, 0)


def test_a_number_may_be_a_tensor_on_the_device():
    x, two = taeda.arange(6.0, device="far").view(2, 3), taeda.tensor(2.0, device="far")
    for compute in (
        lambda x, t: taeda.add(x, x, alpha=t),
        lambda x, t: x.clamp(max=t),
        lambda x, t: taeda.addcmul(x, x, x, value=t),
        lambda x, t: taeda.full_like(x, t),
        lambda x, t: x[:, t.long() :],
    ):
        assert taeda.equal(compute(x, two).cpu(), compute(x.cpu(), two.cpu()))
    cut = x.tensor_split(taeda.tensor([1]))
    assert [tuple(t.shape) for t in cut] == [(1, 3), (1, 3)] and cut[0].device == x.device


@pytest.mark.parametrize("thing", [0, 1, 1.5, [], object()])
def test_what_is_no_device_is_refused(thing):
    for make in (taeda.rand, taeda.zeros, taeda.empty):
        with pytest.raises((RuntimeError, TypeError)):
            make(2, device=thing)
    with pytest.raises((RuntimeError, TypeError)):
        taeda.nn.Linear(1, 1, device=thing)


def test_files_pickles_and_copies_keep_the_device():
    a = here()
    x = a.to("far")
    for t in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()):
        assert t.device == x.device and t.cpu().equal(a) and t.data_ptr() != x.data_ptr()

    def saved(thing, **kwargs):
        file = io.BytesIO()
        taeda.save(thing, file)
        file.seek(0)
        return taeda.load(file, **kwargs)

    back = saved({"x": x, "view": x[1]})
    assert back["x"].device == x.device and back["x"].cpu().equal(a)
    back["x"].zero_()
    assert back["view"].cpu().equal(taeda.zeros(4))  # the two share memory there
    assert saved(x, map_location="cpu").is_cpu and saved(a, map_location="far").device == x.device
    assert saved(a, map_location={"cpu": "far"}).cpu().equal(a)


@pytest.mark.parametrize("zipped", [True, False])
def test_files_are_read_onto_a_device(zipped):
    a = here()
    file = io.BytesIO()
    taeda.save({"x": a, "view": a[1], "half": a.half()}, file, _use_new_zipfile_serialization=zipped)
    asked = []

    def chosen(storage, location):
        asked.append((type(storage), location))
        return storage.to(device="far") if storage.nbytes() == a.nbytes else None

    for location in ("far", taeda.device("far"), {"cpu": "far"}, chosen):
        file.seek(0)
        back = taeda.load(file, map_location=location)
        assert back["x"].device.type == "far" and back["x"].cpu().equal(a)
        assert back["half"].device.type == ("cpu" if location is chosen else "far") and back["half"].cpu().equal(
            a.half()
        )
        back["x"].zero_()
        assert back["view"].cpu().equal(taeda.zeros(4))
    assert asked == [(taeda.UntypedStorage, "cpu")] * 2


def test_tensors_of_two_devices_meet_by_pytorchs_rules():
    a, two = here(), taeda.tensor(2.0, requires_grad=True)
    x = a.to("far")
    for call in (lambda: x + a, lambda: taeda.cat([x, a]), lambda: a.clone().add_(x), lambda: taeda.where(x > 0, x, a),
                 lambda: a[taeda.tensor([0], device="far")], lambda: taeda.add(x, x, out=taeda.empty(3, 4))):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"device|indices should be either on cpu"):
            call()
    (x * two).sum().backward()  # a number, whose gradient comes back to its device
    assert two.grad.is_cpu and two.grad.allclose(a.sum())
    assert x[taeda.tensor([0, 2])].cpu().equal(a[[0, 2]]) and x[a > 0].cpu().equal(a[a > 0])
    y = x.clone()
    y[taeda.tensor([0])] = 0.0
    y[1] = taeda.ones(4)
    assert y[0].tolist() == [0] * 4 and y[1].tolist() == [1] * 4
    assert a.equal(x.cpu())


def test_gradients_are_on_the_device_of_their_leaf():
    a = here()
    w = taeda.ones(4, device="far", requires_grad=True)
    c = taeda.ones(4, requires_grad=True)
    for _ in range(2):
        (a.to("far") * w * c.to("far")).sum().backward()
    assert (
        w.grad.device == w.device
        and c.grad.is_cpu
        and w.grad.cpu().allclose(2 * a.sum(0))
        and c.grad.allclose(w.grad.cpu())
    )
    with pytest.raises(RuntimeError, match="assigned grad has data located on a different device"):
        w.grad = taeda.zeros(4)
    (again,) = taeda.autograd.grad((w**3).sum(), w, create_graph=True)
    assert taeda.autograd.grad(again.sum(), w)[0].tolist() == [6] * 4


def test_a_leaf_takes_its_first_gradient_over(monkeypatch):
    device = REGISTERED[DEVICES.index("far:0")]
    ways, copied = [], device.copy
    a, b = (taeda.ones(3, device="far", requires_grad=True) for _ in range(2))
    loss = (a * b).sum()
    monkeypatch.setattr(device, "copy", lambda to, at, nbytes, way: ways.append(way) or copied(to, at, nbytes, way))
    loss.backward()
    assert 0 not in ways  # 0: within the device
    assert a.grad.device == a.device and a.grad.tolist() == [1, 1, 1]


def test_transforms_of_functions():
    x = here().to("far")
    assert taeda.func.grad(lambda t: (t**2).sum())(x).cpu().allclose(2 * x.cpu())
    assert taeda.vmap(lambda t: t.softmax(-1))(x).cpu().allclose(x.cpu().softmax(-1))
    assert taeda.func.jvp(lambda t: t.sin(), (x,), (x,))[1].device == x.device
    hessian = taeda.func.hessian(lambda t: (t**3).sum())(x[0])
    assert hessian.device == x.device and hessian.cpu().allclose((6 * x[0].cpu()).diag())
    assert taeda.compile(lambda t: (t * 2).sin().sum())(x).item() == pytest.approx((x.cpu() * 2).sin().sum().item())


def test_linear_algebra_and_fft_go_by_way_of_the_processor():
    a = here(0, 4, 4)
    x = a.to("far").requires_grad_()
    assert x.inverse().device == x.device and taeda.linalg.svd(x)[1].cpu().allclose(taeda.linalg.svd(a)[1])
    x.inverse().sum().backward()
    a.requires_grad_().inverse().sum().backward()
    assert x.grad.device == x.device and x.grad.cpu().allclose(a.grad)
    assert taeda.fft.fft(x.detach()).abs().cpu().allclose(taeda.fft.fft(a.detach()).abs())


def test_a_host_read_ends_the_process():
    """What device far is for: code that takes its memory for the processor's is found, with its line."""
    program = (
        "import ctypes, faulthandler, taeda, taeda.testing.far; faulthandler.enable();"
        "x = taeda.ones(3, device='far'); ctypes.c_float.from_address(x.data_ptr()).value"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode < 0 and "Segmentation fault" in ended.stderr


def test_storages_of_a_device():
    storage = taeda.ones(3, device="far").untyped_storage()
    assert storage.device == taeda.device("far:0") and storage.nbytes() == 12 and storage.data_ptr()
    own = np.ones(3, np.float32).tobytes()
    assert storage[3] == own[3] and bytes(storage.cpu()) == own
    with pytest.raises(NotImplementedError, match="share_memory_"):
        taeda.ones(3, device="far").share_memory_()


# ---- training --------------------------------------------------------------------------------------------------------


def test_training_on_far_gives_the_bits_of_the_cpu():
    """MLP, CNN, GPT, and an LSTM under autocast: losses, and from checkpoints of either device on either device."""
    path = Path(__file__).with_name("training.py")
    ended = subprocess.run([sys.executable, "-X", "faulthandler", str(path), "far"], capture_output=True, text=True,
                           env={**os.environ, "TAEDA_TARGET": "lane"}, timeout=600)  # fmt: skip
    assert ended.returncode == 0 and "the same bits" in ended.stdout, ended.stderr[-3000:]


def test_nothing_of_the_cpus_is_used_for_what_is_on_a_device():
    """A model on far takes kernels of far alone, and leaves the CPU's allocator in peace."""
    model = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 8)).to("far")
    x = taeda.randn(128, 64, device="far")
    model(x).sum().backward()
    before, launches = memory.memory_stats()["peak_allocated"], far.count_launches()
    memory.reset_peak_memory_stats()
    start = memory.memory_stats()["allocated"]
    model(x).sum().backward()
    assert far.count_launches() > launches and memory.memory_stats()["peak_allocated"] - start < 64 << 10, before


def test_the_page_names_the_ops_that_run_on_the_host():
    page = Path(__file__).parents[2] / "docs" / "devices.md"
    listed = re.search(r"These are, by name:(.*?)\.\n", page.read_text(), re.S)[1]
    there = {op.name for op in OPS.values() if getattr(op, "traits", {}).get("on_host")}
    assert re.findall(r"`(\w+)`", listed) == sorted(there) and len(there) <= 60


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: taeda.utils.data.Subset(d, range(4))])
def test_a_data_set_of_tensors_on_a_device_gives_batches_there(wrap):
    data = wrap(taeda.utils.data.TensorDataset(here().t().to("far"), taeda.arange(4)))
    (x, i), (y, j) = taeda.utils.data.DataLoader(data, batch_size=2)
    assert x.device.type == y.device.type == "far" and i.is_cpu and j.is_cpu
    assert taeda.cat([x, y]).cpu().equal(here().t()) and taeda.cat([i, j]).tolist() == [0, 1, 2, 3]
    with taeda.device("far"):  # where the indices are made has nothing to do with it
        (k,) = next(iter(taeda.utils.data.DataLoader(taeda.utils.data.TensorDataset(taeda.arange(4, device="cpu")), 4)))
    assert k.is_cpu and k.tolist() == [0, 1, 2, 3]


def test_softmax_of_sparse_tensors():
    x = taeda.tensor([[2.0, 0.0, 2.0], [0.0, 5.0, 0.0]]).to_sparse()
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1):
            found = getattr(taeda.sparse, name)(x.to("far"), dim)
            assert found.device.type == "far"
            taeda.testing.assert_close(found.to_dense().cpu(), getattr(taeda.sparse, name)(x, dim).to_dense())


def test_equal_answers_on_every_device():
    x = here()
    assert taeda.equal(x.to("far"), x.to("far")) and not taeda.equal(x.to("far"), -x.to("far"))


def write_through(x):
    x.conj().mul_(2 + 1j)
    x.conj()[0] = 3 + 2j
    x.conj().imag.add_(1)
    return x


def differentiated(x):
    x = x.detach().requires_grad_()
    y = x * 1
    z = y.conj()
    (z.imag.sum() + (x.conj() * x).real.sum() + (x.mH @ x).abs().sum()).backward()
    return x.grad


@pytest.mark.parametrize("function", [
    lambda x: x.conj(), lambda x: x.conj().conj(), lambda x: x.conj() * 2, lambda x: x.mH @ x, lambda x: x.conj().imag,
    lambda x: x.conj().real, lambda x: x.conj().t()[1:].reshape(-1), lambda x: taeda.cat([x.conj(), x]),
    lambda x: taeda.stack((x.conj(), x)).sum(0), lambda x: taeda.mul(x, x, out=taeda.empty_like(x).conj()),
    lambda x: x.conj().to(taeda.complex128), lambda x: x.new_tensor(x.conj()[0, 0].item()), write_through, differentiated,
])  # fmt: skip
def test_conjugate_views_are_views_on_every_device(function):
    x = taeda.tensor([[1 + 2j, 3 - 1j], [0.5j, -2 + 1j], [1 - 1j, 4]])
    want, got = function(x.clone()), function(x.to("far"))
    assert (got.is_conj(), got.is_neg()) == (want.is_conj(), want.is_neg())
    taeda.testing.assert_close(got.cpu().resolve_conj().resolve_neg(), want.resolve_conj().resolve_neg())


def test_long_columns_of_a_device_without_threads():
    x = here(3, 700, 7).double()
    for f in (lambda x: x.sum(0), lambda x: x.var(0), lambda x: nn.functional.batch_norm(x, None, None, training=True)):
        assert f(x.to("far")).cpu().allclose(f(x))
