"""Programs with numbers and sizes that only a run finds, against ``torch.export``: symbols, ranges, errors, numbers."""

import io
import warnings

import pytest

import taeda
import taeda.export

torch = pytest.importorskip("torch")
from .test_like_pytorch import as_taeda, compare  # noqa: E402


class Calls:
    """A module of one function ``f(t, *args)``, of either framework ``t``."""

    def __new__(cls, t, function):
        class Calls(t.nn.Module):
            def forward(self, *args):
                return function(t, *args)

        return Calls()


def prefix(t, x, n):
    k = n.item()
    t._check(k >= 1)
    t._check(k <= x.shape[0])
    return x[:k] * 2


def ones(t, x, n):
    return t.ones(n.item()).cumsum(0)


def ramp(t, x, n):
    k = n.item()
    t._check_is_size(k)
    return t.arange(k) * 2, t.zeros(k, 2).sum(1), k + 1


def equal_sizes(t, x, n):
    return x[: n.item()] + t.ones(4, 3)


def of_input(t, x, n):
    k = n.item()
    t._check(k == x.shape[0])
    return t.zeros(k) + x[:, 0]


def split(t, x, n):
    return x.split(t.stack([n, 4 - n]).tolist())


def scaled(t, x, n):
    return x * x.mean().item()


def found(t, x, n):
    return x.nonzero(), t.where(x > 0), t.argwhere(x > 0.5)


def mask(t, x, n):
    y = x[x > 0]
    return y, y.sum(), t.cat([y, x[:, 0]])


def rows(t, x, n):
    kept = x[x.sum(1) > 0]
    return kept @ t.ones(3, 2), kept.shape[0], kept.reshape(-1)


def normalised(t, x, n):
    y = t.masked_select(x, x > 0)
    return (y / y.numel()).softmax(0), y.view(-1, 1)


def distinct(t, x, n):
    values, inverse, counts = x.round().unique(return_inverse=True, return_counts=True)
    return values, inverse, counts, values[inverse]


def some_results(t, x, n):
    """Functions whose results are those that are asked for; ATen's have all of them."""
    y = x.round()
    one = y.unique(), y.unique(dim=0), t.unique_consecutive(y)
    return *one, *y.unique(dim=1, return_counts=True), *t.unique_consecutive(y, return_counts=True)


def counted(t, x, n):
    return t.bincount((x.abs() * 2).long().flatten(), minlength=3), t.bincount(t.tensor([1, 1, 2]))


def repeated(t, x, n):
    return x.repeat_interleave(t.tensor([1, 0, 2, 1]), dim=0)


def element(t, x, n):
    return x[n.item()], x[n.item() - 1, 0]


def truth(t, x, n):
    return (x > 0).any().item(), x + 1


def bounded(t, x, n):
    k = n.item()
    t.sym_constrain_range_for_size(k, min=1, max=4)
    return x.narrow(0, 0, k)


def decided(t, x, n):
    k = n.item()
    t._check(k > 0)
    return x[:k] if k > 0 and k >= 1 else -x


def two(t, x, n):
    a, b = n.item(), (n + 1).item()
    t._check_is_size(a)
    t._check_is_size(b)
    return t.ones(a, b), a * b


def expanded(t, x, n):
    k = n.item()
    t._check_is_size(k)
    return x[0].expand(k, 3), x[:1].repeat(k, 1)


def overwritten(t, x, n):
    y = x.clone()
    y[x > 0] = 0
    y[: n.item()] += 1
    return y


def assigned(t, x, n):
    y = x.clone()
    y[x > 0] = x[x > 0] * 2
    return y


def slice_of_tensor(t, x, n):
    return x[n:], x[:n].sum()


def masked_loss(t, x, n):
    target = (x[:, 0] > 0).long()
    keep = x.sum(1) > -1
    return t.nn.functional.cross_entropy(x[keep], target[keep])


def histogram(t, x, n):
    counts, edges = t.histogram(x, 4)
    return counts / counts.sum(), edges[1:]


def filled(t, x, n):
    k = n.item()
    return t.full((3,), k) + x.new_full((2, 3), k)


PROGRAMS = {f.__name__: f for f in (
    prefix, ones, ramp, equal_sizes, of_input, split, scaled, found, mask, rows, normalised, distinct, some_results, counted,
    repeated, element, truth, bounded, decided, two, expanded, overwritten, assigned, slice_of_tensor, masked_loss,
    histogram, filled,
)}  # fmt: skip
#: Programs whose symbols PyTorch counts or bounds otherwise: of constants, rows, parts and elements whose place is not known have others there.
OTHER_SYMBOLS = {
    "counted",
    "some_results",
    "equal_sizes",
    "element",
    "overwritten",
    "slice_of_tensor",
    "split",
    "decided",
}


