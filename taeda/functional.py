"""The names of ``torch.functional``: functions that PyTorch writes in Python."""

from .ops.einsum import einsum, tensordot
from .ops.joining import atleast_1d, atleast_2d, atleast_3d, block_diag, split
from .ops.linalg import old_lu as lu
from .ops.linalg import pca_lowrank, svd_lowrank
from .ops.matmul import chain_matmul
from .ops.matrices import cartesian_prod, meshgrid
from .ops.reduction import norm
from .ops.sorting import unique, unique_consecutive
from .ops.spectrogram import istft, stft
from .ops.statistics import cdist, unravel_index
from .ops.views import broadcast_shapes, broadcast_tensors

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank",
    "tensordot", "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip
