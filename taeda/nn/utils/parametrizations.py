"""Parametrisations ready to use: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from ... import linalg
from ..._typed import Tensor
from ...autograd import no_grad
from ...ops import matmul
from ...ops.creation import eye, zeros_like
from ...ops.joining import cat
from ...ops.linalg import geqrf, matrix_exp, norm_except_dim
from ...ops.random import randn
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize
from .weight_norm import weight_of

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """``g v / |v|`` (Salimans & Kingma 2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into length and direction: ``w = g * v / norm(v)``, one length for each slice of ``dim``.

    Both are learnt: ``parametrizations.weight.original0`` is ``g``, ``original1`` is ``v``. Source: Salimans & Kingma
    2016, "Weight Normalization: A Simple Reparameterization to Accelerate Training of Deep Neural Networks".

    Args:
        module: the module, which is changed.
        name: of its parameter. Any shape, floating-point.
        dim: the dimension whose slices have a length each; None for one length in all.

    Returns:
        ``module``.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> {name: tuple(p.shape) for name, p in layer.named_parameters()}
        {'bias': (3,), 'parametrizations.weight.original0': (3, 1), 'parametrizations.weight.original1': (3, 4)}
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_older(state_dict, prefix, *rest) -> None:
        """State dicts of the hook-based weight norm."""
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module._register_load_state_dict_pre_hook(read_older)
    return module


class _SpectralNorm(Module):
    """The weight over its largest singular value, by power iteration (Miyato et al. 2018)."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        n = weight.dim()
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{n}, {n - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % n
        self.eps = eps
        if n > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            h, w = matrix.size()
            u, v = matrix.new_empty(h).normal_(0, 1), matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _iterate(self, matrix: Tensor, n: int) -> None:
        with no_grad():
            for _ in range(n):
                self._u.copy_(F.normalize(matmul.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matmul.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the graph keeps these while the buffers change
        return weight / matmul.vdot(u, matmul.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value  # normalised already or not, the forward makes it so


def _tensor(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, so that the layer makes no vector longer.

    The value is estimated by power iteration, a step in each call in training. Source: Miyato et al. 2018, "Spectral
    Normalization for Generative Adversarial Networks".

    Args:
        module: the module, which is changed.
        name: of its parameter. At least two dimensions count as a matrix. Floating-point.
        n_power_iterations: steps in a call.
        eps: least norm to divide by.
        dim: the dimension of the outputs; by default 1 for transposed convolutions, else 0.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such tensor, or ``n_power_iterations`` is not positive.

    Examples:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 30), n_power_iterations=10)
        >>> bool(taeda.linalg.matrix_norm(layer.weight, 2) < 1.2)
        True
    """
    weight = _tensor(module, name)
    if dim is None:
        dim = 1 if isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


# ---- orthogonal -----------------------------------------------------------------------------------------------------


def _orthogonalised(a: Tensor) -> Tensor:
    """The Q of ``a = QR`` with positive diagonal of R, so that an orthogonal ``a`` is given back."""
    h, tau = geqrf(a)
    return linalg.householder_product(h, tau) * h.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """An orthogonal matrix from a free one, by matrix exponential, Cayley's map or reflections (Lezcano-Casado 2019).

    With a ``base`` the map is used around the matrix at registration, where it is best behaved.
    """

    def __init__(self, weight: Tensor, kind: str, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and kind == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.kind = kind
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.kind == "householder":
            a = x.tril(diagonal=-1)
            q = linalg.householder_product(a, 2.0 / (1.0 + (a * a).sum(dim=-2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).detach().trunc().unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                x = cat([x, x.new_zeros((*x.shape[:-1], n - k))], -1)
            a = x - x.mH  # skew-symmetric
            if self.kind == "matrix_exp":
                q = matrix_exp(a)
            else:
                identity = eye(n, dtype=a.dtype, device=a.device)
                q = linalg.solve(identity - 0.5 * a, identity + 0.5 * a)
            q = q[..., :k] if n != k else q
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        with no_grad():
            first = q
            wide = q.size(-2) < q.size(-1)
            q = q.mT if wide else q
            n, k = q.shape[-2:]
            if not hasattr(self, "base"):
                if self.kind != "householder":
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                        "use_trivialization=False."
                    )
                h, tau = geqrf(q)
                diagonal = h.diagonal(dim1=-2, dim2=-1)
                diagonal.sign_()
                diagonal[tau == 0.0] *= -1
                return h.mT if wide else h
            if n != k:
                q = cat([q, randn(*q.shape[:-2], n, n - k, dtype=q.dtype)], -1)
            self.base = _orthogonalised(q)
            start = zeros_like(first)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal, or its rows or columns: ``w^T w`` or ``w w^T`` is the identity, whatever the optimiser
    does.

    The weight is a map of a free matrix, which is learnt. Source: Lezcano-Casado 2019, "Trivializations for
    Gradient-Based Optimization on Manifolds".

    Args:
        module: the module, which is changed.
        name: of its parameter: ``(*, n, m)``. Floating-point or complex.
        orthogonal_map: ``"matrix_exp"`` (default for square ones), ``"cayley"`` or ``"householder"`` (default for
            others).
        use_trivialization: use the map around the present matrix, where it behaves best.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such tensor, it has fewer than two dimensions, or the map is unknown.

    Examples:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 5))
        >>> w = layer.weight
        >>> bool(taeda.allclose(w.T @ w, taeda.eye(3), atol=1e-5))
        True
    """
    weight = _tensor(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    map_ = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, map_, unsafe=True)
    return module
