"""The forms of a call that PyTorch's schemas allow: all arguments by position or by name, NumPy's names, None, defaults, sizes."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ..opdb.checks import entries, pick

#: Where PyTorch's functions are, and what their names begin with among the schemas.
SPACES = {"": "", "Tensor": "", "linalg": "linalg_", "fft": "fft_", "special": "special_", "nn.functional": ""}

#: NumPy's names of parameters; PyTorch's own functions take these names too.
NUMPY = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}

SKIPPED = re.compile(
    r"cudnn|miopen|mkldnn|quantize|fbgemm|cuda|xpu|hip|_copy$|vitals|nnapi|sym_|_jit|is_vulkan|is_storage|fake_|hspmm|"
    r"sparse|^_|ccol|crow|row_indices|col_indices|record_stream|set_flush|empty|resize|share_memory|from_file|"
    r"set_num|set_rng|seed|printoptions|deterministic|^set_|compile|save|load|anomaly|get_default|inference|no_grad|"
    r"batch_norm_|qparams|int_repr|^q_|qscheme|native_norm|sspaddmm|smm|coalesce|^indices$|to_padded|^values$|"
    r"is_distributed|float_power_$|pin_memory|^_|wait|fork|import_ir|parse_|merge_type|unify_type|autocast|rename|names|align|refine|data_ptr|fill_diagonal_tensor"
)


@functools.cache
def _data() -> list[dict[str, Any]]:
    """Arguments to try, by type: kinds of tensors with the numbers that go with them."""
    g = torch.Generator().manual_seed(0)
    square = torch.rand(3, 3, generator=g) + 3 * torch.eye(3)
    integers = torch.tensor([[0, 1, 2], [2, 0, 1], [1, 1, 0]])
    return [
        {"Tensor": square, "int": 1, "number": 2, "float": 0.5, "List[int]": [3, 3]},
        {"Tensor": integers, "int": 1, "number": 2, "float": 0.5, "List[int]": [1, 0]},
        {"Tensor": torch.rand(3, generator=g).sort()[0], "int": 0, "number": 1, "float": 0.25, "List[int]": [0]},
        {"Tensor": integers[1], "int": 2, "number": 1, "float": 1.0, "List[int]": [3]},
        {"Tensor": torch.rand(2, 3, 4, generator=g), "int": 1, "number": 2, "float": 0.5, "List[int]": [1]},
        {"Tensor": integers > 0, "int": 1, "number": True, "float": 0.5, "List[int]": [1, 1]},
        {"Tensor": torch.rand(1, 2, 6, 6, generator=g), "int": 2, "number": 2, "float": 0.5, "List[int]": [2, 2]},
        {"Tensor": torch.rand(1, 2, 4, 4, 4, generator=g), "int": 2, "number": 2, "float": 0.5, "List[int]": [2, 2, 2]},
    ]


_FIXED = {
    "bool": True, "str": "sum", "ScalarType": torch.float32, "Layout": torch.strided, "Device": "cpu",
    "MemoryFormat": torch.contiguous_format, "Generator": None, "SymInt": 1,
}  # fmt: skip


def _value(kind: str, data: dict, size: int | None = None) -> Any:
    """A value of that type; KeyError where there is none."""
    if kind.startswith("Optional["):
        return _value(kind[9:-1], data, size)
    if kind == "List[int]" and size:
        return [data["int"]] * size
    if kind in data:
        return data[kind].clone() if kind == "Tensor" else data[kind]
    if kind.startswith("List["):
        return [_value(kind[5:-1], data) for _ in range(size or 2)]
    return _FIXED[kind]


def _listed() -> dict[str, Any]:
    """Arguments of functions that neither the database nor values by type serve: name -> a function giving (args, kwargs)."""
    g = torch.Generator().manual_seed(0)

    def rand(*sizes):
        return torch.rand(*sizes, generator=g)

    weights = [rand(4, 3), rand(4, 4), rand(4), rand(4)]
    gates = [rand(16, 3), rand(16, 4), rand(16), rand(16)]
    three = [rand(12, 3), rand(12, 4), rand(12), rand(12)]
    options = (True, 1, 0.0, False, False, False)  # bias, layers, dropout, train, bidirectional, batch_first
    pooled = torch.arange(0, 16, 4)
    return {
        "affine_grid_generator": lambda: ((rand(1, 2, 3), [1, 1, 2, 2], False), {}),
        "grid_sampler": lambda: ((rand(1, 1, 3, 3), rand(1, 2, 2, 2), 0, 0, False), {}),
        "batch_norm": lambda: ((rand(2, 3), rand(3), rand(3), rand(3), rand(3), False, 0.1, 1e-5, True), {}),
        "instance_norm": lambda: ((rand(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, True), {}),
        "bilinear": lambda: ((rand(2, 3), rand(2, 4), rand(5, 3, 4)), {}),
        "conv_tbc": lambda: ((rand(5, 2, 3), rand(2, 3, 4), rand(4)), {}),
        "conv_transpose1d": lambda: ((rand(1, 2, 4), rand(2, 3, 2)), {}),
        "conv_transpose2d": lambda: ((rand(1, 2, 4, 4), rand(2, 3, 2, 2)), {}),
        "conv_transpose3d": lambda: ((rand(1, 2, 4, 4, 4), rand(2, 3, 2, 2, 2)), {}),
        "convolution": lambda: (
            (rand(1, 2, 4, 4), rand(3, 2, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
            {},
        ),
        "cosine_embedding_loss": lambda: ((rand(2, 3), rand(2, 3), torch.tensor([1, -1])), {}),
        "ctc_loss": lambda: (
            (rand(5, 2, 4), torch.tensor([[1, 2], [2, 3]]), torch.tensor([5, 5]), torch.tensor([2, 2])),
            {},
        ),
        "embedding_bag": lambda: ((rand(4, 3), torch.tensor([0, 2, 1]), torch.tensor([0, 3])), {}),
        "embedding_renorm_": lambda: ((rand(4, 3), torch.tensor([0, 2, 1]), 0.5, 2.0), {}),
        "is_nonzero": lambda: ((rand(1),), {}),
        "gru": lambda: ((rand(2, 5, 3), rand(1, 5, 4), three, *options), {}),
        "lstm": lambda: ((rand(2, 5, 3), [rand(1, 5, 4), rand(1, 5, 4)], gates, *options), {}),
        "rnn_tanh": lambda: ((rand(2, 5, 3), rand(1, 5, 4), weights, *options), {}),
        "rnn_relu": lambda: ((rand(2, 5, 3), rand(1, 5, 4), weights, *options), {}),
        "gru_cell": lambda: ((rand(5, 3), rand(5, 4), *three), {}),
        "lstm_cell": lambda: ((rand(5, 3), [rand(5, 4), rand(5, 4)], *gates), {}),
        "orgqr": lambda: ((rand(3, 3), rand(3)), {}),
        "prelu": lambda: ((rand(2, 3) - 0.5, rand(3)), {}),
        "segment_reduce": lambda: ((rand(5), "sum"), {"lengths": torch.tensor([2, 3])}),
        "tensordot": lambda: ((rand(2, 3), rand(3, 4), [1], [0]), {}),
        "backward": lambda: ((rand(1).requires_grad_(),), {}),
        "retain_grad": lambda: ((rand(1).requires_grad_().exp(),), {}),
        "polygamma": lambda: ((1, rand(3) + 1), {}),
        "polygamma_": lambda: ((rand(3) + 1, 1), {}),
        "max_unpool2d": lambda: ((rand(1, 1, 2, 2), pooled.reshape(1, 1, 2, 2), [4, 4]), {}),
        "max_unpool3d": lambda: (
            (rand(1, 1, 1, 2, 2), pooled.reshape(1, 1, 1, 2, 2), [2, 4, 4], [2, 2, 2], [0, 0, 0]),
            {},
        ),
        "bucketize": lambda: ((rand(3), torch.tensor([0.2, 0.5, 0.7])), {}),
        "searchsorted": lambda: ((torch.tensor([0.2, 0.5, 0.7]), rand(3)), {}),
        "rnn_tanh_cell": lambda: ((rand(5, 3), rand(5, 4), *weights), {}),
        "rnn_relu_cell": lambda: ((rand(5, 3), rand(5, 4), *weights), {}),
        "einsum": lambda: (("ij,jk", [rand(2, 3), rand(3, 4)]), {}),
    }


LISTED = _listed()


class Argument:
    """One parameter of a form: what Python calls it, its type, its default, whether only its name gives it."""

    def __init__(self, name: str, kind: str, default: Any, keyword: bool, size: int | None = None) -> None:
        self.name, self.kind, self.default, self.keyword, self.size = name, kind, default, keyword, size

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def _arguments(schema: Any, method: bool) -> list[Argument]:
    made = []
    for a in schema.arguments:
        kind = str(a.real_type).replace("SymInt", "int").replace("Scalar", "number").replace("numberType", "ScalarType")
        kind = re.sub(r"\bnumber\b", "number", kind)
        default = a.default_value if a.has_default_value() else inspect.Parameter.empty
        if default is not None and any(word in kind for word in ("ScalarType", "Layout", "MemoryFormat")):
            default = inspect.Parameter.empty if default is inspect.Parameter.empty else default
        name = "input" if a.name == "self" and not method else a.name
        made.append(Argument(name, kind, default, a.kwarg_only, a.N))
    return made


def schemas(name: str) -> list[Any]:
    """The schemas that a Python function may be called by."""
    found = torch._C._jit_get_schemas_for_operator("aten::" + name)
    return [
        s
        for s in found
        if not any(a.is_out for a in s.arguments)
        and not any("Dimname" in str(a.real_type) or "Storage" in str(a.real_type) for a in s.arguments)
        and any("Tensor" in str(x.real_type) for x in [*s.arguments, *s.returns])
        and not any(str(a.real_type) in ("t", "List[t]") for a in s.arguments)
    ]


@functools.cache
def samples() -> dict[str, list]:
    """Entries of the operator database, by the function that they call."""
    found: dict[str, list] = {}
    for op in entries().values():
        found.setdefault(op.name, []).append(op)
    return found


def _sampled(path: str, limit: int) -> Iterator[tuple]:
    """Argument lists of the database for the function at ``path``: (args, kwargs)."""
    name = path.removeprefix("Tensor.")
    for op in samples().get(name, samples().get(name.removesuffix("_"), ())):
        kinds = [
            t for t in (torch.float32, torch.int64, torch.bool, torch.complex64) if t in op.supported_dtypes("cpu")
        ]
        if not kinds:
            continue
        torch.manual_seed(0)
        try:
            for sample in pick(op.sample_inputs("cpu", kinds[0]), limit):
                yield (sample.input, *sample.args), dict(sample.kwargs)
        except Exception:
            continue


def _bound(arguments: list[Argument], args: tuple, kwargs: dict) -> dict | None:
    """The values of a call by parameter; None if they do not fit."""
    positional = [a for a in arguments if not a.keyword]
    if len(args) > len(positional):
        return None
    values = {a.name: x for a, x in zip(positional, args, strict=False)}
    for key, x in kwargs.items():
        if key in values or all(a.name != key for a in arguments):
            return None
        values[key] = x
    for a in arguments:
        if a.name not in values:
            if a.required:
                return None
            continue
        is_tensor = isinstance(values[a.name], torch.Tensor)
        if is_tensor != (a.kind in ("Tensor", "Optional[Tensor]")) and values[a.name] is not None:
            return None
    return values


def calls(path: str, limit: int = 1) -> Iterator[tuple[str, tuple, dict]]:
    """Calls of the function at ``path`` in all its forms, with what each is: ``(label, args, kwargs)``.

    Some of them are wrong: PyTorch says which.
    """
    space, _, name = path.rpartition(".")
    method = space == "Tensor"
    for schema in schemas(SPACES[space] + name):
        arguments = _arguments(schema, method)
        if method and (not arguments or arguments[0].name != "self"):
            continue
        overload = f"{path}.{schema.overload_name}" if schema.overload_name else path
        for values in _fillings(path, arguments, limit):
            for form, args, kwargs in _forms(arguments, values, method):
                yield f"{overload} {form}", args, kwargs


def _fillings(path: str, arguments: list[Argument], limit: int) -> Iterator[dict]:
    """Values of the required parameters: listed, from the database, and of each kind of data."""
    if path.rpartition(".")[2] in LISTED:
        args, kwargs = LISTED[path.rpartition(".")[2]]()
        values = _bound(arguments, args, kwargs)
        if values is not None:
            yield values
            return
    count = 0
    for args, kwargs in _sampled(path, 60):
        values = _bound(arguments, args, kwargs)
        if values is not None:
            yield values
            count += 1
            if count >= limit:
                break
    for data in _data():
        try:
            yield {a.name: _value(a.kind, data, a.size) for a in arguments if a.required}
        except KeyError:
            return


def _forms(arguments: list[Argument], values: dict, method: bool) -> Iterator[tuple[str, tuple, dict]]:
    """The ways to write one call."""
    first = 1 if method else 0
    full = {a.name: values.get(a.name, a.default) for a in arguments}
    by_position = [a for a in arguments if not a.keyword]
    by_name = [a for a in arguments if a.keyword]
    given = {k: x for k, x in values.items()}

    def call(chosen: dict, names: Any = None) -> tuple[tuple, dict]:
        """All by position that may be, up to a parameter that is left out; ``names`` renames what goes by name."""
        args: list[Any] = []
        rest = {}
        for i, a in enumerate(by_position):
            if a.name in chosen and len(args) == i and (names is None or i < first):
                args.append(chosen[a.name])
            elif a.name in chosen:
                rest[a.name] = chosen[a.name]
        rest.update({a.name: chosen[a.name] for a in by_name if a.name in chosen})
        return tuple(args), {(names or {}).get(k, k): x for k, x in rest.items()}

    yield ("as given", *call(given))
    yield ("by position", *call(full))
    yield ("by name", *call(full, {}))
    for new in ("x", "a", "x1"):
        names = {"input": new, "dim": "axis", "keepdim": "keepdims", "other": "x2"}
        if any(a.name in names for a in arguments[first:]):
            yield (f"NumPy's names, {new}", *call(given, names))
    if any(a.name in ("dim", "keepdim") for a in arguments):
        yield ("axis and keepdims", *call(full, {"dim": "axis", "keepdim": "keepdims"}))
    for a in arguments[first:]:
        yield (f"{a.name}=None", *call({**given, a.name: None}))
        yield (f"{a.name}=None by name", *call({**given, a.name: None}, {}))
    data = _data()[0]
    for a in arguments[first:]:  # one argument that has a default, or has another type that is accepted
        if not a.required and a.name not in given:
            for other in _others(a, data):
                yield (f"{a.name}={other!r:.20}", *call({**given, a.name: other}, {} if a.keyword else None))
        if a.name in given:
            for other in _as_others(a, given[a.name]):
                label = f"{a.name} as {type(other).__name__}"
                yield (label, *call({**given, a.name: other}))
    last = by_position[-1] if by_position else None
    if len(by_position) == first + 1 and last.kind == "List[int]" and isinstance(given.get(last.name), (list, tuple)):
        args, kwargs = call(given)
        yield "sizes spread out", (*args[:first], *given[last.name]), kwargs
    if not method:
        args, kwargs = call(given)
        yield "out=None", args, {**kwargs, "out": None}


def _others(a: Argument, data: dict) -> list:
    """Values other than the default, of a parameter that was not given."""
    try:
        found = [_value(a.kind, data, a.size)]
    except KeyError:
        return []
    base = a.kind.removeprefix("Optional[").removesuffix("]")
    if base == "bool":
        found = [not a.default]
    elif base == "int":
        found = [0, 1, 2] if a.name == "reduction" else [0, 1, -1]
    elif base in ("float", "number"):
        found = [1, 0.5, np.float64(0.5)]
    elif base.startswith("List[int"):
        found = [[1] * (a.size or 1), (0,), 1]
    elif base == "ScalarType":
        found = [torch.float64, torch.int64]
    return found


def _as_others(a: Argument, x: Any) -> list:
    """The value of a parameter in other types that PyTorch may take for it."""
    base = a.kind.removeprefix("Optional[").removesuffix("]")
    if base == "int" and type(x) is int:
        return [np.int64(x), np.int32(x), torch.tensor(x)]
    if base in ("float", "number") and type(x) in (int, float):
        return [float(x), int(x), np.float32(x), np.int64(x), torch.tensor(x), bool(x)]
    if base.startswith("List[int") and isinstance(x, (list, tuple)) and x and all(type(i) is int for i in x):
        return [list(x), tuple(x), torch.Size(x) if min(x) >= 0 else x, [np.int64(i) for i in x],
                [torch.tensor(i) for i in x], *([x[0]] if len(set(x)) == 1 else [])]  # fmt: skip
    if base.startswith("List[int") and type(x) is int:
        return [[x], (x,)]
    if base.startswith("List[Tensor") and isinstance(x, (list, tuple)):
        return [list(x), tuple(x)]
    if base.startswith("List[") and isinstance(x, (list, tuple)):
        return [list(x), tuple(x)]
    return []


def paths() -> list[str]:
    """The functions and methods of PyTorch that have schemas."""
    found = []
    for space in SPACES:
        root = torch
        for part in space.split(".") if space else ():
            root = getattr(root, part)
        for name in sorted(dir(root)):
            thing = getattr(root, name, None) if not SKIPPED.search(name) else None
            if callable(thing) and not isinstance(thing, type) and schemas(SPACES[space] + name):
                found.append(f"{space}.{name}" if space else name)
    return found
