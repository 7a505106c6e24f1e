"""Nested tensors against PyTorch."""

import copy
import io
import pickle
import warnings

import pytest

import taeda
from taeda.io.objects import known

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

BOTH = (torch, taeda)


def parts(f):
    return f.arange(6.0).reshape(2, 3) - 2, f.arange(12.0).reshape(4, 3) / 3


def nested(f, layout="jagged"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f.nested.nested_tensor(list(parts(f)), layout=getattr(f, layout))


EITHER = {
    "parts": lambda f, n: n.unbind(),
    "padded": lambda f, n: n.to_padded_tensor(-1.0),
    "padded further": lambda f, n: f.nested.to_padded_tensor(n, 0.0, (2, 5, 3)),
    "sizes": lambda f, n: (n.dim(), n.size(0), n.size(-1), n.numel(), n.is_nested),
    "times a number": lambda f, n: (n * 2).unbind(),
    "sum of two": lambda f, n: (n + n).unbind(),
    "relu": lambda f, n: n.relu().unbind(),
    "functional gelu": lambda f, n: f.nn.functional.gelu(n).unbind(),
    "softmax": lambda f, n: f.softmax(n, -1).unbind(),
    "linear": lambda f, n: f.nn.functional.linear(n, f.ones(2, 3), f.ones(2)).unbind(),
    "layer_norm": lambda f, n: f.nn.functional.layer_norm(n, (3,), f.ones(3), f.zeros(3)).unbind(),
    "double": lambda f, n: n.to(f.float64).unbind(),
    "values": lambda f, n: n.values(),
}
JAGGED = {
    "ragged in another dimension": lambda f, n: [
        x.unbind()
        for x in (
            f.nested.nested_tensor_from_jagged(f.arange(12.0).reshape(2, 6), f.tensor([0, 2, 5, 6]), jagged_dim=2),
            f.nested.nested_tensor_from_jagged(
                f.arange(12.0).reshape(2, 6), f.tensor([0, 2, 5, 6]), f.tensor([1, 3, 1]), jagged_dim=2
            ),
        )
    ],
    "queries": lambda f, n: (
        n.is_inference(),
        n.is_conj(),
        n.nelement(),
        n.ndimension(),
        n.nbytes,
        n.storage_offset(),
        n.is_shared(),
    ),
    "shape": lambda f, n: (type(n.shape).__name__, len(n.shape), n.shape[0], n.shape[2], n.shape[1] == n.shape[1]),
    "another's shape": lambda f, n: (n.shape == (n * 2).shape, n.shape[1] > 1, n.shape[1] == 4, n.shape[:1]),
    "is_contiguous": lambda f, n: (n.is_contiguous(), n.transpose(1, 2).is_contiguous(), n[..., 1:].is_contiguous()),
    "chunk": lambda f, n: [x.unbind() for x in n.chunk(3, -1)],
    "chunk of parts": lambda f, n: [x.unbind() for x in n.chunk(2)],
    "split": lambda f, n: n.split([1, 2], -1)[1].unbind(),
    "unsqueeze": lambda f, n: (n.unsqueeze(1).unbind(), n.unsqueeze(-1).unbind(), n.unsqueeze(1).shape[3]),
    "squeeze": lambda f, n: n.unsqueeze(-1).squeeze(-1).unbind(),
    "view": lambda f, n: (
        n.view(2, -1, 3, 1).unbind(),
        n.view(*n.shape[:-1], 1, 3).unbind(),
        n.view(2, -1, 3, 1).dim(),
    ),
    "reshape": lambda f, n: n.reshape(2, -1, 1, 3).unbind(),
    "transpose": lambda f, n: (
        n.transpose(1, 2).unbind(),
        n.transpose(1, 2).shape[1],
        n.transpose(-1, -2).layout == f.jagged,
    ),
    "permute": lambda f, n: (n.permute(0, 2, 1).unbind(), n.permute(0, 2, 1).values()),
    "heads": lambda f, n: n.unflatten(-1, [3, 1]).transpose(1, 2).transpose(1, 2).flatten(-2).unbind(),
    "select": lambda f, n: (n.select(-1, 0).unbind(), n.select(0, 1), n[-1]),
    "slice": lambda f, n: (n[..., 1:].unbind(), n.narrow(-1, 1, 2).unbind()),
    "sum of rows": lambda f, n: (n.sum(1), n.sum(1, keepdim=True), n.sum((0, 1)), n.sum(), n.sum(-1).unbind()),
    "mean": lambda f, n: (n.mean(1), n.mean(1, keepdim=True), n.mean(), n.mean(-1, keepdim=True).unbind()),
    "amax": lambda f, n: (n.amax(1), n.amin(1), n.amax(), n.prod(1)),
    "max": lambda f, n: (n.max(-1).values.unbind(), n.max(-1).indices.unbind(), n.argmax(-1).unbind(), n.max()),
    "any": lambda f, n: ((n > 1).any(1), (n > -9).all(), f.isnan(n).any()),
    "summed over rows": lambda f, n: n.transpose(1, 2) @ n,
    "a product": lambda f, n: ((n @ f.ones(3, 2)).unbind(), f.bmm(n, f.ones(2, 3, 2)).unbind()),
    "data": lambda f, n: (n.data.unbind(), n.detach().mul_(2).unbind()),
    "copy_": lambda f, n: (n.clone().copy_(n * 3).unbind(), n.clone().zero_().unbind(), n.clone().add_(1).unbind()),
    "deepcopy": lambda f, n: copy.deepcopy(n).unbind(),
    "pickle": lambda f, n: (pickle.loads(pickle.dumps(n)).unbind(), pickle.loads(pickle.dumps(n)).is_nested),
    "same sizes": lambda f, n: (n.is_same_size(n), n.is_same_size(n * 2)),
    "another ragged dimension": lambda f, n: f.nested.nested_tensor(
        [f.ones(2, 3), f.ones(2, 5)], layout=f.jagged
    ).unbind(),
    "random": lambda f, n: (f.manual_seed(3), f.randn_like(n).unbind(), f.rand_like(n).unbind())[1:],
    "dropout": lambda f, n: (f.manual_seed(3), f.nn.functional.dropout(n, 0.5).unbind(), f.rand(2))[1:],
    "stack": lambda f, n: (f.stack([n, n * 2], -1).unbind(), f.stack([n, n], 2).unbind()),
    "expand": lambda f, n: n.unsqueeze(-1).expand(2, n.size(1), 3, 2).unbind(),
    "padded to less": lambda f, n: n.to_padded_tensor(0.0, (2, 3, 3)),
    "values": lambda f, n: n.values(),
    "offsets": lambda f, n: n.offsets(),
    "exp": lambda f, n: n.exp().values(),
    "asinh": lambda f, n: n.asinh().values(),
    "lerp": lambda f, n: f.lerp(n, n * 2, 0.5).values(),
    "hypot": lambda f, n: f.hypot(n, n).values(),
    "from pieces": lambda f, n: f.nested.nested_tensor_from_jagged(f.arange(6.0), f.tensor([0, 2, 6])).unbind(),
    "from lengths": lambda f, n: f.nested.nested_tensor_from_jagged(f.arange(6.0), lengths=f.tensor([2, 4])).unbind(),
    "masked_select": lambda f, n: f.nested.masked_select(
        f.ones(2, 2), f.tensor([[True, False], [True, True]])
    ).unbind(),
    "narrow": lambda f, n: f.nested.narrow(
        f.arange(10.0).reshape(2, 5), 1, f.tensor([0, 2]), f.tensor([3, 1]), layout=f.jagged
    ).unbind(),
}


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", EITHER)
def test_value(name, layout):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = (EITHER[name](f, nested(f, layout)) for f in BOTH)
    peer.close(got, want)


@pytest.mark.parametrize("name", JAGGED)
def test_value_of_a_jagged_one(name):
    if name == "from lengths":
        got = JAGGED[name](taeda, None)
        assert [x.tolist() for x in got] == [[0.0, 1.0], [2.0, 3.0, 4.0, 5.0]]
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = (JAGGED[name](f, nested(f)) for f in BOTH)
    peer.close(got, want)


def test_attention_of_jagged_sequences_is_that_of_each():
    """The layer as models for sequences of many lengths have it."""
    taeda.manual_seed(0)
    qkv, out = taeda.nn.Linear(8, 24), taeda.nn.Linear(8, 8)

    def layer(x):
        q, k, v = (y.unflatten(-1, [2, -1]).transpose(-3, -2) for y in qkv(x).chunk(3, -1))
        y = taeda.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + out(y.transpose(-3, -2).flatten(-2))

    parts = [taeda.randn(n, 8) for n in (2, 5, 3)]
    n = taeda.nested.nested_tensor(parts, layout=taeda.jagged)
    got = layer(n)
    assert got.shape == n.shape and got.is_contiguous() and layer(got).layout is taeda.jagged
    for x, y in zip(parts, got.unbind(), strict=True):
        taeda.testing.assert_close(y, layer(x), rtol=1e-5, atol=1e-6)
    got.values().square().mean().backward()
    grads = [p.grad for p in (*qkv.parameters(), *out.parameters())]
    qkv.zero_grad()
    out.zero_grad()
    taeda.cat([layer(x) for x in parts]).square().mean().backward()
    for g, p in zip(grads, (*qkv.parameters(), *out.parameters()), strict=True):
        taeda.testing.assert_close(g, p.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("name", ["MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder"])
def test_layers_of_attention_take_sequences_of_many_lengths(name, layout):
    taeda.manual_seed(0)
    layer = taeda.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    if name == "MultiheadAttention":
        layer = layer.self_attn
    elif name == "TransformerEncoder":
        layer = taeda.nn.TransformerEncoder(layer, 2)
    layer.eval()

    def call(x):
        return layer(x, x, x, need_weights=False)[0] if name == "MultiheadAttention" else layer(x)

    parts = [taeda.randn(n, 8) for n in (2, 5)]
    for x, y in zip(
        parts, call(taeda.nested.nested_tensor(parts, layout=getattr(taeda, layout))).unbind(), strict=True
    ):
        taeda.testing.assert_close(y, call(x[None])[0], rtol=1e-4, atol=1e-5)


def test_sizes_of_jagged_ones():
    n = nested(taeda)
    j = n.shape[1]
    assert type(n.shape) is taeda.Size and n.size() == n.shape and n.size(1) is j and repr(j).startswith("j")
    assert n.shape[:2] == (2, j) and (n + 1).shape[1] is j and nested(taeda).shape[1] != j and j in {j}
    assert repr(n) == f"NestedTensor(size=(2, {j}, 3), offsets=tensor([0, 2, 6]), contiguous=True)"
    assert repr(n.transpose(1, 2)).startswith(f"NestedTensor(size=(2, 3, {j}), ")
    with pytest.raises(RuntimeError):
        assert j < 5
    assert not j < 2 and j >= 2 and j > 0 and not j <= 1


def test_strides_of_jagged_ones():
    n = nested(taeda)
    assert str(n.stride()) == f"(3*{n.shape[1]}, 3, 1)" and str(n.mT.stride()) == f"(3*{n.shape[1]}, 1, 3)"
    assert n.stride(0) == n.mT.stride(0) == 3 * n.shape[1] != n.shape[1] and hash(n.stride()) == hash(n.stride())
    assert n.dim_order() == (0, 1, 2) and n.mT.dim_order() == (0, 2, 1)
    with pytest.raises(RuntimeError):
        nested(taeda, "strided").dim_order()


def bags(f):
    return f.nested.nested_tensor([f.tensor([1, 2]), f.tensor([], dtype=f.int64), f.tensor([3, 4, 3])], layout=f.jagged)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings(mode):
    """Each part of a jagged input is a bag."""
    got, want = [], []
    for f, made in ((torch, want), (taeda, got)):
        weight = f.arange(20.0).view(10, 2).requires_grad_()
        out = f.nn.functional.embedding_bag(bags(f), weight, mode=mode)
        assert f.nn.EmbeddingBag(10, 2, mode=mode, _weight=weight.detach())(bags(f)).tolist() == out.tolist()
        other = f.nn.functional.embedding_bag(bags(f), weight, f.tensor([0]), padding_idx=3, mode=mode)
        (out * f.arange(6.0).view(3, 2)).sum().backward()
        made += [out.tolist(), other.tolist(), weight.grad.tolist()]
    for a, b in zip(want, got, strict=True):
        torch.testing.assert_close(torch.tensor(b), torch.tensor(a))


def test_weights_of_bags():
    for f in BOTH:
        x = bags(f)
        weights = x * 0.5
        out = f.nn.functional.embedding_bag(x, f.ones(10, 2), mode="sum", per_sample_weights=weights)
        assert out.tolist() == [[1.5, 1.5], [0, 0], [5.0, 5.0]]
        for wrong in (weights.values(), bags(f) * 0.5):
            with pytest.raises(ValueError):
                f.nn.functional.embedding_bag(x, f.ones(10, 2), mode="sum", per_sample_weights=wrong)


MAPPED = {
    "sin": lambda f, x, y: x.sin(),
    "sum": lambda f, x, y: x.sum(),
    "sum of rows": lambda f, x, y: x.sum(-1),
    "equal sizes": lambda f, x, y: x.sum(0),
    "not mapped": lambda f, x, y: f.ones(3),
    "several": lambda f, x, y: (x * 2, x.mean()),
    "product": lambda f, x, y: x @ f.ones(3, 4),
    "with a dense one": lambda f, x, y: x * y,
    "softmax": lambda f, x, y: x.softmax(-1),
}


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("name", MAPPED)
def test_vmap_over_parts(name, layout):
    said = []
    for f in BOTH:
        made = f.vmap(lambda x, y, f=f: MAPPED[name](f, x, y))(nested(f, layout), f.tensor([2.0, 3.0]))
        made = made if isinstance(made, tuple) else (made,)
        said.append([(x.is_nested, str(x.layout).split(".")[1], [y.tolist() for y in x.unbind()]) for x in made])
    for theirs, ours in zip(*said, strict=True):
        assert ours[:2] == theirs[:2]
        for a, b in zip(theirs[2], ours[2], strict=True):
            torch.testing.assert_close(torch.tensor(b), torch.tensor(a))


def test_what_vmap_over_parts_cannot_do():
    for f in BOTH:
        for options in ({"in_dims": 1}, {"out_dims": 1}):
            with pytest.raises(RuntimeError):
                f.vmap(lambda x: x * 2, **options)(nested(f, "strided"))
        with pytest.raises(RuntimeError):
            f.vmap(lambda x, f=f: f.randn(3) + x.sum())(nested(f, "strided"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f, n: n + f.nested.nested_tensor([f.ones(1, 3), f.ones(1, 3)], layout=f.jagged),
        lambda f, n: n.view(2, 6, 3),
        lambda f, n: n.flatten(1, 2),
        lambda f, n: n.chunk(2, 1),
        lambda f, n: n.select(1, 0),
        lambda f, n: n.narrow(1, 0, 1),
        lambda f, n: n[:, 0],
        lambda f, n: n.unsqueeze(0),
        lambda f, n: n.squeeze(1),
        lambda f, n: n.sum(0),
        lambda f, n: n.transpose(0, 1),
        lambda f, n: f.nested.nested_tensor([f.ones(2, 3), f.ones(3, 4)], layout=f.jagged),
    ],
)
def test_what_jagged_ones_cannot_do(wrong):
    for f in BOTH:
        with warnings.catch_warnings(), pytest.raises((RuntimeError, ValueError)):
            warnings.simplefilter("ignore")
            wrong(f, nested(f))


def test_gradients_reach_the_parts():
    found = []
    for f in BOTH:
        a, b = (x.clone().requires_grad_() for x in parts(f))
        n = f.nested.as_nested_tensor([a, b], layout=f.jagged)
        (n * n).values().sum().backward()
        found.append((a.grad, b.grad))
    peer.close(found[1], found[0])


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_files_go_both_ways(layout, requires_grad, trusted):
    for writer in BOTH:
        n = nested(writer, layout).requires_grad_(requires_grad)
        file = io.BytesIO()
        writer.save({"n": n, "more": [n, writer.ones(1)]}, file)
        for reader in BOTH:
            m = reader.load(io.BytesIO(file.getvalue()), weights_only=not trusted)["n"]
            assert m.requires_grad == requires_grad and str(m.layout).endswith(layout)
            assert [x.tolist() for x in m.unbind()] == [x.tolist() for x in n.unbind()]


def test_a_file_of_damaged_nested_tensors():
    for sizes, offsets in (([[9, 3]], [0]), ([[2, 3]], [5]), ([[-1, 3]], [0]), ([[2, 3]], [0.0])):
        where = taeda.tensor(sizes), taeda.tensor([[3, 1]]), taeda.tensor(offsets)
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            known("torch._utils", "_rebuild_nested_tensor").function(taeda.ones(6), *where)
    for offsets in (taeda.tensor([0, 9]), taeda.tensor([3, 1]), taeda.tensor([0.0, 1.0]), 3):
        arguments = {"values": taeda.ones(6), "offsets": offsets, "_ragged_idx": 1}
        with pytest.raises((RuntimeError, IndexError, pickle.UnpicklingError)):
            known("torch.nested._internal.nested_tensor", "_rebuild_njt").function(arguments)


def test_dtypes_of_the_parts():
    for f in BOTH:
        made = f.nested.nested_tensor([[1.5, 2], [3]]), f.nested.nested_tensor([f.ones(2), f.ones(1).double()])
        assert all([x.dtype for x in n.unbind()] == [f.float32] * 2 for n in made)
        assert f.nested.nested_tensor([]).unbind() == () and not f.nested.nested_tensor([]).requires_grad
        for wrong in ([f.ones(2), f.ones(1).double()], []):
            with pytest.raises(RuntimeError, match=r"ll tensors in list must have the same dtype|empty tensor list"):
                f.nested.nested_tensor(wrong, layout=f.jagged)
        with pytest.raises(TypeError, match="Expected first argument to be a tensor or a list / tuple of tensors"):
            f.nested.as_nested_tensor([[1, 2]])


def test_it_prints_its_parts():
    assert repr(nested(taeda, "strided")) == repr(nested(torch, "strided"))


def test_errors():
    for f in BOTH:
        with pytest.raises(RuntimeError):
            f.nested.nested_tensor([f.ones(2), f.ones(2, 2)])
        with pytest.raises(RuntimeError):
            nested(f, "strided").size(1)
        with pytest.raises(RuntimeError):  # NotImplementedError among them
            nested(f, "strided").cumsum(1)


def test_sizes_of_the_parts():
    """``_nested_tensor_size``, which torch-geometric reads."""
    shapes = (2, 3), (4, 1)
    got = taeda.nested.nested_tensor([taeda.ones(s) for s in shapes])._nested_tensor_size()
    want = torch.nested.nested_tensor([torch.ones(s) for s in shapes])._nested_tensor_size()
    assert got.tolist() == want.tolist() and got.dtype == taeda.int64
    jagged = taeda.nested.nested_tensor([taeda.ones(2, 3), taeda.ones(4, 3)], layout=taeda.jagged)
    with pytest.raises(RuntimeError, match="layout strided"):
        jagged._nested_tensor_size()


def test_dropout_draws_in_the_order_of_memory():
    for f in BOTH:
        f.manual_seed(3)
    ours, theirs = (f.nn.functional.dropout(nested(f, "strided").transpose(1, 2), 0.3).unbind() for f in BOTH)
    assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]
    assert [x.stride() for x in ours] == [x.stride() for x in theirs]
    with pytest.raises(NotImplementedError):  # it would not write
        taeda.dropout_(nested(taeda, "strided"), 0.3, True)
    assert len(taeda.nn.functional.dropout(taeda.nested.nested_tensor([]), 0.3)) == 0


def test_backward_of_a_nested_gradient():
    for f in BOTH:
        x = f.nested.nested_tensor(list(parts(f)), requires_grad=True)
        (x * x).backward(nested(f, "strided"))
        for g, p in zip(x.grad.unbind(), parts(f), strict=True):
            assert g.tolist() == (2 * p * p).tolist()
        with pytest.raises(RuntimeError, match="only for scalar outputs"):
            (x * x).backward()


def test_parts_are_copied_in_rows():
    for f in BOTH:
        x = f.nested.nested_tensor([p.t() for p in parts(f)])
        assert x.is_contiguous() and not x.transpose(1, 2).is_contiguous()
        assert f.nested.to_padded_tensor(f.nested.nested_tensor([]), 4.0).shape == (0,)
        assert repr(f.nested.nested_tensor([])) == "nested_tensor([\n\n])"
        with pytest.raises(RuntimeError):
            x.squeeze()
        with pytest.raises(RuntimeError):
            x.chunk(4, 1 if f is torch else 2)  # of different numbers of pieces
