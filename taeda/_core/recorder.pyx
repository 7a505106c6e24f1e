"""Records of the launches of a thread that plans or is observed, and of their memory.

A thread that plans (its place is device meta) runs the body of an op on device meta: storages are addresses without
contents, and `pool.launch` runs nothing. With a recorder it keeps each launch as it was meant: kernel, pointers,
arguments, range.
`plan.Plan` turns addresses into blocks and offsets, and repeats the launches on other memory.

A block is kept until the recording ends, so that an address belongs to one block. It is filled with a pattern. Where
that was disturbed, the body wrote to memory outside of a launch, and cannot be repeated.

A thread that is observed computes as always, and each launch is kept as well. Its blocks are real ones, whose addresses
come again: a block is known by its address and the launches between which it was in use. It is also filled with a
pattern. Any other contents that it has before its first launch were written by the op's body, and the recorder keeps a
copy of them.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #if defined(_WIN32)
      #include <windows.h>
      static void* taeda_reserve(int64_t n) {
          return VirtualAlloc(NULL, (size_t)n, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
      }
      static void taeda_unreserve(void* p, int64_t n) { (void)n; VirtualFree(p, 0, MEM_RELEASE); }
      static int taeda_resident(const char* p, int64_t n) {
          int64_t i;
          for (i = 0; i < n; i += 8) if (*(const int64_t*)(p + i / 8 * 8)) return 1;
          return 0;
      }
      static void* taeda_lines(int64_t n) { return _aligned_malloc((size_t)n, 64); }
      static void taeda_free_lines(void* p) { _aligned_free(p); }
    #else
      #include <sys/mman.h>
      #include <unistd.h>
      #ifndef MAP_NORESERVE
        #define MAP_NORESERVE 0
      #endif
      /* Where blocks are that are too large to be mapped (a process has 2^47 bytes of addresses, or what its limit
         leaves): nobody reads them. */
      #define TAEDA_NOWHERE ((uint64_t)1 << 61)
      #define TAEDA_HUGE ((int64_t)1 << 26)
      static void* taeda_reserve(int64_t n) {
          static uint64_t given = 0;
          void* p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
          if (p != MAP_FAILED) return p;
          if (n < TAEDA_HUGE) return NULL;
          return (void*)(TAEDA_NOWHERE + __sync_fetch_and_add(&given, ((uint64_t)n + 64) / 64 * 64) % TAEDA_NOWHERE);
      }
      static void taeda_unreserve(void* p, int64_t n) { if ((uint64_t)p < TAEDA_NOWHERE) munmap(p, (size_t)n); }
      /* whether the system has given any page of the block: it does at the first access */
      static int taeda_resident(const char* p, int64_t n) {
          enum { SOME = 4096 };
          unsigned char state[SOME];
          int64_t page = (int64_t)sysconf(_SC_PAGESIZE), step = page * SOME, at, i, now;
          if ((uint64_t)p >= TAEDA_NOWHERE) return 0;
          for (at = 0; at < n; at += step) {
              now = n - at < step ? n - at : step;
              if (mincore((void*)(p + at), (size_t)now, (void*)state)) return 1;
              for (i = 0; i < (now + page - 1) / page; i++) if (state[i] & 1) return 1;
          }
          return 0;
      }
      static void* taeda_lines(int64_t n) { void* p; return posix_memalign(&p, 64, (size_t)n) ? NULL : p; }
      static void taeda_free_lines(void* p) { free(p); }
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
      static __declspec(thread) void* taeda_recorder = 0;
    #else
      static __thread void* taeda_recorder = 0;
    #endif
    """
    void* mine "taeda_recorder"         # this thread's Recorder
    void* taeda_reserve(int64_t nbytes) noexcept nogil
    void taeda_unreserve(void* p, int64_t nbytes) noexcept nogil
    bint taeda_resident(const char* p, int64_t nbytes) noexcept nogil
    void* taeda_lines(int64_t nbytes) noexcept nogil
    void taeda_free_lines(void* p) noexcept nogil

cdef enum:
    RESERVED = 1 << 16   # bytes, from which on a block is asked of the system, which backs it only where it is used
    PATTERN = 0xA5


cdef Recorder* current() noexcept nogil:
    return <Recorder*>mine


