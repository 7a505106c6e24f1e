"""A small GPT that processes import by name: what tests of sharded training train."""

import taeda
import taeda.nn.functional as F
from taeda import nn

VOCABULARY, WIDTH, HEAD, LENGTH = 40, 64, 16, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.o = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.ln1(x)
        b, t, _ = x.shape
        t = LENGTH  # a part of a sequence knows its own length only
        q, k, v = (f(y).view(b, t, -1, HEAD).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, -1))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.emb = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.emb(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batches(n=3, rows=4):
    generator = taeda.Generator().manual_seed(5)
    return [taeda.randint(0, VOCABULARY, (rows, LENGTH + 1), generator=generator) for _ in range(n)]


def train(model, parts=1, part=0, steps=3, clip=1.0, rows=4, mean=None, optimizer=None):
    """Pairs of loss and norm of the gradients; each process of a data-parallel group gives its ``part`` of the rows."""
    from taeda.distributed.tensor import DTensor, distribute_tensor

    optimizer = optimizer or taeda.optim.AdamW(model.parameters(), 1e-2)
    seen = []
    for batch in batches(steps, rows):
        batch = batch.chunk(parts)[part]
        scores, targets = model(batch[:, :-1]), batch[:, 1:].reshape(-1)
        if isinstance(scores, DTensor):
            targets = distribute_tensor(targets, scores.device_mesh)
        loss = F.cross_entropy(scores.reshape(-1, VOCABULARY), targets)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip).item()
        optimizer.step()
        loss = loss.detach().full_tensor() if isinstance(loss, DTensor) else loss.detach()
        seen.append((mean(loss) if mean else loss.item(), norm))
    return seen


def tensor_parallel(model, mesh):
    """Cut the layers of a GPT over ``mesh``."""
    from taeda.distributed.tensor import Replicate
    from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {"emb": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate())}
    for name in ("q", "k", "v", "up"):
        plan[f"blocks.*.{name}"] = ColwiseParallel()
    for name in ("o", "down"):
        plan[f"blocks.*.{name}"] = RowwiseParallel()
    return parallelize_module(model, mesh, plan)


def sequence_parallel(model, mesh):
    """The same with activations cut along the sequence between the layers, and scores cut along the classes."""
    from taeda.distributed.tensor import Replicate, Shard
    from taeda.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    rows = RowwiseParallel(output_layouts=Shard(1), use_local_output=False)
    columns = ColwiseParallel(input_layouts=Shard(1), use_local_output=False)
    emb = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False)
    plan = {"emb": emb, "norm": SequenceParallel(), "head": columns}
    plan.update({f"blocks.*.{name}": SequenceParallel() for name in ("ln1", "ln2")})
    plan.update({f"blocks.*.{name}": columns for name in ("q", "k", "v", "up")})
    plan.update({f"blocks.*.{name}": rows for name in ("o", "down")})
    return parallelize_module(model, mesh, plan)
