# cython: embedsignature=True, embedsignature.format=clinic
"""Tensor, the graph and the call path. One compilation unit, in the order in which it is read:

``dtype.pxi`` types and promotion; ``new_tensor.pxi`` new tensors; ``addresses.pxi`` who may reach their elements;
``tensor.pxi`` the object; ``scalars.pxi`` elements as numbers; ``hooks.pxi``; ``set_data.pxi`` what gives a tensor
other contents; ``graph.pxi`` what recording leaves behind, ``inplace.pxi`` where a tensor was written to,
``function.pxi`` a user's own operations; ``arguments.pxi`` checks; ``call.pxi`` the one path of every op,
``modes.pxi`` and ``overrides.pxi`` who sees a call before; ``composite.pxi`` functions written in ops;
``methods.pxi`` ops as methods; ``pointwise.pxi`` the launcher of pointwise kernels, ``layout.pxi`` where their
operands lie; ``copying.pxi`` copies; ``views.pxi`` views and indexing.
The backward pass is in ``engine.pyx``, launches from Python are in ``launching.pyx``.
"""

cimport cython
from cpython.bool cimport PyBool_Check
from cpython.buffer cimport PyBUF_F_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.list cimport PyList_Check
from cpython.number cimport PyIndex_Check
from cpython.long cimport PyLong_Check, PyLong_CheckExact, PyLong_FromLongLong
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.slice cimport PySlice_Check
from cpython.tuple cimport PyTuple_Check, PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_Check
from cpython.weakref cimport PyWeakref_NewRef
from libc.math cimport fabs, ldexp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from .devices cimport (
    CPU_NUMBER, FROM_HOST, FROM_TABLE, META_NUMBER, TO_HOST, WITHIN, Way, build_there, devices, elsewhere, end_call,
    here, kernel_place, nstreams, number_of, stream_here, swap_place,
)
from .dims cimport contiguous_strides, count_of, distance, merge_dims, overflows_times, plus, times
from .memory cimport (
    Original, Storage, begin_generation, compute_to_read, ensure_computed, enter, export_of, foreign_storage,
    keeps_address, late_storage, leave, n_deferred, new_storage, resize_storage, root, show,
)
from .callbacks import callbacks
from .devices import ABSENT, DEVICES, DEVICE_TYPES, accelerator, device_count, is_registered
from .machine import stream_bytes
from .memory import MetaMemoryError, MetaValueError, on_move, on_reach
from .planners cimport RUN_PIECE, host_function, keep, known, new_owner, of_family, planner_of
from .planners import add_planner
from .pool cimport Watch, heed, kernel_t, launch as run_kernel, watch
from .recorder cimport is_observing, note_held, refuse_recording

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    ctypedef struct PyMappingMethods:
        object (*mp_subscript)(object, object)
    ctypedef struct PyTypeObject:
        const char* tp_name
        PyMappingMethods* tp_as_mapping
        Py_ssize_t tp_vectorcall_offset
        Py_ssize_t tp_dictoffset
        object (*tp_alloc)(PyTypeObject*, Py_ssize_t)
        object (*tp_new)(PyTypeObject*, object, PyObject*)
        object (*tp_call)(object, object, object)
        unsigned long tp_flags
        PyObject* tp_dict
    ctypedef struct PyHeapTypeObject:
        PyObject* ht_name
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR
    unsigned long Py_TPFLAGS_IMMUTABLETYPE
    void PyType_Modified(PyTypeObject*)
    object PyVectorcall_Call(object, object, object)
    object PyObject_Vectorcall(object, PyObject**, size_t, PyObject*)
    object PyMethod_New(object, object)
    object PyObject_GenericGetDict(object, void*)
    int PyObject_GenericSetDict(object, object, void*) except -1
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(object)
    PyObject** PySequence_Fast_ITEMS(object)
    Py_ssize_t Py_REFCNT(PyObject*)
    PyTypeObject* Py_TYPE(PyObject*)
    void Py_SET_TYPE(PyObject*, PyTypeObject*)
    PyObject* _PyType_Lookup(PyTypeObject*, object)
    bint PyType_Check(object)
    int PyErr_ExceptionMatches(object)
    void PyErr_Fetch(PyObject**, PyObject**, PyObject**)
    void PyErr_Restore(PyObject*, PyObject*, PyObject*)
    void PyErr_SetObject(object, object)
    void Py_XDECREF(PyObject*)
    double PyFloat_Unpack2(const char*, int) except? -1
    int PySlice_Unpack(object, Py_ssize_t*, Py_ssize_t*, Py_ssize_t*) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t*, Py_ssize_t*, Py_ssize_t)

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define TAEDA_THREAD_LOCAL __declspec(thread)
    #elif defined(__GLIBC__)
    /* one instruction, where other models call a function */
    #define TAEDA_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
    #else
    #define TAEDA_THREAD_LOCAL __thread
    #endif
    /* per thread: GRAD_ON, GRAD_OFF or TANGENTS, levels of forward mode, inference mode, and the stack of modes (NULL
       when empty) */
    static TAEDA_THREAD_LOCAL int taeda_no_grad[1];
    static TAEDA_THREAD_LOCAL int taeda_forward_levels[1];
    static TAEDA_THREAD_LOCAL int taeda_inference[1];
    static TAEDA_THREAD_LOCAL PyObject *taeda_modes[1];
    /* per thread: which overrides (__torch_function__) there are; see call.pxi */
    static TAEDA_THREAD_LOCAL int taeda_override_flags[1];
    /* per thread: the stack of (pack, unpack) of saved_tensors_hooks (NULL when empty) */
    static TAEDA_THREAD_LOCAL PyObject *taeda_saved_hooks[1];
    """
    int* NO_GRAD "taeda_no_grad"
    int* FORWARD_LEVELS "taeda_forward_levels"
    int* INFERENCE "taeda_inference"
    PyObject** MODES "taeda_modes"
    int* OVERRIDE_FLAGS "taeda_override_flags"
    PyObject** SAVED_HOOKS "taeda_saved_hooks"


#: The number of arguments without the flag of the vectorcall protocol.
cdef size_t VECTORCALL_COUNT = ~(<size_t>1 << (8 * sizeof(size_t) - 1))

ctypedef PyObject* (*call_t)(PyObject*, PyObject**, size_t, PyObject*) noexcept


cdef int swap_no_grad(int value) noexcept:
    """Set which ops are recorded; the previous setting."""
    cdef int previous = NO_GRAD[0]
    NO_GRAD[0] = value
    return previous


cdef int grad_setting() noexcept:
    """The setting for which ops are recorded."""
    return NO_GRAD[0]


cdef int64_t setting_word() noexcept:
    return DEFAULT_FLOAT | <int64_t>INFERENCE[0] << 10


cpdef int forward_levels() noexcept:
    """The number of levels of forward mode that this thread has entered."""
    return FORWARD_LEVELS[0]


include "dtype.pxi"
include "new_tensor.pxi"
include "addresses.pxi"
include "tensor.pxi"
include "scalars.pxi"
include "hooks.pxi"
include "set_data.pxi"
include "buffer.pxi"
include "graph.pxi"
include "inplace.pxi"
include "arguments.pxi"
include "function.pxi"
include "call.pxi"
include "modes.pxi"
include "composite.pxi"
include "overrides.pxi"
include "methods.pxi"
include "pointwise.pxi"
include "layout.pxi"
include "copying.pxi"
include "views.pxi"

_make_dtypes()
ALL_DTYPES = tuple(DTYPES)                          # by code
DTYPE_NAMES = tuple([d.name for d in ALL_DTYPES])
_prepare_op_type()
_prepare_tensor_type()
set_namespace(NAMESPACE)
on_move(follow_storage)


#: Functions of this module that launches run, and their addresses: `kernels/host_functions.py` has each as a kernel.
HOST_FUNCTIONS = {
    "copy_piece": <size_t><void*>copy_piece,
    "zero_piece": <size_t><void*>zero_piece,
}
