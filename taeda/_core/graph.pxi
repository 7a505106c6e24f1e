# The graph: nodes, saved tensors, and what recording an op does.

from sys import _getframe as current_frame

cdef int64_t SEQUENCE = 0
RUN_SELF = object()  # as a node's `custom`: a subclass of Node with a method `_run_backward`
cdef bint ANOMALY = False
cdef bint ANOMALY_NAN = True


cdef class Saved:
    """A tensor kept for the backward pass, with the version and the graph position it had."""


cdef class ReaderEntry:
    """An entry among the readers of ``storage``, for as long as the :class:`Saved` that has it."""

    def __dealloc__(self):
        if self.reader.link != NULL:
            leave(&self.reader)


cdef int keep_values(object x) except -1:
    """Let ``x``, which was saved, keep its values: it is copied before a write, which else makes the derivative an
    error."""
    cdef Saved s
    if type(x) is Saved:
        s = <Saved>x
        if s.storage is not None and s.tensor.overrides != ALWAYS:
            s.entry = ReaderEntry.__new__(ReaderEntry)
            s.entry.storage = s.storage
            s.entry.reader.saved = <PyObject*>s
            enter(&s.entry.reader, &s.storage.readers)
    return 0


cdef int copy_for_readers(Storage storage) except -1:
    """Before ``storage`` is written: those that keep its values go over to copies."""
    cdef Saved s
    while storage.readers != NULL:
        s = <Saved>storage.readers.saved
        leave(&s.entry.reader)
        if version_of(s) == s.version:
            own_copy(s)
    return 0


cdef int own_copy(Saved s) except -1:
    """Keep a copy, at the same place of the graph."""
    cdef Tensor t = s.tensor
    cdef Tensor copy = contiguous_copy(t if t.replaced == s.replaced else former_tensor(s))
    copy.grad_fn_, copy.nr = s.made_by, s.nr
    if s.made_by is None and not s.is_output and t.leaf_grad:
        s.leaf = t
    s.tensor, s.storage, s.version, s.replaced = copy, copy.storage, 0, 0
    return 0


cdef inline Tensor outside_graph(Tensor t):
    """``t`` outside the graph; of a class that is asked about ops, of that class."""
    return <Tensor?>t._detached() if asks_class(t) else alias_tensor(t, t.nd, t.sizes, t.strides, 0, True)


cdef Saved save_tensor(Tensor t, bint is_output, int64_t version, bint again=False):
    """Keep ``t``; with ``again``, what computes it again where that can be."""
    cdef Saved s = <Saved>Saved.__new__(Saved)
    if t.inference and not INFERENCE[0] and NO_GRAD[0] != TANGENTS:
        raise RuntimeError("Inference tensors cannot be saved for backward. To work around you can make a clone to get "
                           "a normal tensor and use it in autograd.")
    s.version = version + t.version_offset
    s.is_output = is_output
    s.nr = t.nr
    if not is_output:
        s.made_by = get_grad_fn(t)
    if recorders and SAVED_HOOKS[0] == NULL and not t.overrides:
        s.tensor = LAZY_COPY_OF(t, is_output)
        if s.tensor is None and again and t.storage.maker:
            s.tensor = made_again(t)
        if s.tensor is not None:
            s.original, s.version = t.storage.original, version
            return s
    t.storage.saved = True
    s.storage = t.storage
    if is_output:  # the node must not own its own output, which owns the node
        s.tensor = outside_graph(t)
        s.tensor.leaf_grad = False
        s.version = version
    else:
        s.tensor = t
        s.replaced = t.replaced
    if SAVED_HOOKS[0] != NULL:
        pack_tensor(s, (<list>SAVED_HOOKS[0])[len(<list>SAVED_HOOKS[0]) - 1])
    return s


