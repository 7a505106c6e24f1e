"""Transformations of the database's entries, each against a loop over examples, cotangents or tangents.

python -m tests.conformance.opdb.transforms [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import itertools
import math
import warnings

import torch

import taeda
from taeda.func import batching

from ..trees import rebuilt
from .checks import UNSPECIFIED, Differs, close, describe, explain, name_of, pick, tensors
from .samples import chosen
from .translate import Missing, back, translate

RANDOM = (
    "dropout",
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "uniform",
    "cauchy",
    "geometric",
    "exponential",
    "rrelu",
)
NOT_MAPPED = (
    "item",
    "nonzero",
    "unique",
    "argwhere",
    "masked_select",
    "allclose",
    "equal",
    "bincount",
    "tolist",
    "histc",
    "partial_views",  # reads memory beside the example
)


def is_mapped(op) -> bool:
    """Whether results have sizes that do not depend on values, and no randomness."""
    return not any(word in name_of(op) for word in (*RANDOM, *NOT_MAPPED)) and op.name not in UNSPECIFIED


class Calls:
    """Counts how often an op ran example by example."""

    def __enter__(self):
        self.plain, self.names = batching._by_example, []

        def counted(call):
            self.names.append(call.op.name)
            return self.plain(call)

        batching._by_example = counted
        return self

    def __exit__(self, *_):
        batching._by_example = self.plain


def pairs(op, limit, dtype, requires_grad=False):
    """Two samples of the same sizes and arguments at a time."""
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(pick(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), limit))
    for one, two in zip(*found, strict=False):
        if describe(one) == describe(two):
            yield one, two


def like(framework, t, k: int):
    """Numbers in the form of ``t``, others for each ``k``."""
    wave = [math.cos(1.7 * i + 0.3 + k) for i in range(math.prod(t.shape))]
    made = framework.tensor(wave, dtype=framework.float64).reshape(tuple(t.shape))
    return made.to(t.dtype) * (1 + 0.5j) if t.is_complex() else made.to(t.dtype)


def is_smooth(t) -> bool:
    return t.is_floating_point() or t.is_complex()


class Trial:
    """A function of tensors in one framework, and two examples of each of its arguments; ``smooth`` are differentiated.

    Every transformation has a method of its name, which gives ``(what the transformation gives, what the loop gives)``, the
    latter as a function.
    """

    def __init__(self, framework, function, first, second, smooth):
        self.framework, self.function, self.rows, self.smooth = framework, function, (first, second), smooth

    def results(self, *leaves):
        kind = self.framework.Tensor
        return [t for t in tensors(self.function(*leaves)) if isinstance(t, kind)]

    def stacked(self, dims):
        return [x if d is None else self.framework.stack([x, y]) for x, y, d in zip(*self.rows, dims, strict=True)]

    def rows_of(self, dims):
        return [[x if d is None else y for x, y, d in zip(self.rows[0], row, dims, strict=True)] for row in self.rows]

    def columns(self, results):
        """One result for each example, joined."""
        return [self.framework.stack(list(column)) for column in zip(*results, strict=True)]

    # ---- vmap

    def vmap(self, dims):
        made = self.framework.func.vmap(self.results, in_dims=tuple(dims))(*self.stacked(dims))
        return made, lambda: self.columns([self.results(*row) for row in self.rows_of(dims)])

    def nested(self, outer, inner):
        """``outer`` and ``inner`` are the dimensions of the two vmaps; an argument that both map has four examples."""
        vmap, both = self.framework.func.vmap, []
        for x, y, o, i in zip(*self.rows, outer, inner, strict=True):
            pair = self.framework.stack([x, y])
            both.append(
                self.framework.stack([pair, pair.flip(0)]) if o is not None and i is not None
                else pair if o is not None or i is not None else x
            )  # fmt: skip
        made = vmap(vmap(self.results, in_dims=tuple(inner)), in_dims=tuple(outer))(*both)

        def at(a, b):
            return [
                self.rows[((a if o is not None else 0) + (b if i is not None else 0)) % 2][k]
                for k, (o, i) in enumerate(zip(outer, inner, strict=True))
            ]

        def loop():
            return self.columns([self.columns([self.results(*at(a, b)) for b in (0, 1)]) for a in (0, 1)])

        return made, loop

    # ---- derivatives

    def outputs(self, *leaves):
        return [t for t in self.results(*leaves) if is_smooth(t)]

    def of_smooth(self, row):
        """The function of the arguments that have derivatives, and these."""

        def function(*given):
            leaves = list(row)
            for i, x in zip(self.smooth, given, strict=True):
                leaves[i] = x
            return self.outputs(*leaves)

        return function, [row[i] for i in self.smooth]

    def gradients(self, row, k=0, create=False):
        """Gradients by the graph, for the ``k``-th weights of the results."""
        function, given = self.of_smooth(row)
        given = [x.detach().clone().requires_grad_() for x in given]
        outs = [(o, like(self.framework, o, k + 3 * j)) for j, o in enumerate(function(*given))]
        outs = [(o, w) for o, w in outs if o.requires_grad]
        made = [None] * len(given)
        if outs:
            made = self.framework.autograd.grad(
                [o for o, _ in outs], given, [w for _, w in outs], create_graph=create, allow_unused=True
            )
        return given, [self.framework.zeros_like(x) if g is None else g for x, g in zip(given, made, strict=True)]

    def gradient(self, dims):
        """``vmap(grad)``."""
        places = tuple(self.smooth)

        def loss(*leaves):
            total = 0
            for j, o in enumerate(self.outputs(*leaves)):
                product = o * like(self.framework, o, 3 * j).conj()
                total = total + (product.real if product.is_complex() else product).sum()
            return total

        made = self.framework.func.vmap(self.framework.func.grad(loss, argnums=places), in_dims=tuple(dims))(
            *self.stacked(dims)
        )
        return list(made), lambda: self.columns([self.gradients(row)[1] for row in self.rows_of(dims)])

    def pull(self):
        """``jacrev``: several cotangents at once."""
        function, given = self.of_smooth(self.rows[0])
        outs, pull = self.framework.func.vjp(function, *given)
        rows = [[like(self.framework, o, k + 3 * j) for j, o in enumerate(outs)] for k in (0, 1)]
        made = self.framework.func.vmap(pull)(self.columns(rows))
        return list(made), lambda: self.columns([self.gradients(self.rows[0], k)[1] for k in (0, 1)])

    def tangents(self, k):
        return [like(self.framework, self.rows[0][i], k + 5 * j) for j, i in enumerate(self.smooth)]

    def product(self, a, b):
        """The real inner product of two lists of tensors, and the sum of its terms' sizes."""
        total, size = (self.framework.zeros((), dtype=self.framework.float64) for _ in range(2))
        for x, y in zip(a, b, strict=True):
            part = x.conj() * y
            total, size = total + (part.real if part.is_complex() else part).sum(), size + part.abs().sum()
        return total, size

    def push(self):
        """``jacfwd``: several tangents at once. The loop goes by the graph: an inner product with its gradient."""
        function, given = self.of_smooth(self.rows[0])

        def along(*tangents):
            return self.framework.func.jvp(function, tuple(given), tuple(tangents))[1]

        tangents = [self.tangents(k) for k in (0, 1)]
        made = self.framework.func.vmap(along)(*self.columns(tangents))
        weights = [like(self.framework, m[0], 3 * j) for j, m in enumerate(made)]
        least = min([*made, *given], key=lambda t: t.real.dtype.itemsize).real.dtype  # only so exact are the two
        products = [self.product(weights, [m[k] for m in made]) for k in (0, 1)]
        scale = 1 + sum(size.detach() for _, size in products)  # of the terms, from which the sums' errors come

        def loop():
            gradient = self.gradients(self.rows[0])[1]
            return [self.framework.stack([self.product(gradient, t)[0] / scale for t in tangents]).to(least)]

        return [self.framework.stack([total / scale for total, _ in products]).to(least)], loop

    def second(self):
        """``hessian``: ``jvp`` of ``vjp``, for several tangents at once; the loop goes twice by the graph."""
        function, given = self.of_smooth(self.rows[0])

        def gradient(*x):
            outs, pull = self.framework.func.vjp(function, *x)
            return pull([like(self.framework, o, 3 * j) for j, o in enumerate(outs)])

        def along(*tangents):
            return self.framework.func.jvp(gradient, tuple(given), tuple(tangents))[1]

        tangents = [self.tangents(k) for k in (0, 1)]
        made = self.framework.func.vmap(along)(*self.columns(tangents))

        def loop(t):
            leaves, first = self.gradients(self.rows[0], create=True)
            live = [(g, v) for g, v in zip(first, t, strict=True) if g.requires_grad]
            made = [None] * len(leaves)
            if live:
                made = self.framework.autograd.grad(
                    [g for g, _ in live], leaves, [v for _, v in live], allow_unused=True
                )
            return [self.framework.zeros_like(x) if g is None else g for x, g in zip(leaves, made, strict=True)]

        return self.rounded(made), lambda: self.rounded(self.columns([loop(t) for t in tangents]))

    def rounded(self, results):
        """As exact as the least exact argument."""
        if min(t.real.dtype.itemsize for t in self.rows[0] if is_smooth(t)) == 8:
            return list(results)
        return [t.to(self.framework.complex64 if t.is_complex() else self.framework.float32) for t in results]


