"""The agent of an elastic run on one machine: it meets other machines' agents, starts processes, and restarts them.

A run is a row of *rounds*. In a round the agents that have come agree on ranks; each starts its processes and looks at
them. The round ends when all processes have ended, when one fails, when a machine falls silent, or when further
machines wait and there is room; after that comes the next round, with new ranks. Agents of several machines agree by a
store, which one of them keeps. A machine alone needs none.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .elastic.multiprocessing.errors import ProcessFailure
from .errors import DistError, DistNetworkError, DistStoreError
from .links import own_address
from .stores import PrefixStore, Store, TCPStore
from .workers import Logs, Workers, exit_code, how_it_ended

_SILENT = 8.0  # seconds without a beat after which a machine is taken for gone
_BEAT = 1.0
_SPEAK = 3.0  # seconds that processes have to notice by themselves that another one has failed
_FIRST = _SILENT + 2.0  # seconds that machines whose processes follow another's failure give that to be told
_LEAVE = 10.0  # seconds that the keeper of the store waits for the others to read the end


@dataclass
class Plan:
    """The options of the command line."""

    nodes: tuple[int, int]
    processes: int
    node_rank: int
    static: bool
    address: str
    port: int
    run_id: str
    max_restarts: int
    interval: float
    role: str
    local_address: str
    command: list[str]
    logs: Logs
    mpi: bool = False
    conf: dict[str, str] = field(default_factory=dict)


@dataclass
class Round:
    """The result of a rendezvous: the processes on which the agents of a round agreed."""

    number: int
    index: int  # the machine's number
    counts: list[int]  # processes of each machine
    address: str
    port: int
    secret: str
    restarts: int


@dataclass
class Ended:
    """The end of a round: with success, with a failure, or because machines wait to join."""

    code: int = 0
    text: str = ""
    joining: bool = False


def _say(text: str) -> None:
    print(f"taeda.distributed.run: {text}", file=sys.stderr, flush=True)


class ReservedPort:
    """A free port, for a process that will listen there. No other process gets it until :meth:`release`.

    On Linux, a socket that is bound and does not listen keeps the system from giving the port to others, and still lets
    a process bind it by its number, as servers do (SO_REUSEADDR). Elsewhere the port is free when it was looked for, no
    more.
    """

    def __init__(self) -> None:
        dual = socket.has_dualstack_ipv6()
        self._socket = socket.socket(socket.AF_INET6 if dual else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._socket.bind(("", 0))
        self.number: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self.release()

    def release(self) -> None:
        """Let others have it."""
        self._socket.close()


class Agent:
    """Runs ``plan`` on the machine called ``host``."""

    def __init__(self, plan: Plan, host: str) -> None:
        self.plan, self.host = plan, host
        self.alone = plan.nodes == (1, 1)
        self.restarts = 0
        self.keeper = False  # whether this one keeps the store
        self.store: Any = None if self.alone else self._meet()
        self._beats: dict[int, tuple[int, float]] = {}  # for each other machine: the last beat, and when it was seen
        self._beat = 0.0
        self.ranks: list[int] = []  # ranks of this machine's processes, in the last round
        self.failures: dict[int, ProcessFailure] = {}  # their failures, by rank
        self._reserved: ReservedPort | None = None  # where the processes of the round meet, on this machine

    def run(self) -> int:
        """The exit code, once all rounds are over."""
        number = 0
        try:
            while True:
                current = self._agree(number)
                self.restarts = current.restarts
                ended = self._round(current)
                if not ended.joining and not ended.code:
                    return 0
                if ended.joining:
                    _say("machines have joined: all processes start again")
                else:
                    if ended.text:
                        _say(ended.text)
                    if self.restarts >= self.plan.max_restarts:
                        return ended.code
                    self.restarts += 1
                    _say(f"restart {self.restarts} of {self.plan.max_restarts}")
                number = current.number + 1
        except DistError as error:
            _say(f"on host {self.host}: {error}")
            return 1
        finally:
            self._leave()

    # ---- agreement ---------------------------------------------------------------------------------------------------

    def _meet(self) -> Store:
        """The store of all agents, which the first one at its address keeps."""
        plan = self.plan
        wait = timedelta(seconds=float(plan.conf.get("join_timeout", plan.conf.get("timeout", 600))))
        keep = plan.conf.get("is_host", "").lower()
        may = plan.node_rank == 0 if plan.static else keep in ("1", "true") or (not keep and _is_here(plan.address))
        if may:
            try:
                store = TCPStore(plan.address, plan.port, is_master=True, timeout=wait, wait_for_workers=False)
                self.keeper = True
            except DistNetworkError:
                if plan.static:
                    raise
                may = False  # another agent of this machine keeps it
        if not may:
            store = TCPStore(plan.address, plan.port, timeout=wait, wait_for_workers=False)
        run = PrefixStore(f"run/{plan.run_id}", store)
        run.set_timeout(wait)
        run.add("came", 1)
        return run

    def _reserve(self) -> int:
        """A port of this machine for the processes of a round, kept until the round is over."""
        self._reserved = ReservedPort()
        return self._reserved.number

    def _agree(self, number: int) -> Round:
        """Take part in round ``number``, or in the first one that is open after it."""
        plan = self.plan
        if self.alone:
            port = plan.port or self._reserve()
            secret = os.environ.get("TAEDA_DISTRIBUTED_SECRET") or secrets.token_hex(16)
            return Round(number, 0, [plan.processes], plan.address, port, secret, self.restarts)
        store = self.store
        number = max(number, int(store.add("round", 0)))
        while True:
            index = plan.node_rank if plan.static else store.add(f"{number}/joined", 1) - 1
            address = plan.local_address or own_address(store)
            store.set(f"{number}/node/{index}", json.dumps([plan.processes, address]))
            if plan.static:
                store.add(f"{number}/joined", 1)
            if index == 0:
                self._lead(number, address)
            store.wait([f"{number}/open"])
            opened = json.loads(store.get(f"{number}/open"))
            if index < len(opened["counts"]):
                address, port, secret = opened["master"]
                return Round(number, index, opened["counts"], address, port, secret, opened["restarts"])
            store.add(f"{number}/late", 1)  # the others see it, and make room
            number = self._after(number, opened["restarts"])

    def _lead(self, number: int, address: str) -> None:
        """Wait for the machines of a round, and tell them who takes part and where rank 0 will be."""
        plan, store = self.plan, self.store
        fewest, most = plan.nodes
        end = time.monotonic() + store.timeout.total_seconds()
        call = time.monotonic() + float(plan.conf.get("last_call_timeout", 30 if number == 0 else 3))
        while (there := int(store.add(f"{number}/joined", 0))) < most:
            if there >= fewest and time.monotonic() > call:
                break
            if time.monotonic() > end:
                raise DistNetworkError(f"{there} of {fewest} machines came within {store.timeout}")
            time.sleep(0.05)
        nodes = [json.loads(store.get(f"{number}/node/{i}")) for i in range(min(there, most))]
        store.set("round", str(number))
        master = [address, self._reserve(), secrets.token_hex(16)]
        opened = {"counts": [count for count, _ in nodes], "master": master, "restarts": self.restarts}
        store.set(f"{number}/open", json.dumps(opened))

    def _after(self, number: int, restarts: int) -> int:
        """The round after ``number``, which this machine came too late for, once that has ended."""
        while not self.store.check([f"{number}/ended"]):
            time.sleep(0.1)
        ended = Ended(*json.loads(self.store.get(f"{number}/ended")))
        if not ended.joining and (not ended.code or restarts >= self.plan.max_restarts):
            raise DistStoreError(f"the run {self.plan.run_id!r} was over before this machine could join")
        return number + 1

    # ---- a round -----------------------------------------------------------------------------------------------------

    def _environments(self, current: Round) -> list[dict[str, str]]:
        plan, world = self.plan, sum(current.counts)
        first = sum(current.counts[: current.index])
        shared = {
            "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": plan.processes, "GROUP_RANK": current.index,
            "GROUP_WORLD_SIZE": len(current.counts), "ROLE_NAME": plan.role, "ROLE_WORLD_SIZE": world,
            "MASTER_ADDR": current.address, "MASTER_PORT": current.port, "TORCHELASTIC_RUN_ID": plan.run_id,
            "TORCHELASTIC_RESTART_COUNT": current.restarts, "TORCHELASTIC_MAX_RESTARTS": plan.max_restarts,
            "TAEDA_DISTRIBUTED_SECRET": current.secret,
        }  # fmt: skip
        if plan.processes > 1 and "OMP_NUM_THREADS" not in os.environ:
            shared["OMP_NUM_THREADS"] = 1
        if plan.mpi:  # one process, mpiexec, which starts the others: MPI assigns ranks
            kept = ("LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "OMP_NUM_THREADS")
            return [{name: str(shared[name]) for name in kept if name in shared}]
        made = []
        for local in range(plan.processes):
            own = {"RANK": first + local, "ROLE_RANK": first + local, "LOCAL_RANK": local}
            made.append({name: str(value) for name, value in {**shared, **own}.items()})
        return made

    def _round(self, current: Round) -> Ended:
        """Start the processes, and look at them until the round ends."""
        workers, told = Workers(self.plan.logs, current.restarts), False
        first = sum(current.counts[: current.index])
        self.ranks, self.failures = list(range(first, first + self.plan.processes)), {}
        try:
            self._beats = {i: (self._beat_of(current, i), time.monotonic()) for i in self._others(current)}
            workers.start(self.plan.command, self._environments(current))
            while True:
                failed = workers.failed()
                if failed is not None:
                    workers.wait(_SPEAK)  # the others notice by themselves, and report what they were doing
                    told_first = self._let_speak(current, workers)
                    return told_first or self._failure(current, workers, *(workers.failed() or failed))
                if not workers.running():
                    if self.alone:
                        return Ended()
                    if not told:
                        self.store.add(f"{current.number}/done", 1)
                        told = True
                if not self.alone:
                    ended = self._listen(current)
                    if ended is not None:
                        return ended
                time.sleep(self.plan.interval)
        finally:
            workers.stop()
            if self._reserved is not None:
                self._reserved.release()

    def _let_speak(self, current: Round, workers: Workers) -> Ended | None:
        """If processes here failed because of another, wait until that one ends or its machine reports its end.

        A machine from which nothing was heard since then is waited for until it is found to be silent.
        """
        begin, seconds = time.monotonic(), _SPEAK if self.alone else _FIRST
        while (failed := workers.failed()) is not None and workers.follows(failed[0]):
            ended = None if self.alone else self._listen(current)
            if ended is not None:
                return ended
            heard = all(when > begin for _, when in self._beats.values())
            if time.monotonic() > begin + seconds and heard:
                break
            time.sleep(0.05)
        return None

    def _failure(self, current: Round, workers: Workers, local: int, code: int) -> Ended:
        rank = self.ranks[local]
        said = workers.said(local).get("message", how_it_ended(code))
        text = str(said.get("message") if isinstance(said, dict) else said)
        self.failures = {rank: ProcessFailure(local, workers.processes[local].pid, code, "", text)}
        who = "mpiexec" if self.plan.mpi else f"rank {rank} (local rank {local})"
        ended = Ended(exit_code(code), f"{who} on host {self.host} {how_it_ended(code)}")
        return self._tell(current, ended)

    def _tell(self, current: Round, ended: Ended) -> Ended:
        """Tell all machines how the round ended, unless one has done so already. Returns what was told first."""
        if self.alone:
            return ended
        said = json.dumps([ended.code, ended.text, ended.joining])
        first = self.store.compare_set(f"{current.number}/ended", "", said)
        return Ended(*json.loads(first))

    def _listen(self, current: Round) -> Ended | None:
        """The end of the round according to the others; None while it goes on."""
        store, number, nodes = self.store, current.number, len(current.counts)
        if store.check([f"{number}/ended"]):
            return Ended(*json.loads(store.get(f"{number}/ended")))
        if int(store.add(f"{number}/done", 0)) >= nodes:
            return self._tell(current, Ended())
        now = time.monotonic()
        if now - self._beat >= _BEAT:
            self._beat = now
            store.add(f"{number}/beat/{current.index}", 1)
            silent = [i for i in self._others(current) if self._is_silent(current, i, now)]
            if silent:
                for i in silent:  # the keeper of the store does not wait for it at the end
                    store.add("left", int(store.add(f"{number}/silent/{i}", 1) == 1))
                return self._tell(current, Ended(1, f"machine {silent[0]} was not heard of for {_SILENT:.0f} seconds"))
            if current.index == 0 and nodes < self.plan.nodes[1] and int(store.add(f"{number}/late", 0)):
                return self._tell(current, Ended(joining=True))
        return None

    def _others(self, current: Round) -> list[int]:
        return [i for i in range(len(current.counts)) if i != current.index]

    def _beat_of(self, current: Round, index: int) -> int:
        return self.store.add(f"{current.number}/beat/{index}", 0)

    def _is_silent(self, current: Round, index: int, now: float) -> bool:
        beat = self._beat_of(current, index)
        if self._beats[index][0] != beat:
            self._beats[index] = beat, now
        return now - self._beats[index][1] > _SILENT

    def _leave(self) -> None:
        """The keeper of the store ends last."""
        if self.alone or self.store is None:
            return
        try:
            self.store.add("left", 1)
            joined = int(self.store.add("came", 0))
            end = time.monotonic() + (_LEAVE if self.keeper else 0)
            while time.monotonic() < end and int(self.store.add("left", 0)) < joined:
                time.sleep(0.05)
        except DistError:
            pass


def _is_here(address: str) -> bool:
    """Whether ``address`` is one of this machine's."""
    try:
        with socket.create_server((socket.gethostbyname(address), 0)):
            return True
    except OSError:
        return False
