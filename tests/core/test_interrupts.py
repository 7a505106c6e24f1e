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
