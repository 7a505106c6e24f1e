"""A program for several processes: collectives of random kinds, sizes, dtypes and groups, each compared with NumPy.

``random_collectives.py BACKEND COUNT SEED``. All processes draw the same plan, and each knows what all others have, so it can
tell what has to come. Values are small whole numbers, which every dtype and order of sums gives exactly.
"""

import random
import sys
from datetime import timedelta

import numpy as np

import taeda
import taeda.distributed as dist

DTYPES = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool complex64".split()
OPS = {"SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BAND": np.bitwise_and,
       "BOR": np.bitwise_or, "BXOR": np.bitwise_xor, "AVG": np.add}  # fmt: skip


class Step:
    """The properties of one collective, drawn equally by all processes."""

    def __init__(self, draw, groups, number):
        self.draw, self.number = draw, number
        self.group, self.ranks = draw.choice(groups)
        self.size = len(self.ranks)
        self.dtype = draw.choice(DTYPES)
        self.op = draw.choice([op for op in OPS if self.allowed(op)])
        self.root = draw.randrange(self.size)
        self.n = draw.choice([0, 1, draw.randrange(60), draw.randrange(60), draw.randrange(5000)])
        if draw.random() < 0.03:
            self.n = draw.randrange(300_000)
        self.apart = draw.random() < 0.2  # not contiguous
        self.later = draw.random() < 0.3  # asynchronous

    def allowed(self, op):
        if self.dtype.startswith("c"):
            return op in ("SUM", "AVG")
        if "float" in self.dtype:
            return op[0] != "B"
        return op != "AVG"

    def values(self, rank, n, more=0):
        """The values of process ``rank`` of the group, in NumPy."""
        made = np.random.default_rng([self.number, rank, more]).integers(0, 3, n)
        return made.astype(bool) if self.dtype == "bool" else made

    def tensor(self, values):
        """``values`` as a tensor, in two dimensions and with gaps where it should not be contiguous."""
        t = taeda.tensor(values.astype(np.int64)).to(getattr(taeda, self.dtype))
        if self.apart:
            t = taeda.stack([t, t], 1)[:, 1]
        return t

    def empty(self, n):
        return self.tensor(np.full(n, 1))

    def combined(self, rows):
        result = OPS[self.op].reduce(np.stack(rows), dtype=rows[0].dtype)
        return result / self.size if self.op == "AVG" else result

    def check(self, tensor, expected, what):
        # a mean is rounded to the dtype, and a product wraps around
        expected = taeda.tensor(expected).to(tensor.dtype).to(taeda.complex128).numpy()
        got = tensor.to(taeda.complex128).numpy()
        if got.shape != expected.shape or not (got == expected).all():
            where = f"{what} {self.dtype} n={self.n} root={self.root} {self.ranks}"
            raise AssertionError(f"{self.number} {where}: {got} {expected}")


def all_reduce(s, me, others):
    t = s.tensor(s.values(me, s.n))
    work = dist.all_reduce(t, dist.ReduceOp[s.op], s.group, s.later)
    return work, lambda: s.check(t, s.combined([s.values(r, s.n) for r in range(s.size)]), f"all_reduce {s.op}")


def reduce(s, me, others):
    t = s.tensor(s.values(me, s.n))
    work = dist.reduce(t, None, dist.ReduceOp[s.op], s.group, s.later, group_dst=s.root)
    expected = s.combined([s.values(r, s.n) for r in range(s.size)]) if me == s.root else s.values(me, s.n)
    return work, lambda: s.check(t, expected, f"reduce {s.op if me == s.root else ''}")


def broadcast(s, me, others):
    t = s.tensor(s.values(me, s.n))
    work = dist.broadcast(t, None, s.group, s.later, group_src=s.root)
    return work, lambda: s.check(t, s.values(s.root, s.n), "broadcast")


def all_gather(s, me, others):
    slots = [s.empty(s.n) for _ in range(s.size)]
    work = dist.all_gather(slots, s.tensor(s.values(me, s.n)), s.group, s.later)
    return work, lambda: [s.check(slot, s.values(r, s.n), "all_gather") for r, slot in enumerate(slots)]


def all_gather_into(s, me, others):
    out = s.empty(s.n * s.size)
    work = dist.all_gather_into_tensor(out, s.tensor(s.values(me, s.n)), s.group, s.later)
    return work, lambda: s.check(out, np.concatenate([s.values(r, s.n) for r in range(s.size)]), "into")


