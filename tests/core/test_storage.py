"""Storages as programs use them: typed and untyped, resized under their tensors; classes of several results."""

import pickle
import warnings

import pytest

import taeda


def test_every_tensor_follows_a_resized_storage():
    t = taeda.arange(4.0)
    view, other, versions = t[1:], t.data, t.data[2:]
    t.untyped_storage().resize_(1 << 20)
    t[2] = 9
    assert view.tolist() == [1, 9, 3] and other.tolist() == [0, 1, 9, 3] and versions.tolist() == [9, 3]
    assert view.data_ptr() == t.data_ptr() + 4 == other.data_ptr() + 4
    t.resize_(1 << 20)
    view.zero_()
    assert t[:4].tolist() == [0, 0, 0, 0]
    t.untyped_storage().resize_(0)
    assert t.untyped_storage().nbytes() == 0


def test_out_keeps_its_storage():
    out = taeda.empty(0)
    window = out.data
    taeda.add(taeda.ones(1000), 1, out=out)
    assert window.untyped_storage().data_ptr() == out.data_ptr()
    with pytest.warns(UserWarning, match="resized"):
        taeda.cat([taeda.ones(2)], out=out)
    assert out.tolist() == [1, 1]


def test_untyped():
    s = taeda.UntypedStorage([1, 2, 3])
    s[1] = 7
    assert s.tolist() == [1, 7, 3] and s[1:].tolist() == [7, 3] and len(s) == 3 and s[-1] == 3
    part = s[1:]
    part.fill_(0)
    assert s.tolist() == [1, 0, 0] and not s.resizable()
    del part
    assert taeda.UntypedStorage(3).copy_(s).tolist() == [1, 0, 0] and not s.is_shared() and s.resizable()
    assert taeda.is_storage(s)


def test_typed():
    x = taeda.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = x.storage()
    assert (s.size(), len(s), s.nbytes(), s[2], s.dtype) == (4, 4, 16, 2.0, taeda.float32)
    assert s.data_ptr() == x.untyped_storage().data_ptr()
    s[1] = 5
    assert x.tolist() == [0, 5, 2, 3] and list(s) == s.tolist() == x.tolist()
    assert taeda.FloatStorage([1, 2]).double().tolist() == [1, 2] and isinstance(s, taeda.FloatStorage)
    assert taeda.tensor([]).set_(s).tolist() == x.tolist()
    assert taeda.FloatTensor(s).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(s)).tolist() == x.tolist()
    with pytest.raises(IndexError):
        s[4]


def test_a_storage_as_data():
    x = taeda.tensor([1.0, 2.0, 0.0, 4.0])
    s = x.untyped_storage()
    assert taeda.tensor(s, dtype=taeda.float32).tolist() == x.tolist()
    shared = taeda.as_tensor(s, dtype=taeda.float32)
    assert shared.data_ptr() == x.data_ptr() and shared.tolist() == x.tolist()
    assert taeda.tensor(s).tolist() == x.view(taeda.int64).tolist() and taeda.tensor(s).dtype is taeda.int64
    assert x.new_tensor(s).tolist() == x.tolist() and taeda.tensor([s])[0].tolist() == list(s)
    assert taeda.asarray(s, dtype=taeda.int16).shape == (8,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        floats, longs = x.storage(), taeda.tensor([1, 2]).storage()
    assert taeda.tensor(floats).tolist() == x.tolist() and taeda.tensor(longs, dtype=taeda.int64).tolist() == [1, 2]
    for call in (taeda.tensor, taeda.as_tensor, taeda.Tensor, taeda.FloatTensor):
        with pytest.raises(RuntimeError, match="Expected a Storage of type"):
            call(longs)
    assert taeda.tensor(taeda.UntypedStorage(0)).dtype is taeda.float32
    assert taeda.tensor(taeda.UntypedStorage(7)).shape == (0,)


def test_results_with_names():
    r = taeda.max(taeda.tensor([[1, 3], [5, 2]]), 0)
    assert repr(r) == "torch.return_types.max(\nvalues=tensor([5, 3]),\nindices=tensor([1, 0]))"
    assert isinstance(r, taeda.return_types.max) and isinstance(r, tuple) and r[0] is r.values
    assert pickle.loads(pickle.dumps(r)).indices.tolist() == [1, 0]
    assert taeda.return_types.sort((1, 2)).values == 1
    with pytest.raises(TypeError):
        taeda.return_types.sort((1, 2, 3))


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_the_size_of_a_typed_storage_counts_its_elements():
    a, b = (taeda.zeros(n).storage().__sizeof__() for n in (10, 110))
    assert b - a == 400
