"""``.pt2`` files written here load in PyTorch, and give what the models give."""

from __future__ import annotations

import copy
import io
import warnings

import pytest

import taeda
import taeda.export
from taeda.export._pt2_ops import TABLE

torch = pytest.importorskip("torch")
from .models import MODELS  # noqa: E402
from .test_like_pytorch import SIZED, as_taeda, compare  # noqa: E402
from .test_unknown_numbers import PROGRAMS, Calls, inputs, others  # noqa: E402

#: What PyTorch's files have no form for here, and what the error says.
REFUSED = {
    "lstm": "_recurrent_layer", "gru": "_recurrent_layer", "embedding_bag": "embedding_bag", "containers": "OurPair",
}  # fmt: skip


def loaded(program):
    """The program as PyTorch reads it."""
    file = io.BytesIO()
    taeda.export.save(program, file, format="pt2")
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.load(file)


def ours(name):
    module, args, kwargs, sizes = MODELS[name](taeda)
    return module, args, kwargs, taeda.export.export(module, copy.deepcopy(args), kwargs, dynamic_shapes=sizes)


def as_torch(tree):
    return torch.utils._pytree.tree_map(
        lambda x: torch.from_numpy(x.detach().numpy().copy()) if isinstance(x, taeda.Tensor) else x, tree
    )


def same(got, want):
    got, want = torch.utils._pytree.tree_leaves(got), taeda.utils._pytree.tree_leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        if isinstance(b, taeda.Tensor):
            compare(b, a)
        else:
            assert a == b


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    _, args, kwargs, program = ours(name)
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]):
            loaded(program)
        return
    theirs = loaded(program).module()
    given = as_torch(args), as_torch(kwargs)
    same(theirs(*given[0], **given[1]), program.module()(*copy.deepcopy(args), **kwargs))


def test_buffers_are_written_to():
    _, args, kwargs, program = ours("buffers")
    theirs, module = loaded(program).module(), program.module()
    for _ in range(3):
        same(theirs(*as_torch(args), **as_torch(kwargs)), module(*copy.deepcopy(args), **kwargs))
    for name in program.graph_signature.buffers:
        compare(module.get_buffer(name), theirs.get_buffer(name))


@pytest.mark.parametrize("name", [n for n in SIZED if n not in REFUSED])
def test_other_sizes(name):
    _, args, kwargs, program = ours(name)
    theirs, module = loaded(program).module(), program.module()
    for size in SIZED[name]:
        x = torch.from_numpy(args[0].numpy())
        new = torch.randint(0, 7, (size, *x.shape[1:])) if x.dtype == torch.int64 else torch.randn(size, *x.shape[1:])
        same(theirs(new, *as_torch(args[1:]), **as_torch(kwargs)), module(as_taeda(new), *args[1:], **kwargs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_unknown_numbers(name):
    program = taeda.export.export(Calls(taeda, PROGRAMS[name]), as_taeda(inputs()))
    if name == "truth":
        with pytest.raises(ValueError, match="no condition as a result"):
            loaded(program)
        return
    theirs = loaded(program).module()
    for args in others(name):
        same(theirs(*args), program.module()(*as_taeda(args)))


def test_they_are_trained_there():
    _, args, _, program = ours("mlp")
    theirs, module = loaded(program).module(), program.module()
    theirs(*as_torch(args)).square().sum().backward()
    module(*args).square().sum().backward()
    for (name, x), (other, y) in zip(theirs.named_parameters(), module.named_parameters(), strict=True):
        assert name == other
        compare(y.grad, x.grad)


def test_they_load_here_too():
    _, args, kwargs, program = ours("attention_with_mask")
    file = io.BytesIO()
    taeda.export.save(program, file, format="pt2", extra_files={"note": "of a test"})
    file.seek(0)
    extra = {"note": ""}
    again = taeda.export.load(file, extra_files=extra).module()
    assert extra["note"] == "of a test"
    got, want = again(*args, **kwargs), program.module()(*args, **kwargs)
    for a, b in zip(taeda.utils._pytree.tree_leaves(got), taeda.utils._pytree.tree_leaves(want), strict=True):
        assert taeda.allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_has_no_form_is_refused():
    program = taeda.export.export(Calls(taeda, lambda t, x: t.special.bessel_j0(x)), (taeda.randn(3),))
    with pytest.raises(ValueError, match="'bessel_j0' cannot be written for PyTorch"):
        taeda.export.save(program, io.BytesIO(), format="pt2")
    with pytest.raises(ValueError, match="expected format 'taeda' or 'pt2'"):
        taeda.export.save(program, io.BytesIO(), format="onnx")


@pytest.mark.parametrize("name", TABLE)
def test_arguments_are_those_of_aten(name):
    target, args = TABLE[name]
    op, _, overload = target.partition(".")
    schema = [a.name for a in getattr(getattr(torch.ops.aten, op), overload)._schema.arguments]
    given = [a.strip("*[]").partition(":")[0] for a in args]
    assert [a for a in schema if a in given] == given
    required = [
        a.name for a in getattr(getattr(torch.ops.aten, op), overload)._schema.arguments if not a.has_default_value()
    ]
    assert set(required) - {"cudnn_enable"} <= set(given)
    assert all(
        a.kwarg_only == (f"*{a.name}" in args)
        for a in getattr(getattr(torch.ops.aten, op), overload)._schema.arguments
        if a.name in given
    )
