"""``taeda.distributed.checkpoint``: state dicts that several processes write together, and any number reads."""

from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter, StorageReader, StorageWriter
from .metadata import CheckpointException, Metadata, TensorStorageMetadata
from .saving import async_save, load, load_state_dict, save, save_state_dict

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "Metadata",
    "StorageReader", "StorageWriter", "TensorStorageMetadata", "async_save", "load", "load_state_dict", "save",
    "save_state_dict",
]  # fmt: skip
