"""Results that come later: what ``Work.get_future`` of a collective gives."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future as _Future
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future(_Future):
    """A result that comes later; ``devices`` is accepted."""

    def __init__(self, *, devices: Any = None) -> None:
        super().__init__()

    def wait(self) -> Any:
        """The result, once it is there; what went wrong is raised."""
        return self.result()

    def value(self) -> Any:
        """The result, which must be there.

        Returns:
            The result.

        Raises:
            RuntimeError: it is not.
        """
        if not self.done():
            raise RuntimeError("Future.value: the result is not there yet; call wait() first")
        return self.result()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of ``callback(self)``, which is called once the result is there."""
        after = Future()

        def call(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except BaseException as error:  # the waiting thread gets it
                after.set_exception(error)

        self.add_done_callback(call)
        return after


def wait_all(futures: list[Future]) -> list:
    """The results of all."""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future:
    """A Future of the list, complete when all of them are."""
    made = Future()
    left = [len(futures)]

    def count(_: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            made.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        made.set_result(futures)
    return made
