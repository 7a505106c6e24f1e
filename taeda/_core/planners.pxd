"""The table of what computes: a planner by op and device, a kernel by its owner, device and key."""

from libc.stdint cimport int64_t, uint64_t

from .devices cimport elsewhere, kernel_place, kernel_t

cdef struct Entry:
    uint64_t owner     # an op or a family of kernels: its number, then the device's in 8 bits
    uint64_t key       # dtypes, layout classes and whatever else tells its kernels apart
    kernel_t kernel    # NULL: the place is free

# Open addressing; `last` is the number of places less one.
cdef Entry* entries
cdef uint64_t last


cdef inline uint64_t first_place(uint64_t owner, uint64_t key) noexcept:
    return (key ^ owner * <uint64_t>0x9E3779B97F4A7C15) * <uint64_t>0xD6E8FEB86659FD93 >> 48


cdef inline kernel_t known(uint64_t owner, uint64_t key) noexcept:
    """The kernel of ``owner`` for ``key`` in this thread's place; NULL where it was not built yet."""
    if elsewhere:
        owner += kernel_place()
    cdef Entry* table = entries
    cdef uint64_t mask = last, i = first_place(owner, key) & mask
    while table[i].kernel != NULL:
        if table[i].key == key and table[i].owner == owner:
            return table[i].kernel
        i = (i + 1) & mask
    return NULL

# A number for an op or a family of kernels. The name of a family is "module.function" of `taeda.kernels`.
cdef uint64_t new_owner(str name) except 0
# Keep a kernel of this thread's place.
cdef int keep(uint64_t owner, uint64_t key, kernel_t kernel) except -1
# Build the kernel that the family's function gives for `args`, and keep it.
cdef kernel_t build(uint64_t owner, uint64_t key, tuple args) except NULL
cdef kernel_t build_for_dtype(uint64_t owner, int code) except NULL


cdef inline kernel_t of_dtype(uint64_t owner, int code) except NULL:
    """The kernel of a family that has one for each dtype."""
    cdef kernel_t fn = known(owner, code)
    return fn if fn != NULL else build_for_dtype(owner, code)

# The kernel of a family that has one for each of a range of small numbers.
cdef kernel_t of_number(uint64_t owner, int64_t x) except NULL
# The only kernel of a family.
cdef kernel_t of_family(uint64_t owner) except NULL
# The kernel that a family's function gives for `args`, where those are not a few small numbers.
cdef kernel_t of_arguments(str name, tuple args) except NULL
# The kernel that was kept for `key` in this thread's place; NULL if there is none.
cdef kernel_t known_key(tuple key) except? NULL
# Likewise for a key of its own; `make` gives the kernel's address, and is called once.
cdef kernel_t of_key(tuple key, object make, tuple args) except NULL

# The kernels of `kernels/host_functions.py` that launches run, by number. They are the processor's in every place: a
# device tells them by their addresses, and has its own for each.
cdef enum:
    RUN_PIECE, TRANSPOSE_PIECE, WRITE_RANGE, IN_SLOT, TRANSPOSE_GROUPS, HOST_KERNELS

cdef kernel_t* host_kernels
cdef kernel_t build_host_kernel(int which) except NULL


cdef inline kernel_t host_function(int which) except NULL:
    return host_kernels[which] if host_kernels[which] != NULL else build_host_kernel(which)

# What computes `op` on the device `number`: the op itself, unless it was given a planner there.
cdef object planner_of(object op, int number)
