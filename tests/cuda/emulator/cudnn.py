"""A stand-in of cuDNN for the emulated devices: ``table()`` gives the C address of each function.

Names, arguments and numbers are those of NVIDIA's ``cudnn_graph.h`` (cuDNN 9), of which it has graphs of one convolution.
It checks each descriptor when it is finalised. Its engines are :data:`ENGINES`. NumPy computes, in float32 or float64.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from .capture import put
from .cublaslt import narrow, wide
from .library import I, L, Operand, P, Refused, StandIn, table_of

SIGNATURES: dict[str, tuple] = {
    "cudnnCreate": (P,), "cudnnSetStream": (P, P), "cudnnGetProperty": (I, P), "cudnnBackendCreateDescriptor": (I, P),
    "cudnnBackendDestroyDescriptor": (P,), "cudnnBackendFinalize": (P,), "cudnnBackendSetAttribute": (P, I, I, L, P),
    "cudnnBackendGetAttribute": (P, I, I, L, P, P), "cudnnBackendExecute": (P, P, P),
}  # fmt: skip
BAD_PARAM, MISALIGNED, NOT_FINALIZED, ATTRIBUTE_TYPE, NOT_SUPPORTED, INTERNAL, FAILED = (
    2000, 2003, 2004, 2010, 3000, 4000, 5000
)  # fmt: skip
DTYPES = {0: "f4", 1: "f8", 2: "f2", 9: "u2"}  # the last is bfloat16
HANDLE, DTYPE, INTEGER, DOUBLE, POINTER, MODE, HEURISTIC, NOTE, DESCRIPTOR = 0, 1, 3, 5, 6, 7, 8, 11, 15
C_TYPES = {INTEGER: L, DOUBLE: ctypes.c_double, HANDLE: P, POINTER: P, DESCRIPTOR: P}  # of others int
TENSOR, CONVOLUTION, ENGINE, CONFIGURATION, HEUR, PLAN, GRAPH, PACK = 17, 1, 2, 3, 4, 5, 15, 16
#: The attributes of each kind that must be set: their types, and how many values (0: any number).
REQUIRED: dict[int, dict[int, tuple[int, int]]] = {
    TENSOR: {900: (INTEGER, 1), 901: (DTYPE, 1), 902: (INTEGER, 0), 903: (INTEGER, 0), 906: (INTEGER, 1)},
    CONVOLUTION: {100: (DTYPE, 1), 101: (MODE, 1), **dict.fromkeys(range(102, 106), (INTEGER, 0)), 106: (INTEGER, 1)},
    GRAPH: {800: (HANDLE, 1), 801: (DESCRIPTOR, 0)},
    HEUR: {200: (HEURISTIC, 1), 201: (DESCRIPTOR, 1)},
    PLAN: {400: (HANDLE, 1), 401: (DESCRIPTOR, 1)},
    PACK: {1000: (INTEGER, 0), 1001: (POINTER, 0), 1003: (POINTER, 1)},
    CONFIGURATION: {},
    ENGINE: {},
}
#: Convolutions by kind: what they write, and the number of their first attribute.
ROLES = {10: ("y", 700), 12: ("x", 706), 11: ("w", 712)}
for _kind, (_, _first) in ROLES.items():
    REQUIRED[_kind] = {_first: (DOUBLE, 1), _first + 1: (DOUBLE, 1)} | {
        _first + i: (DESCRIPTOR, 1) for i in range(2, 6)
    }


class Engine(NamedTuple):
    notes: tuple[int, ...] = ()
    workspace: int = 0
    works: bool = True


#: What the heuristics propose, by their mode. Notes: 0 for TF32, 1 rounded operands, 2 rounded sums, 4 other bits in
#: each run.
ENGINES = {
    3: [
        Engine((4,), 64), Engine((0, 1), 64), Engine((0, 2), 64), Engine((5,), works=False), Engine((), 1 << 40),
        Engine((0,), 256),
    ],
    2: [Engine((), 1000)],
}  # fmt: skip


class Thing:
    """A handle, or a descriptor with its attributes."""

    def __init__(self, context: Any, kind: int):
        self.context, self.kind = context, kind
        self.attributes: dict[int, tuple] = {}
        self.final = self.destroyed = False
        self.stream = 0
        self.engine: Engine | None = None
        self.last: Any = None


def taps(x: np.ndarray, stride: tuple, before: tuple, after: tuple, dilation: tuple, kernel: tuple, size: tuple):
    """``x`` with its padding, and for each tap its place and the view of what it meets."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - len(size)) + list(zip(before, after, strict=True)))
    views = []
    for tap in itertools.product(*map(range, kernel)):
        at = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(tap, dilation, size, stride, strict=True)
        )
        views.append((tap, padded[(..., *at)]))
    return padded, views


