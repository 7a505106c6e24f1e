"""Tensors from Python and NumPy data, and back: PyTorch's dtypes, values, sharing and exceptions."""

import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

DATA = [
    "5", "2.5", "True", "1j", "[]", "[[], []]", "[1, 2]", "[1, 2.5]", "[True, 2]", "[True, False]", "[1, 1j]", "(1, 2)",
    "[[1, 2], [3, 4]]", "[[[1]] * 2] * 3", "range(4)", "[[1.5], (2,)]", "[-1, 2**62]", "[1e400, -1e39, float('nan')]",
    "np.float32(3)", "np.bool_(True)", "np.int8(-3)", "[np.float32(1)]", "[np.float64(1)]", "[np.int32(1), np.int32(2)]",
    "[np.float64(1), np.float32(2)]", "[1, np.float16(2)]", "np.array([1, 2], dtype=np.float16)", "np.arange(6).reshape(2, 3)",
    "np.arange(6)[::2]", "np.zeros((0, 3))", "np.array(3.5)", "[np.array([1, 2]), np.array([3, 4])]",
    "[np.array([1, 2], dtype=np.float32), [3, 4]]", "[f.tensor(1, dtype=f.int32), 2]", "[f.tensor(1.5), 2]", "bytearray(b'abc')",
]  # fmt: skip


def described(t):
    return str(t.dtype).split(".")[1], tuple(t.shape), repr(t.tolist()), t.requires_grad


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", DATA)
def test_tensor_of(data):
    for call in ("f.tensor({})", "f.as_tensor({})", "f.asarray({})"):
        if call == "f.asarray({})" and data.startswith("bytearray"):
            continue  # bytes of a buffer, not numbers
        text = call.format(data)
        assert described(eval(text, {"f": taeda, "np": np})) == described(eval(text, {"f": torch, "np": np}))


DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_with_a_dtype(dtype):
    for data in (
        [0, 1, 100],
        [0.5, 1.7, 3.0],
        [True, False],
        [[1, 2], [3, 4]],
        7,
        2.5,
        np.arange(3),
        np.array([0.5, 1.5]),
    ):
        if dtype == "uint64" and not isinstance(data, np.ndarray) and "." in repr(data):
            for framework in (taeda, torch):
                with pytest.raises(TypeError, match="an integer is required"):
                    framework.tensor(data, dtype=framework.uint64)
            continue
        ours = taeda.tensor(data, dtype=getattr(taeda, dtype))
        assert described(ours) == described(torch.tensor(data, dtype=getattr(torch, dtype)))


@pytest.mark.parametrize(
    "value", [1e6, 65504.0, 65519.9, 65520.0, -7e4, 6e-8, 2.98e-8, 1e-9, 1 / 3, 2049.0, float("nan")]
)
def test_half_precision_rounds_alike(value):
    for dtype in ("float16", "bfloat16"):
        ours, theirs = (f.tensor([value], dtype=getattr(f, dtype)) for f in (taeda, torch))
        assert described(ours) == described(theirs)


ERRORS = [
    "f.tensor(2**63)", "f.tensor([2**63])", "f.tensor(10**400)", "f.tensor([1, 300], dtype=f.uint8)", "f.tensor([128], dtype=f.int8)",
    "f.tensor(-129, dtype=f.int8)", "f.tensor([float('nan')], dtype=f.int32)", "f.tensor([1e20], dtype=f.int32)",
    "f.tensor([-1.5], dtype=f.uint8)", "f.tensor([1j], dtype=f.float32)", "f.tensor([[1], [2, 3]])", "f.tensor([[1, 2], 3])",
    "f.tensor([1, [2]])", "f.tensor('a')", "f.tensor(['a'])", "f.tensor(b'abc')", "f.tensor(None)", "f.tensor([None])",
    "f.tensor({1: 2})", "f.tensor({1, 2})", "f.tensor([1, 2], requires_grad=True)", "f.tensor([2**64], dtype=f.uint64)",
    "f.from_numpy([1])", "f.from_numpy(np.array(['a']))", "f.from_numpy(np.array([1], dtype=object))",
    "f.from_numpy(np.array([1, 2], dtype=np.dtype('i4').newbyteorder()))", "f.ones(2, requires_grad=True).numpy()",
    "f.ones(2).bfloat16().numpy()", "np.asarray(f.ones(2, requires_grad=True))", "f.ones(2, requires_grad=True).__dlpack__()",
    "f.frombuffer(bytearray(b'abc'), dtype=f.int16)", "f.frombuffer(bytearray(b''), dtype=f.int16)",
    "f.frombuffer(bytearray(b'abcd'), dtype=f.int16, offset=4)", "f.frombuffer(bytearray(b'abcd'), dtype=f.int16, count=3)",
    "f.from_dlpack(3)", "f.from_dlpack(f.ones(2, requires_grad=True))",
    "f.from_dlpack(f.ones(2, dtype=f.complex64).conj())",
]  # fmt: skip


@pytest.mark.parametrize("call", ERRORS)
def test_errors_have_the_same_type(call):
    raised = []
    for f in (taeda, torch):
        with pytest.raises(Exception) as info, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"f": f, "np": np})
        raised.append(info.type)
    ours, theirs = raised
    assert issubclass(ours, theirs)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_numpy_shares_memory_both_ways(dtype):
    a = np.arange(12).reshape(3, 4).astype(dtype)
    for view in (a, a.T, a[1:, ::2], a[0, 0:0], a[2]):
        t = taeda.from_numpy(view)
        back = t.numpy()
        assert (back.dtype == view.dtype and back.strides == view.strides) or not view.size
        np.testing.assert_array_equal(back, view)
        if view.size:
            assert np.shares_memory(back, a)


def test_dlpack_with_torch_and_numpy():
    x = torch.arange(6.0).reshape(2, 3).t()
    ours = taeda.from_dlpack(x)
    assert ours.tolist() == x.tolist() and ours.stride() == x.stride()
    ours[0, 0] = 7.0
    assert x[0, 0] == 7.0
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == x.data_ptr()
    assert torch.utils.dlpack.from_dlpack(taeda.utils.dlpack.to_dlpack(ours)).tolist() == x.tolist()
    for dtype in DTYPES:
        t = torch.tensor([0, 1, 2]).to(getattr(torch, dtype))
        assert described(taeda.from_dlpack(t)) == described(t)
        assert described(torch.from_dlpack(taeda.from_dlpack(t))) == described(t)
        assert described(taeda.tensor(t)) == described(t)
    assert taeda.from_dlpack(np.arange(4)).tolist() == [0, 1, 2, 3]
    assert np.from_dlpack(ours).tolist() == x.tolist()
