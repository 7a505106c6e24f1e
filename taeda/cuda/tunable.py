"""The tuning of matrix products by PyTorch, which is not there: the names of its settings."""

from __future__ import annotations

from . import _lacking


def is_enabled() -> bool:
    """Whether products are tuned: False."""
    return False


def tuning_is_enabled() -> bool:
    """Whether products that were not met are tuned: False."""
    return False


def record_untuned_is_enabled() -> bool:
    """Whether products that were not tuned are recorded: False."""
    return False


def enable(val: bool = True) -> None:
    """Tune products: False is accepted, as they are not."""
    if val:
        _lacking.lacking("tunable.enable")


def tuning_enable(val: bool = True) -> None:
    """As :func:`enable`."""
    if val:
        _lacking.lacking("tunable.tuning_enable")


def record_untuned_enable(val: bool = True) -> None:
    """As :func:`enable`."""
    if val:
        _lacking.lacking("tunable.record_untuned_enable")


_LACKING = """
    get_filename get_max_tuning_duration get_max_tuning_iterations get_results get_rotating_buffer_size get_validators
    mgpu_tune_gemm_in_file read_file set_filename set_max_tuning_duration set_max_tuning_iterations
    set_numerical_check_tolerances set_rotating_buffer_size tune_gemm_in_file
"""
globals().update({name: _lacking.refused(__name__, name) for name in _LACKING.split()})
