"""``backward`` and ``grad``: the two entry points of the engine."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from ..ops.joining import stack
from ..ops.parts import OfParts
from .graph import GradientEdge

_FUNCTION_MODES = 2  # a flag of the core's overrides: a TorchFunctionMode is on, which sees the call first
_NO_OVERRIDES = 8  # overrides are off altogether


def _as_tuple(x: Any) -> tuple:
    """One tensor (or what behaves like one), a GradientEdge, or any iterable of them, as a tuple."""
    if isinstance(x, (Tensor, GradientEdge)):  # first: the common case, and an abstract class is slow to ask
        return (x,)
    return tuple(x) if isinstance(x, Iterable) and not hasattr(type(x), "__torch_function__") else (x,)


def _inputs(x: Any, name: str) -> tuple:
    """The inputs of ``name``, which takes the values of a dict as well."""
    if isinstance(x, Mapping):
        if type(x) is not dict:
            raise TypeError(
                f"`inputs` argument to `{name}()` must be a dict, not {type(x).__name__}: pass dict(inputs)"
            )
        x = x.values()
    x = _as_tuple(x)
    if not x:
        raise RuntimeError(f"`inputs` argument to `{name}()` cannot be empty.")
    return x


def _wants_grad(x: Any) -> bool:
    return x.requires_grad if isinstance(x, Tensor) else isinstance(x, GradientEdge) or x.requires_grad


def _initial_gradients(outputs: tuple, grads: Any, name: str) -> list:
    """One gradient per output, checked against it; ones for scalars where none is given."""
    if grads is None:
        return list(map(_implicit_gradient, outputs, repeat(name)))
    grads = _as_tuple(grads)
    if len(grads) != len(outputs):
        raise RuntimeError(f"{name}: got {len(outputs)} tensors and {len(grads)} gradients")
    return [
        _implicit_gradient(out, name) if grads[i] is None else _given_gradient(out, grads[i], i, name)
        for i, out in enumerate(outputs)
    ]


def _implicit_gradient(out: Any, name: str) -> Tensor | None:
    """One, the gradient that a real scalar starts with; None if nothing was recorded, which is refused later."""
    if isinstance(out, GradientEdge):
        return _edge_gradient(out, name)
    if not out.requires_grad:
        return None
    if out.numel() != 1:
        if out.is_nested:
            raise RuntimeError("grad can be implicitly created only for scalar outputs; pass a nested gradient")
        _check_scalar(out.shape)
    if not out.is_floating_point():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
    return out.new_ones(out.shape) if not out.is_cpu else _core.empty(out.shape, out.dtype).fill_(1)


def _check_scalar(shape: Sequence[int]) -> None:
    if math.prod(shape) != 1:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs, got an output of shape {list(shape)}; "
            f"pass its gradient, or reduce it first, as with out.sum()"
        )


def _given_gradient(out: Any, g: Any, i: int, name: str) -> Tensor:
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if isinstance(out, GradientEdge):
        if out.form is not None:
            _check_shape(out.form.shape, g, i)
        return g
    _check_kind(out, g, i)
    if not g.is_nested:
        _check_shape(out.shape, g, i)
    if g.is_complex() != out.is_complex():
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
        )
    return g


def _check_shape(shape: Sequence[int], g: Tensor, i: int) -> None:
    if g.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {shape}."
        )


def _check_kind(out: Tensor, g: Tensor, i: int) -> None:
    """A dense tensor has a dense or sparse gradient, one of parts is asked itself, and both are on one device."""
    if g.device != out.device:
        raise RuntimeError(f"invalid gradient at index {i} - expected device {out.device} but got {g.device}")
    if (
        not isinstance(out, OfParts) and g.layout not in (_core.strided, _core.sparse_coo)
    ) or g.is_nested != out.is_nested:
        wanted, got = ("a nested tensor" if t.is_nested else str(t.layout) for t in (out, g))
        raise RuntimeError(f"invalid gradient at index {i} - expected layout {wanted} but got {got}")


def _by_parts(outputs: Sequence, grads: Sequence) -> tuple[list, list]:
    """``outputs`` and their gradients, with tensors of parts replaced by their parts."""
    tensors, gradients = [], []
    for out, g in zip(outputs, grads, strict=True):
        if isinstance(out, OfParts):
            for x, d in zip(out._output_parts(), out._part_gradients(g), strict=True):
                if x.requires_grad:
                    tensors.append(x)
                    gradients.append(d)
        else:
            tensors.append(out)
            gradients.append(g)
    return tensors, gradients


def _parts_of(inputs: Sequence) -> list:
    """``inputs``, with tensors of parts replaced by their parts."""
    parts = lambda t: [x for x in t._graph_parts() if x.requires_grad]  # noqa: E731
    return [x for t in inputs for x in (parts(t) if isinstance(t, OfParts) else (t,))]


def _of_inputs(inputs: Sequence, results: Sequence) -> list:
    """The gradients of the inputs, from the gradients of :func:`_parts_of`."""
    rest, made = iter(results), []
    for t in inputs:
        if isinstance(t, OfParts):
            grads = [next(rest) if x.requires_grad else None for x in t._graph_parts()]
            made.append(None if all(g is None for g in grads) else t._whole_gradient(grads))
        else:
            made.append(next(rest))
    return made


def _edge_gradient(edge: GradientEdge, name: str) -> Tensor:
    """One, for an edge of one element."""
    if edge.form is None:
        raise RuntimeError(
            f"{name}: the sizes of this GradientEdge are not known: pass its gradient, or make it by get_gradient_edge"
        )
    _check_scalar(edge.form.shape)
    return _core.empty(edge.form.shape, edge.form.dtype).fill_(1)


def _cut(out: Tensor) -> str:
    """Why ``out`` may have no graph, and what to do."""
    if not (out.is_floating_point() or out.is_complex()):
        return (
            f"it is {out.dtype}, and integers have no derivative. argmax(), comparisons and long() give them: compute "
            "the loss from floating point numbers, as cross_entropy() does from the scores"
        )
    return (
        "no derivative leads from it to what requires grad. Either it was computed under no_grad() (compute it outside "
        "of no_grad()); or a result went through tensor(), detach(), item() or numpy() (use the result itself), or "
        "through argmax(), a comparison or integers (use a differentiable loss, as cross_entropy() of the scores); or "
        "nothing requires grad (set requires_grad=True on the parameters)"
    )


def _check_outputs(outputs: tuple) -> None:
    for i, out in enumerate(outputs):
        if not (out.requires_grad if isinstance(out, Tensor) else _wants_grad(out)):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn: {_cut(out)}")


def backward(
    tensors: Tensor | Iterable[Tensor], grad_tensors: Tensor | Iterable[Tensor | None] | None = None,
    retain_graph: bool | None = None, create_graph: bool = False,
    grad_variables: Tensor | Iterable[Tensor | None] | None = None,
    inputs: Tensor | Iterable[Tensor] | dict[Any, Tensor] | None = None,
) -> None:  # fmt: skip
    """Add the gradients of ``tensors``, weighted by ``grad_tensors``, to ``.grad`` of the leaves: ``v^T J`` of each.

    ``loss.backward()`` is the usual form of it.

    Args:
        tensors: one or several to differentiate, any shapes.
        grad_tensors: a gradient for each, of its shape; may be None for a scalar.
        retain_graph: keep what the graph saved, for another pass. Default: the value of ``create_graph``.
        create_graph: record the derivative computation, for higher derivatives.
        grad_variables: older name of ``grad_tensors``.
        inputs: add to these tensors only.

    Raises:
        RuntimeError: a tensor does not require grad, is no scalar and has no gradient, or the graph was used already.

    Examples:
        >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
        >>> taeda.autograd.backward([x.sum(), (x**2).sum()])
        >>> x.grad  # 1 + 2 x
        tensor([3., 5.])
    """
    if _core.change_overrides(0, 0) & (_FUNCTION_MODES | _NO_OVERRIDES) == _FUNCTION_MODES:
        args = tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs
        return callbacks.overrides(backward, args, {})
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: `grad_variables` is the older name of `grad_tensors`; pass the latter only")
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    tensors = _as_tuple(tensors)
    if inputs is not None:
        inputs = list(_inputs(inputs, "backward"))
        for i, x in enumerate(inputs):
            if not isinstance(x, (Tensor, GradientEdge)):
                raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
            if not _wants_grad(x):
                raise RuntimeError(f"One of the differentiated Tensors (inputs[{i}]) does not require grad")
    grads = _initial_gradients(tensors, grad_tensors, "backward")
    _check_outputs(tensors)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    keep = create_graph if retain_graph is None else retain_graph
    outputs = list(tensors)
    for out in tensors:
        if isinstance(out, OfParts):
            outputs, grads = _by_parts(tensors, grads)
            break
    _core.run_backward(outputs, grads, keep, create_graph, inputs and _parts_of(inputs), True)


def grad(
    outputs: Tensor | Iterable[Tensor], inputs: Tensor | Iterable[Tensor] | dict[Any, Tensor],
    grad_outputs: Tensor | Iterable[Tensor | None] | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> Any:  # fmt: skip
    """The gradients of ``outputs``, weighted by ``grad_outputs``, with respect to ``inputs``; ``.grad`` is left alone.

    Args:
        outputs: one tensor or several to differentiate, any shapes.
        inputs: one tensor or several to differentiate with respect to, or a dict of them.
        grad_outputs: a gradient for each output, of its shape; may be None for a scalar.
        retain_graph: keep what the graph saved, for another pass. Default: the value of ``create_graph``.
        create_graph: record the derivative computation, for higher derivatives.
        only_inputs: accepted: always True.
        allow_unused: give None for an input that the outputs do not depend on, rather than raise.
        is_grads_batched: ``grad_outputs`` have a leading batch dimension; the gradients get one, too.
        materialize_grads: give zeros rather than None (implies ``allow_unused``).

    Returns:
        A tuple with a gradient for each input, of its shape and dtype; for a dict of inputs, a dict with the same keys.

    Raises:
        RuntimeError: an output does not require grad, is no scalar and has no gradient, or does not depend on an input.
        ValueError: ``allow_unused`` is False and ``materialize_grads`` True.

    Examples:
        >>> x = taeda.tensor(3.0, requires_grad=True)
        >>> (slope,) = taeda.autograd.grad(x**3, x, create_graph=True)
        >>> slope.detach(), taeda.autograd.grad(slope, x)  # 3 x^2, 6 x
        (tensor(27.), (tensor(18.),))
    """
    if _core.change_overrides(0, 0) & (_FUNCTION_MODES | _NO_OVERRIDES) == _FUNCTION_MODES:
        args = (
            outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched,
            materialize_grads,
        )  # fmt: skip
        return callbacks.overrides(grad, args, {})
    if type(inputs) is dict:
        found = grad(
            outputs, inputs.values(), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    outputs, inputs = _as_tuple(outputs), _inputs(inputs, "grad")
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
    tensors, grads = _by_parts(outputs, grads)
    result = _of_inputs(inputs, _core.run_backward(tensors, grads, keep, create_graph, _parts_of(inputs), False))
    for i, g in enumerate(result):
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    f"One of the differentiated Tensors appears to not have been used in the graph (inputs[{i}]). Set "
                    f"allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                if not isinstance(inputs[i], Tensor):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                result[i] = inputs[i].new_zeros(inputs[i].shape, requires_grad=create_graph)
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


def _from_method(tensor: Tensor, gradient: Any, retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
    backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _on_a_new_thread(function: Any, args: tuple, tangents: bool) -> Any:
    """``function(*args)`` on a thread with a stack of its own, with the settings of this one."""
    from concurrent.futures import Future

    settings = _core.thread_settings()
    outcome: Future = Future()

    def run() -> None:
        _core.adopt_settings(settings)
        _core.pass_tangents(tangents)
        try:
            outcome.set_result(function(*args))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run).start()
    return outcome.result()


callbacks.backward = _from_method
callbacks.on_a_new_thread = _on_a_new_thread
