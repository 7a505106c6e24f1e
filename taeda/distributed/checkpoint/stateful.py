"""Objects that are saved by their ``state_dict``."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """An object with a state dict, in a state dict that is saved."""

    def state_dict(self) -> dict[str, Any]:
        """The state to save."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the loaded values."""
