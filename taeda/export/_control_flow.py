"""Recording ``cond``, ``while_loop``, ``map``, ``scan`` and ``associative_scan`` as the steps of
``func.control_steps``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda._core import Tensor
from taeda.func.control_steps import STEPS, associative_scan, cond, map, scan, while_loop
from taeda.fx.experimental.symbolic_shapes import _Symbolic
from taeda.utils import _pytree as pytree

from ._values import Traced

__all__ = ["STEPS", "associative_scan", "cond", "map", "scan", "while_loop"]


# ---- recording them --------------------------------------------------------------------------------------------------


def _record_cond(capture: Any, pred: Any, true_fn: Callable, false_fn: Callable, operands: Sequence) -> Any:
    if not isinstance(pred, Tensor):
        return NotImplemented  # the condition is known
    if pred.numel() != 1:
        raise RuntimeError(f"cond: expected the condition to be a tensor of one element, got {tuple(pred.shape)}")
    leaves, spec = pytree.tree_flatten(tuple(operands))
    made = [
        capture.sub_graph(lambda *xs, f=f: f(*pytree.tree_unflatten(xs, spec)), leaves) for f in (true_fn, false_fn)
    ]
    (true, one, out_spec), (false, other, other_spec) = made
    if out_spec != other_spec or _forms(one) != _forms(other):
        raise RuntimeError(
            f"cond: true_fn and false_fn must give tensors of the same structure, shapes and dtypes, got "
            f"{_forms(one)} and "
            f"{_forms(other)}\n{capture.where()}"
        )
    graphs, outside = capture.close((true, false), ("true_graph", "false_graph"))
    given = (*(capture.node_of(x) for x in lifted(capture, leaves) if isinstance(x, Tensor)), *outside)
    node = capture.create(cond, (capture.node_of(capture._lifted(pred)), *graphs, given), {})
    return capture.results(node, one, out_spec)


def _record_while_loop(capture: Any, cond_fn: Callable, body_fn: Callable, carried: tuple) -> Any:
    leaves, spec = pytree.tree_flatten(carried)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError("while_loop: a program that is recorded carries tensors only; make numbers tensors")
    test, flat, _ = capture.sub_graph(lambda *xs: cond_fn(*pytree.tree_unflatten(xs, spec)), leaves)
    body, made, _ = capture.sub_graph(lambda *xs: body_fn(*pytree.tree_unflatten(xs, spec)), leaves)
    leaves = lifted(capture, leaves)
    if len(flat) != 1 or not isinstance(flat[0], Tensor) or flat[0].numel() != 1:
        raise RuntimeError("while_loop: cond_fn must give one tensor of one element where a program is recorded")
    if _forms(made) != _forms(leaves):
        raise RuntimeError(
            f"while_loop: body_fn must give tensors like those that it takes, {_forms(leaves)}, but gives "
            f"{_forms(made)}\n"
            f"{capture.where()}"
        )
    graphs, outside = capture.close((test, body), ("cond_graph", "body_graph"))
    node = capture.create(while_loop, (*graphs, tuple(capture.node_of(x) for x in leaves), tuple(outside)), {})
    return capture.results(node, leaves, spec)


def _record_map(capture: Any, f: Callable, xs: list, spec: Any, args: tuple) -> Any:
    xs = lifted(capture, xs)
    more, arg_spec = pytree.tree_flatten(args)

    def row(*given: Any) -> Any:
        return f(pytree.tree_unflatten(given[: len(xs)], spec), *pytree.tree_unflatten(given[len(xs) :], arg_spec))

    scope, made, out_spec = capture.sub_graph(row, [*(_row(x, 0) for x in xs), *more])
    graphs, outside = capture.close((scope,), ("map_graph",))
    nodes = tuple(capture.node_of(x) for x in lifted(capture, more) if isinstance(x, Tensor))
    node = capture.create(map, (*graphs, tuple(capture.node_of(x) for x in xs), (*nodes, *outside)), {})
    return capture.results(node, [_stacked(capture, x, xs[0], 0) for x in made], out_spec)


def _record_scan(capture: Any, combine: Callable, init: Any, xs: list, spec: Any, dim: int, reverse: bool) -> Any:
    start, init_spec = pytree.tree_flatten(init)
    xs, start = lifted(capture, xs), lifted(capture, start)
    count = len(start)

    def step(*given: Any) -> Any:
        carry = pytree.tree_unflatten(given[:count], init_spec)
        return combine(carry, pytree.tree_unflatten(given[count:], spec))

    scope, made, out_spec = capture.sub_graph(step, [*start, *(_row(x, dim) for x in xs)])
    if _forms(made[:count]) != _forms(start):
        raise RuntimeError(
            f"scan: combine_fn must give a carried value like the one that it takes, {_forms(start)}, but gives "
            f"{_forms(made[:count])}\n{capture.where()}"
        )
    graphs, outside = capture.close((scope,), ("scan_graph",))
    first, rows = (tuple(capture.node_of(x) for x in part) for part in (start, xs))
    node = capture.create(scan, (*graphs, first, rows, dim, reverse, tuple(outside)), {})
    likes = [*start, *(_stacked(capture, x, xs[0], dim) for x in made[count:])]
    return capture.results(node, likes, out_spec)


def _record_associative_scan(
    capture: Any, combine: Callable, xs: list, spec: Any, dim: int, reverse: bool, mode: str
) -> Any:
    xs = lifted(capture, xs)
    count = len(xs)

    def both(*given: Any) -> Any:
        return combine(pytree.tree_unflatten(given[:count], spec), pytree.tree_unflatten(given[count:], spec))

    inputs = [_row(x, dim) if mode == "generic" else _moved(x, dim) for x in xs]
    scope, _, _ = capture.sub_graph(both, [*inputs, *inputs])
    graphs, outside = capture.close((scope,), ("combine_graph",))
    args = (*graphs, tuple(capture.node_of(x) for x in xs), dim, reverse, mode, tuple(outside))
    return capture.results(capture.create(associative_scan, args, {}), xs, spec)


RECORDED: dict[str, Callable] = {
    "cond": _record_cond, "while_loop": _record_while_loop, "map": _record_map, "scan": _record_scan,
    "associative_scan": _record_associative_scan,
}  # fmt: skip


def lifted(capture: Any, xs: Sequence) -> list:
    """Tensors from outside as constants of the program."""
    return [capture._lifted(x) for x in xs]


def _forms(xs: Sequence) -> list:
    return [(_sizes(x), str(x.dtype)) if isinstance(x, Tensor) else x for x in xs]


def _sizes(x: Tensor) -> list:
    return [str(n) if isinstance(n, _Symbolic) else int(n) for n in x.shape]


def _moved(x: Traced, dim: int) -> Traced:
    """A tensor like ``x`` with the dimension ``dim`` first, which is not part of the graph."""
    with x.capture.aside():
        metas = [m.movedim(dim, 0) for m in x.metas]
    return x.capture.traced(None, metas, x._device)


def _row(x: Traced, dim: int) -> Traced:
    """A tensor like one row of ``x``, which is not part of the graph."""
    with x.capture.aside():
        metas = [m.select(dim, 0) for m in x.metas]
    return x.capture.traced(None, metas, x._device)


def _stacked(capture: Any, row: Any, xs: Traced, dim: int) -> Any:
    """A tensor like many rows, not part of the graph."""
    if not isinstance(row, Traced):
        raise RuntimeError("map, scan: functions must give tensors where a program is recorded")
    with capture.aside():
        metas = [m.new_empty((x.shape[dim], *m.shape)) for m, x in zip(row.metas, xs.metas, strict=True)]
    return capture.traced(None, metas, row._device)
