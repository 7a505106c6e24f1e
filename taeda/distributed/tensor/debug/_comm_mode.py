"""``CommDebugMode``: counts the collectives of a program, and of each of its modules."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taeda.aten import OpOverloadPacket, native_name, packet
from taeda.utils._python_dispatch import TorchDispatchMode, native_call
from taeda.utils.module_tracker import ModuleTracker

from ....nn.modules import _hooks
from ....utils import _pytree as pytree
from ...watching import WATCHERS, is_functional
from ..dtensor import DTensor

__all__ = ["CommDebugMode"]

#: PyTorch's names of collectives: of the functions that give new tensors and of DTensors, and of the others.
_FUNCTIONAL = {
    "all_gather": "all_gather_into_tensor",
    "all_to_all": "all_to_all_single",
    "reduce_scatter": "reduce_scatter_tensor",
}
_NAMES = {
    "all_gather": "allgather_", "all_gather_into_tensor": "_allgather_base_", "all_reduce": "allreduce_",
    "all_reduce_coalesced": "allreduce_coalesced_", "all_to_all": "alltoall_", "all_to_all_single": "alltoall_base_",
    "broadcast": "broadcast_", "gather": "gather_", "reduce": "reduce_", "reduce_scatter": "reduce_scatter_",
    "reduce_scatter_tensor": "_reduce_scatter_base_", "scatter": "scatter_",
}  # fmt: skip
_TRIVIAL = {f"aten.{name}.default" for name in ("detach", "t", "view", "_to_copy", "as_strided")} | {
    "aten.transpose.int"
}


def packet_of(library: str, name: str) -> OpOverloadPacket | None:
    """``torch.ops.<library>.<name>``, where that is a collective that is counted."""
    plain = {"all_gather_into_tensor", "all_reduce", "all_to_all_single", "broadcast", "reduce_scatter_tensor"}
    known = {"c10d": set(_NAMES.values()), "c10d_functional": plain}
    return OpOverloadPacket(library, name, None) if name in known.get(library, ()) else None


def _key(name: str) -> OpOverloadPacket | None:
    """PyTorch's op for the collective; None if it is not counted, like barriers."""
    if is_functional():
        return OpOverloadPacket("c10d_functional", _FUNCTIONAL.get(name, name), None)
    return OpOverloadPacket("c10d", _NAMES[name], None) if name in _NAMES else None


