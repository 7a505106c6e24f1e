"""``Function``: a custom differentiable operation, with a forward and a backward in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import FunctionNode, Tensor
from .._warn import warn_caller
from ..ops.copies import convert
from ..ops.parts import OfParts
from ..ops.views import sum_to_size, zeros


class FunctionCtx(FunctionNode):
    """The context that forward hands to backward. It is also the graph's node that runs backward: ``output.grad_fn`` is
    this object.

    It carries saved tensors and all attributes that the author sets.
    """

    _function: type[Function]
    # fields of FunctionNode, which describes them
    needs_input_grad: tuple[bool, ...]
    materialize_grads: bool
    saved_for_forward: tuple | None
    _to_save: tuple
    _dirty: tuple
    _non_differentiable: tuple
    _saved: list | None
    _released: bool
    _output_metas: list | None
    _whole_outputs: list | None
    _in_jvp: bool

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward; their versions are checked when they are read. Call at most once."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``jvp``."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that forward wrote in place; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (default) or None for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to ``save_for_backward``; in ``jvp`` those given to ``save_for_forward``."""
        if self._in_jvp:
            return self.saved_for_forward or ()
        if self._saved is None:
            if self._released:
                raise RuntimeError(
                    "Trying to backward through the graph a second time (or directly access saved tensors after they "
                    "have already been freed). Saved intermediate values of the graph are freed when you call "
                    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
                    "graph a second time or if you need to access saved tensors after calling backward."
                )
            return self._to_save
        return tuple(
            None if s is None else _core.unsave(s, self) if nr is None else _core.unsave_output(s, self, nr)
            for s, nr in self._saved
        )

    saved_variables = saved_tensors

    def saved_items(self) -> list[tuple[str, Tensor]]:
        """Pairs (name, tensor) of the tensors that this node keeps for the backward pass, for inspection."""
        kept = () if self._released else self.saved_tensors
        return [(f"saved {i}", t) for i, t in enumerate(kept) if t is not None]

    def _keep_saved(self, outputs: list) -> None:
        """Move what forward saved to the core's saved tensors (versions, hooks); those among ``outputs`` without their
        node."""
        if not self._to_save:
            return
        saved = []
        for t in self._to_save:
            at = None if t is None else next((i for i, out in enumerate(outputs) if t is out), None)
            saved.append((None if t is None else _core.save(t, at is not None), at))
        self._saved = saved
        self._to_save = ()

    def _release_saved(self) -> None:
        if self._saved is not None:
            self._saved = None
            self._released = True

    def _run_backward(self, grads: list) -> list:
        """Run ``backward`` and match its gradients with the tensor inputs, or the parts that they consist of."""
        if self.materialize_grads:
            metas = _core.node_output_metas(self) if self._output_metas is None else self._output_metas
            grads = [zeros(*metas[i]) if g is None and metas[i] is not None else g for i, g in enumerate(grads)]
        if self._whole_outputs is not None:
            grads = _regrouped(self._whole_outputs, grads, _whole_gradient)
        made = self._function._backward_function()(self, *grads)
        made = made if isinstance(made, tuple) else tuple(made) if isinstance(made, list) else (made,)
        count = len(self.needs_input_grad)
        if len(made) < count or any(g is not None for g in made[count:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(made)})"
            )
        tensors = {p for p, *_ in self._inputs}
        for p in range(count):
            if made[p] is not None and p not in tensors:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {p + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        checked = [self._checked(i, made[p], meta, device) for i, (p, meta, _, device) in enumerate(self._inputs)]
        if self._whole_outputs is None:
            return checked
        pairs = [(g, form) for g, (_, _, form, _) in zip(checked, self._inputs, strict=True)]
        return [part for g, form in pairs for part in _part_gradients(g, form)]

    def _checked(self, i: int, g: Any, meta: tuple, device: Any) -> Any:
        """The gradient, summed to the input's sizes if it broadcasts to them, else an error."""
        if g is None:
            return None
        if not isinstance(g, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__}) as gradient {i} of {self.name()}")
        if meta is None:  # of a tensor of parts, which checks it
            return g
        if g.shape != meta[0]:
            try:
                g = sum_to_size(g, meta[0])
            except RuntimeError:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {i} - got {list(g.shape)} but "
                    f"expected shape compatible with {list(meta[0])}"
                ) from None
        if g.device != device:
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {i} - expected device {device} but got "
                f"{g.device}"
            )
        if g.is_complex() and not meta[1].is_complex:
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {i} - got dtype {g.dtype} for a real "
                f"input of {meta[1]}; take its real part"
            )
        return g if g.dtype == meta[1] else convert(g, meta[1])


