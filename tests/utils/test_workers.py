"""Worker processes of the DataLoader and taeda.multiprocessing: deaths, errors, what is left behind, start methods."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import in_processes
import pytest

import taeda
from taeda import multiprocessing as mp
from taeda.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info
from taeda.utils.data._utils import processes

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A worker that ends by itself has time for it, however busy the machine: its exit code is 0."""
    monkeypatch.setattr(processes, "_PATIENCE", 200)


class Made(Dataset):
    """Samples made by a function of the index."""

    def __init__(self, make, n=20):
        self.make = make
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.make(i)


def alone(x):
    return x


def pair(i):
    return taeda.full((300,), float(i)), i


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method):
    data = TensorDataset(taeda.arange(10.0), taeda.arange(10))
    loader = DataLoader(data, 4, num_workers=1, multiprocessing_context=method)
    assert [x.tolist() for x, _ in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert data.tensors[0].is_shared() is (method != "fork")  # the dataset's memory is passed, not copied


def test_a_killed_worker_is_reported_before_its_work_ends():
    def slow(i):
        time.sleep(0.05 if i < 4 else 10_000)  # who waits for that is ended by the test's limit
        return i, os.getpid()

    batches = iter(DataLoader(Made(slow), 1, num_workers=2, multiprocessing_context="fork"))
    pid = int(next(batches)[1])
    next(batches)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=rf"\(pid {pid}\) is killed by signal: Killed"):
        for _ in range(4):
            next(batches)
    with pytest.raises(RuntimeError, match="killed"):
        next(batches)


def test_a_worker_that_exits():
    batches = iter(DataLoader(Made(lambda i: os._exit(3)), num_workers=1, multiprocessing_context="fork"))
    with pytest.raises(RuntimeError, match="exited unexpectedly with code 3"):
        next(batches)


def test_timeout():
    batches = iter(
        DataLoader(Made(lambda i: time.sleep(10_000)), num_workers=1, timeout=0.1, multiprocessing_context="fork")
    )
    with pytest.raises(RuntimeError, match=r"timed out after 0\.1 seconds"):
        next(batches)
    for w in batches._workers:
        w.process.kill()


def test_what_cannot_be_sent_is_an_error_in_the_loader():
    batches = iter(DataLoader(Made(lambda i: alone), num_workers=1, collate_fn=lambda b: (x for x in b)))
    with pytest.raises(TypeError, match="generator"):
        next(batches)
    graph = DataLoader(Made(lambda i: taeda.ones(2, requires_grad=True) * 2), num_workers=1)
    with pytest.raises(RuntimeError, match="recorded operations"):
        next(iter(graph))


def test_batches_keep_their_memory_and_reuse_it():
    loader = DataLoader(Made(pair, 200), 2, num_workers=2)
    batches = list(loader)  # more than are held in shared memory at a time
    assert [x[0, 0].item() for x, _ in batches] == list(range(0, 200, 2))
    assert [x[1, 299].item() for x, _ in batches] == list(range(1, 200, 2))
    iterator = iter(loader)
    seen = [next(iterator)[0].data_ptr() for _ in range(100)]
    assert len(set(seen)) < 20
    for x, _ in loader:
        x.add_(1)  # writing to a batch is the user's right
        assert x[0, 0].item() % 2 == 1


def test_every_kind_of_value_arrives():
    import numpy as np

    def sample(i):
        return {
            "bfloat16": taeda.ones(2, dtype=taeda.bfloat16),
            "empty": taeda.empty(0, 3),
            "transposed": taeda.arange(6).reshape(2, 3).t(),
            "row": taeda.arange(100).reshape(10, 10)[3],
            "parameter": taeda.nn.Parameter(taeda.ones(2)),
            "array": np.arange(5),
            "text": "x" * 100_000,
            "many": [taeda.tensor(float(k)) for k in range(300)],
            "scalar": taeda.tensor(3),
            "bytes": b"abc",
        }

    for got in DataLoader(Made(sample, 3), None, num_workers=1, collate_fn=alone, multiprocessing_context="fork"):
        want = sample(0)
        assert got.keys() == want.keys()
        for name in ("bfloat16", "empty", "transposed", "row", "parameter", "scalar"):
            assert type(got[name]) is type(want[name])
            assert got[name].dtype is want[name].dtype and got[name].stride() == want[name].stride()
            assert got[name].requires_grad is want[name].requires_grad
            assert got[name].tolist() == want[name].tolist()
        assert got["array"].tolist() == [0, 1, 2, 3, 4] and got["array"].flags.writeable
        assert (got["text"], got["bytes"]) == (want["text"], b"abc")
        assert [x.item() for x in got["many"]] == list(range(300))


