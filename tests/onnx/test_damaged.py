"""Damaged ONNX files: an error that says so, or a model; never an error from inside."""

import io
import random

import pytest

import taeda
from taeda import nn

pytest.importorskip("onnx.helper")


class _Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 3)

    def forward(self, x):
        y = nn.functional.max_pool2d(self.norm(self.conv(x).relu()), 2).flatten(1)
        return self.last(taeda.cat([y, y], 0).transpose(0, 1).sum(1).unsqueeze(0)).softmax(1)


@pytest.fixture(scope="module")
def content():
    file = io.BytesIO()
    taeda.onnx.export(_Small().eval(), (taeda.ones(1, 1, 5, 5),)).save(file)
    return file.getvalue()


def damaged(content, rng):
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind, at = rng.random(), rng.randrange(len(data))
        if kind < 0.5:
            data[at] = rng.randrange(256)
        elif kind < 0.7:
            data[at] ^= 1 << rng.randrange(8)
        elif kind < 0.85:
            del data[at : at + rng.randrange(1, 6)]
        else:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
    return bytes(data)


def check(content, seed):
    try:
        taeda.onnx.load(io.BytesIO(damaged(content, random.Random(seed))))
    except (ValueError, RuntimeError, NotImplementedError):
        pass


def test_a_name_that_is_no_text(content):
    with pytest.raises(ValueError, match="not UTF-8"):
        taeda.onnx.load(io.BytesIO(content.replace(b"conv.weight", b"conv\xff\xfeeight")))


def test_sample(content):
    for seed in range(60):
        check(content, seed)


@pytest.mark.sweep
def test_sweep(content):
    for seed in range(5000):
        check(content, seed)
