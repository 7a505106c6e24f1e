"""Files written by PyTorch are read here and the reverse; safetensors against its own library."""

import copy
import enum
import functools
import io
import pickle
import re
import zipfile
from collections import Counter, OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import taeda
from taeda import io as taeda_io

torch = pytest.importorskip("torch")

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip


def plain(x):
    """Comparable between the two libraries."""
    if isinstance(x, (taeda.Tensor, torch.Tensor)) and str(x.layout).split(".")[1] != "strided":
        return (
            str(x.layout).split(".")[1],
            plain(x.to_dense()),
            x._nnz(),
            str(x.layout)[-3:] == "coo" and x.is_coalesced(),
        )
    if isinstance(x, (taeda.Tensor, torch.Tensor)):
        kind = "Parameter" if type(x).__name__ == "Parameter" else "Tensor"
        return kind, str(x.dtype).split(".")[1], tuple(x.shape), tuple(x.stride()), x.requires_grad, x.tolist()
    if isinstance(x, (taeda.dtype, torch.dtype)):
        return "dtype", str(x).split(".")[1]
    if isinstance(x, (taeda.device, torch.device)):
        return "device", str(x)
    if isinstance(x, dict):
        return type(x).__name__, {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [plain(v) for v in x]
    return type(x).__name__, x


def objects(f):
    x = f.tensor(np.arange(24.0).reshape(2, 3, 4), dtype=f.float32)
    shared = [1, 2]
    yield "dtypes", {name: f.tensor([0, 1, 3]).to(getattr(f, name)) for name in DTYPES}
    yield "views", [x, x[1], x.transpose(0, 2), x[:, 1:, ::2], x[0, 0, 0], x[:, :0], x.expand(3, 2, 3, 4)]
    yield "state dict", OrderedDict(weight=x, bias=x[0, 0])
    yield "parameter", {"p": f.nn.Parameter(f.tensor([1.0, 2])), "q": f.nn.Parameter(f.tensor([1.0]), False)}
    yield "requires grad", f.tensor([1.0], requires_grad=True)
    twice = f.sparse_coo_tensor(f.tensor([[0, 2, 0], [1, 0, 1]]), f.tensor([1.0, 2.0, 3.0]), (3, 4))
    yield "sparse", [twice, twice.coalesce(), twice.to_sparse_csr(), twice.to_sparse_csc()]
    yield (
        "python",
        {
            "none": None,
            "bools": (True, False),
            "ints": [0, 255, 256, -1, 2**31, -(2**31), 2**63, -(2**70), 10**30],
            "floats": [0.0, -1.5, 1e300, float("inf")],
            "text": ["", "ä€😀", "a" * 300],
            "bytes": [b"", b"ab\xff", bytearray(b"xy")],
            "complex": 1 + 2j,
            "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
            "nested": {1: {2.5: [{"a": ()}]}, (1, "b"): None},
            "set": {1, 2},
            "shared": [shared, shared],
            "dtype": f.float32,
            "device": f.device("cpu"),
            "size": f.Size([1, 2]),
            "empty": [[], {}, OrderedDict()],
            "many": list(range(1000)),
            "strings": [f"key{i}" for i in range(400)],
        },
    )
    yield "optimiser", {"state": {0: {"step": f.tensor(3.0), "m": x}}, "param_groups": [{"lr": 0.1, "params": [0]}]}


NAMES = [name for name, _ in objects(torch)]


@pytest.mark.parametrize("name", NAMES)
def test_both_ways(name, tmp_path):
    ours, theirs = dict(objects(taeda))[name], dict(objects(torch))[name]
    torch.save(theirs, tmp_path / "theirs.pt")
    taeda_io.save(ours, tmp_path / "ours.pt")
    assert plain(taeda_io.load(tmp_path / "theirs.pt")) == plain(theirs)
    assert plain(taeda_io.load(tmp_path / "theirs.pt", mmap=True)) == plain(theirs)
    assert plain(taeda_io.load(tmp_path / "ours.pt")) == plain(theirs)
    assert plain(torch.load(tmp_path / "ours.pt")) == plain(theirs)
    assert plain(torch.load(tmp_path / "ours.pt", mmap=True)) == plain(theirs)
    buffer = io.BytesIO()
    taeda_io.save(ours, buffer)
    buffer.seek(0)
    assert plain(torch.load(buffer)) == plain(theirs)
    assert zipfile.ZipFile(buffer).testzip() is None


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("views", "sparse")])
def test_the_format_before_1_6(name, tmp_path):
    theirs = dict(objects(torch))[name]
    if name == "dtypes":
        theirs = {k: v for k, v in theirs.items() if not k.startswith("uint") or k == "uint8"}
    torch.save(theirs, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert plain(taeda_io.load(tmp_path / "old.pt")) == plain(theirs)


def test_sharing_survives(tmp_path):
    x = torch.arange(6.0)
    for legacy in (False, True):
        torch.save([x, x[2:], x.view(2, 3)], tmp_path / "a.pt", _use_new_zipfile_serialization=not legacy)
        a, b, c = taeda_io.load(tmp_path / "a.pt")
        a[2] = 77.0
        assert b[0].item() == 77.0 and c[0, 2].item() == 77.0
    taeda_io.save([a, b, c], tmp_path / "b.pt")
    a, b, c = torch.load(tmp_path / "b.pt")
    a[3] = 5.0
    assert b[1] == 5.0 and c[1, 0] == 5.0


def test_state_dict_metadata(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save(module.state_dict(), tmp_path / "a.pt")
    loaded = taeda_io.load(tmp_path / "a.pt")
    assert plain(loaded) == plain(module.state_dict())
    assert loaded._metadata == module.state_dict()._metadata
    taeda_io.save(loaded, tmp_path / "b.pt")
    again = torch.load(tmp_path / "b.pt")
    assert again._metadata == module.state_dict()._metadata
    module.load_state_dict(again)


def test_conjugate_and_negative_views(tmp_path):
    x = torch.tensor([1 + 2j, 3 - 1j])
    torch.save(x.conj(), tmp_path / "a.pt")
    assert taeda_io.load(tmp_path / "a.pt").tolist() == [1 - 2j, 3 + 1j]
    torch.save(x.conj().imag, tmp_path / "a.pt")
    assert taeda_io.load(tmp_path / "a.pt").tolist() == [-2.0, 1.0]


def test_counter(tmp_path):
    torch.save(Counter("abca"), tmp_path / "a.pt")
    assert taeda_io.load(tmp_path / "a.pt") == Counter("abca")


def test_attributes_of_tensors(tmp_path):
    x = torch.ones(2)
    x.note = "hello"
    torch.save(x, tmp_path / "a.pt")
    assert taeda_io.load(tmp_path / "a.pt").note == "hello"


def test_files_that_would_run_code_are_refused(tmp_path):
    torch.save(torch.nn.Linear(1, 1), tmp_path / "module.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear"):
        taeda_io.load(tmp_path / "module.pt")
    torch.jit.script(torch.nn.Linear(1, 1)).save(tmp_path / "script.pt")
    with pytest.raises(RuntimeError, match="TorchScript"):
        taeda_io.load(tmp_path / "script.pt")


def test_safetensors_library(tmp_path):
    library = pytest.importorskip("safetensors.torch")
    theirs = {name: torch.tensor([[0, 1, 3]]).to(getattr(torch, name)) for name in DTYPES if name != "complex128"}
    ours = {name: taeda.tensor([[0, 1, 3]]).to(getattr(taeda, name)) for name in theirs}
    library.save_file(theirs, tmp_path / "a.safetensors", metadata={"format": "pt"})
    taeda_io.safetensors.save_file(ours, tmp_path / "b.safetensors", metadata={"format": "pt"})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    for read in (taeda_io.safetensors.load_file, taeda_io.load, lambda p: taeda_io.safetensors.load(p.read_bytes())):
        assert plain(read(tmp_path / "a.safetensors")) == plain(library.load_file(tmp_path / "b.safetensors"))


def test_files_in_the_format_before_1_6_are_read_by_torch(tmp_path):
    for name, ours in objects(taeda):
        if name == "dtypes":
            ours = {k: v for k, v in ours.items() if not k.startswith("uint") or k == "uint8"}
        taeda.save(ours, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
        assert plain(torch.load(tmp_path / "old.pt")) == plain(ours), name
        assert plain(taeda.load(tmp_path / "old.pt")) == plain(ours), name


def test_skip_data(tmp_path):
    results = []
    for f in (taeda, torch):
        f.save({"a": f.ones(3), "b": [f.ones(2, 2)[0]]}, tmp_path / "full.pt")
        with f.serialization.skip_data():
            f.save({"a": f.ones(3)}, tmp_path / "empty.pt")
            shapes = f.load(tmp_path / "full.pt")
        results.append((plain(f.load(tmp_path / "empty.pt")), shapes["a"].shape, shapes["b"][0].stride()))
        assert plain(f.load(tmp_path / "full.pt")["a"])[-1] == [1, 1, 1]
    assert results[0] == results[1]


@pytest.mark.parametrize("x", [np.float32(1), np.float64(2), np.int64(3), np.bool_(True), np.complex64(1j)])
def test_numbers_of_numpy(tmp_path, x):
    for t, u in ((taeda, torch), (torch, taeda), (taeda, taeda)):
        t.save([x], tmp_path / "a.pt")
        (back,) = u.load(tmp_path / "a.pt", weights_only=False)
        assert type(back) is type(x) and back == x


def test_unsafe_globals(tmp_path):
    torch.save({"m": torch.nn.Linear(1, 1), "d": np.float32(1)}, tmp_path / "a.pt")
    found = [set(f.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "a.pt")) for f in (taeda, torch)]
    assert found[0] == {name for name in found[1] if name != "torch.nn.parameter.Parameter"}
    with open(tmp_path / "a.pt", "rb") as file:
        assert set(taeda.serialization.get_unsafe_globals_in_checkpoint(file)) == found[0]
    for f in (taeda, torch):
        with pytest.raises(ValueError):
            f.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"nothing of the kind"))


