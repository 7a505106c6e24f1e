"""A few extreme eigenpairs of large symmetric matrices by preconditioned conjugate gradients.

Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient method"
(2001). With ``method="ortho"`` the search space is orthonormal at every step, as Duersch, Shao, Yang and Gu, "A robust
and efficient implementation of LOBPCG" (2018), advise; with ``"basic"`` its Gram matrix is used instead.
"""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from ..joining import cat, stack
from ..matmul import matmul
from ..random import randn
from ..reduction import vector_norm
from ..table import composite, primitive
from .cholesky import linalg_cholesky_ex
from .eigen import linalg_eigh
from .lapack import H, check
from .triangular import linalg_solve_triangular

#: Steps after which a search that was given no limit ends.
_PATIENCE = 1000


class LOBPCG:
    """The state of a search, which a ``tracker`` gets at each step.

    Attributes:
        iparams, fparams, bparams: what was asked for: ``m n k niter``, ``tol``, ``largest``.
        ivars: ``istep`` and ``converged_count``; fvars: norms ``A_norm`` and ``B_norm``; bvars: nothing so far.
        tvars: ``rerr``, the relative residual of each pair.
        A, B, iK: the operators (B and iK may be None). X, E, R, S: vectors, values, residuals, search space.
    """

    def __init__(self, A, B, X, iK, k, niter, tol, largest, method, tracker):
        self.A, self.B, self.iK, self.X = A, B, iK, X
        m, n = X.shape
        self.iparams = {"m": m, "n": n, "k": k, "niter": niter}
        self.fparams, self.bparams = {"tol": tol}, {"largest": largest}
        self.method, self.tracker = method, tracker
        self.ivars = {"istep": 0, "converged_count": 0, "iterations_left": niter}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Any] = {}
        self.E = X.new_zeros((n,))
        self.R, self.S = X.new_zeros(X.shape), X

    def dot(self, x: Tensor, y: Tensor) -> Tensor:
        """The inner products of the problem: ``x^H B y``."""
        return matmul(H(x), y if self.B is None else matmul(self.B, y))

    def orthonormal(self, S: Tensor) -> Tensor:
        """An orthonormal basis of the columns of ``S`` by the SVD of its Gram matrix, without those that depend on
        others."""
        for _ in range(2):
            size = self.dot(S, S).diagonal().real.clamp(min=0).sqrt()
            S = S[:, size > 0] / size[size > 0]
            if not S.shape[1]:
                return S
            w, V = linalg_eigh(self.dot(S, S))
            kept = w > w.amax() * 10 * S.shape[1] * _epsilon(S)
            S = matmul(S, V[:, kept] / w[kept].sqrt())
        return S

    def extreme(self, S: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """The Ritz values of the space ``S``, best first, and their coefficients."""
        M = matmul(H(S), matmul(self.A, S))
        if self.method == "basic":
            L, info = linalg_cholesky_ex(self.dot(S, S))
            if int(info):
                raise _Dependent
            half = linalg_solve_triangular(L, M, upper=False)
            w, Z = linalg_eigh(linalg_solve_triangular(H(L), half, upper=True, left=False))
            Z = linalg_solve_triangular(H(L), Z, upper=True)
        else:
            w, Z = linalg_eigh(M)
        if self.bparams["largest"]:
            w, Z = w.flip(-1), Z.flip(-1)
        return w[:n], Z

    def residuals(self) -> int:
        """The number of leading pairs that have converged."""
        E = self.E.to(self.X.dtype)
        BX = self.X if self.B is None else matmul(self.B, self.X)
        self.R = matmul(self.A, self.X) - BX * E
        limit = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        error = _column_norms(self.R) / (_column_norms(self.X) * limit)
        self.tvars["rerr"] = error
        count = 0
        for e in error.tolist():
            if not e < self.fparams["tol"]:
                break
            count += 1
        self.ivars["converged_count"] = count
        return count

    def run(self) -> None:
        n, k = self.iparams["n"], self.iparams["k"]
        size = float(_column_norms(self.X).square().sum().sqrt())
        self.fvars["A_norm"] = float(_column_norms(matmul(self.A, self.X)).square().sum().sqrt()) / size
        self.fvars["B_norm"] = (
            1.0 if self.B is None else float(_column_norms(matmul(self.B, self.X)).square().sum().sqrt()) / size
        )
        self.X = self.orthonormal(self.X)
        self.E, Z = self.extreme(self.X, n)
        self.X, P = matmul(self.X, Z[:, :n]), None
        limit = self.iparams["niter"] if self.iparams["niter"] >= 0 else _PATIENCE
        while True:
            done = self.residuals()
            if self.tracker is not None:
                self.tracker(self)
            if done >= k or self.ivars["istep"] >= limit:
                return
            P = self.step(P, n)
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] = limit - self.ivars["istep"]

    def step(self, P: Tensor | None, n: int) -> Tensor:
        """Improve the vectors in the space of themselves, the last direction and the preconditioned residuals."""
        W = self.R if self.iK is None else matmul(self.iK, self.R)
        parts = [W] if P is None else [P, W]
        if self.method == "basic":
            size = [p / _column_norms(p).clamp(min=1e-300) for p in parts]
            self.S = cat([self.X, *size], 1)
            try:
                self.E, Z = self.extreme(self.S, n)
            except _Dependent:
                self.method = "ortho"  # the residuals nearly depend on the rest: continue with a basis
                return self.step(P, n)
        else:
            rest = cat(parts, 1)
            for _ in range(2):
                rest = rest - matmul(self.X, self.dot(self.X, rest))
            self.S = cat([self.X, self.orthonormal(rest)], 1)
            self.E, Z = self.extreme(self.S, n)
        X = matmul(self.S, Z[:, :n])
        P = matmul(self.S[:, n:], Z[n:, :n])
        self.X = X
        return P


