"""Control flow: If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core import bool_, int64
from ..writer import Value, Writer
from .table import translates


def _flag(g: Writer, x: Value) -> Value:
    x = g.cast(x, bool_)
    return x if x.rank == 0 else g.Reshape(x, g.constant(np.zeros(0, np.int64)))


def _typed(made: Any, likes: Sequence) -> tuple:
    parts = made if isinstance(made, tuple) else (made,)
    for part, like in zip(parts, likes, strict=True):
        part.dtype, part.shape = like.dtype, tuple(like.shape)
    return parts


@translates("step.cond")
def cond(g: Writer, pred: Value, true_graph: Any, false_graph: Any, operands: Sequence) -> tuple:
    branches = {}
    for name, module in (("then_branch", true_graph), ("else_branch", false_graph)):
        inner = Writer(g.opset, g)
        branches[name] = inner.graph(g.name(name), [], g.root.run(inner, module, operands))
    made = g.If(_flag(g, pred), outputs=len(g.result), **branches)
    return _typed(made, g.result)


@translates("step.while_loop")
def while_loop(g: Writer, cond_graph: Any, body_graph: Any, carried: Sequence, additional: Sequence) -> tuple:
    inner = Writer(g.opset, g)
    count, before = Value(g.name("i"), int64, ()), Value(g.name("go_on"), bool_, ())
    states = [Value(g.name("carried"), x.dtype, x.shape) for x in carried]
    body = g.root.run(inner, body_graph, [*states, *additional])
    test = g.root.run(inner, cond_graph, [*body, *additional])[0]
    graph = inner.graph(g.name("body"), [count, before, *states], [_flag(inner, test), *body])
    start = _flag(g, g.root.run(g, cond_graph, [*carried, *additional])[0])
    made = g.op("Loop", None, start, *carried, body=graph, outputs=len(carried))
    return _typed(made, carried)


def _scan(
    g: Writer, module: Any, init: Sequence, xs: Sequence, dim: int, reverse: bool, additional: Sequence
) -> tuple:  # fmt: skip
    inner = Writer(g.opset, g)
    states = [Value(g.name("carried"), x.dtype, x.shape) for x in init]
    rows = []
    for x in xs:
        shape = [n for d, n in enumerate(x.shape) if d != dim % x.rank]
        rows.append(Value(g.name("row"), x.dtype, shape))
    made = g.root.run(inner, module, [*states, *rows, *additional])
    graph = inner.graph(g.name("step"), [*states, *rows], made)
    results, way = len(made) - len(init), int(reverse)
    made = g.op(
        "Scan", *init, *xs, body=graph, outputs=len(made), num_scan_inputs=len(xs), scan_input_axes=[dim] * len(xs),
        scan_input_directions=[way] * len(xs), scan_output_axes=[0] * results if results else None,
        scan_output_directions=[way] * results if results else None,
    )  # fmt: skip
    return made if isinstance(made, tuple) else (made,)


@translates("step.scan")
def scan(
    g: Writer, graph: Any, init: Sequence, xs: Sequence, dim: int, reverse: bool, additional: Sequence
) -> tuple:  # fmt: skip
    return _typed(_scan(g, graph, init, xs, dim, reverse, additional), g.result)


translates("step.map")(lambda g, graph, xs, additional: _typed(_scan(g, graph, [], xs, 0, False, additional), g.result))
