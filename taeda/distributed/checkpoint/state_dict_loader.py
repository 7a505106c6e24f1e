"""Loading, under the name of the module that PyTorch has it in."""

from .saving import load, load_state_dict

__all__ = ["load", "load_state_dict"]
