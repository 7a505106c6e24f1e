"""Trading time for memory: a part of a network runs again in the backward pass instead of keeping its saved tensors."""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .. import _core
from .._core import Tensor, device, modes
from .._core.devices import DEVICES, accelerator
from .._core.random import GENERATORS, all_states, set_all_states
from .._core.settings import within
from ..amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_cache_enabled, is_autocast_enabled
from ..autograd import Function, backward, no_grad
from ..autograd.graph import saved_tensors_hooks
from ..autograd.modes import recording
from ..func.batched import renewed, vmap_modes
from ..ops.devices import number_of
from ._python_dispatch import TorchDispatchMode, _disable_current_modes, is_in_torch_dispatch_mode
from ._pytree import tree_leaves, tree_map
from ._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function differed from the first."""


class _StopRecomputation(Exception):
    """Everything that the backward pass needs has been computed."""


_settings = threading.local()


def set_checkpoint_early_stop(enable: bool) -> contextlib.AbstractContextManager:
    """Within it, ``enable`` says whether checkpoints stop their second run as soon as nothing more of it is needed."""
    return within(_settings, early_stop=enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> contextlib.AbstractContextManager:
    """Within it, ``enabled`` overrides the ``debug`` argument of checkpoints."""
    return within(_settings, debug=enabled)


def noop_context_fn() -> tuple[contextlib.AbstractContextManager, contextlib.AbstractContextManager]:
    """Contexts of the first and the second run that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple) -> tuple:
    """``inputs`` with tensors outside the graph, requiring grad as before."""
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no tensor among ``inputs`` requires grad: then a checkpoint's function gets no gradients."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


# ---- running a function again ----------------------------------------------------------------------------------------


class _SaveInputs(Function):
    """Saves tensors the way ops do, so that an enclosing checkpoint recomputes them rather than keep them."""

    @staticmethod
    def forward(ctx, anchor, *tensors):
        ctx.save_for_backward(*tensors)
        return anchor.clone()

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("the node that keeps a checkpoint's inputs is not part of a backward pass")


class _Arguments:
    """Arguments of a checkpointed function; its tensors are kept by a node of the graph, under ``vmap`` as they are."""

    def __init__(self, args: tuple, kwargs: dict) -> None:
        self.names = tuple(kwargs)
        flat = [*args, *kwargs.values()]
        self.count = len(args)
        self.others = [None if isinstance(x, Tensor) else x for x in flat]
        self.places = [i for i, x in enumerate(flat) if isinstance(x, Tensor)]
        self.modes = vmap_modes()
        if self.modes:
            self.others, self.places = flat, []
        anchor = _core.empty((0,)).requires_grad_()
        self.anchor = _SaveInputs.apply(anchor, *[flat[i] for i in self.places])

    def get(self) -> tuple[list, dict]:
        flat = tree_map(renewed, list(self.others)) if self.modes else list(self.others)
        for i, t in zip(self.places, self.anchor.grad_fn.saved_tensors, strict=True):
            flat[i] = t
        return flat[: self.count], dict(zip(self.names, flat[self.count :], strict=True))


class _Holder:
    """Stands for one tensor that the first run saved."""

    __slots__ = ("__weakref__", "index", "meta")

    def __init__(self, index: int, meta: tuple) -> None:
        self.index = index
        self.meta = meta


