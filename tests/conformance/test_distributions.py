"""taeda.distributions against torch.distributions: samples of equal seeds, densities, moments, gradients, errors."""

import copy
import functools
import importlib
import itertools
import pickle
import pkgutil
import warnings

import pytest

import taeda
import taeda.distributions

torch = pytest.importorskip("torch")
from tests.agree import close  # noqa: E402

BOTH = [taeda, torch]
D = {taeda: taeda.distributions, torch: torch.distributions}


@pytest.fixture(autouse=True)
def validation():
    """PyTorch's compiler, where a test has used it, leaves the checks of PyTorch's distributions switched off."""
    torch.distributions.Distribution.set_default_validate_args(True)


class T(list):
    """A tensor of parameters, made in either library."""


A = T([0.3, 1.7, 2.5])
B = T([1.2, 0.4, 3.0])
P = T([0.2, 0.5, 0.83])
L = T([-1.0, 0.0, 2.3])
ROWS = T([[0.1, 0.3, 0.6], [0.5, 0.25, 0.25]])
LOGITS = T([[-1.0, 0.5, 2.0], [0.0, 0.3, -0.7]])
TRIL = T([[1.0, 0.0, 0.0], [0.4, 1.3, 0.0], [-0.2, 0.6, 0.8]])
COV = T([[1.16, 0.4, 0.1], [0.4, 1.5, 0.3], [0.1, 0.3, 0.9]])

