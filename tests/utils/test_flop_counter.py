"""FlopCounterMode beside PyTorch's, and the tracker of running modules."""

import pytest

import taeda
from taeda.utils.flop_counter import FlopCounterMode, register_flop_formula
from taeda.utils.module_tracker import ModuleTracker


def _net(T):
    nn = T.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ReLU())
            self.t = nn.ConvTranspose2d(8, 4, 2)
            self.l = nn.Linear(4 * 5 * 5, 16)
            self.end = nn.Linear(8, 3, bias=False)

        def forward(self, x):
            return self.end(self.l(self.t(self.c(x)).flatten(1)).reshape(2, 4, 8))

    return Net()


def _count(T, counter, work):
    T.manual_seed(0)
    with counter(display=False) as mode:
        work(T)
    return mode


def _train(T):
    x = T.randn(4, 4, 8, 8, requires_grad=True)
    _net(T)(x).sum().backward()


def _products(T):
    a, b = (T.randn(*n, requires_grad=True) for n in ((3, 4, 5), (3, 5, 6)))
    (a @ b).sum().backward()
    T.addmm(T.randn(2, 3), T.randn(2, 4), T.randn(4, 3)).sum()
    T.baddbmm(T.randn(3, 2, 3), T.randn(3, 2, 4), T.randn(3, 4, 3)).sum()
    T.mm(T.randn(4, 7), T.randn(7, 2))


@pytest.mark.parametrize("work", [_train, _products])
def test_counts_are_pytorchs(work):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    ours, theirs = _count(taeda, FlopCounterMode, work), _count(torch, Theirs, work)
    expected = {module: {str(op): n for op, n in counts.items()} for module, counts in theirs.get_flop_counts().items()}
    assert ours.get_flop_counts() == expected
    assert ours.get_total_flops() == theirs.get_total_flops() > 0


def test_attention_and_recurrence():
    q, k, v = taeda.randn(2, 4, 6, 8), taeda.randn(2, 2, 10, 8), taeda.randn(2, 2, 10, 8)
    with FlopCounterMode(display=False) as mode:
        taeda.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert mode.get_total_flops() == 2 * (2 * 4 * 6) * 10 * (8 + 8)
    q = taeda.randn(2, 4, 6, 8, requires_grad=True)
    with FlopCounterMode(display=False) as mode:
        taeda.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    counts = mode.get_flop_counts()["Global"]
    assert counts["aten._scaled_dot_product_flash_attention_backward"] == 2 * (2 * 4 * 6) * 6 * 8 * 5
    lstm = taeda.nn.LSTM(5, 7)
    with FlopCounterMode(display=False) as mode:
        lstm(taeda.randn(3, 2, 5))
    assert mode.get_total_flops() == 2 * (3 * 2) * 28 * (5 + 7)


def test_beside_a_profile_and_another_counter():
    x = taeda.randn(2, 5)
    layer = taeda.nn.Linear(5, 7)
    with taeda.profiler.profile() as prof, FlopCounterMode(display=False) as outer:
        with FlopCounterMode(display=False) as mode:
            layer(x)
            taeda.func.vmap(lambda row: taeda.nn.functional.linear(row, layer.weight))(x)
        layer(x)
    assert mode.get_total_flops() == 2 * 2 * 2 * 5 * 7 and outer.get_total_flops() == 3 * 2 * 2 * 5 * 7
    assert [e.name for e in prof.events()].count("aten::linear") >= 3


def test_table(capsys):
    with FlopCounterMode():
        _net(taeda)(taeda.ones(4, 4, 8, 8))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Module", "FLOP", "%", "Total"]
    assert any(line.startswith("Net ") and line.endswith("100.00%") for line in lines)
    assert not any(line.startswith("Global") for line in lines)  # the outermost module says the same
    assert any(line.startswith("  - aten.convolution") for line in lines)


def test_own_formulas():
    with FlopCounterMode(display=False, custom_mapping={taeda.exp: lambda x, out_shape=None: 7 * len(x)}) as mode:
        taeda.ones(2, 3).exp()
        taeda.ones(2) @ taeda.ones(2)
    assert mode.get_flop_counts() == {"Global": {"aten.exp": 14, "aten.dot": 4}}
    with pytest.raises(ValueError, match="to be an op"):
        register_flop_formula(3)(len)


def test_inside_other_modes():
    with FlopCounterMode(display=False) as mode, taeda.autocast("cpu"):
        assert (taeda.ones(2, 3) @ taeda.ones(3, 4)).dtype == taeda.bfloat16
    assert mode.get_total_flops() == 2 * 2 * 3 * 4
    with FlopCounterMode(display=False) as mode:
        taeda.vmap(lambda a, b: a @ b)(taeda.ones(5, 2, 3), taeda.ones(5, 3, 4))
    assert mode.get_total_flops() == 5 * 2 * 2 * 3 * 4


def test_module_tracker():
    net, seen = _net(taeda), []
    with ModuleTracker() as tracker:
        net.l.register_forward_pre_hook(lambda *_: seen.append((set(tracker.parents), tracker.is_bw)))
        x = taeda.ones(4, 4, 8, 8, requires_grad=True)
        out = net(x)
        out.register_hook(lambda g: seen.append((set(tracker.parents), tracker.is_bw)))
        out.sum().backward()
    assert seen[0] == ({"Global", "Net", "Net.l"}, False)
    assert seen[1][1] and tracker.parents == {"Global"}
