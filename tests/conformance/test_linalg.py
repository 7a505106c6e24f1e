"""Linear algebra against PyTorch: values, first and second gradients, batches, complex matrices and errors."""

import pytest

import taeda

torch = pytest.importorskip("torch")

from tests.conformance.peer import close, ours  # noqa: E402


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
    "qr": (lambda T, A: abs(T.linalg.qr(A)[1]), "general", (2, 5, 3)),
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
        return (x.real**2 + x.imag * 0.5).sum() if x.is_complex() else (x**2).sum()

    (g_want,) = torch.autograd.grad(scalar(want), theirs, create_graph=True)
    (g_got,) = taeda.autograd.grad(scalar(got), A, create_graph=True)
    close(g_got, g_want, rtol=1e-7, atol=1e-8)
    if name in ("lu", "qr", "eigvals", "lu_solve"):
        return
    (h_want,) = torch.autograd.grad(scalar(g_want), theirs)
    (h_got,) = taeda.autograd.grad(scalar(g_got), A)
    close(h_got, h_want, rtol=1e-5, atol=1e-5)


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
        assert str(error).split(":")[0] == str(caught.value).split(":")[0]
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
