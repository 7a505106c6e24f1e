"""Linear algebra under the names of ``torch.linalg``."""

from .ops.linalg import LinAlgError, matrix_exp
from .ops.linalg import linalg_cholesky as cholesky
from .ops.linalg import linalg_cholesky_ex as cholesky_ex
from .ops.linalg import linalg_cond as cond
from .ops.linalg import linalg_cross as cross
from .ops.linalg import linalg_det as det
from .ops.linalg import linalg_eig as eig
from .ops.linalg import linalg_eigh as eigh
from .ops.linalg import linalg_eigvals as eigvals
from .ops.linalg import linalg_eigvalsh as eigvalsh
from .ops.linalg import linalg_householder_product as householder_product
from .ops.linalg import linalg_inv as inv
from .ops.linalg import linalg_inv_ex as inv_ex
from .ops.linalg import linalg_ldl_factor as ldl_factor
from .ops.linalg import linalg_ldl_factor_ex as ldl_factor_ex
from .ops.linalg import linalg_ldl_solve as ldl_solve
from .ops.linalg import linalg_lstsq as lstsq
from .ops.linalg import linalg_lu as lu
from .ops.linalg import linalg_lu_factor as lu_factor
from .ops.linalg import linalg_lu_factor_ex as lu_factor_ex
from .ops.linalg import linalg_lu_solve as lu_solve
from .ops.linalg import linalg_matrix_norm as matrix_norm
from .ops.linalg import linalg_matrix_rank as matrix_rank
from .ops.linalg import linalg_multi_dot as multi_dot
from .ops.linalg import linalg_norm as norm
from .ops.linalg import linalg_pinv as pinv
from .ops.linalg import linalg_qr as qr
from .ops.linalg import linalg_slogdet as slogdet
from .ops.linalg import linalg_solve as solve
from .ops.linalg import linalg_solve_ex as solve_ex
from .ops.linalg import linalg_solve_triangular as solve_triangular
from .ops.linalg import linalg_svd as svd
from .ops.linalg import linalg_svdvals as svdvals
from .ops.linalg import linalg_tensorinv as tensorinv
from .ops.linalg import linalg_tensorsolve as tensorsolve
from .ops.linalg import linalg_vander as vander
from .ops.linalg import linalg_vecdot as vecdot
from .ops.matmul import matmul, matrix_power
from .ops.reduction import vector_norm
from .ops.registry import PUBLIC as _PUBLIC
from .ops.registry import name_within as _name_within
from .ops.views import diagonal as _diagonal


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, as the last dimension: :func:`diagonal` of the last two dimensions by default.

    Args:
        A: a tensor of at least two dimensions.
        offset: which diagonal: 0 the main one, positive ones above it.
        dim1: the dimension of the rows.
        dim2: that of the columns.
    Returns:
        A view of ``A``.
    Examples:
        >>> taeda.linalg.diagonal(taeda.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return _diagonal(A, offset, dim1, dim2)


diagonal.__name__ = "linalg_diagonal"

globals().update(_PUBLIC["linalg"])  # ops whose stanza says so

__all__ = [name for name in dir() if not name.startswith("_")]
_name_within(globals(), "linalg_", ("matmul", "matrix_exp", "matrix_power"))
