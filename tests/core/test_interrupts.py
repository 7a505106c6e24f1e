"""Ctrl-C, subinterpreters and the environment: what surrounds a program leaves the library as it was."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import taeda


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python raises between __enter__ and the body of a with")
def test_an_interrupt_leaves_no_device_behind():
    def interrupt(*args):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    hits = 0
    try:
        for i in range(1500):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (i % 60 + 1))
                for _ in range(20):
                    with taeda.device("meta"), taeda.device("cpu"), taeda.device("meta"):
                        pass
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                hits += 1
            assert taeda.get_default_device().type == "cpu" and not taeda.ones(1).is_meta
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert hits > 100
    with taeda.device("meta"):
        assert taeda.ones(1).is_meta and taeda.get_default_device().type == "meta"
    with pytest.raises(RuntimeError), taeda.device("cuda"):
        pass
    assert taeda.get_default_device().type == "cpu"


INTERRUPTED = """
import os, signal, sys, threading, time
import taeda
from taeda.nn import functional as F

def interrupt(function, delay=0.5):
    sent = []
    def send():
        time.sleep(delay)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
    try:
        function()
        time.sleep(3 * delay)  # it was faster
    except KeyboardInterrupt:
        pass
    print("waited", time.monotonic() - sent[0])
"""


def test_ctrl_c_while_limits_of_memory_are_read_is_not_lost():
    done = run("""
        from taeda._core import machine

        def interrupted(read=machine.memory):
            machine.memory = read
            raise KeyboardInterrupt

        machine.memory = interrupted
        import taeda

        try:
            for _ in range(1000):
                taeda.ones(100_000)
        except KeyboardInterrupt:
            print("interrupted", machine.memory is not interrupted, taeda.ones(100_000).sum().item())
    """)
    assert done.stdout == "interrupted True 100000.0\n", done.stderr


def test_ctrl_c_does_not_wait_for_a_long_op():
    done = run(
        INTERRUPTED
        + textwrap.dedent("""
        a = taeda.randn(7000, 7000)
        product = taeda.full((7000, 7000), float("nan"))

        def send():  # after a tenth of the product's work or less
            begin = time.process_time()
            while time.process_time() < begin + 0.3:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=send, daemon=True).start()
        try:
            taeda.mm(a, a, out=product)
        except KeyboardInterrupt:
            print("nothing was copied to product:", product.isnan().all().item())

        x, w = taeda.randn(16, 256, 128, 128), taeda.randn(256, 256, 5, 5)
        interrupt(lambda: F.conv2d(x, w))
        step = taeda.compile(lambda a: (a @ a).exp().sum())
        step(a[:8, :8])
        interrupt(lambda: step(a))
        interrupt(lambda: taeda.linalg.svd(a[:1500, :1500]))
        interrupt(lambda: taeda.sort(taeda.rand(30_000_000)), 1)
        interrupt(lambda: taeda.fft.fft(taeda.rand(8_000_009)), 1)
        x = taeda.ones(1 << 20).add_(1)
        print(x.sum().item(), taeda.linalg.svdvals(taeda.eye(400)).sum().item())
        sys.exit(0)  # Python's own code is -2 where the interrupt fell into exec() of a string, as in making a dataclass
        """)
    )
    assert done.returncode == 0, done.stderr
    left, *waits, sums = done.stdout.splitlines()
    assert left.endswith("True") and len(waits) == 5, done.stdout
    assert sums == f"{2.0 * (1 << 20)} 400.0"


def test_an_interrupted_write_is_seen_and_another_handler_waits_for_the_op():
    done = run(
        INTERRUPTED
        + textwrap.dedent("""
        x, w = taeda.rand(100_000_000), taeda.ones(1, requires_grad=True)
        y = (w * x).sum()
        interrupt(lambda: [x.lgamma_() for _ in range(20)])
        try:
            y.backward()
        except RuntimeError as error:
            print("modified by an inplace operation" in str(error))

        heard = []
        signal.signal(signal.SIGINT, lambda *_: heard.append(x[-1].item()))
        x.fill_(0.5)
        interrupt(lambda: x.lgamma_(), 0.1)
        print(heard == [x[0].item()] and x.min().item() == x.max().item())
        """)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1::2] == ["True", "True"], done.stdout


#: Loops that are no launch of many pieces: what is called, its arguments for ``n``, and an ``n`` for seconds.
SERIAL = {
    "tolist": ("taeda.Tensor.tolist", "taeda.rand(n)", 80_000_000),
    "tolist of rows": ("taeda.Tensor.tolist", "taeda.zeros(n, 3)", 12_000_000),
    "tensor of a list": ("taeda.tensor", "[1.0] * n", 120_000_000),
    "tensor of rows": ("taeda.tensor", "[[1, 2]] * n", 30_000_000),
    "randperm": ("taeda.randperm", "n", 150_000_000),
    "poisson": ("taeda.poisson", "taeda.full((n,), 3.0)", 50_000_000),
    "gamma": ("taeda._standard_gamma", "taeda.full((n,), 3.0)", 50_000_000),
    "binomial": ("taeda.binomial", "taeda.full((n,), 30.0), taeda.full((n,), 0.5)", 30_000_000),
    "multinomial": ("taeda.multinomial", "taeda.rand(n // 50 + 1), n, True", 50_000_000),
    "median": ("taeda.median", "taeda.rand(n)", 120_000_000),
    "kthvalue": ("taeda.kthvalue", "taeda.rand(n), n // 2", 120_000_000),
    "scatter_add": (
        "taeda.Tensor.scatter_add_", "taeda.zeros(n), 0, taeda.randint(0, n, (n,)), taeda.ones(1).expand(n)", 90_000_000
    ),
    "index_add": (
        "taeda.Tensor.index_add_", "taeda.zeros(n), 0, taeda.randint(0, n, (n,)), taeda.ones(1).expand(n)", 90_000_000
    ),
    "bincount": ("taeda.bincount", "taeda.randint(0, n, (n,))", 90_000_000),
    "unbind": ("taeda.Tensor.unbind", "taeda.empty(0).expand(n, 0)", 12_000_000),
    "split": ("taeda.split", "taeda.empty(0).expand(n, 0), 1", 10_000_000),
    "sparse.mm": ("taeda.sparse.mm", "taeda.rand(n, n).to_sparse(), taeda.rand(n, 500)", 1500),
}  # fmt: skip

SENDER = """
import os, signal, sys, time
pid, start = int(sys.argv[1]), float(sys.argv[2])

