"""Autograd against PyTorch: random programs of views and in-place ops, hooks, Functions, saved-tensor hooks, errors."""

import random
import warnings

import numpy as np
import pytest

import taeda
from tests.agree import close

torch = pytest.importorskip("torch")

FRAMEWORKS = (taeda, torch)


# ---- random programs -------------------------------------------------------------------------------------------------


def random_index(rng, shape):
    index = []
    for n in shape[: rng.randint(1, len(shape))] if shape else ():
        kind = rng.randrange(4)
        if kind == 0 and n:
            index.append(rng.randrange(-n, n))
        elif kind == 1:
            index.append(slice(rng.randint(0, 1), None, rng.choice([1, 2])))
        elif kind == 2:
            index.append(slice(None, rng.choice([None, -1])))
        else:
            index.append(slice(None))
    return tuple(index)


def random_view(rng, shape):
    """A view op as (name, arguments)."""
    n = len(shape)
    kinds = ["unsqueeze", "detach_alias", "index"]
    if n:
        kinds += [
            "transpose",
            "permute",
            "select",
            "narrow",
            "flatten",
            "diagonal",
            "unflatten",
            "chunk0",
            "movedim",
            "squeeze",
        ]
    kind = rng.choice(kinds)
    d = rng.randrange(n) if n else 0
    if kind == "unsqueeze":
        return "unsqueeze", (rng.randint(0, n),)
    if kind == "detach_alias":
        return "view_as_self", ()
    if kind == "index":
        return "index", random_index(rng, shape)
    if kind == "transpose":
        return "transpose", (d, rng.randrange(n))
    if kind == "permute":
        return "permute", (rng.sample(range(n), n),)
    if kind == "select" and shape[d]:
        return "select", (d, rng.randrange(shape[d]))
    if kind == "narrow" and shape[d]:
        start = rng.randrange(shape[d])
        return "narrow", (d, start, rng.randint(1, shape[d] - start))
    if kind == "diagonal" and n >= 2:
        a, b = rng.sample(range(n), 2)
        return "diagonal", (rng.choice([0, 0, 1]), a, b)
    if kind == "unflatten" and shape[d] > 1:
        return "unflatten", (d, (1, shape[d]))
    if kind == "movedim":
        return "movedim", (d, rng.randrange(n))
    if kind == "squeeze":
        return "squeeze", ()
    return "view_as_self", ()


def random_program(seed):
    """A list of steps: ("leaf", ...), ("view", source, op), ("write", target, op, source), ("make", op, sources)."""
    rng = random.Random(seed)
    steps = [("leaf", (2, 3), True), ("leaf", (3,), True), ("leaf", (2, 3), rng.random() < 0.3)]
    for _ in range(rng.randint(4, 12)):
        kind = rng.random()
        if kind < 0.25:
            steps.append(("make", rng.choice(["mul", "add", "sin", "clone", "exp"]), rng.random(), rng.random()))
        elif kind < 0.65:
            steps.append(("view", rng.random(), rng.getrandbits(32)))
        else:
            op = rng.choice(
                [
                    "mul_number",
                    "add_",
                    "mul_",
                    "sin_",
                    "exp_",
                    "copy_",
                    "fill_",
                    "zero_",
                    "setitem",
                    "neg_",
                    "sub_",
                    "relu_",
                ]
            )
            steps.append(("write", op, rng.random(), rng.random(), rng.getrandbits(32), rng.random() < 0.06))
    return steps


def apply_view(x, name, args):
    if name == "index":
        return x[args]
    if name == "view_as_self":
        return x.view_as(x)
    return getattr(x, name)(*args)


class Machine:
    """Runs a program in one framework; every decision depends on shapes alone, so that both take the same."""

    def __init__(self, framework, seed):
        self.m, self.seed = framework, seed
        self.tensors, self.leaves, self.log = [], [], []

    def number(self, shape, requires_grad):
        rng = np.random.default_rng(self.seed + len(self.tensors))
        data = rng.uniform(0.3, 0.9, shape)
        t = self.m.tensor(data.tolist(), dtype=self.m.float64, requires_grad=requires_grad)
        self.leaves.append(t)
        return t

    def pick(self, share):
        return self.tensors[int(share * len(self.tensors))]

    def fitting(self, shape, share):
        """A tensor that broadcasts to ``shape``."""

        def fits(t):
            s = tuple(t.shape)
            return len(s) <= len(shape) and all(a in (1, b) for a, b in zip(s[::-1], shape[::-1], strict=False))

        found = [t for t in self.tensors if fits(t)]
        return found[int(share * len(found))] if found else None

    def step(self, step):
        kind = step[0]
        if kind == "leaf":
            self.tensors.append(self.number(step[1], step[2]))
        elif kind == "make":
            x = self.pick(step[2])
            y = self.fitting(tuple(x.shape), step[3])
            op = step[1]
            made = x * y if op == "mul" else x + y if op == "add" else getattr(x, op)()
            self.tensors.append(made)
        elif kind == "view":
            x = self.pick(step[1])
            self.tensors.append(apply_view(x, *random_view(random.Random(step[2]), tuple(x.shape))))
        else:
            _, op, where, what, bits, silent = step
            if silent:
                with self.m.no_grad():
                    self.write(op, where, what, bits)
            else:
                self.write(op, where, what, bits)

    def write(self, op, where, what, bits):
        x = self.pick(where)
        y = self.fitting(tuple(x.shape), what)
        assert (
            x.grad_fn is None or x.requires_grad
        )  # torch brings a view of a base that was written up to date when asked
        if y is not None and y is not x and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            y = y.clone()  # overlapping memory is another matter
        if op == "mul_number":
            x.mul_(1.25)
        elif op in ("add_", "mul_", "copy_", "sub_"):
            getattr(x, op)(y)
        elif op == "fill_":
            x.fill_(0.5)
        elif op == "setitem":
            index = random_index(random.Random(bits), tuple(x.shape))
            y = self.fitting(tuple(x[index].shape), what)
            if y is not None and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
                y = y.clone()
            x[index] = 0.25 if y is None else y
        else:
            getattr(x, op)()

    def run(self, steps):
        """Runs all that can be run; the log says what failed."""
        for step in steps:
            try:
                self.step(step)
                self.log.append(None)
            except Exception as error:
                self.log.append((type(error), str(error)))

    def gradients(self, create_graph=False):
        loss = 0
        for i, t in enumerate(self.tensors):
            if t.requires_grad:
                loss = loss + (t * (0.1 * i + 0.3)).sum()
        if isinstance(loss, int):
            return None
        leaves = [t for t in self.leaves if t.requires_grad]
        return self.m.autograd.grad(loss, leaves, allow_unused=True, create_graph=create_graph)


MULTIPLE_VIEWS = "output of a function that returns multiple views"


