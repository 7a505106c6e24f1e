"""A program of `ctypes` for libraries that `taeda.export.build` makes: it knows nothing of taeda."""

import ctypes

import numpy as np

NAMES = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool complex64 complex128 uint16 uint32 uint64 complex32"
CODES = {name: code for code, name in enumerate(NAMES.split(), 1)}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


def tensor(x: np.ndarray) -> Tensor:
    return Tensor(x.ctypes.data, CODES[str(x.dtype)], x.ndim, (ctypes.c_int64 * x.ndim)(*x.shape))


class Library:
    """The functions of the library at ``path``, whose names begin with ``name``."""

    def __init__(self, path, name):
        self.library = library = ctypes.CDLL(str(path))
        self.run_raw, self.error = getattr(library, f"{name}_run"), getattr(library, f"{name}_error")
        self.run_raw.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
        self.error.restype, self.error.argtypes = ctypes.c_char_p, [ctypes.c_int]
        self.set_threads = getattr(library, f"{name}_set_threads")
        self.set_threads.argtypes, self.set_threads.restype = [ctypes.c_int64], ctypes.c_int64
        self.free = getattr(library, f"{name}_free")

    def code(self, inputs, outputs):
        """The code that a run with these structs returns."""
        ins, outs = (Tensor * len(inputs))(*inputs), (Tensor * len(outs_ := list(outputs)))(*outs_)
        return self.run_raw(ins, len(inputs), outs, len(outs_))

    def text(self, inputs, outputs):
        """The error text of a run; it must fail."""
        code = self.code(inputs, outputs)
        assert code != 0
        return self.error(code).decode()

    def run(self, inputs, outputs):
        """Compute the arrays ``outputs`` from the arrays ``inputs``."""
        code = self.code([tensor(x) for x in inputs], [tensor(x) for x in outputs])
        assert code == 0, self.error(code)
        return outputs
