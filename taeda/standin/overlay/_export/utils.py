"""``torch._export.utils``: questions about the inputs of exported programs."""

from __future__ import annotations

from typing import Any

__all__ = [
    "get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant", "is_param",
]  # fmt: skip


def is_param(program: Any, node: Any) -> bool:
    """Whether a Node is a parameter."""
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program: Any, node: Any) -> Any:
    """The parameter that a Node is, or None."""
    return (
        program.state_dict[program.graph_signature.inputs_to_parameters[node.name]] if is_param(program, node) else None
    )


def is_buffer(program: Any, node: Any) -> bool:
    """Whether a Node is a buffer."""
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program: Any, node: Any) -> Any:
    """The buffer that a Node is, or None."""
    return program._state(program.graph_signature.inputs_to_buffers[node.name]) if is_buffer(program, node) else None


def is_lifted_tensor_constant(program: Any, node: Any) -> bool:
    """Whether a Node is a constant."""
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program: Any, node: Any) -> Any:
    """The constant that a Node is, or None."""
    names = program.graph_signature.inputs_to_lifted_tensor_constants
    return program.constants[names[node.name]] if node.name in names else None
