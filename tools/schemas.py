"""Writes ``taeda/aten/schemas.txt``: the signatures of PyTorch's native ops, and of TorchScript's, that taeda has.

    python tools/schemas.py     # needs PyTorch, whose registry is read

Signatures have their notes on aliasing. Dictionaries' come once for all types of key. A ``~`` stands before those of
ops that PyTorch always computes by others.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

import taeda  # the checkout's: see PYTHONPATH
from taeda.jit.schemas import find_function

FILE = Path(taeda.__file__).parent / "aten" / "schemas.txt"
_LEFT_OUT = re.compile(r"Dimname|mkldnn_|AnyClass|Await|filename|\((int|bool|float|complex|Tensor), t(Val)?\)")


def _is_composite(label: str) -> bool:
    """Whether the op has a kernel that calls other ops, and none of its own for the CPU."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    try:
        return has(label, "CompositeImplicitAutograd") and not (
            has(label, "CPU") or has(label, "CompositeExplicitAutograd")
        )
    except RuntimeError:  # an op of TorchScript's language
        return False


def lines() -> list[str]:
    found: dict[str, str] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        text = str(schema)
        if (
            space not in ("aten", "prim")
            or _LEFT_OUT.search(text)
            or find_function(space, name, schema.overload_name) is None
        ):
            continue
        text = text.replace("SymInt", "int").replace("-> ((str, t)[])", "-> (str, t)[]")
        text = text.replace("tolist(...) -> ...", "tolist(Tensor self) -> Any")
        if "(str, t" in text:  # the one of str keys stands for all
            text = text.replace("(str, t", "(k, t").replace("-> str[]", "-> k[]")
            text = re.sub(r"\bstr((\([^()]*\))? (key|idx))\b", r"k\1", text)
        label = text[: text.index("(")]
        found[text] = "~" if _is_composite(label) else ""
    return [found[text] + text for text in sorted(found)]


def main() -> None:
    FILE.write_text("".join(f"{line}\n" for line in lines()))


if __name__ == "__main__":
    main()
