"""Optimisers whose update of one element depends on that element alone: one rule each, run by one kernel over all
parameters.

A rule is a function ``rule(math, flags, scalars, p, g, *state) -> (p, *state)`` written in operators and in the few
functions of ``math``. The same function is compiled to the fused kernel (``taeda/kernels/optim.py``), which does the
whole step in one launch, and is run on tensors where the kernel does not apply: with ``differentiable=True``, under a
recording mode, and for parameters with overlapping elements or state of another dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taeda._core import current_mode, is_dense_tensor
from taeda._core.optim import Plan, covered
from taeda.ops.devices import at, number_of
from taeda.ops.parts import OfParts
from taeda.ops.updates import update_all

from .._core import float32, float64, get_default_dtype, preserve_format
from .._typed import Tensor
from ..autograd import no_grad, set_grad_enabled
from ..kernels import optim as kernels
from ..ops import extrema, indexing
from ..ops.creation import zeros_like
from ..ops.exchange import tensor
from ..ops.views import view_as_complex, view_as_real
from .optimizer import Optimizer, refuse_capture

_REAL = {"complex64": "float32", "complex128": "float64"}
_FLOATS = ("float16", "bfloat16", "float32", "float64")


class TensorMath:
    """The functions that rules use, on tensors."""

    @staticmethod
    def sqrt(x: Tensor) -> Tensor:
        """Square root."""
        return x.sqrt()

    @staticmethod
    def abs(x: Tensor) -> Tensor:
        """Absolute value."""
        return x.abs()

    @staticmethod
    def sign(x: Tensor) -> Tensor:
        """-1, 0 or 1."""
        return x.sign()

    @staticmethod
    def maximum(a: Tensor, b: Tensor | float) -> Tensor:
        return extrema.maximum(a, b) if isinstance(b, Tensor) else a.clamp(min=b)

    @staticmethod
    def minimum(a: Tensor, b: Tensor | float) -> Tensor:
        return extrema.minimum(a, b) if isinstance(b, Tensor) else a.clamp(max=b)

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        if isinstance(condition, bool):
            return a if condition else b
        return indexing.where(condition, a, b)

    @staticmethod
    def fma(a: Any, b: Any, c: Any) -> Any:
        """``a * b + c``."""
        return a * b + c


def descent(x: Any, p: Any, g: Any, weight_decay: Any, maximize: bool) -> Any:
    """The direction of descent: the gradient (its negative to ``maximize``) plus ``weight_decay`` (None: no decay)
    times ``p``.
    """
    g = -g if maximize else g
    return g if weight_decay is None else x.fma(weight_decay, p, g)


class ElementwiseOptimizer(Optimizer):
    """An optimiser given by a rule. A subclass defines:

    - ``_rule`` and, with the class keyword arguments ``rule=`` and ``scalars=``, the number of its scalars;
    - ``_counters``: names of one-element state tensors, such as ``step``;
    - ``_flags(group)``: what the kernel is specialised on, a tuple of bools (else whether there is weight decay,
      ``maximize``);
    - ``_states(flags)``: names of the state tensors, in the rule's order;
    - ``_init_state(group, p, state)``: fill the state of a new parameter;
    - ``_scalars(group, counters)``: the counters after this step, and the scalars.

    Raises:
        ValueError: an option is out of its range, or there are no parameters, or one is no leaf.
        TypeError: ``params`` is one tensor, or holds something that is no tensor.
    """

    _counters: tuple[str, ...] = ("step",)
    _recorded: tuple[str, ...] = ()  # counters whose gradient ``differentiable=True`` records, too
    _by_rows = False  # a sparse gradient updates the entries that it has, and leaves the others and their state alone
    _rule: Any
    _nscalars: int
    _kernels: Any

    def __init_subclass__(cls, rule: Any = None, scalars: int = 0, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if rule is not None:
            cls._rule = staticmethod(rule)
            cls._nscalars = scalars
            cls._kernels = None  # made at the first step: importing an optimiser should load no kernels

    @staticmethod
    def _flags(group: dict) -> tuple:
        return group["weight_decay"] != 0, bool(group["maximize"])

    @staticmethod
    def _states(flags: tuple) -> tuple[str, ...]:
        raise NotImplementedError

    def _init_state(self, group: dict, p: Tensor, state: dict) -> None:
        """Counters at zero, state tensors of zeros."""
        state["step"] = new_counter(0.0)
        for name in self._states(self._flags(group)):
            state[name] = zeros_like(p, memory_format=preserve_format)

    @staticmethod
    def _scalars(group: dict, counters: tuple) -> tuple[tuple, tuple]:
        raise NotImplementedError

    def _fresh(self, flags: tuple, state: dict) -> tuple:
        """The flags for a parameter whose state tensors do not exist yet, where its first step differs."""
        return flags

    @staticmethod
    def _check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
        """PyTorch's rules for combining the three."""
        if fused and differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_plans", None)
        for group in self.param_groups:
            for key, value in self.defaults.items():
                group.setdefault(key, value)
            for p in group["params"]:
                own = self.state.get(p) or {}
                for name in own.keys() & self._counters if own else ():
                    if not isinstance(own[name], Tensor):  # older files hold a number
                        own[name] = new_counter(float(own[name]))
                    elif not own[name].is_meta:  # steps are counted on the CPU
                        own[name] = own[name].cpu()

    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss again and returns it.

        Returns:
            The loss, if there is a closure.
        """
        loss = None if closure is None else self._loss(closure)
        plans = self.__dict__.setdefault("_plans", {})
        for group in self.param_groups:
            flags = self._flags(group)
            plan = plans.get(id(group))
            if plan is None or not plan.step(self, group, flags):
                plans.pop(id(group), None)
                made = self._plan(group, flags)
                if made is not None:
                    plans[id(group)] = made
        return loss

    def _plan(self, group: dict, flags: tuple) -> _GroupPlan | None:
        """Do one step the long way round, and prepare the short one for the next if there can be one."""
        differentiable = group.get("differentiable", False)
        with set_grad_enabled(bool(differentiable)):
            buckets: dict[tuple, list] = {}
            in_parts: dict[tuple, list] = {}  # tensors whose class runs the op on their parts
            watched = current_mode() is not None
            stable = not differentiable and not watched
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p] if self._counters or self._states(flags) else {}
                own = flags
                if any(name not in state for name in (*self._counters, *self._states(flags))):
                    refuse_capture(type(self).__name__)
                if not state and (self._counters or self._states(flags)):
                    self._init_state(group, p, state)
                if any(name not in state for name in self._states(flags)):
                    own = self._fresh(flags, state)
                    stable = stable and own == flags
                    for name in self._states(own):
                        state.setdefault(name, zeros_like(p, memory_format=preserve_format))
                if not differentiable and isinstance(p, OfParts) and p._same_elements:
                    stable = False
                    in_parts.setdefault((p.dtype.name, own), []).append(p)
                elif not differentiable and not p.grad.is_sparse and (watched or self._fits(p, state, own)):
                    buckets.setdefault((p.dtype.name, own, str(p.device)), []).append(p)
                else:
                    stable = False
                    self._one(group, own, p, state)
            for (_, own), params in in_parts.items():
                self._as_op(group, own, params)
            if watched:
                for (_, own, _), params in buckets.items():
                    self._as_op(group, own, params)
                return None
            launches = [self._launch(dtype, own, params) for (dtype, own, _), params in buckets.items()]
            whole = _GroupPlan(group, flags, launches)
            late = [plan for plan in launches if not plan.ready(self.state)]
            for plan in launches:
                if plan not in late:
                    plan.run(self, group)
            for plan in late:  # a gradient with another dtype or layout than its parameter
                stable = False
                for p in plan.tensors:
                    self._one(group, plan.flags, p, self.state.get(p, {}))
        return whole if stable and launches else None

    def _fits(self, p: Tensor, state: dict, flags: tuple) -> bool:
        name = p.dtype.name
        if _REAL.get(name, name) not in _FLOATS or not is_dense_tensor(p):
            return False
        return all(state[s].dtype == p.dtype for s in self._states(flags))

    def _launch(self, dtype: str, flags: tuple, params: list[Tensor]) -> _Launch:
        names = self._states(flags)
        states = [tuple(self.state[p][name] for name in names) if names else () for p in params]
        with at(number_of(params[0].device)):
            kernel, chunk = self._kernel(flags, dtype), kernels.chunk()
        plan = _Launch(kernel, params, states, names, self._counters, self._nscalars, chunk)
        plan.flags, plan.tensors = flags, params
        return plan

    def _as_op(self, group: dict, flags: tuple, params: list[Tensor]) -> None:
        """The update of parameters of one dtype as one op, for the modes of this thread."""
        own = [self.state.get(p, {}) for p in params]
        states = [[state[name] for name in self._states(flags)] for state in own]
        scalars = [self._counted(group, state) for state in own]
        update_all(params, [p.grad for p in params], states, scalars, _Rule(self, flags))

    def _counted(self, group: dict, state: dict) -> tuple:
        """The rule's scalars of this step, which is counted."""
        refuse_capture(type(self).__name__)
        return _counted(type(self), group, [state[name] for name in self._counters])

    def _kernel(self, flags: tuple, dtype: str) -> int:
        """The address of the kernel of the rule for parameters of that dtype."""
        cls = type(self)
        if cls._kernels is None:
            cls._kernels = kernels.table(cls.__name__, cls._rule, lambda flags: len(cls._states(flags)), cls._nscalars)
        return cls._kernels(flags, _REAL.get(dtype, dtype))

    def _one(self, group: dict, flags: tuple, p: Tensor, state: dict) -> None:
        """The update of one parameter in tensor operations."""
        differentiable = group.get("differentiable", False)
        scalars = self._counted(group, state)
        grad: Any = p.grad
        names = self._states(flags)
        if grad is not None and grad.is_sparse:
            self._sparse(group, flags, scalars, p, grad, [state[name] for name in names])
            return
        if not differentiable:
            _Rule(self, flags).update(p, grad, [state[name] for name in names], scalars)
            return
        moved, *after = _Rule(self, flags).after(p.clone(), grad, [state[name] for name in names], scalars)
        p.copy_(moved)
        state.update(zip(names, after, strict=True))

    def _sparse(self, group: dict, flags: tuple, scalars: tuple, p: Tensor, grad: Any, states: list[Tensor]) -> None:
        """The update of the entries that a sparse gradient has, by the same rule."""
        self._check_sparse(group)
        grad = grad.coalesce()
        places = tuple(grad.indices().unbind(0))
        with no_grad():
            before = [t[places] for t in (p, *states)]
            after = self._rule(TensorMath, flags, scalars, before[0], grad.values(), *before[1:])
            for t, values in zip((p, *states), after, strict=True):
                t[places] = values

    def _check_sparse(self, group: dict) -> None:
        """Refuse sparse gradients where the rule, or an option, would have to see every entry."""
        name = type(self).__name__
        if not self._by_rows:
            raise RuntimeError(f"{name} does not support sparse gradients, please consider SparseAdam instead")
        if group.get("weight_decay", 0) != 0:
            raise RuntimeError(f"{name}: weight_decay option is not compatible with sparse gradients")


