"""Frozen modules: what is folded, and that it computes what it did."""

from __future__ import annotations

import io

import pytest
from agree import imported

import taeda

PROGRAM = '''
import {framework} as torch
from typing import List, Optional, Tuple
from {framework} import Tensor, nn
import {framework}.nn.functional as F


class Block(nn.Module):
    def __init__(self, width: int, groups: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False, groups=groups)
        self.bn = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        y = self.bn(y)
        return x + self.drop(self.act(y))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.blocks = nn.ModuleList([Block(4), Block(4, 2)])
        self.up = nn.Sequential(nn.ConvTranspose2d(4, 6, 2, 2), nn.BatchNorm2d(6, affine=False))
        self.head = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 5))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.up(x).mean((2, 3)))


class Sums(nn.Module):
    """Sums and products behind convolutions, and two normalisations."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3)
        self.bn, self.again = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
        self.other = nn.Conv3d(1, 2, 2, bias=False)
        self.register_buffer("scale", torch.tensor([2.0, -3.0]).reshape(2, 1, 1, 1))
        self.register_buffer("row", torch.tensor([1.0, 2.0]))

    def forward(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        a = self.again(self.bn(self.conv(x)) * 2) - 0.5
        b = (self.other(y) * self.scale + 1.0) / 4
        return a, b, self.other(y) + self.row


class Kept(nn.Module):
    """Results that are read twice, normalised in branches, in loops, and by what comes in."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
        self.one, self.two = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def twice(self, x: Tensor, go: bool) -> Tensor:
        if go:
            return x
        for i in range(3):
            x = x * 2
            if i == 1:
                return x
        return x

    def early(self, x: Tensor, n: int) -> Tensor:
        if n > 2:
            if n > 3:
                return x + n
            x = x - 1
        elif n == 0:
            return x * 5
        else:
            x = x * 3
        return x * 2

    def forward(self, x: Tensor, rows: Tensor, n: int) -> Tuple[Tensor, Tensor, Tensor, List[Tensor]]:
        y = self.conv(x)
        z = self.bn(y) + y
        total = torch.zeros_like(x)
        count = 0
        for i in range(n):
            old = count
            count = count + i
            total = self.bn(self.one(total)) + x * old
            if count > 2:
                total = total - self.twice(total, n > 3)
        if n > 1:
            w = self.two(x)
        else:
            w = x
        w = self.bn(w)
        rest = [self.early(x, k) for k in range(5)]
        rest.append(self.early(x, n).add_(self.early(x, 1)))
        return z, total + w + count, self.norm(self.linear(rows)), rest
'''


def framework(name, folder):
    path = folder / f"frozen_{name}.py"
    path.write_text(PROGRAM.replace("{framework}", name))
    return imported(path)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return framework("taeda", tmp_path_factory.mktemp("frozen"))


def model(kind):
    taeda.manual_seed(0)
    made = kind().eval()
    for module in made.modules():
        if "BatchNorm" in type(module).__name__:
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                module.weight.data.normal_()
                module.bias.data.normal_()
    return made


def kinds(graph):
    """The ops of a graph and the graphs inside of it."""
    for node in graph.nodes():
        yield node.kind()
        for block in node.blocks():
            yield from kinds(block)


def count(module, name):
    return sum(kind == f"aten::{name}" for kind in kinds(module.graph))


def leaves(x):
    return [x] if isinstance(x, taeda.Tensor) else [leaf for part in x for leaf in leaves(part)]


def agree(module, frozen, *args):
    buffer = io.BytesIO()
    frozen.save(buffer)
    loaded = taeda.jit.load(io.BytesIO(buffer.getvalue()))
    for made in (frozen, loaded, taeda.jit.freeze(loaded.eval())):
        for x, y in zip(leaves(made(*args)), leaves(module(*args)), strict=True):
            assert taeda.allclose(x, y, 1e-5, 1e-5 * float(y.abs().max()))
    return buffer.getvalue()


