"""Batch norm in training that is put off."""

from .recipes cimport Epilogue
from .rows cimport RowOp
from .tensor cimport Op, Tensor

cdef struct Channels:     # a call of batch norm that was put off
    char* pointers[8]     # y; mean, rstd and the running statistics, which move; x, weight, bias
    bint alone            # whether only statistics are asked for
    double eps, momentum
    Epilogue* epilogue    # of y

cdef class ChannelOp(RowOp):  # what computes them
    # False where there can be no such kernel: never without an epilogue.
    cdef bint run_channels(self, Tensor like, Channels* c, object after) except -1

# The result of batch norm in training, mean and rstd, none of them computed: the first by `op`, pointwise, from the
# others. None where they had better be at once.
cdef tuple put_off_channels(Op op, ChannelOp rows, Tensor x, Tensor weight, Tensor bias, Tensor running_mean,
                            Tensor running_var, double eps, double momentum)
