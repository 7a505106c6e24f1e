"""Learning-rate schedules.

A scheduler's ``step`` is called once per epoch (or per batch, for the cyclic ones) after the optimiser's. ``get_lr``
gives the rates of the present ``last_epoch``, most of them from the previous rates, so that several schedulers may act
together.
"""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .optimizer import Optimizer
from .schedule import _EPOCH, LRScheduler, _LRScheduler, _rates, _set  # noqa: F401 (older programs derive from _LRScheduler)

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


class _FunctionLR(LRScheduler):
    """Schedules given by a function, or one per group. Functions that are objects keep their attributes in the
    state."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = optimizer.param_groups
        if isinstance(lr_lambda, list | tuple):
            if len(lr_lambda) != len(groups):
                raise ValueError(f"Expected {len(groups)} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(groups)
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                f.__dict__.update(saved)


class LambdaLR(_FunctionLR):
    """The rate of the start times a function of the epoch: ``lr(epoch) = lr(0) * lr_lambda(epoch)``.

    Args:
        lr_lambda: a function of the epoch's number, or a list with one for each parameter group.

    Examples:
        A warm-up of four epochs:

        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, (epoch + 1) / 4))
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """

    def get_lr(self) -> list:
        self._warn_outside_step()
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """The rate of the epoch before times a function of the epoch: ``lr(epoch) = lr(epoch - 1) * lr_lambda(epoch)``.

    Args:
        lr_lambda: a function of the epoch's number, or a list with one for each parameter group.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.9)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.9, 0.81, 0.729]
    """

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self._is_initial:
            return _rates(self.optimizer)
        groups = self.optimizer.param_groups
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(LRScheduler):
    """The rate falls by a factor every few epochs: ``lr(epoch) = lr(0) * gamma ** (epoch // step_size)``.

    Args:
        optimizer: the optimiser whose rates are set.
        step_size: number of epochs between falls.
        gamma: the factor.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return _rates(self.optimizer)
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate falls by a factor at given epochs: ``lr(epoch) = lr(0) * gamma ** n`` with ``n`` milestones up to
    ``epoch``.

    Args:
        optimizer: the optimiser whose rates are set.
        milestones: the epochs, in rising order.
        gamma: the factor.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 5], gamma=0.1)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.1, 0.1, 0.1, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return _rates(self.optimizer)
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A factor for the first epochs: ``lr(epoch) = lr(0) * factor`` while ``epoch < total_iters``, then ``lr(0)``.

    Args:
        optimizer: the optimiser whose rates are set.
        factor: between 0 and 1.
        total_iters: number of epochs with the factor.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Raises:
        ValueError: ``factor`` is not between 0 and 1.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=3)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.5, 0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, got {factor}.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor) if self.last_epoch == self.total_iters else _rates(self.optimizer)

    def _get_closed_form_lr(self) -> list:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that changes linearly, as in a warm-up.

    ``lr(epoch) = lr(0) * (start_factor + (end_factor - start_factor) * min(1, epoch / total_iters))``.

    Args:
        optimizer: the optimiser whose rates are set.
        start_factor: factor in epoch 0, above 0 and at most 1.
        end_factor: factor from epoch ``total_iters`` on, between 0 and 1.
        total_iters: number of epochs from one to the other.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Raises:
        ValueError: a factor is out of its range.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.2, total_iters=4)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1, got "
                f"{start_factor}."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, got {end_factor}.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return _rates(self.optimizer)
        rise = self.end_factor - self.start_factor
        return self._scaled(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate falls by a factor in every epoch: ``lr(epoch) = lr(0) * gamma ** epoch``.

    Args:
        optimizer: the optimiser whose rates are set.
        gamma: the factor.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.9, 0.81, 0.729]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        return _rates(self.optimizer) if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate falls to zero as a power: ``lr(epoch) = lr(0) * (1 - min(1, epoch / total_iters)) ** power``.

    Args:
        optimizer: the optimiser whose rates are set.
        total_iters: number of epochs until zero.
        power: the exponent; 1 is a straight line.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return _rates(self.optimizer)
        n = self.total_iters
        return self._scaled(((1.0 - self.last_epoch / n) / (1.0 - (self.last_epoch - 1) / n)) ** self.power)

    def _get_closed_form_lr(self) -> list:
        part = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * part**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """The rate falls as half a cosine: slowly at first and at the end, fast between.

    ``lr(epoch) = eta_min + (lr(0) - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``. After ``T_max`` epochs it rises
    again. Source: Loshchilov & Hutter 2016, "SGDR: Stochastic Gradient Descent with Warm Restarts".

    Args:
        optimizer: the optimiser whose rates are set.
        T_max: number of epochs of the fall.
        eta_min: the lowest rate.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.8536, 0.5, 0.1464, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self._is_initial:
            return _rates(self.optimizer)
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom the ratio below is 0 / 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [g["lr"] + (base - self.eta_min) * rise for base, g in zip(self.base_lrs, groups, strict=True)]
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self) -> list:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class _Several(LRScheduler):
    """Schedulers that hold others."""

    _schedulers: list[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} with another {type(scheduler.optimizer).__name__}."
                )
        return optimizer

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)


class SequentialLR(_Several):
    """One schedule after the other. Each starts at its epoch 0 when its turn comes.

    Args:
        optimizer: the optimiser of all of them.
        schedulers: the schedules, in order.
        milestones: the epochs at which the second, third, ... begins: one fewer than schedules.
        last_epoch: the epoch after which to resume; -1 to start.

    Raises:
        ValueError: the numbers do not fit, a schedule has another optimiser, or is a :class:`ReduceLROnPlateau`.

    Examples:
        A warm-up of two epochs, then a fall:

        >>> from taeda.optim.lr_scheduler import ExponentialLR, LinearLR, SequentialLR
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> rise, fall = LinearLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, gamma=0.9)
        >>> scheduler = SequentialLR(optimizer, [rise, fall], milestones=[2])
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.5, 0.75, 1.0, 0.9, 0.81]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        self.recursive_undo()  # each scheduler has made its first step already
        i = bisect_right(milestones, self.last_epoch)
        current = schedulers[i]
        current._initial_step()
        epoch = self.last_epoch - (milestones[i - 1] if i else 0)
        # One that is made anew, for a run that goes on, starts at its first epoch; a chain has no epoch of its own.
        while getattr(current, "last_epoch", epoch) < epoch:
            current._update_lr()
        self._last_lr = current.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back one epoch of every scheduler that holds no others."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for s in sched._schedulers:
                self.recursive_undo(s)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Several schedules at once: each acts on the rates that the ones before it have set.

    Args:
        schedulers: the schedules, all of the same optimiser.
        optimizer: that optimiser; the first schedule's if None.

    Raises:
        ValueError: there are none, one has another optimiser, or is a :class:`ReduceLROnPlateau`.

    Examples:
        >>> from taeda.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = ChainedScheduler([ConstantLR(optimizer, 0.1, total_iters=2), ExponentialLR(optimizer, 0.9)])
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.1, 0.09, 0.81, 0.729]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        self._schedulers = schedulers  # type: ignore[assignment]
        self._last_lr = _rates(self.optimizer)

    def step(self) -> None:  # type: ignore[override]
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _rates(self.optimizer)