# family: arguments, several times; a dict is of arguments by name
CASES = {
    "Bernoulli": [(P,), {"logits": L}, (0.3,), (T([0.0, 1.0, 0.4]),)],
    "Beta": [(A, B), (2.0, 3.0)],
    "Binomial": [(5, P), {"total_count": T([3.0, 7.0, 0.0]), "logits": L}],
    "Categorical": [(ROWS,), {"logits": LOGITS}, (T([0.2, 0.8]),)],
    "Cauchy": [(L, B), (0.0, 1.0)],
    "Chi2": [(A,), (3.0,)],
    "ContinuousBernoulli": [(P,), {"logits": L}, (0.5,)],
    "Dirichlet": [(ROWS,), (A,)],
    "Exponential": [(A,), (2.0,)],
    "FisherSnedecor": [(T([3.0, 5.5]), T([4.2, 9.0])), (1.0, 2.0)],
    "Gamma": [(A, B), (0.5, 2.0)],
    "GeneralizedPareto": [(L, B, T([0.3, 0.0, -0.4])), (0.0, 1.0, 0.6)],
    "Geometric": [(P,), {"logits": L}, (1.0,)],
    "Gumbel": [(L, B), (0.0, 1.0)],
    "HalfCauchy": [(A,), (1.0,)],
    "HalfNormal": [(A,), (1.0,)],
    "InverseGamma": [(A, B), (3.0, 2.0)],
    "Kumaraswamy": [(A, B), (2.0, 3.0)],
    "Laplace": [(L, B), (0.0, 1.0)],
    "LKJCholesky": [(3, T([0.7, 2.0])), (2,), (4, 1.5)],
    "LogNormal": [(L, B), (0.0, 1.0)],
    "LogisticNormal": [(L, B), (0.0, 1.0)],
    "LowRankMultivariateNormal": [
        (L, T([[0.3], [1.0], [-0.4]]), B),
        (T([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), T([[0.3, 0.1], [1.0, 0.0], [-0.4, 0.2]]), B),
    ],
    "Multinomial": [(4, ROWS), {"total_count": 3, "logits": LOGITS}],
    "MultivariateNormal": [
        {"loc": L, "scale_tril": TRIL},
        {"loc": T([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), "covariance_matrix": COV},
        {"loc": L, "precision_matrix": COV},
    ],
    "NegativeBinomial": [(T([3.0, 0.5, 2.0]), P), {"total_count": 5, "logits": L}],
    "Normal": [(L, B), (0.0, 1.0), (L, 2)],
    "OneHotCategorical": [(ROWS,), {"logits": LOGITS}],
    "OneHotCategoricalStraightThrough": [(ROWS,), {"logits": LOGITS}],
    "Pareto": [(A, B), (1.0, 3.0)],
    "Poisson": [(A,), (3.0,), (0.0,)],
    "RelaxedBernoulli": [(T([0.7]), P), {"temperature": T([2.0]), "logits": L}],
    "RelaxedOneHotCategorical": [(T([0.7]), ROWS), {"temperature": T([2.0]), "logits": LOGITS}],
    "StudentT": [(T([0.8, 1.5, 4.0]), L, B), (3.0,)],
    "Uniform": [(L, T([0.5, 1.0, 4.0])), (0.0, 1.0)],
    "VonMises": [(L, B), (0.0, 4.0)],
    "Weibull": [(A, B), (1.0, 1.5)],
    "Wishart": [
        {"df": T([3.5, 5.0]), "covariance_matrix": COV},
        {"df": 4.0, "scale_tril": TRIL},
        {"df": T([6.0]), "precision_matrix": COV},
    ],
}
EVERY = [(name, i) for name, given in CASES.items() for i in range(len(given))]


def parameters(f, name, i, grad=False):
    """Arguments and keyword arguments of a case, and the tensors among them."""
    given = CASES[name][i]
    leaves = []

    def make(value):
        if not isinstance(value, T):
            return value
        dtype = f.float32 if name == "GeneralizedPareto" else f.float64  # PyTorch's has no float64
        leaves.append(f.tensor(list(value), dtype=dtype, requires_grad=grad))
        return leaves[-1]

    if isinstance(given, dict):
        return (), {key: make(value) for key, value in given.items()}, leaves
    return tuple(make(value) for value in given), {}, leaves


def build(f, name, i, grad=False):
    args, kwargs, leaves = parameters(f, name, i, grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(D[f], name)(*args, **kwargs), leaves


def attempt(fn, *args):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args), None
    except Exception as error:
        return None, error


same = functools.partial(close, rtol=2e-5, atol=1e-6)


def agree(fn, ours, theirs, **tolerance):
    """``fn`` of both gives equal tensors, or the same exception."""
    want, error = attempt(fn, *theirs)
    got, mine = attempt(fn, *ours)
    assert type(mine) is type(error), (mine, error)
    if error is None:
        same(got, want, **tolerance)
    return want


def gradients(f, value, leaves):
    found = f.autograd.grad(value.sum(), leaves, allow_unused=True)
    return [f.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def plain(text):
    return text.replace("torch.", "taeda.")


@pytest.mark.parametrize(("name", "i"), EVERY)
def test_family(name, i):
    (mine, our_leaves), (want, their_leaves) = (build(f, name, i, True) for f in BOTH)
    assert tuple(mine.batch_shape) == tuple(want.batch_shape)
    assert tuple(mine.event_shape) == tuple(want.event_shape)
    assert bool(mine.has_rsample) == bool(want.has_rsample) or name == "RelaxedBernoulli"
    assert mine.has_enumerate_support == want.has_enumerate_support
    assert plain(repr(mine)) == plain(repr(want))

    samples = []
    for f, d in ((taeda, mine), (torch, want)):
        f.manual_seed(7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples.append(d.sample((4, 5)))
        samples.append(f.get_rng_state().numpy().tobytes())
    ours, state, theirs, their_state = samples
    same(ours, theirs)
    assert state == their_state
    assert not ours.requires_grad

    value = taeda.from_dlpack(theirs)
    with warnings.catch_warnings():  # what a float32 density makes of a float64 sample is not at issue here
        agree(lambda d, x: d.log_prob(x), (mine, value), (want, theirs))
    if our_leaves:
        got = gradients(taeda, mine.log_prob(value), our_leaves)
        expected = gradients(torch, want.log_prob(theirs), their_leaves)
        for g, e in zip(got, expected, strict=True):
            same(g, e, rtol=1e-4, atol=1e-5)
    for what in ("mean", "mode", "variance", "stddev"):
        agree(lambda d, what=what: getattr(d, what), (mine,), (want,))
    agree(lambda d: d.entropy(), (mine,), (want,))
    agree(lambda d: d.perplexity(), (mine,), (want,))
    probability = agree(lambda d, x: d.cdf(x), (mine, value), (want, theirs))
    if probability is None:
        probability = torch.full((2, *want.batch_shape), 0.3)
    agree(lambda d, x: d.icdf(x), (mine, taeda.from_dlpack(probability.detach())), (want, probability.detach()))
    for expand in (True, False):
        agree(lambda d, e=expand: d.enumerate_support(e), (mine,), (want,))


@pytest.mark.parametrize(("name", "i"), [c for c in EVERY if getattr(D[torch], c[0]).has_rsample])
def test_reparameterised_samples(name, i):
    results = []
    for f in BOTH:
        d, leaves = build(f, name, i, True)
        f.manual_seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = d.rsample((6,))
        if name == "Wishart":  # PyTorch's has no derivative: it writes into what it saved
            x = x.detach()
        weights = f.arange(x.numel(), dtype=x.dtype).reshape(x.shape).cos()
        results.append((x, gradients(f, x * weights, leaves) if x.requires_grad else []))
    (x, ours), (y, theirs) = results
    same(x, y)
    assert len(ours) == len(theirs)
    for g, e in zip(ours, theirs, strict=True):
        same(g, e, rtol=1e-3, atol=1e-4)  # PyTorch's derivatives of gamma samples are good to about 1e-4


@pytest.mark.parametrize("name", CASES)
def test_expand(name):
    results = []
    for f in BOTH:
        d, _ = build(f, name, 0)
        e = d.expand((2, *d.batch_shape))
        f.manual_seed(5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = e.sample((3,))
        results.append((type(e).__name__, tuple(e.batch_shape), tuple(e.event_shape), x, e.log_prob(x)))
    assert results[0][:3] == results[1][:3]
    same(results[0][3], results[1][3])
    same(results[0][4], results[1][4])


WRONG = {
    "Bernoulli": [(1.5,), (), (0.2, 0.3)],
    "Beta": [(-1.0, 2.0)],
    "Binomial": [(-1, P), (2,)],
    "Categorical": [(T([[-1.0, 2.0]]),), (T([[1.0, 2.0]]), T([[1.0, 2.0]]))],
    "Dirichlet": [(T([1.0, -1.0]),)],
    "Gamma": [(0.0, 1.0)],
    "Geometric": [(0.0,)],
    "LKJCholesky": [(1, 1.0), (3, -1.0)],
    "Multinomial": [(T([1.0, 2.0]), ROWS)],
    "MultivariateNormal": [(L,), (L, T([[1.0, 2.0], [3.0, 4.0]])), (L, COV, COV)],
    "LowRankMultivariateNormal": [(L, B, B), (L, T([[1.0], [2.0]]), B)],
    "Normal": [(0.0, -1.0), ("a", 1.0), (float("nan"), 1.0), (L, T([1.0, 2.0]))],
    "Poisson": [(-1.0,)],
    "Uniform": [(1.0, 0.0)],
    "Wishart": [(1.0, COV), (4.0,)],
}


@pytest.mark.parametrize(("name", "given"), [(n, g) for n, many in WRONG.items() for g in many])
def test_wrong_parameters(name, given):
    raised = []
    for f in BOTH:
        args = [f.tensor(list(a)) if isinstance(a, T) else a for a in given]
        raised.append(type(attempt(lambda f=f, args=args: getattr(D[f], name)(*args))[1]))
    assert raised[0] is raised[1] is not None


def test_wrong_values():
    calls = [
        lambda f, d: d.Normal(0.0, 1.0).log_prob(f.tensor(float("nan"))),
        lambda f, d: d.Normal(f.zeros(3), 1.0).log_prob(f.zeros(2)),
        lambda f, d: d.Normal(0.0, 1.0).log_prob(1.0),
        lambda f, d: d.Exponential(1.0).log_prob(f.tensor(-1.0)),
        lambda f, d: d.Categorical(f.ones(3)).log_prob(f.tensor(3)),
        lambda f, d: d.Bernoulli(0.5).log_prob(f.tensor(0.5)),
        lambda f, d: d.Dirichlet(f.ones(3)).log_prob(f.ones(3)),
        lambda f, d: d.Normal(0.0, 1.0, validate_args=False).log_prob(f.tensor([1.0])),
        lambda f, d: d.Normal(0.0, 1.0).rsample("a"),
        lambda f, d: d.Poisson(1.0).rsample(),
        lambda f, d: d.Poisson(1.0).cdf(f.tensor(1.0)),
        lambda f, d: d.Independent(d.Normal(0.0, 1.0), 1),
        lambda f, d: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
        lambda f, d: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
        lambda f, d: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)),
    ]
    for call in calls:
        errors = [type(attempt(call, f, D[f])[1]) for f in BOTH]
        assert errors[0] is errors[1], (errors, call)


def compounds(f, d):
    def t(*x):
        return f.tensor(x, dtype=f.float64)

    rows = f.tensor([[0.1, 0.9], [0.4, 0.6]], dtype=f.float64)
    normals = d.Normal(f.arange(6.0, dtype=f.float64).reshape(3, 2), 1.5)
    yield d.Independent(normals, 1)
    yield d.Independent(d.Bernoulli(rows), 0)
    yield d.MixtureSameFamily(d.Categorical(t(0.2, 0.5, 0.3)), d.Normal(t(-1, 0, 2), t(0.5, 1, 2)))
    yield d.MixtureSameFamily(d.Categorical(rows), d.Independent(d.Normal(t(1, 2, 3).expand(2, 2, 3), 2.0), 1))
    yield d.MixtureSameFamily(d.Categorical(rows), d.Poisson(rows * 3))
    yield d.TransformedDistribution(d.Normal(t(0, 1), 1.0), [d.ExpTransform(), d.AffineTransform(1.0, t(2, 3))])
    yield d.TransformedDistribution(d.Uniform(t(0, 0), 1.0), [d.SigmoidTransform().inv, d.AffineTransform(1.0, -2.0)])
    yield d.TransformedDistribution(d.Normal(t(0, 1, 2), 1.0), d.StickBreakingTransform())
    yield d.TransformedDistribution(d.Normal(t(0, 1, 2), 1.0), d.CorrCholeskyTransform())
    yield d.TransformedDistribution(normals, d.ReshapeTransform((3, 2), (6,)))


@pytest.mark.parametrize("i", range(10))
def test_compounds(i):
    mine, want = (list(compounds(f, D[f]))[i] for f in BOTH)
    assert plain(repr(mine)) == plain(repr(want))
    assert (tuple(mine.batch_shape), tuple(mine.event_shape)) == (tuple(want.batch_shape), tuple(want.event_shape))
    drawn = []
    for f, d in ((taeda, mine), (torch, want)):
        f.manual_seed(2)
        drawn.append(d.sample((7,)))
    same(*drawn)
    agree(lambda d, x: d.log_prob(x), (mine, drawn[0]), (want, drawn[1]), rtol=1e-4)
    for what in ("mean", "variance", "mode"):
        agree(lambda d, what=what: getattr(d, what), (mine,), (want,))
    agree(lambda d: d.entropy(), (mine,), (want,))
    agree(lambda d, x: d.cdf(x), (mine, drawn[0]), (want, drawn[1]))
    agree(lambda d: d.expand((2, *d.batch_shape)).log_prob(d.support.check(d.mean) * d.mean), (mine,), (want,))
    assert bool(mine.support.check(drawn[0]).all())


# ---- divergences -----------------------------------------------------------------------------------------------------
def pairs():
    registry = torch.distributions.kl._KL_REGISTRY
    return sorted({(p.__name__, q.__name__) for p, q in registry if p.__name__ in CASES and q.__name__ in CASES})


INSIDE = {"Uniform": (T([0.1, 0.2, 0.3]), T([0.5, 0.9, 0.4])), "Pareto": (T([0.05, 0.1, 0.2]), T([2.5, 3.0, 1.5]))}


def test_the_same_pairs_have_divergences():
    known = [{(p.__name__, q.__name__) for p, q in D[f].kl._KL_REGISTRY} for f in BOTH]
    assert known[0] == known[1]


@pytest.mark.parametrize(("p", "q"), pairs())
def test_divergence(p, q):
    for i, j in itertools.product(range(min(2, len(CASES[p]))), range(min(2, len(CASES[q])))):
        results = []
        for f in BOTH:

            def make(name, which, f=f):
                if name in INSIDE and which == 0:
                    args = [f.tensor(list(x), dtype=f.float64, requires_grad=True) for x in INSIDE[name]]
                    return getattr(D[f], name)(*args), args
                return build(f, name, which, True)

            (a, ours), (b, theirs) = make(p, i), make(q, j)
            value, error = attempt(D[f].kl_divergence, a, b)
            grads = []
            if error is None and value.requires_grad and bool(value.isfinite().all()):
                grads = gradients(f, value, ours + theirs)
            results.append((value, type(error), grads))
        (got, raised, ours), (want, expected, theirs) = results
        assert raised is expected
        if want is not None:
            same(got, want, rtol=1e-4, atol=1e-5)
            assert len(ours) == len(theirs)
            for g, e in zip(ours, theirs, strict=True):
                same(g, e, rtol=1e-3, atol=1e-4)


def test_divergence_of_compounds():
    for f in BOTH:
        d = D[f]
        p, q = (d.Independent(d.Normal(f.zeros(3) + m, 1.0), 1) for m in (0.0, 1.0))
        assert d.kl_divergence(p, q).item() == pytest.approx(1.5)
        p, q = (d.LogNormal(f.tensor(m), 1.0) for m in (0.0, 1.0))
        assert d.kl_divergence(p, q).item() == pytest.approx(0.5)

    class Mine(taeda.distributions.Normal):
        pass

    @taeda.distributions.register_kl(Mine, taeda.distributions.Normal)
    def _(p, q):
        return taeda.tensor(42.0)

    assert taeda.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 42
    taeda.distributions.kl._KL_REGISTRY.popitem()


# ---- transforms and regions ------------------------------------------------------------------------------------------
def transforms(f, d):
    t = d.transforms
    yield t.AbsTransform(), (2, 3)
    yield t.AffineTransform(1.0, f.tensor([2.0, -3.0, 0.5])), (2, 3)
    yield t.AffineTransform(f.tensor([2.0, -3.0, 0.5]), -2.0, event_dim=1), (2, 3)
    yield t.CorrCholeskyTransform(), (2, 6)
    yield t.ExpTransform(), (3,)
    yield t.IndependentTransform(t.ExpTransform(), 1), (2, 3)
    yield t.LowerCholeskyTransform(), (3, 3)
    yield t.PositiveDefiniteTransform(), (3, 3)
    yield t.ComposeTransform([t.ExpTransform(), t.PowerTransform(f.tensor(1.5))]), (3,)
    yield t.ReshapeTransform((2, 3), (6,)), (4, 2, 3)
    yield t.SigmoidTransform(), (3,)
    yield t.SoftmaxTransform(), (2, 3)
    yield t.SoftplusTransform(), (3,)
    yield t.StickBreakingTransform(), (2, 3)
    yield t.TanhTransform(), (3,)
    yield t.ComposeTransform([t.AffineTransform(0.1, 0.5), t.StickBreakingTransform()]), (2, 3)
    yield t.CatTransform([t.ExpTransform(), t.SigmoidTransform()], 1, [1, 2]), (2, 3)
    yield t.StackTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)], 0), (2, 3)
    yield t.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), (3,)
    yield t.ExpTransform(cache_size=1), (3,)
    yield t.ComposeTransform([]), (3,)


