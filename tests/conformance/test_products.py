"""Matrix products, convolution, pooling and attention compared with PyTorch."""

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

from .opdb.translate import back, translate  # noqa: E402
from .peer import ERRORS, compare, gradients  # noqa: E402

GENERATOR = torch.Generator()


@pytest.fixture(autouse=True)
def _seed():
    GENERATOR.manual_seed(0)


def rand(*shape, dtype=torch.float64):
    """Small whole numbers for integers, normal numbers for the rest."""
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
        return torch.randn(*shape, generator=GENERATOR, dtype=wide).to(dtype)
    return torch.randint(0, 7, shape, generator=GENERATOR).to(dtype)


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
TOLERANCE = {
    torch.float16: {"rtol": 2e-3, "atol": 1e-2},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-1},
    torch.float32: {"rtol": 1e-4, "atol": 1e-4},
    torch.complex64: {"rtol": 1e-4, "atol": 1e-4},
}
SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((2, 1, 5, 3), (4, 3, 2)),
    ((7, 1), (1, 7)),
    ((0, 3), (3, 4)),
    ((3, 0), (0, 4)),
    ((64, 64), (64, 64)),
    ((200, 100), (100, 300)),
    ((1, 300), (300, 70)),
    ((60, 70), (70,)),
    ((90, 8, 9), (90, 9, 7)),
    ((3, 4, 64, 32), (3, 4, 32, 64)),
]


