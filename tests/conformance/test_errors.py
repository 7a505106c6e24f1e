"""Calls that PyTorch refuses: taeda refuses them too, and leaves every tensor as it was."""

import copy
import itertools

import pytest

import taeda

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.broken import refusals  # noqa: E402
from .opdb.checks import close, entries, seeded, tensors  # noqa: E402
from .opdb.translate import translate  # noqa: E402
from .test_out import LEFT_OUT, case_of, packed  # noqa: E402

NAMES = sorted(entries())
WITH_OUT = [n for n in NAMES if entries()[n].supports_out and n not in LEFT_OUT]


def check_refusals(name):
    found = refusals(entries()[name])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", NAMES[::24])
def test_a_call_that_fails_changes_nothing(name):
    check_refusals(name)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [n for n in NAMES if n != "__rdiv__"])  # an AttributeError is PyTorch's
def test_a_call_that_fails_changes_nothing_all(name):
    check_refusals(name)


# ---- out= of another kind -----------------------------------------------------------------------------------------------

#: What takes an ``out`` of another kind in PyTorch: it asks neither for its device nor for its layout.
ASKS_NOT = {
    ("meta", name) for name in ("lu", "linalg.solve_triangular", "amax", "amin", "mean", "empty", "empty_permuted")
} | {("sparse", "zeros"), ("csr", "normal.number_mean")}


def others(t, shape, dtype):
    """Tensors of another layout or on another device, by name."""
    yield "meta", lambda: t.empty(shape, dtype=dtype, device="meta")
    if shape:
        yield "sparse", lambda: t.zeros(shape, dtype=dtype).to_sparse()
        yield "nested", lambda: t.nested.nested_tensor([t.zeros(shape[1:], dtype=dtype) for _ in range(shape[0])])
    if len(shape) == 2:
        yield "csr", lambda: t.zeros(shape, dtype=dtype).to_sparse_csr()


def check_out(name):
    found = case_of(name)
    if found is None:
        return
    op, ours, sample, want = found
    first, *rest = tensors(want)
    shape = tuple(first.shape)
    for kind, make in others(torch, shape, first.dtype):
        if (kind, name) in ASKS_NOT:
            continue
        args, kwargs = copy.deepcopy(((sample.input, *sample.args), dict(sample.kwargs)))
        our_args, our_kwargs = translate((args, kwargs), {})
        outs = [make(), *(torch.empty_like(w) for w in rest)]
        our_outs = [dict(others(taeda, shape, translate(first.dtype)))[kind](), *translate(outs[1:])]
        _, their_error = seeded(op.op, *args, **{**kwargs, "out": packed(outs, want)})
        _, our_error = seeded(ours, *our_args, **{**our_kwargs, "out": packed(our_outs, want)})
        if their_error is not None:
            assert isinstance(our_error, RuntimeError), f"{name}, out on {kind}: {our_error!r} and not {their_error!r}"


@pytest.mark.parametrize("name", WITH_OUT[::16])
def test_out_of_another_kind(name):
    check_out(name)


@pytest.mark.sweep
@pytest.mark.parametrize("name", WITH_OUT)
def test_out_of_another_kind_all(name):
    check_out(name)


def forms_of(t):
    return {"sparse": t.eye(3).to_sparse(), "csr": t.eye(3).to_sparse_csr(), "dense": t.eye(3)}


@pytest.mark.parametrize("name", ["mm", "add", "mul", "matmul"])
def test_out_of_products_with_sparse_tensors(name):
    """Where both give a result it is ``out``, with the same values; another layout is refused."""
    for a in forms_of(torch):
        for b in forms_of(torch):
            for c in forms_of(torch):
                results = []
                for t in (torch, taeda):
                    out = forms_of(t)[c]
                    result, error = seeded(getattr(t, name), forms_of(t)[a], forms_of(t)[b] * 2, out=out)
                    assert error is not None or result is out, (a, b, c)
                    results.append((error, out.to_dense()))
                (refused, want), (ours, got) = results
                if refused is None and ours is None:
                    close(got, want, f"{name}, {a}, {b}, out {c}")
                elif ours is not None:
                    assert isinstance(ours, NotImplementedError), (a, b, c, ours)


