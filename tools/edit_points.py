"""Counts the places at which each op is named: its stanza, its re-exports, and what lists it by name.

    python tools/edit_points.py [--most 12]

An op's uses by other code are no edit points: adding the op does not touch them. What must be edited to add one is its
stanza and, if the public namespace is to have it, a line of re-export; a string with the op's name (the key of a rule,
an entry of a list) is an edit point for the ops that need it. Generated files (stubs, the reference page) do not count.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from taeda.ops.table import OPS

NAMESPACES = ("__init__.py", "special.py", "fft.py", "linalg.py", "nn/functional.py")


def public_ops() -> dict[str, Path]:
    """Ops by name, with the file of each one's stanza; derived forms (in-place) belong to their op."""
    found = {}
    for name, op in OPS.items():
        if name.startswith("_") or (name.endswith("_") and name[:-1] in OPS):
            continue
        try:
            file = Path(inspect.getsourcefile(inspect.unwrap(op)) or "")
        except TypeError:
            continue
        if file.is_relative_to(ROOT / "taeda" / "ops"):
            found[name] = file
    return found


def named_by_strings(path: Path) -> set[str]:
    """Strings that stand in decorators, dictionary keys, lists and tuples of ``path``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        inside: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef):
            inside = [a for d in node.decorator_list if isinstance(d, ast.Call) for a in d.args]
        elif isinstance(node, ast.Dict):
            inside = list(node.keys)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            inside = list(node.elts)
        names.update(n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return names


def reexports(path: Path) -> set[str]:
    imports = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom))
    return {a.asname or a.name for n in imports for a in n.names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=12, help="how many of the most scattered ops to list")
    most = parser.parse_args().most
    ops = public_ops()
    places: dict[str, set[str]] = defaultdict(set)
    for name, stanza in ops.items():
        places[name].add(f"stanza ops/{stanza.relative_to(ROOT / 'taeda' / 'ops')}")
    for path in sorted((ROOT / "taeda").rglob("*.py")):
        label = path.relative_to(ROOT / "taeda").as_posix()
        if label in NAMESPACES:
            for name in reexports(path) & set(ops):
                places[name].add(f"re-export {label}")
        elif label.split("/")[0] not in ("kernels", "nn", "optim", "distributions"):
            for name in named_by_strings(path) & set(ops):
                if path != ops[name]:
                    places[name].add(f"by name {label}")
    counts = Counter(len(found) for found in places.values())
    print("edit points per op:")
    for count in sorted(counts):
        print(f"{count:>4}: {counts[count]:>4} ops")
    print(f"mean {sum(map(len, places.values())) / len(places):.2f} over {len(places)} ops")
    print("\nmost scattered:")
    for name, found in sorted(places.items(), key=lambda item: -len(item[1]))[:most]:
        print(f"    {name}: {', '.join(sorted(found))}")


if __name__ == "__main__":
    main()
