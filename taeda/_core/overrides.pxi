# Overrides: `__torch_function__` of subclasses and of other classes.
#
# A thread with a TorchFunctionMode has MODES set, so the call path tests for both kinds of modes at once. A tensor of a
# subclass that overrides says so itself (`overrides`), and `unusual` finds it among the arguments, and objects of other
# classes.

cdef enum:
    FUNCTION_MODES = 2   # there is a TorchFunctionMode
    NO_SUBCLASSES = 4    # DisableTorchFunctionSubclass
    NO_OVERRIDES = 8     # DisableTorchFunction
    NO_DISPATCH = 16     # classes with a __torch_dispatch__ are not asked

    ALWAYS = 2           # in Tensor.overrides: whatever else is switched off

OVERRIDING = set()       # subclasses of Tensor with a __torch_function__ of their own, or the default one
DISPATCHING = set()      # classes with a __torch_dispatch__, which switches of __torch_function__ leave on


cdef inline bint asks_class(Tensor t) noexcept:
    """Whether the ``__torch_dispatch__`` of the class of ``t`` is asked about ops."""
    return t.overrides == ALWAYS and not OVERRIDE_FLAGS[0] & NO_DISPATCH


cdef inline bint function_modes() noexcept:
    """Whether a TorchFunctionMode sees this thread's calls."""
    return OVERRIDE_FLAGS[0] & (FUNCTION_MODES | NO_OVERRIDES) == FUNCTION_MODES


cdef int update_modes() except -1:
    """MODES is NULL where no mode is."""
    stack = getattr(_thread_modes, "stack", None)
    if stack is None:
        stack = _thread_modes.stack = []
    MODES[0] = <PyObject*>stack if stack or function_modes() else NULL
    return 0


def change_overrides(int on, int off):
    """Set and clear bits of this thread's state of overrides; gives the state before."""
    cdef int before = OVERRIDE_FLAGS[0]
    OVERRIDE_FLAGS[0] = (before | on) & ~off
    update_modes()
    return before


cdef object hand_over(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames, object taker=None):
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    kwargs = {}
    positional = tuple([<object>args[i] for i in range(n)])
    for i in range(m):
        kwargs[(<tuple>kwnames)[i]] = <object>args[n + i]
    return (taker or callbacks.overrides)(function, positional, kwargs)


