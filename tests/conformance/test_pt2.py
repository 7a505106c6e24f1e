"""Entries of the operator database as ``.pt2`` files for PyTorch, written here and run there."""

import io
import warnings

import pytest

import taeda
import taeda.export

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import UNSPECIFIED, entries, tensors  # noqa: E402
from .opdb.decomposed import _Call, samples_of, translate_copy  # noqa: E402
from .opdb.translate import back, translate  # noqa: E402

NAMES = sorted(entries())
#: Entries that no file can be written of, and why.
REFUSED = {"chalf": "complex32 has no form", "to": "no argument of programs"}
#: Not exported at all: they need values, or have arguments that have no counterpart here.
LEFT_OUT = {
    "allclose", "equal", "tensor_split", "histogramdd", "nn.functional.one_hot",
    "nn.functional.linear_cross_entropy.chunked", "nn.functional.linear_cross_entropy.chunked_none",
    "nn.functional.triplet_margin_with_distance_loss",
}  # fmt: skip
#: Numbers that are drawn: each package draws its own.
RANDOM = {
    "cauchy", "exponential", "geometric", "log_normal", "normal", "normal.in_place", "normal.number_mean", "uniform",
    "nn.functional.rrelu", "svd_lowrank", "pca_lowrank", "randn", "randn_like", "rand_like", "randint", "randint_like",
    "multinomial", "bernoulli",
}  # fmt: skip


def compare(name):
    """Write the first sample's call and run it in PyTorch.

    Raises:
        AssertionError: PyTorch gives something else.
    """
    samples = samples_of(entries()[name], 1)
    if not samples or name in LEFT_OUT:
        return
    sample, file = samples[0], io.BytesIO()
    args, kwargs = translate((sample.input, *sample.args)), translate(sample.kwargs)
    program = taeda.export.export(_Call(translate(entries()[name].op), kwargs), translate_copy(args))
    if name in REFUSED:
        with pytest.raises((ValueError, RuntimeError), match=REFUSED[name]):
            taeda.export.save(program, file, format="pt2")
        return
    taeda.export.save(program, file, format="pt2")
    file.seek(0)
    theirs = torch.export.load(file).module()
    given = torch.utils._pytree.tree_map(
        lambda x: x.clone() if isinstance(x, torch.Tensor) else x, (sample.input, *sample.args)
    )
    got = [x for x in torch.utils._pytree.tree_leaves(theirs(*given)) if isinstance(x, torch.Tensor)]
    want = [back(x) for x in tensors(program.module()(*translate_copy(args)))]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if name in RANDOM or name.rpartition(".")[2] in UNSPECIFIED:
            continue
        a, b = (x.detach().resolve_conj().resolve_neg().to(torch.complex128) for x in (a, b))
        if name in ("linalg.eigh", "linalg.eig", "linalg.svd", "svd"):  # the signs of vectors are free
            a, b = a.abs(), b.abs()
        assert torch.allclose(a, b, 1e-4, 1e-5, True)


