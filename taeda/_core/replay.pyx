"""Traces: the launches of a whole call, observed while it runs and repeated without its Python code.

A plan (`plan.pyx`) is made of one op, on device meta. A trace is made of a call as a user writes it, such as a training
step, with tensors that it names, gradients and an optimiser. `observe` runs the function while a recorder keeps the
launches, and turns addresses into places:

- GIVEN: in the storage of an argument, or of the gradient that a parameter has when the call begins;
- HELD: in another storage of before the call, which the trace holds;
- MADE: in a storage that is alive at the end, of a result or a new gradient; each replay makes another;
- SCRATCH: in memory for the time of the call, which blocks share as their lifetimes allow; and in that of a result
  or new gradient before its first use.

A replay writes addresses where they differ from those of the replay before, and launches. What is no launch refuses the
trace, with one exception: an object may be called between launches (`recorder.note_call`), to compute numbers of the
next one that differ from call to call.

What a trace is right for is for its user to find out: `guard.Guard` says whether the Python objects that a function
reads are what they were, `Trace.attempt` asks whether gradients and state are, and two calls in a row that give one
``signature`` do the same. See docs/notes/0016.
"""

import gc

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from .guard cimport form_of, has_form
from .memory cimport Storage, count_observer, new_storage, release_scratch, settle, take_scratch, unsettled
from .plan cimport (
    GIVEN, LINE, MADE, SCRATCH, Fields, Form, Place, Ready, Room, arrange, arrange_in, extent, make_ready, placed,
    prototype,
)
from .pool cimport kernel_t, launch, launch_alone
from .recorder cimport (
    FLAG, HELD, NUMBERS, TABLE, Block, Recorder, Step, begin_recording, current, end_recording, find_block,
    free_recorder, note_call,
)
from .recorder cimport is_observing as _is_observing
from .tensor cimport F32, VALUES, Node, Tensor, address_of

from ..kernels import build
from .fusion import put_off_ops
from .plan import NoPlan
from .recorder import on_refusal


def is_observing():
    """Whether what this thread does is observed."""
    return bool(_is_observing())


# ---- what was there before -------------------------------------------------------------------------------------------

cdef class Before:
    """The tensors of before a call: their storages with versions, and the gradients of leaves."""

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
            if t.storage is None:    # one that is being made, or has no memory
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
        """The storage that an address is in; None for none."""
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


# ---- traces ----------------------------------------------------------------------------------------------------------

#: What `Trace.attempt` gives where nothing was done.
MISS = object()


cdef struct Patch:           # an address that a replay writes where its base has moved
    int64_t base
    int64_t offset
    char** slot


cdef class Skip:
    """Launches that are left out where a number in memory, a float32, is not 0."""

    cdef int64_t length

    def __eq__(self, other):
        return isinstance(other, Skip) and self.length == (<Skip>other).length

    def fits(self):
        """Whether it stands: always."""
        return True


def call_unless(Tensor found, function):
    """``function()``, unless ``found``, a float32 tensor of one element, holds a number other than 0; else None.

    Replays of an observed call ask anew.
    """
    cdef Recorder* r = current()
    cdef Skip skip = Skip()
    cdef int64_t begin
    if not _is_observing():
        return None if found.item() else function()
    if found.code != F32 or found.count != 1:
        raise TypeError("call_unless: expected a float32 tensor of one element")
    if (<float*>address_of(found))[0] != 0:
        if r.refused == NULL:
            r.refused = b"the gradients of an observed step are not finite"
        return None
    note_call(skip, address_of(found))
    begin = r.nsteps
    result = function()
    skip.length = r.nsteps - begin
    return result


cdef class Kept(Form):
    """A tensor that a replay makes: a result or a gradient. Or the argument that is given back."""

    cdef int64_t number          # among those of the trace
    cdef Node node               # what made it, in a graph that is done with
    cdef int nr
    cdef bint leaf_grad, inference


cdef inline bint is_shared(const Step* step) noexcept:
    """Whether the thread pool shares a launch."""
    return step.kernel != NULL and not step.small and step.total > step.grain


