"""Tests with a CUDA device at hand: TAEDA_CUDA names it. ``test_cuda.py`` runs them on the emulated one, in a process of
its own, since a process has a device or has none."""

import copy
import importlib
import io
import pickle
import threading

import numpy as np
import pytest

import taeda
from taeda import cuda, nn
from taeda.utils.checkpoint import checkpoint

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")


def there(*sizes, seed=0):
    return taeda.randn(*(sizes or (3, 4)), generator=taeda.Generator().manual_seed(seed)).cuda()


# ---- devices ---------------------------------------------------------------------------------------------------------


def test_the_device_says_what_it_is():
    found = cuda.get_device_properties()
    assert cuda.device_count() >= 1 and cuda.current_device() == 0 and cuda.is_initialized()
    assert cuda.get_device_name() == cuda.get_device_name("cuda:0") == found.name != ""
    assert cuda.get_device_capability() == (found.major, found.minor) >= (8, 0)
    assert found.total_memory == cuda.mem_get_info()[1] and found.warp_size == 32 and found.multi_processor_count > 0
    assert found.name in repr(found) and cuda.is_bf16_supported() and cuda.get_arch_list() == ["compute_80"]
    assert taeda.accelerator.is_available() and taeda.accelerator.current_accelerator() == taeda.device("cuda")
    assert taeda.device(0) == taeda.device("cuda", 0)


def test_tensors_go_there_and_back():
    a = taeda.arange(12.0).reshape(3, 4).t()
    for x in (a.cuda(), a.to("cuda"), a.to("cuda:0"), a.to(taeda.device("cuda", 0)), a.cuda(0), a.to(0)):
        assert (x.device, x.is_cuda, x.is_cpu, x.get_device(), x.stride()) == (
            taeda.device("cuda:0"), True, False, 0, a.stride(),
        )  # fmt: skip
        assert x.cpu().equal(a) and x.tolist() == a.tolist() and x.cuda() is x
    assert a.cuda().type() == "torch.cuda.FloatTensor" and a.type("torch.cuda.IntTensor").cpu().equal(a.int())
    assert isinstance(a.cuda(), cuda.FloatTensor) and not isinstance(a, cuda.FloatTensor)
    assert np.array_equal(a.cuda().numpy(force=True), a.numpy())
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        a.cuda().numpy()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        a.to(f"cuda:{cuda.device_count()}")
    with taeda.device("cuda"):
        assert taeda.zeros(2).is_cuda
    assert nn.Linear(2, 2).cuda().weight.is_cuda and copy.deepcopy(a.cuda()).cpu().equal(a)


def test_an_index_is_a_device():
    first = taeda.device("cuda:0")
    made = [
        taeda.ones(2, device=0), taeda.arange(3, device=0), taeda.full((2,), 1.0, device=0), taeda.tensor([1.0], device=0),
        taeda.zeros_like(taeda.ones(2), device=0), taeda.ones(2).new_zeros(2, device=0), taeda.randn(2, device=0),
        taeda.ones(2).to(0), taeda.ones(2).to(device=0), taeda.ones(2).to(0, taeda.float16), taeda.ones(2).cuda(0),
        taeda.ones(2).cuda(device=0), nn.Linear(2, 2, device=0).weight, nn.Linear(2, 2).to(0).weight,
        nn.Linear(2, 2).cuda(0).weight, nn.Linear(2, 2, device="meta").to_empty(device=0).weight,
    ]  # fmt: skip
    assert all(t.device == first for t in made) and made[0].tolist() == [1.0, 1.0]
    assert taeda.ones_like(made[0], device="cpu").is_cpu
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        taeda.ones(2, device=cuda.device_count())
    with pytest.raises(TypeError, match="not bool"):
        taeda.ones(2, device=True)


