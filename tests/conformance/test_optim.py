"""Optimisers, schedules and weight averaging against PyTorch's: parameters, states, state dicts, errors."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import taeda
import taeda.nn
import taeda.optim
from tests.agree import close

torch = pytest.importorskip("torch")

from .peer import failure  # noqa: E402

SHAPES = [(5, 7), (70,), (3, 4, 2), (1,), (), (0, 3)]
TOLERANCE = {"float32": 2e-6, "float64": 1e-10, "bfloat16": 0.06, "float16": 0.1, "complex64": 2e-6}


def train(L, name, options, dtype, steps=12, transposed=False, **more):
    """Parameters and optimiser after some steps on fixed gradients."""
    rng = np.random.default_rng(0)

    def draw(shape):
        a = rng.standard_normal(shape)
        if dtype.startswith("complex"):
            a = a + 1j * rng.standard_normal(shape)
        return L.tensor(a.tolist(), dtype=getattr(L, dtype)).reshape(shape)

    params = []
    for shape in SHAPES:
        p = draw(shape)
        p = p.transpose(0, 1).contiguous().transpose(0, 1) if transposed and len(shape) == 2 else p
        params.append(p.requires_grad_(True))
    optimizer = getattr(L.optim, name)(params, **options, **more)
    for step in range(steps):
        for i, p in enumerate(params):
            p.grad = draw(tuple(p.shape)) if (i, step) != (1, 3) else None
        optimizer.step()
    return params, optimizer


CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {}),
    ("Rprop", {}),
    ("ASGD", {"t0": 3, "weight_decay": 0.01}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps(name, options, dtype):
    if dtype == "float16" and name in ("Adadelta", "RAdam", "Adam", "NAdam", "AdamW", "Adagrad"):
        options = {**options, "eps": 1e-4}  # the default vanishes in half precision
    if dtype.startswith("complex") and options.get("amsgrad"):
        pytest.skip("PyTorch's own result depends on which of its implementations runs")
    ours, a = train(taeda, name, options, dtype)
    theirs, b = train(torch, name, options, dtype, foreach=False)
    for i, (p, q) in enumerate(zip(ours, theirs, strict=True)):
        close(p, q, f"parameter {i}", TOLERANCE[dtype], TOLERANCE[dtype])
    state, expected = a.state_dict(), b.state_dict()
    groups = [{k: v for k, v in d["param_groups"][0].items() if k != "foreach"} for d in (state, expected)]
    assert groups[0] == groups[1]
    assert list(state["state"]) == list(expected["state"])
    for i, entry in expected["state"].items():
        assert set(state["state"][i]) == set(entry)
        for key, value in entry.items():
            close(state["state"][i][key], value, key, 10 * TOLERANCE[dtype], 10 * TOLERANCE[dtype])
            assert str(state["state"][i][key].dtype).split(".")[1] == str(value.dtype).split(".")[1]


@pytest.mark.parametrize(("name", "options"), [("Adam", {}), ("SGD", {"lr": 0.1, "momentum": 0.9})])
def test_transposed_parameters(name, options):
    ours, _ = train(taeda, name, options, "float32", transposed=True)
    theirs, _ = train(torch, name, options, "float32", transposed=True)
    for p, q in zip(ours, theirs, strict=True):
        close(p, q, "result", 2e-6, 2e-6)


def test_adafactor():
    shapes = [s for s in SHAPES if 0 not in s and len(s) > 0]

    def go(L):
        rng = np.random.default_rng(0)
        params = [L.tensor(rng.standard_normal(s).tolist()).requires_grad_(True) for s in shapes]
        optimizer = L.optim.Adafactor(params, weight_decay=0.1)
        for _ in range(5):
            for p in params:
                p.grad = L.tensor(rng.standard_normal(tuple(p.shape)).tolist())
            optimizer.step()
        return params, optimizer.state_dict()

    (ours, a), (theirs, b) = go(taeda), go(torch)
    for p, q in zip(ours, theirs, strict=True):
        close(p, q, "result", 1e-5, 1e-5)
    for i, entry in b["state"].items():
        assert set(a["state"][i]) == set(entry)
        for key, value in entry.items():
            close(a["state"][i][key], value, key, 1e-5, 1e-5)


def test_muon():
    def go(L):
        rng = np.random.default_rng(0)
        params = [L.tensor(rng.standard_normal(s).tolist()).requires_grad_(True) for s in ((4, 6), (8, 3))]
        optimizer = L.optim.Muon(params, lr=0.1)
        for _ in range(3):
            for p in params:
                p.grad = L.tensor(rng.standard_normal(tuple(p.shape)).tolist())
            optimizer.step()
        return params

    for p, q in zip(go(taeda), go(torch), strict=True):
        close(p, q, "result", 0.02, 0.02)  # the iteration runs in bfloat16


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs(search):
    def go(L):
        x = L.tensor([-1.5, 1.2, 0.3, 2.0], dtype=L.float64).requires_grad_(True)
        optimizer = L.optim.LBFGS([x], lr=0.01 if search is None else 1, max_iter=8, line_search_fn=search)
        losses = []

        def closure():
            optimizer.zero_grad()
            loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
            loss.backward()
            losses.append(loss.item())
            return loss

        for _ in range(4):
            optimizer.step(closure)
        state = optimizer.state[x]
        kinds = {k: [isinstance(i, L.Tensor) for i in (v if isinstance(v, list) else [v])] for k, v in state.items()}
        return x.tolist(), losses, state["func_evals"], state["n_iter"], list(kinds.items())

    ours, theirs = go(taeda), go(torch)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)
    assert ours[2:] == theirs[2:]


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "ASGD"])
def test_differentiable(name):
    def go(L):
        lr = {"lr": 0.1} if name == "SGD" else {}
        p = L.tensor([1.0, -2.0, 0.5], dtype=L.float64).requires_grad_(True)
        g = L.tensor([0.3, 0.2, -0.7], dtype=L.float64).requires_grad_(True)
        q = p.clone()
        optimizer = getattr(L.optim, name)([q], differentiable=True, **lr)
        q.grad = g * 1.0
        optimizer.step()
        q.grad = g * g
        optimizer.step()
        (q * q).sum().backward()
        return q.detach(), p.grad, g.grad

    for ours, theirs in zip(go(taeda), go(torch), strict=True):
        close(ours, theirs, "result", 1e-6, 1e-6)  # PyTorch keeps the step in single precision


def test_differentiable_product_of_nadam():
    """The product of the momenta carries its gradient through a step; through two, as finite differences say."""

    def go(L, steps, product=0.9):
        p = L.tensor([1.0, 2.0], dtype=L.float64).requires_grad_(True)
        start = L.tensor(product, dtype=L.float64).requires_grad_(True)
        g = L.tensor([0.5, 0.3], dtype=L.float64).requires_grad_(True)
        q, product = p.clone(), start.clone()
        optimizer = L.optim.NAdam([q], lr=0.1, differentiable=True)
        means = {"exp_avg": g.detach() * 0.4, "exp_avg_sq": L.full_like(p, 0.1).detach()}
        optimizer.state[q].update(step=L.tensor(3.0, dtype=L.float64), mu_product=product, **means)
        q.grad = g
        for _ in range(steps):
            optimizer.step()
        total = q.sum() + 3 * product
        total.backward()
        return total.detach(), product.detach(), p.grad, start.grad, g.grad

    for ours, theirs in zip(go(taeda, 1), go(torch, 1), strict=True):
        close(ours, theirs, "result", 1e-12, 1e-12)
    slope = (go(taeda, 2, 0.9 + 1e-6)[0] - go(taeda, 2, 0.9 - 1e-6)[0]) / 2e-6
    assert abs(slope.item() - go(taeda, 2)[3].item()) < 1e-7


@pytest.mark.parametrize(("name", "options"), CASES[1:12:3])
def test_state_dicts_cross(name, options):
    """A state saved by one library continues in the other."""
    theirs, b = train(torch, name, options, "float32", foreach=False)
    saved = b.state_dict()
    ours = [taeda.tensor(p.tolist()).reshape(tuple(p.shape)).requires_grad_(True) for p in theirs]
    a = getattr(taeda.optim, name)(ours, **options)
    state = {
        i: {k: taeda.tensor(v.tolist()).reshape(tuple(v.shape)) for k, v in e.items()}
        for i, e in saved["state"].items()
    }
    a.load_state_dict({"state": state, "param_groups": copy.deepcopy(saved["param_groups"])})
    for p, q in zip(ours, theirs, strict=True):
        p.grad, q.grad = taeda.ones(tuple(p.shape)), torch.ones(tuple(p.shape))
    a.step()
    b.step()
    for p, q in zip(ours, theirs, strict=True):
        close(p, q, "result", 2e-6, 2e-6)


def program_groups(L):
    o, nn = L.optim, L.nn
    w, b = nn.Parameter(L.ones(2)), nn.Parameter(L.ones(2))
    opt = o.SGD([{"params": [w], "lr": 0.5}, {"params": b}], lr=0.1, momentum=0.9)
    yield repr(opt), [g["lr"] for g in opt.param_groups]
    yield (
        failure(o.SGD, w),
        failure(o.SGD, []),
        failure(o.SGD, [3]),
        failure(o.SGD, [w * 2]),
        failure(o.SGD, [{"params": {w}}]),
    )
    yield failure(opt.add_param_group, {"params": [w]}), failure(opt.add_param_group, [w])
    for bad in (
        ("SGD", {"lr": -1}), ("SGD", {"momentum": -1}), ("SGD", {"nesterov": True}), ("Adam", {"betas": (1.0, 0.9)}),
        ("Adam", {"eps": -1}), ("Adam", {"fused": True, "foreach": True}), ("Adam", {"fused": True, "differentiable": True}),
        ("Adadelta", {"rho": 2}), ("Rprop", {"etas": (2, 3)}), ("RMSprop", {"alpha": -1}), ("NAdam", {"momentum_decay": -1}),
        ("ASGD", {"weight_decay": -1}), ("Adagrad", {"lr_decay": -1}), ("Adamax", {"betas": (0.9, 2)}), ("Muon", {}),
        ("Adafactor", {"d": 0.5}), ("Adam", {"lr": L.ones(2)}),
    ):  # fmt: skip
        yield bad[0], failure(getattr(o, bad[0]), [w], **bad[1])
    named = o.SGD([("weight", w), ("bias", b)], lr=0.1)
    yield named.param_groups[0]["param_names"], named.state_dict()["param_groups"], failure(o.SGD, [("a", w), b])
    opt2 = o.SGD([w, b], lr=0.1)
    yield failure(opt2.load_state_dict, opt.state_dict()), failure(opt2.load_state_dict, o.SGD([w]).state_dict())
    (w.sum() + b.sum()).backward()
    opt.step()
    opt.zero_grad()
    yield w.grad is None, list(w.tolist()), list(b.tolist())
    (w.sum() + b.sum()).backward()
    opt.zero_grad(set_to_none=False)
    yield w.grad.tolist()
    loss = opt.step(lambda: w.sum().item())
    yield round(loss, 4), w.tolist()
    lr = L.tensor(0.5)
    t = o.SGD([w], lr=lr)
    w.grad = L.ones(2)
    before = w.tolist()
    t.step()
    yield np.round(np.array(before) - np.array(w.tolist()), 5).tolist()


def program_hooks(L):
    o, nn = L.optim, L.nn
    w = nn.Parameter(L.ones(2))
    w.grad = L.ones(2)
    opt = o.SGD([w], lr=0.1)
    log = []
    h = opt.register_step_pre_hook(lambda opt, args, kwargs: log.append("pre"))
    opt.register_step_post_hook(lambda opt, args, kwargs: log.append("post"))
    opt.register_state_dict_pre_hook(lambda opt: log.append("sd pre"))
    opt.register_state_dict_post_hook(lambda opt, sd: {**sd, "more": 1})
    opt.register_load_state_dict_pre_hook(lambda opt, sd: log.append("load pre"))
    opt.register_load_state_dict_post_hook(lambda opt: log.append("load post"))
    opt.step()
    yield list(log)
    h.remove()
    opt.step()
    sd = opt.state_dict()
    yield sd["more"], log
    opt.load_state_dict(sd)
    yield log
    opt.register_step_pre_hook(lambda opt, args, kwargs: 3)
    yield failure(opt.step)
    again = pickle.loads(pickle.dumps(o.Adam([w])))
    yield again.param_groups[0]["lr"], again.param_groups[0]["params"][0].tolist()


def program_schedules(L):
    s = L.optim.lr_scheduler
    made = {
        "StepLR": lambda o: s.StepLR(o, 3), "MultiStepLR": lambda o: s.MultiStepLR(o, [2, 5, 5]),
        "ConstantLR": lambda o: s.ConstantLR(o), "LinearLR": lambda o: s.LinearLR(o, 0.1, 0.9, 4),
        "ExponentialLR": lambda o: s.ExponentialLR(o, 0.8), "PolynomialLR": lambda o: s.PolynomialLR(o, 6, 2.0),
        "CosineAnnealingLR": lambda o: s.CosineAnnealingLR(o, 4, 0.01), "LambdaLR": lambda o: s.LambdaLR(o, lambda e: 0.9**e),
        "MultiplicativeLR": lambda o: s.MultiplicativeLR(o, [lambda e: 0.9, lambda e: 0.5]),
        "CosineAnnealingWarmRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 2, 2, 0.001),
        "CyclicLR": lambda o: s.CyclicLR(o, 0.01, 0.1, 3, 2, mode="triangular2"),
        "CyclicLR exp": lambda o: s.CyclicLR(o, [0.01, 0.02], 0.1, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
        "OneCycleLR": lambda o: s.OneCycleLR(o, [0.1, 0.2], total_steps=14),
        "OneCycleLR three": lambda o: s.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"),
        "SequentialLR": lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3]),
        "SequentialLR of a chain": lambda o: s.SequentialLR(
            o, [s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 2)], [3]
        ),
        "ChainedScheduler": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
        "SWALR": lambda o: L.optim.swa_utils.SWALR(o, 0.05, 5),
    }  # fmt: skip
    for name, make in made.items():
        w, v = L.nn.Parameter(L.ones(1)), L.nn.Parameter(L.ones(1))
        opt = L.optim.SGD([{"params": [w]}, {"params": [v], "lr": 0.2}], lr=0.1, momentum=0.8)
        schedule = make(opt)
        curve = []
        for step in range(13):
            curve.append([[round(float(g["lr"]), 7), round(g["momentum"], 6)] for g in opt.param_groups])
            opt.step()
            schedule.step()
            if step == 6:
                saved = schedule.state_dict()
                keys = sorted(k for k in saved if k not in ("_is_initial", "_get_lr_called_within_step"))
                schedule.load_state_dict(saved)
        yield name, curve, [round(float(r), 7) for r in schedule.get_last_lr()], keys
    opt = L.optim.SGD([L.nn.Parameter(L.ones(1))], lr=1.0)
    plateau = s.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1, min_lr=0.1, threshold=0.01)
    curve = []
    for metric in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5):
        plateau.step(metric)
        curve.append((opt.param_groups[0]["lr"], plateau.num_bad_epochs, plateau.in_cooldown))
    yield curve, sorted(plateau.state_dict())
    yield failure(s.StepLR, 3, 1), failure(s.ReduceLROnPlateau, opt, factor=2), failure(s.OneCycleLR, opt, 0.1)
    yield (
        failure(s.ConstantLR, opt, 2.0),
        failure(s.LambdaLR, opt, [lambda e: e] * 3),
        failure(s.StepLR, opt, 1, last_epoch=3),
    )
    yield failure(s.SequentialLR, opt, [], []), failure(s.CosineAnnealingWarmRestarts, opt, 0)


def program_averages(L):
    L.manual_seed(0)
    m = L.nn.Sequential(L.nn.Linear(2, 2), L.nn.BatchNorm1d(2))
    u = L.optim.swa_utils
    for options in (
        {},
        {"avg_fn": u.get_ema_avg_fn(0.9)},
        {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9), "use_buffers": True},
    ):
        a = u.AveragedModel(m, **options)
        for i in range(3):
            with L.no_grad():
                for p in m.parameters():
                    p.add_(float(i))
            m(L.ones(3, 2) * L.arange(3.0).unsqueeze(1))
            a.update_parameters(m)
        yield [np.round(np.array(t.tolist()), 4).tolist() for t in a.state_dict().values()], list(a.state_dict())
    u.update_bn([L.ones(3, 2) * L.arange(3.0).unsqueeze(1)] * 2, a)
    yield [np.round(np.array(t.tolist()), 4).tolist() for t in a.state_dict().values()]


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES} | {"Adafactor", "LBFGS", "Muon", "SparseAdam"}))
def test_order_of_options(name):
    """Groups, and with them files and what is printed of a group, have the order of PyTorch's."""

    def program(L):
        w = L.nn.Parameter(L.ones(2, 3))
        kind = getattr(L.optim, name)
        o = kind([w])
        w.grad = (L.ones(2, 3) if name != "SparseAdam" else L.ones(2, 3).to_sparse(1)) * 0.5
        o.step(lambda: L.ones(()))
        yield (
            list(o.defaults.items()),
            list(o.param_groups[0]),
            list(o.state_dict()["param_groups"][0].items()),
            repr(o),
        )
        yield [list(state) for state in o.state.values()] if name != "LBFGS" else None
        yield failure(kind, [w], betas=(0.5,)), failure(kind, [w], betas=(0.5, 1.0))

    for step, (ours, theirs) in enumerate(zip(program(taeda), program(torch), strict=True)):
        assert ours == theirs, f"step {step}"


@pytest.mark.parametrize("program", [program_groups, program_hooks, program_schedules, program_averages])
def test_program(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step, (ours, theirs) in enumerate(zip(program(taeda), program(torch), strict=True)):
            assert ours == theirs, f"step {step}"
