"""The tests that follow from an op's stanza: what every op must do, whatever it computes.

Each ``check_*`` function takes an op of the table and raises AssertionError where the op falls short. They are run over
the whole table by ``tests/ops/test_table.py`` and over a freshly declared op by ``tests/ops/test_new_op.py``.

What is read from the stanza: its parameters and defaults, and the traits ``reference`` (of NumPy: a function, or its name),
``domain`` ((lo, hi), or one pair per operand), ``samples`` (a function from a Maker to a list of (args, kwargs)), ``random``,
``second`` (False: no second derivative) and ``dtypes``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from agree import close

import taeda
from taeda._core import REQUIRED, Op
from taeda._namespaces import complete
from taeda.ops.table import METHODS, OPS

complete()  # ops of modules that are imported when they are first named

FLOATING = "float16 bfloat16 float32 float64".split()
COMPLEX = "complex64 complex128".split()
INTEGER = "uint8 int8 int16 int32 int64 uint16 uint32 uint64".split()
DTYPES = ["bool", *INTEGER, *FLOATING, *COMPLEX]

Args = tuple[tuple, dict[str, Any]]


class Maker:
    """Makes the same operands again for the same seed; the argument of a ``samples`` trait."""

    def __init__(self, dtype: str = "float64", seed: int = 0):
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0) -> taeda.Tensor:
        """Numbers between ``low`` and ``high``; of an integer dtype small positive ones."""
        if self.dtype == "bool":
            array: Any = self.rng.random(shape) < 0.5
        elif self.dtype in INTEGER:
            array = self.rng.integers(1, 8, shape)
        elif self.dtype in COMPLEX:
            array = self.rng.uniform(low, high, shape) + 1j * self.rng.uniform(low, high, shape)
        else:
            array = self.rng.uniform(low, high, shape)
        return taeda.from_numpy(np.asarray(array)).to(getattr(taeda, self.dtype))

    def index(self, *shape: int, high: int) -> taeda.Tensor:
        """Integers in ``[0, high)``."""
        return taeda.from_numpy(np.asarray(self.rng.integers(0, high, shape)))

    def mask(self, *shape: int) -> taeda.Tensor:
        """Random truth values."""
        return taeda.from_numpy(np.asarray(self.rng.random(shape) < 0.5))


# ---- which ops -----------------------------------------------------------------------------------------------------


def pointwise_ops() -> dict[str, Op]:
    """The pointwise ops, each under its first name, without the in-place forms."""
    found: dict[int, str] = {}
    for name, op in OPS.items():
        if isinstance(op, Op) and op.traits.get("pointwise") and "functional" not in op.traits:
            found.setdefault(id(op), name)
    return {name: OPS[name] for name in found.values()}


def public_ops() -> dict[str, Op]:
    """The other ops that users call, without those that draw numbers."""
    found: dict[int, str] = {}
    for name, op in OPS.items():
        public = name in METHODS or hasattr(taeda, name) or hasattr(taeda.nn.functional, name)
        if not isinstance(op, Op) or op.traits.get("pointwise") or "functional" in op.traits or name.endswith("_"):
            continue
        if public and not op.traits.get("random"):
            found.setdefault(id(op), name)
    return {name: OPS[name] for name in found.values()}


def other_ops() -> dict[str, Op]:
    """The public ops that there are calls of: those with samples, and those whose parameters say enough."""
    return {name: op for name, op in public_ops().items() if samples(op)}


def guesses(op: Op, make: Maker) -> list[Args]:
    """Calls that follow from the names of an op's parameters; none where one of them says too little."""
    values: dict[str, Any] = {
        "input": lambda: make(3, 4),
        "dim": lambda: 1,
        "dim0": lambda: 0,
        "dim1": lambda: 1,
        "dims": lambda: (1, 0),
        "other": lambda: make(3, 4),
        "tensors": lambda: [make(3, 4), make(3, 4)],
        "k": lambda: 2,
        "descending": lambda: False,
        "mask": lambda: make.mask(3, 4),
        "mat2": lambda: make(4, 2),
        "mean": lambda: make(3, 4),
        "correction": lambda: 1,
        "normalized_shape": lambda: (4,),
    }
    required = [p for p, d in zip(op.params, op.defaults, strict=True) if d is REQUIRED]
    if any(p not in values for p in required):
        return []
    calls: list[Args] = [((), {p: values[p]() for p in required})]
    optional = [p for p in op.params if p not in required and p in ("dim", "keepdim")]
    if optional:
        calls.append(((), {**{p: values[p]() for p in required}, **dict(zip(optional, (-1, True), strict=False))}))
    first = op.params[0]
    return [((kwargs.pop(first),), kwargs) if first in kwargs else (args, kwargs) for args, kwargs in calls]


