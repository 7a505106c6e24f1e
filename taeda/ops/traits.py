"""Traits of ops: every name that a stanza may give, with its meaning, and how code reads them.

Code that needs a property of every op reads a trait and lists no ops (``docs/notes/0005-traits-of-an-op.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core import Op

#: The traits by name. A name that is missing here is an error where the op is declared.
TRAITS: dict[str, str] = {
    # names
    "public": 'the namespace that has the op as a public name: `"taeda"`, `"special"`, `"linalg"` or `"fft"`',
    # transformations and modes
    "batch": "the family whose rule runs the op under vmap (`func/families.py`)",
    "decomposition": "the same result in public ops: a function that names the arguments it needs",
    "lowering": "the same in ops that are closer to canonical ones, for decomposed programs alone",
    "lacking": "of a native op that taeda has not: calling it says so",
    "native_call": "of an op that PyTorch has not: name and arguments of what a dispatch mode sees for it",
    "canonical": "decomposed programs are written in this op (`docs/canonical.md`)",
    "autocast": "precision within autocast: `lower`, `float32`, `widest`, or a function of the arguments",
    "native": "PyTorch has this composite as an op; a pointwise body gets half precision as it is",
    "operator": "the operator of Tensor that runs this op, as a TorchFunctionMode is handed it",
    "random": 'two calls give different numbers; `"noise"`: it is a layer that does, and a dead call is left out',
    "functional": "set by the table: the op whose in-place form this is",
    "inplace": "set by the table: the in-place form",
    "writes": "of a composite: which arguments a call writes to, a function of the arguments",
    # other kinds of tensors and devices
    "pointwise": 'an element depends only on the elements at its position; `"form"`: on the form alone',
    "additive": "the op of a sum is the sum of the op's results",
    "moves": "the op moves elements and computes nothing from them; False: elements keep their positions",
    "meta": "on device meta: `values`, `cast`, `mixed`, `form`, `sizes` or `numbers` (`ops/meta.py`)",
    "on_host": "the body reads elements on the processor (by LAPACK's routines of these names): a device has a library "
    "for it, or it runs there on copies",
    "view": "set by the table: the result is a view of the first argument",
    # results
    "out_dtype": "which dtypes `out` may have",
    "out_apart": "names of arguments that `out` may not share memory with",
    "out_aligned": "names of arguments that `out` may share memory with element for element only",
    "dtype_of_out": "where the argument `dtype` is None, the op computes in the dtype of `out`",
    "has_out": "set by the table: there is an `out=` form",
    "outputs": "set by the table: names of the results, as derivatives ask for them",
    "outs": "set by the table: dtypes of several results of a pointwise op",
    "result_type": "the class of several results",
    "row_major": "the result is contiguous, however the operands lie in memory",
    "keeps_strides": "of an op that writes: the copy that it writes out of place lies in memory as the tensor does",
    "one_value": "the op writes one value everywhere, so a target may be expanded; \"deprecated\": with a warning",
    # derivatives
    "node": "the name of the derivative as PyTorch prints it: a string, or a function of what is saved",
    "single_grad": "set by the table: the one result that has a gradient",
    "no_derivative": "set by the table: positions of parameters whose gradient is an error",
    "copied": "arguments and results of which a write before the backward pass makes a copy for the derivative",
    "repeats": "the result is cheap to compute again, so compiled programs need not keep it",
    # arguments
    "also": "PyTorch's other names of parameters",
    "factors": "parameters that PyTorch once took before the tensors (`ops/older.py`)",
    "spreads": "the parameter whose ints may be given one by one (`ops/older.py`)",
    "variadic": "set by the table: the parameter whose ints may be given one by one",
    "takes_classes": "arguments that are classes, such as float, reach the function",
    "tensors": "operands that may not be numbers",
    "operands": "set by the table: how many leading parameters are operands",
    "dtypes": "set by the table: kinds of computing dtype that are allowed",
    "float8": "the op accepts the float8 dtypes",
    "require": "refuses dtypes: called with the operands' dtype names before a kernel is built",
    "numbers": "the op may be called with numbers alone",
    "fits": "parameters, True for all: a number that the dtype cannot hold is an error; others wrap it",
    "fits_work": "the same for what kernels compute in, float32 for the narrower dtypes",
    "rounds": "numbers too large for half precision are infinite: in `one` element that is written, or in `all`",
    "strict_bool": "how the error begins that refuses bool tensors",
    # speed
    "planned": "calls of one form are planned once and repeated from the plan",
    "sums_over": "of a product: the dimension of the first operand that it sums over, 1 or -1",
    "flops": "number of floating-point operations of a call, from its sizes",
    # tests
    "reference": "NumPy's function, or its name",
    "domain": "lowest and highest number that tests give it",
    "samples": "makes the arguments that tests give it",
    "second": "False where second derivatives are not tested",
    "one_dtype": "operands of several dtypes are refused, by the op's check, which is called only then",
    "exact": "attributes may not be of a higher kind than the computing dtype, as a fraction for whole numbers is",
}  # fmt: skip


def check_traits(label: str, given: Iterable[str]) -> None:
    """Raise for a trait of the op ``label`` that no code reads.

    Raises:
        TypeError: a name is not in :data:`TRAITS`.
    """
    for name in given:
        if name not in TRAITS:
            import difflib  # only once something has failed

            near = difflib.get_close_matches(name, TRAITS, 1)
            hint = f"; did you mean '{near[0]}'?" if near else "; taeda/ops/traits.py lists them"
            raise TypeError(f"{label}: an op has no trait '{name}'{hint}")


def traits(**given: Any) -> Callable:
    """Decorator: the traits of a function that is, or that ``nn.functional`` makes, a composite."""

    def declare(function):
        check_traits(function.__name__, given)
        vars(function).update(given)
        return function

    return declare


def trait(function: Any, name: str, default: Any = None) -> Any:
    """The trait ``name`` of ``function``, an op or a composite, as its stanza gives it."""
    return function.traits.get(name, default) if isinstance(function, Op) else getattr(function, name, default)


def is_pointwise(function: Any) -> Any:
    """Whether ``function`` makes each element of those at the same place; ``"form"`` where of the form alone."""
    return trait(function, "pointwise") or trait(function, "additive")
