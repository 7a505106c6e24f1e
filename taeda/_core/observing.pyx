"""Observing a call: how traces are made.

`observe` runs the function while a recorder collects the launches, and turns addresses into places of a trace
(`replay.pyx`). It finds the storages from before the call by asking Python's garbage collector for all tensors. There
is no trace if the call does anything beside launches that a replay could not repeat.
"""

import gc

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from .devices cimport count_elsewhere
from .guard cimport form_of
from .memory cimport Storage, settle, unsettled
from .plan cimport GIVEN, LINE, MADE, SCRATCH, Fields, Place, Ready, make_ready, prototype
from .planning cimport Room, arrange, arrange_in, extent
from .recorder cimport (
    FLAG, HELD, NUMBERS, TABLE, Block, Recorder, Step, begin_recording, end_recording, find_block, free_recorder,
)
from .replay cimport Kept, Patch, Skip, Trace, Write
from .tensor cimport VALUES, Node, Tensor

from ..kernels import build
from .fusion import defer_ops
from .plan import NoPlan


# ---- the state before the call ---------------------------------------------------------------------------------------

cdef class Before:
    """The tensors from before a call: their storages with versions, and the gradients of leaves."""

    cdef dict storages           # by id: (storage, version)
    cdef list leaves             # (leaf, its gradient)
    cdef dict known              # tensors by id
    cdef list places             # (address, bytes, storage), sorted

    def __cinit__(self):
        cdef Tensor t
        self.storages, self.leaves, self.known, self.places = {}, [], {}, []
        for x in gc.get_objects():
            if not isinstance(x, Tensor):
                continue
            t = <Tensor>x
            if t.storage is None:    # it is incomplete, or has no memory
                continue
            if unsettled:
                settle(t.storage)
            self.known[id(t)] = t
            if t.leaf_grad or t.grad_ is not None:
                self.leaves.append((t, t.grad_))
            if t.device_type == 0 and id(t.storage) not in self.storages:
                self.storages[id(t.storage)] = (t.storage, t.storage.version)
                if t.storage.capacity:
                    self.places.append((<uintptr_t>t.storage.data, t.storage.capacity, t.storage))
        self.places.sort(key=_address)

    cdef Storage at(self, uintptr_t address):
        """The storage that contains an address, or None."""
        cdef Py_ssize_t low = 0, high = len(self.places), middle
        while low < high:
            middle = (low + high) // 2
            if <uintptr_t>(<tuple>self.places[middle])[0] <= address:
                low = middle + 1
            else:
                high = middle
        for middle in range(low - 1, max(low - 9, -1), -1):   # foreign memory may overlap
            data, nbytes, storage = <tuple>self.places[middle]
            if <uintptr_t>data <= address < <uintptr_t>data + <uintptr_t>nbytes:
                return <Storage>storage
        return None


def _address(place):
    return place[0]


# ---- observing -------------------------------------------------------------------------------------------------------

def observe(function, tuple args, dict kwargs, list tensors, bint dry=False, dict prepared=None):
    """Call ``function(*args, **kwargs)`` and record its launches.

    Args:
        tensors: those among the arguments, as `guard.key_of` gives them.
        dry: record the launches, but run no kernel: results are undefined.
        prepared: blocks that traces keep, such as packed weights, to be shared. Without it a dry trace keeps none.
    Returns:
        ``(result, trace)``, or ``(result, (why, place))`` if the call cannot be repeated; ``place`` is None if that
        applies to the whole call.
    """
    cdef Before before = Before()
    cdef Recorder* recorder = begin_recording(True)
    recorder.dry = dry
    cdef Maker maker = Maker(before, tensors)
    maker.prepared, maker.prepares = {} if prepared is None else prepared, prepared is not None or not dry
    cdef bint deferring = defer_ops(False)
    count_elsewhere(1)
    try:
        try:
            result = function(*args, **kwargs)
            maker.describe_all(recorder, result)
        except NoPlan as error:
            return result, (str(error), None)
        finally:
            end_recording()
            count_elsewhere(-1)
            defer_ops(deferring)
        if recorder.refused != NULL:
            place = <object>recorder.place if recorder.place != NULL else None
            return result, ((<bytes>recorder.refused).decode(), place)
        try:
            return result, maker.finish(recorder)
        except NoPlan as error:
            return result, (str(error), None)
    finally:
        free_recorder(recorder)