#: Ops whose parameters have the names that samples are guessed from, but take other arguments; their own tests call
#: them.
OTHERWISE = {
    "view": "sizes", "view_as_real": "a complex tensor", "view_as_complex": "pairs", "_int_mm": "int8",
    "matrix_exp": "square matrices",
}  # fmt: skip


def _domain(op: Op, i: int) -> tuple[float, float]:
    domain = op.traits.get("domain") or (-2.0, 2.0)
    if isinstance(domain[0], tuple | list):
        domain = domain[min(i, len(domain) - 1)]
    low, high = domain
    return max(low, -4.0 if high > -4.0 else low), min(high, 4.0 if low < 4.0 else high)


def operands(op: Op, make: Maker, *shapes: tuple[int, ...]) -> list[taeda.Tensor]:
    """One tensor per operand of a pointwise op, inside its domain; the shapes are used in turn."""
    made = []
    for i, name in enumerate(op.params[: op.traits["operands"]]):
        shape = shapes[i % len(shapes)]
        low, high = _domain(op, i)
        if name in ("mask", "condition"):
            made.append(make.mask(*shape))
        else:
            made.append(make(*(() if name == "value" else shape), low=low, high=high))
    return made


def needs_attributes(op: Op) -> bool:
    """Whether a pointwise op cannot be called with its operands alone."""
    return any(d is REQUIRED for d in op.defaults[op.traits["operands"] :])


def samples(op: Op, dtype: str = "float64") -> list[Args]:
    """Calls of ``op``: the stanza's, or for a pointwise op calls that follow from its operands."""
    make = Maker(dtype)
    if "samples" in op.traits:
        return list(op.traits["samples"](make))
    if not op.traits.get("pointwise"):
        return [] if op.name in OTHERWISE else guesses(op, make)
    if needs_attributes(op):
        return []
    return [
        (tuple(operands(op, make, (3, 4))), {}),
        (tuple(operands(op, make, (2, 1, 3), (4, 1))), {}),
        (tuple(operands(op, make, ())), {}),
    ]


def accepts(op: Op, dtype: str) -> bool:
    """Whether ``op`` computes on ``dtype``; a refusal must be a RuntimeError, NotImplementedError or TypeError."""
    calls = samples(op, dtype)
    if not calls:
        return False
    args, kwargs = calls[0]
    try:
        op(*args, **kwargs)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return False
    return True


# ---- comparing -----------------------------------------------------------------------------------------------------


def _results(result: Any) -> list[taeda.Tensor]:
    if isinstance(result, taeda.Tensor):
        return [result]
    return [r for r in result if isinstance(r, taeda.Tensor)] if isinstance(result, list | tuple) else []


def assert_close(a: Any, b: Any, what: str, tolerance: float = 1e-5) -> None:
    """Equal dtypes and shapes, and values up to the order of sums."""
    close(_results(a), _results(b), what, tolerance, tolerance)


def array(t: taeda.Tensor) -> np.ndarray:
    """The values of ``t``; the small floats as float32."""
    t = t.detach()
    return (t.float() if t.dtype in (taeda.float16, taeda.bfloat16) else t).numpy()


def assert_same(a: Any, b: Any, what: str) -> None:
    """Equal dtypes, shapes and bits (any NaN equals any other)."""
    close(_results(a), _results(b), what, 0, 0)


# ---- the checks of pointwise ops -----------------------------------------------------------------------------------


