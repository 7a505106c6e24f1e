"""Programs beyond those of ``workloads.py``: further families of models, each in its usual form, at a size of some
megabytes.

As there, each is written once against a framework module ``T`` and gives a step that returns its loss.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def train(
    T: Any, parameters: Any, loss: Callable[[], Any], make_optimizer: Callable[[Any], Any], half: bool = False
) -> Step:
    """Forward, backward and update; the loss before the update. ``half``: forward under autocast to bfloat16."""
    optimizer = make_optimizer(parameters)

    def step():
        with T.autocast("cpu", dtype=T.bfloat16, enabled=half):
            value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value

    return step


# ---- transformers ----------------------------------------------------------------------------------------------------
def bert(T: Any, width=256, vocabulary=8000, half=False) -> Step:
    """Masked language model: 6 layers of ``nn.TransformerEncoder``, 4 heads, 8 x 128 tokens of which some are
    padding."""
    nn, F = T.nn, T.nn.functional
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    token, position, norm = nn.Embedding(vocabulary, width), nn.Embedding(128, width), nn.LayerNorm(width)
    model = nn.ModuleList([encoder, token, position, norm])
    nn.init.normal_(token.weight, std=0.02)
    words = T.randint(1, vocabulary, (8, 128))
    padding = T.arange(128)[None, :] >= T.tensor([128, 128, 120, 110, 100, 90, 64, 40])[:, None]
    hidden = (T.rand(8, 128) < 0.15) & ~padding
    x, y = words.masked_fill(hidden, 0), words.masked_fill(~hidden, -100)

    def loss():
        h = encoder(norm(token(x) + position(T.arange(128))), src_key_padding_mask=padding)
        return F.cross_entropy(F.linear(h, token.weight).view(-1, vocabulary), y.view(-1))

    return train(T, model.parameters(), loss, lambda p: T.optim.AdamW(p, lr=1e-4), half)


def vision_transformer(T: Any, width=192) -> Step:
    """ViT-tiny (Dosovitskiy et al. 2021) with 4 of its 12 blocks: 4 images of 224 pixels in patches of 16."""
    nn, F = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, 3, width // 3).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out(y.transpose(1, 2).reshape(b, n, width))
            return x + self.mlp(self.norm2(x))

    patches, blocks = nn.Conv2d(3, width, 16, 16), nn.Sequential(*(Block() for _ in range(4)))
    head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1000))
    model = nn.ModuleList([patches, blocks, head])
    first, position = nn.Parameter(T.zeros(1, 1, width)), nn.Parameter(T.randn(1, 197, width) * 0.02)
    x, y = T.randn(4, 3, 224, 224), T.randint(0, 1000, (4,))

    def loss():
        h = patches(x).flatten(2).transpose(1, 2)
        h = T.cat([first.expand(4, -1, -1), h], 1) + position
        return F.cross_entropy(head(blocks(h)[:, 0]), y, label_smoothing=0.1)

    parameters = [*model.parameters(), first, position]
    return train(T, parameters, loss, lambda p: T.optim.AdamW(p, lr=1e-4))


# ---- images ----------------------------------------------------------------------------------------------------------
def convnext(T: Any) -> Step:
    """Blocks of ConvNeXt (Liu et al. 2022), 48 to 192 channels, on 4 images of 96 pixels."""
    nn, F = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.mlp = nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )
            self.scale = nn.Parameter(1e-6 * T.ones(width))

        def forward(self, x):
            y = self.mlp(self.depthwise(x).permute(0, 2, 3, 1))
            return x + (self.scale * y).permute(0, 3, 1, 2)

    layers: list[Any] = [nn.Conv2d(3, 48, 4, 4), Block(48), Block(48)]
    for width in (96, 192):
        layers += [nn.GroupNorm(1, width // 2), nn.Conv2d(width // 2, width, 2, 2), Block(width), Block(width)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(192), nn.Linear(192, 10))
    x, y = T.randn(4, 3, 96, 96), T.randint(0, 10, (4,))
    return train(T, model.parameters(), lambda: F.cross_entropy(model(x), y), lambda p: T.optim.AdamW(p, lr=1e-4))


def resnet50(T: Any) -> Step:
    """ResNet-50 on 4 images of 128 pixels, SGD with momentum."""
    nn, F = T.nn, T.nn.functional

    class Bottleneck(nn.Module):
        def __init__(self, before: int, width: int, stride: int):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width),
            )  # fmt: skip
            nn.init.zeros_(self.layers[-1].weight)  # a block begins as its shortcut (Goyal et al. 2017)
            self.short: Any = None
            if before != 4 * width:
                conv = nn.Conv2d(before, 4 * width, 1, stride, bias=False)
                self.short = nn.Sequential(conv, nn.BatchNorm2d(4 * width))

        def forward(self, x):
            return F.relu(self.layers(x) + (x if self.short is None else self.short(x)))

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(before, width, stride if i == 0 else 1))
            before = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    x, y = T.randn(4, 3, 128, 128), T.randint(0, 1000, (4,))
    return train(
        T, model.parameters(), lambda: F.cross_entropy(model(x), y), lambda p: T.optim.SGD(p, lr=1e-3, momentum=0.9)
    )


def dcgan(T: Any) -> Step:
    """Generator and discriminator of DCGAN (Radford et al. 2016) in turn, 16 images of 32 pixels."""
    nn = T.nn
    generator = nn.Sequential(
        nn.ConvTranspose2d(64, 256, 4, 1, 0, bias=False), nn.BatchNorm2d(256), nn.ReLU(),
        nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(),
        nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2),
        nn.Conv2d(128, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.LeakyReLU(0.2),
        nn.Conv2d(256, 1, 4, 1, 0, bias=False), nn.Flatten(0),
    )  # fmt: skip
    optimizers = [T.optim.Adam(m.parameters(), lr=2e-5, betas=(0.5, 0.999)) for m in (generator, critic)]
    entropy = T.nn.functional.binary_cross_entropy_with_logits
    real, noise, yes, no = T.rand(16, 3, 32, 32) * 2 - 1, T.randn(16, 64, 1, 1), T.ones(16), T.zeros(16)

    def step():
        fake = generator(noise)
        optimizers[1].zero_grad()
        found = entropy(critic(real), yes) + entropy(critic(fake.detach()), no)
        found.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        fooled = entropy(critic(fake), yes)
        fooled.backward()
        optimizers[0].step()
        return found + fooled

    return step


def diffusion(T: Any) -> Step:
    """A denoising U-Net (Ho et al. 2020): group norm, time embedding, attention; 8 images of 32 pixels, Adam."""
    nn, F = T.nn, T.nn.functional

    class Residual(nn.Module):
        def __init__(self, before: int, after: int):
            super().__init__()
            self.norm1, self.conv1 = nn.GroupNorm(8, before), nn.Conv2d(before, after, 3, padding=1)
            self.norm2, self.conv2 = nn.GroupNorm(8, after), nn.Conv2d(after, after, 3, padding=1)
            self.time = nn.Linear(128, after)
            self.short = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

        def forward(self, x, t):
            h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
            return self.conv2(F.silu(self.norm2(h))) + self.short(x)

    class Attention(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.norm, self.qkv, self.out = (
                nn.GroupNorm(8, width),
                nn.Conv1d(width, 3 * width, 1),
                nn.Conv1d(width, width, 1),
            )

        def forward(self, x):
            b, c, h, w = x.shape
            q, k, v = self.qkv(self.norm(x).view(b, c, h * w)).view(b, 3, 4, c // 4, h * w).unbind(1)
            weights = T.softmax(T.einsum("bhct,bhcs->bhts", q * (c // 4) ** -0.5, k), -1)
            y = T.einsum("bhts,bhcs->bhct", weights, v).reshape(b, c, h * w)
            return x + self.out(y).view(b, c, h, w)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(32, 128), nn.SiLU(), nn.Linear(128, 128))
            self.first, self.last = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
            self.down1, self.down2, self.down3 = Residual(32, 32), Residual(32, 64), Residual(64, 128)
            self.half1, self.half2 = nn.Conv2d(32, 32, 3, 2, 1), nn.Conv2d(64, 64, 3, 2, 1)
            self.attention, self.middle = Attention(128), Residual(128, 128)
            self.up2, self.up1, self.norm = Residual(192, 64), Residual(96, 32), nn.GroupNorm(8, 32)

        def forward(self, x, t):
            angles = t[:, None] * T.exp(-math.log(10000) * T.arange(16) / 16)[None]
            t = self.time(T.cat([angles.sin(), angles.cos()], -1))
            a = self.down1(self.first(x), t)
            b = self.down2(self.half1(a), t)
            c = self.middle(self.attention(self.down3(self.half2(b), t)), t)
            b = self.up2(T.cat([F.interpolate(c, scale_factor=2), b], 1), t)
            a = self.up1(T.cat([F.interpolate(b, scale_factor=2), a], 1), t)
            return self.last(F.silu(self.norm(a)))

    model = UNet()
    x, t, noise = T.randn(8, 3, 32, 32), T.randint(0, 1000, (8,)), T.randn(8, 3, 32, 32)
    return train(T, model.parameters(), lambda: F.mse_loss(model(x, t), noise), lambda p: T.optim.Adam(p, lr=2e-4))


# ---- sequences and graphs --------------------------------------------------------------------------------------------
def translation(T: Any, vocabulary=2000, width=128) -> Step:
    """Bidirectional GRU, a decoder's cell with additive attention (Bahdanau et al. 2015): 16 pairs of 24 and 20
    words."""
    nn, F = T.nn, T.nn.functional
    source, target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
    encoder, cell = nn.GRU(width, width, bidirectional=True), nn.GRUCell(3 * width, width)
    bridge, query, key = nn.Linear(2 * width, width), nn.Linear(width, width), nn.Linear(2 * width, width)
    score, out = nn.Linear(width, 1, bias=False), nn.Linear(4 * width, vocabulary)
    model = nn.ModuleList([source, target, encoder, cell, bridge, query, key, score, out])
    x, given, y = (T.randint(0, vocabulary, (n, 16)) for n in (24, 20, 20))

    def loss():
        states, last = encoder(source(x))
        h, states = T.tanh(bridge(T.cat([last[0], last[1]], 1))), states.transpose(0, 1)
        keys, words = key(states), []
        for t in range(20):
            weights = F.softmax(score(T.tanh(query(h)[:, None] + keys)).squeeze(-1), 1)
            context, word = T.bmm(weights[:, None], states).squeeze(1), target(given[t])
            h = cell(T.cat([word, context], 1), h)
            words.append(out(T.cat([h, context, word], 1)))
        return F.cross_entropy(T.stack(words).view(-1, vocabulary), y.view(-1))

    return train(T, model.parameters(), loss, lambda p: T.optim.Adam(p, lr=1e-3))


def sentiment(T: Any) -> Step:
    """Bidirectional LSTM of two layers on 16 sentences of 5 to 60 words, packed in the order in which they come."""
    nn, F = T.nn, T.nn.functional
    words, lstm, head = nn.Embedding(5000, 100), nn.LSTM(100, 128, 2, bidirectional=True), nn.Linear(256, 2)
    model = nn.ModuleList([words, lstm, head])
    lengths = T.tensor([60, 13, 44, 7, 51, 33, 29, 58, 17, 60, 41, 5, 22, 38, 49, 11])
    x, y = T.randint(0, 5000, (60, 16)), T.randint(0, 2, (16,))

    def loss():
        packed = nn.utils.rnn.pack_padded_sequence(words(x), lengths, enforce_sorted=False)
        _, (h, _) = lstm(packed)
        return F.cross_entropy(head(T.cat([h[-2], h[-1]], 1)), y)

    return train(T, model.parameters(), loss, lambda p: T.optim.Adam(p, lr=1e-3))


def graph_attention(T: Any, nodes=2708, edges=10556, heads=8, width=8) -> Step:
    """A layer of GAT (Velickovic et al. 2018) by ``scatter_reduce``, ``scatter_add`` and ``index_add``; Cora's size."""
    nn, F = T.nn, T.nn.functional
    source, target = T.randint(0, nodes, (edges,)), T.randint(0, nodes, (edges,))
    x, y = T.randn(nodes, 256), T.randint(0, 7, (nodes,))
    project, head = nn.Linear(256, heads * width, bias=False), nn.Linear(heads * width, 7)
    to, of = (nn.Parameter(T.randn(heads, width) * 0.1) for _ in range(2))

    def loss():
        h = project(x).view(nodes, heads, width)
        e = F.leaky_relu((h * of).sum(-1)[source] + (h * to).sum(-1)[target], 0.2)
        most = T.full((nodes, heads), -1e30).scatter_reduce(0, target[:, None].expand(-1, heads), e, "amax")
        p = (e - most[target]).exp()
        total = T.zeros(nodes, heads).scatter_add(0, target[:, None].expand(-1, heads), p)
        p = p / (total[target] + 1e-16)
        met = T.zeros(nodes, heads, width).index_add(0, target, h[source] * p[..., None])
        return F.cross_entropy(head(F.elu(met.view(nodes, -1))), y)

    parameters = [*project.parameters(), *head.parameters(), to, of]
    return train(T, parameters, loss, lambda p: T.optim.Adam(p, lr=5e-3))


