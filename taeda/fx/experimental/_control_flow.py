"""``cond`` and ``while_loop`` as steps of what ``make_fx`` records, with graphs of their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda._core import Tensor
from taeda.autograd import Function
from taeda.func import control_flow, control_steps
from taeda.utils import _pytree as pytree

from ... import _core


class _NoDerivative(Function):
    """Results of a step for which no derivative is recorded."""

    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Tensor) -> tuple:
        ctx.step = name
        return tuple(x.detach() for x in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(f"make_fx: the derivative of {ctx.step} is not recorded; make_fx the result alone")


def record(mode: Any, name: str, functions: Sequence[Callable], operands: Sequence, pred: Any) -> Any:
    """The results of ``cond`` or ``while_loop``, as one step of the graph that ``mode`` records.

    Args:
        mode: the recorder.
        name: the name of the step.
        functions: the branches, or the condition and the body.
        operands: what they are given.
        pred: the condition of a branch.

    Raises:
        RuntimeError: branches give other forms, a function writes to tensors from outside, or an operand is no tensor.
    """
    leaves, spec = pytree.tree_flatten(tuple(operands))
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"{name}: operands must be tensors where a program is recorded; make numbers tensors")
    outside: list[Tensor] = []
    for f in functions:  # first to see what they read from outside
        mode.sub_graph(f, leaves, spec, outside, [])
    given = tuple(map(mode.known_of, (*leaves, *outside)))
    versions = [x._version for x in (*leaves, *outside)]
    graphs, flat, specs = [], [], []
    for f in functions:
        graph, results, out_spec = mode.sub_graph(f, leaves, spec, [], outside)
        graphs.append(mode.add_module(graph))
        flat.append(results)
        specs.append(out_spec)
    if versions != [x._version for x in (*leaves, *outside)]:
        raise RuntimeError(f"{name}: a function writes to a tensor from outside, which a program does not record")
    forms = [[(x.shape, x.dtype) if isinstance(x, Tensor) else x for x in part] for part in (*flat, leaves)]
    if name == "cond":
        if specs[0] != specs[1] or forms[0] != forms[1]:
            raise RuntimeError(f"cond: true_fn and false_fn must give results of one form, got {forms[0]}, {forms[1]}")
        made, out_spec = flat[0 if bool(pred) else 1], specs[0]
        args: tuple = (mode.known_of(pred), *graphs, given)
    else:
        if forms[1] != forms[2]:
            raise RuntimeError(f"while_loop: body_fn must give tensors like {forms[2]}, which it takes; got {forms[1]}")
        made, out_spec = pytree.tree_flatten(control_flow.while_loop(functions[0], functions[1], tuple(operands)))
        args = (*graphs, given[: len(leaves)], given[len(leaves) :])
    if _core.is_grad_enabled() and any(x.requires_grad for x in (*made, *leaves, *outside)):
        made = list(_NoDerivative.apply(name, len(made), *made, *leaves, *outside))
    else:
        made = [x.detach() for x in made]
    mode.add_step(getattr(control_steps, name), args, tuple(made))
    return pytree.tree_unflatten(made, out_spec)
