"""``functorch.compile``: functions whose forward and backward graphs are handed to compilers of the caller's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor, nn
from taeda.fx import Graph, GraphModule, Node
from taeda.fx.experimental.proxy_tensor import make_fx
from taeda.fx.node import map_arg
from taeda.jit import trace
from taeda.utils import _pytree as pytree

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "default_partition",
    "make_boxed_compiler", "make_boxed_func", "min_cut_rematerialization_partition", "nop", "simple_ts_compile",
    "ts_compile",
]  # fmt: skip


def nop(fx_g: GraphModule, _: Any) -> Callable:
    """The graph as it is: a compiler that does nothing."""
    return make_boxed_func(fx_g)


def make_boxed_func(f: Callable) -> Callable:
    """``f`` with its arguments in one list."""

    def boxed(args: Sequence) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take their arguments in one list."""

    @functools.wraps(compiler)
    def compile(fx_g: GraphModule, inputs: Sequence) -> Callable:
        made = compiler(fx_g, inputs)
        return made if getattr(made, "_boxed_call", False) else make_boxed_func(made)

    return compile


def ts_compile(fx_g: GraphModule, inps: Sequence) -> Callable:
    """The graph traced by ``taeda.jit``."""
    return make_boxed_func(trace(fx_g, tuple(inps), check_trace=False))


simple_ts_compile = ts_compile


