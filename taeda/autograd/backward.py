"""``backward`` and ``grad``: the two entrances of the engine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..ops.joining import stack
from .graph import GradientEdge


def _as_tuple(x: Any) -> tuple:
    if isinstance(x, Tensor):
        return (x,)
    return tuple(x) if isinstance(x, (tuple, list)) and not isinstance(x, GradientEdge) else (x,)


def _wants_grad(x: Any) -> bool:
    return x.requires_grad if isinstance(x, Tensor) else isinstance(x, GradientEdge) or x.requires_grad


def _initial_gradients(outputs: tuple, grads: Any, name: str) -> list:
    """One gradient per output, checked against it; ones for scalars where none is given."""
    if grads is None:
        return [_implicit_gradient(out, name) for out in outputs]
    grads = _as_tuple(grads)
    if len(grads) != len(outputs):
        raise RuntimeError(f"{name}: got {len(outputs)} tensors and {len(grads)} gradients")
    return [
        _implicit_gradient(out, name) if grads[i] is None else _given_gradient(out, grads[i], i, name)
        for i, out in enumerate(outputs)
    ]


def _implicit_gradient(out: Any, name: str) -> Tensor | None:
    """One, the gradient that a real scalar starts with; None where nothing was recorded, which is refused later."""
    if isinstance(out, GradientEdge):
        return _edge_gradient(None, name)
    if not out.requires_grad:
        return None
    if out.numel() != 1:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs, got an output of shape {list(out.shape)}; "
            f"pass its gradient, or reduce it first, as with out.sum()"
        )
    if not out.is_floating_point():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
    return _core.empty(out.shape, out.dtype).fill_(1)


def _given_gradient(out: Any, g: Any, i: int, name: str) -> Tensor:
    if isinstance(out, GradientEdge):
        return _edge_gradient(g, name)
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g.shape != out.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {out.shape}."
        )
    if g.is_complex() != out.is_complex():
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
        )
    return g


def _edge_gradient(g: Any, name: str) -> Tensor:
    if not isinstance(g, Tensor):
        raise RuntimeError(f"{name}: a GradientEdge has no sizes: pass its gradient, got {type(g).__name__}")
    return g


def _check_outputs(outputs: tuple) -> None:
    for i, out in enumerate(outputs):
        if not _wants_grad(out):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of ``tensors``, weighted by ``grad_tensors``, into ``.grad`` of the leaves.

    Args:
        tensors: what to differentiate.
        grad_tensors: a gradient for each; may be None for a scalar.
        retain_graph: keep what the graph saved. Default: the value of ``create_graph``.
        create_graph: record the derivative computation, for higher derivatives.
        inputs: accumulate into these tensors only.
    """
    tensors = _as_tuple(tensors)
    if inputs is not None:
        inputs = list(_as_tuple(inputs))
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for i, x in enumerate(inputs):
            if not isinstance(x, Tensor):
                raise TypeError(f"backward(): expected Tensor as inputs[{i}], not {type(x).__name__}")
            if not _wants_grad(x):
                raise RuntimeError(f"One of the differentiated Tensors (inputs[{i}]) does not require grad")
    grads = _initial_gradients(tensors, grad_tensors, "backward")
    _check_outputs(tensors)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
            "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
            "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
            "the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    keep = create_graph if retain_graph is None else retain_graph
    _core.run_backward(list(tensors), grads, keep, create_graph, inputs, True)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs``, weighted by ``grad_outputs``, with respect to ``inputs``; ``.grad`` is left alone.

    Args:
        outputs, inputs: what to differentiate, and with respect to what.
        grad_outputs: a gradient for each output; may be None for a scalar.
        retain_graph, create_graph: as in :func:`backward`.
        allow_unused: give None for an input that the outputs do not depend on, rather than raise.
        is_grads_batched: ``grad_outputs`` have a leading batch dimension; the gradients get one too.
        materialize_grads: give zeros rather than None (implies ``allow_unused``).
    """
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    if not inputs:
        raise ValueError("grad requires non-empty inputs.")
    if materialize_grads:
        if allow_unused is False:
            raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True")
        allow_unused = True
    for i, x in enumerate(inputs):
        if not _wants_grad(x):
            raise RuntimeError(f"One of the differentiated Tensors does not require grad (inputs[{i}])")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(outputs, inputs, _as_tuple(grad_outputs), keep, create_graph, allow_unused, materialize_grads)
    grads = _initial_gradients(outputs, grad_outputs, "grad")
    _check_outputs(outputs)
    result = _core.run_backward(list(outputs), grads, keep, create_graph, list(inputs), False)
    for i, g in enumerate(result):
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    f"One of the differentiated Tensors appears to not have been used in the graph (inputs[{i}]). Set "
                    f"allow_unused=True if this is the desired behavior."
                )
            if materialize_grads and isinstance(inputs[i], Tensor):
                result[i] = inputs[i].new_zeros(inputs[i].shape)
    return tuple(result)


def _batched(outputs, inputs, grad_outputs, keep, create_graph, allow_unused, materialize):
    """One pass per element of the leading dimension."""
    n = grad_outputs[0].shape[0]
    rows = [
        grad(
            outputs,
            inputs,
            tuple(None if g is None else g[i] for g in grad_outputs),
            retain_graph=keep or i + 1 < n,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        for i in range(n)
    ]
    return tuple(None if column[0] is None else stack(list(column), 0) for column in zip(*rows, strict=True))


_core.HELPERS["backward"] = backward
