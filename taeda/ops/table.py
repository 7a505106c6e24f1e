"""The table of ops: decorators that turn one stanza into a function, a method, its in-place and ``out=`` forms.

A stanza is the op's signature, docstring, mathematics, derivative and what the tests need to know::

    @pointwise(promote="float")
    def exp(input):
        '''Exponential ...'''
        return s.exp(input)

    exp.vjp(input=lambda g, out: g * out.conj_physical())

No other file names the op: function, method, stubs, tests and documentation come from :data:`OPS`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import REQUIRED, Composite, Op, Tensor
from .._core.callbacks import callbacks
from .._core.tensor import same_shape
from .older import as_today
from .out import can_cast, write_out
from .registry import METHODS, add_method, check_method, find_op, label_of, make_public, of_library, register
from .registry import OPS as OPS
from .traits import check_traits, is_pointwise
from .traits import trait as trait
from .traits import traits as traits

#: Classes of several results, by name: what ``taeda.return_types`` shows.
RESULT_TYPES: dict[str, type] = {}

_PROMOTE = {"type": 0, "float": 1, "none": 2}
_OUT = {"same": 0, "bool": 1, "real": 2}
_KINDS = {"bool": 0, "int": 1, "float": 2, "complex": 3}


def _parameters(function: Callable) -> tuple[tuple[str, ...], tuple, int, int]:
    """Names, defaults (REQUIRED where none), number of positional ones, index of ``*args`` or -1."""
    code = function.__code__
    positional = code.co_argcount
    names = code.co_varnames[: positional + code.co_kwonlyargcount]
    given = function.__defaults__ or ()
    defaults = [REQUIRED] * (positional - len(given)) + list(given)
    keyword = function.__kwdefaults__ or {}
    defaults += [keyword.get(name, REQUIRED) for name in names[positional:]]
    return names, tuple(defaults), positional, -1


Ints = int | Sequence[int]
Number = bool | int | float | complex

#: Kinds of values that parameters take, as the core's ``check_arguments`` numbers them.
_TAKES = {
    "Any": 0, "bool": 1, "int": 2, "Ints": 3, "float": 4, "Number": 5, "str": 6, "Tensor": 7, "Tensors": 8,
    "flag": 9, "memory_format": 10, "pin": 11, "layout": 12, "dtype": 13,
}  # fmt: skip
#: Kinds for parameters of the library's ops whose name always means the same. An annotation goes before it; a default
#: may say the kind too.
_TAKES_BY_NAME = {
    name: kind
    for kind, names in {
        "bool": "keepdim left largest train align_corners",
        "int": (
            "dim0 dim1 dim2 start_dim end_dim dimension diagonal offset k n r niter groups chunks decimals ind "
            "minlength num_classes num_samples upscale_factor downscale_factor padding_idx ignore_index blank "
            "window_length num_groups edge_order"
        ),
        "Ints": (
            "kernel_size stride padding dilation output_padding output_size normalized_shape shifts dims repeats pad"
        ),
        "Number": "alpha beta",
        "Tensor": "input x1 x2 A B mat1 mat2 batch1 batch2 vec1 vec2 LU LD",
        "Tensors": "tensors",
        "str": "norm reduce rounding_mode driver",
        "flag": "requires_grad",
        "pin": "pin_memory",
        "layout": "layout",
        "dtype": "dtype",
        "memory_format": "memory_format",
        "Any": "reduction",  # ops look at the word itself
    }.items()
    for name in names.split()
}
_TAKES_BY_DEFAULT = {bool: "bool", float: "float", str: "str"}


def takes(function: Callable, names: Sequence[str], defaults: tuple, operands: int | None = None) -> tuple[int, ...]:
    """The kind of values that each parameter takes.

    The annotation says it (a key of ``_TAKES``, with ``| None`` where None is a default), else the name or the default.

    Args:
        function: the body, for its name and annotations.
        names: of its parameters, with their ``defaults``.
        defaults: REQUIRED where there is none.
        operands: how many leading parameters are operands of a pointwise op, which take numbers and tensors alike.
    """
    if function.__name__.startswith("_"):  # called by public ops, with arguments that were checked
        return ()
    kinds, by_name = [], _TAKES_BY_NAME if of_library(function) else {}
    for i, (name, default) in enumerate(zip(names, defaults, strict=True)):
        kind = function.__annotations__.get(name, "").removesuffix(" | None")
        if kind not in _TAKES:
            kind = by_name.get(name) or _TAKES_BY_DEFAULT.get(type(default), "Any")
            if name == "dim" and by_name:  # one of them, or where there is none by default or several, any of them
                kind = "Ints" if default is None or isinstance(default, tuple) else "int"
            elif operands is not None and kind == "float":
                kind = "Number"
            elif (kind == "Tensor" and default is not REQUIRED) or (name == "reduce" and default is None):
                kind = "Any"  # the latter is the flag that losses had before `reduction`
        kinds.append(0 if i < (operands or 0) else _TAKES[kind])
    return tuple(kinds)


def checked(function: Callable) -> dict[str, Any]:
    """The options with which a Composite checks the arguments of ``function``."""
    params, defaults, positional, _ = _parameters(function)
    return {
        "params": params,
        "defaults": defaults,
        "takes": takes(function, params, defaults),
        "npositional": positional,
    }


def _is_method(label: str, function: Any, method: bool | None, inplace: bool = False) -> bool:
    """Whether the op becomes a method where the stanza says ``method``. By default the library's ops do.

    Raises:
        ValueError: the method, or the one of the in-place form, would replace one that Tensor has.
    """
    if method is None:
        method = of_library(function)
    if method:
        check_method(label)
        if inplace:
            check_method(label + "_")
    return method


def _register(label: str, function: Any, method: bool, public: str | None = None) -> None:
    if public is not None:
        make_public(label, function, public)
    register(label, function)
    if method:
        add_method(label, function)


def _register_form(label: str, form: Any, method: bool) -> None:
    """Make the in-place form of ``label`` known: of the library's ops it is a method always."""
    _register(label + "_", form, method or "::" not in label)


