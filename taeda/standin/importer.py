"""The import hook: ``torch`` and ``torch.x.y`` as other names of ``taeda`` and ``taeda.x.y``.

A submodule of ``torch`` is the very module of taeda under a second name, so classes, functions and state are the same
objects whichever name a program uses. Private modules of PyTorch that packages reach into are in :mod:`.overlay`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import internals

#: The version of PyTorch whose behaviour taeda follows.
TORCH_VERSION = "2.13.0"

#: PyTorch's name of a module, where taeda's differs.
RENAMED = {
    "autograd.anomaly_mode": "taeda.autograd.anomaly", "autograd.grad_mode": "taeda.autograd.modes",
    "_functorch.eager_transforms": "taeda.func.transforms", "_functorch.vmap": "taeda.func.vmap",
    "distributed.checkpoint.api": "taeda.distributed.checkpoint",
    "distributed.tensor._utils": "taeda.distributed.tensor.layout", "optim.adamw": "taeda.optim.adam",
    "optim._adafactor": "taeda.optim.adafactor", "optim._muon": "taeda.optim.muon",
    **{f"utils.data.datapipes.iter.{name}": "taeda.utils.data.datapipes.iter.files"
       for name in ("filelister", "fileopener", "streamreader")},
    **{f"utils.data.datapipes.map.{name}": "taeda.utils.data.datapipes.map"
       for name in ("callable", "combinatorics", "combining", "grouping", "utils")},
    "types": "taeda.standin.overlay.types", "version": "taeda.standin.overlay.version",
}  # fmt: skip

_OVERLAY = "taeda.standin.overlay"

#: Packages of taeda that PyTorch does not have, or has with another meaning.
_OWN = ("_core", "io", "kernels", "ops", "standin")

#: Names of the package that ``torch`` does not have.
_HIDDEN = (*_OWN, "types")


#: Modules of Python's own library that PyTorch imports, and that programs then find in their packages:
#: ``import torch, urllib; urllib.request.urlopen(...)``.
_BROUGHT_ALONG = ("multiprocessing.connection", "multiprocessing.resource_sharer", "unittest.mock", "urllib.request")


def _version() -> str:
    from taeda import __version__

    return f"{TORCH_VERSION}+taeda.{__version__}"


def _home(name: str) -> str | None:
    """The module that stands for ``torch.<name>``, or None."""
    if name in RENAMED:
        return RENAMED[name]
    own = name.partition(".")[0] in _OWN
    for candidate in (f"{_OVERLAY}.{name}",) if own else (f"taeda.{name}", f"{_OVERLAY}.{name}"):
        try:
            # a package may have made a module of its own, which has no file
            if importlib.util.find_spec(candidate) is not None or candidate in sys.modules:
                return candidate
        except (ModuleNotFoundError, ValueError):
            continue
    return None


def _is_module(name: str) -> bool:
    """Whether there is a ``torch.<name>`` to import."""
    return _home(name) is not None or internals.has_module(name)


def _lacking(name: str) -> str:
    return f"(taeda stands in for PyTorch here, and has no {name})"


class _Loader(importlib.abc.Loader):
    """Gives the module of taeda that a name of torch stands for; without one, a module for the names of
    :mod:`.internals`."""

    def __init__(self, home: str | None) -> None:
        self.home = home

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        if self.home is None:
            module = types.ModuleType(spec.name, f"``{spec.name}``: what packages take from it.")
            self.own: tuple[Any, Any] = spec, self
            return module
        module = importlib.import_module(self.home)
        self.own = module.__spec__, module.__dict__.get("__loader__")
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system has put this hook's spec into a module that has one already.
        module.__spec__, loader = self.own
        if loader is not None:
            module.__loader__ = loader
        _name_what_is_missing(module)
        _adopt()

    def get_code(self, name: str) -> types.CodeType | None:
        """The code of the module, for ``-m torch.distributed.run``."""
        if self.home is None:
            return None
        spec = importlib.util.find_spec(self.home)
        loader = None if spec is None else spec.loader
        loader = loader.loader if isinstance(loader, _Entering) else loader
        return loader.get_code(self.home) if isinstance(loader, importlib.abc.InspectLoader) else None


def _torch_name(module: types.ModuleType) -> str:
    name = module.__name__
    if name.startswith("torch."):  # a module made for names of `internals`
        return name
    inner = name.removeprefix(_OVERLAY if name.startswith(_OVERLAY) else "taeda").removeprefix(".")
    return f"torch.{_CLASSES_OF.get(inner, inner)}"


def _name_what_is_missing(module: types.ModuleType) -> None:
    """Let ``module`` import its submodules when they are named, and report missing names in PyTorch's terms."""
    own = module.__dict__.get("__getattr__")
    if getattr(own, "standin", False):
        return
    public = _torch_name(module)
    if not hasattr(module, "__path__") and internals.has_modules_in(public.removeprefix("torch.")):
        module.__path__ = []

    def __getattr__(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        if not name.startswith("__") and is_installed():
            full = f"{public}.{name}"
            is_module = full in sys.modules or _is_module(full.removeprefix("torch."))
            if is_module and not internals.has(public.removeprefix("torch."), name):
                return importlib.import_module(full)
            if name == "torch":  # PyTorch's modules import it
                return sys.modules["torch"]
            try:
                return internals.find(public.removeprefix("torch."), name)
            except AttributeError:
                pass
            raise AttributeError(f"module '{public}' has no attribute '{name}' {_lacking(full)}", name=name, obj=module)
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'", name=name, obj=module)

    __getattr__.standin = True  # type: ignore[attr-defined]
    module.__getattr__ = __getattr__  # type: ignore[method-assign]


class _Entering(importlib.abc.Loader):
    """Loads a module of taeda as ``loader`` does, and enters it under PyTorch's name at once."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _enter(module.__name__, module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def _own_spec(fullname: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    """The spec of a module of taeda, which enters itself when it is loaded."""
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _Entering(spec.loader)
    return spec


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``torch.*`` and ``functorch`` in taeda, and the package metadata of ``torch``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith("taeda.") and _public(fullname):
            return _own_spec(fullname, path)
        if not fullname.startswith("torch.") and fullname.partition(".")[0] != "functorch":
            return None
        home = _home(fullname.removeprefix("torch."))
        if home is None and not internals.has_module(fullname.removeprefix("torch.")):
            raise ModuleNotFoundError(f"No module named '{fullname}' {_lacking(fullname)}", name=fullname)
        found = None if home is None else importlib.util.find_spec(home)
        is_package = found is None or found.submodule_search_locations is not None
        spec = importlib.machinery.ModuleSpec(
            fullname, _Loader(home), origin=None if found is None else found.origin, is_package=is_package
        )
        return spec

    @staticmethod
    def find_distributions(
        context: importlib.metadata.DistributionFinder.Context = importlib.metadata.DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[importlib.metadata.Distribution]:
        return [_Distribution()] if context.name in (None, "torch") else []

    def invalidate_caches(self) -> None:
        pass


class _Distribution(importlib.metadata.Distribution):
    """The metadata of an installed ``torch`` for ``importlib.metadata``."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return (
                f"Metadata-Version: 2.1\nName: torch\nVersion: {_version()}\nSummary: taeda, standing in for PyTorch\n"
            )
        return "torch\n" if filename == "top_level.txt" else None

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


