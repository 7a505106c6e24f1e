"""Writes the package's type stubs from the table of ops and the source of the Tensor.

    python tools/stubs.py            # write them
    python tools/stubs.py --check    # compare, for CI: exit code 1 and the differences where they are out of date

There is a stub for each module whose functions the decorators of ``taeda.ops.table`` make: the root, ``nn.functional``,
``linalg``, ``fft``, ``special`` and ``return_types``. Layers, optimisers and data loading are typed in their sources.

A signature's types come from the parameters' names and defaults. A result is a Tensor unless the table or
``FUNCTION_RESULTS`` says otherwise. Type checkers take what the Cython modules have as ``Any``.
"""

from __future__ import annotations

import argparse
import builtins
import difflib
import importlib
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if any((ROOT / "taeda" / "_core").glob("tensor*.so")):  # built in place: describe this checkout
    sys.path.insert(0, str(ROOT))

import taeda
from taeda._core import REQUIRED, Composite, Op, Tensor
from taeda._namespaces import MODULES, NAMES
from taeda.ops.sparse import SparseTensor
from taeda.ops.table import _TAKES, METHODS, RESULT_TYPES, takes

HEADER = '''"""Types of taeda's functions and of its Tensor. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy

Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex
_Index: TypeAlias = (
    SupportsIndex | builtins.slice | EllipsisType | Tensor | builtins.tuple[Any, ...] | builtins.list[Any]
    | builtins.range | numpy.ndarray[Any, Any] | None
)
'''

#: Types of parameters by name, where a name always means the same thing.
BY_NAME = {
    "input": "Tensor",
    "self": "Tensor",
    "tensor": "Tensor",
    "other": "Tensor | Number",
    "exponent": "Tensor | Number",
    "value": "Tensor | Number",
    "mask": "Tensor",
    "src": "Tensor | Number",
    "mat1": "Tensor",
    "mat2": "Tensor",
    "vec": "Tensor",
    "vec1": "Tensor",
    "vec2": "Tensor",
    "batch1": "Tensor",
    "batch2": "Tensor",
    "mat": "Tensor",
    "tensor1": "Tensor",
    "tensor2": "Tensor",
    "tensors": "Sequence[Tensor]",
    "dim": "builtins.int",
    "dim0": "builtins.int",
    "dim1": "builtins.int",
    "keepdim": "builtins.bool",
    "dtype": "_dtype",
    "device": "_device | builtins.str",
    "size": "Sequence[builtins.int] | builtins.int",
    "sizes": "Sequence[builtins.int]",
    "output_size": "Sequence[builtins.int | None] | builtins.int",
    "shape": "Sequence[builtins.int]",
    "dims": "Sequence[builtins.int] | builtins.int",
    "requires_grad": "builtins.bool",
    "bias": "Tensor",
    "generator": "Any",
}
#: Types of parameters that take any number of arguments, by their name or the function's; the others take Any.
SPREAD = {
    **dict.fromkeys(
        "size sizes shape shapes dims repeats empty new_empty new_ones new_zeros ones randint resize_ sum_to_size tile "
        "zeros".split(),
        "SupportsIndex | Sequence[SupportsIndex]",
    ),
    "arange": "Tensor | Number",
    "matrices": "Tensor",
    "tensors": "Tensor | Sequence[Tensor]",
}
#: Types of the kinds of values that calls are checked for, and those kinds by number.
BY_KIND = {
    "bool": "builtins.bool",
    "flag": "builtins.bool",
    "pin": "builtins.bool",
    "int": "builtins.int",
    "Ints": "Sequence[builtins.int] | builtins.int",
    "float": "builtins.float",
    "Number": "Number",
    "str": "builtins.str",
    "dtype": "_dtype",
    "Tensor": "Tensor",
    "Tensors": "Sequence[Tensor]",
}
KINDS = {number: kind for kind, number in _TAKES.items()}
#: What mypy must pass over: comparisons give tensors, and ``**=`` takes no modulus.
IGNORED = {"__eq__": "override", "__ne__": "override", "__ipow__": "misc"}
#: dims that may also be several
MANY = {"dim": "builtins.int | Sequence[builtins.int] | None"}
BUILTIN = {
    bool: "builtins.bool",
    int: "builtins.int",
    float: "builtins.float",
    str: "builtins.str",
    complex: "builtins.complex",
}

