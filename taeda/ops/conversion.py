"""Changing dtype and device: ``to`` and its relatives, and ops that make a tensor from another."""

from __future__ import annotations

import builtins
import math
from typing import Any

from .. import _core
from .._core import Tensor, factories, settings
from .._core import tensor as core
from .._core.callbacks import callbacks
from .._core.devices import REGISTERED, accelerator
from .._core.exchange import from_numpy
from .._core.exchange import tensor as make_tensor
from .._core.factories import finish
from .._core.memory import device_storage
from .._core.tensor import from_storage
from .._warn import warn_caller
from ._lazy import np
from .copies import clone, convert, to_dtype
from .creation import blank, contiguous_strides, empty_in_format, require_number
from .devices import at, number_of, transfer
from .meta import is_meta
from .table import OPS, composite, spread

_CPU, _DTYPE, _PLACES = _core.device("cpu"), _core.dtype, (str, _core.device)
_HERE = ("cpu", _CPU)


def _check_device(where: Any) -> None:
    if where is not None:
        _core.require_device(where)


def _suggested_format(input: Tensor) -> Any:
    """The memory format that the strides stand for: where sizes are 1 several may fit, and ``to`` takes this one."""
    n = input.dim()
    if n not in (4, 5):
        return _core.contiguous_format
    sizes, strides, least = input.shape, input.stride(), 0
    for d in (1, *builtins.range(n - 1, 1, -1), 0):
        if not sizes[d] or strides[d] < least or (d == 1 and not strides[1]) or (d == 0 and least == strides[1]):
            return _core.contiguous_format
        least = strides[d] * sizes[d]
    return _core.channels_last if n == 4 else _core.channels_last_3d


@composite(method=True, meta="cast mixed", additive=True, canonical=True)
def to(
    input, *args, dtype=None, device=None, other=None, copy=False, non_blocking=False, memory_format=None
):  # fmt: skip
    """``input`` with another dtype, device or memory format; itself where nothing changes and ``copy`` is false.

    Forms: ``to(dtype, non_blocking=False, copy=False)``, ``to(device, dtype=None, non_blocking=False, copy=False)``,
    ``to(other)``, and keywords.

    Args:
        args: a dtype, a device or its name, or a tensor whose dtype and device are taken; then ``non_blocking`` and
            ``copy``.
        dtype: a dtype.
        device: a device or its name.
        other: a tensor whose dtype and device are taken.
        copy: whether the result is a copy in any case.
        non_blocking: whether a copy from pinned memory may still be under way when this returns.
        memory_format: the order of the elements in memory.
    Returns:
        The sizes of ``input``.
    Raises:
        RuntimeError: tensors cannot be on that device.
    Examples:
        >>> taeda.tensor([1, 2]).to(taeda.float64)
        tensor([1., 2.], dtype=taeda.float64)
        >>> taeda.ones(2).to("meta").device
        device(type='meta')
    """
    flags: Any = ()
    for a in args:
        if a.__class__ is _DTYPE:
            dtype = a
        elif isinstance(a, _PLACES):
            device = a
        elif isinstance(a, Tensor):
            other = a
        elif isinstance(a, bool):
            if a is args[0]:
                dtype = _core.bool_  # PyTorch takes it for the type
            elif len(args) > 1 and a is args[1] and dtype is None and other is None:
                raise TypeError("to() received an invalid combination of arguments: a bool follows a dtype or a Tensor")
            else:
                flags = (*flags, a)
        elif isinstance(a, int):
            device = a
        elif a is not None:
            raise TypeError(
                f"to() received an invalid combination of arguments: got {a.__class__.__name__}, expected a dtype, a "
                "device or a Tensor"
            )
    if len(flags) > 1:
        copy = flags[1]
    non_blocking = flags[0] if flags else non_blocking
    if other is not None:
        dtype = other.dtype
    stays = device is not None and device.__class__ in _PLACES and device in _HERE and input.is_cpu
    if other is None and not copy and memory_format is None and (stays or device is None):  # the common cases, first
        if dtype is None or dtype is input.dtype:
            return input
        if not input.is_complex():
            return to_dtype(input, dtype)
    if isinstance(device, str) and not stays and is_meta(device):
        if input.is_meta:
            device = _core.device(device)
        return to(input, dtype=dtype, device=device, copy=copy, memory_format=memory_format)
    if not stays:
        if device is not None:
            number_of(device)
            copy = copy or (input.is_cpu and _core.device(device).type == "cpu")  # "cpu:0", which counts as another
        elif other is not None and other.device != input.device:
            device = other.device
        if device is not None and not input.is_meta:
            moved = transfer(input, device, non_blocking)
            if moved is not input:
                with at(number_of(device)):
                    return to(moved, dtype, memory_format=memory_format)
    if dtype is None:
        dtype = input.dtype
    if dtype is not input.dtype and input.is_complex() and not dtype.is_complex and dtype is not _core.bool_:
        warn_caller("Casting complex values to real discards the imaginary part; take x.real or x.abs()")
    if memory_format is not None and memory_format is not _core.preserve_format:
        moved = dtype is not input.dtype and not input.is_contiguous(memory_format=memory_format)
        if moved or memory_format is not _suggested_format(input):
            return clone(convert(input, dtype), memory_format=memory_format)
    if dtype is not input.dtype:
        return to_dtype(input, dtype)
    return clone(input) if copy else input


