"""Random streams against PyTorch's: equal seeds and calls give equal numbers and equal generator states."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
#: Differences from PyTorch's vectorised logarithm, sine and cosine; everything else is exact.
ROUNDING = {"float32": 2e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}


@pytest.fixture(autouse=True)
def seeded():
    taeda.manual_seed(7)
    torch.manual_seed(7)


def array(t):
    if isinstance(t, torch.Tensor):
        return t.detach().to(torch.complex128 if t.is_complex() else torch.float64).numpy()
    return np.array(t.detach().to(taeda.complex128 if t.is_complex() else taeda.float64).numpy())


def same(ours, theirs, tolerance=0.0):
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(array(ours), array(theirs), rtol=tolerance, atol=tolerance)
    assert taeda.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()


def pair(shape, dtype):
    ours = taeda.tensor(np.zeros(shape), dtype=getattr(taeda, dtype))
    return ours, torch.zeros(shape, dtype=getattr(torch, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 5, 15, 16, 17, 31, 100, 1000, 70000])
class TestFills:
    def test_uniform(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.uniform_(-0.3, 1.7), theirs.uniform_(-0.3, 1.7))

    def test_normal(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.normal_(0.5, 2), theirs.normal_(0.5, 2), 8 * ROUNDING[dtype])

    def test_bernoulli(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.bernoulli_(0.3), theirs.bernoulli_(0.3))

    def test_exponential(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.exponential_(1.5), theirs.exponential_(1.5), ROUNDING[dtype])

    def test_geometric(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.geometric_(0.3), theirs.geometric_(0.3))

    def test_cauchy(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.cauchy_(0.5, 2), theirs.cauchy_(0.5, 2), 100 * ROUNDING[dtype])

    def test_log_normal(self, n, dtype):
        ours, theirs = pair(n, dtype)
        same(ours.log_normal_(0.5, 0.7), theirs.log_normal_(0.5, 0.7), ROUNDING[dtype])


NUMBERS = ["uint8", "int8", "int16", "int32", "int64", *FLOATS]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_random_over_the_dtype(dtype, n):
    ours, theirs = pair(n, dtype)
    same(ours.random_(), theirs.random_())


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_random_range(dtype):
    high = 2 if dtype == "bool" else 100
    ours, theirs = pair(999, dtype)
    same(ours.random_(0, high), theirs.random_(0, high))
    same(ours.random_(high), theirs.random_(high))


@pytest.mark.parametrize(
    "low, high",
    [
        (0, 100),
        (-5, 2**31),
        (0, 2**28 - 1),
        (0, 2**28),
        (-7, 2**28 - 8),
        (0, 2**32 + 1),
        (-(2**62), 2**62),
        (0, 2**63 - 1),
    ],
)
def test_randint(low, high):
    same(taeda.randint(low, high, (333,)), torch.randint(low, high, (333,)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fill", ["uniform_", "normal_", "exponential_", "bernoulli_", "log_normal_", "random_"])
def test_order_in_memory(fill, dtype):
    for make in (
        lambda t: t.t(),
        lambda t: t[:, ::2],
        lambda t: t[1:, 2:].t(),
        lambda t: t.view(2, 4, 9).permute(2, 0, 1),
        lambda t: t.view(2, 4, 9)[:, :, ::3].transpose(0, 2),
        lambda t: t[:1, ::3],
    ):
        ours, theirs = pair((8, 9), dtype)
        same(getattr(make(ours), fill)(), getattr(make(theirs), fill)(), ROUNDING[dtype])


@pytest.mark.parametrize("n", [1, 2, 15, 16, 40])
def test_functions_one_after_the_other(n):
    """Half a pair of normal numbers may wait in the generator."""
    for _ in range(3):
        same(taeda.randn(n), torch.randn(n), 2e-6)
        same(taeda.rand(n), torch.rand(n))
        same(taeda.randn(3), torch.randn(3), 2e-6)
        same(taeda.randperm(n), torch.randperm(n))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype):
    ours, theirs = getattr(taeda, dtype), getattr(torch, dtype)
    same(taeda.randn(40, dtype=ours), torch.randn(40, dtype=theirs), 2e-6)
    same(taeda.rand(4, dtype=ours), torch.rand(4, dtype=theirs))
    same(taeda.randn(3, dtype=ours), torch.randn(3, dtype=theirs), 2e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 100, 70000])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_randperm(n, dtype):
    same(taeda.randperm(n, dtype=getattr(taeda, dtype)), torch.randperm(n, dtype=getattr(torch, dtype)))


@pytest.mark.parametrize(("dtype", "n"), [("float16", 2049), ("float16", 2050), ("bfloat16", 258), ("uint8", 257)])
def test_integers_that_a_dtype_does_not_hold(dtype, n):
    outcomes = []
    for f in (torch, taeda):
        try:
            outcomes.append(f.randperm(n, dtype=getattr(f, dtype)).double().sum().item())
        except RuntimeError:
            outcomes.append("refused")
    assert (outcomes[0] == "refused") == (outcomes[1] == "refused")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("probability", ["float32", "float64", "float16"])
def test_bernoulli_of_probabilities(dtype, probability):
    p = np.linspace(0, 1, 60).reshape(6, 10)
    ours, theirs = (
        taeda.tensor(p, dtype=getattr(taeda, probability)),
        torch.tensor(p, dtype=getattr(torch, probability)),
    )
    same(taeda.bernoulli(ours), torch.bernoulli(theirs))
    same(taeda.bernoulli(ours.t()), torch.bernoulli(theirs.t()))
    a, b = pair((6, 10), dtype)
    same(a.bernoulli_(ours), b.bernoulli_(theirs))
    a, b = pair((10, 6), dtype)
    same(a.t().bernoulli_(ours[:1]), b.t().bernoulli_(theirs[:1]))
    same(taeda.bernoulli(ours, 0.3), torch.bernoulli(theirs, 0.3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multinomial(dtype):
    p = np.array([[1.0, 2, 3, 4, 0, 0.5], [5, 4, 3, 2, 1, 0], [0, 0, 1, 0, 1, 2]])
    ours, theirs = taeda.tensor(p, dtype=getattr(taeda, dtype)), torch.tensor(p, dtype=getattr(torch, dtype))
    for args in ((1,), (3,), (2, False), (20, True), (1, True)):
        same(taeda.multinomial(ours, *args), torch.multinomial(theirs, *args))
        same(taeda.multinomial(ours[0], *args), torch.multinomial(theirs[0], *args))


def test_poisson():
    rates = np.array([[0.5, 3, 20], [100, 0, 9.99], [10, 1e4, 2]])
    ours, theirs = taeda.tensor(rates), torch.tensor(rates)
    same(taeda.poisson(ours), torch.poisson(theirs))
    same(taeda.poisson(ours.t().float()), torch.poisson(theirs.t().float()))
    same(taeda.poisson(ours.bfloat16()), torch.poisson(theirs.bfloat16()))


def test_normal_function():
    mean, std = np.arange(20.0), np.arange(1.0, 21.0)
    a, b = taeda.tensor(mean), taeda.tensor(std)
    c, d = torch.tensor(mean), torch.tensor(std)
    same(taeda.normal(a, b), torch.normal(c, d), 1e-12)
    same(taeda.normal(a, 2.0), torch.normal(c, 2.0), 1e-12)
    same(taeda.normal(1.0, b), torch.normal(1.0, d), 1e-12)
    same(taeda.normal(1.0, 2.0, (4, 3)), torch.normal(1.0, 2.0, (4, 3)), 2e-6)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout(name, p):
    x = np.random.default_rng(0).standard_normal((4, 5, 6))
    ours, theirs = taeda.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    a, b = getattr(taeda, name)(ours, p, True), getattr(torch, name)(theirs, p, True)
    same(a, b, 1e-12)
    a.backward(taeda.ones_like(a))
    b.backward(torch.ones_like(b))
    np.testing.assert_allclose(array(ours.grad), array(theirs.grad), rtol=1e-12)
    assert getattr(taeda, name)(ours, p, False) is ours


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["contiguous", "channels last", "with gaps"])
@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (3, 6, 7, 9), (2, 40, 50, 20)])
def test_dropout_of_floats_draws_while_it_multiplies(shape, layout, dtype):
    """Numbers are drawn in the order of memory, which the result keeps; some draws are longer than the generator's state."""
    made = []
    for f, numbers in ((taeda, taeda.tensor), (torch, torch.tensor)):
        x = numbers(np.random.default_rng(0).standard_normal(shape)).to(getattr(f, dtype))
        if layout == "channels last":
            x = x.contiguous(memory_format=f.channels_last)
        elif layout == "with gaps":
            x = x[:, ::2].transpose(1, 3)
        x = x.detach().requires_grad_()
        y = f.nn.functional.dropout(x, 0.3)
        y.backward(y.detach())
        made.append((x.grad, y, y.stride()))
    (grad, y, stride), (their_grad, theirs, their_stride) = made
    assert stride == their_stride
    same(y, theirs)
    np.testing.assert_allclose(array(grad), array(their_grad), rtol=ROUNDING[dtype])