def inputs(n=2, seed=0):
    torch.manual_seed(seed)
    return torch.randn(4, 3), torch.tensor(n)


def others(name):
    fixed = {"equal_sizes": [4], "of_input": [4], "filled": [-1, 3]}
    return [inputs(n, seed) for seed, n in enumerate(fixed.get(name, [1, 2, 3]))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function = PROGRAMS[name]
    program = taeda.export.export(Calls(taeda, function), as_taeda(inputs()))
    file = io.BytesIO()
    taeda.export.save(program, file, format="taeda")
    file.seek(0)
    loaded = taeda.export.load(file)
    assert str(loaded) == str(program)
    fewer = program.run_decompositions()
    assert bool(fewer.range_constraints) == bool(program.range_constraints)
    eager = Calls(torch, function)
    for args in others(name):
        want = eager(*args)
        for each in (program, loaded, fewer, loaded.run_decompositions()):
            compare(each.module()(*as_taeda(args)), want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranges(name):
    ours = taeda.export.export(Calls(taeda, PROGRAMS[name]), as_taeda(inputs()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.export.export(Calls(torch, PROGRAMS[name]), inputs())
    shown = {
        str(k): str(v).replace("-oo", "-int_oo").replace(" oo", " int_oo") for k, v in theirs.range_constraints.items()
    }
    mine = {k: str(v) for k, v in ours.range_constraints.items()}
    if name not in OTHER_SYMBOLS:
        assert mine == shown
    kinds = [type(s.arg).__name__ for s in ours.graph_signature.output_specs]
    assert kinds == [type(s.arg).__name__ for s in theirs.graph_signature.output_specs]


def branches(t, x, n):
    return x if n.item() > 2 else -x


def loops(t, x, n):
    for _ in range(n.item()):
        x = x + 1
    return x


def excluded(t, x, n):
    k = n.item()
    t._check(k > 3)
    t._check(k < 2)
    return t.ones(k)


def asks_a_tensor(t, x, n):
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize("function", [branches, loops, asks_a_tensor])
def test_what_python_must_know(function):
    with pytest.raises(RuntimeError) as theirs, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.export(Calls(torch, function), inputs())
    with pytest.raises(RuntimeError, match="Three ways to mend it") as ours:
        taeda.export.export(Calls(taeda, function), as_taeda(inputs()))
    assert type(ours.value).__name__ == type(theirs.value).__name__ == "GuardOnDataDependentSymNode"
    assert f"in {function.__name__}" in str(ours.value)


def test_conditions_that_exclude_each_other():
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        taeda.export.export(Calls(taeda, excluded), as_taeda(inputs()))


@pytest.mark.parametrize("name, n", [("prefix", 5), ("of_input", 3), ("bounded", 0), ("two", -1), ("decided", 0)])
def test_conditions_are_checked_when_the_program_runs(name, n):
    program = taeda.export.export(Calls(taeda, PROGRAMS[name]), as_taeda(inputs()))
    for each in (program, program.run_decompositions()):
        with pytest.raises(RuntimeError, match=r"Runtime assertion failed|Invalid value range"):
            each.module()(*as_taeda(inputs(n)))


def test_dynamic_sizes_as_well():
    function = PROGRAMS["rows"]
    batch = taeda.export.Dim("batch", min=2)
    sizes = {"args": ({0: batch}, None)}
    program = taeda.export.export(Calls(taeda, function), as_taeda(inputs()), dynamic_shapes=sizes)
    assert list(program.range_constraints) == ["batch", "u0"]
    for size in (3, 9):
        args = torch.randn(size, 3), torch.tensor(1)
        for each in (program, program.run_decompositions()):
            compare(each.module()(*as_taeda(args)), Calls(torch, function)(*args))


def test_the_text_of_an_error_decides_nothing():
    @taeda.library.custom_op("texts::fails", mutates_args=())
    def fails(x: taeda.Tensor) -> taeda.Tensor:
        return x.clone()

    @fails.register_fake
    def _(x):
        raise ValueError("Tensor.item() cannot be called on meta, says the op")

    with pytest.raises(ValueError, match="says the op"):
        taeda.export.export(Calls(taeda, lambda t, x: fails(x)), (taeda.ones(2),))
