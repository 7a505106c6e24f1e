"""``Function``: one's own differentiable operation, with a forward and a backward in Python."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Node, Tensor


class Context:
    """What forward hands to backward: saved tensors and whatever attributes the author sets."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True
        self._to_save: tuple = ()
        self._dirty: tuple = ()
        self._non_differentiable: tuple = ()
        self._saved: list | None = None
        self._node: Callable[[], Node | None] = lambda: None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward; their versions are checked when they are read. Call at most once."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(t).__name__}")
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
        """The tensors given to ``save_for_backward``."""
        if self._saved is None:
            if self._released:
                raise RuntimeError(
                    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                    "already been freed). Specify retain_graph=True if you need to backward through the graph a second time."
                )
            return ()
        return tuple(None if s is None else s() for s in self._saved)

    saved_variables = saved_tensors
    _released = False

    def release(self) -> None:
        if self._saved is not None:
            self._saved = None
            self._released = True

    def name(self) -> str:
        return type(self)._function.__name__ + "Backward" if hasattr(type(self), "_function") else "Backward"

    @property
    def next_functions(self) -> tuple:
        node = self._node()
        return node.next_functions if node is not None else ()

    @property
    def metadata(self) -> dict:
        node = self._node()
        return node.metadata if node is not None else {}


class _Backward:
    """What the node calls: runs ``backward`` and matches its gradients with the tensor inputs."""

    def __init__(self, function: type[Function], ctx: Context, positions: list[int], count: int, metas: list):
        self.function, self.ctx, self.positions, self.count, self.metas = function, ctx, positions, count, metas

    def release(self) -> None:
        self.ctx.release()

    def __call__(self, grads: list) -> list:
        ctx = self.ctx
        if ctx.materialize_grads:
            metas = self.output_metas
            grads = [
                _core.HELPERS["zeros"](*metas[i]) if g is None and metas[i] is not None else g for i, g in enumerate(grads)
            ]
        made = self.function._backward_function()(ctx, *grads)
        made = made if isinstance(made, tuple) else tuple(made) if isinstance(made, list) else (made,)
        name = self.function.__name__ + "Backward"
        if len(made) > self.count and any(g is not None for g in made[self.count :]) or len(made) < self.count:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {self.count}, got {len(made)})"
            )
        return [self._checked(name, i, made[p], self.metas[i]) for i, p in enumerate(self.positions)]

    @staticmethod
    def _checked(name: str, i: int, g: Any, meta: tuple) -> Any:
        """The gradient, summed to the input's sizes if it broadcasts to them, else an error."""
        if g is None:
            return None
        if not isinstance(g, Tensor):
            raise TypeError(f"expected Variable or None (got {type(g).__name__}) as gradient {i} of {name}")
        if g.shape != meta[0]:
            try:
                g = _core.HELPERS["sum_to_size"](g, meta[0])
            except RuntimeError:
                raise RuntimeError(
                    f"Function {name} returned an invalid gradient at index {i} - got {list(g.shape)} but expected shape "
                    f"compatible with {list(meta[0])}"
                ) from None
        return g if g.dtype == meta[1] else _core.HELPERS["grad_cast"](g, meta[1])


class Function:
    """A differentiable operation defined by static methods ``forward`` and ``backward``; run it with ``apply``.

    ``forward(ctx, *args)`` computes; or ``forward(*args)`` with ``setup_context(ctx, inputs, output)`` beside it.
    ``backward(ctx, *grads)`` gives one gradient (or None) per argument of forward.
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple, output: Any) -> None:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @classmethod
    def _backward_function(cls) -> Callable:
        if cls.backward is not Function.backward:
            return cls.backward
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and, where an input requires grad, record a node that runs ``backward``."""
        ctx = _context_class(cls)()
        tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        record = _core.is_grad_enabled() and any(ctx.needs_input_grad)
        inputs = [args[i] for i in tensors]
        versions = {id(t): t._version for t in inputs}
        previous = _core.set_grad_enabled(False)
        try:
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            _core.set_grad_enabled(previous)
        single = not isinstance(output, tuple)
        outputs = [output] if single else list(output)
        if not record:
            ctx._saved = [None if t is None else (lambda t=t: t) for t in ctx._to_save]
            return output
        outputs = _own_outputs(cls, ctx, args, tensors, inputs, outputs, versions)
        return outputs[0] if single else tuple(outputs)


@functools.cache
def _context_class(cls: type) -> type:
    return type(cls.__name__ + "Backward", (Context,), {"_function": cls})


def _own_outputs(cls, ctx, args, tensors, inputs, outputs, versions):
    """Record one node for the outputs of ``forward``."""
    dirty = {id(t) for t in ctx._dirty}
    constant = {id(t) for t in ctx._non_differentiable}
    node = _core.new_node()
    made, owned, written = [], [], []
    for out in outputs:
        if not isinstance(out, Tensor) or id(out) in constant or not (out.is_floating_point() or out.is_complex()):
            made.append(out)
            owned.append(None)
            written.append(False)
            continue
        if id(out) in dirty:
            if out.is_leaf and out.requires_grad:
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
            if out._version == versions.get(id(out), -1):
                _core.bump(out)
            original = out
        elif any(out is t for t in inputs) or out._base is not None or out.grad_fn is not None:
            # an input passed through, or a view: the caller gets an object of its own
            original = out.detach()
        else:
            original = out
        made.append(original)
        owned.append(original)
        written.append(id(out) in dirty)
    metas = [(t.shape, t.dtype) for t in inputs]
    saved = []
    for t in ctx._to_save:
        at = next((i for i, out in enumerate(outputs) if t is not None and out is t), None)
        if t is None:
            saved.append(None)
        elif at is not None and owned[at] is not None:
            saved.append(_SavedOutput(t, node, at))
        else:
            saved.append(_SavedInput(t, node))
    ctx._saved = saved
    ctx._node = weakref.ref(node)
    backward = _Backward(cls, ctx, tensors, len(args), metas)
    label = cls.__name__ + "Backward"
    _core.record_custom_into(node, backward, label, inputs, owned, written)
    backward.output_metas = _core.node_output_metas(node)
    return made


class _SavedInput:
    """A tensor saved by a Function, through the core's saved-tensor machinery (versions, hooks)."""

    def __init__(self, t: Tensor, node: Node):
        self.saved = _core.save(t, False)
        self.node = weakref.ref(node)  # the node owns the context that owns this

    def __call__(self) -> Tensor:
        return _core.unsave(self.saved, self.node())


class _SavedOutput:
    """An output saved by its own Function: kept without its graph, which is put back on reading."""

    def __init__(self, t: Tensor, node: Node, nr: int):
        self.saved = _core.save(t, True)
        self.node = weakref.ref(node)
        self.nr = nr

    def __call__(self) -> Tensor:
        return _core.unsave_output(self.saved, self.node(), self.nr)


def once_differentiable(function: Callable) -> Callable:
    """Decorator of a ``backward`` that cannot itself be differentiated: differentiating its result raises."""

    @functools.wraps(function)
    def wrapped(ctx, *args):
        with_grad = _core.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        previous = _core.set_grad_enabled(False)
        try:
            outputs = function(ctx, *args)
        finally:
            _core.set_grad_enabled(previous)
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
