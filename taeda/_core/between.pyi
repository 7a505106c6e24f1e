"""A Cython module. Written by tools/stubs.py."""

from typing import Any

def __getattr__(name: str) -> Any: ...