_finder = _Finder()


def _root() -> types.ModuleType:
    """The module ``torch``: taeda's names, and what only PyTorch has."""
    import taeda

    torch = types.ModuleType("torch", taeda.__doc__)
    torch.__dict__.update({k: v for k, v in vars(taeda).items() if not k.startswith("__") and k not in _HIDDEN})
    torch.__path__ = list(taeda.__path__)
    torch.__file__ = taeda.__file__
    spec = importlib.machinery.ModuleSpec("torch", _RootLoader(), origin=taeda.__file__, is_package=True)
    torch.__spec__, torch.__loader__, torch.__package__ = spec, spec.loader, "torch"
    torch.torch = torch  # type: ignore[attr-defined]
    sys.modules["torch"] = torch
    overlay = importlib.import_module(_OVERLAY)
    torch.__dict__.update({name: getattr(overlay, name) for name in overlay.__all__})
    sys.modules["torch.ops"] = overlay.ops
    for name, dtype in overlay.DTYPES.items():
        torch.__dict__.setdefault(name, dtype)

    def __getattr__(name: str) -> Any:
        try:
            if name in _HIDDEN:
                raise AttributeError
            value = getattr(taeda, name)
        except AttributeError:
            if (not name.startswith("__") or name in ("__config__", "__future__")) and _is_module(name):
                return importlib.import_module(f"torch.{name}")
            try:
                return internals.find("", name)
            except AttributeError:
                pass
            compiled = importlib.import_module("torch._C")
            if name in vars(compiled) and not name.startswith("_"):
                return vars(compiled)[name]  # PyTorch shows what its compiled part has
            raise AttributeError(
                f"module 'torch' has no attribute '{name}' {_lacking('torch.' + name)}", name=name, obj=torch
            ) from None
        if isinstance(value, types.ModuleType) and value.__name__ == f"taeda.{name}":
            return importlib.import_module(f"torch.{name}")
        torch.__dict__[name] = value
        return value

    torch.__getattr__ = __getattr__  # type: ignore[method-assign]
    torch.__dir__ = lambda: sorted({*vars(torch), *dir(taeda)}.difference(_HIDDEN) | vars(torch).keys())  # type: ignore[method-assign]
    return torch


