"""Hooks on tensors, leaves and nodes: order, replacing, removal, ``retain_grad``."""

import pytest

import taeda


def leaf(*values):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=True)


def test_tensor_hook_sees_and_replaces():
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0], [10.0, 10.0]]
    assert x.grad.tolist() == [30.0, 30.0]


def test_leaf_hook_runs_once_on_the_whole_gradient():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()) or g * 2)
    (x * 2 + x * 3 + x.exp() * 0).sum().backward()
    assert seen == [5.0]
    assert x.grad.item() == 10.0


def test_hooks_can_be_removed():
    x = leaf(1.0)
    calls = []
    handles = [x.register_hook(lambda g, i=i: calls.append(i)) for i in range(3)]
    handles[1].remove()
    handles[1].remove()
    (x * 2).sum().backward()
    assert calls == [0, 2]
    with x.register_hook(lambda g: calls.append("inside")):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert calls == [0, 2, 0, 2, "inside", 0, 2]


def test_handles_that_are_dropped_leave_their_hooks():
    x = leaf(1.0)
    calls = []
    for i in range(20):
        x.register_hook(lambda g, i=i: calls.append(i))
    (x * 2).sum().backward()
    assert calls == list(range(20))


def test_a_hook_may_register_or_remove_hooks():
    x = leaf(1.0)
    calls = []

    def first(g):
        calls.append("first")
        handle.remove()
        x.register_hook(lambda g: calls.append("late"))

    handle = x.register_hook(first)
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert calls == ["first", "late"]


def test_hooks_must_give_a_gradient_or_nothing():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        y.sum().backward()
    y = x * 2
    y.register_hook(lambda g: taeda.ones(3, dtype=taeda.float64))
    with pytest.raises(RuntimeError, match="changed the size"):
        y.sum().backward()
    y = x * 2
    y.register_hook(lambda g: g.float())
    with pytest.raises(RuntimeError, match="changed the type"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        taeda.ones(2).register_hook(print)


def test_post_accumulate_hook():
    x = leaf(1.0, 2.0)
    seen = []

    def step(p):
        seen.append(p.grad.tolist())
        with taeda.no_grad():
            p.sub_(p.grad)
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    assert seen == [[2.0, 4.0]]
    assert x.grad is None
    assert x.tolist() == [-1.0, -2.0]
    handle.remove()
    x.sum().backward()
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_node_hooks():
    x = leaf(1.0, 2.0)
    y = x * 3
    order = []
    y.grad_fn.register_prehook(lambda outputs: order.append(("pre", outputs[0].tolist())) or (outputs[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append(("post", inputs[0].tolist(), outputs[0].tolist())))
    y.register_hook(lambda g: order.append(("tensor", g.tolist())))
    y.sum().backward()
    assert order == [("tensor", [1.0, 1.0]), ("pre", [1.0, 1.0]), ("post", [6.0, 6.0], [2.0, 2.0])]
    assert x.grad.tolist() == [6.0, 6.0]


def test_node_hook_replaces_input_gradients():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 100, None))
    y.sum().backward()
    assert x.grad.item() == 200.0
    assert w.grad is None
    handle.remove()


def test_node_of_a_leaf():
    x = leaf(1.0, 2.0)
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    assert node.variable is x
    order = []
    node.register_prehook(lambda outputs: order.append("pre"))
    node.register_hook(lambda inputs, outputs: order.append((inputs, outputs[0].tolist(), x.grad.tolist())))
    (x * 2).sum().backward()
    assert order == ["pre", ((), [2.0, 2.0], [2.0, 2.0])]


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda g: g * 5)
    (y * 3).sum().backward()
    assert y.grad.tolist() == [15.0, 15.0]
    assert x.grad.tolist() == [30.0, 30.0]
    z = x * 2
    z.retain_grad()
    (z * 3).sum().backward(retain_graph=True)
    (z * 3).sum().backward()
    assert z.grad.tolist() == [6.0, 6.0]
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        taeda.ones(2).retain_grad()


