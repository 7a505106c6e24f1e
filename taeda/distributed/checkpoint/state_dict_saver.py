"""Saving, under the name of the module that PyTorch has it in."""

from .saving import async_save, save, save_state_dict

__all__ = ["async_save", "save", "save_state_dict"]
