"""Calls in other spellings: Python's types of numbers as dtypes, NumPy's keywords, the order of arguments of old programs."""

import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

CALLS = """f.zeros(2, dtype=T)|f.empty(2, dtype=T)|f.full((2,), 1, dtype=T)|f.tensor([1, 0], dtype=T)|f.as_tensor([1], dtype=T)
f.asarray([1], dtype=T)|f.zeros_like(x, dtype=T)|f.full_like(x, 1, dtype=T)|f.eye(2, dtype=T)|x.to(T)|x.to(dtype=T)|x.to("cpu", T)
x.sum(dtype=T)|x.prod(dtype=T)|x.new_zeros(2, dtype=T)|x.new_tensor([1], dtype=T)|f.empty_strided((2,), (1,), dtype=T)
f.frombuffer(bytearray(16), dtype=T)"""


@pytest.mark.parametrize("kind", [float, int, bool, complex])
@pytest.mark.parametrize("call", CALLS.replace("\n", "|").split("|"))
def test_a_python_type_is_a_dtype(kind, call):
    want, got = (eval(call, {"f": f, "x": f.ones(2, 3), "T": kind}).dtype for f in (torch, taeda))
    assert str(got).removeprefix("taeda.") == str(want).removeprefix("torch.")


def test_of_modules_and_limits():
    layer = taeda.nn.Linear(2, 2, dtype=float)
    assert layer.weight.dtype is taeda.float64 and taeda.nn.Linear(2, 2).to(float).weight.dtype is taeda.float64
    assert taeda.finfo(float).eps == taeda.finfo(taeda.float64).eps
    with pytest.raises(TypeError):
        taeda.nn.Linear(2, 2).to(int)


def test_other_types_are_errors():
    for f in (torch, taeda):
        with pytest.raises(TypeError):
            f.zeros(2, dtype=str)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_numbers_of_numpy(kind):
    """Dropout of attention, whose kernel took them for integers: all weights were kept or none."""
    results = []
    for f in (torch, taeda):
        f.manual_seed(0)
        q, k, v = f.randn(3, 1, 2, 5, 8)
        result = f.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=kind(0.5), scale=kind(0.5))
        results.append(result.flatten().tolist())
    assert results[1] == pytest.approx(results[0], rel=1e-4, abs=1e-5)


class _Index:
    def __index__(self):
        return 1


INDICES = """x.topk(i)|x.kthvalue(i)|f.eye(i)|f.eye(3, i)|f.ones(2, 2).tril(i)
f.ones(2, 2).triu(i)"""


@pytest.mark.parametrize("call", INDICES.replace("\n", "|").split("|"))
def test_objects_that_stand_for_a_number(call):
    made = [eval(call, {"f": f, "x": f.tensor([3.0, 1.0, 2.0]), "i": _Index()}) for f in (torch, taeda)]
    want, got = ([x.tolist() for x in (m if isinstance(m, tuple) else (m,))] for m in made)
    assert got == want


OLDER = """f.add(x, 2, y)|f.sub(x, 2.5, y)|x.add(2, y)|x.clone().add_(-0.1, y)|x.clone().sub_(2, y)|x.clone().add_(2, other=y)
f.add(x, 2, y, out=f.zeros(2))|f.addcmul(x, 2, y, y)|x.clone().addcmul_(0.1, x, y)|f.addcmul(x, 2, tensor1=y, tensor2=x)
f.addcdiv(x, 2, y, y)|x.clone().addcdiv_(-0.1, x, y)|f.addmm(2, m, 3, m, m)|f.addmm(2, m, m, m)|m.addmm(2, 3, m, m)
m.clone().addmm_(2, m, m)|f.addmv(2, x, 3, m, y)|x.addmv(2, m, y)|f.addr(2, m, 3, x, y)|m.clone().addr_(2, x, y)
f.addbmm(2, m, 3, b, b)|m.clone().addbmm_(2, 3, b, b)|f.baddbmm(2, b, 3, b, b)|b.clone().baddbmm_(2, b, b)
f.add(x, f.tensor(2.0), 3)|x.clone().sub_(f.tensor(2.0), 3)"""


@pytest.mark.parametrize("call", OLDER.replace("\n", "|").split("|"))
def test_factors_by_position(call):
    results = []
    for f in (torch, taeda):
        m = f.arange(4.0).reshape(2, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(
                call, {"f": f, "x": f.tensor([1.0, 2.0]), "y": f.tensor([3.0, -4.0]), "m": m, "b": m[None] + 1}
            )
        results.append(result.flatten().tolist())
    assert results[1] == pytest.approx(results[0])


def test_factors_by_position_warn():
    with pytest.warns(UserWarning, match=r"add_\(\): factors by position .* alpha"):
        taeda.ones(2).add_(2, taeda.ones(2))
    for f in (torch, taeda):
        for wrong in (
            lambda f: f.addmm(f.ones(2, 2), f.ones(2, 2), f.ones(2, 2), 2),
            lambda f: f.ones(2).add(f.ones(2), 2),
            lambda f: f.addcmul(f.ones(2), "2", f.ones(2), f.ones(2)),
        ):
            with pytest.raises(TypeError):
                wrong(f)


KEYWORDS = """f.max(x, axis=1)[1]|f.min(x, axis=0, keepdims=True)[0]|f.std(x, axis=1)|f.linalg.norm(input=x)|f.div(x1=x, x2=x + 1)
x.new_ones(size=(2, 1))|x.new_zeros(size=(2,), dtype=f.int64)|x.new_empty(size=(0, 2))|x.new_full(size=(2,), fill_value=3.0)
f.linalg.matrix_norm(x=x)|f.linalg.eigvalsh(input=x.T @ x)|f.swapaxes(x, axis0=0, axis1=1)"""


@pytest.mark.parametrize("call", KEYWORDS.replace("\n", "|").split("|"))
def test_other_names_of_arguments(call):
    want, got = (eval(call, {"f": f, "x": f.arange(6.0).reshape(2, 3)}).flatten().tolist() for f in (torch, taeda))
    assert got == pytest.approx(want, abs=1e-5)


def test_a_generator_of_no_device_in_particular():
    assert taeda.Generator(None).device == taeda.device("cpu") and torch.Generator(None).device.type == "cpu"


WARNS = """f.meshgrid(f.arange(2), f.arange(3))|f.meshgrid(f.arange(2), f.arange(3), indexing="ij")|f.cross(x, x)|f.cross(x, x, dim=1)
f.ones(2, 3, 4).T|f.tensor(1.0).T|x.T|f.ones(3).T|f.range(0, 3)|f.where(f.tensor([1, 0], dtype=f.uint8), 1, 0)
f.triangular_solve(x, x + f.eye(3))|F.mse_loss(x, 2 * x, reduce=False)|F.l1_loss(x, 2 * x, size_average=False)
F.smooth_l1_loss(x, 2 * x, None, False)|F.nll_loss(x, f.tensor([0, 1, 2]), size_average=True)|f.cuda.amp.autocast(enabled=False)
F.kl_div(x, x, reduce=False)|f.cuda.amp.GradScaler(enabled=False)|F.binary_cross_entropy(x, f.ones(3, 3, dtype=f.int64))
f.histogram(x)|f.zeros(1).expand(3).masked_fill_(f.tensor([True, False, True]), 1.0)""".replace("\n", "|").split("|")  # fmt: skip


@pytest.mark.parametrize("call", WARNS)
def test_what_is_warned_of(call, monkeypatch):
    monkeypatch.setattr("taeda._warn._told", set())

    def tried(f):
        x = f.arange(9.0).reshape(3, 3) / 9 + 0.05
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                made = eval(call, {"f": f, "F": f.nn.functional, "x": x})
            except RuntimeError:
                made = RuntimeError
        kinds = [w.category for w in seen]
        parts = made if isinstance(made, tuple) else (made,) if isinstance(made, f.Tensor) else ()
        return (type(made).__name__, kinds, *(t.shape for t in parts)), [v for t in parts for v in t.flatten().tolist()]

    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        kind, values = tried(torch)
    finally:
        torch.set_warn_always(always)
    ours, got = tried(taeda)
    assert ours == kind and got == pytest.approx(values, abs=1e-6)


def test_parts_of_a_result_have_names():
    made, expected = taeda.frexp(taeda.tensor([3.0])), torch.frexp(torch.tensor([3.0]))
    assert made.mantissa.tolist() == expected.mantissa.tolist() and made.exponent.tolist() == expected.exponent.tolist()
    assert type(taeda.tensor([3.0], requires_grad=True).frexp()).__name__ == "frexp"


REFUSED = """f.unique(f.ones(2) + 1j)|F.grid_sample(f.ones(1, 1, 2, 2).long(), f.zeros(1, 2, 2, 2))|F.softmax(f.arange(3), 0)
F.avg_pool1d(f.ones(1, 1, 4, dtype=f.bool), 2)|f.randn(2, dtype=f.int64)|F.linear(f.ones(2, 2).bool(), f.ones(2, 2).bool())"""


@pytest.mark.parametrize("call", REFUSED.replace("\n", "|").split("|"))
def test_dtypes_that_are_not_there(call):
    for f in (torch, taeda):
        with pytest.raises(NotImplementedError):
            eval(call, {"f": f, "F": f.nn.functional})
