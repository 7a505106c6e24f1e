"""Device meta: tensors that have sizes, strides and a dtype but no values, to describe a model too large to be made twice.

A :class:`MetaTensor` lies over memory that the system promises and never gives: it reads as zeros and costs nothing until
it is written to, and nothing here writes to it. So sizes, strides and views are those of any tensor. It comes to its ops
as any subclass does, by ``__torch_function__``: what would only write values is left out, what reads them refuses, and any
other op runs on the zeros with its kernels left undone, and its result is forgotten but for its form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import HELPERS, Tensor
from .._core import memory as core_memory
from .._core import pool as core_pool
from .._core import tensor as core
from .exchange import tensor
from .sparse import SHELL, of_dense
from .views import as_strided, expand

__all__ = ["MetaTensor"]

_META = _core.device("meta")

#: Methods that are no ops and neither read nor write values.
_SHELL = SHELL | frozenset("numel storage_offset stride requires_grad_ detach_".split())


def _role(function: Any) -> str:
    """What the op's stanza says in its trait ``meta``."""
    if isinstance(function, _core.Op):
        return function.traits.get("meta", "")
    return getattr(function, "meta", "")


def is_meta(device: Any) -> bool:
    """Whether ``device``, or the default one if it is None, is meta."""
    if device is None:
        device = HELPERS["default_device"]()
    return (device if isinstance(device, _core.device) else _core.device(device)).type == "meta"


# ---- making -----------------------------------------------------------------------------------------------------------


def without_values(
    sizes: Sequence[int], strides: Sequence[int] | None, dtype: Any, requires_grad: bool = False
) -> MetaTensor:
    """A MetaTensor of that form; contiguous if no strides are given."""
    sizes = tuple(sizes)
    if strides is None:
        strides = tuple(math.prod(max(n, 1) for n in sizes[d + 1 :]) for d in range(len(sizes)))
    if any(n < 0 for n in sizes):
        raise RuntimeError(f"empty: Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    count = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if 0 not in sizes else 0
    with _form_alone():
        memory = _core.empty((count,), dtype)
    memory.untyped_storage().forget_bytes()
    made = Tensor._make_subclass(MetaTensor, of_dense(as_strided, (memory, sizes, tuple(strides), 0), {}))
    return made.requires_grad_() if requires_grad else made


def on_meta(function: Any, args: Sequence, kwargs: dict) -> Any:
    """What ``function`` gives where it is asked for device meta: the core calls this once the op has refused the device."""
    name = _name(function)
    kwargs = {k: v for k, v in kwargs.items() if not (k == "device" and _is_device(v))}
    args = tuple(a for i, a in enumerate(args) if not (i and name == "to" and _is_device(a)))
    requires_grad = bool(kwargs.pop("requires_grad", False))
    made = _by_size(name, args, kwargs) if _role(function) == "sizes" and kwargs.get("out") is None else None
    if made is None and name.endswith("_like") and not {"memory_format", "out"} & kwargs.keys():
        like = args[0] if args else kwargs["input"]
        made = without_values(like.shape, _strides(like), kwargs.get("dtype") or like.dtype)
    if made is None and name == "to" and not args[1:] and kwargs.get("memory_format") is None:
        made = without_values(args[0].shape, _strides(args[0]), kwargs.get("dtype") or args[0].dtype)
    if made is None:
        made = _forget(_compute(function, args, {**kwargs, "device": "cpu"}), ())
    return made.requires_grad_() if requires_grad else made


def _by_size(name: str, args: Sequence, kwargs: dict) -> Any:
    """The result of an op that makes a tensor of given sizes, or None where its arguments are of another form."""
    known = {"dtype", "layout", "pin_memory", "size", "stride", "fill_value", "generator"}
    if not kwargs.keys() <= known:
        return None
    rest = list(args)
    sizes = kwargs.get("size")
    if sizes is None:
        sizes = rest.pop(0) if rest and not isinstance(rest[0], int) else None
    strides = None
    dtype = kwargs.get("dtype")
    if name == "empty_strided":
        strides = kwargs["stride"] if "stride" in kwargs else rest.pop(0)
    elif name == "full":
        value = kwargs["fill_value"] if "fill_value" in kwargs else rest.pop(0)
        dtype = dtype or tensor(value).dtype
    if sizes is None:
        sizes, rest = rest, []
    return None if rest else without_values([int(n) for n in sizes], strides, dtype or _core.get_default_dtype())


def _is_device(x: Any) -> bool:
    return isinstance(x, _core.device) or (isinstance(x, str) and x.partition(":")[0] == "meta")


def _name(function: Any) -> str:
    return getattr(function, "name", None) or getattr(function, "__name__", str(function))


def _strides(t: Tensor) -> tuple | None:
    """The strides of a new tensor like ``t``: its own if it is dense, in the order of its dimensions if not."""
    expected = 1
    for n, s in sorted(zip(t.shape, t.stride(), strict=True), key=lambda p: (p[1], p[0])):
        if n != 1 and s != expected:
            return None
        expected *= n
    return t.stride()


# ---- computing --------------------------------------------------------------------------------------------------------


def _plain(x: Any, owners: dict[int, Tensor]) -> Any:
    """``x`` with plain tensors over the same memory in place of MetaTensors, which ``owners`` finds by them."""
    if isinstance(x, MetaTensor):
        plain = core.form_of(x)
        owners[id(plain)] = x
        return plain
    if isinstance(x, dict):
        return {k: _plain(v, owners) for k, v in x.items()}
    if type(x) in (tuple, list):
        return type(x)(_plain(y, owners) for y in x)
    return x


def _compute(function: Any, args: Sequence, kwargs: dict) -> Any:
    """The call outside the graph, with tensors that a kernel may read."""
    owners: dict[int, Tensor] = {}
    plain, named = _plain(list(args), owners), _plain(kwargs, owners)
    with _form_alone():
        result = _untold(function, plain, named)
    return owners.get(id(result), result)


@contextmanager
def _form_alone() -> Iterator[None]:
    """Kernels with more than a little to do are left out, and memory is promised rather than given: it reads as zeros."""
    before = core_memory.unbacked(True), core_pool.rest(True)
    try:
        yield
    finally:
        core_memory.unbacked(before[0])
        core_pool.rest(before[1])


def _untold(function: Any, args: Sequence, kwargs: dict) -> Any:
    before = _core.is_grad_enabled()
    _core.set_grad_enabled(False)
    try:
        return of_dense(function, args, kwargs)
    finally:
        _core.set_grad_enabled(before)


def _tensors(x: Any) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from _tensors(y)
    elif isinstance(x, dict):
        yield from _tensors(list(x.values()))


def _elsewhere(x: Any) -> Tensor | None:
    """A tensor with values that is more than a number, if there is one."""
    return next((t for t in _tensors(x) if not isinstance(t, MetaTensor) and t.dim()), None)


def _check_out_device(name: str, args: Sequence, kwargs: dict) -> None:
    """Refuse an ``out`` on another device than the result: that of the inputs or, where there are none, ``device``."""
    inputs = [*_tensors([list(args), {k: v for k, v in kwargs.items() if k != "out"}])]
    on = any(isinstance(t, MetaTensor) for t in inputs) if inputs else is_meta(kwargs.get("device"))
    for out in _tensors(kwargs["out"]):
        if isinstance(out, MetaTensor) is not on:
            raise RuntimeError(
                f"{name}(): Expected out tensor to have device {'meta' if on else 'cpu'}, but got {out.device} instead"
            )


def _forget(result: Any, given: Sequence[Tensor]) -> Any:
    """``result`` with MetaTensors in place of tensors: the same memory in views of ``given``, none in others."""
    if isinstance(result, MetaTensor):
        return result
    if isinstance(result, Tensor):
        if any(result.untyped_storage() is g.untyped_storage() for g in given):
            return Tensor._make_subclass(MetaTensor, result)
        return without_values(result.shape, result.stride(), result.dtype)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(_forget(r, given) for r in result))
    if isinstance(result, (tuple, list)):
        return type(result)(_forget(r, given) for r in result)
    return result


