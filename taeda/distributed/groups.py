"""Groups of processes: how they are made, and functions that describe them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from .. import _core
from . import launched
from .engines.contract import Call, Engine
from .engines.segment import SegmentEngine
from .launched import mpi_is_installed
from .links import Links
from .reduction import ReduceOp as ReduceOp
from .rendezvous import rendezvous
from .stores import PrefixStore, Store
from .watching import WATCHERS
from .work import Work

default_pg_timeout = timedelta(minutes=30)
_NOT_YET = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a way to communicate, in lower case: ``gloo`` (TCP and shared memory), ``mpi`` or ``nccl``."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"

    #: The backend that a group has for tensors of a device, where none is named.
    default_device_backend_map: ClassVar = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    #: All names, and the devices that each is for, there or not.
    backend_list: ClassVar = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    backend_capability: ClassVar = {
        GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
    }  # fmt: skip

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string, got {type(name).__name__}")
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """Processes that work together; made by :func:`init_process_group` and :func:`new_group`."""

    def __init__(
        self, ranks: Sequence[int], engine: Engine, backend: str, kinds: dict[str, str] | None = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        self.group_name = self.group_desc = engine.group
        self.ranks = list(ranks)  # in the world
        self.engine = engine  # for tensors of the CPU, and for what processes tell each other
        self.kinds = kinds  # the engine for each kind of device; None: one for all
        self.bound_device_id = device
        self._engines: dict[Any, Engine] = {}  # of other devices
        self.timeout = engine.timeout
        self._rank = engine.rank
        self._backend = backend
        self._count = 0

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the way they communicate."""
        return self.engine.name if self.kinds is None else next(iter(self.kinds.values()))

    def engine_for(self, device: Any) -> Engine:
        """The engine for tensors of ``device``.

        Args:
            device: a device or its name.

        Returns:
            The engine.

        Raises:
            RuntimeError: there is none.
        """
        kinds = self.kinds
        if kinds is None or (device.type == "cpu" and "cpu" in kinds):
            return self.engine
        if device.type not in kinds:
            raise RuntimeError(
                f"No backend type associated with device type {device.type}: the group's backend is {self._backend}"
            )
        if device not in self._engines:
            _check_nccl()
            from .engines.nccl import NcclEngine

            made = NcclEngine(self.engine, device, len(self._engines))
            if device == self.bound_device_id:
                made.open()
            self._engines[device] = made
        return self._engines[device]

    def own_device(self) -> Any:
        """The device for small tensors of the group's own: the CPU where it takes part."""
        if self.kinds is None or "cpu" in self.kinds:
            return _core.device("cpu")
        return self.bound_device_id or _core.device(next(iter(self.kinds)))

    def close(self) -> None:
        """Release what its engines used."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()
        self.engine.close()

    @property
    def others(self) -> list[int]:
        """The ranks in the group other than this process's."""
        return self.engine.others

    def run(
        self, doing: str, begin: Callable[[Call], Any], finish: Callable[[], list], async_op: bool = False,
        engine: Engine | None = None,
    ) -> Work | None:  # fmt: skip
        """Begin a collective that is called ``doing``, which all processes do, and call ``finish`` when it is over.

        ``engine`` is the one that ``begin`` calls, that of the CPU by default.
        """
        for watcher in WATCHERS:
            watcher.collective(doing)
        call = Call.here(self.group_name, self._count, doing)
        self._count += 1
        return (engine or self.engine).run(lambda: begin(call), finish, async_op)


class _World:
    """The state that :func:`init_process_group` sets up."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.store: Store | None = None
        self.engine: Engine | None = None
        self.made = 0  # groups so far: equal on all processes, so it names them
        self.local: dict[str, int] = {}  # groups that only their members made, by their ranks
        self.shrunk: list[Engine] = []  # engines of former default groups


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
    """Whether ``mpi4py`` and an MPI library are installed. Nothing is started."""
    return mpi_is_installed()


def is_nccl_available() -> bool:
    """Whether NCCL, NVIDIA's library, is installed."""
    from ..cuda import _nccl

    return not _nccl.LIBRARY.why_none


def is_ucc_available() -> bool:
    """False."""
    return False


is_xccl_available = is_ucc_available


