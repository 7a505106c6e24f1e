"""``taeda.library.opcheck``: whether a custom op behaves as its registration says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core import Tensor
from ..graph.capture import Captured
from ..testing import assert_close
from ..utils import _pytree as pytree

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(RuntimeError):
    """An op does something else than it was registered to do."""


def _copies(x: Any) -> Any:
    def copy(t: Any) -> Any:
        return t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t

    return pytree.tree_map(copy, x)


def _tensors(x: Any) -> list[Tensor]:
    return [t for t in pytree.tree_leaves(x) if isinstance(t, Tensor)]


def _schema(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    """Check that the op writes only to the arguments in ``mutates_args``, and that results are new tensors."""
    versions = [(t, t._version, t.detach().clone()) for t in _tensors((args, kwargs))]
    result = op(*args, **kwargs)
    given = op._by_name(args, kwargs)
    declared = (
        {id(t) for name in op._mutates for t in _tensors(given.get(name))} if op._mutates != ("unknown",) else None
    )
    for t, version, before in versions:
        written = t._version != version or not bool(((t == before) | (t != t)).all())
        if declared is not None and written and id(t) not in declared:
            raise OpCheckError(f"{op._qualname} writes to an argument that is not in mutates_args; name it there")
    storages = {t.untyped_storage()._address() for t in _tensors((args, kwargs)) if t.numel()}
    if any(t.numel() and t.untyped_storage()._address() in storages for t in _tensors(result)):
        raise OpCheckError(f"{op._qualname} gives an argument, or a view of one: give a clone of it")


def _autograd(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    """Results that can have gradients require grad where an argument does, unless the op was given no derivative."""
    if not any(t.requires_grad for t in _tensors((args, kwargs))) or op._function is not None:
        return
    if any(t.requires_grad for t in _tensors(op(*args, **kwargs))):
        raise OpCheckError(
            f"{op._qualname} has no derivative of its own, but its body records one: use register_autograd, and "
            "compute the body without gradients"
        )


def _fake(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    """Without values, results have the sizes, strides and dtypes that they have with values."""
    if op._fake is None:
        raise OpCheckError(f"{op._qualname} does not say what it gives without values: use register_fake")
    on_meta = pytree.tree_map(lambda x: x.detach().to("meta") if isinstance(x, Tensor) else x, (args, kwargs))
    real, fake = op(*args, **kwargs), op._sizes(*on_meta[0], **on_meta[1])
    if len(_tensors(real)) != len(_tensors(fake)):
        raise OpCheckError(f"{op._qualname} gives {len(_tensors(real))} tensors, its fake {len(_tensors(fake))}")
    for a, b in zip(_tensors(real), _tensors(fake), strict=True):
        for what in ("shape", "stride", "dtype"):
            x, y = (getattr(t, what)() if what == "stride" else getattr(t, what) for t in (a, b))
            if x != y:
                raise OpCheckError(f"{op._qualname} gives a tensor of {what} {x}, its fake one of {y}")


def _compiled(op: Any, args: tuple, kwargs: dict, close: dict) -> None:
    """Check that the op gives the same results and gradients as a step of a captured program."""
    found = []
    for run in (op, Captured(op, lambda module, inputs: module.forward, True, None, {})):
        inputs = _copies((args, kwargs))
        result = run(*inputs[0], **inputs[1])
        trained = [t for t in _tensors(result) if t.requires_grad]
        if trained:
            sum(t.sum() for t in trained).backward()
        grads = [t.grad for t in _tensors(inputs) if t.requires_grad]
        found.append((_tensors(result), _tensors(inputs), [g for g in grads if g is not None]))
    for a, b in zip(*found, strict=True):
        assert_close([t.detach() for t in a], [t.detach() for t in b], **close)


_TESTS: Mapping[str, Callable] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_dynamic": _compiled,
}


def opcheck(
    op: Any, args: tuple, kwargs: dict | None = None, *, test_utils: str | Sequence[str] = tuple(_TESTS),
    raise_exception: bool = True, atol: float | None = None, rtol: float | None = None,
) -> dict[str, str]:  # fmt: skip
    """Try an op on arguments, and compare its behaviour with its registration.

    Args:
        op: what :func:`~taeda.library.custom_op` gave, or ``ops.library.name`` of it.
        args: its arguments by position.
        kwargs: its arguments by name.
        test_utils: ``"test_schema"``, that it writes to what ``mutates_args`` names alone and gives new tensors;
            ``"test_autograd_registration"``; ``"test_faketensor"``, that its fake gives results of the same form;
            ``"test_aot_dispatch_dynamic"``, that a captured program gives the same results and gradients.
        raise_exception: whether to raise; else what went wrong is in the result.
        atol: absolute tolerance of the comparison, as for ``taeda.testing.assert_close``.
        rtol: relative tolerance.

    Returns:
        For each test ``"SUCCESS"``, or what went wrong.

    Raises:
        OpCheckError: the op does something else.
        ValueError: there is no such test, or it is no op of the user's.
    """
    op = getattr(getattr(op, "overloadpacket", op), "function", op)
    if not hasattr(op, "_qualname"):
        raise ValueError(f"opcheck: expected an op that custom_op made, got {op!r}")
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    found = {}
    for name in names:
        if name not in _TESTS:
            raise ValueError(f"opcheck: expected tests among {', '.join(_TESTS)}, got {name!r}")
        copied = _copies((args, kwargs or {}))
        try:
            _TESTS[name](op, *copied, {"atol": atol, "rtol": rtol})
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise (
                    error
                    if isinstance(error, OpCheckError)
                    else OpCheckError(f"{op._qualname}: {name} failed: {type(error).__name__}: {error}")
                ) from error
            found[name] = f"{type(error).__name__}: {error}"
    return found
