"""Custom ops with a name: ``custom_op`` makes one, and so do ``define`` and ``impl`` in separate steps.

The stand-in has them as ``torch.ops.<library>.<op>``.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ._core import Tensor, bump, is_recorded, mode_stack, record_nothing, restore_grad_mode
from ._core.custom import CustomOp, share_memory
from ._refuse import refused_function
from ._schema import Schema, checked, infer_schema, read_schema, takes
from .amp.autocast_mode import autocast, cast_all, is_autocast_enabled
from .aten import DECLARED, OpOverload, OpOverloadPacket
from .autograd.function import Function, _context_class, _own_outputs
from .ops.parts import OfValues
from .ops.registry import OPS
from .overrides import handle_torch_function, has_torch_function

__all__ = [
    "CustomOpDef", "Library", "bind", "custom_op", "define", "get_ctx", "impl", "impl_abstract", "infer_schema",
    "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch",
    "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

_log = logging.getLogger(__name__)
_ops: dict[str, CustomOpDef] = DECLARED
#: Implementations of ops that are not defined yet, by name: pairs of a key and a function.
_waiting: dict[str, list[tuple[str, Callable]]] = {}


#: What `get_ctx` gives, by thread, within a function of ``register_fake``.
_fake = threading.local()


class EffectType(enum.Enum):
    """What an op does besides giving results: ``ORDERED`` ones are kept in programs, in their order."""

    ORDERED = "Ordered"


class FakeImplCtx:
    """What a function of ``register_fake`` may ask for; :func:`get_ctx` gives it."""

    def __init__(self, size: Callable) -> None:
        self._size = size

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size of the result that depends on values.

        Args:
            min: the least that it can be.
            max: the most that it can be; None: there is no limit.

        Returns:
            The size, a number that a program knows by name.

        Raises:
            ValueError: the range is not one of sizes.
        """
        if not (isinstance(min, int) and (max is None or isinstance(max, int))):
            raise ValueError(f"new_dynamic_size(min={min}, max={max}): expected numbers that do not depend on sizes")
        if min < 0:
            raise ValueError(f"new_dynamic_size(min={min}): a size is not negative")
        return self._size(min, max)

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> Any:
        """The older name of :meth:`new_dynamic_size`."""
        warnings.warn(
            "`create_unbacked_symint` is deprecated, please use `new_dynamic_size` instead", FutureWarning, stacklevel=2
        )
        return self.new_dynamic_size(min=min, max=max)


@contextlib.contextmanager
def fake_context(context: Callable) -> Iterator[None]:
    """Within it, :func:`get_ctx` gives what ``context()`` gives."""
    before = getattr(_fake, "context", None)
    _fake.context = context
    try:
        yield
    finally:
        _fake.context = before


def get_ctx() -> FakeImplCtx | None:
    """What a function of ``register_fake`` asks for a size that depends on values.

    Returns:
        An object with ``new_dynamic_size(min=0, max=None)``; None outside such functions.

    Raises:
        RuntimeError: the op was called on device meta, where such sizes are not known.

    Examples:
        >>> @taeda.library.custom_op("docs::positive", mutates_args=())
        ... def positive(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x[x > 0]
        >>> @positive.register_fake
        ... def _(x):
        ...     return x.new_empty(taeda.library.get_ctx().new_dynamic_size(max=x.numel()))
    """
    context = getattr(_fake, "context", None)
    return None if context is None else context()


