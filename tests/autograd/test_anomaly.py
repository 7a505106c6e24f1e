"""Anomaly detection: the failing node and the forward line that recorded it are named."""

import warnings

import pytest

import taeda
from taeda import autograd, nn


def leaf(*values):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=True)


def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return autograd.detect_anomaly()


def test_nan_is_traced_to_the_forward_line():
    x = leaf(0.0, 1.0)
    with quiet():
        y = x.sqrt()  # the culprit
        z = (y * taeda.zeros(2, dtype=taeda.float64)).sum()
        with pytest.raises(
            RuntimeError, match=r"(?s)Function 'SqrtBackward0' returned nan values in its 0th output.*the culprit"
        ):
            z.backward()
    z = (x.sqrt() * taeda.zeros(2, dtype=taeda.float64)).sum()
    z.backward()


def test_nan_is_not_looked_for_if_not_asked():
    x = leaf(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = autograd.detect_anomaly(check_nan=False)
    with mode:
        (x.sqrt() * 0).sum().backward()


def test_an_error_in_backward_names_its_forward_line():
    class Fails(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("on purpose")

    x = leaf(1.0)
    with quiet():
        y = Fails.apply(x)  # made here
        with pytest.raises(ValueError, match="on purpose") as caught:
            y.backward()
    assert any("FailsBackward" in note and "made here" in note for note in caught.value.__notes__)


def test_a_tensor_changed_since_is_traced_too():
    x = leaf(1.0)
    with quiet():
        h = x * 1
        y = h.exp() * h  # needs h
        h.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
            y.backward()
    assert any("needs h" in note for note in caught.value.__notes__)


def test_switching():
    x = leaf(0.0)
    with autograd.set_detect_anomaly(True):
        y = (x.sqrt() * 0).sum()
        with autograd.set_detect_anomaly(False):
            y.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="nan values"):
            y.backward()
    autograd.set_detect_anomaly(True)
    autograd.set_detect_anomaly(False)
    (x.sqrt() * 0).sum().backward()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        autograd.detect_anomaly()


def test_state():
    assert not taeda.is_anomaly_enabled()
    with autograd.set_detect_anomaly(True, check_nan=False):
        assert taeda.is_anomaly_enabled() and not taeda.is_anomaly_check_nan_enabled()
    taeda.set_anomaly_enabled(True)
    assert taeda.is_anomaly_enabled() and taeda.is_anomaly_check_nan_enabled()
    taeda.set_anomaly_enabled(False)
    assert not taeda.is_anomaly_enabled()


class Root(nn.Module):
    def forward(self, x):
        return x.sqrt()  # of negative numbers


def test_nan_of_the_forward_pass_is_traced_to_its_op_module_and_line():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), Root()), nn.Linear(3, 1))
    with taeda.no_grad():
        model[0].weight.fill_(-1)
        model[0].bias.fill_(2)
        model[1][0] = nn.Identity()
    with quiet():
        loss = model(taeda.ones(2, 3)).sum()
        with pytest.raises(RuntimeError, match="returned nan values in its 0th output") as caught:
            loss.backward()
    text = str(caught.value)
    assert "Function 'sqrt' of the forward pass" in text and "from finite values" in text
    assert "module: 1.1 = Root() of Sequential" in text and "of negative numbers" in text
    assert all(p.grad is None for p in model.parameters())


def test_nan_that_comes_in_is_told_apart():
    x = leaf(1.0)
    with quiet(), pytest.raises(RuntimeError, match=r"'mul'.* was given NaN, which came in from outside"):
        (x * taeda.tensor([float("nan")])).sum().backward()
    with quiet(), pytest.raises(RuntimeError, match=r"'sub'.*from infinite values"):
        y = 1 / (x - 1)
        (y - y).sum().backward()


def test_nan_that_the_program_replaces_is_no_fault():
    x = leaf(-1.0, 2.0)
    with quiet():
        taeda.where(x > 0, x.log(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.5]


def test_nan_written_in_place_and_by_a_function():
    class Bad(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * float("nan")

        @staticmethod
        def backward(ctx, g):
            return g

    with quiet(), pytest.raises(RuntimeError, match="Function 'Bad' of the forward pass"):
        Bad.apply(leaf(1.0)).sum().backward()
    with quiet(), pytest.raises(RuntimeError, match="Function 'log_' of the forward pass"):
        (leaf(-1.0) * 1).log_().sum().backward()


def test_nan_of_a_gradient_names_the_module():
    model = nn.Sequential(nn.Linear(3, 3), Root())
    with taeda.no_grad():
        model[0].weight.zero_()
        model[0].bias.zero_()
    with quiet(), pytest.raises(RuntimeError, match=r"(?s)SqrtBackward0.*module: 1 = Root\(\) of Sequential"):
        (model(taeda.ones(2, 3)) * 0).sum().backward()


def test_modules_are_followed_only_while_it_is_on():
    from taeda._core.callbacks import callbacks

    seen = []

    class Looks(nn.Module):
        def forward(self, x):
            seen.append(callbacks.modules_under_way())
            return x

    outer = nn.Sequential(Looks())
    outer(taeda.ones(1))
    with autograd.set_detect_anomaly(True):
        outer(taeda.ones(1))
    outer(taeda.ones(1))
    assert seen == [(), (outer, outer[0]), ()] and callbacks.modules_under_way() == ()


def test_a_nan_is_found_wherever_it_is():
    has_nan = taeda._core.has_nan
    for n in (1, 7, 2048, 2049):
        for dtype in (taeda.float32, taeda.float64, taeda.bfloat16, taeda.complex64):
            x = taeda.zeros(n, dtype=dtype)
            x[0] = float("inf")
            assert not has_nan(x)
            x[n - 1] = float("nan")
            assert has_nan(x) and has_nan(x.conj()) and has_nan(x[None].expand(3, n)) and not has_nan(x[: n - 1])
    x = taeda.zeros(3, 4)
    x[1, 2] = float("nan")
    assert has_nan(x.t()) and has_nan(x[:, 2]) and not has_nan(x[:, 1]) and not has_nan(x[2]) and has_nan(x * 2)
    assert not has_nan(taeda.zeros(0)) and not has_nan(taeda.zeros(2, device="meta")) and not has_nan(3.0)
