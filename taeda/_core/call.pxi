# The call path: every op goes through `op_call`, and from there to its kernel or its body.

cdef enum:
    POINTWISE, HOST, VIEW, MUTATES
    FITS_WORK = 16    # the first bit of ``fits`` of parameters that must be numbers that kernels compute with
    ROUND_ONE = 1     # see `rounds` of Op
    ROUND_ALL = 2
    MOST_KEYED = 9    # operands of a pointwise op, numbers included, that the key of a kernel has bits for

OPERATOR_NAMES = (
    "add", "sub", "rsub", "mul", "div", "rdiv", "floor_divide", "rfloor_divide", "remainder", "rremainder", "pow",
    "rpow",
    "matmul", "rmatmul", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "rlshift",
    "bitwise_right_shift", "rrshift", "lt", "le", "gt", "ge", "eq", "ne", "neg", "positive", "abs", "bitwise_not",
    "add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "pow_", "bitwise_and_", "bitwise_or_",
    "bitwise_xor_",
    "bitwise_left_shift_", "bitwise_right_shift_",
)
#: The methods of Tensor that modes and subclasses are handed in place of these ops, as PyTorch has them; "": the op.
cdef tuple OPERATOR_METHODS = (
    "", "", "__rsub__", "", "div", "__rdiv__", "__floordiv__", "__rfloordiv__", "", "__rmod__", "", "__rpow__", "",
    "__rmatmul__",
    "__and__", "__or__", "__xor__", "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "", "", "", "", "__eq__",
    "", "", "", "", "__invert__",
    "", "", "", "div_", "", "", "", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__",
)
cdef PyObject* OPERATORS[64]
cdef list _operators_alive = [None] * 64


class _Required:
    def __repr__(self):
        return "<required>"


REQUIRED = _Required()


def bind_operator(name, function):
    """Make the Python operator ``name``, one of OPERATOR_NAMES, run ``function``."""
    if name in OPERATOR_NAMES:
        i = OPERATOR_NAMES.index(name)
        _operators_alive[i] = function
        OPERATORS[i] = <PyObject*>function


cdef object binary(int which, Tensor a, object b):
    cdef PyObject* args[2]
    cdef object op
    if not (isinstance(b, Tensor) or PyFloat_Check(b) or PyLong_Check(b) or PyComplex_Check(b)):
        pair = callbacks.operands(a, b)
        if pair is None:
            return NotImplemented
        b = (<tuple>pair)[1]
        if which < IADD:
            a = (<tuple>pair)[0]
    if OPERATORS[which] == NULL:
        return NotImplemented
    op = <object>OPERATORS[which]
    if function_modes() or a.overrides or isinstance(b, Tensor) and (<Tensor>b).overrides:
        return callbacks.operator(op, OPERATOR_METHODS[which], a, b)
    args[0] = <PyObject*>a
    args[1] = <PyObject*>b
    if type(op) is Op:
        return op_call(op, args, 2, NULL)
    return op(a, b)


cdef object reflected(int which, Tensor a, object b):
    """``b`` and ``a`` by an operator that PyTorch shows as the op itself where the tensor is on the right."""
    return (<object>OPERATORS[which])(a, b) if PyLong_Check(b) else binary(which, a, b)


cdef object unary(int which, Tensor a):
    cdef PyObject* args[1]
    cdef object op = <object>OPERATORS[which]
    if function_modes() or a.overrides:
        return callbacks.operator(op, OPERATOR_METHODS[which], a)
    args[0] = <PyObject*>a
    if type(op) is Op:
        return op_call(op, args, 1, NULL)
    return op(a)


