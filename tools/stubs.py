"""Writes the package's type stub, ``taeda/__init__.pyi``, from the table of ops and the source of the Tensor.

    python tools/stubs.py            # write it
    python tools/stubs.py --check    # compare, for CI: exit code 1 and the difference where it is out of date

A signature's types come from annotations where the op has them, else from its parameters' names and defaults. Type
checkers take what the Cython modules have as ``Any``.
"""

from __future__ import annotations

import argparse
import builtins
import difflib
import inspect
import re
import sys
import textwrap
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if any((ROOT / "taeda" / "_core").glob("tensor*.so")):  # built in place: describe this checkout
    sys.path.insert(0, str(ROOT))

import taeda
from taeda._core import REQUIRED, Op, Tensor
from taeda.ops.table import METHODS, OPS

STUB = ROOT / "taeda" / "__init__.pyi"
HEADER = '''"""Types of taeda's functions and of its Tensor. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex
'''

#: Types of parameters by name, where a name always means the same thing.
BY_NAME = {
    "input": "Tensor",
    "self": "Tensor",
    "tensor": "Tensor",
    "other": "Tensor | Number",
    "exponent": "Tensor | Number",
    "value": "Tensor | Number",
    "index": "Tensor",
    "mask": "Tensor",
    "source": "Tensor",
    "src": "Tensor",
    "mat1": "Tensor",
    "mat2": "Tensor",
    "vec": "Tensor",
    "vec1": "Tensor",
    "vec2": "Tensor",
    "batch1": "Tensor",
    "batch2": "Tensor",
    "tensors": "Sequence[Tensor]",
    "dim": "builtins.int",
    "dim0": "builtins.int",
    "dim1": "builtins.int",
    "keepdim": "builtins.bool",
    "dtype": "_dtype",
    "device": "_device | builtins.str",
    "size": "Sequence[builtins.int] | builtins.int",
    "sizes": "Sequence[builtins.int]",
    "shape": "Sequence[builtins.int]",
    "dims": "Sequence[builtins.int]",
    "requires_grad": "builtins.bool",
    "generator": "Any",
}
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


def parameter_type(name: str, default: Any) -> str:
    """The type of a parameter that has no annotation."""
    known = BY_NAME.get(name)
    if default is REQUIRED or default is inspect.Parameter.empty:
        return known or "Any"
    if default is None:
        if name in MANY:
            return MANY[name]
        return f"{known} | None" if known else "Any"
    if name == "p":  # of norms: a number or a name
        return "Any"
    if isinstance(default, bool | str):
        return BUILTIN[type(default)]
    if isinstance(default, int | float):
        return f"{known} | {BUILTIN[type(default)]}" if known and "Sequence" in known else known or "Number"
    return known or "Any"


def _one(name: str, default: Any, annotation: str | None = None) -> str:
    kind = annotation or parameter_type(name, default)
    missing = default is REQUIRED or default is inspect.Parameter.empty
    return f"{name}: {kind}" if missing else f"{name}: {kind} = {default_text(default)}"


def op_parameters(op: Op) -> list[str]:
    """The parameters of an op of the table, ``out=`` included."""
    function = op.__wrapped__
    code = function.__code__
    parts = [_one(n, d) for n, d in zip(op.params, op.defaults, strict=True)]
    positional = code.co_argcount
    spread = next((i for i, n in enumerate(op.params) if _is_variadic(op, i)), None)
    if spread is not None and spread == positional - 1:
        name = op.params[spread]
        parts[spread] = f"*{name}: Any"
        keyword = parts[positional:]
        return [*parts[: spread + 1], *keyword]
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
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}: Any")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}: Any")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            parts.append(_one(p.name, p.default))
    return parts


def _result(target: Any) -> str:
    if isinstance(target, Op):
        several = target.traits.get("outputs") or target.traits.get("outs") or ("out",)
        return "Tensor" if len(several) == 1 and target.kind != "view" else "Any"
    return "Any"


def _summary(target: Any) -> str:
    lines = (target.__doc__ or "").strip().splitlines()
    text = lines[0].strip().replace("\\", "\\\\") if lines else ""
    return f'r"""{text}"""' if '"""' not in text and text and not text.endswith('"') else "..."


