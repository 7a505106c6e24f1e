"""Functions that tests run in spawned processes: these import it by name, which is not possible for pytest's test
files.
"""

import os

import taeda


def answer(i, x, queue, answers, received):
    """Process ``i`` writes to the tensor it was given and to one from a queue, and gives that back with a parameter."""
    x[i] += 1
    t = queue.get()
    t += 10
    answers.put((i, t, taeda.nn.Parameter(taeda.zeros(2))))
    received.wait(200)  # the memory is handed over when it is received


def add(a, b):
    """Runs in each process of a launch: returns the sum of its arguments, and its place."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    print(f"from {rank}")
    return a + b + rank, size, os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["TORCHELASTIC_RUN_ID"]


def fail_once():
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise KeyError("first")
    return "again"


def fail():
    raise KeyError("always")
