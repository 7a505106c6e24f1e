"""``trace``: what is recorded gives what Python gave, and is written as archives that PyTorch reads."""

import copy
import io
import warnings

import numpy as np
import pytest

import taeda
from taeda import nn

torch = pytest.importorskip("torch")
from agree import close  # noqa: E402
from test_archive import TRACEABLE  # noqa: E402
from test_script import programs, theirs  # noqa: E402, F401 - a fixture


@pytest.mark.parametrize("name", TRACEABLE)
def test_programs(programs, name):  # noqa: F811
    taeda.manual_seed(0)
    module, calls = programs[name]()
    args = calls[0][1]
    expected = copy.deepcopy(module.eval())(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = taeda.jit.trace(module, args, strict=False)
    close(expected, traced(*args))
    buffer = io.BytesIO()
    traced.save(buffer)
    close(expected, taeda.jit.load(io.BytesIO(buffer.getvalue()))(*args))
    close(expected, torch.jit.load(io.BytesIO(buffer.getvalue()))(*theirs(args)))


def test_a_function():
    def f(x, y):
        z = x[..., 1:, None] + y
        z[0] = 1.0
        z[:, 0] += 2
        a, b = z.split(1, 1)
        return a * b.T if b.dim() == 2 else a * b, x.max(1)[0]

    x, y = taeda.randn(3, 3), taeda.randn(1)
    traced = taeda.jit.trace(f, (x, y))
    for inputs in ((x, y), (x * 2, y - 1)):
        close(f(*inputs), traced(*inputs))
    assert (
        isinstance(traced, taeda.jit.ScriptFunction)
        and "torch.select" in traced.code
        and "aten::slice" in str(traced.graph)
    )
    buffer = io.BytesIO()
    taeda.jit.save(traced, buffer)
    close(f(x, y), torch.jit.load(io.BytesIO(buffer.getvalue()))(*theirs((x, y))))


def test_gradients_go_through():
    linear = nn.Linear(3, 2)
    traced = taeda.jit.trace(linear, taeda.randn(1, 3))
    traced(taeda.ones(4, 3)).sum().backward()
    assert linear.weight.grad is not None and next(traced.parameters()) is linear.weight
    assert list(traced.state_dict()) == ["weight", "bias"] and taeda.equal(traced.weight, linear.weight)


def test_values_that_python_reads_are_warned_of():
    def f(x):
        return x * 2 if bool(x.sum() > 0) else x

    with pytest.warns(taeda.jit.TracerWarning, match="Python boolean"):
        traced = taeda.jit.trace(f, taeda.ones(2))
    assert traced(-taeda.ones(2)).tolist() == [-2, -2]


@pytest.mark.parametrize("draw", [
    lambda c: nn.functional.dropout(c, 0.5), lambda c: taeda.bernoulli(c / 2), lambda c: taeda.poisson(c),
    lambda c: nn.functional.rrelu(-c, training=True), lambda c: taeda.rand_like(c),
], ids=["dropout", "bernoulli", "poisson", "rrelu", "rand_like"])  # fmt: skip
def test_what_is_drawn_from_a_constant_is_drawn_in_each_run(draw):
    c, x = taeda.ones(100), taeda.zeros(100)
    traced = taeda.jit.trace(lambda x: x + draw(c), (x,), check_trace=False)
    assert not taeda.equal(traced(x), traced(x))


def test_tensors_of_numbers_are_constants_that_are_warned_of():
    def f(x):
        return x + taeda.tensor(x.tolist()) + taeda.from_numpy(np.ones(2, np.float32))

    with pytest.warns(taeda.jit.TracerWarning) as found:
        traced = taeda.jit.trace(f, taeda.ones(2))
    said = " ".join(str(w.message) for w in found)
    assert "Python list" in said and "taeda.tensor results" in said and "taeda.from_numpy results" in said
    assert {w.filename for w in found} == {__file__}
    assert traced(taeda.zeros(2)).tolist() == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = taeda.jit.trace(lambda x: x[[1, 0]] * pow(x.size(0), 3, 5), taeda.ones(2))
    assert traced(taeda.tensor([1.0, 2.0])).tolist() == [6, 3]


def test_what_differs_when_it_runs_again_is_said():
    state = []

    def changes(x):
        state.append(1)
        return x + len(state)

    with (
        pytest.raises(taeda.jit.tracing.TracingCheckError, match="Graphs differed"),
        pytest.warns(taeda.jit.TracerWarning),
    ):
        taeda.jit.trace(changes, taeda.ones(2))


def test_scripts_in_traces_keep_their_control_flow():
    @taeda.jit.script_if_tracing
    def halves(x, n: int):
        for _ in range(n):
            if bool(x.sum() > 10):
                x = x / 2
        return x

    def f(x):
        return halves(x, 3) + 1

    traced = taeda.jit.trace(f, taeda.ones(3))
    for x in (taeda.ones(3), taeda.ones(3) * 100):
        close(f(x), traced(x))


class Halves(nn.Module):
    def forward(self, x):
        for _ in range(x.size(0)):
            if bool(x.sum() > 10):
                x = x / 2
        return x


class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = taeda.jit.script(Halves())

    def forward(self, x):
        return self.inner(x) + 1


def test_scripted_modules_in_traces_keep_their_control_flow():
    model = Holds()
    traced = taeda.jit.trace(model, taeda.ones(3, 2))
    for run in (traced, resaved(traced)):
        for x in (taeda.ones(1, 2), taeda.ones(4, 2) * 100, taeda.ones(2, 2) * 30):
            taeda.testing.assert_close(run(x), model(x), rtol=0, atol=0)
    assert "forward" not in vars(model.inner)  # nobody traces any more
    assert "Holds(" in repr(traced) and "(inner): RecursiveScriptModule(" in repr(traced)
    assert "(0): Linear(original_name=Linear)" in repr(taeda.jit.trace(nn.Sequential(nn.Linear(2, 2)), taeda.ones(2)))


def resaved(traced):
    file = io.BytesIO()
    taeda.jit.save(traced, file)
    file.seek(0)
    return taeda.jit.load(file)


class Tagger(nn.Module):
    def __init__(self, layer, enforce_sorted):
        super().__init__()
        self.enforce_sorted = enforce_sorted
        self.layer = layer(3, 4, num_layers=2, bidirectional=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=self.enforce_sorted)
        output, state = self.layer(packed)
        return *nn.utils.rnn.pad_packed_sequence(output), state


@pytest.mark.parametrize("layer", (nn.LSTM, nn.GRU, nn.RNN))
def test_recurrent_layers_traced_run_over_other_lengths(layer):
    plain = layer(3, 4, batch_first=True)
    traced = taeda.jit.trace(plain, taeda.randn(2, 5, 3))
    for shape in ((2, 5, 3), (3, 2, 3), (1, 8, 3)):
        x = taeda.randn(*shape)
        taeda.testing.assert_close(traced(x), plain(x))
    for enforce_sorted in (True, False):
        model = Tagger(layer, enforce_sorted)
        traced = taeda.jit.trace(model, (taeda.randn(5, 3, 3), taeda.tensor([5, 4, 2])))
        for run in (traced, resaved(traced)):
            for lengths in ([5, 4, 2], [7, 7, 1, 1], [3]):
                x, n = taeda.randn(lengths[0], len(lengths), 3), taeda.tensor(lengths)
                n = n if enforce_sorted else n.flip(0)
                taeda.testing.assert_close(run(x, n), model(x, n))


class Doubled(nn.LSTM):
    def forward(self, x, hx=None):
        output, state = super().forward(x, hx)
        return output * 2, state


def test_what_a_layer_does_beside_its_code_is_recorded():
    hooked = nn.GRU(3, 3)
    hooked.register_forward_hook(lambda module, inputs, output: (output[0] + 1, output[1]))
    hooked.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
    normed = nn.utils.parametrizations.weight_norm(nn.GRU(3, 3), "weight_hh_l0")
    x = taeda.randn(4, 2, 3)
    for layer in (Doubled(3, 3), hooked, normed):
        model = nn.Sequential(layer)
        taeda.testing.assert_close(resaved(taeda.jit.trace(model, x))(x), model(x))


def test_a_script_that_holds_a_trace_is_saved_without_what_the_trace_did_not_run():
    class Chosen(nn.Module):
        def __init__(self, way):
            super().__init__()
            self.way = way

        def forward(self, x):
            if self.way == "a":
                return x + 1
            return self.missing(x)

    class Script(nn.Module):
        def __init__(self):
            super().__init__()
            self.trace = taeda.jit.trace(nn.Sequential(Chosen("a")), taeda.ones(2))

        def forward(self, x):
            return self.trace(x)

    close(taeda.ones(3) + 1, resaved(taeda.jit.script(Script()))(taeda.ones(3)))


def test_containers_and_names():
    def f(pair, table, *, scale):
        return {"sum": pair[0] + pair[1][0], "scaled": table["a"] * scale}

    x = taeda.randn(2)
    kwargs = {"pair": (x, [x * 2]), "table": {"a": x}, "scale": taeda.ones(1) * 3}
    with pytest.raises(RuntimeError, match="strict=False"):
        taeda.jit.trace(f, example_kwarg_inputs=kwargs)
    traced = taeda.jit.trace(f, example_kwarg_inputs=kwargs, strict=False)
    close(f(**kwargs), traced(**kwargs))
    with pytest.raises(RuntimeError, match="cannot be traced"):
        taeda.jit.trace(f, ((x, [x]), {"a": x}, "text"))
    with pytest.raises(RuntimeError, match="can be output"):
        taeda.jit.trace(lambda x: "text", x)


def test_methods_of_a_module_and_its_state():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn = nn.BatchNorm1d(2)
            self.register_buffer("seen", taeda.zeros(()))

        def forward(self, x):
            self.seen.add_(x.sum())
            return self.bn(x)

        def twice(self, x):
            return self.bn(x) * 2

    net, x = Net(), taeda.randn(4, 2)
    before = copy.deepcopy(net)
    traced = taeda.jit.trace_module(net, {"forward": x, "twice": x})
    close(before(x), traced(x))
    close(before.twice(x), traced.twice(x))
    close(before.seen, traced.seen)


AT_OTHER_SIZES = {
    "reshape": lambda x: x.reshape(x.shape[0], -1) * x.shape[1],
    "view": lambda x: x.view(x.size()[0] * x.size(1)),
    "mean": lambda x: x.sum(0) / x.size(0) + x.sum() / x.numel(),
    "slices": lambda x: x[:, : x.size(1) // 2] + x[:, x.shape[1] - 1 :],
    "select": lambda x: x[x.shape[0] - 1] + x[-x.shape[0]],
    "made": lambda x: taeda.cat([x, taeda.zeros(x.shape[0], 2), taeda.ones(x.shape)], 1),
    "arange": lambda x: taeda.arange(x.shape[1]).float() * x + taeda.eye(x.shape[0]).sum(),
    "expand": lambda x: x[None].expand(3, *x.shape).sum((1, 2)),
    "like": lambda x: x.new_ones(2 * x.size(0), x.shape[-1]) @ taeda.full((x.shape[1],), 3.0),
    "pad": lambda x: nn.functional.pad(x, (0, x.shape[1] % 4 + 1)),
    "interpolate": lambda x: nn.functional.interpolate(x[None, None], size=(x.shape[0] * 2, x.shape[1] * 2)),
    "norm": lambda x: nn.functional.layer_norm(x, x.shape[1:]),
    "pool": lambda x: nn.functional.avg_pool2d(x[None, None], (x.shape[0], x.shape[1])),
    "narrow": lambda x: taeda.roll(x.narrow(1, x.shape[1] - 2, 2), x.shape[1] // 2, 1),
    "resized": lambda x: x.clone().unsqueeze_(0).expand(x.shape[0], -1, -1).reshape(x.shape[0], -1) + (10 - x.shape[1]),
    "floats of sizes": lambda x: x * (x.size(0) / 2) + x.size(1) * 0.5 - x.size(0) ** 0.5 + (x.size(1) - 0.5) % 2,
    "powers of sizes": lambda x: x * x.size(0) ** 2 + x.size(1) ** 3,
    "fractions of sizes": lambda x: x * (1 / x.size(0)) ** -0.5 + taeda.full((x.size(0), 1), x.size(0) * 0.25),
    "tensors of tensors": lambda x: x * taeda.tensor(x.sum(), dtype=taeda.float32) + taeda.tensor(x),
}


@pytest.mark.parametrize("name", AT_OTHER_SIZES)
def test_sizes_are_asked_for_at_each_call(name):
    function = AT_OTHER_SIZES[name]
    traced = taeda.jit.trace(function, taeda.arange(8.0).reshape(2, 4))
    file = io.BytesIO()
    taeda.jit.save(traced, file)
    file.seek(0)
    loaded = taeda.jit.load(file)
    for shape in ((2, 4), (3, 6), (5, 4)):
        x = taeda.randn(*shape)
        for run in (traced, loaded):
            taeda.testing.assert_close(run(x), function(x), rtol=0, atol=0)


def test_layers_of_attention_traced_run_at_other_sizes():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(8, 24)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.project(x).view(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
            weights = (q @ k.transpose(-2, -1)).masked_fill(~taeda.ones(t, t).tril().bool(), -float("inf")).softmax(-1)
            return (weights @ v).transpose(1, 2).reshape(b, t, c)

    x, y = taeda.randn(2, 5, 8), taeda.randn(3, 7, 8)
    model = Attention()
    taeda.testing.assert_close(taeda.jit.trace(model, x)(y), model(y))
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    taeda.testing.assert_close(taeda.jit.trace(layer, x)(y), layer(y))
    assert type(y.shape[0]) is int and type(y.numel()) is int  # nobody traces any more


def test_sizes_that_leave_a_trace_are_numbers():
    kept = []

    def function(x):
        kept.append(x.shape[0])
        return x * kept[0]

    taeda.jit.trace(function, taeda.ones(2), check_trace=False)
    assert kept == [2] and type(copy.deepcopy(kept[0])) is int
    later = taeda.jit.trace(lambda x: x * kept[0], taeda.ones(3))
    assert later(taeda.ones(4)).tolist() == [2.0] * 4  # of another trace: the number


def _compiled_modules_in_a_trace(t):
    shown = []

    class Loop(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = t.nn.Parameter(t.full((3,), 0.5))

        def forward(self, xs):
            h = t.zeros(3)
            for i in range(xs.size(0)):
                if xs[i].sum() > 0:
                    h = h + xs[i] * self.weight
            return h, h * 2

    class Outer(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.loop = t.jit.script(Loop())
            self.step = t.jit.trace(t.nn.Linear(3, 3), t.ones(2, 3))

        def forward(self, xs):
            y, _ = self.loop(xs)
            return self.step(y.relu())

    outer = Outer()
    with t.no_grad():
        for p in outer.step.parameters():
            p.fill_(0.25)
    traced = t.jit.trace(outer, t.ones(4, 3))
    buffer = io.BytesIO()
    t.jit.save(traced, buffer)
    buffer.seek(0)
    loaded = t.jit.load(buffer)
    for xs in (t.ones(2, 3), t.tensor([[1.0, 2.0, 3.0], [-1.0, -1.0, -1.0], [1.0, 0.0, 0.0]]), -t.ones(1, 3)):
        for module in (outer, traced, loaded):
            shown.append(module(xs).tolist())
    traced(t.ones(2, 3)).sum().backward()
    shown.append(outer.loop.weight.grad.tolist())
    return shown


def test_compiled_modules_keep_their_control_flow():
    """A script or trace within what is recorded is called, also after saving; its gradients are its own."""
    assert _compiled_modules_in_a_trace(taeda) == _compiled_modules_in_a_trace(torch)


REFLECTED = {
    "1.0 / x": lambda x, F: 1.0 / x, "1 / x": lambda x, F: 1 / x, "2.0 ** x": lambda x, F: 2.0**x,
    "2 ** x": lambda x, F: 2**x, "3 - x": lambda x, F: 3 - x, "7 // x": lambda x, F: 7 // x, "5 % x": lambda x, F: 5 % x,
    "1 << x": lambda x, F: 1 << x.long(), "64 >> x": lambda x, F: 64 >> x.long(), "3 & x": lambda x, F: 3 & x.long(),
    "1.5 < x": lambda x, F: x > 1.5,
    "bicubic": lambda x, F: F.interpolate(x[None, None], scale_factor=(2, 1.5), mode="bicubic"),
    "trilinear": lambda x, F: F.interpolate(x[None, None, None], scale_factor=2, mode="trilinear"),
    "nearest": lambda x, F: F.interpolate(x[None], scale_factor=2), "size": lambda x, F: F.interpolate(x[None], size=5),
    "gaussian": lambda x, F: F.gaussian_nll_loss(x, x * 2, x),
    "multilabel": lambda x, F: F.multilabel_soft_margin_loss(x, x.sign()),
}  # fmt: skip


@pytest.mark.parametrize("name", REFLECTED)
def test_traces_with_numbers_on_the_left_and_optional_arguments_are_saved(name):
    function, values = REFLECTED[name], [[1.5, 2.25, 0.75, 3.5], [0.5, 4.0, 1.25, 2.0], [3.0, 0.6, 2.5, 1.0]]
    traced = taeda.jit.trace(lambda x: function(x, nn.functional), taeda.tensor(values))
    buffer = io.BytesIO()
    taeda.jit.save(traced, buffer)
    other = [[v * 1.3 + 0.11 for v in row] for row in values]
    want = function(torch.tensor(other), torch.nn.functional)
    for lib in (taeda, torch):
        got = lib.jit.load(io.BytesIO(buffer.getvalue()))(lib.tensor(other))
        assert str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2]
        torch.testing.assert_close(torch.tensor(got.tolist(), dtype=want.dtype), want)


MADE = {
    "detach": lambda x: x.detach() * 2,
    "detach of a result": lambda x: (x * 3).detach() + x,
    "data": lambda x: x.data * 2 + x,
    "straight through": lambda x: x + (x.round() - x).detach(),
    "zeros": lambda x: taeda.zeros(3).add_(x),
    "zeros by index": lambda x: _with(taeda.zeros(2, 3, requires_grad=False), 0, x.detach()),
    "ones by a view": lambda x: _with(taeda.ones(3, dtype=x.dtype), slice(1, None), x[1:]),
    "empty": lambda x: taeda.empty(3, device=x.device).fill_(x[0]),
    "full": lambda x: taeda.full((3,), 2.0).mul_(x),
    "arange": lambda x: taeda.arange(3.0).sub_(x),
    "eye": lambda x: taeda.eye(3).mul_(x),
    "linspace": lambda x: taeda.linspace(0, 1, 3).lerp_(x, 0.5),
    "scatter": lambda x: taeda.zeros(3).scatter_(0, taeda.tensor([2, 1, 0]), x),
    "out": lambda x: taeda.add(x, x, out=taeda.empty(3)),
    "foreach": lambda x: _added([taeda.zeros(3)], x),
}


def _with(t, key, value):
    t[key] = value
    return t


def _added(tensors, x):
    taeda._foreach_add_(tensors, [x])
    return tensors[0]


@pytest.mark.parametrize("name", MADE)
def test_what_a_program_makes_is_made_in_each_run(name):
    function, x = MADE[name], taeda.tensor([1.25, 2.5, 3.75])
    traced, file = taeda.jit.trace(function, (x.clone(),), check_trace=False), io.BytesIO()
    traced.save(file)
    loaded = taeda.jit.load(io.BytesIO(file.getvalue()))
    for y in (x * 2, x, x * 2):
        assert traced(y.clone()).tolist() == loaded(y.clone()).tolist() == function(y.clone()).tolist()


def test_a_detached_buffer_is_read_in_each_run():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", taeda.zeros(2))

        def forward(self, x):
            self.total.add_(x.sum().detach())
            return self.total.detach() * x

    traced = taeda.jit.trace(Module(), (taeda.ones(2),), check_trace=False)
    first = traced(taeda.ones(2)).tolist()
    assert traced(taeda.ones(2) * 3).tolist() == [3 * (f + 6) for f in first]


LOSS = (taeda.randn(6, 2, 4).log_softmax(2), taeda.tensor([[1, 2], [2, 3]]), taeda.tensor([6, 6]), taeda.tensor([2, 2]))
WITH_INDICES = {
    **{f"pool {n}": (getattr(nn, f"MaxPool{n}d")(2, return_indices=True), (2, 3, *[5] * n)) for n in (1, 2, 3)},
    **{f"to {n}": (getattr(nn, f"AdaptiveMaxPool{n}d")(2, return_indices=True), (2, 3, *[5] * n)) for n in (1, 2, 3)},
    "function": (lambda x: nn.functional.max_pool2d(x, 2, 1, return_indices=True), (2, 3, 5, 5)),
    **{
        f"unpool {n}": (
            lambda x, n=n: getattr(nn.functional, f"max_unpool{n}d")(
                *getattr(nn.functional, f"max_pool{n}d")(x, 2, return_indices=True), 2
            ),
            (2, 3, *[4] * n),
        )
        for n in (1, 2, 3)
    },
    "GRU cell": (nn.GRUCell(3, 4), (2, 3)),
    "LSTM cell": (nn.LSTMCell(3, 4), (2, 3)),
}


@pytest.mark.parametrize("name", WITH_INDICES)
def test_several_results_are_traced_and_saved(name):
    function, shape = WITH_INDICES[name]
    x, file = taeda.randn(*shape), io.BytesIO()
    taeda.jit.save(taeda.jit.trace(function, x), file)
    file.seek(0)
    loaded, again = taeda.jit.load(file), taeda.randn(*shape)
    want, got = function(again), loaded(again)
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (want, got)], strict=True):
        assert taeda.allclose(a, b, atol=1e-6) and a.dtype == b.dtype


def test_scripts_ask_for_indices():
    def both(x):
        y, indices = nn.functional.max_pool2d(x, 2, return_indices=True)
        return nn.functional.max_unpool2d(y, indices, [2]), nn.functional.max_pool2d(x, 2, return_indices=False)

    x = taeda.randn(1, 2, 4, 4)
    assert all(map(taeda.equal, taeda.jit.script(both)(x), both(x)))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_is_traced_and_saved(reduction):
    loss, file = nn.CTCLoss(reduction=reduction, zero_infinity=True), io.BytesIO()
    taeda.jit.save(taeda.jit.trace(loss, LOSS), file)
    file.seek(0)
    assert taeda.allclose(taeda.jit.load(file)(*LOSS), loss(*LOSS))


def test_an_error_of_the_front_end_is_not_taken_for_a_refusal(monkeypatch):
    from taeda.jit.python import SourceFrontend

    def broken(self, *args):
        raise TypeError("a bug")

    monkeypatch.setattr(SourceFrontend, "apply", broken)
    with pytest.raises(TypeError, match="a bug"):
        taeda.jit.trace(lambda x: taeda.relu(x), taeda.ones(2))


class NestedResult(nn.Module):
    def forward(self, x) -> dict[str, tuple[taeda.Tensor, list[taeda.Tensor]]]:
        return {"a": (x, [x + 1])}


def test_what_a_script_gives_in_containers_is_no_constant():
    script = taeda.jit.script(NestedResult())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.script = script

        def forward(self, x):
            first, rest = self.script(x)["a"]
            return first + rest[0]

    assert taeda.jit.trace(Net(), taeda.ones(1))(taeda.full((2,), 3.0)).tolist() == [7.0, 7.0]


def test_numbers_of_sizes_are_results():
    traced = taeda.jit.trace(lambda x: (x.numel(), x.shape[0] * 2), taeda.ones(2, 3))
    assert [n.tolist() for n in traced(taeda.ones(4, 5))] == [20, 8]


def test_a_list_of_several_types_is_no_input():
    with pytest.raises(RuntimeError, match="one type"):
        taeda.jit.trace(lambda x: x[0], ([taeda.ones(1), (taeda.ones(1), taeda.ones(1))],))
