"""The steps of ``steps.py`` and its programs in JAX, whole steps under ``jax.jit``. Weights are random and not the
same.

A step takes no arguments; what it changes it keeps, as the others do. Buffers are donated where they are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Step = Callable[[], Any]
_numbers = np.random.default_rng(0)


def _randn(*shape: int, scale: float = 1.0) -> Any:
    return jnp.asarray(_numbers.standard_normal(shape, np.float32) * np.float32(scale))


def _randint(shape: tuple[int, ...], high: int) -> Any:
    return jnp.asarray(_numbers.integers(0, high, shape, np.int32))


def _linear(n: int, m: int) -> dict[str, Any]:
    return {"w": _randn(n, m, scale=n**-0.5), "b": jnp.zeros(m)}


def _apply(p: dict[str, Any], x: Any) -> Any:
    return x @ p["w"] + p["b"]


def _cross_entropy(logits: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], -1).mean()


# ---- optimisers: state, and (parameters, gradients, state) -> (parameters, state) ------------------------------------
def _zeros(params: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, params)


def _adam(lr: float, decay: float = 0.0) -> tuple[Callable, Callable]:
    def begin(params):
        return _zeros(params), _zeros(params), jnp.zeros(())

    def update(params, grads, state):
        m, v, t = state
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate, root = lr / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        params = jax.tree.map(
            lambda p, m, v: p * (1 - lr * decay) - rate * m / (jnp.sqrt(v) / root + 1e-8), params, m, v
        )
        return params, (m, v, t)

    return begin, update


def _sgd(lr: float, momentum: float = 0.0) -> tuple[Callable, Callable]:
    def update(params, grads, state):
        state = jax.tree.map(lambda b, g: momentum * b + g, state, grads)
        return jax.tree.map(lambda p, b: p - lr * b, params, state), state

    return _zeros, update


def _adadelta() -> tuple[Callable, Callable]:
    def begin(params):
        return _zeros(params), _zeros(params)

    def update(params, grads, state):
        squares = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g * g, state[0], grads)
        change = jax.tree.map(lambda d, s, g: jnp.sqrt(d + 1e-6) / jnp.sqrt(s + 1e-6) * g, state[1], squares, grads)
        kept = jax.tree.map(lambda d, c: 0.9 * d + 0.1 * c * c, state[1], change)
        return jax.tree.map(lambda p, c: p - c, params, change), (squares, kept)

    return begin, update


def _train(params: Any, loss: Callable, optimizer: tuple[Callable, Callable], extra: Any = None) -> Step:
    """``loss(params, extra)`` gives the loss and the new ``extra`` (statistics of batch norm, a key)."""
    begin, update = optimizer
    kept = [params, begin(params), extra]

    def whole(params, state, extra):
        (value, extra), grads = jax.value_and_grad(loss, has_aux=True)(params, extra)
        params, state = update(params, grads, state)
        return value, params, state, extra

    whole = jax.jit(whole, donate_argnums=(0, 1, 2))

    def step():
        value, *kept[:] = whole(*kept)
        return value

    return step


def _inference(function: Callable, *args: Any) -> Step:
    whole = jax.jit(function)
    return lambda: whole(*args)


# ---- small networks --------------------------------------------------------------------------------------------------
def small_mlp() -> Step:
    params = [_linear(4, 64), _linear(64, 64), _linear(64, 2)]
    x, y = _randn(32, 4), _randint((32,), 2)

    def loss(params, extra):
        h = jax.nn.relu(_apply(params[1], jax.nn.relu(_apply(params[0], x))))
        return _cross_entropy(_apply(params[2], h), y), extra

    return _train(params, loss, _adam(1e-3))


def tanh_rnn(steps: int = 50, hidden: int = 64, batch: int = 8) -> Step:
    x, target = _randn(steps, batch, hidden), _randn(batch, hidden)
    params = [_randn(hidden, hidden, scale=0.125), _randn(hidden, hidden, scale=0.125), jnp.zeros(hidden)]

    def loss(params, extra):
        h, _ = lax.scan(
            lambda h, x: (jnp.tanh(x @ params[0] + h @ params[1] + params[2]), None), jnp.zeros((batch, hidden)), x
        )
        return ((h - target) ** 2).mean(), extra

    return _train(params, loss, _sgd(1e-3))


# ---- transformers ----------------------------------------------------------------------------------------------------
def _layer_norm(p: dict[str, Any], x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * p["w"] + p["b"]


def _gpt_params(width: int, layers: int, vocabulary: int, context: int) -> dict[str, Any]:
    def norm():
        return {"w": jnp.ones(width), "b": jnp.zeros(width)}

    blocks = [
        {"norm1": norm(), "norm2": norm(), "qkv": _linear(width, 3 * width), "out": _linear(width, width),
         "up": _linear(width, 4 * width), "down": _linear(4 * width, width)}
        for _ in range(layers)
    ]  # fmt: skip
    return {"token": _randn(vocabulary, width), "position": _randn(context, width), "blocks": blocks, "norm": norm(),
            "head": _randn(width, vocabulary, scale=width**-0.5)}  # fmt: skip


def _gpt(params: dict[str, Any], x: Any, heads: int, caches: Any = None, at: Any = 0) -> Any:
    """Logits, and the caches of keys and values with those of ``x`` written at ``at``."""
    b, t = x.shape
    h = params["token"][x] + lax.dynamic_slice_in_dim(params["position"], at, t)
    width = h.shape[-1]
    made = []
    for i, p in enumerate(params["blocks"]):
        q, k, v = _apply(p["qkv"], _layer_norm(p["norm1"], h)).reshape(b, t, 3, heads, -1).transpose(2, 0, 3, 1, 4)
        if caches is not None:
            k, v = (lax.dynamic_update_slice(c, n, (0, 0, at, 0)) for c, n in zip(caches[i], (k, v), strict=True))
            made.append((k, v))
        seen = jnp.arange(k.shape[2])[None, :] <= at + jnp.arange(t)[:, None]
        scores = jnp.where(seen, q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5, -jnp.inf)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b, t, width)
        h = h + _apply(p["out"], y)
        h = h + _apply(p["down"], jax.nn.gelu(_apply(p["up"], _layer_norm(p["norm2"], h)), approximate=False))
    return _layer_norm(params["norm"], h) @ params["head"], made


def _gpt_training(width: int, heads: int, vocabulary: int, context: int, batch: int) -> Step:
    params = _gpt_params(width, 4, vocabulary, context)
    window = _randint((batch, context + 1), vocabulary)
    x, y = window[:, :-1], window[:, 1:].reshape(-1)

    def loss(params, extra):
        return _cross_entropy(_gpt(params, x, heads)[0].reshape(-1, vocabulary), y), extra

    return _train(params, loss, _adam(1e-3, 1e-2))


def char_gpt() -> Step:
    return _gpt_training(128, 4, 97, 64, 12)


def gpt() -> Step:
    return _gpt_training(512, 8, 8192, 256, 4)


def gpt_inference() -> Step:
    x = _randint((1, 64), 8192)
    return _inference(lambda params: _gpt(params, x, 8)[0], _gpt_params(512, 4, 8192, 256))


def gpt_generation() -> Step:
    params, prompt = _gpt_params(512, 4, 8192, 256), _randint((1, 16), 8192)

    def whole(params):
        caches = [(jnp.zeros((1, 8, 48, 64)), jnp.zeros((1, 8, 48, 64))) for _ in range(4)]
        logits, caches = _gpt(params, prompt, 8, caches)

        def one(at, held):
            logits, caches = _gpt(params, held[0], 8, held[1], at)
            return logits.argmax(-1), caches

        return lax.fori_loop(16, 47, one, (logits[:, -1:].argmax(-1), caches))[0]

    return _inference(whole, params)


# ---- images ----------------------------------------------------------------------------------------------------------
def _conv(x: Any, w: Any, stride: int = 1, pad: int = 0, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=groups
    )


def _conv_bn(before: int, after: int, size: int, groups: int = 1) -> dict[str, Any]:
    inner = before // groups
    return {
        "w": _randn(after, inner, size, size, scale=(inner * size * size) ** -0.5),
        "g": jnp.ones(after),
        "b": jnp.zeros(after),
    }


def _units(params: Any, x: Any, stats: Any, number: Any, train: bool, stride: int = 1, groups: int = 1) -> Any:
    """Convolution and batch norm; in training the running statistics ``stats[number]`` follow."""
    x = _conv(x, params["w"], stride, params["w"].shape[2] // 2, groups)
    if train:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        old = stats[number]
        stats[number] = (0.9 * old[0] + 0.1 * lax.stop_gradient(mean), 0.9 * old[1] + 0.1 * lax.stop_gradient(var))
    else:
        mean, var = stats[number]
    scale = params["g"] * lax.rsqrt(var + 1e-5)
    return x * scale[:, None, None] + (params["b"] - mean * scale)[:, None, None]


_RESNET = [
    (64, 64, 1),
    (64, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    (512, 512, 1),
]


def _resnet_params() -> Any:
    params = [_conv_bn(3, 64, 3)]
    for before, after, stride in _RESNET:
        params += [_conv_bn(before, after, 3), _conv_bn(after, after, 3)]
        params += [_conv_bn(before, after, 1)] if stride > 1 else []
    return [*params, _linear(512, 10)]


def _stats(params: Any) -> list[Any]:
    return [(jnp.zeros_like(p["b"]), jnp.ones_like(p["b"])) for p in params[:-1]]


def _resnet(params: Any, stats: Any, x: Any, train: bool) -> Any:
    stats = list(stats)
    h, i = jax.nn.relu(_units(params[0], x, stats, 0, train)), 1
    for _, _, stride in _RESNET:
        y = jax.nn.relu(_units(params[i], h, stats, i, train, stride))
        y = _units(params[i + 1], y, stats, i + 1, train)
        i += 2
        if stride > 1:
            h = _units(params[i], h, stats, i, train, stride)
            i += 1
        h = jax.nn.relu(y + h)
    return _apply(params[-1], h.mean((2, 3))), stats


def resnet18(batch: int = 16) -> Step:
    params = _resnet_params()
    x, y = _randn(batch, 3, 32, 32), _randint((batch,), 10)

    def loss(params, stats):
        logits, stats = _resnet(params, stats, x, True)
        return _cross_entropy(logits, y), stats

    return _train(params, loss, _sgd(0.1, 0.9), _stats(params))


def resnet18_inference(batch: int = 16) -> Step:
    params, x = _resnet_params(), _randn(batch, 3, 32, 32)
    return _inference(lambda params, stats: _resnet(params, stats, x, False)[0], params, _stats(params))


def mnist_cnn(batch: int = 64) -> Step:
    def conv(before, after):
        return {"w": _randn(after, before, 3, 3, scale=(9 * before) ** -0.5), "b": jnp.zeros(after)}

    params = [conv(1, 32), conv(32, 64), _linear(9216, 128), _linear(128, 10)]
    x, y = _randn(batch, 1, 28, 28), _randint((batch,), 10)

    def drop(key, x, rate):
        return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)

    def loss(params, key):
        key, a, b = jax.random.split(key, 3)
        h = jax.nn.relu(_conv(x, params[0]["w"]) + params[0]["b"][:, None, None])
        h = jax.nn.relu(_conv(h, params[1]["w"]) + params[1]["b"][:, None, None])
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        h = jax.nn.relu(_apply(params[2], drop(a, h, 0.25).reshape(batch, -1)))
        return _cross_entropy(_apply(params[3], drop(b, h, 0.5)), y), key

    return _train(params, loss, _adadelta(), jax.random.key(1))


def mobilenet(batch: int = 16) -> Step:
    table = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    params, plan, before = [_conv_bn(3, 32, 3)], [], 32
    for expand, after, count, stride in table:
        for i in range(count):
            inside, at = before * expand, len(params)
            params += [_conv_bn(before, inside, 1)] if expand > 1 else []
            params += [_conv_bn(inside, inside, 3, inside), _conv_bn(inside, after, 1)]
            plan.append((at, expand > 1, inside, stride if i == 0 else 1, before == after and (i > 0 or stride == 1)))
            before = after
    last = len(params)
    params += [_conv_bn(320, 1280, 1), _linear(1280, 10)]
    x, y = _randn(batch, 3, 32, 32), _randint((batch,), 10)

    def loss(params, stats):
        stats = list(stats)
        h = jax.nn.relu6(_units(params[0], x, stats, 0, True))
        for at, wide, inside, stride, add in plan:
            z = h
            if wide:
                z = jax.nn.relu6(_units(params[at], z, stats, at, True))
                at += 1
            z = jax.nn.relu6(_units(params[at], z, stats, at, True, stride, inside))
            z = _units(params[at + 1], z, stats, at + 1, True)
            h = h + z if add else z
        h = jax.nn.relu6(_units(params[last], h, stats, last, True))
        return _cross_entropy(_apply(params[-1], h.mean((2, 3))), y), stats

    return _train(params, loss, _sgd(0.05, 0.9), _stats(params))


# ---- single expressions ----------------------------------------------------------------------------------------------
def _differentiated(function: Callable, *inputs: Any) -> Step:
    def whole(*inputs):
        result, back = jax.vjp(function, *inputs)
        return (result, *back(jnp.ones_like(result)))

    return _inference(whole, *inputs)


def chain() -> Step:
    n = 8 << 20
    x, w, b = _randn(n), _randn(n), _randn(n)

    def total(x, w):
        y = jnp.tanh(x * w + b)
        return (y * jax.nn.sigmoid(x) - y).sum()

    return _inference(jax.grad(total, (0, 1)), x, w)


def masked_softmax() -> Step:
    mask, weight = jnp.triu(jnp.full((256, 256), -jnp.inf), 1), _randn(96, 256, 256)
    return _differentiated(lambda x: jax.nn.softmax(x * 0.125 + mask) * weight, _randn(96, 256, 256))


def rms_norm() -> Step:
    def function(x, r, w):
        h = x + r
        return h * lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-6) * w

    return _differentiated(function, _randn(2048, 1024), _randn(2048, 1024), _randn(1024))


def geglu() -> Step:
    def function(x):
        a, b = jnp.split(x, 2, -1)
        return a * jax.nn.gelu(b, approximate=False)

    return _differentiated(function, _randn(2048, 4096))


def rotary() -> Step:
    angle = jnp.arange(512.0)[:, None] * jnp.exp(-math.log(1e4) * jnp.arange(0, 64, 2.0) / 64)[None, :]
    angle = jnp.concatenate([angle, angle], -1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)

    def function(x):
        a, b = jnp.split(x, 2, -1)
        return x * cos + jnp.concatenate([-b, a], -1) * sin

    return _differentiated(function, _randn(8, 8, 512, 64))


def smoothed_cross_entropy() -> Step:
    y = _randint((64, 1), 50257)

    def function(x):
        log_p = x - jax.nn.logsumexp(x, -1, keepdims=True)
        return -(0.9 * jnp.take_along_axis(log_p, y, -1)[:, 0] + 0.1 * log_p.mean(-1)).mean()

    return _differentiated(function, _randn(64, 50257))


def adamw(count: int = 150) -> Step:
    p, g, m, v = ([_randn(256, 128) for _ in range(count)] for _ in range(4))
    kept = [p, m, [jnp.abs(x) for x in v]]

    def whole(p, m, v):
        p = [x * (1 - 1e-5) for x in p]
        m = [0.9 * x + 0.1 * y for x, y in zip(m, g, strict=True)]
        v = [0.999 * x + 0.001 * y * y for x, y in zip(v, g, strict=True)]
        p = [x - 1e-3 * a / (jnp.sqrt(b) + 1e-8) for x, a, b in zip(p, m, v, strict=True)]
        return p, m, v

    whole = jax.jit(whole, donate_argnums=(0, 1, 2))

    def step():
        kept[:] = whole(*kept)
        return kept[0][0], kept[0][-1]

    return step
