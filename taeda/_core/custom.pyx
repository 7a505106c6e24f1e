"""Ops of programs: the way to an implementation where nothing else has to see the call, and calls of C functions.

``taeda/library/`` has what else such an op may have: derivatives, rules for a batch, results without values.
``taeda/library/_c_functions.py`` reads C declarations.
"""

from cpython.bool cimport PyBool_Check
from cpython.float cimport PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int8_t, int64_t, uint64_t
from libc.string cimport memcpy

from .devices cimport META_NUMBER, elsewhere, here
from .pool cimport PIECE_BYTES, kernel_t, launch as run_kernel, launched_elsewhere, units_in
from .tensor cimport (
    GRAD_OFF, ITEMSIZE, VALUES, Tensor, address_of, dtype, edge_of, empty_tensor, grad_setting, has_mode, operand,
    refuse_elements, run_function, swap_no_grad,
)

from .mends import not_tensor
from .tensor import ALL_DTYPES

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(object)
    object PyObject_Vectorcall(object, PyObject**, size_t, PyObject*)
    PyObject** PySequence_Fast_ITEMS(object)
    Py_ssize_t PySequence_Fast_GET_SIZE(object)

cdef enum:
    MOST = 32        # parameters


# ---- calls without modes or derivatives ------------------------------------------------------------------------------

cdef enum Takes:     # what a parameter accepts unchanged (ANYTHING: nothing); the general path does the rest
    ANYTHING, TENSOR, INT, FLOAT, BOOLEAN, STRING, TENSORS

#: The names of these, for `CustomOp.set_takes`.
TAKES = {"?": ANYTHING, "Tensor": TENSOR, "int": INT, "float": FLOAT, "bool": BOOLEAN, "str": STRING,
         "Tensor[]": TENSORS}


cdef inline bint is_followed(Tensor t) except -1:
    """Whether a gradient or a tangent of ``t`` is asked for."""
    cdef int nr = 0
    if t.base is None:
        return t.leaf_grad or t.grad_fn_ is not None
    return edge_of(t, &nr) is not None


cdef enum Fit:
    NOT, AS_IT_IS, FOLLOWED


cdef inline int is_ordinary(PyObject* x, bint recording) except -1:
    """Whether ``x`` is a tensor whose memory on the CPU holds its values, and whether the call is recorded for it."""
    cdef Tensor t
    if not isinstance(<object>x, Tensor):
        return NOT
    t = <Tensor>x
    if t.holds != VALUES or t.overrides or t.device_type:
        return NOT
    return FOLLOWED if recording and is_followed(t) else AS_IT_IS


cdef int fits(int takes, PyObject* x, bint recording) except -1:
    cdef Py_ssize_t i
    if takes == TENSOR:
        return is_ordinary(x, recording)
    if takes == FLOAT:
        return PyFloat_CheckExact(<object>x)
    if takes == INT:
        return PyLong_CheckExact(<object>x)
    if takes == BOOLEAN:
        return PyBool_Check(<object>x)
    if takes == STRING:
        return PyUnicode_CheckExact(<object>x)
    if takes == TENSORS and PyList_CheckExact(<object>x):
        for i in range(PySequence_Fast_GET_SIZE(<object>x)):
            if is_ordinary(PySequence_Fast_ITEMS(<object>x)[i], recording) != AS_IT_IS:
                return False
        return True
    return False


