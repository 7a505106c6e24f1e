"""What ops that make tensors share: memory for sizes given in any form, the end of such a call, and sequences."""

from cpython.float cimport PyFloat_CheckExact
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_CheckExact
from cpython.tuple cimport PyTuple_Check
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from .planners cimport new_owner, of_dtype
from .pool cimport launch as run_kernel
from .tensor cimport KIND, MAXDIM, Tensor, check_device, dtype, empty_tensor, operand, scalar_code

import math

from .callbacks import callbacks

cdef uint64_t SEQUENCE = new_owner("copy.sequence"), SPACED = new_owner("copy.spaced")

cdef enum:
    COUNT_PIECE = 1 << 15  # elements that are worth a piece of their own


def new(str name, tuple given, named, d, out, device):
    """An uninitialised tensor of sizes given as ``(2, 3)`` or ``((2, 3),)``, for the op ``name``.

    Other forms of a call (sizes that are ``named``, an ``out``, a device) and errors are for ``callbacks.new``.
    """
    cdef int64_t sizes[MAXDIM]
    cdef object x, s = given
    cdef int i, n = <int>len(given)
    if out is None and device is None and named is None and n:
        if n == 1 and (PyTuple_Check(given[0]) or PyList_Check(given[0])):
            s = given[0]
            n = <int>len(s)
        for i in range(min(n, MAXDIM + 1)):
            x = s[i]
            if i == MAXDIM or not PyLong_CheckExact(x):
                break
            sizes[i] = x
            if sizes[i] < 0:
                break
        else:
            return empty_tensor(scalar_code(0.0) if d is None else (<dtype?>d).code, n, sizes)
    return callbacks.new(name, given, named, d, out, device)


def finish(Tensor result, out, bint requires_grad, device=None, str name=""):
    """``result``, whose first filling is no write to count, or ``out`` with its sizes and elements."""
    if device is not None:
        check_device(device)
    if out is not None:
        return callbacks.finish(result, out, name)
    result.storage.version = 0
    return result.requires_grad_() if requires_grad else result


# ---- sequences -------------------------------------------------------------------------------------------------------

def number(x):
    """``x``, or the number in a tensor or an array of one element."""
    if PyFloat_CheckExact(x) or PyLong_CheckExact(x):
        return x
    return x.item() if isinstance(x, Tensor) or hasattr(x, "item") else x


def range_length(str name, start, end, step, bint whole):
    """How many numbers there are from ``start`` to before ``end``."""
    if whole and step != 0 and int(step) == 0:
        raise ValueError(f"{name}(): step must be nonzero, got {step} for a result of integers")
    if step == 0:
        raise RuntimeError(f"{name}(): step must be nonzero")
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


def spaced(double start, double end, double step, int64_t n, dtype d):
    """``n`` numbers, ``step`` apart, from the nearer of ``start`` and ``end``."""
    cdef Tensor t = empty_tensor(d.code, 1, &n)
    cdef double* reals = [0, start, end, step]
    cdef int64_t[4] numbers
    memcpy(numbers, reals, 32)
    numbers[0] = n
    count(t, SPACED, numbers, 4)
    return t


cdef int count(Tensor t, uint64_t owner, const int64_t* numbers, int n) except -1:
    cdef char* to = operand(t)
    run_kernel(of_dtype(owner, t.code), &to, 1, numbers, n, t.count, COUNT_PIECE, False)
    return 0
