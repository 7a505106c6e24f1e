# Checks of arguments. Ops and composites say which kind of value a parameter takes (`takes` of `ops/table.py`).
# A call is checked here, once, before a body sees its arguments.

cdef enum:
    TAKES_ANY, TAKES_BOOL, TAKES_INT
    TAKES_INTS    # an int or a sequence of ints
    TAKES_FLOAT
    TAKES_NUMBER  # a complex one as well
    TAKES_STR, TAKES_TENSOR
    TAKES_TENSORS # a list or a tuple of them
    TAKES_FLAG    # a bool, or None for False
    TAKES_FORMAT  # a memory format, or None
    TAKES_PIN     # a bool, whether memory is pinned, or None for False
    TAKES_LAYOUT  # taeda.strided, or None for it
    TAKES_DTYPE   # a dtype or one of Python's types of numbers, or None

cdef object TAKES_NAMES = ("anything", "bool", "int", "int or a tuple of ints", "float", "Number", "str", "Tensor",
                           "tuple of Tensors", "bool", "memory_format", "bool", "layout", "dtype")


cdef inline bint is_tensor(PyObject* x) noexcept:
    """``isinstance(x, Tensor)``, without a walk through the base classes of floats and ints."""
    return (type(<object>x) is Tensor
            or not (PyFloat_CheckExact(<object>x) or PyLong_Check(<object>x)) and isinstance(<object>x, Tensor))


cdef inline bint is_small_int(object x):
    """Whether ``x`` is a Python int, no bool, of 64 bits."""
    cdef int overflow = 0
    if not PyLong_CheckExact(x):
        return False
    PyLong_AsLongLongAndOverflow(x, &overflow)
    return overflow == 0


cdef int check_arguments(str op, tuple params, const int8_t* takes, int n, PyObject** given, tuple defaults) except -1:
    """Refuse arguments of the wrong kind. A parameter's default is always right."""
    cdef int i
    for i in range(n):
        if takes[i] != TAKES_ANY and given[i] != <PyObject*>PyTuple_GET_ITEM(defaults, i):
            check_argument(op, params, i, takes[i], <object>given[i])
    return 0


cdef int check_keywords(Composite op, PyObject** values, tuple names) except -1:
    """Refuse arguments of the wrong kind among those that a composite is given by keyword."""
    cdef Py_ssize_t at
    cdef int i
    cdef object found
    for at in range(PyTuple_GET_SIZE(names)):
        found = op.positions.get(<object>PyTuple_GET_ITEM(names, at))
        if found is not None:
            i = found
            if op.takes[i] != TAKES_ANY and values[at] != <PyObject*>PyTuple_GET_ITEM(op.defaults, i):
                check_argument(op.name, op.params, i, op.takes[i], <object>values[at])
        else:
            refuse_keyword(op, <str>PyTuple_GET_ITEM(names, at))
    return 0


cdef enum:
    VARKEYWORDS = 8  # inspect.CO_VARKEYWORDS


cdef int refuse_keyword(Composite op, str name) except -1:
    """Raise for a keyword argument that the function does not take; Python's own error suggests no name."""
    code = getattr(op.function, "__code__", None)
    if name == "out" or code is None or code.co_flags & VARKEYWORDS:
        return 0
    from .nearest import takes_keyword
    if not takes_keyword(code, name):
        known = op.params + ("out",) if hasattr(op, "with_out") else op.params
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{name}'{suggestion(name, known)}")
    return 0


cdef str suggestion(str name, tuple params):
    """`` Did you mean ...?`` for a misspelt parameter."""
    from .nearest import nearest
    return nearest(name, params)


cdef int check_argument(str op, tuple params, int i, int takes, object x) except -1:
    if takes == TAKES_BOOL:
        if PyBool_Check(x):
            return 0
    elif takes == TAKES_FLAG:
        if PyBool_Check(x) or x is None:
            return 0
    elif takes == TAKES_PIN:
        if PyBool_Check(x) or x is None:
            return refuse_to_pin(bool(x))
    elif takes == TAKES_LAYOUT:
        if x is strided or x is None:
            return 0
        if isinstance(x, layout):
            raise NotImplementedError(f"{op}: expected layout {strided}, got {x}; make the tensor without a layout, "
                                      f"and convert it with .to_sparse(layout={x})")
    elif takes == TAKES_FORMAT:
        if isinstance(x, memory_format) or x is None:
            return 0
    elif takes == TAKES_DTYPE:
        if type(x) is dtype or x is None or PyType_Check(x) and x in PYTHON_TYPES:
            return 0
    elif takes == TAKES_INT or takes == TAKES_INTS:
        return 0 if is_small_int(x) else check_whole(op, params, i, takes, x)
    elif takes == TAKES_STR:
        if PyUnicode_Check(x):
            return 0
    elif takes == TAKES_TENSOR:
        if isinstance(x, Tensor):
            return 0
    elif takes == TAKES_TENSORS:
        if PyTuple_Check(x) or PyList_Check(x):
            for item in x:
                if not isinstance(item, Tensor):
                    raise TypeError(f"{argument_label(op, params, i)} must be a tuple of Tensors, but has a "
                                    f"{type(item).__name__}")
            return 0
    elif is_number(x, takes == TAKES_NUMBER):
        if PyLong_Check(x) and not -2**63 <= x < 2**64:
            raise OverflowError(f"{argument_label(op, params, i)} is {x}, which does not fit into 64 bits")
        return 0
    raise_kind(op, params, i, takes, x)


