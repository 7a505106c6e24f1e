"""Timing of small pieces of code: ``Timer`` and ``Compare``."""

from .timer import Compare, Measurement, Timer, timer

__all__ = ["Compare", "Measurement", "Timer", "timer"]
