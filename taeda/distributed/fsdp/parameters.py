"""One parameter of which each process keeps a part, and which is whole while its module runs.

The module holds the part, a DTensor, or the whole. The whole is one leaf whose memory comes and goes. The graph saves
that leaf, so that the backward pass reads the gathered values. A whole without memory counts as written to, so a
backward pass that meets one fails instead of reading nothing.
"""

from __future__ import annotations

from typing import Any

from taeda._core import strided_view
from taeda.nn import Module, Parameter

from ..._core import contiguous_format
from ..._typed import Tensor
from ...autograd import no_grad
from ...ops.creation import zeros
from ...ops.joining import cat
from ..device_mesh import DeviceMesh
from ..tensor.dtensor import DTensor, wrap
from ..tensor.layout import Layout, chunk
from ..tensor.placement_types import Placement, Replicate, Shard, _StridedShard


class ShardedParameter:
    """A parameter cut along ``dim`` over the last dimension of ``mesh``, and replicated over its first if there are
    two.

    Args:
        parameter: the whole; a DTensor where tensor parallelism has cut it on another dimension of the same root mesh.
        places: the modules and names that hold it.
        mesh: the data-parallel processes.
        dim: the dimension that is cut.
        dtype: of the gathered whole, the parameter's by default.
    """

    def __init__(
        self, parameter: Any, places: list[tuple[Module, str]], mesh: DeviceMesh, dim: int, dtype: Any
    ) -> None:
        self.places = places
        self.dim = dim
        self.n = mesh.size(mesh.ndim - 1)
        self.place = mesh.ndim - 1  # the mesh dimension that cuts
        self.inner: Layout | None = parameter._layout if isinstance(parameter, DTensor) else None
        whole = (parameter._local if self.inner is not None else parameter).detach()
        self.shape = tuple(whole.shape)
        self.asked = dtype if whole.is_floating_point() else None
        self.trained = parameter.requires_grad
        rank = mesh.get_local_rank(mesh.ndim - 1)
        start, length = chunk(self.shape[dim], self.n, rank)
        part = whole.narrow(dim, start, length).clone(memory_format=contiguous_format)
        layout = _layout(mesh, dim, self.inner, self.shape)
        self.sharded: Any = Parameter(wrap(part, layout), requires_grad=self.trained)
        for name, value in vars(parameter).items() if hasattr(parameter, "__dict__") else ():
            if not name.startswith("_"):
                setattr(self.sharded, name, value)  # attributes that a program has set
        self._make_whole()

    def _make_whole(self) -> None:
        """Make the leaf, and the tensors that the modules hold while it has memory."""
        part = self.sharded._local
        self.device, self.stored_dtype = part.device, part.dtype
        self.dtype = self.asked or part.dtype
        self.leaf = Parameter(_nothing(self.shape, self.dtype, self.device), requires_grad=self.trained)
        self.whole: Any = self.leaf
        if self.inner is not None:
            self.whole = Parameter(wrap(self.leaf.detach(), self.inner))
            self.whole._local = self.leaf
            self.whole.requires_grad_(self.trained)

    def adopt(self) -> None:
        """Take the modules' parameter as the part if it was replaced: by ``to_empty``,
        ``load_state_dict(assign=True)``, ...

        Raises:
            RuntimeError: it is no part of the same sizes.
        """
        module, name = self.places[0]
        held: Any = module._parameters.get(name)
        if held is self.sharded or held is self.whole:
            held = self.sharded
        elif not isinstance(held, DTensor) or held._layout != self.sharded._layout:
            raise RuntimeError(
                f"fully_shard: the parameter {name!r} of {type(module).__name__} was replaced; expected a DTensor of "
                f"sizes {list(self.sharded.shape)} placed as {self.sharded.placements}, got "
                f"{'None' if held is None else f'{type(held).__name__} of sizes {list(held.shape)}'}"
            )
        part = held._local
        if held is not self.sharded or part.device != self.device or part.dtype != self.stored_dtype:
            self.sharded, self.trained = held, held.requires_grad
            self._make_whole()
            self.show(False)
        elif held.requires_grad != self.trained:
            self.trained = held.requires_grad
            self._make_whole()

    def padded(self, n: int) -> int:
        """The number of elements of the longest of ``n`` parts: each process sends as many."""
        sizes = list(self.shape)
        sizes[self.dim] = chunk(sizes[self.dim], n, 0)[1]
        count = 1
        for size in sizes:
            count *= size
        return count

    def to_send(self) -> Tensor:
        """The part as a padded vector, in the dtype of the whole."""
        return _padded(self.sharded._local.detach().to(self.dtype), self.padded(self.n))

    def gather(self, parts: list[Tensor]) -> None:
        """Take the whole from the vectors of all processes."""
        n = len(parts)
        lengths = [chunk(self.shape[self.dim], n, i)[1] for i in range(n)]
        found = []
        for part, length in zip(parts, lengths, strict=True):
            sizes = list(self.shape)
            sizes[self.dim] = length
            count = 1
            for size in sizes:
                count *= size
            found.append(part[:count].reshape(sizes))
        self.leaf.data = cat(found, self.dim)

    def cut(self, whole: Tensor, n: int) -> list[Tensor]:
        """A tensor of the whole's sizes as ``n`` padded vectors."""
        parts = []
        for i in range(n):
            start, length = chunk(self.shape[self.dim], n, i)
            parts.append(_padded(whole.narrow(self.dim, start, length), self.padded(n)))
        return parts

    def add_gradient(self, vector: Tensor) -> None:
        """Add this process's part of the reduced gradient to the parameter's gradient."""
        local = self.sharded._local
        part = vector[: local.numel()].reshape(local.shape).to(self.stored_dtype)
        if local.grad is None:
            local.grad = part.clone()
        else:
            local.grad.add_(part)

    def write_back(self) -> None:
        """Copy the whole's values to the part."""
        rank = self.sharded._layout.mesh.get_coordinate()
        assert rank is not None
        start, length = chunk(self.shape[self.dim], self.n, rank[self.place])
        with no_grad():
            self.sharded._local.copy_(self.leaf.detach().narrow(self.dim, start, length))

    def show(self, whole: bool) -> None:
        """Let the modules hold the whole, or the part."""
        for module, name in self.places:
            module._parameters[name] = self.whole if whole else self.sharded

    def release(self) -> None:
        """Drop the memory of the whole."""
        self.leaf.data = _nothing(self.shape, self.dtype, self.device)
        self.show(False)