def test_state_travels_both_ways():
    taeda.rand(100), taeda.randn(3)
    torch.set_rng_state(torch.from_numpy(taeda.get_rng_state().numpy()))
    same(taeda.randn(5), torch.randn(5), 2e-6)
    torch.rand(1000), torch.randn(1)
    taeda.set_rng_state(taeda.from_numpy(torch.get_rng_state().numpy()))
    same(taeda.randn(2), torch.randn(2), 2e-6)
    same(taeda.rand(1000), torch.rand(1000))


ERRORS = [
    "f.ones(3).uniform_(2, 1)",
    "f.ones(3, dtype=f.int32).uniform_()",
    "f.ones(3).normal_(0, -1)",
    "f.rand(3, dtype=f.int32)",
    "f.randn(3, dtype=f.int32)",
    "f.randint(5, 5, (2,))",
    "f.randint(0, 300, (2,), dtype=f.uint8)",
    "f.randint(-1, 3, (2,), dtype=f.uint8)",
    "f.ones(3).random_(0)",
    "f.ones(2, dtype=f.bool).random_(0, 3)",
    "f.ones(2, dtype=f.complex64).random_()",
    "f.ones(2).bernoulli_(1.5)",
    "f.bernoulli(f.tensor([1.5]))",
    "f.bernoulli(f.tensor([1]))",
    "f.bernoulli(f.tensor([float('nan')]))",
    "f.ones(2).exponential_(0)",
    "f.ones(2, dtype=f.int32).exponential_()",
    "f.ones(2).geometric_(0)",
    "f.ones(2, dtype=f.bool).geometric_(0.5)",
    "f.ones(2).cauchy_(0, 0)",
    "f.ones(2, dtype=f.int32).cauchy_()",
    "f.ones(2).log_normal_(0, 0)",
    "f.ones(2, dtype=f.int32).log_normal_()",
    "f.randperm(-1)",
    "f.randperm(300, dtype=f.uint8)",
    "f.randperm(3, dtype=f.bool)",
    "f.multinomial(f.tensor([1.0, -1]), 1)",
    "f.multinomial(f.tensor([0.0, 0]), 1)",
    "f.multinomial(f.tensor([1.0, 2]), 3)",
    "f.multinomial(f.tensor([1, 2]), 1)",
    "f.multinomial(f.tensor([[[1.0]]]), 1)",
    "f.multinomial(f.tensor([1.0]), 0)",
    "f.multinomial(f.tensor([0.0, 0]), 2, True)",
    "f.multinomial(f.tensor([1.0, float('nan')]), 2, True)",
    "f.normal(1.0, -1.0, (2,))",
    "f.normal(f.ones(2), f.tensor([-1.0, 1.0]))",
    "f.normal(2, 3)",
    "f.normal(f.ones(3), f.ones(2))",
    "f.rand(2, generator=3)",
    "f.rand(-1)",
    "f.rand(2.5)",
    "f.rand()",
    "f.dropout(f.ones(2), 1.5, True)",
    "f.poisson(f.tensor([-1.0]))",
    "f.manual_seed(2**64)",
    "f.Generator().set_state(f.ones(3))",
    "f.Generator().set_state(f.zeros(5056, dtype=f.uint8))",
    "f.ones(1).expand(3).uniform_()",
    "f.ones(2, requires_grad=True).uniform_()",
    "f.feature_dropout(f.ones(3), 0.5, True)",
]


@pytest.mark.parametrize("call", ERRORS)
def test_errors_have_the_same_type(call):
    with pytest.raises(Exception) as theirs:
        eval(call, {"f": torch})
    with pytest.raises(type(theirs.value)):
        eval(call, {"f": taeda})
