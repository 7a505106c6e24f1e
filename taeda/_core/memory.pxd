"""The caching CPU allocator and Storage, the memory that views share."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

# 64-byte aligned; NULL only when the system has no more even after the cache was emptied. `nbytes` may be 0.
cdef void* allocate(int64_t nbytes) noexcept nogil
# `nbytes` as it was asked for.
cdef void release(void* data, int64_t nbytes) noexcept nogil
# Memory for the time of an op, which launches alone read and write; NULL as `allocate`.
cdef void* take_scratch(int64_t nbytes) noexcept nogil
cdef void release_scratch(void* data, int64_t nbytes) noexcept nogil
# Whether this thread plans. Work that is no launch asks this. A recorder then notes that the work cannot be repeated,
# and why. Raises if the place is a device, which such work does not support.
cdef bint only_plans(const char* why) except -1
# Bytes in use now, rounded up to size classes.
cdef int64_t bytes_in_use() noexcept nogil

cdef class Pending:
    cdef PyObject* storage      # the one whose contents it describes, not a reference; NULL once that is gone

cdef class Storage

cdef class Original:
    """The graph's record of a storage whose contents can be computed again (recompute.pyx)."""

    cdef PyObject* storage      # not a reference; NULL once it is gone
    cdef int64_t last           # its version then
    cdef int64_t version        # its version when the lazy copy was made
    cdef object lazy_copy            # a weak reference to a tensor that computes the same
    cdef bint shared            # whether all derivatives that keep one keep this one
    cdef Storage kept           # the storage, once somebody else may have its address

cdef struct Reader:
    # A derivative that reads a storage as it was: an entry of the storage's list of them.
    Reader* next
    Reader** link               # the pointer to this entry; NULL outside of a list
    PyObject* saved             # the Saved that holds this entry, not a reference

cdef class Storage:
    cdef char* data
    cdef int64_t capacity       # bytes, as they were asked for
    cdef int64_t block          # bytes, as the allocator was asked for `data`: no less than `capacity`
    cdef readonly int64_t version       # counts in-place writes; shared by every view
    cdef readonly int64_t born  # the generation in which it was made, see `begin_generation`
    cdef int device            # its number, see devices.pxd
    cdef bint may_resize        # False where the memory belongs to somebody else
    cdef readonly object owner          # keeps foreign memory alive; None if the allocator owns `data`
    cdef int exports           # arrays and memoryviews on it: it is not resized while there are any
    cdef Storage left          # the memory that it was moved from, while they show that; or None
    cdef Pending deferred        # computes contents that are pending, see fusion.pyx; else None
    cdef list late             # weak references to the tensors on it while it has no memory, see `late_storage`
    cdef int waits             # 1 for a deferred op of its own, and 1 for each that reads it
    cdef dict prepared         # results of plans that depend on the contents only, see plan.pyx; or None
    cdef bint shown            # whether its address is exposed: then no op that reads it is deferred
    cdef int64_t maker         # `seq` of the node whose op made it, where that op can run again; else 0
    cdef bint saved            # whether a derivative keeps it as it is
    cdef dict former           # forms of saved tensors that have other memory now, see set_data.pxi; or None
    cdef Original original             # or None
    cdef Reader* readers       # derivatives that get a copy before a write, see `keep_values` in graph.pxi
    cdef object __weakref__
    cdef int need_bytes(self) except -1

# Storages made from now on are ``born`` in a new generation; gives its number.
cdef int64_t begin_generation() noexcept

# How many deferred ops there are: where none is, no storage need be asked.
cdef int n_deferred
ctypedef int (*compute_t)(Storage, bint) except -1
cdef void set_compute(compute_t compute) noexcept
# Compute what `storage` should hold, and whatever waits to read it: before anybody else reads or writes there.
cdef int ensure_computed(Storage storage) except -1
# Compute the contents of `storage` for a reader. Deferred reads of the same memory by others may wait.
cdef int compute_to_read(Storage storage) except -1
# The same for memory whose address is given away.
cdef int show(Storage storage) except -1

# For a deferred tensor: a reserved address, and no memory before `give_block`.
cdef Storage late_storage(int64_t nbytes, object holder)
cdef int give_block(Storage storage, int64_t nbytes, int device) except -1
# Raises OutOfMemoryError (a RuntimeError) that says how much was asked for and how much is in use.
cdef Storage new_storage(int64_t nbytes)
# Memory of `owner`, which is kept alive as long as the Storage.
cdef Storage foreign_storage(void* data, int64_t nbytes, object owner)
# The storage that owns the memory: the storage of ``x.data`` rests on the one of ``x``.
cdef Storage root(Storage storage)
# The exporter of a buffer over the memory, which keeps it in place for an array or memoryview.
cdef object export_of(Storage storage, bint readonly)
# Whether a buffer is asked for with these flags by NumPy's ``ndarray(buffer=)``, which gives it back at once, keeps the
# object that it asked, and relies on that for the memory.
cdef bint keeps_address(int flags) noexcept
# Grow or shrink, and keep the contents. With `tell`, holders of the data pointer hear of a move (`on_move`).
cdef int resize_storage(Storage storage, int64_t nbytes, bint tell) except -1


cdef inline void enter(Reader* reader, Reader** readers) noexcept:
    """Put an entry at the head of a list."""
    reader.next, reader.link = readers[0], readers
    if reader.next != NULL:
        reader.next.link = &reader.next
    readers[0] = reader


cdef inline void leave(Reader* reader) noexcept:
    """Take an entry out of its list."""
    reader.link[0] = reader.next
    if reader.next != NULL:
        reader.next.link = reader.link
    reader.next, reader.link = NULL, NULL