def _nothing(shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    one = zeros(1, dtype=dtype, device=device)
    if one.is_floating_point():
        one.fill_(float("nan"))
    one.add_(0)  # a version that nothing which was gathered has
    return strided_view(one, shape, (0,) * len(shape), 0)


def _padded(t: Tensor, count: int) -> Tensor:
    flat = t.reshape(-1)
    return flat if flat.numel() == count else cat([flat, flat.new_zeros(count - flat.numel())])


def _layout(mesh: DeviceMesh, dim: int, inner: Layout | None, shape: tuple[int, ...]) -> Layout:
    """The layout of the part: on the data-parallel mesh, or on that together with the mesh of tensor parallelism."""
    outer: list[Placement] = [Replicate()] * (mesh.ndim - 1)
    if inner is None:
        return Layout(mesh, (*outer, Shard(dim)), shape)
    names = (*(mesh.mesh_dim_names or ()), *(inner.mesh.mesh_dim_names or ()))
    if mesh._root is not inner.mesh._root or len(names) != mesh.ndim + inner.mesh.ndim:
        raise ValueError(
            "fully_shard: a DTensor parameter's mesh and the data-parallel mesh have to be slices, by name, of one "
            f"mesh; got {inner.mesh} and {mesh}"
        )
    factor = 1
    for j, p in enumerate(inner.placements):
        factor *= inner.mesh.size(j) if p.is_shard(dim) else 1
    own = Shard(dim) if factor == 1 else _StridedShard(dim, split_factor=factor)
    return Layout(mesh._root[names], (*outer, own, *inner.placements), inner.shape)
