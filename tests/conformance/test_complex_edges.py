"""Complex functions of infinities, NaN, zeros of both signs and large numbers beside PyTorch, whose values are C99's."""

import math

import pytest

import taeda

torch = pytest.importorskip("torch")

INF, NAN = math.inf, math.nan
PARTS = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e20, -1e20, 1e-20, 3.7, 1e200, -1e200, 1e-200, 720.0, -720.0]
NAMES = (
    "exp exp2 log log2 log10 sqrt rsqrt reciprocal sin cos tan asin atan sinh cosh tanh asinh acosh atanh sgn".split()
)


@pytest.mark.parametrize("name", NAMES)
def test_edges(name):
    numbers = [complex(a, b) for a in PARTS for b in PARTS]
    want = getattr(torch, name)(torch.tensor(numbers, dtype=torch.complex128))
    got = torch.from_dlpack(getattr(taeda, name)(taeda.tensor(numbers, dtype=taeda.complex128)))
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        torch.testing.assert_close(a.abs(), b.abs(), rtol=1e-12, atol=0, equal_nan=True)
        # C leaves the sign open where sin of an infinite imaginary part is taken, and of NaN
        known = ~b.isnan() & ~(b.isinf() & want.isnan()) if name == "sin" else ~b.isnan()
        assert torch.equal(torch.signbit(a[known]), torch.signbit(b[known]))


def test_sigmoid_of_large_numbers():
    numbers = [-800 + 1e-20j, -800 - 3j, 800 + 2j, -30 + 1j]
    got = taeda.sigmoid(taeda.tensor(numbers, dtype=taeda.complex128)).tolist()
    assert got[0] == 0 and got[1] == 0 and got[2] == 1
    e = torch.exp(torch.tensor(numbers[3], dtype=torch.complex128)).item()
    assert abs(got[3] - e / (1 + e)) < 1e-15 * abs(e)


@pytest.mark.parametrize("zero", [0.0, -0.0, 0, False, 0j])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_division_by_zero(zero, dtype):
    numbers = [complex(a, b) for a in PARTS for b in PARTS]
    want, got = (m.tensor(numbers, dtype=getattr(m, dtype)) / zero for m in (torch, taeda))
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        assert [repr(x) for x in a.tolist()] == [repr(x) for x in b.tolist()]


@pytest.mark.parametrize("value", [INF, -INF, NAN])
def test_a_real_number_has_no_imaginary_part(value):
    """PyTorch multiplies it by 1 + 0j first, and gives NaN in the other part."""
    x = taeda.tensor([1 + 2j, complex(3, -INF)])
    for y in (x + value, value + x, x - value, x.clone().add_(value)):
        assert y.imag.tolist() == x.imag.tolist()
