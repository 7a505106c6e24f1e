"""``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``: as blocks, decorators, around generators."""

import threading

import pytest

import taeda


def leaf():
    return taeda.ones(3, requires_grad=True)


def recording():
    return (leaf() * 2).requires_grad


def test_blocks_nest_and_end():
    assert recording()
    with taeda.no_grad():
        assert not recording()
        with taeda.enable_grad():
            assert recording()
            with taeda.set_grad_enabled(False):
                assert not recording()
            assert recording()
        assert not recording()
    assert recording()


def test_blocks_end_when_something_fails():
    with pytest.raises(KeyError), taeda.no_grad():
        raise KeyError
    assert recording()


def test_set_grad_enabled_works_at_once():
    taeda.set_grad_enabled(False)
    try:
        assert not recording()
    finally:
        taeda.set_grad_enabled(True)
    assert recording()


def test_one_object_serves_again_and_again():
    mode = taeda.no_grad()
    for _ in range(2):
        with mode:
            assert not recording()
        assert recording()


@pytest.mark.parametrize(
    "decorate", [taeda.no_grad(), taeda.no_grad, taeda.inference_mode(), taeda.inference_mode, None]
)
def test_decorators(decorate):
    decorate = taeda.set_grad_enabled(False) if decorate is None else decorate

    @decorate
    def inside(x, *, y=1):
        """Documented."""
        return recording(), x, y

    assert inside(1, y=2) == (False, 1, 2)
    assert inside.__name__ == "inside"
    assert inside.__doc__ == "Documented."
    assert recording()
    with taeda.no_grad():
        assert taeda.enable_grad()(recording)()


def test_generators_keep_their_mode_to_themselves():
    @taeda.no_grad()
    def numbers():
        try:
            got = yield recording()
            yield got, recording()
        except KeyError:
            yield "caught", recording()
        return "end"

    generator = numbers()
    assert next(generator) is False
    assert recording()
    assert generator.send("sent") == ("sent", False)
    assert generator.throw(KeyError) == ("caught", False)
    assert recording()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"

    @taeda.no_grad()
    def closed():
        try:
            yield 1
        finally:
            seen.append(recording())

    seen = []
    generator = closed()
    next(generator)
    generator.close()
    assert seen == [False]
    assert recording()


def test_each_thread_has_its_own():
    seen = []
    with taeda.no_grad():
        thread = threading.Thread(target=lambda: seen.append(recording()))
        thread.start()
        thread.join()
        assert not recording()
    assert seen == [True]


def test_leaves_made_inside_may_require_grad():
    with taeda.no_grad():
        x = leaf()
        y = x * 2
    assert x.requires_grad
    assert not y.requires_grad


def test_inference_tensors():
    x = leaf()
    with taeda.inference_mode():
        assert taeda.is_inference_mode_enabled()
        assert not taeda.is_grad_enabled()
        a = taeda.ones(3)
        b = x * 2
        a.add_(1)
    assert a.is_inference()
    assert b.is_inference()
    assert not x.is_inference()
    assert not taeda.is_inference_mode_enabled()
    assert (a + b).tolist() == [4.0, 4.0, 4.0]
    assert not (a + b).is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * a
    assert (x + a).requires_grad
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        a.add_(1)
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor"):
        a.requires_grad_()
    assert (x * a.clone()).requires_grad
    with taeda.inference_mode(False):
        assert recording()


def test_views_made_in_inference_mode():
    x = leaf()
    h = x * 1
    with taeda.inference_mode():
        view = h[1:]
    with pytest.raises(RuntimeError, match="inference mode"):
        view.mul_(x[1:])


def test_nothing_is_recorded_in_inference_mode():
    x = taeda.ones(2, requires_grad=True)
    with taeda.inference_mode():
        assert not taeda.is_grad_enabled()
        with taeda.enable_grad():
            y = x * 2
            assert taeda.is_grad_enabled() and y.is_inference() and not y.requires_grad
        assert not taeda.is_grad_enabled()
        with taeda.inference_mode(False):
            assert taeda.is_grad_enabled() and (x * 2).requires_grad
        with taeda.enable_grad(), taeda.inference_mode(False), taeda.no_grad():
            assert not (x * 2).requires_grad
        assert not taeda.is_grad_enabled() and taeda.is_inference_mode_enabled()
    assert taeda.is_grad_enabled() and (x * 2).requires_grad


def test_leaves_of_inference_mode_are_resized():
    with taeda.inference_mode():
        x = taeda.ones(4, requires_grad=True).resize_(2, 1)
    assert x.is_inference() and x.requires_grad and x.shape == (2, 1)
    with taeda.no_grad(), pytest.raises(RuntimeError, match="resize"):
        taeda.ones(4, requires_grad=True).resize_(2, 1)


@pytest.mark.parametrize("call", ["zeros(3)", "empty(3)", "full((3,), 2.0)", "arange(3)", "eye(3)", "randperm(3)"])
def test_factories_into_a_tensor_that_is_to_require_grad(call):
    name, rest = call.split("(", 1)
    out = taeda.empty(0)
    made = eval(f"taeda.{name}({rest[:-1]}, out=out, requires_grad=True)", {"taeda": taeda, "out": out})
    assert made is out and out.requires_grad and out.is_leaf
    if name == "full":
        assert out.tolist() == [2, 2, 2]


def test_a_decorated_class_is_deprecated():
    with pytest.warns(FutureWarning, match="Decorating classes"):

        @taeda.no_grad()
        class Model:
            pass

    assert isinstance(Model(), Model.__wrapped__)