cdef class CustomOp:
    """An op of a program. A call goes to ``direct`` where every argument is of the type of its parameter and an
    ordinary tensor, no mode is on and nothing is recorded; else to ``dispatch(args, kwargs)``, of subclasses."""

    cdef object direct_
    cdef public bint closed      # gradients do not see into `direct`: it records nothing, and gives new tensors
    cdef int8_t takes[MOST]
    cdef int nparams, nrequired
    cdef public int nresults     # tensors that `direct` gives, in a tuple where there are several
    cdef object context_class, setup_context, own_outputs

    def set_direct(self, direct, tuple takes, int nrequired):
        """Set the implementation.

        Args:
            direct: a function of positional arguments; None if every call takes the general path.
            takes: names in ``TAKES``, one for each parameter that may be given by position.
            nrequired: how many of them a call must give for `direct` to run.
        """
        cdef int i
        self.direct_ = direct if len(takes) <= MOST else None
        self.nparams, self.nrequired = min(len(takes), MOST), nrequired
        for i in range(self.nparams):
            self.takes[i] = TAKES[takes[i]]

    @property
    def direct(self):
        return self.direct_

    def __call__(self, *args, **kwargs):
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(args)
        cdef bint recording, followed = False
        cdef int found
        if self.direct_ is None or has_mode() or n > self.nparams or n < self.nrequired or kwargs:
            return self.dispatch(args, kwargs)
        recording = grad_setting() != GRAD_OFF
        for i in range(n):
            found = fits(self.takes[i], PyTuple_GET_ITEM(args, i), recording)
            if found == NOT:
                return self.dispatch(args, kwargs)
            followed |= found == FOLLOWED
        if not followed:
            return self.run_direct(args)
        if self.context_class is None or n < self.nparams:
            return self.dispatch(args, kwargs)
        return run_function(self.context_class, args, self.compute, self.setup_context, self.own_outputs)

    def set_derivative(self, context_class, setup_context, own_outputs):
        """Set the derivative's node class, and how `run_function` sets it up; None if no derivative is known here."""
        self.context_class, self.setup_context, self.own_outputs = context_class, setup_context, own_outputs

    def compute(self, *args):
        """Run the implementation, without modes or a derivative."""
        return self.run_direct(args)

    cpdef object run_direct(self, tuple args):
        """The implementation, outside the graph where it is closed."""
        cdef int before
        if type(self.direct_) is CFunction:
            return (<CFunction>self.direct_).run(args)
        if not self.closed:
            return PyObject_Vectorcall(self.direct_, PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), NULL)
        before = swap_no_grad(GRAD_OFF)
        try:
            result = PyObject_Vectorcall(self.direct_, PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), NULL)
        finally:
            swap_no_grad(before)
        return result if self.is_new(result, args) else self.checked(args, result)

    cdef bint is_new(self, object result, tuple args) except -1:
        """Whether ``result`` is of the tensors that are expected, and none has the memory of another or of ``args``."""
        cdef Py_ssize_t i
        cdef tuple made
        if isinstance(result, Tensor):
            return self.nresults == 1 and not shares_memory(<Tensor>result, args)
        if type(result) is not tuple or len(<tuple>result) != self.nresults:
            return False
        made = <tuple>result
        for i in range(len(made)):
            if not isinstance(made[i], Tensor) or shares_memory(made[i], args) or shares_memory(made[i], made[:i]):
                return False
        return True


cdef bint shares_memory(Tensor t, tuple args) except -1:
    """Whether one of ``args`` is ``t``, or has its storage."""
    cdef Py_ssize_t i
    cdef PyObject* x
    for i in range(PyTuple_GET_SIZE(args)):
        x = PyTuple_GET_ITEM(args, i)
        if isinstance(<object>x, Tensor) and ((<Tensor>x) is t or t.count and (<Tensor>x).storage is t.storage
                                              and t.storage is not None):
            return True
    return False


def share_memory(Tensor a, Tensor b):
    """Whether two tensors are one, or have the same storage."""
    return shares_memory(a, (b,))


# ---- functions in C --------------------------------------------------------------------------------------------------

cdef enum:
    DIMS = 8         # dimensions of an array with sizes
    ANY_DIMS = -1

cdef enum Role:      # the role of a C function's parameter
    READ, WRITTEN, MADE, WHOLE, REAL, DERIVED

#: The names of these, for :class:`CFunction`.
ROLES = {"read": READ, "written": WRITTEN, "made": MADE, "whole": WHOLE, "real": REAL, "derived": DERIVED}

cdef struct Parameter:
    int role
    int code             # a tensor's dtype
    int nd               # its number of dimensions; ANY_DIMS: the shape that all such tensors share
    int symbols[DIMS]    # for each dimension, the number of a size, or -1
    int64_t fixed[DIMS]  # a dimension's size, if it has no symbol
    int symbol           # the number of the size that a whole number is, else -1
    int64_t low, high    # the limits of a whole number's C type


