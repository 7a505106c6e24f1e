"""Losses that are given arguments of another size, dtype, kind or range: the same outcome as in PyTorch."""

import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

import taeda  # noqa: E402

from .bad_calls import calls, difference, variants  # noqa: E402

LOSSES = {n: c for n, c in calls() if re.search("loss|entropy|kl_div|distance|similarity", n)}
QUICK = (
    "huber_loss",
    "gaussian_nll_loss",
    "soft_margin_loss",
    "multilabel_margin_loss",
    "cross_entropy of probabilities",
)

#: By loss, the variants whose outcome is another on purpose.
KEPT = {
    "binary_cross_entropy_with_logits": "argument 1: complex64",  # the loss of a complex target has no meaning
    "multi_margin_loss": "argument 0: bfloat16|no rows|margin: nan",  # PyTorch gives what memory held for no rows
    "multilabel_margin_loss": "argument 1: complex64|no rows",
    "nll_loss 2d": "weight: one more dimension",
    "cross_entropy": "label_smoothing: (-1|nan)|arguments 0 and 1: bool",  # PyTorch asks only for more than 1
    "cross_entropy of probabilities": "label_smoothing: (-1|nan)",
    "ctc_loss": "one column|out of range|negative|of size 1",  # PyTorch reads beyond the end of the classes
    "cosine_similarity": "dim: True",
}


def check(name):
    args, kwargs = LOSSES[name]
    kept = KEPT.get(name)
    found = {what: difference(name.split()[0], a, k) for what, a, k in variants(args, kwargs)}
    wrong = [f"{what}: {d}" for what, d in found.items() if d and not (kept and re.search(kept, what))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", QUICK)
def test_loss(name):
    check(name)


@pytest.mark.sweep
@pytest.mark.parametrize("name", LOSSES)
def test_loss_all(name):
    check(name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_attention_takes_a_mask_of_float32(dtype):
    """Also one whose numbers the queries' dtype does not have, as that of padding is."""
    results = []
    for t in (torch, taeda):
        query, key = (t.arange(24.0).view(1, 2, 3, 4) / 10, t.arange(40.0).view(1, 2, 5, 4) / 30)
        mask = t.tensor([[0.0, 1, 2, 3, 5], [-3.4e38] * 5, [0, -3.4e38, 1, 0, 0]])
        query, key = query.to(getattr(t, dtype)), key.to(getattr(t, dtype))
        results.append(t.nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=mask))
    assert str(results[1].dtype) == f"taeda.{dtype}"
    assert results[1].double().flatten().tolist() == pytest.approx(results[0].double().flatten().tolist(), abs=0.01)
