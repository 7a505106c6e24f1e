"""Functions that PyTorch removed. A call raises an error that names the replacement."""

from __future__ import annotations

from ..table import composite


def _removed(name: str, instead: str, method: bool = True):
    def function(*args, **kwargs):
        raise RuntimeError(f"{name}: this function was deprecated since version 1.9 and is now removed. Use {instead}.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed from PyTorch: use {instead}. Calling it is a RuntimeError."
    return composite(method=method)(function)


lstsq = _removed("lstsq", "linalg.lstsq(A, B), whose arguments are in the other order and whose residuals are sums")
solve = _removed(
    "solve", "linalg.solve(A, B), whose arguments are in the other order, or linalg.lu_factor for the factors"
)
symeig = _removed("symeig", "linalg.eigh(A, UPLO='L' or 'U') or linalg.eigvalsh")
eig = _removed("eig", "linalg.eig or linalg.eigvals, which are complex")
matrix_rank = _removed("matrix_rank", "linalg.matrix_rank(A, tol, hermitian=...)", method=False)
