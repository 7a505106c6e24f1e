"""Helpers around modules: clipping, packing, parametrisation, pruning, fusion."""

from __future__ import annotations

from . import rnn

__all__ = ["rnn"]
