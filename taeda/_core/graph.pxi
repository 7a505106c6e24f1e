# The graph: nodes, saved tensors, and what recording an op does.

cdef int64_t SEQUENCE = 0
cdef object RUN_SELF = object()  # as a node's `custom`: a subclass of Node with a method `_run_backward`
cdef bint ANOMALY = False
cdef bint ANOMALY_NAN = True


@cython.freelist(256)
@cython.trashcan(True)
@cython.final
cdef class Saved:
    """A tensor kept for the backward pass, with the version and the graph position it had."""

    cdef Tensor tensor
    cdef Node made_by
    cdef int nr
    cdef int64_t version
    cdef bint is_output
    cdef object packed
    cdef object unpack
    cdef Tensor leaf             # of a packed leaf: the leaf itself, as second derivatives lead to it
    # of an output that was written in place through a view: a weak reference to its CopySlices
    cdef object written


cdef Saved save_tensor(Tensor t, bint is_output, int64_t version):
    cdef Saved s = <Saved>Saved.__new__(Saved)
    if t.inference:
        raise RuntimeError("Inference tensors cannot be saved for backward. To work around you can make a clone to get "
                           "a "
                           "normal tensor and use it in autograd.")
    s.version = version
    s.is_output = is_output
    s.nr = t.nr
    if is_output:  # the node must not own its own output, which owns the node
        s.tensor = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
        s.tensor.leaf_grad = False
    else:
        s.tensor = t
        s.made_by = get_grad_fn(t)
    if SAVED_HOOKS[0] != NULL:
        pack_tensor(s, (<list>SAVED_HOOKS[0])[len(<list>SAVED_HOOKS[0]) - 1])
    return s


cdef int pack_tensor(Saved s, tuple hooks) except -1:
    """Keep what ``pack`` makes of the tensor instead of the tensor."""
    cdef int64_t version = s.tensor.storage.version
    cdef int previous = swap_no_grad(1)
    pack, s.unpack = hooks
    try:
        s.packed = pack(s.tensor)
    finally:
        swap_no_grad(previous)
    if s.tensor.storage.version != version:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place, which would change the forward "
                           "pass. "
                           "Clone the input first.")
    if not s.is_output and s.made_by is None and s.tensor.leaf_grad:
        s.leaf = s.tensor
    s.tensor = None
    return 0


cdef Node output_maker(Saved s, Node node):
    """What made a saved output of ``node``: itself, or where the op wrote through a view, the base and the view of
    it."""
    cdef Node outer = s.written() if s.written is not None else None
    return node if outer is None else view_node((<CopySlices>outer.custom).base, (<CopySlices>outer.custom).view, outer)


cdef Tensor unpack_by_hook(Saved s, Node node):
    """The tensor that ``unpack`` gives, at the place in the graph that the packed one had."""
    made = s.unpack(s.packed)
    if not isinstance(made, Tensor):
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                        f"{type(made).__name__}")
    cdef Tensor t = <Tensor>made
    cdef Node maker = output_maker(s, node) if s.is_output else s.made_by
    cdef Tensor alias
    if t is s.leaf or (maker is None and s.leaf is None) or (t.grad_fn_ is maker and maker is not None):
        return t
    alias = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
    if maker is None:
        if NO_GRAD[0]:
            return alias
        maker = <Node>Node.__new__(Node)
        maker.custom = _pass_gradient
        maker.label = "UnpackBackward0"
        set_edges(maker, [s.leaf])
        alias.grad_fn_ = maker
        return alias
    alias.grad_fn_ = maker
    alias.nr = s.nr if not s.is_output or maker is node else 0
    return alias


def _pass_gradient(grads):
    return list(grads)