class _Rule(NamedTuple):
    """The rule of an optimiser with its flags, as the op that does a step takes it."""

    optimizer: ElementwiseOptimizer
    flags: tuple

    def kernel(self, dtype: str) -> int:
        """The address of the kernel for parameters of that dtype; 0 where there is none."""
        return self.optimizer._kernel(self.flags, dtype) if _REAL.get(dtype, dtype) in _FLOATS else 0

    def after(self, p: Tensor, grad: Tensor, states: list[Tensor], scalars: tuple) -> list[Tensor]:
        """The parameter and its state after a step, in tensor operations."""
        given = [p, grad, *states]
        if p.is_complex():
            given = [view_as_real(t.resolve_conj()) for t in given]
        found = self.optimizer._rule(TensorMath, self.flags, scalars, *given)
        return [view_as_complex(t.contiguous()) for t in found] if p.is_complex() else list(found)

    def update(self, p: Tensor, grad: Tensor, states: list[Tensor], scalars: tuple) -> None:
        """The same in place."""
        for target, value in zip([p, *states], self.after(p, grad, states, scalars), strict=True):
            target.copy_(value)


class _Launch(Plan):
    """A Plan that remembers the flags and tensors that it was made for."""

    flags: tuple
    tensors: list


class _GroupPlan:
    """The launches of one parameter group, valid while its tensors, flags and gradients' presence stay the same."""

    def __init__(self, group: dict, flags: tuple, launches: list[_Launch]):
        self.flags = flags
        self.launches = launches
        self.known = list(group["params"])
        self.has_grad = bytes(p.grad is not None for p in self.known)

    def step(self, optimizer: ElementwiseOptimizer, group: dict, flags: tuple) -> bool:
        """Do the step if the plan still fits."""
        if flags != self.flags or not covered(group["params"], self.known, self.has_grad) or current_mode():
            return False
        state = optimizer.state
        for launch in self.launches:
            if not launch.ready(state):
                return False
        for launch in self.launches:
            launch.run(optimizer, group)
        return True


