"""Deferred ops of deferred tensors, and the kernels that compute them: structures that several modules share."""

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
    MOST_SOURCES = 5      # operands of a deferred op
    MOST_NODES = 40       # ops of a kernel
    MOST_READ = 8         # operands of a kernel
    MOST_NUMBERS = 24     # numbers of a kernel
    CACHED = 1 << 18      # bytes of a result that a kernel also writes if it is held: it stays in the cache
    MOST_RESULTS = 3      # results of an epilogue
    AGAIN = 12            # at most so many ops are recomputed rather than their result read
    NEIGHBOURS = 32       # results that are examined for one common kernel
    MOST_WORDS = 8 + MOST_FUSED + MOST_NODES * (3 + MOST_SOURCES)
    LEAF = 1 << 8         # tags in a key, above a number
    NODE = 2 << 8
    NUMBER = 3 << 8
    LEAST_ALONG = 16      # contiguous elements in a part of a `cat`; fewer would make rows too short
    LEAST_ELEMENTS = 16384  # from so many on, the order of an operand's dimensions matters
    ALONE = -1            # Op.fuses: never deferred, may be deferred, not known
    UNKNOWN = 0
    FITS = 1


cdef struct Source:       # an operand
    PyObject* storage     # a reference; NULL for a number, and for memory that the op overwrites
    char* data
    int code
    PyObject* deferred      # a reference to the deferred op of the same form that computes it; NULL if there is none
    int64_t strides[INLINE]   # bytes
    int64_t slots[2]      # the value of a number


cdef class Later

@cython.final
@cython.no_gc
cdef class Deferred(Pending):
    cdef Op op
    cdef PyObject* before      # list of the deferred ops of all threads in order of creation; no references
    cdef PyObject* after
    cdef char* data
    cdef int variant, compute, code, nsources, nd
    cdef int readers           # operands of other deferred ops that refer to this one
    cdef int nodes, reads, numbers   # upper bounds for the kernel that would compute it alone
    cdef int own, own_numbers        # the share of its own op
    cdef int mark, place
    cdef int device, stream    # numbers of the device and of the stream on which it is computed
    cdef bint contiguous
    cdef bint listed
    cdef bint inplace          # whether it overwrites its memory, or is due when the compiled function returns
    cdef bint reads_own        # whether it reads the old contents of its own memory
    cdef bint superseded       # whether a newer one of the same storage includes it: then it is not written itself
    cdef bint done             # whether the memory holds the result
    cdef bint is_row           # whether it is not pointwise; its readers use the stored result, or run as its epilogue
    cdef bint below            # whether it depends on such a deferred op; may be out of date
    cdef Later rows            # computes a deferred op that is not pointwise
    cdef int first             # the first dimension of a row, or the one along which operands are concatenated
    cdef int64_t ends[MOST_SOURCES]  # where each concatenated operand ends
    cdef double p, q
    cdef int64_t count
    cdef int64_t sizes[INLINE]
    cdef int64_t strides[INLINE]     # elements
    cdef Source sources[MOST_SOURCES]


cdef class Later:         # computes a deferred op that is not pointwise
    cdef readonly str name
    cdef bint leads       # whether it goes first among several that a deferred op reads
    cdef bint ends        # whether its held results are computed when the compiled function returns
    # Compute the result of a deferred op by itself.
    cdef int run_alone(self, Deferred r) except -1
    # Compute `root` in this one's epilogue; `root` reads results of so many of them. False if there is no such kernel.
    cdef bint compute_reader(self, Deferred root, int rows) except -1


cdef struct Taken:        # a block that an output took over from `old`, and the output's state before
    PyObject* old
    PyObject* storage
    PyObject* late
    char* before


cdef struct Kernel:
    PyObject* nodes[MOST_NODES]      # operands before their readers
    int nnodes
    PyObject* storages[MOST_NODES]   # their storages, references
    PyObject* outs[MOST_FUSED]       # nodes whose results are written
    int nouts
    Source* leaves[MOST_FUSED]
    int nleaves
    int nnumbers
    Taken taken[MOST_FUSED]
    int ntaken


cdef struct Prologue:     # pointwise ops that compute elements where another kernel reads them
    Kernel kernel
    int nleaves, nnumbers
    char* pointers[MOST_FUSED]    # addresses of the leaves
    int64_t steps[MOST_FUSED][4]  # their strides along a row and from row to row, in the other kernel's order
    char letters[MOST_FUSED + 1]  # layout of a leaf along the vectors: c, contiguous, or s, one value for all
    int64_t numbers[2 * MOST_NUMBERS]