def gather(s, me, others):
    slots = [s.empty(s.n) for _ in range(s.size)] if me == s.root else None
    work = dist.gather(s.tensor(s.values(me, s.n)), slots, None, s.group, s.later, group_dst=s.root)
    return work, lambda: [s.check(slot, s.values(r, s.n), "gather") for r, slot in enumerate(slots or [])]


def scatter(s, me, others):
    parts = [s.tensor(s.values(s.root, s.n, r)) for r in range(s.size)] if me == s.root else None
    out = s.empty(s.n)
    work = dist.scatter(out, parts, None, s.group, s.later, group_src=s.root)
    return work, lambda: s.check(out, s.values(s.root, s.n, me), "scatter")


def reduce_scatter(s, me, others):
    out, parts = s.empty(s.n), [s.tensor(s.values(me, s.n, r)) for r in range(s.size)]
    if s.draw.random() < 0.5:
        work = dist.reduce_scatter(out, parts, dist.ReduceOp[s.op], s.group, s.later)
    else:
        work = dist.reduce_scatter_tensor(out, taeda.cat(parts), dist.ReduceOp[s.op], s.group, s.later)
    return work, lambda: s.check(out, s.combined([s.values(r, s.n, me) for r in range(s.size)]), f"scattered {s.op}")


def all_to_all(s, me, others):
    n = [[s.draw.randrange(max(s.n, 1)) for _ in range(s.size)] for _ in range(s.size)]  # from row to column
    parts = [s.tensor(s.values(me, n[me][r], r)) for r in range(s.size)]
    if s.draw.random() < 0.5:
        outs = [s.empty(n[r][me]) for r in range(s.size)]
        work = dist.all_to_all(outs, parts, s.group, s.later)
    else:
        sizes = [n[r][me] for r in range(s.size)]
        out = s.empty(sum(sizes))
        work = dist.all_to_all_single(out, taeda.cat(parts), sizes, n[me], s.group, s.later)
        outs = out.split(sizes)
    return work, lambda: [s.check(out, s.values(r, n[r][me], me), "all_to_all") for r, out in enumerate(outs)]


def ring(s, me, others):
    out, t = s.empty(s.n), s.tensor(s.values(me, s.n))
    before, after = (me - 1) % s.size, (me + 1) % s.size
    if s.size == 1:
        return None, lambda: None
    works = [dist.irecv(out, None, s.group, 5, before), dist.isend(t, None, s.group, 5, after)]

    def check():
        [work.wait() for work in works]
        s.check(out, s.values(before, s.n), "ring")

    return None, check


def objects(s, me, others):
    found = [None] * s.size
    dist.all_gather_object(found, {"rank": me, "text": "a" * (me + s.n)}, s.group)
    assert found == [{"rank": r, "text": "a" * (r + s.n)} for r in range(s.size)]
    dist.barrier(s.group)
    return None, lambda: None


KINDS = [all_reduce, all_reduce, reduce, broadcast, all_gather, all_gather_into, gather, scatter, reduce_scatter]
KINDS += [all_to_all, ring, objects]


def main(backend, count, seed):
    dist.init_process_group(backend, timeout=timedelta(seconds=200))
    rank, world = dist.get_rank(), dist.get_world_size()
    draw = random.Random(seed * 100 + world)
    groups = [(None, list(range(world)))] * 2
    for _ in range(4):
        ranks = sorted(draw.sample(range(world), draw.randint(1, world)))
        groups.append((dist.new_group(ranks), ranks))
    waiting = []
    for number in range(count):
        step = Step(draw, groups, number)
        kind = draw.choice(KINDS)
        if rank in step.ranks:
            work, check = kind(step, step.ranks.index(rank), step.ranks)
            waiting.append((work, check))
        else:
            draw_like(kind, step)
        if len(waiting) > 5 or not step.later:
            finish(waiting)
    finish(waiting)
    dist.barrier()
    print(f"{count} agree", flush=True)
    dist.destroy_process_group()


def draw_like(kind, step):
    """Draw as many numbers as a member of the group does."""
    if kind is reduce_scatter:
        step.draw.random()
    if kind is all_to_all:
        [step.draw.randrange(max(step.n, 1)) for _ in range(step.size**2)]
        step.draw.random()


def finish(waiting):
    for work, check in waiting:
        if work is not None:
            work.wait()
        check()
    waiting.clear()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
