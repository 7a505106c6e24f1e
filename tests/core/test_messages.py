"""Errors that name what the user called, and the nearest name for a misspelt one."""

from __future__ import annotations

import ast
import inspect
import pickle
import pydoc
import re
from pathlib import Path

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda._core import Op
from taeda.nn import functional as F
from taeda.nn.utils import prune
from taeda.nn.utils.parametrize import transfer_parametrizations_and_params as transfer
from taeda.ops.table import OPS

pytestmark = pytest.mark.filterwarnings("ignore:.*target size.*:UserWarning")

x, y = taeda.ones(2, 3), taeda.ones(4, 5)
q = taeda.ones(2, 4, 5, 8)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: taeda.sofmax, AttributeError, "'sofmax'. Did you mean 'softmax'?"),
        (lambda: taeda.complie, AttributeError, "Did you mean 'compile'?"),
        (lambda: taeda.add(x, othr=x), TypeError, "'othr' (it takes input, other, alpha). Did you mean 'other'?"),
        (lambda: F.max_pool2d(x, kernel_sise=2), TypeError, "Did you mean 'kernel_size'?"),
        (lambda: nn.Conv2d(3, 4, kernel_sise=3), TypeError, "Conv2d.__init__() got an unexpected keyword argument"),
        (lambda: nn.Conv2d(3, 4, kernel_sise=3), TypeError, "'kernel_sise'. Did you mean 'kernel_size'?"),
        (lambda: taeda.softmax(x, dmi=1), TypeError, "Did you mean 'dim'?"),
        (lambda: x.chunk(2, dmi=1), TypeError, "Did you mean 'dim'?"),
        (lambda: taeda.exp(x, otu=x), TypeError, "Did you mean 'out'?"),
        (lambda: taeda.std(x, otu=x), TypeError, "Did you mean 'out'?"),
        (lambda: taeda.randn(2, dtpye=taeda.float64), TypeError, "Did you mean 'dtype'?"),
        (lambda: taeda.arange(2, pin_memoyr=True), TypeError, "Did you mean 'pin_memory'?"),
        (lambda: nn.Softmax(dmi=1), TypeError, "Did you mean 'dim'?"),
        (lambda: nn.CosineSimilarity(esp=1), TypeError, "Did you mean 'eps'?"),
        (lambda: taeda.optim.SGD([x], momentun=0.9), TypeError, "Did you mean 'momentum'?"),
        (lambda: taeda.optim.lr_scheduler.StepLR(None, step_sise=1), TypeError, "Did you mean 'step_size'?"),
        (lambda: taeda.utils.data.DataLoader([1], batchsize=2), TypeError, "Did you mean 'batch_size'?"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_names_that_resemble_nothing_get_no_suggestion():
    with pytest.raises(AttributeError) as caught:
        taeda.qqqq  # noqa: B018
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(TypeError) as caught:
        nn.Linear(2, 2, qqqq=1)
    assert "Did you mean" not in str(caught.value)


def test_classes_may_take_any_keywords():
    class Any(nn.Module):
        def __init__(self, **options):
            super().__init__()
            self.options = options

    assert Any(kernel_sise=3).options == {"kernel_sise": 3}


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: F.mse_loss(x, y), "mse_loss"),
        (lambda: F.smooth_l1_loss(x, y), "smooth_l1_loss"),
        (lambda: F.hinge_embedding_loss(x, y), "hinge_embedding_loss"),
        (lambda: nn.TripletMarginLoss()(x, y, x), "triplet_margin_loss"),
        (lambda: F.pairwise_distance(x, y), "pairwise_distance"),
        (lambda: taeda.allclose(x, y), "allclose"),
        (lambda: taeda.dist(x, y), "dist"),
        (lambda: F.gumbel_softmax(x, dim=4), "gumbel_softmax"),
        (lambda: F.normalize(x, dim=4), "normalize"),
        (lambda: x + y, "add"),
        (lambda: x.softmax(4), "softmax"),
        (lambda: F.scaled_dot_product_attention(q, q, q, attn_mask=taeda.ones(3, 3)), "scaled_dot_product_attention"),
        (lambda: F.scaled_dot_product_attention(q, q, q, attn_mask=x > 0), "scaled_dot_product_attention"),
        (lambda: F.scaled_dot_product_attention(q, q[:, :2], q[:, :2]), "scaled_dot_product_attention"),
        (lambda: nn.MultiheadAttention(8, 2)(q[0], q[0, :, :3], q[0, :, :3]), "multi_head_attention_forward"),
    ],
)
def test_errors_name_the_function_that_was_called(call, name):
    with pytest.raises((RuntimeError, IndexError), match=f"^{name}: "):
        call()


