"""Tensors from numbers, NumPy arrays, buffers and other libraries; pickling and copying of tensors."""

from __future__ import annotations

import copy
import functools
from typing import Any

from .. import _core
from .._core import DISPATCHING, Tensor
from .._core import tensor as core
from .._core.callbacks import callbacks
from .._core.dlpack import from_dlpack
from .._core.exchange import array_of, as_tensor, asarray, from_numpy, frombuffer, tensor
from .._namespaces import above
from .conjugation import resolve_all
from .meta import planning
from .table import composite

for _function in (tensor, as_tensor, asarray, from_numpy, frombuffer, from_dlpack):
    composite(method=False)(_function)


@composite(method=False)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor over a file, mapped into memory: nothing is read before it is used.

    Args:
        filename: its path.
        shared: whether what is written reaches the file, which is made as long as need be. Otherwise writing changes
            memory only.
        size: how many elements.
        dtype: of the elements. Default: that of :func:`get_default_dtype`.
        layout: ``taeda.strided``.
        device: the CPU.
    Returns:
        A vector of ``size`` elements.
    Raises:
        RuntimeError: the file is too small, or cannot be opened.
    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers"
        >>> _ = path.write_bytes(bytes([1, 0, 2, 0]))
        >>> taeda.from_file(str(path), size=2, dtype=taeda.int16)
        tensor([1, 2], dtype=taeda.int16)
    """
    _core.require_device(device)
    if layout not in (None, _core.strided) or pin_memory:
        raise NotImplementedError(
            f"from_file: expected a strided layout and no pin_memory, got {layout} and {pin_memory}"
        )
    dtype = dtype or _core.get_default_dtype()
    size = size or 0
    if size < 0:
        raise RuntimeError(f"from_file: expected a size of at least 0, got {size}")
    try:
        storage = _core.Storage.from_file(filename, bool(shared), size * dtype.itemsize) if size else _core.Storage()
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}>: {error.strerror} ({error.errno})") from None
    return _core.from_storage(storage, dtype, (size,), (1,)).requires_grad_(requires_grad)


# ---- pickle and copy -------------------------------------------------------------------------------------------------
def _attributes(t: Tensor) -> dict | None:
    """The Python attributes of a tensor, None where it has none."""
    return getattr(t, "__dict__", None) or None


def rebuild(
    cls: type, storage: Any, dtype: Any, sizes: tuple, strides: tuple, offset: int, requires_grad: bool,
    state: dict | None, conjugated: bool = False,
) -> Tensor:  # fmt: skip
    """The tensor of a pickle: ``cls`` over a window of ``storage``."""
    t = _core.from_storage(storage, dtype, sizes, strides, offset)
    if conjugated:
        t = core.view_conjugated(t)
    if cls is not Tensor:
        t = Tensor._make_subclass(cls, t)
    if requires_grad:
        t.requires_grad = True
    if state:
        t.__dict__.update(state)
    return t


def _window(t: Tensor) -> tuple[Any, tuple, tuple, int, bool]:
    return t.dtype, tuple(t.shape), t.stride(), t.storage_offset(), t.requires_grad


def _rebuild_hollow(cls: type, dtype: Any, sizes: tuple, strides: tuple, requires_grad: bool, state: dict) -> Tensor:
    """The tensor of a pickle whose class overrides ops and keeps its values in attributes."""
    with planning():
        like = _core.empty_strided(sizes, strides, dtype)
    t = Tensor._make_hollow(cls, like, requires_grad, True)
    for name, value in state.items():
        setattr(t, name, value)
    return t


def _state(t: Tensor) -> dict:
    """The attributes of a tensor, those in slots too."""
    slots = [name for kind in type(t).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(t, name)]
    return (_attributes(t) or {}) | {name: getattr(t, name) for name in slots}


def _reduce(t: Tensor, protocol: int) -> tuple:
    """``__reduce_ex__`` of a tensor, for pickle and ``copy.copy``. Tensors that share a storage share it afterwards."""
    if type(t) in DISPATCHING and core.is_hollow(t):
        return _rebuild_hollow, (type(t), t.dtype, tuple(t.shape), t.stride(), t.requires_grad, _state(t))
    return rebuild, (type(t), t.untyped_storage(), *_window(t), _attributes(t), t.is_conj() or t.is_neg())


def _deepcopy(t: Tensor, memo: dict) -> Tensor:
    """A tensor over a copy of the storage, which is copied once for all tensors on it."""
    if id(t) in memo:
        return memo[id(t)]
    if t.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol: this one is the "
            f"result of {t.grad_fn}; detach() it first"
        )
    if type(t) in DISPATCHING and core.is_hollow(t):
        made = t.detach().clone().requires_grad_(t.requires_grad)
    elif t.is_conj() or t.is_neg():  # in memory of its own, as in PyTorch
        plain = resolve_all(t.detach())
        made = rebuild(type(t), plain.untyped_storage(), *_window(plain)[:4], t.requires_grad, None)
    else:
        made = rebuild(type(t), copy.deepcopy(t.untyped_storage(), memo), *_window(t), None)
    memo[id(t)] = made
    if t.grad is not None:
        made.grad = copy.deepcopy(t.grad, memo)
    state = _attributes(t)
    if state:
        made.__dict__.update(copy.deepcopy(state, memo))
    return made


callbacks.reduce = _reduce
callbacks.deepcopy = _deepcopy

__all__ = ["array_of", "as_tensor", "asarray", "from_dlpack", "from_file", "from_numpy", "frombuffer", "tensor"]


# ---- the array API standard ------------------------------------------------------------------------------------------


def _array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """The namespace of the array API standard: :mod:`taeda.array_api`."""
    standard = above("array_api")  # when it is first asked for: few programs do
    known = ("2021.12", "2022.12", "2023.12", standard.__array_api_version__)
    if api_version is not None and api_version not in known:
        raise ValueError(f"__array_namespace__: version {api_version!r} is not known; up to {known[-1]} are")
    return standard


def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The tensor on ``device``, as the array API standard has it.

    Args:
        device: a device or its name.
        stream: None; the CPU has no streams.
    Returns:
        A tensor.
    Examples:
        >>> taeda.ones(2).to_device("cpu").device
        device(type='cpu')
    """
    if stream is not None:
        raise ValueError(f"to_device: the CPU has no streams, got stream={stream!r}")
    return self.to(device)