#: What functions give that do not give one Tensor, nor a class of ``return_types``, by type.
_SEVERAL = "tuple[Tensor, ...]"
FUNCTION_RESULTS = {
    name: kind
    for kind, names in {
        _SEVERAL: (
            "broadcast_tensors chunk dsplit hsplit meshgrid split split_copy split_with_sizes split_with_sizes_copy "
            "tensor_split unbind unbind_copy unravel_index unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit "
            "gradient"
        ),
        "builtins.bool": (
            "allclose equal is_complex is_conj is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size "
            "is_set_to is_shared is_signed is_tensor can_cast"
        ),
        "builtins.int": "get_device numel",
        "tuple[Tensor, Tensor]": "std_mean var_mean native_dropout",
        "tuple[Tensor, Tensor, Tensor]": (
            "native_batch_norm native_group_norm native_layer_norm pca_lowrank svd_lowrank"
        ),
        "Size": "broadcast_shapes",
        "_dtype": "promote_types result_type get_default_dtype",
        # of several kinds, by their arguments
        "Any": (
            "apply_ as_subclass atleast_1d atleast_2d atleast_3d dim_order embedding_bag lobpcg lu map_ map2_ "
            "slice_inverse to_dense type unique unique_consecutive"
        ),
    }.items()
    for name in names.split()
}
#: Functions whose result depends on their arguments: the arguments after ``input``, and the result, of each form.
_WHERE_TO = "device: _device | builtins.str | builtins.int | None = None, dtype: _dtype | None = None"
_MOVED = "non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: Any = None"
_PARTED = [("", "Tensor"), ("dim: builtins.int, keepdim: builtins.bool = False", "return_types.{0}")]
OVERLOADS = {
    "max": [*_PARTED, ("other: Tensor", "Tensor")],
    "min": [*_PARTED, ("other: Tensor", "Tensor")],
    "median": _PARTED,
    "nanmedian": _PARTED,
    "nonzero": [("", "Tensor"), ("*, as_tuple: builtins.bool", "Any")],
    "to": [(f"{what}, {_MOVED}", "Tensor") for what in ("dtype: _dtype", _WHERE_TO, "other: Tensor")],
    "view": [("dtype: _dtype", "Tensor"), (f"*size: {SPREAD['size']}", "Tensor")],
    "where": [("", _SEVERAL), ("input: Tensor | Number, other: Tensor | Number", "Tensor")],
}
#: Parameters of Tensor's own methods and forms of their results.
METHOD_OVERLOADS = {
    "size": [("", "Size"), ("dim: builtins.int", "builtins.int")],
    "stride": [("", "tuple[builtins.int, ...]"), ("dim: builtins.int", "builtins.int")],
}
#: Types of parameters of Tensor's own methods, and of values that properties are set to; the others take Any.
OWN = {
    "create_graph": "builtins.bool",
    "gradient": "Tensor | None",
    "hook": "Callable[[Tensor], Any]",
    "index": "_Index",
    "memo": "Any",
    "requires_grad": "builtins.bool",
    "retain_graph": "builtins.bool | None",
}
#: Types of attributes of small classes, and what their methods without arguments give; the others give Any.
MEMBERS = {
    "Size.numel": "builtins.int",
    "device.type": "builtins.str",
    "dtype.itemsize": "builtins.int",
    **dict.fromkeys(("dtype.is_complex", "dtype.is_floating_point", "dtype.is_signed"), "builtins.bool"),
}
#: Operators of tuples that give sizes where there are sizes.
OF_SIZES = """\
    @overload
    def __getitem__(self, index: SupportsIndex) -> builtins.int: ...
    @overload
    def __getitem__(self, index: builtins.slice) -> Size: ...
    def __add__(self, other: builtins.tuple[builtins.int, ...]) -> Size: ...  # type: ignore[override]
    def __mul__(self, times: SupportsIndex) -> Size: ...
    def __rmul__(self, times: SupportsIndex) -> Size: ...
"""
#: What stubs of modules take from the root's.
COMMON = "Number, Size, Tensor, _device, _dtype"
#: The other operand of ``+`` and its kin.
OPERAND = "Tensor | Number | numpy.ndarray[Any, Any]"
#: What properties of the Tensor give; the others give Any.
PROPERTIES = {
    "shape": "Size",
    "dtype": "_dtype",
    "device": "_device",
    "ndim": "builtins.int",
    "itemsize": "builtins.int",
    "nbytes": "builtins.int",
    "requires_grad": "builtins.bool",
    "is_leaf": "builtins.bool",
    "is_cuda": "builtins.bool",
    "is_cpu": "builtins.bool",
    "retains_grad": "builtins.bool",
    "output_nr": "builtins.int",
    "grad": "Tensor | None",
    "data": "Tensor",
    "T": "Tensor",
    "mT": "Tensor",
    "H": "Tensor",
    "mH": "Tensor",
    "real": "Tensor",
    "imag": "Tensor",
    **dict.fromkeys(
        "is_meta is_mps is_nested is_quantized is_sparse is_sparse_csr is_xla is_xpu".split(), "builtins.bool"
    ),
}
#: What the Tensor's own methods give.
RESULTS = {
    "dim": "builtins.int",
    "numel": "builtins.int",
    "element_size": "builtins.int",
    "storage_offset": "builtins.int",
    "data_ptr": "builtins.int",
    "is_contiguous": "builtins.bool",
    "is_floating_point": "builtins.bool",
    "is_complex": "builtins.bool",
    "is_signed": "builtins.bool",
    "requires_grad_": "Tensor",
    "detach": "Tensor",
    "detach_": "Tensor",
    "retain_grad": "None",
    "backward": "None",
    "item": "Any",
    "numpy": "numpy.ndarray[Any, Any]",
    "tolist": "Any",
    **dict.fromkeys("ndimension nelement numel get_device dense_dim sparse_dim".split(), "builtins.int"),
    **dict.fromkeys("has_names is_conj is_inference is_neg is_shared is_set_to is_pinned".split(), "builtins.bool"),
    **dict.fromkeys(
        "as_strided_ broadcast_to new squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_ view".split(), "Tensor"
    ),
    "split_with_sizes": _SEVERAL,
    "where": "Tensor",
    "__abs__": "Tensor",
    "__neg__": "Tensor",
    "__pos__": "Tensor",
    "__pow__": "Tensor",
    "__invert__": "Tensor",
    "__reduce_ex__": "Any",
    "__bool__": "builtins.bool",
    "__int__": "builtins.int",
    "__float__": "builtins.float",
    "__complex__": "builtins.complex",
    "__index__": "builtins.int",
    "__len__": "builtins.int",
    "__hash__": "builtins.int",
    "__iter__": "Iterator[Tensor]",
    "__contains__": "builtins.bool",
    "__repr__": "builtins.str",
    "__str__": "builtins.str",
    "__format__": "builtins.str",
    "__getitem__": "Tensor",
    "__setitem__": "None",
}


