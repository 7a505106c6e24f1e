"""DTensor: a tensor of which each process of a mesh has a part."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import taeda
from taeda._core import strided_view
from taeda.ops.parts import OfParts

from ..._typed import Tensor
from ...ops.registry import op_of
from ..collectives import broadcast
from ..device_mesh import DeviceMesh, current_mesh
from .layout import Layout, check_placements, replicated, without_partial
from .moves import redistribute
from .placement_types import Partial, Placement, Replicate, Shard

#: The function that runs a call with DTensors among its arguments; :mod:`.dispatch` sets it.
RUN: list[Callable] = []

_thread = threading.local()


def mixing() -> bool:
    """Whether plain tensors may meet DTensors on this thread, as what every process has."""
    return getattr(_thread, "mixing", 0) > 0


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Within it, a plain tensor that meets a DTensor counts as replicated."""
    _thread.mixing = getattr(_thread, "mixing", 0) + 1
    try:
        yield
    finally:
        _thread.mixing -= 1


class DTensor(OfParts):
    """A tensor that is cut, replicated or partial on each dimension of a mesh. Its sizes are the whole tensor's.

    Ops run on the parts; ``to_local()`` gives this process's. Make one by :func:`distribute_tensor` or
    :meth:`from_local`.
    """

    _without_memory = "a DTensor (to_local() gives this process's part, full_tensor() the whole)"
    _same_elements = True
    _local: Tensor
    _layout: Layout
    _copied = False  #: the result of a view op that had to gather: writing to it would not write to what it shows

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        return RUN[0](op_of(func), args, kwargs or {})

    # ---- description
    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes."""
        return self._layout.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """One for each dimension of the mesh."""
        return self._layout.placements

    @property
    def _local_tensor(self) -> Tensor:
        """This process's part, by PyTorch's name: programs read it."""
        return self._local

    # ---- the graph, which is the part's
    def _graph_parts(self) -> tuple[Tensor, ...]:
        return (self._local,)

    def _output_parts(self) -> tuple[Tensor, ...]:
        return (redistribute(self._local, self._layout, without_partial(self.placements)),)

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        if tuple(g.shape) != tuple(self.shape):
            raise RuntimeError(f"Mismatch in shape: a gradient of {list(g.shape)} for a DTensor of {list(self.shape)}")
        whole = replicated(self.device_mesh)
        layout = g._layout if isinstance(g, DTensor) else self._layout._replace(placements=whole)
        part = g._local if isinstance(g, DTensor) else g
        return (redistribute(part, layout, without_partial(self.placements)),)

    def _whole_gradient(self, grads: Sequence[Tensor | None]) -> DTensor:
        (g,) = grads
        assert g is not None
        return wrap(g, self._layout._replace(placements=without_partial(self.placements)))

    def _detached(self) -> DTensor:
        return self._with(self._local.detach())

    detach = _detached

    @property
    def data(self) -> Any:
        """The same part, outside the graph."""
        return self._with(self._local.data)

    @data.setter
    def data(self, value: DTensor) -> None:
        if not isinstance(value, DTensor):
            raise RuntimeError(f"data: expected a DTensor, got {type(value).__name__}")
        self._local.data = value._local
        taeda._core.set_data(self, value)
        self._layout = value._layout

    def _with(self, local: Tensor) -> DTensor:
        """The same layout over another part."""
        return wrap(local, self._layout)

    def _empty_like(self, dtype: Any) -> DTensor:
        layout = self._layout._replace(placements=without_partial(self.placements))
        return wrap(taeda.empty_like(self._local, dtype=dtype), layout)

    def _zero(self) -> None:
        self._local.zero_()

    def _new(self, made: Tensor) -> DTensor:
        return wrap(made, Layout(self.device_mesh, replicated(self.device_mesh), tuple(made.shape)))

    def new_empty(self, *args: Any, **kwargs: Any) -> DTensor:
        """As ``Tensor.new_empty``: replicated, as those below are."""
        return self._new(self._local.new_empty(*args, **kwargs))

    def new_zeros(self, *args: Any, **kwargs: Any) -> DTensor:
        """As ``Tensor.new_zeros``."""
        return self._new(self._local.new_zeros(*args, **kwargs))

    def new_ones(self, *args: Any, **kwargs: Any) -> DTensor:
        """As ``Tensor.new_ones``."""
        return self._new(self._local.new_ones(*args, **kwargs))

    def new_full(self, *args: Any, **kwargs: Any) -> DTensor:
        """As ``Tensor.new_full``."""
        return self._new(self._local.new_full(*args, **kwargs))

    def _become(self, new: DTensor) -> DTensor:
        self._local = redistribute(new._local, new._layout, self.placements)
        return self

    def register_hook(self, hook: Callable) -> Any:
        """Call ``hook(gradient)`` with the gradient as a DTensor; its result replaces the gradient."""

        def of_part(g: Tensor | None) -> Tensor | None:
            made = hook(None if g is None else self._whole_gradient([g]))
            return None if made is None else self._part_gradients(made)[0]

        return self._local.register_hook(of_part)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> Any:
        """Call ``hook(self)`` when the gradient of this leaf has been added up."""
        return self._local.register_post_accumulate_grad_hook(lambda part: hook(self))

    def retain_grad(self) -> None:
        """Keep the gradient, though this is no leaf."""
        self._local.retain_grad()

    # ---- from and to parts
    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> DTensor:  # fmt: skip
        """The DTensor of which ``local_tensor`` is this process's part; gradients flow to it.

        Args:
            local_tensor: the part, of the same sizes at each process unless ``shape`` is given.
            device_mesh: the processes; that of the ``with mesh:`` block by default.
            placements: one for each dimension of the mesh, Replicate by default.
            run_check: copy what is replicated from the first process to the others.
            shape: the whole's sizes, where parts differ.
            stride: accepted.
            grad_placements: accepted: gradients come as the placements say.
        Returns:
            The DTensor.
        Raises:
            RuntimeError: ``local_tensor`` is a DTensor.
            ValueError: the part has other sizes than the placements say.
        """
        mesh = device_mesh if device_mesh is not None else current_mesh()
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("DTensor.from_local: expected a plain tensor, got a DTensor")
        places = check_placements(mesh, placements, local_tensor.dim())
        if shape is None:
            sizes = list(local_tensor.shape)
            for j, p in enumerate(places):
                if isinstance(p, Shard):
                    sizes[p.dim] *= mesh.size(j)
            shape = sizes
        layout = Layout(mesh, places, tuple(shape))
        if mesh.get_coordinate() is not None and layout.local_shape() != tuple(local_tensor.shape):
            raise ValueError(
                f"DTensor.from_local: {places} of a tensor of sizes {tuple(shape)} is a part of sizes "
                f"{layout.local_shape()} here, got {tuple(local_tensor.shape)}"
            )
        local = local_tensor.view_as(local_tensor)
        if run_check:
            _copy_from_first(local, mesh, places)
        return wrap(local, layout)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part; gradients flow through it.

        Args:
            grad_placements: how the gradient that comes back lies: ``Partial()`` where each process computes something
                of its own with a replicated tensor. The tensor's placements by default.
        Returns:
            The part.
        """
        if grad_placements is None:
            return self._local.view_as(self._local) if self._local.requires_grad else self._local
        goal = without_partial(self.placements)
        given = check_placements(self.device_mesh, grad_placements, self.dim())
        if given == goal:
            return self.to_local()
        return _WithGradient.apply(self._local, self._layout._replace(placements=given), goal)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """The same tensor with other placements.

        Args:
            device_mesh: another mesh of the same processes, over which the whole is cut anew; the one that it has by
                default.
            placements: one for each dimension of the mesh.
            async_op: accepted; it is done when this returns.
            forward_dtype: not taken.
            backward_dtype: not taken.
        Returns:
            The DTensor.
        Raises:
            NotImplementedError: a mesh of other processes, or another dtype.
            RuntimeError: no placements are given, or ``Partial`` is one.
        """
        if forward_dtype is not None or backward_dtype is not None:
            raise NotImplementedError("redistribute: forward_dtype and backward_dtype are not there; use to(dtype)")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self.device_mesh:
            return self._over(device_mesh, check_placements(device_mesh, placements, self.dim()))
        places = check_placements(self.device_mesh, placements, self.dim())
        for old, new in zip(self.placements, places, strict=True):
            if isinstance(new, Partial) and old != new:
                raise RuntimeError(
                    "Can not redistribute to Partial, redistributing to Partial is for internal use only!"
                )
        return self._as(places)

    def _over(self, mesh: DeviceMesh, places: tuple[Placement, ...]) -> DTensor:
        """On another mesh of the same processes: by way of the whole."""
        if sorted(mesh.mesh.reshape(-1).tolist()) != sorted(self.device_mesh.mesh.reshape(-1).tolist()):
            raise NotImplementedError(
                f"redistribute: Cross device mesh comm not supported yet: {self.device_mesh} and {mesh} are of "
                "different processes; use full_tensor() and distribute it"
            )
        if any(isinstance(p, Partial) for p in places):
            raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
        whole = redistribute(self._local, self._layout, replicated(self.device_mesh))
        return wrap(whole, Layout(mesh, replicated(mesh), self._layout.shape))._as(places)

    def _as(self, places: tuple[Placement, ...]) -> DTensor:
        """With placements that were checked; ``self`` where they are the same."""
        if places == self.placements:
            return self
        return wrap(redistribute(self._local, self._layout, places), self._layout._replace(placements=places))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole, at each process."""
        return self._as(replicated(self.device_mesh)).to_local(grad_placements=grad_placements)

    # ---- values of the whole tensor
    def item(self) -> Any:
        """The value of a tensor of one element."""
        return self.detach().full_tensor().item()

    def tolist(self) -> Any:
        """The values of the whole as lists."""
        return self.detach().full_tensor().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Refused, as a DTensor has no memory of the whole.

        Args:
            force: no difference.
        Returns:
            Nothing.
        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("numpy(): a DTensor has a part at each process; use full_tensor().numpy()")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.detach().full_tensor())

    def __index__(self) -> int:
        return self.detach().full_tensor().__index__()

    def __iter__(self) -> Iterator:
        return iter(self.unbind(0))

    def __repr__(self, **kwargs: Any) -> str:
        return f"DTensor(local_tensor={self._local!r}, device_mesh={self.device_mesh!r}, placements={self.placements})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else repr(self)

    def __deepcopy__(self, memo: dict) -> DTensor:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user support the deepcopy protocol at the moment"
            )
        made = self._with(self._local.detach().clone()).requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            made._is_param = True
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("a DTensor is not pickled; save it by taeda.distributed.checkpoint, or its full_tensor()")


class _WithGradient(taeda.autograd.Function):
    """A part as it is, whose gradient lies as ``layout`` says and is brought to ``places``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layout: Layout, places: tuple) -> Tensor:
        ctx.move = layout, places
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return redistribute(g, *ctx.move), None, None


