# Writing in place: what may be written to, and the nodes of views and their bases.


cdef inline bint is_leaf_or_part(Tensor t) noexcept:
    """Whether ``t`` is a leaf that requires grad, or a view of one."""
    cdef Tensor base = t if t.base is None else t.base
    return base.leaf_grad and base.grad_fn_ is None


cdef int check_inplace(Tensor t, bint record) except -1:
    """Raise where the graph forbids writing to ``t``; ``record``: the op is about to be recorded."""
    if t.inference and not INFERENCE[0]:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a "
                           "clone to get a normal tensor before doing inplace update.")
    if NO_GRAD[0] != GRAD_ON:
        if record and is_leaf_or_part(t):  # recorded under no_grad: a tensor that has a tangent is written into it
            raise RuntimeError("a leaf Variable that requires grad is written in place from a tensor that may have a "
                               "tangent, which forward mode cannot follow. Detach that tensor, or use the out-of-place "
                               "form")
        return 0
    if t.base is not None and t.creation != RECORDED and (record or t.leaf_grad or t.grad_fn_ is not None
                                                           or wants_grad(t.base)):
        raise_unrecordable(t, False)
    if t.base is not None and t.base.grad_fn_ is None and (t.base.leaf_grad or wants_grad(t)):
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. "
                           "Write to it under no_grad(), or use the out-of-place form")
    if t.leaf_grad and t.grad_fn_ is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation. Write to it "
                           "under no_grad(), or use the out-of-place form")
    return 0


cdef int raise_unrecordable(Tensor t, bint base_written) except -1:
    """Why ``t``, a view, cannot be written in place, or be used after its base was."""
    cdef str what = "its base or another view of its base has been modified inplace" if base_written else \
        "is being modified inplace"
    if t.creation == IN_FUNCTION:
        raise RuntimeError("a view that a custom Function returned (or an input that it returned as it is) and "
                           f"{what}, which would bypass the Function's backward. Clone the output of the Function.")
    where = "no_grad mode" if t.creation == IN_NO_GRAD else "inference mode"
    raise RuntimeError(f"A view was created in {where} and {what} with grad mode enabled, which cannot be recorded. "
                       "Make the view where grad mode is enabled, write in no_grad mode, or use the out-of-place form.")


cdef inline int tie_view(Tensor t, Tensor source) noexcept:
    """Remember what ``t`` is a view of, and where it was made."""
    t.base = source if source.base is None else source.base
    t.view_version = t.storage.version
    if NO_GRAD[0] == GRAD_OFF:
        t.creation = IN_INFERENCE if INFERENCE[0] else IN_NO_GRAD
    else:
        t.creation = source.creation if source.base is not None else <int8_t>RECORDED
    return 0


cdef inline int64_t offset_from(Tensor t, Tensor base) noexcept:
    """Bytes from the first element of ``base`` to the first of ``t``. Each is measured within its own memory, since
    either may have got other memory.
    """
    return (t.raw - t.storage.data) - (base.raw - base.storage.data)


