"""Keys and guards of a call: forms of its arguments, and contents of the Python objects that its function reads.

`key_of` describes arguments, :class:`Guard` objects. A trace (`replay.pyx`) stands for calls with the same of both.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_Size
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from .devices cimport here
from .memory cimport Storage
from .plan cimport MOST_STORAGES, MOST_WORDS, Key, add_argument, add_word
from .recorder cimport is_observing
from .tensor cimport Tensor, grad_setting, setting_word
from .versions cimport dict_version

cdef extern from *:
    """
    /* The attributes of a class from a file. */
    #if PY_VERSION_HEX < 0x030C0000
      #define taeda_dict_of(cls) Py_NewRef(((PyTypeObject*)(cls))->tp_dict)
    #else
      #define taeda_dict_of(cls) PyType_GetDict((PyTypeObject*)(cls))
    #endif
    """
    dict dict_of "taeda_dict_of"(object)

cdef extern from "Python.h":
    PyObject* TYPE_OF "Py_TYPE"(object)
    PyObject* PyCell_GET(object)

from .tensor import is_mode_active, saved_hooks_active


cdef inline bint is_same(object now, object then) except -1:
    """Whether an attribute is unchanged: the same object, or an equal number or string."""
    if now is then:
        return True
    return type(now) is type(then) and type(now) in (int, float, str, bool, bytes) and now == then


@cython.final
cdef class KeptDict:
    """Entries of a dict, or of an object of a class derived from dict."""

    cdef object where
    cdef list names, values
    cdef PyObject** items        # names and values in turn, as they are met in the dict; of all that it has
    cdef Py_ssize_t size         # -1 where the dict may have others
    cdef bint plain              # of no derived class, which may keep an order of its own
    cdef int64_t version         # when the values were as they are here; 0 where that is not known

    def __cinit__(self, where, list names, bint whole):
        cdef Py_ssize_t i
        self.plain = type(where) is dict
        self.version = dict_version(<PyObject*>where)
        self.where, self.names, self.size = where, names, len(where) if whole else -1
        self.values = [(<dict>where).get(name) for name in names]
        if whole:
            self.items = <PyObject**>malloc((2 * self.size + 1) * sizeof(PyObject*))
            if self.items == NULL:
                raise MemoryError()
            for i in range(self.size):
                self.items[2 * i], self.items[2 * i + 1] = <PyObject*>names[i], <PyObject*>self.values[i]

    def __dealloc__(self):
        free(self.items)

    cdef inline bint is_untouched(self) noexcept:
        """Whether the dict has the very same entries in the same order: a quick look."""
        cdef Py_ssize_t at = 0, i = 0
        cdef PyObject* name
        cdef PyObject* value
        if not self.plain:
            return False
        if self.version and self.version == dict_version(<PyObject*>self.where):
            return True
        if self.size < 0 or PyDict_Size(self.where) != self.size:
            return False
        while PyDict_Next(self.where, &at, &name, &value):
            if self.items[i] != name or self.items[i + 1] != value:
                return False
            i += 2
        self.version = dict_version(<PyObject*>self.where)
        return True

    cdef object differs(self):
        cdef Py_ssize_t i
        cdef PyObject* found
        cdef int64_t version = dict_version(<PyObject*>self.where)
        if self.size >= 0 and PyDict_Size(self.where) != self.size:
            return "the entries of a dict" if not self.names else f"the entries of a dict with {self.names[0]!r}"
        if self.size >= 0 and not self.plain and list(self.where) != self.names:
            return "the order of a dict"
        for i in range(len(self.names)):
            found = PyDict_GetItemWithError(self.where, self.names[i])
            if found != <PyObject*>self.values[i] and (found == NULL or not is_same(<object>found, self.values[i])):
                return repr(self.names[i])
        self.version = version
        return None


@cython.final
cdef class KeptTensor:
    """A tensor in its memory."""

    cdef Tensor tensor
    cdef Storage storage
    cdef char* raw
    cdef bytes form
    cdef object hooks, post_hooks
    cdef Py_ssize_t nhooks

    def __cinit__(self, Tensor t):
        self.tensor, self.storage, self.raw, self.form = t, t.storage, t.raw, form_of(t)
        self.hooks, self.post_hooks, self.nhooks = t.hooks, t.post_hooks, count_hooks(t)

    cdef inline bint is_untouched(self) noexcept:
        return (self.tensor.storage is self.storage and self.tensor.raw == self.raw and self.tensor.hooks is self.hooks
                and self.tensor.post_hooks is self.post_hooks and count_hooks(self.tensor) == self.nhooks
                and has_form(self.tensor, self.form))


cdef inline Py_ssize_t count_hooks(Tensor t) noexcept:
    return (0 if t.hooks is None else PyDict_Size(t.hooks)) + (0 if t.post_hooks is None else PyDict_Size(t.post_hooks))


cdef class Guard:
    """The contents of Python objects before a call."""

    def __cinit__(self):
        self.dicts, self.sequences, self.sets, self.cells = [], [], [], []
        self.tensors, self.storages = [], {}

    def keep_dict(self, where, list names, bint whole):
        """Expect the values of ``names`` in ``where``; with ``whole``, where they are all names in order, no others."""
        self.dicts.append(KeptDict(where, names, whole))

    def keep_sequence(self, where):
        """Expect the items of a list or tuple."""
        self.sequences.append((where, list(where)))

    def keep_set(self, where):
        """Expect the items of a set."""
        self.sets.append((where, set(where)))

    def keep_class(self, cls, list names):
        """Expect the attributes ``names`` of a class."""
        if names:
            self.keep_dict(dict_of(cls), names, False)

    def keep_cell(self, cell, str name):
        """Expect that a closure's cell keeps its content."""
        self.cells.append((cell, cell.cell_contents, name))

    def keep_tensor(self, Tensor t):
        """Expect a tensor in the same memory, of the same form."""
        self.storages[id(t.storage)] = t
        self.tensors.append(KeptTensor(t))

    def shares(self, tensors):
        """Whether one of ``tensors`` shares memory with a tensor that is expected."""
        for t in tensors:
            if id((<Tensor>t).storage) in self.storages:
                return True
        return False

    cpdef object differs(self):
        """The first difference from then, in words; None if there is none."""
        cdef Py_ssize_t i
        cdef PyObject* found
        cdef list values
        for x in self.dicts:
            if not (<KeptDict>x).is_untouched():
                why = (<KeptDict>x).differs()
                if why is not None:
                    return why
        for x in self.tensors:
            if not (<KeptTensor>x).is_untouched():
                return f"the memory of a tensor of sizes {list((<KeptTensor>x).tensor.shape)}"
        for where, values in self.sequences:
            if len(where) != len(values):
                return f"a list of {len(values)}"
            for i in range(len(values)):
                if not is_same(where[i], values[i]):
                    return f"a list of {len(values)}"
        for where, known in self.sets:
            if (len(where) or len(<set>known)) and where != known:
                return f"a set of {len(<set>known)}"
        for cell, value, name in self.cells:
            found = PyCell_GET(cell)
            if found != <PyObject*>value and (found == NULL or not is_same(<object>found, value)):
                return repr(name)
        return None


