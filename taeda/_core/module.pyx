"""The fast half of ``nn.Module``: attribute access and calls at C speed.

The truth is in the instance's ``__dict__``, as in PyTorch: ``_parameters``, ``_buffers`` and ``_modules`` are plain
dicts that anybody may change. This class has no fields of its own, so a subclass may inherit from other classes, be
copied and be pickled as any Python object.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Size
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

cdef extern from "Python.h":
    PyObject* _PyType_Lookup(PyTypeObject*, PyObject*)
    int Py_GetRecursionLimit()
    object PyObject_GenericGetAttr(object, object)
    int PyObject_GenericSetAttr(object, object, PyObject*) except -1
    object PyObject_GenericGetDict(object, void*)
    object PyObject_VectorcallDict(PyObject*, PyObject**, size_t, PyObject*)
    object PyObject_Call(object, object, PyObject*)
    PyTypeObject* Py_TYPE(object)
    PyTypeObject* TYPE_OF "Py_TYPE"(PyObject*)
    int PyFunction_Check(PyObject*)
    PyTypeObject PyFunction_Type

cdef enum:
    MAX_ARGS = 8  # positional arguments passed without a new tuple

cdef str PARAMETERS = "_parameters"
cdef str BUFFERS = "_buffers"
cdef str MODULES = "_modules"
cdef str FORWARD = "forward"
cdef str GETATTRIBUTE = "__getattribute__"
cdef str GETATTR = "__getattr__"
cdef str FORWARD_HOOKS = "_forward_hooks"
cdef str FORWARD_PRE_HOOKS = "_forward_pre_hooks"
cdef str BACKWARD_HOOKS = "_backward_hooks"
cdef str BACKWARD_PRE_HOOKS = "_backward_pre_hooks"

# Set by the Python half through configure().
cdef object parameter_class = None
cdef object buffer_class = None
cdef object tensor_class = None
cdef object call_hooked = None
cdef object explain = None
cdef list global_hooks = []
cdef list registration_hooks = []
cdef object followed = None  # see follow()


def configure(parameter, buffer, tensor, hooked, explainer, list hooks, list registration):
    """Give the fast half the parts of the Python half that it needs.

    Args:
        parameter: the class whose instances are parameters.
        buffer: the class whose instances are buffers.
        tensor: the Tensor class.
        hooked: ``f(module, args, kwargs)``, the call of a module that has hooks.
        explainer: ``f(module, exception)``, which adds the module's path to an exception on its way out.
        hooks: the dicts of global hooks; a module is called the plain way while all are empty.
        registration: the dicts of parameter, buffer and module registration hooks; while all are empty,
            assignments register directly.
    """
    global parameter_class, buffer_class, tensor_class, call_hooked, explain, global_hooks, registration_hooks
    parameter_class, buffer_class, tensor_class = parameter, buffer, tensor
    call_hooked, explain, global_hooks, registration_hooks = hooked, explainer, hooks, registration


cdef inline PyObject* find(dict d, str kind, object name):
    """The entry of a registry, borrowed; NULL where there is none."""
    cdef PyObject* registry = PyDict_GetItemWithError(d, kind)
    if registry == NULL or not isinstance(<object>registry, dict):
        return NULL
    return PyDict_GetItemWithError(<dict>registry, name)


cdef inline bint filled(dict d, str kind):
    cdef PyObject* registry = PyDict_GetItemWithError(d, kind)
    return registry != NULL and isinstance(<object>registry, dict) and PyDict_Size(<dict>registry) != 0


cdef inline object lookup_registered(dict d, object name):
    """The parameter, buffer or child called ``name``, else MISSING."""
    cdef PyObject* found = find(d, PARAMETERS, name)
    if found == NULL:
        found = find(d, BUFFERS, name)
        if found == NULL:
            found = find(d, MODULES, name)
            if found == NULL:
                return MISSING
    return <object>found


cdef object MISSING = object()


cdef bint any_global(list hooks):
    cdef object d
    for d in hooks:
        if PyDict_Size(d):
            return True
    return False


cdef object run_forward(object self, dict d, tuple args, dict kwargs):
    """``self.forward(*args, **kwargs)``, without the bound method and the second argument tuple in the usual case."""
    cdef PyObject* function = _PyType_Lookup(Py_TYPE(self), <PyObject*>FORWARD)
    cdef PyObject* stack[MAX_ARGS + 1]
    cdef Py_ssize_t n = PyTuple_GET_SIZE(args), i
    cdef PyObject* keywords = <PyObject*>kwargs if kwargs is not None and PyDict_Size(kwargs) else NULL
    if (n > MAX_ARGS or function == NULL or TYPE_OF(function) != &PyFunction_Type
            or PyDict_GetItemWithError(d, FORWARD) != NULL):
        return PyObject_Call(self.forward, args, keywords)
    stack[0] = <PyObject*>self
    for i in range(n):
        stack[i + 1] = <PyObject*>PyTuple_GET_ITEM(args, i)
    return PyObject_VectorcallDict(function, stack, n + 1, keywords)


cdef object call(object self, tuple args, dict kwargs):
    cdef dict d = PyObject_GenericGetDict(self, NULL)
    try:
        if (filled(d, FORWARD_HOOKS) or filled(d, FORWARD_PRE_HOOKS) or filled(d, BACKWARD_HOOKS)
                or filled(d, BACKWARD_PRE_HOOKS) or any_global(global_hooks)):
            return call_hooked(self, args, kwargs)
        return run_forward(self, d, args, kwargs)
    except Exception as failure:
        explain(self, failure)
        raise


cdef object call_followed(object self, tuple args, dict kwargs):
    """A call that ``followed`` knows of while it runs."""
    cdef list modules = followed.modules
    modules.append(self)
    try:
        return call(self, args, kwargs)
    finally:
        modules.pop()


def follow(object stacks):
    """Keep the modules that are being called in the list ``stacks.modules``, outermost first. None stops that."""
    global followed
    followed = stacks


@cython.auto_pickle(False)
cdef class ModuleBase:
    """Attribute access and ``__call__`` of :class:`taeda.nn.Module`."""

    def __call__(self, *args, **kwargs):
        return call(self, args, kwargs) if followed is None else call_followed(self, args, kwargs)

    def __getattribute__(self, name):
        cdef PyObject* found = _PyType_Lookup(Py_TYPE(self), <PyObject*>name)
        cdef dict d
        cdef object value
        if found != NULL:
            try:
                return PyObject_GenericGetAttr(self, name)
            except AttributeError:  # a property that fails, say
                value = lookup_registered(PyObject_GenericGetDict(self, NULL), name)
                if value is MISSING:
                    raise
                return value
        d = PyObject_GenericGetDict(self, NULL)
        found = PyDict_GetItemWithError(d, name)
        if found != NULL:
            return <object>found
        value = lookup_registered(d, name)
        if value is MISSING:
            return PyObject_GenericGetAttr(self, name)  # the usual AttributeError
        return value

    def __getattr__(self, name):
        """A parameter, buffer or child, for a subclass that calls ``super().__getattr__``."""
        cdef object value = lookup_registered(PyObject_GenericGetDict(self, NULL), name)
        if value is MISSING:
            return PyObject_GenericGetAttr(self, name)
        return value


def set_attribute(self, name, value):
    """``Module.__setattr__``: parameters, buffers and children go to their tables.

    A function for the class body of Module: as a slot of ModuleBase it would make ``object.__setattr__(module, ...)``,
    which programs use to go round it, a TypeError.
    """
    cdef dict d
    cdef type kind = type(value)
    if kind is bool or kind is int or kind is float or kind is str or kind is tuple:
        d = PyObject_GenericGetDict(self, NULL)
        if find(d, PARAMETERS, name) == NULL and find(d, MODULES, name) == NULL and find(d, BUFFERS, name) == NULL:
            PyObject_GenericSetAttr(self, name, <PyObject*>value)
            return
    d = PyObject_GenericGetDict(self, NULL)
    if isinstance(value, ModuleBase):
        set_module(self, d, name, value)
    elif isinstance(value, tensor_class) and isinstance(value, parameter_class):
        set_parameter(self, d, name, value)
    elif find(d, PARAMETERS, name) != NULL:
        set_parameter(self, d, name, value)
    elif find(d, MODULES, name) != NULL:
        set_module(self, d, name, value)
    elif find(d, BUFFERS, name) != NULL or (isinstance(value, tensor_class) and isinstance(value, buffer_class)):
        set_buffer(self, d, name, value)
    else:
        PyObject_GenericSetAttr(self, name, <PyObject*>value)



def delete_attribute(self, name):
    """``Module.__delattr__``."""
    cdef dict d = PyObject_GenericGetDict(self, NULL)
    for kind in (PARAMETERS, BUFFERS, MODULES):
        if find(d, kind, name) != NULL:
            del d[kind][name]
            if kind == BUFFERS:
                d["_non_persistent_buffers_set"].discard(name)
            return
    PyObject_GenericSetAttr(self, name, NULL)


cdef extern from *:
    """
    static getattrofunc taeda_module_getattro;
    static PyObject *taeda_module_getattribute, *taeda_module_getattr;

    /* Make object.__new__ the constructor, as for a class written in Python: there are no fields to set up, and a
       mixin that stands before or behind Module among the bases decides which constructor making, copying and
       unpickling call. */
    static void taeda_prepare(PyTypeObject *base, PyObject *getattribute, PyObject *getattr) {
        base->tp_new = PyBaseObject_Type.tp_new;
        if (PyDict_DelItemString(base->tp_dict, "__new__") < 0)
            PyErr_Clear();
        taeda_module_getattro = base->tp_getattro;
        taeda_module_getattribute = getattribute;
        taeda_module_getattr = getattr;
        PyType_Modified(base);
    }

    /* A class that has both __getattribute__ and __getattr__ gets a slot that looks both up by name, at 100 ns a
       time. Ours do the same thing at C speed, so a subclass that overrides neither gets our slot back. */
    static void taeda_quicken(PyTypeObject *type, PyObject *getattribute_name, PyObject *getattr_name) {
        if (_PyType_Lookup(type, getattribute_name) == taeda_module_getattribute
                && _PyType_Lookup(type, getattr_name) == taeda_module_getattr)
            type->tp_getattro = taeda_module_getattro;
    }
    """
    void taeda_prepare(PyTypeObject*, PyObject*, PyObject*)
    void taeda_quicken(PyTypeObject*, PyObject*, PyObject*)

cdef object _own_getattribute = ModuleBase.__dict__["__getattribute__"]
cdef object _own_getattr = ModuleBase.__dict__["__getattr__"]
taeda_prepare(<PyTypeObject*>ModuleBase, <PyObject*>_own_getattribute, <PyObject*>_own_getattr)


def quicken(cls):
    """Give a new subclass of Module its fast attribute access; one with a ``__getattr__`` of its own is asked by that
    for parameters, buffers and children, as in PyTorch."""
    if cls.__getattr__ is not _own_getattr and cls.__getattribute__ is _own_getattribute:
        cls.__getattribute__ = object.__getattribute__
    taeda_quicken(<PyTypeObject*>cls, <PyObject*>GETATTRIBUTE, <PyObject*>GETATTR)


cdef int discard(dict d, object name, str first, str second, str third) except -1:
    """Drop the old meanings of ``name``, so that a new registration does not hide behind them."""
    d.pop(name, None)
    for kind in (first, second, third):
        if kind is not None:
            d[kind].pop(name, None)
            if kind == BUFFERS:
                d["_non_persistent_buffers_set"].discard(name)
    return 0


cdef int set_parameter(self, dict d, name, value) except -1:
    if PyDict_GetItemWithError(d, PARAMETERS) == NULL:
        raise AttributeError("cannot assign parameters before Module.__init__() call: begin with super().__init__()")
    if isinstance(value, parameter_class):
        discard(d, name, None, BUFFERS, MODULES)
    elif value is not None:
        raise TypeError(
            f"cannot assign '{type(value).__module__}.{type(value).__qualname__}' object to parameter '{name}' "
            "(taeda.nn.Parameter or None expected; nn.Parameter(tensor) makes one)"
        )
    self.register_parameter(name, value)
    return 0


cdef int set_module(self, dict d, name, value) except -1:
    cdef PyObject* modules = PyDict_GetItemWithError(d, MODULES)
    if modules == NULL:
        raise AttributeError("cannot assign module before Module.__init__() call: begin with super().__init__()")
    if isinstance(value, ModuleBase):
        discard(d, name, PARAMETERS, BUFFERS, None)
        for hook in (<dict>registration_hooks[2]).values():
            output = hook(self, name, value)
            value = value if output is None else output
    elif value is not None:
        raise TypeError(
            f"cannot assign '{type(value).__module__}.{type(value).__qualname__}' object to child module '{name}' "
            "(taeda.nn.Module or None expected)"
        )
    (<object>modules)[name] = value
    return 0


cdef int set_buffer(self, dict d, name, value) except -1:
    if PyDict_GetItemWithError(d, BUFFERS) == NULL:
        raise AttributeError("cannot assign buffers before Module.__init__() call: begin with super().__init__()")
    if value is not None and not isinstance(value, tensor_class):
        raise TypeError(
            f"cannot assign '{type(value).__module__}.{type(value).__qualname__}' object to buffer '{name}' "
            "(taeda.nn.Buffer, taeda.Tensor or None expected)"
        )
    if isinstance(value, buffer_class):
        discard(d, name, None, None, None)
        persistent = value.persistent
    else:
        persistent = name not in d["_non_persistent_buffers_set"]
    self.register_buffer(name, value, persistent)
    return 0


# ---- what is below a module ------------------------------------------------------------------------------------------

cdef str NAMED_MODULES = "named_modules"
cdef dict OWN = {}   # Module's own methods, by name


def keep_own(cls, *names):
    """Take the methods of ``cls`` with these names for Module's own."""
    for name in names:
        OWN[name] = getattr(cls, name)


