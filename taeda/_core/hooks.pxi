# Hooks on tensors.


cdef int64_t HOOKS = 0           # hooks registered so far: the number of one is its key


@cython.binding(False)
cdef class HookHandle:
    """Removes its hook when asked to; a context manager."""

    cdef object table
    cdef object key

    def __init__(self, table, hook):
        global HOOKS
        HOOKS += 1
        self.table = table
        self.key = HOOKS
        table[self.key] = hook

    def remove(self):
        """Take the hook away."""
        self.table.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()