cdef object with_dtypes(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call with dtypes for Python's number types among its arguments."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)
    cdef tuple values = tuple([
        PYTHON_TYPES.get(<object>args[i], <object>args[i]) if PyType_Check(<object>args[i]) else <object>args[i]
        for i in range(n + m)
    ])
    return PyObject_Vectorcall(function, PySequence_Fast_ITEMS(values), n, kwnames)


# ---- arguments that an op does not take as they are ------------------------------------------------------------------

cdef enum:  # in the order in which they are asked about
    USUAL, CONJUGATED, PYTHON_TYPE, NAMES_DEVICE, ON_META, ON_DEVICE, LAID_OUT, FOREIGN


cdef inline bint is_usual(PyObject* x) noexcept:
    """Whether ``x`` is of one of the kinds that nearly all arguments are of."""
    return is_plain(x) or PyLong_Check(<object>x) or PyFloat_CheckExact(<object>x) or x == <PyObject*>None


cdef int unusual_kind(object x, int depth) except -1:
    """The unusual kind of ``x``, or of an item of ``x`` if it is a list or a tuple."""
    cdef Py_ssize_t i
    cdef PyObject** items
    cdef int found = USUAL
    if PyTuple_Check(x) or PyList_Check(x):
        items = PySequence_Fast_ITEMS(x)
        for i in range(len(x)):
            if depth and not is_usual(items[i]):
                found = max(found, unusual_kind(<object>items[i], depth - 1))
        return USUAL if found in (PYTHON_TYPE, NAMES_DEVICE) else found  # those in a list are for the op to read
    if isinstance(x, Tensor):
        if (<Tensor>x).overrides and (
            asks_class(<Tensor>x) or not OVERRIDE_FLAGS[0] & (NO_SUBCLASSES | NO_OVERRIDES)
        ):
            return FOREIGN
        if (<Tensor>x).device_type:
            return ON_META if (<Tensor>x).device_type == META_NUMBER else ON_DEVICE
        return CONJUGATED if is_conjugate_view(<Tensor>x) else USUAL
    if PyUnicode_Check(x) or isinstance(x, dtype):
        return USUAL
    if isinstance(x, device):
        return NAMES_DEVICE if names_another(x) else USUAL
    if PyType_Check(x):
        return PYTHON_TYPE if x in PYTHON_TYPES else USUAL
    if isinstance(x, layout):
        return USUAL if x is strided else LAID_OUT
    if _PyType_Lookup(Py_TYPE(<PyObject*>x), "__torch_function__") != NULL \
            and not OVERRIDE_FLAGS[0] & (NO_SUBCLASSES | NO_OVERRIDES) and callbacks.overriding(type(x)):
        return FOREIGN
    return USUAL


cdef int unusual(PyObject** args, Py_ssize_t n, PyObject* kwnames) except -1:
    """The unusual kind among the arguments of a call; USUAL nearly always."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)
    cdef int found = USUAL
    for i in range(n + m):
        if i >= n and (PyUnicode_Check(<object>args[i]) or is_usual(args[i])):
            if names_place(PyTuple_GET_ITEM(<object>kwnames, i - n), args[i]):
                found = max(found, NAMES_DEVICE)
        elif not is_usual(args[i]):
            found = max(found, unusual_kind(<object>args[i], 2))
    return found


DEVICE = __import__("sys").intern("device")
PIN_MEMORY = __import__("sys").intern("pin_memory")


cdef inline bint names_place(PyObject* name, PyObject* x) except -1:
    """Whether a keyword argument is the name or index of another device, or asks for pinned memory."""
    if name == <PyObject*>DEVICE:
        return (PyLong_CheckExact(<object>x) or PyUnicode_Check(<object>x)) and names_another(<object>x)
    return name == <PyObject*>PIN_MEMORY and <object>x is True


cdef bint names_another(object x) except -1:
    """Whether ``x``, a device or a name, is a device that there is, and not this thread's place."""
    if x is CPU or type(x) is str and x == "cpu":
        return elsewhere and here() > META_NUMBER
    return number_named(x) not in (-1, here()) and here() != META_NUMBER


def is_another(x):
    """Whether a device, or its name, is one that there is, and not this thread's place."""
    return names_another(x)


cdef int number_named(object x) except -2:
    """The number of the device that ``x`` is or names; -1: there is none, or ``x`` is something else."""
    if type(x) is str:
        name, colon, index = (<str>x).partition(":")
        return number_of(name, int(index) if index.isdecimal() else None)
    if type(x) is int:
        x = device(x)  # the index of an accelerator, or an error
    return number_of((<device>x).type, (<device>x).index) if isinstance(x, device) else -1


cdef object call_unusual(object function, int kind, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call with arguments of that kind; NotImplemented where they are taken as they are after all."""
    if kind == FOREIGN:
        return hand_over(function, args, n, kwnames)
    if kind == LAID_OUT:
        return hand_over(function, args, n, kwnames, callbacks.laid_out)
    if kind == ON_META:
        return plan_call(function, args, n, kwnames)
    if kind == ON_DEVICE:
        return call_there(function, args, n, kwnames)
    result = NotImplemented
    if kind == NAMES_DEVICE:
        result = hand_over(function, args, n, kwnames, callbacks.make_there)
    elif kind == PYTHON_TYPE and not getattr(function, "takes_classes", False):
        result = with_dtypes(function, args, n, kwnames)
    if result is NotImplemented and type(function) is Op and any_conjugate_view(
            args, n + (0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)), 2):
        return call_conjugated(<Op>function, args, n, kwnames)
    return result


cdef object check_plan(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """Raise for a call that cannot be planned. NotImplemented where it can be; else its result."""
    if (<dict>(<Op>function).traits if type(function) is Op else vars(function)).get("meta") == "values":
        raise callbacks.needs_values(MetaMemoryError(f"{function.name}(): depends on values, and tensors on device "
                                                     "meta have none; make them on the CPU"))
    return NotImplemented if here() == META_NUMBER else hand_over(function, args, n, kwnames, callbacks.check_meta)


cdef object plan_call(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """Plan the call with tensors on device meta, without running it. Returns NotImplemented if this thread already
    plans.
    """
    result = check_plan(function, args, n, kwnames)
    if result is not NotImplemented:
        return result
    if here() == META_NUMBER:
        if type(function) is Op and any_conjugate_view(
                args, n + (0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)), 2):
            return call_conjugated(<Op>function, args, n, kwnames)
        return NotImplemented
    cdef int before = swap_place(META_NUMBER)
    try:
        return PyObject_Vectorcall(function, args, n, kwnames)
    finally:
        swap_place(before)


cdef struct Found:
    int number       # number of the device that the tensors are on
    bint others      # whether there are tensors elsewhere beside them


cdef int look_for_devices(Found* found, PyObject** args, Py_ssize_t n, int depth) except -1:
    """The device of the tensors among ``args``, or in lists of them."""
    cdef Py_ssize_t i
    cdef object x
    for i in range(n):
        x = <object>args[i]
        if isinstance(x, Tensor):
            if (<Tensor>x).device_type == CPU_NUMBER:
                found.others = True
            elif not found.number:
                found.number = (<Tensor>x).device_type
            elif found.number != (<Tensor>x).device_type:
                found.others = True
        elif depth and (PyTuple_Check(x) or PyList_Check(x)):
            look_for_devices(found, PySequence_Fast_ITEMS(x), len(x), depth - 1)
    return 0


cdef bint asks_for_another(PyObject** values, object names, int number) except -1:
    """Whether a keyword argument names another device than the tensors', or asks for pinned memory."""
    cdef Py_ssize_t i
    cdef int asked
    for i in range(PyTuple_GET_SIZE(names)):
        if PyTuple_GET_ITEM(names, i) == <PyObject*>DEVICE and values[i] != <PyObject*>None:
            x = <object>values[i]
            if isinstance(x, device) or type(x) is str or type(x) is int:
                asked = number_named(x)
                if asked >= 0 and asked != number:
                    return True
        elif PyTuple_GET_ITEM(names, i) == <PyObject*>PIN_MEMORY and <object>values[i] is True:
            return True
    return False


cdef PyObject* running = NULL   # the op that runs on a device


def running_op():
    """The name of the op that runs on a device; None if there is none."""
    return None if running == NULL else (<Op>running).name


cdef object run_there(Op op, int number, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call of an op in the place of its tensors, by its planner there."""
    global running
    cdef PyObject* bound[MAXARGS]
    cdef PyObject* out = NULL
    cdef PyObject* before = running
    cdef object packed
    if any_conjugate_view(args, n + (0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)), 2):
        return call_conjugated(op, args, n, kwnames)
    packed = bind(op, args, n, kwnames, bound, &out)
    running = <PyObject*>op
    try:
        return run(<Op?>planner_of(op, number), bound, <object>out if out != NULL else None)
    finally:
        running = before


cdef object call_there(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call with tensors on a device, in that place. NotImplemented where this is the place already."""
    cdef Found found
    cdef int before
    found.number, found.others = CPU_NUMBER, False
    look_for_devices(&found, args, n + (0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)), 2)
    if kwnames != NULL and asks_for_another(args + n, <object>kwnames, found.number):
        return hand_over(function, args, n, kwnames, callbacks.make_there)
    if found.others:
        result = hand_over(function, args, n, kwnames, callbacks.bring_together)
        if result is not NotImplemented:
            return result
    if here() == found.number:
        return run_there(<Op>function, found.number, args, n, kwnames) if type(function) is Op else NotImplemented
    before = swap_place(found.number)
    try:
        if type(function) is Op:
            result = run_there(<Op>function, found.number, args, n, kwnames)
        else:
            result = PyObject_Vectorcall(function, args, n, kwnames)
    except BaseException:
        end_call()  # the failure on the device is the cause
        raise
    finally:
        swap_place(before)
    end_call()
    return result


#: NumPy's spelling of keyword arguments, and PyTorch's of the first one, taken as PyTorch takes them.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "axes": "dims", "axis0": "dim0", "axis1": "dim1", "x2": "other"}
FIRST = frozenset(("input", "self", "x", "x1", "a"))


cdef object spelled(object name, dict known, tuple params, bint first_is_free, dict also):
    """The parameter, of those ``known``, that a call names ``name``; ``name`` itself where there is none.

    ``also`` has further names, those that PyTorch's own parser has for a parameter.
    """
    if name in known:
        return name
    found = ALIASES.get(name, name)
    if also is not None:
        found = also.get(found, found)
    if found in FIRST:
        found = "input" if "input" in known else params[0] if first_is_free and params else found
    return found if found in known else name


def parameter_named(Op op, str name):
    """The parameter of ``op`` that a call names ``name``."""
    return spelled(name, op.param_index, op.params, True, op.traits.get("also"))


cdef tuple spelled_all(Composite composite, tuple names, bint first_is_free):
    """The arguments' names in ``composite``'s spelling; None if they have it already."""
    for name in names:
        if name not in composite.positions and name != "out":
            also = getattr(composite, "also", None)
            return tuple([spelled(x, composite.positions, composite.params, first_is_free, also) for x in names])
    return None


cdef PyObject* op_entry(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    cdef PyObject* result = (<call_t><void*>op_call)(self, args, nargsf, kwnames)
    if result == NULL and PyErr_ExceptionMatches(AttributeError):
        explain(self, args, nargsf & VECTORCALL_COUNT, kwnames)
    return result


cdef PyObject* composite_entry(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    cdef PyObject* result = (<call_t><void*>composite_call)(self, args, nargsf, kwnames)
    if result == NULL and PyErr_ExceptionMatches(AttributeError):
        explain(self, args, nargsf & VECTORCALL_COUNT, kwnames)
    return result


cdef void explain(PyObject* function, PyObject** args, Py_ssize_t n, PyObject* kwnames) noexcept:
    """The call failed for want of an attribute. Where an argument is no tensor and lacks what tensors have, say
    that."""
    cdef PyObject *kind, *value, *trace
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    PyErr_Fetch(&kind, &value, &trace)
    try:
        refused = None if value == NULL else callbacks.refused(
            <object>function, tuple([<object>args[i] for i in range(n + m)]), () if kwnames == NULL
            else <object>kwnames,
            <object>value)
    except BaseException as error:
        refused = error
    if refused is None:
        PyErr_Restore(kind, value, trace)
        return
    Py_XDECREF(kind)
    Py_XDECREF(value)
    Py_XDECREF(trace)
    PyErr_SetObject(type(refused), refused)


_thread_modes = __import__("threading").local()


def push_mode(mode):
    """From now on this thread's ops go to ``mode.handle(op, args, kwargs)`` first."""
    stack = getattr(_thread_modes, "stack", None)
    if stack is None:
        stack = _thread_modes.stack = []
    stack.append(mode)
    update_modes()


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


cdef int tracers = 0      # threads whose modes are asked for the sizes of tensors


def count_tracers(int change):
    """Count a thread that traces: ``shape`` and ``size`` then ask ``callbacks.traced_sizes``."""
    global tracers
    tracers += change


def plain_sizes(Tensor t):
    """``t.shape``, also under tracing."""
    return make_size(t.nd, t.sizes)


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
