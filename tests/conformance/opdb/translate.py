"""taeda's objects for PyTorch's: tensors, dtypes, functions, and functions of the database that call PyTorch."""

from __future__ import annotations

import copy
import dataclasses
import functools
import types

import torch

import taeda
import taeda.nn.lower  # its ops are among OPS
from taeda._core.dlpack import from_dlpack
from taeda.ops.table import OPS

NAMESPACES = (
    "Tensor",
    "",
    "nn.functional",
    "linalg",
    "fft",
    "special",
    "masked",
    "signal.windows",
    "random",
    "autograd",
    "nn",
)


def with_seed(op, *args, **kwargs):
    """The database's ``wrapper_set_seed``: a call from a known place in the random stream."""
    taeda.manual_seed(42)
    return op(*args, **kwargs)


class Missing(AttributeError):
    """taeda has no such name."""


def find(path: str, root=taeda):
    """The object of taeda at a dotted path; ``Missing`` where there is none."""
    found = root
    for part in path.split(".") if path else ():
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = __import__(f"{found.__name__}.{part}", fromlist=["x"])
            except (ImportError, AttributeError):
                raise Missing(f"taeda has no {path}") from None
    return found


@functools.cache
def paths() -> dict:
    """The dotted path of each public callable of PyTorch, by identity."""
    found: dict = {}
    for space in NAMESPACES:
        root = find(space, torch)
        names = reversed(dir(root))  # if a place has two names, the first, preferably a public one
        for name in sorted(names, key=lambda name: not name.startswith("_")):
            try:
                thing = getattr(root, name)
            except (AttributeError, RuntimeError):
                continue
            if callable(thing):
                found[id(thing)] = f"{space}.{name}" if space else name
    return found


class Shadow(dict):
    """The globals of a function of the database, each translated when it is read."""

    def __init__(self, original):
        super().__init__()
        self.original = original

    def __missing__(self, name):
        if name not in self.original:
            raise KeyError(name)
        self[name] = value = translate(self.original[name])
        return value


SHADOWS: dict[int, Shadow] = {}  # by the identity of a module's globals, which live as long as the program


def translate(thing, memo: dict | None = None):
    """``thing`` with everything of PyTorch's in it replaced by taeda's."""
    memo = {} if memo is None else memo
    if isinstance(thing, torch.Tensor):
        if id(thing) not in memo:
            memo[id(thing)] = (tensor(thing, memo.values()), thing)
        return memo[id(thing)][0]
    if isinstance(thing, (torch.dtype, torch.layout, torch.memory_format)):
        return find(str(thing).removeprefix("torch."))
    if isinstance(thing, torch.device):
        return taeda.device(str(thing))
    if isinstance(thing, torch.Generator):
        made = taeda.Generator()
        made.set_state(tensor(thing.get_state()))
        return made
    if isinstance(thing, torch.Size):
        return taeda.Size(thing)
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*(translate(x, memo) for x in thing))
    if isinstance(thing, (list, tuple)):
        return type(thing)(translate(x, memo) for x in thing)
    if type(thing) is dict:
        return {k: translate(v, memo) for k, v in thing.items()}
    if isinstance(thing, types.ModuleType):
        if thing.__name__ == "torch" or thing.__name__.startswith("torch."):
            return find(thing.__name__.removeprefix("torch").removeprefix("."))
        return thing
    if isinstance(thing, functools.partial):
        return functools.partial(translate(thing.func), *translate(list(thing.args)), **translate(dict(thing.keywords)))
    if isinstance(thing, types.FunctionType) and thing.__name__ == "wrapper_set_seed":
        return with_seed
    if isinstance(thing, types.FunctionType) and thing.__module__.startswith("torch.testing"):
        return function(thing)
    if isinstance(thing, torch._ops.OpOverload):
        name = thing.overloadpacket.__name__
        name = {"slice": "slice_view"}.get(name, name)
        if name not in OPS:
            raise Missing(f"taeda has no op {name}")
        return OPS[name]
    if isinstance(thing, torch.nn.LinearCrossEntropyOptions):
        return taeda.nn.LinearCrossEntropyOptions(**translate(dataclasses.asdict(thing)))
    if isinstance(thing, torch.nn.Module) and not thing.state_dict():  # a layer without parameters
        made = find("nn." + type(thing).__name__)()
        made.__dict__.update({k: v for k, v in thing.__dict__.items() if not k.startswith("_")})
        return made
    if callable(thing) and id(thing) in paths():
        return find(paths()[id(thing)])
    return thing


def function(original):
    """A function of the database, its ``torch`` meaning taeda."""
    cells = None
    if original.__closure__:
        cells = tuple(types.CellType(translate(cell.cell_contents)) for cell in original.__closure__)
    made = types.FunctionType(
        original.__code__,
        SHADOWS.setdefault(id(original.__globals__), Shadow(original.__globals__)),
        original.__name__,
        translate(original.__defaults__) if original.__defaults__ else None,
        cells,
    )
    made.__kwdefaults__ = translate(original.__kwdefaults__) if original.__kwdefaults__ else None
    return made


def tensor(x: torch.Tensor, known=()):
    """A taeda tensor with the values, sizes, strides and dtype of ``x``.

    It shares memory with a tensor of ``known``, pairs of a tensor and what it stands for, where ``x`` does; else it is on
    memory of its own.
    """
    plain = x.detach()
    beside = next((ours for ours, theirs in known if share_memory(theirs, x)), None)
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if beside is None:
        plain = copy.deepcopy(plain)
        if plain.untyped_storage().nbytes() > plain.numel() * plain.itemsize:  # a view: on all of its base's memory
            beside = from_dlpack(torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage()))
    if beside is None:
        made = from_dlpack(plain)
    else:
        made = beside.detach().as_strided(plain.shape, plain.stride(), plain.storage_offset()).detach()
    return made.requires_grad_() if x.requires_grad else made


def share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two strided tensors of one dtype are on one storage, and read it as it is."""
    if a.layout is not torch.strided or b.layout is not torch.strided or a.dtype != b.dtype or not b.numel():
        return False
    if any(t.is_conj() or t.is_neg() or t.device.type != "cpu" for t in (a, b)):
        return False
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def back(thing):
    """The way back: a result of taeda's as PyTorch's."""
    if isinstance(thing, taeda.Tensor):
        return torch.from_dlpack(thing.detach().resolve_conj().clone())
    if isinstance(thing, (list, tuple)):
        return tuple(back(x) for x in thing)
    if isinstance(thing, dict):
        return {k: back(v) for k, v in thing.items()}
    if isinstance(thing, taeda.dtype):
        return getattr(torch, str(thing).split(".")[-1])
    return thing
