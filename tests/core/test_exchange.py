"""Data in and out of tensors: what PyTorch does not do the same, lifetimes, pickling and copying."""

import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import taeda
from taeda._core import memory


def test_negative_strides_are_shared():
    a = np.arange(12.0).reshape(3, 4)[::-1, ::-2]
    t = taeda.from_numpy(a)
    assert t.stride() == (-4, -2)
    assert t.tolist() == a.tolist()
    t[0, 0] = 99.0
    assert a[0, 0] == 99.0
    assert np.shares_memory(t.numpy(), a)


def test_lists_of_tensors():
    rows = [taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 4.0])]
    with pytest.raises(ValueError, match="only one element"):
        taeda.tensor(rows)
    assert taeda.tensor([taeda.tensor([1.0]), taeda.tensor(2)]).tolist() == [1.0, 2.0]


def test_memory_lives_as_long_as_it_is_used():
    class Watched(np.ndarray):
        pass

    a = np.arange(4.0).view(Watched)
    gone = weakref.ref(a)
    t = taeda.from_numpy(a)
    view = t[1:]
    del a, t
    gc.collect()
    assert gone() is not None and view.tolist() == [1.0, 2.0, 3.0]
    del view
    gc.collect()
    assert gone() is None
    before = memory.memory_stats()["allocated"]
    n = taeda.ones(1000).numpy()
    assert n.sum() == 1000
    del n
    assert memory.memory_stats()["allocated"] == before


def test_dlpack_capsules_that_nobody_takes_free_their_tensor():
    before = memory.memory_stats()["allocated"]
    for version in (None, (1, 0)):
        capsule = taeda.ones(10_000).__dlpack__(max_version=version)
        assert memory.memory_stats()["allocated"] > before
        del capsule
        assert memory.memory_stats()["allocated"] == before
    t = taeda.ones(10_000)
    back = taeda.from_dlpack(t.__dlpack__())
    del t
    assert back.sum().item() == 10_000
    del back
    assert memory.memory_stats()["allocated"] == before
    assert taeda.ones(2).__dlpack_device__() == (1, 0)
    with pytest.raises(RuntimeError, match="fresh DLPack capsule"):
        capsule = taeda.ones(2).__dlpack__()
        taeda.from_dlpack(capsule)
        taeda.from_dlpack(capsule)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        taeda.ones(2).__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stream": 1}, AssertionError, "stream should be None on cpu, got 1"),
        ({"stream": "a"}, TypeError, "stream must be ``int`` or ``none``, got str"),
        ({"dl_device": 3}, TypeError, "'dl_device' must be tuple of two ints, got 3"),
        ({"dl_device": (1, "0")}, TypeError, "'dl_device' must be tuple of two ints"),
        ({"max_version": "1.0"}, TypeError, "'max_version' must be tuple of two ints, got '1.0'"),
        ({"max_version": (1,)}, TypeError, "'max_version' must be tuple of two ints"),
    ],
)
def test_dlpack_refuses_what_it_would_not_heed(options, error, message):
    with pytest.raises(error, match=message):
        taeda.ones(2).__dlpack__(**options)


def test_dlpack_from_a_producer_that_knows_of_no_copies():
    class Old:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, stream=None):
            return self.x.__dlpack__(stream=stream)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = taeda.ones(3)
    assert taeda.from_dlpack(Old(x)).data_ptr() == taeda.from_dlpack(Old(x), copy=False).data_ptr() == x.data_ptr()
    assert taeda.from_dlpack(Old(x), copy=True).data_ptr() != x.data_ptr()


def test_dlpack_passes_the_wish_for_a_copy_on():
    class Owner:
        def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
            if copy is False:
                raise BufferError("a copy is needed")
            return taeda.ones(3).__dlpack__(max_version=max_version)

    assert taeda.array_api.from_dlpack(Owner()).tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="a copy is needed"):
        taeda.array_api.from_dlpack(Owner(), copy=False)


def test_buffer_protocol():
    t = taeda.arange(6.0).reshape(2, 3)
    view = memoryview(t)
    assert (view.shape, view.format, view.readonly) == ((2, 3), "f", False)
    assert memoryview(t.t()).strides == (4, 12)
    assert bytes(taeda.tensor([1, 2], dtype=taeda.uint8)) == b"\1\2"
    storage = t.untyped_storage()
    with pytest.raises(RuntimeError, match="not resizable"):
        memory._resize(storage, 100_000)
    view.release()
    memory._resize(storage, 100_000)
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(t.bfloat16())
    with pytest.raises(BufferError, match="requires grad"):
        memoryview(taeda.ones(2, requires_grad=True))


