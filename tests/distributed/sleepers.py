"""Programs with layers that sleep, or that are simulated to do so."""

import taeda
from taeda import nn
from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from taeda.distributed.simulation import spend


class Sleep(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, forward, backward):
        ctx.backward_seconds = backward
        spend(forward)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        spend(ctx.backward_seconds)
        return g, g.sum(), None, None


class Sleeper(nn.Module):
    def __init__(self, forward=1.0, backward=2.0):
        super().__init__()
        self.weight, self.seconds = nn.Parameter(taeda.ones(())), (forward, backward)

    def forward(self, x):
        return Sleep.apply(x, self.weight, *self.seconds)


NAMES = {ScheduleGPipe: "gpipe", Schedule1F1B: "1f1b", ScheduleInterleaved1F1B: "interleaved"}
PIPELINES = ((ScheduleGPipe, 4, 1), (Schedule1F1B, 8, 1), (ScheduleInterleaved1F1B, 4, 2))


def pipeline(kind, microbatches, stages, seconds, device):
    """A program whose processes have ``stages`` stages each."""

    def program(mesh):
        group, rank, size = mesh.get_group("pp"), mesh.get_local_rank("pp"), mesh.size()
        with taeda.device(device):
            parts = [Sleeper(seconds / stages, 2 * seconds / stages) for _ in range(stages)]
            x = taeda.ones(8, 4)
        made = [PipelineStage(p, rank + i * size, stages * size, device, group=group) for i, p in enumerate(parts)]
        schedule = kind(made if stages > 1 else made[0], microbatches, loss_fn=lambda out, target: out.sum())
        return lambda: schedule.step(*([x] if rank == 0 else []))

    return program