def test_a_function_of_the_user_is_not_named():
    def helper(a, b):
        return F.l1_loss(a, b)

    with pytest.raises(RuntimeError, match=r"^l1_loss: "):
        helper(x, y)


@pytest.mark.parametrize(
    "call, mend",
    [
        (lambda: x[(x > 0).float()], "a mask with bool"),
        (lambda: F.cross_entropy(taeda.ones(4, 3), taeda.ones(4, 3, dtype=taeda.int64)), "with float"),
    ],
)
def test_mends_do_no_harm(call, mend):
    with pytest.raises((IndexError, RuntimeError), match=mend):
        call()


def test_a_state_carried_over_is_to_be_detached():
    w = taeda.ones(2, requires_grad=True)
    h = w * w
    (h * w).sum().backward()
    with pytest.raises(RuntimeError, match=r"state = state\.detach\(\)"):
        (h * w).sum().backward()


def test_a_worker_that_cannot_be_pickled_says_what_to_do():
    loader = taeda.utils.data.DataLoader(
        [1, 2], num_workers=1, collate_fn=lambda items: items, multiprocessing_context="spawn"
    )
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)) as caught:
        next(iter(loader))
    assert any("define them at the top of a module" in note for note in caught.value.__notes__)


def test_help_shows_the_signature_of_every_op():
    for name, op in OPS.items():
        assert inspect.isroutine(op), name
        if isinstance(op, Op) and op.traits.get("has_out") and not op.writes:
            assert "out" in inspect.signature(op).parameters, name
    text = pydoc.plain(pydoc.render_doc(taeda.add))
    assert "add(input, other, *, alpha=1, out=None)" in text


def test_dir_lists_what_is_imported_when_first_named():
    names = dir(taeda)
    assert {"compile", "vmap", "export", "profiler", "onnx", "jit", "cuda", "autocast", "relu"} <= set(names)
    for name in names:
        getattr(taeda, name)


def _parametrized():
    return nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: taeda.isin(1, 2), TypeError, "isin(): expected a tensor"),
        (lambda: taeda.isin(1.0, [1]), TypeError, "got float and list"),
        *(
            (lambda f=f, dtype=dtype: f(2, 2, dtype=dtype), NotImplementedError, "expected dtype int32 or int64")
            for f in (taeda.tril_indices, taeda.triu_indices)
            for dtype in (taeda.float32, taeda.bool, taeda.uint8, taeda.complex64)
        ),
        (lambda: _stacked("stack").check(taeda.ones(3)), AssertionError, "expected size 2 in dimension 0"),
        (lambda: _stacked("cat").check(taeda.ones(3)), AssertionError, "expected size 2 in dimension 0"),
        (lambda: transfer(_parametrized(), nn.Linear(2, 2), "bias"), KeyError, "'bias' of from_module is not param"),
        (lambda: prune.PruningContainer(3), TypeError, "is not a BasePruningMethod"),
        (lambda: prune.PruningContainer([prune.Identity()]), TypeError, "is not a BasePruningMethod"),
        (lambda: x.view(2, 3, foo=1), TypeError, "view() got"),
    ],
)
def test_what_was_expected_is_said(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def _stacked(name):
    constraints = taeda.distributions.constraints
    return getattr(constraints, name)([constraints.real, constraints.positive])


def test_a_container_takes_methods_that_have_no_tensor_yet():
    container = prune.PruningContainer(prune.Identity())
    container.add_pruning_method(prune.RandomUnstructured(0.5))
    assert len(container) == 2


def test_warnings_name_the_package():
    with pytest.warns(FutureWarning, match="^`taeda.nn.utils.weight_norm` is .* `taeda.nn.utils.parametrizations"):
        nn.utils.weight_norm(nn.Linear(2, 2))
    with pytest.warns(FutureWarning, match="^`taeda.nn.utils.clip_grad_norm` is "):
        nn.utils.clip_grad_norm([taeda.ones(2, requires_grad=True)], 1.0)


def _literals(node):
    return [c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)]


#: What is PyTorch's own: names of its types, of what it deprecates, of its site, and a warning that programs filter.
PYTORCHS = (
    "cannot pin 'torch.",
    "torch.ops.",
    "torch.cuda.amp.",
    "torch.amp.",
    "torch.fx docs on pytorch.org",
    "torch.meshgrid: in an",
)


