"""``python -m taeda.standin``: run a PyTorch program on taeda."""

from __future__ import annotations

import os
import runpy
import sys
import types

from . import install

USAGE = "usage: python -m taeda.standin (program.py | -m module | -c code | -) [argument ...]"


def _search_first(folder: str) -> None:
    """Look for modules in ``folder`` first, as for a program run by Python itself, in place of the entry of ``-m``."""
    if not sys.flags.safe_path:  # where it did
        del sys.path[0]
    sys.path.insert(0, folder)


def _bequeath() -> None:
    """Let ``import torch`` mean taeda in processes started afresh, too: by ``spawn``, or as programs of their own.

    They search ``PYTHONPATH`` first; those of ``multiprocessing`` search what this process does.
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    sys.path.insert(1, folder)


def main(arguments: list[str]) -> None:
    """Run what ``arguments`` name as Python's own command line would, with taeda in PyTorch's place.

    Raises:
        SystemExit: there is nothing to run, or the program ended so.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        raise SystemExit(0 if arguments else 2)
    what, *rest = arguments
    install()
    if what in ("-m", "-c"):
        if not rest:
            raise SystemExit(f"argument expected for {what}\n{USAGE}")
        target, *rest = rest
        _search_first(os.getcwd() if what == "-m" else "")
        _bequeath()
        sys.argv = [what, *rest]
        if what == "-m":
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            _execute(compile(target, "<string>", "exec"))
        return
    sys.argv = [what, *rest]
    if what == "-":
        _search_first("")
        _bequeath()
        _execute(compile(sys.stdin.read(), "<stdin>", "exec"))
        return
    if not os.path.exists(what):
        raise SystemExit(f"python -m taeda.standin: can't open file {what!r}: no such file")
    if not os.path.isdir(what):  # a folder or an archive puts itself in front
        _search_first(os.path.dirname(os.path.abspath(what)))
    _bequeath()
    runpy.run_path(what, run_name="__main__")


def _execute(code: object) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1:])
