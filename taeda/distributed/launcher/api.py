"""Starts a function or a command in several processes, restarts it when one fails, and returns the results."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import spawn
from pathlib import Path
from typing import Any, NoReturn

from ..agent import Agent, Plan
from ..elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from ..workers import signals_handled

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """The options of ``taeda.distributed.run``'s command line, as arguments.

    Args:
        min_nodes: least number of machines.
        max_nodes: largest number of machines.
        nproc_per_node: processes here.
        logs_specs: where outputs go.
        run_id: the name of the run.
        role: a name for the processes.
        rdzv_endpoint: ``host:port`` where machines meet.
        rdzv_backend: ``"static"``, or ``"c10d"``; what it is does not matter for one machine.
        rdzv_configs: ``rank`` (of this machine, if static), ``join_timeout``, ``last_call_timeout`` and ``is_host``.
        rdzv_timeout: seconds for machines to come.
        max_restarts: how often all processes start again after one has failed.
        monitor_interval: seconds between looks at the processes.
        start_method: accepted.
        log_line_prefix_template: accepted.
        metrics_cfg: accepted.
        local_addr: the address of this machine for the others.
        event_log_handler: accepted.
        numa_options: accepted.
        signals_to_handle: what ends the processes, and raises a ``SignalException``.
        duplicate_stdout_filters: accepted.
        duplicate_stderr_filters: accepted.
        virtual_local_rank: accepted.
        shutdown_timeout: accepted.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        self.logs_specs = self.logs_specs or DefaultLogsSpecs()
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)


class elastic_launch:
    """``elastic_launch(config, function)(*args)`` calls the function in each process: :func:`launch_agent`."""

    def __init__(
        self, config: LaunchConfig, entrypoint: Callable | str | None, health_check_server: Any = None
    ) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        """The results of the processes of this machine, by rank."""
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Callable | str | None, args: Sequence[Any]) -> dict[int, Any]:
    """Call ``entrypoint(*args)`` in each process, or start the command ``entrypoint`` with ``args``.

    Args:
        config: how many, and how they meet.
        entrypoint: a function that can be pickled, as its arguments and its result; or a command.
        args: the arguments.
    Returns:
        The results of this machine's processes, by rank; None for a command.
    Raises:
        ChildFailedError: a process has failed, and all restarts are used up.
        SignalException: a signal ended the run.
        ValueError: several machines are to meet in a way that is not there.
    """
    if entrypoint is None:
        raise ValueError("launch_agent: expected a function or a command, got None")
    name = entrypoint if isinstance(entrypoint, str) else getattr(entrypoint, "__qualname__", repr(entrypoint))
    with tempfile.TemporaryDirectory(prefix="taeda_launch_") as folder:
        agent = Agent(_plan(config, _command(entrypoint, args, Path(folder))), socket.gethostname())
        numbers = [signal.Signals[text.strip()] for text in config.signals_to_handle.split(",") if text.strip()]
        with signals_handled(_stop, numbers):
            code = agent.run()
        if code:
            raise ChildFailedError(name, agent.failures or {0: ProcessFailure(0, 0, code, "")})
        if isinstance(entrypoint, str):
            return dict.fromkeys(agent.ranks)
        return {rank: pickle.loads((Path(folder) / str(rank)).read_bytes()) for rank in agent.ranks}


def _stop(number: int, _: Any) -> NoReturn:
    raise SignalException(f"Process {os.getpid()} got signal: {number}", signal.Signals(number))


def _command(entrypoint: Callable | str, args: Sequence[Any], folder: Path) -> list[str]:
    if isinstance(entrypoint, str):
        return [entrypoint, *map(str, args)]
    where = spawn.get_preparation_data("taeda")  # the main module, the path and so on
    del where["authkey"]  # multiprocessing's connections have one, and there are none
    with open(folder / "call", "wb") as file:
        pickle.dump(where, file)
        pickle.dump((entrypoint, args), file)
    return [sys.executable, "-u", "-m", "taeda.distributed.launcher.call", str(folder)]


def _plan(config: LaunchConfig, command: list[str]) -> Plan:
    several = config.max_nodes > 1
    if several and config.rdzv_backend not in ("static", "c10d"):
        raise ValueError(f"LaunchConfig: expected rdzv_backend 'static' or 'c10d', got {config.rdzv_backend!r}")
    host, _, port = config.rdzv_endpoint.rpartition(":")
    if several and not (host and port.isdigit()):
        raise ValueError(f"LaunchConfig: expected rdzv_endpoint as host:port, got {config.rdzv_endpoint!r}")
    static = config.rdzv_backend == "static"
    run_id = config.run_id or "none"
    assert config.logs_specs is not None
    return Plan(
        nodes=(config.min_nodes, config.max_nodes), processes=config.nproc_per_node,
        node_rank=int(config.rdzv_configs.get("rank", 0)) if static else 0, static=static,
        address=host if several else "127.0.0.1", port=int(port) if several else 0, run_id=run_id,
        max_restarts=config.max_restarts, interval=max(config.monitor_interval, 0.01), role=config.role,
        local_address=config.local_addr or "", command=command,
        logs=config.logs_specs.logs(run_id, config.role, config.nproc_per_node),
        conf={key: str(value) for key, value in config.rdzv_configs.items()},
    )  # fmt: skip
