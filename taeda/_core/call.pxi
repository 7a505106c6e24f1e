# The call path: every op goes through `op_call`, and from there to its kernel or its body.

cdef enum:
    POINTWISE, HOST, VIEW, MUTATES
    MOST_KEYED = 9    # operands of a pointwise op, numbers included, that the key of a kernel has bits for

cdef enum:  # operators
    ADD, SUB, RSUB, MUL, DIV, RDIV, FLOORDIV, RFLOORDIV, REMAINDER, RREMAINDER, POW, RPOW, MATMUL, RMATMUL
    AND, OR, XOR, LSHIFT, RLSHIFT, RSHIFT, RRSHIFT, LT, LE, GT, GE, EQ, NE, NEG, POSITIVE, ABS, INVERT
    IADD, ISUB, IMUL, IDIV, IFLOORDIV, IREMAINDER, IPOW, IAND, IOR, IXOR, ILSHIFT, IRSHIFT
    NOPERATORS

OPERATOR_NAMES = (
    "add", "sub", "rsub", "mul", "div", "rdiv", "floor_divide", "rfloor_divide", "remainder", "rremainder", "pow",
    "rpow",
    "matmul", "rmatmul", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "rlshift",
    "bitwise_right_shift", "rrshift", "lt", "le", "gt", "ge", "eq", "ne", "neg", "positive", "abs", "bitwise_not",
    "add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "pow_", "bitwise_and_", "bitwise_or_",
    "bitwise_xor_",
    "bitwise_left_shift_", "bitwise_right_shift_",
)
cdef PyObject* OPERATORS[64]
cdef list _operators_alive = [None] * 64

#: Functions of the Python layers that the core calls on its slow paths; filled by taeda.ops.
HELPERS = {}


class _Required:
    def __repr__(self):
        return "<required>"


REQUIRED = _Required()


def bind_operator(name, function):
    """Make ``function`` what the Python operator called ``name`` in OPERATOR_NAMES runs."""
    if name in OPERATOR_NAMES:
        i = OPERATOR_NAMES.index(name)
        _operators_alive[i] = function
        OPERATORS[i] = <PyObject*>function


cdef object binary(int which, Tensor a, object b):
    cdef PyObject* args[2]
    cdef object op
    if not (isinstance(b, Tensor) or PyFloat_Check(b) or PyLong_Check(b) or PyComplex_Check(b)):
        pair = HELPERS["operands"](a, b)
        if pair is None:
            return NotImplemented
        b = (<tuple>pair)[1]
        if which < IADD:
            a = (<tuple>pair)[0]
    if OPERATORS[which] == NULL:
        return NotImplemented
    op = <object>OPERATORS[which]
    args[0] = <PyObject*>a
    args[1] = <PyObject*>b
    if type(op) is Op:
        return op_call(op, args, 2, NULL)
    return op(a, b)


cdef object unary(int which, Tensor a):
    cdef PyObject* args[1]
    cdef object op = <object>OPERATORS[which]
    args[0] = <PyObject*>a
    if type(op) is Op:
        return op_call(op, args, 1, NULL)
    return op(a)


# ---- modes -----------------------------------------------------------------------------------------------------------

cdef inline bint mode_active():
    return MODES[0] != NULL and len(<list>MODES[0]) > 0


