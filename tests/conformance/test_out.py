"""``out=`` of every op of PyTorch's operator database: other strides, sizes, dtypes and shared memory, against PyTorch."""

import copy
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import UNSPECIFIED, close, entries, explain, kind_of, seeded, tensors  # noqa: E402
from .opdb.translate import Missing, back, translate  # noqa: E402

LEFT_OUT = {
    "linalg.eigvals": "PyTorch writes past the end of what shares memory",
    "linalg.eigvalsh": "the same",
    "linalg.eigh": "vectors have any sign",
    "fft.ihfft2": "PyTorch gives other values into an out with gaps than without out",
    "fft.ihfftn": "the same",
    "histc": "PyTorch takes an expanded out, of which one value is left",
    "narrow_copy": "PyTorch writes without looking at the strides",
    "nn.functional.gelu": "the same",
    "nn.functional.avg_pool3d": "the same",
    "nn.functional.linear": "PyTorch resizes an out of the right sizes",
    "abs": "takes an out of another dtype, as PyTorch does for magnitudes of complex numbers only",
    "normal": "an out of other sizes is resized without a warning",
    "polygamma": "near the poles no digit is the same",
    "special.polygamma": "the same",
}
NAMES = sorted(name for name, op in entries().items() if op.supports_out and op.name not in (*UNSPECIFIED, *LEFT_OUT))


def full(like, *sizes, dtype=None):
    return torch.full(sizes, 7, dtype=dtype or like.dtype)


MAKERS = {
    "gaps": lambda w: full(w, *w.shape, 2)[..., 0],
    "transposed": lambda w: full(w, *reversed(w.shape)).permute(tuple(reversed(range(w.dim())))),
    "offset": lambda w: full(w, *w.shape, 3)[..., 1:2].squeeze(-1),
    "another shape": lambda w: full(w, *w.shape, 2),
    "no elements": lambda w: full(w, 0),
    "float64": lambda w: full(w, *w.shape, dtype=torch.float64),
    "requires grad": lambda w: full(w, *w.shape).requires_grad_() if w.is_floating_point() else full(w, *w.shape),
}


def sample_of(op):
    """The first sample that PyTorch takes an ``out`` for, and its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in list(op.sample_inputs("cpu", torch.float32, requires_grad=False))[:8]:
            args, kwargs = copy.deepcopy(((sample.input, *sample.args), dict(sample.kwargs)))
            want, error = seeded(op.op, *args, **kwargs)
            if error is not None or not tensors(want) or any(w.numel() == 0 for w in tensors(want)):
                continue
            room = packed([torch.empty_like(w) for w in tensors(want)], want)
            if seeded(op.op, *args, **kwargs, out=room)[1] is None:
                return sample, want
    return None, None


def case_of(name):
    """An entry, the function here, its sample and the result; None where there is none of these."""
    op = entries()[name]
    if torch.float32 not in op.supported_dtypes("cpu"):
        return None
    try:
        ours = translate(op.op)
    except Missing:
        return None
    sample, want = sample_of(op)
    return None if sample is None else (op, ours, sample, want)


def packed(outs, like):
    return outs[0] if isinstance(like, torch.Tensor) else type(like)(outs) if type(like) is list else tuple(outs)


def memory(x):
    """All that the storage of ``x`` holds."""
    if isinstance(x, torch.Tensor):
        return torch.empty(0, dtype=x.dtype).set_(x.detach().untyped_storage())
    return taeda.empty(0, dtype=x.dtype).set_(x.detach().untyped_storage())


def own(x):
    """An ``out`` of taeda's like ``x``, on memory that can grow."""
    whole = taeda.empty(memory(x).numel(), dtype=translate(x.dtype)).fill_(7)
    made = whole.as_strided(tuple(x.shape), x.stride(), x.storage_offset()).detach()
    return made.requires_grad_() if x.requires_grad else made


