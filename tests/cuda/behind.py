"""What runs behind the program: errors that kernels find, and backward passes on the streams of the forward pass.

``test_cuda.py`` runs these tests on the emulated device.
"""

import inspect

import pytest

import taeda
import taeda.nn.functional as F
from taeda import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")


def there(values):
    return taeda.tensor(values, device="cuda")


# ---- errors ----------------------------------------------------------------------------------------------------------

#: By the op that the error names: a call with an index that is out of range, and the error.
CASES = {
    "index": (lambda x: x[there([0, 7])], IndexError, "an index is out of range"),
    "index, from the end": (lambda x: x[there([0, -9])], IndexError, "an index is out of range"),
    "index, of two dimensions": (lambda x: x[there([0, 7]), there([1, 1])], IndexError, "an index is out of range"),
    "index_put_": (lambda x: x.__setitem__(there([7, 0]), 1.0), IndexError, "an index is out of range"),
    "index_put_, added": (
        lambda x: x.index_put_((there([0, 9]), there([0, 0])), there(1.0), accumulate=True),
        IndexError, "an index is out of range",
    ),
    "gather": (lambda x: x.gather(0, there([[0, 9, 1]])), RuntimeError, "an index is out of bounds"),
    "gather, by rows": (lambda x: x.gather(0, there([[9]]).expand(1, 3)), RuntimeError, "an index is out of bounds"),
    "scatter_": (lambda x: x.scatter_(0, there([[0, 9, 1]]), 5.0), RuntimeError, "an index is out of bounds"),
    "scatter_, along the last": (
        lambda x: x.scatter_(1, there([[0, 2], [1, 3]]), 5.0), RuntimeError, "an index is out of bounds",
    ),
    "scatter_add_": (
        lambda x: x.scatter_add_(0, there([[0, 9, 1]]), there([[1.0, 1.0, 1.0]])),
        RuntimeError, "an index is out of bounds",
    ),
    "scatter_reduce_": (
        lambda x: x.scatter_reduce_(0, there([[0, -1, 1]]), there([[1.0, 1.0, 1.0]]), "amax"),
        RuntimeError, "an index is out of bounds",
    ),
    "index_select": (lambda x: x.index_select(0, there([7])), IndexError, "an index is out of range"),
    "index_add_": (
        lambda x: x.index_add_(0, there([7]), there([[1.0, 1.0, 1.0]])), RuntimeError, "an index is out of bounds",
    ),
    "index_copy_": (
        lambda x: x.index_copy_(0, there([7]), there([[1.0, 1.0, 1.0]])), IndexError, "an index is out of range",
    ),
    "index_fill_": (lambda x: x.index_fill_(1, there([3]), 1.0), IndexError, "an index is out of range"),
    "embedding": (lambda x: F.embedding(there([[4]]), x), IndexError, "an index is out of range"),
    "take": (lambda x: x.take(there([77])), IndexError, "an index is out of range"),
    "put_": (lambda x: x.put_(there([0, 77]), there([1.0, 1.0])), IndexError, "an index is out of range"),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, there([0, 5, 1, 2])),
        IndexError, r"target 5 is out of bounds: expected a class in \[0, 2\]",
    ),
    "nll_loss": (
        lambda x: F.nll_loss(x, there([0, 1, -1, 2])),
        IndexError, r"target -1 is out of bounds: expected a class in \[0, 2\]",
    ),
}  # fmt: skip


def numbers():
    return taeda.arange(12.0, device="cuda").reshape(4, 3)


