"""Intel MKL, which is not used."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether Intel MKL is used: False."""
    return False


VERBOSE_OFF, VERBOSE_ON = 0, 1


class verbose:
    """Context manager that would have MKL print its calls: nothing."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *exc: object) -> None:
        pass
