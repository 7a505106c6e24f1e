"""Making programs: the addresses of launches become places.

A recorder (`recorder.pyx`) has the launches of a call, and the blocks of memory that were in use meanwhile. A `Linker`
makes a `Program` of them. Blocks that are neither of an argument nor of a result share the memory of a run, as far as
their lifetimes allow. `planning.pyx` and `trace_record.pyx` say what the addresses from before the call are.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy

from .memory cimport Storage, new_storage
from .program cimport GIVEN, LINE, MADE, OWN, SCRATCH, Fields, Form, Patch, Program, Write
from .recorder cimport CONSTANT, FLAG, HELD, NUMBERS, TABLE, Block, Recorder, Step, find_block
from .tensor cimport ITEMSIZE, Tensor

from .program import NoPlan


cdef void extent(Tensor t, int64_t* low, int64_t* high) noexcept:
    cdef int d
    low[0], high[0] = 0, ITEMSIZE[t.code]
    for d in range(t.nd):
        if t.sizes[d] > 1:
            if t.strides[d] < 0:
                low[0] -= (t.sizes[d] - 1) * t.strides[d] * ITEMSIZE[t.code]
            else:
                high[0] += (t.sizes[d] - 1) * t.strides[d] * ITEMSIZE[t.code]


cdef class Linker:
    """Makes a program from the launches of a recorder."""

    def __cinit__(self):
        self.forms, self.alive, self.given, self.held, self.made, self.used = {}, [], {}, {}, {}, {}
        self.ready, self.copies, self.order, self.patches, self.signature = {}, {}, {}, [], []
        self.writes = []

    def __dealloc__(self):
        free(self.rooms)
        free(self.room_of)

    # ---- results -----------------------------------------------------------------------------------------------------
    cdef object describe(self, Recorder* r, object x):
        """The result of the function, with forms in place of tensors that it made."""
        if isinstance(x, Tensor):
            return self.describe_tensor(r, <Tensor>x)
        if type(x) is tuple:
            return tuple([self.describe(r, y) for y in <tuple>x])
        if isinstance(x, tuple) and hasattr(type(x), "n_fields"):
            return Fields(type(x), tuple([self.describe(r, y) for y in x]))
        if type(x) is list:
            return [self.describe(r, y) for y in <list>x]
        if type(x) is dict:
            return {name: self.describe(r, y) for name, y in (<dict>x).items()}
        if x is None or type(x) in (int, float, bool, str, bytes, complex):
            return x
        raise NoPlan(f"{type(x).__name__} is given back")

    cdef object describe_tensor(self, Recorder* r, Tensor t):
        raise NotImplementedError

    cdef Form new_form(self, Tensor t):
        cdef Form form = Form.__new__(Form)
        form.number = len(self.program.forms)
        self.forms[id(t)] = form
        self.alive.append(t)
        self.program.forms.append(form)
        return form

    cdef int place_made(self, Recorder* r, Form form, Tensor t) except -1:
        """The form of a tensor in memory that the call made."""
        cdef int64_t block = find_block(r, t.storage.data)
        if block < 0 or r.blocks[block].data != t.storage.data or r.blocks[block].purpose == HELD:
            raise NoPlan("a tensor in memory of its own is given back")
        if r.blocks[block].purpose == CONSTANT:
            raise NoPlan("a table of the body is given back")
        if block not in self.made:
            self.made[block] = len(self.program.made)
            self.program.made.append(r.blocks[block].nbytes)
        form.place, form.index, form.offset = MADE, self.made[block], t.raw - t.storage.data
        return 0

    cdef int64_t hold(self, Storage storage) except -1:
        """The number of a storage that the program holds."""
        if id(storage) not in self.held:
            self.held[id(storage)] = len(self.program.held)
            self.program.held.append(storage)
        return self.held[id(storage)]

    # ---- launches ----------------------------------------------------------------------------------------------------
    cdef int link(self, Recorder* r) except -1:
        """Give the program the launches. Its results must be described."""
        cdef Program made = self.program
        cdef int64_t i, flags = 0
        self.rooms = <Room*>calloc(r.nblocks + 1, sizeof(Room))
        self.room_of = <int64_t*>calloc(r.nblocks + 1, 8)
        made.steps = <Step*>malloc(r.nsteps * sizeof(Step) + 1)
        made.at = <char**>calloc(r.npointers + 1, sizeof(char*))
        made.numbers = <int64_t*>malloc(r.nnumbers * 8 + 8)
        made.flag_ends = <int64_t*>calloc(r.nsteps + 1, 8)
        made.nsteps = r.nsteps
        for i in range(r.nblocks):
            flags += r.blocks[i].nbytes if r.blocks[i].purpose == FLAG else 0
        made.flags = <int8_t*>calloc(flags + 1, 1)
        if self.rooms == NULL or self.room_of == NULL or made.steps == NULL or made.at == NULL \
                or made.numbers == NULL or made.flag_ends == NULL or made.flags == NULL:
            raise MemoryError()
        if r.nsteps:
            memcpy(made.steps, r.steps, r.nsteps * sizeof(Step))
        if r.nnumbers:
            memcpy(made.numbers, r.numbers, r.nnumbers * 8)
        flags = 0
        for i in range(r.nsteps):
            flags = made.flag_ends[i] = self.add_step(r, i, flags)
        self.fill(r)
        return self.sort_patches()

    cdef int64_t add_step(self, Recorder* r, int64_t i, int64_t flags) except -1:
        """The places of the pointers of a launch. Where its flags end."""
        cdef Step* step = &r.steps[i]
        cdef int64_t k, found
        cdef char* address
        cdef char** slot
        cdef Block* block
        self.signature.append((<uintptr_t>step.kernel, step.total, step.grain, PyBytes_FromStringAndSize(
            <char*>(r.numbers + step.numbers), step.nnumbers * 8)))
        if step.kernel == NULL:
            self.program.calls.append(((<list>r.calls)[r.numbers[step.numbers]], 0))
            self.signature.append(((<list>r.calls)[r.numbers[step.numbers]]))
        for k in range(step.pointers, step.pointers + step.npointers):
            address, slot, found = r.pointers[k], self.program.at + k, r.found[k]
            block = &r.blocks[found]
            if address == NULL:
                self.signature.append(None)
            elif found < 0:
                self.add_place(r, i, found, address, slot)
            elif block.purpose == FLAG:
                slot[0] = <char*>self.program.flags + flags
                flags += block.nbytes
            elif block.purpose == HELD and isinstance(<object>block.owner, Storage):
                self.patches.append((OWN, self.hold(<Storage>block.owner), address - block.data, <uintptr_t>slot))
            elif block.purpose == HELD:      # a bytes object
                slot[0] = self.copy(block.data, block.nbytes) + (address - block.data)
                self.signature.append((PyBytes_FromStringAndSize(block.data, block.nbytes), address - block.data))
            elif block.purpose == CONSTANT:
                if found not in self.copies:
                    self.copies[found] = new_storage(block.nbytes)
                    memcpy((<Storage>self.copies[found]).data, block.data, block.nbytes)
                self.patches.append((OWN, self.hold(self.copies[found]), address - block.data, <uintptr_t>slot))
            elif block.purpose == TABLE:
                slot[0] = self.add_table(r, i, found)
                if k == step.pointers and self.is_counted(r, i):
                    thing, _ = self.program.calls.pop()
                    self.program.calls.append((thing, <uintptr_t>slot[0]))
            else:
                self.add_place(r, i, found, address, slot)
        return flags

    cdef bint is_counted(self, Recorder* r, int64_t i) noexcept:
        """Whether the numbers of a launch are computed at each run, by an object that was noted before it."""
        return i > 0 and r.steps[i - 1].kernel == NULL and r.steps[i - 1].npointers == 0

    cdef char* copy(self, const char* data, int64_t nbytes) except NULL:
        """A copy that lives as long as the program."""
        cdef bytearray made = PyByteArray_FromStringAndSize(data, nbytes)
        self.program.tables.append(made)
        return PyByteArray_AS_STRING(made)

    cdef char* add_table(self, Recorder* r, int64_t i, int64_t found) except NULL:
        """A copy of a table, with the places of its addresses."""
        cdef Block* block = &r.blocks[found]
        cdef char** words = <char**>self.copy(block.content, block.nbytes)
        cdef int64_t row, k, at
        cdef bint counted = self.is_counted(r, i)
        for row in range(block.nbytes // 8 // block.width):
            for k in range(block.width):
                at = row * block.width + k
                if k < block.naddresses:
                    self.add_place(r, i, block.found[at], words[at], &words[at])
                elif not counted or not block.naddresses:
                    self.signature.append(<int64_t>words[at])
        return <char*>words

    cdef int add_place(self, Recorder* r, int64_t i, int64_t found, char* address, char** slot) except -1:
        """Note the address that a run writes to a slot."""
        cdef int64_t at
        cdef Room* room
        cdef object place, number
        if self.add_given(r, found, address, slot):
            return 0
        at = address - r.blocks[found].data
        self.signature.append((self.order.setdefault(found, len(self.order)), at, r.blocks[found].nbytes))
        if found in self.made:
            self.patches.append((MADE, self.made[found], at, <uintptr_t>slot))
            self.used.setdefault(self.made[found], i)
            return 0
        if r.blocks[found].prepared and not self.room_of[found] and found not in self.ready:
            self.prepare(r, i, found)
        if found in self.ready:
            place, number = <tuple>self.ready[found]
            self.patches.append((place, number, at, <uintptr_t>slot))
            return 0
        if not self.room_of[found]:
            room = &self.rooms[self.nrooms]
            room.block, room.first = found, i
            room.nbytes = max((r.blocks[found].nbytes + LINE - 1) // LINE * LINE, <int64_t>LINE)
            if r.blocks[found].purpose == NUMBERS:
                room.first = -1   # written before the launches
            self.nrooms += 1
            self.room_of[found] = self.nrooms
        self.rooms[self.room_of[found] - 1].last = i
        self.patches.append((SCRATCH, self.room_of[found] - 1, at, <uintptr_t>slot))
        return 0

    cdef bint add_given(self, Recorder* r, int64_t found, char* address, char** slot) except -1:
        """Whether the address is none of a block that the call made: then it is noted. NoPlan if it is of nothing."""
        raise NotImplementedError

    cdef int prepare(self, Recorder* r, int64_t i, int64_t made) except -1:
        """Give a block that launch ``i`` computes a place in ``ready``, if it can be kept from run to run."""
        raise NotImplementedError

    cdef int fill(self, Recorder* r) except -1:
        """Assign blocks to the memory of a run; note the contents that some have before the launches."""
        cdef int64_t i, base, n = self.nrooms
        cdef int64_t* offsets = <int64_t*>calloc(r.nblocks + 1, 8)
        cdef list blocks = [self.rooms[i].block for i in range(n)]
        cdef dict bins
        if offsets == NULL:
            raise MemoryError()
        try:
            self.use_results(r)
            self.program.scratch = arrange(self.rooms, n)
            for i in range(n):
                offsets[self.rooms[i].block] = self.rooms[i].offset
            bins = {self.rooms[i].block: self.rooms[i].bin - 1 for i in range(n) if self.rooms[i].bin}
            self.patches = [
                (place, index, offset, slot) if place != SCRATCH
                else (MADE if blocks[index] in bins else SCRATCH, bins.get(blocks[index], 0),
                      offset + offsets[<int64_t>blocks[index]], slot)
                for place, index, offset, slot in self.patches]
            for i in range(r.nblocks):
                if r.blocks[i].purpose != NUMBERS:
                    continue
                content = PyBytes_FromStringAndSize(
                    r.blocks[i].content if r.blocks[i].content != NULL else r.blocks[i].data, r.blocks[i].nbytes)
                self.signature.append(content)
                base = self.program.first_base(MADE if i in self.made else SCRATCH)
                if i in self.made:
                    self.program.filled.append((base + <int64_t>self.made[i], 0, content))
                elif self.room_of[i]:
                    self.program.filled.append((base, offsets[i], content))
        finally:
            free(offsets)
        return 0

    cdef int use_results(self, Recorder* r) except -1:
        """Assign blocks to the storages of results that are not in use yet."""
        cdef int64_t i, k, nbins = 0
        cdef Room* bins = <Room*>calloc(len(self.made) + 1, sizeof(Room))
        if bins == NULL:
            raise MemoryError()
        for i, k in self.made.items():
            if r.blocks[i].purpose != NUMBERS and k in self.used:
                bins[nbins].block, bins[nbins].first, bins[nbins].nbytes = k, self.used[k], r.blocks[i].nbytes
                nbins += 1
        try:
            return arrange_in(self.rooms, self.nrooms, bins, nbins)
        finally:
            free(bins)

    cdef int sort_patches(self) except -1:
        """Sort the addresses to update by their base."""
        cdef Program made = self.program
        cdef list patches
        cdef int64_t i, b = 0
        made.nbases = made.first_base(SCRATCH) + 1 + len(self.ready)
        patches = sorted([(made.first_base(place) + <int64_t>index, offset, slot)
                          for place, index, offset, slot in self.patches])
        made.npatches = len(patches)
        made.patches = <Patch*>malloc(made.npatches * sizeof(Patch) + 1)
        made.first = <int64_t*>calloc(made.nbases + 1, 8)
        made.bases = <char**>calloc(made.nbases + 1, sizeof(char*))
        if made.patches == NULL or made.first == NULL or made.bases == NULL:
            raise MemoryError()
        for i in range(made.npatches):
            base, offset, slot = <tuple>patches[i]
            while b <= <int64_t>base:
                made.first[b] = i
                b += 1
            made.patches[i].base, made.patches[i].offset = base, offset
            made.patches[i].slot = <char**><uintptr_t>slot
        while b <= made.nbases:
            made.first[b] = made.npatches
            b += 1
        return 0

    cdef int count_writes(self) except -1:
        """Tell the program which writes storages count at each run."""
        cdef Program made = self.program
        made.writes = <Write*>malloc(len(self.writes) * sizeof(Write) + 1)
        if made.writes == NULL:
            raise MemoryError()
        for storage, times in self.writes:
            if id(storage) in self.given:
                made.writes[made.nwrites] = Write(NULL, made.given[self.given[id(storage)]], times)
            elif id(storage) in self.held:
                made.writes[made.nwrites] = Write(<PyObject*>storage, 0, times)
            else:
                continue
            made.nwrites += 1
        return 0


# ---- memory of a run -------------------------------------------------------------------------------------------------

cdef int by_size(const void* a, const void* b) noexcept nogil:
    """Order: larger first, then by first use."""
    cdef const Room* x = <const Room*>a
    cdef const Room* y = <const Room*>b
    if x.nbytes != y.nbytes:
        return 1 if x.nbytes < y.nbytes else -1
    return 1 if x.block > y.block else -1


cdef int by_offset(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const int64_t*>a)[0], y = (<const int64_t*>b)[0]
    return (x > y) - (x < y)


cdef int64_t first_free(const Room* rooms, int64_t n, const Room* room, int64_t bin, int64_t* taken) noexcept nogil:
    """The first offset in ``bin`` where ``room`` overlaps no other that is in use with it."""
    cdef int64_t k, found = 0, at = 0
    for k in range(n):
        if rooms[k].bin == bin and rooms[k].first <= room.last and room.first <= rooms[k].last:
            taken[2 * found], taken[2 * found + 1] = rooms[k].offset, rooms[k].offset + rooms[k].nbytes
            found += 1
    qsort(taken, found, 16, by_offset)
    for k in range(found):
        if taken[2 * k] >= at + room.nbytes:
            break
        at = max(at, taken[2 * k + 1])
    return at


cdef int64_t arrange(Room* rooms, int64_t n) except -1:
    """Assign offsets to blocks: blocks that are in use together do not overlap. The total bytes.

    The largest first, each at the first offset that is free during its lifetime. Blocks in bins stay there.
    """
    cdef int64_t i, top = 0
    # the ranges of blocks that are in use together with it
    cdef int64_t* taken = <int64_t*>malloc(n * 16 + 1)
    if taken == NULL:
        raise MemoryError()
    qsort(rooms, n, sizeof(Room), by_size)
    for i in range(n):
        if rooms[i].bin == 0:
            rooms[i].offset = first_free(rooms, i, &rooms[i], 0, taken)
            top = max(top, rooms[i].offset + rooms[i].nbytes)
    free(taken)
    return top


cdef int arrange_in(Room* rooms, int64_t n, Room* bins, int64_t nbins) except -1:
    """Place blocks in the memory of ``bins`` that is not in use yet. Then `arrange` places the others.

    The largest first, each into the smallest bin where it fits and which is first used after its last use.
    """
    cdef int64_t i, k, at
    cdef int64_t* taken = <int64_t*>malloc(n * 16 + 1)
    if taken == NULL:
        raise MemoryError()
    qsort(rooms, n, sizeof(Room), by_size)
    qsort(bins, nbins, sizeof(Room), by_size)
    for i in range(n):
        for k in range(nbins - 1, -1, -1):
            if bins[k].nbytes < rooms[i].nbytes or bins[k].first <= rooms[i].last or rooms[i].first < 0:
                continue
            at = first_free(rooms, i, &rooms[i], bins[k].block + 1, taken)
            if at + rooms[i].nbytes <= bins[k].nbytes:
                rooms[i].bin, rooms[i].offset = bins[k].block + 1, at
                break
    free(taken)
    return 0