class _Derivative:
    """The gradients of the inputs of any op: of the form of the inputs."""

    __slots__ = ("inputs",)

    def __init__(self, inputs: list[Tensor]) -> None:
        self.inputs = inputs

    def __call__(self, grads: Sequence[Tensor | None]) -> list:
        made = [without_values(t.shape, _strides(t), t.dtype) for t in self.inputs]
        return _recorded("grad", [*(g for g in grads if g is not None), *self.inputs], made)


def _recorded(name: str, given: Sequence[Tensor], result: Any) -> Any:
    """``result`` as that of an op with the inputs ``given``, where that is recorded."""
    if _core.is_grad_enabled():
        inputs = [t for t in given if t.requires_grad]
        outputs = [t for t in _tensors(result) if t.dtype.is_floating_point or t.dtype.is_complex]
        if inputs and outputs:
            _core.record_custom(_Derivative(inputs), f"{name.strip('_').title()}Backward0", inputs, outputs)
    return result


def _refuse(name: str) -> Any:
    raise NotImplementedError(f"{name}(): depends on values, and tensors on device meta have none; make it on the CPU")


class MetaTensor(Tensor):
    """A tensor on device meta: one without values."""

    _without_memory = "a tensor on device meta (make it on the CPU)"

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name, role = _name(func), _role(func)
        if name in _SHELL or role == "form":
            result = _untold(func, args, kwargs)
            return _forget(result, args) if isinstance(result, Tensor) and result is not args[0] else result
        if name in ("to", "cpu") and _leaves(name, args, kwargs):
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use nn.Module.to_empty() instead of nn.Module.to() "
                "when moving a module from meta to a different device."
            )
        if kwargs.get("out") is not None:
            _check_out_device(name, args, kwargs)
        given = [t for t in _tensors([list(args), kwargs]) if isinstance(t, MetaTensor)]
        if name in ("__getitem__", "index", "index_put", "index_put_", "__setitem__"):
            if any(t.dtype is _core.bool_ for t in given[1:]) and name in ("__getitem__", "index"):
                return _refuse("indexing with a mask")
        elif role == "values":
            return _refuse(name)
        if name == "numpy_" or name == "__array__":
            raise TypeError("can't convert a tensor on device meta to NumPy: it has no values")
        if name == "as_subclass":
            raise NotImplementedError(
                "as_subclass(): a tensor on device meta keeps its class; make lazy modules and other subclasses on the CPU"
            )
        if name == "__setitem__":
            return None
        if _writes(func, name):
            return _recorded(name, given, _written(func, name, args))
        if "cast" in role and not kwargs.get("memory_format"):
            cast = _cast(func, args, kwargs)
            return cast if cast is args[0] else _recorded(name, given, cast)
        if name.endswith("_like") or name.startswith("new_"):
            return _relative(func, name, args, kwargs)
        mixed = "mixed" in role or name == "__getitem__"
        if not mixed and (other := _elsewhere([list(args), kwargs])) is not None:
            raise RuntimeError(
                f"{name}(): Expected all tensors to be on the same device, but found at least two devices, meta and "
                f"{other.device}!"
            )
        result = _forget(_compute(func, args, kwargs), given)
        return result if any(result is t for t in given) else _recorded(name, given, result)

    @property
    def device(self) -> Any:
        """``device("meta")``."""
        return _META

    @property
    def is_meta(self) -> bool:
        """True."""
        return True

    @property
    def is_cpu(self) -> bool:
        """False."""
        return False

    @property
    def data(self) -> Any:
        """The same outside the graph."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, MetaTensor):
            raise RuntimeError(
                "incompatible tensor type: data of a tensor on device meta cannot be set to one with values"
            )
        of_dense(Tensor.data.__set__, (self, value), {})  # type: ignore[attr-defined]

    def _detached(self) -> Any:
        """The same outside the graph."""
        return Tensor._make_subclass(MetaTensor, self)

    detach = _detached

    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    def tolist(self) -> Any:
        """Refused."""
        return _refuse("tolist")

    def item(self) -> Any:
        """Refused."""
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = item

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """As of any tensor: gradients are on device meta too."""
        HELPERS["backward"](self, gradient, retain_graph, create_graph, inputs)

    def __repr__(self, **kwargs: Any) -> str:
        text = HELPERS["repr"](self)
        return "Parameter containing:\n" + text if getattr(self, "_is_param", False) else text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            copy = without_values(self.shape, self.stride(), self.dtype, self.requires_grad)
            copy.__dict__.update(self.__dict__)
            memo[id(self)] = copy
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        form = tuple(self.shape), self.stride(), self.dtype, self.requires_grad
        return without_values, form, self.__dict__ or None


#: Operators that write in place.
_IN_PLACE = frozenset(
    "__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__".split()
)


def _leaves(name: str, args: Sequence, kwargs: dict) -> bool:
    """Whether ``to`` or ``cpu`` asks for values."""
    if name == "cpu":
        return True
    wanted = [*args[1:], *kwargs.values()]
    return any(
        (isinstance(x, (str, _core.device)) and not is_meta(x))
        or (isinstance(x, Tensor) and not isinstance(x, MetaTensor))
        for x in wanted
    )


def _writes(func: Any, name: str) -> bool:
    """Whether ``func`` writes values to its first argument."""
    if isinstance(func, _core.Op):
        return bool(func.writes)
    return name in _IN_PLACE or (name.endswith("_") and not name.startswith("__"))


def _cast(func: Any, args: Sequence, kwargs: dict) -> Any:
    """The result of an op that gives the same sizes in another dtype, or the same."""
    t = args[0]
    cast = of_dense(func, (HELPERS["zeros"]((0,), t.dtype), *args[1:]), kwargs)
    if not isinstance(cast, Tensor):
        return cast  # the name of the type
    same = cast.dtype is t.dtype and _name(func) != "clone" and not kwargs.get("copy")
    return t if same else without_values(t.shape, _strides(t), cast.dtype)


def _written(func: Any, name: str, args: Sequence) -> Any:
    """The tensor that an in-place op would have written to."""
    target = args[0]
    if not isinstance(target, MetaTensor):
        raise NotImplementedError(f"{name}(): Cannot copy out of meta tensor; no data!")
    if name == "copy_" or (isinstance(func, _core.Op) and func.traits.get("pointwise")):
        for t in _tensors(args[1:]):
            of_dense(expand, (t.detach(), target.shape), {})  # raises where the sizes do not fit
    return target


def _relative(func: Any, name: str, args: Sequence, kwargs: dict) -> Any:
    """``empty_like``, ``new_zeros`` and the like: on device meta unless another is named."""
    device = kwargs.get("device")
    if device is None or is_meta(device):
        return on_meta(func, args, {**kwargs, "device": _META})
    return of_dense(func, args, kwargs)


def makes(function: Any, kwargs: dict) -> bool:
    """Whether a call makes a tensor from numbers, on the default device."""
    return _role(function) in ("sizes", "numbers") and kwargs.get("device") is None and kwargs.get("out") is None


HELPERS.update(on_meta=on_meta, is_meta=is_meta, makes=makes)