def test_retained_gradient_has_its_own_memory():
    x, given = leaf(1.0, 2.0), taeda.ones(2, dtype=taeda.float64)
    y = x.clone()
    y.retain_grad()
    y.backward(given)
    y.grad.mul_(9)
    assert given.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [1.0, 1.0]


def test_retain_grad_follows_the_tensor_through_inplace_ops():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]
    y = x * 2
    y.retain_grad()
    row = y[0:1]
    row.retain_grad()
    row.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]


def test_hook_before_an_inplace_op_is_about_the_tensor_before_it():
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0], [3.0, 3.0]]


def test_hooks_run_only_where_the_pass_goes():
    x, w = leaf(1.0), leaf(2.0)
    a, b = x * 2, w * 3
    calls = []
    a.register_hook(lambda g: calls.append("a"))
    b.register_hook(lambda g: calls.append("b"))
    x.register_hook(lambda g: calls.append("x"))
    taeda.autograd.grad((a * b).sum(), w)
    assert calls == ["b"]


def test_hooks_apply_to_gradients_that_are_asked_for():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = (y * 3).sum()
    (g,) = taeda.autograd.grad(z, y, retain_graph=True)
    assert g.item() == 30.0
    (g,) = taeda.autograd.grad(z, x)
    assert g.item() == 60.0


def test_hooks_take_part_in_higher_derivatives():
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = taeda.autograd.grad(y.sum(), x, create_graph=True)
    assert g.item() == 8.0
    (second,) = taeda.autograd.grad(g.sum(), x)
    assert second.item() == 8.0


def test_error_in_a_hook_leaves_everything_usable():
    x = leaf(1.0)
    y = x * 2

    def fail(g):
        raise KeyError("on purpose")

    handle = y.register_hook(fail)
    with pytest.raises(KeyError, match="on purpose"):
        y.sum().backward()
    assert taeda.is_grad_enabled()
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.item() == 3.0


def test_multi_grad_hook_waits_for_all_and_comes_for_one():
    from taeda.autograd.graph import register_multi_grad_hook

    x = taeda.ones(3, requires_grad=True)
    y, z, unused = x * 2, x * 3, x * 4
    seen = []
    register_multi_grad_hook([y], lambda grads: seen.append(("one", len(grads))))
    register_multi_grad_hook([y, z, unused], lambda grads: seen.append(("all", [g is None for g in grads])))
    (y.sum() + z.sum()).backward()
    assert seen.count(("one", 1)) == 1
    assert seen.count(("all", [False, False, True])) == 1 and len(seen) == 2


def test_callbacks_at_the_end_of_a_pass():
    """They run once the gradients are there, may add others, and a pass inside one has its own."""
    engine = taeda.autograd.Variable._execution_engine
    x, seen = taeda.ones(2, requires_grad=True), []

    def last():
        seen.append("last")

    def first():
        seen.append(x.grad.tolist())
        y = taeda.ones(1, requires_grad=True)
        y.register_hook(lambda g: engine.queue_callback(lambda: seen.append("inner")))
        (y * 2).backward()
        engine.queue_callback(last)

    x.register_hook(lambda g: engine.queue_callback(first))
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0], "inner", "last"]
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        engine.queue_callback(last)

    def failing():
        raise ValueError("told")

    x.register_hook(lambda g: engine.queue_callback(failing))
    with pytest.raises(ValueError, match="told"):
        (x * 3).sum().backward()
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        engine.queue_callback(last)


