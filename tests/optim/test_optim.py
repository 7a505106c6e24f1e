"""Optimisers: the fused step and its fallbacks agree, plans notice every change, versions count."""

from platform import machine

import numpy as np
import pytest

import taeda
from taeda import _core, nn, optim

RULES = [
    (optim.SGD, {"lr": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
    (optim.AdamW, {}),
    (optim.Adagrad, {"weight_decay": 0.1}),
    (optim.Adadelta, {}),
    (optim.Adamax, {}),
    (optim.NAdam, {}),
    (optim.RAdam, {}),
    (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (optim.Rprop, {}),
    (optim.ASGD, {"t0": 2}),
]


def draw(seed, *shape, dtype=taeda.float64):
    return taeda.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=dtype).reshape(shape)


def parameters(dtype=taeda.float64):
    return [draw(i, *s, dtype=dtype).requires_grad_(True) for i, s in enumerate([(3, 4), (40,), (1,), (2, 3, 5)])]


def give_gradients(params, step, dtype=taeda.float64):
    for i, p in enumerate(params):
        p.grad = draw(100 * step + i, *p.shape, dtype=dtype)


@pytest.mark.parametrize(("kind", "options"), RULES)
def test_fused_and_composed_agree(kind, options):
    """The same rule as a kernel and in ops (``differentiable=True``)."""
    fused, composed = parameters(), parameters()
    a = kind(fused, **options)
    leaves = [p.detach().clone() for p in composed]
    b = kind(leaves, **options, differentiable=True)
    for step in range(6):
        give_gradients(fused, step)
        give_gradients(leaves, step)
        a.step()
        b.step()
    for p, q in zip(fused, leaves, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-9, atol=1e-9)
    for p, q in zip(fused, leaves, strict=True):
        for name, value in a.state[p].items():
            np.testing.assert_allclose(
                value.numpy(), b.state[q][name].detach().numpy(), rtol=1e-9, atol=1e-9, err_msg=name
            )


@pytest.mark.parametrize(("kind", "options"), RULES)
def test_layouts(kind, options):
    """Dense parameters in another order of dimensions, overlapping ones, and gradients laid out differently."""
    plain, permuted = draw(0, 4, 6).requires_grad_(True), draw(0, 4, 6).t().contiguous().t().requires_grad_(True)
    hole = draw(0, 4, 12)[:, ::2]
    hole.copy_(plain.detach())
    hole.requires_grad_(True)
    params = [plain, permuted, hole]
    optimizer = kind(params, **options)
    for step in range(4):
        g = draw(step + 1, 4, 6)
        plain.grad = g
        permuted.grad = g.clone() if step % 2 else g.t().contiguous().t()
        hole.grad = g.t().contiguous().t()
        optimizer.step()
    np.testing.assert_allclose(permuted.detach().numpy(), plain.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(hole.detach().numpy(), plain.detach().numpy(), rtol=1e-9)


def steps_alone(kind, options, p, grads, change=None):
    """One parameter stepped with a fresh optimiser per call of ``change``, as the reference."""
    q = p.detach().clone().requires_grad_(True)
    optimizer = kind([q], **options)
    for i, g in enumerate(grads):
        if change:
            change(i, optimizer, q)
        q.grad = g
        optimizer.step()
    return q


def test_plan_follows_changes():
    """Learning rate, options, data, loaded state, new gradients and new parameters between steps."""

    def change(i, optimizer, p):
        if i == 1:
            optimizer.param_groups[0]["lr"] = 0.5
        if i == 2:
            optimizer.param_groups[0]["weight_decay"] = 0.1
        if i == 3:
            p.data = p.detach() + 1
        if i == 4:
            optimizer.load_state_dict(optimizer.state_dict())
        if i == 5:
            optimizer.state[p]["exp_avg"] = taeda.zeros_like(p)
        if i == 6:
            optimizer.state[p]["step"].fill_(100.0)

    grads = [draw(i, 3) for i in range(8)]
    start = draw(50, 3)
    p = start.clone().requires_grad_(True)
    other = draw(51, 2).requires_grad_(True)
    optimizer = optim.Adam([p, other])
    for i, g in enumerate(grads):
        change(i, optimizer, p)
        p.grad = g
        other.grad = draw(i, 2) if i % 3 else None
        if i == 7:
            optimizer.add_param_group({"params": [draw(52, 2).requires_grad_(True)]})
            optimizer.param_groups[1]["params"][0].grad = taeda.ones(2, dtype=taeda.float64)
        optimizer.step()
    want = steps_alone(optim.Adam, {}, start, grads, change)
    np.testing.assert_allclose(p.detach().numpy(), want.detach().numpy(), rtol=1e-12)
    assert float(optimizer.state[other]["step"]) == 5
    assert len(optimizer.state) == 3


def test_in_place_versions_are_counted():
    p = taeda.ones(3, requires_grad=True)
    loss = (p * p).sum()
    p.grad = taeda.ones(3)
    optimizer = optim.SGD([p], lr=0.1)
    before = p._version
    optimizer.step()
    p.grad = taeda.ones(3)
    optimizer.step()
    assert p._version == before + 2
    with pytest.raises(RuntimeError, match=r"modified by an in-?place"):
        loss.backward()


def test_narrow_dtypes_compute_in_single_precision():
    want = draw(0, 5).requires_grad_(True)
    reference = optim.Adam([want], lr=0.1)
    for dtype, tolerance in ((taeda.float16, 5e-3), (taeda.bfloat16, 5e-2)):
        p = want.detach().to(dtype).requires_grad_(True)
        optimizer = optim.Adam([p], lr=0.1)
        q = want.detach().clone().requires_grad_(True)
        reference = optim.Adam([q], lr=0.1)
        for i in range(5):
            p.grad, q.grad = draw(i, 5).to(dtype), draw(i, 5)
            optimizer.step()
            reference.step()
        assert p.dtype is dtype and optimizer.state[p]["exp_avg"].dtype is dtype
        np.testing.assert_allclose(p.detach().double().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(machine() not in ("x86_64", "AMD64"), reason="other processors are as quick with denormal numbers")
@pytest.mark.parametrize("kind", [optim.Adam, optim.SGD])
def test_moments_that_vanish_are_zero(kind):
    """Else each step would compute with denormal numbers, which takes a hundred times as long."""
    p = taeda.ones(70000, requires_grad=True)  # for more than one thread
    optimizer = kind([p], lr=0.1, **({"momentum": 0.5} if kind is optim.SGD else {"betas": (0.5, 0.5)}))
    name = "momentum_buffer" if kind is optim.SGD else "exp_avg"
    p.grad = taeda.full((70000,), 1e-37)
    optimizer.step()
    p.grad = taeda.zeros(70000)
    before = p.detach().clone()
    for _ in range(8):
        optimizer.step()
    assert taeda.equal(optimizer.state[p][name], taeda.zeros(70000))
    assert (p - before).abs().max() < 1e-6
    small = taeda.full((70000,), 1e-30) * 1e-10  # elsewhere such numbers stay
    assert small.min().item() == small.max().item() > 0


def test_threads_do_not_matter():
    results = []
    for threads in (1, 2, 3):
        taeda.set_num_threads(threads)
        taeda.manual_seed(0)
        params = [taeda.randn(50000).requires_grad_(True) for _ in range(4)]
        optimizer = optim.AdamW(params)
        for _ in range(2):
            for p in params:
                p.grad = taeda.randn(50000)
            optimizer.step()
        results.append(b"".join(p.detach().numpy().tobytes() for p in params))
    assert len(set(results)) == 1


def test_empty_parameters_and_no_gradients():
    p, q = taeda.zeros(0, requires_grad=True), taeda.ones(2, requires_grad=True)
    optimizer = optim.Adam([p, q])
    optimizer.step()
    assert len(optimizer.state) == 0
    p.grad = taeda.zeros(0)
    optimizer.step()
    assert float(optimizer.state[p]["step"]) == 1 and q not in optimizer.state


def test_a_list_of_parameters_is_iterable():
    params = nn.ParameterList([nn.Parameter(taeda.ones(2)), nn.Parameter(taeda.ones(3))])
    assert optim.SGD(params, lr=0.1).param_groups[0]["params"] == list(params)
    with pytest.raises(TypeError, match="'Linear' object is not iterable"):
        optim.SGD(nn.Linear(1, 1), lr=0.1)


def test_learning():
    """A small network fits a curve with each optimiser."""
    x = taeda.linspace(-2, 2, 64).unsqueeze(1)
    y = x.sin()
    for kind, options in [
        (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (optim.Adam, {"lr": 0.02}),
        (optim.RMSprop, {"lr": 0.01}),
    ]:
        taeda.manual_seed(0)
        model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        optimizer = kind(model.parameters(), **options)
        for _ in range(150):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert float(loss.detach()) < 0.02, kind


def test_closure_runs_with_gradients():
    p = taeda.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with taeda.no_grad():
        first = optimizer.step(closure)
    assert float(first.detach()) == 2
    np.testing.assert_allclose(p.detach().numpy(), 0.8, rtol=1e-6)


class Watching:
    """A mode that notes the ops that it sees."""

    watches = True

    def __init__(self):
        self.seen = []

    def handle(self, op, args, kwargs):
        self.seen.append(op.__name__)
        return op(*args, **kwargs)


@pytest.mark.parametrize(("kind", "options"), RULES)
def test_a_mode_sees_a_step_as_one_call(kind, options):
    """A norm, a scaling of all gradients and an update of all parameters, with the numbers of a step that nobody watches."""
    watched, alone = parameters(), parameters()
    a, b = kind(watched, **options), kind(alone, **options)
    mode = Watching()
    for step in range(3):
        for params, optimizer in (watched, a), (alone, b):
            give_gradients(params, step)
            if params is watched:
                _core.push_mode(mode)
            try:
                nn.utils.clip_grad_norm_(params, 0.5)
                nn.utils.clip_grad_value_(params, 0.3)
                optimizer.step()
            finally:
                if params is watched:
                    _core.pop_mode()
    wanted = ["total_norm", "change_all", "change_all", "update_all"]
    assert [name for name in mode.seen if name in set(wanted)] == wanted * 3
    assert all(taeda.equal(p, q) and p._version == q._version for p, q in zip(watched, alone, strict=True))
    assert str(a.state_dict()) == str(b.state_dict())


def test_foreach_in_place_gives_the_list():
    x = [taeda.ones(2)]
    for name, given in {
        "add": (1.0,),
        "exp": (),
        "lerp": (x, 0.5),
        "addcmul": (x, x),
        "zero": (),
        "copy": (x,),
    }.items():
        assert getattr(taeda, f"_foreach_{name}_")(x, *given) is x


def test_foreach_of_copies_and_products():
    x = [taeda.ones(2, 2), taeda.ones(3, 3)]
    copies = taeda._foreach_clone(x)
    assert all(a is not b and taeda.equal(a, b) for a, b in zip(x, copies, strict=True))
    assert [y[0, 0].item() for y in taeda._foreach_mm(x, x)] == [2.0, 3.0]
