"""``TorchDispatchMode`` against PyTorch's: programs that log, count, check and change what runs."""

import contextlib
import copy
import importlib
import itertools
import pickle
import subprocess
import sys
from math import prod
from typing import ClassVar

import pytest

import taeda
from taeda.ops import aten as our_aten
from taeda.utils.flop_counter import FlopCounterMode
from tests.agree import close

torch = pytest.importorskip("torch")

from .opdb.checks import entries, seeded, tensors  # noqa: E402
from .opdb.translate import Missing, translate  # noqa: E402


def dispatch(f):
    return importlib.import_module(f"{f.__name__}.utils._python_dispatch")


def log_of(f):
    class Log(dispatch(f).TorchDispatchMode):
        def __init__(self):
            self.ops = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.ops.append(str(func))
            return func(*args, **(kwargs or {}))

    return Log()


PROGRAMS = {
    "product": lambda f: f.randn(3, 4).mm(f.randn(4, 5)).relu() + 1,
    "matmul": lambda f: f.ones(3, 4) @ f.ones(4),
    "numbers": lambda f: [f.ones(2).mul_(3).pow(2).mean(), f.ones(1) > 2, f.ones(2) / 2, f.ones(2) == f.zeros(2)],
    "reductions": lambda f: [f.ones(2, 2).sum(1), f.ones(2, 2).sum(), f.zeros(2, 3).mean(0), f.ones(2).any()],
    "linear": lambda f: f.nn.functional.linear(f.zeros(2, 3), f.zeros(3, 3), f.zeros(3)),
    "signatures": lambda f: [
        f.ones(2).sort(stable=True),
        f.ones(3).split([1, 2]),
        f.ones(2, 2).prod(1),
        f.ones(2, 2).all(0),
    ],
    "slices": lambda f: [f.ones(4).narrow(0, 1, 2), f.ones(4)[1:3], f.ones(4).hsplit(2), f.ones(4).tensor_split(3)],
    "pointwise": lambda f: [f.rand(2).exp(), f.ones(2).log_(), f.full((2,), 0.5).sigmoid(), f.arange(4).eq(2)],
}


