# `Function.apply` where every argument and every result is an ordinary tensor, or none. What is marked (`mark_dirty`
# and the like), passed through, a view, or of another kind goes to `autograd/function.py`, which has the whole of it.


cdef inline bint is_ordinary(Tensor t) noexcept:
    return t.holds == VALUES and not t.overrides


def run_function(type context_class, tuple args, forward, setup, own_outputs):
    """Run ``forward`` and, where an input requires grad, record a node of the class.

    Args:
        context_class: of the node, which is what ``forward`` is given as ``ctx``.
        setup: ``setup_context``, then ``forward`` gets no ``ctx``; else None.
        own_outputs: what the caller gets, from ``(ctx, args, outputs, versions, record)``, where that is not here.
    Returns:
        The result; NotImplemented where nothing was run, since an argument is not ordinary.
    """
    cdef Py_ssize_t i, n = PyTuple_GET_SIZE(args)
    cdef tuple needs = PyTuple_New(n)
    cdef bint record = False, followed
    cdef int previous
    cdef PyObject* x
    for i in range(n):
        x = PyTuple_GET_ITEM(args, i)
        followed = False
        if is_tensor(x):
            if not is_ordinary(<Tensor>x):
                return NotImplemented
            followed = wants_grad(<Tensor>x)
            record |= followed
        Py_INCREF(followed)
        PyTuple_SET_ITEM(needs, i, followed)
    versions = []
    for i in range(n):
        x = PyTuple_GET_ITEM(args, i)
        versions.append((<Tensor>x).version_offset + (<Tensor>x).storage.version
                        if is_tensor(x) and not (<Tensor>x).inference else 0)
    ctx = context_class()
    ctx.needs_input_grad = needs
    record = record and NO_GRAD[0] != GRAD_OFF
    previous = swap_no_grad(GRAD_OFF)
    try:
        if setup is None:
            output = forward(ctx, *args)
        else:
            output = forward(*args)
            setup(ctx, args, output)
    finally:
        swap_no_grad(previous)
    if not record and ctx._dirty == ():
        return output
    if ctx._dirty == () and ctx._non_differentiable == ():
        if own_result(ctx, args, output):
            return output
    if type(output) is tuple or isinstance(output, tuple):
        return tuple(own_outputs(ctx, args, list(output), versions, record))
    return own_outputs(ctx, args, [output], versions, record)[0]


cdef bint is_new(object x, tuple args) except -1:
    """Whether a result is no tensor, or a tensor that the function has made, with memory of its own."""
    cdef Py_ssize_t i
    if not isinstance(x, Tensor):
        return True
    if not is_ordinary(<Tensor>x) or (<Tensor>x).base is not None or wants_grad(<Tensor>x):
        return False
    for i in range(PyTuple_GET_SIZE(args)):
        if PyTuple_GET_ITEM(args, i) == <PyObject*>x:
            return False
    return True


cdef bint own_result(object ctx, tuple args, object output) except -1:
    """Make ``ctx`` the maker of what ``forward`` gave; False, with nothing done, where that is not for here."""
    cdef tuple outputs = <tuple>output if type(output) is tuple else (output,)
    cdef list owned = [], inputs = [], described = [], saved
    cdef Tensor t
    cdef Py_ssize_t i
    for x in outputs:
        if not is_new(x, args):
            return False
        owned.append(x if isinstance(x, Tensor) and KIND[(<Tensor>x).code] >= 2 else None)
    if type(output) is not tuple and isinstance(output, tuple):
        return False
    to_save = ctx._to_save
    if to_save:
        saved = []
        for x in to_save:
            if x is None:
                saved.append((None, None))
                continue
            t = <Tensor>x
            at = None
            for i in range(len(owned)):
                if owned[i] is t:
                    at = i
                    break
            saved.append((save_tensor(t, at is not None, t.storage.version), at))
        ctx._saved, ctx._to_save = saved, ()
    for i in range(PyTuple_GET_SIZE(args)):
        x = <object>PyTuple_GET_ITEM(args, i)
        if isinstance(x, Tensor):
            t = <Tensor>x
            inputs.append(t)
            described.append((i, (make_size(t.nd, t.sizes), DTYPES[t.code]), None))
    ctx._inputs = described
    record_custom(ctx, type(ctx).__name__, inputs, owned)
    if None in owned:  # else the node has them
        ctx._output_metas = [(make_size((<Tensor>x).nd, (<Tensor>x).sizes), DTYPES[(<Tensor>x).code])
                             if isinstance(x, Tensor) else None for x in outputs]
    return True
