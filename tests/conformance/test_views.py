"""Views, copies, casts and promotion against PyTorch: sizes, strides, values, aliasing and errors."""

import itertools
import random

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


def pair(*shape):
    """The same numbers in both frameworks."""
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return taeda.from_numpy(array.copy()), torch.from_numpy(array.copy())


def same(ours, theirs):
    """Same sizes, strides, offset and values."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.storage_offset() == theirs.storage_offset()
    if theirs.numel() and theirs.dim():
        strides = [(a, b) for a, b, n in zip(ours.stride(), theirs.stride(), theirs.shape, strict=True) if n != 1]
        assert all(a == b for a, b in strides), strides
    assert ours.tolist() == theirs.tolist()


def random_view(rng, shape):
    """One view op as a function of a tensor (of either framework), valid for ``shape``."""
    n = len(shape)
    d = rng.randrange(n) if n else 0
    e = rng.randrange(n) if n else 0
    choices = [
        lambda t: t.unsqueeze(rng_dim),
        lambda t: t.squeeze(),
        lambda t: t.flatten(),
        lambda t: t[None],
        lambda t: t[...],
    ]
    rng_dim = rng.randint(-n - 1, n)
    if n:
        order = rng.sample(range(n), n)
        start, stop, step = rng.randint(-4, 4), rng.choice([None, -1, 2, 5]), rng.choice([None, 1, 2, 3])
        choices += [
            lambda t: t.transpose(d, e),
            lambda t: t.permute(order),
            lambda t: t.permute(*order),
            lambda t: t.movedim(d, e),
            lambda t: t[(slice(None),) * d + (slice(start, stop, step),)],
            lambda t: t.squeeze(d),
            lambda t: t.reshape(-1),
            lambda t: t.unflatten(d, (1, -1)) if t.shape[d] else t,
            lambda t: t.expand(2, *t.shape),
            lambda t: t.unfold(d, min(2, t.shape[d]), 1) if t.shape[d] else t,
        ]
        if shape[d]:
            i = rng.randrange(-shape[d], shape[d])
            choices += [lambda t: t.select(d, i), lambda t: t.narrow(d, 0, shape[d] - 1), lambda t: t.chunk(2, d)[0]]
        if n >= 2 and d != e:
            k = rng.randint(-2, 2)
            choices.append(lambda t: t.diagonal(k, d, e))
    return rng.choice(choices)


@pytest.mark.parametrize("seed", range(200))
def test_chains_of_views(seed):
    rng = random.Random(seed)
    ours, theirs = pair(
        *[rng.choice([0, 1, 2, 3, 4]) if rng.random() < 0.1 else rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
    )
    for _ in range(6):
        view = random_view(rng, tuple(theirs.shape))
        try:
            expected = view(theirs)
        except (RuntimeError, IndexError) as error:
            with pytest.raises(type(error)):
                view(ours)
            continue
        ours, theirs = view(ours), expected
        same(ours, theirs)
        if theirs.dim() > 6:
            break


@pytest.mark.parametrize("seed", range(100))
def test_view_or_copy(seed):
    """``view`` succeeds, and ``reshape`` aliases, exactly where PyTorch's does."""
    rng = random.Random(seed)
    ours, theirs = pair(2, 3, 4, 2)
    for _ in range(2):
        view = random_view(rng, tuple(theirs.shape))
        try:
            theirs = view(theirs)
        except (RuntimeError, IndexError):
            continue
        ours = view(ours)
    n = theirs.numel()
    for shape in [(n,), (n, 1), (1, n), (-1, 2), (2, -1), (3, -1), (4, -1), (2, 3, -1), (6, 8), (8, 6), (2, 2, -1)]:
        for method in ("view", "reshape"):
            try:
                expected = getattr(theirs, method)(shape)
            except RuntimeError:
                with pytest.raises(RuntimeError):
                    getattr(ours, method)(shape)
                continue
            result = getattr(ours, method)(shape)
            assert tuple(result.shape) == tuple(expected.shape) and result.tolist() == expected.tolist()
            if n:
                assert (result.data_ptr() == ours.data_ptr()) == (expected.data_ptr() == theirs.data_ptr())


@pytest.mark.parametrize("source,target", list(itertools.product(DTYPES, DTYPES)))
def test_casts(source, target):
    values = [0, 1, 2, 3.7, 100, 0.5] if source not in ("bool",) else [0, 1, 1, 0]
    values += [2j, 1 - 1j] if source.startswith("complex") else []
    theirs = torch.tensor(values).to(getattr(torch, source))
    ours = taeda.tensor(values).to(getattr(taeda, source))
    expected, result = theirs.to(getattr(torch, target)), ours.to(getattr(taeda, target))
    assert result.dtype is getattr(taeda, target)
    assert result.tolist() == expected.tolist()
    assert ours.to(getattr(taeda, target))[::2].tolist() == expected[::2].tolist()
    assert ours[::2].to(getattr(taeda, target)).tolist() == expected[::2].tolist()


def name(dtype):
    return str(dtype)[6:]