@pytest.mark.parametrize(
    "name", sorted({*NAMES[::9], *REFUSED, "linalg.eigh", "sort", "special.zeta", "randint", "squeeze.multiple"})
)
def test_some(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(name)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", NAMES)
def test_all(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(name)


class Forward(taeda.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x * 1)


def written_strided(y):
    y.view(-1)[::3].add_(0.1)
    return y


def written_by_index(y):
    y.flatten()[1::3] = 5.0
    return y


def written_diagonal(y):
    y.diagonal().mul_(2)
    return y


SIZES_WITHOUT_EXPRESSION = {
    "a strided view of a flat one": written_strided,
    "an assignment": written_by_index,
    "a diagonal": written_diagonal,
    "what is read": lambda y: y.view(-1)[::3][1::2] * 2,
}


@pytest.mark.parametrize("name", SIZES_WITHOUT_EXPRESSION)
def test_sizes_without_an_expression(name):
    """``ceil(5 n / 3)`` is written as a symbol of its own, whose range PyTorch's reader must be told."""
    model, file = Forward(SIZES_WITHOUT_EXPRESSION[name]), io.BytesIO()
    shapes = {"x": {0: taeda.export.Dim("n", min=2, max=64)}}
    taeda.export.save(taeda.export.export(model, (taeda.randn(4, 5),), dynamic_shapes=shapes), file, format="pt2")
    for n in (4, 7):
        x = taeda.randn(n, 5)
        file.seek(0)
        theirs = torch.export.load(file).module()(torch.from_dlpack(x.clone()))
        file.seek(0)
        ours = taeda.export.load(file).module()(x)
        assert taeda.allclose(ours, model(x)) and taeda.allclose(taeda.from_dlpack(theirs), model(x))


@pytest.mark.parametrize("format", ["pt2", None])
def test_parameters_that_are_not_registered(format):
    free, listed = taeda.nn.Parameter(taeda.randn(5)), [taeda.nn.Linear(5, 5, bias=False)]
    model, x = Forward(lambda y: listed[0](y) * free), taeda.randn(3, 5)
    file = io.BytesIO()
    taeda.export.save(taeda.export.export(model, (x,)), file, **({} if format is None else {"format": format}))
    file.seek(0)
    assert taeda.allclose(taeda.export.load(file).module()(x), model(x))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_cdist(p):
    model, x, file = Forward(lambda y: taeda.cdist(y, y * 2, p)), taeda.randn(3, 5), io.BytesIO()
    taeda.export.save(taeda.export.export(model, (x,)), file, format="pt2")
    file.seek(0)
    assert taeda.allclose(taeda.export.load(file).module()(x), model(x), atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss", "l1_loss", "mse_loss", "hinge_embedding_loss"])
def test_losses_that_broadcast(name, reduction):
    loss = getattr(taeda.nn.functional, name)
    model, x, file = Forward(lambda y: loss(y, y[0], reduction=reduction)), taeda.randn(3, 5), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taeda.export.save(taeda.export.export(model, (x,)), file, format="pt2")
        file.seek(0)
        ours = taeda.export.load(file).module()(x)
        file.seek(0)
        theirs = torch.export.load(file).module()(torch.from_dlpack(x.clone()))
        want = model(x)
    assert taeda.allclose(ours, want) and taeda.allclose(taeda.from_dlpack(theirs), want)


@pytest.mark.parametrize(
    "name, given",
    [
        ("GRUCell", {}),
        ("LSTMCell", {}),
        ("GRUCell", {"bias": False}),
        ("LSTM", {"proj_size": 2, "num_layers": 2, "bidirectional": True}),
    ],
)
def test_cells(name, given):
    model, file = getattr(taeda.nn, name)(3, 4, **given), io.BytesIO()
    x = taeda.randn(*((6, 5, 3) if name == "LSTM" else (5, 3)))
    taeda.export.save(taeda.export.export(model, (x,)), file, format="pt2")
    file.seek(0)
    ours = taeda.export.load(file).module()(x)
    file.seek(0)
    theirs = torch.export.load(file).module()(torch.from_dlpack(x.clone()))
    for want, mine, other in zip(*map(torch.utils._pytree.tree_leaves, (model(x), ours, theirs)), strict=True):
        assert taeda.allclose(mine, want, atol=1e-6) and taeda.allclose(
            taeda.from_dlpack(other.detach()), want, atol=1e-6
        )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_that_pytorch_wrote(n):
    class Model(torch.nn.Module):
        def forward(self, x):
            y, indices = getattr(torch.nn.functional, f"max_pool{n}d")(x, 2, return_indices=True)
            return getattr(torch.nn.functional, f"max_unpool{n}d")(y, indices, 2, output_size=[5] * n)

    x, file = torch.randn(2, 3, *[5] * n), io.BytesIO()
    torch.export.save(torch.export.export(Model(), (x,)), file)
    file.seek(0)
    program = taeda.export.load(file)
    given, want = taeda.from_dlpack(x), taeda.from_dlpack(Model()(x))
    assert taeda.equal(program.module()(given), want)
    assert taeda.equal(program.run_decompositions().module()(given), want)


INDICES = [
    "x[i, 1]", "x[1, i]", "x[i, None]", "x[None, i]", "x[i, None, j]", "x[i, 1, j]", "x[0, :, i]", "x[i, :, j, 2]",
    "x[..., i, 0]", "x[i, :, None, j]", "x[m, 1]", "x[m, None]", "x[k, :, i[:1]]", "x[:, i, 1:3, j]", "x[1:, i, -1, None]",
    "x[i, 0, j, 1]", "x[i[:, None], 1]", "x[i, ::2, 0, j]", "x[:, m[0], 1]",
]  # fmt: skip
WHOLE = [
    "F.affine_grid(x[:, :2, :3, 0], [4, 1, 3, 3], align_corners=False)",
    "F.affine_grid(x[:, :3, :4, 0], x.shape[:1] + (1, 2, 3, 3), align_corners=True)",
    "F.max_unpool2d(*F.max_pool2d(x[..., :6], (1, 2), return_indices=True), (1, 2))",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=[6, 7])",
    "F.max_unpool3d(*F.max_pool3d(x[:, 1:, :, 1:], 2, return_indices=True), 2)",
    "F.max_unpool3d(*F.max_pool3d(x, 3, 2, 1, return_indices=True), 3, 2, 1, output_size=[5, 6, 7])",
]


@pytest.mark.parametrize("text", [*INDICES, *WHOLE])
def test_expressions(text):
    def model(framework):
        class Model(framework.nn.Module):
            def forward(self, x, i, j, m, k):
                return eval(text, {"F": framework.nn.functional}, {"x": x, "i": i, "j": j, "m": m, "k": k})

        return Model()

    x = torch.randn(4, 5, 6, 7, generator=torch.Generator().manual_seed(0))
    k = torch.zeros(4, 5, dtype=torch.bool)
    k[0, 1] = k[2, 2] = k[3, 0] = True
    theirs = (x, torch.tensor([0, 2, 1]), torch.tensor([1, 3, 0]), x[..., 0, 0] > 0, k)
    ours = tuple(taeda.from_dlpack(v.clone()) for v in theirs)
    file = io.BytesIO()
    taeda.export.save(taeda.export.export(model(taeda), ours), file)
    file.seek(0)
    made = torch.export.load(file).module()(*theirs)
    assert torch.equal(made, model(torch)(*theirs)) if text in INDICES else torch.allclose(made, model(torch)(*theirs))
    file.seek(0)
    assert taeda.allclose(taeda.export.load(file).module()(*ours), taeda.from_dlpack(made))


SIZES = [
    "x * (n / 2)", "x * (n / 2 / 3)", "x * (n / x.shape[1] + 1)", "x / n**0.5", "x * (n * x.shape[1]) ** -0.5",
    "x * (n * 1.5 - 0.5)", "x * n**2", "x * (n * 0.5)", "x.new_full((n,), (n - 1) / (n + 1))",
]  # fmt: skip


@pytest.mark.parametrize("text", SIZES)
def test_numbers_made_of_sizes(text):
    def model(framework):
        class Model(framework.nn.Module):
            def forward(self, x):
                return eval(text, {}, {"x": x, "n": x.shape[0]})

        return Model()

    x, longer = torch.randn(6, 4), torch.randn(9, 4)
    for framework, given in ((torch, x), (taeda, taeda.from_dlpack(x))):
        sizes = ({0: framework.export.Dim("n", min=2, max=64)},)
        file = io.BytesIO()
        framework.export.save(framework.export.export(model(framework), (given,), dynamic_shapes=sizes), file)
        file.seek(0)
        assert torch.allclose(torch.export.load(file).module()(longer), model(torch)(longer))
        file.seek(0)
        ours = taeda.export.load(file).module()(taeda.from_dlpack(longer))
        assert taeda.allclose(ours, taeda.from_dlpack(model(torch)(longer)))


def test_sizes_without_a_form_in_files_of_pytorch():
    class Model(taeda.nn.Module):
        def forward(self, x):
            return x * ((x.shape[0] / 2) // 1)

    program = taeda.export.export(Model(), (taeda.ones(6),), dynamic_shapes=({0: taeda.export.Dim("n", min=2)},))
    with pytest.raises(ValueError, match="has no form in files of PyTorch"):
        taeda.export.save(program, io.BytesIO())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags_as_rows_of_a_matrix_of_any_length(mode, weighted):
    if weighted and mode != "sum":
        pytest.skip("only sums have weights")

    class Model(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = taeda.nn.EmbeddingBag(10, 4, mode=mode, padding_idx=2)

        def forward(self, x, w):
            return self.bag(x, per_sample_weights=w if weighted else None) * w.shape[0]

    model, n = Model(), taeda.export.Dim("n", min=2, max=64)
    given, longer = [(taeda.arange(3 * k).view(k, 3), taeda.randn(k, 3)) for k in (2, 3)]
    file = io.BytesIO()
    taeda.export.save(taeda.export.export(model, given, dynamic_shapes=({0: n}, {0: n})), file)
    file.seek(0)
    made = torch.export.load(file).module()(*map(torch.from_dlpack, longer))
    assert taeda.allclose(taeda.from_dlpack(made.detach()), model(*longer))
    file.seek(0)
    assert taeda.allclose(taeda.export.load(file).module()(*longer), model(*longer))