cdef object fits_mask(object names, tuple params):
    """The parameters that a trait names, True for all, as bits."""
    return sum([1 << i for i, p in enumerate(params) if names is True or p in names])


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
        self.fits = (fits_mask((traits or {}).get("fits", ()), params)
                     | fits_mask((traits or {}).get("fits_work", ()), params) << FITS_WORK)
        self.rounds = (None, "one", "all").index((traits or {}).get("rounds"))
        self.strict_bool = bool((traits or {}).get("strict_bool", False))
        self.row_major = bool((traits or {}).get("row_major", False))
        self.exact = bool((traits or {}).get("exact", False))
        self.one_dtype = bool((traits or {}).get("one_dtype", False))
        self.tensor_mask = sum([1 << params.index(p) for p in (traits or {}).get("tensors", ())])
        self.variants = {}
        self.plans = {} if traits and "planned" in traits else None
        self.traits = traits if traits is not None else {}
        self.kinds = sum([1 << k for k in self.traits.get("dtypes", (0, 1, 2, 3))])
        if "float8" in self.traits:
            self.kinds |= 1 << FLOAT8
        self.repeats = nouts == 1 and not inplace and (self.kind == POINTWISE or "repeats" in self.traits)
        self.sums_over = self.traits.get("sums_over", 0)
        for x in self.traits.get("copied", ()):
            self.copied |= <uint64_t>1 << <int>(
                params.index(x) if x in params else OUTPUT_BIT + self.traits["outputs"].index(x))
        if self.kind == POINTWISE:
            if noperands + nouts > MOST_KEYED:
                raise ValueError(f"{name}: a pointwise op has at most {MOST_KEYED} operands, outputs included")
            self.owner = new_owner(name)

    def __repr__(self):
        return f"<op {self.name}>"

    def __reduce__(self):
        return callbacks.find_op, (self.name,)

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

    def __get__(self, instance, owner):
        """Itself: only ``Method`` binds. With it, ``inspect.isroutine`` holds, and ``help`` shows the signature."""
        return self

    @property
    def __signature__(self):
        import inspect
        signature = inspect.signature(self.__wrapped__)
        if not self.has_out or self.inplace or "out" in signature.parameters:
            return signature
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        return signature.replace(parameters=[*signature.parameters.values(), out])

    def vjp(self, **functions):
        """Declare the derivative with respect to each named parameter.

        The function's own parameters name its arguments: ``g``, the gradient of the output; the op's arguments; its
        outputs (``out`` if there is one); ``<parameter>_shape``, sizes only.
        """
        callbacks.vjp(self, functions)

    def vjp_all(self, *names):
        """Decorator: one derivative that gives the gradients of all of ``names``, in order; it may ask for
        ``needs``."""
        def declare(function):
            callbacks.vjp_all(self, names, function)
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
        """Let ``body`` compute the op on devices of that type, which ``register_device`` has added.

        It gets all arguments in order. The signature, the checks of arguments and the derivative stay the op's.
        """
        add_planner(self, device, self.computed_by(body))
        return body

    def computed_by(self, body):
        """An op like this one that ``body`` computes."""
        cdef Op there = Op(self.name, body, self.params, self.defaults, self.npositional,
                           "view" if self.kind == VIEW else "mutates" if self.inplace else "host", self.variadic,
                           self.has_out, self.inplace, self.result_type)
        there.traits = self.traits
        there.takes, there.ntakes = self.takes, self.ntakes
        there.copy_derivative(self)
        there.functional, there.inplace_form = self.functional, self.inplace_form
        return there

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


cdef inline Py_ssize_t parameter_at(Op op, PyObject* name) noexcept:
    """The number of the parameter with this name, an interned string as in a call's source; else -1."""
    cdef Py_ssize_t i
    for i in range(op.nparams):
        if PyTuple_GET_ITEM(op.params, i) == name:
            return i
    return -1


cdef Py_ssize_t spelled_position(Op op, object name, bint first_is_free) except -1:
    """The number of the parameter that a call means by ``name``, in any of its spellings."""
    found = op.param_index.get(spelled(name, op.param_index, op.params, first_is_free, op.traits.get("also")))
    if found is None:
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{name}' (it takes {', '.join(op.params)})"
                        f"{suggestion(name, op.params + ('out',) if op.has_out else op.params)}")
    return found


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
            position = parameter_at(op, <PyObject*>name)
            if position < 0:
                if op.has_out and name == "out":
                    out[0] = args[n + i]
                    continue
                position = spelled_position(op, name, bound[0] == NULL)
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
    """`bind` of a call that is written as in old programs.

    If it is not, the error says that there are too many arguments, or that the argument ``twice`` was given twice.
    """
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
    """``(args, kwargs)`` of a call in an older form (``ops/older.py``) in today's form; None if it is in no older form.
    """
    cdef Py_ssize_t i, m = 0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)
    kwargs = {<object>PyTuple_GET_ITEM(<object>kwnames, i): <object>args[n + i] for i in range(m)}
    return callbacks.as_today(function, [<object>args[i] for i in range(n)], kwargs)


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
    if op.plans is None or MODES[0] != NULL or elsewhere and (here() or is_observing()) or (
            NO_GRAD[0] != GRAD_OFF and not op.ndiff and any_to_differentiate(op, bound)):
        return call_body(op, bound)
    return PLANNER(op, bound)


cdef bint any_to_differentiate(Op op, PyObject** bound) except -1:
    """Whether a tensor among the arguments requires grad: the body of an op without a derivative then is its
    decomposition."""
    cdef int i
    for i in range(op.nparams):
        if asks_for_grad(bound[i]):
            return True
    return False


