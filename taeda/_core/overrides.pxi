# Overrides: `__torch_function__` of subclasses and of other classes.
#
# A thread whose ops may be overridden has MODES set, so the call path tests for modes and overrides at once. It is set when
# an object of an overriding subclass of Tensor is made, or a TorchFunctionMode entered. Other classes that override get in
# where a call of theirs has failed.

cdef enum:
    LIVE_OVERRIDES = 1   # an object of an overriding subclass was made on this thread
    FUNCTION_MODES = 2   # there is a TorchFunctionMode
    NO_SUBCLASSES = 4    # DisableTorchFunctionSubclass
    NO_OVERRIDES = 8     # DisableTorchFunction

OVERRIDING = set()       # subclasses of Tensor with a __torch_function__ of their own, or the default one
cdef set LIVING = set()  # weak references to the objects of them that there are


cdef inline bint overrides_active() noexcept:
    return not DOOR[0] & NO_OVERRIDES and (DOOR[0] & FUNCTION_MODES or DOOR[0] & (LIVE_OVERRIDES | NO_SUBCLASSES) == LIVE_OVERRIDES)


cdef int update_modes() except -1:
    """MODES is NULL where no mode and no override can be."""
    stack = getattr(_thread_modes, "stack", None)
    if stack is None:
        stack = _thread_modes.stack = []
    MODES[0] = <PyObject*>stack if stack or overrides_active() else NULL
    return 0


def change_overrides(int on, int off):
    """Set and clear bits of this thread's state of overrides; gives the state before."""
    cdef int before = DOOR[0]
    DOOR[0] = (before | on) & ~off
    update_modes()
    return before


cdef int note_override(object t) except -1:
    """An object of a subclass of Tensor is made."""
    if type(t) in OVERRIDING:
        LIVING.add(PyWeakref_NewRef(t, LIVING.discard))
        if not DOOR[0] & LIVE_OVERRIDES:
            DOOR[0] |= LIVE_OVERRIDES
            update_modes()
    return 0


cdef bint may_override(PyObject** args, Py_ssize_t n, int depth) except -1:
    """Whether one of ``args`` has a ``__torch_function__`` that counts."""
    cdef Py_ssize_t i
    cdef object x
    for i in range(n):
        x = <object>args[i]
        if type(x) is Tensor or x is None or PyLong_Check(x) or PyFloat_CheckExact(x) or PyUnicode_Check(x):
            continue
        if isinstance(x, Tensor):
            if type(x) in OVERRIDING:
                return True
        elif PyTuple_Check(x) or PyList_Check(x):
            for item in x:
                if type(item) is not Tensor and depth:
                    args_item = <PyObject*>item
                    if may_override(&args_item, 1, depth - 1):
                        return True
        elif hasattr(type(x), "__torch_function__"):
            return True
    return False


