"""The database's entries with DTensors for tensors, cut in several ways, against plain tensors: values and gradients.

Run on several processes, each of which prints its findings:

    python -m taeda.distributed.run --nproc_per_node=2 -m tests.conformance.opdb.sharded [REGEX [SAMPLES]]
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from datetime import timedelta

import torch

import taeda
import taeda.distributed as dist
from taeda import Tensor
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from .checks import UNSPECIFIED, name_of
from .samples import chosen, plain_samples
from .translate import Missing, translate

#: Entries whose results are new random numbers, memory that was never written, or addresses.
UNCOMPARED = (
    "empty",
    "data_ptr",
    "new_empty",
    "empty_strided",
    "empty_permuted",
    "empty_like",
    "resize_",
    "as_strided",
)


def placed(x, mesh, rng):
    """``x`` as a DTensor, cut along one of its dimensions, replicated, or as terms of a sum."""
    options = [Replicate(), *(Shard(d) for d in range(x.dim()))]
    if x.is_floating_point():
        options.append(Partial())
    place = rng.choice(options)
    if isinstance(place, Partial):
        part = x.detach() * (0.25 if mesh.get_local_rank() else 1 - 0.25 * (mesh.size() - 1))
        made = DTensor.from_local(part, mesh, [place])
        return made.detach().requires_grad_(x.requires_grad), place
    return distribute_tensor(x.detach().clone(), mesh, [place], src_data_rank=None).requires_grad_(
        x.requires_grad
    ), place


def whole(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def gradients(made, leaves):
    """The gradients of a weighted sum of the floating-point results, whole; and None where nothing was recorded."""
    total = None
    for i, y in enumerate(tree_leaves(made)):
        if isinstance(y, Tensor) and y.requires_grad and y.is_floating_point():
            term = (y * (0.3 + 0.1 * i)).sum() + (y * y).sum() * 0.1
            total = term if total is None else total + term
    if total is None or not total.requires_grad:
        return None
    wanted = [x for x in leaves if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        return None
    return [None if g is None else whole(g).detach() for g in taeda.autograd.grad(total, wanted, allow_unused=True)]


def attempt(function, args, kwargs, mesh, rng) -> str:
    """The fault, ``"refused: ..."``, or nothing."""
    leaves, structure = tree_flatten((args, kwargs))
    plain = [x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in leaves]
    a, k = tree_unflatten(plain, structure)
    taeda.manual_seed(0)
    expected = function(*a, **k)
    slopes = gradients(expected, plain)
    made = [placed(x, mesh, rng) if isinstance(x, Tensor) else (x, None) for x in leaves]
    where = [str(p) for _, p in made if p is not None]
    given = [x for x, _ in made]
    a, k = tree_unflatten(given, structure)
    taeda.manual_seed(0)
    try:
        got = function(*a, **k)
        values = tree_map(lambda x: whole(x).detach() if isinstance(x, Tensor) else x, got)
        found = gradients(got, given)
    except dist.DistBackendError:
        raise
    except Exception as error:
        return f"refused: {where}: {type(error).__name__}: {str(error)[:200]}"
    want = [x.detach() if isinstance(x, Tensor) else x for x in tree_leaves(expected)]
    for i, (x, y) in enumerate(zip(tree_leaves(values), want, strict=True)):
        if not same(x, y):
            return f"{where}: result {i}: {str(x)[:80]} instead of {str(y)[:80]}"
    if (slopes is None) != (found is None):
        return f"{where}: the one has gradients"
    for i, (x, y) in enumerate(zip(found or (), slopes or (), strict=True)):
        x, y = (taeda.zeros(()) if t is None else t for t in (x, y))  # none is zero
        if not (same(x, y) if x.shape == y.shape else x.eq(0).all() and y.eq(0).all()):
            return f"{where}: gradient {i}: {str(x)[:80]} instead of {str(y)[:80]}"
    return ""


def same(x, y) -> bool:
    """Whether two results are equal but for rounding."""
    if not isinstance(y, Tensor):
        return x == y or (x != x and y != y)
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    exact = not (y.is_floating_point() or y.is_complex())
    return x.equal(y) if exact else taeda.allclose(x, y, rtol=1e-6, atol=1e-8, equal_nan=True)


def check(op, limit, mesh) -> list[str]:
    """For each sample what :func:`attempt` says."""
    dtype = next((d for d in (torch.float64, torch.int64) if d in op.supported_dtypes("cpu")), None)
    if dtype is None:
        return []
    function, found = translate(op.op), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, sample in enumerate(plain_samples(op, limit, dtype, requires_grad=dtype is torch.float64)):
            args, kwargs = translate((sample.input, *sample.args)), translate(sample.kwargs)
            rng = random.Random(f"{name_of(op)} {i}")  # the same at every process
            try:
                found.append(attempt(function, args, kwargs, mesh, rng))
            except dist.DistBackendError:
                raise
            except Exception as error:
                found.append(f"plain: {type(error).__name__}: {str(error)[:100]}")
    return found


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    counts: Counter = Counter()
    for name, op, limit in chosen():
        if op.name in UNSPECIFIED or op.name in UNCOMPARED:
            continue
        try:
            found = check(op, limit, mesh)
        except Missing:
            continue
        for result in found:
            kind = (
                result.partition(":")[0]
                if result.startswith(("refused", "plain"))
                else "DIFFERS"
                if result
                else "right"
            )
            counts[kind] += 1
            if result and dist.get_rank() == 0:
                print(name, kind, result, flush=True)
    if dist.get_rank() == 0:
        print(dict(counts))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