def compute(writes: str, groups: int, x: np.ndarray, w: np.ndarray, y: np.ndarray, steps: tuple) -> np.ndarray:
    """A convolution or gradient of arrays; that of the three which ``writes`` names only has its shape."""
    n, kernel, size = len(x), w.shape[2:], y.shape[2:]
    X = x.reshape(n, groups, -1, *x.shape[2:])
    W = w.reshape(groups, -1, *w.shape[1:])
    Y = y.reshape(n, groups, -1, *size)
    made = np.zeros_like({"x": X, "w": W, "y": Y}[writes])
    padded, views = taps(np.zeros_like(X) if writes == "x" else X, *steps, kernel, size)
    for tap, view in views:
        at = (..., *tap)
        if writes == "y":
            made += np.einsum("ngc...,gmc->ngm...", view, W[at])
        elif writes == "x":
            view += np.einsum("ngm...,gmc->ngc...", Y, W[at])
        else:
            flat = view.reshape(*view.shape[:3], -1), Y.reshape(*Y.shape[:3], -1)
            made[at] = np.einsum("ngcp,ngmp->gmc", *flat)
    if writes == "x":
        inner = tuple(slice(b, b + s) for b, s in zip(steps[1], x.shape[2:], strict=True))
        made = padded[(..., *inner)]
    return made.reshape({"x": x, "w": w, "y": y}[writes].shape)


