"""Functions for Python below the ops: launches of kernels, copies, and marks on versions and nodes."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .devices cimport FROM_TABLE, META_NUMBER, devices, elsewhere, end_call, here
from .memory cimport ensure_computed, foreign_storage, release_scratch, root, take_scratch
from .pool cimport kernel_t, launch as run_kernel
from .recorder cimport current, note_held
from .tensor cimport Tensor, alias_tensor, check_device, copy_into, is_dense, operand, uploaded, wrap_dim

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(object)


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
    if elsewhere and here() > META_NUMBER:
        tensors = sent(tensors)
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
        if PyFloat_Check(x):
            real = PyFloat_AS_DOUBLE(x)
            memcpy(&values[i], &real, 8)
        else:
            values[i] = x if PyLong_Check(x) else PyNumber_Index(x)  # not int(x): a float of another kind is an error
    if here() > META_NUMBER:
        launch_there(address, tensors, pointers, <int>n, values, <int>m, total, grain)
        return
    run_kernel(<kernel_t>address, pointers, <int>n, values, <int>m, total, grain, False)


cdef tuple sent(tuple tensors):
    """Operands of a launch on a device: copies there of tables that an op keeps on the CPU."""
    return tuple([uploaded(x) if isinstance(x, Tensor) else (uploaded(x[0]), x[1]) if type(x) is tuple else x
                  for x in tensors])


cdef int launch_there(size_t address, tuple tensors, char** pointers, int n, const int64_t* values, int m,
                      int64_t total, int64_t grain) except -1:
    """The launch on a device, which gets the tables."""
    cdef int i
    cdef int64_t nbytes
    cdef char* room
    for i in range(n):
        if type(tensors[i]) is bytes:
            nbytes = len(<bytes>tensors[i])
            room = <char*>take_scratch(nbytes)
            if room == NULL:
                raise MemoryError(f"no memory for a table of {nbytes} bytes")
            devices[here()].copy(here(), room, pointers[i], nbytes, FROM_TABLE)
            pointers[i] = room
    run_kernel(<kernel_t>address, pointers, n, values, m, total, grain, False)
    for i in range(n):
        if type(tensors[i]) is bytes:
            release_scratch(pointers[i], len(<bytes>tensors[i]))
    return end_call()


def written_beside(Tensor t):
    """The memory of ``t`` outside the graph, with a version counter of its own: for a kernel that writes there now,
    while the graph keeps it and never reads it."""
    cdef Tensor other = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
    ensure_computed(t.storage)
    other.storage = foreign_storage(t.storage.data, t.storage.capacity, root(t.storage))
    other.storage.device = t.storage.device
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
    t.storage.version = version - t.version_offset


def copy_tensor(Tensor target, Tensor source):
    """Copy and convert elements into ``target``, broadcasting; neither recorded nor counted as a write."""
    copy_into(target, source)


def wrapped_dim(dim, int ndim, str name):
    """A dimension of the op ``name`` in ``[0, ndim)``, -1 being the last; a tensor without dimensions takes 0 and -1.

    Raises:
        IndexError: there is no such dimension.
    """
    return wrap_dim(dim, ndim, name)


def require_device(device):
    """Raise if ``device`` (a device, a string, an index) is not one that tensors can be on."""
    check_device(device)


def is_dense_tensor(Tensor t):
    """Whether the elements fill a block of memory without holes or overlap."""
    return is_dense(t)


def kernels_run_on(Tensor t):
    """Whether kernels that are to write to ``t`` run, now or from a plan: not on device meta."""
    return t.device_type != META_NUMBER or current() != NULL