def refuse_to_pin(bint pinned):
    """Raise where pinned memory is asked for, and there is no device to pin it for."""
    if pinned and accelerator() is None:
        raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator "
                           "is available on this system.")
    return 0


cdef bint is_number(object x, bint complex_too) except -1:
    """Whether ``x`` is a number of Python's or NumPy's, or a tensor of no dimensions that is not differentiated."""
    if PyFloat_Check(x) or PyLong_Check(x):
        return True
    if isinstance(x, Tensor):
        return (<Tensor>x).nd == 0 and not wants_grad(<Tensor>x)
    if PyComplex_Check(x):
        return complex_too
    return hasattr(x, "__float__") and hasattr(x, "dtype") and not hasattr(x, "__setitem__")  # NumPy's, not an array


cdef str argument_label(str op, tuple params, int i):
    """The name that an error gives parameter ``i``; -1 stands for the only one, whose position is not known."""
    return f"{op}(): argument '{params[max(i, 0)]}'" + (f" (position {i + 1})" if i >= 0 else "")


cdef int check_whole(str op, tuple params, int i, int takes, object x) except -1:
    """Refuse ``x`` if it is no whole number of 64 bits, nor a sequence of them where those are taken."""
    cdef Py_ssize_t at
    cdef object item
    if takes == TAKES_INTS and (PyTuple_Check(x) or PyList_Check(x)):
        for at, item in enumerate(x):
            if is_small_int(item) or at > 0 and PyBool_Check(item):  # as in PyTorch, where the first one decides
                continue
            item = whole_number(item)
            if item is None:
                raise TypeError(f"{argument_label(op, params, i)} must be a tuple of ints, but has "
                                f"{type(x[at]).__name__} at position {at}")
            if not is_small_int(item):
                raise TypeError(f"{argument_label(op, params, i)} has {item} at position {at}, which does not "
                                f"fit into 64 bits")
        return 0
    item = whole_number(x)
    if item is None:
        raise_kind(op, params, i, takes, x)
    if not is_small_int(item):
        raise ValueError(f"{argument_label(op, params, i)} is {item}, which does not fit into 64 bits")
    return 0


cdef object whole_number(object x):
    """``x`` as a Python int: an int but no bool, an integer of NumPy's, one element of an integer tensor; else None."""
    if PyBool_Check(x):
        return None
    if PyLong_Check(x):
        return int(x)
    if isinstance(x, Tensor):
        return x.item() if KIND[(<Tensor>x).code] == 1 and (<Tensor>x).count == 1 else None
    if PyIndex_Check(x):
        try:
            return x.__index__()
        except TypeError:
            return None
    return None


cdef int raise_kind(str op, tuple params, int i, int takes, object x) except -1:
    cdef str hint = ""
    if takes == TAKES_TENSOR:
        from .mends import not_tensor
        raise not_tensor(argument_label(op, params, i), x)
    if takes == TAKES_TENSORS and isinstance(x, Tensor):
        hint = f"; give the tensors in a list, as in {op}([a, b])"
    kind = TAKES_NAMES[takes]
    if takes == TAKES_DTYPE:
        from .mends import for_dtype
        kind, hint = f"{NAMESPACE}.dtype", for_dtype(x, [str(d) for d in DTYPES], NAMESPACE)
    raise TypeError(f"{argument_label(op, params, i)} must be {kind}, not {type(x).__name__}{hint}")


cdef int fill_takes(int8_t* into, tuple takes) except -1:
    """The kinds of arguments of an op or a composite; how many there are up to the last that does not take anything."""
    cdef int i, n = 0
    for i in range(min(len(takes), MAXARGS)):
        into[i] = takes[i]
        if into[i] != TAKES_ANY:
            n = i + 1
    return n


def whole_numbers(x, str op, str name):
    """``x``, an argument of ``op``, as an int or a tuple of ints.

    Raises:
        TypeError: it is neither a whole number nor a sequence of them.
    """
    if is_small_int(x):
        return x
    check_whole(op, (name,), -1, TAKES_INTS, x)
    if PyTuple_Check(x) or PyList_Check(x):
        return tuple([int(item) if PyBool_Check(item) else whole_number(item) for item in x])
    return whole_number(x)