def __getattr__(name: str) -> Any:
    if name in ("OpCheckError", "opcheck"):  # the parts about graphs are imported only when needed
        from . import _opcheck

        return getattr(_opcheck, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _gives_nothing(*args: Any, **kwargs: Any) -> None:
    """The form of the result of an op that only writes: it needs no ``register_fake``."""


class CustomOpDef(CustomOp):
    """A function under a qualified name, ``library::op``, with a derivative if one is registered.

    Args:
        name: ``"library::op"``.
        fn: what computes it on the CPU; None: it is given later.
        mutates_args: names of arguments that it writes to.
        schema: its signature, by which arguments are checked; None: they are not.
        tags: what is said of it.

    Raises:
        ValueError: the name is not of that form, or its library is reserved.
        RuntimeError: there is an op of that name.

    Examples:
        >>> @taeda.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * 2
        >>> twice, twice(taeda.tensor(3.0))
        (<CustomOpDef(docs::twice)>, tensor(6.))
    """

    vmap: Callable = staticmethod(Function.vmap)  #: the rule for a batch, as of a Function; none at first
    generate_vmap_rule = False
    #: The result of a call whose arguments require grad: an error when it is differentiated, at once, or constants.
    without_derivative = "later"
    #: Whether it stands for the ops that its implementation calls: a graph has these.
    composite = False
    #: Where a derivative can be given, and what else can be said of an op without one.
    _gives_derivative, _says_none = (
        "register_autograd or bind(backward=...)",
        (", or bind(no_grad=True): then nothing that it gives requires grad"),
    )

    def __init__(
        self, name: str, fn: Callable | None, mutates_args: Any, schema: str | None = None, tags: Sequence = ()
    ) -> None:
        if name.count("::") != 1:
            raise ValueError(f"custom_op: expected a name like 'library::op', got {name!r}")
        if name.startswith("prim::"):
            raise ValueError("prim is a reserved namespace. Please try creating a library with another name.")
        if name.removeprefix("aten::") in OPS:
            raise RuntimeError(f"custom_op: there is an op {name}; choose another name")
        self._qualname = name
        self._read: Schema | None = None if schema is None else read_schema(schema)
        self._mutates = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
        self.tags = list(tags)
        self._function: Any = None
        self._refusing: Any = None  # in its place where none was registered: an error when it is differentiated
        self._fake: Callable | None = None
        self.closed = fn is not None and not self._mutates  # made by custom_op: gradients do not see into it
        self._under_autocast: dict[str, Callable] = {}  # what a call does under the autocast of a device
        namespace, _, label = name.partition("::")
        self.__name__ = label
        self._overload = OpOverload(OpOverloadPacket(namespace, label, self), "default")
        if fn is not None:
            functools.update_wrapper(self, fn)
            nothing = (None, "None", type(None))
            gives = getattr(fn, "__annotations__", {}).get("return", fn) if self._read is None else self._read.returns
            if self._mutates and (gives in nothing if self._read is None else not gives):
                self._fake = _gives_nothing
        #: What ``custom_op`` was given, what was registered in its place by type of device, and which of it is off.
        self._first = fn
        self._by_device: dict[str | None, Callable] = {}
        self._disabled: set[str | None] = set()
        self._use(fn)
        _ops[name] = self
        for key, function in _waiting.pop(name, ()):
            _implement(name, key, function)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __deepcopy__(self, memo: dict) -> CustomOpDef:
        return self

    def __reduce__(self) -> tuple:
        """An op is found by its name again, where the program that reads it has declared it."""
        return _declared, (self._qualname,)

    def _use(self, fn: Callable | None) -> None:
        """Compute the op by ``fn`` on the CPU; None removes the function."""
        self._fn: Callable = self._lacking if fn is None else fn
        if fn is None or self._read is None or self._mutates:
            self.set_direct(None, (), 0)
            return
        kinds, required = takes(self._read), [a for a in self._read.arguments if a.default is inspect.Parameter.empty]
        if any(a.keyword_only for a in required):
            self.set_direct(None, (), 0)
            return
        self.set_direct(fn, kinds, self._fewest(fn, len(required)))

    def _fewest(self, fn: Callable, required: int) -> int:
        """How many arguments a call gives at least that ``fn`` can take as it is: its own defaults are the schema's."""
        assert self._read is not None
        given = [a.default for a in self._read.arguments if not a.keyword_only]
        try:
            own = [p.default for p in inspect.signature(fn).parameters.values()]
        except (TypeError, ValueError):
            return len(given)
        agree = len(own) >= len(given) and all(a == b for a, b in zip(given[required:], own[required:], strict=False))
        return required if agree else len(given)

    def _lacking(self, *args: Any, **kwargs: Any) -> Any:
        if "cpu" in _fallbacks:
            return _fallbacks["cpu"](self._overload, *args, **kwargs)
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the 'CPU' backend: it was defined, and no "
            f"implementation for the CPU was given with impl"
        )

    def dispatch(self, args: tuple, kwargs: dict) -> Any:
        """A call that something else may see first: a mode, a subclass, a derivative."""
        given = [x for x in (*args, *kwargs.values()) if not isinstance(x, OfValues)]  # the function sees sparse ones
        modes = [mode for mode in reversed(mode_stack()) if hasattr(mode, "custom_op")]
        if not modes and has_torch_function(given):
            return handle_torch_function(self._overload, given, *args, **kwargs)
        if self._read is not None:
            args, kwargs = checked(self._qualname, self._read, args, kwargs)
        leaves = _leaves((*args, *kwargs.values()))
        for kind, function in self._under_autocast.items():
            if any(isinstance(x, Tensor) and x.device.type == kind for x in leaves) and is_autocast_enabled(kind):
                return function(*args, **kwargs)
        for mode in modes:
            made = mode.custom_op(self, args, kwargs)
            if made is not NotImplemented:
                return made
        if modes and has_torch_function(given):
            return handle_torch_function(self._overload, given, *args, **kwargs)
        if self._fake is not None and any(isinstance(x, Tensor) and x.is_meta for x in leaves):
            with fake_context(self._no_context):
                return self._sizes(*args, **kwargs)
        if self.closed and self._fake is None and any(isinstance(x, Tensor) and x.is_meta for x in leaves):
            return self._compute_on_meta(args, kwargs)
        return self._run(*args, **kwargs)

    def _compute_on_meta(self, args: tuple, kwargs: dict) -> Any:
        """The implementation where there are no values: what is written in ops gives sizes, other code cannot."""
        try:
            return self._run(*args, **kwargs)
        except (TypeError, NotImplementedError) as error:
            raise RuntimeError(
                f"There was no fake impl registered for {self!r}, and its implementation does not run on device meta, "
                f"which has no values: {error}. Say which sizes the result has with register_fake"
            ) from error

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        """A call; as of a Function: vmap runs both by their ``vmap``."""
        return self(*args, **kwargs)

    def _complete(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of a call with defaults: all that go by position, then those by name alone."""
        if self._read is None:
            bound = inspect.signature(self._fn).bind(*args, **kwargs)
            bound.apply_defaults()
            return bound.args, bound.kwargs
        places, named = list(args), {}
        for i, a in enumerate(self._read.arguments):
            if a.keyword_only:
                named[a.name] = kwargs.get(a.name, a.default)
            elif i >= len(args):
                places.append(kwargs.get(a.name, a.default))
        return tuple(places), named

    def _without_defaults(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of a call without those that have their defaults: at the end, and by name."""
        places, named = self._complete(args, kwargs)
        if self._read is None:
            return places, named
        by_place = [a for a in self._read.arguments if not a.keyword_only]
        count = len(places)
        while count and _is_default(places[count - 1], by_place[count - 1].default):
            count -= 1
        defaults = {a.name: a.default for a in self._read.arguments if a.keyword_only}
        return places[:count], {k: x for k, x in named.items() if not _is_default(x, defaults[k])}

    def _by_name(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """The arguments of a call by name, with defaults."""
        places, named = self._complete(args, kwargs)
        if self._read is not None:
            names = [a.name for a in self._read.arguments if not a.keyword_only]
        else:
            names = list(inspect.signature(self._fn).parameters)
        return {**dict(zip(names, places, strict=False)), **named}

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self._mutates:
            return self._write(args, kwargs)
        if self._function is None and not self.closed:
            return self._fn(*args, **kwargs)
        leaves = _leaves((*args, *kwargs.values()))
        if not is_recorded() or not any(x.requires_grad for x in leaves if isinstance(x, Tensor)):
            return self._apart(*self._complete(args, kwargs))
        args, kwargs = self._complete(args, kwargs)
        if self._function is None and self.without_derivative != "later":
            if self.without_derivative == "error":
                self._refuse_grad(leaves)
            return self._apart(args, kwargs)
        if self._function is None and self._refusing is None:
            self._refusing = self._as_function(self._no_derivative, None)
            self._differentiate_by(self._refusing)
        function = self._function or self._refusing
        if self._is_plain():
            return function.apply(*args)
        flat, form = _flattened(args, kwargs)
        return function.apply(*flat, form)

    def _is_plain(self) -> bool:
        """Whether every argument is positional and no list, as in a Function."""
        return self._read is not None and not any(a.keyword_only or a.listed for a in self._read.arguments)

    def _apart(self, args: tuple, kwargs: dict) -> Any:
        """The implementation, whose ops are not recorded where the op is closed."""
        if not self.closed:
            return self._fn(*args, **kwargs)
        setting = record_nothing()
        try:
            result = self._fn(*args, **kwargs)
        finally:
            restore_grad_mode(setting)
        return self.checked((*args, *kwargs.values()), result)

    def checked(self, args: tuple, result: Any) -> Any:
        """``result`` of the implementation, if the op may return it.

        Args:
            args: the arguments of the call.
            result: what the implementation gave.

        Returns:
            ``result``.

        Raises:
            RuntimeError: it is not of the types in the schema, is an argument, or has the memory of one.
        """
        if self._read is not None:
            count = len(self._read.returns)
            if count == 1 and self._read.returns[0].type == "Tensor" and not isinstance(result, Tensor):
                raise RuntimeError(
                    f"{self._qualname}(): its schema says that it gives a Tensor, its implementation gave "
                    f"{type(result).__name__}"
                )
            if count > 1 and not (isinstance(result, (tuple, list)) and len(result) == count):
                raise RuntimeError(
                    f"{self._qualname}(): its schema says that it gives {count} values, its implementation gave "
                    f"{f'{len(result)} values' if isinstance(result, (tuple, list)) else type(result).__name__}"
                )
        if self.closed:
            made = [x for x in _leaves([result]) if isinstance(x, Tensor)]
            others = [x for x in _leaves(args) if isinstance(x, Tensor)]
            for i, x in enumerate(made):
                if any(share_memory(x, y) for y in (*others, *made[:i])):
                    raise RuntimeError(
                        f"{self._qualname}(): a result of its implementation is an argument or another result, or has "
                        f"the memory of one. Callers may write to what an op gives: return a clone, as in "
                        f"`return x.clone()`, or name what is written to in mutates_args"
                    )
        return result

    def _write(self, args: tuple, kwargs: dict) -> Any:
        """An op that writes to its arguments: these writes count."""
        if self.without_derivative == "error" and is_recorded():
            self._refuse_grad(_leaves((*args, *kwargs.values())))
        result = self._fn(*args, **kwargs)
        values = self._by_name(args, kwargs)
        written = values if self._mutates == ("unknown",) else self._mutates
        for x in _leaves([values.get(name) for name in written]):
            if isinstance(x, Tensor) and not x.is_inference():
                bump(x)
        return result

    def _refuse_grad(self, leaves: list) -> None:
        if any(isinstance(x, Tensor) and x.requires_grad for x in leaves):
            mend = "use no_grad()" if self._mutates else f"give one with {self._gives_derivative}"
            raise RuntimeError(
                f"{self._qualname}(): an argument requires grad, and there is no derivative: {mend}; or detach the "
                f"argument{self._says_none}"
            )

    def _no_derivative(self, ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"Trying to backward through {self._qualname}, for which no derivative was registered; give one with "
            f"register_autograd"
        )

    def register_fake(self, fn: Callable, /) -> Callable:
        """Register a function that gives results of the right sizes and dtypes, without values, to record programs.

        Without it, a recorded program has the ops that the implementation calls.
        """
        self._fake = fn
        return fn

    def _no_context(self) -> Any:
        raise RuntimeError(
            f"{self._qualname}: the sizes of its result depend on values, and on device meta there are none; export "
            f"gives such sizes a name"
        )

    def _sizes(self, *args: Any, **kwargs: Any) -> Any:
        """Results without values; what is written to counts as written."""
        assert self._fake is not None
        if self._mutates and self._mutates != ("unknown",):
            given = self._by_name(args, kwargs)
            for name in self._mutates:
                if given.get(name) is not None:
                    given[name].zero_()
        return self._fake(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Any:
        """Another implementation, for devices of these types (None: all). One for the CPU comes before one for all.

        Args:
            device_types: a type of devices, such as ``"cpu"``, several, or None.
            fn: the function; without it, a decorator.

        Returns:
            ``fn``.

        Raises:
            RuntimeError: there is no device of that type.
        """
        kinds = _device_types(device_types)

        def decorate(function: Callable) -> Callable:
            self._by_device |= dict.fromkeys(kinds, function)
            self._use_registered()
            return function

        return decorate if fn is None else decorate(fn)

    def _use_registered(self) -> None:
        """Compute the op by what is registered for the CPU, or by the first function where that is off."""
        for kind in ("cpu", None):
            if kind in self._by_device:
                self._use(self._first if kind in self._disabled else self._by_device[kind])
                return

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """In a ``with`` block, turn what :meth:`register_kernel` gave for ``device_type`` off, or on again.

        Where it is off, the function that :func:`custom_op` was given runs. A warning is logged if nothing is
        registered for ``device_type``, or if it is as asked already.

        Args:
            device_type: a type of devices, such as ``"cpu"``.
            enabled: False to turn it off.

        Examples:
            >>> @taeda.library.custom_op("docs::plus", mutates_args=())
            ... def plus(x: taeda.Tensor) -> taeda.Tensor:
            ...     return x + 1
            >>> _ = plus.register_kernel("cpu", lambda x: x + 10)
            >>> with plus.set_kernel_enabled("cpu", enabled=False):
            ...     plus(taeda.zeros(1))
            tensor([1.])
            >>> plus(taeda.zeros(1))
            tensor([10.])
        """
        was_on = device_type not in self._disabled
        verb = "enable" if enabled else "disable"
        if device_type not in self._by_device:
            _log.warning("Attempted to %s the kernel for %s: none is registered for it.", verb, device_type)
        if enabled == was_on:
            _log.warning("Attempted to %s the kernel for %s: it was already %sd.", verb, device_type, verb)
        self._enable(device_type, enabled)
        try:
            yield
        finally:
            self._enable(device_type, was_on)

    def _enable(self, device_type: str, enabled: bool) -> None:
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        self._use_registered()

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """The derivative: ``backward(ctx, *grads)``, after ``setup_context(ctx, inputs, output)``.

        Where there are arguments by name alone, ``setup_context`` is given those as ``keyword_only_inputs``. The
        gradient of a list of tensors is a list.

        Args:
            backward: gives the gradients by the arguments, one each or None.
            setup_context: keeps what ``backward`` needs.

        Raises:
            RuntimeError: the op writes to its arguments.
            NotImplementedError: a tensor goes by name alone.
        """
        if self._mutates:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self!r} with schema "
                f"{self._qualname}{self._schema}. Please create a functional operator and register an autograd formula "
                f"for that."
            )
        if self._read is not None and any(a.keyword_only and a.kind == "Tensor" for a in self._read.arguments):
            raise NotImplementedError(
                f"{self._qualname}: a tensor that goes by name alone has no gradient; let it go by position. Got: "
                f"{self._read.text}"
            )
        self._function = self._as_function(backward, setup_context)
        self._differentiate_by(self._function)

    def _differentiate_by(self, function: Any) -> None:
        """Let calls whose arguments require grad go straight to ``function``, where their forms allow it."""
        if self._is_plain():
            self.set_derivative(_context_class(function), function.setup_context, _own_outputs)

    def _forward(self, *args: Any) -> Any:
        return self._apart(args, {}) if self.direct is None else self.compute(*args)

    def _as_function(self, backward: Callable, setup_context: Callable | None) -> Any:
        owner, name = self, f"GeneratedBackwardFor_{self._qualname.replace('::', '_')}_default"
        if self._is_plain():
            plain = {
                "forward": staticmethod(self._forward), "setup_context": staticmethod(_by_place(setup_context)),
                "backward": staticmethod(backward),
            }  # fmt: skip
            return type(name, (Function,), plain)

        def forward(*given: Any) -> Any:
            args, kwargs = _restored(given)
            return owner.checked(args, owner._fn(*args, **kwargs))

        def setup(ctx: Any, inputs: tuple, output: Any) -> None:
            if setup_context is not None:
                args, kwargs = _restored(inputs)
                more = {"keyword_only_inputs": kwargs} if kwargs else {}
                setup_context(ctx=ctx, inputs=args, output=output, **more)
            ctx._form = inputs[-1]

        def back(ctx: Any, *grads: Any) -> Any:
            counts, names = ctx._form
            made = _flat_gradients(owner._qualname, backward(ctx, *grads), counts)
            expected = len(ctx.needs_input_grad) - 1 - len(names)
            if len(made) != expected:
                raise RuntimeError(
                    f"{owner._qualname}: its derivative returned an incorrect number of gradients (expected "
                    f"{expected}, got {len(made)})"
                )
            return (*made, *(None,) * len(names), None)

        made = {"forward": staticmethod(forward), "setup_context": staticmethod(setup), "backward": staticmethod(back)}
        return type(name, (Function,), made)

    @property
    def _schema(self) -> str:
        """Its signature, as it was given or from the type hints of the function."""
        return self._read.text if self._read is not None else infer_schema(self._fn, mutates_args=self._mutates)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Any:
        """Accepted, as in :func:`register_torch_dispatch`.

        Args:
            torch_dispatch_class: a class of tensors or of modes.
            fn: the function; without it, a decorator.

        Returns:
            ``fn``.
        """
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> Callable:
        """Under autocast, cast the tensors that are given to the dtype ``cast_inputs``, and run with autocast off.

        Args:
            device_type: the device whose autocast is meant. The first dtype that is registered for it stays.
            cast_inputs: the dtype.

        Returns:
            The function that does so.

        Raises:
            ValueError: there is no autocast for that device.
        """
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type == "meta":
            raise ValueError(f"Device type '{device_type}' does not support autocast.")

        def cast(*args: Any, **kwargs: Any) -> Any:
            with autocast(device_type, enabled=False):
                return self(*cast_all(args, device_type, cast_inputs), **cast_all(kwargs, device_type, cast_inputs))

        self._under_autocast.setdefault(device_type, cast)
        return cast

    def register_effect(self, effect: EffectType | None) -> None:
        """Say whether the op does more than give results, so that programs keep calls whose results are not used.

        Args:
            effect: ``EffectType.ORDERED``; None: it does not.
        """
        from .fx import node

        if effect is None:
            node.unmark(self._overload)
        else:
            node.has_side_effect(self._overload)

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Register a rule for whole batches: ``func(info, in_dims, *args)`` gives the result and its ``out_dims``.

        Arguments at the end that have their defaults are left out of ``args`` and ``in_dims``, as in PyTorch. Without a
        rule vmap runs the op example by example. Also a decorator.
        """

        def decorate(function: Callable) -> Callable:
            self.vmap = function
            return function

        return decorate if func is None else decorate(func)


def _is_default(x: Any, default: Any) -> bool:
    return x is default or (type(x) is type(default) and not isinstance(x, Tensor) and x == default)


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


_DEVICES = frozenset(
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia "
    "privateuseone".split()
)


def _device_types(device_types: Any) -> list[str | None]:
    """Types of devices that are given as a name, as several, or as None for all: a list."""
    if device_types is None:
        return [None]
    kinds = [device_types] if isinstance(device_types, str) else list(device_types)
    for kind in kinds:
        if not isinstance(kind, str) or kind.partition(":")[0] not in _DEVICES:
            raise RuntimeError(f"Expected one of {', '.join(sorted(_DEVICES))} device type, got {kind!r}")
    return kinds


def _checked_tags(tags: Any) -> list:
    """``tags``, one or several, as a list.

    Raises:
        TypeError: one is no ``torch.Tag``.
    """
    import enum

    found = [] if tags is None else list(tags) if isinstance(tags, (list, tuple, set, frozenset)) else [tags]
    for tag in found:
        if not isinstance(tag, enum.Enum):
            raise TypeError(f"tags: expected a Tag or a sequence of them, got {tag!r}")
    return found


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any, device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make a function an op called ``library::op``; also a decorator.

    A call checks its arguments by the signature. Gradients do not see into the function: :func:`register_autograd`
    gives a derivative. ``vmap`` runs it example by example, or by :func:`register_vmap`; on device meta and in programs
    that are recorded it goes by :func:`register_fake`.

    Args:
        name: ``"library::op"``.
        fn: the function. It gives new tensors, no argument and no view of one.
        mutates_args: names of arguments that it writes into, or ``"unknown"`` for all tensors.
        device_types: types of devices, such as ``"cpu"``, that the function is for; None: all.
        schema: the signature, as ``"(Tensor x, float s) -> Tensor"``; None: from the function's type hints.
        tags: what is said of the op; kept in its ``tags``.

    Returns:
        The op; without ``fn``, a decorator that gives it.

    Raises:
        ValueError: a type hint is missing, or ``schema`` does not go with ``mutates_args``.
        RuntimeError: the schema cannot be read, or there is no such device.

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
    kinds, kept = _device_types(device_types), _checked_tags(tags)

    def decorate(function: Callable) -> CustomOpDef:
        read = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        declared = read_schema(read).mutated
        if schema is not None and mutates_args != "unknown" and set(declared) != set(mutates_args):
            raise ValueError(
                f"custom_op: mutates_args is {set(mutates_args) or '()'}, and by its schema {schema} the op writes to "
                f"{set(declared) or 'nothing'}; let both say the same"
            )
        made = CustomOpDef(name, function, mutates_args, read, kept)
        made._by_device = dict.fromkeys(kinds, function)
        if "cpu" not in kinds and None not in kinds:
            made._use(None)
        return made

    return decorate if fn is None else decorate(fn)


def _leaves(args: Sequence) -> list:
    """``args``, with what is in lists and tuples in their place."""
    return [x for a in args for x in (a if isinstance(a, (list, tuple)) else (a,))]


def _by_place(setup_context: Callable | None) -> Callable:
    """``setup_context`` as a function of ctx, inputs and output, in this order."""
    if setup_context is None:
        return lambda ctx, inputs, output: None
    try:
        names = list(inspect.signature(setup_context).parameters)
    except (TypeError, ValueError):
        names = []
    if names[:3] == ["ctx", "inputs", "output"] or sorted(names) != ["ctx", "inputs", "output"]:
        return setup_context
    return lambda ctx, inputs, output: setup_context(ctx=ctx, inputs=inputs, output=output)


def _flattened(args: tuple, kwargs: dict) -> tuple[list, tuple]:
    """Arguments as a Function takes them, those in lists one by one, and what :func:`_restored` needs to know.

    That is, of each argument that goes by position, how many there are if it is a list, else -1, or None where none is
    one; and the names of the others.
    """
    if not any(isinstance(a, list) for a in args):
        return [*args, *kwargs.values()], (None, tuple(kwargs))
    counts = tuple(len(a) if isinstance(a, list) else -1 for a in args)
    return [*_leaves(args), *kwargs.values()], (counts, tuple(kwargs))


def _restored(given: tuple) -> tuple[tuple, dict]:
    """The arguments that :func:`_flattened` was given; the last of ``given`` is their form."""
    (counts, names), end = given[-1], len(given) - 1 - len(given[-1][1])
    kwargs = dict(zip(names, given[end:-1], strict=True)) if names else {}
    if counts is None:
        return given[:end], kwargs
    rest = iter(given[:end])
    return tuple(next(rest) if n < 0 else [next(rest) for _ in range(n)] for n in counts), kwargs


def _flat_gradients(name: str, made: Any, counts: tuple | None) -> tuple:
    """Gradients of arguments, those of lists one by one."""
    made = made if isinstance(made, tuple) else tuple(made) if isinstance(made, list) and counts is None else (made,)
    if counts is None:
        return made
    if len(made) != len(counts):
        raise RuntimeError(f"{name}: expected the derivative to give {len(counts)} gradients, got {len(made)}")
    flat: list = []
    for g, n in zip(made, counts, strict=True):
        if n >= 0 and g is not None and (not isinstance(g, (list, tuple)) or len(g) != n):
            raise RuntimeError(f"{name}: expected a list of {n} gradients for a list of {n} tensors, got {g!r:.80}")
        flat.extend((g,) if n < 0 else (None,) * n if g is None else g)
    return tuple(flat)


def _find(op: Any) -> Any:
    if isinstance(op, (OpOverload, OpOverloadPacket)):
        op = op.name() if isinstance(op, OpOverload) else op._qualified_op_name
    return op if isinstance(op, CustomOpDef) else _ops.get(op)


def _declared(name: str) -> CustomOpDef:
    found = _find(name)
    if found is None:
        raise AttributeError(f"there is no op {name}: import what declares it before it is loaded")
    return found


def _named(op: Any, what: str, lib: Any) -> CustomOpDef:
    """The op of a name.

    Raises:
        AttributeError: there is none.
    """
    found = _find(f"{lib.ns}::{op}" if isinstance(op, str) and lib is not None and "::" not in op else op)
    if found is None:
        raise AttributeError(f"library.{what}: there is no op {op!r}; make it with taeda.library.custom_op or define")
    return found


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, allow_override: bool = False, **kwargs: Any
) -> Any:
    """Register a function that gives an op's results without values, from tensors without values, to record programs.
    Also a decorator.

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
        backward: gives the gradients by the arguments, one each or None: ``backward(ctx, *grads)``.
        setup_context: keeps what ``backward`` needs: ``setup_context(ctx, inputs, output)``.
        lib: accepted.

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
    found = _named(op, "register_autograd", lib)
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
    """Register what :func:`taeda.vmap` runs on the whole batch of a :func:`custom_op`; also a decorator.

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
    return _named(op, "register_vmap", lib).register_vmap(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, **kwargs: Any) -> Any:
    """Accepted: classes and modes see custom ops through ``__torch_function__``.

    Args:
        op: a :class:`CustomOpDef` or its name.
        torch_dispatch_class: a class of tensors or of modes.
        func: the function; without it, a decorator.
        **kwargs: accepted.

    Returns:
        ``func``.

    Examples:
        >>> taeda.library.register_torch_dispatch("docs::any", object, len) is len
        True
    """
    return func if func is not None else lambda function: function


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """The dtype that a :func:`custom_op` casts tensors to under autocast: see :meth:`CustomOpDef.register_autocast`.

    Args:
        op: a :class:`CustomOpDef` or its name.
        device_type: the device whose autocast is meant.
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
    found = _named(op, "register_autocast", lib)
    found.register_autocast(device_type, cast_inputs)


#: Keys under which an implementation is taken: for the CPU, or for any device.
_KEYS = {"", "cpu", "default", "compositeexplicitautograd", "compositeimplicitautograd", "autograd", "autogradcpu"}
#: Others that there are: an implementation for them is kept out of use here.
_OTHER_KEYS = {
    f"{prefix}{kind}"
    for prefix in ("", "autograd", "autocast", "sparse", "sparsecsr", "nestedtensor", "quantized")
    for kind in "cpu cuda xpu mps xla hpu ipu mtia meta lazy privateuse1 hip ve fpga maia vulkan".split()
} | set(
    "meta backendselect python fake functionalize adinplaceorview functorch funcTorchbatched funcTorchvmapmode batched "
    "vmapmode compositeexplicitautogradnonfunctional autogradother autogradnestedtensor tracer zerotensor conjugate "
    "negative named pythontlssnapshot catchall undefined mkldnncpu".lower().split()
)

#: Namespaces that a Library of kind "DEF" has.
_defined: set[str] = set()
#: Names of ops and keys for which a Library has given an implementation.
_implemented: set[tuple[str, str]] = set()
#: What ops without an implementation do, by key.
_fallbacks: dict[str, Callable] = {}


class Library:
    """Ops under the name ``ns``: defined here (kind "DEF", "FRAGMENT"), or given implementations (kind "IMPL").

    What it defines goes with it: keep it as long as the ops are used.

    Args:
        ns: the namespace, before the ``::`` of names.
        kind: ``"DEF"``, ``"FRAGMENT"`` or ``"IMPL"``.
        dispatch_key: for which devices :meth:`impl` gives implementations, if it does not say.

    Raises:
        ValueError: there is no such kind, or the namespace is reserved.
        RuntimeError: there is another Library of kind "DEF" for the namespace.

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
        if ns in ("prim", "prims"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and (ns in _defined or ns == "aten"):
            raise RuntimeError(
                f"Only one Library of kind 'DEF' may be made for the namespace {ns}; use kind 'FRAGMENT' to add to it"
            )
        _check_key(dispatch_key)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: list[str] = []
        self._given: list[tuple[str, str]] = []
        self._fallen: list[str] = []
        if kind == "DEF":
            _defined.add(ns)
        ended = ns if kind == "DEF" else ""
        self._end = weakref.finalize(self, _forget, self._names, self._given, self._fallen, ended)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """An op of the name and the signature in ``schema``, without an implementation yet.

        Args:
            schema: ``"name(Tensor x) -> Tensor"``.
            alias_analysis: ``""``, ``"FROM_SCHEMA"`` or ``"CONSERVATIVE"``: the same here.
            tags: what is said of the op.

        Returns:
            The name.

        Raises:
            RuntimeError: the schema cannot be read, there is an op of that name, or no such ``alias_analysis``.
            ValueError: the Library is of kind "IMPL".
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise ValueError(f"Library('{self.ns}', 'IMPL') gives implementations: define needs 'DEF' or 'FRAGMENT'")
        name = read_schema(schema).name.partition(".")[0].rpartition("::")[2]
        _define(f"{self.ns}::{name}", schema, _checked_tags(tags))
        self._names.append(f"{self.ns}::{name}")
        return name

    def impl(
        self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:  # fmt: skip
        """Let ``fn`` be what an op does, if ``dispatch_key`` is for the CPU, for any device or for autocast.

        Args:
            op_name: the op, or its name.
            fn: the function.
            dispatch_key: for which devices; ``""``: the Library's.
            with_keyset: refused if True: there are no sets of keys.
            allow_override: False: what was given for the op and the key before stays.

        Raises:
            TypeError: ``fn`` cannot be called.
            RuntimeError: there is no such key, ``op_name`` is no op and no name, or there is an implementation and
                ``allow_override`` is False.
            NotImplementedError: ``with_keyset``.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError("impl: with_keyset=True: taeda has no sets of dispatch keys to give to fn")
        if not isinstance(op_name, str) and not hasattr(op_name, "__name__"):
            raise RuntimeError(
                f"impl should be passed either a name or an OpOverload object as the first argument, got "
                f"{type(op_name)}"
            )
        name = str(getattr(op_name, "__name__", op_name)).rpartition("::")[2].partition(".")[0]
        key = dispatch_key or self.dispatch_key
        given = (f"{self.ns}::{name}", key)
        if not allow_override and given in _implemented:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s "
                f"behavior for {key} dispatch key and {self.ns} namespace."
            )
        _implement(*given, fn)
        _implemented.add(given)
        self._given.append(given)

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Let ``fn(op, *args, **kwargs)`` do what a program's ops without an implementation for the CPU do.

        Args:
            fn: the function.
            dispatch_key: ``"CPU"``; for other devices it is kept out of use; ``""``: the Library's.
            with_keyset: refused if True: there are no sets of keys.

        Raises:
            RuntimeError: the namespace is not ``"_"``, which stands for all, or the key has a fallback.
            AssertionError: no key is given.
            NotImplementedError: ``with_keyset``.
        """
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f'Fallback can only be registered using library fragment on the global namespace "_" but it is '
                f"{self.ns}"
            )
        assert key, "dispatch_key must not be empty for fallback"
        _check_key(key)
        if with_keyset:
            raise NotImplementedError("fallback: with_keyset=True: taeda has no sets of dispatch keys to give to fn")
        if key.lower() in _fallbacks or key.lower().startswith("autocast"):
            raise RuntimeError(f"Tried to register multiple backend fallbacks for the same dispatch key {key}")
        _fallbacks[key.lower()] = fn
        self._fallen.append(key.lower())

    def _register_fake(self, op_name: str, fn: Callable, _stacklevel: int = 1, **options: Any) -> None:
        register_fake(op_name, fn, lib=self)

    def _destroy(self) -> None:
        """Take back what it defined."""
        self._end()


def _forget(names: list[str], given: list[tuple[str, str]], fallen: list[str], ns: str) -> None:
    for name in names:
        _ops.pop(name, None)
    _implemented.difference_update(given)
    for key in fallen:
        _fallbacks.pop(key, None)
    _defined.discard(ns)


def _check_key(key: str) -> None:
    if key.lower() not in _KEYS | _OTHER_KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}")


