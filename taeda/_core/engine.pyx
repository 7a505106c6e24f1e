"""The engine: runs nodes from the outputs back, in reverse order of recording."""

import threading

cimport cython
from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_Check
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_Check
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from ..kernels.forks import free_in_children
from .callbacks import callbacks
from .memory cimport n_deferred
from .passes cimport repeat_pass
from .devices cimport CPU_NUMBER, META_NUMBER, behind, elsewhere, end_call, here, nstreams, swap_place
from .deferred cimport is_recording
from .tensor cimport (
    ADD, DTYPES, GRAD_OFF, GRAD_ON, IADD, NOTHING, TANGENTS, VALUES, CopySlices, Node, NodeHook, Op, Saved, Tensor,
    binary, compute_late, copy_into, edge_of, empty_strided_like, empty_tensor, forward_levels, grad_setting, has_mode,
    is_dense, is_plain, looks_for_nan, make_size, resolved, same_sizes, swap_no_grad, swaps_of, unpack_value,
)
from .tensor import RUN_SELF, AccumulateGrad, current_mode, has_nan

cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject**, size_t, PyObject*)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)
    PyObject** PySequence_Fast_ITEMS(object)
    Py_ssize_t Py_REFCNT(PyObject*)

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define TAEDA_THREAD_LOCAL __declspec(thread)
    #elif defined(__GLIBC__)
    /* one instruction, where other models call a function */
    #define TAEDA_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
    #else
    #define TAEDA_THREAD_LOCAL __thread
    #endif
    /* per thread: the backward pass under way (NULL: none), and whether passes enter nodes of forward mode alone */
    static TAEDA_THREAD_LOCAL PyObject *taeda_task[1];
    static TAEDA_THREAD_LOCAL int taeda_through[1];
    /* per thread: how many backward passes are under way, each within the one before */
    static TAEDA_THREAD_LOCAL int taeda_depth[1];
    """
    PyObject** TASK "taeda_task"
    int* THROUGH "taeda_through"
    int* DEPTH "taeda_depth"

cdef enum:
    MOST_NESTED = 16    # passes within passes on one thread: Python allows a stack of 1,000 calls


@cython.final
cdef class LeafEntry:
    cdef int pending             # contributions still to come
    cdef bint swapped            # the leaf is another tensor than when the graph was made
    cdef object grad


cdef inline bint is_wanted(Node node, int i, set needed) except -1:
    """Whether the gradient of input ``i`` is needed. ``needed`` holds the nodes that need one; None means every input
    that requires grad.
    """
    return node.targets[i] is not None and (needed is None or node.targets[i] in needed)


cdef list apply_node(Node node, list grads, set needed):
    """Gradients of the node's inputs, one per target, for the gradients of its outputs."""
    cdef Op op = node.op
    cdef int i, k, n
    cdef list result
    cdef dict given = None
    cdef object g, made
    if node.custom is not None:
        made = node._run_backward(grads) if node.custom is RUN_SELF else node.custom(grads)
        return made if type(made) is list else list(made)
    if node.released:
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
            "you need to access saved tensors after calling backward. A value that is carried from one step to the "
            "next, as a recurrent state is, must leave the old graph instead: state = state.detach().")
    if node.noutputs == 1:
        g = grads[0]
    elif op.traits.get("single_grad") is not None:
        i = op.traits["single_grad"]
        g = grads[i] if grads[i] is not None else _zeros(node.out_metas[i])
    else:
        g = tuple([grads[i] if grads[i] is not None else _zeros(node.out_metas[i]) for i in range(node.noutputs)])
    n = op.ndiff
    result = []
    k = 0
    if n > 1 and (node.args is not None and is_packed(node.args) or node.outs is not None and is_packed(node.outs)):
        given = {}
    if op.joint:
        needs = tuple([is_wanted(node, i, needed) for i in range(len(node.targets))])
        made = call_derivative(node, op, 0, g, needs, given)
        if not isinstance(made, (tuple, list)):
            made = (made,)
        if node.counts is None:
            result = list(made)
        else:
            for i in range(n):
                if node.counts[i] < 0:
                    result.append(made[i])
                else:
                    result.extend(made[i] if made[i] is not None else [None] * node.counts[i])
    elif node.counts is None:
        for i in range(n):
            if not is_wanted(node, i, needed):
                result.append(None)
            else:
                result.append(call_derivative(node, op, i, g, None, given))
    else:
        for i in range(n):
            count = node.counts[i]
            if count < 0:
                result.append(None if not is_wanted(node, k, needed) else
                              call_derivative(node, op, i, g, None, given))
                k += 1
            else:
                needs = tuple([is_wanted(node, k + j, needed) for j in range(count)])
                made = call_derivative(node, op, i, g, needs, given) if any(needs) else None
                result.extend(made if made is not None else [None] * count)
                k += count
    if node.metas is not None:
        for i in range(n):
            meta = node.metas[i]
            if meta is not None and result[i] is not None:
                result[i] = fit_gradient(result[i], meta)
    return result


