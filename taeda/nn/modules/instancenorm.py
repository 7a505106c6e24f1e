"""Instance normalisation in one to three dimensions and its lazy forms."""

from __future__ import annotations

import warnings
from typing import Any

from ..._typed import Tensor
from .. import functional as F
from .batchnorm import _expect_dims, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    """Instance normalisation over any spatial dimensions.

    Args:
        num_features: ``C``.
        eps: added to the variance.
        momentum: share of the batch in the running statistics.
        affine: learn ``weight`` and ``bias``.
        track_running_stats: keep running statistics and use them in evaluation.
        device: of the tensors.
        dtype: of the tensors.
        bias: whether ``affine`` includes ``bias``.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point.
        output: the shape and dtype of the input.
        weight: ``(C,)``, 1 at first; ``bias`` ``(C,)``, 0 at first.

    Raises:
        ValueError: in a call, the input has other dimensions or channels, or one value for each channel.
    """

    _unbatched = 0  # dimensions of an input without a batch

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, self._unbatched, self._unbatched + 1)

    def _get_no_batch_dim(self) -> int:
        return self._unbatched

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        from_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, from_input, momentum, self.eps
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            found = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if found:
                kind = type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(f'{k!r}' for k in found)} for {kind} with "
                    "track_running_stats=False. Remove these keys from state_dict, or set track_running_stats=True in "
                    f"{kind} to use them."
                )
                for key in found:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channels = input.dim() - self._unbatched
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                    f"{input.size(channels)}."
                )
            warnings.warn(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._unbatched:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sample to mean 0 and variance 1 over its length: ``(x - mean) / sqrt(var + eps) * weight +
    bias``.

    Source: Ulyanov, Vedaldi & Lempitsky 2016, "Instance Normalization: The Missing Ingredient for Fast Stylization".

    Examples:
        >>> nn.InstanceNorm1d(1)(taeda.tensor([[[0.0, 2.0]], [[10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000]],
        <BLANKLINE>
                [[-1.0000,  1.0000]]])
    """

    _unbatched = 2


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image to mean 0 and variance 1 over height and width, which removes its contrast.

    The formula is that of :class:`InstanceNorm1d`.

    Examples:
        >>> nn.InstanceNorm2d(3, affine=True)(taeda.randn(8, 3, 16, 16)).shape
        taeda.Size([8, 3, 16, 16])
    """

    _unbatched = 3


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each volume to mean 0 and variance 1. The formula is that of :class:`InstanceNorm1d`.

    Examples:
        >>> nn.InstanceNorm3d(3)(taeda.randn(2, 3, 4, 8, 8)).shape
        taeda.Size([2, 3, 4, 8, 8])
    """

    _unbatched = 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm1d` that takes ``num_features`` from its first input.

    Examples:
        >>> layer = nn.LazyInstanceNorm1d()
        >>> layer(taeda.randn(8, 5, 6)).shape, layer.num_features
        (taeda.Size([8, 5, 6]), 5)
    """

    cls_to_become = InstanceNorm1d
    _unbatched = 2


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm2d` that takes ``num_features`` from its first input.

    Examples:
        >>> layer = nn.LazyInstanceNorm2d()
        >>> layer(taeda.randn(8, 5, 4, 4)).shape, layer.num_features
        (taeda.Size([8, 5, 4, 4]), 5)
    """

    cls_to_become = InstanceNorm2d
    _unbatched = 3


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm3d` that takes ``num_features`` from its first input.

    Examples:
        >>> layer = nn.LazyInstanceNorm3d()
        >>> layer(taeda.randn(8, 5, 4, 4, 4)).shape, layer.num_features
        (taeda.Size([8, 5, 4, 4, 4]), 5)
    """

    cls_to_become = InstanceNorm3d
    _unbatched = 4