def _check_nccl() -> None:
    """Raise an error where there is no NCCL or no GPU."""
    from .. import cuda
    from ..cuda import _nccl

    if why := _nccl.LIBRARY.why_none:
        raise RuntimeError(
            f"Distributed package doesn't have NCCL built in: {why}. Without it, use the backend 'gloo' or 'mpi' and "
            f"tensors on the CPU"
        )
    if not cuda.is_available():
        raise ValueError(
            f"ProcessGroupNCCL is only supported with GPUs, no GPUs found! ({cuda._contract.why_none()}). Use the "
            f"backend 'gloo' or 'mpi', or 'cpu:gloo,cuda:nccl' where tensors may be on the CPU"
        )


def is_backend_available(backend: str) -> bool:
    """Whether there is such a backend."""
    name = backend.lower()
    return name == "gloo" or (name == "mpi" and is_mpi_available()) or (name == "nccl" and is_nccl_available())


def get_default_backend_for_device(device: Any) -> str:
    """The backend for tensors of ``device``, which may not be there: ``gloo`` for the CPU, ``nccl`` for CUDA."""
    kind = device if isinstance(device, str) else device.type
    return Backend.default_device_backend_map[kind.partition(":")[0]]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from the launcher's ``LOCAL_RANK``, or from MPI's or SLURM's variable.

    Args:
        fallback_rank: what to give where no variable is set.

    Returns:
        The number, from 0.

    Raises:
        RuntimeError: it is not set, and there is no ``fallback_rank``.
    """
    found = launched.local_rank()
    if found is not None:
        return found
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
    """The group that the argument ``group`` means; None if this process is not in it.

    Args:
        group: a group, a mesh of one dimension, or None for all processes.

    Returns:
        The group, or None.

    Raises:
        ValueError: there is no group, or it is something else.
    """
    if group is None:
        return _get_default_group()
    if group is GroupMember.NON_GROUP_MEMBER or group == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise ValueError(f"Invalid process group: expected a ProcessGroup, got {type(group).__name__}")
    if group not in _world.groups:
        raise ValueError(_NOT_YET if _world.default is None else "The given group is not registered")
    return group


def _check_backend(backend: str | None) -> tuple[str, dict[str, str]]:
    """The backend as it was asked for, and the engine for each kind of device. The first is that of the host."""
    name = Backend(backend or ("mpi" if launched.by_mpi() and is_mpi_available() else "undefined"))
    devices = {device: kind for device, _, kind in (part.strip().rpartition(":") for part in name.split(","))}
    if "," in name and "" in devices:
        raise ValueError(
            f"init_process_group: expected a backend, or one for each device as in 'cpu:gloo', got {name!r}"
        )
    if "cpu" in devices:  # others that there are not are looked for when a tensor of theirs comes
        devices = {device: kind for device, kind in devices.items() if device == "cpu" or kind == "nccl"}
    for device, kind in devices.items():
        if kind == "nccl" and device in ("", "cuda") and "cpu" not in devices:
            _check_nccl()
        if kind == "mpi" and not is_mpi_available():
            raise RuntimeError(
                "Distributed package doesn't have MPI built in: it stands on mpi4py and an MPI library. "
                "Install both with: pip install 'taeda[distributed]' mpich"
            )
        if kind not in ("gloo", "mpi", "undefined", "nccl"):
            raise AssertionError(f"Unknown backend type {kind}; there are 'gloo', 'mpi' and 'nccl'")
        if (device == "cpu" and kind == "nccl") or (device not in ("", "cpu") and kind != "nccl"):
            raise RuntimeError(
                f"init_process_group: {name!r}: the backend of the CPU is 'gloo' or 'mpi', that of GPUs is 'nccl'"
            )
    if devices == {"": "undefined"}:
        return name, {"cpu": "gloo", "cuda": "nccl"}
    if "" in devices:
        return name, {"cuda" if name == "nccl" else "cpu": name}
    return name, dict(sorted(devices.items()))  # that of the CPU first


def _host(kinds: dict[str, str]) -> str:
    """The engine by which processes tell each other what they need."""
    return "mpi" if kinds.get("cpu") == "mpi" else "gloo"


def _check_device(device: Any) -> Any:
    """The argument ``device_id`` as a device with an index, or None."""
    if device is None:
        return None
    from .. import cuda

    kind = "cuda" if cuda.is_available() else None
    if isinstance(device, int):
        if kind is None:
            raise ValueError(
                "device_id is an int, but no accelerator support is found; leave it out where tensors are on the CPU"
            )
        return _core.device(kind, device)
    device = _core.device(device)
    if device.type == "cpu":
        return None
    if device.type != kind:
        raise ValueError(
            f"device_id {device} does not match the current accelerator support: {kind}; leave it out where tensors "
            f"are on the CPU"
        )
    if ":" not in str(device):
        raise ValueError("Please use a device_id with index.")
    if device.index >= cuda.device_count():
        raise ValueError(
            f"device_id {device} is out of range. Please use a device index less than the number of accelerators "
            f"available: {cuda.device_count()}."
        )
    return device


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Store | None = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:  # fmt: skip
    """Make this process one of a group of ``world_size``.

    Args:
        backend: ``"gloo"`` (TCP, and shared memory on one machine), ``"mpi"``, or ``"nccl"`` for tensors on GPUs; or
            one for each kind of device, as ``"cpu:gloo,cuda:nccl"``. None: ``"mpi"`` under an MPI launcher where mpi4py
            is installed, else ``"cpu:gloo,cuda:nccl"``.
        init_method: where they meet: ``"env://"`` (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or SLURM's variables;
            the default), ``"tcp://host:port"``, at the process of rank 0, or ``"file:///path"``. MPI needs none.
        timeout: how long one waits for another, 30 minutes by default.
        world_size: how many processes there are; MPI knows.
        rank: the number of this one, from 0; MPI knows.
        store: where they meet, in place of ``init_method``.
        group_name: accepted.
        pg_options: accepted.
        device_id: the GPU of this process, whose communicator is made at once.
        _ranks: the ranks of the group in the world, where it is not the world.
    Raises:
        ValueError: there is a group already, or what says where and who is missing.
        AssertionError: there is no backend of the name.
        RuntimeError: the backend is not there, or the others did not come in time.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    timeout = default_pg_timeout if timeout is None else timeout
    device = _check_device(device_id)
    check_timeout(timeout)
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    asked_by_name = backend is not None
    if device is not None and not asked_by_name:
        backend = Backend.default_device_backend_map[device.type]
    backend, kinds = _check_backend(backend)
    if _host(kinds) == "mpi" and not asked_by_name and (store is not None or init_method is not None):
        backend, kinds = _check_backend("undefined")  # where to meet is for gloo
    if _host(kinds) == "mpi":
        engine, shared = _mpi_engine(timeout, rank, world_size), None
    else:
        engine, shared = _gloo_engine(timeout, init_method, rank, world_size, store)
    _world.store, _world.engine = shared, engine
    _world.made, _world.local = 1, {}
    _world.default = ProcessGroup(range(engine.size), engine, backend, kinds, device)
    _world.groups = [_world.default]
    if device is not None and "cuda" in kinds:
        _world.default.engine_for(device)


