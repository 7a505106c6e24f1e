"""L-BFGS (Liu & Nocedal 1989) with an optional strong-Wolfe line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._core import contiguous_format
from .._typed import Tensor
from ..autograd import enable_grad, no_grad
from ..ops.creation import zeros_like
from ..ops.joining import cat
from ..ops.views import view_as_real
from .optimizer import Optimizer, checked, to_scalar

__all__ = ["LBFGS"]


class _Point(NamedTuple):
    """A point of the line search: step, loss, gradient, slope along the line."""

    t: Any  #: a number, or a tensor without dimensions
    loss: float
    grad: Tensor
    slope: Tensor


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """The minimum of the cubic through two points with their slopes, within bounds (Nocedal & Wright, eq. 3.59)."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    first, second = (a, b) if a.t <= b.t else (b, a)
    d2 = square.sqrt()
    t = second.t - (second.t - first.t) * ((second.slope + d2 - d1) / (second.slope - first.slope + 2 * d2))
    return min(max(t, low), high)


def _wolfe_step(
    evaluate: Callable[[Any], _Point], start: _Point, t: Any, d_norm: Tensor, tolerance: float, limit: int,
    c1: float = 1e-4, c2: float = 0.9,
) -> tuple[_Point, int]:  # fmt: skip
    """A step that satisfies the strong Wolfe conditions, or the best one found (Nocedal & Wright, alg. 3.5 and 3.6).

    Returns:
        The point, and how often the loss was computed.
    """

    def too_high(p: _Point) -> bool:
        return bool(p.loss > start.loss + c1 * p.t * start.slope)

    def flat(p: _Point) -> bool:
        return bool(abs(p.slope) <= -c2 * start.slope)

    previous, point, evaluations, done = start, evaluate(t), 1, False
    n = 0
    bracket: list[_Point] = []
    while n < limit:  # widen until an interval holds a good step
        if too_high(point) or (n > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if flat(point):
            bracket, done = [point], True
            break
        if point.slope >= 0:
            bracket = [previous, point]
            break
        t = _cubic_minimum(previous, point, (point.t + 0.01 * (point.t - previous.t), point.t * 10))
        previous, point = point, evaluate(t)
        evaluations += 1
        n += 1
    if n == limit:
        bracket = [start, point]
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    stuck = False
    while not done and n < limit:  # narrow it
        left, right = min(p.t for p in bracket), max(p.t for p in bracket)
        if (right - left) * d_norm < tolerance:
            break
        t = _cubic_minimum(bracket[0], bracket[1])
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin
        if near and (stuck or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            near = False
        stuck = near
        point = evaluate(t)
        evaluations += 1
        n += 1
        if too_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if flat(point):
                done = True
            elif point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    return bracket[low if len(bracket) > 1 else 0], evaluations


class LBFGS(Optimizer):
    """Limited-memory BFGS: Newton's method with a Hessian that is estimated from the last gradients.

    The direction is ``-H g``, where ``H`` approximates the inverse Hessian from the last ``history_size`` changes of
    parameters and gradients. A step needs a closure, which computes the loss, and calls it up to ``max_eval`` times.
    Good for smooth losses without noise (all data in each step). One parameter group only. Source: Nocedal & Wright
    2006, "Numerical Optimization", chapter 7.

    Args:
        params: the tensors to update. Any shape, floating-point or complex.
        lr: step size, or the first trial of the line search.
        max_iter: iterations in a step.
        max_eval: evaluations of the closure in a step; ``1.25 * max_iter`` if None.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where parameters or loss change by less.
        history_size: number of changes that are kept.
        line_search_fn: ``"strong_wolfe"``, or None for steps of size ``lr``.

    Raises:
        ValueError: there is more than one group, or the rate is negative.

    Examples:
        >>> w = taeda.tensor([-1.0, 2.0], requires_grad=True)  # Rosenbrock's valley: its minimum is at (1, 1)
        >>> optimizer = taeda.optim.LBFGS([w], max_iter=50, line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        ...     loss.backward()
        ...     return loss
        >>> first_loss = optimizer.step(closure)
        >>> bool(taeda.allclose(w.detach(), taeda.ones(2), atol=1e-2))
        True
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, checked(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        """All gradients in one vector, a complex one as pairs."""
        parts = []
        for p in self._params:
            grad = p.grad if p.grad is not None else zeros_like(p)
            parts.append((view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return cat(parts, 0)

    def _move(self, t: Any, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            target = view_as_real(p) if p.is_complex() else p
            n = target.numel()
            target.add_(direction[offset : offset + n].view(target.shape), alpha=t)
            offset += n

    def _search(self, closure: Callable, start: _Point, t: Any, direction: Tensor, limit: int) -> tuple[_Point, int]:
        """The line search from where the parameters are, which is where they are again afterwards."""
        origin = [p.clone(memory_format=contiguous_format) for p in self._params]

        def evaluate(t: Any) -> _Point:
            self._move(t, direction)
            loss, grad = float(closure()), self._flat_grad()
            for p, old in zip(self._params, origin, strict=True):
                p.copy_(old)
            return _Point(t, loss, grad, grad.dot(direction))

        tolerance = self.param_groups[0]["tolerance_change"]
        return _wolfe_step(evaluate, start, t, direction.abs().max(), tolerance, limit)

    def _direction(self, state: dict, memory: dict, grad: Tensor) -> Tensor:
        """Minus the approximate inverse Hessian times the gradient: the two-loop recursion."""
        if state["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        dirs, steps, ro = memory["old_dirs"], memory["old_stps"], memory["ro"]
        size = self.param_groups[0]["history_size"]
        y, s = grad.sub(memory["prev_flat_grad"]), memory["d"].mul(memory["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(dirs) == size:
                for kept in (dirs, steps, ro):
                    kept.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            memory["H_diag"] = ys / y.dot(y)
        q, al = grad.neg(), state.setdefault("al", [None] * size)
        for i in reversed(range(len(dirs))):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-al[i])
        r = q.mul(memory["H_diag"])
        for i in range(len(dirs)):
            r.add_(steps[i], alpha=al[i] - dirs[i].dot(r) * ro[i])
        return r

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to ``max_iter`` iterations.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns it.

        Returns:
            The loss at the start.
        """
        with no_grad():
            return self._step(enable_grad()(closure))

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, change, small = to_scalar(group["lr"]), group["tolerance_change"], group["tolerance_grad"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if float(grad.abs().max()) <= small:
            return first_loss
        keys = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")
        memory = {key: state.get(key) for key in keys}
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = memory["d"] = self._direction(state, memory, grad)
            memory["prev_flat_grad"] = grad.clone(memory_format=contiguous_format)
            previous = memory["prev_loss"] = loss
            t = memory["t"] = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(d)
            if slope > -change:
                break
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                limit = group["max_eval"] - evaluations
                point, used = self._search(closure, _Point(0, loss, grad, slope), t, d, limit)
                t = memory["t"] = point.t
                loss, grad = point.loss, point.grad
                self._move(t, d)
            else:
                self._move(t, d)
                if n != group["max_iter"]:  # the loss after the last iteration is not needed
                    loss = float(closure())
                    grad = self._flat_grad()
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if evaluations >= group["max_eval"] or float(grad.abs().max()) <= small:
                break
            if float(d.mul(t).abs().max()) <= change or abs(loss - previous) < change:
                break
        state.update(memory)
        return first_loss