def test_arguments_that_programs_pass(tmp_path):
    for f in (taeda, torch):
        f.save({"a": f.ones(2)}, tmp_path / "a.pt", pickle_module=pickle, pickle_protocol=4)
        for location in ("cpu", f.device("cpu"), {"cuda:0": "cpu"}, lambda storage, where: storage):
            assert f.load(tmp_path / "a.pt", map_location=location, weights_only=False)["a"].tolist() == [1, 1]
        with open(tmp_path / "a.pt", "rb") as file:
            assert f.load(file, "cpu", pickle)["a"].tolist() == [1, 1]
        with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
            f.save({}, tmp_path / "a.pt", unknown=1)


class Net(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.BatchNorm1d(4), taeda.nn.ReLU())
        self.head = taeda.nn.TransformerEncoderLayer(4, 2, 8, activation=taeda.nn.functional.gelu, batch_first=True)
        self.scale = taeda.nn.Parameter(taeda.ones(1))
        self.register_buffer("seen", taeda.zeros(2), persistent=False)
        self.sizes = {"hidden": [1, 2]}

    def forward(self, x):
        return self.head(self.body(x)[None]) * self.scale


def test_whole_modules():
    net = Net().eval()
    buffer = io.BytesIO()
    taeda.save({"model": net, "epoch": 3}, buffer)
    with pytest.raises(pickle.UnpicklingError, match="Net"):
        taeda.load(io.BytesIO(buffer.getvalue()))
    back = taeda.load(io.BytesIO(buffer.getvalue()), weights_only=False)["model"]
    x = taeda.rand(5, 3)
    assert type(back) is Net and not back.training and back.sizes == {"hidden": [1, 2]}
    assert back(x).tolist() == net(x).tolist()
    assert list(back.state_dict()) == list(net.state_dict())
    back.train()(x).sum().backward()
    assert back.body[0].weight.grad is not None


