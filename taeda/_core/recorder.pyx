"""What a thread that plans would have run: its launches, in order, and the memory that they read and write.

A thread that plans (`memory.plan_only`) runs the body of an op on device meta: storages are addresses without
contents, and `pool.launch` runs nothing. With a recorder it keeps each launch as it was meant: kernel, pointers,
arguments, range.
`plan.Plan` turns addresses into blocks and offsets, and repeats the launches on other memory.

A block is kept until the recording ends, so that an address belongs to one block. It is filled with a pattern. Where
that was disturbed, the body wrote to memory outside of a launch, and cannot be repeated.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

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
      static void* taeda_reserve(int64_t n) {
          void* p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
          return p == MAP_FAILED ? NULL : p;
      }
      static void taeda_unreserve(void* p, int64_t n) { munmap(p, (size_t)n); }
      /* whether the system has given any page of the block: it does at the first access */
      static int taeda_resident(const char* p, int64_t n) {
          enum { SOME = 4096 };
          unsigned char state[SOME];
          int64_t page = (int64_t)sysconf(_SC_PAGESIZE), step = page * SOME, at, i, now;
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


cdef Recorder* begin_recording() except NULL:
    global mine
    cdef Recorder* recorder = <Recorder*>malloc(sizeof(Recorder))
    if mine != NULL or recorder == NULL:
        free(recorder)
        raise RuntimeError("a recording is under way on this thread") if mine != NULL else MemoryError()
    memset(recorder, 0, sizeof(Recorder))
    mine = recorder
    return recorder


cdef void end_recording() noexcept:
    global mine
    mine = NULL


cdef void free_recorder(Recorder* recorder) noexcept:
    """Blocks that were given up meanwhile go now; the others belong to their storages."""
    cdef int64_t i
    for i in range(recorder.nblocks):
        if recorder.blocks[i].purpose == HELD:
            Py_DECREF(<object>recorder.blocks[i].owner)
        elif recorder.blocks[i].purpose != FLAG and recorder.blocks[i].gone >= 0:
            give_back(recorder.blocks[i].data, recorder.blocks[i].nbytes)
    free(recorder.blocks)
    free(recorder.steps)
    free(recorder.pointers)
    free(recorder.numbers)
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


cdef void note_launch(void* kernel, char** pointers, int64_t npointers, const int64_t* numbers, int64_t nnumbers,
                      int64_t total, int64_t grain, bint small) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
    cdef Step* step
    if r == NULL or r.refused != NULL:
        return
    if not (grow(<void**>&r.steps, &r.room_steps, r.nsteps + 1, sizeof(Step))
            and grow(<void**>&r.pointers, &r.room_pointers, r.npointers + npointers, sizeof(char*))
            and grow(<void**>&r.numbers, &r.room_numbers, r.nnumbers + nnumbers, sizeof(int64_t))):
        r.refused = b"out of memory"
        return
    step = &r.steps[r.nsteps]
    step.kernel, step.total, step.grain, step.small = kernel, total, grain, small
    step.pointers, step.npointers, step.numbers, step.nnumbers = r.npointers, npointers, r.nnumbers, nnumbers
    if npointers:
        memcpy(r.pointers + r.npointers, pointers, npointers * sizeof(char*))
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
    r.nblocks += 1


cdef void note_flag(void* data, int64_t nbytes) noexcept nogil:
    if mine != NULL:
        note_block(<Recorder*>mine, data, nbytes, FLAG)


cdef void note_held(object storage, char* data, int64_t nbytes) noexcept:
    cdef Recorder* r = <Recorder*>mine
    cdef int64_t i
    if r == NULL or nbytes == 0:
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
    if r != NULL:
        for i in range(r.nblocks):
            if r.blocks[i].data == data and r.blocks[i].purpose == MEMORY and r.blocks[i].gone < 0:
                r.blocks[i].purpose = purpose


# ---- memory of device meta -------------------------------------------------------------------------------------------

cdef void give_back(void* data, int64_t nbytes) noexcept nogil:
    if nbytes >= RESERVED:
        taeda_unreserve(data, nbytes)
    else:
        taeda_free_lines(data)


cdef void* allocate_planned(int64_t nbytes) noexcept nogil:
    cdef Recorder* r = <Recorder*>mine
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
    cdef Recorder* r = <Recorder*>mine
    cdef int64_t i
    if r != NULL:
        for i in range(r.nblocks - 1, -1, -1):
            if r.blocks[i].data == data:
                r.blocks[i].gone = r.nsteps
                return
    give_back(data, nbytes)


cdef bint is_touched(const Block* block) noexcept nogil:
    cdef int64_t i
    if block.purpose != MEMORY:
        return False
    if block.nbytes >= RESERVED:
        return taeda_resident(block.data, block.nbytes)
    for i in range((block.nbytes + 64) & -64):
        if <unsigned char>block.data[i] != PATTERN:
            return True
    return False
