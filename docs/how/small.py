"""Loads what earlier chapters of *How it works* have built, so that each page runs alone.

The chapters are the only copy of the code. A block that asserts or prints at its top level is an experiment; all others
are the library. In a chapter::

    from small import load

    load(1, 2, into=globals())  # the library as it stands after chapter 2
"""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent


def blocks(number: int) -> list[str]:
    """The Python blocks of a chapter, in order."""
    (page,) = HERE.glob(f"{number}-*.md")
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.S | re.M)


def is_experiment(block: str) -> bool:
    """Whether a block shows something, and so is not part of the library."""
    calls = [node.value for node in ast.parse(block).body if isinstance(node, ast.Expr)]
    prints = any(isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print" for call in calls)
    return prints or any(isinstance(node, ast.Assert) for node in ast.parse(block).body)


def load(*numbers: int, into: dict) -> None:
    """Run the libraries of these chapters in the namespace ``into``, where later ones may redefine what earlier use."""
    for number in numbers:
        for block in blocks(number):
            if not is_experiment(block) and "from small import" not in block:
                exec(compile(block, f"chapter {number}", "exec"), into)
