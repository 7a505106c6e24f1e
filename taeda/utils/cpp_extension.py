"""Functions in C, built with this machine's compiler and bound as ops. PyTorch's extensions in C++ are refused."""

from __future__ import annotations

import os
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._core.nearest import nearest
from .._refuse import refuse, refused_class, refused_function
from ..library import _c_functions

__all__ = [
    "CUDA_HOME", "BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "is_ninja_available", "load",
    "load_inline",
]  # fmt: skip

_WHY = (
    "an extension in C++ is built against PyTorch's own library; write the function in C "
    "(cpp_extension.load_inline(name, c_sources=...), library.bind) or in Python (autograd.Function, library.custom_op)"
)

#: Where CUDA and ROCm are, as far as extensions are concerned: nowhere.
CUDA_HOME = ROCM_HOME = CUDNN_HOME = None

BuildExtension = refused_class("BuildExtension", _WHY)
CppExtension, CUDAExtension, include_paths, library_paths, verify_ninja_availability = (
    refused_function(f"torch.utils.cpp_extension.{name}", _WHY)
    for name in "CppExtension CUDAExtension include_paths library_paths verify_ninja_availability".split()
)


#: Arguments of builds by PyTorch that mean nothing for C.
_OPTIONS = frozenset(
    "with_pytorch_error_handling keep_intermediates use_pch no_implicit_headers is_python_module".split()
)
#: Headers of the types that :func:`taeda.library.bind` knows; sources given as text have them.
_HEADERS = ("stdint.h", "stddef.h", "stdbool.h")


def is_ninja_available() -> bool:
    """Whether extensions can be built with ninja: False."""
    return False


def load_inline(
    name: str, cpp_sources: Any = None, cuda_sources: Any = None, sycl_sources: Any = None,
    functions: str | Sequence[str] | Mapping[str, Any] | None = None, extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Any = None, extra_sycl_cflags: Any = None, extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None, build_directory: str | None = None, verbose: bool = False,
    with_cuda: bool | None = None, with_sycl: bool | None = None, *, c_sources: str | Sequence[str] | None = None,
    **options: Any,
) -> types.ModuleType:  # fmt: skip
    """Build C sources, and bind their functions as ops: a module that has them.

    A library that was built before, from the same sources with the same compiler and flags, is found in the cache
    (``~/.cache/taeda``, or where ``TAEDA_CACHE`` says).

    Args:
        name: of the module, and the namespace of the ops.
        cpp_sources: refused.
        cuda_sources: refused.
        sycl_sources: refused.
        functions: which functions to bind, as :func:`taeda.library.bind` binds them by their declarations in the
            sources; a dict gives arguments of ``bind`` for each, such as ``{"f": {"threads": "n"}}``. None: all that
            are not static and give no result.
        extra_cflags: flags after ``-O3 -march=native``.
        extra_cuda_cflags: accepted.
        extra_sycl_cflags: accepted.
        extra_ldflags: flags of the linker, such as ``-lm``.
        extra_include_paths: folders of headers.
        build_directory: accepted; the library is in the cache.
        verbose: whether to print the command, where one is run.
        with_cuda: refused where it is True.
        with_sycl: refused where it is True.
        c_sources: a C source, or several.
        **options: those that PyTorch has, accepted. ``no_implicit_headers=True`` leaves out the headers that sources
            have otherwise: ``stdint.h``, ``stddef.h`` and ``stdbool.h``.

    Returns:
        The module.

    Raises:
        NotImplementedError: there are sources in another language than C.
        RuntimeError: there is no C compiler, or it refuses the sources.
        ValueError: a function is not in the sources, or cannot be bound.
        TypeError: there is no such option, or a source is no text.

    Example:
        >>> source = '''
        ... void scale(const float *x, float *y, int64_t n, float k) { for (long i = 0; i < n; i++) y[i] = k * x[i]; }
        ... '''
        >>> own = taeda.utils.cpp_extension.load_inline("own", c_sources=source)
        >>> own.scale(taeda.ones(3), 2.0)
        tensor([2., 2., 2.])
    """
    if cpp_sources or cuda_sources or sycl_sources or with_cuda or with_sycl:
        refuse("torch.utils.cpp_extension.load_inline of C++, CUDA or SYCL", _WHY)
    if options:
        unknown = set(options) - _OPTIONS
        if unknown:
            raise TypeError(f"load_inline() got an unexpected keyword argument '{unknown.pop()}'")
    texts: list[Any] = (
        list(c_sources) if isinstance(c_sources, (list, tuple)) else [] if c_sources is None else [c_sources]
    )
    if not texts:
        raise ValueError("load_inline: expected c_sources, the text of a file in C")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"load_inline: expected c_sources to be the text of a file in C, got {type(text).__name__}")
    sources = {f"source{i}.c": text for i, text in enumerate(texts)}
    headers = [] if options.get("no_implicit_headers") else [f"-include{header}" for header in _HEADERS]
    return _module(
        name, sources, functions, [*headers, *(extra_cflags or ())], extra_ldflags, extra_include_paths, verbose
    )


