"""What shows a tensor's memory, such as a NumPy array, keeps it: whatever becomes of the tensor."""

import copy
import gc

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda._core import memory

SHOWN = {
    "numpy": lambda t: t.numpy(),
    "detached": lambda t: t.detach().numpy(),
    "data": lambda t: t.data.numpy(),
    "data of data": lambda t: t.data.data.numpy(),
    "asarray": lambda t: np.asarray(t.detach()),
    "array": lambda t: np.array(t.detach(), copy=False),
    "frombuffer": lambda t: np.frombuffer(t.detach(), np.float32),
    "memoryview": lambda t: np.asarray(memoryview(t.detach())),
    "view": lambda t: t.detach().view(2, 4).t().numpy().T.reshape(-1),
    "dlpack": lambda t: np.from_dlpack(t.detach()),
    "storage": lambda t: np.frombuffer(t.untyped_storage(), np.float32),
    "slice of the storage": lambda t: np.frombuffer(t.untyped_storage()[0:32], np.float32),
    "readable": lambda t: np.frombuffer(t.untyped_storage()._readable(), np.float32),
    "ndarray": lambda t: np.ndarray(8, np.float32, buffer=t),
    "ndarray of the storage": lambda t: np.ndarray(8, np.float32, buffer=t.untyped_storage()),
}


def _swap(t):
    other = taeda.zeros(3)
    taeda.utils.swap_tensors(t, other)


def _cast(t):
    module = nn.Module()
    module.register_buffer("t", t)
    module.double()


def _vector(t):
    nn.utils.vector_to_parameters(taeda.zeros(8), [t])


def _resize_storage(t):
    t.untyped_storage().resize_(1 << 20)


def _send(t):
    from multiprocessing.reduction import ForkingPickler

    ForkingPickler.dumps(t)


#: Whether PyTorch refuses it while an array shows the memory, and what is done.
CHANGES = {
    "data": (False, lambda t: setattr(t, "data", taeda.zeros(3))),
    "set_": (False, lambda t: t.set_(taeda.zeros(3))),
    "empty set_": (False, lambda t: t.set_()),
    "swap": (False, _swap),
    "double": (False, _cast),
    "vector_to_parameters": (False, _vector),
    "share": (False, lambda t: t.share_memory_()),
    "share storage": (False, lambda t: t.untyped_storage().share_memory_()),
    "send": (False, _send),
    "resize_": (True, lambda t: t.resize_(1 << 20)),
    "resize_as_": (True, lambda t: t.resize_as_(taeda.zeros(1 << 20))),
    "storage": (True, _resize_storage),
    "out": (True, lambda t: taeda.add(taeda.zeros(1000), 0, out=t)),
}


@pytest.mark.filterwarnings("ignore:An output with one or more")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shown", SHOWN)
def test_memory_stays_while_it_is_shown(shown, change):
    refused, function = CHANGES[change]
    t = taeda.arange(8.0)
    array = SHOWN[shown](t)
    if refused:
        with pytest.raises(RuntimeError, match="not resizable"):
            function(t)
        assert t.tolist() == list(range(8))
    elif shown == "ndarray" and change == "swap":
        with pytest.raises(RuntimeError, match="weakref"):  # such an array keeps the tensor itself
            function(t)
    else:
        function(t)
    del t
    gc.collect()
    others = [taeda.full((8,), 7.0) for _ in range(64)]
    assert array.tolist() == list(range(8))
    if array.flags.writeable:
        array[:] = -1.0
        assert all(x.tolist() == [7.0] * 8 for x in others)


def test_memory_is_given_back_when_nothing_shows_it():
    t = taeda.ones(8)
    array, view = t.numpy(), memoryview(t)
    assert not t.untyped_storage().resizable()
    del array, view
    assert t.untyped_storage().resizable()
    t.resize_(1 << 16)
    before = memory.memory_stats()["allocated"]
    t, array = taeda.ones(1 << 16), None
    for _ in range(3):
        array = t.numpy()
        t.data = taeda.ones(1 << 16)
        array = np.from_dlpack(t)
        t.share_memory_()
        del array
        t = taeda.ones(1 << 16)
    del t
    assert memory.memory_stats()["allocated"] <= before


def test_arrays_of_one_tensor_follow_its_storage_and_not_each_other():
    t = taeda.arange(4.0)
    first = t.numpy()
    t.data = taeda.zeros(4)
    second = t.numpy()
    t += 1
    assert first.tolist() == [0, 1, 2, 3] and second.tolist() == [1, 1, 1, 1]
    del second
    t.resize_(1 << 16)  # what `first` shows is no longer its memory


def test_data_and_its_storage_follow_a_resized_tensor():
    t = taeda.arange(4.0)
    other = t.data.data
    storage = t.data.untyped_storage()
    assert storage is t.untyped_storage() and t.data.is_set_to(t)
    gc.freeze()
    try:
        t.resize_(1 << 20)
    finally:
        gc.unfreeze()
    t[0] = 9
    assert other.tolist() == [9, 1, 2, 3] and storage[:4].tolist() == t.untyped_storage()[:4].tolist()


def test_a_part_of_a_storage_keeps_it():
    storage = taeda.UntypedStorage(list(range(64)))
    part = storage[8:16][2:4]
    with pytest.raises(RuntimeError, match="not resizable"):
        storage.resize_(1 << 20)
    storage.share_memory_()
    assert part.tolist() == [10, 11] and copy.deepcopy(part).tolist() == [10, 11]
    assert taeda.UntypedStorage(4).share_memory_()[1:].is_shared()
