"""Row-wise ops that are put off."""

from .recipes cimport Epilogue, Kernel, Later, Prologue, Recipe, Rows
from .tensor cimport Tensor

cdef class RowOp(Later):  # what computes rows that were put off
    # Compute the rows of contiguous operands of one dtype and the form of `like`; with keys of the prologue and the
    # epilogue. False where there can be no such kernel.
    cdef bint run_rows(self, Tensor like, Rows* rows, object before, object after) except -1


# The result of a row-wise op of contiguous operands of one form, not computed; None where it had better be at once.
cdef Tensor put_off_rows(RowOp op, Tensor x, Tensor other, int first, double p, double q)
# `out`, which was made without memory, as what `op` computes alone from operands that lie in memory.
cdef Tensor put_off_whole(Later op, list operands, Tensor out)
# Compute the results that were deferred to the end of the compiled function, if they are held.
cdef int compute_ended() except -1
# Run a row-wise op whose own result is asked for.
cdef int compute_asked(Recipe row) except -1
# Run the row-wise ops that `root` reads; or compute `root` where one of them stores its result: False where that cannot
# be, and then it reads nothing but memory.
cdef int compute_rows_of(Recipe root) except -1
cdef bint compute_with_rows(Recipe root) except -1
cdef object prologue_of(Tensor x, Prologue* p)
cdef object prologue_parts(Prologue* p)
# Tell who watches that a kernel computes what it reads.
cdef int tell_prologue(Prologue* p) except -1

# For what has an epilogue.
cdef object epilogue_of(Recipe row, Epilogue* e)
cdef object epilogue_parts(Epilogue* e)
# Whether all outputs begin at cache lines, also those without memory yet.
cdef bint on_lines(Epilogue* e) noexcept
# The memory of output `i`, to be asked for once it is certain that the kernel runs.
cdef char* memory_of(Epilogue* e, int i) except NULL
cdef int choose_results(Kernel* k, Recipe root) except -1
cdef list nodes_to_hold(Kernel* k)
cdef list storages_to_fill(Kernel* k)
cdef int finish_results(Kernel* k, list storages) except -1
