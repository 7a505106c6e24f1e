"""Every op of the table does what its stanza promises; nothing here names an op."""

import inspect
import pydoc
import re

import derived
import pytest

import taeda
from taeda._core import Op
from taeda.ops.table import METHODS, OPS, _make

CASES = [
    pytest.param(op, check, id=f"{name}-{label}")
    for name, op in {**derived.pointwise_ops(), **derived.other_ops()}.items()
    for label, check in derived.checks(op).items()
]


@pytest.mark.parametrize(("op", "check"), CASES)
def test_op(op, check):
    check(op)


#: Public ops whose stanzas give no samples, and whose parameters do not say enough to make a call.
UNCHECKED = set(
    "_int_mm addmm addmv baddbmm cholesky_solve conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d dot expand linear matrix_exp mv ormqr reshape select split_with_sizes unfold view "
    "view_as_complex view_as_real".split()
)


def test_no_op_leaves_the_checks():
    """No op leaves the checks in silence, as one would whose samples raise."""
    raised = []
    for name, op in derived.other_ops().items():
        for args, kwargs in derived.samples(op):
            try:
                op(*args, **kwargs)
            except Exception as error:
                raised.append(f"{name}: {error!r}")
    assert raised == []
    assert set(derived.public_ops()) - set(derived.other_ops()) == UNCHECKED
    assert len(derived.pointwise_ops()) >= 216


@pytest.mark.parametrize("name", sorted(n for n in OPS if not n.startswith("_")))
def test_every_op_is_documented(name):
    assert (OPS[name].__doc__ or "").strip()


UNARY = [n for n, op in OPS.items() if getattr(op, "traits", {}).get("pointwise") is True and op.params == ("input",)]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.int64, taeda.bool, taeda.complex64], ids=str)
@pytest.mark.parametrize("name", sorted(n for n in UNARY if not n.startswith("_") and not n.endswith("_")))
def test_docstrings_say_the_dtype_of_the_result(name, dtype):
    doc = OPS[name].__doc__
    said = doc.partition("The dtype is ")[2]
    kind = "complex" if dtype.is_complex else "floating" if dtype.is_floating_point else "integers"
    kind = "bools" if dtype is taeda.bool else kind
    dtypes = said.partition("    For ")[2].partition("\n")[0]
    if (dtypes and kind not in dtypes) or ("Not for complex" in said and dtype.is_complex):
        with pytest.raises((RuntimeError, TypeError)):
            OPS[name](taeda.ones(2, 3, dtype=dtype))
        return
    wanted = dtype
    if "integers and bools the default" in said and kind in ("integers", "bools"):
        wanted = taeda.get_default_dtype()
    if said.startswith("``bool``"):
        wanted = taeda.bool
    elif "that of their parts" in said and dtype.is_complex:
        wanted = taeda.float32
    made = OPS[name](taeda.ones(2, 3, dtype=dtype))
    made = made[0] if isinstance(made, tuple) else made
    assert "The sizes of ``input``" in doc and made.shape == (2, 3) and made.dtype is wanted


def test_docstrings_list_parameters_alone():
    """An entry of another name is lost when the docstring is read."""
    wrong = []
    for name, op in OPS.items():
        own = inspect.cleandoc(vars(op).get("__doc__") or "").partition("\nArgs:\n")[2]
        said = re.findall(r"^ {4}(\w+(?:, \w+)*): ", own.partition("\n\n")[0], re.MULTILINE)
        if not re.search(r"^(Returns|Raises):$", own, re.MULTILINE):
            wrong += [f"{name}: {x}" for entry in said for x in entry.split(", ") if f"    {x}:" not in op.__doc__]
    assert wrong == []


