"""The order of the layers, and what `import taeda` may cost: read from the source and from a new interpreter."""

import ast
import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(next(iter(find_spec("taeda").submodule_search_locations)))

#: A layer may import from itself and from those before it. What is named together shares a layer.
ORDER = [["kernels"], ["_core"], ["ops"], ["autograd"], ["nn", "optim", "func"], ["compile", "distributed"]]
LAYER = {name: i for i, names in enumerate(ORDER) for name in names}
PUBLIC = LAYER["nn"]  # from here up, modules are written in the public names of `taeda` itself


def _python_imports(path: Path) -> list[tuple[int, str]]:
    """(line, absolute module name) of every import in ``path``, inside functions too; not those for types."""
    package = ["taeda", *path.relative_to(PACKAGE).parent.parts]
    found = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.extend((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(), str(path)))
    return found


def _cython_imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r"\s*(?:from\s+([\w.]+)\s+c?import|c?import\s+([\w.]+))", line)
        if match:
            name = match[1] or match[2]
            dots = len(name) - len(name.lstrip("."))
            if dots:
                name = ".".join([*["taeda", "_core"][: 3 - dots], *([name[dots:]] if name[dots:] else [])])
            found.append((number, name))
    return found


def _sources() -> list[Path]:
    files = [p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".pyx", ".pxd", ".pxi")]
    return sorted(p for p in files if p.relative_to(PACKAGE).parts[0] in LAYER)


def _violations(path: Path) -> list[str]:
    own = LAYER[path.relative_to(PACKAGE).parts[0]]
    reader = _python_imports if path.suffix == ".py" else _cython_imports
    wrong = []
    for line, name in reader(path):
        parts = name.split(".")
        if parts[0] != "taeda":
            continue
        folder = parts[1] if len(parts) > 1 else ""
        above = LAYER[folder] > own if folder in LAYER else own < PUBLIC
        private_helper = (
            folder.startswith("_") and folder not in LAYER
        )  # taeda/_print.py and the like: below everything
        if above and not private_helper:
            wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    return wrong


def test_every_layer_imports_only_itself_and_what_is_below():
    sources = _sources()
    assert sum(path.suffix == ".py" for path in sources) > 20
    assert [wrong for path in sources for wrong in _violations(path)] == []


def test_a_wrong_import_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "ops").mkdir()
    path = tmp_path / "ops" / "bad.py"
    path.write_text("def f():\n    from ..nn import Linear\n    from .table import x\n    import taeda\n")
    assert _violations(path) == ["ops/bad.py:2 imports taeda.nn.Linear", "ops/bad.py:4 imports taeda"]


def test_kernels_know_nothing_else_of_taeda():
    names = {name for path in _sources() if path.parts[-2] == "kernels" for _, name in _python_imports(path)}
    assert {name for name in names if name.startswith("taeda.") and not name.startswith("taeda.kernels")} == set()


@pytest.fixture(scope="module")
def after_import(tmp_path_factory):
    """What a new interpreter looks like after ``import taeda``."""
    import os
    import subprocess
    import sys

    code = (
        "import json, os, sys, threading\n"
        "before = set(sys.modules)\n"
        "import taeda\n"
        "tasks = len(os.listdir('/proc/self/task')) if os.path.isdir('/proc/self/task') else 1\n"
        "kernels = [n for n, m in sys.modules.items() if n.startswith('taeda.kernels.')\n"
        "           and type(m).__name__ != '_LazyModule']\n"
        "print(json.dumps({'modules': sorted(set(sys.modules) - before), 'tasks': tasks, 'kernels': kernels,\n"
        "                  'threads': threading.active_count()}))"
    )
    path = os.pathsep.join(p for p in (str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")) if p)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("import"),
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "heavy", ["numpy", "llvmlite", "scipy_openblas32", "torch", "matplotlib", "tqdm", "multiprocessing", "asyncio"]
)
def test_import_leaves_heavy_modules_alone(after_import, heavy):
    assert [m for m in after_import["modules"] if m.split(".")[0] == heavy] == []


def test_import_runs_no_kernel_module(after_import):
    assert after_import["kernels"] == []


def test_import_starts_no_thread(after_import):
    assert after_import["tasks"] == 1
    assert after_import["threads"] == 1


def test_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_sources_that_are_not_built_say_so(run_python, tmp_path):
    copied = shutil.copytree(PACKAGE, tmp_path / "taeda", ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c"))
    code = """
try:
    import taeda
except ImportError as error:
    print(error)
"""
    message = run_python(code, PYTHONPATH=str(copied.parent))
    assert str(copied / "_core") in message and "are not built" in message and "pip install -e ." in message
