"""The order of the layers, and what `import taeda` may cost: read from the source and from a new interpreter."""

import ast
import dis
import fnmatch
import functools
import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import types
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(next(iter(find_spec("taeda").submodule_search_locations)))
SOURCES = Path(__file__).parents[1] / "taeda"  # an installed package has no Cython sources

#: Folders, modules of the root and, where they need less or more than their folder, modules of a folder. A layer may import
#: from itself and from those before it, nothing in a circle.
ORDER = [
    names.split()
    for names in (
        "kernels futures __future__ _docstrings _html _refuse _version _warn utils._layout",
        "_core _no_device _typed version utils._pytree utils.benchmark utils.collect_env",
        "_namespaces _print _schema accelerator mps random storage xpu utils.dot",
        "ops quasirandom",
        "aten array_api autograd backends overrides types fft linalg special sparse signal functional return_types "
        "_foreach devices utils._python_dispatch utils._selective",
        "amp nested testing _settings _asserts cpu cuda",
        "nn optim func masked _masked_tensor _numpy utils.checkpoint",
        "utils aten.spellings distributions io serialization hub multiprocessing jit _compiled",
        "fx profiler utils._calls utils._histograms utils._memory_use utils._summary",
        "graph compiler library kernel _tiles _grid _row _scalars utils._check_step utils._draw utils.cpp_extension",
        "export",
        "distributed onnx",
        "standin __main__ cuda.check",
    )
]
LAYER = {name: i for i, names in enumerate(ORDER) for name in names}
#: Modules that import the root, which hands on names of all layers. The list only shrinks: others import a name's home.
IMPORTING_THE_ROOT = frozenset(
    (
        "_foreach _numpy array_api._arranging array_api._creation array_api._dtypes array_api._elementwise "
        "array_api._reductions array_api.fft array_api.linalg distributed.checkpoint.state_dict "
        "distributed.pipelining.channel distributed.tensor.creation distributed.tensor.dtensor kernel nested.tensor "
        "nn.functional nn.grad nn.init nn.lower onnx.exporting onnx.loading onnx.operators.elementwise "
        "onnx.operators.linear onnx.operators.ml onnx.operators.random onnx.operators.reduction onnx.operators.shape "
        "onnx.operators.trees onnx.ops onnx.translation onnx.values quasirandom sparse storage utils.benchmark.timer"
    ).split()
)


def _layer(module: str) -> int | None:
    """The layer of ``taeda.<module>``: its own, or that of its folder. None: it is in none."""
    while module not in LAYER and "." in module:
        module = module.rpartition(".")[0]
    return LAYER.get(module)


@functools.cache
def _python_imports(path: Path) -> list[tuple[int, str]]:
    """(line, absolute module name) of every import in ``path``, inside functions too; not those for types."""
    package = ["taeda", *path.relative_to(SOURCES).parent.parts]
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
    files = [p for p in SOURCES.rglob("*") if p.suffix in (".py", ".pyx", ".pxd", ".pxi")]
    return sorted(p for p in files if p != SOURCES / "__init__.py")


def _module(path: Path) -> str:
    """The name inside the package of the module in the file ``path``."""
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


def _imports_root(name: str) -> bool:
    """Whether ``name`` is the package, or a name that its ``__init__`` hands on."""
    first, _, rest = name.partition(".")
    return first == "taeda" and rest.partition(".")[0] not in LAYER


def _violations(path: Path) -> list[str]:
    own = _layer(_module(path))
    reader = _python_imports if path.suffix == ".py" else _cython_imports
    if own is None:
        return [f"{path.relative_to(SOURCES)} is in no layer"]
    return [
        f"{path.relative_to(SOURCES)}:{line} imports {name}"
        for line, name in reader(path)
        if name.startswith("taeda.") and not _imports_root(name) and _layer(name.removeprefix("taeda.")) > own
    ]


def test_every_layer_imports_only_itself_and_what_is_below():
    sources = _sources()
    assert sum(path.suffix == ".py" for path in sources) > 20
    assert [wrong for path in sources for wrong in _violations(path)] == []


