"""``.pt2`` files that PyTorch writes load here, and give what the models give."""

from __future__ import annotations

import copy
import io
import warnings

import pytest

import taeda
import taeda.export
from taeda.io.archive import ArchiveReader

torch = pytest.importorskip("torch")
from .models import MODELS, OurPair, pair  # noqa: E402
from .test_archive import attempt, mutations, packed, restructured  # noqa: E402
from .test_like_pytorch import SIZED, as_taeda, compare  # noqa: E402

pair(taeda)
taeda.export._encoding.CLASSES["models.Pair"] = OurPair


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


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_files_of_pytorch(name, decomposed):
    module, args, kwargs, file = pt2(name, decomposed)
    program = taeda.export.load(file)
    forms = ("taeda",) if name == "embedding_bag" else ("taeda", "pt2")  # the sizes of its four results need values
    saved = {form: io.BytesIO() for form in forms}
    for form, again in saved.items():
        taeda.export.save(program, again, format=form)
        again.seek(0)
    ours = program.module()
    wanted = module(*copy.deepcopy(args), **kwargs)
    compare(ours(*as_taeda(copy.deepcopy(args)), **kwargs), wanted)
    for key, value in module.named_buffers():
        compare(ours.get_buffer(key), value)
    for form, again in saved.items():
        loaded = taeda.export.load(again)
        assert form == "pt2" or str(loaded) == str(program)
        compare(loaded.module()(*as_taeda(copy.deepcopy(args)), **kwargs), wanted)


@pytest.mark.parametrize("name", SIZED)
def test_other_sizes(name):
    module, args, kwargs, file = pt2(name)
    ours = taeda.export.load(file).module()
    for size in SIZED[name]:
        x = args[0]
        new = torch.randint(0, 7, (size, *x.shape[1:])) if x.dtype == torch.int64 else torch.randn(size, *x.shape[1:])
        compare(ours(as_taeda(new), **kwargs), copy.deepcopy(module)(new, *args[1:], **kwargs))


def test_fuzzed_files():
    for i, name in enumerate(("attention_with_mask", "conditional", "containers", "buffers")):
        *_, file = pt2(name)
        data = file.getvalue()
        archive = ArchiveReader(data)
        records = {key.partition("/")[2]: bytes(archive.read(key.partition("/")[2])) for key in archive.entries}
        text = records["models/model.json"]
        for damaged in mutations(data, 100, i):
            attempt(damaged)
        for damaged in [*mutations(text, 150, i), *restructured(text, 150, i)]:
            attempt(packed({**records, "models/model.json": damaged}))


def test_what_is_not_known_is_said():
    *_, file = pt2("mlp")
    archive = ArchiveReader(file.getvalue())
    records = {key.partition("/")[2]: bytes(archive.read(key.partition("/")[2])) for key in archive.entries}
    text = records["models/model.json"]
    for old, new, message in (
        (b"torch.ops.aten.relu.default", b"torch.ops.aten.no_such.default", "'no_such' of PyTorch is not known"),
        (b"torch.ops.aten.relu.default", b"os.system", "is no op that is known here"),
        (b"torch.ops.aten.relu.default", b"torch.ops.aten.from_file.default", "not known"),
        (b'"major": 8', b'"major": 9', "this reader knows 8"),
        (b"builtins.tuple", b"builtins.eval", "not registered"),
    ):
        assert old in text
        with pytest.raises(ValueError, match=message):
            taeda.export.load(io.BytesIO(packed({**records, "models/model.json": text.replace(old, new)})))