def test_two_names_of_one_tensor_stay_one():
    def sample(i):
        x = taeda.zeros(3)
        return x, x, x.view(3, 1)

    x, y, z = next(iter(DataLoader(Made(sample), None, num_workers=1, collate_fn=alone)))
    x[0] = 1
    assert y is x and z[0, 0] == 1


def test_workers_have_one_thread_and_their_info():
    def sample(i):
        info = get_worker_info()
        with pytest.raises(Exception, match="cannot assign"):
            info.id = 3
        return info.id, info.num_workers, taeda.get_num_threads(), len(info.dataset)

    assert get_worker_info() is None
    rows = [
        [x.item() for x in row] for row in DataLoader(Made(sample, 4), num_workers=2, multiprocessing_context="fork")
    ]
    assert rows == [[0, 2, 1, 4], [1, 2, 1, 4], [0, 2, 1, 4], [1, 2, 1, 4]]


def test_large_lists_of_indices_do_not_block():
    loader = DataLoader(range(200_000), 20_000, num_workers=1, prefetch_factor=10, collate_fn=len)
    assert list(loader) == [20_000] * 10


def test_leaving_early_ends_the_workers():
    iterator = iter(DataLoader(Made(pair), num_workers=2))
    next(iterator)
    processes = [w.process for w in iterator._workers]
    del iterator
    assert not any(p.is_alive() for p in processes)


# A worker that does not read the end of its pipe is terminated at last: its exit code is not 0.
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_end_by_themselves_though_newer_ones_hold_their_pipe(method):
    data = TensorDataset(taeda.arange(100.0))
    loader = DataLoader(data, 2, num_workers=2, multiprocessing_context=method)
    older, newer = iter(loader), None
    processes = [w.process for w in older._workers]
    for _ in range(3):
        next(older)
    newer = iter(loader)
    del older
    assert [p.exitcode for p in processes] == [0, 0]
    processes = [w.process for w in newer._workers]
    for _ in range(3):
        next(newer)
    del newer
    assert [p.exitcode for p in processes] == [0, 0]