# ---- memory that is not there -------------------------------------------------------------------------------------------


def on_meta(t):
    """Calls that reach for the elements of a tensor or a storage on device meta, or of a sparse one."""
    x, empty = t.ones(6), t.empty(6, device="meta")
    yield lambda: x.set_(empty)
    yield lambda: x.set_(empty.untyped_storage())
    yield lambda: x.set_(empty.untyped_storage(), 0, (2, 3))
    yield lambda: empty.set_(x)
    yield lambda: empty.set_(x.untyped_storage())
    yield lambda: t.Tensor(empty.untyped_storage())
    yield lambda: t.FloatTensor(empty.untyped_storage())
    yield lambda: empty.storage().tolist()
    yield lambda: empty.storage()[0]
    yield lambda: empty.storage().cpu()
    yield lambda: empty.share_memory_()
    yield lambda: setattr(x, "data", empty)
    yield lambda: setattr(x, "data", t.eye(3).to_sparse())
    yield lambda: setattr(x, "data", t.nested.nested_tensor([t.ones(2), t.ones(3)]))


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("place", range(len(list(on_meta(torch)))))
def test_memory_that_is_not_there(place):
    for t in (torch, taeda):
        with pytest.raises(RuntimeError):
            list(on_meta(t))[place]()


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_tensors_of_tensors_on_meta_are_on_meta():
    for t in (torch, taeda):
        assert t.tensor(t.empty(3, device="meta"), dtype=t.float64).device.type == "meta"


@pytest.mark.parametrize("name", ["item", "dim", "size", "tolist", "data_ptr", "untyped_storage"])
def test_methods_ask_for_their_own_class(name):
    for t in (torch, taeda):
        for other in ("x", 3, None, [1.0]):
            with pytest.raises(TypeError):
                getattr(t.Tensor, name)(other)
            with pytest.raises(TypeError):
                t.Generator.initial_seed(other)


# ---- arguments ----------------------------------------------------------------------------------------------------------


