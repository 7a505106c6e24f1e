"""What people train and run, written once against a framework module ``T`` (taeda or torch), for
``run.py --workloads``.

Each function gives the step to time; ``WORKLOADS`` pairs it with the highest ratio aimed at. Sizes are those of the
programs named; data are random.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import models
import programs
from programs import Step


def train(
    T: Any, model: Any, loss: Callable[[], Any], make_optimizer: Callable[[Any], Any], half: bool = False
) -> Step:
    """Forward, backward and update of all parameters; ``half``: forward under autocast to bfloat16."""
    return programs.train(T, model.parameters(), loss, make_optimizer, half)


# ---- transformers ----------------------------------------------------------------------------------------------------
def _gpt(T: Any, width: int, heads: int, layers: int, vocabulary: int, context: int) -> Any:
    """A GPT whose attention may keep keys and values of earlier positions."""
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x, cache=None, at=0):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
            if cache is not None:
                cache[0][:, :, at : at + t], cache[1][:, :, at : at + t] = k, v
                k, v = cache[0][:, :, : at + t], cache[1][:, :, : at + t]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
            return self.out(y.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, cache=None, at=0):
            x = x + self.attention(self.norm1(x), cache, at)
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x, caches=None, at=0):
            h = self.token(x) + self.position(T.arange(at, at + x.shape[1]))
            for i, block in enumerate(self.blocks):
                h = block(h, None if caches is None else caches[i], at)
            return self.head(self.norm(h))

    return GPT()


def gpt(T: Any, half: bool = False) -> Step:
    """4 layers, 8 heads, 512 wide, context 256, batch 4, vocabulary 8192, AdamW."""
    model = _gpt(T, 512, 8, 4, 8192, 256)
    window = T.randint(0, 8192, (4, 257))
    x, y = window[:, :-1].contiguous(), window[:, 1:].reshape(-1)
    cross_entropy = T.nn.functional.cross_entropy

    def loss():
        return cross_entropy(model(x).reshape(-1, 8192), y)

    return train(T, model, loss, lambda p: T.optim.AdamW(p, lr=1e-3), half)


def gpt_inference(T: Any) -> Step:
    """The same model on 64 tokens, batch 1."""
    model = _gpt(T, 512, 8, 4, 8192, 256).eval()
    x = T.randint(0, 8192, (1, 64))

    def step():
        with T.no_grad():
            return model(x)

    return step


def gpt_generation(T: Any) -> Step:
    """32 tokens one by one after a prompt of 16, with a key-value cache."""
    model = _gpt(T, 512, 8, 4, 8192, 256).eval()
    prompt = T.randint(0, 8192, (1, 16))

    def step():
        with T.no_grad():
            caches = [(T.zeros(1, 8, 48, 64), T.zeros(1, 8, 48, 64)) for _ in range(4)]
            token = model(prompt, caches)[:, -1:].argmax(-1)
            for at in range(16, 47):
                token = model(token, caches, at).argmax(-1)
        return token

    return step


# ---- images ----------------------------------------------------------------------------------------------------------
def _resnet18(T: Any) -> Any:
    """ResNet-18 with the stem for 32 x 32 images."""
    nn, F = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self, before: int, channels: int, stride: int):
            super().__init__()
            self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
            self.short: Any = None
            if stride > 1 or before != channels:
                self.short = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(y + (x if self.short is None else self.short(x)))

    layers: list[Any] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    for before, channels, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(before, channels, stride), Block(channels, channels, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def resnet18(T: Any, batch: int = 16, half: bool = False) -> Step:
    """ResNet-18, SGD with momentum."""
    model, F = _resnet18(T), T.nn.functional
    x, y = T.randn(batch, 3, 32, 32), T.randint(0, 10, (batch,))
    return train(T, model, lambda: F.cross_entropy(model(x), y), lambda p: T.optim.SGD(p, lr=0.1, momentum=0.9), half)


def resnet18_inference(T: Any, batch: int = 16) -> Step:
    """The same network, which classifies."""
    model, x = _resnet18(T).eval(), T.randn(batch, 3, 32, 32)

    def step():
        with T.no_grad():
            return model(x)

    return step


def mnist_cnn(T: Any, batch: int = 64) -> Step:
    """The network of PyTorch's MNIST example, Adadelta."""
    nn, F = T.nn, T.nn.functional
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(1),
    )  # fmt: skip
    x, y = T.randn(batch, 1, 28, 28), T.randint(0, 10, (batch,))
    return train(T, model, lambda: F.nll_loss(model(x), y), lambda p: T.optim.Adadelta(p, lr=1.0))