cdef Tensor made_again(Tensor t):
    """A lazy copy of ``t``, computed by the op that made ``t`` from the tensors that its derivative keeps. None if
    these do not suffice, or if ``t`` has changed since.
    """
    cdef Node node = t.grad_fn_
    cdef PyObject* bound[MAXARGS]
    cdef Tensor made
    cdef Saved s
    cdef Op op
    cdef int i
    cdef uint64_t kept = 0
    if (node is None or node.seq != t.storage.maker or node.args is None or t.storage.version
            or t.storage.saved or t.storage.deferred is not None):
        return None
    op = node.op
    for i in range(op.ndiff):
        if node.targets[i] is not None:
            kept |= op.save_args[i]
    for i in range(op.nparams):
        x = node.args[i]
        bound[i] = <PyObject*>x
        if not (kept >> i) & 1:
            if op.kind == POINTWISE:
                return None
            bound[i] = <PyObject*>PyTuple_GET_ITEM(op.defaults, i)
        elif type(x) is Saved:
            s = <Saved>x
            if s.tensor is None or not is_as_saved(s):
                return None
            bound[i] = <PyObject*>s.tensor
        elif PyList_Check(x):
            return None
    made = pointwise_call(op, bound, None, False) if op.kind == POINTWISE else RUN_AGAIN(op, bound, t)
    return made if made is not None and KEEP_LAZY_COPY(t, made) else None


cdef Tensor still_there(Saved s):
    """The tensor of a lazy copy, if its memory is still there because somebody holds it; else None."""
    cdef Tensor t = s.tensor, like
    cdef Storage storage = <Storage>s.original.storage if s.original.storage != NULL else None
    if storage is None or storage.deferred is not None or storage.late is not None:
        return None
    like = <Tensor>Tensor.__new__(Tensor)
    like.code, like.holds = t.code, VALUES
    like = alias_tensor(like, t.nd, t.sizes, t.strides, 0)
    like.storage, like.raw = storage, storage.data
    return like


cdef int pack_tensor(Saved s, tuple hooks) except -1:
    """Keep what ``pack`` makes of the tensor instead of the tensor."""
    cdef int64_t version = s.tensor.storage.version
    cdef int previous = swap_no_grad(GRAD_OFF)
    pack, s.unpack = hooks
    try:
        s.packed = pack(s.tensor)
    finally:
        swap_no_grad(previous)
    if s.tensor.storage.version != version:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place, which would change the forward "
                           "pass. Clone the input first.")
    if not s.is_output and s.made_by is None and s.tensor.leaf_grad:
        s.leaf = s.tensor
    s.tensor = s.storage = None
    return 0


cdef Node output_maker(Saved s, Node node):
    """The node of a saved output of ``node``: ``node`` itself or, if the op wrote through a view, the view's node."""
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
        return in_place_of(s.leaf, alias)
    alias.grad_fn_ = maker
    alias.nr = s.nr if not s.is_output or maker is node else 0
    return alias


cdef Tensor in_place_of(Tensor leaf, Tensor alias):
    """``alias`` with a way to ``leaf`` in the graph: it requires grad, as the leaf does."""
    cdef Node maker = <Node>Node.__new__(Node)
    maker.custom = _pass_gradient
    maker.label = "UnpackBackward0"
    set_edges(maker, [leaf])
    alias.grad_fn_ = maker
    return alias


def _pass_gradient(grads):
    return list(grads)


cdef int64_t version_of(Saved s) except? -1:
    """The number of writes to the saved tensor so far; -1 if that is not known."""
    if s.original is not None:
        return (<Storage>s.original.storage).version if s.original.storage != NULL else s.original.last
    if s.tensor.replaced == s.replaced:
        return s.storage.version + s.tensor.version_offset
    form = former_form(s)
    return -1 if form is None else s.storage.version + <int64_t>form[1]


cdef bint is_as_saved(Saved s) except -1:
    """Whether the tensor still has the values that it had when it was saved."""
    return (s.original is not None or s.tensor.replaced == s.replaced) and version_of(s) == s.version


cdef Tensor unpack_tensor(Saved s, Node node):
    cdef Tensor t = s.tensor
    cdef Tensor alias
    if s.unpack is not None:
        return unpack_by_hook(s, node)
    cdef int64_t version = version_of(s)
    if version != s.version:
        made = "" if s.made_by is None and not s.is_output else \
            f", which is output {s.nr} of {(node if s.is_output else s.made_by).name()},"
        raise RuntimeError(
            f"one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{DTYPES[t.code]} {list(t.shape)}]{made} is at version {version}; expected version {s.version} "
            f"instead. Hint: it was saved for the derivative of {node.name()}; use the out-of-place form of the "
            f"operation that changed it, or enable anomaly detection (autograd.set_detect_anomaly(True)) to see the "
            f"forward line")
    if s.original is not None:
        alias = still_there(s)
        if alias is not None:
            t = alias
        if NO_GRAD[0] == GRAD_OFF:  # without an alias it needs no memory
            return t
    if s.is_output:
        alias = outside_graph(t)
        alias.grad_fn_ = output_maker(s, node)
        alias.nr = s.nr if alias.grad_fn_ is node else 0
        return alias
    alias = None
    if s.original is None and t.replaced != s.replaced:
        alias = former_tensor(s)
        if s.made_by is None:
            return in_place_of(t, alias) if t.leaf_grad else alias
    elif t.grad_fn_ is s.made_by:
        return t if s.leaf is None else in_place_of(s.leaf, t)
    elif t.grad_fn_ is None and s.original is None:
        raise RuntimeError("Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This "
                           "is not supported, please use out-of-place `.detach()` instead")
    else:
        alias = outside_graph(t)
    alias.grad_fn_ = s.made_by
    alias.nr = s.nr
    return alias


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


cdef enum:
    WORTH = 100  # products that an element enters. GELU again takes 6 % of the time of 128, 1.4 % of 512


