"""The first hour with taeda: read it from top to bottom, and run it: python docs/tour.py

Each section shows one idea at work and says where it lives in the source, so that you can read on there.
"""

import math

import taeda
import taeda.nn.functional as F
from taeda import nn


def section(title: str) -> None:
    print(f"\n--- {title}")


# ======================================================================================================================
section("1. Tensors")
# A tensor is an n-dimensional array with a dtype. Names, defaults and promotion rules are PyTorch's.
# Source: taeda/_core/ (the Tensor itself, in Cython), taeda/_print.py (the text you see).

taeda.manual_seed(0)
a = taeda.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(a.shape, a.dtype, a.stride())
print(a * 2 + taeda.tensor([10, 20, 30]))  # an integer row is broadcast and promoted to float32
print(a.mean(dim=0), a.argmax().item())
print(taeda.randn(3))  # after manual_seed(0), the very numbers that PyTorch's CPU generator gives

# ======================================================================================================================
section("2. Views: other shapes of the same memory")
# Memory is a Storage; a tensor is a Storage with sizes, strides and an offset. Transposing copies nothing.
# Strides may be negative, so that a[::-1] is a view too (in PyTorch it is an error).
# Source: taeda/_core/memory.pyx (Storage, the caching allocator), taeda/ops/ (the view ops).

t = a.t()
t[0, 0] = 100.0
print("a saw the write through its transpose:", a[0, 0].item())
print("a backwards:", a.flatten()[::-1].tolist(), "strides", a.flatten()[::-1].stride())
a[0, 0] = 1.0

# ======================================================================================================================
section("3. The graph, and backward")
# An op on a tensor that requires grad records a node: which derivative to call, with which tensors, and where each
# gradient goes next. backward() walks the nodes from the result to the leaves. That is all that autograd is.
# Source: taeda/_core/graph.pxi (nodes) and engine.pyx (the walk); derivatives are below their ops, in taeda/ops/.

w = taeda.tensor([0.5, -1.0], requires_grad=True)
x = taeda.tensor([2.0, 3.0])
loss = (taeda.tanh(w * x).sum() - 1) ** 2
print("made by:", loss.grad_fn, "which leads to:", loss.grad_fn.next_functions)
loss.backward()
by_hand = 2 * (taeda.tanh(w * x).sum() - 1) * (1 - taeda.tanh(w * x) ** 2) * x
print("gradient:", w.grad, "by hand:", by_hand.detach())

# Derivatives are written in the same public ops, so they have derivatives too:
y = taeda.tensor(2.0, requires_grad=True)
(first,) = taeda.autograd.grad(y**4, y, create_graph=True)
(second,) = taeda.autograd.grad(first, y)
print("y**4 at 2: first derivative", first.item(), "second", second.item())

# ======================================================================================================================
section("4. Grad modes")
# Under no_grad ops record no node: for evaluation, and for changing parameters in place.

with taeda.no_grad():
    print("recorded under no_grad?", (w * 2).requires_grad)
    w -= 0.1 * w.grad
# A saved tensor that is changed before backward would give a wrong gradient. Versions are counted and checked:
v = taeda.ones(2, requires_grad=True)
u = v * 2
z = u.exp()
z.add_(1)  # exp saved its result, and this overwrites it
try:
    z.sum().backward()
except RuntimeError as error:
    print("refused:", str(error).splitlines()[0][:100])

# ======================================================================================================================
section("5. A training loop")
# Module, parameters, optimiser: as in PyTorch. The optimiser updates all parameters in one launch of one kernel.
# Source: taeda/nn/modules/module.py and its layers, taeda/optim/.