class Function:
    """A differentiable operation of your own, by static methods ``forward`` and ``backward``; ``apply`` runs it.

    ``forward(ctx, *args)`` computes, and keeps in ``ctx`` what ``backward`` needs (tensors by
    ``ctx.save_for_backward``); or ``forward(*args)`` computes, and ``setup_context(ctx, inputs, output)`` beside it
    keeps. ``backward(ctx, *grads)`` gets the gradient of the loss by each output, and gives that by each argument of
    ``forward``, or None. Written with tensor operations, it can be differentiated again. ``jvp(ctx, *tangents)`` serves
    forward mode, ``vmap(info, in_dims, *args)`` batching; ``generate_vmap_rule = True`` lets :func:`taeda.vmap` find
    the latter.

    Raises:
        NotImplementedError: in ``apply`` or ``backward``, a method that is needed is missing.
        RuntimeError: in ``backward``, it gives another number of gradients or other shapes.

    Examples:
        >>> class Exp(taeda.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (y,) = ctx.saved_tensors
        ...         return grad * y
        >>> x = taeda.tensor([0.0, 1.0], requires_grad=True)
        >>> y = Exp.apply(x)
        >>> y.sum().backward()
        >>> x.grad
        tensor([1.0000, 2.7183])

        A rounding that passes gradients on, as for networks with few bits:

        >>> class Round(taeda.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x.round()
        ...
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad
        >>> x = taeda.tensor([0.4, 1.7], requires_grad=True)
        >>> (Round.apply(x) ** 2).sum().backward()
        >>> x.grad  # 2 round(x)
        tensor([0., 4.])
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The result: a tensor, or a tuple with tensors. Its first argument is ``ctx``, unless there is a
        ``setup_context``. Gradients are not recorded within it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> None:
        """Keeps in ``ctx`` what ``backward`` needs of the arguments and of the result of ``forward``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients by the arguments of ``forward``, one each, or None.

        Args:
            ctx: what ``forward`` or ``setup_context`` kept.
            grad_outputs: a gradient of the shape of each result. Where there is none it is zeros, or None after
                ``ctx.set_materialize_grads(False)``.

        Returns:
            A tensor or None, or a tuple of them.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results, from a tangent (or None) of each argument of ``forward``."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> tuple:
        """The results over a batch, and where each has it: ``(output, out_dims)``.

        Args:
            info: has ``batch_size`` and ``randomness``.
            in_dims: for each argument, in its structure, which dimension counts the examples; None: it has no batch.
            args: the arguments of ``forward``, with the batch.

        Returns:
            A pair.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    if TYPE_CHECKING:  # an override that names its arguments fits this form alone

        @staticmethod
        def backward(*args: Any, **kwargs: Any) -> Any: ...

        @staticmethod
        def jvp(*args: Any, **kwargs: Any) -> Any: ...

        @staticmethod
        def vmap(*args: Any, **kwargs: Any) -> Any: ...

    @classmethod
    def _backward_function(cls) -> Callable:
        made = cls.backward if cls.backward is not Function.backward else cls.vjp
        if made is not cls.vjp and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        if cls.jvp is not Function.jvp and (made is Function.vjp or _core.passes_tangents()):
            return _backward_of_jvp
        return made

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and, where an input requires grad, record a node that runs ``backward``.

        Arguments given by name count as if they were given by position, and ``setup_context`` also gets defaults.
        """
        apart = cls.setup_context is not Function.setup_context
        if kwargs or (apart and getattr(cls.forward, "__defaults__", None)):
            args, kwargs = _by_position(cls.forward, apart, args, kwargs)
        mode = _core.current_mode()
        if mode is not None and hasattr(mode, "apply_function"):
            return mode.apply_function(cls, args, kwargs)
        kind: Any = _context_class(cls)  # type: ignore[arg-type]  # mypy takes a class for an unhashable thing
        if not kwargs:
            made = _core.run_function(kind, args, cls.forward, cls.setup_context if apart else None, _own_outputs)
            if made is not NotImplemented:
                return made
        ctx: FunctionCtx = kind()
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        record = _core.is_recorded() and True in ctx.needs_input_grad
        versions = [a._version if isinstance(a, Tensor) and not a.is_inference() else 0 for a in args]
        previous = _core.record_nothing()
        try:
            if apart:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            _core.restore_grad_mode(previous)
        single = not isinstance(output, tuple)
        outputs = _own_outputs(ctx, args, [output] if single else list(output), versions, record)
        return outputs[0] if single else tuple(outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: a Function is not called, it is applied: make forward and backward static methods "
            f"and use {type(self).__name__}.apply(...)"
        )


