# Calls that a mode sees first, or that have conjugate views among their arguments.


cdef bint has_mode() noexcept:
    """Whether a mode may see this thread's calls."""
    return MODES[0] != NULL


cdef inline bint mode_active():
    return MODES[0] != NULL and len(<list>MODES[0]) > 0


cdef inline bint records_steps(object mode):
    """Whether ``mode`` records a program: the steps that make what tensors hold."""
    return getattr(mode, "note_made", None) is not None


cpdef int refuse_recorded(str what) except -1:
    """Raise while a program is recorded: none of its steps does ``what``."""
    for mode in <list>MODES[0] if MODES[0] != NULL else ():
        if records_steps(mode):
            raise RuntimeError(f"{what} is no step of a program, so that export, make_fx and jit.trace would lose it; "
                               "write with copy_(), or use a new tensor")
    return 0


cpdef bint tell_mode(str what, Tensor source=None) except -1:
    """Tell modes that record of values that leave them, those of ``source``, or come, by way of Python; ``what`` says
    how. Returns whether they may be read alone."""
    cdef bint alone = False
    for mode in mode_stack():
        told = getattr(mode, "by_python", None)
        alone |= told is not None and told(what, source)
    return alone


def refuse_reached(Storage storage, str what):
    """Raise while a program is recorded that ``storage`` belongs to: none of its steps does ``what``."""
    for mode in mode_stack() if MODES[0] != NULL else ():
        if records_steps(mode) and mode.holds(storage):
            raise RuntimeError(f"{what} is no step of a program, so that export, make_fx and jit.trace would lose what "
                               "is read or written there; use ops, such as clone() and copy_()")


on_reach(refuse_reached)


def new_generation():
    """Tell storages made from now on from those before. Gives a number: ``born`` of the former is no less."""
    return begin_generation()


cdef int tell_modes(Tensor source, Tensor made) except -1:
    """Tell modes that follow tensors, by ``note_detached``, of ``made``: ``source`` outside the graph, by no op."""
    cdef list stack = mode_stack()
    set_mode_stack([])
    try:
        for mode in stack:
            note = getattr(mode, "note_detached", None)
            if note is not None:
                note(source, made)
    finally:
        set_mode_stack(stack)
    return 0