def test_workers_end_with_a_loader_that_keeps_them():
    loader = DataLoader(Made(pair), num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    assert len(list(loader)) == 20
    processes = [w.process for w in loader._iterator._workers]
    other = iter(DataLoader(Made(pair), num_workers=1, multiprocessing_context="fork"))
    gc.collect()
    gc.disable()
    try:
        del loader
    finally:
        gc.enable()
    assert [p.exitcode for p in processes] == [0, 0]
    assert len(list(other)) == 20


def test_workers_end_after_an_exception_in_the_loop():
    processes, others = [], []
    loader = DataLoader(Made(pair), num_workers=2, multiprocessing_context="fork", pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory"), contextlib.suppress(ValueError):
        iterator = iter(loader)
        processes += (w.process for w in iterator._workers)
        for _ in iterator:
            del iterator
            others.append(iter(loader))
            raise ValueError
    assert [p.exitcode for p in processes] == [0, 0]


def _stay(i):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(10_000 if i else 0)
    return i


def test_a_worker_that_ignores_the_end_is_killed(monkeypatch):
    iterator = iter(DataLoader(Made(_stay), 1, num_workers=1, multiprocessing_context="fork"))
    next(iterator)
    monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    process = iterator._workers[0].process
    del iterator
    process.join(200)
    assert process.exitcode == -signal.SIGKILL


def test_a_handler_of_the_loaders_process_does_not_keep_workers(run_python):
    program = """
import signal
from taeda.utils.data import DataLoader
signal.signal(signal.SIGTERM, lambda *_: None)
batches = iter(DataLoader(range(10), num_workers=1, multiprocessing_context="fork"))
print(next(batches).item())
"""
    assert run_python(program).split() == ["0"]  # and it ends, though the iterator is still there


PROGRAM = """
import os, signal, sys, time, taeda
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from taeda.utils.data import DataLoader
class Slow:
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.01)
        return taeda.zeros(100_000), os.getpid()
it = iter(DataLoader(Slow(), 2, num_workers=2, multiprocessing_context="fork"))
batches = [next(it) for _ in range(4)]
print(*sorted({int(p) for b in batches for p in b[1]}), flush=True)
for batch in it:
    batches.append(batch)
"""


def _files(pid):
    """The files that a process has open, or in its memory."""
    opened = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            opened.append(os.readlink(link))
    return opened + [line.split()[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs /dev/shm")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_the_loader_dies(how):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(p) for p in program.stdout.readline().split()]
    assert len(pids) == 2
    files = {name for pid in (program.pid, *pids) for name in _files(pid) if name.startswith("/dev/shm/")}
    if how == signal.SIGINT:
        os.killpg(program.pid, how)  # as a terminal does
    else:
        program.send_signal(how)
    errors = program.communicate(timeout=200)[1]
    end = time.monotonic() + 200

    def left():
        return [pid for pid in pids if Path(f"/proc/{pid}").exists()], [name for name in files if os.path.exists(name)]

    while any(left()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(left())
    assert errors.count("Traceback") == (1 if how == signal.SIGINT else 0), errors


# ---- multiprocessing -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_in_queues_are_shared(method):
    context = mp.get_context(method)
    queue, answers, received = context.Queue(), context.Queue(), context.Event()
    x, sent = taeda.zeros(2).share_memory_(), taeda.zeros(3)
    running = mp.start_processes(
        in_processes.answer, (x, queue, answers, received), 2, False, True, start_method=method
    )
    queue.put(sent)
    queue.put(sent)
    got = sorted((answers.get(timeout=200) for _ in range(2)), key=lambda item: item[0])
    received.set()
    while not running.join():
        pass
    assert x.tolist() == [1, 1]
    assert sent.tolist() == [20] * 3 and sent.is_shared()
    assert [t.tolist() for _, t, _ in got] == [[20] * 3] * 2
    assert all(type(p) is taeda.nn.Parameter and p.requires_grad for *_, p in got)


def _fail(i):
    if i == 1:
        raise ValueError("in process 1")
    time.sleep(200)


def _kill(i):
    if i == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(200)


def test_spawn_reports_the_first_failure():
    with pytest.raises(mp.ProcessRaisedException, match=r"Process 1 terminated(.|\n)*in process 1") as info:
        mp.start_processes(_fail, nprocs=2, start_method="fork")
    assert info.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with signal SIGKILL") as info:
        mp.start_processes(_kill, nprocs=2, start_method="fork")
    assert info.value.exit_code == -signal.SIGKILL


def _fail_at_length(i):
    raise ValueError("Länge" * 100_000)


@pytest.mark.parametrize("most", [60_000, 10_000_000])
def test_a_report_longer_than_a_pipe(most, monkeypatch):
    monkeypatch.setattr(sys.modules["taeda.multiprocessing.spawn"], "_MOST", most)
    with pytest.raises(mp.ProcessRaisedException, match="LängeLänge"):
        mp.start_processes(_fail_at_length, nprocs=1, start_method="fork")


def test_sharing_moves_views_along():
    x = taeda.arange(6.0).reshape(2, 3)
    row, column = x[1], x[:, 0]
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared() and row.is_shared() and column.is_shared()
    x[1, 0] = 7
    assert row[0] == 7 and column[1] == 7
    before = x.data_ptr()
    assert x.share_memory_().data_ptr() == before
    child = os.fork()
    if child == 0:
        x.zero_()
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [[0] * 3] * 2


def test_a_model_of_many_parameters_needs_few_descriptors():
    model = taeda.nn.Sequential(*(taeda.nn.Linear(4, 4) for _ in range(400)))
    before = len(os.listdir("/proc/self/fd"))
    optimizer = taeda.optim.SGD(model.parameters(), 0.1)
    model.share_memory()
    assert all(p.is_shared() for p in model.parameters())
    assert len(os.listdir("/proc/self/fd")) - before < 10
    model(taeda.ones(1, 4)).sum().backward()
    optimizer.step()


def test_a_graph_does_not_leave_its_process():
    with pytest.raises(RuntimeError, match="refusing to serialize non-leaf"):
        mp.reductions.reduce_tensor(taeda.ones(1, requires_grad=True) * 2)


def test_sharing_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("other")


def _train(i, model):
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        ((model(taeda.ones(4, 2)) - 3) ** 2).mean().backward()
        optimizer.step()


def test_processes_train_one_model():
    model = taeda.nn.Linear(2, 1).share_memory()
    before = model(taeda.ones(1, 2)).item()
    mp.start_processes(_train, (model,), 2, start_method="fork")
    after = model(taeda.ones(1, 2)).item()
    assert abs(after - 3) < abs(before - 3) / 10