@pytest.mark.parametrize("dtype", DTYPES + INTEGERS, ids=str)
def test_matmul(dtype):
    """Every rank, and operands stored by columns."""
    for a, b in SHAPES:
        x, y = rand(*a, dtype=dtype), rand(*b, dtype=dtype)
        for left, right in itertools.product((False, True), repeat=2):
            if (left and len(a) < 2) or (right and len(b) < 2):
                continue
            u = x.mT.contiguous().mT if left else x
            w = y.mT.contiguous().mT if right else y
            compare(f"matmul {dtype} {a} {b}", lambda T, p, q: T.matmul(p, q), u, w, tolerance=TOLERANCE.get(dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_derivatives(dtype):
    """First and second derivatives of the family."""

    def check(name, fn, *shapes):
        gradients(name, fn, *(rand(*s, dtype=dtype) for s in shapes), second=True)

    for a, b in SHAPES[:11]:
        check(f"matmul {a} {b}", lambda T, x, y: T.matmul(x, y), a, b)
    for name, shapes in (
        ("mm", ((2, 3), (3, 4))),
        ("bmm", ((5, 2, 3), (5, 3, 4))),
        ("mv", ((2, 3), (3,))),
        ("dot", ((3,), (3,))),
        ("vdot", ((3,), (3,))),
        ("outer", ((2,), (4,))),
        ("inner", ((2, 3), (4, 5, 3))),
        ("kron", ((2, 3), (4, 5))),
        ("chain_matmul", ((2, 3), (3, 4), (4, 5), (5, 2))),
    ):
        check(name, lambda T, *x, name=name: getattr(T, name)(*x), *shapes)
    for name, shapes in (
        ("addmm", ((4,), (2, 3), (3, 4))),
        ("addmm", ((2, 1), (2, 3), (3, 4))),
        ("addmm", ((2, 4), (2, 3), (3, 4))),
        ("addmv", ((2,), (2, 3), (3,))),
        ("addr", ((2, 4), (2,), (4,))),
        ("baddbmm", ((2, 4), (5, 2, 3), (5, 3, 4))),
        ("addbmm", ((2, 4), (5, 2, 3), (5, 3, 4))),
    ):
        for beta, alpha in ((1, 1), (3, 2), (0, 1), (3, 1), (1, 2), (0, 2)):
            check(name, lambda T, *x, name=name, b=beta, a=alpha: getattr(T, name)(*x, beta=b, alpha=a), *shapes)
    for x in ((2, 5, 3), (3,)):
        check("linear", lambda T, *t: T.nn.functional.linear(*t), x, (4, 3), (4,))
        check("linear", lambda T, *t: T.nn.functional.linear(*t), x, (3,))


def test_addends_of_integers():
    """The factors are whole numbers there."""
    a, b, c = (rand(2, 2, dtype=torch.int64) for _ in range(3))
    compare("addmm", lambda T, *x: T.addmm(*x, beta=0.5, alpha=2), a, b, c)


def test_inner_products_of_nothing_keep_the_dtype():
    for name in ("uint8", "int32", "float16", "complex64"):
        x = torch.zeros(0, dtype=getattr(torch, name))
        for op in ("dot", "vdot", "inner"):
            compare(op, lambda T, x, op=op: getattr(T, op)(x, x), x)


EQUATIONS = [
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("...ij,...jk->...ik", ((2, 5, 2, 3), (5, 3, 4))),
    ("...ij,jk", ((2, 5, 2, 3), (3, 4))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
    ("iji,j->i", ((3, 2, 3), (2,))),
    ("ij,kj->ik", ((2, 1), (4, 3))),
    ("bn,anm,bm->ba", ((2, 3), (5, 3, 4), (2, 4))),
    ("...,...->...", ((2, 3), (3,))),
    ("ii", ((3, 3),)),
    ("ij,ij->i", ((2, 3), (2, 3))),
    ("ij,jk->ik", ((2, 3),)),
    ("ij,jk->ik", ((2, 3), (4, 5))),
    ("ij->ik", ((2, 3),)),
    ("ijk->ij", ((2, 3),)),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation, shapes):
    """Values or the same type of error; derivatives."""
    operands = [rand(*s) for s in shapes]
    compare(equation, lambda T, *x: T.einsum(equation, *x), *operands, may_raise=ERRORS)
    try:
        torch.einsum(equation, *operands)
    except RuntimeError:
        return
    gradients(equation, lambda T, *x: T.einsum(equation, *x), *operands, second=True)


CONVOLUTIONS = [  # input, weight, options
    ((2, 4, 7, 8), (6, 2, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
    ((3, 6, 6), (4, 3, 3, 3), {"padding": "same"}),
    ((2, 3, 6, 6), (4, 3, 2, 2), {"padding": "same", "dilation": 2}),
    ((2, 3, 6, 6), (4, 3, 1, 1), {}),
    ((2, 3, 6, 6), (3, 1, 3, 3), {"stride": 2, "padding": 1, "groups": 3}),
    ((2, 3, 9), (4, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 3, 5, 6, 5), (4, 3, 3, 2, 3), {"stride": 2, "padding": 1}),
]


@pytest.mark.parametrize(("x", "w", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_convolution(x, w, options, dtype):
    """With bias; first and second derivatives."""
    n = len(w) - 2
    tensors = rand(*x, dtype=dtype), rand(*w, dtype=dtype), rand(w[0], dtype=dtype)

    def call(T, *t):
        return getattr(T.nn.functional, f"conv{n}d")(*t, **options)

    compare("conv", call, *tensors)
    gradients("conv", call, *tensors, second=True)


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((2, 4, 5, 6), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "output_padding": (1, 0), "groups": 2}),
        ((4, 5, 6), (4, 3, 2, 2), {"stride": 3, "output_padding": 2}),
        ((2, 4, 5, 6), (4, 3, 3, 3), {"stride": (3, 2), "padding": 1, "output_padding": (2, 1), "dilation": (1, 2)}),
        ((2, 3, 9), (3, 4, 3), {"stride": 2, "padding": 1}),
        ((2, 3, 4, 3, 4), (3, 4, 3, 2, 3), {"stride": 2, "padding": 1}),
        ((2, 3, 4), (3, 4, 3), {"output_padding": 2}),
    ],
)
def test_transposed_convolution(x, w, options):
    """Values, derivatives, and the same type of error."""
    n = len(w) - 2
    tensors = rand(*x), rand(*w), rand(w[1] * options.get("groups", 1))

    def call(T, *t):
        return getattr(T.nn.functional, f"conv_transpose{n}d")(*t, **options)

    compare("conv_transpose", call, *tensors, may_raise=ERRORS)
    try:
        call(torch, *tensors)
    except RuntimeError:
        return
    gradients("conv_transpose", call, *tensors, second=True)


@pytest.mark.parametrize("options", [(3, 1, 0, 1), ((2, 3), (1, 2), (1, 0), (2, 1)), (2, 1, 0, 2), (9, 1, 0, 1)])
def test_columns(options):
    """unfold and fold."""
    x = rand(2, 3, 7, 8)
    raises = ERRORS if options[0] == 9 else ()
    compare("unfold", lambda T, t: T.nn.functional.unfold(t, *options), x, raises=raises)
    if raises:
        return
    columns = torch.nn.functional.unfold(x, *options)
    compare("fold", lambda T, t: T.nn.functional.fold(t, (7, 8), *options), columns)
    gradients("unfold", lambda T, t: T.nn.functional.unfold(t, *options), x, second=True)


IMAGES = [(1, (2, 3, 11)), (1, (1, 2, 3)), (2, (2, 3, 9, 10)), (2, (1, 2, 3, 3)), (3, (2, 3, 6, 7, 8)), (2, (3, 9, 10))]


def distinct(*shape):
    return torch.randperm(math.prod(shape), generator=GENERATOR).reshape(shape).double() / 7


@pytest.mark.parametrize(("n", "shape"), IMAGES)
def test_max_pool(n, shape):
    """Values, indices and gradients over windows, strides, padding, dilation and ceil_mode; errors too."""
    x = distinct(*shape)
    for options in itertools.product((2, 3), (None, 2, 3), (0, 1), (1, 2), (False, True)):

        def call(T, t, options=options):
            return tuple(getattr(T.nn.functional, f"max_pool{n}d")(t, *options, return_indices=True))

        compare(f"max_pool{n}d {options}", call, x, may_raise=ERRORS)
    gradients("max_pool", lambda T, t: getattr(T.nn.functional, f"max_pool{n}d")(t, 3, 2, 1), x)


WINDOWS = ((7, 7), ((14, 6), 7), ((1, 9), 9), ((9, 64), (3, 64)), (9, (4, 5)), ((8, 65), 1), (4, 4))


@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
def test_places_of_large_windows(kernel, stride):
    """Of equal elements the first is the maximum, of NaN the last."""
    x = torch.randint(-3, 4, (2, 3, 17, 65), generator=GENERATOR).float()
    x[x == 3] = torch.where(torch.arange((x == 3).sum()) % 9 == 0, math.nan, -math.inf)
    compare("max_pool2d", lambda T, t: tuple(T.nn.functional.max_pool2d(t, kernel, stride, return_indices=True)), x)


@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
def test_gradient_of_means_of_large_windows(kernel, stride):
    gradients("avg_pool2d", lambda T, t: T.nn.functional.avg_pool2d(t, kernel, stride), rand(2, 3, 17, 65))


@pytest.mark.parametrize(("n", "shape"), IMAGES)
def test_avg_pool(n, shape):
    """Values over windows, strides, padding, ceil_mode and the ways to count; gradients of some."""
    x = rand(*shape)
    for options in itertools.product((2, 3), (None, 1, 2), (0, 1), (False, True), (False, True)):

        def call(T, t, options=options):
            return getattr(T.nn.functional, f"avg_pool{n}d")(t, *options)

        compare(f"avg_pool{n}d {options}", call, x)
        if options[0] == 3 and options[1] == 2:
            gradients(f"avg_pool{n}d {options}", call, x)
    if n > 1:
        compare("divisor", lambda T, t: getattr(T.nn.functional, f"avg_pool{n}d")(t, 3, divisor_override=5), x)


@pytest.mark.parametrize(("n", "shape"), IMAGES)
def test_adaptive_pool(n, shape):
    """Sizes that divide the image and sizes that do not."""
    x = distinct(*shape)
    for size in (1, 2, 3, 5, (None,) * n):

        def largest(T, t, size=size):
            return tuple(getattr(T.nn.functional, f"adaptive_max_pool{n}d")(t, size, return_indices=True))

        def average(T, t, size=size):
            return getattr(T.nn.functional, f"adaptive_avg_pool{n}d")(t, size)

        if size == (None,) * n and n == 1:
            continue
        compare(f"adaptive_max_pool {size}", largest, x)
        compare(f"adaptive_avg_pool {size}", average, x)
        gradients(f"adaptive_avg_pool {size}", average, x)


def test_other_pools():
    """Power mean, unpooling, fractional windows with given samples, NaN and minus infinity, dtypes."""
    gradients("lp_pool", lambda T, t: T.nn.functional.lp_pool2d(t, 2, 3, 2), rand(2, 3, 9, 10))
    x = distinct(2, 3, 8, 9)
    y, i = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    compare("unpool", lambda T, a, b: T.nn.functional.max_unpool2d(a, b, 2, output_size=(8, 9)), y, i)
    samples = torch.rand(2, 3, 2, generator=GENERATOR).double()

    def fractional(T, t, s):
        options = {"return_indices": True, "_random_samples": s}
        return tuple(T.nn.functional.fractional_max_pool2d(t, (2, 3), (4, 5), **options))

    compare("fractional", fractional, x, samples)
    x = torch.randn(2, 3, 7, 8, generator=GENERATOR)
    x[0, 0, 2, 3], x[1] = float("nan"), -float("inf")
    compare("nan", lambda T, t: tuple(T.nn.functional.max_pool2d(t, 3, 2, return_indices=True)), x)
    for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.uint8):
        x = rand(2, 3, 7, 8, dtype=dtype)
        compare("max_pool", lambda T, t: T.nn.functional.max_pool2d(t, 3, 2), x)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}])
