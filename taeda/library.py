"""Ops of one's own under a name: ``custom_op`` makes one, as do ``define`` and ``impl``, which may come apart.

The stand-in has them as ``torch.ops.<library>.<op>``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._core import Tensor, is_grad_enabled, mode_stack
from ._refuse import refuse
from .autograd.function import Function
from .ops.aten import OpOverload, OpOverloadPacket
from .ops.parts import OfValues
from .ops.registry import OPS
from .overrides import handle_torch_function, has_torch_function

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "register_autocast", "register_autograd",
    "register_fake", "register_kernel", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

_ops: dict[str, CustomOpDef] = {}


def __getattr__(name: str) -> Any:
    if name in ("OpCheckError", "opcheck"):  # what it needs of graphs is not read before
        from . import _opcheck

        return getattr(_opcheck, name)
    if name == "infer_schema":
        from ._schema import infer_schema

        return infer_schema
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _gives_nothing(*args: Any, **kwargs: Any) -> None:
    """The form of the result of an op that only writes: it needs no ``register_fake``."""


class CustomOpDef:
    """A function under a qualified name, ``library::op``, with a derivative if one is registered. :func:`custom_op`
    makes it.

    Args:
        name: ``library::op``.
        fn: the implementation, or None where it comes later.
        mutates_args: names of arguments that it writes into.

    Raises:
        ValueError: the name is not of that form.
        RuntimeError: there is an op of that name; in ``backward``, no derivative was registered.

    Examples:
        >>> @taeda.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * 2
        >>> twice, twice(taeda.tensor(3.0))
        (<CustomOpDef(docs::twice)>, tensor(6.))
    """

    vmap: Callable = staticmethod(Function.vmap)  #: the rule for a batch, as of a Function; none at first
    generate_vmap_rule = False

    def __init__(self, name: str, fn: Callable | None, mutates_args: Any) -> None:
        if name.count("::") != 1:
            raise ValueError(f"custom_op: expected a name like 'library::op', got {name!r}")
        if name.startswith("prim::"):
            raise ValueError("prim is a reserved namespace. Please try creating a library with another name.")
        if name.removeprefix("aten::") in OPS:
            raise RuntimeError(f"custom_op: there is an op {name}; choose another name")
        self._qualname = name
        self._mutates = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
        self._function: Any = None
        self._fake: Callable | None = None
        self._closed = fn is not None and not self._mutates  # made by custom_op: gradients do not see into it
        self._compute: Callable = CustomOpDef._run
        namespace, _, label = name.partition("::")
        self.__name__ = label
        self._overload = OpOverload(OpOverloadPacket(namespace, label, self), "default")
        self._fn: Callable = self._lacking if fn is None else fn
        if fn is not None:
            functools.update_wrapper(self, fn)
            if self._mutates and getattr(fn, "__annotations__", {}).get("return", fn) in (None, "None", type(None)):
                self._fake = _gives_nothing
        _ops[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _lacking(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the 'CPU' backend: it was defined, and no "
            f"implementation for the CPU was given with impl"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for mode in reversed(mode_stack()):
            if hasattr(mode, "custom_op"):
                made = mode.custom_op(self, args, kwargs)
                if made is not NotImplemented:
                    return made
        given = [x for x in (*args, *kwargs.values()) if not isinstance(x, OfValues)]  # the function sees sparse ones
        if has_torch_function(given):
            return handle_torch_function(self._overload, given, *args, **kwargs)
        if self._fake is not None and any(isinstance(x, Tensor) and x.is_meta for x in given):
            return self._sizes(*args, **kwargs)
        return self._compute(self, *args, **kwargs)

    apply = __call__  # as of a Function: vmap runs both by their `vmap`

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if function is None:
            if not self._closed or not is_grad_enabled() or not _any_requires_grad((*args, *kwargs.values())):
                return self._fn(*args, **kwargs)
            function = self._as_function(self._no_derivative, None)
        import inspect

        bound = inspect.signature(self._fn).bind(*args, **kwargs)
        bound.apply_defaults()
        return function.apply(*bound.args, *bound.kwargs.values())

    def _no_derivative(self, ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"Trying to backward through {self._qualname}, for which no derivative was registered; give one with "
            f"register_autograd"
        )

    def register_fake(self, fn: Callable, /) -> Callable:
        """What gives results of the same sizes and dtypes, without values: programs are recorded with it.

        Without it, a recorded program has the ops that the implementation calls.
        """
        self._fake = fn
        return fn

    def _sizes(self, *args: Any, **kwargs: Any) -> Any:
        """Results without values; what is written to counts as written."""
        assert self._fake is not None
        if self._mutates and self._mutates != ("unknown",):
            import inspect

            given = inspect.signature(self._fn).bind(*args, **kwargs).arguments
            for name in self._mutates:
                if given.get(name) is not None:
                    given[name].zero_()
        return self._fake(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Any:
        """Another implementation: kept where it is for the CPU."""

        def decorate(function: Callable) -> Callable:
            kinds = [device_types] if isinstance(device_types, str) else device_types
            if kinds is None or "cpu" in kinds:
                self._fn = function
            return function

        return decorate if fn is None else decorate(fn)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """The derivative: ``backward(ctx, *grads)``, after ``setup_context(ctx, inputs, output)``."""
        self._function = self._as_function(backward, setup_context)

    def _as_function(self, backward: Callable, setup_context: Callable | None) -> Any:
        owner = self

        def forward(*args: Any) -> Any:
            return owner._fn(*args)

        def setup(ctx: Any, inputs: tuple, output: Any) -> None:
            if setup_context is not None:
                setup_context(ctx, inputs, output)

        def back(ctx: Any, *grads: Any) -> Any:
            return backward(ctx, *grads)

        return type(
            f"GeneratedBackwardFor_{self._qualname.replace('::', '_')}_default",
            (Function,),
            {"forward": staticmethod(forward), "setup_context": staticmethod(setup), "backward": staticmethod(back)},
        )

    @property
    def _schema(self) -> str:
        """Its signature, from the type hints of the function."""
        from ._schema import infer_schema

        return infer_schema(self._fn, mutates_args=self._mutates)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Under autocast, cast the tensors that are given to the dtype ``cast_inputs``, and run with autocast off."""
        from .amp import custom_fwd

        self._compute = custom_fwd(CustomOpDef._run, device_type=device_type, cast_inputs=cast_inputs)

    def register_vmap(self, func: Callable | None = None) -> Any:
        """What vmap runs on the whole batch: ``func(info, in_dims, *args)`` gives the result and its ``out_dims``.

        Without it vmap runs the op example by example. Also a decorator.
        """

        def decorate(function: Callable) -> Callable:
            self.vmap = function
            return function

        return decorate if func is None else decorate(func)


