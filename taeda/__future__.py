"""Ways for ``nn.Module`` to change its parameters: choices that programs opt in to."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip

_chosen = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of modules (``to``, ``float``, ...) replace the module's parameters by new ones with
    their values. Otherwise the parameters stay the same objects.
    """
    _chosen["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The argument of :func:`set_overwrite_module_params_on_conversion`; False at first."""
    return _chosen["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions of modules and ``load_state_dict`` exchange a parameter with the new one
    (:func:`taeda.utils.swap_tensors`).

    The parameter is the same object, and has the new one's class, memory and Python attributes: so subclasses of Tensor
    that hold other tensors are converted whole. ``load_state_dict`` exchanges it with what ``module_load`` gives.
    """
    _chosen["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """The argument of :func:`set_swap_module_params_on_conversion`; False at first."""
    return _chosen["swap"]
