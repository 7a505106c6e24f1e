"""Traces."""
class TracerWarning(Warning): pass
def current():
    return None
def trace(*a, **k): raise NotImplementedError
trace_module = _get_trace_graph = trace
