"""Apple's GPUs, which taeda does not use."""

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """Whether this build knows Apple's GPUs: False."""
    return False


def is_available() -> bool:
    """Whether tensors can be put on one: False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether there is an Apple GPU under macOS ``major.minor`` or later: False."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """:func:`is_macos_or_newer` of 13: False."""
    return False