cdef Recorder* begin_recording(bint observing=False) except NULL:
    global mine
    cdef Recorder* recorder = <Recorder*>malloc(sizeof(Recorder))
    if mine != NULL or recorder == NULL:
        free(recorder)
        raise RuntimeError("a recording is under way on this thread") if mine != NULL else MemoryError()
    memset(recorder, 0, sizeof(Recorder))
    recorder.observing = observing
    if observing:
        calls = []
        Py_INCREF(calls)
        recorder.calls = <PyObject*>calls
    mine = recorder
    return recorder


cdef void end_recording() noexcept:
    global mine
    mine = NULL


cdef Recorder* suspend() noexcept nogil:
    global mine
    cdef Recorder* recorder = <Recorder*>mine
    mine = NULL
    return recorder


cdef void resume(Recorder* recorder) noexcept nogil:
    global mine
    mine = recorder


cpdef bint is_observing() noexcept nogil:
    """Whether this thread is observed."""
    return mine != NULL and (<Recorder*>mine).observing


cdef bint is_dry() noexcept nogil:
    return mine != NULL and (<Recorder*>mine).dry


cdef void free_recorder(Recorder* recorder) noexcept:
    """Free the blocks that were given up in the meantime; the others belong to their storages."""
    cdef int64_t i
    if recorder.calls != NULL:
        Py_DECREF(<object>recorder.calls)
    if recorder.place != NULL:
        Py_DECREF(<object>recorder.place)
    for i in range(recorder.nblocks):
        free(recorder.blocks[i].content)
        free(recorder.blocks[i].found)
        if recorder.observing and recorder.blocks[i].purpose != HELD:
            continue
        if recorder.blocks[i].purpose == HELD:
            Py_DECREF(<object>recorder.blocks[i].owner)
        elif recorder.blocks[i].purpose != FLAG and recorder.blocks[i].gone >= 0:
            give_back(recorder.blocks[i].data, recorder.blocks[i].nbytes)
    free(recorder.blocks)
    free(recorder.steps)
    free(recorder.pointers)
    free(recorder.found)
    free(recorder.numbers)
    free(recorder.live)
    free(recorder.own)
    free(recorder)


cdef bint grow(void** items, int64_t* room, int64_t wanted, int64_t item) noexcept nogil:
    """Make room for ``wanted`` items; whether there is."""
    cdef int64_t size = room[0]
    cdef void* larger
    if wanted <= size:
        return True
    size = max(wanted, 2 * size, <int64_t>16)
    larger = realloc(items[0], <size_t>(size * item))
    if larger == NULL:
        return False
    items[0], room[0] = larger, size
    return True


cdef void refuse_recording(const char* why) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    if r != NULL and r.refused == NULL:
        r.refused = why
        if r.observing:
            tell_place(r)


cdef object PLACE = None


def on_refusal(function):
    """Call ``function()``, which describes the place, whenever an observed thread's work cannot be repeated."""
    global PLACE
    PLACE = function


cdef void tell_place(Recorder* r) noexcept with gil:
    cdef Recorder* here = suspend()
    try:
        if PLACE is not None:
            place = PLACE()
            Py_INCREF(place)
            r.place = <PyObject*>place
    finally:
        resume(here)


cdef int note_call(object thing, char* address=NULL) except -1:
    cdef Recorder* r = <Recorder*>mine
    cdef int64_t number
    if r == NULL or r.refused != NULL:
        return 0
    number = len(<list>r.calls)
    (<list>r.calls).append(thing)
    note_launch(NULL, &address, address != NULL, &number, 1, 1, 1, True, False)
    return 0


cdef void note_launch(void* kernel, char** pointers, int64_t npointers, const int64_t* numbers, int64_t nnumbers,
                      int64_t total, int64_t grain, bint small, bint planned) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    cdef Step* step
    cdef int64_t i
    if r == NULL or r.refused != NULL or r.observing == planned:
        return
    if not (grow(<void**>&r.found, &r.room_found, r.npointers + npointers, sizeof(int64_t))
            and grow(<void**>&r.steps, &r.room_steps, r.nsteps + 1, sizeof(Step))
            and grow(<void**>&r.pointers, &r.room_pointers, r.npointers + npointers, sizeof(char*))
            and grow(<void**>&r.numbers, &r.room_numbers, r.nnumbers + nnumbers, sizeof(int64_t))):
        r.refused = b"out of memory"
        return
    step = &r.steps[r.nsteps]
    step.kernel, step.total, step.grain, step.small = kernel, total, grain, small
    step.pointers, step.npointers, step.numbers, step.nnumbers = r.npointers, npointers, r.nnumbers, nnumbers
    for i in range(npointers):
        r.pointers[r.npointers + i] = pointers[i]
        r.found[r.npointers + i] = use_block(r, pointers[i]) if pointers[i] != NULL else -1
    if nnumbers:
        memcpy(r.numbers + r.nnumbers, numbers, nnumbers * sizeof(int64_t))
    r.nsteps += 1
    r.npointers += npointers
    r.nnumbers += nnumbers


