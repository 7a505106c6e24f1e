"""Launches of scaled dot-product attention on tensors ``[batch, heads, positions, numbers]`` of any strides.

Bodies of ops that keep plans: they run when the forms of their arguments are met for the first times, and then no more.
"""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .._core import attention as core
from .._core import tensor as views
from .._core.devices import REGISTERED, current_place
from ..kernels import attention as kernels
from ..kernels import gemm, target
from ._slots import launch_in_slots

PIECE = 1 << 20  # multiplications worth a piece of their own
MARKS = 1 << 18  # bytes of a band's marks of what dropout keeps
FORWARD = (("q", "b h l"), ("k", "b h s"), ("v", "b h s"), ("o", "b h l"), ("m", "b h l"))
BACKWARD = (("g", "b h l"), ("dq", "b h l"), ("dk", "b h s"), ("dv", "b h s"))


def own():
    """An object that launches attention on this thread's device by this module's names; None: this module."""
    contract = REGISTERED[current_place()]
    return None if contract is None else contract.attention


def _along(t: Tensor, dtype) -> Tensor:
    """``t`` in the kernels' dtype, its last dimension along memory."""
    t = t if t.dtype is dtype else t.to(dtype)
    return t if t.stride(3) == 1 or t.shape[3] == 1 else t.contiguous()


def positions_first(dtype, b: int, h: int, n: int, e: int) -> Tensor:
    """A new ``[b, h, n, e]`` whose memory is ``[b, n, h, e]``: heads are joined again without a copy."""
    return views.view_transpose(_core.empty((b, n, h, e), dtype), 1, 2)


