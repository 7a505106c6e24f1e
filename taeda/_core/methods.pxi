# Ops and composites as methods of Tensor, and what Python shows of the types.


cdef class Method:
    """An op, or a composite, as a method of Tensor, which binds to the tensor that it is looked up on.

    The function itself does not: ``activation = taeda.relu`` in the body of a class is no method. The two are equal.
    """

    cdef void* vectorcall
    cdef readonly object function
    cdef readonly str __name__

    def __cinit__(self, function, str name):
        self.function = function
        self.__name__ = name
        if type(function) is Op:
            self.vectorcall = <void*>op_method
        else:
            self.vectorcall = <void*>composite_method

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __getattribute__(self, name):
        if name in METHODS_OWN:
            return object.__getattribute__(self, name)
        return getattr(self.function, name)

    def __hash__(self):
        return hash(self.function)

    def __eq__(self, other):
        return self.function is ((<Method>other).function if type(other) is Method else other)

    def __repr__(self):
        return f"<method '{self.__name__}' of 'Tensor' objects>"

    @property
    def __qualname__(self):
        return self.__name__

    def __reduce__(self):
        return getattr, (Tensor, self.__name__)


cdef PyObject* op_method(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    return op_entry(<PyObject*>(<Method>self).function, args, nargsf, kwnames)


cdef PyObject* composite_method(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    return composite_entry(<PyObject*>(<Method>self).function, args, nargsf, kwnames)


def install(name, function):
    """Put ``function`` into the Tensor type under ``name``."""
    cdef PyTypeObject* t = <PyTypeObject*>Tensor
    (<dict>t.tp_dict)[name] = Method(function, name) if type(function) in (Op, Composite) else function
    PyType_Modified(t)


def set_namespace(str name):
    """The package name that reprs and types show (``taeda.float32``, ``<class 'taeda.Size'>``); gives the previous
    one."""
    global NAMESPACE
    previous = NAMESPACE
    NAMESPACE = name
    for cls in (Size, layout, memory_format):
        cls.__module__ = name
    for cls in (Tensor, dtype, device):
        # kept: the type has the pointer
        full = TYPE_NAMES.setdefault((name, cls.__name__), f"{name}.{cls.__name__}".encode())
        (<PyTypeObject*>cls).tp_name = <char*><bytes>full
        PyType_Modified(<PyTypeObject*>cls)
    return previous


cdef dict TYPE_NAMES = {}


cdef int _prepare_tensor_type() except -1:
    """Give Tensor a lazily made instance dict, which Cython would make for every object, and let programs set its
    methods."""
    cdef Tensor probe = <Tensor>Tensor.__new__(Tensor)
    cdef PyTypeObject* t = <PyTypeObject*>Tensor
    t.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE
    t.tp_dictoffset = <char*>attributes_slot(probe) - <char*><void*>probe
    install("__dict__", property(
        lambda self: PyObject_GenericGetDict(self, NULL),
        lambda self, attributes: PyObject_GenericSetDict(self, attributes, NULL),
    ))
    return 0


cdef int _prepare_op_type() except -1:
    """Give the Op type the vectorcall protocol, which Cython has no syntax for."""
    cdef Op probe = Op.__new__(Op)
    cdef PyTypeObject* t = <PyTypeObject*>Op
    t.tp_vectorcall_offset = <char*>&probe.vectorcall - <char*><void*>probe
    t.tp_call = PyVectorcall_Call
    t.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    PyType_Modified(t)
    cdef Composite composite = Composite.__new__(Composite)
    cdef Method method = Method.__new__(Method, probe, "")
    t = <PyTypeObject*>Method
    t.tp_vectorcall_offset = <char*>&method.vectorcall - <char*><void*>method
    t.tp_call = PyVectorcall_Call
    t.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
    PyType_Modified(t)
    # for help(), which does not ask __getattribute__
    (<dict>t.tp_dict)["__doc__"] = property(lambda self: self.function.__doc__)
    t = <PyTypeObject*>Composite
    t.tp_vectorcall_offset = <char*>&composite.vectorcall - <char*><void*>composite
    t.tp_call = PyVectorcall_Call
    t.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    (<dict>t.tp_dict)["__doc__"] = Docstring(Composite.__doc__)
    PyType_Modified(t)
    t = <PyTypeObject*>Op
    (<dict>t.tp_dict)["__doc__"] = Docstring(Op.__doc__)
    PyType_Modified(t)
    return 0


class Docstring:
    """The docstring of ops: a stanza's text is completed when it is read (``ops/docs.py``), not when the op is made."""

    def __init__(self, of_type):
        self.of_type = of_type

    def __get__(self, function, owner=None):
        return self.of_type if function is None else callbacks.docstring(function)

    def __set__(self, function, text):
        vars(function)["__doc__"] = text


METHODS_OWN = frozenset(
    "function __name__ __qualname__ __class__ __get__ __reduce__ __reduce_ex__ __eq__ __hash__ __call__".split())
