"""Random numbers without PyTorch: seeds, states, threads, distributions, and the published generator."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import taeda


@pytest.fixture(autouse=True)
def seeded():
    taeda.manual_seed(3)


def test_words_are_those_of_mt19937():
    reference = np.random.RandomState(1234)._bit_generator
    g = taeda.Generator().manual_seed(1234)
    expected = [int(x) for x in reference.random_raw(2000)]
    assert [g.random() for _ in range(700)] == expected[:700]
    big = taeda.empty(1300, dtype=taeda.int64).random_(0, 2**28 - 1, generator=g)  # the block-wise path
    assert big.tolist() == [x % (2**28 - 1) for x in expected[700:]]
    assert g.random64() == (int(reference.random_raw()) << 32) + int(reference.random_raw())


def test_seeds():
    assert taeda.manual_seed(5) is taeda.default_generator
    assert taeda.initial_seed() == 5
    a = taeda.rand(4)
    taeda.manual_seed(5)
    assert taeda.rand(4).tolist() == a.tolist()
    assert taeda.Generator().manual_seed(-1).initial_seed() == 2**64 - 1
    assert taeda.seed() == taeda.initial_seed() < 2**64
    with pytest.raises(ValueError, match="seed in"):
        taeda.manual_seed(2**64)
    with pytest.raises(TypeError, match="expected an int, got list"):
        taeda.manual_seed([])


def test_states():
    taeda.randn(3)  # leaves half a pair waiting
    state = taeda.get_rng_state()
    a = [taeda.randn(2).tolist(), taeda.rand(2000).tolist()]
    taeda.set_rng_state(state)
    assert [taeda.randn(2).tolist(), taeda.rand(2000).tolist()] == a
    g = taeda.default_generator
    for other in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g), g.clone_state()):
        assert other.get_state().tolist() == g.get_state().tolist()
    with pytest.raises(RuntimeError, match="5056 bytes, got 3"):
        g.set_state(taeda.zeros(3, dtype=taeda.uint8))


def test_fork_rng():
    before = taeda.get_rng_state().tolist()
    with taeda.random.fork_rng():
        taeda.rand(10)
    assert taeda.get_rng_state().tolist() == before
    with taeda.random.fork_rng(enabled=False):
        taeda.rand(10)
    assert taeda.get_rng_state().tolist() != before


@pytest.mark.parametrize(
    "fill",
    ["uniform_()", "normal_()", "exponential_()", "bernoulli_(0.3)", "random_(0, 10)", "log_normal_()", "cauchy_()"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("size", [200_001, 4_300_007])
def test_threads_do_not_change_the_numbers(fill, dtype, size):
    """Also where each jumps to its own part of the stream, and what is drawn after that."""
    results = []
    for count in (1, 2, 5):
        taeda.set_num_threads(count)
        taeda.manual_seed(1)
        taeda.rand(17)
        t = eval(f"t.{fill}", {"t": taeda.zeros(size, dtype=getattr(taeda, dtype))})
        results.append((t, taeda.rand(100)))
    for t, after in results[1:]:
        assert taeda.equal(t, results[0][0]) and taeda.equal(after, results[0][1])


def test_threads_do_not_change_what_dropout_keeps():
    results = []
    for count in (1, 2, 3):
        taeda.set_num_threads(count)
        taeda.manual_seed(2)
        results.append(taeda.nn.functional.dropout(taeda.ones(3_000_000), 0.3))
    assert taeda.equal(results[1], results[0]) and taeda.equal(results[2], results[0])


def test_a_long_stream_equals_its_pieces():
    whole = taeda.rand(100_000)
    taeda.manual_seed(3)
    pieces = [taeda.rand(n) for n in (1, 623, 624, 625, 30_000, 68_127)]
    assert taeda.cat(pieces).tolist() == whole.tolist()


def test_python_threads_draw_from_one_generator():
    g = taeda.Generator().manual_seed(1)
    found = []

    def work():
        for _ in range(20):
            found.extend(taeda.rand(500, generator=g).tolist())

    team = [threading.Thread(target=work) for _ in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert sorted(found) == sorted(taeda.rand(40_000, generator=g.manual_seed(1)).tolist())


def close(x, mean, std, n):
    assert abs(x - mean) < 5 * std / math.sqrt(n)


def test_moments():
    n = 200_000
    x = taeda.rand(n, dtype=taeda.float64)
    close(x.mean().item(), 0.5, math.sqrt(1 / 12), n)
    assert x.min().item() >= 0 and x.max().item() < 1
    x = taeda.randn(n, dtype=taeda.float64)
    close(x.mean().item(), 0, 1, n)
    close((x * x).mean().item(), 1, math.sqrt(2), n)
    close((x**4).mean().item(), 3, math.sqrt(96), n)
    x = taeda.empty(n, dtype=taeda.float64).exponential_(2.0)
    close(x.mean().item(), 0.5, 0.5, n)
    x = taeda.empty(n, dtype=taeda.float64).geometric_(0.25)
    close(x.mean().item(), 4, math.sqrt(0.75) / 0.25, n)
    x = taeda.empty(n, dtype=taeda.float64).cauchy_(1.0, 2.0)
    close(((x > -1) & (x < 3)).double().mean().item(), 0.5, 0.5, n)
    for rate in (0.7, 9.0, 40.0):
        x = taeda.poisson(taeda.full((n,), rate))
        close(x.mean().item(), rate, math.sqrt(rate), n)
    x = taeda.multinomial(taeda.tensor([1.0, 3.0]), n, True)
    close(x.double().mean().item(), 0.75, math.sqrt(0.1875), n)


def test_permutations_are_permutations():
    for n in (0, 1, 2, 17, 70_000):
        assert sorted(taeda.randperm(n).tolist()) == list(range(n))
    counts = np.zeros((4, 4))
    for _ in range(4000):
        counts[np.arange(4), taeda.randperm(4).tolist()] += 1
    assert (abs(counts - 1000) < 150).all()


def test_uniform_never_reaches_its_upper_end():
    for dtype in (taeda.float32, taeda.bfloat16, taeda.float16, taeda.float64):
        x = taeda.zeros(50_000, dtype=dtype).uniform_(1, 1.015625)
        assert x.max().item() < 1.015625 and x.min().item() >= 1


def test_gradient_of_what_is_overwritten_is_zero():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    y.uniform_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_dropout_scales_and_drops():
    x = taeda.ones(100_000, requires_grad=True)
    y = taeda.dropout(x, 0.25, True)
    assert set(y.unique().tolist()) == {0.0, taeda.tensor(1 / 0.75).item()}
    close(y.detach().double().mean().item(), 1, math.sqrt(1 / 3), 100_000)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_a_long_fill_is_two_shorter_ones():
    """A fill stops on its way to look for Ctrl-C; the stream goes on where it was."""
    n = (1 << 27) + 5000
    taeda.manual_seed(4)
    whole, last = taeda.rand(n), taeda.rand(3)
    taeda.manual_seed(4)
    parts = taeda.empty(n)
    parts[: n // 3].uniform_()
    parts[n // 3 :].uniform_()
    assert taeda.equal(whole, parts) and taeda.equal(last, taeda.rand(3))
