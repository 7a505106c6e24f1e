"""Model repositories on this machine. Nothing is downloaded, and a repository's code runs only if the caller agrees."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import urllib.parse
import urllib.request
from types import ModuleType
from typing import Any

from ._refuse import refuse

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  #: where the name of a published file has its checksum

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_NO_NETWORK = (
    "it fetches from the network and runs what it finds. Clone the repository and pass its folder with source='local', "
    "or download the file and use taeda.load"
)
_directory: str | None = None


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of checkpoints: ``$TORCH_HOME/hub``, by default ``~/.cache/torch/hub``, or what :func:`set_dir` was
    given."""
    return os.path.join(_get_torch_home(), "hub") if _directory is None else _directory


def set_dir(d: str | os.PathLike) -> None:
    """Set the folder of :func:`get_dir`."""
    global _directory
    _directory = os.path.expanduser(d)


def _entry_points(name: str, folder: Any, source: str) -> ModuleType:
    if source != "local":
        refuse(f"hub.{name}({str(folder)!r}, source={source!r})", _NO_NETWORK)
    path = os.path.join(os.fspath(folder), "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(f"hub.{name}: no hubconf.py in {os.fspath(folder)!r}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.fspath(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.fspath(folder))
    return module


def _entry(module: ModuleType, name: str) -> Any:
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    *,
    source: str = "github",
) -> list[str]:  # type: ignore[valid-type]
    """The entry points of a local repository (``source="local"``): the public callables of its ``hubconf.py``."""
    module = _entry_points("list", github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github: Any, model: str, force_reload: bool = False, *, source: str = "github", **kwargs: Any) -> str | None:
    """The docstring of an entry point of a local repository."""
    return _entry(_entry_points("help", github, source), model).__doc__


def load(
    repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Call an entry point of a local repository.

    Args:
        repo_or_dir: the folder that holds ``hubconf.py``.
        model: name of the entry point.
        *args: for the entry point.
        source: must be "local".
        trust_repo: accepted.
        force_reload: accepted.
        verbose: accepted.
        skip_validation: accepted.
        **kwargs: for the entry point.
    Returns:
        What the entry point gives.
    Raises:
        NotImplementedError: ``source`` is not "local".
    """
    return _entry(_entry_points("load", repo_or_dir, source), model)(*args, **kwargs)


urlparse = urllib.parse.urlparse


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refused: nothing is fetched."""
    refuse("hub.download_url_to_file", _NO_NETWORK)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """The state dict of a ``file:`` address, or of a file of that name that lies in ``model_dir`` already.

    Args:
        url: the address.
        model_dir: default ``<hub folder>/checkpoints``, where PyTorch keeps what it downloaded.
        map_location: as for :func:`taeda.load`.
        progress: accepted.
        check_hash: accepted.
        file_name: name of the file in ``model_dir``; by default the address's last part.
        weights_only: as for :func:`taeda.load`.
    Returns:
        The state dict.
    Raises:
        NotImplementedError: the file is not on this machine.
    """
    from .io.checkpoint import load

    parts = urllib.parse.urlparse(url)
    if parts.scheme in ("", "file"):
        return load(urllib.request.url2pathname(parts.path), map_location=map_location)
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(parts.path))
    if os.path.exists(path):
        return load(path, map_location=map_location)
    refuse(
        f"hub.load_state_dict_from_url({url!r})",
        f"{path} does not exist, and nothing is fetched from the network: put the file there",
    )


class _Progress:
    """Replaces ``tqdm`` if it is not installed: it shows nothing."""

    def __init__(self, iterable: Any = (), *args: Any, **kwargs: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Any:
        return iter(self.iterable)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def update(self, n: int = 1) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return _Progress
    return tqdm
