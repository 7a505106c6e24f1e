"""``load_url``, the older name of :func:`taeda.hub.load_state_dict_from_url`."""

from __future__ import annotations

from typing import Any

from .. import hub
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    return getattr(hub, name)
