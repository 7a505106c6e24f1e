"""Plans: the launches of a call, to be repeated on other memory.

Addresses are blocks and offsets: of an argument's storage, of a result, of memory for the time of the call, whose
blocks share room as far as their lifetimes allow. `Plan.run` is given other tensors of the same form, makes the
results, turns blocks into addresses, and launches. What makes plans is `planning.pyx`. See docs/notes/0014.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from .memory cimport Storage, new_storage, release_scratch, settle, take_scratch
from .pool cimport kernel_t, launch
from .recorder cimport Step, is_observing, note_prepared
from .tensor cimport VALUES, Tensor, address_of, alias_tensor, dtype, need_memory, recorders

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL
    PyObject* TYPE_OF "Py_TYPE"(object)
    void PyObject_GC_UnTrack(PyObject*)

cdef object BAD = object()


class NoPlan(RuntimeError):
    """The call cannot be repeated from its launches; the message says why."""


cdef class Form:
    """A tensor of a plan: which storage, from which byte on, and the form."""


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


cdef class Plan:
    """The launches of one call, for arguments of one form."""

    def __dealloc__(self):
        free(self.steps)
        free(self.pointers)
        free(self.numbers)
        free(self.flagged)

    @property
    def launches(self):
        """For each launch: the address of its kernel, range, grain, and operands ``(place, index, offset)``."""
        names = ("fixed", "given", "made", "scratch", "prepared")
        found = []
        for i in range(self.nsteps):
            first = self.steps[i].pointers
            at = [self.pointers[k] for k in range(first, first + self.steps[i].npointers)]
            found.append((<uintptr_t>self.steps[i].kernel, self.steps[i].total, self.steps[i].grain,
                          [(names[p["place"]], p["index"], p["offset"]) for p in at]))
        return found

    @property
    def scratch_bytes(self):
        """Memory that a run takes beside its results."""
        return self.scratch

    def run(self, arguments):
        """Repeat the launches on ``arguments``, tensors of the forms that the plan was made for, in order.

        Raises:
            ValueError: other forms, or other arguments that share memory.
            IndexError: a kernel met a bad value, as an index out of range.
        """
        cdef list tensors = list(arguments)
        if form_key(tensors) != self.key:
            raise ValueError("the plan was made for arguments of other forms")
        result = self.repeat(tensors)
        if result is BAD:
            raise IndexError("a kernel of this plan met a bad value; call the op itself to be told which")
        return result

    cdef object repeat(self, list tensors):
        """The results; BAD where a kernel met a bad value."""
        cdef char* bases[MOST_STORAGES]
        cdef char* results[MOST_STORAGES]
        cdef char* at[MOST_POINTERS]
        cdef char* memory = NULL
        cdef Pointer* p
        cdef Step* step
        cdef int64_t i, k
        cdef list storages = [], ready
        cdef char* packs[MOST_PREPARED]
        cdef int64_t computed_by[MOST_PREPARED]
        cdef int64_t nready = len(self.prepared), next = 0
        cdef bint good = True
        cdef Storage storage
        for i in range(len(self.given)):
            number, before = <tuple>self.given[i]
            bases[i] = address_of(<Tensor>tensors[number]) - <int64_t>before
        for i in range(len(self.held)):
            if <uintptr_t>(<Storage>self.held[i]).data != self.addresses[i]:
                return BAD
            settle(<Storage>self.held[i])
        for i in range(len(self.made)):
            storage = new_storage(self.made[i])
            storages.append(storage)
            results[i] = storage.data
        if self.scratch:
            memory = <char*>take_scratch(self.scratch)
            if memory == NULL:
                raise MemoryError()
            if self.nflags:
                memset(memory, 0, self.nflags)
        if nready:
            ready = self.look_up(tensors, bases)
            for i in range(nready):
                packs[i], computed_by[i] = (<Ready>ready[i]).memory.data, (<tuple>self.prepared[i])[0]
                note_prepared(packs[i])
        for in_result, number, offset, table in self.filled:
            memcpy((results[<int64_t>number] if in_result else memory) + <int64_t>offset, address_of(<Tensor>table),
                   (<Tensor>table).count)
        try:
            for i in range(self.nsteps):
                if next < nready and i == computed_by[next]:
                    next += 1
                    if (<Ready>ready[next - 1]).stands(self.source(next - 1, tensors)):
                        continue
                step = &self.steps[i]
                p = self.pointers + step.pointers
                for k in range(step.npointers):
                    at[k] = ((<char*>0 if p[k].place == FIXED else bases[p[k].index] if p[k].place == GIVEN
                              else results[p[k].index] if p[k].place == MADE
                              else packs[p[k].index] if p[k].place == PREPARED else memory) + p[k].offset)
                launch(<kernel_t>step.kernel, at, <int>step.npointers, self.numbers + step.numbers, <int>step.nnumbers,
                       step.total, step.grain, step.small)
                if self.flagged[i] and any_word(memory, self.nflags):
                    good = False
                    break
        except KeyboardInterrupt:
            self.count_writes(tensors)
            raise
        finally:
            if memory != NULL:
                release_scratch(memory, self.scratch)
        if not good:
            return BAD
        for i in range(nready):
            (<Ready>ready[i]).note(self.source(i, tensors))
        self.count_writes(tensors)
        return self.give(self.result, tensors, storages)

    cdef int count_writes(self, list tensors) except -1:
        for number, times in self.writes:
            (<Tensor>tensors[number]).storage.version += <int64_t>times
        return 0

    cdef Storage source(self, int64_t i, list tensors):
        """The storage from which the prepared block ``i`` is computed."""
        return (<Tensor>tensors[(<tuple>self.given[(<tuple>self.prepared[i])[1]])[0]]).storage

    cdef list look_up(self, list tensors, char** bases):
        """The prepared blocks: those of the calls before, or others for the time of this call.

        They are kept while ops are deferred, from the second call on that finds the same contents: not those of weights
        that every step changes.
        """
        cdef list found = []
        cdef Storage source
        cdef Ready ready
        for i, (_, number, nbytes) in enumerate(self.prepared):
            source, ready = self.source(i, tensors), None
            if recorders and not is_observing():
                if source.prepared is None:
                    source.prepared = {}
                key = (self, i, bases[<int64_t>number] - source.data)
                known = source.prepared.get(key)
                if type(known) is Ready:
                    ready = <Ready>known
                    if ready.version != source.version and ready.version != ready.before:  # it was of no use
                        del source.prepared[key]
                elif known is not None and known == source.version:
                    ready = source.prepared[key] = make_ready(nbytes)
                else:
                    source.prepared[key] = source.version
            found.append(make_ready(nbytes) if ready is None else ready)
        return found

    cdef object give(self, object x, list tensors, list storages):
        """``x`` with tensors for its forms."""
        cdef Form form
        cdef Tensor given
        cdef Storage storage
        if type(x) is Form:
            form = <Form>x
            if form.argument is not None:
                return tensors[form.argument]
            if form.place == GIVEN:
                given = <Tensor>tensors[(<tuple>self.given[form.index])[0]]
                need_memory(given.storage)
                return placed(form.like, given.storage,
                              given.raw - <int64_t>(<tuple>self.given[form.index])[1] + form.offset)
            storage = <Storage>storages[form.index]
            return placed(form.like, storage, storage.data + form.offset)
        if type(x) is tuple:
            return tuple([self.give(y, tensors, storages) for y in <tuple>x])
        if type(x) is list:
            return [self.give(y, tensors, storages) for y in <list>x]
        if type(x) is Fields:
            return tuple.__new__((<Fields>x).kind, [self.give(y, tensors, storages) for y in (<Fields>x).items])
        return x


cdef bint any_word(const char* data, int64_t nbytes) noexcept nogil:
    cdef int64_t i
    for i in range(nbytes // 8):
        if (<const int64_t*>data)[i]:
            return True
    return False


cdef Tensor prototype(Tensor t):
    cdef Tensor made, base = <Tensor>Tensor.__new__(Tensor)
    base.code, base.holds = t.code, VALUES
    made = alias_tensor(base, t.nd, t.sizes, t.strides, 0)
    PyObject_GC_UnTrack(<PyObject*>base)  # they have no memory: programs that ask the collector for all tensors, and
    PyObject_GC_UnTrack(<PyObject*>made)  # look at them, do not find these
    return made


cdef Tensor placed(Tensor like, Storage storage, char* first):
    cdef Tensor t = alias_tensor(like, like.nd, like.sizes, like.strides, 0)
    t.storage, t.raw = storage, first
    return t


# ---- keys ------------------------------------------------------------------------------------------------------------

cdef bint add_word(Key* key, int64_t tag, int64_t value) noexcept:
    if key.n + 2 > key.room:
        return False
    key.words[key.n], key.words[key.n + 1] = tag, value
    key.n += 2
    return True


cdef bint add_tensor(Key* key, Tensor t) noexcept:
    """Add to a plan's key the tensor's form, its alignment, and the earlier argument with which it shares memory."""
    cdef int64_t i, shared = -1
    cdef int d
    if t.holds != VALUES or t.device_type or key.n + 4 + 2 * t.nd > key.room or key.ntensors >= MOST_STORAGES:
        return False
    for i in range(key.ntensors):
        if (<Tensor>key.tensors[i]).storage is t.storage:
            shared = i
            break
    key.words[key.n] = 1 | t.code << 8 | t.nd << 16 | (shared + 1) << 32
    key.words[key.n + 1] = <int64_t>(<uintptr_t>t.raw % LINE)
    if shared >= 0:
        key.words[key.n + 1] = t.raw - (<Tensor>key.tensors[shared]).raw
    key.n += 2
    for d in range(t.nd):
        key.words[key.n + d], key.words[key.n + t.nd + d] = t.sizes[d], t.strides[d]
    key.n += 2 * t.nd
    key.tensors[key.ntensors] = <PyObject*>t
    key.ntensors += 1
    return True


cdef bint add_text(Key* key, object text) except -1:
    cdef Py_ssize_t n
    cdef const char* data = PyUnicode_AsUTF8AndSize(text, &n)
    cdef int64_t words = (n + 7) // 8
    if n > 64 or key.n + 2 + words > key.room:
        return False
    add_word(key, 5, n)
    if n:
        key.words[key.n + words - 1] = 0
        memcpy(key.words + key.n, data, n)
        key.n += words
    return True


cdef bint add_argument(Key* key, PyObject* x) except -1:
    """Whether the argument is of a kind that a plan can be kept by."""
    cdef double real
    cdef int64_t word
    cdef int overflow = 0
    cdef object o = <object>x
    if PyLong_CheckExact(o):
        word = PyLong_AsLongLongAndOverflow(o, &overflow)
        return not overflow and add_word(key, 2, word)
    if PyTuple_CheckExact(o) or PyList_CheckExact(o):
        if not add_word(key, 6, len(o)):
            return False
        for item in o:
            if not add_argument(key, <PyObject*>item):
                return False
        return True
    if isinstance(o, tuple):     # with names, sizes too: of numbers alone
        if not add_word(key, 7, <int64_t>TYPE_OF(o)) or not add_word(key, 7, PyTuple_GET_SIZE(o)):
            return False
        for item in <tuple>o:
            if not PyLong_CheckExact(item) and isinstance(item, (Tensor, tuple, list)) \
                    or not add_argument(key, <PyObject*>item):
                return False
        return True
    if isinstance(o, Tensor):
        return add_tensor(key, <Tensor>o)
    if PyFloat_CheckExact(o):
        real = PyFloat_AS_DOUBLE(o)
        memcpy(&word, &real, 8)
        return add_word(key, 3, word)
    if o is None or o is True or o is False or type(o) is dtype:  # these live for ever
        return add_word(key, 4, <int64_t>x)
    if PyUnicode_CheckExact(o):
        return add_text(key, o)
    return False


cdef bytes form_key(list tensors):
    """The key of tensors alone; None where they are not of a kind that there are plans for."""
    cdef int64_t words[MOST_WORDS]
    cdef PyObject* found[MOST_STORAGES]
    cdef Key key
    key.words, key.n, key.room, key.ntensors, key.tensors = words, 0, MOST_WORDS, 0, found
    for t in tensors:
        if not isinstance(t, Tensor) or not add_tensor(&key, <Tensor>t):
            return None
    return PyBytes_FromStringAndSize(<char*>words, key.n * 8)


cdef enum:
    MOST_FORMS = 256   # of a function


def once_per_form(function):
    """``function``, of numbers, texts, dtypes, None and tuples of these, called once for each form of its arguments.

    1, 1.0 and True are different forms. A call with any other argument is not kept.
    """
    cdef dict results = {}

    def find(*forms):
        cdef int64_t words[MOST_WORDS]
        cdef PyObject* found[1]
        cdef Key key
        key.words, key.n, key.room, key.ntensors, key.tensors = words, 0, MOST_WORDS, MOST_STORAGES, found
        for x in forms:
            if not add_argument(&key, <PyObject*>x):
                return function(*forms)
        name = PyBytes_FromStringAndSize(<char*>words, key.n * 8)
        result = results.get(name)
        if result is None:
            result = function(*forms)
            if len(results) >= MOST_FORMS:
                results.clear()
            results[name] = result
        return result

    find.__name__ = find.__qualname__ = function.__name__
    find.__doc__, find.__wrapped__ = function.__doc__, function
    return find
