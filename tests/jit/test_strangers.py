"""Programs as strangers write them: taeda's scripts, and archives in both directions, beside PyTorch's scripts."""

import copy
import io

import pytest

import taeda
from taeda import nn

torch = pytest.importorskip("torch")
from agree import close  # noqa: E402
from newcomers import NEWCOMERS  # noqa: E402
from strangers import STRANGERS  # noqa: E402
from test_archive import archive, ours  # noqa: E402
from test_script import of_taeda, theirs  # noqa: E402


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    return {**of_taeda("strangers", folder).STRANGERS, **of_taeda("newcomers", folder).NEWCOMERS}


def kept(x):
    """A copy: a later call may change what an earlier one gave."""
    if isinstance(x, (torch.Tensor, taeda.Tensor)):
        return x.detach().clone()
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return copy.deepcopy(x)
    return type(x)(map(kept, x)) if isinstance(x, (list, tuple)) else copy.deepcopy(x)


def outcomes(function, calls):
    """What the calls give, one after the other; exceptions for those that raise."""
    made = []
    for args in calls:
        try:
            made.append(kept(function(*copy.deepcopy(args))))
        except Exception as error:
            made.append(error)
    return made


def compare(expected, got):
    for x, y in zip(expected, got, strict=True):
        if isinstance(y, Exception) and not isinstance(x, Exception):
            raise y
        if isinstance(x, Exception):
            assert isinstance(y, RuntimeError), y
            message = str(x).strip().splitlines()[-1].rpartition("Error: ")[2]
            assert "shape '" in message or message in str(y)
        elif isinstance(y, Exception):
            raise y
        else:
            close(x, y)


@pytest.mark.parametrize("name", [*STRANGERS, *NEWCOMERS])
def test_stranger(strangers, name):
    make, calls = {**STRANGERS, **NEWCOMERS}[name]
    own, _ = strangers[name]
    given = ours(calls)
    expected = outcomes(torch.jit.script(make()), calls)
    compare(expected, outcomes(taeda.jit.script(own()), given))
    data = archive(torch.jit.script(make()))
    compare(expected, outcomes(taeda.jit.load(io.BytesIO(data)), given))
    buffer = io.BytesIO()
    taeda.jit.save(taeda.jit.script(own()), buffer)
    data = buffer.getvalue()
    compare(expected, outcomes(taeda.jit.load(io.BytesIO(data)), given))
    back = outcomes(torch.jit.load(io.BytesIO(data)), calls)
    compare(expected, [RuntimeError(str(x)) if isinstance(x, Exception) else ours(x) for x in back])
    if isinstance(own(), nn.Module) and name != "contexts":  # constants require no gradient
        compare(expected, outcomes(taeda.jit.freeze(taeda.jit.script(own().eval())), given))


class Inner(nn.Module):
    def forward(self, x, scale: float = 2.0):
        return x * scale


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x, scale=3.0) + 1


def before(self, given: tuple[taeda.Tensor, float]) -> tuple[taeda.Tensor, float]:
    return given[0] + 10, given[1]


def after(self, given: tuple[taeda.Tensor, float], result: taeda.Tensor) -> None:
    assert given[0].max() < 100, "too large"


def last(self, given: tuple[taeda.Tensor], result: taeda.Tensor):
    return result, given[0]


def test_hooks_of_modules():
    net = Outer()
    net.inner.register_forward_pre_hook(before)
    net.inner.register_forward_hook(after)
    net.register_forward_hook(last)
    scripted = taeda.jit.script(net)
    x = taeda.ones(2)
    for made in (scripted, taeda.jit.freeze(scripted.eval())):
        buffer = io.BytesIO()
        made.save(buffer)
        again = taeda.jit.load(io.BytesIO(buffer.getvalue()))
        pytorch = torch.jit.load(io.BytesIO(buffer.getvalue()))
        for loaded in (made, copy.deepcopy(made), again):
            y, given = loaded(x)
            assert y.tolist() == [34.0, 34.0] and given.tolist() == [1.0, 1.0]
            assert loaded.forward(x).tolist() == [34.0, 34.0]
            with pytest.raises(RuntimeError, match="too large"):
                loaded(x * 95)
        y, given = pytorch(theirs(x))
        assert y.tolist() == [34.0, 34.0] and given.tolist() == [1.0, 1.0]
    assert scripted.inner(x, 2.0).tolist() == [22.0, 22.0]


def test_hooks_that_cannot_be_compiled():
    net = Outer()
    net.inner.register_forward_pre_hook(lambda module, given: None)
    with pytest.raises(RuntimeError, match="cannot be compiled"):
        taeda.jit.script(net)
    net = Outer()
    net.inner.register_forward_hook(before)
    with pytest.raises(RuntimeError, match="hook 'before' of 'Inner'"):
        taeda.jit.script(net)
    with pytest.raises(RuntimeError, match="cannot be compiled"):
        taeda.jit.script(nn.utils.weight_norm(nn.Linear(2, 2)))


def test_lists_of_tensors_need_a_type(tmp_path):
    assert taeda.jit.CompilationUnit("def f(x: Tensor) -> List[List[int]]:\n  return x.tolist()\n").f(
        taeda.arange(4).reshape(2, 2)
    ) == [[0, 1], [2, 3]]