cdef Tensor unpack_tensor(Saved s, Node node):
    cdef Tensor t = s.tensor
    cdef Tensor alias
    if s.unpack is not None:
        return unpack_by_hook(s, node)
    if t.storage.version != s.version:
        made = "" if s.made_by is None and not s.is_output else \
            f", which is output {s.nr} of {(node if s.is_output else s.made_by).name()},"
        raise RuntimeError(
            f"one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{DTYPES[t.code]} {list(t.shape)}]{made} is at version {t.storage.version}; expected version {s.version} "
            f"instead. Hint: it was saved for the derivative of {node.name()}; use the out-of-place form of the "
            f"operation that changed it, or enable anomaly detection (autograd.set_detect_anomaly(True)) to see the "
            f"forward line")
    if s.is_output:
        alias = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
        alias.grad_fn_ = output_maker(s, node)
        alias.nr = s.nr if alias.grad_fn_ is node else 0
        return alias
    if t.grad_fn_ is not s.made_by:
        alias = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
        alias.grad_fn_ = s.made_by
        alias.nr = s.nr
        return alias
    return t


cdef object save_value(object x, Storage written):
    """Save an argument: tensors (also inside a list) with the version they had, anything else as it is.

    ``written`` is the storage that an in-place op has written to by now: what shares it was saved too late.
    """
    cdef Storage storage
    if isinstance(x, Tensor):
        storage = (<Tensor>x).storage
        return save_tensor(<Tensor>x, False, storage.version - (storage is written))
    if PyList_Check(x) or PyTuple_Check(x):
        return [save_value(item, written) for item in x] if any([isinstance(i, Tensor) for i in x]) else x
    return x


cdef object unpack_value(object x, Node node):
    if type(x) is Saved:
        return unpack_tensor(<Saved>x, node)
    if PyList_Check(x):
        return [unpack_value(item, node) for item in x]
    return x


cdef object shape_of(object x):
    if isinstance(x, Tensor):
        return make_size((<Tensor>x).nd, (<Tensor>x).sizes)
    if PyList_Check(x) or PyTuple_Check(x):
        return [shape_of(item) for item in x]
    return None


cdef enum:
    DTYPE_BIT = 32  # in a node's `shapes` and an op's `save_shapes`: from here on, dtypes rather than sizes


cdef object dtype_of(object x):
    if isinstance(x, Tensor):
        return DTYPES[(<Tensor>x).code]
    if PyList_Check(x) or PyTuple_Check(x):
        return [dtype_of(item) for item in x]
    return None