cdef bint has_many_products(Op op, PyObject** bound, int i):
    """Whether each element of operand ``i`` enters so many products that it may be computed again."""
    cdef Tensor a, b
    if not op.sums_over or i > 1:
        return False
    if not isinstance(<object>bound[0], Tensor) or not isinstance(<object>bound[1], Tensor):
        return False
    a, b = <Tensor>bound[0], <Tensor>bound[1]
    if a.nd < 2 or b.nd < 2:
        return False
    if op.sums_over == 1:
        return i == 0 and a.nd == b.nd and b.count >= WORTH * a.sizes[1]
    if i == 0:
        a = b
    return a.sizes[a.nd - 1] * a.sizes[a.nd - 2] >= WORTH * (<Tensor>bound[0]).sizes[(<Tensor>bound[0]).nd - 1]


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
    gradients. ``tensor.grad_fn`` is the node that made a tensor.

    ``next_functions`` are the nodes of the inputs, ``name()`` is the derivative's name, ``register_hook(fn)`` calls
    ``fn(grad_inputs, grad_outputs)`` after the node ran.

    Examples:
        >>> x = taeda.tensor(2.0, requires_grad=True)
        >>> node = (x * 3).grad_fn
        >>> node.name(), [after.name() for after, _ in node.next_functions if after is not None]
        ('MulBackward0', ['taeda::autograd::AccumulateGrad'])
    """

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
        """The saved arguments of the op, by name: tensors as they are now, sizes as ``<name>_shape``."""
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
        return tuple([(_as_node(target), self.nrs[i] if isinstance(target, Node) else 0)
                      for i, target in enumerate(self.targets)])

    @property
    def for_tangents(self):
        """Whether reverse passes leave this node out: it was recorded under ``no_grad``, for forward mode."""
        return self.tangents == 1

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
        result = callbacks.apply_inner(self, list(grads))
        return result[0] if len(result) == 1 else tuple(result)

    def _recorded_at(self):
        """In anomaly mode, where the node was recorded; else None."""
        return self.trace

    def _sequence_nr(self):
        return self.seq

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this node ran; its result replaces ``grad_inputs``."""
        if self.post_hooks is None:
            self.post_hooks = {}
        return HookHandle(self.post_hooks, hook)

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this node runs; its result replaces ``grad_outputs``."""
        if self.pre_hooks is None:
            self.pre_hooks = {}
        return HookHandle(self.pre_hooks, hook)

    def saved_items(self):
        """Pairs (name, tensor) of the tensors that this node keeps for the backward pass, for inspection."""
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
        return self.variable.register_hook(NodeHook(hook))


cdef class NodeHook:
    """A hook on the node that stands for a leaf. Before the sum of gradients it is called with the gradient that came,
    after those of the leaf; behind the sum with no input gradients and that gradient."""

    def __init__(self, function):
        self.function = function


cdef object _as_node(object target):
    return AccumulateGrad(target) if isinstance(target, Tensor) else of_own_class(target)


cdef dict NODE_CLASSES = {}


cdef object of_own_class(Node node):
    """``node`` as programs see it, of a class with its name: they draw graphs by ``type(node).__name__``.

    The class is set when a node is first shown. It adds nothing to Node, so that objects of both have one layout.
    """
    cdef object before = type(node)
    if node is None or (before is not Node and NODE_CLASSES.get(before.__name__) is not before):
        return node
    name = node.name()
    if before.__name__ != name:
        found = NODE_CLASSES.get(name)
        if found is None:
            found = NODE_CLASSES[name] = type(name, (Node,), {"__slots__": (), "__module__": "builtins"})
        Py_INCREF(found)
        Py_SET_TYPE(<PyObject*>node, <PyTypeObject*>found)
        if before is not Node:
            Py_DECREF(before)
    return node


cdef int swaps_of(Tensor t) noexcept:
    """The number of swaps of ``t`` with another tensor; an edge to a leaf has it in place of an output's number.

    An edge with an older number leads to a leaf that is another tensor by now.
    """
    return <int>(t.replaced >> 32)


cdef object edge_of(Tensor t, int* nr):
    """The target of a gradient of ``t``: its node, itself for a leaf, or None."""
    cdef Node node = get_grad_fn(t)
    if node is not None:
        nr[0] = t.nr
        return node
    nr[0] = swaps_of(t)
    return t if t.leaf_grad else None


cdef inline bint asks_for_grad(PyObject* x) except -1:
    """Whether an argument is a tensor that is followed, or a list or tuple with one."""
    if is_tensor(x):
        return is_followed(<Tensor>x)
    return (PyList_Check(<object>x) or PyTuple_Check(<object>x)) and any_asks_for_grad(<object>x)


cdef bint any_asks_for_grad(object items) except -1:
    """Whether one of a list or tuple is a tensor that is followed."""
    for item in items:
        if isinstance(item, Tensor) and is_followed(<Tensor>item):
            return True
    return False


cdef bint any_wants_grad(Op op, PyObject** bound) except -1:
    """Whether an input that has a derivative is followed."""
    cdef int i
    for i in range(op.ndiff):
        if asks_for_grad(bound[op.diff_pos[i]]):
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
    if nstreams:
        node.stream = stream_here()
    if FORWARD_LEVELS[0] or NO_GRAD[0] == TANGENTS:
        note_forward_mode(node)
    return 0


cdef int note_forward_mode(Node node) except -1:
    """Whether tangents come to the node by its edges, and whether a reverse pass has a way on."""
    cdef bint ends = False
    for target in node.targets:
        if isinstance(target, Node):
            node.dual |= (<Node>target).dual
            ends = True
    if ends and NO_GRAD[0] == GRAD_ON:
        for target in node.targets:
            if target is not None and (not isinstance(target, Node) or (<Node>target).tangents != 1):
                ends = False
    node.tangents = ends or NO_GRAD[0] == TANGENTS
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


cdef Tensor as_it_was(Tensor t):
    """A copy of ``t``, which an in-place op is about to write, in its place of the graph."""
    cdef Tensor before = contiguous_copy(t)
    before.grad_fn_ = get_grad_fn(t)
    before.nr = t.nr
    return before


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
        # the edges are the ones from before the write: other views of the written memory are not yet stale
        written.version -= 1
        try:
            set_op_edges(node, bound, &args, &shapes)
        finally:
            written.version += 1
    if args:
        node.args = [None] * op.nparams
        for i in range(op.nparams):
            if (args >> i) & 1:
                if i == 0 and before is not None:
                    node.args[i] = save_tensor(before, False, before.storage.version)
                elif recorders and has_many_products(op, bound, i):
                    node.args[i] = save_tensor(<Tensor>bound[i], False, (<Tensor>bound[i]).storage.version, True)
                else:
                    node.args[i] = save_value(<object>bound[i], written)
                    if (op.copied >> i) & 1:
                        keep_values(node.args[i])
    if shapes:
        node.shapes = {}
        for i in range(op.nparams):
            if (shapes >> i) & 1:
                node.shapes[i] = shape_of(<object>bound[i])
            if (shapes >> (DTYPE_BIT + i)) & 1:
                node.shapes[DTYPE_BIT + i] = dtype_of(<object>bound[i])
    if ANOMALY:
        node.trace = callbacks.trace()
    return node


cdef int save_outputs(Node node, object result, bint is_tuple) except -1:
    cdef Op op = node.op
    cdef uint64_t outs = 0
    cdef int i
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
    for i in range(len(node.outs)):
        if (op.copied >> (OUTPUT_BIT + i)) & 1:
            keep_values(node.outs[i])
    return 0


cdef inline int forget_base(Tensor t) noexcept:
    """Make an output no view if its base is a tensor that its op made on the way and no other code holds."""
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


cdef int look_forward(Node node, Op op, PyObject** bound, object result) except -1:
    """In anomaly mode: look for NaN in an op's results and, if there is some, in its inputs."""
    results = [result] if isinstance(result, Tensor) else result
    for x in results:
        if has_nan(x):
            inputs = [<object>bound[i] for i in range(op.inplace, op.nparams)]
            callbacks.look_forward(op.name.lstrip("_"), node.trace, inputs, results)
            break
    return 0


