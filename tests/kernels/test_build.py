"""Kernels are made once, whichever threads and processes ask."""

import os
import re
from pathlib import Path

import pytest

from taeda import kernels

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
import logging  # after taeda: forks take its lock first, which what is imported needs
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
    "scipy": lambda: taeda.fft.fft(ones()),
    "scipy.fft._pocketfft": lambda: taeda.fft.fft(ones()),
    "opt_einsum": lambda: taeda.einsum("a,a,a->a", ones(), ones(), ones()),
    "taeda.graph.capture": lambda: taeda.compile(lambda x: x + 1, backend=lambda g, _: g)(ones()),
    "taeda.onnx": lambda: taeda.onnx,
}[name]
thread = threading.Thread(target=use)
sys.meta_path.insert(0, Slow())
thread.start()
assert reached.wait(200)
child = os.fork()
if child == 0:
    signal.alarm(200)
    use()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""

_FORKS_WITH_LOCKS = """
import os, signal, threading
from taeda.kernels.forks import free_in_children
theirs, ours = free_in_children(threading.Lock()), free_in_children(threading.RLock())
held, ended = threading.Event(), threading.Event()
def hold():
    with theirs:
        held.set()
        ended.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
with ours:
    child = os.fork()
if child == 0:
    signal.alarm(200)
    with theirs, ours:
        os._exit(0)
print(os.waitpid(child, 0)[1])
ended.set()
"""

_ENDS_MEANWHILE = """
import atexit, sys, threading, time
if sys.argv[1] == "reads":
    atexit.register(lambda: pending[0].item())  # called after taeda's own
import taeda
from taeda import _core
from taeda.kernels import build
compile, reached, x = build.Compiler.object, threading.Event(), taeda.ones(10_000)
_core.defer_ops(True)
(x + 1)[0].item()
pending = x + 1
def slowly(self, text):
    reached.set()
    time.sleep(0.5)
    code = compile(self, text)
    print("made")
    return code
build.Compiler.object = slowly
def compute():
    _core.defer_ops(True)
    y = x
    for function in (taeda.sin, taeda.cos, taeda.tanh):  # more than one kernel takes
        for _ in range(100):
            y = function(y)
    y[0].item()
threading.Thread(target=compute, daemon=True).start()
reached.wait()
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
        signal.alarm(200)
        draw_once()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
ended.set()
thread.join()
"""


_WHILE_ONE_RUNS = """
import sys, threading, taeda
started, ended, errors = threading.Event(), threading.Event(), []
def second():
    started.wait()
    try:
        x.cumsum(0)
    except BaseException as error:
        errors.append(error)
    ended.set()
def line(frame, event, argument):
    there = frame.f_globals
    if event == "line" and "SCANS" in there and "scan" not in there and not started.is_set():
        started.set()  # the module is half run: what the other thread is to call is not there yet
        ended.wait(0.5)
    return line
def trace(frame, event, argument):
    if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"] == "taeda.kernels.scan":
        return line
x, thread = taeda.ones(3, 5), threading.Thread(target=second)
thread.start()
sys.settrace(trace)
x.cumsum(0)
sys.settrace(None)
thread.join()
print(started.is_set(), errors)
"""

_IN_TWO_ORDERS = """
import sys, threading, time, taeda
reached, name = threading.Event(), "taeda.kernels." + sys.argv[1]
class Slow:
    def find_spec(self, module, path, target=None):
        if module == name and threading.current_thread() is thread:
            reached.set()
            time.sleep(0.5)
def first():
    __import__(name)
    reached.set()
thread = threading.Thread(target=first, daemon=True)
sys.meta_path.insert(0, Slow())
thread.start()
reached.wait()
getattr(taeda.kernels, sys.argv[2]).Function  # runs the module, which imports the other one
print("done")
"""


def test_a_thread_that_needs_a_module_which_another_one_runs(run_python, tmp_path):
    assert run_python(_WHILE_ONE_RUNS, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["True", "[]"]


@pytest.mark.parametrize("module, user", [("rows", "reduce"), ("pipeline", "normalize"), ("online", "softmax")])
def test_a_thread_that_imports_what_another_one_runs(run_python, module, user):
    assert run_python(_IN_TWO_ORDERS, module, user).split() == ["done"]


@pytest.mark.parametrize("last", ["reads", "ends"])
def test_a_process_that_ends_while_a_thread_makes_a_kernel(run_python, tmp_path, last):
    """LLVM is not ended while a daemon thread is in it, and the last thread may still compute."""
    assert run_python(_ENDS_MEANWHILE, last, TAEDA_CACHE=str(tmp_path / "cache")).split()[0] == "made"


def test_what_takes_the_lock_when_it_runs_is_run_with_it():
    """Who imports such a module would have the module's lock first, and who runs another one, which imports it, last."""
    folder = Path(kernels.__file__).parent
    deferred = set(re.findall(r"^(\w+) = _deferred", (folder / "__init__.py").read_text(), re.MULTILINE))
    for path in folder.rglob("*.py"):
        of_kernels = "." * len(path.relative_to(folder).parts)
        used = re.findall(rf"^from {re.escape(of_kernels)}(\w+) import", path.read_text(), re.MULTILINE)
        assert (path.parent == folder and path.stem in deferred) or not deferred & set(used), path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_locks_that_children_find_free(run_python):
    assert run_python(_FORKS_WITH_LOCKS).split() == ["0"]


def test_threads_that_need_their_first_kernels_at_once(run_python, tmp_path):
    assert run_python(_AT_ONCE, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["6", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forks_while_a_thread_makes_a_kernel(run_python, tmp_path):
    assert run_python(_FORKS, timeout=250, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "library",
    (
        "numpy llvmlite llvmlite.binding scipy_openblas32 scipy scipy.fft._pocketfft opt_einsum taeda.graph.capture "
        "taeda.onnx"
    ).split(),
)
def test_a_process_that_forks_while_a_thread_imports(run_python, tmp_path, library):
    pytest.importorskip(library)
    assert run_python(_FORKS_DURING_IMPORTS, library, TAEDA_CACHE=str(tmp_path / "cache")).split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forks_while_a_thread_draws(run_python):
    assert run_python(_FORKS_DURING_DRAWS).split() == ["0"] * 10
