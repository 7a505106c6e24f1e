"""Docstrings of ops: the text that a stanza leaves out is added when the docstring is read.

A stanza describes what the op computes and the arguments that are particular to it, and gives an example. The rest
follows from its parameters and traits: the arguments that mean the same in every op (``out``, ``keepdim``,
``generator``, ...), the sizes and the dtype of the result of a pointwise op, and the text for in-place forms and for
copies of views. "Arguments as of :func:`sum`." takes the arguments from there that the stanza leaves out, "The rest as
of :func:`sum`." the result and the errors too.
"""

from __future__ import annotations

import inspect
import operator
import re
import sys
import textwrap
from typing import Any

from .._core import Op
from .registry import OPS, op_of
from .traits import trait

#: The meaning of parameters with these names, unless the stanza says more.
_ARGUMENTS = {
    "input": "a tensor of any sizes.",
    "out": "a tensor that the result is written to, resized where it has other sizes. Its dtype must hold the "
    "result's. Not with arguments that require grad.",
    "keepdim": "keep each reduced dimension, with size 1.",
    "generator": "a :class:`Generator` to draw from. Default: the global one, which :func:`manual_seed` seeds.",
    "requires_grad": "whether operations on the result are recorded for a backward pass.",
    "device": 'where the result is, such as ``"cpu"`` or ``"meta"``. Default: that of :func:`set_default_device`.',
    "layout": "``taeda.strided`` (default), or a sparse layout where it makes sense.",
    "pin_memory": "accepted for compatibility: True is an error, as there is no device to pin memory for.",
    "memory_format": "order of the dimensions in memory. Default: that of ``input``.",
    "reduction": '``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.',
    "size_average": "older form of ``reduction``.",
    "reduce": "older form of ``reduction``.",
    "inplace": "overwrite ``input``, and give it back.",
    "check_errors": "raise an error where ``info`` is not 0.",
    "cudnn_enabled": "accepted for compatibility.",
    "cudnn_enable": "accepted for compatibility.",
}
#: And in functions that make tensors, which have a parameter ``layout``: without, or with, an ``input`` to be like.
_OF_FACTORIES = {
    "dtype": {
        False: "dtype of the result. Default: that of :func:`get_default_dtype`.",
        True: "dtype of the result. Default: that of ``input``.",
    },
    "device": {True: "where the result is. Default: where ``input`` is."},
    "layout": {True: "layout of the result. Default: that of ``input``."},
}
_INPLACE = """In-place form of :func:`{name}`: ``input`` is overwritten with the result and given back.

``input`` keeps its sizes and its dtype, so the other arguments must broadcast to its sizes.
"""
_INPLACE_RAISES = (
    "    RuntimeError: the result has other sizes than ``input`` or a dtype that cannot be cast to its own; or\n"
    "        ``input`` is a leaf that requires grad."
)
_RESULT = {"same": "{}", "bool": "``bool``", "real": "{}; for complex numbers that of their parts"}
_KINDS = {"bool": "bools", "int": "integers", "float": "floating-point numbers", "complex": "complex numbers"}
_SECTIONS = ("Args", "Returns", "Raises", "Examples")
_HEADER = re.compile(r"^(\w+):$")
_FORM = re.compile(r"In-place form of :func:`(?:taeda\.)?(\w+)`\.?\s*$")
_COPY = re.compile(r"A copy of what :func:`(\w+)` views\.\s*$")
_AS = re.compile(r"\s*(Arguments|The rest) as of\s+:func:`(?:taeda\.)?([\w.]+)`\.")
#: Results that show elements of an operand, and those of which the text says the dtype.
_VIEWS = re.compile(r"\b[Vv]iews?\b")
_SAYS_DTYPE = re.compile(r"\bdtypes?\b|\b(?:real|complex|integers?|bools?|u?int\d+|float\d+)\b")
_ENTRY = re.compile(r"^ {4}\*{0,2}(\w+(?:, \*{0,2}\w+)*):(?: |$)")