cdef object call_mode(Op op, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """Hand the call to the innermost mode, with that mode off while it runs."""
    cdef list stack = <list>MODES[0]
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else len(<tuple>kwnames)
    cdef int kind = unusual(args, n, kwnames)
    cdef object mode
    if kind == FOREIGN or function_modes():
        return hand_over(op, args, n, kwnames)
    if kind == CONJUGATED:
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
    return HELPERS["conjugated"](op, positional, kwargs)


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
    if op.ndiff and not NO_GRAD[0] and any_wants_grad(op, bound):
        node = make_node(op, bound, False, None)
        if op.kind == POINTWISE:
            pointwise_metas(node, op, bound, result)
        own_outputs(node, result)
    return result if op.result_type is None else tuple.__new__(op.result_type, result)


def pass_through(mode, function, tuple args, dict kwargs):
    """What ``function`` gives, an op or a composite that was handed to ``mode``, with that mode on for what it calls.

    For a mode that watches. Modes that may change the call are handed it first, with ``mode`` as the outermost one, and
    then ``mode`` again what they make of it. Others that watch are handed it in turn, once each.
    """
    cdef list stack = _thread_modes.stack, handed = getattr(_thread_modes, "handed", [])
    cdef list before = list(stack)
    cdef bint planned = is_planning()
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
        if kind == META_DEVICE and not planned:
            update_modes()
            return hand_over(function, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names, "make_on_meta")
        stack[:] = reversed(_thread_modes.handed)
        _thread_modes.handed = []
        MODES[0] = <PyObject*>stack
        if kind == ON_META:
            result = check_plan(function, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names)
            if result is not NotImplemented:
                return result
            swap_planning(True)
        if type(function) is not Op:
            return function.unwatched(args, kwargs)
        packed = bind(<Op>function, PySequence_Fast_ITEMS(values), len(args), <PyObject*>names, bound, &out)
        return run(<Op>function, bound, <object>out if out != NULL else None)
    finally:
        swap_planning(planned)
        _thread_modes.handed = handed
        stack[:] = before
        update_modes()


@cython.binding(False)
cdef class Composite:
    """A function written in ops, which modes that ask for it (``composites = True``) see before its ops."""

    def __cinit__(self):
        self.vectorcall = <void*>composite_entry

    def __init__(self, function, name=None, tuple params=(), tuple defaults=(), tuple takes=(), int npositional=0):
        self.function = function
        self.name = function.__name__ if name is None else name
        self.params = params
        self.defaults = defaults
        self.positions = {p: i for i, p in enumerate(params)}
        fill_takes(self.takes, takes)
        self.ntakes = fill_takes(self.takes, takes[:npositional])
        self.npositional = npositional
        self.may_be_older = not {"factors", "spreads"}.isdisjoint(vars(function))
        for key in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__defaults__",
                    "__kwdefaults__",
                    "__code__"):
            setattr(self, key, getattr(function, key, None))
        for key, value in vars(function).items():
            if key != "__signature__":
                setattr(self, key, value)
        self.__wrapped__ = function
        plain = getattr(function, "without_out", None)
        if plain is not None and function.__wrapped__ is plain:  # most calls name no `out`: they go there at once
            self.function, self.with_out = plain, function

    def __repr__(self):
        return f"<function {self.name}>"

    def __reduce__(self):
        return self.__qualname__

    @property
    def __globals__(self):
        return self.function.__globals__

    @property
    def __signature__(self):
        import inspect
        return inspect.signature(self.__wrapped__)

    def unwatched(self, tuple args, dict kwargs):
        """Call it without asking modes."""
        return called(self, "out" in kwargs)(*args, **kwargs)


cdef inline object called(Composite composite, bint out):
    """The function of a call that does, or does not, name ``out``."""
    return getattr(composite, "with_out", composite.function) if out else composite.function


cdef object composite_call(object self, PyObject** args, size_t nargsf, PyObject* kwnames):
    cdef Composite composite = <Composite>self
    cdef Py_ssize_t n
    cdef int kind
    cdef tuple names
    if MODES[0] != NULL:
        result = call_outer_mode(composite, args, nargsf & VECTORCALL_COUNT, kwnames)
        if result is not NotImplemented:
            return result
    n = nargsf & VECTORCALL_COUNT
    kind = unusual(args, n, kwnames)
    if kind != USUAL:
        result = call_unusual(composite, kind, args, n, kwnames)
        if result is not NotImplemented:
            return result
    if n > composite.npositional and composite.may_be_older:
        today = as_today(composite, args, n, kwnames)
        if today is not None:
            return composite(*today[0], **today[1])
    if composite.params:
        if kwnames != NULL:
            names = spelled_all(composite, <tuple>kwnames, n == 0)
            if names is not None:
                kwnames = <PyObject*>names
            check_keywords(composite, args + n, <tuple>kwnames)
        check_arguments(composite.name, composite.params, composite.takes, <int>min(composite.ntakes, n), args,
                        composite.defaults)
    return PyObject_Vectorcall(called(composite, kwnames != NULL and "out" in <tuple>kwnames), args, nargsf, kwnames)