@pytest.mark.parametrize(
    "result, error",
    [
        (lambda gi: gi * 2, "incorrect number of values"),
        (lambda gi: list(gi), "expected tuple, but hook returned 'list'"),
        (lambda gi: gi[0], "expected tuple, but hook returned 'Tensor'"),
        (lambda gi: (3, None), "expected Variable, but hook returned 'int'"),
        (lambda gi: (taeda.ones(5), None), "has changed the size of value"),
        (lambda gi: (gi[0].double(), None), "has changed the type of value"),
        (lambda gi: (gi[0], gi[0]), "can't replace a None gradient"),
    ],
)
def test_what_hooks_of_nodes_may_give(result, error):
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: result(gi))
    with pytest.raises((RuntimeError, TypeError), match=error):
        y.sum().backward()
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0], go[0]))
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.sum().backward()


def test_handles_know_their_table():
    x = taeda.ones(3, requires_grad=True)
    handle = x.register_hook(lambda g: g)
    assert handle.id in handle.hooks_dict_ref()
    handle.remove()
    assert handle.id not in handle.hooks_dict_ref()


def test_the_gradient_under_its_other_name():
    x = taeda.ones(3, requires_grad=True)
    x._grad = taeda.ones(3) * 4
    assert x.grad.tolist() == x._grad.tolist() == [4, 4, 4]
    x._grad = None
    assert x.grad is None