def test_what_follows_from_a_stanza_is_in_the_docstring():
    assert "keepdim: " in taeda.amax.__doc__ and "out: " in taeda.amax.__doc__
    assert "keepdim" not in vars(taeda.amax)["__doc__"]
    assert "out: " not in taeda.Tensor.add_.__doc__ and "alpha: " in taeda.Tensor.add_.__doc__
    assert taeda.special.expit.__doc__ == taeda.sigmoid.__doc__
    assert "taeda.diagonal_copy(" in taeda.diagonal_copy.__doc__


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_on_the_tensor(name):
    assert hasattr(taeda.Tensor, name)


def test_every_pointwise_op_is_checked():
    unchecked = [
        n for n, op in derived.pointwise_ops().items() if not derived.checks(op) and not op.traits.get("random")
    ]
    unchecked = [n for n in unchecked if not derived.needs_attributes(OPS[n])]
    assert unchecked == []


def test_derivatives_ask_for_what_exists():
    """The rules that are there were all taken; one that asks for anything else is refused where it is declared."""

    def scaled(x, by):
        return x * by

    def op():
        return _make(scaled, "host", scaled, "tests_scaled", traits={"outputs": ("scaled",)})

    op().vjp(x=lambda g, needs, x, by, scaled, x_shape, x_dtype: g * by)
    for rule in (lambda g, other: g, lambda g, out: g, lambda g, other_shape: g, lambda g, by_sizes: g):
        with pytest.raises(TypeError, match="tests_scaled: its derivative asks for"):
            op().vjp(x=rule)
    with pytest.raises(ValueError):
        op().vjp(other=lambda g: g)


def test_composites_have_signatures():
    for name, function in OPS.items():
        if not isinstance(function, Op):
            inspect.signature(function)
            assert callable(function), name


def test_help_shows_signatures_and_docstrings():
    assert str(inspect.signature(taeda.exp)) == "(input, *, out=None)"
    for shown, first in ((taeda.Tensor.exp, "exp(input"), (taeda.zeros, "zeros(*args")):
        text = pydoc.plain(pydoc.render_doc(shown))
        assert first in text and shown.__doc__.splitlines()[0] in text

    class Holder:
        function = taeda.exp

    assert Holder().function is taeda.exp  # an op in a class is no method


def test_methods_written_in_the_core_have_signatures():
    for method in (taeda.Tensor.backward, taeda.Tensor.item, taeda.Tensor.size, taeda.Tensor.register_hook):
        assert "self" in inspect.signature(method).parameters and method.__doc__


MAKE = {
    "zeros": (2,), "ones": (2,), "empty": (2,), "rand": (2,), "randn": (2,), "eye": (2,), "arange": (2,),
    "full": ((2,), 1), "randint": (3, (2,)), "randperm": (2,), "linspace": (0, 1, 2), "hann_window": (2,),
    "tril_indices": (2, 2), "triu_indices": (2, 2), "empty_strided": ((2,), (1,)), "scalar_tensor": (1,),
}  # fmt: skip


@pytest.mark.parametrize("name", [*MAKE, "zeros_like", "rand_like", "new_zeros", "new_full"])
def test_a_layout_that_is_not_made_is_refused(name):
    x = taeda.ones(2)
    function, args = (getattr(x, name), MAKE[name[4:]]) if name.startswith("new_") else (getattr(taeda, name), (x,))
    args = MAKE.get(name, args)
    assert function(*args, layout=taeda.strided).layout is taeda.strided
    refused = taeda.sparse_bsr if name in ("zeros", "empty", "zeros_like", "new_zeros") else taeda.sparse_csr
    with pytest.raises(RuntimeError, match=f"{name}: expected .*layout .*got {refused}"):
        function(*args, layout=refused)
    with pytest.raises(TypeError, match="'layout'"):
        function(*args, layout=3)


def test_a_sparse_input_keeps_its_layout_by_name():
    x = taeda.eye(2).to_sparse()
    assert taeda.zeros_like(x, layout=taeda.sparse_coo).layout is taeda.sparse_coo
    with pytest.raises(RuntimeError, match="layout"):
        taeda.nested.nested_tensor([taeda.ones(2)], layout=taeda.sparse_coo)
