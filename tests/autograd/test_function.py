"""``autograd.Function``: contexts, saved tensors, needs, dirty and non-differentiable outputs, what wrong ones raise."""

import gc
import weakref

import pytest

import taeda
from taeda import autograd
from taeda.autograd import Function, once_differentiable


def leaf(*values):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result


class Product(Function):
    """With a context set up apart from forward."""

    @staticmethod
    def forward(a, b, scale=1.0):
        return a * b * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.scale = inputs
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b * ctx.scale, g * a * ctx.scale, None


def test_gradients_of_first_and_second_order():
    for function, inputs in (
        (Cube.apply, (leaf(0.5, 1.5),)),
        (Exp.apply, (leaf(0.5, 1.5),)),
        (lambda a, b: Product.apply(a, b, 2.0), (leaf(0.5, 1.5), leaf(-1.0, 2.0))),
        (lambda x: Cube.apply(Exp.apply(x)), (leaf(0.5, 0.3),)),
    ):
        assert autograd.gradcheck(function, inputs)
        assert autograd.gradgradcheck(function, inputs)


def test_the_context_is_the_node():
    x = leaf(2.0)
    y = Cube.apply(x)
    node = y.grad_fn
    assert type(node).__name__ == "CubeBackward"
    assert node.name() == "CubeBackward"
    assert isinstance(node, autograd.graph.Node)
    assert node.saved_tensors[0] is x
    assert node.next_functions[0][0].variable is x
    assert node.needs_input_grad == (True,)
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    z = Product.apply(leaf(1.0), leaf(2.0), 5.0)
    assert z.grad_fn.scale == 5.0


def test_arguments_by_name_count_by_position():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, a, b, scale=2.0):
            ctx.save_for_backward(a, b)
            ctx.scale = scale
            return a * b * scale

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return (g * b * ctx.scale, g * a * ctx.scale, None)[: len(ctx.needs_input_grad)]

    for function in (Scaled, Product):
        for given, names, scale, needs in (
            ("ab", "", 1.0 if function is Product else 2.0, (True, True)),
            ("a", "b", 1.0 if function is Product else 2.0, (True, True)),
            ("", "ba", 1.0 if function is Product else 2.0, (True, True)),
            ("a", "sb", 3.0, (True, True, False)),
        ):
            known = {"a": leaf(2.0), "b": leaf(5.0), "s": 3.0}
            named = {"scale" if n == "s" else n: known[n] for n in names}
            out = function.apply(*(known[n] for n in given), **named)
            assert out.grad_fn.needs_input_grad[:2] == needs[:2], (function, given, names)
            assert len(out.grad_fn.needs_input_grad) == (3 if function is Product else len(needs))
            out.sum().backward()
            assert known["a"].grad.tolist() == [5.0 * scale] and known["b"].grad.tolist() == [2.0 * scale]
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        Product.apply(leaf(1.0))


def test_the_context_takes_any_name():
    class Names(Function):
        @staticmethod
        def forward(ctx, x):
            for name in NAMES:
                setattr(ctx, name, name)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert [getattr(ctx, name) for name in NAMES] == NAMES
            return g * 2

    NAMES = "op args outs targets shapes counts custom hooks label name seq nrs out_code x mode".split()
    x = leaf(1.0)
    Names.apply(x).backward()
    assert x.grad.item() == 2


def test_the_dict_of_the_context_has_what_its_author_set():
    seen = []

    class Notes(Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(dict(vars(ctx)))
            ctx.factor = 2
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(dict(vars(ctx)))
            return g * ctx.factor

    Notes.apply(leaf(1.0)).backward()
    assert seen == [{}, {"factor": 2}]


def test_saved_output_leads_to_its_own_node():
    x = leaf(1.0)
    y = Exp.apply(x)
    (saved,) = y.grad_fn.saved_tensors
    assert saved.grad_fn is y.grad_fn


def test_needs_input_grad():
    seen = []

    class Watches(Function):
        @staticmethod
        def forward(ctx, a, number, b):
            seen.append(ctx.needs_input_grad)
            return a * number + b

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g * 2, None, g

    a, b = leaf(1.0), taeda.ones(1, dtype=taeda.float64)
    Watches.apply(a, 2, b).sum().backward()
    assert seen == [(True, False, False)] * 2
    with taeda.no_grad():
        assert not Watches.apply(a, 2, b).requires_grad


def test_forward_is_not_recorded():
    class Watches(Function):
        @staticmethod
        def forward(ctx, x):
            assert not taeda.is_grad_enabled()
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert taeda.is_grad_enabled() == expect
            return g * 2

    x = leaf(1.0)
    expect = False
    Watches.apply(x).backward()
    expect = True
    autograd.grad(Watches.apply(x), x, create_graph=True)


def test_none_stands_for_no_gradient():
    class Half(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, ga, gb):
            return ga * 2, None

    a, b = leaf(1.0), leaf(1.0)
    u, v = Half.apply(a, b)
    (u + v).sum().backward()
    assert a.grad.item() == 2.0
    assert b.grad is None


def test_missing_gradients_are_zeros_or_none():
    seen = []

    class Two(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Two.materialize)
            return x * 2, x.float() * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g, h))
            return g * 2

    x = leaf(1.0, 2.0)
    Two.apply(x)[0].sum().backward()
    assert seen[0][1].tolist() == [0.0, 0.0]
    assert seen[0][1].dtype == taeda.float32
    Two.materialize = False
    Two.apply(x)[0].sum().backward()
    assert seen[1][1] is None


