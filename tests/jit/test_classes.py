"""Scripts of classes: dataclasses, and instances of plain classes that modules keep."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import InitVar, dataclass, field
from enum import Enum
from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035 (the language of scripts)

import pytest

import taeda
from taeda import Tensor, nn


@taeda.jit.script
@dataclass
class Point:
    x: float
    y: float = 2.0
    tag: Optional[str] = None  # noqa: UP045
    n: int = field(default=3, compare=False)

    def norm(self) -> float:
        return (self.x**2 + self.y**2) ** 0.5


@dataclass(order=True)
class Version:
    major: int
    minor: int = 0


@dataclass
class Doubled:
    a: int
    step: InitVar[int] = 1
    b: int = 0

    def __post_init__(self, step: int):
        self.b = self.a * 2 + step


@dataclass
class Segment:
    start: Point
    label: str = "s"


@dataclass
class WithFactory:
    items: List[int] = field(default_factory=list)  # noqa: UP006


def points(a: float) -> Tuple[float, bool, bool, int, bool]:  # noqa: UP006
    p = Point(a)
    return p.norm(), p == Point(x=a, n=9), p == Point(a, 1.0), p.n, p.tag is None


def test_a_dataclass_has_its_fields_defaults_and_equality():
    assert taeda.jit.script(points)(1.5) == points(1.5)
    assert Point(1.0).norm() == 5**0.5 and Point(1.0) == Point(1.0)  # it stays a class of Python


def versions(n: int):
    one, two = Version(n), Version(n, 2)
    return one < two, one <= one, one > two, two >= one, Version(n + 1) < two, one != two


def test_comparisons_of_a_dataclass():
    assert taeda.jit.script(versions)(1) == (True, True, False, True, False, True)


def doubled(n: int):
    return Doubled(n, 5).b + Doubled(n).b


def segment(x: float):
    s = Segment(Point(x))
    s.start.x += 1.0
    return s.start.x, s.label


def test_post_init_and_fields_of_other_dataclasses():
    assert taeda.jit.script(doubled)(4) == doubled(4)
    assert taeda.jit.script(segment)(1.0) == (2.0, "s")


def test_a_default_factory_is_refused():
    def uses():
        return WithFactory()

    with pytest.raises(NotImplementedError, match=r"WithFactory\.items: default factories"):
        taeda.jit.script(uses)


class Recipe:
    def __init__(self, n: int, axes: List[int], names: Dict[str, int]):  # noqa: UP006
        self.n = n
        self.axes = axes
        self.names = names

    def apply(self, x: Tensor) -> Tensor:
        return x.permute(self.axes).reshape(self.n, -1)


class Rearrange(nn.Module):
    def __init__(self):
        super().__init__()
        self.recipe = Recipe(2, [1, 0], {})
        self.by_rank = {2: Recipe(3, [1, 0], {"a": 1}), 1: Recipe(1, [0], {})}
        self.layout = taeda.strided
        self.unused = object()

    def forward(self, x: Tensor) -> Tensor:
        recipe = self.by_rank[x.dim()]
        if x.layout == taeda.sparse_coo:
            return x
        return self.recipe.apply(x).sum() * recipe.n + taeda.zeros([1], layout=self.layout)


def test_instances_of_plain_classes_are_attributes_of_a_module():
    x = taeda.arange(6.0).reshape(2, 3)
    scripted = taeda.jit.script(Rearrange())
    assert taeda.equal(scripted(x), Rearrange()(x))
    buffer = io.BytesIO()
    scripted.save(buffer)
    assert taeda.equal(taeda.jit.load(io.BytesIO(buffer.getvalue()))(x), Rearrange()(x))
    torch = pytest.importorskip("torch")
    assert torch.jit.load(io.BytesIO(buffer.getvalue()))(torch.arange(6.0).reshape(2, 3)).item() == 45


def layouts(x: Tensor):
    return x.layout == taeda.strided, x.layout == taeda.sparse_coo, x.layout == taeda.sparse_csr


def test_layouts_are_constants():
    script = taeda.jit.script(layouts)
    assert script(taeda.eye(2)) == (True, False, False)
    assert script(taeda.eye(2).to_sparse()) == (False, True, False)
    assert script(taeda.eye(2).to_sparse_csr()) == (False, False, True)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Identity(), nn.ReLU()])

    def forward(self, x: Tensor, items: List[int], k: int):  # noqa: UP006
        for i, layer in enumerate(self.layers, 1):
            x = layer(x) * i
        total = 0
        for i, (a, b) in enumerate(zip(items, items), k):  # noqa: B905
            total += i * a * b
        return x, total


def test_enumerate_from_another_number():
    x, total = taeda.jit.script(Layers())(taeda.ones(2), [1, 2], 5)
    assert x.tolist() == [2, 2] and total == 5 + 6 * 4


OFF = """
import taeda
def f(x):
    return x * 2