def check_value(op: Op) -> None:
    """Check float64 and float32 results against the reference."""
    reference = op.traits["reference"]
    reference = getattr(np, reference) if isinstance(reference, str) else reference
    for dtype, tolerance in (("float64", 1e-12), ("float32", 2e-6)):
        for args, kwargs in samples(op, dtype):
            got = op(*args, **kwargs)
            with np.errstate(all="ignore"):
                want = reference(*[array(a).astype(np.float64) if isinstance(a, taeda.Tensor) else a for a in args])
            for g, w in zip(_results(got), want if isinstance(want, tuple) else (want,), strict=True):
                np.testing.assert_allclose(array(g), w, rtol=tolerance, atol=tolerance, err_msg=f"{op.name} {dtype}")


def check_dtypes(op: Op) -> None:
    """Every dtype gives a result or a Python exception; float16 and bfloat16 give the rounded float32 result."""
    accepted = [d for d in DTYPES if accepts(op, d)]
    assert accepted, f"{op.name} refuses every dtype"
    for dtype in accepted:
        for args, kwargs in samples(op, dtype):
            result = _results(op(*args, **kwargs))
            if dtype not in ("float16", "bfloat16") or op.traits.get("native"):
                continue
            wide = [a.float() if isinstance(a, taeda.Tensor) and a.is_floating_point() else a for a in args]
            for small, large in zip(result, _results(op(*wide, **kwargs)), strict=True):
                if small.is_floating_point():
                    assert small.dtype == getattr(taeda, dtype), f"{op.name}: {dtype} gives {small.dtype}"
                    assert_same(small, large.to(small.dtype), f"{op.name} {dtype}")


def check_layouts(op: Op) -> None:
    """Strides do not matter: transposed, stepped, reversed and expanded operands give the bits of contiguous ones."""
    dtype = "float32" if accepts(op, "float32") else next(d for d in DTYPES if accepts(op, d))
    xs = operands(op, Maker(dtype), (5, 7))
    want = op(*xs)

    def form(f: Any) -> list[taeda.Tensor]:
        return [f(x) if x.dim() else x for x in xs]

    transposed = form(lambda x: x.t().contiguous().t())
    assert_same(op(*transposed), want, f"{op.name} transposed")
    assert_same(op(*form(lambda x: taeda.stack([x, x], 2).reshape(5, 14)[:, ::2])), want, f"{op.name} stepped")
    assert_same(op(*form(lambda x: x.flip(0, 1)[::-1, ::-1])), want, f"{op.name} reversed")
    assert_same(op(xs[0], *transposed[1:]), want, f"{op.name} mixed")
    rows, copies = form(lambda x: x[:1].expand(5, 7)), form(lambda x: x[:1].repeat(5, 1))
    assert_same(op(*rows), op(*copies), f"{op.name} expanded")


def check_broadcast(op: Op) -> None:
    """Operands of different shapes meet as their expansions would."""
    dtype = "float64" if accepts(op, "float64") else next(d for d in DTYPES if accepts(op, d))
    xs = operands(op, Maker(dtype), (4, 1, 3), (5, 1), (3,))
    full = taeda.broadcast_tensors(*xs)
    assert_same(op(*xs), op(*[f if x.dim() else x for x, f in zip(xs, full, strict=True)]), f"{op.name} broadcast")
    if sum(x.dim() > 0 for x in xs) > 1:
        try:
            op(*operands(op, Maker(dtype), (2, 3), (4,)))
        except RuntimeError as error:
            assert "4" in str(error) and "3" in str(error), f"{op.name}: {error} does not give the sizes"
        else:
            raise AssertionError(f"{op.name} broadcasts sizes 3 and 4")


def check_empty(op: Op) -> None:
    """No elements in, none out, with the right dtype."""
    dtype = "float32" if accepts(op, "float32") else next(d for d in DTYPES if accepts(op, d))
    full = _results(op(*operands(op, Maker(dtype), (2, 3))))
    for shape in ((0,), (2, 0, 3)):
        for result, like in zip(_results(op(*operands(op, Maker(dtype), shape))), full, strict=True):
            assert result.shape == shape and result.dtype == like.dtype, f"{op.name}: {result.shape} {result.dtype}"


