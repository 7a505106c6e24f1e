"""Plans: the launches of a call repeated on other memory, or an error that says why they cannot be."""

import gc
import sys
import threading

import pytest

import taeda
from taeda import _core
from taeda._core import NoPlan, Plan, make_plan
from taeda._core.plan import once_per_form
from taeda.nn import functional as F


def both(function, *args):
    """What a plan made for ``args`` gives for other tensors of the same form, and what the function gives."""
    plan = make_plan(function, *args)
    fresh = [taeda.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x.flip(0)) for x in args]
    want = function(*fresh)
    return plan.run(fresh), want


def test_a_plan_repeats_a_function():
    def function(x, w, b):
        y = F.gelu(F.linear(x, w, b))
        return y.sum(), [F.softmax(y, -1), y.t()]

    (total, (rows, turned)), (want, (want_rows, want_turned)) = both(
        function, taeda.randn(50, 16), taeda.randn(8, 16), taeda.randn(8)
    )
    assert total == want and taeda.equal(rows, want_rows) and taeda.equal(turned, want_turned)
    assert turned.stride() == want_turned.stride()


@pytest.mark.parametrize("stride", [1, 2])
def test_a_plan_of_a_convolution_and_its_tables(stride):
    args = taeda.randn(4, 16, 20, 20), taeda.randn(24, 16, 3, 3), taeda.randn(24)
    got, want = both(lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=stride), *args)
    assert taeda.equal(got, want)


def test_launches_are_described_by_places():
    plan = make_plan(taeda.add, taeda.ones(4, 5), taeda.ones(5))
    ((kernel, total, _, operands),) = plan.launches
    assert kernel and total == 4
    assert [place for place, _, _ in operands] == ["made", "given", "given"] and plan.scratch_bytes == 0


def test_memory_of_the_run_is_shared_by_what_is_not_in_use_together():
    def chain(x):
        for _ in range(50):
            x = x.exp()
        return x

    plan = make_plan(chain, taeda.ones(1000))
    assert len(plan.launches) == 50
    assert plan.scratch_bytes <= 2 * 4096


def test_arguments_are_written_in_place():
    def function(x, y):
        x.add_(y)
        return x

    x, y = taeda.zeros(3), taeda.ones(3)
    plan = make_plan(function, x, y)
    assert x.tolist() == [0, 0, 0] and x._version == 0
    assert plan.run([x, y]) is x
    assert x.tolist() == [1, 1, 1] and x._version == 1


def test_arguments_that_share_memory_are_another_form():
    x = taeda.arange(6.0)
    plan = make_plan(lambda a, b: a.copy_(b), x[:3], x[3:])
    assert plan.run([x[:3], x[3:]]).tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="other forms"):
        plan.run([taeda.ones(3), taeda.ones(3)])


@pytest.mark.parametrize("args", [(taeda.ones(4),), (taeda.ones(3, dtype=taeda.float64),), (taeda.ones(6)[::2],), ()])
def test_other_forms_are_refused(args):
    plan = make_plan(taeda.exp, taeda.ones(3))
    with pytest.raises(ValueError, match="other forms"):
        plan.run(args)


def test_numbers_of_the_body_are_there_at_every_run():
    def function(x):
        steps = taeda.tensor([1.0, 2.0, 3.0])
        steps += x
        return steps

    plan = make_plan(function, taeda.ones(3))
    for _ in range(2):
        assert plan.run([taeda.ones(3)]).tolist() == [2, 3, 4]


def test_an_index_out_of_range_is_met_before_anything_is_written():
    def function(x, index):
        x.index_put_((index,), taeda.zeros(2, 3))
        return x

    x = taeda.ones(4, 3)
    plan = make_plan(function, x, taeda.tensor([0, 1]))
    with pytest.raises(IndexError):
        plan.run([x, taeda.tensor([0, 9])])
    assert x.eq(1).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.item(),
        lambda x: x.nonzero(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x + x.tolist()[0],
        lambda x: taeda.linalg.inv(x.expand(1, 1)),
        lambda x: taeda.rand(3, generator=taeda.Generator()) + x,
        lambda x: taeda.fft.fft(x),
        lambda x: x.numpy(),
        lambda x: object(),
    ],
)
def test_what_launches_do_not_tell_is_refused(function):
    x = taeda.ones(1)
    with pytest.raises((NoPlan, NotImplementedError, RuntimeError, TypeError)):
        make_plan(function, x)
    assert x.tolist() == [1] and taeda.ones(2).add(1).tolist() == [2, 2]  # the thread computes again


