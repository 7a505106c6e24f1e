"""``script``: compiled programs give what Python gives, and are written as archives that PyTorch reads."""

import copy
import importlib.util
import io
import sys
from pathlib import Path

import pytest

import taeda

torch = pytest.importorskip("torch")
from test_archive import agree, run, same  # noqa: E402

NAMES = {
    "import torch.nn.functional as F": "import taeda.nn.functional as F",
    "from torch import Tensor, nn": "from taeda import Tensor, nn",
    "from torch.nn.utils": "from taeda.nn.utils",
    "import torch\n": "import taeda as torch\n",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of ``programs.py``, of taeda's modules."""
    source = Path(__file__).with_name("programs.py").read_text()
    for theirs, ours in NAMES.items():
        assert theirs in source
        source = source.replace(theirs, ours)
    path = tmp_path_factory.mktemp("programs") / "programs_of_taeda.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("programs_of_taeda", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["programs_of_taeda"] = module
    spec.loader.exec_module(module)
    yield module.PROGRAMS
    del sys.modules["programs_of_taeda"]


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