cdef object try_override(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call as `__torch_function__` has it; NotImplemented where none is concerned."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    if not DOOR[0] & FUNCTION_MODES:
        if not LIVING:
            DOOR[0] &= ~LIVE_OVERRIDES
            update_modes()
            return NotImplemented
        if not may_override(args, n + m, 2):
            return NotImplemented
    return hand_over(function, args, n, kwnames)


cdef object hand_over(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames, str taker="overrides"):
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    kwargs = {}
    positional = tuple([<object>args[i] for i in range(n)])
    for i in range(m):
        kwargs[(<tuple>kwnames)[i]] = <object>args[n + i]
    return HELPERS[taker](function, positional, kwargs)


cdef object with_dtypes(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call with dtypes for Python's number types among its arguments; NotImplemented where there are none."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    cdef list values = [<object>args[i] for i in range(n + m)]
    cdef bint found = False
    for i in range(n + m):
        if isinstance(values[i], type) and values[i] in PYTHON_TYPES:
            values[i] = PYTHON_TYPES[values[i]]
            found = True
    if not found:
        return NotImplemented
    return function(*values[:n], **(dict(zip(<tuple>kwnames, values[n:])) if m else {}))


cdef object read_again(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """A call that failed with TypeError, with its arguments in the order and by the names of today if they were in those of
    old programs or of NumPy; NotImplemented where they were not."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    kwargs = {}
    for i in range(m):
        kwargs[(<tuple>kwnames)[i]] = <object>args[n + i]
    read = HELPERS["read_again"](function, [<object>args[i] for i in range(n)], kwargs)
    if read is None:
        return NotImplemented
    return function(*read[0], **read[1])


cdef PyObject* op_entry(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    """`op_call`, and where it failed a look for arguments that override it."""
    cdef PyObject* result = (<call_t><void*>op_call)(self, args, nargsf, kwnames)
    if result == NULL:
        return rescue(self, args, nargsf & VECTORCALL_COUNT, kwnames)
    return result


cdef PyObject* composite_entry(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    cdef PyObject* result = (<call_t><void*>composite_call)(self, args, nargsf, kwnames)
    if result == NULL:
        return rescue(self, args, nargsf & VECTORCALL_COUNT, kwnames)
    return result


cdef PyObject* rescue(PyObject* function, PyObject** args, Py_ssize_t n, PyObject* kwnames) noexcept:
    """The call failed. It asked for device meta; an argument of a class that overrides (not of a Tensor) is asked now; Python's `float`, `int`, `bool`
    or `complex`, meant as a dtype, is made one; an order of arguments of old programs is put right; where it failed because an
    argument has no attribute that tensors have, that is said."""
    cdef PyObject *kind, *value, *trace
    cdef object result, refused = None
    cdef Py_ssize_t m = 0
    cdef bint missing = PyErr_ExceptionMatches(AttributeError)
    cdef bint on_meta = PyErr_ExceptionMatches(OnMeta)
    if not on_meta and (DOOR[0] & NO_OVERRIDES or not (missing or PyErr_ExceptionMatches(TypeError))):
        return NULL
    PyErr_Fetch(&kind, &value, &trace)
    try:
        if kwnames != NULL:
            m = len(<tuple>kwnames)
        if on_meta or may_override(args, n + m, 2):
            result = hand_over(<object>function, args, n, kwnames, "on_meta" if on_meta else "overrides")
            Py_INCREF(result)
            Py_XDECREF(kind)
            Py_XDECREF(value)
            Py_XDECREF(trace)
            return <PyObject*>result
        result = with_dtypes(<object>function, args, n, kwnames)
        if result is NotImplemented and not missing:
            result = read_again(<object>function, args, n, kwnames)
        if result is not NotImplemented:
            Py_INCREF(result)
            Py_XDECREF(kind)
            Py_XDECREF(value)
            Py_XDECREF(trace)
            return <PyObject*>result
        if missing and value != NULL:
            refused = HELPERS["refused"](<object>function, tuple([<object>args[i] for i in range(n + m)]),
                                         () if kwnames == NULL else <object>kwnames, <object>value)
            if refused is not None:
                raise refused
    except BaseException as error:
        Py_XDECREF(kind)
        Py_XDECREF(value)
        Py_XDECREF(trace)
        PyErr_SetObject(type(error), error)
        return NULL
    PyErr_Restore(kind, value, trace)
    return NULL


_thread_modes = __import__("threading").local()


def push_mode(mode):
    """From now on this thread's ops go to ``mode.handle(op, args, kwargs)`` first."""
    stack = getattr(_thread_modes, "stack", None)
    if stack is None:
        stack = _thread_modes.stack = []
    stack.append(mode)
    update_modes()


def is_any_mode_active():
    """Whether this thread's ops go to a mode first."""
    return mode_active()


def is_mode_active():
    """Whether this thread's ops go to a mode first that may do something else with them, not one that only watches."""
    if not mode_active():
        return False
    for mode in <list>MODES[0]:
        if not getattr(mode, "watches", False):
            return True
    return False


def pop_mode():
    """Take the innermost mode off."""
    mode = _thread_modes.stack.pop()
    update_modes()
    return mode


def mode_stack():
    """This thread's modes, outermost first."""
    return list(getattr(_thread_modes, "stack", ()))


def set_mode_stack(list modes):
    """Put ``modes`` in place of this thread's modes."""
    stack = getattr(_thread_modes, "stack", None)
    if stack is None:
        stack = _thread_modes.stack = []
    stack[:] = modes
    update_modes()


def current_mode():
    """This thread's innermost mode, or None."""
    return None if MODES[0] == NULL or not <list>MODES[0] else (<list>MODES[0])[len(<list>MODES[0]) - 1]
