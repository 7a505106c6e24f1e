"""Anomaly detection: the failing node and the forward line that recorded it are named."""

import warnings

import pytest

import taeda
from taeda import autograd


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
