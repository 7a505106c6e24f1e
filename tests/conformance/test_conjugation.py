"""Conjugated views: memory shared with what they are views of, through writes, derivatives and ways out, against PyTorch."""

import copy
import io
import pickle
import threading

import pytest

import taeda

torch = pytest.importorskip("torch")

VALUES = [[1 + 2j, 3 - 1j, -0.5 + 4j], [0.25j, 2 + 0j, -1 - 1j]]


def program(function):
    """A test that runs ``function(T, x, y)``, for ``y`` the conjugated view of ``x``, in both, and compares all that it gives."""

    @pytest.mark.parametrize("dtype", ["complex64", "complex128"])
    def test(dtype):
        results = []
        for T in (taeda, torch):
            x = T.tensor(VALUES, dtype=getattr(T, dtype))
            y = x.conj()
            given = function(T, x, y)
            results.append([*(given if isinstance(given, (tuple, list)) else (given,)), x, y])
        for got, want in zip(*results, strict=True):
            if isinstance(want, torch.Tensor):
                assert (got.is_conj(), got.is_neg()) == (want.is_conj(), want.is_neg())
                assert tuple(got.shape) == tuple(want.shape)
                torch.testing.assert_close(
                    torch.tensor(got.tolist(), dtype=want.dtype), want.detach().resolve_conj().resolve_neg()
                )
            else:
                assert got == want

    test.__name__ = function.__name__
    test.__doc__ = function.__doc__
    return test


@program
def test_what_it_is(T, x, y):
    shares = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and y.data_ptr() == x.data_ptr()
    real = T.ones(2)
    return y.is_conj(), x.is_conj(), T.is_conj(y), shares, y._base is x, y.stride(), y.conj(), real.conj() is real


@program
def test_writes_to_the_base_are_seen(T, x, y):
    seen = [y[0, 0].item()]
    x[0, 0] = 5 + 5j
    x.mul_(2j)
    x.t()[1] += 1
    return *seen, y._version == x._version, y[0, 0].item(), y.tolist(), y[0, 1].item(), complex(y[1, 1])


@program
def test_writes_reach_the_base(T, x, y):
    held = [x]
    y.mul_(2j)
    held.append(x.clone())
    y[0] = T.tensor([1j, 2, 3 + 3j], dtype=x.dtype)
    held.append(x.clone())
    y[:, 1:].fill_(7j)
    y.t()[0].add_(1j)
    held.append(x.clone())
    y += x
    held.append(x.clone())
    y.zero_()[1, 2] = 4 - 4j
    return held


@program
def test_advanced_indices(T, x, y):
    y[y.abs() > 3] = 0.5j
    y[T.tensor([0, 1]), T.tensor([2, 2])] = T.tensor([1j, -1j], dtype=x.dtype)
    y.index_put_((T.tensor([1]), T.tensor([0])), T.tensor(2 + 1j, dtype=x.dtype), accumulate=True)
    y.masked_fill_(T.tensor([[True, False, False]]), 3j)
    y.index_copy_(1, T.tensor([1]), T.tensor([[1j], [2j]], dtype=x.dtype))
    y.copy_(y.flip(0).clone())
    return y[T.tensor([1, 0])].resolve_conj(), y[y.imag > 0].resolve_conj()


@program
def test_out(T, x, y):
    T.add(x, 1j, out=y)
    T.matmul(x[:, :2], x, out=y)
    T.exp(y, out=x)
    room = T.empty(0, dtype=x.dtype)
    T.mul(y, y, out=room)
    return room


@program
def test_views_of_views(T, x, y):
    views = y.t(), y[1], y.reshape(3, 2), y.unsqueeze(0), y.expand(2, 2, 3), *y.unbind(0), *y.split(2, 1), y.diagonal()
    x.add_(1j)
    return (
        *views,
        y.real,
        x.mH,
        x.H,
        x.adjoint(),
        x[0].H if x[0].dim() == 2 else x[:, :1].H,
        y.mH,
        y.conj().t(),
        y.detach(),
    )


@program
def test_parts(T, x, y):
    seen = (
        y.imag,
        T.imag(y).t(),
        y.imag.resolve_neg(),
        y.real,
        y.mH.imag[1],
        y.imag.clone().resolve_neg(),
        y.imag + x.imag,
    )
    y.real.mul_(2)
    y.imag.add_(T.ones(3, dtype=x.real.dtype))
    y.imag[1, 1:] = 7
    T.sub(y.imag, 1, out=y.imag)
    held = x.clone()
    y.real = T.ones(2, 3, dtype=x.real.dtype)
    y.imag = T.arange(6, dtype=x.real.dtype).reshape(2, 3)
    y.imag.t()[0].copy_(T.tensor([2, 3]))
    x.real.copy_(y.imag)
    return *seen, held, y.imag.tolist(), y.imag[0, 1].item(), T.complex(x.real, y.imag).resolve_conj()


