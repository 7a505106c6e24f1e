"""A checkpoint of several processes as one file of ``taeda.save``, and back."""

from __future__ import annotations

import itertools
import os
from typing import Any

from taeda.serialization import load as load_file
from taeda.serialization import save as save_file

from .filesystem import FileSystemReader
from .saving import load, save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Write the checkpoint in the folder to a file, in whole tensors. One process does it.

    Args:
        dcp_checkpoint_dir: the folder.
        torch_save_path: the file.

    Raises:
        CheckpointException: there is no checkpoint, or it is damaged.
    """
    metadata = FileSystemReader(dcp_checkpoint_dir).read_metadata()
    flat: dict[str, Any] = dict.fromkeys(metadata.state_dict_metadata)
    load(flat, checkpoint_id=dcp_checkpoint_dir, no_dist=True)
    state: dict[Any, Any] = {}
    for name, value in flat.items():
        _put(state, metadata.planner_data[name], value)
    save_file(_lists(state), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write the state dict in the file as a checkpoint. One process does it."""
    save(load_file(torch_save_path, map_location="cpu"), checkpoint_id=dcp_checkpoint_dir, no_dist=True)


class _Items(dict):
    """The entries of a list, by number."""


def _put(state: dict, path: tuple, value: Any) -> None:
    for key, after in itertools.pairwise(path):
        state = state.setdefault(key, _Items() if isinstance(after, int) else {})
    state[path[-1]] = value


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _lists(item) for key, item in value.items()}
    if isinstance(value, _Items) and sorted(inner) == list(range(len(inner))):
        return [inner[i] for i in range(len(inner))]
    return inner
