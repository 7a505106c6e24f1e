"""Modules that hold others: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections import abc as container_abcs
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, islice
from typing import Any, NoReturn, Self, SupportsIndex, overload

from ..._typed import Tensor
from ..parameter import Parameter
from .module import Module, _indent

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _index(length: int, idx) -> int:
    """``idx`` as a position, negative ones counted from the end."""
    idx = operator.index(idx)
    if not -length <= idx < length:
        raise IndexError(f"index {idx} is out of range")
    return idx % length if length else 0


class _Row(Module):
    """Children in order, by position; negative ones count from the end."""

    def _name(self, idx) -> str:
        raise NotImplementedError

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def __delitem__(self, idx) -> None:
        for name in list(self._modules)[idx] if isinstance(idx, slice) else [self._name(idx)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        """Make ``modules`` the children, by their positions."""
        self._modules.clear()
        self._modules.update((str(i), m) for i, m in enumerate(modules))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, module: Module) -> Self:
        """Add a child at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int) -> Module:
        """Remove and return the child at ``key``."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Row):
    """Calls its children in order, each on the result of the one before.

    Args:
        *args: modules, or one OrderedDict of them by name.

    Shape:
        input: as the first child takes it.
        output: what the last child gives.

    Raises:
        TypeError: a child is no module, as where a list is given: write ``Sequential(*layers)``.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> model(taeda.randn(3, 4)).shape
        taeda.Size([3, 2])
        >>> model[0]
        Linear(in_features=4, out_features=8, bias=True)
        >>> len(model), model[:2](taeda.randn(3, 4)).shape
        (3, taeda.Size([3, 8]))
    """

    def __init__(self, *args: Module | OrderedDict[str, Any]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)  # type: ignore[arg-type]

    def _name(self, idx) -> str:
        return next(islice(self._modules, _index(len(self), idx), None))

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    @overload
    def __getitem__(self, idx: SupportsIndex) -> Any: ...

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name(idx)]

    def __add__(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        result = Sequential()
        for module in chain(self, other):
            result.append(module)
        return result

    def __iadd__(self, other) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return self.extend(list(self) * (other - 1))

    def insert(self, index: int, module: Module) -> Self:
        """Add a child before position ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        values = list(self._modules.values())
        values.insert(index, module)
        self._renumber(values)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add several children at the end."""
        for module in sequential:
            self.append(module)
        return self

    def forward(self, input):  # scripts take its types from the children
        for module in self:
            input = module(input)
        return input


class ModuleList(_Row):
    """A list of modules whose parameters the module that has it knows. In a plain list they would be neither trained
    nor saved.

    It has no ``forward``: index it or loop over it.

    Args:
        modules: what is in the list at first.

    Raises:
        TypeError: an element is no module.

    Examples:
        >>> class Deep(nn.Module):
        ...     def __init__(self, depth):
        ...         super().__init__()
        ...         self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
        ...
        ...     def forward(self, x):
        ...         for layer in self.layers:
        ...             x = x + layer(x).relu()
        ...         return x
        >>> model = Deep(3)
        >>> model(taeda.ones(2, 4)).shape, len(list(model.parameters()))
        (taeda.Size([2, 4]), 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _name(self, idx) -> str:
        return str(_index(len(self), idx))

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    @overload
    def __getitem__(self, idx: SupportsIndex) -> Any: ...

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._name(idx)]

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        result = ModuleList()
        for i, module in enumerate(chain(self, other)):
            result.add_module(str(i), module)
        return result

    def __repr__(self) -> str:
        """Equal neighbours are shown once, with their range."""
        texts = [repr(item) for item in self]
        if not texts:
            return self._get_name() + "()"
        lines = []
        start = 0
        for i in range(1, len(texts) + 1):
            if i == len(texts) or texts[i] != texts[start]:
                n = i - start
                label = f"({start})" if n == 1 else f"({start}-{i - 1})"
                body = texts[start] if n == 1 else f"{n} x {texts[start]}"
                lines.append(_indent(f"{label}: {body}"))
                start = i
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Add a child before position ``index``."""
        values = list(self._modules.values())
        values.insert(index, module)
        for i, m in enumerate(values):
            self._modules[str(i)] = m

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several children at the end."""
        if not isinstance(modules, container_abcs.Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(Module):
    """A dict of modules whose parameters the module that has it knows. The keys are names; their order is kept.

    Args:
        modules: a mapping of names to modules, or pairs.

    Raises:
        TypeError: a value is no module, or a key no string.
        KeyError: a key is empty or has a dot.

    Examples:
        >>> heads = nn.ModuleDict({"price": nn.Linear(8, 1), "kind": nn.Linear(8, 5)})
        >>> heads["kind"](taeda.randn(2, 8)).shape
        taeda.Size([2, 5])
        >>> list(heads.keys())
        ['price', 'kind']
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove every child."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return a child."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """(name, child) pairs."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The children."""
        return self._modules.values()

    def update(self, modules) -> None:
        """Add or replace children from a mapping or from (name, module) pairs."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(items, owner: str):
    """(key, value) pairs of a mapping, a ModuleDict-like object or an iterable of pairs."""
    if not isinstance(items, container_abcs.Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(items).__name__}"
        )
    if isinstance(items, container_abcs.Mapping | ModuleDict | ParameterDict):
        yield from items.items()
        return
    for i, pair in enumerate(items):
        if not isinstance(pair, container_abcs.Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required")
        yield pair


def _as_parameter(value: Any) -> Any:
    """A plain Tensor becomes a Parameter; anything else stays."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(key, value, kind_of) -> str:
    if isinstance(value, Tensor):
        size = "x".join(str(n) for n in value.size())
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        device = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
        return f"  ({key}): {kind} containing: [{kind_of(value)} of size {size}{device}]"
    return f"  ({key}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters. The module that has it sees them: they are trained, saved and moved with it.

    Tensors that are no parameters become parameters. Other values are kept as they are.

    Args:
        values: what is in the list at first.

    Raises:
        TypeError: ``values`` is not iterable.

    Examples:
        >>> scales = nn.ParameterList([taeda.ones(2), taeda.zeros(3)])
        >>> scales[1].requires_grad, len(list(scales.parameters()))
        (True, 2)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    @overload
    def __getitem__(self, idx: SupportsIndex) -> Any: ...

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            result = self.__class__()
            for i in range(*idx.indices(len(self))):
                result.append(self[i])
            return result
        return getattr(self, str(_index(len(self), idx)))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_index(len(self), idx)), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several values at the end."""
        if not isinstance(values, container_abcs.Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_described(i, p, operator.attrgetter("dtype")) for i, p in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters. The module that has it sees them: they are trained, saved and moved with it.

    Tensors that are no parameters become parameters. Other values are kept as they are.

    Args:
        parameters: a dict, or pairs ``(str, value)``, of what is in it at first.

    Raises:
        TypeError: ``parameters`` is no mapping and no list of pairs, or a key is no string.

    Examples:
        >>> weights = nn.ParameterDict({"left": taeda.ones(2), "right": taeda.zeros(2)})
        >>> [name for name, p in weights.named_parameters()]
        ['left', 'right']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"{type(key).__name__})."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, self._attribute(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A ParameterDict of the same values."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, set to ``default`` first if it is absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return a value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the newest (key, value) pair."""
        key = next(reversed(list(self._keys)))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return self[key] if key in self else default  # noqa: SIM401 - this is that method

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A ParameterDict with ``default`` under each of ``keys``."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> KeysView[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """(key, value) pairs."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters) -> None:
        """Add or replace values from a mapping or from pairs; keys of a plain dict are taken in sorted order."""
        ordered = isinstance(parameters, OrderedDict | ParameterDict) or not isinstance(parameters, Mapping)
        for key, value in _pairs(parameters if ordered else sorted(parameters.items()), "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_described(k, v, Tensor.type) for k, v in self.items())

    def __call__(self, input: Any) -> NoReturn:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self
