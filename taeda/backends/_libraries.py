"""A table of the switches of libraries that PyTorch can be built with and that taeda does not use."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

from .._core.devices import accelerator
from .._no_device import answering


@contextmanager
def flags_of(module: str, **values: Any) -> Iterator[None]:
    """Within the block, the attributes of ``module`` named by ``values`` have those values (None leaves one alone)."""
    target = sys.modules[module]
    before = {name: getattr(target, name) for name in values}
    for name, value in values.items():
        if value is not None:
            setattr(target, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)


def _named(name: str, defaults: dict[str, Any], doc: str, function: Any) -> Any:
    """``function`` of a dict of values, as one of parameters with defaults."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind, default=d) for n, d in defaults.items()])

    def bound(*args: Any, **kwargs: Any) -> Any:
        values = signature.bind(*args, **kwargs)
        values.apply_defaults()
        return function(dict(values.arguments))

    bound.__name__ = bound.__qualname__ = name
    bound.__doc__, bound.__signature__ = doc, signature  # type: ignore[attr-defined]
    return bound


_NO = "is_available() = False: Whether it is used: False."

#: For each library: what it is, its switches at first, their values in ``flags`` unless given, its answer, and
#: whether it has ``set_flags``.
LIBRARIES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str, bool]] = {
    "cudnn": (
        "cuDNN, which computes large convolutions on a GPU where ``enabled``; those of ``float32`` by TF32 where "
        "``allow_tf32``.\n\nThey have the same bits in each run, whatever ``deterministic`` and ``benchmark`` say.",
        {"enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True,
         "fp32_precision": "none"},
        {"enabled": False},
        "",
        True,
    ),
    "mkl": ("Intel MKL, which is not used.", {"VERBOSE_OFF": 0, "VERBOSE_ON": 1}, {}, _NO, False),
    "mkldnn": (
        "oneDNN, which is not used.",
        {"enabled": True, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"},
        {"enabled": False},
        _NO,
        True,
    ),
    "mps": (
        "Apple's GPUs, which are not used.",
        {},
        {},
        _NO + """
        is_built() = False: Whether this build knows Apple's GPUs: False.
        is_macos_or_newer(major, minor) = False: Whether there is an Apple GPU under this macOS or a later one: False.
        is_macos13_or_newer(minor=0) = False: :func:`is_macos_or_newer` of 13: False.""",
        False,
    ),
    "nnpack": ("NNPACK, which is not used.", {"enabled": True}, {"enabled": False}, _NO, True),
    "openmp": ("OpenMP, which is not used.", {}, {}, _NO, False),
    "quantized": (
        "The engine of quantised ops, of which there are none.",
        {"engine": "none", "supported_engines": ["none"]},
        {},
        "",
        False,
    ),
    "xnnpack": ("XNNPACK, which is not used.", {"enabled": False}, {}, "", False),
}  # fmt: skip


#: Of some libraries, what has a precision of its own.
_PARTS = {"cudnn": ("conv", "rnn"), "mkldnn": ("matmul", "conv", "rnn")}


class verbose:
    """Context manager that would have MKL print its calls: nothing."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def _version() -> int | None:
    """cuDNN's version, as 92801 for 9.28.1; None where there is no GPU or no cuDNN."""
    found = accelerator()
    return None if found is None else found.convolution_library()


def _is_available() -> bool:
    """Whether there are a GPU and cuDNN."""
    return _version() is not None


def _is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could work on ``tensor``: on floats of a GPU."""
    return tensor.device.type not in ("cpu", "meta") and tensor.is_floating_point() and _is_available()


#: The functions of ``cudnn``.
_CUDNN = {"is_available": _is_available, "version": _version, "is_acceptable": _is_acceptable}


def library(name: str) -> Any:
    """The module ``taeda.backends.<name>``, made from the table."""
    doc, switches, changed, answers, settable = LIBRARIES[name]
    module = ModuleType(f"{__package__}.{name}", doc)
    vars(module).update(switches, **answering(module.__name__, answers))
    for part in _PARTS.get(name, ()):
        setattr(module, part, SimpleNamespace(fp32_precision="tf32" if name == "cudnn" else "none"))
    if name == "cudnn":
        vars(module).update(_CUDNN)
    if name == "mkl":
        module.verbose = verbose  # type: ignore[attr-defined]
    if settable:

        def set_flags(values: dict[str, Any]) -> tuple:
            before = tuple(getattr(module, switch) for switch in switches)
            vars(module).update({n[1:]: value for n, value in values.items() if value is not None})
            return before

        module.flags = _named(  # type: ignore[attr-defined]
            "flags",
            switches | changed,
            "Within the block the switches have these values.",
            lambda values: flags_of(module.__name__, **values),
        )
        module.set_flags = _named(  # type: ignore[attr-defined]
            "set_flags",
            {f"_{switch}": None for switch in switches},
            "Set the switches that are not None; gives all of them as they were.",
            set_flags,
        )
    sys.modules[module.__name__] = module
    return module
