"""``script``: compiled programs give what Python gives, and are written as archives that PyTorch reads."""

import copy
import importlib.util
import io
import sys
from pathlib import Path

import pytest

import taeda

torch = pytest.importorskip("torch")
from language import EXAMPLES  # noqa: E402
from test_archive import agree, ours, run, same  # noqa: E402

NAMES = {
    "import torch.nn.functional as F": "import taeda.nn.functional as F",
    "from torch import Tensor, nn": "from taeda import Tensor, nn",
    "from torch.nn.utils": "from taeda.nn.utils",
    "from torch import Tensor\n": "from taeda import Tensor\n",
    "import torch\n": "import taeda as torch\n",
}


def of_taeda(name, folder):
    """A file of programs with taeda's names in place of PyTorch's, as a module."""
    source = Path(__file__).with_name(f"{name}.py").read_text()
    for old, new in NAMES.items():
        source = source.replace(old, new)
    path = folder / f"{name}_of_taeda.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of ``programs.py``, of taeda's modules."""
    return of_taeda("programs", tmp_path_factory.mktemp("programs")).PROGRAMS


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    """The functions of ``language.py``, of taeda's."""
    return of_taeda("language", tmp_path_factory.mktemp("language")).EXAMPLES


def theirs(x):
    """taeda's tensors as PyTorch's, in any container."""
    if isinstance(x, taeda.Tensor):
        return torch.tensor(x.detach().tolist(), dtype=getattr(torch, str(x.dtype)[6:])).reshape(tuple(x.shape))
    if isinstance(x, dict):
        return {k: theirs(v) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(theirs, x))
    return type(x)(map(theirs, x)) if isinstance(x, (list, tuple)) else x


from programs import PROGRAMS  # noqa: E402


def compare(python, scripted, calls):
    """Run the calls on both."""
    for method, args in calls:
        expected, got = run(python, method, args), run(scripted, method, args)
        if isinstance(expected, Exception):
            assert isinstance(got, Exception), (method, expected, got)
        elif isinstance(got, Exception):
            raise got
        else:
            same(theirs(expected), got, method)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(programs, name):
    taeda.manual_seed(0)
    module, calls = programs[name]()
    python = copy.deepcopy(module.eval())
    compare(python, taeda.jit.script(module), calls)


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved(programs, name):
    """Both taeda and PyTorch run what is written."""
    taeda.manual_seed(0)
    module, calls = programs[name]()
    buffer = io.BytesIO()
    taeda.jit.script(module.eval()).save(buffer)
    data = buffer.getvalue()
    compare(copy.deepcopy(module), taeda.jit.load(io.BytesIO(data)), calls)
    agree(torch.jit.load(io.BytesIO(data)), taeda.jit.load(io.BytesIO(data)), theirs(calls))


@pytest.mark.parametrize("name", PROGRAMS)
def test_frozen(programs, name):
    """Constants in place of parameters and attributes change no value."""
    taeda.manual_seed(0)
    module, calls = programs[name]()
    kept = [m for m in ("count", "reset", "counts", "describe") if hasattr(module, m)]
    frozen = taeda.jit.freeze(taeda.jit.script(module.eval()), kept)
    assert not any(p.requires_grad for p in frozen.parameters())
    buffer = io.BytesIO()
    frozen.save(buffer)
    compare(copy.deepcopy(module), frozen, calls)
    compare(copy.deepcopy(module), taeda.jit.load(io.BytesIO(buffer.getvalue())), calls)
    str(frozen.graph), str(frozen.inlined_graph)


@pytest.mark.parametrize("name", EXAMPLES)
def test_language(language, name):
    """Each part of the language gives what PyTorch's scripts give; so do our archives of it, there and here."""
    function, args = EXAMPLES[name]
    expected = torch.jit.script(function)(*copy.deepcopy(args))
    own, given = language[name]
    scripted = taeda.jit.script(own)
    same(expected, scripted(*copy.deepcopy(given)))
    assert scripted.code and str(scripted.graph).startswith("graph(") and scripted.schema.startswith(name)
    buffer = io.BytesIO()
    scripted.save(buffer)
    same(expected, taeda.jit.load(io.BytesIO(buffer.getvalue()))(*copy.deepcopy(given)))
    same(expected, ours(torch.jit.load(io.BytesIO(buffer.getvalue()))(*copy.deepcopy(args))))