class Cudnn(StandIn):
    name, CUDA_ERROR, INTERNAL, INVALID = "cudnn", FAILED, INTERNAL, BAD_PARAM
    refuses = False  # it has no engine for any convolution

    def new(self, to: int, kind: int) -> None:
        number = next(self.numbers)
        self.handles[number] = Thing(self.context(), kind)
        put(to, number)

    def find(self, handle: int, *kinds: int, final: bool = True) -> Thing:
        thing = self.take(handle, Thing)
        if thing.kind not in kinds:
            raise self.refuse(f"{handle:#x} is of kind {thing.kind}, and {kinds} is asked for")
        if final and not thing.final:
            raise Refused(NOT_FINALIZED, f"{handle:#x} of kind {thing.kind} is not finalised")
        return thing

    def cudnnCreate(self, to):
        self.new(to, -1)

    def cudnnSetStream(self, handle, stream):
        thing = self.find(handle, -1, final=False)
        if self.driver.stream(stream).context is not thing.context:
            raise self.refuse("a stream of another device")
        thing.stream = stream

    def cudnnGetProperty(self, which, to):
        put(to, (9, 28, 1)[which], I)

    def cudnnBackendCreateDescriptor(self, kind, to):
        if kind not in REQUIRED:
            raise Refused(NOT_SUPPORTED, f"descriptors of kind {kind}")
        self.new(to, kind)

    def cudnnBackendDestroyDescriptor(self, handle):
        thing = self.take(handle, Thing)
        if thing.last is not None and not getattr(thing.last, "done", True):
            raise self.refuse("a plan is destroyed before its work is done")
        thing.destroyed = True
        del self.handles[handle]

    def cudnnBackendSetAttribute(self, handle, attribute, kind, count, source):
        thing = self.find(handle, *REQUIRED, final=False)
        if thing.final:
            raise self.refuse("a finalised descriptor is changed")
        wanted, most = REQUIRED[thing.kind].get(attribute, (None, 0))
        if wanted != kind:
            raise Refused(ATTRIBUTE_TYPE, f"attribute {attribute} of kind {thing.kind} with type {kind}")
        if count < 1 or (most and count != most):
            raise self.refuse(f"{count} values of attribute {attribute}")
        thing.attributes[attribute] = tuple((C_TYPES.get(kind, I) * count).from_address(source))

    def cudnnBackendFinalize(self, handle):
        thing = self.find(handle, *REQUIRED, final=False)
        missing = REQUIRED[thing.kind].keys() - thing.attributes
        if missing or thing.final:
            raise self.refuse(f"kind {thing.kind} is finalised: {sorted(missing)} are not set")
        name = "operation" if thing.kind in ROLES else {
            TENSOR: "tensor", CONVOLUTION: "convolution", GRAPH: "graph", HEUR: "heuristic", PLAN: "plan", PACK: "pack",
        }[thing.kind]  # fmt: skip
        getattr(self, f"final_{name}")(thing, thing.attributes)
        thing.final = True

    def final_tensor(self, thing, a):
        sizes, strides = a[902], a[903]
        if a[901][0] not in DTYPES or len(sizes) != len(strides) or not 4 <= len(sizes) <= 5:
            raise self.refuse(f"a tensor of dtype {a[901]}, sizes {sizes} and strides {strides}")
        if min(sizes) < 1 or min(strides) < 1:
            raise self.refuse(f"sizes {sizes} and strides {strides} must be positive")
        if a[900][0] % np.dtype(DTYPES[a[901][0]]).itemsize or a[900][0] > 16:
            raise self.refuse(f"an alignment to {a[900][0]} bytes")

    def final_convolution(self, thing, a):
        if {len(a[i]) for i in range(102, 106)} != {a[106][0]} or a[101][0] != 1 or a[100][0] not in (0, 1):
            raise self.refuse("numbers for another number of dimensions, a mode, or a dtype of sums")
        if min(a[102] + a[103]) < 1 or min(a[104] + a[105]) < 0:
            raise self.refuse("steps that are not positive")

    def final_operation(self, thing, a):
        _, first = ROLES[thing.kind]
        steps = self.find(a[first + 2][0], CONVOLUTION).attributes
        w, x, y = (self.find(a[first + i][0], TENSOR).attributes for i in range(3, 6))
        if (a[first], a[first + 1]) != ((1.0,), (0.0,)):
            raise Refused(NOT_SUPPORTED, "factors")
        dims = steps[106][0]
        if len({t[906] for t in (w, x, y)}) < 3 or {len(t[902]) for t in (w, x, y)} != {dims + 2}:
            raise self.refuse("tensors of one number, or of other dimensions than the convolution")
        if len({t[901] for t in (w, x, y)}) > 1 or (steps[100][0] == 1) != (x[901][0] == 1):
            raise self.refuse("tensors and sums of several dtypes")
        (n, channels, *size), (m, c, *kernel), (n_y, m_y, *result) = x[902], w[902], y[902]
        groups = channels // c
        made = [
            (i + b + e - d * (k - 1) - 1) // s + 1
            for i, k, d, s, e, b in zip(size, kernel, *(steps[j] for j in range(102, 106)), strict=True)
        ]
        if channels % c or m % groups or (n, m, made) != (n_y, m_y, result):
            raise self.refuse(f"images {x[902]}, weights {w[902]} and outputs {y[902]} are no convolution")
        orders = [tuple(np.argsort([-s for s in t[903]], kind="stable")) for t in (w, x, y) if min(t[902][1:]) > 1]
        if len(set(orders)) > 1:
            raise Refused(NOT_SUPPORTED, "tensors of several layouts")

    def final_graph(self, thing, a):
        self.find(a[800][0], -1, final=False)
        if len(a[801]) != 1:
            raise Refused(NOT_SUPPORTED, "several operations")
        self.find(a[801][0], *ROLES)

    def final_heuristic(self, thing, a):
        self.find(a[201][0], GRAPH)
        if self.refuses:
            raise Refused(NOT_SUPPORTED, "")

    def final_plan(self, thing, a):
        self.find(a[400][0], -1, final=False)
        thing.engine = self.find(a[401][0], CONFIGURATION).engine
        if thing.engine is None or not thing.engine.works:
            raise Refused(NOT_SUPPORTED, "")

    def final_pack(self, thing, a):
        if len(a[1000]) != len(a[1001]) or len(set(a[1000])) != len(a[1000]):
            raise self.refuse("numbers and addresses do not match")

    def cudnnBackendGetAttribute(self, handle, attribute, kind, wanted, found, to):
        thing = self.find(handle, HEUR, CONFIGURATION, ENGINE, PLAN)
        types = {202: (HEUR, DESCRIPTOR), 300: (CONFIGURATION, DESCRIPTOR), 1303: (ENGINE, NOTE), 402: (PLAN, INTEGER)}
        if types.get(attribute) != (thing.kind, kind):
            raise Refused(ATTRIBUTE_TYPE, f"attribute {attribute} of kind {thing.kind} is read with type {kind}")
        made: list[Any] = []
        if attribute == 202:
            graph = self.find(thing.attributes[201][0], GRAPH)
            made = [(engine, graph) for engine in ENGINES[thing.attributes[200][0]]]
        elif attribute == 300:
            made = [(thing.engine, thing.attributes[201])]
        else:
            made = list(thing.engine.notes) if attribute == 1303 else [thing.engine.workspace]
        put(found, len(made), L)
        if kind == DESCRIPTOR:
            given = (P * wanted).from_address(to) if wanted else ()
            for one, (engine, graph) in zip(given, made, strict=False):
                other = self.find(one, CONFIGURATION if attribute == 202 else ENGINE, final=False)
                other.engine, other.attributes[201], other.final = engine, graph, True
        else:
            for i, value in enumerate(made[:wanted]):
                c_type = C_TYPES.get(kind, I)
                put(to + i * ctypes.sizeof(c_type), value, c_type)

    def cudnnBackendExecute(self, handle, plan, pack):
        handle, plan = self.find(handle, -1, final=False), self.find(plan, PLAN)
        given = self.find(pack, PACK).attributes
        if plan.attributes[400] != (next(k for k, v in self.handles.items() if v is handle),):
            raise self.refuse("the plan is one of another handle")
        engine = plan.engine
        graph = self.find(plan.attributes[401][0], CONFIGURATION).attributes[201]
        operation = self.find(graph.attributes[801][0], *ROLES)
        writes, first = ROLES[operation.kind]
        steps = self.find(operation.attributes[first + 2][0], CONVOLUTION).attributes
        tensors = {
            name: self.find(operation.attributes[first + i][0], TENSOR).attributes
            for name, i in (("x", 4), ("w", 3), ("y", 5))
        }
        addresses = dict(zip(given[1000], given[1001], strict=True))
        if addresses.keys() != {t[906][0] for t in tensors.values()}:
            raise self.refuse(f"addresses of tensors {sorted(addresses)}")
        operands = []
        for name, t in tensors.items():
            address = addresses[t[906][0]]
            if address % t[900][0]:
                raise Refused(MISALIGNED, f"{address:#x} is not a multiple of {t[900][0]}")
            operands.append(Operand(address, DTYPES[t[901][0]], t[902], t[903], writes=name == writes))
        if engine.workspace:
            if not given[1003][0] or given[1003][0] % 256:
                raise self.refuse(f"a work area at {given[1003][0]:#x}")
            operands.append(Operand(given[1003][0], "u1", (engine.workspace,), writes=True))
        groups = tensors["x"][902][1] // tensors["w"][902][1]
        single = DTYPES[tensors["x"][901][0]] == "f4"
        mode = 70 if steps[100][0] == 1 else 77 if single and 0 in engine.notes else 68
        order = tuple(steps[i] for i in (103, 105, 104, 102))

        def do(x, w, y, *area):
            for one in area:
                one[...] = 0xA5
            to = {"x": x, "w": w, "y": y}[writes]
            made = compute(writes, groups, *(wide(t, mode) for t in (x, w, y)), order)
            if 4 in engine.notes:
                made = made * np.random.uniform(0.9, 1.1, made.shape).astype(made.dtype)
            to[...] = narrow(made, DTYPES[tensors["x"][901][0]])

        stream = self.driver.stream(handle.stream)
        plan.last = self.queue(writes, stream, operands, do, lambda: not plan.destroyed)


@functools.cache
def cudnn() -> Cudnn:
    """cuDNN of this process."""
    from . import driver

    return Cudnn(driver(), SIGNATURES)


def table() -> dict[str, int]:
    """The C address of each function, by the name under which ``libcudnn`` exports it."""
    return table_of(cudnn, "cudnn")
