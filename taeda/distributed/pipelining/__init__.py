"""``taeda.distributed.pipelining``: a model's layers on several processes, which work on several microbatches at once."""

from .schedules import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from .stage import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B"]