@cython.freelist(256)
@cython.trashcan(True)
@cython.binding(False)
cdef class Node:
    """One recorded operation: knows which nodes made its inputs and how to turn output gradients into input
    gradients."""

    def __cinit__(self):
        self.nrs = self.nr_inline
        self.noutputs = 1
        self.out_code = -1
        self.targets = ()

    def name(self):
        """The name of the operation's derivative, such as ``MulBackward0``."""
        if self.label is not None:
            return self.label
        if self.op is None:
            return "Backward"
        name = self.op.traits.get("node")
        if name is None:
            name = "".join([part.capitalize() for part in self.op.name.strip("_").split("_")])
        elif not isinstance(name, str):
            name = name(self.saved_arguments())
        return name if "Backward" in name else name + "Backward0"

    def saved_arguments(self):
        """What is saved of the op's arguments, by name: tensors as they are now, sizes as ``<name>_shape``."""
        found = {}
        if self.args is not None:
            found = {p: ((<Saved>x).tensor if type(x) is Saved else x) for p, x in zip(self.op.params, self.args)}
        for key, value in (self.shapes or {}).items():
            if key < DTYPE_BIT:
                found[self.op.params[key] + "_shape"] = value
        return found

    @property
    def next_functions(self):
        """Pairs of a node and the number of its output, one per input."""
        cdef int i
        return tuple([(_as_node(self.targets[i]), self.nrs[i]) for i in range(len(self.targets))])

    @property
    def metadata(self):
        """A dict for the user's own notes."""
        if self.notes is None:
            self.notes = {}
        return self.notes

    def __repr__(self):
        return f"<{self.name()} object at {hex(id(self))}>"

    def __call__(self, *grads):
        """The gradients of the inputs for gradients of the outputs."""
        if len(grads) != self.noutputs:
            raise TypeError(f"{self.name()}: expected {self.noutputs} arguments, got {len(grads)} instead")
        for i, g in enumerate(grads):
            if g is not None and not isinstance(g, Tensor):
                raise TypeError(f"{self.name()}: argument {i} is not a Tensor")
        if self.op is None and self.custom is None or all([g is None for g in grads]):
            return None if len(self.targets) == 1 else (None,) * len(self.targets)
        result = apply_node(self, list(grads), None)
        return result[0] if len(result) == 1 else tuple(result)

    def _sequence_nr(self):
        return self.seq

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this node ran; what it returns replaces ``grad_inputs``."""
        if self.post_hooks is None:
            self.post_hooks = {}
        return HookHandle(self.post_hooks, hook)

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this node runs; what it returns replaces ``grad_outputs``."""
        if self.pre_hooks is None:
            self.pre_hooks = {}
        return HookHandle(self.pre_hooks, hook)

    def saved_items(self):
        """Pairs (name, tensor) of what this node keeps for the backward pass, for looking at."""
        cdef int i
        cdef list found = []
        if self.args is not None:
            for i in range(len(self.args)):
                found.extend([(self.op.params[i], t) for t in _saved_tensors(self.args[i])])
        if self.outs is not None:
            names = self.op.traits.get("outputs", ("out",))
            for i in range(len(self.outs)):
                found.extend([(names[i] if i < len(names) else f"out{i}", t) for t in _saved_tensors(self.outs[i])])
        return found

    def __getattr__(self, name):
        cdef int i
        if name.startswith("_saved_") and self.op is not None:
            key = name[7:]
            if key == "result" and self.outs:
                return unpack_value(self.outs[0], self)
            if key == "self" and self.op.nparams:
                key = self.op.params[0]
            if key in self.op.param_index and self.args is not None:
                i = self.op.param_index[key]
                if self.args[i] is not None or PyTuple_GET_ITEM(self.op.defaults, i) == <PyObject*>None:
                    return unpack_value(self.args[i], self)  # one that no derivative asks for is not there
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __dir__(self):
        cdef int i
        found = set(object.__dir__(self))
        if self.op is not None and self.args is not None:
            found.update(["_saved_self" if i == 0 else f"_saved_{self.op.params[i]}" for i in range(len(self.args))
                          if self.args[i] is not None])
        if self.outs:
            found.add("_saved_result")
        return sorted(found)


def _saved_tensors(x):
    if type(x) is Saved:
        return [(<Saved>x).tensor] if (<Saved>x).tensor is not None else []
    return [t for item in x for t in _saved_tensors(item)] if PyList_Check(x) else []


class AccumulateGrad:
    """Stands for a leaf in ``next_functions``."""

    def __init__(self, variable):
        self.variable = variable
        self.next_functions = ()

    def name(self):
        return "taeda::autograd::AccumulateGrad"

    def __repr__(self):
        return f"<AccumulateGrad object at {hex(id(self))}>"

    def __eq__(self, other):
        return isinstance(other, AccumulateGrad) and self.variable is other.variable

    def __hash__(self):
        return hash(self.variable)

    def register_hook(self, hook):
        return self.variable.register_post_accumulate_grad_hook(NodeHook(hook))

    def register_prehook(self, hook):
        return self.variable.register_hook(lambda g: (hook((g,)) or (None,))[0])


@cython.final
cdef class NodeHook:
    """A hook on the node that stands for a leaf: called with no input gradients and the gradient that came."""

    cdef object function

    def __init__(self, function):
        self.function = function


cdef object _as_node(object target):
    return AccumulateGrad(target) if isinstance(target, Tensor) else target


cdef inline object edge_of(Tensor t, int* nr):
    """Where a gradient of ``t`` goes: its node, itself for a leaf, or None."""
    cdef Node node = get_grad_fn(t)
    if node is not None:
        nr[0] = t.nr
        return node
    nr[0] = 0
    return t if t.leaf_grad else None