class _Tracker(ModuleTracker):
    """The modules that run, with their hooks, and the information on each.

    Attributes:
        modules: by name, in the order of their first calls: how deep, and for modules their type and parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self.modules: dict[str, dict[str, Any]] = {}
        self.parameters: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> _Tracker:
        self.running = ["Global"]
        self.modules = {"Global": {"depth": 0}}
        self.parameters = {}
        self._handles = [_hooks.register_module_forward_pre_hook(self._before)]
        self._own: dict[Any, Any] = {}
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for handle in self._own.values():
            handle.remove()

    def _before(self, module: Any, args: Any) -> None:
        super()._before(module, args)
        name = self._name(module)
        if name not in self.modules:
            found = dict(module.named_parameters(recurse=False))
            self.modules[name] = {"depth": len(self.running), "module_type": str(type(module)).strip("<>")}
            if found:
                self.parameters[name] = {k: p.data for k, p in found.items()}
                cut = {k: p.placements for k, p in found.items() if isinstance(p, DTensor)}
                self.modules[name] |= {"parameters": cut} if cut else {}
        self.running.append(name)
        if module not in self._own:  # the last of its hooks, so that the others' calls count as the module's
            self._own[module] = module.register_forward_hook(self._after)

    def _after(self, module: Any, args: Any, output: Any) -> None:
        super()._after(module, args, output)
        self.running.pop()

    @property
    def innermost(self) -> str:
        """The module that is running, or whose backward pass is."""
        if not self.is_bw:
            return self.running[-1]
        return max(self.parents, key=lambda name: (name != "Global", name.count(".")))


class CommDebugMode(TorchDispatchMode):
    """Context manager that counts collectives, as PyTorch's class of this name.

    Counts are by PyTorch's ops: ``torch.ops.c10d_functional.all_reduce`` for the functions that give new tensors and
    for DTensors, ``torch.ops.c10d.allreduce_`` for ``torch.distributed``'s own. Messages and barriers are not counted.
    A DTensor that is cut along another dimension is one ``all_to_all_single``.

    Attributes:
        comm_counts: the collectives.
        comm_module_counts: those of each module, ``"forward"`` and ``"backward"``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.comm_counts: dict[OpOverloadPacket, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[OpOverloadPacket, int]]] = {}
        self._operations: dict[str, list[dict[str, Any]]] = {}
        self._tracker = _Tracker()

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        self.comm_module_counts.clear()
        self._operations.clear()
        self._counts_of("Global")
        self._tracker = _Tracker()
        self._tracker.__enter__()
        WATCHERS.append(self)
        return super().__enter__()

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        WATCHERS.remove(self)
        self._tracker.__exit__(*exc)

    # ---- collection ----

    def _counts_of(self, module: str) -> dict[str, dict[OpOverloadPacket, int]]:
        return self.comm_module_counts.setdefault(module, {"forward": defaultdict(int), "backward": defaultdict(int)})

    def collective(self, doing: str) -> None:
        """See :class:`~taeda.distributed.watching.Watcher`."""
        key = _key(doing.partition("(")[0])
        if key is None:
            return
        self.comm_counts[key] += 1
        tracker = self._tracker
        for module in tracker.parents if tracker.is_bw else {"Global", *tracker.running}:
            self._counts_of(module)["backward" if tracker.is_bw else "forward"][key] += 1

    def op(self, op: Any, args: tuple, kwargs: dict) -> None:
        """See :class:`~taeda.distributed.watching.Watcher`."""
        cut = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, DTensor)]
        func = native_call(op, args, kwargs)[0]
        native = native_name(op, (*args, *kwargs.values()))
        self._operation(func if native == op.name else packet(native).default, cut)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Notes an op on tensors of this process."""
        self._operation(func, [])
        return func(*args, **(kwargs or {}))

    def _operation(self, func: Any, cut: list[DTensor]) -> None:
        self._operations.setdefault(self._tracker.innermost, []).append({
            "name": func, "is_bw": self._tracker.is_bw, "input_shape": [x.shape for x in cut],
            "input_sharding": [x.placements for x in cut], "device_mesh": str(cut[0].device_mesh) if cut else "",
        })  # fmt: skip

    # ---- results ----

    def get_total_counts(self) -> int:
        """The number of collectives."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[OpOverloadPacket, int]:
        """The number of each kind; 0 for others."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters of each module that has run."""
        return self._tracker.parameters

    def get_sharding_info(self) -> dict[str, tuple]:
        """The placements of those parameters that are DTensors."""
        return {
            f"{module}.{name}": placements
            for module, found in self._tracker.modules.items()
            for name, placements in found.get("parameters", {}).items()
        }

    def _of_pass(self, module: str, kind: str, noise_level: int) -> tuple[dict, list[dict]]:
        """The collectives and the ops of a module's pass."""
        collectives = self.comm_module_counts.get(module, {}).get(kind, {})
        return collectives, [
            op
            for op in self._operations.get(module, [])
            if op["is_bw"] == (kind == "backward")
            and noise_level > 0
            and (noise_level > 1 or op["input_shape"])
            and (noise_level > 2 or str(op["name"]) not in _TRIVIAL)
        ]

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """The collectives of each module as text, in colours for a terminal.

        Args:
            noise_level: 0 for collectives alone, 1 with the modules' types, placements of parameters, and ops on
                DTensors, 2 with the ops on this process's tensors, 3 with views and copies too.
        """
        return "".join(f"{line}\n" for line in self._lines(noise_level))

    def _lines(self, noise_level: int) -> Iterator[str]:
        for module, known in self._tracker.modules.items():
            indent = "    " * known["depth"]
            yield indent + module
            if noise_level > 0 and "module_type" in known:
                yield f"{indent}*module type: {known['module_type']}"
            if noise_level > 0 and "parameters" in known:
                yield f"{indent}*Parameter List"
                yield from (f"{indent} *{name}: {placements}" for name, placements in known["parameters"].items())
            for kind in ("forward", "backward"):
                collectives, operations = self._of_pass(module, kind, noise_level)
                if collectives or operations:
                    yield f"{indent}  {kind.upper()} PASS"
                for collective, count in collectives.items():
                    yield f"\033[1;33m{indent}    *{collective}: {count}\033[0m"
                for op in operations:
                    yield f"\033[1;33m{indent}    **{op['name']}\033[0m"
                    if op["input_shape"]:
                        yield f"\033[1;31m{indent}      shape: {op['input_shape']}\033[0m"
                        yield f"\033[1;31m{indent}      sharding: {op['input_sharding']}\033[0m"
                        yield f"\033[1;31m{indent}      device mesh: {op['device_mesh']}\033[0m"

    def log_comm_debug_tracing_table_to_file(self, file_name: Any = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Write :meth:`generate_comm_debug_tracing_table` to a file, without colours."""
        table = self.generate_comm_debug_tracing_table(noise_level)
        Path(file_name).write_text(re.sub(r"\033\[[0-9;]*m", "", table))

    def generate_json_dump(self, file_name: Any = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Write what :meth:`generate_comm_debug_tracing_table` tells to a file, as a tree of modules."""
        tree: list[dict] = []
        way: list[list[dict]] = [tree]
        for module, known in self._tracker.modules.items():
            cut = known.get("parameters", {}) if noise_level > 0 else {}
            node: dict[str, Any] = {
                "fqn": module, "module_type": known.get("module_type", "") if noise_level > 0 else "",
                "parameters": [[name, str(placements)] for name, placements in cut.items()], "children": [],
            }  # fmt: skip
            for kind in ("forward", "backward"):
                collectives, operations = self._of_pass(module, kind, noise_level)
                node[f"collectives_{kind}"] = [f"{collective}: {count}" for collective, count in collectives.items()]
                node[f"operations_{kind}"] = [
                    {"name": str(op["name"]), "input_shape": [list(shape) for shape in op["input_shape"]],
                     "input_sharding": [str(placements) for placements in op["input_sharding"]],
                     "device_mesh": op["device_mesh"]}
                    for op in operations
                ]  # fmt: skip
            del way[known["depth"] + 1 :]
            way[-1].append(node)
            way.append(node["children"])
        Path(file_name).write_text(json.dumps(tree[0], indent=4))

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"
