"""Train a mixture of experts whose experts lie on several processes.

    python -m taeda.distributed.run --nproc-per-node=2 examples/experts.py

Each process has a part of every batch and some of the experts. A router chooses an expert for each row; the rows go
to the process of that expert, and what it makes of them comes back, by ``all_to_all_single``, which can be
differentiated. With one process or several the losses are the same.
"""

import argparse

import taeda
import taeda.distributed as dist
import taeda.distributed.nn.functional as collectives
from taeda import Tensor, nn

WIDTH, BATCH = 16, 256


class Experts(nn.Module):
    """``count`` experts, of which this process has ``count / world size``; a row goes to one of them."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        size, rank = dist.get_world_size(), dist.get_rank()
        if count % size:
            raise ValueError(f"expected a number of experts that {size} processes can share, got {count}")
        self.router = nn.Linear(width, count)
        made = [
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(count)
        ]
        self.own = nn.ModuleList(made[rank * count // size : (rank + 1) * count // size])
        self.count, self.size = count, size

    def forward(self, x: Tensor) -> Tensor:
        """Rows ``[n, width]`` to rows ``[n, width]``."""
        gate, choice = self.router(x).softmax(-1).max(-1)
        order = choice.argsort(stable=True)
        counts = choice.bincount(minlength=self.count)
        arriving = taeda.empty_like(counts)  # rows by the process that they come from, and by the expert here
        dist.all_to_all_single(arriving, counts)
        sent, come = (c.view(self.size, -1).sum(1).tolist() for c in (counts, arriving))
        rows = x[order]
        here = collectives.all_to_all_single(rows.new_empty(sum(come), rows.shape[1]), rows, come, sent)
        back = collectives.all_to_all_single(rows, self.work(here, arriving.tolist()), sent, come)
        return back[order.argsort()] * gate.unsqueeze(1)

    def work(self, rows: Tensor, counts: list[int]) -> Tensor:
        """Each expert at once on its rows from all processes, which are put back where they were."""
        parts, each = list(rows.split(counts)), len(self.own)
        for i, expert in enumerate(self.own):
            done = expert(taeda.cat(parts[i::each]))
            parts[i::each] = done.split(counts[i::each])
        return taeda.cat(parts)


def main() -> None:
    """Train, and print the loss of the whole batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--experts", type=int, default=4)
    options = parser.parse_args()
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    taeda.manual_seed(0)
    model = Experts(WIDTH, options.experts)
    generator = taeda.Generator().manual_seed(1)
    maps = taeda.randn(4, WIDTH, WIDTH, generator=generator) / WIDTH**0.5  # what is to be learned: four linear maps
    centres = 2 * taeda.randn(4, WIDTH, generator=generator)
    optimizer = taeda.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(options.steps):
        kind = taeda.randint(4, (BATCH,), generator=generator)
        x = centres[kind] + taeda.randn(BATCH, WIDTH, generator=generator)
        y = (x.unsqueeze(1) @ maps[kind]).squeeze(1)
        mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        loss = (model(x[mine]) - y[mine]).square().sum() / (BATCH * WIDTH)  # parts of the whole batch's mean
        optimizer.zero_grad()
        loss.backward()
        for p in model.router.parameters():  # the same everywhere; experts have had the rows of all processes
            dist.all_reduce(p.grad)
        optimizer.step()
        whole = loss.detach()
        dist.all_reduce(whole)
        if rank == 0 and (step % 20 == 0 or step == options.steps - 1):
            print(f"step {step:4d}  loss {whole.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
