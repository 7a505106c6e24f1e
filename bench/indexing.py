"""Copies, joins, indexing and sorting against PyTorch: ``python bench/indexing.py [name ...] [--threads n]``.

Each expression is timed in both libraries by turns in one process, the fastest of five batches per turn; printed are
the median times and the median of the ratios taeda / torch.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from worker import by_turns

SIZES = {"8": (8, 8), "4K": (64, 64), "1M": (1024, 1024)}

GENERAL = {
    "cat": "T.cat([a, b])",
    "cat dim 1": "T.cat([a, b], 1)",
    "stack": "T.stack([a, b])",
    "clone": "a.clone()",
    "transposed copy": "a.t().contiguous()",
    "to float64": "a.double()",
    "to int64": "a.long()",
    "where": "T.where(m, a, b)",
    "masked_fill": "a.masked_fill(m, 0.0)",
    "masked_select": "a[m]",
    "mask assignment": "w.__setitem__(m, 1.0)",
    "nonzero": "T.nonzero(m)",
    "rows": "a[i]",
    "rows assignment": "w.__setitem__(i, a)",
    "columns": "a[:, i]",
    "pairs": "a[i, i]",
    "index_select 1": "a.index_select(1, i)",
    "gather 0": "a.gather(0, k)",
    "gather 1": "a.gather(1, k)",
    "scatter 1": "w.scatter_(1, k, a)",
    "scatter_add 0": "w.scatter_add_(0, k, a)",
    "scatter_add 1": "w.scatter_add_(1, k, a)",
    "index_add": "w.index_add_(0, i, a)",
    "index_put accumulate": "w.index_put_((i,), a, accumulate=True)",
    "take": "T.take(a, k)",
    "embedding": "F.embedding(k, a)",
    "one_hot": "F.one_hot(i, 16)",
    "sort": "a.sort()",
    "sort dim 0": "a.sort(0)",
    "sort int64": "k.sort()",
    "sort all": "f.sort()",
    "argsort": "a.argsort()",
    "topk 3": "a.topk(3)",
    "topk 3 of all": "f.topk(3)",
    "kthvalue": "a.kthvalue(4)",
    "median": "a.median()",
    "mode": "k.mode()",
    "unique": "k.unique()",
    "unique float": "f.unique()",
    "unique inverse": "k.unique(return_inverse=True)",
    "searchsorted": "T.searchsorted(ordered, a)",
    "bincount": "T.bincount(l)",
    "histc": "T.histc(a, 50)",
    "tril": "a.tril()",
    "flip": "a.flip(0)",
    "flip 1": "a.flip(1)",
    "roll": "a.roll(3, 1)",
    "repeat": "i.repeat(8)",
    "repeat_interleave": "i.repeat_interleave(8)",
    "pad": "F.pad(a, (1, 1))",
    "arange": "T.arange(n)",
    "zeros": "T.zeros(n)",
    "full": "T.full((n,), 3.0)",
    "eye": "T.eye(side)",
}
SKIP = {("embedding", "1M")}  # a gigabyte of result

LARGE = {
    "transposed copy 4096x2048": "q.t().contiguous()",
    "clone 4096x2048": "q.clone()",
    "cat of two 4096x2048": "T.cat([q, q])",
    "embedding 8192 of 50000x128": "F.embedding(ids, table)",
    "embedding gradient": "table.index_add(0, ids, rows)",
    "topk 50 of 50000, 64 rows": "logits.topk(50)",
}


def scope(T: Any, side: int) -> dict[str, Any]:
    """The operands: the same values in either library."""
    T.manual_seed(0)
    n = side * side
    a, b = T.randn(side, side), T.randn(side, side)
    k = T.randint(0, side, (side, side))
    return {
        "T": T,
        "F": T.nn.functional,
        "a": a,
        "b": b,
        "w": a.clone(),
        "f": a.reshape(-1),
        "m": a > 0,
        "i": k[0] % 8,
        "k": k,
        "l": k.reshape(-1),
        "ordered": T.arange(-3.0, 3.0, 0.01),
        "n": n,
        "side": side,
    }


def large(T: Any) -> dict[str, Any]:
    """The operands of the large cases."""
    T.manual_seed(0)
    return {
        "T": T,
        "F": T.nn.functional,
        "q": T.randn(4096, 2048),
        "table": T.randn(50000, 128),
        "ids": T.randint(0, 50000, (8192,)),
        "rows": T.randn(8192, 128),
        "logits": T.randn(64, 50000),
    }


def main() -> None:
    """Print a table of ratios and their geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", nargs="*", help="of 8, 4K, 1M, large")
    options = parser.parse_args()
    import torch

    import taeda

    for T in (torch, taeda):
        T.set_num_threads(options.threads)
    tables = [(label, GENERAL, lambda T, side=shape[0]: scope(T, side)) for label, shape in SIZES.items()]
    tables.append(("large", LARGE, large))
    print(f"{'case':36s} {'size':>6s} {'taeda us':>12s} {'torch us':>12s} {'ratio':>7s}")
    for label, cases, make in tables:
        if options.sizes and label not in options.sizes:
            continue
        scopes = [make(T) for T in (taeda, torch)]
        ratios = []
        for name, expression in cases.items():
            if (options.names and not any(n in name for n in options.names)) or (name, label) in SKIP:
                continue
            functions = [eval(f"lambda: {expression}", s) for s in scopes]
            try:
                mine, theirs, ratio = by_turns(*functions)
            except Exception as error:
                print(f"{name:36s} {label:>6s} {type(error).__name__}: {error}")
                continue
            ratios.append(ratio)
            print(f"{name:36s} {label:>6s} {mine * 1e6:12.2f} {theirs * 1e6:12.2f} {ratio:7.2f}", flush=True)
        if ratios:
            print(
                f"{'geometric mean':36s} {label:>6s} {'':12s} {'':12s} "
                f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):7.2f}"
            )


if __name__ == "__main__":
    main()
