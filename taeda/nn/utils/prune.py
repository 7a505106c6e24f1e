"""Pruning: parameters multiplied by masks of zeros and ones."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ..._core import contiguous_format
from ..._typed import Tensor
from ...autograd import no_grad
from ...ops.creation import ones_like, zeros_like
from ...ops.random import rand, rand_like
from ...ops.reduction import norm
from ...ops.sorting import kthvalue, topk
from ..modules.module import Module
from .convert_parameters import parameters_to_vector
from .weight_norm import undo_hook

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A way to prune: a hook before ``forward`` that sets a tensor to ``<name>_orig * <name>_mask``.

    A subclass sets ``PRUNING_TYPE`` to ``"unstructured"``, ``"structured"`` or ``"global"`` and defines
    ``compute_mask``.

    Examples:
        >>> class EverySecond(nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...
        ...     def compute_mask(self, t, default_mask):
        ...         mask = default_mask.clone()
        ...         mask.view(-1)[::2] = 0
        ...         return mask
        >>> layer = nn.Linear(4, 1)
        >>> _ = EverySecond.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[0., 1., 0., 1.]])
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str = ""

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for ``t`` on top of ``default_mask``."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned tensor."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def _method(cls, module: Module, name: str, *args: Any, **kwargs: Any) -> BasePruningMethod:
        """The new method, joined with an existing one."""
        old = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(old) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        for key, _ in old:
            del module._forward_pre_hooks[key]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if not old:
            return method
        before = old[0][1]
        container = before if isinstance(before, PruningContainer) else PruningContainer(before)
        container.add_pruning_method(method)
        return container

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any):
        """Prune ``name`` of ``module``, by the size of ``importance_scores`` or of the tensor itself."""
        method = cls._method(module, name, *args, **kwargs)
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        fresh = not isinstance(method, PruningContainer)
        if fresh:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            with no_grad():
                mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if fresh:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """``t`` times its mask, outside any module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = default_mask if default_mask is not None else ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruning permanent."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.detach()
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor: each new one prunes what the others have left.

    Args:
        *args: the methods, all for one tensor.

    Raises:
        TypeError: one is no :class:`BasePruningMethod`.
        ValueError: a method is for another tensor.

    Examples:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 5), "weight", amount=0.5)
        >>> layer = nn.utils.prune.l1_unstructured(layer, "weight", amount=0.5)  # half of what is left
        >>> int(layer.weight_mask.sum())
        5
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add one for the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        n = t.dim()
        kept: Any
        if method.PRUNING_TYPE == "unstructured":
            kept = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim + n if method.dim < 0 else method.dim  # type: ignore[attr-defined]
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {n}")
            channels = default_mask.sum(dim=[d for d in range(n) if d != dim]) != 0
            kept = tuple(channels if d == dim else slice(None) for d in range(n))
        elif method.PRUNING_TYPE == "global":
            kept = (slice(None),) * n
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype).clone()
        mask[kept] = method.compute_mask(t[kept], default_mask=default_mask[kept]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but sets up the mask: :func:`identity` as a class.

    Examples:
        >>> nn.utils.prune.Identity().prune(taeda.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Amount(BasePruningMethod):
    """Methods with an amount: a number of elements, or a fraction."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        return n

    def _without_smallest(self, scores: Tensor, mask: Tensor) -> Tensor:
        """``mask`` without the elements of the smallest scores."""
        n, mask = self._count(scores.numel()), mask.clone(memory_format=contiguous_format)
        if n != 0:
            mask.view(-1)[topk(scores.reshape(-1), k=n, largest=False).indices] = 0
        return mask


class RandomUnstructured(_Amount):
    """Prunes random elements: :func:`random_unstructured` as a class.

    Args:
        amount: how many, or which part of them, between 0 and 1.

    Raises:
        ValueError: the amount is negative, or a float above 1.

    Examples:
        >>> pruned = nn.utils.prune.RandomUnstructured(0.25).prune(taeda.ones(8))
        >>> int((pruned == 0).sum())
        2
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return self._without_smallest(rand_like(t).neg_(), default_mask)


class L1Unstructured(_Amount):
    """Prunes the elements of smallest absolute value: :func:`l1_unstructured` as a class.

    Args:
        amount: how many, or which part of them, between 0 and 1.

    Raises:
        ValueError: the amount is negative, or a float above 1.

    Examples:
        >>> nn.utils.prune.L1Unstructured(2).prune(taeda.tensor([0.5, -3.0, 0.1, 2.0]))
        tensor([ 0., -3.,  0.,  2.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return self._without_smallest(t.abs(), default_mask)


class _Structured(_Amount):
    """Methods that prune whole slices of ``dim``; a subclass says in ``_kept(t, n)`` which stay where ``n`` go."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        n = self._count(t.shape[self.dim])
        return default_mask if n == 0 else _slices(t, self.dim, self._kept(t, n)) * default_mask.to(dtype=t.dtype)

    def _kept(self, t: Tensor, n: int) -> Tensor:
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes random slices: :func:`random_structured` as a class.

    Args:
        amount: how many slices, or which part of them, between 0 and 1.
        dim: the dimension of the slices.

    Raises:
        ValueError: the amount is negative, or a float above 1.

    Examples:
        >>> pruned = nn.utils.prune.RandomStructured(1, dim=0).prune(taeda.ones(3, 4))
        >>> int((pruned == 0).all(1).sum())
        1
    """

    def _kept(self, t: Tensor, n: int) -> Tensor:
        draws = rand(t.shape[self.dim])
        return draws > kthvalue(draws, k=n).values


class LnStructured(_Structured):
    """Prunes the slices of smallest norm: :func:`ln_structured` as a class.

    Args:
        amount: how many slices, or which part of them, between 0 and 1.
        n: of the norm.
        dim: the dimension of the slices.

    Raises:
        ValueError: the amount is negative, or a float above 1.

    Examples:
        >>> nn.utils.prune.LnStructured(1, n=2, dim=0).prune(taeda.tensor([[3.0, 4.0], [1.0, 1.0]]))
        tensor([[3., 4.],
                [0., 0.]])
    """

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, n: int) -> Tensor:
        dim = self.dim % t.dim()
        norms = norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != dim])
        return topk(norms, k=t.shape[dim] - n, largest=True).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask: :func:`custom_from_mask` as a class.

    Args:
        mask: of the shape of the tensor: 0 for what goes.

    Examples:
        >>> nn.utils.prune.CustomFromMask(taeda.tensor([1, 0, 1])).prune(taeda.tensor([5.0, 6.0, 7.0]))
        tensor([5., 0., 7.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def _slices(t: Tensor, dim: int, kept: Tensor) -> Tensor:
    """A mask in the shape of ``t`` with ones where ``kept`` picks slices of ``dim``."""
    mask = zeros_like(t)
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = kept
    mask[tuple(index)] = 1
    return mask


def identity(module: Module, name: str) -> Module:
    """Set up a mask of ones for a parameter, as for masks that come later.

    ``<name>_orig`` becomes the parameter, ``<name>_mask`` a buffer, and ``<name>`` their product before each call.

    Args:
        module: the module, which is changed.
        name: of the parameter. Any shape, floating-point.

    Returns:
        ``module``.

    Examples:
        >>> layer = nn.utils.prune.identity(nn.Linear(2, 3), "bias")
        >>> layer.bias_mask
        tensor([1., 1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of a parameter: they become 0 and stay 0.

    Args:
        module: the module, which is changed.
        name: of the parameter. Any shape, floating-point.
        amount: how many, or which part of them, between 0 and 1.

    Returns:
        ``module``.

    Raises:
        ValueError: the amount is out of range.

    Examples:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 5), "weight", amount=0.5)
        >>> int((layer.weight == 0).sum())
        10
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter that have the smallest absolute value.

    Args:
        module: the module, which is changed.
        name: of the parameter. Any shape, floating-point.
        amount: how many, or which part of them, between 0 and 1.
        importance_scores: of the shape of the parameter: judge by these in its place.

    Returns:
        ``module``.

    Raises:
        ValueError: the amount is out of range.

    Examples:
        >>> layer = nn.Linear(4, 1)
        >>> layer.weight.data = taeda.tensor([[0.5, -3.0, 0.1, 2.0]])
        >>> nn.utils.prune.l1_unstructured(layer, "weight", amount=2).weight.detach()
        tensor([[ 0., -3.,  0.,  2.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random slices of a parameter, such as whole outputs.

    Args:
        module: the module, which is changed.
        name: of the parameter: at least two dimensions, floating-point.
        amount: how many slices, or which part of them, between 0 and 1.
        dim: the dimension of the slices.

    Returns:
        ``module``.

    Raises:
        ValueError: the amount is out of range, or the parameter has one dimension.
        IndexError: ``dim`` is out of range.

    Examples:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(4, 5), "weight", amount=2, dim=0)
        >>> int((layer.weight == 0).all(1).sum())
        2
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of a parameter that have the smallest norm, such as whole channels.

    Args:
        module: the module, which is changed.
        name: of the parameter: at least two dimensions, floating-point.
        amount: how many slices, or which part of them, between 0 and 1.
        n: of the norm.
        dim: the dimension of the slices.
        importance_scores: of the shape of the parameter: judge by these in its place.

    Returns:
        ``module``.

    Raises:
        ValueError: the amount is out of range, or the parameter has one dimension.
        IndexError: ``dim`` is out of range.

    Examples:
        >>> layer = nn.Linear(2, 2)
        >>> layer.weight.data = taeda.tensor([[3.0, 4.0], [1.0, 1.0]])
        >>> nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0).weight.detach()
        tensor([[3., 4.],
                [0., 0.]])
    """
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a given mask.

    Args:
        module: the module, which is changed.
        name: of the parameter. Any shape, floating-point.
        mask: of its shape: 0 for what goes.

    Returns:
        ``module``.

    Examples:
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(5, 3), "bias", mask=taeda.tensor([0, 1, 0]))
        >>> layer.bias != 0
        tensor([False,  True, False])
    """
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Prune several parameters as one: the amount counts over all of them, so that some lose more than others.

    Args:
        parameters: pairs of a module and a parameter's name.
        pruning_method: a class, such as :class:`L1Unstructured`.
        importance_scores: a dict from such pairs to tensors to judge by.
        **kwargs: arguments of the class, such as ``amount``.

    Raises:
        TypeError: ``parameters`` holds something else, or the method is not for single elements.

    Examples:
        >>> model = nn.Sequential(nn.Linear(10, 4), nn.Linear(4, 1))
        >>> prune = nn.utils.prune
        >>> prune.global_unstructured([(layer, "weight") for layer in model], prune.L1Unstructured, amount=0.25)
        >>> sum(int((layer.weight == 0).sum()) for layer in model)  # of 44
        11
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    with no_grad():
        flat = parameters_to_vector([scores.get((m, name), getattr(m, name)) for m, name in parameters])
        masks = parameters_to_vector(
            [getattr(m, name + "_mask", ones_like(getattr(m, name))) for m, name in parameters]
        )
        container = PruningContainer()
        container._tensor_name = "temp"
        method = pruning_method(**kwargs)
        method._tensor_name = "temp"
        if method.PRUNING_TYPE != "unstructured":
            raise TypeError(
                'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
                f"{pruning_method} of type {method.PRUNING_TYPE}"
            )
        container.add_pruning_method(method)
        mask = container.compute_mask(flat, masks)
    at = 0
    for module, name in parameters:
        t = getattr(module, name)
        custom_from_mask(module, name, mask=mask[at : at + t.numel()].view(t.shape))
        at += t.numel()


def remove(module: Module, name: str) -> Module:
    """Make pruning permanent: the pruned tensor becomes the parameter again, and mask and original go.

    Args:
        module: the module, which is changed.
        name: of the parameter.

    Returns:
        ``module``.

    Raises:
        ValueError: it is not pruned.

    Examples:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 5), "weight", amount=0.5)
        >>> [name for name, p in nn.utils.prune.remove(layer, "weight").named_parameters()]
        ['bias', 'weight']
    """
    if not undo_hook(module, lambda hook: isinstance(hook, BasePruningMethod) and hook._tensor_name == name):
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    return module


def is_pruned(module: Module) -> bool:
    """Whether anything in a module is pruned.

    Args:
        module: the module.

    Returns:
        A bool.

    Examples:
        >>> layer = nn.Linear(4, 5)
        >>> nn.utils.prune.is_pruned(layer)
        False
        >>> nn.utils.prune.is_pruned(nn.utils.prune.identity(layer, "weight"))
        True
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with "
            f"{t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)  # type: ignore[return-value]