def check_timeout(timeout: Any) -> None:
    """Raise a TypeError unless it is a timedelta."""
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _gloo_engine(
    timeout: timedelta, init_method: str | None, rank: int, world_size: int, store: Store | None
) -> tuple[Engine, Store]:
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group: expected a rank from 0 to {world_size - 1}, got {rank}")
    shared = PrefixStore("default_pg", store)
    links = None if world_size == 1 else Links(shared, rank, world_size, timeout)
    return SegmentEngine("0", rank, range(world_size), links, timeout), shared


def _mpi_engine(timeout: timedelta, rank: int, world_size: int) -> Engine:
    from .engines.mpi import world  # mpi4py starts MPI when it is imported

    engine = world("0", timeout)
    if rank not in (-1, engine.rank) or world_size not in (-1, engine.size):
        raise ValueError(
            f"init_process_group: MPI says that this is process {engine.rank} of {engine.size}; got rank {rank} and "
            f"world_size {world_size}. Leave them out, and start the program with mpiexec"
        )
    return engine


def destroy_process_group(group: Any = None) -> None:
    """Leave ``group``, or all groups."""
    assert _world.default is not None or group is not None, "Process group cannot be None"
    if group is None or group is _world.default:
        for one in reversed(_world.groups):
            one.close()
        for engine in _world.shrunk:
            engine.close()
        _world.__init__()  # type: ignore[misc]
    else:
        resolved = resolve(group)
        if resolved is not None:
            _world.groups.remove(resolved)
            resolved.close()


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """The group of some processes; every process has to call it, in the same order, even those outside.

    With ``use_local_synchronization`` only those inside do.

    Args:
        ranks: those of the processes, all by default.
        timeout: how long one waits for another.
        backend: as for :func:`init_process_group`.
        pg_options: accepted.
        use_local_synchronization: the processes outside need not call it.
        group_desc: accepted.
        device_id: accepted.
        sort_ranks: number them as in the world, rather than in the order given.
    Returns:
        The group, or ``GroupMember.NON_GROUP_MEMBER`` at a process that is not in it.
    Raises:
        ValueError: there are not so many processes, or no such rank.
        TypeError: ``ranks`` is empty.
        RuntimeError: the processes communicate by another backend.
    """
    world = _get_default_group()
    if timeout is not None:
        check_timeout(timeout)
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
    named, kinds = _check_backend(backend) if backend is not None else (world._backend, world.kinds)
    if backend not in (None, "undefined") and kinds is not None and _host(kinds) != world.engine.name:
        raise RuntimeError(
            f"new_group: the processes communicate by '{world.engine.name}'; a group cannot by '{backend}'"
        )
    if world.rank() not in chosen:
        if not use_local_synchronization:
            _world.made += 1
        return GroupMember.NON_GROUP_MEMBER
    name = name_of_next(chosen, use_local_synchronization)
    engine = world.engine.split(name, chosen, world.timeout if timeout is None else timeout)
    made = ProcessGroup(chosen, engine, named, kinds, world.bound_device_id)
    made.group_desc = group_desc or name
    _world.groups.append(made)
    return made