@pytest.mark.parametrize("name", CASES)
def test_an_index_out_of_range_is_an_error_at_the_next_synchronisation(name):
    function, kind, text = CASES[name]
    op = name.partition(",")[0]
    x = numbers()
    cuda.synchronize()
    launched = inspect.getsourcelines(function)[1]
    function(x)
    with pytest.raises(kind, match=text) as found:
        cuda.synchronize()
    message = str(found.value)
    assert message.startswith(f"{op}(): "), message
    line = int(message.rpartition("line ")[2])
    assert f"called in {__file__}, line " in message and launched <= line < launched + 4
    # nothing was written, and the device goes on
    assert x.equal(numbers()) and (x + 1).sum().item() == 78
    assert x[there([1, 0])].tolist() == [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
    cuda.synchronize()


def test_errors_come_with_the_first_wait():
    x, bad = numbers(), there([7])
    stream, event = cuda.Stream(), cuda.Event()
    stream.wait_stream(cuda.current_stream())

    def fail_on_a_stream():
        with cuda.stream(stream):
            x.index_select(0, bad)
            event.record()

    for wait in (stream.synchronize, event.synchronize, cuda.synchronize):
        fail_on_a_stream()
        with pytest.raises(IndexError, match=r"index_select\(\): an index is out of range"):
            wait()
        cuda.synchronize()
    y = x.index_select(0, bad)
    with pytest.raises(IndexError, match=r"index_select\(\): an index is out of range"):
        y.tolist()
    assert y.tolist() == [[0.0, 1.0, 2.0]]


def test_the_first_of_several_errors_is_raised():
    x = numbers()
    x.index_select(0, there([7]))
    first = inspect.currentframe().f_lineno - 1
    x.gather(0, there([[9]]))
    with pytest.raises(IndexError, match=rf"index_select\(\): .*behind\.py, line {first}$"):
        x.sum().item()
    cuda.synchronize()


def test_many_launches_are_remembered():
    x, good, bad = numbers(), there([1, 0]), there([7])
    for _ in range(1100):  # more than there are words for
        x.index_select(0, good)
    x.index_select(0, bad)
    failed = inspect.currentframe().f_lineno - 1
    for _ in range(50):
        x.index_select(0, good)
    with pytest.raises(IndexError, match=rf"line {failed}$"):
        cuda.synchronize()
    x.index_select(0, bad)
    with pytest.raises(IndexError, match=r"index_select"):
        for _ in range(1100):
            x.index_select(0, good)
    cuda.synchronize()


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_backward_pass_after_an_error_harms_nothing(loss, reduction):
    scores = numbers().requires_grad_()
    loss(scores, there([0, 5, -7, 2]), reduction=reduction).sum().backward()
    with pytest.raises(IndexError, match="out of bounds"):
        cuda.synchronize()
    weight = numbers().requires_grad_()
    F.embedding(there([0, 9]), weight).sum().backward()
    with pytest.raises(IndexError, match=r"embedding\(\): an index is out of range"):
        cuda.synchronize()
    assert numbers().sum().item() == 66


# ---- backward passes -------------------------------------------------------------------------------------------------


SEEN = []  # streams on which gradients of `Square` were computed


class Square(taeda.autograd.Function):
    """``x * x``."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        SEEN.append(cuda.current_stream())
        (x,) = ctx.saved_tensors
        return 2 * x * g


def passed(stream, other, w):
    """A sum of three branches: two on streams of their own, one on the current stream."""
    for s in (stream, other):
        s.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        a = Square.apply(w).exp()
    with cuda.stream(other):
        b = Square.apply(w.sin())
    c = Square.apply(w) * 3
    for s in (stream, other):
        cuda.current_stream().wait_stream(s)
    return (a * c + b).sum()


def expected():
    w = taeda.linspace(-1, 1, 24, device="cuda").requires_grad_()
    home = cuda.current_stream()
    passed(home, home, w).backward()
    return w.grad


def test_nodes_run_on_the_stream_of_their_op():
    want = expected()
    stream, other = cuda.Stream(), cuda.Stream()
    w = taeda.linspace(-1, 1, 24, device="cuda").requires_grad_()
    loss = passed(stream, other, w)
    SEEN.clear()
    loss.backward()
    assert cuda.current_stream() == cuda.default_stream()
    assert w.grad.equal(want)
    assert {s.cuda_stream for s in SEEN} == {0, stream.cuda_stream, other.cuda_stream}
    w.grad = None
    for _ in range(2):  # sums with what is there
        passed(stream, other, w).backward()
    assert w.grad.equal(want + want)


def test_a_pass_on_another_stream_waits_for_it_and_is_waited_for():
    want = expected()
    stream, other, third = (cuda.Stream() for _ in range(3))
    w = taeda.linspace(-1, 1, 24, device="cuda").requires_grad_()
    loss = passed(stream, other, w)
    third.wait_stream(cuda.current_stream())
    with cuda.stream(third):
        loss.backward()
        assert cuda.current_stream() == third
        doubled = w.grad * 2
        done = third.record_event()
    cuda.current_stream().wait_event(done)
    assert doubled.equal(want * 2)


def test_gradients_that_are_asked_for_can_be_used_at_once():
    want = expected()
    stream, other = cuda.Stream(), cuda.Stream()
    w = taeda.linspace(-1, 1, 24, device="cuda").requires_grad_()
    with cuda.stream(stream):
        stream.wait_stream(cuda.default_stream())
        inner = w * 1
    cuda.current_stream().wait_stream(stream)
    found, at_inner = taeda.autograd.grad(passed(stream, other, inner), (w, inner))
    assert found.equal(want) and at_inner.equal(want)
    (again,) = taeda.autograd.grad(passed(stream, other, w), w, create_graph=True)
    assert again.detach().equal(want)
    again.sum().backward()
    single = taeda.linspace(-1, 1, 24, device="cuda").requires_grad_()
    home = cuda.current_stream()
    taeda.autograd.grad(passed(home, home, single), single, create_graph=True)[0].sum().backward()
    assert w.grad.equal(single.grad)