class _RootLoader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return sys.modules["torch"]

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def is_installed() -> bool:
    """Whether ``import torch`` gives taeda in this process."""
    return _finder in sys.meta_path


def install() -> types.ModuleType:
    """Make ``import torch``, and every ``torch.x``, mean taeda from here on; gives the module ``torch``.

    Raises:
        RuntimeError: PyTorch itself is loaded already: this has to come first.
    """
    if is_installed():
        return sys.modules["torch"]
    if "torch" in sys.modules:
        raise RuntimeError(
            "taeda.standin.install: torch is imported already; call install() before anything imports it, or start the "
            "program with `python -m taeda.standin`"
        )
    from taeda import _core

    for name in _BROUGHT_ALONG:
        importlib.import_module(name)
    torch = _root()
    sys.meta_path.insert(0, _finder)
    _adopt()
    _core.set_namespace("torch")
    return torch


#: Modules that :func:`_adopt` has seen, and the classes whose ``__module__`` it changed, with the old value.
_adopted: set[str] = set()
_renamed: list[tuple[type, str]] = []

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was made at run time

#: Modules of taeda whose classes PyTorch has in one of another name.
_CLASSES_OF = {"autograd.modes": "autograd.grad_mode", "autograd.anomaly": "autograd.anomaly_mode"}


def _adopt() -> None:
    """Enter the modules of taeda that are loaded by now under PyTorch's names, and say so in their classes.

    Those that are loaded later enter themselves (:class:`_Entering`), except for what a package makes without a file.

    ``<class 'torch.nn.modules.linear.Linear'>`` is what programs print; packages look for ``torch`` in
    ``type(x).__module__``, and a model that is saved whole can be read by PyTorch.
    """
    for name, module in list(sys.modules.items()):
        if name == "taeda" or (name.startswith("taeda.") and _public(name)):
            if not getattr(getattr(module, "__spec__", None), "_initializing", False):
                _enter(name, module)


def _enter(name: str, module: types.ModuleType) -> None:
    """Enter the module ``name`` of taeda, which is loaded, under PyTorch's name."""
    if name in _adopted:
        return
    _adopted.add(name)
    inner = name.removeprefix("taeda").removeprefix(".")
    if inner and inner not in RENAMED:
        sys.modules[f"torch.{inner}"] = module
        _name_what_is_missing(module)
    for label, value in list(vars(module).items()):
        # modes of packages recognise the functions of `nn.init` by their module, to leave values out
        kinds = (type, types.FunctionType) if inner == "nn.init" else type
        own = isinstance(value, kinds) and value.__module__ == name and label == value.__qualname__
        fixed = isinstance(value, type) and not value.__flags__ & _HEAP_TYPE  # a type of `_core.set_namespace`
        if own and not fixed:
            _renamed.append((value, name))
            value.__module__ = "torch" if inner in RENAMED else f"torch.{_CLASSES_OF.get(inner, inner)}".rstrip(".")


def _public(name: str) -> bool:
    first = name.split(".")[1]
    return first not in _OWN and not first.startswith("_")


def uninstall() -> None:
    """Remove the stand-in; modules that imported torch keep their names."""
    from taeda import _core

    if is_installed():
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torch", "functorch")]:
        del sys.modules[name]
    for cls, name in _renamed:
        cls.__module__ = name
    _renamed.clear()
    _adopted.clear()
    _core.set_namespace("taeda")
