"""Kinds of inputs and outputs of an exported graph: parameters, buffers, constants, arguments, results, writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

__all__ = [
    "ArgumentSpec", "ConstantArgument", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec",
    "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor: the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A size: the name of its node."""

    name: str


@dataclass
class SymFloatArgument:
    """A float that the program finds: the name of its node."""

    name: str


@dataclass
class SymBoolArgument:
    """A condition that the program finds: the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A value that is part of the program. ``name`` is the placeholder's name, or empty."""

    name: str
    value: Any


ArgumentSpec = TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument | ConstantArgument


class InputKind(Enum):
    """The kind of an input."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """The kind of an output."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """An input. ``target`` is the path of a parameter, buffer or constant; only buffers have ``persistent``."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """An output. ``target`` is the path of the buffer, or the name of the input, that it is written back to."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a program's graph, in order, and what each is.

    Args:
        input_specs: parameters, buffers, constants and arguments.
        output_specs: results, and values that are written back to buffers and arguments.

    Examples:
        >>> program = taeda.export.export(nn.Linear(3, 2), (taeda.randn(4, 3),))
        >>> program.graph_signature.parameters, program.graph_signature.user_inputs
        (('weight', 'bias'), ('input',))
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(str(s.target) for s in self.input_specs if s.kind == kind)

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: str(s.target) for s in self.input_specs if s.kind == kind}

    def _writes(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: str(s.target) for s in self.output_specs if s.kind == kind}

    #: A program is recorded before differentiation, and has no tokens of effects.
    backward_signature = None
    assertion_dep_token = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The paths of parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The paths of buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The paths of buffers that are not in the state dict."""
        found = (s for s in self.input_specs if s.kind == InputKind.BUFFER and s.persistent is False)
        return tuple(str(s.target) for s in found)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of constants."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of inputs that are arguments; the values of those that are fixed."""
        found = (s.arg for s in self.input_specs if s.kind == InputKind.USER_INPUT)
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in found)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of outputs that are results; the values of those that are fixed."""
        found = (s.arg for s in self.output_specs if s.kind == OutputKind.USER_OUTPUT)
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in found)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """From names of inputs to paths of parameters."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """From names of inputs to paths of buffers."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """From names of inputs to names of constants."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """From names of outputs to paths of the buffers that they are written to."""
        return self._writes(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """From names of outputs to paths of the parameters that they are written to."""
        return self._writes(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """From names of outputs to names of the inputs that they are written to."""
        return self._writes(OutputKind.USER_INPUT_MUTATION)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Call the node ``old`` ``new``."""
        specs: list[Any] = [*self.input_specs, *self.output_specs]
        for spec in specs:
            if getattr(spec.arg, "name", None) == old:
                spec.arg.name = new

    def __str__(self) -> str:
        inputs, outputs = ("\n".join(map(str, specs)) for specs in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