include "overrides.pxi"


# ---- Op --------------------------------------------------------------------------------------------------------------

@cython.binding(False)
cdef class Op:
    """An operation: its signature, how it computes and how it is differentiated. Calling it runs it.

    Made by the decorators of ``taeda.ops.table``.
    """

    def __cinit__(self):
        self.vectorcall = <void*>op_entry
        self.variadic = -1

    def __init__(self, name, body, tuple params, tuple defaults, int npositional, str kind, int variadic=-1,
                 bint has_out=False, bint inplace=False, result_type=None, int noperands=0, int nouts=1, int promote=0,
                 int out_rule=0, promote_mask=0xFFFFFFFF, traits=None, tuple takes=()):
        if len(params) > MAXARGS:
            raise ValueError(f"{name}: an op has at most {MAXARGS} parameters")
        self.name = name
        self.__name__ = self.__qualname__ = name
        self.body = body
        self.params = params
        self.defaults = defaults
        self.nparams = len(params)
        self.npositional = npositional
        self.keywords = params[npositional:] if npositional < len(params) else None
        self.nrequired = sum([d is REQUIRED for d in defaults])
        self.param_index = {p: i for i, p in enumerate(params)}
        self.ntakes = fill_takes(self.takes, takes)
        self.kind = {"pointwise": POINTWISE, "host": HOST, "view": VIEW, "mutates": MUTATES}[kind]
        self.variadic = variadic
        self.has_out = has_out
        self.inplace = inplace
        self.result_type = result_type
        self.noperands = noperands
        self.nouts = nouts
        self.promote = promote
        self.out_rule = out_rule
        self.promote_mask = promote_mask
        self.strict_bool = bool((traits or {}).get("strict_bool", False))
        self.tensor_mask = sum([1 << params.index(p) for p in (traits or {}).get("tensors", ())])
        self.variants = {}
        self.plans = {} if traits and "planned" in traits else None
        self.traits = traits if traits is not None else {}
        self.kinds = sum([1 << k for k in self.traits.get("dtypes", (0, 1, 2, 3))])
        if "float8" in self.traits:
            self.kinds |= 1 << FLOAT8
        if self.kind == POINTWISE:
            if noperands + nouts > MOST_KEYED:
                raise ValueError(f"{name}: a pointwise op has at most {MOST_KEYED} operands, outputs included")
            self.owner = new_owner(name)

    def __repr__(self):
        return f"<op {self.name}>"

    def __reduce__(self):
        return HELPERS["find_op"], (self.name,)

    @property
    def kind(self):
        return ("pointwise", "host", "view", "mutates")[self.kind]

    @property
    def writes(self):
        """Whether this is an in-place form: it writes into its first argument and gives it back."""
        return bool(self.inplace)

    @property
    def differentiable(self):
        """Whether the op has a derivative."""
        return self.ndiff > 0

    @property
    def __signature__(self):
        import inspect
        return inspect.signature(self.__wrapped__)

    def vjp(self, **functions):
        """Declare the derivative with respect to each named parameter.

        A function's own parameters say what it needs: ``g``, the gradient of the output; the op's arguments; its
        outputs (``out`` where there is one); ``<parameter>_shape``, the sizes alone.
        """
        HELPERS["vjp"](self, functions)

    def vjp_all(self, *names):
        """Decorator: one derivative that gives the gradients of all of ``names``, in order; it may ask for
        ``needs``."""
        def declare(function):
            HELPERS["vjp_all"](self, names, function)
            return function
        return declare

    def set_derivative(self, positions, functions, plans, save_args, save_outs, save_shapes, bint joint):
        """Declare derivatives (see ``taeda.ops.table``)."""
        if len(positions) > 16:
            raise ValueError(f"{self.name}: at most 16 differentiable parameters")
        self.ndiff = len(positions)
        for i, p in enumerate(positions):
            self.diff_pos[i] = p
            self.save_args[i] = save_args[i]
            self.save_outs[i] = save_outs[i]
            self.save_shapes[i] = save_shapes[i]
        self.diff_fns = tuple(functions)
        self.diff_plans = tuple(plans)
        self.joint = joint

    def copy_derivative(self, Op other):
        """Take over the derivative of ``other``, which has the same parameters."""
        self.ndiff = other.ndiff
        self.diff_pos = other.diff_pos
        self.save_args = other.save_args
        self.save_outs = other.save_outs
        self.save_shapes = other.save_shapes
        self.diff_fns = other.diff_fns
        self.diff_plans = other.diff_plans
        self.joint = other.joint

    def on(self, str device, body):
        """Let ``body`` compute the op on ``device``, which ``register_device`` has named.

        It is given all arguments in order. The signature, the checks of arguments and the derivative stay the op's.
        """
        cdef Op there = Op(self.name, body, self.params, self.defaults, self.npositional,
                           "view" if self.kind == VIEW else "mutates" if self.inplace else "host", self.variadic,
                           self.has_out, self.inplace, self.result_type)
        there.traits = self.traits
        there.takes, there.ntakes = self.takes, self.ntakes
        there.copy_derivative(self)
        there.functional, there.inplace_form = self.functional, self.inplace_form
        add_planner(self, device, there)
        return body

    @property
    def kept_plans(self):
        """The op's plans, by the forms of arguments: each a Plan, why there is none, or 1 for a form met once."""
        return self.plans

    def run_body(self, *args):
        """The body on complete positional arguments, outside the graph."""
        return self.body(*args)

    def keep_plans(self, bint keep):
        """Whether the op keeps plans from now on; those that it has go."""
        self.plans = {} if keep else None

    def run_bound(self, *args):
        """The body on all arguments, in order."""
        return call_body(self, PySequence_Fast_ITEMS(args))