cdef object WATCHER = None    # told of every node that runs; see watch_nodes
cdef str ACCUMULATE = "torch::autograd::AccumulateGrad"


def watch_nodes(watcher):
    """Call ``watcher.enter(name, number)`` before a node runs, ``watcher.leave(result of enter)`` after it, and then
    ``watcher.weigh(result of enter, tensors)`` with all tensors that it may have read and written.

    The number is the node's place in the order of recording. This holds for all threads. None stops it.
    """
    global WATCHER
    WATCHER = watcher


cdef list watch_node(Node node, list grads, set needed):
    watcher = WATCHER
    place = watcher.enter(node.name(), node.seq)
    try:
        made = apply_node(node, grads, needed)
    finally:
        watcher.leave(place)
    watcher.weigh(place, (grads, made, [t for _, t in node.saved_items()]))
    return made


cdef object fit_gradient(object g, tuple meta):
    """Sum over broadcast dimensions and convert to the input's dtype."""
    cdef Tensor t = <Tensor?>g
    if make_size(t.nd, t.sizes) != meta[0]:
        t = callbacks.sum_to(t, meta[0])
    if t.code != <int>meta[1]:
        t = callbacks.grad_cast(t, DTYPES[<int>meta[1]])
    return t


cdef object call_derivative(Node node, Op op, int which, object g, object needs, dict given):
    """The gradients that a derivative computes, in the order of its own arguments."""
    cdef list values = plan_values(node, <tuple>op.diff_plans[which], g, needs, given)
    return PyObject_Vectorcall(<object>op.diff_fns[which], PySequence_Fast_ITEMS(values), len(values), NULL)


cdef bint is_packed(list items) except -1:
    """Whether a hook keeps one of the tensors."""
    for item in items:
        if type(item) is Saved and (<Saved>item).unpack is not None or PyList_Check(item) and is_packed(<list>item):
            return True
    return False


cdef object unpack_once(object x, Node node, dict given):
    """The value of ``x``. A hook is called once for all derivatives of the node, which share what it gave."""
    if given is None:
        return unpack_value(x, node)
    if PyList_Check(x):
        return [unpack_once(item, node, given) for item in x]
    if id(x) not in given:
        given[id(x)] = unpack_value(x, node)
    return given[id(x)]


cdef list plan_values(Node node, tuple plan, object g, object needs, dict given):
    """The arguments that a derivative asks for, in its order."""
    cdef list values = []
    for kind, index in plan:
        if kind == 0:
            values.append(g)
        elif kind == 1:
            values.append(unpack_once(node.args[index], node, given))
        elif kind == 2:
            values.append(unpack_once(node.outs[index], node, given))
        elif kind == 3:
            values.append(needs)
        else:
            values.append(node.shapes[index])
    return values


cdef object _zeros(tuple meta):
    return callbacks.zeros(meta[0], DTYPES[<int>meta[1]])


cdef bint keeps_tensors(list items) except -1:
    for item in items:
        if type(item) is Saved or PyList_Check(item) and keeps_tensors(<list>item):
            return True
    return False


cdef inline bint keeps_number(Node node) noexcept:
    """Whether a number is kept in the place of a tensor, as in ``x * 2``: PyTorch saves those of ops with two
    operands."""
    cdef int i
    cdef object x
    if node.op.noperands == 2:
        for i in range(node.op.ndiff):
            x = node.args[node.op.diff_pos[i]]
            if PyFloat_Check(x) or PyLong_Check(x) or PyComplex_Check(x):
                return True
    return False


cdef inline int release_node(Node node) except -1:
    """Release the operands that the node keeps; one that keeps none can be used again."""
    if node.outs is not None or node.args is not None and (keeps_number(node) or keeps_tensors(node.args)):
        node.released = True
        node.args = None
        node.outs = None
    elif node.custom is not None and type(node.custom) is CopySlices:
        release_node((<CopySlices>node.custom).inner)
    elif node.custom is RUN_SELF:
        node._release_saved()
    return 0


cdef bint is_sole(PyObject* held) except -1:
    """Whether no other code can see the memory of a gradient. ``held`` is borrowed from the only place that should hold
    it.
    """
    cdef Tensor t
    if type(<object>held) is not Tensor or Py_REFCNT(held) != 1:
        return False
    t = <Tensor>held
    if t.holds != VALUES and (t.holds != NOTHING or has_no_memory(t)):
        return False
    return Py_REFCNT(<PyObject*>t.storage) == 1 and t.storage.owner is None and not t.leaf_grad and t.grad_fn_ is None \
        and is_dense(t)


cdef int add_into(object a, object b) except -1:
    cdef int previous = swap_no_grad(GRAD_OFF)
    try:
        binary(IADD, a, b)
    finally:
        swap_no_grad(previous)
    return 0