def fitting(t):
    """Calls with arguments of other kinds, dtypes or sizes: PyTorch takes the last of each group, or says why not."""
    F, x, d, i = t.nn.functional, t.ones(2, 3), t.ones(2, 3).double(), t.ones(2, 3).long()
    three, half = t.ones(3), t.ones(2, 3).bfloat16()
    points, image = t.arange(6.0).reshape(3, 2) / 6, t.ones(1, 1, 4, 4)
    for f in (t.addcmul, t.addcdiv):
        yield from (lambda f=f: f(x, 2, x), lambda f=f: f(x, x, 2), lambda f=f: f(2, x, x), lambda f=f: f(x, x, x))
    yield from (lambda: t.lerp(x, 2.0, 0.5), lambda: t.lerp(2.0, x, 0.5), lambda: t.lerp(x, x, t.tensor(0.5)))
    yield from (lambda: t.add(i, 2, alpha=0.5), lambda: t.add(2, i, alpha=0.5), lambda: t.add(i, 2, alpha=2))
    for f, y in itertools.product((t.add, t.sub, t.rsub), (i, i[:0], i > 0, x, x + 0j)):
        yield from (lambda f=f, y=y, a=a: f(y, y, alpha=a) for a in (1j, 0.5, True, 2))
    for n in (1.5, True, "x", None, t.tensor(1), t.tensor([1.0, 2.0]), 1):
        yield from (lambda n=n: x.narrow(0, n, 1), lambda n=n: x.narrow(0, 0, n), lambda n=n: x.select(0, n))
        yield from (lambda n=n: t.linspace(n, 1, 1), lambda n=n: t.linspace(0, n, 1), lambda n=n: t.linspace(0, 1, n))
        yield from (lambda n=n: t.randint(n, (2,)), lambda n=n: t.logspace(0, n, 1))
        yield from (lambda n=n: F.avg_pool2d(image, 2, ceil_mode=n), lambda n=n: F.max_pool2d(image, 2, ceil_mode=n))
        yield from (lambda n=n: F.adaptive_avg_pool2d(image, n), lambda n=n: F.adaptive_max_pool2d(image, (n, 2)))
        yield from (lambda n=n: F.avg_pool2d(image, 2, divisor_override=n), lambda n=n: F.interpolate(image, (n, 2)))
    yield from (lambda: t.linspace(0, 1), lambda: t.logspace(0, 1), lambda: t.linspace(1j, 2, 3, dtype=t.float32))
    yield lambda: t.linspace(t.ones(2), 1, 3)
    for steps in ((-1,), (1,)):
        yield from (lambda s=steps: t.arange(6.0).as_strided((2,), s, 3), lambda s=steps: three.as_strided_((2,), s))
    for shapes in ([(3,), (2, 3), (2, 3)], [(2, 3), (3,), (2, 3)], [(2, 3), (2, 3), (3,)], [(3,), (3,), (3,)]):
        yield lambda s=shapes: F.triplet_margin_loss(*map(t.ones, s))
        yield lambda s=shapes: F.triplet_margin_with_distance_loss(*map(t.ones, s))
    for y in (d, i, half, x):
        yield from (
            lambda y=y: t.cross(x, y, dim=1),
            lambda y=y: t.linalg.cross(y, x),
            lambda y=y: t.linalg.vecdot(x, y),
        )
        yield from (lambda y=y: F.prelu(x, y[0]), lambda y=y: F.layer_norm(x, (3,), y[0]), lambda y=y: F.prelu(x, y))
        yield from (lambda y=y: F.layer_norm(y, (3,), three), lambda y=y: F.layer_norm(x, (3,), None, y[0]))
        yield lambda y=y: F.layer_norm(y, (3,), three, y[0])
        yield from (lambda y=y: F.bilinear(x, x, t.ones(3, 3, 3), y[0]), lambda y=y: F.linear(x, t.ones(3, 3), y[0]))
        yield lambda y=y: F.embedding_bag(t.tensor([[0, 1, 1]]), x, per_sample_weights=y[:1], mode="sum")
    for y in (d, i, x):
        yield from (lambda y=y: t.cdist(x, y), lambda y=y: t.cdist(y, x))
        yield from (lambda y=y: F.binary_cross_entropy(x, y), lambda y=y: F.binary_cross_entropy_with_logits(x, y))
    yield from (lambda: t.cdist(three, x), lambda: F.embedding_bag(t.tensor([[0, 1]]), i))
    for shape in ((1, 3), (2, 3), (3, 3), (1, 1, 3), (2, 1), (1,), (2,), ()):
        yield lambda s=shape: F.linear(x, t.ones(3, 3), t.arange(float(t.ones(s).numel())).reshape(s))
    for shape in ((1, 3), (2, 3), (3, 3), (2, 2, 3), (1,), (2,)):
        yield lambda s=shape: F.linear(t.ones(2, 2, 3), t.ones(3, 3), t.ones(s))
    for low_high in ([0.0, 1.0], [0.0, 1.0] * 2, [0.0] * 5):
        yield lambda r=low_high: t.histogramdd(points, [2, 2], range=r)
    yield from (lambda: t.from_dlpack(t.ones(2, device="meta")), lambda: t.renorm(x, 2, 7, 1.0))
    yield from (lambda: t.renorm(x, 2, 0, -1.0), lambda: t.linalg.lstsq(x, t.ones(1, 2, 3)))
    yield from (t.empty, t.zeros, t.ones, x.new_zeros, x.repeat, x.tile, lambda: t.quantile(x, [0.5]))
    yield from (lambda: t.allclose(x, x, rtol=float("nan")), lambda: t.normal(three, three, nonsense=1))
    yield lambda: t.linalg.solve_triangular(t.eye(2).double() * 2, x, upper=True)
    yield lambda: t.linalg.solve_triangular(t.eye(2) * 2, d, upper=True)
    yield lambda: t.triangular_solve(x, t.eye(2).double())
    yield from (t.meshgrid, t.cartesian_prod, lambda: x.clamp("x"), lambda: x.clamp_max("1"), lambda: x.clamp(0, [1.0]))
    yield lambda: F.ctc_loss(t.zeros(5, 1, 3), t.tensor([[1, 2]]), [5.5], [2])


