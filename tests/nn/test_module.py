"""Module: where failures happen is told, registries are plain dicts, and what else PyTorch does not promise."""

import copy
import gc
import inspect
import pickle
import warnings
import weakref

import pytest

import taeda
from taeda import nn


class Attention(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x):
        return self.qkv(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = Attention()

    def forward(self, x):
        return self.attn(x)[..., :5]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[Block() for _ in range(3)])

    def forward(self, x):
        return self.blocks(x)


def test_wrong_width_names_path_shapes_and_line():
    with pytest.raises(RuntimeError) as caught:
        Net()(taeda.zeros(2, 4))
    text = str(caught.value)
    assert "blocks.1.attn.qkv" in text
    assert "(2, 5)" in text and "(12, 4)" in text
    assert "test_module.py" in text and "return self.qkv(x)" in text
    assert "Linear(in_features=4, out_features=12, bias=True) of Net" in text


def test_line_of_the_caller_where_the_layer_is_ours():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 6))
    with pytest.raises(RuntimeError, match=r"module: 1 = Linear.* of Sequential(.|\n)*model\(taeda.zeros\(2, 3\)\)"):
        model(taeda.zeros(2, 3))


def test_own_exceptions_keep_their_text():
    class Inner(nn.Module):
        def forward(self, x):
            raise ValueError("mine")

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Identity(), Inner()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)

    with pytest.raises(ValueError) as caught:
        Outer()(1)
    assert str(caught.value) == "mine"
    (note,) = caught.value.__notes__
    assert "layers.1 = Inner() of Outer" in note and 'raise ValueError("mine")' in note


def test_control_flow_passes_through():
    class Stop(nn.Module):
        def forward(self, x):
            raise StopIteration(x)

    with pytest.raises(StopIteration) as caught:
        nn.Sequential(Stop())(3)
    assert caught.value.value == 3 and not hasattr(caught.value, "__notes__")


def test_failure_keeps_no_module_alive():
    model = Net()
    gone = weakref.ref(model)
    try:
        model(taeda.zeros(2, 4))
    except RuntimeError as error:
        kept = error.with_traceback(None)
        kept.__context__ = None
    del model
    gc.collect()
    assert gone() is None
    assert "blocks.1" in str(kept)


def test_registries_are_the_truth():
    layer = nn.Linear(2, 2)
    replacement = nn.Parameter(taeda.zeros(2, 2))
    layer._parameters["weight"] = replacement
    assert layer.weight is replacement
    assert layer(taeda.ones(1, 2)).tolist() == [layer.bias.tolist()]
    del layer._parameters["weight"]
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weight'"):
        layer.weight  # noqa: B018
    layer.weight = taeda.ones(2, 2)  # a plain tensor now: an attribute as any other
    assert "weight" in layer.__dict__ and list(layer.state_dict()) == ["bias"]


def test_memory_goes_with_the_last_name():
    gc.disable()
    try:
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        parts = [weakref.ref(model), weakref.ref(model[0]), weakref.ref(model[0].weight)]
        del model
        assert [p() for p in parts] == [None] * 3
    finally:
        gc.enable()


class Mixin:
    pass


class Mixed(Mixin, nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(taeda.ones(n))

    def forward(self, x):
        return x * self.w


class Forwarding(nn.Module):
    """Asks its child for what it lacks."""

    def __init__(self):
        super().__init__()
        self._modules["inner"] = nn.Linear(2, 3)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def test_mixins_and_own_getattr():
    m = Mixed(2)
    assert copy.deepcopy(m)(taeda.ones(2)).tolist() == [1, 1]
    assert pickle.loads(pickle.dumps(m)).w.tolist() == [1, 1]
    f = Forwarding()
    assert f.out_features == 3 and f.inner.in_features == 2
    f.own = nn.Parameter(taeda.ones(1))
    assert f.own.item() == 1
    with pytest.raises(AttributeError, match="nope"):
        f.nope  # noqa: B018
    assert not hasattr(m, "nope")


def test_module_as_dict_subclass_and_slots():
    class Table(nn.Module, dict):  # a class with a layout of its own
        pass

    t = Table()
    t["a"] = 1
    t.layer = nn.ReLU()
    assert t["a"] == 1 and [n for n, _ in t.named_children()] == ["layer"]


def test_arguments_of_every_kind():
    class Sum(nn.Module):
        def forward(self, *args, scale=1, **more):
            return (sum(args) + sum(more.values())) * scale

    m = Sum()
    assert m() == 0
    assert m(*range(20)) == 190
    assert m(1, 2, scale=10, x=4) == 70
    m.forward = lambda x: -x
    assert m(3) == -3


def test_missing_forward_and_init():
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)

    class Forgot(nn.Module):
        def __init__(self):
            self.layer = nn.ReLU()

    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Forgot()


