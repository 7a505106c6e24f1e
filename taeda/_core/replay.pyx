"""Traces: the launches of a whole call, replayed without its Python code.

A plan (`plan.pyx`) records one op, on the meta device. A trace records a whole call, such as a training step, with the
tensors that its code names, gradients and an optimiser (`observing.pyx`). Its launches get these addresses:

- GIVEN: in the storage of an argument, or of a gradient that exists when the call begins;
- HELD: in another storage from before the call, which the trace holds;
- MADE: in a storage that is alive at the end, of a result or a new gradient; each replay makes a new one;
- SCRATCH: in the workspace of the call, which blocks share as their lifetimes allow; or in the memory of a result or
  new gradient before its first use.

A replay updates the addresses that changed since the last replay, and launches. An object may be called between
launches (`recorder.note_call`) to compute numbers that differ from call to call.

The caller must check that a trace is valid: `guard.Guard` checks the Python objects that a function reads,
`Trace.attempt` checks gradients and state, and two calls in a row with the same ``signature`` do the same. See
docs/notes/0016.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from .guard cimport has_form, key_of
from .memory cimport Storage, new_storage, release_scratch, settle, take_scratch, unsettled
from .plan cimport GIVEN, LINE, MADE, Fields, Form, Ready, placed
from .pool cimport kernel_t, launch, launch_alone
from .recorder cimport Recorder, Step, current, note_call
from .recorder cimport is_observing as _is_observing
from .tensor cimport F32, Tensor, address_of


def is_observing():
    """Whether this thread is observed."""
    return bool(_is_observing())


# ---- traces ----------------------------------------------------------------------------------------------------------

#: The result of `Trace.attempt` if it did nothing.
MISS = object()


cdef class Skip:
    """Launches that are skipped if a float32 number in memory is not 0."""

    def __eq__(self, other):
        return isinstance(other, Skip) and self.length == (<Skip>other).length

    def fits(self):
        """Whether it is still valid: always."""
        return True


def call_unless(Tensor found, function):
    """``function()`` if ``found``, a float32 tensor of one element, is 0; else None.

    Each replay of an observed call checks ``found`` again.
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
    """A tensor that a replay makes, a result or a gradient; or an argument that is returned."""


cdef inline bint is_shared(const Step* step) noexcept:
    """Whether the thread pool shares a launch."""
    return step.kernel != NULL and not step.small and step.total > step.grain


cdef class Trace:
    """The launches of one call, with their arguments."""

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
        free(self.writes)
        if self.tables is not None:
            for address, _ in self.tables:
                free(<void*><uintptr_t>address)

    @property
    def launches(self):
        """The number of launches of a replay."""
        return self.nsteps - len(self.calls)

    @property
    def scratch_bytes(self):
        """Bytes of workspace of a replay."""
        return self.scratch

    @property
    def work(self):
        """For each step the address of its kernel, its range, its grain, and whether the thread pool shares it."""
        return [(<uintptr_t>self.steps[i].kernel, self.steps[i].total, self.steps[i].grain, is_shared(&self.steps[i]))
                for i in range(self.nsteps)]

    def keep_alone(self, steps):
        """Run these steps, which the thread pool would share, on the caller's thread; all others as before."""
        if self.alone == NULL:
            self.alone = <int8_t*>malloc(self.nsteps + 1)
            if self.alone == NULL:
                raise MemoryError()
        memset(self.alone, 0, self.nsteps + 1)
        for i in steps:
            self.alone[<int64_t>i] = is_shared(&self.steps[<int64_t>i])

    def stands_for(self, tensors):
        """Whether :meth:`attempt` would replay the call now. It only checks."""
        return not self.busy and not self.differs() and self.fits(list(tensors))

    @property
    def updates(self):
        """The objects that are called between launches."""
        return [thing for thing, _ in self.calls if type(thing) is not Skip]

    def attempt(self, list tensors, clock=None):
        """Replay the call on ``tensors``, those among its arguments; its result. After an error, gradients that the
        call replaces without reading them are None.

        ``clock``, a function that returns the time, is called before and after each launch that the thread pool may
        share; ``took`` has the differences.

        The result is MISS, and nothing is done, if the gradients or state are not those at the beginning of the call,
        if Python objects have changed, or if another thread is replaying the trace.

        Raises:
            IndexError: a kernel met a bad value, as an index out of range.
        """
        if clock is not None and not self.busy:
            self.clock, self.took = clock, [0] * self.nsteps
        return self.attempt_on(tensors)

    cdef object attempt_on(self, list tensors):
        cdef list given
        if self.busy:
            return MISS
        self.busy = True
        try:
            given = list(tensors)
            return MISS if self.differs() or not self.fits(given) else self.run(given)
        finally:
            self.busy, self.clock = False, None

    cdef inline bint differs(self) except -1:
        """Whether Python objects have changed."""
        return self.guard is not None and self.guard.differs() is not None

    cdef bint fits(self, list tensors) except -1:
        """Whether gradients and state have the expected forms. Adds the gradients that a replay needs to
        ``tensors``."""
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
        except KeyboardInterrupt:
            self.count_writes(tensors)
            raise
        finally:
            if memory != NULL:
                release_scratch(memory, self.scratch)
        for _, storage, ready in self.prepared:
            (<Ready>ready).note(storage)
        self.count_writes(tensors)
        made = [self.form(<Kept>form, tensors, storages) for form in self.forms]
        for where, value in self.grads:
            (<Tensor>(where if isinstance(where, Tensor) else tensors[where])).grad_ = self.give(value, made)
        return self.give(self.result, made)

    cdef int count_writes(self, list tensors) except -1:
        cdef Storage storage
        cdef int64_t i
        for i in range(self.nwrites):
            storage = (<Storage>self.writes[i].storage if self.writes[i].storage != NULL
                       else (<Tensor>tensors[self.writes[i].number]).storage)
            storage.version += self.writes[i].times
        return 0

    cdef inline int launch(self, int64_t i) except -1:
        """Run the kernel of step ``i``."""
        cdef Step* step = &self.steps[i]
        if self.alone != NULL and self.alone[i]:
            return launch_alone(<kernel_t>step.kernel, self.at + step.pointers, self.numbers + step.numbers, step.total,
                                step.grain)
        return launch(<kernel_t>step.kernel, self.at + step.pointers, <int>step.npointers, self.numbers + step.numbers,
                      <int>step.nnumbers, step.total, step.grain, step.small)

    def prepare(self):
        """Compute the blocks that are kept from call to call, unless they are valid."""
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
        """Whether prepared block ``i`` is still valid."""
        _, source, ready = <tuple>self.prepared[i]
        return (<Ready>ready).stands(<Storage>source)

    cdef inline void move(self, int64_t b, char* address) noexcept:
        """Update the addresses in a base that has moved."""
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
        """``x`` with tensors in place of its forms."""
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


