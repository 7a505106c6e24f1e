"""``fully_shard``: parameters, gradients and the optimiser's state cut over processes (Rajbhandari et al. 2020)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from taeda.nn import Module

from ... import nn
from ...autograd import no_grad
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import device_of, get_process_group_ranks, get_world_size, new_group
from ..tensor.placement_types import Shard
from .parameters import ShardedParameter
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .state import State, states_of
from .unit import Unit

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


class UnshardHandle:
    """The result of ``unshard(async_op=True)``."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Until the parameters are whole."""
        self._unit.unshard()


class FSDPModule(Module):
    """Base of the classes that :func:`fully_shard` gives modules."""

    _fsdp_state: State

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")

    def _states(self, recurse: bool) -> list[State]:
        return states_of(self) if recurse else [self._fsdp_state]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this unit now."""
        unit = self._fsdp_state.unit
        if not async_op:
            unit.unshard()
            return None
        unit.begin_unshard(async_op=True)
        return UnshardHandle(unit)

    def reshard(self) -> None:
        """Drop the memory of this unit's whole parameters."""
        self._fsdp_state.unit.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether ``backward`` reduces gradients; without, whole ones are added up at each process."""
        for state in self._states(recurse):
            state.syncs = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether reduced gradients are averaged over the copies of a 2-D mesh."""
        for state in self._states(recurse):
            state.unit.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are dropped between forward and backward."""
        for state in self._states(recurse):
            state.reshard_after_forward = state.asked = reshard_after_forward
            state.unit.near, state.unit._near_parts = None, []

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether whole parameters are dropped after backward."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted: each backward pass waits for its reductions."""

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether the backward pass gathers this unit's parameters; without, they have to be whole when it needs
        them."""
        self._fsdp_state.unshards_in_backward = unshard_in_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sum of the gradients by ``factor`` instead of by the number of processes."""
        unit = self._fsdp_state.unit
        unit.divide_by = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Gather the parameters of ``modules`` while this one's forward pass runs."""
        self._fsdp_state.forward_prefetch = [m._fsdp_state for m in modules]

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Gather the parameters of ``modules`` while this one's backward pass runs. Default: the module before."""
        self._fsdp_state.backward_prefetch = [m._fsdp_state for m in modules]


_classes: dict[type, type] = {}


