"""Linear algebra against PyTorch: values, first and second gradients, batches, complex matrices and errors."""

import operator
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

from tests.conformance.peer import ERRORS, close, compare, gradients, ours  # noqa: E402


def matrix(*shape, dtype=torch.float64, seed=0, kind="general"):
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    if kind == "positive":
        return x @ x.mH + shape[-1] * torch.eye(shape[-1], dtype=dtype)
    if kind == "hermitian":
        return x + x.mH
    if kind == "regular":
        return x + 3 * torch.eye(shape[-1], dtype=dtype)
    return x


#: name, function of (framework, A), kind of matrix, sizes
CASES = {
    "inv": (lambda T, A: T.linalg.inv(A), "regular", (2, 4, 4)),
    "det": (lambda T, A: T.linalg.det(A), "general", (3, 4, 4)),
    "slogdet": (lambda T, A: T.linalg.slogdet(A).logabsdet, "general", (3, 4, 4)),
    "solve": (lambda T, A: T.linalg.solve(A, A[..., :2] * 2 + 1), "regular", (2, 4, 4)),
    "solve right": (lambda T, A: T.linalg.solve(A, A[..., :2, :] * 2 + 1, left=False), "regular", (2, 4, 4)),
    "solve vector": (lambda T, A: T.linalg.solve(A, A[..., 0]), "regular", (2, 4, 4)),
    "solve_triangular": (lambda T, A: T.linalg.solve_triangular(A, A[..., :3] + 1, upper=True), "regular", (2, 4, 4)),
    "unitriangular": (
        lambda T, A: T.linalg.solve_triangular(A / 9, A[..., :3], upper=False, unitriangular=True),
        "regular",
        (4, 4),
    ),
    "cholesky": (lambda T, A: T.linalg.cholesky(A @ A.mH + T.eye(4, dtype=A.dtype)), "general", (2, 4, 4)),
    "cholesky upper": (
        lambda T, A: T.linalg.cholesky(A @ A.mH + T.eye(4, dtype=A.dtype), upper=True),
        "general",
        (4, 4),
    ),
    "qr": (lambda T, A: T.linalg.qr(A), "general", (2, 5, 3)),
    "qr wide": (lambda T, A: T.linalg.qr(A), "general", (2, 3, 5)),
    "qr of transposed": (lambda T, A: T.linalg.qr(A.mT), "general", (2, 4, 4)),
    "qr complete": (lambda T, A: T.linalg.qr(A, "complete"), "general", (2, 3, 3)),
    "qr of many rows": (lambda T, A: T.linalg.qr(A), "general", (2, 40, 33)),
    "eigvalsh": (lambda T, A: T.linalg.eigvalsh(A + A.mH), "general", (2, 4, 4)),
    "eigh projector": (
        lambda T, A: (lambda V: V[..., :1] @ V[..., :1].mH)(T.linalg.eigh(A + A.mH)[1]),
        "general",
        (2, 4, 4),
    ),
    "eigvals": (lambda T, A: (T.linalg.eigvals(A) ** 2).sum(-1), "general", (2, 4, 4)),
    "svdvals": (lambda T, A: T.linalg.svdvals(A), "general", (2, 5, 3)),
    "svd product": (
        lambda T, A: (lambda U, S, V: (U * S[..., None, :] ** 2) @ V)(*T.linalg.svd(A, False)),
        "general",
        (2, 3, 5),
    ),
    "pinv": (lambda T, A: T.linalg.pinv(A), "general", (2, 5, 3)),
    "lu": (lambda T, A: T.linalg.lu_factor(A)[0], "regular", (2, 4, 4)),
    "lu_solve": (lambda T, A: T.linalg.lu_solve(*T.linalg.lu_factor(A), A[..., :2]), "regular", (2, 4, 4)),
    "matrix_norm nuc": (lambda T, A: T.linalg.matrix_norm(A, "nuc"), "general", (2, 4, 3)),
    "matrix_norm 1": (lambda T, A: T.linalg.matrix_norm(A, 1), "general", (2, 4, 3)),
    "matrix_norm 2": (lambda T, A: T.linalg.matrix_norm(A, 2, keepdim=True), "general", (2, 4, 3)),
    "norm": (lambda T, A: T.linalg.norm(A), "general", (4, 3)),
    "matrix_exp": (lambda T, A: T.linalg.matrix_exp(A), "general", (2, 3, 3)),
    "matrix_power": (lambda T, A: T.linalg.matrix_power(A, 5), "general", (2, 3, 3)),
    "matrix_power -2": (lambda T, A: T.linalg.matrix_power(A, -2), "regular", (2, 3, 3)),
    "cross": (lambda T, A: T.linalg.cross(A, A.flip(0)), "general", (4, 3)),
    "multi_dot": (lambda T, A: T.linalg.multi_dot([A, A.mH, A]), "general", (4, 3)),
    "cond": (lambda T, A: T.linalg.cond(A), "regular", (2, 4, 4)),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("name", CASES)
def test_against_torch(name, dtype):
    function, kind, shape = CASES[name]
    theirs = matrix(*shape, dtype=dtype, kind=kind).requires_grad_()
    A = ours(theirs)
    want, got = function(torch, theirs), function(taeda, A)
    close(got, want, rtol=1e-8, atol=1e-10)

    def scalar(x):
        if isinstance(x, tuple):
            return scalar(x[0]) + scalar(x[1] * 2)
        return (x.real**2 + x.imag * 0.5).sum() if x.is_complex() else (x**2).sum()

    (g_want,) = torch.autograd.grad(scalar(want), theirs, create_graph=True)
    (g_got,) = taeda.autograd.grad(scalar(got), A, create_graph=True)
    close(g_got, g_want, rtol=1e-7, atol=1e-8)
    if name.startswith("qr") or name in ("lu", "eigvals", "lu_solve"):
        return
    (h_want,) = torch.autograd.grad(scalar(g_want), theirs)
    (h_got,) = taeda.autograd.grad(scalar(g_got), A)
    close(h_got, h_want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize(
    "sizes", [(1, 1), (3, 3), (7, 2), (2, 7), (32, 32), (32, 5), (33, 32), (0, 3), (3, 0), (5, 4, 4)]
)
def test_small_qr(dtype, sizes):
    """Signs are LAPACK's; columns of zeros, huge and tiny numbers keep Q orthonormal; NaN comes out."""
    rtol = 1e-4 if dtype in (torch.float32, torch.complex64) else 1e-10
    A = matrix(*sizes, dtype=dtype)
    for mode in ("reduced", "complete", "r"):
        compare("qr", lambda T, A, mode: T.linalg.qr(A, mode), A, mode, tolerance={"rtol": rtol, "atol": rtol})
    if not A.numel():
        return
    scale = 1e150 if dtype in (torch.float64, torch.complex128) else 1e30
    lone = torch.zeros_like(A)
    lone[..., -1, -1] = 2
    for B in (A * 0, A * scale, A / scale, A / scale / scale, lone):
        Q, R = taeda.linalg.qr(ours(B), "complete")
        close(
            Q @ Q.mH, torch.eye(sizes[-2], dtype=dtype).expand(*sizes[:-2], sizes[-2], sizes[-2]), rtol=rtol, atol=rtol
        )
        close(Q @ (R / scale), B / scale, rtol=rtol, atol=rtol)
    assert taeda.linalg.qr(ours(A * float("nan")))[1].isnan().any()


@pytest.mark.parametrize("upper", [False, True])
def test_gradients_of_a_cholesky_factor(upper):
    """Both triangles get what PyTorch gives them; what stands in the unread one changes neither values nor the other's."""
    factor = torch.linalg.cholesky(matrix(2, 3, 3, dtype=torch.complex128, kind="positive"), upper=upper)
    right = matrix(3, 2, dtype=torch.complex128, seed=1)

    def run(T, L, B):
        L, B = L.requires_grad_(), B.requires_grad_()
        made = (T.cholesky_solve(B, L, upper), T.cholesky_inverse(L, upper))
        first = T.autograd.grad(sum((x * x.conj()).real.sum() for x in made), (L, B), create_graph=True)
        return *made, *first, *T.autograd.grad(sum(x.imag.sum() for x in first), (L, B))

    for got, want in zip(run(taeda, ours(factor), ours(right)), run(torch, factor, right), strict=True):
        close(got, want, rtol=1e-9, atol=1e-9)

    part = "triu" if upper else "tril"
    full = factor + 7 * (factor.mT - factor.mT.diagonal(0, -2, -1).diag_embed())
    clean, messy = (run(taeda, ours(L.detach().clone()), ours(right))[:4] for L in (factor, full))
    for got, want in zip(messy, clean, strict=True):
        square = got.shape[-2:] == (3, 3)
        assert taeda.allclose(*(getattr(x, part)() if square else x for x in (got, want)))


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "det", "lu_factor", "inv_ex", "cholesky_ex"])
def test_singular(name):
    zero = torch.zeros(2, 3, 3)
    zero[0] = torch.eye(3)

    def run(T, A):
        function = getattr(T.linalg, name)
        return function(A, A) if name == "solve" else function(A)

    try:
        want = run(torch, zero)
    except RuntimeError as error:
        with pytest.raises(taeda.linalg.LinAlgError) as caught:
            run(taeda, ours(zero))
        assert isinstance(caught.value, RuntimeError)
        assert str(error).split(":")[0].removeprefix("torch.") == str(caught.value).split(":")[0]
        return
    got = run(taeda, ours(zero))
    if name.endswith("_ex"):
        close(got[1], want[1])
    else:
        close(got, want) if name == "det" else close(got[0], want[0])


