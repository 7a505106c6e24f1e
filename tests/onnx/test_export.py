"""Models written as ONNX give in onnxruntime what they give here."""

from __future__ import annotations

import inspect
import io

import numpy as np
import pytest

import taeda
import taeda.onnx
from taeda import nn
from taeda.nn import functional as F
from taeda.nn.modules._recurrent import recurrent
from taeda.utils import _pytree as pytree

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from .networks import NETWORKS  # noqa: E402


def leaves(result):
    return [x for x in pytree.tree_leaves(result) if isinstance(x, taeda.Tensor)]


def compare(program, model, *args, tolerance=1e-4):
    """The largest number counts: elements agree to 1e-4 of it."""
    with taeda.no_grad():
        wanted = leaves(model(*args))
    got = [x.detach() for x in leaves(program(*args))]
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        scale = float(y.double().abs().max()) if y.numel() else 0.0
        np.testing.assert_allclose(x.double().numpy(), y.double().numpy(), tolerance, tolerance * min(scale, 1) + 1e-7)


def kinds(program):
    return [node.op_type for node in program.model_proto.graph.node]


def changed(x, sizes):
    """Another tensor like ``x``, each of its named sizes one larger."""
    if not isinstance(x, taeda.Tensor):
        return x
    grown = [n + (1 if isinstance(sizes.get(d), str) else 2 if d in sizes else 0) for d, n in enumerate(x.shape)]
    if x.is_floating_point():
        return taeda.randn(grown)
    low, high = int(x.min()), int(x.max()) + 1
    return taeda.randint(low, max(high, low + 1), grown)


@pytest.mark.parametrize("opset", [None, 17, 23])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, opset):
    taeda.manual_seed(0)
    model, args, sizes = NETWORKS[name]()
    model.eval()
    program = taeda.onnx.export(model, args, dynamic_shapes=sizes, opset_version=opset)
    compare(program, model, *args)
    flat, spec = pytree.tree_flatten(args)
    others = pytree.tree_leaves(sizes, is_leaf=lambda s: isinstance(s, dict))
    compare(program, model, *pytree.tree_unflatten([changed(x, s) for x, s in zip(flat, others, strict=True)], spec))
    if opset is None:  # and read again
        compare(lambda *args: taeda.onnx.load(program.model_proto)(*leaves(args)), model, *args)


# ---- arguments -------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(20, 30)
        self.register_buffer("scale", taeda.tensor(2.0))

    def forward(self, x, y, times: int = 1):
        return {"a": self.linear(x) * self.scale * times, "b": (x.sum(), y)}


@pytest.fixture
def given():
    taeda.manual_seed(0)
    return Net(), (taeda.randn(3, 20), taeda.arange(4))


def test_names(given):
    model, args = given
    program = taeda.onnx.export(model, args, input_names=["in", "other"], output_names=["out", "total", "same"])
    graph = program.model_proto.graph
    assert [x.name for x in graph.input] == ["in", "other"] and [x.name for x in graph.output] == [
        "out",
        "total",
        "same",
    ]
    assert {x.name for x in graph.initializer} >= {"linear.weight", "linear.bias", "scale"}
    with pytest.raises(ValueError, match="1 more input_names"):
        taeda.onnx.export(model, args, input_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="4 output_names for 3 outputs"):
        taeda.onnx.export(model, args, output_names=list("abcd"))


def test_arguments_by_name_are_fixed_numbers(given):
    model, (x, y) = given
    program = taeda.onnx.export(model, (x,), kwargs={"y": y, "times": 3})
    wanted = leaves(model(x, y=y, times=3))
    for got in (program(x, y=y, times=3), program(x, times=3, y=y), program(x.numpy(), y, 3)):
        for a, b in zip(got, wanted, strict=True):
            assert taeda.allclose(a, b, atol=1e-5)  # sums in another order; some are near 0
    with pytest.raises(RuntimeError, match="equal to 3, but got 2"):
        program(x, y=y, times=2)
    with pytest.raises(RuntimeError, match="equal to 20, but got 19"):
        program(taeda.randn(3, 19), y=y, times=3)
    with pytest.raises(TypeError, match="missing: \\['y'\\], not known: \\['z'\\]"):
        program(x, times=3, z=3)
    assert taeda.allclose(program(x, y)[0], wanted[0], atol=1e-5)  # numbers are fixed, and may be left out