def test_attention(options):
    """Values and derivatives."""
    q, k, v = rand(2, 4, 5, 8), rand(2, 4, 6, 8), rand(2, 4, 6, 7)

    def call(T, *x):
        return T.nn.functional.scaled_dot_product_attention(*x, **options)

    compare("attention", call, q, k, v)
    gradients("attention", call, q, k, v, second=True)


@pytest.mark.parametrize("before", [0, 1, 700])
@pytest.mark.parametrize("sizes", [(2, 4, 2, 5, 6, 8, 7), (1, 2, 2, 70, 130, 16, 16), (1, 2, 1, 3, 9, 8, 260)])
@pytest.mark.parametrize("kind", ["plain", "causal", "mask"])
def test_attention_with_dropout(kind, sizes, before):
    """The weights that PyTorch drops from the same seed, wherever its generator stands, and what it draws next."""
    b, h, kh, n, s, e, ev = sizes
    q, k, v = rand(b, h, n, e), rand(b, kh, s, e), rand(b, kh, s, ev)
    mask = torch.rand(b, 1, n, s, generator=GENERATOR) > 0.3

    def call(T, *x):
        T.manual_seed(3)
        T.rand(before)  # an odd number of words is drawn before
        options = {"is_causal": True} if kind == "causal" else {}
        if kind == "mask":
            options["attn_mask"] = mask if T is torch else T.from_numpy(mask.numpy())
        return T.nn.functional.scaled_dot_product_attention(*x, dropout_p=0.3, enable_gqa=h != kh, **options)

    compare("dropout", lambda T, *x: (call(T, *x), T.rand(3)), q, k, v)
    gradients("dropout", call, q, k, v, second=n < 10)