@pytest.mark.parametrize("call", [
    lambda T: T.linalg.inv(T.ones(2, 3)),
    lambda T: T.linalg.inv(T.ones(3)),
    lambda T: T.linalg.inv(T.ones(2, 2, dtype=T.int64)),
    lambda T: T.linalg.solve(T.ones(2, 2), T.ones(3, 2)),
    lambda T: T.linalg.matrix_norm(T.ones(3)),
    lambda T: T.linalg.matrix_norm(T.ones(3, 3), 7),
    lambda T: T.linalg.qr(T.ones(3, 3), mode="other"),
    lambda T: T.linalg.cross(T.ones(3, 2), T.ones(3, 2)),
])  # fmt: skip
def test_errors(call):
    with pytest.raises(RuntimeError):
        call(torch)
    with pytest.raises(RuntimeError, match=r"linalg|qr"):
        call(taeda)


# ---- the rest of the family ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldl(dtype, hermitian):
    A = matrix(3, 5, 5, dtype=dtype, kind="hermitian")
    A = A if hermitian else A.mT + A
    B = matrix(3, 5, 2, dtype=dtype, seed=1)
    close(taeda.linalg.ldl_factor_ex(ours(A), hermitian=hermitian), torch.linalg.ldl_factor_ex(A, hermitian=hermitian))
    LD, pivots = taeda.linalg.ldl_factor(ours(A), hermitian=hermitian)
    X = taeda.linalg.ldl_solve(LD, pivots, ours(B), hermitian=hermitian)
    close(ours(A) @ X, B, rtol=1e-3, atol=1e-4)
    LD, pivots = LD.detach(), pivots.detach()
    mine = ours(B).requires_grad_()
    X = taeda.linalg.ldl_solve(LD, pivots, mine, hermitian=hermitian)
    (g,) = taeda.autograd.grad(X, mine, ours(B.conj().resolve_conj()))
    close(g, torch.linalg.solve(A.mH, B.conj()), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_reflectors(dtype):
    A = matrix(2, 5, 3, dtype=dtype)
    compare("geqrf", lambda T, A: T.geqrf(A), A)
    packed, tau = torch.geqrf(A)
    compare("orgqr", lambda T, a, t: T.orgqr(a, t), packed, tau)
    gradients("orgqr", lambda T, a, t: T.linalg.householder_product(a, t), packed, tau, second=True)
    for left in (True, False):
        for turned in (True, False):
            other = matrix(2, *((5, 4) if left else (4, 5)), dtype=dtype, seed=2)

            def run(T, a, t, b, left=left, turned=turned):
                return T.ormqr(a, t, b, left=left, transpose=turned)

            compare("ormqr", run, packed, tau, other)
            gradients("ormqr", run, packed, tau, other, second=True)


def test_removed_and_older_names():
    for name in ("lstsq", "solve", "symeig", "eig", "matrix_rank"):
        compare(name, lambda T, name=name: getattr(T, name)(T.eye(2), T.eye(2)), raises=RuntimeError)
    A = matrix(2, 4, 4, kind="regular")
    for name, call in {
        "lu": lambda T, A: T.lu(A),
        "lu infos": lambda T, A: A.lu(get_infos=True),
        "lu_solve": lambda T, A: A[..., :2].lu_solve(*T.linalg.lu_factor(A)),
        "lu_unpack": lambda T, A: T.lu_unpack(*A.lu(), unpack_pivots=False),
        "slogdet": lambda T, A: A.slogdet(),
        "nuclear_norm": lambda T, A: T.nuclear_norm(A[0]),
        "frobenius_norm": lambda T, A: T.frobenius_norm(A, (0, 1)),
        "norm_except_dim": lambda T, A: T.norm_except_dim(A, 2, 1),
        "pinverse": lambda T, A: A.pinverse(),
        "triangular_solve": lambda T, A: A[..., :1].triangular_solve(A, upper=False),
        "svd": lambda T, A: A.svd(compute_uv=False)[1],
    }.items():
        compare(name, call, A)
    assert {n for n in dir(torch.functional) if n in torch.functional.__all__} <= set(taeda.functional.__all__)


@pytest.mark.parametrize("shape", [(7, 4), (2, 4, 7)])
def test_low_rank(shape):
    A = matrix(*shape)
    for call in (
        lambda T, A: T.svd_lowrank(A, 3),
        lambda T, A: T.pca_lowrank(A, 3),
        lambda T, A: T.svd_lowrank(A, 2, M=A.mean(-2, keepdim=True)),
    ):
        torch.manual_seed(1)
        taeda.manual_seed(1)
        (U, S, V), (u, s, v) = call(torch, A), call(taeda, ours(A))
        close(s, S, rtol=1e-9, atol=1e-10)
        close((u * s[..., None, :]) @ v.mT, (U * S[..., None, :]) @ V.mT, rtol=1e-8, atol=1e-8)
        assert torch.rand(1).item() == taeda.rand(1).item()


@pytest.mark.parametrize("method", ["ortho", "basic"])
@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg(method, largest):
    A, B = matrix(2, 24, 24, kind="hermitian"), matrix(24, 24, seed=1, kind="positive")
    steps = []
    E, X = taeda.lobpcg(
        ours(A), 3, B=ours(B), largest=largest, method=method, tracker=lambda s: steps.append(s.ivars["istep"])
    )
    want = torch.linalg.eigvals(torch.linalg.solve(B, A)).real.sort(-1, descending=largest).values[..., :3]
    close(E, want, rtol=1e-8, atol=1e-8)
    close(ours(A) @ X, torch.from_dlpack(ours(B) @ X * E.unsqueeze(-2)), rtol=1e-4, atol=1e-4)
    assert steps[0] == 0 and len(steps) > 4

    def run(T, A):
        T.manual_seed(3)
        if method == "basic":
            E, X = T.linalg.eigh(A)
            return (E.flip(-1), X.flip(-1) ** 2) if largest else (E, X**2)
        E, X = T.lobpcg(A, 2, tol=1e-11, largest=largest, niter=500)
        return E, X**2

    if method == "ortho":
        gradients("lobpcg", run, A[0], tolerance={"rtol": 1e-5, "atol": 1e-5})
    with pytest.raises(ValueError, match="3 x the number"):
        taeda.lobpcg(ours(A[0]), 9)


@pytest.mark.parametrize("needs", [(True, False), (False, True), (True, True)])
def test_lobpcg_with_gradients_is_of_the_symmetric_part(needs):
    A, B = matrix(24, 24, kind="hermitian"), matrix(24, 24, seed=1, kind="positive")
    A[0, 1], B[0, 1] = A[0, 1] + 0.1, B[0, 1] + 0.1
    start = torch.eye(24, 1, dtype=A.dtype)
    given = [m.clone().requires_grad_(need) for m, need in zip((A, B), needs, strict=True)]
    want = torch.lobpcg(given[0], 1, B=given[1], X=start)[0]
    mine = [ours(m).requires_grad_(need) for m, need in zip((A, B), needs, strict=True)]
    close(taeda.lobpcg(mine[0], 1, B=mine[1], X=ours(start))[0], want, rtol=1e-6, atol=1e-6)


def test_histograms():
    x = torch.randn(200, generator=torch.Generator().manual_seed(1))
    points, weight = x.reshape(100, 2), torch.rand(100)
    for name, call in {
        "bins": lambda T, x: T.histogram(x, 7),
        "range": lambda T, x: T.histogram(x, 7, range=(-1.0, 1.0), density=True),
        "edges": lambda T, x: T.histogram(x, T.tensor([-1.0, -0.5, 0.25, 2.0])),
        "weight": lambda T, x: x.histogram(4, weight=x.abs()),
        "one value": lambda T, x: T.histogram(x[:1], 3),
        "nothing": lambda T, x: T.histogram(x[:0], 3),
        "falling edges": lambda T, x: T.histogram(x, T.tensor([2.0, 1.0, 0.0])),
    }.items():
        compare(name, call, x)
    for name, call in {
        "range and edges": lambda T, x: T.histogram(x, T.ones(3), range=(0.0, 1.0)),
        "no bins": lambda T, x: T.histogram(x, 0),
        "range reversed": lambda T, x: T.histogram(x, 3, range=(1.0, 0.0)),
        "integers": lambda T, x: T.histogram(x.long(), 3),
        "infinite": lambda T, x: T.histogram(x / 0, 3),
        "wrong weight": lambda T, x: T.histogram(x, 3, weight=T.ones(3)),
    }.items():
        compare(name, call, x, raises=ERRORS)
    for name, call in {
        "two": lambda T, p, w: T.histogramdd(p, [3, 4], weight=w),
        "one number": lambda T, p, w: T.histogramdd(p, 3, density=True, range=[-1.0, 1.0, 0.0, 2.0]),
        "edges": lambda T, p, w: T.histogramdd(p, [T.tensor([-1.0, 0.0, 1.0]), T.tensor([0.0, 2.0])], weight=w),
    }.items():
        compare(name, call, points, weight)
    for name, call in {
        "wrong number": lambda T, p, w: T.histogramdd(p, [3]),
        "one dimension": lambda T, p, w: T.histogramdd(w, 3),
    }.items():
        compare(name, call, points, weight, raises=RuntimeError)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_lstsq(shape, driver):
    for dtype in (torch.float64, torch.complex128):
        A, B = matrix(2, *shape, dtype=dtype), matrix(2, shape[0], 2, dtype=dtype, seed=1)
        compare("lstsq", lambda T, A, B: T.linalg.lstsq(A, B, driver=driver), A, B)
        gradients("lstsq", lambda T, A, B: T.linalg.lstsq(A, B, driver=driver)[0], A, B, second=True)


@pytest.mark.parametrize("name", ["lu_factor", "lu"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_rectangular_lu(name, shape):
    for dtype in (torch.float64, torch.complex128):
        gradients(name, lambda T, A: getattr(T.linalg, name)(A), matrix(2, *shape, dtype=dtype), second=True)


@pytest.mark.parametrize("upper", [False, True])
def test_factors_without_an_inverse(upper):
    singular = [[[0.0, 0.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 0.0]]]
    for t in (taeda, torch):
        for matrix, place in ((singular[0], "element 1"), (singular[1], "element 2"), (singular, "Batch element 0")):
            with pytest.raises(t.linalg.LinAlgError, match=place):
                t.cholesky_inverse(t.tensor(matrix), upper)
        assert t.cholesky_inverse(t.zeros(0, 0), upper).shape == (0, 0)


def test_pinverse_of_a_matrix_without_full_rank():
    """Singular values that are rounding errors count as 0, which the default of PyTorch's does not see to."""
    a = taeda.randn(4, 2, generator=taeda.Generator().manual_seed(0))
    for A in (taeda.ones(2, 3), a @ a.T, taeda.arange(9.0).view(3, 3), taeda.zeros(2, 2), taeda.zeros(0, 2)):
        taeda.testing.assert_close(A.pinverse(), taeda.linalg.pinv(A))
    assert taeda.tensor([[2.0, 0.0], [0.0, 1.0]]).pinverse(0.6).tolist() == [[0.5, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError):
        taeda.ones(3).pinverse()


def test_lu_of_a_singular_matrix_is_no_error():
    for f in (torch, taeda):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert f.lu(f.zeros(2, 2))[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
            assert f.lu(f.ones(2, 2), get_infos=True)[2].item() == 2


@pytest.mark.parametrize("p", ["fro", "nuc", 1, float("inf")])
def test_condition_of_a_singular_matrix_is_infinite(p):
    for f in (torch, taeda):
        assert f.linalg.cond(f.ones(3, 3), p).item() == float("inf")
        batch = f.linalg.cond(f.stack([f.eye(2), f.ones(2, 2)]), p).tolist()
        assert batch[1] == float("inf") and batch[0] == pytest.approx({"fro": 2.0, "nuc": 4.0}.get(p, 1.0))


_REFUSING = """
    cholesky cholesky_ex inv inv_ex det slogdet eig eigvals eigh eigvalsh svd svdvals qr lu lu_factor lu_factor_ex pinv
    matrix_rank cond ldl_factor ldl_factor_ex
""".split()
_OLDER = "cholesky cholesky_inverse qr svd inverse pinverse det logdet slogdet geqrf".split()


@pytest.mark.parametrize("dtype", ["int64", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("name", [*(f"linalg.{name}" for name in _REFUSING), *_OLDER, "of two", "reflectors"])
def test_dtypes_that_are_refused(name, dtype):
    def outcomes(t):
        x = t.eye(2).to(getattr(t, dtype))
        calls = {
            "of two": [
                lambda: t.linalg.solve_triangular(x, x, upper=True), lambda: t.linalg.solve(x, x),
                lambda: t.linalg.lstsq(x, x), lambda: t.cholesky_solve(x, x), lambda: t.triangular_solve(x, x),
            ],
            "reflectors": [lambda: t.linalg.householder_product(x, x[0]), lambda: t.ormqr(x, x[0], x)],
        }  # fmt: skip
        one = [lambda: operator.attrgetter(name)(t)(x)]
        return [outcome(call) for call in calls.get(name, one)]

    def outcome(call):
        with pytest.raises(RuntimeError) as error:
            call()
        return error.type

    assert outcomes(taeda) == outcomes(torch)


def test_an_error_of_a_dtype_names_the_op_and_the_mend():
    for call, name in (
        (lambda x: taeda.linalg.eigh(x), "linalg.eigh"),
        (lambda x: taeda.linalg.inv(x), "linalg.inv"),
        (lambda x: taeda.cholesky_solve(x, x), "cholesky_solve"),
    ):
        with pytest.raises(RuntimeError, match=rf"^{name}: .* Got taeda.int64; convert it with .to\(dtype\)"):
            call(taeda.eye(2, dtype=taeda.int64))


def test_qr_without_q_is_not_differentiated():
    for t in (torch, taeda):
        with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
            t.linalg.qr(t.eye(3, requires_grad=True), mode="r")[1].sum().backward()