def test_a_wrong_import_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SOURCES", tmp_path)
    (tmp_path / "ops").mkdir()
    path = tmp_path / "ops" / "bad.py"
    path.write_text("def f():\n    from ..nn import Linear\n    from .table import x\n    from .. import cat\n")
    assert _violations(path) == ["ops/bad.py:2 imports taeda.nn.Linear"]
    assert [name for _, name in _python_imports(path) if _imports_root(name)] == ["taeda.cat"]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "__init__.py").write_text("")
    assert _violations(tmp_path / "new" / "__init__.py") == ["new/__init__.py is in no layer"]


def test_modules_import_the_homes_of_names_and_not_the_root():
    """Above all layers, `standin` and `__main__` may."""
    paths = [p for p in _sources() if p.suffix == ".py" and _layer(_module(p)) < LAYER["standin"]]
    found = {_module(p) for p in paths if any(_imports_root(name) for _, name in _python_imports(p))}
    assert found == IMPORTING_THE_ROOT


def test_what_lies_above_is_loaded_where_it_is_declared():
    """Only :func:`taeda._namespaces.above` imports a module of a higher layer, and each that is declared is asked for."""
    from taeda._namespaces import ABOVE

    call, asked = re.compile(r'\b(?:above|names_of)\("([\w.]+)"'), {}
    for path in _sources():
        if path.suffix == ".py" and "standin" not in path.parts and path.name != "_namespaces.py":
            text, own = path.read_text(), _layer(_module(path))
            for name in re.findall(r'import_module\("taeda\.([\w.]+)"\)', text):
                assert _layer(name) <= own, f"{path}: taeda.{name} lies above; declare it in taeda/_namespaces.py"
            for name in call.findall(text):
                asked.setdefault(name, []).append(_layer(name) > own)
    assert asked.keys() == ABOVE.keys()
    assert {name: found for name, found in asked.items() if not all(found)} == {}


def test_every_layer_is_there():
    modules = {_module(path) for path in _sources()}
    assert [name for name in LAYER if name not in modules and not any(m.startswith(name + ".") for m in modules)] == []


def test_kernels_know_nothing_else_of_taeda():
    names = {name for path in _sources() if path.parts[-2] == "kernels" for _, name in _python_imports(path)}
    assert {name for name in names if name.startswith("taeda.") and not name.startswith("taeda.kernels")} == set()


# ---- circles ------------------------------------------------------------------------------------------------------------

#: Imports that close a circle, each inside a function, and why they stay.
CLOSING = {
    ("taeda.masked", "taeda._masked_tensor"): "the class, which uses the functions, is loaded when it is first named",
    (
        "taeda.kernel",
        "taeda._grid",
    ): "functions over an index space, which use the expressions, are loaded when first named",
    ("taeda.kernel", "taeda._tiles"): "so are their tiles",
    ("taeda.kernel", "taeda._row"): "and one kernel for a row, which is written with tiles",
}
#: Folders that share a layer, and so may import from each other, are one place; `utils` holds things of many layers. In `aten`
#: the names of ops need `ops` alone; the records (`aten.spellings`), which need `nn`, are loaded by the first call.
SHARED = dict.fromkeys(("nn", "optim", "func"), "nn/optim/func")
SHARED["utils.checkpoint"] = SHARED["nn"]  # layers run again what they did, as `checkpoint` does; it knows of `vmap`


def _imports_of_modules() -> dict[str, set[str]]:
    """What each module imports of the package, functions' imports too. The root, which hands names on, is left out."""
    files = {
        ".".join(("taeda", *path.relative_to(SOURCES).with_suffix("").parts)): path
        for kind in ("*.pyx", "*.py")
        for path in SOURCES.rglob(kind)
    }
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}

    def module_of(name: str) -> str:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        return name

    imports = {
        name: {module_of(imported) for _, imported in _python_imports(path)} if path.suffix == ".py" else set()
        for name, path in modules.items()
    }
    del imports["taeda"]
    return {name: found - {name, "", "taeda"} for name, found in imports.items()}