@program
def test_ops_read_what_it_shows(T, x, y):
    made = [y + x, x * y, y @ x.t(), x.mH @ x, T.cat([x, y]), T.stack((y, x)), T.where(y.real > 0, y, x), y.sum(), -y]
    made += [
        y.to(T.complex128),
        y.abs(),
        y.angle(),
        T.view_as_real(y.resolve_conj()),
        y.roll(1, 0),
        T.einsum("ij,kj->ik", y, x),
    ]
    made += [T.linalg.norm(y), T.linalg.solve(y[:, :2], x[:, :2]), T.fft.fft(y), T.isclose(y, x), y == x, T.equal(y, x)]
    made += [
        x.conj_physical(),
        T.vdot(y[0], x[0]),
        T.nonzero(y),
        y.cumsum(0),
        T.nn.functional.pad(y, (1, 1)),
        y.tolist(),
    ]
    return [t.resolve_conj() if hasattr(t, "resolve_conj") else t for t in made]


@program
def test_conversions(T, x, y):
    other = T.zeros(3, 2, dtype=T.complex64)
    other.t().copy_(y)
    flipped = T.zeros(2, 3, dtype=T.complex128).conj()
    flipped.copy_(x)
    large = T.arange(4096, dtype=T.float32).reshape(64, 64) * (1 + 1j)
    turned = T.zeros_like(large).copy_(large.conj().t())
    y.copy_(T.ones(3))
    return (
        other,
        flipped.resolve_conj(),
        flipped.conj(),
        turned,
        y.to(T.complex64).resolve_conj(),
        T.tensor(y.tolist(), dtype=x.dtype),
    )


@program
def test_calls_that_name_a_device_or_a_type_of_pythons(T, x, y):
    there = [
        y.to("meta"), y.imag.to(device="meta"), T.zeros_like(y, device="meta"), T.rand_like(y, device="meta"),
        T.full_like(y.imag, 2, device="meta"), y.new_empty(3, device="meta"), T.nn.Parameter(y).to("meta"),
    ]  # fmt: skip
    return (
        *[f"{t.device} {tuple(t.shape)} {t.dtype}".replace(T.__name__, "") for t in there],
        y.to(complex),
        y.imag.to(float),
        T.zeros_like(y, dtype=float),
        y.new_ones(2, dtype=float),
        T.cumsum(y, 0, dtype=complex),
    )


@program
def test_first_derivatives(T, x, y):
    a = x.clone().requires_grad_()
    made = []
    for loss in (
        lambda: (a.conj() * a).real.sum() + a.conj().imag.sum(),
        lambda: (a.mH @ a).abs().sum() + a.conj()[0].real.pow(2).sum(),
        lambda: T.cat([a.conj(), a]).t().angle().sum(),
        lambda: a.conj().resolve_conj().real.sum() + a.conj().conj().imag.sum(),
    ):
        made.append(T.autograd.grad(loss(), a)[0].resolve_conj())
    g = T.autograd.grad((a * 2j).conj(), a, a.detach().conj(), create_graph=True)[0]
    a.conj().backward(a.detach().conj())
    a.grad = None
    hook = a.register_hook(lambda grad: grad.conj())
    (a * a.detach()).sum().real.backward()
    hook.remove()
    return *made, g.resolve_conj(), a.grad.resolve_conj()


@program
def test_derivatives_of_writes(T, x, y):
    made = []
    for write in (
        lambda b, c: c.mul_(3j),
        lambda b, c: b.mul_(1 + 1j),
        lambda b, c: c[0].copy_(T.ones(3, dtype=x.dtype)),
        lambda b, c: c[:, 1].mul_(b.detach()[:, 0].clone()),
        lambda b, c: (c.conj().sub_(1j), c.t()[1:].mul_(2j)),
        lambda b, c: (c.imag.mul_(3), c.real[0].add_(1)),
        lambda b, c: (c.imag[:, 1].copy_(b.real[:, 0].clone()), b.imag.add_(c.imag.clone())),
    ):
        a = x.clone().requires_grad_()
        b = a * 2
        c = b.conj()
        write(b, c)
        ((c * (1 + 2j)).abs() ** 2 + (b.real * b.imag)).sum().backward()
        made += [c.detach().resolve_conj(), b.detach(), a.grad.resolve_conj()]
    return made


@program
def test_ways_out(T, x, y):
    buffer = io.BytesIO()
    T.save({"x": x, "y": y}, buffer)
    buffer.seek(0)
    loaded = T.load(buffer)
    loaded["x"][0, 0] = 9j
    pair = copy.deepcopy((x, y))
    pair[0].mul_(2)
    return (
        loaded["y"],
        pair[1],
        y.tolist(),
        repr(y).replace("taeda", "torch"),
        y[0, 1].item(),
        [complex(v) for v in y[0]],
        y.numpy(force=True).tolist(),
    )


ERRORS = {
    "numpy": lambda T, y: y.numpy(),
    "dlpack": lambda T, y: y.__dlpack__(),
    "numpy of an imaginary part": lambda T, y: y.imag.numpy(),
    "view_as_complex": lambda T, y: T.view_as_complex(y.imag[:, :2]),
    "view_as_real": lambda T, y: T.view_as_real(y),
    "view of another dtype": lambda T, y: y.view(T.float32),
    "leaf": lambda T, y: y.detach().clone().requires_grad_().conj().mul_(2),
    "sizes": lambda T, y: y.add_(T.ones(4, 2, 3)),
    "dtype of out": lambda T, y: T.abs(y, out=T.ones(2, 3, dtype=T.int64)),
    "what was saved": lambda T, y: _write_what_was_saved(T, y),
}