def sizes_of_zero(t):
    """Layers on inputs that have none of something."""
    F = t.nn.functional
    for shape in ((2, 0, 4), (0, 2, 4), (0, 4), (2, 3, 0)):
        x = t.ones(shape, requires_grad=True)
        for size in (1, 2, 3):
            yield from (
                lambda x=x, n=size: F.adaptive_avg_pool1d(x, n),
                lambda x=x, n=size: F.adaptive_max_pool1d(x, n),
            )
        yield from (
            lambda x=x: F.instance_norm(x),
            lambda x=x: t.nn.InstanceNorm1d(0)(x),
            lambda x=x: F.avg_pool1d(x, 2),
        )
        for mode in ("reflect", "replicate", "circular"):
            yield lambda x=x, mode=mode: F.pad(x, (1, 1), mode=mode)
    for shape in ((2, 0, 4, 4), (0, 2, 4, 4), (0, 4, 4)):
        x = t.ones(shape, requires_grad=True)
        for size in (1, 2, 3):
            yield from (
                lambda x=x, n=size: F.adaptive_avg_pool2d(x, n),
                lambda x=x, n=size: F.adaptive_max_pool2d(x, n),
            )
        yield from (
            lambda x=x: F.instance_norm(x),
            lambda x=x: t.nn.InstanceNorm2d(0)(x),
            lambda x=x: F.max_pool2d(x, 2),
        )
        for mode in ("reflect", "replicate", "circular"):
            yield lambda x=x, mode=mode: F.pad(x, (1, 1, 1, 1), mode=mode)
    yield lambda: F.adaptive_avg_pool2d(t.ones(2, 2, 4, 4, requires_grad=True), 0)


@pytest.mark.parametrize("calls", [fitting, sizes_of_zero])
def test_outcomes(calls):
    """The same outcome as in PyTorch: a result of the same values, or an exception that its ``except`` catches."""
    differ = []
    for place, (theirs, ours) in enumerate(zip(calls(torch), calls(taeda), strict=True)):
        (want, their_error), (got, our_error) = seeded(theirs), seeded(ours)
        if (their_error is None) is not (our_error is None) or not isinstance(our_error, type(their_error)):
            differ.append(f"{place}, line {ours.__code__.co_firstlineno}: {our_error!r} and not {their_error!r}")
        elif their_error is None:
            close(got, want, str(place))
    assert not differ, "\n".join(differ)


def maxima(t):
    """Forms of max and min with a tensor for a dimension."""
    x, zero = t.tensor([[1.0, 5, 2], [4, 3, 9]]), t.tensor(0)
    for f in (t.max, t.min):
        yield lambda f=f: f(x, zero)
        yield lambda f=f: f(x, zero, True)
        yield lambda f=f: f(x, zero, keepdim=False)
        yield lambda f=f: f(x, True, dim=zero)
        yield lambda f=f: f(x, dim=zero, keepdim=True)
        yield lambda f=f: f(x, dim=zero)
        yield lambda f=f: f(x, axis=zero, keepdims=True)
        yield lambda f=f: f(x, other=zero)
        yield lambda f=f: f(x, zero, out=(t.empty(3), t.empty(3, dtype=t.int64)))
        yield lambda f=f: f(x, dim=None)
        yield lambda f=f: f(x, keepdim=True)
        yield lambda f=f: f(x, t.tensor(0.0), True)
        yield lambda f=f: f(x, dim=t.tensor([0]))
        yield lambda f=f: f(x, True)
        yield lambda f=f: f(x, [0])
        yield lambda f=f: f(x, x, dim=0)