cdef bint any_wants_grad(Op op, PyObject** bound) except -1:
    """Whether an input that has a derivative requires grad."""
    cdef int i
    cdef object x
    for i in range(op.ndiff):
        x = <object>bound[op.diff_pos[i]]
        if isinstance(x, Tensor):
            if wants_grad(<Tensor>x):
                return True
        elif PyList_Check(x) or PyTuple_Check(x):
            for item in x:
                if isinstance(item, Tensor) and wants_grad(<Tensor>item):
                    return True
    return False


cdef inline int make_room(Node node, int n) except -1:
    """Room for ``n`` output numbers."""
    if n > 4:
        node.heap_nrs = PyBytes_FromStringAndSize(NULL, n * sizeof(int32_t))
        node.nrs = <int32_t*>PyBytes_AS_STRING(node.heap_nrs)
    return 0


cdef inline int number_node(Node node) except -1:
    """Place the node in the order of recording: after everything its edges lead to, which may have been made just
    now."""
    global SEQUENCE
    SEQUENCE += 1
    node.seq = SEQUENCE
    return 0


cdef int set_edges(Node node, list flat) except -1:
    """Point the node at what made the tensors in ``flat`` (None entries need no gradient)."""
    cdef int i, nr, n = len(flat)
    cdef tuple targets = PyTuple_New(n)
    cdef object target
    make_room(node, n)
    for i in range(n):
        nr = 0
        target = flat[i]
        if isinstance(target, Tensor):
            target = edge_of(<Tensor>target, &nr)
        else:
            target = None
        Py_INCREF(target)
        PyTuple_SET_ITEM(targets, i, target)
        node.nrs[i] = nr
    node.targets = targets
    number_node(node)
    return 0


cdef bint saves_first(Op op, PyObject** bound) except -1:
    """Whether a derivative that will be asked for needs the first argument."""
    cdef object x
    cdef int i
    for i in range(op.ndiff):
        if op.save_args[i] & 1:
            x = <object>bound[op.diff_pos[i]]
            if not isinstance(x, Tensor) or wants_grad(<Tensor>x):
                return True
    return False


cdef Saved save_as_it_was(Tensor t, Tensor before):
    """Save ``before``, a copy of ``t`` from before an in-place op, in the place of ``t`` in the graph."""
    cdef Saved s = save_tensor(before, False, before.storage.version)
    s.made_by = get_grad_fn(t)
    s.nr = t.nr
    return s


cdef int set_op_edges(Node node, PyObject** bound, uint64_t* args, uint64_t* shapes) except -1:
    """Point the node at what made its op's differentiable arguments; tells which arguments and sizes must be saved for
    them."""
    cdef Op op = node.op
    cdef int i, nr, n = op.ndiff
    cdef object x, target
    cdef tuple targets
    cdef bint has_list = False
    for i in range(n):
        x = <object>bound[op.diff_pos[i]]
        if PyList_Check(x) or PyTuple_Check(x):
            has_list = True
    if has_list:
        flat = []
        counts = []
        for i in range(n):
            x = <object>bound[op.diff_pos[i]]
            if PyList_Check(x) or PyTuple_Check(x):
                flat.extend(x)
                counts.append(len(x))
            else:
                flat.append(x)
                counts.append(-1)
            args[0] |= op.save_args[i]
            shapes[0] |= op.save_shapes[i]
        node.counts = tuple(counts)
        return set_edges(node, flat)
    targets = PyTuple_New(n)
    make_room(node, n)
    for i in range(n):
        x = <object>bound[op.diff_pos[i]]
        nr = 0
        target = edge_of(<Tensor>x, &nr) if isinstance(x, Tensor) else None
        if target is not None:
            args[0] |= op.save_args[i]
            shapes[0] |= op.save_shapes[i]
        Py_INCREF(target)
        PyTuple_SET_ITEM(targets, i, target)
        node.nrs[i] = nr
    node.targets = targets
    return number_node(node)


