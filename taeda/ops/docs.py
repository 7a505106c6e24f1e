"""What the docstring of a pointwise op says that follows from its stanza: the sizes and the dtype of the result."""

from __future__ import annotations

import functools
from collections.abc import Sequence

_RESULT = {"same": "{}", "bool": "``bool``", "real": "{}; for complex numbers that of their parts"}
_KINDS = {"bool": "bools", "int": "integers", "float": "floating-point numbers", "complex": "complex numbers"}


def described(
    doc: str | None, operands: int, promote: str, outs: Sequence[str], dtypes: Sequence[str] | None
) -> str | None:
    """``doc`` with the sizes and the dtype of the result. Arguments as of :func:`taeda.ops.table.pointwise`."""
    if doc is None or "Returns:" in doc or promote == "none":
        return doc
    return doc.rstrip() + _result(operands == 1, promote, tuple(outs), None if dtypes is None else tuple(dtypes))


@functools.cache
def _result(one: bool, promote: str, outs: tuple[str, ...], dtypes: tuple[str, ...] | None) -> str:
    computed = "that of ``input``" if one else "``taeda.result_type`` of the inputs"
    if promote == "float":
        computed += " (for integers and bools the default floating-point dtype)"
    kinds = [_RESULT.get(out, f"``{out}``").format(computed) for out in outs]
    sizes = "The sizes of ``input``" if one else "The sizes to which the inputs broadcast"
    lines = [f"{sizes}. Dtype: {', and '.join(kinds)}."]
    if dtypes is not None and promote == "type":
        lines.append(f"For {', '.join(_KINDS[kind] for kind in dtypes)}.")
    elif dtypes is not None and "complex" not in dtypes:
        lines.append("Not for complex numbers.")
    return "\n".join(["", "", "    Returns:", *(f"        {line}" for line in lines)]) + "\n    "