def _make(function: Callable, kind: str, body: Callable | None, name: str, *, inplace: bool = False, **options):
    names, defaults, positional, _ = _parameters(function)
    op = Op(
        name, body if body is not None else function, names, defaults, positional, kind,
        inplace=inplace, takes=takes(function, names, defaults, options.get("noperands")), **options,
    )  # fmt: skip
    op.__doc__ = function.__doc__
    op.__module__ = function.__module__
    op.__wrapped__ = function
    return op


def pointwise(
    promote: str = "type", out: str = "same", *, outs: Sequence[str] | None = None, operands: int | None = None,
    promote_from: Sequence[int] | None = None, dtypes: Sequence[str] | None = None, method: bool | None = None,
    inplace: bool = True, check: Callable | None = None, tensors: Sequence[str] = (), name: str | None = None,
    **traits: Any,
):  # fmt: skip
    """Declare an op that computes each element from the elements at the same place, broadcasting.

    Args:
        promote: ``"type"`` computes in the inputs' common dtype, ``"float"`` in a floating-point one, ``"compare"`` is
            ``"type"`` with a bool result.
        out: dtype of the result: ``"same"`` as computed, ``"bool"``, or ``"real"`` (of a complex one).
        outs: the same for several results, ``("same", "int32")``; the body then gives a tuple.
        operands: how many leading parameters are tensors or numbers (default: those without a default value). The
            others are attributes: numbers reach the body as Values, other things as they are.
        promote_from: which operands take part in promotion (default: all).
        dtypes: kinds of computing dtype that are allowed, of ``bool int float complex`` (default: all).
        method: whether to make a Tensor method; by default for the library's ops only.
        inplace: whether to make an in-place form.
        name: the op's name where it is not the function's. Ops of programs have a namespace, ``"mylib::softabs"``;
            without one it is the name of the package or file (see ``ops/registry.py``).
        check: called with the arguments before computing, to raise on bad values (it must be cheap); where the op has
            attributes, only when one of them is not its default.
        tensors: names of operands that may not be numbers, as PyTorch has it.
        traits: more that is said of the op (``ops/traits.py`` lists the names). With ``require``, a function is called
            with the operands' dtype names before a kernel is built for them, to refuse dtypes. With ``native``,
            float16 and bfloat16 reach the body as they are, not as float32. With ``exact``, attributes may not be of a
            higher kind than the computing dtype, as a fraction for whole numbers is. With ``one_dtype``, ``check`` is
            called only where the operands are of several dtypes, which it refuses. With ``row_major``, the result is
            contiguous, however the operands lie in memory.
    """
    if promote == "compare":
        promote, out = "type", "bool"

    def declare(function):
        label, forms = label_of(function, name), inplace and outs is None
        check_traits(label, traits)
        is_method = _is_method(label, function, method, forms)
        _, defaults, _, _ = _parameters(function)
        n = sum(d is REQUIRED for d in defaults) if operands is None else operands
        mask = 0xFFFFFFFF if promote_from is None else sum(1 << i for i in promote_from)
        kinds = {} if dtypes is None else {"dtypes": frozenset(_KINDS[k] for k in dtypes)}
        several = {} if outs is None else {"outs": tuple(outs)}
        shared = {**traits, **kinds, **several, "tensors": tensors, "pointwise": True, "operands": n, "has_out": True}
        options = {
            "noperands": n,
            "nouts": 1 if outs is None else len(outs),
            "promote": _PROMOTE[promote],
            "out_rule": _OUT[out],
            "promote_mask": mask,
            "result_type": traits.get("result_type"),
        }
        op = _make(function, "pointwise", None, label, has_out=True, traits=shared, **options)
        op.result_rule = (n, promote, several.get("outs", (out,)), dtypes)
        op.body_check = check
        _register(label, op, is_method, traits.get("public"))
        if forms:
            form = _make(
                function, "pointwise", None, label + "_", inplace=True, traits={**shared, "functional": op}, **options
            )
            form.__doc__ = f"In-place form of :func:`{label}`."
            form.body_check = check
            op.traits["inplace"] = form
            _register_form(label, form, is_method)
        return op

    return declare


