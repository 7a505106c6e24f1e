"""Programs of fx print the same with PyTorch: Nodes, code, names, results."""

import contextlib
import io
import os
import re
import warnings
from pathlib import Path

import pytest

import taeda
from taeda._namespaces import NAMES

PROGRAMS = Path(__file__).parent / "programs"


def _run(path: Path, framework: str) -> list[str]:
    """The lines that a program prints, with ``torch`` for the framework's name."""
    source = re.sub(r"\btorch\b", framework, path.read_text())
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
    return [_plain(line.rstrip().replace("taeda", "torch")) for line in out.getvalue().split("\n")]


def _plain(line: str) -> str:
    """Functions that PyTorch has in its compiled part, by their public names."""
    line = line.replace("torch._C._nn.", "torch.nn.functional.").replace("log_sigmoid", "logsigmoid")
    line = re.sub(r"torch\._C\._(linalg|fft|special)\.\1_", r"torch.\1.", line)
    return re.sub(r"<built-in (?:method|function) (\w+)[^>]*>|<op (\w+)>", r"<\1\2>", line)


@pytest.mark.parametrize(
    "name", ["operations", "arguments", "nodes", "passes", "examples", "features", "tracers", "rewriting"]
)
def test_program(name, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    path = PROGRAMS / f"{name}.py"
    expected, got = _run(path, "torch"), _run(path, "taeda")
    assert len(expected) > 50
    assert [(a, b) for a, b in zip(expected, got, strict=False) if a != b] == []
    assert len(expected) == len(got)
    assert os.listdir(tmp_path) == []


#: Functions that are one here and two in PyTorch, or that PyTorch makes of others: their Nodes have another name.
OTHERS = re.compile(
    r"\.(abs|arc|as_strided_|clip|concat|divide|fix|ger|greater|group_norm|layer_norm|less|lobpcg|max_pool|moveaxis|multiply|"
    r"negative|norm/|not_equal|pca_lowrank|rms_norm|row_stack|segment_reduce|subtract|svd_lowrank|swap|sym_|trapz|"
    r"unravel_index)|nn\.functional\.(\w+_with_indices|grouped_mm|relu_|rrelu_|pdist|sigmoid|tanh|threshold|upsample)|linalg\.(det|"
    r"diagonal|inv|matmul|matrix_exp|matrix_power|svd|pinv|slogdet|vander|norm)|special\."
)


def test_every_function_makes_the_node_that_it_makes_in_pytorch():
    pytest.importorskip("torch")
    for name in NAMES:  # which are attributes once they were asked for
        getattr(taeda, name)
    path = PROGRAMS / "functions.py"
    expected, got = (dict(line.split(" ", 1) for line in _run(path, name) if line) for name in ("torch", "taeda"))
    calls = [k for k, v in expected.items() if v.startswith("call_") and k in got]
    assert len(calls) > 1300
    different = [k for k in calls if expected[k] != got[k]]
    assert [(k, expected[k], got[k]) for k in different if not OTHERS.match(k)] == []
    assert len(different) < 175