@pytest.mark.parametrize("place", range(len(list(maxima(torch)))))
def test_max_and_min_along_a_tensor(place):
    want, their_error = seeded(list(maxima(torch))[place])
    got, our_error = seeded(list(maxima(taeda))[place])
    assert type(our_error) is type(their_error), our_error
    if their_error is None:
        close(got, want)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_losses_of_integers(dtype):
    for reduction in ("none", "sum", "mean"):
        for margin in (1, 0.5):
            results = []
            for t in (torch, taeda):
                x, y = t.tensor([1, 2, 3]).to(getattr(t, dtype)), t.tensor([1, -1, 1])
                options = {"margin": margin, "reduction": reduction}
                results.append([
                    seeded(t.nn.functional.hinge_embedding_loss, x, y, **options),
                    seeded(t.nn.functional.margin_ranking_loss, x, x.flip(0), y, **options),
                ])  # fmt: skip
            for (want, their_error), (got, our_error) in zip(*results, strict=True):
                assert type(our_error) is type(their_error), our_error
                if their_error is None:
                    close(got, want)


def norms(t):
    """Calls whose running statistics, parameters or dtypes do not fit, and the statistics."""
    F, x = t.nn.functional, t.arange(30.0).reshape(2, 3, 5)
    for name, norm in (("batch_norm", F.batch_norm), ("instance_norm", F.instance_norm)):
        flag = {"training": True} if name == "batch_norm" else {"use_input_stats": True}
        for wrong in ("weight", "bias", "running_mean", "running_var"):
            for value in (t.ones(4), t.ones(3, dtype=t.float64), t.ones(3, dtype=t.int64), t.ones(2, 3), t.ones(())):
                given = {"running_mean": t.zeros(3), "running_var": t.ones(3), wrong: value}
                yield given, lambda f=norm, g=given, k=flag: f(x, **g, **k)
        for wrong in ("running_mean", "running_var"):
            for value in (None, t.ones(3, requires_grad=True)):
                given = {"running_mean": t.zeros(3), "running_var": t.ones(3), wrong: value}
                yield given, lambda f=norm, g=given, k=flag: f(x, **g, **k)


@pytest.mark.parametrize("place", range(len(list(norms(torch)))))
def test_norms_refuse_what_does_not_fit_and_leave_their_statistics(place):
    outcomes = []
    for t in (torch, taeda):
        given, call = list(norms(t))[place]
        before = {k: v.tolist() for k, v in given.items() if v is not None}
        _, error = seeded(call)
        outcomes.append(error)
        if t is taeda and error is not None:
            assert {k: v.tolist() for k, v in given.items() if v is not None} == before
    theirs, ours = outcomes
    assert theirs is None or type(ours) in (RuntimeError, type(theirs)), (ours, theirs)


def test_renorm_takes_norms_of_positive_order():
    for t in (torch, taeda):
        for p in (0, -1.0):
            with pytest.raises(RuntimeError):
                t.renorm(t.ones(2, 3), p, 0, 1.0)


# ---- arguments of the wrong type ---------------------------------------------------------------------------------------

