"""The stubs say what is so, and type checkers find what they should."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import derived
import pytest

import taeda

PACKAGE = Path(taeda.__file__).parent
PROGRAMS = Path(__file__).parent / "typing"


def declared(stub: str) -> dict[str, str]:
    """What the functions of a stub give, as it is written there; without functions of several forms."""
    tree = ast.parse((PACKAGE / stub).read_text())
    functions = [x for x in tree.body if isinstance(x, ast.FunctionDef) and not x.decorator_list]
    return {x.name: ast.unparse(x.returns) for x in functions if x.returns is not None}


def test_functions_give_what_the_stub_says():
    stub = declared("__init__.pyi")
    checked = 0
    for name, op in derived.other_ops().items():
        for args, kwargs in derived.samples(op)[:1] if name in stub else ():
            result = op(*args, **kwargs)
            if stub[name] == "Tensor":
                assert isinstance(result, taeda.Tensor), name
            elif stub[name].startswith("return_types."):
                assert type(result) is getattr(taeda.return_types, stub[name].removeprefix("return_types.")), name
            elif stub[name].startswith("tuple"):
                assert isinstance(result, tuple | list), name
            checked += 1
    assert checked > 50


def test_every_public_name_has_a_type():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    known = {x.name for x in tree.body if isinstance(x, ast.FunctionDef | ast.ClassDef)}
    known |= {a.asname for x in tree.body if isinstance(x, ast.ImportFrom) for a in x.names if a.asname}
    known |= {x.target.id for x in tree.body if isinstance(x, ast.AnnAssign)}
    names = subprocess.run(  # of a fresh process: modules that a program imports become names as well
        [sys.executable, "-c", "import taeda; print(*dir(taeda))"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {x for x in names if not x.startswith("_")} <= known


def _lines(*command: str, program: str) -> set[int]:
    """The lines of a program that a type checker calls wrong."""
    sources = {} if "site-packages" in PACKAGE.parts else {"MYPYPATH": str(PACKAGE.parent)}
    made = subprocess.run(
        [sys.executable, "-m", *command, program], cwd=PROGRAMS, env=os.environ | sources, capture_output=True,
        text=True, timeout=280,
    )  # fmt: skip
    found = [x for x in made.stdout.splitlines() if f"{program}:" in x and "error" in x]
    assert made.returncode in (0, 1), made.stdout + made.stderr
    return {int(x.split(f"{program}:")[1].split(":")[0]) for x in found}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_find_mistakes_and_nothing_else(checker):
    pytest.importorskip("mypy")
    pytest.importorskip("pyright")
    command = ["mypy", "--config-file", "mypy.ini"] if checker == "mypy" else ["pyright"]
    assert _lines(*command, program="correct.py") == set()
    wrong = (PROGRAMS / "mistakes.py").read_text().splitlines()
    expected = {i for i, line in enumerate(wrong, 1) if line.endswith("# wrong")}
    assert len(expected) >= 20
    assert _lines(*command, program="mistakes.py") == expected


def test_classes_whose_types_have_parameters_take_them():
    assert taeda.utils.data.DistributedSampler[int] and taeda.utils.data.StackDataset[tuple[int, int]]
    assert taeda.nn.DataParallel[taeda.nn.Linear] and taeda.distributions.Independent[taeda.distributions.Normal]