cdef object sum_outside(object a, object b):
    """The sum of both, outside the graph."""
    cdef int previous = swap_no_grad(GRAD_OFF)
    try:
        return binary(ADD, a, b)
    finally:
        swap_no_grad(previous)


cdef inline int convert_to_leaf(Tensor leaf, LeafEntry entry) except -1:
    """Convert a gradient to the leaf's dtype: a derivative that ran under autocast may give another."""
    if (<Tensor?>entry.grad).code != leaf.code and not leaf.replaced:  # else it had another dtype when it was used
        entry.grad = callbacks.grad_cast(entry.grad, DTYPES[leaf.code])
    return 0


cdef int accumulate(Tensor leaf, LeafEntry entry, bint create_graph) except -1:
    """Add the gradient of ``entry`` to ``leaf.grad``. The leaf takes over the gradient's memory if no other code can
    see it.
    """
    convert_to_leaf(leaf, entry)
    if leaf.device_type > META_NUMBER or (<Tensor>entry.grad).device_type > META_NUMBER:
        accumulate_there(leaf, entry, create_graph)
    elif adding or not take_over(leaf, entry, create_graph):
        add_alone(leaf, entry, create_graph)
    return run_post_hooks(leaf, entry.grad)


cdef int run_post_hooks(Tensor leaf, grad) except -1:
    """Call the hooks that come after the sum of gradients, of which ``grad`` is the last term."""
    if leaf.post_hooks is not None:
        for hook in list(leaf.post_hooks.values()):
            if type(hook) is NodeHook:
                (<NodeHook>hook).function((), (grad,))
            else:
                changed = hook(leaf)
                if isinstance(changed, Tensor):
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
                if changed is not None:
                    raise TypeError(f"expected Variable, but hook returned '{type(changed).__name__}'")
    return 0


cdef int accumulate_there(Tensor leaf, LeafEntry entry, bint create_graph) except -1:
    """`add_to_leaf` on a device."""
    cdef int before
    if leaf.device_type != (<Tensor>entry.grad).device_type:
        raise RuntimeError(f"the gradient of a leaf is on another device: expected {leaf.device}, got "
                           f"{entry.grad.device}")
    before = swap_place(leaf.device_type)
    try:
        add_alone(leaf, entry, create_graph)
    finally:
        swap_place(before)
    return end_call()


cdef object LEAF_LOCK = free_in_children(threading.RLock())
cdef int adding = 0  # threads that add to leaves: where there is one, a gradient without a sum waits for it too


cdef int add_alone(Tensor leaf, LeafEntry entry, bint create_graph) except -1:
    """`add_to_leaf` on one thread at a time: kernels let other threads run, which may come to the same leaf."""
    global adding
    with LEAF_LOCK:
        adding += 1
        try:
            return add_to_leaf(leaf, entry, create_graph)
        finally:
            adding -= 1


cdef inline bint has_no_memory(Tensor t) except -1:
    """Whether ``t`` is sparse, batched or of another kind without elements of its own, or on device meta."""
    return t.holds == NOTHING and (
        t.device_type <= META_NUMBER or type(<object>t) is not Tensor and t._without_memory is not None)


cdef bint take_over(Tensor leaf, LeafEntry entry, bint create_graph) except -1:
    """Let ``leaf.grad`` be the gradient itself, if there was none and no other code can see its memory."""
    cdef bint sole = leaf.grad_ is None and not create_graph and is_sole(<PyObject*>entry.grad)
    cdef Tensor g = <Tensor>entry.grad
    if not sole or not same_sizes(g, leaf) or memcmp(g.strides, leaf.strides, g.nd * sizeof(int64_t)) != 0:
        return False
    leaf.grad_ = g
    g.base = None
    return True


cdef int add_to_leaf(Tensor leaf, LeafEntry entry, bint create_graph) except -1:
    cdef Tensor g
    if take_over(leaf, entry, create_graph):  # before `g`, another reference
        return 0
    g = <Tensor>entry.grad
    if has_no_memory(g) or leaf.grad_ is not None and has_no_memory(<Tensor>leaf.grad_):
        leaf.grad_ = g if leaf.grad_ is None else sum_outside(leaf.grad_, g)  # it may be sparse or dense
    elif leaf.grad_ is None:
        if not same_sizes(g, leaf):
            leaf.grad_ = callbacks.clone(g)
        else:
            leaf.grad_ = callbacks.clone(g) if create_graph else copy_like(leaf, g)
    elif create_graph:
        leaf.grad_ = binary(ADD, leaf.grad_, g)
    else:
        add_into(leaf.grad_, g)
    return 0


cdef Tensor copy_like(Tensor leaf, Tensor g):
    """A copy of ``g`` in memory of its own, laid out as ``leaf``."""
    cdef Tensor t = empty_strided_like(g.code, leaf) if is_dense(leaf) else empty_tensor(g.code, g.nd, g.sizes)
    copy_into(t, g)
    return t


