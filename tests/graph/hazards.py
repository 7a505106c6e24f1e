"""Programs in which other code reads or writes a compiled function's deferred results. Each gives tensors to compare."""

from __future__ import annotations

import copy
import io
import pickle
import threading

import numpy as np

import taeda as T
import taeda.autograd.forward_ad
from taeda import nn
from taeda.nn import functional as F

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def numbers(*shape, grad=False):
    return T.randn(*shape).requires_grad_(grad)


@program
def a_leaf_written_after_it_was_read():
    x = numbers(64)
    y = x.sin() + 1
    x.zero_()
    return y, x


@program
def a_leaf_written_under_no_grad_by_its_data():
    w = numbers(64, grad=True)
    y = w * 2 + 1
    w.data.fill_(3)
    z = w * 2
    with T.no_grad():
        w.add_(1)
    return y, z, w * y.detach()


@program
def views_written_and_read():
    x = numbers(8, 8)
    y = x * 2
    row, turned, flat = y[1], y.t(), y.view(-1)
    z = turned + 1
    row.fill_(5)
    flat[3:20] *= 2
    return y, z, turned + 0, y[::2, 1::3] - 1


@program
def slices_of_what_is_deferred():
    x, w = numbers(6, 8, 10), numbers(10)
    y = (x * w).sin()
    a, b, c = y[2:5, :, 1:7], y[:, 3:4], y.permute(1, 0, 2)[1:3, 2:]
    results = a * 2, b + a[:1, :1, :1], c.exp() - 1, y[:, ::2] * 3, T.cat([-a, a], 1)
    x.zero_()
    return (*results, a + 1)


@program
def a_column_read_as_a_row():
    x = numbers(64, grad=True)
    row = x.unsqueeze(0)
    ((row * 0.8).sum() + (row.t() * 0.9).sum()).backward()
    column = T.ones(()).expand(64, 1) * 0.9
    return x.grad, column.t() + row.detach(), column.t() * column


@program
def few_elements_of_what_is_deferred():
    x, w = numbers(8, 160, grad=True), numbers(8, 1)
    index = T.arange(8)[:, None]
    y = x - (x * w).logsumexp(-1, keepdim=True)
    a, b = y.gather(1, index), (y * w).sin().gather(0, index[:2].expand(2, 3))
    (gradient,) = T.autograd.grad(a.sum() + (b * b).sum() + y.mean(), x)
    return a, b, gradient, y


@program
def slices_of_what_is_written_over():
    x = numbers(8, 10)
    y = x + 1
    y.mul_(3)
    a = y[:, 2:5] * 2
    y.add_(a.sum())
    b = y[1:4] - 1
    y[:2].zero_()
    return a, b, y, y[:3] * 2


@program
def read_while_others_wait():
    x = numbers(8, 10)
    y = x.tanh()
    z, copy_of_y = y * 2, y[:, 1:].contiguous()
    y.add_(1)
    x.fill_(3)
    return z, copy_of_y, y, T.cat([y, z])


@program
def in_place_chains_on_a_view():
    x = numbers(6, 6)
    y = x.exp()
    y[:, 2:4].mul_(3).add_(1)
    y.diagonal().neg_()
    y.t_()
    return y, y.sum(0)


@program
def numpy_views_of_results_and_operands():
    x = numbers(32)
    held = x.numpy()
    y = x * 2
    held[:] = 7
    z = x * 3
    a = z.numpy()
    a += 1
    return y, z, x, T.from_numpy(a) * 2


@program
def numpy_writes_to_a_result():
    y = numbers(32) + 1
    y.numpy()[3] = 100
    return y * 2, T.as_tensor(np.asarray(y)) + y


@program
def an_address_is_asked_for():
    x = numbers(16)
    y = x + 1
    assert y.data_ptr() and y.untyped_storage().data_ptr() == y.data_ptr()
    y.untyped_storage().fill_(0)
    return y, x


@program
def results_written_to_out():
    a, b = numbers(5, 5), numbers(5, 5)
    y = a + b
    T.mul(y, 2, out=a)
    T.add(a, y, out=y)
    T.matmul(a, b, out=b)
    return a, b, y