def used():  # seconds of a processor
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

while used() < start + 0.1:
    time.sleep(0.005)
print(used(), flush=True)
os.kill(pid, signal.SIGINT)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the time that a process used is read in /proc")
@pytest.mark.parametrize("name", SERIAL)
def test_ctrl_c_ends_a_serial_loop(name):
    function, made, count = SERIAL[name]
    done = run(
        f"""
        import os, signal, subprocess, sys, time
        import taeda

        signal.signal(signal.SIGINT, signal.default_int_handler)
        taeda.set_num_threads(1)
        made = lambda n: ({made},)
        {function}(*made(100))  # kernels are there then
        given = made({count})
        arguments = [sys.executable, "-S", "-c", {SENDER!r}, str(os.getpid()), str(time.process_time())]
        sender = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        try:
            {function}(*given)
            print("faster")
        except KeyboardInterrupt:
            print(time.process_time() - float(sender.stdout.readline()))
        sys.stdout.flush()
        os._exit(0)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "faster" or float(done.stdout) < 0.8, done.stdout


def test_a_program_ends_while_a_call_is_left_behind():
    code = INTERRUPTED + "a = taeda.randn(1500, 1500)\n"
    assert run(code + "interrupt(lambda: taeda.linalg.svd(a))\nsys.exit(3)").returncode == 3
    assert run(
        code + "threading.Timer(0.5, lambda: os.kill(os.getpid(), 2)).start()\nfor _ in range(100):\n    a.svd()"
    ).returncode


def test_a_subinterpreter_is_refused_and_the_main_one_is_not_harmed():
    pytest.importorskip("_xxsubinterpreters")
    done = run("""
        import sys
        import _xxsubinterpreters as interpreters
        other = interpreters.create()
        try:
            interpreters.run_string(other, f"import sys; sys.path[:] = {sys.path!r}; import taeda")
        except interpreters.RunFailedError as error:
            print(error)
        import taeda
        print((taeda.ones(2, 2) @ taeda.ones(2, 2)).sum().item())
    """)
    assert "ImportError" in done.stdout and "main interpreter" in done.stdout, done
    assert done.stdout.endswith("8.0\n")


def test_a_program_that_sets_no_seed_draws_other_numbers_each_time():
    code = """
        import taeda
        print(taeda.initial_seed())
        print(taeda.rand(3).tolist())
        taeda.manual_seed(taeda.initial_seed())
        print(taeda.rand(3).tolist())
    """
    first, second = (run(code).stdout.splitlines() for _ in range(2))
    assert first[0] != second[0] and first[1] != second[1]
    assert first[1] == first[2]
    assert taeda.Generator().initial_seed() == 67280421310721  # as in PyTorch


@pytest.mark.parametrize("value", ["abc", "-1", "0", "2.5", "4,x", "1,2", " 1 ", ""])
def test_numbers_of_threads_that_are_none_are_told(value):
    done = run("import taeda; taeda.get_num_threads()", OMP_NUM_THREADS=value, TAEDA_NUM_THREADS="")
    told = [line for line in done.stderr.splitlines() if "OMP_NUM_THREADS" in line and "ignored" in line]
    assert len(told) == (value not in ("1,2", " 1 ", "")), done.stderr
    assert all(repr(value) in line for line in told)
