"""CUDA devices for the core: the driver's functions as a table of C pointers, memory by stream, launches and copies.

The table is filled from libcuda, or from whatever stands in for it (``driver.py``). Nothing here knows which.
"""

import bisect
import sys
import threading

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from taeda._core.devices cimport (
    CPU_NUMBER, FROM_HOST, FROM_TABLE, MOST_DEVICES, TO_HOST, WITHIN, Behind, Device, Way, behind, count_streams,
    devices, end_call, kernel_t,
)

from taeda._core.kernel_args cimport ProductArgs
from taeda._core.tensor cimport MAXDIM

from taeda._core import OutOfMemoryError
from taeda._core.tensor import running_op
from taeda._core.devices import fail

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      #define TAEDA_OWN static __declspec(thread)
    #else
      #define TAEDA_OWN static __thread
    #endif
    TAEDA_OWN int taeda_gpu = 0;                 /* index of the current device */
    TAEDA_OWN void *taeda_context = 0;           /* that is current */
    TAEDA_OWN void *taeda_streams[32];           /* the current stream, by index of the device */
    TAEDA_OWN int taeda_numbers[32];             /* and its number */
    TAEDA_OWN int taeda_async = 0;               /* copies from and to pinned memory need not be waited for */
    TAEDA_OWN long long taeda_owners[32];        /* whose memory is allocated, by index: 0, or a graph's or pool's */
    TAEDA_OWN int taeda_capturing = 0;           /* work is captured into a graph */
    """
    int current_index "taeda_gpu"
    void* current_context "taeda_context"
    void** current_streams "taeda_streams"
    int* current_numbers "taeda_numbers"
    int waits_not "taeda_async"
    int64_t* current_owners "taeda_owners"
    int capturing "taeda_capturing"

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      #include <intrin.h>
      static int taeda_lowest(unsigned long long x) { unsigned long at; _BitScanForward64(&at, x); return (int)at; }
      static int taeda_highest(unsigned long long x) { unsigned long at; _BitScanReverse64(&at, x); return (int)at; }
    #else
      static inline int taeda_lowest(unsigned long long x) { return __builtin_ctzll(x); }
      static inline int taeda_highest(unsigned long long x) { return 63 - __builtin_clzll(x); }
    #endif
    """
    int lowest_bit "taeda_lowest" (uint64_t x) nogil     # of a number that is not 0
    int highest_bit "taeda_highest" (uint64_t x) nogil

# ---- the driver ------------------------------------------------------------------------------------------------------

ctypedef int (*of_nothing_t)() noexcept nogil
ctypedef int (*of_pointer_t)(void*) noexcept nogil
ctypedef int (*get_pointer_t)(void**) noexcept nogil
ctypedef int (*alloc_t)(uint64_t*, size_t) noexcept nogil
ctypedef int (*free_t)(uint64_t) noexcept nogil
ctypedef int (*to_device_t)(uint64_t, const void*, size_t, void*) noexcept nogil
ctypedef int (*to_host_t)(void*, uint64_t, size_t, void*) noexcept nogil
ctypedef int (*within_t)(uint64_t, uint64_t, size_t, void*) noexcept nogil
ctypedef int (*fill_t)(uint64_t, unsigned char, size_t, void*) noexcept nogil
ctypedef int (*launch_t)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                         void**) noexcept nogil
ctypedef int (*exchange_t)(int*) noexcept nogil
ctypedef int (*status_t)(void*, int*) noexcept nogil

cdef struct Driver:
    of_pointer_t set_context, wait_stream
    alloc_t allocate
    free_t release
    to_device_t to_device
    to_host_t to_host
    within_t within
    fill_t fill
    launch_t launch
    exchange_t exchange
    status_t status
    of_nothing_t wait_all

cdef Driver driver

#: The functions that this module calls, by their names in libcuda.
FUNCTIONS = ("cuCtxSetCurrent", "cuStreamSynchronize", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2",
             "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuLaunchKernel",
             "cuThreadExchangeStreamCaptureMode", "cuCtxSynchronize", "cuStreamIsCapturing")


def fill_table(*addresses):
    """Take the addresses of :data:`FUNCTIONS`."""
    cdef uintptr_t at[12]
    cdef int i
    for i in range(12):
        at[i] = addresses[i]
    driver.set_context, driver.wait_stream = <of_pointer_t>at[0], <of_pointer_t>at[1]
    driver.allocate, driver.release = <alloc_t>at[2], <free_t>at[3]
    driver.to_device, driver.to_host, driver.within = <to_device_t>at[4], <to_host_t>at[5], <within_t>at[6]
    driver.fill, driver.launch, driver.exchange = <fill_t>at[7], <launch_t>at[8], <exchange_t>at[9]
    driver.wait_all, driver.status = <of_nothing_t>at[10], <status_t>at[11]


cdef object ERROR = None      # error(result, what): the exception for a result of the driver
cdef object BUILD = None      # build(kernel, pointers, words, inner, form): the entry of a kernel, an address
cdef object HOST_FUNCTIONS = None   # (number, address): the kernel of a function of the core, or a Way of launching
cdef object ITEM = None       # item(nbytes): the kernel that copies one item, an address
cdef object PARTS = None      # parts(row): the kernel that adds the parts of a product's sums, an address
cdef object EXPLAIN = None    # explain(memory, bytes): the message where there is no more
cdef kernel_t ELEMENTS = NULL  # `run_piece`, once it was launched
cdef int FIRST = 0            # the number of device 0
cdef void* contexts[MOST_DEVICES]   # by index
cdef bint forked = False      # this process was forked from one that used a device


def set_hooks(error, build, host_function, item, parts, explain, join):
    """Set what this module calls for what is rare: errors, a kernel's first launch, launches of functions of the core,
    a lack of memory."""
    global ERROR, BUILD, HOST_FUNCTIONS, ITEM, PARTS, EXPLAIN, JOIN
    ERROR, BUILD, HOST_FUNCTIONS, ITEM, PARTS = error, build, host_function, item, parts
    EXPLAIN, JOIN = explain, join


def after_fork():
    """A child process has no device: contexts do not survive a fork."""
    global forked
    forked = True


def is_forked():
    """Whether this process was forked from one that used a device."""
    return forked


cdef int enter(int index) except -1:
    """Make the context of a device this thread's."""
    cdef int result
    if forked:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
                           "use the 'spawn' start method")
    if current_context != contexts[index]:
        result = driver.set_context(contexts[index])
        if result:
            raise ERROR(result, "cuCtxSetCurrent")
        global_context(contexts[index])
    return 0


cdef void global_context(void* context) noexcept:
    global current_context
    current_context = context


def enter_context(int index):
    """Make the context of device ``index`` this thread's."""
    enter(index)


def get_context():
    """The context that is current on this thread."""
    return <uintptr_t>current_context


def first_number():
    """The number of device 0."""
    return FIRST


def get_index():
    """The index of this thread's current device."""
    return current_index


def set_index(int index):
    """Make a device this thread's current one; gives the index before."""
    global current_index
    cdef int before = current_index
    current_index = index
    return before


def get_stream(int index):
    """The current stream of a device on this thread, 0 for the default one."""
    return <uintptr_t>current_streams[index]


cdef list streams = [None]     # (index, handle), by number; the default ones are number 0
cdef dict stream_numbers = {}
cdef object JOIN = None        # join(index, stream, other): a stream waits for what another one has now


def set_stream(int index, uintptr_t stream):
    """Let this thread's work on a device go to a stream; gives the one before."""
    cdef uintptr_t before = <uintptr_t>current_streams[index]
    cdef object number = stream_numbers.get((index, stream)) if stream else 0
    if number is None:
        number = stream_numbers[index, stream] = len(streams)
        streams.append((index, stream))
        count_streams(len(streams) - 1)
    current_streams[index], current_numbers[index] = <void*>stream, number
    return before


cdef int stream_row(int number) noexcept:
    return current_numbers[current_index if number == CPU_NUMBER else number - FIRST]


cdef int swap_stream_row(int number, int stream) noexcept:
    cdef int index = number - FIRST, before = current_numbers[index]
    cdef uintptr_t handle = 0
    if stream != before:
        if stream:
            of, handle = streams[stream]
            if of != index:
                return before
        current_streams[index], current_numbers[index] = <void*>handle, stream
    return before


cdef void join_row(int number, int stream) noexcept:
    cdef int index = number - FIRST
    try:
        enter(index)
        JOIN(index, <uintptr_t>current_streams[index], streams[stream][1] if stream else 0)
    except BaseException as error:
        fail(error)


cdef void keep_row(int number, void* data) noexcept:
    cdef int index = number - FIRST
    try:
        memory_of(index).record_stream(<uintptr_t>data, <uintptr_t>current_streams[index])
    except BaseException as error:
        fail(error)


def set_waiting(bint waits):
    """Whether copies from and to pinned memory are waited for; gives what was set before."""
    global waits_not
    cdef bint before = not waits_not
    waits_not = not waits
    return before


