"""Calls of a LAPACK routine for every matrix of a batch, with the lock released; and factorizations of small matrices.

LAPACK takes every argument by address, so one caller serves all routines: it gets an address and a step in bytes per
argument. ``ops/linalg/lapack.py`` finds the library; this module knows no routine.

For matrices of up to ``LIMIT`` rows the library's overhead exceeds the arithmetic. So LU, QR, Cholesky and the
substitutions are also written here, for row-major matrices.
"""

import os

cimport cython
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from . cimport atomics
from .devices cimport META_NUMBER, here
from .memory cimport only_plans
from .tensor cimport (
    C128, C64, F32, F64, I32, ITEMSIZE, MAXDIM, Tensor, address_of, elements_of, alias_tensor, contiguous_tensor,
    copy_into, dtype,
    empty_tensor, zero_bytes,
)

from .apart import run_apart
from .pool import get_num_threads

cdef enum:
    MAXIMUM = 26     # arguments, including the lengths that Fortran appends for its character arguments
    LARGE = 1 << 17  # elements from which a call may take long

ctypedef void (*routine_t)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*,
                           void*,
                           void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*,
                           void*) noexcept nogil
ctypedef void (*set_threads_t)(int) noexcept nogil

cdef set_threads_t _set_threads = NULL
cdef int _threads = 0


def use_thread_setter(size_t address):
    """Set the library's function for its number of threads; it is called when taeda's own number has changed."""
    global _set_threads
    _set_threads = <set_threads_t>address


cdef int follow_threads() except -1:
    global _threads
    cdef int wanted = get_num_threads()
    if wanted != _threads and _set_threads != NULL:
        _set_threads(wanted)
        _threads = wanted
    return 0


cdef extern from *:
    """
    /* At exit the library ends its threads, and waits without end for those that a call then uses. Ctrl-C can leave
       such a call behind: the process then ends without the library's leave. */
    #include <stdio.h>
    #include <stdlib.h>
    #if defined(__GLIBC__)
      #include <unistd.h>
      static void taeda_leave(int status, void *running) {
          if (*(volatile int64_t *)running == 0) return;
          fflush(NULL);
          _exit(status);
      }
      static void taeda_leave_at_exit(int64_t *running) { on_exit(taeda_leave, running); }
    #else
      static void taeda_leave_at_exit(int64_t *running) { (void)running; }
    #endif
    """
    void leave_at_exit "taeda_leave_at_exit"(int64_t* running)

cdef int64_t running = 0  # calls of the library
leave_at_exit(&running)


def _after_fork():
    global running
    running = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


cdef class Call:
    """A routine and its arguments, which live as long as it runs.

    Args:
        routine: address of a Fortran routine.
        count: how many times to call it.
        arguments: see :func:`call`.
    """

    cdef routine_t routine
    cdef int64_t count
    cdef tuple arguments
    cdef char* at[MAXIMUM]
    cdef int64_t step[MAXIMUM]
    cdef int32_t numbers[MAXIMUM]
    cdef char letters[MAXIMUM]
    cdef int n, work, code       # how many arguments, which is the work space, of which dtype
    cdef int64_t largest         # elements of the largest tensor
    cdef void* space

    def __cinit__(self, size_t routine, int64_t count, tuple arguments):
        cdef int i
        cdef Tensor t
        cdef size_t one = 1
        if len(arguments) + 5 > MAXIMUM:
            raise ValueError(f"lapack: at most {MAXIMUM - 5} arguments, got {len(arguments)}")
        self.routine, self.count, self.arguments = <routine_t>routine, count, arguments
        self.work = self.code = -1
        # after the arguments: lengths of strings. A callee that expects fewer ignores them.
        for i in range(MAXIMUM):
            self.at[i] = <char*>one
        for item in arguments:
            i = self.n
            if isinstance(item, Tensor):
                t = <Tensor>item
                self.at[i] = address_of(t)
                if count > 0:
                    self.step[i] = t.count // count * ITEMSIZE[t.code]
                if self.code < 0:
                    self.code = t.code
                self.largest = max(self.largest, t.count)
            elif isinstance(item, int):
                self.numbers[i] = item
                self.at[i] = <char*>&self.numbers[i]
            elif isinstance(item, str):
                self.letters[i] = <char>ord(item)
                self.at[i] = &self.letters[i]
            elif item is None:
                self.at[i] = NULL
            elif item is Ellipsis:
                self.work = i
                self.numbers[i + 1] = -1
                self.at[i + 1] = <char*>&self.numbers[i + 1]
                self.n += 1
            else:
                t = <Tensor?>item[0]
                self.at[i] = address_of(t)
            self.n += 1

    def __dealloc__(self):
        free(self.space)

    cdef int make_space(self) except -1:
        """Ask the routine how large its work space is, and take that."""
        cdef char answer[32]
        cdef int64_t wanted
        self.at[self.work] = answer
        invoke(self.routine, self.at)
        wanted = <int64_t>((<float*>answer)[0] if self.code in (F32, C64) else (<double*>answer)[0])
        self.numbers[self.work + 1] = <int32_t>max(wanted, 1)
        self.space = malloc(self.numbers[self.work + 1] * ITEMSIZE[self.code])
        if self.space == NULL:
            raise MemoryError(f"lapack: no memory for a work space of {wanted} elements")
        self.at[self.work] = <char*>self.space
        return 0

    def run(self):
        cdef int64_t k
        cdef int i
        with nogil:
            atomics.add(&running, 1)
            for k in range(self.count):
                invoke(self.routine, self.at)
                for i in range(self.n):
                    self.at[i] += self.step[i]
            atomics.sub(&running, 1)


