"""Kernels: Python that writes LLVM IR. Knows nothing of tensors; imports nothing of taeda above itself."""
