"""Scalar mathematics: functions from kernel Values to Values, vector or scalar, written once for every target."""

from .complexes import Complex as Complex