def test_files(given, tmp_path):
    model, args = given
    path = tmp_path / "net.onnx"
    assert taeda.onnx.export(model, args, path, dynamo=False) is None
    whole = path.stat().st_size
    assert not (tmp_path / "net.onnx.data").exists()
    taeda.onnx.export(model, args, path)  # weights beside it
    assert path.stat().st_size < whole - 2000 and (tmp_path / "net.onnx.data").stat().st_size >= 2400
    for load in (taeda.onnx.load, lambda p: _runtime(p)):
        compare(load(path), model, *args)
    stream = io.BytesIO()
    taeda.onnx.export(model, args, stream)
    compare(taeda.onnx.load(stream.getvalue()), model, *args)
    with pytest.raises(TypeError, match="destination"):
        taeda.onnx.export(model, args).save(io.BytesIO(), external_data=True)


def _runtime(path):
    from taeda.onnx.program import _run, _session

    session = _session(str(path))
    return lambda *args: _run(session, {i.name: x.numpy() for i, x in zip(session.get_inputs(), args, strict=True)})


def test_large_weights_go_beside_the_model(given, tmp_path, monkeypatch):
    model, args = given
    program = taeda.onnx.export(model, args)
    monkeypatch.setattr("taeda.onnx.program.LARGE", 2000)
    program.save(tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx.data").exists()
    compare(_runtime(tmp_path / "net.onnx"), model, *args)
    compare(program, model, *args)  # its session reads them from a file, too


def test_weights_as_inputs(given, tmp_path):
    model, args = given
    for options, names in (({"export_params": False}, 0), ({"keep_initializers_as_inputs": True}, 3)):
        stream = io.BytesIO()
        taeda.onnx.export(model, args, stream, **options)
        graph = onnx.load_from_string(stream.getvalue()).graph
        assert {"linear.weight", "linear.bias", "scale"} <= {x.name for x in graph.input}
        assert sum("." in x.name or x.name == "scale" for x in graph.initializer) == names


def test_other_weights(given):
    model, args = given
    program = taeda.onnx.export(model, args)
    other = Net()
    program.apply_weights(other.state_dict())
    compare(program, other, *args)
    with pytest.warns(UserWarning, match="no weight nothing"):
        program.apply_weights({"nothing": taeda.ones(1)})
    with pytest.raises(ValueError, match="sizes"):
        program.apply_weights({"scale": taeda.ones(2)})


def test_dynamic_axes(given):
    model, _ = given
    x = taeda.randn(3, 20)
    axes = {"x": {0: "batch"}, "y": [0]}
    program = taeda.onnx.export(model, (x, taeda.arange(3)), input_names=["x", "y"], dynamic_axes=axes, dynamo=True)
    named = [d.dim_param for i in program.model_proto.graph.input for d in i.type.tensor_type.shape.dim]
    assert named == ["batch", "", "y_dynamic_axes_1"]
    compare(program, model, taeda.randn(7, 20), taeda.arange(5))


def test_sizes_that_the_model_ties_are_warned_of():
    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    x = taeda.randn(3, 2)
    with pytest.warns(UserWarning, match="tied or fixed"):
        program = taeda.onnx.export(Sum(), (x, x), dynamic_shapes=({0: "a"}, {0: "b"}))
    compare(program, Sum(), taeda.randn(5, 2), taeda.randn(5, 2))


def test_mode_of_the_model():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    x = taeda.randn(4, 3)
    stream = io.BytesIO()
    taeda.onnx.export(model, (x,), stream, dynamo=False)
    assert model.training
    compare(taeda.onnx.load(stream.getvalue()), model.eval(), x)
    model.train()
    with pytest.warns(UserWarning, match="keeps no state"):
        program = taeda.onnx.export(model, (x,))
    assert "Dropout" in kinds(program)


def test_what_is_refused(given):
    model, args = given
    for options in ({"profile": True},):
        with pytest.raises(NotImplementedError):
            taeda.onnx.export(model, args, **options)
    with pytest.raises(ValueError, match="17 to 23, got 9"):
        taeda.onnx.export(model, args, opset_version=9)


def test_scripts_and_programs_of_files(tmp_path):
    model, args, _ = NETWORKS["residual"]()
    model.eval()
    taeda.export.save(taeda.export.export(model, args), tmp_path / "net.pt2")
    for given in (taeda.jit.trace(model, args), taeda.jit.script(model), taeda.export.load(tmp_path / "net.pt2")):
        compare(taeda.onnx.export(given, args), model, *args)


def test_errors_name_op_line_and_alternative():
    class Inverse(nn.Module):
        def forward(self, x):
            return taeda.linalg.ldl_factor(x)[0] + 1  # this line

    with pytest.raises(taeda.onnx.errors.UnsupportedOperatorError) as error:
        taeda.onnx.export(Inverse(), (taeda.randn(3, 3),))
    message = str(error.value)
    assert "linalg_ldl_factor" in message and "# this line" in message and "Nearest alternative" in message
    assert not taeda.onnx.is_in_onnx_export()


def test_report_and_verification(given, tmp_path):
    model, args = given
    taeda.onnx.export(model, args, report=True, verify=True, dump_exported_program=True, artifacts_dir=tmp_path)
    (report,) = tmp_path.glob("onnx_export_*.md")
    assert "| Gemm | 1 |" in report.read_text()
    compare(taeda.export.load(tmp_path / "onnx_export.pt2").module(), model, *args)


def test_values_inside(given):
    model, args = given
    program = taeda.onnx.export(model, args)
    gemm = next(n for n in program.model_proto.graph.node if n.op_type == "Gemm")
    (value,) = program.compute_values([gemm.output[0]], args)
    assert taeda.allclose(value, model.linear(args[0]), atol=1e-6)


class Named(nn.Module):
    """Arguments by name, by NumPy's names, and sizes one by one or together."""

    def forward(self, x):
        index = taeda.zeros(3, 1, dtype=taeda.int64)
        return [
            taeda.sum(x, axis=1, keepdims=True), x.mean(axis=0), taeda.add(input=x, other=x), x.permute(dims=(1, 0)),
            taeda.cat(tensors=[x, x], axis=1), x.transpose(axis0=0, axis1=1), x.max(axis=1)[0], x.flip(dims=(0,)),
            taeda.softmax(x, axis=0), x.unsqueeze(axis=0), taeda.argmax(x, axis=1, keepdims=True), x.var(axis=1),
            taeda.stack([x, x], axis=1), x.view(size=(4, 3)), x.expand(size=(2, 3, 4)), x.repeat(repeats=(1, 2)),
            taeda.zeros(size=(2, 3)), x.reshape(shape=(4, 3)), x.roll(shifts=1, dims=1), x.clamp(min=0.0),
            taeda.where(condition=x > 0, input=x, other=-x), taeda.full((2, 3), fill_value=2.0), taeda.arange(end=4),
            x.split(split_size=2, dim=1)[0], x.masked_fill(mask=x > 0, value=1.0), taeda.matmul(input=x, other=x.T),
            x.mm(mat2=x.T), taeda.addmm(taeda.ones(3, 3), mat1=x, mat2=x.T, beta=0.5), x.to(dtype=taeda.float64),
            x.type(taeda.float16), x.cumsum(axis=0), x.topk(k=2, dim=0)[0], x.sort(dim=1, descending=True)[1],
            x.gather(dim=1, index=index), x.narrow(dim=0, start=1, length=2), x.ge(other=0), x.pow(exponent=2),
            x.select(dim=1, index=0), taeda.layer_norm(input=x, normalized_shape=(4,)), x.view(4, 3), x.repeat(2, 1),
        ]  # fmt: skip


def test_arguments_by_name():
    compare(taeda.onnx.export(Named(), (taeda.randn(3, 4),)), Named(), taeda.randn(3, 4))


def test_translators_have_the_names_of_the_ops_arguments():
    from taeda.export._functions import table
    from taeda.onnx.translate.table import TRANSLATORS

    known, wrong = table(), []
    for name, translator in TRANSLATORS.items():
        own = inspect.signature(translator).parameters
        if name.startswith(("operator.", "step.", "math.")) or any(p.kind is p.VAR_KEYWORD for p in own.values()):
            continue
        asked = inspect.signature(known.get(f"op.{name}") or known[name]).parameters.values()
        named = [p.name for p in asked if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name != "out"]
        wrong += [(name, missing) for missing in set(named) - set(own)]
    assert wrong == []


# ---- ops of one's own ------------------------------------------------------------------------------------------------


def test_custom_translation():
    class Silu(nn.Module):
        def forward(self, x):
            return F.silu(x) * 2

    def translation(g, input, inplace=False):
        return g.op("Sigmoid", input) if False else g.Mul(g.Sigmoid(input), input)

    x = taeda.randn(3)
    program = taeda.onnx.export(Silu(), (x,), custom_translation_table={F.silu: translation})
    compare(program, Silu(), x)
    other = taeda.onnx.export(Silu(), (x,), custom_translation_table={F.silu: lambda g, x, inplace=False: g.Relu(x)})
    assert taeda.allclose(other(x)[0], x.relu() * 2)


def test_node_of_another_domain():
    program = taeda.onnx.export(
        nn.SiLU(), (taeda.randn(3),), custom_opsets={"my.domain": 3},
        custom_translation_table={F.silu: lambda g, x, inplace: g.op("Mine", x, domain="my.domain", alpha=2.0)},
    )  # fmt: skip
    (node,) = program.model_proto.graph.node
    assert (node.op_type, node.domain, node.attribute[0].f) == ("Mine", "my.domain", 2.0)
    assert {o.domain: o.version for o in program.model_proto.opset_import} == {"": 20, "my.domain": 3}


def test_functions_of_onnxscript():
    onnxscript = pytest.importorskip("onnxscript")
    from onnxscript import opset20 as op

    @onnxscript.script(onnxscript.values.Opset("my.functions", 1))
    def Twice(x):
        return op.Add(x, x)

    x = taeda.randn(3)
    program = taeda.onnx.export(nn.SiLU(), (x,), custom_translation_table={F.silu: Twice})
    assert taeda.allclose(program(x)[0], x + x)


# ---- control flow ----------------------------------------------------------------------------------------------------


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return taeda.cond(x.sum() > 0, lambda y: self.linear(y).relu(), lambda y: -y, (x,))


class Doubling(nn.Module):
    def forward(self, x, limit):
        from taeda.func.control_flow import while_loop

        def more(i, y):
            return (y.sum() < limit).logical_and(i < 20)

        return while_loop(more, lambda i, y: (i + 1, y * 2), (taeda.tensor(0), x))


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, h, xs):
        from taeda.func.control_flow import map as over_rows
        from taeda.func.control_flow import scan

        last, all_ = scan(lambda h, x: (self.linear(h + x).tanh(), h * 2), h, xs)
        back, other = scan(lambda h, x: (h * 0.5 + x, h - x), h, xs.transpose(0, 1), dim=1, reverse=True)
        return last, all_, back, other, over_rows(lambda x: self.linear(x).sum(), xs)


