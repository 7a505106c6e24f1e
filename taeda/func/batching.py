"""Ops on batched tensors: they run by the rule that the stanza names, else example by example.

An op's trait ``batch`` names the rule of its family, in ``taeda.func.families``; views and products, which are made of
little else than their sizes, have rules of their own by name, here and in ``taeda.func.products``.

A rule gets the mode, the op and its arguments by name, and gives the result for the whole batch; it runs with its own
mode off, on tensors whose first dimension is the batch. What an op's rule gives must be what the op gives for each
example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import REQUIRED, Tensor, modes
from .._core import tensor as core
from ..ops.joining import stack
from ..ops.registry import Rules
from ..ops.table import OPS, asked_for
from ..random import get_rng_state, set_rng_state
from ..utils._pytree import tree_leaves, tree_map
from .batched import VmapMode

RULES = Rules()
rule, family = RULES.rule, RULES.family


def rule_of(op: Any) -> Callable | None:
    """The function that runs ``op`` on a batch: its own rule, its family's, or its kind's."""
    found = RULES.of(op)
    if found is None and op.kind in ("pointwise", "view"):
        found = _pointwise if op.kind == "pointwise" else _view_by_geometry
    return found


def run(mode: VmapMode, op: Any, args: tuple, kwargs: dict) -> Any:
    """``op`` on arguments of which some are batched by ``mode``, which is off."""
    if "generator" in op.params:
        made = _random(mode, op, args, kwargs)
        if made is not NotImplemented:
            return made
    elif op.traits.get("random"):
        return _drawn_within(Call(mode, op, _bind(op, args, kwargs)))
    if not any(mode.holds(x) for x in tree_leaves((args, kwargs))):
        return op(*args, **kwargs)
    if mode.shared:
        args, kwargs = tree_map(mode.apart, (args, kwargs))
    if "out" in kwargs and "out" not in op.params:
        raise RuntimeError(f"vmap: {op.name}() with out= is not supported: assign the result instead")
    call = Call(mode, op, _bind(op, args, kwargs))
    function = rule_of(op)
    if "functional" in op.traits:
        return _in_place(call, function)
    result = NotImplemented if function is None else function(call)
    if result is not NotImplemented:
        return result
    return _decomposed(call) if "decomposition" in op.traits else _by_example(call)


class Call:
    """One op and its arguments by name."""

    def __init__(self, mode: VmapMode, op: Any, values: dict[str, Any]) -> None:
        self.mode, self.op, self.values = mode, op, values

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def held(self, name: str) -> bool:
        """Whether the argument ``name`` is batched."""
        return self.mode.holds(self.values[name])

    def only(self, *names: str) -> bool:
        """Whether no argument but ``names`` is batched."""
        return not any(
            self.mode.holds(x) for n, value in self.values.items() if n not in names for x in tree_leaves(value)
        )

    def __call__(self, **changes: Any) -> Any:
        """Run the op with ``changes``; other batched arguments as their physical tensors. The results are wrapped."""
        values = {n: changes.get(n, self.plain(v)) for n, v in self.values.items()}
        return self.wrap(self.run(values))

    def run(self, values: dict[str, Any]) -> Any:
        """The op on arguments by name."""
        spread = self.op.traits.get("variadic")  # positional arguments after it would be taken for more of it
        n = self.op.npositional if spread is None else self.op.params.index(spread) + 1
        return self.op(*[values[p] for p in self.op.params[:n]], **{p: values[p] for p in self.op.params[n:]})

    def plain(self, x: Any) -> Any:
        return x.physical if self.mode.holds(x) else x

    def wrap(self, result: Any) -> Any:
        if isinstance(result, Tensor):
            return self.mode.wrap(result)
        if isinstance(result, (tuple, list)):
            items = [self.wrap(x) for x in result]
            return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result

    def physical(self, name: str) -> Tensor:
        return self.mode.physical(self.values[name])


def _bind(op: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Arguments by parameter name, defaults filled in."""
    values: dict[str, Any] = {}
    variadic = op.traits.get("variadic")
    if variadic is not None:
        at = op.params.index(variadic)
        if len(args) > at and (len(args) > at + 1 or isinstance(args[at], int)):
            args = (*args[:at], tuple(args[at:]))
    values.update(zip(op.params, args, strict=False))
    for name, value in kwargs.items():
        values[core.parameter_named(op, name)] = value
    for name, default in zip(op.params, op.defaults, strict=True):
        if name not in values:
            if default is REQUIRED:
                raise TypeError(f"{op.name}() missing required argument '{name}'")
            values[name] = default
    return values


# ---- without a rule --------------------------------------------------------------------------------------------------


def _decomposed(call: Call) -> Any:
    """The op in public ops, which the mode sees one by one."""
    function = call.op.traits["decomposition"]
    with modes([*_core.mode_stack(), call.mode]):
        return function(*[call[name] for name in asked_for(function)])


# ---- example by example ----------------------------------------------------------------------------------------------


def _by_example(call: Call) -> Any:
    """The op on each example in turn. Right for every op whose result is new; views have rules."""
    if call.op.kind == "view":
        raise RuntimeError(f"vmap: no rule for the view {call.op.name}()")
    names = list(call.values)
    return call.mode.loop(lambda *row: call.run(dict(zip(names, row, strict=True))), tuple(call.values.values()))


def _in_place(call: Call, function: Callable | None) -> Any:
    """An op that writes into its first argument. If the written values are batched, the argument must be too."""
    name = call.op.params[0]
    target = call[name]
    if not call.held(name):
        others = [n for n in call.op.params[1:] if any(call.mode.holds(x) for x in tree_leaves(call[n]))]
        raise RuntimeError(
            f"vmap: inplace {call.op.name}(self, *extra_args) is not possible because there exists a Tensor "
            f"`{others[0]}` in extra_args that has more elements than `self`. This happened due to `{others[0]}` being "
            f"vmapped over but `self` not being vmapped over in a vmap. Use the out-of-place form."
        )
    if function is not None and function(call) is not NotImplemented:
        return target
    columns = {n: call.mode.slices(value) for n, value in call.values.items()}
    for i in range(call.mode.size):
        call.run({n: column[i] for n, column in columns.items()})
    return target


def _refuse_without_randomness(mode: VmapMode, op: Any) -> None:
    if mode.randomness == "error":
        raise RuntimeError(
            f"vmap: called random operation {op.name}() while in randomness error mode. Please either use the 'same' "
            f"or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )


def _drawn_within(call: Call) -> Any:
    """An op that also draws numbers: it runs for each example, from one state if all draw the same numbers."""
    _refuse_without_randomness(call.mode, call.op)
    names, start = list(call.values), get_rng_state()

    def of_example(*row: Any) -> Any:
        if call.mode.randomness == "same":
            set_rng_state(start)
        return call.run(dict(zip(names, row, strict=True)))

    return call.mode.loop(of_example, tuple(call.values.values()))


def _random(mode: VmapMode, op: Any, args: tuple, kwargs: dict) -> Any:
    """Numbers for each example, or the same for all; NotImplemented where the op's rule gives them."""
    _refuse_without_randomness(mode, op)
    different = mode.randomness == "different"
    values = _bind(op, args, kwargs)
    target: Any = values.get(op.params[0])
    if op.name == "_filled" and (different or mode.holds(target)):
        whole, given = mode.physical(target), (values["fill"], values["numbers"], values["generator"])
        return mode.wrap(op(whole, *given) if different else op(whole[0], *given).expand_as(whole).clone())
    batched = [n for n, v in values.items() if mode.holds(v) and (op.kind != "mutates" or n != op.params[0])]
    if batched and not different:
        raise RuntimeError(
            f"vmap: {op.name}(): Vmap does not currently support same randomness with a batched tensor "
            f"input. Use randomness='different', or draw the numbers from what is the same for all"
        )
    if op.kind == "mutates":
        if not mode.holds(target):
            if different:
                raise RuntimeError(
                    f"vmap: Cannot ask for different inplace randomness on an unbatched tensor: {op.name}() would "
                    f"write the numbers of every example into it. Use the out-of-place form."
                )
            return NotImplemented
        physical = {n: v.physical if mode.holds(v) else v for n, v in values.items()}
        if different:
            Call(mode, op, values).run(physical)
        else:
            one = target.physical[0].clone()
            Call(mode, op, values).run({**physical, op.params[0]: one})
            target.physical.copy_(one.expand_as(target.physical))
        return target
    if batched:
        return NotImplemented
    if different and "decomposition" in op.traits:
        return _decomposed(Call(mode, op, values))
    return mode.wrap(stack([op(*args, **kwargs) for _ in range(mode.size)], 0)) if different else NotImplemented


# ---- by trait --------------------------------------------------------------------------------------------------------


def _aligned(mode: VmapMode, tensors: list, rank: int) -> list:
    """Physical tensors whose examples all have ``rank`` dimensions; those that are not batched are left as they are."""
    found = []
    for x in tensors:
        if mode.holds(x):
            missing = rank - x.dim()
            x = x.physical
            if missing:
                x = x.reshape(x.shape[0], *([1] * missing), *x.shape[1:])
        found.append(x)
    return found


def _pointwise(call: Call) -> Any:
    mode, op = call.mode, call.op
    names = op.params[: op.traits["operands"]]
    operands = [call[n] for n in names]
    tensors = [x for x in operands if isinstance(x, Tensor)]
    rank = max(x.dim() for x in tensors)
    target = operands[0]
    if "functional" in op.traits and target.dim() < rank:
        raise RuntimeError(
            f"{op.name}: output with shape {list(target.shape)} doesn't match the broadcast shape of its operands"
        )
    physical = _aligned(mode, operands, rank)
    if rank and any(mode.holds(x) and x.dim() == 0 for x in tensors):
        # an example without dimensions takes part in promotion as such
        counts = [isinstance(x, Tensor) and bool((op.promote_mask >> i) & 1) for i, x in enumerate(operands)]
        common = _promoted([x for x, c in zip(operands, counts, strict=True) if c])
        for i, x in enumerate(operands):
            if counts[i] and mode.holds(x) and x.dim() == 0 and x.dtype is not common:
                physical[i] = physical[i].to(common)
    return call(**dict(zip(names, physical, strict=True)))


def _promoted(tensors: list) -> Any:
    """The dtype that ``tensors`` promote to, by the sizes of their examples."""
    with_dims = [x.dtype for x in tensors if x.dim()]
    zero_dim = [x.dtype for x in tensors if not x.dim()]
    dims = zeros = None
    for d in with_dims:
        dims = d if dims is None else _core.promote_types(dims, d)
    for d in zero_dim:
        zeros = d if zeros is None else _core.promote_types(zeros, d)
    if dims is None or zeros is None:
        return dims or zeros
    return zeros if _category(zeros) > _category(dims) else dims


def _category(d: Any) -> int:
    return 3 if d.is_complex else 2 if d.is_floating_point else 0 if d.name == "bool" else 1


def _view_by_geometry(call: Call) -> Any:
    """A view, from the view that the op makes of one example: its sizes, strides and offset."""
    source = call["input"]
    if not call.only("input"):
        return NotImplemented
    with modes([]):
        example = call.op.run_body(*call.values.values())
    if not isinstance(example, Tensor) or example.dtype is not source.dtype:
        return NotImplemented
    if example.untyped_storage() is not Tensor.untyped_storage(source):
        return NotImplemented
    physical = source.physical
    offset = physical.storage_offset() + example.storage_offset() - Tensor.storage_offset(source)
    made = physical.as_strided((call.mode.size, *example.shape), (physical.stride(0), *example.stride()), offset)
    return call.mode.wrap(made)


def _shift(dim: Any, rank: int, name: str) -> int:
    """A dimension of an example as one of the batch."""
    return _core.wrapped_dim(dim, rank, name) + 1


def _shift_all(dims: Any, rank: int, name: str) -> Any:
    if isinstance(dims, (tuple, list)):
        return tuple(_shift(d, rank, name) for d in dims)
    return _shift(dims, rank, name)


# ---- views -----------------------------------------------------------------------------------------------------------


@rule("transpose")
def _transpose(call: Call) -> Any:
    rank = call["input"].dim()
    if rank == 0:
        physical = call.physical("input")
        return call.mode.wrap(physical.view_as(physical))
    return call(dim0=_shift(call["dim0"], rank, "transpose"), dim1=_shift(call["dim1"], rank, "transpose"))


@rule("permute")
def _permute(call: Call) -> Any:
    return call(dims=(0, *_shift_all(call["dims"], call["input"].dim(), "permute")))


@rule("squeeze")
def _squeeze(call: Call) -> Any:
    shape, dim = call["input"].shape, call["dim"]
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    return call(dim=tuple(_shift(d, len(shape), "squeeze") for d in dims if shape and shape[d] == 1))


@rule("unsqueeze")
def _unsqueeze(call: Call) -> Any:
    return call(dim=_shift(call["dim"], call["input"].dim() + 1, "unsqueeze"))


@rule("expand")
def _expand(call: Call) -> Any:
    size = tuple(call["size"])
    (physical,) = _aligned(call.mode, [call["input"]], max(len(size), call["input"].dim()))
    return call(input=physical, size=(call.mode.size, *size))


def _known_size(call: Call, size: Any) -> tuple:
    """``size`` of an example with -1 filled in, for the whole batch."""
    size = (size,) if isinstance(size, int) else tuple(size)
    if -1 in size:
        known = 1
        for n in size:
            known *= n if n != -1 else 1
        count = call["input"].numel()
        if known == 0 or count % known:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
        size = tuple(count // known if n == -1 else n for n in size)
    return (call.mode.size, *size)


@rule("view")
def _view(call: Call) -> Any:
    if isinstance(call["size"], _core.dtype) or call["dtype"] is not None:
        if call["input"].dim():
            return call()
        made = call.run({**call.values, "input": call["input"].physical.unsqueeze(1)})
        return call.mode.wrap(made.squeeze(1) if made.shape[1] == 1 else made)
    return call(size=_known_size(call, call["size"]))


@rule("reshape")
def _reshape(call: Call) -> Any:
    return call(shape=_known_size(call, call["shape"]))


@rule("basic_index")
def _basic_index(call: Call) -> Any:
    index = call["index"]
    return call(index=(slice(None), *(index if isinstance(index, tuple) else (index,))))


@rule("select")
def _select(call: Call) -> Any:
    return call(dim=_shift(call["dim"], call["input"].dim(), "select"))


@rule("slice_view", "unbind", "split_with_sizes")
def _along(call: Call) -> Any:
    return call(dim=_shift(call["dim"], call["input"].dim(), call.op.name))


@rule("diagonal")
def _diagonal(call: Call) -> Any:
    rank = call["input"].dim()
    return call(dim1=_shift(call["dim1"], rank, "diagonal"), dim2=_shift(call["dim2"], rank, "diagonal"))


@rule("unfold")
def _unfold(call: Call) -> Any:
    dimension = _shift(call["dimension"], call["input"].dim(), "unfold")
    if call["input"].dim():
        return call(dimension=dimension)
    made = call.run({**call.values, "input": call["input"].physical.unsqueeze(1), "dimension": dimension})
    return call.mode.wrap(made.squeeze(1))


@rule("strided_window")
def _strided_window(call: Call) -> Any:
    """Relative to the first element of each example."""
    physical = call["input"].physical
    if physical.stride(0) == 0:  # examples that share memory, where gradients would mix
        return call.mode.wrap(stack([call.run({**call.values, "input": x}) for x in physical.unbind(0)], 0))
    offset = call["storage_offset"] - call["input_offset"] + physical.storage_offset()
    size, stride = (call.mode.size, *call["size"]), (physical.stride(0), *call["stride"])
    return call.mode.wrap(physical.as_strided(size, stride, offset))


@rule("view_as_real", "view_as_complex", "real", "imag_view", "view_alias", "clone", "to_dtype", "zero")
def _as_it_is(call: Call) -> Any:
    channels = call.values.get("memory_format") in (_core.channels_last, _core.channels_last_3d)
    return call(**({"memory_format": _core.preserve_format} if channels else {}))


@rule("clone_for")
def _clone_for(call: Call) -> Any:
    return call.mode.wrap(OPS["clone"](call.physical("input")))


@rule("index_backward")
def _index_backward(call: Call) -> Any:
    index = call["index"]
    index = (slice(None), *(index if isinstance(index, tuple) else (index,)))
    return call(shape=(call.mode.size, *call["shape"]), index=index)


@rule("diagonal_backward")
def _diagonal_backward(call: Call) -> Any:
    rank = len(call["shape"])
    dims = {"dim1": _shift(call["dim1"], rank, "diagonal"), "dim2": _shift(call["dim2"], rank, "diagonal")}
    return call(shape=(call.mode.size, *call["shape"]), **dims)


@rule("copy")
def _copy(call: Call) -> Any:
    source = call["src"]
    if not isinstance(source, Tensor):
        return call()
    rank = call["input"].dim()
    while source.dim() > rank:
        if source.shape[0] != 1:
            return NotImplemented
        source = (
            OPS["select"](source, 0, 0) if not call.mode.holds(source) else call.mode.wrap(source.physical.select(1, 0))
        )
    target = call.physical("input")
    return call(input=target, src=_aligned(call.mode, [source], rank)[0])


# ---- rearranging -----------------------------------------------------------------------------------------------------


@rule("roll")
def _roll(call: Call) -> Any:
    dims = call["dims"]
    if dims is None or (isinstance(dims, (tuple, list)) and not dims) or call["input"].dim() == 0:
        return NotImplemented
    return call(dims=_shift_all(dims, call["input"].dim(), "roll"))


@rule("repeat")
def _repeat(call: Call) -> Any:
    repeats = call["repeats"]
    repeats = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    if len(repeats) < call["input"].dim():
        return NotImplemented
    (physical,) = _aligned(call.mode, [call["input"]], len(repeats))
    return call(input=physical, repeats=(1, *repeats))


@rule("cat")
def _cat(call: Call) -> Any:
    tensors = [x for x in call["tensors"] if x.dim() != 1 or x.shape[0]] or list(call["tensors"])
    rank = tensors[0].dim()
    return call(tensors=[call.mode.physical(x) for x in tensors], dim=_shift(call["dim"], rank, "cat"))


@rule("stack")
def _stack(call: Call) -> Any:
    tensors = list(call["tensors"])
    dim = _shift(call["dim"], tensors[0].dim() + 1, "stack")
    return call(tensors=[call.mode.physical(x) for x in tensors], dim=dim)