m = taeda.nn.Linear(1, 1)
assert taeda.jit.script(f) is f and taeda.jit.trace(f, taeda.ones(1)) is f
assert taeda.jit.script(m) is m and taeda.jit.trace_module(m, {"forward": taeda.ones(1)}) is m
"""


def test_a_variable_of_the_environment_leaves_programs_to_python(monkeypatch):
    monkeypatch.setenv("PYTORCH_JIT", "0")
    subprocess.run([sys.executable, "-c", OFF], check=True, timeout=60)


class Color(Enum):
    RED = 1
    BLUE = 2


class Ranked:
    def __init__(self, rank: int):
        self.rank = rank

    def __lt__(self, other: Ranked) -> bool:
        return self.rank < other.rank


def members():
    return [c.value for c in Color]


def ranks():
    items = [Ranked(3), Ranked(1), Ranked(2)]
    items.sort()
    more = sorted([Ranked(5), Ranked(4)])
    return [x.rank for x in items], [x.rank for x in more]


def at(items: List[int], table: Dict[str, int], i: int, key: str):  # noqa: UP006
    return items[i], table[key]


def test_members_of_an_enum_and_objects_in_order():
    assert taeda.jit.script(members)() == [1, 2]
    assert taeda.jit.script(ranks)() == ([1, 2, 3], [4, 5])


def test_what_a_container_has_not_is_a_runtime_error_and_a_lookup_error():
    script = taeda.jit.script(at)
    assert script([1], {"a": 2}, -1, "a") == (1, 2)
    for kind in (RuntimeError, LookupError):
        with pytest.raises(kind, match="list index out of range"):
            script([1], {"a": 2}, 3, "a")
        with pytest.raises(kind, match="KeyError: b"):
            script([1], {"a": 2}, 0, "b")


def _parts_of_sparse(x: Tensor):
    assert x.layout == taeda.sparse_coo
    found = x.sparse_dim(), x.dense_dim(), x._nnz(), x.coalesce().indices(), x.coalesce().values(), x.to_dense()
    rows, columns = x.to_sparse_csr(), x.to_dense().to_sparse_csc()
    blocks, other = x.to_dense().to_sparse_bsr([2, 2]), x.to_dense().to_sparse_bsc([2, 1])
    again = taeda.sparse_bsr_tensor(blocks.crow_indices(), blocks.col_indices(), blocks.values(), size=(4, 4))
    more = taeda.sparse_bsc_tensor(other.ccol_indices(), other.row_indices(), other.values(), dtype=x.dtype)
    pointers = rows.crow_indices(), rows.col_indices(), columns.ccol_indices(), columns.row_indices()
    return found, pointers, again.to_dense(), more.to_dense(), taeda.smm(x, x.to_dense()).to_dense()


def test_methods_of_sparse_tensors():
    """A scripted method is the one of the tensor's own class: what it gives is what the same lines give uncompiled."""
    x = taeda.tensor([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 4]]).to_sparse()
    got, want = taeda.jit.script(_parts_of_sparse)(x), _parts_of_sparse(x)
    assert got[0][:3] == want[0][:3] == (2, 0, 4)
    pairs = zip([*got[0][3:], *got[1], *got[2:]], [*want[0][3:], *want[1], *want[2:]], strict=True)
    assert all(taeda.equal(a, b) for a, b in pairs)


def _products_of_sparse(x, rows, dense):
    spread = taeda.sparse.softmax(x, 1), taeda.sparse.log_softmax(x, dim=0), x._coalesced_(True)
    sums = taeda.sparse.sum(x), taeda.sparse.sum(x, [0]).to_dense()
    products = taeda.sparse.mm(x, dense), taeda.sparse.mm(rows, dense, "mean"), taeda.sparse.addmm(dense, x, dense)
    return [s.to_dense() for s in spread], sums, products, taeda.sparse.mm(rows, dense, reduce="amax")


def test_functions_of_sparse_tensors():
    x = taeda.tensor([[1.0, 0, 2], [0, 3, 0], [0, 0, 4]]).to_sparse()
    arguments = x, x.to_dense().to_sparse_csr(), taeda.arange(9.0).reshape(3, 3)
    got, want = taeda.jit.script(_products_of_sparse)(*arguments), _products_of_sparse(*arguments)
    pairs = zip([*got[0], *got[1], *got[2], got[3]], [*want[0], *want[1], *want[2], want[3]], strict=True)
    assert all(taeda.equal(a, b) for a, b in pairs)


def _larger(size: int | tuple[int | None, int | None] | None):
    if size is None:
        size = 3
    if isinstance(size, (tuple, list)):
        first, second = size
        if first is None:
            first = 1
        if second is None:
            second = 2
        size = (first, second)
    else:
        size = (size, size)
    return max(size)


def test_a_tuple_that_is_assigned_has_the_types_of_its_items():
    """Not those that the variable had before: None is no choice of them any more, as in PyTorch."""
    scripted = taeda.jit.script(_larger)
    assert [scripted(size) for size in (None, 7, (None, 5), (4, None))] == [3, 7, 5, 4]


