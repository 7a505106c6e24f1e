# Composites: functions that are written in ops.


@cython.binding(False)
cdef class Composite:
    """A function written in ops, which modes that ask for it (``composites = True``) see before its ops."""

    def __cinit__(self):
        self.vectorcall = <void*>composite_entry

    def __init__(self, function, name=None, tuple params=(), tuple defaults=(), tuple takes=(), int npositional=0):
        self.function = function
        self.name = function.__name__ if name is None else name
        self.params = params
        self.defaults = defaults
        self.positions = {p: i for i, p in enumerate(params)}
        fill_takes(self.takes, takes)
        self.ntakes = fill_takes(self.takes, takes[:npositional])
        self.npositional = npositional
        self.may_be_older = not {"factors", "spreads"}.isdisjoint(vars(function))
        for key in OF_FUNCTIONS:
            setattr(self, key, getattr(function, key, None))
        for key, value in vars(function).items():
            if key != "__signature__":
                setattr(self, key, value)
        self.__wrapped__ = function
        plain = getattr(function, "without_out", None)
        if plain is not None and function.__wrapped__ is plain:  # most calls name no `out`: they go there at once
            self.function, self.with_out = plain, function

    def __get__(self, instance, owner):
        """Itself, as an op."""
        return self

    def __repr__(self):
        return f"<function {self.name}>"

    def __reduce__(self):
        return self.__qualname__

    @property
    def __globals__(self):
        import inspect
        return inspect.unwrap(self).__globals__

    @property
    def __signature__(self):
        import inspect
        return inspect.signature(self.__wrapped__)

    def unwatched(self, tuple args, dict kwargs, bint on_meta=False):
        """Call it without asking modes, in the place that it names, or that of its tensors on a device; on device meta
        too, if ``on_meta``. Programs that are recorded on meta tensors have values elsewhere."""
        cdef Found found = Found(CPU_NUMBER, False)
        cdef tuple values = args + tuple(kwargs.values()), names = tuple(kwargs)
        cdef PyObject** items = PySequence_Fast_ITEMS(values)
        cdef int before, kind = unusual(items, len(args), <PyObject*>names)
        look_for_devices(&found, items, len(values), 2)
        if kind == NAMES_DEVICE or kind == ON_DEVICE and asks_for_another(items + len(args), names, found.number):
            result = callbacks.make_there(self, args, kwargs, lambda *a, **k: self.unwatched(a, k))
            if result is not NotImplemented:
                return result
        if on_meta and kind == ON_META:
            result = check_plan(self, items, len(args), <PyObject*>names)
            if result is not NotImplemented:
                return result
        if found.number <= (CPU_NUMBER if on_meta else META_NUMBER) or found.number == here():
            return called(self, "out" in kwargs)(*args, **kwargs)
        before = swap_place(found.number)
        try:
            return called(self, "out" in kwargs)(*args, **kwargs)
        finally:
            swap_place(before)


OF_FUNCTIONS = tuple(
    "__name__ __qualname__ __doc__ __module__ __annotations__ __defaults__ __kwdefaults__ __code__".split())


def renamed(function, str name):
    """``function``, an op or a composite, under a further name: a composite of a call of it, which checks the
    arguments."""
    import inspect
    cdef Composite made = Composite.__new__(Composite)
    plain = inspect.unwrap(function)
    for key in OF_FUNCTIONS:
        setattr(made, key, getattr(plain, key, None))
    made.name = made.__name__ = made.__qualname__ = name
    made.vectorcall = <void*>renamed_entry
    made.params, made.defaults, made.positions = (), (), {}
    made.function = made.__wrapped__ = function
    return made


cdef PyObject* renamed_entry(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    """A call by a further name goes on at once, unless somebody may ask by which name it was called."""
    cdef Py_ssize_t i, n = nargsf & VECTORCALL_COUNT
    cdef PyObject* function = <PyObject*>(<Composite>self).function
    if kwnames != NULL:
        n += PyTuple_GET_SIZE(<object>kwnames)
    if MODES[0] != NULL:
        return composite_entry(self, args, nargsf, kwnames)
    for i in range(n):
        if not is_usual(args[i]):
            return composite_entry(self, args, nargsf, kwnames)
    if type(<object>function) is Op:
        return op_entry(function, args, nargsf, kwnames)
    return composite_entry(function, args, nargsf, kwnames)


cdef inline object called(Composite composite, bint out):
    """The function of a call that does, or does not, name ``out``."""
    return getattr(composite, "with_out", composite.function) if out else composite.function


cdef object composite_call(object self, PyObject** args, size_t nargsf, PyObject* kwnames):
    cdef Composite composite = <Composite>self
    cdef Py_ssize_t n
    cdef int kind
    cdef tuple names
    if MODES[0] != NULL:
        result = call_outer_mode(composite, args, nargsf & VECTORCALL_COUNT, kwnames)
        if result is not NotImplemented:
            return result
    n = nargsf & VECTORCALL_COUNT
    kind = unusual(args, n, kwnames)
    if kind != USUAL:
        result = call_unusual(composite, kind, args, n, kwnames)
        if result is not NotImplemented:
            return result
    if n > composite.npositional and composite.may_be_older:
        today = as_today(composite, args, n, kwnames)
        if today is not None:
            return composite(*today[0], **today[1])
    if composite.params:
        if kwnames != NULL:
            names = spelled_all(composite, <tuple>kwnames, n == 0)
            if names is not None:
                kwnames = <PyObject*>names
            check_keywords(composite, args + n, <tuple>kwnames)
        check_arguments(composite.name, composite.params, composite.takes, <int>min(composite.ntakes, n), args,
                        composite.defaults)
    return PyObject_Vectorcall(called(composite, kwnames != NULL and "out" in <tuple>kwnames), args, nargsf, kwnames)
