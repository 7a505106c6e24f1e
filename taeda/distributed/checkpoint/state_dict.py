"""State dicts of models and optimisers by the parameters' own names, whatever they are wrapped in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import taeda
from taeda.nn import Module
from taeda.optim import Optimizer
from taeda.utils._pytree import tree_map

from ..._typed import Tensor
from ..collectives import broadcast
from ..data_parallel import DistributedDataParallel
from ..groups import device_of, get_rank, is_initialized
from ..objects import broadcast_object_list
from ..tensor.dtensor import DTensor, implicit_replication, wrap
from ..tensor.layout import replicated
from ..tensor.moves import redistribute

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("_fsdp_wrapped_module.", "_orig_mod.", "_checkpoint_wrapped_module.")


@dataclass
class StateDictOptions:
    """Options for making and loading state dicts.

    Args:
        full_state_dict: whole tensors rather than DTensors.
        cpu_offload: tensors on the CPU; whole ones at rank 0 alone, where the others get empty dicts.
        ignore_frozen_params: leave out parameters that require no gradient.
        keep_submodule_prefixes: accepted.
        strict: entries and parameters must be the same.
        broadcast_from_rank0: what is loaded is what rank 0 gives, in whole tensors; the others give empty dicts.
        flatten_optimizer_state_dict: not taken.
        dsd_fqn_modifiers: accepted.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _options(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.flatten_optimizer_state_dict:
        raise NotImplementedError("StateDictOptions: flatten_optimizer_state_dict is not there")
    return options


def _names(model: Module) -> dict[str, str]:
    """The model's names of parameters and buffers, and those without wrappers."""
    inside = {f"{n}." if n else "" for n, m in model.named_modules() if isinstance(m, DistributedDataParallel)}
    found = {}
    for name in [*(n for n, _ in model.named_parameters()), *(n for n, _ in model.named_buffers())]:
        bare = name
        for prefix in sorted(inside, key=len, reverse=True):
            if name.startswith(f"{prefix}module."):
                bare = prefix + bare[len(prefix) + len("module.") :]
        for wrapper in _WRAPPERS:
            bare = bare.replace(wrapper, "")
        found[name] = bare
    return found


def _shown(value: Any, options: StateDictOptions) -> Any:
    if not isinstance(value, Tensor):
        return value
    value = value.detach()
    if options.full_state_dict and isinstance(value, DTensor):
        value = value.full_tensor()
    return value.cpu() if options.cpu_offload and value.device.type != "cpu" else value


def _is_elsewhere(options: StateDictOptions) -> bool:
    """Whether this process is one of those that get empty dicts."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0


def _settled(model: Module) -> Module:
    """With parameters as parts, where a forward pass has left them whole."""
    for module in model.modules():
        state = vars(module).get("_fsdp_state")
        if state is not None:
            state.settle()
    return model


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Parameters and buffers by their names without wrappers; DTensors unless ``full_state_dict``."""
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict: submodules is deprecated, and not taken")
    options = _options(options)
    found, frozen = {}, {n for n, p in _settled(model).named_parameters() if not p.requires_grad}
    names = _names(model)
    for name, value in Module.state_dict(model).items():
        if options.ignore_frozen_params and name in frozen:
            continue
        shown = _shown(value, options)
        if not _is_elsewhere(options):
            found[names.get(name, name)] = shown
    return found


def parameter_names(model: Module) -> dict[Any, str]:
    """The names without wrappers of the model's parameters, by their ``id``."""
    names = _names(_settled(model))
    return {id(p): names[name] for name, p in model.named_parameters()}


def _parameters(model: Module, optimizers: Optimizer | Iterable[Optimizer]) -> tuple[dict[Any, str], list[Optimizer]]:
    return parameter_names(model), [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _init_optim_state(optimizer: Optimizer) -> None:
    """Let a new optimiser make its state: a step by nothing."""
    params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if optimizer.state or not params:
        return
    if any(p.grad is not None for p in params):
        raise RuntimeError("the state of a new optimiser is made by a step without gradients: call zero_grad() first")
    rates = [group.get("lr") for group in optimizer.param_groups]
    before = [p.detach().clone() for p in params]
    for p in params:
        p.grad = taeda.zeros_like(p)
    for group in optimizer.param_groups:
        if group.get("lr") is not None:
            group["lr"] = taeda.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    with taeda.no_grad():
        for p, value in zip(params, before, strict=True):
            p.copy_(value)
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """``{"state": {name: ...}, "param_groups": [...]}`` with the names of parameters in the place of their numbers."""
    options = _options(options)
    names, several = _parameters(model, optimizers)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in several:
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            for p in group["params"]:
                own = optimizer.state.get(p)
                if own:
                    state[names[id(p)]] = {k: _shown(v, options) for k, v in own.items()}
            kept = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            groups.append({**kept, "params": [names[id(p)] for p in group["params"]]})
    if _is_elsewhere(options):
        return {}
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """:func:`get_model_state_dict` and :func:`get_optimizer_state_dict`."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


# ---- loading ---------------------------------------------------------------------------------------------------------


def _like(value: Any, own: Any) -> Any:
    """A whole tensor, laid out as ``own`` is."""
    if not isinstance(value, Tensor) or isinstance(value, DTensor) or not isinstance(own, DTensor):
        return value
    if tuple(value.shape) != tuple(own.shape):
        return value
    layout = own._layout._replace(placements=replicated(own.device_mesh))
    value = value.detach() if own.is_meta else value.detach().to(own.device)
    return wrap(redistribute(value, layout, own.placements), own._layout)


def from_rank0(state: dict[str, Any]) -> dict[str, Any]:
    """The state dict of rank 0, at all processes: its form as objects, its tensors as they are."""
    tensors: list[Tensor] = []
    place = device_of()

    def note(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        tensors.append(x.full_tensor() if isinstance(x, DTensor) else x.detach())
        return ("tensor", len(tensors) - 1, tuple(x.shape), x.dtype.name)

    box = [tree_map(note, state) if get_rank() == 0 else None]
    broadcast_object_list(box, 0)

    def made(form: Any) -> Any:
        if isinstance(form, dict):
            return {k: made(v) for k, v in form.items()}
        if isinstance(form, list):
            return [made(v) for v in form]
        if isinstance(form, tuple) and len(form) == 4 and form[0] == "tensor":
            if get_rank() == 0:
                t = tensors[form[1]].to(place, copy=True)
            else:
                t = taeda.empty(form[2], dtype=getattr(taeda, form[3]), device=place)
            broadcast(t, 0)
            return t
        return form

    return made(box[0])


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load what :func:`get_model_state_dict` gave, whole or in parts; gives missing and unexpected names."""
    options = _options(options)
    if options.broadcast_from_rank0:
        model_state_dict = from_rank0(model_state_dict)
    wrapped = {bare: name for name, bare in _names(_settled(model)).items()}
    own = Module.state_dict(model)
    state = {}
    for bare, value in model_state_dict.items():
        name = wrapped.get(bare, bare)
        state[name] = _like(value, own.get(name))
    empty = any(isinstance(t, Tensor) and t.is_meta for t in own.values())  # these cannot be copied to
    with implicit_replication():
        return Module.load_state_dict(model, state, strict=options.strict, assign=empty)


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Load what :func:`get_optimizer_state_dict` gave.

    Args:
        model: whose parameters the optimisers update.
        optimizers: one, or several.
        optim_state_dict: what :func:`get_optimizer_state_dict` gave.
        options: how it was got.
    Raises:
        RuntimeError: a parameter of the optimiser has no group there.
    """
    options = _options(options)
    if options.broadcast_from_rank0:
        optim_state_dict = from_rank0(optim_state_dict)
    names, several = _parameters(model, optimizers)
    for optimizer in several:
        optimizer.load_state_dict(numbered(names, optimizer, optim_state_dict))


def numbered(names: dict[Any, str], optimizer: Optimizer, named: dict[str, Any]) -> dict[str, Any]:
    """Turn a state dict by names into one for ``optimizer.load_state_dict``.

    Args:
        names: of the parameters, by their ``id``.
        optimizer: whose parameters and groups it is for.
        named: what :func:`get_optimizer_state_dict` gave.
    Returns:
        A state dict with numbers for names.
    Raises:
        RuntimeError: a parameter of the optimiser has no group there.
    """
    group_of = {name: group for group in named["param_groups"] for name in group["params"]}
    state, groups, number = {}, [], 0
    for group in optimizer.param_groups:
        numbers = []
        saved: Any = None
        for p in group["params"]:
            name = names[id(p)]
            if name not in group_of:
                raise RuntimeError(f"set_optimizer_state_dict: no group of the state dict has the parameter {name!r}")
            saved = saved or group_of[name]
            if name in named["state"]:
                own = named["state"][name]
                state[number] = {k: _like(v, p) if isinstance(v, Tensor) and v.dim() else v for k, v in own.items()}
            numbers.append(number)
            number += 1
        rest = {
            k: tuple(v) if isinstance(group.get(k), tuple) else v for k, v in (saved or {}).items() if k != "params"
        }  # fmt: skip
        groups.append({**rest, "params": numbers})
    return {"state": state, "param_groups": groups}


def set_state_dict(
    model: Module, optimizers: Any, *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """:func:`set_model_state_dict` and :func:`set_optimizer_state_dict`."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
