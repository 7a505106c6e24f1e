"""C++ extensions for PyTorch. taeda cannot build or load them: the names can be imported, and calls raise an error."""

from __future__ import annotations

from .._refuse import refused_class, refused_function

__all__ = [
    "CUDA_HOME", "BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "is_ninja_available", "load",
    "load_inline",
]  # fmt: skip

_WHY = (
    "an extension in C++ is built against PyTorch's own library; write the function in Python "
    "(autograd.Function, library.custom_op)"
)

#: Where CUDA and ROCm are, as far as extensions are concerned: nowhere.
CUDA_HOME = ROCM_HOME = CUDNN_HOME = None

BuildExtension = refused_class("BuildExtension", _WHY)
CppExtension, CUDAExtension, include_paths, library_paths, load, load_inline, verify_ninja_availability = (
    refused_function(f"torch.utils.cpp_extension.{name}", _WHY)
    for name in (
        "CppExtension CUDAExtension include_paths library_paths load load_inline verify_ninja_availability"
    ).split()
)


def is_ninja_available() -> bool:
    """Whether extensions can be built with ninja: False."""
    return False
