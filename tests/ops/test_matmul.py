"""Matrix products: ranks, layouts, dtypes, errors; derivatives against finite differences."""

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck
from taeda.nn import functional as F

RANKS = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((2, 1, 5, 3), (4, 3, 2)),
]


def rand(*shape, dtype=taeda.float64, requires_grad=True):
    return taeda.rand(*shape, dtype=dtype).sub_(0.5).requires_grad_(requires_grad)


@pytest.mark.parametrize(
    "shapes", [*RANKS, ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((1, 300), (300, 90)), ((70, 300), (300, 90))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint16", "complex64"])
def test_values(shapes, dtype):
    """NumPy's product, in the operands' dtype."""
    taeda.manual_seed(0)
    drawn = taeda.complex64 if dtype == "complex64" else taeda.float32
    a, b = (taeda.randn(*s, dtype=drawn).mul(5).to(getattr(taeda, dtype)) for s in shapes)
    got, want = (a @ b).numpy(), a.numpy() @ b.numpy()
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.allclose(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("n", [1, 7, 1000, 40001])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_inner_products_of_complex_vectors(dtype, n):
    """With and without the conjugate, of neighbours and of every second number, and under ``vmap``."""
    taeda.manual_seed(0)
    x, y = (taeda.randn(3, 2 * n, dtype=getattr(taeda, dtype)) for _ in range(2))
    for a, b in ((x[0], y[0]), (x[0, ::2], y[0, ::2]), (x[0].conj(), y[0])):
        u, v = a.resolve_conj().numpy(), b.numpy()
        assert np.allclose(taeda.dot(a, b).numpy(), (u * v).sum(), rtol=1e-4, atol=1e-3 * n**0.5)
        assert np.allclose(taeda.vdot(a, b).numpy(), np.vdot(u, v), rtol=1e-4, atol=1e-3 * n**0.5)
    one_by_one = taeda.stack([taeda.vdot(a, y[0]) for a in x])
    assert taeda.allclose(taeda.vmap(taeda.vdot, (0, None))(x, y[0]), one_by_one, rtol=1e-4, atol=1e-3 * n**0.5)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_half_precision_sums_in_float32(dtype):
    """The error is that of the one rounding at the end."""
    taeda.manual_seed(0)
    a, b = taeda.rand(20, 700).to(dtype), taeda.rand(700, 30).to(dtype)
    got, want = a @ b, a.double() @ b.double()
    assert got.dtype == dtype
    eps = 2**-11 if dtype == taeda.float16 else 2**-8
    assert bool(((got.double() - want).abs() <= 1.1 * eps * want.abs()).all())


def test_views():
    """Operands of any strides: transposed, sliced, negative steps, expanded."""
    taeda.manual_seed(0)
    x = taeda.randn(6, 40, 4, 16)
    q, k = x.permute(0, 2, 1, 3), x.permute(0, 2, 3, 1)
    for a, b in ((q, k), (q[:, :, ::2], k[..., ::3]), (q[::-1], k), (q[:, :1].expand(6, 4, 40, 16), k), (q, k[0])):
        assert np.allclose((a @ b).numpy(), a.numpy() @ b.numpy(), atol=1e-4)


@pytest.mark.parametrize("shapes", RANKS)
def test_derivatives(shapes):
    """First and second derivatives."""
    taeda.manual_seed(0)
    inputs = tuple(rand(*s) for s in shapes)
    assert gradcheck(taeda.matmul, inputs)
    assert gradgradcheck(taeda.matmul, inputs)


def test_complex_derivatives():
    """Gradients are those of PyTorch's convention (conjugate)."""
    taeda.manual_seed(0)
    a, b = rand(2, 3, dtype=taeda.complex128), rand(3, 4, dtype=taeda.complex128)
    assert gradcheck(taeda.matmul, (a, b))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mm", ((2, 3), (3, 4))),
        ("bmm", ((5, 2, 3), (5, 3, 4))),
        ("mv", ((2, 3), (3,))),
        ("dot", ((3,), (3,))),
        ("outer", ((2,), (3,))),
        ("inner", ((2, 3), (4, 3))),
        ("kron", ((2, 3), (2, 2))),
        ("addmm", ((4,), (2, 3), (3, 4))),
        ("addmv", ((2,), (2, 3), (3,))),
        ("addr", ((2, 3), (2,), (3,))),
        ("baddbmm", ((2, 4), (5, 2, 3), (5, 3, 4))),
        ("addbmm", ((2, 4), (5, 2, 3), (5, 3, 4))),
    ],
)
def test_family(name, shapes):
    """Values against NumPy where it has the function, derivatives for all; the factors of the add-family."""
    taeda.manual_seed(0)
    inputs = tuple(rand(*s) for s in shapes)
    function = getattr(taeda, name)
    arrays = [x.detach().numpy() for x in inputs]
    references = {
        "addmm": lambda d, a, b: d + a @ b,
        "addmv": lambda d, a, b: d + a @ b,
        "addr": lambda d, a, b: d + np.outer(a, b),
        "baddbmm": lambda d, a, b: d + a @ b,
        "addbmm": lambda d, a, b: d + (a @ b).sum(0),
    }
    reference = references.get(name) or getattr(np, name, None) or np.matmul
    assert np.allclose(function(*inputs).detach().numpy(), reference(*arrays))
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)
    if name in references:
        zero = np.zeros_like(arrays[0])
        scaled = 3 * (arrays[0] + zero) + 2 * (reference(*arrays) - arrays[0])
        assert np.allclose(function(*inputs, beta=3, alpha=2).detach().numpy(), scaled)
        nan = taeda.full(shapes[0], float("nan"), dtype=taeda.float64)
        ignored = function(nan, *inputs[1:], beta=0)
        assert np.allclose(ignored.detach().numpy(), reference(zero, *arrays[1:]))
        assert gradcheck(lambda *x: function(*x, beta=3, alpha=2), inputs)


