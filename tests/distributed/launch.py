"""Runs a program in several processes, as a launcher does: RANK, WORLD_SIZE and where to meet are in the environment."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

#: Programs may import from `tests`; taeda, which may lie beside these sources unbuilt, has been found by then.
HEAD = f"""
import sys, taeda
import taeda.distributed as dist
from datetime import timedelta
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def launch(code, world, init=True, timeout=200):
    """Outputs and exit codes of ``code`` in ``world`` processes, by rank.

    The limits are far from what a busy machine takes: they end what hangs.
    """
    start = f"dist.init_process_group('gloo', timeout=timedelta(seconds={timeout}))\nrank = dist.get_rank()\n"
    program = HEAD + (start if init else "") + textwrap.dedent(code)
    where = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(world),
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **where, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    return [(*p.communicate(timeout=250), p.returncode) for p in processes]


def outputs(code, world, **kwargs):
    """What each process printed; all have to end well."""
    done = launch(code, world, **kwargs)
    assert all(code == 0 for _, _, code in done), "\n".join(err for _, err, _ in done)
    return [out for out, _, _ in done]
