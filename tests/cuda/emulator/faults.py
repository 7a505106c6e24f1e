"""What a fault is: which kernel, thread and line of PTX, which address, and what lies there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .memory import FREED, FRESH
from .runtime import FIELDS, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW


@dataclass
class Fault:
    kind: str
    message: str
    error: int  # what the driver's functions give from now on
    kernel: str = ""
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    line: int = 0
    text: str = ""
    address: int = 0
    nbytes: int = 0
    allocation: Any = None

    def __str__(self) -> str:
        where = (
            f"{self.kernel}, block {self.block}, thread {self.thread}, line {self.line}: {self.text}\n"
            if self.kernel
            else ""
        )
        return f"{self.kind}: {self.message}\n{where}".rstrip()


_SIMPLE = {
    "alignment": ("an address that is not a multiple of the size", 716),
    "branch": ("a branch to an entry that the table does not have", 718),
    "trap": ("a trap", 719),
    "barrier": ("threads of a block wait at different barriers", 719),
    "ended": ("threads wait at a barrier that others, which have ended, never reach", 719),
    "warp": ("a lane that the mask names is elsewhere, or names another mask", 719),
    "lane": ("a shuffle reads a lane that does not take part", 719),
    "race": ("two threads access the same bytes, one writes, and nothing orders them", 719),
}


def describe(driver, kernel, address: int, nbytes: int, kind: str) -> Fault:
    """The record of a fault; what the words of the context say if it was in a kernel."""
    fault = _where(driver, kernel, address, nbytes, kind)
    if kernel is not None:
        words = kernel.module.context.words
        x, y, _z = (words[FIELDS[f"BLOCK_{a}"]] for a in "XYZ")
        t = words[FIELDS["THREAD"]]
        fault.thread = (t % x, t // x % y, t // (x * y))
        fault.block = tuple(words[FIELDS[f"CTA_{a}"]] for a in "XYZ")
        fault.line, fault.kernel = words[FIELDS["LINE"]], kernel.name
        lines = kernel.module.text.split("\n")
        fault.text = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
        if kind == "race":
            fault.message += f"; {_other(words)}"
    return fault


def _other(words) -> str:
    """Who accessed the bytes before."""
    cell = words[FIELDS["CELL"]]
    epoch, t = cell >> 23, cell >> 3 & 1023
    if epoch < words[FIELDS["LAUNCH_EPOCH"]]:
        return "before, work of another stream did"
    if epoch < words[FIELDS["BLOCK_EPOCH"]]:
        return f"before, thread number {t} of another block did"
    return f"before, thread number {t} of the same block did"


def _where(driver, kernel, address: int, nbytes: int, kind: str) -> Fault:
    if kind in _SIMPLE:
        message, error = _SIMPLE[kind]
        more = f" ({nbytes} bytes at {address:#x})" if nbytes else ""
        return Fault(kind, message + more, error, address=address, nbytes=nbytes)
    verb = {"load": "read", "store": "written", "copy": "copied"}[kind]
    memory = driver.memory
    for window, name in ((PARAM_WINDOW, "param"), (SHARED_WINDOW, "shared"), (LOCAL_WINDOW, "local")):
        if window <= address < window + (1 << 40):
            return _own(driver, kernel, address - window, nbytes, name, verb)
    arena = memory.arena(address)
    a = arena.near(address) if arena else None
    fault = Fault("bounds", "", 700, address=address, nbytes=nbytes, allocation=a)
    what = f"{nbytes} bytes are {verb} at {address:#x}"
    if arena is not None and kernel is not None and arena not in (memory.pinned, kernel.module.context.arena):
        fault.kind, fault.message = "device", f"{what}, which is memory of another device"
        return fault
    if a is None:
        fault.message = f"{what}, where no memory is"
        return fault
    place = f"allocation {a.number} ({a.what}, {a.size} bytes at {a.address:#x})"
    if a.freed and address < a.address + a.size:
        fault.kind, fault.message = "freed", f"{what}, {address - a.address} bytes into {place}, which was freed"
    elif address + nbytes > a.address + a.size:
        over = address - a.address - a.size
        fault.message = f"{what}, {f'{over} bytes behind' if over >= 0 else 'over the end of'} {place}"
        after = arena.starts[arena.starts.index(a.address) + 1 :][:1]
        if after and after[0] - address < over:
            b = arena.allocations[after[0]]
            fault.message += f" and {b.address - address} bytes before allocation {b.number}"
    else:
        states = memory.states_of(address - arena.shift, nbytes)
        if FREED in states:
            fault.kind, fault.message = "freed", f"{what}, in {place}, which was freed"
        elif FRESH in states and kind == "load":
            first = states.index(FRESH)
            fault.kind, fault.error = "unwritten", 719
            fault.message = f"{what}, {address - a.address} bytes into {place}; byte {address - a.address + first} was never written"
        else:
            fault.kind, fault.message = "constant", f"{what}, in {place}, which is constant"
    return fault


def _own(driver, kernel, offset: int, nbytes: int, name: str, verb: str) -> Fault:
    words = kernel.module.context.words
    size = {"shared": words[FIELDS["SHARED_SIZE"]], "local": kernel.code.local_size, "param": kernel.code.param_size}[
        name
    ]
    if offset + nbytes <= size:
        return Fault("unwritten", f"{nbytes} bytes of .{name} memory are {verb} at {offset}; not all were written", 719,
                     address=offset, nbytes=nbytes)  # fmt: skip
    return Fault("bounds", f"{nbytes} bytes are {verb} at {offset} of .{name} memory, which has {size} bytes", 700,
                 address=offset, nbytes=nbytes)  # fmt: skip
