"""Groups of processes: how they are made, and the questions that programs ask of them."""

from __future__ import annotations

import enum
import os
import queue
import threading
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import taeda

from ..futures import Future
from .links import Key, Links
from .rendezvous import rendezvous
from .stores import PrefixStore, Store

default_pg_timeout = timedelta(minutes=30)
_NOT_YET = "Default process group has not been initialized, please make sure to call init_process_group."


class ReduceOp(enum.Enum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    __str__ = __repr__


class Backend(str):
    """The name of a way to communicate, in lower case: ``gloo``, by TCP, is the one that there is."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"

    #: The backend that a group has for tensors of a device, where none is named.
    default_device_backend_map: ClassVar = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string, got {type(name).__name__}")
        return str.__new__(cls, name.lower())


class Work:
    """A collective under way."""

    def __init__(self, future: Future) -> None:
        self._future = future

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done; what went wrong is raised.

        Raises:
            RuntimeError: it did not end in time.
        """
        try:
            self._future.result(None if not timeout else timeout.total_seconds())
        except TimeoutError:
            raise RuntimeError(f"Work.wait: the collective did not end within {timeout}") from None
        return True

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._future.done() and self._future.exception() is None

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return self._future.exception() if self._future.done() else None

    def result(self) -> list:
        """The tensors it wrote."""
        return self._future.result()

    def get_future(self) -> Future:
        """Its result, as a Future."""
        return self._future

    synchronize = wait


class ProcessGroup:
    """Processes that work together; made by :func:`init_process_group` and :func:`new_group`."""

    def __init__(
        self, name: str, ranks: Sequence[int], rank: int, links: Links | None, timeout: timedelta, backend: str
    ) -> None:
        self.group_name = name
        self.group_desc = name
        self.ranks = list(ranks)  # in the world
        self.timeout = timeout
        self._rank = rank
        self._links = links
        self._backend = backend
        self._count = 0
        self._tasks: queue.SimpleQueue | None = None

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes there are."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the way they communicate."""
        return "gloo"

    @property
    def others(self) -> list[int]:
        """The ranks in the group other than this process's."""
        return [rank for rank in range(self.size()) if rank != self._rank]

    def send(self, rank: int, key: Key, doing: str, payload: Any = b"", **more: Any) -> None:
        """:meth:`Links.send` by rank in the group."""
        assert self._links is not None
        self._links.send(self.ranks[rank], key, doing, payload, **more)

    def receive(
        self, ranks: Sequence[int], key: Key, doing: str, timeout: timedelta | None = None
    ) -> tuple[int, dict, memoryview]:
        """:meth:`Links.receive` by rank in the group."""
        assert self._links is not None
        found = self._links.receive(
            [self.ranks[rank] for rank in ranks], key, doing, self.timeout if timeout is None else timeout
        )
        return self.ranks.index(found[0]), *found[1:]

    def has(self, ranks: Sequence[int], key: Key) -> bool:
        """Whether a message has come; see :meth:`Links.has`."""
        return self._links is not None and self._links.has([self.ranks[rank] for rank in ranks], key)

    def run(self, body: Callable[[Key], Any], async_op: bool = False) -> Work | None:
        """Call ``body(key)``, where ``key`` marks the messages of this one collective; beside the program if ``async_op``."""
        key = (self.group_name, str(self._count))
        self._count += 1
        if not async_op:
            with taeda.no_grad():
                body(key)
            return None
        future = Future()

        def task() -> None:
            try:
                with taeda.no_grad():
                    future.set_result(body(key))
            except BaseException as error:  # whoever waits gets it
                future.set_exception(error)

        if self.size() == 1:
            task()
        else:
            if self._tasks is None:
                self._tasks = queue.SimpleQueue()
                threading.Thread(target=_work, args=(self._tasks,), name="taeda-collectives", daemon=True).start()
            self._tasks.put(task)
        return Work(future)


def _work(tasks: queue.SimpleQueue) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # and what it holds


class _World:
    """What :func:`init_process_group` made."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.store: Store | None = None
        self.links: Links | None = None
        self.made = 0  # groups so far: equal on all processes, so it names them


_world = _World()


class _GroupType(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _world.default


class GroupMember(metaclass=_GroupType):
    """``WORLD`` is the group of all processes, or None."""

    NON_GROUP_MEMBER = -100


group = GroupMember


def is_available() -> bool:
    """Whether processes can form a group: True."""
    return True


def is_initialized() -> bool:
    """Whether this process is in a group."""
    return _world.default is not None


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_gloo_available() -> bool:
    """Whether the backend ``gloo`` is there: True."""
    return True


def is_mpi_available() -> bool:
    """False."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = is_mpi_available


def is_backend_available(backend: str) -> bool:
    """Whether there is such a backend."""
    return backend.lower() == "gloo"


def get_default_backend_for_device(device: Any) -> str:
    """``gloo``, on the CPU."""
    return "gloo"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from the launcher's ``LOCAL_RANK``.

    Raises:
        RuntimeError: it is not set, and there is no ``fallback_rank``.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def _get_default_group() -> ProcessGroup:
    if _world.default is None:
        raise ValueError(_NOT_YET)
    return _world.default


def _get_default_store() -> Store:
    _get_default_group()
    assert _world.store is not None
    return _world.store


def resolve(group: Any) -> ProcessGroup | None:
    """The group that an argument ``group`` means; None where this process is not in it.

    Raises:
        ValueError: there is no group.
        TypeError: it is something else.
    """
    if group is None:
        return _get_default_group()
    if group is GroupMember.NON_GROUP_MEMBER or group == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"expected group to be a ProcessGroup, got {type(group).__name__}")
    if group not in _world.groups:
        raise ValueError(_NOT_YET if _world.default is None else "The given group is not registered")
    return group


