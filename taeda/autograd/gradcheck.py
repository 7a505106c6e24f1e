"""Derivatives against finite differences: ``gradcheck`` and ``gradgradcheck``.

Everything is compared as real matrices: a complex number counts as its real and its imaginary part, so that the check
is complete for functions that are not analytic too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from ..ops._lazy import np
from ..ops.compressed import compress
from ..ops.parts import OfValues
from ..ops.sparse import values_at
from .backward import grad
from .functional import _directional
from .modes import passing_tangents

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative does not agree with finite differences, or does not behave as a derivative must.

    Examples:
        >>> class Wrong(taeda.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 3
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> try:
        ...     taeda.autograd.gradcheck(Wrong.apply, taeda.ones(1, dtype=taeda.float64, requires_grad=True))
        ... except taeda.autograd.GradcheckError:
        ...     print("wrong")
        wrong
    """


# ---- arguments -------------------------------------------------------------------------------------------------------


def _tuple(x: Any) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _differentiable(items: Iterable) -> tuple[Tensor, ...]:
    """The tensors among ``items`` (and in lists among them) that require grad."""
    found: list[Tensor] = []
    for x in items:
        if isinstance(x, (tuple, list)):
            found.extend(_differentiable(x))
        elif isinstance(x, Tensor) and x.requires_grad:
            found.append(x)
    return tuple(found)


def _outputs(result: Any) -> tuple[Tensor, ...]:
    """The outputs of the function that have a gradient."""
    return tuple(
        o
        for o in _tuple(result)
        if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex()) and o.requires_grad
    )


def _check_inputs(inputs: tuple, function: str) -> tuple[Tensor, ...]:
    found = _differentiable(inputs)
    if not found:
        raise ValueError(
            f"{function} expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, x in enumerate(found):
        if x.dtype not in (_core.float64, _core.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                f"will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=4,
            )
        if any(st == 0 and n > 1 for st, n in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                f"on the input before passing it to gradcheck."
            )
    return found


def _of_values(func: Callable, inputs: tuple, masked: bool) -> tuple[Callable, tuple]:
    """``func`` as a function of the values of its sparse inputs that require grad, which are dense tensors.

    Args:
        masked: whether only the elements that an input has count; else it gets all.
    """
    sparse = {i: x for i, x in enumerate(inputs) if isinstance(x, OfValues) and x.requires_grad}
    if not sparse:
        return func, inputs
    forms = {i: _with_entries(x.detach(), masked) for i, x in sparse.items()}

    def of_values(*args: Any) -> Any:
        made = func(*(forms[i]._with(x) if i in forms else x for i, x in enumerate(args)))
        if any(isinstance(o, OfValues) for o in _tuple(made)):
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                "of fn for gradcheck."
            )
        return made

    return of_values, tuple(forms[i]._v.clone().requires_grad_() if i in forms else x for i, x in enumerate(inputs))


def _with_entries(x: OfValues, masked: bool) -> OfValues:
    """``x`` with each of its places once; unless ``masked`` with all places."""
    if masked:
        return x.coalesce() if x.layout is _core.sparse_coo else x
    ones = x.detach()._v.new_ones(x.shape)
    if x.layout is _core.sparse_coo:
        full = ones.to_sparse(x.sparse_dim())
    else:
        full = compress(ones, x.layout, x._block or None, x.dense_dim())
    return full._with(values_at(x, full.to_sparse_coo()._i).reshape(full._v.shape))


# ---- matrices --------------------------------------------------------------------------------------------------------


def _reals(t: Tensor) -> Any:
    """The elements as a flat NumPy array of float64; real and imaginary parts one after the other."""
    flat = t.detach().to(_core.complex128 if t.is_complex() else _core.float64).contiguous()
    return np.array(flat.numpy(force=True).reshape(-1).view(np.float64))


