"""Training is bitwise the same whatever the number of threads, and from run to run."""

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F


class Net(nn.Module):
    """A little of everything that has a kernel of its own."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.embed = nn.Embedding(50, 64)
        self.norm = nn.LayerNorm(64)
        self.qkv = nn.Linear(64, 192)
        self.lstm = nn.LSTM(64, 32, batch_first=True)
        self.head = nn.Linear(16 * 16 + 32, 10)

    def forward(self, image, tokens):
        x = F.max_pool2d(F.gelu(self.bn(self.conv(image))), 8)
        y = self.norm(self.embed(tokens))
        q, k, v = self.qkv(y).reshape(*y.shape[:2], 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(y.shape)
        y = self.lstm(y)[0].mean(1)
        return self.head(F.dropout(taeda.cat([x.flatten(1), y], 1), 0.1))


def train(threads: int) -> list[bytes]:
    """The bits of every parameter after three steps."""
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        taeda.manual_seed(0)
        net = Net()
        optimizer = taeda.optim.AdamW(net.parameters(), lr=1e-2)
        image, tokens = taeda.randn(16, 3, 32, 32), taeda.randint(50, (16, 48))
        target = taeda.randint(10, (16,))
        for _ in range(3):
            loss = F.cross_entropy(net(image, tokens), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        return [loss.detach().numpy().tobytes()] + [p.detach().numpy().tobytes() for p in net.parameters()]
    finally:
        taeda.set_num_threads(before)


@pytest.fixture(scope="module")
def single():
    return train(1)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8])
def test_training_does_not_depend_on_threads(single, threads):
    assert train(threads) == single


@pytest.mark.parametrize("threads", [2, 5])
def test_large_reductions_do_not_depend_on_threads(threads):
    taeda.manual_seed(1)
    x = taeda.randn(3_000_001)
    functions = (taeda.sum, taeda.mean, taeda.var, taeda.logsumexp, taeda.norm, lambda t: t.cumsum(0)[-1])
    calls = [lambda f=f: f(x, 0) if f is taeda.logsumexp else f(x) for f in functions]
    calls += [lambda: x[:-1].reshape(1000, 3000).sum(0), lambda: x[:-1].reshape(1000, 3000) @ x[:3000]]
    before = taeda.get_num_threads()
    try:
        taeda.set_num_threads(1)
        expected = [call().numpy().tobytes() for call in calls]
        taeda.set_num_threads(threads)
        assert [call().numpy().tobytes() for call in calls] == expected
    finally:
        taeda.set_num_threads(before)