cdef object op_call(object self, PyObject** args, size_t nargsf, PyObject* kwnames):
    """Every op, eager or recorded: modes, then arguments, then the computation and its node."""
    cdef Op op = <Op>self
    cdef Py_ssize_t n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    cdef PyObject* bound[MAXARGS]
    cdef object out = None, packed = None
    cdef PyObject* given = NULL
    cdef Py_ssize_t i
    cdef int kind
    if MODES[0] != NULL:
        return call_mode(op, args, n, kwnames)
    kind = unusual(args, n, kwnames)
    if kind != USUAL:
        packed = call_unusual(op, kind, args, n, kwnames)
        if packed is not NotImplemented:
            return packed
    if kwnames == NULL and op.variadic < 0 and n <= op.npositional:
        for i in range(n):
            bound[i] = args[i]
        for i in range(n, op.nparams):
            bound[i] = <PyObject*>PyTuple_GET_ITEM(op.defaults, i)
            if bound[i] == <PyObject*>REQUIRED:
                raise_missing(op, i)
    else:
        packed = bind(op, args, n, kwnames, bound, &given)
        if given != NULL:
            out = <object>given
    return run(op, bound, out)


cdef inline bint is_index(object x):
    """Whether ``x`` stands for one whole number: an int, NumPy's, a tensor of no dimensions."""
    if PyLong_Check(x):
        return True
    if isinstance(x, Tensor):
        return (<Tensor>x).nd == 0
    return PyIndex_Check(x)


