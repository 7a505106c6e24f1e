# Launching a kernel from Python, zeros, and the settings of a thread.


cdef inline char* operand(Tensor t) except? NULL:
    """The address of an operand. A tensor with memory that is met while planning is kept for the plan."""
    if planners and t.device_type == 0:
        settle(t.storage)
        note_held(t.storage, t.storage.data, t.storage.capacity)
    return address_of(t)


def launch(size_t address, tuple tensors, tuple args, int64_t total, int64_t grain):
    """Run the kernel at ``address`` over ``[0, total)``, in pieces of ``grain`` on the thread pool.

    Args:
        address: a compiled kernel.
        tensors: what the kernel is given, outputs first: tensors, ``(tensor, bytes after its first element)``,
            tables as bytes objects, addresses of kernels, or 0.
        args: ints, and floats, which travel as the bits of a double.
        total: size of the parallel dimension.
        grain: pieces are multiples of this; no threads where ``total <= grain``.
    """
    cdef char* pointers[64]
    cdef int64_t values[128]
    cdef Py_ssize_t i, n = PyTuple_GET_SIZE(tensors), m = PyTuple_GET_SIZE(args)
    cdef object x
    cdef double real
    if n > 64 or m > 128:
        raise ValueError(f"launch: at most 64 tensors and 128 arguments, got {n} and {m}")
    for i in range(n):
        x = <object>PyTuple_GET_ITEM(tensors, i)
        if isinstance(x, Tensor):
            pointers[i] = operand(<Tensor>x)
        elif type(x) is tuple:
            pointers[i] = operand((<tuple>x)[0]) + <int64_t>(<tuple>x)[1]
        elif type(x) is bytes:
            pointers[i] = PyBytes_AS_STRING(x)
            note_held(x, pointers[i], len(<bytes>x))
        else:
            pointers[i] = <char*><size_t>x
    for i in range(m):
        x = <object>PyTuple_GET_ITEM(args, i)
        if PyFloat_CheckExact(x):
            real = PyFloat_AS_DOUBLE(x)
            memcpy(&values[i], &real, 8)
        else:
            values[i] = x
    run_kernel(<kernel_t>address, pointers, <int>n, values, <int>m, total, grain, False)


def written_beside(Tensor t):
    """The memory of ``t`` outside the graph, with a version counter of its own: for a kernel that writes there now,
    while the graph keeps it and never reads it."""
    cdef Tensor other = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
    settle(t.storage)
    other.storage = foreign_storage(t.storage.data, t.storage.capacity, t.storage)
    other.storage.may_resize, other.storage.device = False, t.storage.device
    return other


def bump(Tensor t):
    """Count an in-place write to the storage of ``t``."""
    t.storage.version += 1


def label_node(Tensor t, str label):
    """Give what made ``t``, where that is recorded, the name that its printed form shows; gives ``t``."""
    if t.grad_fn_ is not None:
        t.grad_fn_.label = label
    return t


def set_version(Tensor t, int64_t version):
    """Set the version counter (``_unsafe_preserve_version_counter``)."""
    t.storage.version = version


def copy_tensor(Tensor target, Tensor source):
    """Copy and convert elements into ``target``, broadcasting; neither recorded nor counted as a write."""
    copy_into(target, source)


def require_device(where):
    """Raise where ``where`` (a device, a string, an index) is not a device that tensors can be on."""
    check_device(where)


cdef enum:
    ZERO_PIECE = 1 << 18  # bytes


cdef void zero_piece(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    memset(ptr[0] + begin, 0, end - begin)


def zero(Tensor t):
    """Set every element to zero; neither recorded nor counted as a write."""
    if t.holds == NOTHING and hasattr(t, "_zero"):
        t._zero()
        return
    if is_dense(t):
        zero_bytes(stored_at(t), t.count * ITEMSIZE[t.code])
    else:
        copy_into(t, zero_scalar(t.code))


cdef int zero_bytes(char* to, int64_t nbytes) except -1:
    run_kernel(zero_piece, &to, 1, NULL, 0, nbytes, ZERO_PIECE, nbytes < 4 * ZERO_PIECE)
    return 0


cdef Tensor zero_scalar(int code):
    cdef int64_t none = 0
    cdef Tensor t = empty_tensor(code, 0, &none)
    zero_bytes(address_of(t), ITEMSIZE[code])
    return t


def is_dense_tensor(Tensor t):
    """Whether the elements fill a block of memory without holes or overlap."""
    return is_dense(t)


def set_grad_enabled(bint enabled):
    """Turn recording on this thread on or off; gives the previous setting."""
    return swap_no_grad(0 if enabled else 1) == 0


def is_grad_enabled():
    """Whether ops on this thread are recorded."""
    return NO_GRAD[0] == 0


def set_inference(bint enabled):
    """Turn inference mode on this thread on or off; gives the previous setting."""
    cdef bint previous = INFERENCE[0]
    INFERENCE[0] = enabled
    return previous


def is_inference_mode_enabled():
    """Whether tensors made now are inference tensors."""
    return INFERENCE[0] != 0


METHODS_OWN = frozenset("function __class__ __get__ __reduce__ __reduce_ex__ __eq__ __hash__ __call__".split())
