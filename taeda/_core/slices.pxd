"""Recipes for a part of what a recipe computes, or for the same from other operands."""

from libc.stdint cimport int64_t

from .recipes cimport Kernel, Recipe
from .tensor cimport Tensor

cdef Recipe slice_of(Recipe r, Tensor t, Tensor out)
cdef Recipe remade(Recipe r, Tensor t, const int64_t* start, Kernel* k, list leaves, int which, dict made)
# What a pointwise result is computed from, and the same from other operands: for who reads few of its elements.
cdef list leaves_of(Tensor x)
cdef Tensor computed_from(Tensor x, list leaves, Tensor like)