def mobilenet(T: Any, batch: int = 16, half: bool = False) -> Step:
    """Inverted residuals in the shape of MobileNetV2 (Sandler et al. 2018) on 32 x 32 images, SGD with momentum."""
    nn, F = T.nn, T.nn.functional

    def unit(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> list[Any]:
        conv = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
        return [conv, nn.BatchNorm2d(after), nn.ReLU6()]

    class Inverted(nn.Module):
        def __init__(self, before: int, after: int, stride: int, expand: int):
            super().__init__()
            inside = before * expand
            layers = unit(before, inside, 1) if expand > 1 else []
            layers += [*unit(inside, inside, 3, stride, inside), *unit(inside, after, 1)[:2]]
            self.layers, self.add = nn.Sequential(*layers), stride == 1 and before == after

        def forward(self, x):
            return x + self.layers(x) if self.add else self.layers(x)

    layers, before = unit(3, 32, 3), 32
    table = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, after, count, stride in table:
        for i in range(count):
            layers.append(Inverted(before, after, stride if i == 0 else 1, expand))
            before = after
    model = nn.Sequential(*layers, *unit(320, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 10))
    x, y = T.randn(batch, 3, 32, 32), T.randint(0, 10, (batch,))
    return train(T, model, lambda: F.cross_entropy(model(x), y), lambda p: T.optim.SGD(p, lr=0.05, momentum=0.9), half)


def unet(T: Any, batch: int = 4) -> Step:
    """A U-Net of three levels on 64 x 64 images, 32 to 128 channels, Adam."""
    nn, F = T.nn, T.nn.functional

    def double(before: int, after: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
        )  # fmt: skip

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.bottom = double(3, 32), double(32, 64), double(64, 128)
            self.up2, self.up1 = nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)
            self.join2, self.join1, self.last = double(128, 64), double(64, 32), nn.Conv2d(32, 2, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            c = self.bottom(F.max_pool2d(b, 2))
            b = self.join2(T.cat([b, self.up2(c)], 1))
            return self.last(self.join1(T.cat([a, self.up1(b)], 1)))

    model = UNet()
    x, y = T.randn(batch, 3, 64, 64), T.randint(0, 2, (batch, 64, 64))
    return train(T, model, lambda: F.cross_entropy(model(x), y), lambda p: T.optim.Adam(p, lr=1e-3))


# ---- sequences -------------------------------------------------------------------------------------------------------
def lstm_language_model(T: Any) -> Step:
    """2 layers of 200, 35 steps, batch 20, vocabulary 10000, plain SGD with clipped gradients."""
    nn, F = T.nn, T.nn.functional
    embedding, lstm, head = nn.Embedding(10000, 200), nn.LSTM(200, 200, 2), nn.Linear(200, 10000)
    model = nn.ModuleList([embedding, lstm, head])
    optimizer = T.optim.SGD(model.parameters(), lr=1.0)
    x, y = T.randint(0, 10000, (35, 20)), T.randint(0, 10000, (700,))
    state = (T.zeros(2, 20, 200), T.zeros(2, 20, 200))

    def step():
        optimizer.zero_grad()
        out, _ = lstm(embedding(x), state)
        loss = F.cross_entropy(head(out).view(-1, 10000), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        return loss

    return step


def _packed(make: Callable[[Any], Any]) -> Callable[[Any], Step]:
    def workload(T: Any) -> Step:
        nn, rnn = T.nn, T.nn.utils.rnn
        layer, head = make(nn), nn.Linear(256, 5)
        model = nn.ModuleList([layer, head])
        lengths = T.tensor([40 - i for i in range(32)])
        x, y = T.randn(40, 32, 64), T.randint(0, 5, (32,))

        def loss():
            out, _ = layer(rnn.pack_padded_sequence(x, lengths))
            padded, _ = rnn.pad_packed_sequence(out)
            return nn.functional.cross_entropy(head(padded.mean(0)), y)

        return train(T, model, loss, lambda p: T.optim.Adam(p, lr=1e-3))

    return workload


gru_packed = _packed(lambda nn: nn.GRU(64, 256))
bilstm_packed = _packed(lambda nn: nn.LSTM(64, 128, bidirectional=True))


# ---- memory and short numbers ----------------------------------------------------------------------------------------
def pointwise_chain(T: Any) -> Step:
    """Pointwise ops on tensors of 32 MB, forward and backward."""
    n = 8 << 20
    x, w, b = T.randn(n, requires_grad=True), T.randn(n, requires_grad=True), T.randn(n)

    def step():
        x.grad = w.grad = None
        y = T.tanh(x * w + b)
        (y * T.sigmoid(x) - y).sum().backward()

    return step


def bfloat16_product(T: Any) -> Step:
    a, b = T.randn(1024, 1024).bfloat16(), T.randn(1024, 1024).bfloat16()
    return lambda: a @ b


def int8_product(T: Any) -> Step:
    a, b = (T.randint(-128, 128, (1024, 1024), dtype=T.int8) for _ in range(2))
    return lambda: T._int_mm(a, b)


WORKLOADS: dict[str, tuple[Callable[[Any], Step], float]] = {
    "char-GPT 4 layers, 128 wide, context 64, batch 12, AdamW": (models.char_gpt, 0.70),
    "GPT 4 layers, 512 wide, context 256, batch 4, vocabulary 8192, AdamW": (gpt, 0.90),
    "the same GPT under autocast to bfloat16": (functools.partial(gpt, half=True), 1.0),
    "the same GPT, inference, batch 1, 64 tokens": (gpt_inference, 0.80),
    "the same GPT, 32 tokens one by one, key-value cache": (gpt_generation, 0.60),
    "ResNet-18 (CIFAR stem), batch 16, SGD with momentum": (resnet18, 0.95),
    "the same ResNet-18 under autocast to bfloat16": (functools.partial(resnet18, half=True), 1.0),
    "MNIST CNN, batch 64, Adadelta": (mnist_cnn, 0.85),
    "MobileNetV2 shape, 32x32, batch 16, SGD with momentum": (mobilenet, 0.90),
    "the same MobileNetV2 under autocast to bfloat16": (functools.partial(mobilenet, half=True), 1.0),
    "U-Net 64x64, batch 4, Adam": (unet, 0.95),
    "LSTM language model 2x200, 35x20": (lstm_language_model, 0.85),
    "GRU 256, packed sequences": (gru_packed, 0.85),
    "bidirectional LSTM 128, packed sequences": (bilstm_packed, 0.85),
    "MLP 784-512-512-10, batch 128, SGD": (models.large_mlp, 0.90),
    "MLP 4-64-64-2, batch 32, Adam": (models.small_mlp, 0.25),
    "pointwise chain on 32 MB, forward and backward": (pointwise_chain, 0.60),
    "bfloat16 product 1024": (bfloat16_product, 1.0),
    "int8 product 1024 to int32": (int8_product, 1.0),
    **{name: (make, 1.0) for name, make in programs.PROGRAMS.items()},
}