# ---- graphs ----------------------------------------------------------------------------------------------------------

RELAXED = 2                    # CU_STREAM_CAPTURE_MODE_RELAXED

cdef int relaxed = 0           # captures under way: the driver must be told that an allocation is no part of them


cdef int exchange(int mode) noexcept:
    """Set what a capture forbids this thread; gives what was set before."""
    if relaxed:
        driver.exchange(&mode)
    return mode


def exchange_mode(int mode):
    """Set what a capture forbids this thread (a ``CUstreamCaptureMode``); gives what was set before."""
    return exchange(mode)


cdef class Captured:
    """What a capture has met: the graph needs it for as long as it is."""

    cdef readonly int index            # of the device
    cdef readonly int64_t owner        # of the memory that it allocates
    cdef int64_t before                # the owner before
    cdef readonly list tables          # (address, content, what fills it in before a launch) of the graph's own memory
    cdef set words                     # the addresses that its work was given, and some numbers
    cdef public object update          # what fills in the next table
    cdef readonly list held            # the blocks that it reads and others allocated
    cdef readonly GraphReports reports
    cdef list graphs                   # those that are launched in it: they keep their memory as long as it
    cdef readonly list keeps           # what of libraries its work uses

    def __cinit__(self, int index, int64_t owner):
        self.index, self.owner, self.before = index, owner, current_owners[index]
        self.tables, self.words, self.held, self.reports = [], set(), [], GraphReports(index)
        self.graphs, self.keeps = [], []

    cdef void* memory(self, int64_t nbytes) except NULL:
        """Memory that the graph has for itself."""
        current_owners[self.index] = 0
        try:
            return memory_of(self.index).allocate(nbytes, NULL)
        finally:
            current_owners[self.index] = self.owner

    def own(self):
        """The addresses of that memory."""
        return [address for address, _, _ in self.tables] + self.reports.words

    cdef void* table(self, const void* source, int64_t nbytes) except NULL:
        """Memory of the graph for a table."""
        cdef void* made = self.memory(nbytes)
        content = bytearray((<const char*>source)[:nbytes])
        self.tables.append((<uintptr_t>made, content, self.update))
        self.words.update(memoryview(content)[:nbytes // 8 * 8].cast("Q"))
        self.update = None
        return made


cdef dict captures = {}        # by the thread: its Captured


def captured_here():
    """What this thread captures; None: nothing."""
    return captures.get(threading.get_ident()) if capturing else None


def begin_capture(int index, int64_t owner):
    """This thread's work on a device is captured from now on, and allocates from the memory of ``owner``."""
    global capturing, relaxed
    captures[threading.get_ident()] = Captured(index, owner)
    current_owners[index] = owner
    capturing += 1
    relaxed += 1


def end_capture():
    """The capture has ended; gives what it has met, and holds the memory that it reads."""
    global capturing, relaxed
    cdef Captured c = captures.pop(threading.get_ident())
    current_owners[c.index] = c.before
    capturing -= 1
    relaxed -= 1
    memory_of(c.index).hold_blocks(c)
    return c


cdef int note_words(int index, const void* words, int64_t n) except -1:
    """Addresses that captured work is given, among other numbers. Work on a stream that is not captured is an error: it
    would read tables and states that are written when the graph is launched."""
    cdef int64_t i
    cdef int status = 0
    cdef set known = (<Captured>captures[threading.get_ident()]).words
    if driver.status(current_streams[index], &status) or status != 1:
        raise RuntimeError("within the capture of a CUDA graph, work goes to a stream that is not captured. Let the "
                           "stream wait for the captured one first (Stream.wait_stream)")
    for i in range(n):
        known.add((<const uint64_t*>words)[i])
    return 0


def begin_call(int index, *addresses):
    """A library is about to be called with these addresses, for work on the current stream of a device: its handle."""
    cdef uint64_t word
    enter(index)
    if capturing:
        for address in addresses:
            word = address
            note_words(index, &word, 1)
    return <uintptr_t>current_streams[index]


def end_call_of(int index):
    """A library was called: where each launch is waited for, wait for its work."""
    if BLOCKING and not capturing:
        wait(index, current_streams[index])


def set_owner(int index, int64_t owner):
    """Let this thread allocate from the memory of ``owner`` on a device; gives the owner before."""
    before = current_owners[index]
    current_owners[index] = owner
    return before


# ---- memory ----------------------------------------------------------------------------------------------------------
# Blocks are cut from segments, which the driver gives. A free block is in a bin of its pool, by size; a pool belongs to
# a stream, so memory that is given back can be used again at once: the stream orders the work. A graph has pools of its
# own: its launches use them again.

cdef enum:
    ROUND = 512                # bytes: sizes are multiples of it
    SMALL = 1 << 20            # up to here blocks are cut from segments of SMALL_SEGMENT
    SMALL_SEGMENT = 2 << 20
    LARGE = 10 << 20           # up to here from segments of LARGE_SEGMENT, beyond from their own
    LARGE_SEGMENT = 20 << 20
    ROUND_LARGE = 2 << 20
    NBINS = 192                # four for each power of two
    BIN_WORDS = 3              # with a bit for each

cdef struct Block:
    uint64_t address
    int64_t size, requested
    Pool* pool
    bint used                  # by a tensor, or by work that is not done
    Block* before              # of the segment
    Block* after
    Block* previous            # of the bin
    Block* next                # likewise; of a block in use, of its list

cdef struct Pool:
    void* stream
    int64_t owner              # 0: of everybody
    bint small
    Block* bins[NBINS]
    uint64_t filled[BIN_WORDS]   # a bit for each bin that has a block
    Pool* next

cdef enum:
    ALLOCATION, SEGMENT, ACTIVE, INACTIVE, ALLOCATED, RESERVED, ACTIVE_BYTES, INACTIVE_BYTES, REQUESTED, NSTATS

#: The groups of statistics, as PyTorch names them.
STATISTICS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
              "inactive_split_bytes", "requested_bytes")

cdef inline void tally(int64_t* s, int64_t by) noexcept:
    """Count in a row of statistics: current, peak, allocated, freed."""
    s[0] += by
    if s[0] > s[1]:
        s[1] = s[0]
    if by > 0:
        s[2] += by
    else:
        s[3] -= by


cdef inline int bin_of(int64_t size) noexcept:
    """The bin of a size: the power of two, and a quarter of it."""
    cdef uint64_t units = <uint64_t>(size // ROUND)
    cdef int power = highest_bit(units | 1)
    return min(4 * power + (<int>((units << 2) >> power) & 3), NBINS - 1)


cdef class Memory:
    """The memory of one device."""

    cdef readonly int index
    cdef Pool* pools
    cdef Block** blocks                # those in use, by address: lists, as many as `nblocks` rounds up to
    cdef int64_t nblocks, places
    cdef dict users                    # streams that use a block beside its own, by its address
    cdef list waiting                  # (events, address) of blocks that were given back and are in use
    cdef list deferred                 # (streams, address) of those that were given back in a capture
    cdef dict held                     # how many graphs read a block, by its address
    cdef dict limbo                    # blocks that were given back and are held: addresses of Block, by theirs
    cdef dict holders                  # how many graphs and pools have the memory of an owner
    cdef int64_t stats[NSTATS][3][4]   # all, small, large: current, peak, allocated, freed
    cdef readonly int64_t retries, failures, device_allocations, device_releases, synchronisations
    cdef public int64_t limit          # bytes that may be reserved; -1: no limit
    cdef public bint plain             # every tensor has memory of its own from the driver
    cdef public object events          # record(stream), is_done(event), wait(event): what other streams do

    def __cinit__(self, int index):
        self.index, self.limit = index, -1
        self.users, self.waiting, self.deferred, self.holders, self.held, self.limbo = {}, [], [], {}, {}, {}
        self.more_places()

    cdef int more_places(self) except -1:
        """Room for more blocks in use."""
        cdef int64_t i, before = self.places
        cdef Block** old = self.blocks
        cdef Block* b
        cdef Block* following
        cdef Block** made = <Block**>calloc(2 * before if before else 256, sizeof(Block*))
        if made == NULL:
            raise MemoryError
        self.blocks, self.nblocks, self.places = made, 0, 2 * before if before else 256
        for i in range(before):
            b = old[i]
            while b != NULL:
                following = b.next
                self.note(b)
                b = following
        free(old)
        return 0

    cdef inline Block** place(self, uint64_t address) noexcept:
        """The list of blocks in use that one of that address is in."""
        return self.blocks + ((address // 64 * <uint64_t>0x9E3779B97F4A7C15 >> 32) & <uint64_t>(self.places - 1))

    cdef inline void note(self, Block* b) noexcept:
        """A block is in use."""
        cdef Block** head = self.place(b.address)
        b.next = head[0]
        head[0] = b
        self.nblocks += 1

    cdef Block* known(self, uint64_t address) noexcept:
        """The block in use of that address; NULL: there is none."""
        cdef Block* b = self.place(address)[0]
        while b != NULL and b.address != address:
            b = b.next
        return b

    cdef Block* forget(self, uint64_t address) noexcept:
        """Take the block of that address off those in use."""
        cdef Block** at = self.place(address)
        cdef Block* b
        while at[0] != NULL and at[0].address != address:
            at = &at[0].next
        b = at[0]
        if b != NULL:
            at[0] = b.next
            self.nblocks -= 1
        return b

    cdef void count(self, int what, bint small, int64_t by) noexcept:
        tally(self.stats[what][0], by)
        tally(self.stats[what][1 if small else 2], by)

    cdef void count_block(self, Block* b, int sign) noexcept:
        """Count a block as used (1) or no longer (-1)."""
        cdef bint small = b.pool.small
        self.count(ALLOCATION, small, sign)
        self.count(ALLOCATED, small, sign * b.size)
        self.count(REQUESTED, small, sign * b.requested)

    cdef void count_active(self, Block* b, int sign) noexcept:
        self.count(ACTIVE, b.pool.small, sign)
        self.count(ACTIVE_BYTES, b.pool.small, sign * b.size)

    cdef inline bint is_alone(self, int64_t owner) noexcept:
        """Whether each block is a segment."""
        return self.plain and owner == 0

    cdef void put(self, Block* b) noexcept:
        """Put a free block into its bin."""
        cdef int at = bin_of(b.size)
        cdef Block** head = &b.pool.bins[at]
        b.previous, b.next = NULL, head[0]
        if head[0] != NULL:
            head[0].previous = b
        head[0] = b
        b.pool.filled[at >> 6] |= <uint64_t>1 << (at & 63)
        if b.before != NULL or b.after != NULL:
            self.count(INACTIVE, b.pool.small, 1)
            self.count(INACTIVE_BYTES, b.pool.small, b.size)

    cdef void take(self, Block* b) noexcept:
        """Take a free block out of its bin."""
        cdef int at
        if b.previous != NULL:
            b.previous.next = b.next
        else:
            at = bin_of(b.size)
            b.pool.bins[at] = b.next
            if b.next == NULL:
                b.pool.filled[at >> 6] &= ~(<uint64_t>1 << (at & 63))
        if b.next != NULL:
            b.next.previous = b.previous
        if b.before != NULL or b.after != NULL:
            self.count(INACTIVE, b.pool.small, -1)
            self.count(INACTIVE_BYTES, b.pool.small, -b.size)

    cdef Pool* pool_of(self, void* stream, bint small, int64_t owner) except NULL:
        cdef Pool* pool = self.pools
        while pool != NULL:
            if pool.stream == stream and pool.small == small and pool.owner == owner:
                return pool
            pool = pool.next
        pool = <Pool*>calloc(1, sizeof(Pool))
        if pool == NULL:
            raise MemoryError
        pool.stream, pool.small, pool.owner, pool.next = stream, small, owner, self.pools
        self.pools = pool
        return pool

    cdef Block* find(self, Pool* pool, int64_t size) noexcept:
        """The smallest free block of the first bin that has one of at least ``size`` bytes."""
        cdef int first = bin_of(size), word
        cdef uint64_t bins
        cdef Block* b
        cdef Block* best = NULL
        for word in range(first >> 6, BIN_WORDS):
            bins = pool.filled[word]
            if word == first >> 6:
                bins &= ~<uint64_t>0 << (first & 63)
            while bins:
                b = pool.bins[64 * word + lowest_bit(bins)]
                while b != NULL:
                    if b.size >= size and (best == NULL or b.size < best.size):
                        best = b
                    b = b.next
                if best != NULL:
                    return best
                bins &= bins - 1
        return NULL

    cdef Block* segment(self, Pool* pool, int64_t size) except? NULL:
        """A block of new memory; NULL: there is none."""
        cdef int64_t nbytes = size
        cdef uint64_t address = 0
        cdef int result, mode
        cdef Block* b
        if not self.is_alone(pool.owner):
            if pool.small:
                nbytes = SMALL_SEGMENT
            elif size < LARGE:
                nbytes = LARGE_SEGMENT
            else:
                nbytes = (size + ROUND_LARGE - 1) // ROUND_LARGE * ROUND_LARGE
        if self.limit >= 0 and self.stats[RESERVED][0][0] + nbytes > self.limit:
            return NULL
        mode = exchange(2)  # RELAXED
        result = driver.allocate(&address, <size_t>nbytes)
        exchange(mode)
        if result == 2:  # CUDA_ERROR_OUT_OF_MEMORY
            return NULL
        if result:
            raise ERROR(result, "cuMemAlloc")
        b = <Block*>calloc(1, sizeof(Block))
        if b == NULL:
            raise MemoryError
        b.address, b.size, b.pool = address, nbytes, pool
        self.device_allocations += 1
        self.count(SEGMENT, pool.small, 1)
        self.count(RESERVED, pool.small, nbytes)
        return b

    cdef void* allocate(self, int64_t nbytes, void* stream) except? NULL:
        cdef bint alone = self.is_alone(current_owners[self.index])
        cdef int64_t size = nbytes if alone else max((nbytes + ROUND - 1) // ROUND * ROUND, <int64_t>ROUND)
        cdef Pool* pool = self.pool_of(stream, size <= SMALL, current_owners[self.index])
        cdef Block* b
        cdef Block* rest
        enter(self.index)
        if self.waiting and not capturing:
            self.collect(False)
        b = NULL if alone else self.find(pool, size)
        if b != NULL:
            self.take(b)
        else:
            b = self.segment(pool, max(size, <int64_t>1))
            if b == NULL and not capturing:
                self.retries += 1
                self.empty()
                b = self.segment(pool, max(size, <int64_t>1))
            if b == NULL:
                self.failures += 1
                raise OutOfMemoryError(EXPLAIN(self, nbytes))
        if not alone and b.size - size >= (ROUND if pool.small else SMALL + 1):
            rest = <Block*>calloc(1, sizeof(Block))
            if rest == NULL:
                raise MemoryError
            rest.address, rest.size, rest.pool, rest.before, rest.after = (
                b.address + <uint64_t>size, b.size - size, pool, b, b.after)
            if b.after != NULL:
                b.after.before = rest
            b.size, b.after = size, rest
            self.put(rest)
        b.used, b.requested = True, nbytes
        if self.nblocks >= self.places:
            self.more_places()
        self.note(b)
        self.count_block(b, 1)
        self.count_active(b, 1)
        return <void*>b.address

    cdef int release(self, void* data) except -1:
        cdef Block* b = self.forget(<uint64_t>data)
        if b == NULL:
            raise RuntimeError(f"device cuda:{self.index} has no memory at {<uintptr_t>data:#x}")
        self.count_block(b, -1)
        if self.held and <uintptr_t>data in self.held:
            self.limbo[<uintptr_t>data] = <uintptr_t>b
            return 0
        if capturing and (b.pool.owner != current_owners[self.index] or <uintptr_t>data in self.users):
            self.deferred.append((self.users.pop(<uintptr_t>data, ()), <uintptr_t>b))
            return 0
        if self.users:
            streams = self.users.pop(<uintptr_t>data, None)
            if streams:
                self.waiting.append(([self.events.record(self.index, s) for s in streams], <uintptr_t>b))
                return 0
        return self.give_back(b)

    cdef int give_back(self, Block* b) except -1:
        """A block is free: join it with its free neighbours."""
        cdef Block* other
        self.count_active(b, -1)
        if self.is_alone(b.pool.owner):
            return self.end_segment(b)
        b.used = False
        other = b.before
        if other != NULL and not other.used:
            self.take(other)
            other.size, other.after = other.size + b.size, b.after
            if b.after != NULL:
                b.after.before = other
            free(b)
            b = other
        other = b.after
        if other != NULL and not other.used:
            self.take(other)
            b.size, b.after = b.size + other.size, other.after
            if other.after != NULL:
                other.after.before = b
            free(other)
        self.put(b)
        return 0

    cdef int end_segment(self, Block* b) except -1:
        """Give the segment that a block is all of back to the driver."""
        cdef int result
        enter(self.index)
        if self.is_alone(b.pool.owner):
            driver.wait_stream(b.pool.stream)
        result = driver.release(b.address)
        self.device_releases += 1
        self.count(SEGMENT, b.pool.small, -1)
        self.count(RESERVED, b.pool.small, -b.size)
        free(b)
        if result:
            raise ERROR(result, "cuMemFree")
        return 0

    def collect(self, bint waits):
        """Take back the blocks that other streams have done with; all, if it ``waits``."""
        left = []
        for events, at in self.waiting:
            if waits:
                for event in events:
                    self.events.wait(event)
            events = [] if waits else [event for event in events if not self.events.is_done(event)]
            if events:
                left.append((events, at))
            else:
                self.give_back(<Block*><uintptr_t>at)
        self.waiting = left

    cdef int hold_blocks(self, Captured c) except -1:
        """A capture has ended: hold the blocks that it reads, and give back the others that were deferred."""
        cdef Block* b
        cdef int64_t i
        ends = {}
        for i in range(self.places):
            b = self.blocks[i]
            while b != NULL:
                if b.pool.owner != c.owner:
                    ends[b.address] = b.address + <uint64_t>b.size
                b = b.next
        for _, at in self.deferred:
            b = <Block*><uintptr_t>at
            if b.pool.owner != c.owner:
                ends[b.address] = b.address + <uint64_t>b.size
        starts = sorted(ends)
        own = set(c.own())
        for word in c.words:
            k = bisect.bisect_right(starts, word) - 1
            if k >= 0 and word < ends[starts[k]] and starts[k] not in own:
                c.held.append(starts[k])
        c.held[:] = set(c.held)
        for address in c.held:
            self.held[address] = self.held.get(address, 0) + 1
        deferred, self.deferred = self.deferred, []
        for streams, at in deferred:
            b = <Block*><uintptr_t>at
            if b.address in self.held:
                self.limbo[b.address] = at
            elif streams:
                self.waiting.append(([self.events.record(self.index, s) for s in streams], at))
            else:
                self.give_back(b)
        return 0

    def let_go(self, list addresses):
        """A graph is gone that read these blocks; its work, and all other, has ended."""
        for address in addresses:
            self.held[address] -= 1
            if not self.held[address]:
                del self.held[address]
                if address in self.limbo:
                    self.users.pop(address, None)
                    self.give_back(<Block*><uintptr_t>self.limbo.pop(address))

    def hold(self, int64_t owner, int by):
        """Keep the memory of an owner (1), or do so no longer (-1)."""
        count = self.holders.get(owner, 0) + by
        if count:
            self.holders[owner] = count
        else:
            self.holders.pop(owner, None)

    def holds_for(self, int64_t owner):
        """How many graphs and pools have the memory of an owner."""
        return self.holders.get(owner, 0)

    def empty(self):
        """Give all segments that nothing is in back to the driver, but for those of graphs."""
        cdef Pool* pool
        cdef Block* b
        cdef Block* following
        cdef int at
        if self.waiting:
            self.synchronisations += 1
            self.collect(True)
        pool = self.pools
        while pool != NULL:
            for at in range(0 if pool.owner in self.holders else NBINS):
                b = pool.bins[at]
                while b != NULL:
                    following = b.next
                    if b.before == NULL and b.after == NULL:
                        enter(self.index)
                        driver.wait_stream(pool.stream)
                        self.take(b)
                        self.end_segment(b)
                    b = following
            pool = pool.next

    def record_stream(self, uintptr_t address, uintptr_t stream):
        """A tensor is used on another stream: its memory is not used again before the work that is there now ends."""
        cdef Block* b = self.known(address)
        if b != NULL and <uintptr_t>b.pool.stream != stream:  # NULL: not from here
            self.users.setdefault(address, set()).add(stream)

    def holds(self, uintptr_t address):
        """Whether a tensor's memory begins there."""
        return self.known(address) != NULL

    def statistics(self):
        """``[statistic][all, small, large][current, peak, allocated, freed]``."""
        cdef int i, j, k
        return [[[self.stats[i][j][k] for k in range(4)] for j in range(3)] for i in range(NSTATS)]

    def reset_peaks(self):
        """Let each peak be what is in use now."""
        cdef int i, j
        for i in range(NSTATS):
            for j in range(3):
                self.stats[i][j][1] = self.stats[i][j][0]

    def reset_sums(self):
        """Forget what was allocated and freed so far."""
        cdef int i, j
        for i in range(NSTATS):
            for j in range(3):
                self.stats[i][j][2] = self.stats[i][j][3] = 0
        self.retries = self.failures = 0

    def snapshot(self):
        """The segments and their blocks: ``[(stream, owner, is small, [(address, size, requested, is used)])]``."""
        cdef Block* b
        cdef Pool* pool = self.pools
        cdef Block* first
        cdef int at
        cdef int64_t i
        firsts = {}
        for i in range(self.places):
            b = self.blocks[i]
            while b != NULL:
                first = b
                while first.before != NULL:
                    first = first.before
                firsts[first.address] = <uintptr_t>first
                b = b.next
        while pool != NULL:
            for at in range(NBINS):
                b = pool.bins[at]
                while b != NULL:
                    if b.before == NULL:
                        firsts[b.address] = <uintptr_t>b
                    b = b.next
            pool = pool.next
        segments = []
        for _, value in sorted(firsts.items()):
            b = <Block*><uintptr_t>value
            segment = (<uintptr_t>b.pool.stream, b.pool.owner, bool(b.pool.small), [])
            while b != NULL:
                segment[3].append((b.address, b.size, b.requested, bool(b.used)))
                b = b.after
            segments.append(segment)
        return segments


MEMORIES = []
cdef PyObject* memories[MOST_DEVICES]   # the same


cdef inline Memory memory_of(int index):
    return <Memory>memories[index]


def take_memory(int index, int64_t nbytes, uintptr_t stream):
    """Memory of a device for a stream; :func:`release_memory` gives it back."""
    return <uintptr_t>memory_of(index).allocate(nbytes, <void*>stream)


def release_memory(int index, uintptr_t address):
    """Give back what :func:`take_memory` gave."""
    memory_of(index).release(<void*>address)


cdef bint closing = False


def close():
    """The program ends: what is in use is left to the driver."""
    global closing
    closing = True


# ---- kernels ---------------------------------------------------------------------------------------------------------
# A kernel is a number of a device and a row of the table: an address that nothing else has. Its entries are made when
# it is launched, as they depend on how many pointers and numbers there are.

cdef enum:
    MOST_KERNELS = 1 << 16
    MOST_WORDS = 512           # of a launch: 4 KiB
    THREADS = 128              # of a block; _compile.py
    ROUND_WORDS = 16
    MOST_OPERANDS = 32         # of a pointwise kernel
    TOGETHER_FROM = 1 << 14    # elements from which a thread has several; below, a GPU has a thread for each
    MOST_LINES = 4000          # of a kernel's text, all elements of a thread together: what LLVM compiles in a second
    NEAR = 0x7FFFFFFF          # the largest offset that has 32 bits
    SIDE = 32                  # of a tile of a transposed copy; _compile.py
    MOST_SLOTS = 1 << 28       # bytes
    TILED_FROM = 16            # rows, columns and depth of products that are computed by tiles
    MANY_TILES = 128           # so many large ones keep a GPU busy
    FEW_NUMBERS = 1 << 14      # a product of so few leaves much of a GPU idle

cdef enum Schedule:
    IN_UNITS, IN_ELEMENTS, IN_TILES, IN_SLOTS, IN_PRODUCTS

SCHEDULES = ("units", "elements", "transpose", "slots", "product")   # their names in _compile.py

cdef struct Form:              # of a launch, which the entry of its kernel is made for; zeros: of units
    Schedule schedule
    int dims                   # of elements; of a transposed copy those outside of the matrix; of a product its bits
    int numbers                # of a pointwise kernel
    int together               # elements of a thread
    int narrow                 # offsets have 32 bits

cdef struct Entry:
    int pointers, words
    Form form
    void* inner
    void* function
    Entry* next

cdef struct Kernel:
    Entry* entries
    bint calls                 # another kernel, whose address is among its pointers or numbers
    int64_t threads            # that do one unit of its range together
    int64_t items[MOST_OPERANDS]   # of a pointwise kernel: bytes of an element of each dense operand, 0 for others
    int together               # how many elements a thread may have
    int64_t item               # of a kernel of transposed copies: bytes of an item
    int64_t unit_rows, unit_columns   # of its units; 0: all columns
    int64_t number             # of a kernel of products that may have tiles: bytes of a number

cdef Kernel table[MOST_KERNELS]
cdef int64_t nkernels = 0
cdef dict host_kernels = {}  # by (number, address): what launches of the core's functions run


def add_kernel(bint calls, int64_t threads, elements, transposes, int64_t lines, int64_t number):
    """A new kernel of so many lines: its address and its row.

    ``threads`` do each of its units. ``elements`` are the operands of a pointwise kernel: bytes of an element, of a
    part of it, layout. ``transposes`` are, of a kernel of transposed copies, bytes of an item, rows and columns of a
    unit. ``number``: bytes of a number of a kernel of products that may have tiles.
    """
    global nkernels
    cdef int i
    cdef int64_t widest = 0
    cdef Kernel* k = &table[nkernels]
    if nkernels == MOST_KERNELS:
        raise RuntimeError(f"there are {MOST_KERNELS} kernels, and no room for more")
    if len(elements) > MOST_OPERANDS:
        raise RuntimeError(f"a kernel has {len(elements)} operands, and at most {MOST_OPERANDS} may be")
    k.calls, k.threads, k.together = calls, threads, 1
    k.item, k.unit_rows, k.unit_columns = transposes or (0, 0, 0)
    k.number = number
    for i, (item, _, layout) in enumerate(elements):
        k.items[i] = item if layout == "c" else 0
        widest = max(widest, k.items[i])
    if widest and not any([layout == "v" for *_, layout in elements]):
        while 2 * k.together * widest <= 16 and 2 * k.together * lines <= MOST_LINES:
            k.together *= 2
    nkernels += 1
    return <uintptr_t>&table[nkernels - 1], nkernels - 1


cdef inline int64_t row_at(const void* address) noexcept:
    cdef uintptr_t at = <uintptr_t>address - <uintptr_t>&table[0]
    return <int64_t>(at // sizeof(Kernel)) if at < nkernels * sizeof(Kernel) else -1


cdef void* entry_of(Kernel* k, int nptr, char** ptr, int narg, const int64_t* arg, Form form) except NULL:
    """The function of the driver for a launch of a kernel."""
    cdef int words = (nptr + narg + ROUND_WORDS - 1) // ROUND_WORDS * ROUND_WORDS, i
    cdef void* inner = NULL
    cdef Entry* e = k.entries
    if k.calls:
        for i in range(nptr):
            if row_at(ptr[i]) >= 0:
                inner = ptr[i]
        for i in range(narg):
            if row_at(<void*>arg[i]) >= 0:
                inner = <void*>arg[i]
    while e != NULL:
        if e.pointers == nptr and e.words == words and e.inner == inner and not memcmp(&e.form, &form, sizeof(Form)):
            return e.function
        e = e.next
    function = BUILD(row_at(k), nptr, words, row_at(inner), SCHEDULES[form.schedule],
                     (form.dims, form.numbers, form.together, bool(form.narrow)))
    e = <Entry*>calloc(1, sizeof(Entry))
    if e == NULL:
        raise MemoryError
    e.pointers, e.words, e.form, e.inner, e.next = nptr, words, form, inner, k.entries
    e.function = <void*><uintptr_t>function
    k.entries = e
    return e.function


cdef int64_t launched = 0      # kernels


def count_launches():
    """How many kernels, and fills of memory, were launched so far."""
    return launched


cdef int start(int index, void* function, const void* words, int64_t first, int64_t total, int64_t threads,
               uint64_t slots, int64_t size) except -1:
    """Enqueue a kernel over ``[first, total)``, with ``threads`` for each unit."""
    global launched
    cdef int64_t blocks = ((total - first) * threads + THREADS - 1) // THREADS
    cdef void* parameters[5]
    cdef int result
    parameters[0], parameters[1], parameters[2] = <void*>words, &first, &total
    parameters[3], parameters[4] = &slots, &size
    if blocks >= 1 << 31:
        raise RuntimeError(f"a launch of {total * threads} threads is too large")
    result = driver.launch(function, <unsigned>blocks, 1, 1, THREADS, 1, 1, 0, current_streams[index], parameters, NULL)
    if result:
        raise ERROR(result, "cuLaunchKernel")
    launched += 1
    return 0


cdef void* prepare(int index, Kernel* k, uint64_t* words, char** ptr, int nptr, const int64_t* arg, int narg,
                   Form form) except NULL:
    """The entry of a kernel for a launch, and the words that it takes."""
    cdef void* function
    if nptr + narg > MOST_WORDS - ROUND_WORDS:
        raise RuntimeError(f"a launch with {nptr} pointers and {narg} numbers is too large for the driver")
    enter(index)
    function = entry_of(k, nptr, ptr, narg, arg, form)
    memcpy(words, ptr, nptr * sizeof(char*))
    memcpy(words + nptr, arg, narg * sizeof(int64_t))
    memset(words + nptr + narg, 0, ROUND_WORDS * 8)
    if capturing:
        note_words(index, words, nptr + narg)
    return function


cdef int enqueue(int index, Kernel* k, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total) except -1:
    """Launch a kernel over units."""
    cdef uint64_t words[MOST_WORDS]
    cdef void* function = prepare(index, k, words, ptr, nptr, arg, narg, PLAIN)
    return start(index, function, words, 0, total, k.threads, 0, 0)


cdef Form PLAIN                # zeros


cdef inline bint fit_together(Kernel* k, int together, char** ptr, int nptr, const int64_t* sizes,
                              const int64_t* strides, int nd) noexcept:
    """Whether so many neighbouring elements of each dense operand are one access everywhere."""
    cdef int i, d
    cdef int64_t nbytes
    if nd > 1 and sizes[nd - 1] % together:
        return False
    for i in range(nptr):
        nbytes = together * k.items[i]
        if nbytes:
            if <uintptr_t>ptr[i] % <uintptr_t>nbytes:
                return False
            for d in range(nd - 1):
                if strides[i * nd + d] % nbytes:
                    return False
    return True


cdef int launch_elements(int index, char** ptr, int nptr, const int64_t* arg, int narg) except -1:
    """``run_piece``: a pointwise kernel over elements of n dimensions, in one launch.

    Numbers: kernel, memory operands, dimensions, numbers of the kernel; sizes, strides of each operand, and its own.
    """
    cdef Kernel* k = <Kernel*>arg[0]
    cdef int i, d, nd = <int>arg[2]
    cdef const int64_t* sizes = arg + 4
    cdef const int64_t* strides = sizes + nd
    cdef int64_t total = 1, furthest, reach, step, whole
    cdef uint64_t words[MOST_WORDS]
    cdef void* function
    cdef Form form
    if row_at(k) < 0:
        raise RuntimeError(f"device cuda:{index} was given a kernel of another device")
    for d in range(nd):
        total *= sizes[d]
    furthest = total
    for i in range(nptr):
        reach = 0
        for d in range(nd):
            step = strides[i * nd + d]
            step = -step if step < 0 else step
            reach += (sizes[d] - 1) * step
            furthest = max(furthest, step)
        furthest = max(furthest, reach)
    form.schedule, form.dims, form.numbers, form.narrow, form.together = IN_ELEMENTS, nd, <int>arg[3], furthest <= NEAR, 1
    if total >= TOGETHER_FROM:
        form.together = k.together
        while form.together > 1 and not fit_together(k, form.together, ptr, nptr, sizes, strides, nd):
            form.together //= 2
    whole = total // form.together
    function = prepare(index, k, words, ptr, nptr, arg, narg, form)
    words[nptr] = <uint64_t>whole  # so many threads have several elements; in the place of the first number
    return start(index, function, words, 0, whole + total % form.together, k.threads, 0, 0)


cdef Kernel* item_kernels[MOST_DEVICES][17]    # by the device and the bytes of an item


cdef inline int put_dim(int64_t* dims, int n, int64_t size, int64_t to, int64_t source) noexcept:
    """Dimension ``n``: its size and its strides; gives how many there are then. One of one element is none."""
    if size <= 1:
        return n
    dims[3 * n], dims[3 * n + 1], dims[3 * n + 2] = size, to, source
    return n + 1


cdef int launch_transposed(int index, char** ptr, const int64_t* arg) except -1:
    """``transpose_piece``: a transposed copy by tiles. A few rows or columns side by side go item by item, in the order
    of the result.

    Numbers: ``TRANSPOSE_ARGS`` of ``kernels/copy.py``; kernel, its units, dimensions outside of it, of each its size and
    its strides.
    """
    cdef int64_t rows = arg[0], columns = arg[1], dst_row = arg[2], src_row = arg[3], b1 = arg[4], far = arg[9]
    cdef int64_t few = arg[10], units = arg[12], each, per_row, blocks, count, near
    cdef const int64_t* outer = arg + 14
    cdef Kernel* k = <Kernel*>arg[11]
    cdef int64_t dims[3 * (MAXDIM + 3)]        # innermost first
    cdef int64_t numbers[6 + 3 * (MAXDIM + 3)]
    cdef uint64_t words[MOST_WORDS]
    cdef void* function
    cdef int n = 0, d, j
    cdef Form form = PLAIN
    if row_at(k) < 0:
        raise RuntimeError(f"device cuda:{index} was given a kernel of another device")
    each = (rows + k.unit_rows - 1) // k.unit_rows
    if k.unit_columns:
        each *= (columns + k.unit_columns - 1) // k.unit_columns
    if few:
        count, near = few if few > 0 else -few, src_row if few > 0 else dst_row
        if few < 0:
            n = put_dim(dims, n, columns, k.item, src_row)
        # Those side by side: items, and the pixels of two rows where there are four of them.
        for j in range(2 if count == 4 else 1):
            if few > 0:
                n = put_dim(dims, n, 2 if count == 4 else count, k.item << j, far if j else near)
            else:
                n = put_dim(dims, n, 2 if count == 4 else count, far if j else near, k.item << j)
        if few > 0:
            n = put_dim(dims, n, rows, dst_row, k.item)
    n = put_dim(dims, n, b1, arg[6], arg[8])
    n = put_dim(dims, n, units // each // b1, arg[5], arg[7])
    for d in range(<int>arg[13] - 1, -1, -1):
        n = put_dim(dims, n, outer[3 * d], outer[3 * d + 1], outer[3 * d + 2])
    if few:
        if item_kernels[index][k.item] == NULL:
            item_kernels[index][k.item] = <Kernel*><uintptr_t>ITEM(k.item)
        numbers[0], numbers[1], numbers[2], numbers[3] = <int64_t>item_kernels[index][k.item], 2, n, 0
        for d in range(n):
            for j in range(3):
                numbers[4 + j * n + d] = dims[3 * (n - 1 - d) + j]
        return launch_elements(index, ptr, 2, numbers, 4 + 3 * n)
    per_row = (columns + SIDE - 1) // SIDE
    blocks = per_row * ((rows + SIDE - 1) // SIDE)
    numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5] = rows, columns, dst_row, src_row, per_row, blocks
    memcpy(numbers + 6, dims, 3 * n * sizeof(int64_t))
    for d in range(n):
        blocks *= dims[3 * d]
    form.schedule, form.dims = IN_TILES, n
    function = prepare(index, k, words, ptr, 2, numbers, 6 + 3 * n, form)
    return start(index, function, words, 0, blocks * THREADS, 1, 0, 0)


cdef inline bint is_wide(const char* p, int64_t size, int64_t along, int64_t line, int64_t outer, int64_t inner,
                         int64_t item) noexcept:
    """Whether lines of ``size`` numbers lie in memory so that each 16 bytes are one access."""
    return along == item and (size * item | <int64_t><uintptr_t>p | line | outer | inner) % 16 == 0


cdef object MULTIPLY = None    # multiply(index, row, batch, addresses, numbers) by a library: whether it did
cdef double MULTIPLY_FROM = 0  # for products of so many multiplications


def set_product(function, double least):
    """Set what computes products of at least so many multiplications, those of a batch together, by a library, if it
    can."""
    global MULTIPLY, MULTIPLY_FROM
    MULTIPLY, MULTIPLY_FROM = function, least


cdef dict part_kernels = {}    # (index, row): the kernel that adds the parts of its sums


cdef int launch_in_parts(int index, Kernel* k, char** ptr, const ProductArgs* whole) except -1:
    """The blocks of a product's sums at the same time, as products of their own; then they are added in their order."""
    cdef ProductArgs p = whole[0]
    cdef int64_t each = p.m * p.n * k.number, full = p.k // p.kc, blocks = (p.k + p.kc - 1) // p.kc
    cdef void* memory = memory_of(index).allocate(blocks * each, current_streams[index])
    cdef char* at[4]
    cdef uintptr_t kernel
    if (index, row_at(k)) not in part_kernels:
        part_kernels[index, row_at(k)] = PARTS(row_at(k))
    kernel = part_kernels[index, row_at(k)]
    at[0], at[1], at[2], at[3] = <char*>memory, ptr[1], ptr[2], <char*>memory
    p.init, p.n1, p.k, p.c_m, p.c_n = 0, full, p.kc, p.n * k.number, k.number
    p.a_b0 = p.b_b0 = p.c_b0 = p.d_b0 = p.d_b1 = p.d_m = p.d_n = 0
    p.a_b1, p.b_b1, p.c_b1 = p.kc * p.a_k, p.kc * p.b_k, each
    try:
        launch_own_product(index, k, at, 4, <int64_t*>&p, sizeof(p) // 8, full * p.m * p.n)
        if full < blocks:
            at[0], at[1], at[2] = at[0] + full * each, at[1] + full * p.a_b1, at[2] + full * p.b_b1
            p.n1, p.k = 1, whole.k - full * p.kc
            launch_own_product(index, k, at, 4, <int64_t*>&p, sizeof(p) // 8, p.m * p.n)
        at[0], at[1], at[2], at[3] = ptr[0], <char*>memory, <char*>memory, ptr[3]
        enqueue(index, <Kernel*>kernel, at, 4, <const int64_t*>whole, sizeof(p) // 8, p.m * p.n)
    finally:
        memory_of(index).release(memory)
    return 0


cdef int launch_product(int index, Kernel* k, char** ptr, int nptr, const int64_t* arg, int narg,
                        int64_t total) except -1:
    """``product_elements``: by a library if it can; else a product of few numbers in parts, where its sums are in
    blocks."""
    cdef const ProductArgs* p = <const ProductArgs*>arg
    cdef int i
    if (MULTIPLY is not None and <double>total * p.k >= MULTIPLY_FROM and min(p.m, p.n, p.k) >= TILED_FROM
            and MULTIPLY(index, row_at(k), total // (p.m * p.n), tuple([<uintptr_t>ptr[i] for i in range(4)]),
                         tuple([arg[i] for i in range(sizeof(p[0]) // 8)]))):
        return 0
    if p.kc < p.k and total == p.m * p.n and total <= FEW_NUMBERS and k.number > 2:
        return launch_in_parts(index, k, ptr, p)
    return launch_own_product(index, k, ptr, nptr, arg, narg, total)


cdef int launch_own_product(int index, Kernel* k, char** ptr, int nptr, const int64_t* arg, int narg,
                            int64_t total) except -1:
    """A product by tiles where it has the size for it, else a thread for each element.

    A result with contiguous columns is computed as the transposed product.
    """
    cdef ProductArgs p = (<const ProductArgs*>arg)[0]
    cdef ProductArgs q = p
    cdef char* at[4]
    cdef int64_t numbers[2 * ROUND_WORDS]      # those of the struct, and the two of tiles
    cdef uint64_t words[MOST_WORDS]
    cdef int64_t item = k.number, per = 16 // item, batch = 1, height, width, down, across
    cdef bint large = True, a_along_k, b_along_k, a_wide, b_wide, c_wide, several = p.kc < p.k
    cdef int addend = <int>p.init
    cdef void* function
    cdef Form form = PLAIN
    if min(p.m, p.n, p.k) < TILED_FROM or several and p.kc % (4 * per):
        return enqueue(index, k, ptr, nptr, arg, narg, total)
    batch = total // (p.m * p.n)
    at[0], at[1], at[2], at[3] = ptr[0], ptr[1], ptr[2], ptr[3]
    if p.c_n != item and p.c_m == item:
        at[1], at[2] = ptr[2], ptr[1]
        p.m, p.n, p.c_m, p.c_n, p.d_m, p.d_n = q.n, q.m, q.c_n, q.c_m, q.d_n, q.d_m
        p.a_m, p.a_k, p.a_b0, p.a_b1, p.b_n, p.b_k, p.b_b0, p.b_b1 = (
            q.b_n, q.b_k, q.b_b0, q.b_b1, q.a_m, q.a_k, q.a_b0, q.a_b1)
    a_along_k, b_along_k = p.a_k == item or p.a_m != item, p.b_k == item or p.b_n != item
    if a_along_k:
        a_wide = is_wide(at[1], p.k, p.a_k, p.a_m, p.a_b0, p.a_b1, item)
    else:
        a_wide = is_wide(at[1], p.m, p.a_m, p.a_k, p.a_b0, p.a_b1, item)
    if b_along_k:
        b_wide = is_wide(at[2], p.k, p.b_k, p.b_n, p.b_b0, p.b_b1, item)
    else:
        b_wide = is_wide(at[2], p.n, p.b_n, p.b_k, p.b_b0, p.b_b1, item)
    c_wide = is_wide(at[0], p.n, p.c_n, p.c_m, p.c_b0, p.c_b1, item)
    if p.init == 1 and is_wide(at[3], p.n, p.d_n, p.d_m, p.d_b0, p.d_b1, item):
        addend = 3
    # Tiles: 16 by 32 times as many numbers as have 16 bytes, or half as many of each where there is less to do.
    height = 16 * per if item > 2 else 64
    width = 2 * height
    if item < 8:
        down, across = (p.m + height - 1) // height, (p.n + width - 1) // width
        large = down * across * batch >= MANY_TILES and (not several or a_wide and b_wide)
    if not large:
        height, width = height // 2, width // 2
    down, across = (p.m + height - 1) // height, (p.n + width - 1) // width
    assert sizeof(p) // 8 + 2 <= 2 * ROUND_WORDS
    memcpy(numbers, &p, sizeof(p))
    numbers[sizeof(p) // 8], numbers[sizeof(p) // 8 + 1] = down, across
    form.schedule = IN_PRODUCTS
    form.dims = (a_along_k | a_wide << 1 | b_along_k << 2 | b_wide << 3 | c_wide << 4 | several << 5 | large << 6
                 | addend << 7)
    function = prepare(index, k, words, at, 4, numbers, <int>(sizeof(p) // 8 + 2), form)
    return start(index, function, words, 0, down * across * batch * THREADS, 1, 0, 0)


cdef int launch_in_slots(int index, char** ptr, const int64_t* arg, int narg, int64_t total) except -1:
    """``in_slot``: here each thread has memory of its own, for as many threads as that may take."""
    cdef Kernel* k = <Kernel*>ptr[0]
    cdef int64_t size = arg[1], at_once = max(min(total, MOST_SLOTS // max(size, <int64_t>1)), <int64_t>1), first
    cdef uint64_t words[MOST_WORDS]
    cdef void* memory
    cdef void* function
    cdef Form form = PLAIN
    if row_at(k) < 0:
        raise RuntimeError(f"device cuda:{index} was given a kernel of another device")
    form.schedule = IN_SLOTS
    function = prepare(index, k, words, ptr + 2, <int>arg[2], arg + 3, narg - 3, form)
    memory = memory_of(index).allocate(at_once * size, current_streams[index])
    try:
        fill_row(FIRST + index, memory, 0, at_once * size)  # as the stack of a thread: see _compile.py
        for first in range(0, total, at_once):
            start(index, function, words, first, min(first + at_once, total), 1, <uint64_t>memory, size)
    finally:
        memory_of(index).release(memory)
    return 0


cdef enum:                     # what a function of the core does that has no kernel
    _TRANSPOSES = 1, _SLOTS, _COPIES, _CLEARS, _PIECES

TRANSPOSES, SLOTS, COPIES, CLEARS, PIECES = _TRANSPOSES, _SLOTS, _COPIES, _CLEARS, _PIECES


cdef int launch_on_host(int number, kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg,
                       int64_t total) except -1:
    """A launch of a function of the core: of its kernel, or what else does the same."""
    global ELEMENTS
    cdef uintptr_t way
    cdef int index = number - FIRST
    cdef object made = host_kernels.get((number, <uintptr_t>fn))
    if made is None:
        made = host_kernels[number, <uintptr_t>fn] = HOST_FUNCTIONS(number, <uintptr_t>fn)
    way = made
    if way == _TRANSPOSES:
        launch_transposed(index, ptr, arg)
    elif way == _SLOTS:
        launch_in_slots(index, ptr, arg, narg, total)
    elif way == _COPIES:
        copy_row(number, ptr[0], ptr[1], total, WITHIN)
    elif way == _CLEARS:
        fill_row(number, ptr[0], 0, total)
    elif way == _PIECES:
        ELEMENTS = fn
        launch_elements(index, ptr, nptr, arg, narg)
    else:
        enqueue(index, <Kernel*>way, ptr, nptr, arg, narg, total)
    return 0


# ---- what launches find ----------------------------------------------------------------------------------------------
# A launch that may meet an index out of range is given two words on the device, zeros, and writes there what it finds.
# They are read when somebody waits for the device. What is remembered of each: the error, the op and the user's line.

cdef enum:
    REPORTS = 1024             # launches; when so many were not looked at, they are waited for
    GRAPH_REPORTS = 64         # launches whose words a graph has in one block of memory

cdef class Reports:
    """The reports of one device: a ring of words, and what is remembered of each launch that was given some."""

    cdef int index
    cdef uint64_t words                # address of the ring
    cdef uint64_t[REPORTS][2] copy     # what is read back
    cdef int64_t made, looked          # launches that were given words, and those that are known to be good
    cdef list launches                 # (error, op, file, line, stream); of a graph its reports in place of the error

    def __cinit__(self, int index):
        self.index, self.launches = index, [None] * REPORTS

    cdef int64_t remember(self, tuple launch) except -1:
        """The words in the ring for a launch on the current stream."""
        cdef int64_t at
        cdef int result
        if not self.words:
            enter(self.index)
            result = driver.allocate(&self.words, sizeof(self.copy))
            if result:
                raise ERROR(result, "cuMemAlloc")
            self.clear()
        if self.made - self.looked == REPORTS:
            try:
                self.wait_for_all()
            except (RuntimeError, IndexError) as earlier:  # of other calls: this one goes on, and raises it at its end
                fail(earlier)
        at = self.made % REPORTS
        self.launches[at] = (*launch, <uintptr_t>current_streams[self.index])
        self.made += 1
        return at

    cdef char* give(self, object error) except NULL:
        """Words for a launch on the current stream."""
        cdef int64_t at = self.remember((error, running_op(), *place_of_user()))
        return <char*>(self.words + <uint64_t>at * 16)

    cdef int note_graph(self, GraphReports graph) except -1:
        """A graph was launched on the current stream, whose launches have words."""
        cdef tuple last = self.launches[(self.made - 1) % REPORTS] if self.made != self.looked else None
        if last is None or last[0] is not graph or last[4] != <uintptr_t>current_streams[self.index]:
            self.remember((graph, None, None, 0))
        return 0

    cdef set graphs(self):
        """The reports of graphs that were launched and not looked at since."""
        cdef int64_t i
        launches = [self.launches[i % REPORTS] for i in range(self.looked, self.made)]
        return {part for launch in launches if isinstance(launch[0], GraphReports) for part in launch[0].parts()}

    cdef int clear(self) except -1:
        """All words are zeros, for whatever is launched from now on."""
        cdef int result = driver.fill(self.words, 0, sizeof(self.copy), NULL)
        for graph in self.graphs():
            (<GraphReports>graph).clear(NULL)
        if not result:
            result = driver.wait_stream(NULL)
        if result:
            raise ERROR(result, "cuMemset")
        return 0

    cdef int read(self, void* stream) except -1:
        """Enqueue the copy of what is there, behind the work of a stream."""
        cdef int64_t at = self.looked % REPORTS, n = self.made - self.looked
        cdef int64_t first = min(n, REPORTS - at)
        cdef int result = driver.to_host(&self.copy[at], self.words + <uint64_t>at * 16, <size_t>first * 16, stream)
        if not result and n > first:
            result = driver.to_host(&self.copy[0], self.words, <size_t>(n - first) * 16, stream)
        if result:
            raise ERROR(result, "cuMemcpy")
        for graph in self.graphs():
            (<GraphReports>graph).read(stream)
        return 0

    cdef object look(self, uintptr_t stream, bint all_ended):
        """The first error that was read back; launches that have ended without one are forgotten."""
        cdef int64_t i
        cdef uint64_t* found
        cdef bint ended = True
        for i in range(self.looked, self.made):
            launch, found = self.launches[i % REPORTS], self.copy[i % REPORTS]
            if isinstance(launch[0], GraphReports):
                failed = next(filter(None, [(<GraphReports>part).failed() for part in launch[0].parts()]), None)
            else:
                failed = (launch, <int64_t>found[0]) if found[0] or found[1] else None
            if failed is not None:
                return self.error_of(failed[0], failed[1])
            ended = ended and (all_ended or launch[4] == stream)
            if ended:
                self.looked = i + 1
                self.launches[i % REPORTS] = None
        return None

    cdef object error_of(self, tuple launch, int64_t value):
        """The error of a launch. The device goes on as if none had failed."""
        (kind, text), op, file, line = launch[:4]
        driver.wait_all()
        self.clear()
        self.looked = self.made
        text = text.format(value)
        if op is not None and "()" not in text:
            text = f"{op}(): {text}"
        return kind(text if file is None else f"{text}; called in {file}, line {line}")

    cdef int wait_for_all(self) except -1:
        """Wait for all streams, and raise what launches have found."""
        cdef int result = driver.wait_all()
        if result:
            raise ERROR(result, "cuCtxSynchronize")
        self.read(NULL)
        result = driver.wait_stream(NULL)
        if result:
            raise ERROR(result, "cuStreamSynchronize")
        error = self.look(0, True)
        if error is not None:
            raise error
        return 0


cdef class GraphReports:
    """The reports of a graph, which has words of its own: each of its launches uses them again."""

    cdef int index
    cdef readonly list words           # addresses, of words for GRAPH_REPORTS launches each
    cdef list copies                   # what is read back of each
    cdef list launches                 # (error, op, file, line)
    cdef readonly list inner           # the reports of graphs that are launched in this one

    def __cinit__(self, int index):
        self.index, self.words, self.copies, self.launches, self.inner = index, [], [], [], []

    def parts(self):
        """These, and those of graphs that are launched in this one."""
        return [self, *self.inner]

    cdef char* give(self, Captured graph, object error) except NULL:
        """Words for a launch that is captured."""
        cdef int64_t at = len(self.launches) % GRAPH_REPORTS
        cdef uintptr_t words
        if at == 0:
            self.words.append(<uintptr_t>graph.memory(GRAPH_REPORTS * 16))
            self.copies.append(bytearray(GRAPH_REPORTS * 16))
        self.launches.append((error, running_op(), *place_of_user()))
        words = self.words[len(self.words) - 1]
        return <char*>(words + <uintptr_t>at * 16)

    cdef int clear(self, void* stream) except -1:
        """All words are zeros, behind the work of a stream."""
        cdef int result
        for address in self.words:
            result = driver.fill(<uint64_t>address, 0, GRAPH_REPORTS * 16, stream)
            if result:
                raise ERROR(result, "cuMemset")
        return 0

    cdef int read(self, void* stream) except -1:
        """Enqueue the copy of what is there, behind the work of a stream."""
        cdef int result
        for address, copy in zip(self.words, self.copies):
            result = driver.to_host(<char*>copy, <uint64_t>address, GRAPH_REPORTS * 16, stream)
            if result:
                raise ERROR(result, "cuMemcpy")
        return 0

    cdef object failed(self):
        """The first launch that has found something, and its first word."""
        for copy, first in zip(self.copies, range(0, len(self.launches), GRAPH_REPORTS)):
            if any(copy):
                found = memoryview(copy).cast("q")
                at = next(i for i in range(GRAPH_REPORTS) if found[2 * i] or found[2 * i + 1])
                return self.launches[first + at], found[2 * at]
        return None


cdef list reports = []


cdef tuple place_of_user():
    """File and line of the innermost function that is not taeda's."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name != "taeda" and not name.startswith("taeda."):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None, 0


cdef char* report_row(int number, PyObject* error) noexcept:
    cdef Captured captured
    try:
        if capturing:
            captured = <Captured>captures[threading.get_ident()]
            return captured.reports.give(captured, <object>error)
        return (<Reports>reports[number - FIRST]).give(<object>error)
    except BaseException as failed:
        fail(failed)
        return NULL


cdef int wait(int index, void* stream) except -1:
    """Wait for a stream, and raise what its launches have found."""
    cdef Reports found = <Reports>reports[index]
    cdef bint any_made = found.made != found.looked
    cdef int result
    if any_made:
        found.read(stream)
    result = driver.wait_stream(stream)
    if result:
        raise ERROR(result, "cuStreamSynchronize")
    if any_made:
        error = found.look(<uintptr_t>stream, False)
        if error is not None:
            raise error
    return 0


def wait_for(int index, uintptr_t stream):
    """Wait for a stream of a device, and raise what its launches have found."""
    enter(index)
    wait(index, <void*>stream)


def wait_for_device(int index):
    """Wait for all work of a device, and raise what its launches have found."""
    cdef Reports found = <Reports>reports[index]
    cdef int result
    enter(index)
    if found.made != found.looked:
        found.wait_for_all()
    result = driver.wait_all()
    if result:
        raise ERROR(result, "cuCtxSynchronize")


def note_launch(Captured captured, graph):
    """``graph`` was launched on the current stream: the next wait looks at what its launches have found."""
    cdef int index = captured.index
    cdef Captured outer = captures.get(threading.get_ident()) if capturing else None
    if outer is not None:
        outer.reports.inner.extend(captured.reports.parts())
        outer.graphs.append(graph)
        return
    if any([part.words for part in captured.reports.parts()]):
        (<Reports>reports[index]).note_graph(captured.reports)
        end_call()
    if BLOCKING:
        wait(index, current_streams[index])


def clear_reports(Captured captured):
    """The launches of a graph have found nothing, from the current stream's work on."""
    captured.reports.clear(current_streams[captured.index])


def end_reports(Captured captured):
    """A graph is gone, whose work has ended; gives the memory that it had for itself."""
    own = captured.own()
    if captured.reports in (<Reports>reports[captured.index]).graphs():
        captured.reports.read(NULL)
        driver.wait_stream(NULL)
    captured.reports.words.clear()
    return own


def look(int index):
    """Raise what launches have found that have ended: somebody has waited for an event."""
    if (<Reports>reports[index]).made != (<Reports>reports[index]).looked:
        enter(index)
        wait(index, NULL)


# ---- the contract ----------------------------------------------------------------------------------------------------

cdef void* allocate_row(int number, int64_t nbytes) noexcept:
    try:
        return memory_of(number - FIRST).allocate(nbytes, current_streams[number - FIRST])
    except BaseException as error:
        fail(error)
        return NULL


cdef void release_row(int number, void* data, int64_t nbytes) noexcept:
    if closing or forked:
        return
    try:
        memory_of(number - FIRST).release(data)
    except BaseException as error:
        fail(error)


cdef void launch_row(int number, kernel_t kernel, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total,
                     int64_t grain) noexcept:
    try:
        if row_at(<void*>kernel) >= 0 and (<Kernel*>kernel).number:
            launch_product(number - FIRST, <Kernel*>kernel, ptr, nptr, arg, narg, total)
        elif row_at(<void*>kernel) >= 0:
            enqueue(number - FIRST, <Kernel*>kernel, ptr, nptr, arg, narg, total)
        elif kernel == ELEMENTS:
            launch_elements(number - FIRST, ptr, nptr, arg, narg)
        else:
            launch_on_host(number, kernel, ptr, nptr, arg, narg, total)
        if BLOCKING and not capturing:
            synchronise_row(number)
    except BaseException as error:
        fail(error)


cdef void copy_row(int number, void* to, const void* source, int64_t nbytes, Way way) noexcept:
    cdef int result, index = number - FIRST
    cdef void* stream = current_streams[index]
    cdef bint ends = way == TO_HOST
    cdef void* between
    if nbytes <= 0:
        return
    try:
        enter(index)
        if capturing:
            note_words(index, &to, 1)
            if way == FROM_TABLE:
                source, way = (<Captured>captures[threading.get_ident()]).table(source, nbytes), WITHIN
            elif way != WITHIN and not (waits_not and is_pinned(<uintptr_t>(to if way == TO_HOST else source))):
                raise RuntimeError(NO_COPY.format("to" if way == TO_HOST else "from"))
            note_words(index, &source, 1)
        if way == WITHIN:
            if <const char*>to < <const char*>source + nbytes and <const char*>source < <const char*>to + nbytes:
                between = memory_of(index).allocate(nbytes, stream)
                result = driver.within(<uint64_t>between, <uint64_t>source, <size_t>nbytes, stream)
                if not result:
                    result = driver.within(<uint64_t>to, <uint64_t>between, <size_t>nbytes, stream)
                memory_of(index).release(between)
            else:
                result = driver.within(<uint64_t>to, <uint64_t>source, <size_t>nbytes, stream)
        elif way != TO_HOST:
            # From pageable memory the driver has read all when it returns; pinned memory it reads later.
            ends = is_pinned(<uintptr_t>source)
            result = driver.to_device(<uint64_t>to, source, <size_t>nbytes, stream)
        else:
            result = driver.to_host(to, <uint64_t>source, <size_t>nbytes, stream)
        if result:
            raise ERROR(result, "cuMemcpy")
        if ends and not (waits_not and is_pinned(<uintptr_t>(to if way == TO_HOST else source))):
            wait(index, stream)
    except BaseException as error:
        fail(error)


NO_COPY = (
    "a copy {} the CPU cannot be captured into a CUDA graph, as it is waited for. Copy before or after the capture, or "
    "from or to pinned memory with non_blocking=True. item(), printing, `if`, ops whose result has a size that depends "
    "on values and ops that run at the CPU make such copies, too")


def send_bytes(int index, uintptr_t to, content):
    """Copy bytes to a device, after its current stream's work; they may change when this returns."""
    cdef const unsigned char[::1] view = content
    enter(index)
    cdef int result = driver.to_device(to, &view[0], len(view), current_streams[index])
    if result:
        raise ERROR(result, "cuMemcpyHtoD")


cdef void fill_row(int number, void* to, int value, int64_t nbytes) noexcept:
    global launched
    cdef int result
    if nbytes <= 0:
        return
    try:
        enter(number - FIRST)
        if capturing:
            note_words(number - FIRST, &to, 1)
        result = driver.fill(<uint64_t>to, <unsigned char>value, <size_t>nbytes, current_streams[number - FIRST])
        if result:
            raise ERROR(result, "cuMemset")
        launched += 1
    except BaseException as error:
        fail(error)


cdef void synchronise_row(int number) noexcept:
    try:
        enter(number - FIRST)
        wait(number - FIRST, current_streams[number - FIRST])
    except BaseException as error:
        fail(error)


cdef bint BLOCKING = False


def take_devices(int first, list made, bint blocking):
    """Let the devices from that number on run by what is here; ``made`` are their contexts."""
    global FIRST, BLOCKING
    cdef int i
    FIRST, BLOCKING = first, blocking
    for i, context in enumerate(made):
        contexts[i] = <void*><uintptr_t>context
        MEMORIES.append(Memory(i))
        memories[i] = <PyObject*>MEMORIES[i]
        reports.append(Reports(i))
        devices[first + i] = Device(allocate_row, release_row, launch_row, copy_row, fill_row, synchronise_row, True)
        behind[first + i] = Behind(report_row, stream_row, swap_stream_row, join_row, keep_row)


# ---- pinned memory ---------------------------------------------------------------------------------------------------

cdef list pinned = []          # (begin, end) of memory of the host that the driver copies from directly
cdef object pinned_lock = threading.Lock()


def add_pinned(uintptr_t address, int64_t nbytes):
    """Remember memory of the host as pinned."""
    with pinned_lock:
        pinned.append((address, address + nbytes))


def remove_pinned(uintptr_t address, int64_t nbytes):
    """Forget pinned memory."""
    with pinned_lock:
        pinned.remove((address, address + nbytes))


def is_pinned_at(uintptr_t address):
    """Whether that memory of the host is pinned."""
    return is_pinned(address)


cdef bint is_pinned(uintptr_t address) except -1:
    return bool(pinned) and any([begin <= address < end for begin, end in pinned])