@pytest.mark.parametrize("how", ["script", "trace"])
def test_normalisation_is_folded(programs, how):
    net = model(programs.Net)
    x = taeda.randn(2, 3, 4, 4)
    made = taeda.jit.script(net) if how == "script" else taeda.jit.trace(net, x)
    frozen = taeda.jit.freeze(made)
    agree(net, frozen, x)
    assert list(kinds(frozen.graph)).count("prim::CallMethod") == 0 and count(frozen, "dropout") == 0
    assert count(frozen, "conv2d") == 3 and count(frozen, "batch_norm") == 1  # that of three dimensions
    plain = taeda.jit.freeze(made, optimize_numerics=False)
    agree(net, plain, x)
    taeda.jit.run_frozen_optimizations(plain)
    assert count(plain, "batch_norm") == 1
    assert count(taeda.jit.optimize_for_inference(made), "batch_norm") == 1


def test_sums_and_products_are_folded(programs):
    net = model(programs.Sums)
    args = taeda.randn(2, 2, 6), taeda.randn(2, 1, 3, 3, 3)
    frozen = taeda.jit.freeze(taeda.jit.script(net))
    agree(net, frozen, *args)
    names = ("batch_norm", "mul", "sub", "div", "conv1d", "conv3d", "add")
    assert [count(frozen, name) for name in names] == [0, 0, 0, 0, 1, 2, 1]  # what adds along the last dimension stays


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("rows", [(4, 3), (2, 3, 3)])
def test_what_must_stay(programs, n, rows):
    net = model(programs.Kept)
    frozen = taeda.jit.freeze(taeda.jit.script(net))
    agree(net, frozen, taeda.randn(2, 3, 2, 2), taeda.randn(*rows), n)
    assert count(frozen, "batch_norm") == 3  # of what is read twice, of what a branch made, and of three dimensions


def test_methods_that_are_preserved(programs):
    net = model(programs.Kept)
    frozen = taeda.jit.freeze(taeda.jit.script(net), preserved_attrs=["early", "bn"])
    x = taeda.randn(2, 3, 2, 2)
    for n in range(5):
        assert taeda.equal(frozen.early(x, n), net.early(x, n))
    assert taeda.equal(frozen.bn(x), net.bn(x))
    assert taeda.jit.optimize_for_inference(frozen, ["early"]) is frozen
    assert taeda.equal(frozen.early(x, 3), net.early(x, 3))
    with pytest.raises(RuntimeError, match="no attribute or method 'gone'"):
        taeda.jit.freeze(taeda.jit.script(net), preserved_attrs=["gone"])


@pytest.mark.parametrize("name", ["Net", "Sums", "Kept"])
def test_beside_pytorch(name, programs, tmp_path):
    """PyTorch's own archives agree when frozen here; ours run there."""
    torch = pytest.importorskip("torch")
    theirs = getattr(framework("torch", tmp_path), name)().eval()
    args = {
        "Net": (torch.randn(2, 3, 4, 4),), "Sums": (torch.randn(2, 2, 6), torch.randn(2, 1, 3, 3, 3)),
        "Kept": (torch.randn(2, 3, 2, 2), torch.randn(2, 3, 3), 3),
    }[name]  # fmt: skip
    buffer = io.BytesIO()
    scripted = torch.jit.script(theirs)
    torch.jit.save(scripted, buffer)
    ours = taeda.jit.load(io.BytesIO(buffer.getvalue()))
    given = [taeda.from_numpy(x.numpy()) if isinstance(x, torch.Tensor) else x for x in args]
    frozen = taeda.jit.freeze(ours.eval())
    back = torch.jit.load(io.BytesIO(agree(ours, frozen, *given)))

    def flat(x):
        return [x] if isinstance(x, torch.Tensor) else [leaf for part in x for leaf in flat(part)]

    for x, y in zip(flat(back(*args)), flat(theirs(*args)), strict=True):
        assert torch.allclose(x, y, 1e-5, 1e-5 * float(y.abs().max()))
    left = str(torch.jit.freeze(scripted).inlined_graph).count("aten::batch_norm(")
    assert count(frozen, "batch_norm") <= left + 1  # here a linear layer's stays for three dimensions


class Written(taeda.jit.ScriptModule):
    @taeda.jit.script_method
    def forward(self, x):
        return x * 2


def test_a_module_that_is_written_as_a_script():
    file = io.BytesIO()
    taeda.jit.save(Written(), file)
    file.seek(0)
    for module in (taeda.jit.load(file), taeda.jit.freeze(Written().eval())):
        assert module(taeda.ones(2)).tolist() == [2, 2]