cdef struct Epilogue:     # pointwise ops on results, where another kernel would store them
    Kernel kernel
    int own                       # the leaf that is the other kernel's own result
    bint writes_own               # whether that is stored, too: then as the first output
    char* pointers[MOST_FUSED]    # addresses of the other leaves, in order
    char letters[MOST_FUSED + 1]
    int64_t numbers[2 * MOST_NUMBERS]
    int nnumbers

cdef struct Rows:         # a call of a deferred row-wise op
    char* own             # memory of its result
    char* pointers[MOST_SOURCES]  # its operands; the first is NULL if a prologue computes it
    int first             # the first dimension of a row
    double p, q
    Prologue* prologue    # or NULL
    Epilogue* epilogue

# List of the deferred ops of all threads in order of creation, no references; how many of them write in place.
cdef PyObject* oldest
cdef PyObject* newest
cdef int64_t written
# Results of fewer elements are not deferred.
cdef int64_t least
# How many deferred ops are of a device other than the CPU.
cdef int away
# Whether ops in this thread's place, which is not the CPU, may be deferred; whether a deferred op would be computed in
# this place, on this stream.
cdef bint may_defer_here() noexcept
cdef bint is_of_here(Deferred r) noexcept
# Whether this thread defers ops. The second function sets it and returns the old value.
cdef bint is_recording() noexcept
cdef bint swap_recording(bint on) noexcept
# Called around computing, and around the use of a Prologue. No other thread computes in between, so operands stay
# where they are.
cdef void begin() noexcept
cdef void end() noexcept
# Compute a deferred op, and other results that its kernel should write: see fusion.pyx, which sets it.
ctypedef int (*computer_t)(Deferred) except -1
cdef void set_computer(computer_t function) noexcept
cdef int compute(Deferred r) except -1

# Whether kernels compute in a dtype itself; whether a tensor's memory is in this thread's place; whether only taeda can
# read and write it, and deferred ops support its dtype; whether a deferred op computes exactly that tensor, in the form
# of `out`.
cdef bint is_plain(int code) noexcept
cdef bint holds_values(Tensor t) noexcept
cdef bint is_free(Tensor t) noexcept
cdef bint same_form(Deferred r, Tensor t, Tensor out) noexcept
# Give `r` the dtype, sizes and strides of `t`; append it to the list; make it the deferred op of the memory of `out`.
cdef void take_form(Deferred r, Tensor t) noexcept
cdef void enlist(Deferred r) noexcept
cdef void fill_later(Deferred r, Tensor out) noexcept
# Mark `r` as computed.
cdef int finish(Deferred r, Storage storage) except -1
cdef Deferred with_memory(Deferred r)
cdef bint reads(Deferred r, Storage storage) noexcept
cdef int give_memory(Storage storage) except -1
cdef bint move_block(Storage old, Storage storage) except -1
cdef int move_back(Storage old, Storage storage, char* before, list late) except -1


cdef inline int compute_row(Deferred r) except -1:
    """Compute a deferred op that is not pointwise by itself."""
    return r.rows.run_alone(r)


cdef inline bint is_held(Deferred r) noexcept:
    """Whether anything but deferred ops holds the memory of ``r``. Deferred ops have one reference for each operand."""
    return Py_REFCNT(r.storage) > (<Storage>r.storage).waits - 1


cdef inline PyObject* pending(const Source* s) noexcept:
    """The deferred op that computes an operand in the same kernel; NULL if the operand is read from memory."""
    cdef Deferred r
    if s.deferred == NULL:
        return NULL
    r = <Deferred>s.deferred
    return NULL if r.done or r.is_row else s.deferred


cdef inline bint is_undone_row(const Source* s) noexcept:
    """Whether an operand is the result of a row-wise op or ``cat`` that has not run yet."""
    return s.deferred != NULL and (<Deferred>s.deferred).is_row and not (<Deferred>s.deferred).done


cdef inline bint same_order(Tensor a, Tensor b) noexcept:
    """Whether two tensors of the same sizes have the same layout."""
    return a.contiguous and b.contiguous or memcmp(a.strides, b.strides, a.nd * sizeof(int64_t)) == 0


cdef inline void hold(Source* s) noexcept:
    """Count a copy of an operand as a reader."""
    if s.storage != NULL:
        Py_INCREF(<object>s.storage)
        (<Storage>s.storage).waits += 1
    if s.deferred != NULL:
        Py_INCREF(<object>s.deferred)
        (<Deferred>s.deferred).readers += 1
