"""Kernels are made once, whichever threads and processes ask."""

import os

import pytest

_AT_ONCE = """
import sys, threading
import taeda
F = taeda.nn.functional
calls = [
    lambda x: F.softmax(x, -1), lambda x: x.sort(0).values, lambda x: x.cumsum(0), lambda x: F.layer_norm(x, (60,)),
    lambda x: F.conv2d(x[None, None], x[None, None, :3, :3]), lambda x: F.avg_pool2d(x[None], 3), lambda x: x @ x.T,
]
x, ready, results = taeda.arange(3000.0).reshape(50, 60).sin(), threading.Barrier(6), []
def run():
    ready.wait()
    results.append([call(x) for call in calls])
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=run) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(results), all(taeda.equal(a, b) for found in results for a, b in zip(found, results[0])))
"""

_FORKS = """
import os, threading
import taeda
thread = threading.Thread(target=lambda: [(taeda.ones(9) * n).sum((), n % 2 > 0) + taeda.full((9,), n) for n in range(9)])
thread.start()
child = os.fork()
if child == 0:
    taeda.set_num_threads(1)
    os._exit(0 if (taeda.ones(8000) * 3).cumsum(0)[-1].item() == 24000 else 1)
thread.join()
print(os.waitpid(child, 0)[1])
"""

_FORKS_DURING_IMPORTS = """
import os, signal, sys, threading, time
import taeda
reached, name = threading.Event(), sys.argv[1]
class Slow:
    def find_spec(self, module, path, target=None):
        if module == name and threading.current_thread() is thread:
            reached.set()
            time.sleep(0.5)
ones = lambda: taeda.ones(8)
use = {
    "numpy": lambda: ones().numpy(),
    "llvmlite": ones,
    "llvmlite.binding": ones,
    "scipy_openblas32": lambda: taeda.linalg.eigvals(taeda.ones(3, 3)),
    "scipy.fft._pocketfft": lambda: taeda.fft.fft(ones()),
    "opt_einsum": lambda: taeda.einsum("a,a,a->a", ones(), ones(), ones()),
}[name]
thread = threading.Thread(target=use)
sys.meta_path.insert(0, Slow())
thread.start()
assert reached.wait(100)
child = os.fork()
if child == 0:
    signal.alarm(60)
    use()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""

_FORKS_DURING_DRAWS = """
import os, signal, threading
import taeda
generator, ended = taeda.Generator(), threading.Event()
def draw():
    while not ended.is_set():
        taeda.rand(1_000_000, generator=generator)
draw_once = lambda: taeda.rand(3, generator=generator)
draw_once()
thread = threading.Thread(target=draw)
thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        draw_once()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
ended.set()
thread.join()
"""


def test_threads_that_need_their_first_kernels_at_once(run_python, tmp_path):
    assert run_python(_AT_ONCE, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["6", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forks_while_a_thread_makes_a_kernel(run_python, tmp_path):
    assert run_python(_FORKS, timeout=250, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "library", ["numpy", "llvmlite", "llvmlite.binding", "scipy_openblas32", "scipy.fft._pocketfft", "opt_einsum"]
)
def test_a_process_that_forks_while_a_thread_imports_a_library(run_python, tmp_path, library):
    pytest.importorskip(library)
    assert run_python(_FORKS_DURING_IMPORTS, library, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forks_while_a_thread_draws(run_python):
    assert run_python(_FORKS_DURING_DRAWS).split() == ["0"] * 10
