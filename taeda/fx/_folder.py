"""``GraphModule.to_folder``: a GraphModule as a Python package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import nn, serialization
from . import _names
from ._codegen import custom_builtins

if TYPE_CHECKING:
    from .graph_module import GraphModule

#: Modules whose repr is the call that makes them.
_BY_REPR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def write(module: GraphModule, folder: Path, name: str) -> None:
    """Write ``module`` into ``folder``: its code, its state, and the submodules that no repr tells."""
    folder.mkdir(parents=True, exist_ok=True)
    ns = _names.namespace()
    code = module.graph.python_code("self")
    serialization.save(module.state_dict(), folder / "state_dict.pt")
    lines = [f"import {ns}", _import_block(code.globals), "", f"from {ns}.nn import *", ""]
    lines += [f"class {name}({ns}.nn.Module):", "    def __init__(self):", "        super().__init__()"]
    for label, child in module.named_children():
        made = repr(child) if type(child) in _BY_REPR else _saved(child, folder / f"{label}.pt", ns)
        lines.append(f"        setattr(self, {label!r}, {made})")
    for label, buffer in module._buffers.items():
        if buffer is not None:
            shape = list(buffer.shape)
            lines.append(f"        self.register_buffer({label!r}, {ns}.empty({shape}, dtype={buffer.dtype}))")
    for label, value in module._parameters.items():
        if value is not None:
            empty = f"{ns}.empty({list(value.shape)}, dtype={value.dtype})"
            lines.append(f"        setattr(self, {label!r}, {ns}.nn.Parameter({empty}))")
    lines.append(f"        self.load_state_dict({ns}.load(r'{folder / 'state_dict.pt'}'))")
    body = "\n".join(f"    {line}" if line else "" for line in code.src.split("\n"))
    (folder / "module.py").write_text("\n".join(lines) + "\n" + re.sub(r"[ \t]+$", "", body, flags=re.M) + "\n")
    (folder / "__init__.py").write_text("from .module import *\n")


def _import_block(globals: dict[str, Any]) -> str:
    """The imports that give the names in ``globals``."""
    known = custom_builtins()
    lines = set()
    for name, value in globals.items():
        if name in known:
            lines.add(known[name].import_str)
        else:
            path = _names.qualified_name(value)
            module, _, attribute = path.rpartition(".")
            lines.add(f"from {module} import {attribute} as {name}" if module else f"{name} = {path}")
    return "\n".join(sorted(lines))


def _saved(child: Any, path: Path, ns: str) -> str:
    serialization.save(child, path)
    return f"{ns}.load(r'{path}', weights_only=False)"
