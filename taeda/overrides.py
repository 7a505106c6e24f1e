"""``__torch_function__``: classes and modes that see calls of taeda's functions before they run, and may replace them.

A class overrides by a classmethod ``__torch_function__(cls, func, types, args=(), kwargs=None)``. It is called when an
object of the class is among a call's arguments (in lists and tuples of them too). Among several classes a subclass
comes before its base, then the order of the arguments counts; ``NotImplemented`` passes on to the next. Subclasses of
Tensor that do not define it get ``Tensor``'s, which runs the function and gives its results the subclass.

``_core`` notices that a call may be overridden; what happens then is here.
"""

from __future__ import annotations

import functools
import importlib
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _core
from ._core import DISPATCHING, OVERRIDING, Tensor
from ._core.callbacks import callbacks
from ._core.exchange import count_modes
from ._core.mends import not_tensor
from ._namespaces import above, complete
from .kernels.forks import free_in_children
from .ops.meta import is_meta, planning
from .ops.table import trait

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
    "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip

_MODES, _NO_SUBCLASSES, _NONE, _NO_DISPATCH = 2, 4, 8, 16  # bits of the core's state of overrides

_thread = threading.local()


def _modes() -> list:
    """This thread's TorchFunctionModes, outermost first."""
    try:
        return _thread.modes
    except AttributeError:
        _thread.modes = []
        return _thread.modes


# ---- switching overrides off -----------------------------------------------------------------------------------------


class _Switch:
    """Context manager that sets a bit of the core's state of overrides."""

    _bit = 0

    def __enter__(self) -> None:
        self._before = _core.change_overrides(self._bit, 0) & self._bit

    def __exit__(self, *exc: Any) -> None:
        if not self._before:
            _core.change_overrides(0, self._bit)


class DisableTorchFunctionSubclass(_Switch):
    """Within it, subclasses of Tensor (and other classes) do not override functions by ``__torch_function__``; modes
    do.

    Examples:
        >>> class Loud(taeda.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return "mine"
        >>> x = taeda.ones(2).as_subclass(Loud)
        >>> with taeda.DisableTorchFunctionSubclass():
        ...     print(taeda.add(x, 1))
        tensor([2., 2.])
    """

    _bit = _NO_SUBCLASSES


class DisableTorchFunction(_Switch):
    """Within it nothing overrides a function of tensors: no class by ``__torch_function__``, and no mode.

    Examples:
        >>> class Loud(taeda.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return "mine"
        >>> x = taeda.ones(2).as_subclass(Loud)
        >>> taeda.add(x, 1)
        'mine'
        >>> with taeda.DisableTorchFunction():
        ...     print(taeda.add(x, 1))
        tensor([2., 2.])
    """

    _bit = _NONE


class DisableDispatch(_Switch):
    """Within it neither the ``__torch_dispatch__`` of classes nor a mode is asked about ops."""

    _bit = _NO_DISPATCH

    def __enter__(self) -> None:
        super().__enter__()
        self._others = _core.modes([m for m in _core.mode_stack() if not hasattr(m, "__torch_dispatch__")])
        self._others.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._others.__exit__(*exc)
        super().__exit__(*exc)


