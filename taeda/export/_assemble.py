"""Functions that readers of files share: JSON that is checked, and a program from its parts."""

from __future__ import annotations

import json
from typing import Any

from taeda.fx import GraphModule

from ._checks import Checks
from ._encoding import bad
from .exported_program import CallSpec, ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ExportGraphSignature, InputKind, OutputKind


def parse_json(data: Any) -> Any:
    """JSON, in which no object has a key twice."""

    def unique(pairs: list) -> dict:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise bad("an object has a key twice")
        return found

    def refuse(name: str) -> Any:
        raise bad(f"{name} is no number of JSON")

    return json.loads(bytes(data).decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)


def assemble(
    module: GraphModule, signature: ExportGraphSignature, state: dict, constants: dict, checks: Checks, in_spec: Any,
    out_spec: Any, names: Any, *, example: Any = None, dialect: str = "TRAINING",
) -> ExportedProgram:  # fmt: skip
    """The program of parts that were read, if they fit each other.

    Raises:
        ValueError: they do not.
    """
    made = ExportedProgram(
        module, module.graph, signature, state, checks.ranges,
        [ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec))], example, constants, checks=checks,
        call_spec=CallSpec(in_spec, out_spec), argument_names=names, dialect=dialect,
    )  # fmt: skip
    try:
        made.validate()
    except RuntimeError as error:
        raise bad(str(error)) from None
    leaves = sum(s.kind == InputKind.USER_INPUT for s in signature.input_specs)
    results = sum(s.kind == OutputKind.USER_OUTPUT for s in signature.output_specs)
    positional, named = names
    whole = (
        in_spec.type is tuple
        and in_spec.num_children == 2
        and [s.type for s in in_spec.children_specs] == [tuple, dict]
    )
    if not whole or in_spec.num_leaves != leaves or len(checks.inputs) != leaves or out_spec.num_leaves != results:
        raise bad("the structures do not fit the inputs and outputs")
    first, second = in_spec.children_specs
    if len(positional) != first.num_children or sorted(named) != sorted(map(str, second.context)):
        raise bad("the names of the arguments do not fit their structure")
    if len({*positional, *named, "self"}) != len(positional) + len(named) + 1:
        raise bad("two arguments have one name")
    return made
