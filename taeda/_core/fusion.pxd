"""Pointwise ops that are put off: what a kernel of several of them is made of."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from .memory cimport Pending, Storage
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


cdef class RowOp

@cython.final
@cython.no_gc
cdef class Recipe(Pending):
    cdef Op op
    cdef PyObject* before      # the recipes of all threads in the order in which they were made; no references
    cdef PyObject* after
    cdef char* data
    cdef int variant, compute, code, nsources, nd
    cdef int readers           # operands of others that refer to this one
    cdef int nodes, reads, numbers   # of the kernel that would compute it alone; at most
    cdef int own, own_numbers        # of these what its op reads itself
    cdef int mark, place
    cdef bint contiguous
    cdef bint listed
    cdef bint inplace          # whether it writes over what was there
    cdef bint reads_own        # whether it is computed from what its own memory holds
    cdef bint superseded       # whether another recipe of that storage computes it along: it is not written itself
    cdef bint done             # whether the memory holds it
    cdef bint is_row           # whether it is a row-wise op: others read its result, or go on with it as it is stored
    cdef bint below            # whether such a one is among what it is computed from; maybe not any more
    cdef RowOp rows            # None where it is no op, but its operands joined: a recipe like a row's
    cdef int first             # the dimension that rows begin with, or along which operands are joined
    cdef int64_t ends[MOST_SOURCES]  # where each of what is joined ends
    cdef double p, q
    cdef int64_t count
    cdef int64_t sizes[INLINE]
    cdef int64_t strides[INLINE]     # elements
    cdef Source sources[MOST_SOURCES]


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
    # Compute the result of a recipe of this op by itself.
    cdef int run_alone(self, Recipe r) except -1

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
# `out`, which was made without memory, as what `op` computes alone from operands that lie in memory.
cdef Tensor put_off_whole(RowOp op, list operands, Tensor out)
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

# ---- for modules that make recipes
cdef inline PyObject* pending(const Source* s) noexcept:
    """The recipe that computes an operand along; NULL where it lies in memory, or will before it is read."""
    return s.recipe if s.recipe != NULL and not (<Recipe>s.recipe).done and not (<Recipe>s.recipe).is_row else NULL


cdef inline bint is_undone_row(const Source* s) noexcept:
    """Whether an operand is the result of a row-wise op that is still to run, or joined of what is still to be."""
    return s.recipe != NULL and (<Recipe>s.recipe).is_row and not (<Recipe>s.recipe).done


cdef inline bint same_order(Tensor a, Tensor b) noexcept:
    """Whether two tensors of the same sizes are laid out alike."""
    return a.contiguous and b.contiguous or memcmp(a.strides, b.strides, a.nd * sizeof(int64_t)) == 0


cdef inline void hold(Source* s) noexcept:
    """Count a copy of an operand among what reads it."""
    if s.storage != NULL:
        Py_INCREF(<object>s.storage)
        (<Storage>s.storage).waits += 1
    if s.recipe != NULL:
        Py_INCREF(<object>s.recipe)
        (<Recipe>s.recipe).readers += 1


# Elements of a result that is put off, at least.
cdef int64_t least
# Whether this thread puts ops off.
cdef bint is_recording() noexcept
# Whether a tensor is all that a recipe computes, in the form of `out`; whether taeda alone can read and write it.
cdef bint same_form(Recipe r, Tensor t, Tensor out) noexcept
cdef bint is_free(Tensor t) noexcept
# Let `r` compute elements of the dtype of `t`, which lie as those do; make it what the memory of `out` should hold.
cdef void take_form(Recipe r, Tensor t) noexcept
cdef void fill_later(Recipe r, Tensor out) noexcept
# The ops and operands of a kernel for `r`; False where that has no room.
cdef int start(Kernel* k) noexcept
cdef bint gather(Kernel* k, Recipe r) noexcept
# The memory holds what `r` says.
cdef int finish(Recipe r, Storage storage) except -1
cdef bint move_block(Storage old, Storage storage) except -1

# What `set_recorder` is given.
cdef object put_off(Op op, PyObject** inputs, int nin, int compute, int variant, Tensor target)
cdef int settle_all(list storages) except -1
cdef bint compute_into(Tensor target, Tensor source) except -1
cdef int give_memory(Storage storage) except -1