def note(module, *arguments):
    module.loaded = True


def test_whole_modules_of_torch_with_hooks():
    net = torch.nn.Sequential(torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2)))
    net.register_load_state_dict_pre_hook(note)
    buffer = io.BytesIO()
    torch.save(net, buffer)
    buffer.seek(0)
    back = taeda.load(buffer, weights_only=False)
    with taeda.no_grad():
        assert back.eval()(taeda.ones(1, 3))[0].tolist() == pytest.approx(net.eval()(torch.ones(1, 3))[0].tolist())
    for again in (back, pickle.loads(pickle.dumps(back)), copy.deepcopy(back)):
        again.loaded = False
        again.load_state_dict(back.state_dict())
        assert again.loaded


def test_whole_modules_of_torch():
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    x = torch.rand(2, 1, 5, 5)
    want = net(x)
    buffer = io.BytesIO()
    torch.save(net, buffer)
    buffer.seek(0)
    back = taeda.load(buffer, weights_only=False)
    got = back(taeda.from_dlpack(x))
    torch.testing.assert_close(torch.from_dlpack(got.detach()), want.detach())


VALUES = [
    np.arange(6.0).reshape(2, 3),
    np.arange(6, dtype=">i2")[::2],
    np.array(["a", "bc"]),
    np.array("2020-01-01", dtype="datetime64[D]"),
    np.asfortranarray(np.ones((2, 3), dtype=np.complex64)),
    np.zeros((0, 3), bool),
]