WHOLE = {
    "layer_norm": lambda f, F, x: F.layer_norm(x, (4,), x[0], x[1]),
    "batch_norm": lambda f, F, x: F.batch_norm(x, f.zeros(4), f.ones(4)),
    "batch_norm_trained": lambda f, F, x: F.group_norm(x.view(2, 4, 2), 2),
    "dropout": lambda f, F, x: F.dropout(x, 0.25) * 0,
    "cross_entropy": lambda f, F, x: F.cross_entropy(x, f.tensor([0, 1, 3, 2])),
    "cross_entropy_weighted": lambda f, F, x: F.cross_entropy(x, f.tensor([0, 1, 3, 2]), x[0].exp(), reduction="sum"),
    "cross_entropy_of_images": lambda f, F, x: F.cross_entropy(x.view(2, 2, 2, 2), f.zeros(2, 2, 2).long()),
    "nll_loss": lambda f, F, x: F.nll_loss(x, f.tensor([0, 1, -100, 2]), reduction="none"),
    "mse_loss": lambda f, F, x: [F.mse_loss(x, x * 2), F.mse_loss(x, x + 1, reduction="sum")],
    "huber_loss": lambda f, F, x: [F.huber_loss(x, x * 2), F.huber_loss(x, x * 2, delta=0.5)],
    "smooth_l1_loss": lambda f, F, x: [F.smooth_l1_loss(x, x * 2), F.smooth_l1_loss(x, x * 2, beta=0.5)],
    "binary_cross_entropy": lambda f, F, x: F.binary_cross_entropy(x.sigmoid(), x.sigmoid(), x.exp(), reduction="sum"),
    "with_logits": lambda f, F, x: F.binary_cross_entropy_with_logits(x, x.sigmoid(), pos_weight=x[0].exp()),
    "soft_margin_loss": lambda f, F, x: F.soft_margin_loss(x, x.sign()),
    "max_pool2d": lambda f, F, x: F.max_pool2d(x[None, None], 2),
    "max_pool2d_padded": lambda f, F, x: F.max_pool2d(x[None, None], 3, 2, 1, return_indices=True),
    "avg_pool2d": lambda f, F, x: F.avg_pool2d(x[None, None], 3, 2, 1, count_include_pad=False),
    "adaptive": lambda f, F, x: [F.adaptive_avg_pool2d(x[None, None], 2), F.adaptive_max_pool2d(x[None, None], 3)],
    "nearest": lambda f, F, x: [F.interpolate(x[None], scale_factor=2), F.interpolate(x[None, None], 3)],
    "bilinear": lambda f, F, x: F.interpolate(x[None, None], scale_factor=(1.5, 2), mode="bilinear"),
    "bicubic": lambda f, F, x: F.interpolate(x[None, None], (7, 5), mode="bicubic", align_corners=True),
    "grid_sample": lambda f, F, x: F.grid_sample(x[None, None], x.view(1, 2, 4, 2), "nearest", "border"),
    "pads": lambda f, F, x: [F.pad(x[None], (1, 2), "reflect"), F.pad(x[None, None], (1, 1, 2, 0), "replicate")],
    "attention": lambda f, F, x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "attention_causal": lambda f, F, x: F.scaled_dot_product_attention(*[x[None, None]] * 3, is_causal=True),
    "attention_masked": lambda f, F, x: F.scaled_dot_product_attention(*[x[None, None]] * 3, attn_mask=x, scale=0.3),
    "transposed": lambda f, F, x: F.conv_transpose2d(x[None, None], x.view(1, 1, 4, 4), stride=2, output_padding=1),
    "products": lambda f, F, x: [x.view(2, 2, 4) @ x, x.view(1, 2, 2, 4) @ x.view(1, 2, 4, 2)],
    "activations": lambda f, F, x: [F.relu6(x), F.glu(x), F.glu(x, 0)],
    "shapes": lambda f, F, x: [x.chunk(2), x.chunk(3, 1), F.pixel_shuffle(x.view(1, 4, 2, 2), 2)],
    "numbers": lambda f, F, x: [x.sum().item(), bool(x[0, 0] > 9), float(x[1, 1]), 1 / x, x // 2],
    "comparisons": lambda f, F, x: [x.equal(x), x.allclose(x)],
    "reductions": lambda f, F, x: [x.norm(), x.norm(dim=0), x.logsumexp(1), x.logsumexp((0, 1), True), x.median()],
    "factories": lambda f, F, x: [f.empty(0) * 0, f.arange(3), f.arange(1, 3), f.arange(1, 5, 2), x.clone().normal_() * 0],
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_functions_and_their_ops(name):
    seen, results = [], []
    for f in (torch, taeda):
        x = f.arange(16.0).sub(7).div(4).view(4, 4)
        with log_of(f) as log, f.no_grad():
            result = WHOLE[name](f, f.nn.functional, x)
        views = ("aten.detach.default", "aten.lift_fresh.default")  # PyTorch shows some that cost nothing
        seen.append([op for op in log.ops if op not in views])
        results.append(result)
    assert seen[1] == [op for op in seen[0] if not ("batch_norm" in name and op == "aten.empty.memory_format")]
    close(results[1], results[0])


#: Ops under these entries of the database that PyTorch's library has not, or not for these arguments.
OWN = {
    "_attention", "_attention_dropout", "_divergence", "_histogramdd", "_max_pool", "_pinv", "_positions", "close_to",
    "edge_pad", "fft_r2c", "resample",
}  # fmt: skip


def _name_in(f, label):
    space, name, overload = label.split(".")
    return hasattr(getattr(getattr(f.ops, space), name, None), overload)


def test_the_database_within_a_mode():
    """Values are as without it, ops have PyTorch's names, and most entries call what PyTorch calls for them."""
    unknown, others, calls = set(), set(), 0
    for name, op in entries().items():
        dtype = torch.float32 if torch.float32 in op.dtypes else torch.int64
        try:
            function, samples = translate(op.op), list(itertools.islice(op.sample_inputs("cpu", dtype), 2))
        except (Missing, RuntimeError, NotImplementedError):
            continue
        for sample in samples:
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            memo: dict = {}
            ours = translate(args, memo), translate(dict(kwargs), memo)
            plain = copy.deepcopy(ours)
            seen = []
            with log_of(torch) as log:
                _, error = seeded(op.op, *args, **kwargs)
            if error is not None:
                continue
            seen.append(log.ops)
            want, error = seeded(function, *plain[0], **plain[1])
            if error is not None:
                continue
            with log_of(taeda) as log:
                got, error = seeded(function, *ours[0], **ours[1])
            assert error is None, (name, error)
            seen.append(log.ops)
            calls += 1
            unknown |= {label.split(".")[1] for label in log.ops if not _name_in(torch, label)}
            others |= {name} if seen[0] != seen[1] else set()
            if "empty" not in name and "dropout" not in name and not op.name.startswith("resize"):
                for a, b in zip(tensors(got), tensors(want), strict=True):
                    assert a.shape == b.shape and a.dtype == b.dtype, name
                    assert a.is_sparse or taeda.allclose(a, b, 1e-4, 1e-5, equal_nan=True), name
    assert calls >= 1300 and unknown <= OWN
    assert len(others) <= 160


CONVERTED = {
    "prelu": lambda f, F, x: F.prelu(x, f.ones(1)), "vecdot": lambda f, F, x: f.linalg.vecdot(x, x),
    "linear": lambda f, F, x: F.linear(x, x), "bilinear": lambda f, F, x: F.bilinear(x, x, f.ones(2, 4, 4)),
    "attention": lambda f, F, x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "loss": lambda f, F, x: F.cross_entropy(x @ x, f.tensor([0, 1, 2, 3])), "relu": lambda f, F, x: F.relu(x @ x),
}  # fmt: skip


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("name", CONVERTED)
def test_functions_are_converted_within_autocast(name, outer):
    """Those that it converts as a whole too, whichever of the two modes is the outer one."""
    found = []
    for f in (torch, taeda):
        modes = [log_of(f), f.autocast("cpu", dtype=f.bfloat16)]
        with modes[not outer], modes[outer]:
            found.append(str(CONVERTED[name](f, f.nn.functional, f.ones(4, 4)).dtype).partition(".")[2])
    assert found[0] == found[1]


@pytest.mark.parametrize("function", [taeda.relu, taeda.nn.functional.relu, taeda.trace, lambda x: x @ x.mT])
def test_vmap_within_a_mode_and_around_it(function):
    x = taeda.arange(24.0).view(2, 3, 4)

    def within(x):
        with log_of(taeda):
            return function(x)

    with log_of(taeda) as log:
        close(taeda.vmap(function)(x), taeda.vmap(within)(x))
    assert log.ops


def test_modes_beside_a_counter_of_flops():
    a, b, flops = log_of(taeda), log_of(taeda), FlopCounterMode(display=False)
    x = taeda.ones(2, 3)
    for modes in itertools.permutations((a, b, flops)):
        a.ops, b.ops = [], []
        with modes[0], modes[1], modes[2]:
            taeda.nn.functional.linear(x, x).relu()
        assert a.ops == b.ops == ["aten.t.default", "aten.mm.default", "aten.relu.default"], modes
        assert flops.get_total_flops() == 24


def test_functions_within_a_mode_stay_on_device_meta():
    x = taeda.ones(1, 3, 4, 4, device="meta")
    with log_of(taeda):
        made = [taeda.nn.functional.dropout2d(x), taeda.linalg.matrix_power(x, 0), x.quantile(0.5)]
    assert all(y.is_meta for y in made)
    with log_of(taeda), pytest.raises(NotImplementedError, match="no data"):
        x.to("cpu")


def test_empty_products_within_a_mode():
    x, y = taeda.ones(2, 0, 3, requires_grad=True), taeda.ones(2, 3, 0, requires_grad=True)
    with log_of(taeda):
        ((x @ y).sum() + (y @ x).sum() + (x.mT @ taeda.ones(0, 4)).sum()).backward()
    assert (x.grad.shape, y.grad.shape) == (x.shape, y.shape)


def test_convolutions_are_seen_in_a_new_process():
    """The native op is found before anything else has asked for one."""
    code = (
        "import taeda; from taeda.utils._python_dispatch import TorchDispatchMode as Mode\n"
        "class Seen(Mode):\n"
        "    def __torch_dispatch__(self, f, types, args=(), kwargs=None):\n"
        "        print(f)\n"
        "        return f(*args, **kwargs or {})\n"
        "with Seen(): taeda.nn.functional.conv2d(x := taeda.ones(1, 1, 2, 2), x)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-1] == "aten.convolution.default"


PASSES = {
    "convolution": lambda f, F, x: F.conv2d(x[None, None], x.view(1, 1, 4, 4), padding=1),
    "transposed": lambda f, F, x: F.conv_transpose2d(x[None, None], x.view(1, 1, 4, 4), stride=2, output_padding=1).pow(
        2
    ),
    "transposed_dilated": lambda f, F, x: F.conv_transpose1d(
        x[None], x.view(4, 2, 2), dilation=3, output_padding=2, groups=2
    ).pow(2),
    "index": lambda f, F, x: F.softmax(x, -1)[0, 0],
    "cross_entropy": lambda f, F, x: F.cross_entropy(x, f.tensor([0, 1, 3, 2])),
    "layer_norm": lambda f, F, x: F.layer_norm(x, (4,)).pow(3),
    "batch_norm": lambda f, F, x: F.batch_norm(x, None, None, training=True).pow(3),
    "attention": lambda f, F, x: F.scaled_dot_product_attention(*[x[None, None]] * 3, is_causal=True),
    "pooling": lambda f, F, x: F.max_pool2d(x[None, None], 2) + F.avg_pool2d(x[None, None], 2),
    "interpolate": lambda f, F, x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear").pow(2),
    "losses": lambda f, F, x: F.mse_loss(x, f.zeros(4, 4)) + F.huber_loss(x, f.zeros(4, 4)),
    "division": lambda f, F, x: 1 / x,
    "lstm": lambda f, F, x: f.nn.LSTM(4, 3)(x[None])[0] * 0 + x.sum(),
    "gru": lambda f, F, x: f.nn.GRU(4, 3, 2, bidirectional=True)(x[None])[0] * 0 + x.sum(),
    "ctc": lambda f, F, x: F.ctc_loss(x[:, None].log_softmax(-1), f.tensor([[1, 2]]), (4,), (2,)),
}


@pytest.mark.parametrize("name", PASSES)
def test_backward_passes_within_a_mode(name):
    grads = []
    for f in (torch, taeda):
        x = f.arange(16.0).sub(7.5).div(4).view(4, 4).requires_grad_()
        with log_of(f) as log:
            PASSES[name](f, f.nn.functional, x).sum().backward()
        assert len(log.ops) > 3
        grads.append(x.grad)
    close(grads[1], grads[0])


@pytest.mark.parametrize("inner", [False, True])
def test_checkpoints_with_one_pass_within_a_mode(inner):
    """Both runs save the same tensors."""
    grads = []
    for f in (torch, taeda):
        x = f.arange(16.0).sub(7.5).div(4).view(4, 4).requires_grad_()
        checkpoint = importlib.import_module(f"{f.__name__}.utils.checkpoint").checkpoint
        log, outside = log_of(f), contextlib.nullcontext()
        with log if inner else outside:
            y = checkpoint(lambda x, F=f.nn.functional: F.gelu(F.layer_norm(x, (4,)) @ x), x, use_reentrant=False)
        with outside if inner else log:
            y.pow(2).sum().backward()
        assert log.ops
        grads.append(x.grad)
    close(grads[1], grads[0], 1e-4, 1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_sums_of_attention(masked, causal):
    found = []
    for f, aten in ((torch, torch.ops.aten), (taeda, our_aten)):
        x = f.arange(40.0).sin().view(1, 2, 5, 4)
        mask = f.arange(25.0).view(5, 5).masked_fill(f.arange(5) > 3, -float("inf")) if masked and not causal else None
        found.append(aten._scaled_dot_product_flash_attention_for_cpu(x, x, x, 0.0, causal, attn_mask=mask))
        assert found[-1][1].stride() == (10, 1, 2)
    close(found[1], found[0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_ops_that_are_seen(name):
    seen = []
    for f in (torch, taeda):
        with log_of(f) as log, f.no_grad():
            PROGRAMS[name](f)
        views = ("aten.detach.default", "aten.t.default")  # PyTorch shows some that cost nothing
        seen.append([op for op in log.ops if op not in views and "transpose" not in op])
    assert seen[0] == seen[1]


def test_counting_products():
    counts = []
    for f, aten in ((torch, torch.ops.aten), (taeda, our_aten)):
        formulas = {
            aten.mm: lambda out, a, b: prod(a.shape) * b.shape[1],
            aten.addmm: lambda out, c, a, b: prod(a.shape) * b.shape[1],
            aten.bmm: lambda out, a, b: prod(a.shape) * b.shape[2],
            aten.convolution: lambda out, x, w, *rest: prod(out.shape) * prod(w.shape[1:]),
        }

        class Count(dispatch(f).TorchDispatchMode):
            total = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None, formulas=formulas):
                out = func(*args, **(kwargs or {}))
                if func._overloadpacket in formulas:
                    self.total += formulas[func._overloadpacket](out, *args)
                return out

        nn = f.nn
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1, stride=2), nn.Flatten(1))
        model.append(nn.Linear(36, 5))
        q = f.randn(2, 2, 3, 4, requires_grad=True)
        with Count() as forward:
            y = model(f.randn(2, 3, 8, 8)).sum() + ((q @ q.mT).softmax(-1) @ q).sum() + (q @ f.randn(4, 6)).sum()
        with Count() as backward:
            (y * 2).backward(inputs=[q])
        counts.append((forward.total, backward.total))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("f", [torch, taeda])
def test_changing_and_stopping(f):
    aten = torch.ops.aten if f is torch else our_aten

    class Change(dispatch(f).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is aten.add.Tensor or func == aten.add.Tensor:
                return f.mul(*args)
            return func(*args, **(kwargs or {}))

    class Check(dispatch(f).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, f.Tensor) and f.isnan(out).any():
                raise FloatingPointError(str(func))
            return out

    with Change():
        assert (f.full((2,), 3.0) + f.full((2,), 4.0)).tolist() == [12.0, 12.0]
    assert (f.full((2,), 3.0) + f.full((2,), 4.0)).tolist() == [7.0, 7.0]
    with pytest.raises(FloatingPointError, match=r"aten\.log\.default"), Check():
        f.log(f.tensor([-1.0])) + 1


@pytest.mark.parametrize("f", [torch, taeda])
def test_nesting(f):
    module = dispatch(f)
    with log_of(f) as outer:
        with log_of(f) as inner:
            f.ones(2).mul(3)
            assert module._get_current_dispatch_mode() is inner
        with module._disable_current_modes():
            f.ones(3)
        f.zeros(1)
    assert module._get_current_dispatch_mode() is None
    assert inner.ops == ["aten.ones.default", "aten.mul.Tensor"]
    assert outer.ops == [*inner.ops, "aten.zeros.default"]


@pytest.mark.parametrize("f", [torch, taeda])
def test_with_autocast_and_training(f):
    f.manual_seed(0)
    model = f.nn.Linear(3, 2)
    step = f.optim.SGD(model.parameters(), lr=0.1)
    with log_of(f) as log, f.autocast("cpu", dtype=f.bfloat16):
        model(f.ones(1, 3)).float().sum().backward()
        step.step()
    assert any("addmm" in op for op in log.ops)
    f.manual_seed(0)
    again = f.nn.Linear(3, 2)
    assert f.allclose(model.bias.detach(), again.bias.detach() - 0.1, atol=1e-3)


# ---- classes with __torch_dispatch__ ---------------------------------------------------------------------------------


def overrides_of(f):
    return f._C if f is torch else importlib.import_module("taeda.overrides")


def logging_class(f):
    """A subclass without memory whose ops run on the tensor that it wraps, and are noted."""
    tree_map = importlib.import_module(f"{f.__name__}.utils._pytree").tree_map

    class Logging(f.Tensor):
        __slots__ = ["elem"]
        ops: ClassVar[list] = []
        __torch_function__ = overrides_of(f)._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, elem):
            made = f.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device,
                requires_grad=elem.requires_grad,
            )  # fmt: skip
            made.elem = elem.detach()
            return made

        def __repr__(self):
            return f"Logging({self.elem})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            assert types == (cls,)
            inner = tree_map(lambda x: x.elem if isinstance(x, cls) else x, (args, kwargs or {}))
            result = func(*inner[0], **inner[1])
            cls.ops.append(str(func))
            return tree_map(lambda x: cls(x) if isinstance(x, f.Tensor) else x, result)

    return Logging


WRAPPED = {
    "out that is None": lambda f, x: f.cat([x, x], 0, out=None) + f.sum(x, 0, out=None) * f.mul(x, 2, out=None)[0],
    "arithmetic": lambda f, x: (2 - x) / (x + 1) * x**2,
    "products": lambda f, x: f.nn.functional.linear(x, f.ones(5, 4), f.ones(5)) @ f.ones(5, 2),
    "views": lambda f, x: x[0, 1:].unsqueeze(0).expand(2, 3) + x.view(-1)[3] + x.permute(1, 0)[:2, None, 0],
    "functions": lambda f, x: f.relu(x).softmax(-1).max(1)[0] + x.exp().sum(1) + x.std(1) + x.clamp(min=0.5).mean(),
    "joined": lambda f, x: f.cat([f.stack([x, x])[0], *x.split(2)]).to(f.float64),
    "where": lambda f, x: f.where(x > 0, x, f.zeros_like(x)).masked_fill(x > 1, 0.0),
    "written": lambda f, x: x.clone().mul_(2).add_(x).fill_(3.0),
    "layer_norm": lambda f, x: f.nn.functional.layer_norm(x, (4,)),
    "pools": lambda f, x: f.nn.functional.max_pool2d(x[None, None], 2) + f.nn.functional.avg_pool2d(x[None, None], 2),
    "losses": lambda f, x: f.nn.functional.cross_entropy(x, f.tensor([0, 3, 1])) + f.nn.functional.mse_loss(x, x * 2),
    "activations": lambda f, x: f.nn.functional.selu(x) + f.nn.functional.logsigmoid(x) + f.nn.functional.softsign(x),
    "linalg": lambda f, x: f.linalg.svd(x[:, :3]).S + f.linalg.eigvalsh(x[:, :3]) + f.linalg.det(x[:, :3] + f.eye(3)),
    "fft": lambda f, x: f.fft.irfft(f.fft.rfft(x, norm="ortho")) + f.fft.fft(x).abs(),
    "composites": lambda f, x: f.diag_embed(x).sum(0).trace() + f.cdist(x, x).sum() + f.rot90(x).sum(),
    "convolution of rows": lambda f, x: f.nn.functional.conv1d(x, f.ones(2, 3, 2)),
}


@pytest.mark.parametrize("name", ["layer_norm", "pools", "losses", "activations"])
def test_gradients_of_a_class_where_it_is_asked_by_parts(name):
    x = taeda.linspace(-2.0, 3.0, 12, dtype=taeda.float64).reshape(3, 4).requires_grad_()
    (want,) = taeda.autograd.grad(WRAPPED[name](taeda, x).square().sum(), x)
    wrapped = logging_class(taeda)(x)
    (got,) = taeda.autograd.grad(WRAPPED[name](taeda, wrapped).square().sum(), wrapped)
    close(got.elem, want)


@pytest.mark.parametrize("name", WRAPPED)
def test_ops_of_a_class(name):
    seen = []
    for f in (torch, taeda):
        kind = logging_class(f)
        x = f.linspace(-2.0, 3.0, 12).reshape(3, 4)
        wrapped = WRAPPED[name](f, kind(x))
        assert type(wrapped) is kind
        f.testing.assert_close(wrapped.elem, WRAPPED[name](f, x))
        assert (wrapped.shape, wrapped.dtype) == (wrapped.elem.shape, wrapped.elem.dtype)
        seen.append([op for op in kind.ops if op != "aten.detach.default"])
    assert seen[0] == seen[1]


PARTS = {
    "convolution": lambda f, F, x: F.conv1d(x[None], f.ones(2, 3, 2)), "layer_norm": lambda f, F, x: F.layer_norm(x, (4,)),
    "selu": lambda f, F, x: F.selu(x), "batched": lambda f, F, x: x[None] @ x.mT[None], "svd": lambda f, F, x: f.svd(x)[1],
    "pool": lambda f, F, x: F.max_pool2d(x[None, None], 2), "logsigmoid": lambda f, F, x: F.logsigmoid(x),
    "loss": lambda f, F, x: F.cross_entropy(x, f.tensor([0, 1, 3])),
}  # fmt: skip


@pytest.mark.parametrize("wants_grad", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_parts_for_a_class(name, wants_grad):
    """Functions that come as native ops of several results go to the class, and have gradients."""
    function, x = PARTS[name], taeda.linspace(-2.0, 3.0, 12).reshape(3, 4).sin()
    plain, wrapped = x.clone().requires_grad_(wants_grad), logging_class(taeda)(x.requires_grad_(wants_grad))
    want, got = (function(taeda, taeda.nn.functional, y) for y in (plain, wrapped))
    close(got.elem, want.detach())
    if wants_grad:
        want.pow(2).sum().backward()
        got.pow(2).sum().backward()
        close(wrapped.grad.elem, plain.grad)


@pytest.mark.parametrize("wants_grad", [False, True])
def test_group_norm_of_a_class(wants_grad):
    x, norm = (
        taeda.linspace(-2.0, 3.0, 12).reshape(3, 4).square().requires_grad_(wants_grad),
        taeda.nn.functional.group_norm,
    )
    wrapped = logging_class(taeda)(x)
    want, got = norm(x, 2), norm(wrapped, 2)
    close(got.elem, want.detach())
    if wants_grad:
        (want,), (got,) = (taeda.autograd.grad(y.square().mul(y).sum(), z) for y, z in ((want, x), (got, wrapped)))
        close(got.elem, want)


@pytest.mark.parametrize("wants_grad", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda f, x: f.zeros_like(x), lambda f, x: f.full_like(x, 2.0), lambda f, x: f.rand_like(x),
        lambda f, x: x.new_zeros(3), lambda f, x: x.new_ones(2, 3), lambda f, x: x.new_full((2,), 4.0),
        lambda f, x: x.new_empty_strided((2,), (1,)), lambda f, x: f.ones_like(x, requires_grad=True),
    ],
)  # fmt: skip
def test_factories_of_a_class(make, wants_grad):
    """They go to the class where a gradient is wanted as well, and give leaves."""
    seen = []
    for f in (torch, taeda):
        kind = logging_class(f)
        x = make(f, kind(f.ones(2, 2, requires_grad=wants_grad)))
        seen.append((type(x) is kind, x.elem.shape, x.requires_grad, x.is_leaf, kind.ops))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training_parameters_of_a_class(optimizer):
    """The same numbers with and without the class, which the gradients have too."""
    losses = []
    for wrapped in (False, True):
        f = taeda
        f.manual_seed(0)
        kind = logging_class(f)
        model = f.nn.Sequential(f.nn.Linear(4, 3), f.nn.Tanh(), f.nn.Linear(3, 1))
        if wrapped:
            model[0].weight = f.nn.Parameter(kind(model[0].weight.detach().clone()))
        step = getattr(f.optim, optimizer)(model.parameters(), lr=0.1)
        for _ in range(3):
            step.zero_grad()
            loss = (model(f.linspace(-1.0, 1.0, 8).reshape(2, 4)) ** 2).sum()
            loss.backward()
            step.step()
            losses.append(loss.item())
        assert type(model[0].weight.grad) is (kind if wrapped else f.Tensor)
    assert losses[:3] == pytest.approx(losses[3:], rel=1e-6)


@pytest.mark.parametrize("f", [torch, taeda])
def test_a_quantised_weight_of_a_class(f):
    """A class that is asked about functions first, and knows four ops."""
    aten = torch.ops.aten if f is torch else our_aten
    functional = f.nn.functional
    correct = dispatch(f).return_and_correct_aliasing

    class Int8(f.Tensor):
        @staticmethod
        def __new__(cls, q, scale):
            return f.Tensor._make_wrapper_subclass(cls, q.shape, dtype=scale.dtype)

        def __init__(self, q, scale):
            self.q, self.scale = q, scale

        def plain(self):
            return self.q.to(self.scale.dtype) * self.scale

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is functional.linear:
                return func(*(x.plain() if isinstance(x, cls) else x for x in args), **(kwargs or {}))
            with overrides_of(f).DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            x = args[0]
            if func in (aten.detach.default, aten.clone.default):
                return correct(func, args, kwargs, cls(x.q, x.scale))
            if func is aten._to_copy.default:
                return cls(x.q, x.scale.to(kwargs["dtype"]))
            if func is aten.t.default:
                return x.plain().t()
            raise NotImplementedError(str(func))

    w = Int8(f.tensor([[1, -2], [3, 4], [5, 6]], dtype=f.int8), f.tensor([[0.5], [1.0], [2.0]]))
    layer = f.nn.Linear(2, 3, bias=False)
    layer.weight = f.nn.Parameter(w, requires_grad=False)
    assert type(layer.weight) is Int8 and isinstance(layer.weight, f.nn.Parameter)
    assert layer(f.ones(1, 2)).tolist() == [[-0.5, 7.0, 22.0]]
    assert w.t().tolist() == [[0.5, 3.0, 10.0], [-1.0, 4.0, 12.0]]
    assert copy.deepcopy(w).plain().tolist() == w.plain().tolist()
    again = pickle.loads(pickle.dumps(w.q)), w.double()
    assert again[1].dtype == again[1].scale.dtype == f.float64
    with pytest.raises(NotImplementedError, match=r"aten\.add\.Tensor"):
        w + 1
    with pytest.raises((NotImplementedError, RuntimeError)):
        w.numpy()


def test_files_and_elements_of_a_class():
    global Wrapped
    Wrapped = logging_class(taeda)
    Wrapped.__qualname__ = "Wrapped"
    x = Wrapped(taeda.tensor([1.0, 2.0]))
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is Wrapped and again.elem.tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).elem.tolist() == [1.0, 2.0]
    assert (x.sum().item(), float(x[1]), bool(x[0] > 2)) == (3.0, 2.0, False)
    for read in (x.tolist, x.numpy, lambda: memoryview(x), x.data_ptr):
        with pytest.raises(NotImplementedError, match="elements in memory"):
            read()
    p = Wrapped(taeda.ones(2, requires_grad=True))
    with pytest.raises(NotImplementedError, match="writes in place"):
        (p * 2).mul_(3)
    with pytest.raises(TypeError, match="__torch_dispatch__"):
        taeda.Tensor._make_wrapper_subclass(taeda.Tensor, (2,))
    with pytest.raises(RuntimeError, match="can require gradients"):
        taeda.Tensor._make_wrapper_subclass(Wrapped, (2,), dtype=taeda.int32, requires_grad=True)


def test_sizes_and_dimensions_come_as_lists():
    seen = []
    for f in (torch, taeda):
        found = []

        class Arguments(dispatch(f).TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None, f=f, found=found):
                found.append((str(func), [tuple(a.shape) if isinstance(a, f.Tensor) else a for a in args]))
                return func(*args, **(kwargs or {}))

        with Arguments():
            x = f.ones(2, 3, 4)
            f.zeros((2, 3)), f.rand(2), f.randn(2, 2), f.full((2, 3), 1.5)
            x.permute(2, 0, 1), x.permute((0, 2, 1)), x.flip(0, 1), x.repeat(1, 2, 1), x.expand(5, 2, 3, 4)
            x.new_zeros(3, 4), x.new_zeros((2,)), x.sum((0, 1)), x.roll((1, 2), (0, 1))
        seen.append(found)
    assert seen[0] == seen[1]


def test_a_class_without_memory():
    for f in (torch, taeda):
        x = f.Tensor._make_wrapper_subclass(logging_class(f), (10**12,))
        assert (x.shape, x.device.type) == ((10**12,), "cpu")
        x = f.Tensor._make_wrapper_subclass(logging_class(f), (2, 3), strides=(4, 1), storage_offset=5)
        assert (x.stride(), x.storage_offset()) == ((4, 1), 5)
        with pytest.raises((RuntimeError, NotImplementedError)):
            x.untyped_storage().tolist()


def test_dispatch_switched_off():
    from taeda.overrides import DisableDispatch

    for f, switch in (torch, torch._C._DisableTorchDispatch), (taeda, DisableDispatch):

        class Plain(f.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None, switch=switch):
                with switch():
                    return func(*args, **(kwargs or {}))

        x = f.Tensor._make_subclass(Plain, f.ones(2))
        for made in (x + 1, x.exp() > 2, f.cat([x, x])):
            assert made.shape[0] >= 2
        mode = log_of(f)
        with mode, switch():
            f.ones(2) + 1
        assert not mode.ops


def test_a_mode_is_asked_before_a_class():
    for f in (torch, taeda):
        log = []

        class Wrapped(f.Tensor):
            @staticmethod
            def __new__(cls, elem, f=f):
                made = f.Tensor._make_wrapper_subclass(cls, elem.shape)
                made.elem = elem
                return made

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None, log=log):
                log.append("class")
                return func(*(getattr(x, "elem", x) for x in args), **(kwargs or {}))

        class Polite(dispatch(f).TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None, log=log, f=f):
                log.append("mode")
                return NotImplemented if any(t is not f.Tensor for t in types) else func(*args, **(kwargs or {}))

        x = Wrapped(f.ones(2))
        with Polite():
            x.abs()
        assert log[:3] == ["mode", "class", "mode"]
