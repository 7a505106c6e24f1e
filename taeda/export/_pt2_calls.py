"""Calls of PyTorch's native ops as calls of functions here, for the reader of its files.

Most are functions of the same name with the same order of arguments; the rest are in the table ``_ADAPTED``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from taeda import _core
from taeda.fx import Graph, Node
from taeda.nn import lower
from taeda.ops.aten import CDIST_MODES, UPSAMPLES, resized

from . import _control_flow, _functions, _steps
from ._encoding import bad

#: Arguments that say where a result is, which is always the CPU.
_PLACES = ("device", "pin_memory", "layout", "non_blocking")
#: Steps that only check what is always so here.
_CHECKS = ("_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size")


def _function(name: str) -> Any:
    known = _functions.table()
    if "." in name and name in known:
        return known[name]
    for space in ("", "nn.functional.", "Tensor.", "linalg.", "special.", "op."):
        if f"{space}{name}" in known:
            return known[f"{space}{name}"]
    for prefix in ("linalg", "special", "fft"):
        if name.startswith(f"{prefix}_") and f"{prefix}.{name[len(prefix) + 1 :]}" in known:
            return known[f"{prefix}.{name[len(prefix) + 1 :]}"]
    raise bad(f"the op {name!r:.80} of PyTorch is not known here")


def step_of(graph: Graph, target: str, args: list, kwargs: dict, name: str) -> Node | None:
    """The step for a target; None where nothing is to be done."""
    if target.startswith("torch.ops.higher_order."):
        return _higher_order(graph, target.rpartition(".")[2], args, name)
    if target.startswith(("_operator.", "math.")):
        known = _functions.table()
        label = target.replace("_operator.", "operator.").rstrip("_")
        function = known.get(label) or known.get(f"{label}_")
        if function is None:
            raise bad(f"{target!r:.80} is no function that programs may call")
        return graph.call_function(function, tuple(args), name=name)
    if target.startswith("torch._functorch.predispatch."):
        raise bad("the program has steps of vmap, of an associative_scan. Call run_decompositions() before saving it")
    if not target.startswith("torch.ops.aten."):
        raise bad(f"{target!r:.80} is no op that is known here")
    op, _, overload = target[len("torch.ops.aten.") :].partition(".")
    if op in _CHECKS:
        return None
    kwargs = {k: v for k, v in kwargs.items() if k not in _PLACES}
    if op in _ADAPTED:
        made = _ADAPTED[op](args, kwargs, overload)
    elif f"{op}.{overload}" in _ADAPTED:
        made = _ADAPTED[f"{op}.{overload}"](args, kwargs, overload)
    else:
        made = _function(op), args, kwargs
    function, args, kwargs = made
    if _functions.name_of(function).startswith(("step.", "operator.")) is False:
        _functions.check_call(target, function, tuple(args), kwargs)
    return graph.call_function(function, tuple(args), kwargs, name=name)


def _higher_order(graph: Graph, name: str, args: list, label: str) -> Node:
    if name == "wrap_with_set_grad_enabled" and len(args) >= 2:
        mode, inner, *rest = args
        return graph.call_function(_steps.with_grad_enabled, (mode, inner, tuple(rest)), name=label)
    if name == "cond" and len(args) == 4:
        return graph.call_function(_control_flow.cond, (*args[:3], tuple(args[3])), name=label)
    if name == "while_loop" and len(args) == 4:
        return graph.call_function(_control_flow.while_loop, (*args[:2], tuple(args[2]), tuple(args[3])), name=label)
    if name == "map_impl" and len(args) == 3:
        return graph.call_function(_control_flow.map, (args[0], tuple(args[1]), tuple(args[2])), name=label)
    if name == "scan" and len(args) == 4:
        given = args[0], tuple(args[1]), tuple(args[2]), 0, False, tuple(args[3])
        return graph.call_function(_control_flow.scan, given, name=label)
    raise bad(f"the step {name!r:.80} is not known here")


_MOST_DIMS = 64  # of a tensor


def _get(args: list, i: int, default: Any = None) -> Any:
    return args[i] if i < len(args) else default


def _to(name: str, *keep: int) -> Callable:
    """Another function, of the arguments at these places."""
    return lambda a, k, o: (_function(name), [a[i] for i in keep if i < len(a)] if keep else a, k)


def _slice(a: list, k: dict, o: str) -> Any:
    x, dim, start, end, step = a[0], _get(a, 1, 0), _get(a, 2), _get(a, 3), _get(a, 4, 1)
    if not isinstance(dim, int) or not -_MOST_DIMS <= dim < _MOST_DIMS:  # the key has an entry for each one before it
        raise bad(f"a slice is along dimension {dim!r:.80}")
    cut = slice(start, None if end == 2**63 - 1 else end, step)
    index = (*[slice(None)] * dim, cut) if dim >= 0 else (Ellipsis, cut, *[slice(None)] * (-dim - 1))
    return operator.getitem, [x, index], {}


def _indexed(a: list, k: dict, o: str) -> Any:
    return operator.getitem, [a[0], tuple(slice(None) if i is None else i for i in a[1])], {}


def _upsample(name: str) -> Callable:
    return lambda a, k, o: (_function("interpolate"), [a[0]], resized(name, *a[1:], *k.values()))


def _loss(name: str) -> Callable:
    """A loss, whose reduction is a number there."""
    own, parameters = lower.LOSSES[name]
    names, defaults = parameters.split(), lower.loss_defaults(name)

    def adapt(a: list, k: dict, o: str) -> Any:
        given = {n: defaults[n] for n in names if n in defaults} | dict(zip(names, a, strict=False)) | k
        if given["reduction"] not in _REDUCTIONS:
            raise bad(f"{name} has the reduction {given['reduction']!r:.80}")
        operands = [given.pop(n) for n in names[:2]]
        return _function(f"nn.functional.{own}"), operands, {**given, "reduction": _REDUCTIONS[given["reduction"]]}

    return adapt


def _cdist(a: list, k: dict, o: str) -> Any:
    mode = _get(a, 3, k.get("compute_mode"))
    return _function("cdist"), a[:3], {"compute_mode": CDIST_MODES[mode or 0]}


def _elu(a: list, k: dict, o: str) -> Any:
    """With scales, which the function of that name has not."""
    alpha, scale, inner = (*a[1:], *(1.0,) * 3)[:3]
    if scale == inner == 1:
        return _function("nn.functional.elu"), [a[0], alpha], {}
    return _function("op.elu_kernel"), [a[0], float(alpha), float(scale), float(inner)], {}


def _tensordot(a: list, k: dict, o: str) -> Any:
    return _function("tensordot"), a[:2], {"dims": (a[2], a[3])}


def _unpool(a: list, k: dict, o: str) -> Any:
    """Told the sizes of the images, not the windows."""
    return _function("op.max_unpool_to"), a[:3], k


def _padded(mode: str) -> Callable:
    return lambda a, k, o: (_function("pad"), [*a[:2], mode, *([_get(a, 2, 0)] if mode == "constant" else [])], {})


def _cast(a: list, k: dict, o: str) -> Any:
    """``to`` and ``_to_copy``: only the dtype and the memory format matter."""
    if o == "other":
        return _function("to"), a[:2], {}
    given = [x for x in a[1:] if isinstance(x, _core.dtype)]
    dtype = k.get("dtype") or (given[0] if given else None)
    copy = any(x is True for x in a[3:4]) or k.get("copy") is True
    made = {"memory_format": k["memory_format"]} if k.get("memory_format") is not None else {}
    return _function("to"), [a[0], "cpu" if dtype is None else dtype], {**made, **({"copy": True} if copy else {})}


def _reshaped_reduction(name: str) -> Callable:
    """``sum.dim_IntList(x, [], ...)`` and the like: no dimensions mean all."""

    def adapt(a: list, k: dict, o: str) -> Any:
        if o in ("dim", "dim_IntList", "correction", "correction_names") and len(a) > 1 and a[1] in ([], None):
            a = [a[0], None, *a[2:]]
        return _function(name), a, k

    return adapt


def _batch_norm_inference(a: list, k: dict, o: str) -> Any:
    x, w, b, mean, var, momentum, eps = a[:7]
    return _function("native_batch_norm"), [x, w, b, mean, var, False, momentum, eps], {}


def _bags(a: list, k: dict, o: str) -> Any:
    """Where no row is padding, PyTorch's library has -1."""
    return _function("embedding_bag"), a[:8], {"padding_idx": None if _get(a, 8, -1) == -1 else a[8]}