@pytest.mark.parametrize("i", range(21))
def test_transform(i):
    (mine, shape), (want, _) = (list(transforms(f, D[f]))[i] for f in BOTH)
    torch.manual_seed(i)
    x = torch.randn(shape)
    ours = taeda.from_dlpack(x)
    assert plain(repr(mine)) == plain(repr(want))
    assert repr(mine.domain) == repr(want.domain) and repr(mine.codomain) == repr(want.codomain)
    assert bool(mine.bijective) == bool(want.bijective)
    y, z = mine(ours), want(x)
    same(y, z)
    same(mine.inv(y), want.inv(z), rtol=1e-3, atol=1e-4)
    agree(lambda t, a, b: t.log_abs_det_jacobian(a, b), (mine, ours, y), (want, x, z), rtol=1e-4, atol=1e-5)
    agree(lambda t, a, b: t.inv.log_abs_det_jacobian(b, a), (mine, ours, y), (want, x, z), rtol=1e-4, atol=1e-5)
    assert tuple(mine.forward_shape(shape)) == tuple(want.forward_shape(shape)) == tuple(y.shape)
    assert tuple(mine.inverse_shape(y.shape)) == tuple(want.inverse_shape(z.shape))
    assert mine.inv.inv is mine and (mine == mine) and mine != taeda.distributions.AffineTransform(5.0, 5.0)
    assert type(attempt(lambda: mine.with_cache())[0]).__name__ == type(attempt(lambda: want.with_cache())[0]).__name__
    signs = [attempt(lambda t=t: float(t.sign)) for t in (mine, want)]
    assert signs[0][0] == signs[1][0]