def test_branches():
    model, x = Branch(), taeda.rand(2, 4)
    program = taeda.onnx.export(model, (x,), dynamic_shapes=({0: "batch"},))
    assert "If" in kinds(program)
    for y in (x, -x, taeda.rand(5, 4)):
        compare(program, model, y)


def test_loops():
    model, x = Doubling(), taeda.rand(3)
    program = taeda.onnx.export(model, (x, taeda.tensor(100.0)))
    assert "Loop" in kinds(program)
    for limit in (-1.0, 5.0, 100.0):
        compare(program, model, x, taeda.tensor(limit))


def test_scans():
    model, args = Running(), (taeda.randn(3), taeda.randn(5, 3))
    program = taeda.onnx.export(model, args)
    assert kinds(program).count("Scan") == 3
    compare(program, model, *args)


# ---- sequences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_packed_sequences(kind):
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = getattr(nn, kind)(4, 5, bidirectional=True)

        def forward(self, x):
            weights, hidden = self.rnn.all_weights, taeda.zeros(2, 3, 5)
            hx, mode = (hidden, hidden) if kind == "LSTM" else hidden, "RNN_TANH" if kind == "RNN" else kind
            return recurrent(mode, x, hx, weights, True, 1, 0.0, False, True, False, [3, 2, 2, 2, 1, 1])

    model, x = Packed(), taeda.randn(11, 4)  # the rows of all steps
    program = taeda.onnx.export(model, (x,))
    assert kinds(program).count(kind) == 2
    compare(program, model, x)


