"""The launcher of this process: the variables that launchers (torchrun, mpiexec, srun) leave in the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec

_MPI = {  # value -> the launchers' names for it
    "rank": ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"),
    "size": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"),
    "local_rank": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"),
}
_SLURM = {"rank": "SLURM_PROCID", "size": "SLURM_NTASKS", "local_rank": "SLURM_LOCALID"}
_PORTS = 12_000, 20_000  # the first and how many: where jobs of SLURM meet, apart from each other


def mpi_is_installed() -> bool:
    """Whether ``mpi4py`` is there; MPI itself is not started, so whether it works is seen later."""
    return find_spec("mpi4py") is not None


def by_mpi() -> bool:
    """Whether an MPI launcher started this process, and no launcher that sets RANK."""
    return "RANK" not in os.environ and any(name in os.environ for name in _MPI["rank"])


def by_slurm() -> bool:
    """Whether ``srun`` started this process, and no launcher that sets RANK."""
    return "RANK" not in os.environ and "SLURM_PROCID" in os.environ and "SLURM_JOB_ID" in os.environ


def _number(what: str) -> int | None:
    for name in (*_MPI[what], _SLURM[what]):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def local_rank() -> int | None:
    """The number of this process on its machine, where the launcher says it."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    return _number("local_rank")


def variable(name: str) -> str | None:
    """The environment's ``name`` (RANK, WORLD_SIZE, MASTER_ADDR or MASTER_PORT), or what MPI or SLURM say instead."""
    value = os.environ.get(name)
    if value:
        return value
    if name in ("RANK", "WORLD_SIZE"):
        found = _number("rank" if name == "RANK" else "size")
        return None if found is None else str(found)
    if by_slurm():
        if name == "MASTER_ADDR":
            nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST") or ""
            return next(hosts(nodes), None)
        if name == "MASTER_PORT":
            job = int(os.environ["SLURM_JOB_ID"].partition("_")[0])
            step = os.environ.get("SLURM_STEP_ID", "0")
            return str(_PORTS[0] + (7 * job + (int(step) if step.isdigit() else 0)) % _PORTS[1])
    return None


def hosts(nodes: str) -> Iterator[str]:
    """The hosts of SLURM's ``nodes``: ``"a[01-03,7],b"`` are a01, a02, a03, a7 and b."""
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes):
        yield from _expanded(item)


def _expanded(item: str) -> Iterator[str]:
    before, bracket, rest = item.partition("[")
    if not bracket:
        yield item
        return
    inside, _, after = rest.partition("]")
    for piece in inside.split(","):
        first, _, last = piece.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield from _expanded(f"{before}{number:0{len(first)}d}{after}")