def default_text(value: Any) -> str:
    """A default as a stub writes it: short literals as they are, anything else as ``...``."""
    return repr(value) if isinstance(value, bool | int | float | str | type(None)) and value == value else "..."


def parameter_type(name: str, default: Any, kind: str = "") -> str:
    """The type of a parameter, by its name, its default, and its kind: one of ``BY_KIND``, Any, or none."""
    known = BY_NAME.get(name) or BY_KIND.get(kind)
    if default is REQUIRED or default is inspect.Parameter.empty:
        return known or "Any"
    if name in MANY and not isinstance(default, int):
        return MANY[name]
    if default is None:
        return f"{known} | None" if known else "Any"
    if isinstance(default, bool | str) and name != "p":
        return BUILTIN[type(default)]
    if kind == "Any" or name == "p":  # of norms: a number or a name
        return "Any"
    if isinstance(default, int | float) and known and "Sequence" in known and "| builtins.int" not in known:
        return f"{known} | {BUILTIN[type(default)]}"
    return known or ("Number" if isinstance(default, int | float) else "Any")


def _parameters(function: Any, names: Sequence[str], defaults: Sequence[Any]) -> list[str]:
    """The parameters of a function of the table. Their kinds are what calls check the arguments for."""
    given, kinds = function.__annotations__, [KINDS[i] for i in takes(function, names, tuple(defaults))]
    written = []
    for name, default, kind in zip_longest(names, defaults, kinds, fillvalue=""):
        annotation = given.get(name, "")
        if not annotation and kind in ("Any", "float"):  # a float by the default alone may be an operand: any number
            kind = ""
        found = parameter_type(name, default, kind)
        if annotation.endswith("| None") and found != "Any" and not found.endswith("| None"):
            found += " | None"
        written.append(f"{name}: {found}" + ("" if default is REQUIRED else f" = {default_text(default)}"))
    return written


