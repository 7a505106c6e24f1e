"""Functions that launchers of row-wise kernels share with reductions."""

from libc.stdint cimport int8_t, int64_t, uint64_t

from .pool cimport kernel_t
from .deferred cimport Prologue
from .tensor cimport MOST_FUSED, NDTYPES, Tensor, dtype

cdef enum:
    MAXSTATES = 4
    PIECE = 65536         # elements worth a task of their own on the thread pool

cdef struct Group:        # neighbouring dimensions that act as one
    int64_t size
    int64_t stride        # bytes

cdef struct Kernel:
    kernel_t fn
    int lanes

cdef struct Layout:
    int64_t n0, n1, s0, s1      # the row: inner and outer size and stride
    int64_t a, b, sa, sb        # the rows: outer and inner number and stride
    bint columns, strided

cdef class Reducer:
    cdef readonly str name
    cdef readonly str op
    cdef int nouts, nstates, nparams
    cdef bint ordered, identity, single, correction
    cdef signed char rules[2][NDTYPES]
    cdef uint64_t owner, merges              # ids of its kernels, see planners.pxd
    cdef int8_t lanes[NDTYPES * NDTYPES]     # by input and output code
    cdef int widths[NDTYPES * NDTYPES][MAXSTATES]
    cdef object reduce(self, object input, object dim, bint keepdim, dtype out, double p, double q)
    cdef Tensor arrange(self, Tensor x, object dim, uint64_t mask, bint keepdim, Layout* layout, int64_t* shape,
                        int64_t* strides, int* nd, bint* permuted)
    cdef bint output_order(self, Tensor x, uint64_t mask, bint keepdim, int* kept, int nk, int64_t* strides)
    cdef int raise_empty(self, Tensor x, object dim) except -1
    cdef int raise_out(self, dtype out) except -1
    cdef str allowed(self)
    cdef int raise_dtype(self, Tensor x) except -1
    cdef int key(self, int code, int out) noexcept
    cdef Kernel find(self, Tensor x, Tensor first, Tensor second, int variant) except *
    cdef Kernel find_there(self, Tensor x, Tensor first, Tensor second, int variant) except *
    cdef tuple out_names(self, Tensor first, Tensor second)
    cdef kernel_t find_merge(self, Tensor x, Tensor first, Tensor second, int together) except NULL
    cdef kernel_t find_fused(self, object key, Prologue* prologue, Tensor first, Tensor second,
                             int variant) except NULL
    cdef bint place_leaves(self, Tensor x, uint64_t mask, Prologue* p, const Layout* l, Layout* made) noexcept
    cdef bint may_wait(self, Tensor x, Tensor first) noexcept
    cdef int launch_into(self, Tensor x, Layout* l, Tensor first, Tensor second, int64_t* params,
                         uint64_t mask) except -1
    cdef int launch(self, Tensor x, Layout* l, Tensor first, Tensor second, char** results, int64_t* params,
                    uint64_t mask) except -1
    cdef int launch_chunks(self, Tensor x, Layout* l, Tensor first, Tensor second, char** results, int64_t* params,
                           int variant, int64_t limit, int64_t turns, object key, Prologue* prologue,
                           char* read) except -1

cdef enum:
    WARP_CHUNK = 2048     # elements of a chunk where there are no vectors, and the threads of a warp share a row, of
    FEW_ROWS = 1024       # less than so many rows

cdef bint are_few_and_long(int64_t rows, int64_t n) except -1

cdef int coalesce_leaves(Tensor x, const int* dims, int n, const Prologue* p, Group* groups,
                         int64_t (*steps)[MOST_FUSED]) noexcept
# Launch over `a * b` rows of `count` elements; with `fully`, pieces of column mode have all `b` if possible.
cdef int launch_rows(Kernel kernel, char** pointers, int npointers, int64_t* args, int nargs, int64_t a, int64_t b,
                     int64_t count, bint columns, bint fully) except -1
