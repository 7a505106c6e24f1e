"""Counts the project's lines: files, lines and lines of code per folder, and the longest files.

    python tools/loc.py [--limit 600]

Lines of code leave out blank lines, comments and docstrings.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".py", ".pyx", ".pxd", ".pxi"}
WRITTEN = {"kernel_args.pxd"}  # by setup.py, as the C code is


def _docstring_lines(text: str) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(path: Path) -> int:
    """Lines of ``path`` that hold code."""
    text = path.read_text()
    if path.suffix != ".py":  # Cython: near enough without a parser
        return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in quiet:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _docstring_lines(text))


def _folder(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    depth = 2 if parts[0] == "taeda" and len(parts) > 2 else 1
    return "/".join(parts[:depth]) if len(parts) > 1 else "."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=600, help="list files longer than this")
    limit = parser.parse_args().limit
    folders = ("taeda", "tests", "bench", "docs", "examples", "tools")
    files = [
        p for top in folders for p in sorted((ROOT / top).rglob("*")) if p.suffix in SUFFIXES and p.name not in WRITTEN
    ]
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    long = []
    for path in files:
        lines = len(path.read_text().splitlines())
        code = code_lines(path)
        for name in (_folder(path), "taeda, in all") if path.is_relative_to(ROOT / "taeda") else (_folder(path),):
            for i, n in enumerate((1, lines, code)):
                totals[name][i] += n
        if lines > limit:
            long.append((lines, path.relative_to(ROOT)))
    print(f"{'folder':24}{'files':>7}{'lines':>9}{'code':>9}")
    for name, (count, lines, code) in sorted(totals.items()):
        print(f"{name:24}{count:>7}{lines:>9,}{code:>9,}")
    if long:
        print(f"\nlonger than {limit} lines:")
        for lines, name in sorted(long, reverse=True):
            print(f"{lines:>7,}  {name}")


if __name__ == "__main__":
    main()