def primitive(
    body: Callable | None = None, *, mutates: bool = False, outputs: Sequence[str] = ("out",),
    differentiable: Sequence[int] | None = None, result_type: Callable | None = None, variadic: str | None = None,
    out: bool | str | Sequence[str] = True, method: bool | None = None, inplace: bool = False, name: str | None = None,
    decomposition: Callable | None = None, **traits,
):  # fmt: skip
    """Declare an op whose body is Python that launches kernels.

    Args:
        body: what computes, where it is not the function itself (whose signature and docstring count all the same).
        mutates: the body writes into its first argument and gives nothing; ``name_`` writes, ``name`` clones first.
        outputs: names of the results, as derivatives ask for them.
        differentiable: which results have gradients (default: all floating-point ones). With exactly one, derivatives
            get its gradient as ``g`` rather than a tuple.
        result_type: makes the public result of several outputs (a named tuple).
        variadic: name of a parameter that also takes its ints spread out: ``x.view(2, 3)``.
        out: whether there is an ``out=`` form, and of which dtypes ``out`` may be: True for those that the result can
            be cast to (``"type"``: others are a TypeError), ``"same"`` for the result's own, ``"any"``, or names of
            dtypes.
        inplace: make ``name_``, which copies the result back (for ops that keep shape and dtype).
        decomposition: the same in public ops, a function that asks for arguments by name. It runs in place of the body
            where an op that has no derivative of its own is differentiated, and for a batch that has no rule.
        traits: more that is said of the op (``ops/traits.py`` lists the names). ``out_apart`` and ``out_aligned`` are
            names of arguments that ``out`` may not share memory with, or only element for element (the others may lie
            anywhere: results are made before they are written). With ``dtype_of_out``, where the argument ``dtype`` is
            None, the op computes in the dtype of ``out``. With ``repeats``, the result, one tensor of its own, is cheap
            to compute again from what the derivative keeps, with defaults for the rest: compiled programs need not
            keep it. ``sums_over`` is, of a product, the dimension of the first operand that it sums over: 1 or -1.
    """

    def declare(function):
        label = label_of(function, name)
        check_traits(label, traits)
        is_method = _is_method(label, function, method, mutates or inplace)
        names, _, _, _ = _parameters(function)
        spread = -1 if variadic is None else names.index(variadic)
        computes = body
        if decomposition is not None:
            traits["decomposition"] = decomposition
            computes = _or_decomposed(body or function, decomposition, names)
        shared = {
            **traits,
            "outputs": tuple(outputs),
            "variadic": variadic,
            "has_out": bool(out),
            "out_dtype": out,
            "result_type": result_type,
        }
        if differentiable is not None and len(differentiable) == 1 and len(outputs) > 1:
            shared["single_grad"] = differentiable[0]
        kind = "mutates" if mutates else "host"
        op = _make(
            function, kind, computes, label, variadic=spread, has_out=bool(out), result_type=result_type,
            traits=shared,
        )  # fmt: skip
        _register(label, op, is_method, traits.get("public"))
        if mutates:
            form = _make(
                function, kind, computes, label + "_", inplace=True, variadic=spread,
                traits={**shared, "has_out": False, "autocast": None, "functional": op},
            )  # fmt: skip
            form.__doc__ = f"In-place form of :func:`{label}`."
            op.traits["inplace"] = form
            _register_form(label, form, is_method)
        elif inplace:
            _copy_back(op, label, is_method)
        return op

    return declare


