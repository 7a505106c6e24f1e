"""Factors, solutions, singular values and eigenvalues of matrices in onnxruntime, at other sizes than the example's."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import taeda
import taeda.onnx
from taeda import linalg, nn


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, A, B):
        return self.function(A, B)


def close(x, y, tolerance=2e-5):
    assert x.shape == y.shape and x.dtype is y.dtype
    return taeda.allclose(x.double(), y.double(), tolerance, tolerance * max(1.0, float(y.abs().max())), True)


def examples(b, n, k, seed):
    taeda.manual_seed(seed)
    return taeda.randn(b, n, n) + 2 * taeda.eye(n), taeda.randn(b, n, k)


def positive(A):
    return A @ A.mT + taeda.eye(A.shape[-1])


CALLS = {
    "inv": lambda A, B: linalg.inv(A) @ B,
    "solve": linalg.solve,
    "solve of the right": lambda A, B: linalg.solve(A, B.mT, left=False),
    "lu": lambda A, B: linalg.lu(A),
    "lu_factor, lu_solve": lambda A, B: linalg.lu_solve(*linalg.lu_factor(A), B, adjoint=True),
    "cholesky": lambda A, B: linalg.cholesky(positive(A)),
    "cholesky, upper": lambda A, B: taeda.cholesky_solve(B, linalg.cholesky(positive(A), upper=True), upper=True),
    "solve_triangular": lambda A, B: linalg.solve_triangular(positive(A), B, upper=True),
    "qr": lambda A, B: linalg.qr(B),
    "qr of squares": lambda A, B: linalg.qr(A),
    "qr, complete": lambda A, B: linalg.qr(B.mT, "complete"),
    "ormqr": lambda A, B: taeda.ormqr(*taeda.geqrf(A), B, True, True),
    "svdvals": lambda A, B: linalg.svdvals(B),
    "svdvals of squares": lambda A, B: linalg.svdvals(A),
    "pinv": lambda A, B: linalg.pinv(B),
    "lstsq": lambda A, B: linalg.lstsq(B, A[..., :2]).solution,
    "eigvalsh": lambda A, B: linalg.eigvalsh(positive(A) - 5 * taeda.eye(A.shape[-1])),
    "matrix_exp": lambda A, B: taeda.matrix_exp(A),
    "matrix_power": lambda A, B: linalg.matrix_power(A, -3),
    "nuclear norm": lambda A, B: linalg.matrix_norm(B, "nuc"),
    "cond": lambda A, B: linalg.cond(positive(A)),
}


@pytest.mark.parametrize("name", CALLS)
def test_like_eager(name):
    model, (A, B) = Call(CALLS[name]), examples(2, 4, 3, 0)
    program = taeda.onnx.export(model, (A, B), dynamic_shapes=({0: "batch"}, {0: "batch"}))
    for batch in (2, 5):
        given = examples(batch, 4, 3, batch)
        wanted = model(*given)
        for x, y in zip(program(*given), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert close(x, y), name


@pytest.mark.parametrize(
    "name",
    [
        "inv",
        "solve",
        "cholesky",
        "lu",
        "solve_triangular",
        "qr of squares",
        "svdvals of squares",
        "eigvalsh",
        "matrix_exp",
    ],
)
def test_sizes_that_change(name):
    """The order of the matrices as well."""
    model, given = Call(CALLS[name]), examples(2, 6, 3, 0)
    sizes = {0: "batch", 1: "n", 2: "n"}, {0: "batch", 1: "n"}
    program = taeda.onnx.export(model, given, dynamic_shapes=sizes)
    for n in (6, 9, 12):
        given = examples(3, n, 3, n)
        wanted = model(*given)
        for x, y in zip(program(*given), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert close(x, y), (name, n)


@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (4, 4), (1, 1)])
@pytest.mark.parametrize("full", [True, False])
def test_vectors(m, n, full):
    taeda.manual_seed(m)
    A = taeda.randn(2, m, n)
    A[1, :, -1] = A[1, :, 0]  # a rank less than n
    U, S, Vh = taeda.onnx.export(lambda A: linalg.svd(A, full), (A,))(A)
    wanted = linalg.svd(A, full)
    assert [U.shape, S.shape, Vh.shape] == [x.shape for x in wanted] and close(S, wanted.S)
    k = min(m, n)
    assert close(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], A)
    for Q in (U.mT @ U, Vh @ Vh.mT):
        assert close(Q, taeda.eye(Q.shape[-1]).expand(Q.shape))
    H = A @ A.mT
    w, V = taeda.onnx.export(lambda H: linalg.eigh(H), (H,))(H)
    assert close(w, linalg.eigvalsh(H)) and close(V * w.unsqueeze(-2) @ V.mT, H)


def test_singular():
    """No error, as a model has none: infinities or NaN, and what the forms with a code say."""
    A = taeda.ones(3, 3)
    inverse, info = taeda.onnx.export(lambda A: linalg.inv_ex(A), (A,))(A)
    assert not inverse.isfinite().all() and info.item() == linalg.inv_ex(A).info.item() == 2
    _, info = taeda.onnx.export(lambda A: linalg.cholesky_ex(A), (A,))(-A)
    assert info.item() == 1


def test_complex_is_refused():
    A = taeda.randn(3, 3, dtype=taeda.complex64)
    with pytest.raises(taeda.onnx.errors.UnsupportedOperatorError, match="complex"):
        taeda.onnx.export(lambda A: linalg.inv(A), (A,))