def wrap(local: Tensor, layout: Layout) -> DTensor:
    """The DTensor of part ``local``."""
    strides, step = [], 1
    for n in reversed(layout.shape):
        strides.append(step)
        step *= max(n, 1)
    shown = strided_view(local.new_empty(1), layout.shape, tuple(reversed(strides)), 0)
    made: Any = Tensor._make_subclass(DTensor, shown)
    made._local, made._layout = local, layout
    return made


def _copy_from_first(local: Tensor, mesh: DeviceMesh, places: Sequence[Placement], src: int = 0) -> None:
    """Copy replicated values from process ``src`` of each line of the mesh."""
    for j, p in enumerate(places):
        if isinstance(p, Replicate) and mesh.size(j) > 1:
            data = local.detach()
            broadcast(data, group=mesh.get_group(j), group_src=src)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> Any:  # fmt: skip
    """A DTensor of the values of ``tensor``, as a leaf. The first process of each line of the mesh provides the values.

    Args:
        tensor: the whole, at each process; of a DTensor nothing is done.
        device_mesh: the processes; that of the ``with mesh:`` block by default.
        placements: one for each dimension of the mesh, Replicate by default.
        src_data_rank: whose values count; None where all processes have the same.
    Returns:
        The DTensor.
    Raises:
        ValueError: ``tensor`` is a DTensor of another mesh or other placements.
        RuntimeError: a placement is ``Partial``, or ``tensor`` is no leaf.
    """
    mesh = device_mesh if device_mesh is not None else current_mesh()
    places = check_placements(mesh, placements, tensor.dim())
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} on {tensor.device_mesh} to {places} "
                f"on {mesh}; use redistribute"
            )
        return tensor
    if any(isinstance(p, Partial) for p in places):
        raise RuntimeError("distribute_tensor: expected Shard or Replicate, got Partial; use DTensor.from_local")
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    with taeda.no_grad():
        whole = tensor.detach()
        if src_data_rank is not None:
            whole = whole.clone()
            _copy_from_first(whole, mesh, replicated(mesh), src_data_rank)
        layout = Layout(mesh, replicated(mesh), tuple(tensor.shape))
        local = redistribute(whole, layout, places)
        if local is whole and src_data_rank is None:
            local = whole.clone()
    made = wrap(local, layout._replace(placements=places))
    if isinstance(tensor, taeda.nn.Parameter):
        return taeda.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)


