"""Batch normalisation in one to three dimensions, its lazy and synchronised forms."""

from __future__ import annotations

import sys
from typing import Any

from ..._core import int64
from ..._namespaces import above
from ..._typed import Tensor
from ...ops.creation import ones, zeros
from ...ops.exchange import tensor
from .. import functional as F
from .. import init
from ..parameter import UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _make_parameters

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Scale, shift and running statistics per channel: what batch and instance normalisation share."""

    _version = 2  # from version 2 on, num_batches_tracked is saved
    __constants__ = ("track_running_stats", "momentum", "eps", "num_features", "affine")

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,) if affine else None
        _make_parameters(self, device, dtype, weight=shape, bias=shape if bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the statistics; scale one, shift zero."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                known = self.num_batches_tracked
                state_dict[key] = known if known is not None else tensor(0, dtype=int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """Batch normalisation over any spatial dimensions.

    Args:
        num_features: ``C``.
        eps: added to the variance.
        momentum: share of the batch in the running statistics; None for their mean over all batches.
        affine: learn ``weight`` and ``bias``.
        track_running_stats: keep running statistics and use them in evaluation.
        device: of the tensors.
        dtype: of the tensors.
        bias: whether ``affine`` includes ``bias``.

    Shape:
        input: ``(N, C, *)``. Floating-point.
        output: the shape and dtype of the input.
        weight: ``(C,)``, 1 at first; ``bias`` ``(C,)``, 0 at first.

    Raises:
        ValueError: in a call, the input has other dimensions, or in training only one value for each channel.
        RuntimeError: in a call, the input has other channels.
    """

    def _count(self) -> float:
        """Count a batch in training; how far the running statistics move."""
        factor = 0.0 if self.momentum is None else self.momentum
        training, tracking = self.training, self.track_running_stats
        if training and tracking and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a cumulative mean rather than an exponential one
                factor = 1.0 / float(self.num_batches_tracked)
        return factor

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor, training, tracking = self._count(), self.training, self.track_running_stats
        mean, var = self.running_mean, self.running_var
        from_batch = training or (mean is None and var is None)
        if training and not tracking:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, from_batch, factor, self.eps)


def _expect_dims(input: Tensor, *dims: int) -> None:
    if input.dim() not in dims:
        one = input.dim() + 1 == dims[-1]
        hint = "; one sample lacks the batch dimension: give input.unsqueeze(0)" if one else ""
        raise ValueError(f"expected {' or '.join(f'{d}D' for d in dims)} input (got {input.dim()}D input){hint}")


class BatchNorm1d(_BatchNorm):
    """Each channel to mean 0 and variance 1 over the batch: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Of ``(N, C)`` or ``(N, C, L)``. In training, mean and variance (divided by the count) are those of the batch. They
    move the running ones, ``r += momentum * (new - r)`` (there the variance is divided by the count less one), which
    evaluation uses. Source: Ioffe & Szegedy 2015, "Batch Normalization: Accelerating Deep Network Training by Reducing
    Internal Covariate Shift".

    Examples:
        >>> layer = nn.BatchNorm1d(2)
        >>> x = taeda.tensor([[0.0, 10.0], [2.0, 30.0]])
        >>> layer(x).detach()
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
        >>> layer.running_mean  # 0.1 of the way from 0 to the batch's mean
        tensor([0.1000, 2.0000])
        >>> layer.eval()(x).shape  # evaluation does not look at the batch
        taeda.Size([2, 2])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images ``(N, C, H, W)``: the mean and variance of a channel are over batch, height and
    width.

    The formula is that of :class:`BatchNorm1d`.

    Examples:
        >>> y = nn.BatchNorm2d(3)(taeda.randn(8, 3, 16, 16) * 5 + 2)
        >>> y.mean((0, 2, 3)).abs().max().item() < 1e-5, y.shape
        (True, taeda.Size([8, 3, 16, 16]))
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes ``(N, C, D, H, W)``: mean and variance are over all but the channels.

    The formula is that of :class:`BatchNorm1d`.

    Examples:
        >>> nn.BatchNorm3d(3)(taeda.randn(2, 3, 4, 8, 8)).shape
        taeda.Size([2, 3, 4, 8, 8])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 5)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Takes ``num_features`` from the first input."""

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device: Any = None, dtype: Any = None, *,
        bias=True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for t in (self.weight, self.bias, self.running_mean, self.running_var):
            if t is not None:
                t.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm1d` that takes ``num_features`` from its first input.

    Examples:
        >>> layer = nn.LazyBatchNorm1d()
        >>> layer(taeda.randn(8, 5)).shape, layer.num_features
        (taeda.Size([8, 5]), 5)
    """

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm2d` that takes ``num_features`` from its first input.

    Examples:
        >>> layer = nn.LazyBatchNorm2d()
        >>> layer(taeda.randn(8, 5, 4, 4)).shape, layer.num_features
        (taeda.Size([8, 5, 4, 4]), 5)
    """

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm3d` that takes ``num_features`` from its first input.

    Examples:
        >>> layer = nn.LazyBatchNorm3d()
        >>> layer(taeda.randn(8, 5, 4, 4, 4)).shape, layer.num_features
        (taeda.Size([8, 5, 4, 4, 4]), 5)
    """

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with the mean and variance of the batches of all processes; in one process of its own batch.

    For ``taeda.distributed``, where each process sees few samples. ``SyncBatchNorm.convert_sync_batchnorm(model)``
    replaces the other kinds in a model. The formula is that of :class:`BatchNorm1d`.

    Args:
        num_features: ``C``.
        eps: added to the variance.
        momentum: share of the batch in the running statistics; None: their plain mean.
        affine: learn ``weight`` and ``bias``.
        track_running_stats: keep running statistics and use them in evaluation.
        process_group: the processes that share statistics; all of them if None.
        device: of the tensors.
        dtype: of the tensors.
        bias: whether ``affine`` includes ``bias``.

    Examples:
        >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
        SyncBatchNorm(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Normalise; in training, or without statistics, with those of the batches of all processes."""
        dist = sys.modules.get("taeda.distributed")  # if it is not imported, there is one process
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        if not of_batch or dist is None or not dist.is_initialized() or dist.get_world_size(self.process_group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        factor = self._count()
        moved = self.training and self.track_running_stats
        running = (self.running_mean, self.running_var) if moved else (None, None)
        functional = above("distributed.nn.functional")
        weight, bias, group = self.weight, self.bias, self.process_group
        return functional.sync_batch_norm(input, *running, weight, bias, factor, self.eps, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch normalisation in ``module`` by a synchronised one with the same tensors."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group,
            )  # fmt: skip
            if module.affine:
                result.weight = module.weight
                result.bias = module.bias
            result.running_mean = module.running_mean
            result.running_var = module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