def test_outputs_that_are_not_differentiable():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            mask = values * 0 + 1
            ctx.mark_non_differentiable(order, mask)
            ctx.save_for_backward(order)
            return values, order, mask, "text"

        @staticmethod
        def backward(ctx, g, *others):
            (order,) = ctx.saved_tensors
            return taeda.zeros_like(g).index_put((order,), g)

    x = leaf(3.0, 1.0, 2.0)
    values, order, mask, text = Sorted.apply(x)
    assert values.requires_grad
    assert not order.requires_grad
    assert not mask.requires_grad
    assert text == "text"
    (values * taeda.tensor([1.0, 10.0, 100.0], dtype=taeda.float64)).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


class AddOne(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.add_(1)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


def test_inputs_written_in_place():
    x = leaf(1.0, 2.0)
    h = x * 2
    out = AddOne.apply(h)
    assert out is h
    assert h.tolist() == [3.0, 5.0]
    assert h.grad_fn.name() == "AddOneBackward"
    h.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        AddOne.apply(x)


def test_a_view_written_in_place():
    x = leaf(1.0, 2.0)
    h = x * 2
    view = h[0:1]
    assert AddOne.apply(view) is view
    assert h.grad_fn.name() == "CopySlices"
    h.sum().backward()
    assert x.grad.tolist() == [10.0, 2.0]


def test_a_view_written_as_the_second_argument():
    class AddInto(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(b)
            b.add_(a)
            return b

        @staticmethod
        def backward(ctx, g):
            return g * 3, g * 5

    a, x = leaf(1.0), leaf(1.0, 2.0)
    h = x * 2
    AddInto.apply(a, h[1:])
    h.sum().backward()
    assert a.grad.tolist() == [3.0]
    assert x.grad.tolist() == [2.0, 10.0]


def test_dirty_inputs_must_be_returned():
    class Hides(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.add_(1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="must all be outputs"):
        Hides.apply(leaf(1.0) * 1)


def test_input_passed_through():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0, 2.0)
    y = Same.apply(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    h = x * 1
    with pytest.raises(RuntimeError, match="would bypass the Function's backward"):
        Same.apply(h).add_(1)


def test_views_returned():
    class Flat(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.view(ctx.shape) * 3

    x = leaf(1.0, 2.0)
    h = x.view(1, 2) * 1
    y = Flat.apply(h)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [3.0, 3.0]
    h.add_(1)
    with pytest.raises(RuntimeError, match="would bypass the Function's backward"):
        y.grad_fn  # noqa: B018


def test_saved_tensors_are_checked():
    x = leaf(1.0)
    h = x * 1
    y = Cube.apply(h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    y = Cube.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn.saved_tensors  # noqa: B018
    with pytest.raises(TypeError, match="can only save variables"):

        class Wrong(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)
                return x * 1

        Wrong.apply(x)


def test_saved_none_stays_none():
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            x, none = ctx.saved_tensors
            assert none is None
            return g * x

    x = leaf(4.0)
    Keeps.apply(x).backward()
    assert x.grad.item() == 4.0


def returning(value, count=1):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tensors[0] * 1

        @staticmethod
        def backward(ctx, g):
            return value(g)

    return Wrong.apply(*[leaf(1.0, 2.0) for _ in range(count)])


def test_wrong_gradients():
    one = taeda.ones(2, dtype=taeda.float64)
    with pytest.raises(
        RuntimeError, match=r"WrongBackward returned an incorrect number of gradients \(expected 1, got 2\)"
    ):
        returning(lambda g: (g, g)).backward(one)
    with pytest.raises(RuntimeError, match=r"expected 2, got 1"):
        returning(lambda g: g, 2).backward(one)
    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2\]"
    ):
        returning(lambda g: taeda.ones(3, dtype=taeda.float64)).backward(one)
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got str\)"):
        returning(lambda g: "gradient").backward(one)
    returning(lambda g: (g, None)).backward(one)
    returning(lambda g: g.expand(4, 2)).backward(one)


def test_once_differentiable():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not taeda.is_grad_enabled()
            return g * 2

    x = leaf(1.0)
    (g,) = autograd.grad(Twice.apply(x) ** 2, x, create_graph=True)
    assert g.item() == 8.0
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.backward()


def test_what_is_missing_is_named():
    class Nothing(Function):
        pass

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="backward or vjp"):
        NoBackward.apply(leaf(1.0)).backward()
    with pytest.raises(RuntimeError, match="it is applied"):
        NoBackward()(leaf(1.0))


def test_vjp_is_another_name_for_backward():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf(1.0)
    Twice.apply(x).backward()
    assert x.grad.item() == 2.0


def test_keyword_arguments_and_other_things_pass_through():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, options, *, offset=0):
            ctx.scale = options["scale"]
            return x * ctx.scale + offset

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None

    x = leaf(1.0)
    y = Scaled.apply(x, {"scale": 4}, offset=1)
    assert y.item() == 5.0
    y.backward()
    assert x.grad.item() == 4.0


