"""The driver's functions from Python, for tests: each raises where the driver gives an error."""

from __future__ import annotations

import ctypes

import numpy as np

from . import driver as the_driver
from .driver import ERRORS, SIGNATURES


class DriverError(RuntimeError):
    def __init__(self, name: str, number: int):
        super().__init__(f"{name}: {ERRORS.get(number, number)}")
        self.number = number


class Calls:
    """``calls.cuMemAlloc_v2(...)`` and the like, on the emulated device 0, with shorter forms of what tests do often."""

    def __init__(self) -> None:
        self.driver = the_driver()
        self.functions = {
            name: ctypes.CFUNCTYPE(ctypes.c_int, *args)(self.driver.functions[name])
            for name, args in SIGNATURES.items()
        }
        self.cuInit(0)
        self.context = self.get("cuDevicePrimaryCtxRetain", 0)
        self.cuCtxSetCurrent(self.context)

    def __getattr__(self, name: str):
        if name not in self.functions:
            raise AttributeError(name)
        function = self.functions[name]

        def call(*args) -> None:
            error = function(*args)
            if error:
                raise DriverError(name, error)

        return call

    def get(self, name: str, *args, kind=ctypes.c_uint64):
        """What a function writes to its first argument."""
        value = kind()
        getattr(self, name)(ctypes.addressof(value), *args)
        return value.value

    def load(self, text: str) -> int:
        image = ctypes.create_string_buffer(text.encode())
        return self.get("cuModuleLoadData", ctypes.addressof(image))

    def function(self, text: str, name: str) -> int:
        label = ctypes.create_string_buffer(name.encode())
        return self.get("cuModuleGetFunction", self.load(text), ctypes.addressof(label))

    def empty(self, nbytes: int) -> int:
        return self.get("cuMemAlloc_v2", nbytes)

    def send(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        address = self.empty(max(array.nbytes, 1))
        self.cuMemcpyHtoD_v2(address, array.ctypes.data, array.nbytes)
        return address

    def read(self, address: int, dtype, shape) -> np.ndarray:
        array = np.empty(shape, dtype)
        self.cuMemcpyDtoH_v2(array.ctypes.data, address, array.nbytes)
        return array

    def launch(self, function: int, grid, block, *args, shared: int = 0, stream: int = 0) -> None:
        """``args``: ints are 8 bytes, others are ctypes values or arrays."""
        grid, block = ((*x, 1, 1)[:3] if isinstance(x, tuple) else (x, 1, 1) for x in (grid, block))
        values = [ctypes.c_uint64(a & (2**64 - 1)) if isinstance(a, int) else a for a in args]
        pointers = (ctypes.c_uint64 * max(len(values), 1))(*map(ctypes.addressof, values))
        self.cuLaunchKernel(function, *grid, *block, shared, stream, ctypes.addressof(pointers), 0)
