"""Saving and loading without PyTorch: round trips, atomic writes, and files that mean harm."""

import io
import json
import mmap
import os
import pickle
import random
import struct
import sys
import zipfile
import zlib
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest

import taeda
from taeda import io as files
from taeda import nn, serialization
from taeda.io.archive import ArchiveReader, ArchiveWriter
from taeda.kernels.files import atomic_write
from taeda.standin.internals import utils as internals

EXPECTED = (RuntimeError, pickle.UnpicklingError, EOFError)


def sample():
    x = taeda.arange(12.0).reshape(3, 4)
    return OrderedDict(a=x, b=x[1:], c=[1, 2.5, "text", None, (True, {"k": b"v"})], d=taeda.tensor([1, 2]))


def saved(obj) -> bytes:
    buffer = io.BytesIO()
    files.save(obj, buffer)
    return buffer.getvalue()


def loaded(data: bytes):
    return files.load(io.BytesIO(data))


def test_round_trip():
    back = loaded(saved(sample()))
    assert type(back) is OrderedDict
    assert back["a"].tolist() == sample()["a"].tolist()
    assert back["c"] == sample()["c"]
    back["a"][1, 0] = 70.0
    assert back["b"][0, 0].item() == 70.0


def test_negative_strides_are_written_plainly():
    x = taeda.arange(5)[::-1]
    back = loaded(saved(x))
    assert back.tolist() == [4, 3, 2, 1, 0]
    assert back.stride() == (1,)


def test_containers_that_contain_themselves():
    a: list = []
    a.append((a,))
    b = loaded(saved(a))
    assert b[0][0] is b
    d: dict = {}
    d["self"] = d
    e = loaded(saved(d))
    assert e["self"] is e


def test_records_are_aligned_and_checked():
    data = saved(sample())
    archive = ArchiveReader(data)
    for name in ("data.pkl", "data/0", "version"):
        assert archive.locate(name)[0] % 64 == 0
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    at = archive.locate("data/0")[0]
    damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    with pytest.raises(RuntimeError, match="checksum of record 'data/0'"):
        loaded(damaged)


def test_mmap(tmp_path):
    path = tmp_path / "x.pt"
    files.save(sample(), path)
    before = path.read_bytes()
    back = files.load(path, mmap=True)
    back["a"].fill_(5.0)
    assert path.read_bytes() == before
    assert files.load(path)["a"][0, 1].item() == 1.0
    with pytest.raises(ValueError, match="path"):
        files.load(io.BytesIO(before), mmap=True)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        files.load(path, mmap=True)["a"].fill_(5.0)
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert files.load(path, mmap=True)["a"][0, 1].item() == 5.0
    with pytest.raises(ValueError, match="MAP_PRIVATE"):
        serialization.set_default_mmap_options(7)


def test_several_saves_of_the_older_format_in_one_file(tmp_path):
    with open(tmp_path / "x.pt", "w+b") as file:
        for x in (taeda.ones(3), [taeda.zeros(2)]):
            taeda.save(x, file, _use_new_zipfile_serialization=False)
        assert (tmp_path / "x.pt").stat().st_size == file.tell()  # it is flushed
        file.seek(0)
        assert taeda.load(file).tolist() == [1.0, 1.0, 1.0] and taeda.load(file)[0].tolist() == [0.0, 0.0]


def test_a_write_that_fails_leaves_the_file_alone(tmp_path):
    path = tmp_path / "x.pt"
    files.save([1], path)
    with pytest.raises(pickle.PicklingError):
        files.save([lambda: 0], path)
    with pytest.raises(OSError, match="disk"), atomic_write(path) as file:
        file.write(b"half")
        raise OSError("disk full")
    assert files.load(path) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_what_cannot_be_saved_is_named_with_its_place():
    with pytest.raises(pickle.PicklingError, match=r"builtins.function at \['a'\]\[1\]"):
        saved({"a": [1, lambda: 0]})
    x = taeda.tensor([1.0])
    with pytest.raises(RuntimeError, match="different types"):
        saved([x, x.view(taeda.int32)])