def _element_steps(x: Tensor) -> Iterable[tuple[Tensor, complex]]:
    """For each real number in ``x``: a 0-d view that holds it, and the unit step in it."""
    steps: tuple[complex, ...] = (1.0, 1j) if x.is_complex() else (1.0,)
    count = x.numel()
    for i in range(count):
        index = []
        for n in reversed(x.shape):
            index.append(i % n)
            i //= n
        element = x.data[tuple(reversed(index))] if x.dim() else x.data
        for step in steps:
            yield element, step


def _evaluate(func: Callable, inputs: tuple, outputs: tuple[Tensor, ...]) -> list:
    """Values of the differentiable outputs, which keep the sizes and dtypes that they had, as ``outputs``."""
    previous = _core.set_grad_enabled(True)  # the outputs that count are those that require grad
    try:
        made = _outputs(func(*inputs))[: len(outputs)]
    finally:
        _core.restore_grad_mode(previous)
    for a, b in zip(outputs, made, strict=False):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed, got "
                    f"{getattr(a, what)} and {getattr(b, what)}"
                )
    return [_reals(o) for o in made]


def _numerical(func: Callable, inputs: tuple, x: Tensor, outputs: tuple[Tensor, ...], eps: float) -> list:
    """For each output, d output / d x by central differences: a row per real number in ``x``."""
    rows: list[list] = [[] for _ in outputs]
    for element, step in _element_steps(x):
        original = element.item()
        values = []
        for sign in (1, -1):
            element.fill_(original + sign * eps * step)
            values.append(_evaluate(func, inputs, outputs))
        element.fill_(original)
        for k in range(len(outputs)):
            rows[k].append((values[0][k] - values[1][k]) / (2 * eps))
    return [np.stack(r) if r else np.zeros((0, 0)) for r in rows]


def _basis(output: Tensor) -> Iterable[Tensor]:
    """Every unit cotangent of ``output``."""
    units = (1.0, 1j) if output.is_complex() else (1.0,)
    for i in range(output.numel()):
        for unit in units:
            v = output.detach().new_zeros((output.numel(),))
            v[i] = unit
            yield v.reshape(output.shape)


def _analytical(outputs: tuple[Tensor, ...], i: int, found: tuple[Tensor, ...], check_dtypes: bool) -> list:
    """For each input, d outputs[i] / d input by backward: a column per real number in it."""
    columns: list[list] = [[] for _ in found]
    zeros = [o.detach().new_zeros(o.shape) for o in outputs]
    for v in _basis(outputs[i]):
        grads = grad(outputs, found, [*zeros[:i], v, *zeros[i + 1 :]], retain_graph=True, allow_unused=True)
        for k, (x, g) in enumerate(zip(found, grads, strict=True)):
            if g is not None and g.shape != x.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: expected {list(x.shape)}, got {list(g.shape)}"
                )
            if g is not None and check_dtypes and g.dtype != x.dtype:
                raise GradcheckError(f"Analytical gradient has incorrect dtype: expected {x.dtype}, got {g.dtype}")
            columns[k].append(_reals(x) * 0 if g is None else _reals(g))
    return [np.stack(c, 1) if c else np.zeros((_reals(x).size, 0)) for c, x in zip(columns, found, strict=True)]


def _close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


def _mismatch(kind: str, i: int, j: int, numerical: Any, analytical: Any) -> str:
    return (
        f"{kind}Jacobian mismatch for output {i} with respect to input {j},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
        f"(rows: elements of the input, columns: elements of the output; a complex number is two of them)"
    )


# ---- the checks ------------------------------------------------------------------------------------------------------