class _Frame:
    """One checkpointed call: what its first run saved, by number, and how to run it again."""

    def __init__(self, run_again: Callable[[], None], early_stop: bool, check: str, debug: bool) -> None:
        self.run_again = run_again
        self.early_stop, self.check, self.debug = early_stop, check, debug
        self.holders: list[weakref.ref] = []
        self.ended = False  # the first run; a backward pass within the function comes before
        self.made: dict[int, dict[int, Tensor]] = {}  # backward pass -> holder number -> tensor

    def pack(self, t: Tensor) -> _Holder:
        holder = _Holder(len(self.holders), _meta(t))
        self.holders.append(weakref.ref(holder))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        task = _core.current_task()
        made = self.made.get(task)
        if made is None or holder.index not in made:
            made = self.made[task] = self.recompute(task)
        t = made.pop(holder.index)
        if task == -1:
            self.made.pop(task, None)
        if self.check == "default" and _meta(t) != holder.meta:
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                f"forward pass: saved tensor {holder.index} had (shape, dtype) {holder.meta} and now has {_meta(t)}. "
                f"The function must do the same both times it runs."
            )
        return t

    def recompute(self, task: int) -> dict[int, Tensor]:
        made: dict[int, Tensor] = {}
        count = 0
        early = self.early_stop and not any(hasattr(mode, "records_ops") for mode in _core.mode_stack())
        if task != -1:
            _core.at_end_of_task(lambda: self.made.pop(task, None))

        def pack(t: Tensor) -> Tensor:
            nonlocal count
            index, count = count, count + 1
            kept = t.detach()
            if index < len(self.holders) and self.holders[index]() is not None:
                made[index] = kept
            if early and count == len(self.holders):
                raise _StopRecomputation
            return kept

        try:
            with saved_tensors_hooks(pack, lambda kept: kept), recording():
                self.run_again()
        except _StopRecomputation:
            pass
        if count != len(self.holders) if self.ended else count < len(self.holders):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and recomputation. "
                f"Number of tensors saved during forward: {len(self.holders)}. Number of tensors saved during "
                f"recomputation: {count}. The function must do the same both times it runs; debug=True names what was "
                "saved." + (self.describe(made) if self.debug else "")
            )
        return made

    def describe(self, made: dict[int, Tensor]) -> str:
        first = [h.meta if (h := reference()) is not None else "freed" for reference in self.holders]
        return f"\nforward saved (shape, dtype): {first}\nrecomputation saved: {[_meta(t) for t in made.values()]}"


def _meta(t: Tensor) -> tuple:
    return tuple(t.shape), t.dtype


def _without_reentry(
    function: Callable, args: tuple, kwargs: dict, preserve: bool, context_fn: Callable, check: str, debug: bool,
    early: bool,
) -> Any:  # fmt: skip
    """Run ``function`` with its saved tensors replaced by their numbers."""
    first_context, second_context = context_fn()
    if not _core.is_grad_enabled():
        return function(*args, **kwargs)
    kept = _Arguments(args, kwargs)
    surroundings = _Surroundings(preserve)

    def run_again() -> None:
        again, names = kept.get()
        with modes(kept.modes) if kept.modes else contextlib.nullcontext(), surroundings.restored(), second_context:
            function(*again, **names)

    frame = _Frame(run_again, early, check, debug)
    with saved_tensors_hooks(frame.pack, frame.unpack), first_context:
        result = function(*args, **kwargs)
    frame.ended = True
    return result


class _PassingMode(TorchDispatchMode):
    """Stands for the modes of the first run, which decomposed its ops, where they are gone."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


class _Surroundings:
    """The state that the first run depends on beside its arguments: the precision of autocast, whether dispatch modes
    saw its ops (which decomposes them) and, if ``random``, random numbers.
    """

    def __init__(self, random: bool) -> None:
        self.watched = is_in_torch_dispatch_mode()
        self.random = all_states() if random else None
        types = dict.fromkeys(name.partition(":")[0] for name in DEVICES if name != "meta")
        self.autocast = [
            {
                "device_type": device,
                "dtype": get_autocast_dtype(device),
                "enabled": is_autocast_enabled(device),
                "cache_enabled": is_autocast_cache_enabled(),
            }
            for device in types
        ]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Within it they are as they were."""
        now = None if self.random is None else all_states()
        if self.random is not None:
            set_all_states(self.random)
        try:
            with contextlib.ExitStack() as stack:
                for settings in self.autocast:
                    stack.enter_context(autocast(**settings))
                if self.watched != is_in_torch_dispatch_mode():
                    stack.enter_context(_PassingMode() if self.watched else _disable_current_modes())
                yield
        finally:
            if now is not None:
                set_all_states(now)


# ---- backward within backward ----------------------------------------------------------------------------------------