def test_tensors_of_two_devices_are_named():
    meta = taeda.ones(2, device="meta")
    for move in (lambda: there(2).copy_(meta), lambda: meta.cuda(), lambda: meta.to(0), lambda: meta.cpu()):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            move()
    assert meta.copy_(there(2)) is meta
    with pytest.raises(RuntimeError, match=r"add\(\): Expected all tensors to be on the same device.* cuda:0 and meta"):
        there(2) + meta
    if cuda.device_count() > 1:
        other = taeda.full((3,), 2.0, device=1)
        x = taeda.ones(3, device=0)
        assert x.copy_(other).device.index == 0 and x.tolist() == [2.0, 2.0, 2.0] and other.to(0).equal(x)
        x[0] = other[0] * 4
        assert x.tolist() == [8.0, 2.0, 2.0]
        with pytest.raises(RuntimeError, match=r"mul\(\): Expected all tensors to be on the same device"):
            x * other


def test_files_keep_the_device():
    file = io.BytesIO()
    taeda.save({"x": there()}, file)
    file.seek(0)
    assert taeda.load(file)["x"].is_cuda
    file.seek(0)
    assert taeda.load(file, map_location="cpu")["x"].equal(there().cpu())


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("location, where", [
    ("cuda", "cuda:0"), (taeda.device("cuda", 1), "cuda:1"), ({"cpu": "cuda:1"}, "cuda:1"),
    (lambda storage, _: storage.cuda(1), "cuda:1"), (lambda storage, _: None, "cpu"),
])  # fmt: skip
def test_files_are_read_onto_a_device(zipped, location, where):
    x, file = there().cpu(), io.BytesIO()
    made = {"x": x, "t": x.t(), "f": x.bfloat16(), "p": taeda.nn.Parameter(x)}
    made |= {"storage": x.clone().untyped_storage(), "typed": x.clone()._typed_storage()}
    taeda.save(made, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    back = taeda.load(file, map_location=location)
    assert {str(y.device) for y in back.values()} == {where}
    for name in "xtfp":
        assert back[name].cpu().equal(made[name])
    assert bytes(back["storage"].cpu()) == bytes(made["storage"])
    assert back["typed"].cpu().tolist() == x.flatten().tolist()


def test_storages_go_to_a_device_and_back():
    x = taeda.arange(6.0)
    for one in (x.untyped_storage(), x._typed_storage()):
        far, second = one.cuda(), one.to(device="cuda:1")
        assert str(far.device) == "cuda:0" and far.cuda() is far and type(far) is type(one) and one.cpu() is one
        assert str(second.device) == "cuda:1" and second.cuda(0).cpu().tolist() == one.tolist()
        assert far.cpu().tolist() == one.tolist() and far.to(device="meta").nbytes() == 24
        other = (x + 1)._typed_storage() if hasattr(one, "dtype") else (x + 1).untyped_storage()
        assert far.copy_(other) is far and far.cpu().tolist() == other.tolist()
        assert one.copy_(far) is one and x.equal(taeda.arange(6.0) + 1)
        x.sub_(1)
        with pytest.raises(RuntimeError, match="size mismatch"):
            far.copy_(taeda.ones(3)._typed_storage() if hasattr(one, "dtype") else type(one)(3))


def test_a_device_is_chosen_for_a_block_and_a_thread():
    with cuda.device(0), cuda.device(-1), cuda.device(None):
        assert cuda.current_device() == 0
    with cuda.device_of(there()):
        assert cuda.current_device() == 0
    with pytest.raises(ValueError, match="Expected a cuda device"):
        cuda.device("cpu")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        cuda.set_device(cuda.device_count())
    seen = []
    thread = threading.Thread(target=lambda: seen.append((cuda.current_device(), (there() + 1).cpu())))
    thread.start()
    thread.join()
    assert seen[0][0] == 0 and seen[0][1].equal((there() + 1).cpu())


def test_seeds_give_the_same_numbers_again():
    cuda.manual_seed_all(3)
    a = taeda.randn(5, device="cuda")
    state = cuda.get_rng_state()
    b = taeda.randn(5, device="cuda")
    cuda.set_rng_state(state)
    assert taeda.randn(5, device="cuda").equal(b)
    cuda.manual_seed(3)
    assert taeda.randn(5, device="cuda").equal(a)


def philox(counter, key):
    """Salmon et al. 2011, in Python's integers."""
    c, k = list(counter), list(key)
    for turn in range(10):
        if turn:
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [q >> 32 ^ c[1] ^ k[0], q % 2**32, p >> 32 ^ c[3] ^ k[1], p % 2**32]
    return c


def test_numbers_are_drawn_by_counters():
    assert philox([0] * 4, [0, 0]) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # as published
    g = taeda.Generator("cuda").manual_seed(5 + (9 << 32))
    for call in (0, 4):
        assert g.get_offset() == call
        drawn = taeda.rand(10, device="cuda", generator=g).tolist()
        assert drawn == [(philox([i // 4, 0, call, 0], [5, 9])[i % 4] & 0xFFFFFF) / 2**24 for i in range(10)]
    kept = nn.functional.dropout(taeda.ones(1000, device="cuda"), 0.3).ne(0).float().mean().item()
    assert abs(kept - 0.7) < 0.1
    x = taeda.randn(4000, device="cuda").cpu()
    assert abs(x.mean()) < 0.1 and abs(x.std() - 1) < 0.1 and 0.64 < x.abs().lt(1).float().mean() < 0.73
    with pytest.raises(RuntimeError, match="Expected a 'cuda:0' device type for generator but found 'cpu'"):
        taeda.rand(2, device="cuda", generator=taeda.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda:0'"):
        taeda.rand(2, generator=g)


def test_states_of_generators_are_kept_and_put_back():
    draw = lambda: taeda.rand(5, device="cuda")  # noqa: E731
    with taeda.random.fork_rng():
        a = draw()
    assert draw().equal(a)
    assert cuda.get_rng_state().numel() == 16 and cuda.initial_seed() == cuda.default_generators[0].initial_seed()
    taeda.manual_seed(11)
    first = draw(), taeda.rand(2)
    taeda.manual_seed(11)
    assert draw().equal(first[0]) and taeda.rand(2).equal(first[1])
    g = taeda.Generator("cuda").manual_seed(3)
    other = pickle.loads(pickle.dumps(g))
    assert taeda.randperm(9, device="cuda", generator=g).equal(taeda.randperm(9, device="cuda", generator=other))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_function_drops_the_same_elements_again(reentrant):
    def function(x):
        return nn.functional.dropout(x * 2, 0.5) * x

    results = []
    for run in (function, lambda x: checkpoint(function, x, use_reentrant=reentrant)):
        x = there(50).requires_grad_()
        taeda.manual_seed(7)
        y = run(x)
        taeda.rand(3, device="cuda")
        y.sum().backward()
        results.append((y, x.grad))
    assert all(a.equal(b) for a, b in zip(*results, strict=True))


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_memory_is_counted_and_used_again():
    cuda.empty_cache()
    before = cuda.memory_allocated()
    x = taeda.empty(1000, device="cuda")
    assert cuda.memory_allocated() - before == 4096  # rounded to 512 bytes
    place = x.data_ptr()
    del x
    assert cuda.memory_allocated() == before
    assert taeda.empty(1000, device="cuda").data_ptr() == place
    cuda.reset_peak_memory_stats()
    y = taeda.empty(1 << 20, device="cuda")
    assert cuda.max_memory_allocated() - before == 4 << 20 and cuda.memory_reserved() >= cuda.memory_allocated()
    del y
    assert cuda.max_memory_allocated() - before == 4 << 20
    stats = cuda.memory_stats()
    assert stats["allocation.all.allocated"] - stats["allocation.all.freed"] == stats["allocation.all.current"]
    assert cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == before
    assert "CUDA memory summary" in cuda.memory_summary() and str(len(cuda.memory_summary().splitlines())) != "0"
    cuda.empty_cache()
    assert cuda.memory_stats()["segment.large_pool.current"] == stats["segment.large_pool.current"] - 1


def test_blocks_are_split_and_joined():
    cuda.empty_cache()
    parts = [taeda.empty(3 << 18, device="cuda") for _ in range(4)]  # 3 MiB each, of one segment of 20 MiB
    assert parts[1].data_ptr() - parts[0].data_ptr() == 3 << 20
    first = parts[0].data_ptr()
    reserved = cuda.memory_reserved()
    del parts
    whole = taeda.empty(9 << 18, device="cuda")  # 9 MiB, where three were
    assert whole.data_ptr() == first and cuda.memory_reserved() == reserved
    blocks = [b for s in cuda.memory_snapshot() for b in s["blocks"] if b["address"] == first]
    assert [(b["size"], b["state"]) for b in blocks] == [(9 << 20, "active_allocated")]


def test_out_of_memory_is_an_error_and_leaves_the_program_usable():
    x = there()
    with pytest.raises(cuda.OutOfMemoryError, match=r"CUDA out of memory\. Tried to allocate"):
        taeda.empty(1 << 50, device="cuda")
    assert cuda.memory_stats()["num_ooms"] >= 1 and (x + x).cpu().equal(x.cpu() * 2)
    with pytest.raises(ValueError, match="Allowed range"):
        cuda.set_per_process_memory_fraction(2.0)
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + (4 << 20)) / cuda.mem_get_info()[1])
    try:
        with pytest.raises(cuda.OutOfMemoryError):
            taeda.empty(8 << 20, device="cuda")
        with pytest.raises(RuntimeError):  # an op whose result there is no room for
            x.reshape(12, 1).expand(12, 1 << 20) * 2
        assert (x + x).cpu().equal(x.cpu() * 2)
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert taeda.empty(8 << 20, device="cuda").is_cuda


def test_pinned_memory_is_copied_without_waiting():
    a = taeda.randn(1000)
    p = a.pin_memory()
    assert p.is_pinned() and not a.is_pinned() and p.equal(a) and p.pin_memory() is p
    x = p.to("cuda", non_blocking=True)
    y = p.cuda(non_blocking=True)
    assert x.cpu().equal(a) and y.cpu().equal(a)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.pin_memory()
    for made in (taeda.ones(3, pin_memory=True), taeda.tensor([1.0], pin_memory=True), taeda.randn(3, pin_memory=True),
                 taeda.empty_like(a, pin_memory=True), a.pin_memory("cuda"), a.pin_memory(device="cuda")):  # fmt: skip
        assert made.is_pinned() and made.is_pinned(device="cuda") and made.cuda().cpu().equal(made)
    assert taeda.ones(2, pin_memory=True, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        taeda.ones(3, device="cuda", pin_memory=True)
    loader = taeda.utils.data.DataLoader([(a, 1), (a, 2)], batch_size=2, pin_memory=True)
    ((batch, labels),) = loader
    assert batch.is_pinned() and labels.is_pinned() and batch.cuda().cpu().equal(batch)


# ---- streams ---------------------------------------------------------------------------------------------------------


def test_streams_wait_for_each_other():
    s = cuda.Stream()
    assert s != cuda.default_stream() and cuda.current_stream() == cuda.default_stream()
    x = there(64)
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s):
        assert cuda.current_stream() == s
        y = x * 2
        done = s.record_event()
    assert cuda.current_stream() == cuda.default_stream()
    cuda.current_stream().wait_event(done)
    z = y + 1
    assert z.cpu().equal(x.cpu() * 2 + 1)
    s.synchronize()
    assert s.query() and done.query()
    cuda.synchronize()
    with s:
        assert cuda.current_stream() == s


def test_memory_belongs_to_its_stream():
    s = cuda.Stream()
    with cuda.stream(s):
        x = taeda.empty(1000, device="cuda")
    place = x.data_ptr()
    del x
    assert taeda.empty(1000, device="cuda").data_ptr() != place
    with cuda.stream(s):
        assert taeda.empty(1000, device="cuda").data_ptr() == place


def test_memory_in_use_on_another_stream_is_not_given_out():
    s = cuda.Stream()
    x = taeda.ones(1000, device="cuda")
    place = x.data_ptr()
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s):
        y = x * 3
    x.record_stream(s)
    del x
    fresh = taeda.full((1000,), 7.0, device="cuda")
    s.synchronize()
    assert y.cpu().equal(taeda.full((1000,), 3.0)) and fresh.cpu().equal(taeda.full((1000,), 7.0))
    del fresh
    cuda.synchronize()
    held = [taeda.empty(1000, device="cuda") for _ in range(8)]
    assert place in [t.data_ptr() for t in held]


def test_events_measure_time():
    first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    first.record()
    there() + 1
    last.record()
    last.synchronize()
    assert first.elapsed_time(last) >= 0 and first.query()
    with pytest.raises(ValueError, match="enable_timing"):
        cuda.Event().elapsed_time(last)


# ---- kernels ---------------------------------------------------------------------------------------------------------


def test_elements_of_any_strides_are_one_launch_each():
    from taeda.cuda._native import count_launches

    a = taeda.randn(3, 4, 5, 6)
    x = a.cuda()
    views = [
        lambda t: t,
        lambda t: t.permute(3, 1, 0, 2),
        lambda t: t[::2, 1:, :, ::3],
        lambda t: t[:1].expand(3, 4, 5, 6),
    ]
    for view in views:
        before = count_launches()
        made = view(x) * 2 + view(x)
        assert count_launches() - before == 2
        assert made.cpu().equal(view(a) * 2 + view(a))


def test_what_goes_by_way_of_the_host_comes_back():
    a = taeda.randn(4, 4)
    assert taeda.linalg.inv(a.cuda()).is_cuda and taeda.linalg.inv(a.cuda()).cpu().equal(taeda.linalg.inv(a))
    assert taeda.fft.fft(a.cuda()).cpu().equal(taeda.fft.fft(a))


def test_what_is_not_there_yet_says_so():
    with pytest.raises(NotImplementedError, match="not there yet"):
        cuda.caching_allocator_disabled()
    with pytest.raises(NotImplementedError):
        there().share_memory_()


def test_amp_trains_on_the_device():
    taeda.manual_seed(0)
    model, x = nn.Linear(8, 3).cuda(), taeda.randn(16, 8, device="cuda")
    scaler, optimizer = taeda.amp.GradScaler("cuda"), taeda.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(5):
        with taeda.autocast("cuda"):
            y = model(x)
            loss = y.float().square().mean()
        assert y.dtype == taeda.float16
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and scaler.is_enabled()


# ---- other libraries -------------------------------------------------------------------------------------------------


class Other:
    """An array of another library over the memory of a tensor."""

    def __init__(self, t, by):
        self.t, self.asked = t, []
        if by == "interface":
            self.__cuda_array_interface__ = t.__cuda_array_interface__ | {"version": 3, "stream": 1}
        else:
            self.__dlpack__ = lambda **how: (self.asked.append(how), t.__dlpack__(**how))[1]
            self.__dlpack_device__ = t.__dlpack_device__


def test_memory_is_shared_with_other_libraries():
    x = taeda.arange(12.0, device="cuda").reshape(3, 4)
    shown = x.t().__cuda_array_interface__
    assert (shown["typestr"], shown["shape"], shown["strides"]) == ("<f4", (4, 3), (4, 16))
    assert shown["data"] == (x.data_ptr(), False) and x.__cuda_array_interface__["strides"] is None
    assert not hasattr(x.cpu(), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="requires grad"):
        x.detach().requires_grad_().__cuda_array_interface__  # noqa: B018
    for y in (taeda.as_tensor(Other(x.t(), "interface")), taeda.from_dlpack(Other(x.t(), "dlpack"))):
        assert (y.data_ptr(), y.device, y.stride()) == (x.data_ptr(), x.device, (1, 4)) and y.equal(x.t())
    copied = taeda.tensor(Other(x, "interface"), dtype=taeda.float64)
    assert copied.is_cuda and copied.dtype == taeda.float64 and copied.tolist() == x.tolist()
    assert taeda.as_tensor(Other(x, "interface"), device="cpu").tolist() == x.tolist()
    assert x.__dlpack_device__() == (2, 0) and np.array_equal(np.from_dlpack(Other(x.cpu(), "dlpack")), x.cpu())
    stream, other = cuda.Stream(), Other(x, "dlpack")
    with cuda.stream(stream):
        z = taeda.from_dlpack(other) + 1
    assert other.asked[-1]["stream"] == stream.cuda_stream
    stream.synchronize()
    assert z.tolist() == (x + 1).tolist()
    with pytest.raises(BufferError, match="stream 0"):
        x.__dlpack__(stream=0)


def test_all_names_are_there():
    real = pytest.importorskip("torch").cuda
    assert [n for n in real.__all__ if not hasattr(cuda, n)] == ["sparse"]
    for module in ("amp", "comm", "graphs", "memory", "nccl", "nvtx", "profiler", "random", "streams", "tunable"):
        names = getattr(importlib.import_module(f"torch.cuda.{module}"), "__all__", ())
        ours = importlib.import_module(f"taeda.cuda.{module}")
        lacking = {n for n in names if not hasattr(ours, n)}
        assert lacking <= {"amp_definitely_not_available", "list_gpu_processes", "torch"}, module
    for name in ("utilization", "temperature", "power_draw", "clock_rate", "memory_usage", "list_gpu_processes"):
        with pytest.raises(ModuleNotFoundError, match="management library"):
            getattr(cuda, name)()
    for name in ("cudart", "current_solver_handle", "FloatStorage", "GreenContext", "change_current_allocator"):
        with pytest.raises(NotImplementedError, match="not there yet"):
            getattr(cuda, name)()
    with pytest.raises(cuda.AcceleratorError):
        cuda.check_error(700)
    before = cuda.host_memory_stats()["allocated_bytes.current"]
    pinned = taeda.ones(256, pin_memory=True)
    assert cuda.host_memory_stats_as_nested_dict()["allocated_bytes"]["current"] == before + pinned.nbytes


# ---- several GPUs ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(cuda.device_count() < 2, reason="there is one GPU")
def test_a_module_runs_on_two_gpus():
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).cuda()
    alone = copy.deepcopy(model)
    both = nn.DataParallel(model)
    x = there(8, 4)
    y, z = both(x), taeda.cat([alone(part) for part in x.chunk(2)])
    y.square().sum().backward()
    z.square().sum().backward()
    assert both.device_ids == list(range(cuda.device_count())) and y.device == x.device
    taeda.testing.assert_close(y, z)
    for p, q in zip(model.parameters(), alone.parameters(), strict=True):
        taeda.testing.assert_close(p.grad, q.grad)
    assert model[1].num_batches_tracked == 1
    traced = taeda.fx.symbolic_trace(model.eval())
    taeda.testing.assert_close(nn.DataParallel(traced)(x), model(x))
    with pytest.raises(RuntimeError, match="uninitialized"):
        nn.DataParallel(nn.LazyLinear(3).cuda())(x)
    parts = cuda.comm.scatter(x, [0, 1])
    assert [t.device.index for t in parts] == [0, 1] and cuda.comm.gather(parts).equal(x)
    assert cuda.comm.reduce_add(cuda.comm.broadcast(x, [0, 1])).equal(x + x)


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.int32, taeda.int8])
def test_products_of_integers(dtype):
    x = (taeda.arange(40 * 70) * 7919).reshape(40, 70).to(dtype)
    for f in (lambda x: x @ x.t(), lambda x: x[:, :64] @ x.flip(1).t()[:64], lambda x: x[:3] @ x.t()):
        assert f(x.cuda()).cpu().equal(f(x))


