"""Tensor, the graph's nodes and the call path: what other modules of the core may use."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from .devices cimport elsewhere
from .memory cimport Original, Reader, Storage, ensure_computed, n_deferred
from .pool cimport kernel_t
from .recorder cimport note_held, refuse_recording

cdef enum:
    INLINE = 6       # dimensions kept inside the Tensor object
    MAXDIM = 64
    MAXARGS = 32     # parameters of an op
    OUTPUT_BIT = MAXARGS
    KNOWN_VARIANTS = 16  # variants by the first four attributes of a pointwise op
    MAXOPERANDS = 8  # memory operands of a pointwise op
    MOST_FUSED = 14  # the same of a kernel of several ops

cdef enum:  # operators
    ADD, SUB, RSUB, MUL, DIV, RDIV, FLOORDIV, RFLOORDIV, REMAINDER, RREMAINDER, POW, RPOW, MATMUL, RMATMUL
    AND, OR, XOR, LSHIFT, RLSHIFT, RSHIFT, RRSHIFT, LT, LE, GT, GE, EQ, NE, NEG, POSITIVE, ABS, INVERT
    IADD, ISUB, IMUL, IDIV, IFLOORDIV, IREMAINDER, IPOW, IAND, IOR, IXOR, ILSHIFT, IRSHIFT
    NOPERATORS

cdef enum:  # whether a thread records its ops
    GRAD_ON, GRAD_OFF
    TANGENTS     # under no_grad where forward mode is on: recorded in nodes that reverse passes do not enter

cdef enum Creation:  # where a view was made: from all but the first, writing to it in place cannot be recorded
    RECORDED, IN_NO_GRAD, IN_INFERENCE, IN_FUNCTION
    UNTIED       # the same bytes as another dtype: the graph knows nothing of it

# the contents of a tensor's memory: its values, their conjugates (for a real dtype: negatives), nothing
cdef enum Holding:
    VALUES, CONJUGATES, NOTHING

cdef enum Code:
    BOOL, U8, I8, I16, I32, I64, U16, U32, U64, F16, BF16, F32, F64, C64, C128, C32
    F8_E4M3FN, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F8_E8M0FNU
    F4_E2M1FN_X2     # two numbers to a byte: stored, moved and viewed, but nothing computes with it
    NDTYPES
    NO_COMMON = 30   # promotion of a float8 with another dtype
    PARAM = 31       # a number, in the keys of kernels
    CODES = 32       # a code takes 5 bits

cdef enum:           # DOMAIN of a dtype beside its kind
    FLOAT8 = 4
    NOWHERE = 5      # no op takes it

cdef class dtype:
    cdef readonly int code
    cdef readonly int itemsize
    cdef readonly str name
    cdef readonly bint is_floating_point
    cdef readonly bint is_complex
    cdef readonly bint is_signed

cdef class device:
    cdef readonly str type
    cdef readonly object index

@cython.freelist(512)
@cython.trashcan(True)
cdef class Tensor:
    cdef Storage storage
    cdef char* raw               # first element, offset included; what reads or writes elements asks `address_of`
    cdef int64_t count           # elements
    cdef int64_t* sizes          # points into `dims`, or to the heap above INLINE dimensions
    cdef int64_t* strides        # in elements
    cdef int64_t dims[2 * INLINE]
    cdef object heap_dims        # bytes that hold them above INLINE dimensions
    cdef int nd                  # dimensions
    cdef int8_t code             # dtype, a Code
    cdef int8_t device_type      # 0: CPU, 1: meta, else one that was registered (planners.pyx)
    cdef int8_t creation         # for a view: where it was made, a Creation
    cdef int8_t holds            # contents of the memory, a Holding
    cdef bint overrides          # its class overrides calls; ALWAYS by __torch_dispatch__
    cdef bint contiguous
    cdef bint leaf_grad          # requires_grad of a leaf
    cdef bint retains_grad_
    cdef bint inference
    cdef int nr                  # which output of grad_fn_ it is
    cdef Node grad_fn_
    cdef object grad_
    cdef Tensor base             # the tensor that this one is a differentiable view of
    cdef int64_t view_version    # the storage's version when grad_fn_ was set on a view
    cdef int64_t version_offset  # its version is the storage's plus this: see set_data.pxi
    cdef int64_t replaced        # how often its memory or its form was replaced; upper half: how often it was swapped
    cdef object hooks            # hooks of a leaf: dict id -> function
    cdef object post_hooks       # after accumulation into .grad
    cdef int64_t before_attributes  # Cython gives no address of an object field: this one's neighbour has one
    cdef object attributes       # the instance's __dict__; NULL until an attribute is set
    cdef object __weakref__

@cython.freelist(256)
@cython.trashcan(True)
cdef class Node:
    cdef Op op                   # not public: a Function's ctx has names of its own
    cdef tuple targets           # per differentiable input: the Node or leaf Tensor that made it, or None
    cdef int32_t nr_inline[4]
    cdef int32_t* nrs            # which output of the target
    cdef object heap_nrs         # bytes that hold them for more than four inputs
    cdef list args               # saved arguments, by parameter
    cdef list outs               # saved outputs
    cdef dict shapes             # saved sizes, by parameter
    # per differentiable parameter: number of tensors of a list, or None where none is a list
    cdef tuple counts
    cdef tuple metas             # per differentiable parameter: (sizes, dtype code), where a cast or a sum may be due
    cdef tuple out_metas         # per output, where there are several: (sizes, dtype code)
    cdef object custom           # a function from gradients to gradients, in place of op
    cdef object pre_hooks
    cdef object post_hooks
    cdef object tensor_hooks     # dict output_nr -> dict of hooks
    cdef object retained         # dict output_nr -> weak reference to a tensor with retain_grad
    cdef str label
    cdef dict notes
    cdef object trace
    cdef object __weakref__
    cdef int64_t seq
    cdef int64_t walk            # the last look through graphs that met it, and which node it was there (passes.pyx)
    cdef int place
    cdef int noutputs
    cdef int8_t out_code         # dtype of the only output, -1: not known
    cdef int8_t released
    cdef int8_t dual             # its outputs may have a tangent
    cdef int8_t tangents         # reverse passes do not enter it; 2: it has overwritten a tensor that they lead to
    cdef int32_t stream          # the device's stream on which the op ran; 0: the default one

@cython.no_gc_clear   # it leaves the storage's list while the storage is there
@cython.final
cdef class ReaderEntry:
    cdef Reader reader
    cdef Storage storage

@cython.freelist(256)
@cython.trashcan(True)
@cython.final
cdef class Saved:
    cdef Tensor tensor
    cdef Node made_by
    cdef int nr
    cdef Storage storage         # the tensor's storage then; None if its lazy copy is kept
    cdef int64_t version
    cdef int64_t replaced        # the tensor's count of that name
    cdef bint is_output
    cdef object packed
    cdef object unpack
    cdef Tensor leaf             # packed leaf: the leaf itself, as second derivatives lead to it
    # of an output that was written in place through a view: a weak reference to its CopySlices
    cdef object written
    cdef Original original               # the storage of the lazy copy that is kept in the tensor's place; else None
    cdef ReaderEntry entry       # its entry among the storage's readers; None if it has none

cdef class CopySlices:
    cdef object base
    cdef object view
    cdef Node inner
    cdef int position            # which input of `inner` was written

@cython.final
cdef class NodeHook:
    cdef object function

cdef class Composite:
    cdef void* vectorcall
    cdef dict __dict__           # __name__, __doc__, __wrapped__ ...
    cdef readonly object function
    cdef readonly str name
    # what its first parameters take, see arguments.pxi
    cdef tuple params
    cdef tuple defaults
    cdef dict positions          # positions of its parameters, by name
    cdef int8_t takes[MAXARGS]
    cdef int ntakes              # number of parameters taken by position
    cdef int npositional
    cdef bint may_be_older       # whether calls in older forms differ from today's, see ops/older.py


cdef class Op:
    cdef void* vectorcall
    cdef dict __dict__           # __name__, __doc__, __signature__ ...
    cdef readonly str name
    cdef public dict traits
    cdef readonly object body
    cdef readonly tuple params
    cdef readonly tuple defaults
    cdef tuple keywords          # names of keyword-only parameters
    cdef dict param_index
    cdef int8_t takes[MAXARGS]   # kinds of arguments, see arguments.pxi
    cdef int ntakes              # up to the last that does not take anything
    cdef int kind
    cdef int nparams
    cdef readonly int npositional
    cdef int nrequired
    cdef int variadic
    cdef bint has_out
    cdef bint inplace
    cdef object result_type
    cdef Op functional           # for an in-place form: the op it belongs to
    cdef Op inplace_form
    # derivative
    cdef int ndiff
    cdef int diff_pos[16]
    cdef readonly tuple diff_fns
    cdef tuple diff_plans
    cdef bint joint              # one derivative function gives every gradient
    cdef uint64_t save_args[16]  # per differentiable parameter: bit i is parameter i
    cdef uint64_t save_outs[16]
    cdef uint64_t save_shapes[16]
    cdef uint64_t copied         # which saved tensors are copied before a write; from OUTPUT_BIT on, which results
    # pointwise
    cdef int noperands
    cdef int nouts
    cdef int promote
    cdef int out_rule
    cdef readonly uint32_t promote_mask  # which operands take part in promotion
    cdef uint32_t tensor_mask           # which operands may not be numbers
    cdef uint32_t fits                  # which parameters must be numbers of the computing dtype; see FITS_WORK
    cdef int8_t rounds                  # when numbers beyond the range of float16, bfloat16 and float8 become infinite
    cdef bint strict_bool               # a difference: no operand may be a bool
    cdef bint row_major                 # its result is contiguous, whatever the strides of its operands
    cdef bint exact                     # its attributes may not be of a higher kind than the computing dtype
    cdef bint one_dtype                 # body_check is about operands of several dtypes alone
    cdef uint32_t kinds          # bit k: computing dtypes of DOMAIN k are allowed
    cdef dict variants
    cdef int32_t known_variants[KNOWN_VARIANTS]  # by which attributes are numbers, where the others are the default
    cdef uint64_t owner          # id of its kernels in the table, see planners.pxd
    cdef dict plans              # by the forms of the arguments (see plan.pyx); None if the op keeps none
    cdef bint repeats            # whether its result can be computed again from what its derivative keeps
    cdef int sums_over           # for a product: the dimension of its first operand that it sums over, 1 or -1; else 0
    cdef int8_t fuses            # whether it may be deferred (see fusion.pyx): 1, -1; 0: not known
    cdef public object body_check   # called with the arguments before computing, to raise; None if there is none

cdef int[CODES] ITEMSIZE
cdef int[CODES] KIND             # 0 bool, 1 integer, 2 float, 3 complex
cdef int[CODES] DOMAIN           # the kind, but for float8, which few ops compute with
cdef int[CODES] WORK             # the dtype that kernels compute in: float32 for narrower floats
cdef int[CODES] REAL_OF          # the dtype of a complex number's parts
cdef int[CODES] COMPLEX_OF       # the complex dtype with parts of this one; -1: there is none

cdef list DTYPES                 # dtype objects by code

# A pointwise launch in the making.
cdef struct Launch:
    kernel_t kernel
    int nmem                      # memory operands, outputs first
    int nd                        # coalesced dimensions
    int narg
    int64_t sizes[MAXDIM]
    int64_t strides[MOST_FUSED][MAXDIM]   # bytes
    int64_t arg[2 + 2 * MOST_FUSED + 2 * MAXARGS]
    char* ptr[MOST_FUSED]

cdef enum:
    STREAM_LEAST = 262144         # elements below which nothing is stored past the cache, however small that is
    STREAM_GRAIN = 65536          # elements of a piece then: each ends by waiting for its stores

cdef void coalesce(Launch* L) noexcept
cdef char layout_class(Launch* L, int k, int itemsize) noexcept
cdef bint stores_stream(Launch* L, int nout, const char* classes, int64_t count) except -1
cdef int run_elements(Launch* L, int64_t count, int64_t grain) except -1
cdef bint beyond_real(int code, double x) noexcept
cdef int check_number(object x, int code) except -1
cdef int number_slots(object x, int compute, int64_t* slots) except -1
cdef int out_code(Op op, int compute) noexcept
cdef int broadcast_shape(Op op, PyObject** inputs, int nin, int64_t* shape) except -1
cdef Tensor new_output(PyObject** inputs, int nin, int code, int nd, const int64_t* shape, bint late=*)
cdef Tensor empty_strided_like(int dtype, Tensor like, bint late=*)
cdef bint is_dense(Tensor t) noexcept
cdef bint same_sizes(Tensor a, Tensor b) noexcept

# A function that may defer a pointwise op, into a new tensor or a given one. It returns the result, or None if the op
# must be computed at once. Below it, a function that computes storages together.
ctypedef object (*recorder_t)(Op, PyObject**, int, int, int, Tensor)
ctypedef int (*compute_all_t)(list) except -1
ctypedef bint (*compute_into_t)(Tensor, Tensor) except -1
ctypedef int (*give_memory_t)(Storage) except -1
ctypedef Tensor (*lazy_copy_of_t)(Tensor, bint)
ctypedef Tensor (*run_again_t)(Op, PyObject**, Tensor)
ctypedef bint (*keep_lazy_copy_t)(Tensor, Tensor) except -1
cdef void set_recorder(recorder_t recorder, compute_all_t compute_all, compute_into_t compute_into,
                       give_memory_t give_memory, lazy_copy_of_t lazy_copy_of, run_again_t run_again,
                       keep_lazy_copy_t keep_lazy_copy) noexcept
# Memory for a storage that has none yet, before another tensor shares it.
cdef int need_memory(Storage storage) except -1
cdef int recorders           # threads that put ops off
cdef object COPY             # the pointwise op that copies, bound by taeda.ops

# The function that an op with plans calls in place of its body.
ctypedef object (*planner_t)(Op, PyObject**)
cdef void set_planner(planner_t planner) noexcept
cdef object call_body(Op op, PyObject** bound)

# Functions for the engine.
cdef object binary(int which, Tensor a, object b)
cdef int swaps_of(Tensor t) noexcept
cdef object edge_of(Tensor t, int* nr)
cdef object unpack_value(object x, Node node)
cdef bint is_as_saved(Saved s) except -1
cdef object resolved(object t)
cdef bint has_mode() noexcept
cdef bint looks_for_nan() noexcept
cdef int compute_late(list storages) except -1
cdef int swap_no_grad(int value) noexcept
cdef int grad_setting() noexcept
# What results depend on beside the arguments: the default dtype, the inference mode.
cdef int64_t setting_word() noexcept
cpdef int forward_levels() noexcept
cpdef object run_function(type context_class, tuple args, object forward, object setup, object own_outputs)

cdef Tensor empty_tensor(int dtype, int ndim, const int64_t* sizes, bint late=*)
cdef Tensor storage_tensor(Storage storage, int code, int n, const int64_t* sizes, const int64_t* strides,
                           int64_t offset)
cdef Tensor alias_tensor(Tensor source, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset,
                         bint late=*)
cdef Tensor contiguous_tensor(Tensor source)
# The elements of a tensor on a device on the CPU, outside the graph: the one way by which the host reads them.
cdef Tensor to_host(Tensor t)
# An uninitialised tensor that the host fills, and the same where the launches of this thread's place read it.
cdef Tensor host_tensor(int dtype, int ndim, const int64_t* sizes)
cdef Tensor uploaded(Tensor t)
cdef int zero_tensor(Tensor t) except -1
cdef int zero_bytes(char* to, int64_t nbytes) except -1
cdef int copy_into(Tensor target, Tensor source) except -1
cdef object make_size(int ndim, const int64_t* sizes)
cdef int refresh(Tensor t) except -1
cdef object read_scalar(const char* p, int code)
cdef int scalar_code(object x) except -1
cdef int parse_sizes(object sizes, int64_t* out) except -1
cdef int check_device(object where) except -1
cdef int wrap_dim(object dim, int ndim, str name) except -1
cdef char* computed_address(Tensor t, bint conjugates=*, bint reading=*) except? NULL nogil
cdef char* refuse_elements(Tensor t) except NULL


cdef inline bint is_plain(PyObject* x) noexcept:
    """Whether ``x`` is of the class Tensor itself, and its memory holds its values."""
    return type(<object>x) is Tensor and (<Tensor>x).holds == VALUES


cdef inline char* address_of(Tensor t) except? NULL nogil:
    """The address of the elements of ``t``. Computes deferred ones first; raises if the memory does not hold what
    ``t`` shows."""
    return t.raw if t.holds == VALUES and not n_deferred else computed_address(t)


cdef inline char* address_to_read(Tensor t) except? NULL:
    """`address_of` for reading only. Deferred reads of the same memory by others need not be computed first."""
    return (t.raw if t.holds == VALUES and (not n_deferred or t.storage.deferred is None)
            else computed_address(t, False, True))


cdef inline char* elements_of(Tensor t) except? NULL:
    """`address_of` for the processor to read at once: a thread that plans has no elements either."""
    if elsewhere:
        refuse_recording(b"elements are read")
    return address_of(t) if t.device_type == 0 else refuse_elements(t)


cdef inline char* operand(Tensor t) except? NULL:
    """The address of an operand. A tensor with memory that is met while planning is kept for the plan."""
    if elsewhere and t.device_type == 0:
        ensure_computed(t.storage)
        note_held(t.storage, t.storage.data, t.storage.capacity)
    return address_of(t)


cdef inline bint is_conjugate_view(Tensor t) noexcept:
    """Whether the memory of ``t`` holds the conjugates, or for a real dtype the negatives, of its values."""
    return t.holds == CONJUGATES


cdef inline char* stored_at(Tensor t) except? NULL nogil:
    """The address of the elements of ``t``, or of their conjugates (negatives), which the caller handles."""
    return t.raw if t.holds != NOTHING and t.device_type == 0 and not n_deferred else computed_address(t, True)


cdef inline char* stored_to_read(Tensor t) except? NULL nogil:
    """`stored_at` for reading only."""
    return t.raw if t.holds != NOTHING and t.device_type == 0 and not n_deferred else computed_address(t, True, True)