cdef void note_block(Recorder* r, void* data, int64_t nbytes, Purpose purpose) noexcept nogil:
    cdef Block* block
    if not grow(<void**>&r.blocks, &r.room_blocks, r.nblocks + 1, sizeof(Block)):
        r.refused = b"out of memory"
        return
    block = &r.blocks[r.nblocks]
    block.data, block.nbytes, block.made, block.gone, block.purpose = <char*>data, nbytes, r.nsteps, -1, purpose
    block.owner = NULL
    block.used, block.prepared, block.content, block.found, block.width = False, False, NULL, NULL, 0
    r.nblocks += 1
    if purpose == FLAG or purpose == TABLE:
        if grow(<void**>&r.own, &r.room_own, r.nown + 1, sizeof(int64_t)):
            r.own[r.nown] = r.nblocks - 1
            r.nown += 1
        else:
            r.refused = b"out of memory"
    else:
        add_live(r, r.nblocks - 1)


cdef int64_t last_live(const Recorder* r, const char* address) noexcept nogil:
    """The place among the blocks in use of the last one that begins at ``address`` or before; -1 for none."""
    cdef int64_t low = 0, high = r.nlive, middle
    while low < high:
        middle = (low + high) // 2
        if r.blocks[r.live[middle]].data <= address:
            low = middle + 1
        else:
            high = middle
    return low - 1


cdef void add_live(Recorder* r, int64_t number) noexcept nogil:
    cdef int64_t place = last_live(r, r.blocks[number].data)
    if place >= 0 and r.blocks[r.live[place]].data == r.blocks[number].data:
        r.blocks[r.live[place]].gone = r.nsteps   # another thread has released it
        r.live[place] = number
        return
    if not grow(<void**>&r.live, &r.room_live, r.nlive + 1, sizeof(int64_t)):
        r.refused = b"out of memory"
        return
    place += 1
    memmove(r.live + place + 1, r.live + place, <size_t>(r.nlive - place) * sizeof(int64_t))
    r.live[place] = number
    r.nlive += 1


cdef bint end_live(Recorder* r, const char* data) noexcept nogil:
    """Say that the block at ``data`` is given up; whether there was one."""
    cdef int64_t place = last_live(r, data)
    if place < 0 or r.blocks[r.live[place]].data != data:
        return False
    r.blocks[r.live[place]].gone = r.nsteps
    r.nlive -= 1
    memmove(r.live + place, r.live + place + 1, <size_t>(r.nlive - place) * sizeof(int64_t))
    return True


cdef int64_t find_block(const Recorder* r, const char* address) noexcept nogil:
    cdef int64_t place = last_live(r, address)
    if place >= 0:
        if address < r.blocks[r.live[place]].data + max(r.blocks[r.live[place]].nbytes, <int64_t>1):
            return r.live[place]
    return -1


cdef void note_allocated(void* data, int64_t nbytes) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    if r != NULL and r.observing and r.refused == NULL and data != NULL:
        memset(data, PATTERN, <size_t>nbytes)
        note_block(r, data, nbytes, MEMORY)


cdef void note_released(void* data) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    if r != NULL and r.observing:
        end_live(r, <char*>data)


cdef void note_table(const void* data, int64_t rows, int64_t width, int64_t naddresses) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    if r == NULL:
        return
    if not r.observing:
        refuse_recording(b"a table of addresses is filled")
    elif r.refused == NULL:
        note_block(r, <void*>data, rows * width * 8, TABLE)
        if r.refused == NULL:
            r.blocks[r.nblocks - 1].width, r.blocks[r.nblocks - 1].naddresses = width, naddresses