cdef class Trace:
    """The launches of one call, with what they are given."""

    cdef Step* steps
    cdef int64_t* numbers
    cdef char** at               # the pointers of all launches
    cdef list tables             # copies of tables and constants: (address, bytes)
    cdef int8_t* flags
    cdef int64_t* flag_ends      # by step: where its flags end
    cdef Patch* patches
    cdef int64_t* first          # by base: the first of its patches
    cdef char** bases            # where each base was at the last replay
    cdef int64_t nsteps, npatches, nbases, ngiven, nheld, nmade, scratch
    cdef list given              # numbers of tensors: arguments, then gradients
    cdef list held, made         # storages; bytes
    cdef list filled             # (base, offset, content)
    cdef list calls              # (object, address of its table)
    cdef list leaves             # (leaf or number of an argument, None or form of its gradient, its number if GIVEN)
    cdef list grads              # (leaf or number of an argument, what its gradient is at the end)
    cdef list prepared           # (launch, storage that it reads, Ready): of blocks that stand from call to call
    cdef list dropped            # leaves or numbers whose gradients are neither read nor kept: their memory is free
    cdef list writes             # (storage or number of a tensor, writes that its storage counts)
    cdef list forms              # Kept
    cdef object result
    cdef readonly tuple signature
    cdef readonly bytes start    # which gradients there are when it begins
    cdef Py_ssize_t nargs
    cdef bint busy
    cdef public object guard     # what Python objects are to hold
    cdef int8_t* alone           # by step: whether it runs on this thread alone; NULL where none does
    cdef object clock            # while launches are measured: what tells the time
    cdef readonly list took      # by step: how long it took when it was measured last

    def __dealloc__(self):
        free(self.steps)
        free(self.numbers)
        free(self.at)
        free(self.flags)
        free(self.flag_ends)
        free(self.alone)
        free(self.patches)
        free(self.first)
        free(self.bases)
        if self.tables is not None:
            for address, _ in self.tables:
                free(<void*><uintptr_t>address)

    @property
    def launches(self):
        """How many launches a replay does."""
        return self.nsteps - len(self.calls)

    @property
    def scratch_bytes(self):
        """Memory that a replay takes beside its results."""
        return self.scratch

    @property
    def work(self):
        """Of each step the address of its kernel, its range, its grain, and whether the thread pool shares it."""
        return [(<uintptr_t>self.steps[i].kernel, self.steps[i].total, self.steps[i].grain, is_shared(&self.steps[i]))
                for i in range(self.nsteps)]

    def keep_alone(self, steps):
        """Run these of the steps that the thread pool would share on the caller's thread, and all others as ever."""
        if self.alone == NULL:
            self.alone = <int8_t*>malloc(self.nsteps + 1)
            if self.alone == NULL:
                raise MemoryError()
        memset(self.alone, 0, self.nsteps + 1)
        for i in steps:
            self.alone[<int64_t>i] = is_shared(&self.steps[<int64_t>i])

    def stands_for(self, tensors):
        """Whether :meth:`attempt` would repeat the call now. Nothing is done."""
        return not self.busy and self.guard.differs() is None and self.fits(list(tensors))

    @property
    def updates(self):
        """The objects that are called between launches."""
        return [thing for thing, _ in self.calls if type(thing) is not Skip]

    def attempt(self, list tensors, clock=None):
        """Repeat the call on ``tensors``, those among its arguments; its result. After an error there are no gradients
        where the call replaces them without reading them.

        ``clock``, a function that tells the time, is asked before and after each launch that the thread pool may share;
        ``took`` has the differences.

        MISS where gradients or state are not there as at the beginning of the call, Python objects are not what they
        were, or another thread is at it; nothing is done then.

        Raises:
            IndexError: a kernel met a bad value, as an index out of range.
        """
        cdef list given
        if self.busy:
            return MISS
        self.busy = True
        try:
            if self.guard.differs() is not None:
                return MISS
            given = list(tensors)
            if not self.fits(given):
                return MISS
            if clock is not None:
                self.clock, self.took = clock, [0] * self.nsteps
            return self.run(given)
        finally:
            self.busy, self.clock = False, None

    cdef bint fits(self, list tensors) except -1:
        """Whether gradients and state are there; the gradients that a replay needs are added to ``tensors``."""
        cdef Tensor leaf, grad
        for where, form, number in self.leaves:
            leaf = <Tensor>(where if isinstance(where, Tensor) else tensors[where])
            if (leaf.grad_ is None) != (form is None):
                return False
            if number is not None:
                grad = <Tensor>leaf.grad_
                if not has_form(grad, <bytes>form) or <uintptr_t>grad.raw % LINE:
                    return False
                tensors.append(grad)
        for thing, _ in self.calls:
            if not thing.fits():
                return False
        return True

    cdef object run(self, list tensors):
        cdef char* memory = NULL
        cdef int64_t i = 0, k, b = 0, flag = 0, nready = len(self.prepared), next = 0
        cdef Step* step
        cdef bint good = True
        cdef list storages = []
        cdef Storage storage
        for number in self.given:
            if unsettled:
                settle((<Tensor>tensors[number]).storage)
            self.move(b, (<Tensor>tensors[number]).raw)
            b += 1
        for storage in self.held:
            if unsettled:
                settle(storage)
            self.move(b, storage.data)
            b += 1
        for where in self.dropped:
            (<Tensor>(where if isinstance(where, Tensor) else tensors[where])).grad_ = None
        for size in self.made:
            storage = new_storage(size)
            storages.append(storage)
            self.move(b, storage.data)
            b += 1
        if self.scratch:
            memory = <char*>take_scratch(self.scratch)
            if memory == NULL:
                raise MemoryError()
            self.move(b, memory)
        try:
            for base, offset, content in self.filled:
                memcpy(self.bases[<int64_t>base] + <int64_t>offset, PyBytes_AS_STRING(content), len(<bytes>content))
            if self.nsteps:
                memset(self.flags, 0, self.flag_ends[self.nsteps - 1])
            while i < self.nsteps:
                step = &self.steps[i]
                i += 1
                if next < nready and i > self.launch_of(next):
                    next += 1
                    if self.stands(next - 1):
                        continue
                if step.kernel == NULL:
                    thing, table = <tuple>self.calls[self.numbers[step.numbers]]
                    if type(thing) is not Skip:
                        thing.replay(table)
                    elif (<float*>self.at[step.pointers])[0] != 0:
                        i += (<Skip>thing).length
                    continue
                if self.clock is None or not is_shared(step):
                    self.launch(i - 1)
                else:
                    before = self.clock()
                    self.launch(i - 1)
                    self.took[i - 1] = self.clock() - before
                if self.flag_ends[i - 1] != flag:
                    for k in range(flag, self.flag_ends[i - 1]):
                        good = good and self.flags[k] == 0
                    flag = self.flag_ends[i - 1]
                    if not good:
                        raise IndexError("a replayed call met a value out of range, such as an index or a class")
        finally:
            if memory != NULL:
                release_scratch(memory, self.scratch)
        for _, storage, ready in self.prepared:
            (<Ready>ready).note(storage)
        for where, times in self.writes:
            storage = <Storage>(where if isinstance(where, Storage) else (<Tensor>tensors[where]).storage)
            storage.version += <int64_t>times
        made = [self.form(<Kept>form, tensors, storages) for form in self.forms]
        for where, value in self.grads:
            (<Tensor>(where if isinstance(where, Tensor) else tensors[where])).grad_ = self.give(value, made)
        return self.give(self.result, made)

    cdef inline void launch(self, int64_t i) noexcept:
        """Run the kernel of step ``i``."""
        cdef Step* step = &self.steps[i]
        if self.alone != NULL and self.alone[i]:
            launch_alone(<kernel_t>step.kernel, self.at + step.pointers, self.numbers + step.numbers, step.total,
                         step.grain)
        else:
            launch(<kernel_t>step.kernel, self.at + step.pointers, <int>step.npointers, self.numbers + step.numbers,
                   <int>step.nnumbers, step.total, step.grain, step.small)

    def prepare(self):
        """Compute the blocks that stand from call to call."""
        cdef char* memory = <char*>take_scratch(self.scratch) if self.scratch else NULL
        cdef int64_t b = self.ngiven, last = self.nbases - 1
        cdef Storage storage
        if self.scratch and memory == NULL:
            raise MemoryError()
        for storage in self.held:
            settle(storage)
            self.move(b, storage.data)
            b += 1
        self.move(last, memory)
        for base, offset, content in self.filled:
            if <int64_t>base == last:
                memcpy(memory + <int64_t>offset, PyBytes_AS_STRING(content), len(<bytes>content))
        for i, storage, ready in self.prepared:
            if not (<Ready>ready).stands(storage):
                self.launch(i)
            (<Ready>ready).note(storage)
        if memory != NULL:
            release_scratch(memory, self.scratch)

    cdef int64_t launch_of(self, int64_t i) except -1:
        """The launch that computes prepared block ``i``."""
        return (<tuple>self.prepared[i])[0]

    cdef bint stands(self, int64_t i) except -1:
        """Whether prepared block ``i`` holds already what its launch would compute."""
        _, source, ready = <tuple>self.prepared[i]
        return (<Ready>ready).stands(<Storage>source)

    cdef inline void move(self, int64_t b, char* address) noexcept:
        """Write the addresses in a base where it is not where it was."""
        cdef int64_t i
        if self.bases[b] != address:
            self.bases[b] = address
            for i in range(self.first[b], self.first[b + 1]):
                self.patches[i].slot[0] = address + self.patches[i].offset

    cdef Tensor form(self, Kept form, list tensors, list storages):
        cdef Tensor t, given
        cdef Storage storage
        if form.argument is not None:
            return tensors[form.argument]
        if form.place == GIVEN:
            given = <Tensor>tensors[self.given[form.index]]
            t = placed(form.like, given.storage, given.raw + form.offset)
        else:
            storage = <Storage>(storages if form.place == MADE else self.held)[form.index]
            t = placed(form.like, storage, storage.data + form.offset)
        t.grad_fn_, t.nr, t.leaf_grad, t.inference = form.node, form.nr, form.leaf_grad, form.inference
        return t

    cdef object give(self, object x, list made):
        """``x`` with tensors for its forms."""
        if type(x) is Kept:
            return made[(<Kept>x).number]
        if type(x) is tuple:
            return tuple([self.give(y, made) for y in <tuple>x])
        if type(x) is list:
            return [self.give(y, made) for y in <list>x]
        if type(x) is dict:
            return {name: self.give(y, made) for name, y in (<dict>x).items()}
        if type(x) is Fields:
            return tuple.__new__((<Fields>x).kind, [self.give(y, made) for y in (<Fields>x).items])
        return x


