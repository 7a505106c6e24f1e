"""Linear algebra: factorisations, solvers, spectra and norms, on LAPACK.

A file per family: ``lu``, ``triangular``, ``solve``, ``determinant``, ``cholesky`` (with LDL), ``qr``, ``eigen``,
``svd``, ``norms``, ``leastsquares`` (with pseudo-inverses and ranks), ``functions``, ``lowrank`` and ``lobpcg``;
``lapack`` is what they call. Derivatives are those of Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008), extended to complex matrices, unless a docstring names another source;
they are written in ops, so that they can be differentiated again.
"""

from .cholesky import cholesky as old_cholesky
from .cholesky import linalg_cholesky, linalg_cholesky_ex, linalg_ldl_factor, linalg_ldl_factor_ex, linalg_ldl_solve
from .determinant import det, linalg_det, linalg_slogdet, logdet, slogdet
from .eigen import linalg_eig, linalg_eigh, linalg_eigvals, linalg_eigvalsh
from .functions import cross, linalg_cross, linalg_multi_dot, linalg_vander, linalg_vecdot, matrix_exp
from .lapack import LinAlgError
from .leastsquares import linalg_cond, linalg_lstsq, linalg_matrix_rank, linalg_pinv, pinverse
from .lobpcg import lobpcg
from .lowrank import pca_lowrank, svd_lowrank
from .lu import linalg_lu, linalg_lu_factor, linalg_lu_factor_ex, linalg_lu_solve, lu_solve, lu_unpack
from .lu import lu as old_lu
from .norms import frobenius_norm, linalg_matrix_norm, linalg_norm, norm_except_dim, nuclear_norm
from .qr import geqrf, linalg_householder_product, linalg_qr, orgqr, ormqr, qr
from .removed import eig as removed_eig
from .removed import lstsq as removed_lstsq
from .removed import matrix_rank as removed_matrix_rank
from .removed import solve as removed_solve
from .removed import symeig as removed_symeig
from .solve import (
    inverse,
    linalg_inv,
    linalg_inv_ex,
    linalg_solve,
    linalg_solve_ex,
    linalg_tensorinv,
    linalg_tensorsolve,
)
from .svd import linalg_svd, linalg_svdvals
from .svd import svd as old_svd
from .triangular import cholesky_inverse, cholesky_solve, linalg_solve_triangular, triangular_solve

__all__ = [name for name in dir() if name == "LinAlgError" or callable(globals()[name])]
