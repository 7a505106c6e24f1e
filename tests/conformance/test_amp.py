"""Mixed precision in both frameworks: the dtypes of results under autocast, and the loss scaler."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

from .opdb.checks import entries, pick, tensors  # noqa: E402
from .opdb.samples import is_plain  # noqa: E402
from .opdb.translate import translate  # noqa: E402
from .trees import mapped  # noqa: E402


def dtypes(fn):
    """The dtypes of what ``fn(framework)`` gives in each framework."""
    return [[str(x.dtype).split(".")[-1] for x in _flat(fn(t))] for t in (torch, taeda)]


def _f(t):
    return t.nn.functional


def _flat(out):
    """The tensors of a result."""
    return [x for part in out for x in _flat(part)] if isinstance(out, (tuple, list)) else [out]


CALLS = {
    "matmul": lambda t: t.ones(2, 2) @ t.ones(2, 2),
    "linear": lambda t: t.nn.Linear(2, 2)(t.ones(1, 2)),
    "conv": lambda t: t.nn.Conv2d(1, 1, 1)(t.ones(1, 1, 2, 2)),
    "conv transposed": lambda t: t.nn.ConvTranspose1d(1, 1, 1)(t.ones(1, 1, 2)),
    "einsum": lambda t: t.einsum("ij,jk->ik", t.ones(2, 2), t.ones(2, 2)),
    "bmm": lambda t: t.bmm(t.ones(1, 2, 2), t.ones(1, 2, 2)),
    "addmm": lambda t: t.addmm(t.ones(2), t.ones(2, 2), t.ones(2, 2)),
    "attention": lambda t: _f(t).scaled_dot_product_attention(*[t.ones(1, 1, 2, 4)] * 3),
    "double": lambda t: t.ones(2, 2, dtype=t.float64) @ t.ones(2, 2, dtype=t.float64),
    "bilinear": lambda t: t.nn.Bilinear(2, 2, 3)(t.ones(1, 2), t.ones(1, 2)),
    "bilinear of half": lambda t: _f(t).bilinear(*[t.ones(*n, dtype=t.bfloat16) for n in ((1, 2), (1, 2), (3, 2, 2))]),
    "exp of half": lambda t: t.exp(t.ones(2, dtype=t.bfloat16)),
    "softmax of half": lambda t: t.softmax(t.ones(2, dtype=t.bfloat16), 0),
    "sum of half": lambda t: t.ones(2, dtype=t.bfloat16).sum(),
    "mse": lambda t: _f(t).mse_loss(t.ones(2, dtype=t.bfloat16), t.ones(2, dtype=t.bfloat16)),
    "cross entropy": lambda t: _f(t).cross_entropy(t.ones(2, 3, dtype=t.bfloat16), t.tensor([0, 1])),
    "l1": lambda t: _f(t).l1_loss(t.ones(2, dtype=t.bfloat16), t.ones(2)),
    "prod": lambda t: t.prod(t.ones(2, dtype=t.bfloat16)),
    "cat": lambda t: t.cat([t.ones(2, dtype=t.bfloat16), t.ones(2)]),
    "stack": lambda t: t.stack([t.ones(2), t.ones(2, dtype=t.bfloat16)]),
    "layer norm": lambda t: t.nn.LayerNorm(2)(t.ones(1, 2, dtype=t.bfloat16)),
    "batch norm": lambda t: t.nn.BatchNorm1d(2)(t.rand(4, 2).to(t.bfloat16)),
    "gelu of a product": lambda t: _f(t).gelu(t.ones(2, 2) @ t.ones(2, 2)),
    "response norm of half": lambda t: [
        _f(t).local_response_norm(t.ones(1, 2, *(3,) * n, dtype=t.bfloat16), 2) for n in (1, 2, 3)
    ],
    "add": lambda t: t.ones(2, dtype=t.bfloat16) + t.ones(2),
    "integers": lambda t: t.ones(2, dtype=t.int64) + 1,
    "LSTM": lambda t: t.nn.LSTM(2, 3, 2, bidirectional=True)(t.ones(4, 1, 2)),
    "LSTM with a state": lambda t: t.nn.LSTM(2, 3)(t.ones(4, 1, 2), (t.ones(1, 1, 3), t.ones(1, 1, 3))),
    "LSTM of half": lambda t: t.nn.LSTM(2, 3)(t.ones(4, 1, 2, dtype=t.bfloat16)),
    "LSTM with projections": lambda t: t.nn.LSTM(2, 3, proj_size=2)(t.ones(4, 1, 2)),
    "LSTM of a packed sequence": lambda t: _packed(t, t.nn.LSTM(2, 3)),
    "GRU of a packed sequence": lambda t: _packed(t, t.nn.GRU(2, 3)),
    "RNN of a packed sequence": lambda t: _packed(t, t.nn.RNN(2, 3)),
    "attention with a mask": lambda t: t.nn.MultiheadAttention(4, 2)(*[t.ones(2, 1, 4)] * 3, attn_mask=t.zeros(2, 2)),
    "padded": lambda t: [
        t.nn.functional.pad(t.ones((2, *[4] * n), dtype=t.bfloat16), (1, 1) * (n - 1), mode)
        for n in (2, 3, 4)
        for mode in ("reflect", "replicate", "circular")
    ],
    "means of areas": lambda t: [
        t.nn.functional.interpolate(t.ones((1, 2, *[4] * n), dtype=t.bfloat16), scale_factor=0.5, mode="area")
        for n in (1, 2, 3)
    ],
    "GRU": lambda t: t.nn.GRU(2, 3)(t.ones(4, 1, 2)),
    "RNN": lambda t: t.nn.RNN(2, 3)(t.ones(4, 1, 2), t.ones(1, 1, 3)),
    "LSTMCell": lambda t: t.nn.LSTMCell(2, 3)(t.ones(1, 2)),
    "GRUCell": lambda t: t.nn.GRUCell(2, 3)(t.ones(1, 2)),
    "RNNCell": lambda t: t.nn.RNNCell(2, 3)(t.ones(1, 2)),
}


def _packed(t, layer):
    y, state = layer(t.nn.utils.rnn.pack_padded_sequence(t.ones(4, 2, 2), [4, 3]))
    return y.data, state


@pytest.mark.parametrize("name", CALLS)
def test_dtypes_on_the_cpu(name):
    def within(t):
        with t.autocast("cpu", dtype=t.bfloat16):
            return CALLS[name](t)

    try:
        want, got = dtypes(within)
    except RuntimeError as error:  # PyTorch's own: oneDNN has its layers of bfloat16 on some processors only
        if "primitive descriptor" in str(error):
            pytest.skip(str(error)[:80])
        raise
    assert got == want


FLOATING = sorted(name for name, op in entries().items() if torch.float32 in op.supported_dtypes("cpu"))
#: A product of factors that PyTorch makes in the half precision; a determinant that it has of empty matrices alone.
OTHERWISE = ("linalg.pinv", "linalg.pinv.hermitian", "linalg.det")


def _of_dtype(thing, dtype):
    """``thing`` with floating-point tensors in another dtype."""
    return mapped(lambda x: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x, thing)


def _within_autocast(t, function, args, kwargs):
    with t.autocast("cpu", dtype=t.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [str(x.dtype).split(".")[-1] for x in tensors(function(*args, **kwargs))]


@pytest.mark.parametrize("name", [name for name in FLOATING if name not in OTHERWISE])
def test_every_entry_of_the_operator_database(name):
    op = entries()[name]
    for sample in filter(is_plain, pick(op.sample_inputs("cpu", torch.float32), 1)):
        for dtype in (torch.float32, torch.bfloat16):
            args, kwargs = _of_dtype((sample.input, *sample.args), dtype), _of_dtype(sample.kwargs, dtype)
            try:
                want = _within_autocast(torch, op.op, args, kwargs)
            except (RuntimeError, NotImplementedError):  # not of this dtype
                continue
            assert _within_autocast(taeda, translate(op.op), translate(list(args)), translate(kwargs)) == want, dtype


def test_calls_that_name_out_are_left_as_they_are():
    def fn(t):
        a, out = t.rand(2, 2), t.zeros(2, 2)
        with t.autocast("cpu"):
            t.mm(a, a, out=out)
        return out.dtype == t.float32 and bool((out == a @ a).all())

    assert fn(taeda) and fn(torch)


def test_nesting_state_and_decorator():
    def fn(t):
        made = [t.is_autocast_enabled("cpu")]
        with t.autocast("cpu"):
            made += [t.is_autocast_enabled("cpu"), str(t.get_autocast_dtype("cpu")).split(".")[1]]
            with t.autocast("cpu", enabled=False):
                made += [t.is_autocast_enabled("cpu"), str((t.ones(1, 1) @ t.ones(1, 1)).dtype).split(".")[1]]
            with t.autocast("cpu", dtype=t.float16):
                made.append(str((t.ones(1, 1) @ t.ones(1, 1)).dtype).split(".")[1])
            made.append(str((t.ones(1, 1) @ t.ones(1, 1)).dtype).split(".")[1])
        made.append(t.is_autocast_enabled("cpu"))
        decorated = t.autocast("cpu")(lambda: t.ones(1, 1) @ t.ones(1, 1))
        return [*made, str(decorated().dtype).split(".")[1]]

    assert fn(taeda) == fn(torch)


def test_gradients_meet_in_float32():
    def fn(t):
        t.manual_seed(0)
        layer = t.nn.Linear(4, 4)
        with t.autocast("cpu", dtype=t.bfloat16):
            out = layer(layer(t.ones(2, 4)))
        out.float().sum().backward()
        return layer.weight.grad

    want, got = fn(torch), fn(taeda)
    assert str(got.dtype) == "taeda.float32"
    torch.testing.assert_close(torch.from_dlpack(got), want, rtol=2e-2, atol=2e-2)


def test_gradients_have_the_dtype_of_their_tensors():
    """Derivatives that run within autocast may compute in another."""

    def fn(t):
        x, w = t.ones(2, 3, requires_grad=True), t.ones(3, 3, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append(g))
        before = [
            x @ w,
            t.nn.functional.linear(x, w),
            t.einsum("ij,jk->ik", x, w),
            t.nn.functional.bilinear(x, x, w[None]),
        ]
        with t.autocast("cpu", dtype=t.bfloat16):
            within = [t.nn.functional.bilinear(x, x, w[None]), t.chain_matmul(x, w, w), x @ w]
            return [t.autograd.grad(y.sum(), (x, w), retain_graph=True) for y in before + within], seen

    want, got = dtypes(fn)
    assert got == want


def test_custom_functions():
    def fn(t):
        class Product(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu")
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a.mm(b)

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g.mm(b.t()), a.t().mm(g)

        class Exact(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu", cast_inputs=t.float32)
            def forward(ctx, a):
                return a.mm(a)

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                return g

        a = t.ones(2, 2, requires_grad=True)
        with t.autocast("cpu"):
            out = Product.apply(a, t.ones(2, 2))
            exact = Exact.apply(t.ones(2, 2, dtype=t.bfloat16))
        out.float().sum().backward()
        return [str(x.dtype).split(".")[1] for x in (out, exact, a.grad)], a.grad.tolist()

    assert fn(taeda) == fn(torch)


def test_the_scaler_step_by_step():
    def fn(t):
        p = t.nn.Parameter(t.ones(2))
        optimizer = t.optim.SGD([p], lr=0.1)
        scaler = t.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        seen = []
        for factor in (1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.unscale_(optimizer)
            t.nn.utils.clip_grad_norm_([p], 10.0)
            scaler.step(optimizer)
            scaler.update()
            seen.append((scaler.get_scale(), round(p[0].item(), 5)))
        state = scaler.state_dict()
        other = t.amp.GradScaler("cpu")
        other.load_state_dict(state)
        return seen, state, other.state_dict()

    assert fn(taeda) == fn(torch)


def test_misuse_of_the_scaler():
    def fn(t):
        errors = []

        def attempt(action):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    action()
                except Exception as error:
                    errors.append(type(error).__name__)

        p = t.nn.Parameter(t.ones(1))
        optimizer = t.optim.SGD([p], lr=0.1)
        scaler = t.amp.GradScaler("cpu")
        attempt(lambda: scaler.step(optimizer))
        attempt(scaler.update)
        scaler.scale(p.sum()).backward()
        scaler.unscale_(optimizer)
        attempt(lambda: scaler.unscale_(optimizer))
        scaler.step(optimizer)
        attempt(lambda: scaler.step(optimizer))
        attempt(lambda: scaler.step(optimizer, closure=lambda: None))
        attempt(lambda: t.amp.GradScaler("cpu").load_state_dict({}))
        return errors

    got, want = fn(taeda), fn(torch)
    assert got == want


def test_older_names_on_the_cpu():
    from taeda.cpu import amp

    x = taeda.ones(2, 2)
    with amp.autocast():
        assert (x @ x).dtype is taeda.bfloat16
    assert not amp.GradScaler(enabled=False).is_enabled()


@pytest.mark.parametrize("wrong", [{"growth_factor": 1.0}, {"backoff_factor": 1.0}])
def test_factors_of_the_scale_that_do_not_fit(wrong):
    for t in (torch, taeda):
        with pytest.raises(AssertionError, match="factor must be"):
            t.amp.GradScaler("cpu", **wrong)


def test_full_tensordot_stays_in_the_dtype_of_its_operands():
    for t in (taeda, torch):
        a = t.ones(2, 3)
        with t.autocast("cpu", dtype=t.bfloat16):
            assert t.tensordot(a, a, 2).dtype is t.tensordot(a[0], a[0], 1).dtype is t.float32
            assert t.tensordot(a, a.t(), 1).dtype is t.bfloat16
            with pytest.raises(RuntimeError, match="same dtype"):
                t.tensordot(a.bfloat16(), a, 2)


@pytest.mark.parametrize("kind", "cpu cuda hpu ipu maia mps mtia xla xpu".split())
def test_the_half_precision_of_devices_that_are_not_there(kind):
    assert str(taeda.get_autocast_dtype(kind)) == str(torch.get_autocast_dtype(kind)).replace("torch", "taeda")
    for t in (torch, taeda):
        with t.autocast(kind, enabled=False):
            assert not t.is_autocast_enabled(kind)


def test_dtype_and_switch_set_in_an_open_block():
    def made(t):
        def product():
            return t.ones(2, 2) @ t.ones(2, 2)

        with t.autocast("cpu"):
            before = product()
            t.set_autocast_dtype("cpu", t.float16)
            lower = product()
            t.set_autocast_enabled("cpu", False)
            off = product()
        after = product()
        t.set_autocast_enabled("cpu", True)
        t.set_autocast_dtype("cpu", t.float16)
        on = product()
        t.set_autocast_enabled("cpu", False)
        t.set_autocast_dtype("cpu", t.bfloat16)
        return before, lower, off, after, on, product()

    expected, got = dtypes(made)
    assert got == expected == ["bfloat16", "float16", "float32", "float32", "float16", "float32"]


@pytest.mark.parametrize("t", [torch, taeda])
def test_a_block_sets_whether_converted_parameters_are_kept(t):
    with t.autocast("cpu", cache_enabled=False):
        assert not t.is_autocast_cache_enabled()
        with t.autocast("cpu"):
            assert not t.is_autocast_cache_enabled()
        with t.autocast("cpu", cache_enabled=True):
            assert t.is_autocast_cache_enabled()
    assert t.is_autocast_cache_enabled()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.set_autocast_cpu_dtype(1), lambda t: t.set_autocast_gpu_dtype("float16"),
        lambda t: t.set_autocast_dtype("nope", t.float16), lambda t: t.set_autocast_dtype("cpu", None),
        lambda t: t.set_autocast_dtype(1, t.float16), lambda t: t.set_autocast_enabled("nope", True),
        lambda t: t.set_autocast_enabled("meta", True), lambda t: t.set_autocast_enabled("cpu", 1),
        lambda t: t.set_autocast_enabled("a"), lambda t: t.set_autocast_cpu_enabled(1),
        lambda t: t.set_autocast_cache_enabled(None), lambda t: t.is_autocast_enabled("nope"),
        lambda t: t.is_autocast_enabled("meta"), lambda t: t.get_autocast_dtype("nope"), lambda t: t.autocast("meta"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit(call):
    for t in (taeda, torch):
        with pytest.raises((TypeError, RuntimeError)):
            call(t)


def test_scripts_ask_whether_it_is_on():
    def f(x):
        if taeda.is_autocast_cpu_enabled():
            return x + 1
        return x

    script = taeda.jit.script(f)
    with taeda.autocast("cpu"):
        assert script(taeda.ones(1)).item() == 2
    assert script(taeda.ones(1)).item() == 1
