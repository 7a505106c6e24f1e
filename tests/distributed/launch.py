"""Runs a program in several processes, as a launcher does: RANK, WORLD_SIZE and where to meet are in the environment."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from taeda.distributed.agent import ReservedPort

from .forked import Forked

#: Programs may import from `tests`; taeda, which may lie beside these sources unbuilt, has been found by then.
HEAD = f"""
import sys, taeda
import taeda.distributed as dist
from datetime import timedelta
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
"""
#: How programs of PyTorch end: at the interpreter's end its threads may still run, and it aborts.
PYTORCHS_END = """
if dist.is_initialized():
    dist.barrier()
import os
sys.stdout.flush()
os._exit(0)
"""


def meeting_place(world):
    """Variables that say where ``world`` processes meet, at a port that is kept for them as long as this process lives."""
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(kept_port()),
        "WORLD_SIZE": str(world),
        "OMP_NUM_THREADS": "1",
    }


_kept = []


def kept_port():
    """A port for a server in another process. No other process gets it as long as this process lives."""
    _kept.append(ReservedPort())
    return _kept[-1].number


def launch(code, world, init=True, timeout=200):
    """Outputs and exit codes of ``code`` in ``world`` processes, by rank.

    The limits are far above the times of a busy machine: they end runs that hang.
    """
    start = f"dist.init_process_group('gloo', timeout=timedelta(seconds={timeout}))\nrank = dist.get_rank()\n"
    theirs = "import sys, torch" in HEAD
    program = HEAD + (start if init else "") + textwrap.dedent(code) + PYTORCHS_END * theirs
    where = {**os.environ, **meeting_place(world)}
    begin = _interpreter if theirs else Forked
    processes = [begin(program, {**where, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(world)]
    return [(*p.communicate(timeout=250), p.returncode) for p in processes]


def _interpreter(program, environment):
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, **how)


def outputs(code, world, **kwargs):
    """The output of each process; all have to end well."""
    done = launch(code, world, **kwargs)
    assert all(code == 0 for _, _, code in done), "\n".join(err for _, err, _ in done)
    return [out for out, _, _ in done]
