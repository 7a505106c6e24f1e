"""OpenMP, which is not used."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether OpenMP is used: False."""
    return False