cdef object bind(Op op, PyObject** args, Py_ssize_t n, PyObject* kwnames, PyObject** bound, PyObject** out):
    """Positional and keyword arguments to one slot per parameter; gives back what must stay alive."""
    cdef Py_ssize_t i, position, m
    cdef object packed = None, name
    if op.variadic >= 0 and n > op.variadic and (n > op.variadic + 1 or is_index(<object>args[op.variadic])):
        packed = tuple([<object>args[i] for i in range(op.variadic, n)])
        n = op.variadic + 1
    if n > op.npositional:
        return bind_older(op, args, n, kwnames, bound, out, None)
    for i in range(op.nparams):
        bound[i] = NULL
    for i in range(n):
        bound[i] = args[i]
    if packed is not None:
        bound[op.variadic] = <PyObject*>packed
        n = PyTuple_GET_SIZE(packed) + op.variadic
    if kwnames != NULL:
        m = PyTuple_GET_SIZE(<object>kwnames)
        for i in range(m):
            name = <object>PyTuple_GET_ITEM(<object>kwnames, i)
            if op.has_out and name == "out":
                out[0] = args[n + i]
                continue
            found = op.param_index.get(name)
            if found is None:
                other = spelled(name, op.param_index, op.params, bound[0] == NULL, op.traits.get("also"))
                found = op.param_index.get(other)
                if found is None:
                    raise TypeError(f"{op.name}() got an unexpected keyword argument '{name}' "
                                    f"(it takes {', '.join(op.params)})")
            position = found
            if bound[position] != NULL:
                return bind_older(op, args, n, kwnames, bound, out, name)
            bound[position] = args[n + i]
    for i in range(op.nparams):
        if bound[i] == NULL:
            bound[i] = <PyObject*>PyTuple_GET_ITEM(op.defaults, i)
            if bound[i] == <PyObject*>REQUIRED:
                raise_missing(op, i)
    return packed


cdef object bind_older(Op op, PyObject** args, Py_ssize_t n, PyObject* kwnames, PyObject** bound, PyObject** out,
                       object twice):
    """`bind` of a call that is written as in old programs. Else there are too many arguments, or ``twice``
    is the name of one that was given so often."""
    cdef tuple names, values
    today = as_today(op, args, n, kwnames)
    if today is None:
        if twice is not None:
            raise TypeError(f"{op.name}() got multiple values for argument '{twice}'")
        raise TypeError(f"{op.name}() takes {op.npositional} positional argument{'s' if op.npositional != 1 else ''} "
                        f"but {n} were given")
    names = tuple(today[1])
    values = (*today[0], *today[1].values())
    return values, bind(op, PySequence_Fast_ITEMS(values), len(today[0]), <PyObject*>names, bound, out)


cdef object as_today(object function, PyObject** args, Py_ssize_t n, PyObject* kwnames):
    """``(args, kwargs)`` of a call of old programs (``ops/older.py``) as written today; None where it is none."""
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)
    kwargs = {<object>PyTuple_GET_ITEM(<object>kwnames, i): <object>args[n + i] for i in range(m)}
    return HELPERS["as_today"](function, [<object>args[i] for i in range(n)], kwargs)


cdef int raise_missing(Op op, Py_ssize_t i) except -1:
    raise TypeError(f"{op.name}() missing required argument '{op.params[i]}' (position {i + 1})")


cdef planner_t PLANNER = NULL


cdef void set_planner(planner_t planner) noexcept:
    global PLANNER
    PLANNER = planner


cdef object call_body(Op op, PyObject** bound):
    return PyObject_Vectorcall(op.body, bound, op.npositional, <PyObject*>op.keywords if op.keywords is not None
                               else NULL)


cdef inline object compute(Op op, PyObject** bound):
    """The body, or its plan for arguments of these forms."""
    if op.plans is None or MODES[0] != NULL or planners and (is_planning() or is_observing()) or (
            not NO_GRAD[0] and not op.ndiff and any_to_differentiate(op, bound)):
        return call_body(op, bound)
    return PLANNER(op, bound)


cdef bint any_to_differentiate(Op op, PyObject** bound) except -1:
    """Whether a tensor among the arguments requires grad: the body of an op without a derivative then is its
    decomposition."""
    cdef int i
    for i in range(op.nparams):
        x = <object>bound[i]
        if isinstance(x, Tensor):
            if wants_grad(<Tensor>x):
                return True
        elif type(x) is list or type(x) is tuple:
            for item in x:
                if isinstance(item, Tensor) and wants_grad(<Tensor>item):
                    return True
    return False