def _sequence(Node node):
    return node.seq


cdef int refuse_changed(Node node) except -1:
    """Raise if a reverse pass would leave out a write by an in-place op of forward mode."""
    if node.tangents == 2:
        raise RuntimeError(f"{node.name()}: a tensor that requires grad was written in place under no_grad() in "
                           "forward mode, and a reverse pass cannot go on from there. Use the out-of-place form")
    return 0


cdef inline int count_leaf(dict leaves, object target) except -1:
    cdef LeafEntry entry = leaves.get(target)
    if entry is None:
        entry = LeafEntry.__new__(LeafEntry)
        leaves[target] = entry
    entry.pending += 1
    return 0


cdef inline bint has_memory_on(Tensor t, int number) noexcept:
    """Whether a tensor has memory of its own on a device. Sparse and batched ones have none."""
    return t.storage is not None and t.storage.device == number and t.storage.data != NULL


@cython.final
cdef class GraphTask:
    """One backward pass."""

    cdef dict buffers            # Node -> list of output gradients, or None
    cdef dict leaves             # leaf Tensor -> LeafEntry
    cdef dict captures           # target -> {nr: position in results}
    cdef list results
    cdef bint create_graph
    cdef bint keep_graph
    cdef bint through            # enter also nodes that exist for forward mode only
    cdef bint into_leaves        # accumulate into .grad
    cdef set wanted              # the leaves to accumulate into; None: all
    cdef set needed              # nodes and leaves on a path to the requested inputs; None: all
    cdef list at_end             # functions to call when the pass is over
    cdef set streams             # (device, stream) of nodes that ran on other streams than the one of the pass
    cdef int home                # that stream, while a node runs on its own; -1: it is the current one

    cdef list collect(self, list roots):
        """Every node that can be reached, newest first; counts what each leaf will get."""
        cdef list stack = [], nodes = []
        cdef object target
        for target in roots:
            self.meet(target, stack, nodes)
        while stack:
            for target in (<Node>stack.pop()).targets:
                if target is not None:
                    self.meet(target, stack, nodes)
        nodes.sort(key=_sequence, reverse=True)
        return nodes

    cdef inline int meet(self, object target, list stack, list nodes) except -1:
        """Count a leaf, or note a node that is met for the first time."""
        if not isinstance(target, Node):
            return count_leaf(self.leaves, target)
        if (<Node>target).tangents and not self.through:
            return refuse_changed(<Node>target)
        if target not in self.buffers:
            self.buffers[target] = None
            stack.append(target)
            nodes.append(target)
        return 0

    cdef int deliver(self, object target, int nr, object grad) except -1:
        """Hand ``grad`` (None: nothing) to output ``nr`` of ``target``."""
        if nstreams and isinstance(grad, Tensor) and (<Tensor>grad).device_type > META_NUMBER:
            return self.deliver_there(target, nr, grad)
        return self.deliver_here(target, nr, grad)

    cdef int deliver_there(self, object target, int nr, object grad) except -1:
        """:meth:`deliver` of a gradient on a device, on the stream of ``target``."""
        cdef int before, number = (<Tensor>grad).device_type
        before = self.move_to(number, (<Node>target).stream if isinstance(target, Node) else self.home, grad)
        try:
            return self.deliver_here(target, nr, grad)
        finally:
            if before >= 0:
                behind[number].swap_stream(number, before)

    cdef int move_to(self, int number, int stream, object grad) except -2:
        """Make a stream of a device the current one, with a gradient that was made on the one before; gives that.
        -1: it is the current one already, or none."""
        cdef int before
        if stream < 0 or behind[number].swap_stream == NULL:
            return -1
        before = behind[number].swap_stream(number, stream)
        if behind[number].stream(number) == before:
            return -1
        behind[number].join(number, before)
        self.streams.add((number, stream))
        if has_memory_on(<Tensor>grad, number):
            behind[number].keep(number, (<Tensor>grad).storage.data)
        end_call()
        return before

    cdef inline int deliver_here(self, object target, int nr, object grad) except -1:
        """:meth:`deliver` on the current stream."""
        cdef list buffer
        cdef LeafEntry entry
        grad = resolved(grad)
        if isinstance(target, Node):
            if grad is None or (<Node>target).tangents and not self.through:
                return 0
            grad = as_output(<Node>target, nr, grad)
            buffer = self.buffers[target]
            if buffer is None:
                buffer = [None] * (<Node>target).noutputs
                self.buffers[target] = buffer
            if buffer[nr] is None:
                buffer[nr] = grad
            elif not self.add_in_place(PyList_GET_ITEM(buffer, nr), grad):
                buffer[nr] = binary(ADD, buffer[nr], grad)
            return 0
        entry = <LeafEntry>self.leaves[target]
        entry.pending -= 1
        entry.swapped |= nr != swaps_of(<Tensor>target)
        if grad is None:
            return 0
        if entry.grad is None:
            entry.grad = grad
        elif not self.add_in_place(<PyObject*>entry.grad, grad):
            entry.grad = binary(ADD, entry.grad, grad)
        return 0

    cdef bint add_in_place(self, PyObject* held, object grad) except -1:
        """Add ``grad`` into the memory of ``held``, borrowed from where it waits, if that may be written; whether it
        was."""
        if self.create_graph or has_mode() or not is_plain(<PyObject*>grad) or not is_sole(held) \
                or not same_sizes(<Tensor>held, <Tensor>grad) or (<Tensor>held).code != (<Tensor>grad).code:
            return False
        if n_deferred and ((<Tensor>held).storage.deferred is not None or (<Tensor>grad).storage.deferred is not None):
            return False  # the sum is deferred with them
        add_into(<object>held, grad)
        return True

    cdef int settle(self, object target) except -1:
        """Finish a leaf to which all gradients have come. Called when its entry alone holds their sum."""
        cdef LeafEntry entry
        if not isinstance(target, Node):
            entry = <LeafEntry>self.leaves[target]
            if entry.pending == 0 and entry.grad is None:
                return self.run_leaf_hooks_for_nothing(<Tensor>target)
            if entry.pending == 0:
                if self.home < 0:
                    self.finish_leaf(<Tensor>target, entry)
                else:
                    self.finish_at_home(<Tensor>target, entry)
                entry.grad = None
        return 0

    cdef int finish_at_home(self, Tensor leaf, LeafEntry entry) except -1:
        """:meth:`finish_leaf` on the stream of the pass."""
        cdef int number = leaf.device_type
        cdef int before = behind[number].swap_stream(number, self.home) if behind[number].swap_stream != NULL else -1
        try:
            return self.finish_leaf(leaf, entry)
        finally:
            if before >= 0:
                behind[number].swap_stream(number, before)

    cdef int finish_leaf(self, Tensor leaf, LeafEntry entry) except -1:
        cdef bint captured = self.captures is not None and leaf in self.captures
        if not captured and self.wanted is not None and leaf not in self.wanted:
            return 0
        if entry.swapped:
            raise RuntimeError("backward(): a leaf of this graph was exchanged for another tensor after the forward "
                               "pass, by utils.swap_tensors() or by a conversion of its module with "
                               "set_swap_module_params_on_conversion(True), so its gradient has no place to go. "
                               "Convert or load a module before the forward pass, or after backward(). (PyTorch: "
                               "Trying to execute AccumulateGrad node that was poisoned by swap_tensors)")
        if captured or leaf.hooks is not None:
            convert_to_leaf(leaf, entry)
        if leaf.hooks is not None:
            entry.grad = after_hooks(leaf, entry.grad, False)
        if captured:
            self.capture(leaf, 0, entry.grad)
            return 0
        if self.into_leaves and leaf.leaf_grad and (self.wanted is None or leaf in self.wanted):
            if leaf.hooks is not None:
                entry.grad = after_hooks(leaf, entry.grad, True)
            watcher = WATCHER
            if watcher is not None:
                place = watcher.enter(ACCUMULATE, -1)
            accumulate(leaf, entry, self.create_graph)
            if watcher is not None:
                watcher.leave(place)
        return 0

    cdef int settle_leaves(self) except -1:
        """Compute deferred gradients of leaves together."""
        cdef list late = []
        for leaf in self.leaves:
            g = (<Tensor>leaf).grad_
            if g is not None and ((<Tensor>g).holds == VALUES or (<Tensor>g).device_type) \
                    and (<Tensor>g).storage is not None and (<Tensor>g).storage.deferred is not None:
                late.append((<Tensor>g).storage)
        return compute_late(late) if late else 0

    cdef int capture(self, object target, int nr, object grad) except -1:
        for position in self.captures[target].get(nr, ()):
            self.results[position] = grad
        return 0

    cdef int deliver_nothing(self, Node node) except -1:
        cdef int i
        for i in range(len(node.targets)):
            if node.targets[i] is not None:
                self.deliver(node.targets[i], node.nrs[i], None)
                self.settle(node.targets[i])
        return 0

    cdef int run_hooks_for_nothing(self, Node node) except -1:
        """Call the hooks of a node to which no gradient came. They see None in its place."""
        if node.tensor_hooks is not None or node.pre_hooks is not None:
            run_pre_hooks(node, [None] * node.noutputs)
        return self.run_post_hooks_for_nothing(node)

    cdef int run_post_hooks_for_nothing(self, Node node) except -1:
        """The part of :meth:`run_hooks_for_nothing` that comes after the node."""
        cdef list grads
        if node.post_hooks is not None:
            grads = [None] * len(node.targets)
            for hook in list(node.post_hooks.values()):
                take_changed(hook, hook(tuple(grads), (None,) * node.noutputs), grads)
        return 0

    cdef int run_leaf_hooks_for_nothing(self, Tensor leaf) except -1:
        """:meth:`run_hooks_for_nothing` for a leaf."""
        cdef bint captured = self.captures is not None and leaf in self.captures
        cdef bint counted = self.into_leaves and leaf.leaf_grad and (self.wanted is None or leaf in self.wanted)
        if leaf.hooks is not None and (captured or counted):
            after_hooks(leaf, None, False)
            if not captured:
                after_hooks(leaf, None, True)
        return run_post_hooks(leaf, None) if counted and not captured else 0

    cdef int run_on_stream(self, Node node, bint execute) except -1:
        """:meth:`run_node` on the stream on which the op ran."""
        cdef list grads = self.buffers[node]
        cdef int number = CPU_NUMBER if grads is None else place_of(grads)
        if number <= META_NUMBER or behind[number].swap_stream == NULL:
            return self.run_node(node, execute)
        grads = None
        self.home = behind[number].swap_stream(number, node.stream)
        try:
            return self.run_node(node, execute)
        finally:
            behind[number].swap_stream(number, self.home)
            self.home = -1

    cdef int join_streams(self) except -1:
        """Let the stream of the pass wait for those that nodes ran on."""
        cdef int number, stream
        for number, stream in self.streams:
            if behind[number].stream(number) != stream:
                behind[number].join(number, stream)
        for g in self.results or ():
            if isinstance(g, Tensor) and (<Tensor>g).device_type > META_NUMBER:
                number = (<Tensor>g).device_type
                if behind[number].keep != NULL and has_memory_on(<Tensor>g, number):
                    behind[number].keep(number, (<Tensor>g).storage.data)
        return end_call()

    cdef int run_node(self, Node node, bint execute) except -1:
        cdef int before = here() if elsewhere else CPU_NUMBER
        cdef int place = before
        cdef int setting = -1
        cdef list grads = self.buffers.pop(node)
        cdef list made
        cdef int i
        cdef bint captured = self.captures is not None and node in self.captures
        if grads is None and execute and node.custom is RUN_SELF:
            grads = [None] * node.noutputs  # its author decides what that means
        if grads is None or not (execute or captured):
            if execute or captured:
                self.run_hooks_for_nothing(node)
            self.deliver_nothing(node)
            return 0
        if node.tensor_hooks is not None or node.retained is not None or node.pre_hooks is not None:
            run_pre_hooks(node, grads)
        if captured:
            for i in range(node.noutputs):
                self.capture(node, i, grads[i])
        if execute and node.pre_hooks is not None and node.custom is None and all([g is None for g in grads]):
            self.run_post_hooks_for_nothing(node)  # a hook has taken the gradients away
            execute = False
        if not execute:
            self.deliver_nothing(node)
            return 0
        if node.tangents and self.create_graph:
            setting = swap_no_grad(TANGENTS)
        if node.custom is not RUN_SELF:
            place = place_of(grads)
        if place != before:
            swap_place(place)
        try:
            made = apply_node(node, grads, self.needed) if WATCHER is None else watch_node(node, grads, self.needed)
            if setting >= 0:
                made = callbacks.hide_all(made)
        except Exception as error:
            explain_failure(node, error)
            raise
        finally:
            if place != before:
                swap_place(before)
            if setting >= 0:
                swap_no_grad(setting)
        end_call()
        if node.post_hooks is not None:
            for hook in list(node.post_hooks.values()):
                take_changed(hook, hook(tuple(made), tuple(grads)), made)
        if looks_for_nan():
            for g in made:
                if has_nan(g):
                    callbacks.check_nan(node.name(), made, node.trace)
        if not self.keep_graph:
            release_node(node)
        grads = None
        if len(made) < len(node.targets):
            raise RuntimeError(f"{node.name()} gave {len(made)} gradients for {len(node.targets)} inputs")
        for i in range(len(node.targets)):
            if node.targets[i] is not None:
                grad = made[i]
                made[i] = None
                self.deliver(node.targets[i], node.nrs[i], grad)
                grad = None
                self.settle(node.targets[i])
        return 0