def _spread(mask: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """The mask over every score, its last dimension along memory."""
    mask = mask if mask.dtype is _core.bool_ else mask.to(q.dtype)
    s = k.shape[2]
    if mask.dim() == 0 or mask.shape[-1] != s or mask.stride(-1) != 1:
        mask = views.view_expand(mask, (*mask.shape[:-1], s)).contiguous()
    return views.view_expand(mask, (*q.shape[:3], s))


def strides_of(named, tensors) -> dict[str, int]:
    """Byte strides of each tensor by the names of the kernel's arguments; 0 where there is none."""
    found = {}
    for (name, dims), t in zip(named, tensors, strict=True):
        for d, dim in enumerate(dims.split()):
            found[f"{name}_{dim}"] = 0 if t is None else t.stride(d) * t.itemsize
    return found


def _arguments(q, k, v, out, mask, causal, scale, dropout, states, packed) -> dict[str, int | float]:
    """The arguments of both kernels, by name. ``packed`` counts the bytes of packed keys and values in a slot."""
    (_, heads, n, e), s = q.shape, k.shape[2]
    given = {"l": n, "s": s, "e": e, "ev": v.shape[3], "heads": heads, "shared": heads // k.shape[1]}
    given |= {"causal": int(causal), "scale": float(scale), **strides_of(FORWARD, (q, k, v, out, mask))}
    if states is None:
        return given | dict.fromkeys(("position", "chance", "factor", "kept", "pitch"), 0)
    chance = 1.0 - float(dropout)
    given |= {"position": (states.numel() - 1) * 4, "chance": chance, "factor": 1.0 / chance, "kept": packed}
    return given | {"pitch": -(-(s + 16) // 64) * 64}  # marks come in whole registers


def _kind(mask: Tensor | None) -> str:
    return "none" if mask is None else "bool" if mask.dtype is _core.bool_ else "add"


def _launch(address: int, tensors: tuple, args: tuple, slot: int, tasks: int, each: int) -> None:
    """Run tasks of ``each`` multiplications, each thread with ``slot`` bytes of memory if the kernel asks for some."""
    if slot:
        launch_in_slots(address, tensors, args, slot, tasks, each)
    else:
        _core.launch(address, tensors, args, tasks, max(PIECE // max(each, 1), 1))


def _panels(dtype, *depths: int) -> int:
    """Bytes of packed blocks of keys and values that do not lie in the stack."""
    return sum(kernels.panel_bytes(dtype.name, depth, target.here().vector_bytes) for depth in depths)


def attention(query, key, value, mask, causal, scale) -> tuple[Tensor, Tensor]:
    """Attention, and each row's maximum with 1 over its sum of exponentials."""
    there = own()
    if there is not None:
        return there.attention(query, key, value, mask, causal, scale)
    return _forward(query, key, value, mask, causal, scale, 0.0, None)


def attention_dropout(query, key, value, mask, causal, scale, dropout) -> tuple[Tensor, Tensor, Tensor]:
    """The same with weights dropped; with the generator's states from which they can be drawn again."""
    there = own()
    if there is not None:
        return there.attention_dropout(query, key, value, mask, causal, scale, dropout)
    states = core.draw(query, key)
    return *_forward(query, key, value, mask, causal, scale, dropout, states), states


def _forward(query, key, value, mask, causal, scale, dropout, states) -> tuple[Tensor, Tensor]:
    dtype = _core.float64 if query.dtype is _core.float64 else _core.float32
    q, k, v = (_along(t, dtype) for t in (query, key, value))
    (b, h, n, e), s, ev = q.shape, k.shape[2], v.shape[3]
    out, sums = positions_first(dtype, b, h, n, ev), _core.empty((b, h, n, 2), dtype)
    if sums.numel():
        m = None if mask is None else _spread(mask, q, k)
        slot = _panels(dtype, e)
        given = _arguments(q, k, v, out, m, causal, scale, dropout, states, slot)
        address = kernels.attention(dtype.name, _kind(m), states is not None)
        args = tuple(given[name] for name in kernels.ATTENTION_ARGS)
        tensors = (
            out, sums, q, k, v, 0 if m is None else m, gemm.panel_product(dtype.name), 0 if states is None else states,
        )  # fmt: skip
        slot += 0 if states is None else kernels.QUERIES * given["pitch"]
        each = min(n, kernels.QUERIES) * s * (e + ev)
        _launch(address, tensors, args, slot, b * h * -(-n // kernels.QUERIES), each)
    return (out if dtype is query.dtype else out.to(query.dtype)), sums


def beside(q: Tensor, k: Tensor, v: Tensor) -> int:
    """The distance of the three if they fill one storage side by side, like the outputs of one layer; else 0."""
    if q.untyped_storage() is not k.untyped_storage() or q.untyped_storage() is not v.untyped_storage():
        return 0
    distance = k.storage_offset() - q.storage_offset()
    if distance <= 0 or v.storage_offset() - k.storage_offset() != distance:
        return 0
    if not (q.shape == k.shape == v.shape and q.stride() == k.stride() == v.stride()):
        return 0
    expected = 1  # from the innermost dimension out, each begins where the last one ends
    dims = zip((*q.stride(), distance), (*q.shape, 3), strict=True)
    for stride, size in sorted((stride, size) for stride, size in dims if size != 1):
        if stride != expected:
            return 0
        expected *= size
    return distance


def attention_backward(
    grad, query, key, value, mask, output, sums, causal, scale, dropout=0.0, states=None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values.

    Where those are parts of one tensor, their gradients are parts of one in the same places, which a derivative that
    joins them finds done (see ``block_copy.adjoining``).
    """
    there = own()
    if there is not None:
        return there.attention_backward(grad, query, key, value, mask, output, sums, causal, scale, dropout, states)
    dtype = _core.float64 if query.dtype is _core.float64 else _core.float32
    g, q, k, v, o = (_along(t, dtype) for t in (grad, query, key, value, output))
    (b, h, n, e), (kh, s), ev = q.shape, k.shape[1:3], v.shape[3]
    distance = beside(q, k, v) if dtype is query.dtype else 0
    if distance:
        room = _core.empty((3 * q.numel(),), dtype)
        dq, dk, dv = (_core.strided_view(room, q.shape, q.stride(), i * distance) for i in range(3))
    else:
        dq, dk, dv = (positions_first(dtype, *sizes) for sizes in ((b, h, n, e), (b, kh, s, e), (b, kh, s, ev)))
        if causal and s > n:  # keys that no query sees
            dk.zero_()
            dv.zero_()
    if sums.numel() == 0 or kh == 0:
        return tuple(t.zero_().to(query.dtype) for t in (dq, dk, dv))
    m = None if mask is None else _spread(mask, q, k)
    slot = _panels(dtype, e, ev)
    given = _arguments(q, k, v, o, m, causal, scale, dropout, states, slot)
    given |= strides_of(BACKWARD, (g, dq, dk, dv)) | {"band": n, "together": h // kh}
    if states is not None:  # keys are packed once per band, so that its marks stay in the cache
        rows = kernels.QUERIES
        given["band"] = min(max(MARKS // (given["pitch"] * rows), 1) * rows, -(-n // rows) * rows)
        given["together"] = 1
        slot += given["band"] * given["pitch"]
    address = kernels.attention_backward(dtype.name, _kind(m), states is not None)
    args = tuple(given[name] for name in kernels.BACKWARD_ARGS)
    tiles, m, states = gemm.panel_product(dtype.name), 0 if m is None else m, 0 if states is None else states
    tensors = (dq, dk, dv, _core.empty(q.shape[:3], dtype), q, k, v, m, o, g, sums, tiles, states)
    _launch(address, tensors, args, slot, b * kh, n * s * (e + ev) * (h // kh))
    return (dq, dk, dv) if dtype is query.dtype else tuple(t.to(query.dtype) for t in (dq, dk, dv))
