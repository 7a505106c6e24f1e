"""Train a small GPT of which each process has a part: ``fully_shard``, tensor parallelism, and checkpoints.

    python -m taeda.distributed.run --nproc_per_node=2 examples/sharded_gpt.py
    python -m taeda.distributed.run --nproc_per_node=4 examples/sharded_gpt.py --tensor-parallel 2

Started again with ``--folder`` of an earlier run, on any number of processes, it goes on from the last checkpoint. The
text is the source of Python's ``argparse``.
"""

import argparse
import inspect
import time

import taeda
import taeda.distributed as dist
import taeda.distributed.checkpoint as dcp
import taeda.nn.functional as F
from taeda import nn
from taeda.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.tensor import Replicate
from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Block(nn.Module):
    """Attention and two linear layers, each added to its input."""

    def __init__(self, width: int, head: int) -> None:
        super().__init__()
        self.head = head
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """``[batch, length, width]`` to the same."""
        batch, length, _ = x.shape
        y = self.norm1(x)
        # with tensor parallelism each process has some of the heads
        q, k, v = (f(y).view(batch, length, -1, self.head).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Scores of the next character."""

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, head: int = 16) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, head) for _ in range(layers)])
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        """``[batch, length]`` to ``[batch, length, vocabulary]``."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


def shard(model: GPT, mesh: dist.DeviceMesh) -> GPT:
    """Cut the layers over ``mesh["tp"]``, and all parameters over ``mesh["dp"]``."""
    if mesh["tp"].size() > 1:
        columns, rows = ColwiseParallel(), RowwiseParallel()
        plan = {f"blocks.*.{name}": columns for name in ("q", "k", "v", "up")}
        plan.update({f"blocks.*.{name}": rows for name in ("out", "down")})
        plan["scores"] = ColwiseParallel(output_layouts=Replicate())
        parallelize_module(model, mesh["tp"], plan)
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])


def main() -> None:
    """Train, and write a checkpoint at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (
        ("steps", 40),
        ("batch", 16),
        ("length", 64),
        ("width", 64),
        ("layers", 4),
        ("tensor-parallel", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--folder", help="for checkpoints")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    tp = options.tensor_parallel
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size() // tp, tp), mesh_dim_names=("dp", "tp"))
    dp, part = mesh["dp"].size(), mesh["dp"].get_local_rank()

    text = inspect.getsource(argparse)
    letters = sorted(set(text))
    data = taeda.tensor([letters.index(c) for c in text])
    taeda.manual_seed(0)  # all processes begin with the same parameters
    model = shard(GPT(len(letters), options.length, options.width, options.layers), mesh)
    optimizer = taeda.optim.AdamW(model.parameters(), 3e-3)
    state = {"step": 0}
    if options.folder is not None:
        try:
            state["model"], state["optimizer"] = get_state_dict(model, optimizer)
            dcp.load(state, checkpoint_id=options.folder)
            set_state_dict(
                model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
            )  # fmt: skip
        except dcp.CheckpointException:
            pass  # the first run

    first = state["step"]
    generator = taeda.Generator().manual_seed(first)
    begun = time.perf_counter()
    for step in range(first, first + options.steps):
        starts = taeda.randint(len(data) - options.length - 1, (options.batch,), generator=generator)
        rows = taeda.stack([data[i : i + options.length + 1] for i in starts.tolist()]).chunk(dp)[part]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 9:
            mean = loss.detach().clone()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
            if dist.get_rank() == 0:
                print(f"step {step + 1}: loss {mean.item():.3f}, {(time.perf_counter() - begun):.1f} s", flush=True)
    held = sum(p.to_local().numel() for p in model.parameters())
    print(f"rank {dist.get_rank()} holds {held} of {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    if options.folder is not None:
        model_state, optimizer_state = get_state_dict(model, optimizer)
        state = {"step": first + options.steps, "model": model_state, "optimizer": optimizer_state}
        dcp.save(state, checkpoint_id=options.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
