"""Switches of the libraries that PyTorch can be built with. They can be read and set; few have an effect here.

``cuda`` and ``cudnn`` say what NVIDIA's libraries may do. Else taeda has one implementation of each op. Where a switch
asks for what it does anyway (deterministic convolution), or for a library that it does not use, setting it has no
effect.
"""

from typing import Any

from . import cpu, cuda, mha, opt_einsum
from ._libraries import library

cudnn: Any = library("cudnn")
mkl: Any = library("mkl")
mkldnn: Any = library("mkldnn")
mps: Any = library("mps")
nnpack: Any = library("nnpack")
openmp: Any = library("openmp")
quantized: Any = library("quantized")
xnnpack: Any = library("xnnpack")

#: The precision of products of float32 matrices in these libraries: accepted, without effect.
fp32_precision = "none"

__all__ = [
    "cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack",
]  # fmt: skip
