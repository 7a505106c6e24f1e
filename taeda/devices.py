"""Devices: what there is, and how another one is added. ``python -m taeda.devices`` prints them.

A device is a subclass of :class:`Contract`, which says where its memory is and how its kernels run. After
:func:`register_device` tensors can be put on it, and every op runs there by the code that runs it on the CPU. The page
``docs/devices.md`` explains the contract; ``taeda.testing.far`` is a device of 100 lines.
"""

from __future__ import annotations

from typing import Any

from ._core.devices import DEVICES, REGISTERED, Contract, register_device
from ._core.machine import caches, memory
from ._core.pool import get_num_threads
from .kernels.target import host, processor

__all__ = ["Contract", "names", "properties", "register_device"]


def names() -> list[str]:
    """The devices that there are, by number: ``["cpu", "meta", ...]``."""
    return list(DEVICES)


def properties(device: Any = "cpu") -> dict[str, Any]:
    """Facts about a device, by name.

    Args:
        device: a device or its name.
    Returns:
        A dict with text keys.
    Raises:
        RuntimeError: there is no such device.
    """
    from .ops.devices import number_of

    contract = REGISTERED[number_of(device)]
    if contract is not None:
        return contract.properties()
    if str(device).startswith("meta"):
        return {"name": "tensors with sizes and no values"}
    target = host()
    return {
        "name": processor(),
        "instructions": target.cpu,
        "vector": f"{target.vector_bytes} bytes",
        "threads": get_num_threads(),
        "memory": f"{memory() / 2**30:.1f} GiB",
        "caches": ", ".join(f"L{level} {size >> 10} KiB" for level, size in sorted(caches().items())),
    }


def _main() -> None:
    for name in names():
        print(name)
        for key, value in properties(name).items():
            print(f"  {key}: {value}")


if __name__ == "__main__":
    _main()