def _circle(imports: dict[str, set[str]]) -> list[str]:
    """Names that import each other in a circle, if there are any."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def _place(module: str) -> str:
    _, folder, *rest = module.split(".")
    place = f"{folder}.{rest[0]}" if folder in ("utils", "aten") and rest else folder
    return SHARED.get(place, place)


def test_no_files_import_each_other_in_a_circle():
    imports = _imports_of_modules()
    for importer, imported in CLOSING:
        imports[importer].remove(imported)
    assert _circle(imports) == []


def test_no_folders_import_each_other_in_a_circle():
    places: dict[str, set[str]] = {}
    for module, imports in _imports_of_modules().items():
        found = {_place(name) for name in imports if (module, name) not in CLOSING}
        places.setdefault(_place(module), set()).update(found - {_place(module)})
    assert _circle(places) == []


def test_a_circle_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SOURCES", tmp_path)
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "a.py").write_text("def f():\n    from .b import g\n")
    (tmp_path / "b.py").write_text("from .a import f\n")
    assert sorted(set(_circle(_imports_of_modules()))) == ["taeda.a", "taeda.b"]


def test_no_files_of_the_benchmarks_import_each_other_in_a_circle():
    paths = {path.stem: path for path in (SOURCES.parent / "bench").glob("*.py")}
    assert len(paths) > 20
    imports: dict[str, set[str]] = {}
    for name, path in paths.items():
        nodes = list(ast.walk(ast.parse(path.read_text())))
        found = {node.module.split(".")[-1] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        found |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names}
        imports[name] = found & set(paths) - {name}
    assert imports["compiled"]  # they are found
    assert _circle(imports) == []


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
        "           and type(m).__name__ != '_Deferred']\n"
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
    # the lock, which has no kernels
    assert sorted(after_import["kernels"]) == ["taeda.kernels.forks"]


def test_import_starts_no_thread(after_import):
    assert after_import["tasks"] == 1
    assert after_import["threads"] == 1


def _core_files() -> list[Path]:
    files = [path for path in sorted((SOURCES / "_core").iterdir()) if path.suffix in (".pyx", ".pxi", ".pxd")]
    assert len(files) > 20
    return files


def test_lines_of_the_core_are_no_longer_than_those_that_ruff_formats():
    lines = [(path, n, line) for path in _core_files() for n, line in enumerate(path.read_text().splitlines(), 1)]
    assert [f"{path.name}:{n}" for path, n, line in lines if len(line) > 120] == []


def test_no_function_of_the_core_has_the_name_of_a_module():
    """Importing the module would put it in the function's place."""
    modules = {
        path.name.split(".")[0] for path in (PACKAGE / "_core").iterdir() if path.suffix in (".py", ".so", ".pyx")
    }
    names = {name.rpartition(".")[2] for _, name in _python_imports(SOURCES / "_core" / "__init__.py")}
    assert names & modules == set()


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


#: How often each file of the core names the place of a tensor in memory (``.raw``): to compare or move places, or for a tensor
#: that was just made. What reads or writes elements asks ``address_of``, which refuses where they are not in memory.
PLACES = {
    "addresses.pxi": 1, "set_data.pxi": 8, "deferred_batch_norm.pyx": 3, "copying.pxi": 3, "fused.pyx": 1, "fusion.pyx": 4,
    "graph.pxi": 1, "guard.pyx": 4, "inplace.pxi": 2, "deferred_cat.pyx": 2, "layout.pxi": 12, "linking.pyx": 1,
    "new_tensor.pxi": 6, "block_copy.pyx": 4, "trace_record.pyx": 7, "plan.pyx": 4, "planning.pyx": 10, "program.pyx": 3,
    "deferred.pyx": 4, "reduce.pyx": 2, "replay.pyx": 1, "rows.pyx": 2, "shared.pyx": 1, "deferred_slices.pyx": 4,
    "tensor.pxd": 4, "tensor.pxi": 2, "recompute.pyx": 3, "views.pxi": 5,
}  # fmt: skip


def test_elements_are_reached_through_the_guard_alone():
    found = {path.name: len(re.findall(r"\.raw\b", path.read_text())) for path in _core_files()}
    assert {name: n for name, n in found.items() if n} == PLACES