@pytest.mark.parametrize(("kind", "options"), [
    ("LSTM", {"bidirectional": True, "batch_first": True, "num_layers": 2}),
    ("LSTM", {"bidirectional": True, "num_layers": 2, "proj_size": 3, "bias": False}),
    ("LSTM", {"proj_size": 2, "batch_first": True}),
    ("GRU", {"bidirectional": True, "num_layers": 2, "bias": False}),
    ("GRU", {"batch_first": True}),
    ("RNN", {"bidirectional": True, "nonlinearity": "relu"}),
    ("RNN", {"batch_first": True, "num_layers": 2, "bias": False}),
])  # fmt: skip
def test_recurrent_layers_of_any_length(kind, options):
    taeda.manual_seed(0)
    model = getattr(nn, kind)(4, 5, **options)
    width, copies = options.get("proj_size", 5), options.get("num_layers", 1) * (2 if "bidirectional" in options else 1)
    time = 1 if "batch_first" in options else 0

    def inputs(steps, batch):
        x = taeda.randn(batch, steps, 4) if time else taeda.randn(steps, batch, 4)
        h, c = taeda.randn(copies, batch, width), taeda.randn(copies, batch, 5)
        return x, (h, c) if kind == "LSTM" else h

    state = ({1: "batch"}, {1: "batch"}) if kind == "LSTM" else {1: "batch"}
    sizes = ({time: "steps", 1 - time: "batch"}, state)
    program = taeda.onnx.export(model, inputs(7, 3), dynamic_shapes=sizes)
    assert kinds(program).count("Scan" if "proj_size" in options else kind) == copies
    for steps, batch in ((7, 3), (1, 1), (30, 2)):
        compare(program, model, *inputs(steps, batch))
    alone = taeda.onnx.export(model, inputs(7, 3)[:1], dynamic_shapes=sizes[:1])
    compare(alone, model, inputs(12, 5)[0])