class ReduceLROnPlateau(LRScheduler):
    """The rate falls by a factor when a metric, such as the validation loss, has stopped to improve.

    ``step(metric)`` is called after every epoch. When more than ``patience`` epochs in a row were no better than the
    best so far, ``lr = max(lr * factor, min_lr)``. Better is, for ``mode="min"``, below ``best * (1 - threshold)``, or
    below ``best - threshold`` with ``threshold_mode="abs"``.

    Args:
        optimizer: the optimiser whose rates are set.
        mode: ``"min"`` or ``"max"``: what is better.
        factor: the factor, below 1.
        patience: number of epochs to wait.
        threshold: least improvement that counts.
        threshold_mode: ``"rel"``, relative to the best, or ``"abs"``.
        cooldown: number of epochs after a fall in which bad ones do not count.
        min_lr: least rate, or a list with one for each group.
        eps: smaller changes of a rate are left out.

    Raises:
        ValueError: ``factor`` is not below 1, or the number of ``min_lr`` is not that of the groups.
        TypeError: ``optimizer`` is no optimiser.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> rates = []
        >>> for loss in [3.0, 2.0, 2.0, 2.1, 1.9]:
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step(loss)
        >>> rates  # two epochs without progress
        [1.0, 1.0, 1.0, 1.0, 0.1]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: list[float] | float = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.factor = factor
        self.optimizer = optimizer
        n = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != n:  # type: ignore[arg-type]
            raise ValueError(f"expected {n} min_lrs, got {len(min_lr)}")  # type: ignore[arg-type]
        self.default_min_lr = None if several else min_lr
        self.min_lrs: list[Any] = list(min_lr) if several else [min_lr] * n  # type: ignore[arg-type]
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _rates(optimizer)
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Note the metric of an epoch and reduce the rates if it is time."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _rates(self.optimizer)

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count at present."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.mode == "min":
            return a < (best * (1.0 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return a > (best * (self.threshold + 1.0) if self.threshold_mode == "rel" else best + self.threshold)

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
