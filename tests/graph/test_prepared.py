"""Weights that a kernel wants in another order are put into it once, until somebody writes to them."""

import copy

import pytest

import taeda as T
from taeda import nn
from taeda._core import fusion
from taeda._core.planning import count_prepared


@pytest.fixture
def model():
    T.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128),
    )  # fmt: skip
    for part in model:
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    return model.eval()


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_writes_are_noticed(model, mode):
    x, fast = T.randn(4, 3, 96, 96), T.compile(model, mode=mode)
    weight = model[3].weight
    writes = [
        lambda: None,
        lambda: weight.mul_(1.5),
        lambda: model[0].weight[0].fill_(0.3),
        lambda: weight.data.add_(0.01),
        lambda: weight.untyped_storage().fill_(60),
        lambda: weight.numpy().__imul__(2),
        lambda: model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()}),
        lambda: setattr(model[6], "weight", nn.Parameter(model[6].weight + 1)),
    ]
    with T.no_grad():
        for write in writes:
            write()
            for _ in range(4):
                assert T.equal(fast(x), model(x))


def test_what_stays_is_prepared_once(model):
    x, fast = T.randn(4, 3, 96, 96), T.compile(model)
    with T.no_grad():
        for _ in range(5):
            model(x)
        assert count_prepared(model[3].weight) == 0  # only if ops are deferred
        for _ in range(3):
            fast(x)
        assert count_prepared(model[3].weight) == 1
        weight = model[3].weight
        for _ in range(3):  # what every call finds changed is not worth the memory
            weight.mul_(1.01)
            assert T.equal(fast(x), model(x))
        assert count_prepared(weight) == 0


def test_training_keeps_nothing(model):
    x, fast = T.randn(4, 3, 96, 96), T.compile(model)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        fast(x).square().mean().backward()
        optimizer.step()
    assert all(count_prepared(p) == 0 for p in model.parameters())


def test_batch_norm_goes_with_what_follows(model):
    x, fast, kernels = T.randn(4, 3, 96, 96), T.compile(model), []
    before = fusion.watch(lambda names, *_: kernels.append(tuple(names)))
    try:
        with T.no_grad():
            fast(x)
    finally:
        fusion.watch(before)
    assert kernels == [("normalized", "relu"), ("normalized", "relu"), ("normalized",)]


@pytest.mark.parametrize("shape", [(2, 5, 300, 300), (40, 6, 1, 20000), (1, 3, 40000), (2, 4, 8, 128, 160)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_in_one_pass(shape, affine):
    torch = pytest.importorskip("torch")
    x, mean, var = (torch.randn(n) for n in (shape, shape[1], shape[1]))
    var = var.abs() + 0.5
    weight, bias = (torch.randn(shape[1]) if affine else None for _ in range(2))
    given = [x, mean, var, weight, bias]
    ours = [None if t is None else T.from_numpy(t.numpy()) for t in given]
    got = nn.functional.batch_norm(*ours)
    want = torch.nn.functional.batch_norm(*given)
    assert abs(torch.from_numpy(got.numpy()) - want).max() <= 2e-5
    with pytest.raises(RuntimeError, match="running_mean to be a vector of size"):
        nn.functional.batch_norm(ours[0], ours[1][:-1], *ours[2:])


def test_saving_and_copying_show_nothing(model, tmp_path):
    x, fast = T.randn(4, 3, 96, 96), T.compile(model)
    T.save(model.state_dict(), tmp_path / "model.pt")
    T.save(model.state_dict(), tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    copy.deepcopy(model).load_state_dict(T.load(tmp_path / "model.pt"))
    with T.no_grad():
        for _ in range(3):
            fast(x)
    assert count_prepared(model[3].weight) == 1
    view = model[3].weight.untyped_storage()._readable()
    with pytest.raises(RuntimeError, match="not resizable"):
        model[3].weight.untyped_storage().resize_(view.nbytes * 2)
    with pytest.raises(TypeError):
        view[0] = 1