cdef inline int place_of(list grads) noexcept:
    """The place of a node that is given ``grads``: their device, if that is not the CPU."""
    for g in grads:
        if isinstance(g, Tensor) and (<Tensor>g).device_type != CPU_NUMBER:
            return (<Tensor>g).device_type
    return here() if elsewhere else CPU_NUMBER


cdef object hooked(object hook, object grad):
    """The gradient after a hook: the same tensor, or the one with which the hook replaces it."""
    changed = hook(grad)
    return grad if changed is None else checked(hook, changed, grad)


cdef object after_hooks(Tensor leaf, object grad, bint of_node):
    """The gradient of a leaf after its hooks, or after those of the node that stands for it."""
    for hook in list(leaf.hooks.values()):
        if (type(hook) is NodeHook) != of_node:
            continue
        if of_node:
            changed = (<NodeHook>hook).function((grad,))
            if changed is not None and changed[0] is not None:
                grad = checked((<NodeHook>hook).function, changed[0], grad)
        else:
            grad = hooked(hook, grad)
    return grad


cdef object checked(object hook, object changed, object grad):
    """``changed``, which a hook gave for ``grad``: a tensor of the same sizes and dtype."""
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(changed, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(changed).__name__}'")
    if not same_sizes(<Tensor>changed, <Tensor>grad):
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value: "
                           f"from {list(grad.shape)} to {list(changed.shape)}")
    if (<Tensor>changed).code != (<Tensor>grad).code:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the type of value "
                           f"(was {grad.dtype} got {changed.dtype})")
    return resolved(changed)