def load(
    name: str, sources: str | Sequence[str], extra_cflags: Sequence[str] | None = None, extra_cuda_cflags: Any = None,
    extra_sycl_cflags: Any = None, extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None, build_directory: str | None = None, verbose: bool = False,
    with_cuda: bool | None = None, with_sycl: bool | None = None, *,
    functions: str | Sequence[str] | Mapping[str, Any] | None = None, **options: Any,
) -> types.ModuleType:  # fmt: skip
    """:func:`load_inline` of C files.

    Args:
        name: of the module, and the namespace of the ops.
        sources: paths of files whose names end with ``.c``.
        extra_cflags: as for :func:`load_inline`.
        extra_cuda_cflags: accepted.
        extra_sycl_cflags: accepted.
        extra_ldflags: as for :func:`load_inline`.
        extra_include_paths: as for :func:`load_inline`.
        build_directory: accepted.
        verbose: whether to print the command.
        with_cuda: refused where it is True.
        with_sycl: refused where it is True.
        functions: as for :func:`load_inline`.
        **options: those that PyTorch has, accepted.

    Returns:
        The module.

    Raises:
        NotImplementedError: a file is in another language than C.
    """
    paths = [Path(sources)] if isinstance(sources, (str, os.PathLike)) else list(map(Path, sources))
    if any(path.suffix != ".c" for path in paths) or with_cuda or with_sycl:
        refuse("torch.utils.cpp_extension.load of C++, CUDA or SYCL", _WHY)
    texts = {f"source{i}.c": f'#line 1 "{path}"\n{path.read_text()}' for i, path in enumerate(paths)}
    include = [*(extra_include_paths or ()), *dict.fromkeys(str(path.resolve().parent) for path in paths)]
    return _module(name, texts, functions, extra_cflags, extra_ldflags, include, verbose)


def _module(
    name: str, sources: dict[str, str], functions: Any, flags: Any, linking: Any, include: Any, verbose: bool
) -> types.ModuleType:
    from ..library.binding import bind_declared

    found = {d[0]: d for text in sources.values() for d in _declared(text, functions)}
    if not isinstance(functions, Mapping):
        functions = {name: {} for name in ([functions] if isinstance(functions, str) else functions or found)}
    for wanted in functions:
        if wanted not in found:
            there = [_name(declaration) for text in sources.values() for declaration in _c_functions.functions_in(text)]
            raise ValueError(
                f"load_inline: the sources define no function {wanted!r} that gives 'void' and is not static; they "
                f"have {', '.join(there) or 'none'}{nearest(wanted, there)}"
            )
    path = _c_functions.build(name, sources, flags or (), linking or (), verbose, include or ())
    opened = _c_functions.load(path)
    module = types.ModuleType(name, f"Functions in C: {', '.join(functions)}.")
    module.__file__ = str(path)
    for function, given in functions.items():
        address = _c_functions.address_of(opened, function)
        setattr(module, function, bind_declared(f"{name}::{function}", found[function], address, opened, **dict(given)))
    return module


def _name(declaration: str) -> str:
    return declaration.partition("(")[0].split()[-1]


def _declared(text: str, wanted: Any) -> list[tuple]:
    """The result of :func:`_c_functions.parse` for a source's functions, or for the wanted ones."""
    found = []
    for declaration in _c_functions.functions_in(text):
        name = _name(declaration)
        if wanted is None or name == wanted or (not isinstance(wanted, str) and name in wanted):
            found.append(_c_functions.parse(declaration))
    return found
