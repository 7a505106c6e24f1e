"""Derivatives of functions rather than of graphs: ``vjp``, ``jvp``, ``jacobian``, ``hessian``, ``vhp``, ``hvp``.

Inputs and outputs are tensors or tuples of tensors; each result has the structure of the value it is made from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..ops.joining import stack
from .backward import grad as _grad
from .modes import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


# ---- arguments -------------------------------------------------------------------------------------------------------


def _tensors(x: Any, what: str, function: str) -> tuple[tuple[Tensor, ...], bool]:
    """``x`` as a tuple, and whether it was one."""
    many = isinstance(x, (tuple, list))
    items = tuple(x) if many else (x,)
    for i, t in enumerate(items):
        if not isinstance(t, Tensor):
            if many:
                raise TypeError(
                    f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value at "
                    f"index {i} has type {type(t)}."
                )
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the given {what} "
                f"has type {type(t)}."
            )
    return items, many


def _fresh(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs to differentiate with respect to: of their own, but joined to the caller's graph if that must be kept."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _like(v: Any, refs: tuple[Tensor, ...], many: bool, what: str, other: str, function: str) -> tuple[Tensor, ...]:
    """The vector ``v``, checked against the tensors that it multiplies; if it is None, ones for a single scalar."""
    if v is None:
        if len(refs) != 1 or refs[0].numel() != 1:
            where = f"{other} returns" if what == "out" else f"the input to {other} is"
            raise RuntimeError(f"The vector v can only be None if {where} a single Tensor with a single element.")
        return (refs[0].new_ones(refs[0].shape),)
    items, _ = _tensors(v, "v", function)
    if len(items) != len(refs):
        if many:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(refs)} but got {len(items)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(items, refs, strict=True)):
        if a.shape != b.shape:
            prefix = f"Entry {i} in " if many else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {b.shape} but got {a.shape}.")
    return tuple(t.detach() if not t.requires_grad else t for t in items)


def _run(func: Callable, inputs: tuple[Tensor, ...], function: str) -> tuple[tuple[Tensor, ...], bool]:
    return _tensors(func(*inputs), "outputs of the user-provided function", function)


def _gradients(
    outputs: Any, inputs: Any, grad_outputs: Any = None, create_graph: bool = False, retain: bool | None = None,
    strict: Callable[[int], str] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of those outputs that have a graph; zeros for inputs that they do not depend on.

    Args:
        strict: a function from the index of such an input to what the error says; None gives zeros.
    """
    pairs = [(o, None if grad_outputs is None else grad_outputs[i]) for i, o in enumerate(outputs) if o.requires_grad]
    if pairs:
        made = _grad(
            [o for o, _ in pairs], inputs, [g for _, g in pairs], retain_graph=retain, create_graph=create_graph,
            allow_unused=True,
        )  # fmt: skip
    else:
        made = (None,) * len(inputs)
    result = []
    for i, (g, x) in enumerate(zip(made, inputs, strict=True)):
        if g is None and strict is not None:
            raise RuntimeError(strict(i))
        result.append(x.new_zeros(x.shape) if g is None else g)
    return tuple(result)


def _require_graph(outputs: tuple[Tensor, ...], strict: bool, what: str = "the user-provided function") -> None:
    for i, o in enumerate(outputs):
        if strict and not o.requires_grad:
            raise RuntimeError(
                f"Output {i} of {what} does not require gradients. The outputs must be computed in a differentiable "
                f"manner from the input when running in strict mode."
            )


def _unused(what: str = "Output of the user-provided function") -> Callable[[int], str]:
    return lambda i: f"{what} is independent of input {i}. This is not allowed in strict mode."


def _finish(results: tuple[Tensor, ...], many: bool, create_graph: bool, strict: bool = False) -> Any:
    for i, t in enumerate(results):
        if strict and create_graph and not t.requires_grad:
            raise RuntimeError(
                f"Derivative {i} of the user-provided function is independent of the inputs. This is not allowed in "
                "strict mode when create_graph=True."
            )
    results = results if create_graph else tuple(t.detach() for t in results)
    return results if many else results[0]