def _check_backward(func, inputs, found, outputs, eps, rtol, atol, nondet_tol, check_dtypes) -> None:
    numerical = [_numerical(func, inputs, x, outputs, eps) for x in found]
    for i in range(len(outputs)):
        analytical = _analytical(outputs, i, found, check_dtypes)
        for j, a in enumerate(analytical):
            n = numerical[j][i].reshape(a.shape)
            if not _close(a, n, rtol, atol):
                raise GradcheckError(_mismatch("", i, j, n, a))
        again = _analytical(outputs, i, found, check_dtypes)
        for j, (a, b) in enumerate(zip(analytical, again, strict=True)):
            _check_again(a, b, nondet_tol, i, j)


def _check_again(a: Any, b: Any, nondet_tol: float, i: int, j: int) -> None:
    if not _close(a, b, 0.0, nondet_tol):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            "different values, although analytical gradient matches numerical gradient. The tolerance for "
            f"nondeterminism was {nondet_tol}. Output {i}, input {j}."
        )


def _check_forward(func, inputs, found, outputs, eps, rtol, atol) -> None:
    """The derivative along each input element, as ``jvp`` gives it."""
    for j, x in enumerate(found):
        numerical = _numerical(func, inputs, x, outputs, eps)
        rows: list[list] = [[] for _ in outputs]
        for v in _basis(x):
            with passing_tangents():  # a Function's derivative comes from its ``jvp``
                made = _directional(outputs, (x,), (v,), False)
            for i, t in enumerate(made):
                rows[i].append(_reals(t))
        for i in range(len(outputs)):
            a = np.stack(rows[i]) if rows[i] else np.zeros((0, 0))
            n = numerical[i].reshape(a.shape)
            if not _close(a, n, rtol, atol):
                raise GradcheckError(_mismatch("Forward mode: ", i, j, n, a))


def _check_fast(func, inputs, found, outputs, eps, rtol, atol, nondet_tol) -> bool:
    """One random number per input and output: u J v, by backward and by a difference along v."""
    rng = np.random.default_rng(0)
    for j, x in enumerate(found):
        v = rng.standard_normal(_reals(x).size)
        v /= max(float(np.linalg.norm(v)), 1e-300)
        steps = list(_element_steps(x))
        values = []
        original = [element.item() for element, _ in steps]
        for sign in (1, -1):
            for (element, step), part in zip(steps, v, strict=True):
                element.fill_(element.item() + sign * eps * step * float(part))
            values.append(_evaluate(func, inputs, outputs))
            for (element, _), value in zip(steps, original, strict=True):
                element.fill_(value)
        for i, output in enumerate(outputs):
            u = rng.standard_normal(_reals(output).size)
            cotangent = output.detach().new_zeros(output.shape)
            for (element, step), part in zip(_element_steps(cotangent), u, strict=True):
                element.add_(step * float(part))
            g, again = (grad(output, (x,), cotangent, retain_graph=True, allow_unused=True)[0] for _ in range(2))
            analytical = 0.0 if g is None else float(_reals(g) @ v)
            numerical = float((values[0][i] - values[1][i]) @ u) / (2 * eps)
            if not np.isclose(
                analytical, numerical, rtol=rtol, atol=atol * max(1.0, float(np.abs(u).sum())), equal_nan=True
            ):
                return False
            if g is not None:
                _check_again(_reals(g), _reals(again), nondet_tol, i, j)
    return True


