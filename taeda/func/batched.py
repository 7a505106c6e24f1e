"""Batched tensors, and the mode under which ops and gradients see them.

A batched tensor shows the sizes of one example; its memory holds all of them, in a leading dimension. While the
function runs, a mode (see ``_core``) sees each op first and has it run on the whole (``taeda.func.batching``).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import DISPATCHING, OVERRIDING, Tensor, modes
from .._core.tensor import as_subclass
from ..autograd.forward_ad import hidden
from ..autograd.function import Function
from ..ops.conjugation import resolve_all
from ..ops.devices import at, number_of
from ..ops.joining import stack
from ..overrides import with_methods_of
from ..utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ._tree import broadcast


class Batched(Tensor):
    """One example's view of a batch. ``physical`` is the tensor with the batch dimension in front."""

    _without_memory = (
        "a tensor batched by vmap (this call has no rule for it: compute with other ops inside the function)"
    )
    _value_per_example = True

    @property
    def requires_grad(self) -> bool:
        return self.physical.requires_grad

    @property
    def is_leaf(self) -> bool:
        return self.physical.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self.physical.grad_fn

    @property
    def device(self) -> Any:
        return self.physical.device

    @property
    def is_cpu(self) -> bool:
        return self.physical.is_cpu

    @property
    def is_cuda(self) -> bool:
        return self.physical.is_cuda

    def get_device(self) -> int:
        return self.physical.get_device()

    @property
    def is_meta(self) -> bool:
        return self.physical.is_meta

    def _detached(self) -> Batched:
        return self._mode.wrap(self._mode.below(self.physical.detach))

    detach = _detached

    @property
    def data(self) -> Batched:
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("vmap: the data of a batched tensor cannot be replaced; use out-of-place ops")

    def _whole(self) -> Tensor:
        """All examples of all vmaps, as they are in memory."""
        return self.physical._whole() if isinstance(self.physical, Batched) else self.physical

    def _replace(self, other: Tensor) -> Tensor:
        """Make ``other`` what this tensor is."""
        if not isinstance(other, Batched) or other._mode is not self._mode:
            raise RuntimeError(
                "vmap: a tensor that is not batched cannot be changed in place to one that is; use out-of-place ops"
            )
        _core.set_data(other, self)
        other.physical = self.physical
        return other

    def _empty_like(self, dtype: Any) -> Batched:
        return self._mode.wrap(self._mode.below(_core.empty_like, self.physical, dtype))

    def _zero(self) -> None:
        self._mode.below(_core.zero, self.physical)

    def _spread(self, t: Tensor) -> Batched:
        """``t``, which was made for one example, for each of them."""

        def inside() -> Tensor:
            made = t.expand(self._mode.size, *t.shape).clone()
            return self.physical._spread(made) if isinstance(self.physical, Batched) else made

        return self._mode.wrap(self._mode.below(inside))

    def _of_class(self, cls: type) -> Batched:
        """This tensor as an object of ``cls``, a program's subclass of Tensor: it writes to the same memory."""
        return self._mode.wrap(self.physical, _batched_class(getattr(cls, "_alone", cls)))

    def _hidden(self) -> Batched:
        """With a node that reverse passes do not enter."""
        return self._mode.wrap(self._mode.below(hidden, self.physical))

    def __repr__(self) -> str:
        return f"BatchedTensor(size={self._mode.size}, value=\n{self._mode.below(repr, self.physical)}\n)"

    __str__ = __repr__

    def __deepcopy__(self, memo: dict) -> Batched:
        return self._mode.wrap(self._mode.below(self.physical.detach().clone))