@composite(meta="cast", takes_classes=True, additive=True)
def type(input, dtype: Any = None, non_blocking=False, **kwargs):
    """The type's name, or ``input`` converted to another dtype.

    Args:
        dtype: a dtype, or the name of a tensor type. None gives the name.
        non_blocking: accepted.
        kwargs: accepted.
    Returns:
        A string such as ``"torch.FloatTensor"``, or a tensor.
    Raises:
        ValueError: there is no such type.
    Examples:
        >>> taeda.ones(2).type(), taeda.ones(2).type(taeda.int64)
        ('torch.FloatTensor', tensor([1, 1]))
    """
    if dtype is None:
        name = TYPE_NAMES[input.dtype.name]
        return name if input.is_cpu else name.replace("torch.", f"torch.{input.device.type}.")
    if isinstance(dtype, str):
        package, _, kind = dtype.partition(".")
        if package in ("torch", "taeda"):
            if kind == "Tensor":
                return to(input, _core.get_default_dtype())
            if kind.startswith(("cuda.", "xpu.")):
                where, _, kind = kind.partition(".")
                number_of(where)  # raises where there is none
                return to(type(input, f"torch.{kind}"), where)
            for name, label in TYPE_NAMES.items():
                if label == f"torch.{kind}":
                    return to(input, _core.dtype_by_name(name))
        raise ValueError(f"invalid type: {dtype!r}; expected one of {', '.join(TYPE_NAMES.values())}")
    if not isinstance(dtype, _core.dtype):
        if not isinstance(dtype, builtins.type):
            raise TypeError(f"type(): argument 'dtype' must be a type, str, or dtype object, not {dtype!r}")
        if dtype is Tensor:
            return to(input, _core.get_default_dtype())
        if not isinstance(getattr(dtype, "dtype", None), _core.dtype):
            if dtype.__module__.endswith(".cuda"):
                _core.require_device("cuda")
            raise ValueError(f"invalid type: {dtype.__name__!r}")
        dtype = dtype.dtype
    return to(input, dtype)


TYPE_NAMES = {
    "float32": "torch.FloatTensor", "float64": "torch.DoubleTensor", "float16": "torch.HalfTensor",
    "bfloat16": "torch.BFloat16Tensor", "uint8": "torch.ByteTensor", "int8": "torch.CharTensor",
    "int16": "torch.ShortTensor", "int32": "torch.IntTensor", "int64": "torch.LongTensor",
    "uint16": "torch.UInt16Tensor", "uint32": "torch.UInt32Tensor", "uint64": "torch.UInt64Tensor",
    "bool": "torch.BoolTensor", "complex32": "torch.ComplexHalfTensor", "complex64": "torch.ComplexFloatTensor",
    "complex128": "torch.ComplexDoubleTensor", "float8_e4m3fn": "torch.Float8_e4m3fnTensor",
    "float8_e5m2": "torch.Float8_e5m2Tensor", "float8_e4m3fnuz": "torch.Float8_e4m3fnuzTensor",
    "float8_e5m2fnuz": "torch.Float8_e5m2fnuzTensor", "float8_e8m0fnu": "torch.Float8_e8m0fnuTensor",
    "float4_e2m1fn_x2": "torch.Float4_e2m1fn_x2Tensor",
}  # fmt: skip