class CheckpointFunction(Function):
    """The reentrant variant: a node whose backward runs the function again and then a backward pass of its own."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if _core.task_is_partial():
            raise RuntimeError(
                "When use_reentrant=True, taeda.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = t
        detached = detach_variable(tuple(args))
        with ctx.surroundings.restored(), recording():
            outputs = ctx.run_function(*detached)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


# ---- what users call -------------------------------------------------------------------------------------------------


def _warn_of_default(name: str) -> None:
    warnings.warn(
        f"taeda.utils.checkpoint.{name}: expected use_reentrant to be given, and got nothing. use_reentrant=False is "
        "taken, which is recommended. PyTorch takes True: pass use_reentrant=True for the same.",
        stacklevel=3,
    )


def checkpoint(
    function: Callable, *args: Any, use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """``function(*args, **kwargs)``, keeping only its arguments for the backward pass, which runs it again.

    Args:
        function: what to run. It must do the same both times.
        *args: its arguments.
        use_reentrant: False (also the default, with a warning) recomputes saved tensors when they are asked for,
            and works with everything that autograd can do. True runs a backward pass inside the backward pass; it needs
            an argument that requires grad and gives no gradient to tensors inside nested structures.
        context_fn: gives two context managers, for the first and the second run.
        determinism_check: ``"default"`` compares shapes and dtypes of what both runs save, ``"none"`` does not.
        debug: say in errors what was saved.
        early_stop: end the second run as soon as everything needed is there.
        **kwargs: for ``function``, except ``preserve_rng_state`` (default True): draw the same random numbers both
            times.
    Returns:
        What ``function`` gives.
    Raises:
        ValueError: ``determinism_check`` is another word, or an option does not go with ``use_reentrant=True``.
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint")
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        check_backward_validity(args)
        return CheckpointFunction.apply(function, preserve, *args)
    chosen = getattr(_settings, "early_stop", None)
    explain = getattr(_settings, "debug", None)
    return _without_reentry(
        function, args, kwargs, preserve, context_fn, determinism_check, debug if explain is None else explain,
        early_stop if chosen is None else chosen,
    )  # fmt: skip


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run ``functions`` (a Sequential or a list) one after the other in ``segments`` parts, all but the last as
    checkpoints.

    Args:
        functions: a Sequential, or a list of functions of one argument.
        segments: number of parts.
        input: the argument of the first.
        use_reentrant: as for :func:`checkpoint`.
        **kwargs: as for :func:`checkpoint`.
    Returns:
        What the last function gives.
    Raises:
        ValueError: there are fewer functions than segments.
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint_sequential")
        use_reentrant = False
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    layers: Sequence[Callable] = list(functions.children() if hasattr(functions, "children") else functions)
    if not 0 < segments <= len(layers):
        raise ValueError(
            f"checkpoint_sequential: expected 1 to {len(layers)} segments, as there are functions; got {segments}"
        )
    step = len(layers) // segments

    def run(start: int, stop: int) -> Callable:
        def part(x: Any) -> Any:
            for layer in layers[start:stop]:
                x = layer(x)
            return x

        return part

    for i in range(segments - 1):
        input = checkpoint(
            run(i * step, (i + 1) * step), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return run((segments - 1) * step, len(layers))(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices of the devices beside the CPU that the arguments are on, and the states of their generators."""
    found = sorted({number_of(x.device) for x in tree_leaves(args) if isinstance(x, Tensor)} & GENERATORS.keys())
    return [GENERATORS[n].device.index for n in found], [GENERATORS[n].get_state() for n in found]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set the states of the generators of devices beside the CPU.

    Args:
        devices: their indices.
        states: as :func:`get_device_states` gave them.
        device_type: of the devices. Default: the accelerator's.
    Raises:
        RuntimeError: there is no such device.
    """
    if devices and accelerator() is None:
        raise RuntimeError(
            f"set_device_states: expected no devices, since there is none beside the CPU; got {list(devices)}"
        )
    for index, state in zip(devices, states, strict=True):
        GENERATORS[number_of(device(index) if device_type is None else device(device_type, index))].set_state(state)