def _check_scaling(found, outputs) -> None:
    """A zero gradient of the outputs gives zero gradients of the inputs, of the right size."""
    zeros = [o.detach().new_zeros(o.shape) for o in outputs]
    for x, g in zip(found, grad(outputs, found, zeros, retain_graph=True, allow_unused=True), strict=True):
        if g is None:
            continue
        if g.shape != x.shape:
            raise GradcheckError(f"grad is incorrect size: expected {list(x.shape)}, got {list(g.shape)}")
        if g.dtype != x.dtype:
            raise GradcheckError(f"grad is incorrect type: expected {x.dtype}, got {g.dtype}")
        values = _reals(g)
        if not bool((values[values == values] == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")


def _check_undefined(found, outputs) -> None:
    """Gradients of some outputs only: as good as zeros for the others."""
    if len(outputs) < 2:
        return
    for i in range(len(outputs)):
        ones = [
            o.detach().new_ones(o.shape) if k == i else o.detach().new_zeros(o.shape) for k, o in enumerate(outputs)
        ]
        expected = grad(outputs, found, ones, retain_graph=True, allow_unused=True)
        try:
            got = grad(outputs[i], found, ones[i], retain_graph=True, allow_unused=True)
        except Exception as error:
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads: output {i} alone raised "
                f"{type(error).__name__}: {error}"
            ) from error
        for j, (a, b) in enumerate(zip(expected, got, strict=True)):
            a = _reals(found[j]) * 0 if a is None else _reals(a)
            b = _reals(found[j]) * 0 if b is None else _reals(b)
            if not _close(a, b, 1e-9, 1e-12):
                raise GradcheckError(
                    f"An undefined gradient of the outputs other than {i} is not handled as zero, for input {j}"
                )


def _check_batched(found, outputs, rtol, atol) -> None:
    """Check that several gradients of an output at once give the same results as one by one."""
    rng = np.random.default_rng(0)
    for i, output in enumerate(outputs):
        batch = output.detach().new_zeros((2, *output.shape))
        for element, step in _element_steps(batch):
            element.add_(step * float(rng.standard_normal()))
        together = grad(output, found, batch, retain_graph=True, allow_unused=True, is_grads_batched=True)
        for k in range(2):
            alone = grad(output, found, batch[k], retain_graph=True, allow_unused=True)
            for j, (a, b) in enumerate(zip(together, alone, strict=True)):
                if (a is None) != (b is None) or (a is not None and not _close(_reals(a[k]), _reals(b), rtol, atol)):
                    raise GradcheckError(
                        f"While testing batched gradients of output {i}, those of input {j} differ from single ones"
                    )


def _check_constant(func, inputs, found, eps, atol) -> None:
    """No output requires grad: the function must not depend on its inputs."""

    def values():
        return [_reals(o) for o in _tuple(func(*inputs)) if isinstance(o, Tensor)]

    for j, x in enumerate(found):
        for element, step in _element_steps(x):
            original = element.item()
            element.fill_(original + eps * step)
            up = values()
            element.fill_(original - eps * step)
            down = values()
            element.fill_(original)
            for a, b in zip(up, down, strict=True):
                if not np.allclose((a - b) / (2 * eps), 0, atol=atol):
                    raise GradcheckError(
                        f"Numerical gradient for function expected to be zero (input {j}): no output requires grad"
                    )


def gradcheck(
    func: Callable, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None,
) -> bool:  # fmt: skip
    """Whether the gradients of a function agree with central differences, ``(f(x + eps) - f(x - eps)) / (2 eps)``.

    Args:
        func: from tensors (and other things) to a tensor or a tuple of them.
        inputs: its arguments; those that require grad are checked and should be float64 or complex128. Any shapes.
        eps: step of the differences.
        atol: how far numerical and analytical derivatives may be apart.
        rtol: the same, relative to their size.
        raise_exception: raise an error that shows both, rather than give False.
        nondet_tol: how far two runs of backward may be apart.
        check_undefined_grad: try also gradients of only some outputs.
        check_grad_dtypes: require gradients of the inputs' dtypes.
        check_batched_grad: try also several gradients at once.
        check_batched_forward_grad: the same in forward mode.
        check_forward_ad: check the forward derivative, which ``jvp`` gives.
        check_backward_ad: check the backward one.
        fast_mode: compare one random projection for each input and output rather than whole Jacobians.
        masked: whether only the elements that a sparse input has are checked, and not those that are 0 by default.

    Returns:
        True, or False where they do not agree and no error is asked for.

    Raises:
        GradcheckError: they do not agree.
        ValueError: no input requires grad.
        AssertionError: no mode is to be checked, or a batched one without its mode.

    Examples:
        >>> x = taeda.tensor([0.3, 1.2], dtype=taeda.float64, requires_grad=True)
        >>> taeda.autograd.gradcheck(lambda x: x.sin() * x, (x,))
        True
    """
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    func, inputs = _of_values(func, _tuple(inputs), bool(masked))
    previous = _core.set_grad_enabled(True)
    try:
        found = _check_inputs(inputs, "gradcheck")
        outputs = _outputs(func(*inputs))
        if not outputs:
            _check_constant(func, inputs, found, eps, atol)
            return True
        if check_backward_ad and check_undefined_grad:
            _check_undefined(found, outputs)
        if fast_mode and check_backward_ad and _check_fast(func, inputs, found, outputs, eps, rtol, atol, nondet_tol):
            pass
        elif check_backward_ad:
            _check_backward(func, inputs, found, outputs, eps, rtol, atol, nondet_tol, check_grad_dtypes)
        if check_forward_ad:
            _check_forward(func, inputs, found, outputs, eps, rtol, atol)
        if check_backward_ad:
            _check_scaling(found, outputs)
            if check_batched_grad:
                _check_batched(found, outputs, rtol, atol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    finally:
        _core.restore_grad_mode(previous)
    return True


def gradgradcheck(
    func: Callable, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Whether the second derivatives of a function agree with central differences of the first.

    The gradients are differentiated with respect to ``inputs`` and ``grad_outputs``.

    Args:
        func: from tensors (and other things) to a tensor or a tuple of them.
        inputs: its arguments; those that require grad are checked and should be float64 or complex128. Any shapes.
        grad_outputs: gradients of the outputs; random numbers if None.
        eps: step of the differences.
        atol: how far numerical and analytical derivatives may be apart.
        rtol: the same, relative to their size.
        gen_non_contig_grad_outputs: make those random numbers non-contiguous.
        raise_exception: raise an error that shows both, rather than give False.
        nondet_tol: how far two runs of backward may be apart.
        check_undefined_grad: try also gradients of only some outputs.
        check_grad_dtypes: require gradients of the inputs' dtypes.
        check_batched_grad: try also several gradients at once.
        check_fwd_over_rev: check the forward derivative of the backward one.
        check_rev_over_rev: check the backward derivative of the backward one.
        fast_mode: compare one random projection for each input and output rather than whole Jacobians.
        masked: as in :func:`gradcheck`.

    Returns:
        True, or False where they do not agree and no error is asked for.

    Raises:
        GradcheckError: they do not agree.
        AssertionError: no mode is to be checked.

    Examples:
        >>> x = taeda.tensor([0.3, 1.2], dtype=taeda.float64, requires_grad=True)
        >>> taeda.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    func, inputs = _of_values(func, _tuple(inputs), masked)
    if grad_outputs is None:
        grad_outputs = tuple(
            _random_like(o, gen_non_contig_grad_outputs, i) for i, o in enumerate(_outputs(func(*inputs)))
        )
    else:
        grad_outputs = _tuple(grad_outputs)
    count = len(grad_outputs)
    if not grad_outputs:
        return True

    def first_derivative(*args):
        given, weights = args[: len(args) - count], args[len(args) - count :]
        found = _differentiable(given)
        made = grad(_outputs(func(*given)), found, weights, create_graph=True, allow_unused=True)
        return tuple(g for g in made if g is not None)

    return gradcheck(
        first_derivative, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _random_like(output: Tensor, strided: bool, seed: int) -> Tensor:
    """Normal random numbers with the sizes and dtype of ``output``."""
    rng = np.random.default_rng(seed)
    shape = (*output.shape, 2) if strided else tuple(output.shape)
    t = output.detach().new_zeros(shape)
    for element, step in _element_steps(t):
        element.add_(step * float(rng.standard_normal()))
    t = t[..., 0] if strided else t
    return t.requires_grad_()
