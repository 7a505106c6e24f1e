"""One function in all its forms, compared."""

from __future__ import annotations

import copy

import torch

from ..opdb.checks import Differs, close, explain, seeded
from ..opdb.translate import Missing, find, translate
from .forms import calls

#: For some functions, how many results are compared: others are defined up to a sign, or scratch that PyTorch leaves
#: open.
COMPARED = {"linalg.eigh": 1, "embedding_bag": 1}

#: Forms that differ, with the reason: by function and by the beginning of the message about them.
MEANT: dict[str, dict[str, str]] = {
    "Tensor.to": {"Tensor.to.prim_other": "a bool is no device and no dtype, though PyTorch takes it for one"},
    "conv_tbc": {"conv_tbc pad=-1": "a negative padding is an error, as in the other convolutions"},
    "unique_consecutive": {
        "unique_consecutive return_inverse=True": "given by position, PyTorch ignores it and gives an empty tensor"
    },
    "linalg.pinv": {"linalg.pinv.rcond_tensor hermitian=True": "a matrix that is not square is none that is hermitian"},
    "linalg.svd": {"linalg.svd driver=": "PyTorch looks at the driver only where the matrix has elements"},
    **{f"{p}topk": {f"{p}topk sorted=False": "in any order"} for p in ("", "Tensor.")},
    "linalg.vecdot": {
        "linalg.vecdot dim=1": "a dimension out of range is an error, also where there is nothing to sum"
    },
    "nn.functional.conv_tbc": {"nn.functional.conv_tbc pad=-1": "the same as of conv_tbc"},
    "nn.functional.cosine_embedding_loss": {
        "nn.functional.cosine_embedding_loss margin as bool": "a bool is no number to subtract"
    },
    "nn.functional.hinge_embedding_loss": {
        "nn.functional.hinge_embedding_loss margin as bool": "a bool is no number to subtract"
    },
    "nn.functional.hardtanh_": {"nn.functional.hardtanh_ min_val as bool": "bounds in the wrong order are an error"},
    "nn.functional.linear": {"nn.functional.linear bias=": "a bias has one dimension"},
    **{
        f"nn.functional.fractional_max_pool{n}d": {"nn.functional.fractional": "its fourth parameter is no tensor"}
        for n in (2, 3)
    },
    "bucketize": {"bucketize.Scalar": "the boundaries are not sorted"},
    "searchsorted": {"searchsorted.Scalar sorter=None": "the sequence is not sorted"},
}


def compare(path: str, limit: int = 1) -> tuple[list[str], int]:
    """The differences between the frameworks in calls of the function at ``path``, and how many calls PyTorch accepts."""
    theirs = find(path, torch)
    try:
        ours = find(path)
    except Missing as error:
        return [str(error)], 0
    found: list[str] = []
    taken: dict[str, int] = {}
    for label, args, kwargs in calls(path, limit):
        if taken.get(label, 0) >= limit:
            continue
        memo: dict = {}
        try:
            args, kwargs = copy.deepcopy((args, kwargs))
            our_args, our_kwargs = translate(args, memo), translate(kwargs, memo)
        except Exception:
            continue
        want, error = seeded(theirs, *args, **kwargs)
        if error is not None:
            continue
        taken[label] = taken.get(label, 0) + 1
        got, error = seeded(ours, *our_args, **our_kwargs)
        if error is not None:
            found.append(f"{label}: {describe(args, kwargs)}: raises {explain(error)}")
            continue
        if path in COMPARED:
            got, want = got[: COMPARED[path]], want[: COMPARED[path]]
        try:
            close(got, want, f"{label}: {describe(args, kwargs)}")
        except Differs as failure:
            found.append(str(failure))
        except Exception as failure:
            found.append(f"{label}: not comparable: {failure!r}")
    return found, sum(taken.values())


def describe(args: tuple, kwargs: dict) -> str:
    def short(x):
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype)[6:]}{list(x.shape)}"
        if isinstance(x, (list, tuple)):
            return "[" + ", ".join(short(y) for y in x) + "]"
        return repr(x)

    return "(" + ", ".join([short(x) for x in args] + [f"{k}={short(x)}" for k, x in kwargs.items()]) + ")"