_core.install("__array_namespace__", _array_namespace)
_core.install("to_device", _to_device)


# ---- NumPy's functions of tensors ------------------------------------------------------------------------------------

# NumPy is there when these are called, and not before: `import taeda` leaves it alone.


@functools.cache
def _operators() -> dict[Any, str]:
    """Names of Python's operators, by what they run in NumPy with an array or one of NumPy's numbers on the left."""
    import numpy as np

    named = {
        "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "truediv", "floor_divide": "floordiv",
        "remainder": "mod", "power": "pow", "matmul": "matmul", "bitwise_and": "and", "bitwise_or": "or",
        "bitwise_xor": "xor", "left_shift": "lshift", "right_shift": "rshift", "less": "lt", "less_equal": "le",
        "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    }  # fmt: skip
    return {getattr(np, name): label for name, label in named.items()}


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _recorded(x: Any) -> bool:
    """Whether a tensor that requires grad is in ``x``."""
    if isinstance(x, Tensor):
        return x.requires_grad
    return isinstance(x, (list, tuple)) and any(map(_recorded, x))


def _as_array(x: Any) -> Any:
    import numpy as np

    return np.asarray(x) if isinstance(x, Tensor) else x


def _takes_over(x: Any, name: str) -> bool:
    """Whether ``x``, no tensor and no array, has NumPy's functions in its own way."""
    import numpy as np

    if isinstance(x, (Tensor, np.ndarray, np.generic, int, float, complex, list, tuple)):
        return False
    return getattr(type(x), name, None) is not None


def _array_ufunc(ufunc: Any, method: str, inputs: tuple, kwargs: dict) -> Any:
    """Run a NumPy ufunc that has a tensor among its arguments.

    Tensors that require grad go through taeda's ops. NumPy gets the others as arrays, and its result becomes a tensor.
    """
    import numpy as np

    outs = kwargs.get("out") or ()
    if any(_takes_over(x, "__array_ufunc__") for x in (*inputs, *outs)):
        return NotImplemented
    if any(isinstance(x, Tensor) for x in outs):
        raise TypeError("return arrays must be of ArrayType")
    if method == "at" and isinstance(inputs[0], Tensor):
        raise TypeError("first operand must be array")
    recorded = _core.is_recorded() and any(map(_recorded, inputs))
    if method == "__call__" and ufunc in _operators() and len(inputs) == 2 and set(kwargs) <= {"out"}:
        # `array + tensor` comes here too, and is what `tensor + array` is; so does `array += tensor`, where the array
        # cannot hold what a gradient needs: its name then stands for the sum
        left, right = inputs
        number = isinstance(left, (np.ndarray, np.generic)) and left.dtype.kind in "biufc"
        if number and isinstance(right, Tensor) and (not outs or (recorded and outs[0] is left)):
            name = _operators()[ufunc]
            mirrored = getattr(right, f"__{_MIRRORED.get(name, 'r' + name)}__", None)
            result = NotImplemented if mirrored is None else mirrored(left)
            if result is not NotImplemented:
                return result
    if recorded:
        result = above("_numpy").run_ufunc(ufunc, method, inputs, kwargs)
        if result is not NotImplemented:
            return result
    result = getattr(ufunc, method)(*map(_as_array, inputs), **kwargs)
    if outs or method == "outer":  # NumPy gives arrays of these
        return result
    if isinstance(result, tuple):
        return tuple(callbacks.from_array(np.asarray(x)) for x in result)
    return callbacks.from_array(np.asarray(result))


def _array_function(function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """Run a NumPy function that has a tensor among its arguments. If a tensor requires grad and there is a rule
    (``_numpy.py``), ops compute it. Otherwise NumPy does, as for any object with ``__array__``.
    """
    import numpy as np

    for kind in types:
        if not issubclass(kind, (Tensor, np.ndarray)):
            return NotImplemented
    if _core.is_recorded() and (_recorded(args) or _recorded(list(kwargs.values()))):
        result = above("_numpy").run(function, args, kwargs)
        if result is not NotImplemented:
            return result
    return function._implementation(*args, **kwargs)


callbacks.array_ufunc = _array_ufunc
callbacks.array_function = _array_function