def _is_torch_function_enabled() -> bool:
    """Whether classes may override on this thread."""
    return not _core.change_overrides(0, 0) & (_NO_SUBCLASSES | _NONE)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode sees calls on this thread."""
    return _core.change_overrides(0, 0) & (_MODES | _NONE) == _MODES


def _disabled_torch_function_impl(func: Callable, types: Iterable, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The ``__torch_function__`` of a class that does not override: it stands in the class body."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


# ---- who overrides a call --------------------------------------------------------------------------------------------


def _overrides(kind: type) -> bool:
    """Whether objects of class ``kind`` are asked about calls."""
    if kind is Tensor:
        return False
    if issubclass(kind, Tensor):
        return kind in OVERRIDING
    found = getattr(kind, "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl


def _is_subclass(kind: type, other: type) -> bool:
    """Whether ``kind`` derives from ``other``, or from the class of a program that vmap made ``other`` of."""
    return issubclass(kind, getattr(other, "_alone", other))


def _relevant(args: Iterable, found: list, depth: int = 2) -> list:
    """The arguments that override, one per class: subclasses before their bases, else from left to right."""
    for x in args:
        kind = type(x)
        if kind is Tensor:
            continue
        if isinstance(x, (list, tuple)) and depth and not hasattr(kind, "__torch_function__"):
            _relevant(x, found, depth - 1)
        elif _overrides(kind) and all(type(y) is not kind for y in found):
            place = next((i for i, y in enumerate(found) if _is_subclass(kind, type(y))), len(found))
            found.insert(place, x)
    return found


def has_torch_function(relevant_args: Iterable) -> bool:
    """Whether a call with these arguments is overridden: by one of them, or by a mode."""
    state = _core.change_overrides(0, 0)
    if state & _NONE:
        return False
    if _modes():
        return True
    if not state & _NO_SUBCLASSES:
        for x in relevant_args:
            if _overrides(type(x)):
                return True
    return False


def has_torch_function_unary(x: Any) -> bool:
    """:func:`has_torch_function` of one argument."""
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """:func:`has_torch_function` of the arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable, *args: Any, **kwargs: Any) -> Any:
    """Ask the innermost mode, then each class that overrides, what ``public_api(*args, **kwargs)`` is.

    Args:
        public_api: the function.
        relevant_args: those of its arguments that may override it.
        *args: its arguments by position.
        **kwargs: its arguments by name.

    Returns:
        What the first that does not decline gives.

    Raises:
        TypeError: all gave NotImplemented.
    """
    found = _relevant(relevant_args, [])
    types = tuple(map(type, found))
    state = _core.change_overrides(0, 0)
    if not state & _NONE:
        modes = _modes()
        if modes:
            with _without_innermost() as mode:
                result = mode.__torch_function__(public_api, types, args, kwargs)
            if result is not NotImplemented:
                return result
        if not state & _NO_SUBCLASSES:
            for x in found:
                result = _ask(x, public_api, types, args, kwargs)
                if result is not NotImplemented:
                    return result
            if not found:
                with DisableTorchFunctionSubclass():  # an object of a class that overrides may have got another class
                    return public_api(*args, **kwargs)
        else:
            return _without_classes(public_api, found, args, kwargs)
    else:
        return _without_classes(public_api, found, args, kwargs)
    name = f"{getattr(public_api, '__module__', 'torch')}.{getattr(public_api, '__name__', public_api)}"
    message = (
        f"no implementation found for '{name}' on types that implement __torch_function__: {[type(x) for x in found]}"
    )
    if modes:
        message += f" nor in mode {modes[-1]}"
    raise TypeError(message)


def _wrappers_module() -> Any:
    """The module that asks the ``__torch_dispatch__`` of classes. It lies above this one, and few programs need it."""
    return above("utils._wrapper_subclass")


def _without_classes(func: Callable, found: list, args: tuple, kwargs: dict) -> Any:
    """The call below ``__torch_function__``, where a class with a ``__torch_dispatch__`` is asked about ops."""
    if not _core.change_overrides(0, 0) & _NO_DISPATCH and any(type(x) in DISPATCHING for x in found):
        return _wrappers_module().dispatch(func, args, kwargs)
    return func(*args, **kwargs)


def _ask(x: Any, func: Callable, types: tuple, args: tuple, kwargs: dict) -> Any:
    method = type(x).__torch_function__
    if (
        method is not _disabled_torch_function_impl
        and getattr(method, "__self__", None) is None
        and not isinstance(_defining(type(x)), (classmethod, staticmethod))
    ):  # a plain method
        return x.__torch_function__(func, types, args, kwargs)
    return method(func, types, args, kwargs)


