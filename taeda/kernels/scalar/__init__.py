"""Scalar mathematics: functions from kernel Values to Values, vector or scalar, written once for every target."""

from .basic import *  # noqa: F403
from .complexes import Complex as Complex
from .exponential import *  # noqa: F403
from .special import *  # noqa: F403
from .trigonometric import *  # noqa: F403