def _class_for(cls: type) -> type:
    if cls not in _classes:
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    return _classes[cls]


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable | None = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: set | None = None, dp_mesh_dims: Any = None,
) -> Any:  # fmt: skip
    """Cut the parameters of ``module`` that no inner call has cut: one unit, gathered for forward and backward.

    Apply it to inner modules (the blocks of a transformer) first, and to the model last. Parameters become DTensors,
    and so do gradients and what optimisers keep. All processes need the same parameters to begin with.

    Args:
        module: changed in place; or a list of modules, which are one unit.
        mesh: the processes; one dimension, or two: copies, and parts of each. All by default.
        reshard_after_forward: drop whole parameters after forward and gather them again for backward. Default: True,
            but for the root. A number: keep parts of them between forward and backward, cut over so many neighbouring
            processes, from which the backward pass gathers them.
        shard_placement_fn: ``(parameter) -> Shard(dim)`` or None for dimension 0.
        mp_policy: dtypes.
        offload_policy: parts of modules on the CPU are there in any case; of others they cannot be.
        ignored_params: parameters to leave as they are.
        dp_mesh_dims: not taken.
    Returns:
        ``module``, of a class that has the methods of :class:`FSDPModule`.
    Raises:
        AssertionError: a module was sharded before.
        ValueError: the mesh has more dimensions, what is given is no module that has a ``forward``, or the number of
            processes does not divide those of the mesh.
        NotImplementedError: ``dp_mesh_dims``, or parts on the CPU of a module on another device.
    """
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard: dp_mesh_dims is not there; give the mesh of data parallelism")
    if mesh is None:
        mesh = init_device_mesh(_kind_of_device(module), (get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for m in modules:
        if not isinstance(m, Module):
            raise ValueError(f"fully_shard: expected a module, got {type(m).__name__}")
        if isinstance(m, FSDPModule):
            raise AssertionError(f"fully_shard: expected a module that was not sharded before, got {type(m).__name__}")
        if isinstance(m, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {m}")
    if mesh.device_type != "cpu":
        if isinstance(offload_policy, CPUOffloadPolicy):
            raise NotImplementedError(f"fully_shard: parts on the CPU of a module on device {mesh.device_type}")
        for m in modules:
            _move(m, mesh.device_type)
    policy = mp_policy or MixedPrecisionPolicy()
    asked, near = _resharding(reshard_after_forward, mesh)
    parameters = [
        ShardedParameter(p, places, mesh, _dim(shard_placement_fn, p), policy.param_dtype)
        for p, places in _own_parameters(modules, ignored_params or set())
    ]
    for p in parameters:
        p.show(False)
    unit = Unit(parameters, mesh, policy, near)
    for m in modules:
        m._fsdp_state = State(m, unit, asked)
        m.__class__ = _class_for(type(m))
    return module


def _kind_of_device(module: Any) -> str:
    """The device of a module's parameters; that of the default group if they are on the CPU."""
    for m in module if isinstance(module, (list, tuple)) else [module]:
        for p in m.parameters() if isinstance(m, Module) else ():
            if p.device.type not in ("cpu", "meta"):
                return p.device.type
    return device_of().type


def _move(module: Module, kind: str) -> None:
    """Parameters and buffers of the CPU go to the devices of that kind."""
    with no_grad():
        for t in (*module.parameters(), *module.buffers()):
            if t.device.type == "cpu":
                t.data = t.data.to(kind)


def _resharding(asked: Any, mesh: DeviceMesh) -> tuple[bool | None, Any]:
    """Whether wholes are dropped after forward, and the group of neighbours that keep parts of them."""
    if asked is None or isinstance(asked, bool):
        return asked, None
    if not isinstance(asked, int):
        raise ValueError(
            f"reshard_after_forward should be a bool or an int representing the group size to reshard to, not {asked!r}"
        )
    size = mesh.size(mesh.ndim - 1)
    if asked < 1 or size % asked:
        raise ValueError(
            f"If passing reshard_after_forward as an int, it should be a factor of {size}, the processes over which "
            f"parameters are cut, not {asked}"
        )
    if asked in (1, size):
        return asked > 1, None
    ranks = get_process_group_ranks(mesh.get_group(mesh.ndim - 1))
    first = mesh.get_local_rank(mesh.ndim - 1) // asked * asked
    chosen = tuple(ranks[first : first + asked])
    known = mesh._root._neighbours
    if chosen not in known:
        known[chosen] = new_group(chosen, use_local_synchronization=True)
    return True, known[chosen]


def _dim(choose: Callable | None, p: Any) -> int:
    place = choose(p) if choose is not None else None
    if place is None:
        place = Shard(0)
    if not isinstance(place, Shard):
        raise ValueError(f"shard_placement_fn: expected a Shard or None, got {place!r}")
    if p.dim() == 0:
        raise ValueError(
            "fully_shard doesn't support scalar parameters. Change it to a 1D tensor with numel equal to 1."
        )
    return place.dim % p.dim()


def _own_parameters(modules: list[Module], ignored: set) -> list[tuple[Any, list[tuple[Module, str]]]]:
    """Parameters of ``modules`` that belong to no inner unit, each with all places that hold it."""
    taken = {id(p.sharded) for m in modules for state in states_of(m) for p in state.unit.parameters}
    taken |= {id(p) for p in ignored}
    found: dict[int, tuple[Any, list[tuple[Module, str]]]] = {}
    seen = set()
    for top in modules:
        for module in top.modules():
            if id(module) in seen or isinstance(module, FSDPModule):
                continue
            seen.add(id(module))
            for name, p in module._parameters.items():
                if p is not None and id(p) not in taken:
                    found.setdefault(id(p), (p, []))[1].append((module, name))
    return list(found.values())


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let ``module.method_name(...)`` gather parameters as ``forward`` does."""
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)
    state = module._fsdp_state

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(module, args, kwargs)
        return state.after_forward(module, args, method(*args, **kwargs))

    setattr(module, method_name, wrapped)