# ---- products --------------------------------------------------------------------------------------------------------


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function and the product of ``v`` with its Jacobian, ``v^T J``.

    Args:
        func: from tensors to a tensor or a tuple of them.
        inputs: a tensor or a tuple of them, any shapes; floating-point or complex.
        v: of the outputs' sizes; may be None for a single output of one element.
        create_graph: both results can be differentiated.
        strict: raise where an output does not depend on an input, rather than give zeros.

    Returns:
        ``(outputs, products)``; the products have the inputs' shapes.

    Raises:
        RuntimeError: the sizes of ``v`` differ, or with ``strict`` an output does not depend on an input.

    Examples:
        >>> x = taeda.tensor([1.0, 2.0])
        >>> taeda.autograd.functional.vjp(lambda x: x**2, x, taeda.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        inputs, many = _tensors(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph)
        outputs, many_out = _run(func, inputs, "vjp")
        _require_graph(outputs, strict)
        v = _like(v, outputs, many_out, "out", "the user-provided function", "vjp")
    with set_grad_enabled(create_graph and _core.is_grad_enabled()):
        made = _gradients(outputs, inputs, v, create_graph, strict=_unused() if strict else None)
    return _finish(outputs, many_out, create_graph), _finish(made, many, create_graph, strict)


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function and the product of its Jacobian with ``v``, ``J v``, by differentiating a vjp.

    Args:
        func: from tensors to a tensor or a tuple of them.
        inputs: a tensor or a tuple of them, any shapes; floating-point or complex.
        v: of the inputs' sizes; may be None for a single input of one element.
        create_graph: both results can be differentiated.
        strict: raise where an output does not depend on an input, rather than give zeros.

    Returns:
        ``(outputs, products)``; the products have the outputs' shapes.

    Raises:
        RuntimeError: the sizes of ``v`` differ, or with ``strict`` an output does not depend on an input.

    Examples:
        >>> x = taeda.tensor([1.0, 2.0])
        >>> taeda.autograd.functional.jvp(lambda x: x**2, x, taeda.tensor([1.0, 0.0]))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    with enable_grad():
        inputs, many = _tensors(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph)
        v = _like(v, inputs, many, "in", "the user-provided function", "jvp")
        outputs, many_out = _run(func, inputs, "jvp")
        _require_graph(outputs, strict)
        made = _directional(outputs, inputs, v, create_graph, _unused() if strict else None)
    return _finish(outputs, many_out, create_graph), _finish(made, many_out, create_graph, strict)


def _directional(outputs, inputs, v, create_graph, strict=None) -> tuple[Tensor, ...]:
    """The derivative of ``outputs`` in the direction ``v``: the derivative of u J v with respect to u, wherever u
    is."""
    u = tuple(o.new_zeros(o.shape).requires_grad_() for o in outputs)
    back = _gradients(outputs, inputs, u, create_graph=True, strict=strict)
    return _gradients(back, u, v, create_graph)


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and the product of ``v`` with its Hessian, ``v^T H``.

    Args:
        func: from tensors to a tensor of one element.
        inputs: a tensor or a tuple of them, any shapes; floating-point or complex.
        v: of the inputs' sizes; may be None for a single input of one element.
        create_graph: both results can be differentiated.
        strict: raise where the output does not depend on an input, rather than give zeros.

    Returns:
        ``(output, products)``; the products have the inputs' shapes.

    Raises:
        RuntimeError: the output is no scalar, or the sizes of ``v`` differ.

    Examples:
        >>> x = taeda.tensor([1.0, 2.0])
        >>> taeda.autograd.functional.vhp(lambda x: (x**3).sum(), x, taeda.ones(2))  # 6 x
        (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        inputs, many = _tensors(inputs, "inputs", "vhp")
        inputs = _fresh(inputs, create_graph)
        v = _like(v, inputs, many, "in", "the user-provided function", "vhp")
        output, jac = _scalar_gradient(func, inputs, strict, "vhp")
    with set_grad_enabled(create_graph and _core.is_grad_enabled()):
        made = _gradients(jac, inputs, v, create_graph, strict=_unused("The Jacobian") if strict else None)
    return _finish((output,), False, create_graph), _finish(made, many, create_graph, strict)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and the product of its Hessian with ``v``, ``H v``.

    The Hessian is symmetric, so :func:`vhp` gives the same for less; this one differentiates in the direction ``v``.

    Args:
        func: from tensors to a tensor of one element.
        inputs: a tensor or a tuple of them, any shapes; floating-point or complex.
        v: of the inputs' sizes; may be None for a single input of one element.
        create_graph: both results can be differentiated.
        strict: raise where the output does not depend on an input, rather than give zeros.

    Returns:
        ``(output, products)``; the products have the inputs' shapes.

    Raises:
        RuntimeError: the output is no scalar, or the sizes of ``v`` differ.

    Examples:
        >>> x = taeda.tensor([1.0, 2.0])
        >>> taeda.autograd.functional.hvp(lambda x: (x**3).sum(), x, taeda.tensor([1.0, 0.0]))
        (tensor(9.), tensor([6., 0.]))
    """
    with enable_grad():
        inputs, many = _tensors(inputs, "inputs", "hvp")
        inputs = _fresh(inputs, create_graph)
        v = _like(v, inputs, many, "in", "the user-provided function", "hvp")
        output, jac = _scalar_gradient(func, inputs, strict, "hvp")
        made = _directional(jac, inputs, v, create_graph, _unused("The Jacobian") if strict else None)
    return _finish((output,), False, create_graph), _finish(made, many, create_graph, strict)


def _scalar_gradient(func, inputs, strict, function):
    outputs, many_out = _run(func, inputs, function)
    _require_graph(outputs, strict)
    if many_out or outputs[0].numel() != 1:
        got = "a tuple" if many_out else f"shape {list(outputs[0].shape)}"
        raise RuntimeError(
            f"The function given to {function} should return a single Tensor with a single element, got {got}"
        )
    jac = _gradients(outputs, inputs, create_graph=True, strict=_unused() if strict else None)
    _require_graph(jac, strict, "the Jacobian of the user-provided function")
    return outputs[0], jac


# ---- matrices --------------------------------------------------------------------------------------------------------


def jacobian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Jacobian of a function: for each output and input, a tensor of sizes output + input.

    Args:
        func: from tensors to a tensor or a tuple of them.
        inputs: a tensor or a tuple of them, any shapes; floating-point or complex.
        create_graph: the result can be differentiated.
        strict: raise where an output does not depend on an input, rather than give zeros.
        vectorize: batch the rows with vmap instead of looping over them.
        strategy: ``"reverse-mode"``, or with ``vectorize`` also ``"forward-mode"``.

    Returns:
        A tensor for one output and one input; a tuple for several of either; a tuple of tuples for several of both.

    Raises:
        RuntimeError: options exclude each other, or with ``strict`` an output does not depend on an input.
        AssertionError: ``strategy`` is another word.
        NotImplementedError: ``strategy`` is ``"forward-mode"``, with ``create_graph`` or without ``vectorize``.

    Examples:
        >>> def f(x):
        ...     return taeda.stack([x[0] * x[1], x[1] ** 2])
        >>> taeda.autograd.functional.jacobian(f, taeda.tensor([2.0, 3.0]))
        tensor([[3., 2.],
                [0., 6.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(f"Expected strategy to be either 'forward-mode' or 'reverse-mode', got {strategy!r}")
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'jacobian: create_graph=True and strategy="forward-mode" are not supported together'
            )
        if strict:
            raise RuntimeError('jacobian: strict=True and strategy="forward-mode" are not supported together')
        if not vectorize:
            raise NotImplementedError(
                'jacobian: strategy="forward-mode" needs vectorize=True; or use strategy="reverse-mode"'
            )
    if vectorize and strict:
        raise RuntimeError(
            "jacobian: strict=True and vectorized=True are not supported together. Please either set strict=False or "
            "vectorize=False"
        )
    with enable_grad():
        inputs, many = _tensors(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph)
        outputs, many_out = _run(func, inputs, "jacobian")
        _require_graph(outputs, strict)
        rows = tuple(_rows(o, inputs, create_graph, strict, vectorize, i) for i, o in enumerate(outputs))
    if not create_graph:
        rows = tuple(tuple(t.detach() for t in row) for row in rows)
    rows = rows if many else tuple(row[0] for row in rows)
    return rows if many_out else rows[0]


def _rows(output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool, vectorize: bool, index: int):
    """The derivatives of every element of ``output``, stacked, with respect to each input."""
    n = output.numel()
    if n == 0 or not output.requires_grad:
        return tuple(x.new_zeros((*output.shape, *x.shape)) for x in inputs)
    if vectorize:
        basis = output.new_zeros((n, n))
        basis.diagonal().fill_(1)
        made = _grad(
            output, inputs, basis.reshape((n, *output.shape)), retain_graph=True, create_graph=create_graph,
            allow_unused=True, is_grads_batched=True,
        )  # fmt: skip
        made = tuple(x.new_zeros((n, *x.shape)) if g is None else g for g, x in zip(made, inputs, strict=True))
    else:
        flat = output.reshape(-1)
        unused = _unused(f"Output {index} of the user-provided function") if strict else None
        columns = [
            _gradients((flat[j],), inputs, create_graph=create_graph, retain=True, strict=unused) for j in range(n)
        ]
        made = tuple(stack(list(column), 0) for column in zip(*columns, strict=True))
    if strict and create_graph:
        _require_graph(made, strict, "the jacobian of the user-provided function")
    return tuple(g.reshape((*output.shape, *x.shape)) for g, x in zip(made, inputs, strict=True) if g is not None)


def hessian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Hessian of a scalar function: for each pair of inputs, a tensor of sizes input + input.

    Args:
        func: from tensors to a tensor of one element.
        inputs: a tensor or a tuple of them, any shapes; floating-point or complex.
        create_graph: the result can be differentiated.
        strict: raise where the output does not depend on an input, rather than give zeros.
        vectorize: batch the rows with vmap instead of looping over them.
        outer_jacobian_strategy: ``"reverse-mode"``, or with ``vectorize`` also ``"forward-mode"``.

    Returns:
        A tensor for one input; a tuple of tuples for several.

    Raises:
        RuntimeError: the output is no scalar, or options exclude each other.
        AssertionError: ``outer_jacobian_strategy`` is another word.

    Examples:
        >>> taeda.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], taeda.tensor([1.0, 3.0]))
        tensor([[6., 2.],
                [2., 0.]])
    """
    inputs, many = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def checked(*args):
        outputs, many_out = _run(func, args, "hessian")
        if many_out or outputs[0].numel() != 1:
            got = "a tuple" if many_out else f"shape {list(outputs[0].shape)}"
            raise RuntimeError(
                f"The function given to hessian should return a single Tensor with a single element, got {got}"
            )
        return outputs[0].reshape(())

    def gradient(*args):
        rows = jacobian(checked, args, create_graph=True, strict=strict)
        _require_graph(rows, strict, "the jacobian of the user-provided function")
        return rows

    made = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return made if many else made[0][0]