def name_of_next(ranks: list[int], local: bool) -> str:
    """The name of a new group, equal at all callers. If only the members call, they count the groups of these ranks."""
    if not local:
        _world.made += 1
        return str(_world.made - 1)
    of = ",".join(map(str, ranks))
    count = _world.local[of] = _world.local.get(of, 0) + 1
    return f"{of} {count}"


def get_rank(group: Any = None) -> int:
    """The number of this process in the group, -1 outside it.

    Args:
        group: the processes, all by default.

    Returns:
        The rank.

    Raises:
        ValueError: there is no group.
    """
    resolved = resolve(group)
    return -1 if resolved is None else resolved.rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes in the group, -1 outside it.

    Args:
        group: the processes, all by default.

    Returns:
        The number.

    Raises:
        ValueError: there is no group.
    """
    resolved = resolve(group)
    return -1 if resolved is None else resolved.size()


def get_backend(group: Any = None) -> Backend:
    """The backend of the group, as it was asked for.

    Args:
        group: the processes, all by default.

    Returns:
        The backend's name.

    Raises:
        ValueError: there is no group, or this process is not in it.
    """
    return Backend(_within(group)._backend)


def get_backend_config(group: Any = None) -> str:
    """The backend for each kind of device."""
    found = _within(group)
    asked, name = found._backend, found.name()
    if ":" in asked:
        return asked
    if asked == Backend.NCCL:
        return "cuda:nccl"
    return f"cpu:{name}" if asked == Backend.UNDEFINED else f"cpu:{name},cuda:{name}"


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks in the world of the processes in the group."""
    return list(_within(group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of that in the group.

    Args:
        group: the group.
        group_rank: the rank in it.

    Returns:
        The rank in the world.

    Raises:
        ValueError: it has no such rank.
    """
    ranks = _within(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in the group of that in the world.

    Args:
        group: the group.
        global_rank: the rank in the world.

    Returns:
        The rank in the group.

    Raises:
        ValueError: it is not in the group.
    """
    ranks = _within(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def device_of(group: Any = None) -> Any:
    """The device for small tensors that the processes of a group exchange for themselves."""
    return _within(group).own_device()


def get_pg_count() -> int:
    """The number of groups that this process knows of, also those that it is not in."""
    return _world.made + sum(_world.local.values())


def _within(group: Any) -> ProcessGroup:
    resolved = resolve(group)
    if resolved is None:
        raise ValueError("Invalid process group specified")
    return resolved


def warn_not_in_group(name: str) -> None:
    """Say that ``name`` does nothing at this process."""
    warnings.warn(f"Running {name} on global rank {get_rank()} which does not belong to the given group.", stacklevel=3)