cdef object as_output(Node node, int nr, object grad):
    """A gradient in the dtype of the output that it belongs to."""
    cdef int code = node.out_code
    cdef Tensor g = <Tensor?>grad
    if node.noutputs > 1:
        if node.out_metas is None or node.out_metas[nr] is None:
            return g
        code = <int>(<tuple>node.out_metas[nr])[1]
    if code < 0 or g.code == code:
        return g
    return callbacks.grad_cast(g, DTYPES[code])


cdef int keep_gradient(Tensor t, object grad) except -1:
    """Put ``grad`` into ``.grad`` of a tensor that is not a leaf, in memory of its own."""
    t.grad_ = callbacks.clone(grad) if t.grad_ is None else binary(ADD, t.grad_, grad)
    return 0


cdef int run_pre_hooks(Node node, list grads) except -1:
    if node.tensor_hooks is not None:
        for key, hooks in node.tensor_hooks.items():
            for hook in list(hooks.values()):
                grads[key] = hooked(hook, grads[key])
    if node.retained is not None:
        for key, reference in node.retained.items():
            tensor = reference()
            if tensor is not None and grads[key] is not None:
                keep_gradient(<Tensor>tensor, grads[key])
    if node.pre_hooks is not None:
        for hook in list(node.pre_hooks.values()):
            take_changed(hook, hook(tuple(grads)), grads)
    return 0


