"""Bools and floats in the place of whole numbers: which calls take them, which raise a TypeError."""

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402


def _image(t, channels=1):
    return t.ones(1, channels, 4, 4)


CALLS = {
    "arange": lambda t, n: t.arange(n),
    "as_strided": lambda t, n: t.ones(4).as_strided((n,), (1,)),
    "avg_pool2d": lambda t, n: t.nn.functional.avg_pool2d(_image(t), n),
    "bincount": lambda t, n: t.tensor([0, 1]).bincount(minlength=n),
    "broadcast_to": lambda t, n: t.ones(1, 1).broadcast_to((n, n)),
    "cat": lambda t, n: t.cat([t.ones(2, 2)] * 2, n),
    "channel_shuffle": lambda t, n: t.nn.functional.channel_shuffle(_image(t, 4), n),
    "chunk": lambda t, n: t.ones(4).chunk(n),
    "conv2d, padding": lambda t, n: t.nn.functional.conv2d(_image(t), t.ones(1, 1, 1, 1), padding=n),
    "conv2d, stride": lambda t, n: t.nn.functional.conv2d(_image(t), t.ones(1, 1, 1, 1), stride=n),
    "cosine_similarity": lambda t, n: t.nn.functional.cosine_similarity(t.ones(2, 2), t.ones(2, 2), dim=n),
    "cov": lambda t, n: t.ones(2, 3).cov(correction=n),
    "cumsum": lambda t, n: t.ones(2, 2).cumsum(n),
    "diagonal": lambda t, n: t.ones(2, 2).diagonal(n),
    "expand": lambda t, n: t.ones(1, 1).expand(n, n),
    "expand of a tuple": lambda t, n: t.ones(1, 1).expand((n, n)),
    "eye": lambda t, n: t.eye(n),
    "fft": lambda t, n: t.fft.fft(t.ones(4), n),
    "flatten": lambda t, n: t.ones(2, 2).flatten(n),
    "frombuffer": lambda t, n: t.frombuffer(bytearray(16), dtype=t.uint8, count=n),
    "group_norm": lambda t, n: t.nn.functional.group_norm(_image(t, 2), n),
    "histc": lambda t, n: t.ones(4).histc(n),
    "histogram": lambda t, n: t.histogram(t.ones(4), n)[0],
    "interpolate": lambda t, n: t.nn.functional.interpolate(_image(t), size=n),
    "linalg.vander": lambda t, n: t.linalg.vander(t.ones(3), N=n),
    "matrix_power": lambda t, n: t.linalg.matrix_power(t.ones(2, 2), n),
    "max_pool2d": lambda t, n: t.nn.functional.max_pool2d(_image(t), n),
    "mean": lambda t, n: t.ones(2, 2).mean(n),
    "movedim": lambda t, n: t.ones(2, 3).movedim(0, n),
    "mvlgamma": lambda t, n: t.mvlgamma(t.ones(2) * 5, n),
    "narrow": lambda t, n: t.ones(4).narrow(0, n, 1),
    "new_zeros": lambda t, n: t.ones(2).new_zeros(n),
    "one_hot": lambda t, n: t.nn.functional.one_hot(t.tensor([0]), n),
    "pixel_shuffle": lambda t, n: t.nn.functional.pixel_shuffle(_image(t, 4), n),
    "randperm": lambda t, n: t.randperm(n).sort()[0],
    "repeat": lambda t, n: t.ones(2, 2).repeat(n, 1),
    "repeat_interleave": lambda t, n: t.ones(2).repeat_interleave(n),
    "reshape": lambda t, n: t.ones(2, 2).reshape(n, -1),
    "reshape to a tuple": lambda t, n: t.reshape(t.ones(2, 2), (n, -1)),
    "roll": lambda t, n: t.arange(3).roll(n),
    "second of sizes": lambda t, n: t.ones(2, 1).expand(2, n),
    "second of dims": lambda t, n: t.ones(2, 2, 2).sum((0, n)),
    "second of strides": lambda t, n: t.nn.functional.conv2d(_image(t), t.ones(1, 1, 1, 1), stride=(1, n)),
    "second of pads": lambda t, n: t.nn.functional.pad(t.ones(2), (1, n)),
    "size": lambda t, n: t.ones(2, 3, 4).size(n),
    "Size": lambda t, n: list(t.Size([n])),
    "select": lambda t, n: t.arange(3).select(0, n),
    "softmax": lambda t, n: t.ones(2, 2).softmax(n),
    "split": lambda t, n: t.ones(4).split(n),
    "squeeze": lambda t, n: t.ones(2, 1).squeeze(n),
    "stride": lambda t, n: t.ones(2, 3, 4).stride(n),
    "sum": lambda t, n: t.ones(2, 2).sum(n),
    "Tensor": lambda t, n: t.Tensor(n).shape[0],
    "tensor_split": lambda t, n: t.ones(4).tensor_split(n),
    "topk": lambda t, n: t.ones(4).topk(n),
    "transpose": lambda t, n: t.ones(2, 3).transpose(0, n),
    "tril": lambda t, n: t.ones(2, 2).tril(n),
    "tril_indices": lambda t, n: t.tril_indices(n, n),
    "triu_indices": lambda t, n: t.triu_indices(n, 3),
    "unflatten": lambda t, n: t.ones(4).unflatten(0, (n, -1)),
    "unfold": lambda t, n: t.ones(4).unfold(0, n, 1),
    "unsqueeze": lambda t, n: t.ones(2, 2).unsqueeze(n),
    "vander": lambda t, n: t.vander(t.ones(3), n),
    "view": lambda t, n: t.ones(2, 2).view(n, -1),
    "view of a tuple": lambda t, n: t.ones(2, 2).view((n, -1)),
    "zeros": lambda t, n: t.zeros(n),
}  # fmt: skip


