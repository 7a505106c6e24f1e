"""Pointwise ops that are put off: what a kernel of several of them is made of."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from .tensor cimport INLINE, MOST_FUSED, Op, Tensor

cdef enum:
    MOST_SOURCES = 5      # operands of an op that is put off
    MOST_NODES = 40       # ops of a kernel
    MOST_READ = 8         # what a kernel reads
    MOST_NUMBERS = 24     # numbers of a kernel
    CACHED = 1 << 18      # bytes of a result that is written along: it stays in the cache
    MOST_RESULTS = 3      # what an epilogue writes
    AGAIN = 12            # ops that are computed again rather than their result read
    NEIGHBOURS = 32       # of what is computed at once, as many are looked at for what goes into one kernel
    MOST_WORDS = 8 + MOST_FUSED + MOST_NODES * (3 + MOST_SOURCES)
    LEAF = 1 << 8         # marks of a key, beside a number
    NODE = 2 << 8
    NUMBER = 3 << 8
    LEAST_ALONG = 16      # elements that lie together in what is joined: else kernels are called for too few
    LEAST_ELEMENTS = 16384  # for which the order of an operand's dimensions matters
    ALONE = -1            # Op.fuses: it is never put off, it may be, not known
    UNKNOWN = 0
    FITS = 1


cdef struct Source:       # an operand
    PyObject* storage     # a reference; NULL of a number, and of what is written over
    char* data
    int code
    PyObject* recipe      # a reference to one of the same form that makes it; NULL where there was none
    int64_t strides[INLINE]   # bytes
    int64_t slots[2]      # of a number


cdef struct Kernel:
    PyObject* nodes[MOST_NODES]      # operands before what reads them
    int nnodes
    PyObject* storages[MOST_NODES]   # theirs, references
    PyObject* outs[MOST_FUSED]       # the nodes that are written
    int nouts
    Source* leaves[MOST_FUSED]
    int nleaves
    int nnumbers


cdef struct Prologue:     # what computes elements where another kernel reads them
    Kernel kernel
    int nleaves, nnumbers
    char* pointers[MOST_FUSED]    # of the leaves
    int64_t steps[MOST_FUSED][4]  # theirs along a row and from row to row, as the other kernel counts them
    char letters[MOST_FUSED + 1]  # how a leaf lies where vectors run: c, one after the other, or s, one for all
    int64_t numbers[2 * MOST_NUMBERS]

cdef struct Epilogue:     # what goes on with results where another kernel would store them
    Kernel kernel
    int own                       # the leaf that is the other kernel's own result
    bint writes_own               # whether that is stored, too: then first of all
    char* pointers[MOST_FUSED]    # of the other leaves, in order
    char letters[MOST_FUSED + 1]
    int64_t numbers[2 * MOST_NUMBERS]
    int nnumbers

cdef struct Rows:         # a call of a row-wise op that was put off
    char* own             # the memory of its result
    char* pointers[MOST_SOURCES]  # of its operands; the first is NULL where a prologue computes it
    int first             # the dimension that rows begin with: they take the rest
    double p, q
    Prologue* prologue    # NULL where there is none
    Epilogue* epilogue

cdef class RowOp:         # what computes rows that were put off
    cdef readonly str name
    # Compute the rows of contiguous operands of one dtype and the form of `like`; with keys of the prologue and the
    # epilogue. False where there can be no such kernel.
    cdef bint run_rows(self, Tensor like, Rows* rows, object before, object after) except -1

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
# The result of a row-wise op of contiguous operands of one form, not computed; None where it had better be at once.
cdef Tensor put_off_rows(RowOp op, Tensor x, Tensor other, int first, double p, double q)
# Tensors joined along a dimension, contiguous and of these sizes, not computed; None where they had better be at once.
# Pointwise ops that read it are computed part by part, each from its operand.
cdef Tensor put_off_joined(object tensors, int along, int nd, const int64_t* sizes)
cdef object epilogue_parts(Epilogue* e)
cdef char* memory_of(Epilogue* e, int i) noexcept    # of its output `i`
# To be called around the use of a Prologue: nobody computes meanwhile, so that what it reads stays where it is.
cdef void begin() noexcept
cdef void end() noexcept
cdef object prologue_of(Tensor x, Prologue* p)
cdef object prologue_parts(Prologue* p)
# Tell who watches that a kernel computes what it reads.
cdef int tell_prologue(Prologue* p) except -1

# What a pointwise result is computed from, and the same from other operands: for who reads few of its elements.
cdef list leaves_of(Tensor x)
cdef Tensor computed_from(Tensor x, list leaves, Tensor like)
