"""Deferred row-wise ops."""

from .deferred cimport Deferred, Epilogue, Kernel, Later, Prologue, Rows
from .tensor cimport Tensor

cdef class RowOp(Later):  # computes deferred rows
    # Compute the rows of contiguous operands with the dtype and form of `like`. `before` and `after` are the keys of
    # the prologue and the epilogue. False if there is no such kernel.
    cdef bint run_rows(self, Tensor like, Rows* rows, object before, object after) except -1


# The deferred result of a row-wise op of contiguous operands of one form; None if it should be computed at once.
cdef Tensor defer_rows(RowOp op, Tensor x, Tensor other, int first, double p, double q)
# `out`, made without memory, as the result of `op`, whose operands are in memory.
cdef Tensor defer_whole(Later op, list operands, Tensor out)
# Compute the results that were deferred to the end of the compiled function, if they are held.
cdef int compute_ended() except -1
# Run a row-wise op whose own result is needed.
cdef int compute_asked(Deferred row) except -1
# Run the row-wise ops that `root` reads; or compute `root` as the epilogue of one of them. If that returns False,
# `root` reads only memory.
cdef int compute_rows_of(Deferred root) except -1
cdef bint compute_with_rows(Deferred root) except -1
cdef object prologue_of(Tensor x, Prologue* p)
cdef object prologue_parts(Prologue* p)
# Tell the watcher of a kernel with this prologue.
cdef int tell_prologue(Prologue* p) except -1

# For kernels with an epilogue.
cdef object epilogue_of(Deferred row, Epilogue* e)
cdef object epilogue_parts(Epilogue* e)
# Whether all outputs begin at cache lines, also those without memory yet.
cdef bint on_lines(Epilogue* e) noexcept
# The memory of output `i`. Call it only when it is certain that the kernel runs.
cdef char* memory_of(Epilogue* e, int i) except NULL
cdef int choose_results(Kernel* k, Deferred root) except -1
cdef list nodes_to_hold(Kernel* k)
cdef list storages_to_fill(Kernel* k)
cdef int finish_results(Kernel* k, list storages) except -1