cdef int take_changed(object hook, object changed, list grads) except -1:
    """Replace ``grads`` by the result of a node's hook, None or a tuple."""
    cdef Py_ssize_t i
    if changed is None:
        return 0
    if not isinstance(changed, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(changed).__name__}'")
    if len(<tuple>changed) != len(grads):
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number of values "
                           f"(got {len(<tuple>changed)}, but expected {len(grads)})")
    for i in range(len(grads)):
        g = (<tuple>changed)[i]
        grads[i] = None if g is None else checked(hook, g, grads[i])
    return 0


cdef int explain_failure(Node node, error) except -1:
    """Say which node failed and, in anomaly mode, which forward line made it."""
    if hasattr(error, "add_note"):
        note = f"while differentiating {node.name()}"
        if node.trace is not None:
            note += f", recorded at:\n{node.trace}"
        error.add_note(note)
    return 0


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
        nr[0] = swaps_of(node.variable)
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


cdef bint repeated(list roots, list numbers, list grads, bint keep_graph) except -1:
    """Whether the pass could be repeated from the launches of another one, and was."""
    cdef list nodes = [], leaves = [], made
    cdef LeafEntry entry = LeafEntry.__new__(LeafEntry)
    cdef int i, previous
    previous = swap_no_grad(GRAD_OFF)
    try:
        made = repeat_pass(roots, numbers, grads, differentiate, nodes, leaves)
        if made is None:
            return False
        if not keep_graph:
            for node in nodes:
                release_node(<Node>node)
        for i in range(len(leaves)):
            entry.grad = made[i]
            made[i] = None
            if entry.grad is not None:
                accumulate(<Tensor>leaves[i], entry, False)
    finally:
        swap_no_grad(previous)
    return True


def run_backward(list tensors, list grads, bint keep_graph, bint create_graph, inputs, bint accumulate_into):
    """:func:`differentiate`, by way of the innermost mode if it has a method ``run_backward``."""
    if has_mode() and hasattr(current_mode(), "run_backward"):
        return current_mode().run_backward(tensors, grads, keep_graph, create_graph, inputs, accumulate_into)
    if DEPTH[0] >= MOST_NESTED:
        args = (tensors, grads, keep_graph, create_graph, inputs, accumulate_into)
        return callbacks.on_a_new_thread(differentiate, args, THROUGH[0])
    DEPTH[0] += 1
    try:
        return differentiate(tensors, grads, keep_graph, create_graph, inputs, accumulate_into)
    finally:
        DEPTH[0] -= 1


