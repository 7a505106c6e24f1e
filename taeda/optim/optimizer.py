"""Optimizer: parameter groups, state, hooks and state dictionaries, with PyTorch's semantics."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from inspect import ismethod
from itertools import chain
from typing import Any

from taeda._core.callbacks import callbacks
from taeda._core.nearest import ChecksKeywords
from taeda._core.optim import drop_grads

from .._core import float32
from .._typed import Tensor
from ..autograd import enable_grad
from ..nn.modules import _hooks
from ..nn.modules._hooks import RemovableHandle
from ..nn.modules.module import Module

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

_global_pre_hooks: dict[int, Callable] = {}
_global_post_hooks: dict[int, Callable] = {}


class _RequiredParameter:
    """The default of an argument that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every optimiser's step."""
    return _hooks.add(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every optimiser's step."""
    return _hooks.add(_global_post_hooks, hook)


def to_scalar(x: Any) -> Any:
    """A one-element Tensor as a number; anything else as it is."""
    return x.item() if isinstance(x, Tensor) else x


def at_least_zero(name: str, value: Any) -> bool:
    """Whether an option is not negative.

    Args:
        name: of the option, for messages.
        value: its value.

    Returns:
        True where it is not.

    Raises:
        TypeError: it is no number.
    """
    try:
        return bool(value >= 0.0)
    except TypeError:
        mend = f"; convert it with float({value!r})" if isinstance(value, str) else ""
        raise TypeError(f"{name} must be a number, not {type(value).__name__}{mend}") from None


def check_lr(lr: Any) -> None:
    """Raise unless ``lr`` is a number, or a Tensor of one element, of at least zero."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not at_least_zero("lr", lr):
        raise ValueError(f"Invalid learning rate: {lr}")


def check_nonnegative(**options: Any) -> None:
    """Raise unless every option is at least zero."""
    for name, value in options.items():
        if not at_least_zero(name, value):
            raise ValueError(f"Invalid {name} value: {value}")


#: Options that may not be negative, with the names that messages have for them.
_NONNEGATIVE = {
    "eps": "epsilon", **{name: name for name in (
        "initial_accumulator_value", "lr_decay", "momentum", "momentum_decay", "weight_decay",
    )},
}  # fmt: skip


def options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The options of a group, from ``locals()`` at the start of a constructor: all arguments but ``self`` and
    ``params``."""
    return {name: value for name, value in arguments.items() if name not in ("self", "params", "__class__")}


def checked(arguments: dict[str, Any], *first: str) -> dict[str, Any]:
    """:func:`options`, of which those that all optimisers have in common are checked by name.

    Args:
        arguments: ``locals()`` at the start of a constructor.
        first: names that come first, where PyTorch's groups have another order than its constructor.

    Returns:
        The options.

    Raises:
        ValueError: a rate, a decay or the like is negative, or a beta is not in ``[0, 1)``.
        IndexError: there is one beta only.
    """
    found = {name: arguments[name] for name in first} | options(arguments)
    check_lr(found["lr"])
    for i in range(2 if "betas" in found else 0):
        if not 0.0 <= found["betas"][i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {found['betas'][i]}")
    check_nonnegative(**{_NONNEGATIVE[name]: value for name, value in found.items() if name in _NONNEGATIVE})
    return found


def _hooked(step: Callable) -> Callable:
    """``step`` with its hooks; without any it is one test more."""

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        if not (
            self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or _global_pre_hooks or _global_post_hooks
        ):
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        out = step(*args, **kwargs)
        for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


class Optimizer(ChecksKeywords):
    """Base class of optimisers: groups of parameters with options, and state for each parameter.

    ``param_groups`` is a list of dicts: the parameters under ``"params"``, and the options. ``state`` has a dict for
    each parameter. A subclass gives ``defaults`` and defines ``step``.

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with such a list under ``"params"`` and
            options of their own. Any shape, floating-point or complex.
        defaults: options of groups that do not give them.

    Raises:
        TypeError: ``params`` is one tensor or a module, or holds something that is no tensor.
        ValueError: there are no parameters, one is no leaf or is in two groups, or a required option is missing.

    Examples:
        >>> class SignDescent(taeda.optim.Optimizer):
        ...     def __init__(self, params, lr=0.01):
        ...         super().__init__(params, {"lr": lr})
        ...
        ...     @taeda.no_grad()
        ...     def step(self):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 if p.grad is not None:
        ...                     p -= group["lr"] * p.grad.sign()
        >>> w = taeda.tensor([1.0, -200.0], requires_grad=True)
        >>> optimizer = SignDescent([w], lr=0.5)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   0.5000, -199.5000], requires_grad=True)
    """

    # the tables of hooks: nothing else is annotated in the body of the class
    _optimizer_step_pre_hooks: dict[int, Callable]
    _optimizer_step_post_hooks: dict[int, Callable]
    _optimizer_state_dict_pre_hooks: dict[int, Callable]
    _optimizer_state_dict_post_hooks: dict[int, Callable]
    _optimizer_load_state_dict_pre_hooks: dict[int, Callable]
    _optimizer_load_state_dict_post_hooks: dict[int, Callable]

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in Optimizer.__annotations__:
            setattr(self, name, {})
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}"
            )
        if isinstance(params, Module) and not hasattr(params, "__iter__"):  # a ParameterList is one of parameters
            raise TypeError(
                f"'{type(params).__name__}' object is not iterable: give its parameters, module.parameters()"
            )
        if ismethod(params):
            raise TypeError(f"'method' object is not iterable: call it, {params.__name__}()")
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list. Layers in a Python list or dict are not the module's: "
                "put them into nn.ModuleList or nn.ModuleDict. A generator, such as model.parameters(), gives its "
                "items only once"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in Optimizer.__annotations__:
            self.__dict__.setdefault(name, {})
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"] if i == 0 else ["", f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # ---- hooks ------------------------------------------------------------------------------------------------------
    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; a pair replaces the arguments."""
        return _hooks.add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _hooks.add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return _hooks.add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; a result replaces it."""
        return _hooks.add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; a result replaces it."""
        return _hooks.add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _hooks.add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state ------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """State and groups, with parameters as numbers in the order of the groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave; tensors are cast to their parameter's dtype.

        Args:
            state_dict: what it gave.

        Raises:
            ValueError: the groups differ in number or size.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: {len(saved)}, expected {len(groups)}"
            )
        for i, (ours, theirs) in enumerate(zip(groups, saved, strict=True)):
            if len(ours["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {i} has {len(theirs['params'])} parameters there and {len(ours['params'])} here"
                )
        params = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved),
                chain.from_iterable(g["params"] for g in groups),
                strict=True,
            )
        )
        special = {i for g in saved if g.get("fused") or g.get("capturable") for i in g["params"]}
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _cast(params[key], value, None, key in special)
            else:
                state[key] = value
        for ours, theirs in zip(groups, saved, strict=True):
            theirs["params"] = ours["params"]
            if "param_names" in ours:
                theirs.setdefault("param_names", ours["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- use --------------------------------------------------------------------------------------------------------
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zero."""
        for group in self.param_groups:
            if set_to_none:
                drop_grads(group["params"])
                continue
            for p in group["params"]:
                if p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters; ``closure`` computes the loss again and returns it. Defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.step is not defined")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict of options with its ``"params"``.

        Args:
            param_group: the dict.

        Raises:
            TypeError: it is no dict, or a parameter is no Tensor.
            ValueError: a parameter is no leaf, is in another group already, or a required option is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    f"can't optimize a non-leaf Tensor: it is a result of {p.grad_fn.name()}. Give what it was "
                    "computed from, or x.detach().requires_grad_()"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                ours = "with" if "param_names" in param_group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{ours} names to the optimizer"
                )
            if any(id(p) in ids for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _loss(self, closure: Callable[[], Any] | None) -> Any:
        """The result of ``closure``, with gradients on."""
        if closure is None:
            return None
        with enable_grad():
            return closure()


def refuse_capture(name: str) -> None:
    """Refuse a step that a CUDA graph would repeat with the numbers of its capture."""
    if callbacks.captures is not None and callbacks.captures():
        raise RuntimeError(
            f"{name}: this step cannot be captured into a CUDA graph, which would repeat it with the numbers of now. "
            "Take a step before the capture, so that the state exists. Gradients need the dtype of their parameters"
        )


def _cast(param: Tensor, value: Any, key: Any, special: bool) -> Any:
    """A loaded piece of state for ``param``: floating-point state takes its dtype, except the step count."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=float32, device=param.device) if special else value
        return value.to(dtype=param.dtype, device=param.device) if param.is_floating_point() else value.to(param.device)
    if isinstance(value, dict):
        return {k: _cast(param, v, k, special) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_cast(param, v, None, special) for v in value)  # type: ignore[call-arg]
    return value