def test_the_guards_errors_are_not_swallowed():
    for path in _core_files():
        for function in re.split(r"^(?=cdef |def )", path.read_text(), flags=re.MULTILINE):
            head = function.partition(":\n")[0]
            assert "noexcept" not in head or not re.search(
                r"\b(address_of|address_to_read|stored_at|stored_to_read)\(", function
            ), (path.name, head)


#: A call of a kernel: of a variable, or of a number that is one.
CALL = re.compile(
    r"(?:\b\w*(?:fn|kernel|\]|KERNEL)|kernel_t>[\w.\[\] +]+\))\((?:ptr|pointers|at|own|p|L\.ptr)\b, (?!n|int)[^)]*, "
)
#: What runs kernels itself: the launch, and the fill of memory with random numbers, a block of which is made by several.
LAUNCHING = {"pool.pxd", "pool.pyx", "random.pyx", "attention.pyx"}


def test_kernels_are_run_by_the_launch_alone():
    """``pool.launch`` is the one way to a kernel: what it does not see a plan does not repeat."""
    assert any(CALL.search(path.read_text()) for path in _core_files() if path.name == "pool.pyx")
    for path in _core_files():
        for function in re.split(r"^(?=cdef |def )", path.read_text(), flags=re.MULTILINE):
            piece = "int64_t begin, int64_t end)" in function.partition(":\n")[0]
            if path.name not in LAUNCHING and not piece:
                assert not CALL.search(function), (path.name, CALL.search(function))
            assert "parallel_for(" not in function or path.name in ("pool.pxd", "pool.pyx", "random.pyx"), path.name


#: What keeps kernels itself: the generator, which runs without the GIL, and products, until they look theirs up as well.
KEEPING = {"random.pyx"}
#: Arithmetic of launchers that once had several copies, and where each is.
DEFINED_ONCE = {
    "merge_dims": {"dims.pxd"}, "coalesce": {"layout.pxi"}, "distance": {"dims.pxd"}, "wrap_dim": {"new_tensor.pxi"},
    "ceil_div": {"dims.pxd"}, "launch_units": {"pool.pxd"}, "launch_work": {"pool.pxd"}, "units_in": {"pool.pxd"},
    "grain_of": {"pool.pxd"}, "make_slots": {"slots.pyx"}, "is_last": {"formats.pyx"},
}  # fmt: skip


def test_kernels_are_kept_in_one_table():
    kept = re.compile(
        r"^cdef (?:kernel_t(?:\[\w+\])* \w+(?: = NULL|\[)|dict \w*(?:KERNELS|ADDRESSES|FUSED))", re.MULTILINE
    )
    assert kept.search("cdef kernel_t TABLE[5]") and kept.search("cdef kernel_t fn = NULL")
    found = {path.name for path in _core_files() if kept.search(path.read_text())}
    assert found == KEEPING


#: Caches of ops beside the planner table, and how many there are: constants, libraries and their routines, equations
#: that were parsed, tables of weights, tables of kernels. What a planner works out from forms is `planners.kept`.
CACHES = {"contraction.py": 2, "dropout.py": 1, "einsum.py": 2, "exchange.py": 1, "fft.py": 1,
          "lapack.py": 2, "resample.py": 3, "updates.py": 1, "variates.py": 1}  # fmt: skip


def test_what_planners_work_out_is_kept_in_the_table():
    found = {
        p.name: len(re.findall(r"@functools\.(?:lru_)?cache", p.read_text())) for p in SOURCES.rglob("ops/**/*.py")
    }
    assert {name: n for name, n in found.items() if n} == CACHES


#: Places in Python that ask for an address: the storage's own method, exchange with other libraries and files, and
#: checks whether two tensors lie in one place.
ADDRESSES = {"callables.py", "storage.py", "safetensors.py", "nccl.py", "_interface.py", "_contract.py", "_library.py",
             "contract.py"}  # fmt: skip


