"""The table of what computes: a planner by op and device, a kernel by its owner, device and key.

A *planner* computes an op on a device. It is the op's body, or for a pointwise op the launcher in ``pointwise.pxi``:
they ask the place of the call where to allocate, which kernel to take and who runs it. Where a device computes an op
otherwise, its planner is registered here.

A *kernel* is compiled code. Its owner is an op or a family, a function of ``taeda.kernels`` that builds it; its key
says for which dtypes and layouts. All planners in the core look their kernels up here.

What a planner in Python works out from the forms of an op's arguments is here as well (:func:`kept`).
"""

from functools import partial

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from .devices cimport CPU_NUMBER, MOST_DEVICES, build_there, elsewhere, kernel_place, swap_place
from .callbacks import callbacks
from .devices import DEVICES, cpu_kernel

cdef list OWNERS = [None]       # names, by number
cdef list PLANNERS = [{} for _ in range(MOST_DEVICES)]   # by number of the device: op -> what computes it
cdef dict wide = {}             # kernels whose keys do not fit 64 bits
cdef dict wide_there = {}       # those of devices, by (number, key)
cdef dict FORMS = {}            # of each planner: forms of its arguments -> what it gave for them
cdef uint64_t last = 0
cdef Entry* entries = NULL
cdef uint64_t used = 0


cdef int grow() except -1:
    global entries, last, used
    cdef Entry* before = entries
    cdef uint64_t i, places = last + 1 if before != NULL else 0, more = 2 * places if places else 1024
    cdef Entry* larger = <Entry*>calloc(more, sizeof(Entry))
    if larger == NULL:
        raise MemoryError("the table of kernels cannot grow")
    entries, last, used = larger, more - 1, 0
    for i in range(places):
        if before[i].kernel != NULL:
            put(before[i].owner, before[i].key, before[i].kernel)
    free(before)
    return 0


cdef int keep(uint64_t owner, uint64_t key, kernel_t kernel) except -1:
    return put(owner + kernel_place(), key, kernel)


cdef int put(uint64_t owner, uint64_t key, kernel_t kernel) except -1:
    global used
    cdef uint64_t i
    if 2 * (used + 1) > last + 1:
        grow()
    i = first_place(owner, key) & last
    while entries[i].kernel != NULL:
        i = (i + 1) & last
    entries[i].owner, entries[i].key, entries[i].kernel = owner, key, kernel
    used += 1
    return 0


grow()


cdef uint64_t new_owner(str name) except 0:
    OWNERS.append(name)
    return <uint64_t>(len(OWNERS) - 1) << 8


cdef object make(str name, tuple args):
    """The kernel of a family for this thread's place."""
    cdef int number = kernel_place()
    return build_there(number, name, args) if number else cpu_kernel(name, args)


cdef kernel_t build(uint64_t owner, uint64_t key, tuple args) except NULL:
    cdef size_t address = make(OWNERS[owner >> 8], args)
    keep(owner, key, <kernel_t>address)
    return <kernel_t>address


HOST_FUNCTIONS = ("run_piece", "transpose_piece", "write_range", "in_slot", "transpose_groups")
cdef kernel_t[HOST_KERNELS] kept_host_kernels
cdef kernel_t* host_kernels = &kept_host_kernels[0]


cdef kernel_t build_host_kernel(int which) except NULL:
    cdef int before = swap_place(CPU_NUMBER)
    cdef size_t address
    try:
        address = cpu_kernel("host_functions.address", (HOST_FUNCTIONS[which],))
    finally:
        swap_place(before)
    host_kernels[which] = <kernel_t>address
    return <kernel_t>address


def host_kernel(str name):
    """The address of a kernel of `kernels/host_functions.py` for `launch`, in any place."""
    return <size_t>host_function(HOST_FUNCTIONS.index(name))


cdef kernel_t build_for_dtype(uint64_t owner, int code) except NULL:
    from .tensor import DTYPE_NAMES

    return build(owner, code, (DTYPE_NAMES[code],))


cdef kernel_t of_number(uint64_t owner, int64_t x) except NULL:
    cdef kernel_t fn = known(owner, x)
    return fn if fn != NULL else build(owner, x, (x,))


cdef kernel_t of_family(uint64_t owner) except NULL:
    cdef kernel_t fn = known(owner, 0)
    return fn if fn != NULL else build(owner, 0, ())


cdef kernel_t of_arguments(str name, tuple args) except NULL:
    cdef kernel_t fn = known_key((name, args))
    return fn if fn != NULL else of_key((name, args), make_by_python, (name, args))


def make_by_python(name, args):
    return make(name, args)


cdef kernel_t known_key(tuple key) except? NULL:
    cdef int number = kernel_place() if elsewhere else 0
    found = wide_there.get((number, key)) if number else wide.get(key)
    return NULL if found is None else <kernel_t><size_t>found


cdef kernel_t of_key(tuple key, object make, tuple args) except NULL:
    cdef int number = kernel_place() if elsewhere else 0
    cdef dict table = wide_there if number else wide
    cdef tuple at = (number, key) if number else key
    found = table.get(at)
    if found is None:
        if number and make is not make_by_python:
            found = build_there(number, make.__name__, args, partial(make, *args))
        else:
            found = make(*args)
        table[at] = found
    return <kernel_t><size_t>found


# ---- what planners work out ------------------------------------------------------------------------------------------

cdef enum:
    MOST_FORMS = 256   # of a planner


def kept(planner):
    """``planner``, of forms alone (sizes, dtypes, numbers), called once for each: the table keeps what it gives.

    Each device has its own.
    """
    cdef dict results = {}, there = {}
    FORMS[planner] = results

    def find(*forms):
        if elsewhere and kernel_place():
            return find_there(*forms)
        found = results.get(forms)
        if found is None:
            found = planner(*forms)
            if len(results) >= MOST_FORMS:
                results.clear()
            results[forms] = found
        return found

    def find_there(*forms):
        at = kernel_place(), forms
        found = there.get(at)
        if found is None:
            found = there[at] = planner(*forms)
        return found

    find.__name__ = find.__qualname__ = planner.__name__
    find.__doc__, find.__wrapped__ = planner.__doc__, planner
    return find


def count_forms(planner):
    """The number of forms of arguments in the table for a planner that is :func:`kept`."""
    return len(FORMS[planner.__wrapped__])


# ---- ops that a device computes in its own way -----------------------------------------------------------------------

def add_planner(op, str device, planner):
    """Let ``planner`` compute ``op`` on the devices of a type: an op with the same signature, see ``Op.on``."""
    for number, name in enumerate(DEVICES):
        if name.partition(":")[0] == device:
            PLANNERS[number][op] = planner


cdef object planner_of(object op, int number):
    cdef dict there = <dict>PLANNERS[number]
    found = there.get(op)
    if found is None:
        found = op
        if op.traits.get("on_host"):
            found = callbacks.run_on_host(op, number)
        there[op] = found
    return found


def count_kernels():
    """The number of kernels in the table."""
    return used + len(wide) + len(wide_there)
