"""Logs for TensorBoard, written through its own package: ``pip install tensorboard`` (the extra ``tensorboard``)."""

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