def test_addresses_are_asked_for_in_exchange_alone():
    asking = [p for p in SOURCES.rglob("*.py") if re.search(r"\.data_ptr\b", p.read_text())]
    assert {p.name for p in asking if "standin" not in p.parts} == ADDRESSES
    for path in _core_files():
        code = re.sub(r"^ *>>> .*$", "", path.read_text(), flags=re.M)  # examples in docstrings may ask
        asked = re.findall(r"\.data_ptr\b|def data_ptr", code)
        wanted = {"tensor.pxi": ["def data_ptr"], "storage.pxi": ["def data_ptr"], "dlpack.pyx": [".data_ptr"]}
        assert asked == wanted.get(path.name, []), path.name


#: Modules outside `cuda` and the stand-in that say "cuda" in code: where devices are parsed, where a name of PyTorch's has
#: it (`is_cuda`, `Module.cuda`, `GradScaler`'s default), and where errors and options of PyTorch's name it.
NAME_CUDA = """_namespaces _settings amp.autocast_mode amp.grad_scaler autograd.graph backends compiler
    distributed.engines.nccl distributed.fsdp.sharded_grad_scaler distributed.groups export._encoding export._values
    func.batched graph.backends graph.capture graph.options jit.builtins jit.sugar kernels.target library.definition
    library.libraries nn.modules.module nn.parameter nn.utils.rnn ops.conversion ops.devices ops.linalg.svd ops.meta
    optim.optimizer profiler.events profiler.legacy profiler.profiler profiler.table storage utils._memory_use
    utils.cpp_extension version""".split()
CORE_NAMES_CUDA = {"devices.pyx", "dtype.pxi", "storage.pxi", "tensor.pxi"}


def test_few_modules_know_of_one_kind_of_device():
    """A body plans for every device; the word stands where devices are parsed and where PyTorch's names have it."""

    def words(path):
        if "cuda" not in (text := path.read_text()).lower():
            return
        tree = ast.parse(text)
        texts = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}  # docstrings
        for n in ast.walk(tree):
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in texts:
                yield n.value
            yield getattr(n, "attr", "") or (n.name if isinstance(n, ast.FunctionDef) else "")

    own = [p for p in _sources() if p.suffix == ".py" and _module(p).partition(".")[0] not in ("cuda", "standin")]
    assert sorted(_module(p) for p in own if any("cuda" in word.lower() for word in words(p))) == sorted(NAME_CUDA)
    code = {p.name: re.sub(r'""".*?"""', "", p.read_text(), flags=re.S) for p in _core_files()}
    assert {
        name for name, text in code.items() if re.search("^[^#]*(?:[\"'.]cuda|is_cuda)", text, re.M)
    } == CORE_NAMES_CUDA


def test_helpers_of_launchers_have_one_definition():
    for name, files in DEFINED_ONCE.items():
        define = re.compile(rf"^cdef [\w* ]*\b{name}\((?=[^)]*\)[^:\n]*:$)", re.MULTILINE)
        assert {path.name for path in _core_files() if define.search(path.read_text())} == files, name


def test_the_core_calls_python_through_declared_callbacks():
    from taeda._core.callbacks import Callbacks, callbacks

    for module in (
        "autograd.anomaly",
        "cuda.graphs",
        "func",
        "graph.capture",
        "jit.tracing",
        "types",
    ):  # imported when needed
        importlib.import_module("taeda." + module)
    files = [*_core_files(), *SOURCES.rglob("*.py")]
    used = {name for path in files for name in re.findall(r"\bcallbacks\.(\w+)(?! =)\b", path.read_text())}
    assert used == set(vars(callbacks)) == set(Callbacks.__annotations__)


# ---- kernels belong to ops ----------------------------------------------------------------------------------------------

#: Modules of the core whose functions run kernels on the memory of tensors.
KERNELS = frozenset(
    "attention conv factories gemm indexing lapack block_copy ordering reduce sampling selection".split()
)
#: Functions of those that read no element, or leave that to ops.
HARMLESS = frozenset(
    "adjoining broadcasts_to check_dot finish fits fresh getitem is_channels_last keep_format need_rank new number "
    "range_length setitem whole_numbers".split()
)
#: They put what an op gave into ``out``.
WRITERS = frozenset(["write_out", "_written"])


