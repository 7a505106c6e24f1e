# Arenas: medium blocks side by side on huge pages.
# The memory of a model is mostly in blocks of some tens of KiB to a MiB. On pages of 4 KiB they take as many entries of
# the processor's page tables, which in a virtual machine cost two walks each, and lie in the second-level cache
# wherever the system found a page, often one above the other. An arena is aligned to its size, so that a block finds
# its arena.

cdef enum:
    ARENA = 16 << 20
    HUGE = 2 << 20
    UNIT = 512                 # blocks begin at multiples of it, one further than need be: equal sizes do not all begin
    UNITS = ARENA // UNIT      # at the same line of the first-level cache
    UNITS_OF_PAGE = HUGE // UNIT


cdef struct Arena:             # at the beginning of the arena itself
    Arena* next
    Arena* before
    int64_t first              # no unit before it is free
    int64_t[8] used            # units of each huge page
    char[32768] taken          # 1 for a unit in use


cdef Arena* arenas = NULL
cdef int64_t arena_spare = 0   # bytes of pages in use that no block has


cdef inline int64_t units_of(int64_t size) noexcept nogil:
    return (size + UNIT - 1) // UNIT + 1


cdef void mark(Arena* a, int64_t start, int64_t count, int taken) noexcept nogil:
    """Take or free units. Pages count as reserved from the first of their units that is taken until the last is freed.
    """
    cdef int64_t page, low, high
    memset(a.taken + start, taken, <size_t>count)
    for page in range(start // UNITS_OF_PAGE, (start + count - 1) // UNITS_OF_PAGE + 1):
        low, high = max(start, page * UNITS_OF_PAGE), min(start + count, (page + 1) * UNITS_OF_PAGE)
        if taken:
            if a.used[page] == 0:
                reserve(HUGE)
                arena_grow(HUGE)
            a.used[page] += high - low
            arena_grow(-(high - low) * UNIT)
            continue
        a.used[page] -= high - low
        arena_grow((high - low) * UNIT)
        if a.used[page] == 0:
            taeda_forget(<char*>a + page * HUGE, HUGE)
            unreserve(HUGE)
            arena_grow(-HUGE)


cdef inline void arena_grow(int64_t nbytes) noexcept nogil:
    global arena_spare
    arena_spare += nbytes


cdef int64_t find_units(Arena* a, int64_t count) noexcept nogil:
    """The first run of free units, or -1."""
    cdef char* at = <char*>memchr(a.taken + a.first, 0, <size_t>(UNITS - a.first))
    cdef char* end = a.taken + UNITS
    cdef char* stop
    a.first = at - a.taken if at != NULL else UNITS
    while at != NULL and end - at >= count:
        stop = <char*>memchr(at, 1, <size_t>count)
        if stop == NULL:
            return at - a.taken
        at = <char*>memchr(stop, 0, <size_t>(end - stop))
    return -1


cdef void* arena_new(int64_t size) noexcept nogil:
    global arenas
    cdef int64_t count = units_of(size), start = -1, head = (sizeof(Arena) + UNIT - 1) // UNIT
    cdef Arena* a = arenas
    while a != NULL:
        start = find_units(a, count)
        if start >= 0:
            break
        a = a.next
    if a == NULL:
        # A program that needs little should not pay for a whole huge page.
        a = <Arena*>taeda_map_arena(ARENA, HUGE if arenas == NULL else 0)
        if a == NULL:
            return NULL
        a.next, a.before = arenas, NULL  # new pages are zeros
        if arenas != NULL:
            arenas.before = a
        arenas = a
        mark(a, 0, head, 1)
        start = a.first = head
    mark(a, start, count, 1)
    return <char*>a + start * UNIT


cdef void arena_free(void* data, int64_t size) noexcept nogil:
    global arenas
    cdef Arena* a = <Arena*>(<uintptr_t>data & ~<uintptr_t>(ARENA - 1))
    cdef int64_t start = (<char*>data - <char*>a) // UNIT, page, head = (sizeof(Arena) + UNIT - 1) // UNIT
    mark(a, start, units_of(size), 0)
    a.first = min(a.first, start)
    if a.used[0] != head:
        return
    for page in range(1, ARENA // HUGE):
        if a.used[page]:
            return
    if a.next != NULL:
        a.next.before = a.before
    if a.before != NULL:
        a.before.next = a.next
    else:
        arenas = a.next
    unreserve(HUGE)
    arena_grow(head * UNIT - HUGE)
    taeda_unmap(a, ARENA)
