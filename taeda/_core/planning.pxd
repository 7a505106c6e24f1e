"""Making plans; see `planning.pyx`."""

from .plan cimport Plan

# The plan of a function of these arguments, which include the tensors.
cdef Plan record(object function, list args, list tensors)
