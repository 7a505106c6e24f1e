"""The table of what computes: a planner by op and device, a kernel by its owner, device and key.

A *planner* computes an op on a device. The CPU's is the op's body, or for a pointwise op the launcher in
``pointwise.pxi``; the call path reaches both without a lookup. Device meta has the CPU's planners, whose launches are
not run. Every other device has what was registered for it here, and an op without an entry raises.

A *kernel* is compiled code. Its owner is an op or a family, a function of ``taeda.kernels`` that builds it; its key
says for which dtypes and layouts. All planners in the core look their kernels up here.

What a planner in Python works out from the forms of an op's arguments is here as well (:func:`kept`).
"""

import importlib

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

#: Names of the devices, by number.
DEVICES = ["cpu", "meta"]

cdef list OWNERS = [None]       # names, by number
cdef list BUILDERS = [None, None]   # by number of the device: what builds a kernel there
cdef dict PLANNERS = {}         # (op, number of the device) -> what computes it
cdef dict wide = {}             # kernels whose keys do not fit 64 bits
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
            keep(before[i].owner, before[i].key, before[i].kernel)
    free(before)
    return 0


cdef int keep(uint64_t owner, uint64_t key, kernel_t kernel) except -1:
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
    return <uint64_t>(len(OWNERS) - 1) << 8 | CPU_NUMBER


def cpu_kernel(str name, tuple args):
    """The address that ``module.function`` of ``taeda.kernels`` gives for ``args``."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module("taeda.kernels." + module), function)(*args)


BUILDERS[CPU_NUMBER] = cpu_kernel


cdef kernel_t build(uint64_t owner, uint64_t key, tuple args) except NULL:
    name, number = OWNERS[owner >> 8], owner & 255
    if BUILDERS[number] is None:
        raise NotImplementedError(f"{name}: there are no kernels for device '{DEVICES[number]}'")
    cdef size_t address = BUILDERS[number](name, args)
    keep(owner, key, <kernel_t>address)
    return <kernel_t>address


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
    return of_key((name, args), cpu_kernel, (name, args))


cdef kernel_t known_key(tuple key) except? NULL:
    found = wide.get(key)
    return NULL if found is None else <kernel_t><size_t>found


cdef kernel_t of_key(tuple key, object make, tuple args) except NULL:
    found = wide.get(key)
    if found is None:
        found = wide[key] = make(*args)
    return <kernel_t><size_t>found


# ---- what planners work out ------------------------------------------------------------------------------------------

cdef enum:
    MOST_FORMS = 256   # of a planner


def kept(planner):
    """``planner``, of forms alone (sizes, dtypes, numbers), called once for each: the table keeps what it gives.

    An op on another device has a planner of its own, so the planner says which device it is.
    """
    cdef dict results = {}
    FORMS[planner] = results

    def find(*forms):
        found = results.get(forms)
        if found is None:
            found = planner(*forms)
            if len(results) >= MOST_FORMS:
                results.clear()
            results[forms] = found
        return found

    find.__name__ = find.__qualname__ = planner.__name__
    find.__doc__, find.__wrapped__ = planner.__doc__, planner
    return find


def count_forms(planner):
    """How many forms of arguments the table has for a planner that is :func:`kept`."""
    return len(FORMS[planner.__wrapped__])


# ---- other devices ---------------------------------------------------------------------------------------------------

def register_device(str name, build=None):
    """Make ``name`` a device that ops may have planners for; gives its number.

    Args:
        name: as ``device(name)`` has it.
        build: ``build(name, args)`` gives the address of a kernel of ``taeda.kernels`` there; None where its planners
            build theirs themselves.
    """
    if name in DEVICES:
        raise ValueError(f"register_device: there is a device '{name}'")
    if len(DEVICES) > 127:
        raise RuntimeError(f"register_device: there are {len(DEVICES)} devices, which is as many as there may be")
    DEVICES.append(name)
    BUILDERS.append(build)
    return len(DEVICES) - 1


def add_planner(op, str device, planner):
    """Let ``planner`` compute ``op`` on ``device``: an op with the same signature, see ``Op.on``."""
    PLANNERS[op, DEVICES.index(device)] = planner


def planner_of(op, int number):
    """What computes ``op`` on the device of that number; None where nothing does."""
    return op if number <= META_NUMBER else PLANNERS.get((op, number))


def no_planner(op, int number):
    """Raise for a device that ``op`` has no entry for."""
    there = [name for k, name in enumerate(DEVICES) if planner_of(op, k) is not None]
    raise NotImplementedError(f"{op.name}(): there is no planner for device '{DEVICES[number]}', so the op cannot run "
                              f"on tensors there; it runs on {', '.join(there)}. Move its arguments with .to('cpu'), "
                              f"or give the op a planner with Op.on('{DEVICES[number]}', ...)")


def count_kernels():
    """How many kernels the table holds."""
    return used + len(wide)
