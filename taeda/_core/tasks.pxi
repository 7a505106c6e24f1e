# What Python asks of the pass under way, and nodes that Python records.


def current_task():
    """A number for the backward pass under way on this thread, -1 where there is none."""
    return -1 if TASK[0] == NULL else <size_t>TASK[0]


def task_is_partial():
    """Whether the backward pass under way is for some inputs only."""
    return TASK[0] != NULL and (<GraphTask>TASK[0]).needed is not None


def task_reaches(node, int nr):
    """Whether the backward pass under way may still bring a gradient to an edge."""
    cdef GraphTask task = <GraphTask>TASK[0]
    if isinstance(node, AccumulateGrad):
        return node.variable in task.leaves and (task.needed is None or node.variable in task.needed)
    return node in task.buffers and (task.needed is None or node in task.needed)


def at_end_of_task(function):
    """Call ``function()`` when the backward pass under way is over."""
    cdef GraphTask task = <GraphTask>TASK[0]
    if task.at_end is None:
        task.at_end = []
    task.at_end.append(function)


def depends_on_others(list tensors, leaves):
    """Whether the graph of ``tensors`` leads to a leaf that is not among ``leaves``."""
    cdef set known = {id(t) for t in leaves}
    cdef set seen = set()
    cdef list stack = []
    cdef Node node
    cdef object target
    cdef int i, nr = 0
    for t in tensors:
        target = edge_of(<Tensor?>t, &nr)
        if target is not None:
            stack.append(target)
    while stack:
        target = stack.pop()
        if isinstance(target, Tensor):
            if id(target) not in known:
                return True
            continue
        if target in seen:
            continue
        seen.add(target)
        node = <Node>target
        for i in range(len(node.targets)):
            if node.targets[i] is not None:
                stack.append(node.targets[i])
    return False


def leaf_node(Tensor t):
    """The node that stands for the leaf ``t``."""
    return AccumulateGrad(t)


cdef object find_edge(object x, int* nr):
    """The edge of a tensor, or a pair (node, number of its output) as it is."""
    cdef object target
    if isinstance(x, Tensor):
        target = edge_of(<Tensor>x, nr)
        if target is None:
            raise RuntimeError(f"a {type(x).__name__} of sizes {list(x.shape)} is not part of a graph and does not "
                               f"require grad")
        return target
    node, number = x[0], x[1]
    nr[0] = number
    if isinstance(node, AccumulateGrad):
        return node.variable
    return <Node?>node


cdef int mark_needed(list nodes, set needed) except -1:
    """Add every node from which something needed can be reached (oldest first, so one pass does)."""
    cdef Node node
    cdef int i
    for i in range(len(nodes) - 1, -1, -1):
        node = <Node>nodes[i]
        if _below(node, needed):
            needed.add(node)
    return 0


cdef bint _below(Node node, set needed):
    for target in node.targets:
        if target is not None and target in needed:
            return True
    return False


def record_custom(function, str label, list inputs, list outputs):
    """Make one node the maker of ``outputs``: ``function(list of output gradients)`` gives one gradient per input."""
    cdef Node node = <Node>Node.__new__(Node)
    cdef Tensor t
    cdef int i
    node.custom = function
    node.label = label
    set_edges(node, inputs)
    node.noutputs = max(len(outputs), 1)
    metas = []
    for i in range(len(outputs)):
        if outputs[i] is None:
            metas.append(None)
            continue
        t = <Tensor?>outputs[i]
        metas.append((make_size(t.nd, t.sizes), <int>t.code))
        t.grad_fn_ = node
        t.nr = i
        t.leaf_grad = False
    node.out_metas = tuple(metas)
    if ANOMALY:
        import traceback
        node.trace = traceback.extract_stack()
    return node


def new_node(cls=Node):
    """A node with no edges yet, for :func:`record_function`."""
    return cls.__new__(cls)


def record_function(Node node, str label, list inputs, list outputs, list dirty):
    """Make ``node``, of a subclass that runs itself (``_run_backward``), the maker of ``outputs``.

    ``dirty`` says of each output at which of ``inputs`` it is to be found, as it was written in place, or -1.
    """
    cdef Tensor t
    cdef int i
    node.custom = RUN_SELF
    node.label = label
    set_edges(node, inputs)
    node.noutputs = max(len(outputs), 1)
    metas = []
    for i in range(len(outputs)):
        if outputs[i] is None:
            metas.append(None)
            continue
        t = <Tensor?>outputs[i]
        metas.append((make_size(t.nd, t.sizes), <int>t.code))
        if <int>dirty[i] >= 0 and t.base is not None:
            check_inplace(t, True)
            rebase_at(t, node, <int>dirty[i])
        else:
            t.grad_fn_ = node
            t.nr = i
            t.leaf_grad = False
    node.out_metas = tuple(metas)
    if ANOMALY:
        import traceback
        node.trace = traceback.extract_stack()
    return node


def apply_inner(Node node, list grads):
    """Gradients of the inputs of a node inside CopySlices."""
    return apply_node(node, grads, None)


def node_output_metas(Node node):
    """(sizes, dtype) of every output of a custom node."""
    return [None if m is None else (m[0], DTYPES[<int>m[1]]) for m in node.out_metas]


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


def pop_saved_hooks():
    stack = _thread_modes.saved_hooks
    stack.pop()
    if not stack:
        SAVED_HOOKS[0] = NULL