def _runs_kernel(thing) -> bool:
    """Whether ``thing``, that code names, runs a kernel, or holds something that does."""
    if isinstance(thing, (list, tuple)):
        return any(_runs_kernel(x) for x in thing)
    launchers = ("Rowwise", "Reducer", "ClassLoss")
    if type(thing).__name__ in launchers or type(getattr(thing, "__self__", None)).__name__ in launchers:
        return True
    module, name = getattr(thing, "__module__", None) or "", getattr(thing, "__name__", "")
    if isinstance(thing, (type, types.FunctionType)) or not module.startswith("taeda._core"):
        return False
    part = module.rpartition(".")[2]
    return name in ("launch", "copy_tensor") if part == "launching" else part in KERNELS and name not in HARMLESS


def _code_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_of(constant)


def _named_in(function):
    """The objects that a function's code names: globals, what modules hold, what it closes over."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for code in _code_of(function.__code__):
        found = None
        for step in dis.get_instructions(code):
            if step.opname == "LOAD_GLOBAL":
                found = function.__globals__.get(step.argval)
            elif step.opname in ("LOAD_DEREF", "LOAD_CLOSURE") and step.argval in cells:
                found = cells[step.argval].cell_contents
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(found, types.ModuleType):
                found = getattr(found, step.argval, None)
            else:
                found = None
            if found is not None:
                yield found


def _kernels_reached(function, seen):
    """Ways from ``function`` to a kernel that do not go through an op."""
    for thing in _named_in(function):
        if _runs_kernel(thing):
            yield f"{function.__module__}.{function.__qualname__} -> {getattr(thing, '__name__', thing)}"
        elif isinstance(thing, types.FunctionType) and thing not in seen and thing.__name__ not in WRITERS:
            seen.add(thing)
            if thing.__module__ == function.__module__ or thing.__module__.startswith("taeda."):
                yield from _kernels_reached(thing, seen)


def _outside_ops():
    """Every function that runs with transformations on: derivatives, decompositions, composites, plain functions, layers."""
    from taeda import _core
    from taeda._core.callbacks import callbacks
    from taeda.ops.table import METHODS, OPS

    for op in OPS.values():
        if isinstance(op, _core.Op):
            yield from op.diff_fns or ()
            yield op.traits.get("decomposition")
        yield op
    importlib.import_module("taeda.graph.capture")  # takes the place of two callbacks
    yield from vars(callbacks).values()
    yield from METHODS.values()
    for name in ("", ".nn.functional", ".linalg", ".fft", ".special"):
        yield from vars(importlib.import_module("taeda" + name)).values()
    for layer in ("nn", "func", "autograd", "distributions"):
        for info in pkgutil.walk_packages([str(PACKAGE / layer)], f"taeda.{layer}."):
            for thing in vars(importlib.import_module(info.name)).values():
                yield from vars(thing).values() if isinstance(thing, type) else [thing]


def test_kernels_are_reached_through_ops_alone():
    """A kernel that runs elsewhere reads the memory of one example where ``vmap`` has a batch."""
    from taeda._core import Composite

    found = [f.__wrapped__ if isinstance(f, Composite) else f for f in _outside_ops()]
    roots = {f for f in found if isinstance(f, types.FunctionType) and f.__name__ not in WRITERS}
    assert len(roots) > 2000
    seen = set(roots)
    assert {way for root in roots for way in _kernels_reached(root, seen)} == set()


def test_a_kernel_outside_an_op_is_found():
    from taeda import _core

    def launches(x):
        _core.launch(0, (x,), (), 1, 1)

    def derivative(g):
        return [launches(x) for x in g]

    assert [way.rpartition(" -> ")[2] for way in _kernels_reached(derivative, set())] == ["launch"]


# ---- what belongs to an op is in its stanza -------------------------------------------------------------------------------

#: Modules that keep a list of more than eight ops, and how many names such lists have. Rules may have names, a few each;
#: what is said of many ops is a trait (docs/notes/0005). These are debts, or names of another library: they only shrink.
LISTS = {
    "_foreach": 39, "_masked_tensor": 10, "_namespaces": 28, "_tiles": 9, "array_api._elementwise": 59, "aten": 9,
    "cuda.check": 18, "export._lowering": 17, "export._pt2_ops": 14, "export._pt2_write": 10,
    "fx._names": 9, "fx.experimental.symbolic_shapes": 17, "jit.builtins": 24, "jit.flattening": 14, "kernel": 34,
    "kernels.programs": 22, "nn.parameter": 14, "onnx.translate.complex": 24, "onnx.translate.shape": 9,
    "onnx.translate.sizes": 10, "ops.conversion": 13, "ops.exchange": 17, "ops.inplace": 56, "overrides": 13,
    "profiler.recording": 12, "utils._check_step": 10,
}  # fmt: skip


def _names_of_ops(path: Path) -> list[list[str]]:
    """Those in each string, sequence and dict that ``path`` writes out."""
    from taeda.aten import spellings  # noqa: F401  # all ops are in the table then
    from taeda.ops.table import OPS

    found = []
    tree = ast.parse(
        path.read_text()
    )  # __all__ has names of another library, which the linter compares with the module
    tree.body = [n for n in tree.body if not (isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")]
    for node in ast.walk(tree):
        items = [node] if isinstance(node, ast.Constant) else getattr(node, "elts", getattr(node, "keys", ()))
        texts = [x.value for x in items if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        words = " ".join(texts).split()
        names = [word for word in words if word in OPS]
        if len(names) > len(words) / 2:
            found.append(names)
    return found


def test_no_list_of_ops_is_kept_beside_their_stanzas():
    found: dict[str, int] = {}
    for path in _sources():
        lists = [names for names in _names_of_ops(path) if len(names) > 8] if path.suffix == ".py" else []
        if lists:
            found[_module(path)] = sum(map(len, lists))
    assert {name: n for name, n in found.items() if n > LISTS.get(name, 0)} == {}
    assert [name for name in LISTS if name not in found] == [], "paid: take them off the list"


def test_a_list_of_ops_is_found(tmp_path):
    names = "abs neg exp log sin cos tan relu sqrt"
    for text in (f"X = '{names}'.split()", f"X = {names.split()}", f"X = {dict.fromkeys(names.split(), 1)}"):
        (tmp_path / "bad.py").write_text(text)
        assert max(map(len, _names_of_ops(tmp_path / "bad.py"))) == 9


def test_import_loads_few_modules():
    """``import taeda`` takes 0.07 of PyTorch's time with 278 modules; it took 0.13 with 472. There are 289, 200 of them its own."""
    code = "import sys, taeda; print(len(sys.modules), sum(name.startswith('taeda') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    everything, own = map(int, done.stdout.split())
    assert everything < 300 and own < 205, done.stdout


