"""Writes ``taeda/aten/schemas.txt``: the signatures of the ops that TorchScript names and taeda has.

    python tools/schemas.py     # needs PyTorch, whose registry is read

Signatures come without their notes on aliasing, dictionaries' once for all types of key.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

import taeda  # the checkout's: see PYTHONPATH
from taeda.jit.schemas import find_function

FILE = Path(taeda.__file__).parent / "aten" / "schemas.txt"
_ALIAS = re.compile(r"\((?:[a-e](?:\|[a-e])*!?|[a-e]!? -> \*|\*)\)")
_LEFT_OUT = re.compile(
    r"Dimname|Storage\b|Stream|_out\b|_backward|foreach|fused|cudnn_(?!enable)|miopen|mkldnn_|quantize_"
    r"|nested_(?!tensor_from_mask|from_padded)"
    r"|_copy$|_scatter$"
    r"|^aten::(q_|_test|_sparse|_mps|_cslt|fbgemm|_fw_|_make_dual|_philox|special_.*_scalar)|AnyClass|Await|filename"
)


def main() -> None:
    """Write the file."""
    lines = set()
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        text = str(schema)
        if space not in ("aten", "prim") or _LEFT_OUT.search(text) or "out" in schema.overload_name.split("_"):
            continue
        if any(a.is_out or (a.kwarg_only and a.alias_info and a.alias_info.is_write) for a in schema.arguments):
            continue
        if re.search(r"\((int|bool|float|complex|Tensor), t(Val)?\)", text):  # the one of str keys stands for all
            continue
        if find_function(space, name) is None:
            continue
        text = _ALIAS.sub("", text).replace("SymInt", "int").replace("-> ((str, t)[])", "-> (str, t)[]")
        if "(str, t" in text:
            text = re.sub(r"\bstr (key|idx)\b", r"k \1", text.replace("(str, t", "(k, t")).replace("-> str[]", "-> k[]")
        lines.add(text)
    FILE.write_text("".join(f"{line}\n" for line in sorted(lines)))


if __name__ == "__main__":
    main()
