"""Pipelines: a model cut into stages, each on a process of its own, that work on several microbatches at a time."""

# ruff: noqa: I001 - lists of names are paragraphs

from .pipe import Pipe, SplitPoint, build_stage, pipe_split, pipeline
from .schedules import (
    Schedule1F1B, ScheduleDualPipeV, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS, ScheduleZBVZeroBubble,
)  # fmt: skip
from .stage import PipelineStage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
    "pipe_split", "pipeline",
]  # fmt: skip
