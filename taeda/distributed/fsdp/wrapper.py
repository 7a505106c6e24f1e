"""``FullyShardedDataParallel``: the class, over what :func:`fully_shard` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda.nn import Module
from taeda.optim import Optimizer

from ... import nn
from ..._typed import Tensor
from ...autograd import no_grad
from ..checkpoint.state_dict import (
    StateDictOptions,
    from_rank0,
    get_optimizer_state_dict,
    numbered,
    parameter_names,
)  # fmt: skip
from ..collectives import broadcast
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_process_group_ranks, get_rank, get_world_size
from ..objects import all_gather_object
from ..tensor.dtensor import DTensor, implicit_replication
from .api import (
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)  # fmt: skip
from .policies import MixedPrecisionPolicy
from .shard import FSDPModule, fully_shard
from .state import states_of
from .wrap import as_policy, modules_to_wrap

__all__ = ["FullyShardedDataParallel"]

_PREFIX = "_fsdp_wrapped_module."


class FullyShardedDataParallel(Module):
    """Wraps ``module``, whose parameters, gradients and optimiser state are cut over processes.

    Parameters are DTensors with their own names and shapes, as with ``use_orig_params=True``.

    Args:
        module: changed in place.
        process_group: the processes, all by default; for HYBRID_SHARD the group of parts and that of copies.
        sharding_strategy: FULL_SHARD by default; HYBRID_SHARD takes a 2-D ``device_mesh``.
        cpu_offload: accepted.
        auto_wrap_policy: which inner modules are units of their own.
        backward_prefetch: accepted.
        mixed_precision: dtypes.
        ignored_modules: modules that stay as they are.
        param_init_fn: called with each module that has parameters on device meta; by default these get memory and
            ``reset_parameters()``.
        device_id: accepted.
        sync_module_states: make parameters and buffers those of rank 0 first.
        forward_prefetch: accepted.
        limit_all_gathers: accepted.
        use_orig_params: accepted.
        ignored_states: modules or parameters that stay as they are.
        device_mesh: in place of ``process_group``: the processes, one dimension, or copies and parts.
    Raises:
        NotImplementedError: an option that is not taken.
        KeyError: ``sharding_strategy`` is none.
        ValueError: both ``process_group`` and ``device_mesh`` are given.
    """

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None, auto_wrap_policy: Any = None, backward_prefetch: Any = None,
        mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable | None = None, device_id: Any = None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable | None = None, device_mesh: DeviceMesh | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if process_group is not None:
            if device_mesh is not None:
                raise ValueError(
                    "FullyShardedDataParallel: cannot pass both process_group and device_mesh at the same time"
                )
            device_mesh = _mesh_of(process_group)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if not isinstance(strategy, ShardingStrategy):
            raise KeyError(f"FullyShardedDataParallel: expected a ShardingStrategy, got {strategy!r}")
        self.sharding_strategy = strategy
        states = list(ignored_states or ())
        without = {id(m) for m in [*(ignored_modules or ()), *(s for s in states if isinstance(s, Module))]}
        ignored = [s for s in states if isinstance(s, Tensor)]
        ignored += [p for m in module.modules() if id(m) in without for p in m.parameters()]
        options = _options(strategy, device_mesh, mixed_precision, set(ignored))
        if sync_module_states:
            _synchronise(module, options["mesh"])
        if mixed_precision is not None and mixed_precision.buffer_dtype is not None:
            for buffer in module.buffers():
                if buffer.is_floating_point():
                    buffer.data = buffer.data.to(mixed_precision.buffer_dtype)
        if auto_wrap_policy is not None:
            for parent, name in modules_to_wrap(module, as_policy(auto_wrap_policy), without, set()):
                _materialise(getattr(parent, name), param_init_fn)
                parent._modules[name] = _wrapped(getattr(parent, name), strategy, options)
        _materialise(module, param_init_fn)
        self._fsdp_wrapped_module: Any = fully_shard(module, **options)
        self._settings = StateDictSettings()

    @property
    def module(self) -> Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """``module(*args, **kwargs)``."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in ``module``."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return found[:1] if root_only else found

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, whole gradients are added up at each process; the first ``backward`` after it reduces them."""
        self._fsdp_wrapped_module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self._fsdp_wrapped_module.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients to a total norm of at most ``max_norm``; gives the norm before."""
        norm: Any = nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Within the block, parameters are whole. With ``writeback``, changes to them are kept.

        Args:
            module: the model, or a part of it.
            recurse: also the wrappers inside.
            writeback: keep changes.
            rank0_only: False.
            offload_to_cpu: accepted.
            with_grads: False.

        Yields:
            Nothing.

        Raises:
            NotImplementedError: gradients, or one process alone.
        """
        if with_grads or rank0_only:
            raise NotImplementedError("summon_full_params: with_grads and rank0_only are not there")
        states = states_of(module) if recurse else states_of(module)[:1]
        for state in states:
            state.unit.unshard()
        try:
            yield
        finally:
            for state in states:
                for p in state.unit.parameters if writeback and state.unit.whole else ():
                    p.write_back()
                state.unit.reshard()

    # ---- state
    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:  # fmt: skip
        """Set the form of ``state_dict`` for the wrappers in ``module``.

        Args:
            module: the model, or a part of it.
            state_dict_type: whole tensors or parts.
            state_dict_config: options of that form.
            optim_state_dict_config: options of the optimiser's state.
        Returns:
            The settings before.
        Raises:
            NotImplementedError: LOCAL_STATE_DICT, of flat parameters.
        """
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("LOCAL_STATE_DICT is of flat parameters; use SHARDED_STATE_DICT")
        before = FullyShardedDataParallel.get_state_dict_type(module)
        whole = state_dict_type is StateDictType.FULL_STATE_DICT
        settings = StateDictSettings(
            state_dict_type,
            state_dict_config or (FullStateDictConfig() if whole else ShardedStateDictConfig()),
            optim_state_dict_config or (FullOptimStateDictConfig() if whole else ShardedOptimStateDictConfig()),
        )
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The form of ``state_dict`` for the wrappers in ``module``."""
        found = FullyShardedDataParallel.fsdp_modules(module, root_only=True)
        return found[0]._settings if found else StateDictSettings()

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:  # fmt: skip
        """Within it, ``state_dict`` gives whole tensors or parts."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        before = [m._settings for m in wrappers]
        FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for m, settings in zip(wrappers, before, strict=True):
                m._settings = settings

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: Any = None, group: Any = None
    ) -> dict[str, Any]:
        """The optimiser's state by the names of parameters, of whole tensors or parts as ``state_dict`` is.

        Args:
            model: whose parameters ``optim`` updates.
            optim: the optimiser.
            optim_state_dict: None.
            group: None.

        Returns:
            The state dict.

        Raises:
            NotImplementedError: ``optim_state_dict`` or ``group``.
        """
        if optim_state_dict is not None or group is not None:
            raise NotImplementedError(
                "FullyShardedDataParallel.optim_state_dict: optim_state_dict and group are not taken"
            )
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        found = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=whole))
        elsewhere = whole and getattr(settings.optim_state_dict_config, "rank0_only", False) and get_rank() != 0
        return {} if elsewhere else found

    full_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Turn a result of :meth:`optim_state_dict` into one for ``optim.load_state_dict``; load it at once if
        ``load_directly``.

        Args:
            model: whose parameters ``optim`` updates.
            optim: the optimiser.
            optim_state_dict: what :meth:`optim_state_dict` gave.
            is_named_optimizer: False.
            load_directly: load the result into ``optim``.
            group: None.

        Returns:
            The state dict.

        Raises:
            NotImplementedError: ``is_named_optimizer`` or ``group``.
            RuntimeError: a parameter has no group there, or this process has no state where rank 0 alone has it.
        """
        if is_named_optimizer or group is not None:
            raise NotImplementedError(
                "FullyShardedDataParallel.optim_state_dict_to_load: is_named_optimizer and group are not taken"
            )
        if getattr(FullyShardedDataParallel.get_state_dict_type(model).optim_state_dict_config, "rank0_only", False):
            optim_state_dict = from_rank0(optim_state_dict)
        made = numbered(parameter_names(model), optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any], optim_state_key_type: OptimStateKeyType, model: Module,
        optim_input: Any = None, optim: Optimizer | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """An optimiser's state dict with the other names for the parameters of ``model``.

        Args:
            optim_state_dict: one with numbers for names, or with names for numbers.
            optim_state_key_type: what it is to have.
            model: whose parameters these are.
            optim_input: what the optimiser was made of, in place of ``optim``; the model's parameters by default.
            optim: the optimiser.
        Returns:
            The state dict.
        Raises:
            AssertionError: ``optim_state_key_type`` is no such type.
            ValueError: both ``optim_input`` and ``optim`` are given.
        """
        if not isinstance(optim_state_key_type, OptimStateKeyType):
            raise AssertionError(
                f"Expected optim_state_key_type to be PARAM_NAME or PARAM_ID, got {optim_state_key_type}"
            )
        if optim_input is not None and optim is not None:
            raise ValueError("rekey_optim_state_dict: expected optim_input or optim, got both")
        given = list(model.parameters() if optim_input is None else optim_input)
        groups = optim.param_groups if optim is not None else given
        chosen = [p for one in groups for p in (one["params"] if isinstance(one, dict) else [one])]
        names = parameter_names(model)
        keys: dict[Any, Any] = {i: names[id(p)] for i, p in enumerate(chosen)}
        if optim_state_key_type is OptimStateKeyType.PARAM_ID:
            keys = {name: i for i, name in keys.items()}
        return {
            "state": {keys.get(key, key): value for key, value in optim_state_dict["state"].items()},
            "param_groups": [
                {**one, "params": sorted(keys.get(key, key) for key in one["params"])}
                for one in optim_state_dict["param_groups"]
            ],
        }

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The state by the names of the module as it was before it was wrapped."""
        found = super().state_dict(*args, **kwargs)
        if args or kwargs.get("destination") is not None:  # an outer one asks, which gives all of them their names
            return found
        settings = self._settings
        if settings.state_dict_type is StateDictType.FULL_STATE_DICT:
            for name, value in list(found.items()):
                found[name] = value.full_tensor().detach() if isinstance(value, DTensor) else value
            if getattr(settings.state_dict_config, "rank0_only", False) and get_rank() != 0:
                found.clear()
        for name in [n for n in found if _PREFIX in n]:
            found[name.replace(_PREFIX, "")] = found.pop(name)
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take over what :meth:`state_dict` gave, whole tensors or parts.

        Args:
            state_dict: the entries.
            strict: whether missing and unknown names are errors.
            assign: False.

        Returns:
            Names that were missing, and names that were not known.

        Raises:
            NotImplementedError: ``assign``.
        """
        if assign:
            raise NotImplementedError("FullyShardedDataParallel.load_state_dict: assign is not there")
        own = Module.state_dict(self)
        state = {name: state_dict[bare] for name in own if (bare := name.replace(_PREFIX, "")) in state_dict}
        known = {name.replace(_PREFIX, "") for name in own}
        state.update({name: value for name, value in state_dict.items() if name not in known})
        with implicit_replication():
            return super().load_state_dict(state, strict)


