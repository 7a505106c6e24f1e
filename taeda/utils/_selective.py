"""Selective checkpoints: which results a checkpointed function keeps for its second run, op by op."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Op, Tensor
from .._core.random import all_states, set_all_states
from ..aten import OpOverload, OpOverloadPacket, native_name
from ..ops.flops import bound_arguments
from ..ops.table import OPS


class CheckpointPolicy(enum.Enum):
    """The treatment of a result: kept for the second run, or computed again. ``MUST`` and ``PREFER`` mean the same."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVE = {name for name in CheckpointPolicy if "SAVE" in name.name or "OFFLOAD" in name.name}

#: Native ops that no policy is asked about.
SAC_IGNORED_OPS = {OpOverload(OpOverloadPacket("aten", "detach", OPS.get("detach")), "default")}


class SelectiveCheckpointContext:
    """The context of a call for a policy: whether it belongs to the second run, and its result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)
_CONSUMED = object()


def _metas(values: Any) -> tuple:
    return tuple((tuple(x.shape), x.dtype) for x in values if isinstance(x, Tensor))


class _Kept:
    """A result of the first run."""

    def __init__(self, result: Any, given: tuple, state: dict | None) -> None:
        self.several = not isinstance(result, Tensor)
        self.tensors = [t.detach() for t in result] if self.several else [result.detach()]
        self.versions = [t._version for t in self.tensors]
        self.given, self.state = given, state

    def get(self, check: bool) -> Any:
        if check and [t._version for t in self.tensors] != self.versions:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated; pass "
                "allow_cache_entry_mutation=True to create_selective_checkpoint_contexts if that is meant"
            )
        if self.state is not None:
            set_all_states(self.state)
        return tuple(self.tensors) if self.several else self.tensors[0]


class _Mode:
    """A mode below all others, so that it sees the ops that are computed, over one run of a checkpointed function."""

    def __init__(self, storage: dict) -> None:
        self.storage = storage
        self.counts: dict[OpOverload, int] = {}

    def __enter__(self) -> None:
        self.counts = defaultdict(int)
        _core.set_mode_stack([self, *_core.mode_stack()])

    def __exit__(self, *exc: object) -> None:
        _core.set_mode_stack([mode for mode in _core.mode_stack() if mode is not self])

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        if _core.is_mode_active():  # modes that only watch come after this one: they see the computed ops
            return _core.pass_through(self, op, args, kwargs)
        values = bound_arguments(op, args, kwargs)
        native = OpOverload(OpOverloadPacket("aten", native_name(op, values), op), "default")
        if native in SAC_IGNORED_OPS:
            return op(*args, **kwargs)
        index = self.counts[native]
        self.counts[native] += 1
        return self.run(native, index, op, values, args, kwargs)

    def run(self, native: OpOverload, index: int, op: Op, values: list, args: tuple, kwargs: dict) -> Any:
        """The op's result in this run."""
        raise NotImplementedError


class _First(_Mode):
    def __init__(self, policy: Callable, storage: dict) -> None:
        super().__init__(storage)
        self.policy = policy

    def run(self, native: OpOverload, index: int, op: Op, values: list, args: tuple, kwargs: dict) -> Any:
        before = all_states()
        result = op(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self.policy(context, native, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        kept = None
        # a view costs nothing to make again, and what writes has to write again
        if policy in _SAVE and op.kind in ("pointwise", "host") and not op.writes and "out" not in kwargs:
            if isinstance(result, Tensor) or (isinstance(result, tuple) and all(isinstance(t, Tensor) for t in result)):
                after = all_states()
                kept = _Kept(result, _metas(values), after if after != before else None)
        self.storage[native][index] = kept
        return result


class _Second(_Mode):
    def __init__(self, storage: dict, check: bool) -> None:
        super().__init__(storage)
        self.check = check

    def run(self, native: OpOverload, index: int, op: Op, values: list, args: tuple, kwargs: dict) -> Any:
        entries = self.storage[native]
        if index not in entries:
            raise RuntimeError(
                f"{native} invocation {index} encountered during backward but not found in storage. {_MISMATCH}"
            )
        kept = entries[index]
        if kept is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if kept is None:
            return op(*args, **kwargs)
        if kept.given != _metas(values):
            raise RuntimeError(
                f"{native} had tensors of (shape, dtype) {kept.given} and has {_metas(values)} in the second run. "
                f"{_MISMATCH}"
            )
        entries[index] = _CONSUMED
        return _core.recall(op, args, kwargs, kept.get(self.check))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts of a checkpoint that keeps some results rather than compute them again::

        context_fn = functools.partial(create_selective_checkpoint_contexts, [taeda.ops.aten.mm.default])
        checkpoint(function, x, use_reentrant=False, context_fn=context_fn)

    Args:
        policy_fn_or_list: the ops whose results are kept, by PyTorch's native names; or
            ``policy(context, op, *args, **kwargs)``, which gives a :class:`CheckpointPolicy` (or a bool: whether to
            keep) for each call of the first run. A linear layer is ``aten.addmm`` or ``aten.mm``, as there.
        allow_cache_entry_mutation: kept results may be written to in the meantime.
    Raises:
        TypeError: it is neither.
        ValueError: something in the list is not one signature of an op.
        RuntimeError: in the backward pass: the second run did not make the same calls, or what was kept was written to.
    """
    if isinstance(policy_fn_or_list, list):
        chosen = policy_fn_or_list
        for op in chosen:
            if not isinstance(op, OpOverload):
                more = f"; write {op}.default" if isinstance(op, OpOverloadPacket) else ""
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}{more}")

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            return op in chosen

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[OpOverload, dict[int, Any]] = defaultdict(dict)
    return _First(policy, storage), _Second(storage, not allow_cache_entry_mutation)
