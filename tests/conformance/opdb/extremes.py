"""Extreme integers: every sample of the database with one of its integer arguments replaced by a size near the ends of 64 bits.

No call may end the process, take more memory or time than the worker allows, or give other values than PyTorch. It is
also reported if one framework raises and the other does not.

python -m tests.conformance.opdb.extremes [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

import taeda

from .checks import Differs, close, entries
from .samples import chosen, copied, plain_samples
from .translate import Missing, translate

EXTREMES = (2**31 - 1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63 - 1), -(2**63))
TESTS = Path(__file__).parents[2]
MEMORY = 2 << 30  # bytes of address space beyond those that are used when the calls begin
SECONDS = 20

#: Exceptions that point to a mistake in taeda rather than in the call.
MISTAKES = (SystemError, NameError, AssertionError, AttributeError, RecursionError, KeyError, ZeroDivisionError)


def places(thing, at=()) -> Iterator[tuple]:
    """The paths of the integers in nested lists, tuples and dicts."""
    if isinstance(thing, int) and not isinstance(thing, bool):
        yield at
    elif isinstance(thing, dict):
        for key, x in thing.items():
            yield from places(x, (*at, key))
    elif isinstance(thing, (list, tuple)):
        for i, x in enumerate(thing):
            yield from places(x, (*at, i))


def replaced(thing, at, value):
    """``thing`` with ``value`` at a path."""
    if not at:
        return value
    if isinstance(thing, dict):
        return {**thing, at[0]: replaced(thing[at[0]], at[1:], value)}
    items = [replaced(x, at[1:], value) if i == at[0] else x for i, x in enumerate(thing)]
    return type(thing)(items) if type(thing) in (list, tuple) else tuple(items)


def variants(op, limit) -> Iterator[tuple]:
    """``(function, args, kwargs)`` of PyTorch, each with one extreme integer."""
    seen = set()
    for sample in plain_samples(op, limit):
        whole = [(sample.input, *sample.args), dict(sample.kwargs)]
        for at in places(whole):
            if (at, len(whole[0])) in seen:  # another sample has had its turn
                continue
            seen.add((at, len(whole[0])))
            for value in EXTREMES:
                args, kwargs = replaced(whole, at, value)
                yield op.op, args, kwargs, at, value


def outcome(function, args, kwargs):
    """The result of a call, and its exception."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def compare(function, args, kwargs) -> str:
    """The fault of a call; "" if there is none."""
    mine = (copied(translate(args)), copied(translate(kwargs)))
    torch.manual_seed(0)
    taeda.manual_seed(0)
    got, error = outcome(translate(function), *mine)
    print("peer", flush=True)
    want, refused = outcome(function, args, kwargs)
    if isinstance(error, MISTAKES):
        return f"{type(error).__name__}: {error}"
    if error is None and refused is None:
        try:
            close(got, want)
        except Differs as wrong:
            return f"differs: {wrong}"
        return ""
    if error is None:
        return f"lenient: {describe(got)}; PyTorch: {type(refused).__name__}: {refused}"
    if refused is None:
        return f"refused: {type(error).__name__}: {error}; PyTorch: {describe(want)}"
    return ""


def describe(x) -> str:
    if isinstance(x, (tuple, list)):
        return str([describe(y) for y in x])
    return str(tuple(x.shape)) if hasattr(x, "shape") else repr(x)


def work(names: list[str], limit: int | None, begin: int) -> None:
    """A worker: a line before each call, and one after each that is wrong. It begins with call ``begin`` of the first."""
    warnings.simplefilter("ignore")
    taeda.set_num_threads(1)
    torch.set_num_threads(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
    for name in names:
        for index, (function, args, kwargs, at, value) in enumerate(variants(entries()[name], limit)):
            if index < begin:
                continue
            print("call", name, index, at, value, flush=True)
            signal.alarm(SECONDS)
            try:
                wrong = compare(function, args, kwargs)
            except Missing:
                wrong = ""
            signal.alarm(0)
            if wrong:
                print("wrong", wrong.replace("\n", " ")[:300], flush=True)
        begin = 0
    print("done", flush=True)


def check(names: list[str], limit: int | None = 1) -> Iterator[str]:
    """The faults of entries, one line a call. Calls that end the process in PyTorch are left out."""
    begin = 0
    home = str(Path(taeda.__file__).parents[1])
    path = os.pathsep.join([home, str(TESTS), os.environ.get("PYTHONPATH", "")])
    while True:
        code = f"from conformance.opdb.extremes import work; work({names!r}, {limit!r}, {begin})"
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONPATH": path},
        )
        call, line = "", ""
        for line in process.stdout:
            line = line.rstrip()
            if line.startswith("call "):
                call, peer = line[5:], False
            elif line == "peer":
                peer = True
            elif line.startswith("wrong "):
                yield f"{call}: {line[6:]}"
        process.wait()
        if line == "done":
            return
        if not call:
            raise AssertionError("the worker did not start")
        if not peer:
            yield f"{call}: the process died: {signal.Signals(-process.returncode).name}"
        name, index = call.split()[:2]
        names, begin = names[names.index(name) :], int(index) + 1


if __name__ == "__main__":
    every = list(chosen())
    for found in check([name for name, _, _ in every], every[0][2]):
        print(found, flush=True)