def _define(name: str, schema: str, tags: list) -> None:
    if name in _ops:
        raise RuntimeError(
            f"Tried to register an operator ({name}) with the same name and overload name multiple times: {name} is "
            f"defined, as {name}{_ops[name]._schema}"
        )
    CustomOpDef(name, None, read_schema(schema).mutated, schema, tags)


def _implement(name: str, key: str, function: Callable) -> None:
    _check_key(key)
    if name not in _ops:
        _waiting.setdefault(name, []).append((key, function))  # of PyTorch's own ops it is not used
    elif key.lower() in _KEYS:
        _ops[name]._use(function)
        _ops[name].composite = key.lower() == "compositeimplicitautograd"
    elif key.lower() == "meta":
        _ops[name].register_fake(function)
    elif key.lower().startswith("autocast"):
        _ops[name]._under_autocast[key.lower().removeprefix("autocast")] = function


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """An op ``library::op`` with the signature ``schema``, ``"(Tensor x) -> Tensor"``, without an implementation yet.

    Also a decorator of one.

    Args:
        qualname: ``"library::op"``, or ``"op"`` with ``lib``.
        schema: the signature.
        lib: a :class:`Library`, with which the op goes.
        tags: what is said of the op.

    Returns:
        A decorator, which gives the op its implementation.

    Raises:
        ValueError: the name is not of that form, or there is no schema.
        RuntimeError: the schema cannot be read, or there is an op of that name.

    Examples:
        >>> @taeda.library.define("docs::less", "(Tensor x) -> Tensor")
        ... def less(x):
        ...     return x - 1
        >>> taeda.library.ops.docs.less(taeda.tensor(2.0))
        tensor(1.)
    """
    if schema is None or callable(schema):
        raise ValueError(f"define: expected a name like 'library::op' and a schema, got {qualname!r} and {schema!r}")
    name = qualname if lib is None or "::" in qualname else f"{lib.ns}::{qualname}"
    _define(name, schema, _checked_tags(tags))
    if lib is not None:
        lib._names.append(name)

    def decorate(function: Callable) -> Callable:
        _implement(name, "", function)
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
        types = [types]
    else:
        types = [types] if isinstance(types, str) else types
        for kind in types:
            if kind not in ("", "default"):
                _device_types(kind)
    name = qualname if lib is None or "::" in qualname else f"{lib.ns}::{qualname}"

    def decorate(function: Callable) -> Callable:
        for key in types:
            _implement(name, key, function)
        return function

    return decorate if func is None else decorate(func)