cdef object geometry(Tensor t, Tensor base):
    """Sizes, strides, offset (in elements from the first of ``base``) and dtype of a view, and whether it
    shows conjugates."""
    cdef int i
    return (make_size(t.nd, t.sizes), tuple([t.strides[i] for i in range(t.nd)]),
            offset_from(t, base) // ITEMSIZE[t.code], DTYPES[t.code], conjugated_against(t, base))


cdef object conjugated_against(Tensor t, Tensor base):
    """Whether ``t`` shows the conjugates or negatives of what ``base`` shows there; None if it shows neither or both.
    """
    cdef int d
    if KIND[t.code] == KIND[base.code] or not is_conjugate_view(base):
        return bool(is_conjugate_view(t) != is_conjugate_view(base))
    if KIND[t.code] == 3:
        return None
    for d in range(t.nd):
        if t.sizes[d] > 1 and t.strides[d] % 2:  # real parts and imaginary ones
            return None
    # of a real part the base's sign is none
    return bool(is_conjugate_view(t) != <bint>(offset_from(t, base) // ITEMSIZE[t.code] % 2))


cdef class ViewBackward:
    """Gradient of a view for its base, from their geometry alone."""

    cdef object base
    cdef object view

    def __call__(self, grads):
        return [callbacks.view_backward(grads[0], self.base, self.view)]


cdef class CopySlices:
    """Gradient of a base of which a view was written in place by ``inner``."""

    def __call__(self, grads):
        return callbacks.copy_slices(grads[0], self.base, self.view, self.inner, self.position)


cdef Node make_view_node(Tensor t, Tensor base):
    cdef Node node = <Node>Node.__new__(Node)
    cdef ViewBackward fn = ViewBackward.__new__(ViewBackward)
    fn.base = geometry(base, base)
    fn.view = geometry(t, base)
    node.custom = fn
    node.label = "AsStridedBackward0"
    node.out_code = t.code
    set_edges(node, [base])
    if base.grad_fn_ is not None:
        node.tangents, node.dual = base.grad_fn_.tangents, base.grad_fn_.dual
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
    node.tangents, node.dual = maker.tangents, maker.dual
    return node


cdef int rebase(Tensor t, Node node) except -1:
    """After an in-place op on ``t``: ``node`` becomes its maker, and its base's if it is a view."""
    if t.base is not None:
        return rebase_at(t, node, 0)
    node.out_code = t.code
    if node.tangents and t.grad_fn_ is not None and t.grad_fn_.tangents != 1:
        node.tangents = 2
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
    if outer.tangents and target is not None and (<Node>target).tangents != 1:
        outer.tangents = 2
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
    """The node of an in-place op that has no derivative: the old values of ``t`` get a gradient of zero."""
    cdef Node node = <Node>Node.__new__(Node)
    node.custom = _no_gradient
    node.label = "ForgetBackward0"
    set_edges(node, [t])
    return node


def _no_gradient(grads):
    return [None]


cdef class NoDerivative:
    """The derivative of an op that has none: it raises."""

    cdef str name

    def __init__(self, str name):
        self.name = name

    def __call__(self, grads):
        raise RuntimeError(f"derivative for {self.name} is not implemented")


cdef Node refusing_node(str name, list inputs):
    """The node of an op that has no derivative where PyTorch has none: to differentiate it is an error."""
    cdef Node node = <Node>Node.__new__(Node)
    node.custom = NoDerivative(name)
    node.label = "NotImplemented"
    set_edges(node, inputs)
    return node


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


def may_have_tangent(Tensor t):
    """Whether a dual tensor may have gone into ``t``."""
    cdef Node node = get_grad_fn(t)
    return node is not None and bool(node.dual)


def mark_view_of_function(Tensor t):
    """``t``, a view that a custom Function returns, has the Function's derivative: never one made of its base's."""
    t.creation = IN_FUNCTION
    t.view_version = t.storage.version


def unhooked(Tensor t):
    """``t``, which is about to be written, to compute from. A view gets a node of its own, because its hooks do not
    apply to its new values.
    """
    if t.base is None or get_grad_fn(t) is None:
        return t
    cdef Tensor other = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
    other.grad_fn_ = make_view_node(t, t.base)
    return other


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


# ---- nodes that Python records ---------------------------------------------------------------------------------------


cpdef object record_custom(object maker, str label, list inputs, list outputs, list dirty=None, bint dual=False,
                           bint entered=False):
    """Make one node the maker of ``outputs``, and give it.

    ``maker`` is a function from the list of output gradients to one gradient per input, or a node without edges, of a
    subclass that runs itself (``_run_backward``). ``dirty`` says of each output at which of ``inputs`` it is to be
    found, as it was written in place, or -1. ``dual``: the outputs may have tangents. ``entered``: reverse passes enter
    the node, whatever leads on from it.
    """
    cdef Node node = <Node>maker if isinstance(maker, Node) else <Node>Node.__new__(Node)
    cdef Tensor t
    cdef int i
    node.custom = RUN_SELF if node is maker else maker
    node.label = label
    set_edges(node, inputs)
    node.dual |= dual
    if entered:
        node.tangents = 0
    node.noutputs = max(len(outputs), 1)
    metas = []
    for i in range(len(outputs)):
        if outputs[i] is None:
            metas.append(None)
            continue
        t = <Tensor?>outputs[i]
        metas.append((make_size(t.nd, t.sizes), <int>t.code))
        if dirty is not None and <int>dirty[i] >= 0 and t.base is not None:
            check_inplace(t, True)
            rebase_at(t, node, <int>dirty[i])
        else:
            t.grad_fn_ = node
            t.nr = i
            t.leaf_grad = False
    node.out_metas = tuple(metas)
    if ANOMALY:
        node.trace = callbacks.trace()
        if ANOMALY_NAN:
            callbacks.look_forward(label.removesuffix("Backward"), node.trace, inputs, outputs)
    return node


def node_output_metas(Node node):
    """(sizes, dtype) of every output of a custom node."""
    return [None if m is None else (m[0], DTYPES[<int>m[1]]) for m in node.out_metas]
