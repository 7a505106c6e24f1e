"""The common part of programs that PyTorch and taeda both run: data, a model, a training loop, and their report."""

import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim

G = torch.Generator().manual_seed(1)
X, Y = torch.randn(16, 8, generator=G), torch.randn(16, 4, generator=G)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def fit(model, rank, size, opt=None, steps=3):
    """The losses of some steps on this process's part of the data."""
    opt = opt or optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = F.mse_loss(model(X.chunk(size)[rank]), Y.chunk(size)[rank])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def raised(call):
    """The names of the builtin classes that the error of ``call()`` is one of."""
    try:
        call()
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return "no error"


def report(programs):
    """Run the programs, or those that the command line names after the folder; rank 0 prints what all of them found."""
    torch.set_num_threads(1)
    rank, size, found = dist.get_rank(), dist.get_world_size(), {}
    for program in programs:
        if len(sys.argv) > 2 and program.__name__ not in sys.argv[2:]:
            continue
        start = time.perf_counter()
        found[program.__name__.replace("rough_", "~")] = program(rank, size, sys.argv[1])
        dist.barrier()
        print(f"{program.__name__}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    everyone = [None] * size
    dist.all_gather_object(everyone, found)
    if rank == 0:
        print(json.dumps({f"{name} {r}": value for r, part in enumerate(everyone) for name, value in part.items()}))
    dist.barrier()
    sys.stdout.flush()
