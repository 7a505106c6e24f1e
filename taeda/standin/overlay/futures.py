"""``torch.futures``: results that come later."""

from concurrent.futures import Future as _Future

__all__ = ["Future", "collect_all", "wait_all"]


class Future(_Future):
    """A result that comes later; ``wait`` waits for it."""

    def wait(self):
        """The result."""
        return self.result()

    def value(self):
        """The result."""
        return self.result()


def wait_all(futures: list) -> list:
    """The results of all."""
    return [future.result() for future in futures]


def collect_all(futures: list) -> Future:
    """A Future of all Futures, once they are done."""
    made = Future()
    wait_all(futures)
    made.set_result(futures)
    return made