def test_deep_model_names():
    model = nn.Identity()
    for _ in range(100):
        model = nn.Sequential(model)
    assert len(list(model.modules())) == 101
    model.to(taeda.float64).train(False)
    assert len(model.state_dict()) == 0
    assert model(3) == 3


@pytest.mark.parametrize(
    "error, args, kwargs",
    [(RuntimeError, ("cpu",), {"copy": True}), (RuntimeError, (taeda.float64, False, True), {}),
     (TypeError, ("cpu", True), {}), (TypeError, (taeda.float64,), {"dtype": taeda.float64}),
     (TypeError, (), {"other": taeda.ones(1)}), (TypeError, ("cpu", taeda.float64, False, False, False), {})],
)  # fmt: skip
def test_forms_of_to(error, args, kwargs):
    with pytest.raises(error):
        nn.Linear(1, 1).to(*args, **kwargs)


def test_load_many_small_tensors_quickly():
    model = nn.ModuleList([nn.Linear(1, 1) for _ in range(500)])
    state = {k: v + 1 for k, v in model.state_dict().items()}
    assert str(model.load_state_dict(state)) == "<All keys matched successfully>"
    assert float(model[7].weight) == pytest.approx(float(state["7.weight"]))


def test_errors_when_loading_say_what_to_mend():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 3).load_state_dict({"weight": taeda.zeros(3, 4), "bia": taeda.zeros(3)})
    text = str(caught.value)
    for part in (
        "Missing key(s)",
        '"bias"',
        "Unexpected key(s)",
        '"bia"',
        "size mismatch for weight",
        "[3, 4]",
        "[3, 2]",
    ):
        assert part in text


def test_signatures_of_a_module_and_of_its_class():
    assert str(inspect.signature(nn.Linear(2, 2))) == "(*args, **kwargs)"
    assert list(inspect.signature(nn.Linear).parameters)[:3] == ["in_features", "out_features", "bias"]


def test_full_backward_hooks_are_left_out_where_a_gradient_comes_by_no_output():
    """As in a second derivative, where what a layer saved of its input takes part."""
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    seen = []
    second.register_full_backward_hook(lambda module, of_inputs, of_outputs: seen.append(len(of_outputs)))
    loss = second(first(taeda.ones(1, 3))).sum()
    of_weight, _ = taeda.autograd.grad(loss, [second.weight, first.weight], create_graph=True)
    of_weight.sum().backward()
    assert seen == [1]
    assert first.bias.grad.tolist() == [2.0] * 4


def test_a_full_backward_hook_without_a_gradient_of_inputs_warns():
    layer = nn.Linear(3, 2)
    seen = []
    layer.register_full_backward_hook(lambda module, of_inputs, of_outputs: seen.append(of_inputs))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(taeda.ones(1, 3)).sum().backward()
    assert seen == [(None,)]
    layer.register_full_backward_hook(lambda module, of_inputs, of_outputs: of_inputs)
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(taeda.ones(1, 3)).sum().backward()
    layer.register_full_backward_hook(lambda module, of_inputs, of_outputs: [taeda.ones(1, 3)])
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="no input requires gradient"):
        layer(taeda.ones(1, 3)).sum().backward()
    layer, x = nn.Linear(3, 2), taeda.ones(1, 3, requires_grad=True)
    layer.register_full_backward_hook(lambda module, of_inputs, of_outputs: [5 * taeda.ones(1, 3)])
    layer(x).sum().backward()
    assert x.grad.tolist() == [[5.0] * 3]