cdef class CFunction:
    """A function in C that reads and writes contiguous tensors; called with what its caller gives, in order.

    Args:
        name: of the op, for errors.
        address: of the function.
        kernel: of the kernel that calls it (`kernels/foreign.py`).
        parameters: one for each of C's, in order: ``(role, name, dtype, dims, symbol, low, high)``; ``dims`` has the
            number of a size, or ``-1 - n`` for the size ``n``; None: any shape.
        symbols: the names of sizes. The first is the number of elements of tensors of any shape.
        split: the number of the size along which threads may share the work, or -1.
    """

    cdef readonly str name
    cdef size_t address
    cdef kernel_t kernel
    cdef Parameter parameters[MOST]
    cdef tuple names, symbols
    cdef int nparams, ngiven, nmade, split
    cdef bint shares_shape
    cdef object library          # keeps the functions loaded

    def __init__(self, str name, size_t address, size_t kernel, tuple parameters, tuple symbols, int split, library):
        cdef Parameter* p
        cdef int i, d
        self.name, self.address, self.kernel, self.symbols = name, address, <kernel_t>kernel, symbols
        self.names = tuple([given[1] for given in parameters])
        self.nparams, self.split, self.library = len(parameters), split, library
        if self.nparams > MOST or len(symbols) > MOST:
            raise ValueError(f"{name}: at most {MOST} parameters")
        for i in range(self.nparams):
            p = &self.parameters[i]
            role, _, kind, dims, symbol, low, high = parameters[i]
            p.role, p.symbol, p.low, p.high = ROLES[role], symbol, low, high
            self.ngiven += p.role != MADE and p.role != DERIVED
            self.nmade += p.role == MADE
            if kind is not None:
                p.code = (<dtype?>kind).code
                p.nd = ANY_DIMS if dims is None else len(dims)
                self.shares_shape |= dims is None
                for d in range(max(p.nd, 0)):
                    p.symbols[d] = max(<int>dims[d], -1)
                    p.fixed[d] = -1 - <int64_t>dims[d]

    def __call__(self, *args):
        return self.run(args)

    cdef object run(self, tuple args):
        cdef PyObject* tensors[MOST]
        cdef int64_t sizes[MOST]
        cdef char* pointers[MOST]
        cdef int64_t numbers[2 * MOST + 1]
        cdef Tensor like = None, t
        cdef Parameter* p
        cdef int i, d, at = 0, ntensors = 0, nnumbers = 1
        cdef double real
        if PyTuple_GET_SIZE(args) != self.ngiven:
            raise TypeError(f"{self.name}() takes {self.ngiven} arguments, {len(args)} were given")
        if elsewhere and here() > META_NUMBER:
            raise NotImplementedError(f"{self.name}(): a C function runs on the processor, and this call is on another "
                                      f"device")
        for i in range(len(self.symbols)):
            sizes[i] = -1
        for i in range(self.nparams):
            p = &self.parameters[i]
            if p.role == READ or p.role == WRITTEN:
                t = self.operand_of(i, <object>PyTuple_GET_ITEM(args, at), sizes, like)
                if p.nd == ANY_DIMS:
                    like = t
                at += 1
            elif p.role == WHOLE:
                self.whole_of(i, <object>PyTuple_GET_ITEM(args, at), sizes, &numbers[0])
                at += 1
            elif p.role == REAL:
                at += 1
        results = PyTuple_New(self.nmade) if self.nmade > 1 else None
        result = None
        at = d = 0
        for i in range(self.nparams):  # all sizes are known
            p = &self.parameters[i]
            if p.role == MADE:
                t = self.made(p, sizes, like)
                tensors[ntensors] = <PyObject*>t
                pointers[ntensors] = operand(t)
                ntensors += 1
                if results is None:
                    result = t
                else:
                    Py_INCREF(t)
                    PyTuple_SET_ITEM(results, d, t)
                    d += 1
            elif p.role == READ or p.role == WRITTEN:
                t = <Tensor><object>PyTuple_GET_ITEM(args, at)
                tensors[ntensors] = <PyObject*>t
                pointers[ntensors] = operand(t)
                ntensors += 1
                at += 1
            elif p.role == DERIVED:
                if not p.low <= sizes[p.symbol] <= p.high:
                    raise OverflowError(f"{self.name}(): the size {self.names[i]} is {sizes[p.symbol]}, which its type "
                                        f"in C does not hold")
                numbers[nnumbers] = sizes[p.symbol]
                nnumbers += 1
            elif p.role == WHOLE:
                self.whole_of(i, <object>PyTuple_GET_ITEM(args, at), NULL, &numbers[nnumbers])
                nnumbers += 1
                at += 1
            else:
                real = self.real_of(i, <object>PyTuple_GET_ITEM(args, at))
                memcpy(&numbers[nnumbers], &real, 8)
                nnumbers += 1
                at += 1
        numbers[0] = <int64_t>self.address
        self.launch(tensors, pointers, ntensors, numbers, nnumbers, sizes)
        return results if results is not None else result

    cdef Tensor operand_of(self, int i, object x, int64_t* sizes, Tensor like):
        """A tensor that was given for parameter ``i``; its sizes are noted in ``sizes``."""
        cdef Tensor t
        if not isinstance(x, Tensor):
            raise not_tensor(f"{self.name}(): argument '{self.names[i]}'", x)
        t = <Tensor>x
        try:
            if t.device_type:
                refuse_elements(t)
            address_of(t)  # first, raise for tensors without memory of their own
        except RuntimeError as error:  # the same type, with the argument's name
            raise type(error)(f"{self.name}(): argument '{self.names[i]}': {error}") from None
        self.check_form(i, t, sizes, like)
        if not t.contiguous:
            raise RuntimeError(f"{self.name}(): expected '{self.names[i]}' to be contiguous, got strides "
                               f"{x.stride()} for sizes {list(x.shape)}; "
                               + ("it is written to: give a contiguous tensor" if self.parameters[i].role == WRITTEN
                                  else "give .contiguous()"))
        return t

    cdef int check_form(self, int i, Tensor t, int64_t* sizes, Tensor like) except -1:
        """Refuse a tensor of another dtype or shape than parameter ``i`` has; its sizes are noted in ``sizes``."""
        cdef Parameter* p = &self.parameters[i]
        cdef int d
        if t.code != p.code:
            raise RuntimeError(f"{self.name}(): expected '{self.names[i]}' to be of dtype {ALL_DTYPES[p.code]}, as "
                               f"declared, got {ALL_DTYPES[t.code]}; convert it with .to({ALL_DTYPES[p.code]})")
        if p.nd == ANY_DIMS:
            if like is None:
                self.note_size(i, -1, 0, t.count, sizes)
            elif not same_shape(t, like):
                raise RuntimeError(f"{self.name}(): tensors of any shape must have one shape, and "
                                   f"'{self.names[i]}' has {list(t.shape)} where another has {list(like.shape)}")
        elif t.nd != p.nd:
            raise RuntimeError(f"{self.name}(): expected '{self.names[i]}' to have {p.nd} dimensions, as declared, got "
                               f"sizes {list(t.shape)}")
        for d in range(max(p.nd, 0)):
            if p.symbols[d] >= 0:
                self.note_size(i, d, p.symbols[d], t.sizes[d], sizes)
            elif t.sizes[d] != p.fixed[d]:
                raise RuntimeError(f"{self.name}(): expected '{self.names[i]}' to have size {p.fixed[d]} in dimension "
                                   f"{d}, got sizes {list(t.shape)}")
        return 0

    cdef int note_size(self, int i, int d, int symbol, int64_t size, int64_t* sizes) except -1:
        if sizes[symbol] < 0:
            sizes[symbol] = size
        elif sizes[symbol] != size:
            where = "elements" if d < 0 else f"in dimension {d}" if d < MOST else "as a number"
            raise RuntimeError(f"{self.name}(): expected '{self.names[i]}' to have size {sizes[symbol]} {where}, which "
                               f"is {self.symbols[symbol]}, got {size}")
        return 0

    cdef int whole_of(self, int i, object x, int64_t* sizes, int64_t* into) except -1:
        """A whole number that was given; where ``sizes`` is given and it is a size, it is noted there."""
        cdef Parameter* p = &self.parameters[i]
        if not isinstance(x, int):
            if not hasattr(x, "__index__"):
                raise TypeError(f"{self.name}(): argument '{self.names[i]}' must be int, not {type(x).__name__}")
            x = x.__index__()
        if p.high < 0:  # 64 bits without a sign
            if not 0 <= x < 2**64:
                raise OverflowError(f"{self.name}(): argument '{self.names[i]}' is {x}, which its type in C does not "
                                    f"hold")
            into[0] = <int64_t><uint64_t>x
        elif not p.low <= x <= p.high:
            raise OverflowError(f"{self.name}(): argument '{self.names[i]}' is {x}, which its type in C does not hold")
        else:
            into[0] = x
        if sizes != NULL and p.symbol >= 0:
            if x < 0:
                raise ValueError(f"{self.name}(): argument '{self.names[i]}' is a size, got {x}")
            self.note_size(i, MOST, p.symbol, x, sizes)
        return 0

    cdef double real_of(self, int i, object x) except? -1:
        if not isinstance(x, (float, int)) and (isinstance(x, str) or not hasattr(x, "__float__")):
            raise TypeError(f"{self.name}(): argument '{self.names[i]}' must be float, not {type(x).__name__}")
        return float(x)

    cdef Tensor made(self, Parameter* p, int64_t* sizes, Tensor like):
        cdef int64_t shape[DIMS]
        cdef int d
        if p.nd == ANY_DIMS:
            return empty_tensor(p.code, like.nd, like.sizes)
        for d in range(p.nd):
            shape[d] = sizes[p.symbols[d]] if p.symbols[d] >= 0 else p.fixed[d]
        return empty_tensor(p.code, p.nd, shape)

    cdef int launch(self, PyObject** tensors, char** pointers, int ntensors, int64_t* numbers, int nnumbers,
                    int64_t* sizes) except -1:
        cdef int64_t total = 1, grain = 1, moved = 0
        cdef int i
        if self.split >= 0:
            total = sizes[self.split]
            for i in range(ntensors):  # bytes from one place of the split dimension to the next
                numbers[nnumbers + i] = ((<Tensor>tensors[i]).count // max(total, 1)
                                        * ITEMSIZE[(<Tensor>tensors[i]).code])
                moved += numbers[nnumbers + i]
            nnumbers += ntensors
            grain = units_in(PIECE_BYTES, moved)
        if elsewhere and launched_elsewhere(self.kernel, pointers, ntensors, numbers, nnumbers, total, grain, False):
            return 0
        if total > grain:
            return run_kernel(self.kernel, pointers, ntensors, numbers, nnumbers, total, grain, False)
        with nogil:
            self.kernel(pointers, numbers, 0, total)
        return 0

    def shapes(self, tuple args):
        """The shapes and dtypes of the results, computed from tensors that need no memory. The tensors are checked."""
        cdef int64_t sizes[MOST]
        cdef int64_t number
        cdef int i, d, at = 0
        cdef Tensor like = None
        cdef Parameter* p
        if PyTuple_GET_SIZE(args) != self.ngiven:
            raise TypeError(f"{self.name}() takes {self.ngiven} arguments, {len(args)} were given")
        for i in range(len(self.symbols)):
            sizes[i] = -1
        for i in range(self.nparams):
            p = &self.parameters[i]
            if p.role == MADE or p.role == DERIVED:
                continue
            x = args[at]
            at += 1
            if p.role == WHOLE:
                self.whole_of(i, x, sizes, &number)
            elif p.role != REAL:
                self.check_form(i, <Tensor?>x, sizes, like)
                if p.nd == ANY_DIMS:
                    like = <Tensor>x
        made = []
        for i in range(self.nparams):
            p = &self.parameters[i]
            if p.role == MADE:
                shape = like.shape if p.nd == ANY_DIMS else tuple([
                    sizes[p.symbols[d]] if p.symbols[d] >= 0 else p.fixed[d] for d in range(p.nd)])
                made.append((shape, ALL_DTYPES[p.code]))
        return made


cdef bint same_shape(Tensor a, Tensor b) noexcept:
    cdef int d
    if a.nd != b.nd:
        return False
    for d in range(a.nd):
        if a.sizes[d] != b.sizes[d]:
            return False
    return True
