"""3x3 convolutions of many channels, which take Winograd's kernels in float32, against float64, which does not."""

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F

CASES = [  # images, input channels, height, width, output channels, padding
    (2, 32, 8, 8, 32, 1),
    (1, 64, 20, 33, 65, 1),
    (3, 40, 7, 9, 70, 0),
    (4, 33, 5, 130, 37, 2),
    (5, 48, 13, 2, 100, 1),
    (16, 96, 4, 4, 200, 1),
    (9, 160, 9, 7, 96, (0, 1)),
    (8, 130, 16, 16, 64, 1),
]


def operands(case, dtype=taeda.float32):
    n, c, h, w, m, _ = case
    taeda.manual_seed(sum(case[:5]))
    shapes = (n, c, h, w), (m, c, 3, 3), (m,)
    return [taeda.randn(*shape).to(dtype).requires_grad_() for shape in shapes]


def results(x, w, b, padding, g=None):
    """Output and the three gradients."""
    y = F.conv2d(x, w, b, padding=padding)
    g = taeda.randn(*y.shape).to(y.dtype) if g is None else g.to(y.dtype)
    return g, [y.detach(), *taeda.autograd.grad(y, (x, w, b), g)]


def error(got, want):
    return np.sqrt(((got - want) ** 2).mean() / (want**2).mean())


@pytest.mark.parametrize("case", CASES)
def test_against_float64(case):
    """Output and gradients to within rounding, for odd sizes, short blocks and any padding."""
    inputs = operands(case)
    g, got = results(*inputs, case[5])
    exact = [t.detach().double().requires_grad_() for t in inputs]
    _, want = results(*exact, case[5], g)
    for mine, right in zip(got, want, strict=True):
        assert mine.shape == right.shape
        assert error(mine.numpy(), right.numpy()) < 8e-7


@pytest.mark.parametrize("case", [(4, 64, 16, 16, 64, 1), (4, 256, 8, 8, 128, 1), (16, 512, 4, 4, 64, 1)])
def test_error_is_at_most_twice_that_of_torch(case):
    """The transforms cost little exactness, because sums are cut into blocks."""
    torch = pytest.importorskip("torch")
    inputs = operands(case)
    g, got = results(*inputs, case[5])
    _, want = results(*[t.detach().double().requires_grad_() for t in inputs], case[5], g)
    x, w, b = (torch.tensor(t.detach().numpy()).requires_grad_() for t in inputs)
    y = torch.nn.functional.conv2d(x, w, b, padding=case[5])
    theirs = [y.detach(), *torch.autograd.grad(y, (x, w), torch.tensor(g.numpy()))]
    for mine, right, peer in zip(got, want, theirs, strict=False):
        assert error(mine.numpy(), right.numpy()) <= 2 * error(peer.numpy(), right.numpy())


@pytest.mark.parametrize("case", [CASES[1], CASES[5], CASES[6], (16, 64, 16, 16, 96, 1)])
def test_bits_do_not_depend_on_threads(case):
    """Few blocks (weights transformed by each task, input ahead), some, and many."""
    inputs, found = operands(case), set()
    g = None
    for threads in (1, 2, 3, 5):
        taeda.set_num_threads(threads)
        g, got = results(*inputs, case[5], g)
        found.add(b"".join(t.numpy().tobytes() for t in got))
    assert len(found) == 1


def test_any_strides():
    """Channels last, every other image, columns turned round: the same bits as from a contiguous tensor."""
    case = (6, 48, 10, 12, 40, 1)
    x, w, b = (t.detach() for t in operands(case))
    want = F.conv2d(x, w, b, padding=1).numpy()
    strange = [
        x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
        taeda.cat([x, x], 1)[:, :48],
        x.flip(3).contiguous().flip(3),
        x.transpose(2, 3).contiguous().transpose(2, 3),
    ]
    for other in strange:
        assert (F.conv2d(other, w, b, padding=1).numpy() == want).all()
    assert (F.conv2d(x[::2], w, b, padding=1).numpy() == want[::2]).all()
    turned = w.permute(1, 0, 2, 3).contiguous().permute(1, 0, 2, 3)
    assert (F.conv2d(x, turned, b, padding=1).numpy() == want).all()


def test_transposed_and_expanded():
    """A transposed convolution is the gradient with a bias; a gradient may be one number expanded."""
    x, w = taeda.randn(2, 48, 9, 9), taeda.randn(48, 36, 3, 3)
    b = taeda.randn(36)
    got = F.conv_transpose2d(x, w, b, padding=1).numpy()
    want = F.conv_transpose2d(x.double(), w.double(), b.double(), padding=1).numpy()
    assert error(got, want) < 8e-7
    x.requires_grad_()
    w.requires_grad_()
    F.conv2d(x, w.transpose(0, 1), padding=1).sum().backward()
    exact_x, exact_w = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    F.conv2d(exact_x, exact_w.transpose(0, 1), padding=1).sum().backward()
    assert error(x.grad.numpy(), exact_x.grad.numpy()) < 8e-7
    assert error(w.grad.numpy(), exact_w.grad.numpy()) < 8e-7


def test_derivative_of_a_derivative():
    x, w, _ = operands((1, 32, 8, 8, 32, 1))
    y, z = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    seconds = []
    for a, b in ((x, w), (y, z)):
        (g,) = taeda.autograd.grad((F.conv2d(a, b, padding=1) ** 2).sum(), a, create_graph=True)
        seconds.append([t.numpy() for t in taeda.autograd.grad((g**2).sum(), (a, b))])
    for mine, right in zip(*seconds, strict=True):
        assert error(mine, right) < 2e-6
