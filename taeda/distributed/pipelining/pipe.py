"""A model cut into stages at marks: traced by ``taeda.export``; each piece has the names of the model."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taeda.nn import Module

from ... import _core
from ...export import export
from ...export._capture import Capture, set_grad_enabled
from ...export.exported_program import _CodeGen
from ...fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from ...fx.graph import Graph
from ...fx.graph_module import GraphModule
from ...fx.node import Node, has_side_effect
from ...utils import _pytree as pytree
from .stage import PipelineStage

__all__ = ["Pipe", "SplitPoint", "build_stage", "pipe_split", "pipeline"]


class SplitPoint(enum.Enum):
    """The place of a cut in a model: before a module or after it."""

    BEGINNING = 1
    END = 2


@has_side_effect
def pipe_split() -> None:
    """Written in a ``forward``: the next stage begins here. Does nothing when the model runs as it is."""
    for mode in _core.mode_stack():
        if isinstance(mode, Capture):
            mode.create(pipe_split, (), {})


def _mark(*_: Any) -> None:
    pipe_split()


@contextlib.contextmanager
def _marked(module: Module, spec: dict[str, SplitPoint]) -> Iterator[None]:
    handles = []
    try:
        for name, point in spec.items():
            if not isinstance(point, SplitPoint):
                raise TypeError(f"pipeline: expected a SplitPoint for {name!r}, got {point!r}")
            part = module.get_submodule(name)
            hook = part.register_forward_pre_hook if point is SplitPoint.BEGINNING else part.register_forward_hook
            handles.append(hook(_mark))
        yield
    finally:
        for handle in handles:
            handle.remove()


class Pipe:
    """A model in stages; made by :func:`pipeline`."""

    def __init__(self, stages: list[GraphModule]) -> None:
        self._stages = stages
        self.num_stages = len(stages)

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage. It has the model's parameters, under the same names.

        Args:
            stage_idx: the number of the stage, from 0.
        Returns:
            The module.
        Raises:
            ValueError: there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}: expected 0 to {self.num_stages - 1}")
        return self._stages[stage_idx]

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """The stage with its module moved to ``device``."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self, device, group)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """All stages, one after the other, in this process."""
        output: Any = self._stages[0](*args, **kwargs)
        for stage in self._stages[1:]:
            output = stage(*(output if isinstance(output, tuple) else (output,)))
        return output

    __call__ = forward

    def __repr__(self) -> str:
        return f"Pipe({self.num_stages} stages)"


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: Any, device: Any, group: Any = None
) -> PipelineStage:
    """A :class:`PipelineStage` of ``stage_module``, which is moved to ``device``."""
    return PipelineStage(stage_module.to(device), stage_index, pipe_info.num_stages, device, group=group)


def pipeline(
    module: Module, mb_args: tuple[Any, ...], mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None, split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:  # fmt: skip
    """Cut a model into stages.

    A value that a later stage needs of an earlier one goes through all stages between. So does a parameter that several
    stages use: it lies on the first of them, and gets one gradient.

    Args:
        module: any that ``taeda.export`` can trace.
        mb_args: an example of one microbatch.
        mb_kwargs: its keyword arguments.
        split_spec: names of modules, and whether to cut before or after each; otherwise calls of :func:`pipe_split`
            say where.
        split_policy: gets the traced module and gives one with ``pipe_split`` calls in its graph.
    Returns:
        The stages.
    Raises:
        ValueError: both ``split_spec`` and ``split_policy`` are given.
        AttributeError: there is no module of such a name.
        RuntimeError: a stage would have no step, or a cut lies within ``no_grad()``.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    with _marked(module, split_spec or {}):
        traced = export(module, tuple(mb_args), mb_kwargs or {}).module()
    if split_policy is not None:
        traced = split_policy(traced)
    return Pipe(_cut(traced))


def _stage_of_nodes(graph: Graph) -> dict[Node, int]:
    """The stage of each node. Inputs lie on the first, parameters and buffers where they are used first."""
    places: dict[Node, int] = {}
    stage, empty, gradients = 0, True, True
    for node in graph.nodes:
        if node.target is pipe_split:
            if empty or not gradients:
                reason = "it has no steps" if empty else "the cut lies within no_grad()"
                raise RuntimeError(f"pipeline: cannot end stage {stage} there: {reason}")
            stage, empty = stage + 1, True
        elif node.op in ("call_function", "call_method", "call_module") and node.name != "_guards_fn":
            places[node], empty = stage, False
            if node.target is set_grad_enabled:
                gradients = node.args[0] is True
        elif node.op == "placeholder":
            places[node] = 0
    if empty:
        raise RuntimeError(f"pipeline: stage {stage} has no steps")
    for node in graph.nodes:
        if node.op == "get_attr":
            places[node] = min((places[user] for user in node.users if user in places), default=0)
    return places


def _cut(traced: GraphModule) -> list[GraphModule]:
    places = _stage_of_nodes(traced.graph)
    count = max(places.values()) + 1
    result = next(n for n in traced.graph.nodes if n.op == "output")
    nodes = [n for n in traced.graph.nodes if n in places]
    until = {n: max((places.get(u, count - 1 if u is result else 0) for u in n.users), default=0) for n in nodes}
    stages: list[GraphModule] = []
    coming: list[Node] = []
    for stage in range(count):
        own = [n for n in nodes if places[n] == stage]
        going = [n for n in (*coming, *own) if until[n] > stage]
        stages.append(_module(traced, own, coming, result if stage == count - 1 else going))
        coming = going
    return stages


def _module(traced: GraphModule, own: Sequence[Node], coming: Sequence[Node], result: Node | list[Node]) -> GraphModule:
    """The steps ``own`` as a module, whose inputs come from the stage before."""
    graph = Graph()
    made = {n: graph.placeholder(n.name) for n in coming}
    for n in own:
        made[n] = graph.node_copy(n, made.__getitem__)
    whole: Any = traced.graph._codegen
    out_spec = None
    if isinstance(result, Node):
        graph.node_copy(result, made.__getitem__)
        out_spec = whole.pytree_info.out_spec
    else:
        graph.output(tuple(made[n] for n in result))
    if coming:
        names, form = ["self", *(made[n].name for n in coming)], pytree.tree_structure([0] * len(coming))
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, form, out_spec)))
    else:
        graph.set_codegen(_CodeGen(whole.positional, whole.named, whole.pytree_info.in_spec, out_spec))
    return GraphModule(traced, graph)