cdef bint looks_for_nan() noexcept:
    """Whether gradients are looked through for NaN."""
    return ANOMALY and ANOMALY_NAN


def node_op(Node node):
    """The op that a node was recorded for; None for custom functions."""
    return node.op


ctypedef fused real:
    float
    double


cdef enum:
    FEW = 2048  # elements that a loop looks at in less time than a call of an op takes


cdef bint nan_among(real* values, int64_t count) noexcept nogil:
    cdef int64_t i
    cdef int found = 0
    for i in range(count):
        found |= values[i] != values[i]
    return found


def has_nan(x):
    """Whether a tensor has a NaN: by the sum, which is cheap, and a closer look where that is NaN; few elements are
    looked at one by one.

    False for tensors that cannot be inspected: other kinds, on meta, under ``vmap``.
    """
    cdef Tensor t
    cdef int before
    cdef char* memory
    if not isinstance(x, Tensor):
        return False
    t = <Tensor>x
    if KIND[t.code] < 2 or t.overrides or t.device_type == META_NUMBER or t.holds == NOTHING or is_mode_active():
        return False
    if t.count <= FEW and t.contiguous and not t.device_type and not is_conjugate_view(t):
        memory = address_of(t)
        if t.code == F32:
            return nan_among(<float*>memory, t.count)
        if t.code == F64:
            return nan_among(<double*>memory, t.count)
    before = swap_no_grad(GRAD_OFF)
    try:
        total = t.sum().item()
        return total != total and bool((t != t).any())
    finally:
        swap_no_grad(before)


def frames_outside(str package, int most):
    """The innermost functions that run outside of the folder ``package``: at most ``most`` pairs of code and line."""
    cdef list found = []
    frame = current_frame()
    while frame is not None and len(found) < most:
        code = frame.f_code
        if not (<str>code.co_filename).startswith(package):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return found


def set_anomaly(bint enabled, bint check_nan=True):
    """Remember where each op was recorded and look for NaN in gradients. Gives the previous setting."""
    global ANOMALY, ANOMALY_NAN
    previous = (ANOMALY, ANOMALY_NAN)
    ANOMALY, ANOMALY_NAN = enabled, check_nan
    return previous


def push_saved_hooks(pack, unpack):
    """Route tensors saved for backward through ``pack`` and back through ``unpack``."""
    stack = getattr(_thread_modes, "saved_hooks", None)
    if stack is None:
        stack = _thread_modes.saved_hooks = []
    stack.append((pack, unpack))
    SAVED_HOOKS[0] = <PyObject*>stack


def saved_hooks_active():
    """Whether this thread has hooks on saved tensors."""
    return SAVED_HOOKS[0] != NULL


def saved_hooks():
    """This thread's innermost ``(pack, unpack)``, or None."""
    return None if SAVED_HOOKS[0] == NULL else _thread_modes.saved_hooks[len(_thread_modes.saved_hooks) - 1]


def pop_saved_hooks():
    stack = _thread_modes.saved_hooks
    stack.pop()
    if not stack:
        SAVED_HOOKS[0] = NULL
