"""PyTorch's database of optimisers, run on taeda: parameters and state after steps, state dictionaries both ways, errors."""

import copy
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db  # noqa: E402

from .opdb.checks import close  # noqa: E402
from .opdb.translate import back, translate  # noqa: E402
from .trees import mapped  # noqa: E402

ENTRIES = {info.optim_cls.__name__: info for info in optim_db}
SHAPES = ((5, 3), (3, 4))  # matrices: Muon takes nothing else


def samples(name):
    info = ENTRIES[name]
    return info.optim_inputs_func(device="cpu", dtype=torch.float64)


def parameters(framework, sparse):
    torch.manual_seed(0)
    made = [torch.randn(shape, dtype=torch.float64) for shape in SHAPES]
    if framework is taeda:
        made = [translate(p) for p in made]
    return [framework.nn.Parameter(p) for p in made]


def gradients(framework, params, step, sparse, steady=False):
    """Gradients that depend on the parameters and, unless ``steady``, on the step."""
    for k, p in enumerate(params):
        scale = 1.0 if steady else 0.5 + 0.25 * ((step + k) % 3)
        g = p.detach() * 2 if steady else (p.detach() * scale).sin() + 0.1
        if sparse:
            rows = framework.tensor([[0, 2, 0] if step % 2 else [1, 1, 2]], device=p.device)
            g = framework.sparse_coo_tensor(rows, g[rows[0]], tuple(p.shape))
        p.grad = g


def run(optimizer, framework, params, sparse, steps, start=0):
    for step in range(start, start + steps):

        def closure(step=step):
            gradients(framework, params, step, sparse, type(optimizer).__name__ == "LBFGS")
            return sum((p.detach() ** 2).sum() for p in params)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if type(optimizer).__name__ == "LBFGS":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()


def same_parameters(mine, others, name):
    for p, q in zip(mine, others, strict=True):
        if name == "Muon":  # orthogonalises in bfloat16
            torch.testing.assert_close(back(p.detach()), q.detach(), rtol=0, atol=1e-2)
        else:
            close(p.detach(), q.detach(), name)


def same_states(ours, theirs, name):
    want, got = theirs.state_dict(), ours.state_dict()
    assert set(got) == set(want)
    assert len(got["param_groups"]) == len(want["param_groups"])
    for g, w in zip(got["param_groups"], want["param_groups"], strict=True):
        assert set(g) == set(w)
        for key in w:
            if key not in ("foreach", "fused"):
                value = g[key].item() if isinstance(g[key], taeda.Tensor) else g[key]
                expected = w[key].item() if isinstance(w[key], torch.Tensor) else w[key]
                assert value == pytest.approx(expected) if isinstance(expected, float) else value == expected, key
    assert set(got["state"]) == set(want["state"])
    for index, state in want["state"].items():
        assert set(got["state"][index]) == set(state)
        for key, value in state.items():
            found = got["state"][index][key]
            if isinstance(value, torch.Tensor) and isinstance(found, (int, float)):
                assert found == pytest.approx(value.item())
            elif isinstance(value, torch.Tensor):
                if found.dim() == value.dim() == 0:
                    assert found.item() == pytest.approx(value.item())
                elif name != "Muon":
                    close(found, value, f"state {key}")


def our_kwargs(kwargs):
    return {k: translate(v) for k, v in kwargs.items()}


CASES = [(name, k) for name in ENTRIES for k in range(len(samples(name)))]


@pytest.mark.parametrize("name, k", CASES, ids=[f"{n}-{k}" for n, k in CASES])
def test_steps_and_state(name, k):
    info, sample = ENTRIES[name], samples(name)[k]
    sparse = info.only_supports_sparse_grads
    mine, others = parameters(taeda, sparse), parameters(torch, sparse)
    kwargs = copy.deepcopy(sample.kwargs)
    ours = getattr(taeda.optim, name)(mine, **our_kwargs(kwargs))
    theirs = info.optim_cls(others, **kwargs)
    for opt, framework, params in ((ours, taeda, mine), (theirs, torch, others)):
        run(opt, framework, params, sparse, 5)
    same_parameters(mine, others, name)
    same_states(ours, theirs, name)

    # PyTorch's state goes into ours, ours into PyTorch's, and both go on alike
    ours.load_state_dict(mapped(translate, theirs.state_dict()))
    theirs.load_state_dict(mapped(back, ours.state_dict()))
    for opt, framework, params in ((ours, taeda, mine), (theirs, torch, others)):
        run(opt, framework, params, sparse, 3, 5)
    same_parameters(mine, others, name)


@pytest.mark.parametrize("name", sorted(n for n, i in ENTRIES.items() if i.supports_sparse))
def test_sparse_gradients(name):
    info = ENTRIES[name]
    kwargs = dict(info.metadata_for_sparse[0]) or {"lr": 0.1}
    mine, others = parameters(taeda, True), parameters(torch, True)
    ours, theirs = getattr(taeda.optim, name)(mine, **kwargs), info.optim_cls(others, **kwargs)
    for opt, framework, params in ((ours, taeda, mine), (theirs, torch, others)):
        run(opt, framework, params, True, 6)
    same_parameters(mine, others, name)
    same_states(ours, theirs, name)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "NAdam"])
def test_sparse_gradients_are_refused(name):
    params = parameters(taeda, True)
    optimizer = getattr(taeda.optim, name)(params)
    gradients(taeda, params, 0, True)
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        optimizer.step()


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_errors(name):
    info = ENTRIES[name]
    for bad in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        sample = bad.optimizer_error_input
        given = sample.params

        def make(cls, framework, given=given, sample=sample, bad=bad):
            if given is None:
                params = [framework.nn.Parameter(framework.ones(2, 3))]
            else:
                params = given if framework is torch else _translated(given, {})
            kwargs = sample.kwargs if framework is torch else our_kwargs(sample.kwargs)
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                optimizer = cls(params, **kwargs)
                if bad.error_on == OptimizerErrorEnum.STEP_ERROR:
                    optimizer.step()

        try:
            make(info.optim_cls, torch)
        except Exception as error:
            expected = error
        else:
            continue
        kinds = (UserWarning, ValueError, TypeError, AssertionError, RuntimeError, Exception)
        kind = next(k for k in kinds if isinstance(expected, k))
        with pytest.raises(kind):
            make(getattr(taeda.optim, name), taeda)


def _translated(x, memo):
    """Parameters, the same one twice where it is."""
    if isinstance(x, torch.nn.Parameter):
        if id(x) not in memo:
            memo[id(x)] = taeda.nn.Parameter(_translated(x.detach(), memo))
            if x.grad is not None:
                memo[id(x)].grad = translate(x.grad)
        return memo[id(x)]
    if isinstance(x, torch.Tensor) and x.is_sparse:
        return taeda.sparse_coo_tensor(translate(x._indices()), translate(x._values()), tuple(x.shape))
    if isinstance(x, torch.Tensor) and x.grad is not None:
        made = translate(x.detach())
        made.grad = translate(x.grad)
        return made
    if isinstance(x, dict):
        return {k: _translated(v, memo) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_translated(v, memo) for v in x)
    return translate(x)