cdef Node make_node(Op op, PyObject** bound, bint inplace, Tensor before):
    """A node for ``op`` on its inputs, with what their derivatives need of the arguments.

    Args:
        before: of an in-place op whose derivative needs its first argument, a copy of that from before the op.
    """
    cdef Node node = <Node>Node.__new__(Node)
    cdef int i
    cdef uint64_t args = 0, shapes = 0
    cdef Storage written = (<Tensor>bound[0]).storage if inplace else None
    node.op = op
    if written is None:
        set_op_edges(node, bound, &args, &shapes)
    else:
        # the edges are those from before the write: another view of what was written is not yet stale
        written.version -= 1
        try:
            set_op_edges(node, bound, &args, &shapes)
        finally:
            written.version += 1
    if args:
        node.args = [None] * op.nparams
        for i in range(op.nparams):
            if (args >> i) & 1:
                node.args[i] = save_as_it_was(<Tensor>bound[0], before) if i == 0 and before is not None else \
                    save_value(<object>bound[i], written)
    if shapes:
        node.shapes = {}
        for i in range(op.nparams):
            if (shapes >> i) & 1:
                node.shapes[i] = shape_of(<object>bound[i])
            if (shapes >> (DTYPE_BIT + i)) & 1:
                node.shapes[DTYPE_BIT + i] = dtype_of(<object>bound[i])
    if ANOMALY:
        import traceback
        node.trace = traceback.extract_stack()
    return node


cdef int save_outputs(Node node, object result, bint is_tuple) except -1:
    cdef Op op = node.op
    cdef uint64_t outs = 0
    cdef int i, k = 0
    for i in range(op.ndiff):
        if node.counts is not None or node.targets[i] is not None:
            outs |= op.save_outs[i]
    if not outs:
        return 0
    if not is_tuple:
        node.outs = [save_tensor(<Tensor>result, True, (<Tensor>result).storage.version)]
        return 0
    node.outs = [save_tensor(<Tensor>result[i], True, (<Tensor>result[i]).storage.version) if (outs >> i) & 1 else None
                 for i in range(len(result))]
    return 0


cdef inline int forget_base(Tensor t) noexcept:
    """An output that is a view of a tensor that its op made on the way, and nobody else has, is no view to its user."""
    if t.base is not None and t.creation == IN_NO_GRAD and Py_REFCNT(<PyObject*>t.base) == 1:
        t.base = None
        t.creation = RECORDED
    return 0


cdef int own_outputs(Node node, object result) except -1:
    """Make ``node`` the maker of the floating-point tensors in ``result``."""
    cdef Tensor t
    cdef int i
    if isinstance(result, Tensor):
        t = <Tensor>result
        if KIND[t.code] >= 2:
            forget_base(t)
            t.grad_fn_ = node
            t.nr = 0
            t.leaf_grad = False
            node.out_code = t.code
        save_outputs(node, result, False)
        return 0
    node.noutputs = len(result)
    metas = []
    for i in range(node.noutputs):
        t = <Tensor?>result[i]
        metas.append((make_size(t.nd, t.sizes), <int>t.code))
        if KIND[t.code] >= 2:
            forget_base(t)
            t.grad_fn_ = node
            t.nr = i
            t.leaf_grad = False
    node.out_metas = tuple(metas)
    save_outputs(node, result, True)
    return 0


# ---- in-place --------------------------------------------------------------------------------------------------------

cdef int check_inplace(Tensor t, bint record) except -1:
    """Raise where the graph forbids writing to ``t``; ``record``: the op is about to be recorded."""
    if t.inference and not INFERENCE[0]:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a "
                           "clone "
                           "to get a normal tensor before doing inplace update.")
    if NO_GRAD[0]:
        return 0
    if t.base is not None and t.creation != RECORDED and (record or t.leaf_grad or t.grad_fn_ is not None
                                                           or wants_grad(t.base)):
        raise_unrecordable(t, False)
    if t.base is not None and (record or wants_grad(t)):
        if t.base.leaf_grad and t.base.grad_fn_ is None and wants_grad(t):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if t.leaf_grad and t.grad_fn_ is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    return 0


