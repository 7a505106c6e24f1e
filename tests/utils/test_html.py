"""What notebooks show: well-formed, escaped, and cheap for what is large."""

import xml.etree.ElementTree as ElementTree

import taeda
from taeda import nn
from taeda.profiler import profile


def tree(thing):
    """The HTML as a tree: what we write is also XML, apart from an attribute without a value."""
    return ElementTree.fromstring(f"<div>{thing._repr_html_().replace('<details open', '<details')}</div>")


def text(thing):
    return "".join(tree(thing).itertext())


def test_tensors():
    x = taeda.tensor([[1.5, 2.0], [3.0, 4.0]], requires_grad=True)
    assert text(x) == f"Tensor [2, 2] · float32 · cpu · requires grad{x!r}"
    assert "grad_fn MulBackward0" in text(x * 2)
    assert "Parameter [3]" in text(nn.Parameter(taeda.zeros(3)))
    for other in (taeda.empty(0, 3), taeda.tensor(True), taeda.ones(2, device="meta"), taeda.ones(2, 2).to_sparse(),
                  taeda.ones(2, dtype=taeda.complex64).conj()):  # fmt: skip
        assert f"{list(other.shape)}" in text(other)
    assert len(taeda.zeros(1000, 1000)._repr_html_()) < 2000
    assert taeda.vmap(lambda t: (t._repr_html_(), t * 2)[1])(taeda.ones(2, 3)).shape == (2, 3)


def test_classes_of_ones_own_are_escaped():
    class Odd(taeda.Tensor):
        pass

    Odd.__name__ = "<b>Odd"
    assert "<b>Odd" in text(taeda.ones(2).as_subclass(Odd))
    assert "<b>Odd" not in taeda.ones(2).as_subclass(Odd)._repr_html_()


def test_modules():
    model = nn.Sequential(nn.Linear(3, 4), nn.ModuleDict({"<a>": nn.LazyLinear(2)}))
    found = text(model)
    assert "Sequential() · 16 parameters" in found
    assert "0: Linear(in_features=3, out_features=4, bias=True) · 16 parameters" in found
    assert "<a>: LazyLinear" in found
    assert len(tree(model).findall(".//details")) == 2
    assert "(0): Linear" in repr(model)  # as before


def test_profiles():
    with profile() as prof:
        taeda.ones(3).exp()
    assert "aten::exp" in text(prof) and "aten::exp" in text(prof.events()) and "aten::exp" in text(prof.key_averages())
    assert "Runs" in text(prof.kernel_averages())
    assert "nothing" in text(profile())


def test_programs_and_explanations():
    program = taeda.export.export(nn.Linear(3, 4), (taeda.ones(2, 3),))
    found = text(program)
    assert "ExportedProgram · 1 ops" in found and "weight[4, 3]float32" in found
    explanation = taeda.compiler.explain(lambda x: x.sin() + 1)(taeda.ones(1000))
    assert hasattr(explanation, "_repr_html_"), type(explanation)
    assert "kernels" in text(explanation)
