"""The counts of a sweep as a table per family, and the list of what differs."""

from __future__ import annotations

from .exceptions import META


def unexpected(result: dict, meant: dict) -> dict:
    """Failures of a result that are not listed as meant; a failure of the database itself is none of ours."""
    allowed = meant.get(result["op"], {})
    return {kind: lines for kind, lines in result["failures"].items() if kind not in allowed and kind != "database"}


PAGE = """# Agreement with PyTorch's operator database

PyTorch ships a database of its operators (`torch.testing._internal.common_methods_invocations.op_db`): dtypes, sample
inputs, forms and inputs that must fail. `tests/conformance/opdb/` runs its {entries} public entries (without the private, sparse,
quantised, jiterator and scaled-mm ones) on taeda, each with every dtype that PyTorch's CPU build supports, and compares values,
dtypes, sizes, aliasing and strides of views, `out=`, in-place and method forms, gradients, second gradients and exception types. A value
passes within a relative tolerance of 1.3e-5 (float32), 1e-7 (float64), 2e-3 (float16) or 1.6e-2 (bfloat16), or if it is
at most twice as far from the result in double precision as PyTorch's is. Of equal elements, sorting may name any.

    python -m tests.conformance.opdb --samples {samples} --table docs/conformance.md   # this page
    pytest tests/conformance/opdb                                        # two samples an entry and dtype
    pytest tests/conformance/opdb -m sweep                               # all samples

With {samples} samples for each entry and dtype, **{agree} of {entries} entries agree in everything** and {listed} differ in what is listed
below. The columns from "value" on count comparisons.

{table}
## What differs

A name at the end is the variant's. "the same" repeats the reason above.

| entry | check | difference |
|---|---|---|
{rows}
## Transformations

`pytest tests/conformance/test_transforms.py` (`-m sweep`: all samples) compares `vmap` (mixtures of mapped and other arguments, nested),
`vmap(grad)`, several cotangents (`jacrev`), several tangents (`jacfwd`, "push") and `jvp` of `vjp` (`hessian`, "second") of every entry
and of every layer in PyTorch's database of modules with a loop. Nothing differs.

## Device meta

`pytest tests/conformance/test_meta.py` compares sizes, strides and dtypes of results and gradients on device meta with those that
PyTorch has there, or on the CPU where it has none. What differs:

| entry | difference |
|---|---|
{meta}
## ONNX

`pytest tests/onnx -m sweep` runs the cases of `onnx.backend.test` (onnx 1.23) that need no download on `taeda.onnx.load`:

| cases | number | pass |
|---|---|---|
| node | 1884 | 1867 |
| networks with constants for weights | 9 | 9 |
| simple | 23 | 23 |
| converted from PyTorch | 82 | 82 |
| operators of PyTorch | 35 | 35 |
| **all** | **2033** | **2016** |

What does not pass:

| cases | number | difference |
|---|---|---|
| `bernoulli*`, `training_dropout*` but with a ratio of 0 | 10 | the numbers drawn are those of NumPy's generator |
| `dft`, `dft_axis`, `dft_opset19`, `dft_axis_opset19` | 4 | float32 transforms: 2e-6 where double precision, as in the reference, gives 0 |
| `basic_deform_conv_with_padding` | 1 | float32 coordinates: 2e-7 where exact ones give 0 |
| `attention_4d_causal_fp16_expanded` | 1 | float16: 2 of 192 elements are the next number |
| `loop16_seq_none` | 1 | the test compares a sequence that has a number with `len()` |

`tests/onnx/test_runtime.py` compares with onnxruntime: models that PyTorch writes, by both of its exporters (within 1e-5), and
ops with options that the cases above have little of. onnxruntime differs in LabelEncoder of NaN, in the labels of trees
that score both of two classes, in `Resize` with `align_corners` and scales, and in `auto_pad` where the step is larger than the
window; there, ONNX's text is followed.

## Written as ONNX

`python -m tests.conformance.opdb.written "" 8` writes up to 8 samples of each entry of the operator database, of one
dtype, float32 where there is one, by `taeda.onnx.export` at opset 20, checks them by the package onnx and runs them in
onnxruntime 1.32. An entry counts if all of its samples agree: shapes, dtypes, and values to 1e-4 of each number, or of
the largest one if that is below 1 or the op is a Fourier transform (of random numbers only shapes and dtypes).

| entries | number |
|---|---|
| written, and agree | 551 |
| differ | 0 |
| refused: factors, inverses, powers and eigenvalues of matrices | 50 |
| refused: special functions (Bessel, orthogonal polynomials, `zeta`, `polygamma`, `igamma`, `erfcx`, `log_ndtr`) | 33 |
| refused: others, listed below | 14 |
| not recorded for some sample by `taeda.export`: sizes that depend on values | 27 |
| no tensor as a result, or no sample | 5 |

The others are `cov` with weights, `istft`, `frexp`, `nextafter`, `nanquantile`, `multinomial` without replacement,
`resize_as_`, `nonzero_static`, `hash_tensor`, `ctc_loss`, alpha dropout in training (2 entries), and transposed
convolutions whose `output_padding` is larger than their stride and padding (2). With one sample an entry and opset 17,
553 agreed; with two samples and all sizes dynamic that the op allows to be, 467 agreed. No value differed in either;
the rest raised an error.

Every layer in PyTorch's database of modules (all but `CTCLoss`), in evaluation, agrees in one sample; 111 of 114 in up
to 8 (`Transformer` and `TransformerEncoder` read their mask in Python in one of the samples).
`tests/onnx/test_export.py` has models as people write them, at opsets 17, 20 and 23 and at other sizes than the
example's: a residual and a mobile CNN, a U-Net, BERT, GPT-2 and Llama with caches, ViT, Whisper, recurrent taggers.
"""


def page(results: list[dict], meant: dict, samples: int) -> str:
    """The page of the docs: the counts and every listed difference."""
    rows = [
        f"| `{name}` | {', '.join(kinds)} | {'; '.join(dict.fromkeys(kinds.values()))} |\n"
        for name, kinds in meant.items()
    ]
    agree = sum(not unexpected(r, meant) and not meant.get(r["op"]) for r in results)
    return PAGE.format(
        entries=len(results),
        samples=samples,
        agree=agree,
        listed=len(meant),
        table=table(results, meant),
        rows="".join(rows),
        meta="".join(f"| `{name}` | {why} |\n" for name, why in META.items()),
    )


def table(results: list[dict], meant: dict) -> str:
    families: dict[str, list[dict]] = {}
    for result in results:
        families.setdefault(result["family"] or "crashed", []).append(result)
    kinds = ("value", "view", "out", "inplace", "method", "gradient", "second", "error")
    lines = [
        "| family | entries | agree | " + " | ".join(kinds) + " |",
        "|---|---|---|" + "---|" * len(kinds),
    ]
    total = [0, 0] + [0] * len(kinds)
    for family, found in sorted(families.items()):
        agree = sum(not unexpected(r, meant) and not meant.get(r["op"]) for r in found)
        counts = [sum(r["counts"].get(kind, 0) for r in found) for kind in kinds]
        row = [len(found), agree, *counts]
        total = [a + b for a, b in zip(total, row, strict=True)]
        lines.append(f"| {family} | " + " | ".join(str(x) for x in row) + " |")
    lines.append("| **all** | " + " | ".join(f"**{x}**" for x in total) + " |")
    return "\n".join(lines) + "\n"
