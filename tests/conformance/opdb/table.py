"""The counts of a sweep as a table per family, and the list of differences."""

from __future__ import annotations

from .exceptions import META


def unexpected(result: dict, meant: dict) -> dict:
    """Failures of a result that are not listed as meant, without failures of the database itself."""
    allowed = meant.get(result["op"], {})
    return {kind: lines for kind, lines in result["failures"].items() if kind not in allowed and kind != "database"}


#: The first part of the page; what follows it is written by hand.
PAGE = """# Agreement with PyTorch's operator database

PyTorch ships a database of its operators (`torch.testing._internal.common_methods_invocations.op_db`): dtypes, sample
inputs, forms and inputs that must fail. `tests/conformance/opdb/` runs its {entries} public entries (without the private,
sparse, quantised, jiterator and scaled-mm ones) on taeda, each with every dtype that PyTorch's CPU build supports. It
compares values, dtypes, sizes, aliasing and strides of views, `out=`, in-place and method forms, gradients, second
gradients and exception types. A value passes within a relative tolerance of 1.3e-5 (float32), 1e-7 (float64), 2e-3
(float16) or 1.6e-2 (bfloat16), or if its error against double precision is at most twice PyTorch's. For equal elements,
sorting may return any of their indices.

    python -m tests.conformance.opdb --samples {samples} --table docs/conformance.md   # this page
    pytest tests/conformance/opdb                                        # two samples an entry and dtype
    pytest tests/conformance/opdb -m sweep                               # all samples

With {samples} samples for each entry and dtype, **{agree} of {entries} entries agree in everything**.
The {listed} others differ as listed below. The columns from "value" on count comparisons.

{table}
## What differs

A last part of a name is that of a variant. "the same" repeats the reason above.

| entry | check | difference |
|---|---|---|
{rows}
## Transformations

`pytest tests/conformance/test_transforms.py` (`-m sweep`: all samples) compares these transformations of every entry,
and of every layer in PyTorch's database of modules, with a Python loop: `vmap` (mixtures of mapped and other arguments,
nested), `vmap(grad)`, several cotangents (`jacrev`), several tangents (`jacfwd`, "push") and `jvp` of `vjp` (`hessian`,
"second"). Nothing differs.

## Device meta

`pytest tests/conformance/test_meta.py` compares sizes, strides and dtypes of results and gradients on device meta with
PyTorch's, or with those of PyTorch's CPU where it does not support meta. What differs:

| entry | difference |
|---|---|
{meta}
"""


def page(results: list[dict], meant: dict, samples: int) -> str:
    """The first part of the page of the docs: the counts and every listed difference."""
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
    lines = ["| family | entries | agree | " + " | ".join(kinds) + " |", "|---|---|---|" + "---|" * len(kinds)]
    total = [0, 0] + [0] * len(kinds)
    for family, found in sorted(families.items()):
        agree = sum(not unexpected(r, meant) and not meant.get(r["op"]) for r in found)
        counts = [sum(r["counts"].get(kind, 0) for r in found) for kind in kinds]
        row = [len(found), agree, *counts]
        total = [a + b for a, b in zip(total, row, strict=True)]
        lines.append(f"| {family} | " + " | ".join(str(x) for x in row) + " |")
    lines.append("| **all** | " + " | ".join(f"**{x}**" for x in total) + " |")
    return "\n".join(lines) + "\n"
