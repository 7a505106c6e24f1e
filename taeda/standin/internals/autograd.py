"""Names inside ``torch.autograd`` that packages use."""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda import Tensor, _core
from taeda._refuse import refuse
from taeda.autograd import Function
from taeda.autograd import functional as _functional

# ---- autograd itself: backward passes run on the calling thread, and gradients keep the layout that they have --------


class _Setting:
    """A setting without an effect here: a function, a context and a decorator, as PyTorch has it."""

    value: bool

    def __init__(self, mode: bool) -> None:
        self.mode, self.previous = mode, type(self).value
        type(self).value = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        type(self).value = self.previous

    def __call__(self, function: Any) -> Any:
        type(self).value = self.previous

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.mode):
                return function(*args, **kwargs)

        return within


class set_multithreading_enabled(_Setting):
    """Whether a backward pass may use threads of its own, one per device."""

    value = True


class enforce_grad_layout_policy(_Setting):
    """Whether the gradient of a leaf must have its strides."""

    value = True


def is_multithreading_enabled() -> bool:
    """The setting of :class:`set_multithreading_enabled`."""
    return set_multithreading_enabled.value


def _profiler_enabled() -> bool:
    from taeda.profiler import recording

    return recording.current is not None


def _disable_profiler() -> Any:
    if not _profiler_enabled():
        raise RuntimeError("Can't disable profiler when it's not running")
    refuse("torch.autograd._disable_profiler", "leave the profile's `with` block, or call its stop()")


def _is_checkpoint_valid() -> bool:
    """Whether the backward pass that runs now is one of all leaves, not of chosen inputs."""
    return not _core.task_is_partial()


def _current_level() -> int:
    """The level of dual numbers: 0 within ``dual_level``, -1 outside."""
    from taeda.autograd import forward_ad

    return -1 if forward_ad._level is None else 0


# ---- functions -------------------------------------------------------------------------------------------------------

FunctionMeta: Any = type(Function)


class InplaceFunction(Function):
    """The base of functions with an option ``inplace``, in old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class Type(Function):
    """``Type.apply(x, dtype)``: a conversion."""

    @staticmethod
    def forward(ctx: Any, i: Tensor, dest_type: Any) -> Any:
        ctx.given = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return grads[0].to(ctx.given), None


class Resize(Function):
    """``Resize.apply(x, sizes)``: the elements in another shape of as many."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Tensor:
        if tensor.numel() != taeda.Size(sizes).numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({taeda.Size(sizes).numel()} elements in total), but "
                f"the given tensor has a size of {'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements)"
            )
        ctx.given = tensor.shape
        return tensor.reshape(tuple(sizes)).clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return grads[0].reshape(ctx.given), None


def maybe_view(tensor: Tensor, size: Any, check_same_size: bool = True) -> Tensor:
    """``tensor`` in the shape ``size``."""
    return tensor if check_same_size and tuple(tensor.shape) == tuple(size) else tensor.contiguous().view(size)


def maybe_unexpand(tensor: Tensor, old_size: Any, check_same_size: bool = True) -> Tensor:
    """The gradient of an expansion: sums over what was expanded from ``old_size``."""
    if check_same_size and tuple(tensor.shape) == tuple(old_size):
        return tensor
    return tensor.sum_to_size(old_size)


# ---- functional ------------------------------------------------------------------------------------------------------


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """``inp`` as a tuple; with the names for an error: whether it was one, and a tuple of tensors alone."""
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    items, _ = _functional._tensors(inp if isinstance(inp, (tuple, Tensor)) else (inp,), str(arg_name), str(fn_name))
    return isinstance(inp, tuple), items


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """``res`` without the tuples around it that were put there: one flag, or one for each of several."""
    if isinstance(to_unpack, tuple):
        was_tuple, inner = to_unpack
        res = tuple(_tuple_postprocess(item, inner) for item in res)
        return res if was_tuple else res[0]
    return res if to_unpack else res[0]


def _grad_preprocess(inputs: tuple, create_graph: bool, need_graph: bool) -> tuple:
    """New tensors to differentiate with respect to; of the caller's graph with ``create_graph``."""
    return tuple(
        (t.clone() if t.is_sparse else t.view_as(t))
        if create_graph and t.requires_grad
        else t.detach().requires_grad_(need_graph)
        for t in inputs
    )


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Tensors, or tuples of them, outside the graph, unless it is wanted."""
    if isinstance(inputs[0], Tensor):
        return inputs if create_graph else tuple(t.detach() for t in inputs)
    return tuple(_grad_postprocess(items, create_graph) for items in inputs)


def _construct_standard_basis_for(tensors: tuple, tensor_numels: tuple) -> tuple:
    """The rows of an identity matrix over all elements, cut among the tensors."""
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError(f"Expected as many numels as tensors, and one at least; got {len(tensors)} tensors")
    whole = taeda.eye(sum(tensor_numels))
    cut = whole.split(list(tensor_numels), dim=1)
    return tuple(part.to(t.dtype).contiguous() for part, t in zip(cut, tensors, strict=True))


def _autograd_grad(
    outputs: tuple, inputs: Any, grad_outputs: Any = None, create_graph: bool = False, retain_graph: Any = None,
    is_grads_batched: bool = False,
) -> tuple:  # fmt: skip
    """Gradients of those outputs that have a graph; None where there are none."""
    grads = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    found = taeda.autograd.grad(
        [o for o, _ in pairs], inputs, [g for _, g in pairs], allow_unused=True, create_graph=create_graph,
        retain_graph=retain_graph, is_grads_batched=is_grads_batched,
    )  # fmt: skip
    return tuple(found)


def _vmap(func: Any, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Any:
    """``vmap``; with ``allow_none_pass_through`` results may be None."""
    if not allow_none_pass_through:
        return taeda.func.vmap(func, in_dims, out_dims)

    def mapped(*args: Any) -> Any:
        none: list[bool] = []

        def without_none(*inner: Any) -> tuple:
            result = func(*inner)
            single = not isinstance(result, (tuple, list))
            items = (result,) if single else tuple(result)
            none[:] = [single, *(item is None for item in items)]
            return tuple(item for item in items if item is not None)

        found = iter(taeda.func.vmap(without_none, in_dims, out_dims)(*args))
        whole = tuple(None if is_none else next(found) for is_none in none[1:])
        return whole[0] if none[0] else whole

    return mapped


def all_same_mode(modes: Any) -> bool:
    """Whether they are all equal."""
    return all(mode == modes[0] for mode in modes)
