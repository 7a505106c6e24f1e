"""Facts for a bug report, and a test of this installation: ``python -m taeda``.

python -m taeda              the facts, then a self-test of some 10 seconds; exit code 1 where a part of it fails
python -m taeda --no-test    the facts alone
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import taeda

from . import devices, nn
from .compiler import describe_cache
from .utils.collect_env import get_pretty_env_info

__all__ = ["CHECKS", "facts", "main"]


def facts() -> str:
    """Versions, processor, devices, caches and libraries, as text."""
    lines = [get_pretty_env_info(), f"kernel cache: {describe_cache()}"]
    lines += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(("TAEDA_", "OMP_"))]
    for name in devices.names():
        lines.append(f"device {name}:")
        lines += [f"  {key}: {value}" for key, value in devices.properties(name).items()]
    return "\n".join(lines)


def _same(found: taeda.Tensor, expected: np.ndarray, tolerance: float) -> None:
    worst = float(np.abs(found.detach().double().numpy() - expected).max())
    if not worst <= tolerance:
        raise AssertionError(f"largest difference from NumPy {worst:.3g}, allowed {tolerance:.3g}")


def _builds_kernels() -> None:
    """A process with an empty cache builds the kernels that it needs."""
    code = "import taeda; x = taeda.arange(8.0); assert ((x * 2 + 1).sum() == 64).item(), (x * 2 + 1).sum()"
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        found = os.environ.get("PYTHONPATH")
        env = {**os.environ, "TAEDA_CACHE": folder, "PYTHONPATH": str(root) + (os.pathsep + found if found else "")}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise AssertionError(done.stderr.strip().splitlines()[-1])
        if not list(Path(folder).glob("*/*.o")):
            raise AssertionError(f"no kernel in {folder}")


def _pointwise() -> None:
    x = np.linspace(0.1, 4, 4001)
    for name in ("exp", "log", "sqrt", "sin", "tanh"):
        _same(getattr(taeda, name)(taeda.from_numpy(x)), getattr(np, name)(x), 1e-13)


def _products() -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((1, 7, 3), (33, 65, 129), (256, 300, 200)):
        a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
        _same(taeda.from_numpy(a) @ taeda.from_numpy(b), a @ b, 1e-12 * k)
        _same(taeda.from_numpy(a).float() @ taeda.from_numpy(b).float(), a @ b, 1e-5 * k)


def _convolution() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 5, 11, 12)), rng.standard_normal((4, 5, 3, 3))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w)
    _same(nn.functional.conv2d(taeda.from_numpy(x), taeda.from_numpy(w)), expected, 1e-12)
    _same(nn.functional.conv2d(taeda.from_numpy(x).float(), taeda.from_numpy(w).float()), expected, 1e-4)


def _reductions() -> None:
    x = np.random.default_rng(2).standard_normal((37, 1003))
    t = taeda.from_numpy(x)
    _same(t.sum(1), x.sum(1), 1e-11)
    _same(t.amax(0), x.max(0), 0)
    _same(t.sort(1).values, np.sort(x, 1), 0)
    e = np.exp(x - x.max(1, keepdims=True))
    _same(t.softmax(1), e / e.sum(1, keepdims=True), 1e-14)


def _linalg() -> None:
    a = np.random.default_rng(3).standard_normal((20, 20)) + 20 * np.eye(20)
    _same(taeda.linalg.inv(taeda.from_numpy(a)), np.linalg.inv(a), 1e-13)
    _same(taeda.linalg.svdvals(taeda.from_numpy(a)), np.linalg.svd(a, compute_uv=False), 1e-11)


def _gradients() -> None:
    """Compare the gradients of a small network with finite differences."""
    with taeda.random.fork_rng():
        taeda.manual_seed(0)
        x = taeda.randn(3, 5, dtype=taeda.float64, requires_grad=True)
        w = taeda.randn(4, 5, dtype=taeda.float64, requires_grad=True)
    taeda.autograd.gradcheck(lambda x, w: nn.functional.linear(x, w).tanh().softmax(1).log().sum(), (x, w))


def _random_numbers() -> None:
    """The Mersenne Twister's first numbers for seed 5489 are in the paper's reference output."""
    expected = [n % 2**24 for n in (3499211612, 581869302, 3890346734, 3586334585, 545404204)]
    found = taeda.randint(0, 2**24, (5,), generator=taeda.Generator().manual_seed(5489)).tolist()
    if found != expected:
        raise AssertionError(f"expected {expected}, got {found}")


def _threads() -> None:
    """One thread and several give the same bits."""
    x = taeda.from_numpy(np.random.default_rng(4).standard_normal((301, 4003))).float()
    before, results = taeda.get_num_threads(), []
    try:
        for threads in (1, max(2, before)):
            taeda.set_num_threads(threads)
            results.append([x.sum(), x.exp().mean(0), x @ x[:50].T])
    finally:
        taeda.set_num_threads(before)
    if not all(taeda.equal(a, b) for a, b in zip(*results, strict=True)):
        raise AssertionError(f"1 thread and {max(2, before)} threads give different results")


def _training() -> None:
    """A network learns a parabola, plain and compiled with the same losses."""
    losses = []
    with taeda.random.fork_rng():
        for wrap in (lambda f: f, taeda.compile):
            taeda.manual_seed(0)
            x = taeda.randn(256, 4)
            y = (x**2).sum(1, keepdim=True)
            model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
            optimizer = taeda.optim.Adam(model.parameters(), lr=1e-2)

            def step(model=model, optimizer=optimizer, x=x, y=y) -> taeda.Tensor:
                loss = nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                return loss.detach()

            step = wrap(step)
            losses.append([step().item() for _ in range(150)])
    if losses[0] != losses[1]:
        raise AssertionError(f"last loss {losses[0][-1]}, compiled {losses[1][-1]}")
    if not losses[0][-1] < losses[0][0] / 4:
        raise AssertionError(f"loss {losses[0][0]:.3g} at the beginning, {losses[0][-1]:.3g} at the end")


def _files() -> None:
    model = nn.Linear(3, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        taeda.save(model.state_dict(), path)
        state = taeda.load(path)
    if not all(taeda.equal(t, state[name]) for name, t in model.state_dict().items()):
        raise AssertionError("what was loaded is not what was saved")


def _worker_processes() -> None:
    data = taeda.arange(12.0).reshape(6, 2)
    loader = taeda.utils.data.DataLoader(taeda.utils.data.TensorDataset(data), batch_size=2, num_workers=1)
    if not taeda.equal(taeda.cat([batch for (batch,) in loader]), data):
        raise AssertionError("a worker process gave other samples than the data set has")


#: The tests, by name.
CHECKS: dict[str, Callable[[], None]] = {
    "kernels are built": _builds_kernels,
    "pointwise ops": _pointwise,
    "products": _products,
    "convolution": _convolution,
    "reductions, sort, softmax": _reductions,
    "linear algebra (LAPACK)": _linalg,
    "gradients": _gradients,
    "random numbers": _random_numbers,
    "threads": _threads,
    "training, also compiled": _training,
    "files": _files,
    "worker processes": _worker_processes,
}


def main(args: list[str] | None = None) -> int:
    """Print the report.

    Args:
        args: of the command line, without the program's name.
    Returns:
        The number of parts of the self-test that failed.
    """
    parser = argparse.ArgumentParser(prog="python -m taeda", description="Facts for a bug report, and a self-test.")
    parser.add_argument("--no-test", action="store_true", help="the facts alone")
    chosen = parser.parse_args(args)
    print(facts(), flush=True)
    if chosen.no_test:
        return 0
    failed, begun = 0, time.perf_counter()
    print("self-test:")
    for name, check in CHECKS.items():
        print(f"  {name:26}", end="", flush=True)
        start, said = time.perf_counter(), "ok"
        try:
            check()
        except Exception as error:
            failed, said = failed + 1, f"FAILED: {type(error).__name__}: {error}"
        print(f"{time.perf_counter() - start:6.2f} s  {said}", flush=True)
    verdict = f"{failed} of {len(CHECKS)} parts FAILED" if failed else f"all {len(CHECKS)} parts passed"
    print(f"{verdict} in {time.perf_counter() - begun:.1f} s")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
