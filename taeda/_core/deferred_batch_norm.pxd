"""Deferred batch norm in training."""

from .deferred cimport Epilogue
from .rows cimport RowOp
from .tensor cimport Op, Tensor

cdef struct Channels:     # a call of deferred batch norm
    char* pointers[8]     # y; mean, rstd and the running statistics, which move; x, weight, bias
    bint alone            # whether only statistics are needed
    double eps, momentum
    Epilogue* epilogue    # computes y

cdef class ChannelOp(RowOp):  # computes deferred batch norm
    # False if there is no such kernel: never without an epilogue.
    cdef bint run_channels(self, Tensor like, Channels* c, object after) except -1

# The deferred result of batch norm in training, with mean and rstd. `op` computes the result from the other operands.
# None if they should be computed at once.
cdef tuple defer_channels(Op op, ChannelOp rows, Tensor x, Tensor weight, Tensor bias, Tensor running_mean,
                            Tensor running_var, double eps, double momentum)
