"""Adding a pointwise op takes one stanza in one place: everything else about it follows, and is checked here.

A program's op has a namespace, and takes the place of nothing that the library has.
"""

import math
import os
import pickle
import shutil
import sys
from pathlib import Path

import derived
import numpy as np
import pytest

import taeda
from taeda.kernels import scalar as s
from taeda.ops import table
from taeda.ops.registry import make_public
from taeda.ops.traits import TRAITS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bump():
    """A new op of a program that asks for a method; gone from the table after the tests."""
    ops, methods = dict(table.OPS), dict(table.METHODS)

    # ---- the stanza --------------------------------------------------------------------------------------------------
    @table.pointwise(
        name="tests::bump", method=True, promote="float", dtypes=("float",), reference=lambda x: np.exp(-x * x / 2),
        domain=(-3, 3),
    )  # fmt: skip
    def bump(input, width=1.0):
        """A bell of height 1, ``exp(-(x / width)**2 / 2)``."""
        scaled = input / width
        return s.exp(scaled * scaled * -0.5)

    bump.vjp(input=lambda g, input, out, width: -g * out * input / (width * width))
    # ------------------------------------------------------------------------------------------------------------------

    yield bump
    table.OPS.clear()
    table.OPS.update(ops)
    table.METHODS.clear()
    table.METHODS.update(methods)
    del taeda.Tensor.bump, taeda.Tensor.bump_


VALUES = "value dtypes bad_input method inputs_kept layouts broadcast empty out inplace".split()
CHECKS = [*VALUES, "gradient", "gradient_dtype", "second_gradient"]


def test_the_checks_of_the_table_apply(bump):
    assert sorted(derived.checks(bump)) == sorted(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_check(bump, name):
    derived.checks(bump)[name](bump)


def test_function_method_inplace_and_out(bump):
    x = taeda.tensor([0.0, 1.0, -2.0])
    want = np.exp(-np.array([0.0, 1.0, 4.0]) / 2)
    np.testing.assert_allclose(bump(x).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(x.bump().numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(bump(x, width=2.0).numpy(), want**0.25, rtol=1e-6)
    out = taeda.empty(3)
    assert bump(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)
    assert x.bump_() is x
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-6)


def test_integers_are_promoted(bump):
    assert bump(taeda.tensor([1, 2])).dtype == taeda.float32


def test_gradient_reaches_a_parameter(bump):
    x = taeda.tensor([0.5, 1.0], dtype=taeda.float64, requires_grad=True)
    bump(x, 3.0).sum().backward()
    values = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), -np.exp(-((values / 3) ** 2) / 2) * values / 9, rtol=1e-12)


def test_stub(bump, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "tools")])
    stubs = pytest.importorskip("stubs")
    function = stubs.define("bump", bump, False)
    assert function.startswith("def bump(input: Tensor, width: Number = 1.0, *, out: Any = None) -> Tensor:")
    assert "A bell of height 1" in function
    method = stubs.define("bump_", bump.traits["inplace"], True)
    assert method.startswith("    def bump_(self, width: Number = 1.0) -> Tensor:")


# ---- an op of the library ------------------------------------------------------------------------------------------------

STANZA = """

@pointwise(promote="float", dtypes=("float",), public="taeda")
def bump(input, width=1.0):
    \"\"\"A bell of height 1, ``exp(-(x / width)**2 / 2)``.\"\"\"
    scaled = input / width
    return s.exp(scaled * scaled * -0.5)


bump.vjp(input=lambda g, input, out, width: -g * out * input / (width * width))
"""

PROGRAM = """
import sys
import taeda
x = taeda.tensor([0.0, 1.0], requires_grad=True)
y = taeda.bump(x, width=2.0)
y.sum().backward()
print(*y.tolist(), *x.grad.tolist())
print(*taeda.vmap(taeda.bump)(x.detach()[None]).shape, x.detach().bump_() is not None, "bump" in dir(taeda))
print(taeda.fx.symbolic_trace(lambda x: taeda.bump(x)).code.count("bump"))
sys.path.insert(0, sys.argv[1])
import reference, stubs
print("def bump(input: Tensor, width: Number = 1.0" in stubs.root(), "`bump(input, width=1.0)`" in reference.generate())
"""


def test_an_op_of_the_library_is_one_stanza_in_one_file(run_python, tmp_path):
    """All files of the package are links to its own, but the one that has a new stanza; tools write the pages."""
    package = Path(taeda.__file__).parent
    skipped = shutil.ignore_patterns("__pycache__", "*.c", "*.pyx")
    copied = shutil.copytree(package, tmp_path / "taeda", copy_function=os.symlink, ignore=skipped)
    family = copied / "ops" / "powers.py"
    text = family.read_text()
    family.unlink()
    family.write_text(text + STANZA)
    lines = run_python(PROGRAM.replace("sys.argv[1]", repr(str(ROOT / "tools"))), PYTHONPATH=str(tmp_path)).split()
    values, (batch, size, inplace, listed, traced, stub, page) = [float(x) for x in lines[:4]], lines[4:]
    np.testing.assert_allclose(values, [1, math.exp(-1 / 8), 0, -math.exp(-1 / 8) / 4], rtol=1e-6)
    assert (batch, size, inplace, listed, stub, page) == ("1", "2", *["True"] * 4) and int(traced) >= 1


