"""Common helpers of data pipes."""