def run(fn, args, kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.manual_seed(42)
        taeda.manual_seed(42)
        try:
            fn(*args, **kwargs)
            error = None
        except Exception as raised:
            error = raised
    return error, any("was resized" in str(w.message) for w in caught)


@pytest.mark.parametrize("name", NAMES)
def test_out_is_written_as_in_pytorch(name):
    found = case_of(name)
    if found is None:
        return
    op, ours, sample, want = found
    for kind, maker in MAKERS.items():
        outs = [maker(w) for w in tensors(want)]
        args, kwargs = copy.deepcopy(((sample.input, *sample.args), dict(sample.kwargs)))
        memo = {}
        our_args, our_kwargs = translate(args, memo), translate(kwargs, memo)
        our_outs = [own(out) for out in outs]
        their_error, their_warning = run(op.op, args, {**kwargs, "out": packed(outs, want)})
        our_error, our_warning = run(ours, our_args, {**our_kwargs, "out": packed(our_outs, want)})
        label = f"{name} out: {kind}"
        if their_error is not None:
            assert isinstance(our_error, kind_of(their_error)), f"{label}: {our_error!r}, not {their_error!r}"
            continue
        if kind == "requires grad":  # some of PyTorch's do not look
            assert isinstance(our_error, RuntimeError) or not tensors(want)[0].is_floating_point()
            continue
        assert our_error is None, f"{label}: {explain(our_error)}"
        assert our_warning or not their_warning, f"{label}: no warning of the new size"
        for got, out in zip(our_outs, outs, strict=True):
            exact = {"float64": torch.float32}.get(kind, out.dtype)  # what was computed
            close(got.to(translate(exact)), out.to(exact), label)
            if kind in ("gaps", "transposed", "offset"):
                assert tuple(got.stride()) == out.stride()
                close(memory(got), memory(out), f"{label}, memory")


def sharing(t):
    """Calls whose ``out`` shares memory with an argument or itself, by name; True where PyTorch refuses them."""
    index = lambda *x: t.tensor(x)  # noqa: E731
    a, i, mask, m = t.arange(12.0), index(2, 1, 0), index(1, 1, 0, 0, 1, 0) > 0, t.arange(16.0).reshape(4, 4)
    yield "index_select", True, lambda: t.index_select(m, 0, index(1, 0), out=m[:2])
    yield "index_select, same", True, lambda: t.index_select(a, 0, index(*range(12)), out=a)
    yield "index_select, expanded", True, lambda: t.index_select(m, 1, i, out=t.empty(1, 3).expand(4, 3))
    yield "take", True, lambda: t.take(a, i, out=a[:3])
    yield "take, index", True, lambda: t.take(i.clone(), i[1:], out=i[:-1])
    yield "gather", True, lambda: t.gather(a, 0, i, out=a[:3])
    yield "gather, out that grows", True, lambda: t.gather(i.clone(), 0, i[1:], out=i[:1])
    yield "gather, the index itself", False, lambda: t.gather(i.clone(), 0, i, out=i)
    yield "masked_select", True, lambda: t.masked_select(a[:6], mask, out=a[:3])
    yield "kthvalue", True, lambda: t.kthvalue(m, 2, out=(m[0], t.empty(4, dtype=t.int64)))
    yield "bernoulli", True, lambda: t.bernoulli(a[:6] / 12, out=t.empty(1).expand(6))
    yield "bernoulli, shifted", True, lambda: shifted(t)
    yield "bernoulli_", True, lambda: (lambda p: p[1:7].bernoulli_(p[:6]))(t.zeros(12))
    yield "cat", True, lambda: t.cat([a[:3], a[6:9]], out=a[3:9])
    yield "cat, apart", False, lambda: t.cat([a[:3], a[3:6]], out=a[6:12])
    yield "sort, shifted", True, lambda: t.sort(a[:6], out=(a[3:9], t.empty(6, dtype=t.int64)))
    yield "cumsum, shifted", True, lambda: t.cumsum(a[:6], 0, out=a[3:9])
    yield "cumsum, same", False, lambda: t.cumsum(a, 0, out=a)
    yield "cross, same", True, lambda: t.linalg.cross(*[m.view(-1)[:12].view(4, 3)] * 2, out=m.view(-1)[:12].view(4, 3))
    yield "scatter, src", True, lambda: t.scatter(a, 0, index(*range(12)), m.view(-1)[:12], out=m.view(-1)[:12])
    yield "frexp, shifted", True, lambda: t.frexp(a[:6], out=(a[3:9], t.empty(6, dtype=t.int32)))


def shifted(t):
    p = t.zeros(12)
    return t.bernoulli(p[:6], out=p[1:7])


@pytest.mark.parametrize("place", range(len(list(sharing(torch)))))
def test_an_out_that_shares_memory(place):
    name, refused, call = list(sharing(torch))[place]
    _, _, our_call = list(sharing(taeda))[place]
    want, their_error = seeded(call)
    got, our_error = seeded(our_call)
    assert (their_error is not None) == refused
    assert isinstance(our_error, RuntimeError) == refused, f"{name}: {our_error!r}"
    if not refused:
        close(got, want, name)


def test_numbers_in_a_row_fill_an_out_of_as_many_elements():
    for t in (torch, taeda):
        for call, start in ((t.arange, 4), (t.linspace, 3)):
            y = t.zeros(2, 3)
            call(0, start, *([4] if call is t.linspace else []), out=y[:, 1:])
            assert y.tolist() == [[0, 0, 1], [0, 2, 3]]
        y = t.ones(2, 3)
        t.logspace(0, 3, 4, out=y[:, 1:])
        assert back(y).long().tolist() == [[1, 1, 10], [1, 100, 1000]]
        y = t.zeros(2, 3, dtype=t.int64)
        t.range(0, 3, out=y[:, 1:])
        assert y.tolist() == [[0, 0, 1], [0, 2, 3]]
        with pytest.raises(RuntimeError, match="single memory"):
            t.arange(4, out=t.zeros(1).expand(4))
        with pytest.warns(UserWarning):
            assert t.arange(4, out=t.zeros(3)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
def test_out_says_the_dtype_to_compute_in(name):
    for t in (torch, taeda):
        fn, x = getattr(t, name), t.tensor([1.75, 2.25, 3.5])
        with pytest.raises(RuntimeError):
            fn(x, 0, dtype=t.float64, out=t.empty(3 if name.startswith("cum") else (), dtype=t.float32))
    if name == "nansum":
        return
    want = getattr(torch, name)(torch.tensor([1.75, 2.25, 3.5]), 0, out=torch.empty(0, dtype=torch.int64))
    got = getattr(taeda, name)(taeda.tensor([1.75, 2.25, 3.5]), 0, out=taeda.empty(0, dtype=taeda.int64))
    close(got, want, name)


def test_random_numbers_are_written_into_the_memory_of_out():
    for name in ("rand", "randn"):
        outs = []
        for t in (torch, taeda):
            base = t.zeros(2, 40)
            t.manual_seed(3)
            getattr(t, name)(20, out=base[1, ::2])
            outs.append(back(base) if t is taeda else base)
        assert torch.equal(*outs)


def test_normal_warns_of_an_out_with_elements():
    for t in (torch, taeda):
        for mean, std in ((t.zeros(2, 3), t.ones(2, 1)), (t.zeros(2, 3), 1.0), (0.0, t.ones(2, 3))):
            with pytest.warns(UserWarning, match="was resized"):
                assert t.normal(mean, std, out=t.zeros(3)).shape == (2, 3)