def bind(
    declaration: str, library: Any = None, *, name: str | None = None, mutates_args: Sequence[str] = (),
    threads: str | None = None, backward: Callable | None = None, setup_context: Callable | None = None,
    no_grad: bool = False,
) -> CustomOpDef:  # fmt: skip
    """Make an op of a function in C that reads and writes the memory of tensors.

    The declaration says what is what. A pointer to const is a tensor that is read; another pointer is a result, a new
    tensor, unless ``mutates_args`` names it: then it is given, and written. ``float *x`` is a tensor of any shape. All
    such have one shape, and ``int64_t n`` is their number of elements. ``float x[rows][columns]`` is a tensor with
    these sizes, and the whole number ``rows`` is its first size. A call gives what is left, in the order of the
    declaration: tensors that are read or written, numbers, and sizes that no given tensor has. It gives back the
    results: None, a tensor, or a tuple.

    Dtypes, shapes and contiguity are checked. Python's lock is released while the function runs. On tensors without
    memory of their own (meta, batched by vmap) the op goes by its shapes, or example by example.

    Args:
        declaration: as in C: ``"void f(const float *x, float *y, int64_t n)"``. It gives nothing back but through
            pointers. Half floats are ``_Float16`` and ``__bf16``, complex numbers ``float _Complex``.
        library: file of the shared library, one that ``ctypes`` has opened, or None for this program.
        name: of the op; default: ``"<library>::<function>"``.
        mutates_args: names of parameters that are given, read and written.
        threads: a size that is the first dimension of every tensor: threads call the function with parts of it.
        backward: the derivative, as for :func:`register_autograd`. Without one a call with a tensor that requires grad
            is an error.
        setup_context: what it needs, as for :func:`register_autograd`.
        no_grad: without a derivative, results do not require grad, whatever the arguments do.

    Returns:
        The op.

    Raises:
        ValueError: the declaration cannot be read, or does not go with the other arguments.
        OSError: the library cannot be loaded.
        AttributeError: it has no function of that name.

    Examples:
        >>> declaration = "void swab(const uint8_t *x, uint8_t *y, int64_t n)"  # of the C library: swaps neighbours
        >>> swap = taeda.library.bind(declaration, name="docs::swap")
        >>> swap(taeda.tensor([1, 2, 3, 4], dtype=taeda.uint8))
        tensor([2, 1, 4, 3], dtype=taeda.uint8)
    """
    import re

    from . import _c_functions

    declared = _c_functions.parse(declaration)
    opened = _c_functions.load(library)
    address = _c_functions.address_of(opened, declared[0])
    if name is None:
        stem = re.sub(r"^lib|\W.*$", "", str(opened._name or "program").replace("\\", "/").rpartition("/")[2])
        name = f"{re.sub(r'^(?=[0-9])|^$', '_', stem)}::{declared[0]}"
    return _bind(name, declared, address, opened, mutates_args, threads, backward, setup_context, no_grad)