NEED_TENSORS = {
    "matmul": lambda t, x, odd: t.matmul(x, odd),
    "linear": lambda t, x, odd: t.nn.functional.linear(x, odd),
    "conv2d": lambda t, x, odd: t.conv2d(x[None, None], odd),
    "take": lambda t, x, odd: t.take(x, odd),
    "masked_select": lambda t, x, odd: t.masked_select(x, odd),
    "gather": lambda t, x, odd: t.gather(x, 0, odd),
    "scatter_add": lambda t, x, odd: t.scatter_add(x, 0, t.arange(3)[None], odd),
    "index_select": lambda t, x, odd: t.index_select(x, 0, odd),
    "index_add": lambda t, x, odd: t.index_add(x, 0, t.arange(3), odd),
    "index_put": lambda t, x, odd: t.index_put(x, (t.arange(3),), odd),
    "embedding": lambda t, x, odd: t.embedding(x, odd),
}


@pytest.mark.parametrize("odd", [None, "a", 1.5], ids=repr)
@pytest.mark.parametrize("name", NEED_TENSORS)
def test_what_is_no_tensor_is_refused_by_name(name, odd):
    for t in (torch, taeda):
        with pytest.raises(TypeError) as found:
            NEED_TENSORS[name](t, t.ones(3, 3), odd)
        assert name in str(found.value)
    assert "must be Tensor, not " + type(odd).__name__ in str(found.value)


@pytest.mark.parametrize("odd", [None, "a"], ids=repr)
@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_a_matrix_is_no_size(name, odd):
    for t in (torch, taeda):
        with pytest.raises(TypeError, match=name):
            getattr(t, name)(t.ones(2, 3), odd)
        with pytest.raises(TypeError, match="element of type Tensor"):
            getattr(t, name)([t.ones(2, 3)])
    with pytest.raises(TypeError, match="not Tensor"):
        taeda.full(taeda.ones(2, 3), 1.0)
    with pytest.raises(RuntimeError, match="negative"):
        getattr(taeda, name)(2, -3)


@pytest.mark.parametrize("content", [[1, "a"], [1.5, "a"], [True, b"a"], [[1], ["a"]]])
def test_a_string_among_numbers_is_a_type_error(content):
    for t in (torch, taeda):
        with pytest.raises(TypeError):
            t.tensor(content)


def constructors(t):
    yield lambda: t.tensor(int)
    yield lambda: t.tensor([float])
    yield lambda: t.as_tensor(int)
    yield lambda: t.tensor([t.ones(2), 1])
    yield lambda: t.tensor([t.ones(2), t.ones(2)])
    yield lambda: t.tensor([t.ones(1), t.ones(())])
    yield lambda: t.tensor([1.0], requires_grad=1)
    yield lambda: t.tensor([1.0], requires_grad=None)
    yield lambda: t.tensor(1, pin_memory=2)
    yield lambda: t.frombuffer("a", dtype=t.uint8)
    yield lambda: t.frombuffer(1, dtype=t.uint8)
    yield lambda: t.asarray(b"ab", dtype=t.uint8)
    yield lambda: t.zeros(2**63)
    yield lambda: t.zeros(2, 2**63)
    yield lambda: t.zeros(True)
    yield lambda: t.zeros(2, True)
    yield lambda: t.zeros([True])
    yield lambda: t.zeros(t.tensor(2))
    yield lambda: t.zeros(t.tensor([2]))
    yield lambda: t.zeros(t.tensor([2, 2]))
    yield lambda: t.full(2, 1)
    yield lambda: t.full(True, 1)
    yield lambda: t.full(t.tensor([2]), 1)
    yield lambda: t.arange(1j)
    yield lambda: t.ones(2).type("torch.cuda.FloatTensor")
    yield lambda: t.ones(2).type("torch.Tensor")
    yield lambda: t.ones(2).type("torch.foo")


def own_values(t):
    """Fills with a value that lies in what is filled."""

    def of(write):
        x = t.arange(4.0)
        write(x)
        return x

    yield lambda: of(lambda x: x.fill_(x[2]))
    yield lambda: of(lambda x: x.masked_fill_(x > 1, x[3]))
    yield lambda: of(lambda x: x.masked_fill_(x >= 0, x[1]))
    yield lambda: of(lambda x: x[1:].add_(x[:-1]))