@pytest.mark.parametrize("name", ["unbind", "split", "max", "function"])
def test_a_hook_of_an_output_without_gradient_gets_none(name):
    class Twice(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            return first + second * 2

    x = taeda.ones(2, 3, requires_grad=True)
    calls = {
        "unbind": lambda: (x * 1).unbind(),
        "split": lambda: (x * 1).split(1),
        "max": lambda: taeda.aminmax(x * 1, dim=0),
        "function": lambda: Twice.apply(x),
    }
    first, second = calls[name]()
    seen = []
    first.register_hook(seen.append)
    second.sum().backward()
    assert seen == [None] and x.grad is not None
    first, second = calls[name]()
    first.register_hook(lambda g: taeda.ones(3))
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        second.sum().backward()


class Second(taeda.autograd.Function):
    """The sum of two tensors, as if the first were a constant."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, g):
        return None, g


def test_hooks_hear_of_a_gradient_that_does_not_come():
    x, w, seen = taeda.ones(2, requires_grad=True), taeda.ones(2, requires_grad=True), []
    a = x * 2
    a.register_hook(lambda g: seen.append(("tensor", g)))
    a.grad_fn.register_prehook(lambda g: seen.append(("pre", g)))
    a.grad_fn.register_hook(lambda made, g: seen.append(("post", made, g)))
    x.register_hook(lambda g: seen.append(("leaf", g)))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad)))
    taeda.autograd.graph.register_multi_grad_hook([x, w], lambda grads: seen.append([g is None for g in grads]))
    Second.apply(a, w).sum().backward()
    order = [("tensor", None), ("pre", (None,)), ("post", (None, None), (None,)), ("leaf", None), ("accumulated", None)]
    assert [s for s in seen if isinstance(s, tuple)] == order
    assert [s for s in seen if isinstance(s, list)] == [[True, False]]
    assert x.grad is None and w.grad.tolist() == [1, 1]
    seen.clear()
    taeda.autograd.grad(Second.apply(x * 2, w).sum(), w)  # the pass does not come to x
    assert not [s for s in seen if isinstance(s, tuple)]
    seen.clear()
    assert taeda.autograd.grad(Second.apply(x * 2, w).sum(), (x, w), allow_unused=True)[0] is None
    assert ("leaf", None) in seen and ("accumulated", None) not in seen


def test_any_of_several_comes_once_if_the_first_is_none():
    seen = []
    parts = (taeda.ones(3, 2, requires_grad=True) * 1).unbind()
    taeda.autograd.graph.register_multi_grad_hook(parts, seen.append, mode="any")
    parts[1].sum().backward()
    assert seen == [None]


@pytest.mark.parametrize("function", [lambda x: x * 2, lambda x: x.exp(), lambda x: x.split(2)[0], lambda x: x.sum()])
def test_a_hook_may_take_all_gradients_away(function):
    x, seen = taeda.arange(4.0, requires_grad=True), []
    y = function(x)
    y.grad_fn.register_prehook(lambda grads: (None,) * len(grads))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((set(inputs), set(outputs))))
    y.sum().backward()
    assert x.grad is None and seen == [({None}, {None})]


class _Nothing(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return None


def _calls_of_module_hooks(use, requires_grad=(True, True)):
    """What the backward hooks of a module with two inputs and two outputs see: whether each gradient is there."""
    seen = []

    class Two(taeda.nn.Module):
        def forward(self, a, b):
            return a * 2, b * 3

    module = Two()
    module.register_full_backward_pre_hook(lambda m, grads: seen.append([g is not None for g in grads]))
    module.register_full_backward_hook(
        lambda m, inputs, outputs: seen.append(([g is not None for g in inputs], [g is not None for g in outputs]))
    )
    outputs = module(*(taeda.ones(2, requires_grad=r) for r in requires_grad))
    used = [f(y).sum() for f, y in zip(use, outputs, strict=True) if f is not None]
    sum(used, taeda.zeros((), requires_grad=True)).backward()
    return seen


def test_module_hooks_hear_of_outputs_without_a_gradient():
    none, some = _Nothing.apply, lambda y: y
    all_none = [[False, False], ([True, True], [False, False])]
    for use in ((none, None), (None, none), (none, none)):
        assert _calls_of_module_hooks(use) == all_none
    assert _calls_of_module_hooks((some, none)) == [[True, False], ([True, True], [True, False])]
    assert _calls_of_module_hooks((none, none), (False, False)) == []


def test_a_function_runs_where_no_gradient_comes():
    class Seen(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(g if g is None else g.tolist())
            return g, None

    for materialize, expected in ((True, [0, 0]), (False, None)):
        seen = []
        x = leaf(1.0, 2.0)
        _Nothing.apply(Seen.apply(x, materialize)).sum().backward()
        assert seen == [expected]
        assert expected == (None if x.grad is None else x.grad.tolist())


@pytest.mark.parametrize(
    "result, error, text", [(taeda.ones(1), RuntimeError, "should return None"), (5, TypeError, "hook returned 'int'")]
)
def test_a_hook_after_accumulation_gives_nothing(result, error, text):
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: result)
    with pytest.raises(error, match=text):
        x.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_multi_grad_hooks_of_tensors_without_gradient():
    from taeda.autograd.graph import register_multi_grad_hook

    seen = []
    with pytest.raises(AssertionError):
        register_multi_grad_hook([taeda.ones(2), leaf(1.0)], seen.append)
    register_multi_grad_hook([taeda.ones(2), x := leaf(1.0)], seen.append, mode="any")
    (x * 2).sum().backward()
    assert [g.tolist() for g in seen] == [[2.0]]
    register_multi_grad_hook([taeda.ones(2)], seen.append, mode="any")


def test_gradients_have_the_dtype_of_the_forward_pass():
    layer = taeda.nn.Linear(2, 2)
    loss = layer(taeda.ones(1, 2)).sum()
    layer.half()
    loss.backward()
    assert layer.weight.dtype is taeda.float16 and layer.weight.grad.dtype is taeda.float32


def test_hooks_of_the_node_of_a_leaf():
    """Those before it come after the leaf's own, and where its gradient is asked for they are not called."""
    x = leaf(1.0)
    y = x.clone()
    order = []
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda inputs, outputs: order.append(("post", len(inputs), outputs[0].item())))
    node.register_prehook(lambda grads: order.append(("pre", grads[0].item())) or (grads[0] * 5,))
    x.register_hook(lambda g: order.append(("leaf", g.item())) or g * 3)
    y.sum().backward(retain_graph=True)
    assert order == [("leaf", 1.0), ("pre", 3.0), ("post", 0, 15.0)] and x.grad.tolist() == [15.0]
    order.clear()
    assert taeda.autograd.grad(y.sum(), x)[0].tolist() == [3.0]
    assert order == [("leaf", 1.0)]
