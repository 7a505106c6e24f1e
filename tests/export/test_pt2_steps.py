"""Files that PyTorch writes of control flow, sizes that may change, buffers that are written to, and rarer steps."""

import copy
import io
import warnings

import pytest

import taeda.export
from tests.agree import close

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch._higher_order_ops import associative_scan, map, scan, while_loop  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional as F  # noqa: E402

AUTO = Dim.AUTO


class Calls(nn.Module):
    """A model of one function, with a layer and buffers."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.linear = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("calls", torch.tensor(0), persistent=False)

    def forward(self, *args):
        return self.function(self, *args)


def _branches(m, x, y):
    return torch.cond(x.sum() > y.sum(), lambda x, y: (m.linear(x), y * 1), lambda x, y: (x - y, y + 0), (x, y))


def _counts(m, x):
    m.total.add_(x.sum(0))
    m.calls += 1
    return x * m.total + m.calls


def _places(m, x, i):
    y = x.clone()
    y[i] = 0
    y[:, 0] += 1
    y[:, i] = 2
    sums = x.index_add(0, i, x[i]), x.scatter(0, i[:, None], 1.0)
    return y, x[i], *sums, x.topk(2)[0], x.unfold(0, 2, 1), x.cumsum(0)


def _spectra(m, x):
    short = torch.stft(torch.arange(64.0), 16, window=torch.ones(16), return_complex=True).abs()
    return torch.fft.irfft(torch.fft.rfft(x) * 2, 3), torch.fft.ifft2(torch.fft.fft2(x)).real, short


def _bags(m, i):
    table = torch.arange(40.0).reshape(10, 4)
    return (
        F.embedding_bag(i, table, mode="max"),
        F.one_hot(i, 10),
        F.cross_entropy(table[i].flatten(0, 1), i.flatten() % 4),
    )


def _crops(m, x):
    return (
        x[:, :, : x.shape[2] // 2],
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.pad(x, (1, 1, 2, 2), "reflect"),
    )


def _number(m, x, y):
    n = y.item()
    torch._check(n >= 0)
    torch._check(n <= 4)
    return x + n


def _x(n=4):
    return torch.linspace(-1, 2, 3 * n).reshape(n, 3)


PROGRAMS = {
    "cond": (_branches, [(_x(), _x() + 1), (_x(5) + 1, _x(5))], ({0: AUTO}, {0: AUTO})),
    "while_loop": (
        lambda m, i, x: while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5), (i, x)),
        [(torch.tensor(0), _x())], None,
    ),
    "scan": (lambda m, i, x: scan(lambda c, r: (c + r, c * 2), i, x, dim=0), [(_x()[0], _x())], None),
    "map": (lambda m, x, y: map(lambda r, y: r * y, x, y), [(_x(), _x()[1])], None),
    "buffers": (_counts, [(_x(),), (_x(6),)], ({0: AUTO},)),
    "places": (_places, [(_x(), torch.tensor([0, 2]))], None),
    "spectra": (_spectra, [(_x(),)], None),
    "bags": (_bags, [(torch.arange(15).reshape(3, 5) % 10,), (torch.arange(10).reshape(2, 5),)], ({0: AUTO},)),
    "crops": (_crops, [(torch.rand(1, 2, 8, 8),), (torch.rand(1, 2, 12, 8),)], ({2: AUTO},)),
    "item": (_number, [(_x(), torch.tensor(2)), (_x(), torch.tensor(3))], None),
}  # fmt: skip


def _ours(tree):
    return tuple(taeda.from_numpy(x.numpy().copy()) for x in tree)


def _expect(program, model, calls):
    file = io.BytesIO()
    torch.export.save(program, file)
    for args in calls:
        file.seek(0)
        close(taeda.export.load(file).module()(*_ours(args)), copy.deepcopy(model)(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_as_in_pytorch(name):
    function, calls, sizes = PROGRAMS[name]
    model = Calls(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, calls[0], dynamic_shapes=None if sizes is None else {"args": sizes})
        _expect(program, model, calls)
        _expect(program.run_decompositions(), model, calls)


def test_an_associative_scan_that_is_decomposed():
    model = Calls(lambda m, x: associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _expect(torch.export.export(model, (_x(),)).run_decompositions(), model, [(_x(),)])


def test_an_associative_scan_that_is_not_decomposed_says_what_to_do():
    model = Calls(lambda m, x: associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = io.BytesIO()
        torch.export.save(torch.export.export(model, (_x(),)), file)
    file.seek(0)
    with pytest.raises(ValueError, match=r"Call run_decompositions\(\) before saving"):
        taeda.export.load(file)
