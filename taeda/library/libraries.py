"""Libraries: ops that are defined by a signature and given their implementations later, by keys of devices."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .._schema import read_schema
from .._warn import warn_caller
from ..aten import DECLARED
from .definition import FALLBACKS, KEYS, WAITING, CustomOpDef, device_types_of
from .registration import checked_tags, register_fake

#: Others that there are: an implementation for them is kept out of use here.
_OTHER_KEYS = {
    f"{prefix}{kind}"
    for prefix in ("", "autograd", "autocast", "sparse", "sparsecsr", "nestedtensor", "quantized")
    for kind in "cpu cuda xpu mps xla hpu ipu mtia meta lazy privateuse1 hip ve fpga maia vulkan".split()
} | set(
    "meta backendselect python fake functionalize adinplaceorview functorch funcTorchbatched funcTorchvmapmode batched "
    "vmapmode compositeexplicitautogradnonfunctional autogradother autogradnestedtensor tracer zerotensor conjugate "
    "negative named pythontlssnapshot catchall undefined mkldnncpu".lower().split()
)

#: Namespaces that a Library of kind "DEF" has.
_defined: set[str] = set()
#: Names of ops and keys for which a Library has given an implementation.
_implemented: set[tuple[str, str]] = set()


class Library:
    """Ops under the name ``ns``: defined here (kind "DEF", "FRAGMENT"), or given implementations (kind "IMPL").

    What it defines goes with it: keep it as long as the ops are used.

    Args:
        ns: the namespace, before the ``::`` of names.
        kind: ``"DEF"``, ``"FRAGMENT"`` or ``"IMPL"``.
        dispatch_key: for which devices :meth:`impl` gives implementations, if it does not say.

    Raises:
        ValueError: there is no such kind, or the namespace is reserved.
        RuntimeError: there is another Library of kind "DEF" for the namespace.

    Examples:
        >>> lib = taeda.library.Library("docs_lib", "DEF")
        >>> lib.define("double(Tensor x) -> Tensor")
        'double'
        >>> lib.impl("double", lambda x: x * 2, "CPU")
        >>> taeda.library.ops.docs_lib.double(taeda.tensor(2.0))
        tensor(4.)
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim", "prims"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and (ns in _defined or ns == "aten"):
            raise RuntimeError(
                f"Only one Library of kind 'DEF' may be made for the namespace {ns}; use kind 'FRAGMENT' to add to it"
            )
        _check_key(dispatch_key)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: list[str] = []
        self._given: list[tuple[str, str]] = []
        self._fallen: list[str] = []
        if kind == "DEF":
            _defined.add(ns)
        ended = ns if kind == "DEF" else ""
        self._end = weakref.finalize(self, _forget, self._names, self._given, self._fallen, ended)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """An op of the name and the signature in ``schema``, without an implementation yet.

        Args:
            schema: ``"name(Tensor x) -> Tensor"``.
            alias_analysis: ``""``, ``"FROM_SCHEMA"`` or ``"CONSERVATIVE"``: the same here.
            tags: what is said of the op.

        Returns:
            The name.

        Raises:
            RuntimeError: the schema cannot be read, there is an op of that name, or no such ``alias_analysis``.
            ValueError: the Library is of kind "IMPL".
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise ValueError(f"Library('{self.ns}', 'IMPL') gives implementations: define needs 'DEF' or 'FRAGMENT'")
        name = read_schema(schema).name.partition(".")[0].rpartition("::")[2]
        _define(f"{self.ns}::{name}", schema, checked_tags(tags))
        self._names.append(f"{self.ns}::{name}")
        return name

    def impl(
        self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:  # fmt: skip
        """Let ``fn`` be what an op does, if ``dispatch_key`` is for the CPU, for any device or for autocast.

        Args:
            op_name: the op, or its name.
            fn: the function.
            dispatch_key: for which devices; ``""``: the Library's.
            with_keyset: refused if True: there are no sets of keys.
            allow_override: False: what was given for the op and the key before stays.

        Raises:
            TypeError: ``fn`` cannot be called.
            RuntimeError: there is no such key, ``op_name`` is no op and no name, or there is an implementation and
                ``allow_override`` is False.
            NotImplementedError: ``with_keyset``.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError("impl: with_keyset=True: taeda has no sets of dispatch keys to give to fn")
        name = _short_name(op_name)
        key = dispatch_key or self.dispatch_key
        given = (f"{self.ns}::{name}", key)
        if not allow_override and given in _implemented:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s "
                f"behavior for {key} dispatch key and {self.ns} namespace."
            )
        _implement(*given, fn)
        _implemented.add(given)
        self._given.append(given)

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Let ``fn(op, *args, **kwargs)`` do what a program's ops without an implementation for the CPU do.

        Args:
            fn: the function.
            dispatch_key: ``"CPU"``; for other devices it is kept out of use; ``""``: the Library's.
            with_keyset: refused if True: there are no sets of keys.

        Raises:
            RuntimeError: the namespace is not ``"_"``, which stands for all, or the key has a fallback.
            AssertionError: no key is given.
            NotImplementedError: ``with_keyset``.
        """
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f'Fallback can only be registered using library fragment on the global namespace "_" but it is '
                f"{self.ns}"
            )
        assert key, "dispatch_key must not be empty for fallback"
        _check_key(key)
        if with_keyset:
            raise NotImplementedError("fallback: with_keyset=True: taeda has no sets of dispatch keys to give to fn")
        if key.lower() in FALLBACKS or key.lower().startswith("autocast"):
            raise RuntimeError(f"Tried to register multiple backend fallbacks for the same dispatch key {key}")
        FALLBACKS[key.lower()] = fn
        self._fallen.append(key.lower())

    def _register_fake(self, op_name: str, fn: Callable, _stacklevel: int = 1, **options: Any) -> None:
        register_fake(op_name, fn, lib=self)

    def _destroy(self) -> None:
        """Take back what it defined."""
        self._end()


def _forget(names: list[str], given: list[tuple[str, str]], fallen: list[str], ns: str) -> None:
    for name in names:
        DECLARED.pop(name, None)
    _implemented.difference_update(given)
    for key in fallen:
        FALLBACKS.pop(key, None)
    _defined.discard(ns)


def _check_key(key: str) -> None:
    if key.lower() not in KEYS | _OTHER_KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}")


def _short_name(op: Any) -> str:
    """The name of an op, given as such or as the op, without namespace and overload."""
    if not isinstance(op, str) and not hasattr(op, "__name__"):
        raise RuntimeError(
            f"impl should be passed either a name or an OpOverload object as the first argument, got {type(op)}"
        )
    return str(getattr(op, "__name__", op)).rpartition("::")[2].partition(".")[0]


def _define(name: str, schema: str, tags: list) -> None:
    if name in DECLARED:
        raise RuntimeError(
            f"Tried to register an operator ({name}) with the same name and overload name multiple times: {name} is "
            f"defined, as {name}{DECLARED[name]._schema}"
        )
    CustomOpDef(name, None, read_schema(schema).mutated, schema, tags)


def _implement(name: str, key: str, function: Callable) -> None:
    _check_key(key)
    if name not in DECLARED:
        WAITING.setdefault(name, []).append((key, function))
        if name.startswith("aten::") and key.lower() in KEYS:
            warn_caller(f"impl: {name} keeps its implementation: those of PyTorch's own ops are not replaced here")
    else:
        DECLARED[name].implement(key, function)


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """An op ``library::op`` with the signature ``schema``, ``"(Tensor x) -> Tensor"``, without an implementation yet.

    Also a decorator of one.

    Args:
        qualname: ``"library::op"``, or ``"op"`` with ``lib``.
        schema: the signature.
        lib: a :class:`Library`, with which the op goes.
        tags: what is said of the op.

    Returns:
        A decorator, which gives the op its implementation.

    Raises:
        ValueError: the name is not of that form, or there is no schema.
        RuntimeError: the schema cannot be read, or there is an op of that name.

    Examples:
        >>> @taeda.library.define("docs::less", "(Tensor x) -> Tensor")
        ... def less(x):
        ...     return x - 1
        >>> taeda.library.ops.docs.less(taeda.tensor(2.0))
        tensor(1.)
    """
    if schema is None or callable(schema):
        raise ValueError(f"define: expected a name like 'library::op' and a schema, got {qualname!r} and {schema!r}")
    name = qualname if lib is None or "::" in qualname else f"{lib.ns}::{qualname}"
    _define(name, schema, checked_tags(tags))
    if lib is not None:
        lib._names.append(name)

    def decorate(function: Callable) -> Callable:
        _implement(name, "", function)
        return function

    return decorate


def impl(qualname: Any, types: Any = "", func: Any = None, *, lib: Any = None) -> Any:
    """Let a function be what an op does on some devices; also a decorator, and as ``impl(lib, name, key)``.

    Args:
        qualname: ``library::op``, or with ``lib`` its last part.
        types: ``"cpu"``, several such names, or empty for any; ``"meta"`` is as :func:`register_fake`; others are not
            used.
        func: the function.
        lib: a :class:`Library`.

    Returns:
        ``func``.

    Examples:
        >>> _ = taeda.library.define("docs::more", "(Tensor x) -> Tensor")
        >>> _ = taeda.library.impl("docs::more", "cpu", lambda x: x + 1)
        >>> taeda.library.ops.docs.more(taeda.tensor(2.0))
        tensor(3.)
    """
    if isinstance(qualname, Library):  # the older form
        lib, qualname, types, func = qualname, types, func or qualname.dispatch_key, None
        types = [types]
    else:
        types = [types] if isinstance(types, str) else types
        for kind in types:
            if kind not in ("", "default"):
                device_types_of(kind)
    name = qualname if lib is None else f"{lib.ns}::{_short_name(qualname)}"

    def decorate(function: Callable) -> Callable:
        for key in types:
            _implement(name, key, function)
        return function

    return decorate if func is None else decorate(func)