def test_an_error_in_backward_leaves_everything_usable():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("on purpose")

    x = leaf(1.0)
    y = Fails.apply(x)
    with pytest.raises(ValueError, match="on purpose") as caught:
        y.backward()
    assert any("FailsBackward" in note for note in caught.value.__notes__)
    assert taeda.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.item() == 2.0


def test_an_error_in_forward_leaves_recording_on():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        Fails.apply(leaf(1.0))
    assert taeda.is_grad_enabled()


@pytest.mark.parametrize("function", [Cube, Exp])
def test_contexts_are_freed_with_their_outputs(function):
    x = leaf(1.0)
    gc.collect()
    gc.disable()
    try:
        for backward in (True, False):
            y = function.apply(x)
            reference = weakref.ref(y.grad_fn)
            if backward:
                y.backward()
            del y
            assert reference() is None
    finally:
        gc.enable()


def test_backward_inside_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with taeda.enable_grad():
                again = x.detach().requires_grad_()
                (again * again).backward(g)
            return again.grad

    x = leaf(3.0)
    (Inner.apply(x) * 2).backward()
    assert x.grad.item() == 12.0


def test_outputs_that_are_constant_have_zeros_as_gradients():
    seen = []

    class Masked(Function):
        @staticmethod
        def forward(ctx, x):
            mask = (x > 0).float()
            ctx.mark_non_differentiable(mask)
            ctx.save_for_backward(mask)
            return x * mask, mask, x.argmax(), 3

        @staticmethod
        def backward(ctx, *grads):
            seen.extend(grads)
            return grads[0] * ctx.saved_tensors[0] + grads[1]

    x = taeda.tensor([1.0, -1.0], requires_grad=True)
    Masked.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    assert seen[1].tolist() == [0.0, 0.0] and seen[2].item() == 0 and seen[2].dtype == taeda.int64
    assert seen[3] is None


def test_tensors_of_inference_mode_are_taken():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, write):
            if write:
                ctx.mark_dirty(x)
                return x.mul_(2)
            return x * 2

    with taeda.inference_mode():
        x = taeda.ones(2)
        assert Scaled.apply(x, False).tolist() == [2.0, 2.0]
        assert Scaled.apply(x, True) is x and x.tolist() == [2.0, 2.0]
    assert Scaled.apply(x, False).tolist() == [4.0, 4.0]


def test_a_gradient_of_what_is_no_tensor():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = taeda.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="different than None at position 2"):
        Scale.apply(x, 2.0).sum().backward()


@pytest.mark.parametrize(
    ("wrong", "text"), [(taeda.ones(2, device="meta"), "expected device cpu"), (taeda.tensor([1j, 2j]), "real input")]
)
def test_gradients_that_do_not_fit_the_input(wrong, text):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return wrong

    x = taeda.ones(2, requires_grad=True)
    for given in (x, x * 1):
        with pytest.raises(RuntimeError, match=text):
            Wrong.apply(given).sum().backward()


def test_only_inputs_need_be_marked_dirty():
    class Triple(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 3
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    x = taeda.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="mark_dirty"):
        Triple.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_backward_by_two_names():
    class Twice(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="only implement one of them"):
        Twice.apply(taeda.ones(1, requires_grad=True)).sum().backward()
