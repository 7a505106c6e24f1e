"""Every layer against PyTorch's: initial weights, output, gradients, state dict and repr, with equal seeds."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import taeda
from taeda import nn
from tests import agree

torch = pytest.importorskip("torch")

from .peer import close, ours  # noqa: E402 - needs torch

rng = np.random.default_rng(1)
CASES = []


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def integer(high, *shape):
    return rng.integers(0, high, shape)


def case(name, args=(), kw=None, *inputs, train=True, leaf=True, grads=True):
    CASES.append(pytest.param(name, args, kw or {}, inputs, train, leaf, grads, id=f"{len(CASES)}-{name}"))


SHAPES = {1: (2, 4, 9), 2: (2, 4, 9, 8), 3: (2, 4, 5, 6, 7)}

case("Linear", (4, 6), {}, real(3, 4))
case("Linear", (4, 6), {"bias": False}, real(4))
case("LazyLinear", (5,), {}, real(3, 4))
case("Bilinear", (3, 4, 5), {}, real(6, 3), real(6, 4))
case("Identity", (), {}, real(3))
for d, shape in SHAPES.items():
    x = real(*shape)
    case(f"Conv{d}d", (4, 6, 3), {"padding": 1, "stride": 2}, x)
    case(f"Conv{d}d", (4, 6, 3), {"padding": "same", "groups": 2}, x)
    case(f"Conv{d}d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect", "bias": False}, x[0])
    case(f"ConvTranspose{d}d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1}, x)
    case(f"LazyConv{d}d", (6, 3), {}, x)
    case(f"LazyConvTranspose{d}d", (6, 3), {}, x)
    case(f"BatchNorm{d}d", (4,), {}, x)
    case(f"BatchNorm{d}d", (4,), {}, x, train=False)
    case(f"BatchNorm{d}d", (4,), {"momentum": None, "affine": False}, x)
    case(f"LazyBatchNorm{d}d", (), {}, x)
    case(f"InstanceNorm{d}d", (4,), {"affine": True, "track_running_stats": True}, x)
    case(f"InstanceNorm{d}d", (4,), {}, x[0])
    case(f"LazyInstanceNorm{d}d", (), {"affine": True}, x)
    case(f"MaxPool{d}d", (2,), {}, x)
    case(f"MaxPool{d}d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True}, x)
    case(f"AvgPool{d}d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, x)
    case(f"AdaptiveAvgPool{d}d", (3,), {}, x)
    case(f"AdaptiveMaxPool{d}d", (3,), {}, x)
    case(f"LPPool{d}d", (2.0, 2), {}, np.abs(x) + 0.1)
    for kind in ("ReflectionPad", "ReplicationPad", "CircularPad", "ZeroPad"):
        case(f"{kind}{d}d", (1,), {}, x)
    case(f"ConstantPad{d}d", (1, 2.5), {}, x)
    case(f"Dropout{d}d", (0.5,), {}, x)
case("BatchNorm1d", (4,), {"bias": False}, real(5, 4))
case("SyncBatchNorm", (4,), {}, real(5, 4), train=False)
case("LayerNorm", (5,), {}, real(3, 5))
case("LayerNorm", ((4, 5),), {"bias": False}, real(3, 4, 5))
case("GroupNorm", (2, 4), {}, real(3, 4, 5))
case("RMSNorm", (5,), {}, real(3, 5))
case("LocalResponseNorm", (3,), {}, real(2, 6, 4, 4))
case("LocalResponseNorm", (3,), {}, real(2, 6, 4))
case("CrossMapLRN2d", (3,), {}, real(2, 6, 4, 4), grads=False)
for name in (
    "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU RReLU ReLU ReLU6 SELU SiLU "
    "Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink"
).split():
    case(name, (), {}, real(3, 4, 6) * 3)
for name in "ReLU SiLU ELU LeakyReLU Hardtanh SELU CELU Mish ReLU6 Hardswish Hardsigmoid".split():
    case(name, (), {"inplace": True}, real(3, 4), leaf=False)
case("GELU", (), {"approximate": "tanh"}, real(3, 4))
case("RReLU", (), {}, real(3, 4), train=False)
case("PReLU", (4,), {}, real(3, 4, 5))
case("Threshold", (0.1, 20.0), {}, real(3, 4))
for name in ("Softmax", "LogSoftmax", "Softmin"):
    case(name, (1,), {}, real(3, 4))
    case(name, (), {}, real(3, 4))
case("Softmax2d", (), {}, real(2, 3, 4, 5))
case("Dropout", (0.3,), {}, real(20, 20))
case("Dropout", (0.3,), {}, real(20, 20), train=False)
case("AlphaDropout", (0.3,), {}, real(20, 20))
case("FeatureAlphaDropout", (0.3,), {}, real(4, 5, 3))
case("Embedding", (10, 4), {}, integer(10, 3, 5))
case("Embedding", (10, 4), {"padding_idx": 2, "max_norm": 1.0}, integer(10, 3, 5))
for mode in ("sum", "mean", "max"):
    case("EmbeddingBag", (10, 4), {"mode": mode}, integer(10, 3, 5))
    case("EmbeddingBag", (10, 4), {"mode": mode, "padding_idx": 1}, integer(10, 12), np.array([0, 4, 9]))
case("Flatten", (), {}, real(2, 3, 4))
case("Unflatten", (1, (2, 3)), {}, real(2, 6, 4))
case("PixelShuffle", (2,), {}, real(2, 8, 3, 3))
case("PixelUnshuffle", (2,), {}, real(2, 2, 4, 6))
case("ChannelShuffle", (2,), {}, real(2, 4, 3, 3))
case("Fold", ((4, 5), (2, 2)), {}, real(2, 12, 12))
case("Unfold", ((2, 3),), {"padding": 1}, real(2, 3, 4, 5))
case("CosineSimilarity", (), {}, real(3, 5), real(3, 5))
case("PairwiseDistance", (), {}, real(3, 5), real(3, 5))
for mode, shape in (
    ("nearest", (2, 3, 5)), ("nearest", (2, 3, 5, 6)), ("nearest-exact", (2, 3, 5, 6)), ("linear", (2, 3, 5)),
    ("bilinear", (2, 3, 5, 6)), ("bicubic", (2, 3, 5, 6)), ("trilinear", (2, 3, 4, 5, 6)), ("area", (2, 3, 5, 6)),
):  # fmt: skip
    for size in ({"scale_factor": 2.0}, {"scale_factor": 0.6}, {"size": 7}):
        case("Upsample", (), {"mode": mode, **size}, real(*shape))
        if "linear" in mode or "cubic" in mode:
            case("Upsample", (), {"mode": mode, "align_corners": True, **size}, real(*shape))
case("UpsamplingBilinear2d", (), {"scale_factor": 2}, real(2, 3, 5, 6))
case("UpsamplingNearest2d", (), {"scale_factor": 2}, real(2, 3, 5, 6))

x, y = real(4, 5), real(4, 5)
probability = 1 / (1 + np.exp(-real(4, 5)))
binary = (real(4, 5) > 0).astype(np.float32)
signs = np.sign(real(4)).astype(np.float32)
for reduction in ("mean", "sum", "none"):
    r = {"reduction": reduction}
    for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"):
        case(name, (), r, x, y)
    case("CrossEntropyLoss", (), r, x, integer(5, 4))
    case("NLLLoss", (), r, x, integer(5, 4))
    case("BCELoss", (), r, probability, binary)
    case("BCEWithLogitsLoss", (), r, x, binary)
    case("KLDivLoss", (), r, x, probability)
    case("PoissonNLLLoss", (), r, x, probability)
    case("GaussianNLLLoss", (), r, x, y, probability)
    case("HingeEmbeddingLoss", (), r, x, np.sign(y))
    case("CosineEmbeddingLoss", (), r, x, y, signs)
    case("MarginRankingLoss", (), r, real(4), real(4), signs)
    case("MultiMarginLoss", (), r, x, integer(5, 4))
    case("MultiLabelMarginLoss", (), r, x, integer(5, 4, 5))
    case("MultiLabelSoftMarginLoss", (), r, x, binary)
    case("TripletMarginLoss", (), r, x, y, real(4, 5))
    case("TripletMarginWithDistanceLoss", (), r, x, y, real(4, 5))
case("SoftMarginLoss", (), {}, x, np.sign(y).astype(np.int64))
case("CrossEntropyLoss", (), {"label_smoothing": 0.1}, x, integer(5, 4))
case("CrossEntropyLoss", (), {"ignore_index": 2}, real(4, 5, 3), integer(5, 4, 3))

for name in ("RNN", "LSTM", "GRU"):
    case(name, (4, 5), {}, real(6, 3, 4))
    case(name, (4, 5, 2), {"bidirectional": True, "batch_first": True}, real(3, 6, 4))
    case(name, (4, 5), {"bias": False}, real(6, 4))
    case(name, (4, 5, 2), {"dropout": 0.5}, real(6, 3, 4))
    case(f"{name}Cell", (4, 5), {}, real(3, 4))
    case(f"{name}Cell", (4, 5), {"bias": False}, real(4))
case("LSTM", (4, 5), {"proj_size": 3}, real(6, 3, 4))
case("RNN", (4, 5), {"nonlinearity": "relu"}, real(6, 3, 4))
query, memory = real(5, 2, 8), real(4, 2, 8)
case("MultiheadAttention", (8, 2), {}, query, query, query)
case("MultiheadAttention", (8, 2), {"dropout": 0.3}, query, query, query)
case("MultiheadAttention", (8, 2), {"kdim": 4, "vdim": 6}, query, real(6, 2, 4), real(6, 2, 6))
case(
    "MultiheadAttention", (8, 2), {"batch_first": True, "add_bias_kv": True, "add_zero_attn": True}, real(2, 5, 8),
    real(2, 6, 8), real(2, 6, 8),
)  # fmt: skip
case("TransformerEncoderLayer", (8, 2, 16), {"dropout": 0.2}, query)
case(
    "TransformerEncoderLayer", (8, 2, 16),
    {"dropout": 0.0, "norm_first": True, "activation": "gelu", "batch_first": True}, query,
)  # fmt: skip
case("TransformerDecoderLayer", (8, 2, 16), {"dropout": 0.0}, query, memory)
case("Transformer", (8, 2, 1, 1, 16), {"dropout": 0.0}, query, memory)
case("AdaptiveLogSoftmaxWithLoss", (8, 20, [5, 10]), {}, real(6, 8), integer(20, 6))


def tensors(library, arrays, leaf):
    made = []
    for a in arrays:
        kind = {"f": library.float32, "b": library.bool}.get(a.dtype.kind, library.int64)
        t = library.tensor(a.tolist(), dtype=kind)
        made.append(t.requires_grad_(leaf and a.dtype.kind == "f"))
    return made


def outputs(value):
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in outputs(v)]
    return [value] if hasattr(value, "shape") else []


def run(library, modules, name, args, kw, inputs, train, leaf):
    """The module, its inputs and outputs, and what backward from a fixed gradient leaves."""
    library.manual_seed(7)
    module = getattr(modules, name)(*args, **kw).train(train)
    made = tensors(library, inputs, leaf)
    library.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = outputs(module(*made))
    total = None
    for o in out:
        if o.requires_grad:
            weight = np.cos(np.arange(max(o.numel(), 1))).reshape(tuple(o.shape)).astype(np.float32)
            term = (o * library.tensor(weight.tolist(), dtype=o.dtype)).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()
    return module, made, out


@pytest.mark.parametrize(("name", "args", "kw", "inputs", "train", "leaf", "grads"), CASES)
def test_layer(name, args, kw, inputs, train, leaf, grads):
    ours, our_in, our_out = run(taeda, nn, name, args, kw, inputs, train, leaf)
    theirs, their_in, their_out = run(torch, torch.nn, name, args, kw, inputs, train, leaf)
    assert repr(ours) == repr(theirs)
    assert len(our_out) == len(their_out)
    for i, (a, b) in enumerate(zip(our_out, their_out, strict=True)):
        agree.close(a, b, f"output {i}", 2e-5, 2e-5)
        if grads:
            assert a.requires_grad == b.requires_grad
    if grads:
        for i, (a, b) in enumerate(zip(our_in, their_in, strict=True)):
            assert (a.grad is None) == (b.grad is None)
            if b.grad is not None:
                agree.close(a.grad, b.grad, f"gradient of input {i}", 1e-4, 1e-4)
        named = zip(ours.named_parameters(), theirs.named_parameters(), strict=True)
        for (key, a), (other, b) in named:
            assert key == other
            assert (a.grad is None) == (b.grad is None), key
            if b.grad is not None:
                agree.close(a.grad, b.grad, f"gradient of {key}", 1e-4, 1e-4)
    state, expected = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(expected)
    for key in expected:
        agree.close(state[key], expected[key], key, 1e-5, 1e-5)


PUBLIC = [n for n in torch.nn.modules.__all__ if not n.startswith("LinearCrossEntropy") and n != "Container"]


@pytest.mark.parametrize("name", PUBLIC)
def test_name_exists(name):
    assert hasattr(nn, name)


@pytest.mark.parametrize("lengths", [[5, 3, 2], [2, 5, 3], [4, 4, 4]])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequence(kind, bidirectional, lengths):
    def go(library, modules):
        library.manual_seed(0)
        rnn = getattr(modules, kind)(3, 4, num_layers=2, bidirectional=bidirectional)
        x = library.tensor(np.sin(np.arange(5 * 3 * 3)).reshape(5, 3, 3).tolist()).requires_grad_(True)
        packed = modules.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        out, state = rnn(packed)
        padded, sizes = modules.utils.rnn.pad_packed_sequence(out)
        states = outputs(state)
        (padded.sum() + sum((s * s).sum() for s in states)).backward()
        return [
            padded,
            sizes,
            *states,
            x.grad,
            rnn.weight_hh_l1.grad,
            packed.data,
            packed.batch_sizes,
            packed.sorted_indices,
        ]

    for i, (a, b) in enumerate(zip(go(taeda, nn), go(torch, torch.nn), strict=True)):
        agree.close(a, b, str(i), 2e-5, 2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample(mode, padding_mode, align_corners):
    image, grid = real(2, 3, 5, 6), (real(2, 4, 7, 2) * 1.2)

    def go(library, functional):
        a, g = tensors(library, [image, grid], True)
        out = functional.grid_sample(a, g, mode, padding_mode, align_corners)
        (out * out).sum().backward()
        return out, a.grad, g.grad

    ours, theirs = go(taeda, nn.functional), go(torch, torch.nn.functional)
    for what, a, b in zip(("output", "input gradient", "grid gradient"), ours, theirs, strict=True):
        tolerance = 2e-3 if mode == "bicubic" else 1e-4
        agree.close(a if a is not None else taeda.zeros(2, 4, 7, 2), b, what, tolerance, tolerance)


def test_grid_sample_volume():
    volume, grid = real(2, 3, 4, 5, 6), real(2, 2, 3, 4, 3)

    def go(library, functional):
        a, g = tensors(library, [volume, grid], True)
        out = functional.grid_sample(a, g, align_corners=False)
        (out * out).sum().backward()
        return out, a.grad, g.grad

    for a, b in zip(go(taeda, nn.functional), go(torch, torch.nn.functional), strict=True):
        agree.close(a, b, "volume", 1e-4, 1e-4)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(size, align_corners):
    n = len(size) - 2
    theta = real(2, n, n + 1)
    ours = nn.functional.affine_grid(taeda.tensor(theta.tolist()), size, align_corners)
    agree.close(ours, torch.nn.functional.affine_grid(torch.tensor(theta), size, align_corners), "grid", 1e-5, 1e-5)
    for f in (torch, taeda):
        with warnings.catch_warnings(record=True) as caught:
            f.nn.functional.affine_grid(f.ones(2, n, n + 1), (*size[:-1], 1), align_corners)
        assert len(caught) == align_corners


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (13, 9), (5, 20)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_antialias(mode, size, align_corners):
    x = real(2, 3, 9, 11)

    def go(library, functional):
        a = tensors(library, [x], True)[0]
        out = functional.interpolate(a, size=size, mode=mode, align_corners=align_corners, antialias=True)
        (out * out).sum().backward()
        return out, a.grad

    for a, b in zip(go(taeda, nn.functional), go(torch, torch.nn.functional), strict=True):
        agree.close(a, b, mode, 1e-4, 1e-4)


def test_functional_names():
    missing = [
        name
        for name in dir(torch.nn.functional)
        if not name.startswith("_")
        and getattr(getattr(torch.nn.functional, name), "__module__", "")
        in ("torch.nn.functional", "torch._C._nn", None)
        and callable(getattr(torch.nn.functional, name))
        and not isinstance(getattr(torch.nn.functional, name), type)
        and not hasattr(nn.functional, name)
    ]
    known = {  # dispatch helpers of PyTorch's own, low-precision products, and pooling under second names
        "assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function",
        "has_torch_function_unary", "has_torch_function_variadic", "linear_cross_entropy", "scaled_grouped_mm",
    }  # fmt: skip
    assert [n for n in missing if n not in known and not n.endswith("_with_indices")] == []


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize(
    "how",
    [
        {}, {"norm_first": True}, {"batch_first": False}, {"activation": "gelu"}, {"nhead": 1},
        {"activation": lambda f: f.nn.GELU()}, {"activation": lambda f: f.nn.SiLU()},
    ],
)  # fmt: skip
def test_padding_in_the_result_of_an_encoder(how, norm, grad):
    results = []
    for f in (torch, taeda):
        torch.manual_seed(0)
        options = {"nhead": 2, "batch_first": True, "dim_feedforward": 16, **how}
        if callable(how.get("activation")):
            options["activation"] = how["activation"](f)
        state, x = torch.nn.TransformerEncoderLayer(8, 2, 16).state_dict(), torch.randn(2, 5, 8)
        layer = f.nn.TransformerEncoderLayer(8, **options)
        layer.load_state_dict(state if f is torch else {k: ours(v) for k, v in state.items()})
        x = x if how.get("batch_first", True) else x.transpose(0, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoder = f.nn.TransformerEncoder(layer, 2, f.nn.LayerNorm(8) if norm else None).eval()
            for hidden in ([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], [[0, 1, 0, 1, 1], [0, 0, 0, 0, 1]], [[0] * 5] * 2):
                mask = f.tensor(hidden, dtype=f.bool)
                with f.set_grad_enabled(grad):
                    results.append(encoder(x if f is torch else ours(x), src_key_padding_mask=mask).detach())
    for want, got in zip(results[:3], results[3:], strict=True):
        close(got, want, rtol=1e-4, atol=1e-5)


def test_reprs_of_parameters_in_containers():
    found = []
    for f in (torch, taeda):
        values = {"a": f.ones(2, 3), "b": f.ones(1, dtype=f.bfloat16), "c": 3}
        found.append(f"{f.nn.ParameterDict(values)} {f.nn.ParameterList(values.values())}".replace(f.__name__, ""))
    assert found[0] == found[1].replace("[torch.", "[.")


def test_copies_of_transformers_whose_activation_is_a_module():
    """Encoders keep it; decoders, which copy their layer, have ReLU, as in PyTorch."""
    found = []
    for f in (torch, taeda):
        model = f.nn.Transformer(8, 2, 1, 1, 16, 0.0, f.nn.GELU(), batch_first=True)
        encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
        again = pickle.loads(pickle.dumps(encoder))
        h = f.linspace(-1, 1, 5)
        found.append([layer.activation(h).tolist() for layer in (encoder, decoder, again, copy.deepcopy(again))])
    assert np.allclose(*found, atol=1e-6)