def call(size_t routine, int64_t count, *arguments):
    """Run ``routine`` for ``count`` matrices.

    Args:
        routine: address of a Fortran routine.
        count: how many times to call it.
        arguments: an int (a Fortran integer), a one-letter str, None (a null address), or a Tensor of which each call
            gets the next ``numel / count`` elements; ``(tensor,)`` gives all of it to every call. Tensors are read and
            written in place; Ctrl-C may end the call while they go on being written, so nobody else may know of those.
            ``...`` stands for two arguments, a work space and its size: the routine is first asked for the size, in
            elements of the first Tensor's dtype.
    """
    cdef Call made = Call(routine, count, arguments)
    if only_plans(b"LAPACK is called"):
        return
    follow_threads()
    if made.work >= 0:
        made.make_space()
    if made.largest < LARGE:
        made.run()
    else:
        run_apart(made.run)


cdef inline void invoke(routine_t f, char** at) noexcept nogil:
    f(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10], at[11], at[12], at[13], at[14],
      at[15], at[16], at[17], at[18], at[19], at[20], at[21], at[22], at[23], at[24], at[25])


# ---- memory ----------------------------------------------------------------------------------------------------------


def zero_ints(*sizes):
    """An int32 tensor of zeros: pivots and error codes."""
    cdef int64_t shape[MAXDIM]
    cdef int i
    for i in range(len(sizes)):
        shape[i] = sizes[i]
    cdef Tensor made = empty_tensor(I32, len(sizes), shape)
    if made.count:
        zero_bytes(address_of(made), made.count * 4)
    return made