def op_parameters(op: Op) -> list[str]:
    """The parameters of an op of the table, ``out=`` included."""
    function = op.__wrapped__
    code = function.__code__
    parts = _parameters(function, op.params, op.defaults)
    positional = code.co_argcount
    spread = next((i for i, n in enumerate(op.params) if _is_variadic(op, i)), None)
    if spread is not None:
        parts[spread] = f"*{op.params[spread]}: {SPREAD.get(op.params[spread], 'Any')}"
        return parts
    star = ["*"] if len(parts) > positional or _has_out(op) else []
    out = ["out: Any = None"] if _has_out(op) else []
    return [*parts[:positional], *star, *parts[positional:], *out]


def _has_out(op: Op) -> bool:
    return bool(op.traits.get("has_out")) and not op.__name__.endswith("_")


def _is_variadic(op: Op, i: int) -> bool:
    return op.traits.get("variadic") == op.params[i]


def function_parameters(function: Any) -> list[str]:
    """The parameters of a composite."""
    parts: list[str] = []
    star = False
    given = inspect.signature(function).parameters
    defaults = [REQUIRED if p.default is p.empty else p.default for p in given.values()]
    for p, written in zip(given.values(), _parameters(function, list(given), defaults), strict=True):
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}: {SPREAD.get(p.name) or SPREAD.get(function.__name__, 'Any')}")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}: Any")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            parts.append(written)
    return parts


def _result(name: str, target: Any, prefix: str) -> str:
    """The type of what a function gives. ``prefix`` stands before its name in the table, as ``linalg_`` does."""
    if name in FUNCTION_RESULTS:
        return FUNCTION_RESULTS[name]
    if prefix + name in RESULT_TYPES:
        return f"return_types.{prefix}{name}"
    said = getattr(target, "__annotations__", {}).get("return")
    if isinstance(said, str) and "Tensor" in said and not said.startswith("Callable"):
        return said
    return "Tensor"


def _summary(target: Any) -> str:
    paragraph = " ".join((target.__doc__ or "").strip().partition("\n\n")[0].split())
    sentence = paragraph if len(paragraph) <= 100 else paragraph.partition(". ")[0]
    text = textwrap.shorten(sentence, 100, placeholder=" ...").replace("\\", "\\\\")
    return f'r"""{text}"""' if '"""' not in text and text and not text.endswith('"') else "..."


def define(name: str, target: Any, method: bool, prefix: str = "") -> str:
    """The stub of one function or method."""
    indent = "    " if method else ""
    if not prefix and name in OVERLOADS:
        condition = "condition: Tensor" if name == "where" else "input: Tensor"
        return _overloads(name, "self" if method else condition, OVERLOADS[name], indent, _summary(target))
    parts = op_parameters(target) if isinstance(target, Op) else function_parameters(target)
    if method and parts:
        parts[0] = "self" if not parts[0].startswith("*") else parts[0]
    result = _result(name, target, prefix)
    return f"{indent}def {name}({', '.join(parts)}) -> {result}:\n{indent}    {_summary(target)}\n"


def _overloads(name: str, first: str, forms: list[tuple[str, str]], indent: str, summary: str = "...") -> str:
    """A function of several forms; ``first`` is the parameter that all of them have."""
    out = ", *, out: Any = None" if first != "self" else ""
    text = ""
    for more, result in forms:
        tail = out if "*" not in more else out.replace(", *", "")
        parameters = f"{first}{', ' if more else ''}{more}{tail}"
        text += (
            f"{indent}@overload\n{indent}def {name}({parameters}) -> {result.format(name)}:\n{indent}    {summary}\n"
        )
    return text


