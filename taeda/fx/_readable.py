"""``print_readable``: the code of a GraphModule with comments about shapes and origins."""

from __future__ import annotations

import re
from typing import Any

from taeda._core import Tensor

from .experimental.symbolic_shapes import _Symbolic
from .node import Node

_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def annotation(node: Node, stride: bool = False, device: bool = False) -> str:
    """The known properties of a Node's value as an annotation: ``: "f32[2, 3]"``, or ``""``.

    Args:
        stride: with its strides, if the value itself is known.
        device: with its device, if the value itself is known.
    """
    value: Any = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
    if isinstance(value, _Symbolic):
        return f': "Sym({value})"'
    if not hasattr(value, "shape"):
        return ""
    text = f"{_SHORT[str(value.dtype).rpartition('.')[2]]}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, Tensor):
        text += (str(list(value.stride())) if stride else "") + (str(value.device) if device else "")
    return f': "{text}"'


def write_comments(writer: Any, node: Node) -> None:
    """Append the comment in front of a Node's line: where it comes from."""
    if node.op == "placeholder":
        return
    trace = node.stack_trace
    if trace is None:
        if writer.stack != "none" and node.op != "output":
            writer.stack = "none"
            writer.body.append("\n# No stacktrace found for following nodes\n")
        return
    found = re.findall(r'File "(.+?)", line (\d+), in (.+?)\n\s*(.*)', trace)
    if not found or writer.stack == trace:
        return
    writer.stack = trace
    file, line, name, code = found[-1]
    writer.body.append(f"\n# File: {file}:{line} in {name}, code: {code}\n")
