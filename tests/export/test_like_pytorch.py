"""Exported models give what the models give, and have the inputs and outputs that PyTorch's exporter gives them."""

from __future__ import annotations

import copy
import warnings
from collections import Counter

import numpy as np
import pytest

import taeda
import taeda.export
from taeda.utils import _pytree as pytree

torch = pytest.importorskip("torch")
from tests.agree import close  # noqa: E402

from .models import MODELS, OurPair, TheirPair  # noqa: E402

EXACT = {"rtol": 1e-5, "atol": 1e-5}


def as_taeda(tree):
    """Tensors of PyTorch, and its dataclass, as taeda's."""
    if isinstance(tree, torch.Tensor):
        return taeda.from_numpy(np.array(tree.detach().numpy()))
    if isinstance(tree, dict):
        return {k: as_taeda(v) for k, v in tree.items()}
    if type(tree) is TheirPair:
        return OurPair(as_taeda(tree.a), as_taeda(tree.b))
    return type(tree)(map(as_taeda, tree)) if isinstance(tree, (tuple, list)) else tree


def compare(got, wanted):
    """The leaves agree, in whichever package."""
    close(pytree.tree_leaves(as_taeda(got)), pytree.tree_leaves(as_taeda(wanted)))


def both(name):
    """The model in both packages with the same state and arguments."""
    theirs, args, kwargs, sizes = MODELS[name](torch)
    ours, _, _, our_sizes = MODELS[name](taeda)
    state = {k: as_taeda(v) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return (theirs, args, kwargs, sizes), (ours, as_taeda(args), as_taeda(kwargs), our_sizes)


def exported(name):
    (theirs, args, kwargs, sizes), (ours, our_args, our_kwargs, our_sizes) = both(name)
    program = taeda.export.export(ours, our_args, our_kwargs, dynamic_shapes=our_sizes)
    return theirs, args, kwargs, sizes, ours, our_args, our_kwargs, program


def state_of(module):
    return {k: v.detach().numpy().copy() for k, v in [*module.named_parameters(), *module.named_buffers()]}


@pytest.mark.parametrize("name", MODELS)
def test_values(name):
    theirs, args, kwargs, _, ours, our_args, our_kwargs, program = exported(name)
    before = state_of(ours)
    module = program.module()
    assert state_of(ours).keys() == before.keys()  # nothing was written while the model was recorded
    wanted = theirs(*copy.deepcopy(args), **kwargs)
    compare(module(*our_args, **our_kwargs), wanted)
    after, theirs_after = state_of(module), state_of(theirs)
    for key, value in theirs_after.items():
        np.testing.assert_allclose(after[key], value, **EXACT)


@pytest.mark.parametrize("name", [n for n in MODELS if n not in ("conditional",)])
def test_signature(name):
    theirs, args, kwargs, sizes, *_, program = exported(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = torch.export.export(theirs, copy.deepcopy(args), kwargs, dynamic_shapes=sizes)
    got = program.graph_signature

    def inputs(signature):
        return Counter(
            (s.kind.name, s.target, s.persistent) for s in signature.input_specs if s.kind.name != "CONSTANT_TENSOR"
        )

    assert inputs(got) == inputs(wanted.graph_signature)
    assert got.user_inputs == wanted.graph_signature.user_inputs
    assert [o.kind.name for o in got.output_specs] == [o.kind.name for o in wanted.graph_signature.output_specs]
    assert len(program.range_constraints) == len(wanted.range_constraints)
    program.validate()


SIZED = {
    "mlp": [1, 2, 7], "cnn_eval": [1, 3], "cnn_train": [3], "transformer_encoder": [1, 4], "views": [2, 7], "einsum": [1, 5],
    "interpolate": [1, 3], "normalisations": [1, 4], "reductions": [1, 6], "shared_weights": [1, 2], "branch_on_size": [2, 9],
    "convolutions": [1, 5], "attention_with_mask": [1, 4],
}  # fmt: skip


@pytest.mark.parametrize("name", SIZED)
def test_other_sizes(name):
    theirs, args, kwargs, _, _, our_args, our_kwargs, program = exported(name)
    module = program.module()
    for size in SIZED[name]:
        x = args[0]
        new = torch.randint(0, 7, (size, *x.shape[1:])) if x.dtype == torch.int64 else torch.randn(size, *x.shape[1:])
        compare(module(as_taeda(new), *our_args[1:], **our_kwargs), copy.deepcopy(theirs)(new, *args[1:], **kwargs))


def kinds(signature):
    """The outputs that are written back, and those that are results."""
    return [(o.kind.name, o.target) for o in signature.output_specs]


def is_write(node):
    name = getattr(node.target, "__name__", "")
    return name == "setitem" or (name.endswith("_") and not name.endswith("__"))


@pytest.mark.parametrize("name", MODELS)
def test_decomposed(name):
    theirs, args, kwargs, sizes, _, our_args, our_kwargs, program = exported(name)
    fewer = program.run_decompositions()
    fewer.validate()
    assert not any(is_write(n) for n in fewer.graph.nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = torch.export.export(theirs, copy.deepcopy(args), kwargs, dynamic_shapes=sizes).run_decompositions({})
    assert sorted(map(str, kinds(fewer.graph_signature))) == sorted(map(str, kinds(wanted.graph_signature)))
    module, x, y = fewer.module(), copy.deepcopy(args), copy.deepcopy(our_args)
    for _ in range(2):  # buffers and arguments are written back
        compare(module(*y, **our_kwargs), theirs(*x, **kwargs))
        compare(y, x)
    for key, value in state_of(theirs).items():
        np.testing.assert_allclose(state_of(module)[key], value, **EXACT)


@pytest.mark.parametrize("name", SIZED)
def test_decomposed_at_other_sizes(name):
    theirs, args, kwargs, _, _, our_args, our_kwargs, program = exported(name)
    module = program.run_decompositions().module()
    for size in SIZED[name]:
        x = args[0]
        new = torch.randint(0, 7, (size, *x.shape[1:])) if x.dtype == torch.int64 else torch.randn(size, *x.shape[1:])
        compare(module(as_taeda(new), *our_args[1:], **our_kwargs), copy.deepcopy(theirs)(new, *args[1:], **kwargs))