def _defining(kind: type) -> Any:
    for base in kind.__mro__:
        if "__torch_function__" in vars(base):
            return vars(base)["__torch_function__"]
    return None


@contextmanager
def _without_innermost() -> Iterator[Any]:
    modes = _modes()
    mode = modes.pop()
    if not modes:
        _core.change_overrides(0, _MODES)
    try:
        yield mode
    finally:
        modes.append(mode)
        _core.change_overrides(_MODES, 0)


def _says_what_ops_do(x: Any) -> bool:
    """Whether the class of ``x`` computes, not only watches: a sparse or nested tensor, a ``__torch_dispatch__``."""
    without_memory = getattr(x, "_without_memory", None) is not None
    return type(x) in DISPATCHING or (without_memory and not hasattr(x, "_of_class"))


def _dispatch(function: Any, args: tuple, kwargs: dict) -> Any:
    """The function that the core calls where a mode or an argument may override a call."""
    if getattr(function, "__name__", None) in _PLAIN and not any(_says_what_ops_do(x) for x in _relevant(args, [])):
        with DisableTorchFunction():
            return function(*args, **kwargs)
    operator = trait(function, "operator")
    if operator and _a_mode_asks():
        function = getattr(Tensor, operator)
    return handle_torch_function(function, (*args, *kwargs.values()), *args, **kwargs)


callbacks.overrides = _dispatch
callbacks.overriding = _overrides


def _operator(op: Any, name: str, *args: Any) -> Any:
    """The result of one of Python's operators: of ``op``, or of the method ``name``, if it has one, handed over."""
    if name and (_a_mode_asks() or _a_class_asks(args)):
        return handle_torch_function(getattr(Tensor, name), args, *args)
    return op(*args)


def _a_class_asks(args: tuple) -> bool:
    """Whether a program's subclass of Tensor is among the operands, and overrides."""
    classes = [type(x) for x in args]
    return any(c in OVERRIDING and c not in _OURS for c in classes) and _is_torch_function_enabled()


callbacks.operator = _operator


# ---- modes -----------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """Context manager whose ``__torch_function__(func, types, args, kwargs)`` sees every call within it.

    While it runs, the mode itself is off, so that it may call ``func``.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_function__(func, types, args, kwargs)")

    #: Whether it sees only ops, and not Tensor's other methods and attributes, such as ``item`` and ``shape``.
    _sees_ops_alone = False

    def __enter__(self) -> Any:
        if not self._sees_ops_alone:
            _show_methods(1)
        _modes().append(self)
        _core.change_overrides(_MODES, 0)
        return self

    def __exit__(self, *exc: Any) -> None:
        _modes().pop()
        if not _modes():
            _core.change_overrides(0, _MODES)
        if not self._sees_ops_alone:
            _show_methods(-1)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the class, to be entered."""
        return cls(*args, **kwargs)


def set_mode(kind: type, mode: TorchFunctionMode | None) -> None:
    """Make ``mode`` the innermost mode, and the only one of class ``kind``; None: there is none."""
    modes = _modes()
    modes[:] = [x for x in modes if type(x) is not kind] + ([] if mode is None else [mode])
    _core.change_overrides(*((_MODES, 0) if modes else (0, _MODES)))


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Overrides work within an override as they do outside: nothing to do."""
    yield


def _get_current_function_mode() -> Any:
    modes = _modes()
    return modes[-1] if modes else None


# ---- subclasses of Tensor --------------------------------------------------------------------------------------------

#: Attributes of Tensor that never go through ``__torch_function__``.
_PLAIN = {
    "__class__", "__getattribute__", "__setattr__", "__delattr__", "__new__", "__init__", "__init_subclass__",
    "__subclasshook__", "__dict__", "__weakref__", "__doc__", "__module__", "__sizeof__", "__dir__", "__reduce__",
    "__torch_function__", "__array_priority__", "_make_subclass", "__hash__", "__pyx_vtable__", "__setstate__",
    "__setstate_cython__", "__reduce_cython__", "__getstate__", "_make_wrapper_subclass", "as_subclass", "__slots__",
    "__abstractmethods__", "__array_namespace__", "_repr_html_", "__rdiv__",
}  # fmt: skip

