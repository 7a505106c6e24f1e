"""Averages of a model's weights over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import taeda
from taeda import Tensor

from .._foreach import lerp_all
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .optimizer import Optimizer
from .schedule import LRScheduler, _format_param

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """``avg_fn`` of an exponential moving average."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with taeda.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable:
    """``avg_fn`` of an equally weighted average."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with taeda.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _on_lists(average: Callable, weight: Callable | None = None) -> Callable:
    """A function on lists of parameters, in place, from one on a pair.

    ``weight`` gives the share of the current ones where the average is linear: then lists of floats go in one kernel.
    """

    def update(averaged: Iterable[Tensor], current: Iterable[Tensor], num_averaged: Any) -> None:
        averaged, current = list(averaged), list(current)
        with taeda.no_grad():
            if weight is not None and lerp_all(averaged, current, weight(num_averaged)):
                return
            for a, c in zip(averaged, current, strict=True):
                a.copy_(average(a, c, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """``multi_avg_fn`` of an exponential moving average."""
    return _on_lists(get_ema_avg_fn(decay), lambda num_averaged: 1 - decay)


def get_swa_multi_avg_fn() -> Callable:
    """``multi_avg_fn`` of an equally weighted average."""
    return _on_lists(get_swa_avg_fn(), lambda num_averaged: 1 / (int(num_averaged) + 1))


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages of the model's.

    Args:
        model: what to average.
        device: where the copy lives.
        avg_fn: ``f(average, parameter, count)`` gives the new average; equal weights if None.
        multi_avg_fn: the same for lists, in place.
        use_buffers: average buffers too, rather than copying them.
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
        self.register_buffer("n_averaged", taeda.tensor(0, dtype=taeda.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
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
    """Compute the running statistics of all batch normalisations anew over ``loader``."""
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # a plain mean over all batches
    with taeda.no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, list | tuple) else batch
            model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes to the constant rate ``swa_lr`` in ``anneal_epochs`` epochs, by a cosine or linearly."""

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
        """How far the rate has come at part ``t`` of the way."""
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