@program
def overlapping_shift_in_place():
    x = T.arange(40.0)
    y = x * 1
    y[1:] = y[:-1] + 0
    y[:-1].copy_(y[1:].clone())
    return y, x


@program
def resized_and_set():
    x = numbers(4, 4)
    y = x * 3
    y.resize_(2, 2)
    z = T.empty(0).set_(y.untyped_storage(), 1, (3,), (1,))
    w = y + 1
    y.set_(x)
    return y, z, w, x


@program
def data_exchanged():
    x = numbers(8, grad=True)
    y = x * 2
    x.data = T.ones(8)
    z = x * 2
    T.utils.swap_tensors(y, z)
    return y, z


@program
def optimizer_steps_between_reads():
    w = numbers(16, 16, grad=True)
    outs = []
    for make in (T.optim.SGD, T.optim.Adam, T.optim.Adadelta, T.optim.RMSprop, T.optim.Adagrad):
        optimizer = make([w], lr=0.1)
        for foreach in range(2):
            late = w * 2
            loss = (w * w).sin().sum()
            optimizer.zero_grad(set_to_none=bool(foreach))
            loss.backward()
            before = w.grad * 1
            optimizer.step()
            outs += [late.detach(), before, w.detach() + 0]
    return outs


@program
def hooks_that_change_gradients():
    x = numbers(8, grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 3 + 1)
    seen = []
    x.register_hook(lambda g: seen.append(g * 1))
    x.register_post_accumulate_grad_hook(lambda p: [p.grad.mul_(2)].clear())
    (y.sin() + y).sum().backward()
    return x.grad, *seen


@program
def module_hooks():
    layer = nn.Linear(4, 4)
    seen = []
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_hook(lambda m, args, out: out.tanh() + args[0])
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(go[0] * 1))
    x = numbers(3, 4, grad=True)
    layer(x + 0).sum().backward()
    return x.grad, layer.weight.grad, *seen


class Double(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 2 + y * 0 + x.sin() * 0


class Scale(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, g):
        return g * 3


@program
def functions_of_the_users():
    x = numbers(8, grad=True)
    y = Double.apply(x + 1)
    z = Scale.apply(y * 1)
    (z * z).sum().backward()
    return y, z, x.grad


@program
def second_derivatives():
    x = numbers(8, grad=True)
    y = (x.tanh() * x.exp()).sum()
    (g,) = T.autograd.grad(y, x, create_graph=True)
    (h,) = T.autograd.grad((g * g.sin()).sum(), x, create_graph=True)
    h.sum().backward()
    return g, h, x.grad


@program
def checkpoints():
    layer, x = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.5)), numbers(4, 8, grad=True)
    for reentrant in (False, True):
        y = T.utils.checkpoint.checkpoint(layer, x * 1, use_reentrant=reentrant)
        (y * y).sum().backward()
    return y, x.grad, layer[0].weight.grad


@program
def mapped():
    x, w = numbers(5, 8), numbers(8)
    f = T.vmap(lambda row: (row * w + 1).tanh().sum())
    per = T.vmap(T.func.grad(lambda row: (row * w).sin().sum()))
    return (
        f(x * 2),
        per(x + 1),
        T.func.jacrev(lambda v: v.exp() * v)(w * 1),
        T.func.hessian(lambda v: (v**3).sum())(w * 1),
    )


@program
def forward_mode():
    x, t = numbers(8), numbers(8)
    with T.autograd.forward_ad.dual_level():
        dual = T.autograd.forward_ad.make_dual(x * 2, t + 1)
        y = (dual.sin() * dual + 1).tanh()
        out = T.autograd.forward_ad.unpack_dual(y)
        return out.primal + 0, out.tangent + 0, *T.func.jvp(lambda v: v.exp() * 3, (x + 1,), (t * 2,))


@program
def casts_of_autocast():
    a, b = numbers(8, 8, grad=True), numbers(8, 8)
    with T.autocast("cpu", dtype=T.bfloat16):
        y = (a @ b + 1).relu() * 2
        z = F.softmax(y, -1)
    z.float().sum().backward()
    return y, z, a.grad