def mixes(n: int, every: bool):
    """Which of ``n`` arguments are mapped: all combinations, or some."""
    if every and n <= 4:
        return [[0 if b else None for b in bits] for bits in itertools.product((1, 0), repeat=n) if any(bits)]
    found = [[0] * n]
    if n > 1:
        found += [[0] + [None] * (n - 1), [None] + [0] * (n - 1)]
    return found


def trials(n: int, differentiable: bool, twice: bool, every: bool):
    """The methods of :class:`Trial` to run, with their arguments."""
    for dims in mixes(n, every):
        yield "vmap", (dims,)
    yield "nested", ([0] * n, [0] * n)
    if n > 1:
        yield "nested", ([0] + [None] * (n - 1), [None] + [0] * (n - 1))
    if differentiable:  # with respect to something
        for dims in mixes(n, every)[: None if every else 2]:
            yield "gradient", (dims,)
        yield "pull", ()
        yield "push", ()
        if twice:
            yield "second", ()


def check(op, limit=1, every=False) -> tuple[dict[str, str], set[str]]:
    """The differences, by a label, and the ops that ran example by example. If both frameworks raise, nothing differs."""
    bad: dict[str, str] = {}
    dtypes = op.supported_dtypes("cpu")
    dtype = torch.float64 if torch.float64 in dtypes else next(iter(dtypes), torch.float32)
    try:
        ours = translate(op.op)
    except Missing:
        return {}, set()
    slow: set[str] = set()
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    for one, two in pairs(op, limit, dtype, differentiable):
        if one.kwargs.get("dropout_p"):
            continue  # random
        given = [((s.input, *s.args), dict(s.kwargs)) for s in (one, two)]
        try:
            made = [translate(x) for x in given]
        except (Missing, RuntimeError, BufferError):
            continue
        theirs, mine = [[[t.detach() for t in tensors(list(x))] for x in group] for group in (given, made)]
        smooth = [i for i, t in enumerate(tensors(list(given[0]))) if t.requires_grad]
        if not mine[0] or any(x.dim() > 6 for x in mine[0]):
            continue
        twins = [
            _trial(framework, function, example, leaves, smooth)
            for framework, function, example, leaves in (
                (taeda, ours, made[0], mine), (torch, op.op, given[0], theirs),
            )
        ]  # fmt: skip
        with Calls() as calls:
            compare(bad, describe(one), *twins, trials(len(mine[0]), bool(smooth), op.supports_gradgrad, every))
        slow.update(calls.names)
    return bad, slow


