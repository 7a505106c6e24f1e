"""The examples in docstrings run and print what they say, and every public name has one."""

import doctest
import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest

import taeda
from taeda.ops.registry import OPS

TOOLS = Path(__file__).resolve().parents[1] / "tools"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(TOOLS)
    import docs_coverage


@pytest.fixture(scope="module")
def texts():
    """The distinct docstrings with examples, by namespace."""
    found = {}
    for namespace, name, doc in docs_coverage.examples():
        found.setdefault(namespace, []).append((name, doc))
    return found


@pytest.mark.filterwarnings("ignore")  # of what is deprecated, or slow
@pytest.mark.parametrize("namespace", docs_coverage.NAMESPACES)
def test_examples(namespace, texts, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    taeda.set_printoptions(profile="default")
    reports = []
    for name, doc in texts.get(namespace, ()):
        names = {"taeda": taeda, "nn": taeda.nn, "F": taeda.nn.functional, "math": math, "np": np}
        test = doctest.DocTestParser().get_doctest(doc, names, f"{namespace}.{name}".lstrip("."), None, 0)
        taeda.manual_seed(0)
        doctest.DocTestRunner(verbose=False).run(test, out=reports.append)
        assert taeda.is_grad_enabled() and taeda.get_default_dtype() is taeda.float32, (
            f"{name}'s example leaves a mode on"
        )
    assert not reports, "".join(reports)


def test_every_public_name_has_an_example():
    """Names of other namespaces and what is derived are left out, as tools/docs_coverage.py says."""
    found = {namespace: names for namespace, names in docs_coverage.rows("taeda", docs_coverage.NAMESPACES)}
    assert found.keys() == set(docs_coverage.NAMESPACES) and sum(map(len, found.values())) > 1500
    without = {n: [name for name, facts in names.items() if not facts["example"]] for n, names in found.items()}
    assert {n: names for n, names in without.items() if names} == {}


def test_every_parameter_has_an_entry():
    """As docstrings are read. Errors and kinds of things have no parameters that one passes."""
    found = {n: names for n, names in docs_coverage.rows("taeda", docs_coverage.NAMESPACES)}
    without = {name for names in found.values() for name, facts in names.items() if not facts["args"]}
    assert without == {
        "DeviceType", "GradcheckError", "LinAlgError", "Node", "OutOfMemoryError", "ProfilerAction", "ProfilerActivity",
        "biject_to", "dtype", "transform_to",
    }  # fmt: skip


def test_parameters_that_are_named_are_there():
    assert docs_coverage.misnamed() == {}

    def function(a, *, b=1):
        """A text.

        Args:
            a, c: two. Note: no entry.
            b: one:
                d: of no parameter.
        Returns:
            e: nothing.
        """

    assert docs_coverage.unknown(function, inspect.getdoc(function)) == ["c"]


def test_errors_of_bases_that_do_not_hold_are_not_said():
    """What a base says of errors is completed in its subclasses, where these say nothing."""
    layers = [c for c in vars(taeda.nn).values() if isinstance(c, type) and issubclass(c, taeda.nn.Module)]
    assert len(layers) > 150
    assert [
        c.__name__ for c in layers if re.search(r"Raises:\s+AttributeError: something is assigned", c.__doc__)
    ] == []
    D = taeda.distributions
    transformed = [c for c in vars(D).values() if isinstance(c, type) and issubclass(c, D.TransformedDistribution)]
    said = [c.__name__ for c in transformed if "these are no transforms" in c.__doc__]
    assert len(transformed) > 8 and said == ["TransformedDistribution"]
    assert "a parameter is not in its region" in D.HalfCauchy.__doc__


def test_dtypes_that_are_said_to_be_errors_are():
    dtypes = {"bool": taeda.bool, "int": taeda.int64, "float": taeda.float32, "complex": taeda.complex64}
    checked = 0
    for op in OPS.values():
        rule = vars(op).get("result_rule")
        if rule is None or "NotImplementedError" not in (op.__doc__ or "") or len(op.params) > rule[0]:
            continue
        operands, promote, _, allowed = rule
        for kind in set(dtypes) - set(allowed) if promote == "type" else {"complex"}:
            checked += 1
            with pytest.raises(NotImplementedError):
                op(*[taeda.ones(2, dtype=dtypes[kind])] * operands)
    assert checked > 150


def test_what_griffe_would_warn_of_is_found(tmp_path):
    pytest.importorskip("griffe")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        import docs_lint

    (tmp_path / "taeda" / "ops").mkdir(parents=True)
    (tmp_path / "taeda" / "__init__.py").write_text("")
    function = 'def f({}):\n    """A text.\n\n    Args:\n        a: one.\n    """\n'
    (tmp_path / "taeda" / "ops" / "__init__.py").write_text(function.format("a"))  # has the types of its stub
    assert docs_lint.warnings(tmp_path) == []
    (tmp_path / "taeda" / "typed.py").write_text(function.format("b: int"))
    (tmp_path / "taeda" / "untyped.py").write_text(function.format("a"))
    found = docs_lint.warnings(tmp_path)
    assert [text.partition(":")[0] for text in found] == ["taeda/typed.py", "taeda/typed.py", "taeda/untyped.py"]
    assert "does not appear in the function signature" in found[1] and "No type or annotation" in found[2]


def test_a_wrong_example_is_found(texts, monkeypatch, tmp_path):
    broken = {"": [("add", ">>> taeda.tensor(1) + 1\ntensor(3)\n")]}
    with pytest.raises(AssertionError, match="Failed example"):
        test_examples("", broken, monkeypatch, tmp_path)


def test_views_say_the_dtype_and_those_that_change_it_another():
    for op in (taeda.select, taeda.chunk, taeda.squeeze, taeda.Tensor.expand):
        assert "The dtype is that of ``input``." in op.__doc__
    for op in (taeda.view_as_real, taeda.view_as_complex, taeda.real, taeda.imag, taeda.Tensor.view):
        assert "that of ``input``" not in op.__doc__.partition("Returns:")[2] and "dtype" in op.__doc__


def test_columns_of_tensors_apply_to_what_takes_or_gives_one():
    rows = dict(docs_coverage.rows("taeda", ["", "Tensor", "optim.lr_scheduler"]))
    assert rows[""]["get_num_threads"]["shape"] is rows[""]["get_num_threads"]["raises"] is None
    assert rows["optim.lr_scheduler"]["StepLR"]["dtype"] is rows["Tensor"]["is_cuda"]["shape"] is None
    assert all(rows[""]["select"].values()) and rows[""]["set_num_threads"]["raises"]
