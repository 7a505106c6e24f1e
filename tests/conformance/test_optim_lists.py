"""The functional forms of optimisers, ``optim.adam.adam`` and the like, against PyTorch's."""

import importlib
import inspect

import pytest

import taeda

torch = pytest.importorskip("torch")

NAMES = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd".split()
VALUES = {
    "lr": 0.1, "rho": 0.9, "eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "lr_decay": 0.1, "lambd": 1e-3, "t0": 1.0,
    "alpha": 0.8, "momentum_decay": 4e-3, "step_size_min": 1e-3, "step_size_max": 5.0, "etaminus": 0.5, "etaplus": 1.2,
    "dampening": 0.1,
}  # fmt: skip
CHOICES = {
    "maximize": (False, True), "weight_decay": (0.0, 0.1), "amsgrad": (False, True), "centered": (False, True),
    "momentum": (0.0, 0.9), "nesterov": (False, False), "decoupled_weight_decay": (False, True),
}  # fmt: skip


def function(framework, name):
    module = "adam" if framework is taeda and name == "adamw" else name
    return getattr(importlib.import_module(f"{framework.__name__}.optim.{module}"), name)


def options(name):
    """The function's options: each choice alone, and all together."""
    parameters = inspect.signature(function(torch, name)).parameters
    fixed = {k: v for k, v in VALUES.items() if k in parameters}
    first = {k: v[0] for k, v in CHOICES.items() if k in parameters}
    yield fixed | first
    for k in first:
        yield fixed | first | {k: CHOICES[k][1]}
    if len(first) > 1:
        yield fixed | {k: CHOICES[k][1] for k in first}


def run(framework, name, chosen, dtype, differentiable):
    """Everything that three steps leave behind."""
    call = function(framework, name)

    def make(rows, seed):
        values = [[(7 * i + 3 * j + seed) % 11 / 5 - 1 for j in range(5)] for i in range(rows)]
        return framework.tensor(values, dtype=getattr(framework, dtype))

    params = [make(rows, rows) for rows in (1, 3, 4)]
    lists = {}
    for key in list(inspect.signature(function(torch, name)).parameters)[2:]:
        if key in ("foreach", "capturable", "fused", "has_sparse_grad", "decoupled_weight_decay"):
            break
        if key == "state_steps":
            lists[key] = [framework.tensor(0.0) for _ in params]
        elif key in ("etas", "mu_products", "mus"):
            lists[key] = [framework.tensor(chosen["lr"] if key == "etas" else 1.0) for _ in params]
        elif key == "momentum_buffer_list" and name == "sgd":
            lists[key] = [None, framework.ones_like(params[1]), None]
        else:
            first = 0.05 if key == "step_sizes" else 0.0
            lists[key] = [framework.full_like(p, first) for p in params]
    if differentiable:
        chosen = chosen | {"differentiable": True, "foreach": False}
    for step in range(3):
        call(params, [make(len(p), step + len(p)) for p in params], *lists.values(), **chosen)
    return [params, *lists.values()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions(name, dtype):
    """Parameters, state and counters after three steps are PyTorch's."""
    for chosen in options(name):
        for differentiable in (False, True) if name != "sgd" else (False,):
            got, want = (run(f, name, dict(chosen), dtype, differentiable) for f in (taeda, torch))
            for mine, theirs in zip(got, want, strict=True):
                for a, b in zip(mine, theirs, strict=True):
                    if b is None:
                        assert a is None
                    else:
                        torch.testing.assert_close(
                            torch.tensor(a.tolist(), dtype=b.dtype), b, rtol=2e-5 if dtype == "float32" else 1e-9,
                            atol=1e-6, msg=f"{name} {chosen}",
                        )  # fmt: skip


def test_a_scaler_and_errors():
    """Gradients are divided by the scale; a step with infinite ones is left out; counters are tensors."""
    options = {"lr": 0.1, "weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False}
    p = taeda.zeros(2)
    taeda.optim.sgd.sgd([p], [taeda.ones(2)], [None], grad_scale=taeda.tensor(4.0), **options)
    assert p.tolist() == pytest.approx([-0.025] * 2)
    taeda.optim.sgd.sgd([p], [taeda.ones(2)], [None], found_inf=taeda.tensor(1.0), **options)
    assert p.tolist() == pytest.approx([-0.025] * 2)
    with pytest.raises(RuntimeError, match="state_steps"):
        taeda.optim.adagrad.adagrad(
            [p], [taeda.ones(2)], [taeda.ones(2)], [0], lr=0.1, weight_decay=0, lr_decay=0, eps=1e-8, maximize=False
        )
    assert p.tolist() == pytest.approx([-0.025] * 2)