def define(name: str, target: Any, method: bool) -> str:
    """The stub of one function or method."""
    parts = op_parameters(target) if isinstance(target, Op) else function_parameters(target)
    if method and parts:
        parts[0] = "self" if not parts[0].startswith("*") else parts[0]
    indent = "    " if method else ""
    return f"{indent}def {name}({', '.join(parts)}) -> {_result(target)}:\n{indent}    {_summary(target)}\n"


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
        else:
            clean = [re.sub(r"^(?:bint|int|Tensor|str|object|size_t)\s+", "", p.strip()) for p in parameters.split(",")]
            typed = [p if p in ("self", "cls") else re.sub(r"^(\w+)", r"\1: Any", p) for p in clean if p]
            typed = [re.sub(r"=(?! )", " = ", p) for p in typed]
            typed = [re.sub(r" = (?!None|True|False|-?\d)\S+", " = ...", p) for p in typed]
            binary = name.startswith("__") and len(typed) == 2 and name not in RESULTS
            kind = RESULTS.get(name, "Tensor" if binary else "Any")
            ignored = f"  # type: ignore[{IGNORED[name]}]" if name in IGNORED else ""
            lines[name] = f"    def {name}({', '.join(typed)}) -> {kind}: ...{ignored}\n"
    return [lines[name] for name in sorted(lines)]


def tensor_class() -> str:
    """The stub of the Tensor."""
    methods = [define(name, METHODS[name], True) for name in sorted(METHODS) if name.isidentifier()]
    others = set(dir(Tensor)) - set(METHODS) - set(dir(object))
    written = "".join(own_members())
    more = []
    for name in sorted(others):
        if name.startswith("_") or re.search(rf"def {name}\(", written):
            continue
        attribute = inspect.getattr_static(Tensor, name)
        if isinstance(attribute, property | types.GetSetDescriptorType):
            more.append(f"    @property\n    def {name}(self) -> {PROPERTIES.get(name, 'Any')}: ...\n")
        else:
            more.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...\n")
    init = "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
    return 'class Tensor:\n    """An n-dimensional array that records what is done with it."""\n\n' + "".join(
        [init, written, *more, *methods]
    )


def plain_class(cls: type) -> str:
    """The stub of a small class of the core: its public attributes, untyped."""
    base = next((b.__name__ for b in cls.__mro__[1:] if b in (tuple, RuntimeError)), "")
    lines = [f"class {cls.__name__}{f'(builtins.{base})' if base else ''}:\n"]
    if not base:
        lines.append("    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n")
    for name in sorted(vars(cls)):
        if name.startswith("_"):
            continue
        callable_ = callable(getattr(cls, name))
        if base and hasattr(getattr(builtins, base), name):
            continue
        lines.append(
            f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...\n"
            if callable_
            else f"    @property\n    def {name}(self) -> Any: ...\n"
        )
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
    return f"from {module.removeprefix('taeda')} import {target.__name__} as {name}\n"


def wrapped(line: str) -> str:
    """A line of more than 120 columns as several: the head of a function, or a docstring."""
    indent, (head, _, rest) = " " * (len(line) - len(line.lstrip())), line.strip().partition("(")
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    if not head.startswith("def "):
        return "".join(f"{indent}{x}\n" for x in textwrap.wrap(line.strip(), 120 - len(indent), **options))
    parameters, _, result = rest.rpartition(") -> ")
    lines = textwrap.wrap(parameters, 116 - len(indent), **options)
    return f"{indent}{head}(\n" + "".join(f"{indent}    {x}\n" for x in lines) + f"{indent}) -> {result}\n"


def generate() -> str:
    """The whole stub."""
    imports, classes, values, functions = [], [], [], []
    core_classes = (taeda.dtype, taeda.device, taeda.Size)
    for name, target in sorted(vars(taeda).items()):
        if name.startswith("_") and name != "__version__":
            continue
        if target is None:  # newaxis
            values.append(f"{name}: None\n")
        elif isinstance(target, types.ModuleType):
            if target.__name__ == f"taeda.{name}":
                imports.append(f"from . import {name} as {name}\n")
        elif target is Tensor or target in core_classes:
            continue
        elif OPS.get(name) is target or isinstance(target, Op):
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
        else:
            values.append(f"{name}: Any\n")
    core = [plain_class(c) for c in core_classes]
    aliases = "_dtype: TypeAlias = dtype\n_device: TypeAlias = device\n"
    parts = [HEADER, "".join(imports), *core, aliases, *classes, "".join(values), tensor_class(), "".join(functions)]
    return "".join(x if len(x) <= 121 else wrapped(x) for x in "\n".join(parts).splitlines(keepends=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    text, old = generate(), STUB.read_text() if STUB.exists() else ""
    if old != text and check:
        lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=1)
        print("\n".join(list(lines)[:40]))
        raise SystemExit(f"{STUB.relative_to(ROOT)} is out of date: run python tools/stubs.py")
    if old != text:
        STUB.write_text(text)
    print("the stubs are up to date")


if __name__ == "__main__":
    main()
