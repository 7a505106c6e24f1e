"""Collectives that exchange rows, with gradients, and experts on several processes."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import taeda

from . import launch as launching
from .launch import outputs

ROOT = Path(__file__).resolve().parents[2]

EXCHANGES = """
import json
import taeda.distributed.nn.functional as collectives
size = dist.get_world_size()
def show(name, outputs, x):
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    factor = taeda.arange(1.0, 1 + outputs[0].numel()).reshape(outputs[0].shape) * (rank + 1)
    for i, o in enumerate(outputs):
        (o * factor * (i + 1)).sum().backward(retain_graph=True)
    print(json.dumps([name, [o.tolist() for o in outputs], x.grad.tolist()]))
def fresh(rows, *more):
    return (taeda.arange(float(rows * 2)).reshape(rows, 2) + 10 * rank).requires_grad_()
x = fresh(2 * size); show("equal", collectives.all_to_all_single(taeda.empty(2 * size, 2), x), x)
x = fresh(size * (rank + 1))
come = [i + 1 for i in range(size)]
show("uneven", collectives.all_to_all_single(taeda.empty(sum(come), 2), x, come, [rank + 1] * size), x)
x = fresh(2); show("reduce", collectives.reduce(x * 2, 1), x)
x = fresh(2); show("scatter", collectives.scatter([x * (i + 1) for i in range(size)], 1), x)
x = fresh(2)
whole = collectives.all_to_all([taeda.empty(2, 2) for _ in range(size)], [x * (i + 1) for i in range(size)])
loss = sum((o * (i + 2) * (rank + 1)).sum() for i, o in enumerate(whole)); loss.backward()
print(json.dumps(["lists", [o.tolist() for o in whole], x.grad.tolist()]))
x = fresh(2); parts = collectives.gather(x, 1)
sum((o * (i + 2)).sum() for i, o in enumerate(parts)).backward()
print(json.dumps(["gather", [o.tolist() for o in parts] if rank == 1 else None, x.grad.tolist()]))
"""


def _lines(code, size):
    return [[json.loads(line) for line in text.splitlines()] for text in outputs(code, size)]


def test_gradients_go_the_way_back():
    size = 2
    for rank, lines in enumerate(_lines(EXCHANGES, size)):
        found = {name: (out, grad) for name, out, grad in lines}
        rows = [[[2.0 * i + 10 * r, 2.0 * i + 1 + 10 * r] for i in range(4)] for r in range(size)]
        out, grad = found["equal"]
        assert out == [rows[0][2 * rank : 2 * rank + 2] + rows[1][2 * rank : 2 * rank + 2]]
        # row i of this process is row 2 rank + i % 2 at process i // 2, whose weights are (i // 2 + 1) (1, 2, 3, ...)
        expected = [[(i // 2 + 1) * (2 * (2 * rank + i % 2) + 1 + j) for j in range(2)] for i in range(4)]
        assert grad == expected
        assert [len(out) for out, _ in (found["uneven"],)] == [1] and len(found["uneven"][0][0]) == 3


def test_numbers_are_those_of_pytorch(monkeypatch):
    pytest.importorskip("torch")
    ours = _lines(EXCHANGES, 2)
    monkeypatch.setattr(launching, "HEAD", launching.HEAD.replace("taeda", "torch"))
    theirs = _lines(EXCHANGES.replace("taeda", "torch"), 2)
    for lines in (ours, theirs):
        lines[0][2][1] = None  # of reduce, what is left at the others: undefined there, their own here
    assert ours == theirs


def test_the_exchange_of_rows_is_differentiated_twice_and_checked():
    """In one process, where it is the identity, and in float64 against differences."""
    import taeda.distributed as dist
    import taeda.distributed.nn.functional as collectives

    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = taeda.randn(4, 2, dtype=taeda.float64, requires_grad=True)
        assert taeda.autograd.gradgradcheck(lambda x: collectives.all_to_all_single(x, x.sin()), (x,))
    finally:
        dist.destroy_process_group()


def test_experts_on_processes_train_as_in_one():
    losses = []
    for size in (1, 2):
        run = [sys.executable, "-m", "taeda.distributed.run", f"--nproc-per-node={size}"]
        done = subprocess.run(
            [*run, str(ROOT / "examples" / "experts.py"), "--steps=41"], capture_output=True, text=True, timeout=250
        )
        assert done.returncode == 0, done.stderr
        losses.append([float(line.split()[-1]) for line in done.stdout.splitlines()])
    assert len(losses[0]) == 3 and losses[0][-1] < losses[0][0] / 3
    assert all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(*losses, strict=True)), losses
