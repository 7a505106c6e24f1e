"""Special functions and the forms of pointwise ops beside PyTorch: dtypes, numbers, ``out=``, derivatives and refusals."""

import pytest

import taeda

torch = pytest.importorskip("torch")

from .peer import ERRORS, close, compare, gradients, ours  # noqa: E402

UNARY = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 ndtri""".split()
POLYNOMIALS = [
    *(f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    x = torch.tensor([0.1, 0.4, 0.8, 1.0, 0.55, 0.23])
    # PyTorch's float64 Bessel and Airy functions are good to 1e-7 only
    loose = {"rtol": 1e-5, "atol": 1e-6}
    for dtype in (torch.float32, torch.float64, torch.int32, torch.bool, torch.uint8):
        compare(f"{name} {dtype}", lambda f, x: getattr(f.special, name)(x), x.to(dtype), tolerance=loose)
        compare(
            f"{name} {dtype} strided",
            lambda f, x: getattr(f.special, name)(x.view(2, 3).t()),
            x.to(dtype),
            tolerance=loose,
        )
    result = taeda.empty(6)
    assert getattr(taeda.special, name)(ours(x), out=result) is result
    close(result, getattr(torch.special, name)(x), **loose)
    compare(name, lambda f, x: getattr(f.special, name)(x), x.to(torch.complex64), raises=NotImplementedError)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x, n = torch.tensor([[0.3], [-0.6], [1.0], [1.7]]), torch.tensor([0, 1, 2, 5, 8, 12, -1])
    loose = {"rtol": 2e-5, "atol": 1e-4}
    for dtype in (torch.float32, torch.float64, torch.int64):
        compare(f"{name} {dtype}", lambda f, x, n: getattr(f.special, name)(x, n), x.to(dtype), n, tolerance=loose)
    compare(name, lambda f, x: getattr(f.special, name)(x, 4), x, tolerance=loose)
    compare(name, lambda f, n: getattr(f.special, name)(0.4, n), n, tolerance=loose)
    compare(name, lambda f, x, n: getattr(f.special, name)(x=x, n=n), x, n.double(), tolerance=loose)
    with pytest.raises(TypeError):
        getattr(taeda.special, name)(0.4, 2)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma(name):
    a, x = (
        torch.tensor([[0.3], [1.0], [4.5]], dtype=torch.float64),
        torch.tensor([0.1, 1.0, 3.0, 7.0], dtype=torch.float64),
    )
    loose = {"rtol": 1e-6, "atol": 1e-9}
    compare(name, lambda f, a, x: getattr(f, name)(a, x), a, x, tolerance=loose)
    compare(
        name,
        lambda f, a, x: getattr(f.special, name.replace("igamma", "gammainc"))(a.float(), x),
        a,
        x,
        tolerance=loose,
    )
    compare(name, lambda f, a, x: getattr(a.clone(), name)(x), a, x, tolerance=loose)
    compare(name, lambda f, a, x: getattr(a.expand(3, 4).clone(), name + "_")(x), a, x, tolerance=loose)
    for dtype in (torch.float16, torch.bfloat16):
        compare(
            name,
            lambda f, a, x: getattr(f, name)(a, x),
            a.to(dtype),
            x.to(dtype),
            tolerance={"rtol": 2e-2, "atol": 1e-3},
        )
    compare(name, lambda f, a, x: getattr(f, name)(a, x), a.int(), x.int(), raises=NotImplementedError)
    compare(name, lambda f, a: getattr(f, name)(a, 2.0), a, raises=TypeError)
    gradients(name, lambda f, x: getattr(f, name)(f.full((4,), 1.5, dtype=f.float64), x), x, second=True)
    y = ours(a).requires_grad_()
    with pytest.raises(NotImplementedError):
        getattr(taeda, name)(y, ours(x)).sum().backward()


def test_ndtri_gradients():
    gradients(
        "ndtri", lambda f, x: f.special.ndtri(x), torch.tensor([0.05, 0.4, 0.9], dtype=torch.float64), second=True
    )


def test_zeta_edges():
    s = torch.tensor([2.0, 3.0, 2.0, 1.0, 0.5, 2.5])
    q = torch.tensor([-3.0, -2.5, -20.3, 1.0, 1.0, 4.0])
    compare("zeta", lambda f, s, q: f.special.zeta(s, q), s, q)
    assert taeda.special.zeta(float("inf"), taeda.tensor([0.5, 1.0, 2.0])).tolist() == [float("inf"), 1.0, 0.0]


INPLACE = """abs_ acos_ acosh_ arccos_ arcsin_ arctan_ asin_ asinh_ atan_ atanh_ ceil_ clamp_min_ conj_physical_ cos_ cosh_
deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ i0_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_
rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ zero_ selu_""".split()


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_functions(name):
    x = torch.tensor([0.25, 0.5, 0.75])
    more = (0.4,) if name == "clamp_min_" else ()

    def run(f, x):
        y = x.clone()
        assert getattr(f, name)(y, *more) is y
        return y

    compare(name, run, x)
    compare(name, run, x.double())


def test_ldexp_where_the_power_alone_is_too_large():
    for x, exponents in ((torch.tensor([1e-40, 1.5, 1e30]), [140, -149, -140]), (torch.tensor([1e-5]).half(), [17])):
        compare("ldexp", lambda f, x, e: f.ldexp(x, e), x, torch.tensor(exponents))


def test_inplace_functions_of_two():
    a, b = torch.tensor([4, 6, 9]), torch.tensor([6, 4, 3])
    compare("gcd_", lambda f, a, b: f.gcd_(a.clone(), b), a, b)
    compare("lcm_", lambda f, a, b: f.lcm_(a.clone(), b), a, b)
    compare("ldexp_", lambda f, a, b: f.ldexp_(a.float(), b), a, b)
    compare("xlogy_", lambda f, a, b: f.xlogy_(a.float(), b), a, b)
    compare("threshold_", lambda f, a: f.threshold_(a.float(), 5, 1), a)
    compare("addmv_", lambda f, a: f.addmv_(f.ones(2), f.ones(2, 3), a.float()), a)


#: Ops in place, with the dtypes that cannot hold what they give.
REFUSES = {
    "square_": [torch.bool], "ldexp_": [torch.bool, torch.int64], "exp_": [torch.bool, torch.int64],
    "float_power_": [torch.bool, torch.int64, torch.float32, torch.complex64],
    "mvlgamma_": [torch.bool, torch.int64, torch.complex64], "abs_": [torch.bool, torch.complex64],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSES)
def test_inplace_keeps_the_dtype(name):
    more = {"ldexp_": (2,), "float_power_": (2,), "mvlgamma_": (2,)}.get(name, ())
    for dtype in (torch.bool, torch.int64, torch.float32, torch.complex64):
        x = torch.ones(3, dtype=dtype)
        arguments = [torch.tensor(m) if name == "ldexp_" else m for m in more]
        raises = RuntimeError if dtype in REFUSES[name] else ()
        compare(f"{name} {dtype}", lambda f, x, *a: getattr(x.clone(), name)(*a), x, *arguments, raises=raises)


@pytest.mark.parametrize(
    "name",
    """maximum minimum fmax fmin hypot atan2 logaddexp logaddexp2 logical_and logical_or logical_xor heaviside gcd lcm
    nextafter ldexp polar complex isclose""".split(),
)
def test_tensors_alone_come_second(name):
    compare(name, lambda f, x: getattr(f, name)(x, 2), torch.tensor([1.0, 2.0]), raises=TypeError)
    check_the_first(name)


@pytest.mark.parametrize("name", "eq ne lt le gt ge fmod copysign rsub clamp_min clamp_max".split())
def test_numbers_come_second(name):
    compare(name, lambda f, x: getattr(f, name)(x, 2), torch.tensor([1.0, 2.0]))
    check_the_first(name)


def check_the_first(name):
    compare(name, lambda f, x: getattr(f, name)(2, x), torch.tensor([1.0, 2.0]), raises=TypeError)
    compare(name, lambda f: getattr(f, name)(2, 3), raises=TypeError)


def test_edges():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5, -37.0, 1e30, -1e30])
    compare("erfcx", lambda f, x: f.special.erfcx(x), x)
    compare("lgamma", lambda f, x: f.lgamma(x), torch.tensor([-1.7e308, -3.0, 0.0, inf, -inf], dtype=torch.float64))
    compare("threshold", lambda f, x: f.threshold(x, 0.5, -9.0), x)
    compare(
        "lcm",
        lambda f, a, b: f.lcm(a, b),
        torch.tensor([2, 100], dtype=torch.int16),
        torch.tensor([32767], dtype=torch.int16),
    )
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        a, b = x.to(dtype).repeat_interleave(x.numel()), x.to(dtype).repeat(x.numel())
        compare("nextafter", lambda f, a, b: f.nextafter(a, b), a, b, tolerance={"rtol": 0, "atol": 0})
        compare("div", lambda f, a: f.div(a, 0.7, rounding_mode="trunc"), torch.arange(-50, 50).to(dtype))


def test_clamp_to_tensors():
    nan = float("nan")
    x = torch.tensor([1.0, 2.0, 3.0, nan, 5.0, 3.5], dtype=torch.float64)
    low = torch.tensor([2.0, 2.0, nan, 1.0, 6.0, 3.0], dtype=torch.float64)
    high = torch.tensor([5.0, 5.0, 5.0, 5.0, 4.0, 3.0], dtype=torch.float64)
    gradients("clamp", lambda f, x, low, high: f.clamp(x, low, high), x, low, high, second=True)
    gradients("clamp min", lambda f, x, low: f.clamp(x, min=low), x, low)
    gradients("clamp max", lambda f, x, high: x.clamp_max(high), x, high)
    compare("clamp_", lambda f, x, low, high: x.clone().clamp_(low, high), x, low, high)
    compare("clamp_ cast", lambda f, x, low: x.int().clamp_(low), torch.ones(6), low, raises=RuntimeError)
    compare("clamp bool", lambda f, x: f.clamp_min(x, x), torch.tensor([True, False]))


@pytest.mark.parametrize(
    "name", ["relu", "leaky_relu", "hardtanh", "relu6", "threshold", "hardshrink", "softshrink", "prelu"]
)
def test_second_derivative_of_piecewise_linear(name):
    more = {"threshold": (0.1, -1.0), "prelu": (torch.tensor([0.3], dtype=torch.float64),)}.get(name, ())
    x = torch.tensor([-2.0, -0.2, 0.3, 2.0], dtype=torch.float64)
    gradients(name, lambda f, x, *m: getattr(f.nn.functional, name)(x, *m), x, *more, second=True)


def test_frexp_gradient():
    gradients("frexp", lambda f, x: f.frexp(x)[0], torch.tensor([0.3, -5.0, 1024.0], dtype=torch.float64))


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f.lerp(f.arange(3), f.arange(3), 0.5),
        lambda f: f.lerp(f.ones(3), f.ones(3, dtype=f.float64), 0.5),
        lambda f: 1 - f.tensor([True, False]),
        lambda f: f.arange(2) - f.tensor([True, False]),
        lambda f: f.arange(4).clamp_(0.5, 2.5),
        lambda f: f.mvlgamma(f.tensor([0.5]), 0),
        lambda f: f.heaviside(f.ones(2), f.ones(2, dtype=f.float64)),
        lambda f: f.polar(f.ones(2), f.ones(2, dtype=f.float64)),
        lambda f: f.ones(3, dtype=f.int64) * 2**70,
    ],
)
def test_refused_as_pytorch_refuses(call):
    compare("call", call, raises=ERRORS)


def test_numbers_as_pytorch_takes_them():
    compare("lerp", lambda f: f.lerp(f.arange(3.0), f.ones(3), f.tensor(0.25)))
    compare("clamp", lambda f: f.clamp(f.tensor([5.0, 1.0]), float("nan"), 3))