def test_a_layer_shows_the_attributes_that_it_names():
    class Shown(taeda.nn.Module):
        _shown = ("a", "b")

        def __init__(self):
            super().__init__()
            self.a, self.b = 1, "x"

    assert repr(Shown()) == "Shown(a=1, b=x)"
    for kind in vars(taeda.nn).values():  # a method of a base class would go before the names
        if isinstance(kind, type) and issubclass(kind, taeda.nn.Module) and kind._shown:
            assert kind.extra_repr is taeda.nn.Module.extra_repr


def test_docstrings_list_the_arguments_that_a_layer_takes():
    def listed(kind):
        return {
            name
            for line in inspect.getdoc(kind).splitlines()
            if line.startswith("    ") and ":" in line
            for name in line.split(":")[0].strip().split(", ")
        }

    assert {"kernel_size", "stride", "return_indices"} <= listed(nn.MaxPool2d)
    assert {"in_channels", "padding_mode", "dtype"} <= listed(nn.Conv2d)
    assert "reduction" in listed(nn.MSELoss)
    assert "weight" not in listed(nn.MSELoss) and "weight" in listed(nn.BCELoss)
    assert "label_smoothing" not in listed(nn.NLLLoss)  # its list is that of cross entropy, less what it does not take
    assert "arguments as" not in inspect.getdoc(nn.Conv2d)
    assert "*args: modules" in inspect.getdoc(nn.Sequential) and "**kwargs" not in inspect.getdoc(nn.Sequential)


@pytest.mark.parametrize(
    ("call", "error", "hint"),
    [
        (lambda: taeda.optim.SGD(nn.Linear(2, 2), lr=0.1), TypeError, "parameters()"),
        (lambda: taeda.optim.SGD([], lr=0.1), ValueError, "only once"),
        (lambda: taeda.optim.SGD([taeda.ones(2, requires_grad=True) * 2], lr=0.1), ValueError, "MulBackward0"),
        (lambda: nn.Sequential([nn.Linear(2, 2)]), TypeError, "Sequential(*layers)"),
        (lambda: nn.Linear(2, 2).load_state_dict("model.pt"), TypeError, "taeda.load(path)"),
        (
            lambda: nn.Linear(1, 1).load_state_dict({"module.weight": taeda.ones(1, 1), "module.bias": taeda.ones(1)}),
            RuntimeError,
            "'module.'",
        ),
        (lambda: nn.CrossEntropyLoss()(taeda.ones(4, 3), taeda.ones(4)), RuntimeError, "long()"),
        (
            lambda: nn.CrossEntropyLoss()(taeda.ones(4, 3), taeda.ones(4, 1, dtype=taeda.int64)),
            RuntimeError,
            "squeeze(-1)",
        ),
        (lambda: nn.BCEWithLogitsLoss()(taeda.ones(4, 1), taeda.ones(4)), ValueError, "view_as(input)"),
        (lambda: nn.MSELoss()(taeda.ones(4), taeda.ones(3)), RuntimeError, "mse_loss: The size"),
        (lambda: nn.Embedding(3, 2)(taeda.ones(2)), RuntimeError, "long()"),
        (lambda: nn.BatchNorm1d(3)(taeda.ones(1, 3)), ValueError, "eval()"),
        (lambda: taeda.ones(2, requires_grad=True).add_(1), RuntimeError, "no_grad()"),
        (lambda: taeda.ones(2).sum().backward(), RuntimeError, "requires_grad=True"),
        (lambda: bool(taeda.ones(2) > 0), RuntimeError, "any() or all()"),
        (lambda: taeda.ones(2).item(), RuntimeError, "tolist()"),
        (lambda: taeda.ones(3)[0, 1], IndexError, "got 2 for shape [3]"),
        (lambda: taeda.ones(3)[taeda.ones(1)], IndexError, "long()"),
        (lambda: taeda.cat(taeda.ones(2), taeda.ones(2)), TypeError, "cat([a, b])"),
        (lambda: taeda.exp([1.0]), TypeError, "must be Tensor, not list"),
        (lambda: taeda.matmul([1.0], taeda.ones(1)), TypeError, "as_tensor(...)"),
        (lambda: taeda.zeros(2.5), TypeError, "tuple of ints, not float"),
        (lambda: taeda.tensor(1)[0], IndexError, "item()"),
        (lambda: taeda.tensor([1], dtype="float32"), TypeError, "give taeda.float32"),
        (lambda: setattr(nn.Linear(2, 2), "weight", taeda.ones(2, 2)), TypeError, "nn.Parameter(tensor)"),
    ],
)
def test_errors_say_how_to_mend_them(call, error, hint):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error) as caught:
            call()
    assert hint in str(caught.value).split("\n  module:")[0]


