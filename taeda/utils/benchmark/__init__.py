"""Timing of small pieces of code: ``Timer`` and ``Compare``."""

from .timer import (
    Compare,
    Language,
    Measurement,
    TaskSpec,
    Timer,
    ordered_unique,
    select_unit,
    timer,
    trim_sigfig,
    unit_to_english,
)

__all__ = [
    "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip
