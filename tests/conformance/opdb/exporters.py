"""In-place forms of the database's entries, and layers with their options, through every way out of Python.

``python -m tests.conformance.opdb.exporters [expression]`` prints the disagreements.
"""

from __future__ import annotations

import inspect
import io
import re
import sys
import warnings

import torch

import taeda
import taeda.export
import taeda.onnx
from taeda.utils import _pytree as pytree

from .checks import entries, tensors
from .decomposed import _Call
from .samples import copied, plain_samples
from .translate import back, translate
from .written import close

AGREES = "agrees"


def _exported(model, args):
    return taeda.export.export(model, copied(args)).module()(*copied(args))


def _decomposed(model, args):
    return taeda.export.export(model, copied(args)).run_decompositions().module()(*copied(args))


def _file(model, args):
    file = io.BytesIO()
    taeda.export.save(taeda.export.export(model, copied(args)), file, format="pt2")
    file.seek(0)
    return file


def _pt2(model, args):
    return taeda.export.load(_file(model, args)).module()(*copied(args))


def _torch(model, args):
    made = torch.export.load(_file(model, args)).module()(*[back(x) for x in copied(args)])
    return translate(pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, made))


def _onnx(model, args):
    program = taeda.onnx.export(taeda.export.export(model, copied(args)))
    try:
        return program(*copied(args))
    except Exception as error:  # onnxruntime has no kernel for these dtypes
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        return program.call_reference(*copied(args))


def _trace(model, args):
    return taeda.jit.trace(model, copied(args))(*copied(args))


WAYS = {
    "export": _exported, "decomposed": _decomposed, "pt2": _pt2, "pt2 in PyTorch": _torch, "ONNX": _onnx,
    "trace": _trace,
}  # fmt: skip


def outcome(way, model, args):
    """``agrees``, or the fault."""
    with warnings.catch_warnings(), taeda.no_grad():
        warnings.simplefilter("ignore")
        taeda.manual_seed(0)
        want = tensors(model(*copied(args)))
        try:
            taeda.manual_seed(0)
            got = tensors(WAYS[way](model, args))
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:300]}"
    if len(got) != len(want):
        return f"{len(got)} results for {len(want)}"
    for x, y in zip(got, want, strict=True):
        if x.shape != y.shape or x.dtype is not y.dtype:
            return f"{x.dtype}{list(x.shape)} for {y.dtype}{list(y.shape)}"
        if not close(x, y):
            return "values"
    return AGREES


# ---- in-place forms --------------------------------------------------------------------------------------------------


def in_place():
    """Names of the entries with an in-place form."""
    return sorted(n for n, op in entries().items() if op.inplace_variant is not None)


def check_in_place(name, limit=1):
    """``(way, outcome)`` of the in-place form where the op itself agrees, on a value of the program."""
    op = entries()[name]
    form, plain = translate(op.inplace_variant), translate(op.op)
    for sample in plain_samples(op, limit):
        if sample.broadcasts_input:
            continue
        args, kwargs = translate((sample.input, *sample.args)), translate(sample.kwargs)
        apart = lambda function: _Call(lambda x, *more, **named: function(x.clone(), *more, **named) * 1, kwargs)  # noqa: E731, B023
        try:
            apart(form)(*copied(args))
        except Exception:  # which calls raise is compared elsewhere
            continue
        for way in WAYS:
            if outcome(way, apart(plain), args) == AGREES:
                yield way, outcome(way, apart(form), args)


# ---- layers ----------------------------------------------------------------------------------------------------------

_X = {"1d": (2, 4, 9), "2d": (2, 4, 9, 9), "3d": (2, 4, 5, 5, 5)}
#: The arguments that layers need, and their input, by class; others take none, and four dimensions.
_NEEDED = {
    "Linear": ((9, 3), "2d"), "Threshold": ((0.1, 2.0), "2d"), "PixelShuffle": ((2,), "2d"),
    "PixelUnshuffle": ((3,), "2d"), "ChannelShuffle": ((2,), "2d"), "Softmax": ((1,), "2d"), "GLU": ((1,), "2d"),
    "LogSoftmax": ((1,), "2d"), "Softmin": ((1,), "2d"), "Unfold": ((3,), "2d"), "LayerNorm": ((9,), "2d"),
    "RMSNorm": ((9,), "2d"), "GroupNorm": ((2, 4), "2d"), "LocalResponseNorm": ((2,), "2d"),
    "RNN": ((9, 3), "1d"), "LSTM": ((9, 3), "1d"), "GRU": ((9, 3), "1d"), "Upsample": ((None, 2), "2d"),
    **{f"Conv{n}": ((4, 6, 3), n) for n in _X}, **{f"ConvTranspose{n}": ((4, 6, 3), n) for n in _X},
    **{f"BatchNorm{n}": ((4,), n) for n in _X}, **{f"InstanceNorm{n}": ((4,), n) for n in _X},
    **{f"MaxPool{n}": ((2,), n) for n in _X}, **{f"AvgPool{n}": ((2,), n) for n in _X},
    **{f"LPPool{n}": ((2, 3), n) for n in _X}, **{f"AdaptiveAvgPool{n}": ((2,), n) for n in _X},
    **{f"AdaptiveMaxPool{n}": ((2,), n) for n in _X}, **{f"Dropout{n}": ((), n) for n in _X},
    **{f"{kind}Pad{n}": ((1,), n) for kind in ("Zero", "Reflection", "Replication", "Circular") for n in _X},
    **{f"ConstantPad{n}": ((1, 2.5), n) for n in _X},
}  # fmt: skip
#: Values of options other than flags, whose other value is tried.
_VALUES = {
    "stride": [2], "padding": [1, "same", "valid"], "dilation": [2], "groups": [2], "output_padding": [],
    "padding_mode": ["reflect", "replicate", "circular"], "momentum": [0.5, None], "eps": [1e-3],
    "negative_slope": [0.3], "alpha": [0.5], "approximate": ["tanh"], "min_val": [-0.5], "max_val": [0.5],
    "num_layers": [2], "nonlinearity": ["relu"], "proj_size": [2], "beta": [2.0], "threshold": [1.0], "p": [0.0],
    "scale_factor": [2, 1.5], "mode": ["nearest", "nearest-exact", "bilinear", "bicubic"], "num_parameters": [4],
    "lambd": [0.2], "upper": [0.5], "lower": [0.1], "start_dim": [2], "end_dim": [2], "divisor_override": [3],
}  # fmt: skip


def layers():
    """Names of the layers, with their options: ``Conv2d bias=False``."""
    found = []
    for name in sorted(set(taeda.nn.modules.__all__) & (set(_NEEDED) | _plain())):
        parameters = inspect.signature(getattr(taeda.nn, name)).parameters
        found.append((name, {}))
        for option, p in parameters.items():
            if isinstance(p.default, bool):
                found.append((name, {option: not p.default}))
            elif p.default is not inspect.Parameter.empty:
                found += [(name, {option: value}) for value in _VALUES.get(option, ()) if value != p.default]
        if name in ("RNN", "LSTM", "GRU"):
            found += [(name, {option: True}) for option in ("bidirectional", "batch_first")]
            found += [
                (name, {"bias": False}),
                (name, {"num_layers": 2}),
                (name, {"bias": False, "bidirectional": True}),
            ]
    return found


def _plain():
    """Activations: layers that need no arguments."""
    return {
        name for name, kind in vars(taeda.nn.modules.activation).items()
        if isinstance(kind, type) and issubclass(kind, taeda.nn.Module) and name not in ("Module", "MultiheadAttention")
    } | {"Flatten", "Identity", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "CosineSimilarity"} - {"CosineSimilarity"}  # fmt: skip


def check_layer(name, options, training=False):
    """``(way, outcome)`` of a layer with these options; nothing where they do not go together."""
    args, size = _NEEDED.get(name, ((), "2d"))
    taeda.manual_seed(1)
    try:
        model = getattr(taeda.nn, name)(*args, **options).train(training)
        x = taeda.randn(_X[size])
        model(x.clone())
    except (ValueError, RuntimeError, TypeError, NotImplementedError, AssertionError):
        return
    for way in WAYS:
        yield way, outcome(way, model, (x,))


def check_sample(info, limit):
    """``(way, outcome)`` of a layer of PyTorch's database, with the options of its samples."""
    from ..test_module_db import call, inputs, pair

    for sample in inputs(info, training=False, limit=limit):
        model, _ = pair(info, sample, training=False)
        args, kwargs = call(sample.forward_input, "taeda")
        with taeda.no_grad():
            try:
                model(*copied(args), **kwargs)
            except Exception:  # which calls raise is compared elsewhere
                continue
        if kwargs:
            model = _Call(model, kwargs)
        for way in WAYS:
            yield way, outcome(way, model.eval(), tuple(args))


def main() -> None:
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    for name in in_place():
        if pattern.search(name):
            for way, found in check_in_place(name):
                if found != AGREES:
                    print(name, "|", way, "|", found.replace("\n", " "), flush=True)
    for name, options in layers():
        label = f"{name} {options}"
        if pattern.search(label):
            for way, found in check_layer(name, options):
                if found != AGREES:
                    print(label, "|", way, "|", found.replace("\n", " "), flush=True)
    from ..test_module_db import ENTRIES

    for name, info in ENTRIES.items():
        if pattern.search(name):
            for way, found in check_sample(info, 6):
                if found != AGREES:
                    print(name, "|", way, "|", found.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
