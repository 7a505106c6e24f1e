"""``torch.__config__``: how it was built."""

__all__ = ["_cxx_flags", "parallel_info", "show"]


def show() -> str:
    """A line about the build."""
    from taeda import __version__

    return f"taeda {__version__}, standing in for PyTorch"


def parallel_info() -> str:
    """A line about threads."""
    from taeda import get_num_threads

    return f"threads: {get_num_threads()}"


def _cxx_flags() -> str:
    """The options with which Python's own C compiler builds extensions, and taeda's."""
    import sysconfig

    return sysconfig.get_config_var("CFLAGS") or ""
