"""CUDA graphs: work that is captured once, and launched as a whole, without the cost of its calls.

A graph reads and writes the memory that its work had when it was captured. So inputs are copied into the tensors that
the capture read, and results are in the tensors that it made. Their memory belongs to the graph. Random numbers go on
from the generator's state in each launch, as those of calls would.
"""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from .._core.module import ModuleBase
from .._core.random import begin_graph, end_graph
from ..amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled
from ..autograd import Function, grad, once_differentiable
from ..ops import creation
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from . import _contract, _driver, _native
from ._driver import POINTER, call, get
from .devices import need, synchronize
from .memory import empty_cache, owners
from .random import generators
from .streams import Event, Stream, current_stream
from .streams import stream as on_stream

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}  # CUstreamCaptureMode


def graph_pool_handle() -> tuple[int, int]:
    """A new pool of memory, which several graphs may share that never run at the same time."""
    return 0, next(owners)


def is_current_stream_capturing() -> bool:
    """Whether work of this thread's current stream is captured; False without a GPU."""
    return bool(_contract.count()) and current_stream().is_capturing()


class CUDAGraph:
    """Work on a GPU that can be launched again, captured by :class:`graph`.

    Args:
        keep_graph: keep the captured graph for :meth:`raw_cuda_graph`, and instantiate it by :meth:`instantiate` or at
            the first :meth:`replay`.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        need("CUDAGraph")
        self._keeps = keep_graph
        self._generators: dict[Any, None] = {}
        self._captures = False
        self._debug = False
        self._clear()

    def _clear(self) -> None:
        self._graph = self._executable = 0
        self._stream: Any = None
        self._held: Any = None  # what ends with the graph
        self._draws: list[tuple] = []  # (generator, its state on the GPU, how far a launch takes it)
        self._updates: list[tuple] = []  # (address, content, what fills it in before a launch)
        self._owner = 0
        self._launched: Event | None = None

    # ---- capture -----------------------------------------------------------------------------------------------------

    def register_generator_state(self, generator: Any) -> None:
        """Let the graph draw from a generator beside the GPU's default one."""
        self._generators[generator] = None

    def capture_begin(
        self, pool: tuple | None = None, capture_error_mode: str = "global", check_input_liveness: bool = False
    ) -> None:
        """Capture the current stream's work of this thread from now on; :class:`graph` is easier.

        Args:
            pool: the memory to allocate from, of :func:`graph_pool_handle` or another graph's :meth:`pool`; None for
                its own.
            capture_error_mode: "global" forbids all threads what may wait for the GPU, "thread_local" this one,
                "relaxed" none.
            check_input_liveness: refused.
        Raises:
            RuntimeError: the current stream is the default one, or something is captured already.
            NotImplementedError: ``check_input_liveness``.
        """
        if check_input_liveness:
            raise NotImplementedError("CUDAGraph.capture_begin: check_input_liveness=True is not there yet")
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._captures or self._graph or self._executable:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance, "
                "or call reset()."
            )
        stream = current_stream()
        if not stream.cuda_stream:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.)"
            )
        index = stream.device_index
        _contract.launch_deferred(index)
        _native.enter_context(index)
        states: list[tuple] = []
        try:
            for g in dict.fromkeys((generators()[index], *self._generators)):
                state = _native.take_memory(index, 16, 0)
                states.append((g, state, 0))
                begin_graph(g, state)
            call("cuStreamBeginCapture_v2", stream.cuda_stream, _MODES[capture_error_mode])
        except RuntimeError:
            for g, state, _ in states:
                end_graph(g, state)
                _native.release_memory(index, state)
            raise
        self._stream, self._owner, self._captures = stream, pool[1] if pool is not None else next(owners), True
        _native.MEMORIES[index].hold(self._owner, 1)
        _native.begin_capture(index, self._owner)
        self._draws = states

    def capture_end(self) -> None:
        """End the capture.

        Raises:
            RuntimeError: something was done that cannot be captured.
        """
        if not self._captures:
            raise RuntimeError("CUDAGraph.capture_end: nothing is captured; call capture_begin first")
        self._captures = False
        index, made = self._stream.device_index, POINTER()
        _contract.launch_deferred(index)
        _native.enter_context(index)
        code = _driver.code_of("cuStreamEndCapture", self._stream.cuda_stream, ctypes.byref(made))
        draws = [(g, state, end_graph(g, state)) for g, state, _ in self._draws]
        captured = _native.end_capture()
        self._held = _Held(captured, made.value or 0, [state for _, state, _ in draws])
        weakref.finalize(self, self._held.end).atexit = False
        if code:
            self.reset()
            raise _driver.error_of(code, "the end of a capture: something in it cannot be captured")
        self._graph = self._held.graph
        self._draws = [x for x in draws if x[2]]
        self._updates = [x for x in captured.tables if x[2] is not None]
        for address, content, update in captured.tables:
            if update is None:
                _native.send_bytes(index, address, content)
        _native.clear_reports(captured)
        self._stream.synchronize()
        if not self._keeps:
            self.instantiate()
            if not self._debug:
                self._held.drop_graph()
                self._graph = 0

    def instantiate(self) -> None:
        """Make the captured graph ready for launches."""
        if not self._graph:
            raise RuntimeError("CUDAGraph.instantiate: there is no captured graph; with keep_graph=True it is kept")
        self._executable = self._held.instantiate()

    # ---- launches ----------------------------------------------------------------------------------------------------

    def replay(self) -> None:
        """Launch the graph on the current stream. Random numbers and the steps of optimisers go on from where they are.

        Raises:
            RuntimeError: nothing was captured, or an optimiser that was captured has changed since: its parameters with
                gradients, its state, or an option that is not a number.
        """
        if not self._executable:
            if not self._graph:
                raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
            self.instantiate()
        index = self._stream.device_index
        if (self._draws or self._updates) and current_stream(index).is_capturing():
            raise RuntimeError(
                "CUDAGraph.replay: a graph that draws random numbers or steps an optimiser cannot be replayed within "
                "a capture, which would repeat the same draws and steps; call its function there instead"
            )
        _contract.launch_deferred(index)  # it may read what the graph writes
        for _, _, update in self._updates:
            if not update.fits():
                name = type(update.optimizer).__name__
                raise RuntimeError(f"CUDAGraph.replay: {name} has changed since it was captured; capture it again")
        if self._launched is not None:
            self._launched.wait(_stream_of(index))
        for g, state, by in self._draws:
            at = g.get_offset()
            _native.send_bytes(index, state, struct.pack("<QQ", g.initial_seed(), at))
            g.set_offset(at + by)
        for address, content, update in self._updates:
            update.replay(ctypes.addressof(ctypes.c_char.from_buffer(content)))
            _native.send_bytes(index, address, content)
        _native.enter_context(index)
        call("cuGraphLaunch", self._executable, _native.get_stream(index))
        _native.note_launch(self._held.captured, self)
        if self._draws or self._updates:
            self._launched = _stream_of(index).record_event(self._launched)

    def reset(self) -> None:
        """Let the graph and its memory go."""
        if self._captures:
            raise RuntimeError("CUDAGraph.reset: the capture has not ended")
        if self._held is not None:
            self._held.end()
        self._clear()

    def pool(self) -> tuple[int, int]:
        """The pool of the graph's memory, for other graphs to share."""
        if not self._owner:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return 0, self._owner

    def raw_cuda_graph(self) -> int:
        """The driver's ``CUgraph``."""
        if not (self._keeps and self._graph):
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
            )
        return self._graph

    def raw_cuda_graph_exec(self) -> int:
        """The driver's ``CUgraphExec``."""
        if not self._executable:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance until instantiate() has been called")
        return self._executable

    def enable_debug_mode(self) -> None:
        """Keep the captured graph for :meth:`debug_dump`."""
        self._debug = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph in Graphviz's DOT language.

        Args:
            debug_path: the file.
        Raises:
            RuntimeError: :meth:`enable_debug_mode` was not called before the capture.
        """
        if not self._graph:
            raise RuntimeError("CUDA graphs debug not enabled, please call enable_debug_mode() before the capture")
        _native.enter_context(self._stream.device_index)
        call("cuGraphDebugDotPrint", self._graph, os.fsencode(debug_path), 0)


class _Held:
    """The objects of the driver and the memory that a graph holds."""

    def __init__(self, captured: Any, graph: int, states: list[int]) -> None:
        self.captured, self.graph, self.executable, self.states = captured, graph, 0, states

    def instantiate(self) -> int:
        _native.enter_context(self.captured.index)
        if self.executable:
            call("cuGraphExecDestroy", self.executable)
        self.executable = get(POINTER, "cuGraphInstantiateWithFlags", self.graph, 0)
        return self.executable

    def drop_graph(self) -> None:
        if self.graph:
            call("cuGraphDestroy", self.graph)
        self.graph = 0

    def end(self) -> None:
        """The graph is gone; its launches have ended before its memory is anybody's."""
        if _native.is_forked() or self.captured is None:
            return
        captured, self.captured = self.captured, None
        _native.enter_context(captured.index)
        call("cuCtxSynchronize")
        if self.executable:
            call("cuGraphExecDestroy", self.executable)
        self.drop_graph()
        memory = _native.MEMORIES[captured.index]
        memory.hold(captured.owner, -1)
        memory.let_go(captured.held)
        for address in (*self.states, *_native.end_reports(captured)):
            _native.release_memory(captured.index, address)