def step_lists(
    cls: type[ElementwiseOptimizer], given: dict[str, Any], params: list, grads: list, states: Sequence[list],
    *counters: list, **options: Any,
) -> None:  # fmt: skip
    """One step of ``cls`` on lists of tensors, without an optimiser. It writes to these tensors.

    Args:
        cls: whose rule.
        given: the options by the names that groups have, among others; ``options`` are more of them.
        params: tensors.
        grads: tensors of the same sizes.
        states: for each of the rule's state tensors a list; None in it: the first step, which makes the tensor.
        counters: for each counter of ``cls`` a list of tensors.
    Raises:
        RuntimeError: a counter is not a tensor.
    """
    if not all(isinstance(step, Tensor) for steps in counters for step in steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    if given.get("foreach") and given.get("fused"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    group, differentiable = given | options, bool(given.get("differentiable"))
    scale, found_inf = given.get("grad_scale"), given.get("found_inf")
    if found_inf is not None and found_inf.item():
        return
    flags, rule = cls._flags(group), object.__new__(cls)
    buckets: dict[tuple, list[tuple]] = {}
    with set_grad_enabled(differentiable):
        for i, (p, grad) in enumerate(zip(params, grads, strict=True)):
            scalars = _counted(cls, group, [steps[i] for steps in counters])
            grad, own_flags = grad if scale is None else grad / scale, flags
            for state in states:
                if state[i] is None:
                    state[i] = zeros_like(p, memory_format=preserve_format)
                    own_flags = rule._fresh(flags, {})
            own = [state[i] for state in states]
            if grad.is_sparse:
                rule._sparse(group, own_flags, scalars, p, grad, own)
            elif differentiable:
                _Rule(rule, own_flags).update(p, grad, own, scalars)
            else:
                buckets.setdefault((p.dtype.name, own_flags), []).append((p, grad, own, scalars))
        for (_, own_flags), bucket in buckets.items():
            update_all(*map(list, zip(*bucket, strict=True)), _Rule(rule, own_flags))


def _counted(cls: type[ElementwiseOptimizer], group: dict, counters: list[Tensor]) -> tuple:
    """The scalars of one step of ``cls``, which its counters count."""
    follows = group.get("differentiable", False)
    before = [
        t.clone() if follows and t.requires_grad and name in cls._recorded else float(t)
        for name, t in zip(cls._counters, counters, strict=True)
    ]
    after, scalars = cls._scalars(group, tuple(before))
    for t, value in zip(counters, after, strict=True):
        if isinstance(value, Tensor):
            t.copy_(value)
        else:
            with no_grad():
                t.fill_(value)
    return scalars


def new_counter(value: float) -> Tensor:
    """A step count: a one-element tensor, as PyTorch keeps it."""
    dtype = float64 if get_default_dtype() == float64 else float32
    return tensor(value, dtype=dtype)


def number(x: Any, group: dict) -> Any:
    """An option as a number, unless it is a Tensor through which gradients flow."""
    if not isinstance(x, Tensor):
        return x
    return x if group.get("differentiable") else x.item()
