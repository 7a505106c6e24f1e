"""Device ``desk``, written against the contract alone: its memory is a bytearray, its kernels are NumPy functions.

An address is a position in the bytearray, which cannot be mistaken for one of the processor's.
"""

import ctypes

import numpy as np

from taeda._core.devices import Contract, register_device
from taeda.kernels.dot import DOT_ARGS, ROWS_ARGS
from taeda.kernels.gemm import MATMUL_ARGS

_POINTWISE = {
    "add": lambda alpha: lambda a, b: a + alpha * b,
    "mul": lambda: lambda a, b: a * b,
    "fill_": lambda: lambda a, value: value,
    "identity": lambda: lambda a: a,
}


class Desk(Contract):
    def __init__(self):
        self.bytes = bytearray(1 << 20)
        self.top, self.free, self.kernels = 64, {}, [None]
        self.launched = []

    def allocate(self, nbytes):
        size = max(-(-nbytes // 64) * 64, 64)
        if self.free.get(size):
            return self.free[size].pop()
        if self.top + size > len(self.bytes):
            return 0
        self.top += size
        return self.top - size

    def release(self, address, nbytes):
        self.free.setdefault(max(-(-nbytes // 64) * 64, 64), []).append(address)

    def array(self, address, dtype, sizes, strides):
        return np.ndarray(sizes, dtype, self.bytes, address, strides)

    def build(self, name, args, compile):
        makers = {"pointwise": self.pointwise, "reduce.reduce": self.reduction, "gemm.matmul": self.product(MATMUL_ARGS),
                  "gemm.panel_product": lambda dtype: None, "dot.matmul_dot": self.product(DOT_ARGS),
                  "dot.matmul_rows": self.product(ROWS_ARGS)}  # fmt: skip
        if name not in makers or (name == "pointwise" and args[0].name not in _POINTWISE):
            return 0
        self.kernels.append((name, makers[name](*args)))
        return len(self.kernels) - 1

    def launch(self, kernel, pointers, numbers, total, grain):
        name, run = self.kernels[kernel]
        self.launched.append(name)
        run(pointers, numbers, total)

    def pointwise(self, op, statics, outs, ins, compute, classes):
        function = _POINTWISE[op.name](*statics)

        def run(pointers, numbers, total):
            count, rows, *steps = numbers
            arrays = [
                self.array(p, t, (rows, count), (steps[2 * i + 1], steps[2 * i]))
                for i, (p, t) in enumerate(zip(pointers, [*outs, *(t for t in ins if t != "param")], strict=True))
            ]
            values = np.array(steps[2 * len(pointers) :], np.int64).view(np.float64)
            given = [arrays.pop(1) if t != "param" else values[0] for t in ins]
            arrays[0][...] = function(*given)

        return run

    def reduction(self, op, dtype, outs, classes, *form):
        def run(pointers, numbers, total):
            n0, n1, m, *steps = numbers
            for row in range(total):
                at = [p + row // m * steps[4 * i + 2] + row % m * steps[4 * i + 3] for i, p in enumerate(pointers)]
                source = self.array(at[1], dtype, (n1, n0), (steps[5], steps[4]))
                self.array(at[0], outs[0], (), ())[...] = getattr(np, op)(source)

        return run

    def product(self, names):
        def make(dtype):
            def run(pointers, numbers, total):
                a = dict(zip(names, numbers, strict=True))
                if names is MATMUL_ARGS:  # C is (m, n), A by (a_m, a_k), B by (b_k, b_n)
                    m, n, c = a["m"], a["n"], (a["c_m"], a["c_n"])
                    left, right = (a["a_m"], a["a_k"]), (a["b_k"], a["b_n"])
                elif names is DOT_ARGS:
                    m, n, c, left, right = a["p"], a["q"], (a["o_i"], a["o_j"]), (a["x_i"], 4), (4, a["w_j"])
                else:
                    m, n, c, left, right = a["p"], a["n"], (a["o_i"], 4), (a["x_i"], a["x_k"]), (a["b_k"], 4)
                x, y = (
                    self.array(pointers[1], dtype, (m, a["k"]), left),
                    self.array(pointers[2], dtype, (a["k"], n), right),
                )
                self.array(pointers[0], dtype, (m, n), c)[...] = x @ y

            return run

        return make

    def copy(self, to, source, nbytes, way):
        if way == 1:
            self.bytes[to : to + nbytes] = ctypes.string_at(source, nbytes)
        elif way == 2:
            ctypes.memmove(to, bytes(self.bytes[source : source + nbytes]), nbytes)
        else:
            self.bytes[to : to + nbytes] = self.bytes[source : source + nbytes]

    def fill(self, to, value, nbytes):
        self.bytes[to : to + nbytes] = bytes([value]) * nbytes

    def properties(self):
        return {"name": "a desk", "bytes": len(self.bytes)}


DESKS = [Desk(), Desk()]
register_device("desk", DESKS.__getitem__, 2)
