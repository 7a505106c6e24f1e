"""Averages of gradients as they are, or sent in half the bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core import bfloat16, float16
from ...._typed import Tensor
from ....futures import Future
from ...collectives import all_reduce
from ...groups import resolve

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip


def _mean(group: Any, vector: Tensor) -> Future:
    processes = resolve(group)
    assert processes is not None
    work = all_reduce(vector.div_(processes.size()), group=group, async_op=True)
    assert work is not None
    return work.get_future()


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket over the processes, as without a hook."""
    return _mean(process_group, bucket.buffer()).then(lambda done: done.value()[0])


def _compressed(dtype: Any, group: Any, bucket: Any) -> Future:
    buffer = bucket.buffer()
    return _mean(group, buffer.to(dtype)).then(lambda done: buffer.copy_(done.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket, sent as float16."""
    return _compressed(float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket, sent as bfloat16."""
    return _compressed(bfloat16, process_group, bucket)


def _wrapper(hook: Callable, dtype: Any) -> Callable:
    def wrapped(state: Any, bucket: Any) -> Future:
        before = bucket.buffer()
        bucket.set_buffer(before.to(dtype))
        return hook(state, bucket).then(lambda done: before.copy_(done.value()))

    return wrapped


def fp16_compress_wrapper(hook: Callable) -> Callable:
    """``hook`` of a bucket in float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: Callable) -> Callable:
    """``hook`` of a bucket in bfloat16."""
    return _wrapper(hook, bfloat16)