def own_members() -> list[str]:
    """Methods and properties that the Tensor's Cython source defines."""
    source = (ROOT / "taeda" / "_core" / "tensor.pxi").read_text()
    body = re.split(r"^cdef class Tensor:.*$", source, maxsplit=1, flags=re.M)[1]
    body = re.split(r"^\S", body, maxsplit=1, flags=re.M)[0]
    lines: dict[str, str] = {}
    pattern = re.compile(r"((?:    @[\w.]+\n)*)    def (\w+)\(([^)]*)\):")
    for decorators, name, parameters in pattern.findall(body):
        if name in METHODS or name in ("__cinit__", "__init__", "__dealloc__", "__getbuffer__", "__releasebuffer__"):
            continue
        if name.startswith("_") and not name.startswith("__"):
            continue
        if "@property" in decorators:
            kind = PROPERTIES.get(name, "Any")
            lines[name] = f"    @property\n    def {name}(self) -> {kind}: ...\n"
        elif ".setter" in decorators or ".deleter" in decorators:
            what, argument = ("setter", ", value: Any") if ".setter" in decorators else ("deleter", "")
            lines[name] += f"    @{name}.{what}\n    def {name}(self{argument}) -> None: ...\n"
        elif name in METHOD_OVERLOADS:
            lines[name] = _overloads(name, "self", METHOD_OVERLOADS[name], "    ")
        else:
            clean = [re.sub(r"^(?:bint|int|Tensor|str|object|size_t)\s+", "", p.strip()) for p in parameters.split(",")]
            typed = [
                p if p in ("self", "cls") else re.sub(r"^(\**)(\w+)", lambda m: f"{m[0]}: {OWN.get(m[2], 'Any')}", p)
                for p in clean if p
            ]  # fmt: skip
            typed = [re.sub(r"=(?! )", " = ", p) for p in typed]
            typed = [re.sub(r" = (?!None|True|False|-?\d)\S+", " = ...", p) for p in typed]
            binary = name.startswith("__") and len(typed) == 2 and name not in RESULTS
            if (binary or name == "__pow__") and name not in ("__eq__", "__ne__", "__deepcopy__"):
                typed[1] = typed[1].replace("Any", OPERAND)
            kind = RESULTS.get(name, "Tensor" if binary else "Any")
            ignored = f"  # type: ignore[{IGNORED[name]}]" if name in IGNORED else ""
            lines[name] = f"    def {name}({', '.join(typed)}) -> {kind}: ...{ignored}\n"
    return [lines[name] for name in sorted(lines)]


def tensor_class() -> str:
    """The stub of the Tensor."""
    methods = [define(name, METHODS[name], True) for name in sorted(METHODS) if name.isidentifier()]
    others = (set(dir(Tensor)) | set(dir(SparseTensor))) - set(METHODS) - set(dir(object))
    written = "".join(own_members())
    more = []
    for name in sorted(others):
        if name.startswith("_") or re.search(rf"def {name}\(", written):
            continue
        attribute = inspect.getattr_static(Tensor, name, None)  # None: sparse tensors alone have it
        if isinstance(attribute, property | types.GetSetDescriptorType):
            more.append(f"    @property\n    def {name}(self) -> {PROPERTIES.get(name, 'Any')}: ...\n")
        else:
            result = RESULTS.get(name, "Any")
            more.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> {result}: ...\n")
    init = "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
    for name in ("__torch_function__", "_make_subclass", "_make_wrapper_subclass"):  # what subclasses call
        first = "cls, *args" if name == "__torch_function__" else "*args"
        decorator = "classmethod" if name == "__torch_function__" else "staticmethod"
        init += f"    @{decorator}\n    def {name}({first}: Any, **kwargs: Any) -> Any: ...\n"
    return 'class Tensor:\n    """An n-dimensional array that records what is done with it."""\n\n' + "".join(
        [init, written, *more, *methods]
    )


