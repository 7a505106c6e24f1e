"""Traces: programs of a whole call, such as a training step, replayed without its Python code.

A plan (`plan.pyx`) records one op, on the meta device. A trace records a whole call as it runs, with the tensors that
its code names, gradients and an optimiser (`trace_record.pyx`). Tensors of a run are the arguments, and gradients that
exist when the call begins. The trace holds the other storages from before the call. Its results are those of the call
and new gradients. An object may be called between launches (`recorder.note_call`) to compute numbers that differ from
call to call.

The caller must check that a trace is valid: `guard.Guard` checks the Python objects that a function reads,
`Trace.attempt` checks gradients and state, and two calls in a row with the same ``signature`` do the same. See
docs/notes/0016.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy

from .guard cimport has_form, key_of
from .memory cimport Storage, ensure_computed, n_deferred, release_scratch, take_scratch
from .program cimport LINE, OWN, SCRATCH, Form, Program, Ready, Skip
from .recorder cimport Recorder, Step, current, is_observing, note_call
from .tensor cimport F32, Tensor, address_of


#: The result of `Trace.attempt` if it did nothing.
MISS = object()


def call_unless(Tensor found, function):
    """``function()`` if ``found``, a float32 tensor of one element, is 0; else None.

    Each replay of an observed call checks ``found`` again.
    """
    cdef Recorder* r = current()
    cdef Skip skip = Skip()
    cdef int64_t begin
    if not is_observing():
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


cdef class Trace(Program):
    """The launches of one call, with their arguments."""

    @property
    def launches(self):
        """The number of launches of a replay."""
        return self.nsteps - len(self.calls)

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
        if not self.take():
            return MISS
        try:
            given = list(tensors)
            return MISS if self.differs() or not self.fits(given) else self.run(given)
        finally:
            self.clock = None
            self.leave()

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
        cdef list storages, made
        for where in self.dropped:
            (<Tensor>(where if isinstance(where, Tensor) else tensors[where])).grad_ = None
        storages = self.execute(tensors, self.prepared)
        if storages is None:
            raise IndexError("a replayed call met a value out of range, such as an index or a class")
        made = self.make_forms(tensors, storages)
        for where, value in self.grads:
            (<Tensor>(where if isinstance(where, Tensor) else tensors[where])).grad_ = self.give(value, made)
        return self.give(self.result, made)

    def prepare(self):
        """Compute the blocks that are kept from call to call, unless they are valid."""
        cdef char* memory = <char*>take_scratch(self.scratch) if self.scratch else NULL
        cdef int64_t b = self.first_base(OWN), last = self.first_base(SCRATCH)
        cdef Storage storage
        if self.scratch and memory == NULL:
            raise MemoryError()
        for storage in self.held:
            ensure_computed(storage)
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
    cdef Form form
    for i in range(trace.nsteps):
        step = &trace.steps[i]
        steps.append((<uintptr_t>step.kernel, step.pointers, step.npointers,
                      tuple([trace.numbers[step.numbers + k] for k in range(step.nnumbers)]),
                      step.total, step.grain, bool(step.small), trace.flag_ends[i]))
    last = max([step_[1] + step_[2] for step_ in steps], default=0)
    for x in (trace.result if type(trace.result) is tuple else (trace.result,)):
        if type(x) is not Form or (<Form>x).argument is not None:
            results.append(None)
            continue
        form = <Form>x
        results.append((*trace.place_of(trace.first_base(form.place) + form.index), form.offset))
    for storage in trace.held:
        if n_deferred:
            ensure_computed(storage)
    return {
        "steps": steps,
        "slots": (<uintptr_t>trace.at, tuple([<uintptr_t>trace.at[k] for k in range(last)])),
        "tables": [(<uintptr_t>PyByteArray_AS_STRING(table), bytes(table)) for table in trace.tables],
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
