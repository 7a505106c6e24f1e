"""``print_readable``: the code of a GraphModule with comments about shapes and origins."""

from __future__ import annotations

import re
from typing import Any

from taeda._core import Tensor

from . import _names
from .experimental.symbolic_shapes import _Symbolic
from .node import Node

_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def _annotation(value: Any, stride: bool = False, device: bool = False) -> str:
    """A tensor as a comment shows it: ``"f32[2, 3]"``."""
    sizes = f"[{', '.join(map(str, value.shape))}]"
    strides = f"[{', '.join(map(str, value.stride() if callable(value.stride) else value.stride))}]" if stride else ""
    where = str(value.device) if device and hasattr(value, "device") else ""
    return f"{_SHORT[str(value.dtype).rpartition('.')[2]]}{sizes}{strides}{where}"


def write_comments(
    writer: Any, node: Node, include_stride: bool = False, include_device: bool = False, **_: Any
) -> None:
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


def readable(module: Any, name: str, **options: Any) -> str:
    """The code of a module as a class, GraphModules inside it after it."""
    code = module._graph.python_code("self", verbose=True, **options).src.lstrip("\n")
    code = code.rstrip("\n").rstrip(" ").rstrip("\n")
    inner = [readable(child, label, **options) for label, child in module.named_children() if hasattr(child, "_graph")]
    text = f"class {name}({_names.namespace()}.nn.Module):\n"
    text += "\n".join(f"    {line}" if line.strip() else "" for line in code.split("\n")) + "\n"
    for part in inner:
        text += "\n" + "\n".join(f"    {line}" if line else "" for line in part.split("\n"))
    return text


def shape_of(node: Node) -> str:
    """The comment about a Node's value, or ``""``."""
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if isinstance(value, _Symbolic):
        return f'"Sym({value})"'
    return f'"{_annotation(value)}"' if isinstance(value, Tensor) or hasattr(value, "shape") else ""