class _Transposed(Function):
    """The linear map from gradients of outputs to gradients of inputs of a function that is known by its ``jvp`` alone.

    Forward mode differentiates it and calls the ``jvp``; its own values are zeros that are never read. ``saved``, the
    tensors that the ``jvp`` reads, are arguments so that the tangents are known to depend on them.
    """

    @staticmethod
    def forward(ctx: Any, node: FunctionCtx, saved: int, *tensors: Tensor | None) -> tuple:
        ctx.node, ctx.saved = node, saved
        return tuple(zeros(*meta) for _, meta, *_ in node._inputs)

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> tuple:
        node = ctx.node
        given: list = [None] * len(node.needs_input_grad)
        for (position, *_), tangent in zip(node._inputs, tangents, strict=True):
            given[position] = tangent
        kept = dict(vars(node))
        node._in_jvp = True
        try:
            made = node._function.jvp(node, *given)
        finally:
            vars(node).update(kept)  # jvp may delete what it has read, and runs once per direction
            node._in_jvp = False
        return None, None, *(None,) * ctx.saved, *(made if isinstance(made, tuple) else (made,))


def _backward_of_jvp(ctx: Any, *grads: Any) -> tuple:
    """The ``backward`` of forward mode, and of a Function that has only ``jvp``, which is an error in reverse mode."""
    if not (_core.is_recorded() and any(g is not None and g.requires_grad for g in grads)):
        return Function.backward(ctx, *grads)
    saved = ctx.saved_tensors if ctx.saved_for_forward is None else ctx.saved_for_forward
    given = list(_Transposed.apply(ctx, len(saved), *saved, *grads))
    positions = {p for p, *_ in ctx._inputs}
    return tuple(given.pop(0) if p in positions else None for p in range(len(ctx.needs_input_grad)))


