"""The modules that are running, forward or backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules import _hooks
from ._pytree import tree_flatten

__all__ = ["ModuleTracker"]


def _differentiable(x: Any) -> list[Any]:
    leaves, _ = tree_flatten(x)
    return [t for t in leaves if isinstance(t, Tensor) and t.requires_grad]


class ModuleTracker:
    """Context manager whose ``parents`` is the set of the names of the modules that are running.

    Names are paths from the outermost module, ``Net.layer.0``; ``"Global"`` is always among them. In a backward pass a
    module runs from where the gradients of its outputs are known to where those of its inputs are.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._hooks: list[Any] = []
        self._awaits_end = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is under way on this thread."""
        return _core.current_task() != -1

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            _hooks.register_module_forward_pre_hook(self._before),
            _hooks.register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()

    def _name(self, module: Any) -> str:
        """A module's path; its submodules get theirs with it."""
        if module not in self._names:
            self._names[module] = type(module).__name__
            for path, inner in module.named_modules():
                self._names.setdefault(inner, f"{type(module).__name__}.{path}")
        return self._names[module]

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        inputs = _differentiable(args)
        if inputs:
            self._hooks.append(register_multi_grad_hook(inputs, self._leaves(name)))

    def _after(self, module: Any, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        outputs = _differentiable(output)
        if outputs:
            self._hooks.append(register_multi_grad_hook(outputs, self._enters(name)))

    def _enters(self, name: str) -> Callable:
        def enter(*grads: Any) -> None:
            if not self._awaits_end:
                self._awaits_end = True
                _core.at_end_of_task(self._end)
            self.parents.add(name)

        return enter

    def _leaves(self, name: str) -> Callable:
        return lambda *grads: self.parents.discard(name)

    def _end(self) -> None:
        """The backward pass is over: modules whose inputs need no gradient have not been left."""
        self.parents = {"Global"}
        self._awaits_end = False