def regions(f, c):
    yield from (c.real, c.positive, c.nonnegative, c.unit_interval, c.simplex, c.real_vector, c.corr_cholesky)
    yield from (c.lower_cholesky, c.positive_definite, c.positive_semidefinite, c.symmetric, c.square)
    yield from (c.lower_triangular, c.boolean, c.one_hot, c.nonnegative_integer, c.positive_integer)
    yield from (c.greater_than(1.5), c.greater_than_eq(-2.0), c.less_than(3.0), c.interval(-1.0, 2.0))
    yield from (c.half_open_interval(0.0, 2.0), c.integer_interval(0, 3), c.multinomial(3))
    yield from (c.independent(c.positive, 1), c.cat([c.positive, c.real], -1, [1, 2]))
    yield from (c.stack([c.positive, c.unit_interval, c.real], -1), c.MixtureSameFamilyConstraint(c.positive))


@pytest.mark.parametrize("i", range(28))
def test_region(i):
    mine, want = (list(regions(f, D[f].constraints))[i] for f in BOTH)
    if not hasattr(want, "cseq"):
        assert repr(mine) == repr(want)
    assert mine.is_discrete == want.is_discrete and mine.event_dim == want.event_dim
    values = [
        torch.tensor([[0.0, 1.0, 0.0], [1.0, 2.0, 0.5], [-1.0, 3.0, float("nan")]]),
        torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]),
        torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 1.0]]),
        torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]),
    ]
    for value in values:
        agree(lambda c, x: c.check(x), (mine, taeda.from_dlpack(value)), (want, value))
    for name in ("biject_to", "transform_to"):
        t, their_error = attempt(getattr(D[torch], name), want)
        o, error = attempt(getattr(D[taeda], name), mine)
        assert type(error) is type(their_error)
        if t is not None:
            assert plain(repr(o)) == plain(repr(t))
            x = torch.randn(3, 3, generator=torch.Generator().manual_seed(i))
            same(o(taeda.from_dlpack(x)), t(x))
            if not hasattr(want, "cseq"):
                assert bool(mine.check(o(taeda.from_dlpack(x))).all())


