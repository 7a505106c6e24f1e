"""Helpers of ops that make tensors: memory for sizes given in any form, the end of such a call, and sequences."""

from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_CheckExact
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_Check
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1

from .planners cimport new_owner, of_dtype
from .pool cimport launch as run_kernel
from .tensor cimport (
    KIND, MAXDIM, Op, Tensor, call_body, check_device, dtype, empty_tensor, has_mode, operand, scalar_code,
)

import math

from .callbacks import callbacks

cdef uint64_t SEQUENCE = new_owner("copy.sequence"), SPACED = new_owner("copy.spaced")
cdef uint64_t IDENTITY = new_owner("copy.identity")

cdef enum:
    COUNT_PIECE = 1 << 15  # elements that are worth a piece of their own


def new(str name, tuple given, named, d, out, device):
    """An uninitialised tensor of sizes given as ``(2, 3)`` or ``((2, 3),)``, for the op ``name``.

    Other forms of a call (sizes that are ``named``, an ``out``, a device) and errors are for ``callbacks.new``.
    """
    cdef int64_t sizes[MAXDIM]
    cdef object x, s = given
    cdef int i, beyond = 0, n = <int>len(given)
    if out is None and device is None and named is None and n:
        if n == 1 and (PyTuple_Check(given[0]) or PyList_Check(given[0])):
            s = given[0]
            n = <int>len(s)
        for i in range(min(n, MAXDIM + 1)):
            x = s[i]
            if i == MAXDIM or not PyLong_CheckExact(x):
                break
            sizes[i] = PyLong_AsLongLongAndOverflow(x, &beyond)
            if sizes[i] < 0:
                break
        else:
            return empty_tensor(scalar_code(0.0) if d is None else (<dtype?>d).code, n, sizes)
    return callbacks.new(name, given, named, d, out, device)


def finish(Tensor result, out, bint requires_grad, device=None, str name=""):
    """``result``, whose first filling is no write to count, or ``out`` with its sizes and elements."""
    if device is not None:
        check_device(device)
    if out is None:
        result.storage.version = 0
    else:
        result = callbacks.finish(result, out, name)
    return result.requires_grad_() if requires_grad else result


def fresh(Op fill, Tensor t, a, b, generator=None, bint requires_grad=False, out=None):
    """``t``, which is new or ``out``, with the random numbers of ``fill(t, a, b)``.

    Under a mode, with an ``out``, and of a tensor that may have no memory of its own, that is for ``callbacks.fresh``.
    """
    cdef PyObject* bound[4]
    if out is not None or has_mode() or type(t) is not Tensor:
        return callbacks.fresh(fill, t, a, b, generator, requires_grad, out)
    bound[0], bound[1], bound[2], bound[3] = <PyObject*>t, <PyObject*>a, <PyObject*>b, <PyObject*>generator
    call_body(fill, bound)  # a new tensor has no history
    return t.requires_grad_() if requires_grad else t


# ---- sequences -------------------------------------------------------------------------------------------------------

def number(x):
    """``x``, or the number in a tensor or an array of one element."""
    if PyFloat_CheckExact(x) or PyLong_CheckExact(x):
        return x
    return x.item() if isinstance(x, Tensor) or hasattr(x, "item") else x


def range_length(str name, start, end, step, bint whole):
    """The count of numbers from ``start`` to before ``end``."""
    if whole and step != 0 and int(step) == 0:
        raise ValueError(f"{name}(): step must be nonzero, got {step} for a result of integers")
    if step == 0:
        raise RuntimeError(f"{name}(): step must be nonzero")
    if PyComplex_Check(start) or PyComplex_Check(end) or PyComplex_Check(step):
        raise RuntimeError(f"{name}(): expected real numbers, got {start} -> {end}, step {step}")
    if not (isfinite(start) and isfinite(end)):
        raise RuntimeError(f"{name}(): unsupported range: {start} -> {end}")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError(f"{name}(): upper bound and lower bound inconsistent with step sign: {start} -> {end}, step "
                           f"{step}")
    if whole:
        start, end, step = int(start), int(end), int(step)
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def sequence(start, step, int64_t n, dtype d):
    """``n`` numbers from ``start``, ``step`` apart."""
    cdef Tensor t
    cdef double[2] reals
    cdef int64_t[2] numbers
    if KIND[d.code] == 3:
        raise NotImplementedError(f'"arange_cpu" not implemented for {d}')
    t = empty_tensor(d.code, 1, &n)
    if KIND[d.code] == 2:
        reals[0], reals[1] = start, step
        memcpy(numbers, reals, 16)
    else:
        numbers[0], numbers[1] = int(start), int(step)
    count(t, SEQUENCE, numbers, 2)
    return t


def spaced(start, end, int64_t n, dtype d):
    """``n`` evenly spaced real numbers from ``start`` to ``end``, each counted from the nearer of the two."""
    cdef Tensor t
    cdef double* reals = [0, 0, 0, 0]
    cdef int64_t[4] numbers
    if KIND[d.code] < 2:
        start, end = int(start), int(end)
        if (start < 0 or end < 0) and KIND[d.code] == 1 and not d.is_signed:  # as in a cast
            start, end = start % (1 << 8 * d.itemsize), end % (1 << 8 * d.itemsize)
    reals[1], reals[2] = start, end if n > 1 else start
    reals[3] = (end - start) / (n - 1) if n > 1 else 0.0
    t = empty_tensor(d.code, 1, &n)
    memcpy(numbers, reals, 32)
    numbers[0] = n
    count(t, SPACED, numbers, 4)
    return t


def identity(int64_t n, int64_t m, dtype d):
    """The identity matrix of ``n`` rows and ``m`` columns."""
    cdef int64_t[2] sizes
    cdef Tensor t
    cdef char* to
    sizes[0], sizes[1] = n, m
    t = empty_tensor(d.code, 2, sizes)
    to = operand(t)
    if t.count:
        run_kernel(of_dtype(IDENTITY, d.code), &to, 1, &m, 1, n, max(COUNT_PIECE // m, 1), False)
    return t


cdef int count(Tensor t, uint64_t owner, const int64_t* numbers, int n) except -1:
    cdef char* to = operand(t)
    run_kernel(of_dtype(owner, t.code), &to, 1, numbers, n, t.count, COUNT_PIECE, False)
    return 0
