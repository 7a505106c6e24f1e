"""Writes in a forward: decomposed programs and ``.pt2`` files give what the model gives, and write what it writes."""

import io
import warnings

import numpy as np
import pytest

import taeda
from taeda import export, nn
from taeda.func import control_flow
from taeda.fx.experimental.proxy_tensor import make_fx
from tests.agree import close


class Forward(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def programs(model, args):
    """The model exported, decomposed, and read from a ``.pt2`` file, as modules."""
    made = export.export(model, tuple(x.clone() for x in args))
    yield made.module()
    yield made.run_decompositions().module()
    file = io.BytesIO()
    export.save(made, file, format="pt2")
    file.seek(0)
    yield export.load(file).module()


def agree(model, *args):
    """Each form gives the model's values and gradients, and leaves its arguments as the model does."""
    for program in (model, *programs(model, args)):
        given = [x.clone().requires_grad_() for x in args]
        inner = [x * 1 for x in given]
        result = program(*inner)
        result = result if isinstance(result, tuple) else (result,)
        parts = [x for x in result if x.requires_grad]
        grads = taeda.autograd.grad(sum((x * x.detach().cos()).sum() for x in parts), given) if parts else []
        found = [*result, *inner, *grads]
        if program is model:
            want = found
            continue
        close(found, want)


ACTIVATIONS = "LeakyReLU ReLU ReLU6 ELU Hardtanh SELU CELU SiLU Hardswish Hardsigmoid Mish RReLU Dropout".split()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_in_place(name):
    layer = getattr(nn, name)(inplace=True).eval()
    x = taeda.linspace(-4, 4, 12).reshape(3, 4)
    with taeda.no_grad():
        agree(layer, x)
        agree(Forward(lambda x: (layer(x), x * 2)), x)
    agree(Forward(lambda x: layer(x * 2) * 3), x)


@pytest.mark.parametrize(
    "kind", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
)
def test_convolution_without_bias(kind):
    agree(getattr(nn, kind)(2, 4, 3, bias=False), taeda.randn(1, 2, *[5] * int(kind[-2])))


FORMS = {
    "div_": lambda x: x.div_(3.0, rounding_mode="floor"),
    "clamp_": lambda x: x.clamp_(-1, 1),
    "pow_": lambda x: x.pow_(2),
    "nan_to_num_": lambda x: x.nan_to_num_(1.0),
    "fill_diagonal_": lambda x: x.fill_diagonal_(3.0),
    "polygamma_": lambda x: x.abs_().add_(1).polygamma_(1),
    "threshold_": lambda x: nn.functional.threshold_(x, 0.1, 2.0),
}


@pytest.mark.parametrize("name", FORMS)
def test_in_place_form(name):
    agree(Forward(lambda x: FORMS[name](x.clone()) * 2), taeda.linspace(-4, 4, 12).reshape(3, 4))


SHAPES = {
    "unsqueeze_": lambda y: y.unsqueeze_(0),
    "squeeze_": lambda y: y[None].squeeze_(0),
    "transpose_": lambda y: y.transpose_(0, 1),
    "swapaxes_": lambda y: y.swapaxes_(0, 1),
    "t_": lambda y: y.t_(),
    "as_strided_": lambda y: y.as_strided_((4, 3), (1, 4)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_in_place_change_of_form(name):
    change, x = SHAPES[name], taeda.linspace(-4, 4, 12).reshape(3, 4)
    agree(Forward(lambda x: change(x * 1) * 2), x)

    def written_before_and_after(x):
        y = x * 1
        before = y[1]  # of the memory, in the form that it had
        z = change(y)
        z.mul_(2)
        z[0] = 7
        before.add_(1)
        change(z) if name != "squeeze_" else z
        return z, before, y

    agree(Forward(written_before_and_after), x)


class Statistics(nn.Module):
    """A batch norm, another buffer and a counter, and a forward of them."""

    def __init__(self, forward):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)
        self.register_buffer("total", taeda.zeros(3))
        self.register_buffer("calls", taeda.zeros((), dtype=taeda.int64))
        self.run = forward

    def forward(self, x):
        return self.run(self, x)


def normalized_aside(m, x):
    m.bn(x)
    return m.bn.running_mean * 1


def without_a_reader(m, x):
    m.bn(x)
    return x * 2


def twice(m, x):
    return m.bn(x) + m.bn(x + 1)


def of_instances(m, x):
    nn.functional.instance_norm(x[..., None].expand(-1, -1, 2) * x[0, 0], m.bn.running_mean, m.bn.running_var)
    return m.bn.running_var * 1


def by_the_native_op(m, x):
    taeda.native_batch_norm(x, None, None, m.bn.running_mean, m.bn.running_var, True, 0.1, 1e-5)
    return x * 2


def of_buffers(m, x):
    m.total.copy_(x.sum(0))
    m.total[1:].add_(1)
    m.total.index_put_((taeda.tensor([0]),), x.sum()[None])
    m.calls.add_(1)
    return x * 2


def of_the_argument(m, x):
    x.view(-1)[::2].zero_()
    nn.functional.leaky_relu(x, 0.1, inplace=True)
    return m.calls * 1


FORWARDS = [normalized_aside, without_a_reader, twice, of_instances, by_the_native_op, of_buffers, of_the_argument]


def _after(make, x):
    """What a call gives, its argument and the state afterwards."""
    program, x = make(), x.clone()
    with taeda.no_grad():
        return program(x), x, {name: value.clone() for name, value in program.state_dict().items()}


@pytest.mark.parametrize("forward", FORWARDS)
def test_what_a_program_writes_is_kept(forward):
    x = taeda.linspace(-4, 4, 12).reshape(4, 3)
    result, argument, state = _after(lambda: Statistics(forward), x)
    for i in range(3):
        got = _after(lambda i=i: list(programs(Statistics(forward), (x,)))[i], x)
        taeda.testing.assert_close(got[0], result)
        taeda.testing.assert_close(got[1], argument)
        for name, value in state.items():
            taeda.testing.assert_close(got[2][name], value, msg=name)


def test_a_custom_op_that_writes():
    @taeda.library.custom_op("tests::write", mutates_args=("y",))
    def write(y: taeda.Tensor, z: taeda.Tensor) -> None:
        y.add_(z)

    def forward(m, x):
        write(m.total, x.sum())
        return x * 2

    x = taeda.ones(4, 3)
    made = export.export(Statistics(forward), (x,)).run_decompositions()
    made.graph_module.graph.eliminate_dead_code()
    program = made.module()
    program(x)
    assert program.total.tolist() == [12.0] * 3


def test_results_in_several_tensors():
    def forward(x):
        values, indices = taeda.empty(4, 2), taeda.empty(4, 2, dtype=taeda.int64)
        found = taeda.topk(x, 2, out=(values, indices))
        values.mul_(2)
        return values + 1, indices * 2, found.values

    with taeda.no_grad():
        agree(Forward(forward), taeda.linspace(-1, 1, 20).reshape(4, 5).cos())


def test_dead_code_is_not_what_writes():
    import operator

    from taeda import fx

    graph = fx.Graph()
    x, stats = graph.placeholder("x"), graph.placeholder("stats")
    kept = [
        graph.call_function(nn.functional.relu, (x, True)),
        graph.call_function(nn.functional.relu, (x,), {"inplace": True}),
        graph.call_function(nn.functional.batch_norm, (x, stats, stats), {"training": True}),
        graph.call_function(taeda.add, (x, 1), {"out": x}),
        graph.call_function(nn.functional.embedding, (x, stats), {"max_norm": 1.0}),
        graph.call_function(operator.setitem, (x, 0, 1)),
    ]
    dead = [
        graph.call_function(nn.functional.relu, (x, False)),
        graph.call_function(nn.functional.batch_norm, (x, stats, stats)),
        graph.call_function(nn.functional.embedding, (x, stats)),
    ]
    graph.output(x)
    graph.eliminate_dead_code()
    assert all(n in list(graph.nodes) for n in kept) and not any(n in list(graph.nodes) for n in dead)


def _running_total(x):
    total = taeda.tensor(0.0)
    total += x.sum()
    return total * x


def _written_at(x):
    y = taeda.as_tensor([3.0, 4.0])
    y[0] = x.sum()
    y[1] += 1
    return x + y


def _written_first(x):
    y = taeda.tensor([3.0, 4.0])
    y.numpy()[0] = 7
    z = y * 2
    y.add_(1)
    return x + y + z


MADE = {
    "total": _running_total,
    "index": _written_at,
    "first": _written_first,
    "Tensor": lambda x: taeda.Tensor([1.0, 2.0]).add_(x),
    "asarray": lambda x: taeda.asarray([1.0, 2.0]).add_(x),
    "array": lambda x: taeda.from_numpy(np.ones(2, np.float32)).add_(x),
    "array and list": lambda x: taeda.as_tensor(np.ones(2, np.float32)).add_(x),
    "buffer": lambda x: taeda.frombuffer(bytearray(8), dtype=taeda.float32).add_(x),
    "detach": lambda x: taeda.tensor([1.0, 2.0]).detach().add_(x),
    "data": lambda x: taeda.tensor([1.0, 2.0]).data.add_(x),
    "parameter": lambda x: nn.Parameter(taeda.tensor([1.0, 2.0])).detach().add_(x),
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_of_pythons_values_begin_anew_in_every_run(name):
    function, x = MADE[name], taeda.tensor([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", taeda.jit.TracerWarning)
        traced = taeda.jit.trace(function, x)
    for program in (*programs(Forward(function), (x,)), make_fx(function)(x), traced):
        for given in (x, x, x * 2):
            assert program(given).equal(function(given))


def test_tensors_without_memory_share_none():
    sparse = taeda.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse()

    def function(x):
        form, empty = taeda.tensor([1.0, 2.0], device="meta"), taeda.tensor([])
        return taeda.cat([x + form.numel(), empty, taeda.empty(0), taeda.sparse.mm(sparse, x.view(2, 1)).view(-1)])

    x = taeda.tensor([1.0, 2.0])
    made = export.export(Forward(function), (x,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", taeda.jit.TracerWarning)
        traced = taeda.jit.trace(function, x)
    for program in (made.module(), made.run_decompositions().module(), make_fx(function)(x), traced):
        assert program(x * 2).equal(function(x * 2))


def test_a_result_of_pythons_values_is_the_callers():
    def function(x):
        return x, taeda.tensor([1.0, 2.0])

    x = taeda.tensor([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", taeda.jit.TracerWarning)
        traced = taeda.jit.trace(function, x)
    for program in (*programs(Forward(function), (x,)), make_fx(function)(x), traced):
        for _ in range(2):
            assert program(x)[1].add_(1).tolist() == [2.0, 3.0]


def test_tensors_of_pythons_values_share_memory_as_they_did():
    def function(x):
        y = taeda.tensor([1.0, 2.0])
        y.data.fill_(3)
        y.detach()[:1].add_(x[1])
        return x + y

    x = taeda.tensor([1.0, 2.0])
    for program in (*programs(Forward(function), (x,)), make_fx(function)(x)):
        assert program(x).equal(function(x))


def _loop(x):
    def body(i, total):
        t = taeda.tensor(0.0)
        t += total.sum()
        return i + 1, total + t

    return control_flow.while_loop(lambda i, t: i < 3, body, (taeda.tensor(0), x))[1]


def _read_by_a_loop(x):
    k = taeda.tensor(1.0)
    made = control_flow.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * k + x), (taeda.tensor(0), x))[1]
    k.add_(1)
    return made * k


def _scan(x):
    def step(carry, row):
        t = taeda.tensor(1.0)
        t += carry
        return t * row, carry + row

    return control_flow.scan(step, taeda.tensor(2.0), x)[1]


@pytest.mark.parametrize("function", [_loop, _read_by_a_loop, _scan])
def test_tensors_that_functions_of_control_flow_make_begin_anew(function):
    x = taeda.tensor([1.0, 2.0])
    for program in programs(Forward(function), (x,)):
        for given in (x, -x, x):
            assert program(given).equal(function(given))


def test_what_a_branch_reads_is_written_after_it():
    def function(x, p):
        t, u = taeda.tensor([1.0, 2.0]), x * 2
        y = taeda.cond(p.sum() > 0, lambda x: x + t * u, lambda x: x - t, (x,))
        t.add_(1)
        u.mul_(3)
        return y + t * u

    x = taeda.tensor([1.0, 2.0])
    for program in programs(Forward(function), (x, x)):
        for p in (x, -x, x):
            assert program(x, p).equal(function(x, p))


def _set(x):
    y, z = x * 1, x + 5
    before = y.view(2, 1)
    y.set_(z)
    z.add_(1)
    y[0] = 3
    return y * 2 + z + before.sum()


def _set_window(x):
    y, z = x * 1, x + 5
    y.set_(z, 1, (1,), (1,))
    y.add_(2)
    return y * 2 + z


def _sized_by_out(x):
    y = taeda.empty(0)
    taeda.add(x, 5, out=y)
    return y.mul_(2) + x


@pytest.mark.parametrize("function", [_set, _set_window, _sized_by_out])
def test_other_memory_and_sizes_in_place(function):
    x = taeda.tensor([1.0, 2.0])
    made = export.export(Forward(function), (x,))
    for program in (made.module(), made.run_decompositions().module(), make_fx(function)(x)):
        assert program(x * 3).equal(function(x * 3))


def _resized(x):
    b = taeda.tensor(0.0)
    b.resize_(3)
    b.fill_(2)
    return x.new_ones(b.shape), b.view(-1) * b.shape[0]


def _of_other_memory(x):
    b = taeda.tensor([0.0])
    b.set_(x + 1)
    return b.mul_(2) * b.shape[0], b.numel() * x


def _conditions(x):
    step = taeda.tensor(0)
    for _ in range(int(taeda.tensor(3))):
        step += 1
    if step > 2 and bool(taeda.tensor([1, 2]).sum() == 3):
        x = x * 2
    return x * int(step), x * sum(taeda.tensor([1, 2]).tolist()), x * [1.0, 2.0, 3.0][taeda.tensor(1)], f"{step}" == "3"


def _sizes(x):
    t = taeda.tensor([1, 2])
    return x.view(t[1]) * 1, x[taeda.tensor(1)], x[taeda.tensor([True, False])]


@pytest.mark.parametrize("function", [_resized, _of_other_memory, _conditions, _sizes])
def test_tensors_of_pythons_values_have_sizes_and_values_while_a_program_is_recorded(function):
    x = taeda.tensor([1.0, 2.0])
    for program in programs(Forward(function), (x,)):
        for given in (x, -x, x):
            close(program(given), function(given))


@pytest.mark.parametrize("change", [lambda c, x: c.set_(x * 2), lambda c, x: c.resize_(x.shape[0]).fill_(3)])
def test_changed_sizes_are_dynamic(change):
    def function(x):
        c = taeda.tensor([0.0])
        change(c, x)
        return c * c.shape[0]

    made = export.export(Forward(function), (taeda.ones(3),), dynamic_shapes=(({0: export.Dim("n")},),))
    for n in (3, 5, 2):
        assert made.module()(taeda.ones(n)).equal(function(taeda.ones(n)))


def test_values_that_numpy_may_not_write():
    def function(x):
        y = taeda.tensor([1.0, 2.0])
        z = y * x
        y.numpy()[0] = 7
        return z + y

    x = taeda.tensor([1.0, 2.0])
    for record in (lambda: export.export(Forward(function), (x,)), lambda: make_fx(function)(x)):
        with pytest.raises(ValueError, match="read-only"):
            record()


def test_what_a_program_cannot_say():
    def data(x):
        y = x * 1
        y.data = x * 2
        return y

    def swapped(x):
        y = x * 1
        taeda.utils.swap_tensors(y, x * 2)
        return y

    x = taeda.tensor([1.0, 2.0])
    for function in (data, swapped, lambda x: (x * 1).apply_(lambda v: v + 1)):
        for record in (
            lambda f=function: export.export(Forward(f), (x,)), lambda f=function: make_fx(f)(x),
            lambda f=function: taeda.jit.trace(f, x),
        ):  # fmt: skip
            with pytest.raises(
                (RuntimeError, NotImplementedError), match=r"no step of a program|no data|a Python list"
            ):
                record()
    assert taeda.compile(data, backend=lambda module, args: module)(x).equal(data(x))


@pytest.mark.parametrize(
    "change, name", [(lambda t, x: x.unsqueeze_(0), "x"), (lambda t, x: t.set_(t.clone() * 2), "total")]
)
def test_inputs_and_buffers_of_other_memory_are_not_decomposed(change, name):
    def forward(m, x):
        change(m.total, x)
        return m.total * 1

    made = export.export(Statistics(forward), (taeda.ones(4, 3),))
    with pytest.raises(RuntimeError, match=f"'{name}' gets other memory or another form"):
        made.run_decompositions()


def test_memory_formats_in_files():
    def function(x):
        y = (x * 2).t().contiguous().t()
        y[0].add_(1)
        return y * 1

    x = taeda.arange(8.0).view(2, 4)
    for program in programs(Forward(function), (x,)):
        assert program(x).equal(function(x))


def test_conjugated_views_keep_their_sign_on_meta():
    z = taeda.zeros(2, dtype=taeda.complex64, device="meta").conj()
    assert z.is_conj() and z.imag.is_neg() and not z.resolve_conj().is_conj() and not (z + 1).is_conj()


def test_a_target_keeps_its_layout_when_decomposed():
    def fill(x):
        return taeda.zeros(3, 4).copy_(x.expand(3, 4)), taeda.zeros(3, 4).add_(x).mul_(2), taeda.zeros(4, 4).copy_(x.T)

    x = taeda.arange(4.0).reshape(1, 4)
    for program in programs(Forward(fill), (x,)):
        for got, want in zip(program(x), fill(x), strict=True):
            assert got.equal(want) and got.stride() == want.stride()