class _Namespace:
    """The ops of a library by name; without a name, the libraries."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if not self._name and not name.startswith("__"):
            return _Namespace(name)
        label = f"{self._name}::{name}"
        if label in _ops:
            return _ops[label]._overload.overloadpacket
        if label in OPS:  # declared by a decorator of `taeda.ops.table`
            return OPS[label]
        raise AttributeError(f"there is no op {label}; make it with taeda.library.custom_op")


#: ``ops.my_library.my_op.default``.
ops = _Namespace()


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any = (), device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make a function an op called ``library::op``; also a decorator.

    An op is one step for autograd, ``vmap`` and recorded programs, whatever happens inside: NumPy, a C library, a loop.

    Args:
        name: ``library::op``.
        fn: the function of tensors and other things; as a decorator it is not given.
        mutates_args: names of arguments that it writes into, or ``"unknown"``.
        device_types: accepted.
        schema: accepted; the signature is that of the function.
        tags: accepted.

    Returns:
        A :class:`CustomOpDef`, which is called as the function.

    Raises:
        ValueError: the name is not of that form.
        RuntimeError: there is an op of that name in the library already.

    Examples:
        >>> @taeda.library.custom_op("docs::cube", mutates_args=())
        ... def cube(x: taeda.Tensor) -> taeda.Tensor:
        ...     return taeda.from_numpy(x.detach().numpy() ** 3)
        >>> def keep(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
        >>> def backward(ctx, grad):
        ...     (x,) = ctx.saved_tensors
        ...     return grad * 3 * x**2
        >>> cube.register_autograd(backward, setup_context=keep)
        >>> x = taeda.tensor([2.0], requires_grad=True)
        >>> cube(x).sum().backward()
        >>> x.grad
        tensor([12.])
    """

    def decorate(function: Callable) -> CustomOpDef:
        return CustomOpDef(name, function, mutates_args)

    return decorate if fn is None else decorate(fn)


def _any_requires_grad(args: Any) -> bool:
    return any(x.requires_grad for x in args if isinstance(x, Tensor))


