"""Counts what the docstrings of the public names say, for taeda and beside it for PyTorch and NumPy where installed.

    python tools/docs_coverage.py                     # a table per package, a row per namespace
    python tools/docs_coverage.py --missing example nn.functional    # the names that lack something

Columns: names; those with a docstring (doc); with an Args section that names every parameter (args); whose shapes or
sizes are stated (shape), whose dtypes are (dtype), whose errors are (raises); with an example (example). "3/4": three
of the four names to which a column applies. Of taeda's names, shape and dtype apply where a parameter or the result is
a tensor, by the types of the stub and the annotations (where these say nothing: by the text), not counting the tensor
whose method it is; raises applies where there is something to pass or to call. In-place
forms, older names and what is refused say so in one line, and are left out of taeda's rows: their text is derived. The
parameter ``out`` means the same everywhere and need not be named. Names with the same text count each.

``tests/test_docstrings.py`` runs the examples that are found here.
"""

from __future__ import annotations

import argparse
import ast
import enum
import functools
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
    r"\((?:\.\.\.|\*|[A-Z]\w*)(?:,[^)\n]*)?\)|\b[Ss]izes?(?: and the dtype)? (?:of|to which)\b|\b[Ss]hapes?\b"
    r"|\bscalar\b|broadcast|[-\d]-?D\b|``\([a-z]+(?:, [a-z]+)+\)``|\b[Ss]izes? ``|\b(?:same|those) sizes\b"
    r"|\b(?:vector|matrix)\b|\bwithout (?:dimensions|(?:the|that) dimension)"
)
#: Enough for what gives no tensor.
ANY_SHAPE = re.compile(r"\bany sizes\b")
TENSORS = re.compile(r"\b(?:[Tt]ensors?|matrix|matrices|vectors?)\b|``input``")
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


@functools.cache
def stub() -> dict[str, dict[str, list[ast.FunctionDef]]]:
    """The functions of the root's stub, and the methods and attributes of Tensor, each with its overloads."""
    found: dict[str, dict[str, list[ast.FunctionDef]]] = {"": {}, "Tensor": {}}
    tree = ast.parse((ROOT / "taeda" / "__init__.pyi").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor"]
    for namespace, body in [("", tree.body), ("Tensor", [each for node in classes for each in node.body])]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[namespace].setdefault(node.name, []).append(node)
    return found


def types(namespace: str, name: str, value: Any) -> tuple[list[str], list[str]]:
    """The types of parameters, without the tensor whose method it is, and of results; "Any" where not known."""
    stubs = stub().get(namespace, {}).get(name)
    if stubs:
        taken = [a for s in stubs for a in [*s.args.posonlyargs, *s.args.args, *s.args.kwonlyargs, s.args.vararg] if a]
        return (
            [ast.unparse(a.annotation) if a.annotation else "Any" for a in taken if a.arg not in ("self", "out")],
            [ast.unparse(s.returns) if s.returns else "Any" for s in stubs],
        )
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return [], ["Any"]
    empty = signature.empty
    result = "None" if isinstance(value, type) else signature.return_annotation
    taken = [p.annotation for p in signature.parameters.values() if p.name not in ("self", "cls", "out")]
    return ["Any" if t is empty else str(t) for t in taken], ["Any" if result is empty else str(result)]


def tensors(kinds: list[str], text: str) -> bool:
    """Whether one of these types is a tensor's, or is not known and the text speaks of tensors."""
    return any("Tensor" in k for k in kinds) or ("Any" in kinds and TENSORS.search(text) is not None)


def facts(
    value: Any, method: bool = False, taken: list[str] | None = None, given: list[str] | None = None
) -> dict[str, bool | None]:
    """What the docstring of ``value`` says, by column; None where a column does not apply, by the types ``taken`` and
    ``given``."""
    doc = inspect.getdoc(value) or ""
    text = doc.partition("Examples:")[0]
    made, with_tensors, callable_ = True, True, True
    if taken is not None and given is not None:
        named = isinstance(value, type) and issubclass(value, (BaseException, enum.Enum))
        with_forward = isinstance(value, type) and (hasattr(value, "forward") or hasattr(value, "sample"))
        made = tensors(given, text) or with_forward
        with_tensors = not named and (made or tensors(taken, text))
        callable_ = not named and (bool(taken) or (method and callable(value)))
    return {
        "doc": bool(doc),
        "args": bool(doc) and not unnamed(value, doc, method),
        "shape": bool(SHAPE.search(doc) or (not made and ANY_SHAPE.search(doc))) if with_tensors else None,
        "dtype": bool(DTYPE.search(doc)) if with_tensors else None,
        "raises": bool(re.search(r"^\s*Raises\b", doc, re.M)) if callable_ else None,
        "example": ">>>" in doc,
    }


def derived(value: Any) -> bool:
    """Whether the docstring follows from another one."""
    return DERIVED.match(inspect.getdoc(value) or "") is not None


def rows(package: str, namespaces: list[str]) -> Iterator[tuple[str, dict[str, dict[str, bool | None]]]]:
    """Each namespace that is there, with the facts of its names."""
    for namespace in namespaces:
        try:
            names = public(package, namespace)
        except (ImportError, AttributeError):
            continue
        method = namespace in ("Tensor", "ndarray")
        if package != "taeda":
            yield namespace, {n: facts(v, method) for n, v in names.items()}
        else:
            own = {n: v for n, v in names.items() if not derived(v)}
            yield namespace, {n: facts(v, method, *types(namespace, n, v)) for n, v in own.items()}


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
    lines = [f"{package:28}{'names':>7}" + "".join(f"{c:>11}" for c in COLUMNS)]
    every: list[dict[str, bool | None]] = []

    def row(name: str, found: list[dict[str, bool | None]]) -> str:
        """The counts: of all names, or "3/4" of those to which a column applies."""
        cells = [[f[c] for f in found if f[c] is not None] for c in COLUMNS]
        counts = [f"{sum(c)}" if len(c) == len(found) else f"{sum(c)}/{len(c)}" for c in cells]
        return f"{name:28}{len(found):7}" + "".join(f"{n:>11}" for n in counts)

    for namespace, names in rows(package, namespaces):
        every += names.values()
        lines.append(row(namespace or "(root)", list(names.values())))
    return "\n".join([*lines, row("all", every)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", nargs="+", metavar=("COLUMN", "NAMESPACE"), help="list the names without it")
    missing = parser.parse_args().missing
    if missing:
        for namespace, names in rows("taeda", missing[1:] or NAMESPACES):
            print(f"{namespace or '(root)'}: {' '.join(n for n, f in names.items() if f[missing[0]] is False)}")
        return
    for package, namespaces in [("taeda", NAMESPACES), ("torch", NAMESPACES), ("numpy", NUMPY)]:
        if importlib.util.find_spec(package) is not None:
            print(table(package, namespaces), end="\n\n")


if __name__ == "__main__":
    main()