@pytest.mark.parametrize("block", range(8))
def test_random_programs_of_views_and_inplace_ops(block):
    compared = failed = second = 0
    for seed in range(block * 60, block * 60 + 60):
        steps = random_program(seed)
        ours, theirs = Machine(taeda, seed), Machine(torch, seed)
        ours.run(steps)
        theirs.run(steps)
        for i, (a, b) in enumerate(zip(ours.log, theirs.log, strict=True)):
            assert (a is None) == (b is None), (seed, steps[i], a, b)
            if b is not None:
                assert a[0] is b[0], (seed, steps[i], a, b)
        for a, b in zip(ours.tensors, theirs.tensors, strict=True):
            close(a, b, seed, 1e-9, 1e-12)
            assert a.requires_grad == b.requires_grad, seed
            assert a.is_leaf == b.is_leaf, seed
        outcomes = []
        for machine in (ours, theirs):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    outcomes.append((machine.gradients(create_graph=True), None))
            except RuntimeError as error:
                outcomes.append((None, error))
        (mine, my_error), (other, other_error) = outcomes
        assert (my_error is None) == (other_error is None), (seed, my_error, other_error)
        if other_error is not None:
            assert "modified by an inplace operation" in str(my_error), (seed, my_error)
            assert "modified by an inplace operation" in str(other_error), (seed, other_error)
            failed += 1
            continue
        if other is None:
            assert mine is None
            continue
        for a, b in zip(mine, other, strict=True):
            close(a, b, seed, 1e-9, 1e-12)
        compared += 1
        squares = [sum((g * g).sum() for g in grads if g is not None and g.requires_grad) for grads in (mine, other)]
        results = []
        for machine, square in zip((ours, theirs), squares, strict=True):
            leaves = [t for t in machine.leaves if t.requires_grad]
            if isinstance(square, int):
                results.append((None,) * len(leaves))
                continue
            try:
                results.append(machine.m.autograd.grad(square, leaves, allow_unused=True))
            except RuntimeError as error:
                results.append(error)
        if isinstance(results[1], RuntimeError):
            assert isinstance(results[0], RuntimeError), (seed, results)
            continue
        for a, b in zip(results[0], results[1], strict=True):
            if a is None or b is None:  # a zero may be known to be one
                assert all(g is None or not g.any() for g in (a, b)), seed
            else:
                close(a, b, seed, 1e-9, 1e-12)
        second += 1
    assert compared > 20 and second > 10 and failed > 0


def test_variable():
    for f in (torch, taeda):
        x = f.ones(2, requires_grad=True)
        made = f.autograd.Variable(x * 2, requires_grad=True)
        assert made.requires_grad and made.is_leaf and made.tolist() == [2.0, 2.0]
        assert not f.autograd.Variable(x).requires_grad
        assert isinstance(x, f.autograd.Variable) and isinstance(f.nn.Parameter(x), f.autograd.Variable)
        assert not isinstance(1, f.autograd.Variable)
        with pytest.raises(TypeError):
            f.autograd.Variable([1.0])


WRITTEN_RESULTS = [
    "x / w", "2 / w", "w / 3", "x.div(w)", "w.reciprocal()", "x / w.norm(dim=1, keepdim=True)", "w ** -1", "w ** 0.5",
    "w ** -0.5", "w.pow(2)", "w.pow(-1.5)", "T.fmax(x, w)", "T.fmin(x, w)", "T.erfinv(w / 9)", "w.sqrt()", "x * w",
    "w.clone().pow_(-0.5)", "w.clone().pow_(-1)", "x.clone().div_(w)",
    "T.nn.functional.local_response_norm(x[None], 2)",
]  # fmt: skip


@pytest.mark.parametrize("source", WRITTEN_RESULTS)
def test_a_result_may_be_written_in_place_where_the_derivative_does_not_need_it(source):
    """As in ``norm = degrees ** -0.5; norm[norm == inf] = 0``."""

    def run(T, *values):
        x, w = (v.clone().requires_grad_() for v in values)
        try:
            out = eval(source, {"T": T, "x": x, "w": w})
            out[0] = 0.25
            out.mul_(3)
            out.pow(2).sum().backward()
        except RuntimeError as error:
            return "version" in str(error)
        return [v.grad if v.grad is None else v.grad.tolist() for v in (x, w)]

    values = torch.rand(3, 4, dtype=torch.float64) - 0.5, torch.rand(3, 4, dtype=torch.float64) + 0.5
    ours, theirs = run(taeda, *(taeda.tensor(v.tolist(), dtype=taeda.float64) for v in values)), run(torch, *values)
    if isinstance(theirs, bool):
        assert ours == theirs
        return
    for a, b in zip(ours, theirs, strict=True):
        assert a is b is None or torch.allclose(torch.tensor(a), torch.tensor(b))