def check_out(op: Op) -> None:
    """``out=`` gives the same values and the same object, whatever its strides; an empty one grows."""
    dtype = "float32" if accepts(op, "float32") else next(d for d in DTYPES if accepts(op, d))
    xs = operands(op, Maker(dtype), (5, 7))
    want = op(*xs)
    if not isinstance(want, taeda.Tensor):
        return
    strided = taeda.empty(7, 5, dtype=want.dtype).t()
    for out in (taeda.empty(5, 7, dtype=want.dtype), strided, taeda.empty(0, dtype=want.dtype)):
        assert op(*xs, out=out) is out
        assert_same(out, want, f"{op.name} out=")
    if want.is_floating_point():
        try:
            op(*xs, out=taeda.empty(5, 7, dtype=taeda.int64))
        except RuntimeError as error:
            assert "cast" in str(error) or "Expected out tensor to have dtype" in str(error)
        else:
            raise AssertionError(f"{op.name} wrote floating point numbers into integers")


def check_inplace(op: Op) -> None:
    """``name_`` changes its first operand, counts a version and gives it back; it does not grow it."""
    form = op.traits["inplace"]
    dtype = "float32" if accepts(op, "float32") else next(d for d in DTYPES if accepts(op, d))
    xs = operands(op, Maker(dtype), (5, 7))
    want = op(*xs)
    if want.dtype != xs[0].dtype and want.dtype != taeda.bool:
        return
    first = xs[0].clone()
    version = first._version
    assert form(first, *xs[1:]) is first
    assert first._version > version
    assert_same(first, want.to(first.dtype), f"{form.name}")
    if sum(x.dim() > 0 for x in xs) > 1:
        try:
            form(xs[0][:1].clone(), *xs[1:])
        except RuntimeError:
            pass
        else:
            raise AssertionError(f"{form.name} grew its first operand")


def check_method(op: Op) -> None:
    """The method is the function."""
    name = op.name.rpartition("::")[2]
    if METHODS.get(name) is not op:
        return
    dtype = "float32" if accepts(op, "float32") else next(d for d in DTYPES if accepts(op, d))
    args, kwargs = samples(op, dtype)[0]
    assert_same(getattr(args[0], name)(*args[1:], **kwargs), op(*args, **kwargs), f"Tensor.{name}")


def check_bad_input(op: Op) -> None:
    """Wrong arguments raise TypeError or RuntimeError with the op's name, and never anything worse."""
    args, kwargs = samples(op, "float32")[0] if accepts(op, "float32") else samples(op, "int64")[0]
    calls: list[Args] = [
        ((), {}),
        (("text", *args[1:]), kwargs),
        (([], *args[1:]), kwargs),
        ((*args, *[1] * 40), kwargs),
        (args, {**kwargs, "no_such_argument": 1}),
    ]
    for bad_args, bad_kwargs in calls:
        try:
            op(*bad_args, **bad_kwargs)
        except (TypeError, RuntimeError, ValueError) as error:
            assert str(error), f"{op.name}: an error without a text"
        else:
            raise AssertionError(f"{op.name} took {bad_args!r} {bad_kwargs!r}")


# ---- the checks of other ops ---------------------------------------------------------------------------------------


def _map(f: Any, call: Args) -> Args:
    """``f`` over every tensor of a call, those in lists too."""

    def one(a: Any) -> Any:
        if isinstance(a, taeda.Tensor):
            return f(a)
        return [one(x) for x in a] if isinstance(a, list) else a

    return tuple(one(a) for a in call[0]), {k: one(v) for k, v in call[1].items()}


def _strided(t: taeda.Tensor) -> taeda.Tensor:
    """The same values with other strides: every second element of something wider, rows from the end."""
    wide = taeda.stack([t, t], t.dim()).flatten(-2)[..., ::2] if t.dim() else t
    return wide.flip(0)[::-1] if t.dim() else wide


