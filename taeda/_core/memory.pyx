"""The caching CPU allocator and Storage, the memory that views share.

Requests are rounded up to a size class: every 64 bytes up to 512, then eight classes in each octave, so that at most
one byte in nine is wasted. A freed block goes to the free list of its class, where the next request of the class finds
it: a few ns, and no page fault, which on large buffers would cost more than the arithmetic done on them.

Where blocks come from:

- small (up to 4 KiB): carved out of 64 KiB slabs of one class each;
- medium (up to 1 MiB): the C library;
- large: mapped from the system, aligned to huge pages.

Idle memory is bounded in two ways. The cache never holds more than its limit (a quarter of the machine by default).
And a request that no free block satisfies first gives the longest-unused classes back, as long as all that is reserved
exceeds the highest use so far by more than 64 MiB and an eighth; a program whose sizes drift therefore stays near what
it truly needs.

Every function may be called with or without the GIL: the free lists are guarded by a spin lock that is held for some
nanoseconds, except while the system is asked for more.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy, memset

from . cimport atomics

cdef extern from *:
    """
    #ifdef _WIN32
      static void* taeda_map(int64_t n) {
        return VirtualAlloc(NULL, (SIZE_T)n, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
      }
      static void taeda_unmap(void* p, int64_t n) { (void)n; VirtualFree(p, 0, MEM_RELEASE); }
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
      static void* taeda_map(int64_t n) {
        int64_t extra = n >= TAEDA_HUGE ? TAEDA_HUGE : 0;
        char* p = mmap(NULL, (size_t)(n + extra), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return NULL;
        if (extra) {
          int64_t head = (int64_t)((-(uintptr_t)p) & (uintptr_t)(TAEDA_HUGE - 1));
          if (head) munmap(p, (size_t)head);
          if (extra - head) munmap(p + head + n, (size_t)(extra - head));
          p += head;
      #ifdef MADV_HUGEPAGE
          madvise(p, (size_t)n, MADV_HUGEPAGE);
      #endif
        }
        return p;
      }
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
    void* taeda_aligned(int64_t nbytes, int64_t alignment) noexcept nogil
    void taeda_aligned_free(void* p) noexcept nogil
    int taeda_log2(unsigned long long x) noexcept nogil

cdef enum:
    CLASSES = 448             # up to 2**63 bytes
    SMALL_CLASSES = 32        # up to 4 KiB
    MEDIUM_CLASSES = 96       # up to 1 MiB
    SLAB = 65536
    FLOOR = 64 << 20          # see "Idle memory" above


cdef struct Block:            # a free block holds the link to the next one
    Block* next


cdef struct Slab:             # the first 64 bytes of a slab
    Slab* next
    int64_t free              # counted only while the cache is emptied
    int64_t carved


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
cdef int64_t lock = 0
cdef int64_t clock = 0
cdef int64_t high_water = 0   # as peak_allocated, but never reset by the user
cdef int64_t cached_bytes = 0
cdef int64_t cache_limit = -1  # not known yet
cdef int64_t memory_limit = -1


class OutOfMemoryError(RuntimeError):
    """The system has no more memory, though the cache was emptied. The program can go on."""


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


# ---- the system ------------------------------------------------------------------------------------------------------
cdef void* system_new(int index) noexcept nogil:
    """One block of a medium or large class, counted as reserved."""
    cdef int64_t size = bins[index].size
    cdef void* data = taeda_aligned(size, 64) if index < MEDIUM_CLASSES else taeda_map(size)
    if data != NULL:
        stats.reserved += size
        stats.system_allocations += 1
        if stats.reserved > stats.peak_reserved:
            stats.peak_reserved = stats.reserved
    return data


cdef void system_free(int index, void* data) noexcept nogil:
    stats.reserved -= bins[index].size
    stats.system_releases += 1
    if index < MEDIUM_CLASSES:
        taeda_aligned_free(data)
    else:
        taeda_unmap(data, bins[index].size)


# ---- bounds of the cache ---------------------------------------------------------------------------------------------
cdef void learn_limits() noexcept with gil:
    global cache_limit, memory_limit
    cdef int64_t limit, total = <int64_t>1 << 62
    try:
        from .machine import memory

        total = memory()
    except Exception:
        pass
    limit = total // 4
    try:
        import os

        if os.environ.get("TAEDA_CACHE_LIMIT"):
            limit = int(os.environ["TAEDA_CACHE_LIMIT"])
    except ValueError:
        pass
    memory_limit = total
    if cache_limit < 0:
        cache_limit = limit


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
    while stats.reserved + wanted > bound:
        excess = stats.reserved + wanted - bound
        oldest = -1
        for i in range(SMALL_CLASSES, CLASSES):
            if bins[i].cached and (oldest < 0 or bins[i].used < bins[oldest].used):
                oldest = i
        if oldest < 0:
            return
        give_back_class(oldest, excess)


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
    if bin.slabs != NULL and bin.fresh != NULL:  # the newest slab is the only one that is not carved to its end
        bin.slabs.carved = (bin.fresh - <char*>bin.slabs - 64) // bin.size
    while link[0] != NULL:
        slab = <Slab*>(<uintptr_t>link[0] & ~<uintptr_t>(SLAB - 1))
        if slab.free == slab.carved:
            link[0] = link[0].next
            bin.cached -= 1
        else:
            link = &link[0].next
    while chain[0] != NULL:
        slab = chain[0]
        if slab.free == slab.carved:
            if slab == bin.slabs and bin.fresh != NULL:
                bin.fresh = bin.end = NULL
            chain[0] = slab.next
            taeda_aligned_free(slab)
            stats.reserved -= SLAB
            stats.system_releases += 1
        else:
            slab.free = 0
            chain = &slab.next


cdef void empty_all() noexcept nogil:
    cdef int i
    for i in range(SMALL_CLASSES):
        empty_slabs(i)
    for i in range(SMALL_CLASSES, CLASSES):
        give_back_class(i, <int64_t>1 << 62)


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
        slab.carved = (SLAB - 64) // bin.size
        bin.slabs = slab
        bin.fresh = <char*>slab + 64
        bin.end = <char*>slab + SLAB
        stats.reserved += SLAB
        stats.system_allocations += 1
        if stats.reserved > stats.peak_reserved:
            stats.peak_reserved = stats.reserved
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


# ---- storage ---------------------------------------------------------------------------------------------------------
@cython.freelist(256)
@cython.no_gc  # `owner` is foreign memory or another storage, never a tensor: no cycle can pass through here
cdef class Storage:
    """A block of bytes that any number of tensors view: ``UntypedStorage(nbytes)``, or of a sequence of bytes.

    Args:
        content: a number of bytes, or a sequence of ints below 256. Nothing: no bytes.
        device: the CPU.
    """

    def __init__(self, content=0, *, device=None):
        cdef void* data
        cdef int64_t n
        if self.data != NULL:
            return
        if device is not None:
            from .tensor import require_device

            require_device(device)
        given = None if isinstance(content, int) else bytes(bytearray(content))
        n = content if given is None else len(given)
        data = allocate(n) if n >= 0 else NULL
        if data == NULL:
            raise refuse(n)
        self.data = <char*>data
        self.capacity = self.block = n
        self.may_resize = True
        if n:
            memcpy(data, <const char*>given, n) if given is not None else memset(data, 0, n)

    def __dealloc__(self):
        if self.owner is None and self.data != NULL:
            release(self.data, self.block)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        """The bytes, writable."""
        PyBuffer_FillInfo(buffer, self, self.data, self.capacity, 0, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* buffer):
        self.exports -= 1

    def data_ptr(self):
        """The address of the first byte."""
        return <uintptr_t>self.data

    def nbytes(self):
        """Size in bytes."""
        return self.capacity

    size = nbytes

    def __len__(self):
        return self.capacity

    def element_size(self):
        """Bytes of an element: 1."""
        return 1

    @property
    def device(self):
        """Where it is."""
        from .tensor import device

        return device("cpu")

    def resize_(self, size):
        """Grow or shrink to ``size`` bytes, keeping the contents; gives the storage. Every tensor on it moves along."""
        resize_storage(self, size, True)
        return self

    def __getitem__(self, index):
        """A byte, or for a slice a storage on the same memory."""
        cdef int64_t first
        if isinstance(index, slice):
            start, stop, step = index.indices(self.capacity)
            if step != 1:
                raise RuntimeError(f"tried to slice with a step of {step}, but only a step of 1 is supported")
            first = start
            return foreign_storage(self.data + first, max(stop - start, 0), self)
        return memoryview(self)[index]

    def __setitem__(self, index, value):
        view = memoryview(self)
        if isinstance(index, slice) and isinstance(value, int):
            value = bytes([value]) * len(range(*index.indices(self.capacity)))
        view[index] = memoryview(value) if isinstance(value, Storage) else value

    def __iter__(self):
        return iter(memoryview(self).tolist())

    def resizable(self):
        """Whether the memory is taeda's own, so that it can grow."""
        return self.may_resize

    def copy_(self, source, non_blocking=None):
        """Copy the bytes of ``source``, a storage of the same size; gives the storage."""
        if source.nbytes() != self.capacity:
            raise RuntimeError(f"size mismatch: expected a storage of {self.capacity} bytes, got one of {source.nbytes()}")
        memoryview(self)[:] = memoryview(source)
        return self

    def fill_(self, int value):
        """Every byte ``value``; gives the storage."""
        memset(self.data, value, self.capacity)
        return self

    def new(self):
        """A storage of no bytes."""
        return Storage()

    def cpu(self):
        """The storage itself."""
        return self

    def untyped(self):
        """The storage itself: it is one of bytes."""
        return self

    def type(self, dtype=None):
        """The name of the type."""
        return f"{type(self).__module__}.{type(self).__name__}"

    def is_shared(self):
        """Whether other processes can see this memory."""
        from .shared import is_shared

        return is_shared(self)

    def share_memory_(self):
        """Move the memory to where other processes can see it; gives the storage."""
        from .sharing import share_storage

        share_storage(self)
        return self

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """A storage over a file, mapped into memory.

        Args:
            filename: its path.
            shared: whether what is written reaches the file, which is made as long as need be. Otherwise writing changes
                memory only.
            nbytes: the size. Default: that of the file.
        """
        from mmap import ACCESS_COPY, ACCESS_WRITE, mmap
        from os import O_CREAT, O_RDONLY, O_RDWR, close, fstat, ftruncate, open

        from .exchange import share_storage

        fd = open(filename, O_RDWR | O_CREAT if shared else O_RDONLY, 0o666)
        try:
            size = fstat(fd).st_size
            if shared and nbytes > size:
                ftruncate(fd, nbytes)
                size = nbytes
            nbytes = nbytes or size
            if nbytes > size:
                raise RuntimeError(f"from_file: expected at least {nbytes} bytes in {filename!r}, it has {size}")
            if nbytes == 0:
                return Storage()
            return share_storage(mmap(fd, nbytes, access=ACCESS_WRITE if shared else ACCESS_COPY), 0, nbytes)
        finally:
            close(fd)

    def is_pinned(self, device=None):
        """Whether the memory is locked for transfers: no."""
        return False

    is_cuda = False
    is_sparse = False
    is_hpu = False

    @property
    def _cdata(self):
        return id(self)

    def tolist(self):
        """The bytes as a list of ints."""
        return list(bytes(self))

    def clone(self):
        """A copy."""
        return self.__deepcopy__({})

    def __reduce_ex__(self, protocol):
        if protocol >= 5:
            from pickle import PickleBuffer

            return _filled, (PickleBuffer(self),)  # the bytes may travel on their own, without a copy
        return _filled, (bytes(self),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        cdef Storage made = new_storage(self.capacity)
        memcpy(made.data, self.data, self.capacity)
        memo[id(self)] = made
        return made

    def __repr__(self):
        return f"<Storage of {self.capacity} bytes, version {self.version}>"


def _filled(data):
    """A new Storage with a copy of ``data`` (for unpickling)."""
    cdef const unsigned char[::1] view = data
    cdef Storage made = new_storage(view.shape[0])
    if view.shape[0]:
        memcpy(made.data, &view[0], view.shape[0])
    return made


def _amount(n):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n} {unit}" if isinstance(n, int) else f"{n:.2f} {unit}"
        n /= 1024
    return f"{n:.2f} TiB"


cdef object refuse(int64_t nbytes):
    if nbytes < 0:
        return RuntimeError(f"storage: expected a size of at least 0 bytes, got {nbytes} (the sizes overflow)")
    if memory_limit < 0:
        learn_limits()
    return OutOfMemoryError(
        f"out of memory on cpu: tried to allocate {_amount(nbytes)}; {_amount(stats.allocated)} are in use by tensors, "
        f"{_amount(stats.reserved - stats.allocated)} more are held, and this process may have {_amount(memory_limit)} "
        "in all. Free tensors, use smaller batches, or raise the memory limit of the machine or container"
    )


cdef Storage new_storage(int64_t nbytes):
    cdef Storage storage = Storage.__new__(Storage)
    cdef char* data = <char*>allocate(nbytes)
    if data == NULL:
        raise refuse(nbytes)
    storage.data = data
    storage.capacity = storage.block = nbytes
    storage.may_resize = True
    return storage


cdef Storage foreign_storage(void* data, int64_t nbytes, object owner):
    cdef Storage storage = Storage.__new__(Storage)
    storage.data = <char*>data
    storage.capacity = storage.block = nbytes
    storage.owner = owner if owner is not None else ()  # None would mean that the allocator owns it
    return storage


cdef int resize_storage(Storage storage, int64_t nbytes, bint tell) except -1:
    cdef char* data
    if not storage.may_resize:
        raise RuntimeError(
            f"resize: expected a storage of taeda's own, got one of {storage.capacity} bytes that belongs to "
            f"{type(storage.owner).__name__}; clone the tensor first"
        )
    if storage.exports:
        raise BufferError(
            f"resize: expected a storage of {storage.capacity} bytes that nothing else uses, but a NumPy array or "
            "memoryview shares it; clone the tensor first"
        )
    if 0 <= nbytes <= storage.block or (nbytes >= 0 and storage.block and class_of(nbytes) == class_of(storage.block)):
        # Memory of a shrunken storage is kept: its tensors may still show elements that are there.
        storage.block = max(storage.block, nbytes)
        storage.capacity = nbytes
        return 0
    data = <char*>allocate(nbytes)
    if data == NULL:
        raise refuse(nbytes)
    memcpy(data, storage.data, <size_t>min(nbytes, storage.capacity))
    cdef char* old = storage.data
    cdef int64_t old_block = storage.block
    storage.data = data
    storage.capacity = storage.block = nbytes
    if tell and MOVED is not None:
        MOVED(storage, <uintptr_t>old)
    release(old, old_block)
    return 0


cdef object MOVED = None


def on_move(function):
    """Call ``function(storage, old address)`` when a storage was given another block, before the old one goes."""
    global MOVED
    MOVED = function


cdef int64_t bytes_in_use() noexcept nogil:
    return atomics._load(&stats.allocated, atomics.RELAXED)


# ---- Python ----------------------------------------------------------------------------------------------------------
def memory_stats():
    """Figures of the CPU allocator, in bytes and counts.

    Returns:
        ``allocated`` (in use, rounded up to the size class), ``reserved`` (held from the system), ``cached`` (held and
        not in use), their peaks, ``allocations``, ``releases``, ``system_allocations``, ``system_releases``,
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
        "allocations": now.allocations,
        "releases": now.releases,
        "system_allocations": now.system_allocations,
        "system_releases": now.system_releases,
        "failures": now.failures,
        "cache_limit": cache_limit,
    }


def reset_peak_memory_stats():
    """Start the peaks of :func:`memory_stats` anew from what is in use now."""
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
    """Let tensors use at most ``nbytes`` in all; beyond it :class:`OutOfMemoryError`. None: what the machine has."""
    global memory_limit
    cdef int64_t limit
    learn_limits()
    if nbytes is not None:
        limit = nbytes
        if limit < 0:
            raise ValueError(f"set_memory_limit: expected at least 0 bytes, got {nbytes}")
        memory_limit = limit


def _after_fork():
    """Another thread may have held the lock at the moment of the fork."""
    atomics.store(&lock, 0)


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


import os as _os

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_after_fork)