def _stream_of(index: int) -> Stream:
    return current_stream(_core.device("cuda", index))


def _captures(update: Any = None) -> bool:
    captured = _native.captured_here()
    if captured is not None and update is not None:
        captured.update = update
    return captured is not None


callbacks.captures = _captures


class graph:
    """Captures the work of its block into a graph.

    Args:
        cuda_graph: takes it.
        pool: memory that it shares with other graphs; None for its own.
        stream: to capture; None for one that all captures have.
        capture_error_mode: see :meth:`CUDAGraph.capture_begin`.
        enable_annotations: refused where it is True.
        check_input_liveness: refused where it is True.
    Raises:
        NotImplementedError: ``enable_annotations`` or ``check_input_liveness``.
    Examples:
        >>> g = taeda.cuda.CUDAGraph()  # doctest: +SKIP
        >>> with taeda.cuda.graph(g):  # doctest: +SKIP
        ...     y = model(x)
        >>> x.copy_(batch); g.replay()  # doctest: +SKIP
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self, cuda_graph: CUDAGraph, pool: tuple | None = None, stream: Stream | None = None,
        capture_error_mode: str = "global", enable_annotations: bool = False, check_input_liveness: bool = False,
    ) -> None:  # fmt: skip
        if enable_annotations:
            raise NotImplementedError("cuda.graph: enable_annotations=True is not there yet")
        device = current_stream().device_index
        known = graph.default_capture_stream
        if stream is None and (known is None or known.device_index != device):
            known = graph.default_capture_stream = Stream()
        self.cuda_graph, self.pool = cuda_graph, pool
        self.capture_stream = stream if stream is not None else known
        self.capture_error_mode, self._checks = capture_error_mode, check_input_liveness
        self._on_stream = on_stream(self.capture_stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        empty_cache()
        self._on_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, self._checks)
        except BaseException as error:
            self._on_stream.__exit__(type(error), error, None)
            raise

    def __exit__(self, *exc: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except _driver.CudaError:
            if exc[0] is None:  # what went wrong in the block says more
                raise
        finally:
            self._on_stream.__exit__(*exc)


# ---- functions and modules as graphs ---------------------------------------------------------------------------------


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """Functions or modules whose forward and backward passes are a graph each.

    Modules are changed in place: their ``forward`` launches the graph as long as they are in the mode, training or
    evaluation, that they were captured in. Second derivatives are refused.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will be called.
        sample_args: for each a tuple of tensors, of the shapes, dtypes and ``requires_grad`` that calls will have.
        num_warmup_iters: how often each runs before it is captured.
        allow_unused_input: whether an input may have no influence on the outputs.
        pool: memory shared with other graphs.
    Returns:
        What stands for each of ``callables``.
    Raises:
        RuntimeError: autocast keeps copies of weights (``cache_enabled=False`` turns that off).
    """
    if is_autocast_enabled("cuda") and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    one = not isinstance(callables, tuple)
    given = ((callables, sample_args),) if one else tuple(zip(callables, sample_args, strict=True))
    parts = [_Part(function, args, allow_unused_input) for function, args in given]
    synchronize()
    with on_stream(Stream()):
        for part in parts:
            for _ in range(num_warmup_iters):
                part.run()
    synchronize()
    pool = graph_pool_handle() if pool is None else pool
    for part in parts:
        part.capture_forward(pool)
    for part in reversed(parts):
        part.capture_backward(pool)
    made = tuple(part.finished() for part in parts)
    return made[0] if one else made


class _Part:
    """A function with its sample arguments, and the graphs made of it."""

    def __init__(self, function: Callable, args: Sequence, allow_unused: bool) -> None:
        self.function, self.args, self.allow_unused = function, args, allow_unused
        flat = tree_leaves(tuple(args))
        if not all(isinstance(x, Tensor) for x in flat):
            raise AssertionError("make_graphed_callables: sample_args must contain only tensors")
        self.given = len(flat)
        parameters: tuple = ()
        if isinstance(function, ModuleBase):
            if function._forward_hooks or function._forward_pre_hooks or function._backward_hooks:
                raise AssertionError(
                    "make_graphed_callables: modules must have no hooks when they are passed; register them afterwards"
                )
            if any(b.requires_grad for b in function.buffers()):
                raise AssertionError("make_graphed_callables: buffers of modules must not require grad")
            parameters = tuple(function.parameters())
        self.parameters = parameters
        self.inputs = (*flat, *parameters)
        self.wanted = tuple(x for x in self.inputs if x.requires_grad)
        self.forward, self.backward = CUDAGraph(), CUDAGraph()

    def run(self) -> None:
        """A forward and a backward pass, so that all kernels are there."""
        outputs = [x for x in tree_leaves(self.function(*self.args)) if x.requires_grad]
        if outputs and self.wanted:
            grad(outputs, self.wanted, [creation.zeros_like(x) for x in outputs], allow_unused=self.allow_unused)

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward, pool):
            made = self.function(*self.args)
        self.outputs, self.form = tree_flatten(made)

    def capture_backward(self, pool: Any) -> None:
        self.incoming = [creation.empty_like(x) if x.requires_grad else None for x in self.outputs]
        self.outgoing: list = [None] * len(self.inputs)
        outputs = [x for x in self.outputs if x.requires_grad]
        if outputs and self.wanted:
            with graph(self.backward, pool):
                made = grad(
                    outputs, self.wanted, [g for g in self.incoming if g is not None], allow_unused=self.allow_unused
                )
            found = iter(made)
            self.outgoing = [next(found) if x.requires_grad else None for x in self.inputs]

    def finished(self) -> Any:
        part = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Tensor) -> tuple:
                for static, x in zip(part.inputs[: part.given], inputs, strict=False):
                    if not static.is_set_to(x):
                        static.copy_(x)
                part.forward.replay()
                return tuple(x.detach() for x in part.outputs)

            @staticmethod
            @once_differentiable
            def backward(ctx: Any, *grads: Any) -> tuple:
                for static, g in zip(part.incoming, grads, strict=True):
                    if static is not None and not static.is_set_to(g):
                        static.copy_(g)
                part.backward.replay()
                return tuple(None if g is None else g.detach() for g in part.outgoing)

        def graphed(*args: Any) -> Any:
            return tree_unflatten(Graphed.apply(*tree_leaves(args), *part.parameters), part.form)

        function = self.function
        if not isinstance(function, ModuleBase):
            return graphed
        training, eager = function.training, function.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            return graphed(*args, **kwargs) if function.training == training else eager(*args, **kwargs)

        function.forward = forward
        return function
