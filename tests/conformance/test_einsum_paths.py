"""Products of several operands: every order of contraction gives PyTorch's result; the settings; errors by type."""

import pytest

import taeda
from taeda.ops import contraction

torch = pytest.importorskip("torch")

from tests.conformance.peer import ERRORS, compare, gradients  # noqa: E402

EQUATIONS = {
    "ij,jk,kl->il": ((3, 4), (4, 2), (2, 5)),
    "bij,bjk,ik,b->bk": ((2, 3, 4), (2, 4, 5), (3, 5), (2,)),
    "a...,...b,ab->...": ((3, 2, 4), (2, 4, 5), (3, 5)),
    "ij,ij,ij->": ((3, 4), (1, 4), (3, 1)),
    "ea,fb,abcd,gc,hd->efgh": ((2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)),
    "i,j,k->ijk": ((2,), (3,), (4,)),
    "iij,jk,k": ((3, 3, 2), (2, 4), (4,)),
}


@pytest.mark.parametrize("package", [True, False], ids=["opt_einsum", "greedy"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_orders(equation, package, monkeypatch):
    if package:
        pytest.importorskip("opt_einsum")
    else:
        monkeypatch.setattr(contraction, "planner", lambda: None)
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(s, dtype=torch.float64, generator=generator) for s in EQUATIONS[equation]]
    compare(equation, lambda T, *x: T.einsum(equation, *x), *operands)
    gradients(equation, lambda T, *x: T.einsum(equation, *x), *operands)


def test_settings(monkeypatch):
    package = pytest.importorskip("opt_einsum")
    asked = []
    real = package.contract_path

    def contract_path(*args, **kwargs):
        asked.append(kwargs["optimize"])
        return real(*args, **kwargs)

    monkeypatch.setattr(package, "contract_path", contract_path)
    contraction._planned.cache_clear()
    settings = taeda.backends.opt_einsum
    x = taeda.ones(2, 2)
    assert settings.is_available() and settings.get_opt_einsum() is package
    taeda.einsum("ij,jk,kl", x, x, x)
    with settings.flags(enabled=True, strategy="greedy"):
        taeda.einsum("ij,jk,kl", x, x, x)
    with settings.flags(enabled=False):
        taeda.einsum("ij,jk,kl->li", x, x, x)
    taeda.einsum("ij,jk", x, x)
    assert asked == ["auto", "greedy"]


@pytest.mark.parametrize("arguments", [
    lambda T, x: (),
    lambda T, x: ("ij",),
    lambda T, x: ("ij,jk", x),
    lambda T, x: ("ij", x, x),
    lambda T, x: ("ij", 3),
    lambda T, x: ("i..j", x),
    lambda T, x: ("ij->k", x),
    lambda T, x: ("ij->ii", x),
    lambda T, x: ("i1", x),
    lambda T, x: ("ii", x),
    lambda T, x: ("ij,jk", x, x),
    lambda T, x: (x, [0, 52]),
    lambda T, x: (x, "ij"),
    lambda T, x: (x, [0, 1], x),
])  # fmt: skip
def test_wrong_arguments(arguments):
    compare("einsum", lambda T, x: T.einsum(*arguments(T, x)), torch.ones(2, 3), raises=ERRORS)


def test_lists_of_indices():
    compare("einsum", lambda T, x: T.einsum(x, [0, 1], x, [0, 1], []), torch.ones(2, 3))
    compare("einsum", lambda T, x: T.einsum(x, [0, ...], [..., 0]), torch.ones(2, 3))


@pytest.mark.parametrize("shape", [(10, 32, 4), (1, 3, 2)])
def test_a_subscript_repeated_with_other_sizes(shape):
    said = []
    for f in (torch, taeda):
        with pytest.raises(RuntimeError) as raised:
            f.einsum("iij", f.ones(shape))
        said.append(str(raised.value))
    assert said[0] == said[1]