def test_lazy_names_are_there():
    code = "import taeda; print([getattr(taeda, name).__name__ for name in ('nn', 'optim', 'func', 'utils', 'io', 'load')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['taeda.nn', 'taeda.optim', 'taeda.func', 'taeda.utils', 'taeda.io', 'load']"


# ---- building -----------------------------------------------------------------------------------------------------------


def test_the_source_distribution_holds_every_file():
    """What tests, examples and pages need is in it, and nothing that setup.py writes."""
    root = PACKAGE.parent
    done = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True)
    if done.returncode or not (root / "MANIFEST.in").exists():
        pytest.skip("not a checkout")
    added = {".gitignore", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"}  # but the first
    rules = [line.split() for line in (root / "MANIFEST.in").read_text().splitlines()]
    patterns = [
        f"{folder}/*{end.removeprefix('*')}" for kind, folder, *ends in rules if "recursive" in kind for end in ends
    ]
    patterns += [name for kind, *names in rules if kind == "include" for name in names] + ["taeda/*.py"]
    files = done.stdout.split()
    assert [f for f in files if f not in added and not any(fnmatch.fnmatch(f, p) for p in patterns)] == []
    assert not any(fnmatch.fnmatch("taeda/_core/tensor.c", p) for p in patterns)


def test_a_missing_compiler_is_told_at_once():
    root = PACKAGE.parent
    if not (root / "setup.py").exists():
        pytest.skip("not a checkout")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext"], cwd=root, env={**os.environ, "CC": "no-such-compiler"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert (
        done.stderr.strip().splitlines()[-1].startswith("taeda needs a C compiler to build, and there is no 'no-such")
    )