def distribute_module(
    module: Any, device_mesh: DeviceMesh | None = None, partition_fn: Callable | None = None,
    input_fn: Callable | None = None, output_fn: Callable | None = None,
) -> Any:  # fmt: skip
    """Make the parameters and buffers of ``module`` DTensors, and convert what goes in and comes out.

    Args:
        module: changed in place.
        device_mesh: the processes.
        partition_fn: ``(name, submodule, mesh)`` distributes the parameters of a submodule; what it leaves is
            replicated.
        input_fn: ``(module, inputs, mesh)`` gives the inputs of ``forward``.
        output_fn: ``(module, outputs, mesh)`` gives its result.
    Returns:
        ``module``.
    """
    mesh = device_mesh if device_mesh is not None else current_mesh()
    for name, inner in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, inner, mesh)
        replicate_rest(inner, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


def replicate_rest(module: Any, mesh: DeviceMesh) -> None:
    """Make the module's own parameters and buffers that are plain tensors replicated ones."""
    for name, p in list(module.named_parameters(recurse=False)):
        if not isinstance(p, DTensor):
            module.register_parameter(name, taeda.nn.Parameter(distribute_tensor(p, mesh), p.requires_grad))
    for name, b in list(module.named_buffers(recurse=False)):
        if not isinstance(b, DTensor):
            module._buffers[name] = distribute_tensor(b, mesh)