def _trial(framework, function, example, leaves, smooth) -> Trial:
    def call(*values):
        args, kwargs = rebuilt(example, iter(values))
        return function(*args, **kwargs)

    return Trial(framework, call, *leaves, smooth)


def compare(bad: dict, label: str, mine: Trial, theirs: Trial, todo) -> None:
    """Run ``todo`` on one trial in both frameworks; PyTorch's says only whether it raises too."""
    for name, args in todo:
        place = f"{name} {' '.join(''.join('-' if d is None else 'b' for d in dims) for dims in args)} {label}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if name == "vmap" or name == "nested":
                    wanted = mine.results(*mine.rows[0])
                else:
                    wanted = mine.gradients(mine.rows[0])[0] and mine.outputs(*mine.rows[0])
            except Exception:
                continue  # the op itself, which other tests compare
            if not wanted:
                continue
            try:
                got, loop = getattr(mine, name)(*args)
            except Exception as error:
                if not _raises(theirs, name, args):
                    bad[place] = explain(error)
                continue
            try:
                wanted = loop()
            except Exception as error:
                bad[place] = f"the loop: {explain(error)}"
                continue
            try:
                close([g.detach() for g in got], [back(w.detach()) for w in wanted], place)
            except Differs as failure:
                if not (name in ("push", "second") and _agrees(theirs, name, got)):
                    bad[place] = str(failure)


