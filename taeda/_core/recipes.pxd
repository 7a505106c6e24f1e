"""Recipes of tensors that are put off, and what kernels make of them: structures that several modules share."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from .memory cimport Pending, Storage
from .tensor cimport INLINE, MOST_FUSED, Op, Tensor

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

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


cdef class Later

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
    cdef bint inplace          # whether it overwrites its memory, or is due when the compiled function returns
    cdef bint reads_own        # whether it is computed from what its own memory holds
    cdef bint superseded       # whether another recipe of that storage computes it along: it is not written itself
    cdef bint done             # whether the memory holds it
    cdef bint is_row           # whether it is no pointwise op: others read its result, or go on with it as it is stored
    cdef bint below            # whether such a one is among what it is computed from; maybe not any more
    cdef Later rows            # what computes such a one
    cdef int first             # the dimension that rows begin with, or along which operands are joined
    cdef int64_t ends[MOST_SOURCES]  # where each of what is joined ends
    cdef double p, q
    cdef int64_t count
    cdef int64_t sizes[INLINE]
    cdef int64_t strides[INLINE]     # elements
    cdef Source sources[MOST_SOURCES]


cdef class Later:         # what computes a recipe that is not that of a pointwise op
    cdef readonly str name
    cdef bint leads       # whether it is asked first of several that a recipe reads
    cdef bint ends        # whether its results are computed when the compiled function returns, if somebody holds them
    # Compute the result of a recipe by itself.
    cdef int run_alone(self, Recipe r) except -1
    # Compute `root`, which reads results of so many of them, where this one stores its own; False where that cannot be.
    cdef bint go_on(self, Recipe root, int rows) except -1


cdef struct Taken:        # a block that an output has taken over from `old`, and what the output was before
    PyObject* old
    PyObject* storage
    PyObject* late
    char* before


cdef struct Kernel:
    PyObject* nodes[MOST_NODES]      # operands before what reads them
    int nnodes
    PyObject* storages[MOST_NODES]   # theirs, references
    PyObject* outs[MOST_FUSED]       # the nodes that are written
    int nouts
    Source* leaves[MOST_FUSED]
    int nleaves
    int nnumbers
    Taken taken[MOST_FUSED]
    int ntaken


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

# The recipes of all threads in the order in which they were made, no references; how many write in place.
cdef PyObject* oldest
cdef PyObject* newest
cdef int64_t written
# Elements of a result that is put off, at least.
cdef int64_t least
# Whether this thread puts ops off; say so, and what it did before.
cdef bint is_recording() noexcept
cdef bint swap_recording(bint on) noexcept
# To be called around computing, and the use of a Prologue: no other thread computes meanwhile, so that what is read
# stays where it is.
cdef void begin() noexcept
cdef void end() noexcept
# Compute what a recipe describes, with what is worth writing on the way: see fusion.pyx, which sets it.
ctypedef int (*computer_t)(Recipe) except -1
cdef void set_computer(computer_t function) noexcept
cdef int compute(Recipe r) except -1

# Whether kernels compute in a dtype itself; whether taeda alone can read and write a tensor; whether that is all that a
# recipe computes, in the form of `out`.
cdef bint is_plain(int code) noexcept
cdef bint is_free(Tensor t) noexcept
cdef bint same_form(Recipe r, Tensor t, Tensor out) noexcept
# Let `r` compute elements of the dtype of `t`, which lie as those do; append it to the list; make it what the memory of
# `out` should hold.
cdef void take_form(Recipe r, Tensor t) noexcept
cdef void enlist(Recipe r) noexcept
cdef void fill_later(Recipe r, Tensor out) noexcept
# The memory holds what `r` says.
cdef int finish(Recipe r, Storage storage) except -1
cdef Recipe with_memory(Recipe r)
cdef bint reads(Recipe r, Storage storage) noexcept
cdef int give_memory(Storage storage) except -1
cdef bint move_block(Storage old, Storage storage) except -1
cdef int move_back(Storage old, Storage storage, char* before, list late) except -1


cdef inline int compute_row(Recipe r) except -1:
    """Compute what is no pointwise op by itself."""
    return r.rows.run_alone(r)


cdef inline bint is_held(Recipe r) noexcept:
    """Whether anything but recipes holds the memory that ``r`` describes: these have a reference for each reading."""
    return Py_REFCNT(r.storage) > (<Storage>r.storage).waits - 1


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
