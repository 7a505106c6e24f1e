"""Libraries: an entry's call, built as a shared library and run by ctypes, gives the call's results, bit for bit.

python -m tests.conformance.opdb.libraries [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import taeda
from taeda.export import build
from tests.export.libraries import CODES, Library, Tensor

from ..trees import rebuilt
from .checks import tensors
from .plans import main


class Call(taeda.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function, args, kwargs):
        super().__init__()
        self.call = function, args, kwargs

    def forward(self, *given):
        function, args, kwargs = self.call
        at = iter(given)
        return tuple(tensors(function(*rebuilt(list(args), at), **rebuilt(kwargs, at))))


def struct_of(t, memory) -> Tensor:
    """A library's argument for a tensor's dtype and sizes, in the given memory."""
    import ctypes

    sizes = (ctypes.c_int64 * t.dim())(*t.shape)
    return Tensor(memory.ctypes.data, CODES[str(t.dtype).partition(".")[2]], t.dim(), sizes)


def memory_of(t):
    """The bytes of a contiguous tensor, and one more: an empty tensor has an address, too."""
    found = np.zeros(t.numel() * t.itemsize + 1, np.uint8)
    if t.numel():
        found[:-1] = t.reshape(-1).view(taeda.uint8).numpy()
    return found


def attempt(function, args, kwargs) -> str:
    """The difference; ``""`` if there is none, ``"-"`` and the reason if there is no library."""
    given = [t.detach().contiguous().clone() for t in tensors([list(args), kwargs])]
    model = Call(function, args, kwargs)
    taeda.manual_seed(1)
    want = [t.detach().contiguous() for t in model(*[t.clone() for t in given])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            build(model, Path(folder, "entry.so"), tuple(given))
        except NotImplementedError as error:
            return f"- {error}"
        library = Library(Path(folder, "entry.so"), "entry")
    inputs, outputs = [memory_of(t) for t in given], [np.zeros_like(memory_of(t)) for t in want]
    for threads in (1, 2):
        library.set_threads(threads)
        structs = [[struct_of(t, m) for t, m in zip(*pair, strict=True)] for pair in ((given, inputs), (want, outputs))]
        code = library.code(*structs)
        if code:
            return f"error {library.error(code).decode()}"
        for n, (t, found) in enumerate(zip(want, outputs, strict=True)):
            wanted = memory_of(t)
            if not np.array_equal(found, wanted):
                a = taeda.from_numpy(found[:-1].copy()).view(t.dtype).reshape(t.shape)
                if not bool(((a == t) | ((a != a) & (t != t))).all()):
                    return f"result {n} with {threads} threads"
    library.free()
    return ""


if __name__ == "__main__":
    main(attempt)
