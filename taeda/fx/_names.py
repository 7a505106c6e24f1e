"""Names of functions in generated code, and the way in which PyTorch would pass their arguments.

Code names functions by the package that they are known under: ``taeda.relu``, or ``torch.relu`` under the stand-in.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from taeda import functional
from taeda._asserts import _assert
from taeda._core import Composite, Method, Op, Size, Tensor, set_grad_enabled
from taeda._namespaces import complete
from taeda.aten import OpOverload, OpOverloadPacket

#: Where a public function may be found, in order; what PyTorch calls the compiled part of it.
_SPACES = {"": "", "nn.functional": "", "linalg": "_C._linalg", "fft": "_C._fft", "special": "_C._special"}

#: Functions of ``nn.functional`` that PyTorch writes as ``torch._C._nn``, and their names there.
COMPILED = {
    **{name: name for name in (
        "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus "
        "softshrink"
    ).split()},
    "logsigmoid": "log_sigmoid",
}  # fmt: skip

#: Functions of the root and of ``nn.functional`` that are one here and two in PyTorch; programs mean the second.
_OF_FUNCTIONAL = frozenset("group_norm layer_norm rms_norm max_pool1d max_pool2d max_pool3d".split())

#: Functions that PyTorch writes as ``torch.functional.split``, and so on. The home of three of them is elsewhere.
_PYTHON = frozenset(functional.__all__) - {"istft", "pca_lowrank", "svd_lowrank"}

#: The classes of functions that are no Python functions.
OPS = (Op, Composite)
#: Those of functions that graphs call: the last is that of functions in Cython, such as ``tensor``.
_FUNCTIONS = (*OPS, types.FunctionType, type(set_grad_enabled))


def namespace() -> str:
    """The name of the package in code: ``taeda``, or ``torch`` under the stand-in."""
    return Size.__module__


def root() -> types.ModuleType:
    """The package that :func:`namespace` names."""
    return importlib.import_module(namespace())


def module_of(name: str) -> types.ModuleType:
    """The module ``name`` of the package, under the name that it is known by."""
    return importlib.import_module(f"{namespace()}.{name}")


def is_own(obj: Any) -> bool:
    """Whether ``obj`` belongs to the package, so that code can name it by its path."""
    first = (getattr(obj, "__module__", None) or "").partition(".")[0]
    return first in ("taeda", namespace()) or type(obj) in (Op, Composite, Method)


@functools.cache
def _functions() -> dict[Callable, tuple[str, str]]:
    """The place of each public function: (module inside the package, name)."""
    found: dict[Callable, tuple[str, str]] = {}
    for space in _SPACES:
        module = importlib.import_module(f"taeda.{space}".rstrip("."))
        for name, value in (vars(module) if space else complete()).copy().items():
            if not name.startswith("__") and isinstance(value, _FUNCTIONS):
                known = found.get(value)
                same_space = known is not None and known[0] == space and name == value.__name__
                if known is None or same_space or (space == "nn.functional" and name in _OF_FUNCTIONAL):
                    found[value] = space, name
    found[_assert] = "", "_assert"
    found[set_grad_enabled] = "_core", "set_grad_enabled"
    for function, (space, name) in found.items():
        if not space and name in _PYTHON:
            found[function] = "functional", name
    return found


def step_of(function: Any, args: tuple) -> tuple[str, Any]:
    """The kind and target of the step that records a call: a method if the function has no other name."""
    own = args and isinstance(args[0], Tensor) and hasattr(Tensor, function.__name__) and space_of(function) is None
    return ("call_method", function.__name__) if own else ("call_function", function)


def space_of(function: Any) -> tuple[str, str] | None:
    """The public module and name of a function of the package; None if it has none."""
    try:
        return _functions().get(function)
    except TypeError:  # not hashable
        return None


def function_of(target: Any) -> Any:
    """The function at the place that :func:`space_of` gave; any other target as it is."""
    if not isinstance(target, tuple):
        return target
    space, name = target
    return getattr(importlib.import_module(f"taeda.{space}".rstrip(".")), name)


def is_method(function: Any) -> bool:
    """Whether the method of Tensor with its name runs ``function``."""
    method = vars(Tensor).get(getattr(function, "__name__", ""))
    return isinstance(method, Method) and method.function is function


def qualified_name(function: Any) -> str:
    """The path of ``function`` as code names it, such as ``taeda.nn.functional.relu``."""
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        inner = "ops" if namespace() == "torch" or function.namespace == "aten" else "library.ops"
        return f"{namespace()}.{inner}.{function}"
    name = getattr(function, "__name__", None)
    if name is not None and getattr(builtins, name, None) is function:
        return name
    known = space_of(function)
    if known is not None:
        return ".".join(part for part in (namespace(), *_public(*known)) if part)
    if isinstance(function, Method) or is_method(function):
        return f"{namespace()}.Tensor.{name}"
    if type(function) in OPS:  # a program's own, which its module has
        name = inspect.unwrap(function).__name__
    module = getattr(function, "__module__", None)
    if isinstance(function, types.MethodType) and inspect.isclass(function.__self__):
        return f"{_as_public(function.__self__.__module__)}.{function.__qualname__}"
    if name is None or module is None:
        if name is not None and getattr(Tensor, name, None) is function:
            return f"{namespace()}.Tensor.{name}"
        raise RuntimeError(f"cannot find module for {function}")
    return f"{_as_public(module)}.{'_lambda_' if name == '<lambda>' else name}"


def _public(space: str, name: str) -> tuple[str, str]:
    if namespace() == "torch":
        if space == "nn.functional" and name in COMPILED:
            return "_C._nn", COMPILED[name]
        if space == "_core":
            return "_C", f"_{name}"
        if _SPACES.get(space):
            return _SPACES[space], f"{space}_{name}"
    return space, name


def _as_public(module: str) -> str:
    """The name of a module of taeda as the package of :func:`namespace` has it."""
    first, dot, rest = module.partition(".")
    return f"{namespace()}{dot}{rest}" if first == "taeda" else module


def name_of(function: Any) -> str:
    """The base of the name of a node that calls ``function``."""
    if isinstance(function, OpOverload):
        return function.overloadpacket.__name__
    known = space_of(function)
    if known is None:
        return getattr(function, "__name__", type(function).__name__)
    space, name = known
    if space in ("functional", "_core"):
        return name
    if space == "nn.functional":
        return COMPILED.get(name, name)
    return f"{space}_{name}" if space else name


#: Parameters that only one of the two packages has.
_NOT_PASSED = {
    "l1_loss": {"weight"}, "layer_norm": {"cudnn_enable"}, "group_norm": {"cudnn_enabled"}, "split": {"split_size"},
    "softsign": {"out"},
}  # fmt: skip
#: Parameters that have a default here and none there.
_REQUIRED = {"split": {"split_size_or_sections"}}


@functools.cache
def _parameters(function: Any) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of a function that is written in Python in PyTorch."""
    known = space_of(function)
    if known is None or known[0] not in ("nn.functional", "functional") or known[1] in COMPILED:
        return None
    if known[1].endswith("_") or known[1] == "pdist":  # in PyTorch these belong to the root
        return None
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def as_passed(function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments as PyTorch's functions hand them to ``__torch_function__``.

    PyTorch's Python functions in ``nn.functional`` pass arguments without a default by position, and all the others,
    with defaults filled in, by name. Other functions hand their arguments over unchanged.
    """
    parameters = _parameters(function)
    if parameters is None or any(p.kind == p.VAR_KEYWORD for p in parameters):
        return args, kwargs
    try:
        bound = inspect.Signature(parameters).bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    positional: list = []
    required = _REQUIRED.get(function.__name__, ())
    for p in parameters:
        if p.default is p.empty or p.name in required:
            positional += bound.arguments[p.name] if p.kind == p.VAR_POSITIONAL else [bound.arguments[p.name]]
    if function.__name__ == "einsum" and len(positional) == 2 and isinstance(positional[1], (list, tuple)):
        positional[1:] = positional[1]  # operands in one list
    left_out = {*_NOT_PASSED.get(function.__name__, ()), *required}
    named = {p.name: bound.arguments[p.name] for p in parameters if p.default is not p.empty and p.name not in left_out}
    return tuple(positional), named


def is_method_call(frame: Any, count: int) -> bool:
    """Whether the code of ``frame`` runs an operator, or calls a method, whose arguments with ``self`` are ``count``.

    An op cannot tell ``torch.add(t, x)`` from ``t + x`` and ``t.add(x)``; the caller's bytecode can.
    """
    import dis

    if frame is None:
        return False
    here = frame.f_lasti
    for step in dis.get_instructions(frame.f_code):
        if step.offset == here:
            if step.opname in ("BINARY_OP", "COMPARE_OP", "BINARY_SUBSCR"):
                return True
            return step.opname == "CALL" and step.arg == count - 1
    return False


#: Modules whose functions are not the program's.
_MACHINERY = ("taeda.fx._", "taeda.fx.proxy", "taeda.overrides", "contextlib", "torch.fx", "torch.overrides")


def _is_machinery(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_MACHINERY)


def user_frame(depth: int = 1) -> Any:
    """The nearest frame that is not of the machinery of overrides."""
    frame: Any = sys._getframe(depth)
    while frame is not None and _is_machinery(frame):
        frame = frame.f_back
    return frame


def user_stack() -> str:
    """The lines of the program that is traced, the outermost first, as tracebacks show them."""
    frame: Any = sys._getframe(1)
    found = []
    while frame is not None and not (_is_machinery(frame) and frame.f_code.co_name == "trace"):
        if not _is_machinery(frame):
            found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return "".join(traceback.StackSummary.extract(reversed(found)).format()).strip()
