"""Programs in files: what is written is read, and a damaged file gives an exception."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile

import pytest

import taeda
import taeda.export
from taeda.export import Dim, _pt2_guards, export
from taeda.io.archive import ArchiveReader, ArchiveWriter
from taeda.utils import _pytree as pytree
from tests.agree import close

from .models import MODELS

EXPECTED = (ValueError, RuntimeError)


def written(program, format="taeda", **options) -> bytes:
    file = io.BytesIO()
    taeda.export.save(program, file, format=format, **options)
    return file.getvalue()


def read(data: bytes):
    return taeda.export.load(io.BytesIO(data))


def exported(name):
    module, args, kwargs, sizes = MODELS[name](taeda)
    return module, args, kwargs, taeda.export.export(module, args, kwargs, dynamic_shapes=sizes)


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name):
    module, args, kwargs, program = exported(name)
    again = read(written(program))
    assert str(again) == str(program)
    assert again.constraints == program.constraints
    wanted = copy.deepcopy(module)(*copy.deepcopy(args), **kwargs)
    close(*map(pytree.tree_leaves, (again.module()(*copy.deepcopy(args), **kwargs), wanted)), rtol=0, atol=0)
    close(*map(pytree.tree_leaves, (again.example_inputs, (args, kwargs))), rtol=0, atol=0)


def test_what_a_file_is(tmp_path):
    *_, program = exported("mlp")
    taeda.export.save(program, tmp_path / "m.pt2", extra_files={"note": "hello"}, format="taeda")
    extra = {"note": ""}
    taeda.export.load(tmp_path / "m.pt2", extra_files=extra)
    assert extra == {"note": "hello"}
    with zipfile.ZipFile(tmp_path / "m.pt2") as file:
        assert sorted(file.namelist()) == ["program/extra/note", "program/program.json", "program/tensors.safetensors"]
        assert json.loads(file.read("program/program.json"))["version"] == 1


def test_shared_weights_stay_one():
    *_, program = exported("shared_weights")
    again = read(written(program))
    assert again.state_dict["head.weight"] is again.state_dict["embed.weight"]


def test_a_loaded_program_is_trained():
    module, args, _, program = exported("mlp")
    again = read(written(program)).module()
    for m in (module, again):
        optimizer = taeda.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            m(*args).square().sum().backward()
            optimizer.step()
    close(dict(again.named_parameters())["0.weight"], module[0].weight, rtol=0, atol=0)


def test_what_has_no_form_is_refused(tmp_path):
    *_, program = exported("mlp")
    with pytest.raises(TypeError, match="ExportedProgram"):
        taeda.export.save(program.module(), tmp_path / "m")
    node = next(n for n in program.graph.nodes if n.op == "call_function")
    node.target = print
    with pytest.raises(ValueError, match="print"):
        taeda.export.save(program, tmp_path / "m")
    assert not (tmp_path / "m").exists()


# ---- damaged files ---------------------------------------------------------------------------------------------------


def packed(records: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    writer = ArchiveWriter(file, "program")
    for name, data in records.items():
        writer.add(name, data)
    writer.close()
    return file.getvalue()


def changed(**changes):
    """The file of a small program with other values at the top level of its JSON."""
    *_, program = exported("branch_on_size")
    archive = ArchiveReader(written(program))
    records = {name: bytes(archive.read(name)) for name in ("program.json", "tensors.safetensors")}
    text = json.loads(records["program.json"])
    for key, value in changes.items():
        text[key] = value(text[key])
    return packed({**records, "program.json": json.dumps(text).encode()})


def replaced(text, old, new):
    return json.loads(json.dumps(text).replace(old, new))


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("version", lambda v: 99, "version 99"),
        ("graph", lambda g: replaced(g, '"call": "mul"', '"call": "os.system"'), "no function"),
        ("graph", lambda g: replaced(g, '"call": "mul"', '"call": "from_file"'), "no function"),
        ("graph", lambda g: replaced(g, '"input": "x"', '"input": "x): print(1) #"'), "no name"),
        ("graph", lambda g: replaced(g, '{"node": "x"}', '{"node": "y"}'), "before it is made"),
        ("graph", lambda g: {**g, "nodes": g["nodes"][:-1]}, "no output"),
        ("graph", lambda g: replaced(g, '"args": [', '"args": [1, 2, 3, 4, 5, '), "arguments"),
        ("inputs", lambda s: s[1:], "signature"),
        ("out_spec", lambda s: {"kind": "class", "context": ["os.Popen"], "children": []}, "not registered"),
        ("ranges", lambda r: {}, "without a range"),
        ("arguments", lambda a: {"positional": ["x", "y"], "named": []}, "names of the arguments"),
        ("guards", lambda g: [[["pow", ["batch"], 10**9], True]], "pow"),
    ],
)
def test_what_is_wrong_is_said(key, change, message):
    with pytest.raises(EXPECTED, match=message):
        read(changed(**{key: change}))


def mutations(data: bytes, count: int, seed: int):
    rng = random.Random(seed)
    for _ in range(count):
        at, kind = rng.randrange(len(data)), rng.randrange(5)
        if kind == 0:
            yield data[:at]
        elif kind == 1:
            yield data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 2:
            yield data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + rng.randrange(9) :]
        elif kind == 3:
            other = rng.randrange(len(data))
            yield data[:at] + data[other : other + rng.randrange(64)] + data[at:]
        else:
            yield (
                data[:at]
                + rng.choice([b"null", b"-1", b"[]", b"{}", b'"x"', b"1e999", b"99999999999999999999"])
                + data[at:]
            )


def _places(tree, found):
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        if isinstance(tree[key], (dict, list)):
            _places(tree[key], found)


VALUES = [
    None,
    True,
    0,
    -1,
    3,
    2**40,
    2**70,
    1.5,
    "",
    "x",
    "add",
    "__class__",
    [],
    {},
    [[]],
    {"node": "x"},
    {"list": [1]},
]


def restructured(text, count: int, seed: int):
    """The JSON with a value replaced by another one, from inside of it or from ``VALUES``."""
    rng = random.Random(seed)
    for _ in range(count):
        tree = json.loads(text)
        places: list = []
        _places(tree, places)
        for _ in range(rng.randrange(1, 3)):
            (into, key), (source, other) = rng.choice(places), rng.choice(places)
            into[key] = copy.deepcopy(source[other]) if rng.random() < 0.5 else copy.deepcopy(rng.choice(VALUES))
            if rng.random() < 0.2 and isinstance(into, dict):
                into[rng.choice(["name", "value", "zz"])] = into.pop(key)
                break
        yield json.dumps(tree).encode()


def attempt(data: bytes) -> None:
    """Load, and write the code; anything but a program or an expected error fails the test."""
    try:
        program = read(data)
        program.module()
    except EXPECTED:
        pass


def fuzz(count: int, seed: int) -> None:
    for i, name in enumerate(("attention_with_mask", "conditional", "containers", "buffers")):
        *_, program = exported(name)
        data = written(program)
        archive = ArchiveReader(data)
        text, tensors = (bytes(archive.read(n)) for n in ("program.json", "tensors.safetensors"))
        for damaged in mutations(data, count // 16, seed + i):
            attempt(damaged)
        for damaged in mutations(text, count // 16, seed + i):
            attempt(packed({"program.json": damaged, "tensors.safetensors": tensors}))
        for damaged in restructured(text, count // 8, seed + i):
            attempt(packed({"program.json": damaged, "tensors.safetensors": tensors}))


def test_fuzzed_files():
    memory = taeda._core.memory
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["allocated"]
    fuzz(3000, 1)
    assert memory.memory_stats()["peak_allocated"] - before < 10_000_000


@pytest.mark.sweep
def test_a_million_fuzzed_files():
    for seed in range(100):
        fuzz(10_000, 1000 * seed)


@pytest.mark.parametrize("text", [
    "5 % 0 == 0", "-" * 9000 + "1", "1+" * 9000 + "1", "a" + ".b" * 9000 + ".size()[0]", "L['x'].size()[0] < 'a'",
    "L['x'].size()[9] == 1", "L['x'].size()[0] == (", "__import__('os').size()[0]", "1j == 2", "1 < 2 < 3",
])  # fmt: skip
def test_conditions_of_files_that_cannot_be_read_are_left_out(text):
    program = export(taeda.nn.Linear(2, 2), (taeda.ones(3, 2),), dynamic_shapes=({0: Dim("n")},))
    first = next(check for check in program._checks.inputs if check.sizes)
    good = "L['x'].size()[0] % 3 == 0"
    assert len(_pt2_guards.read([text, good], [first], ["L['x']"])) == 1
