"""When the parameters of a module are whole: hooks around its forward and its backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda._core import current_task
from taeda.autograd import Function, Variable
from taeda.nn import Module
from taeda.utils._pytree import tree_leaves, tree_map

from ..._typed import Tensor
from ...autograd import is_grad_enabled
from ..tensor.dtensor import DTensor
from .unit import Unit


class Context:
    """State of the units of one root: the order of their forward passes, and whether a backward pass is under way."""

    def __init__(self) -> None:
        self.order: list[State] = []
        self.states: list[State] = []
        self.in_backward = False
        self.last_backward = True
        self.reducing: list[Unit] = []


class State:
    """The hooks of one module to which ``fully_shard`` was applied."""

    def __init__(self, module: Module, unit: Unit, reshard_after_forward: bool | None) -> None:
        self.module, self.unit = module, unit
        self.asked = reshard_after_forward
        self.reshard_after_forward = True if reshard_after_forward is None else reshard_after_forward
        self.reshard_after_backward = True
        self.syncs = True
        self.unshards_in_backward = True
        self.root = False
        self.context: Context | None = None
        self.forward_prefetch: Sequence[State] = ()
        self.backward_prefetch: Sequence[State] | None = None
        self._calls = 0
        module.register_forward_pre_hook(self.before_forward, prepend=True, with_kwargs=True)
        module.register_forward_hook(self.after_forward)
        module.register_state_dict_pre_hook(lambda *args: self.settle())

    def settle(self) -> None:
        """Let all modules below hold the parts, outside a forward or backward pass."""
        if self._calls == 0 and (self.context is None or not self.context.in_backward):
            for inner in states_of(self.module):
                inner.unit.reshard()

    def _begin(self) -> Context:
        """The shared context; the first module that is called is the root."""
        if self.context is None:
            self.root = True
            context = Context()
            for inner in states_of(self.module):
                inner.context = context
                context.states.append(inner)
            if self.asked is None:
                self.reshard_after_forward = False
            return context
        return self.context

    # ---- forward
    def before_forward(self, module: Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Gather, cast the inputs, and mark them: their gradients are the last that this module computes."""
        context = self._begin()
        if self.root and current_task() == -1:
            context.order, context.in_backward, context.reducing = [], False, []  # a backward pass may have failed
        self._calls += 1
        self.unit.unshard(in_backward=context.in_backward)
        for other in self.forward_prefetch:
            other.unit.begin_unshard(async_op=True)
        policy = self.unit.policy
        if policy.cast_forward_inputs and policy.param_dtype is not None:
            args, kwargs = _cast((args, kwargs), policy.param_dtype)
        if is_grad_enabled():
            args, kwargs = self._mark((args, kwargs))
        return args, kwargs

    def _mark(self, values: Any) -> Any:
        found = [x for x in tree_leaves(values) if isinstance(x, Tensor) and x.requires_grad]
        if not found:
            return values
        parts = [x._local if isinstance(x, DTensor) else x for x in found]
        made = _AtTheEnd.apply(self.after_backward, *parts)
        marked = {
            id(x): x._with(t) if isinstance(x, DTensor) else t for x, t in zip(found, made, strict=True)
        }  # fmt: skip
        return tree_map(lambda x: marked.get(id(x), x), values)

    def after_forward(self, module: Module, args: tuple, output: Any) -> Any:
        """Drop the wholes, and have the gradients of the outputs gather them again."""
        context = self.context
        assert context is not None
        self._calls -= 1
        if not context.in_backward:
            context.order.append(self)
        if self.reshard_after_forward and not context.in_backward:
            self.unit.reshard_after_forward()
        if self.unit.policy.output_dtype is not None:
            output = _cast(output, self.unit.policy.output_dtype)
        if is_grad_enabled():
            for x in tree_leaves(output):
                if isinstance(x, Tensor) and x.requires_grad:
                    x.register_hook(self.before_backward)
        return output

    # ---- backward
    def before_backward(self, g: Tensor) -> None:
        """Gather; begin with those that come next."""
        context = self.context
        assert context is not None
        if not context.in_backward:
            context.in_backward = True
            Variable._execution_engine.queue_callback(lambda: _finish(context))
        if self.unshards_in_backward:
            self.unit.unshard(in_backward=True)
            for other in self._next(context):
                other.unit.begin_unshard(async_op=True, in_backward=True)

    def _next(self, context: Context) -> Sequence[State]:
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        at = context.order.index(self) if self in context.order else 0
        return context.order[at - 1 : at] if at > 0 else ()

    def after_backward(self) -> None:
        """Reduce the gradients, and drop the wholes."""
        if self.context is None or self._calls or not self.unit.whole:
            return
        if self.syncs:
            while self.context.reducing:
                self.context.reducing.pop().finish_reduce()
            self.unit.begin_reduce()
            self.context.reducing.append(self.unit)
        if self.reshard_after_backward:
            self.unit.reshard()


def _finish(context: Context) -> None:
    """At the end of a backward pass: those whose inputs need no gradients."""
    for state in reversed(context.states):
        if state.unit.whole or state.syncs:
            state.after_backward()
        if state.syncs and any(p.leaf.grad is not None for p in state.unit.parameters):
            state.unit.begin_reduce()
            context.reducing.append(state.unit)
    for unit in context.reducing:
        unit.finish_reduce()
    context.reducing = []
    context.in_backward = False


class _AtTheEnd(Function):
    """The inputs of a module as they are; their gradients come when the module's backward pass is over."""

    @staticmethod
    def forward(ctx: Any, then: Callable, *inputs: Tensor) -> tuple:
        ctx.then = then
        return tuple(x.view_as(x) for x in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        ctx.then()
        return None, *grads


def states_of(module: Module) -> list[State]:
    """The states of ``module`` and of its submodules."""
    found = [vars(m).get("_fsdp_state") for m in module.modules()]
    return list(dict.fromkeys(state for state in found if state is not None))


def _cast(values: Any, dtype: Any) -> Any:
    return tree_map(lambda x: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x, values)
