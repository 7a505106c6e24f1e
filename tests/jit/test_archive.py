"""Archives that PyTorch wrote, run here: values, gradients, state, errors."""

import io

import pytest

import taeda

torch = pytest.importorskip("torch")
from agree import close  # noqa: E402
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
            close(expected, got, method)


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


TRACEABLE = ["cnn", "resnet", "recurrent", "packed_lstm", "unet", "transformer", "attention", "layers", "interfaces"]


@pytest.mark.parametrize("name", TRACEABLE)
def test_traced(name):
    torch.manual_seed(0)
    module, calls = PROGRAMS[name]()
    method, args = calls[0]
    traced = torch.jit.trace(module.eval(), args, strict=False, check_trace=False)
    data = archive(traced)
    agree(torch.jit.load(io.BytesIO(data)), taeda.jit.load(io.BytesIO(data)), [(method, args)])


@pytest.mark.parametrize(
    "name", ["cnn", "resnet", "packed_lstm", "recurrent", "unet", "transformer", "attention", "layers"]
)
def test_gradients(name):
    torch.manual_seed(0)
    module, calls = PROGRAMS[name]()
    for m in module.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0
        if isinstance(m, torch.nn.MultiheadAttention):
            m.dropout = 0.0
    data = archive(torch.jit.script(module.train()))
    theirs, mine = torch.jit.load(io.BytesIO(data)), taeda.jit.load(io.BytesIO(data))
    args = calls[0][1]
    assert mine.training and all(m.training for m in mine.modules())

    def total(out, of):
        parts = (
            [out]
            if isinstance(out, of)
            else [p for o in out for p in ([o] if isinstance(o, of) else o if isinstance(o, list) else [])]
        )
        return sum((p * p).sum() for p in parts if p.requires_grad)

    total(theirs(*args), torch.Tensor).backward()
    total(mine(*ours(args)), taeda.Tensor).backward()
    expected = {k: p.grad for k, p in theirs.named_parameters()}
    assert list(expected) == [k for k, _ in mine.named_parameters()]
    for key, p in mine.named_parameters():
        assert (p.grad is None) == (expected[key] is None), key
        if p.grad is not None:
            scale = max(float(expected[key].abs().max()), 1.0)
            close(expected[key] / scale, p.grad / scale, key, 3e-5, 3e-5)  # sums of terms that cancel
    close(dict(theirs.named_buffers()), dict(mine.named_buffers()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_again(name):
    """What taeda writes of a program that PyTorch wrote, both read."""
    torch.manual_seed(0)
    module, calls = PROGRAMS[name]()
    data = archive(torch.jit.script(module.eval()))
    buffer = io.BytesIO()
    taeda.jit.save(taeda.jit.load(io.BytesIO(data)), buffer, _extra_files={"note.txt": "hello"})
    note = {"note.txt": ""}
    mine = taeda.jit.load(io.BytesIO(buffer.getvalue()), _extra_files=note)
    assert note == {"note.txt": b"hello"}
    agree(torch.jit.load(io.BytesIO(data)), mine, calls)
    agree(torch.jit.load(io.BytesIO(buffer.getvalue())), taeda.jit.load(io.BytesIO(data)), calls)


def test_an_op_that_the_program_declared():
    signature = "join(Tensor x, float[] scales, int n=2, *, Tensor? more=None) -> (Tensor, Tensor[])"

    def join(x, scales, n=2, *, more=None):
        return x * sum(scales) * n + (0 if more is None else more), [x + 1]

    kept = []
    for t in (torch, taeda):
        declared = t.library.Library("archived", "DEF")
        declared.define(signature)
        declared.impl("join", join, "CompositeImplicitAutograd")
        kept.append(declared)

    class Model(torch.nn.Module):
        def forward(self, x):
            whole, parts = torch.ops.archived.join(x, [1.0, 2.0], more=x)
            return torch.ops.archived.join(whole, [0.5])[0] + parts[0]

    class Ours(taeda.nn.Module):
        def forward(self, x):
            whole, parts = taeda.library.ops.archived.join(x, [1.0, 2.0], more=x)
            return taeda.library.ops.archived.join(whole, [0.5])[0] + parts[0]

    theirs = torch.jit.script(Model())
    read, scripted = taeda.jit.load(io.BytesIO(archive(theirs))), taeda.jit.script(Ours())
    written = io.BytesIO()
    taeda.jit.save(scripted, written)
    made = [read, scripted, taeda.jit.load(io.BytesIO(written.getvalue()))]
    assert "ops.archived.join(" in scripted.code
    for mine in made:
        agree(theirs, mine, [("forward", (torch.tensor([1.0, -2.0]),))])
    back = torch.jit.load(io.BytesIO(written.getvalue()))
    agree(back, read, [("forward", (torch.tensor([1.0, -2.0]),))])
    x = taeda.ones(2, requires_grad=True)
    read(x).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]
