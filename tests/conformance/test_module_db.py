"""PyTorch's database of modules, run on taeda: each is built in both frameworks with the same parameters and compared."""

import copy
import io
import pickle
import warnings

import pytest

import taeda
from tests import agree

torch = pytest.importorskip("torch")

from torch.testing._internal.common_modules import module_db  # noqa: E402

from .opdb.checks import close, differentiate, same_gradients, seeded  # noqa: E402
from .opdb.translate import translate  # noqa: E402


def known(info) -> bool:
    return info.module_cls.__module__.startswith("torch.nn.modules")


ENTRIES = {info.name: info for info in module_db if known(info)}


def inputs(info, dtype=torch.float32, training=True, requires_grad=False, limit=8):
    torch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=requires_grad, training=training)
    step = max(1, -(-len(found) // limit))
    return [item for item in found[::step] if item.forward_input is not None]


def call(thing, target):
    """A FunctionInput's arguments, or their translation."""
    return (thing.args, thing.kwargs) if target == "torch" else (translate(list(thing.args)), translate(thing.kwargs))


def pair(info, sample, dtype=torch.float32, training=True):
    """The module in both frameworks, with the same parameters and buffers."""
    args, kwargs = sample.constructor_input.args, dict(sample.constructor_input.kwargs)
    ours_class = getattr(taeda.nn, info.module_cls.__name__)
    our_args, our_kwargs = [_layer(x) for x in translate(list(args))], translate(kwargs)
    torch.manual_seed(3)
    taeda.manual_seed(3)
    theirs = info.module_cls(*args, **kwargs)
    ours = ours_class(*our_args, **our_kwargs)
    theirs.to(dtype)
    ours.to(translate(dtype))
    theirs.train(training)
    ours.train(training)
    return ours, theirs


def _layer(x):
    """A module among the arguments of a module, its parameters included."""
    if not isinstance(x, torch.nn.Module):
        return x
    width, heads, hidden = x.linear1.in_features, x.self_attn.num_heads, x.linear1.out_features
    made = taeda.nn.TransformerEncoderLayer(
        width,
        heads,
        hidden,
        0.0,
        batch_first=x.self_attn.batch_first,
        norm_first=x.norm_first,
        bias=x.linear1.bias is not None,
    )
    made.to(translate(x.linear1.weight.dtype))
    made.load_state_dict({k: translate(v) for k, v in x.state_dict().items()})
    return made


def same_state(ours, theirs):
    want, got = theirs.state_dict(), ours.state_dict()
    assert list(got) == list(want)
    for key in want:
        if want[key] is None or isinstance(want[key], (dict, torch.nn.parameter.UninitializedTensorMixin)):
            continue
        close(got[key], want[key], key, want[key])


def is_lazy(module) -> bool:
    return isinstance(module, torch.nn.modules.lazy.LazyModuleMixin)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_forward_and_gradients(name, training):
    info = ENTRIES[name]
    for dtype in (torch.float32, torch.float64):
        for sample in inputs(info, dtype, training, requires_grad=True, limit=6 if dtype is torch.float64 else 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours, theirs = pair(info, sample, dtype, training)
                if not is_lazy(theirs):
                    same_state(ours, theirs)
                args, kwargs = sample.forward_input.args, dict(sample.forward_input.kwargs)
                memo = {}
                our_args, our_kwargs = translate(list(args), memo), translate(kwargs, memo)
                want, their_error = seeded(theirs, *args, **kwargs)
                got, our_error = seeded(ours, *our_args, **our_kwargs)
                if their_error is not None:
                    assert our_error is not None
                    continue
                if our_error is not None:
                    raise our_error
                close(got, want, f"{sample.desc}")
                same_state(ours, theirs)  # running statistics
                _gradients(ours, theirs, our_args, our_kwargs, args, kwargs)


def _gradients(ours, theirs, our_args, our_kwargs, args, kwargs):
    want, their_error = seeded(_all_gradients, torch, theirs, args, kwargs)
    got, our_error = seeded(_all_gradients, taeda, ours, our_args, our_kwargs)
    if their_error is not None:
        return
    if our_error is not None:
        raise our_error
    same_gradients(got, want, "gradients", None)


def _all_gradients(framework, module, args, kwargs):
    """Gradients of the inputs and of the parameters."""
    parameters = [p for p in module.parameters() if p.requires_grad]

    def forward(a, k):
        return module(*a[: len(args)], **k)

    return differentiate(framework, forward, [*args, parameters], kwargs, False)[0]


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_representation_copies_and_layout(name):
    info = ENTRIES[name]
    for sample in inputs(info, limit=3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs = pair(info, sample, training=False)
            assert repr(ours) == repr(theirs)
            args, kwargs = call(sample.forward_input, "taeda")
            args = [x.detach() if isinstance(x, taeda.Tensor) else x for x in args]
            want, error = seeded(ours, *args, **kwargs)
            if error is not None:
                continue
            for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
                assert list(other.state_dict()) == list(ours.state_dict())
                got, error = seeded(other, *args, **kwargs)
                assert error is None, error
                agree.close(got, want, rtol=1e-4, atol=1e-5)
            buffer = io.BytesIO()
            taeda.save(ours.state_dict(), buffer)
            buffer.seek(0)
            assert list(taeda.load(buffer)) == list(ours.state_dict())
            scattered = [_scattered(x) for x in args]
            got, error = seeded(ours, *scattered, **kwargs)
            assert error is None, error
            agree.close(got, want, rtol=1e-4, atol=1e-5)


def _scattered(x):
    """The same values with gaps between the elements."""
    if not isinstance(x, taeda.Tensor) or x.dim() == 0:
        return x
    return taeda.stack([x, x], -1)[..., 0]


@pytest.mark.parametrize("name", sorted(n for n, i in ENTRIES.items() if i.module_error_inputs_func is not None))
def test_errors(name):
    info = ENTRIES[name]
    torch.manual_seed(0)
    for bad in info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    ):
        sample = bad.module_error_input

        def run(cls, target, sample=sample):
            args, kwargs = call(sample.constructor_input, target)
            module = cls(*args, **kwargs)
            if sample.forward_input is None:
                return module
            args, kwargs = call(sample.forward_input, target)
            return module(*args, **kwargs)

        _, their_error = seeded(run, info.module_cls, "torch")
        if their_error is None:
            continue
        _, our_error = seeded(run, getattr(taeda.nn, info.module_cls.__name__), "taeda")
        assert our_error is not None, f"PyTorch raises {their_error!r}"
        kinds = (ValueError, TypeError, NotImplementedError, IndexError, RuntimeError, AssertionError)
        kind = next((k for k in kinds if isinstance(their_error, k)), type(their_error))
        assert isinstance(our_error, kind), f"{our_error!r} instead of {their_error!r}"