class Point:
    def __init__(self, x):
        self.x = x


def test_classes_that_the_user_allows():
    try:
        serialization.add_safe_globals([Point])
        data = saved({"p": Point(3)})
        assert loaded(data)["p"].x == 3
        assert Point in serialization.get_safe_globals()
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError, match=r"Point.*not on the list"):
        loaded(data)
    with serialization.safe_globals([Point]):
        assert loaded(data)["p"].x == 3
    assert serialization.get_safe_globals() == []


def test_allowed_functions_are_given_allowed_classes():
    array = np.arange(3, dtype=np.uint32)
    data = saved({"state": array, "class": Point})
    with serialization.safe_globals([type(array.__reduce__()[0]), Point]), pytest.raises(pickle.UnpicklingError):
        loaded(data)
    with serialization.safe_globals([array.__reduce__()[0], np.ndarray, np.dtype, type(array.dtype), Point]):
        back = loaded(data)
    assert back["class"] is Point and back["state"].dtype == array.dtype and (back["state"] == array).all()


def test_arguments():
    with pytest.raises(AttributeError, match="Unpickler"):
        files.load("x", pickle_module=json)
    data = saved([1, taeda.ones(2)])
    assert files.load(io.BytesIO(data), weights_only=False, pickle_module=pickle)[1].tolist() == [1, 1]
    with pytest.raises(FileNotFoundError):
        files.load("there is no such file")
    with pytest.raises(RuntimeError, match="the folder 'no such folder' does not exist"):
        files.save(1, "no such folder/x.pt")
    with pytest.raises(EOFError):
        loaded(b"")
    with pytest.raises(pickle.UnpicklingError, match="neither"):
        loaded(b"hello, world, this is no checkpoint")


# ---- files that mean harm --------------------------------------------------------------------------------------------
def archive_of(pickled: bytes, **records: bytes) -> bytes:
    buffer = io.BytesIO()
    writer = ArchiveWriter(buffer, "archive")
    writer.add("data.pkl", pickled)
    for name, data in records.items():
        writer.add(f"data/{name}", data)
    writer.close()
    return buffer.getvalue()


class Harm:
    def __init__(self, function, *args):
        self.parts = function, args

    def __reduce__(self):
        return self.parts


ran: list = []


def tensor_pickle(key=b"X\x01\x00\x00\x000", numel=4, offset=0, sizes=(4,), strides=(1,)) -> bytes:
    """A pickle of one float32 tensor with these numbers."""

    def number(x):
        data = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data

    def tuple_of(items):
        return b"(" + b"".join(map(number, items)) + b"t"

    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n" + key + b"X\x03\x00\x00\x00cpu" + number(numel) + b"tQ"
    rest = number(offset) + tuple_of(sizes) + tuple_of(strides) + b"\x89ccollections\nOrderedDict\n)RtR."
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest


