"""Learning-rate schedules that go up and down, most of them stepped after every batch."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from .optimizer import Optimizer
from .schedule import LRScheduler, _format_param, _set


def _cycle_momentum(scheduler: Any, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> tuple[list, list]:
    """Prepare the groups for a momentum (or beta1) that cycles against the rate."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    scheduler.use_beta1 = "betas" in optimizer.defaults
    bases, tops = _format_param("base_momentum", optimizer, base), _format_param("max_momentum", optimizer, top)
    if last_epoch == -1:
        for high, low, group in zip(tops, bases, optimizer.param_groups, strict=True):
            _set_momentum(group, high, scheduler.use_beta1)
            group["max_momentum"] = high
            group["base_momentum"] = low
    return bases, tops


def _set_momentum(group: dict, value: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """The rate goes up and down between two values; ``step`` is called after every batch.

    With ``x`` rising from 0 to 1 in ``step_size_up`` batches and falling to 0 in ``step_size_down``:
    ``lr = base_lr + (max_lr - base_lr) * x * scale``. ``scale`` is 1 for ``"triangular"``, ``0.5 ** (cycle - 1)`` for
    ``"triangular2"``, ``gamma ** batch`` for ``"exp_range"``. Source: Smith 2015, "Cyclical Learning Rates for Training
    Neural Networks".

    Args:
        optimizer: the optimiser whose rates are set.
        base_lr: lowest rate, or a list with one for each group.
        max_lr: highest rate, or a list with one for each group.
        step_size_up: number of batches in which it rises.
        step_size_down: number of batches in which it falls; ``step_size_up`` if None.
        mode: ``"triangular"``, ``"triangular2"`` or ``"exp_range"``.
        gamma: see above.
        scale_fn: a function that gives ``scale``, in place of ``mode``.
        scale_mode: what ``scale_fn`` is a function of: ``"cycle"``, counted from 1, or ``"iterations"``.
        cycle_momentum: move the momentum, or the first beta, against the rate.
        base_momentum: lowest momentum, or a list with one for each group.
        max_momentum: highest momentum, or a list with one for each group.
        last_epoch: the batch after which to resume; -1 to start.

    Raises:
        ValueError: the mode is unknown, a list has another length than there are groups, or the optimiser has no
            momentum.
        TypeError: ``optimizer`` is no optimiser.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.9, step_size_up=4)
        >>> rates = []
        >>> for epoch in range(9):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.1, 0.3, 0.5, 0.7, 0.9, 0.7, 0.5, 0.3, 0.1]
    """

    use_beta1: bool

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set(group, "lr", lr)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (float(step_size_down) if step_size_down is not None else up)
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = _cycle_momentum(
                self, optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the amplitude in cycle (or at iteration) ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        fn = state.pop("_scale_fn_custom")
        keep = fn is not None and not isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = fn.__dict__.copy() if keep else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate falls as half a cosine, jumps back and falls again.

    ``lr = eta_min + (lr(0) - eta_min) * (1 + cos(pi * t / T)) / 2``, with ``t`` epochs since the last restart and ``T``
    the length of the fall: ``T_0`` at first, each ``T_mult`` times as long as the one before. ``step`` takes a fraction
    of an epoch, too, to be called after every batch. Source: Loshchilov & Hutter 2016, "SGDR: Stochastic Gradient
    Descent with Warm Restarts".

    Args:
        optimizer: the optimiser whose rates are set.
        T_0: number of epochs of the first fall.
        T_mult: factor of the length, a whole number of at least 1.
        eta_min: the lowest rate.
        last_epoch: number of the last epoch, to go on after it; -1: begin.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is no such number.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
        >>> rates = []
        >>> for epoch in range(7):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.8536, 0.5, 0.1464, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to ``epoch``, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            if epoch < self.T_0:
                self.T_i, self.T_cur = self.T_0, epoch
            elif self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        with self._within_step():
            values = self.get_lr()
        self._apply(values)


class OneCycleLR(LRScheduler):
    """One rise to a high rate and one fall far below the first; ``step`` is called after every batch.

    The rate goes from ``max_lr / div_factor`` to ``max_lr`` in the first ``pct_start`` of the batches, then to ``max_lr
    / div_factor / final_div_factor``. The momentum goes the other way. The high rates in the middle shorten training.
    Source: Smith & Topin 2017, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates".

    Args:
        optimizer: the optimiser whose rates are set.
        max_lr: highest rate, or a list with one for each group.
        total_steps: number of batches in all; or give ``epochs`` and ``steps_per_epoch``.
        epochs: number of epochs.
        steps_per_epoch: number of batches in an epoch.
        pct_start: part of the batches in which the rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: move the momentum, or the first beta, against the rate.
        base_momentum: lowest momentum, or a list with one for each group.
        max_momentum: highest momentum, or a list with one for each group.
        div_factor: ``max_lr`` over the first rate.
        final_div_factor: the first rate over the last.
        three_phase: fall back to the first rate as fast as it rose, then to the last.
        last_epoch: the batch after which to resume; -1 to start.

    Raises:
        ValueError: the number of batches is not given or not positive, an option is out of its range, or the optimiser
            has no momentum; in ``step``, there were more batches than given.
        TypeError: ``optimizer`` is no optimiser.

    Examples:
        >>> optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = taeda.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=7, cycle_momentum=False)
        >>> rates = []
        >>> for epoch in range(7):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()  # here: the batches of the epoch
        ...     scheduler.step()
        >>> rates
        [0.04, 0.9806, 0.919, 0.6727, 0.3577, 0.0993, 0.0]
    """

    use_beta1: bool

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        counts = (
            {"total_steps": total_steps}
            if total_steps is not None
            else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        )
        for name, n in counts.items():
            if not isinstance(n, int) or n <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {n}")
        self.total_steps: int = total_steps if total_steps is not None else epochs * steps_per_epoch  # type: ignore[operator]
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(float(pct_start * self.total_steps), three_phase)
        max_lrs = _format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for top, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _cycle_momentum(self, optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _phases(self, rise: float, three: bool) -> list[dict]:
        """End of each phase, and the options that rate and momentum go from and to."""

        def phase(end: float, lr0: str, lr1: str, m0: str, m1: str) -> dict:
            return {
                "end_step": end, "start_lr": lr0, "end_lr": lr1, "start_momentum": m0, "end_momentum": m1,
            }  # fmt: skip

        last = self.total_steps - 1
        up = phase(rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three:
            return [up, phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        down = phase(2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        return [up, down, phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _anneal_func(self, start: float, end: float, part: float) -> float:
        return (self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear)(start, end, part)

    # files of old schedules have these functions by name

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: float, end: float, pct: float) -> float:
        return (end - start) * pct + start

    def get_lr(self) -> list:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum = self._anneal_func(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                _set_momentum(group, momentum, self.use_beta1)
        return rates
