"""``python -m taeda.distributed.run``: start a program in several processes, with the command line of ``torchrun``.

::

    python -m taeda.distributed.run --nproc-per-node=2 train.py --epochs 3
    python -m taeda.distributed.run --nnodes=2:4 --nproc-per-node=8 --max-restarts=3 --rdzv-endpoint=node0:29400
    train.py python -m taeda.distributed.run --mpi --nproc-per-node=2 train.py

Each process has RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which
``init_process_group()`` reads. When one fails, the others are ended, on all machines; then all start again, as often as
``--max-restarts`` says, or this ends with the code of the first that failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
from typing import Any

from .agent import Agent, Plan
from .workers import SIGNALS, Logs, signals_handled, streams

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="taeda.distributed.run", description="Start a program in several processes.")

    def option(name: str, *short: str, **kwargs: Any) -> None:
        parser.add_argument(*short, f"--{name}", *([f"--{name.replace('-', '_')}"] if "-" in name else []), **kwargs)

    option("nproc-per-node", default="1", help="processes here; 'cpu', 'auto': as many as processors")
    option("nnodes", default="1", help="machines, or the fewest and the most: 2:4")
    option("node-rank", type=int, default=0, help="the number of this machine, for the static rendezvous")
    option("master-addr", default="127.0.0.1", help="where rank 0 is, for the static rendezvous")
    option("master-port", type=int, default=0, help="its port; any free one by default on one machine")
    option("local-addr", help="the address of this machine for the others")
    option("standalone", action="store_true", help="one machine, any free port")
    option("rdzv-id", default="none", help="the name of the run")
    option("rdzv-backend", default="", help="'static' (machines have numbers) or 'c10d' (they come in any order)")
    option("rdzv-endpoint", default="", help="host:port where the machines meet")
    option("rdzv-conf", default="", help="key=value,...: join_timeout, last_call_timeout (seconds), is_host")
    option("max-restarts", type=int, default=0, help="how often all processes start again after one has failed")
    option("monitor-interval", type=float, default=0.1, help="seconds between looks at the processes")
    option("role", default="default", help="a name for the processes, in logs")
    option("log-dir", help="where outputs are kept: RUN/attempt_N/LOCAL_RANK/stdout.log")
    option("redirects", "-r", default="0", help="outputs to files: 1 stdout, 2 stderr, 3 both; by rank: 0:3,1:1")
    option("tee", "-t", default="0", help="outputs to files and here; the same form")
    option("local-ranks-filter", default="", help="show the outputs of these local ranks alone: 0,1")
    option("start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="accepted")
    option("module", "-m", action="store_true", help="the program is the name of a module")
    option("no-python", action="store_true", help="the program is not one of Python")
    option("run-path", action="store_true", help="accepted: programs are run by path")
    option("mpi", action="store_true", help="start the processes with mpiexec, for the backend 'mpi'")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _plan(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Plan:
    """The plan that the options describe. Options that make no sense end the program."""
    here = options.nproc_per_node
    here = str(len(os.sched_getaffinity(0))) if here in ("cpu", "auto") else here
    fewest, _, most = options.nnodes.partition(":")
    most = most or fewest
    if not (here.isdigit() and fewest.isdigit() and most.isdigit()) or not int(here) >= 1 or int(most) < int(fewest):
        parser.error(f"expected numbers of processes and machines, got {here} and {options.nnodes}")
    several = int(most) > 1 and not options.standalone
    if not 0 <= options.node_rank < max(int(most), 1):
        parser.error(f"--node-rank: expected one of {most} machines, got {options.node_rank}")
    backend = options.rdzv_backend or ("c10d" if options.rdzv_endpoint else "static")
    if backend not in ("static", "c10d"):
        parser.error(f"--rdzv-backend: expected 'static' or 'c10d', got {backend!r}")
    if fewest != most and backend == "static":
        parser.error("--nnodes of a range needs --rdzv-backend=c10d and --rdzv-endpoint")
    address, port = options.master_addr, options.master_port
    if options.rdzv_endpoint and not options.standalone:
        address, _, given = options.rdzv_endpoint.rpartition(":") if ":" in options.rdzv_endpoint else (
            options.rdzv_endpoint, "", "")  # fmt: skip
        if given and not given.isdigit():
            parser.error(f"--rdzv-endpoint: expected host:port, got {options.rdzv_endpoint}")
        port = int(given or 0) or port or (29400 if backend == "c10d" else 0)
    if several and not port:
        parser.error("several machines need --rdzv-endpoint=host:port, or --master-addr and --master-port")
    if options.mpi and several:
        parser.error("--mpi starts processes on this machine; on several, call mpiexec or srun with their hosts")
    conf = dict(item.split("=", 1) for item in options.rdzv_conf.split(",") if "=" in item)
    return Plan(
        nodes=(int(fewest), int(most)) if several else (1, 1), processes=int(here), node_rank=options.node_rank,
        static=backend == "static", address=address, port=port, run_id=options.rdzv_id,
        max_restarts=options.max_restarts, interval=max(options.monitor_interval, 0.01), role=options.role,
        local_address=options.local_addr or "", conf=conf, command=_command(parser, options, int(here)),
        logs=_logs(parser, options, int(here)), mpi=options.mpi,
    )  # fmt: skip


def _logs(parser: argparse.ArgumentParser, options: argparse.Namespace, count: int) -> Logs:
    try:
        shown = [int(rank) for rank in options.local_ranks_filter.split(",") if rank]
        logs = Logs(
            options.log_dir, options.rdzv_id, options.role, streams(options.redirects, count),
            streams(options.tee, count), shown or None,
        )  # fmt: skip
    except ValueError as error:
        parser.error(str(error))
    if options.mpi and logs.any:
        parser.error("--mpi: expected no --redirects or --tee: mpiexec shows the outputs, and has options for files")
    return logs


def _command(parser: argparse.ArgumentParser, options: argparse.Namespace, count: int) -> list[str]:
    command = [options.program, *options.arguments]
    if not options.no_python:
        # mpi4py.run ends the others when a process ends by sys.exit; of a safe path it would overwrite the first folder
        guarded = options.mpi and not sys.flags.safe_path
        start = [sys.executable, "-u", *(["-m", "mpi4py.run"] if guarded else []), *_standin()]
        command = [*start, *(["-m"] if options.module else []), *command]
    if options.mpi:
        mpiexec = shutil.which("mpiexec", path=f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH')}")
        if mpiexec is None:
            parser.error("--mpi: no mpiexec found; install an MPI, for example: pip install mpi4py mpich")
        command = [mpiexec, "-n", str(count), sys.executable, "-m", "taeda.distributed.member", *command]
    return command


def _standin() -> list[str]:
    """The stand-in, where this process has it."""
    standin = sys.modules.get("taeda.standin")
    return ["-m", "taeda.standin"] if standin is not None and standin.is_installed() else []


def main(args: list[str] | None = None) -> None:
    """Start what ``args`` (the command line) name, and wait for it.

    Args:
        args: the command line; that of the program by default.

    Raises:
        SystemExit: a process failed, the options make no sense, or a signal ended it.
    """
    parser = _parser()
    plan = _plan(parser, parser.parse_args(args))

    def stop(number: int, _: Any) -> None:
        raise SystemExit(128 + number)  # the end of the agent ends its processes

    with signals_handled(stop, SIGNALS):
        code = Agent(plan, socket.gethostname()).run()
    raise SystemExit(code)


if __name__ == "__main__":
    main()