def test_sizes_of_blocks_and_diagonals_may_change():
    class Blocks(nn.Module):
        def forward(self, x, y):
            blocks = nn.functional.pixel_unshuffle(x, 2), nn.functional.pixel_shuffle(x, 2)
            return *blocks, y.diag_embed(1), y[:, 0].diag(), y.diagonal_scatter(y[:, 0] * 2, 0, 0, 1)

    h, w, m = (taeda.export.Dim(name) for name in "hwm")
    sizes = {2: 2 * h, 3: 2 * w}, {0: m, 1: m}
    program = taeda.onnx.export(Blocks(), (taeda.randn(2, 8, 4, 6), taeda.randn(3, 3)), dynamic_shapes=sizes)
    compare(program, Blocks(), taeda.randn(2, 8, 6, 2), taeda.randn(5, 5))


def test_complex_numbers():
    class Spectrum(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("turn", taeda.polar(taeda.ones(5), taeda.arange(5.0)))

        def forward(self, x, z):
            y = taeda.stft(x, 8, 4, window=taeda.hann_window(8), return_complex=True)
            w = taeda.view_as_complex(x.reshape(2, 2, 5, 2)) * self.turn
            back = taeda.fft.irfft(taeda.fft.rfft(x) * 2j, n=20)
            product = (z @ z.mT).angle()
            return (
                y.abs() ** 2,
                taeda.view_as_real(w),
                back,
                z * z.conj() + 1,
                taeda.fft.ifft2(z),
                product,
                z.split(2, 1)[1],
            )

    args = (taeda.randn(2, 20), taeda.randn(3, 4, dtype=taeda.complex64))
    for opset in (17, 20):
        program = taeda.onnx.export(Spectrum(), args, opset_version=opset)
        with taeda.no_grad():
            wanted = Spectrum()(*args)
        for x, y in zip(program(*args), wanted, strict=True):
            assert x.dtype == y.dtype and taeda.allclose(x, y, 1e-4, 1e-4)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("options", [
    {}, {"hop_length": 5}, {"win_length": 12}, {"length": 60}, {"hop_length": 8, "length": 64, "normalized": True},
    {"onesided": False}, {"onesided": False, "return_complex": True, "window": None},
])  # fmt: skip
def test_signals_of_spectrograms(options, opset):
    width = options.get("win_length", 16)
    options = {"hop_length": 4, "window": taeda.hann_window(width), **options}
    both = options.get("onesided") is False

    class Signal(nn.Module):
        def forward(self, z):
            return taeda.istft(z * 2, 16, **options)

    taeda.manual_seed(0)
    model, made = Signal(), taeda.randn(2, 16 if both else 9, 17, dtype=taeda.complex64)
    program = taeda.onnx.export(model, (made,), opset_version=opset, dynamic_shapes=({0: "n", 2: "pieces"},))
    for x in (made, taeda.randn(3, *made.shape[1:2], 21, dtype=taeda.complex64)):
        (y,), wanted = program(x), model(x)
        assert y.dtype == wanted.dtype and y.shape == wanted.shape
        assert taeda.allclose(y, wanted, 1e-4, 1e-5 * float(wanted.abs().max()))
    (y,) = taeda.onnx.export(Signal(), (made[0],), opset_version=opset)(made[0])
    assert taeda.allclose(y, model(made[0]), 1e-4, 1e-5 * float(y.abs().max()))


class Normalized(nn.Module):
    """Layers with batch normalisation behind them; two cannot be folded."""

    def __init__(self, bias=False):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(2, 4, 3, bias=bias, groups=2), nn.BatchNorm2d(4), nn.BatchNorm2d(4))
        self.up = nn.Sequential(nn.ConvTranspose2d(4, 3, 2, bias=bias), nn.BatchNorm2d(3, affine=False))
        self.grouped = nn.Sequential(nn.ConvTranspose2d(4, 4, 2, groups=2), nn.BatchNorm2d(4))
        self.one, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
        self.head = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))
        for module in self.modules():
            if hasattr(module, "running_var"):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
                if module.affine:
                    module.weight.data.normal_()
                    module.bias.data.normal_()

    def forward(self, x):
        x = self.conv(x)
        y = self.one(self.up(x))
        return self.norm(y), y, self.grouped(x), self.head(y.mean((2, 3)))


