"""``torch.jit.annotations``: annotations of scripted code."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - what it has there

from .._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple", "Union",
]  # fmt: skip
