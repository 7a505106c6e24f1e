"""Train one network in several workers of Ray, which start again from the last checkpoint when one of them fails.

    pip install '.[ray]' && python examples/ray_ddp.py --workers 2
    python examples/ray_ddp.py --workers 2 --fail-at 7    # a worker ends itself in epoch 7, once

Ray places and restarts the workers and keeps the checkpoints. taeda's processes meet at a store that worker 0 keeps.
"""

import argparse
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import ray
import ray.train
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.collective import broadcast_from_rank_zero
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.nn.parallel import DistributedDataParallel


def meet() -> None:
    """Make the workers of this attempt a process group."""
    context = ray.train.get_context()
    rank, size, store = context.get_world_rank(), context.get_world_size(), None
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    where = (ray.util.get_node_ip_address(), store.port) if store is not None else None
    host, port = broadcast_from_rank_zero(where)
    if store is None:
        store = dist.TCPStore(host, port, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(minutes=2))


def train(config: dict) -> None:
    """What each worker does."""
    meet()
    rank, size = dist.get_rank(), dist.get_world_size()
    taeda.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)))
    optimizer = taeda.optim.Adam(model.parameters(), 1e-2)
    x = taeda.rand(1024, 2, generator=taeda.Generator().manual_seed(1))
    y = taeda.stack([x.sum(1), x.prod(1)], 1)
    first, last = 0, ray.train.get_checkpoint()
    if last is not None:
        with last.as_directory() as folder:
            state = taeda.load(Path(folder) / "state.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
    for epoch in range(first, config["epochs"]):
        if epoch == config["fail_at"] and last is None and rank == size - 1:
            ray.train.get_all_reported_checkpoints()  # waits until Ray has them all, so that each run loses the same
            os._exit(1)  # as a machine that is lost
        for batch in taeda.randperm(1024, generator=taeda.Generator().manual_seed(epoch)).split(64):
            mine = batch[rank::size]
            loss = nn.functional.mse_loss(model(x[mine]), y[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole, dist.ReduceOp.AVG)
        metrics = {"epoch": epoch, "loss": whole.item(), "first": first}
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                taeda.save(state, Path(folder) / "state.pt")
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics, checkpoint=checkpoint)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--fail-at", type=int, default=-1, help="the epoch in which a worker ends itself")
    parser.add_argument("--storage", default=None, help="where Ray keeps the checkpoints")
    args = parser.parse_args()
    ray.init(num_cpus=args.workers + 1, include_dashboard=False, log_to_driver=False)
    trainer = DataParallelTrainer(
        train,
        train_loop_config={"epochs": args.epochs, "fail_at": args.fail_at},
        scaling_config=ScalingConfig(num_workers=args.workers),
        run_config=RunConfig(storage_path=args.storage, failure_config=FailureConfig(max_failures=2)),
    )
    last = trainer.fit().metrics
    print(f"epoch {last['epoch'] + 1}, loss {last['loss']:.6f}, begun with epoch {last['first'] + 1}")
    ray.shutdown()


if __name__ == "__main__":
    main()
