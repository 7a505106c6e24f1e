"""Derivatives of functions that compose: ``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``, ``hessian``,
``linearize``.

Each runs the function on inputs of its own, a node above the caller's, and asks the engine for gradients with respect
to them. The results have a graph only if another derivative (an outer transform, ordinary autograd) needs one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from ..autograd.forward_ad import hidden, under_no_grad
from ..autograd.modes import forward_mode, on_values, passing_tangents, recording, unrecorded
from ..ops.parts import OfParts
from ..overrides import DisableTorchFunctionSubclass, handle_torch_function, has_torch_function
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .batched import Batched, as_one, is_batched, plain, vmap_modes
from .modules import functionalize  # noqa: F401 - PyTorch's module has it too
from .vmap import vmap

# ---- inputs of a derivative ------------------------------------------------------------------------------------------


class _Running(threading.local):
    """The derivatives whose functions run on this thread now, innermost last."""

    def __init__(self) -> None:
        self.inputs: list[_Inputs] = []


_running = _Running()


class _Inputs:
    """The inputs of one derivative: the function's arguments, the edges to differentiate with respect to, the leaves
    added. As a context manager: the function runs.
    """

    def __init__(self, tensors: list, name: str, dual: bool = False) -> None:
        self.dual = dual  # tensors computed from them have tangents
        self.outer = _core.is_recorded()
        self.leaves: list[Tensor] = []
        self.running = [False]  # whether the function runs; its leaves know it
        self.nodes: set[Any] = set()  # nodes of the function's arguments
        self.given: list = []
        self.edges: list = []
        self.forms: list = []  # a tensor like the input, where that consists of parts
        self.name = name
        for t in tensors:
            if not isinstance(t, Tensor):
                raise (RuntimeError if name == "jvp" else ValueError)(
                    f"{name}: Expected all inputs to be Tensors, got {type(t).__name__}. Use argnums to choose what to "
                    "differentiate."
                )
            self.given.append(_as_dual(t, self) if dual else _wrap_tensor_for_grad(t, self))

    def add(self, t: Tensor) -> Tensor:
        """One more input: the function's argument for ``t``, without its class if that is a program's own."""
        of_parts = isinstance(t, OfParts)
        if of_parts and self.name not in ("grad", "vjp"):
            raise NotImplementedError(
                f"{self.name}: not with respect to {t._without_memory}; differentiate by the tensors that it is made of"
            )
        with DisableTorchFunctionSubclass():
            own = [self._own(x, self.name) for x in (t._graph_parts() if of_parts else (t,))]
        self.edges.extend(edge for _, edge in own)
        self.forms.append(t._detached() if of_parts else None)
        return t._of_graph_parts([given for given, _ in own]) if of_parts else own[0][0]

    def _own(self, t: Any, name: str) -> tuple[Tensor, Tensor]:
        if not (t.is_floating_point() or t.is_complex()):
            raise RuntimeError(
                f"{name}: only Tensors of floating point and complex dtype can require gradients, got {t.dtype}"
            )
        others = [mode for mode in vmap_modes() if not is_batched(t, mode)]
        wrappers = []
        while isinstance(t, Batched):
            wrappers.append(t._mode)
            t = t.physical
        source = t if self.outer and t.requires_grad else t.detach().requires_grad_()
        if source is not t:
            source._derivative_runs = self.running
            self.leaves.append(source)
        below = hidden(source) if under_no_grad() else source
        inside = t.detach()
        _core.record_custom(list, "InputBackward", [below], [inside], None, self.dual, not self.dual)
        self.nodes.add(inside.grad_fn)
        edge = _core.same_edge(inside)
        for mode in others:
            mode.shared[inside.grad_fn] = True
        for mode in reversed(wrappers):
            inside, edge = mode.wrap(inside), mode.wrap(edge)
        return inside, edge

    def __enter__(self) -> None:
        self.born = _core.begin_transform()
        self.running[0] = True
        _running.inputs.append(self)

    def __exit__(self, *exc: object) -> None:
        _running.inputs.pop()
        self.running[0] = False
        _core.end_transform()

    def refuse(self, op: Any, target: Tensor, args: list) -> None:
        """Raise if ``target``, which the function did not make, is about to be written with what depends on its
        inputs."""
        if (
            target.untyped_storage().born < self.born
            and not _core.leads_to([target], self.nodes)
            and _core.leads_to([_bottom(t) for t in tree_flatten(args)[0] if isinstance(t, Tensor)], self.nodes)
        ):
            raise RuntimeError(
                f"During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                f"operation ({op.name}) that would mutate a captured Tensor. This is not supported; please rewrite the "
                "function being transformed to explicitly accept the mutated Tensor(s) as inputs."
            )

    def needs_graph(self, outputs: list, others: Sequence = (), through: bool = True) -> bool:
        """Whether another derivative may differentiate the results computed from ``outputs``; with ``through`` also
        paths of forward mode count.
        """
        if not self.outer:
            return False
        if any(_bottom(t).requires_grad for t in others if t is not None):
            return True
        parts = [part for t in outputs for part in (t._output_parts() if isinstance(t, OfParts) else (t,))]
        return _core.depends_on_others([_bottom(t) for t in parts], self.leaves, through)

    def gradients(self, outputs: list, cotangents: list, keep: bool, create: bool) -> list:
        """One per input, zeros where no output depends on it."""
        if _core.change_overrides(0, 0) & (_FUNCTION_MODES | _NO_OVERRIDES) == _FUNCTION_MODES:
            return callbacks.overrides(type(self).gradients, (self, outputs, cotangents, keep, create), {})
        whole = [(o, g) for o, g in zip(outputs, cotangents, strict=True) if o.requires_grad]
        pairs = [pair for o, g in whole for pair in _of_parts(o, g)]
        pairs = [(plain(o), g) for o, g in pairs]
        made: list = [None] * len(self.edges)
        if pairs:
            made = _core.run_backward(
                [o for o, _ in pairs], [g for _, g in pairs], keep, create, list(self.edges), False
            )
        flat = iter([e.new_zeros(e.shape) if g is None else g for g, e in zip(made, self.edges, strict=True)])
        return [
            next(flat) if form is None else form._whole_gradient([next(flat) for _ in form._graph_parts()])
            for form in self.forms
        ]


def _wrap_tensor_for_grad(maybe_tensor: Any, level: Any) -> Any:
    """A tensor as an input of the derivative ``level``. PyTorch's name: packages wrap this function to give the input
    the class of ``maybe_tensor``."""
    return level.add(maybe_tensor) if isinstance(maybe_tensor, Tensor) else maybe_tensor


def _as_dual(t: Tensor, level: _Inputs) -> Tensor:
    """The dual of a tensor with tangents. The class of ``t`` decides what it becomes, as for other functions."""

    def make_dual(tensor: Tensor) -> Tensor:
        return level.add(tensor)

    return handle_torch_function(make_dual, (t,), t) if has_torch_function((t,)) else make_dual(t)


_FUNCTION_MODES = 2  # a flag of the core's overrides: a TorchFunctionMode is on, which sees the call first
_NO_OVERRIDES = 8  # overrides are off altogether


def _refuse_captured(op: Any, target: Tensor, args: list) -> None:
    for inputs in _running.inputs:
        inputs.refuse(op, target, args)


callbacks.refuse_captured = _refuse_captured


def _of_parts(output: Tensor, cotangent: Tensor) -> list[tuple]:
    """An output and its cotangent; of one that consists of parts each part with its own."""
    if not isinstance(output, OfParts):
        return [(output, cotangent)]
    pairs = zip(output._output_parts(), output._part_gradients(cotangent), strict=True)
    return [(x, g) for x, g in pairs if x.requires_grad]


def _bottom(t: Tensor) -> Tensor:
    while isinstance(t, Batched):
        t = t.physical
    return t


def _tensors(x: Any, name: str, what: str) -> tuple[list, Any]:
    leaves, structure = tree_flatten(x)
    if not leaves and name != "linearize":
        raise RuntimeError(f"{name}: Expected {what} to have at least one Tensor, got {x!r}")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: Expected {what} to be a Tensor or a tuple, list or dict of them, got {type(leaf).__name__}"
            )
    return leaves, structure


def _chosen(args: tuple, argnums: Any, name: str) -> tuple[tuple[int, ...], Any]:
    """Positions of the arguments to differentiate with respect to, and those arguments in the shape of ``argnums``."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    positions = (argnums,) if isinstance(argnums, int) else argnums
    if not positions:
        raise RuntimeError("argnums must be non-empty")
    for p in positions:
        if not isinstance(p, int):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {argnums}")
        if not -len(args) <= p < len(args):
            raise RuntimeError(f"{name}: Got argnum={p}, but only {len(args)} positional inputs")
    positions = tuple(p % len(args) for p in positions)
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got: {argnums}")
    return positions, args[positions[0]] if isinstance(argnums, int) else tuple(args[p] for p in positions)


