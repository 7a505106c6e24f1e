"""Styles: how a module's parameters are cut, and how its inputs and outputs lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from taeda.nn import Embedding, Linear, Module, Parameter

from ...._typed import Tensor
from ...device_mesh import DeviceMesh
from ..dtensor import DTensor, distribute_tensor, replicate_rest
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip


class ParallelStyle(ABC):
    """The way in which :func:`parallelize_module` changes a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Change ``module``, and give it."""


def _lay(x: Any, mesh: DeviceMesh, now: Placement | None, wanted: Placement | None) -> Any:
    """``x``, a part that lies as ``now`` if it is plain, as a DTensor that lies as ``wanted``."""
    if not isinstance(x, Tensor):
        return x
    if not isinstance(x, DTensor):
        if now is None:
            return x
        x = DTensor.from_local(x, mesh, (now,))
    return x if wanted is None else x.redistribute(placements=(wanted,))


def _local(x: Any) -> Any:
    return x.to_local() if isinstance(x, DTensor) else x


def _distribute(module: Module, mesh: DeviceMesh, placements: dict[str, Placement], src: int | None) -> None:
    for name, p in list(module.named_parameters(recurse=False)):
        if not isinstance(p, DTensor):
            made = distribute_tensor(p, mesh, (placements.get(name, Replicate()),), src_data_rank=src)
            module.register_parameter(name, Parameter(made, p.requires_grad))
    replicate_rest(module, mesh)


class _Layer(ParallelStyle):
    """A layer whose weight is cut, with one input and one output."""

    def __init__(self, input_layout: Placement, output_layout: Placement, use_local_output: bool) -> None:
        self.input_layouts = (input_layout,)
        self.output_layouts = (output_layout,)
        self.use_local_output = use_local_output

    def _wanted(self, module: Module) -> Placement:
        """The placements that the input must have."""
        raise NotImplementedError

    def _placements(self, module: Module) -> dict[str, Placement]:
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        _distribute(module, device_mesh, self._placements(module), self.src_data_rank)
        wanted = self._wanted(module)

        def before(mod: Module, inputs: tuple) -> tuple:
            return (_lay(inputs[0], device_mesh, self.input_layouts[0], wanted), *inputs[1:])

        def after(mod: Module, inputs: tuple, output: Any) -> Any:
            output = _lay(output, device_mesh, None, self.output_layouts[0])
            return _local(output) if self.use_local_output else output

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module


class ColwiseParallel(_Layer):
    """A Linear whose outputs, or an Embedding whose columns, are cut.

    Args:
        input_layouts: how the input lies: Replicate by default.
        output_layouts: how the output shall lie: cut along the last dimension by default.
        use_local_output: give this process's part of the output, no DTensor.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def _wanted(self, module: Module) -> Placement:
        return Replicate()

    def _placements(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        if isinstance(module, Embedding):
            return {"weight": Shard(1)}
        raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")


class RowwiseParallel(_Layer):
    """A Linear whose inputs, or an Embedding whose rows, are cut: the output is a sum over processes.

    Args:
        input_layouts: how the input lies: cut along the last dimension by default.
        output_layouts: how the output shall lie: Replicate by default.
        use_local_output: give this process's part of the output, no DTensor.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _wanted(self, module: Module) -> Placement:
        return Shard(-1) if isinstance(module, Linear) else Replicate()

    def _placements(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(1), "bias": Replicate()}
        if isinstance(module, Embedding):
            return {"weight": Shard(0)}
        raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")


class SequenceParallel(_Layer):
    """A layer with replicated parameters (a norm, dropout) on inputs that are cut along the sequence.

    Args:
        sequence_dim: the dimension that is cut.
        use_local_output: give this process's part of the output, no DTensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__(Shard(sequence_dim), Shard(sequence_dim), use_local_output)

    def _wanted(self, module: Module) -> Placement:
        return self.input_layouts[0]

    def _placements(self, module: Module) -> dict[str, Placement]:
        return {}


def _several(layouts: Any) -> tuple:
    return tuple(layouts) if isinstance(layouts, (tuple, list)) else (layouts,)


class PrepareModuleInput(ParallelStyle):
    """Converts the inputs of a module.

    Args:
        input_layouts: how each positional argument lies; None for one that is left as it is.
        desired_input_layouts: how it shall lie.
        input_kwarg_layouts: how arguments by name lie.
        desired_input_kwarg_layouts: how they shall lie.
        use_local_output: give parts, no DTensors.
    Raises:
        AssertionError: there are not as many of both.
    """

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ) -> None:  # fmt: skip
        self.input_layouts = () if input_layouts is None else _several(input_layouts)
        self.desired_input_layouts = () if desired_input_layouts is None else _several(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        assert len(self.input_layouts) == len(self.desired_input_layouts), (
            "input_layouts and desired_input_layouts should have same length!"
        )
        assert len(self.input_kwarg_layouts) == len(self.desired_input_kwarg_layouts), (
            "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def one(x: Any, now: Placement | None, wanted: Placement | None) -> Any:
            if now is None:
                return x
            made = _lay(x, device_mesh, now, wanted)
            return _local(made) if self.use_local_output else made

        def before(mod: Module, inputs: tuple, kwargs: dict) -> tuple[tuple, dict]:
            if self.input_layouts:
                if len(inputs) != len(self.input_layouts):
                    raise ValueError(
                        f"module inputs and input_layouts should have same length! Got {len(inputs)} inputs and "
                        f"{len(self.input_layouts)} layouts"
                    )
                inputs = tuple(map(one, inputs, self.input_layouts, self.desired_input_layouts))
            kwargs = {
                name: one(x, self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts.get(name))
                for name, x in kwargs.items()
            }
            return inputs, kwargs

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Converts the outputs of a module.

    Args:
        output_layouts: how each output lies.
        desired_output_layouts: how it shall lie.
        use_local_output: give parts, no DTensors.
    """

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _several(output_layouts), _several(desired_output_layouts)
        self.use_local_output = use_local_output
        assert len(self.output_layouts) == len(self.desired_output_layouts), (
            "output_layouts and desired_output_layouts should have same length!"
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def after(mod: Module, inputs: tuple, outputs: Any) -> Any:
            given = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(given) != len(self.output_layouts):
                raise ValueError(
                    f"module outputs and output_layouts should have same length! Got {len(given)} outputs and "
                    f"{len(self.output_layouts)} layouts"
                )
            made = tuple(
                _lay(x, device_mesh, now, wanted)
                for x, now, wanted in zip(given, self.output_layouts, self.desired_output_layouts, strict=True)
            )
            made = tuple(map(_local, made)) if self.use_local_output else made
            return made if isinstance(outputs, tuple) else made[0]

        module.register_forward_hook(after)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """:class:`PrepareModuleInput` and :class:`PrepareModuleOutput` together."""

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
        output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        return self.output._apply(self.input._apply(module, device_mesh), device_mesh)
