"""Switches for the whole process that ops read: plain attributes, set through ``taeda._settings``."""

#: Whether ops that could give another result each time must not (here none could), and whether that is an error.
deterministic = False
warn_only = False

#: Whether, in deterministic mode, memory that PyTorch calls uninitialised is filled with a value that stands out.
fill_uninitialized = True

#: What products of float32 may do on a GPU: "highest", "high" or "medium"; and what counts, "none", "ieee" or "tf32".
matmul_precision = "highest"
fp32_precision = "none"


def filling() -> bool:
    """Whether ``empty`` and similar functions must fill their results."""
    return deterministic and fill_uninitialized