def _write_what_was_saved(T, y):
    a = y.detach().resolve_conj().requires_grad_()
    b = a * 1
    loss = (b * b).sum().real
    b.conj().add_(1)
    loss.backward()


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    kinds = []
    for T in (taeda, torch):
        with pytest.raises(Exception) as raised:
            ERRORS[name](T, T.tensor(VALUES).conj())
        kinds.append(raised.type)
    assert issubclass(*kinds)


def test_buffer():
    with pytest.raises(BufferError, match="resolve_conj"):
        memoryview(taeda.tensor(VALUES).conj())


def test_pickle_and_files():
    y = taeda.tensor(VALUES).conj()
    again = pickle.loads(pickle.dumps(y))
    assert again.is_conj() and again.tolist() == y.tolist()
    file = io.BytesIO()
    taeda.save(y, file)
    file.seek(0)
    theirs = torch.load(file)
    assert theirs.is_conj() and theirs.tolist() == y.tolist()
    file = io.BytesIO()
    taeda.save(y.imag, file)
    for load in (taeda.load, torch.load):
        file.seek(0)
        part = load(file)
        assert part.is_neg() and part.tolist() == y.imag.tolist()
    assert pickle.loads(pickle.dumps(y.imag)).tolist() == y.imag.tolist()
    again = taeda.io.safetensors.load(taeda.io.safetensors.save({"y": y}))["y"]
    assert again.tolist() == y.tolist()


def test_other_threads_read_what_it_shows():
    """The view is made by one thread and read by another, which has seen none before."""
    found = []
    ready, go = threading.Event(), threading.Event()

    def read():
        taeda.ones(2) + 1
        ready.set()
        go.wait()
        found.append((shared[0] * 1).tolist())

    shared = []
    thread = threading.Thread(target=read)
    thread.start()
    ready.wait()
    x = taeda.tensor(VALUES)
    shared.append(x.conj())
    go.set()
    thread.join()
    assert found == [[[v.conjugate() for v in row] for row in VALUES]]


def test_functions_of_functions():
    """Transforms take conjugated views, and give what they give for copies."""
    y = taeda.tensor(VALUES).conj()
    plain = y.resolve_conj()

    def f(t):
        return (t.conj() * t + t.mH.sum() if t.dim() == 2 else t.conj() * t).sum().real

    for run in (
        lambda t: taeda.func.grad(f)(t),
        lambda t: taeda.func.vmap(lambda row: row.conj() * (1 + 2j))(t),
        lambda t: taeda.func.vmap(lambda a, s: (a.conj() + y) * s, in_dims=(None, 0))(t, taeda.ones(2)),
        lambda t: taeda.func.jvp(f, (t,), (t,))[1],
        lambda t: taeda.func.vjp(lambda a: a.conj() * 2j, t)[1](t)[0],
        lambda t: taeda.func.jacrev(lambda a: (a.conj() * a).real)(t),
    ):
        assert taeda.equal(run(y), run(plain))


class Turned(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.conj())
        return x.conj() * 2

    @staticmethod
    def backward(ctx, g):
        (saved,) = ctx.saved_tensors
        assert saved.is_conj()
        return g.conj()


def test_custom_function():
    x = taeda.tensor(VALUES, requires_grad=True)
    Turned.apply(x).backward(taeda.tensor(VALUES))
    assert not x.grad.is_conj()
    assert taeda.equal(x.grad, taeda.tensor(VALUES).conj())
    (g,) = taeda.autograd.grad(Turned.apply(x), x, taeda.tensor(VALUES))
    assert taeda.equal(g, x.grad)


def test_gradients_and_optimisers():
    """What is set as a gradient is resolved: optimisers read memory."""
    p = taeda.nn.Parameter(taeda.tensor(VALUES))
    p.grad = p.detach().conj()
    assert not p.grad.is_conj()
    taeda.optim.SGD([p], lr=1.0).step()
    assert taeda.allclose(p.detach(), taeda.tensor(VALUES) - taeda.tensor(VALUES).conj())
    turned = taeda.nn.Parameter(taeda.tensor(VALUES).conj())
    turned.grad = taeda.ones_like(turned)
    before = turned.detach().clone()
    taeda.optim.SGD([turned], lr=1.0, foreach=False).step()
    assert taeda.allclose(turned.detach(), before - 1)


def test_modules():
    torch.manual_seed(0)
    theirs = torch.nn.Linear(3, 4, dtype=torch.complex64)
    ours = taeda.nn.Linear(3, 4, dtype=taeda.complex64)
    ours.load_state_dict({k: taeda.from_dlpack(v.detach().clone()) for k, v in theirs.state_dict().items()})
    got, want = (m(T.tensor(VALUES).conj()) for T, m in ((taeda, ours), (torch, theirs)))
    torch.testing.assert_close(torch.tensor(got.tolist()), want.detach())