def _replace(args: tuple, positions: tuple, argnums: Any, values: Any) -> tuple:
    made = list(args)
    for p, v in zip(positions, (values,) if isinstance(argnums, int) else values, strict=True):
        made[p] = v
    return tuple(made)


def _split_aux(out: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True, got "
            f"{type(out).__name__}"
        )
    return out


def _given(gradients: list) -> list:
    """Gradients as the caller gets them."""
    return [hidden(t) if t.requires_grad else t for t in gradients] if under_no_grad() else gradients


def _settle(inputs: _Inputs, x: Any) -> Any:
    """Results as the caller gets them: of no class of a program's own, with their graph if it is needed outside, else
    without."""
    through = _core.forward_levels() > 0

    def settled(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        t = plain(t)
        if not t.requires_grad:
            return t
        if not inputs.needs_graph([t], (), through):
            return t.detach()
        return hidden(t) if under_no_grad() else t

    return tree_map(settled, x)


# ---- gradients -------------------------------------------------------------------------------------------------------


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of another one, whose output is one number.

    Args:
        func: from tensors to a scalar tensor, or with ``has_aux`` to ``(scalar, anything)``.
        argnums: which arguments to differentiate with respect to; a tuple gives a tuple of gradients.
        has_aux: the result is ``(gradient, anything)``.

    Returns:
        A function with the arguments of ``func``. Its gradients have the shapes and dtypes of the arguments.

    Raises:
        RuntimeError: in a call, the output is no real scalar, or an argument is no floating-point or complex tensor.

    Examples:
        >>> def f(x):
        ...     return (x**3).sum()
        >>> taeda.func.grad(f)(taeda.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
        >>> taeda.func.grad(taeda.func.grad(lambda x: x**3))(taeda.tensor(2.0))  # 6 x
        tensor(12.)
    """

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        made = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (made[0], made[1][1]) if has_aux else made[0]

    return gradient


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """As :func:`grad`, together with the value.

    Args:
        func: from tensors to a scalar tensor, or with ``has_aux`` to ``(scalar, anything)``.
        argnums: which arguments to differentiate with respect to; a tuple gives a tuple of gradients.
        has_aux: see ``func``.

    Returns:
        A function that gives ``(gradient, value)``, or ``(gradient, (value, anything))``.

    Raises:
        RuntimeError: in a call, the output is not one number.

    Examples:
        >>> taeda.func.grad_and_value(lambda x: x**2)(taeda.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @on_values
    @functools.wraps(func)
    def both(*args, **kwargs):
        positions, chosen = _chosen(args, argnums, "grad")
        leaves, structure = tree_flatten(chosen)
        inputs = _Inputs(leaves, "grad")
        with inputs, recording():
            out = func(*_replace(args, positions, argnums, tree_unflatten(inputs.given, structure)), **kwargs)
            out, aux = _split_aux(out, has_aux, "grad")
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"Expected f(*args) to return a Tensor, got {type(out).__name__}"
                + ("" if has_aux else "; set has_aux=True for (output, aux)")
            )
        if out.dim() != 0:
            raise RuntimeError(
                f"Expected f(*args) to return a scalar tensor, got tensor with {out.dim()} dims. Maybe you wanted to "
                f"use the vjp or jacrev APIs instead?"
            )
        if out.is_complex() and out.requires_grad:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
        create = inputs.needs_graph([out])
        with nullcontext() if create else unrecorded():
            made = [plain(g) for g in inputs.gradients([out], [as_one(None, out)], create, create)]
        value = _settle(inputs, out)
        return tree_unflatten(_given(made), structure), (value, _settle(inputs, aux)) if has_aux else value

    return both


@on_values
def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """The value of a function, and a function from cotangents of the output to cotangents of the inputs: ``v -> v^T
    J``.

    Args:
        func: from tensors, nested in tuples, lists or dicts, to tensors.
        *primals: the arguments.
        has_aux: ``func`` gives ``(output, anything)``.

    Returns:
        ``(output, vjp_fn)``, or ``(output, vjp_fn, anything)``. ``vjp_fn`` takes a cotangent for each output, of its
            shape, and gives a tuple with one for each argument.

    Raises:
        RuntimeError: an output is no floating-point or complex tensor; in ``vjp_fn``, a cotangent has another shape.

    Examples:
        >>> output, vjp_fn = taeda.func.vjp(lambda x: x * taeda.tensor([1.0, 10.0]), taeda.tensor(3.0))
        >>> output
        tensor([ 3., 30.])
        >>> vjp_fn(taeda.tensor([1.0, 1.0]))
        (tensor(11.),)
    """
    out, pull, aux, _inputs = _vjp(func, primals, has_aux, "vjp")
    return (out, pull, aux) if has_aux else (out, pull)


def _vjp(func: Callable, primals: tuple, has_aux: bool, name: str) -> tuple:
    leaves, structure = tree_flatten(primals)
    inputs = _Inputs(leaves, name)
    with inputs, recording():
        out, aux = _split_aux(func(*tree_unflatten(inputs.given, structure)), has_aux, name)
    outputs, shape = _tensors(out, name, "the output of f")
    for o in outputs:
        if not (o.is_floating_point() or o.is_complex()):
            raise RuntimeError(
                f"{name}: All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {o.dtype}"
            )

    @on_values
    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        flat, given_shape = tree_flatten(given)
        if given_shape != shape and not (len(flat) == len(outputs) == 1):
            raise RuntimeError(
                f"{name}: Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                "function."
            )
        for c, o in zip(flat, outputs, strict=True):
            if not isinstance(c, Tensor) or c.shape != o.shape:
                got = list(c.shape) if isinstance(c, Tensor) else type(c).__name__
                raise RuntimeError(
                    f"{name}: a cotangent must have the shape of its output: expected {list(o.shape)}, got {got}"
                )
        create = _core.is_recorded() and inputs.needs_graph(outputs, flat) if create_graph is None else create_graph
        with nullcontext() if create else unrecorded():
            made = inputs.gradients(outputs, flat, retain_graph or create, create)
        return tree_unflatten(_given(made), structure)

    return _settle(inputs, out), pull, _settle(inputs, aux), inputs


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """The value of a function and its derivative in a direction: ``J t``.

    Args:
        func: from tensors, nested in tuples, lists or dicts, to tensors.
        primals: a tuple of arguments.
        tangents: a tuple with a direction for each, of its shape.
        strict: raise where an output does not depend on an input, rather than give zeros.
        has_aux: ``func`` gives ``(output, anything)``.

    Returns:
        ``(output, tangent)``, or ``(output, tangent, anything)``; a tangent has the shape of its output.

    Raises:
        RuntimeError: the structures or shapes differ, or the dtype of an argument is not floating point or complex.

    Examples:
        >>> x, t = taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 0.0])
        >>> taeda.func.jvp(lambda x: x**2, (x,), (t,))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    out, push, aux = _linear(func, primals, has_aux, strict, "jvp")
    if not isinstance(tangents, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected tangents to be a tuple. E.g. it should be valid to call "
            f"f(*tangents). Got {type(tangents).__name__}"
        )
    tangent = push(*tangents)
    return (out, tangent, aux) if has_aux else (out, tangent)


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """The value of a function, and its derivative there as a linear function: :func:`jvp` for many directions.

    Args:
        func: from tensors, nested in tuples, lists or dicts, to tensors.
        *primals: the arguments at which it is differentiated.

    Returns:
        ``(output, jvp_fn)``. ``jvp_fn(*tangents)`` takes one tangent for each argument, of its structure and shapes,
            and gives the tangent of the output. ``func`` itself is not called again.

    Raises:
        RuntimeError: the dtype of an argument is not floating point or complex.

    Examples:
        >>> output, jvp_fn = taeda.func.linearize(lambda x: x**2, taeda.tensor([1.0, 2.0]))
        >>> jvp_fn(taeda.tensor([1.0, 0.0])), jvp_fn(taeda.tensor([0.0, 1.0]))
        (tensor([2., 0.]), tensor([0., 4.]))
    """
    out, push, _ = _linear(func, primals, False, False, "linearize")
    return out, push


@on_values
def _linear(func: Callable, primals: Any, has_aux: bool, strict: bool, name: str) -> tuple:
    """Output, the function from tangents to tangents, aux."""
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(
            f"{name}(f, primals, tangents): Expected primals to be a non-empty tuple. E.g. it should be valid to call "
            f"f(*primals). Got {type(primals).__name__}"
        )
    leaves, structure = tree_flatten(primals)
    inputs = _Inputs(leaves, name, dual=True)
    with recording() if _core.is_inference_mode_enabled() else nullcontext(), forward_mode():
        with inputs:
            out, aux = _split_aux(func(*tree_unflatten(inputs.given, structure)), has_aux, name)
        outputs, shape = _tensors(out, name, "the output of f")
        if strict and not all(o.requires_grad for o in outputs):
            raise RuntimeError(
                f"{name}(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        through = [o for o in outputs if o.is_floating_point() or o.is_complex()]
        still = [None if any(o is t for t in through) else o.detach().new_zeros(o.shape) for o in outputs]  # tangents 0
        weights = _Inputs([o.detach().new_zeros(o.shape) for o in through], name, dual=True)
        with passing_tangents():
            back = inputs.gradients(through, weights.given, True, True) if through else []
    weights.leaves.extend(inputs.leaves)
    weights.outer = inputs.outer

    @on_values
    def push(*tangents: Any) -> Any:
        flat, tangent_shape = tree_flatten(tangents)
        if tangent_shape != structure:
            raise RuntimeError(
                f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is "
                "a tuple of 3 tensors, tangents also must be."
            )
        for t, p in zip(flat, leaves, strict=True):
            if not isinstance(t, Tensor) or t.shape != p.shape:
                got = list(t.shape) if isinstance(t, Tensor) else type(t).__name__
                raise RuntimeError(
                    f"{name}: a tangent must have the shape of its primal: expected {list(p.shape)}, got {got}"
                )
        flat = [plain(t) for t in flat]
        create = _core.is_recorded() and weights.needs_graph(back, flat)
        with passing_tangents(), nullcontext() if create else unrecorded():
            made = iter(weights.gradients(back, flat, True, create) if through else ())
        return tree_unflatten([plain(next(made)) if zeros is None else zeros for zeros in still], shape)

    return _settle(inputs, out), push, _settle(inputs, aux)


# ---- matrices --------------------------------------------------------------------------------------------------------


def _basis(tensors: list) -> list[list[Tensor]]:
    """For each tensor, one row of the unit matrix per element of all of them, in the shape of that tensor."""
    total = sum(t.numel() for t in tensors)
    made, start = [], 0
    for t in tensors:
        n = t.numel()
        if t.is_meta:
            made.append(t.new_zeros((total, *t.shape)))
            continue
        rows = t.new_zeros((total, n)) if not t.is_cpu else _core.empty((total, n), t.dtype)
        _core.zero(rows)
        rows[start : start + n].diagonal().fill_(1)
        made.append(rows.reshape((total, *t.shape)))
        start += n
    return made


def jacrev(
    func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:  # fmt: skip
    """A function that gives the Jacobian of another one, row by row: by a vjp for each element of the output, batched.

    Faster than :func:`jacfwd` where there are fewer outputs than inputs.

    Args:
        func: from tensors to tensors, nested in tuples, lists or dicts.
        argnums: which arguments to differentiate with respect to.
        has_aux: ``func`` gives ``(output, anything)``, the result is ``(jacobian, anything)``.
        chunk_size: how many rows to compute at once; all if None.
        _preallocate_and_copy: accepted.

    Returns:
        A function. For each output, in the structure of the outputs, and each input, in that of the inputs, it gives a
            tensor of sizes output + input.

    Raises:
        ValueError: ``chunk_size`` is below 1.

    Examples:
        >>> jacobian = taeda.func.jacrev(lambda x: taeda.stack([x[0] * x[1], x[1] ** 2]))
        >>> jacobian(taeda.tensor([2.0, 3.0]))
        tensor([[3., 2.],
                [0., 6.]])
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: `chunk_size` should be greater than 0. (got {chunk_size})")

    @on_values
    @functools.wraps(func)
    def jacobian(*args):
        positions, chosen = _chosen(args, argnums, "jacrev")

        def of_chosen(values):
            return func(*_replace(args, positions, argnums, values))

        out, pull, aux, _inputs = _vjp(of_chosen, (chosen,), has_aux, "jacrev")
        outputs, shape = tree_flatten(out)
        basis = tree_unflatten(_basis(outputs), shape)
        rows = vmap(lambda c: pull(c)[0], chunk_size=chunk_size)(basis)
        columns, in_shape = tree_flatten(rows)
        parts = []
        start = 0
        for o in outputs:
            n = o.numel()
            part = [c[start : start + n].reshape((*o.shape, *c.shape[1:])) for c in columns]
            parts.append(tree_unflatten(part, in_shape))
            start += n
        made = tree_unflatten(parts, shape)
        return (made, aux) if has_aux else made

    return jacobian


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """A function that gives the Jacobian of another one, column by column: by a jvp for each element of the input,
    batched.

    Faster than :func:`jacrev` where there are fewer inputs than outputs.

    Args:
        func: from tensors to tensors, nested in tuples, lists or dicts.
        argnums: which arguments to differentiate with respect to.
        has_aux: ``func`` gives ``(output, anything)``, the result is ``(jacobian, anything)``.
        randomness: what random ops do, as in :func:`vmap`.

    Returns:
        A function. For each output, in the structure of the outputs, and each input, in that of the inputs, it gives a
            tensor
        of sizes output + input.

    Raises:
        RuntimeError: a differentiated argument is neither floating point nor complex.

    Examples:
        >>> taeda.func.jacfwd(lambda t: taeda.stack([t, t**2, t**3]))(taeda.tensor(2.0))
        tensor([ 1.,  4., 12.])
    """

    @on_values
    @functools.wraps(func)
    def jacobian(*args):
        positions, chosen = _chosen(args, argnums, "jacfwd")

        def of_chosen(values):
            return func(*_replace(args, positions, argnums, values))

        out, push, aux = _linear(of_chosen, (chosen,), has_aux, False, "jacfwd")
        inputs, in_shape = tree_flatten(chosen)
        outputs, shape = tree_flatten(out)
        if randomness == "different":  # each column has numbers of its own
            push = lambda t: jvp(of_chosen, (chosen,), (t,), has_aux=has_aux)[1]  # noqa: E731
        columns, _ = tree_flatten(
            vmap(lambda t: push(t), randomness=randomness)(tree_unflatten(_basis(inputs), in_shape))
        )
        parts = []
        for o, column in zip(outputs, columns, strict=True):
            row, start = [], 0
            for x in inputs:
                n = x.numel()
                row.append(column[start : start + n].movedim(0, -1).reshape((*o.shape, *x.shape)))
                start += n
            parts.append(tree_unflatten(row, in_shape))
        made = tree_unflatten(parts, shape)
        return (made, aux) if has_aux else made

    return jacobian


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that gives the second derivatives of another one: the Jacobian (forward) of its Jacobian (backward).

    Args:
        func: from tensors to tensors; a scalar function gives the usual Hessian.
        argnums: which arguments to differentiate with respect to.

    Returns:
        A function. For an argument of sizes ``s`` and a scalar output it gives a tensor of sizes ``s + s``; for a tuple
        ``argnums`` a tuple of tuples of them.

    Raises:
        RuntimeError: a differentiated argument is neither floating point nor complex.

    Examples:
        >>> taeda.func.hessian(lambda x: x[0] ** 2 * x[1])(taeda.tensor([1.0, 3.0]))
        tensor([[6., 2.],
                [2., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
