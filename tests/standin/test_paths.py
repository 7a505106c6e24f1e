"""Every module path of the stand-in is the first one that a process imports: no import may depend on an earlier one."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import taeda
from taeda.standin import importer, internals

# Each path is tried in a process of its own, forked from one that has only `import torch`.
PROGRAM = """
import importlib, importlib.util, os, sys, types
import torch

def reach(name):
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found

def find(name):
    assert importlib.util.find_spec(name).name
    return importlib.import_module(name)

def imported_from(name):
    parent, _, last = name.rpartition(".")
    space = {}
    exec(f"from {parent} import {last} as found", space)
    return space["found"]

def imported_as(name):
    space = {}
    exec(f"import {name} as found", space)
    return space["found"]

FORMS = {"import_module": importlib.import_module, "find_spec": find, "from": imported_from, "as": imported_as, "getattr": reach}

def attempt(form, name):
    found = FORMS[form](name)
    module = importlib.import_module(name)
    assert sys.modules[name] is module is importlib.import_module(name)
    # a function of the same name hides its module, as in PyTorch (torch.autograd.gradcheck)
    assert found is module or not isinstance(found, types.ModuleType), f"{found} is not {module}"
    try:
        module.no_such_name_at_all
    except AttributeError as error:
        assert "taeda stands in" in str(error), error
    else:
        raise AssertionError("any name is found")

for line in sys.stdin.read().splitlines():
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            attempt(*line.split())
        except BaseException as error:
            print(line, type(error).__name__, error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def paths_of_tables():
    return {*importer.RENAMED, *internals.NAMES, *internals.ANSWERS, *internals.REFUSED} - {""}


def paths_of_files():
    """The modules of taeda that PyTorch has, or may have, under the same name, and those of the overlay."""
    top = Path(taeda.__file__).parent
    for folder in (top, top / "standin" / "overlay"):
        for file in folder.rglob("*.py"):
            name = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            private = folder == top and (name.startswith("_") or name.partition(".")[0] in importer._HIDDEN)
            private = private or name == "distributed.engines.mpi"  # needs an MPI library
            if not private and "__main__" not in name and name != "__init__":
                yield name


def failures(lines):
    done = subprocess.run(
        [sys.executable, "-m", "taeda.standin", "-c", PROGRAM], input="\n".join(lines), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_path_is_the_first_that_is_imported():
    chosen = sorted(name for name in paths_of_tables() if "." in name)[::9]
    if find_spec("tensorboard") is None:
        chosen = [name for name in chosen if "tensorboard" not in name]
    chosen += ["distributed.tensor._utils", "distributed.utils", "distributed.rpc", "distributed.checkpoint.state_dict"]
    forms = ["import_module", "find_spec", "from", "as", "getattr"]
    assert failures(f"{forms[i % 5]} torch.{name}" for i, name in enumerate(chosen)) == ""


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["import_module", "find_spec", "from", "as", "getattr"])
def test_every_path_is_the_first_that_is_imported(form):
    assert failures(f"{form} torch.{name}" for name in sorted({*paths_of_tables(), *paths_of_files()})) == ""


def test_what_pytorch_imports_is_there():
    """Programs that use a module of Python's library without importing it, which works where PyTorch has done so."""
    uses = "multiprocessing.connection.Listener, urllib.request.urlopen, urllib.error.URLError, unittest.mock.patch"
    code = f"import torch, multiprocessing, unittest, urllib; {uses}"
    program = f"import taeda.standin; taeda.standin.install(); {code}"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_classes_are_pickled_by_path_whatever_was_imported_first():
    program = """
import pickle, torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader as a
from torch.distributed.checkpoint import HuggingFaceStorageReader as b
assert a is b
import torch.optim.lr_scheduler, torch.distributed.fsdp.wrap
for kind in (torch.nn.Linear, torch.optim.lr_scheduler.StepLR, torch.optim.Adam, torch.distributed.fsdp.OptimStateKeyType):
    assert kind.__module__.startswith("torch."), kind
    assert pickle.loads(pickle.dumps(kind)) is kind
import taeda.graph.options  # by taeda's name first
assert taeda.graph.options.Patch.__module__ == "torch.graph.options"
"""
    subprocess.run([sys.executable, "-m", "taeda.standin", "-c", program], check=True)


def test_layers_are_scripted():
    """The classes that stand for layers in scripts are known by their module's name, which the stand-in changes."""
    program = """
import torch
from torch import nn
for model in (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.GRU(2, 3), nn.ModuleDict({"a": nn.Linear(2, 2)})["a"]):
    x = torch.ones(3, 2)
    torch.testing.assert_close(torch.jit.script(model.eval())(x), model(x))
"""
    subprocess.run([sys.executable, "-m", "taeda.standin", "-c", program], check=True)


def test_packages_can_be_walked():
    program = """
import pkgutil, sys, torch
found = [m.name for m in pkgutil.walk_packages(torch.nn.__path__, "torch.nn.")]
assert "torch.nn.modules.linear" in found and "torch.nn.functional" in found, found
assert hasattr(torch.distributed, "utils") and not hasattr(torch.distributed, "no_such_module")
assert {m.name for m in pkgutil.iter_modules(torch.distributed.__path__)} >= {"fsdp", "tensor"}
"""
    subprocess.run([sys.executable, "-m", "taeda.standin", "-c", program], check=True)
