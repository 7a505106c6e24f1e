"""Train one network in several processes: each has a copy and a share of the data, and gradients are averaged.

    python -m taeda.distributed.run --nproc-per-node=2 examples/ddp.py    # two processes here, by shared memory
    mpiexec -n 2 python examples/ddp.py                                   # the same by MPI: pip install mpi4py mpich
    sbatch examples/ddp.sbatch                                            # on several machines, by SLURM
    python examples/ddp.py                                                # one process alone

What starts the processes tells them who they are; the program is the same. The task: learn the sum and the product of
two numbers. All print the same parameters, whatever the number of processes.
"""

import argparse
import os

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed import launched
from taeda.nn.parallel import DistributedDataParallel
from taeda.utils.data import DataLoader, DistributedSampler, TensorDataset


def start() -> None:
    """Join the others, or be a group of one where nobody started this process."""
    if "RANK" in os.environ or launched.by_mpi() or launched.by_slurm():
        dist.init_process_group()
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64, help="samples of all processes together")
    args = parser.parse_args()
    start()
    rank, size = dist.get_rank(), dist.get_world_size()

    x = taeda.rand(2048, 2, generator=taeda.Generator().manual_seed(1))
    data = TensorDataset(x, taeda.stack([x.sum(1), x.prod(1)], 1))
    sampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, args.batch // size, sampler=sampler)

    taeda.manual_seed(rank)  # wrapping copies the parameters of process 0 to the others
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)))
    optimizer = taeda.optim.Adam(model.parameters(), 1e-2)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = taeda.zeros(())
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        if rank == 0 and epoch % 10 == 9:
            print(f"epoch {epoch + 1}, loss {total.item() / len(loader):.6f}", flush=True)

    parameters = taeda.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = [taeda.empty_like(parameters) for _ in range(size)]
    dist.all_gather(everyone, parameters)
    assert all(one.equal(parameters) for one in everyone), "the copies have gone apart"
    if rank == 0:
        print(f"{size} processes by {dist.group.WORLD.name()}: the parameters are equal, bit by bit")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
