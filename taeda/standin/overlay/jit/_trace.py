"""``torch.jit._trace``: what records programs."""

from taeda.jit.tracing import TopLevelTracedModule, TracerWarning, TracingCheckError, _get_trace_graph, trace

__all__ = ["TopLevelTracedModule", "TracerWarning", "TracingCheckError", "_get_trace_graph", "trace"]
