"""Entries of the operator database, and PyTorch's layers, written as ONNX give in onnxruntime what they give here."""

import re
import warnings

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import taeda
import taeda.onnx

from .opdb.checks import entries, tensors
from .opdb.written import LACKING, check, close
from .test_module_db import ENTRIES, call, inputs, is_lazy, pair

FEW = """
abs add addmm all amax any arange argmax atan2 baddbmm bmm bool broadcast_to cat clamp cummax cumsum diagonal
div.floor_rounding einsum expand fft.rfft fill flip floor_divide fmod gather index_add index_put index_select lerp
linalg.vector_norm log1p logcumsumexp logsumexp masked_fill matmul maximum mean median nan_to_num native_layer_norm
nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d nn.functional.batch_norm nn.functional.conv2d
nn.functional.conv_transpose2d nn.functional.cross_entropy nn.functional.embedding nn.functional.embedding_bag
nn.functional.gelu nn.functional.grid_sample nn.functional.group_norm nn.functional.interpolate.bilinear
nn.functional.interpolate.nearest nn.functional.max_pool2d nn.functional.pad.reflect
nn.functional.scaled_dot_product_attention nn.functional.unfold norm permute pow quantile remainder repeat roll
round scatter scatter_reduce.mean select_scatter slice softmax sort split squeeze stack std sum take topk tril
unbind unfold var_mean view where
""".split()


@pytest.mark.parametrize("name", FEW)
def test_entry(name):
    assert {"agrees"} <= set(check(entries()[name], 2)) <= {"agrees", "not recorded"}


def results(name, *options):
    """What came of the samples: nothing is wrong, and what ONNX lacks is expected to be lacking."""
    lacking = re.fullmatch(LACKING, name) is not None
    for result in check(entries()[name], *options):
        kind = result.partition(":")[0]
        assert kind in ("agrees", "not recorded", "no tensor") or (kind == "not in ONNX" and lacking), result
        yield kind


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_all_entries(name):
    assert list(results(name, 8)) is not None


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("name", FEW)
def test_opsets(name, opset):
    for result in check(entries()[name], 2, opset):
        assert result in ("agrees", "not recorded") or "from opset 18 on" in result or "from opset 20 on" in result


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_sizes_that_change(name):
    for result in check(entries()[name], 1, None, True):
        assert result.partition(":")[0] in ("agrees", "not recorded", "no tensor", "not in ONNX"), result


def layer(name, limit):
    """The samples of a layer, in evaluation, as ONNX."""
    for sample in inputs(ENTRIES[name], training=False, limit=limit):
        model, _ = pair(ENTRIES[name], sample, training=False)
        args, kwargs = call(sample.forward_input, "taeda")
        with warnings.catch_warnings(), taeda.no_grad():
            warnings.simplefilter("ignore")
            if is_lazy(model):
                model(*args, **kwargs)
            wanted = tensors(model(*args, **kwargs))
            program = taeda.onnx.export(model, tuple(args), kwargs=kwargs)
            got = program(*args, **kwargs)
        assert len(got) == len(wanted)
        for x, y in zip(got, wanted, strict=True):
            assert x.shape == y.shape and close(x, y)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_layer(name):
    layer(name, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(set(ENTRIES) - {"nn.CTCLoss", "nn.Transformer", "nn.TransformerEncoder"}))
def test_layers(name):
    layer(name, 8)