cdef int64_t use_block(Recorder* r, char* address) noexcept nogil:
    """The number of the block that the next launch is given by ``address``; -1 for none.

    For one launch, a flag is on the stack of the caller, and a table has memory of its own. If no launch was given an
    observed thread's block yet, its content is kept.
    """
    cdef int64_t found = -1, i, row, k
    cdef Block* block
    for i in range(r.nown - 1, -1, -1):
        if r.blocks[r.own[i]].data == address:
            found = r.own[i]
            r.nown -= 1
            memmove(r.own + i, r.own + i + 1, <size_t>(r.nown - i) * sizeof(int64_t))
            break
    if found < 0:
        found = find_block(r, address)
    if found < 0 or r.blocks[found].used:
        return found
    block = &r.blocks[found]
    block.used = True
    if not r.observing or block.purpose == HELD or block.purpose == FLAG:
        return found
    if block.purpose == MEMORY and is_pattern(block.data, block.nbytes):
        return found
    block.content = <char*>malloc(<size_t>block.nbytes + 1)
    if block.purpose == TABLE:
        block.found = <int64_t*>malloc(<size_t>block.nbytes + 1)
    if block.content == NULL or block.purpose == TABLE and block.found == NULL:
        r.refused = b"out of memory"
        return found
    memcpy(block.content, block.data, <size_t>block.nbytes)
    if block.purpose == MEMORY:
        block.purpose = NUMBERS
        return found
    for row in range(block.nbytes // 8 // block.width):
        for k in range(block.naddresses):
            i = row * block.width + k
            address = (<char**>block.content)[i]
            block.found[i] = use_block(r, address) if address != NULL else -1
    return found


cdef void note_flag(void* data, int64_t nbytes) noexcept nogil:
    if mine != NULL:
        note_block(<Recorder*>mine, data, nbytes, FLAG)


cdef void note_held(object storage, char* data, int64_t nbytes) noexcept:
    cdef Recorder* r = <Recorder*>mine
    cdef int64_t i
    if r == NULL or nbytes == 0 or r.observing and type(storage) is not bytes:
        return
    for i in range(r.nblocks):
        if r.blocks[i].purpose == HELD and r.blocks[i].owner == <PyObject*>storage:
            return
    note_block(r, data, nbytes, HELD)
    if r.refused == NULL:
        Py_INCREF(storage)
        r.blocks[r.nblocks - 1].owner = <PyObject*>storage
        r.blocks[r.nblocks - 1].made = 0


cdef void note_filled(const void* data, Purpose purpose) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    cdef int64_t i
    if r != NULL and not r.observing:   # an observed thread keeps what the block holds
        for i in range(r.nblocks):
            if r.blocks[i].data == data and r.blocks[i].purpose == MEMORY and r.blocks[i].gone < 0:
                r.blocks[i].purpose = purpose


cdef void note_prepared(const void* data) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    cdef int64_t found = find_block(r, <const char*>data) if r != NULL else -1
    if found >= 0 and r.blocks[found].data == data:
        r.blocks[found].prepared = True


# ---- memory of device meta -------------------------------------------------------------------------------------------

cdef void give_back(void* data, int64_t nbytes) noexcept nogil:
    if nbytes >= RESERVED:
        taeda_unreserve(data, nbytes)
    else:
        taeda_free_lines(data)


cdef Recorder* keeper_of_plans() noexcept nogil:
    """This thread's recorder, if it keeps planned launches."""
    return NULL if is_observing() else <Recorder*>mine


cdef void* allocate_planned(int64_t nbytes) noexcept nogil:
    cdef Recorder* r = keeper_of_plans()
    cdef void* data
    if nbytes < 0 or nbytes > <int64_t>1 << 60:
        return NULL
    if nbytes >= RESERVED:
        data = taeda_reserve(nbytes)
    else:
        data = taeda_lines((nbytes + 64) & -64)
        if data != NULL:
            memset(data, PATTERN if r != NULL else 0, <size_t>((nbytes + 64) & -64))
    if r != NULL and data != NULL:
        note_block(r, data, nbytes, MEMORY)
    return data


cdef void release_planned(void* data, int64_t nbytes) noexcept nogil:
    cdef Recorder* r = keeper_of_plans()
    if r != NULL and end_live(r, <char*>data):
        return
    give_back(data, nbytes)


cdef bint is_touched(const Block* block) noexcept nogil:
    if block.purpose != MEMORY:
        return False
    if block.nbytes >= RESERVED:
        return taeda_resident(block.data, block.nbytes)
    return not is_pattern(block.data, (block.nbytes + 64) & -64)


cdef bint is_pattern(const char* data, int64_t nbytes) noexcept nogil:
    return nbytes <= 0 or <unsigned char>data[0] == PATTERN and memcmp(data, data + 1, <size_t>(nbytes - 1)) == 0
