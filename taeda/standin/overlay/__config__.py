"""``torch.__config__``: how it was built."""

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A line about the build."""
    from taeda import __version__

    return f"taeda {__version__}, standing in for PyTorch"


def parallel_info() -> str:
    """A line about threads."""
    from taeda import get_num_threads

    return f"threads: {get_num_threads()}"
