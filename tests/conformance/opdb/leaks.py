"""Leaks: memory of tensors and Python objects that stay after calls, with the collector of cycles off.

python -m tests.conformance.opdb.leaks [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import contextlib
import gc
import sys

import taeda

from ..trees import rebuilt
from .checks import tensors
from .plans import copies
from .samples import calls, chosen

ROUNDS = 20


def work(function, args, kwargs) -> None:
    """A call, its gradients and their gradients; also where they fail on the way."""
    given = copies([t.detach() for t in tensors([list(args), kwargs])])
    leaves = [t.requires_grad_() if t.dtype.is_floating_point or t.dtype.is_complex else t for t in given]
    late = iter([t if t.dtype is taeda.bool or "float8" in str(t.dtype) else t * 1 for t in leaves])
    with contextlib.suppress(Exception):
        found = tensors(function(*rebuilt(list(args), late), **rebuilt(kwargs, late)))
        sources = [t for t in leaves if t.requires_grad]
        for create_graph in (True, False):
            found = [t for t in found if t is not None and t.requires_grad]
            if sources and found:
                ones = [taeda.ones_like(t) for t in found]
                found = taeda.autograd.grad(found, sources, ones, allow_unused=True, create_graph=create_graph)


def attempt(function, args, kwargs) -> str:
    """The objects and memory that stay after each call; ``""`` if there are none."""
    for _ in range(3):  # plans, kernels, warnings
        work(function, args, kwargs)
    gc.collect()
    gc.disable()
    try:
        memory, objects = taeda.cpu.memory_allocated(), sys.getallocatedblocks()
        for _ in range(ROUNDS):
            work(function, args, kwargs)
        memory = taeda.cpu.memory_allocated() - memory
    finally:
        gc.enable()
    gc.collect()
    objects = sys.getallocatedblocks() - objects
    if memory <= 0 and objects < ROUNDS:  # Python itself keeps less than one object a call
        return ""
    return f"{memory / ROUNDS:.0f} bytes of tensors, {objects / ROUNDS:.1f} objects a call"


def check(op, limit=1) -> list[str]:
    """For each sample what :func:`attempt` says."""
    return [attempt(*call) for call in calls(op, limit, fails=True)]


def main() -> None:
    good = total = 0
    for name, op, limit in chosen():
        found = check(op, limit)
        total += len(found)
        good += found.count("")
        for kept in filter(None, found):
            print(f"{name}: {kept}", flush=True)
    print(f"{good} of {total} calls leave nothing")


if __name__ == "__main__":
    main()