cdef bint leads_on(Node node) except -1:
    """Whether a backward pass from ``node`` may reach a leaf: not if the graph on every path has been released."""
    cdef list stack = [node]
    cdef set seen = set()
    while stack:
        target = stack.pop()
        if isinstance(target, Tensor):
            return True
        if target in seen or (<Node>target).released:
            continue
        seen.add(target)
        if (<Node>target).custom is not None:
            return True
        stack.extend([x for x in (<Node>target).targets if x is not None])
    return False


cdef class Maker:
    """Makes a trace from the launches of a recorder."""

    cdef Before before
    cdef list tensors            # arguments, then gradients from before the call that it uses
    cdef Trace trace
    cdef dict given              # id of a storage -> its number among Trace.given
    cdef dict held               # likewise
    cdef dict made               # number of a block -> number of its storage
    cdef dict forms              # Kept by the id of their tensor
    cdef dict old_grads          # id of a storage -> the leaf whose gradient is in it
    cdef list alive              # tensors of the forms
    cdef list patches            # (base, offset, address of the slot); bases as (place, index)
    cdef list signature
    cdef dict ready              # number of a prepared block -> Ready
    cdef dict prepared           # Ready by the launch that computes them
    cdef bint prepares
    cdef dict order              # number of a block -> its number in order of first use
    cdef dict used               # number of a new storage -> the first launch that uses it
    cdef list writes             # (storage, writes that it counts)

    def __cinit__(self, Before before, list tensors):
        cdef Tensor t
        self.before, self.tensors = before, list(tensors)
        self.trace = Trace.__new__(Trace)
        self.given, self.held, self.made, self.forms, self.alive, self.patches = {}, {}, {}, {}, [], []
        self.signature, self.order, self.old_grads, self.used = [], {}, {}, {}
        self.ready, self.trace.prepared = {}, []
        self.trace.given, self.trace.held, self.trace.made, self.trace.forms = [], [], [], []
        self.trace.filled, self.trace.calls, self.trace.tables, self.writes = [], [], [], []
        self.trace.nargs = len(tensors)
        for i, t in enumerate(tensors):
            if id(t.storage) not in self.given:
                self.given[id(t.storage)] = len(self.trace.given)
                self.trace.given.append(i)
        for leaf, grad in before.leaves:
            if grad is not None and (<Tensor>grad).storage is not None:
                self.old_grads[id((<Tensor>grad).storage)] = (leaf, grad)

    # ---- the state after the call ----------------------------------------------------------------------------------
    cdef int describe_all(self, Recorder* r, object result) except -1:
        """Find the results and gradients of the call. Everything else that it made must have been released."""
        cdef int64_t i
        cdef Tensor leaf
        cdef list grads = []
        if r.refused != NULL:
            return 0
        if unsettled:
            for storage, _ in self.before.storages.values():
                settle(storage)
        self.trace.result = self.describe(r, result)
        for x, before in self.before.leaves:
            leaf = <Tensor>x
            if leaf.grad_ is not before:
                grads.append((leaf, None if leaf.grad_ is None else self.describe(r, leaf.grad_)))
        for x in self.before.known.values():   # leaves without a gradient that did not require one
            leaf = <Tensor>x
            if leaf.grad_ is not None and not leaf.leaf_grad and not any([leaf is y for y, _ in self.before.leaves]):
                raise NoPlan("a tensor that is no leaf is given a gradient")
        self.trace.grads = [(self.owner(leaf), value) for leaf, value in grads]
        if self.left_alive(r) >= 0:
            gc.collect()
            i = self.left_alive(r)
            if i >= 0:
                raise NoPlan(f"a tensor of {r.blocks[i].nbytes} bytes that the call has made is kept")
        for storage, version in self.before.storages.values():
            if (<Storage>storage).version != <int64_t>version:
                self.writes.append((storage, (<Storage>storage).version - <int64_t>version))
        return 0

    cdef int64_t left_alive(self, Recorder* r) except -2:
        cdef int64_t i
        for i in range(r.nblocks):
            if r.blocks[i].gone < 0 and r.blocks[i].purpose != HELD and r.blocks[i].purpose != FLAG \
                    and r.blocks[i].purpose != TABLE and i not in self.made:
                return i
        return -1

    cdef object owner(self, Tensor leaf):
        """A leaf, or its number if it is an argument."""
        for i in range(self.trace.nargs):
            if self.tensors[i] is leaf:
                return i
        return leaf

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
        cdef Kept form
        cdef int64_t block
        if id(t) in self.forms:
            return self.forms[id(t)]
        form = Kept.__new__(Kept)
        for i in range(self.trace.nargs):
            if self.tensors[i] is t:
                form.argument = i
        if form.argument is None and id(t) in self.before.known:
            if t.storage is not None and id(t.storage) in self.old_grads:
                raise NoPlan("a gradient of before the call is given back")
            return t
        if unsettled:
            settle(t.storage)    # deferred ops are launched now, as part of the trace
        form.number = len(self.trace.forms)
        self.forms[id(t)] = form
        self.alive.append(t)
        self.trace.forms.append(form)
        if form.argument is not None:
            return form
        if type(t) is not Tensor or t.holds != VALUES or t.device_type or t.hooks is not None:
            raise NoPlan(f"a {type(t).__name__} of a kind of its own is given back")
        if t.grad_ is not None or t.base is not None and (t.base.leaf_grad or t.base.grad_fn_ is not None):
            raise NoPlan("a view in the graph, or a tensor with a gradient, is given back")
        if t.grad_fn_ is not None:
            if leads_on(t.grad_fn_):
                raise NoPlan("a tensor that requires grad is given back, with the graph that made it")
            form.node, form.nr = t.grad_fn_, t.nr
        form.leaf_grad, form.inference = t.leaf_grad, t.inference
        form.like = prototype(t)
        if id(t.storage) in self.given:
            form.place, form.index = GIVEN, self.given[id(t.storage)]
            form.offset = t.raw - (<Tensor>self.tensors[self.trace.given[form.index]]).raw
        elif id(t.storage) in self.before.storages:
            form.place, form.index, form.offset = Place.FIXED, self.hold(t.storage), t.raw - t.storage.data
        else:
            block = find_block(r, t.storage.data)
            if block < 0 or r.blocks[block].data != t.storage.data:
                raise NoPlan("a tensor in memory of its own is given back")
            if block not in self.made:
                self.made[block] = len(self.trace.made)
                self.trace.made.append(r.blocks[block].nbytes)
            form.place, form.index, form.offset = MADE, self.made[block], t.raw - t.storage.data
        return form

    cdef int64_t hold(self, Storage storage) except -1:
        if id(storage) not in self.held:
            self.held[id(storage)] = len(self.trace.held)
            self.trace.held.append(storage)
        return self.held[id(storage)]

    # ---- launches ----------------------------------------------------------------------------------------------------
    cdef Trace finish(self, Recorder* r):
        cdef Trace trace = self.trace
        cdef int64_t i, k, first, flags = 0
        cdef Room* rooms = <Room*>calloc(r.nblocks + 1, sizeof(Room))
        cdef int64_t* room_of = <int64_t*>calloc(r.nblocks + 1, 8)   # one more than its number
        cdef char* place
        try:
            trace.steps = <Step*>malloc(r.nsteps * sizeof(Step) + 1)
            trace.at = <char**>calloc(r.npointers + 1, sizeof(char*))
            trace.numbers = <int64_t*>malloc(r.nnumbers * 8 + 8)
            trace.flag_ends = <int64_t*>calloc(r.nsteps + 1, 8)
            trace.nsteps = r.nsteps
            for i in range(r.nblocks):
                flags += r.blocks[i].nbytes if r.blocks[i].purpose == FLAG else 0
            trace.flags = <int8_t*>calloc(flags + 1, 1)
            if rooms == NULL or room_of == NULL or trace.steps == NULL or trace.at == NULL or trace.numbers == NULL \
                    or trace.flag_ends == NULL or trace.flags == NULL:
                raise MemoryError()
            if r.nsteps:
                memcpy(trace.steps, r.steps, r.nsteps * sizeof(Step))
            if r.nnumbers:
                memcpy(trace.numbers, r.numbers, r.nnumbers * 8)
            flags = 0
            for i in range(r.nsteps):
                self.add_step(r, i, rooms, room_of, &flags)
                trace.flag_ends[i] = flags
            self.fill(r, rooms, room_of)
            self.link()
        finally:
            free(rooms)
            free(room_of)
        trace.nheld = len(trace.held)
        self.find_leaves()
        self.count_writes()
        trace.signature = tuple(self.signature)
        return trace

    cdef int count_writes(self) except -1:
        """The writes that storages count at each replay."""
        cdef Trace trace = self.trace
        trace.writes = <Write*>malloc(len(self.writes) * sizeof(Write) + 1)
        if trace.writes == NULL:
            raise MemoryError()
        for storage, times in self.writes:
            if id(storage) in self.given:
                trace.writes[trace.nwrites] = Write(NULL, trace.given[self.given[id(storage)]], times)
            elif id(storage) in self.held:
                trace.writes[trace.nwrites] = Write(<PyObject*>storage, 0, times)
            else:
                continue
            trace.nwrites += 1
        return 0

    cdef int add_step(self, Recorder* r, int64_t i, Room* rooms, int64_t* room_of, int64_t* flags) except -1:
        """The places of the pointers of a launch."""
        cdef Step* step = &r.steps[i]
        cdef int64_t k, found
        cdef char* address
        cdef char** slot
        self.signature.append((<uintptr_t>step.kernel, step.total, step.grain, PyBytes_FromStringAndSize(
            <char*>(r.numbers + step.numbers), step.nnumbers * 8)))
        if step.kernel == NULL:
            self.trace.calls.append(((<list>r.calls)[r.numbers[step.numbers]], 0))
            self.signature.append(((<list>r.calls)[r.numbers[step.numbers]]))
        for k in range(step.pointers, step.pointers + step.npointers):
            address, slot = r.pointers[k], self.trace.at + k
            if address == NULL:
                self.signature.append(None)
                continue
            found = r.found[k]
            if found >= 0 and r.blocks[found].purpose == FLAG:
                slot[0] = <char*>self.trace.flags + flags[0]
                flags[0] += r.blocks[found].nbytes
            elif found >= 0 and r.blocks[found].purpose == HELD:      # a bytes object
                slot[0] = self.copy(r.blocks[found].data, r.blocks[found].nbytes) + (address - r.blocks[found].data)
                self.signature.append((PyBytes_FromStringAndSize(r.blocks[found].data, r.blocks[found].nbytes),
                                       address - r.blocks[found].data))
            elif found >= 0 and r.blocks[found].purpose == TABLE:
                slot[0] = self.add_table(r, i, found, rooms, room_of)
                if k == step.pointers and self.is_counted(r, i):
                    thing, _ = self.trace.calls.pop()
                    self.trace.calls.append((thing, <uintptr_t>slot[0]))
            else:
                self.add_place(r, i, found, address, slot, rooms, room_of)
        return 0

    cdef bint is_counted(self, Recorder* r, int64_t i) noexcept:
        """Whether the numbers of a launch are computed at each replay, by an object that was noted before it."""
        return i > 0 and r.steps[i - 1].kernel == NULL and r.steps[i - 1].npointers == 0

    cdef char* copy(self, const char* data, int64_t nbytes) except NULL:
        """A copy that lives as long as the trace."""
        cdef char* made = <char*>malloc(nbytes + 1)
        if made == NULL:
            raise MemoryError()
        memcpy(made, data, nbytes)
        self.trace.tables.append((<uintptr_t>made, nbytes))
        return made

    cdef char* add_table(self, Recorder* r, int64_t i, int64_t found, Room* rooms, int64_t* room_of) except NULL:
        """A copy of a table, with the places of its addresses."""
        cdef Block* block = &r.blocks[found]
        cdef char** words = <char**>self.copy(block.content, block.nbytes)
        cdef int64_t row, k, at
        cdef bint counted = self.is_counted(r, i)
        for row in range(block.nbytes // 8 // block.width):
            for k in range(block.width):
                at = row * block.width + k
                if k < block.naddresses:
                    self.add_place(r, i, block.found[at], words[at], &words[at], rooms, room_of)
                elif not counted or not block.naddresses:
                    self.signature.append(<int64_t>words[at])
        return <char*>words

    cdef int add_place(self, Recorder* r, int64_t i, int64_t found, char* address, char** slot, Room* rooms,
                       int64_t* room_of) except -1:
        """Note the address that a replay writes to a slot."""
        cdef Storage storage
        cdef int64_t at, number
        cdef Room* room
        cdef Tensor t
        if found >= 0:
            at = address - r.blocks[found].data
            self.signature.append((self.order.setdefault(found, len(self.order)), at, r.blocks[found].nbytes))
            if found in self.made:
                self.patches.append((MADE, self.made[found], at, <uintptr_t>slot))
                self.used.setdefault(self.made[found], i)
                return 0
            if r.blocks[found].prepared and not room_of[found] and found not in self.ready:
                self.prepare(r, i, found)
            if found in self.ready:
                number = self.hold((<Ready>self.ready[found]).memory)
                self.patches.append((Place.FIXED, number, at, <uintptr_t>slot))
                return 0
            if not room_of[found]:
                number = room_of[r.nblocks]          # how many there are
                room = &rooms[number]
                room.block, room.first = found, i
                room.nbytes = max((r.blocks[found].nbytes + LINE - 1) // LINE * LINE, LINE)
                if r.blocks[found].purpose == NUMBERS:
                    room.first = -1   # written before the launches
                room_of[r.nblocks] = number + 1
                room_of[found] = number + 1
            rooms[room_of[found] - 1].last = i
            self.patches.append((SCRATCH, room_of[found] - 1, at, <uintptr_t>slot))
            return 0
        storage = self.before.at(<uintptr_t>address)
        if storage is None:
            if not build.is_kernel(<uintptr_t>address):
                raise NoPlan("a kernel is given an address that is in no tensor")
            slot[0] = address
            self.signature.append(<uintptr_t>address)
            return 0
        if id(storage) not in self.given and id(storage) in self.old_grads:
            self.given[id(storage)] = len(self.trace.given)
            self.trace.given.append(len(self.tensors))
            self.tensors.append((<tuple>self.old_grads[id(storage)])[1])
        if id(storage) in self.given:
            number = self.given[id(storage)]
            t = <Tensor>self.tensors[self.trace.given[number]]
            self.check_given(storage, address)
            self.patches.append((GIVEN, number, address - t.raw, <uintptr_t>slot))
            self.signature.append((number, address - t.raw))
        else:
            number = self.hold(storage)
            self.patches.append((Place.FIXED, number, address - storage.data, <uintptr_t>slot))
            self.signature.append((id(storage), address - storage.data))
        return 0

    cdef int prepare(self, Recorder* r, int64_t i, int64_t made) except -1:
        """Keep a block from call to call, if launch ``i`` computes it from one storage that the trace holds."""
        cdef int64_t k, found
        cdef Step* step = &r.steps[i]
        cdef Storage source = None, storage
        cdef list key = [<uintptr_t>step.kernel, step.total, step.grain, PyBytes_FromStringAndSize(
            <char*>(r.numbers + step.numbers), step.nnumbers * 8)]
        if not self.prepares or self.trace.grads or self.is_left_out(r, i):
            return 0
        for k in range(step.pointers, step.pointers + step.npointers):
            found = r.found[k]
            if found == made or r.pointers[k] == NULL or found >= 0 and r.blocks[found].purpose == NUMBERS:
                if found >= 0 and found != made:
                    key.append(PyBytes_FromStringAndSize(r.blocks[found].content, r.blocks[found].nbytes))
                key.append(None if found < 0 else r.pointers[k] - r.blocks[found].data)
                continue
            storage = self.before.at(<uintptr_t>r.pointers[k]) if found < 0 else None
            if storage is None or source is not None and storage is not source or id(storage) in self.given \
                    or id(storage) in self.old_grads or any([storage is x for x, _ in self.writes]):
                return 0
            source = storage
            key.append(r.pointers[k] - storage.data)
        if source is not None:
            self.ready[made] = self.prepared.setdefault((source, *key), make_ready(r.blocks[made].nbytes))
            self.trace.prepared.append((i, source, self.ready[made]))
        return 0

    cdef bint is_left_out(self, Recorder* r, int64_t i) except -1:
        """Whether a replay may skip launch ``i``."""
        for k in range(i):
            if r.steps[k].kernel == NULL:
                thing = (<list>r.calls)[r.numbers[r.steps[k].numbers]]
                if type(thing) is Skip and k + (<Skip>thing).length >= i:
                    return True
        return False

    cdef int check_given(self, Storage storage, char* address) except -1:
        """Raise an error for an address in the storage of an argument, but outside of all arguments."""
        cdef int64_t low, high
        cdef Tensor t
        for t in self.tensors:
            if t.storage is storage:
                extent(t, &low, &high)
                if low <= address - t.raw <= high:
                    return 0
        raise NoPlan("memory of an argument's storage outside of the argument is read or written")

    cdef int fill(self, Recorder* r, Room* rooms, int64_t* room_of) except -1:
        """Assign blocks to the workspace of a replay; note the contents that some have before the launches."""
        cdef int64_t i, k, n = room_of[r.nblocks]
        cdef int64_t* offsets = <int64_t*>calloc(r.nblocks + 1, 8)
        cdef list blocks = [rooms[i].block for i in range(n)]
        cdef dict bins
        if offsets == NULL:
            raise MemoryError()
        try:
            self.use_results(r, rooms, n)
            self.trace.scratch = arrange(rooms, n, 0)
            for i in range(n):
                offsets[rooms[i].block] = rooms[i].offset
            bins = {rooms[i].block: rooms[i].bin - 1 for i in range(n) if rooms[i].bin}
            self.patches = [
                (place, index, offset, slot) if place != SCRATCH
                else (MADE if blocks[index] in bins else SCRATCH, bins.get(blocks[index], 0),
                      offset + offsets[<int64_t>blocks[index]], slot)
                for place, index, offset, slot in self.patches]
            for i in range(r.nblocks):
                if r.blocks[i].purpose != NUMBERS:
                    continue
                content = PyBytes_FromStringAndSize(r.blocks[i].content, r.blocks[i].nbytes)
                self.signature.append(content)
                if i in self.made:
                    self.trace.filled.append((MADE, self.made[i], 0, content))
                elif room_of[i]:
                    self.trace.filled.append((SCRATCH, 0, offsets[i], content))
        finally:
            free(offsets)
        return 0

    cdef int use_results(self, Recorder* r, Room* rooms, int64_t n) except -1:
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
            return arrange_in(rooms, n, bins, nbins)
        finally:
            free(bins)

    cdef int64_t base(self, Place place, int64_t index) noexcept:
        cdef Trace trace = self.trace
        if place == GIVEN:
            return index
        if place == Place.FIXED:
            return trace.ngiven + index
        return trace.ngiven + trace.nheld + (index if place == MADE else trace.nmade)

    cdef int link(self) except -1:
        """Sort the addresses to update by their base."""
        cdef Trace trace = self.trace
        cdef list sorted_
        cdef int64_t i, b = 0
        trace.ngiven, trace.nheld, trace.nmade = len(trace.given), len(trace.held), len(trace.made)
        trace.nbases = trace.ngiven + trace.nheld + trace.nmade + 1
        sorted_ = sorted([(self.base(place, index), offset, slot) for place, index, offset, slot in self.patches])
        trace.npatches = len(sorted_)
        trace.patches = <Patch*>malloc(trace.npatches * sizeof(Patch) + 1)
        trace.first = <int64_t*>calloc(trace.nbases + 1, 8)
        trace.bases = <char**>calloc(trace.nbases + 1, sizeof(char*))
        if trace.patches == NULL or trace.first == NULL or trace.bases == NULL:
            raise MemoryError()
        for i in range(trace.npatches):
            base, offset, slot = <tuple>sorted_[i]
            while b <= <int64_t>base:
                trace.first[b] = i
                b += 1
            trace.patches[i].base, trace.patches[i].offset = base, offset
            trace.patches[i].slot = <char**><uintptr_t>slot
        while b <= trace.nbases:
            trace.first[b] = trace.npatches
            b += 1
        trace.filled = [(self.base(place, index), offset, content) for place, index, offset, content in trace.filled]
        for thing, table in trace.calls:
            if table == 0 and type(thing) is not Skip:
                raise NoPlan("an optimiser's step launches nothing")
        return 0

    cdef int find_leaves(self) except -1:
        """For each leaf that may get a gradient in the call, whether it had one at the beginning."""
        cdef Tensor leaf, grad
        cdef set changed = {id(owner if isinstance(owner, Tensor) else self.tensors[owner])
                            for owner, _ in self.trace.grads}
        cdef list leaves = []
        cdef set numbers = set()
        cdef object number
        for x, before in self.before.leaves:
            leaf = <Tensor>x
            number = None
            if before is not None:
                for i in range(self.trace.nargs, len(self.tensors)):
                    if self.tensors[i] is before:
                        number = i
            if number is not None:
                if number in numbers:
                    raise NoPlan("two leaves have one gradient")
                numbers.add(number)
            if number is None and id(leaf) not in changed and id(leaf.storage) not in self.held \
                    and id(leaf.storage) not in self.given:
                continue
            grad = <Tensor>before if before is not None else None
            if grad is not None and number is not None and <uintptr_t>grad.raw % LINE:
                raise NoPlan("a gradient is not aligned")
            leaves.append((self.owner(leaf), None if grad is None else form_of(grad), number))
        leaves.sort(key=_number)
        self.trace.leaves = leaves
        self.trace.dropped = [owner for owner, form, number in leaves if form is not None and number is None
                              and id(owner if isinstance(owner, Tensor) else self.tensors[owner]) in changed]
        self.trace.start = bytes([form is not None for _, form, _ in leaves])
        self.signature.append(tuple(sorted([(owner if isinstance(owner, int) else id(owner), form is not None)
                                            for owner, form, number in leaves])))
        return 0


def _number(leaf):
    """Sort key: gradients that are GIVEN, by number, and then the others."""
    return leaf[2] if leaf[2] is not None else 1 << 60
