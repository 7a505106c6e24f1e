# What a trace is made of, as Python objects: for who writes it down.


def parts_of(Trace trace):
    """The launches of ``trace`` and what they are given, as a dict.

    Addresses are numbers, those of the trace's own memory: of the slots that hold pointers, of tables, of flags.

    - ``steps``: ``(kernel, first slot, slots, numbers, total, grain, small, flags)`` of each launch; ``flags`` is how
      many bytes of flags there are up to its own; the kernel of a call of Python is 0.
    - ``slots``: address of the first slot, and the values of all.
    - ``tables``: ``(address, content)``; ``flags``: address.
    - ``patches``: ``(base, offset, slot)``: what is written to a slot when the bases are known. Bases are what the
      launches were given, storages of before, results, and the memory for the time of the call, in this order.
    - ``given``: numbers of arguments; ``held``: storages of before; ``made``: bytes of results; ``scratch``: bytes.
    - ``filled``: ``(base, offset, content)``: bytes that are written before the launches.
    - ``prepared``: numbers of launches whose results are kept: they lie in storages of before, see `Trace.prepare`.
    - ``writes``: storages of before, or numbers of arguments, that are written to.
    - ``results``: ``(place, index, offset)`` of each tensor that is given back, None for one of before.
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
        "writes": [where if isinstance(where, int) else id(where) for where, _ in trace.writes],
        "results": results,
    }


def bytes_at(uintptr_t address, int64_t nbytes):
    """A copy of memory of a storage that a trace holds."""
    return PyBytes_FromStringAndSize(<char*>address, nbytes)


def launches_so_far():
    """How many launches of this thread were kept since it is observed; 0 where it is not."""
    cdef Recorder* r = current()
    return r.nsteps if r != NULL else 0