#: Python's operators on Tensor run ops, which the core sees.
_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift", "lt",
    "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert",
)  # fmt: skip

#: Functions whose results ``Tensor.__torch_function__`` leaves as they are.
_NO_WRAP = (
    "_base", "grad", "_grad", "grad_fn", "data_ptr", "untyped_storage", "item", "tolist", "numpy", "__array__",
)  # fmt: skip


def _tensor_torch_function(
    cls: type, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None
) -> Any:
    """Run ``func`` and give its results the class ``cls``, where every class concerned is one that ``cls`` derives
    from."""
    if not all(_is_subclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        if func in get_default_nowrap_functions():
            return result
        return _convert(result, cls)


def _convert(result: Any, cls: type) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        if result._without_memory is not None and not hasattr(result, "_of_class"):
            return result  # sparse, nested: an object of cls could not stand for it
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and not isinstance(result, _core.Size):
        items = [_convert(item, cls) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


@functools.cache
def get_default_nowrap_functions() -> set[Callable]:
    """Functions whose results :meth:`Tensor.__torch_function__` leaves as they are."""
    found = set()
    for name in _NO_WRAP:
        value = getattr(Tensor, name, None)
        found.add(value.__get__ if isinstance(value, (property, types.GetSetDescriptorType)) else value)
    return {f for f in found if f is not None}


def _method(name: str, plain: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _core.change_overrides(0, 0) & (_NO_SUBCLASSES | _NONE) and not _modes():
            return plain(self, *args, **kwargs)
        return handle_torch_function(plain, (self, *args, *kwargs.values()), self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = getattr(plain, "__doc__", None)
    return method


def _attribute(name: str, plain: Any) -> Any:
    getter, deleter = plain.__get__, getattr(plain, "__delete__", None)
    setter: Any = getattr(plain, "__set__", None)

    def get(self: Any) -> Any:
        if _core.change_overrides(0, 0) & (_NO_SUBCLASSES | _NONE) and not _modes():
            return getter(self)
        return handle_torch_function(getter, (self,), self)

    def put(self: Any, value: Any) -> None:
        if _core.change_overrides(0, 0) & (_NO_SUBCLASSES | _NONE) and not _modes():
            return setter(self, value)
        return handle_torch_function(setter, (self, value), self, value)

    return property(
        get, put if setter else None, deleter and (lambda self: deleter(self)), getattr(plain, "__doc__", None)
    )


def _rows(self: Any) -> Iterator:
    """The rows, as ``unbind`` of the class gives them."""
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


@functools.cache
def _wrappers() -> dict[str, Any]:
    """The methods and attributes that an overriding subclass gets in place of Tensor's own; ops need none."""
    made = {}
    operators = {f"__{side}{name}__" for name in _OPERATORS for side in ("", "r", "i")}
    for name, value in _own().items():
        if name in _PLAIN or name in operators or isinstance(value, (_core.Method, staticmethod, classmethod)):
            continue
        if wrapper := _wrapper(name, value):
            made[name] = wrapper
    made["__iter__"] = _rows
    return made


def _wrapper(name: str, value: Any) -> Any:
    """An attribute or method that asks the class before ``value``; None if ``value`` is neither."""
    if isinstance(value, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
        return _attribute(name, value)
    return _method(name, value) if callable(value) else None


def with_methods_of(cls: type, base: type, **named: Any) -> type:
    """A class that is both ``cls``, a program's subclass of Tensor, and ``base``, one of taeda's own whose methods
    stand in for Tensor's. What ``cls`` defines itself comes first."""
    wrappers = _wrappers()
    for name, value in vars(base).items():
        above = next((vars(c)[name] for c in cls.__mro__[: cls.__mro__.index(Tensor)] if name in vars(c)), None)
        if hasattr(Tensor, name) and name not in _PLAIN and (above is None or above is wrappers.get(name)):
            named[name] = _wrapper(name, value) or value
    named.update(__module__=cls.__module__, __qualname__=cls.__qualname__)
    return type(cls)(cls.__name__, (cls, base), named)


#: Classes of taeda's own that override: they are asked about ops.
_OURS: set[type] = set()


def _init_subclass(cls: type, **kwargs: Any) -> None:
    """A class derived from Tensor overrides unless it says ``__torch_function__ = _disabled_torch_function_impl``."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    own = _defining(cls)
    inner = own.__func__ if isinstance(own, (classmethod, staticmethod)) else own
    if hasattr(cls, "__torch_dispatch__"):
        DISPATCHING.add(cls)
        OVERRIDING.add(cls)
        if not hasattr(cls, "_detached"):
            cls._detached, cls._item = _detached, _item  # type: ignore[attr-defined]
    if inner is _disabled_torch_function_impl and cls in DISPATCHING:
        return
    if inner is _disabled_torch_function_impl:
        OVERRIDING.discard(cls)
        return
    if getattr(cls, "__module__", "").partition(".")[0] == "taeda" and inner is _tensor_torch_function:
        return  # Parameter, batched tensors: taeda's own subclasses are no overrides
    OVERRIDING.add(cls)
    if getattr(cls, "__module__", "").partition(".")[0] == "taeda":
        _OURS.add(cls)
    above: set[str] = set()
    for base in cls.__mro__:
        if base is Tensor:
            break
        above.update(vars(base))
    for name, value in _wrappers().items():
        if name not in above:
            setattr(cls, name, value)


# ---- what modes see beside ops ---------------------------------------------------------------------------------------


def _a_mode_asks() -> bool:
    """Whether this thread's innermost mode sees what is no op."""
    modes = _modes()
    return bool(modes) and not modes[-1]._sees_ops_alone and not _core.change_overrides(0, 0) & _NONE


class _Shown:
    """A method of Tensor while a mode is on. Looked up on the class it is the method itself."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain

    def __get__(self, tensor: Any, kind: type | None = None) -> Any:
        bound = self.plain.__get__(tensor, kind)
        if tensor is None or not _a_mode_asks():
            return bound
        return functools.partial(handle_torch_function, self.plain, (tensor,), tensor)


class _ShownAttribute(_Shown):
    """An attribute of Tensor while a mode is on."""

    def __get__(self, tensor: Any, kind: type | None = None) -> Any:
        if tensor is None or not _a_mode_asks():
            return self.plain.__get__(tensor, kind)
        return handle_torch_function(self.plain.__get__, (tensor,), tensor)

    def __set__(self, tensor: Any, value: Any) -> None:
        if _a_mode_asks():
            handle_torch_function(self.plain.__set__, (tensor, value), tensor, value)
        else:
            self.plain.__set__(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        if _a_mode_asks():
            handle_torch_function(self.plain.__delete__, (tensor,), tensor)
        else:
            self.plain.__delete__(tensor)


def _own() -> dict[str, Any]:
    """Tensor's own attributes, whatever stands in for them now."""
    return {name: x.plain if isinstance(x, _Shown) else x for name, x in vars(Tensor).items()}


@functools.cache
def _shown() -> dict[str, _Shown]:
    """The stand-ins for Tensor's methods and attributes while a mode is on. Operators and functions such as ``len`` and
    ``bool`` have none: Python calls them by slots of the type, which ask the mode themselves."""
    made: dict[str, _Shown] = {}
    for name in _wrappers():
        plain = vars(Tensor).get(name)
        if isinstance(plain, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
            made[name] = _ShownAttribute(plain)
        elif hasattr(plain, "__get__") and not isinstance(plain, types.WrapperDescriptorType):
            made[name] = _Shown(plain)
    return made


_lock = free_in_children(threading.Lock())


def _show_methods(by: int) -> None:
    """``by`` more modes, of any thread, see methods: the first installs the stand-ins, the last removes them."""
    shown = _shown()
    with _lock:
        modes = count_modes(by)
        if modes == (1 if by > 0 else 0):
            for name, stand_in in shown.items():
                _core.install(name, stand_in if modes else stand_in.plain)


def _shown_method(name: str, tensor: Tensor, *args: Any) -> Any:
    """Result of a mode for a method that Python calls by a slot of the type."""
    return handle_torch_function(getattr(Tensor, name), (tensor, *args), tensor, *args)


callbacks.a_mode_asks = _a_mode_asks
callbacks.shown = _shown_method
callbacks.rows = _rows


def _detached(self: Tensor) -> Tensor:
    """``detach()`` by the class's ``__torch_dispatch__``."""
    return _wrappers_module().ask("detach", self)


def _item(self: Tensor) -> Any:
    """``item()`` by the class's ``__torch_dispatch__``."""
    return _wrappers_module().ask("_local_scalar_dense", self)


def _make_wrapper_subclass(
    cls: type, size: Iterable[int], strides: Iterable[int] | None = None, storage_offset: int | None = None,
    memory_format: Any = None, dtype: Any = None, layout: Any = _core.strided, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False, dispatch_layout: bool = False, **internal: Any,
) -> Any:  # fmt: skip
    """A tensor of class ``cls`` that shows these sizes and this dtype, and has no elements of its own.

    What is done with it goes to ``cls.__torch_dispatch__(func, types, args, kwargs)``, usually over other tensors that
    are its attributes.

    Args:
        cls: the class; it defines ``__torch_dispatch__``.
        size: the sizes that the tensor shows.
        strides: the strides that it shows.
        storage_offset: the offset that it shows.
        memory_format: accepted.
        dtype: the dtype that it shows.
        layout: accepted.
        device: the processor, or meta.
        pin_memory: accepted.
        requires_grad: whether ops on it are recorded.
        dispatch_sizes_strides_policy: accepted; a class whose ``shape`` differs defines it.
        dispatch_device: accepted; a class whose ``device`` differs defines it.
        dispatch_layout: accepted.
        **internal: accepted.

    Raises:
        TypeError: the class defines no ``__torch_dispatch__``.
    """
    if cls not in DISPATCHING:
        raise TypeError(f"_make_wrapper_subclass: class {cls.__name__} must define a classmethod __torch_dispatch__")
    on_meta = is_meta(device)  # the default device if it is None
    if device is not None and not on_meta:
        _core.require_device(device)
    dtype = _core.get_default_dtype() if dtype is None else dtype
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    sizes = tuple(int(n) for n in size)
    with planning():  # without memory
        like = _core.empty(sizes, dtype) if strides is None else _core.empty_strided(sizes, tuple(strides), dtype)
        if storage_offset:
            count = storage_offset + like.untyped_storage().nbytes() // dtype.itemsize
            like = _core.empty((count,), dtype).as_strided(sizes, like.stride(), storage_offset)
    return Tensor._make_hollow(cls, like, requires_grad, not on_meta)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The new value of a parameter into which the entry ``other`` of a state dict is loaded, where
    ``taeda.__future__.set_swap_module_params_on_conversion`` is set. ``__torch_function__`` of either may override it.

    Args:
        self: the parameter.
        other: the entry.
        assign: take ``other`` itself, rather than its values.
    Returns:
        A tensor.
    Examples:
        >>> taeda.zeros(2).module_load(taeda.ones(2))
        tensor([1., 1.])
    """
    if has_torch_function((self, other)):
        return handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
    if not isinstance(other, Tensor):
        raise not_tensor("module_load(): argument 'other' (position 2)", other)
    return other.detach() if assign else self.copy_(other).detach()


def _rdiv(self: Tensor, other: Any) -> Any:
    return self.reciprocal() * other


_rdiv.__name__ = _rdiv.__qualname__ = "__rdiv__"
_core.install("__rdiv__", _rdiv)
_core.install("module_load", module_load)
_core.install("_make_wrapper_subclass", staticmethod(_make_wrapper_subclass))
_core.install("__torch_function__", classmethod(_tensor_torch_function))
_core.install("__init_subclass__", classmethod(_init_subclass))


# ---- what can be overridden ------------------------------------------------------------------------------------------


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a Tensor or of a class that overrides."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether ``func`` is a method of Tensor, or the getter of one of its attributes."""
    return func in _tensor_functions() or getattr(func, "__name__", None) == "__get__"


@functools.cache
def _tensor_functions() -> set:
    return {value for name, value in _own().items() if callable(value) and name not in _PLAIN}


def _namespaces() -> list[tuple[str, Any]]:
    """Modules whose functions can be overridden, by PyTorch's names; they lie above this one."""
    names = ("torch", "torch.functional", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
    complete()
    return [(name, importlib.import_module("taeda" + name[5:])) for name in names]


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that ``__torch_function__`` sees, by namespace."""
    found: dict[Any, list[Callable]] = {}
    for label, space in _namespaces():
        if label == "torch.functional":  # parts of "torch"
            continue
        found[space] = [
            f
            for name, f in vars(space).items()
            if not name.startswith("_") and isinstance(f, (_core.Op, _core.Composite))
        ]
    found[Tensor] = [f for name, f in _own().items() if name not in _PLAIN and callable(f)]
    return found


@functools.cache
def get_ignored_functions() -> set[Callable]:
    """Public functions that are never overridden: they make tensors, or ask about settings."""
    overridable = {f for functions in get_overridable_functions().values() for f in functions}
    return {
        f
        for _, space in _namespaces()
        for name, f in vars(space).items()
        if callable(f) and not name.startswith("_") and not isinstance(f, type) and f not in overridable
    }


@functools.cache
def get_testing_overrides() -> dict[Callable, Callable]:
    """For each function that can be overridden, one of the same signature that gives -1."""
    import inspect

    made = {}
    for functions in get_overridable_functions().values():
        for f in functions:
            try:
                parameters = ", ".join(str(p) for p in inspect.signature(f).parameters)
            except (TypeError, ValueError):
                parameters = "*args, **kwargs"
            made[f] = _constant(parameters)
    return made


def _constant(parameters: str) -> Callable:
    def constant(*args: Any, **kwargs: Any) -> int:
        return -1

    constant.__doc__ = f"({parameters}) -> -1"
    return constant


def resolve_name(f: Callable) -> str | None:
    """The public name of an overridable function, such as ``torch.nn.functional.relu``."""
    if isinstance(f, _core.Method):  # it equals its op
        return f"torch.Tensor.{f.__name__}"
    try:
        return _names().get(f)
    except TypeError:  # it has no hash
        return None


@functools.cache
def _names() -> dict[Any, str]:
    """The public names of functions. Of several, the last namespace's counts, as in PyTorch."""
    found: dict[Any, str] = {}
    for name, value in _own().items():
        if name in _PLAIN:
            continue
        if isinstance(value, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
            found[value.__get__] = f"torch.Tensor.{name}.__get__"
            if not isinstance(value, property) or value.fset:
                found[value.__set__] = f"torch.Tensor.{name}.__set__"
        elif callable(value):
            found[value] = f"torch.Tensor.{name}"
    for label, space in _namespaces():
        for name, value in vars(space).items():
            if not name.startswith("_") and callable(value) and not isinstance(value, type):
                found[value] = f"{label}.{name}"
    return found


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorator: the function can be overridden by what ``dispatcher(*args, **kwargs)`` gives."""

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate
