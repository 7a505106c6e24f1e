"""Ops from functions over an index space: ``kernel.grid``, and the choice of their settings by measurement."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import operator
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import _core
from ._core import Tensor
from ._core.mends import not_tensor
from ._tiles import ALLOWED, WORKING, Reference, Tile, Trace, _leaves
from .kernel import MOST_IN_PLACE, _decorated, _named_function, _Scalars, _with_line
from .kernels import build as kernels
from .kernels import target as targets
from .kernels.programs import Memory, Node, Program
from .kernels.programs import kernel as write_program
from .library import CustomOpDef
from .ops import devices
from .ops.meta import check_all_on_meta
from .ops.registry import label_of as _label_of

#: Elements that a thread computes at least at once.
PIECE = 16384
#: Plans of calls that an op keeps.
PLANS = 1024
#: Programs whose loops are looked at, to find out whether they write all of a result.
MOST_PROGRAMS = 4096
#: A measurement of a choice ends after so many seconds, or runs.
SECONDS, RUNS = 0.05, 5
_NUMBERS: dict[Any, str] = {int: "int", float: "float", "int": "int", "float": "float"}


class _Built(NamedTuple):
    """A kernel for operands of one form."""

    address: int
    grain: int
    sizes: Callable[[Sequence[tuple[int, ...]], Sequence[Any]], list[int]]
    covers: Sequence[tuple[int, list[Any]]]
    numbered: bool  #: whether numbers decide on the size of the grid


class _Plan(NamedTuple):
    """The launch of a call with operands of one form, sizes and strides."""

    address: int
    results: list[tuple[Callable, tuple[int, ...], Any]]
    full: list[bool]
    words: tuple[int, ...]
    total: int
    grain: int


def _numbered(grid: Sequence[tuple[Node, int]]) -> bool:
    stack = [n for n, _ in grid]
    while stack:
        n = stack.pop()
        if n.kind == "arg":
            return True
        stack.extend(n.args)
    return False


class _Parameters(NamedTuple):
    names: list[str]
    inputs: list[str]
    numbers: dict[str, str]
    results: list[str]
    settings: dict[str, Any]


def _parameters(fn: Callable, label: str, out: dict[str, Callable]) -> _Parameters:
    signature = inspect.signature(fn)
    inputs, settings, numbers = [], {}, {}
    for name, p in signature.parameters.items():
        if p.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(f"{label}: expected parameters that go by position, without * and **, got {signature}")
        if name in out:
            if p.default is not inspect.Parameter.empty:
                raise TypeError(f"{label}: the result {name!r} has no default")
        elif p.default is inspect.Parameter.empty:
            inputs.append(name)
            if p.annotation in _NUMBERS:
                numbers[name] = _NUMBERS[p.annotation]
        else:
            if type(p.default) not in (int, float, bool, str):
                raise TypeError(
                    f"{label}: the setting {name!r} is {p.default!r}; expected an int, a float, a bool or a str"
                )
            settings[name] = p.default
    missing = [name for name in out if name not in signature.parameters]
    if missing:
        raise TypeError(
            f"{label}: out= gives the result {missing[0]!r}, and there is no parameter of that name in {signature}"
        )
    if len(numbers) == len(inputs):
        raise TypeError(f"{label}: expected a parameter without a default, for a tensor, got {signature}")
    return _Parameters(list(signature.parameters), inputs, numbers, list(out), settings)


def _asked(rule: Callable, what: str, given: _Parameters, label: str) -> list[str]:
    """The names of operands and settings that a function asks for."""
    names = list(inspect.signature(rule).parameters)
    unknown = [n for n in names if n not in given.inputs and n not in given.settings]
    if unknown:
        raise TypeError(f"{label}: {what} asks for {unknown[0]!r}, which is no operand and no setting")
    return names


class GridOp(CustomOpDef):
    """An op of :func:`taeda.kernel.grid`, called with its operands and settings.

    ``register_autograd`` gives it a derivative, ``register_vmap`` a rule for batches. Without one a batch runs example
    by example.
    """

    without_derivative = "error"
    _gives_derivative, _says_none = "register_autograd", ""

    def __init__(self, label: str, fn: Callable, out: dict[str, Callable]) -> None:
        self._given = _parameters(fn, label, out)
        self._rules = [(rule, _asked(rule, f"the rule for {n!r}", self._given, label)) for n, rule in out.items()]
        self._body = fn
        kinds: dict[str, Callable] = {"int": operator.index, "float": float}
        self._converted = [(i, kinds[self._given.numbers[n]]) for i, n in enumerate(self._given.inputs)
                           if n in self._given.numbers]  # fmt: skip
        numbered = any(n in self._given.numbers for _, asked in self._rules for n in asked)
        self._plans: dict[tuple, _Plan] = {}
        self._by_numbers = numbered  # whether a plan holds for these numbers alone
        self._label = label
        self._kernels: dict[tuple, list[tuple[dict[tuple[int, int], int], _Built]]] = {}
        self._lock = threading.RLock()
        self._choices: list[dict[str, Any]] = []
        self._key: tuple[Callable, list[str]] | None = None
        self._chosen: dict[tuple, dict[str, Any]] = {}
        p = self._given
        words = [f"{p.numbers.get(n, 'Tensor')} {n}" for n in p.inputs]
        spelled = {int: "int", float: "float", bool: "bool", str: "str"}
        words += [f"{spelled[type(x)]} {n}={_literal(x)}" for n, x in p.settings.items()]
        results = "Tensor" if len(out) == 1 else f"({', '.join(['Tensor'] * len(out))})"
        names, defaults = [*p.inputs, *p.settings], list(p.settings.values())
        self._planned = _core.Planned(self._launch)
        run = _named_function(names, defaults, self._planned, fn, fn.__doc__)
        super().__init__(label, run, (), f"({', '.join(words)}) -> {results}")
        self.register_fake(self._empty)
        self.register_vmap(self._by_example)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """The derivative: ``backward(ctx, *grads)`` gives gradients of the operands; those of settings are None."""
        count = len(self._given.inputs) + len(self._given.settings)

        def whole(ctx: Any, *grads: Any) -> tuple:
            made = backward(ctx, *grads)
            made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
            return made + (None,) * (count - len(made) if len(made) >= len(self._given.inputs) else 0)

        super().register_autograd(whole, setup_context=setup_context)

    # ---- results ----------------------------------------------------------------------------------------------------
    def _complete_settings(self, args: Sequence) -> tuple[list, dict[str, Any]]:
        n = len(self._given.inputs)
        values = dict(zip(self._given.settings, args[n:], strict=False))
        return list(args[:n]), {**self._given.settings, **values}

    def _forms(self, inputs: Sequence, settings: dict[str, Any]) -> list[tuple[tuple[int, ...], Any]]:
        """Sizes and dtype of each result."""
        known = {**dict(zip(self._given.inputs, inputs, strict=True)), **settings}
        first = next(x for x in inputs if isinstance(x, Tensor))
        found = []
        for rule, asked in self._rules:
            made = rule(**{n: known[n] for n in asked})
            if isinstance(made, Tensor):
                found.append((tuple(made.shape), made.dtype))
                continue
            dtype = first.dtype
            if isinstance(made, tuple) and len(made) == 2 and not isinstance(made[1], int):
                made, dtype = made
            try:
                found.append((tuple(map(operator.index, made)), dtype))
            except TypeError:
                raise TypeError(
                    f"{self._label}: out= gives a tensor, sizes, or (sizes, dtype), but its rule gave {made!r:.80}"
                ) from None
        return found

    def _empty(self, *args: Any) -> Any:
        inputs, settings = self._complete_settings(args)
        check_all_on_meta(self._label, inputs)
        made = [_zeros(shape, dtype=dtype, device="meta") for shape, dtype in self._forms(inputs, settings)]
        return made[0] if len(made) == 1 else tuple(made)

    def _by_example(self, info: Any, in_dims: tuple, *args: Any) -> tuple:
        from .ops.joining import stack

        batched = [isinstance(a, Tensor) and d is not None for a, d in zip(args, in_dims, strict=True)]
        rows = [
            self(*(a.select(d, i) if b else a for a, d, b in zip(args, in_dims, batched, strict=True)))
            for i in range(info.batch_size)
        ]
        if rows:
            out = stack(rows) if isinstance(rows[0], Tensor) else tuple(map(stack, zip(*rows, strict=True)))
        else:
            one = [
                _zeros([n for i, n in enumerate(a.shape) if i != d], dtype=a.dtype, device="meta") if b else a
                for a, d, b in zip(args, in_dims, batched, strict=True)
            ]
            inputs, settings = self._complete_settings(one)
            made = [_zeros((0, *shape), dtype=dtype) for shape, dtype in self._forms(inputs, settings)]
            out = made[0] if len(made) == 1 else tuple(made)
        return out, 0 if isinstance(out, Tensor) else (0,) * len(out)

    # ---- running ----------------------------------------------------------------------------------------------------
    def _launch(self, *args: Any) -> Any:
        inputs, settings = self._complete_settings(args)
        for at, convert in self._converted:
            inputs[at] = convert(inputs[at])
        if self._choices:
            settings.update(self._choose(inputs, settings))
        return self._run_with(inputs, settings)

    def _run_with(self, inputs: Sequence, settings: dict[str, Any]) -> Any:
        tensors = [x.resolve_neg() for x in inputs if isinstance(x, Tensor)]
        numbers = tuple([x for x in inputs if not isinstance(x, Tensor)])
        if any([x.layout is not _core.strided for x in tensors]):
            raise NotImplementedError(
                f"{self._label}(): not for sparse tensors; convert them first, as in x.to_dense()"
            )
        place = _core.devices.current_place()
        devices = () if place == 1 else tuple([x.device.type for x in tensors])
        key = (
            tuple([(tuple(x.shape), x.stride(), x.dtype.name) for x in tensors]), devices,
            tuple([(type(x), x) for x in settings.values()]), numbers if self._by_numbers else None, place,
        )  # fmt: skip
        plan = self._plans.get(key)
        if plan is None:
            if place > 1 or any([kind != "cpu" for kind in devices]):
                return self._on_host(inputs, tensors, settings)
            plan = self._plan(inputs, tensors, numbers, settings)
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[(*key[:3], numbers if self._by_numbers else None, place)] = plan
        made = [make(shape, dtype=dtype) for make, shape, dtype in plan.results]
        if plan.total:
            given = tuple(t if full else _SPARE for t, full in zip((*made, *tensors), plan.full, strict=True))
            _core.launch(plan.address, given, (*plan.words, *numbers), plan.total, plan.grain)
        return made[0] if len(made) == 1 else tuple(made)

    def _on_host(self, inputs: Sequence, tensors: Sequence[Tensor], settings: dict[str, Any]) -> Any:
        """The result for tensors of another device: kernels of programs run on the processor, on copies."""
        names = dict.fromkeys(str(x.device) for x in tensors)
        if len(names) > 1:
            raise RuntimeError(
                f"{self._label}(): Expected all tensors to be on the same device, but found at least two devices, "
                f"{' and '.join(names)}! Move one of them with .to('{next(iter(names))}')"
            )
        return devices.on_host(self._run_with, devices.number_of(tensors[0].device), list(inputs), settings)

    def _plan(self, inputs: Sequence, tensors: Sequence[Tensor], numbers: Sequence, settings: dict[str, Any]) -> _Plan:
        """The launch of a call."""
        for name, x in zip(self._given.inputs, inputs, strict=True):
            if name not in self._given.numbers and not isinstance(x, Tensor):
                raise not_tensor(f"{self._label}(): argument {name!r}", x)
            if isinstance(x, Tensor) and x.dtype.name not in WORKING:
                raise NotImplementedError(
                    f"{self._label}(): {name!r} is of dtype {x.dtype}; expected one of {', '.join(WORKING)}"
                )
        forms = self._forms(inputs, settings)
        for (_, dtype), name in zip(forms, self._given.results, strict=True):
            if dtype.name not in WORKING:
                raise NotImplementedError(f"{self._label}(): no kernel writes a {name!r} of dtype {dtype}")
        shapes = [shape for shape, _ in forms] + [tuple(t.shape) for t in tensors]
        built = self._built(forms, tensors, shapes, settings)
        self._by_numbers |= built.numbered
        grid = built.sizes(shapes, numbers)
        written = {
            n for n, ends in built.covers
            if all(_reached(end, shapes, grid) >= size for end, size in zip(ends, shapes[n], strict=True))
        }  # fmt: skip
        results = [(_core.empty if i in written else _zeros, *form) for i, form in enumerate(forms)]
        words = list(grid)
        for shape, dtype in forms:  # no tensors: a call that is planned records what makes them
            words += [*shape, *(dtype.itemsize * math.prod(shape[d + 1 :]) for d in range(len(shape)))]
        for t in tensors:
            words += [*t.shape, *(s * t.element_size() for s in t.stride())]
        full = [math.prod(shape) > 0 for shape in shapes]
        return _Plan(built.address, results, full, tuple(words), math.prod(grid), built.grain)

    # ---- kernels ----------------------------------------------------------------------------------------------------
    def _built(
        self, forms: Sequence, tensors: Sequence[Tensor], shapes: Sequence[tuple[int, ...]], settings: dict[str, Any],
    ) -> _Built:  # fmt: skip
        units = tuple(tuple(s == 1 for s in t.stride()) for t in tensors)
        key = (
            tuple(dtype.name for _, dtype in forms), tuple(len(shape) for shape, _ in forms),
            tuple(t.dtype.name for t in tensors), units, tuple((type(x), x) for x in settings.values()),
        )  # fmt: skip
        for asked, built in self._kernels.get(key, ()):
            if all(_power(shapes[t][d]) == n for (t, d), n in asked.items()):
                return built
        with self._lock:
            trace, program = self._traced(forms, tensors, units, shapes, settings)

            def write() -> Any:
                return write_program(program)[0]

            assert trace.grid is not None
            f, cost = write_program(program)
            grain = max(PIECE // max(cost, 1), 1)
            address, sizes = kernels.build(f, write), _grid_sizes(trace.grid)
            built = _Built(address, grain, sizes, trace.covers(), _numbered(trace.grid))
            self._kernels.setdefault(key, []).append((trace.asked, built))
            return built

    def _traced(
        self, forms: Sequence, tensors: Sequence[Tensor], units: Sequence[tuple[bool, ...]],
        shapes: Sequence[tuple[int, ...]], settings: dict[str, Any],
    ) -> tuple[Trace, Program]:  # fmt: skip
        p = self._given
        with Trace() as trace:
            trace.sizes = list(shapes)
            values: dict[str, Any] = dict(settings)
            for name, (shape, dtype) in zip(p.results, forms, strict=True):
                unit = tuple(d == len(shape) - 1 for d in range(len(shape)))
                values[name] = self._reference(trace, name, dtype.name, unit, True)
            rest = iter(zip(tensors, units, strict=True))
            number = 0
            for name in p.inputs:
                if name in p.numbers:
                    dtype = "int64" if p.numbers[name] == "int" else "float64"
                    values[name] = trace.make("arg", (), (), dtype, number)
                    number += 1
                else:
                    t, unit = next(rest)
                    values[name] = self._reference(trace, name, t.dtype.name, unit, False)
            try:
                self._body(**{name: values[name] for name in p.names})
                if trace.loops:
                    raise TypeError("break, continue and return do not leave a loop of the expression")
                if trace.grid is None:
                    raise TypeError("the function has no index space: begin the expression with kernel.tiles")
            except Exception as error:
                raise _with_line(_Named(self._label), error, ALLOWED) from error
        machine = functools.partial(_Scalars, long=trace.functions > MOST_IN_PLACE)
        return trace, Program(self._label, len(trace.grid), trace.tensors, trace.top, machine)

    @staticmethod
    def _reference(trace: Trace, name: str, dtype: str, unit: tuple[bool, ...], written: bool) -> Reference:
        trace.tensors.append(Memory(dtype, unit))
        return Reference(trace, len(trace.tensors) - 1, name, dtype, unit, written)

    # ---- choices ----------------------------------------------------------------------------------------------------
    def _choose(self, inputs: Sequence, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings that were fastest for operands of this form, on this machine."""
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        form: Any = [(list(t.shape), [s == 1 for s in t.stride()]) for t in tensors]
        if self._key is not None:
            rule, asked = self._key
            named = dict(zip(self._given.inputs, inputs, strict=True))
            form = rule(**{n: named[n] for n in asked})
        key = (
            repr(form), tuple(t.dtype.name for t in tensors), _core.get_num_threads(), repr(sorted(settings.items())),
        )  # fmt: skip
        found = self._chosen.get(key)
        if found is None:
            with self._lock:
                path = kernels.cache_dir() / "tuned" / f"{self._digest(key, inputs, settings)}.json"
                number = _remembered(path, len(self._choices))
                if number is None:
                    number = self._fastest(inputs, settings)
                    content = json.dumps({"op": self._label, "choice": number}).encode()
                    kernels.write_entry(path, content)
                found = self._chosen[key] = self._choices[number]
        return found

    def _digest(self, key: tuple, inputs: Sequence, settings: dict[str, Any]) -> str:
        """The name of a measurement: the machine, the operands, and the kernels of all choices."""
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        texts = []
        for choice in self._choices:
            made = {**settings, **choice}
            forms = self._forms(inputs, made)
            shapes = [shape for shape, _ in forms] + [tuple(t.shape) for t in tensors]
            units = tuple(tuple(s == 1 for s in t.stride()) for t in tensors)
            _, program = self._traced(forms, tensors, units, shapes, made)
            try:
                texts.append(write_program(program)[0].text())
            except ValueError as error:  # tiles that do not fit
                texts.append(str(error))
        parts = (targets.host().key, targets.processor(), self._label, key, self._choices, texts)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    def _fastest(self, inputs: Sequence, settings: dict[str, Any]) -> int:
        times: list[float] = []
        errors: list[Exception] = []
        for choice in self._choices:
            made, seconds = {**settings, **choice}, math.inf
            try:
                self._run_with(inputs, made)
                begin = time.perf_counter()
                for _ in range(RUNS):
                    start = time.perf_counter()
                    self._run_with(inputs, made)
                    now = time.perf_counter()
                    seconds = min(seconds, now - start)
                    if now - begin > SECONDS:
                        break
            except ValueError as error:  # tiles that do not fit
                errors.append(error)
            times.append(seconds)
        if min(times) == math.inf:
            raise errors[0]
        return times.index(min(times))

    @property
    def tuned(self) -> list[dict[str, Any]]:
        """The settings that were chosen in this process."""
        return list(self._chosen.values())


class _Named(NamedTuple):
    label: str


def _remembered(path: Any, choices: int) -> int | None:
    blob = kernels.read_entry(path)
    if blob is None:
        return None
    number = json.loads(blob).get("choice")
    return number if isinstance(number, int) and 0 <= number < choices else None


def _literal(x: Any) -> str:
    return f'"{x}"' if isinstance(x, str) else str(x)


def _power(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _zeros(shape: Sequence[int], dtype: Any, device: str = "cpu") -> Tensor:
    from .ops.creation import zeros

    return zeros(shape, dtype=dtype, device=device)


def _value(n: Node, shapes: Sequence, numbers: Sequence, program: int = 0) -> int:
    """A whole number of a function over an index space, from sizes of tensors and from numbers."""
    if n.kind == "const":
        return int(n.data)
    if n.kind == "size":
        return shapes[n.data[0]][n.data[1]]
    if n.kind == "arg":
        return numbers[n.data]
    if n.kind == "program":
        return program
    if n.kind in _ON_HOST:
        return _ON_HOST[n.kind](*(_value(x, shapes, numbers, program) for x in n.args))
    raise TypeError(f"kernel.tiles: a size is made of sizes of tensors and whole numbers, and not by {n.kind}")


def _grid_sizes(grid: Sequence[tuple[Node, int]]) -> Callable:
    """The sizes of a grid, from those of tensors and from numbers."""

    def sizes(shapes: Sequence, numbers: Sequence) -> list[int]:
        return [max(-(-_value(n, shapes, numbers) // block), 0) for n, block in grid]

    return sizes


def _reached(end: tuple, shapes: Sequence, grid: Sequence[int]) -> int:
    """How far all places are written: to the end of a size, or as far as loops of programs leave none out."""
    if not isinstance(end[0], Node):
        return shapes[end[0]][end[1]]
    dims = {n.data for x in end for n in _leaves(x) if n.kind == "program"}
    reached = 0
    for program in range(min(grid[dims.pop()] if dims else 1, MOST_PROGRAMS)):
        low, high = (_value(x, shapes, (), program) for x in end)
        reached = max(reached, high) if 0 <= low <= reached else reached
    return reached


_ON_HOST: dict[str, Callable] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b, "maximum": max, "minimum": min, "cast": int, "neg": lambda a: -a,
}  # fmt: skip

#: The memory of an operand without elements: masked loads read nothing of it.
_SPARE = bytes(64)


def grid(function: Callable | None = None, /, *, out: Any, name: str | None = None) -> Any:
    """Make an op of a function over an index space: it runs once for each tile of its results, with loads and stores.

    The function names its places with :func:`tiles`, reads tiles by ``x[i, j]``, computes with operators and the
    functions of this module, and writes by ``out[i, j] = value``. Tiles have one or two dimensions whose sizes are
    powers of two. What lies outside of a tensor is not read or written: a load gives 0 there, or what
    ``x.load((i, j), other=...)`` says.
    It is compiled for each combination of dtypes, layouts and settings when that is first used, is kept on disk, and
    programs are shared among threads.

    Float16 and bfloat16 are computed with in float32, int8, uint8 and int16 in int32. Elements that no program writes
    are 0. Programs that write the same element leave the value of one of them.

    Args:
        function: what a program does; also a decorator. Parameters without a default are tensors, or numbers if
            annotated ``int`` or ``float``; those that ``out`` names are results; those with a default are settings,
            which are known when the function is traced.
        out: the sizes of the result ``out``: a function of operands and settings, by their names, that gives a tensor
            of the same sizes and dtype, sizes, or ``(sizes, dtype)``. Several results: a dict of these by parameter.
        name: of the op, as of :func:`elementwise`.

    Returns:
        The op, a function of the operands and settings. It has no derivative until ``register_autograd`` gives one.

    Raises:
        TypeError: the function asks for what values of the expression do not have; the error shows the line. It is
            traced at the first call.
        ValueError: the name is the library's, or is no name; or, at a call, tiles take too much memory.

    Example:
        >>> @taeda.kernel.grid(name="doc::add", out=lambda x: x)
        ... def add(x, y, out, block=1024):
        ...     i = taeda.kernel.tiles(out.shape[0], block)
        ...     out[i] = x[i] + y[i]
        >>> add(taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 4.0]))
        tensor([4., 6.])
    """

    def decorate(fn: Callable) -> GridOp:
        fn.__module__ = fn.__module__ or "__main__"  # code that is run by itself
        rules = out if isinstance(out, dict) else {"out": out}
        if not rules or not all(map(callable, rules.values())):
            raise TypeError(f"kernel.grid: expected out= to be a function, or a dict of functions, got {out!r}")
        return GridOp(_label_of(fn, name), fn, rules)

    return _decorated("grid", function, decorate)


def tune(choices: Sequence[dict[str, Any]], key: Callable | None = None) -> Callable:
    """Let settings of an op of :func:`grid` be chosen by measurement, among stated ones; a decorator over it.

    The first call with operands of another form times every choice, a few runs each, and takes the fastest. It is
    remembered on disk for this processor, number of threads, kernel, sizes, layouts and dtypes. A setting that a choice
    has takes the place of what the call gives.

    Args:
        choices: settings by name.
        key: a function of operands, by their names, whose value stands for sizes and layouts; by default all of them.

    Raises:
        TypeError: it is not over an op of ``grid``, or a choice names no setting.
        ValueError: there are no choices.

    Example:
        >>> @taeda.kernel.tune([{"block": 256}, {"block": 1024}], key=lambda x: x.shape[0] > 1000)
        ... @taeda.kernel.grid(name="doc::triple", out=lambda x: x)
        ... def triple(x, out, block=64):
        ...     i = taeda.kernel.tiles(out.shape[0], block)
        ...     out[i] = 3 * x[i]
        >>> triple(taeda.tensor([1.0, 2.0]))
        tensor([3., 6.])
    """
    stated = [dict(c) for c in choices]
    if not stated:
        raise ValueError("kernel.tune: expected at least one choice of settings, got none")

    def decorate(op: GridOp) -> GridOp:
        if not isinstance(op, GridOp):
            raise TypeError(f"kernel.tune: expected an op of kernel.grid, got {type(op).__name__}")
        for choice in stated:
            for n, x in choice.items():
                if type(x) is not type(op._given.settings.get(n)):
                    known = ", ".join(f"{n}: {type(v).__name__}" for n, v in op._given.settings.items()) or "none"
                    raise TypeError(f"kernel.tune: {op._label} has the settings {known}, and a choice has {n}={x!r}")
        op._planned.clear()
        op._choices, op._key = stated, None if key is None else (key, _asked(key, "key", op._given, op._label))
        return op

    return decorate


__all__ = ["GridOp", "Tile", "grid", "tune"]