def check_sample_layouts(op: Op) -> None:
    """Strides of the inputs do not matter."""
    dtype = "float32" if accepts(op, "float32") else "int64"
    for call in samples(op, dtype):
        want = op(*call[0], **call[1])
        args, kwargs = _map(_strided, call)
        if op.traits.get("view"):
            try:
                assert_close(op(*args, **kwargs), want, f"{op.name} strided")
            except RuntimeError as error:
                assert "view" in str(error) or "stride" in str(error), f"{op.name}: {error}"
        else:
            assert_close(op(*args, **kwargs), want, f"{op.name} strided")


def check_sample_empty(op: Op) -> None:
    """Inputs without elements give a result or a Python exception, never a crash."""
    dtype = "float32" if accepts(op, "float32") else "int64"
    for call in samples(op, dtype):
        for empty in (lambda t: t[:0] if t.dim() else t, lambda t: t[..., :0] if t.dim() else t):
            args, kwargs = _map(empty, call)
            try:
                op(*args, **kwargs)
            except (RuntimeError, IndexError, ValueError) as error:
                assert str(error), f"{op.name}: an error without a text"


def check_sample_out(op: Op) -> None:
    """``out=`` gives the same values in the same object."""
    dtype = "float32" if accepts(op, "float32") else "int64"
    for args, kwargs in samples(op, dtype):
        want = op(*args, **kwargs)
        if isinstance(want, taeda.Tensor):
            for out in (taeda.empty(want.shape, dtype=want.dtype), taeda.empty(0, dtype=want.dtype)):
                assert op(*args, **kwargs, out=out) is out
                assert_close(out, want, f"{op.name} out=", 0)


def check_inputs_kept(op: Op) -> None:
    """An op without an underscore leaves its inputs as they were."""
    dtype = "float32" if accepts(op, "float32") else "int64"
    for call in samples(op, dtype):
        before = _map(lambda t: t.clone(), call)
        versions = _map(lambda t: t._version, call)
        op(*call[0], **call[1])
        assert versions == _map(lambda t: t._version, call), f"{op.name} counts a write to its input"
        for x, y in zip(call[0], before[0], strict=True):
            if isinstance(x, taeda.Tensor):
                assert_same(x, y, f"{op.name}: input")


# ---- gradients -----------------------------------------------------------------------------------------------------


def _leaves(op: Op, args: tuple, kwargs: dict) -> tuple[list[taeda.Tensor], tuple, dict]:
    """Copies of the floating-point tensors among the arguments that require grad, and the arguments with them.

    Arguments whose derivative the op refuses to give are left as they are.
    """
    leaves: list[taeda.Tensor] = []

    def copy(a: Any) -> Any:
        if isinstance(a, taeda.Tensor) and a.is_floating_point():
            leaves.append(a.detach().clone().requires_grad_())
            return leaves[-1]
        if isinstance(a, list | tuple) and a and isinstance(a[0], taeda.Tensor):
            return type(a)([copy(x) for x in a])
        return a

    refused = op.traits.get("no_derivative", ())
    new_args = tuple(a if i in refused else copy(a) for i, a in enumerate(args))
    return leaves, new_args, {k: copy(v) for k, v in kwargs.items()}


def _weighted(result: Any, seed: int = 1) -> taeda.Tensor | None:
    """A random linear combination of everything in ``result`` that has a gradient."""
    rng = np.random.default_rng(seed)
    total = None
    for r in _results(result):
        if r.requires_grad:
            part = (r * taeda.from_numpy(rng.uniform(0.5, 1.5, tuple(r.shape))).to(r.dtype)).sum()
            part = part.real if part.is_complex() else part
            total = part if total is None else total + part
    return total


def _slope(f: Any, leaves: list[taeda.Tensor], directions: list[taeda.Tensor], step: float) -> float:
    """Derivative of ``f()`` along ``directions`` by a central difference of fourth order."""
    values = []
    for k in (-2, -1, 1, 2):
        with taeda.no_grad():
            for x, d in zip(leaves, directions, strict=True):
                x.add_(d, alpha=k * step)
        values.append(f().item())
        with taeda.no_grad():
            for x, d in zip(leaves, directions, strict=True):
                x.sub_(d, alpha=k * step)
    m2, m1, p1, p2 = values
    return (8 * (p1 - m1) - (p2 - m2)) / (12 * step)


