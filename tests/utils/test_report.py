"""``python -m taeda``: the report for bug reports, and its self-test."""

import os
import subprocess
import sys

import taeda
from taeda import __main__ as report


def test_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "taeda"], capture_output=True, text=True, env={**os.environ, "TAEDA_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    for fact in (f"taeda version: {taeda.__version__}", "instructions: ", "caches: L1", "numpy: ", "kernel cache: ",
                 "device cpu:", "device meta:", "TAEDA_NUM_THREADS=1"):  # fmt: skip
        assert fact in said
    assert said.count("  ok\n") == len(report.CHECKS)
    assert "worker processes" in said


def test_facts_alone(capsys):
    assert report.main(["--no-test"]) == 0
    assert "self-test" not in capsys.readouterr().out


def test_what_fails_is_said_and_counted(monkeypatch, capsys):
    def wrong():
        report._same(taeda.tensor([1.0, float("nan")]), report.np.array([1.0, 2.0]), 1.0)

    monkeypatch.setattr(report, "CHECKS", {"one": wrong, "other": lambda: None})
    assert report.main([]) == 1
    said = capsys.readouterr().out
    assert "FAILED: AssertionError: largest difference from NumPy nan" in said
    assert "1 of 2 parts FAILED" in said
