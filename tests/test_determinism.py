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


# ---- whole training steps of programs that people train ---------------------------------------------------------------


class CharGPT(nn.Module):
    """Two blocks of attention and MLP over characters."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(65, 64), nn.Embedding(32, 64)
        self.blocks = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64), nn.LayerNorm(64)]) for _ in range(2)
        )
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(2))
        self.head = nn.Linear(64, 65)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(taeda.arange(tokens.shape[1]))
        for (norm, qkv, out, second), mlp in zip(self.blocks, self.mlps, strict=True):
            q, k, v = (t.unflatten(-1, (4, 16)).transpose(1, 2) for t in qkv(norm(x)).chunk(3, -1))
            x = x + out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            x = x + mlp(second(x))
        return self.head(x).flatten(0, 1)


class ConvNet(nn.Module):
    """Convolutions with stride, groups and without, batch norm, a residual, pooling."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.same = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.depthwise = nn.Sequential(nn.Conv2d(32, 32, 3, 2, 1, groups=32), nn.Conv2d(32, 64, 1), nn.BatchNorm2d(64))
        self.head = nn.Linear(64, 10)

    def forward(self, image):
        x = self.first(image)
        return self.head(F.relu(self.depthwise(x + self.same(x))).mean((2, 3)))


class Recurrent(nn.Module):
    """Two layers of LSTM and one of GRU over embedded words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(200, 48)
        self.lstm, self.gru = nn.LSTM(48, 64, 2, dropout=0.2), nn.GRU(64, 64, bidirectional=True)
        self.head = nn.Linear(128, 200)

    def forward(self, tokens):
        return self.head(self.gru(self.lstm(self.words(tokens))[0])[0]).flatten(0, 1)


PROGRAMS = {
    "char-GPT, AdamW": (
        CharGPT,
        lambda: (taeda.randint(65, (12, 32)), taeda.randint(65, (12 * 32,))),
        lambda parameters: taeda.optim.AdamW(parameters, lr=1e-2),
    ),
    "convolutions, SGD": (
        ConvNet,
        lambda: (taeda.randn(16, 3, 32, 32), taeda.randint(10, (16,))),
        lambda parameters: taeda.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4),
    ),
    "convolutions, channels last": (
        lambda: ConvNet().to(memory_format=taeda.channels_last),
        lambda: (taeda.randn(16, 3, 32, 32), taeda.randint(10, (16,))),
        lambda parameters: taeda.optim.SGD(parameters, lr=0.1, momentum=0.9),
    ),
    "LSTM and GRU, SGD": (
        Recurrent,
        lambda: (taeda.randint(200, (20, 16)), taeda.randint(200, (320,))),
        lambda parameters: taeda.optim.SGD(parameters, lr=0.5),
    ),
}


def train_program(name: str, threads: int) -> list[bytes]:
    """The bits of the losses, parameters, buffers and gradients after three steps."""
    make, make_data, make_optimizer = PROGRAMS[name]
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        taeda.manual_seed(0)
        net = make()
        optimizer = make_optimizer(net.parameters())
        inputs, target = make_data()
        losses = []
        for _ in range(3):
            loss = F.cross_entropy(net(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        kept = [*losses, *net.state_dict().values(), *(p.grad for p in net.parameters())]
        return [t.detach().numpy().tobytes() for t in kept]
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_steps_are_the_same_bits(name):
    single = train_program(name, 1)
    for threads in (1, 2, 4, 8):
        assert train_program(name, threads) == single, f"{threads} threads"


@pytest.mark.parametrize("threads", [2, 5])
def test_large_reductions_do_not_depend_on_threads(threads):
    taeda.manual_seed(1)
    x = taeda.randn(3_000_001)
    functions = (taeda.sum, taeda.mean, taeda.var, taeda.logsumexp, taeda.norm, lambda t: t.cumsum(0)[-1])
    calls = [lambda f=f: f(x, 0) if f is taeda.logsumexp else f(x) for f in functions]
    calls += [lambda: x[:-1].reshape(1000, 3000).sum(0), lambda: x[:-1].reshape(1000, 3000) @ x[:3000]]
    taeda.set_num_threads(1)
    expected = [call().numpy().tobytes() for call in calls]
    taeda.set_num_threads(threads)
    assert [call().numpy().tobytes() for call in calls] == expected


@pytest.mark.parametrize("shape", [(600, 4100), (5000, 260), (3, 700, 1100)])
def test_sums_over_leading_dimensions_do_not_depend_on_threads(shape):
    """Columns whose sums live in memory, and those beside them that fill no tile."""
    taeda.manual_seed(2)
    x = taeda.randn(*shape)
    dim, found = len(shape) - 2, set()
    for threads in (1, 2, 4, 8):
        taeda.set_num_threads(threads)
        found.add(x.sum(dim).numpy().tobytes() + x.amax(dim).numpy().tobytes())
    assert len(found) == 1
    want = x.numpy().astype("float64").sum(dim)
    assert abs(x.sum(dim).numpy() - want).max() < 1e-5 * abs(want).max()
    assert (x.amax(dim).numpy() == x.numpy().max(dim)).all()
