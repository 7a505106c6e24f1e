"""Module: a tree of named parameters, buffers and children with a ``forward``.

Attribute access and calls are in ``taeda/_core/module.pyx``; hooks in ``_hooks.py``; state dictionaries in
``_state.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter as Parameter_
from inspect import Signature
from typing import Any, Self

from taeda.__future__ import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from taeda._core import PYTHON_TYPES, swap_tensors
from taeda._core.module import (
    ModuleBase,
    Walk,
    children_of,
    configure,
    delete_attribute,
    keep_own,
    quicken,
    replaces_any,
    set_attribute,
)
from taeda._core.nearest import ChecksKeywords, nearest

from ... import _core
from ..._namespaces import above
from ..._typed import Tensor
from ..._warn import warn_caller
from ...autograd import no_grad
from ...ops.creation import empty_like
from ..parameter import Buffer, Parameter, is_lazy
from . import _hooks
from ._explain import explain
from ._hooks import (
    RemovableHandle,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import _EXTRA_STATE_KEY_SUFFIX, StateMixin, _IncompatibleKeys, _WrappedHook

__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX", "Module", "_IncompatibleKeys", "_WrappedHook", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

configure(
    Parameter, Buffer, Tensor, _hooks.call_hooked, explain,
    [_hooks.forward_hooks, _hooks.forward_pre_hooks, _hooks.backward_hooks, _hooks.backward_pre_hooks],
    [_hooks.parameter_registration_hooks, _hooks.buffer_registration_hooks, _hooks.module_registration_hooks],
)  # fmt: skip


def _check_name(module, name, what: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise KeyError(f'{what} name can\'t contain ".", got: {name}')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')


def _indent(text: str) -> str:
    """All lines but the first, moved right."""
    return text.replace("\n", "\n  ")


class _CallSignature:
    """``__signature__`` of a module, whose ``__call__`` is compiled: the signature of its call for ``inspect``.

    Classes of modules have the signature of ``__init__`` instead.
    """

    _any = Signature([Parameter_("args", Parameter_.VAR_POSITIONAL), Parameter_("kwargs", Parameter_.VAR_KEYWORD)])

    def __get__(self, module: Module | None, owner: type | None = None) -> Signature:
        if module is None:
            raise AttributeError("__signature__")
        return self._any


class Module(StateMixin, ChecksKeywords, ModuleBase):
    """Base class of every layer and model.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and other modules to attributes, and defines
    ``forward``. Calling the module runs ``forward`` with its hooks. ``parameters()`` finds what was assigned,
    ``state_dict()`` saves it and ``to()`` moves it. ``train()`` and ``eval()`` switch layers such as dropout.

    Args:
        *args: for the next base class, where ``call_super_init`` is set.
        **kwargs: the same by name.

    Raises:
        TypeError: there are arguments, and ``call_super_init`` is not set.

    Note:
        What is assigned before ``super().__init__()`` is an AttributeError, a call without ``forward`` a
        NotImplementedError.

    Examples:
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.output = nn.Linear(8, 2)
        ...
        ...     def forward(self, x):
        ...         return self.output(self.hidden(x).relu())
        >>> model = Net()
        >>> model(taeda.randn(3, 4)).shape
        taeda.Size([3, 2])
        >>> [name for name, p in model.named_parameters()]
        ['hidden.weight', 'hidden.bias', 'output.weight', 'output.bias']
        >>> model
        Net(
          (hidden): Linear(in_features=4, out_features=8, bias=True)
          (output): Linear(in_features=8, out_features=2, bias=True)
        )
    """

    dump_patches = False
    training: bool
    call_super_init = False
    _compiled_call_impl: Callable | None = None
    _is_full_backward_hook: bool | None
    _shown: tuple[str, ...] = ()

    __signature__ = _CallSignature()
    __setattr__ = set_attribute
    __delattr__ = delete_attribute

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        quicken(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            got = (
                f"{len(args)} positional arguments"
                if args
                else f"an unexpected keyword argument '{next(iter(kwargs))}'"
            )
            raise TypeError(f"{type(self).__name__}.__init__() got {got}")
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _backward_pre_hooks={},
            _backward_hooks={}, _is_full_backward_hook=None, _forward_hooks={}, _forward_hooks_with_kwargs={},
            _forward_hooks_always_called={}, _forward_pre_hooks={}, _forward_pre_hooks_with_kwargs={},
            _state_dict_hooks={}, _state_dict_pre_hooks={}, _load_state_dict_pre_hooks={},
            _load_state_dict_post_hooks={}, _modules={},
        )  # fmt: skip
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """The computation of the module; every subclass defines it."""
        own = set(dir(type(self))) - set(dir(Module))
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
            f"{nearest('forward', own) or '; define forward(self, ...)'}"
        )

    # ---- registration -----------------------------------------------------------------------------------------------
    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that moves and is saved with the module but is no parameter.

        Args:
            name: the attribute.
            tensor: its value, or None.
            persistent: whether it is part of ``state_dict``.

        Raises:
            AttributeError: ``super().__init__()`` was not called.
            KeyError: there is an attribute of that name, or it is no name.
            TypeError: ``tensor`` is no tensor, or ``name`` no text.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call: begin with super().__init__()")
        _check_name(self, name, "buffer")
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (taeda Tensor or None required)"
            )
        for hook in _hooks.buffer_registration_hooks.values():
            result = hook(self, name, tensor)
            tensor = tensor if result is None else result
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under ``name`` (None for one that is absent)."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call: begin with super().__init__()")
        _check_name(self, name, "parameter")
        if name not in self._parameters and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                    "(taeda.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            for hook in _hooks.parameter_registration_hooks.values():
                result = hook(self, name, param)
                param = param if result is None else result
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child under ``name``."""
        if not isinstance(module, Module) and module is not None:
            several = isinstance(module, (list, tuple))
            hint = f"; give its items one by one, as in {type(self).__name__}(*layers)" if several else ""
            if callable(module) and not isinstance(module, type):
                hint = "; a function is called in the forward() of a Module of your own"
            raise TypeError(f"{type(module).__name__} is not a Module subclass{hint}")
        _check_name(self, name, "module")
        if name not in self._modules and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        for hook in _hooks.module_registration_hooks.values():
            result = hook(self, name, module)
            module = module if result is None else result
        self._modules[name] = module

    register_module = add_module

    # ---- lookup -----------------------------------------------------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        """The module at the dotted path ``target``; ``self`` for the empty one.

        Args:
            target: names of children, with dots.

        Returns:
            The module.

        Raises:
            AttributeError: there is none, or what is there is no Module.
        """
        module: Module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at the dotted path ``target``; with ``strict`` only in place of an existing one."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path ``target``."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path ``target``."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    def _named_members(self, members: Callable, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        seen: set = set()
        for path, module in modules:
            for name, value in members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{path}.{name}" if path else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; of the children too if ``recurse``."""
        if replaces_any(self, ("named_parameters", "_named_members", "named_modules")):
            for _, param in self.named_parameters(recurse=recurse):
                yield param
        else:
            yield from Walk(self, "_parameters", recurse=recurse, named=False)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(dotted name, parameter) pairs."""
        if replaces_any(self, ("_named_members", "named_modules")):
            yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)
        else:
            yield from Walk(self, "_parameters", None, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; of the children too if ``recurse``."""
        if replaces_any(self, ("named_buffers", "_named_members", "named_modules")):
            for _, buf in self.named_buffers(recurse=recurse):
                yield buf
        else:
            yield from Walk(self, "_buffers", recurse=recurse, named=False)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(dotted name, buffer) pairs."""
        if replaces_any(self, ("_named_members", "named_modules")):
            yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)
        else:
            yield from Walk(self, "_buffers", None, prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        return children_of(self, False)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, child) pairs of the direct children."""
        return children_of(self, True)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, depth first, each once."""
        if replaces_any(self, ("named_modules",)):
            for _, module in self.named_modules(remove_duplicate=remove_duplicate):
                yield module
        else:
            yield from Walk(self, unique=remove_duplicate, named=False)

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True):
        """(dotted name, module) pairs, this module first under the name ``prefix``."""
        yield from Walk(self, None, memo, prefix, True, remove_duplicate)

    # ---- conversion -------------------------------------------------------------------------------------------------
    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by ``fn`` of it.

        A Parameter stays the same object, unless it goes to device meta or comes from there, its layout changes, or
        ``taeda.__future__`` says otherwise.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                applied = fn(param)
            if get_swap_module_params_on_conversion():
                self._swap(name, param, applied, fn)
                continue
            other = applied.is_meta or param.is_meta or applied.layout is not param.layout
            if applied is not param and (other or get_overwrite_module_params_on_conversion()):
                self._parameters[name] = new = Parameter(applied, param.requires_grad)
                if param.grad is not None:
                    with no_grad():
                        new.grad = fn(param.grad).requires_grad_(param.grad.requires_grad)
                continue
            if applied is not param:
                param.data = applied
            if param.grad is not None:
                with no_grad():
                    grad = fn(param.grad)
                if grad is not param.grad:
                    param.grad.data = grad
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def _swap(self, name: str, param: Tensor, applied: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
        """Let ``param`` and its gradient be what ``fn`` gives, as the same objects."""
        if applied is param:
            return
        grad, param.grad = param.grad, None
        try:
            swap_tensors(param, Parameter(applied, param.requires_grad))
            if grad is not None:
                with no_grad():
                    new = fn(grad)
                if new is not grad:
                    swap_tensors(grad, new.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        finally:
            if grad is not None:
                param.grad = grad

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every child and then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs) -> Self:
        """Move and cast in place: ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``, ``to(tensor)``.

        ``dtype`` must be floating point or complex and concerns only tensors that are.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warn_caller("Complex modules are a new feature: some may not work as expected with complex values")

        def convert(t):
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device=device, dtype=wanted, non_blocking=non_blocking, memory_format=memory_format)
            return t.to(device=device, dtype=wanted, non_blocking=non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device, recurse: bool = True) -> Self:
        """Move to ``device`` without copying: the values are uninitialised."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def compile(self, *args, **kwargs) -> None:
        """:func:`taeda.compile` in place: calls of ``forward`` are compiled from now on. Copies are not."""
        self.__dict__.pop("forward" if self._compiled_call_impl is not None else "", None)
        self._compiled_call_impl = self.__dict__["forward"] = above("compiler").compile(self.forward, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if state.pop("_compiled_call_impl", None) is not None:
            del state["forward"]
        return state

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        """Move to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None) -> Self:
        """Move to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def type(self, dst_type) -> Self:
        """Cast every parameter and buffer."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self) -> Self:
        """Move every tensor to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    # ---- modes ------------------------------------------------------------------------------------------------------
    def train(self, mode: bool = True) -> Self:
        """Set training mode (dropout, batch statistics) here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether the parameters want gradients."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zero."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    # ---- hooks ------------------------------------------------------------------------------------------------------
    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` (``(module, args, kwargs)``) before ``forward``; a result replaces the input."""
        flags = {"kwargs": self._forward_pre_hooks_with_kwargs} if with_kwargs else {}
        return _hooks.add(self._forward_pre_hooks, hook, prepend, **flags)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` (``(module, args, kwargs, output)``) after ``forward``."""
        flags = {}
        if with_kwargs:
            flags["kwargs"] = self._forward_hooks_with_kwargs
        if always_call:
            flags["always"] = self._forward_hooks_always_called
        return _hooks.add(self._forward_hooks, hook, prepend, **flags)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward; a result replaces the gradients."""
        return _hooks.add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward; a result replaces grad_input."""
        return self._add_backward_hook(True, hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The older kind of backward hook, on the node of the output; prefer :meth:`register_full_backward_hook`."""
        return self._add_backward_hook(False, hook)

    def _add_backward_hook(self, full: bool, hook: Callable, prepend: bool = False) -> RemovableHandle:
        if self._is_full_backward_hook not in (None, full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full
        return _hooks.add(self._backward_hooks, hook, prepend)

    # ---- Python -----------------------------------------------------------------------------------------------------
    def __setstate__(self, state: dict[str, Any]) -> None:
        fresh = Module.__new__(Module)
        Module.__init__(fresh)
        missing = {k: v for k, v in fresh.__dict__.items() if k not in state and k != "training"}
        self.__dict__.update(state)
        self.__dict__.update(missing)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of the repr: the attributes in ``_shown``; a subclass may override it."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def _repr_html_(self) -> str:
        from taeda._html import module

        return module(self, lambda m: sum(p.numel() for p in m.parameters() if not is_lazy(p)))

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


quicken(Module)
keep_own(Module, "_named_members", "named_parameters", "named_buffers", "named_children", "named_modules")


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of the forms of ``to``."""
    first = args[0] if args else kwargs.get("tensor")
    if isinstance(first, Tensor):
        names: tuple[str, ...] = ("tensor", "non_blocking")
    elif isinstance(first, _core.dtype) or (isinstance(first, type) and first in PYTHON_TYPES):
        names = ("dtype", "non_blocking")
    else:
        names = ("device", "dtype", "non_blocking")
    if "copy" in kwargs or len(args) == len(names) + 1:
        raise RuntimeError(".to() does not accept copy argument")
    if len(args) > len(names):
        raise TypeError(f"to(): expected at most {len(names)} arguments, got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name in kwargs:
        if name in given or name not in (*names, "memory_format"):
            raise TypeError(f"to() received an unexpected keyword argument '{name}'")
    given |= kwargs
    other, device, dtype = given.get("tensor"), given.get("device"), given.get("dtype")
    if other is not None:
        device, dtype = other.device, other.dtype
    if device is not None and not isinstance(device, _core.device):
        device = _core.device(device)
    dtype = PYTHON_TYPES.get(dtype, dtype)
    if not (dtype is None or isinstance(dtype, _core.dtype)):
        raise TypeError(f"to(): argument 'dtype' must be taeda.dtype, not {type(dtype).__name__}")
    return device, dtype, given.get("non_blocking", False), given.get("memory_format")


def is_lazy_module(module: Module) -> bool:
    """Whether a parameter or buffer of ``module`` itself has no shape yet."""
    return any(is_lazy(t) for t in [*module._parameters.values(), *module._buffers.values()])
