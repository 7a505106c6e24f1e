# Hooks on tensors.


cdef int64_t HOOKS = 0           # hooks registered so far: the number of one is its key


@cython.binding(False)
cdef class HookHandle:
    """Removes its hook when asked to; a context manager."""

    cdef object table
    cdef readonly int64_t id

    def __init__(self, table, hook):
        global HOOKS
        HOOKS += 1
        self.table = table
        self.id = HOOKS
        table[self.id] = hook

    def remove(self):
        """Take the hook away."""
        self.table.pop(self.id, None)

    def hooks_dict_ref(self):
        """The table that holds the hook."""
        return self.table

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()
