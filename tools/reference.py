"""Writes the reference page of the ops, ``docs/reference.md``, from the table of ops.

    python tools/reference.py            # write it
    python tools/reference.py --check    # for CI: exit code 1 where it is out of date

Per op: signature, first line of the docstring, which forms it has (method, in-place, ``out=``) and whether it has a
derivative. ``help(taeda.<op>)`` gives the whole docstring.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if any((ROOT / "taeda" / "_core").glob("tensor*.so")):
    sys.path.insert(0, str(ROOT))

import taeda
from taeda._core import REQUIRED, Op
from taeda.ops.table import METHODS, OPS

PAGE = ROOT / "docs" / "reference.md"
HEADER = """# The ops

Written by `tools/reference.py` from the table of ops. Names are those of `taeda`, `taeda.Tensor` and
`taeda.nn.functional`, as in PyTorch. *m*: also a method of the Tensor; *i*: also in place, with a trailing underscore;
*o*: takes `out=`; *g*: has a derivative of its own (what is written in other ops is differentiated through them).
"""


def signature(target: Any) -> str:
    """The parameters as one writes them in a call."""
    if not isinstance(target, Op):
        parameters = inspect.signature(target).parameters.values()
        return ", ".join(str(p.replace(annotation=p.empty)) for p in parameters)
    code = target.__wrapped__.__code__
    parts = [n if d is REQUIRED else f"{n}={d!r}" for n, d in zip(target.params, target.defaults, strict=True)]
    keyword = parts[code.co_argcount :]
    return ", ".join([*parts[: code.co_argcount], *(["*"] if keyword else []), *keyword])


def forms(name: str, target: Any) -> str:
    """The letters of the forms."""
    letters = "m" if name in METHODS else ""
    letters += "i" if name + "_" in OPS else ""
    if isinstance(target, Op):
        letters += "o" if target.traits.get("has_out") else ""
        letters += "g" if target.differentiable else ""
    elif getattr(target, "has_out", False):
        letters += "o"
    return letters


def generate() -> str:
    """The whole page."""
    families: dict[str, list[str]] = defaultdict(list)
    docs: dict[str, str] = {}
    for name, target in sorted(OPS.items()):
        if name.startswith("_") or (name.endswith("_") and name[:-1] in OPS):
            continue
        if not (name in METHODS or hasattr(taeda, name) or hasattr(taeda.nn.functional, name)):
            continue
        module = target.__module__
        docs[module] = (sys.modules[module].__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        summary = (target.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        summary = " ".join(summary.split())
        call = f"{name}({signature(target)})".replace("|", "\\|")
        families[module].append(f"| `{call}` | {forms(name, target)} | {summary} |")
    parts = [HEADER]
    for module, lines in sorted(families.items()):
        path = module.replace(".", "/") + (".pyx" if "._core." in module else ".py")
        parts.append(f"## {path}\n\n{docs[module]}\n\n| op | forms | what |\n|---|---|---|\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    text = generate()
    if not check:
        PAGE.write_text(text)
        print(f"{PAGE.relative_to(ROOT)}: {text.count(chr(10) + '| `')} ops")
    elif not PAGE.exists() or PAGE.read_text() != text:
        print(f"{PAGE.relative_to(ROOT)} is out of date: run python tools/reference.py")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