def _repeated(x, word: str):
    return x if word == "once" else x + x


class Annotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.word: str | list[str] | None = "twice"
        self.found: list[int] = []
        self.size: int | None = None

    def forward(self, x):
        self.size = len(self.found)
        return _repeated(x, self.word)


def test_the_value_of_an_attribute_says_its_type():
    """An annotation in ``__init__`` counts for None and for empty containers alone."""
    scripted = taeda.jit.script(Annotated())
    assert scripted(taeda.ones(2)).tolist() == [2, 2] and scripted.size == 0


def _another_type(n: int):
    found: list[int] = []
    for i in range(n):
        found.append(i)
    found = taeda.tensor(found, dtype=taeda.float64)
    return found * 2


def _another_type_in_a_branch(n: int):
    found: list[int] = []
    if n > 2:
        found = taeda.zeros(n)
    return found


def test_an_annotated_variable_gets_another_type():
    """In the block of its annotation alone, as in PyTorch."""
    assert taeda.jit.script(_another_type)(3).tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match=r"List\[int\]"):
        taeda.jit.script(_another_type_in_a_branch)


@taeda.jit.script
class Doubling:
    def __init__(self, x: int):
        self.x = x

    @property
    def double(self) -> int:
        return 2 * self.x

    @double.setter
    def double(self, value: int):
        self.x = value // 2


class SetsProperties(nn.Module):
    def forward(self, n: int):
        d = Doubling(n)
        d.double = 20
        d.double += 2
        return d.x, d.double


def test_properties_that_are_set():
    script = taeda.jit.script(SetsProperties())
    assert script(3) == (11, 22)
    file = io.BytesIO()
    taeda.jit.save(script, file)
    assert taeda.jit.load(io.BytesIO(file.getvalue()))(3) == (11, 22)


def failing(kind: str, items: List[int], table: Dict[str, int], text: str, n: int, x: Tensor):  # noqa: UP006
    if kind == "remove":
        items.remove(n)
    elif kind == "pop":
        items.pop(n)
    elif kind == "set":
        items[n] = 1
    elif kind == "index":
        n = items.index(n)
    elif kind == "delete":
        del table[text]
    elif kind == "key":
        n = table.pop(text)
    elif kind == "divide":
        n = n // 0
    elif kind == "int":
        n = int(text)
    elif kind == "range":
        for i in range(0, 5, len(table) - 1):
            n += i
    elif kind == "select":
        x = x[n]
    elif kind == "ignored":
        raises(x)
    return x


@taeda.jit.ignore
def raises(x: Tensor) -> Tensor:
    raise ValueError("ignored")


@pytest.mark.parametrize(
    "kind", ["remove", "pop", "set", "index", "delete", "key", "divide", "int", "range", "select", "ignored"]
)
def test_what_fails_in_a_script_is_a_runtime_error(kind):
    with pytest.raises(RuntimeError) as caught:
        taeda.jit.script(failing)(kind, [1], {"a": 1}, "b", 9, taeda.ones(2))
    assert not isinstance(caught.value, (LookupError, ValueError, ArithmeticError))


def texts(x: float, words: List[str]):  # noqa: UP006
    return str(x), f"{x} {words}", str([x, x / 3]), str((words[0], 1)), str({"a": x})


def test_text_of_values_is_that_of_scripts():
    assert taeda.jit.script(texts)(2.0, ["q"]) == (
        "2.", "2. [q]", "[2., 0.66666666666666663]", "(q, 1)", "{a: 2.}",
    )  # fmt: skip
    assert taeda.jit.script(texts)(-0.0, ["q"])[0] == "0."
    assert taeda.jit.script(texts)(2.0**63, ["q"])[0] == "9.2233720368547758e+18"


class Unsized(tuple):
    def __len__(self):
        raise NotImplementedError


class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = (Unsized((1, 2)),)
        self.step = self.other  # of the instance: scripts have the method of the class

    @taeda.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return args

    @taeda.jit.unused
    def other(self, x: Unknown, **kwargs):  # noqa: F821
        return x

    def step(self, x):
        return x + 1

    @taeda.jit.export
    def update(self, x):
        return self.step(x) if x.numel() < 5 else self.other(x)


def test_unused_methods_may_take_anything():
    assert taeda.jit.script(Partly()).update(taeda.ones(1)).item() == 2.0


def chosen(x: taeda.Tensor, size: Optional[int] = None):  # noqa: UP045
    if size is None:
        if x.numel() > 3:
            size = x.numel()
        else:
            for i in range(3):
                size = i
    return size


def test_what_is_none_may_be_assigned_in_an_inner_block():
    scripted = taeda.jit.script(chosen)
    assert [scripted(taeda.ones(4)), scripted(taeda.ones(1)), scripted(taeda.ones(1), 7)] == [4, 2, 7]