def _bind(
    name: str, declared: tuple, address: int, opened: Any, mutates_args: Sequence[str] = (),
    threads: str | None = None, backward: Callable | None = None, setup_context: Callable | None = None,
    no_grad: bool = False,
) -> CustomOpDef:  # fmt: skip
    from . import _c_functions
    from .ops.creation import zeros
    from .ops.joining import stack
    from .ops.meta import check_all_on_meta

    mutates = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
    bound = _c_functions.as_op(name, declared, address, mutates, threads, opened)
    if no_grad and backward is not None:
        raise ValueError(f"library.bind: {name} is given a derivative and no_grad=True")

    made = CustomOpDef(name, bound.function, mutates, bound.schema)
    made.__doc__ = f"{name}{bound.schema}: a function in C."

    def results(args: tuple, batch: tuple = (), device: str = "meta") -> Any:
        found = [zeros((*batch, *shape), dtype=dtype, device=device) for shape, dtype in bound.function.shapes(args)]
        return found[0] if len(found) == 1 else tuple(found) if found else None

    def by_example(info: Any, in_dims: tuple, *args: Any) -> tuple:
        rows = [
            made(*(a if d is None else a.select(d, i).contiguous() for a, d in zip(args, in_dims, strict=True)))
            for i in range(info.batch_size)
        ]
        if not rows:
            one = tuple(
                a if d is None else zeros([n for i, n in enumerate(a.shape) if i != d], dtype=a.dtype, device="meta")
                for a, d in zip(args, in_dims, strict=True)
            )
            out = results(one, (0,), "cpu")
        else:
            out = stack(rows) if isinstance(rows[0], Tensor) else tuple(map(stack, zip(*rows, strict=True)))
        return out, 0 if isinstance(out, Tensor) else (0,) * len(out)

    def empty(*args: Any) -> Any:
        check_all_on_meta(name, args)
        return results(args)

    made.register_fake(empty)
    if not mutates:
        made.register_vmap(by_example)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context)
    made.without_derivative = "constant" if no_grad else "error"
    return made


_NO_TRITON = (
    "there is no Triton, whose kernels are compiled for GPUs. Make the op with taeda.library.custom_op, with "
    "taeda.library.bind from C, or from an expression with taeda.kernel"
)
wrap_triton = refused_function("library.wrap_triton", _NO_TRITON)
triton_op = refused_function("library.triton_op", _NO_TRITON)