def default_partition(
    joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[GraphModule, GraphModule]:
    """The graph of a function and its derivative as two: what does not depend on the results' gradients, and the rest.

    Args:
        joint_module: gives results and gradients; its inputs are those of the function, and gradients of its results,
            whose names begin with ``tangents``.
        num_fwd_outputs: how many results the function has.
    Returns:
        The forward graph, which also gives what the other one needs of it, and the backward graph.
    """
    nodes = list(joint_module.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    tangents = [n for n in inputs if n.name.startswith("tangents")]
    late = set(tangents)
    for n in nodes:
        if n.op not in ("placeholder", "output") and any(x in late for x in n.all_input_nodes):
            late.add(n)
    results = list(nodes[-1].args[0])
    forward, backward = results[:num_fwd_outputs], results[num_fwd_outputs:]
    early = [n for n in nodes if n not in late and n.op != "output"]
    wanted = {x for n in late if n.op != "placeholder" for x in n.all_input_nodes}
    wanted |= {x for x in backward if isinstance(x, Node)}
    saved = [n for n in early if n in wanted and n.op != "get_attr"]
    kept = [n for n in early if n.op == "get_attr"]
    first = _part(joint_module, [n for n in inputs if n not in late], early, [*forward, *saved])
    second = _part(joint_module, [*saved, *tangents], [*kept, *(n for n in nodes if n in late)], backward)
    return first, second


min_cut_rematerialization_partition = default_partition


def _part(module: GraphModule, inputs: list[Node], nodes: list[Node], results: list[Any]) -> GraphModule:
    graph, values = Graph(), dict[Node, Node]()
    for n in inputs:
        values[n] = graph.placeholder(n.name)
    for n in nodes:
        if n.op != "placeholder" and n not in values:
            values[n] = graph.node_copy(n, values.__getitem__)
    graph.output(tuple(map_arg(x, values.__getitem__) for x in results))
    graph.eliminate_dead_code()
    return GraphModule(module, graph)


def _call(compiled: Callable, args: Sequence) -> Sequence:
    made = compiled(list(args)) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    return made if isinstance(made, (tuple, list)) else (made,)


class _Compiled:
    """A function of tensors, compiled once for each form of its arguments."""

    def __init__(self, fn: Callable, forward: Callable, backward: Callable, partition: Callable, table: Any) -> None:
        self.fn, self.forward, self.backward, self.partition, self.table = fn, forward, backward, partition, table
        self.known: dict[Any, tuple[Callable, Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        grad = taeda.is_grad_enabled()
        forms = tuple(
            (tuple(x.shape), x.stride(), x.dtype, x.requires_grad and grad) if isinstance(x, Tensor) else (type(x), x)
            for x in leaves
        )
        key = spec, forms
        if key not in self.known:
            with taeda.random.fork_rng():
                self.known[key] = self._made(leaves, spec, grad)
        run, result = self.known[key]
        return pytree.tree_unflatten(run([x for x in leaves if isinstance(x, Tensor)]), result())

    def _made(self, leaves: list, spec: Any, grad: bool) -> tuple[Callable, Any]:
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        tensors = [leaves[i] for i in places]
        found: list[Any] = []

        def flat(*primals: Tensor) -> list:
            whole = list(leaves)
            for i, x in zip(places, primals, strict=True):
                whole[i] = x
            args, kwargs = pytree.tree_unflatten(whole, spec)
            results, out = pytree.tree_flatten(self.fn(*args, **kwargs))
            found[:] = [out]
            return results

        differentiable = [i for i, x in enumerate(tensors) if x.requires_grad and grad]
        primals = [
            x.detach().clone().requires_grad_(i in differentiable) for i, x in enumerate(tensors)
        ]  # may be written to
        if not differentiable:
            compiled = self.forward(make_fx(flat, decomposition_table=self.table)(*primals), primals)
            return lambda xs: _call(compiled, xs), lambda: found[0]
        with taeda.enable_grad():
            examples = [taeda.empty_like(x) for x in flat(*primals) if isinstance(x, Tensor) and x.requires_grad]
        count = [0]

        def joint(primals: list, tangents: list) -> tuple:
            with taeda.enable_grad():
                results = flat(*primals)
                count[0] = len(results)
                ends = [x for x in results if isinstance(x, Tensor) and x.requires_grad]
                grads = taeda.autograd.grad(ends, [primals[i] for i in differentiable], tangents, allow_unused=True)
            return *results, *grads

        module = make_fx(joint, decomposition_table=self.table)(primals, examples)
        first, second = self.partition(module, (primals, examples), num_fwd_outputs=count[0])
        return self._function(first, second, primals, differentiable, count[0]), lambda: found[0]

    def _function(
        self, first: GraphModule, second: GraphModule, primals: list, differentiable: list[int], count: int
    ) -> Callable:
        forward, state = self.forward(first, primals), dict[str, Any]()
        compiler, number = self.backward, len(primals)

        class Compiled(taeda.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *xs: Any) -> Any:
                made = list(_call(forward, xs))
                results, saved = made[:count], made[count:]
                ctx.tensors = saved
                tracked = [isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()) for x in results]
                ctx.mark_non_differentiable(
                    *(x for x, t in zip(results, tracked, strict=True) if isinstance(x, Tensor) and not t)
                )
                ctx.tracked = tracked
                return tuple(results)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                given = [*ctx.tensors, *(g for g, t in zip(grads, ctx.tracked, strict=True) if t)]
                if "backward" not in state:
                    state["backward"] = compiler(second, given)
                found: list[Any] = [None] * number
                for i, g in zip(differentiable, _call(state["backward"], given), strict=True):
                    found[i] = g
                return tuple(found)

        return lambda xs: Compiled.apply(*xs)


def aot_function(
    fn: Callable, fw_compiler: Callable, bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition, decompositions: dict | None = None, **options: Any,
) -> Callable:  # fmt: skip
    """``fn``, whose graphs are handed to compilers at its first call with arguments of each form.

    Args:
        fn: a function of tensors, and of trees of them.
        fw_compiler: ``compiler(graph_module, example_inputs)`` gives a function of tensors that gives a tuple; of one
            list where it has a true attribute ``_boxed_call``.
        bw_compiler: the same for the derivative; ``fw_compiler`` by default.
        partition_fn: makes two graphs of the one of the function and its derivative.
        decompositions: from ops to functions that replace them.
        **options: accepted.
    """
    made = _Compiled(fn, fw_compiler, bw_compiler or fw_compiler, partition_fn, decompositions)
    return functools.wraps(fn)(lambda *args, **kwargs: made(*args, **kwargs)) if hasattr(fn, "__name__") else made


compiled_function = aot_function


class _Module(nn.Module):
    def __init__(self, orig_module: nn.Module, *compilers: Any, **options: Any) -> None:
        super().__init__()
        self.orig_module = orig_module

        def call(state: dict, args: tuple, kwargs: dict) -> Any:
            return taeda.func.functional_call(orig_module, state, args, kwargs)

        self.__dict__["compiled_f"] = aot_function(call, *compilers, **options)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        state = {**dict(self.orig_module.named_parameters()), **dict(self.orig_module.named_buffers())}
        return self.compiled_f(state, args, kwargs)


def aot_module(mod: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """:func:`aot_function` of a module: one with the same parameters."""
    return _Module(mod, *args, **kwargs)


compiled_module = aot_module


def aot_module_simplified(
    mod: nn.Module, args: Any, fw_compiler: Callable, bw_compiler: Callable | None = None, **options: Any
) -> Callable:
    """The module of :func:`aot_module`, as a function; ``args`` are example arguments."""
    known = {k: v for k, v in options.items() if k in ("partition_fn", "decompositions") and v is not None}
    return _Module(mod, fw_compiler, bw_compiler, **known)