@pytest.mark.parametrize("calls", [constructors, own_values])
def test_outcomes_of_constructors_and_fills(calls):
    for place, (a, b) in enumerate(zip(calls(torch), calls(taeda), strict=True)):
        expected, got = _outcome(a), _outcome(b)
        same = issubclass(got, expected) if isinstance(expected, type) and isinstance(got, type) else got == expected
        assert same, (calls.__name__, place, expected, got)


def _outcome(call):
    try:
        return call().tolist()
    except Exception as error:
        return type(error)


# ---- arguments of another kind -------------------------------------------------------------------------------------------


def kinds(t):
    """Calls that one of the frameworks might take, by name."""
    F, g, one = t.nn.functional, t.tensor(2.0, requires_grad=True), t.tensor([3.0])
    image, whole = t.ones(1, 1, 4, 4), t.arange(16).view(1, 4, 4)
    return {
        "full": lambda: t.full((2,), g),
        "full of one element": lambda: t.full((2,), one),
        "full of a plain tensor": lambda: t.full((2,), g.detach()),
        "full_like": lambda: t.full_like(one, g),
        "new_full": lambda: one.new_full((2,), one),
        "arange": lambda: t.arange(g),
        "arange to one element": lambda: t.arange(0, one),
        "arange to a plain tensor": lambda: t.arange(g.detach()),
        "arange by step": lambda: t.arange(0, 1, step=g),
        "lp_pool1d": lambda: F.lp_pool1d(image[0], 2, [2]),
        "lp_pool2d": lambda: F.lp_pool2d(image, 2, [2]),
        "lp_pool2d of three": lambda: F.lp_pool2d(image, 2, [2, 2, 2]),
        "lp_pool2d of two": lambda: F.lp_pool2d(image, 2, [2, 1], (1, 2)),
        "lp_pool3d": lambda: F.lp_pool3d(image[None], 2, [2, 2]),
        "max_pool1d of whole numbers": lambda: F.max_pool1d(whole, 2),
        "max_pool1d of whole numbers with places": lambda: F.max_pool1d(whole, 2, return_indices=True)[0],
        "max_pool1d of bools": lambda: F.max_pool1d(whole > 3, 2),
        "max_pool2d of whole numbers": lambda: F.max_pool2d(whole, 2),
        "adaptive_max_pool1d of whole numbers": lambda: F.adaptive_max_pool1d(whole, 2),
        "adaptive_max_pool2d of whole numbers": lambda: F.adaptive_max_pool2d(whole, 2),
        "adaptive_max_pool3d of whole numbers": lambda: F.adaptive_max_pool3d(whole[None], 2),
        "interpolate by a string": lambda: F.interpolate(image, scale_factor="2"),
        "interpolate no channels": lambda: F.interpolate(image[:, :0], scale_factor=2),
        "interpolate no channels of signals": lambda: F.interpolate(image[0, :, :0], 2, mode="linear"),
        "interpolate no channels of volumes": lambda: F.interpolate(image[None, :, :0], 2, mode="trilinear"),
        "interpolate no channels by area": lambda: F.interpolate(image[:, :0], 2, mode="area"),
        "interpolate no samples": lambda: F.interpolate(image[:0], scale_factor=2),
        "cond of zeros": lambda: t.linalg.cond(t.zeros(2, 2, 2), "nuc"),
        "cond of zeros, Frobenius": lambda: t.linalg.cond(t.zeros(2, 2), "fro"),
    }


@pytest.mark.parametrize("name", kinds(taeda))
def test_arguments_of_another_kind(name):
    outcomes = []
    for t in (torch, taeda):
        try:
            outcomes.append(kinds(t)[name]())
        except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
            outcomes.append(type(error))
    if isinstance(outcomes[0], type):
        assert outcomes[1] is outcomes[0]
    else:
        close(outcomes[1], outcomes[0])