def test_random_numbers_are_drawn_at_every_run():
    def function(x):
        return (
            F.dropout(x, 0.3),
            taeda.randn(5),
            taeda.randperm(7),
            x.new_empty(3).uniform_(),
            x.new_empty(20).normal_(),
        )

    x = taeda.randn(40, 3)
    plan = make_plan(function, x)
    taeda.manual_seed(3)
    want = [function(x) for _ in range(3)]
    taeda.manual_seed(3)
    for results in want:
        assert all(taeda.equal(a, b) for a, b in zip(plan.run([x]), results, strict=True))


def test_recordings_do_not_nest():
    def function(x):
        make_plan(taeda.exp, x)

    with pytest.raises(RuntimeError, match="under way"):
        make_plan(function, taeda.ones(3))


# ---- plans that ops keep ------------------------------------------------------------------------------------------------


@pytest.fixture
def kept():
    """An op that keeps plans, and the plans of it that were made."""
    op = next(o for o in gc.get_objects() if type(o) is _core.Op and o.name == "_avg_pool")
    op.keep_plans(True)
    yield lambda: [plan for plan in op.kept_plans.values() if isinstance(plan, Plan)]
    op.keep_plans(True)


def test_an_op_keeps_a_plan_from_the_second_call_on(kept):
    x = taeda.randn(2, 3, 8, 8)
    results = [F.avg_pool2d(x, 2) for _ in range(4)]
    assert len(kept()) == 1
    assert all(taeda.equal(results[0], result) for result in results)
    F.avg_pool2d(x.double(), 2), F.avg_pool2d(x, 3)
    assert len(kept()) == 1
    assert taeda.equal(F.avg_pool2d(-x, 2), -results[0])


def test_the_call_that_makes_a_plan_is_run_by_it(kept, monkeypatch):
    """The body runs in the first call, once more to be planned in the second, and not in the third."""
    from taeda.ops import pooling

    launch, ran = pooling._launch, []
    monkeypatch.setattr(pooling, "_launch", lambda *args: ran.append(args) or launch(*args))
    x = taeda.randn(2, 3, 8, 8)
    results = []
    for bodies in (1, 2, 2, 2):
        results.append(F.avg_pool2d(x, 2))
        assert len(ran) == bodies
    assert all(taeda.equal(results[0], result) for result in results)


