"""The gradient of a result that was asked for in another dtype has the dtype of the input."""

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

ORDERS = (0.5, 1, 2, 3, float("inf"), -float("inf"))
CALLS = {
    **{
        name: lambda t, x, name=name: getattr(t, name)(x, 0, dtype=t.float64)
        for name in ("sum", "nansum", "mean", "nanmean", "prod", "cumsum", "cumprod", "softmax", "log_softmax")
    },
    **{
        f"{name} of all": lambda t, x, name=name: getattr(t, name)(x, dtype=t.float64)
        for name in ("sum", "prod", "norm")
    },
    "softmin": lambda t, x: t.nn.functional.softmin(x, 0, dtype=t.float64),
    **{f"vector_norm {p}": lambda t, x, p=p: t.linalg.vector_norm(x, p, 0, dtype=t.float64) for p in ORDERS},
    **{
        f"matrix_norm {p}": lambda t, x, p=p: t.linalg.matrix_norm(x, p, dtype=t.float64)
        for p in ("fro", "nuc", 1, 2, -2, float("inf"))
    },
    **{
        f"masked.{name}": lambda t, x, name=name: getattr(t.masked, name)(x, 0, dtype=t.float64, mask=x > 1)
        for name in ("sum", "prod", "mean", "cumsum", "cumprod", "softmax")
    },
    "prod of halves": lambda t, x: t.prod(x.bfloat16(), 0, dtype=t.float32),
}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", list(CALLS))
def test_gradients_keep_the_dtype_of_the_input(name, zeros):
    found = []
    for t in (torch, taeda):
        x = t.arange(1.0, 7.0).reshape(2, 3)
        if zeros:
            x[0, 0] = x[1, 1] = 0
        x.requires_grad_()
        y = CALLS[name](t, x)
        (g,) = t.autograd.grad(y.sum(), x)
        found.append(((str(y.dtype).split(".")[1], str(g.dtype).split(".")[1]), g.flatten().tolist()))
    (types, want), (our_types, got) = found
    assert types == our_types and got == pytest.approx(want, rel=1e-5, nan_ok=True)


def test_the_gradient_of_no_elements():
    x = taeda.ones(0, requires_grad=True)
    (g,) = taeda.autograd.grad(x.prod(dtype=taeda.float64), x)
    assert g.dtype is taeda.float32 and g.shape == (0,)