cdef object call_mode(Op op, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """Hand the call to the innermost mode, with that mode off while it runs."""
    cdef list stack = <list>MODES[0]
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    cdef int kind = unusual(args, n, kwnames)
    cdef object mode
    if kind == FOREIGN or function_modes():
        return hand_over(op, args, n, kwnames)
    if USUAL < kind <= NAMES_DEVICE and not (stack and records_steps(stack[len(stack) - 1])) and any_conjugate_view(
            args, n + m, 2):
        return call_conjugated(op, args, n, kwnames)
    if not stack:
        MODES[0] = NULL
        try:
            return PyObject_Vectorcall(op, args, n, kwnames)
        finally:
            update_modes()
    mode = stack.pop()
    kwargs = {}
    positional = tuple([<object>args[i] for i in range(n)])
    for i in range(m):
        kwargs[(<tuple>kwnames)[i]] = <object>args[n + i]
    update_modes()
    try:
        return mode.handle(op, positional, kwargs)
    finally:
        stack.append(mode)
        update_modes()


cdef object call_outer_mode(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """Hand a call of a composite to the innermost mode that wants composites, with that mode off while it runs.

    NotImplemented where no mode wants it: then the ops it is written in go to the modes.
    """
    cdef list stack = list(<list>MODES[0])
    cdef Py_ssize_t i, m, found = -1
    if function_modes() or unusual(args, n, kwnames) == FOREIGN:
        return hand_over(function, args, n, kwnames)
    for i in range(len(stack) - 1, -1, -1):
        if getattr(stack[i], "composites", False):
            found = i
            break
    if found < 0:
        return NotImplemented
    m = 0 if kwnames == NULL else len(<tuple>kwnames)
    mode = stack.pop(found)
    kwargs = {}
    positional = tuple([<object>args[i] for i in range(n)])
    for i in range(m):
        kwargs[(<tuple>kwnames)[i]] = <object>args[n + i]
    before = mode_stack()
    set_mode_stack(stack)
    try:
        return mode.handle(function, positional, kwargs)
    finally:
        set_mode_stack(before)


cdef bint any_conjugate_view(PyObject** args, Py_ssize_t n, int depth) except -1:
    """Whether a conjugate view is among ``args``, or in a list or tuple of them."""
    cdef Py_ssize_t i
    cdef object x
    for i in range(n):
        x = <object>args[i]
        if isinstance(x, Tensor):
            if is_conjugate_view(<Tensor>x):
                return True
        elif depth and (PyTuple_Check(x) or PyList_Check(x)):
            if any_conjugate_view(PySequence_Fast_ITEMS(x), len(x), depth - 1):
                return True
    return False


cdef object call_conjugated(Op op, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """The call with conjugated views among its arguments."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    cdef list values
    if op.kind != VIEW and not op.inplace and (kwnames == NULL or "out" not in <tuple>kwnames):
        values = [resolved(<object>args[i]) for i in range(n + m)]
        if not any_conjugate_view(PySequence_Fast_ITEMS(values), n + m, 2):  # in lists there may be others
            return PyObject_Vectorcall(op, PySequence_Fast_ITEMS(values), n, kwnames)
    kwargs = {}
    positional = tuple([<object>args[i] for i in range(n)])
    for i in range(m):
        kwargs[(<tuple>kwnames)[i]] = <object>args[n + i]
    return callbacks.conjugated(op, positional, kwargs)


def run_as_it_is(Op op, tuple args, dict kwargs):
    """The op on these very arguments: no mode sees it, and conjugate views are not resolved."""
    cdef PyObject* bound[MAXARGS]
    cdef PyObject* out = NULL
    cdef tuple names = tuple(kwargs), values = args + tuple(kwargs.values())
    packed = bind(op, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names, bound, &out)
    return run(op, bound, <object>out if out != NULL else None)


def recall(Op op, tuple args, dict kwargs, result):
    """``result``, tensors without a graph that the op gave for these arguments before, recorded as if it gave them now.

    For an op that neither writes nor gives views; its body does not run, and no mode sees the call.
    """
    cdef PyObject* bound[MAXARGS]
    cdef PyObject* out = NULL
    cdef tuple names = tuple(kwargs), values = args + tuple(kwargs.values())
    cdef Node node
    packed = bind(op, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names, bound, &out)
    if op.ndiff and NO_GRAD[0] != GRAD_OFF and any_wants_grad(op, bound):
        node = make_node(op, bound, False, None)
        if op.kind == POINTWISE:
            pointwise_metas(node, op, bound, result)
        own_outputs(node, result)
    return result if op.result_type is None else tuple.__new__(op.result_type, result)


def pass_through(mode, function, tuple args, dict kwargs):
    """Run ``function``, an op or a composite that was handed to ``mode``, with that mode on for its inner calls.

    For modes that only watch. Modes that may change the call get it first, with ``mode`` as the outermost one. ``mode``
    then gets the calls that they make. Other watching modes get the call in turn, once each.
    """
    cdef list stack = _thread_modes.stack, handed = getattr(_thread_modes, "handed", [])
    cdef list before = list(stack)
    cdef int before_call = here()
    cdef Found found = Found(CPU_NUMBER, False)
    cdef int kind
    cdef PyObject* bound[MAXARGS]
    cdef PyObject* out = NULL
    cdef tuple names = tuple(kwargs), values = args + tuple(kwargs.values())
    try:
        if is_mode_active():
            stack.insert(0, mode)
            return function(*args, **kwargs)
        _thread_modes.handed = handed + [mode]
        if stack:
            return function(*args, **kwargs)
        kind = unusual(PySequence_Fast_ITEMS(values), len(args), <PyObject*>names)
        if kind == NAMES_DEVICE:
            update_modes()
            return hand_over(
                function, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names, callbacks.make_there
            )
        stack[:] = reversed(_thread_modes.handed)
        _thread_modes.handed = []
        MODES[0] = <PyObject*>stack
        if kind == ON_META:
            result = check_plan(function, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names)
            if result is not NotImplemented:
                return result
            swap_place(META_NUMBER)
        elif kind == ON_DEVICE:
            look_for_devices(&found, PySequence_Fast_ITEMS(values), len(values), 2)
            if found.others:
                result = callbacks.bring_together(function, args, kwargs)
                if result is not NotImplemented:
                    return result
            swap_place(found.number)
            if type(function) is Op:
                function = planner_of(function, found.number)
        if type(function) is not Op:
            return function.unwatched(args, kwargs)
        packed = bind(<Op>function, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names, bound, &out)
        return run(<Op>function, bound, <object>out if out != NULL else None)
    finally:
        swap_place(before_call)
        _thread_modes.handed = handed
        stack[:] = before
        update_modes()


# ---- settings of a thread --------------------------------------------------------------------------------------------


cdef enum:
    INFERENCE_ON = 1
    INFERENCE_ENABLED = 2  # within it, ``enable_grad`` says that grad mode is on, which records nothing
    INFERENCE_RECORDED = 3  # within it, a derivative of a function, which may record; new tensors are plain ones
    INFERENCE_SHIFT = 4    # position of the inference mode in the argument of `restore_grad_mode`


def set_grad_enabled(bint enabled):
    """Turn recording on this thread on or off; gives the previous setting, for ``restore_grad_mode``.

    In forward mode ops are recorded none the less, in nodes that reverse passes do not enter; but not in the body of an
    op, where recording is off altogether. Nor are they in inference mode, which only remembers the setting.
    """
    cdef int previous = NO_GRAD[0] | INFERENCE[0] << INFERENCE_SHIFT
    if INFERENCE[0] and INFERENCE[0] != INFERENCE_RECORDED:
        INFERENCE[0] = INFERENCE_ENABLED if enabled else INFERENCE_ON
        return previous
    if enabled or NO_GRAD[0] == GRAD_OFF:
        return swap_no_grad(GRAD_ON if enabled else GRAD_OFF)
    return swap_no_grad(TANGENTS if FORWARD_LEVELS[0] else GRAD_OFF)


def record_again():
    """Turn recording on on this thread, also in inference mode; gives the previous setting."""
    cdef int previous = NO_GRAD[0] | INFERENCE[0] << INFERENCE_SHIFT
    if INFERENCE[0]:
        INFERENCE[0] = INFERENCE_RECORDED
    swap_no_grad(GRAD_ON)
    return previous


def record_nothing():
    """Turn recording off on this thread, also in forward mode. Returns the previous setting."""
    return swap_no_grad(GRAD_OFF)


def restore_grad_mode(int setting):
    """Record again as before a call that gave ``setting``."""
    if INFERENCE[0] and setting >> INFERENCE_SHIFT:
        INFERENCE[0] = setting >> INFERENCE_SHIFT
    swap_no_grad(setting & ((1 << INFERENCE_SHIFT) - 1))


def enter_forward_mode():
    """Record ops on this thread for forward mode, whatever ``no_grad`` says; gives the previous setting."""
    FORWARD_LEVELS[0] += 1
    return swap_no_grad(GRAD_ON if NO_GRAD[0] == GRAD_ON else TANGENTS)


def exit_forward_mode(int setting):
    """End what ``enter_forward_mode`` began, which gave ``setting``."""
    FORWARD_LEVELS[0] -= 1
    swap_no_grad(setting)


def is_grad_enabled():
    """Whether ops on this thread are recorded for backward passes.

    Returns:
        A bool.
    Examples:
        >>> with taeda.no_grad():
        ...     print(taeda.is_grad_enabled())
        False
    """
    return NO_GRAD[0] == GRAD_ON or INFERENCE[0] == INFERENCE_ENABLED


def is_recorded():
    """Whether ops on this thread are recorded, be it for forward mode alone."""
    return NO_GRAD[0] != GRAD_OFF


def set_inference(int enabled):
    """Turn inference mode on this thread on or off; gives the previous setting."""
    cdef int previous = INFERENCE[0]
    INFERENCE[0] = enabled
    return previous


def is_inference_mode_enabled():
    """Whether tensors made now are inference tensors; see :class:`inference_mode`.

    Returns:
        A bool.
    Examples:
        >>> with taeda.inference_mode():
        ...     print(taeda.is_inference_mode_enabled())
        True
    """
    return INFERENCE[0] != 0 and INFERENCE[0] != INFERENCE_RECORDED


def thread_settings():
    """The settings of this thread, for another thread that continues its work."""
    hooks = list(getattr(_thread_modes, "saved_hooks", ()))
    return NO_GRAD[0], FORWARD_LEVELS[0], INFERENCE[0], OVERRIDE_FLAGS[0], mode_stack(), hooks


def adopt_settings(tuple settings):
    """Set for this thread, a new one, what ``thread_settings`` gave on another."""
    NO_GRAD[0], FORWARD_LEVELS[0], INFERENCE[0], OVERRIDE_FLAGS[0] = settings[:4]
    set_mode_stack(settings[4])
    for pack, unpack in settings[5]:
        push_saved_hooks(pack, unpack)


cdef int transforms = 0      # derivatives of functions (``taeda.func``) that run now, on any thread


def begin_transform():
    """Tell tensors made from now on from those that a function captured. Gives a number: ``born`` of the storages of
    the former is no less."""
    global transforms
    transforms += 1
    return begin_generation()


def end_transform():
    """End what ``begin_transform`` began."""
    global transforms
    transforms -= 1
