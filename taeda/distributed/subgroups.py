"""Groups of some of the processes of a group: neighbours, lists of ranks, parts, and those that are left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    _world,
    check_timeout,
    get_process_group_ranks,
    name_of_next,
    new_group,
    resolve,
)  # fmt: skip

SHRINK_DEFAULT, SHRINK_ABORT = 0, 1


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list]:  # fmt: skip
    """Groups of ``group_size`` neighbours each among the processes of ``group``. Returns this process's group, and all
    groups.

    Args:
        group_size: how many processes each has; by default all of them.
        group: the processes, all by default.
        timeout: how long one waits for another.
        backend: as for :func:`init_process_group`.
        pg_options: accepted.
        group_desc: accepted.
    Returns:
        This process's group, and all groups.
    Raises:
        ValueError: the world does not divide into such groups.
    """
    ranks, local = get_process_group_ranks(group), group is not None and group is not _world.default
    world = len(ranks)
    group_size = world if group_size is None else group_size
    if group_size <= 0 or group_size > world:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must be positive and not exceed the world size ({world})"
        )
    if world % group_size:
        raise ValueError(f"The world size ({world}) must be divisible by '{group_size=}'")
    chosen = [ranks[i : i + group_size] for i in range(0, world, group_size)]
    return _subgroups(chosen, timeout, backend, local)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list]:  # fmt: skip
    """A group for each list of ranks. Returns this process's group (None if there is none), and all groups.

    Args:
        ranks_per_subgroup_list: the ranks of each group.
        timeout: how long one waits for another.
        backend: as for :func:`init_process_group`.
        pg_options: accepted.
        group_desc: accepted.
    Returns:
        This process's group, and all groups.
    Raises:
        ValueError: a rank is in two of them.
    """
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(everyone)) != len(everyone):
        raise ValueError("new_subgroups_by_enumeration: a rank has appeared in both subgroups")
    return _subgroups(ranks_per_subgroup_list, timeout, backend, False)


def _subgroups(lists: list[list[int]], timeout: timedelta | None, backend: str | None, local: bool) -> tuple[Any, list]:
    made = [new_group(ranks, timeout, backend, use_local_synchronization=local) for ranks in lists]
    return next((one for one in made if one != GroupMember.NON_GROUP_MEMBER), None), made


def _part(parent: ProcessGroup, members: list[int], name: str, timeout: timedelta | None) -> ProcessGroup:
    """The group of the ranks ``members`` of ``parent``. Exactly these processes call this."""
    engine = parent.engine.split(name, members, parent.timeout if timeout is None else timeout)
    ranks = [parent.ranks[rank] for rank in members]
    made = ProcessGroup(ranks, engine, parent._backend, parent.kinds, parent.bound_device_id)
    _world.groups.append(made)
    return made


def _within(parent: ProcessGroup, ranks: Sequence[int], name: str) -> None:
    if len(set(ranks)) != len(ranks) or not all(0 <= rank < parent.size() for rank in ranks):
        raise ValueError(f"{name}: expected different ranks from 0 to {parent.size() - 1}, got {list(ranks)}")


def split_group(
    parent_pg: ProcessGroup | None = None, split_ranks: list | None = None, timeout: timedelta | None = None,
    pg_options: Any = None, group_desc: str | None = None, backend: str | None = None,
) -> ProcessGroup | None:  # fmt: skip
    """The part of ``parent_pg`` that this process is in. All its processes call this, with the same arguments.

    Args:
        parent_pg: a group, the default one if None.
        split_ranks: a list of ranks of ``parent_pg`` for each part. No rank is in two.
        timeout: how long one waits for another, as in ``parent_pg`` by default.
        pg_options: accepted.
        group_desc: a description of the part.
        backend: that of ``parent_pg``, or None.
    Returns:
        The group, or None at a process that no list names.
    Raises:
        ValueError: there are no lists, a rank is not one of the group's, or is named twice.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = resolve(parent_pg)
    if parent is None:
        raise ValueError("split_group: this process is not in the group")
    if timeout is not None:
        check_timeout(timeout)
    if backend is not None and Backend(backend) not in (parent._backend, parent.name()):
        raise ValueError(f"split_group: the processes communicate by '{parent._backend}', got backend {backend!r}")
    _within(parent, [rank for ranks in split_ranks for rank in ranks], "split_group")
    name = name_of_next([-1, *parent.ranks], True)  # equal at all that call, also in parts of them
    mine = next((i for i, ranks in enumerate(split_ranks) if parent.rank() in ranks), None)
    if mine is None:
        return None
    made = _part(parent, sorted(split_ranks[mine]), f"{name} part {mine}", timeout)
    made.group_desc = group_desc or f"{parent.group_desc}:split:{made.group_name}"
    return made


def shrink_group(
    ranks_to_exclude: list[int], group: ProcessGroup | None = None, shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> ProcessGroup:  # fmt: skip
    """The group without some of its processes, which may be gone. The others call this.

    Where ``group`` is the default one, the new one takes its place, ranks are counted anew, and all other groups end.

    Args:
        ranks_to_exclude: their ranks in ``group``.
        group: the default one if None.
        shrink_flags: ``SHRINK_DEFAULT`` or ``SHRINK_ABORT``; what is under way fails by itself where a process is gone.
        pg_options: accepted.
    Returns:
        The new group.
    Raises:
        TypeError: by MPI, which cannot go on without a process.
        ValueError: no rank is given, one is not in the group or given twice, or nobody is left.
        RuntimeError: this process is one of them.
    """
    if not ranks_to_exclude:
        raise ValueError("ranks_to_exclude cannot be empty. To shrink a group, you must specify at least one rank")
    old = resolve(group)
    if old is None:
        raise ValueError("shrink_group: this process is not in the group")
    if old.engine.name == "mpi":
        raise TypeError("Process group backend 'mpi' does not support shrinking operations; use 'gloo'")
    _within(old, ranks_to_exclude, "shrink_group")
    left = [rank for rank in range(old.size()) if rank not in ranks_to_exclude]
    if not left:
        raise ValueError("shrink_group: expected fewer ranks than the group has, so that one is left")
    if old.rank() not in left:
        raise RuntimeError(f"shrink_group: rank {old.rank()} is one of those to exclude, which do not call this")
    made = _part(old, left, name_of_next([-2, *old.ranks], True), None)
    if old is _world.default:
        made.ranks = list(range(len(left)))
        for other in _world.groups:
            if other is not made and other is not old:
                other.close()
        _world.shrunk.append(old.engine)  # its connections are used on
        _world.default, _world.engine, _world.groups = made, made.engine, [made]
    return made