cdef int raise_unrecordable(Tensor t, bint base_written) except -1:
    """Why ``t``, a view, cannot be written in place, or be used after its base was."""
    cdef str what = "its base or another view of its base has been modified inplace" if base_written else \
        "is being modified inplace"
    if t.creation == IN_FUNCTION:
        raise RuntimeError(f"a view that a custom Function returned (or an input that it returned as it is) and "
                           f"{what}, which "
                           f"would bypass the Function's backward. Clone the output of the Function.")
    where = "no_grad mode" if t.creation == IN_NO_GRAD else "inference mode"
    raise RuntimeError(f"A view was created in {where} and {what} with grad mode enabled, which cannot be recorded. "
                       f"Make the "
                       f"view where grad mode is enabled, write in no_grad mode, or use the out-of-place form.")


cdef inline int tie_view(Tensor t, Tensor source) noexcept:
    """Remember what ``t`` is a view of, and where it was made."""
    t.base = source if source.base is None else source.base
    t.view_version = t.storage.version
    if NO_GRAD[0]:
        t.creation = IN_INFERENCE if INFERENCE[0] else IN_NO_GRAD
    else:
        t.creation = source.creation if source.base is not None else <int8_t>RECORDED
    return 0


cdef object geometry(Tensor t, Tensor base):
    """Sizes, strides, offset (in elements from the first of ``base``) and dtype of a view, and whether it
    shows conjugates."""
    cdef int i
    return (make_size(t.nd, t.sizes), tuple([t.strides[i] for i in range(t.nd)]),
            (t.raw - base.raw) // ITEMSIZE[t.code], DTYPES[t.code], conjugated_against(t, base))


cdef object conjugated_against(Tensor t, Tensor base):
    """Whether ``t`` shows the conjugates or negatives of what ``base`` shows there; None where it is neither or
    both."""
    cdef int d
    if KIND[t.code] == KIND[base.code] or not is_conjugate_view(base):
        return bool(is_conjugate_view(t) != is_conjugate_view(base))
    if KIND[t.code] == 3:
        return None
    for d in range(t.nd):
        if t.sizes[d] > 1 and t.strides[d] % 2:  # real parts and imaginary ones
            return None
    # of a real part the base's sign is none
    return bool(is_conjugate_view(t) != <bint>((t.raw - base.raw) // ITEMSIZE[t.code] % 2))


cdef class ViewBackward:
    """Gradient of a view for its base, from their geometry alone."""

    cdef object base
    cdef object view

    def __call__(self, grads):
        return [HELPERS["view_backward"](grads[0], self.base, self.view)]


cdef class CopySlices:
    """Gradient of a base of which a view was written in place by ``inner``."""

    cdef object base
    cdef object view
    cdef Node inner
    cdef int position            # which input of `inner` was written

    def __call__(self, grads):
        return HELPERS["copy_slices"](grads[0], self.base, self.view, self.inner, self.position)


cdef Node make_view_node(Tensor t, Tensor base):
    cdef Node node = <Node>Node.__new__(Node)
    cdef ViewBackward fn = ViewBackward.__new__(ViewBackward)
    fn.base = geometry(base, base)
    fn.view = geometry(t, base)
    node.custom = fn
    node.label = "AsStridedBackward0"
    node.out_code = t.code
    set_edges(node, [base])
    return node


cdef Node view_node(object base, object view, Node maker):
    """The node of a view of the only output of ``maker``, from geometries."""
    cdef Node node = <Node>Node.__new__(Node)
    cdef ViewBackward fn = ViewBackward.__new__(ViewBackward)
    fn.base = base
    fn.view = view
    node.custom = fn
    node.label = "AsStridedBackward0"
    node.out_code = (<dtype>view[3]).code
    node.targets = (maker,)
    node.nrs[0] = 0
    number_node(node)
    return node


cdef int rebase(Tensor t, Node node) except -1:
    """After an in-place op on ``t``: ``node`` becomes its maker, and its base's if it is a view."""
    if t.base is not None:
        return rebase_at(t, node, 0)
    node.out_code = t.code
    if t.retains_grad_:
        move_retained(t, node)
    t.grad_fn_ = node
    t.nr = 0
    t.leaf_grad = False
    return 0


cdef int rebase_at(Tensor t, Node node, int position) except -1:
    """After an in-place op on the view ``t``, which is input ``position`` of ``node``: its base gets a new maker."""
    cdef Node outer = <Node>Node.__new__(Node)
    cdef CopySlices fn = CopySlices.__new__(CopySlices)
    cdef Tensor base = t.base
    cdef object target
    cdef int nr = 0, i
    node.out_code = t.code
    fn.base = geometry(base, base)
    fn.view = geometry(t, base)
    fn.inner = node
    fn.position = position
    outer.custom = fn
    outer.label = "CopySlices"
    outer.out_code = base.code
    target = edge_of(base, &nr)
    outer.targets = with_target(node.targets, position, target)
    make_room(outer, len(outer.targets))
    for i in range(len(outer.targets)):
        outer.nrs[i] = node.nrs[i]
    outer.nrs[position] = nr
    number_node(outer)
    saved = node._saved if node.custom is RUN_SELF else node.outs
    for item in saved if saved is not None else ():
        if item is not None and node.custom is RUN_SELF:
            item = item[0]
        if item is not None and (<Saved>item).is_output:
            (<Saved>item).written = PyWeakref_NewRef(outer, None)
    # the inner node only computes: its edge says whether the base needs what lies under the view
    node.targets = with_target(node.targets, position, NEEDED if target is not None else None)
    if t.retains_grad_:
        move_retained(t, None)
    if base.retains_grad_:
        move_retained(base, outer)
    base.grad_fn_ = outer
    base.nr = 0
    base.leaf_grad = False
    t.grad_fn_ = make_view_node(t, base)
    t.nr = 0
    t.leaf_grad = False
    t.view_version = t.storage.version
    if t.retains_grad_:
        retain(t, t.grad_fn_, 0)
    return 0


NEEDED = Node()  # a target that stands for "compute this gradient"


cdef inline tuple with_target(tuple targets, int position, object target):
    return targets[:position] + (target,) + targets[position + 1:]


cdef Node forget_node(Tensor t):
    """The node of an in-place op that has no derivative: what was in ``t`` before gets a gradient of zero."""
    cdef Node node = <Node>Node.__new__(Node)
    node.custom = _no_gradient
    node.label = "ForgetBackward0"
    set_edges(node, [t])
    return node


def _no_gradient(grads):
    return [None]


cdef int move_retained(Tensor t, Node node) except -1:
    """``retain_grad`` is about the tensor as it is now: follow it to the node of the in-place op (None: not made
    yet)."""
    if t.grad_fn_ is not None and t.grad_fn_.retained is not None:
        t.grad_fn_.retained.pop(t.nr, None)
    if node is not None:
        retain(t, node, 0)
    return 0


cdef int retain(Tensor t, Node node, int nr) except -1:
    if node.retained is None:
        node.retained = {}
    node.retained[nr] = PyWeakref_NewRef(t, None)
    return 0


def mark_view_of_function(Tensor t):
    """``t``, a view that a custom Function returns, has the Function's derivative: never one made of its base's."""
    t.creation = IN_FUNCTION
    t.view_version = t.storage.version


def same_edge(Tensor t):
    """Another tensor object on the same memory and at the same place in the graph."""
    cdef Tensor other = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
    other.grad_fn_ = get_grad_fn(t)
    other.nr = t.nr
    return other


def save(Tensor t, bint is_output):
    """A tensor saved for backward, for ``autograd.Function``."""
    return save_tensor(t, is_output, t.storage.version)


def unsave(Saved saved, Node node):
    """The tensor that :func:`save` kept."""
    return unpack_tensor(saved, node)


def unsave_output(Saved saved, Node node, int nr):
    """The output that :func:`save` kept, as output ``nr`` of ``node``."""
    saved.nr = nr
    return unpack_tensor(saved, node)
