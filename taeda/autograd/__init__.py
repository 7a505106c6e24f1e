"""Automatic differentiation: modes, backward and grad, custom functions, numerical checks."""

from . import forward_ad, functional, graph, profiler, profiler_util
from .anomaly import detect_anomaly, set_detect_anomaly
from .backward import backward, grad
from .function import Function, once_differentiable
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .variable import Variable

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "functional", "grad",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "once_differentiable", "profiler", "profiler_util", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
