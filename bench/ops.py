"""The sweep over single ops: pointwise, reduction, indexing, sorting, scan, random and copying, at three sizes.

An op is one expression, read by both frameworks. ``run.py --ops`` times them and prints the ratios and their geometric
means by family; ``SLOW`` holds the reason for each op that may stay above twice torch's time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from cases import Case

SIZES = {"8": (2, 4), "4K": (64, 64), "1M": (1024, 1024)}

_ANY = (  # of any number
    "abs neg sign square exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh sigmoid erf erfc ceil floor round trunc "
    "frac deg2rad rad2deg sinc isnan isinf isfinite isposinf isneginf signbit logical_not nan_to_num relu selu i0 sgn "
    "special.ndtr special.i0e special.i1 special.i1e special.log_ndtr special.erfcx special.bessel_j0 special.bessel_j1"
)
_POSITIVE = "sqrt rsqrt reciprocal log log2 log10 log1p lgamma digamma special.entr"
_UNIT = "asin acos atanh logit erfinv"
_ACTIVATIONS = (
    "gelu silu mish elu celu leaky_relu hardtanh relu6 softplus logsigmoid tanhshrink softsign hardsigmoid hardswish "
    "hardshrink softshrink"
)
_BINARY = (
    "add sub mul div maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 copysign nextafter fmod remainder "
    "floor_divide heaviside eq ne lt le gt ge logical_and logical_or logical_xor"
)


def _calls(names: str, arguments: str, prefix: str = "T.") -> dict[str, str]:
    return {name.rpartition(".")[2]: f"{prefix}{name}({arguments})" for name in names.split()}


FAMILIES: dict[str, dict[str, str]] = {
    "pointwise": {
        **_calls(_ANY, "a"),
        **_calls(_POSITIVE, "p"),
        "acosh": "T.acosh(p1)",
        **_calls(_UNIT, "u"),
        **_calls(_ACTIVATIONS, "a", "F."),
        **_calls(_BINARY, "a, b"),
        "a + 1.5": "a + 1.5",
        "2 / a": "2 / a",
        "a > 0": "a > 0",
        "a ** 2": "a**2",
        "a ** 3": "a**3",
        "a ** 0.5": "p**0.5",
        "a ** 2.3": "p**2.3",
        "2 ** a": "2**a",
        "a ** b": "p**b",
        "xlogy": "T.xlogy(a, p)",
        "xlog1py": "T.special.xlog1py(a, p)",
        "row broadcast": "a + v",
        "column broadcast": "a * c",
        "transposed operand": "a + bt",
        "every second column": "a2 + b2",
        "div floor": "T.div(a, b, rounding_mode='floor')",
        "div trunc": "T.div(a, b, rounding_mode='trunc')",
        "clamp": "a.clamp(-1.0, 1.0)",
        "clamp of tensors": "a.clamp(b - 1, b + 1)",
        "lerp": "T.lerp(a, b, 0.3)",
        "lerp of tensors": "T.lerp(a, b, u)",
        "addcmul": "T.addcmul(a, b, u)",
        "addcdiv": "T.addcdiv(a, b, p)",
        "where": "T.where(m, a, b)",
        "where with a number": "T.where(m, a, 0.0)",
        "masked_fill": "a.masked_fill(m, 0.0)",
        "isclose": "T.isclose(a, b)",
        "frexp": "T.frexp(a)",
        "ldexp": "T.ldexp(a, k)",
        "prelu": "F.prelu(a, w1)",
        "threshold": "F.threshold(a, 0.1, 2.0)",
        "glu": "F.glu(a)",
        "polygamma 1": "T.polygamma(1, p)",
        "zeta": "T.special.zeta(p1, p1)",
        "bitwise_and": "k & l",
        "bitwise_not": "~k",
        "left shift": "k << 3",
        "integer add": "k + l",
        "integer mul": "k * l",
        "integer floor_divide": "k // l",
        "integer remainder": "k % l",
        "gcd": "T.gcd(k, l)",
        "lcm": "T.lcm(k, l)",
        "add_": "w.add_(b)",
        "mul_ 1": "w.mul_(1.0)",
        "addcmul_": "w.addcmul_(a, b, value=1e-6)",
        "mse_loss": "F.mse_loss(a, b)",
        "smooth_l1_loss": "F.smooth_l1_loss(a, b)",
        "bce_with_logits": "F.binary_cross_entropy_with_logits(a, u)",
        "kl_div": "F.kl_div(a, u, reduction='batchmean')",
        "dist": "T.dist(a, b)",
    },
    "reduction": {
        **{f"{op}": f"a.{op}()" for op in "sum mean amax amin max min argmax argmin var std norm".split()},
        **{f"{op} 0": f"a.{op}(0)" for op in "sum mean amax max argmax var std logsumexp".split()},
        **{f"{op} 1": f"a.{op}(1)" for op in "sum mean amax max min argmax argmin var std logsumexp".split()},
        "prod": "near.prod()",  # of numbers near 1: a product of normal ones is soon denormal, and then 0
        "prod 0": "near.prod(0)",
        "prod 1": "near.prod(1)",
        "norm 0": "a.norm(dim=0)",
        "norm 1": "a.norm(dim=1)",
        "norm p=1, 1": "a.norm(1, dim=1)",
        "norm p=3, 1": "a.norm(3, dim=1)",
        "norm p=inf": "a.norm(float('inf'))",
        "vector_norm": "T.linalg.vector_norm(a)",
        "aminmax": "T.aminmax(a)",
        "aminmax 1": "T.aminmax(a, dim=1)",
        "var_mean 1": "T.var_mean(a, 1)",
        "nansum": "a.nansum()",
        "nanmean 1": "a.nanmean(1)",
        "any": "m.any()",
        "any 0": "m.any(0)",
        "all 1": "m.all(1)",
        "count_nonzero": "T.count_nonzero(a)",
        "count_nonzero 1": "T.count_nonzero(a, dim=1)",
        "mask sum": "m.sum()",
        "integer sum": "k.sum()",
        "integer sum 1": "k.sum(1)",
        "integer max 1": "k.max(1)",
        "softmax": "a.softmax(-1)",
        "softmax 0": "a.softmax(0)",
        "log_softmax": "a.log_softmax(-1)",
        "equal": "T.equal(a, a1)",
        "allclose": "T.allclose(a, a1)",
        "trace": "T.trace(a)",
        "normalize": "F.normalize(a)",
        "cosine_similarity": "F.cosine_similarity(a, b)",
        "cdist": "T.cdist(a, b)",
        "einsum": "T.einsum('ij,kj->ik', a, b)",
    },
    "indexing": {
        "a[i]": "a[i]",
        "a[:, i]": "a[:, j]",
        "a[i, j]": "a[i, i]",
        "a[mask]": "a[m]",
        "a[i] = b": "w.__setitem__(i, b)",
        "a[mask] = 1": "w.__setitem__(m, 1.0)",
        "index_select 0": "a.index_select(0, i)",
        "index_select 1": "a.index_select(1, j)",
        "gather 0": "a.gather(0, g0)",
        "gather 1": "a.gather(1, g1)",
        "gather of an expanded index": "a.gather(0, i[:, None].expand(rows, cols))",
        "take": "a.take(places)",
        "take_along_dim": "T.take_along_dim(a, g1, 1)",
        "scatter 0": "a.scatter(0, g0, b)",
        "scatter 1": "a.scatter(1, g1, b)",
        "scatter number": "a.scatter(1, g1, 1.0)",
        "scatter_add 0": "a.scatter_add(0, g0, b)",
        "scatter_add 1": "a.scatter_add(1, g1, b)",
        "scatter_add of an expanded index": "a.scatter_add(0, i[:, None].expand(rows, cols), b)",
        "scatter_reduce amax": "a.scatter_reduce(1, g1, b, 'amax')",
        "index_add 0": "a.index_add(0, i, b)",
        "index_add 1": "a.index_add(1, j, b)",
        "index_add of a vector": "flat.index_add(0, places, flat)",
        "index_copy": "a.index_copy(0, i, b)",
        "index_fill": "a.index_fill(0, i, 1.0)",
        "index_put": "a.index_put((i,), b)",
        "index_put accumulate": "a.index_put((i,), b, accumulate=True)",
        "put": "flat.put(places, flat)",
        "masked_select": "a.masked_select(m)",
        "masked_scatter": "a.masked_scatter(m, b)",
        "nonzero": "T.nonzero(m)",
        "argwhere": "T.argwhere(a)",
        "where of one": "T.where(m)",
        "embedding": "F.embedding(j, a)",
        "one_hot": "F.one_hot(i % 16, 16)",
        "bincount": "T.bincount(counts)",
        "bincount weights": "T.bincount(counts, flat)",
        "select": "a[1]",
        "slice": "a[:, 1:3]",
        "a[0] = 1": "w.__setitem__(0, 1.0)",
        "a[:, 1] = v": "w.__setitem__((slice(None), 1), c1)",
        "diagonal": "a.diagonal()",
        "isin": "T.isin(k, few)",
    },
    "sorting": {
        "sort": "a.sort()",
        "sort 0": "a.sort(0)",
        "sort descending": "a.sort(descending=True)",
        "sort all": "flat.sort()",
        "sort integers": "k.sort()",
        "sort sorted": "ordered.sort()",
        "argsort": "a.argsort()",
        "msort": "a.msort()",
        "topk 1": "a.topk(1)",
        "topk 4": "a.topk(4)",
        "topk 4 smallest": "a.topk(4, largest=False)",
        "topk 4 of 0": "a.topk(2, 0)",
        "topk half": "a.topk(cols // 2)",
        "topk 5 of all": "flat.topk(5)",
        "kthvalue": "a.kthvalue(3)",
        "kthvalue of all": "flat.kthvalue(5)",
        "median": "a.median()",
        "median 1": "a.median(1)",
        "nanmedian": "a.nanmedian()",
        "mode": "k.mode()",
        "unique": "k.unique()",
        "unique of floats": "flat.unique()",
        "unique inverse, counts": "k.unique(return_inverse=True, return_counts=True)",
        "unique_consecutive": "T.unique_consecutive(k)",
        "unique rows": "k8.unique(dim=0)",
        "searchsorted": "T.searchsorted(ordered, a)",
        "searchsorted in a vector": "T.searchsorted(ladder, a)",
        "bucketize": "T.bucketize(a, steps)",
        "histc": "T.histc(a, 50)",
        "quantile": "T.quantile(flat, 0.3)",
        "quantile 1": "T.quantile(a, 0.3, dim=1)",
    },
    "scan": {
        **{f"{op} {d}": f"a.{op}({d})" for op in "cumsum cumprod cummax cummin logcumsumexp".split() for d in (0, 1)},
        "cumsum of all": "flat.cumsum(0)",
        "integer cumsum 1": "k.cumsum(1)",
        "mask cumsum 1": "m.cumsum(1)",
        "cumsum_": "w0.cumsum_(1)",
        "diff": "T.diff(a)",
        "trapezoid": "T.trapezoid(a)",
        "cumulative_trapezoid": "T.cumulative_trapezoid(a)",
    },
    "random": {
        "rand": "T.rand(rows, cols)",
        "randn": "T.randn(rows, cols)",
        "randint": "T.randint(0, 100, (rows, cols))",
        "randint, wide": "T.randint(0, 2**40, (rows, cols))",
        "randperm": "T.randperm(n)",
        "rand_like": "T.rand_like(a)",
        "randn_like": "T.randn_like(a)",
        "rand, float64": "T.rand(rows, cols, dtype=T.float64)",
        "randn, float64": "T.randn(rows, cols, dtype=T.float64)",
        "uniform_": "w.uniform_(-1, 1)",
        "normal_": "w.normal_(0, 2)",
        "normal of tensors": "T.normal(a, p)",
        "bernoulli": "T.bernoulli(u)",
        "bernoulli_ 0.3": "w.bernoulli_(0.3)",
        "dropout": "F.dropout(a, 0.3)",
        "exponential_": "w.exponential_()",
        "geometric_": "w.geometric_(0.3)",
        "cauchy_": "w.cauchy_()",
        "log_normal_": "w.log_normal_()",
        "random_": "w.random_(10)",
        "poisson": "T.poisson(p)",
        "multinomial": "T.multinomial(u, 2, replacement=True)",
        "multinomial, distinct": "T.multinomial(u, 2)",
        "multinomial, many": "T.multinomial(u, 2 * cols, replacement=True)",
    },
    "copying": {
        "clone": "a.clone()",
        "copy_": "w.copy_(b)",
        "copy_ of a transpose": "w.copy_(bt)",
        "contiguous transpose": "at.contiguous()",
        "permute 3d": "cube.permute(2, 0, 1).contiguous()",
        "to float64": "a.double()",
        "to bfloat16": "a.bfloat16()",
        "from bfloat16": "h.float()",
        "to int64": "a.long()",
        "from int64": "k.float()",
        "mask to float": "m.float()",
        "cat": "T.cat([a, b])",
        "cat 1": "T.cat([a, b], 1)",
        "stack": "T.stack([a, b])",
        "stack -1": "T.stack([a, b], -1)",
        "cat of 16": "T.cat([a] * 16)",
        "chunk and cat": "T.cat(a.chunk(2, 1))",
        "repeat": "v.repeat(rows, 1)",
        "tile": "T.tile(v, (rows,))",
        "repeat_interleave": "v.repeat_interleave(4)",
        "expand contiguous": "v.expand(rows, cols).contiguous()",
        "flip 0": "a.flip(0)",
        "flip 1": "a.flip(1)",
        "roll": "a.roll(1, 1)",
        "rot90": "a.rot90()",
        "tril": "a.tril()",
        "triu": "a.triu(1)",
        "pad": "F.pad(a, (1, 1))",
        "pad reflect": "F.pad(a[None], (1, 1), mode='reflect')",
        "pad replicate": "F.pad(a[None, None], (1, 1, 1, 1), mode='replicate')",
        "combinations": "T.combinations(v)",
        "fill_": "w.fill_(1.0)",
        "zero_": "w.zero_()",
        "zeros": "T.zeros(rows, cols)",
        "ones": "T.ones(rows, cols)",
        "full": "T.full((rows, cols), 2.0)",
        "arange": "T.arange(n)",
        "arange, float": "T.arange(0.0, n)",
        "linspace": "T.linspace(0, 1, n)",
        "eye": "T.eye(rows)",
        "diag": "T.diag(v)",
        "meshgrid": "T.meshgrid(v, v, indexing='ij')",
        "view": "a.view(-1)",
        "reshape of a transpose": "at.reshape(-1)",
        "unfold": "flat.unfold(0, 4, 2).contiguous()",
    },
}

#: Why an op may stay above twice torch's time; shown with its row.
SLOW: dict[tuple[str, str], str] = {
    ("ldexp", "8"): "six ops: 2 ** other in two factors, as it may overflow where the product does not"
}


@functools.lru_cache(maxsize=100)  # the sets of operands that take turns
def scope(T: Any, size: str, seed: int = 0) -> dict[str, Any]:
    """The names that expressions use; ``a``, ``b``, ``w`` are float32 matrices, ``k``, ``l`` positive integers."""
    rows, cols = SIZES[size]
    n = rows * cols
    T.manual_seed(seed)
    a, b, k, m = T.randn(rows, cols), T.randn(rows, cols), T.randint(1, 1000, (rows, cols)), T.rand(rows, cols) < 0.5
    p = T.rand(rows, cols) + 0.1
    return {
        "T": T,
        "F": T.nn.functional,
        "rows": rows,
        "cols": cols,
        "n": n,
        "a": a,
        "a1": a.clone(),
        "b": b,
        "at": a.t(),
        "bt": T.randn(cols, rows).t(),
        "a2": T.randn(rows, 2 * cols)[:, ::2],
        "b2": T.randn(rows, 2 * cols)[:, ::2],
        "c": T.randn(rows, 1),
        "c1": T.randn(rows),
        "v": T.randn(cols),
        "w": T.randn(rows, cols),
        "w0": T.zeros(rows, cols),
        "w1": T.tensor([0.25]),
        "near": 1 + a / 1000,
        "p": p,
        "p1": p + 1,
        "u": T.rand(rows, cols) * 0.98 + 0.01,
        "m": m,
        "h": a.bfloat16(),
        "k": k,
        "l": T.randint(1, 1000, (rows, cols)),
        "k8": k.reshape(-1, 4) % 4,
        "few": T.tensor([3, 7, 11, 200]),
        "flat": T.randn(n),
        "cube": a.reshape(rows, 2, cols // 2),
        "i": T.randint(0, rows, (rows,)),
        "j": T.randint(0, rows, (cols,)),
        "g0": T.randint(0, rows, (rows, cols)),
        "g1": T.randint(0, cols, (rows, cols)),
        "places": T.randperm(n),
        "counts": T.randint(0, cols, (n,)),
        "ordered": a.sort()[0],
        "ladder": T.randn(1000).sort()[0],
        "steps": T.linspace(-2, 2, 9),
    }


def _maker(expression: str, size: str, inputs: int = 1) -> Callable[[Any], Callable[[], Any]]:
    """``inputs``: how many sets of operands take turns."""

    def make(T: Any) -> Callable[[], Any]:
        calls = [eval(f"lambda: {expression}", scope(T, size, seed)) for seed in range(inputs)]
        following = itertools.cycle(calls).__next__
        return calls[0] if inputs == 1 else lambda: following()()

    return make


def _inputs(family: str, size: str) -> int:
    """100 where algorithms branch on the data and a processor would learn those of a repeated call: PyTorch's median of
    64 x 64 takes 4.9 us for the same numbers again, and 36 for others (Zen 5; here 9.2 and 9.9)."""
    return 100 if (family, size) == ("sorting", "4K") else 1


def op_cases(threads: int) -> list[Case]:
    """A case for each op and size; the group is ``family, size``."""
    return [
        Case(
            f"{family}: {name} [{size}]",
            f"{family}, {size}",
            _maker(expression, size, _inputs(family, size)),
            None,
            threads,
        )
        for size in SIZES
        for family, ops in FAMILIES.items()
        for name, expression in ops.items()
    ]