def check_gradient(op: Op, second: bool = False) -> None:
    """Check the gradient (or second gradient) along a random direction against finite differences, in float64.

    Inputs that the op declares no derivative for stay where they are.
    """
    recorded = False
    for args, kwargs in samples(op, "float64"):
        leaves, new_args, new_kwargs = _leaves(op, args, kwargs)
        rng = np.random.default_rng(7)

        def value(new_args=new_args, new_kwargs=new_kwargs, leaves=leaves):
            total = _weighted(op(*new_args, **new_kwargs))
            if total is None or not second:
                return total
            grads = taeda.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
            return _weighted([g for g in grads if g is not None], 2)

        total = value()
        if total is None or not total.requires_grad:
            continue
        recorded = True
        grads = taeda.autograd.grad(total, leaves, allow_unused=True)
        pairs = [(x, g) for x, g in zip(leaves, grads, strict=True) if g is not None]
        directions = [taeda.from_numpy(rng.uniform(-1, 1, tuple(x.shape))) for x, _ in pairs]
        ours = sum((g.real * d).sum().item() for (_, g), d in zip(pairs, directions, strict=True))
        moved = [x for x, _ in pairs]
        expected = _slope(lambda value=value: value().detach(), moved, directions, 1e-3 if second else 1e-4)
        scale = max(1.0, abs(expected), abs(ours))
        assert not math.isfinite(expected) or abs(ours - expected) < (1e-5 if second else 1e-6) * scale, (
            f"{op.name}: {'second ' if second else ''}gradient {ours}, by finite differences {expected}"
        )
    assert recorded or second or op.traits.get("no_derivative"), f"{op.name}: no sample has a gradient"


def check_second_gradient(op: Op) -> None:
    """The same for the gradient of the gradient."""
    check_gradient(op, second=True)


def check_gradient_dtype(op: Op) -> None:
    """Check that gradients have the dtype and shape of their tensors, mixed dtypes and broadcasting included."""
    xs = operands(op, Maker("float32"), (2, 3), (3,))
    mixes = not op.traits.get("one_dtype")
    if mixes and len(xs) > 1 and xs[1].is_floating_point() and accepts(op, "float64"):
        xs[1] = xs[1].double()
    leaves, args, _ = _leaves(op, tuple(xs), {})
    total = _weighted(op(*args))
    if total is None:
        return
    for x, g in zip(leaves, taeda.autograd.grad(total, leaves, allow_unused=True), strict=True):
        assert g is None or (g.dtype == x.dtype and g.shape == x.shape), f"{op.name}: {g.dtype} {g.shape} for {x.dtype}"


def checks(op: Op) -> dict[str, Any]:
    """The checks that apply to ``op``, by name."""
    chosen: dict[str, Any] = {}
    pointwise = bool(op.traits.get("pointwise")) and not needs_attributes(op)
    if op.traits.get("random"):
        return chosen
    if "reference" in op.traits and (pointwise or "samples" in op.traits):
        chosen["value"] = check_value
    sampled = not op.traits.get("pointwise") and bool(samples(op))
    if pointwise:
        chosen["dtypes"] = check_dtypes
    if pointwise or sampled:
        chosen["bad_input"] = check_bad_input
        chosen["method"] = check_method
        chosen["inputs_kept"] = check_inputs_kept
    if sampled:
        chosen["layouts"] = check_sample_layouts
        chosen["empty"] = check_sample_empty
        if op.traits.get("has_out"):
            chosen["out"] = check_sample_out
    if pointwise:
        chosen.update(layouts=check_layouts, broadcast=check_broadcast, empty=check_empty, out=check_out)
        if isinstance(op.traits.get("inplace"), Op):
            chosen["inplace"] = check_inplace
    if op.differentiable and (pointwise or sampled) and accepts(op, "float64"):
        chosen["gradient"] = check_gradient
        if pointwise:
            chosen["gradient_dtype"] = check_gradient_dtype
        if op.traits.get("second", True):
            chosen["second_gradient"] = check_second_gradient
    return chosen