class _Dependent(Exception):
    """The search space has lost a dimension."""


def _column_norms(x: Tensor) -> Tensor:
    return vector_norm(x, 2, 0)


def _epsilon(x: Tensor) -> float:
    return 2.0**-23 if x.dtype.name in ("float32", "complex64") else 2.0**-52


@primitive(method=False, outputs=("values", "vectors"))
def _lobpcg(A, B, X, iK, k, niter, tol, largest, method, tracker):
    """The search for one matrix; see :func:`lobpcg`."""
    state = LOBPCG(A, B, X, iK, k, niter, tol, largest, method, tracker)
    state.run()
    return state.E[:k], state.X[:, :k]


@_lobpcg.vjp_all("A")
def _lobpcg_backward(g, A, B, values, vectors):
    """Perturbation theory: ``dE = x^H dA x``, ``dx = (E - A)^+ dA x``."""
    if B is not None:
        raise ValueError("lobpcg.backward: the derivative is defined for B=None only, got a tensor B")
    gE, gX = g
    w, V = linalg_eigh(A)
    gaps = values[None, :] - w[:, None]  # from each eigenvalue found to every eigenvalue
    same = gaps.abs() <= 1e3 * _epsilon(A) * w.abs().amax()
    inverse = gaps.masked_fill(same, float("inf")).reciprocal().to(A.dtype)
    left = matmul(V, inverse * matmul(H(V), gX)) + vectors * gE.to(A.dtype)
    made = matmul(left, H(vectors))
    return (0.5 * (made + H(made)),)


@composite(method=False, random="noise")
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The ``k`` largest (or smallest) eigenvalues of ``A x = E B x`` for symmetric ``A`` and positive definite ``B``
    (Knyazev 2001, "Toward the optimal preconditioned eigensolver").

    Args:
        A: ``(..., m, m)``.
        k: how many pairs. Default: the columns of ``X``, or 1; ``m`` must be at least three times as many.
        B: ``(..., m, m)``. Default: the identity.
        X: first guess ``(..., m, n)``. Default: random.
        n: the number of columns of a random guess. Default: ``k``.
        iK: a preconditioner ``(..., m, m)``, nearly the inverse of ``A``.
        niter: most steps. Default: until all have converged.
        tol: the relative residual of a converged pair. Default: the square root of the dtype's epsilon.
        largest: True by default.
        method: ``"ortho"`` (default) or ``"basic"``.
        tracker: called at each step with the state of the search.
        ortho_iparams: accepted for compatibility; orthonormalisation here has no parameters.
        ortho_fparams: accepted for compatibility.
        ortho_bparams: accepted for compatibility.
    Returns:
        Values ``(..., k)``, best first, and vectors ``(..., m, k)``.
    Raises:
        ValueError: ``m`` is too small.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> values, vectors = taeda.lobpcg(taeda.diag(taeda.arange(1.0, 10.0)), k=2)
        >>> values.round()
        tensor([9., 8.])
    """
    check(A, "lobpcg")
    if A.requires_grad or (B is not None and B.requires_grad):  # the values are of the matrices that have the gradients
        A, B = (None if x is None else (x + H(x)) / 2 for x in (A, B))
    m = A.shape[-1]
    n = (X.shape[-1] if X is not None else 1 if k is None else k) if n is None else n
    k = n if k is None else k
    if n < 1:
        raise ValueError(f"lobpcg: expected at least one requested eigenpair, got {n}")
    if m < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: expected method 'basic' or 'ortho', got {method!r}")
    if X is None:
        X = randn(*A.shape[:-2], m, n, dtype=A.dtype)
    elif X.dim() < 2 or X.shape[-2:] != (m, n):
        raise ValueError(f"lobpcg: expected X of shape (..., {m}, {n}), got {list(X.shape)}")
    tol = (2.0**-23 if A.dtype.name == "float32" else 2.0**-52) ** 0.5 if tol is None else tol
    options = (k, -1 if niter is None else niter, tol, largest is None or bool(largest), method or "ortho", tracker)
    if A.dim() == 2:
        return tuple(_lobpcg(A, B, X, iK, *options))
    batch = A.shape[:-2]

    def matrices(x):
        return None if x is None else x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])

    found = []
    flat = [matrices(x) for x in (A, B, X, iK)]
    for i in range(flat[0].shape[0]):
        a, b, x, preconditioner = (None if f is None else f[i] for f in flat)
        found.append(_lobpcg(a, b, x, preconditioner, *options))
    E, V = (stack(part) for part in zip(*found, strict=True))
    return E.reshape(*batch, k), V.reshape(*batch, m, k)
