"""``compile``, and the other functions of ``torch.compiler``.

A compiled function runs as before. While it runs, pointwise ops are deferred (``taeda/_core/fusion.pyx``): when their
values are needed, one kernel computes several of them. A backend that is a function gets graphs
(``taeda/graph/capture.py``).

    python -m taeda.compiler            show the cache of kernels
    python -m taeda.compiler --clear    clear it
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import re
import weakref
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from . import _core
from ._core import fusion
from ._core.scripting import is_scripting
from .graph import backends
from .graph import options as _options
from .graph.backends import list_backends, register_backend
from .kernels import build

__all__ = [
    "CacheInfo", "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin",
    "disable",
    "explain", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "nested_compile_region", "register_backend",
    "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives", "set_stance",
    "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


class _Options:
    """Settings that programs read and write: any name may be set, and none has an effect."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


config = _Options()


_Called = TypeVar("_Called", bound=Callable[..., Any])
_default_backend: Any = "inductor"
_made: weakref.WeakSet = weakref.WeakSet()  # the objects that keep graphs


# ---- compile ---------------------------------------------------------------------------------------------------------


@overload
def compile(
    model: _Called, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None,
    mode: str | None = None, options: dict | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> _Called: ...  # fmt: skip


@overload
def compile(
    model: None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None,
    mode: str | None = None, options: dict | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> Callable[[_Called], _Called]: ...  # fmt: skip


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None,
    mode: str | None = None, options: dict | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """``model`` with the same behaviour and results, faster: ops that follow each other become one kernel. Also a
    decorator.

    Args:
        model: a function, method or Module. A Module gives a Module that shares its parameters, with the original as
            ``_orig_mod``, as in PyTorch.
        fullgraph: raise an error if the function needs a value before its end. Checked at the first call with arguments
            of each form.
        dynamic: for a backend that is a function: one graph for all sizes.
        backend: ``"inductor"`` (the default) computes pointwise ops together; ``"eager"`` and ``"aot_eager"`` run them
            one by one; see :func:`taeda.compiler.list_backends`. A function is called with an ``fx.GraphModule`` and
            example inputs, for each graph and each form of inputs, and returns a function of the same inputs. If a
            value is needed in the middle, the ops so far are one graph, and those after it another.
        mode: ``"reduce-overhead"`` and ``"max-autotune"`` replay a call without its Python code where that is safe.
            ``"max-autotune"`` also measures which variant of that is fastest (``docs/compile.md``). ``"default"``,
            ``"lite"`` and ``"max-autotune-no-cudagraphs"`` do neither.
        options: options of PyTorch's compiler; checked, and without effect.
        name: accepted.
        disable: give ``model`` itself back.
        recompile_limit: accepted; there are no guards and nothing is compiled again.
        isolate_recompiles: accepted.
        shapes_spec: accepted.
    Returns:
        A function, or a Module; without ``model`` a decorator.
    Raises:
        RuntimeError: both ``mode`` and ``options`` are given, or one of them is unknown.
        AssertionError: ``model`` cannot be called.
        torch._dynamo.exc.InvalidBackend: there is no backend of that name.
    Examples:
        >>> @taeda.compile
        ... def norm(x, y):
        ...     return taeda.sqrt(x * x + y * y)
        >>> norm(taeda.tensor([3.0, 5.0]), taeda.tensor([4.0, 12.0]))
        tensor([ 5., 13.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    backend = _default_backend if backend is None else backend
    backends.lookup_backend(backend)
    if backend == "inductor":
        _options.check_mode(mode or "default")
        _options.check_options(options or {})
    if disable or inspect.isclass(model):
        return model
    chosen = _Choices(bool(fullgraph), dynamic, backend, mode, options)
    from .nn import Module

    if isinstance(model, Module):
        from ._compiled import OptimizedModule

        if isinstance(model, OptimizedModule):
            model = model._orig_mod
        return OptimizedModule(model, functools.partial(_compiled, chosen=chosen))
    inner = vars(model).get("_torchdynamo_orig_callable", model) if inspect.isfunction(model) else model
    return _compiled(inner, chosen)


@dataclass(frozen=True)
class _Choices:
    """The arguments of :func:`compile`."""

    fullgraph: bool
    dynamic: bool | None
    backend: Any
    mode: str | None
    options: dict | None

    def runner(self, function: Callable, backend: Any) -> Callable:
        """A function that runs ``function`` by ``backend``."""
        found = backends.lookup_backend(backend)
        if not isinstance(found, str):
            given = {"mode": self.mode if self.mode != "default" else None, "options": self.options}
            return self.captured(function, found, {name: value for name, value in given.items() if value})
        if found in backends.FUSING and self.mode in ("reduce-overhead", "max-autotune"):
            from .graph.replay import Static

            return Static(function, self.fullgraph, tunes=self.mode == "max-autotune")
        runner = functools.partial(fusion.call, function) if found in backends.FUSING else function
        return _checked(runner, self.captured(function, _as_it_is, {})) if self.fullgraph else runner

    def captured(self, function: Callable, backend: Callable, options: dict) -> Callable:
        """A function that hands graphs to ``backend``."""
        from .graph.capture import Captured

        made = Captured(function, backend, self.fullgraph, self.dynamic, options)
        _made.add(made)
        return made


def _as_it_is(module: Any, inputs: list) -> Callable:
    return module.forward


def _compiled(model: Callable, chosen: _Choices) -> Callable:
    """The function that ``compile`` gives."""
    runners: dict[Any, Any] = {}
    runner: Any = None
    chosen_in: Any = None  # the stance in which `runner` was chosen
    calls = 0

    def choose(stance: _Stance) -> bool:
        """Find ``runner``; whether this call is compiled."""
        nonlocal calls, runner, chosen_in
        calls += 1
        if stance.name == "force_eager" or (calls == 1 and stance.name.endswith("eager_then_compile")):
            return False
        backend = stance.backend or chosen.backend
        if backend not in runners:
            runners[backend] = compiled.runner = chosen.runner(model, backend)  # type: ignore[attr-defined]
        runner, chosen_in = runners[backend], stance
        if hasattr(runner, "recompile"):  # it decides about a new graph
            runner.recompile = {"fail_on_recompile": "fail", "eager_on_recompile": "eager"}.get(stance.name, "compile")
        return True

    def compiled(*args: Any, **kwargs: Any) -> Any:
        if fusion.thread_state():  # the one around it sees to all of it
            return model(*args, **kwargs)
        if chosen_in is not _stance and not choose(_stance):
            return model(*args, **kwargs)
        return fusion.run_compiled(runner, args, kwargs)

    with contextlib.suppress(AttributeError, TypeError):
        functools.update_wrapper(compiled, model, updated=())
    compiled._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return compiled


def _checked(runner: Callable, captured: Callable) -> Callable:
    """``runner``, with calls whose arguments have a new form recorded as one graph."""
    from .graph.capture import forms_of

    known: set[Any] = set()

    def run(*args: Any, **kwargs: Any) -> Any:
        forms = forms_of(args, kwargs)
        if forms in known:
            return runner(*args, **kwargs)
        result = captured(*args, **kwargs)
        known.add(forms)
        return result

    return run


def get_default_backend() -> Any:
    """The backend of :func:`compile` where none is given."""
    return _default_backend


def set_default_backend(backend: Any) -> None:
    """Let :func:`compile` use ``backend`` if none is given; None means ``"inductor"``.

    Args:
        backend: a name, or a function of a graph module and example inputs.
    Raises:
        TypeError: it is neither a name nor callable.
    """
    global _default_backend
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    _default_backend = "inductor" if backend is None else backend


def reset() -> None:
    """Forget the graphs that backends were given. Kernels stay."""
    for made in list(_made):
        made.graphs.clear()


def explain(function: Callable) -> Callable:
    """``explain(function)(*args)`` runs the function once, compiled, and gives the kernels that it ran: see
    :class:`taeda.graph.explain.Explanation`."""
    from .graph.explain import explain as run

    return functools.partial(run, compile(function))


# ---- parts of a program ----------------------------------------------------------------------------------------------


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """``fn`` (a function or Module) run op by op, also within a compiled function; also a decorator.

    Args:
        fn: the function or Module; without it, a decorator.
        recursive: compiled functions that ``fn`` calls are not compiled then either.
        reason: what a backend's graph break says.
    Returns:
        ``fn``, wrapped.
    Raises:
        AssertionError: ``fn`` cannot be called.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise AssertionError("fn must be callable")
    if inspect.isclass(fn):
        return fn
    from .nn import Module

    if isinstance(fn, Module):
        from ._compiled import OptimizedModule

        return OptimizedModule(fn, functools.partial(_disabled, recursive=recursive, reason=reason))

    return _disabled(fn, recursive, reason)


def _disabled(fn: Callable, recursive: bool, reason: str | None) -> Callable:
    @functools.wraps(fn, updated=())
    def disabled(*args: Any, **kwargs: Any) -> Any:
        before, deferring = fusion.thread_state(), _core.defer_ops(False)
        fusion.set_thread_state(fusion.DISABLED if recursive else before & fusion.DISABLED)
        try:
            if before & fusion.COMPILING:
                from .graph.capture import call_outside

                why = f"Skip calling `torch.compiler.disable()`d function (reason: {reason})"
                return call_outside(fn, args, kwargs, why)
            return fn(*args, **kwargs)
        finally:
            fusion.set_thread_state(before)
            _core.defer_ops(deferring)

    return disabled


def allow_in_graph(fn: Any) -> Any:
    """``fn`` as it is: any function may be called. A list or tuple of functions too.

    Args:
        fn: the function or functions.
    Returns:
        ``fn``.
    Raises:
        AssertionError: it cannot be called.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(x) for x in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


nonstrict_trace = assume_constant_result = allow_in_graph


def nested_compile_region(fn: Any = None, **kwargs: Any) -> Any:
    """``fn`` as it is: what repeats uses the same kernels anyway. Also a decorator with arguments."""
    return allow_in_graph if fn is None else allow_in_graph(fn)


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable:
    """Decorator that gives the function back: the original needs no substitute.

    Args:
        original_fn: the function to replace.
        can_constant_fold_through: accepted.
        skip_signature_check: take a function with other arguments, too.
    Returns:
        The decorator.
    Raises:
        TypeError: ``original_fn`` cannot be called, or takes other arguments.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def keep(function: Callable) -> Callable:
        with contextlib.suppress(ValueError):  # some builtins have no signature
            ours, theirs = inspect.signature(function), inspect.signature(original_fn)
            if not skip_signature_check and list(ours.parameters) != list(theirs.parameters):
                raise TypeError(f"Signature mismatch between {original_fn} and {function}: {theirs} != {ours}")
        return function

    return keep


def wrap_numpy(fn: Callable) -> Callable:
    """``fn``, a function of NumPy arrays, as one of tensors."""
    import numpy as np

    from ._core.exchange import from_numpy as from_array
    from .utils import _pytree as pytree

    def to_numpy(x: Any) -> Any:
        return x.numpy() if isinstance(x, _core.Tensor) else x

    def from_numpy(x: Any) -> Any:
        return from_array(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(to_numpy, args), pytree.tree_map(to_numpy, kwargs)
        return pytree.tree_map(from_numpy, fn(*args, **kwargs))

    return wrapped


def is_compiling() -> bool:
    """Whether a compiled function is running on this thread, or ``export`` records a program."""
    if is_scripting():  # a script that asks
        return False
    return bool(fusion.thread_state() & fusion.COMPILING) or is_exporting()


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether this runs while ``export`` records a program."""
    return hasattr(_core.current_mode(), "control_flow")


def cudagraph_mark_step_begin() -> None:
    """Does nothing: results are never overwritten."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted without effect: there are no guards. Returns the old setting, False."""
    return False


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """The guards to keep: there are none, and all may stay."""
    return [True for _ in guard_entries]


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = keep_portable_guards_unsafe
skip_guard_on_globals_unsafe = skip_all_guards_unsafe = keep_portable_guards_unsafe


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """The guards to keep: there are none, and all may stay."""
    return [True for _ in guard_entries]


# ---- stances ---------------------------------------------------------------------------------------------------------

_STANCES = (
    "default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile",
)  # fmt: skip


@dataclass
class _Stance:
    name: str = "default"
    backend: Any = None


_stance = _Stance()


class set_stance(contextlib.ContextDecorator):
    """Set how compiled functions run from now on. As a context manager it applies to the block, as a decorator to the
    function.

    Args:
        stance: ``"default"``; ``"force_eager"``: they run as they are; ``"eager_then_compile"``: their first calls do.
            Of backends that are functions: ``"eager_on_recompile"``: a new graph is not handed to the backend, and run
            as it is; ``"fail_on_recompile"``: it is an error.
        skip_guard_eval_unsafe: accepted; there are no guards.
        force_backend: use this backend in place of the one that was chosen.
    Raises:
        RuntimeError: there is no such stance; another one than the default is given a backend; or a compiled function
            is running.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        global _stance
        if stance not in _STANCES:
            raise RuntimeError(f"invalid taeda.compile stance {stance!r}, should be one of: {', '.join(_STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self._refuse_in_a_region()
        if force_backend is not None:
            backends.lookup_backend(force_backend)
        self.stance, self.before = _Stance(stance, force_backend), _stance
        _stance = self.stance

    def __call__(self, function: Callable) -> Callable:  # type: ignore[override]
        global _stance
        _stance = self.before  # a decorator has no effect yet
        return super().__call__(function)

    def __enter__(self) -> None:
        global _stance
        self._refuse_in_a_region()  # it may have been made outside, as a decorator is
        _stance = self.stance

    def __exit__(self, *exc: Any) -> None:
        global _stance
        _stance = self.before

    def _refuse_in_a_region(self) -> None:
        if fusion.thread_state() & fusion.COMPILING:
            raise RuntimeError("attempt to call set_stance in a taeda.compile region")


# ---- the cache of kernels --------------------------------------------------------------------------------------------


@dataclass
class CacheInfo:
    """The kernels that :func:`save_cache_artifacts` kept, or :func:`load_cache_artifacts` put into the cache: names by
    kind.
    """

    artifacts: dict[str, list[str]] = field(default_factory=dict)


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """The kernels of the user's cache as bytes, for :func:`load_cache_artifacts` on an equal machine; None if it is
    empty."""
    paths = sorted(build.cache_dir().glob("*/*.o"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for path in paths:
            file.write(path, f"{path.parent.name}/{path.name}")
    return (packed.getvalue(), CacheInfo({"kernel": [path.stem for path in paths]})) if paths else None


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Put kernels into the user's cache. They are machine code: take them only from sources that you trust.

    Args:
        serialized_artifacts: the bytes.
    Returns:
        None if the bytes do not come from :func:`save_cache_artifacts`; the cache is then unchanged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(serialized_artifacts)) as file:
            found = {
                name: file.read(name) for name in file.namelist() if re.fullmatch(r"[0-9a-f]{2}/[0-9a-f]{32}\.o", name)
            }
    except zipfile.BadZipFile:
        return None
    for name, blob in found.items():
        build.write_to_cache(build.cache_dir() / name, blob)  # one that is torn is dropped when it is read
    return CacheInfo({"kernel": [name[3:-2] for name in found]})


def describe_cache() -> str:
    """The folder of compiled kernels, and how much is in it."""
    from .graph import tuning

    paths = list(build.cache_dir().glob("*/*.o"))
    size = sum(path.stat().st_size for path in paths)
    return f"{build.cache_dir()}: {len(paths)} kernels, {size / 1e6:.1f} MB, {len(tuning.kept())} choices"


def _main() -> None:
    import argparse

    from .graph import tuning

    parser = argparse.ArgumentParser(
        prog="python -m taeda.compiler", description="The cache of compiled kernels and of measured choices."
    )
    parser.add_argument("--clear", action="store_true", help="remove all of them")
    clear = parser.parse_args().clear
    print(describe_cache())
    if clear:
        for path in (*build.cache_dir().glob("*/*.o"), *tuning.kept()):
            path.unlink(missing_ok=True)
        print("removed")


if __name__ == "__main__":
    _main()