def test_the_tensor_pickle_of_these_tests_is_right():
    x = loaded(archive_of(tensor_pickle(), **{"0": struct.pack("<4f", 1, 2, 3, 4)}))
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": (5,)},
        {"sizes": (2, 2), "strides": (1,)},
        {"offset": 1},
        {"offset": -1},
        {"offset": 2**70},
        {"sizes": (-1,)},
        {"sizes": (2**63,), "strides": (0,)},
        {"sizes": (2**40, 2**40), "strides": (0, 0)},
        {"strides": (-1,)},
        {"strides": (2**61,)},
        {"sizes": (1,) * 65, "strides": (1,) * 65},
        {"numel": 5},
        {"numel": 2**62},
        {"numel": -1},
        {"key": b"X\x01\x00\x00\x009"},
        {"key": b"X\x0b\x00\x00\x00../../../xx"},
        {"key": b"N"},
        {"key": b"]"},
    ],
)
def test_tensors_that_do_not_fit(change):
    with pytest.raises(EXPECTED):
        loaded(archive_of(tensor_pickle(**change), **{"0": struct.pack("<4f", 1, 2, 3, 4)}))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "harm",
    [
        Harm(os.system, "echo harm"),
        Harm(eval, "ran.append(1)"),
        Harm(exec, "ran.append(1)"),
        Harm(getattr, "os", "system"),
        Harm(__import__, "os"),
        Harm(print, "harm"),
        Harm(open, "harm"),
        Harm(bytearray, 2**40),
        Harm(bytes, 10),
        Harm(list, range(3)),
        Harm(OrderedDict.fromkeys, "abc"),
    ],
)
def test_pickles_that_call(harm, protocol):
    data = pickle.dumps([harm], protocol)
    with pytest.raises(EXPECTED):
        loaded(archive_of(data))
    with pytest.raises(EXPECTED):
        loaded(data)
    assert not ran


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"\x80\x02.",
        b"\x80\x09N.",
        b"\x80\x02(",
        b"\x80\x02(N.",
        b"\x80\x02NN.",
        b"\x80\x02NR.",
        b"\x80\x02N)R.",
        b"\x80\x02X\x05\x00\x00\x00ab.",
        b"\x80\x02X\xff\xff\xff\xffab.",
        b"\x80\x04\x8d" + b"\xff" * 8 + b"ab.",
        b"\x80\x05\x96" + b"\xff" * 7 + b"\x7fab.",
        b"\x80\x04\x8e" + b"\x00" * 7 + b"\x10ab.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
        b"\x80\x02h\x07.",
        b"\x80\x02j\xff\xff\xff\xff.",
        b"\x80\x02}Na.",
        b"\x80\x02]NNs.",
        b"\x80\x02}(Nu.",
        b"\x80\x02}]Ns.",
        b"\x80\x02cos\nsystem\n.",
        b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        b"\x80\x02ctorch\nfloat32\n)R.",
        b"\x80\x02ctorch\nFloatStorage\n)R.",
        b"\x80\x02ctorch\nTensor\n)\x81.",
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",
        b"\x80\x02ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsNsb.",
        b"\x80\x02ccollections\nOrderedDict\n)R}X\x09\x00\x00\x00__class__Nsb.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x08\x00\x00\x00__code__Nsb.",
        b"\x80\x02ctorch\nSize\n(K\x01K\x02ttR.",
        b"\x80\x02ctorch\ndevice\nX\x04\x00\x00\x00nope\x85R.",
        b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
        b"\x80\x02cbuiltins\nset\nK\x05\x85R.",
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02(cos\nsystem\no.",
        b"\x80\x02(ios\nsystem\n.",
        b"\x80\x02X\x01\x00\x00\x000Q.",
        b"\x80\x02I" + b"9" * 100_000 + b"\n.",
        b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"Ns.",
        b"\x80\x04\x8f(" + b")" + b"\x85" * 100_000 + b"\x90.",
    ],
)
def test_damaged_pickles(data):
    with pytest.raises(EXPECTED):
        loaded(archive_of(data))