def test_what_a_plan_cannot_be_made_of_is_called_and_a_fault_is_raised():
    def values(x):
        return x * x.sum().item()

    def fault(x):
        if x.is_meta:
            raise RuntimeError("on device meta alone")
        return x + 1

    x = taeda.ones(2)
    planned = _core.Planned(values)
    assert [planned(x).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    planned = _core.Planned(fault)
    planned(x)
    with pytest.raises(RuntimeError, match="on device meta alone"):
        planned(x)


def test_a_plan_that_is_garbage_frees_its_tables():
    plan = make_plan(lambda x: x + 1, taeda.ones(2))
    gc.collect()
    ring = [plan]  # younger than the plan, whose references are dropped first
    ring.append(ring)
    faults, before = [], sys.unraisablehook
    sys.unraisablehook = faults.append
    try:
        del plan, ring
        gc.collect()
    finally:
        sys.unraisablehook = before
    assert not faults


def test_gradients_of_an_op_that_keeps_plans(kept):
    x = taeda.randn(2, 3, 8, 8, requires_grad=True)
    found = []
    for _ in range(4):
        (g,) = taeda.autograd.grad(F.avg_pool2d(x, 2).square().sum(), x, create_graph=True)
        (second,) = taeda.autograd.grad(g.sum(), x)
        found.append((g.detach(), second))
    assert kept()
    assert all(taeda.equal(found[0][0], g) and taeda.equal(found[0][1], s) for g, s in found)


def test_plans_depend_on_the_number_of_threads(kept):
    x, before = taeda.randn(2, 3, 8, 8), taeda.get_num_threads()
    try:
        for threads in (1, 2):
            taeda.set_num_threads(threads)
            for _ in range(3):
                F.avg_pool2d(x, 2)
    finally:
        taeda.set_num_threads(before)
    assert len(kept()) == 2


def test_running_statistics_are_written_by_a_plan():
    layer, other = taeda.nn.BatchNorm2d(3), taeda.nn.BatchNorm2d(3)
    for n in range(5):
        x = taeda.randn(2, 3, 4, 4)
        version = layer.running_mean._version
        layer(x)
        assert layer.running_mean._version == version + 1, n
        _core.set_inference(False)
        other.running_mean.mul_(0.9).add_(x.mean((0, 2, 3)), alpha=0.1)
    assert taeda.allclose(layer.running_mean, other.running_mean, atol=1e-6)


def test_layers_through_plans_equal_their_first_call():
    for layer, x in [
        (taeda.nn.LSTM(6, 5, 2, bidirectional=True), taeda.randn(7, 3, 6)),
        (taeda.nn.GRU(6, 5), taeda.randn(7, 3, 6)),
        (taeda.nn.Conv2d(4, 8, 3, stride=2), taeda.randn(2, 4, 9, 9)),
        (taeda.nn.ConvTranspose2d(4, 8, 3, stride=2), taeda.randn(2, 4, 9, 9)),
        (taeda.nn.Upsample(scale_factor=2, mode="bilinear"), taeda.randn(2, 4, 9, 9)),
        (taeda.nn.MaxPool2d(2, return_indices=True), taeda.randn(2, 4, 9, 9)),
        (taeda.nn.GroupNorm(2, 4), taeda.randn(2, 4, 9, 9)),
    ]:
        x.requires_grad_()
        found = []
        for _ in range(4):
            out = layer(x)
            out = out[0] if isinstance(out, tuple) else out
            out.square().sum().backward()
            found.append((out.detach(), x.grad, *[p.grad for p in layer.parameters()]))
            x.grad = None
            layer.zero_grad()
        for again in found[1:]:
            assert all(taeda.equal(a, b) for a, b in zip(found[0], again, strict=True)), layer


def test_tensors_of_the_collector_can_be_looked_at():
    """What plans know of a tensor's form has no memory, and is not among the tensors that a program finds."""
    for layer, x in [(taeda.nn.Linear(6, 5), taeda.randn(7, 6)), (taeda.nn.LayerNorm(6), taeda.randn(7, 6))]:
        for _ in range(3):
            layer(x).sum().backward()
        x.mean(0), x.max(1)
    found = [x for x in gc.get_objects() if type(x) is taeda.Tensor]
    assert len(found) > 4
    for x in found:
        if x.layout is taeda.strided and not x.is_nested:
            assert x.untyped_storage() is not None and x.data_ptr() >= 0, x.shape


def test_what_a_function_gives_is_kept_by_the_exact_form():
    calls = []

    @once_per_form
    def describe(*forms):
        """What it is."""
        calls.append(forms)
        if forms == ("bad",):
            raise ValueError("bad")
        return repr(forms)

    forms = [(1,), (1.0,), (True,), (None,), ("1",), ((1, 2),), ((1, 2.0),), ((1, (2,)),), (1, 2), (taeda.float32,)]
    for _ in range(2):
        for form in forms:
            assert describe(*form) == repr(form)
    assert calls == forms and describe.__doc__ == "What it is."
    for other in ({1}, 2**70):  # no form: asked every time
        assert describe(other) == describe(other) == repr((other,))
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            describe("bad")
    assert len(calls) == len(forms) + 6
    for n in range(1000):  # what is kept stays small
        describe(n + 2)
    describe(1)
    assert len(calls) - len(forms) - 6 - 1000 in (0, 1)  # one that was found last may still be at hand


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "area"])
def test_interpolation_is_repeated_from_its_plan(mode):
    plan = make_plan(lambda x: F.interpolate(x, size=(5, 9), mode=mode), taeda.randn(2, 3, 8, 8))
    x = taeda.randn(2, 3, 8, 8)
    assert taeda.equal(plan.run([x]), F.interpolate(x, size=(5, 9), mode=mode))


def test_results_in_inference_mode_are_of_that_mode():
    x = taeda.randn(1, 2, 8, 8)
    for _ in range(3):
        assert not F.max_pool2d(x, 2).is_inference()
        with taeda.inference_mode():
            assert F.max_pool2d(x, 2).is_inference() and F.conv2d(x, x).is_inference()


def test_threads_share_plans():
    x, w = taeda.randn(8, 16, 40, 40), taeda.randn(16, 16, 3, 3)
    inputs = [x + i for i in range(4)]
    want = [F.conv2d(y, w) for y in inputs]
    found = [[] for _ in inputs]

    def work(i):
        for _ in range(20):
            found[i].append(F.conv2d(inputs[i], w))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(y.equal(z) for ys, z in zip(found, want, strict=True) for y in ys)


def test_a_tensor_that_is_given_back_twice_is_one():
    plan = make_plan(lambda x: (lambda y: [y, y])(x.exp()), taeda.ones(3))
    a, b = plan.run([taeda.zeros(3)])
    assert a is b and a.tolist() == [1, 1, 1]