def test_numpy_and_array():
    t = taeda.arange(4.0)
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    a = np.array(t)
    a[0] = 5.0
    assert t[0].item() == 0.0
    assert np.shares_memory(np.asarray(t), t.numpy())
    x = taeda.ones(2, requires_grad=True)
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    assert np.sin(t).dtype is taeda.float32
    assert (np.ones(4) + t).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_asarray_copies_only_where_it_must():
    t = taeda.ones(3)
    assert taeda.asarray(t) is t
    assert taeda.asarray(t, copy=True).data_ptr() != t.data_ptr()
    with pytest.raises(ValueError, match="copy=None"):
        taeda.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="copy=None"):
        taeda.asarray(t, dtype=taeda.float64, copy=False)
    a = np.arange(3)
    assert np.shares_memory(taeda.asarray(a).numpy(), a)


def test_frombuffer_shares():
    data = bytearray(8)
    t = taeda.frombuffer(data, dtype=taeda.int16, count=2, offset=2)
    t[0] = 258
    assert data[2:4] == b"\x02\x01"
    with pytest.warns(UserWarning, match="not writable"):
        taeda.frombuffer(bytes(4), dtype=taeda.int16)
    with pytest.warns(UserWarning, match="not writable"):
        a = np.zeros(3)
        a.flags.writeable = False
        taeda.from_numpy(a)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickle(protocol):
    x = taeda.arange(6.0).reshape(2, 3)
    x.note = "kept"
    p = taeda.nn.Parameter(taeda.ones(2))
    back, row, parameter, grad = pickle.loads(pickle.dumps([x, x[1], p, taeda.ones(1, requires_grad=True)], protocol))
    assert back.tolist() == x.tolist() and back.note == "kept"
    back[1, 0] = 50.0
    assert row[0].item() == 50.0
    assert type(parameter) is taeda.nn.Parameter and parameter.requires_grad
    assert grad.requires_grad
    assert pickle.loads(pickle.dumps(x.t())).stride() == (1, 3)


def test_deepcopy_of_a_tensor_and_its_storages_keeps_that_they_are_one():
    x = taeda.ones(3)
    untyped, typed, y, part, other = copy.deepcopy([x.untyped_storage(), x.storage(), x, x[1:], x.storage()])
    y.add_(1)
    assert list(typed) == list(other) == [2, 2, 2] and part.tolist() == [2, 2]
    assert untyped.data_ptr() == typed.data_ptr() == y.data_ptr() and x.tolist() == [1, 1, 1]


def test_copies():
    x = taeda.arange(6.0).reshape(2, 3).requires_grad_()
    x.sum().backward()
    x.note = [1]
    y, row = copy.deepcopy([x, x.detach()[1]])
    assert y.data_ptr() != x.data_ptr() and y.requires_grad and y.grad.tolist() == x.grad.tolist()
    assert y.note == [1] and y.note is not x.note
    with taeda.no_grad():
        y[1, 0] = 50.0
    assert row[0].item() == 50.0
    assert copy.copy(x).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_a_list_that_shrinks_while_it_is_read():
    items: list = []

    class Shrinks:
        def __float__(self):
            del items[2:]
            return 1.0

    items += [Shrinks(), 1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="changed its length"):
        taeda.tensor(items, dtype=taeda.float32)


def test_copies_keep_the_order_of_dimensions():
    """A copy of an array or a tensor lies in memory as it does; lists have no order."""
    a = np.arange(24.0).reshape(2, 3, 4)
    for array in (a.T, a.transpose(2, 0, 1), a[:, ::2].T, a[::-1], a[0].T.astype("f"), a[:, :1], a[:0]):
        x = taeda.from_numpy(array)
        want = taeda.empty_like(x).stride()
        for made in (taeda.tensor(array), taeda.tensor(array, dtype=taeda.float16), taeda.asarray(array, copy=True),
                     taeda.as_tensor(array, dtype=taeda.int64), taeda.ones(1).new_tensor(array)):  # fmt: skip
            assert made.stride() == want and made.tolist() == array.tolist()
    x = taeda.arange(6.0).view(2, 3).t()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert taeda.tensor(x).stride() == (1, 3) and taeda.tensor(x, dtype=taeda.int64).stride() == (1, 3)
    assert taeda.tensor(a.T.tolist()).is_contiguous()
    y = taeda.ones(2, 3).t()
    assert y.resize(2, 3).stride() == y.resize_as(taeda.ones(2, 3)).stride() == (3, 1)
