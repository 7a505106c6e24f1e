"""Every op under ``vmap`` gives what it gives example by example; nothing here names an op."""

import functools
import itertools

import derived
import pytest
from agree import close

import taeda
from taeda.func import batching, grad, vmap
from taeda.utils._pytree import tree_flatten as flatten
from taeda.utils._pytree import tree_unflatten as unflatten

BATCH = 3


def calls(op, seed):
    make = derived.Maker("float64", seed)
    if "samples" in op.traits:
        return list(op.traits["samples"](make))
    if op.traits.get("pointwise"):
        made = []
        for shapes in (((2, 3),), ((3,), (2, 3)), ((), (3,))):
            made.append((tuple(derived.operands(op, make, *shapes)), {}))
        return made
    return derived.guesses(op, make)


def differing(op):
    """Calls of the op with ``BATCH`` different sets of tensors each."""
    return list(zip(*[calls(op, seed) for seed in range(BATCH)], strict=True))


def outcome(function):
    try:
        return function(), None
    except Exception as error:
        return None, error


OPS = {
    name: op
    for name, op in {**derived.pointwise_ops(), **derived.other_ops()}.items()
    if not op.traits.get("random")
    and "generator" not in op.params
    and ("samples" in op.traits or not op.traits.get("pointwise") or not derived.needs_attributes(op))
}


same = functools.partial(close, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", sorted(OPS))
def test_op(name):
    op = OPS[name]
    for rows in differing(op):
        flat = [flatten(row) for row in rows]
        structure = flat[0][1]
        places = [i for i, x in enumerate(flat[0][0]) if isinstance(x, taeda.Tensor)]
        if len({tuple(row[0][i].shape for i in places) for row in flat}) > 1:
            continue
        choices = [places, *([p] for p in places)] if len(places) > 1 else [places]
        for chosen in choices:
            check(op, flat, structure, places, chosen)


def check(op, flat, structure, places, chosen):
    """The op with the tensors at ``chosen`` batched, the others those of the first call."""

    def run(*tensors):
        leaves = list(flat[0][0])
        for i, t in zip(places, tensors, strict=True):
            leaves[i] = t
        args, kwargs = unflatten(leaves, structure)
        made = op(*args, **kwargs)
        return tuple(made) if isinstance(made, (tuple, list)) else made

    inputs = [[flat[b if i in chosen else 0][0][i] for b in range(BATCH)] for i in places]
    rows = list(zip(*inputs, strict=True))
    expected, error = outcome(lambda: [run(*row) for row in rows])
    if error is not None or not all(isinstance(x, taeda.Tensor) for x in flatten(expected)[0]):
        return
    batched = [taeda.stack(column) if i in chosen else column[0] for i, column in zip(places, inputs, strict=True)]
    in_dims = tuple(0 if i in chosen else None for i in places)
    leaves = [flatten(e)[0] for e in expected]
    if any(a.shape != b.shape for row in leaves for a, b in zip(row, leaves[0], strict=True)):
        with pytest.raises(RuntimeError, match="vmap"):
            vmap(run, in_dims)(*batched)
        return
    result, error = outcome(lambda: vmap(run, in_dims)(*batched))
    if error is not None and op.traits.get("meta") == "values" and "size depends on values" in str(error):
        return  # refused, although these examples give equal sizes
    if error is not None:
        raise error
    got = flatten(result)[0]
    assert len(got) == len(leaves[0])
    for k, t in enumerate(got):
        same(t, taeda.stack([row[k] for row in leaves]))
    # the batch in the last dimension, seen through a transposed view
    moved = [x.movedim(0, -1).contiguous() if d == 0 else x for x, d in zip(batched, in_dims, strict=True)]
    last = tuple(-1 if d == 0 else None for d in in_dims)
    for a, b in itertools.zip_longest(flatten(vmap(run, last, out_dims=-1)(*moved))[0], got):
        same(a.movedim(-1, 0), b)


ZERO = taeda.zeros((), dtype=taeda.int64)
AT_ONCE = {
    "gather": lambda x, y: x.gather(0, ZERO),
    "scatter_add": lambda x, y: x.scatter_add(0, ZERO, y),
    "scatter_": lambda x, y: x.clone().scatter_(0, ZERO, y),
    "index_select": lambda x, y: x.index_select(0, ZERO),
    "index_copy": lambda x, y: x.index_copy(0, ZERO, y),
    "index_add_": lambda x, y: x.clone().index_add_(0, ZERO, y),
    "put": lambda x, y: x.put(ZERO, y, True),
    "put_": lambda x, y: x.clone().put_(ZERO - 1, y),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_examples_without_dimensions_at_once(name, monkeypatch):
    call, x, y = AT_ONCE[name], taeda.arange(3.0), taeda.arange(3.0) + 5
    want = taeda.stack([call(a, b) for a, b in zip(x, y, strict=True)])
    slopes = taeda.stack([grad(lambda a, b: call(a, b).sin())(a, b) for a, b in zip(x, y, strict=True)])
    monkeypatch.setattr(batching, "_by_example", None)
    same(vmap(call)(x, y), want)
    same(vmap(grad(lambda a, b: call(a, b).sin()))(x, y), slopes)


TOO_SMALL = {
    "eigh": taeda.linalg.eigh, "eigvals": taeda.linalg.eigvals, "inv_ex": taeda.linalg.inv_ex,
    "cholesky_ex": taeda.linalg.cholesky_ex, "lu_factor_ex": taeda.linalg.lu_factor_ex,
    "matrix_exp": taeda.matrix_exp, "qr": taeda.geqrf, "tril": taeda.tril, "triu_": lambda x: x.clone().triu_(),
    "solve_triangular": lambda x: taeda.linalg.solve_triangular(x, x, upper=True),
    "pad": lambda x: taeda.nn.functional.pad(x, (1, 1, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_SMALL)
def test_examples_of_too_few_dimensions_are_refused(name):
    with pytest.raises(RuntimeError, match="dimension"):  # the batch is not one of the op's own
        vmap(TOO_SMALL[name])(taeda.eye(3))
