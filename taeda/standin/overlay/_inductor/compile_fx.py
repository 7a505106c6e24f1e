"""``torch._inductor.compile_fx``: the default backend as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._dynamo import lookup_backend


def compile_fx(model_: Any, example_inputs_: Sequence, **options: Any) -> Callable:
    """The graph compiled, as ``torch.compile`` without a backend does it."""
    return lookup_backend("inductor")(model_, example_inputs_)
