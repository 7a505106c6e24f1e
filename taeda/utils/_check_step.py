"""``check_step``: runs a step of training once, and reports mistakes that raise no error."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from .. import _core, nn
from .._core import Tensor
from .._warn import caller_line
from ..autograd import is_grad_enabled
from ..autograd.anomaly import BACKWARD_MEND, MEND, origin_of_nan
from ..ops.creation import zeros_like
from ._calls import Watcher, tensors, watched

__all__ = ["Finding", "StepReport", "check_step"]

#: Ops whose result says what its values are, and those through which that is still so.
_KINDS = {
    "softmax": "softmax", "log_softmax": "log_softmax", "softmin": "softmax", "sigmoid": "sigmoid",
}  # fmt: skip
_KEEPING = frozenset("view reshape flatten squeeze unsqueeze transpose permute contiguous clone float".split())
_LOSSES = {
    "cross_entropy": ("softmax", "cross_entropy() takes scores and does the softmax itself",
                      "give it the scores, without softmax"),
    "binary_cross_entropy_with_logits": (
        "sigmoid", "binary_cross_entropy_with_logits() takes scores and does the sigmoid itself",
        "give it the scores, without sigmoid, or use binary_cross_entropy()"),
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One mistake.

    Attributes:
        kind: its name: ``"softmax before loss"``, ``"no zero_grad"``, ...
        text: what was seen.
        mend: what to write instead.
        module: the path of the module in which it was; empty outside.
        line: the line of the program, ``file:number``; empty where there is none.
    """

    kind: str
    text: str
    mend: str
    module: str = ""
    line: str = ""

    def __str__(self) -> str:
        where = [f"module {self.module}" if self.module else "", self.line]
        lines = [f"{self.kind}: {self.text}", f"  mend: {self.mend}", f"  where: {', '.join(filter(None, where))}"]
        return "\n".join(lines if any(where) else lines[:2])


