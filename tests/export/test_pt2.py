"""``.pt2`` files that PyTorch writes load here, and give what the models give."""

from __future__ import annotations

import copy
import io
import warnings

import pytest

import taeda
import taeda.export

torch = pytest.importorskip("torch")
from .models import MODELS, OurPair, pair  # noqa: E402
from .test_like_pytorch import SIZED, as_taeda, compare  # noqa: E402

pair(taeda)
taeda.export._encoding.CLASSES["torch.Pair"] = OurPair


def pt2(name, decomposed=False):
    """A model of PyTorch, its arguments, and the bytes of its program."""
    module, args, kwargs, sizes = MODELS[name](torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, copy.deepcopy(args), kwargs, dynamic_shapes=sizes)
        program = program.run_decompositions({}) if decomposed else program
        file = io.BytesIO()
        torch.export.save(program, file)
    file.seek(0)
    return module, args, kwargs, file


@pytest.mark.parametrize("name", MODELS)
def test_files_of_pytorch(name):
    module, args, kwargs, file = pt2(name)
    program = taeda.export.load(file)
    ours = program.module()
    wanted = module(*copy.deepcopy(args), **kwargs)
    compare(ours(*as_taeda(copy.deepcopy(args)), **kwargs), wanted)
    for key, value in module.named_buffers():
        compare(ours.get_buffer(key), value)
    again = io.BytesIO()
    taeda.export.save(program, again)
    again.seek(0)
    assert str(taeda.export.load(again)) == str(program)


@pytest.mark.parametrize("name", SIZED)
def test_other_sizes(name):
    module, args, kwargs, file = pt2(name)
    ours = taeda.export.load(file).module()
    for size in SIZED[name]:
        x = args[0]
        new = torch.randint(0, 7, (size, *x.shape[1:])) if x.dtype == torch.int64 else torch.randn(size, *x.shape[1:])
        compare(ours(as_taeda(new), **kwargs), copy.deepcopy(module)(new, *args[1:], **kwargs))