def test_what_is_read_beyond_plain_data(tmp_path):
    import argparse
    import collections
    import datetime
    import decimal
    import pathlib

    extra = {
        "args": argparse.Namespace(lr=0.1, path=pathlib.Path("a/b")),
        "counts": collections.defaultdict(list, {"a": [1]}),
        "last": collections.deque([1, 2], 5),
        "when": datetime.datetime(2020, 1, 2, 3, 4),
        "price": decimal.Decimal("1.50"),
        "range": [slice(1, None), range(3)],
        "layout": None,
    }
    path = tmp_path / "a.pt"
    for library in (taeda, torch):
        library.save({"extra": extra, "arrays": VALUES, "t": library.ones(2)}, path)
        with pytest.raises(pickle.UnpicklingError):
            taeda.load(path)
        for reader in (taeda, torch) if library is taeda else (taeda,):
            back = reader.load(path, weights_only=False)
            assert {k: v for k, v in back["extra"].items()} == extra
            assert back["extra"]["last"].maxlen == 5 and back["extra"]["counts"].default_factory is list
            assert back["t"].tolist() == [1, 1]
            for got, want in zip(back["arrays"], VALUES, strict=True):
                assert got.dtype == want.dtype.newbyteorder("=") and got.shape == want.shape
                np.testing.assert_array_equal(got, want)
    torch.save({"scalar": np.float32(2.5), "rng": np.random.RandomState(0).get_state()}, path)
    back = taeda.load(path, weights_only=False)
    assert back["scalar"] == 2.5 and back["rng"][1].shape == (624,)


def test_code_in_a_file_runs_only_where_the_caller_says_so():
    class Names:
        def __init__(self, *reduced):
            self.reduced = reduced

        def __reduce__(self):
            return self.reduced

    calls = [Names(sorted, ([2, 1],)), Names(Net, ()), Names(np.identity, (2,)), Names(getattr, (Net, "forward"))]
    for name in calls:
        data = io.BytesIO()
        taeda.save([name], data)
        with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
            taeda.load(io.BytesIO(data.getvalue()))
        with pytest.raises(RuntimeError, match="explicit pickle_module"):
            taeda.load(io.BytesIO(data.getvalue()), weights_only=True, pickle_module=pickle)
        for arguments in ({"weights_only": False}, {"pickle_module": pickle}):
            (got,) = taeda.load(io.BytesIO(data.getvalue()), **arguments)
            want = name.reduced[0](*name.reduced[1])
            assert type(got) is type(want) and str(got) == str(want)


class Holder(taeda.Tensor):
    pass


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    x: int
    y: object