def test_full_backward_hooks_keep_inputs_without_a_gradient():
    wanted, seen = [], []

    class Product(nn.Module):
        def forward(self, a, b):
            wanted.append((a.requires_grad, b.requires_grad))
            return a * b

    layer = Product()
    layer.register_full_backward_hook(lambda module, of_inputs, of_outputs: seen.extend(of_inputs))
    x = taeda.ones(3, requires_grad=True)
    layer(x, x.detach()).sum().backward()
    assert wanted == [(True, False)]
    assert [g.tolist() for g in seen] == [[1, 1, 1], [0, 0, 0]]  # as in PyTorch: zeros, not None


def test_backward_hooks_on_every_module():
    from taeda.nn.modules import module as modules

    seen = []
    with modules.register_module_backward_hook(lambda module, *_: seen.append(type(module).__name__)) as handle:
        assert handle.id in handle.hooks_dict_ref()
        with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks"):
            modules.register_module_full_backward_hook(print)
        layer = nn.Linear(2, 2)
        layer(taeda.ones(1, 2)).sum().backward()
    assert seen == ["Linear"]
    with modules.register_module_full_backward_hook(lambda module, *_: seen.append("full")):
        layer(taeda.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == ["Linear", "full"]


class Tagged(nn.Parameter):
    """At module level, where pickle finds it."""

    def __new__(cls, data=None, requires_grad=True):
        made = super().__new__(cls, data, requires_grad)
        made.tag = "new"
        return made


def test_attributes_and_text_of_parameters():
    parameter = Tagged(taeda.ones(2))
    parameter.other = 3
    loaded = pickle.loads(pickle.dumps(parameter))
    assert type(loaded) is nn.Parameter and vars(loaded) == {"tag": "new", "other": 3} and loaded.requires_grad
    assert vars(pickle.loads(pickle.dumps(nn.Parameter(taeda.ones(2))))) == {}
    assert repr(parameter) == "Parameter containing:\nParameter(Tagged([1., 1.], requires_grad=True))"
    assert str(nn.UninitializedParameter()) == "<UninitializedParameter>"


def test_a_backward_pre_hook_alone_may_take_the_gradient_away():
    layer, x = nn.Linear(2, 2), taeda.ones(1, 2, requires_grad=True)
    layer.register_full_backward_pre_hook(lambda module, grads: (None,))
    layer(x).sum().backward()
    assert x.grad.tolist() == [[0, 0]] and layer.weight.grad is None


def test_a_hook_before_loading_does_not_keep_its_module_alive():
    seen = []
    layer = nn.Linear(1, 1)
    layer.register_load_state_dict_pre_hook(lambda module, *arguments: seen.append(module))
    twin = copy.deepcopy(layer)
    for module in (layer, twin):
        module.load_state_dict(module.state_dict())
    assert seen[0] is layer and seen[1] is twin
    seen.clear()
    gc.collect()
    gc.disable()
    try:
        found = weakref.ref(twin)
        del twin, module
        assert found() is None
    finally:
        gc.enable()


def test_conversions_that_make_other_parameters():
    """To another layout or to device meta, with the gradient."""
    for convert in (lambda t: t.to_sparse(), lambda t: t.to("meta")):
        layer = nn.Linear(2, 3, bias=False)
        weight, layer.weight.grad = layer.weight, taeda.ones(3, 2)
        layer._apply(convert)
        assert layer.weight is not weight and isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
        for t in (layer.weight, layer.weight.grad):
            assert (t.layout, t.device) == (convert(weight).layout, convert(weight).device)
    with pytest.warns(UserWarning, match="Complex modules"):
        nn.Linear(2, 3).to(taeda.complex64)
    assert "meta" not in repr(nn.ParameterList([nn.Parameter(taeda.empty(1, device="meta"))]))