def _or_decomposed(body: Callable, decomposition: Callable, names: Sequence[str]) -> Callable:
    """``body``; its decomposition where recording is on, as it is for an op without a derivative, and an operand
    requires grad."""
    wanted = [names.index(name) for name in asked_for(decomposition)]

    def compute(*args):
        if _core.is_recorded() and any([isinstance(x, Tensor) and x.requires_grad for x in args]):
            return decomposition(*[args[i] for i in wanted])
        return body(*args)

    return compute


def asked_for(function: Callable) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def before_write(input: Tensor) -> Tensor:
    """The tensor from which an in-place form computes before it copies the result into ``input``.

    The result is a copy if ``input`` requires grad: a tensor that a derivative saves must not be written.
    """
    return _core.unhooked(input).clone() if input.requires_grad and _core.is_recorded() else input


def _copy_back(function: Callable, name: str, method: bool) -> None:
    """The in-place form of something that is computed out of place."""

    def form(input, *args, **kwargs):
        result = function(before_write(input), *args, **kwargs)
        if result.dtype is not input.dtype and not can_cast(result.dtype, input.dtype):
            raise RuntimeError(
                f"{name}_: result type {result.dtype} can't be cast to the desired output type {input.dtype}"
            )
        if not same_shape(result, input):
            raise RuntimeError(
                f"{name}_: output with shape {list(input.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        return input.copy_(result)

    form.__name__ = form.__qualname__ = name + "_"
    form.__doc__ = f"In-place form of :func:`{name}`."
    form.__module__ = function.__module__
    form.__wrapped__ = inspect.unwrap(function)  # type: ignore[attr-defined]
    form.pointwise, form.functional = is_pointwise(function), function  # type: ignore[attr-defined]
    _register_form(name, Composite(form, **checked(form)), method)


def view(
    body: Callable | None = None, *, variadic: str | None = None, method: bool | None = None, name: str | None = None,
    **traits,
):  # fmt: skip
    """Declare an op that gives a view of its first argument (or a tuple of views). ``body`` overrides the function's
    own."""

    def declare(function):
        label = label_of(function, name)
        check_traits(label, traits)
        names, _, _, _ = _parameters(function)
        spread = -1 if variadic is None else names.index(variadic)
        op = _make(
            function, "view", body, label, variadic=spread, traits={**traits, "view": True, "variadic": variadic}
        )
        _register(label, op, _is_method(label, function, method), traits.get("public"))
        return op

    return declare


def composite(
    *, method: bool | None = None, inplace: bool = False, out: bool | str | Sequence[str] = False,
    names: Sequence[str] = (), **given: Any,
):  # fmt: skip
    """Declare a function written in other ops: no kernel and no derivative of its own.

    Args:
        method: whether to make a Tensor method.
        inplace: make ``name_``, which copies the result back.
        out: give the function, though not the method, an ``out=`` form; of which dtypes ``out`` may be is said as for
            :func:`primitive`.
        names: aliases.
        given: traits, attributes of the function: ``out_apart``, ``out_aligned``, as for :func:`primitive`; ``meta``;
            ``also``, PyTorch's other names of parameters; ``factors`` and ``spreads`` (see ``ops/older.py``);
            ``functional``, of a form that writes: what gives the same without writing; ``writes``, of what may write to
            arguments by its others: a function that names those, and says whether it does; ``takes_classes``: arguments
            that are classes (``float``) reach the function, where they mean dtypes elsewhere.
    """

    def declare(function):
        labels = [label_of(function, name) for name in (function.__name__, *names)]
        is_method = all([_is_method(label, function, method, inplace) for label in labels])
        traits(**given)(function)
        checks = checked(function)
        plain = Composite(function, labels[0], **checks)
        of_out = {name: value for name, value in given.items() if name.startswith("out_")}
        public = Composite(with_out(function, out, **of_out), labels[0], **checks) if out else plain
        plain.__name__ = public.__name__ = labels[0]  # type: ignore[attr-defined]
        for label in labels:
            _register(label, public, False, given.get("public"))
            if is_method:
                add_method(label, plain)  # a method has no `out`
            if inplace:
                _copy_back(plain, label, is_method)
        return public

    return declare


def with_out(function: Callable, out_dtype: bool | str | Sequence[str] = True, **traits: Any) -> Callable:
    """``function`` with a keyword ``out``, which the result is written to; ``traits`` as of :func:`primitive`."""

    @functools.wraps(function)
    def form(*args, out=None, **kwargs):
        result = function(*args, **kwargs)
        if out is None:
            return result
        given = inspect.signature(function).bind(*args, **kwargs).arguments if traits else {}
        return write_out(form, out, result, given)

    form.has_out = True  # type: ignore[attr-defined]
    form.without_out = function  # type: ignore[attr-defined]  # a call that names no `out` goes there at once
    form.traits = {"out_dtype": out_dtype, **traits}  # type: ignore[attr-defined]
    form.__signature__ = _SignatureWithOut(function)  # type: ignore[attr-defined]
    return form


class _SignatureWithOut(inspect.Signature):
    """The signature of ``function`` with a keyword ``out``, found when it is asked for: making all takes a tenth of
    the time of ``import taeda``."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    @property
    def _parameters(self) -> Any:
        given = inspect.signature(self._function)
        kept = [p for p in given.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        return given.replace(parameters=[*kept, out]).parameters

    @property
    def _return_annotation(self) -> Any:
        return inspect.signature(self._function).return_annotation

    def replace(  # type: ignore[override]
        self, *, parameters: Any = None, return_annotation: Any = None
    ) -> inspect.Signature:
        """An ordinary signature, with these parts in place of its own."""
        parts = self.parameters.values() if parameters is None else parameters
        result = self.return_annotation if return_annotation is None else return_annotation
        return inspect.Signature(parts, return_annotation=result)


def alias(op: Any, name: str, method: bool = True) -> Any:
    """A further public name of ``op`` (and of its in-place form): a function of its own, as in PyTorch. The method runs
    ``op`` itself."""
    form = METHODS.get(op.name + "_")
    _register(name, op, method)
    if form is not None:
        _register_form(name, form, method)
    return _core.renamed(op, name)


def spread(given: tuple, named: Any = None) -> Any:
    """Sizes that were given one by one, as one sequence, or by name."""
    if named is not None:
        if given:
            raise TypeError("got sizes twice: by position and by name")
        return (named,) if is_index(named) else named
    if not given:
        raise TypeError("missing 1 required positional argument: 'size'")
    return given[0] if len(given) == 1 and not is_index(given[0]) else given


def is_index(x: Any) -> bool:
    """Whether ``x`` stands for one whole number: an int but no bool, NumPy's, a tensor of no dimensions."""
    if isinstance(x, int):
        return not isinstance(x, bool)
    if isinstance(x, Tensor):
        return x.dim() == 0
    return hasattr(x, "__index__") and getattr(x, "shape", ()) == ()


def result_type(name: str, *fields: str) -> type:
    """The class of the results of an op that gives several: a tuple with names, made of one sequence or of the values,
    and printed as PyTorch prints it.
    """
    made = namedtuple(name, fields)  # type: ignore[misc]
    made.__module__ = "taeda.return_types"
    made.__repr__ = _show_results  # type: ignore[assignment,method-assign]
    made.__new__ = _from_results(made.__new__)  # type: ignore[method-assign]
    made.__reduce__ = lambda self: (type(self), (tuple(self),))  # type: ignore[method-assign]
    made.n_fields = made.n_sequence_fields = len(fields)  # type: ignore[attr-defined]
    made.n_unnamed_fields = 0  # type: ignore[attr-defined]
    return RESULT_TYPES.setdefault(name, made)


def _from_results(new: Callable) -> Callable:
    def __new__(cls, *values, **named):
        if len(values) == 1 and isinstance(values[0], (tuple, list)) and len(cls._fields) > 1:
            values = tuple(values[0])
            if len(values) != len(cls._fields):
                raise TypeError(f"{cls.__name__}() takes a {len(cls._fields)}-sequence ({len(values)}-sequence given)")
        return new(cls, *values, **named)

    return __new__


def _show_results(self: Any) -> str:
    return (
        f"torch.return_types.{type(self).__name__}(\n"
        + ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        + ")"
    )


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _plan(op: Op, function: Callable) -> tuple[tuple, int, int, int]:
    """The arguments and results for which a derivative asks, by its parameters' names, and which of them are saved."""
    code = function.__code__
    outputs = op.traits.get("outputs", ("out",))
    plan, args, outs, shapes = [], 0, 0, 0
    for name in code.co_varnames[: code.co_argcount]:
        if name == "g":
            plan.append((0, 0))
        elif name == "needs":
            plan.append((3, 0))
        elif name in op.params:
            i = op.params.index(name)
            plan.append((1, i))
            args |= 1 << i
        elif name in outputs:
            i = outputs.index(name)
            plan.append((2, i))
            outs |= 1 << i
        elif name.endswith("_shape") and name[:-6] in op.params:
            i = op.params.index(name[:-6])
            plan.append((4, i))
            shapes |= 1 << i
        elif name.endswith("_dtype") and name[:-6] in op.params:
            i = op.params.index(name[:-6]) + 32
            plan.append((4, i))
            shapes |= 1 << i
        else:
            raise TypeError(
                f"{op.name}: its derivative asks for {name!r}; it may ask for g, needs, {', '.join(op.params)}, "
                f"{', '.join(outputs)}, or a parameter's sizes or dtype as <parameter>_shape, <parameter>_dtype"
            )
    return tuple(plan), args, outs, shapes


def _forms(op: Op) -> list[Op]:
    return [op] + ([op.traits["inplace"]] if isinstance(op.traits.get("inplace"), Op) else [])


def _vjp(op: Op, functions: dict[str, Callable]) -> None:
    """One derivative per named parameter."""
    op.traits["no_derivative"] = [op.params.index(name) for name, f in functions.items() if hasattr(f, "missing")]
    plans = [_plan(op, f) for f in functions.values()]
    positions = [op.params.index(name) for name in functions]
    for form in _forms(op):
        form.set_derivative(
            positions, tuple(functions.values()), tuple(p[0] for p in plans), [p[1] for p in plans],
            [p[2] for p in plans], [p[3] for p in plans], False,
        )  # fmt: skip


def _vjp_all(op: Op, names: Sequence[str], function: Callable) -> None:
    """One function that gives the gradients of all of ``names``."""
    plan, args, outs, shapes = _plan(op, function)
    n = len(names)
    for form in _forms(op):
        form.set_derivative(
            [op.params.index(name) for name in names], (function,), (plan,), [args] * n, [outs] * n, [shapes] * n, True
        )


def expect_tensors(op: str, **arguments: Any) -> None:
    """Refuse arguments of a composite, given in the order of its signature, that are not tensors."""
    for i, (name, x) in enumerate(arguments.items()):
        if not isinstance(x, Tensor):
            from .._core.mends import not_tensor

            raise not_tensor(f"{op}(): argument '{name}' (position {i + 1})", x)


def refused(op: Any, values: tuple, keywords: tuple, error: AttributeError) -> TypeError | None:
    """The error for a call that failed with ``error``, because an argument has no attribute that tensors have.

    Args:
        values: the arguments, those given by keyword last.
        keywords: their names.
    Returns:
        Returns None if ``error`` is not about an argument.
    """
    lacking = error.obj
    if isinstance(lacking, Tensor) or not hasattr(Tensor, error.name or ""):
        return None
    label = getattr(op, "name", None) or op.__name__
    names = [*inspect.signature(op).parameters]
    names += names[-1:] * (len(values) - len(names))  # `*tensors` takes all that are left
    names[len(values) - len(keywords) :] = keywords
    for i, (name, x) in enumerate(zip(names, values, strict=False)):
        what = f"{label}(): argument '{name}' (position {i + 1})"
        if x is lacking:
            from .._core.mends import not_tensor

            return not_tensor(what, x)
        if isinstance(x, (tuple, list)) and any(item is lacking for item in x):
            return TypeError(f"{what} must be a sequence of Tensors, but has a {type(lacking).__name__}")
    return None


def no_derivative(op: str, param: str, mend: str = "") -> Callable:
    """The derivative with respect to ``param`` of an op that has none: asking for it is an error.

    Args:
        mend: what to use in place of the op.
    """

    def refuse(g: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{op}: {param}' is not implemented; {mend or 'detach it'}")

    refuse.missing = True  # type: ignore[attr-defined]
    return refuse


# ---- callbacks of the core -------------------------------------------------------------------------------------------


def _build_pointwise(op: Op, statics: tuple, outs: tuple, ins: tuple, compute: str, classes: str) -> int:
    """Compile the kernel of a pointwise op for these dtypes, layout classes and static attributes."""
    from ..kernels.pointwise import build_pointwise

    if "require" in op.traits:
        op.traits["require"](ins)
    return build_pointwise(_body(op, statics), outs, ins, compute, classes, op.name)


def _build_fused(nodes: list, outs: list, leaves: list, classes: str) -> int:
    """Compile one kernel for several pointwise ops: ``(op, static attributes, computing dtype, dtype, sources)``."""
    from ..kernels.fused import build_fused

    return build_fused(_steps(nodes), outs, leaves, classes, " ".join(op.name for op, *_ in nodes))


def _build_between(
    before: tuple | None, after: tuple | None, kernel: str, key: tuple, operand: int, skip: int, name: str
) -> int:
    """Compile ``"module.function"`` of the row-wise kernels between pointwise ops, given the nodes and leaves before
    and after it and the numbers of the results that are stored.
    """
    from ..kernels.rows import Epilogue, Operand, Prologue
    from ..kernels.rowwise import build_with

    module, function = kernel.split(".")
    label, prologue, epilogue = [name], None, None
    if before is not None:
        nodes, leaves = before
        prologue = Prologue(operand, _steps(nodes), [Operand(*leaf) for leaf in leaves], skip)
        label[:0] = [node[0].name for node in nodes]
        skip += 2 * sum(step.sources.count(None) for step in prologue.steps)
    if after is not None:
        nodes, leaves, outs = after
        epilogue = Epilogue(_steps(nodes), [leaf and Operand(*leaf) for leaf in leaves], outs, skip)
        label += [node[0].name for node in nodes]
    emit = getattr(importlib.import_module(f"taeda.kernels.{module}"), function)
    return build_with(emit, key, prologue, epilogue, " ".join(label))


def _steps(nodes: list) -> list:
    from ..kernels.fused import Step

    return [Step(_body(op, statics), *rest) for op, statics, *rest in nodes]


def _body(op: Op, statics: tuple) -> Callable:
    """The function of operands and numbers that a kernel of a pointwise op applies."""
    function = op.body
    names = op.params
    n = len(names) - len(statics)
    keyword = function.__code__.co_argcount

    def body(*values):
        operands, numbers = list(values[:n]), list(values[n:])
        full = operands + [numbers.pop(0) if repr(v) == "param" else v for v in statics]
        return function(*full[:keyword], **dict(zip(names[keyword:], full[keyword:], strict=True)))

    return body


def _docstring(function: Any) -> str | None:
    """The docstring of an op or a composite, completed."""
    from .docs import completed  # only once one is read

    return completed(function)


callbacks.vjp = _vjp
callbacks.vjp_all = _vjp_all
callbacks.build_pointwise = _build_pointwise
callbacks.build_fused = _build_fused
callbacks.build_between = _build_between
callbacks.write_out = write_out
callbacks.find_op = find_op
callbacks.refused = refused
callbacks.as_today = as_today
callbacks.docstring = _docstring