def completed(function: Any) -> str | None:
    """The docstring of an op or a composite: its stanza's text and the parts that follow from the stanza."""
    own = vars(function).get("__doc__")
    named = op_of(function)
    if named is not function:
        return named.__doc__
    if own is None:
        return None
    text, sections = _parts(inspect.cleandoc(own))
    names = _parameters(function)
    form, copy = _FORM.match(text), _COPY.match(text)
    if form and form[1] in OPS:
        text = _INPLACE.format(name=form[1])
        _, sections = _parts(OPS[form[1]].__doc__ or "")
        sections = {"Args": sections.get("Args", []), "Raises": sections.get("Raises") or [_INPLACE_RAISES]}
        names = [name for name in names if name != "out"]
    elif copy and copy[1] in OPS:
        text = f"A copy of what :func:`{copy[1]}` views, in memory of its own."
        _, sections = _parts(OPS[copy[1]].__doc__ or "")
        calls = f"taeda.{copy[1]}("
        if any(calls in line for line in sections.get("Examples", [])):
            sections["Examples"] = [line.replace(calls, f"taeda.{copy[1]}_copy(") for line in sections["Examples"]]
        sections["Returns"] = ["    The sizes and the dtype of the view; a tensor of its own, or a tuple of them."]
        names = [*_entries(sections.get("Args", [])), "out"]
    else:
        rule = vars(function).get("result_rule")
        if rule is not None and rule[1] != "none" and "Returns" not in sections:
            sections["Returns"] = _result(names[0], *rule)
        if sections and "Raises" not in sections:
            sections["Raises"] = _errors(function, rule, "out" in names)
        gives = " ".join(sections.get("Returns", []))
        if names[:1] == ["input"] and gives and not _SAYS_DTYPE.search(gives):
            if trait(function, "view") or trait(function, "moves") or _VIEWS.search(gives):
                sections["Returns"].append("    The dtype is that of ``input``.")
    given = _entries(sections.get("Args", []))
    other = _AS.search(text)
    if other:
        text = text[: other.start()] + text[other.end() :]
        home = sys.modules[__package__.partition(".")[0]]
        _, others = _parts(inspect.cleandoc(operator.attrgetter(other[2])(home).__doc__ or ""))
        given = _entries(others.get("Args", [])) | given
        if other[1] != "Arguments":
            sections = {name: others.get(name, []) for name in ("Returns", "Raises")} | sections
    if not sections:  # a short text stays short
        names = [name for name in names if name != "input"]
    entries = {name: given.get(name) or _common(function, name, names) for name in names}
    sections["Args"] = [line for lines in entries.values() for line in lines]
    parts = [text.rstrip()]
    for name in (*_SECTIONS, *[other for other in sections if other not in _SECTIONS]):
        if sections.get(name):
            parts.append("\n".join([f"{name}:", *sections[name]]))
    return "\n\n".join(parts) + "\n"


def _parts(doc: str) -> tuple[str, dict[str, list[str]]]:
    """The text of a docstring and the lines of its sections."""
    text: list[str] = []
    sections: dict[str, list[str]] = {}
    into = text
    for line in doc.splitlines():
        header = _HEADER.match(line)
        if header:
            into = sections.setdefault(header[1], [])
        else:
            if into is not text and line and not line.startswith(" "):
                into = text
                text.append("")
            into.append(line)
    for lines in sections.values():
        while lines and not lines[-1]:
            lines.pop()
    return "\n".join(text).rstrip(), sections


def _entries(lines: list[str]) -> dict[str, list[str]]:
    """The lines of each parameter of a list of arguments; an entry of several names stands for one of each."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines:
        entry = _ENTRY.match(line)
        if entry:
            names = entry[1].replace("*", "").split(", ")
            found.update({name: [f"    {name}:{line[entry.end(1) + 1 :]}"] for name in names})
        elif line:
            for name in names:
                found[name].append(line)
    return found


def _parameters(function: Any) -> list[str]:
    if isinstance(function, Op):
        names = list(function.params)
    else:
        names = list(inspect.signature(function).parameters)
    if trait(function, "has_out") and "out" not in names:
        names.append("out")
    return [name for name in names if not name.startswith("_")]


def _common(function: Any, name: str, names: list[str]) -> list[str]:
    """The entry of a parameter that the stanza says nothing of."""
    said = _ARGUMENTS.get(name)
    rule = vars(function).get("result_rule")
    if rule is not None and name in names[: rule[0]]:
        if rule[0] == 1:
            said = "a tensor of any sizes."
        elif name in trait(function, "tensors", ()):
            said = "a tensor; the inputs broadcast."
        else:
            said = "a tensor or a number; the inputs broadcast."
    elif "layout" in names:
        said = _OF_FACTORIES.get(name, {}).get("input" in names, said)
    if said is None:
        return []
    return textwrap.wrap(f"{name}: {said}", 112, initial_indent=" " * 4, subsequent_indent=" " * 8)


def _result(
    first: str, operands: int, promote: str, outs: tuple[str, ...], dtypes: tuple[str, ...] | None
) -> list[str]:
    """Lines that say the sizes and the dtype of a pointwise op's result.

    ``first`` is the name of the first operand. The other arguments are those of :func:`taeda.ops.table.pointwise`.
    """
    one = operands == 1
    computed = f"that of ``{first}``" if one else "``taeda.result_type`` of the inputs"
    if promote == "float":
        computed += " (for integers and bools the default floating-point dtype)"
    kinds = [_RESULT.get(out, f"``{out}``").format(computed) for out in outs]
    sizes = f"The sizes of ``{first}``" if one else "The sizes to which the inputs broadcast"
    lines = [f"    {sizes}. The dtype is {', and '.join(kinds)}."]
    if dtypes is not None and promote == "type":
        lines.append(f"    For {', '.join(_KINDS[kind] for kind in dtypes)}.")
    elif dtypes is not None and "complex" not in dtypes:
        lines.append("    Not for complex numbers.")
    return lines


def _errors(function: Any, rule: tuple | None, has_out: bool) -> list[str]:
    """Lines that say which errors follow from the traits of an op whose stanza says nothing of errors."""
    lines, reasons = [], []
    if rule is not None:
        operands, promote, _, dtypes = rule
        if dtypes is not None and promote == "type":
            lines.append("    NotImplementedError: a dtype of another kind.")
        elif dtypes is not None and "complex" not in dtypes:
            lines.append("    NotImplementedError: complex numbers.")
        if operands > 1:
            reasons.append("the inputs do not broadcast")
    if has_out:
        reasons.append("``out`` cannot hold the dtype of the result, or something requires grad")
    if reasons:
        lines.append(f"    RuntimeError: {'; or '.join(reasons)}.")
    return lines