def test_storages_are_read_and_written_there():
    x = taeda.ones(3, dtype=taeda.int16, device="cuda")
    storage = x.untyped_storage()
    assert storage[0] == 1 and storage.tolist() == list(storage) == [1, 0] * 3
    part = storage[2:4]
    assert part.device == storage.device and part.fill_(2) is part
    assert x.tolist() == [1, 514, 1]
    storage[5], storage[0:2] = 1, 0
    assert x.tolist() == [0, 514, 257]
    storage.fill_(-1)
    assert x.tolist() == [-1, -1, -1]
    for call in (storage.share_memory_, x.share_memory_, taeda.nn.Linear(2, 2).cuda().share_memory):
        with pytest.raises(NotImplementedError, match=r"the memory is on cuda:0; copy it with .cpu\(\) first"):
            call()


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "RMSprop", "Adagrad"])
def test_a_step_of_an_optimiser_is_one_launch_for_all_parameters(name):
    from taeda.cuda._native import count_launches

    params = [taeda.ones(5 + i % 7, 3, device="cuda").requires_grad_() for i in range(100)]
    for p in params:
        p.grad = taeda.ones_like(p)
    optimizer = getattr(taeda.optim, name)(params, lr=0.1)
    optimizer.step()
    before = count_launches()
    optimizer.step()
    assert count_launches() - before == 1
