"""The base class of learning-rate schedules, and reading and writing the rate of a group."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from taeda._core.nearest import ChecksKeywords

from .._core.settings import within
from .._typed import Tensor
from .optimizer import Optimizer

_EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler."
)


def _copied(x: Any) -> Any:
    return x.clone() if isinstance(x, Tensor) else x


def _rates(optimizer: Optimizer, key: str = "lr") -> list:
    """The present value of an option in every group; a Tensor is copied, since it is changed in place."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def _set(group: dict, key: str, value: Any) -> None:
    if isinstance(group[key], Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list:
    """One value per group."""
    if isinstance(param, list | tuple):
        if len(param) != len(optimizer.param_groups):
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} "
                             f"values, param_groups has {len(optimizer.param_groups)}.")  # fmt: skip
        return [_copied(p) for p in param]
    return [_copied(param) for _ in optimizer.param_groups]


def _count_steps(optimizer: Optimizer) -> None:
    """Make the optimiser note that its step was called, so that a wrong order of calls can be told."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function = optimizer.step.__func__  # type: ignore[attr-defined]
    reference = weakref.ref(optimizer)

    @functools.wraps(function)
    def step(*args, **kwargs):
        owner: Any = reference()
        owner._opt_called = True
        return function(owner, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step  # type: ignore[method-assign]


class LRScheduler(ChecksKeywords):
    """Base class of learning-rate schedules: ``step`` counts epochs, and ``get_lr`` of a subclass gives the rates.

    ``step`` is called once per epoch, after the optimiser's, or once per batch where a class says so. It sets ``"lr"``
    of every parameter group. ``last_epoch`` is the number of the epoch, from 0; ``base_lrs`` are the rates at the
    start.

    Args:
        optimizer: the optimiser whose rates are set.
        last_epoch: the epoch after which to resume; -1 to start, which keeps each group's rate as ``"initial_lr"``.

    Raises:
        TypeError: ``optimizer`` is no optimiser.
        KeyError: ``last_epoch`` is not -1 and a group has no ``"initial_lr"``.

    Examples:
        >>> class Halved(taeda.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = Halved(optimizer)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch "
                    ">= 0"
                )
        self.base_lrs = _rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the first rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The rates that were set last."""
        return self._last_lr

    def get_lr(self) -> list:
        """The rates of the present ``last_epoch``; a subclass defines it."""
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning,
                stacklevel=3,
            )  # fmt: skip

    def _within_step(self):
        return within(self, _get_lr_called_within_step=True)

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch and set the rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.", UserWarning,
                    stacklevel=2,
                )  # fmt: skip
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite "
                    "order, "
                    "or the first value of the learning rate schedule is skipped.", UserWarning, stacklevel=2,
                )  # fmt: skip
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._within_step():
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                values = self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr()
        self._apply(values)

    def _apply(self, values: list) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _set(group, "lr", lr)
        self._last_lr = _rates(self.optimizer)

    def _scaled(self, factor: float) -> list:
        """The present rates times ``factor``."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The base class's older name."""
