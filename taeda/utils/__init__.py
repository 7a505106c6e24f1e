"""Tools around training: data loading, checkpointing, DLPack."""
