"""Counts what the docstrings of the public names say, for taeda and beside it for PyTorch and NumPy where installed.

    python tools/docs_coverage.py                     # a table per package, a row per namespace
    python tools/docs_coverage.py --missing example nn.functional    # the names that lack something

Columns: names; those with a docstring (doc); with an Args section that names every parameter (args); whose shapes or
sizes are stated (shape), whose dtypes are (dtype), whose errors are (raises); with an example (example). In-place
forms, older names and what is refused say so in one line, and are left out of taeda's rows: their text is derived. The
parameter ``out`` means the same everywhere and need not be named. Names with the same text count each.

``tests/test_docstrings.py`` runs the examples that are found here.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if any((ROOT / "taeda" / "_core").glob("tensor*.so")):
    sys.path.insert(0, str(ROOT))

#: The namespaces of taeda, and of PyTorch beside it. ``Tensor`` is a class: its methods and attributes.
NAMESPACES = [
    "", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize",
    "nn.utils.prune", "nn.utils.rnn", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data", "func",
    "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "linalg", "fft", "special",
    "signal.windows", "sparse", "distributions", "distributions.constraints", "library", "profiler", "export",
]  # fmt: skip
NUMPY = ["", "linalg", "fft", "ndarray"]
COLUMNS = ["doc", "args", "shape", "dtype", "raises", "example"]

#: Docstrings that follow from another one, or say that something is not there.
DERIVED = re.compile(
    r"In-place form of|Refused:|Removed from PyTorch|Older name of|Storages of dtype|Tensors of dtype|Tensors on a GPU"
)
SHAPE = re.compile(
    r"\((?:\.\.\.|\*|[A-Z]\w*)(?:,[^)\n]*)?\)|\b[Ss]izes? of|\b[Ss]hapes?\b|\bscalar\b|broadcast|[-\d]-?D\b"
)
DTYPE = re.compile(r"\bdtypes?\b|floating.point|\bintegers?\b|\bbools?\b|\bcomplex\b|\b(?:u?int|b?float)\d+\b", re.I)
SECTION = re.compile(r"^\s*(?:Args|Arguments|Parameters|Keyword [Aa]rg\w*)\b:?", re.M)
FIELDS = re.compile(r"^\s*Attributes\b:?", re.M)


def public(package: str, namespace: str) -> dict[str, Any]:
    """The functions, classes and attributes with a docstring of their own of a namespace, by name."""
    home = importlib.import_module(package)
    if namespace in ("Tensor", "ndarray"):
        owner = getattr(home, namespace)
        found = {name: inspect.getattr_static(owner, name) for name in dir(owner)}
        if package == "torch":  # most come from a base
            found = {name: getattr(owner, name) for name in found}
        listed = None
    else:
        owner = importlib.import_module(f"{package}.{namespace}".rstrip("."))
        listed = getattr(owner, "__all__", None) if namespace else None
        found = {name: getattr(owner, name) for name in listed or dir(owner)}
    names = {}
    for name, value in sorted(found.items()):
        of_class = namespace in ("Tensor", "ndarray")
        other = getattr(value, "__module__", None)
        if name.startswith("_") or inspect.ismodule(value) or not (callable(value) or of_class):
            continue
        if (
            not of_class
            and not listed
            and isinstance(other, str)
            and other.partition(".")[0] not in (package, "builtins")
        ):
            continue  # typing.Any, say
        names[name] = value
    return names


def parameters(value: Any) -> list[str]:
    """The parameters that Args should name; what is called and has no signature has some that are not known."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ["?"] if callable(value) else []
    return [
        p.name
        for p in signature.parameters.values()
        if not p.name.startswith("_") and p.name not in ("self", "cls", "out")
        and not (p.name in ("args", "kwargs") and p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    ]  # fmt: skip


def unnamed(value: Any, doc: str, method: bool = False) -> list[str]:
    """The parameters that have no entry in a docstring's section of them. A method's first is the tensor itself."""
    names = parameters(value)[method:]
    named_tuple = isinstance(value, type) and issubclass(value, tuple)
    section = SECTION.search(doc) or (FIELDS.search(doc) if named_tuple else None)
    if section is None:
        return names
    text = doc[section.end() :]
    return [
        n for n in names if n != "?" and not re.search(rf"^\s*[\w*, ]*(?<!\w){n}\b[\w*, ]*(?:\(.*\)\s*)?:", text, re.M)
    ]


def unknown(value: Any, doc: str) -> list[str]:
    """The names in a docstring's section of parameters that ``value`` does not take."""
    section = SECTION.search(doc)
    try:
        taken = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    if section is None or not hasattr(value, "__name__"):  # an object's text is its class's
        return []
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in taken.values()):  # what they stand for may be named
        return []
    found, margin = [], None
    for line in doc[section.end() :].splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        margin = indent if margin is None else margin
        if indent < margin or indent == 0:  # the next section
            break
        entry = re.match(r"\s*((?:\*{0,2}\w+, )*\*{0,2}\w+)(?: \(.*?\))?:(?: |$)", line) if indent == margin else None
        found += [name.strip("* ") for name in entry[1].split(",")] if entry else []
    return [name for name in found if name not in taken and name not in ("args", "kwargs")]


def facts(value: Any, method: bool = False) -> dict[str, bool]:
    """What the docstring of ``value`` says, by column."""
    doc = inspect.getdoc(value) or ""
    return {
        "doc": bool(doc),
        "args": bool(doc) and not unnamed(value, doc, method),
        "shape": bool(SHAPE.search(doc)),
        "dtype": bool(DTYPE.search(doc)),
        "raises": bool(re.search(r"^\s*Raises\b", doc, re.M)),
        "example": ">>>" in doc,
    }


def derived(value: Any) -> bool:
    """Whether the docstring follows from another one."""
    return DERIVED.match(inspect.getdoc(value) or "") is not None


def rows(package: str, namespaces: list[str]) -> Iterator[tuple[str, dict[str, dict[str, bool]]]]:
    """Each namespace that is there, with the facts of its names."""
    for namespace in namespaces:
        try:
            names = public(package, namespace)
        except (ImportError, AttributeError):
            continue
        method = namespace in ("Tensor", "ndarray")
        yield namespace, {n: facts(v, method) for n, v in names.items() if package != "taeda" or not derived(v)}


def examples() -> Iterator[tuple[str, str, Any]]:
    """``(namespace, name, docstring)`` of each distinct text that has examples, methods of classes included."""
    seen = set()
    for namespace in NAMESPACES:
        for name, value in public("taeda", namespace).items():
            inside = vars(value) if isinstance(value, type) and namespace != "Tensor" else {}
            members = [(f"{name}.{n}", v) for n, v in inside.items() if not n.startswith("_")]
            for path, each in [(name, value), *members]:
                doc = inspect.getdoc(each) or ""
                if ">>>" in doc and doc not in seen:
                    seen.add(doc)
                    yield namespace, path, doc


def misnamed() -> dict[str, list[str]]:
    """By name, the parameters that a docstring names and that are not there; methods of classes included."""
    found = {}
    for namespace in NAMESPACES:
        for name, value in public("taeda", namespace).items():
            inside = vars(value) if isinstance(value, type) and namespace != "Tensor" else {}
            members = [(f"{name}.{n}", v) for n, v in inside.items() if not n.startswith("_")]
            for path, each in [(name, value), *members]:
                if not derived(each) and (names := unknown(each, inspect.getdoc(each) or "")):
                    found[f"{namespace}.{path}".lstrip(".")] = names
    return found


def table(package: str, namespaces: list[str]) -> str:
    """The counts of a package, a row per namespace."""
    lines = [f"{package:28}{'names':>7}" + "".join(f"{c:>9}" for c in COLUMNS)]
    total = [0] * (1 + len(COLUMNS))
    for namespace, names in rows(package, namespaces):
        counts = [len(names), *(sum(f[c] for f in names.values()) for c in COLUMNS)]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        lines.append(f"{namespace or '(root)':28}{counts[0]:7}" + "".join(f"{n:9}" for n in counts[1:]))
    lines.append(f"{'all':28}{total[0]:7}" + "".join(f"{n:9}" for n in total[1:]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", nargs="+", metavar=("COLUMN", "NAMESPACE"), help="list the names without it")
    missing = parser.parse_args().missing
    if missing:
        for namespace, names in rows("taeda", missing[1:] or NAMESPACES):
            print(f"{namespace or '(root)'}: {' '.join(n for n, f in names.items() if not f[missing[0]])}")
        return
    for package, namespaces in [("taeda", NAMESPACES), ("torch", NAMESPACES), ("numpy", NUMPY)]:
        if importlib.util.find_spec(package) is not None:
            print(table(package, namespaces), end="\n\n")


if __name__ == "__main__":
    main()
