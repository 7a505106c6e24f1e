"""Linear algebra under the names of ``torch.linalg``."""

from .ops.linalg import (
    LinAlgError,
    cholesky,
    cholesky_ex,
    cond,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    householder_product,
    inv,
    inv_ex,
    lstsq,
    lu,
    lu_factor,
    lu_factor_ex,
    matrix_exp,
    matrix_norm,
    matrix_rank,
    multi_dot,
    pinv,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
    svdvals,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)
from .ops.linalg import linalg_cross as cross
from .ops.linalg import linalg_lu_solve as lu_solve
from .ops.linalg import linalg_norm as norm
from .ops.linalg import linalg_qr as qr
from .ops.linalg import linalg_svd as svd
from .ops.matmul import matmul, matrix_power
from .ops.reduction import vector_norm
from .ops.views import diagonal as _diagonal


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of matrices."""
    return _diagonal(A, offset, dim1, dim2)


__all__ = [name for name in dir() if not name.startswith("_")]
