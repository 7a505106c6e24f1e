"""Errors between processes.

DistError (a RuntimeError)
 |-- DistBackendError   a collective failed, or does not agree with that of another rank
 |-- DistNetworkError   no connection
 |-- DistStoreError     a key did not come in time
      |-- QueueEmptyError  a queue of a store is empty
"""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed, or does not agree with another rank's."""


class DistNetworkError(DistError):
    """No connection to another process."""


class DistStoreError(DistError):
    """A key was not set in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""