@pytest.mark.parametrize("bias", [True, False])
def test_normalisation_is_folded(bias):
    taeda.manual_seed(0)
    model, x = Normalized(bias).eval(), taeda.randn(2, 2, 6, 6)
    plain = taeda.onnx.export(model, (x,), optimize=False)
    program = taeda.onnx.export(model, (x,), dynamic_shapes=({0: "n"},))
    assert kinds(plain).count("BatchNormalization") == 6 and kinds(program).count("BatchNormalization") == 2
    compare(plain, model, x)
    compare(program, model, taeda.randn(3, 2, 6, 6))
    compare(program, model, x)  # the model has its own weights still
    plain.optimize()
    assert kinds(plain) == kinds(program)
    compare(plain, model, x)
    with pytest.raises(RuntimeError, match="batch normalisation in it"):
        program.apply_weights(model.state_dict())
    inputs = taeda.onnx.export(model, (x,), keep_initializers_as_inputs=True)
    assert kinds(inputs).count("BatchNormalization") == 6
    half = taeda.onnx.export(model.half(), (x.half(),))
    assert kinds(half).count("BatchNormalization") == 6


@pytest.mark.parametrize("bias", [True, False])
def test_output_padding_beyond_the_last_window(bias):
    layer = nn.ConvTranspose2d(3, 4, 2, stride=2, padding=1, output_padding=(2, 3), dilation=4, bias=bias)
    program = taeda.onnx.export(layer, (taeda.randn(2, 3, 4, 5),), dynamic_shapes=({0: "n", 2: "h"},))
    compare(program, layer, taeda.randn(3, 3, 6, 5))


