"""Python's types of numbers as dtypes: ``zeros(2, dtype=int)``, ``x.to(float)``, as in PyTorch."""

import pytest

import taeda

torch = pytest.importorskip("torch")

CALLS = """f.zeros(2, dtype=T)|f.empty(2, dtype=T)|f.full((2,), 1, dtype=T)|f.tensor([1, 0], dtype=T)|f.as_tensor([1], dtype=T)
f.asarray([1], dtype=T)|f.zeros_like(x, dtype=T)|f.full_like(x, 1, dtype=T)|f.eye(2, dtype=T)|x.to(T)|x.to(dtype=T)|x.to("cpu", T)
x.sum(dtype=T)|x.prod(dtype=T)|x.new_zeros(2, dtype=T)|x.new_tensor([1], dtype=T)|f.empty_strided((2,), (1,), dtype=T)
f.frombuffer(bytearray(16), dtype=T)"""


@pytest.mark.parametrize("kind", [float, int, bool, complex])
@pytest.mark.parametrize("call", CALLS.replace("\n", "|").split("|"))
def test_a_python_type_is_a_dtype(kind, call):
    want, got = (eval(call, {"f": f, "x": f.ones(2, 3), "T": kind}).dtype for f in (torch, taeda))
    assert str(got).removeprefix("taeda.") == str(want).removeprefix("torch.")


def test_of_modules_and_limits():
    layer = taeda.nn.Linear(2, 2, dtype=float)
    assert layer.weight.dtype is taeda.float64 and taeda.nn.Linear(2, 2).to(float).weight.dtype is taeda.float64
    assert taeda.finfo(float).eps == taeda.finfo(taeda.float64).eps
    with pytest.raises(TypeError):
        taeda.nn.Linear(2, 2).to(int)


def test_other_types_are_errors():
    for f in (torch, taeda):
        with pytest.raises(TypeError):
            f.zeros(2, dtype=str)