class StepReport:
    """The result of :func:`check_step`. ``print`` shows it.

    Attributes:
        findings: the mistakes, in the order in which they were seen.
        result: the step's result.
    """

    def __init__(self, findings: list[Finding], result: Any) -> None:
        self.findings, self.result = findings, result

    @property
    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.findings]

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return "check_step: nothing was found"
        return "\n".join([f"check_step: {len(self)} found", *map(str, self.findings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .._html import pre, table

        if not self.findings:
            return pre(str(self))
        rows = [(f.kind, f.text, f.mend, f.module, f.line) for f in self.findings]
        return table(("Found", "What", "Mend", "Module", "Line"), rows)


class _Watch(Watcher):
    """The mode that sees ops, the hooks that see modules, and the watcher of the backward pass."""

    watches = True
    composites = True

    def __init__(self, model: Any, optimizers: list[Any]) -> None:
        super().__init__(model)
        self.findings: dict[tuple, Finding] = {}
        self.model, self.optimizers = model, optimizers
        self.params = dict(model.named_parameters()) if model is not None else {}
        self.called: set[int] = set()
        self.inside = False
        self.kinds: dict[int, tuple[Any, str]] = {}  # tensors by id: (weak reference, kind)
        self.nodes: dict[int, tuple[str, str, str]] = {}  # nodes of the graph by number: (op, module, line)
        self.readers: dict[int, list[tuple[Any, Any]]] = {}  # by address: tensors, with the nodes that may keep them
        self.nan = False
        self.task = -1
        self.backwards = 0
        self.stepped = False
        self.marks: dict[str, tuple[Any, int, bool]] = {}  # .grad before the step
        self.uncleared: list[str] = []
        self.reached: set[str] = set()
        self.zero: list[str] = []

    # ---- finding -----------------------------------------------------------------------------------------------------

    def found(self, kind: str, text: str, mend: str, module: str | None = None, line: str | None = None) -> None:
        module = self.module if module is None else module
        line = caller_line() if line is None else line
        self.findings.setdefault((kind, module, line), Finding(kind, text, mend, module, line))

    # ---- ops ---------------------------------------------------------------------------------------------------------

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        if self.inside or _core.is_mode_active() or _core.current_task() != -1:
            return _core.pass_through(self, op, args, kwargs)
        name = (getattr(op, "name", None) or op.__name__).lstrip("_")
        name = {"true_divide": "div", "power": "pow"}.get(name, name)
        self.inside = True
        try:
            self._before(name, args, kwargs)
            versions = self._versions(name, args)
            result = _core.pass_through(self, op, args, kwargs)
            self._after(name, args, kwargs, result, versions)
        finally:
            self.inside = False
        return result

    def _before(self, name: str, args: tuple, kwargs: dict) -> None:
        x = args[0] if args and isinstance(args[0], Tensor) else kwargs.get("input")
        if x is None:
            return
        if name in _LOSSES:
            kind, text, mend = _LOSSES[name]
            if self._kind(x) == kind:
                self.found(f"{kind} before loss", f"{text}: here it is done twice, and gradients are small", mend)
        elif name == "nll_loss" and x.is_floating_point() and x.numel():
            if self._kind(x) == "softmax" or (x > 0).any():
                self.found(
                    "probabilities into nll_loss", "nll_loss() takes logarithms of probabilities, which are at most 0",
                    "use log_softmax() in place of softmax(), or cross_entropy() on the scores",
                )  # fmt: skip
        elif name == "squeeze" and len(args) + len(kwargs) == 1 and x.dim() > 1 and 1 in x.shape:
            lost = "removed" if x.shape[0] == 1 else "would remove"
            self.found(
                "squeeze without dim", f"squeeze() of {list(x.shape)} {lost} the batch dimension of a batch of one",
                "say which dimension: squeeze(-1), say",
            )  # fmt: skip
        elif name in ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"):
            on = args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True))
            p = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
            if on and p > 0 and not is_grad_enabled():
                self.found(
                    "dropout in evaluation", f"{name}() drops values under no_grad(): results are random",
                    "call model.eval() before evaluation, and model.train() after it; F.dropout takes "
                    "training=self.training",
                )  # fmt: skip
        elif name in ("batch_norm", "native_batch_norm") and not is_grad_enabled():
            on = args[5] if len(args) > 5 else kwargs.get("training", False)
            if on is True and len(args) > 1 and args[1] is not None:
                self.found(
                    "batch norm in evaluation", "batch_norm() uses the statistics of the batch under no_grad(), and "
                    "changes the running ones", "call model.eval() before evaluation, and model.train() after it",
                )  # fmt: skip

    def _kind(self, t: Tensor) -> str:
        known = self.kinds.get(id(t))
        return known[1] if known is not None and known[0]() is t else ""

    def _versions(self, name: str, args: tuple) -> list[tuple[Any, int]] | None:
        """For an op that writes: the graph's tensors in the same memory, with their versions."""
        if not self.readers or not name.endswith("_") or not args or not isinstance(args[0], Tensor):
            return None
        known = self.readers.get(_address(args[0]), ())
        return [(t, t._version) for ref, _ in known if (t := ref()) is not None]

    def _after(self, name: str, args: tuple, kwargs: dict, result: Any, versions: Any) -> None:
        results, given = tensors(result), tensors((args, kwargs) if kwargs else args)
        if versions:
            self._check_write(args[0], versions)
        x = args[0] if args and isinstance(args[0], Tensor) else None
        kind = _KINDS.get(name, "") or (self._kind(x) if name in _KEEPING and x is not None else "")
        for t in results:
            if kind:
                self.kinds[id(t)] = (weakref.ref(t), kind)
            node = t.grad_fn
            if node is not None:
                self.nodes.setdefault(node._sequence_nr(), (name, self.module, caller_line()))
                read = weakref.ref(node)
                for other in (*given, t):
                    self.readers.setdefault(_address(other), []).append((weakref.ref(other), read))
            if not self.nan and _core.has_nan(t):
                self._first_nan(name, given)

    def _check_write(self, written: Tensor, versions: list[tuple[Any, int]]) -> None:
        """Report a write to a saved tensor that no version counter saw."""
        address = _address(written)
        if any(t._version != before for t, before in versions):
            return
        for _, ref in self.readers.get(address, ()):
            node = ref()
            saved = node.saved_items() if isinstance(node, _core.Node) else ()
            if any(_address(t) == address for _, t in saved):
                op, module, line = self.nodes.get(node._sequence_nr(), ("", "", ""))
                self.found(
                    "written behind autograd",
                    f"a tensor of shape {list(written.shape)} that {op}() keeps for the backward pass is changed "
                    f"through .data or detach() before it: gradients are wrong (kept at {line or module})",
                    "write after backward(), or to a clone(); without .data autograd sees the write",
                )  # fmt: skip
                return

    def _first_nan(self, name: str, inputs: list[Tensor]) -> None:
        self.nan = True
        self.found("NaN", f"{name}() {origin_of_nan(inputs)}", MEND)

    # ---- modules -----------------------------------------------------------------------------------------------------

    def enter(self, module: Any, args: Any) -> None:
        self.called.add(id(module))
        super().enter(module, args)

    # ---- backward ----------------------------------------------------------------------------------------------------

    class _Backward:
        """Told of every node."""

        def __init__(self, watch: _Watch) -> None:
            self.watch = watch

        def enter(self, name: str, number: int) -> tuple[str, int]:
            self.watch.begin_backward()
            return name, number

        def leave(self, place: Any) -> None:
            pass

        def weigh(self, place: tuple[str, int], found: tuple) -> None:
            watch = self.watch
            if watch.nan:
                return
            grads, made, _ = found
            if any(map(_core.has_nan, tensors(made))):
                watch.nan = True
                op, module, line = watch.nodes.get(place[1], ("", "", ""))
                given = any(map(_core.has_nan, tensors(grads)))
                came = "was given a NaN gradient" if given else "gives the first NaN"
                watch.found(
                    "NaN gradient", f"{place[0]}, the derivative of {op or 'an op'}(), {came} of the backward pass",
                    BACKWARD_MEND, module, line,
                )  # fmt: skip

    def begin_backward(self) -> None:
        task = _core.current_task()
        if task == self.task:
            return
        self.task = task
        self.backwards += 1
        if self.backwards > 1:
            return
        for name, (grad, version, given) in self.marks.items():
            p = self.params[name]
            if p.grad is grad and p.grad._version == version:
                self.uncleared.append(name)
                if not given:
                    p.grad = None  # the mark

    def mark(self) -> None:
        """Give parameters without a gradient one of zeros, to see whether the step clears it."""
        for name, p in self.params.items():
            if p.requires_grad and p.is_leaf and type(p.data) is Tensor and not p.is_meta:
                given = p.grad is not None
                if not given:
                    p.grad = zeros_like(p)
                self.marks[name] = (p.grad, p.grad._version, given)

    def accumulated(self, name: str) -> Callable:
        def hook(p: Any) -> None:
            if p.grad is None:  # the pass came here without a gradient
                return
            self.reached.add(name)
            if not p.grad.is_sparse and p.grad.numel() and not p.grad.any():
                self.zero.append(name)

        return hook


def _address(t: Tensor) -> int:
    return t.untyped_storage()._address() if t._without_memory is None else 0


def check_step(step: Callable[[], Any], model: nn.Module | None = None, optimizer: Any = None) -> StepReport:
    """Run ``step()`` once, and report mistakes in it that raise no error.

    It finds: softmax or sigmoid before a loss that does it itself; probabilities given to ``nll_loss``; gradients that
    are never cleared; dropout and batch norm in train mode under ``no_grad``; the first NaN, forward or backward, with
    the module and line it comes from; writes through ``.data`` to tensors that the backward pass needs; parameters that
    no optimiser has, or the optimiser's that the model has not; parameters without a gradient, or with one of zeros;
    ``squeeze()`` that also removes the dimension of a batch of one.

    It is a real step: parameters and the optimiser change as in any other.

    Args:
        step: takes no arguments, and does what a step of training (or an evaluation) does.
        model: the Module that is trained: gives names, and the checks of parameters and gradients.
        optimizer: the optimiser, or a list of them.
    Returns:
        A :class:`StepReport`; ``print`` it. Its ``findings`` are empty where nothing was found.

    Example:
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(4, 3), taeda.nn.Softmax(1))
        >>> x, y = taeda.randn(8, 4), taeda.randint(3, (8,))
        >>> report = taeda.utils.check_step(lambda: taeda.nn.functional.cross_entropy(model(x), y).backward(), model)
        >>> report.kinds
        ['softmax before loss']
    """
    optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [] if optimizer is None else [optimizer]
    watch = _Watch(model, optimizers)
    _check_parameters(watch)
    watch.mark()
    with ExitStack() as stack:
        for name, p in watch.params.items():
            if name in watch.marks:
                stack.callback(p.register_post_accumulate_grad_hook(watch.accumulated(name)).remove)
        for one in optimizers:
            handle = one.register_step_pre_hook(lambda *_: setattr(watch, "stepped", True))
            stack.callback(handle.remove)
        stack.enter_context(watched(watch))
        _core.watch_nodes(_Watch._Backward(watch))
        stack.callback(_core.watch_nodes, None)
        stack.enter_context(_core.modes([*_core.mode_stack(), watch]))
        result = step()
    _check_gradients(watch)
    return StepReport(list(watch.findings.values()), result)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def _check_parameters(watch: _Watch) -> None:
    if not watch.optimizers or watch.model is None:
        return
    owned = {id(p) for one in watch.optimizers for group in one.param_groups for p in group["params"]}
    missing = [name for name, p in watch.params.items() if p.requires_grad and id(p) not in owned]
    if missing:
        watch.found(
            "parameters without optimizer", f"no optimizer has {_some(missing)}: they are never trained",
            "make the optimizer after the model is complete, from model.parameters(); or set requires_grad=False",
            "", "",
        )  # fmt: skip
    known = {id(p) for p in watch.params.values()}
    if owned and not owned & known:
        watch.found(
            "optimizer of another model", "the optimizer has none of the model's parameters",
            "make the optimizer from this model's parameters(), after loading, copying or converting it", "", "",
        )  # fmt: skip


def _check_gradients(watch: _Watch) -> None:
    for name, (grad, version, given) in watch.marks.items():  # marks that are still there
        p = watch.params[name]
        if not given and p.grad is grad and grad._version == version:
            p.grad = None
    if not watch.backwards:
        return
    held = [name for name in watch.uncleared if watch.params[name].grad is not None and name in watch.reached]
    held = [name for name in held if watch.params[name].grad.any()]
    if held and watch.stepped and len(held) == len([n for n in watch.reached if n in watch.marks]):
        watch.found(
            "no zero_grad", "nobody clears the gradients: each step adds to those of all steps before",
            "call optimizer.zero_grad() before backward()", "", "",
        )  # fmt: skip
    missing = [name for name in watch.marks if name not in watch.reached]
    for path in dict.fromkeys(name.rpartition(".")[0] for name in missing):
        module = watch.model.get_submodule(path)
        names = [name for name in missing if name.rpartition(".")[0] == path]
        if id(module) in watch.called:
            text = f"{_some(names)}: the module was called, and the loss does not depend on it"
            mend = "look for detach(), no_grad(), .data, item(), argmax() or round() between it and the loss"
        else:
            text = f"{_some(names)}: the module was not called in this step"
            mend = "call it in forward(), or set requires_grad=False, or remove it"
        watch.found("no gradient", text, mend, path, "")
    if watch.zero:
        watch.found(
            "gradient of zeros", f"{_some(dict.fromkeys(watch.zero))}: the gradient is 0 everywhere",
            "look for units that are off (ReLU of negative numbers), masks of zeros, round() or // before the loss, "
            "and parameters that cancel, as a bias does in a difference of two outputs",
            "", "",
        )  # fmt: skip
