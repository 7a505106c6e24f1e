"""Calls of PyTorch's native ops mean the same in a ``.pt2`` file that PyTorch wrote, and as ``taeda.ops.aten``: values,
gradients, and what is a view."""

import functools
import io
import pathlib
import runpy

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402
from taeda.aten import packet  # noqa: E402
from taeda.aten.signatures import signature, signatures  # noqa: E402
from taeda.aten.spellings import function_of, same_name  # noqa: E402
from taeda.ops.registry import is_in_place  # noqa: E402
from taeda.utils import _pytree as pytree  # noqa: E402
from tests.agree import close  # noqa: E402

from .opdb.translate import translate  # noqa: E402

X = torch.linspace(-1.5, 2, 12).reshape(3, 4)
Y = torch.linspace(0.1, 0.9, 12).flip(0).reshape(3, 4)
SIGNS = torch.tensor([1.0, -1, 1]).repeat(4).reshape(3, 4)
IMAGE = torch.linspace(-1, 1, 2 * 2 * 5 * 6).reshape(2, 2, 5, 6).sin()
PLACES = torch.tensor([1, 0, 2])
CALLS = [
    ("alias", X), ("lift", X), ("lift_fresh_copy", X), ("detach", X), ("_unsafe_view", X, [4, 3]),
    ("slice.Tensor", X, 1, 1, 9223372036854775807, 2), ("slice.Tensor", X, -1, -3, -1),
    ("upsample_nearest2d.vec", IMAGE, None, [2.3, 2.3]), ("upsample_nearest2d", IMAGE, [11, 13], 2.3, 2.3),
    ("upsample_bilinear2d.vec", IMAGE, [7, 7], False, None), ("upsample_bilinear2d", IMAGE, [11, 13], False, 2.3, 2.3),
    ("upsample_bicubic2d", IMAGE, [11, 13], False, 2.3, 2.3), ("_upsample_nearest_exact1d.vec", IMAGE[0], [9], None),
    ("reflection_pad3d", IMAGE, [1, 1, 1, 1, 1, 1]), ("adaptive_max_pool2d", IMAGE, [2, 3]),
    ("mse_loss", X, Y, 0), ("l1_loss", X, Y, 2), ("smooth_l1_loss", X, Y, 0, 0.1), ("smooth_l1_loss", X, Y),
    ("huber_loss", X, Y, 2, 0.3), ("kl_div", X, Y), ("kl_div", X, Y, 2), ("soft_margin_loss", X, SIGNS, 0),
    ("binary_cross_entropy_with_logits", X, Y, None, Y[0], 2), ("hinge_embedding_loss", X, SIGNS, 0.5),
    ("margin_ranking_loss", X, Y, SIGNS, 0.3), ("cosine_embedding_loss", X, Y, SIGNS[:, 0], 0.1, 0),
    ("triplet_margin_loss", X, Y, X * 2, 1.0, 2.0, 1e-6, True), ("multi_margin_loss", X, PLACES, 1, 1.0, None, 0),
    ("poisson_nll_loss", X, Y, True, True, 1e-6, 2), ("nll_loss", X, PLACES, Y[0], 0),
    ("nll_loss2d", IMAGE, (IMAGE[:, 0] > 0).long(), None, 2), ("cross_entropy_loss", X, PLACES, Y[0], 2, 1, 0.1),
    ("cdist", X, Y, 2.0, 1), ("cdist", X, Y, 3.0, None), ("convolution", IMAGE, IMAGE[:, :, :3, :3], None, [1, 1],
    [0, 0], [1, 1], False, [0, 0], 1), ("mT", X), ("_conj_physical", X), ("log_sigmoid", X),
    ("_unsafe_index.Tensor", X, [None, PLACES]), ("elu", X, 0.5, 2.0, 3.0), ("tensordot", X, Y, [1], [1]),
    ("block_diag", [X, Y]), ("linalg_matrix_power", X[:, :3], 2), ("batch_norm", IMAGE, None, None, None, None, True,
    0.1, 1e-5, False),
]  # fmt: skip