cdef bint replaces(module, str name) except -1:
    """Whether ``module`` has another method of that name than Module."""
    return (_PyType_Lookup(Py_TYPE(module), <PyObject*>name) != PyDict_GetItemWithError(OWN, name)
            or PyDict_GetItemWithError(PyObject_GenericGetDict(module, NULL), name) != NULL)


def replaces_any(module, tuple names):
    """Whether ``module`` has another method than Module of one of these names."""
    for name in names:
        if replaces(module, name):
            return True
    return False


def children_of(module, bint named):
    """The children of ``module``, each once; with their names if ``named``."""
    cdef set seen = set()
    if not named and replaces(module, "named_children"):
        for _, child in module.named_children():
            yield child
        return
    for name, child in module._modules.items():
        if child is not None and child not in seen:
            seen.add(child)
            yield (name, child) if named else child


@cython.auto_pickle(False)
cdef class Walk:
    """What a module and all below it have, depth first.

    Args:
        module: where it begins.
        kind: ``"_parameters"`` or ``"_buffers"``: the values in this dict of each module. None: the modules themselves.
        memo: a set of modules to leave out.
        prefix: the name of ``module``.
        recurse: whether to go below ``module``.
        unique: whether to give each once.
        named: whether to give pairs of dotted names and values.
    """

    cdef list levels     # (iterator of names and modules, path), the innermost last; path None: without those below
    cdef object values   # iterator of those of the module met last, with their names if these are asked for
    cdef object kind, memo, path, met
    cdef set seen
    cdef bint recurse, unique, named

    def __init__(self, module, kind=None, memo=None, str prefix="", bint recurse=True, bint unique=True,
                 bint named=True):
        self.kind, self.recurse, self.unique, self.named = kind, recurse, unique, named
        self.memo = set() if memo is None else memo
        self.levels, self.seen = [(iter(((prefix, module),)), "")], set()

    def __iter__(self):
        return self

    cdef object next_module(self):
        """The next module, whose name is then ``path``; None at the end.

        What is below a module is looked up after it has been given: a loop may have changed it.
        """
        cdef object module, name, path, entry
        while True:
            if self.met is not None:
                module, self.met = self.met._modules, None
                if module:
                    if len(self.levels) > Py_GetRecursionLimit():
                        raise RecursionError("a module is below itself")
                    self.levels.append((iter(module.items()), self.path))
            if not self.levels:
                return None
            iterator, path = <tuple>self.levels[len(self.levels) - 1]
            entry = next(iterator, None)
            if entry is None:
                self.levels.pop()
                continue
            name, module = entry
            if module is None:
                continue
            if path is None:
                self.path = name
                return module
            name = f"{path}.{name}" if path else name
            if self.recurse:
                if self.path is not None and not (
                        isinstance(module, ModuleBase) and not replaces(module, NAMED_MODULES)):
                    self.levels.append((iter(module.named_modules(self.memo, name, self.unique)), None))
                    continue
                if module in self.memo:
                    continue
                if self.unique:
                    self.memo.add(module)
                self.met = module
            self.path = name
            return module

    def __next__(self):
        cdef object module, value, item, registry
        while True:
            if self.values is not None:
                for item in self.values:
                    value = (<tuple>item)[1] if self.named else item
                    if value is None or value in self.seen:
                        continue
                    if self.unique:
                        self.seen.add(value)
                    if self.named:
                        return (f"{self.path}.{(<tuple>item)[0]}" if self.path else (<tuple>item)[0]), value
                    return value
                self.values = None
            module = self.next_module()
            if module is None:
                raise StopIteration
            if self.kind is None:
                return (self.path, module) if self.named else module
            registry = getattr(module, self.kind)
            if registry:
                self.values = iter(registry.items() if self.named else registry.values())
