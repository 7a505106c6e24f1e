"""Backward passes of small tensors, replayed from their launches.

On a thread that defers ops, the engine calls `repeat_pass` before it runs a pass. The *form* of a pass is all that its
launches depend on: the nodes with their ops, numbers and edges; the forms of saved tensors, of leaves and of initial
gradients. The first pass of a form runs as usual. For the second, the graph is rebuilt from tensors on the meta device,
and the engine runs it while a recorder collects the launches (`plan.pyx`). These launches are the plan of the form.
Later passes run the plan and no nodes.

The engine runs a pass itself if something could observe its nodes or intermediate gradients: hooks, retained gradients,
modes, custom functions, anomaly mode, the profiler. It also does so if a tensor is large enough to be deferred, which
fusion handles better, and if a tensor that a derivative needs was modified or released: then it raises the error.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from . cimport deferred
from .devices cimport elsewhere, here

from .plan cimport BAD, MOST_STORAGES, Key, Plan, add_argument, add_tensor, add_word
from .planning cimport record
from .recorder cimport is_observing
from .tensor cimport VALUES, Node, Saved, Tensor, empty_tensor, is_as_saved, setting_word, swaps_of

from .pool import get_num_threads

cdef enum:
    MOST_NODES = 512
    MOST_LEAVES = 256
    ROOM = 8192              # words of the key
    MOST_KEPT = 64           # forms
    ABOVE = 100              # the tags of plan.pyx
    EDGE, ROOT, LEAF, ARGS, OUTS, SHAPES, COUNTS, METAS, LIST, SAVED, OUTPUT, INDEX, SLICE  # kinds of words of the key

cdef struct Walk:
    PyObject* nodes[MOST_NODES]   # newest first; none of these pointers is a reference
    PyObject* leaves[MOST_LEAVES]
    int nnodes, nleaves
    Key key

cdef int64_t walk_number = 0
cdef dict FORMS = {}         # by key: 1 after the first pass, why there is no plan, or (plan, ops of its nodes)
cdef bytes LAST_KEY = b""    # the plan that ran last
cdef tuple LAST = None


cdef list repeat_pass(list roots, list numbers, list grads, object differentiate, list nodes, list leaves):
    cdef int64_t words[ROOM]
    cdef PyObject* found[MOST_STORAGES]
    cdef Walk w
    cdef int i
    cdef list tensors
    if elsewhere and (here() or is_observing()):
        return None
    w.nnodes = w.nleaves = 0
    w.key.words, w.key.n, w.key.room, w.key.ntensors, w.key.tensors = words, 0, ROOM, 0, found
    if not collect(&w, roots) or not describe(&w, roots, numbers, grads):
        return None
    known = look_up(&w.key)
    if known is None:
        return None
    for i in range(w.nnodes):
        nodes.append(<object>w.nodes[i])
    for i in range(w.nleaves):
        leaves.append(<object>w.leaves[i])
    tensors = [<object>found[i] for i in range(w.key.ntensors)]
    if type(known) is bytes:
        known = plan_pass(known, roots, numbers, nodes, leaves, tensors, differentiate)
        if known is None:
            return None
    result = (<Plan>(<tuple>known)[0]).repeat(tensors)
    return None if result is BAD else <list>result


# ---- the form of a pass ----------------------------------------------------------------------------------------------

cdef bint collect(Walk* w, list roots) noexcept:
    """Collect all nodes that can be reached, newest first; False if the pass must run, or there are too many."""
    cdef int i = 0, j
    cdef PyObject* moved
    global walk_number
    walk_number += 1
    for target in roots:
        if type(target) is not Node or not meet(w, target):
            return False
    while i < w.nnodes:
        for target in (<Node>w.nodes[i]).targets:
            if target is not None and not meet(w, target):
                return False
        i += 1
    for i in range(1, w.nnodes):  # nearly in order
        moved = w.nodes[i]
        j = i
        while j and (<Node>w.nodes[j - 1]).seq < (<Node>moved).seq:
            w.nodes[j] = w.nodes[j - 1]
            j -= 1
        w.nodes[j] = moved
    for i in range(w.nnodes):
        (<Node>w.nodes[i]).place = i
    return True


cdef inline bint meet(Walk* w, object target) noexcept:
    """Note a node on its first visit; whether the pass may continue at ``target``."""
    cdef Node node
    if type(target) is not Node:
        return isinstance(target, Tensor)
    node = <Node>target
    if node.walk == walk_number:
        return True
    if (w.nnodes == MOST_NODES or node.custom is not None or node.released or node.op is None or node.tangents
            or node.pre_hooks is not None or node.post_hooks is not None or node.tensor_hooks is not None
            or node.retained is not None):
        return False
    node.walk = walk_number
    w.nodes[w.nnodes] = <PyObject*>node
    w.nnodes += 1
    return True


cdef bint describe(Walk* w, list roots, list numbers, list grads) except -1:
    """Write the key; False if the pass must run."""
    cdef int i, nr
    cdef Key* key = &w.key
    add_word(key, get_num_threads(), setting_word())
    for i in range(w.nnodes):
        if not add_node(w, <Node>w.nodes[i]):
            return False
    for i in range(len(roots)):
        nr = numbers[i]
        if not add_word(key, ROOT, (<Node>roots[i]).place | <int64_t>nr << 32):
            return False
        if type(grads[i]) is not Tensor or not add_small(key, <Tensor>grads[i]):
            return False
    return True


cdef bint add_node(Walk* w, Node node) except -1:
    cdef int i
    cdef int64_t edge
    cdef Key* key = &w.key
    if not add_word(key, <int64_t><PyObject*>node.op,
                    PyTuple_GET_SIZE(node.targets) | <int64_t>node.noutputs << 24 | <int64_t>node.out_code << 48):
        return False
    for i in range(PyTuple_GET_SIZE(node.targets)):
        target = node.targets[i]
        if target is None:
            edge = -1
        elif isinstance(target, Node):
            edge = (<Node>target).place | <int64_t>node.nrs[i] << 32
        else:
            edge = add_leaf(w, <Tensor>target) if node.nrs[i] == swaps_of(<Tensor>target) else 0
            if edge == 0:
                return False
        if not add_word(key, EDGE, edge):
            return False
    if node.args is not None and not (add_word(key, ARGS, len(node.args)) and add_saved(key, node.args)):
        return False
    if node.outs is not None and not (add_word(key, OUTS, len(node.outs)) and add_saved(key, node.outs)):
        return False
    if node.shapes is not None:
        for number, sizes in node.shapes.items():
            if not add_word(key, SHAPES, number) or not add_argument(key, <PyObject*>sizes):
                return False
    if node.counts is not None and not (add_word(key, COUNTS, 0)
                                        and add_argument(key, <PyObject*>node.counts)):
        return False
    if node.metas is not None and not (add_word(key, METAS, 0) and add_argument(key, <PyObject*>node.metas)):
        return False
    return node.out_metas is None or add_argument(key, <PyObject*>node.out_metas)


cdef int64_t add_leaf(Walk* w, Tensor leaf) noexcept:
    """A negative number for a leaf; 0 if the pass must run."""
    cdef int i
    cdef int64_t number
    for i in range(w.nleaves):
        if w.leaves[i] == <PyObject*>leaf:
            return -2 - i
    if (w.nleaves == MOST_LEAVES or leaf.hooks is not None or leaf.post_hooks is not None or leaf.overrides
            or not leaf.leaf_grad or leaf.holds != VALUES or leaf.device_type or leaf.count >= deferred.least):
        return 0
    number = -2 - w.nleaves
    w.leaves[w.nleaves] = <PyObject*>leaf
    w.nleaves += 1
    if not add_word(&w.key, LEAF, leaf.code | leaf.nd << 8):
        return 0
    for i in range(leaf.nd):
        if not add_word(&w.key, LEAF, leaf.sizes[i]):
            return 0
    return number


cdef bint add_saved(Key* key, list items) except -1:
    """Write a saved argument of a node: tensors as they were saved, numbers and the like."""
    cdef Saved s
    for x in items:
        if type(x) is Saved:
            s = <Saved>x
            if s.unpack is not None or s.original is not None or s.tensor is None or not is_as_saved(s):
                return False
            if not add_word(key, OUTPUT if s.is_output else SAVED, 0) or not add_small(key, s.tensor):
                return False
        elif PyList_CheckExact(x):
            if not add_word(key, LIST, len(<list>x)) or not add_saved(key, <list>x):
                return False
        elif not add_value(key, x):
            return False
    return True


cdef bint add_value(Key* key, object x) except -1:
    """Write an argument that is not a tensor; in an index also slices."""
    if type(x) is tuple or type(x) is list:
        if not add_word(key, INDEX if type(x) is tuple else LIST, len(x)):
            return False
        for item in x:
            if not add_value(key, item):
                return False
        return True
    if type(x) is slice:
        return (add_word(key, SLICE, 0) and add_value(key, x.start) and add_value(key, x.stop)
                and add_value(key, x.step))
    if x is ...:
        return add_word(key, SLICE, 1)
    return not isinstance(x, Tensor) and add_argument(key, <PyObject*>x)


cdef inline bint add_small(Key* key, Tensor t) noexcept:
    """Whether a tensor is small, plain and in memory: then its form is in the key."""
    return t.count < deferred.least and not t.overrides and t.storage.deferred is None and add_tensor(key, t)


cdef object look_up(Key* key):
    """``(plan, ops)`` of the form; its key if a plan should be made now; None if the pass must run."""
    global LAST, LAST_KEY
    cdef bytes name
    if PyBytes_GET_SIZE(LAST_KEY) == key.n * 8 and memcmp(PyBytes_AS_STRING(LAST_KEY), key.words, key.n * 8) == 0:
        return LAST
    name = PyBytes_FromStringAndSize(<char*>key.words, key.n * 8)
    known = FORMS.get(name)
    if known is None:
        if len(FORMS) >= MOST_KEPT:
            FORMS.clear()
        FORMS[name] = 1
        return None
    if known is 1:
        return name
    if type(known) is not tuple:
        return None
    LAST_KEY, LAST = name, <tuple>known
    return LAST


# ---- the plan of a form ----------------------------------------------------------------------------------------------

cdef object plan_pass(bytes name, list roots, list numbers, list nodes, list leaves, list tensors,
                      object differentiate):
    """Make ``(plan, ops)``; None if the pass cannot be repeated. The result is remembered."""
    cdef Copied copied = Copied(roots, numbers, nodes, leaves, differentiate)
    FORMS[name] = "it is being planned"
    try:
        known = record(copied, tensors, tensors), [(<Node>x).op for x in nodes]
    except Exception as error:   # the engine runs the pass next, and raises its errors
        FORMS[name] = str(error)
        return None
    FORMS[name] = known
    return known


cdef class Copied:
    """A pass over a copy of a graph. Called with the tensors of its key, in order, gives the gradients of the leaves.
    """

    cdef list roots, numbers, nodes, leaves, stand_ins
    cdef object differentiate
    cdef int at

    def __init__(self, list roots, list numbers, list nodes, list leaves, differentiate):
        self.roots, self.numbers, self.nodes, self.leaves = roots, numbers, nodes, leaves
        self.differentiate = differentiate

    def __call__(self, *stand_ins):
        cdef dict copies = {}
        cdef list made = [], grads
        cdef Tensor leaf, t
        self.stand_ins, self.at = list(stand_ins), 0
        for leaf in self.leaves:
            t = empty_tensor(leaf.code, leaf.nd, leaf.sizes)
            t.leaf_grad = True
            copies[id(leaf)] = t
            made.append(t)
        for x in self.nodes:
            copies[id(x)] = Node.__new__(Node)
        for x in self.nodes:
            self.fill(copies[id(x)], <Node>x, copies)
        grads = [self.next() for _ in self.roots]
        edges = [(copies[id(x)], nr) for x, nr in zip(self.roots, self.numbers)]
        self.differentiate(edges, grads, False, False, None, True)
        made = [(<Tensor>x).grad_ for x in made]
        for x in made:
            if x is not None and type(x) is not Tensor:
                raise NotImplementedError(f"a gradient is a {type(x).__name__}")
        return made

    cdef object next(self):
        self.at += 1
        return self.stand_ins[self.at - 1]

    cdef int fill(self, Node copy, Node node, dict copies) except -1:
        cdef int i
        copy.op, copy.seq, copy.noutputs, copy.out_code = node.op, node.seq, node.noutputs, node.out_code
        copy.targets = tuple([None if x is None else copies[id(x)] for x in node.targets])
        copy.heap_nrs = node.heap_nrs
        if node.heap_nrs is not None:
            copy.nrs = node.nrs
        else:
            for i in range(len(node.targets)):
                copy.nrs[i] = node.nrs[i]
        copy.args = None if node.args is None else self.copy_saved(node.args)
        copy.outs = None if node.outs is None else self.copy_saved(node.outs)
        copy.shapes, copy.counts, copy.metas, copy.out_metas = node.shapes, node.counts, node.metas, node.out_metas
        return 0

    cdef list copy_saved(self, list items):
        cdef list made = []
        cdef Saved s
        for x in items:
            if type(x) is Saved:
                s = <Saved>Saved.__new__(Saved)
                s.tensor, s.is_output, s.nr = self.next(), (<Saved>x).is_output, (<Saved>x).nr
                s.storage, s.version = s.tensor.storage, s.tensor.storage.version
                made.append(s)
            else:
                made.append(self.copy_saved(<list>x) if PyList_CheckExact(x) else x)
        return made


def known_passes():
    """For each form of a pass so far: 1 after the first pass, the reason why there is no plan, or a tuple with the
    number of launches of its plan."""
    return [((<Plan>(<tuple>x)[0]).nsteps,) if type(x) is tuple else x for x in FORMS.values()]


def forget_passes():
    """Forget all forms."""
    global LAST, LAST_KEY
    FORMS.clear()
    LAST_KEY, LAST = b"", None
