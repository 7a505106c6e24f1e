"""``python -m taeda.distributed.run``: start a program in several processes on this machine, as ``torchrun`` does.

::

    python -m taeda.distributed.run --nproc-per-node=2 train.py --epochs 3

Each process has RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which
``init_process_group()`` reads. When one fails, the others are ended, and so does this with its code.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="taeda.distributed.run", description="Start a program in several processes.")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", default="1", help="processes here; 'cpu', 'auto': CPUs")
    parser.add_argument("--nnodes", default="1", help="machines")
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0, help="the number of this machine")
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", help="where rank 0 is")
    parser.add_argument("--master-port", "--master_port", type=int, default=0, help="its port; any free one by default")
    parser.add_argument("--standalone", action="store_true", help="one machine, any free port")
    parser.add_argument("--rdzv-id", "--rdzv_id", default="none", help="the name of the run")
    parser.add_argument("--rdzv-backend", "--rdzv_backend", help="accepted")
    parser.add_argument("--rdzv-endpoint", "--rdzv_endpoint", default="", help="host:port, for the master's")
    parser.add_argument("--max-restarts", "--max_restarts", type=int, default=0, help="accepted: there are none")
    parser.add_argument("-m", "--module", action="store_true", help="the program is the name of a module")
    parser.add_argument("--no-python", "--no_python", action="store_true", help="the program is not one of Python")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _free_port() -> int:
    with socket.create_server(("", 0)) as probe:
        return probe.getsockname()[1]


def main(args: list[str] | None = None) -> None:
    """Start what ``args`` (the command line) name, and wait for it.

    Raises:
        SystemExit: a process failed, or the options make no sense.
    """
    parser = _parser()
    options = parser.parse_args(args)
    here, nodes = options.nproc_per_node, options.nnodes.rpartition(":")[2]
    here = str(len(os.sched_getaffinity(0))) if here in ("cpu", "auto") else here
    if not here.isdigit() or not nodes.isdigit() or int(here) < 1 or not 0 <= options.node_rank < int(nodes):
        parser.error(f"expected numbers of processes and machines, got {here}, {nodes} and rank {options.node_rank}")
    address, port = options.master_addr, options.master_port
    if options.rdzv_endpoint and not options.standalone:
        address, _, given = options.rdzv_endpoint.partition(":")
        port = int(given or 0) or port
    if int(nodes) > 1 and not port:
        parser.error("several machines need --master-port")
    count = int(here)
    shared = {
        "WORLD_SIZE": str(count * int(nodes)), "LOCAL_WORLD_SIZE": here, "GROUP_RANK": str(options.node_rank),
        "MASTER_ADDR": address, "MASTER_PORT": str(port or _free_port()), "TORCHELASTIC_RUN_ID": options.rdzv_id,
    }  # fmt: skip
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        shared["OMP_NUM_THREADS"] = "1"
    command = [options.program, *options.arguments]
    if not options.no_python:
        command = [*_python(), *(["-m"] if options.module else []), *command]
    processes = []
    for local in range(count):
        own = {"RANK": str(options.node_rank * count + local), "LOCAL_RANK": str(local)}
        processes.append(subprocess.Popen(command, env={**os.environ, **shared, **own}))
    raise SystemExit(_wait(processes))


def _python() -> list[str]:
    """Python, with the stand-in where this process has it."""
    standin = sys.modules.get("taeda.standin")
    return [sys.executable, *(["-m", "taeda.standin"] if standin is not None and standin.is_installed() else [])]


def _wait(processes: list[subprocess.Popen]) -> int:
    """The code of the first that fails, once all have ended; the others are asked to end when one fails."""
    try:
        while True:
            running = any(p.poll() is None for p in processes)
            failed = next(((rank, p.returncode) for rank, p in enumerate(processes) if p.returncode), None)
            if failed is not None:
                print(f"taeda.distributed.run: process {failed[0]} ended with code {failed[1]}", file=sys.stderr)
                break
            if not running:
                return 0
            time.sleep(0.02)
        end = time.monotonic() + 1  # the others notice by themselves, and say what they were doing
        while any(p.poll() is None for p in processes) and time.monotonic() < end:
            time.sleep(0.02)
        return failed[1]
    finally:
        for p in processes:
            if p.poll() is None:
                p.terminate()
        for p in processes:
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()


if __name__ == "__main__":
    main()
