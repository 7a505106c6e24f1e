"""What can go wrong between processes.

DistError (a RuntimeError)
 |-- DistBackendError   a collective failed, or does not agree with that of another rank
 |-- DistNetworkError   no connection
 |-- DistStoreError     a key did not come in time
"""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError"]


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed, or does not agree with that of another rank."""


class DistNetworkError(DistError):
    """No connection to another process."""


class DistStoreError(DistError):
    """A key was not set in time."""