def plain_class(cls: type) -> str:
    """The stub of a small class of the core: its public attributes, untyped unless ``MEMBERS`` has them."""
    base = next((b.__name__ for b in cls.__mro__[1:] if b in (tuple, RuntimeError)), "")
    items = "[builtins.int, ...]" if cls is taeda.Size else ""
    lines = [f"class {cls.__name__}{f'(builtins.{base}{items})' if base else ''}:\n"]
    if not base:
        lines.append("    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n")
    for name in sorted(vars(cls)):
        if name.startswith("_"):
            continue
        callable_ = callable(getattr(cls, name))
        if base and hasattr(getattr(builtins, base), name):
            continue
        kind = MEMBERS.get(f"{cls.__name__}.{name}", "Any")
        arguments = "self" if kind != "Any" else "self, *args: Any, **kwargs: Any"
        lines.append(
            f"    def {name}({arguments}) -> {kind}: ...\n"
            if callable_
            else f"    @property\n    def {name}(self) -> {kind}: ...\n"
        )
    if cls is taeda.Size:
        lines.append(OF_SIZES)
    if hasattr(cls, "__enter__"):
        lines.append("    def __enter__(self) -> Any: ...\n    def __exit__(self, *exc: object) -> None: ...\n")
    return "".join(lines) if len(lines) > 1 else lines[0].rstrip() + " ...\n"


def _reexport(name: str, target: Any) -> str | None:
    """``from .module import name as name`` for what lives in one of taeda's Python modules."""
    module = getattr(target, "__module__", "") or ""
    if not module.startswith("taeda.") or "._core" in module or module == "taeda":
        return None
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or not (spec.origin or "").endswith(".py"):
        return None
    if getattr(sys.modules.get(module), getattr(target, "__name__", ""), None) is not target:
        return None
    own = target.__name__
    alias = "" if own == name else f"{name} = {own}\n"  # `import own as name` would be private, to type checkers
    return f"from {module.removeprefix('taeda')} import {own} as {own}\n{alias}"


def wrapped(line: str) -> str:
    """A line of more than 120 columns as several: the head of a function, or a docstring."""
    indent, (head, _, rest) = " " * (len(line) - len(line.lstrip())), line.strip().partition("(")
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    if not head.startswith("def "):
        return "".join(f"{indent}{x}\n" for x in textwrap.wrap(line.strip(), 120 - len(indent), **options))
    parameters, _, result = rest.rpartition(") -> ")
    lines = textwrap.wrap(parameters, 116 - len(indent), **options)
    return f"{indent}{head}(\n" + "".join(f"{indent}    {x}\n" for x in lines) + f"{indent}) -> {result}\n"


def lazy_imports() -> list[str]:
    """The modules and names of taeda that are imported when they are first named."""
    modules = [f"from . import {name} as {name}\n" for name in MODULES if find_spec(f"taeda.{name}")]
    names = [f"from {home.removeprefix('taeda')} import {name} as {name}\n" for name, home in NAMES.items()]
    return sorted(x for x in modules + names if " _" not in x)


def root() -> str:
    """The stub of the package."""
    imports, classes, values, functions = lazy_imports(), [], [], []
    core_classes = (taeda.dtype, taeda.device, taeda.Size)
    for name, target in sorted(vars(taeda).items()):
        if (name.startswith("_") and name != "__version__") or name in MODULES or name in NAMES:
            continue
        if target is None:  # newaxis
            values.append(f"{name}: None\n")
        elif isinstance(target, types.ModuleType):
            if target.__name__ == f"taeda.{name}":
                imports.append(f"from . import {name} as {name}\n")
        elif target is Tensor or target in core_classes:
            continue
        elif isinstance(target, Op | Composite):
            functions.append(define(name, target, False))
        elif (line := _reexport(name, target)) is not None:
            imports.append(line)
        elif isinstance(target, taeda.dtype):
            values.append(f"{name}: _dtype\n")
        elif isinstance(target, str | int | float):
            values.append(f"{name}: {BUILTIN[type(target)]}\n")
        elif isinstance(target, type) and target.__name__ != name:  # another name of a class
            values.append(f"{name}: TypeAlias = {target.__name__}\n")
        elif isinstance(target, type):
            classes.append(plain_class(target))
        elif name in FUNCTION_RESULTS:
            values.append(f"def {name}(*args: Any, **kwargs: Any) -> {FUNCTION_RESULTS[name]}: ...\n")
        else:
            values.append(f"{name}: Any\n")
    core = [plain_class(c) for c in core_classes]
    aliases = "_dtype: TypeAlias = dtype\n_device: TypeAlias = device\n"
    return "\n".join(
        [HEADER, "".join(imports), *core, aliases, *classes, "".join(values), tensor_class(), "".join(functions)]
    )


