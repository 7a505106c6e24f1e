"""Sizes of sliding windows, as convolutions and pooling in ONNX give them."""

from __future__ import annotations

from typing import NamedTuple

import taeda.nn.functional as F

from ..._typed import Tensor


class Windows(NamedTuple):
    """Windows over the last dimensions: sizes, steps and padding for each dimension, and how many there are."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    counts: list[int]

    @classmethod
    def of(
        cls, x: Tensor, kernel: list[int], strides: list[int] | None = None, dilations: list[int] | None = None,
        pads: list[int] | None = None, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    ) -> Windows:  # fmt: skip
        """The windows over ``x``; ``after`` includes the padding that the last window needs in ``ceil_mode``."""
        n = len(kernel)
        if x.ndim != n + 2:
            raise ValueError(f"expected {n + 2} dimensions for a window of {kernel}, got shape {list(x.shape)}")
        strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        before, after, counts = pads[:n], pads[n:], []
        for i, (length, span, step) in enumerate(zip(x.shape[2:], spans, strides, strict=True)):
            if auto_pad.startswith("SAME"):
                missing = max((-(-length // step) - 1) * step + span - length, 0)
                small, large = missing // 2, missing - missing // 2
                before[i], after[i] = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
            room = length + before[i] + after[i] - span
            count = -(-room // step) + 1 if ceil_mode else room // step + 1
            if ceil_mode and (count - 1) * step >= length + before[i]:
                count -= 1  # it would begin in the padding behind
            counts.append(count)
            after[i] = max(after[i], (count - 1) * step + span - length - before[i])
        return cls(kernel, strides, dilations, before, after, counts)

    def symmetric(self) -> bool:
        """Whether padding is the same on both sides."""
        return self.before == self.after

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """``x`` with the padding of the windows."""
        amounts = [n for pair in zip(self.before[::-1], self.after[::-1], strict=True) for n in pair]
        return F.pad(x, amounts, value=value) if any(amounts) else x