cdef object run(Op op, PyObject** bound, object out):
    """Compute and, where an input requires grad, record."""
    cdef bint record = False
    cdef object result
    cdef Node node
    cdef Tensor keep = None
    if op.ntakes:
        check_arguments(op.name, op.params, op.takes, op.ntakes, bound, op.defaults)
    if op.ndiff and NO_GRAD[0] != GRAD_OFF:
        record = any_wants_grad(op, bound)
    if op.inplace or out is not None:
        keep = before_write(op, bound, out, &record)
    if op.kind == VIEW:
        return run_view(op, bound, record)
    result = pointwise_call(op, bound, out, True) if op.kind == POINTWISE else run_host(op, bound, out, record)
    if out is not None:
        return result
    if record:
        node = make_node(op, bound, op.inplace, keep)
        if op.kind == POINTWISE:
            pointwise_metas(node, op, bound, result)
        if op.inplace:
            save_outputs(node, <Tensor>bound[0], False)
            rebase(<Tensor>bound[0], node)
        else:
            own_outputs(node, result)
            if recorders and op.repeats:
                (<Tensor>result).storage.maker = node.seq
        if looks_for_nan():
            look_forward(node, op, bound, <Tensor>bound[0] if op.inplace else result)
    elif op.inplace and not op.ndiff and is_followed(<Tensor>bound[0]):
        rebase(<Tensor>bound[0], forget_node(<Tensor>bound[0]))
    if op.result_type is not None:
        return tuple.__new__(op.result_type, result)
    return result


cdef Tensor before_write(Op op, PyObject** bound, object out, bint* record):
    """Check that the first argument, or ``out``, may be written to. Returns a copy of the values that a derivative
    needs.

    Writes to whole numbers are not ``record``-ed.
    """
    cdef Tensor first
    if out is not None and NO_GRAD[0] == GRAD_ON and (record[0] or isinstance(out, Tensor) and wants_grad(<Tensor>out)):
        raise RuntimeError(f"{op.name}(): functions with out=... arguments don't support automatic differentiation, "
                           "but one of the arguments requires grad.")
    if not op.inplace:
        if isinstance(out, Tensor) and (<Tensor>out).storage.readers != NULL:
            copy_for_readers((<Tensor>out).storage)
        if op.kind != POINTWISE:
            work_in_dtype_of(op, bound, out)
        return None
    if not isinstance(<object>bound[0], Tensor):
        raise_not_tensor(op, bound, 0)
    first = <Tensor>bound[0]
    if first.leaf_grad or first.base is not None or first.inference:
        check_inplace(first, record[0])
    if not first.contiguous:
        refuse_repeated(op, first)
    if first.storage.readers != NULL:
        copy_for_readers(first.storage)
    record[0] &= KIND[first.code] >= 2
    if not record[0]:
        return None
    if transforms:
        callbacks.refuse_captured(op, first, [<object>bound[i] for i in range(op.nparams)])
    return as_it_was(first) if saves_first(op, bound) else None


cdef object run_view(Op op, PyObject** bound, bint record):
    """The result of an op that gives views."""
    if not isinstance(<object>bound[0], Tensor):
        raise_not_tensor(op, bound, 0)
    return finish_view(op, bound, call_body(op, bound), record)


cdef object run_host(Op op, PyObject** bound, object out, bint record):
    """The result of an op that a body computes; ``out``, if there is one, holds it then."""
    cdef object copy
    cdef PyObject* inner[MAXARGS]
    if op.nparams and not isinstance(<object>bound[0], Tensor) and op.params[0] == "input":
        raise_not_tensor(op, bound, 0)
    memcpy(inner, bound, op.nparams * sizeof(void*))
    if op.kind == MUTATES and not op.inplace:
        copy = copy_to_write(op, <Tensor>bound[0])
        inner[0] = <PyObject*>copy
    result = compute_guarded(op, inner, record) if record or op.inplace else compute(op, inner)
    if op.kind == MUTATES:
        result = <object>inner[0]
        if op.inplace:
            (<Tensor>bound[0]).storage.version += 1
    if out is not None:
        return callbacks.write_out(op, out, result, tuple([<object>bound[i] for i in range(op.nparams)]))
    return result


cdef object compute_guarded(Op op, PyObject** bound, bint record):
    """:func:`compute` outside the graph where the op is recorded. A first argument that Ctrl-C may have left half
    written counts as written."""
    cdef int before = swap_no_grad(GRAD_OFF) if record else 0
    try:
        return compute(op, bound)
    except KeyboardInterrupt:
        if op.inplace:
            (<Tensor>bound[0]).storage.version += 1
        raise
    finally:
        if record:
            swap_no_grad(before)


cdef inline Tensor copy_to_write(Op op, Tensor t):
    """The copy of ``t`` that an op which writes takes out of place."""
    return cloned(t) if "keeps_strides" in op.traits else contiguous_copy(t)


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
    from .mends import not_tensor
    raise not_tensor(f"{op.name}(): argument '{op.params[i]}' (position {i + 1})", <object>bound[i])