def differentiate(list tensors, list grads, bint keep_graph, bint create_graph, inputs, bint accumulate_into):
    """Differentiate ``tensors`` weighted by ``grads``.

    With ``accumulate_into``, gradients go to ``.grad`` of the leaves (only those in ``inputs`` if given); else the
    gradients of ``inputs`` are returned, None for one that was not reached.
    """
    cdef GraphTask task = GraphTask.__new__(GraphTask)
    cdef list roots = [], numbers = [], nodes
    cdef set needed = None
    cdef Node node
    cdef object target
    cdef int nr = 0, i, previous, setting
    task.buffers = {}
    task.leaves = {}
    task.streams = set() if nstreams else None
    task.home = -1
    task.through = THROUGH[0]
    if create_graph:
        setting = TANGENTS if task.through and grad_setting() == TANGENTS else GRAD_ON
    else:
        setting = TANGENTS if forward_levels() and not (task.through or accumulate_into) else GRAD_OFF
    task.create_graph = setting != GRAD_OFF
    task.keep_graph = keep_graph or forward_levels()
    task.into_leaves = accumulate_into
    for i, t in enumerate(tensors):
        target = find_edge(t, &nr)
        if isinstance(target, Node) and (<Node>target).tangents == 1 and accumulate_into and not THROUGH[0]:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn: it was "
                               "computed under no_grad, and has a tangent alone")
        roots.append(target)
        numbers.append(nr)
    if looks_for_nan():
        callbacks.check_roots(tensors)
    if (is_recording() and inputs is None and accumulate_into and not create_graph and not has_mode()
            and WATCHER is None and not looks_for_nan() and repeated(roots, numbers, grads, task.keep_graph)):
        return None
    nodes = task.collect(roots)
    if inputs is not None:
        needed = set()
        task.results = [None] * len(inputs)
        task.captures = {}
        if accumulate_into:
            task.wanted = set()
        for i in range(len(inputs)):
            target = find_edge(inputs[i], &nr)
            if accumulate_into and isinstance(target, Tensor):
                task.wanted.add(target)
            else:
                task.captures.setdefault(target, {}).setdefault(nr if isinstance(target, Node) else 0, []).append(i)
            needed.add(target)
        mark_needed(nodes, needed)
        task.needed = needed
    cdef PyObject* outer_task = TASK[0]
    previous = swap_no_grad(setting)
    TASK[0] = <PyObject*>task
    try:
        for i in range(len(roots)):
            task.deliver(roots[i], numbers[i], grads[i])
            task.settle(roots[i])
        grads = None
        for i in range(len(nodes)):
            node = <Node>nodes[i]
            nodes[i] = None
            if nstreams:
                task.run_on_stream(node, needed is None or _below(node, needed))
            else:
                task.run_node(node, needed is None or _below(node, needed))
        if task.streams:
            task.join_streams()
        if n_deferred and accumulate_into:
            task.settle_leaves()
    finally:
        swap_no_grad(previous)
        try:
            if task.at_end is not None:
                for function in task.at_end:  # these may add others
                    function()
        finally:
            TASK[0] = outer_task
    if accumulate_into and inputs is not None:
        for i in range(len(inputs)):
            if task.results[i] is not None and isinstance(inputs[i], Tensor):
                keep_gradient(<Tensor>inputs[i], task.results[i])
    return task.results


def pass_tangents(bint on):
    """Set whether passes on this thread enter the nodes that exist for forward mode only. Returns the previous setting.
    """
    cdef bint previous = THROUGH[0]
    THROUGH[0] = on
    return previous


def passes_tangents():
    """Whether passes on this thread are forward-mode passes."""
    return THROUGH[0]


# ---- what Python asks of the pass under way --------------------------------------------------------------------------

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


def apply_inner(Node node, list grads):
    """Gradients of the inputs of a node inside CopySlices."""
    return apply_node(node, grads, None)


RUNS = (True,)  # of a leaf that no derivative made


def depends_on_others(list tensors, leaves, bint through):
    """Whether the graph of ``tensors`` leads to a leaf outside ``leaves``. With ``through``, paths may include nodes
    that exist for forward mode only. The leaf of a derivative whose function has returned does not count: no other
    derivative is with respect to it.
    """
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
            if id(target) not in known and getattr(target, "_derivative_runs", RUNS)[0]:
                return True
            continue
        if target in seen:
            continue
        seen.add(target)
        node = <Node>target
        if node.tangents == 1 and not through:
            continue
        for i in range(len(node.targets)):
            if node.targets[i] is not None:
                stack.append(node.targets[i])
    return False


def leads_to(list tensors, set nodes):
    """Whether the graph of ``tensors`` leads to one of ``nodes``."""
    cdef set seen = set()
    cdef list stack = []
    cdef object target
    cdef int nr = 0
    for t in tensors:
        stack.append(edge_of(<Tensor?>t, &nr))
    while stack:
        target = stack.pop()
        if target in nodes:
            return True
        if isinstance(target, Node) and target not in seen:
            seen.add(target)
            stack.extend((<Node>target).targets)
    return False


callbacks.apply_inner = apply_inner