def recommender(T: Any, batch=256) -> Step:
    """Bags of six tables, products of all pairs, an MLP (DLRM, Naumov et al. 2019); Adagrad."""
    nn, F = T.nn, T.nn.functional
    bags = nn.ModuleList([nn.EmbeddingBag(10000, 32, mode="sum") for _ in range(6)])
    bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    top = nn.Sequential(nn.Linear(53, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    model = nn.ModuleList([bags, bottom, top])
    i, j = T.tril_indices(7, 7, -1)
    x, ids = T.randn(batch, 13), [T.randint(0, 10000, (5 * batch,)) for _ in range(6)]
    starts, y = T.arange(0, 5 * batch, 5), T.randint(0, 2, (batch,)).float()

    def loss():
        dense = bottom(x)
        features = T.stack([dense, *(bag(k, starts) for bag, k in zip(bags, ids, strict=True))], 1)
        pairs = T.bmm(features, features.transpose(1, 2))[:, i, j]
        return F.binary_cross_entropy_with_logits(top(T.cat([dense, pairs], 1)).squeeze(1), y)

    return train(T, model.parameters(), loss, lambda p: T.optim.Adagrad(p, lr=1e-2))


# ---- functions of space and time -------------------------------------------------------------------------------------
def radiance_field(T: Any) -> Step:
    """NeRF (Mildenhall et al. 2020): 8 layers of 256 on 64 points of each of 64 rays, Adam."""
    nn, F = T.nn, T.nn.functional
    layers = nn.ModuleList([nn.Linear({0: 63, 4: 319}.get(i, 256), 256) for i in range(8)])
    head = nn.Linear(256, 4)
    x, colour, step = T.randn(4096, 3), T.rand(64, 3), T.rand(64, 64) * 0.1

    def loss():
        waves = [f(2.0**i * x) for i in range(10) for f in (T.sin, T.cos)]
        h = code = T.cat([x, *waves], -1)
        for i, layer in enumerate(layers):
            h = F.relu(layer(T.cat([code, h], -1) if i == 4 else h))
        raw = head(h).view(64, 64, 4)
        opaque = 1 - T.exp(-F.relu(raw[..., 3]) * step)
        light = T.cumprod(T.cat([T.ones(64, 1), 1 - opaque + 1e-10], -1), -1)[:, :-1]
        return F.mse_loss(((opaque * light)[..., None] * T.sigmoid(raw[..., :3])).sum(1), colour)

    return train(T, [*layers.parameters(), *head.parameters()], loss, lambda p: T.optim.Adam(p, lr=5e-4))


def physics_informed(T: Any) -> Step:
    """Burgers' equation at 1000 points (Raissi et al. 2019): gradients of gradients through an MLP of 50."""
    nn = T.nn
    model = nn.Sequential(
        nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 1)
    )
    x, t = T.rand(1000, 1, requires_grad=True), T.rand(1000, 1, requires_grad=True)
    edge, value = T.rand(200, 2), T.rand(200, 1)

    def loss():
        u = model(T.cat([x, t], 1))
        one = T.ones_like(u)
        u_t, u_x = T.autograd.grad(u, (t, x), one, create_graph=True)
        (u_xx,) = T.autograd.grad(u_x, x, one, create_graph=True)
        inside = u_t + u * u_x - 0.01 / math.pi * u_xx
        return (inside**2).mean() + ((model(edge) - value) ** 2).mean()

    return train(T, model.parameters(), loss, lambda p: T.optim.Adam(p, lr=1e-3))


def policy(T: Any) -> Step:
    """A step of PPO (Schulman et al. 2017): two MLPs of 64, 64 states, clipped gradients."""
    nn = T.nn
    actor, critic = (
        nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n)) for n in (4, 1)
    )
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = T.optim.Adam(parameters, lr=2.5e-4, eps=1e-5)
    states, actions, advantage, returns = T.randn(64, 8), T.randint(0, 4, (64,)), T.randn(64), T.randn(64)
    with T.no_grad():
        before = T.distributions.Categorical(logits=actor(states)).log_prob(actions)

    def step():
        choice = T.distributions.Categorical(logits=actor(states))
        ratio = (choice.log_prob(actions) - before).exp()
        gain = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = T.max(-gain * ratio, -gain * T.clamp(ratio, 0.8, 1.2)).mean()
        error = 0.5 * ((critic(states).view(-1) - returns) ** 2).mean()
        loss = clipped - 0.01 * choice.entropy().mean() + 0.5 * error
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        return loss

    return step


PROGRAMS: dict[str, Callable[[Any], Step]] = {
    "BERT 6 layers, 256 wide, 8 x 128 tokens with padding, AdamW": bert,
    "the same BERT under autocast to bfloat16": functools.partial(bert, half=True),
    "ViT-tiny, 4 blocks, 224 px, batch 4, AdamW": vision_transformer,
    "ConvNeXt blocks, 96 px, batch 4, AdamW": convnext,
    "ResNet-50, 128 px, batch 4, SGD with momentum": resnet50,
    "DCGAN 32 px, batch 16, both networks, Adam": dcgan,
    "diffusion U-Net 32 px, batch 8, Adam": diffusion,
    "translation: GRU with attention, 24 to 20 words, batch 16": translation,
    "sentiment: bidirectional LSTM 2x128, packed, unsorted": sentiment,
    "graph attention, 2708 nodes, 8 heads": graph_attention,
    "recommender: 6 bags of 10000 x 32, batch 256, Adagrad": recommender,
    "radiance field: 8 layers of 256, 4096 points": radiance_field,
    "Burgers' equation: second derivatives, MLP of 50, 1000 points": physics_informed,
    "PPO: two MLPs of 64, 64 states": policy,
}