# ---- observing -------------------------------------------------------------------------------------------------------

def observe(function, tuple args, dict kwargs, list tensors, bint dry=False, dict prepared=None):
    """Call ``function(*args, **kwargs)`` and keep its launches.

    Args:
        tensors: those among the arguments, as `guard.key_of` gives them.
        dry: keep the launches alone, and run no kernel: what the call makes holds anything.
        prepared: blocks that traces keep, such as packed weights, for others to share. Else a dry trace keeps none.
    Returns:
        ``(result, trace)``, or ``(result, (why, place))`` where the call cannot be repeated; ``place`` is None where
        it is the whole of the call.
    """
    cdef Before before = Before()
    cdef Recorder* recorder = begin_recording(True)
    recorder.dry = dry
    cdef Maker maker = Maker(before, tensors)
    maker.prepared, maker.prepares = {} if prepared is None else prepared, prepared is not None or not dry
    cdef bint put_off = put_off_ops(False)
    count_observer(1)
    try:
        try:
            result = function(*args, **kwargs)
            maker.describe_all(recorder, result)
        except NoPlan as error:
            return result, (str(error), None)
        finally:
            end_recording()
            count_observer(-1)
            put_off_ops(put_off)
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
    """Whether a backward pass from ``node`` may reach a leaf: not where every way there was gone and is closed."""
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
    """Makes a trace of what a recorder kept."""

    cdef Before before
    cdef list tensors            # arguments, then gradients of before the call that it uses
    cdef Trace trace
    cdef dict given              # id of a storage -> its number among Trace.given
    cdef dict held               # likewise
    cdef dict made               # number of a block -> number of its storage
    cdef dict forms              # Kept by the id of their tensor
    cdef dict old_grads          # id of a storage -> the leaf whose gradient is in it
    cdef list alive              # tensors that forms are of
    cdef list patches            # (base, offset, address of the slot); bases as (place, index)
    cdef list signature
    cdef dict ready              # number of a prepared block -> Ready
    cdef dict prepared           # Ready by what computes them
    cdef bint prepares
    cdef dict order              # number of a block -> in which order it was met
    cdef dict used               # number of a storage that is made -> the first launch that it is given to

    def __cinit__(self, Before before, list tensors):
        cdef Tensor t
        self.before, self.tensors = before, list(tensors)
        self.trace = Trace.__new__(Trace)
        self.given, self.held, self.made, self.forms, self.alive, self.patches = {}, {}, {}, {}, [], []
        self.signature, self.order, self.old_grads, self.used = [], {}, {}, {}
        self.ready, self.trace.prepared = {}, []
        self.trace.given, self.trace.held, self.trace.made, self.trace.forms = [], [], [], []
        self.trace.filled, self.trace.calls, self.trace.tables, self.trace.writes = [], [], [], []
        self.trace.nargs = len(tensors)
        for i, t in enumerate(tensors):
            if id(t.storage) not in self.given:
                self.given[id(t.storage)] = len(self.trace.given)
                self.trace.given.append(i)
        for leaf, grad in before.leaves:
            if grad is not None and (<Tensor>grad).storage is not None:
                self.old_grads[id((<Tensor>grad).storage)] = (leaf, grad)

    # ---- what is alive at the end ----------------------------------------------------------------------------------
    cdef int describe_all(self, Recorder* r, object result) except -1:
        """Find what the call leaves behind: results and gradients; everything else that it made must be gone."""
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
        for x in self.before.known.values():   # leaves that had no gradient and did not require one
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
                self.trace.writes.append((storage, (<Storage>storage).version - <int64_t>version))
        return 0

    cdef int64_t left_alive(self, Recorder* r) except -2:
        cdef int64_t i
        for i in range(r.nblocks):
            if r.blocks[i].gone < 0 and r.blocks[i].purpose != HELD and r.blocks[i].purpose != FLAG \
                    and r.blocks[i].purpose != TABLE and i not in self.made:
                return i
        return -1

    cdef object owner(self, Tensor leaf):
        """A leaf, or its number where it is an argument."""
        for i in range(self.trace.nargs):
            if self.tensors[i] is leaf:
                return i
        return leaf

    cdef object describe(self, Recorder* r, object x):
        """What the function gave, with forms for the tensors that it made."""
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
            settle(t.storage)    # what was put off is launched now, and is part of the trace
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
        trace.writes = [(self.number_of(storage), times) for storage, times in trace.writes
                        if id(storage) in self.given or id(storage) in self.held]
        trace.signature = tuple(self.signature)
        return trace

    cdef object number_of(self, Storage storage):
        """A storage, or the number of the tensor among those given that it is the storage of."""
        number = self.given.get(id(storage))
        return storage if number is None else self.trace.given[number]

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
        """Whether the numbers of a launch are computed at each replay: an object for that was noted before it."""
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
        """Say what a slot is to be written with before a replay."""
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
        """Keep a block from call to call, if launch ``i`` computes it from one storage that stays."""
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
                    or id(storage) in self.old_grads or any([storage is x for x, _ in self.trace.writes]):
                return 0
            source = storage
            key.append(r.pointers[k] - storage.data)
        if source is not None:
            self.ready[made] = self.prepared.setdefault((source, *key), make_ready(r.blocks[made].nbytes))
            self.trace.prepared.append((i, source, self.ready[made]))
        return 0

    cdef bint is_left_out(self, Recorder* r, int64_t i) except -1:
        """Whether a replay may leave launch ``i`` out."""
        for k in range(i):
            if r.steps[k].kernel == NULL:
                thing = (<list>r.calls)[r.numbers[r.steps[k].numbers]]
                if type(thing) is Skip and k + (<Skip>thing).length >= i:
                    return True
        return False

    cdef int check_given(self, Storage storage, char* address) except -1:
        """Refuse an address in the storage of an argument, but outside of the arguments themselves."""
        cdef int64_t low, high
        cdef Tensor t
        for t in self.tensors:
            if t.storage is storage:
                extent(t, &low, &high)
                if low <= address - t.raw <= high:
                    return 0
        raise NoPlan("what lies beside an argument in its memory is read or written")

    cdef int fill(self, Recorder* r, Room* rooms, int64_t* room_of) except -1:
        """Give blocks room in the memory of a replay; what some hold before the launches."""
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
        """Give blocks room in storages of results that are not in use yet."""
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
        """Sort what is to be written by the base that it depends on."""
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
        """Which gradients there were at the beginning, of all leaves that the call may have given one."""
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
    """Gradients that are given, in the order of their numbers, and then the others."""
    return leaf[2] if leaf[2] is not None else 1 << 60


include "trace_parts.pxi"
