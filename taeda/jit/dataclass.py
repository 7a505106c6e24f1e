"""The methods that ``@dataclass`` writes, as source that scripts are compiled from."""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import sys
from typing import Any

_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_WRITTEN = frozenset(("__init__", "__eq__", *_ORDER))


def is_written(cls: type, method: Any) -> bool:
    """Whether ``@dataclass`` wrote a method of ``cls``: no file has it, or the module ``dataclasses`` does."""
    file = inspect.unwrap(method).__code__.co_filename
    return dataclasses.is_dataclass(cls) and (not linecache.getline(file, 1) or method.__module__ == "dataclasses")


def written_method(cls: type, name: str) -> Any:
    """The method ``name`` that ``@dataclass`` wrote, as a function that has source; None for methods that scripts do
    not need, such as ``__repr__``.

    Raises:
        NotImplementedError: a field has a default factory, which scripts cannot call.
    """
    if name not in _WRITTEN:
        return None
    space = dict(vars(sys.modules.get(cls.__module__, sys)))
    lines = _init(cls, space) if name == "__init__" else _comparison(cls, name)
    space.setdefault(cls.__name__, cls)
    file = f"<{cls.__module__}.{cls.__qualname__}.{name} of a dataclass>"
    text = "".join(f"{line}\n" for line in lines)
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), space)
    made = space[name]
    made.__module__ = cls.__module__
    return made


def is_field(cls: Any, name: str) -> bool:
    """Whether instances keep an annotated ``name``: all of it but what only ``__init__``, or the class, has."""
    known = vars(cls).get("__dataclass_fields__", {}).get(name)
    return known is None or known._field_type.name == "_FIELD"


def _init(cls: Any, space: dict[str, Any]) -> list[str]:
    """``__init__``; types and defaults that are objects are put into ``space``."""
    parameters, body, extra = [], [], []
    for name, field in cls.__dataclass_fields__.items():
        kind = field.type
        if field._field_type.name == "_FIELD_CLASSVAR":
            continue
        if field.default_factory is not dataclasses.MISSING:
            raise NotImplementedError(
                f"{cls.__name__}.{name}: default factories of dataclasses are not supported in scripts"
            )
        if field._field_type.name == "_FIELD_INITVAR":
            kind = kind.type if isinstance(kind, dataclasses.InitVar) else kind[kind.index("[") + 1 : -1]
            extra.append(name)
        given = name
        if field.init:
            annotation = kind if isinstance(kind, str) else f"_type_{name}"
            space[f"_type_{name}"], space[f"_default_{name}"] = kind, field.default
            default = "" if field.default is dataclasses.MISSING else f" = _default_{name}"
            star = ["*"] if field.kw_only and "*" not in parameters else []
            parameters += [*star, f"{name}: {annotation}{default}"]
        elif field.default is not dataclasses.MISSING:
            given = repr(field.default)
        else:
            continue
        if name not in extra:
            body.append(f"self.{name} = {given}")
    if hasattr(cls, "__post_init__"):
        body.append(f"self.__post_init__({', '.join(extra)})")
    return [f"def __init__(self, {', '.join(parameters)}):", *(f"    {line}" for line in body or ["pass"])]


def _comparison(cls: Any, name: str) -> list[str]:
    """``__eq__``, or a comparison of the fields one after the other."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    lines = [f"def {name}(self, other: {cls.__name__}) -> bool:"]
    if name == "__eq__":
        return [*lines, f"    return {' and '.join(f'self.{n} == other.{n}' for n in names) or 'True'}"]
    for n in names:
        lines += [f"    if self.{n} != other.{n}:", f"        return self.{n} {_ORDER[name][0]} other.{n}"]
    return [*lines, f"    return {len(_ORDER[name]) == 2}"]
