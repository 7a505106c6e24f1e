"""The op that a program declares: a function under a name, with what else was registered for it."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

from .._core import Tensor, bump, is_recorded, mode_stack, record_nothing, restore_grad_mode
from .._core.custom import CustomOp, share_memory
from .._schema import Schema, checked, infer_schema, read_schema, takes
from ..amp.autocast_mode import autocast, cast_all, is_autocast_enabled
from ..aten import DECLARED, OpOverload, OpOverloadPacket
from ..autograd.function import Function, _context_class, _own_outputs
from ..ops.parts import OfValues
from ..ops.registry import OPS
from ..overrides import handle_torch_function, has_torch_function
from .fake import fake_context
from .gradients import by_place, flat_gradients, flattened, leaves_of, restored

#: A function that a decorator gives back.
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_log = logging.getLogger(__name__)

#: Keys under which an implementation is taken: for the CPU, or for any device.
KEYS = {"", "cpu", "default", "compositeexplicitautograd", "compositeimplicitautograd", "autograd", "autogradcpu"}
#: Implementations of ops that are not defined yet, by name: pairs of a key and a function.
WAITING: dict[str, list[tuple[str, Callable]]] = {}
#: What ops without an implementation do, by key.
FALLBACKS: dict[str, Callable] = {}

_DEVICES = frozenset(
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia "
    "privateuseone".split()
)


def device_types_of(device_types: Any) -> list[str | None]:
    """Types of devices that are given as a name, as several, or as None for all: a list."""
    if device_types is None:
        return [None]
    kinds = [device_types] if isinstance(device_types, str) else list(device_types)
    for kind in kinds:
        if not isinstance(kind, str) or kind.partition(":")[0] not in _DEVICES:
            raise RuntimeError(f"Expected one of {', '.join(sorted(_DEVICES))} device type, got {kind!r}")
    return kinds


class EffectType(enum.Enum):
    """Effects of an op besides its results: ``ORDERED`` ones are kept in programs, in their order."""

    ORDERED = "Ordered"


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
        DECLARED[name] = self
        for key, function in WAITING.pop(name, ()):
            self.implement(key, function)

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
        self.nresults = len(self._read.returns)
        self.set_direct(fn, kinds, self._fewest(fn, len(required)))

    def implement(self, key: str, function: Callable) -> None:
        """Let ``function`` be what the op does for a key of devices; of devices that are not here it is not used."""
        key = key.lower()
        if key in KEYS:
            self._use(function)
            self.composite = key == "compositeimplicitautograd"
        elif key == "meta":
            self.register_fake(function)
        elif key.startswith("autocast"):
            self._under_autocast[key.removeprefix("autocast")] = function

    def _fewest(self, fn: Callable, required: int) -> int:
        """The least number of arguments of a call that ``fn`` can take as it is: its own defaults are the schema's."""
        assert self._read is not None
        given = [a.default for a in self._read.arguments if not a.keyword_only]
        try:
            own = [p.default for p in inspect.signature(fn).parameters.values()]
        except (TypeError, ValueError):
            return len(given)
        agree = len(own) >= len(given) and all(a == b for a, b in zip(given[required:], own[required:], strict=False))
        return required if agree else len(given)

    def _lacking(self, *args: Any, **kwargs: Any) -> Any:
        if "cpu" in FALLBACKS:
            return FALLBACKS["cpu"](self._overload, *args, **kwargs)
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
        leaves = leaves_of((*args, *kwargs.values()))
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
        leaves = leaves_of((*args, *kwargs.values()))
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
        flat, form = flattened(args, kwargs)
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
            made = [x for x in leaves_of([result]) if isinstance(x, Tensor)]
            others = [x for x in leaves_of(args) if isinstance(x, Tensor)]
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
            self._refuse_grad(leaves_of((*args, *kwargs.values())))
        result = self._fn(*args, **kwargs)
        values = self._by_name(args, kwargs)
        written = values if self._mutates == ("unknown",) else self._mutates
        for x in leaves_of([values.get(name) for name in written]):
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

    def register_fake(self, fn: FunctionT, /) -> FunctionT:
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

    @overload
    def register_kernel(self, device_types: Any, fn: FunctionT, /) -> FunctionT: ...

    @overload
    def register_kernel(self, device_types: Any, fn: None = None, /) -> Callable[[FunctionT], FunctionT]: ...

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
        kinds = device_types_of(device_types)

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
                "forward": staticmethod(self._forward), "setup_context": staticmethod(by_place(setup_context)),
                "backward": staticmethod(backward),
            }  # fmt: skip
            return type(name, (Function,), plain)

        def forward(*given: Any) -> Any:
            args, kwargs = restored(given)
            return owner.checked(args, owner._fn(*args, **kwargs))

        def setup(ctx: Any, inputs: tuple, output: Any) -> None:
            if setup_context is not None:
                args, kwargs = restored(inputs)
                more = {"keyword_only_inputs": kwargs} if kwargs else {}
                setup_context(ctx=ctx, inputs=args, output=output, **more)
            ctx._form = inputs[-1]

        def back(ctx: Any, *grads: Any) -> Any:
            counts, names = ctx._form
            made = flat_gradients(owner._qualname, backward(ctx, *grads), counts)
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
        return fn if fn is not None else lambda function: function

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
        from ..fx import node

        if effect is None:
            node.unmark(self._overload)
        else:
            node.has_side_effect(self._overload)

    @overload
    def register_vmap(self, func: FunctionT) -> FunctionT: ...

    @overload
    def register_vmap(self, func: None = None) -> Callable[[FunctionT], FunctionT]: ...

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


def _declared(name: str) -> CustomOpDef:
    """The op of a pickle."""
    if name not in DECLARED:
        raise AttributeError(f"there is no op {name}: import what declares it before it is loaded")
    return DECLARED[name]
