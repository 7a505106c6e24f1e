"""Programs: the launches of a call, to be repeated on other memory.

A plan (`plan.pyx`) repeats an op or a backward pass, a trace (`replay.pyx`) a whole call, such as a training step. Both
are launches whose addresses are known as places (`Place`), and the forms of their results. A run makes storages for the
results and takes memory for the time of the run, whose blocks share room as far as their lifetimes allow. It updates
the addresses whose base has moved since the last run, and launches. What makes programs is `linking.pyx`. See
docs/notes/0014 and 0016.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from . cimport atomics
from .memory cimport Storage, ensure_computed, n_deferred, new_storage, release_scratch, take_scratch
from .pool cimport kernel_t, launch, launch_alone
from .tensor cimport VALUES, Tensor, address_of, alias_tensor, need_memory

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject*)


class NoPlan(RuntimeError):
    """The call cannot be repeated from its launches; the message says why."""


cdef class Form:
    """A tensor that a run makes, a result or a gradient; or an argument that is given back."""


cdef class Fields:
    """The tuple with names, of class ``kind``, that a call gives."""

    def __init__(self, kind, items):
        self.kind, self.items = kind, items


cdef class Ready:
    """A block that a launch has computed from a storage, such as weights in the order in which a kernel reads them.

    It stands as long as nobody writes to that storage. What others may write to unseen is never relied on.
    """

    cdef bint stands(self, Storage source) noexcept:
        return (self.version == source.version and self.data == source.data and not source.shown
                and not source.exports and source.owner is None)

    cdef void note(self, Storage source) noexcept:
        self.before, self.version, self.data = self.version, source.version, source.data


cdef Ready make_ready(int64_t nbytes):
    cdef Ready ready = Ready.__new__(Ready)
    ready.memory, ready.version, ready.before = new_storage(nbytes), -1, -1
    return ready


cdef inline bint is_shared(const Step* step) noexcept:
    """Whether the thread pool shares a launch."""
    return step.kernel != NULL and not step.small and step.total > step.grain


cdef class Skip:
    """Launches that are skipped if a float32 number in memory is not 0."""

    def __eq__(self, other):
        return isinstance(other, Skip) and self.length == (<Skip>other).length

    def fits(self):
        """Whether it is still valid: always."""
        return True


cdef class Program:
    """The launches of one call."""

    def __cinit__(self):
        self.given, self.held, self.made, self.forms = [], [], [], []
        self.filled, self.calls, self.tables, self.prepared = [], [], [], []

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

    @property
    def scratch_bytes(self):
        """Bytes of memory that a run takes beside its results."""
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

    cdef bint take(self) noexcept:
        """Whether no other thread runs the program: then this one may, until `leave`."""
        return atomics.swap_if(&self.busy, 0, 1)

    cdef void leave(self) noexcept:
        atomics.store(&self.busy, 0)

    cdef int64_t first_base(self, Place place) noexcept:
        """The number of the first base of a place: GIVEN storages, those held, results, the memory of the run, and
        PREPARED blocks, in this order."""
        cdef int64_t b = 0
        if place != GIVEN:
            b += len(self.given)
            if place != OWN:
                b += len(self.held)
                if place != MADE:
                    b += len(self.made) + (place == PREPARED)
        return b

    cdef tuple place_of(self, int64_t base):
        """The place of a base, as a word, and its number there."""
        for name, place in (("prepared", PREPARED), ("scratch", SCRATCH), ("made", MADE), ("held", OWN)):
            if base >= self.first_base(place):
                return name, base - self.first_base(place)
        return "given", base

    cdef inline void move(self, int64_t b, char* address) noexcept:
        """Update the addresses in a base that has moved."""
        cdef int64_t i
        if self.bases[b] != address:
            self.bases[b] = address
            for i in range(self.first[b], self.first[b + 1]):
                self.patches[i].slot[0] = address + self.patches[i].offset

    cdef list execute(self, list tensors, list prepared):
        """Launch on ``tensors``. The storages of the results; None where a kernel met a bad value.

        ``prepared``: ``(launch, storage that it reads, Ready)`` of the blocks that are kept.
        """
        cdef char* memory = NULL
        cdef int64_t b = 0
        cdef list storages = []
        cdef Storage storage
        cdef bint good
        for number in self.given:
            self.move(b, address_of(<Tensor>tensors[number]))
            b += 1
        for storage in self.held:
            if n_deferred:
                ensure_computed(storage)
            self.move(b, storage.data)
            b += 1
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
            good = self.launch_all(prepared)
        except KeyboardInterrupt:
            self.count_writes(tensors)
            raise
        finally:
            if memory != NULL:
                release_scratch(memory, self.scratch)
        if not good:
            return None
        for _, storage, ready in prepared:
            (<Ready>ready).note(storage)
        self.count_writes(tensors)
        return storages

    cdef bint launch_all(self, list prepared) except -1:
        """Run the launches; False where one met a bad value: those after it have not run then."""
        cdef int64_t i = 0, k, flag = 0, nready = len(prepared), next = 0
        cdef Step* step
        if self.nsteps:
            memset(self.flags, 0, self.flag_ends[self.nsteps - 1])
        while i < self.nsteps:
            step = &self.steps[i]
            i += 1
            if next < nready and i > <int64_t>(<tuple>prepared[next])[0]:
                _, source, ready = <tuple>prepared[next]
                next += 1
                if (<Ready>ready).stands(<Storage>source):
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
            for k in range(flag, self.flag_ends[i - 1]):
                if self.flags[k]:
                    return False
            flag = self.flag_ends[i - 1]
        return True

    cdef inline int launch(self, int64_t i) except -1:
        """Run the kernel of step ``i``."""
        cdef Step* step = &self.steps[i]
        if self.alone != NULL and self.alone[i]:
            return launch_alone(<kernel_t>step.kernel, self.at + step.pointers, self.numbers + step.numbers, step.total,
                                step.grain)
        return launch(<kernel_t>step.kernel, self.at + step.pointers, <int>step.npointers, self.numbers + step.numbers,
                      <int>step.nnumbers, step.total, step.grain, step.small)

    cdef int count_writes(self, list tensors) except -1:
        cdef Storage storage
        cdef int64_t i
        for i in range(self.nwrites):
            storage = (<Storage>self.writes[i].storage if self.writes[i].storage != NULL
                       else (<Tensor>tensors[self.writes[i].number]).storage)
            storage.version += self.writes[i].times
        return 0

    cdef list make_forms(self, list tensors, list storages):
        """The tensors of the forms, after a run."""
        return [self.make_form(<Form>form, tensors, storages) for form in self.forms]

    cdef Tensor make_form(self, Form form, list tensors, list storages):
        cdef Tensor t, given
        cdef Storage storage
        if form.argument is not None:
            return tensors[form.argument]
        t = alias_tensor(form.like, form.like.nd, form.like.sizes, form.like.strides, 0)
        if form.place == GIVEN:
            given = <Tensor>tensors[self.given[form.index]]
            need_memory(given.storage)
            t.storage, t.raw, t.inference = given.storage, given.raw + form.offset, given.inference
        else:
            storage = <Storage>(storages if form.place == MADE else self.held)[form.index]
            t.storage, t.raw, t.inference = storage, storage.data + form.offset, form.inference
        t.grad_fn_, t.nr, t.leaf_grad = form.node, form.nr, form.leaf_grad
        return t

    cdef object give(self, object x, list made):
        """``x`` with tensors in place of its forms."""
        if type(x) is Form:
            return made[(<Form>x).number]
        if type(x) is tuple:
            return tuple([self.give(y, made) for y in <tuple>x])
        if type(x) is list:
            return [self.give(y, made) for y in <list>x]
        if type(x) is dict:
            return {name: self.give(y, made) for name, y in (<dict>x).items()}
        if type(x) is Fields:
            return tuple.__new__((<Fields>x).kind, [self.give(y, made) for y in (<Fields>x).items])
        return x


cdef Tensor prototype(Tensor t):
    cdef Tensor made, base = <Tensor>Tensor.__new__(Tensor)
    base.code, base.holds = t.code, VALUES
    made = alias_tensor(base, t.nd, t.sizes, t.strides, 0)
    PyObject_GC_UnTrack(<PyObject*>base)  # they have no memory: programs that ask the collector for all tensors, and
    PyObject_GC_UnTrack(<PyObject*>made)  # look at them, do not find these
    return made