def _agrees(trial: Trial, name: str, got: list) -> bool:
    """Whether PyTorch gives ``got`` too: NaN where the function is NaN, and, for ops that read one triangle of a
    matrix, a gradient whose derivative is not symmetric.
    """
    try:
        close([g.detach() for g in got], [w.detach() for w in getattr(trial, name)()[0]])
    except Exception:
        return False
    return True


def _of_module(framework, module, example, names, n):
    def call(*leaves):
        args, kwargs = rebuilt(example, iter(leaves[:n]))
        return framework.func.functional_call(module, dict(zip(names, leaves[n:], strict=True)), tuple(args), kwargs)

    return call


def check_module(ours, theirs, inputs, our_inputs, every=False) -> dict[str, str]:
    """The differences for a layer, called with its inputs and its parameters as arguments; as :func:`check`."""
    bad: dict[str, str] = {}
    twins = []
    for framework, module, (args, kwargs) in ((taeda, ours, our_inputs), (torch, theirs, inputs)):
        example = list(args), kwargs
        state = {name: t.detach() for name, t in module.named_parameters()}
        given = [t.detach() for t in tensors(list(example))]
        first = [*given, *state.values()]
        second = [x * 0.9 + 0.05 if is_smooth(x) else x for x in first]

        call = _of_module(framework, module, example, tuple(state), len(given))
        twins.append(Trial(framework, call, first, second, [i for i, x in enumerate(first) if is_smooth(x)]))
    m, n = len(given), len(state)
    mapped = [[0] * m + [None] * n, [None] * m + [0] * n] if n else []
    todo = [("vmap", (dims,)) for dims in ([0] * (m + n), *mapped)]
    todo += [("nested", tuple(mapped) or ([0] * m, [0] * m)), ("gradient", ([0] * (m + n),))]
    todo += [("gradient", (dims,)) for dims in mapped[:1]] + [("pull", ()), ("push", ()), ("second", ())]
    compare(bad, type(ours).__name__, *twins, todo if every or not n else [*todo[:2], *todo[3:]])
    return bad


def _raises(trial: Trial, name: str, args: tuple) -> bool:
    try:
        getattr(trial, name)(*args)
    except Exception:
        return True
    return False


def main():
    looped: dict[str, list[str]] = {}
    count = good = 0
    for name, op, limit in chosen():
        if not is_mapped(op):
            continue
        count += 1
        bad, slow = check(op, limit, limit != 1)
        good += not bad
        for op_name in slow:
            looped.setdefault(op_name, []).append(name)
        for label, text in list(bad.items())[:6]:
            print(f"{name}: {label}: {text}"[:420], flush=True)
    print(f"{good} of {count} entries give under every transformation what a loop gives")
    print(f"example by example: {len(looped)} ops")
    for op_name, names in sorted(looped.items(), key=lambda item: -len(item[1])):
        print(f"    {op_name}: {', '.join(names[:6])}")


if __name__ == "__main__":
    main()