class Spiral(nn.Module):
    """Tells two interleaved spirals apart."""

    def __init__(self, hidden: int = 32):
        super().__init__()
        self.inner = nn.Linear(2, hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(F.relu(self.middle(F.relu(self.inner(x))))).squeeze(1)


n = 200
angle = taeda.linspace(0.5, 3.5 * math.pi, n)
arm = taeda.stack([angle.cos(), angle.sin()], 1) * (angle / 11)[:, None]
points = taeda.cat([arm, -arm])
labels = taeda.cat([taeda.ones(n), taeda.zeros(n)])

model = Spiral()
optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(400):
    loss = F.binary_cross_entropy_with_logits(model(points), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        right = ((model(points) > 0) == (labels > 0)).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, right {right:.1%}")

# When shapes do not fit, the error names the module, the shapes and your line:
try:
    model(taeda.randn(4, 3))
except RuntimeError as error:
    print("error:", error)

# ======================================================================================================================
section("6. A function with a gradient of your own")
# Source: taeda/autograd/function.py; the graph treats it like any other node.


class ClipGradient(taeda.autograd.Function):
    """The identity; its gradient is clipped to [-limit, limit]."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-ctx.limit, ctx.limit), None


p = taeda.tensor([1.0, 2.0], requires_grad=True)
(ClipGradient.apply(p, 0.5) * taeda.tensor([10.0, 0.1])).sum().backward()
print("clipped:", p.grad)

# ======================================================================================================================
section("7. A new op, in one stanza")
# An op is declared once: signature, docstring, its mathematics as an expression over scalars, its derivative in public
# ops. The function, its in-place form, out=, broadcasting, dtypes and vector code for this machine all follow. Ops of
# programs live in namespaces, here tour::softabs, and become methods of Tensor only with method=True.
# Source: taeda/ops/table.py (what a declaration means), taeda/kernels/scalar/ (s.exp and the rest, from arithmetic up),
# taeda/kernels/pointwise.py (the loop around the expression).

from taeda.kernels import scalar as s
from taeda.ops.table import pointwise


@pointwise(name="tour::softabs", promote="float")
def softabs(input, sharpness=1.0):
    """A smooth absolute value, ``sqrt(1 + (sharpness * x)**2) - 1``."""
    scaled = input * sharpness
    return s.sqrt(1 + scaled * scaled) - 1


softabs.vjp(input=lambda g, input, sharpness: g * sharpness**2 * input / taeda.sqrt(1 + (sharpness * input) ** 2))

q = taeda.linspace(-2, 2, 5, dtype=taeda.float64).requires_grad_()
print("value:", softabs(q, 3.0).detach())
print("gradient agrees with finite differences:", taeda.autograd.gradcheck(lambda q: softabs(q, 3.0), q))

# ======================================================================================================================
section("8. Down to the machine")
# There is no C++ below. The stanza above becomes LLVM code for vectors as wide as this machine has, compiled in a few
# milliseconds when first used and then cached on disk. Source: taeda/kernels/ir.py (the loop language),
# build.py (hash, cache, LLVM). Here is a whole kernel, y = 2x + 1, written by hand:

from taeda.kernels.build import compiler
from taeda.kernels.ir import F32, Function
from taeda.kernels.target import host

f = Function(vector_bytes=host().vector_bytes)
lanes = f.lanes(F32)
with f.loop(f.begin, f.end, lanes) as loop:
    inside = f.first(f.end - loop.index, lanes)  # a mask: the last vector may be partly beyond the end
    x_ = f.load(f.offset(f.data(1), loop.index * 4), F32, lanes, inside)
    f.store(f.offset(f.data(0), loop.index * 4), f.fma(x_, 2.0, 1.0), inside)
lines = compiler().assembly(f.text()).splitlines()
multiply = [line.strip() for line in lines if "vfmadd" in line or "fmla" in line]
print(
    f"compiled for {host().cpu}, {lanes} lanes; the arithmetic of the loop is one instruction:", *multiply, sep="\n  "
)

# ======================================================================================================================
section("Where to read on")
print(
    """taeda/ops/                  every op, a file per family: start with pointwise ones
taeda/nn/modules/module.py  what a module is
docs/notes/                 decisions, with their dates and reasons
examples/char_gpt.py        a language model in one file"""
)