class Reduced:
    """Says itself how it is made again."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Reduced, (self.value,)

    class Within:
        pass


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("library", [taeda, torch], ids=["of taeda", "of torch"])
def test_objects_of_any_class(library, new):
    x = library.arange(6.0)
    things = {
        "colour": Colour.RED,
        "pair": Pair(1, x[2:]),
        "reduced": Reduced(x[:2]),
        "within": Reduced.Within,
        "partial": functools.partial(Pair, 1),
        "pattern": re.compile("a+"),
        "method": Pair(1, 2)._asdict,
        "constants": [..., NotImplemented, type(None), type(...), type(NotImplemented)],
        "random": np.random.RandomState(0),
        "functions": [library.tanh, library.nn.functional.gelu, library.Tensor.tanh],
        "dataset": library.utils.data.TensorDataset(x),
        "normal": library.distributions.Normal(x, 1.0),
        "optimiser": library.optim.SGD([library.nn.Parameter(x)], lr=0.1),
        "model": library.nn.Sequential(library.nn.Linear(2, 2)),
    }
    things["model"][0].weight.tag = "kept"
    data = io.BytesIO()
    library.save({**things, "x": x}, data, _use_new_zipfile_serialization=new)
    back = taeda.load(io.BytesIO(data.getvalue()), weights_only=False)
    assert back["colour"] is Colour.RED and back["within"] is Reduced.Within and back["method"]() == {"x": 1, "y": 2}
    assert back["pair"].y.tolist() == [2, 3, 4, 5] and back["pair"].y.data_ptr() == back["x"].data_ptr() + 8
    assert type(back["reduced"]) is Reduced and back["reduced"].value.tolist() == [0, 1]
    assert back["constants"] == things["constants"]
    assert back["partial"](2) == Pair(1, 2) and back["pattern"].match("aa")
    assert back["random"].rand() == np.random.RandomState(0).rand()
    assert back["functions"] == [taeda.tanh, taeda.nn.functional.gelu, taeda.Tensor.tanh]
    assert back["dataset"][1][0].item() == 1 and back["normal"].mean.tolist() == x.tolist()
    assert back["optimiser"].param_groups[0]["lr"] == 0.1
    assert isinstance(back["model"][0], taeda.nn.Linear) and back["model"][0].weight.tag == "kept"


def test_tensors_keep_their_class_and_attributes():
    x = taeda.arange(3.0).as_subclass(Holder)
    x.title = "x"
    plain = taeda.ones(2, requires_grad=True)
    plain.tag = [1]
    data = io.BytesIO()
    taeda.save([x, x, plain], data)
    for arguments in ({"weights_only": False}, {}):
        if not arguments:
            with pytest.raises(pickle.UnpicklingError, match="Holder"):
                taeda.load(io.BytesIO(data.getvalue()))
            taeda.serialization.add_safe_globals([Holder])
        first, second, third = taeda.load(io.BytesIO(data.getvalue()), **arguments)
        assert type(first) is Holder and first is second and first.title == "x" and first.tolist() == [0, 1, 2]
        assert type(third) is taeda.Tensor and third.requires_grad and third.tag == [1]
    taeda.serialization.clear_safe_globals()
    data = io.BytesIO()
    taeda.save(plain, data)
    got = torch.load(io.BytesIO(data.getvalue()))
    assert got.tag == [1] and got.requires_grad


def test_storages(tmp_path):
    found = []
    for writer, reader in ((taeda, torch), (torch, taeda), (taeda, taeda), (torch, torch)):
        x = writer.arange(3.0)
        writer.save([x.storage(), x[1:]], tmp_path / "a.pt")
        typed, view = reader.load(tmp_path / "a.pt")
        writer.save({"s": writer.ones(2).untyped_storage()}, tmp_path / "b.pt")
        bare = reader.load(tmp_path / "b.pt")["s"]
        found.append((list(typed), typed.dtype is reader.float32, view.tolist(), bare.nbytes(), list(bare), len(bare)))
        assert bare.dtype is reader.uint8
        view.fill_(7.0)
        assert list(typed) == [0.0, 7.0, 7.0]
    assert all(item == found[0] for item in found)
