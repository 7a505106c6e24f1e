"""Whole steps for ``run.py --compile``, written once against a framework module ``T`` (taeda or torch).

A step gives everything that it is to compute: a result or gradient that nobody reads may be left out by a compiler.
``jax_steps.py`` has the same steps in JAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import models
import workloads

Step = Callable[[], Any]


def chain(T: Any) -> Step:
    """Pointwise ops on tensors of 32 MB, forward and backward."""
    n = 8 << 20
    x, w, b = T.randn(n, requires_grad=True), T.randn(n, requires_grad=True), T.randn(n)

    def step():
        y = T.tanh(x * w + b)
        return T.autograd.grad((y * T.sigmoid(x) - y).sum(), (x, w))

    return step


def _differentiated(T: Any, function: Callable, *inputs: Any) -> Step:
    """``function`` of the inputs, and the gradients of its sum by those that require one."""
    sources = [x for x in inputs if x.requires_grad]

    def step():
        result = function(*inputs)
        return (result, *T.autograd.grad(result.sum(), sources))

    return step


def masked_softmax(T: Any) -> Step:
    x = T.randn(96, 256, 256, requires_grad=True)
    mask = T.full((256, 256), -math.inf).triu(1)
    weight = T.randn(96, 256, 256)
    return _differentiated(T, lambda x: T.softmax(x * 0.125 + mask, -1) * weight, x)


def rms_norm(T: Any) -> Step:
    x, r, w = (T.randn(*shape, requires_grad=True) for shape in ((2048, 1024), (2048, 1024), (1024,)))

    def function(x, r, w):
        h = x + r
        return h * T.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6) * w

    return _differentiated(T, function, x, r, w)


def geglu(T: Any) -> Step:
    x = T.randn(2048, 4096, requires_grad=True)

    def function(x):
        a, b = x.chunk(2, -1)
        return a * T.nn.functional.gelu(b)

    return _differentiated(T, function, x)


def rotary(T: Any) -> Step:
    x = T.randn(8, 8, 512, 64, requires_grad=True)
    angle = T.arange(512).float()[:, None] * T.exp(-math.log(1e4) * T.arange(0, 64, 2).float() / 64)[None, :]
    cos, sin = T.cat([angle, angle], -1).cos(), T.cat([angle, angle], -1).sin()

    def function(x):
        a, b = x.chunk(2, -1)
        return x * cos + T.cat([-b, a], -1) * sin

    return _differentiated(T, function, x)


def smoothed_cross_entropy(T: Any) -> Step:
    x, y = T.randn(64, 50257, requires_grad=True), T.randint(0, 50257, (64, 1))

    def function(x):
        log_p = x - T.logsumexp(x, -1, keepdim=True)
        return -(0.9 * log_p.gather(-1, y)[:, 0] + 0.1 * log_p.mean(-1)).mean()

    return _differentiated(T, function, x)


def adamw(T: Any, count: int = 150) -> Step:
    """The update as users write it, with plain ops in place."""
    p, g, m, v = ([T.randn(256, 128) for _ in range(count)] for _ in range(4))
    for x in v:
        x.abs_()

    def step():
        for i in range(count):
            p[i].mul_(1 - 1e-5)
            m[i].mul_(0.9).add_(g[i], alpha=0.1)
            v[i].mul_(0.999).addcmul_(g[i], g[i], value=0.001)
            p[i].addcdiv_(m[i], v[i].sqrt().add_(1e-8), value=-1e-3)
        return p[0], p[-1]

    return step


def batches(T: Any) -> Callable[[int], Any]:
    """A training step of the char-GPT that is given the size of its batch."""
    model = workloads._gpt(T, 128, 4, 4, 97, 64)
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    windows = {n: T.randint(0, 97, (n, 65)) for n in (12, 7)}

    def step(n):
        x, y = windows[n][:, :-1].contiguous(), windows[n][:, 1:].reshape(-1)
        loss = T.nn.functional.cross_entropy(model(x).reshape(-1, 97), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@dataclass(frozen=True)
class Program:
    """``make(T)`` gives the step; the bars are the highest ratios aimed at, to torch.compile and to taeda eager."""

    name: str
    make: Callable[[Any], Step]
    compiled_bar: float
    eager_bar: float


PROGRAMS = [
    Program("pointwise chain, 32 MB, forward and backward", chain, 0.25, 0.30),
    Program("MLP 4-64-64-2, Adam", models.small_mlp, 0.10, 0.95),
    Program("tanh RNN, 50 steps", models.tanh_rnn, 0.12, 0.45),
    Program("char-GPT", models.char_gpt, 0.75, 0.88),
    Program("GPT 512 wide", workloads.gpt, 0.85, 0.95),
    Program("GPT inference", workloads.gpt_inference, 0.60, 0.85),
    Program("GPT generation", workloads.gpt_generation, 0.60, 0.85),
    Program("ResNet-18", workloads.resnet18, 0.60, 0.85),
    Program("MNIST CNN", workloads.mnist_cnn, 0.60, 0.85),
    Program("MobileNetV2", workloads.mobilenet, 0.60, 0.85),
    Program("ResNet-18 inference", workloads.resnet18_inference, 0.60, 0.85),
    Program("softmax(x * s + mask)", masked_softmax, 0.60, 0.50),
    Program("RMSNorm + residual", rms_norm, 0.60, 0.50),
    Program("GEGLU", geglu, 0.60, 0.50),
    Program("rotary embedding", rotary, 0.60, 0.50),
    Program("label-smoothed cross entropy, 50257 classes", smoothed_cross_entropy, 0.60, 0.50),
    Program("AdamW, 150 tensors", adamw, 0.60, 0.50),
]
