"""Runs entries in worker processes: a crash or a hang costs that entry alone."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path

import taeda

TESTS = Path(__file__).parents[2]
WORKER = "from conformance.opdb.runner import work; work()"


def work():
    """A worker's loop: a line of JSON in, a line of JSON out."""
    from .checks import check

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a test's output is not an answer
    taeda.set_num_threads(1)
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(check(**task)), file=answers, flush=True)


class Worker:
    """A process that checks one entry at a time, started when first asked and again after it died."""

    def __init__(self, seconds: float = 120):
        self.seconds = seconds
        self.process: subprocess.Popen | None = None

    def start(self):
        home = str(Path(taeda.__file__).parents[1])
        path = os.pathsep.join([home, str(TESTS), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def check(self, name: str, limit: int | None = None) -> dict:
        if self.process is None or self.process.poll() is not None:
            self.start()
        process = self.process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"name": name, "limit": limit}) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            ready = selector.select(self.seconds)
        line = process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        reason = f"no answer in {self.seconds:.0f} s"
        if ready:
            reason = f"the process died with exit code {process.wait()}"
        self.stop()
        return {"op": name, "family": "", "counts": {}, "failures": {"crash": [reason]}, "failed": {"crash": 1}}

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def sweep(names, limit, report=None) -> list[dict]:
    """All of ``names``, one after the other."""
    worker = Worker(1800 if limit is None else 120)
    results = []
    try:
        for name in names:
            start = time.perf_counter()
            results.append(worker.check(name, limit))
            if report:
                report(results[-1], time.perf_counter() - start)
    finally:
        worker.stop()
    return results
