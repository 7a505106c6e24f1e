"""Writes the table of canonical ops, ``docs/canonical.md``, from their stanzas.

python tools/canonical.py            # write it
python tools/canonical.py --check    # for CI: exit code 1 where it is out of date
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if any((ROOT / "taeda" / "_core").glob("tensor*.so")):
    sys.path.insert(0, str(ROOT))

from taeda._core import Op
from taeda.export._decompose import is_canonical
from taeda.export._functions import table

PAGE = ROOT / "docs" / "canonical.md"
HEADER = """# Canonical ops

Written by `tools/canonical.py` from the stanzas with the trait `canonical`.
[Decomposed programs](export.md#fewer-ops-no-writes) are written in these {count} ops, after PyTorch's core ATen set,
with the arguments that they have in [the reference](reference.md). Names without a space are those of `taeda` and of
the Tensor. Parts of tuples, indexing (`operator.getitem`), sizes and steps of control flow come on top. What else may
remain, and what PyTorch leaves of it, is in [the tables of conformance](conformance.md#exported-programs).

| family | ops |
|---|---|
"""


def families() -> dict[str, list[str]]:
    """The names of canonical ops by the first sentence of their module."""
    names = defaultdict(list)
    for name, function in table().items():
        if is_canonical(function) and not name.endswith("_"):
            names[function].append(name.removeprefix("op.").removeprefix("Tensor."))
    found = defaultdict(set)
    for function, known in names.items():
        own = function.__name__.rstrip("_")
        name = next((n for n in reversed(known) if n.rpartition(".")[2] == own), known[-1])
        wrapped = function.__wrapped__ if isinstance(function, Op) else function
        module = importlib.import_module(
            wrapped.__module__ if wrapped.__module__ in sys.modules else "taeda.nn.functional"
        )
        found[(module.__doc__ or "").split(":")[0].split(".")[0].replace("``", "`").replace("\n", " ")].add(name)
    return {family: sorted(ops) for family, ops in sorted(found.items())}


def page() -> str:
    """The text of the page."""
    rows = families()
    lines = [f"| {family} | {', '.join(f'`{op}`' for op in ops)} |" for family, ops in rows.items()]
    return HEADER.format(count=len({op for ops in rows.values() for op in ops})) + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="do not write; fail where the page is out of date")
    text = page()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date: run python tools/canonical.py")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