@pytest.mark.parametrize("name", CASES)
def test_one_sample_and_copies(name):
    drawn = []
    for f in BOTH:
        d, _ = build(f, name, len(CASES[name]) - 1)
        f.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn.append(d.sample())
            if f is taeda:
                for other in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
                    assert other.log_prob(drawn[0]).tolist() == d.log_prob(drawn[0]).tolist()
    same(*drawn)


def test_a_subclass_with_a_constructor_of_its_own():
    for d in D.values():

        class Standard(d.Normal):
            def __init__(self):
                super().__init__(0.0, 1.0)

        with pytest.raises(NotImplementedError, match="custom"):
            Standard().expand((3,))

        class Shifted(d.Normal):
            pass

        assert type(Shifted(0.0, 1.0).expand((3,))) is Shifted


def test_names():
    ours, theirs = set(taeda.distributions.__all__), set(torch.distributions.__all__)
    assert theirs <= ours
    for name in torch.distributions.constraints.__all__:
        assert hasattr(taeda.distributions.constraints, name)


def test_a_variational_autoencoder_step_is_differentiable():
    results = []
    for f in BOTH:
        d = D[f]
        f.manual_seed(0)
        mu = f.zeros(4, 2, requires_grad=True)
        rho = f.full((4, 2), 0.3, requires_grad=True)
        q = d.Independent(d.Normal(mu, f.nn.functional.softplus(rho)), 1)
        p = d.Independent(d.Normal(f.zeros(4, 2), f.ones(4, 2)), 1)
        z = q.rsample()
        likelihood = d.Bernoulli(logits=z.sum(-1)).log_prob(f.tensor([1.0, 0.0, 1.0, 1.0]))
        (d.kl_divergence(q, p) - likelihood).mean().backward()
        results.append((mu.grad, rho.grad))
    for a, b in zip(*results, strict=True):
        same(a, b)


