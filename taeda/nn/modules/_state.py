"""``state_dict`` and ``load_state_dict``: the part of Module that reads and writes its values by name."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from taeda.__future__ import get_swap_module_params_on_conversion

from ..._core import swap_tensors
from ..._typed import Tensor
from ...autograd import no_grad
from ..parameter import Parameter, is_lazy
from . import _hooks

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


def _prefix_hint(unexpected: list[str]) -> str:
    """Advice on keys that were saved by a wrapper around the module."""
    for prefix in ("module.", "_orig_mod."):  # DataParallel's, a compiled module's
        if unexpected and all(key.startswith(prefix) for key in unexpected):
            return (
                f"They were saved with a wrapper's prefix: strip it with nn.modules.utils."
                f"consume_prefix_in_state_dict_if_present(state_dict, {prefix!r}). "
            )
    return ""


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The result of ``load_state_dict``: the missing keys, and the unexpected ones."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateMixin:
    """State dictionaries of a Module."""

    _version: int = 1

    if TYPE_CHECKING:  # attributes of the Module that this is mixed into

        def __getattr__(self, name: str) -> Any: ...

    # ---- hooks ------------------------------------------------------------------------------------------------------
    def register_state_dict_post_hook(self, hook: Callable):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``; it may change it in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _hooks.add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable):
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict``."""
        return _hooks.add(self._state_dict_pre_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _hooks.add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`` before
        loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False):
        return _hooks.add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable):
        """Call ``hook(module, incompatible_keys)`` after loading."""
        return _hooks.add(self._load_state_dict_post_hooks, hook)

    # ---- extra state ------------------------------------------------------------------------------------------------
    def get_extra_state(self) -> Any:
        """Anything else to keep in the ``state_dict``; override together with :meth:`set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Override it to use it."
        )

    def set_extra_state(self, state: Any) -> None:
        """Receive what :meth:`get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Override it to use it."
        )

    # ---- out --------------------------------------------------------------------------------------------------------
    def _save_to_state_dict(self, destination, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        transient = self._non_persistent_buffers_set
        for name, buf in self._buffers.items():
            if buf is not None and name not in transient:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not StateMixin.get_extra_state:
            destination[f"{prefix}{_EXTRA_STATE_KEY_SUFFIX}"] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by dotted name.

        Args:
            destination: a mapping to write into; a new OrderedDict if None.
            prefix: put before every name.
            keep_vars: give the tensors themselves, attached to the graph, rather than detached ones.

        Returns:
            The mapping. Its tensors share memory with the module.
        """
        if args:  # positional use, deprecated in PyTorch too
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    # ---- in ---------------------------------------------------------------------------------------------------------
    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Load this module alone; the children follow. May be overridden to read older formats."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        transient = self._non_persistent_buffers_set
        persistent = ((k, v) for k, v in self._buffers.items() if k not in transient)
        local = {k: v for k, v in itertools.chain(self._parameters.items(), persistent) if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local.items():
            key = prefix + name
            if key in state_dict:
                try:
                    self._load_one(name, key, param, state_dict[key], assign, error_msgs)
                except Exception as error:
                    given = state_dict[key]
                    shape = given.size() if isinstance(given, Tensor) else type(given).__name__
                    error_msgs.append(
                        f'While copying the parameter named "{key}", whose dimensions in the model are '
                        f"{param.size()} and whose dimensions in the checkpoint are {shape}, an exception occurred : "
                        f"{error.args}."
                    )
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StateMixin.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            n = len(prefix)
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, dot, _ = key[n:].partition(".")
                    if head not in (self._modules if dot else local):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, param, given, assign: bool, error_msgs: list[str]) -> None:
        if not isinstance(given, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected taeda.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
            return
        lazy = is_lazy(param)
        if not lazy and param.dim() == 0 and given.dim() == 1 and given.numel() == 1:
            given = given[0]  # scalars were once written with one dimension
        if not lazy and given.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {param.shape}."
            )
            return
        if not lazy and param.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                "state dictionary to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        with no_grad():
            if get_swap_module_params_on_conversion():
                _exchange(param, given, assign)
            elif assign:
                if isinstance(param, Parameter):
                    if not isinstance(given, Parameter):
                        given = Parameter(given, requires_grad=param.requires_grad)
                    else:
                        given.requires_grad_(param.requires_grad)
                setattr(self, name, given)
            else:
                if lazy and is_lazy(given):
                    return  # both have no values yet
                if lazy:
                    param.materialize(given.shape, device=given.device, dtype=given.dtype)
                param.copy_(given)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy values by name into this module and its children.

        Args:
            state_dict: values by dotted name, as :meth:`state_dict` gives them.
            strict: raise where names are missing or not asked for.
            assign: put the given tensors in place of the module's own, keeping their dtype and memory.

        Returns:
            ``missing_keys`` and ``unexpected_keys``.

        Raises:
            RuntimeError: names (if ``strict``) or shapes do not agree; the text lists them all.
        """
        if not isinstance(state_dict, Mapping):
            hint = " Read the file first, as in taeda.load(path)." if isinstance(state_dict, str | PathLike) else ""
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.{hint}")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]
        _load(self, state_dict, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            if unexpected:
                names = ", ".join(f'"{k}"' for k in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {names}. {_prefix_hint(unexpected)}")
            if missing:
                names = ", ".join(f'"{k}"' for k in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
            if (missing or unexpected) and not _prefix_hint(unexpected):
                errors.append(
                    "Make the module as the one that was saved. With strict=False parameters without a value keep the "
                    "one they have, and unknown names are left out."
                )
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)


def _exchange(param: Tensor, given: Tensor, assign: bool) -> None:
    """Let ``param`` be what ``module_load`` makes of it and ``given``."""
    new: Any = param.module_load(given, assign=assign)
    if new is given or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(param, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(param.requires_grad)
        else:
            new = Parameter(new, requires_grad=param.requires_grad)
    swap_tensors(param, new)


class _WrappedHook:
    """A load pre-hook, called with its module first if it was registered so. It does not keep the module alive.

    The name and the state are those that PyTorch's files have.
    """

    def __init__(self, hook: Callable, module=None):
        self.hook, self.module = hook, None if module is None else weakref.ref(module)

    def __call__(self, *args):
        return self.hook(*args) if self.module is None else self.hook(self.module(), *args)

    def __getstate__(self):
        module = None if self.module is None else self.module()
        return {"hook": self.hook, "with_module": module is not None, "module": module}

    def __setstate__(self, state):
        _WrappedHook.__init__(self, state["hook"], state.get("module"))


def _load(module, state: Mapping, prefix: str, metadata, assign: bool, report: tuple[list, list, list]) -> None:
    missing, unexpected, errors = report
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state, prefix, local_metadata, True, missing, unexpected, errors)
    children = [(name, child) for name, child in module._modules.items() if child is not None]
    if children:
        n = len(prefix)
        parts: dict[str, dict] = {}
        for key, value in state.items():  # one pass shares the keys out among the children
            if key.startswith(prefix):
                head, dot, _ = key[n:].partition(".")
                if dot:
                    parts.setdefault(head, {})[key] = value
        for name, child in children:
            _load(child, parts.get(name, {}), f"{prefix}{name}.", metadata, assign, report)
    incompatible = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible) is not None:
            raise RuntimeError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )
