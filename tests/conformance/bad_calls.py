"""Calls of nn.functional with one argument of another size, dtype, kind or range: PyTorch's outcome and taeda's.

``python -m tests.conformance.bad_calls [REGEX]`` prints each call whose outcomes differ: a result of other values, or an
exception that an ``except`` written for PyTorch's would not catch.
"""

from __future__ import annotations

import re
import sys
import warnings

import torch

import taeda

from .opdb.checks import Differs, close, seeded
from .opdb.translate import translate


def _tensors():
    """The tensors of the calls, equal in every process."""
    g = torch.Generator().manual_seed(0)

    def rand(*shape):
        return torch.rand(*shape, generator=g) * 0.8 + 0.1

    return rand


def calls():
    """By name, a valid call: positional tensors, then options, each with a value that differs from its default."""
    rand = _tensors()
    classes, signs = torch.tensor([1, 0, 3]), torch.tensor([1.0, -1.0, 1.0])
    scores, same = rand(3, 4), rand(3, 4)
    three = {"reduction": "sum"}
    image, row, box = rand(2, 4, 6, 6), rand(2, 4, 8), rand(1, 2, 4, 4, 4)
    stats = {"running_mean": rand(4), "running_var": rand(4)}
    own = {"weight": rand(4), "bias": rand(4)}
    yield from {
        # losses
        "mse_loss": ([scores, same], {**three, "weight": rand(3, 4)}),
        "l1_loss": ([scores, same], {**three, "weight": rand(3, 4)}),
        "smooth_l1_loss": ([scores, same], {**three, "beta": 0.5}),
        "huber_loss": ([scores, same], {**three, "delta": 0.5, "weight": rand(3, 4)}),
        "binary_cross_entropy": ([scores, same], {**three, "weight": rand(3, 4)}),
        "binary_cross_entropy_with_logits": ([scores, same], {**three, "weight": rand(3, 4), "pos_weight": rand(4)}),
        "kl_div": ([scores.log(), same], {"reduction": "batchmean", "log_target": False}),
        "poisson_nll_loss": ([scores, same], {**three, "log_input": True, "full": True, "eps": 1e-3}),
        "gaussian_nll_loss": ([scores, same, rand(3, 4)], {**three, "full": True, "eps": 1e-3}),
        "soft_margin_loss": ([scores, same.sub(0.5).sign()], three),
        "hinge_embedding_loss": ([scores, same.sub(0.5).sign()], {**three, "margin": 0.5}),
        "margin_ranking_loss": ([rand(3), rand(3), signs], {**three, "margin": 0.5}),
        "cosine_embedding_loss": ([scores, same, signs], {**three, "margin": 0.5}),
        "triplet_margin_loss": ([scores, same, rand(3, 4)], {**three, "margin": 0.5, "p": 2, "eps": 1e-3, "swap": True}),
        "triplet_margin_with_distance_loss": ([scores, same, rand(3, 4)], {**three, "margin": 0.5, "swap": True}),
        "multi_margin_loss": ([scores, classes], {**three, "p": 1, "margin": 0.5, "weight": rand(4)}),
        "multilabel_margin_loss": ([scores, torch.tensor([[1, 0, -1, 2], [3, -1, 0, 0], [0, 1, 2, 3]])], three),
        "multilabel_soft_margin_loss": ([scores, same.round()], {**three, "weight": rand(4)}),
        "nll_loss": ([scores.log(), classes], {**three, "weight": rand(4), "ignore_index": 2}),
        "nll_loss 2d": ([rand(2, 3, 2, 2), torch.randint(3, (2, 2, 2))], {**three, "weight": rand(3), "ignore_index": 2}),
        "cross_entropy": ([scores, classes], {**three, "weight": rand(4), "ignore_index": 2, "label_smoothing": 0.1}),
        "cross_entropy of probabilities": ([scores, same], {**three, "weight": rand(4), "label_smoothing": 0.1}),
        "ctc_loss": (
            [rand(6, 2, 4).log(), torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 5]), torch.tensor([2, 1])],
            {**three, "blank": 0, "zero_infinity": True},
        ),
        "pairwise_distance": ([scores, same], {"p": 2.0, "eps": 1e-3, "keepdim": True}),
        "cosine_similarity": ([scores, same], {"dim": 1, "eps": 1e-3}),
        # pools
        "avg_pool1d": ([row], {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
        "avg_pool2d": (
            [image],
            {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False, "divisor_override": 3},
        ),
        "avg_pool3d": (
            [box],
            {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False, "divisor_override": 3},
        ),
        "max_pool1d": ([row], {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 1, "ceil_mode": True, "return_indices": True}),
        "max_pool2d": ([image], {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 1, "ceil_mode": True, "return_indices": True}),
        "max_pool3d": ([box], {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 1, "ceil_mode": True, "return_indices": True}),
        "lp_pool1d": ([row], {"norm_type": 2.0, "kernel_size": 2, "stride": 2, "ceil_mode": True}),
        "lp_pool2d": ([image], {"norm_type": 2.0, "kernel_size": 2, "stride": 2, "ceil_mode": True}),
        "adaptive_avg_pool1d": ([row], {"output_size": 3}),
        "adaptive_avg_pool2d": ([image], {"output_size": (3, 2)}),
        "adaptive_avg_pool3d": ([box], {"output_size": (3, 2, 1)}),
        "adaptive_max_pool1d": ([row], {"output_size": 3, "return_indices": True}),
        "adaptive_max_pool2d": ([image], {"output_size": (3, 2), "return_indices": True}),
        "adaptive_max_pool3d": ([box], {"output_size": (3, 2, 1), "return_indices": True}),
        "fractional_max_pool2d": ([image], {"kernel_size": 2, "output_size": (3, 2), "_random_samples": rand(2, 4, 2)}),
        "fractional_max_pool3d": ([box], {"kernel_size": 2, "output_size": (2, 2, 1), "_random_samples": rand(1, 2, 3)}),
        "max_unpool1d": ([row[..., :2], torch.tensor([0, 3]).expand(2, 4, 2)], {"kernel_size": 2, "stride": 2, "padding": 0}),
        "max_unpool2d": (
            [image[..., :2, :2], torch.tensor([[0, 3], [9, 15]]).expand(2, 4, 2, 2)],
            {"kernel_size": 2, "stride": 2, "padding": 0, "output_size": (4, 4)},
        ),
        # normalisations
        "batch_norm": ([image], {**stats, **own, "training": True, "momentum": 0.2, "eps": 1e-3}),
        "batch_norm of evaluation": ([image], {**stats, **own, "training": False, "eps": 1e-3}),
        "instance_norm": ([image], {**stats, **own, "use_input_stats": True, "momentum": 0.2, "eps": 1e-3}),
        "layer_norm": ([row], {"normalized_shape": (8,), "weight": rand(8), "bias": rand(8), "eps": 1e-3}),
        "rms_norm": ([row], {"normalized_shape": (8,), "weight": rand(8), "eps": 1e-3}),
        "group_norm": ([image], {"num_groups": 2, **own, "eps": 1e-3}),
        "local_response_norm": ([image], {"size": 2, "alpha": 1e-3, "beta": 0.5, "k": 2.0}),
        "normalize": ([row], {"p": 2.0, "dim": 1, "eps": 1e-3}),
        # convolutions and products
        "conv1d": ([row], {"weight": rand(6, 2, 3), "bias": rand(6), "stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
        "conv2d": ([image], {"weight": rand(6, 2, 3, 3), "bias": rand(6), "stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
        "conv3d": ([box], {"weight": rand(6, 1, 3, 3, 3), "bias": rand(6), "stride": 2, "padding": 1, "dilation": 1, "groups": 2}),
        "conv_transpose1d": (
            [row],
            {"weight": rand(4, 3, 3), "bias": rand(6), "stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2},
        ),
        "conv_transpose2d": (
            [image],
            {"weight": rand(4, 3, 3, 3), "bias": rand(6), "stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2},
        ),
        "conv_transpose3d": (
            [box],
            {"weight": rand(2, 3, 3, 3, 3), "bias": rand(6), "stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2},
        ),
        "unfold": ([image], {"kernel_size": 2, "dilation": 1, "padding": 1, "stride": 2}),
        "fold": ([rand(2, 8, 9)], {"output_size": (4, 4), "kernel_size": 2, "dilation": 1, "padding": 0, "stride": 1}),
        "linear": ([scores], {"weight": rand(5, 4), "bias": rand(5)}),
        "bilinear": ([scores, same], {"weight": rand(5, 4, 4), "bias": rand(5)}),
        "embedding": ([classes], {"weight": rand(5, 4), "padding_idx": 1, "max_norm": 1.0, "norm_type": 2.0, "scale_grad_by_freq": True}),
        "scaled_dot_product_attention": ([rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 4)], {"attn_mask": rand(3, 5), "scale": 0.5}),
        # activations and others
        "softmax": ([scores], {"dim": 1, "dtype": torch.float64}),
        "log_softmax": ([scores], {"dim": 1, "dtype": torch.float64}),
        "softmin": ([scores], {"dim": 1}),
        "gumbel_softmax": ([scores], {"tau": 0.5, "hard": True, "dim": 1}),
        "glu": ([scores], {"dim": 1}),
        "prelu": ([image], {"weight": rand(4)}),
        "elu": ([scores], {"alpha": 0.5}),
        "celu": ([scores], {"alpha": 0.5}),
        "gelu": ([scores], {"approximate": "tanh"}),
        "leaky_relu": ([scores], {"negative_slope": 0.5}),
        "hardtanh": ([scores], {"min_val": -0.5, "max_val": 0.5}),
        "threshold": ([scores], {"threshold": 0.5, "value": 0.1}),
        "softplus": ([scores], {"beta": 0.5, "threshold": 2.0}),
        "softshrink": ([scores], {"lambd": 0.2}),
        "hardshrink": ([scores], {"lambd": 0.2}),
        "rrelu": ([scores], {"lower": 0.1, "upper": 0.2, "training": False}),
        "dropout": ([scores], {"p": 0.0, "training": True}),
        "dropout1d": ([row], {"p": 0.0, "training": True}),
        "dropout2d": ([image], {"p": 0.0, "training": True}),
        "alpha_dropout": ([row], {"p": 0.0, "training": True}),
        "pad": ([image], {"pad": (1, 1), "mode": "constant", "value": 0.5}),
        "pad that reflects": ([image], {"pad": (1, 1, 2, 2), "mode": "reflect"}),
        "interpolate": ([image], {"size": (3, 3), "mode": "bilinear", "align_corners": True, "antialias": False}),
        "interpolate by factors": ([row], {"scale_factor": 2.0, "mode": "linear", "recompute_scale_factor": True}),
        "grid_sample": ([image, rand(2, 3, 3, 2)], {"mode": "bilinear", "padding_mode": "border", "align_corners": True}),
        "affine_grid": ([rand(2, 2, 3)], {"size": (2, 3, 4, 4), "align_corners": True}),
        "pixel_shuffle": ([image], {"upscale_factor": 2}),
        "pixel_unshuffle": ([image], {"downscale_factor": 2}),
        "channel_shuffle": ([image], {"groups": 2}),
        "one_hot": ([classes], {"num_classes": 5}),
        "pdist": ([scores], {"p": 2.0}),
    }.items()  # fmt: skip


def others(x, name):
    """Other arguments in place of ``x``: a description, and the value."""
    if isinstance(x, torch.Tensor):
        for dtype in ("float64", "bfloat16", "int64", "int32", "uint8", "bool", "complex64"):
            if str(x.dtype) != "torch." + dtype:
                yield dtype, x.to(getattr(torch, dtype))
        yield "one more dimension", x[None].clone()
        yield "one dimension less", x.select(0, 0).clone() if x.dim() else x
        yield "0-d", x.new_ones(())
        yield "of size 1", x.new_ones((1,) * max(x.dim(), 1))
        yield "empty", x.new_ones(0)
        if x.dim():
            yield "no rows", x[:0].clone()
            yield "one row", x[:1].clone()
            yield "no columns", x[..., :0].clone()
            yield "one column", x[..., :1].clone()
            yield "a row more", torch.cat([x, x[:1]])
            yield "a column more", torch.cat([x, x[..., :1]], -1)
            yield "flat", x.reshape(-1).clone()
        if x.dim() > 1:
            yield "transposed", x.transpose(0, 1).clone()
        if not x.is_floating_point():
            yield "out of range", torch.full_like(x, 100)
            yield "negative", torch.full_like(x, -7)
        else:
            yield "above 1", x + 5
            yield "negative", -x
        yield "a list", x.tolist()
    elif isinstance(x, bool):
        yield "2", 2
    elif isinstance(x, (int, float)):
        for value in (-1, 0, 1, 3, 100, -100, 0.5, 1e20, float("nan"), float("inf"), True, [1], (1, 2), (1, 2, 3), ()):
            yield repr(value), value
        yield "a 0-d tensor", torch.tensor(x)
    elif isinstance(x, str):
        for value in ("mean", "none", "max", "nearest", "zeros", "x", "", "Sum", 1, True):
            yield repr(value), value
    elif isinstance(x, tuple):
        for value in (x[:-1], (*x, 1), (0,) * len(x), (-1,) * len(x), (100,) * len(x), (0.5,) * len(x), 2, 0, -1, [*x]):
            yield repr(value), value
        yield "with None", (*x[:-1], None)
        yield "a tensor", torch.tensor(x)
    elif isinstance(x, torch.dtype):
        for value in (torch.int64, torch.bool, torch.complex64, torch.float16):
            yield repr(value), value
    yield "nothing", None
    yield "a string", "a"
    yield "an object", object()


def variants(args, kwargs):
    yield from _variants(args, kwargs)
    for what, a, k in _variants(args, {}):
        yield "without options, " + what, a, k


def _variants(args, kwargs):
    yield "as it is", args, kwargs
    for i, x in enumerate(args):
        yield f"without argument {i}", args[:i] + args[i + 1 :], kwargs
        for what, value in others(x, ""):
            yield f"argument {i}: {what}", [*args[:i], value, *args[i + 1 :]], kwargs
        for j in range(i):
            for what, value in others(x, "") if isinstance(x, torch.Tensor) else ():
                if what in (
                    "float64",
                    "int64",
                    "bool",
                    "one more dimension",
                    "0-d",
                    "of size 1",
                    "no rows",
                    "empty",
                    "no columns",
                ):
                    both = dict(others(args[j], ""))
                    if what in both:
                        yield (
                            f"arguments {j} and {i}: {what}",
                            [both[what] if k == j else value if k == i else a for k, a in enumerate(args)],
                            kwargs,
                        )
    if len(args) > 2:
        for what in (
            "float64",
            "int64",
            "bool",
            "one more dimension",
            "0-d",
            "of size 1",
            "no rows",
            "empty",
            "no columns",
        ):
            every = [dict(others(a, "")) for a in args]
            if all(what in e for e in every):
                yield f"all arguments: {what}", [e[what] for e in every], kwargs
    for name, x in kwargs.items():
        yield f"without {name}", args, {k: v for k, v in kwargs.items() if k != name}
        for what, value in others(x, name):
            yield f"{name}: {what}", args, {**kwargs, name: value}
    yield "an unknown option", args, {**kwargs, "nonsense": 1}


#: Python's messages when PyTorch's own code meets an argument of another kind.
ACCIDENTS = (
    "object has no attribute|unsupported operand type|not supported between|can only concatenate|is not iterable|"
    "tuple index out of range|Dimension specified as|Dimension out of range|iteration over a 0-d|values to unpack"
)


def difference(name, args, kwargs):
    """The fault in taeda's outcome, or None."""
    theirs, ours = getattr(torch.nn.functional, name), getattr(taeda.nn.functional, name)
    our_args, our_kwargs = translate((args, kwargs), {})
    copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, their_error = seeded(
            theirs, *copies, **{k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        )
        got, our_error = seeded(ours, *our_args, **our_kwargs)
    if their_error is None and our_error is None:
        half = any(isinstance(x, torch.Tensor) and x.dtype is torch.bfloat16 for x in [*args, *kwargs.values()])
        try:
            if half and isinstance(want, torch.Tensor) and want.is_floating_point():  # rounded on the way
                got, want = got.bfloat16(), want.bfloat16()
            close(got, want, name)
        except Differs as error:
            return f"values: {str(error)[:150]}"
        return None
    if their_error is None:
        return f"raises {type(our_error).__name__}: {str(our_error)[:150]}"
    if re.search(ACCIDENTS, str(their_error)) and isinstance(
        our_error, (TypeError, ValueError, RuntimeError, IndexError)
    ):
        return None
    if our_error is None and "not implemented for" in str(their_error):
        return None  # a dtype that PyTorch's kernel lacks
    if our_error is None:
        return f"raises nothing, PyTorch {type(their_error).__name__}: {str(their_error)[:150]}"
    if not isinstance(our_error, type(their_error)):
        return f"{type(our_error).__name__} and not {type(their_error).__name__}: {str(our_error)[:110]} || {str(their_error)[:110]}"
    return None


def main() -> None:
    total = wrong = 0
    for name, (args, kwargs) in calls():
        if not re.search(sys.argv[1] if len(sys.argv) > 1 else "", name):
            continue
        for what, a, k in variants(args, kwargs):
            total += 1
            found = difference(name.split()[0], a, k)
            if found:
                wrong += 1
                print(name, "|", what, "|", found.replace("\n", " "), flush=True)
    print(f"{wrong} of {total}")


if __name__ == "__main__":
    main()