@program
def random_numbers_in_order():
    x = T.rand(64) * 2
    d = F.dropout(x + 1, 0.3)
    n = T.randn(64) + T.bernoulli(x / 2)
    state = T.get_rng_state()
    m = x.normal_() * 2
    T.set_rng_state(state)
    g = T.Generator().manual_seed(3)
    return d, n, m, T.randn(64) * 2, T.rand(8, generator=g) + T.rand(8, generator=g)


@program
def generators_of_python():
    x = numbers(8)

    def pieces():
        y = x * 2
        for i in range(3):
            y = y.sin() + i
            yield y
            y.mul_(2)

    return [*pieces()]


@program
def other_threads():
    x = T.arange(64.0).requires_grad_()  # whole numbers: the order of sums over threads does not matter
    y = x * 2 + 1
    outs = [None] * 4

    def work(i):
        z = y.neg() * i
        outs[i] = z + y

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sum(o.sum() for o in outs).backward()
    return y, x.grad, *outs


@program
def exceptions_in_the_middle():
    x = numbers(8)
    y = x * 2
    for bad in (
        lambda y: y + T.ones(3),
        lambda y: y.view(3, 3),
        lambda y: T.cat([y, y[None]]),
        lambda y: y.add_(T.ones(2, 8)),
    ):
        try:
            bad(y)
        except RuntimeError:
            y = y + 1
    x.zero_()
    return y


@program
def copies_and_pickles():
    x = numbers(8)
    y = x * 2
    deep, shallow = copy.deepcopy(y), copy.copy(y)
    again = pickle.loads(pickle.dumps(y + 1))
    buffer = io.BytesIO()
    T.save({"y": y - 1}, buffer)
    buffer.seek(0)
    y.zero_()
    return deep, shallow, again, T.load(buffer)["y"], y


@program
def printed():
    x = numbers(8)
    y = x * 2
    text = repr(y) + str(y.sum()) + f"{y[0]:.3f}"
    y.add_(1)
    return y, T.tensor([float(len(text))]), T.tensor(list(map(float, text.encode())))


@program
def loaded_in_batches():
    data = T.utils.data.TensorDataset(numbers(20, 3) * 2, T.arange(20) + 1)
    loader = T.utils.data.DataLoader(data, batch_size=6, shuffle=True)
    return [part for batch in loader for part in batch]


@program
def gradients_kept():
    x = numbers(8, grad=True)
    y = x * 2
    y.retain_grad()
    z = y.sin()
    z.retain_grad()
    (z * y).sum().backward(retain_graph=True)
    first = x.grad.clone()
    (z * z).sum().backward()
    return first, x.grad, y.grad, z.grad


@program
def anomalies_looked_for():
    x = numbers(8, grad=True)
    with T.autograd.detect_anomaly(check_nan=True):
        y = (x.exp() + 1).log()
        y.sum().backward()
    return y, x.grad


@program
def versions_are_checked():
    x = numbers(8, grad=True)
    y = x.exp()
    z = y * 2
    y.add_(1)
    try:
        z.sum().backward()
        caught = 0.0
        y.sum().backward()
    except RuntimeError:
        caught = 1.0
    return z, y, T.tensor(caught)


@program
def saved_tensor_hooks():
    x = numbers(8, grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t * 1).numpy().copy(), T.from_numpy):
        y = x.sin() * x.exp()
    y.sum().backward()
    return y, x.grad


@program
def aliases_written_through():
    x = numbers(8)
    y = x.detach() * 2
    a, b = y.detach(), y.alias() if hasattr(y, "alias") else y.view_as(y)
    a[0] = 9
    b.mul_(2)
    c = y.expand(3, 8) + 1
    y.zero_()
    return a, b, c, y


@program
def a_value_chooses():
    x = numbers(16)
    outs = []
    for i in range(4):
        y = x * i + 1
        x = y.sin() if y.sum() > 0 else y.cos()
        if (x > 0).any():
            outs.append(x[x > 0] * 2)
        outs.append(T.nonzero(x > 0.5))
    return x, *outs


@program
def indices_and_masks():
    x = numbers(6, 6)
    i = (T.arange(6) * 5) % 6
    y = x * 2
    y[i] = y[:, i] + 1
    y[y > 1] = 0
    y.index_add_(0, i, x + 1).scatter_(1, i[:, None] * 1, 3.0)
    return y, y[i, i] * 2, y.gather(1, i[:, None])


