"""Special functions written as ONNX, at ordinary numbers, at edges and poles, in onnxruntime."""

import pytest

import taeda
import taeda.onnx
from taeda import nn
from taeda.onnx.translate.special import EXPRESSIONS
from taeda.ops.table import OPS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

INF, NAN = float("inf"), float("nan")
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 1e-20, 1e-3, 30.0, -30.0, 90.0, 1e6, INF, -INF, NAN]


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *xs):
        return self.function(*xs)


def numbers(name, dtype):
    """Arguments of a function: each with each edge where it has two."""
    x = taeda.tensor([*EDGES, *taeda.linspace(-12, 12, 101).tolist()], dtype=dtype)
    if name == "zeta":
        return taeda.tensor([1.0, 1.5, 2, 3, 10, 0.5, INF, NAN], dtype=dtype).unsqueeze(1), x
    if name in ("igamma", "igammac"):
        return taeda.tensor([0.0, 1e-3, 0.5, 1, 3, 20, 70, 500, INF, -1, NAN], dtype=dtype).unsqueeze(1), x
    if "polynomial" in name:
        return x, taeda.tensor([-1.0, 0, 1, 2, 3, 4.7, 7, 12], dtype=dtype).unsqueeze(1)
    return (x,)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("name", [*EXPRESSIONS, "log_ndtr"])
def test_values_are_those_of_the_op(name, dtype):
    function, args = OPS.get(name, taeda.special.log_ndtr), numbers(name, dtype)
    program = taeda.onnx.export(Apply(function), args)
    program.initialize_inference_session()  # onnxruntime has all that is needed
    for given in (args, tuple(x.flatten()[:3] for x in args)):
        (made,) = program(*given) if given is args else taeda.onnx.export(Apply(function), given)(*given)
        wanted = function(*given)
        assert made.dtype is dtype and made.shape == wanted.shape
        near = 1e-6 if dtype is taeda.float32 else 1e-14 if "chebyshev" in name else 1e-30
        close = taeda.isclose(made, wanted, 1e-5, near, equal_nan=True)
        where = [tuple(float(x.broadcast_to(wanted.shape)[~close][i]) for x in given) for i in range((~close).sum())]
        assert bool(close.all()), list(zip(where, made[~close].tolist(), wanted[~close].tolist(), strict=True))[:9]


def test_sizes_may_change():
    function = taeda.special.chebyshev_polynomial_t
    sizes = {"xs": ({0: taeda.export.Dim("n")}, None)}
    program = taeda.onnx.export(Apply(function), (taeda.rand(3), taeda.tensor([4.0])), dynamic_shapes=sizes)
    for n in (1, 9, 0):
        x = taeda.rand(n) * 3
        assert taeda.allclose(program(x, taeda.tensor([5.0]))[0], function(x, taeda.tensor([5.0])))
    wide = taeda.randn(2, 1, 3).double()
    (made,) = taeda.onnx.export(Apply(taeda.special.polygamma), (3, wide))(3, wide)
    assert taeda.allclose(made, taeda.special.polygamma(3, wide), 1e-8)
