"""Random numbers, data exchange, data loading and files against PyTorch:
``python bench/data.py [name ...] [--threads n]``.

Each expression is timed in both libraries by turns in one process, the fastest of five batches per turn; printed are
the median times and the median of the ratios taeda / torch.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

from worker import by_turns

SIZES = {"8": 8, "4K": 64, "1M": 1024}

RANDOM = {
    "rand": "T.rand(n, n)",
    "rand float64": "T.rand(n, n, dtype=T.float64)",
    "randn": "T.randn(n, n)",
    "randn float64": "T.randn(n, n, dtype=T.float64)",
    "randint": "T.randint(0, 100, (n, n))",
    "randint wide": "T.randint(0, 10**15, (n, n))",
    "randperm": "T.randperm(n * n)",
    "uniform_": "a.uniform_(-1, 1)",
    "normal_ transposed": "a.t().normal_()",
    "bernoulli_": "a.bernoulli_(0.3)",
    "bernoulli": "T.bernoulli(p)",
    "exponential_": "a.exponential_()",
    "geometric_": "a.geometric_(0.3)",
    "cauchy_": "a.cauchy_()",
    "log_normal_": "a.log_normal_()",
    "poisson": "T.poisson(p)",
    "multinomial": "T.multinomial(p, 4, True)",
    "dropout": "F.dropout(p, 0.3)",
}

EXCHANGE = {
    "tensor of a number": "T.tensor(1.5)",
    "tensor of 3 floats": "T.tensor([1.0, 2.0, 3.0])",
    "tensor of 8x8 floats": "T.tensor(rows)",
    "tensor of 10000 ints": "T.tensor(numbers)",
    "tolist 8x8": "a.tolist()",
    "numpy": "a.numpy()",
    "from_numpy": "T.from_numpy(array)",
    "manual_seed": "T.manual_seed(3)",
}

LOADING = {
    "DataLoader, 100 batches of 64": "for _ in loader: pass",
    "DataLoader, shuffled": "for _ in shuffled: pass",
    "DataLoader, collated samples": "for _ in collated: pass",
    "DataLoader, 2 workers": "for _ in kept: pass",
    "DataLoader, 2 workers, collated samples": "for _ in kept_collated: pass",
    "DataLoader, 2 workers, new each pass": "for _ in started: pass",
    "save 2000 tensors": "T.save(state, path)",
    "load 2000 tensors": "T.load(saved)",
    "load 64 MB": "T.load(big)",
    "load 64 MB, mmap": "T.load(big, mmap=True)",
}


def scope(T: Any, n: int) -> dict[str, Any]:
    """Operands of the random cases."""
    T.manual_seed(0)
    return {"T": T, "F": T.nn.functional, "n": n, "a": T.rand(n, n), "p": T.rand(n, n)}


def exchange(T: Any) -> dict[str, Any]:
    """Operands of the exchange cases."""
    import numpy as np

    rows = [[float(i) for i in range(8)] for _ in range(8)]
    return {"T": T, "a": T.tensor(rows), "rows": rows, "numbers": list(range(10000)), "array": np.ones((8, 8))}


def loading(T: Any, folder: Path) -> dict[str, Any]:
    """Operands of the loading cases."""
    data = T.utils.data

    class Samples(data.Dataset):
        def __len__(self) -> int:
            return 6400

        def __getitem__(self, i: int) -> Any:
            return x[i], i

    T.manual_seed(0)
    x, y = T.rand(6400, 20), T.randint(0, 10, (6400,))
    tensors = data.TensorDataset(x, y)
    state = {f"layer{i}.weight": T.rand(8, 8) for i in range(2000)}
    saved, big = folder / f"{T.__name__}.pt", folder / f"{T.__name__}_big.pt"
    T.save(state, saved)
    T.save({"x": T.rand(1 << 24)}, big)
    return {
        "T": T,
        "loader": data.DataLoader(tensors, 64),
        "shuffled": data.DataLoader(tensors, 64, True),
        "collated": data.DataLoader(Samples(), 64),
        "kept": data.DataLoader(tensors, 64, True, num_workers=2, persistent_workers=True),
        "kept_collated": data.DataLoader(Samples(), 64, True, num_workers=2, persistent_workers=True),
        "started": data.DataLoader(tensors, 64, True, num_workers=2),
        "state": state,
        "path": folder / f"{T.__name__}_again.pt",
        "saved": saved,
        "big": big,
    }


def functions(expression: str, scopes: list[dict[str, Any]]) -> list:
    """The expression (or statement) as a function, in each scope."""
    made = []
    for s in scopes:
        exec(f"def f():\n    {expression}", s)
        made.append(s.pop("f"))
    return made


def main() -> None:
    """Print a table of ratios and their geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    import torch

    import taeda

    libraries = (taeda, torch)
    for T in libraries:
        T.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        tables = [(size, RANDOM, [scope(T, n) for T in libraries]) for size, n in SIZES.items()]
        tables.append(("", EXCHANGE, [exchange(T) for T in libraries]))
        tables.append(("", LOADING, [loading(T, Path(name)) for T in libraries]))
        print(f"{'case':40s} {'size':>4s} {'taeda us':>12s} {'torch us':>12s} {'ratio':>7s}")
        for size, cases, scopes in tables:
            ratios = []
            for case, expression in cases.items():
                if options.names and not any(wanted in case for wanted in options.names):
                    continue
                mine, theirs, ratio = by_turns(*functions(expression, scopes))
                ratios.append(ratio)
                print(f"{case:40s} {size:>4s} {mine * 1e6:12.2f} {theirs * 1e6:12.2f} {ratio:7.2f}", flush=True)
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                print(f"{'geometric mean':40s} {size:>4s} {'':12s} {'':12s} {mean:7.2f}")


if __name__ == "__main__":
    main()
