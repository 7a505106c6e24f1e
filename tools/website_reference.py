"""Writes the reference pages of the website, in reStructuredText, from the op table and the docstrings.

A page for each distinct text: a function with its method, in-place and other forms, or a class with its methods. A page
for each namespace, and for each family of a large one, lists what it has. ``tools/website.py`` calls this.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docs_coverage
import reference
from sphinx.ext.napoleon import Config, GoogleDocstring

import taeda
from taeda._core import Op
from taeda.export._decompose import is_canonical
from taeda.ops.table import OPS

NAPOLEON = Config(napoleon_custom_sections=[("Shape", "params_style"), "Events"], napoleon_use_rtype=False)
#: Namespaces with more pages than this are divided into families, by the modules that define their names.
LARGE = 45
TITLES = {
    "": "Functions and types", "Tensor": "Tensor", "nn": "Layers and losses", "nn.functional": "Layers as functions",
    "nn.init": "Initial weights", "nn.utils": "Helpers for models", "nn.utils.parametrizations": "Parametrisations",
    "nn.utils.parametrize": "Parametrisation", "nn.utils.prune": "Pruning", "nn.utils.rnn": "Packed sequences",
    "optim": "Optimisers", "optim.lr_scheduler": "Learning rates", "optim.swa_utils": "Averaged weights",
    "utils.data": "Data", "func": "Transforms", "autograd": "Differentiation", "autograd.functional": "Derivatives",
    "autograd.graph": "The graph", "autograd.forward_ad": "Forward mode", "linalg": "Linear algebra",
    "fft": "Fourier transforms", "special": "Special functions", "signal.windows": "Windows",
    "sparse": "Sparse tensors", "distributions": "Distributions", "distributions.constraints": "Constraints",
    "library": "Ops of your own", "profiler": "Profiler", "export": "Export", "kernel": "Kernels of your own",
    "amp": "Mixed precision", "utils": "Pictures, summaries, checks", "distributed": "Several processes",
    "distributed.checkpoint": "Checkpoints of several processes", "distributed.tensor": "Sharded tensors",
    "distributed.fsdp": "Sharded models", "onnx": "ONNX", "jit": "TorchScript", "fx": "Graphs of programs",
}  # fmt: skip
NAMESPACES = [
    *docs_coverage.NAMESPACES, "kernel", "amp", "utils", "distributed", "distributed.checkpoint", "distributed.tensor",
    "distributed.fsdp", "onnx", "jit", "fx",
]  # fmt: skip


@dataclass
class Entry:
    """A name with a page: what it is, where its page lies, and the other names with the same text."""

    namespace: str
    name: str
    value: Any
    doc: str
    forms: list[tuple[str, str, Any]] = field(default_factory=list)
    file: str = ""

    @property
    def path(self) -> str:
        return qualified(self.namespace, self.name)


def qualified(namespace: str, name: str) -> str:
    return ".".join(part for part in ("taeda", namespace, name) if part)


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, in one line."""
    paragraph = " ".join((text or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[^.\s])[.](?= [A-Z`:])", paragraph)[0]


def collect() -> tuple[list[Entry], dict[str, list[tuple[str, Any]]]]:
    """The entries, and by namespace the names that refer to something else: refused, older, in place of nothing."""
    by_text: dict[str, Entry] = {}
    by_path: dict[str, Entry] = {}
    later = []
    for namespace in NAMESPACES:
        for name, value in docs_coverage.public("taeda", namespace).items():
            doc = inspect.getdoc(value) or ""
            if not doc:
                continue
            if docs_coverage.derived(value):
                later.append((namespace, name, value, doc))
            elif doc in by_text:
                by_text[doc].forms.append((namespace, name, value))
                by_path[qualified(namespace, name)] = by_text[doc]
            else:
                by_text[doc] = by_path[qualified(namespace, name)] = Entry(namespace, name, value, doc)
    others = defaultdict(list)
    for namespace, name, value, doc in later:
        found = re.match(r"In-place form of :\w+:`~?([\w.]+)`", doc)
        stem = found[1] if found else ""
        home = next(
            (
                by_path[path]
                for n in (namespace, "", "Tensor", "nn.functional")
                if (path := qualified(n, stem)) in by_path
            ),
            None,
        )
        if home is not None and found:
            home.forms.append((namespace, name, value))
        else:
            others[namespace].append((name, value))
    used: set[str] = set()
    for entry in by_text.values():  # on some systems Tensor and tensor would be one file
        folder = entry.namespace.replace(".", "/").lower() or "taeda"
        entry.file = f"{folder}/{entry.name}"
        while entry.file.lower() in used or entry.file.endswith("/index"):
            entry.file += "-"
        used.add(entry.file.lower())
    return list(by_text.values()), others


def signature(value: Any, method: bool = False) -> str:
    """The parameters in parentheses, or nothing for what is not called."""
    try:
        shown = inspect.signature(value)
        text = str(
            shown.replace(
                parameters=[p.replace(annotation=p.empty) for p in shown.parameters.values()],
                return_annotation=shown.empty,
            )
        )[1:-1]
    except (TypeError, ValueError):
        return "(...)" if callable(value) and not isinstance(value, property) else ""
    parts = re.sub(r"<(?:\w+ )*([\w.]+)[^>]*>", r"\1", text)  # <function f at 0x1>
    if method:
        parts = re.sub(r"^(?:self|input|cls)\b(?:=\w+)?(?:, (?:/, |/$)?|$)", "", parts)
    return f"({parts})"


def directive(namespace: str, name: str, value: Any, body: str = "") -> str:
    """The description of a name for Sphinx's Python domain."""
    if namespace == "Tensor":
        kind = "method" if callable(value) else "attribute"
        shown = signature(OPS.get(name, value) if callable(value) else value, method=True) if kind == "method" else ""
    elif isinstance(value, type):
        kind = "exception" if issubclass(value, BaseException) else "class"
        shown = signature(value)
    else:
        kind, shown = "function", signature(value)
    within, short = ("", f"Tensor.{name}") if namespace == "Tensor" else (namespace, name)
    return f".. py:{kind}:: {short}{shown}\n   :module: {qualified(within, '')}\n\n" + indented(body)


def indented(text: str, by: int = 3) -> str:
    return "".join(" " * by + line + "\n" if line.strip() else "\n" for line in text.splitlines())


def body(doc: str, what: str = "function") -> str:
    """A docstring as reStructuredText. What is returned is one paragraph, however far its lines stand in."""

    def level(match: re.Match[str]) -> str:
        return match[1] + re.sub(r"^ +(?![ -])", "    ", match[2], flags=re.M)

    doc = re.sub(r"(^(?:Returns|Yields):\n)((?: +.*\n?)+)", level, doc, flags=re.M)
    return "\n".join(GoogleDocstring(doc, NAPOLEON, what=what).lines())


def members(value: type) -> str:
    """The methods of a class that have a docstring of their own."""
    parts = []
    for name, member in vars(value).items():
        raw = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        doc = inspect.getdoc(raw) if getattr(raw, "__doc__", None) else None
        if name.startswith("_") or not doc or not (callable(raw) or isinstance(raw, property)):
            continue
        kind = "method" if callable(raw) else "property"
        shown = signature(raw, method=not isinstance(member, staticmethod)) if callable(raw) else ""
        parts.append(f".. py:{kind}:: {name}{shown}\n\n" + indented(body(doc, "method")))
    return "\n".join(parts)


def facts(entry: Entry) -> str:
    """What the op table knows of an op beyond its docstring, and where it is defined."""
    said = []
    if isinstance(entry.value, Op):
        forms = reference.forms(entry.value.__name__, entry.value)
        said += ["takes ``out=``"] * ("o" in forms)
        said += ["has a derivative" if "g" in forms else "differentiated through the ops that it is written in"]
    try:
        said += ["canonical"] * is_canonical(entry.value)
    except (AttributeError, TypeError):
        pass
    path = (getattr(entry.value, "__module__", None) or "").replace(".", "/")
    files = [f"{path}.py", f"{path}.pyx", f"{path}/__init__.py"] if path else []
    said += [f"defined in ``{file}``" for file in files if (docs_coverage.ROOT / file).exists()]
    text = "; ".join(said)
    return f".. rst-class:: facts\n\n{text[0].upper()}{text[1:]}.\n" if text else ""


def page(entry: Entry) -> str:
    """The page of an entry."""
    title = entry.path
    module = qualified(entry.namespace if entry.namespace != "Tensor" else "", "")
    text = body(entry.doc, "class" if isinstance(entry.value, type) else "function")
    if isinstance(entry.value, type) and entry.name != "Tensor":
        text += "\n\n" + members(entry.value)
    parts = [f"{title}\n{'=' * len(title)}\n", f".. py:currentmodule:: {module}\n"]
    parts += [directive(entry.namespace, entry.name, entry.value, text), facts(entry)]
    if entry.forms:
        parts += [".. rubric:: Other forms\n", *(directive(*form) for form in entry.forms)]
    return "\n".join(parts)


def rows(names: list[tuple[str, str]]) -> str:
    """A table of names (with their paths) and what they do."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for path, summary in names:
        lines += [f"   * - :py:obj:`{path.rpartition('.')[2]} <{path}>`", f"     - {summary}"]
    return "\n".join(lines) + "\n"


def toctree(items: list[str], hidden: bool = True) -> str:
    return ".. toctree::\n" + "   :hidden:\n" * hidden + "\n" + indented("\n".join(items))


def heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def family(value: Any) -> str:
    """What the module that defines a name is for."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    found = first_sentence(getattr(module, "__doc__", None)).partition(": ")[0].replace("`", "")
    if not found or getattr(value, "__module__", "") == "taeda":
        return "Attributes, and what is in the core"
    return found if len(found) < 45 else re.split(r",| by | and the | with ", found)[0]


def write(folder: Path) -> int:
    """Write all pages below ``folder``. How many names they describe."""
    entries, others = collect()
    count = sum(1 + len(entry.forms) for entry in entries) + sum(map(len, others.values()))
    homes: dict[str, list[tuple[str, Entry]]] = defaultdict(list)  # by namespace: each name and its page
    for entry in entries:
        target = folder / f"{entry.file}.rst"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(entry))
        for namespace, name, _ in [(entry.namespace, entry.name, None), *entry.forms]:
            homes[namespace].append((name, entry))
    for namespace in NAMESPACES:
        write_namespace(folder, namespace, sorted(homes[namespace], key=lambda pair: pair[0]), others[namespace])
    tops = [n for n in NAMESPACES if "." not in n or n.rpartition(".")[0] not in NAMESPACES]
    lines = [f"{TITLES[n]} <{place(n)}/index>" for n in tops]
    table = [f"   * - :doc:`{qualified(n, '').rstrip('.')} <{place(n)}/index>`\n     - {TITLES[n]}" for n in NAMESPACES]
    (folder / "index.rst").write_text(
        heading("Reference")
        + f"\nThe {count} public names. Each function and class has a page: what it computes, its arguments, shapes,"
        " dtypes, errors, and an example that is run as a test. Names are PyTorch's.\n\n"
        ".. list-table::\n   :widths: 40 60\n   :class: names\n\n" + "\n".join(table) + "\n\n"
        "All ops in one table: :doc:`ops`. The ops that exported programs are written in: :doc:`canonical`.\n\n"
        + toctree([*lines, "All ops <ops>", "canonical", "array-api", "export-format"])
    )
    return count


def place(namespace: str) -> str:
    return namespace.replace(".", "/").lower() or "taeda"


def write_namespace(folder: Path, namespace: str, names: list[tuple[str, Entry]], others: list) -> None:
    """The page of a namespace, and those of its families where it is large."""
    home = folder / place(namespace)
    home.mkdir(parents=True, exist_ok=True)
    dotted = qualified(namespace, "")
    owner = taeda.Tensor if namespace == "Tensor" else importlib.import_module(dotted)
    parts = [heading(dotted if namespace else "taeda"), f".. py:currentmodule:: {dotted}\n"]
    if namespace == "Tensor":
        parts.append(
            "The methods and attributes of :py:class:`taeda.Tensor`. Most ops are also functions of ``taeda``.\n"
        )
    elif namespace:
        parts += [f".. py:module:: {dotted}\n", body(inspect.getdoc(owner) or "", "module") + "\n"]
    else:
        parts += [".. py:module:: taeda\n", "Tensors, the functions on them, and switches. Grouped by what they do.\n"]
    inner = [n for n in NAMESPACES if n.rpartition(".")[0] == namespace and namespace and n != namespace]
    listed = [(name, entry) for name, entry in names if not name.endswith("_") or (namespace != "Tensor" and namespace)]
    listed += [(n, e) for n, e in names if (n, e) not in listed and qualified(namespace, n) == e.path]

    def table_of(pairs: list[tuple[str, Entry]]) -> str:
        return rows([(qualified(namespace, name), first_sentence(entry.doc)) for name, entry in pairs])

    def pages_of(pairs: list[tuple[str, Entry]], up: str) -> list[str]:
        return [f"{name} <{up}/{e.file}>" for name, e in pairs if qualified(namespace, name) == e.path]

    root = "/reference"
    if len(listed) > LARGE:
        families: dict[str, list[tuple[str, Entry]]] = defaultdict(list)
        for name, entry in sorted(listed, key=lambda pair: pair[0].lower()):
            families[family(entry.value)].append((name, entry))
        small = [f for f, pairs in families.items() if len(pairs) < 3]
        rest = sorted((pair for f in small for pair in families.pop(f)), key=lambda pair: pair[0].lower())
        ordered = sorted(families.items()) + ([("Other", rest)] if rest else [])
        items = []
        for title, pairs in ordered:
            slug = re.sub(r"\W+", "-", title.lower()).strip("-")[:40].strip("-")
            (home / f"family-{slug}.rst").write_text(
                heading(title) + f"\n.. py:currentmodule:: {dotted}\n\n" + table_of(pairs) + "\n"
                + (toctree(pages) if (pages := pages_of(pairs, root)) else "")
            )  # fmt: skip
            items.append(f"family-{slug}")
            shown = ", ".join(f":py:obj:`{n} <{qualified(namespace, n)}>`" for n, _ in pairs)
            parts.append(f".. rubric:: {title}\n\n{shown}\n")
    else:
        parts.append(table_of(listed))
        items = pages_of(listed, root)
    items += [f"{qualified(n, '').rstrip('.')} <{root}/{place(n)}/index>" for n in inner]
    if others:
        (home / "others.rst").write_text(
            heading("Other names") + f"\n.. py:currentmodule:: {dotted}\n\n"
            + "\n".join(directive(namespace, n, v, body((inspect.getdoc(v) or "").split("\n\n")[0])) for n, v in others)
        )  # fmt: skip
        items.append("others")
    parts.append(toctree(items))
    (home / "index.rst").write_text("\n".join(parts))