cdef object run(Op op, PyObject** bound, object out):
    """Compute and, where an input requires grad, record."""
    cdef bint record = False
    cdef int previous, i
    cdef object result, keep = None
    cdef Node node
    cdef Tensor first
    cdef PyObject* inner[MAXARGS]
    if op.ntakes:
        check_arguments(op.name, op.params, op.takes, op.ntakes, bound, op.defaults)
    if op.ndiff and not NO_GRAD[0]:
        record = any_wants_grad(op, bound)
    if out is not None and not NO_GRAD[0] and (record or isinstance(out, Tensor) and wants_grad(<Tensor>out)):
        raise RuntimeError(f"{op.name}(): functions with out=... arguments don't support automatic differentiation, "
                           f"but one of "
                           f"the arguments requires grad.")
    if op.inplace:
        if not isinstance(<object>bound[0], Tensor):
            raise_not_tensor(op, bound, 0)
        first = <Tensor>bound[0]
        if first.leaf_grad or first.base is not None or first.inference:
            check_inplace(first, record)
        if not first.contiguous:
            refuse_repeated(op, first)
        if record and saves_first(op, bound):
            keep = contiguous_copy(first)
    if op.kind == POINTWISE:
        if out is not None:
            return pointwise_out(op, bound, out)
        if op.inplace:
            result = pointwise_call(op, bound, first)
            first.storage.version += 1
        else:
            result = pointwise_call(op, bound, None)
    elif op.kind == VIEW:
        if not isinstance(<object>bound[0], Tensor):
            raise_not_tensor(op, bound, 0)
        result = call_body(op, bound)
        return finish_view(op, bound, result, record)
    else:
        if op.nparams and not isinstance(<object>bound[0], Tensor) and op.params[0] == "input":
            raise_not_tensor(op, bound, 0)
        if out is not None:
            work_in_dtype_of(op, bound, out)
        if op.kind == MUTATES and not op.inplace:
            memcpy(inner, bound, op.nparams * sizeof(void*))
            keep = contiguous_copy(<Tensor>bound[0])
            inner[0] = <PyObject*>keep
        else:
            memcpy(inner, bound, op.nparams * sizeof(void*))
        if record:
            previous = swap_no_grad(1)
            try:
                result = compute(op, inner)
            finally:
                swap_no_grad(previous)
        else:
            result = compute(op, inner)
        if op.kind == MUTATES:
            result = <object>inner[0]
            if op.inplace:
                first.storage.version += 1
        if out is not None:
            return HELPERS["write_out"](op, out, result, tuple([<object>bound[i] for i in range(op.nparams)]))
    if record:
        node = make_node(op, bound, op.inplace, <Tensor>keep if op.inplace else None)
        if op.kind == POINTWISE:
            pointwise_metas(node, op, bound, result)
        if op.inplace:
            save_outputs(node, first, False)
            rebase(first, node)
        else:
            own_outputs(node, result)
    elif op.inplace and not op.ndiff and wants_grad(first) and not NO_GRAD[0]:
        rebase(first, forget_node(first))
    if op.result_type is not None:
        return tuple.__new__(op.result_type, result)
    return result


cdef object finish_view(Op op, PyObject** bound, object result, bint record):
    """Tie views to their base, and record."""
    cdef Tensor source = <Tensor>bound[0]
    cdef Tensor t
    cdef Node node
    if isinstance(result, Tensor):
        t = <Tensor>result
        if t is source:
            return t
        if t.creation == UNTIED:
            t.creation = RECORDED
            return t
        if t.storage is source.storage:
            tie_view(t, source)
    else:
        for item in result:
            tie_view(<Tensor>item, source)
    if record:
        node = make_node(op, bound, False, None)
        own_outputs(node, result)
    return result


cdef int raise_not_tensor(Op op, PyObject** bound, int i) except -1:
    raise TypeError(f"{op.name}(): argument '{op.params[i]}' (position {i + 1}) must be Tensor, "
                    f"not {type(<object>bound[i]).__name__}")


# ---- launching -------------------------------------------------------------------------------------------------------

cdef inline char* operand(Tensor t) except? NULL:
    """The address of an operand. A tensor with memory that is met while planning is kept for the plan."""
    if planners and t.device_type == 0:
        settle(t.storage)
        note_held(t.storage, t.storage.data, t.storage.capacity)
    return address_of(t)


