"""``taeda.utils.deterministic.fill_uninitialized_memory``: whether, while ``use_deterministic_algorithms`` is on,
memory that ``empty`` and its kin give is filled: NaN, the largest integer, or True. Default: True."""

from __future__ import annotations

import sys
import types

from .._core import settings


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return settings.fill_uninitialized

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory must be bool, not {type(mode).__name__}")
        settings.fill_uninitialized = mode


sys.modules[__name__].__class__ = _Deterministic
