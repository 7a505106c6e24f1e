"""Observing a call: how traces are made.

`record_trace` runs the function while a recorder collects the launches, and turns addresses into places of a trace
(`replay.pyx`). It finds the storages from before the call by asking Python's garbage collector for all tensors. There
is no trace if the call does anything beside launches that a replay could not repeat.
"""

import gc

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uintptr_t

from .devices cimport count_elsewhere
from .guard cimport form_of
from .linking cimport Linker, extent
from .memory cimport Storage, ensure_computed, n_deferred
from .program cimport GIVEN, LINE, OWN, Form, Ready, Skip, make_ready, prototype
from .recorder cimport (
    FLAG, HELD, NUMBERS, TABLE, Recorder, Step, begin_recording, end_recording, free_recorder,
)
from .replay cimport Trace
from .tensor cimport VALUES, Node, Tensor

from ..kernels import build
from .fusion import defer_ops
from .program import NoPlan


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
            if n_deferred:
                ensure_computed(t.storage)
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

def record_trace(function, tuple args, dict kwargs, list tensors, bint dry=False, dict prepared=None):
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
    cdef TraceLinker linker = TraceLinker(before, tensors)
    linker.prepared, linker.prepares = {} if prepared is None else prepared, prepared is not None or not dry
    cdef bint deferring = defer_ops(False)
    count_elsewhere(1)
    try:
        try:
            result = function(*args, **kwargs)
            linker.describe_all(recorder, result)
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
            return result, linker.finish(recorder)
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


cdef class TraceLinker(Linker):
    """Makes a trace from the launches of a recorder."""

    cdef Trace trace             # the program
    cdef Before before
    cdef list tensors            # arguments, then gradients from before the call that it uses
    cdef dict old_grads          # id of a storage -> the leaf whose gradient is in it
    cdef dict prepared           # Ready by the launch that computes them
    cdef bint prepares

    def __init__(self, Before before, list tensors):
        cdef Tensor t
        self.program = self.trace = Trace()
        self.before, self.tensors = before, list(tensors)
        self.old_grads = {}
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
        if n_deferred:
            for storage, _ in self.before.storages.values():
                ensure_computed(storage)
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

    cdef object describe_tensor(self, Recorder* r, Tensor t):
        cdef Form form
        cdef object argument = None
        if id(t) in self.forms:
            return self.forms[id(t)]
        for i in range(self.trace.nargs):
            if self.tensors[i] is t:
                argument = i
        if argument is None and id(t) in self.before.known:
            if t.storage is not None and id(t.storage) in self.old_grads:
                raise NoPlan("a gradient of before the call is given back")
            return t
        if n_deferred:
            ensure_computed(t.storage)    # deferred ops are launched now, as part of the trace
        form = self.new_form(t)
        form.argument = argument
        if argument is not None:
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
            form.place, form.index, form.offset = OWN, self.hold(t.storage), t.raw - t.storage.data
        else:
            self.place_made(r, form, t)
        return form

    # ---- launches ----------------------------------------------------------------------------------------------------
    cdef Trace finish(self, Recorder* r):
        self.link(r)
        for thing, table in self.trace.calls:
            if table == 0 and type(thing) is not Skip:
                raise NoPlan("an optimiser's step launches nothing")
        self.find_leaves()
        self.count_writes()
        self.trace.signature = tuple(self.signature)
        return self.trace

    cdef bint add_given(self, Recorder* r, int64_t found, char* address, char** slot) except -1:
        cdef Storage storage
        cdef int64_t number
        cdef Tensor t
        if found >= 0:
            return False
        storage = self.before.at(<uintptr_t>address)
        if storage is None:
            if not build.is_kernel(<uintptr_t>address):
                raise NoPlan("a kernel is given an address that is in no tensor")
            slot[0] = address
            self.signature.append(<uintptr_t>address)
            return True
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
            self.patches.append((OWN, number, address - storage.data, <uintptr_t>slot))
            self.signature.append((id(storage), address - storage.data))
        return True

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
            ready = self.prepared.setdefault((source, *key), make_ready(r.blocks[made].nbytes))
            self.ready[made] = OWN, self.hold((<Ready>ready).memory)
            self.trace.prepared.append((i, source, ready))
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