def test_messages_name_functions_as_this_library_has_them():
    wrong = []
    for path in sorted(Path(taeda.__file__).parent.rglob("*.py")):
        if "standin" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            warns = isinstance(node, ast.Call) and "warn" in ast.unparse(node.func)
            for text in _literals(node) if warns or isinstance(node, ast.Raise) else ():
                if re.search(r"\btorch\.", text) and not any(known in text for known in PYTORCHS):
                    wrong.append((path.name, node.lineno, text))
    assert wrong == []


@pytest.mark.parametrize(
    "call, start",
    [
        (lambda: taeda.linalg.solve(taeda.zeros(2, 2), taeda.ones(2)), "linalg.solve: "),
        (lambda: taeda.linalg.eigh(taeda.full((2, 2), float("nan"))), "linalg.eigh: "),
        (lambda: taeda.linalg.ldl_solve(x, taeda.ones(2), x), "linalg.ldl_solve: "),
        (lambda: taeda.linalg.lstsq(taeda.ones(2), taeda.ones(2)), "linalg.lstsq: "),
        (lambda: taeda.ormqr(x, taeda.ones(2), taeda.ones(2)), "ormqr: "),
        (lambda: taeda.gradient(taeda.ones(1)), "gradient: "),
        (lambda: taeda.histogramdd(taeda.ones(3), [2]), "histogramdd: "),
    ],
)
def test_messages_of_linear_algebra_and_statistics_begin_with_the_op(call, start):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: taeda.zeros(2, dtype="float32"),
            "zeros(): argument 'dtype' (position 3) must be taeda.dtype, not str",
        ),
        (lambda: taeda.zeros(2, dtype="float32"), "give taeda.float32"),
        (lambda: taeda.rand(2, dtype=np.float32), "give taeda.float32"),
        (lambda: x.sum(dtype=np.dtype("float64")), "give taeda.float64"),
        (lambda: x.cumsum(0, dtype="int64"), "cumsum(): argument 'dtype' (position 3) must be taeda.dtype, not str"),
        (lambda: taeda.linspace(0, 1, 2, dtype="float32"), "linspace(): argument 'dtype'"),
        (lambda: taeda.arange(3, dtype="int"), "arange(): argument 'dtype'"),
        (lambda: nn.Linear(2, 2).to(dtype="float64"), "to(): argument 'dtype' must be"),
        (lambda: taeda.set_default_dtype("float32"), "set_default_dtype: expected float16"),
        (lambda: taeda.randn((2, 3.0)), "randn(): expected sizes as a tuple of ints, got an element of type float"),
        (lambda: nn.Linear(8, 2)(nn.LSTM(4, 8)(taeda.ones(5, 3, 4))), "take one of them, as in output, state = rnn(x)"),
        (lambda: nn.Conv2d(3, 8), "Conv2d.__init__() missing 1 required positional argument: 'kernel_size'"),
        (lambda: nn.Conv2d(3), "missing 2 required positional arguments: 'out_channels' and 'kernel_size'"),
        (lambda: nn.utils.clip_grad_norm_(nn.Linear(2, 2), 1.0), "give its parameters, module.parameters()"),
    ],
)
def test_wrong_arguments_are_named_with_what_to_give(call, text):
    with pytest.raises(TypeError) as caught:
        call()
    assert text in str(caught.value)


def test_types_of_numbers_stand_for_dtypes():
    assert taeda.promote_types(int, float) is taeda.float64 and taeda.can_cast(int, float)
    assert taeda.zeros(2, dtype=float).dtype is taeda.float64 and x.sum(dtype=int).dtype is taeda.int64


def test_an_error_says_nothing_that_does_not_help():
    with pytest.raises(IndexError) as caught:
        nn.Embedding(10, 3)(taeda.tensor([-1]))
    assert "0 to 9" in str(caught.value) and "num_embeddings" not in str(caught.value)
    with pytest.raises(RuntimeError, match=r"pad_sequence: .*the length of a sequence is its first size"):
        nn.utils.rnn.pad_sequence([taeda.ones(3, 2), taeda.ones(2, 3)])


def test_factories_of_a_number_name_themselves_where_it_is_none():
    x = taeda.ones(2)
    for wrong in ("1", [1.0], None):
        for name, call in {
            "full": lambda v: taeda.full((2,), v),
            "full_like": lambda v: taeda.full_like(x, v),
            "new_full": lambda v: x.new_full((2,), v),
            "scalar_tensor": taeda.scalar_tensor,
        }.items():
            with pytest.raises(
                TypeError, match=rf"^{name}\(\): argument '\w+' must be Number, not {type(wrong).__name__}"
            ):
                call(wrong)
