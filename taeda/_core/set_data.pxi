# A tensor that becomes what another is: other memory, other sizes, another place in the graph, another class.

cdef Tensor new_of_class(object cls):
    """An empty object of a subclass, whatever the subclass's own ``__new__`` does."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"expected a subclass of Tensor, got {cls!r}")
    return <Tensor>(<PyTypeObject*>Tensor).tp_new(<PyTypeObject*>cls, (), NULL)


cdef inline bint has_no_memory(Tensor t) except -1:
    """Whether ``t`` is on device meta, or of a kind without elements of its own (of vmap, sparse ...)."""
    return t.holds == NOTHING and (
        t.device_type <= META_NUMBER or type(<object>t) is not Tensor and t._without_memory is not None)


cdef int _set_data(Tensor t, Tensor source) except -1:
    """Make ``t`` a window on the memory of ``source``; the graph of ``t`` is untouched."""
    cdef int i
    cdef bint without_memory = has_no_memory(t)
    if source is t:
        return 0
    if source.storage is not None:
        need_memory(source.storage)
    if t.storage is not None:
        if t.storage.saved:
            note_form(t)
        t.replaced += 1
        if t.base is not None:
            t.view_version += source.storage.version - t.storage.version
    init_dims(t, source.nd)
    for i in range(source.nd):
        t.sizes[i] = source.sizes[i]
        t.strides[i] = source.strides[i]
    t.count = source.count
    t.code = source.code
    t.device_type = source.device_type
    t.contiguous = source.contiguous
    t.storage = source.storage
    t.raw = source.raw
    t.inference = source.inference
    if not without_memory or source.device_type:
        t.holds = source.holds
    return 0


cdef int note_form(Tensor t) except -1:
    """Before ``t`` gets other memory or another form: note with its storage what derivatives that saved it read."""
    cdef Storage storage = t.storage
    need_memory(storage)
    if storage.former is None:
        storage.former = {}
    storage.former[<size_t><void*>t] = (
        t.replaced, t.version_offset, make_size(t.nd, t.sizes), tuple([t.strides[i] for i in range(t.nd)]),
        t.raw - storage.data, t.code, t.holds)
    return 0


cdef object former_form(Saved s):
    """The note that `note_form` made when the tensor had the form in which it was saved; None if there is no such note.
    """
    form = None if s.storage.former is None else s.storage.former.get(<size_t><void*>s.tensor)
    return form if form is not None and <int64_t>form[0] == s.replaced else None


cdef Tensor former_tensor(Saved s):
    """The tensor as it was saved, outside the graph."""
    cdef Tensor made = <Tensor>Tensor.__new__(Tensor)
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int n
    _, _, size, stride, offset, code, holds = former_form(s)
    if s.tensor.overrides == ALWAYS or <int>holds == NOTHING and s.storage.device == 0:
        raise RuntimeError(f"a {type(s.tensor).__name__} that is needed for gradient computation was given other "
                           "memory. Use a new tensor in place of .data")
    n = parse_sizes(size, sizes)
    parse_sizes(stride, strides)
    made.storage, made.code, made.holds, made.device_type = s.storage, code, holds, s.storage.device
    made.raw = s.storage.data + <int64_t>offset
    return alias_tensor(made, n, sizes, strides, 0)


cdef int replace_data(Tensor t, Tensor source, int writes) except -1:
    """Make ``t`` a window on the memory of ``source``; its version grows by ``writes``."""
    cdef int64_t version
    if writes and t.storage is not None and t.storage.readers != NULL:
        copy_for_readers(t.storage)
    t.version_offset += writes
    if t.storage is None:
        return _set_data(t, source)
    version = t.storage.version + t.version_offset
    _set_data(t, source)
    t.version_offset = version - t.storage.version
    return 0


cdef int _become(Tensor t, Tensor source) except -1:
    _set_data(t, source)
    t.leaf_grad = source.leaf_grad
    t.grad_fn_ = source.grad_fn_
    t.nr = source.nr
    return 0


cdef int _assign(Tensor t, Tensor source) except -1:
    """Everything that ``source`` is, its Python attributes aside."""
    _become(t, source)
    t.holds = source.holds
    t.base, t.view_version, t.creation = source.base, source.view_version, source.creation
    t.version_offset = source.version_offset
    t.retains_grad_, t.grad_ = source.retains_grad_, source.grad_
    t.hooks, t.post_hooks = source.hooks, source.post_hooks
    return 0


def become(Tensor t, Tensor source):
    """Make ``t`` the same window and the same place in the graph as ``source``."""
    _become(t, source)
    return t


def as_subclass(Tensor t, cls):
    """An object of class ``cls`` that is the same window and the same place in the graph."""
    cdef Tensor made = new_of_class(cls)
    _become(made, t)
    made.base = t.base
    made.view_version = t.view_version
    made.creation = t.creation
    return made


def set_data(Tensor t, Tensor source, int writes=0):
    """Make ``t`` a window on the memory of ``source`` (sizes, strides and dtype too).

    The version of ``t`` stays, or grows by ``writes``. Derivatives that saved ``t`` read the memory that it had then.
    """
    replace_data(t, source, writes)
    return t


def change_form(Tensor t, Tensor made):
    """Make ``t`` what ``made`` is, a view of it or of another tensor: an in-place change of form, which counts as a
    write."""
    if t.leaf_grad or t.base is not None or t.inference:
        check_inplace(t, False)
    replace_data(t, made, 1)
    if made.grad_fn_ is not None:
        if t.retains_grad_:
            move_retained(t, made.grad_fn_)
        t.grad_fn_, t.nr = made.grad_fn_, made.nr
    return t


def set_memory(Tensor t, Tensor source):
    """Make ``t`` a window on the memory of ``source``, as an in-place op without a derivative does."""
    cdef bint record = NO_GRAD[0] == GRAD_ON and wants_grad(t)
    if t.leaf_grad or t.base is not None or t.inference:
        check_inplace(t, record)
    if record:
        rebase(t, refusing_node("set_", [t]))
    replace_data(t, source, 1)
    return t


cdef int64_t SWAP = <int64_t>1 << 32   # what a swap adds to `replaced`


def swap_tensors(Tensor a, Tensor b):
    """Exchange what two tensors are: class, memory, sizes, place in the graph, gradient, hooks and Python attributes.

    Raises:
        RuntimeError: something holds a weak reference to one of them, or their classes have different ``__slots__``.
    """
    import copyreg
    import weakref

    refuse_recorded("swap_tensors()")
    for name, t in (("t1", a), ("t2", b)):
        if (<Tensor>t).storage is not None:
            need_memory((<Tensor>t).storage)  # the storage has a weak reference until then
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    cdef object cls
    slots, layouts = [], []
    for cls in (a.__class__, b.__class__):  # type() would have to be exactly `type`, and theirs is a metaclass
        names = copyreg._slotnames(cls)
        slots.append(names)
        layouts.append((set(names), cls.__basicsize__, cls.__dictoffset__, cls.__weakrefoffset__))
    if layouts[0] != layouts[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    cdef Tensor held = <Tensor>Tensor.__new__(Tensor)
    cdef PyObject** first = attributes_slot(a)
    cdef PyObject** second = attributes_slot(b)
    cdef list kept = [[(name, getattr(t, name, slots)) for name in slots[0]] for t in (a, b)]
    cdef PyTypeObject* first_type = Py_TYPE(<PyObject*>a)
    _assign(held, a)
    _assign(a, b)
    _assign(b, held)
    a.overrides, b.overrides = b.overrides, a.overrides
    a.replaced += SWAP  # graphs that lead to them as leaves are invalid: see `swaps_of`
    b.replaced += SWAP
    first[0], second[0] = second[0], first[0]
    # each class has as many instances as before, so its reference count stays; Python itself refuses to exchange an
    # extension type for a class
    Py_SET_TYPE(<PyObject*>a, Py_TYPE(<PyObject*>b))
    Py_SET_TYPE(<PyObject*>b, first_type)
    for t, values in ((a, kept[1]), (b, kept[0])):
        for name, value in values:
            if value is not slots:
                setattr(t, name, value)
            elif hasattr(t, name):
                delattr(t, name)


def follow_storage(Storage storage, size_t old):
    """Point every tensor on ``storage`` to its new block; ``old`` is where that was.

    A tensor holds the address of its first element, so that ops need not look it up, and a storage does not know its
    tensors. So they are found through the cycle collector. Only the resizing of a shared storage pays for that.
    """
    import gc
    cdef Tensor t
    cdef Storage other
    cdef Py_ssize_t step = storage.data - <char*>old
    cdef set others = set()
    if gc.get_freeze_count():  # get_objects leaves out frozen objects
        gc.unfreeze()
    for holder in gc.get_objects():
        if not isinstance(holder, Tensor):
            continue
        t = <Tensor>holder
        if t.storage is storage:
            t.raw += step
        elif t.storage is not None and t.storage.owner is storage:  # as in x.data: the same memory, another version
            t.raw += step
            others.add(t.storage)
    for item in others:
        other = <Storage>item
        other.data += step
        if other.data == storage.data:
            other.capacity = other.block = storage.capacity


def resize(Tensor t, sizes, strides, int64_t nbytes):
    """Give ``t`` other sizes and strides; its storage grows to ``nbytes`` where it has fewer."""
    cdef int64_t shape[MAXDIM]
    cdef int64_t steps[MAXDIM]
    cdef int n = parse_sizes(sizes, shape), i
    cdef Storage storage = t.storage
    cdef int64_t offset = t.raw - storage.data
    parse_sizes(strides, steps)
    if storage.readers != NULL:
        copy_for_readers(storage)
    if nbytes > storage.capacity:
        if not storage.may_resize:
            raise RuntimeError("Trying to resize storage that is not resizable")
        resize_storage(storage, nbytes, Py_REFCNT(<PyObject*>storage) > 2)
        t.raw = storage.data + offset
    init_dims(t, n)
    for i in range(n):
        t.sizes[i] = shape[i]
        t.strides[i] = steps[i]
    refresh(t)
    t.version_offset += 1


def untie(Tensor t):
    """Make ``t`` no view: it keeps its memory and its place in the graph, and is written without its base knowing."""
    t.base = None
    t.creation = RECORDED
    return t