def test_deep_nesting_is_data():
    x = loaded(archive_of(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."))
    depth = 1
    while x:
        x, depth = x[0], depth + 1
    assert depth == 100_000


def test_zip_bombs_and_lies(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N." + b"\x00" * 10_000_000)
    with pytest.raises(RuntimeError, match="compressed"):
        loaded(packed.getvalue())
    twice = io.BytesIO()
    writer = ArchiveWriter(twice, "archive")
    writer.add("data.pkl", b"\x80\x02N.")
    writer.add("data.pkl", b"\x80\x02N.")
    writer.close()
    with pytest.raises(RuntimeError, match="two records"):
        loaded(twice.getvalue())
    lies = io.BytesIO()
    writer = ArchiveWriter(lies, "archive")
    writer.add("data.pkl", b"\x80\x02N.")
    writer.add("data/0", bytes(1000))
    writer.entries += [(b"archive/data/%d" % i, *writer.entries[1][1:]) for i in range(1, 50)]  # all the same bytes
    writer.close()
    with pytest.raises(RuntimeError, match="records claim"):
        loaded(lies.getvalue())


def mutations(data: bytes, count: int, seed: int):
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.randrange(4)
        at = rng.randrange(len(data))
        if kind == 0:
            yield data[:at]
        elif kind == 1:
            yield data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 2:
            yield data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + rng.randrange(9) :]
        else:
            other = rng.randrange(len(data))
            yield data[:at] + data[other : other + rng.randrange(64)] + data[at:]


def attempt(load, data):
    """Load; anything but a result or one of the expected errors fails the test."""
    try:
        load(data)
    except (*EXPECTED, ValueError, TypeError):
        pass


def fix_checksums(data: bytes) -> bytes:
    """``data`` with the checksum of its pickle made right, so that the reader gets to see the pickle."""
    try:
        archive = ArchiveReader(data)
        start, size, _ = archive.locate("data.pkl")
    except RuntimeError:
        return data
    new = struct.pack("<I", zlib.crc32(data[start : start + size]))
    at = data.find(b"PK\1\2")
    return data[: at + 16] + new + data[at + 20 :]


def test_fuzzed_archives():
    data = saved(sample())
    for damaged in mutations(data, 1500, 1):
        attempt(loaded, damaged)


def test_fuzzed_pickles():
    data = saved(sample())
    start, size, _ = ArchiveReader(data).locate("data.pkl")
    for damaged in mutations(data[start : start + size], 3000, 2):
        whole = archive_of(damaged, **{"0": bytes(48), "1": bytes(16)})
        attempt(loaded, whole)


def test_fuzzed_safetensors():
    data = files.safetensors.save({"a": taeda.arange(5.0), "b": taeda.tensor([[1, 2]])}, {"note": "x"})
    for damaged in mutations(data, 2000, 3):
        attempt(files.safetensors.load, damaged)


def test_memory_stays_near_the_size_of_the_file():
    memory = taeda._core.memory
    data = saved(sample())
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["allocated"]
    for damaged in mutations(data, 300, 4):
        attempt(loaded, damaged)
    assert memory.memory_stats()["peak_allocated"] - before < 100 * len(data)


def test_byte_order(tmp_path):
    other = b"big" if sys.byteorder == "little" else b"little"
    buffer = io.BytesIO()
    writer = ArchiveWriter(buffer, "archive")
    writer.add("data.pkl", tensor_pickle())
    writer.add("byteorder", other)
    writer.add("data/0", struct.pack(">4f" if other == b"big" else "<4f", 1, 2, 3, 4))
    writer.close()
    assert loaded(buffer.getvalue()).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_byte_order_of_archives_that_do_not_say_it():
    buffer = io.BytesIO()
    writer = ArchiveWriter(buffer, "archive")
    writer.add("data.pkl", tensor_pickle())
    writer.add("data/0", struct.pack(">4f", 1, 2, 3, 4))
    writer.close()
    before = internals.get_default_load_endianness()
    try:
        internals.set_default_load_endianness(internals.LoadEndianness.BIG)
        assert internals.get_default_load_endianness() is internals.LoadEndianness.BIG
        assert loaded(buffer.getvalue()).tolist() == [1.0, 2.0, 3.0, 4.0]
        assert loaded(saved(taeda.ones(2))).tolist() == [1, 1]  # says it
    finally:
        internals.set_default_load_endianness(before)


PYTHON_2 = (  # [b"\xc5\xbc", zeros(1)], in the format before 1.6
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01U\rlittle_endianq\x08\x88s.\x80\x02]q\x01(U\x02\xc5\xbc"
    b"q\x02ctorch._utils\n_rebuild_tensor_v2\nq\x03((U\x07storageq\x04ctorch\nFloatStorage\nq\x05U\x0845640624q\x06U\x03cpuq\x07"
    b"\x8a\x01\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRq\x08e.\x80\x02]q\x01U\x0845640624q\x02a."
) + struct.pack("<qf", 1, 7)


@pytest.mark.parametrize("trusted", [False, True])
def test_text_of_python_2(trusted):
    def load(**arguments):
        return taeda.load(io.BytesIO(PYTHON_2), weights_only=not trusted, **arguments)

    for encoding, text in {"utf-8": "\u017c", "latin1": "\xc5\xbc", "bytes": b"\xc5\xbc"}.items():
        found = load(encoding=encoding)
        assert found[0] == text and found[1].tolist() == [7]
    assert load()[0] == "\u017c"
    with pytest.raises(UnicodeDecodeError):
        load(encoding="ascii")


def test_memory_of_no_bytes_has_any_type():
    empty = taeda.tensor([])
    other = taeda.TypedStorage(wrap_storage=empty.untyped_storage(), dtype=taeda.float64)
    buffer = io.BytesIO()
    taeda.save([empty, other, empty], buffer)
    buffer.seek(0)
    first, second, third = taeda.load(buffer)
    assert first.dtype is third.dtype is taeda.float32 and second.dtype is taeda.float64


@pytest.mark.parametrize("trusted", [False, True])
def test_formats_and_layouts(trusted):
    buffer = io.BytesIO()
    saved = [taeda.channels_last, taeda.preserve_format, taeda.strided, taeda.sparse_csr]
    taeda.save(saved, buffer)
    assert taeda.load(io.BytesIO(buffer.getvalue()), weights_only=not trusted) == saved


class Maker:
    def __call__(self, *args):
        return Made(*args)

    make = __call__

    @classmethod
    def build(cls, *args):
        return Made(*args)


class Made:
    def __init__(self, how):
        self.how = how

    def __reduce__(self):
        makers = {"object": Maker(), "method": Maker().make, "classmethod": Maker.build, "partial": partial(Made)}
        return makers[self.how], (self.how,), {"x": taeda.ones(2)}


@pytest.mark.parametrize("how", ["object", "method", "classmethod", "partial"])
def test_an_object_says_which_object_makes_it(how, tmp_path):
    made = Made(how)
    taeda.save([made, made], tmp_path / "made")
    with pytest.raises(pickle.UnpicklingError):
        taeda.load(tmp_path / "made")
    first, second = taeda.load(tmp_path / "made", weights_only=False)
    assert first is second and first.how == how and first.x.tolist() == [1, 1]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_that_are_made_of_indices_in_both_formats(zipped, weights_only):
    """In the older format the indices come after the pickle."""
    dense = taeda.tensor([[0.0, 1.0, 0.0], [3.0, 0.0, 5.0]])
    parts = [taeda.ones(2), taeda.ones(3)]
    saved = {
        "dense": dense, "row": dense[0], "coo": dense.to_sparse(), "csr": dense.to_sparse_csr(),
        "bsc": dense.to_sparse_bsc((2, 1)), "parameter": nn.Parameter(dense.to_sparse()),
        "nested": taeda.nested.nested_tensor(parts), "jagged": taeda.nested.nested_tensor(parts, layout=taeda.jagged),
    }  # fmt: skip
    file = io.BytesIO()
    taeda.save(saved, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = taeda.load(file, weights_only=weights_only)
    for name in ("coo", "csr", "bsc", "parameter"):
        assert loaded[name].layout is saved[name].layout and loaded[name].to_dense().equal(dense), name
    assert isinstance(loaded["parameter"], nn.Parameter) and loaded["parameter"].requires_grad
    for name in ("nested", "jagged"):
        assert [p.tolist() for p in loaded[name].unbind()] == [[1.0] * 2, [1.0] * 3], name
    loaded["dense"][0] = 7
    assert loaded["row"].tolist() == [7.0] * 3
