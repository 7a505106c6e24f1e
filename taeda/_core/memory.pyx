"""The caching CPU allocator and Storage, the memory that views share.

Requests are rounded up to a size class: every 64 bytes up to 512, then eight classes in each octave, so that at most
one byte in nine is wasted. A freed block goes to the free list of its class, where the next request of the class finds
it: a few ns, and no page fault, which on large buffers would cost more than the arithmetic done on them.

Where blocks come from:

- small (up to 4 KiB): carved out of 64 KiB slabs of one class each;
- up to 32 KiB: the C library;
- medium (below 2 MiB): arenas of huge pages (``arena.pxi``) where the system has them, else the C library;
- large: mapped from the system, aligned to huge pages.

Idle memory is bounded in two ways. The cache never holds more than its limit (a quarter of the machine by default). A
request that no free block satisfies first frees the size classes that were unused longest, as long as all reserved
memory exceeds the highest use so far by more than 64 MiB and an eighth. So a program whose sizes drift stays near its
true need.

Every function may be called with or without the GIL: the free lists are guarded by a spin lock that is held for some
nanoseconds, except while the system is asked for more.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS, PyBUF_FORMAT, PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_SetInterrupt
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memset

from . cimport atomics
from .devices cimport (
    CPU_NUMBER, FROM_HOST, META_NUMBER, TO_HOST, WITHIN, devices, elsewhere, end_call, here, swap_place,
)
from .recorder cimport allocate_planned, note_allocated, note_released, refuse_recording, release_planned

from .devices import DEVICES, accelerator, device_number, is_registered

cdef extern from *:
    """
    #ifdef _WIN32
      static void* taeda_map(int64_t n) {
        return VirtualAlloc(NULL, (SIZE_T)n, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
      }
      static void taeda_unmap(void* p, int64_t n) { (void)n; VirtualFree(p, 0, MEM_RELEASE); }
      #define TAEDA_ARENAS 0
      static void* taeda_map_arena(int64_t n, int64_t plain) { (void)n; (void)plain; return NULL; }
      static void taeda_forget(void* p, int64_t n) { (void)p; (void)n; }
      #include <malloc.h>
      #define taeda_aligned(n, alignment) _aligned_malloc((size_t)(n), (size_t)(alignment))
      #define taeda_aligned_free(p) _aligned_free(p)
    #else
      #include <stdlib.h>
      #include <sys/mman.h>
      static void* taeda_aligned(int64_t n, int64_t alignment) {
        void* p;
        return posix_memalign(&p, (size_t)alignment, (size_t)n) ? NULL : p;
      }
      #define taeda_aligned_free(p) free(p)
      #ifndef MAP_ANONYMOUS
        #define MAP_ANONYMOUS MAP_ANON
      #endif
      #define TAEDA_HUGE ((int64_t)1 << 21)
      static void taeda_unmap(void* p, int64_t n) { munmap(p, (size_t)n); }
      static char* taeda_map_at(int64_t n, int64_t extra) {  /* `extra`: what to align to, or 0 */
        char* p = mmap(NULL, (size_t)(n + extra), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return NULL;
        if (extra) {
          int64_t head = (int64_t)((-(uintptr_t)p) & (uintptr_t)(extra - 1));
          if (head) munmap(p, (size_t)head);
          if (extra - head) munmap(p + head + n, (size_t)(extra - head));
          p += head;
        }
        return p;
      }
      static void taeda_advise(char* p, int64_t n) {
      #ifdef MADV_HUGEPAGE
        if (p != NULL && n >= TAEDA_HUGE) madvise(p, (size_t)n, MADV_HUGEPAGE);
      #endif
      }
      static void* taeda_map(int64_t n) {
        char* p = taeda_map_at(n, n >= TAEDA_HUGE ? TAEDA_HUGE : 0);
        taeda_advise(p, n);
        return p;
      }
      static void* taeda_map_arena(int64_t n, int64_t plain) {
        char* p = taeda_map_at(n, n);
        if (p != NULL) taeda_advise(p + plain, n - plain);
        return p;
      }
      #if defined(MADV_HUGEPAGE) && defined(MADV_DONTNEED)
        #define TAEDA_ARENAS 1
        static void taeda_forget(void* p, int64_t n) { madvise(p, (size_t)n, MADV_DONTNEED); }
      #else
        #define TAEDA_ARENAS 0
        static void taeda_forget(void* p, int64_t n) { (void)p; (void)n; }
      #endif
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
      #include <intrin.h>
      static int taeda_log2(uint64_t x) { unsigned long i; _BitScanReverse64(&i, x); return (int)i; }
    #else
      #define taeda_log2(x) (63 - __builtin_clzll(x))
    #endif
    """
    void* taeda_map(int64_t nbytes) noexcept nogil
    void taeda_unmap(void* p, int64_t nbytes) noexcept nogil
    bint ARENAS "TAEDA_ARENAS"
    # Aligned to its size; huge pages after the first `plain` bytes.
    void* taeda_map_arena(int64_t nbytes, int64_t plain) noexcept nogil
    void taeda_forget(void* p, int64_t nbytes) noexcept nogil          # the pages may go; they read as 0
    void* taeda_aligned(int64_t nbytes, int64_t alignment) noexcept nogil
    void taeda_aligned_free(void* p) noexcept nogil
    int taeda_log2(unsigned long long x) noexcept nogil

cdef enum:
    CLASSES = 448             # up to 2**63 bytes
    SMALL_CLASSES = 32        # up to 4 KiB
    HEAP_CLASSES = 56         # up to 32 KiB
    MEDIUM_CLASSES = 103      # below 2 MiB
    SLAB = 65536
    FLOOR = 64 << 20          # see "Idle memory" above


cdef struct Block:            # a free block holds the link to the next one
    Block* next


cdef struct Slab:             # the first 64 bytes of a slab
    Slab* next
    int64_t free              # counted only while the cache is emptied


cdef struct Bin:
    Block* free
    char* fresh               # the next block of the newest slab, and the slab's end
    char* end
    Slab* slabs
    int64_t size
    int64_t cached            # free blocks
    int64_t used              # when this class was last asked for; only kept for classes above SMALL_CLASSES


cdef struct Statistics:
    int64_t allocated         # bytes in use, rounded up to the class
    int64_t reserved          # bytes held from the system
    int64_t peak_allocated
    int64_t peak_reserved
    int64_t allocations
    int64_t releases
    int64_t system_allocations
    int64_t system_releases
    int64_t failures


cdef Bin[CLASSES] bins
cdef Statistics stats
cdef int n_deferred = 0
cdef compute_t COMPUTE = NULL


cdef void set_compute(compute_t compute) noexcept:
    global COMPUTE
    COMPUTE = compute


cdef int ensure_computed(Storage storage) except -1:
    return COMPUTE(storage, False) if storage.waits else 0


cdef int compute_to_read(Storage storage) except -1:
    return COMPUTE(storage, True) if storage.deferred is not None else 0


@cython.no_gc
cdef class Pending:
    """A computation whose result goes into a storage."""


@cython.final
cdef class Original:
    pass


cdef int show(Storage storage) except -1:
    ensure_computed(storage)
    storage.shown = True
    if storage.original is not None:  # others may write there, and derivatives must see those writes
        storage.original.kept, storage.original = storage, None
    return 0


cdef int64_t planned = 0, peak_planned = 0  # bytes of the storages on device meta, under the GIL
cdef int64_t lock = 0
cdef int64_t clock = 0
cdef int64_t high_water = 0   # as peak_allocated, but never reset by the user
cdef int64_t cached_bytes = 0
cdef int64_t cache_limit = -1  # not known yet
cdef int64_t memory_limit = -1


class MetaValueError(RuntimeError):
    """A call asks for a value, and a tensor on device meta has none."""


class MetaMemoryError(MetaValueError, NotImplementedError):
    """A call asks for the memory of a tensor on device meta, which has none, or depends on values in it."""


class OutOfMemoryError(RuntimeError):
    """The system has no more memory, though the cache was emptied. The program can go on. A RuntimeError.

    Examples:
        >>> issubclass(taeda.OutOfMemoryError, RuntimeError)
        True
    """


cdef inline int class_of(int64_t nbytes) noexcept nogil:
    cdef int log
    if nbytes <= 512:
        return <int>((nbytes - 1) >> 6) if nbytes > 0 else 0
    nbytes -= 1
    log = taeda_log2(<unsigned long long>nbytes)
    return ((log - 8) << 3) + <int>((nbytes >> (log - 3)) & 7)


cdef int64_t size_of(int index) noexcept:
    if index < 8:
        return (index + 1) << 6
    cdef int log = (index >> 3) + 8
    # The last octave does not fit an int64; nothing that large is ever handed out.
    return <int64_t>(8 + (index & 7) + 1) << (log - 3) if log < 60 else <int64_t>1 << 62


cdef void fill_bins() noexcept:
    cdef int i
    for i in range(CLASSES):
        bins[i].size = size_of(i)

fill_bins()


cdef inline void acquire() noexcept nogil:
    cdef int tries = 0
    while atomics._exchange(&lock, 1, atomics.ACQUIRE):
        while atomics._load(&lock, atomics.RELAXED):
            tries += 1
            if tries & 63:
                atomics.pause()
            else:
                atomics.yield_slice()


cdef inline void drop() noexcept nogil:
    atomics._store(&lock, 0, atomics.RELEASE)

atomics.around_forks(acquire, drop)


# ---- the system ------------------------------------------------------------------------------------------------------
cdef inline void reserve(int64_t nbytes) noexcept nogil:
    stats.reserved += nbytes
    stats.system_allocations += 1
    if stats.reserved > stats.peak_reserved:
        stats.peak_reserved = stats.reserved


cdef inline void unreserve(int64_t nbytes) noexcept nogil:
    stats.reserved -= nbytes
    stats.system_releases += 1


include "arena.pxi"


cdef inline bint in_arena(int index) noexcept nogil:
    return ARENAS and HEAP_CLASSES <= index < MEDIUM_CLASSES


cdef void* system_new(int index) noexcept nogil:
    """One block of a class above the small ones, counted as reserved."""
    cdef int64_t size = bins[index].size
    if in_arena(index):
        return arena_new(size)
    cdef void* data = taeda_aligned(size, 64) if index < MEDIUM_CLASSES else taeda_map(size)
    if data != NULL:
        reserve(size)
    return data


cdef void system_free(int index, void* data) noexcept nogil:
    if in_arena(index):
        arena_free(data, bins[index].size)
        return
    unreserve(bins[index].size)
    if index < MEDIUM_CLASSES:
        taeda_aligned_free(data)
    else:
        taeda_unmap(data, bins[index].size)


# ---- bounds of the cache ---------------------------------------------------------------------------------------------
cdef void learn_limits() noexcept with gil:
    global cache_limit, memory_limit
    cdef int64_t limit = -1, total = <int64_t>1 << 62
    cdef bint interrupted = False
    while limit < 0:
        try:
            import os

            from .machine import memory

            total = memory()
            limit = max(<int64_t>int(os.environ.get("TAEDA_CACHE_LIMIT") or total // 4), <int64_t>0)
        except KeyboardInterrupt:  # no exception passes through an allocation
            interrupted = True
        except Exception:
            limit = total // 4
    memory_limit = total
    if cache_limit < 0:
        cache_limit = limit
    if interrupted:
        PyErr_SetInterrupt()


cdef void give_back_class(int index, int64_t enough) noexcept nogil:
    """Free cached blocks of a class that has no slabs, until `enough` bytes are freed."""
    global cached_bytes
    cdef Bin* bin = &bins[index]
    cdef Block* block
    while bin.free != NULL and enough > 0:
        block = bin.free
        bin.free = block.next
        bin.cached -= 1
        cached_bytes -= bin.size
        enough -= bin.size
        system_free(index, block)


cdef void trim(int64_t wanted) noexcept nogil:
    """Before `wanted` more bytes are reserved: give the longest-unused classes back while too much is held."""
    cdef int64_t bound = high_water if high_water > stats.allocated + wanted else stats.allocated + wanted
    cdef int64_t excess
    cdef int i, oldest
    bound += FLOOR + bound // 8
    while stats.reserved - arena_spare + wanted > bound:
        excess = stats.reserved - arena_spare + wanted - bound
        oldest = -1
        for i in range(SMALL_CLASSES, CLASSES):
            if bins[i].cached and (oldest < 0 or bins[i].used < bins[oldest].used):
                oldest = i
        if oldest < 0:
            return
        give_back_class(oldest, excess)


cdef inline int64_t carved(Bin* bin, Slab* slab) noexcept nogil:
    """The number of blocks of a slab that were ever handed out: all of them, but for the newest slab."""
    cdef char* end = bin.fresh if slab == bin.slabs and bin.fresh != NULL else <char*>slab + SLAB
    return (end - <char*>slab - 64) // bin.size


cdef void empty_slabs(int index) noexcept nogil:
    """Free the slabs of a small class in which every block is free."""
    cdef Bin* bin = &bins[index]
    cdef Block* block = bin.free
    cdef Block** link = &bin.free
    cdef Slab* slab
    cdef Slab** chain = &bin.slabs
    while block != NULL:
        slab = <Slab*>(<uintptr_t>block & ~<uintptr_t>(SLAB - 1))
        slab.free += 1
        block = block.next
    while link[0] != NULL:
        slab = <Slab*>(<uintptr_t>link[0] & ~<uintptr_t>(SLAB - 1))
        if slab.free == carved(bin, slab):
            link[0] = link[0].next
            bin.cached -= 1
        else:
            link = &link[0].next
    while chain[0] != NULL:
        slab = chain[0]
        if slab.free == carved(bin, slab):
            if slab == bin.slabs and bin.fresh != NULL:
                bin.fresh = bin.end = NULL
            chain[0] = slab.next
            taeda_aligned_free(slab)
            unreserve(SLAB)
        else:
            slab.free = 0
            chain = &slab.next


cdef void empty_all() noexcept nogil:
    cdef int i
    for i in range(SMALL_CLASSES):
        empty_slabs(i)
    for i in range(SMALL_CLASSES, CLASSES):
        give_back_class(i, <int64_t>1 << 62)


# ---- memory of device meta -------------------------------------------------------------------------------------------
cdef void count_planned(int64_t nbytes) noexcept:
    global planned, peak_planned
    planned += nbytes
    peak_planned = max(peak_planned, planned)


# ---- allocate, release -----------------------------------------------------------------------------------------------
cdef void* carve(Bin* bin) noexcept nogil:
    """A block of a small class that has no free one."""
    cdef Slab* slab
    cdef char* block
    if bin.fresh == NULL or bin.end - bin.fresh < bin.size:
        slab = <Slab*>taeda_aligned(SLAB, SLAB)
        if slab == NULL:
            return NULL
        slab.next = bin.slabs
        slab.free = 0
        bin.slabs = slab
        bin.fresh = <char*>slab + 64
        bin.end = <char*>slab + SLAB
        reserve(SLAB)
    block = bin.fresh
    bin.fresh = block + bin.size
    return block


cdef void* fresh_block(int index) noexcept nogil:
    """A block for a class whose free list is empty; called with the lock held. NULL if there is no memory."""
    cdef void* data
    cdef int64_t size = bins[index].size
    if index < SMALL_CLASSES:
        data = carve(&bins[index])
        if data == NULL:
            empty_all()
            data = carve(&bins[index])
        return data
    if memory_limit < 0:
        drop()
        learn_limits()
        acquire()
    if size > memory_limit - stats.allocated:  # the system would promise it and then kill the process
        return NULL
    trim(size)
    data = system_new(index)
    if data == NULL:
        empty_all()
        data = system_new(index)
    return data


cdef void* allocate(int64_t nbytes) noexcept nogil:
    global clock, cached_bytes, high_water
    cdef int index
    cdef Bin* bin
    cdef void* data
    if nbytes < 0 or nbytes > <int64_t>1 << 60:
        stats.failures += 1
        return NULL
    index = class_of(nbytes)
    bin = &bins[index]
    acquire()
    if bin.free != NULL:
        data = bin.free
        bin.free = bin.free.next
        bin.cached -= 1
        if index >= SMALL_CLASSES:
            cached_bytes -= bin.size
    else:
        data = fresh_block(index)
        if data == NULL:
            stats.failures += 1
            drop()
            return NULL
    if index >= SMALL_CLASSES:
        clock += 1
        bin.used = clock
    stats.allocations += 1
    stats.allocated += bin.size
    if stats.allocated > stats.peak_allocated:
        stats.peak_allocated = stats.allocated
        if stats.allocated > high_water:
            high_water = stats.allocated
    drop()
    return data


cdef void release(void* data, int64_t nbytes) noexcept nogil:
    global cached_bytes
    if data == NULL:
        return
    cdef int index = class_of(nbytes)
    cdef Bin* bin = &bins[index]
    acquire()
    stats.releases += 1
    stats.allocated -= bin.size
    if index >= SMALL_CLASSES:
        if bin.size > cache_limit - cached_bytes:
            system_free(index, data)
            drop()
            return
        cached_bytes += bin.size
    (<Block*>data).next = bin.free
    bin.free = <Block*>data
    bin.cached += 1
    drop()


include "storage.pxi"


# ---- Python ----------------------------------------------------------------------------------------------------------
def memory_stats():
    """Figures of the CPU allocator, in bytes and counts.

    Returns:
        ``allocated`` (in use, rounded up to the size class), ``reserved`` (held from the system), ``cached`` (held and
        not in use), their peaks, ``planned`` and ``peak_planned`` (of device meta, which uses none),
        ``allocations``, ``releases``, ``system_allocations``, ``system_releases``,
        ``failures`` and ``cache_limit``.
    """
    if cache_limit < 0:
        learn_limits()
    cdef Statistics now
    acquire()
    now = stats
    drop()
    return {
        "allocated": now.allocated,
        "reserved": now.reserved,
        "cached": now.reserved - now.allocated,
        "peak_allocated": now.peak_allocated,
        "peak_reserved": now.peak_reserved,
        "planned": planned,
        "peak_planned": peak_planned,
        "allocations": now.allocations,
        "releases": now.releases,
        "system_allocations": now.system_allocations,
        "system_releases": now.system_releases,
        "failures": now.failures,
        "cache_limit": cache_limit,
    }


def reset_peak_memory_stats():
    """Start the peaks of :func:`memory_stats` anew from the present use."""
    global peak_planned
    peak_planned = planned
    acquire()
    stats.peak_allocated = stats.allocated
    stats.peak_reserved = stats.reserved
    drop()


def empty_cache():
    """Give all memory that no tensor uses back to the system."""
    global high_water
    acquire()
    empty_all()
    high_water = stats.allocated
    drop()


def set_cache_limit(nbytes):
    """Bound the memory that is kept for reuse; 0 keeps none but small blocks. See also ``TAEDA_CACHE_LIMIT``."""
    global cache_limit
    cdef int64_t limit = nbytes
    cdef int i
    if limit < 0:
        raise ValueError(f"set_cache_limit: expected at least 0 bytes, got {nbytes}")
    acquire()
    cache_limit = limit
    for i in range(CLASSES - 1, SMALL_CLASSES - 1, -1):
        if cached_bytes <= limit:
            break
        give_back_class(i, cached_bytes - limit)
    drop()


def set_memory_limit(nbytes):
    """Let tensors use at most ``nbytes`` in all; beyond that :class:`OutOfMemoryError` is raised. None means all memory
    of the machine.
    """
    global memory_limit
    cdef int64_t limit
    learn_limits()
    if nbytes is not None:
        limit = nbytes
        if limit < 0:
            raise ValueError(f"set_memory_limit: expected at least 0 bytes, got {nbytes}")
        memory_limit = limit


cdef bint only_plans(const char* why) except -1:
    refuse_recording(why)
    if here() > META_NUMBER:
        raise NotImplementedError(f"{why.decode()} here, on memory of the processor, and the tensors are on device "
                                  f"'{DEVICES[here()]}': move them with .to('cpu')")
    return here() == META_NUMBER


def _exercise(sizes):
    """Allocate and release blocks of ``sizes`` in turn, for tests and benchmarks: the addresses modulo 64."""
    cdef int64_t n
    cdef void* data
    cdef list left = []
    for n in sizes:
        data = allocate(n)
        if data != NULL:
            memset(data, 1, <size_t>n)
            left.append(<uintptr_t>data % 64)
            release(data, n)
    return left


def _storage(nbytes):
    """A new Storage (tests)."""
    return new_storage(nbytes)


def _resize(Storage storage, nbytes):
    resize_storage(storage, nbytes, True)


cdef void* take_scratch(int64_t nbytes) noexcept nogil:
    cdef void* data
    cdef int number
    if not elsewhere:
        return allocate(nbytes)
    number = here()
    if number == META_NUMBER:
        return allocate_planned(nbytes)
    if number:
        with gil:
            return devices[number].allocate(number, nbytes)
    data = allocate(nbytes)
    note_allocated(data, nbytes)
    return data


cdef void release_scratch(void* data, int64_t nbytes) noexcept nogil:
    cdef int number
    if not elsewhere:
        release(data, nbytes)
        return
    number = here()
    if number == META_NUMBER:
        release_planned(data, nbytes)
    elif number:
        with gil:
            devices[number].release(number, data, nbytes)
    else:
        note_released(data)
        release(data, nbytes)