def test_stored_dtypes():
    class Half(nn.Module):
        def forward(self, x, y):
            return x.half() * 2, x.to(taeda.bfloat16), y.to(taeda.int8) + 1, x.double().sum(), y > 2

    x, y = taeda.randn(3), taeda.arange(5)
    compare(taeda.onnx.export(Half(), (x, y)), Half(), x, y)


# ---- PyTorch's names -------------------------------------------------------------------------------------------------


class Asks(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_a_model_that_cannot_be_recorded():
    with pytest.raises(taeda.onnx.errors.TorchExportError, match="Three ways to mend it") as error:
        taeda.onnx.export(Asks(), (taeda.ones(2),))
    assert isinstance(error.value, taeda.onnx.OnnxExporterError)


def test_the_model_of_onnx_ir_may_be_changed(given, tmp_path):
    pytest.importorskip("onnx_ir")
    model, args = given
    program = taeda.onnx.export(model, args)
    program.model.metadata_props["written by"] = "a test"
    program.save(tmp_path / "net.onnx")
    assert onnx.load(tmp_path / "net.onnx").metadata_props[0].value == "a test"
    assert taeda.allclose(program(*args)[0], leaves(model(*args))[0], atol=1e-5)


def test_verification(given):
    from taeda.onnx.verification import verify_onnx_program

    infos = verify_onnx_program(taeda.onnx.export(*given))
    assert infos and all(i.max_abs_diff < 1e-4 and i.actual_dtype == i.expected_dtype for i in infos)


class Symbol(nn.Module):
    def forward(self, x):
        y = taeda.onnx.ops.symbolic("my.domain::Op", (x, None, x), {"k": 2, "s": "a"}, dtype=x.dtype, shape=x.shape)
        return taeda.erfinv(y)


def test_nodes_of_any_name():
    taeda.onnx.register_custom_op_symbolic("aten::erfinv", lambda g, x: g.op("my.domain::Inverse", x, a_f=2.0), 17)
    try:
        file = io.BytesIO()
        taeda.onnx.export(Symbol(), (taeda.ones(2, 3),), file, dynamo=False, dynamic_axes={"x": {0: "b"}})
    finally:
        taeda.onnx.unregister_custom_op_symbolic("aten::erfinv", 17)
    nodes = onnx.load_model_from_string(file.getvalue()).graph.node
    assert [(n.op_type, n.domain, len(n.input)) for n in nodes if n.domain] == [
        ("Op", "my.domain", 3), ("Inverse", "my.domain", 1)
    ]  # fmt: skip


def test_rotary_embedding():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.onnx.ops")
    x, cos, sin, places = torch.randn(2, 3, 4, 8), torch.randn(9, 4), torch.randn(9, 4), torch.randint(0, 9, (2, 4))
    given = [taeda.from_numpy(t.numpy()) for t in (x, cos, sin, places)]
    for options in ({}, {"interleaved": True}):
        want = torch.onnx.ops.rotary_embedding(x, cos, sin, places, **options)
        assert np.allclose(taeda.onnx.ops.rotary_embedding(*given, **options).numpy(), want.numpy(), atol=1e-6)