#: The arguments of ``stft`` after the window, in the library's order.
_STFT = ("normalized", "onesided", "return_complex", "align_to_window")
#: Of transforms, forward and back, the scales that the library has numbers for: 1, ``1 / sqrt(n)`` and ``1 / n``.
_NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}

_ADAPTED: dict[str, Callable] = {
    "slice": _slice,
    "index": _indexed,
    "index_put": lambda a, k, o: (_function("index_put"), [a[0], tuple(a[1]), *a[2:]], k),
    "index_put_": lambda a, k, o: (_function("index_put_"), [a[0], tuple(a[1]), *a[2:]], k),
    "lift_fresh_copy": _to("clone", 0), "lift_fresh": _to("clone", 0),  # of a constant, which may be written to
    "lift": _to("view_as", 0, 0), "alias": _to("view_as", 0, 0), "_unsafe_index": _indexed,
    "_conj": _to("conj"), "_conj_physical": _to("conj_physical"), "matrix_H": _to("adjoint"), "mH": _to("adjoint"),
    "mT": lambda a, k, o: (_function("transpose"), [a[0], -2, -1], {}), "log_sigmoid": _to("logsigmoid"),
    "elu": _elu, "linalg_matrix_power": _to("matrix_power"), "cdist": _cdist,
    "tensordot": _tensordot, "max_unpool2d": _unpool, "max_unpool3d": _unpool,
    "block_diag": lambda a, k, o: (_function("block_diag"), list(a[0]), {}),
    "_unique2": lambda a, k, o: (_function("unique"), [a[0], _get(a, 1, True), True, True], {}),
    "unique_consecutive": lambda a, k, o: (_function("unique_consecutive"), [a[0], True, True, *a[3:4]], {}),
    "detach_": _to("detach_", 0), "numpy_T": _to("t", 0), "sym_numel": _to("numel", 0),
    "to": _cast,
    "_to_copy": _cast,
    "sym_size": lambda a, k, o: (_steps.sym_size, a, {}),
    "_assert_async": lambda a, k, o: (_steps.assert_scalar, [a[0], _get(a, 1, "an assertion of the program")], {}),
    "_assert_scalar": lambda a, k, o: (_steps.assert_scalar, a, {}),
    **{name: _upsample(name) for name in UPSAMPLES},
    **{name: _loss(name) for name in lower.LOSSES},
    "_native_batch_norm_legit_no_training": _batch_norm_inference,
    "_native_batch_norm_legit_functional": lambda a, k, o: (_steps.batch_norm_functional, a, {}),
    "view.default": _to("reshape"),  # strides may be others here
    "_unsafe_view": _to("reshape"),
    "einsum": lambda a, k, o: (_function("einsum"), [a[0], *a[1]], {}),
    **{name: _reshaped_reduction(name) for name in ("sum", "mean", "var", "std")},
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    "constant_pad_nd": _padded("constant"),
    "item": lambda a, k, o: (_steps.item, a, {}),
    "_local_scalar_dense": lambda a, k, o: (_steps.item, a, {}),
    "stft.default": lambda a, k, o: (
        _function("stft"), a[:5], {"center": False, **dict(zip(_STFT, a[5:], strict=False)), **k}
    ),
    **{f"adaptive_max_pool{n}d": _to(f"adaptive_max_pool{n}d_with_indices") for n in (1, 2, 3)},
    "_embedding_bag": _bags, "_embedding_bag_forward_only": _bags,
    "_fft_c2c": lambda a, k, o: (
        _function("fft.fftn" if a[3] else "fft.ifftn"), [a[0]], {"dim": a[1], "norm": _NORMS[a[3]][a[2]]}
    ),
    "_fft_r2c": lambda a, k, o: (
        _function("fft.rfftn" if a[3] else "fft.fftn"), [a[0]], {"dim": a[1], "norm": _NORMS[True][a[2]]}
    ),
    "_fft_c2r": lambda a, k, o: (
        _function("fft.irfftn"), [a[0]],
        {"s": [-1] * (len(a[1]) - 1) + [a[3]], "dim": a[1], "norm": _NORMS[False][a[2]]},
    ),
    "im2col": _to("nn.functional.unfold"), "unfold": _to("Tensor.unfold"), "col2im": _to("fold"),
    **{f"_adaptive_avg_pool{n}d": _to(f"adaptive_avg_pool{n}d") for n in (2, 3)}, "relu6": _to("nn.functional.relu6"),
    "hardtanh": _to("nn.functional.hardtanh"), "__and__": _to("bitwise_and"), "__or__": _to("bitwise_or"),
    "__xor__": _to("bitwise_xor"),
}  # fmt: skip
