# `Function.apply` where every argument and every result is an ordinary tensor, or none. The full form in
# `autograd/function.py` handles tensors that are marked (`mark_dirty` and the like), passed through, views, or of
# another kind.


cdef class FunctionNode(Node):
    """The fixed attributes of a context. Its author's attributes are in its dict (`FunctionCtx`)."""

    cdef public object needs_input_grad
    cdef public object materialize_grads
    cdef public object saved_for_forward
    cdef public object _to_save, _dirty, _non_differentiable   # set by forward, until it returns
    cdef public object _saved            # pairs of a Saved or None, and the number of the output that it is or None
    cdef public object _inputs           # of each tensor among the arguments: position, (sizes, dtype), form, device
    cdef public object _output_metas     # sizes and dtypes of the outputs, where the node does not have all of them
    cdef public object _whole_outputs    # the outputs, where a tensor of parts is among them or the inputs
    cdef public bint _released, _in_jvp

    def __cinit__(self):
        self.needs_input_grad = self._to_save = self._dirty = self._non_differentiable = ()
        self.materialize_grads = True


cdef inline bint is_ordinary(Tensor t) noexcept:
    return t.holds == VALUES and not t.overrides


cpdef object run_function(type context_class, tuple args, object forward, object setup, object own_outputs):
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
    cdef int64_t before[8]       # versions of the arguments
    cdef int64_t* versions = &before[0]
    cdef bytes room
    cdef bint record = False, followed
    cdef int previous
    cdef Tensor t
    cdef PyObject* x
    cdef FunctionNode ctx
    if n > 8:
        room = PyBytes_FromStringAndSize(NULL, n * sizeof(int64_t))
        versions = <int64_t*>PyBytes_AS_STRING(room)
    for i in range(n):
        x = PyTuple_GET_ITEM(args, i)
        followed = False
        versions[i] = 0
        if is_tensor(x):
            t = <Tensor>x
            if not is_ordinary(t):
                return NotImplemented
            followed = wants_grad(t)
            record |= followed
            if not t.inference:
                versions[i] = t.version_offset + t.storage.version
        Py_INCREF(followed)
        PyTuple_SET_ITEM(needs, i, followed)
    ctx = <FunctionNode?>(<PyTypeObject*>context_class).tp_new(<PyTypeObject*>context_class, (), NULL)
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
    if ctx._dirty == ():
        if not record or ctx._non_differentiable == () and own_result(ctx, args, output):
            return output
    outputs = list(output) if isinstance(output, tuple) else [output]
    outputs = own_outputs(ctx, args, outputs, [versions[i] for i in range(n)], record)
    return tuple(outputs) if isinstance(output, tuple) else outputs[0]


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


cdef bint own_result(FunctionNode ctx, tuple args, object output) except -1:
    """Make ``ctx`` the node of ``forward``'s results. Returns False, with nothing changed, if the general path must do
    it.
    """
    cdef tuple outputs = <tuple>output if type(output) is tuple else (output,)
    cdef list owned = [], inputs = [], described = [], saved
    cdef bint all_owned = True
    cdef Tensor t
    cdef Py_ssize_t i
    if type(output) is not tuple and isinstance(output, tuple):
        return False
    for x in outputs:
        if not is_new(x, args):
            return False
        if isinstance(x, Tensor) and KIND[(<Tensor>x).code] >= 2:
            owned.append(x)
        else:
            owned.append(None)
            all_owned = False
    if ctx._to_save:
        saved = []
        for x in ctx._to_save:
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
            described.append((i, (make_size(t.nd, t.sizes), DTYPES[t.code]), None, device_at(t.device_type)))
    ctx._inputs = described
    record_custom(ctx, <str><object>(<PyHeapTypeObject*>Py_TYPE(<PyObject*>ctx)).ht_name, inputs, owned)
    if not all_owned:  # otherwise the node has them
        ctx._output_metas = [(make_size((<Tensor>x).nd, (<Tensor>x).sizes), DTYPES[(<Tensor>x).code])
                             if isinstance(x, Tensor) else None for x in outputs]
    return True
