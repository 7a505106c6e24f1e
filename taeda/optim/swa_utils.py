"""Averages of a model's weights over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from .._core import int64
from .._foreach import lerp_all
from .._typed import Tensor
from ..autograd import no_grad
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..ops.exchange import tensor
from .optimizer import Optimizer
from .schedule import LRScheduler, _format_param

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """An exponential moving average, as ``avg_fn`` of :class:`AveragedModel`: ``decay * average + (1 - decay) *
    parameter``.

    Args:
        decay: between 0 and 1.

    Returns:
        ``f(average, parameter, count)``, which gives a tensor of their shape and dtype.

    Raises:
        ValueError: ``decay`` is not between 0 and 1.

    Examples:
        >>> average = taeda.optim.swa_utils.get_ema_avg_fn(0.9)
        >>> average(taeda.tensor([1.0]), taeda.tensor([2.0]), 3)
        tensor([1.1000])
    """
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable:
    """An average with equal weights, as ``avg_fn`` of :class:`AveragedModel`.

    Returns:
        ``f(average, parameter, count)``, which gives ``average + (parameter - average) / (count + 1)``, a tensor of
            their shape and dtype.

    Examples:
        >>> average = taeda.optim.swa_utils.get_swa_avg_fn()
        >>> average(taeda.tensor([1.0]), taeda.tensor([2.0]), 3)
        tensor([1.2500])
    """

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _on_lists(average: Callable, weight: Callable | None = None) -> Callable:
    """A function on lists of parameters, in place, from one on a pair.

    ``weight`` gives the share of the current ones where the average is linear: then lists of floats go in one kernel.
    """

    def update(averaged: Iterable[Tensor], current: Iterable[Tensor], num_averaged: Any) -> None:
        averaged, current = list(averaged), list(current)
        with no_grad():
            if weight is not None and lerp_all(averaged, current, weight(num_averaged)):
                return
            for a, c in zip(averaged, current, strict=True):
                a.copy_(average(a, c, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """An exponential moving average of lists, as ``multi_avg_fn`` of :class:`AveragedModel`. Lists of floats take one
    kernel.

    Args:
        decay: between 0 and 1.

    Returns:
        ``f(averages, parameters, count)``, which sets each average to ``decay * average + (1 - decay) * parameter``.

    Raises:
        ValueError: ``decay`` is not between 0 and 1.

    Examples:
        >>> averages = [taeda.zeros(2), taeda.ones(1)]
        >>> taeda.optim.swa_utils.get_ema_multi_avg_fn(0.9)(averages, [taeda.ones(2), taeda.ones(1)], 3)
        >>> averages
        [tensor([0.1000, 0.1000]), tensor([1.])]
    """
    return _on_lists(get_ema_avg_fn(decay), lambda num_averaged: 1 - decay)


def get_swa_multi_avg_fn() -> Callable:
    """An average with equal weights of lists, as ``multi_avg_fn`` of :class:`AveragedModel`. Lists of floats take one
    kernel.

    Returns:
        ``f(averages, parameters, count)``, which adds ``(parameter - average) / (count + 1)`` to each average.

    Examples:
        >>> averages = [taeda.zeros(2), taeda.ones(1)]
        >>> taeda.optim.swa_utils.get_swa_multi_avg_fn()(averages, [taeda.ones(2), taeda.ones(1)], 1)
        >>> averages
        [tensor([0.5000, 0.5000]), tensor([1.])]
    """
    return _on_lists(get_swa_avg_fn(), lambda num_averaged: 1 / (int(num_averaged) + 1))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over training.

    Averages generalise better than the last weights. After training call :func:`update_bn` where there is batch
    normalisation. Sources: Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and Better Generalization";
    Polyak & Juditsky 1992.

    Args:
        model: the module to average.
        device: where the copy lives; that of ``model`` if None.
        avg_fn: ``f(average, parameter, count)`` gives the new average; equal weights if None.
        multi_avg_fn: the same for lists, in place.
        use_buffers: average buffers too, rather than copying them.

    Shape:
        As of ``model``: a call passes its arguments on to the copy.

    Raises:
        AssertionError: both functions are given.

    Examples:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> average = taeda.optim.swa_utils.AveragedModel(model)
        >>> for weight in [1.0, 2.0, 6.0]:
        ...     _ = nn.init.constant_(model.weight, weight)
        ...     average.update_parameters(model)
        >>> average.module.weight.item()
        3.0
    """

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable | None = None, multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _tensors(self, model: Module) -> list[Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return [t.detach() for t in itertools.chain(model.parameters(), buffers)]

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of ``model`` into the average."""
        averaged = self._tensors(self.module)
        current = [t.to(a.device) for a, t in zip(averaged, self._tensors(model), strict=True)]
        if self.n_averaged == 0:
            for a, c in zip(averaged, current, strict=True):
                a.copy_(c)
        else:
            update = self.multi_avg_fn or (_on_lists(self.avg_fn) if self.avg_fn else get_swa_multi_avg_fn())
            update(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                ours.detach().copy_(theirs.detach())
        self.n_averaged += 1


def update_bn(loader: Iterable, model: Module, device: Any = None) -> None:
    """Compute the running mean and variance of all batch normalisations anew, by a pass over the data.

    The statistics of an averaged model are not averages of those of its models. The model is left in the mode it was
    in.

    Args:
        loader: gives batches: tensors, or tuples and lists whose first element is the input.
        model: the module whose statistics are computed, in place.
        device: where batches are moved; they stay where they are if None.

    Shape:
        Batches as ``model`` takes them.

    Examples:
        >>> model = nn.BatchNorm1d(1)
        >>> batches = [taeda.tensor([[1.0], [3.0]]), taeda.tensor([[5.0], [7.0]])]
        >>> taeda.optim.swa_utils.update_bn(batches, model)
        >>> model.running_mean
        tensor([4.])
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # a plain mean over all batches
    with no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, list | tuple) else batch
            model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to a constant, at which weights are averaged.

    In ``anneal_epochs`` epochs ``lr`` goes from the present rate to ``swa_lr``, by half a cosine or linearly, and
    stays. Source: Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and Better Generalization".

    Args:
        optimizer: the optimiser whose rates are set.
        swa_lr: the last rate, or a list with one for each group.
        anneal_epochs: number of epochs of the change.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Raises:
        ValueError: the strategy is unknown, ``anneal_epochs`` is negative, or a list has another length than there are
            groups.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=4, anneal_strategy="linear")
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        for lr, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """The progress of the rate at part ``t`` of the way."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        n = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / n)))
        now = self.anneal_func(max(0, min(1, step / n)))
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            first = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + first * (1 - now))
        return rates