def test_attention_masks():
    """Bool masks (a row that sees nothing is 0), masks of numbers, grouped heads."""
    q, k, v = rand(2, 4, 5, 8), rand(2, 4, 6, 8), rand(2, 4, 6, 7)
    mask = torch.rand(5, 6, generator=GENERATOR) > 0.4
    mask[2] = False

    def call(T, *x, **options):
        return T.nn.functional.scaled_dot_product_attention(*x, **options)

    compare("mask", call, q, k, v, mask)
    gradients("numbers", call, q, k, v, rand(2, 1, 5, 6))
    compare("gqa", lambda T, *x: call(T, *x, enable_gqa=True), q, k[:, :2], v[:, :2])


BAD = [
    lambda T: T.rand(2, 3) @ T.rand(2, 3),
    lambda T: T.rand(2, 3) @ T.rand(2),
    lambda T: T.rand(2, 3) @ T.rand(3, 2).double(),
    lambda T: T.rand(2, 3, 4) @ T.rand(3, 4, 5),
    lambda T: T.ones(2, 2, dtype=T.bool) @ T.ones(2, 2, dtype=T.bool),
    lambda T: T.mm(T.rand(3), T.rand(3, 2)),
    lambda T: T.bmm(T.rand(2, 3), T.rand(1, 2, 3)),
    lambda T: T.dot(T.rand(2), T.rand(3)),
    lambda T: T.addmm(T.rand(3), T.rand(2, 3), T.rand(3, 4)),
    lambda T: T.nn.functional.linear(T.rand(2, 3), T.rand(4, 2)),
    lambda T: T.nn.functional.linear(T.rand(2, 3), T.rand(4, 3), T.rand(3)),
    lambda T: T.nn.functional.conv2d(T.rand(1, 3, 4, 4), T.rand(2, 4, 3, 3)),
    lambda T: T.nn.functional.conv2d(T.rand(1, 3, 2, 2), T.rand(2, 3, 3, 3)),
    lambda T: T.nn.functional.conv2d(T.rand(1, 3, 4, 4), T.rand(2, 3, 3, 3), stride=0),
    lambda T: T.nn.functional.conv2d(T.rand(1, 4, 4, 4), T.rand(3, 2, 3, 3), groups=2),
    lambda T: T.nn.functional.conv2d(T.rand(1, 3, 4, 4), T.rand(2, 3, 3, 3), padding=(1, 1, 1)),
    lambda T: T.nn.functional.max_pool2d(T.rand(1, 3, 4, 4), 2, padding=2),
    lambda T: T.nn.functional.avg_pool2d(T.rand(1, 3, 4, 4), 7),
    lambda T: T.nn.functional.avg_pool2d(T.ones(1, 3, 4, 4, dtype=T.int32), 2),
]


