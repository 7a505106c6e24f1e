"""How scaled dot-product attention is launched on a GPU: the functions of ``ops/_attention.py``, with the same results
and saved values. Kernels convert 16-bit numbers as they read and write them."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .._core import tensor as views
from .._core.attention import draw
from ..ops._attention import BACKWARD, FORWARD, beside, positions_first, strides_of
from . import _attention_kernels as kernels

WORK = 1 << 14  # units of a launch: a device has no pieces
OPERANDS = (*FORWARD[:4], ("m", "b h l s"))


def covers(query: Tensor, value: Tensor) -> bool:
    """Whether the kernels have room for a row of a head."""
    if not query.dim() or not value.dim() or query.dtype.name not in ("float32", "float64", "float16", "bfloat16"):
        return False
    depth = kernels.rounded(max(query.shape[-1], value.shape[-1]))
    return kernels.rows_of(query.dtype.name, depth, 2, 2) > 0


def _along(t: Tensor) -> Tensor:
    """``t`` with its last dimension along memory."""
    return t if t.stride(3) == 1 or t.shape[3] == 1 else t.contiguous()


def _spread(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """The mask over every score."""
    return None if mask is None else views.view_expand(mask, (*q.shape[:3], k.shape[2]))


def _numbers(q, k, v, out, mask, causal, scale, dropout) -> dict[str, int | float]:
    (_, heads, n, e), s, chance = q.shape, k.shape[2], 1.0 - float(dropout)
    given = {"l": n, "s": s, "e": e, "ev": v.shape[3], "heads": heads, "shared": heads // k.shape[1]}
    given |= {"causal": int(causal), "scale": float(scale), "chance": chance, "factor": 1.0 / chance}
    return given | strides_of(OPERANDS, (q, k, v, out, mask))


def _key(q: Tensor, v: Tensor, mask: Tensor | None, dropped: bool) -> tuple[str, str, bool, int]:
    kind = "none" if mask is None else mask.dtype.name
    return q.dtype.name, kind, dropped, kernels.rounded(max(q.shape[3], v.shape[3]))


def _working(q: Tensor):
    return _core.float64 if q.dtype is _core.float64 else _core.float32


def attention(query, key, value, mask, causal, scale) -> tuple[Tensor, Tensor]:
    """Attention, and each row's maximum with 1 over its sum of exponentials."""
    return _forward(query, key, value, mask, causal, scale, 0.0, None)


def attention_dropout(query, key, value, mask, causal, scale, dropout) -> tuple[Tensor, Tensor, Tensor]:
    """The same with weights dropped; with the seed and the number of the call that drew."""
    states = draw(query, key)
    return *_forward(query, key, value, mask, causal, scale, dropout, states), states


def _forward(query, key, value, mask, causal, scale, dropout, states) -> tuple[Tensor, Tensor]:
    q, k, v = (_along(t) for t in (query, key, value))
    b, h, n, _ = q.shape
    out, sums = positions_first(q.dtype, b, h, n, v.shape[3]), _core.empty((b, h, n, 2), _working(q))
    if sums.numel():
        m = _spread(mask, q, k)
        shape = _key(q, v, m, states is not None)
        given = _numbers(q, k, v, out, m, causal, scale, dropout)
        args = tuple(given[name] for name in kernels.ARGS)
        tensors = (out, sums, q, k, v, 0 if m is None else m, 0 if states is None else states)
        blocks = b * h * -(-n // kernels.rows_of(shape[0], shape[3], 1, 1))
        _core.launch(kernels.forward(*shape), tensors, args, blocks, WORK)
    return out, sums


def attention_backward(
    grad, query, key, value, mask, output, sums, causal, scale, dropout=0.0, states=None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values; of parts of one tensor they are parts of one, as on the CPU."""
    g, q, k, v, o = (_along(t) for t in (grad, query, key, value, output))
    (b, h, n, e), (kh, s), ev = q.shape, k.shape[1:3], v.shape[3]
    distance = beside(q, k, v)
    if distance:
        room = _core.empty((3 * q.numel(),), q.dtype)
        dq, dk, dv = (_core.strided_view(room, q.shape, q.stride(), i * distance) for i in range(3))
    else:
        dq, dk, dv = (positions_first(q.dtype, *sizes) for sizes in ((b, h, n, e), (b, kh, s, e), (b, kh, s, ev)))
    if sums.numel() == 0 or kh == 0:
        return dq.zero_(), dk.zero_(), dv.zero_()
    m = _spread(mask, q, k)
    shape = _key(q, v, m, states is not None)
    given = _numbers(q, k, v, o, m, causal, scale, dropout) | strides_of(BACKWARD, (g, dq, dk, dv))
    args = tuple(given[name] for name in kernels.BACKWARD_ARGS)
    means = _core.empty(q.shape[:3], _working(q))
    tensors = (dq, dk, dv, means, q, k, v, 0 if m is None else m, o, g, sums, 0 if states is None else states)
    for kernel, heads, positions, results in (
        (kernels.query_gradient, h, n, 1), (kernels.key_gradients, kh, s, 2),
    ):  # fmt: skip
        rows = kernels.rows_of(shape[0], shape[3], 2, results)
        _core.launch(kernel(*shape), tensors, args, b * heads * -(-positions // rows), WORK)
    return dq, dk, dv