def _outcome(t, call, n):
    """The type of the error, or the sizes of what comes."""
    try:
        made = call(t, n)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        return type(error).__name__
    if isinstance(made, int) or type(made) is list:
        return repr(made)
    return [tuple(x.shape) for x in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_whole_number(name):
    for n in (True, 2.0, 1, 2):
        assert _outcome(taeda, CALLS[name], n) == _outcome(torch, CALLS[name], n), n


def test_numbers_beyond_64_bits():
    def outcomes(t):
        image, one, n = _image(t), t.ones(1, 1, 1, 1), 2**64
        calls = (
            lambda: t.ones(2).view(n), lambda: t.ones(2).expand((2, n)), lambda: t.ones(2).reshape(n),
            lambda: t.ones(2).size(n), lambda: t.ones(2).stride(-n),
            lambda: t.nn.functional.conv2d(image, one, padding=n),
        )  # fmt: skip
        found = []
        for call in calls:
            with pytest.raises((TypeError, ValueError)) as error:
                call()
            found.append(error.type)
        return found

    assert outcomes(taeda) == outcomes(torch)


@pytest.mark.parametrize("seed", [True, 1.5, "1", None])
def test_seeds_of_generators(seed):
    for t in (taeda, torch):
        with pytest.raises(RuntimeError):
            t.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: taeda.ones(2, 2).rot90(n),
        lambda n: taeda.linalg.matrix_power(taeda.ones(2, 2), n),
        lambda n: taeda.nn.functional.embedding(taeda.tensor([0]), taeda.ones(4, 2), padding_idx=n - 8),
        lambda n: taeda.ones(9).narrow(0, n, 1),
    ],
)
def test_a_tensor_that_stands_for_a_number_keeps_its_value(call):
    n = taeda.tensor(5)
    call(n)
    assert n == 5


def _resized(t, **given):
    return t.nn.functional.interpolate(_image(t), **given)


_BEYOND = {
    "interpolate": lambda t, n: _resized(t, size=n),
    "interpolate to two sizes": lambda t, n: _resized(t, size=(n, 2), mode="bilinear"),
    "interpolate by areas": lambda t, n: _resized(t, size=n, mode="area"),
    "interpolate by a factor": lambda t, n: _resized(t, scale_factor=n),
    "interpolate by infinity": lambda t, n: _resized(t, scale_factor=float("inf")),
    "interpolate by NaN": lambda t, n: _resized(t, scale_factor=float("nan"), mode="bilinear"),
    "interpolate by a recomputed factor": lambda t, n: _resized(t, scale_factor=n, recompute_scale_factor=True),
    "fold": lambda t, n: t.nn.functional.fold(t.ones(1, 4, 9), n, 2),
    "fold to two sizes": lambda t, n: t.nn.functional.fold(t.ones(1, 4, 9), (n, 4), 2),
    "fold blocks": lambda t, n: t.nn.functional.fold(t.ones(1, 4, 9), 4, n),
    "fold padding": lambda t, n: t.nn.functional.fold(t.ones(1, 4, 9), 4, 2, padding=n),
    "fold dilation": lambda t, n: t.nn.functional.fold(t.ones(1, 4, 9), 4, 2, dilation=n),
    "unfold": lambda t, n: t.nn.functional.unfold(_image(t), n),
    "unfold stride": lambda t, n: t.nn.functional.unfold(_image(t), 2, stride=n),
    "adaptive": lambda t, n: t.nn.functional.adaptive_avg_pool2d(_image(t), n),
    "adaptive in one dimension": lambda t, n: t.nn.functional.adaptive_avg_pool2d(_image(t), (n, None)),
    "adaptive maximum": lambda t, n: t.nn.functional.adaptive_max_pool2d(_image(t), n),
    "affine_grid": lambda t, n: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, n, 2)),
    "divisor": lambda t, n: t.nn.functional.avg_pool2d(_image(t), 2, divisor_override=n),
}  # fmt: skip


@pytest.mark.parametrize("name", _BEYOND)
def test_errors_of_images_beyond_64_bits(name):
    found = []
    for t in (taeda, torch):
        with pytest.raises((TypeError, ValueError, RuntimeError)) as error:
            _BEYOND[name](t, 2**64)
        found.append(error.type)
    assert found[0] is found[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.movedim(x, True, False),
        lambda t, x: t.movedim(x, [True, 0], [0, 1]),
        lambda t, x: t.movedim(x, [0, 1], [True, 0]),
        lambda t, x: t.moveaxis(x, source=True, destination=0),
        lambda t, x: x.std([True]),
        lambda t, x: x.std(True, True),
        lambda t, x: x.var((True, 0)),
        lambda t, x: t.var_mean(x, [True]),
    ],
)
def test_a_bool_is_no_dimension(call):
    for t in (taeda, torch):
        with pytest.raises(TypeError):
            call(t, t.ones(2, 3))
