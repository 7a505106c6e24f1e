"""Several pointwise ops as one kernel: the schedule of one, whose body is the ops one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .build import build
from .ir import Function
from .pointwise import Body, Number, _Schedule, cast, part
from .target import here


class Step(NamedTuple):
    """An op of a fused kernel.

    Attributes:
        body: as of :func:`~taeda.kernels.pointwise.pointwise`.
        compute: the dtype that it works in.
        dtype: that of its result.
        sources: for each operand ``("leaf", number of a memory operand)``, ``("node", number of a step before)``, or
            None: a number.
    """

    body: Body
    compute: str
    dtype: str
    sources: tuple[tuple[str, int] | None, ...]


class _Fused(_Schedule):
    def __init__(self, f: Function, steps: Sequence[Step], outs: Sequence[int], leaves: Sequence[str], classes: str):
        self.steps, self.written = steps, outs
        widest = max((step.compute for step in steps), key=lambda name: part(name).bytes)
        super().__init__(f, lambda: (), [steps[i].dtype for i in outs], leaves, widest, classes)

    def _params(self, at: int) -> list[Number]:
        return numbers_of(self.f, self.steps, at)

    def apply(self, loaded: Sequence[Number], lanes: int) -> list[Number]:
        """All steps on one vector of each memory operand."""
        params = self.wide_params if lanes == self.lanes else self.params
        results = apply_steps(self.f, self.steps, loaded, params, lanes)
        return [self._splat(results[i], lanes) for i in self.written]


def numbers_of(f: Function, steps: Sequence[Step], at: int) -> list[Number]:
    """The numbers of all steps in order, two words each from word ``at`` of a kernel's arguments on."""
    types = [part(step.compute) for step in steps for _ in range(step.sources.count(None))]
    return [f.scalar(at + 2 * i, t) for i, t in enumerate(types)]


def apply_steps(
    f: Function, steps: Sequence[Step], loaded: Sequence[Number], params: Sequence[Number], lanes: int
) -> list[Number]:
    """The result of each step, from one vector of each leaf and the numbers of all steps in order."""
    numbers, results = iter(params), []
    for step in steps:
        args = []
        for source in step.sources:
            if source is None:
                x = next(numbers)
            else:
                x = cast(loaded[source[1]] if source[0] == "leaf" else results[source[1]], step.compute)
            args.append(f.splat(x, lanes))
        results.append(cast(step.body(*args), step.dtype))
    return results


def build_fused(
    steps: Sequence[Step], outs: Sequence[int], leaves: Sequence[str], classes: str, name: str = "fused"
) -> int:
    """The address of a compiled kernel of several pointwise ops, none in a dtype that is only stored.

    Args:
        steps: the ops, each after those that it reads.
        outs: the numbers of the steps whose results are written.
        leaves: the dtypes of what is read from memory.
        classes: a letter per memory operand, outputs first, as for :func:`~taeda.kernels.pointwise.pointwise`.
        name: what a profile calls it.
    """

    def write() -> Function:
        f = Function(vector_bytes=here().vector_bytes)
        f.label = name
        _Fused(f, steps, outs, leaves, classes).emit()
        return f

    return build(write(), write)