@pytest.mark.parametrize("i", range(len(BAD)))
def test_errors(i):
    """The same type of exception."""
    compare(f"bad {i}", BAD[i], raises=ERRORS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("factors", [(-4.775, 2.0315), (1, 0.3), (0.7, 1)])
def test_added_products_are_rounded_once(dtype, factors):
    """Factors and sums are computed in float32: the error is that of rounding the exact result."""
    beta, alpha = factors
    a, b, c = rand(32, 64, dtype=dtype), rand(64, 32, dtype=dtype), rand(32, 32, dtype=dtype) * 10
    exact = beta * c.double() + alpha * (a.double() @ b.double())
    got = taeda.addmm(*map(translate, (c, a, b)), beta=beta, alpha=alpha)
    error, least = ((x.double() - exact).square().mean().sqrt() for x in (back(got), exact.to(dtype)))
    assert error <= 1.01 * least


@pytest.mark.parametrize("beta", [0.5, 2.0, 0.0, 0, 2, True])
def test_factors_of_integers_without_a_product(beta):
    """Where the inner dimension is empty PyTorch multiplies by beta alone, which a float cannot be."""

    def outcome(t, name, *sizes):
        try:
            return getattr(t, name)(*[t.ones(*s, dtype=t.int64) for s in sizes], beta=beta).tolist()
        except RuntimeError:
            return "refused"

    for call in (
        ("addmm", (2, 3), (2, 0), (0, 3)), ("addmm", (0, 3), (0, 0), (0, 3)), ("addmv", (2,), (2, 0), (0,)),
        ("addbmm", (2, 3), (0, 2, 2), (0, 2, 3)), ("baddbmm", (4, 2, 3), (4, 2, 0), (4, 0, 3)),
        ("addmm", (2, 3), (2, 1), (1, 3)),
    ):  # fmt: skip
        assert outcome(taeda, *call) == outcome(torch, *call), call
