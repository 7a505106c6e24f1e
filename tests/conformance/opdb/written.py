"""Entries of the operator database written as ONNX, and run in onnxruntime.

``python -m tests.conformance.opdb.written [expression] [samples] [opset] [dynamic]`` prints what cannot be written,
what differs, and counts.
"""

from __future__ import annotations

import math
import sys
from collections import Counter

import numpy as np

import taeda
import taeda.export
import taeda.onnx
from taeda.export import Dim

from .checks import UNSPECIFIED, name_of, tensors
from .decomposed import _Call
from .samples import calls, chosen, copied

EXACT = 1e-4
#: Entries of ops that ONNX has no form of: complex eigenvalues, factors with blocks, bits of floats.
LACKING = r"linalg\.(eig|eigvals|ldl_.*)|histogram|nextafter|hash_tensor|resize_|resize_as_|istft"
#: Vectors whose signs are free: their product is compared, and the values.
VECTORS = {
    "linalg.eigh": lambda w, V: [w, V * w.unsqueeze(-2) @ V.mT],
    "linalg.svd": lambda U, S, Vh: [S, _product(U, S, Vh), U.mT @ U, Vh @ Vh.mT],
    "svd": lambda U, S, V: [S, _product(U, S, V.mT), U.mT @ U, V.mT @ V],
}
RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")


def _product(U, S, Vh):
    k = S.shape[-1]
    return U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :]


def close(got, want, limit=1.0):
    """Whether results agree to 1e-4: of each number, or of the largest one, as far as it is below ``limit``."""
    if want.is_complex():
        got, want = (taeda.view_as_real(x.resolve_conj()) for x in (got, want))
    a, b = got.double(), want.double()
    scale = float(b.nan_to_num(0, 0, 0).abs().max()) if b.numel() else 0.0
    return taeda.allclose(a, b, EXACT, EXACT * min(scale, limit) + 1e-7, True)


def sizes_of(tree):
    """For tensors that all of their sizes may change, where the op allows it."""
    return taeda.utils._pytree.tree_map(
        lambda x: dict.fromkeys(range(x.dim()), Dim.AUTO) if isinstance(x, taeda.Tensor) else None, tree
    )


def attempt(function, args, kwargs, name="", opset=None, dynamic=False):
    """The outcome of a call: ``agrees``, ``not recorded``, ``not in ONNX``, ``no tensor``, or the fault.

    With ``dynamic`` all sizes may change that the op allows to. Where onnxruntime has no kernel for the types, the
    package onnx's reference implementation is asked.
    """
    if name == "__getitem__":  # slices are no arguments of a program
        args, index = args[:1], args[1]
        function = lambda x: x[index]  # noqa: E731
    want = tensors(function(*copied(args), **kwargs))
    if not want:
        return "no tensor"
    try:
        shapes = {"args": sizes_of(copied(args))} if dynamic else None
        program = taeda.export.export(_Call(function, kwargs), copied(args), dynamic_shapes=shapes)
    except RuntimeError:
        return "not recorded"
    try:
        made = taeda.onnx.export(program, opset_version=opset)
    except taeda.onnx.errors.UnsupportedOperatorError as error:
        return "not in ONNX: " + str(error).split("\n")[0].removeprefix("onnx.export: ")
    except RuntimeError as error:
        if any(x in str(error) for x in ("changes sizes in place", "cannot resize variables")):
            return "not recorded"
        raise
    kinds = {n.op_type for n in made.model_proto.graph.node}
    random = any(kind.startswith(RANDOM) for kind in kinds)
    limit = math.inf if "DFT" in kinds or name == "matrix_exp" else 1.0  # sums of large terms
    given = copied(args)
    try:
        got = made(*given)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "NotImplemented" not in type(error).__name__:
            raise
        got = made.call_reference(*given)
    if len(got) != len(want):
        return f"{len(got)} results for {len(want)}"
    if name in VECTORS and [x.shape for x in got] == [x.shape for x in want]:
        got, want = VECTORS[name](*got), VECTORS[name](*want)
    for x, y in zip(got, want, strict=True):
        if x.shape != y.shape or x.dtype is not y.dtype:
            return f"{x.dtype}{list(x.shape)} for {y.dtype}{list(y.shape)}"
        if not random and name not in UNSPECIFIED and not close(x, y, limit):
            return f"values: {np.array2string(x.numpy().ravel()[:4])} for {np.array2string(y.numpy().ravel()[:4])}"
    return "agrees"


def check(op, limit=1, opset=None, dynamic=False):
    """For each sample what :func:`attempt` says."""
    for call in calls(op, limit):
        yield attempt(*call, name_of(op), opset, dynamic)


def main() -> None:
    opset = int(sys.argv[3]) if len(sys.argv) > 3 else None
    counts: Counter = Counter()
    for name, op, limit in chosen():
        found = set()
        try:
            found.update(check(op, limit, opset, len(sys.argv) > 4))
        except Exception as error:
            found.add(f"FAILS {type(error).__name__}: {str(error)[:400]}")
        worst = max(found or {"no sample"}, key=lambda text: (text != "agrees", text.startswith("FAILS"), text))
        kind = worst.split(":")[0]
        kind = kind if kind in ("agrees", "not recorded", "not in ONNX", "no tensor", "no sample") else "WRONG"
        counts[kind] += 1
        if kind in ("WRONG", "not in ONNX"):
            print(name, "|", worst.replace("\n", " "), flush=True)
        elif kind != "agrees":
            print(name, "|", kind, flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