def test_linear():
    """Any leading dimensions, with and without bias, and a weight of one dimension."""
    taeda.manual_seed(0)
    for lead in ((), (5,), (2, 3)):
        x, w, b = rand(*lead, 4), rand(6, 4), rand(6)
        assert np.allclose(
            F.linear(x, w, b).detach().numpy(), x.detach().numpy() @ w.detach().numpy().T + b.detach().numpy()
        )
        assert gradcheck(F.linear, (x, w, b)) and gradgradcheck(F.linear, (x, w, b))
        assert gradcheck(F.linear, (x, rand(4)))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("bij,bjk->bik", ((5, 2, 3), (5, 3, 4))),
        ("ij->ji", ((2, 3),)),
        ("ii->i", ((3, 3),)),
        ("ii", ((3, 3),)),
        ("ij->", ((2, 3),)),
        ("i,j->ij", ((3,), (4,))),
        ("...ij,...jk->...ik", ((2, 5, 2, 3), (5, 3, 4))),
        ("...ij,jk", ((2, 5, 2, 3), (3, 4))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
        ("bhid,bhjd->bhij", ((2, 3, 4, 5), (2, 3, 6, 5))),
        ("iji,j->i", ((3, 2, 3), (2,))),
        ("bn,anm,bm->ba", ((2, 3), (5, 3, 4), (2, 4))),
    ],
)
def test_einsum(equation, shapes):
    """NumPy's values; the operands also as one list; derivatives."""
    taeda.manual_seed(0)
    inputs = tuple(rand(*s) for s in shapes)
    want = np.einsum(equation, *(x.detach().numpy() for x in inputs))
    assert np.allclose(taeda.einsum(equation, *inputs).detach().numpy(), want)
    assert np.allclose(taeda.einsum(equation, list(inputs)).detach().numpy(), want)
    assert gradcheck(lambda *x: taeda.einsum(equation, *x), inputs)