def namespace(module: types.ModuleType, prefix: str = "") -> str:
    """The stub of a module whose functions come from the table."""
    depth = "." * module.__name__.count(".")
    lines = [
        f'"""Types of {module.__name__}. Written by tools/stubs.py: do not edit."""\n\n# ruff: noqa\nimport builtins\n'
        "from collections.abc import Callable, Sequence\nfrom typing import Any\n\n"
        f"from {depth} import {COMMON}, return_types\n"
    ]
    functions = []
    for name, target in sorted(vars(module).items()):
        if name.startswith("__") or target is Tensor:
            continue
        ours = (getattr(target, "__module__", None) or "").startswith("taeda.")
        if name.startswith("_"):
            lines += [f"{name}: Any\n"] if ours else []
        elif isinstance(target, Op | Composite) or (ours and isinstance(target, types.FunctionType)):
            functions.append(define(name, target, False, prefix))
        elif ours and isinstance(target, type) and target.__module__ == module.__name__:
            lines.append(plain_class(target))
        elif ours and isinstance(target, type):
            lines.append(f"from {depth}{target.__module__.removeprefix('taeda.')} import {name} as {name}\n")
    return "".join(lines) + "\n" + "".join(functions)


def package(module: types.ModuleType, lazy: Iterable[str] = ()) -> str:
    """The stub of a package that gives names of its modules, as a type checker is to see them: as its own."""
    text = f'"""Names of {module.__name__}. Written by tools/stubs.py: do not edit."""\n\n# ruff: noqa\n'
    text += "import builtins\nfrom collections.abc import Callable, Sequence\nfrom typing import Any\n\n"
    text += "from " + "." * (module.__name__.count(".") + 1) + f" import {COMMON}\n"
    values = ""
    for name in sorted({*vars(module), *lazy}):
        target = getattr(module, name)
        home = getattr(target, "__module__", None) or ""
        if name.startswith("_") or home in ("__future__", "typing", "contextlib", "collections.abc"):
            continue
        if isinstance(target, types.ModuleType):
            if target.__name__ == f"{module.__name__}.{name}":
                text += f"from . import {name} as {name}\n"
        elif (line := _reexport(name, target)) is not None and home != module.__name__:
            text += line.replace("from .", "from " + "." * (module.__name__.count(".") + 1), 1)
        elif isinstance(target, types.FunctionType):
            values += define(name, target, False)
        elif isinstance(target, type):
            values += plain_class(target)
        else:
            values += f"{name}: Any\n"
    return text + "\n" + values


def result_classes() -> str:
    """The stub of ``taeda.return_types``."""
    text = (
        '"""Types of taeda.return_types. Written by tools/stubs.py: do not edit."""\n\n# ruff: noqa\n'
        "from typing import Any, NamedTuple\n\nfrom . import Tensor\n\nall_return_types: list[type[Any]]\n"
    )
    for name, made in sorted(RESULT_TYPES.items()):
        text += f"\nclass {name}(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in made._fields)  # type: ignore[attr-defined]
    return text


def generate() -> dict[Path, str]:
    """All stubs, by path."""
    functional = importlib.import_module("taeda.nn.functional")
    stubs = {
        "__init__": root(),
        "return_types": result_classes(),
        "nn/functional": namespace(functional),
        "linalg": namespace(taeda.linalg, "linalg_"),
        "fft": namespace(taeda.fft, "fft_"),
        "special": namespace(taeda.special, "special_"),
        "distributed/__init__": package(taeda.distributed, (*taeda.distributed._LAZY, *taeda.distributed._PACKAGES)),
        "cuda/__init__": package(taeda.cuda),
        "utils/__init__": package(taeda.utils, (*taeda.utils.__all__, "benchmark")),
        "nn/utils/__init__": package(taeda.nn.utils, taeda.nn.utils.__all__),
    }
    return {
        ROOT / "taeda" / f"{name}.pyi": "".join(x if len(x) <= 121 else wrapped(x) for x in text.splitlines(True))
        for name, text in stubs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    for path, text in generate().items():
        old = path.read_text() if path.exists() else ""
        if old != text and check:
            lines = difflib.unified_diff(
                old.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=1
            )
            print("\n".join(list(lines)[:40]))
            raise SystemExit(f"{path.relative_to(ROOT)} is out of date: run python tools/stubs.py")
        if old != text:
            path.write_text(text)
    print("the stubs are up to date")


if __name__ == "__main__":
    main()
