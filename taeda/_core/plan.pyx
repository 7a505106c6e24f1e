"""Plans: programs of one op or backward pass, for arguments of one form.

What makes plans is `planning.pyx`; the key of a form is here. See docs/notes/0014.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

from .memory cimport Storage
from .program cimport LINE, PREPARED, Ready, make_ready
from .recorder cimport is_observing
from .tensor cimport VALUES, Tensor, dtype, recorders, setting_word

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL
    PyObject* TYPE_OF "Py_TYPE"(object)

cdef object BAD = object()


cdef class Plan(Program):
    """The launches of one call, for arguments of one form."""

    @property
    def launches(self):
        """For each launch: the address of its kernel, range, grain, and operands ``(place, index, offset)``."""
        cdef dict places = {}
        cdef int64_t i, k
        for i in range(self.npatches):
            places[<uintptr_t>self.patches[i].slot] = (*self.place_of(self.patches[i].base), self.patches[i].offset)
        return [(<uintptr_t>self.steps[i].kernel, self.steps[i].total, self.steps[i].grain, [
                    places.get(<uintptr_t>(self.at + k), ("fixed", 0, <uintptr_t>self.at[k]))
                    for k in range(self.steps[i].pointers, self.steps[i].pointers + self.steps[i].npointers)])
                for i in range(self.nsteps)]

    def run(self, arguments):
        """Repeat the launches on ``arguments``, tensors of the forms that the plan was made for, in order.

        Raises:
            ValueError: other forms, or other arguments that share memory.
            IndexError: a kernel met a bad value, as an index out of range.
        """
        cdef list tensors = list(arguments)
        if form_key(tensors) != self.key:
            raise ValueError("the plan was made for arguments of other forms")
        if not self.take():
            raise RuntimeError("another thread runs the plan")
        result = self.results(tensors)
        if result is BAD:
            raise IndexError("a kernel of this plan met a bad value; call the op itself to be told which")
        return result

    cdef object repeat(self, list tensors):
        """The results. BAD where a kernel met a bad value, or another thread runs the plan."""
        return self.results(tensors) if self.take() else BAD

    cdef object results(self, list tensors):
        """The results of a plan that this thread has taken; BAD where a kernel met a bad value."""
        cdef list storages
        try:
            storages = self.execute(tensors, self.look_up(tensors) if self.prepared else self.prepared)
        finally:
            self.leave()
        return BAD if storages is None else self.give(self.result, self.make_forms(tensors, storages))

    cdef list look_up(self, list tensors):
        """The prepared blocks: those of the calls before, or others for the time of this call.

        They are kept while ops are deferred, from the second call on that finds the same contents: not those of weights
        that every step changes.
        """
        cdef list found = []
        cdef Tensor given
        cdef Storage source
        cdef Ready ready
        cdef int64_t base = self.first_base(PREPARED)
        for i, (launch, number, nbytes) in enumerate(self.prepared):
            given = <Tensor>tensors[self.given[number]]
            source, ready = given.storage, None
            if recorders and not is_observing():
                if source.prepared is None:
                    source.prepared = {}
                key = (self, i, given.raw - source.data)
                known = source.prepared.get(key)
                if type(known) is Ready:
                    ready = <Ready>known
                    if ready.version != source.version and ready.version != ready.before:  # it was of no use
                        del source.prepared[key]
                elif known is not None and known == source.version:
                    ready = source.prepared[key] = make_ready(nbytes)
                else:
                    source.prepared[key] = source.version
            if ready is None:
                ready = make_ready(nbytes)
            self.move(base + <int64_t>i, ready.memory.data)
            found.append((launch, source, ready))
        return found


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
    key.words, key.n, key.room, key.ntensors, key.tensors = words, 1, MOST_WORDS, 0, found
    words[0] = setting_word()
    for t in tensors:
        if not isinstance(t, Tensor) or not add_tensor(&key, <Tensor>t):
            return None
    return PyBytes_FromStringAndSize(<char*>words, key.n * 8)


cdef enum:
    AT_HAND = 256      # a power of 2
    MOST_FORMS = 256   # of a function

cdef list HAND = [None] * AT_HAND   # (table, key, what the table has for it): one object, as other threads write too


cdef int hand_place(Key* key, dict table) noexcept:
    cdef uint64_t a = <uintptr_t><PyObject*>table, b = key.n
    cdef int64_t i
    for i in range(0, key.n - 1, 2):
        a = (a ^ <uint64_t>key.words[i]) * 0x9E3779B97F4A7C15ULL
        b = (b ^ <uint64_t>key.words[i + 1]) * 0xC2B2AE3D27D4EB4FULL
    if key.n & 1:
        a = (a ^ <uint64_t>key.words[key.n - 1]) * 0x9E3779B97F4A7C15ULL
    return <int>((a + b) * 0x9E3779B97F4A7C15ULL >> 56)


cdef object at_hand(Key* key, dict table):
    """What ``table`` has for the key, if that is at hand; None if not.

    A call in a loop finds it without making an object of the key, whose hash takes longer than all the rest.
    """
    entry = HAND[hand_place(key, table)]
    if (entry is not None and (<tuple>entry)[0] is table and PyBytes_GET_SIZE((<tuple>entry)[1]) == key.n * 8
            and memcmp(PyBytes_AS_STRING((<tuple>entry)[1]), key.words, key.n * 8) == 0):
        return (<tuple>entry)[2]
    return None


cdef int keep_at_hand(Key* key, dict table, bytes name, object value) except -1:
    """Keep what ``table`` has for the key of this ``name`` at hand."""
    HAND[hand_place(key, table)] = table, name, value
    return 0


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
        result = at_hand(&key, results)
        if result is not None:
            return result
        name = PyBytes_FromStringAndSize(<char*>words, key.n * 8)
        result = results.get(name)
        if result is None:
            result = function(*forms)
            if len(results) >= MOST_FORMS:
                results.clear()
            results[name] = result
        keep_at_hand(&key, results, name, result)
        return result

    find.__name__ = find.__qualname__ = function.__name__
    find.__doc__, find.__wrapped__ = function.__doc__, function
    return find