cdef Tensor empty_by_columns(int code, int nd, const int64_t* sizes):
    cdef int64_t transposed[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int i
    for i in range(nd):
        transposed[i] = sizes[i]
    transposed[nd - 1], transposed[nd - 2] = sizes[nd - 2], sizes[nd - 1]
    cdef Tensor made = empty_tensor(code, nd, transposed)
    for i in range(nd):
        strides[i] = made.strides[i]
    strides[nd - 1], strides[nd - 2] = strides[nd - 2], strides[nd - 1]
    return alias_tensor(made, nd, sizes, strides, 0)


def empty_columns(shape, dtype kind):
    """Uninitialized column-major matrices."""
    cdef int64_t sizes[MAXDIM]
    cdef int i, nd = len(shape)
    for i in range(nd):
        sizes[i] = shape[i]
    return empty_by_columns(kind.code, nd, sizes)


def columns(Tensor x, batch=None):
    """A column-major copy of matrices, broadcast to ``batch``."""
    cdef int64_t sizes[MAXDIM]
    cdef int i, nd = x.nd
    if batch is None:
        for i in range(nd):
            sizes[i] = x.sizes[i]
    else:
        nd = len(batch) + 2
        for i in range(nd - 2):
            sizes[i] = batch[i]
        sizes[nd - 2], sizes[nd - 1] = x.sizes[x.nd - 2], x.sizes[x.nd - 1]
    cdef Tensor made = empty_by_columns(x.code, nd, sizes)
    if made.count:
        copy_into(made, x)
    return made


def any_nonzero(Tensor info):
    """Whether a dense int32 tensor, as the callers make it, has an element other than 0."""
    cdef int64_t i
    for i in range(info.count):
        if (<int32_t*>elements_of(info))[i]:
            return True
    return False


# ---- small matrices --------------------------------------------------------------------------------------------------

cdef enum:
    LIMIT = 32

SMALL = LIMIT


def is_small(int64_t n):
    """Whether the kernels below take matrices of ``n`` rows here: on a device there are none."""
    return n <= LIMIT and here() <= META_NUMBER


ctypedef fused scalar:
    float
    double
    float complex
    double complex


cdef inline double size_of(scalar x) noexcept nogil:
    """The magnitude by which LAPACK compares pivots."""
    if scalar is float or scalar is double:
        return x if x >= 0 else -x
    else:
        return (x.real if x.real >= 0 else -x.real) + (x.imag if x.imag >= 0 else -x.imag)


cdef inline scalar conjugate(scalar x) noexcept nogil:
    if scalar is float or scalar is double:
        return x
    elif scalar is cython.floatcomplex:
        return x.real - 1j * x.imag
    else:
        return x.real - 1j * x.imag


cdef void exchange(scalar* a, scalar* b, int64_t n) noexcept nogil:
    cdef int64_t j
    cdef scalar x
    for j in range(n):
        x = a[j]
        a[j] = b[j]
        b[j] = x


cdef int32_t factor_lu(scalar* a, int64_t m, int64_t n, int32_t* pivots) noexcept nogil:
    """LU with row exchanges of the rows ``a``, right-looking; return the first zero pivot, counted from 1, or 0."""
    cdef int64_t k, i, j, p
    cdef int32_t info = 0
    cdef double best, size
    cdef scalar x
    cdef scalar* pivot
    cdef scalar* row
    for k in range(min(m, n)):
        p = k
        best = size_of(a[k * n + k])
        for i in range(k + 1, m):
            size = size_of(a[i * n + k])
            if size > best:
                best = size
                p = i
        pivots[k] = <int32_t>(p + 1)
        pivot = a + k * n
        if a[p * n + k] == 0:
            if info == 0:
                info = <int32_t>(k + 1)
            continue
        if p != k:
            exchange(pivot, a + p * n, n)
        for i in range(k + 1, m):
            row = a + i * n
            x = row[k] / pivot[k]
            row[k] = x
            for j in range(k + 1, n):
                row[j] = row[j] - x * pivot[j]
    return info


cdef void substitute_lu(scalar* a, int32_t* pivots, scalar* x, int64_t n, int64_t width, int form) noexcept nogil:
    """Solve with the factors ``a`` over the rows ``x``; form 0: A, 1: its transpose, 2: its conjugate transpose."""
    cdef int64_t i, j, k
    cdef scalar f
    if form == 0:
        for i in range(n):
            if pivots[i] != i + 1:
                exchange(x + i * width, x + (pivots[i] - 1) * width, width)
        for i in range(n):
            for k in range(i):
                f = a[i * n + k]
                for j in range(width):
                    x[i * width + j] = x[i * width + j] - f * x[k * width + j]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                f = a[i * n + k]
                for j in range(width):
                    x[i * width + j] = x[i * width + j] - f * x[k * width + j]
            f = a[i * n + i]
            for j in range(width):
                x[i * width + j] = x[i * width + j] / f
        return
    for i in range(n):  # the transposed upper factor
        for k in range(i):
            f = conjugate(a[k * n + i]) if form == 2 else a[k * n + i]
            for j in range(width):
                x[i * width + j] = x[i * width + j] - f * x[k * width + j]
        f = conjugate(a[i * n + i]) if form == 2 else a[i * n + i]
        for j in range(width):
            x[i * width + j] = x[i * width + j] / f
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            f = conjugate(a[k * n + i]) if form == 2 else a[k * n + i]
            for j in range(width):
                x[i * width + j] = x[i * width + j] - f * x[k * width + j]
    for i in range(n - 1, -1, -1):
        if pivots[i] != i + 1:
            exchange(x + i * width, x + (pivots[i] - 1) * width, width)


cdef void substitute_triangle(scalar* a, scalar* x, int64_t n, int64_t width, bint upper, bint unit) noexcept nogil:
    """Solve with the triangle of the rows ``a`` over the rows ``x``."""
    cdef int64_t s, i, j, k, first, last
    cdef scalar f
    for s in range(n):
        i = n - 1 - s if upper else s
        first = i + 1 if upper else 0
        last = n if upper else i
        for k in range(first, last):
            f = a[i * n + k]
            for j in range(width):
                x[i * width + j] = x[i * width + j] - f * x[k * width + j]
        if not unit:
            f = a[i * n + i]
            for j in range(width):
                x[i * width + j] = x[i * width + j] / f


cdef int32_t factor_cholesky(scalar* a, int64_t n) noexcept nogil:
    """The lower factor in place of the lower triangle of the rows ``a``, zeros above; return the first minor that is
    not positive."""
    cdef int64_t i, j, k
    cdef double d
    cdef scalar x
    for j in range(n):
        for i in range(j + 1, n):
            a[j * n + i] = 0
    for j in range(n):
        if scalar is float or scalar is double:
            d = a[j * n + j]
        else:
            d = a[j * n + j].real
        for k in range(j):
            if scalar is float or scalar is double:
                d = d - <double>a[j * n + k] * a[j * n + k]
            else:
                d = d - (<double>a[j * n + k].real * a[j * n + k].real + <double>a[j * n + k].imag * a[j * n + k].imag)
        if not d > 0:
            return <int32_t>(j + 1)
        d = sqrt(d)
        a[j * n + j] = <scalar>d
        for i in range(j + 1, n):
            x = a[i * n + j]
            for k in range(j):
                x = x - a[i * n + k] * conjugate(a[j * n + k])
            a[i * n + j] = x / <scalar>d
    return 0


cdef inline double squared(scalar x) noexcept nogil:
    if scalar is float or scalar is double:
        return <double>x * x
    else:
        return <double>x.real * x.real + <double>x.imag * x.imag


cdef double length_of(scalar* x, int64_t step, int64_t n) noexcept nogil:
    """The 2-norm of ``n`` numbers; where squares leave the range of doubles, they are first divided by the largest."""
    cdef int64_t i
    cdef double total = 0, largest = 0
    for i in range(n):
        total = total + squared(x[i * step])
    if 1e-280 < total < 1e280 or total == 0 and largest_of(x, step, n) == 0:
        return sqrt(total)
    largest = largest_of(x, step, n)
    total = 0
    for i in range(n):
        total = total + squared(<scalar>(x[i * step] / <scalar>largest))
    return largest * sqrt(total)


cdef double largest_of(scalar* x, int64_t step, int64_t n) noexcept nogil:
    cdef int64_t i
    cdef double largest = 0
    for i in range(n):
        if not size_of(x[i * step]) <= largest:  # NaN stays
            largest = size_of(x[i * step])
    return largest


cdef void reflect(scalar* v, int64_t step, scalar tau, scalar* rows, int64_t width, int64_t m, int64_t n,
                  scalar* w) noexcept nogil:
    """``rows -= tau v (v^H rows)`` for ``m`` rows, ``width`` apart, of ``n``; ``v[0]`` counts as 1."""
    cdef int64_t i, j
    cdef scalar x
    cdef scalar* row
    for j in range(n):
        w[j] = rows[j]
    for i in range(1, m):
        x, row = conjugate(v[i * step]), rows + i * width
        for j in range(n):
            w[j] = w[j] + x * row[j]
    for j in range(n):
        w[j] = tau * w[j]
        rows[j] = rows[j] - w[j]
    for i in range(1, m):
        x, row = v[i * step], rows + i * width
        for j in range(n):
            row[j] = row[j] - x * w[j]


cdef void factor_qr(scalar* a, int64_t m, int64_t n, scalar* tau, scalar* w) noexcept nogil:
    """``R`` on and above the diagonal of the rows ``a``, below it the reflectors, with LAPACK's signs."""
    cdef int64_t j
    cdef int64_t i
    cdef double whole, beta
    cdef scalar* v
    cdef scalar alpha, scale
    for j in range(min(m, n)):
        v = a + j * n + j
        alpha = v[0]
        tau[j] = 0
        if scalar is float or scalar is double:
            if length_of(v + n, n, m - j - 1) == 0:
                continue
            whole = length_of(v, n, m - j)
            beta = whole if alpha < 0 else -whole
        else:
            if alpha.imag == 0 and length_of(v + n, n, m - j - 1) == 0:
                continue
            whole = length_of(v, n, m - j)
            beta = whole if alpha.real < 0 else -whole
        tau[j] = (<scalar>beta - alpha) / <scalar>beta
        scale = 1 / (alpha - <scalar>beta)
        for i in range(1, m - j):
            v[i * n] = v[i * n] * scale
        v[0] = <scalar>beta
        reflect(v, n, conjugate(tau[j]), v + 1, n, m - j, n - j - 1, w)


cdef void run_qr(scalar* x, scalar* q, scalar* r, int64_t count, int64_t m, int64_t n, int64_t width, int64_t height,
                 scalar* room) noexcept nogil:
    """``width`` columns of Q and ``height`` rows of R of each matrix, both by columns; ``room`` is for two matrices and
    two rows."""
    cdef int64_t b, i, j, k = min(m, n)
    cdef scalar* tau = room + m * n
    cdef scalar* w = tau + LIMIT
    cdef scalar* rows = w + LIMIT
    for b in range(count):
        memcpy(room, x + b * m * n, m * n * sizeof(scalar))
        factor_qr(room, m, n, tau, w)
        memset(r, 0, height * n * sizeof(scalar))
        for i in range(min(height, n)):
            for j in range(i, n):
                r[j * height + i] = room[i * n + j]
        r = r + height * n
        if q == NULL:
            continue
        memset(rows, 0, m * width * sizeof(scalar))
        for i in range(width):
            rows[i * width + i] = 1
        for j in range(k - 1, -1, -1):
            reflect(room + j * n + j, n, tau[j], rows + j * width + j, width, m - j, width - j, w)
        for i in range(m):
            for j in range(width):
                q[j * m + i] = rows[i * width + j]
        q = q + m * width


cdef void run_determinant(scalar* a, int64_t count, int64_t n, int32_t* pivots, scalar* out) noexcept nogil:
    cdef int64_t b, i
    cdef double real
    cdef scalar total
    for b in range(count):
        if scalar is float or scalar is double:
            real = 1
            for i in range(n):
                real = real * a[i * (n + 1)]
                if pivots[i] != i + 1:
                    real = -real
            out[b] = <scalar>real
        else:
            total = 1
            for i in range(n):
                total = total * a[i * (n + 1)]
                if pivots[i] != i + 1:
                    total = -total
            out[b] = total
        a = a + n * n
        pivots = pivots + n


cdef void run_lu(scalar* a, int64_t count, int64_t m, int64_t n, int32_t* pivots, int32_t* info) noexcept nogil:
    cdef int64_t b
    for b in range(count):
        info[b] = factor_lu(a + b * m * n, m, n, pivots + b * min(m, n))


cdef void run_substitution(scalar* a, int64_t a_step, int32_t* pivots, int64_t p_step, scalar* x, int64_t count,
                           int64_t n,
                           int64_t width, int form) noexcept nogil:
    cdef int64_t b
    for b in range(count):
        substitute_lu(a + b * a_step, pivots + b * p_step, x + b * n * width, n, width, form)


cdef void run_triangle(scalar* a, int64_t a_step, scalar* x, int64_t count, int64_t n, int64_t width, bint upper,
                       bint unit) noexcept nogil:
    cdef int64_t b
    for b in range(count):
        substitute_triangle(a + b * a_step, x + b * n * width, n, width, upper, unit)


cdef void run_cholesky(scalar* a, int64_t count, int64_t n, int32_t* info) noexcept nogil:
    cdef int64_t b
    for b in range(count):
        info[b] = factor_cholesky(a + b * n * n, n)


cdef Tensor contiguous_copy(Tensor x):
    """A contiguous copy."""
    cdef Tensor made = empty_tensor(x.code, x.nd, x.sizes)
    if not made.count:
        return made
    if only_plans(b"LAPACK is called"):
        return made
    if x.contiguous:
        memcpy(address_of(made), address_of(x), made.count * ITEMSIZE[x.code])
    else:
        copy_into(made, x)
    return made


def small_lu(Tensor x):
    """Packed LU of small row-major matrices, pivots and error codes. None on a device."""
    if here() > META_NUMBER:
        return None
    cdef int nd = x.nd, i
    cdef int64_t m = x.sizes[nd - 2], n = x.sizes[nd - 1], count = 1
    cdef int64_t sizes[MAXDIM]
    for i in range(nd - 2):
        sizes[i] = x.sizes[i]
        count *= sizes[i]
    cdef Tensor LU = contiguous_copy(x)
    cdef Tensor info = empty_tensor(I32, nd - 2, sizes)
    sizes[nd - 2] = min(m, n)
    cdef Tensor pivots = empty_tensor(I32, nd - 1, sizes)
    cdef int32_t* p = <int32_t*>address_of(pivots)
    cdef int32_t* codes = <int32_t*>address_of(info)
    if only_plans(b"LAPACK is called"):
        count = 0
    with nogil:
        if x.code == F32:
            run_lu[float](<float*>address_of(LU), count, m, n, p, codes)
        elif x.code == F64:
            run_lu[double](<double*>address_of(LU), count, m, n, p, codes)
        elif x.code == C64:
            run_lu[cython.floatcomplex](<float complex*>address_of(LU), count, m, n, p, codes)
        else:
            run_lu[cython.doublecomplex](<double complex*>address_of(LU), count, m, n, p, codes)
    return LU, pivots, info


def small_substitution(Tensor LU, Tensor pivots, Tensor B, int form):
    """``X`` of the shape of ``B`` for row-major factors; one matrix serves all of ``B``, or each has its own."""
    cdef int64_t n = LU.sizes[LU.nd - 1], width = B.sizes[B.nd - 1]
    cdef Tensor X = contiguous_copy(B)
    cdef int64_t count = X.count // (n * width) if n * width else 0
    cdef int64_t a_step = n * n if LU.count > n * n else 0, p_step = n if a_step else 0
    cdef int32_t* p = <int32_t*>address_of(pivots)
    if only_plans(b"LAPACK is called"):
        count = 0
    with nogil:
        if LU.code == F32:
            run_substitution[float](<float*>address_of(LU), a_step, p, p_step, <float*>address_of(X), count, n, width,
                                    form)
        elif LU.code == F64:
            run_substitution[double](<double*>address_of(LU), a_step, p, p_step, <double*>address_of(X), count, n,
                                     width, form)
        elif LU.code == C64:
            run_substitution[cython.floatcomplex](<float complex*>address_of(LU), a_step, p, p_step,
                                                  <float complex*>address_of(X), count, n,
                                                  width, form)
        else:
            run_substitution[cython.doublecomplex](<double complex*>address_of(LU), a_step, p, p_step,
                                                   <double complex*>address_of(X), count,
                                                   n, width, form)
    return X


def small_triangle(Tensor A, Tensor B, bint upper, bint unit):
    """``X`` of the shape of ``B`` for contiguous triangles ``A``; one serves all of ``B``, or each has its own."""
    cdef int64_t n = A.sizes[A.nd - 1], width = B.sizes[B.nd - 1]
    cdef Tensor X = contiguous_copy(B)
    cdef int64_t count = X.count // (n * width) if n * width else 0, a_step = n * n if A.count > n * n else 0
    if only_plans(b"LAPACK is called"):
        count = 0
    with nogil:
        if A.code == F32:
            run_triangle[float](<float*>address_of(A), a_step, <float*>address_of(X), count, n, width, upper, unit)
        elif A.code == F64:
            run_triangle[double](<double*>address_of(A), a_step, <double*>address_of(X), count, n, width, upper, unit)
        elif A.code == C64:
            run_triangle[cython.floatcomplex](<float complex*>address_of(A), a_step, <float complex*>address_of(X),
                                              count, n, width, upper, unit)
        else:
            run_triangle[cython.doublecomplex](<double complex*>address_of(A), a_step, <double complex*>address_of(X),
                                               count, n, width, upper,
                                               unit)
    return X


def small_cholesky(Tensor x):
    """The lower factors of small row-major matrices, from their lower triangles, and error codes. None on a device."""
    if here() > META_NUMBER:
        return None
    cdef int nd = x.nd, i
    cdef int64_t n = x.sizes[nd - 1], count = 1
    for i in range(nd - 2):
        count *= x.sizes[i]
    cdef Tensor L = contiguous_copy(x)
    cdef Tensor info = empty_tensor(I32, nd - 2, x.sizes)
    cdef int32_t* codes = <int32_t*>address_of(info)
    if only_plans(b"LAPACK is called"):
        count = 0
    with nogil:
        if x.code == F32:
            run_cholesky[float](<float*>address_of(L), count, n, codes)
        elif x.code == F64:
            run_cholesky[double](<double*>address_of(L), count, n, codes)
        elif x.code == C64:
            run_cholesky[cython.floatcomplex](<float complex*>address_of(L), count, n, codes)
        else:
            run_cholesky[cython.doublecomplex](<double complex*>address_of(L), count, n, codes)
    return L, info


def small_qr(Tensor x, bint complete, bint wanted):
    """``Q`` (None unless ``wanted``) and ``R`` of small matrices by columns, with all rows if ``complete``. None on a
    device."""
    if here() > META_NUMBER:
        return None
    cdef int nd = x.nd, i
    cdef int64_t m = x.sizes[nd - 2], n = x.sizes[nd - 1], count = 1, width
    cdef int64_t sizes[MAXDIM]
    cdef char room[2 * (LIMIT * LIMIT + LIMIT) * 16]
    cdef Tensor R, Q = None
    cdef char* q = NULL
    for i in range(nd):
        sizes[i] = x.sizes[i]
        count *= sizes[i] if i < nd - 2 else 1
    width = m if complete else min(m, n)
    x = contiguous_tensor(x)
    sizes[nd - 2] = width
    R = empty_by_columns(x.code, nd, sizes)
    if wanted:
        sizes[nd - 2], sizes[nd - 1] = m, width
        Q = empty_by_columns(x.code, nd, sizes)
        q = address_of(Q)
    if only_plans(b"LAPACK is called"):
        count = 0
    with nogil:
        if x.code == F32:
            run_qr[float](<float*>address_of(x), <float*>q, <float*>address_of(R), count, m, n, width, width,
                          <float*>room)
        elif x.code == F64:
            run_qr[double](<double*>address_of(x), <double*>q, <double*>address_of(R), count, m, n, width, width,
                           <double*>room)
        elif x.code == C64:
            run_qr[cython.floatcomplex](<float complex*>address_of(x), <float complex*>q,
                                        <float complex*>address_of(R), count, m, n, width,
                                        width, <float complex*>room)
        else:
            run_qr[cython.doublecomplex](<double complex*>address_of(x), <double complex*>q,
                                         <double complex*>address_of(R), count, m, n, width,
                                         width, <double complex*>room)
    return Q, R


def determinant(Tensor LU, Tensor pivots):
    """The product of the diagonal, with the sign of the row exchanges; consecutive matrices, row- or column-major.
    None on a device."""
    cdef int64_t n = LU.sizes[LU.nd - 1], count = 1
    cdef int i
    for i in range(LU.nd - 2):
        count *= LU.sizes[i]
    cdef Tensor out
    cdef int32_t* p
    if here() > META_NUMBER:
        return None
    out, p = empty_tensor(LU.code, LU.nd - 2, LU.sizes), <int32_t*>address_of(pivots)
    if only_plans(b"LAPACK is called"):
        count = 0
    with nogil:
        if LU.code == F32:
            run_determinant[float](<float*>address_of(LU), count, n, p, <float*>address_of(out))
        elif LU.code == F64:
            run_determinant[double](<double*>address_of(LU), count, n, p, <double*>address_of(out))
        elif LU.code == C64:
            run_determinant[cython.floatcomplex](<float complex*>address_of(LU), count, n, p,
                                                 <float complex*>address_of(out))
        else:
            run_determinant[cython.doublecomplex](<double complex*>address_of(LU), count, n, p,
                                                  <double complex*>address_of(out))
    return out