def test_an_inverse_knows_its_transform():
    for d in (torch.distributions, taeda.distributions):
        inverse = d.IndependentTransform(d.SigmoidTransform(), 1).inv
        assert isinstance(inverse._inv, d.IndependentTransform)
    again = pickle.loads(pickle.dumps(inverse))  # where PyTorch loses it
    assert isinstance(again._inv, taeda.distributions.IndependentTransform) and again(taeda.tensor([0.5])).item() == 0


def test_every_module_of_pytorch_can_be_imported_from():
    for info in pkgutil.iter_modules(torch.distributions.__path__):
        theirs = importlib.import_module(f"torch.distributions.{info.name}")
        ours = importlib.import_module(f"taeda.distributions.{info.name}")
        assert getattr(taeda.distributions, info.name) is ours
        for name in getattr(theirs, "__all__", ()):
            assert hasattr(ours, name), (info.name, name)


def test_formulas_keep_the_documentation_of_the_base_class():
    assert taeda.distributions.Normal.mean.__doc__ == taeda.distributions.Distribution.mean.__doc__ == "The mean."
    assert taeda.distributions.LogNormal.loc.__doc__ == "Mean of the logarithm."


def test_with_cache_makes_the_same_transform():
    t, f = taeda.distributions.transforms, taeda.tensor([0.5, 2.0])
    for made in (t.AffineTransform(f, 2.0, 1), t.PowerTransform(f), t.ReshapeTransform((2,), (1, 2)), t.ExpTransform()):
        cached = made.with_cache()
        assert type(cached) is type(made) and cached._cache_size == 1 and cached.with_cache(1) is cached
        assert (cached(f) == made(f)).all()

    class Mine(t.Transform):
        def __init__(self, a):
            super().__init__()

    with pytest.raises(NotImplementedError):
        Mine(1).with_cache()


