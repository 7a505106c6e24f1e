"""Fit a straight line by gradient descent: the smallest complete program."""

import argparse

import taeda

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", default="cpu", help="where it runs: cpu, cuda")
taeda.set_default_device(parser.parse_args().device)

taeda.manual_seed(0)
x = taeda.linspace(-1, 1, 100)
y = 3 * x + 0.5 + 0.1 * taeda.randn(100)

slope = taeda.zeros((), requires_grad=True)
offset = taeda.zeros((), requires_grad=True)
for _ in range(100):
    loss = ((slope * x + offset - y) ** 2).mean()
    loss.backward()
    with taeda.no_grad():
        for p in (slope, offset):
            p -= 0.3 * p.grad
            p.grad = None
print(f"y = {slope.item():.2f} x + {offset.item():.2f}, loss {loss.item():.4f}")