def test_tensordot():
    """A number of dimensions, and lists of them."""
    taeda.manual_seed(0)
    a, b = taeda.randn(2, 3, 4), taeda.randn(3, 4, 5)
    assert np.allclose(taeda.tensordot(a, b, 2).numpy(), np.tensordot(a.numpy(), b.numpy(), 2), atol=1e-5)
    got = taeda.tensordot(a, b, ([2, 1], [1, 0])).numpy()
    assert np.allclose(got, np.tensordot(a.numpy(), b.numpy(), ([2, 1], [1, 0])), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: taeda.rand(2, 3) @ taeda.rand(2, 3), RuntimeError, r"cannot be multiplied \(2x3 and 2x3\)"),
        (lambda: taeda.rand(2, 3) @ taeda.rand(2), RuntimeError, "size mismatch"),
        (lambda: taeda.rand(2, 3) @ taeda.rand(3, 2).double(), RuntimeError, "float32 != float64"),
        (lambda: taeda.rand(2, 3, 4) @ taeda.rand(3, 4, 5), RuntimeError, "must match the size of tensor b"),
        (lambda: taeda.tensor(1.0) @ taeda.rand(2), RuntimeError, "at least 1D"),
        (lambda: taeda.ones(2, 2, dtype=taeda.bool) @ taeda.ones(2, 2, dtype=taeda.bool), NotImplementedError, "Bool"),
        (lambda: taeda.mm(taeda.rand(3), taeda.rand(3, 2)), RuntimeError, "must be a matrix"),
        (lambda: taeda.bmm(taeda.rand(1, 2, 3), taeda.rand(1, 2, 3)), RuntimeError, r"\[1, 3\] but got: \[1, 2\]"),
        (lambda: taeda.dot(taeda.rand(2), taeda.rand(3)), RuntimeError, "inconsistent tensor size"),
        (lambda: taeda.addmm(taeda.rand(3), taeda.rand(2, 3), taeda.rand(3, 4)), RuntimeError, "cannot be broadcast"),
        (lambda: F.linear(taeda.rand(2, 3), taeda.rand(4, 2)), RuntimeError, r"\(2x3 and 2x4\).*expects 2"),
        (lambda: F.linear(taeda.rand(2, 3), taeda.rand(4, 3), taeda.rand(3)), RuntimeError, "bias"),
        (lambda: taeda.einsum("ij,jk->ik", taeda.rand(2, 3)), RuntimeError, "operands were provided"),
        (lambda: taeda.einsum("ij,jk->ik", taeda.rand(2, 3), taeda.rand(4, 5)), RuntimeError, "does not broadcast"),
    ],
)
def test_errors(call, error, says):
    """PyTorch's exception types; the text has the shapes."""
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (16, 200, 70),
        (31, 130, 40),
        (64, 700, 600),
        (90, 500, 90),
        (200, 300, 520),
        (270, 270, 300),
        (300, 530, 2100),
        (280, 4200, 40),
        (19, 77, 300),
        (300, 97, 700),
    ],
)
def test_every_way(m, n, k):
    """The ways of the launcher: operands in place and packed, by rows and by columns, C turned, k in parts."""
    rng = np.random.default_rng(0)
    x, y, bias, d = (rng.standard_normal(s).astype("float32") for s in ((m, k), (k, n), (n,), (m, n)))
    a, b = taeda.from_numpy(x), taeda.from_numpy(y)
    by_columns, turned = taeda.from_numpy(x.T.copy()).t(), taeda.from_numpy(y.T.copy())
    want = x.astype("float64") @ y
    bound = 2e-6 * np.sqrt(k) * np.abs(x).max() * np.abs(y).max()
    for left in (a, by_columns):
        for right in (b, turned.t()):
            assert np.abs((left @ right).numpy() - want).max() <= bound
            got = taeda.addmm(taeda.from_numpy(d), left, right)
            assert np.abs(got.numpy() - want - d).max() <= bound
        assert np.abs(F.linear(left, turned, taeda.from_numpy(bias)).numpy() - want - bias).max() <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("k, n", [(515, 1301), (37, 17001)])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_few_rows_by_a_large_matrix(rows, k, n, dtype):
    """A matrix by rows, near each other or far, that is read once, in strips of columns; neither size fills the last step."""
    taeda.manual_seed(0)
    x, b, d, row = (taeda.randn(*s).to(getattr(taeda, dtype)) for s in ((2, rows, k), (2, k, n), (rows, n), (n,)))
    bound = {"float32": 2e-4, "float64": 1e-12, "bfloat16": 1.0}[
        dtype
    ]  # sums reach 100, of bfloat16 half a unit is 0.25

    def is_near(got, want):
        assert got.dtype is x.dtype and (got.double() - want).abs().max().item() <= bound

    want = x.double() @ b.double()
    is_near(x @ b, want)
    is_near(x[0] @ b[0], want[0])
    is_near(taeda.addmm(d, x[1], b[1]), want[1] + d.double())
    is_near(F.linear(x[0], b[0].t(), row), want[0] + row.double())
    is_near(F.linear(x[0], b[0].t().contiguous(), row), want[0] + row.double())
    is_near(b.mT[0, :, :] @ x[0, 0], want[0, 0])
    is_near(x[0].t().contiguous().t() @ b[0], want[0])


def test_threads_do_not_change_a_bit():
    """Products large enough to be cut into tasks, packed ahead and not."""
    taeda.manual_seed(0)
    a, b, c = taeda.randn(300, 400), taeda.randn(400, 330), taeda.randn(100, 400)
    batch, tokens, wide = taeda.randn(40, 50, 60), taeda.randn(64, 2100), taeda.randn(600, 2100)
    results = []
    for n in (1, 2, 3):
        taeda.set_num_threads(n)
        results.append([a @ b, c @ b, a.t() @ a, batch @ batch.mT, F.linear(a, b.t().contiguous())])
        results[-1] += [F.linear(tokens, wide), wide @ wide.t(), wide.t() @ wide, a[:1, :300] @ wide[:300]]
        results[-1] += [a[:2, :300].bfloat16() @ wide[:300].bfloat16()]
    for other in results[1:]:
        assert all(taeda.equal(x, y) for x, y in zip(results[0], other, strict=True))