def launch(size_t address, tuple tensors, tuple args, int64_t total, int64_t grain):
    """Run the kernel at ``address`` over ``[0, total)``, in pieces of ``grain`` on the thread pool.

    Args:
        address: a compiled kernel.
        tensors: what the kernel is given, outputs first: tensors, ``(tensor, bytes after its first element)``,
            tables as bytes objects, addresses of kernels, or 0.
        args: ints, and floats, which travel as the bits of a double.
        total: size of the parallel dimension.
        grain: pieces are multiples of this; no threads where ``total <= grain``.
    """
    cdef char* pointers[64]
    cdef int64_t values[128]
    cdef Py_ssize_t i, n = PyTuple_GET_SIZE(tensors), m = PyTuple_GET_SIZE(args)
    cdef object x
    cdef double real
    if n > 64 or m > 128:
        raise ValueError(f"launch: at most 64 tensors and 128 arguments, got {n} and {m}")
    for i in range(n):
        x = <object>PyTuple_GET_ITEM(tensors, i)
        if isinstance(x, Tensor):
            pointers[i] = operand(<Tensor>x)
        elif type(x) is tuple:
            pointers[i] = operand((<tuple>x)[0]) + <int64_t>(<tuple>x)[1]
        elif type(x) is bytes:
            pointers[i] = PyBytes_AS_STRING(x)
            note_held(x, pointers[i], len(<bytes>x))
        else:
            pointers[i] = <char*><size_t>x
    for i in range(m):
        x = <object>PyTuple_GET_ITEM(args, i)
        if PyFloat_CheckExact(x):
            real = PyFloat_AS_DOUBLE(x)
            memcpy(&values[i], &real, 8)
        else:
            values[i] = x
    run_kernel(<kernel_t>address, pointers, <int>n, values, <int>m, total, grain, False)


def bump(Tensor t):
    """Count an in-place write to the storage of ``t``."""
    t.storage.version += 1


def label_node(Tensor t, str label):
    """Give what made ``t``, where that is recorded, the name that its printed form shows; gives ``t``."""
    if t.grad_fn_ is not None:
        t.grad_fn_.label = label
    return t


def set_version(Tensor t, int64_t version):
    """Set the version counter (``_unsafe_preserve_version_counter``)."""
    t.storage.version = version


def copy_tensor(Tensor target, Tensor source):
    """Copy and convert elements into ``target``, broadcasting; neither recorded nor counted as a write."""
    copy_into(target, source)


def require_device(where):
    """Raise where ``where`` (a device, a string, an index) is not a device that tensors can be on."""
    check_device(where)


cdef enum:
    ZERO_PIECE = 1 << 18  # bytes


