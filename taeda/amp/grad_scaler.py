"""``GradScaler``: multiplies the loss by a large number, so that gradients in half precision do not vanish.

Steps whose gradients overflow are left out, and the number is lowered (Micikevicius et al. 2018, "Mixed precision
training").
"""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Iterable
from typing import Any

from taeda._core.optim import alike
from taeda._core.replay import call_unless
from taeda.ops.updates import change_all, total_norm

from .._core import bfloat16, float16, float32, int32
from .._typed import Tensor
from ..autograd import no_grad
from ..ops.creation import full
from ..ops.exchange import tensor
from ..ops.indexing import where
from ..ops.joining import stack
from .autocast_mode import is_autocast_available

__all__ = ["GradScaler", "OptState"]

_NARROW = (float32, float16, bfloat16)


class OptState(enum.Enum):
    """The stage of an optimiser since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, unscales gradients, and steps where they are finite: small gradients do not vanish in ``float16``
    (Micikevicius et al. 2018, "Mixed Precision Training").

    Args:
        device: ``"cpu"``, or ``"cuda"``, which without a GPU disables the scaler with a warning.
        init_scale: the first scale.
        growth_factor: the scale is multiplied by this after ``growth_interval`` steps without overflow.
        backoff_factor: and by this after an overflow.
        growth_interval: how many steps without overflow there are before the scale grows.
        enabled: with False, ``scale`` and ``step`` pass their arguments through.
    Raises:
        AssertionError: ``growth_factor <= 1`` or ``backoff_factor >= 1``.
    Examples:
        >>> weight = taeda.tensor([1.0], requires_grad=True)
        >>> optimizer, scaler = taeda.optim.SGD([weight], lr=0.5), taeda.GradScaler("cpu")
        >>> scaler.scale((weight * 3).sum()).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
        >>> weight
        tensor([-0.5000], requires_grad=True)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = device
        self._enabled = enabled
        if device != "cpu" and enabled and not is_autocast_available(device):
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: growth_factor must be greater than 1, got {growth_factor}")
        if backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: backoff_factor must be less than 1, got {backoff_factor}")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict] = {}

    def _state(self, optimizer: Any) -> dict:
        return self._per_optimizer_states.setdefault(id(optimizer), {"stage": OptState.READY, "found_inf": None})

    def _start(self, device: Any = None) -> Tensor:
        if self._scale is None:
            self._scale = full((), float(self._init_scale), dtype=float32, device=device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=device)
        return self._scale

    def _begun(self, name: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(f"GradScaler.{name}: attempted before any loss was scaled; call scale(loss) first")
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A tensor, or an iterable of them, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._start(outputs.device).to(outputs.device)
        if isinstance(outputs, Iterable):
            made = map(self.scale, outputs)
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else made
        raise ValueError(f"GradScaler.scale: expected a Tensor or an iterable of Tensors, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimiser's parameters by the scale, in place, once per step.

        Args:
            optimizer: whose parameters are meant.

        Raises:
            RuntimeError: it was done already since the last ``update``, or the step was taken.
            ValueError: a gradient is float16.
        """
        if not self._enabled:
            return
        scale = self._begun("unscale_")
        state = self._state(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf"] = self._unscale(optimizer, scale.double().reciprocal().float(), allow_half=False)
        state["stage"] = OptState.UNSCALED

    @staticmethod
    def _unscale(optimizer: Any, inverse: Tensor, allow_half: bool) -> Tensor:
        with no_grad():
            grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            if not allow_half and any(grad.dtype is float16 for grad in grads):
                raise ValueError("Attempting to unscale FP16 gradients.")
            values = [grad._values() if grad.is_sparse else grad for grad in grads]
            if values and alike(values) and values[0].dtype in _NARROW:
                finite = total_norm(values, math.inf).isfinite()
            else:
                finite = stack([value.isfinite().all() for value in values] or [tensor(True)]).all()
            change_all(values, "scale", inverse)
            return finite.logical_not().float()

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(*args, **kwargs)``, unless a gradient is infinite or NaN; unscales first where that was not
        done.

        Args:
            optimizer: whose step is taken.
            *args: for the step.
            **kwargs: for the step.

        Returns:
            What the optimiser's step gives, or None where it was left out.

        Raises:
            RuntimeError: the step was taken since the last ``update``, no parameter has a gradient, or a ``closure`` is
                given.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._begun("step")
        state = self._state(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if (getattr(optimizer, "_step_supports_amp_scaling", False) and state["stage"] is OptState.READY) or state[
            "stage"
        ] is OptState.READY:
            self.unscale_(optimizer)
        if state["found_inf"] is None:
            raise RuntimeError("No inf checks were recorded for this optimizer.")
        result = call_unless(state["found_inf"], lambda: optimizer.step(*args, **kwargs))
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adjust the scale after the steps of this iteration, or set it to ``new_scale`` (a float or one-element
        tensor)."""
        if not self._enabled:
            return
        scale = self._begun("update")
        assert self._growth_tracker is not None
        with no_grad():
            if new_scale is not None:
                scale.fill_(new_scale if not isinstance(new_scale, Tensor) else new_scale.item())
            else:
                found = [s["found_inf"] for s in self._per_optimizer_states.values() if s["found_inf"] is not None]
                if not found:
                    raise RuntimeError("No inf checks were recorded prior to update.")
                lower = stack(found).any()
                higher = self._growth_tracker == self._growth_interval - 1
                grown = scale * self._growth_factor
                kept = where(higher & grown.isfinite(), grown, scale)
                scale.copy_(where(lower, scale * self._backoff_factor, kept))
                self._growth_tracker.add_(1).mul_((lower | higher).logical_not())
        self._per_optimizer_states.clear()

    def get_scale(self) -> float:
        """The scale; 1.0 where disabled."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """The growth factor."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The backoff factor."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The growth interval."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the growth interval."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """``scale``, ``growth_factor``, ``backoff_factor``, ``growth_interval``, ``_growth_tracker``; empty where
        disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from :meth:`state_dict`.

        Args:
            state_dict: what :meth:`state_dict` gave.

        Raises:
            RuntimeError: it is empty, that of a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def _check_inf_per_device(self, optimizer: Any) -> dict:
        state = self._state(optimizer)
        state["found_inf"] = self._unscale(optimizer, full((), 1.0), allow_half=True)
        return {str(state["found_inf"].device): state["found_inf"]}

    def _found_inf_per_device(self, optimizer: Any) -> dict:
        found = self._state(optimizer)["found_inf"]
        return {str(found.device): found}

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise RuntimeError("A GradScaler may be pickled only at the beginning or the end of an iteration.")
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