@program
def complex_and_integers():
    z = T.randn(8, dtype=T.complex64)
    i = T.arange(8) * 3 // 2
    return (z * 2).conj() + 1, (z * z).real * 2, (i << 1) & 5, (i % 3 == 0).float() * 2, z.abs() + i


@program
def buffers_exported():
    x = numbers(8) * 2
    view = memoryview(x.numpy())
    y = x + 1
    view[0] = 5.0
    return x * 2, y, T.from_dlpack(x + 3) * 1


@program
def a_function_of_many_results():
    x = numbers(4, 6, grad=True)
    a, b = (x * 2).split(3, 1)
    top, at = (a + b).topk(2)
    low, high = T.aminmax(x * 3)
    (top.sum() + low - high).backward()
    return top, at, low, high, x.grad


@program
def gradients_summed_in_place():
    w = numbers(8, grad=True)
    for _ in range(3):
        (w * w).sum().backward()
    before = w.grad
    kept = before * 2
    (w * 3).sum().backward()
    return kept, before, w.grad


@program
def parameters_and_gradients_made_of_results():
    x = numbers(4)
    p = nn.Parameter(x * 2)
    q = nn.Parameter(T.zeros(4))
    with T.no_grad():
        q.copy_(x + 1)
    layer = nn.Linear(4, 4)
    layer.weight = nn.Parameter(layer.weight.detach() * 2)
    layer.register_buffer("kept", x.sin())
    layer.load_state_dict({k: v * 2 for k, v in layer.state_dict().items()})
    optimizer = T.optim.SGD([p, q], lr=0.5)
    (p * q).sum().backward()
    norm = nn.utils.clip_grad_norm_([p, q], 1.0)
    optimizer.step()
    return p, q, p.grad, q.grad, layer.weight, layer.kept, norm, layer(x)


@program
def tensors_made_of_results():
    x = numbers(4) * 2
    made = [T.tensor(x.tolist()), x.clone(), T.as_tensor(x), T.stack([x, x]), T.Tensor(x.tolist()), x.new_tensor([1.0])]
    made += [T.as_tensor(np.add(x, 1.0)), T.from_numpy(np.asarray(x)) + 0, T.as_strided(x, (2, 2), (1, 1))]
    made += [
        T.cat([*x.split(2)][::-1]),
        T.full_like(x, 3),
        x[None].expand(2, 4).contiguous(),
        T.tensor([float(v) for v in x]),
    ]
    made += [T.func.functional_call(nn.Linear(4, 2), {"weight": x.expand(2, 4) + 0, "bias": x[:2] * 1}, (x,))]
    made += [nn.Embedding.from_pretrained(x[:, None] + 0)(T.tensor([1, 2])), T.block_diag(x, x), T.atleast_2d(x)]
    return made


@program
def products_and_layers():
    x = numbers(2, 3, 8, 8, grad=True)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(5)
    )
    y = net(x * 2)
    loss = F.cross_entropy(y, T.tensor([1, 2])) + F.mse_loss(y, y.detach() + 1)
    loss.backward()
    rnn = nn.LSTM(4, 4)
    out, (h, c) = rnn(numbers(3, 2, 4) + 1)
    attended = nn.MultiheadAttention(8, 2)(*[numbers(5, 2, 8) * 1] * 3)[0]
    return y, loss, x.grad, net[1].running_mean, net[0].weight.grad, out, h, c, attended


@program
def data_and_gradients_that_are_results():
    x, q = numbers(4), nn.Parameter(T.zeros(4))
    q.data = x + 1
    q.grad = x * 3
    return q * 2, q.grad + 1


@program
def read_twice_again_and_again():
    """Chains whose every op reads the one before it twice: as trees they would have 2**36 ops."""
    x, y = T.full((8192,), 1.0), T.linspace(0.9, 1.1, 8192)
    a, b, c, d = x, y, x, x
    for _ in range(36):
        a, b = a * a, b * b
    for _ in range(17):
        c = c + c * 0.5
    for _ in range(17):
        d = d + d * 0.5
    return a, b, c - d, c