def _find(op: Any) -> Any:
    return op if isinstance(op, CustomOpDef) else _ops.get(op.name() if isinstance(op, OpOverload) else op)


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, allow_override: bool = False, **kwargs: Any
) -> Any:
    """What gives results of an op without values, from tensors without values: programs are recorded with it. Also a
    decorator.

    For an op that was not made here it is accepted and not used.

    Args:
        op: a :class:`CustomOpDef` or its name.
        func: a function of the op's arguments; it gives tensors of the right sizes and dtypes.
        lib: the :class:`Library` that a name without ``::`` is of.
        allow_override: accepted.
        **kwargs: accepted.

    Returns:
        ``func``.

    Examples:
        >>> @taeda.library.custom_op("docs::flat", mutates_args=())
        ... def flat(x: taeda.Tensor) -> taeda.Tensor:
        ...     return taeda.from_numpy(x.numpy().ravel().copy())
        >>> @taeda.library.register_fake("docs::flat")
        ... def _(x):
        ...     return x.new_empty(x.numel())
        >>> flat(taeda.ones(2, 3, device="meta")).shape
        taeda.Size([6])
    """
    found = _find(f"{lib.ns}::{op}" if isinstance(op, str) and lib is not None and "::" not in op else op)

    def decorate(function: Callable) -> Callable:
        return function if found is None else found.register_fake(function)

    return decorate if func is None else decorate(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """The derivative of a :func:`custom_op`.

    Args:
        op: a :class:`CustomOpDef` or its name.
        backward: ``backward(ctx, *grads)`` gives a gradient, or None, for each argument of the op.
        setup_context: ``setup_context(ctx, inputs, output)`` keeps in ``ctx`` what ``backward`` needs.
        lib: accepted.

    Raises:
        NotImplementedError: there is no such op.

    Examples:
        >>> @taeda.library.custom_op("docs::half", mutates_args=())
        ... def half(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x / 2
        >>> taeda.library.register_autograd("docs::half", lambda ctx, grad: grad / 2)
        >>> x = taeda.ones(2, requires_grad=True)
        >>> half(x).sum().backward()
        >>> x.grad
        tensor([0.5000, 0.5000])
    """
    found = _find(op)
    if found is None:
        refuse(f"library.register_autograd({op!r})", "there is no such op: make it with taeda.library.custom_op")
    found.register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Another implementation of a :func:`custom_op`, for some devices; also a decorator.

    Args:
        op: a :class:`CustomOpDef` or its name.
        device_types: ``"cpu"``, several such names, or None for any; others are accepted and not used.
        func: the function.
        lib: accepted.

    Returns:
        ``func``.

    Examples:
        >>> @taeda.library.custom_op("docs::inc", mutates_args=())
        ... def inc(x: taeda.Tensor) -> taeda.Tensor:
        ...     raise NotImplementedError
        >>> _ = taeda.library.register_kernel("docs::inc", "cpu", lambda x: x + 1)
        >>> inc(taeda.tensor(1.0))
        tensor(2.)
    """
    found = _find(op)
    if found is None:
        return func if func is not None else lambda function: function
    return found.register_kernel(device_types, func)


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """What :func:`taeda.vmap` runs on the whole batch of a :func:`custom_op`; also a decorator.

    Without it the op runs example by example.

    Args:
        op: a :class:`CustomOpDef` or its name.
        func: ``func(info, in_dims, *args)`` gives the result and its ``out_dims``.
        lib: accepted.

    Returns:
        ``func``.

    Raises:
        ValueError: ``op`` is of another type.
        NotImplementedError: there is no such op.

    Examples:
        >>> @taeda.library.custom_op("docs::total", mutates_args=())
        ... def total(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x.sum()
        >>> @taeda.library.register_vmap("docs::total")
        ... def _(info, in_dims, x):
        ...     return x.movedim(in_dims[0], 0).flatten(1).sum(1), 0
        >>> taeda.vmap(total)(taeda.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([3., 7.])
    """
    if not isinstance(op, (str, CustomOpDef, OpOverload)):
        raise ValueError(f"register_vmap({op}): got unexpected type for op: {type(op)}")
    found = _find(op)
    if found is None:
        refuse(f"library.register_vmap({op!r})", "there is no such op: make it with taeda.library.custom_op")
    return found.register_vmap(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, **kwargs: Any) -> Any:
    """Accepted: classes and modes see custom ops through ``__torch_function__``."""
    return func if func is not None else lambda function: function


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """The dtype that a :func:`custom_op` casts tensors to under autocast; inside, autocast is off.

    Args:
        op: a :class:`CustomOpDef` or its name.
        device_type: ``"cpu"``.
        cast_inputs: the dtype.
        lib: accepted.

    Examples:
        >>> @taeda.library.custom_op("docs::same", mutates_args=())
        ... def same(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x.clone()
        >>> taeda.library.register_autocast("docs::same", "cpu", taeda.bfloat16)
        >>> with taeda.autocast("cpu", dtype=taeda.bfloat16):
        ...     same(taeda.ones(2)).dtype
        taeda.bfloat16
    """
    found = _find(op)
    if found is None:
        refuse(f"library.register_autocast({op!r})", "there is no such op: make it with taeda.library.custom_op")
    found.register_autocast(device_type, cast_inputs)


#: Keys under which an implementation is taken: for the CPU, or for any device.
_KEYS = {"", "cpu", "default", "autograd", "compositeexplicitautograd", "compositeimplicitautograd"}


class Library:
    """Ops under one name, defined here or given implementations: the older form of :func:`custom_op`.

    Args:
        ns: the name before ``::``.
        kind: ``"DEF"`` or ``"FRAGMENT"`` to define ops, ``"IMPL"`` to give implementations.
        dispatch_key: for which devices implementations are, such as ``"CPU"``; any if empty.

    Raises:
        ValueError: the kind is another.

    Examples:
        >>> lib = taeda.library.Library("docs_lib", "DEF")
        >>> lib.define("double(Tensor x) -> Tensor")
        'double'
        >>> lib.impl("double", lambda x: x * 2, "CPU")
        >>> taeda.library.ops.docs_lib.double(taeda.tensor(2.0))
        tensor(4.)
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """An op of the name in ``schema``, without an implementation yet; gives the name."""
        name = schema.partition("(")[0].strip().partition(".")[0]
        _define(f"{self.ns}::{name}")
        return name

    def impl(
        self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Let ``fn`` be what an op does, if ``dispatch_key`` is for the CPU or for any device."""
        name = str(getattr(op_name, "__name__", op_name)).rpartition("::")[2].partition(".")[0]
        _implement(f"{self.ns}::{name}", dispatch_key or self.dispatch_key, fn)

    def _register_fake(self, op_name: str, fn: Callable, _stacklevel: int = 1, **options: Any) -> None:
        register_fake(op_name, fn, lib=self)


def _define(name: str) -> None:
    if name not in _ops:
        CustomOpDef(name, None, ())


def _implement(name: str, key: str, function: Callable) -> None:
    if name in _ops and key.lower() in _KEYS:  # what is given for PyTorch's own ops is not used
        _ops[name]._fn = function
    elif name in _ops and key.lower() == "meta":
        _ops[name].register_fake(function)


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """An op ``library::op``, without an implementation yet; the result is a decorator of one.

    Args:
        qualname: ``library::op``, or with ``lib`` its last part.
        schema: its arguments and results, such as ``"(Tensor x) -> Tensor"``.
        lib: a :class:`Library`.
        tags: accepted.

    Returns:
        A decorator of an implementation.

    Raises:
        ValueError: the name is not of that form, or there is no schema.

    Examples:
        >>> @taeda.library.define("docs::less", "(Tensor x) -> Tensor")
        ... def less(x):
        ...     return x - 1
        >>> taeda.library.ops.docs.less(taeda.tensor(2.0))
        tensor(1.)
    """
    if schema is None or callable(schema):
        raise ValueError(f"define: expected a name like 'library::op' and a schema, got {qualname!r} and {schema!r}")
    _define(qualname if lib is None or "::" in qualname else f"{lib.ns}::{qualname}")

    def decorate(function: Callable) -> Callable:
        _implement(qualname, "", function)
        return function

    return decorate


def impl(qualname: Any, types: Any = "", func: Any = None, *, lib: Any = None) -> Any:
    """Let a function be what an op does on some devices; also a decorator, and as ``impl(lib, name, key)``.

    Args:
        qualname: ``library::op``, or with ``lib`` its last part.
        types: ``"cpu"``, several such names, or empty for any; ``"meta"`` is as :func:`register_fake`; others are not
            used.
        func: the function.
        lib: a :class:`Library`.

    Returns:
        ``func``.

    Examples:
        >>> _ = taeda.library.define("docs::more", "(Tensor x) -> Tensor")
        >>> _ = taeda.library.impl("docs::more", "cpu", lambda x: x + 1)
        >>> taeda.library.ops.docs.more(taeda.tensor(2.0))
        tensor(3.)
    """
    if isinstance(qualname, Library):  # the older form
        lib, qualname, types, func = qualname, types, func or qualname.dispatch_key, None
    name = qualname if lib is None or "::" in qualname else f"{lib.ns}::{qualname}"

    def decorate(function: Callable) -> Callable:
        for key in [types] if isinstance(types, str) else types:
            _implement(name, key, function)
        return function

    return decorate if func is None else decorate(func)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Refused: there is no Triton."""
    refuse("library.wrap_triton", "there is no GPU")


def triton_op(name: str, fn: Callable | None = None, /, *, mutates_args: Any = (), **kwargs: Any) -> Any:
    """As :func:`custom_op`. There is no Triton: the function must do without.

    Args:
        name: ``library::op``.
        fn: the function; as a decorator it is not given.
        mutates_args: names of arguments that it writes into.
        **kwargs: accepted.

    Returns:
        A :class:`CustomOpDef`.

    Examples:
        >>> op = taeda.library.triton_op("docs::minus", lambda x: -x)
        >>> op(taeda.tensor(1.0))
        tensor(-1.)
    """
    return custom_op(name, fn, mutates_args=mutates_args)
