"""Work: the handle that an asynchronous collective returns to wait on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from ..futures import Future


class Work:
    """A collective under way."""

    source = -1  # the rank in the group of a message's sender, once it has come

    def __init__(self, future: Future) -> None:
        self._future = future

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done; what went wrong is raised.

        Args:
            timeout: how long; None: as long as the group waits.

        Returns:
            True.

        Raises:
            RuntimeError: it did not end in time.
        """
        try:
            self._future.result(None if not timeout else timeout.total_seconds())
        except TimeoutError:
            raise RuntimeError(f"Work.wait: the collective did not end within {timeout}") from None
        return True

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self._future.exception() is None

    def exception(self) -> BaseException | None:
        """The error, or None."""
        return self._future.exception() if self.is_completed() else None

    def result(self) -> list:
        """The tensors it wrote."""
        self.wait()
        return self._future.result()

    def get_future(self) -> Future:
        """The result, as a Future."""
        return self._future

    def when_done(self, call: Callable[[], object]) -> None:
        """Call ``call()`` when it has ended."""
        self._future.add_done_callback(lambda _: call())

    def synchronize(self, timeout: timedelta | None = None) -> bool:
        """:meth:`wait`."""
        return self.wait(timeout)


def done(result: list) -> Work:
    """Work that has ended already, with ``result``."""
    future = Future()
    future.set_result(result)
    return Work(future)