@composite(meta="cast")
def type_as(input, other):
    """``input`` in the dtype of ``other`` and on its device.

    Args:
        other: a tensor.
    Returns:
        The sizes of ``input``.
    Examples:
        >>> taeda.tensor([1, 2]).type_as(taeda.tensor([0.5]))
        tensor([1., 2.])
    """
    return to(input, other)


def _caster(name: str, dtype: Any) -> None:
    def cast(input, memory_format=None):
        if memory_format is not None:
            return to(input, dtype, memory_format=memory_format)
        if input.dtype is dtype:
            return input
        if input.is_complex() or _core.is_mode_active():  # a mode may know `to` alone
            return to(input, dtype)
        return to_dtype(input, dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"""``input`` as ``{dtype.name}``: ``input.to(taeda.{dtype.name})``.

    Args:
        input: a tensor of any sizes. Floating-point numbers become integers by rounding toward zero.
    Returns:
        The sizes of ``input``; ``input`` itself if it has that dtype.
    Examples:
        >>> taeda.tensor([2.5, 0.0]).{name}().dtype
        taeda.{dtype.name}
    """
    composite(meta="cast", additive=True)(cast)


#: Methods of tensors that cast, by name.
CASTS = {
    "float": _core.float32, "double": _core.float64, "half": _core.float16, "bfloat16": _core.bfloat16,
    "int": _core.int32, "long": _core.int64, "short": _core.int16, "char": _core.int8, "byte": _core.uint8,
    "bool": _core.bool_, "chalf": _core.complex32, "cfloat": _core.complex64, "cdouble": _core.complex128,
}  # fmt: skip
for _name, _dtype in CASTS.items():
    _caster(_name, _dtype)


@composite(additive=True)
def cpu(input, memory_format=None):
    """``input`` on the CPU; itself where it is there already.

    Returns:
        A tensor on the CPU.
    Examples:
        >>> taeda.ones(2).cpu().device
        device(type='cpu')
    """
    if memory_format is None and input.is_cpu and not _core.is_mode_active():
        return input
    return to(input, _CPU, memory_format=memory_format)


@composite()
def cuda(input, device=None, non_blocking=False, memory_format=None):
    """``input`` on a CUDA device: a copy, or itself where it is there.

    Args:
        device: a device or its index; None for the current one.
        non_blocking: whether a copy from pinned memory may still be under way when this returns.
    Raises:
        RuntimeError: there is no CUDA device.
    Examples:
        >>> x = taeda.ones(2).cuda() if taeda.cuda.is_available() else taeda.ones(2)
    """
    if isinstance(device, int):
        device = _core.device("cuda", device)
    return to(input, "cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


@composite()
def xpu(input, device=None, non_blocking=False, memory_format=None):
    """``input`` on an XPU.

    Args:
        device: which one. Default: the current one.
        non_blocking: do not wait for the copy.
    Raises:
        RuntimeError: there is no such device.
    Examples:
        >>> x = taeda.ones(2).xpu() if taeda.xpu.is_available() else taeda.ones(2)
    """
    _check_device("xpu" if device is None else device)
    return input


@composite()
def pin_memory(input, device=None):
    """``input``, which is on the CPU, in memory from which the accelerator copies without waiting: a copy, or itself
    where it is pinned.

    Args:
        device: accepted.
    Raises:
        RuntimeError: there is no accelerator, or ``input`` is not on the CPU.
    Examples:
        >>> x = taeda.ones(2).pin_memory() if taeda.cuda.is_available() else taeda.ones(2)
    """
    contract = accelerator()
    if contract is None:
        raise RuntimeError("Cannot access accelerator device when none is available; on the CPU no memory is pinned")
    if not input.is_cpu:
        raise RuntimeError(f"cannot pin 'torch.{type(input)[6:]}' only dense CPU tensors can be pinned")
    if contract.is_pinned(input):
        return input
    dense = clone(input.detach())
    address, owner = contract.pinned(dense.numel() * dense.element_size())
    storage = device_storage(0, address, dense.numel() * dense.element_size(), owner)
    made = from_storage(storage, dense.dtype, dense.shape, dense.stride())
    return made.copy_(dense)


@composite(meta="form")
def record_stream(input, s):
    """Keep the memory of ``input``, once it is freed, from reuse until the work that stream ``s`` has at that time is
    done.

    Args:
        input: a tensor on a device with streams.
        s: a stream of its device, other than that on which it was allocated.
    Raises:
        NotImplementedError: the device has no streams.
    Examples:
        >>> if taeda.cuda.is_available():
        ...     x = taeda.ones(2, device="cuda")
        ...     x.record_stream(taeda.cuda.Stream())
    """
    if input.is_cpu or input.is_meta:
        raise NotImplementedError(f"record_stream: tensors on {input.device} have no streams")
    REGISTERED[number_of(input.device)].record_stream(input, s)


@composite()
def is_pinned(input, device=None):
    """Whether the memory is pinned for the accelerator.

    Args:
        device: accepted.
    Returns:
        A bool; False where there is no accelerator.
    Examples:
        >>> taeda.ones(2).is_pinned()
        False
    """
    contract = accelerator()
    return contract is not None and input.is_cpu and contract.is_pinned(input)


@composite(meta="form")
def share_memory_(input):
    """Moves the memory of ``input`` (and of all views of it) to where other processes can see it.

    Passed to a process of :mod:`taeda.multiprocessing`, or inherited by a forked one, it is the same memory there.

    Returns:
        ``input``.

    Raises:
        RuntimeError: the memory is not on the CPU.

    Examples:
        >>> counts = taeda.zeros(4).share_memory_()
        >>> counts.is_shared()
        True
    """
    from .._core.sharing import share

    share(input)
    return input


@composite()
def is_shared(input):
    """Whether the memory of ``input`` can be seen by other processes; see :meth:`share_memory_`.

    Returns:
        A bool.
    Examples:
        >>> taeda.ones(2).is_shared(), taeda.ones(2).share_memory_().is_shared()
        (False, True)
    """
    from .._core.shared import is_shared

    return is_shared(input.untyped_storage())


def _made(make: str) -> Any:
    """The lowering of an op that makes a tensor of sizes of its own, with the dtype and device of another one."""

    def lowered(input: Any, args: Any, size: Any = None, dtype: Any = None, device: Any = None) -> Any:
        device = input.device if device is None else device
        value = {"new_empty": (), "new_zeros": (0,), "new_ones": (1,)}[make]
        function = OPS["full"] if value else OPS["empty"]
        return function(spread(args, size), *value, dtype=dtype or input.dtype, device=device)

    return lowered


@composite(lowering=_made("new_empty"), native=True)
def new_empty(input, *args, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of the given sizes with the dtype and the device of ``input``, whose elements are not set.

    Args:
        args: the sizes, one by one or as one list or tuple.
        size: the same by name.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: a size is negative.
    Examples:
        >>> taeda.tensor([1, 2]).new_empty(2, 3).dtype
        taeda.int64
    """
    result = factories.new("new_empty", args, size, dtype or input.dtype, None, device)
    if settings.filling():
        blank(result)
    return result.requires_grad_(requires_grad)


@composite(lowering=_made("new_zeros"), native=True)
def new_zeros(input, *args, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of zeros of the given sizes with the dtype and the device of ``input``.
    The rest as of :func:`Tensor.new_empty`.

    Raises:
        RuntimeError: a size is negative.

    Examples:
        >>> taeda.tensor([1, 2]).new_zeros(3)
        tensor([0, 0, 0])
    """
    result = factories.new("new_zeros", args, size, dtype or input.dtype, None, device)
    _core.zero(result)
    return finish(result, None, requires_grad, device)


@composite(lowering=_made("new_ones"), native=True)
def new_ones(input, *args, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of ones of the given sizes with the dtype and the device of ``input``.
    The rest as of :func:`Tensor.new_empty`.

    Raises:
        RuntimeError: a size is negative.

    Examples:
        >>> taeda.tensor([1, 2]).new_ones(3)
        tensor([1, 1, 1])
    """
    result = factories.new("new_ones", args, size, dtype or input.dtype, None, device)
    return finish(result.fill_(1), None, requires_grad, device)


@composite(
    lowering=lambda input, size, fill_value, dtype, device: OPS["full"](
        size, fill_value, dtype=dtype or input.dtype, device=input.device if device is None else device
    ),
    native=True,
)
def new_full(input, size, fill_value, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of the given sizes with the dtype and the device of ``input``, filled with ``fill_value``.

    Args:
        size: a list or tuple of sizes.
        fill_value: a number.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: a size is negative.
    Examples:
        >>> taeda.tensor([1, 2]).new_full((3,), 7)
        tensor([7, 7, 7])
    """
    require_number("new_full", "fill_value", fill_value)
    result = factories.new("new_full", (size,), None, dtype or input.dtype, None, device)
    return finish(result.fill_(fill_value), None, requires_grad, device)


@composite()
def new_tensor(input, data, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A copy of ``data`` with the dtype and the device of ``input``.

    Args:
        data: a number, nested sequences of numbers, an array or a tensor.
    Returns:
        A tensor of the shape of ``data``.
    Raises:
        TypeError: ``data`` holds what is no number.
        ValueError: the lists of a dimension have different lengths.
    Examples:
        >>> taeda.tensor([1.0]).new_tensor([1, 2])
        tensor([1., 2.])
    """
    return make_tensor(data, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@composite(meta="shape")
def is_same_size(input, other):
    """Whether two tensors have the same sizes.

    Args:
        other: a tensor.
    Returns:
        A bool.
    Raises:
        TypeError: an argument is no tensor.
    Examples:
        >>> taeda.is_same_size(taeda.ones(2, 3), taeda.ones(3, 2))
        False
    """
    return input.shape == other.shape


@composite()
def is_set_to(input, tensor):
    """Whether both are the same window on the same storage.

    Args:
        tensor: a tensor.
    Returns:
        A bool.
    Raises:
        TypeError: an argument is no tensor.
    Examples:
        >>> x = taeda.ones(4)
        >>> x.is_set_to(x.view(4)), x.is_set_to(x.view(2, 2))
        (True, False)
    """
    return (
        input.untyped_storage() is tensor.untyped_storage()
        and input.shape == tensor.shape
        and input.stride() == tensor.stride()
        and input.storage_offset() == tensor.storage_offset()
    )


@composite(meta="form")
def set_(input, source=None, storage_offset=0, size=None, stride=None):
    """Makes ``input`` a window on the memory of ``source``, in place.

    Args:
        source: a tensor or a storage. Default: none, for no memory.
        storage_offset: the first element.
        size: the sizes. Default: those of ``source``.
        stride: the strides, in elements. Default: row-major.
    Returns:
        ``input``.
    Raises:
        RuntimeError: the dtypes differ, or the window reaches beyond the memory.
    Examples:
        >>> x, y = taeda.tensor([1, 2, 3]), taeda.tensor([0])
        >>> y.set_(x)
        tensor([1, 2, 3])
    """
    if source is None:
        return core.set_memory(input, _core.empty((0,), input.dtype))
    if isinstance(source, Tensor):
        _same_device(input, source)
        for t in (input, source):
            if t._without_memory is not None:
                raise RuntimeError(f"set_(): not for {t._without_memory}")
        if source.dtype is not input.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {input.dtype}")
        if size is not None:
            return _window(input, source.untyped_storage(), size, stride, storage_offset)
        return core.set_memory(input, source)
    if getattr(source, "dtype", input.dtype) is not input.dtype:
        raise RuntimeError(f"set_(): expected a storage of {input.dtype}, got one of {source.dtype}")
    source = getattr(source, "_untyped_storage", source)
    _same_device(input, source)
    size = (source.nbytes() // input.element_size(),) if size is None else size
    return _window(input, source, size, stride, storage_offset)


def _same_device(input, source):
    if source.device != input.device:
        raise RuntimeError(
            f"set_(): expected memory on the device of the tensor, {input.device}, got some on {source.device}"
        )


def _window(input, storage, size, stride, offset):
    """Make ``input`` a window on ``storage``, which grows where it is too small."""
    size = _core.whole_numbers(tuple(size), "set_", "size")
    if any(n < 0 for n in size):
        raise RuntimeError(f"set_(): expected sizes that are not negative, got {list(size)}")
    stride = contiguous_strides(size) if stride is None else stride
    if all(n > 0 for n in size):
        last = offset + builtins.sum((n - 1) * step for n, step in zip(size, stride, strict=False) if step > 0)
        if storage.nbytes() < (last + 1) * input.element_size() and storage.resizable:
            storage.resize_((last + 1) * input.element_size())
    return core.set_memory(input, _core.from_storage(storage, input.dtype, size, stride, offset))


@composite(meta="form")
def resize_(input, *args, size=None, memory_format=None):
    """Changes the sizes in place. Elements stay in their order in memory, new ones are not set.

    Args:
        input: a tensor that does not require grad.
        args: the sizes, one by one or as one list or tuple.
        size: the same by name.
        memory_format: order of the dimensions in memory. Default: row-major.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``input`` requires grad, or its memory is another library's and too small.
    Examples:
        >>> taeda.tensor([1, 2, 3, 4]).resize_(2, 2)
        tensor([[1, 2],
                [3, 4]])
    """
    shape = _core.whole_numbers(tuple(spread(args, size)), "resize_", "size")
    if input.requires_grad and not _core.is_inference_mode_enabled():
        raise RuntimeError("cannot resize variables that require grad")
    if input._without_memory is not None:
        raise RuntimeError(f"resize_(): not for {input._without_memory}")
    count, before = 1, input.numel()
    for n in shape:
        if n < 0:
            raise RuntimeError(f"resize_(): sizes must not be negative, got {list(shape)}")
        count *= n
    nbytes = (input.storage_offset() + count) * input.element_size() if count else 0
    if max(nbytes, math.prod(max(n, 1) for n in shape[1:])) >= 2**63:
        raise RuntimeError(f"resize_(): the bytes or the strides of sizes {list(shape)} do not fit 64 bits")
    if memory_format is None or memory_format is _core.contiguous_format:
        if shape == input.shape:
            return input
        strides = contiguous_strides(shape)
    elif memory_format is _core.preserve_format:
        raise RuntimeError(f"resize_(): unsupported memory format {memory_format}")
    else:
        strides = empty_in_format(shape, _core.bool_, memory_format).stride()
    core.resize(input, shape, strides, nbytes)
    if count > before and settings.filling():
        blank(input.view(-1)[before:])
    return input


@composite(meta="form")
def resize_as_(input, the_template, memory_format=None):
    """Changes the sizes of ``input``, in place, to those of another tensor. New elements are not set.

    Args:
        input: a tensor whose memory is its own.
        the_template: a tensor with the sizes.
        memory_format: order of the dimensions in memory; ``preserve_format`` takes that of ``the_template``.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``input`` requires grad.
    Examples:
        >>> taeda.resize_as_(taeda.tensor([1, 2, 3, 4]), taeda.zeros(2, 2))
        tensor([[1, 2],
                [3, 4]])
    """
    if memory_format is _core.preserve_format:
        resize_(input, tuple(the_template.shape))
        core.resize(input, the_template.shape, _core.empty_like(the_template).stride(), 0)
        return input
    return resize_(input, tuple(the_template.shape), memory_format=memory_format)


@composite()
def resize(input, *sizes):
    """:meth:`resize_` out of place (deprecated): a view with the given sizes on the same memory, which may not grow.

    Args:
        sizes: the sizes.
    Returns:
        A view of ``input``.
    Raises:
        RuntimeError: the sizes are not for as many elements.
    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.arange(4).resize(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return input.contiguous().view(shape)


@composite()
def resize_as(input, tensor):
    """:meth:`resize` to the sizes of ``tensor`` (deprecated).

    Args:
        tensor: a tensor with the sizes.
    Returns:
        A view of ``input``, or of a contiguous copy.
    Raises:
        RuntimeError: the sizes are not for as many elements.
    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.arange(4).resize_as(taeda.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return input.contiguous().view(tensor.shape)


def operand(x: Any) -> Any:
    """``x`` as an operand: a NumPy scalar becomes a number, an array a tensor, anything else None."""
    if not hasattr(x, "__array__"):
        return None
    if isinstance(x, np.generic):
        return x.item()
    return from_numpy(np.asarray(x))


def operands(a: Tensor, x: Any) -> Any:
    """``a`` and the foreign ``x`` as operands of a Python operator; None where ``x`` cannot be an operand.

    Objects that override ``__torch_function__`` stay as they are: the op asks them.

    With an array the dtype is the one that NumPy has for two arrays, of whatever number of dimensions.
    """
    other = x if hasattr(x.__class__, "__torch_function__") else operand(x)
    if not isinstance(other, Tensor) or a.dtype is _core.bfloat16:
        return None if other is None else (a, other)
    common = _core.dtype_by_name(np.result_type(a.dtype.name, other.dtype.name).name)
    return to(a, common), to(other, common)


def operand_tensor(x: Any, like: Tensor) -> Tensor:
    """``x``, a number or an array, as a tensor to be written into ``like``."""
    return make_tensor(x)


callbacks.operand = operand
callbacks.operands = operands
callbacks.operand_tensor = operand_tensor
