"""Tensors that a Module registers when they are assigned to it: Parameter, Buffer and their uninitialised forms."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from taeda.overrides import DisableTorchFunction, _a_mode_asks, _disabled_torch_function_impl

from .._core import Size, preserve_format
from .._core.tensor import as_subclass
from .._typed import Tensor
from ..ops.creation import empty

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


_NOTHING = nullcontext()


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance) -> bool:
        """Also true of a Tensor of another subclass that calls itself a parameter through ``_is_param``."""
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a parameter of the module it is assigned to: it is trained, saved and moved with it.

    Args:
        data: the values: a tensor, of any shape and dtype, whose memory is shared. An empty one if None.
        requires_grad: whether gradients are wanted.

    Examples:
        >>> class Scale(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = nn.Parameter(taeda.ones(2))
        ...
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> list(Scale().parameters())
        [Parameter containing:
        tensor([1., 1.], requires_grad=True)]
    """

    __torch_function__ = _disabled_torch_function_impl

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None: ...

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            with DisableTorchFunction() if _a_mode_asks() else _NOTHING:
                return as_subclass(data.detach(), cls).requires_grad_(requires_grad)
        t: Any = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Parameter: expected detach() of {type(data).__name__} to give the same class, got "
                f"{type(t).__name__}; define detach() or pass a plain Tensor"
            )
        marked: Any = t
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.detach().clone(memory_format=preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        text = super().__repr__()
        return "Parameter containing:\n" + (text if type(self) is Parameter else f"Parameter({text})")

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = vars(self) or None
        args: tuple = (self.data, self.requires_grad, OrderedDict())
        return (_rebuild_parameter, args) if state is None else (_rebuild_parameter_with_state, (*args, state))


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    made = Parameter(data, requires_grad)
    vars(made).update(state)
    return made


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance) -> bool:
        """True for objects that :class:`Buffer` makes: Tensors marked by ``_is_buffer``."""
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to: saved and moved with it, but not trained.

    Args:
        data: the values: a tensor of any shape and dtype; an empty one if None.
        persistent: whether it is part of the module's ``state_dict``.

    Examples:
        >>> module = nn.Module()
        >>> module.mean = nn.Buffer(taeda.zeros(2))
        >>> list(module.state_dict()), list(module.parameters())
        (['mean'], [])
    """

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None: ...

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        if data is None:
            data = empty(0)
        t: Any = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


class UninitializedTensorMixin:
    """A tensor whose shape is not known until a lazy module's first call."""

    # the calls that a module and its loading make on a tensor before it has a shape
    _allowed = frozenset(
        "__hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to "
        "get_device".split()
    )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in cls._allowed or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `nn.parameter.{cls.__name__}` objects. When using LazyModules "
            "call `forward` with a dummy batch to initialize the parameters before calling functions"
        )

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Give the tensor its shape and memory (uninitialised) and its real class."""
        fresh = empty(shape, device=device or self.device, dtype=dtype or self.dtype)  # type: ignore[attr-defined]
        self.data = fresh
        self.__class__ = self.cls_to_become  # type: ignore[attr-defined]

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def size(self, dim=None):
        """The memory's size: empty."""
        return Size((0,)) if dim is None else Size((0,))[dim]

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter that gets its shape from the first input of a lazy module.

    Args:
        requires_grad: whether gradients are wanted.
        device: where it will be.
        dtype: its dtype.

    Raises:
        RuntimeError: its shape is asked for before ``materialize``.

    Examples:
        >>> weight = nn.LazyLinear(3).weight
        >>> type(weight).__name__
        'UninitializedParameter'
        >>> weight.materialize((3, 5))
        >>> type(weight).__name__, weight.shape
        ('Parameter', taeda.Size([3, 5]))
    """

    cls_to_become = Parameter

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None: ...

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer that gets its shape from the first input of a lazy module.

    Args:
        requires_grad: whether gradients are wanted.
        device: where it will be.
        dtype: its dtype.
        persistent: whether it is part of the module's ``state_dict``.

    Raises:
        RuntimeError: its shape is asked for before ``materialize``.

    Examples:
        >>> layer = nn.LazyBatchNorm1d()
        >>> type(layer.running_mean).__name__
        'UninitializedBuffer'
        >>> layer(taeda.randn(4, 3)).shape, layer.running_mean.shape
        (taeda.Size([4, 3]), taeda.Size([3]))
    """

    cls_to_become = Buffer  # not Tensor: an instance cannot change its class to an extension type

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(
            self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
        ) -> None: ...

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True):
        result = Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        result.persistent = persistent
        return result


def is_lazy(param) -> bool:
    """Whether ``param`` has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
