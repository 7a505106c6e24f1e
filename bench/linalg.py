"""Linear algebra against PyTorch, small and in batches: ``bench/linalg.py [name ...] [--threads n]``.

Each call is timed in both libraries by turns in one process: the fastest of five batches per turn. Printed are the
median times over the turns in microseconds and the median of the ratios taeda / torch.
"""

from __future__ import annotations

import argparse

from worker import by_turns

SHAPES = ((4, 4), (64, 4, 4), (1000, 3, 3), (64, 64), (200, 200))

CALLS = {
    "inv": "T.linalg.inv(A)",
    "solve": "T.linalg.solve(A, B)",
    "det": "T.linalg.det(A)",
    "slogdet": "T.linalg.slogdet(A)",
    "lu_factor": "T.linalg.lu_factor(A)",
    "cholesky": "T.linalg.cholesky(A)",
    "cholesky_solve": "T.cholesky_solve(B, A)",
    "solve_triangular": "T.linalg.solve_triangular(A, B, upper=True)",
    "qr": "T.linalg.qr(A)",
    "eigh": "T.linalg.eigh(A)",
    "eig": "T.linalg.eig(A)",
    "svd": "T.linalg.svd(A)",
    "svdvals": "T.linalg.svdvals(A)",
    "pinv": "T.linalg.pinv(A)",
    "lstsq": "T.linalg.lstsq(A, B)",
    "matrix_norm 2": "T.linalg.matrix_norm(A, 2)",
    "matrix_exp": "T.linalg.matrix_exp(B)",
}


def main() -> None:
    import torch

    import taeda

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    taeda.set_num_threads(options.threads)
    print(f"{'call':18}{'shape':>14}{'taeda us':>12}{'torch us':>12}{'ratio':>8}")
    for name, text in CALLS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        for shape in SHAPES:
            A = torch.randn(shape)
            A = A @ A.mT + shape[-1] * torch.eye(shape[-1])
            B = torch.randn(shape)
            code = compile(text, name, "eval")
            calls = [
                lambda code=code, names={"T": T, "A": a, "B": b}: eval(code, names)
                for T, a, b in ((taeda, taeda.from_dlpack(A), taeda.from_dlpack(B)), (torch, A, B))
            ]
            ours, theirs, ratio = by_turns(*calls, options.turns, 5, 0.004)
            print(
                f"{name:18}{'x'.join(map(str, shape)):>14}{ours * 1e6:12.1f}{theirs * 1e6:12.1f}{ratio:8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