def _by_position(forward: Callable, apart: bool, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of ``forward`` by position, as ``backward`` counts them; keyword-only arguments stay.

    Args:
        apart: ``forward`` gets no ``ctx``; missing arguments get their defaults.
    """
    bound = inspect.signature(forward).bind(*(() if apart else (None,)), *args, **kwargs)
    if apart or bound.kwargs:
        bound.apply_defaults()
    return bound.args[not apart :], bound.kwargs


def _check_dirty(t: Tensor, count: int) -> None:
    if t.is_leaf and t.requires_grad:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if t._base is not None and count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
            "the input is not a view (using .clone() for example) or make your Function only return one Tensor "
            "(potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a "
            "second one that does the other operations)."
        )


@functools.cache
def _context_class(cls: Any) -> type:
    return type(cls.__name__ + "Backward", (FunctionCtx,), {"_function": cls, "__module__": cls.__module__})


def _own_outputs(ctx: FunctionCtx, args: tuple, outputs: list, versions: list, record: bool) -> list:
    """The caller's results for the outputs of ``forward``. If an input requires grad, ``ctx`` becomes their node."""
    inputs = [a for a in args if isinstance(a, Tensor)]
    marked = [t for t in ctx._dirty if any(t is a for a in inputs)]
    if len(marked) < len(ctx._dirty):
        warn_caller("mark_dirty: only inputs that forward changed in place need be marked")
    dirty, constant = {id(t) for t in marked}, {id(p) for t in ctx._non_differentiable for p in _parts(t)}
    for t in marked:
        if not any(t is out for out in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        if not t.is_inference() and t._version == versions[next(i for i, a in enumerate(args) if a is t)]:
            _core.bump(t)
    if not record:
        return outputs
    whole = None
    if any(isinstance(x, OfParts) for x in (*inputs, *outputs)):
        whole, outputs = outputs, [p for out in outputs for p in _parts(out)]
        inputs = [p for a in inputs for p in _parts(a)]
    made, owned, positions, views = [], [], [], []
    for out in outputs:
        given, mine, position = out, None, -1
        if isinstance(out, Tensor) and id(out) not in constant and (out.is_floating_point() or out.is_complex()):
            if id(out) in dirty:
                position = next(i for i, a in enumerate(inputs) if a is out)
                _check_dirty(out, len(outputs))
            elif out.requires_grad or any(out is a for a in inputs):  # passed through: the caller gets its own object
                given = out.view_as(out)
                views.append(given)
            elif out._base is not None:
                views.append(out)
            mine = given
        elif isinstance(out, Tensor) and any(out is a for a in inputs):
            given = out.detach()
        made.append(given)
        owned.append(mine)
        positions.append(position)
    ctx._keep_saved(owned)
    ctx._inputs = [
        (i, None, a._detached(), None) if isinstance(a, OfParts) else (i, (a.shape, a.dtype), None, a.device)
        for i, a in enumerate(args)
        if isinstance(a, Tensor)
    ]
    _core.record_custom(ctx, type(ctx).__name__, inputs, owned, positions)
    ctx._output_metas = [
        (out.shape, out.dtype) if meta is None and isinstance(out, Tensor) else meta
        for out, meta in zip(made, _core.node_output_metas(ctx), strict=True)
    ]
    for t in views:
        _core.mark_view_of_function(t)
    if whole is None:
        return made
    ctx._whole_outputs = [out._detached() if isinstance(out, OfParts) else out for out in whole]
    return _regrouped(whole, made, lambda out, parts: out._of_graph_parts(parts))


# ---- tensors of parts (sparse and nested ones), which the graph knows by these ---------------------------------------


def _parts(x: Any) -> tuple:
    return x._graph_parts() if isinstance(x, OfParts) else (x,)


def _regrouped(whole: list, parts: list, make: Callable) -> list:
    """``parts`` of the tensors ``whole`` as the tensors that ``make`` makes of them; others as they are."""
    rest = iter(parts)
    return [make(x, [next(rest) for _ in x._graph_parts()]) if isinstance(x, OfParts) else next(rest) for x in whole]


def _whole_gradient(form: OfParts, grads: list) -> Tensor | None:
    return None if all(g is None for g in grads) else form._whole_gradient(grads)


def _part_gradients(g: Tensor | None, form: OfParts | None) -> Sequence:
    """The gradients of the parts of an input like ``form``; of one without parts the gradient itself."""
    if form is None:
        return (g,)
    return [None] * len(form._graph_parts()) if g is None else form._part_gradients(g)


def once_differentiable(function: Callable) -> Callable:
    """Decorator of a ``backward`` that cannot itself be differentiated: differentiating its result raises an error.

    For one that computes in NumPy, say, which is not recorded.

    Args:
        function: the method ``backward``.

    Returns:
        The method.

    Raises:
        RuntimeError: in a second derivative.

    Examples:
        >>> class Cube(taeda.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.slope = 3 * x.detach().numpy() ** 2
        ...         return x**3
        ...
        ...     @staticmethod
        ...     @taeda.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return grad * taeda.from_numpy(ctx.slope)
        >>> x = taeda.tensor([2.0], requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor([12.])
    """

    @functools.wraps(function)
    def wrapped(ctx, *args):
        with_grad = _core.is_recorded() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        previous = _core.record_nothing()
        try:
            outputs = function(ctx, *args)
        finally:
            _core.restore_grad_mode(previous)
        if not with_grad:
            return outputs
        many = outputs if isinstance(outputs, tuple) else (outputs,)
        marked = tuple(_poison(o, args) if isinstance(o, Tensor) else o for o in many)
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapped


def _poison(out: Tensor, args: tuple) -> Tensor:
    """``out`` with a node that raises when differentiated."""

    def fail(grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    out = out.detach()
    _core.record_custom(fail, "Error", [a for a in args if isinstance(a, Tensor)], [out])
    return out
