"""Parametrisations: a parameter computed by modules from others, wherever it is read."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy

from ..._typed import Tensor
from ...autograd import no_grad
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_caching = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """A context in which each parametrised tensor is computed once and kept, as for a weight that is used many times.

    Yields:
        Nothing.

    Examples:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> with nn.utils.parametrize.cached():
        ...     first, second = layer.weight, layer.weight
        >>> first is second, layer.weight is layer.weight
        (True, False)
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _register(module: Module, name: str, x: Tensor) -> None:
    if isinstance(x, Parameter):
        module.register_parameter(name, x)
    else:
        module.register_buffer(name, x)


def _assign(target: Tensor, source: Tensor) -> None:
    """Make ``target`` hold ``source``'s values, with its sizes."""
    if target is not source:
        target.data = source.detach()


def _same(what: str, x, like: Tensor, flag: str = "unless `unsafe` flag is enabled") -> None:
    """Raise unless ``x`` is a tensor of the dtype and shape of ``like``."""
    if not isinstance(x, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(x).__name__}.")
    for attribute in ("dtype", "shape"):
        expected, got = getattr(like, attribute), getattr(x, attribute)
        if expected != got:
            raise ValueError(
                f"{what} may not change the {attribute} of the tensor, {flag}.\nunparametrized {attribute}: "
                f"{expected}\n"
                f"parametrized {attribute}: {got}"
            )


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, applied in order to ``original`` (or ``original0``, ``original1``, ...).

    :func:`register_parametrization` makes it; a module has it as ``module.parametrizations.<name>``.

    Args:
        modules: the parametrisations.
        original: the tensor as it was. Any shape and dtype.
        unsafe: do not check that dtype and shape stay.

    Raises:
        ValueError: dtype or shape change.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> layer.parametrizations.weight.original0.shape
        taeda.Size([3, 1])
        >>> bool((layer.parametrizations.weight() == layer.weight).all())
        True
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach().clone()
        with no_grad():
            new = self._inverted(original)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\noriginal.dtype: "
                    f"{original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            _assign(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _same("Registering a parametrization", self(), before)

    def _inverted(self, value):
        """The originals from which the parametrisations, where they can be inverted, make ``value``."""
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:
                    pass
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrised tensor becomes ``value``."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            parts = [value] if self.is_tensor else value
            if not isinstance(parts, Sequence) or len(parts) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got "
                    f"{type(value).__name__}."
                )
            names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
            for name, part in zip(names, parts, strict=True):
                original = getattr(self, name)
                if not isinstance(part, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(part).__name__}")
                if part.dtype != original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {part.dtype} while `{name}` has dtype "
                        f"{original.dtype}"
                    )
                _assign(original, part)

    def forward(self) -> Tensor:
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in list(self)[1:]:
            x = module(x)
        return x


def _inject_class(module: Module) -> None:
    """Give the module a class of its own, to put properties on."""
    cls = type(module)

    def getstate(self):
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")

    def deepcopied(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
            if hasattr(self, slot):
                setattr(replica, slot, deepcopy(getattr(self, slot), memo))
        return replica

    members: dict = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deepcopied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    if hasattr(module, name):
        raise AssertionError(f"Module already has an attribute named '{name}'")

    def get(self) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _caching:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set(self, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a tensor of a module by another module from now on; several are applied one after the other.

    Args:
        module: whose parameter or buffer.
        tensor_name: its name. Any shape and dtype.
        parametrization: a module from tensor to tensor. With a method ``right_inverse`` the tensor may be assigned to.
        unsafe: allow a change of dtype or shape.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such tensor, or dtype or shape change.

    Examples:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            y = getattr(module, tensor_name)
            x = parametrization(y)
            _same("Registering a parametrization", x, y)
            if hasattr(parametrization, "right_inverse"):
                try:
                    z = parametrization.right_inverse(x)
                except NotImplementedError:
                    z = y
                if not isinstance(z, Tensor):
                    raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(z).__name__}")
                _same("parametrization.right_inverse", z, y)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module is parametrised.

    Args:
        module: the module.
        tensor_name: the tensor; any of them if None.

    Returns:
        A bool.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> nn.utils.parametrize.is_parametrized(layer, "weight"), nn.utils.parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrised tensor an ordinary parameter again.

    Args:
        module: the module, which is changed.
        tensor_name: the tensor.
        leave_parametrized: with its present value; else with the original one.

    Returns:
        ``module``.

    Raises:
        ValueError: the tensor is not parametrised, or there are several originals to leave.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=4, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _assign(original, getattr(module, tensor_name))
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t.detach()) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before the first parametrisation changed it.

    Args:
        module: the module.

    Returns:
        The class.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> type(layer).__name__, nn.utils.parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrisations of another one, with their originals.

    Args:
        from_module: whose they are.
        to_module: the module that gets them.
        tensor_name: of which tensor; of all if None.

    Returns:
        ``to_module``.

    Raises:
        KeyError: ``tensor_name`` is not parametrised.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> other = nn.utils.parametrize.transfer_parametrizations_and_params(layer, nn.Linear(4, 3))
        >>> bool((other.weight == layer.weight).all())
        True
    """
    if not is_parametrized(from_module):
        return to_module
    if tensor_name is not None and tensor_name not in from_module.parametrizations:
        raise KeyError(
            f"transfer_parametrizations_and_params: {tensor_name!r} of from_module is not parametrized; expected one "
            f"of {list(from_module.parametrizations)}"
        )
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, key, getattr(source, key))
    return to_module