def test_only_the_library_and_its_namespaces_have_public_names(tables):
    with pytest.raises(ValueError, match="tests::softsum: public='taeda' is for the library's ops"):
        declare("softsum", name="tests::softsum", public="taeda")
    with pytest.raises(ValueError, match="softsum: public='nn' is none of the namespaces taeda, special"):
        make_public("softsum", None, "nn")
    assert taeda.special.legendre_polynomial_p(taeda.tensor(0.5), 2).item() == -0.125


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tables():
    """The tables of ops; what a test declares is gone after it."""
    ops, methods = dict(table.OPS), dict(table.METHODS)
    yield
    for kept, now in ((ops, table.OPS), (methods, table.METHODS)):
        now.clear()
        now.update(kept)


def function_called(name):
    """A function of this file."""

    def function(input, other):
        return input + other

    function.__name__ = name
    return function


def declare(label, **given):
    """A pointwise op, declared in this file, that adds."""
    return table.pointwise(**given)(function_called(label))


def five_minus_three():
    return (taeda.tensor(5.0) - taeda.tensor(3.0)).item()


def test_an_op_of_a_program_has_its_package_as_namespace_and_is_no_method(tables):
    op = declare("softsum")
    namespace = __name__.partition(".")[0]
    assert op.name == f"{namespace}::softsum"
    assert not hasattr(taeda.Tensor, "softsum") and not hasattr(taeda.Tensor, "softsum_")
    assert getattr(taeda.library.ops, namespace).softsum is op
    assert pickle.loads(pickle.dumps(op)) is op


@pytest.mark.parametrize("name", ["sub", "exp", "softmax", "__add__", "zero_", "view"])
def test_a_name_that_the_library_has_is_an_error(name, tables):
    with pytest.raises(ValueError, match=f"{name}: the library has an op of this name"):
        declare(name)
    with pytest.raises(ValueError, match="the library has"):
        table.composite()(function_called(name))
    assert five_minus_three() == 2


def test_in_a_namespace_of_its_own_an_op_may_have_any_name(tables):
    op = declare("sub", name="mylib::sub")
    assert op(taeda.tensor(5.0), taeda.tensor(3.0)).item() == 8
    assert five_minus_three() == taeda.sub(taeda.tensor(5.0), 3).item() == 2
    assert taeda.vmap(op)(taeda.ones(3), taeda.ones(3)).tolist() == [2, 2, 2]
    assert taeda.distributions.LogNormal(0.0, 1.0).mean.item() == pytest.approx(1.6487213)


@pytest.mark.parametrize("name", ["aten::softsum", "taeda::softsum", "a::b::softsum", "my lib::softsum"])
def test_names_that_are_refused(name, tables):
    with pytest.raises(ValueError, match="softsum"):
        declare("softsum", name=name)


@pytest.mark.parametrize("name", ["sub", "zero", "t"])
def test_a_method_does_not_replace_one(name, tables):
    before = taeda.Tensor.zero_, taeda.Tensor.sub
    with pytest.raises(ValueError, match=f"mylib::{name}.*Tensor has a method"):
        declare(name, name=f"mylib::{name}", method=True)
    assert f"mylib::{name}" not in table.OPS
    assert (taeda.Tensor.zero_, taeda.Tensor.sub) == before


def test_the_same_op_may_be_declared_again_but_not_by_another_module(tables):
    declare("softsum", name="mylib::softsum")
    again = declare("softsum", name="mylib::softsum")
    assert taeda.library.ops.mylib.softsum is again

    def softsum(input):
        return input

    softsum.__module__ = "elsewhere"
    with pytest.raises(ValueError, match=r"mylib::softsum: the module .* has declared"):
        table.pointwise(name="mylib::softsum")(softsum)


@pytest.mark.parametrize("kind", ["pointwise", "primitive", "view", "composite"])
def test_a_misspelt_trait_is_an_error_where_the_op_is_declared(kind, tables):
    with pytest.raises(TypeError, match="no trait 'cannonical'; did you mean 'canonical'"):
        getattr(table, kind)(cannonical=True)(function_called("softsum"))
    assert not any("softsum" in name for name in table.OPS)


def test_every_trait_that_an_op_has_is_declared():
    used = {key for op in table.OPS.values() if isinstance(op, taeda._core.Op) for key in op.traits}
    assert used <= set(TRAITS)


def test_code_that_is_generated_finds_an_op_of_a_program():
    graph = taeda.fx.symbolic_trace(lambda x: tripled(x) + 1).graph
    module = taeda.fx.GraphModule(taeda.nn.Module(), graph)
    copied = pickle.loads(pickle.dumps(module))
    assert copied(taeda.ones(2)).tolist() == [4, 4]


@table.pointwise(name="tests::tripled")
def tripled(input):
    """Three times the input."""
    return input * 3