def _check_backend(backend: str | None) -> str:
    name = Backend(backend or "undefined")
    for part in name.split(","):
        kind = part.rpartition(":")[2].strip()
        if kind in ("nccl", "mpi", "ucc", "xccl"):
            raise RuntimeError(f"Distributed package doesn't have {kind.upper()} built in; use the backend 'gloo'")
        if kind not in ("gloo", "undefined"):
            raise RuntimeError(f"Unknown c10d backend type {kind.upper()}; there is 'gloo'")
    return name


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Store | None = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:  # fmt: skip
    """Make this process one of a group of ``world_size``, which communicate by TCP.

    Args:
        backend: ``"gloo"``, or None.
        init_method: where they meet: ``"env://"`` (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; the default),
            ``"tcp://host:port"``, at the process of rank 0, or ``"file:///path"``.
        timeout: how long one waits for another, 30 minutes by default.
        world_size: how many processes there are.
        rank: the number of this one, from 0.
        store: where they meet, in place of ``init_method``.
        group_name, pg_options, device_id: accepted.
    Raises:
        ValueError: there is a group already, or what says where and who is missing.
        RuntimeError: the backend is not there, or the others did not come in time.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    timeout = default_pg_timeout if timeout is None else timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    backend = _check_backend(backend)
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group: expected a rank from 0 to {world_size - 1}, got {rank}")
    _world.store = PrefixStore("default_pg", store)
    _world.links = None if world_size == 1 else Links(_world.store, rank, world_size, timeout)
    _world.made = 1
    _world.default = ProcessGroup("0", range(world_size), rank, _world.links, timeout, backend)
    _world.groups = [_world.default]


def destroy_process_group(group: Any = None) -> None:
    """Leave ``group``, or all groups."""
    assert _world.default is not None or group is not None, "Process group cannot be None"
    if group is None or group is _world.default:
        for one in _world.groups:
            if one._tasks is not None:
                one._tasks.put(None)
        if _world.links is not None:
            _world.links.close()
        _world.__init__()  # type: ignore[misc]
    else:
        resolved = resolve(group)
        if resolved is not None:
            _world.groups.remove(resolved)


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """The group of some processes; every process has to call it, in the same order, even those outside.

    Args:
        ranks: those of the processes, all by default.
        timeout: how long one waits for another.
        backend: as for :func:`init_process_group`.
        pg_options, use_local_synchronization, group_desc, device_id: accepted.
        sort_ranks: number them as in the world, rather than in the order given.
    Returns:
        The group, or ``GroupMember.NON_GROUP_MEMBER`` at a process that is not in it.
    Raises:
        ValueError: there are not so many processes, or no such rank.
    """
    world = _get_default_group()
    name = str(_world.made)
    _world.made += 1
    chosen = list(world.ranks) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(chosen) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in chosen:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"new_group: expected each rank once, got {chosen}")
    if not chosen:
        raise TypeError("new_group: expected at least one rank, got none")
    backend = _check_backend(backend) if backend is not None else world._backend
    if world.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(
        name, chosen, chosen.index(world.rank()), _world.links, world.timeout if timeout is None else timeout, backend
    )
    made.group_desc = group_desc or name
    _world.groups.append(made)
    return made


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list]:  # fmt: skip
    """Groups of ``group_size`` neighbours each: that of this process, and all.

    Raises:
        ValueError: the world does not divide into such groups.
    """
    world = get_world_size()
    group_size = world if group_size is None else group_size
    if group_size <= 0 or group_size > world:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must be positive and not exceed the world size ({world})"
        )
    if world % group_size:
        raise ValueError(f"The world size ({world}) must be divisible by '{group_size=}'")
    starts = range(0, world, group_size)
    return new_subgroups_by_enumeration([list(range(i, i + group_size)) for i in starts], timeout, backend)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list]:  # fmt: skip
    """A group for each list of ranks: that of this process (None if there is none), and all.

    Raises:
        ValueError: a rank is in two of them.
    """
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(everyone)) != len(everyone):
        raise ValueError("new_subgroups_by_enumeration: a rank has appeared in both subgroups")
    made = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    return next((one for one in made if one != GroupMember.NON_GROUP_MEMBER), None), made


def get_rank(group: Any = None) -> int:
    """The number of this process in the group, -1 outside it.

    Raises:
        ValueError: there is no group.
    """
    resolved = resolve(group)
    return -1 if resolved is None else resolved.rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes in the group, -1 outside it.

    Raises:
        ValueError: there is no group.
    """
    resolved = resolve(group)
    return -1 if resolved is None else resolved.size()


def get_backend(group: Any = None) -> Backend:
    """The backend of the group, as it was asked for.

    Raises:
        ValueError: there is no group, or this process is not in it.
    """
    return Backend(_within(group)._backend)


def get_backend_config(group: Any = None) -> str:
    """The backend for each kind of device."""
    _within(group)
    return "cpu:gloo,cuda:gloo"


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks in the world of the processes in the group."""
    return list(_within(group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of that in the group.

    Raises:
        ValueError: it has no such rank.
    """
    ranks = _within(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in the group of that in the world.

    Raises:
        ValueError: it is not in the group.
    """
    ranks = _within(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_pg_count() -> int:
    """How many groups this process is in."""
    return len(_world.groups)


def _within(group: Any) -> ProcessGroup:
    resolved = resolve(group)
    if resolved is None:
        raise ValueError("Invalid process group specified")
    return resolved


def warn_not_in_group(name: str) -> None:
    """Say that ``name`` does nothing at this process."""
    warnings.warn(f"Running {name} on global rank {get_rank()} which does not belong to the given group.", stacklevel=3)