class Call(torch.nn.Module):
    def __init__(self, name, args):
        super().__init__()
        op, _, overload = name.partition(".")
        self.function, self.args = getattr(getattr(torch.ops.aten, op), overload or "default"), args[1:]

    def forward(self, x):
        first = [part * 2 for part in x] if isinstance(x, list) else x * 2
        return self.function(first, *self.args)


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def gradient(framework, function, x):
    """The results of a function, and the gradient of the first one."""
    flat = x if isinstance(x, list) else [x]
    flat = [part.detach().clone().requires_grad_() for part in flat]
    results = parts(function(flat if isinstance(x, list) else flat[0]))
    grads = framework.autograd.grad(results[0].cos().sum(), flat) if results[0].requires_grad else []
    return [*results, *grads]


same = functools.partial(close, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_call(call):
    name, *args = call
    theirs = Call(name, args)
    want = gradient(torch, theirs, args[0])
    file = io.BytesIO()
    torch.export.save(torch.export.export(theirs, (args[0],)), file)
    file.seek(0)
    x = translate(args[0])
    same(gradient(taeda, taeda.export.load(file).module(), x), want)
    op, _, overload = name.partition(".")
    ours, rest = getattr(getattr(taeda.ops.aten, op), overload or "default"), translate(list(args[1:]))
    doubled = lambda x: [part * 2 for part in x] if isinstance(x, list) else x * 2  # noqa: E731
    same(gradient(taeda, lambda x: ours(doubled(x), *rest), x), want)
    if len(want[0].shape) == 2 and op not in ("block_diag", "_conj_physical"):  # of real numbers, no copy here
        view = (
            theirs.function(args[0], *theirs.args).untyped_storage().data_ptr() == args[0].untyped_storage().data_ptr()
        )
        assert (ours(x, *rest).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) is view


SAMPLES = torch.tensor([[[0.3, 0.7], [0.1, 0.9]], [[0.6, 0.2], [0.8, 0.4]]])
NATIVE = [
    ("fractional_max_pool2d", IMAGE, [2, 2], [2, 3], SAMPLES), ("max_pool2d_with_indices", IMAGE, [2, 2]),
    ("avg_pool2d", IMAGE, [2, 2], []), ("_adaptive_avg_pool2d", IMAGE, [2, 3]), ("pixel_shuffle", IMAGE.tile(2, 2, 1, 1), 2),
    ("special_i1e", X), ("special_zeta", X + 3, Y + 1), ("special_entr", Y), ("im2col", IMAGE, [2, 2], [1, 1], [0, 0], [1, 1]),
    ("_fft_r2c", X, [1], 1, True), ("squeeze_.dim", X[None], 0), ("transpose_", X, 0, 1), ("lift_fresh", X), ("numpy_T", X),
    ("unique_consecutive", X.round(), True, True), ("_unique2", X.round(), True, True, True), ("_to_copy", X),
    ("_convolution", IMAGE, IMAGE[:, :, :3, :3], None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, False, False),
    ("tensordot", X, Y, [1], [1]), ("index_put", X, [None, PLACES], Y[:, :3], True), ("elu", X, 0.5, 2.0, 3.0),
    ("stft", X[0].tile(8), 8, 4, None, torch.ones(8), False, True, True), ("replication_pad1d", X, [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("call", NATIVE, ids=lambda call: call[0])
def test_call_by_name(call):
    """As a function, and by the signature that TorchScript and files name."""
    from taeda.jit.schemas import overloads

    name, *args = call
    op, _, overload = name.partition(".")
    want = parts(getattr(getattr(torch.ops.aten, op), overload or "default")(args[0].clone(), *args[1:]))
    scripted = [s.function for s in overloads(f"aten::{op}") if s.overload == overload]
    for ours in (getattr(getattr(taeda.ops.aten, op), overload or "default"), *scripted):
        got = parts(ours(translate(args[0].clone()), *translate(args[1:])))
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(torch.from_dlpack(a.contiguous()), b, rtol=1e-4, atol=1e-5)


def test_a_dimension_that_is_not_there():
    with pytest.raises(IndexError):
        taeda.ops.aten.slice(taeda.ones(2, 2), 2, 0, 1)


def overloads():
    """PyTorch's native ops that taeda has, and the same as PyTorch's objects."""
    for name in torch._C._dispatch_get_all_op_names():
        space, _, label = name.partition("::")
        op, _, overload = label.partition(".")
        if space == "aten" and function_of(op, overload) is not None and hasattr(torch.ops.aten, op):
            theirs = getattr(getattr(torch.ops.aten, op), overload or "default", None)
            if theirs is not None:
                yield label, getattr(packet(op), overload or "default"), theirs


def test_what_is_random():
    differ = {n for n, ours, theirs in overloads() if ours.draws != (torch.Tag.nondeterministic_seeded in theirs.tags)}
    assert not differ


def test_what_is_written():
    """Of every signature; ``from_file`` has none, since scripts from elsewhere would open files by it."""
    differ, signatures = set(), 0
    for name, ours, theirs in overloads():
        written = [a.name for a in theirs._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        known = ours.signature
        same = ours.mutates is bool(written) and (known is None or list(known.mutated) == written)
        differ |= set() if same else {name}
        signatures += known is not None
    assert differ == {"from_file.out"} and signatures > 1900


def test_the_signatures_are_those_of_pytorch():
    tool = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "tools" / "schemas.py"))
    assert tool["lines"]() == tool["FILE"].read_text().splitlines()


SQUARE = X[:, :3] @ X[:, :3].T + torch.eye(3)
OUTS = [
    ("topk.values", X, 2), ("sort.values", X), ("max.dim_max", X, 1), ("kthvalue.values", X, 2), ("mode.values", X),
    ("linalg_cholesky_ex.L", SQUARE @ SQUARE), ("qr.Q", SQUARE), ("frexp.Tensor_out", X), ("aminmax.out", X),
    ("gelu_backward.grad_input", X, Y), ("var_mean.correction_out", X), ("add.out", X, Y), ("unbind_copy.int_out", X),
]  # fmt: skip


@pytest.mark.parametrize("call", OUTS, ids=lambda call: call[0])
def test_results_go_into_tensors_by_any_name(call):
    name, *args = call
    op, _, overload = name.partition(".")
    theirs = getattr(getattr(torch.ops.aten, op), overload)
    results = parts(getattr(torch.ops.aten, op)(*args))
    names = [a.name for a in theirs._schema.arguments if a.kwarg_only and a.alias_info is not None]
    empty = [torch.empty_like(r) for r in results]
    outs = dict(zip(names, empty, strict=True)) if len(names) > 1 or len(empty) == 1 else {names[0]: empty}
    ours = translate(outs)
    theirs(*args, **outs)
    function = getattr(getattr(taeda.ops.aten, op), overload)
    given = function(*translate(args), **ours)
    assert function.mutates
    for made, want in zip(ours.values(), outs.values(), strict=True):
        same(parts(made), parts(want))
    assert all(a is b for a, b in zip(parts(given), pytree.tree_leaves(ours), strict=True))


def test_what_writes_of_taeda_s_writes_in_pytorch():
    """An op of the same name is in place, or not, as the signature says. Names do not tell of buffers and streams."""
    differ = []
    for full in signatures():
        space, name = full.split("::")
        function, native = (same_name(name), signature(name)) if space == "aten" else (None, None)
        if function is not None and native is not None:
            if bool(set(native.mutated) - set(native.outs)) != is_in_place(function):
                differ.append(name)
    assert differ == ["_batch_norm_with_update", "_native_batch_norm_legit", "record_stream"]