cdef class Repeated:
    """Replays calls of a function by traces.

    ``_forms``, by the key of a call (`guard.key_of`): an object with the ``traces`` that may be valid for it. If none
    is, ``call_anew(found, args, kwargs)`` makes the call; ``found`` is the result of `key_of`.
    """

    cdef public dict _forms

    def __call__(self, *args, **kwargs):
        found = key_of(args, kwargs)
        if found is not None:
            form = self._forms.get((<tuple>found)[0])
            if form is not None:
                for trace in <list>form.traces:
                    result = ((<Trace>trace).attempt_on((<tuple>found)[1]) if type(trace) is Trace
                              else trace.attempt((<tuple>found)[1]))
                    if result is not MISS:
                        return result
        return self.call_anew(found, args, kwargs)


# ---- the content of a trace as Python objects, for export ------------------------------------------------------------

def parts_of(Trace trace):
    """The launches of ``trace`` and their arguments, as a dict.

    Addresses are numbers, those of the trace's own memory: of the slots that hold pointers, of tables, of flags.

    - ``steps``: ``(kernel, first slot, slots, numbers, total, grain, small, flags)`` of each launch; ``flags`` is how
      many bytes of flags there are up to its own; the kernel of a call of Python is 0.
    - ``slots``: address of the first slot, and the values of all.
    - ``tables``: ``(address, content)``; ``flags``: address.
    - ``patches``: ``(base, offset, slot)``: the address that is written to a slot when the bases are known. Bases are
      the GIVEN storages, the HELD ones, results, and the workspace, in this order.
    - ``given``: numbers of arguments; ``held``: storages; ``made``: bytes of results; ``scratch``: bytes.
    - ``filled``: ``(base, offset, content)``: bytes that are written before the launches.
    - ``prepared``: numbers of launches whose results are kept, in HELD storages; see `Trace.prepare`.
    - ``writes``: HELD storages, or numbers of arguments, that are written to.
    - ``results``: ``(place, index, offset)`` of each returned tensor; None for one from before the call.
    """
    cdef int64_t i, k
    cdef list steps = [], results = []
    cdef Step* step
    cdef Storage storage
    cdef Kept form
    for i in range(trace.nsteps):
        step = &trace.steps[i]
        steps.append((<uintptr_t>step.kernel, step.pointers, step.npointers,
                      tuple([trace.numbers[step.numbers + k] for k in range(step.nnumbers)]),
                      step.total, step.grain, bool(step.small), trace.flag_ends[i]))
    last = max([step_[1] + step_[2] for step_ in steps], default=0)
    for x in (trace.result if type(trace.result) is tuple else (trace.result,)):
        if type(x) is not Kept or (<Kept>x).argument is not None:
            results.append(None)
            continue
        form = <Kept>x
        results.append((("fixed", "given", "made", "scratch")[<int>form.place], form.index, form.offset))
    for storage in trace.held:
        if unsettled:
            settle(storage)
    return {
        "steps": steps,
        "slots": (<uintptr_t>trace.at, tuple([<uintptr_t>trace.at[k] for k in range(last)])),
        "tables": [(address, PyBytes_FromStringAndSize(<char*><uintptr_t>address, nbytes))
                   for address, nbytes in trace.tables],
        "flags": <uintptr_t>trace.flags,
        "patches": [(trace.patches[i].base, trace.patches[i].offset, <uintptr_t>trace.patches[i].slot)
                    for i in range(trace.npatches)],
        "given": list(trace.given),
        "held": [(id(storage), <uintptr_t>storage.data, storage.capacity) for storage in trace.held],
        "made": list(trace.made),
        "scratch": trace.scratch,
        "filled": list(trace.filled),
        "prepared": {i for i, _, _ in trace.prepared},
        "writes": [trace.writes[i].number if trace.writes[i].storage == NULL else <uintptr_t>trace.writes[i].storage
                   for i in range(trace.nwrites)],
        "results": results,
    }


def bytes_at(uintptr_t address, int64_t nbytes):
    """A copy of memory of a storage that a trace holds."""
    return PyBytes_FromStringAndSize(<char*>address, nbytes)


def launches_so_far():
    """The number of recorded launches of this thread; 0 if it is not observed."""
    cdef Recorder* r = current()
    return r.nsteps if r != NULL else 0
