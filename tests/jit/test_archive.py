"""Archives that PyTorch wrote, run here: values, gradients, state, errors."""

import io
import random
import zipfile

import pytest

import taeda

torch = pytest.importorskip("torch")
from programs import PROGRAMS  # noqa: E402


def ours(x):
    """PyTorch's tensors as taeda's, in any container."""
    if isinstance(x, torch.Tensor):
        return taeda.tensor(x.detach().tolist(), dtype=getattr(taeda, str(x.dtype)[6:])).reshape(tuple(x.shape))
    if isinstance(x, dict):
        return {k: ours(v) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(ours, x))
    return type(x)(map(ours, x)) if isinstance(x, (list, tuple)) else x


def same(expected, got, where="result"):
    """Compare values of any type; tensors to 1e-5."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(got, taeda.Tensor), where
        assert tuple(expected.shape) == tuple(got.shape) and str(expected.dtype)[6:] == str(got.dtype).split(".")[1], where
        other = torch.tensor(got.detach().tolist(), dtype=expected.dtype).reshape(expected.shape)
        assert torch.allclose(expected.detach(), other, rtol=1e-5, atol=1e-5, equal_nan=True), where
    elif isinstance(expected, dict):
        assert list(expected) == list(got), where
        for key in expected:
            same(expected[key], got[key], f"{where}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(expected) == len(got), where
        for i, (a, b) in enumerate(zip(expected, got, strict=True)):
            same(a, b, f"{where}[{i}]")
    else:
        assert type(expected) is type(got) and expected == pytest.approx(got, rel=1e-6) if isinstance(expected, float) else (
            expected == got
        ), where


def archive(module, **options):
    """The bytes of a scripted module."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer, **options)
    return buffer.getvalue()


def run(module, method, args):
    """The result of a call, or its exception."""
    try:
        return getattr(module, method)(*args)
    except Exception as error:
        return error


def agree(theirs, mine, calls):
    """Run the calls on both and compare what they give or raise."""
    for method, args in calls:
        converted = ours(args)
        expected, got = run(theirs, method, args), run(mine, method, converted)
        if isinstance(expected, Exception):
            assert isinstance(got, Exception), (method, expected, got)
        elif isinstance(got, Exception):
            raise got
        else:
            same(expected, got, method)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("how", ["eval", "frozen"])
def test_scripted(name, how):
    torch.manual_seed(0)
    module, calls = PROGRAMS[name]()
    scripted = torch.jit.script(module.eval())
    if how == "frozen":
        kept = [m for m in ("count", "reset", "counts", "describe") if hasattr(scripted, m)]
        scripted = torch.jit.freeze(scripted, preserved_attrs=kept)
    data = archive(scripted)
    agree(torch.jit.load(io.BytesIO(data)), taeda.jit.load(io.BytesIO(data)), calls)