def test_a_mixture_has_the_union_of_the_regions():
    d = taeda.distributions
    mixture = d.MixtureSameFamily(d.Categorical(taeda.ones(2)), d.Uniform(taeda.zeros(2), taeda.tensor([1.0, 2.0])))
    assert mixture.log_prob(taeda.tensor([0.5, 1.5])).exp().tolist() == pytest.approx([0.75, 0.25])
    assert mixture.log_prob(taeda.tensor(1.5)).item() == pytest.approx(-1.3863, abs=1e-4)
    with pytest.raises(ValueError):
        mixture.log_prob(taeda.tensor(2.5))
    paired = d.Independent(d.Uniform(taeda.zeros(2, 3), taeda.tensor([[1.0] * 3, [2.0] * 3])), 1)
    mixture = d.MixtureSameFamily(d.Categorical(taeda.ones(2)), paired)
    assert mixture.log_prob(taeda.tensor([[0.5] * 3, [0.5, 0.5, 1.5]])).exp().tolist() == pytest.approx(
        [9 / 16, 1 / 16]
    )


def test_a_distribution_keeps_the_shapes_that_it_is_given():
    made = taeda.distributions.Distribution([2], 3, validate_args=False)
    assert made.batch_shape == [2] and made.event_shape == 3


@pytest.mark.parametrize("t", BOTH, ids=["taeda", "torch"])
def test_subclasses_of_programs_that_are_modules_or_have_parameters_of_their_own(t):
    d = D[t]

    class Shift(d.Transform, t.nn.Module):
        def __init__(self):
            super().__init__(cache_size=1)
            self.layer = t.nn.Linear(1, 1)

        __hash__ = t.nn.Module.__hash__

    assert len(list(Shift().parameters())) == 2

    class Ordered(d.Categorical):
        arg_constraints = {"a": d.constraints.real}  # noqa: RUF012

        def __init__(self, a):
            self.a = a
            super().__init__(t.stack([a, 1 - a], -1))

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Ordered, _instance)
            new.a = self.a.expand(batch_shape)
            return super().expand(batch_shape, new)

    made = Ordered(t.tensor([0.1, 0.2])).expand((3, 2))
    assert made.a.shape == made.sample().shape == made.log_prob(t.tensor(1)).shape == (3, 2)