def _options(strategy: ShardingStrategy, mesh: Any, precision: MixedPrecision | None, ignored: set) -> dict[str, Any]:
    hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
    if hybrid and (mesh is None or mesh.ndim != 2):
        raise ValueError("FullyShardedDataParallel: HYBRID_SHARD takes a 2-D device_mesh: copies, and parts of each")
    if strategy is ShardingStrategy.NO_SHARD:
        if mesh is not None:
            raise NotImplementedError("FullyShardedDataParallel: NO_SHARD on a part of the processes is not there")
        mesh = init_device_mesh("cpu", (get_world_size(), 1))
    mesh = mesh if mesh is not None else init_device_mesh("cpu", (get_world_size(),))
    whole = strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
    policy = MixedPrecisionPolicy()
    if precision is not None:
        casts = precision.cast_forward_inputs or precision.cast_root_forward_inputs
        policy = MixedPrecisionPolicy(precision.param_dtype, precision.reduce_dtype, None, casts)
    return {
        "mesh": mesh, "mp_policy": policy, "ignored_params": ignored, "reshard_after_forward": False if whole else None,
    }  # fmt: skip


def _mesh_of(group: Any) -> DeviceMesh:
    """The mesh of a group, or of a group of parts and one of copies."""
    if not isinstance(group, (list, tuple)):
        return DeviceMesh.from_group(group, "cpu")
    parts, copies = group
    rows: list[Any] = [None] * get_world_size(copies)
    all_gather_object(rows, get_process_group_ranks(parts), copies)
    return DeviceMesh.from_group([copies, parts], "cpu", rows)


def _materialise(module: Module, init: Callable | None) -> None:
    """Give memory and values to parameters and buffers on device meta, outside inner units."""
    for m in [m for m in module.modules() if not isinstance(m, FSDPModule)]:
        if not any(t is not None and t.is_meta for t in (*m._parameters.values(), *m._buffers.values())):
            continue
        if init is not None:
            init(m)
        else:
            m.to_empty(device="cpu", recurse=False)
            m.reset_parameters()


def _wrapped(module: Module, strategy: ShardingStrategy, options: dict[str, Any]) -> Module:
    made: Any = FullyShardedDataParallel.__new__(FullyShardedDataParallel)
    Module.__init__(made)
    made.sharding_strategy = strategy
    made._fsdp_wrapped_module = module if isinstance(module, FSDPModule) else fully_shard(module, **options)
    made._settings = StateDictSettings()
    return made


def _synchronise(module: Module, mesh: DeviceMesh) -> None:
    with no_grad():
        for t in [*module.parameters(), *module.buffers()]:
            for j in range(mesh.ndim):
                broadcast(t.detach(), group=mesh.get_group(j), group_src=0)