cdef void zero_piece(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    memset(ptr[0] + begin, 0, end - begin)


def zero(Tensor t):
    """Set every element to zero; neither recorded nor counted as a write."""
    if t.holds == NOTHING and hasattr(t, "_zero"):
        t._zero()
        return
    if is_dense(t):
        zero_bytes(stored_at(t), t.count * ITEMSIZE[t.code])
    else:
        copy_into(t, zero_scalar(t.code))


cdef int zero_bytes(char* to, int64_t nbytes) except -1:
    run_kernel(zero_piece, &to, 1, NULL, 0, nbytes, ZERO_PIECE, nbytes < 4 * ZERO_PIECE)
    return 0


cdef Tensor zero_scalar(int code):
    cdef int64_t none = 0
    cdef Tensor t = empty_tensor(code, 0, &none)
    zero_bytes(address_of(t), ITEMSIZE[code])
    return t


def is_dense_tensor(Tensor t):
    """Whether the elements fill a block of memory without holes or overlap."""
    return is_dense(t)


def set_grad_enabled(bint enabled):
    """Turn recording on this thread on or off; gives the previous setting."""
    return swap_no_grad(0 if enabled else 1) == 0


def is_grad_enabled():
    """Whether ops on this thread are recorded."""
    return NO_GRAD[0] == 0


def set_inference(bint enabled):
    """Turn inference mode on this thread on or off; gives the previous setting."""
    cdef bint previous = INFERENCE[0]
    INFERENCE[0] = enabled
    return previous


def is_inference_mode_enabled():
    """Whether tensors made now are inference tensors."""
    return INFERENCE[0] != 0


METHODS_OWN = frozenset("function __class__ __get__ __reduce__ __reduce_ex__ __eq__ __hash__ __call__".split())


cdef class Method:
    """An op, or a composite, as a method of Tensor, which binds to the tensor that it is looked up on.

    The function itself does not: ``activation = taeda.relu`` in the body of a class is no method. The two are equal.
    """

    cdef void* vectorcall
    cdef readonly object function

    def __cinit__(self, function):
        self.function = function
        if type(function) is Op:
            self.vectorcall = <void*>op_method
        else:
            self.vectorcall = <void*>composite_method

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __getattribute__(self, name):
        if name in METHODS_OWN:
            return object.__getattribute__(self, name)
        return getattr(self.function, name)

    def __hash__(self):
        return hash(self.function)

    def __eq__(self, other):
        return self.function is ((<Method>other).function if type(other) is Method else other)

    def __repr__(self):
        return f"<method '{self.function.name}' of 'Tensor' objects>"

    def __reduce__(self):
        return getattr, (Tensor, self.function.name)


cdef PyObject* op_method(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    return op_entry(<PyObject*>(<Method>self).function, args, nargsf, kwnames)


cdef PyObject* composite_method(PyObject* self, PyObject** args, size_t nargsf, PyObject* kwnames) noexcept:
    return composite_entry(<PyObject*>(<Method>self).function, args, nargsf, kwnames)


def install(name, function):
    """Put ``function`` into the Tensor type under ``name``."""
    cdef PyTypeObject* t = <PyTypeObject*>Tensor
    (<dict>t.tp_dict)[name] = Method(function) if type(function) in (Op, Composite) else function
    PyType_Modified(t)


def set_namespace(str name):
    """The package name that reprs and types show (``taeda.float32``, ``<class 'taeda.Size'>``); gives the previous
    one."""
    global NAMESPACE
    previous = NAMESPACE
    NAMESPACE = name
    for cls in (Size, layout, memory_format):
        cls.__module__ = name
    for cls in (Tensor, dtype, device):
        # kept: the type has the pointer
        full = TYPE_NAMES.setdefault((name, cls.__name__), f"{name}.{cls.__name__}".encode())
        (<PyTypeObject*>cls).tp_name = <char*><bytes>full
        PyType_Modified(<PyTypeObject*>cls)
    return previous


cdef dict TYPE_NAMES = {}


cdef int _prepare_tensor_type() except -1:
    """Give Tensor a lazily made instance dict, which Cython would make for every object, and let programs set its
    methods."""
    cdef Tensor probe = <Tensor>Tensor.__new__(Tensor)
    cdef PyTypeObject* t = <PyTypeObject*>Tensor
    t.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE
    t.tp_dictoffset = <char*>attributes_slot(probe) - <char*><void*>probe
    install("__dict__", property(lambda self: PyObject_GenericGetDict(self, NULL)))
    return 0


cdef int _prepare_op_type() except -1:
    """Give the Op type the vectorcall protocol, which Cython has no syntax for."""
    cdef Op probe = Op.__new__(Op)
    cdef PyTypeObject* t = <PyTypeObject*>Op
    t.tp_vectorcall_offset = <char*>&probe.vectorcall - <char*><void*>probe
    t.tp_call = PyVectorcall_Call
    t.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    PyType_Modified(t)
    cdef Composite composite = Composite.__new__(Composite)
    cdef Method method = Method.__new__(Method, probe)
    t = <PyTypeObject*>Method
    t.tp_vectorcall_offset = <char*>&method.vectorcall - <char*><void*>method
    t.tp_call = PyVectorcall_Call
    t.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
    PyType_Modified(t)
    t = <PyTypeObject*>Composite
    t.tp_vectorcall_offset = <char*>&composite.vectorcall - <char*><void*>composite
    t.tp_call = PyVectorcall_Call
    t.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    PyType_Modified(t)
    return 0
