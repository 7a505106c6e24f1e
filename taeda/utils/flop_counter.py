"""Counting floating point operations, by module and op."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from .. import _core
from .._core import Tensor
from ..aten import native_name
from ..ops import flops as _formulas
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]


class OpName(str):
    """The name of an op as a key, ``"aten.mm"``: equal to the string, and to the object ``torch.ops.aten.mm``."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other if isinstance(other, str) else _name_of(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _name_of(target: Any) -> str:
    """``aten.<name>`` of an op of the table, a function, or what ``torch.ops`` gives."""
    name = str(target) if hasattr(target, "namespace") else getattr(target, "__name__", None) or str(target)
    return name if name.startswith("aten.") else f"aten.{name}"


# ---- formulas on sizes, under PyTorch's names ------------------------------------------------------------------------


def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of ``[m, k] @ [k, n]``."""
    (m, k), (inner, n) = a_shape, b_shape
    if k != inner:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {inner}")
    return 2 * m * n * k


def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of the product in ``addmm``."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of ``[b, m, k] @ [b, k, n]``."""
    if a_shape[0] != b_shape[0]:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {a_shape[0]} and {b_shape[0]}")
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Operations of the products in ``baddbmm``."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Operations of a convolution; padding counts as if it were data."""
    spread = x_shape if transposed else out_shape
    return 2 * x_shape[0] * prod(spread[2:]) * prod(w_shape)


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Operations of attention, masked positions too."""
    return _formulas.attention(None, query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Operations of attention's gradients; the scores are computed again."""
    return _formulas.attention_backward(None, grad_out_shape, query_shape, key_shape, value_shape)


def _shape(x: Any) -> Any:
    return x.shape if isinstance(x, Tensor) else x


def shape_wrapper(formula: Callable) -> Callable:
    """``formula`` on sizes as one on tensors, with the result as ``out_val``."""

    def on_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return on_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: count calls of an op by this formula.

    Args:
        targets: an op (``taeda.mm``, ``torch.ops.aten.mm``), or a list of them.
        get_raw: the formula is called with the tensors and ``out_val``, rather than with sizes and ``out_shape``.
    Returns:
        The decorator.
    """

    def register(formula: Callable) -> Callable:
        counted = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not (callable(target) or isinstance(target, str)):
                raise ValueError(f"register_flop_formula(targets): expected each target to be an op, got {target!r}")
            flop_registry[OpName(_name_of(target))] = counted
        return formula

    return register


#: Formulas by :class:`OpName`, called with the arguments and ``out_val``. They go before those in the ops' own stanzas.
flop_registry: dict[OpName, Callable] = {
    OpName("aten.mm"): shape_wrapper(mm_flop),
    OpName("aten.addmm"): shape_wrapper(addmm_flop),
    OpName("aten.bmm"): shape_wrapper(bmm_flop),
    OpName("aten.baddbmm"): shape_wrapper(baddbmm_flop),
}


# ---- counting --------------------------------------------------------------------------------------------------------


class _Counting:
    """The mode: adds up the counts of every op."""

    watches = True

    def __init__(self, counter: FlopCounterMode) -> None:
        self.counter = counter

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        if _core.is_mode_active():
            return _core.pass_through(self, op, args, kwargs)
        given = self.counter.formulas.get(OpName(_name_of(op.name)))
        formula = op.traits.get("flops")
        if given is None and formula is None:
            return _core.pass_through(self, op, args, kwargs)
        result = op(*args, **kwargs)
        values = _formulas.bound_arguments(op, args, kwargs)
        if given is not None:
            name, count = op.name, given(*args, out_val=result, **kwargs)
        else:
            name = native_name(op, values)
            if name == "convolution" and self.counter.mod_tracker.is_bw:
                name = "convolution_backward"
            count = formula(*tree_map(_shape, (result, *values)))
        self.counter._add(OpName(f"aten.{name}"), count)
        return result


_SUFFIXES = ("", "K", "M", "B", "T")


def _suffix_for(number: int) -> str:
    """1.01B is shown as 1010M: two digits more than the suffix has."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def _with_suffix(number: int, suffix: str) -> str:
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def _per_cent(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "0%"


class FlopCounterMode:
    """Context manager that counts the floating point operations of products, convolutions, attention and recurrent
    layers, forward and backward, by module: ``with FlopCounterMode() as counter: model(x).sum().backward()``.

    Args:
        mods: not needed.
        depth: how deep the modules that the table shows may lie.
        display: print the table at the end.
        custom_mapping: formulas by op, which go before all others.
    """

    def __init__(
        self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: dict | None = None
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        own = {
            OpName(_name_of(op)): f if getattr(f, "_get_raw", False) else shape_wrapper(f)
            for op, f in (custom_mapping or {}).items()
        }
        self.formulas = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()
        self.mode: _Counting | None = None

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        _core.set_mode_stack([self.mode, *_core.mode_stack()])
        return self

    def __exit__(self, *exc: object) -> None:
        _core.set_mode_stack([mode for mode in _core.mode_stack() if mode is not self.mode])
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _add(self, name: OpName, count: int) -> None:
        for parent in self.mod_tracker.parents:
            self.flop_counts[parent][name] += count

    def get_total_flops(self) -> int:
        """Everything that was counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By the module's path and the op's name; ``"Global"`` has all."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def _rows(self, module: str, indent: int) -> Iterable[list[str]]:
        whole = self.get_total_flops()
        suffix, space = _suffix_for(whole), " " * indent
        counts = self.flop_counts[module]
        total = sum(counts.values())
        yield [space + module, _with_suffix(total, suffix), _per_cent(total, whole)]
        for name, count in counts.items():
            yield [f"{space} - {name}", _with_suffix(count, suffix), _per_cent(count, whole)]

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, of modules at most ``depth`` deep (default: as given at the start; None there: all)."""
        depth = self.depth if depth is None else depth
        rows: list[list[str]] = []
        covered = False
        for module in sorted(self.flop_counts):
            level = module.count(".") + 1
            if module != "Global" and (depth is None or level <= depth):
                covered |= sum(self.flop_counts[module].values()) >= self.get_total_flops()
                rows += self._rows(module, level - 1)
        if "Global" in self.flop_counts and not covered:  # otherwise the outermost module has the same counts
            rows = [*self._rows("Global", 0), *([" " + row[0], *row[1:]] for row in rows)]
        rows = [["Module", "FLOP", "% Total"], *(rows or [["Global", "0", "0%"]])]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ["  ".join((row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]))) for row in rows]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])
