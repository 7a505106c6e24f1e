"""Training curves: with equal seeds, ordinary programs follow PyTorch's, initial weights included."""

import math

import numpy as np
import pytest

import taeda
import taeda.nn
import taeda.optim

torch = pytest.importorskip("torch")


def mlp(L):
    nn = L.nn
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))
    x, y = L.randn(40, 8), L.randint(0, 3, (40,))
    return model, L.optim.Adam(model.parameters(), lr=0.01), lambda: nn.functional.cross_entropy(model(x), y)


def cnn(L):
    nn = L.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, bias=False),
        nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
    x, y = L.randn(16, 1, 8, 8), L.randint(0, 4, (16,))
    optimizer = L.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    return model, optimizer, lambda: nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)


def language_model(kind):
    def make(L):
        nn = L.nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(20, 12)
                self.rnn = getattr(nn, kind)(12, 16, num_layers=2)
                self.head = nn.Linear(16, 20)

            def forward(self, x):
                return self.head(self.rnn(self.embed(x))[0])

        model = Model()
        data = L.randint(0, 20, (9, 4))

        def loss():
            return nn.functional.cross_entropy(model(data[:-1]).reshape(-1, 20), data[1:].reshape(-1))

        return model, L.optim.AdamW(model.parameters(), lr=0.01), loss

    make.__name__ = kind.lower()
    return make


def gpt(L):
    nn = L.nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(16, 24), nn.Embedding(12, 24)
            self.blocks = nn.Sequential(*[Block(24, 3) for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, 16, bias=False)
            self.head.weight = self.tokens.weight
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02 / math.sqrt(2))

        def forward(self, x):
            return self.head(self.norm(self.blocks(self.tokens(x) + self.places(L.arange(x.shape[1])))))

    model = Model()
    data = L.randint(0, 16, (4, 13))
    optimizer = L.optim.AdamW(model.parameters(), lr=0.003, betas=(0.9, 0.95), weight_decay=0.1)

    def loss():
        value = nn.functional.cross_entropy(model(data[:, :-1]).flatten(0, 1), data[:, 1:].flatten())
        return value

    return model, optimizer, loss


def variational(L):
    nn = L.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(10, 16), nn.Softplus())
            self.mean, self.log_var = nn.Linear(16, 3), nn.Linear(16, 3)
            self.decode = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(), nn.Linear(16, 10))

        def forward(self, x):
            h = self.encode(x)
            mean, log_var = self.mean(h), self.log_var(h)
            z = mean + L.randn_like(mean) * (0.5 * log_var).exp()
            return self.decode(z), mean, log_var

    model = Model()
    x = L.rand(20, 10)

    def loss():
        y, mean, log_var = model(x)
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum()
        return (nn.functional.binary_cross_entropy_with_logits(y, x, reduction="sum") + kl) / 20

    return model, L.optim.RMSprop(model.parameters(), lr=0.003), loss


def adversarial(L):
    nn = L.nn
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6), nn.Sigmoid())
    critic = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    a, b = L.optim.Adam(generator.parameters(), lr=0.002), L.optim.Adam(critic.parameters(), lr=0.002)
    real = L.rand(16, 6)
    bce = nn.BCEWithLogitsLoss()

    class Both:
        @staticmethod
        def zero_grad():
            a.zero_grad()
            b.zero_grad()

        @staticmethod
        def step():
            a.step()

    def loss():
        fake = generator(L.randn(16, 4))
        b.zero_grad()
        (bce(critic(real), L.ones(16, 1)) + bce(critic(fake.detach()), L.zeros(16, 1))).backward()
        b.step()
        return bce(critic(fake), L.ones(16, 1))

    return nn.ModuleList([generator, critic]), Both, loss


def transformer(L):
    nn = L.nn
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
    x, y = L.randn(3, 5, 16), L.randn(3, 4, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    optimizer = L.optim.NAdam(model.parameters(), lr=0.002)

    def loss():
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return nn.functional.smooth_l1_loss(model(x, y, tgt_mask=mask), y)

    return model, optimizer, loss


PROGRAMS = [mlp, cnn, language_model("LSTM"), language_model("GRU"), gpt, variational, adversarial, transformer]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_curve(program):
    """20 steps: losses to 1e-4, starting from equal weights."""
    curves, weights = [], []
    for L in (taeda, torch):
        L.manual_seed(0)
        model, optimizer, loss = program(L)
        weights.append([np.array(p.tolist()) for p in model.parameters()])
        curve = []
        for _ in range(20):
            value = loss()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            curve.append(value.item())
        curves.append(curve)
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-4)
    assert curves[0][-1] != curves[0][0]