def _batched_class(cls: type) -> type:
    """The class of the batched tensors that are objects of ``cls``; its ``_alone`` is ``cls``."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )
    if issubclass(Batched, cls):
        return Batched
    found = vars(cls).get("_batched")
    if found is None:
        found = cls._batched = with_methods_of(cls, Batched, _alone=cls)  # type: ignore[attr-defined]
    return found


def plain(t: Tensor) -> Tensor:
    """``t`` without the class that a program gave it: the same place in the graph."""
    if type(t) not in OVERRIDING or type(t) in DISPATCHING:
        return t
    if isinstance(t, Batched):
        return t._of_class(Tensor)
    return t if t._without_memory is not None else as_subclass(t, Tensor)


def _making(name: str) -> Callable:
    plain = getattr(Tensor, name)

    def make(self, *args, **kwargs):
        with at(number_of(self.device)):
            example = _core.empty((0,), self.dtype)
        return self._spread(plain(example, *args, **kwargs))

    make.__name__ = name
    return make


for _name in ("new_empty", "new_zeros", "new_ones", "new_full"):
    setattr(Batched, _name, _making(_name))


def _refusing(name: str) -> Callable:
    def refuse(self, *args, **kwargs):
        raise RuntimeError(
            f"vmap: it looks like you're calling .{name} on a Tensor inside a function that vmap batches: it has a "
            "value per example. Compute with tensors (taeda.where, comparisons, masks) instead, or keep it out of the "
            "function."
        )

    refuse.__name__ = name
    return refuse


for _name in (
    "tolist", "numpy", "data_ptr", "untyped_storage", "backward", "register_hook", "retain_grad", "requires_grad_",
):  # fmt: skip
    setattr(Batched, _name, _refusing(_name + "()"))
for _name in ("__array__", "__dlpack__", "__reduce_ex__", "__index__", "__int__", "__float__", "__complex__"):
    setattr(Batched, _name, _refusing(_name))


# ---- the mode --------------------------------------------------------------------------------------------------------


class VmapMode:
    """One ``vmap`` under way: the size of its batch, what batched tensors it made, and ``run``, which runs an op on
    such.

    A derivative inside the function may be taken with respect to what is one tensor for all examples. It stays one as
    long as nothing batched meets it: there it is repeated, so that the examples' gradients are apart (see
    :func:`_across`).
    """

    maps = True  # each example is computed as it would be alone

    def __init__(self, size: int, randomness: str, run: Callable) -> None:
        self.size = size
        self.randomness = randomness
        self.run = run
        self.made: weakref.WeakSet = weakref.WeakSet()
        self.shared: dict[Any, bool] = {}  # nodes, and whether they lead to such an input
        self.repeated: dict[tuple, tuple[Tensor, Batched]] = {}

    # ---- wrapping
    def wrap(self, physical: Tensor, cls: type = Batched) -> Batched:
        """A batched tensor over ``physical``, whose first dimension is this batch."""
        physical = resolve_all(plain(physical))
        # a tensor with the sizes of an example, which stands for it and has no values
        example = _core.strided_view(physical, physical.shape[1:], physical.stride()[1:])
        t = Tensor._make_subclass(cls, example)
        t.physical = physical
        t._mode = self
        self.made.add(t)
        return t

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is batched here."""
        return isinstance(x, Batched) and x._mode is self

    def below(self, function: Callable, *args: Any) -> Any:
        """``function(*args)`` with this mode off."""
        current = _core.mode_stack()
        with modes([m for m in current if m is not self]):
            return function(*args)

    def physical(self, x: Any) -> Any:
        """``x`` with the batch dimension in front, repeated (without copying) where it is not batched here."""
        return x.physical if self.holds(x) else x.expand(self.size, *x.shape)

    def apart(self, x: Any) -> Any:
        """``x``, repeated where its gradients are to be one for each example."""
        if not isinstance(x, Tensor) or is_batched(x, self) or not x.requires_grad or not _leads(x, self.shared):
            return x
        key = id(x), _core.is_grad_enabled(), _core.is_recorded()  # under no_grad the repeated tensor has no graph
        if key not in self.repeated:
            self.repeated[key] = x, self.wrap(self.below(lambda: x.expand(self.size, *x.shape)))
        return self.repeated[key][1]

    def slices(self, x: Any) -> list:
        """One value per example."""
        if self.holds(x):
            return list(x.physical.unbind(0))
        leaves, structure = tree_flatten(x)
        if any(self.holds(leaf) for leaf in leaves):
            columns = [self.slices(leaf) for leaf in leaves]
            return [tree_unflatten(row, structure) for row in zip(*columns, strict=True)]
        return [x] * self.size

    def end(self) -> None:
        """Make the tensors that are left of this mode unusable: they have no meaning after it ended."""
        self.repeated.clear()
        for t in list(self.made):
            _core.set_data(t, _core.empty((0,), t.dtype))

    # ---- callbacks of the core
    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        return self.run(self, op, args, kwargs)

    def item(self, t: Tensor) -> Any:
        if isinstance(t, Batched):
            raise RuntimeError(
                "vmap: It looks like you're calling .item() on a Tensor (or using it in `if`, or as a number). We "
                "don't support vmap over calling .item() on a Tensor, please try to rewrite what you're doing with "
                "other operations, such as taeda.where."
            )
        with modes([]):
            return t.item()

    def apply_function(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """A custom Function: by its own ``vmap``, else example by example."""
        if not any(self.holds(x) for x in tree_leaves((args, kwargs))):
            return self.below(functools.partial(function.apply, *args, **kwargs))
        if self.shared:
            args, kwargs = tree_map(self.apart, (args, kwargs))
        if function.vmap is not Function.vmap:
            return self._by_own_rule(function, args, kwargs)
        return self.below(self.loop, lambda given, named: function.apply(*given, **named), (args, kwargs))

    def _by_own_rule(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Call the Function's ``vmap``, with the batch dimension of each argument, in the arguments' structure."""
        if function.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an "
                f"overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden one"
            )
        in_dims = tree_map(lambda x: 0 if self.holds(x) else None, args)
        plain, named = tree_map(lambda x: x.physical if self.holds(x) else x, (args, kwargs))
        info = VmapInfo(self.size, self.randomness)
        returned = self.below(lambda: function.vmap(info, in_dims, *plain, **named))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise RuntimeError(
                f"Expected the vmap staticmethod of {function.__name__} to return a tuple of two elements, (output, "
                f"out_dims), but got a {type(returned).__name__}"
            )
        out, dims = returned
        leaves, structure = tree_flatten(out)
        given = {id(x.physical): x for x in tree_leaves((args, kwargs)) if self.holds(x)}
        wrapped = [
            x
            if dim is None or not isinstance(x, Tensor)
            else given[id(x)]
            if id(x) in given and dim == 0
            else self.wrap(self.below(x.movedim, dim, 0))
            for x, dim in zip(leaves, broadcast(dims, out, f"{function.__name__}.vmap: out_dims"), strict=True)
        ]
        return tree_unflatten(wrapped, structure)

    def custom_op(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """An op of a program's own: by the rule that it registered, else example by example."""
        if not any(self.holds(x) for x in tree_leaves((args, kwargs))):
            return NotImplemented
        if op._mutates and op.vmap is Function.vmap:
            raise RuntimeError(
                f"vmap: {op._qualname}() writes to its arguments and has no rule for a batch; give it one with "
                f"register_vmap"
            )
        return self.apply_function(op, *op._without_defaults(args, kwargs))

    def loop(self, function: Callable, args: tuple) -> Any:
        """``function`` on each example, and the results stacked."""
        columns = [self.slices(x) for x in args]
        results = [function(*row) for row in zip(*columns, strict=True)]
        if not results:
            raise RuntimeError(f"vmap: no rule for {getattr(function, '__name__', function)} over a batch of size 0")
        leaves = [tree_leaves(r) for r in results]
        structure = tree_flatten(results[0])[1]
        return tree_unflatten([self.join(list(column)) for column in zip(*leaves, strict=True)], structure)

    def join(self, column: list) -> Any:
        if isinstance(column[0], Tensor):
            if any(t.shape != column[0].shape for t in column):
                raise RuntimeError(
                    "vmap: the result has a different size for each example: "
                    + ", ".join(str(list(t.shape)) for t in column[:8])
                    + ". Use ops whose sizes do not depend on the data."
                )
            return self.wrap(stack(column, 0))
        if any(x is not column[0] and x != column[0] for x in column):
            raise RuntimeError("vmap: a result that is not a tensor differs between examples")
        return column[0]

    def run_backward(
        self, tensors: list, grads: list, keep: bool, create: bool, inputs: list | None, accumulate: bool
    ) -> list | None:
        if accumulate:
            if any(isinstance(t, Batched) for t in [*tensors, *grads]):
                raise RuntimeError(
                    "backward() called inside vmap: gradients of single examples cannot be added into .grad. Use "
                    "taeda.func.grad inside the function, or call backward() outside."
                )
            with modes([]):
                return _core.differentiate(tensors, grads, keep, create, inputs, True)
        return differentiate(tensors, grads, keep, create, inputs or [])


class VmapInfo:
    """Arguments of a Function's ``vmap``: the size of the batch and the treatment of randomness."""

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


# ---- gradients under modes -------------------------------------------------------------------------------------------


def vmap_modes() -> list[VmapMode]:
    """The vmaps under way, outermost first."""
    return [m for m in _core.mode_stack() if isinstance(m, VmapMode)]


def is_batched(t: Any, mode: VmapMode) -> bool:
    """Whether ``t`` is batched by ``mode``, at any depth."""
    while isinstance(t, Batched):
        if t._mode is mode:
            return True
        t = t.physical
    return False


def renewed(t: Any) -> Any:
    """``t`` as it was, if its vmap has ended."""
    return t._mode.wrap(renewed(t.physical), type(t)) if isinstance(t, Batched) else t


def lower(t: Tensor, mode: VmapMode) -> Tensor:
    """``t`` with the batch of ``mode`` as an ordinary first dimension, repeated where ``t`` is not batched by it."""
    if isinstance(t, Batched):
        if t._mode is mode:
            return t.physical
        if is_batched(t, mode):
            inner = t._mode.below(lower, t.physical, mode)
            return t._mode.wrap(t._mode.below(inner.movedim, 1, 0))
    return t.expand(mode.size, *t.shape)


def raise_(t: Tensor, mode: VmapMode, order: list) -> Tensor:
    """The inverse of :func:`lower`: the first dimension becomes the batch of ``mode``, inside modes later in
    ``order``."""
    if isinstance(t, Batched) and order.index(t._mode) > order.index(mode):
        inner = t._mode.below(lambda: t.physical.movedim(1, 0))
        return t._mode.wrap(t._mode.below(raise_, inner, mode, order))
    return mode.wrap(t)


def differentiate(tensors: list, grads: list, keep: bool, create: bool, inputs: list) -> list:
    """Gradients with respect to ``inputs`` under vmap.

    A mode by which the outputs are batched is older than the graph: it lies below it, and is differentiated there.
    Modes by which only ``grads`` are batched are younger, and stay on while the backward pass runs.
    """
    order = _core.mode_stack()
    older = [m for m in order if isinstance(m, VmapMode) and any(is_batched(t, m) for t in tensors)]
    if not older:
        reached = [
            x for x in inputs if not isinstance(x, Batched)
        ]  # outputs that are not batched do not depend on the others
        made = iter(_core.differentiate(tensors, grads, keep, create, reached, False))
        return [None if isinstance(x, Batched) else next(made) for x in inputs]
    mode = older[-1]
    if not all(is_batched(x, mode) for x in inputs):
        return _across(mode, tensors, grads, keep, create, inputs)
    grads = [mode.apart(as_one(g, t)) for g, t in zip(grads, tensors, strict=True)]
    tensors, grads, inputs = ([lower(t, mode) for t in group] for group in (tensors, grads, inputs))
    results = mode.below(differentiate, tensors, grads, keep, create, inputs)
    return [None if g is None else raise_(g, mode, order) for g in results]


def _across(mode: VmapMode, tensors: list, grads: list, keep: bool, create: bool, inputs: list) -> list:
    """:func:`differentiate` with respect to ``inputs`` of which some are one tensor for all examples of ``mode``.

    First as far as what depends on these met something batched and was repeated: the gradients there are batched. They
    are the cotangents of what was repeated, whose graph knows nothing of the batch.
    """
    apart = [is_batched(x, mode) for x in inputs]
    if not mode.shared:
        raise RuntimeError(
            f"vmap: autograd.grad of a batched output with respect to inputs[{apart.index(False)}], which is not "
            f"batched: its gradient would mix the examples. Use taeda.func.grad, vjp or jacrev inside the function."
        )
    known = {x.grad_fn: True for x, own in zip(inputs, apart, strict=True) if not own}
    repeated = [pair for pair in mode.repeated.values() if pair[1].requires_grad and _leads(pair[0], known)]
    pairs = list(zip(tensors, grads, strict=True))
    first = [x for x, own in zip(inputs, apart, strict=True) if own] + [x for _, x in repeated]
    made = iter(_of([p for p in pairs if is_batched(p[0], mode)], keep, create, first))
    results = [next(made) if own else None for own in apart]
    pairs = [p for p in pairs if not is_batched(p[0], mode)]
    pairs += [(x, g) for (x, _), g in zip(repeated, made, strict=True) if g is not None]
    made = iter(_of(pairs, keep, create, [x for x, own in zip(inputs, apart, strict=True) if not own]))
    return [g if own else next(made) for g, own in zip(results, apart, strict=True)]


def _leads(t: Tensor, known: dict) -> bool:
    """Whether the graph of ``t`` leads to a node of which ``known`` says so; ``known`` grows."""
    todo, seen = [t.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen or known.get(node) is False:
            continue
        if node in known:
            known[t.grad_fn] = True
            return True
        seen.add(node)
        todo.extend(n for n, _ in node.next_functions)
    known.update(dict.fromkeys(seen, False))
    return False


def _of(pairs: list, keep: bool, create: bool, inputs: list) -> list:
    """:func:`differentiate` of outputs with their cotangents, if there are any."""
    if not pairs or not inputs:
        return [None] * len(inputs)
    return differentiate([t for t, _ in pairs], [g for _, g in pairs], keep, create, inputs)


def as_one(g: Tensor | None, t: Tensor) -> Tensor:
    """``g``, or ones where there is no gradient of ``t`` yet."""
    if g is None:
        return t.new_ones(t.shape) if not t.is_cpu else _core.empty(t.shape, t.dtype).fill_(1)
    return g
