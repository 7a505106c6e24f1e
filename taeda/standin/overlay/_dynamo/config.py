"""Settings of ``torch._dynamo``: any may be set, and none has an effect."""

suppress_errors = False
cache_size_limit = recompile_limit = 8
capture_scalar_outputs = False