@pytest.mark.parametrize("a,b", list(itertools.product(DTYPES, DTYPES)))
def test_promotion(a, b):
    x, y = getattr(torch, a), getattr(torch, b)
    u, v = getattr(taeda, a), getattr(taeda, b)
    assert taeda.promote_types(u, v).name == name(torch.promote_types(x, y))
    operands = [((left, x, u), (right, y, v)) for left, right in itertools.product([(), (2,)], repeat=2)]
    for (left, x, u), (right, y, v) in operands:
        expected = name(torch.result_type(torch.ones(left, dtype=x), torch.ones(right, dtype=y)))
        assert taeda.result_type(taeda.ones(left, dtype=u), taeda.ones(right, dtype=v)).name == expected
    for number, shape in itertools.product((True, 2, 2.5, 1j), [(), (2,)]):
        expected = name(torch.result_type(torch.ones(shape, dtype=x), number))
        assert taeda.result_type(taeda.ones(shape, dtype=u), number).name == expected


def test_strides_of_results():
    """Pointwise results keep the layout of their inputs, as PyTorch's do."""
    ours, theirs = pair(2, 3, 4, 5)
    for make in (
        lambda t: t.permute(3, 1, 0, 2),
        lambda t: t.permute(0, 2, 3, 1),
        lambda t: t.transpose(1, 2)[:, ::2],
        lambda t: t[:, :1].expand(2, 3, 4, 5),
        lambda t: t.contiguous(
            memory_format=taeda.channels_last if isinstance(t, taeda.Tensor) else torch.channels_last
        ),
    ):
        u, v = make(ours), make(theirs)
        for f in (lambda t: t + 1, lambda t: t * t, lambda t: t.clone(), lambda t: -t, lambda t: t + t[:1]):
            assert f(u).stride() == f(v).stride()
            assert f(u).tolist() == f(v).tolist()


@pytest.mark.parametrize("shape", [(4, 1, 3, 3), (4, 3, 1, 1), (2, 3, 4, 5), (1, 1, 1, 1), (4, 1, 2, 3, 3), (3, 4)])
def test_to_a_memory_format(shape):
    """``to`` looks at strides where sizes are 1, and copies only to another format than that of the strides."""
    shown = []
    for t in (torch, taeda):
        lines = []
        last = t.channels_last if len(shape) == 4 else t.channels_last_3d
        for x in (t.zeros(shape), t.zeros(shape[::-1]).permute(*range(len(shape))[::-1])):
            for form in (t.contiguous_format, last) if len(shape) > 2 else (t.contiguous_format,):
                y, z = x.to(memory_format=form), x.to(t.float64, memory_format=form)
                back = y.to(memory_format=t.contiguous_format)
                lines.append((y is x, y.stride(), z.is_contiguous(memory_format=form), back is y, back.stride()))
        shown.append(lines)
    assert shown[1] == shown[0]


def test_overlap_is_refused():
    for make in (
        lambda t: t.add_(t.new_ones(4).expand(3, 4).t()),
        lambda t: t[:1].expand(4, 3).add_(1),
        lambda t: t[1:].add_(t[:-1]),
    ):
        ours, theirs = pair(4, 3)
        with pytest.raises(RuntimeError) if _raises(make, theirs) else _nothing():
            make(ours)


def _raises(function, tensor):
    try:
        function(tensor)
    except RuntimeError:
        return True
    return False


class _nothing:
    def __enter__(self):
        pass

    def __exit__(self, *exc):
        pass


def test_negative_steps():
    """Beyond PyTorch: slices with a negative step are views."""
    ours, _ = pair(4, 5)
    array = np.arange(20, dtype=np.float32).reshape(4, 5)
    for index in [np.s_[::-1], np.s_[:, ::-2], np.s_[::-1, ::-1], np.s_[3:0:-1, 1::2], np.s_[-1:-6:-3, None]]:
        view = ours[index]
        assert view.tolist() == array[index].tolist()
        assert (view + 1).tolist() == (array[index] + 1).tolist()
        assert view.contiguous().tolist() == array[index].tolist()
    ours[::-1][0] = 7
    assert ours[3].tolist() == [7] * 5


@pytest.mark.parametrize(
    "pieces", [lambda x: x.unbind(0), lambda x: x.split(5), lambda x: x.chunk(1), lambda x: x.split_with_sizes([1])]
)
def test_gradient_of_the_only_piece(pieces):
    x = taeda.arange(3.0).reshape(1, 3).requires_grad_()
    (pieces(x)[0] * taeda.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("write", ["zero_", "neg_", "mul_"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "complex64"])
def test_a_view_of_another_dtype_is_outside_the_graph(dtype, write):
    """Writing through it changes the bytes and the version; neither it nor the gradient of the base knows of that."""

    def program(f):
        leaf = f.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        base = leaf * 1
        other = base.view(getattr(f, dtype))
        if write == "neg_" and dtype == "uint8":
            other.fill_(3)
        elif write == "mul_":
            other.mul_(2)
        else:
            getattr(other, write)()
        base.sum().backward()
        bytes_ = base.detach().view(f.uint8).tolist()
        return bytes_, base._version, other.requires_grad, other.grad_fn is None, leaf.grad.tolist()

    assert program(taeda) == program(torch)


def test_movedim_of_a_number_is_the_number():
    assert taeda.tensor(5).movedim(0, -1).item() == torch.tensor(5).movedim(0, -1).item() == 5


def test_items_and_slices_of_a_size():
    for t in (taeda, torch):
        size = t.ones(2, 3, 4).shape
        assert (size[1], size[-1], size[t.tensor(2)]) == (3, 4, 4)
        assert size[1:] == (3, 4) and type(size[1:]) is type(size[::-1]) is t.Size
        for index, error in ((3, IndexError), (2**70, IndexError), ("a", TypeError)):
            with pytest.raises(error):
                size[index]