@pytest.mark.parametrize("m", (16, 17, 96, 97, 264, 265, 400))
@pytest.mark.parametrize("k, n", ((300, 64), (520, 200), (2100, 128)))
def test_a_product_does_not_depend_on_where_its_operands_begin(m, k, n):
    a, b = taeda.randn(m, k), taeda.randn(k, n)
    for rows in (a, a.t().contiguous().t()):
        expected = rows @ b
        for shift in (1, 4, 8):
            moved = taeda.empty(k * n + shift)[shift:].view(k, n).copy_(b)
            assert taeda.equal(rows @ moved, expected)


def test_products_of_no_groups():
    offs = taeda.zeros(0, dtype=taeda.int32)
    assert F.grouped_mm(taeda.ones(4, 16), taeda.ones(16, 8), offs=offs).shape == (0, 4, 8)


def test_products_of_groups():
    a, b, ends = taeda.randn(6, 4), taeda.randn(2, 4, 3), taeda.tensor([2, 5], dtype=taeda.int32)
    a.requires_grad_()
    made = F.grouped_mm(a, b, offs=ends)
    made.sum().backward()
    assert a.grad[5].tolist() == [0.0] * 4 and made[5].tolist() == [0.0] * 3
    np.testing.assert_allclose(made[:2].detach(), (a[:2] @ b[0]).detach(), rtol=1e-5)
    np.testing.assert_allclose(made[2:5].detach(), (a[2:5] @ b[1]).detach(), rtol=1e-5)
    by_columns = F.grouped_mm(b.mT, a.detach().t(), offs=ends)
    np.testing.assert_allclose(by_columns.t(), made.detach(), rtol=1e-5)
    summed = F.grouped_mm(taeda.randn(3, 6), a.detach(), offs=ends)
    assert summed.shape == (2, 3, 4)
    assert F.grouped_mm(b, b.mT).shape == (2, 4, 4)
    assert F.grouped_mm(a.to("meta"), b.to("meta"), offs=ends.to("meta")).shape == (6, 3)
    for wrong in ({}, {"offs": ends.long()}, {"offs": ends, "bias": taeda.ones(3)}, {"offs": ends[:1]}):
        with pytest.raises(RuntimeError):
            F.grouped_mm(a, b, **wrong)
    assert taeda.equal(F.grouped_mm(a, b, offs=taeda.tensor([2, 90], dtype=taeda.int32))[:5], made[:5])
    for ends in ([4, 2], [-2, 5]):
        with pytest.raises(RuntimeError, match="ascending"):
            F.grouped_mm(a, b, offs=taeda.tensor(ends, dtype=taeda.int32))
    with pytest.raises(RuntimeError, match="groups"):
        F.grouped_mm(b[:1], b.mT)


def test_products_with_scales():
    eye = taeda.eye(2).to(taeda.float8_e4m3fn)
    row, whole = F.ScalingType.RowWise, F.ScalingType.TensorWise
    made = F.scaled_mm(eye, eye, taeda.tensor([[2.0], [3.0]]), row, taeda.tensor([[5.0, 7.0]]), row)
    assert made.dtype is taeda.bfloat16 and made.tolist() == [[10.0, 0.0], [0.0, 21.0]]
    one = taeda.ones(())
    made = F.scaled_mm(eye, eye, [one], [whole], one, whole, bias=taeda.ones(2), output_dtype=taeda.float32)
    assert made.tolist() == [[2.0, 1.0], [1.0, 2.0]]
    with pytest.raises(NotImplementedError):
        F.scaled_mm(eye, eye, one, F.ScalingType.BlockWise1x16, one, whole)
    rows = taeda.ones(2, 1)
    for wrong, text in {
        (eye, eye, one, row, one, row): "RowWise",
        (eye, eye, rows, row, rows, row): "RowWise",
        (eye, eye, rows, row, one, whole): "one recipe",
        (eye, eye, one.double(), whole, one, whole): "float32",
        (eye.float(), eye, one, whole, one, whole): "float8",
        (eye, eye, one, whole, one, whole, None, None, taeda.ones(3)): "bias of 2",
    }.items():
        with pytest.raises(ValueError, match=text):
            F.scaled_mm(*wrong)
    assert F.scaled_mm(eye, eye, one, whole, one, whole, output_dtype=None).dtype is eye.dtype
