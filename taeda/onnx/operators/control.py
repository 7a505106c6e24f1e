"""ONNX's control flow: graphs in attributes, which come as functions of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._typed import Tensor
from ...ops.creation import zeros
from ...ops.exchange import tensor
from ...ops.joining import stack
from ..table import op

Body = Callable[..., tuple[Any, ...]]


op("If")(lambda condition, *, then_branch, else_branch: then_branch() if bool(condition) else else_branch())


@op("Loop", outputs=True)
def loop(limit: Tensor | None, condition: Tensor | None, *states: Any, body: Body, outputs: int) -> tuple[Any, ...]:
    """Last states, then what each iteration gave, stacked."""
    count, collected = 0, [[] for _ in range(outputs - len(states))]  # type: list
    going = True if condition is None else bool(condition)
    while going and (limit is None or count < int(limit)):
        again, *results = body(tensor(count), tensor(going), *states)
        going, states, count = bool(again), tuple(results[: len(states)]), count + 1
        for items, item in zip(collected, results[len(states) :], strict=True):
            items.append(item)
    return *states, *(stack(items) if items else zeros(0) for items in collected)


@op("Scan", 8)
def scan_8(
    lengths: Tensor | None, *inputs: Tensor, body: Body, num_scan_inputs: int, directions: list[int] | None = None
) -> tuple[Tensor, ...]:
    """Opset 8 has a batch in front, with a number of steps for each example."""
    examples = []
    for i in range(inputs[0].shape[0]):
        first = len(inputs) - num_scan_inputs
        parts = [x[i] for x in inputs]
        if lengths is not None:
            parts[first:] = [x[: int(lengths[i])] for x in parts[first:]]
        examples.append(scan(*parts, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions))
    return tuple(map(stack, zip(*examples, strict=True)))


@op("Scan", 9)
def scan(
    *inputs: Tensor, body: Body, num_scan_inputs: int, scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None, scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Last states, then what each step gave, stacked along axes and in either direction."""
    n = len(inputs) - num_scan_inputs
    states, scanned = list(inputs[:n]), []
    axes, backward = scan_input_axes or [0] * num_scan_inputs, scan_input_directions or [0] * num_scan_inputs
    for x, axis, back in zip(inputs[n:], axes, backward, strict=True):
        items = list(x.unbind(axis))
        scanned.append(items[::-1] if back else items)
    steps = []
    for items in zip(*scanned, strict=True):
        results = body(*states, *items)
        states, outputs = list(results[:n]), results[n:]
        steps.append(outputs)
    stacked = []
    for i, items in enumerate(zip(*steps, strict=True)):
        axis = scan_output_axes[i] if scan_output_axes else 0
        stacked.append(stack(items[::-1] if scan_output_directions and scan_output_directions[i] else items, axis))
    return *states, *stacked


@op("SequenceMap", outputs=True)
def sequence_map(sequence: list, *others: Any, body: Body, outputs: int) -> tuple[list, ...]:
    """``body`` of each item, with the items of the other sequences in the same place; tensors go to all."""
    results: list[list] = [[] for _ in range(outputs)]
    for i, item in enumerate(sequence):
        values = body(item, *(other[i] if isinstance(other, list) else other for other in others))
        for items, value in zip(results, values, strict=True):
            items.append(value)
    return tuple(results)


# ---- optionals: the value, or None -----------------------------------------------------------------------------------
op("Optional")(lambda x=None, *, type=None: x)
op("OptionalHasElement")(lambda x=None: tensor(x is not None))


@op("OptionalGetElement")
def optional_get_element(x: Any = None) -> Any:
    if x is None:
        raise ValueError("expected an optional with an element, got an empty one")
    return x
