"""Switches of the libraries that PyTorch can be built with: they can be read and set, and few of them do anything here.

taeda has one implementation of each op. Where a switch asks for what it does anyway (deterministic convolution), or for
a library that it does not use, setting it has no effect.
"""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized, xnnpack

__all__ = [
    "cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack",
]  # fmt: skip