cdef inline int64_t look_of(Tensor t) noexcept:
    return (t.code | <int64_t>t.leaf_grad << 8 | <int64_t>t.holds << 16 | <int64_t>t.device_type << 24
            | <int64_t>t.nd << 32)


cdef bytes form_of(Tensor t):
    """The form that `has_form` compares: dtype, kind of leaf, sizes, strides."""
    cdef bytes form = PyBytes_FromStringAndSize(NULL, 16 + 16 * t.nd)
    cdef int64_t* words = <int64_t*>PyBytes_AS_STRING(form)
    words[0] = look_of(t)
    words[1] = <int64_t>TYPE_OF(t)
    memcpy(words + 2, t.sizes, t.nd * 8)
    memcpy(words + 2 + t.nd, t.strides, t.nd * 8)
    return form


cdef bint has_form(Tensor t, bytes form) noexcept:
    cdef const int64_t* words = <const int64_t*>PyBytes_AS_STRING(form)
    cdef int d
    if words[0] != look_of(t) or words[1] != <int64_t>TYPE_OF(t):
        return False
    for d in range(t.nd):
        if words[2 + d] != t.sizes[d] or words[2 + t.nd + d] != t.strides[d]:
            return False
    return True


cdef bint add_any(Key* key, object x, list others) except -1:
    """Add an argument to the key. An argument that is no tensor, number, string or container of these goes to
    ``others``.
    """
    if type(x) is dict:
        if not add_word(key, 8, len(x)):
            return False
        for name, value in (<dict>x).items():
            if not add_any(key, name, others) or not add_any(key, value, others):
                return False
        return True
    if type(x) is tuple or type(x) is list:
        if not add_word(key, 6 if type(x) is tuple else 9, len(x)):
            return False
        for value in x:
            if not add_any(key, value, others):
                return False
        return True
    if isinstance(x, Tensor):
        return can_be_given(<Tensor>x) and add_argument(key, <PyObject*>x)
    if x is None or type(x) in (int, float, bool, str) and add_argument(key, <PyObject*>x):
        return x is not None or add_word(key, 4, 0)
    others.append(x)
    return add_word(key, 10, <int64_t><PyObject*>x)


cdef bint can_be_given(Tensor t) noexcept:
    """Whether the graph knows nothing of a tensor but that it is a leaf."""
    return (t.grad_fn_ is None and not t.overrides and t.hooks is None
            and (t.base is None or t.base.grad_fn_ is None and not t.base.leaf_grad))


cpdef object key_of(tuple args, dict kwargs):
    """The key of a call: forms of tensors, values of numbers and strings, identities of other objects, the grad mode.

    Returns:
        ``(key, tensors, others)``; None where there are no traces for such a call.
    """
    cdef int64_t words[MOST_WORDS]
    cdef PyObject* found[MOST_STORAGES]
    cdef Key key
    cdef Tensor t
    cdef list others = [], tensors = []
    cdef Py_ssize_t i
    key.words, key.n, key.room, key.ntensors, key.tensors = words, 1, MOST_WORDS, 0, found
    words[0] = setting_word() | grad_setting() << 8
    if is_mode_active() or saved_hooks_active() or here() or is_observing():
        return None
    for x in args:
        if not add_any(&key, x, others):
            return None
    if kwargs and not add_any(&key, kwargs, others):
        return None
    for i in range(key.ntensors):
        t = <Tensor>key.tensors[i]
        if not add_word(&key, t.leaf_grad | t.inference << 1, <int64_t>TYPE_OF(t)):
            return None
        tensors.append(t)
    return PyBytes_FromStringAndSize(<char*>words, key.n * 8), tensors, others
